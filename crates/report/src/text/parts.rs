//! The sections that are not tables of times.

use super::layout::{LABEL, Page, shortened};
use crate::facts;
use crate::words::{self, counted};
use crate::{Finding, RunRecord, figures};
use record::run::ConductRecord;
use units::show;

/// What the server did, and one of its responses where they are what is wrong.
pub(crate) fn server(page: &mut Page, server: &ConductRecord) {
    page.fact("Server", &server.sentence);
    if let Some(example) = &server.example {
        page.fact("", &format!("it responds: {example}"));
    }
}

/// Name, target and load, each of at most so many characters.
pub(crate) fn asked(page: &mut Page, report: &RunRecord, room: usize) {
    let target = shortened(&report.target, room);
    let name = shortened(&report.name, room);
    if name != target {
        page.fact("Run", &name);
    }
    page.fact("Target", &target);
    page.fact("Load", &shortened(&super::done_sentence(report), room));
}

/// Target, load, first call, machine.
pub(crate) fn what_was_done(page: &mut Page, report: &RunRecord) {
    page.blank();
    asked(page, report, usize::MAX);
    if let Some(path) = &report.path {
        page.fact("Through", &crate::path::asked(path));
    }
    if let Some(first) = words::first_call(report) {
        page.fact("First call", &first);
    }
    let when = words::timestamp(report.started_unix_s);
    let (at, machine) = (format!("{when}, "), words::machine(&report.environment));
    page.fact("Measured", format!("{at}{machine}").trim_end_matches(", "));
    if let Some(rule) = &report.aborted {
        page.fact("Stopped", &format!("by --abort-if {}", words::printable(rule, 200)));
    }
    if report.interrupted {
        let text = format!("interrupted after {}", words::seconds(report.elapsed_s));
        page.fact("Stopped", &text);
    }
}

/// Throughput, and the loads it has to be read against.
pub(crate) fn headline(page: &mut Page, report: &RunRecord) {
    page.blank();
    throughput(page, report);
    failed(page, report, false);
    score(page, report);
}

/// How many simultaneous connections conform, after SPECweb99; and what is wrong with the server's log of
/// what was posted to it.
pub(crate) fn score(page: &mut Page, report: &RunRecord) {
    let Some(score) = report.score() else { return };
    page.fact("Score", &score.sentence());
    if let Some(posts) = facts::posts(report).filter(|posts| !posts.agree()) {
        page.fact("POSTs", &posts.sentence());
    }
}

pub(crate) fn throughput(page: &mut Page, report: &RunRecord) {
    let mut parts = vec![show::rate(report.throughput_per_s)];
    parts.push(format!("goodput {}", show::rate(report.goodput_per_s)));
    let offered = format!("offered {}", show::rate(report.offered_per_s));
    parts.push(match report.intended_per_s {
        Some(intended) => format!("{offered} of {} intended", show::rate(intended)),
        None => offered,
    });
    page.fact("Throughput", &parts.join(" · "));
}

/// The share of failures; `by_class`: with the most frequent classes, for want of a table.
pub(crate) fn failed(page: &mut Page, report: &RunRecord, by_class: bool) {
    let mut classes: Vec<_> = report.failures.iter().collect();
    classes.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    let hidden = classes.len().saturating_sub(CLASSES_MAX);
    let named = classes.iter().take(CLASSES_MAX);
    let mut named: Vec<String> =
        named.map(|one| format!("{} × {}", show::count(one.count), one.class.id())).collect();
    if hidden > 0 {
        named.push(format!("{hidden} more"));
    }
    let share = show::share(report.failure_share);
    let due = counted(report.outcomes.due, "call");
    page.fact(
        "Failures",
        &match by_class && !named.is_empty() {
            true => format!("{share} of {due} due: {}", named.join(", ")),
            false => format!("{share} of {due} due (failed, timed out or dropped)"),
        },
    );
}

/// Classes of failures that stand in one line.
const CLASSES_MAX: usize = 4;
/// Objectives that stand in a line each.
const OBJECTIVES_MAX: usize = 4;

