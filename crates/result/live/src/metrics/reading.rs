//! The state of a run at one moment, as families of figures. Both formats are written from these,
//! so they cannot differ, and each name is defined once.

use crate::metrics::exponential::Exponential;
use sample::{AgentNow, AgentState, FailureClass};
use stats::{Counts, Hist, MessageTally, Second, Snapshot, StreamTally};
use units::Nanos;

/// Upper bounds of the classic buckets, in seconds.
pub(crate) const BOUNDS: [f64; 18] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 25.0, 60.0,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that only rises within one run.
    Counter,
    Gauge,
    Histogram,
    /// Facts in labels, with the value 1.
    Info,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    None,
    Seconds,
    Bytes,
    /// 0..=1.
    Ratio,
}

impl MetricUnit {
    /// Returns the OpenMetrics name; empty for no unit.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MetricUnit::None => "",
            MetricUnit::Seconds => "seconds",
            MetricUnit::Bytes => "bytes",
            MetricUnit::Ratio => "ratio",
        }
    }
}

/// A histogram in both shapes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    pub count: u64,
    /// Seconds.
    pub sum: f64,
    /// Calls in each of the classic buckets, and above the last one.
    pub classic: Vec<u64>,
    pub native: Exponential,
}

impl Times {
    fn new(hist: &Hist) -> Times {
        let mut below = 0;
        let mut classic = Vec::with_capacity(BOUNDS.len() + 1);
        for bound in BOUNDS {
            let cumulative = hist.count_at_or_below(Nanos::from_secs_f64(bound)).max(below);
            classic.push(cumulative - below);
            below = cumulative;
        }
        classic.push(hist.count().saturating_sub(below));
        let native = Exponential::new(hist);
        let sum = hist.mean().as_secs_f64() * hist.count() as f64;
        Times { count: hist.count(), sum, classic, native }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Count(u64),
    Number(f64),
    Times(Box<Times>),
}

/// One figure with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub labels: Vec<(&'static str, String)>,
    pub value: Value,
}

/// All figures with one name.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFamily {
    /// Without prefix, unit and `_total`, which the formats add.
    pub name: &'static str,
    pub help: &'static str,
    pub kind: MetricKind,
    pub unit: MetricUnit,
    pub samples: Vec<Sample>,
}

impl MetricFamily {
    /// Returns the name of the family in OpenMetrics: `loadstone_received_bytes`.
    pub(crate) fn openmetrics_name(&self) -> String {
        let unit = self.unit.name();
        let before = if unit.is_empty() { "" } else { "_" };
        format!("loadstone_{}{before}{unit}", self.name)
    }

    /// Returns the name in Prometheus: `loadstone_received_bytes_total`.
    pub fn prometheus_name(&self) -> String {
        let end = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge | MetricKind::Histogram => "",
        };
        self.openmetrics_name() + end
    }
}

/// Data that is constant during a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunLabels {
    /// The URL or file as typed, without a password.
    pub name: String,
    /// The load as text.
    pub load: String,
    pub version: String,
    /// Number of the run in a repeated plan, or of the step in a ramp, from 1.
    pub repeat: u32,
    /// Start of its counts, in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
}

/// All figures at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    pub run: RunLabels,
    pub families: Vec<MetricFamily>,
}

impl Reading {
    /// Returns a reading after a complete second. `intended`: calls or sessions due by now in an
    /// open load's plan; `None` in a closed loop.
    pub fn new(
        run: &RunLabels,
        second: &Second,
        total: &Snapshot,
        intended: Option<u64>,
    ) -> Reading {
        let mut families = vec![info(run)];
        families.extend(counters(total, intended));
        families.extend(gauges(second));
        families.extend(histograms(total));
        if !total.messages.is_empty() {
            families.extend(message_metrics(&total.messages));
        }
        if total.streams.events > 0 {
            families.extend(stream_metrics(&total.streams));
        }
        Reading { run: run.clone(), families }
    }

    /// Adds the machines of a fleet, each with its number and host.
    #[must_use]
    pub fn with_agents(mut self, agents: &[AgentNow]) -> Reading {
        if !agents.is_empty() {
            self.families.extend(agent_metrics(agents));
        }
        self
    }
}

