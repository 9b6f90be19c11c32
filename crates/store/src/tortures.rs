//! Results of the kind torture. What is known of the run as a whole is the body of its row; its cases
//! and the probes of the server's health have rows of their own, and the load that went on beside it
//! is a trial as of a run.

mod records;

use crate::begin::FirstRow;
use crate::hists::{Shelf, StoredHists};
use crate::list::Summary;
use crate::rows::{BESIDE, TrialPlace, parse, put, scalar, take};
use crate::tree::{Damage, Pack, field};
use crate::write::{FinishedResult, insert_run};
use crate::{ResultKind, RunId, Store, StoreError, Stored};
use record::torture::{Beside, Report};
use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, Row, ToSql, TransactionBehavior};
use serde_json::{Value, json};
use torture::result::{CaseResult, RunResult};
use units::Nanos;

/// Parts of a torture with rows of their own: the table, and for each column but the last its path
/// in the record. The last column has what is left.
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

/// Where the body of a torture says what the load beside it felt.
const FELT: &str = "felt";

impl Store {
    /// Makes room for a torture: of `report` all that is known before anything is sent.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn begin_torture(
        &mut self,
        report: &Report,
        command_line: &str,
    ) -> Result<RunId, StoreError> {
        let row = FirstRow {
            name: &report.target,
            command_line,
            plan: "",
            environment: &report.environment.pack(&mut Shelf::default()),
            started_unix_s: report.started_unix_s,
            body: &body(report),
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
        case: &CaseResult,
    ) -> Result<(), StoreError> {
        let packed = vec![case.pack(&mut Shelf::default())];
        let kept = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            CASES.insert(transaction, id.number, index, packed)
        });
        self.told(kept)
    }

    /// # Errors
    /// See [`StoreError`].
    pub fn finish_torture(&mut self, id: &RunId, report: &Report) -> Result<(), StoreError> {
        let summary = Summary::of_torture(report);
        let mut ending = FinishedResult::new(None, summary, Some(&report.target));
        ending.body = body(report).to_string();
        self.finish(id, &ending, |connection| {
            CASES.insert(connection, id.number, 0, packed(&report.result.cases))?;
            PROBES.insert(connection, id.number, 0, packed(&report.result.probes))?;
            match &report.beside {
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
        body: &Value,
        unfinished: Option<bool>,
    ) -> Result<Stored, StoreError> {
        let damaged = |damage| self.damaged(id.number, damage);
        let found = &mut StoredHists::default();
        let mut report = Report::unpack(body, found).map_err(damaged)?;
        let cases = self.told(CASES.read(&self.connection, id.number))?.map_err(damaged)?;
        let probes = self.told(PROBES.read(&self.connection, id.number))?.map_err(damaged)?;
        report.result.cases = Pack::unpack(&Value::Array(cases), found).map_err(damaged)?;
        report.result.probes = Pack::unpack(&Value::Array(probes), found).map_err(damaged)?;
        let map = crate::tree::object(body).map_err(damaged)?;
        // everything else may be absent: this never is
        if !map.contains_key("target") {
            return Err(damaged(Damage::new("it does not say which server it tested")));
        }
        if let Some(felt) = field(map, FELT, found).map_err(damaged)? {
            let run = self.records(id, BESIDE)?.pop();
            let run = run.ok_or_else(|| damaged(Damage::new("the load beside it is missing")))?;
            report.beside = Some(Beside { felt, run });
        }
        if let Some(alive) = unfinished {
            cut_short(&mut report, alive);
        }
        Ok(Stored::Torture(Box::new(report)))
    }
}

/// Says of what is known that it is not the whole.
fn cut_short(report: &mut Report, alive: bool) {
    let cases = match report.result.cases.len() {
        1 => "1 case".to_owned(),
        n => format!("{n} cases"),
    };
    let why = match alive {
        true => format!("it is still running after {cases}"),
        false => format!("its program was killed after {cases}"),
    };
    let cases = report.result.cases.iter();
    report.result.took = cases.fold(Nanos::ZERO, |all, case| all + case.took);
    report.result.ended_early = Some(why);
    report.result.interrupted = true;
}

/// All but what has rows of its own.
fn body(report: &Report) -> Value {
    let whole = &report.result;
    let result = RunResult {
        plain: whole.plain.clone(),
        habits: whole.habits.clone(),
        baseline: whole.baseline,
        post_trouble: whole.post_trouble.clone(),
        cases: Vec::new(),
        slots_named: whole.slots_named,
        probes: Vec::new(),
        shrunk: whole.shrunk.clone(),
        kept: whole.kept.clone(),
        ended_early: whole.ended_early.clone(),
        interrupted: whole.interrupted,
        stopped: whole.stopped.clone(),
        took: whole.took,
        server: whole.server.clone(),
    };
    let without = Report {
        target: report.target.clone(),
        addresses: report.addresses.clone(),
        class: report.class,
        started_unix_s: report.started_unix_s,
        seed: report.seed,
        fail_on: report.fail_on,
        environment: report.environment.clone(),
        result,
        waivers: report.waivers.clone(),
        beside: None,
        path: report.path.clone(),
    };
    let mut body = without.pack(&mut Shelf::default());
    if let (Some(body), Some(beside)) = (body.as_object_mut(), &report.beside) {
        body.insert(FELT.to_owned(), beside.felt.pack(&mut Shelf::default()));
    }
    body
}

fn packed<T: Pack>(all: &[T]) -> Vec<Value> {
    all.iter().map(|one| one.pack(&mut Shelf::default())).collect()
}

impl PartTable {
    /// Inserts records as rows from `first` on.
    fn insert(
        &self,
        connection: &Connection,
        result: i64,
        first: usize,
        records: Vec<Value>,
    ) -> rusqlite::Result<()> {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        let marks: Vec<String> = (3..names.len() + 4).map(|n| format!("?{n}")).collect();
        let statement = format!(
            "INSERT OR REPLACE INTO {} (result, position, {}, more) VALUES (?1, ?2, {})",
            self.table,
            names.join(", "),
            marks.join(", ")
        );
        let mut statement = connection.prepare_cached(&statement)?;
        for (index, mut record) in records.into_iter().enumerate() {
            let mut values = vec![Sql::Integer(result), Sql::Integer((first + index) as i64)];
            let columns = self.columns.iter();
            values.extend(columns.map(|(_, path)| scalar(&take(&mut record, path), false)));
            values.push(Sql::Text(record.to_string()));
            let values: Vec<&dyn ToSql> = values.iter().map(|value| value as &dyn ToSql).collect();
            statement.execute(values.as_slice())?;
        }
        Ok(())
    }

    /// The records of a result, in their order.
    fn read(
        &self,
        connection: &Connection,
        result: i64,
    ) -> rusqlite::Result<Result<Vec<Value>, Damage>> {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        let statement = format!(
            "SELECT more, {} FROM {} WHERE result = ?1 ORDER BY position",
            names.join(", "),
            self.table
        );
        let mut statement = connection.prepare(&statement)?;
        let mut rows = statement.query([result])?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            match self.record(row) {
                Ok(record) => records.push(record),
                Err(damage) => return Ok(Err(damage)),
            }
        }
        Ok(Ok(records))
    }

    fn record(&self, row: &Row<'_>) -> Result<Value, Damage> {
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
        Ok(json!(map))
    }
}
