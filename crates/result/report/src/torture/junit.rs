//! The torture run as a JUnit suite: one test case per case. A finding is a failure if its severity
//! fails the run; others pass, with the finding as output.

use super::words;
use crate::page;
use crate::page::junit::{CaseEnding, TestCase, TestSuite};
use record::torture::{BaselineRecord, CaseRecord, ExchangeRecord, TortureRecord};

/// Returns the record as XML, with a final line feed.
pub fn junit(record: &TortureRecord) -> String {
    let case = |name: String, elapsed_s, ending| TestCase {
        name,
        class: "torture".to_owned(),
        elapsed_s,
        ending,
    };
    let unknown =
        |(name, why): (&str, String)| case(name.to_owned(), None, CaseEnding::Unknown(why));
    let mut cases: Vec<TestCase> = missing(record).map(unknown).into_iter().collect();
    cases.extend(record.cases.iter().map(|one| {
        case(format!("{} {}", one.id, one.title), Some(one.elapsed_s), ending(record, one))
    }));
    page::junit::junit(&TestSuite {
        names: ["torture".to_owned(), record.target.clone()],
        started: record.started.clone(),
        elapsed_s: record.elapsed_s,
        properties: Vec::new(),
        cases,
    })
}

/// Returns why no case was run, or not all of them, if so: a build server must not show that in
/// green.
fn missing(record: &TortureRecord) -> Option<(&'static str, String)> {
    if record.is_conclusive() {
        return Some(("all cases are tested", cut(record)?));
    }
    let why = record.ended_early.clone().or_else(|| words::untested(record.cases.first()?));
    Some(("the server is tested", why.unwrap_or_else(|| "no case was run".to_owned())))
}

/// Returns why a run with results did not run all of its cases; `None` if it did.
fn cut(record: &TortureRecord) -> Option<String> {
    let early = record.ended_early.as_ref().map(|why| format!("the run ended early: {why}"));
    let interrupted = record.interrupted.then(|| "the run was interrupted".to_owned());
    early.or(interrupted).or_else(|| record.incomplete())
}

fn ending(record: &TortureRecord, case: &CaseRecord) -> CaseEnding {
    let id = case.outcome.id();
    if !case.outcome.is_finding() {
        return match case.outcome.is_tested() {
            true => CaseEnding::Passed,
            false => CaseEnding::Skipped(words::untested(case).unwrap_or_default()),
        };
    }
    if let Some(waived) = record.waiver_of(&case.id) {
        // waived findings are listed but do not count
        let waiver = &waived.waiver;
        let why = format!("waived until {}: {}; {id}", waiver.until, waiver.reason);
        return CaseEnding::Skipped(why);
    }
    if let Some(root) = &case.same_as {
        return CaseEnding::Noted(format!("{id}: the fault of {root}"));
    }
    let account = account(case, record.baseline.as_ref());
    match (case.fails(record.fail_on), case.severity) {
        (false, Some(severity)) => CaseEnding::Noted(format!("{id}, {}: {account}", severity.id())),
        _ => CaseEnding::Failed { kind: id.to_owned(), message: account, account: String::new() },
    }
}

/// Describes wrong responses, and the effect on well-behaved clients.
fn account(case: &CaseRecord, base: Option<&BaselineRecord>) -> String {
    let bad = case.exchanges.iter().filter(|exchange| exchange.outcome == case.outcome);
    let one = |exchange: &ExchangeRecord| {
        format!("{}: {}; expected {}", exchange.name, exchange.seen, exchange.expected)
    };
    let mut parts: Vec<String> = bad.map(one).collect();
    parts.extend(case.notes.iter().cloned());
    let impact = case.health.iter().flat_map(|health| words::impact(health, base));
    parts.extend(impact.map(|(label, text)| format!("{label}: {text}")));
    parts.extend(case.recovery_s.map(words::afterwards));
    parts.join("\n")
}
