//! The page of a torture: the verdict, each finding with its bytes, what well-behaved clients
//! observed over time, limits and deadlines, every case.

mod findings;
mod limits;
mod server;
mod timeline;

use crate::html::sections;
use crate::page::html::frame::{self, Plots};
use crate::torture::{beside, words};
use crate::words::printable;
use maud::{Markup, html};
use record::torture::{CaseRecord, HealthRecord, TortureRecord};
use torture::judge::{Severity, TestOutcome};
use units::show;

/// The page.
pub fn html(record: &TortureRecord) -> String {
    let mut plots = Plots::default();
    let body = body(record, &mut plots);
    let target = printable(&record.target, 200);
    let title = match record.findings {
        0 => format!("Torture of {target}"),
        found => format!("{}: torture of {target}", crate::words::counted(found, "finding")),
    };
    frame::page(&title, &body, plots)
}

fn body(record: &TortureRecord, plots: &mut Plots) -> Markup {
    html! {
        header {
            p class="kicker" { "Torture of a web server" }
            h1 { (printable(&record.target, 400)) }
            p class="soft" { (done(record)) }
        }
        (verdict(record))
        p class="answer" { (words::summary(record)) }
        (groups(record))
        (places(record))
        (findings::findings(record))
        (pressed(record, plots))
        (load(record))
        (server::section(record, plots))
        (limits::limits(record))
        (limits::costs(record))
        (habits(record))
        (tallies(record))
        (cases(record))
        (waivers(record))
        h2 { "Not ruled out" }
        ul { @for one in words::not_ruled_out(record) { li { (one) } } }
        (details(record))
        @if let Some(environment) = &record.environment {
            (sections::footer(record.started_unix_s, environment))
        }
    }
}

fn done(record: &TortureRecord) -> String {
    let elapsed = words::duration(record.elapsed_s);
    format!("{} · {} · {elapsed}", record.class.id(), record.started)
}

/// In a word, with each finding named.
fn verdict(result: &TortureRecord) -> Markup {
    let found = result.counted_findings();
    let (state, word, meaning) = match (found.len(), result.is_cut(), !result.is_tested()) {
        (0, _, true) => {
            ("degraded", "NOTHING TESTED".to_owned(), "Nothing is known of this server.")
        }
        (0, true, _) => ("degraded", "CUT SHORT".to_owned(), "What was tested gave no finding."),
        (0, false, _) => ("valid", "NO FINDING".to_owned(), "The server passed what was tested."),
        (1, ..) => ("invalid", "1 FINDING".to_owned(), "The worst first:"),
        (n, ..) => ("invalid", format!("{n} FINDINGS"), "The worst first:"),
    };
    html! {
        section class=(format!("verdict {state}")) {
            p class="word" { strong { (word) } " " (meaning) }
            ul {
                @if let Some(why) = &result.ended_early { li { "Ended early: " (words::safe(why)) "." } }
                @if result.interrupted { li { "Interrupted before the end." } }
                @if let Some(seen) = &result.post_trouble {
                    li { "The page named by --post took no body: " (words::safe(seen)) "." }
                }
                @for case in found {
                    li {
                        a href=(format!("#{}", case.id)) { (case.id) } " "
                        (outcome(case.outcome)) " " (severity(case)) " " (case.title)
                    }
                }
            }
        }
    }
}

/// An outcome in the colour of how bad it is; its word says the same.
fn outcome(outcome: TestOutcome) -> Markup {
    let state = match outcome {
        bad if bad.is_finding() => "invalid",
        well if well.is_well() => "valid",
        TestOutcome::Advisory | TestOutcome::Shed => "degraded",
        _ => "unknown",
    };
    html! { span class=(format!("badge {state}")) { (outcome.id()) } }
}

