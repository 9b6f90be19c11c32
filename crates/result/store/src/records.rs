//! Stored values by name: the current counts of running measurements, figures of the list. A new
//! field of a snapshot adds its name in `stats::snapshot_fields`, one of another type here.

use crate::hists::{HistogramTree, StoredHists};
use crate::tree::{Damage, Pack, Unpack, field, named, object, record};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use plan::Plan;
use record::compare::Judgement;
use record::run::Headline;
use record::server::Conduct;
use sample::{
    AgentNow, AgentState, BodyPrint, EarlyFacts, Environment, FailureClass, Http2Facts, Http3Facts,
    MigrationFacts, PathDirection, PathFacts, PathKind, QuicFacts, SocketClose, SocketCounts,
    TlsFacts, WrongBody,
};
use serde_json::{Map, Value};
use stats::curve::{Axis, Span};
use stats::diagnosis::Confidence;
use stats::lives::{BEATS_MAX, Beats, Lives};
use stats::{
    BackendTally, Backends, CauseId, Connections, Counts, Endings, FailedResponse, FailedResponses,
    FanOutTally, GrpcTally, Hist, Instants, JourneyTally, LoadFigure, LoadTally, MessageTally,
    Noted, NumberTally, Objective, ReconnectTally, ScenarioTally, Second, SecondMessages,
    SecondStreams, ServerTimings, Sessions, Snapshot, Spread, State, StatusTally, StepStreams,
    StreamTally, TargetTally, TokenTally, TransactionTally, Verified,
};
use std::fmt::Write;
use torture::judge::TestOutcome;

stats::snapshot_fields!(record);

record! {
    AgentNow { number, host, labels, state, calls_per_s, p99, in_flight, offered, lost }
    FailedResponses { kinds }
    Second {
        at_s, span_s, counts, warm_up, bytes_received, body_bytes, p50, p90, p99, max, mean,
        slip_p99, in_flight, open_connections, driver_cpu, spread, endings, streams, messages,
    }
    SecondStreams { events, first_p99, gap_p99 }
    SecondMessages { sent, received, gap_p99 }
    Endings { statuses, other_statuses, failures }
    Environment {
        host, kernel, cpu_model, cores, memory_bytes, governor, congestion, container, version,
    }
    Headline {
        state, throughput_per_s, goodput_per_s, failure_share, mean_s, p50_s, p90_s, p99_s,
        p99_9_s, max_s, conforming,
    }
    Span { at, low, high }
}

record! {
    PathFacts {
        spec, seed, span, kinds, late_p50, late_p99, late_max, busy, spun, overflowed, foreign,
    }
    PathKind { name, clients, rtt, up, down }
    PathDirection {
        link, arrived, delivered, delivered_bytes, duplicated, corrupted, lost_to_model,
        lost_to_outage, lost_to_queue, lost_to_codel,
    }
}

named! {
    State { Valid = "VALID", Degraded = "DEGRADED", Invalid = "INVALID" }
    Conduct {
        Gone = "gone", Refusing = "refusing", Stalled = "stalled", Unexpected = "not-as-expected",
        Failing = "failing", Overloaded = "overloaded", Slow = "slow", Unreached = "not-reached", Serving = "serving",
    }
    Axis { Rate = "rate", Population = "population", Loss = "loss", RoundTrip = "rtt", LinkRate = "link-rate" }
    AgentState { Running = "running", Lost = "lost", Over = "over" }
    Judgement {
        NoneShown = "none-shown", Better = "better", Worse = "worse", TooFew = "too-few",
    }
}

/// The bytes, which the worker has masked, as base64.
impl Pack for FailedResponse {
    fn pack(&self, histogram_tree: &mut HistogramTree) -> Value {
        let FailedResponse { at, target, start, length } = self;
        let fields = [
            ("at", at.pack(histogram_tree)),
            ("target", target.pack(histogram_tree)),
            ("start", Value::String(BASE64.encode(start))),
            ("length", length.pack(histogram_tree)),
        ];
        Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
    }
}

impl Unpack for FailedResponse {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        let map = object(value)?;
        let start = map.get("start").and_then(Value::as_str).and_then(|it| BASE64.decode(it).ok());
        Ok(FailedResponse {
            at: field(map, "at", found)?,
            target: field(map, "target", found)?,
            start: start.ok_or_else(|| Damage::new("no base64 of a response"))?,
            length: field(map, "length", found)?,
        })
    }
}

/// Written with its secrets masked.
impl Unpack for Plan {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let text = value.as_str().ok_or_else(|| Damage::new("not a text"))?;
        plan::from_masked_toml(text).map_err(|error| Damage(error.0))
    }
}

impl Unpack for Objective {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let text = value.as_str().ok_or_else(|| Damage::new("not a text"))?;
        Objective::parse(text).map_err(|error| Damage(error.0))
    }
}

/// The tree has the path; empty if nothing was recorded.
impl Pack for Hist {
    fn pack(&self, histogram_tree: &mut HistogramTree) -> Value {
        if self.is_empty() {
            return Value::Null;
        }
        let path = histogram_tree.path().to_owned();
        histogram_tree.keep(self);
        Value::String(path)
    }
}

