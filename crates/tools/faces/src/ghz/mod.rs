//! ghz 0.120: gRPC calls.

mod config;
mod debug;
mod functions;
mod go;
mod kingpin;
mod messages;
mod native;
mod options;
mod report;
mod schedule;
mod setup;
mod tally;
mod template;
#[cfg(test)]
mod tests;

use crate::{
    Date, Ending, Extras, Face, FaceOutput, Facts, Files, Job, Needs, OutFile, Reading, RequestLog,
    StartTrouble,
};
use debug::DebugLog;
use messages::{GhzMakers, GivenData, Recipe, RequestFault};
use options::{DurationStop, Options};
use plan::{Load, Plan};
use record::run::RunRecord;
use report::{EndReason, Report};
use sample::{CallRecord, FailureClass, Outcome};
use std::collections::BTreeMap;
use std::sync::Arc;
use tally::Tally;
use units::Nanos;
use workload::RequestMakers;

/// ghz's total where a time bounds the run.
const TOTAL_MAX: u64 = 2_147_483_647;

/// Reads ghz's command line.
pub fn read(args: &[String], extras: Extras, files: &dyn Files) -> Reading {
    let Prepared { plan, makers, face } = match prepare(args, extras, files) {
        Ok(prepared) => prepared,
        Err(ending) => return Reading::End(ending),
    };
    let needs = Needs { calls: true, ..Needs::default() };
    let log = face.debug.is_some().then(|| RequestLog {
        path: face.options.debug.clone(),
        complaint: format!("ghz: error: open {}: cannot be written\n", face.options.debug),
        code: 1,
        fresh: false,
    });
    let job = Job { makers, log, ..Job::new(plan, needs, extras, Box::new(face)) };
    Reading::Run(Box::new(job))
}

/// A run that is ready to begin.
#[derive(Debug)]
struct Prepared {
    plan: Plan,
    makers: Option<Box<dyn RequestMakers>>,
    face: Ghz,
}

/// Returns the ending for an error of the program, with exit code 1.
fn failed(text: impl std::fmt::Display) -> Ending {
    Ending::error(format!("{text}\n"), 1)
}

fn prepare(args: &[String], extras: Extras, files: &dyn Files) -> Result<Prepared, Ending> {
    let options = options::parse(args, files)?;
    let given = check(&options, files).map_err(failed)?;
    let date = files.now();
    let prepared = || -> Result<_, String> {
        let (service, name) = messages::split_call(&options.call)?;
        let path = format!("/{service}/{name}");
        let base = setup::base(&options, setup::url(&options, &path)?, files)?;
        let method = messages::method(&options, files, (service, name), || {
            let mut asked = base.clone();
            let texts = options.reflect_metadata.iter();
            let fields = texts.map(|(name, text)| {
                (name.to_ascii_lowercase(), text.as_str().unwrap_or_default().to_owned())
            });
            asked.request.headers.extend(fields);
            files.describe(&asked)
        })?;
        let streams = (method.is_client_streaming(), method.is_server_streaming());
        let logged = (!options.debug.is_empty()).then(|| method.clone());
        let content = messages::content(&given, method, &options, date)?;
        let debug = logged.map(|method| DebugLog::new(method, &content));
        let mut plan = setup::plan(&options, base, &content, extras.strict)?;
        let cut = setup::set_streams(&options, streams, &mut plan);
        Ok((path, content, plan, (cut, debug)))
    };
    let (path, content, plan, (cut, debug)) = prepared().map_err(failed)?;
    if extras.native {
        return Err(native::command(&options, &given, &content, &path, &plan));
    }
    let mut face = Ghz::new(options, given, &plan, extras.strict);
    face.recipe.clone_from(&content.recipe);
    face.notes.extend(content.notes);
    face.tally.cut = cut;
    face.debug = debug;
    let makers =
        content.recipe.map(|recipe| -> Box<dyn RequestMakers> { Box::new(GhzMakers(recipe)) });
    Ok(Prepared { plan, makers, face })
}

