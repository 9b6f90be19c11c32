//! Every field of every part of a torture, by its name in the store, as [`crate::records`] has them
//! for what is measured. Of a case itself is kept what reports say of it, not what it sends: results
//! stay as they are when the catalogue moves on.

use crate::hists::{Shelf, StoredHists};
use crate::tree::{Damage, Pack, field, named, object, record};
use dialogue::governor::Spent;
use dialogue::governor::Stop;
use dialogue::packets::PacketStep;
use dialogue::talk::Awaited;
use dialogue::talk::{Move, TalkScript};
use dialogue::text;
use dialogue::text::{Values, written};
use record::torture::Report;
use record::torture::waivers::{Applied, Day, Waiver, WaiverState};
use sample::{Death, Ending, Process, ServerState};
use serde_json::{Map, Value, json};
use torture::beside::{CaseFelt, Felt, Interval};
use torture::case::{Answers, Case, RequirementLevel};
use torture::judge::{FailureKind, Judgement, Plain, Risk, Severity, TestOutcome};
use torture::result::Boundary;
use torture::result::{
    Baseline, CaseResult, ExchangeResult, Habits, Health, Kept, Meanwhile, Measure, Probe,
    ProbeKind, RunResult, Seen, SentPause, ServerRow, ServerSeen, Shrunk, Unit,
};
use torture::safety::Class;
use units::hex;

record! {
    Report {
        target, addresses, class, started_unix_s, seed, fail_on, environment, result, waivers, beside,
        path,
    }
    RunResult {
        plain, habits, baseline, post_trouble, cases, slots_named, probes, shrunk, kept,
        ended_early, interrupted, stopped, took, server,
    }
    Plain { status, body_len, digest }
    Habits { seen }
    Baseline { probes, failed, slow, p50, p99 }
    CaseResult {
        case, outcome, skipped, exchanges, tally, recovery, measures, health, notes, took, spent,
        server,
    }
    ExchangeResult { name, judgement, tries, failed, sent, received, took, pauses }
    SentPause { after, span }
    Judgement { outcome, seen, expected, why, kind }
    Measure { what, low, high, unit, note }
    Health {
        correct, shed, lost, probes, p99, recovery, wanted, armed, followed, rounds, control_denied,
    }
    Spent { connections, requests, bytes }
    Probe { kind, due, late, connected, first_byte, over, seen, said, ours, refused, case }
    Kept { case, name, folder }
    Boundary { what, passes, fails }
    Applied { waiver, state }
    Waiver { case, exchange, outcome, reason, until }
    Felt { base, cases, left_out }
    CaseFelt { case, during, recovery }
    Interval { due, lost, p50, p99, max }
    ServerSeen { rows, deaths }
    ServerRow { at, case, state }
    Meanwhile { before, after, deaths }
    Death { process, whole, how }
    Process { pid, started, name }
    ServerState {
        machine, listeners, workers, threads, descriptors, memory_bytes, cpu, sockets, accept_queue,
        accept_queue_max, half_open, overflows, cookies,
    }
}

named! {
    Unit {
        Bytes = "bytes", Fields = "fields", Seconds = "seconds", Spent = "spent",
        Connections = "connections", Requests = "requests", PerSecond = "per-second",
        Ratio = "ratio", Count = "count",
    }
    ProbeKind { New = "new", Keep = "keep" }
    Seen { Correct = "correct", Shed = "shed", Lost = "lost" }
    Class { Local = "local", Private = "private", Public = "public", Never = "refused" }
    RequirementLevel { Must = "MUST", Should = "SHOULD", May = "MAY", Opinion = "opinion" }
    Risk {
        Smuggling = "smuggling", Intermediaries = "intermediaries", Cost = "cost", Service = "service",
        Replay = "replay",
    }
    WaiverState {
        Used = "used", Expired = "expired", Unneeded = "unneeded", Exceeded = "exceeded",
        Untested = "untested",
    }
}

/// It has a trial of its own, and is put in when that is read.
impl Pack for record::torture::Beside {
    fn pack(&self, _: &mut Shelf) -> Value {
        Value::Null
    }

    fn unpack(_: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        Err(Damage::new("the load beside it is not part of this row"))
    }
}

