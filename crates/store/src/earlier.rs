//! Results as versions before schema 3 stored them, and tortures as those before schema 4: each part of a report by
//! its name. They are read once, when their store is brought up to date, and stored anew as records. A name once
//! given stays.

mod tortures;

use self::tortures::Tortured;
use crate::alive;
use crate::hists::StoredHists;
use crate::parts::{self, clear_parts, insert_over, insert_parts};
use crate::rows::{
    AGENTS, BESIDE, LIVE, SIDES, TrialPlace, histograms, insert_trial, parse, printed, put, real,
    seconds, take,
};
use crate::tree::{Damage, Unpack, earlier_named, earlier_record, field, object};
use record::compare::{
    BoundRecord, CompareRecord, Comparison, DifferenceRecord, ProtocolRecord, SideFigures,
    put_together, sentence,
};
use record::ramp::{RampRecord, RampReport, RampStep, RampStepRecord};
use record::run::{
    Driver, DummyRun, Finding, FirstCall, Resolved, RunRecord, RunReport, SloResult, VerdictRecord,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};
use sample::{
    AddressConflict, AgentFacts, BudgetFacts, FleetFacts, HeldFacts, PartMove, PostFacts,
    StackFacts, SutRow, SutSeries,
};
use serde_json::{Map, Value};
use stats::compare::Scale;
use stats::curve::{
    Capacity, CapacityEnd, Curve, Hysteresis, Knee, Overload, OverloadShape, Point, Purpose, Usl,
};
use stats::{Cause, Measurement, Verdict};

earlier_record! {
    FleetFacts { server, agents, moved, budgets }
    PartMove { from, to, slots, of, at_s, refused }
    BudgetFacts { host, most_per_s, asked_per_s }
    AgentFacts {
        id, host, build, labels, workers, weight, offered, lost, lost_at_s, ending, p50, p99, slip_p99,
        busy, clock_ahead_s, clock_bound, clock_drift_s, first_call_s, state, causes,
    }
    Measurement {
        total, series, window, elapsed, intended, intended_span, connections_peak, interrupted,
        aborted,
    }
    Verdict { state, causes }
    Cause { id, figure, text, advice }
    Driver { io, threads, cpu_user_s, cpu_system_s, spin_s, busy, dummy }
    DummyRun { call_s, taken_unix_s }
    Resolved { host, addresses, took }
    FirstCall {
        status, http_version, length, server, took, failure, way_out, excerpt, negotiated, alt_svc,
    }
    SloResult { objective, figure, met, without_lag, undecided }
    Finding { id, confidence, evidence, advice }
    RunReport {
        name, plan, plan_toml, started_unix_s, environment, measurement, verdict, driver, resolved,
        first_call, runs, slo, findings, sut, path, stack, held, posts, fleet,
    }
    HeldFacts {
        wanted, stood, failed, peak, open, closed, reset, bytes, setup, age_min, age_p50, age_max,
    }
    PostFacts { answered, unanswered, recorded, missing, unknown, trouble }
    StackFacts {
        sent, received, retransmitted, syn_retransmitted, timeouts, recoveries, out_of_order,
        duplicate, challenges, resets_sent, resets_received, established, tuples_out, refused, missed,
        batched,
        conflict,
    }
    SutSeries { name, cores, memory_max, descriptors_max, accept_queue_max, rows, trouble }
    SutRow {
        at_s, cpu_cores, memory_bytes, threads, descriptors, switches_per_s, listen_overflows,
        accept_queue, half_open,
    }
    Point {
        level, offered_per_s, achieved_per_s, goodput_per_s, concurrency, response_mean_s,
        service_mean_s, p99_s, failure_share, met, client_limited, window_s,
    }
    Knee { at, rule }
    Capacity { at, confidence, objectives, how }
    Overload { shape, kept_share, at_level, recovery_s }
    Usl { g, a, b, n_max, x_max, residual, points }
    Hysteresis { loss_share, at_level }
    Curve {
        peak, knee, kneedle, power_at, capacity, overload, usl, hysteresis, predicted_per_s, notes,
    }
    RampStep { label, purpose, repeat, point, settled_s, run }
    RampReport {
        name, axis, labels, plan, plan_toml, started_unix_s, environment, steps, curves, ended_early,
        findings,
    }
    ProtocolRecord {
        version, calls_per_s, response_p50_s, response_p99_s, first_byte_p50_s, connections_per_run,
        connect_p50_s, tls_p50_s, bytes_sent_per_call, bytes_received_per_call,
        streams_per_connection, coded_sent_per_call, coded_received_per_call,
    }
    BoundRecord { text, crossed, why }
}

