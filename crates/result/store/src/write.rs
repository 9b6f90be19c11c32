//! Updates after the beginning: the seconds of the measurement, its parts as each completes, and
//! the finished report, which replaces everything before it.

use crate::hists::HistogramTree;
use crate::list::Summary;
use crate::parts::clear_parts;
use crate::rows::{self, AGENTS, LIVE, RUN, SIDES, STEP, TrialPlace, printed};
use crate::tree::Pack;
use crate::{RunId, Store, StoreError};
use record::compare::CompareRecord;
use record::ramp::{RampRecord, RampStepRecord};
use record::run::RunRecord;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use sample::AgentNow;
use serde_json::{Value, json};
use stats::{Second, Snapshot, State};

/// The known part of a running measurement, built on the collector's thread: it is cheaper than a
/// copy of the snapshot.
#[derive(Debug)]
pub(crate) struct LiveSecond {
    second: Value,
    /// Counts of the whole measurement so far; omitted if the last ones are recent enough.
    total: Option<(Value, HistogramTree)>,
    /// The machines of a fleet; null without a fleet.
    agents: Value,
}

impl LiveSecond {
    pub(crate) fn new(
        second: &Second,
        total: Option<&Snapshot>,
        agents: &[AgentNow],
    ) -> LiveSecond {
        let pack = |total: &Snapshot| {
            let mut histogram_tree = HistogramTree::default();
            (total.pack(&mut histogram_tree), histogram_tree)
        };
        let histogram_tree = &mut HistogramTree::default();
        let agents = match agents {
            [] => Value::Null,
            agents => agents.iter().map(|agent| agent.pack(histogram_tree)).collect(),
        };
        LiveSecond { second: second.pack(histogram_tree), total: total.map(pack), agents }
    }
}

impl Store {
    /// Stores a second of the measurement `index` (from 0: the repeat of a run, the step of a ramp)
    /// in progress, with all counts of it so far.
    ///
    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn second(
        &mut self,
        id: &RunId,
        index: usize,
        second: &Second,
        total: &Snapshot,
    ) -> Result<(), StoreError> {
        self.keep_known(id, index, vec![LiveSecond::new(second, Some(total), &[])])
    }