impl Pack for TestOutcome {
    fn pack(&self, _: &mut Shelf) -> Value {
        self.id().into()
    }

    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let found =
            TestOutcome::ALL.into_iter().find(|outcome| Some(outcome.id()) == value.as_str());
        found.ok_or_else(|| Damage::new(format!("{value} is not an outcome")))
    }

    fn absent() -> Option<Self> {
        Some(TestOutcome::default())
    }
}

impl Pack for Severity {
    fn pack(&self, _: &mut Shelf) -> Value {
        self.id().into()
    }

    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let found = value.as_str().and_then(Severity::named);
        found.ok_or_else(|| Damage::new(format!("{value} is not a severity")))
    }

    /// Results of versions that knew none: every finding failed a run.
    fn absent() -> Option<Self> {
        Some(Severity::Low)
    }
}

/// In the language of the case files: one line of ASCII, whatever the bytes are.
impl Pack for Vec<u8> {
    fn pack(&self, _: &mut Shelf) -> Value {
        written(self).into()
    }

    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let text = value.as_str().ok_or_else(|| Damage::new("not a text"))?;
        text::bytes(text, &Values::default()).map_err(Damage::new)
    }

    fn absent() -> Option<Self> {
        Some(Vec::new())
    }
}

impl Pack for [u8; 32] {
    fn pack(&self, _: &mut Shelf) -> Value {
        hex(self).into()
    }

    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let digits = value.as_str().unwrap_or_default();
        let byte = |n: usize| u8::from_str_radix(digits.get(2 * n..2 * n + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
        let whole = bytes.filter(|_| digits.len() == 64).and_then(|bytes| bytes.try_into().ok());
        whole.ok_or_else(|| Damage::new("not a digest"))
    }
}

impl Pack for Day {
    fn pack(&self, _: &mut Shelf) -> Value {
        self.to_string().into()
    }

    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let day = value.as_str().and_then(Day::parse);
        day.ok_or_else(|| Damage::new(format!("{value} is not a day")))
    }
}

/// Which, and why.
impl Pack for Stop {
    fn pack(&self, _: &mut Shelf) -> Value {
        json!([self.id(), self.why()])
    }

    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        let (id, why) = <(String, String)>::unpack(value, found)?;
        let all = [Stop::Interrupted, Stop::Bound(why.clone()), Stop::Wish(why.clone())];
        let mut all = all.into_iter().chain([Stop::Permission(why)]);
        let found = all.find(|stop| stop.id() == id);
        found.ok_or_else(|| Damage::new(format!("{id} stops nothing")))
    }
}

/// How, the number of a code or a signal, and whether a core was dumped.
impl Pack for Ending {
    fn pack(&self, _: &mut Shelf) -> Value {
        match *self {
            Ending::Exit(code) => json!(["exit", code, false]),
            Ending::Signal { number, core } => json!(["signal", number, core]),
            Ending::Unseen => json!(["unseen", 0, false]),
        }
    }

    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let number = value[1].as_u64().and_then(|number| u8::try_from(number).ok());
        match (value[0].as_str(), number, value[2].as_bool()) {
            (Some("exit"), Some(code), _) => Ok(Ending::Exit(code)),
            (Some("signal"), Some(number), Some(core)) => Ok(Ending::Signal { number, core }),
            (Some("unseen"), ..) => Ok(Ending::Unseen),
            _ => Err(Damage::new(format!("{value} is not an end of a process"))),
        }
    }
}

/// As it is shown.
impl Pack for FailureKind {
    fn pack(&self, _: &mut Shelf) -> Value {
        self.to_string().into()
    }

    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let text = value.as_str().unwrap_or_default();
        let found = FailureKind::named(text);
        found.ok_or_else(|| Damage::new(format!("{value} is not a way to fail")))
    }
}

impl Pack for Case {
    fn pack(&self, shelf: &mut Shelf) -> Value {
        let Case { id, version, title, level, risk, reference, why, servers, press, .. } = self;
        let mut packed = json!({
            "id": id,
            "version": version,
            "title": title,
            "level": level.pack(shelf),
            "risk": risk.pack(shelf),
            "ref": reference,
            "why": why,
            "servers": servers,
            "press": press,
        });
        if self.answers != Answers::Server {
            packed["answers"] = json!(self.answers.id());
        }
        packed
    }

    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        let map = object(value)?;
        Ok(Case {
            id: field(map, "id", found)?,
            version: field(map, "version", found)?,
            title: field(map, "title", found)?,
            level: field(map, "level", found)?,
            risk: field(map, "risk", found)?,
            reference: field(map, "ref", found)?,
            why: field(map, "why", found)?,
            servers: field(map, "servers", found)?,
            found: String::new(),
            needs: Vec::new(),
            // what was stored before there were such cases is the server's own
            answers: match map.get("answers").and_then(Value::as_str) {
                Some(id) => {
                    let found = Answers::ALL.into_iter().find(|one| one.id() == id);
                    found.ok_or_else(|| Damage::new(format!("{id} answers for nothing")))?
                }
                None => Answers::Server,
            },
            press: field(map, "press", found)?,
            exchanges: Vec::new(),
            fuzz: None,
            family: None,
            text: "".into(),
        })
    }
}

