//! torture.pl 1.05 of Lincoln Stein (1999), reconstructed from documentation: no original copy was
//! available.

mod options;
mod requests;
mod results;

use crate::{
    Date, Ending, Extras, Face, FaceOutput, Facts, Files, Job, Needs, Reading, StartTrouble,
};
use options::{AccessTarget, Options};
use plan::{AddressOrder, Expect, Load, Order, Plan, TargetPlan, Think};
use record::run::RunRecord;
use results::Tally;
use sample::CallRecord;
use units::Nanos;

/// Reads torture.pl's command line.
pub fn read(args: &[String], extras: Extras, files: &dyn Files) -> Reading {
    let options = match options::parse(args) {
        Ok(options) => options,
        Err(ending) => return Reading::End(ending),
    };
    if let AccessTarget::Nowhere = options.place {
        return Reading::End(unreachable(&options, files.process_id(), files.now()));
    }
    let made = places(&options, files).and_then(|places| requests::make(&options, &places));
    let made = match made {
        Ok(made) => made,
        Err(text) => return Reading::End(fatal(text)),
    };
    let plan = plan(&options, made.targets);
    if extras.native {
        return Reading::End(Ending::text(native(&options, &plan)));
    }
    let tally = Tally::new(made.sent, files.process_id());
    let (process, begun) = (files.process_id(), files.now());
    let face = Box::new(Torture { options, tally, process, begun });
    let needs = Needs { calls: true, responses: u64::MAX, ..Needs::default() };
    Reading::Run(Box::new(Job::new(plan, needs, extras, face)))
}

/// Returns the targets of accesses, and their relative frequencies.
fn places(options: &Options, files: &dyn Files) -> Result<Vec<TargetPlan>, String> {
    let path = match &options.place {
        AccessTarget::One(url) => return Ok(vec![TargetPlan::new(url.clone())]),
        AccessTarget::List(path) => path,
        AccessTarget::Nowhere => return Ok(Vec::new()),
    };
    // a pipe is read as a file of that name
    let bytes = files.read(if path == "-" { "/dev/stdin" } else { path });
    let bytes = bytes.map_err(|error| format!("--urls {path}: {}", error.text))?;
    let list = plan::parse_url_list(&String::from_utf8_lossy(&bytes), None)
        .map_err(|error| format!("--urls {path}: {error}"))?;
    for target in &list {
        let url = &target.url;
        if url.scheme() != "http" {
            return Err(format!("--urls {path}: {url} is not an http:// URL"));
        }
        if target.method.is_some() || target.body.is_some() {
            return Err(format!(
                "--urls {path}: {url} has a method or a body; here all are requested by GET, with \
                 -P by POST: omit them"
            ));
        }
    }
    Ok(list)
}

fn plan(options: &Options, targets: Vec<TargetPlan>) -> Plan {
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

/// A run in progress.
#[derive(Debug)]
struct Torture {
    options: Options,
    tally: Tally,
    process: u32,
    begun: Date,
}

/// Returns the report of accesses to an unreachable host: each has the status that the script makes
/// up for a refused connection.
fn unreachable(options: &Options, process: u32, begun: Date) -> Ending {
    let mut tally = Tally::new(Vec::new(), process);
    let accesses = u64::from(options.copies) * u64::from(options.times);
    let mut err = String::new();
    (0..accesses).for_each(|_| tally.refuse(&mut err));
    let span =
        results::RunSpan { began_s: begun.unix_s, spent_s: 0.0, utc_offset_s: begun.utc_offset_s };
    Ending { out: results::text(options, &tally, span), err, ..Ending::default() }
}

impl Face for Torture {
    fn calls(&mut self, calls: &[CallRecord]) -> FaceOutput {
        let mut output = FaceOutput::default();
        for call in calls {
            self.tally.take(call, &mut output.err);
        }
        output
    }

    fn cannot_start(&mut self, trouble: &StartTrouble) -> Ending {
        if let (StartTrouble::Name { .. }, AccessTarget::One(_)) = (trouble, &self.options.place) {
            return unreachable(&self.options, self.process, self.begun);
        }
        fatal(match trouble {
            StartTrouble::Name { host, text } => format!("{host}: {text}"),
            StartTrouble::Descriptors => "Too many open files".to_owned(),
            other => other.text().to_owned(),
        })
    }

    fn report(&mut self, report: &RunRecord, facts: &Facts) -> Ending {
        let span = results::RunSpan {
            began_s: report.started_unix_s,
            spent_s: report.elapsed_s,
            utc_offset_s: facts.utc_offset_s,
        };
        let mut ending = Ending::text(results::text(&self.options, &self.tally, span));
        ending.notes.extend(crate::client_note(report));
        ending
    }
}

/// Ends the program like Perl's `die`, with 255.
fn fatal(text: impl AsRef<str>) -> Ending {
    Ending::error(format!("torture.pl: {}\n", text.as_ref()), 255)
}

/// Returns a plan for random data or draws from a list: it contains every request.
fn native(options: &Options, plan: &Plan) -> String {
    let AccessTarget::One(url) = &options.place else {
        return crate::words::plan_script("torture.toml", plan);
    };
    if options.length > 0 {
        return crate::words::plan_script("torture.toml", plan);
    }
    let calls = u64::from(options.copies) * u64::from(options.times);
    let place = crate::words::shell_quoted(url.as_str());
    let mut line = format!("loadstone run {place} -c {} -n {calls} --calls 1", options.copies);
    if !options.delay.is_zero() {
        put!(line, " --think 0s..{}", units::show::duration(options.delay).replace(' ', ""));
    }
    if options.post {
        line.push_str(" --method POST");
    }
    line + "\n"
}