fn agent_metrics(agents: &[AgentNow]) -> Vec<MetricFamily> {
    let family = |name, help, kind, unit, value: &dyn Fn(&AgentNow) -> Option<Value>| {
        let sample = |agent: &AgentNow| {
            let labels = vec![
                ("agent", agent.number.to_string()),
                ("host", agent.host.clone()),
                ("labels", agent.labels.clone()),
            ];
            Some(Sample { labels, value: value(agent)? })
        };
        MetricFamily { name, help, kind, unit, samples: agents.iter().filter_map(sample).collect() }
    };
    let (counter, gauge) = (MetricKind::Counter, MetricKind::Gauge);
    vec![
        family(
            "agent_calls_offered",
            "Calls that an agent presented to the server",
            counter,
            MetricUnit::None,
            &|agent| Some(Value::Count(agent.offered)),
        ),
        family(
            "agent_calls_lost",
            "Arrivals of an agent whose outcome is unknown; fewer once the agent returns",
            gauge,
            MetricUnit::None,
            &|agent| Some(Value::Number(agent.lost as f64)),
        ),
        family(
            "agent_calls_in_flight",
            "Calls of an agent issued and not yet answered",
            gauge,
            MetricUnit::None,
            &|agent| Some(Value::Number(agent.in_flight as f64)),
        ),
        family(
            "agent_response_time_p99",
            "Of an agent's latest row",
            gauge,
            MetricUnit::Seconds,
            &|agent| agent.p99.map(|p99| Value::Number(p99.as_secs_f64())),
        ),
        family(
            "agent_running",
            "1 while an agent runs, else 0",
            gauge,
            MetricUnit::None,
            &|agent| Some(Value::Number(f64::from(u8::from(agent.state == AgentState::Running)))),
        ),
    ]
}

fn info(run: &RunLabels) -> MetricFamily {
    let labels = vec![
        ("name", run.name.clone()),
        ("load", run.load.clone()),
        ("version", run.version.clone()),
        ("repeat", run.repeat.to_string()),
    ];
    MetricFamily {
        name: "run",
        help: "The run that the figures describe",
        kind: MetricKind::Info,
        unit: MetricUnit::None,
        samples: vec![Sample { labels, value: Value::Count(1) }],
    }
}

fn plain(value: Value) -> Vec<Sample> {
    vec![Sample { labels: Vec::new(), value }]
}

fn labeled_sample(label: &'static str, name: &str, count: u64) -> Sample {
    Sample { labels: vec![(label, name.to_owned())], value: Value::Count(count) }
}

fn outcomes(counts: &Counts) -> Vec<Sample> {
    [
        ("succeeded", counts.succeeded),
        ("failed", counts.failed),
        ("timed_out", counts.timed_out),
        ("dropped", counts.dropped),
        ("abandoned", counts.abandoned),
    ]
    .map(|(name, count)| labeled_sample("outcome", name, count))
    .into()
}

/// Name, description, unit and samples of a counter.
type CounterRow = (&'static str, &'static str, MetricUnit, Vec<Sample>);

fn counter((name, help, unit, samples): CounterRow) -> MetricFamily {
    MetricFamily { name, help, kind: MetricKind::Counter, unit, samples }
}

fn counters(total: &Snapshot, intended: Option<u64>) -> Vec<MetricFamily> {
    let one = |count: u64| plain(Value::Count(count));
    let connections = &total.connections;
    let failures = |class: &FailureClass| Sample {
        labels: vec![("class", class.id().to_owned()), ("blame", class.blame().id().to_owned())],
        value: Value::Count(total.failures.get(class).copied().unwrap_or(0)),
    };
    let answers = total.status.seen();
    let answers =
        answers.map(|(status, count)| labeled_sample("status", &status.to_string(), count));
    let rows: [CounterRow; 14] = [
        (
            "calls_intended",
            "Arrivals due by now in the plan of an open load; absent in a closed loop",
            MetricUnit::None,
            intended.map(one).unwrap_or_default(),
        ),
        ("calls_due", "Calls that fell due", MetricUnit::None, one(total.counts.due)),
        ("calls", "Calls by outcome", MetricUnit::None, outcomes(&total.counts)),
        (
            "warm_up_calls",
            "Calls of the warm-up that fell due",
            MetricUnit::None,
            one(total.warm_up.due),
        ),
        (
            "failures",
            "Failed, timed out and dropped calls by class, with the party to blame",
            MetricUnit::None,
            FailureClass::ALL.iter().map(failures).collect(),
        ),
        ("answers", "Responses by status", MetricUnit::None, answers.collect()),
        ("sent", "Bytes sent", MetricUnit::Bytes, one(total.bytes_sent)),
        ("received", "Bytes received", MetricUnit::Bytes, one(total.bytes_received)),
        ("body", "Bytes of bodies received", MetricUnit::Bytes, one(total.body_bytes)),
        (
            "connections_attempted",
            "Connections begun",
            MetricUnit::None,
            one(connections.attempted),
        ),
        (
            "connections_opened",
            "Connections established, including TLS",
            MetricUnit::None,
            one(connections.established),
        ),
        ("connections_closed", "Connections ended", MetricUnit::None, one(connections.closed)),
        (
            "segments_retransmitted",
            "TCP segments retransmitted on connections that ended",
            MetricUnit::None,
            one(connections.retransmits),
        ),
        ("sessions", "Sessions by outcome", MetricUnit::None, sessions(total)),
    ];
    rows.into_iter().map(counter).collect()
}

fn sessions(total: &Snapshot) -> Vec<Sample> {
    events([
        ("started", total.sessions.started),
        ("completed", total.sessions.completed),
        ("failed", total.sessions.failed),
        ("dropped", total.sessions.dropped),
    ])
}