/// Checks everything that needs no server, in ghz's order; reads data and metadata.
fn check(options: &Options, files: &dyn Files) -> Result<GivenData, String> {
    if !options.proto.is_empty() && !options.proto.ends_with(".proto") {
        return Err("proto: must have .proto extension".to_owned());
    }
    let given = GivenData::read(options, files)?;
    if options.connections > options.concurrency {
        return Err("number of connections cannot be greater than concurrency".to_owned());
    }
    if options.call.is_empty() {
        return Err("call required".to_owned());
    }
    if options.host.is_empty() {
        return Err("host required".to_owned());
    }
    if given.is_binary() && options.stream_dynamic_messages {
        return Err("cannot use dynamic messages with binary data".to_owned());
    }
    schedule::check(options)?;
    let timed = !options.time_limit().is_zero();
    if options.skip_first > options.total && !timed {
        return Err("you cannot skip more requests than those run".to_owned());
    }
    if options.total == 0 && !timed {
        return Err("--total 0 has no end; give --total or --duration".to_owned());
    }
    Ok(given)
}

/// Run in progress.
#[derive(Debug)]
struct Ghz {
    options: Options,
    given: GivenData,
    tally: Tally,
    date: Date,
    total: u64,
    strict: bool,
    is_open: bool,
    /// Makes the requests, if they differ from call to call.
    recipe: Option<Arc<Recipe>>,
    /// Calls without a request because of invalid data, by error.
    faults: BTreeMap<String, u64>,
    /// Writer of the file of `--debug`.
    debug: Option<DebugLog>,
    /// Lines for this file that are not written yet.
    logged: String,
    /// Ended calls that are not counted yet, because calls of other threads may have ended earlier.
    held: Vec<CallRecord>,
    notes: Vec<String>,
}

/// Time for which an ended call is held. Each thread passes its calls once a second, and ghz's
/// output depends on the order in which the calls of all threads ended.
const HELD_FOR: Nanos = Nanos::from_secs(3);

/// Maximum number of different data errors that are listed.
const FAULTS_MAX: usize = 10;

impl Ghz {
    fn new(options: Options, given: GivenData, plan: &Plan, strict: bool) -> Ghz {
        let mut notes = Vec::new();
        let used = setup::streams(&options) * options.connections.max(1);
        let constant = !options.workers.changes();
        if used != options.concurrency && !options.is_async && constant {
            notes.push(format!(
                "--concurrency {} on {} connections: {used} calls at once, the same number on each",
                options.concurrency, options.connections
            ));
        }
        if !constant {
            notes.push("--concurrency-schedule: each worker has its own connection".to_owned());
        }
        if !options.keepalive.is_zero() {
            notes
                .push("--keepalive: a connection under load has no idle time for pings".to_owned());
        }
        if !options.max_duration.is_zero() && !strict {
            notes.push(
                "--max-duration: --total also applies; ghz ignores it with this option".to_owned(),
            );
        }
        Ghz {
            total: plan.stop.requests.unwrap_or(TOTAL_MAX),
            is_open: matches!(plan.load, Load::Open { .. }),
            tally: Tally::default(),
            date: Date::default(),
            options,
            given,
            strict,
            recipe: None,
            faults: BTreeMap::new(),
            debug: None,
            held: Vec::new(),
            logged: String::new(),
            notes,
        }
    }

    /// Returns why a call was not sent, or `None` if it was, or its data are not the reason.
    fn fault(&self, call: &CallRecord) -> Option<RequestFault> {
        let sample = &call.sample;
        if sample.class != Some(FailureClass::WorkloadEnd) {
            return None;
        }
        self.recipe.as_ref()?.request(sample.index, sample.intended).err()
    }

    /// Counts a call, or the error in its data.
    fn take(&mut self, call: &CallRecord) {
        if let Some(debug) = &self.debug
            && Tally::counts(call)
        {
            let (status, error) = self.tally.status_and_error(call, &self.options);
            self.logged += &debug.call((call, &status, &error), &self.options, &self.date);
        }
        match self.fault(call) {
            Some(RequestFault::Data(text)) => {
                let listed = self.faults.len() < FAULTS_MAX || self.faults.contains_key(&text);
                let text = if listed { text } else { "other faults of the data".to_owned() };
                *self.faults.entry(text).or_default() += 1;
            }
            Some(long @ RequestFault::TooLong { .. }) => {
                self.tally.take_failed(call, "ResourceExhausted", &long.text(), &self.options);
            }
            None => self.tally.take(call, &self.options),
        }
    }

    /// Returns ghz's error after a run in which data did not fit; `None` without an error.
    fn data_error(&self) -> Option<Ending> {
        let text = |(text, count): (&String, &u64)| match count {
            1 => text.clone(),
            count => format!("{text} ({count} calls)"),
        };
        let texts: Vec<String> = self.faults.iter().map(text).collect();
        (!texts.is_empty()).then(|| failed(texts.join("; ")))
    }

