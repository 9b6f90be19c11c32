//! `loadstone.torture-judge/1`: kept conversations judged again.

use super::ids;
use crate::words::printable;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use torture::judge::{Judgement, TestOutcome};

/// The schema that is written.
pub const SCHEMA: &str = "loadstone.torture-judge/1";
/// Characters of a version that are shown.
const VERSION_MAX: usize = 40;

/// A conversation that was judged again.
#[derive(Clone, Debug)]
pub struct Rejudged {
    /// Path of its transcript.
    pub file: String,
    /// Version of the program that had it.
    pub kept_by: String,
    pub case: String,
    pub name: String,
    /// Versions of the case: then, and now if the case still exists.
    pub versions: (u32, Option<u32>),
    pub then: Judgement,
    /// Outcome now; `None` if the case judges by code, or no longer exists.
    pub now: Option<Judgement>,
}

/// Stored conversations judged again without sending anything: `loadstone torture judge --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct RejudgedRecord {
    pub schema: String,
    /// Version of the program that judged.
    pub version: String,
    /// Conversations that could be judged.
    pub judged: u64,
    /// Conversations with a changed outcome.
    pub otherwise: u64,
    /// Cases and programs whose version has changed.
    pub notes: Vec<String>,
    pub conversations: Vec<ConversationRecord>,
}

/// One conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ConversationRecord {
    /// The path of its transcript.
    pub file: String,
    pub case: String,
    pub version_then: u32,
    /// Null: this program has no such case.
    pub version_now: Option<u32>,
    /// The version of the program that recorded it.
    pub kept_by: String,
    pub name: String,
    /// The outcome.
    #[serde(with = "ids::outcome")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::outcome::schema"))]
    pub then: TestOutcome,
    /// Null: cannot be judged from the stored data.
    #[serde(with = "ids::outcome_or_none")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "ids::outcome_or_none::schema")
    )]
    pub now: Option<TestOutcome>,
    /// Reaction of the server, by the later judgment.
    pub seen: String,
    pub why: String,
}

impl RejudgedRecord {
    pub fn new(rows: &[Rejudged]) -> RejudgedRecord {
        let conversations: Vec<ConversationRecord> =
            rows.iter().map(ConversationRecord::new).collect();
        let count = |is: fn(&ConversationRecord) -> bool| {
            conversations.iter().filter(|row| is(row)).count() as u64
        };
        RejudgedRecord {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            judged: count(|row| row.now.is_some()),
            otherwise: count(ConversationRecord::differs),
            notes: notes(&conversations),
            conversations,
        }
    }
}

impl ConversationRecord {
    fn new(row: &Rejudged) -> ConversationRecord {
        let shown = row.now.as_ref().unwrap_or(&row.then);
        ConversationRecord {
            file: row.file.clone(),
            case: row.case.clone(),
            version_then: row.versions.0,
            version_now: row.versions.1,
            kept_by: row.kept_by.clone(),
            name: row.name.clone(),
            then: row.then.outcome,
            now: row.now.as_ref().map(|now| now.outcome),
            seen: shown.seen.clone(),
            why: shown.why.clone(),
        }
    }

    /// Returns whether the outcome changed.
    pub fn differs(&self) -> bool {
        self.now.is_some_and(|now| now != self.then)
    }
}

fn notes(rows: &[ConversationRecord]) -> Vec<String> {
    let ours = env!("CARGO_PKG_VERSION");
    let mut notes = BTreeSet::new();
    for row in rows {
        if row.kept_by != ours {
            notes.insert(format!(
                "recorded by loadstone {}, this is {ours}: judged by the rules of this version",
                printable(&row.kept_by, VERSION_MAX)
            ));
        }
        if let Some(now) = row.version_now.filter(|now| *now != row.version_then) {
            notes.insert(format!(
                "{} was version {} and is version {now} in this program: judged by version {now}",
                row.case, row.version_then
            ));
        }
    }
    notes.into_iter().collect()
}
