//! Parts with their own rows in addition to the record, for searches: measurements with their
//! seconds and histograms, causes, findings.

use crate::hists::StoredHists;
use crate::tree::{Damage, object};
use record::histogram;
use record::run::{Finding, HistogramRecord, RunRecord, SecondRecord, VerdictRecord};
use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, Row, ToSql, params};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use units::Nanos;

/// Position of a measurement among those of its result.
#[derive(Clone, Copy)]
pub(crate) struct TrialPlace<'a> {
    pub(crate) part: &'a str,
    pub(crate) position: usize,
}

/// A running measurement.
pub(crate) const LIVE: &str = "live";
/// State of the machines, for each running fleet measurement.
pub(crate) const AGENTS: &str = "agents";
pub(crate) const RUN: &str = "run";
pub(crate) const STEP: &str = "step";
pub(crate) const SIDES: [&str; 3] = ["before", "after", "third"];
/// The load that ran during a torture.
pub(crate) const BESIDE: &str = "beside";

/// Renders a record as JSON on one line.
pub(crate) fn printed(record: &impl Serialize) -> String {
    serde_json::to_string(record).expect("strings, numbers and lists always serialise")
}

/// Inserts a measurement, replacing an existing one. `record`: that of the run, or of its step of
/// the ramp, as JSON.
pub(crate) fn insert_trial(
    connection: &Connection,
    result: i64,
    place: TrialPlace<'_>,
    record: &str,
    run: &RunRecord,
) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT OR REPLACE INTO trial (result, part, position, body) VALUES (?1, ?2, ?3, ?4)",
        params![result, place.part, place.position as i64, record],
    )?;
    let trial = connection.last_insert_rowid();
    insert_series(connection, trial, &run.series)?;
    if let Some(measured) = &run.measured {
        insert_histograms(connection, trial, &measured.histograms)?;
    }
    insert_lists(connection, result, Some(trial), &run.verdict, &run.findings)
}

/// Stores the seconds of a completed measurement: the figures that have columns; its record
/// contains the others.
fn insert_series(
    connection: &Connection,
    trial: i64,
    series: &[SecondRecord],
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO second (trial, position, at_s, span_s, warm_up, due, succeeded, failed, timed_out, \
         dropped, p50_ns, p90_ns, p99_ns, max_ns, bytes_received) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?;
    let ns = |time: Option<f64>| Nanos::from_secs_f64(time.unwrap_or(0.0)).0 as i64;
    for (position, row) in (0i64..).zip(series) {
        let counts = &row.outcomes;
        statement.execute(params![
            trial,
            position,
            row.at_s,
            row.span_s,
            row.warm_up,
            counts.due as i64,
            counts.succeeded as i64,
            counts.failed as i64,
            counts.timed_out as i64,
            counts.dropped as i64,
            ns(row.response_p50_s),
            ns(row.response_p90_s),
            ns(row.response_p99_s),
            ns(row.response_max_s),
            row.bytes_received as i64,
        ])?;
    }
    Ok(())
}

/// Inserts causes and findings of a trial or, without one, of the result.
pub(crate) fn insert_lists(
    connection: &Connection,
    result: i64,
    trial: Option<i64>,
    verdict: &VerdictRecord,
    findings: &[Finding],
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO cause (result, trial, position, id, figure, text, advice) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (at, cause) in (0i64..).zip(&verdict.causes) {
        let id = cause.id.id();
        statement.execute(params![
            result,
            trial,
            at,
            id,
            cause.figure,
            cause.text,
            cause.advice
        ])?;
    }
    let mut statement = connection.prepare_cached(
        "INSERT INTO finding (result, trial, position, id, confidence, evidence, advice) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (at, found) in (0i64..).zip(findings) {
        let confidence = found.confidence.id();
        let (id, evidence, advice) = (&found.id, &found.evidence, &found.advice);
        statement.execute(params![result, trial, at, id, confidence, evidence, advice])?;
    }
    Ok(())
}

/// A figure of a second with its own column, and its path in the record.
pub(crate) const SECOND_COLUMNS: [(&str, &[&str]); 14] = [
    ("at_s", &["at_s"]),
    ("span_s", &["span_s"]),
    ("warm_up", &["warm_up"]),
    ("due", &["counts", "due"]),
    ("succeeded", &["counts", "succeeded"]),
    ("failed", &["counts", "failed"]),
    ("timed_out", &["counts", "timed_out"]),
    ("dropped", &["counts", "dropped"]),
    ("p50_ns", &["p50"]),
    ("p90_ns", &["p90"]),
    ("p99_ns", &["p99"]),
    ("max_ns", &["max"]),
    ("bytes_received", &["bytes_received"]),
    ("more", &[]),
];

/// Converts a JSON value to SQLite. Whole numbers beyond 63 bits keep their bits; of the numbers
/// that JSON stores as text, infinities become numbers and NaN becomes NULL.
pub(crate) fn scalar(value: &Value, real: bool) -> Sql {
    match value {
        Value::Null => Sql::Null,
        Value::Bool(truth) => Sql::Integer((*truth).into()),
        Value::Number(number) => match number.as_i64().or(number.as_u64().map(|n| n as i64)) {
            Some(whole) => Sql::Integer(whole),
            None => number.as_f64().map_or(Sql::Null, Sql::Real),
        },
        Value::String(text) if real => {
            text.parse().ok().filter(|number: &f64| !number.is_nan()).map_or(Sql::Null, Sql::Real)
        }
        Value::String(text) => Sql::Text(text.clone()),
        other => Sql::Text(other.to_string()),
    }
}

