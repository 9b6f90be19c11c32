//! Counting, warnings and the report.

use super::options::Options;
use crate::words;
use sample::{CallRecord, FailureClass, Outcome};
use std::collections::BTreeMap;

/// Results of the accesses so far.
#[derive(Debug)]
pub(super) struct Tally {
    /// Random data of each request, in bytes.
    sent: Vec<u64>,
    /// Prefix of warnings.
    process: u32,
    transactions: u64,
    /// Sum of their times in seconds.
    busy_s: f64,
    bytes: u64,
    statuses: BTreeMap<u16, u64>,
}

impl Tally {
    pub(super) fn new(sent: Vec<u64>, process: u32) -> Tally {
        Tally { sent, process, transactions: 0, busy_s: 0.0, bytes: 0, statuses: BTreeMap::new() }
    }

    /// Counts an access for which there was no connection.
    pub(super) fn refuse(&mut self, warnings: &mut String) {
        self.transactions += 1;
        *self.statuses.entry(REFUSED.0).or_default() += 1;
        putln!(warnings, "{}: {}", self.process, REFUSED.1);
    }

    /// Counts an access. `warnings`: receives a line for each access with a status from 500 on.
    pub(super) fn take(&mut self, call: &CallRecord, warnings: &mut String) {
        if matches!(call.outcome, Outcome::Abandoned | Outcome::Dropped) {
            return;
        }
        let sample = &call.sample;
        let (status, message) = verdict(call);
        self.transactions += 1;
        self.busy_s += (sample.done - sample.issued).as_secs_f64();
        let data = self.sent.get(sample.target as usize).copied().unwrap_or(0);
        self.bytes += data + sample.body_bytes;
        *self.statuses.entry(status).or_default() += 1;
        if status >= 500 {
            putln!(warnings, "{}: {message}", self.process);
        }
    }
}

/// Interval in which the accesses were made.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunSpan {
    /// Start in seconds since 1970, UTC.
    pub(super) began_s: f64,
    pub(super) spent_s: f64,
    /// Seconds that the machine's local time is ahead of UTC.
    pub(super) utc_offset_s: i32,
}

/// Returns the status and message of an access; without a response, those that the script
/// generates.
fn verdict(call: &CallRecord) -> (u16, String) {
    let head = String::from_utf8_lossy(&call.response);
    let line = head.lines().next().unwrap_or_default();
    let mut words = line.splitn(3, ' ');
    let stated = words.nth(1).and_then(|word| word.parse::<u16>().ok());
    let message = words.next().unwrap_or_default().to_owned();
    match (call.sample.status, stated) {
        (0, Some(status)) if line.starts_with("HTTP/") && is_whole(&head) => (status, message),
        (0, _) if call.sample.sent.is_zero() => refused(),
        (0, _) if call.sample.class == Some(FailureClass::Refused) => refused(),
        (0, _) => (400, "malformed header".to_owned()),
        (status, _) => (status, message),
    }
}

/// Status and message of an access without a connection.
const REFUSED: (u16, &str) = (503, "connection refused");

fn refused() -> (u16, String) {
    (REFUSED.0, REFUSED.1.to_owned())
}

/// Returns whether the empty line at the end of a head was received.
fn is_whole(head: &str) -> bool {
    head.contains("\r\n\r\n") || head.contains("\n\n")
}

pub(super) fn text(options: &Options, tally: &Tally, span: RunSpan) -> String {
    let RunSpan { began_s, spent_s, utc_offset_s } = span;
    let date = |unix_s: f64| words::ctime(unix_s.floor() as i64, utc_offset_s);
    // time that the script's dummy run would have taken: sleeping between the accesses
    let asleep_s = options.delay.as_secs_f64() / 2.0 * f64::from(options.times - 1);
    let least_s = tally.busy_s / f64::from(options.copies);
    let elapsed_s = (spent_s - asleep_s).max(least_s).max(1e-9);
    let transactions = tally.transactions as f64;
    let mut out = format!(
        "** torture.pl version 1.05 starting at {}\n\
         Transactions:           {}\n\
         Elapsed time:           {elapsed_s:.3} sec\n\
         Bytes Transferred:      {} bytes\n\
         Response Time:          {:.2} sec\n\
         Transaction Rate:       {:.2} trans/sec\n\
         Throughput:             {:.2} bytes/sec\n\
         Concurrency:            {:.1}\n",
        date(began_s),
        tally.transactions,
        tally.bytes,
        tally.busy_s / transactions.max(1.0),
        transactions / elapsed_s,
        tally.bytes as f64 / elapsed_s,
        tally.busy_s / elapsed_s,
    );
    for (status, count) in &tally.statuses {
        putln!(out, "Status Code {status}:        {count}");
    }
    putln!(out, "** torture.pl version 1.05 ending at {}", date(began_s + spent_s));
    out
}