/// Of its script the steps alone: a result is not sent again from here.
impl Pack for Shrunk {
    fn pack(&self, shelf: &mut Shelf) -> Value {
        let mut map = Map::new();
        let mut put = |name: &str, value| map.insert(name.to_owned(), value);
        put("case", self.case.pack(shelf));
        put("name", self.name.pack(shelf));
        put("kind", self.kind.pack(shelf));
        put("from", self.from.pack(shelf));
        put("steps", self.script.steps.pack(shelf));
        put("boundaries", self.boundaries.pack(shelf));
        put("executions", self.executions.pack(shelf));
        put("finished", self.finished.pack(shelf));
        Value::Object(map)
    }

    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        let map = object(value)?;
        Ok(Shrunk {
            case: field(map, "case", found)?,
            name: field(map, "name", found)?,
            kind: field(map, "kind", found)?,
            from: field(map, "from", found)?,
            script: TalkScript::of(field(map, "steps", found)?),
            boundaries: field(map, "boundaries", found)?,
            executions: field(map, "executions", found)?,
            finished: field(map, "finished", found)?,
        })
    }
}

/// What is awaited, by its names.
const AWAITED: [(&str, Awaited); 4] = [
    ("interim", Awaited::Interim),
    ("answer", Awaited::Answer),
    ("end", Awaited::End),
    ("settings", Awaited::Settings),
];
/// Steps without a figure.
const PLAIN: [Move; 7] = [
    Move::Urgent,
    Move::HalfClose,
    Move::Reset,
    Move::Close,
    Move::StopReading,
    Move::Read,
    Move::Renegotiate,
];

/// As in the case files: `{"send": "GET …"}`, `{"pause": 5000000000}`, `{"then": "reset"}`.
impl Pack for Move {
    fn pack(&self, shelf: &mut Shelf) -> Value {
        match self {
            Move::Send(bytes) => json!({ "send": bytes.pack(shelf) }),
            Move::Pause(span) => json!({ "pause": span.pack(shelf) }),
            Move::Sip(most) => json!({ "sip": most }),
            Move::Await(what) => {
                let name = AWAITED.iter().find(|(_, known)| known == what).map(|(name, _)| name);
                json!({ "await": name })
            }
            Move::Packet(step) => json!({ "packet": step.to_string() }),
            Move::Urgent => json!({ "then": "urgent" }),
            Move::HalfClose => json!({ "then": "half-close" }),
            Move::Reset => json!({ "then": "reset" }),
            Move::Close => json!({ "then": "close" }),
            Move::StopReading => json!({ "then": "stop-reading" }),
            Move::Read => json!({ "then": "read" }),
            Move::Renegotiate => json!({ "then": "renegotiate" }),
        }
    }

    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        let map = object(value)?;
        let (name, value) =
            map.iter().next().ok_or_else(|| Damage::new("a step without a name"))?;
        let unknown = || Damage::new(format!("{name} {value} is not a step"));
        let word = value.as_str().unwrap_or_default();
        Ok(match name.as_str() {
            "send" => Move::Send(Pack::unpack(value, found)?),
            "pause" => Move::Pause(Pack::unpack(value, found)?),
            "sip" => Move::Sip(Pack::unpack(value, found)?),
            "packet" => Move::Packet(PacketStep::parse(word).map_err(Damage::new)?),
            "await" => {
                let known = AWAITED.into_iter().find(|(name, _)| *name == word);
                Move::Await(known.ok_or_else(unknown)?.1)
            }
            "then" => {
                let written = |known: &Move| known.pack(&mut Shelf::default())["then"] == *value;
                PLAIN.into_iter().find(written).ok_or_else(unknown)?
            }
            _ => return Err(unknown()),
        })
    }
}