impl Unpack for Hist {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        match value {
            Value::Null => Ok(Hist::new()),
            Value::String(path) => {
                found.0.remove(path).ok_or_else(|| Damage::new("its histogram is missing"))
            }
            _ => Err(Damage::new("not the name of a histogram")),
        }
    }
}

/// Enums that are known by an id.
macro_rules! by_id {
    ($($name:ident: $what:literal)*) => {$(
        impl Unpack for $name {
            fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
                let known = $name::ALL.iter().find(|one| Some(one.id()) == value.as_str());
                known.copied().ok_or_else(|| Damage::new(format!(concat!("{} is no ", $what), value)))
            }
        }
    )*};
}

by_id! {
    FailureClass: "class of failures"
    CauseId: "cause of a verdict"
    Confidence: "confidence"
}

impl Pack for FailureClass {
    fn pack(&self, _: &mut HistogramTree) -> Value {
        self.id().into()
    }
}

/// Side and code: `server 1000`.
impl Pack for SocketClose {
    fn pack(&self, _: &mut HistogramTree) -> Value {
        format!("{} {}", self.side(), self.code()).into()
    }
}

impl Unpack for SocketClose {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let parts = value.as_str().and_then(|text| text.split_once(' '));
        let parts = parts.and_then(|(side, code)| Some((side, code.parse().ok()?)));
        match parts {
            Some(("client", code)) => Ok(SocketClose::Client(code)),
            Some(("server", code)) => Ok(SocketClose::Server(code)),
            Some(("violation", code)) => Ok(SocketClose::Violation(code)),
            Some(("lost", _)) => Ok(SocketClose::Lost),
            Some(("refused", _)) => Ok(SocketClose::Refused),
            _ => Err(Damage::new(format!("{value} is not the end of a WebSocket"))),
        }
    }
}

impl Pack for TestOutcome {
    fn pack(&self, _: &mut HistogramTree) -> Value {
        self.id().into()
    }
}

impl Unpack for TestOutcome {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let found =
            TestOutcome::ALL.into_iter().find(|outcome| Some(outcome.id()) == value.as_str());
        found.ok_or_else(|| Damage::new(format!("{value} is not an outcome")))
    }
}

/// Pairs of status and count.
impl Pack for StatusTally {
    fn pack(&self, histogram_tree: &mut HistogramTree) -> Value {
        self.seen().collect::<Vec<_>>().pack(histogram_tree)
    }
}

impl Unpack for StatusTally {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        let mut tally = StatusTally::default();
        for (status, count) in Vec::<(u16, u64)>::unpack(value, found)? {
            tally.add_n(status, count);
        }
        Ok(tally)
    }
}

/// Pairs of class and count.
impl Pack for Spread {
    fn pack(&self, histogram_tree: &mut HistogramTree) -> Value {
        self.iter().collect::<Vec<_>>().pack(histogram_tree)
    }
}

impl Unpack for Spread {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        Vec::<(usize, u64)>::unpack(value, found).map(Spread::from_counts)
    }
}

impl Pack for ServerTimings {
    fn pack(&self, histogram_tree: &mut HistogramTree) -> Value {
        let named: Vec<(String, Hist)> =
            self.named().map(|(name, hist)| (name.to_owned(), hist.clone())).collect();
        let mut map = Map::new();
        let mut put = |name: &str, value| map.insert(name.to_owned(), value);
        put("named", histogram_tree.within("named", |histogram_tree| named.pack(histogram_tree)));
        put(
            "other",
            histogram_tree.within("other", |histogram_tree| self.other().pack(histogram_tree)),
        );
        put("malformed", self.malformed().pack(histogram_tree));
        Value::Object(map)
    }
}

impl Unpack for ServerTimings {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        let map = object(value)?;
        let named: Vec<(String, Hist)> = field(map, "named", found)?;
        let other = field(map, "other", found)?;
        Ok(ServerTimings::from_parts(named, other, field(map, "malformed", found)?))
    }
}

/// Not stored: the diagnosis that uses them is made when the run ends, and its findings are stored.
impl Pack for Instants {
    fn pack(&self, _: &mut HistogramTree) -> Value {
        Value::Null
    }
}

impl Unpack for Instants {
    fn unpack(_: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        Ok(Instants::default())
    }
}

/// One text, `done/good` for each beat: long runs have tens of thousands of beats, which are
/// written every second.
impl Pack for Beats {
    fn pack(&self, _: &mut HistogramTree) -> Value {
        let mut text = String::new();
        for (done, good) in self.all() {
            write!(text, "{done}/{good} ").expect("writing to a String cannot fail");
        }
        text.into()
    }
}

impl Unpack for Beats {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let beat = |word: &str| {
            let (done, good) = word.split_once('/')?;
            Some((done.parse().ok()?, good.parse().ok()?))
        };
        let words = value.as_str().unwrap_or_default().split_whitespace().take(BEATS_MAX);
        let rows: Option<Vec<(u32, u32)>> = words.map(beat).collect();
        rows.map(Beats::from_all).ok_or_else(|| Damage::new("not a list of beats"))
    }
}
