//! Counts as h2load does: streams by how they closed, times by the successful requests, clients by
//! their connections.

use super::work::Work;
use sample::{CallRecord, ConnectionRecord, FailureClass, Outcome, Sample};
use stats::Hist;
use units::Nanos;

/// Values with their exact sums; a histogram of three digits gives the number of values near the
/// mean.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    hist: Hist,
    count: u64,
    sum: f64,
    squares: f64,
    least: f64,
    most: f64,
}

/// A row of the table at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SummaryRow {
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) mean: f64,
    pub(super) stdev: f64,
    /// Percentage of the values within one deviation of the mean.
    pub(super) within: f64,
}

impl Times {
    fn add(&mut self, time: Nanos) {
        let value = time.as_secs_f64();
        self.hist.record(time);
        self.least = if self.count == 0 { value } else { self.least.min(value) };
        self.most = self.most.max(value);
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    /// Returns the row of the summary, in seconds.
    pub(super) fn row(&self) -> SummaryRow {
        if self.count == 0 {
            return SummaryRow::default();
        }
        let count = self.count as f64;
        let mean = self.sum / count;
        // n - 1 in the divisor, as of a sample
        let stdev = ((self.squares - mean * mean * count) / (count - 1.0).max(1.0)).max(0.0).sqrt();
        let near = |time: Nanos| {
            let value = time.as_secs_f64();
            // the buckets of the ends are as wide as three digits are
            value >= (mean - stdev) * 0.999 && value <= (mean + stdev) * 1.001
        };
        let buckets = self.hist.buckets();
        let within: u64 = buckets.iter().filter(|(time, _)| near(*time)).map(|(_, n)| n).sum();
        let within = within as f64 / count * 100.0;
        SummaryRow { least: self.least, most: self.most, mean, stdev, within }
    }
}

impl SummaryRow {
    /// Computes the statistics of values that are all available.
    pub(super) fn new(values: &[f64]) -> SummaryRow {
        if values.is_empty() {
            return SummaryRow::default();
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let stdev = (squares / (count - 1.0).max(1.0)).sqrt();
        let near = |value: &&f64| (mean - stdev..=mean + stdev).contains(*value);
        let within = values.iter().filter(near).count() as f64 / count * 100.0;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        SummaryRow { least, most, mean, stdev, within }
    }
}

/// One client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TalliedClient {
    /// Instant at which its first connection was opened; zero if it never was.
    opened: Nanos,
    established: Nanos,
    first_byte: Nanos,
    closed: Nanos,
    started: u64,
    succeeded: u64,
    /// Requests that the server no longer accepted.
    refused: u64,
    /// True if its last connection was aborted or never established.
    pub(super) broken: bool,
}

/// Counts and times of all clients, for the progress lines and the final report.
#[derive(Debug)]
pub(super) struct Tally {
    clients: Vec<TalliedClient>,
    threads: u64,
    pub(super) started: u64,
    pub(super) done: u64,
    /// Number of complete responses: all, with a status below 400, and from 400.
    pub(super) whole: u64,
    pub(super) good: u64,
    pub(super) bad: u64,
    pub(super) timed_out: u64,
    /// Counts by the first digit of the status, from 2 on.
    pub(super) statuses: [u64; 4],
    pub(super) received: u64,
    pub(super) content: u64,
    /// Names and values of HTTP/1.1's fields.
    pub(super) fields: u64,
    pub(super) requests: Times,
    /// Streams of the first thread that are done.
    pub(super) first_thread_done: u64,
    /// Requests of each thread that failed or can never be sent.
    failed: Vec<u64>,
    /// Instant of the last event.
    pub(super) ended: Nanos,
    /// Beginning of the main part: events before it count only in the sizes.
    pub(super) from: Nanos,
    /// Number of clients without a connection, for which none was attempted.
    pub(super) unopened: u64,
}

impl Tally {
    pub(super) fn new(work: &Work) -> Tally {
        Tally {
            clients: vec![TalliedClient::default(); work.options.clients as usize],
            threads: work.options.threads,
            started: 0,
            done: 0,
            whole: 0,
            good: 0,
            bad: 0,
            timed_out: 0,
            statuses: [0; 4],
            received: 0,
            content: 0,
            fields: 0,
            requests: Times::default(),
            first_thread_done: 0,
            failed: vec![0; work.options.threads as usize],
            ended: Nanos::ZERO,
            from: Nanos::ZERO,
            unopened: 0,
        }
    }

    /// Counts a call; with `http1`, calls fail with their connection instead of with their stream.
    pub(super) fn take(&mut self, call: &CallRecord, http1: bool) {
        let sample = &call.sample;
        self.content += sample.body_bytes;
        self.fields += final_head(&call.response).1;
        self.record_first_byte(sample);
        if sample.done < self.from {
            return;
        }
        self.ended = self.ended.max(sample.done);
        self.received += sample.bytes_received;
        if !sample.sent.is_zero() && sample.sent >= self.from {
            self.started += 1;
            if let Some(client) = self.client(sample.user) {
                client.started += 1;
            }
        }
        if http1 && sample.status == 0 {
            // the head of a truncated response has arrived
            self.count_status(final_head(&call.response).0);
        }
        match call.outcome {
            Outcome::Abandoned | Outcome::Dropped => {}
            Outcome::TimedOut => self.timed_out += u64::from(!sample.sent.is_zero()),
            Outcome::Succeeded | Outcome::Failed => self.close(sample, http1),
        }
    }

