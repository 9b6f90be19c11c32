//! What comes after the beginning: the seconds of what is measured, its parts as each is whole, and
//! the finished report, which takes the place of everything before it.

use crate::hists::Shelf;
use crate::list::Summary;
use crate::rows::{self, CAUSES, FINDINGS, Owner, take};
use crate::tree::Pack;
use crate::{RunId, Store, StoreError};
use record::compare::CompareReport;
use record::ramp::{RampReport, RampStep};
use record::run::RunReport;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use sample::AgentNow;
use serde_json::{Map, Value, json};
use stats::{Second, Snapshot, State};

/// What is known of a measurement that is going on, made on the collector's thread: it costs less
/// than a copy of the snapshot.
#[derive(Debug)]
pub(crate) struct LiveSecond {
    second: Value,
    /// Of the whole measurement up to here; left out where the last one is fresh enough.
    total: Option<(Value, Shelf)>,
    /// The machines of a fleet; null where there is none.
    agents: Value,
}

impl LiveSecond {
    pub(crate) fn new(
        second: &Second,
        total: Option<&Snapshot>,
        agents: &[AgentNow],
    ) -> LiveSecond {
        let pack = |total: &Snapshot| {
            let mut shelf = Shelf::default();
            (total.pack(&mut shelf), shelf)
        };
        let shelf = &mut Shelf::default();
        let agents = match agents {
            [] => Value::Null,
            agents => agents.iter().map(|agent| agent.pack(shelf)).collect(),
        };
        LiveSecond { second: second.pack(shelf), total: total.map(pack), agents }
    }
}

/// A measurement's place among those of its result.
#[derive(Clone, Copy)]
pub(crate) struct TrialPlace<'a> {
    pub(crate) part: &'a str,
    pub(crate) position: usize,
}

pub(crate) const LIVE: &str = "live";
/// Beside each live one of a fleet: its machines, as they stand.
pub(crate) const AGENTS: &str = "agents";
pub(crate) const RUN: &str = "run";
pub(crate) const STEP: &str = "step";
pub(crate) const SIDES: [&str; 3] = ["before", "after", "third"];
/// The load that went on beside a torture.
pub(crate) const BESIDE: &str = "beside";

impl Store {
    /// A second of the measurement `index` (from 0: the repeat of a run, the step of a ramp) that is
    /// going on, and all that was counted in it so far.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn second(
        &mut self,
        id: &RunId,
        index: usize,
        second: &Second,
        total: &Snapshot,
    ) -> Result<(), StoreError> {
        self.keep_known(id, index, vec![LiveSecond::new(second, Some(total), &[])])
    }

    /// Several seconds at once.
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
            if let Some((body, shelf)) = totals.into_iter().flatten().last() {
                transaction.execute(
                    "UPDATE trial SET body = ?2 WHERE trial = ?1",
                    params![trial, body.to_string()],
                )?;
                rows::insert_histograms(transaction, trial, shelf)?;
            }
            Ok(())
        });
        self.told(kept)
    }

    /// A step of a ramp that is over, while the ramp goes on.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn step(&mut self, id: &RunId, index: usize, step: &RampStep) -> Result<(), StoreError> {
        let place = TrialPlace { part: STEP, position: index };
        let kept = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            end_live(transaction, id.number, Some(index))?;
            let mut shelf = Shelf::default();
            let tree = step.pack(&mut shelf);
            insert_trial(transaction, id.number, place, split_run(tree), shelf)
        });
        self.told(kept)
    }

    /// A run of one side (0 or 1) of a comparison that is over, while the comparison goes on.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn side(
        &mut self,
        id: &RunId,
        side: usize,
        index: usize,
        run: &RunReport,
    ) -> Result<(), StoreError> {
        let place = TrialPlace { part: SIDES[side.min(SIDES.len() - 1)], position: index };
        let kept = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            end_live(transaction, id.number, None)?;
            insert_run(transaction, id.number, place, run)
        });
        self.told(kept)
    }

    /// # Errors
    /// See [`StoreError`].
    pub fn finish_run(&mut self, id: &RunId, report: &RunReport) -> Result<(), StoreError> {
        let summary = Summary::of_run(report);
        self.finish(
            id,
            &FinishedResult::new(Some(report.verdict.state), summary, &report.name),
            |connection| {
                insert_run(connection, id.number, TrialPlace { part: RUN, position: 0 }, report)
            },
        )
    }

    /// # Errors
    /// See [`StoreError`].
    pub fn finish_ramp(&mut self, id: &RunId, report: &RampReport) -> Result<(), StoreError> {
        let state = Some(report.verdict.state);
        let mut ending = FinishedResult::new(state, Summary::of_ramp(report), &report.name);
        let without = RampReport { steps: Vec::new(), ..report.clone() };
        ending.body = without.pack(&mut Shelf::default());
        self.finish(id, &ending, |connection| {
            for (position, step) in report.steps.iter().enumerate() {
                let mut shelf = Shelf::default();
                let tree = step.pack(&mut shelf);
                let place = TrialPlace { part: STEP, position };
                insert_trial(connection, id.number, place, split_run(tree), shelf)?;
            }
            Ok(())
        })
    }

    /// # Errors
    /// See [`StoreError`].
    pub fn finish_compare(&mut self, id: &RunId, report: &CompareReport) -> Result<(), StoreError> {
        let states = report.runs.iter().flatten().map(|run| run.verdict.state);
        let state = states.max().unwrap_or(State::Valid);
        let mut ending =
            FinishedResult::new(Some(state), Summary::of_compare(report), &report.name);
        let without = CompareReport { runs: Vec::new(), ..report.clone() };
        ending.body = without.pack(&mut Shelf::default());
        self.finish(id, &ending, |connection| {
            for (part, runs) in SIDES.into_iter().zip(&report.runs) {
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
        let mut body = ending.body.clone();
        let causes = take(&mut body, &["verdict", "causes"]);
        let findings = take(&mut body, &["findings"]);
        let done = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            for table in ["trial", "cause", "finding", "torture_case", "probe"] {
                let statement = format!("DELETE FROM {table} WHERE result = ?1");
                transaction.execute(&statement, [id.number])?;
            }
            insert(transaction)?;
            let owner = Owner { result: id.number, trial: None };
            CAUSES.insert(transaction, owner, &causes)?;
            FINDINGS.insert(transaction, owner, &findings)?;
            transaction.execute(
                "UPDATE result SET state = 'finished', name = ?2, verdict = ?3, interrupted = ?4, \
                 summary = ?5, body = ?6 WHERE number = ?1",
                params![
                    id.number,
                    ending.name,
                    ending.state.map(State::id),
                    ending.summary.interrupted,
                    ending.summary.pack(&mut Shelf::default()).to_string(),
                    body.to_string(),
                ],
            )
        });
        match self.told(done)? {
            0 => Err(StoreError::Unknown {
                wanted: id.to_string(),
                why: "it was deleted while it ran".into(),
            }),
            _ => Ok(()),
        }
    }
}