/// Returns the JSON value of a column with a floating-point number; text if the number is not
/// finite.
pub(crate) fn real(number: f64) -> Value {
    serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
}

/// Removes the value at a path from a tree; null if there is none.
pub(crate) fn take(tree: &mut Value, path: &[&str]) -> Value {
    let Some((name, folders)) = path.split_last() else { return Value::Null };
    let folder = folders.iter().try_fold(tree, |tree, name| tree.get_mut(*name));
    let taken = folder.and_then(Value::as_object_mut).and_then(|map| map.remove(*name));
    taken.unwrap_or(Value::Null)
}

/// Restores a value that [`take`] removed.
pub(crate) fn put(map: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [name] => {
            map.insert((*name).to_owned(), value);
        }
        [name, rest @ ..] => {
            let inner = map.entry(*name).or_insert_with(|| Value::Object(Map::new()));
            if let Some(inner) = inner.as_object_mut() {
                put(inner, rest, value);
            }
        }
    }
}

/// Inserts packed seconds as rows from `first` on.
pub(crate) fn insert_seconds(
    connection: &Connection,
    trial: i64,
    first: usize,
    seconds: Vec<Value>,
) -> rusqlite::Result<()> {
    let names: Vec<&str> = SECOND_COLUMNS.iter().map(|(name, _)| *name).collect();
    let marks: Vec<String> = (3..names.len() + 3).map(|n| format!("?{n}")).collect();
    let statement = format!(
        "INSERT OR REPLACE INTO second (trial, position, {}) VALUES (?1, ?2, {})",
        names.join(", "),
        marks.join(", ")
    );
    let mut statement = connection.prepare_cached(&statement)?;
    for (index, mut second) in seconds.into_iter().enumerate() {
        let (_more, columns) = SECOND_COLUMNS.split_last().expect("there are columns");
        let mut values: Vec<Sql> = columns
            .iter()
            .map(|(name, path)| scalar(&take(&mut second, path), name.ends_with("_s")))
            .collect();
        values.push(Sql::Text(second.to_string()));
        let position = (first + index) as i64;
        let keys: [&dyn ToSql; 2] = [&trial, &position];
        let values = values.iter().map(|value| value as &dyn ToSql);
        statement.execute(keys.into_iter().chain(values).collect::<Vec<_>>().as_slice())?;
    }
    Ok(())
}

/// Reads the packed seconds of a trial, in their order.
pub(crate) fn seconds(
    connection: &Connection,
    trial: i64,
) -> rusqlite::Result<Result<Vec<Value>, Damage>> {
    let names: Vec<&str> = SECOND_COLUMNS.iter().map(|(name, _)| *name).collect();
    let statement =
        format!("SELECT {} FROM second WHERE trial = ?1 ORDER BY position", names.join(", "));
    let mut statement = connection.prepare(&statement)?;
    let mut rows = statement.query([trial])?;
    let mut seconds = Vec::new();
    while let Some(row) = rows.next()? {
        match second(row) {
            Ok(second) => seconds.push(second),
            Err(damage) => return Ok(Err(damage)),
        }
    }
    Ok(Ok(seconds))
}

fn second(row: &Row<'_>) -> Result<Value, Damage> {
    let bad = |name: &str| Damage::new(format!("a second's {name}"));
    let more = row.get::<_, String>("more").map_err(|_| bad("more"))?;
    let mut map = match serde_json::from_str(&more) {
        Ok(Value::Object(map)) => map,
        _ => return Err(bad("more")),
    };
    for (name, path) in SECOND_COLUMNS {
        let value = match row.get_ref(name).map_err(|_| bad(name))? {
            ValueRef::Integer(truth) if name == "warm_up" => Value::Bool(truth != 0),
            ValueRef::Integer(whole) => Value::from(whole as u64),
            ValueRef::Real(number) => real(number),
            ValueRef::Null => real(f64::NAN),
            ValueRef::Text(_) | ValueRef::Blob(_) => continue,
        };
        put(&mut map, path, value);
    }
    Ok(Value::Object(map))
}

pub(crate) fn insert_histograms(
    connection: &Connection,
    trial: i64,
    histograms: &BTreeMap<String, HistogramRecord>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT OR REPLACE INTO histogram (trial, name, zeros, counts) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (name, counted) in histograms {
        let (zeros, blob) = histogram::encode(&counted.hist());
        statement.execute(params![trial, name, zeros as i64, blob])?;
    }
    Ok(())
}

pub(crate) fn histograms(
    connection: &Connection,
    trial: i64,
) -> rusqlite::Result<Result<StoredHists, Damage>> {
    let mut statement =
        connection.prepare_cached("SELECT name, zeros, counts FROM histogram WHERE trial = ?1")?;
    let mut rows = statement.query([trial])?;
    let mut found = StoredHists::default();
    while let Some(row) = rows.next()? {
        let (name, zeros): (String, i64) = (row.get(0)?, row.get(1)?);
        let counts: Option<Vec<u8>> = row.get(2)?;
        match histogram::decode(zeros.max(0) as u64, counts.as_deref()) {
            Ok(hist) => found.0.insert(name, hist),
            Err(why) => return Ok(Err(Damage(why))),
        };
    }
    Ok(Ok(found))
}

/// Reads a column with any content: invalid text must not hide other columns or rows.
pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    let value = row.get_ref(column)?;
    Ok(value
        .as_bytes()
        .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(bytes).into()))
}

/// Parses a text column that contains a JSON object.
pub(crate) fn parse(text: &str) -> Result<Value, Damage> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| Damage::new(error.to_string()))?;
    object(&value)?;
    Ok(value)
}
