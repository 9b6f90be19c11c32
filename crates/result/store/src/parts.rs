//! The parts that a torture's record is stored in: its cases and its probes, a row each, and the rest.

use crate::rows::printed;
use record::torture::{CaseRecord, OverCase, ProbeRecord, TortureRecord};
use rusqlite::{Connection, params};
use units::Nanos;

/// Returns everything except the parts with their own rows.
pub(crate) fn body(torture: &TortureRecord) -> String {
    printed(&TortureRecord { cases: Vec::new(), probe_series: Vec::new(), ..torture.clone() })
}

/// Removes the parts with their own rows.
pub(crate) fn clear_parts(connection: &Connection, result: i64) -> rusqlite::Result<()> {
    for table in ["torture_case", "probe"] {
        connection.execute(&format!("DELETE FROM {table} WHERE result = ?1"), [result])?;
    }
    Ok(())
}

/// Restores the parts with their own rows.
pub(crate) fn insert_parts(
    connection: &Connection,
    result: i64,
    torture: &TortureRecord,
) -> rusqlite::Result<()> {
    for (position, case) in torture.cases.iter().enumerate() {
        insert_case(connection, (result, position), case, &printed(case))?;
    }
    for (position, probe) in torture.probe_series.iter().enumerate() {
        insert_probe(connection, (result, position), probe)?;
    }
    Ok(())
}

pub(crate) fn insert_over(
    connection: &Connection,
    result: i64,
    position: usize,
    over: &OverCase,
) -> rusqlite::Result<()> {
    insert_case(connection, (result, position), &over.case, &printed(over))
}

/// Inserts a case. `record`: of the case, or of one that has ended while others continue.
fn insert_case(
    connection: &Connection,
    (result, position): (i64, usize),
    case: &CaseRecord,
    record: &str,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT OR REPLACE INTO torture_case (result, position, id, version, outcome, skipped, \
         took_ns, more) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let (outcome, took) = (case.outcome.id(), ns(case.elapsed_s));
    let place = position as i64;
    statement.execute(params![
        result,
        place,
        case.id,
        case.version,
        outcome,
        case.skipped,
        took,
        record
    ])?;
    Ok(())
}

fn insert_probe(
    connection: &Connection,
    (result, position): (i64, usize),
    probe: &ProbeRecord,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT OR REPLACE INTO probe (result, position, kind, due_ns, over_ns, seen, case_id, more) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let (kind, seen) = (probe.kind_id(), probe.seen_id());
    let (due, over) = (ns(probe.due_s), ns(probe.over_s));
    let (place, record) = (position as i64, printed(probe));
    statement.execute(params![result, place, kind, due, over, seen, probe.case, record])?;
    Ok(())
}

fn ns(seconds: f64) -> i64 {
    Nanos::from_secs_f64(seconds).0 as i64
}
