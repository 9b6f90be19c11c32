//! httperf 0.9.0, as packaged by Debian, with the options of 0.9.1.

mod arrivals;
mod echo;
mod native;
mod number;
mod options;
mod page;
mod print;
mod request;
mod servers;
mod sesslog;
mod setup;
mod tally;
mod text;
mod value;

use crate::{
    Date, Ending, Extras, Face, FaceDecision, FaceOutput, Facts, Files, Job, Needs, Reading,
    StartTrouble, client_note,
};
use options::{Command, OptionOutput, Options};
use plan::Plan;
use print::Printer;
use record::run::RunRecord;
use sample::{CallRecord, Ends};
use tally::Tally;

pub(crate) use number::{decimal, general};

/// Reads httperf's command line.
pub fn read(program: &str, args: &[String], extras: Extras, files: &dyn Files) -> Reading {
    let program = program.rsplit('/').next().unwrap_or(program);
    let mut option_output = OptionOutput::default();
    let options = match options::read(program, args, &mut option_output) {
        Command::Run(options) => Options { strict: extras.strict, ..*options },
        Command::End { code } => {
            return Reading::End(Ending {
                out: option_output.out,
                err: option_output.err,
                code,
                ..Ending::default()
            });
        }
    };
    if !extras.native {
        option_output.out += &echo::echo(program, &options);
    }
    match setup::plan(program, &options, extras.strict, files) {
        Ok(setup::Ready { plan, .. }) if extras.native => {
            Reading::End(Ending::text(native::command(&options, &plan)))
        }
        Ok(setup::Ready { plan, complaints }) => {
            option_output.err += &complaints;
            let face = Httperf::new(program, options, option_output, &plan, extras.strict);
            let responses = if face.printer.wants_responses() { u64::MAX } else { 0 };
            let lenient = crate::ANY_VERSION;
            let needs = Needs { calls: true, responses, ends: true, lenient };
            Reading::Run(Box::new(Job::new(plan, needs, extras, Box::new(face))))
        }
        Err(ending) => Reading::End(option_output.before(ending)),
    }
}

impl OptionOutput {
    /// Returns the ending, with this output before that of the ending.
    fn before(&self, ending: Ending) -> Ending {
        Ending {
            out: format!("{}{}", self.out, ending.out),
            err: format!("{}{}", self.err, ending.err),
            ..ending
        }
    }
}

/// A run in progress.
#[derive(Debug)]
struct Httperf {
    program: String,
    options: Options,
    /// Output before the run.
    option_output: OptionOutput,
    tally: Tally,
    printer: Printer,
    strict: bool,
}

impl Httperf {
    fn new(
        program: &str,
        options: Options,
        option_output: OptionOutput,
        plan: &Plan,
        strict: bool,
    ) -> Httperf {
        Httperf {
            program: program.to_owned(),
            option_output,
            tally: Tally::new(&options),
            printer: Printer::new(&options, plan),
            strict,
            options,
        }
    }

    /// Returns the ending of the original at the first connection on which TLS fails.
    fn tls_ending(&self) -> Option<Ending> {
        let failed = self.tally.tls_failure.is_some()
            || (self.options.ssl.on && self.tally.errors.refused > 0);
        let reason = if self.tally.tls_failure.is_some() { 1 } else { 5 };
        let text = format!("failed to connect to SSL server (err=-1, reason={reason})");
        failed.then(|| Ending::error(format!("{}: {text}\n", self.program), 255))
    }

    fn notes(&self, report: &RunRecord) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.strict && self.tally.lifetimes.count > 0 {
            notes.push(
                "the median lifetime and the mean sizes are exact; httperf itself gives the middle \
                 of a millisecond and whole bytes, as --strict does"
                    .to_owned(),
            );
        }
        let response = report.response();
        if self.options.period != options::Period::Sequential && !response.is_empty() {
            notes.push(format!(
                "reply time counts from when a request was sent; from when it was due, half had \
                 their response within {}, 99 % within {}",
                units::show::duration(response.quantile(0.5)),
                units::show::duration(response.quantile(0.99)),
            ));
        }
        if self.tally.rates().is_empty() {
            let text = "no reply rate was sampled: a sample takes 5 s; Request rate is valid \
                        nevertheless";
            notes.push(text.to_owned());
        }
        notes.extend(client_note(report));
        notes
    }
}

impl Face for Httperf {
    fn set_date(&mut self, date: &Date) {
        self.tally.origin = date.at;
    }

    fn begin(&mut self) -> FaceOutput {
        FaceOutput {
            out: self.option_output.out.clone(),
            err: self.option_output.err.clone(),
            ..FaceOutput::default()
        }
    }

    fn calls(&mut self, calls: &[CallRecord]) -> FaceOutput {
        let mut output = FaceOutput::default();
        for call in calls {
            self.tally.call(call);
            self.printer.print(call, &mut output.out);
        }
        output
    }

    fn ends(&mut self, ends: &Ends) -> FaceOutput {
        self.tally.ends(ends);
        let wish =
            if self.tls_ending().is_some() { FaceDecision::Abandon } else { FaceDecision::GoOn };
        FaceOutput { wish, ..FaceOutput::default() }
    }

    fn row(&mut self, row: &stats::Second, total: &stats::Snapshot) -> FaceOutput {
        let mut output = FaceOutput::default();
        if self.options.periodic_stats {
            let seconds = row.at_s + row.span_s;
            output.out =
                format!("[{seconds:.6} s] {}\n", print::statuses(total.status.seen(), ", "));
        }
        output
    }

    fn cannot_start(&mut self, trouble: &StartTrouble) -> Ending {
        let text = match trouble {
            StartTrouble::Name { host, .. } => {
                format!(".core_addr_intern: invalid server address {host}")
            }
            StartTrouble::Bind(error) => format!(": bind: {}", error.text),
            StartTrouble::Descriptors => ": more descriptors are needed than there are".to_owned(),
            other => format!(": {}", other.text()),
        };
        self.option_output.before(Ending::error(format!("{}{text}\n", self.program), 1))
    }

    fn report(&mut self, report: &RunRecord, facts: &Facts) -> Ending {
        if let Some(ending) = self.tls_ending() {
            return ending;
        }
        self.tally.errors.descriptors += report.sessions.dropped;
        let beside = text::ClientUsage {
            concurrent: report.connections.peak,
            user_s: report.client.cpu_user_s,
            system_s: report.client.cpu_system_s,
            strict: self.strict,
        };
        let mut out = String::new();
        if self.options.verbose > 0 {
            let program = &self.program;
            let limit = facts.descriptors;
            out += &format!("{program}: maximum number of open descriptors = {limit}\n");
        }
        out += &text::report(&self.options, &self.tally, &beside);
        if self.options.periodic_stats {
            let statuses = print::statuses(report.status.iter(), " ");
            out += &format!("Periodic stats: {statuses}\n");
        }
        Ending { out, notes: self.notes(report), ..Ending::default() }
    }
}

#[cfg(test)]
mod tests;
