//! Results of kind torture. A record is stored in parts, as they become known: the record of each
//! case and of each probe in a row, everything else in the body of the result. The concurrent load
//! is also a trial, as of a run.

use crate::begin::FirstRow;
use crate::list::Summary;
use crate::parts::{body, insert_over, insert_parts};
use crate::rows::{BESIDE, TrialPlace, printed, text};
use crate::tree::Damage;
use crate::write::{FinishedResult, insert_run};
use crate::{ResultKind, RunId, Store, StoreError, Stored};
use record::torture::{OverCase, TortureRecord};
use rusqlite::TransactionBehavior;
use serde::de::DeserializeOwned;

impl Store {
    /// Creates the entry of a torture; `torture`: everything known before anything is sent.
    ///
    /// # Errors
    /// Fails with a [`StoreError`].
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

    /// Stores a finished case, the `index`th of its run, during the run.
    ///
    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn torture_case(
        &mut self,
        id: &RunId,
        index: usize,
        over: &OverCase,
    ) -> Result<(), StoreError> {
        let kept = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            insert_over(transaction, id.number, index, over)
        });
        self.explain_error(kept)
    }

    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn finish_torture(
        &mut self,
        id: &RunId,
        torture: &TortureRecord,
    ) -> Result<(), StoreError> {
        let summary = Summary::from_torture(torture);
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

    /// Reads a torture run from the body of its row. `unfinished`: it did not complete, and whether
    /// its program is still running.
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

    /// Returns the records in the rows of a table, in their order.
    fn parts<T: DeserializeOwned>(&self, id: &RunId, table: &str) -> Result<Vec<T>, StoreError> {
        let statement = format!("SELECT more FROM {table} WHERE result = ?1 ORDER BY position");
        let rows = self.connection.prepare_cached(&statement).and_then(|mut statement| {
            let rows = statement.query_map([id.number], |row| text(row, 0))?;
            rows.collect::<Result<Vec<String>, _>>()
        });
        let read = |(position, more): (usize, &String)| {
            serde_json::from_str(more).map_err(|error| {
                self.damaged(id, Damage::new(format!("{table} {position}: {error}")))
            })
        };
        self.explain_error(rows)?.iter().enumerate().map(read).collect()
    }
}
