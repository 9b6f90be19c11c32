//! What the published figures of a run are made from, so that a record alone is enough to render it
//! again: histograms, and counts that no figure shows as they are.

use super::published::{
    AgreedRecord, ClientsRecord, EarlyDataRecord, Http2Record, Http3Record, OutcomesRecord,
    RunRecord, ScenarioRecord, SecondRecord, StreamsRecord, UrlRecord, VerifiedRecord,
};
use crate::histogram;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sample::{FailureClass, Http2Facts, Http3Facts, TlsFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::lives::{BEATS_MAX, Beats};
use stats::{
    Connections, Counts, Endings, Hist, JourneyTally, Measurement, ScenarioTally, Second,
    ServerTimings, Sessions, Snapshot, Spread, StatusTally, TargetTally, Verified,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use units::Nanos;

/// The name of the timings of a server beyond those that are told apart.
const OTHER_TIMINGS: &str = "(other)";

/// `measured` of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredRecord {
    /// Arrivals that the plan asked for in the window; null in a closed loop.
    pub intended: Option<u64>,
    /// How long the plan's rate takes for them, where their number ended the run.
    #[schemars(range(min = 0.0))]
    pub intended_span_s: Option<f64>,
    /// Calls due and not yet issued at the end.
    pub queued: i64,
    /// Calls issued and not yet done at the end.
    pub in_flight: i64,
    /// Completions inside the window.
    pub in_window: u64,
    /// Of them, those that succeeded.
    pub good_in_window: u64,
    pub responses_in_window: u64,
    pub bytes_in_window: u64,
    /// Over the calls that succeeded: from the first byte sent to the end of the response.
    #[schemars(range(min = 0.0))]
    pub exchange_sum_s: f64,
    /// Over the connections: their setting up.
    #[schemars(range(min = 0.0))]
    pub setup_sum_s: f64,
    #[schemars(range(min = 0.0))]
    pub spin_s: f64,
    /// Calls in flight, integrated over the window in nanoseconds; a whole number of up to 128
    /// bits.
    pub flight_integral: String,
    /// Connections that ended without a response.
    pub unanswered: u64,
    pub turned_away: u64,
    /// Connections that carried responses.
    pub answered: u64,
    /// How long these were open, together.
    #[schemars(range(min = 0.0))]
    pub answered_open_s: f64,
    /// Bits of the server's key, for each row of tls.agreed.
    pub key_bits: Vec<u32>,
    /// Completions and successes of each beat of the window, as done/good.
    pub beats: String,
    /// For each row of series its response times by class, as class:count.
    pub spreads: Vec<String>,
    /// By name; those of targets by number, those of server timings by name.
    pub histograms: BTreeMap<String, HistogramRecord>,
}

/// A histogram of nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistogramRecord {
    /// Recordings of zero, which are not in `v2`.
    pub zeros: u64,
    /// HdrHistogram's V2 encoding (not compressed), in Base64; empty without other recordings.
    pub v2: String,
}

impl HistogramRecord {
    pub(crate) fn of(hist: &Hist) -> HistogramRecord {
        let (zeros, blob) = histogram::encode(hist);
        HistogramRecord { zeros, v2: BASE64_STANDARD.encode(blob.unwrap_or_default()) }
    }

    pub(crate) fn read(&self) -> Result<Hist, String> {
        let blob = BASE64_STANDARD
            .decode(&self.v2)
            .map_err(|error| format!("a histogram that is not Base64: {error}"))?;
        histogram::decode(self.zeros, Some(&blob[..]).filter(|blob| !blob.is_empty()))
    }
}

impl MeasuredRecord {
    pub(crate) fn of(measurement: &Measurement) -> MeasuredRecord {
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
            spreads: measurement.series.iter().map(|row| spread_text(&row.spread)).collect(),
            histograms: histograms(total),
        }
    }
}