/// How much a finding matters, in the colour of it; nothing where it is none.
fn severity(case: &CaseRecord) -> Markup {
    let Some(severity) = case.severity else { return html! {} };
    let state = match severity {
        Severity::Critical | Severity::High => "invalid",
        Severity::Medium => "degraded",
        Severity::Low => "unknown",
    };
    html! { span class=(format!("badge {state}")) { (severity.id()) } }
}

fn groups(result: &TortureRecord) -> Markup {
    let groups = words::groups(result);
    html! {
        @if !groups.is_empty() {
            div class="wide" { table {
                tr { th { "Group" } th class="text" { "Worst" } th class="text" { "Cases" } }
                @for group in &groups {
                    tr {
                        td { (group.letter) " · " (words::group_name(group.letter)) }
                        td class="text" { (outcome(group.worst())) }
                        td class="text" { (group.line()) }
                    }
                }
            } }
        }
    }
}

/// Ways to the parts that are there; a page with many findings is long.
fn places(record: &TortureRecord) -> Markup {
    let parts = [
        ("findings", "Findings", record.cases.iter().any(CaseRecord::is_notable)),
        ("felt", "Well-behaved clients", !record.probe_series.is_empty()),
        ("server", "The server", record.server.is_some()),
        ("limits", "Limits and deadlines", !record.limits.is_empty()),
        ("habits", "Habits", !record.habits.is_empty()),
        ("cases", "All cases", !record.cases.is_empty()),
    ];
    html! {
        nav class="note" {
            @for (n, (id, name, _)) in parts.iter().filter(|(.., there)| *there).enumerate() {
                @if n > 0 { " · " }
                a href=(format!("#{id}")) { (name) }
            }
        }
    }
}

/// Probes over time, and a row for each case that applied pressure.
fn pressed(record: &TortureRecord, plots: &mut Plots) -> Markup {
    let chart = timeline::timeline(record, plots);
    let rows: Vec<(&CaseRecord, &HealthRecord)> =
        record.cases.iter().filter_map(|case| Some((case, case.health.as_ref()?))).collect();
    if chart.is_none() && rows.is_empty() {
        return html! {};
    }
    html! {
        h2 id="felt" { "What well-behaved clients observed" }
        @if let Some(base) = &record.baseline {
            p { "Before any pressure: " (words::baseline(base)) "." }
        }
        @if let Some(chart) = chart { (chart) }
        @if !rows.is_empty() {
            div class="wide" { table {
                tr {
                    th { "Case" } th class="word" { "" } th { "correct" } th { "shed" } th { "lost" }
                    th { "p99" } th { "recovery" } th { "established" } th { "followed" }
                    th class="word" { "control" }
                }
                @for (case, health) in rows { (health_row(case, health)) }
            } }
            p class="note" {
                "Correct, shed, lost: shares of the time in which the responses to probes were as \
                 before, well-formed refusals, or neither. Established: connections that applied \
                 pressure, of those wanted. Followed: rounds in which the effect came with the \
                 pressure. Control: the result of as many well-behaved connections."
            }
        }
    }
}

fn health_row(case: &CaseRecord, health: &HealthRecord) -> Markup {
    let control =
        health.control_denied.map_or("-", |denied| if denied { "denied" } else { "held" });
    html! {
        tr {
            td { (case.id) } td class="word" { (outcome(case.outcome)) }
            td { (show::share(health.correct)) } td { (show::share(health.shed)) }
            td { (show::share(health.lost)) } td { (words::duration(health.p99_s)) }
            td { (words::recovery(health.recovery_s)) }
            td { (health.armed) "/" (health.wanted) }
            td { (words::followed(health)) }
            td class="word" { (control) }
        }
    }
}

