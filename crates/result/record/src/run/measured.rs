//! Source data of a run's published figures, so that a record alone is enough to render it:
//! histograms, and counts that no figure shows directly, kept for other programs.

use super::published::{AgreedRecord, RunRecord, TagRecord};
use crate::histogram;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::lives::Beats;
use stats::{Doubt, Hist, Measurement, Snapshot, Spread};
use std::collections::BTreeMap;
use std::fmt::Write;
use units::Nanos;

/// The name for server timings beyond the distinguished ones; no HTTP token can equal it.
pub const OTHER_TIMINGS: &str = "(other)";

/// `measured` of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct MeasuredRecord {
    /// Arrivals that the plan intended in the window; null in a closed loop.
    pub intended: Option<u64>,
    /// Time that the plan's rate takes for them, if their number ended the run.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub intended_span_s: Option<f64>,
    /// Calls due and not yet issued at the end.
    pub queued: i64,
    /// Calls issued and not yet done at the end.
    pub in_flight: i64,
    /// Completions inside the window.
    pub in_window: u64,
    /// Of these, calls that succeeded.
    pub good_in_window: u64,
    pub responses_in_window: u64,
    pub bytes_in_window: u64,
    /// Sum over the successful calls: from the first byte sent to the end of the response.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub exchange_sum_s: f64,
    /// Sum over the connections: time to set them up.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub setup_sum_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub spin_s: f64,
    /// Calls in flight, integrated over the window in nanoseconds; a whole number of up to 128
    /// bits.
    pub flight_integral: String,
    /// Connections that ended without a response.
    pub unanswered: u64,
    pub turned_away: u64,
    /// Connections that carried responses.
    pub answered: u64,
    /// Their total open time.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub answered_open_s: f64,
    /// Bits of the server's key, for each row of tls.agreed.
    pub key_bits: Vec<u32>,
    /// Completions and successes of each beat of the window, as done/good.
    pub beats: String,
    /// For each row of series, its response times by class, as class:count.
    pub spreads: Vec<SpreadRecord>,
    /// Histograms by name; those of targets by number, those of server timings by name.
    pub histograms: BTreeMap<String, HistogramRecord>,
}

/// A histogram in its written form.
#[derive(Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "HistogramRecord"))]
struct EncodedHistogram {
    /// Recordings of zero, which are not in `v2`.
    zeros: u64,
    /// HdrHistogram's V2 encoding (not compressed), in Base64; empty without other recordings.
    v2: String,
}

/// A histogram of nanoseconds.
// its counts by value are a few hundred bytes where the histogram has 188 KiB
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[serde(into = "EncodedHistogram", try_from = "EncodedHistogram")]
#[cfg_attr(any(test, feature = "schema"), schemars(with = "EncodedHistogram"))]
pub struct HistogramRecord(Vec<(Nanos, u64)>);

impl HistogramRecord {
    pub fn new(hist: &Hist) -> HistogramRecord {
        HistogramRecord(hist.buckets())
    }

    pub fn hist(&self) -> Hist {
        Hist::from_buckets(self.0.iter().copied())
    }
}

impl From<HistogramRecord> for EncodedHistogram {
    fn from(record: HistogramRecord) -> EncodedHistogram {
        let (zeros, blob) = histogram::encode(&record.hist());
        EncodedHistogram { zeros, v2: BASE64_STANDARD.encode(blob.unwrap_or_default()) }
    }
}

impl TryFrom<EncodedHistogram> for HistogramRecord {
    type Error = String;

    fn try_from(EncodedHistogram { zeros, v2 }: EncodedHistogram) -> Result<Self, String> {
        let blob = BASE64_STANDARD
            .decode(v2)
            .map_err(|error| format!("a histogram that is not Base64: {error}"))?;
        let blob = Some(&blob[..]).filter(|blob| !blob.is_empty());
        Ok(HistogramRecord::new(&histogram::decode(zeros, blob)?))
    }
}

