//! torture.pl 1.05 of Lincoln Stein (1999), after what is known of it: no pristine copy was at hand.

mod options;
mod requests;
mod results;

use crate::{Ending, Extras, Face, Facts, Job, Needs, Reading, Said, Trouble};
use options::Options;
use plan::{AddressOrder, Expect, Load, Order, Plan, Think};
use report::RunReport;
use results::Tally;
use sample::CallRecord;
use units::Nanos;

/// Reads torture.pl's command line.
pub fn read(args: &[String], extras: Extras) -> Reading {
    let options = match options::parse(args) {
        Ok(options) => options,
        Err(ending) => return Reading::End(ending),
    };
    let made = match requests::make(&options) {
        Ok(made) => made,
        Err(text) => return Reading::End(fatal(text)),
    };
    if extras.native {
        return Reading::End(Ending::text(native(&options)));
    }
    let plan = plan(&options, made.targets);
    let tally = Tally::new(made.sent);
    let face = Box::new(Torture { options, tally });
    let needs = Needs { calls: true, answers: u64::MAX, ..Needs::default() };
    Reading::Run(Box::new(Job { plan, needs, extras, script: None, face }))
}

fn plan(options: &Options, targets: Vec<plan::TargetPlan>) -> Plan {
    let calls = targets.len() as u64;
    let mut plan = Plan::for_targets(targets);
    plan.order = Order::Once;
    let think = match options.delay {
        span if span.is_zero() => Think::None,
        span => Think::Uniform(Nanos::ZERO, span),
    };
    plan.load = Load::Closed { users: options.copies, think, session: None };
    plan.stop.duration = None;
    plan.stop.requests = Some(calls);
    plan.expect = Expect { status: vec![(100, 599)], ..Expect::default() };
    plan.connection.calls = Some(1);
    plan.connection.addresses = AddressOrder::FirstThatAnswers;
    plan.measure.tcp_info_share = 0.0;
    plan
}

/// A run under way.
#[derive(Debug)]
struct Torture {
    options: Options,
    tally: Tally,
}

impl Face for Torture {
    fn calls(&mut self, calls: &[CallRecord]) -> Said {
        let mut said = Said::default();
        for call in calls {
            self.tally.take(call, &mut said.err);
        }
        said
    }

    fn cannot_start(&mut self, trouble: &Trouble) -> Ending {
        fatal(match trouble {
            Trouble::Name { host, text } => format!("{host}: {text}"),
            Trouble::Bind(error) => error.text.clone(),
            Trouble::Descriptors => "Too many open files".to_owned(),
            Trouble::Tls(text)
            | Trouble::Lookup(text)
            | Trouble::Connect(text)
            | Trouble::Script(text)
            | Trouble::Request(text)
            | Trouble::Other(text) => text.clone(),
        })
    }

    fn report(&mut self, report: &RunReport, facts: &Facts) -> Ending {
        let mut ending = Ending::text(results::text(&self.options, &self.tally, report, facts));
        ending.notes.extend(crate::client_note(report));
        ending
    }
}

/// Perl's `die`: 255.
fn fatal(text: impl AsRef<str>) -> Ending {
    Ending::error(format!("torture.pl: {}\n", text.as_ref()), 255)
}

/// The same load on one address, without the random data: `loadstone torture` will have that.
fn native(options: &Options) -> String {
    let calls = u64::from(options.copies) * u64::from(options.times);
    let mut line = format!(
        "loadstone run {} -c {} -n {calls} --calls 1",
        crate::words::shell_quoted(options.url.as_str()),
        options.copies
    );
    if !options.delay.is_zero() {
        put!(line, " --think 0s..{}", units::show::duration(options.delay).replace(' ', ""));
    }
    if options.post {
        line.push_str(" --method POST");
    }
    line + "\n"
}