    fn record_first_byte(&mut self, sample: &Sample) {
        let first_byte = sample.first_byte;
        if let Some(client) = self.client(sample.user).filter(|_| !first_byte.is_zero())
            && (client.first_byte.is_zero() || first_byte < client.first_byte)
        {
            client.first_byte = first_byte;
        }
    }

    /// Records that a stream has closed, or that its connection was lost.
    fn close(&mut self, sample: &Sample, http1: bool) {
        let whole = sample.status > 0 && is_whole(sample.class);
        if !whole && (http1 || !is_stream_failure(sample.class)) {
            return;
        }
        let refused = sample.class == Some(FailureClass::StreamRefused);
        if let Some(client) = self.client(sample.user).filter(|_| refused) {
            client.refused += 1;
        }
        let thread = (sample.user.unwrap_or(0) % self.threads) as usize;
        let good = whole && (200..400).contains(&sample.status);
        if let Some(sum) = self.failed.get_mut(thread) {
            *sum += u64::from(!good);
        }
        self.done += 1;
        self.first_thread_done += u64::from(thread == 0);
        if !whole {
            return;
        }
        self.whole += 1;
        self.requests.add(sample.done - sample.sent);
        if good {
            self.good += 1;
        } else {
            self.bad += 1;
        }
        self.count_status(sample.status);
        if let Some(client) = self.client(sample.user) {
            client.succeeded += 1;
        }
    }

    fn count_status(&mut self, status: u16) {
        let row = usize::from(status / 100).checked_sub(2);
        if let Some(sum) = row.and_then(|row| self.statuses.get_mut(row)) {
            *sum += 1;
        }
    }

    fn client(&mut self, user: Option<u64>) -> Option<&mut TalliedClient> {
        self.clients.get_mut(usize::try_from(user?).ok()?)
    }

    pub(super) fn end_connection(&mut self, record: &ConnectionRecord) {
        self.ended = self.ended.max(record.closed);
        let Some(client) = self.client(record.user) else { return };
        if client.opened.is_zero() {
            client.opened = record.opened;
            client.established = record.established;
        }
        client.closed = record.closed;
        client.broken = record.class.is_some();
    }

    /// Returns whether every client has lost its connection.
    pub(super) fn all_broken(&self) -> bool {
        self.clients.iter().all(|client| client.broken)
    }

    /// Handles a connection that the server closed gracefully, without accepting further requests
    /// of this client. Returns the sum that h2load prints at the first stream that was cut off: the
    /// requests of its thread that have failed by then, and those that this client can no longer
    /// send.
    pub(super) fn drop_remaining_requests(&mut self, user: u64, quota: Option<u64>) -> Option<u64> {
        let TalliedClient { started, refused, .. } = *self.client(Some(user))?;
        let rest = quota.map_or(1, |quota| quota.saturating_sub(started));
        let thread = (user % self.threads) as usize;
        let sum = self.failed.get_mut(thread).filter(|_| rest > 0)?;
        *sum += rest;
        Some(*sum - refused.saturating_sub(1))
    }

    /// Returns whether the server refused further requests of this client.
    pub(super) fn was_refused(&self, user: u64) -> bool {
        let client = usize::try_from(user).ok().and_then(|user| self.clients.get(user));
        client.is_some_and(|client| client.refused > 0)
    }