/// Response times by class, written as `class:count class:count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[serde(into = "String", try_from = "String")]
#[cfg_attr(any(test, feature = "schema"), schemars(with = "String"))]
pub struct SpreadRecord(pub Spread);

impl From<SpreadRecord> for String {
    fn from(SpreadRecord(spread): SpreadRecord) -> String {
        let pairs: Vec<String> =
            spread.iter().map(|(class, count)| format!("{class}:{count}")).collect();
        pairs.join(" ")
    }
}

impl TryFrom<String> for SpreadRecord {
    type Error = &'static str;

    fn try_from(text: String) -> Result<SpreadRecord, &'static str> {
        let pair = |word: &str| {
            let (class, count) = word.split_once(':')?;
            Some((class.parse().ok()?, count.parse().ok()?))
        };
        let pairs: Option<Vec<(usize, u64)>> = text.split_whitespace().map(pair).collect();
        let read = pairs.map(|pairs| SpreadRecord(Spread::from_counts(pairs)));
        read.ok_or("measured.spreads has a row that is not a list of class:count")
    }
}

impl MeasuredRecord {
    pub(crate) fn new(measurement: &Measurement) -> MeasuredRecord {
        let total = &measurement.total;
        let connections = &total.connections;
        let lives = &connections.lives;
        MeasuredRecord {
            intended: measurement.intended,
            intended_span_s: measurement.intended_span.map(Nanos::as_secs_f64),
            queued: total.counts.queued,
            in_flight: total.counts.in_flight,
            in_window: total.in_window,
            good_in_window: total.good_in_window,
            responses_in_window: total.answers_in_window,
            bytes_in_window: total.bytes_in_window,
            exchange_sum_s: total.exchange_sum.as_secs_f64(),
            setup_sum_s: connections.setup_sum.as_secs_f64(),
            spin_s: total.spin.as_secs_f64(),
            flight_integral: total.flight_integral.to_string(),
            unanswered: lives.unanswered,
            turned_away: lives.turned_away,
            answered: lives.answered,
            answered_open_s: lives.answered_open.as_secs_f64(),
            key_bits: AgreedRecord::sorted(total).map(|(facts, _)| facts.key_bits).collect(),
            beats: beats_text(&total.beats),
            spreads: measurement.series.iter().map(|row| SpreadRecord(row.spread)).collect(),
            histograms: histograms(total),
        }
    }
}

/// A histogram that a run has once, by its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunHist {
    Succeeded,
    Failed,
    TimedOut,
    Service,
    Slip,
    Wait,
    Lag,
    /// Response times less the client's lateness.
    Punctual,
    Connect,
    Tls,
    FirstByte,
    Transfer,
    /// Calls with equal response and service time.
    Plain,
    RoundTrip,
    /// The first exchange of each connection, the mean of it, how many it served.
    FirstExchange,
    MeanExchange,
    Served,
    /// For streams of events: time to the first, time between events, the mean of each stream.
    FirstEvent,
    EventGap,
    EventPace,
    /// For bidirectional gRPC streams: time from a message's due instant to its answer.
    MessageAnswer,
    /// Time that calls waited for a stream of their connection.
    StreamWait,
    /// For WebSockets: the handshake, the time from one message from the server to the next,
    /// heartbeats.
    Handshake,
    MessageGap,
    Heartbeat,
    /// From the loss of all of them until each was open again.
    Reconnect,
    /// For messages to rooms: time to each receiver, to the first and to the last.
    Receiver,
    FirstReceiver,
    LastReceiver,
}

