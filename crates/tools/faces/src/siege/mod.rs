//! siege 4.0.7, as in Debian; with `--as-4.1.7` the later differences.

mod address;
mod cache;
mod call_report;
mod config;
mod journey;
mod lines;
mod login;
mod media;
mod native;
mod options;
mod pages;
mod parts;
mod rc;
mod request;
mod setup;
mod show;
mod tally;
mod text;
mod urls;
mod visitor;

use crate::words::moment;
use crate::{
    Date, Ending, Extras, Face, FaceDecision, FaceOutput, Facts, Files, Job, Needs, OutFile,
    Reading, StartTrouble,
};
use address::{Address, Unusable};
use call_report::CallReport;
use config::{Config, error, fatal};
use journey::{Journey, Leaders};
use lines::Measured;
use options::Options;
use record::run::RunRecord;
use sample::CallRecord;
use std::sync::Arc;
use tally::{SiegeFigures, Tally};

/// Reads siege's command line and configuration.
pub fn read(program: &str, args: &[String], extras: Extras, files: &dyn Files) -> Reading {
    let options = match options::parse(program, args, extras.strict, files) {
        Ok(options) => options,
        Err(ending) => return Reading::End(ending),
    };
    let output = options.output.clone();
    match prepared(options, files) {
        Ok((journey, plan, _)) if extras.native => {
            Reading::End(Ending::text(native::command(&journey, &plan)))
        }
        Ok((journey, plan, face)) => {
            let needs = Needs { calls: true, lenient: crate::ANY_VERSION, ..Needs::default() };
            let guides: Box<dyn workload::Guides> = Box::new(Leaders(journey));
            let guides = Some(guides);
            Reading::Run(Box::new(Job { guides, ..Job::new(plan, needs, extras, face) }))
        }
        Err(ending) => {
            let err = output + &ending.err;
            Reading::End(Ending { err, ..ending })
        }
    }
}

type PreparedSiege = (Arc<Journey>, plan::Plan, Box<Siege>);

fn prepared(options: Options, files: &dyn Files) -> Result<PreparedSiege, Ending> {
    let Options { mut config, mut output } = options;
    let mut opening = String::new();
    if config.users > config.limit {
        opening = capped(&config);
        config.users = config.limit.max(1);
    }
    let urls = urls(&config, files, &mut output)?;
    let mut list = |texts: &[String]| {
        let each = |text: &String| Address::parse(text, &config, files, &mut output);
        texts.iter().map(each).collect::<Result<Vec<Address>, Unusable>>().map_err(refused)
    };
    let (logins, gates) = (list(&config.login_urls)?, list(&config.auth_urls)?);
    let fresh_log = config.logging && files.read(&config.logfile).is_err();
    let home = files.variable("HOME").unwrap_or_default();
    let journey = Arc::new(Journey { config, urls, logins, gates });
    let plan = setup::plan(&journey, files)?;
    let face = Siege {
        journey: journey.clone(),
        output: FaceOutput { out: opening, err: output, ..FaceOutput::default() },
        tally: Tally::default(),
        unopened: String::new(),
        date: Date::default(),
        fresh_log,
        home,
    };
    Ok((journey, plan, Box::new(face)))
}

fn refused(unusable: Unusable) -> Ending {
    Ending::error(fatal(&unusable.0), 1)
}

/// Returns the URL of the command line, or those of the file.
fn urls(config: &Config, files: &dyn Files, output: &mut String) -> Result<Vec<Address>, Ending> {
    if let Some(url) = &config.url {
        let mut address = Address::parse(url, config, files, output).map_err(refused)?;
        if config.get && address.method == "GET" && config.get_by_head == Some(true) {
            address.method = "HEAD";
        }
        return Ok(vec![address]);
    }
    let text = files
        .read(&config.file)
        .map_err(|why| options::no_file(config, &config.file, &why.text))?;
    let urls =
        urls::read(&String::from_utf8_lossy(&text), config, files, output).map_err(refused)?;
    if urls.is_empty() { Err(show::help(config)) } else { Ok(urls) }
}

fn capped(config: &Config) -> String {
    let line = "=".repeat(64);
    let gap = if config.limit > 999 { " " } else { "  " };
    format!(
        "\n{line}\nWARNING: The number of users is capped at {}.{gap}To increase this\n         \
         limit, search your .siegerc file for 'limit' and change\n         its value. Make sure \
         you read the instructions there...\n{line}\n",
        config.limit
    )
}

/// A run in progress.
#[derive(Debug)]
struct Siege {
    journey: Arc<Journey>,
    /// Output before the opening.
    output: FaceOutput,
    tally: Tally,
    /// Output for users without a descriptor.
    unopened: String,
    date: Date,
    /// True if the log file does not exist yet.
    fresh_log: bool,
    home: String,
}

impl Siege {
    fn config(&self) -> &Config {
        &self.journey.config
    }

    /// Returns whether the run is aborted because of its number of failed transactions.
    fn aborted(&self) -> bool {
        u64::try_from(self.config().failures)
            .is_ok_and(|most| most > 0 && self.tally.failed >= most)
    }

