//! The tables, version by version. docs/decisions has the reasons.

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// SQLite's `application_id` of a store: the letters `LdSt`.
pub(crate) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"LdSt");

/// Migrates a store from version n to n + 1, starting with an empty one. A released step is never
/// changed.
pub(crate) const STEPS: &[&str] = &[FIRST];

const FIRST: &str = "
CREATE TABLE result (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,            -- the same in every store that it is copied to
    kind TEXT NOT NULL,                  -- run, ramp or compare
    state TEXT NOT NULL,                 -- running or finished; running without its writer: killed
    writer TEXT NOT NULL,                -- the process that writes it: boot, pid, start
    name TEXT NOT NULL,
    command_line TEXT NOT NULL,          -- secrets masked
    plan TEXT NOT NULL,                  -- TOML, secrets masked
    environment TEXT NOT NULL,           -- JSON
    started_unix_s REAL NOT NULL,
    verdict TEXT,                        -- VALID, DEGRADED, INVALID; NULL while it runs
    interrupted INTEGER NOT NULL DEFAULT 0,
    summary TEXT,                        -- JSON: the figures of a list
    body TEXT NOT NULL                   -- JSON: what a ramp or a comparison has beside its trials
) STRICT;
CREATE INDEX result_by_start ON result (started_unix_s);

CREATE TABLE tag (
    name TEXT PRIMARY KEY,
    result INTEGER NOT NULL REFERENCES result (number) ON DELETE CASCADE
) STRICT;

-- A measurement: the one of a run, a step of a ramp, a run of a comparison's side; or, with the part
-- 'live', what is known of one that is going on.
CREATE TABLE trial (
    trial INTEGER PRIMARY KEY AUTOINCREMENT,
    result INTEGER NOT NULL REFERENCES result (number) ON DELETE CASCADE,
    part TEXT NOT NULL,                  -- live, run, step, before or after
    position INTEGER NOT NULL,           -- from 0 within its part
    body TEXT NOT NULL,                  -- JSON: its report without what has rows of its own
    UNIQUE (result, part, position)
) STRICT;

CREATE TABLE second (
    trial INTEGER NOT NULL REFERENCES trial (trial) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    at_s REAL,                           -- from the start of the measured phase
    span_s REAL,
    warm_up INTEGER NOT NULL,
    due INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    timed_out INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    p50_ns INTEGER NOT NULL,             -- response times
    p90_ns INTEGER NOT NULL,
    p99_ns INTEGER NOT NULL,
    max_ns INTEGER NOT NULL,
    bytes_received INTEGER NOT NULL,
    more TEXT,                           -- JSON: its other figures; NULL once its record has them
    PRIMARY KEY (trial, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE histogram (
    trial INTEGER NOT NULL REFERENCES trial (trial) ON DELETE CASCADE,
    name TEXT NOT NULL,                  -- its path in the trial's body
    zeros INTEGER NOT NULL,              -- recordings of zero
    counts BLOB,                         -- the others: HdrHistogram V2, nanoseconds
    PRIMARY KEY (trial, name)
) STRICT, WITHOUT ROWID;

-- Causes of a verdict and findings; of a trial, or, without one, of the result as a whole.
CREATE TABLE cause (
    result INTEGER NOT NULL REFERENCES result (number) ON DELETE CASCADE,
    trial INTEGER REFERENCES trial (trial) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    id TEXT NOT NULL,
    figure REAL,                         -- NULL: not a number
    text TEXT NOT NULL,
    advice TEXT NOT NULL
) STRICT;
CREATE INDEX cause_by_result ON cause (result, trial, position);
CREATE INDEX cause_by_trial ON cause (trial);

CREATE TABLE finding (
    result INTEGER NOT NULL REFERENCES result (number) ON DELETE CASCADE,
    trial INTEGER REFERENCES trial (trial) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    id TEXT NOT NULL,
    confidence TEXT NOT NULL,
    evidence TEXT NOT NULL,
    advice TEXT NOT NULL
) STRICT;
CREATE INDEX finding_by_result ON finding (result, trial, position);
CREATE INDEX finding_by_trial ON finding (trial);

-- Results of the kind torture: their cases and the probes of the server's health.
CREATE TABLE torture_case (
    result INTEGER NOT NULL REFERENCES result (number) ON DELETE CASCADE,
    position INTEGER NOT NULL,           -- from 0, in the order of the report
    id TEXT NOT NULL,                    -- S-07
    version INTEGER NOT NULL,            -- of the case
    outcome TEXT NOT NULL,               -- pass, fail, denied, …
    skipped TEXT,                        -- why
    took_ns INTEGER NOT NULL,
    more TEXT NOT NULL,                  -- JSON: its exchanges and everything else
    PRIMARY KEY (result, position)
) STRICT;

CREATE TABLE probe (
    result INTEGER NOT NULL REFERENCES result (number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,                  -- new or keep
    due_ns INTEGER NOT NULL,             -- from the start of the run
    over_ns INTEGER NOT NULL,            -- until its response ended, or it was given up
    seen TEXT NOT NULL,                  -- correct, shed or lost
    case_id TEXT NOT NULL,               -- under way then; empty before the first
    more TEXT NOT NULL,                  -- JSON: its other figures
    PRIMARY KEY (result, position)
) STRICT, WITHOUT ROWID;
";

/// Returns the schema version after all steps.
pub(crate) fn latest(steps: &[&str]) -> i64 {
    steps.len() as i64
}

/// Returns `user_version` and `application_id`, and whether there is any table.
pub(crate) fn identity(connection: &Connection) -> rusqlite::Result<(i64, i32, bool)> {
    let number = |pragma: &str| {
        connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i64>(0))
    };
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok((number("user_version")?, number("application_id")? as i32, tables > 0))
}

/// Applies the missing migration steps in one transaction: all of them or none. A concurrent
/// program may have applied them already.
pub(crate) fn migrate_schema(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    let (version, ..) = identity(&transaction)?;
    for step in steps.iter().skip(version.max(0) as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", latest(steps))?;
    transaction.commit()
}