    /// Returns the seconds to connect, the seconds from the same instant to the first byte, and
    /// requests per second. `from_start`: connections count from the main part on, and were set up
    /// before it.
    pub(super) fn rows(&self, from_start: bool) -> [SummaryRow; 3] {
        let seconds = |from: Nanos, to: Nanos| to.0.saturating_sub(from.0) as f64 / 1e9;
        let established = || {
            let counts = |client: &&TalliedClient| !client.established.is_zero() && !from_start;
            self.clients.iter().filter(counts)
        };
        let connect: Vec<f64> =
            established().map(|client| seconds(client.opened, client.established)).collect();
        let first = established().filter(|client| !client.first_byte.is_zero());
        let first: Vec<f64> =
            first.map(|client| seconds(client.opened, client.first_byte)).collect();
        let rate = |client: &TalliedClient| {
            let start = if from_start { self.from } else { client.opened };
            let span = seconds(start, client.closed);
            (!client.opened.is_zero() && span > 1e-9).then(|| client.succeeded as f64 / span)
        };
        let mut rates: Vec<f64> = self.clients.iter().filter_map(rate).collect();
        if rates.is_empty() && self.clients.iter().any(|client| client.broken) {
            // refused immediately, with a time of 0
            rates.push(0.0);
        }
        rates.resize(rates.len() + self.unopened as usize, 0.0);
        [SummaryRow::new(&connect), SummaryRow::new(&first), SummaryRow::new(&rates)]
    }
}

/// Returns whether the response is complete, regardless of its status.
fn is_whole(class: Option<FailureClass>) -> bool {
    matches!(class, None | Some(FailureClass::Status))
}

/// Returns whether only one stream has failed and its connection continues.
fn is_stream_failure(class: Option<FailureClass>) -> bool {
    matches!(
        class,
        Some(FailureClass::StreamReset | FailureClass::StreamRefused | FailureClass::BadFraming)
    )
}

/// Returns the status of the final response, from bytes in the form of HTTP/1, and the total length
/// of the names and values of all fields, including those of interim responses (RFC 9110 section
/// 15.2).
fn final_head(bytes: &[u8]) -> (u16, u64) {
    let mut sum = 0;
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut status = status_of(lines.next().unwrap_or_default());
    for line in lines.by_ref() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.starts_with(b"HTTP/") {
            status = status_of(line);
        } else if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            sum += colon + line[colon + 1..].trim_ascii().len();
        } else if !line.is_empty() || !(100..200).contains(&status) {
            // a name that the end of the connection cut off
            sum += if lines.next().is_none() { line.len() } else { 0 };
            break;
        }
    }
    (status, sum as u64)
}

fn status_of(line: &[u8]) -> u16 {
    let word = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_share_within_one_deviation() {
        let row = SummaryRow::new(&[1.0, 2.0, 3.0, 10.0]);
        assert_eq!((row.least, row.most, row.mean, row.within), (1.0, 10.0, 4.0, 75.0));
        assert!((row.stdev - 4.082_482_9).abs() < 1e-6);
        assert!(SummaryRow::new(&[1.0]).stdev.abs() < 1e-9);
        assert_eq!(SummaryRow::new(&[]), SummaryRow::default());
        let mut times = Times::default();
        for millis in [1, 2, 3, 10] {
            times.add(Nanos::from_millis(millis));
        }
        let row = times.row();
        assert!((row.mean - 0.004).abs() < 1e-9 && (row.within - 75.0).abs() < 1e-9, "{row:?}");
    }

    fn work() -> Work {
        use super::super::{options::Options, uris};
        let options = Options { requests: Some(20), ..Options::default() };
        let base = uris::base("http://h").unwrap();
        let asked =
            uris::AskedUri { base, paths: Vec::new(), at: Vec::new(), complaints: String::new() };
        Work { options, asked, body: None, quotas: vec![20] }
    }

    fn call(status: u16, class: Option<FailureClass>) -> CallRecord {
        let outcome = if class.is_none() { Outcome::Succeeded } else { Outcome::Failed };
        let sample = Sample {
            user: Some(0),
            status,
            class,
            sent: Nanos(5),
            done: Nanos(9),
            ..Sample::default()
        };
        CallRecord { sample, outcome, response: Vec::new(), note: None }
    }

    /// `h2load -n20 -c1 -m2` against a server that closes after two responses.
    #[test]
    fn streams_that_a_goaway_cuts_off_are_done() {
        let mut tally = Tally::new(&work());
        tally.take(&call(200, None), false);
        tally.take(&call(200, None), false);
        for _ in 0..2 {
            tally.take(&call(0, Some(FailureClass::StreamRefused)), false);
        }
        assert_eq!((tally.started, tally.done, tally.good, tally.whole), (4, 4, 2, 2));
        assert!(tally.was_refused(0));
        assert_eq!(tally.drop_remaining_requests(0, Some(20)), Some(17));
    }

    #[test]
    fn a_stream_fails_alone_and_a_connection_of_http1_does_not() {
        let mut tally = Tally::new(&work());
        for class in [FailureClass::StreamReset, FailureClass::BadFraming] {
            tally.take(&call(0, Some(class)), false);
        }
        assert_eq!((tally.started, tally.done, tally.good), (2, 2, 0));
        let mut broken = call(0, Some(FailureClass::Truncated));
        broken.response = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nx".to_vec();
        tally.take(&broken, true);
        assert_eq!((tally.started, tally.done, tally.statuses), (3, 2, [1, 0, 0, 0]));
    }

    #[test]
    fn fields_are_names_and_values() {
        let head = b"HTTP/1.1 200 OK\r\nA: bc\r\nContent-Length:  2\r\n\r\nhi: x";
        assert_eq!(final_head(head), (200, 3 + 15));
        assert_eq!(final_head(b""), (0, 0));
        assert_eq!(final_head(b"HTTP/1.1 200 OK\r\nServer: S/1\r\nContent-Le"), (200, 9 + 10));
        let early = b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nA: bc\r\n\r\nHTTP/1.1 9";
        assert_eq!(final_head(early), (200, 7 + 3));
    }
}
