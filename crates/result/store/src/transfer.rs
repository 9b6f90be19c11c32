//! Copies results from store to store. An exported file is a store itself: one file, to be opened
//! by its name, imported elsewhere, or read with SQLite's own tools.

use crate::rows::text;
use crate::{RunId, Store, StoreError, StorePlace};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use std::path::Path;

/// Summary of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Name in the other store, and name here.
    pub taken: Vec<(RunId, RunId)>,
    /// Results that were here already, by their name here.
    pub known: Vec<RunId>,
    /// Tags that another result has here.
    pub tags_left: Vec<String>,
    /// Notes for the user about opening the other store, as in [`Store::notes`].
    pub notes: Vec<String>,
}

impl Store {
    /// Writes results to a new file, with their tags.
    ///
    /// # Errors
    /// Fails if the file exists already, or cannot be written.
    pub fn export(&mut self, path: &Path, ids: &[RunId]) -> Result<(), StoreError> {
        if path.exists() {
            let why = "the file exists already; give a new name".to_owned();
            return Err(StoreError::Refused { path: path.to_owned(), why });
        }
        if path.as_os_str() == ":memory:" {
            let why = "a store in memory ends with this program; name a file".to_owned();
            return Err(StoreError::Refused { path: path.to_owned(), why });
        }
        let other = Store::open(&StorePlace::File(path.to_owned()))?;
        // finally a single file, without its log
        other.explain_error(other.connection.query_row(
            "PRAGMA journal_mode = DELETE",
            [],
            |_| Ok(()),
        ))?;
        drop(other);
        let numbers: Vec<i64> = ids.iter().map(|id| id.number).collect();
        let copied = self.attached(path, |store| {
            store.copy_all(Way { from: "main", to: "other" }, &numbers).map(|_| ())
        });
        if copied.is_err() {
            // a partial file is not an export
            std::fs::remove_file(path).ok();
        }
        copied
    }

    /// Imports all results of another store, each under a new name.
    ///
    /// # Errors
    /// Fails if the file is not a store or cannot be read, or the store here cannot be written.
    pub fn import(&mut self, path: &Path) -> Result<Imported, StoreError> {
        let mut there = Store::open_to_read(&StorePlace::File(path.to_owned()))?;
        if there.schema()? != self.schema()? {
            return Err(StoreError::Foreign(path.to_owned()));
        }
        let notes = std::mem::take(&mut there.notes);
        drop(there);
        let imported = self.attached(path, |store| {
            let numbers = store.explain_error(numbers(&store.connection))?;
            store.copy_all(Way { from: "other", to: "main" }, &numbers)
        })?;
        Ok(Imported { notes, ..imported })
    }

    /// Returns the names and definitions of everything in the file: of a store of ours, always the
    /// same.
    fn schema(&self) -> Result<Vec<(String, String, Option<String>)>, StoreError> {
        let rows = self
            .connection
            .prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")
            .and_then(|mut statement| {
                let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
                statement.query_map([], row)?.collect()
            });
        self.explain_error(rows)
    }

    fn attached<T>(
        &mut self,
        path: &Path,
        work: impl FnOnce(&mut Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let name = path.to_string_lossy();
        let attached = self.connection.execute("ATTACH DATABASE ?1 AS other", [name.as_ref()]);
        attached.map_err(|error| StoreError::new(path, &error))?;
        let done = work(self);
        let detached = self.explain_error(self.connection.execute_batch("DETACH DATABASE other"));
        let done = done?;
        detached?;
        Ok(done)
    }

    fn copy_all(&mut self, way: Way, numbers: &[i64]) -> Result<Imported, StoreError> {
        let copied = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            let mut rows = Vec::new();
            for number in numbers {
                rows.push(way.copy(transaction, *number)?);
            }
            Ok(rows)
        });
        let mut imported = Imported::default();
        for copied in self.explain_error(copied)? {
            let here = RunId::new(copied.number, &copied.kind);
            match copied.was {
                None => imported.known.push(here),
                Some(was) => imported.taken.push((RunId::new(was, &copied.kind), here)),
            }
            imported.tags_left.extend(copied.tags_left);
        }
        Ok(imported)
    }
}