impl RunHist {
    /// Returns the key in `measured.histograms`.
    fn key(self) -> &'static str {
        match self {
            RunHist::Succeeded => "succeeded",
            RunHist::Failed => "failed",
            RunHist::TimedOut => "timed_out",
            RunHist::Service => "service",
            RunHist::Slip => "slip",
            RunHist::Wait => "wait",
            RunHist::Lag => "lag",
            RunHist::Punctual => "punctual",
            RunHist::Connect => "connect",
            RunHist::Tls => "tls",
            RunHist::FirstByte => "first_byte",
            RunHist::Transfer => "transfer",
            RunHist::Plain => "plain",
            RunHist::RoundTrip => "rtt",
            RunHist::FirstExchange => "first_exchange",
            RunHist::MeanExchange => "mean_exchange",
            RunHist::Served => "served",
            RunHist::FirstEvent => "first_event",
            RunHist::EventGap => "event_gap",
            RunHist::EventPace => "event_pace",
            RunHist::MessageAnswer => "message_answer",
            RunHist::StreamWait => "stream_wait",
            RunHist::Handshake => "handshake",
            RunHist::MessageGap => "message_gap",
            RunHist::Heartbeat => "heartbeat",
            RunHist::Reconnect => "reconnect",
            RunHist::Receiver => "receiver",
            RunHist::FirstReceiver => "first_receiver",
            RunHist::LastReceiver => "last_receiver",
        }
    }
}

/// Returns the histograms with recordings.
fn histograms(total: &Snapshot) -> BTreeMap<String, HistogramRecord> {
    let mut all: BTreeMap<String, HistogramRecord> = BTreeMap::new();
    let mut add = |name: String, hist: &Hist| {
        if !hist.is_empty() {
            all.insert(name, HistogramRecord::new(hist));
        }
    };
    for (of, hist) in single(total) {
        add(of.key().to_owned(), hist);
    }
    for (row, target) in total.targets.iter().enumerate() {
        add(target_name(row), &target.response);
    }
    for (row, clients) in total.clients.iter().enumerate() {
        add(clients_name(row), &clients.response);
    }
    for (row, scenario) in total.scenarios.iter().enumerate() {
        add(scenario_name(row), &scenario.response);
    }
    for (row, transaction) in total.journeys.transactions.iter().enumerate() {
        add(transaction_name(row), &transaction.time);
    }
    for (name, hist) in total.server_timings.named() {
        add(timing_name(name), hist);
    }
    add(timing_name(OTHER_TIMINGS), total.server_timings.other());
    all
}

fn single(total: &Snapshot) -> [(RunHist, &Hist); 29] {
    let (lives, streams) = (&total.connections.lives, &total.streams);
    [
        (RunHist::Succeeded, &total.succeeded),
        (RunHist::Failed, &total.failed),
        (RunHist::TimedOut, &total.timed_out),
        (RunHist::Service, &total.service),
        (RunHist::Slip, &total.slip),
        (RunHist::Wait, &total.wait),
        (RunHist::Lag, &total.lag),
        (RunHist::Punctual, &total.punctual),
        (RunHist::Connect, &total.connect),
        (RunHist::Tls, &total.tls),
        (RunHist::FirstByte, &total.first_byte),
        (RunHist::Transfer, &total.transfer),
        (RunHist::Plain, &total.plain),
        (RunHist::RoundTrip, &total.connections.rtt),
        (RunHist::FirstExchange, &lives.first),
        (RunHist::MeanExchange, &lives.mean),
        (RunHist::Served, &lives.served),
        (RunHist::FirstEvent, &streams.first),
        (RunHist::EventGap, &streams.gap),
        (RunHist::EventPace, &streams.pace),
        (RunHist::MessageAnswer, &streams.answer),
        (RunHist::StreamWait, &total.connections.stream_wait),
        (RunHist::Handshake, &total.messages.handshake),
        (RunHist::MessageGap, &total.messages.gap),
        (RunHist::Heartbeat, &total.messages.ping),
        (RunHist::Reconnect, &total.messages.reconnects.times),
        (RunHist::Receiver, &total.messages.fan_out.each),
        (RunHist::FirstReceiver, &total.messages.fan_out.first),
        (RunHist::LastReceiver, &total.messages.fan_out.last),
    ]
}