/// What the background load observed.
fn load(record: &TortureRecord) -> Markup {
    let Some(load) = &record.beside else { return html! {} };
    let rows = beside::rows(load);
    html! {
        h2 { "Background load" }
        p { (words::safe(&beside::head(load))) }
        @if !rows.is_empty() {
            div class="wide" { table {
                tr { th { "Case" } @for head in beside::HEADS { th { (head) } } }
                @for (case, cells) in rows {
                    tr { td { (case) } @for cell in cells { td { (cell) } } }
                }
            } }
        }
        @if let Some(said) = beside::without_impact(load) { p class="note" { (said) } }
    }
}

fn habits(result: &TortureRecord) -> Markup {
    html! {
        @if !result.habits.is_empty() {
            h2 id="habits" { "Habits of this server" }
            dl class="facts" {
                @for habit in &result.habits {
                    dt { (words::safe(&habit.name)) } dd { (words::safe(&habit.seen)) }
                }
            }
        }
    }
}

fn tallies(result: &TortureRecord) -> Markup {
    let tallied: Vec<&CaseRecord> =
        result.cases.iter().filter(|case| !case.tally.is_empty()).collect();
    html! {
        @if !tallied.is_empty() {
            h2 { "Responses to random data" }
            div class="wide" { table {
                tr { th { "Case" } th class="text" { "" } th class="text" { "Responses" } }
                @for case in tallied {
                    tr {
                        td { (case.id) }
                        td class="text" { (case.title) }
                        td class="text" {
                            @for (n, (what, count)) in case.tally.iter().enumerate() {
                                @if n > 0 { ", " }
                                (words::safe(what)) " × " (show::count(*count))
                            }
                        }
                    }
                }
            } }
        }
    }
}

/// Until when and why each finding is waived.
fn waivers(report: &TortureRecord) -> Markup {
    html! {
        @if !report.waivers.is_empty() {
            h2 { "Waivers" }
            ul {
                @for one in &report.waivers {
                    li { (words::safe(&one.what())) @if let Some(word) = one.word() { " (" (word) ")" } }
                }
            }
        }
    }
}

fn cases(result: &TortureRecord) -> Markup {
    html! {
        @if !result.cases.is_empty() {
            h2 id="cases" { "All cases" }
            div class="wide" { table class="sortable filtered" {
                tr {
                    th { "Case" } th class="text" { "" } th class="word" { "Outcome" }
                    th class="word" { "Level" } th { "Duration" } th class="text" { "Rests on" }
                }
                @for case in &result.cases { (case_row(case)) }
            } }
        }
    }
}

fn case_row(case: &CaseRecord) -> Markup {
    html! {
        tr data-outcome=(case.outcome.id()) {
            td {
                @if case.is_notable() {
                    a href=(format!("#{}", case.id)) { (case.id) }
                } @else { (case.id) }
            }
            td class="text" {
                (case.title)
                @if let Some(why) = words::untested(case) { div class="soft" { (why) } }
                @if case.waived.is_some() { div class="soft" { "waived" } }
            }
            td class="word" { (outcome(case.outcome)) }
            td class="word" { (case.level.id()) }
            td data-v=(case.elapsed().0) { (show::duration(case.elapsed())) }
            td class="text soft" { (case.reference) }
        }
    }
}

fn details(record: &TortureRecord) -> Markup {
    let plain = record.plain;
    let mut facts = vec![
        ("Addresses", record.addresses.join(", ")),
        ("Class", record.class.id().to_owned()),
        ("Seed", record.seed.to_string()),
    ];
    if plain.status > 0 {
        facts.push(("Probed page", format!("{}, {}", plain.status, show::bytes(plain.body_bytes))));
    }
    for (label, probes) in [("New probes", record.probes.new), ("Kept probes", record.probes.keep)]
    {
        if probes.sum() > 0 {
            let [correct, shed, lost] = [probes.correct, probes.shed, probes.lost].map(show::count);
            facts.push((label, format!("{correct} correct, {shed} shed, {lost} lost")));
        }
    }
    html! {
        h2 { "Details" }
        dl class="facts" { @for (label, text) in facts { dt { (label) } dd { (text) } } }
    }
}