    /// Stores several seconds at once.
    pub(crate) fn keep_known(
        &mut self,
        id: &RunId,
        index: usize,
        known: Vec<LiveSecond>,
    ) -> Result<(), StoreError> {
        let kept = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            let trial = live_trial(transaction, id.number, index)?;
            let first: i64 = transaction.query_row(
                "SELECT coalesce(max(position) + 1, 0) FROM second WHERE trial = ?1",
                [trial],
                |row| row.get(0),
            )?;
            let (mut seconds, mut totals, mut agents) = (Vec::new(), Vec::new(), Value::Null);
            for known in known {
                seconds.push(known.second);
                totals.push(known.total);
                agents = if known.agents.is_null() { agents } else { known.agents };
            }
            rows::insert_seconds(transaction, trial, first as usize, seconds)?;
            if !agents.is_null() {
                transaction.execute(
                    "INSERT OR REPLACE INTO trial (result, part, position, body) \
                     VALUES (?1, ?2, ?3, ?4)",
                    params![id.number, AGENTS, index as i64, json!({ AGENTS: agents }).to_string()],
                )?;
            }
            if let Some((body, histogram_tree)) = totals.into_iter().flatten().last() {
                transaction.execute(
                    "UPDATE trial SET body = ?2 WHERE trial = ?1",
                    params![trial, body.to_string()],
                )?;
                rows::insert_histograms(transaction, trial, &histogram_tree.hists)?;
            }
            Ok(())
        });
        self.explain_error(kept)
    }

    /// Stores a finished step of a ramp, during the ramp.
    ///
    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn step(
        &mut self,
        id: &RunId,
        index: usize,
        step: &RampStepRecord,
    ) -> Result<(), StoreError> {
        let place = TrialPlace { part: STEP, position: index };
        let kept = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            end_live(transaction, id.number, Some(index))?;
            rows::insert_trial(transaction, id.number, place, &printed(step), &step.run)
        });
        self.explain_error(kept)
    }

    /// Stores a finished run of one side (0 or 1) of a comparison, during the comparison.
    ///
    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn side(
        &mut self,
        id: &RunId,
        side: usize,
        index: usize,
        run: &RunRecord,
    ) -> Result<(), StoreError> {
        let place = TrialPlace { part: SIDES[side.min(SIDES.len() - 1)], position: index };
        let kept = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            end_live(transaction, id.number, None)?;
            insert_run(transaction, id.number, place, run)
        });
        self.explain_error(kept)
    }

    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn finish_run(&mut self, id: &RunId, run: &RunRecord) -> Result<(), StoreError> {
        let ending = FinishedResult::new(Some(run.verdict.state), Summary::from_run(run), None);
        self.finish(id, &ending, |connection| {
            insert_run(connection, id.number, TrialPlace { part: RUN, position: 0 }, run)
        })
    }

    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn finish_ramp(&mut self, id: &RunId, ramp: &RampRecord) -> Result<(), StoreError> {
        let state = Some(ramp.verdict.state);
        let mut ending = FinishedResult::new(state, Summary::from_ramp(ramp), Some(&ramp.name));
        ending.body = printed(&RampRecord { steps: Vec::new(), ..ramp.clone() });
        self.finish(id, &ending, |connection| {
            for (position, step) in ramp.steps.iter().enumerate() {
                let place = TrialPlace { part: STEP, position };
                rows::insert_trial(connection, id.number, place, &printed(step), &step.run)?;
            }
            rows::insert_lists(connection, id.number, None, &ramp.verdict, &ramp.findings)
        })
    }

    /// Stores a finished comparison.
    /// `runs`: of each side, after the figures.
    ///
    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn finish_compare(
        &mut self,
        id: &RunId,
        compare: &CompareRecord,
        runs: &[Vec<RunRecord>],
    ) -> Result<(), StoreError> {
        let state = compare.runs().map(|run| run.state).max().unwrap_or(State::Valid);
        let summary = Summary::from_compare(compare);
        let mut ending = FinishedResult::new(Some(state), summary, Some(&compare.name));
        ending.body = printed(compare);
        self.finish(id, &ending, |connection| {
            for (part, runs) in SIDES.into_iter().zip(runs) {
                for (position, run) in runs.iter().enumerate() {
                    insert_run(connection, id.number, TrialPlace { part, position }, run)?;
                }
            }
            Ok(())
        })
    }

    pub(crate) fn finish(
        &mut self,
        id: &RunId,
        ending: &FinishedResult<'_>,
        insert: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let done = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            for table in ["trial", "cause", "finding"] {
                let statement = format!("DELETE FROM {table} WHERE result = ?1");
                transaction.execute(&statement, [id.number])?;
            }
            clear_parts(transaction, id.number)?;
            insert(transaction)?;
            transaction.execute(
                "UPDATE result SET state = 'finished', name = coalesce(?2, name), verdict = ?3, interrupted = ?4, \
                 summary = ?5, body = ?6 WHERE number = ?1",
                params![
                    id.number,
                    ending.name,
                    ending.state.map(State::id),
                    ending.summary.interrupted,
                    ending.summary.pack(&mut HistogramTree::default()).to_string(),
                    ending.body,
                ],
            )
        });
        match self.explain_error(done)? {
            0 => Err(StoreError::Unknown {
                wanted: id.to_string(),
                why: "it was deleted while it ran".into(),
            }),
            _ => Ok(()),
        }
    }
}

/// Fields of a finished result as a whole.
pub(crate) struct FinishedResult<'a> {
    /// Name; `None` for the name at its start.
    name: Option<&'a str>,
    /// State; `None` for measurements without one.
    state: Option<State>,
    summary: Summary,
    /// JSON: its record, without the parts that have rows.
    pub(crate) body: String,
}

impl<'a> FinishedResult<'a> {
    pub(crate) fn new(
        state: Option<State>,
        summary: Summary,
        name: Option<&'a str>,
    ) -> FinishedResult<'a> {
        FinishedResult { name, state, summary, body: "{}".to_owned() }
    }
}

fn live_trial(connection: &Connection, result: i64, index: usize) -> rusqlite::Result<i64> {
    let known = connection
        .query_row(
            "SELECT trial FROM trial WHERE result = ?1 AND part = ?2 AND position = ?3",
            params![result, LIVE, index as i64],
            |row| row.get(0),
        )
        .optional()?;
    if let Some(trial) = known {
        return Ok(trial);
    }
    connection.execute(
        "INSERT INTO trial (result, part, position, body) VALUES (?1, ?2, ?3, '{}')",
        params![result, LIVE, index as i64],
    )?;
    Ok(connection.last_insert_rowid())
}

/// Deletes the running state of a measurement; without an index, of all.
fn end_live(connection: &Connection, result: i64, index: Option<usize>) -> rusqlite::Result<()> {
    connection.execute(
        "DELETE FROM trial WHERE result = ?1 AND part IN (?2, ?4) AND (?3 IS NULL OR position = ?3)",
        params![result, LIVE, index.map(|index| index as i64), AGENTS],
    )?;
    Ok(())
}

pub(crate) fn insert_run(
    connection: &Connection,
    result: i64,
    place: TrialPlace<'_>,
    run: &RunRecord,
) -> rusqlite::Result<()> {
    rows::insert_trial(connection, result, place, &printed(run), run)
}
