//! `loadstone.torture/1`. Every key is always there; times are in seconds; bytes are escaped as in
//! a string of C.

use super::Report;
use crate::words::timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use torture::session::{CaseResult, ExchangeResult};

/// The report as JSON, indented, with a line feed at its end.
pub fn json(report: &Report) -> String {
    let result = &report.result;
    let document = Document {
        schema: "loadstone.torture/1",
        target: &report.target,
        addresses: report.addresses.iter().map(ToString::to_string).collect(),
        class: report.class.id(),
        started: timestamp(report.started_unix_s),
        started_unix_s: report.started_unix_s,
        elapsed_s: result.took.as_secs_f64(),
        interrupted: result.interrupted,
        ended_early: result.ended_early.as_deref(),
        plain: Page { status: result.plain.status, body_bytes: result.plain.body_len },
        post_trouble: result.post_trouble.as_deref(),
        habits: result.habits.seen.iter().map(|(name, seen)| Habit { name, seen }).collect(),
        cases: result.cases.iter().map(CaseRow::of).collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)
        .expect("strings, numbers and lists always serialise");
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    target: &'a str,
    addresses: Vec<String>,
    class: &'static str,
    started: String,
    started_unix_s: f64,
    elapsed_s: f64,
    interrupted: bool,
    ended_early: Option<&'a str>,
    plain: Page,
    post_trouble: Option<&'a str>,
    habits: Vec<Habit<'a>>,
    cases: Vec<CaseRow<'a>>,
}

#[derive(Serialize)]
struct Page {
    status: u16,
    body_bytes: u64,
}

#[derive(Serialize)]
struct Habit<'a> {
    name: &'a str,
    seen: &'a str,
}

#[derive(Serialize)]
struct CaseRow<'a> {
    id: &'a str,
    version: u32,
    title: &'a str,
    level: &'static str,
    r#ref: &'a str,
    outcome: &'static str,
    skipped: Option<&'a str>,
    /// Until plain requests were right again; null when they were at once.
    recovery_s: Option<Recovery>,
    /// Executions of random data by what came back: a status, or how it ended.
    tally: &'a BTreeMap<String, u64>,
    exchanges: Vec<ExchangeRow<'a>>,
}

#[derive(Serialize)]
struct ExchangeRow<'a> {
    name: &'a str,
    outcome: &'static str,
    seen: &'a str,
    expected: &'a str,
    why: &'a str,
    tries: u32,
    failed: u32,
    elapsed_s: f64,
    sent: String,
    received: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Recovery {
    Seconds(f64),
    Never(&'static str),
}

impl Recovery {
    fn of(span: Option<units::Nanos>) -> Recovery {
        span.map_or(Recovery::Never("never"), |span| Recovery::Seconds(span.as_secs_f64()))
    }
}

impl<'a> CaseRow<'a> {
    fn of(row: &'a CaseResult) -> CaseRow<'a> {
        CaseRow {
            id: &row.case.id,
            version: row.case.version,
            title: &row.case.title,
            level: row.case.level.id(),
            r#ref: &row.case.reference,
            outcome: row.outcome.id(),
            skipped: row.skipped.as_deref(),
            recovery_s: row.recovery.map(Recovery::of),
            tally: &row.tally,
            exchanges: row.exchanges.iter().map(ExchangeRow::of).collect(),
        }
    }
}

impl<'a> ExchangeRow<'a> {
    fn of(row: &'a ExchangeResult) -> ExchangeRow<'a> {
        ExchangeRow {
            name: &row.name,
            outcome: row.judgement.outcome.id(),
            seen: &row.judgement.seen,
            expected: &row.judgement.expected,
            why: &row.judgement.why,
            tries: row.tries,
            failed: row.failed,
            elapsed_s: row.took.as_secs_f64(),
            sent: row.sent.escape_ascii().to_string(),
            received: row.received.escape_ascii().to_string(),
        }
    }
}