fn numbers(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare("SELECT number FROM other.result ORDER BY number")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Source and destination among the attached stores, by SQLite's names.
#[derive(Clone, Copy)]
struct Way {
    from: &'static str,
    to: &'static str,
}

struct Copied {
    kind: String,
    /// Number in the destination.
    number: i64,
    /// Former number; `None` if the result already existed.
    was: Option<i64>,
    tags_left: Vec<String>,
}

impl Way {
    fn copy(self, connection: &Connection, was: i64) -> rusqlite::Result<Copied> {
        let Way { from, to } = self;
        let (uid, kind): (String, String) = connection.query_row(
            &format!("SELECT uid, kind FROM {from}.result WHERE number = ?1"),
            [was],
            |row| Ok((row.get(0)?, text(row, 1)?)),
        )?;
        let known = connection
            .query_row(&format!("SELECT number FROM {to}.result WHERE uid = ?1"), [&uid], |row| {
                row.get(0)
            })
            .optional()?;
        if let Some(number) = known {
            return Ok(Copied { kind, number, was: None, tags_left: Vec::new() });
        }
        // the number it had, if none as high was ever given there
        let free: i64 = connection.query_row(
            &format!(
                "SELECT coalesce(max(seq), 0) + 1 FROM {to}.sqlite_sequence WHERE name = 'result'"
            ),
            [],
            |row| row.get(0),
        )?;
        let number = was.max(free);
        const SAME: &str = "uid, kind, state, name, command_line, plan, environment, \
            started_unix_s, verdict, interrupted, summary, body";
        // a copy of a running result has no writer
        connection.execute(
            &format!(
                "INSERT INTO {to}.result (number, writer, {SAME}) \
                 SELECT ?1, '', {SAME} FROM {from}.result WHERE number = ?2"
            ),
            [number, was],
        )?;
        self.copy_trials(connection, was, number)?;
        for (table, columns) in [("torture_case", TORTURE_CASE), ("probe", PROBE)] {
            connection.execute(
                &format!(
                    "INSERT INTO {to}.{table} (result, {columns}) \
                     SELECT ?1, {columns} FROM {from}.{table} WHERE result = ?2"
                ),
                [number, was],
            )?;
        }
        self.copy_lists(connection, (was, None), (number, None))?;
        let tags_left = self.copy_tags(connection, was, number)?;
        Ok(Copied { kind, number, was: Some(was), tags_left })
    }

    fn copy_trials(self, connection: &Connection, was: i64, number: i64) -> rusqlite::Result<()> {
        let Way { from, to } = self;
        let query = format!("SELECT trial FROM {from}.trial WHERE result = ?1 ORDER BY trial");
        let mut statement = connection.prepare(&query)?;
        let trials: Vec<i64> =
            statement.query_map([was], |row| row.get(0))?.collect::<Result<_, _>>()?;
        for trial in trials {
            connection.execute(
                &format!(
                    "INSERT INTO {to}.trial (result, part, position, body) \
                     SELECT ?1, part, position, body FROM {from}.trial WHERE trial = ?2"
                ),
                [number, trial],
            )?;
            let copy = connection.last_insert_rowid();
            for (table, columns) in [("second", SECOND), ("histogram", "name, zeros, counts")] {
                connection.execute(
                    &format!(
                        "INSERT INTO {to}.{table} (trial, {columns}) \
                         SELECT ?1, {columns} FROM {from}.{table} WHERE trial = ?2"
                    ),
                    [copy, trial],
                )?;
            }
            self.copy_lists(connection, (was, Some(trial)), (number, Some(copy)))?;
        }
        Ok(())
    }

    /// Copies the causes and findings of a trial, or of the result itself.
    fn copy_lists(
        self,
        connection: &Connection,
        was: (i64, Option<i64>),
        now: (i64, Option<i64>),
    ) -> rusqlite::Result<()> {
        let Way { from, to } = self;
        for (table, columns) in [
            ("cause", "position, id, figure, text, advice"),
            ("finding", "position, id, confidence, evidence, advice"),
        ] {
            connection.execute(
                &format!(
                    "INSERT INTO {to}.{table} (result, trial, {columns}) \
                     SELECT ?1, ?2, {columns} FROM {from}.{table} WHERE result = ?3 AND trial IS ?4"
                ),
                params![now.0, now.1, was.0, was.1],
            )?;
        }
        Ok(())
    }

    /// Copies the tags. Returns the tags that were not imported because other results have them.
    fn copy_tags(
        self,
        connection: &Connection,
        was: i64,
        number: i64,
    ) -> rusqlite::Result<Vec<String>> {
        let Way { from, to } = self;
        connection.execute(
            &format!(
                "INSERT OR IGNORE INTO {to}.tag (name, result) \
                 SELECT name, ?1 FROM {from}.tag WHERE result = ?2"
            ),
            [number, was],
        )?;
        let left = format!(
            "SELECT name FROM {from}.tag WHERE result = ?1 AND name NOT IN \
             (SELECT name FROM {to}.tag WHERE result = ?2) ORDER BY name"
        );
        let mut statement = connection.prepare(&left)?;
        statement.query_map([was, number], |row| row.get(0))?.collect()
    }
}

const TORTURE_CASE: &str = "position, id, version, outcome, skipped, took_ns, more";
const PROBE: &str = "position, kind, due_ns, over_ns, seen, case_id, more";
const SECOND: &str = "position, at_s, span_s, warm_up, due, succeeded, failed, timed_out, dropped, \
    p50_ns, p90_ns, p99_ns, max_ns, bytes_received, more";