    fn take(&mut self, call: &CallRecord, output: &mut FaceOutput) {
        let call_report = call.note.as_ref().and_then(|note| note.0.downcast_ref::<CallReport>());
        let Some(call_report) = call_report else { return };
        let journey = self.journey.clone();
        let config = &journey.config;
        let sample = &call.sample;
        let seconds = tally::seconds(sample, config.strict);
        self.tally.take(call_report, seconds, sample.body_bytes);
        output.out.push_str(&String::from_utf8_lossy(&call_report.out));
        output.err.push_str(&call_report.err);
        if !config.verbose || config.get || config.print || config.debug {
            return;
        }
        for line in &call_report.lines {
            let user = sample.user.unwrap_or_default();
            let done = sample.done;
            let measured = if line.cached {
                Measured { user, seconds: 0.0, bytes: 0, done }
            } else {
                let bytes = if call_report.measured { sample.body_bytes } else { 0 };
                Measured { user, seconds, bytes, done }
            };
            output.out.push_str(&lines::text(config, line, measured, &self.date));
        }
    }

    /// Returns statistics, JSON and log, as requested.
    fn results(&self, elapsed: f64) -> Ending {
        let config = self.config();
        let figures = SiegeFigures::new(&self.tally, elapsed);
        let mut ending = Ending::default();
        if !config.quiet {
            ending.err = text::statistics(config, &figures, self.aborted());
        }
        if config.json {
            ending.err.push('\n');
            ending.out = text::json(config, &figures);
        }
        if config.logging {
            if config.show_logfile {
                let Config { logfile, .. } = config;
                putln!(ending.out, "LOG FILE: {logfile}");
                putln!(ending.out, "You can disable this log file notification by editing");
                let conf = format!("{}/.siege/siege.conf", self.home);
                putln!(ending.out, "{conf} and changing 'show-logfile' to false.");
            }
            ending.files.extend(self.log(&figures));
        }
        ending
    }

    /// Returns the new lines of the log, preceded by the mark, for which siege opens the file
    /// separately: if that fails, it complains twice.
    fn log(&self, figures: &SiegeFigures) -> Vec<OutFile> {
        let path = self.config().logfile.clone();
        let end = (self.date.unix_s + figures.elapsed) as i64;
        let date = lines::day_and_time(&moment(end, self.date.utc_offset_s));
        let text = text::log(self.config(), figures, self.fresh_log, &date, self.aborted());
        let complaint = error(&format!("unable to create log file: {path}"));
        let complaint = complaint.trim_end().to_owned();
        let part = |text| OutFile {
            path: path.clone(),
            text,
            append: true,
            complaint: complaint.clone(),
            code: 0,
        };
        let mark = text::log_mark(self.config(), self.fresh_log);
        mark.into_iter().chain([text]).map(part).collect()
    }
}

impl Face for Siege {
    fn set_date(&mut self, date: &Date) {
        self.date = *date;
    }

    /// Lets users without a descriptor fail each of their transactions; returns true, because the
    /// run continues.
    fn run_without_connections(&mut self, connections: u64) -> bool {
        let pages = self.config().pages(self.journey.urls.len()).unwrap_or(1);
        let Ok(failed) = u32::try_from(connections.saturating_mul(pages)) else { return false };
        self.tally.failed += u64::from(failed);
        let line = error("descriptor table full sock.c:402: Too many open files");
        self.unopened = line.repeat(failed as usize);
        true
    }

    fn begin(&mut self) -> FaceOutput {
        let mut output = std::mem::take(&mut self.output);
        let config = self.config();
        if !config.get && !config.quiet {
            put!(output.err, "** {}", show::version(config, false));
            putln!(output.err, "** Preparing {} concurrent users for battle.", config.users);
            output.err.push_str("The server is now under siege...");
            if config.verbose {
                output.err.push('\n');
            }
        }
        output.err.push_str(&std::mem::take(&mut self.unopened));
        output
    }

    fn calls(&mut self, calls: &[CallRecord]) -> FaceOutput {
        let mut output = FaceOutput::default();
        calls.iter().for_each(|call| self.take(call, &mut output));
        if self.aborted() {
            output.wish = FaceDecision::Stop;
        }
        output
    }

    fn cannot_start(&mut self, trouble: &StartTrouble) -> Ending {
        let output = self.begin();
        let ending = match trouble {
            // in the original each user discovers this individually, page by page
            StartTrouble::Name { text, .. } => {
                let config = self.config();
                let pages = config.pages(self.journey.urls.len()).unwrap_or(u64::MAX);
                let all = pages.saturating_mul(u64::from(config.users.unsigned_abs()));
                let most = u64::try_from(config.failures).ok().filter(|most| *most > 0);
                let failed = all.min(most.unwrap_or(1_024));
                let line = call_report::unresolved(crate::words::resolver_error(text).1);
                self.tally.failed = failed;
                let mut ending = self.results(0.0);
                ending.err.insert_str(0, &line.repeat(usize::try_from(failed).unwrap_or(0)));
                ending
            }
            StartTrouble::Descriptors => {
                let text = "Too many open files; raise the limit (ulimit -n) or lower -c";
                Ending::error(fatal(text), 1)
            }
            other => Ending::error(fatal(other.text()), 1),
        };
        Ending { out: output.out + &ending.out, err: output.err + &ending.err, ..ending }
    }

    fn report(&mut self, report: &RunRecord, facts: &Facts) -> Ending {
        let config = self.config();
        let from = self.date.at;
        let elapsed =
            tally::span(from, from + units::Nanos::from_secs_f64(report.elapsed_s), config.strict);
        let lifted = (config.run_seconds() > 0 && !self.aborted()) || facts.signal != 0;
        let lifted = lifted && !config.quiet;
        let strict = config.strict;
        let mut ending = self.results(elapsed);
        if lifted {
            ending.err.insert_str(0, "\nLifting the server siege...");
        }
        if !strict {
            ending.notes.push(
                "times are exact here, where siege's clock ticks every 10 ms; --strict counts its \
                 ticks"
                    .to_owned(),
            );
        }
        ending.notes.extend(crate::client_note(report));
        ending
    }
}