earlier_named! {
    CapacityEnd {
        Bracketed = "bracketed", NeverMissed = "never-missed", NeverMet = "never-met",
        ClientLimited = "client-limited",
    }
    OverloadShape { Unseen = "unseen", Flat = "flat", Sag = "sag", Collapse = "collapse" }
    Purpose {
        Up = "up", Down = "down", Search = "search", Confirm = "confirm", Overload = "overload",
        Recovery = "recovery",
    }
}

/// Versions before schema 3 knew of none, and said nothing.
impl Unpack for AddressConflict {
    fn unpack(_: &Value, _: &mut StoredHists) -> Result<AddressConflict, Damage> {
        Err(Damage::new("an address that two have, which no earlier version told of"))
    }
}

/// Why a result could not be read.
enum Unread {
    Sql(rusqlite::Error),
    Damaged(Damage),
}

impl From<rusqlite::Error> for Unread {
    fn from(error: rusqlite::Error) -> Unread {
        Unread::Sql(error)
    }
}

impl From<Damage> for Unread {
    fn from(damage: Damage) -> Unread {
        Unread::Damaged(damage)
    }
}

/// A result as it was read: its trials, and its body where that is another one now.
#[derive(Default)]
struct Read {
    trials: Vec<(String, usize, String, RunRecord)>,
    body: Option<String>,
    torture: Option<Tortured>,
}

/// Since this schema a body of a finished result, and of a measurement that is over, is its record.
const OF_RECORDS: i64 = 3;
/// Since this schema those of tortures are records too.
const TORTURES_OF_RECORDS: i64 = 4;

/// Whether a store of this version has results in an earlier form.
pub(crate) fn is_of(version: i64) -> bool {
    (1..TORTURES_OF_RECORDS).contains(&version)
}

/// A result that a process of an earlier version is still writing.
pub(crate) fn still_written(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let mut statement =
        connection.prepare("SELECT number, writer FROM result WHERE state <> 'finished'")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let unfinished: Vec<(i64, String)> = rows.collect::<Result<_, _>>()?;
    Ok(unfinished.into_iter().find(|(_, writer)| alive::is_alive(writer)).map(|(number, _)| number))
}

