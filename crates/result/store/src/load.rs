//! Loads a stored result as the record that was stored; for an unfinished one, the known part.

use crate::hists::StoredHists;
use crate::partial::{self, Begun, LiveTrial};
use crate::rows::{self, AGENTS, LIVE, RUN, SIDES, STEP, parse, text};
use crate::tree::{Damage, Unpack, field, object};
use crate::{ResultKind, RunId, Store, StoreError, alive};
use record::compare::CompareRecord;
use record::ramp::RampRecord;
use record::run::RunRecord;
use record::torture::TortureRecord;
use rusqlite::{OptionalExtension, Row, params};
use sample::AgentNow;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Stored result.
#[derive(Clone, Debug)]
pub enum Stored {
    Run(Box<RunRecord>),
    Ramp(Box<RampRecord>),
    Compare(Box<CompareRecord>),
    Torture(Box<TortureRecord>),
}

impl Stored {
    pub fn kind(&self) -> ResultKind {
        match self {
            Stored::Run(_) => ResultKind::Run,
            Stored::Ramp(_) => ResultKind::Ramp,
            Stored::Compare(_) => ResultKind::Compare,
            Stored::Torture(_) => ResultKind::Torture,
        }
    }
}

impl RunId {
    pub(crate) fn new(number: i64, kind: &str) -> RunId {
        RunId { number, kind: ResultKind::from_name(kind) }
    }

    /// Reads a row that begins with the number and the kind.
    fn read(row: &Row<'_>) -> rusqlite::Result<RunId> {
        Ok(RunId::new(row.get(0)?, &text(row, 1)?))
    }
}

impl Store {
    /// Finds a result by id (`run-12`, or its number alone), by tag, or counted from the latest:
    /// `last`, `last~1` for the one before it.
    ///
    /// # Errors
    /// Fails if there is no such result, or the store cannot be read.
    pub fn find(&self, wanted: &str) -> Result<RunId, StoreError> {
        let unknown = |why: String| StoreError::Unknown { wanted: wanted.to_owned(), why };
        if let Some(back) = last(wanted) {
            let back = back.ok_or_else(|| unknown("write last, last~1, last~2, …".into()))?;
            let row = self
                .connection
                .query_row(
                    "SELECT number, kind FROM result ORDER BY number DESC LIMIT 1 OFFSET ?1",
                    [back],
                    RunId::read,
                )
                .optional();
            let found = self.explain_error(row)?.ok_or_else(|| {
                unknown(match back {
                    0 => "nothing is stored yet".into(),
                    _ => "there are fewer results".into(),
                })
            })?;
            return Ok(found);
        }
        let row = self
            .connection
            .query_row(
                "SELECT number, kind FROM result WHERE kind || '-' || number = ?1 OR number = ?2 \
                 UNION ALL SELECT number, kind FROM tag JOIN result ON result = number \
                 WHERE tag.name = ?1",
                params![wanted, wanted.parse::<i64>().ok()],
                RunId::read,
            )
            .optional();
        self.explain_error(row)?.ok_or_else(|| {
            unknown("give an id or a tag that `loadstone runs list` shows, or last".into())
        })
    }

    /// Loads a stored result. For one that is running or was killed: the known part, marked as
    /// interrupted.
    ///
    /// # Errors
    /// Fails if there is no such result, the store cannot be read, or its rows are inconsistent.
    pub fn load(&self, wanted: &str) -> Result<Stored, StoreError> {
        let id = self.find(wanted)?;
        self.load_id(&id)
    }

    pub(crate) fn load_id(&self, id: &RunId) -> Result<Stored, StoreError> {
        // one view of all tables, despite concurrent writes
        let view = self.explain_error(self.connection.unchecked_transaction())?;
        let loaded = self.read_result(id);
        self.explain_error(view.finish())?;
        loaded
    }

    fn read_result(&self, id: &RunId) -> Result<Stored, StoreError> {
        let Some(kind) = id.kind else {
            let select = "SELECT kind FROM result WHERE number = ?1";
            let row = self.connection.query_row(select, [id.number], |row| text(row, 0));
            let kind = self.explain_error(row)?;
            let why = format!("{} is not a kind of results", units::quoted(&kind));
            return Err(self.damaged(id, Damage::new(why)));
        };
        let row = self.connection.query_row(
            "SELECT state, writer, name, plan, environment, started_unix_s, body FROM result \
             WHERE number = ?1",
            [id.number],
            |row| {
                let started: Option<f64> = row.get(5)?;
                let text = |index: usize| text(row, index);
                Ok(([text(0)?, text(1)?, text(2)?, text(3)?, text(4)?, text(6)?], started))
            },
        );
        let ([state, writer, name, plan, environment, body], started_unix_s) =
            self.explain_error(row)?;
        let alive = alive::is_alive(&writer);
        if state == "finished" {
            return self.finished((id, kind), &body);
        }
        if kind == ResultKind::Torture {
            return self.torture(id, &body, Some(alive));
        }
        let damaged = |damage| self.damaged(id, damage);
        let body = parse(&body).map_err(damaged)?;
        let nothing = &mut StoredHists::default();
        let known = object(&body).map_err(damaged)?;
        let environment = parse(&environment).map_err(damaged)?;
        let begun = Begun {
            alive,
            name,
            plan: Unpack::unpack(&Value::String(plan.clone()), nothing).map_err(damaged)?,
            plan_toml: plan,
            environment: Unpack::unpack(&environment, nothing).map_err(damaged)?,
            started_unix_s: started_unix_s.unwrap_or(f64::NAN),
            labels: field(known, "labels", nothing).map_err(damaged)?,
            commands: field(known, "commands", nothing).map_err(damaged)?,
            axis: field(known, "axis", nothing).map_err(damaged)?,
        };
        self.unfinished((id, kind), begun)
    }

