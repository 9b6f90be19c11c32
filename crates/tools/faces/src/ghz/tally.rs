//! Outcomes of the calls, and ghz's figures.

use super::options::Options;
use protocol::grpc::{Code, Status};
use sample::{CallRecord, FailureClass, Outcome};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Nanos;

/// Maximum number of calls whose details are kept, as in ghz.
const DETAILS_MAX: usize = 1_000_000;
const PERCENTAGES: [u32; 7] = [10, 25, 50, 75, 90, 95, 99];
const BUCKETS: usize = 10;

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Detail {
    pub(super) done: Nanos,
    pub(super) latency: Nanos,
    pub(super) status: Arc<str>,
    /// Empty: it was successful.
    pub(super) error: Arc<str>,
}

/// Counts and times of all calls so far, for the report of ghz.
#[derive(Debug, Default)]
pub(super) struct Tally {
    skipped: u64,
    pub(super) count: u64,
    pub(super) latencies_s: f64,
    pub(super) statuses: BTreeMap<Arc<str>, u64>,
    pub(super) errors: BTreeMap<Arc<str>, u64>,
    pub(super) details: Vec<Detail>,
    pub(super) last_done: Nanos,
    /// Sum of the times from due instants, which include the wait for a worker.
    pub(super) responses_s: f64,
    /// True if a call that reached its time limit is a server's stream that the client ends.
    pub(super) cut: bool,
}

/// Returns ghz's name of a code.
pub(super) fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}

/// Returns the name of a failed call's status, and the text of its error.
fn failure(code: &str, text: &str) -> (String, String) {
    (code.to_owned(), format!("rpc error: code = {code} desc = {text}"))
}

/// Returns the name of the status and text of the error, or empty.
fn status_and_error(call: &CallRecord, options: &Options) -> (String, String) {
    let of = failure;
    let status = call.note.as_ref().and_then(|note| note.0.downcast_ref::<Status>());
    if let Some(status) = status {
        if call.outcome == Outcome::Succeeded {
            // the face expects OK alone: the client has ended the call
            return of("Canceled", "context canceled");
        }
        return match (status.code, status.number) {
            (Code::Unknown, number) if number > 16 => {
                of(&format!("Code({number})"), &status.message)
            }
            (code, _) => of(code_name(code), &status.message),
        };
    }
    let class = call.sample.class;
    match (call.outcome, class) {
        (Outcome::Succeeded, _) => ("OK".to_owned(), String::new()),
        (Outcome::TimedOut, Some(FailureClass::ConnectTimeout)) => of(
            "Unavailable",
            "connection error: desc = \"transport: Error while dialing: i/o timeout\"",
        ),
        (Outcome::TimedOut, _) => of("DeadlineExceeded", "context deadline exceeded"),
        (Outcome::Abandoned, _) => {
            of("Unavailable", "error reading from server: use of closed network connection")
        }
        (_, Some(FailureClass::Refused)) => {
            let text = format!(
                "connection error: desc = \"transport: Error while dialing: dial tcp {}: connect: \
                 connection refused\"",
                options.host
            );
            of("Unavailable", &text)
        }
        (_, Some(FailureClass::Tls | FailureClass::Certificate)) => of(
            "Unavailable",
            "connection error: desc = \"transport: authentication handshake failed\"",
        ),
        (_, Some(class)) => of(code_name(code_of(class)), class.explain()),
        (_, None) => of("Unknown", "the call failed"),
    }
}

/// Returns the code of a call that ended without a response.
fn code_of(class: FailureClass) -> Code {
    match class {
        FailureClass::StreamReset | FailureClass::BadFraming | FailureClass::Protocol => {
            Code::Internal
        }
        FailureClass::WorkloadEnd => Code::Unknown,
        _ => Code::Unavailable,
    }
}

impl Tally {
    /// Returns the number of calls that have ended, including omitted ones.
    pub(super) fn ended(&self) -> u64 {
        self.count + self.skipped
    }

    /// Returns the name of the status and text of the error of a call, or empty.
    pub(super) fn status_and_error(
        &self,
        call: &CallRecord,
        options: &Options,
    ) -> (String, String) {
        match self.cut && call.sample.class == Some(FailureClass::ClientTimeout) {
            true => failure("Canceled", "context canceled"),
            false => status_and_error(call, options),
        }
    }

    /// Returns whether the call was started: ghz counts only started calls.
    pub(super) fn counts(call: &CallRecord) -> bool {
        let unsent = call.outcome == Outcome::Abandoned && call.sample.sent.is_zero();
        !unsent && call.outcome != Outcome::Dropped
    }

    /// Counts a call that has ended.
    pub(super) fn take(&mut self, call: &CallRecord, options: &Options) {
        let judged = |tally: &Tally| tally.status_and_error(call, options);
        self.add(call, options, judged);
    }

    /// Counts a call that failed before it was sent.
    pub(super) fn take_failed(
        &mut self,
        call: &CallRecord,
        code: &str,
        text: &str,
        options: &Options,
    ) {
        self.add(call, options, |_| failure(code, text));
    }

