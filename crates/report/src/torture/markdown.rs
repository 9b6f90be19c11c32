//! The report for a pull request: one sentence, what counts against the server, the limits.

use super::words;
use crate::page::markdown::{plain, table};
use crate::words::printable;
use record::torture::{CaseRecord, LimitRecord, TortureRecord};

/// Characters of a line that came from elsewhere.
const LINE_MAX: usize = 400;

/// The record as Markdown, with a line feed at its end.
pub fn markdown(record: &TortureRecord) -> String {
    let mark = match (record.findings, record.is_tested() && !record.is_cut()) {
        (1.., _) => "❌",
        (0, true) => "✅",
        (0, false) => "⚠️",
    };
    let mut out = format!("### {mark} {}\n\n", plain(&words::summary(record)));
    let which = format!(
        "{} ({}), {}, loadstone {}, seed {}",
        record.target,
        record.class.id(),
        record.started,
        record.version,
        record.seed
    );
    let mut lines = vec![which];
    lines.extend(record.ended_early.as_ref().map(|why| format!("It ended early: {why}.")));
    for line in lines {
        out += &format!("- {}\n", plain(&printable(&words::safe(&line), LINE_MAX)));
    }
    out.push('\n');
    let found = record.counted_findings();
    if !found.is_empty() {
        let heads = ["severity", "outcome", "case", "title", "observed"].map(str::to_owned);
        let rows: Vec<Vec<String>> = found.into_iter().map(row).collect();
        out += &table(&heads, &rows);
    }
    if !record.limits.is_empty() {
        let heads = ["case", "limit or deadline", "value", "note"].map(str::to_owned);
        let row = |one: &LimitRecord| {
            let texts = [&one.case, &one.what, &words::measure(one), &one.note];
            texts.map(|text| words::safe(text)).to_vec()
        };
        out += &table(&heads, &record.limits.iter().map(row).collect::<Vec<_>>());
    }
    out
}

fn row(case: &CaseRecord) -> Vec<String> {
    let bad = case.exchanges.iter().filter(|one| one.outcome.is_finding());
    let mut seen: Vec<String> = bad.map(|one| format!("{}: {}", one.name, one.seen)).collect();
    seen.extend(case.notes.iter().cloned());
    seen.extend(case.recovery_s.map(words::afterwards));
    let seen = printable(&words::safe(&seen.join("; ")), LINE_MAX);
    let severity = case.severity.map_or("", |severity| severity.id()).to_owned();
    vec![severity, case.outcome.id().to_owned(), case.id.clone(), case.title.clone(), seen]
}