    fn finished(&self, (id, kind): (&RunId, ResultKind), body: &str) -> Result<Stored, StoreError> {
        Ok(match kind {
            ResultKind::Run => {
                let missing = || self.damaged(id, Damage::new("its measurement is missing"));
                Stored::Run(Box::new(self.records(id, RUN)?.pop().ok_or_else(missing)?))
            }
            ResultKind::Ramp => {
                let mut ramp: RampRecord = self.record(id, body)?;
                ramp.steps = self.records(id, STEP)?;
                Stored::Ramp(Box::new(ramp))
            }
            ResultKind::Compare => Stored::Compare(Box::new(self.record(id, body)?)),
            ResultKind::Torture => self.torture(id, body, None)?,
        })
    }

    fn unfinished(
        &self,
        (id, kind): (&RunId, ResultKind),
        begun: Begun,
    ) -> Result<Stored, StoreError> {
        let damaged = |damage| self.damaged(id, damage);
        let mut live = Vec::new();
        for (trial, position, body) in self.trials(id, LIVE)? {
            let mut found =
                self.explain_error(rows::histograms(&self.connection, trial))?.map_err(damaged)?;
            let total = parse(&body).map_err(damaged)?;
            let seconds =
                self.explain_error(rows::seconds(&self.connection, trial))?.map_err(damaged)?;
            let seconds = Vec::unpack(&Value::Array(seconds), &mut found).map_err(damaged)?;
            let total = Unpack::unpack(&total, &mut found).map_err(damaged)?;
            live.push(LiveTrial { position, total, seconds });
        }
        Ok(match kind {
            ResultKind::Run => Stored::Run(Box::new(partial::run(begun, live))),
            ResultKind::Ramp => {
                Stored::Ramp(Box::new(partial::ramp(begun, self.records(id, STEP)?)))
            }
            ResultKind::Compare => {
                let sides = SIDES.iter().take(begun.labels.len());
                let sides = sides.map(|part| self.records(id, part)).collect::<Result<_, _>>()?;
                Stored::Compare(Box::new(partial::compare(begun, sides)))
            }
            ResultKind::Torture => unreachable!("a torture has no continuing measurement"),
        })
    }

    /// Returns the state of the machines of a fleet in the last stored second of a running run, or
    /// of a ramp's step; empty without a fleet, or when finished.
    ///
    /// # Errors
    /// Fails like [`Store::load`].
    pub fn agents(&self, wanted: &str) -> Result<Vec<AgentNow>, StoreError> {
        let id = self.find(wanted)?;
        let row = self.connection.query_row(
            "SELECT body FROM trial WHERE result = ?1 AND part = ?2 ORDER BY position DESC LIMIT 1",
            params![id.number, AGENTS],
            |row| text(row, 0),
        );
        let Some(body) = self.explain_error(row.optional())? else { return Ok(Vec::new()) };
        let read = parse(&body)
            .and_then(|body| field(object(&body)?, AGENTS, &mut StoredHists::default()));
        read.map_err(|damage| self.damaged(&id, damage))
    }

    /// Returns the trials of a part in their order, each with its position and body.
    fn trials(&self, id: &RunId, part: &str) -> Result<Vec<(i64, usize, String)>, StoreError> {
        let rows = self
            .connection
            .prepare_cached(
                "SELECT trial, position, body FROM trial WHERE result = ?1 AND part = ?2 \
                 ORDER BY position",
            )
            .and_then(|mut statement| {
                let rows = statement.query_map(params![id.number, part], |row| {
                    Ok((row.get(0)?, row.get(1)?, text(row, 2)?))
                })?;
                rows.collect::<Result<Vec<(i64, i64, String)>, _>>()
            });
        let place =
            |(trial, position, body): (i64, i64, String)| (trial, position.max(0) as usize, body);
        Ok(self.explain_error(rows)?.into_iter().map(place).collect())
    }

    /// Returns the records of a part's measurements, in their order.
    pub(crate) fn records<T: DeserializeOwned>(
        &self,
        id: &RunId,
        part: &str,
    ) -> Result<Vec<T>, StoreError> {
        self.trials(id, part)?.iter().map(|(.., body)| self.record(id, body)).collect()
    }

    pub(crate) fn record<T: DeserializeOwned>(
        &self,
        id: &RunId,
        body: &str,
    ) -> Result<T, StoreError> {
        serde_json::from_str(body).map_err(|error| self.damaged(id, Damage::new(error.to_string())))
    }

    pub(crate) fn damaged(&self, id: &RunId, damage: Damage) -> StoreError {
        let (path, result) = (self.path.clone(), id.to_string());
        StoreError::DamagedResult { path, result, why: damage.0 }
    }
}

/// Parses `last` and `last~n` to n; the inner `None` if n is not a number.
fn last(wanted: &str) -> Option<Option<u32>> {
    match wanted.strip_prefix("last")? {
        "" => Some(Some(0)),
        rest => rest.strip_prefix('~').map(|back| back.parse().ok()),
    }
}