/// Those in which something was recorded.
fn histograms(total: &Snapshot) -> BTreeMap<String, HistogramRecord> {
    let mut all: BTreeMap<String, HistogramRecord> = BTreeMap::new();
    let mut add = |name: String, hist: &Hist| {
        if !hist.is_empty() {
            all.insert(name, HistogramRecord::of(hist));
        }
    };
    let mut total = total.clone();
    for (name, hist) in named(&mut total) {
        add(name.to_owned(), hist);
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

/// The histograms of a snapshot that it has once.
fn named(total: &mut Snapshot) -> [(&'static str, &mut Hist); 20] {
    let connections = &mut total.connections;
    [
        ("succeeded", &mut total.succeeded),
        ("failed", &mut total.failed),
        ("timed_out", &mut total.timed_out),
        ("service", &mut total.service),
        ("slip", &mut total.slip),
        ("wait", &mut total.wait),
        ("lag", &mut total.lag),
        ("punctual", &mut total.punctual),
        ("connect", &mut total.connect),
        ("tls", &mut total.tls),
        ("first_byte", &mut total.first_byte),
        ("transfer", &mut total.transfer),
        ("plain", &mut total.plain),
        ("rtt", &mut connections.rtt),
        ("first_exchange", &mut connections.lives.first),
        ("mean_exchange", &mut connections.lives.mean),
        ("served", &mut connections.lives.served),
        ("first_event", &mut total.streams.first),
        ("event_gap", &mut total.streams.gap),
        ("event_pace", &mut total.streams.pace),
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
        write!(text, "{done}/{good} ").expect("memory takes it");
    }
    text.trim_end().to_owned()
}

fn read_beats(text: &str) -> Result<Beats, String> {
    let words = text.split_whitespace().take(BEATS_MAX);
    let rows: Option<Vec<(u32, u32)>> = words.map(|word| pair(word, '/')).collect();
    rows.map(Beats::from_all).ok_or_else(|| "measured.beats is not a list of done/good".to_owned())
}

fn spread_text(spread: &Spread) -> String {
    let pairs: Vec<String> =
        spread.iter().map(|(class, count)| format!("{class}:{count}")).collect();
    pairs.join(" ")
}

fn read_spread(text: &str) -> Result<Spread, String> {
    let pairs: Option<Vec<(usize, u64)>> =
        text.split_whitespace().map(|word| pair(word, ':')).collect();
    pairs
        .map(Spread::from_counts)
        .ok_or_else(|| "measured.spreads has a row that is not a list of class:count".to_owned())
}

fn pair<A: std::str::FromStr, B: std::str::FromStr>(word: &str, between: char) -> Option<(A, B)> {
    let (first, second) = word.split_once(between)?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

impl RunRecord {
    /// The measurement that this record was made of; what the diagnosis alone needs is not kept.
    ///
    /// # Errors
    /// A record without `measured`, or whose parts do not fit together.
    pub(super) fn measurement(&self) -> Result<Measurement, String> {
        let measured = self.measured.as_ref().ok_or(
            "has no key \"measured\", without which it cannot be rendered again: it was written by \
             an earlier version; name the result in the store, or write the JSON anew",
        )?;
        let mut spreads = measured.spreads.iter();
        let series = self.series.iter().map(|row| {
            let spread = spreads.next().map_or(Ok(Spread::default()), |text| read_spread(text))?;
            Ok(Second { spread, ..row.second()? })
        });
        Ok(Measurement {
            total: self.total(measured)?,
            series: series.collect::<Result<_, String>>()?,
            window: Nanos::from_secs_f64(self.duration_s),
            elapsed: Nanos::from_secs_f64(self.elapsed_s),
            intended: measured.intended,
            intended_span: measured.intended_span_s.map(Nanos::from_secs_f64),
            connections_peak: self.connections.peak,
            interrupted: self.interrupted,
            aborted: self.aborted.clone(),
        })
    }

    fn total(&self, measured: &MeasuredRecord) -> Result<Snapshot, String> {
        let mut found: BTreeMap<&str, Hist> = BTreeMap::new();
        for (name, hist) in &measured.histograms {
            found.insert(name, hist.read().map_err(|why| format!("measured.{name}: {why}"))?);
        }
        let mut total = Snapshot {
            counts: Counts {
                queued: measured.queued,
                in_flight: measured.in_flight,
                ..self.outcomes.counts()
            },
            warm_up: self.warm_up.counts(),
            in_window: measured.in_window,
            good_in_window: measured.good_in_window,
            answers_in_window: measured.responses_in_window,
            bytes_in_window: measured.bytes_in_window,
            exchange_sum: Nanos::from_secs_f64(measured.exchange_sum_s),
            status: self.statuses()?,
            failures: self.failures.iter().map(|one| (one.class, one.count)).collect(),
            bytes_sent: self.bytes.sent,
            bytes_received: self.bytes.received,
            body_bytes: self.bytes.body,
            decoded_bytes: self.bytes.decoded,
            redirects: self.redirects,
            server_timings: self.timings(&mut found),
            targets: targets(&self.per_url, &mut found)?,
            clients: self.clients(&mut found),
            scenarios: self.scenarios(&mut found),
            journeys: self.journeys(&mut found),
            connections: self.connections_of(measured)?,
            sessions: Sessions {
                started: self.sessions.started,
                completed: self.sessions.completed,
                failed: self.sessions.failed,
                dropped: self.sessions.dropped,
            },
            flight_integral: whole(&measured.flight_integral, "measured.flight_integral")?,
            flight_peak: self.concurrency.peak,
            spin: Nanos::from_secs_f64(measured.spin_s),
            beats: read_beats(&measured.beats)?,
            verified: self
                .bodies
                .verified
                .as_ref()
                .map_or(Ok(Verified::default()), VerifiedRecord::verified)?,
            streams: self.bodies.streams.as_ref().map(StreamsRecord::counts).unwrap_or_default(),
            ..Snapshot::default()
        };
        for (name, hist) in named(&mut total) {
            *hist = found.remove(name).unwrap_or_default();
        }
        Ok(total)
    }

    fn clients(&self, found: &mut BTreeMap<&str, Hist>) -> Vec<TargetTally> {
        let row = |(row, clients): (usize, &ClientsRecord)| TargetTally {
            succeeded: clients.succeeded,
            failed: clients.failed,
            timed_out: clients.timed_out,
            body_bytes: clients.body_bytes,
            response: found.remove(&*clients_name(row)).unwrap_or_default(),
        };
        self.by_clients.iter().enumerate().map(row).collect()
    }

    fn scenarios(&self, found: &mut BTreeMap<&str, Hist>) -> Vec<ScenarioTally> {
        let row = |(row, scenario): (usize, &ScenarioRecord)| {
            scenario.tally(found.remove(&*scenario_name(row)).unwrap_or_default())
        };
        self.by_scenario.iter().enumerate().map(row).collect()
    }

    fn journeys(&self, found: &mut BTreeMap<&str, Hist>) -> JourneyTally {
        let Some(record) = &self.journeys else { return JourneyTally::default() };
        let mut tally = record.read();
        for (row, transaction) in tally.transactions.iter_mut().enumerate() {
            transaction.time = found.remove(&*transaction_name(row)).unwrap_or_default();
        }
        tally
    }

    fn statuses(&self) -> Result<StatusTally, String> {
        let mut tally = StatusTally::default();
        for (status, count) in &self.status {
            tally.add_n(whole(status, "status")?, *count);
        }
        Ok(tally)
    }

    fn timings(&self, found: &mut BTreeMap<&str, Hist>) -> ServerTimings {
        let mut take = |name: &str| found.remove(&*timing_name(name)).unwrap_or_default();
        let names =
            self.server_timings.server_timing_s.keys().filter(|name| *name != OTHER_TIMINGS);
        let named: Vec<(String, Hist)> = names.map(|name| (name.clone(), take(name))).collect();
        ServerTimings::from_parts(
            named,
            take(OTHER_TIMINGS),
            self.server_timings.server_timing_malformed,
        )
    }

    fn connections_of(&self, measured: &MeasuredRecord) -> Result<Connections, String> {
        let mut connections = Connections {
            attempted: self.connections.attempted,
            established: self.connections.established,
            closed: self.connections.closed,
            setup_sum: Nanos::from_secs_f64(measured.setup_sum_s),
            judged: self.conforming_connections.judged,
            conforming: self.conforming_connections.count,
            retransmits: self.tcp.retransmits,
            http2: self.http2.as_ref().map_or(Ok(Http2Facts::default()), Http2Record::facts)?,
            http3: self.http3.as_ref().map_or(Ok(Http3Facts::default()), Http3Record::facts)?,
            early: self.tls.early_data.as_ref().map(EarlyDataRecord::facts).unwrap_or_default(),
            ..Connections::default()
        };
        let mut bits = measured.key_bits.iter();
        for agreed in &self.tls.agreed {
            let key_bits = bits.next().copied().unwrap_or_default();
            connections.tls.insert(agreed.facts(key_bits), agreed.connections);
        }
        let lives = &mut connections.lives;
        lives.unanswered = measured.unanswered;
        lives.turned_away = measured.turned_away;
        lives.answered = measured.answered;
        lives.answered_open = Nanos::from_secs_f64(measured.answered_open_s);
        Ok(connections)
    }
}

fn targets(
    rows: &[UrlRecord],
    found: &mut BTreeMap<&str, Hist>,
) -> Result<Vec<TargetTally>, String> {
    let mut targets = vec![TargetTally::default(); rows.len()];
    for row in rows {
        let target = targets
            .get_mut(row.target)
            .ok_or_else(|| format!("per_url: there is no target {}", row.target))?;
        *target = TargetTally {
            succeeded: row.succeeded,
            failed: row.failed,
            timed_out: row.timed_out,
            body_bytes: row.body_bytes,
            response: found.remove(&*target_name(row.target)).unwrap_or_default(),
        };
    }
    Ok(targets)
}

fn whole<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{what}: {} is no such number", units::quoted(text)))
}

impl OutcomesRecord {
    pub(super) fn counts(&self) -> Counts {
        Counts {
            due: self.due,
            succeeded: self.succeeded,
            failed: self.failed,
            timed_out: self.timed_out,
            dropped: self.dropped,
            abandoned: self.abandoned,
            lost: self.lost,
            queued: 0,
            in_flight: 0,
        }
    }
}

impl AgreedRecord {
    fn facts(&self, key_bits: u32) -> TlsFacts {
        TlsFacts {
            version: self.version.clone(),
            cipher: self.cipher.clone(),
            group: self.group.clone(),
            resumed: self.resumed,
            key_bits,
            alpn: self.alpn.clone(),
        }
    }
}

impl SecondRecord {
    /// All but the spread of its times.
    fn second(&self) -> Result<Second, String> {
        let time = |time: Option<f64>| time.map_or(Nanos::ZERO, Nanos::from_secs_f64);
        Ok(Second {
            at_s: self.at_s,
            span_s: self.span_s,
            counts: self.outcomes.counts(),
            warm_up: self.warm_up,
            bytes_received: self.bytes_received,
            body_bytes: self.body_bytes,
            p50: time(self.response_p50_s),
            p90: time(self.response_p90_s),
            p99: time(self.response_p99_s),
            max: time(self.response_max_s),
            mean: time(self.response_mean_s),
            spread: Spread::default(),
            endings: self.endings()?,
            slip_p99: Nanos::from_secs_f64(self.slip_p99_s),
            in_flight: self.in_flight,
            open_connections: self.open_connections,
            driver_cpu: self.driver_cpu,
        })
    }

    fn endings(&self) -> Result<Option<Endings>, String> {
        let (Some(statuses), Some(failures)) = (&self.statuses, &self.failures) else {
            return Ok(None);
        };
        let mut endings = Endings::default();
        for (status, count) in statuses {
            match status.as_str() {
                "other" => endings.other_statuses = *count,
                number => endings.statuses.push((whole(number, "series.statuses")?, *count)),
            }
        }
        for (id, count) in failures {
            let class = FailureClass::ALL.iter().find(|class| class.id() == id);
            let class = class.ok_or_else(|| {
                format!("series: {} is not a class of failures", units::quoted(id))
            })?;
            endings.failures.push((*class, *count));
        }
        endings.statuses.sort_unstable();
        endings.failures.sort_unstable();
        Ok(Some(endings))
    }
}