fn transaction_name(row: usize) -> String {
    format!("transaction {row}")
}

fn scenario_name(row: usize) -> String {
    format!("scenario {row}")
}

fn clients_name(row: usize) -> String {
    format!("clients {row}")
}

fn target_name(row: usize) -> String {
    format!("target {row}")
}

fn timing_name(name: &str) -> String {
    format!("server timing {name}")
}

fn beats_text(beats: &Beats) -> String {
    let mut text = String::new();
    for (done, good) in beats.all() {
        write!(text, "{done}/{good} ").expect("writing to a String cannot fail");
    }
    text.trim_end().to_owned()
}

impl RunRecord {
    /// Checks that it has the data of its histograms and charts.
    ///
    /// # Errors
    /// Fails for a record of a version that did not store measurements: a clause that follows the
    /// file's name.
    pub fn is_whole(&self) -> Result<(), String> {
        self.measured.as_ref().map(|_| ()).ok_or_else(|| {
            "has no key \"measured\", without which it cannot be rendered again: it was written by \
             an earlier version; name the result in the store, or write the JSON again"
                .to_owned()
        })
    }

    /// Returns a histogram of the run; empty if nothing was recorded.
    pub fn hist(&self, of: RunHist) -> Hist {
        self.named_hist(of.key())
    }

    /// Returns the response times of a row of [`RunRecord::per_url`], by its `target`.
    pub fn hist_of_target(&self, target: usize) -> Hist {
        self.named_hist(&target_name(target))
    }

    /// Returns the response times of a row of [`RunRecord::by_tag`].
    pub fn hist_of_tag(&self, tag: &TagRecord) -> Hist {
        if self.per_url.is_empty() {
            return self.response();
        }
        let mut all = Hist::new();
        tag.targets.iter().for_each(|row| all.merge(&self.hist_of_target(*row as usize)));
        all
    }

    /// Returns the response times of a row of `by_clients`.
    pub fn hist_of_clients(&self, row: usize) -> Hist {
        self.named_hist(&clients_name(row))
    }

    /// Returns the response times of a row of `by_scenario`.
    pub fn hist_of_scenario(&self, row: usize) -> Hist {
        self.named_hist(&scenario_name(row))
    }

    /// Returns the times of a row of `transactions` in [`RunRecord::journeys`].
    pub fn hist_of_transaction(&self, row: usize) -> Hist {
        self.named_hist(&transaction_name(row))
    }

    /// Returns the histogram of a metric of `server_timing_s`.
    pub fn hist_of_timing(&self, name: &str) -> Hist {
        self.named_hist(&timing_name(name))
    }

    fn named_hist(&self, name: &str) -> Hist {
        let found = self.measured.as_ref().and_then(|measured| measured.histograms.get(name));
        found.map(HistogramRecord::hist).unwrap_or_default()
    }

    /// Returns the histogram of the headline: response times of succeeded and timed-out calls.
    pub fn response(&self) -> Hist {
        let mut all = self.hist(RunHist::Succeeded);
        all.merge(&self.hist(RunHist::Plain));
        all.merge(&self.hist(RunHist::TimedOut));
        all
    }

    /// Returns the response times less the client's lateness of each call; `None` if that was not
    /// recorded.
    fn without_lag(&self) -> Option<Hist> {
        let mut punctual = self.hist(RunHist::Punctual);
        punctual.merge(&self.hist(RunHist::Plain));
        (punctual.count() == self.response_time_s.count).then_some(punctual)
    }

    /// Returns how much of the response times may be the client's lateness. `response`: as returned
    /// by [`RunRecord::response`].
    pub fn doubt(&self, response: &Hist) -> Option<Doubt> {
        Doubt::between(response.clone(), self.without_lag()?)
    }
}