/// What is said of a result as a whole when it is finished.
pub(crate) struct FinishedResult<'a> {
    name: &'a str,
    /// `None` where a measurement is not what it is.
    state: Option<State>,
    summary: Summary,
    pub(crate) body: Value,
}

impl<'a> FinishedResult<'a> {
    pub(crate) fn new(state: Option<State>, summary: Summary, name: &'a str) -> FinishedResult<'a> {
        FinishedResult { name, state, summary, body: json!({}) }
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

/// Forgets what was known of a measurement while it went on; without an index, of all.
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
    run: &RunReport,
) -> rusqlite::Result<()> {
    let mut shelf = Shelf::default();
    let run = run.pack(&mut shelf);
    insert_trial(connection, result, place, (Value::Null, run), shelf)
}

/// A packed step as what it says of its run, and the run.
fn split_run(mut step: Value) -> (Value, Value) {
    let run = take(&mut step, &["run"]);
    (step, run)
}

/// `step` is what stands around the run in a ramp; null elsewhere. A step of the same place is
/// replaced.
fn insert_trial(
    connection: &Connection,
    result: i64,
    place: TrialPlace<'_>,
    (step, mut run): (Value, Value),
    shelf: Shelf,
) -> rusqlite::Result<()> {
    let seconds = take(&mut run, &["measurement", "series"]);
    let causes = take(&mut run, &["verdict", "causes"]);
    let findings = take(&mut run, &["findings"]);
    let mut body = Map::new();
    body.insert("step".to_owned(), step);
    body.insert("run".to_owned(), run);
    connection.execute(
        "INSERT OR REPLACE INTO trial (result, part, position, body) VALUES (?1, ?2, ?3, ?4)",
        params![result, place.part, place.position as i64, Value::Object(body).to_string()],
    )?;
    let trial = connection.last_insert_rowid();
    let seconds = match seconds {
        Value::Array(seconds) => seconds,
        _ => Vec::new(),
    };
    rows::insert_seconds(connection, trial, 0, seconds)?;
    rows::insert_histograms(connection, trial, shelf)?;
    let owner = Owner { result, trial: Some(trial) };
    CAUSES.insert(connection, owner, &causes)?;
    FINDINGS.insert(connection, owner, &findings)
}