/// `--slo`: one line each.
pub(crate) fn objectives(page: &mut Page, report: &RunRecord) {
    if report.slo.is_empty() {
        return;
    }
    page.heading("Objectives");
    for result in &report.slo {
        let word = result.word();
        let text = words::printable(&result.objective.text, 60);
        let width = LABEL - 2;
        page.wrapped(&format!("  {word:<width$}"), &format!("{text}: {}", result.figure_text()));
    }
}

/// The same without a heading: those first that are not met.
pub(crate) fn objectives_in_lines(page: &mut Page, report: &RunRecord) {
    let mut results: Vec<_> = report.slo.iter().collect();
    results.sort_by_key(|result| (result.met, result.undecided));
    for (index, result) in results.iter().take(OBJECTIVES_MAX).enumerate() {
        let text = words::printable(&result.objective.text, 60);
        let label = if index == 0 { "Objectives" } else { "" };
        page.fact(label, &format!("{} {text}: {}", result.word(), result.figure_text()));
    }
    match results.len().saturating_sub(OBJECTIVES_MAX) {
        0 => {}
        more => page.fact("", &format!("{more} more with --full")),
    }
}

/// due = succeeded + failed + timed out + dropped + abandoned + lost.
pub(crate) fn outcomes(page: &mut Page, report: &RunRecord) {
    page.heading("Outcomes");
    let counts = &report.outcomes;
    let share = |n: u64| show::share(figures::ratio(n as f64, counts.due as f64));
    let row = |name: &str, n: u64| vec![name.to_owned(), show::count(n), share(n)];
    let mut rows: Vec<Vec<String>> =
        facts::ends(counts).map(|(name, count)| row(name, count)).collect();
    rows.push(row("= due", counts.due));
    page.table(&rows);
    if let Some(warm_up) = facts::warm_up(report) {
        page.wrapped("  ", &format!("Warm-up: {warm_up}."));
    }
    if let Some(sessions) = facts::sessions(report) {
        page.wrapped("  ", &format!("Sessions: {sessions}."));
    }
}

/// Streams of events; nothing where nobody asked.
pub(crate) fn streams(page: &mut Page, report: &RunRecord) {
    if let Some(sentence) = facts::streams::sentence(report) {
        page.fact("Streams", &sentence);
    }
}

/// Bodies that were compared, and the first that was wrong; nothing where nobody asked.
pub(crate) fn verified(page: &mut Page, report: &RunRecord) {
    let Some(sentence) = facts::verified::sentence(report) else { return };
    page.fact("Verified", &sentence);
    if let Some(example) = facts::verified::first_example(report) {
        page.fact("", &example);
    }
}

/// Failures by class with who is to blame, and responses by status.
pub(crate) fn failures(page: &mut Page, report: &RunRecord) {
    failure_classes(page, report);
    let seen = facts::statuses(report);
    if !seen.is_empty() {
        page.blank();
        page.fact("Status", &seen);
    }
}

/// Failures by class with who is to blame; nothing without any.
pub(crate) fn failure_classes(page: &mut Page, report: &RunRecord) {
    if !report.failures.is_empty() {
        page.heading("Failures      class, count, blame");
        let counts = report.failures.iter().map(|failure| show::count(failure.count));
        let width = counts.map(|count| count.len()).max().unwrap_or(0);
        for failure in &report.failures {
            let (class, count) = (failure.class, show::count(failure.count));
            let prefix =
                format!("  {:<15}  {count:>width$}  {:<6}  ", class.id(), class.blame().id());
            page.wrapped(&prefix, class.explain());
        }
    }
}

/// Connections, bytes, client and the like, a line or two each.
pub(crate) fn facts(page: &mut Page, report: &RunRecord) {
    page.blank();
    for (label, text) in facts::facts(report) {
        page.fact(label, &text);
    }
}

/// What limits the server.
pub(crate) fn findings(page: &mut Page, report: &RunRecord) {
    findings_of(page, &report.findings);
}

pub(crate) fn findings_of(page: &mut Page, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    page.heading("What limits this server");
    for finding in findings {
        page.wrapped(
            "  ",
            &format!("{} ({}): {}", finding.id, finding.confidence, finding.evidence),
        );
        page.wrapped("    try: ", &finding.advice);
    }
}