    fn add(
        &mut self,
        call: &CallRecord,
        options: &Options,
        judge: impl FnOnce(&Tally) -> (String, String),
    ) {
        let sample = &call.sample;
        if !Tally::counts(call) {
            return;
        }
        self.last_done = self.last_done.max(sample.done);
        if self.skipped < options.skip_first {
            self.skipped += 1;
            return;
        }
        let (status, error) = judge(self);
        let begun = if sample.issued.is_zero() { sample.intended } else { sample.issued };
        let latency = sample.done - begun;
        self.count += 1;
        self.latencies_s += latency.as_secs_f64();
        self.responses_s += (sample.done - sample.intended).as_secs_f64();
        let status = shared(&mut self.statuses, &status);
        let error = match error.is_empty() {
            true => Arc::default(),
            false => shared(&mut self.errors, &error),
        };
        if self.details.len() < DETAILS_MAX {
            self.details.push(Detail { done: sample.done, latency, status, error });
        }
    }

    /// Returns the figures; the run took `total`.
    pub(super) fn figures(&self, count_errors: bool, total: Nanos) -> GhzFigures {
        let mut figures = GhzFigures { count: self.count, total, ..GhzFigures::default() };
        if self.details.is_empty() {
            return figures;
        }
        figures.average = Nanos::from_secs_f64(self.latencies_s / self.count as f64);
        figures.rate = self.count as f64 / total.as_secs_f64().max(1e-9);
        let counted = self.details.iter().filter(|it| count_errors || it.error.is_empty());
        let mut latencies: Vec<f64> = counted.map(|it| it.latency.as_secs_f64()).collect();
        latencies.sort_by(f64::total_cmp);
        if let (Some(&fastest), Some(&slowest)) = (latencies.first(), latencies.last()) {
            figures.fastest = Nanos::from_secs_f64(fastest);
            figures.slowest = Nanos::from_secs_f64(slowest);
            figures.histogram = histogram(&latencies, fastest, slowest);
            figures.percentiles =
                PERCENTAGES.iter().map(|it| percentile(&latencies, *it)).collect();
        }
        figures
    }
}

/// Counts an item of a kind; the kind's text is stored once.
fn shared(counts: &mut BTreeMap<Arc<str>, u64>, text: &str) -> Arc<str> {
    let known = counts.get_key_value(text).map(|(known, _)| known.clone());
    let text = known.unwrap_or_else(|| Arc::from(text));
    *counts.entry(text.clone()).or_default() += 1;
    text
}

/// Figures of ghz for a run.
#[derive(Clone, Debug, Default)]
pub(super) struct GhzFigures {
    pub(super) count: u64,
    pub(super) total: Nanos,
    pub(super) average: Nanos,
    pub(super) fastest: Nanos,
    pub(super) slowest: Nanos,
    /// Calls per second.
    pub(super) rate: f64,
    pub(super) percentiles: Vec<(u32, Nanos)>,
    pub(super) histogram: Vec<HistogramBar>,
}

/// A bar of the histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HistogramBar {
    /// Upper end of the bucket in seconds.
    pub(super) mark: f64,
    pub(super) count: u64,
    /// Share of all calls, 0..1.
    pub(super) frequency: f64,
}

/// Returns the percentage and the value at index p·N/100, or the value one before if that is a
/// whole number; zeros if there is no such value.
fn percentile(sorted: &[f64], percentage: u32) -> (u32, Nanos) {
    let place = f64::from(percentage) / 100.0 * sorted.len() as f64;
    let whole = place.floor();
    let index = if place.total_cmp(&whole).is_eq() { whole - 1.0 } else { whole };
    let value = sorted.get(index.max(0.0) as usize).copied().unwrap_or_default();
    match value > 0.0 {
        true => (percentage, Nanos::from_secs_f64(value)),
        false => (0, Nanos::ZERO),
    }
}

/// Returns eleven marks at even distances from the fastest to the slowest call; a bar counts the
/// values above the previous mark.
fn histogram(sorted: &[f64], fastest: f64, slowest: f64) -> Vec<HistogramBar> {
    let width = (slowest - fastest) / BUCKETS as f64;
    let mark = |index: usize| match index {
        BUCKETS => slowest,
        index => fastest + width * index as f64,
    };
    let mut bars: Vec<HistogramBar> = (0..=BUCKETS)
        .map(|index| HistogramBar { mark: mark(index), count: 0, frequency: 0.0 })
        .collect();
    let mut at = 0;
    for latency in sorted {
        while at < BUCKETS && *latency > bars[at].mark {
            at += 1;
        }
        bars[at].count += 1;
    }
    for bar in &mut bars {
        bar.frequency = bar.count as f64 / sorted.len() as f64;
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let sorted: Vec<f64> = (1..=40).map(f64::from).collect();
        let at = |percentage| percentile(&sorted, percentage).1.as_secs_f64() as u32;
        assert_eq!([10, 25, 50, 75, 90, 95, 99].map(at), [4, 10, 20, 30, 36, 38, 40]);
        assert_eq!(percentile(&[2.0], 10), (10, Nanos::from_secs(2)));
        assert_eq!(percentile(&[0.0], 10), (0, Nanos::ZERO));
    }

    #[test]
    fn bars_count_what_is_above_the_mark_before() {
        let bars = histogram(&[1.0, 1.0, 2.0, 11.0], 1.0, 11.0);
        let counts: Vec<u64> = bars.iter().map(|bar| bar.count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(histogram(&[3.0], 3.0, 3.0)[0].count, 1);
    }
}
