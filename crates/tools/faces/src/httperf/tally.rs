//! The original's counts, from the records of calls, connections and sessions.

use super::options::Options;
use sample::{CallRecord, ConnectionRecord, Ends, FailureClass, Sample, SessionRecord};
use stats::Hist;
use std::collections::BTreeMap;
use units::Nanos;

/// Interval of rate samples, in seconds.
const RATE_INTERVAL_S: f64 = 5.0;
/// Histogram of connection lifetimes in the original: bins of a millisecond, up to a hundred
/// seconds.
const BIN: u64 = 1_000_000;
const BINS: u64 = 100_000;

/// Sum, extremes and scatter of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    pub(super) count: u64,
    pub(super) sum: f64,
    squares: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Moments {
    pub(super) fn add(&mut self, value: f64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    /// Returns the mean; 0 without values.
    pub(super) fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// Returns the standard deviation of a sample: the sum of squared deviations over n − 1; 0
    /// below two values.
    pub(super) fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = self.count as f64;
        let spread = self.squares - self.sum * self.sum / count;
        (spread.max(0.0) / (count - 1.0)).sqrt()
    }
}

/// The eight kinds of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Errors {
    pub(super) client_timeout: u64,
    pub(super) socket_timeout: u64,
    pub(super) refused: u64,
    pub(super) reset: u64,
    pub(super) descriptors: u64,
    pub(super) addresses: u64,
    pub(super) file_table: u64,
    pub(super) other: u64,
}

impl Errors {
    pub(super) fn total(&self) -> u64 {
        self.client_timeout
            + self.socket_timeout
            + self.refused
            + self.reset
            + self.descriptors
            + self.addresses
            + self.file_table
            + self.other
    }

    fn add(&mut self, class: FailureClass) {
        use FailureClass as Class;
        let slot = match class {
            Class::ClientTimeout
            | Class::ConnectTimeout
            | Class::FirstByteTimeout
            | Class::ProgressTimeout
            | Class::KeepaliveTimeout
            | Class::QueueTimeout => &mut self.client_timeout,
            Class::SocketTimeout => &mut self.socket_timeout,
            Class::Refused => &mut self.refused,
            // the end of a stream that still owes a response is a reset to the original
            Class::Reset | Class::ClosedEarly | Class::Truncated => &mut self.reset,
            Class::FdUnavailable => &mut self.descriptors,
            Class::AddressUnavailable => &mut self.addresses,
            Class::FileTableFull => &mut self.file_table,
            _ => &mut self.other,
        };
        *slot += 1;
    }
}

/// Counts, sums and histograms of the final report of httperf.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Start of the clock: the first due instant. It is known before the calls, which end in
    /// another order than they are due.
    pub(super) origin: Nanos,
    /// The end of the last event.
    pub(super) end: Nanos,
    pub(super) requests: u64,
    pub(super) request_bytes: u64,
    /// Number of responses that began, and the sum of the times to their first bytes in seconds.
    pub(super) responses: Moments,
    pub(super) transfer_s: f64,
    /// Whole responses by the first digit of their status; 1 to 5 are replies.
    pub(super) by_class: [u64; 6],
    pub(super) head_bytes: u64,
    pub(super) body_bytes: u64,
    pub(super) trailer_bytes: u64,
    pub(super) connections: u64,
    pub(super) connects: Moments,
    /// Lifetimes in seconds of connections with a response, and all of them for the median.
    pub(super) lifetimes: Moments,
    pub(super) lifetime_hist: Hist,
    bins: BTreeMap<u64, u64>,
    /// Maximum number of connections started in one turn of the loop, except the first turn.
    pub(super) burst: u64,
    last_begun: (Nanos, u64),
    pub(super) errors: Errors,
    /// The first connection with a TLS failure; the original ends there.
    pub(super) tls_failure: Option<FailureClass>,
    pub(super) sessions: Sessions,
    /// Times of complete replies and sessions, in bins of a rate sample.
    reply_bins: BTreeMap<u64, u64>,
    session_bins: BTreeMap<u64, u64>,
    /// The first sample of rates ends here, in seconds.
    first_sample_s: f64,
}

/// Sessions that have ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sessions {
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) lifetime_s: f64,
    pub(super) failtime_s: f64,
    /// Figures of completed connections.
    pub(super) connections: u64,
    /// Number with 0, 1, 2, … replies.
    pub(super) lengths: Vec<u64>,
}

impl Tally {
    pub(super) fn new(options: &Options) -> Tally {
        let (id, clients) = options.client;
        let first_sample_s = (id as f64 + 1.0) * RATE_INTERVAL_S / clients as f64;
        Tally { first_sample_s, ..Tally::default() }
    }

    pub(super) fn call(&mut self, record: &CallRecord) {
        let sample = &record.sample;
        self.end = self.end.max(sample.done);
        if !sample.sent.is_zero() {
            self.requests += 1;
            self.request_bytes += sample.bytes_sent;
        }
        if !sample.first_byte.is_zero() {
            self.responses.add((sample.first_byte - sample.sent).as_secs_f64());
        }
        if sample.status != 0 {
            self.reply(sample);
        }
    }

