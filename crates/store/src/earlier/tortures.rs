//! Tortures as versions before schema 4 stored them: every part of a report by its name, cases and probes in rows
//! of their own. Of a case was kept what reports say of it, not what it sends.

use super::Unread;
use crate::hists::StoredHists;
use crate::rows::{parse, put};
use crate::tree::{Damage, Unpack, earlier_named, earlier_record, field, object};
use dialogue::governor::Spent;
use dialogue::governor::Stop;
use dialogue::packets::PacketStep;
use dialogue::talk::Awaited;
use dialogue::talk::{Move, TalkScript};
use dialogue::text;
use dialogue::text::Values;
use record::run::RunRecord;
use record::torture::waivers::{Applied, Day, Waiver, WaiverState};
use record::torture::{Beside, OverCase, Report, TortureRecord};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use sample::{Death, Ending, Process, ServerState};
use serde_json::Value;
use torture::beside::{CaseFelt, Felt, Interval};
use torture::case::{Answers, Case, RequirementLevel};
use torture::judge::{FailureKind, Judgement, Plain, Risk, Severity};
use torture::result::Boundary;
use torture::result::{
    Baseline, CaseResult, ExchangeResult, Habits, Health, Kept, Meanwhile, Measure, Probe,
    ProbeKind, RunResult, Seen, SentPause, ServerRow, ServerSeen, Shrunk, Unit,
};
use torture::safety::Class;

/// Parts of a torture with rows of their own: the table, and for each column but the last its path
/// in the tree. The last column has what is left.
struct PartTable {
    table: &'static str,
    columns: &'static [(&'static str, &'static [&'static str])],
}

const CASES: PartTable = PartTable {
    table: "torture_case",
    columns: &[
        ("id", &["case", "id"]),
        ("version", &["case", "version"]),
        ("outcome", &["outcome"]),
        ("skipped", &["skipped"]),
        ("took_ns", &["took"]),
    ],
};

const PROBES: PartTable = PartTable {
    table: "probe",
    columns: &[
        ("kind", &["kind"]),
        ("due_ns", &["due"]),
        ("over_ns", &["over"]),
        ("seen", &["seen"]),
        ("case_id", &["case"]),
    ],
};

/// Where the body of a torture said what the load beside it felt.
const FELT: &str = "felt";

/// A torture that was read: its record, or of one that did not end the record of its beginning and
/// its cases since.
pub(super) enum Tortured {
    Whole(Box<TortureRecord>),
    Cut(Box<TortureRecord>, Vec<OverCase>),
}

/// `beside`: the measurement of the load that went on meanwhile.
pub(super) fn read(
    connection: &Connection,
    result: i64,
    (body, finished): (&Value, bool),
    beside: Option<RunRecord>,
) -> Result<Tortured, Unread> {
    let found = &mut StoredHists::default();
    let mut report = Report::unpack(body, found)?;
    // everything else may be absent: this never is
    let map = object(body)?;
    if !map.contains_key("target") {
        return Err(Damage::new("it does not say which server it tested").into());
    }
    let cases: Vec<CaseResult> = Unpack::unpack(&CASES.read(connection, result)?, found)?;
    if !finished {
        let over = cases.iter().map(OverCase::of).collect();
        return Ok(Tortured::Cut(Box::new(report.record()), over));
    }
    report.result.cases = cases;
    report.result.probes = Unpack::unpack(&PROBES.read(connection, result)?, found)?;
    if let Some(felt) = field(map, FELT, found)? {
        let run = beside.ok_or_else(|| Damage::new("the load beside it is missing"))?;
        report.beside = Some(Beside { felt, run });
    }
    Ok(Tortured::Whole(Box::new(report.record())))
}

impl PartTable {
    /// The parts of a result, in their order.
    fn read(&self, connection: &Connection, result: i64) -> Result<Value, Unread> {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        let statement = format!(
            "SELECT more, {} FROM {} WHERE result = ?1 ORDER BY position",
            names.join(", "),
            self.table
        );
        let mut statement = connection.prepare(&statement)?;
        let mut rows = statement.query([result])?;
        let mut parts = Vec::new();
        while let Some(row) = rows.next()? {
            parts.push(self.part(row)?);
        }
        Ok(Value::Array(parts))
    }

