//! Results of the kind torture. A record is stored in parts, as they are known: the record of each case and of
//! each probe in its row, all else in the body of the result. The load that went on beside it is a trial as well,
//! as of a run.

use crate::begin::FirstRow;
use crate::list::Summary;
use crate::rows::{BESIDE, TrialPlace, printed};
use crate::tree::Damage;
use crate::write::{FinishedResult, insert_run};
use crate::{ResultKind, RunId, Store, StoreError, Stored};
use record::torture::{CaseRecord, OverCase, ProbeRecord, TortureRecord};
use rusqlite::{Connection, TransactionBehavior, params};
use serde::de::DeserializeOwned;
use units::Nanos;

impl Store {
    /// Makes room for a torture: of `torture` all that is known before anything is sent.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn begin_torture(
        &mut self,
        torture: &TortureRecord,
        command_line: &str,
    ) -> Result<RunId, StoreError> {
        let row = FirstRow {
            name: &torture.target,
            command_line,
            plan: "",
            environment: &printed(&torture.environment),
            started_unix_s: torture.started_unix_s,
            body: &body(torture),
        };
        self.begin_row(ResultKind::Torture, &row)
    }

    /// A case, the `index`th of its run, that is over while the run goes on.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn torture_case(
        &mut self,
        id: &RunId,
        index: usize,
        over: &OverCase,
    ) -> Result<(), StoreError> {
        let kept = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            insert_over(transaction, id.number, index, over)
        });
        self.told(kept)
    }

    /// # Errors
    /// See [`StoreError`].
    pub fn finish_torture(
        &mut self,
        id: &RunId,
        torture: &TortureRecord,
    ) -> Result<(), StoreError> {
        let summary = Summary::of_torture(torture);
        let mut ending = FinishedResult::new(None, summary, Some(&torture.target));
        ending.body = body(torture);
        self.finish(id, &ending, |connection| {
            insert_parts(connection, id.number, torture)?;
            match &torture.beside {
                None => Ok(()),
                Some(beside) => {
                    let place = TrialPlace { part: BESIDE, position: 0 };
                    insert_run(connection, id.number, place, &beside.run)
                }
            }
        })
    }

    /// A torture from its row's body. `unfinished`: it did not come to its end, and whether its
    /// program is still at work.
    pub(crate) fn torture(
        &self,
        id: &RunId,
        body: &str,
        unfinished: Option<bool>,
    ) -> Result<Stored, StoreError> {
        let mut torture: TortureRecord = self.record(id, body)?;
        let torture = match unfinished {
            None => {
                torture.cases = self.parts(id, "torture_case")?;
                torture.probe_series = self.parts(id, "probe")?;
                torture
            }
            Some(true) => torture.cut_short(self.parts(id, "torture_case")?, "it is still running"),
            Some(false) => {
                torture.cut_short(self.parts(id, "torture_case")?, "its program was killed")
            }
        };
        Ok(Stored::Torture(Box::new(torture)))
    }

    /// The records in the rows of a table, in their order.
    fn parts<T: DeserializeOwned>(&self, id: &RunId, table: &str) -> Result<Vec<T>, StoreError> {
        let statement = format!("SELECT more FROM {table} WHERE result = ?1 ORDER BY position");
        let rows = self.connection.prepare_cached(&statement).and_then(|mut statement| {
            let rows = statement.query_map([id.number], |row| row.get(0))?;
            rows.collect::<Result<Vec<String>, _>>()
        });
        let read = |(position, more): (usize, &String)| {
            serde_json::from_str(more).map_err(|error| {
                self.damaged(id, Damage::new(format!("{table} {position}: {error}")))
            })
        };
        self.told(rows)?.iter().enumerate().map(read).collect()
    }
}

/// All but what has rows of its own.
pub(crate) fn body(torture: &TortureRecord) -> String {
    printed(&TortureRecord { cases: Vec::new(), probe_series: Vec::new(), ..torture.clone() })
}

/// What has rows of its own, in the place of what stood there.
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

/// `record`: of the case, or of one that is over while others go on.
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
