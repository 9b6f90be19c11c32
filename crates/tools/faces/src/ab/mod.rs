//! ApacheBench 2.3, as shipped with httpd 2.4.

mod address;
mod banner;
pub(crate) mod ciphers;
mod html;
mod native;
mod odd;
mod options;
mod results;
mod setup;
mod tables;
mod tally;
mod text;
mod times;

use crate::{
    Date, Ending, Extras, Face, FaceDecision, FaceOutput, Facts, Files, Job, Needs, Reading,
    StartTrouble, words,
};
use options::Options;
use protocol::http1::response::Leniency;
use record::run::RunRecord;
use results::Results;
use sample::CallRecord;
use tally::{Abort, Tally};

/// SIGINT prints the results so far; the tool handles no other signal.
const SIGINT: usize = 2;

/// Reads ab's command line.
pub fn read(program: &str, args: &[String], extras: Extras, files: &dyn Files) -> Reading {
    let options = match options::parse(program, args, files) {
        Ok(options) => options,
        Err(ending) => return Reading::End(ending),
    };
    let mut ab = Ab { tally: Tally::new(&options), strict: extras.strict, options };
    match setup::plan(&ab.options, files) {
        Ok(plan) if extras.native => {
            Reading::End(Ending::text(native::command(&ab.options, &plan)))
        }
        Ok(plan) => {
            let responses = if ab.options.verbosity >= 2 { u64::MAX } else { 1 };
            let lenient = Leniency { headless: true, any_version: true, any_length: true };
            let needs = Needs { calls: true, responses, lenient, ..Needs::default() };
            Reading::Run(Box::new(Job::new(plan, needs, extras, Box::new(ab))))
        }
        Err(setup::Refusal::BeforeBanner(ending)) => Reading::End(ending),
        Err(setup::Refusal::AfterBanner(ending)) => Reading::End(ab.after_banner(ending)),
    }
}

/// A run in progress.
#[derive(Debug)]
struct Ab {
    options: Options,
    tally: Tally,
    strict: bool,
}

impl Ab {
    fn after_banner(&mut self, ending: Ending) -> Ending {
        let output = self.begin();
        Ending { out: output.out + &ending.out, err: output.err + &ending.err, ..ending }
    }
}

impl Face for Ab {
    fn set_date(&mut self, date: &Date) {
        let limit = self.options.time_limit;
        self.tally.limit = (limit != 0).then(|| date.at + setup::seconds(limit));
    }

    fn begin(&mut self) -> FaceOutput {
        let err = self.options.complaint.clone();
        FaceOutput { out: text::opening(&self.options), err, ..FaceOutput::default() }
    }

    fn calls(&mut self, calls: &[CallRecord]) -> FaceOutput {
        let mut output = FaceOutput::default();
        for call in calls {
            self.tally.take(&self.options, call, &mut output);
        }
        if self.tally.abort.is_some() || self.tally.over.is_some() {
            output.wish = FaceDecision::Abandon;
        }
        output
    }

    fn cannot_start(&mut self, trouble: &StartTrouble) -> Ending {
        let ending = match trouble {
            StartTrouble::Name { host, text } => {
                // 670000: where the Apache runtime's numbers for the resolver's errors begin
                let (number, sentence) = words::resolver_error(text);
                let line = format!(
                    "apr_sockaddr_info_get() for {host}: {sentence} ({})\n",
                    670_000 + number
                );
                Ending::error(line, words::exit_code(670_000 + number))
            }
            StartTrouble::Bind(error) => Ending::error(
                format!("bind: {} ({})\n", error.text, error.number),
                words::exit_code(error.number),
            ),
            StartTrouble::Descriptors => Ending::error("socket: Too many open files (24)\n", 24),
            StartTrouble::Tls(text) => return Ending::error(format!("{text}\n"), 1),
            other => Ending::error(format!("{}\n", other.text()), 1),
        };
        self.after_banner(ending)
    }

    fn report(&mut self, report: &RunRecord, facts: &Facts) -> Ending {
        if let Some(Abort { text, code }) = self.tally.abort.take() {
            let out = match self.tally.entries.len() {
                0 => String::new(),
                done => format!("Total of {done} requests completed\n"),
            };
            return Ending { out, err: text, err_first: true, code, ..Ending::default() };
        }
        let interrupted = facts.signal == SIGINT;
        let results = Results::new(&self.options, &self.tally, report, facts, self.strict);
        let mut ending =
            Ending { err_first: true, code: u8::from(interrupted), ..Ending::default() };
        if interrupted {
            // the handler goes straight to the results
        } else if self.tally.heartbeat > 0 {
            ending.err = format!("Finished {} requests\n", results.done());
        } else {
            ending.out.push_str("..done\n");
        }
        if self.options.html && !interrupted {
            ending.out.push_str(&html::results(&self.options, &results));
        } else {
            ending.out.push_str(&text::results(&self.options, &results));
            ending.files = tables::files(&self.options, &results);
        }
        ending.notes = results.notes(report);
        ending
    }
}