    /// Returns the report. `otherwise`: duration of the run if no call has ended.
    fn text(&self, otherwise: Nanos, signal: usize) -> String {
        self.report_of(otherwise, signal).text()
    }

    fn report_of(&self, otherwise: Nanos, signal: usize) -> Report<'_> {
        let span = Nanos(self.tally.last_done.0.saturating_sub(self.date.at.0));
        let total = if span.is_zero() { otherwise } else { span };
        let timed = !self.options.time_limit().is_zero();
        let end = match (signal, timed && self.tally.ended() < self.total) {
            (0, false) => EndReason::Normal,
            (0, true) => EndReason::Timeout,
            _ => EndReason::Cancel,
        };
        Report {
            options: &self.options,
            data: self.given.shown(),
            metadata: self.given.shown_metadata(),
            is_binary: self.given.is_binary(),
            total: self.total,
            tally: &self.tally,
            figures: self.tally.figures(self.options.count_errors, total),
            end,
            date: self.date,
            ended: self.date.at + total,
        }
    }

    /// Counts the held calls that ended by `end`, in the order in which they ended.
    fn take_until(&mut self, end: Nanos) {
        let mut calls: Vec<CallRecord> =
            self.held.extract_if(.., |call| call.sample.done <= end).collect();
        calls.sort_by_key(|call| call.sample.done);
        let ignores = self.options.duration_stop == DurationStop::Ignore;
        calls.retain(|call| !(ignores && call.outcome == Outcome::Abandoned));
        calls.iter().for_each(|call| self.take(call));
    }

    /// Writes the first line for the file of `--debug`, unless it is written.
    fn begin_log(&mut self) {
        if !self.debug.as_ref().is_some_and(DebugLog::is_new) {
            return;
        }
        let config = self.report_of(Nanos::ZERO, 0).options_text();
        let begun = self.debug.as_mut().map(|debug| debug.start(&config, &self.date));
        self.logged += &begun.unwrap_or_default();
    }

    /// Adds the last lines for the file of `--debug`.
    fn end_log(&mut self, ending: &mut Ending) {
        self.begin_log();
        if self.debug.is_none() {
            return;
        }
        let at = self.tally.last_done.max(self.date.at);
        self.logged += &DebugLog::end(at, &self.options.output, &self.date);
        let path = self.options.debug.clone();
        let complaint = format!("open {path}");
        let text = std::mem::take(&mut self.logged);
        ending.files.push(OutFile { path, text, append: true, complaint, code: 1 });
    }
}

impl Face for Ghz {
    fn set_date(&mut self, date: &Date) {
        self.date = *date;
    }

    fn calls(&mut self, calls: &[CallRecord]) -> FaceOutput {
        self.begin_log();
        self.held.extend_from_slice(calls);
        let newest = calls.iter().map(|call| call.sample.done).max().unwrap_or_default();
        self.take_until(newest - HELD_FOR);
        FaceOutput { log: std::mem::take(&mut self.logged), ..FaceOutput::default() }
    }

    fn cannot_start(&mut self, trouble: &StartTrouble) -> Ending {
        let text = match trouble {
            StartTrouble::Name { text, .. } => format!(
                "rpc error: code = Unavailable desc = name resolver error: {}: {text}",
                self.options.host
            ),
            StartTrouble::Descriptors => format!(
                "--connections {}: too few file descriptors; raise the limit (ulimit -n)",
                self.options.connections
            ),
            other => other.text().to_owned(),
        };
        failed(text)
    }

    fn report(&mut self, report: &RunRecord, facts: &Facts) -> Ending {
        self.take_until(Nanos::NEVER);
        if let Some(ending) = self.data_error() {
            return ending;
        }
        let mut notes: Vec<String> = crate::client_note(report).into_iter().collect();
        notes.append(&mut self.notes);
        if self.is_open && self.tally.count > 0 && !self.strict {
            let mean = |sum: f64| sum / self.tally.count as f64 * 1e3;
            notes.push(format!(
                "mean from the due instant: {:.2} ms; from the start, as in ghz: {:.2} ms",
                mean(self.tally.responses_s),
                mean(self.tally.latencies_s)
            ));
        }
        let text = self.text(Nanos::from_secs_f64(report.elapsed_s), facts.signal);
        let mut ending = Ending { notes, ..Ending::default() };
        if self.options.output.is_empty() {
            ending.out = text;
        } else {
            let path = self.options.output.clone();
            let complaint = format!("open {path}");
            ending.files.push(OutFile { path, text, append: false, complaint, code: 1 });
        }
        self.end_log(&mut ending);
        ending
    }
}