/// Stores every result of a store of this version that is not its record yet anew as that. One that cannot be read stays as it is: its number, and why.
pub(crate) fn bring_over(
    connection: &Connection,
    version: i64,
) -> rusqlite::Result<Vec<(i64, String)>> {
    let mut left = Vec::new();
    let results: Vec<i64> = connection
        .prepare("SELECT number FROM result WHERE ?1 OR kind = 'torture' ORDER BY number")?
        .query_map([version < OF_RECORDS], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for number in results {
        match read(connection, number, version) {
            Ok(found) => found.store(connection, number)?,
            // the disk, not what stands on it
            Err(Unread::Sql(error)) if error.sqlite_error_code().is_some() => return Err(error),
            Err(Unread::Sql(error)) => left.push((number, error.to_string())),
            Err(Unread::Damaged(damage)) => left.push((number, damage.0)),
        }
    }
    Ok(left)
}

impl Read {
    fn store(&self, connection: &Connection, result: i64) -> rusqlite::Result<()> {
        for (part, position, record, run) in &self.trials {
            let place = TrialPlace { part, position: *position };
            insert_trial(connection, result, place, record, run)?;
        }
        if self.torture.is_some() {
            // they are numbered anew: one that stood behind a gap would stay as it was
            clear_parts(connection, result)?;
        }
        match &self.torture {
            Some(Tortured::Whole(torture)) => insert_parts(connection, result, torture)?,
            Some(Tortured::Cut(_, over)) => {
                for (position, over) in over.iter().enumerate() {
                    insert_over(connection, result, position, over)?;
                }
            }
            None => {}
        }
        if let Some(body) = &self.body {
            let update = "UPDATE result SET body = ?2 WHERE number = ?1";
            connection.execute(update, params![result, body])?;
        }
        Ok(())
    }
}

fn read(connection: &Connection, result: i64, version: i64) -> Result<Read, Unread> {
    let nothing = &mut StoredHists::default();
    let whole = "SELECT kind, state = 'finished', body FROM result WHERE number = ?1";
    let (kind, finished, body): (String, bool, String) =
        connection.query_row(whole, [result], |row| row.try_into())?;
    let mut body = parse(&body)?;
    let labels: Vec<String> = field(object(&body)?, "labels", nothing)?;
    let mut found = Read::default();
    if version < OF_RECORDS {
        found.trials = trials(connection, result, &labels)?;
    }
    match kind.as_str() {
        "torture" => {
            let beside = match found.trials.iter().find(|(part, ..)| part == BESIDE) {
                Some((.., run)) => Some(run.clone()),
                None => beside(connection, result)?,
            };
            let torture = tortures::read(connection, result, (&body, finished), beside)?;
            let (Tortured::Whole(record) | Tortured::Cut(record, _)) = &torture;
            found.body = Some(parts::body(record));
            found.torture = Some(torture);
        }
        "ramp" if finished => {
            put_lists(connection, &mut body, result, None)?;
            let verdict: Verdict = field(object(&body)?, "verdict", nothing)?;
            let verdict = VerdictRecord::of(&verdict);
            let ramp = RampRecord::of(&RampReport::unpack(&body, nothing)?);
            found.body = Some(printed(&RampRecord { verdict, ..ramp }));
        }
        "compare" if finished => {
            let side = |part: &&str| {
                let own = found.trials.iter().filter(|(of, ..)| of == part);
                own.map(|(.., run)| run.clone()).collect()
            };
            let runs = SIDES.iter().take(labels.len()).map(side).collect();
            found.body = Some(printed(&compare(object(&body)?, labels, runs)?));
        }
        _ => {}
    }
    Ok(found)
}

/// The load that went on beside a torture, as a record already.
fn beside(connection: &Connection, result: i64) -> Result<Option<RunRecord>, Unread> {
    let body = "SELECT body FROM trial WHERE result = ?1 AND part = ?2";
    let body = connection.query_row(body, params![result, BESIDE], |row| row.get::<_, String>(0));
    let read = |body: String| serde_json::from_str(&body);
    let run = body.optional()?.map(read).transpose();
    run.map_err(|error| Damage::new(format!("the load beside it: {error}")).into())
}

/// The measurements of a result.
fn trials(
    connection: &Connection,
    result: i64,
    labels: &[String],
) -> Result<Vec<(String, usize, String, RunRecord)>, Unread> {
    let rows: Vec<(i64, String, i64, String)> = connection
        .prepare_cached(
            "SELECT trial, part, position, body FROM trial WHERE result = ?1 AND part NOT IN (?2, ?3) \
             ORDER BY part, position",
        )?
        .query_map(params![result, LIVE, AGENTS], |row| row.try_into())?
        .collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    for (trial, part, position, body) in rows {
        let Ok(position) = usize::try_from(position) else {
            return Err(Damage::new("a measurement's position is below zero").into());
        };
        let (record, run) = self::trial(connection, (result, trial), &body, position, labels)?;
        found.push((part, position, record, run));
    }
    Ok(found)
}

/// The record of a run, or of the step that it is part of, as JSON; and the run's.
fn trial(
    connection: &Connection,
    (result, trial): (i64, i64),
    body: &str,
    position: usize,
    labels: &[String],
) -> Result<(String, RunRecord), Unread> {
    let mut body = parse(body)?;
    let hists = &mut histograms(connection, trial)??;
    let (mut run, mut step) = (take(&mut body, &["run"]), take(&mut body, &["step"]));
    put_lists(connection, &mut run, result, Some(trial))?;
    if let Some(run) = run.as_object_mut() {
        put(run, &["measurement", "series"], Value::Array(seconds(connection, trial)??));
    }
    let Some(map) = step.as_object_mut() else {
        let run = RunRecord::of(&RunReport::unpack(&run, hists)?);
        return Ok((printed(&run), run));
    };
    map.insert("run".to_owned(), run);
    let step = RampStepRecord::of(&RampStep::unpack(&step, hists)?, position + 1, labels);
    Ok((printed(&step), step.run))
}

/// Causes and findings go back to where they were in the tree.
fn put_lists(
    connection: &Connection,
    tree: &mut Value,
    result: i64,
    trial: Option<i64>,
) -> rusqlite::Result<()> {
    let causes = ["id", "figure", "text", "advice"];
    let causes = listed(connection, "cause", causes, result, trial)?;
    let findings = ["id", "confidence", "evidence", "advice"];
    let findings = listed(connection, "finding", findings, result, trial)?;
    if let Some(tree) = tree.as_object_mut() {
        if tree.contains_key("verdict") {
            put(tree, &["verdict", "causes"], causes);
        }
        put(tree, &["findings"], findings);
    }
    Ok(())
}

/// Rows of a table as a list of objects, whose fields are the columns.
fn listed(
    connection: &Connection,
    table: &str,
    columns: [&'static str; 4],
    result: i64,
    trial: Option<i64>,
) -> rusqlite::Result<Value> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {} FROM {table} WHERE result = ?1 AND trial IS ?2 ORDER BY position",
        columns.join(", ")
    ))?;
    let object = |row: &rusqlite::Row<'_>| {
        let mut map = Map::new();
        for (index, name) in columns.into_iter().enumerate() {
            let value = match row.get_ref(index)? {
                ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
                ValueRef::Real(number) => real(number),
                ValueRef::Integer(whole) => real(whole as f64),
                ValueRef::Null | ValueRef::Blob(_) => real(f64::NAN),
            };
            map.insert(name.to_owned(), value);
        }
        Ok(Value::Object(map))
    };
    statement.query_map(params![result, trial], object)?.collect()
}