    fn part(&self, row: &Row<'_>) -> Result<Value, Damage> {
        let bad = |name: &str| Damage::new(format!("{name} of a {}", self.table));
        let more = row.get::<_, String>(0).map_err(|_| bad("more"))?;
        let Ok(Value::Object(mut map)) = parse(&more) else { return Err(bad("more")) };
        for (index, (name, path)) in self.columns.iter().enumerate() {
            let value = match row.get_ref(index + 1).map_err(|_| bad(name))? {
                ValueRef::Integer(whole) => Value::from(whole as u64),
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
                ValueRef::Null => Value::Null,
                ValueRef::Real(_) | ValueRef::Blob(_) => return Err(bad(name)),
            };
            put(&mut map, path, value);
        }
        Ok(Value::Object(map))
    }
}

earlier_record! {
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
        correct, shed, lost, probes, p99, recovery, cut_short, wanted, armed, followed, rounds,
        control_denied,
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

earlier_named! {
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

/// It had a trial of its own, and is put in when that is read.
impl Unpack for Beside {
    fn unpack(_: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        Err(Damage::new("the load beside it is not part of this row"))
    }
}

impl Unpack for Severity {
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
impl Unpack for Vec<u8> {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let text = value.as_str().ok_or_else(|| Damage::new("not a text"))?;
        text::bytes(text, &Values::default()).map_err(Damage::new)
    }

    fn absent() -> Option<Self> {
        Some(Vec::new())
    }
}

impl Unpack for [u8; 32] {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let digits = value.as_str().unwrap_or_default();
        let byte = |n: usize| u8::from_str_radix(digits.get(2 * n..2 * n + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
        let whole = bytes.filter(|_| digits.len() == 64).and_then(|bytes| bytes.try_into().ok());
        whole.ok_or_else(|| Damage::new("not a digest"))
    }
}

impl Unpack for Day {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let day = value.as_str().and_then(Day::parse);
        day.ok_or_else(|| Damage::new(format!("{value} is not a day")))
    }
}

/// Which, and why.
impl Unpack for Stop {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        let (id, why) = <(String, String)>::unpack(value, found)?;
        let all = [Stop::Interrupted, Stop::Bound(why.clone()), Stop::Wish(why.clone())];
        let mut all = all.into_iter().chain([Stop::Permission(why)]);
        let found = all.find(|stop| stop.id() == id);
        found.ok_or_else(|| Damage::new(format!("{id} stops nothing")))
    }
}

/// How, the number of a code or a signal, and whether a core was dumped.
impl Unpack for Ending {
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
impl Unpack for FailureKind {
    fn unpack(value: &Value, _: &mut StoredHists) -> Result<Self, Damage> {
        let text = value.as_str().unwrap_or_default();
        let found = FailureKind::named(text);
        found.ok_or_else(|| Damage::new(format!("{value} is not a way to fail")))
    }
}

impl Unpack for Case {
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
impl Unpack for Shrunk {
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
    ("answer", Awaited::Response),
    ("end", Awaited::End),
    ("settings", Awaited::Settings),
];
/// Steps without a figure, by theirs.
const PLAIN: [(&str, Move); 7] = [
    ("urgent", Move::Urgent),
    ("half-close", Move::HalfClose),
    ("reset", Move::Reset),
    ("close", Move::Close),
    ("stop-reading", Move::StopReading),
    ("read", Move::Read),
    ("renegotiate", Move::Renegotiate),
];

/// As in the case files: `{"send": "GET …"}`, `{"pause": 5000000000}`, `{"then": "reset"}`.
impl Unpack for Move {
    fn unpack(value: &Value, found: &mut StoredHists) -> Result<Self, Damage> {
        let map = object(value)?;
        let (name, value) =
            map.iter().next().ok_or_else(|| Damage::new("a step without a name"))?;
        let unknown = || Damage::new(format!("{name} {value} is not a step"));
        let word = value.as_str().unwrap_or_default();
        Ok(match name.as_str() {
            "send" => Move::Send(Unpack::unpack(value, found)?),
            "pause" => Move::Pause(Unpack::unpack(value, found)?),
            "sip" => Move::Sip(Unpack::unpack(value, found)?),
            "packet" => Move::Packet(PacketStep::parse(word).map_err(Damage::new)?),
            "await" => {
                let known = AWAITED.into_iter().find(|(name, _)| *name == word);
                Move::Await(known.ok_or_else(unknown)?.1)
            }
            "then" => {
                let known = PLAIN.into_iter().find(|(name, _)| *name == word);
                known.ok_or_else(unknown)?.1
            }
            _ => return Err(unknown()),
        })
    }
}
