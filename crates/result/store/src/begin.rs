//! The start of a result: the facts known before anything was measured.

use crate::hists::HistogramTree;
use crate::tree::Pack;
use crate::{ResultKind, RunId, Store, StoreError, alive};
use plan::{Plan, Secrets};
use rusqlite::{TransactionBehavior, params};
use sample::Environment;
use serde_json::json;
use stats::curve::Axis;

/// Initial fields of a result.
#[derive(Clone, Debug)]
pub struct Beginning<'a> {
    /// Name as in the report: the plan's name, or the URL without its password.
    pub name: &'a str,
    /// Plan, whose secrets are masked before it is stored.
    pub plan: &'a Plan,
    /// Command line without secrets; see [`crate::masked_command`].
    pub command_line: &'a str,
    pub environment: &'a Environment,
    /// Start in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// Names of the targets of a ramp, or of the two sides of a comparison.
    pub labels: &'a [String],
    /// Commands that start the servers of a comparison, one per side.
    pub commands: &'a [Option<String>],
    /// Unit of a ramp's levels.
    pub axis: Axis,
}

/// Initial fields of a result's row.
pub(crate) struct FirstRow<'a> {
    pub(crate) name: &'a str,
    pub(crate) command_line: &'a str,
    /// Secrets masked; empty where no plan was followed.
    pub(crate) plan: &'a str,
    /// Environment as JSON, like the body.
    pub(crate) environment: &'a str,
    pub(crate) started_unix_s: f64,
    pub(crate) body: &'a str,
}

impl Store {
    /// Creates a result and returns its name. Until it is finished it counts as running, or as
    /// killed once this process has ended.
    ///
    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn begin(
        &mut self,
        kind: ResultKind,
        beginning: &Beginning<'_>,
    ) -> Result<RunId, StoreError> {
        let histogram_tree = &mut HistogramTree::default();
        let body = json!({
            "labels": beginning.labels,
            "commands": beginning.commands,
            "axis": beginning.axis.pack(histogram_tree),
        });
        let row = FirstRow {
            name: beginning.name,
            command_line: beginning.command_line,
            plan: &plan::to_toml(beginning.plan, Secrets::Masked),
            environment: &beginning.environment.pack(histogram_tree).to_string(),
            started_unix_s: beginning.started_unix_s,
            body: &body.to_string(),
        };
        self.begin_row(kind, &row)
    }

    pub(crate) fn begin_row(
        &mut self,
        kind: ResultKind,
        row: &FirstRow<'_>,
    ) -> Result<RunId, StoreError> {
        let begun = self.in_transaction(TransactionBehavior::Immediate, |transaction| {
            transaction.execute(
                "INSERT INTO result (uid, kind, state, writer, name, command_line, plan, environment, \
                 started_unix_s, body) VALUES (lower(hex(randomblob(16))), ?1, 'running', ?2, ?3, ?4, \
                 ?5, ?6, ?7, ?8)",
                params![
                    kind.id(),
                    alive::this_process(),
                    row.name,
                    row.command_line,
                    row.plan,
                    row.environment,
                    row.started_unix_s,
                    row.body,
                ],
            )?;
            Ok(transaction.last_insert_rowid())
        });
        self.explain_error(begun).map(|number| RunId { number, kind: Some(kind) })
    }

    /// Runs `work` in a transaction: all of it is stored, or nothing.
    pub(crate) fn in_transaction<T>(
        &mut self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}
