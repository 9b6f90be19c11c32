//! The report for a pull request: one sentence, what counts against the server, the limits.

use super::{Report, words};
use crate::markdown::{plain, table};
use crate::words::{printable, timestamp};
use torture::result::CaseResult;

/// Characters of a line that came from elsewhere.
const LINE_MAX: usize = 400;

/// The report as Markdown, with a line feed at its end.
pub fn markdown(report: &Report) -> String {
    let result = &report.result;
    let tested = result.cases.iter().any(|case| case.skipped.is_none());
    let whole = tested && !result.interrupted && result.ended_early.is_none();
    let mark = match (report.findings().is_empty(), whole) {
        (false, _) => "❌",
        (true, true) => "✅",
        (true, false) => "⚠️",
    };
    let mut out = format!("### {mark} {}\n\n", plain(&words::summary(report)));
    let version = &report.environment.version;
    let which = format!(
        "{} ({}), {}, loadstone {version}, seed {}",
        report.target,
        report.class.id(),
        timestamp(report.started_unix_s),
        report.seed
    );
    let mut lines = vec![which];
    lines.extend(result.ended_early.as_ref().map(|why| format!("It ended early: {why}.")));
    for line in lines {
        out += &format!("- {}\n", plain(&printable(&words::safe(&line), LINE_MAX)));
    }
    out.push('\n');
    let found = report.findings();
    if !found.is_empty() {
        let heads = ["outcome", "case", "what", "seen"].map(str::to_owned);
        let rows: Vec<Vec<String>> = found.into_iter().map(row).collect();
        out += &table(&heads, &rows);
    }
    let measured =
        || result.cases.iter().flat_map(|case| case.measures.iter().map(move |m| (case, m)));
    if measured().next().is_some() {
        let heads = ["case", "limit or deadline", "value", "note"].map(str::to_owned);
        let row = |(case, one): (&CaseResult, &torture::result::Measure)| {
            let texts =
                [case.case.id.clone(), one.what.clone(), words::measure(one), one.note.clone()];
            texts.map(|text| words::safe(&text)).to_vec()
        };
        out += &table(&heads, &measured().map(row).collect::<Vec<_>>());
    }
    out
}

fn row(case: &CaseResult) -> Vec<String> {
    let bad = case.exchanges.iter().filter(|one| one.judgement.outcome.is_finding());
    let mut seen: Vec<String> =
        bad.map(|one| format!("{}: {}", one.name, one.judgement.seen)).collect();
    seen.extend(case.notes.iter().cloned());
    if let Some(recovery) = case.recovery {
        seen.push(words::afterwards(recovery));
    }
    let seen = printable(&words::safe(&seen.join("; ")), LINE_MAX);
    vec![case.outcome.id().to_owned(), case.case.id.clone(), case.case.title.clone(), seen]
}