/// A comparison: its figures as they were found then.
fn compare(
    map: &Map<String, Value>,
    labels: Vec<String>,
    runs: Vec<Vec<RunRecord>>,
) -> Result<CompareRecord, Damage> {
    let nothing = &mut StoredHists::default();
    let comparison = Comparison {
        name: field(map, "name", nothing)?,
        labels,
        commands: field(map, "commands", nothing)?,
        started_unix_s: field(map, "started_unix_s", nothing)?,
        runs,
        order: field(map, "order", nothing)?,
        bounds: Vec::new(),
        cautions: field(map, "cautions", nothing)?,
        ended_early: field(map, "ended_early", nothing)?,
    };
    let further = map.get("further").and_then(Value::as_array).into_iter().flatten();
    let further = further.map(object).collect::<Result<Vec<_>, _>>()?;
    let sides = ('B'..).zip(std::iter::once(map).chain(further));
    let found: Result<Vec<SideFigures>, Damage> =
        sides.map(|(letter, side)| found(letter, side)).collect();
    let mut record = put_together(&comparison, found?);
    record.confidence = field(map, "confidence", nothing)?;
    record.resamples = field(map, "resamples", nothing)?;
    // the earliest comparisons were stored without them
    let protocols: Vec<ProtocolRecord> = field(map, "protocols", nothing)?;
    if !protocols.is_empty() {
        record.protocols = protocols;
    }
    Ok(record)
}

/// What was found of a side against the first.
fn found(letter: char, side: &Map<String, Value>) -> Result<SideFigures, Damage> {
    let differences = side.get("differences").and_then(Value::as_array).into_iter().flatten();
    let differences = differences.map(|one| difference(letter, object(one)?));
    let bounds = field(side, "bounds", &mut StoredHists::default())?;
    Ok((differences.collect::<Result<_, _>>()?, bounds))
}

fn difference(letter: char, map: &Map<String, Value>) -> Result<DifferenceRecord, Damage> {
    let nothing = &mut StoredHists::default();
    let points = field(map, "points", nothing)?;
    let number = |name| field(map, name, &mut StoredHists::default());
    let mut one = DifferenceRecord {
        figure: field(map, "figure", nothing)?,
        before: number("before")?,
        after: number("after")?,
        scale: if points { Scale::Points } else { Scale::Ratio },
        change: number("relative")?,
        low: number("low")?,
        high: number("high")?,
        noise: number("noise")?,
        detectable: number("detectable")?,
        effect: number("effect")?,
        p_value: number("p_value")?,
        judgement: field(map, "judgement", nothing)?,
        text: String::new(),
    };
    one.text = sentence(letter, &one);
    Ok(one)
}