fn events<const N: usize>(rows: [(&str, u64); N]) -> Vec<Sample> {
    rows.map(|(name, count)| labeled_sample("event", name, count)).into()
}

fn gauges(second: &Second) -> Vec<MetricFamily> {
    let rows: [(&str, &str, MetricUnit, f64); 5] = [
        (
            "calls_in_flight",
            "Calls issued and not yet answered",
            MetricUnit::None,
            second.in_flight as f64,
        ),
        ("connections_open", "Connections open", MetricUnit::None, second.open_connections as f64),
        (
            "driver_cpu",
            "Share of a core that each worker thread of the client used, spinning excluded",
            MetricUnit::Ratio,
            second.driver_cpu,
        ),
        (
            "run_time",
            "Time since the measurement began; negative in the warm-up",
            MetricUnit::Seconds,
            second.at_s + second.span_s,
        ),
        (
            "warm_up",
            "1 in the warm-up, then 0",
            MetricUnit::None,
            f64::from(u8::from(second.warm_up)),
        ),
    ];
    let family = |(name, help, unit, value)| MetricFamily {
        name,
        help,
        kind: MetricKind::Gauge,
        unit,
        samples: plain(Value::Number(value)),
    };
    rows.into_iter().map(family).collect()
}

/// Name, description and times of a histogram.
type HistogramRow<'a> = (&'static str, &'static str, &'a Hist);

fn histogram((name, help, hist): HistogramRow<'_>) -> MetricFamily {
    MetricFamily {
        name,
        help,
        kind: MetricKind::Histogram,
        unit: MetricUnit::Seconds,
        samples: plain(Value::Times(Box::new(Times::new(hist)))),
    }
}

fn histograms(total: &Snapshot) -> Vec<MetricFamily> {
    let response = total.response();
    let rows: [HistogramRow<'_>; 8] = [
        (
            "response_time",
            "From the instant a call was due to the end of its response; succeeded and timed-out calls",
            &response,
        ),
        ("failed_time", "Response time of failed calls", &total.failed),
        ("service_time", "From the issue of a call to the end of its response", &total.service),
        ("slip", "From the instant a call was due to its issue", &total.slip),
        ("connect_time", "To connect", &total.connect),
        ("tls_time", "TLS handshakes", &total.tls),
        ("first_byte_time", "From the request to the response's first byte", &total.first_byte),
        ("transfer_time", "From the response's first byte to its end", &total.transfer),
    ];
    rows.into_iter().map(histogram).collect()
}

/// Returns figures of WebSockets, if there were any.
fn message_metrics(tally: &MessageTally) -> Vec<MetricFamily> {
    let (counts, fan_out) = (&tally.counts, &tally.fan_out);
    let messages = events([
        ("sent", counts.sent),
        ("received", counts.received),
        ("unmatched", counts.unmatched),
        ("late", counts.late),
    ]);
    let sockets = events([
        ("opened", counts.opened),
        ("ended", tally.ended()),
        ("ended_abnormally", tally.abnormal()),
    ]);
    let receptions = events([
        ("expected", fan_out.expected),
        ("received", fan_out.received),
        ("duplicate", fan_out.duplicates),
        ("out_of_order", fan_out.out_of_order),
    ]);
    let counters: [CounterRow; 3] = [
        ("messages", "Messages on WebSockets", MetricUnit::None, messages),
        ("websockets", "WebSockets opened and ended", MetricUnit::None, sockets),
        ("receptions", "Receptions of messages published for rooms", MetricUnit::None, receptions),
    ];
    let times: [HistogramRow<'_>; 2] = [
        ("handshake_time", "From the upgrade request to the response to it", &tally.handshake),
        ("receiver_time", "From a published message's due instant to a receiver", &fan_out.each),
    ];
    let counters = counters.into_iter().map(counter);
    counters.chain(times.into_iter().map(histogram)).collect()
}

/// Returns figures of event streams, if there were any.
fn stream_metrics(tally: &StreamTally) -> Vec<MetricFamily> {
    let one = |count: u64| plain(Value::Count(count));
    let ended = events([("whole", tally.whole), ("empty", tally.empty), ("cut", tally.cut)]);
    let counters: [CounterRow; 3] = [
        ("streams", "Streams of events by how they ended", MetricUnit::None, ended),
        ("stream_events", "Events of streams", MetricUnit::None, one(tally.events)),
        (
            "stream_tokens",
            "Output tokens of whole streams of language models",
            MetricUnit::None,
            one(tally.tokens.output),
        ),
    ];
    let times: [HistogramRow<'_>; 2] = [
        ("first_event_time", "From a call's due instant to its first event", &tally.first),
        ("event_gap_time", "From one event to the next of its stream", &tally.gap),
    ];
    let counters = counters.into_iter().map(counter);
    counters.chain(times.into_iter().map(histogram)).collect()
}
