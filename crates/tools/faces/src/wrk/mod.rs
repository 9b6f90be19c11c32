//! wrk 4, and wrk2 if a rate is given.

mod getopt;
mod native;
mod options;
mod rates;
mod setup;
mod spectrum;
mod spread;
mod text;
mod units;

pub use spread::Spread;
pub use text::{Errors, WrkFigures};

use crate::{
    Ending, Extras, Face, FaceOutput, Facts, Files, Interval, Job, Needs, Reading, ScriptJob,
    StartTrouble,
};
use ::units::Nanos;
use options::{Address, Options};
use rates::Rates;
use record::run::{RunHist, RunRecord};
use sample::{Ends, FailureClass};
use stats::{Hist, Measurement, Snapshot};

/// Reads the command line of wrk, or of wrk2 when it was started under that name.
pub fn read(
    program: &str,
    second: bool,
    args: &[String],
    extras: Extras,
    files: &dyn Files,
) -> Reading {
    let (options, output) = match options::parse(program, args, second) {
        Ok(parsed) => parsed,
        Err(refusal) => {
            let options::Refusal { out, err } = refusal;
            return Reading::End(Ending { out, err, code: 1, ..Ending::default() });
        }
    };
    if extras.native {
        return Reading::End(native::command(&options));
    }
    let Some(plan) = setup::plan(&options, extras.strict) else {
        let text = format!("invalid URL: {}\n", options.args[0]);
        return Reading::End(Ending::error(text, 1));
    };
    if options.url.port.as_deref().is_some_and(|port| port.parse() == Ok(0u16)) {
        // no server can listen at the address that wrk checks before it starts
        let Address { host, .. } = &options.url;
        let text = format!("unable to connect to {host}:0 Connection refused\n");
        return Reading::End(Ending::error(text, 1));
    }
    let script = script_job(&options, files);
    let face = Wrk::new(options, output, extras.strict);
    let ends = face.has_handshakes();
    let needs = Needs { lenient: crate::ANY_VERSION, ends, ..Needs::default() };
    let job = Job::new(plan, needs, extras, Box::new(face));
    Reading::Run(Box::new(Job { script: Some(script), ..job }))
}

fn script_job(options: &Options, files: &dyn Files) -> Box<ScriptJob> {
    let text = options.script.as_ref().map(|path| {
        let why = |error: crate::SystemError| format!("cannot open {path}: {}", error.text);
        (path.clone(), files.read(path).map_err(why))
    });
    let address = &options.url;
    Box::new(ScriptJob {
        text,
        scheme: address.scheme.clone(),
        host: address.host.clone(),
        port: address.port.clone(),
        path: address.path.clone(),
        headers: options.fields(),
        args: options.args.clone(),
        ..ScriptJob::default()
    })
}

/// A run in progress.
#[derive(Debug)]
struct Wrk {
    options: Options,
    /// Output of `-v`.
    output: String,
    strict: bool,
    rates: Rates,
    second: Option<Second>,
    /// Responses inside the measured window with a status above 399.
    bad: u64,
    /// Number of connections that were not opened because no descriptor was free.
    not_opened: u64,
    /// Connections that broke during their TLS handshake.
    broken_handshakes: u64,
    figures: WrkFigures,
}

/// wrk2's additional behavior: it discards its measurements until it has found its interval.
#[derive(Debug)]
struct Second {
    calibrated_at: Nanos,
    /// Earlier times of each thread; `None` once reported.
    before: Vec<Option<Hist>>,
    after: Snapshot,
    started: Option<Nanos>,
}

/// wrk2 calibrates for ten seconds and 5 ms for each of a thread's connections.
const CALIBRATION: Nanos = Nanos::from_secs(10);
const CALIBRATION_EACH: Nanos = Nanos::from_millis(5);

impl Second {
    fn new(options: &Options) -> Second {
        let each = options.connections / options.threads;
        Second {
            calibrated_at: CALIBRATION + Nanos(CALIBRATION_EACH.0.saturating_mul(each)),
            before: Vec::new(),
            after: Snapshot::default(),
            started: None,
        }
    }

    /// Returns whether the run is long enough to be calibrated at all.
    fn calibrates(&self, options: &Options) -> bool {
        Nanos::from_secs(options.duration_s) > self.calibrated_at
    }
}