    fn reply(&mut self, sample: &Sample) {
        self.by_class[usize::from(sample.status / 100).min(5)] += 1;
        self.transfer_s += (sample.done - sample.first_byte).as_secs_f64();
        self.head_bytes += sample.head_bytes;
        self.body_bytes += sample.body_bytes;
        self.trailer_bytes += sample.trailer_bytes;
        let bin = self.sample_of(sample.done);
        *self.reply_bins.entry(bin).or_default() += 1;
    }

    pub(super) fn ends(&mut self, ends: &Ends) {
        ends.connections.iter().for_each(|connection| self.connection(connection));
        ends.sessions.iter().for_each(|session| self.session(session));
    }

    fn connection(&mut self, record: &ConnectionRecord) {
        use FailureClass as Class;
        self.end = self.end.max(record.closed);
        if let Some(class) = record.class {
            self.errors.add(class);
            if matches!(class, Class::Tls | Class::Certificate) {
                self.tls_failure.get_or_insert(class);
            }
        }
        // a connection without a socket was never started
        let unbegun =
            [Class::FdUnavailable, Class::FileTableFull, Class::AddressUnavailable].map(Some);
        if !unbegun.contains(&record.class) {
            self.count_opened(record.opened);
        }
        if !record.established.is_zero() {
            self.connects.add((record.established - record.opened).as_secs_f64());
        }
        if record.responses > 0 {
            let lifetime = record.closed - record.opened;
            self.lifetimes.add(lifetime.as_secs_f64());
            self.lifetime_hist.record(lifetime);
            *self.bins.entry((lifetime.0 / BIN).min(BINS)).or_default() += 1;
        }
    }

    /// Counts a connection, and the connections started in the same turn.
    fn count_opened(&mut self, opened: Nanos) {
        self.connections += 1;
        let (at, count) = &mut self.last_begun;
        *count = if *at == opened { *count + 1 } else { 1 };
        *at = opened;
        // the first one is started before the loop
        let inside = *count - u64::from(self.connections == *count);
        self.burst = self.burst.max(inside);
    }

    fn session(&mut self, record: &SessionRecord) {
        self.end = self.end.max(record.ended);
        let lived = (record.ended - record.intended).as_secs_f64();
        let sessions = &mut self.sessions;
        if record.failed {
            sessions.failed += 1;
            sessions.failtime_s += lived;
        } else {
            sessions.completed += 1;
            sessions.lifetime_s += lived;
            sessions.connections += u64::from(record.connections);
            let bin = self.sample_of(record.ended);
            *self.session_bins.entry(bin).or_default() += 1;
        }
        let lengths = &mut self.sessions.lengths;
        let length = record.responses as usize;
        if lengths.len() <= length {
            lengths.resize(length + 1, 0);
        }
        lengths[length] += 1;
    }

    pub(super) fn replies(&self) -> u64 {
        self.by_class[1..].iter().sum()
    }

    /// Returns the number of seconds from the first due instant to the end; above zero.
    pub(super) fn duration_s(&self) -> f64 {
        (self.end - self.origin).as_secs_f64().max(1e-9)
    }

    /// Returns the number of the rate sample that an instant belongs to.
    fn sample_of(&self, at: Nanos) -> u64 {
        let into = (at - self.origin).as_secs_f64() - self.first_sample_s;
        if into <= 0.0 { 0 } else { (into / RATE_INTERVAL_S).ceil() as u64 }
    }

    /// Returns the replies and completed sessions per second, of each sample that was over before
    /// the end.
    pub(super) fn rates(&self) -> Vec<(f64, f64)> {
        let whole = (self.duration_s() - self.first_sample_s) / RATE_INTERVAL_S;
        let samples = if whole < 0.0 { 0 } else { whole as u64 + 1 };
        let rate = |bins: &BTreeMap<u64, u64>, sample: u64| {
            let span = if sample == 0 { self.first_sample_s } else { RATE_INTERVAL_S };
            bins.get(&sample).copied().unwrap_or(0) as f64 / span
        };
        (0..samples)
            .map(|sample| (rate(&self.reply_bins, sample), rate(&self.session_bins, sample)))
            .collect()
    }

    /// Returns the middle of the bin that contains the median, in seconds, as the original prints
    /// it: values beyond a hundred seconds are ignored.
    pub(super) fn binned_median_s(&self) -> f64 {
        let half = 0.5 * self.lifetimes.count as f64;
        let mut seen = 0;
        for (bin, count) in self.bins.range(..BINS) {
            seen += count;
            if seen as f64 >= half {
                return (*bin as f64 + 0.5) / 1e3;
            }
        }
        0.0
    }

    /// Returns the non-empty bins: their number and contents.
    pub(super) fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins.range(..BINS).map(|(bin, count)| (*bin, *count))
    }
}