impl Wrk {
    fn new(options: Options, output: String, strict: bool) -> Wrk {
        let second = options.rate.is_some().then(|| Second::new(&options));
        Wrk {
            options,
            output,
            strict,
            rates: Rates::new(),
            second,
            bad: 0,
            not_opened: 0,
            broken_handshakes: 0,
            figures: WrkFigures::default(),
        }
    }

    fn has_handshakes(&self) -> bool {
        self.options.url.scheme.eq_ignore_ascii_case("https")
    }

    /// Processes an interval of a thread for the calibration, as wrk2 does; returns wrk2's message
    /// about the result, if there is one.
    fn calibrate(&mut self, interval: &Interval<'_>) -> Option<String> {
        let second = self.second.as_mut()?;
        let start = *second.started.get_or_insert(interval.start);
        if !second.calibrates(&self.options) {
            return None;
        }
        let row = interval.worker as usize;
        if second.before.len() <= row {
            second.before.resize_with(row + 1, || Some(Hist::new()));
        }
        if interval.start < start + second.calibrated_at {
            if let Some(before) = &mut second.before[row] {
                before.merge(&interval.snapshot.response());
            }
            return None;
        }
        second.after.merge(interval.snapshot);
        let before = second.before[row].take()?;
        let wanted = Nanos(before.quantile(0.9).0 * 2).max(setup::INTERVAL);
        let steps = wanted.0.div_ceil(setup::INTERVAL.0);
        let span = setup::INTERVAL * steps;
        // half an interval less: an interval may be a little short
        self.rates.restart(interval.worker, span - Nanos(setup::INTERVAL.0 / 2));
        Some(format!(
            "  Thread calibration: mean lat.: {:.3}ms, rate sampling interval: {}ms\n",
            before.mean().as_secs_f64() * 1e3,
            span.0 / 1_000_000,
        ))
    }

    /// Returns the response and service times for the report.
    fn times(&self, report: &RunRecord) -> (Hist, Hist) {
        match &self.second {
            Some(second) if second.calibrates(&self.options) => {
                (second.after.response(), second.after.service.clone())
            }
            _ => (report.response(), report.hist(RunHist::Service)),
        }
    }

    fn collect(&mut self, report: &RunRecord) {
        let mut latency = spread_of(&self.times(report).0);
        let limit = self.options.timeout_s.saturating_mul(1_000_000);
        let failures = report.failures.iter().map(|failure| (failure.class, failure.count));
        let errors = errors(report.outcomes.timed_out, failures, self.has_handshakes());
        let mut errors = Errors { status: self.bad, ..errors };
        let early = self.broken_handshakes.min(errors.read);
        errors.read -= early;
        errors.connect += self.not_opened + early;
        let patient = self.strict || self.options.rate.is_some();
        if patient {
            let late = latency.values.iter().filter(|(value, _)| *value > limit);
            errors.timeout = late.map(|(_, count)| count).sum();
        }
        if self.strict && self.options.rate.is_none() {
            latency.values.retain(|(value, _)| *value <= limit);
        }
        let measured = report.measured.as_ref();
        self.figures = WrkFigures {
            requests: measured.map_or(0, |measured| measured.responses_in_window),
            bytes: measured.map_or(0, |measured| measured.bytes_in_window),
            runtime_us: Nanos::from_secs_f64(report.duration_s).0 / 1000,
            errors,
            latency,
            rates: self.rates.spread(),
        };
    }

    /// Returns the time between two calls of a connection, if they were evenly spaced: the basis of
    /// wrk's invented values. In microseconds; 0 if a connection made no call.
    fn gap(&self) -> u64 {
        let each = self.figures.requests / self.options.connections.max(1);
        self.figures.runtime_us.checked_div(each).unwrap_or(0)
    }

    /// Applies wrk's own computation of the results if `strict`; otherwise returns a note that it
    /// was not applied, if it makes a difference.
    fn correct(&mut self) -> Option<String> {
        let interval = self.gap();
        let mut invented = self.figures.latency.clone();
        invented.add_missing_values(interval);
        let more = invented.count() - self.figures.latency.count();
        if self.strict {
            self.figures.latency = invented;
            return None;
        }
        (more > 0).then(|| {
            format!(
                "latencies are those measured; wrk would add {more} invented values for calls that \
                 it considers omitted (--strict does)"
            )
        })
    }

    fn notes(&self, report: &RunRecord) -> Vec<String> {
        let options = &self.options;
        let mut notes: Vec<String> = crate::client_note(report).into_iter().collect();
        let over = options.connections - options.connections_used();
        if over > 0 {
            let each = options.connections / options.threads;
            notes.push(format!(
                "{over} of the {} connections were not opened: each of {} threads has {each}",
                options.connections, options.threads
            ));
        }
        let left_out = options.headers.len() - options.fields().len();
        if left_out > 0 {
            notes.push(format!(
                "{left_out} of the -H headers were not sent: wrk takes \"Name: value\", with a \
                 colon and a blank"
            ));
        }
        let in_groups = report
            .measured
            .as_ref()
            .is_some_and(|measured| measured.responses_in_window > measured.in_window);
        if options.rate.is_some() && !options.batch && in_groups {
            notes.push(
                "several requests go out together: they have one latency together, as with -B"
                    .to_owned(),
            );
        }
        let unanswered = report.outcomes.abandoned;
        if options.rate.is_some() && unanswered > 0 {
            notes.push(format!(
                "{unanswered} requests that were due had no response by the end; their times are in \
                 no figure"
            ));
        }
        notes
    }
}

/// Returns the arguments of a script's `done` for a native run: response times, and the calls per
/// second of each whole row of the series.
pub fn figures_of(measurement: &Measurement) -> WrkFigures {
    let total = &measurement.total;
    let measured = measurement.series.iter().filter(|row| !row.warm_up && row.span_s > 0.0);
    let rate = |row: &stats::Second| {
        let calls = row.counts.succeeded + row.counts.failed + row.counts.timed_out;
        ((calls as f64 / row.span_s).round() as u64, 1)
    };
    let failures = total.failures.iter().map(|(class, count)| (*class, *count));
    let errors = errors(total.counts.timed_out, failures, true);
    WrkFigures {
        requests: total.answers_in_window,
        bytes: total.bytes_in_window,
        runtime_us: measurement.window.0 / 1000,
        errors: Errors { status: bad_responses(total), ..errors },
        latency: spread_of(&total.response()),
        rates: Spread::new(measured.map(rate).collect()),
    }
}

/// Summarizes times in microseconds.
fn spread_of(hist: &Hist) -> Spread {
    Spread::new(hist.buckets().into_iter().map(|(time, count)| (time.0 / 1000, count)).collect())
}

/// Counts failures in wrk's columns. `handshakes`: a refused connection fails before it counts as
/// open; without TLS, wrk considers it open until its first write.
fn errors(
    timeout: u64,
    failures: impl Iterator<Item = (FailureClass, u64)>,
    handshakes: bool,
) -> Errors {
    let mut errors = Errors { timeout, ..Errors::default() };
    for (class, count) in failures {
        match class {
            FailureClass::ClientTimeout
            | FailureClass::ConnectTimeout
            | FailureClass::FirstByteTimeout
            | FailureClass::ProgressTimeout
            | FailureClass::KeepaliveTimeout
            | FailureClass::QueueTimeout
            | FailureClass::Status => {}
            FailureClass::Refused if !handshakes => errors.write += count,
            FailureClass::Refused
            | FailureClass::Unreachable
            | FailureClass::SocketTimeout
            | FailureClass::FdUnavailable
            | FailureClass::AddressUnavailable
            | FailureClass::FileTableFull
            | FailureClass::Tls
            | FailureClass::Certificate
            | FailureClass::Proxy
            | FailureClass::ConnectionLimit => errors.connect += count,
            _ => errors.read += count,
        }
    }
    errors
}

/// Returns the number of responses with a status above 399 inside the measured window; later ones
/// are in the statuses, but in none of wrk's figures.
fn bad_responses(snapshot: &Snapshot) -> u64 {
    let bad = snapshot.status.seen().filter(|(status, _)| *status > 399);
    bad.map(|(_, count)| count).sum::<u64>().min(snapshot.answers_in_window)
}

impl Face for Wrk {
    fn begin(&mut self) -> FaceOutput {
        let options = &self.options;
        let header = text::header(
            &options.args[0],
            options.duration_s,
            options.threads,
            options.connections,
        );
        FaceOutput { out: std::mem::take(&mut self.output) + &header, ..FaceOutput::default() }
    }

    fn interval(&mut self, interval: &Interval<'_>) -> FaceOutput {
        let output = self.calibrate(interval);
        let span = interval.end - interval.start;
        self.bad += bad_responses(interval.snapshot);
        self.rates.add(interval.worker, interval.snapshot.answers_in_window, span);
        FaceOutput { out: output.unwrap_or_default(), ..FaceOutput::default() }
    }

    /// Handles ended connections: for wrk, any end of a handshake is a failed connect.
    fn ends(&mut self, ends: &Ends) -> FaceOutput {
        let broken = ends.connections.iter().filter(|record| record.established.is_zero());
        let classes = broken.filter_map(|record| Some((record.class?, 1)));
        self.broken_handshakes += errors(0, classes, true).read;
        FaceOutput::default()
    }

    /// Returns true: wrk opens as many connections as it can, counts the others as connect errors
    /// and does not retry them.
    fn run_without_connections(&mut self, connections: u64) -> bool {
        self.not_opened = connections;
        true
    }

    fn cannot_start(&mut self, trouble: &StartTrouble) -> Ending {
        let err = match trouble {
            StartTrouble::Name { host, text } => {
                let url = &self.options.url;
                let service = url.port.as_deref().unwrap_or(&url.scheme);
                let sentence = crate::words::resolver_error(text).1;
                format!("unable to resolve {host}:{service} {sentence}\n")
            }
            StartTrouble::Lookup(text) => format!("unable to resolve {text}\n"),
            StartTrouble::Connect(text) => format!("unable to connect to {text}\n"),
            StartTrouble::Script(text) => {
                format!("PANIC: unprotected error in call to Lua API ({text})\n")
            }
            StartTrouble::Request(text) | StartTrouble::Tls(text) | StartTrouble::Other(text) => {
                format!("{text}\n")
            }
            StartTrouble::Bind(error) => format!("unable to bind: {}\n", error.text),
            StartTrouble::Descriptors => {
                format!(
                    "unable to open {} connections: Too many open files\n",
                    self.options.connections
                )
            }
        };
        Ending { out: std::mem::take(&mut self.output), err, code: 1, ..Ending::default() }
    }

    fn report(&mut self, report: &RunRecord, _facts: &Facts) -> Ending {
        self.collect(report);
        let mut notes = self.notes(report);
        if self.options.rate.is_none() {
            notes.extend(self.correct());
        }
        let figures = &self.figures;
        let mut out = text::thread_stats(&figures.latency, &figures.rates);
        if self.options.latency && self.options.rate.is_none() {
            out += &text::distribution(&figures.latency);
        } else if self.options.latency {
            out += &self.spectra(report);
        }
        out += &text::sums(figures);
        Ending { out, notes, ..Ending::default() }
    }

    fn figures(&self) -> Option<&WrkFigures> {
        Some(&self.figures)
    }
}

impl Wrk {
    /// Renders wrk2's blocks.
    fn spectra(&self, report: &RunRecord) -> String {
        const RULE: &str = "----------------------------------------------------------\n";
        let mut out = spectrum::block(&self.figures.latency, "Recorded Latency") + RULE;
        if self.options.uncorrected {
            let title = "Uncorrected Latency (measured without taking delayed starts into account)";
            let service = spread_of(&self.times(report).1);
            out += "\n";
            out += &spectrum::block(&service, title);
            out += RULE;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::ConnectionRecord;

    #[test]
    fn a_handshake_that_breaks_is_a_failed_connect() {
        let args = ["https://h/".to_owned()];
        let (options, output) = options::parse("wrk", &args, false).unwrap();
        let mut face = Wrk::new(options, output, false);
        let ended = |established, class| ConnectionRecord {
            established,
            class,
            ..ConnectionRecord::default()
        };
        let connections = vec![
            ended(Nanos::ZERO, Some(FailureClass::Reset)),
            ended(Nanos::ZERO, Some(FailureClass::Tls)),
            ended(Nanos(5), Some(FailureClass::Reset)),
            ended(Nanos::ZERO, None),
        ];
        face.ends(&Ends { connections, ..Ends::default() });
        // the one that failed as TLS counts under connect by its class
        assert_eq!(face.broken_handshakes, 1);
    }
}
