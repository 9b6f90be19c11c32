//! The page of a torture: the verdict, each finding with its bytes, what polite clients felt over
//! time, limits and deadlines as an operator pins them up, every case.

mod findings;
mod limits;
mod server;
mod timeline;

use super::page::{self, Plots};
use super::sections;
use crate::torture::beside::HEADS;
use crate::torture::{Report, words};
use crate::words::{printable, timestamp};
use maud::{Markup, html};
use torture::judge::Outcome;
use torture::result::{CaseResult, Health, ProbeKind, RunResult};
use units::{Nanos, show};

/// The page.
pub fn html(report: &Report) -> String {
    let mut plots = Plots::default();
    let body = body(report, &mut plots);
    let found = report.findings().len();
    let target = printable(&report.target, 200);
    let title = match found {
        0 => format!("Torture of {target}"),
        _ => format!("{}: torture of {target}", crate::words::counted(found as u64, "finding")),
    };
    page::page(&title, &body, plots)
}

fn body(report: &Report, plots: &mut Plots) -> Markup {
    let result = &report.result;
    html! {
        header {
            p class="kicker" { "Torture of a web server" }
            h1 { (printable(&report.target, 400)) }
            p class="soft" { (done(report)) }
        }
        (verdict(report))
        p class="answer" { (words::summary(report)) }
        (groups(result))
        (places(result))
        (findings::findings(report))
        (pressed(report, plots))
        (beside(report))
        (server::section(report, plots))
        (limits::limits(result))
        (limits::costs(result))
        (habits(result))
        (tallies(result))
        (cases(report))
        (waivers(report))
        h2 { "Not ruled out" }
        ul { @for one in words::not_ruled_out(report) { li { (one) } } }
        (details(report))
        (sections::footer(report.started_unix_s, &report.environment))
    }
}

fn done(report: &Report) -> String {
    let took = show::duration(report.result.took);
    format!("{} · {} · {took}", report.class.id(), timestamp(report.started_unix_s))
}

/// In a word, with each finding named.
fn verdict(report: &Report) -> Markup {
    let result = &report.result;
    let found = report.findings();
    let cut = result.interrupted || result.ended_early.is_some();
    let nothing = result.cases.iter().all(|case| case.skipped.is_some());
    let (state, word, meaning) = match (found.len(), cut, nothing) {
        (0, _, true) => ("degraded", "NOTHING TESTED".to_owned(), "Nothing is known of it."),
        (0, true, _) => ("degraded", "CUT SHORT".to_owned(), "What was tested gave no finding."),
        (0, false, _) => ("valid", "NO FINDING".to_owned(), "What was tested, the server stood."),
        (1, ..) => ("invalid", "1 FINDING".to_owned(), "The worst first:"),
        (n, ..) => ("invalid", format!("{n} FINDINGS"), "The worst first:"),
    };
    html! {
        section class=(format!("verdict {state}")) {
            p class="word" { strong { (word) } " " (meaning) }
            ul {
                @if let Some(why) = &result.ended_early { li { "Ended early: " (words::safe(why)) "." } }
                @if result.interrupted { li { "Interrupted before its end." } }
                @if let Some(seen) = &result.post_trouble {
                    li { "The page named by --post took no body: " (words::safe(seen)) "." }
                }
                @for case in found {
                    li {
                        a href=(format!("#{}", case.case.id)) { (case.case.id) } " "
                        (outcome(case.outcome)) " " (case.case.title)
                    }
                }
            }
        }
    }
}

/// An outcome in the colour of how bad it is; its word says the same.
fn outcome(outcome: Outcome) -> Markup {
    let state = match outcome {
        bad if bad.is_finding() => "invalid",
        well if well.is_well() => "valid",
        Outcome::Advisory | Outcome::Shed => "degraded",
        _ => "unknown",
    };
    html! { span class=(format!("badge {state}")) { (outcome.id()) } }
}

fn groups(result: &RunResult) -> Markup {
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
fn places(result: &RunResult) -> Markup {
    let any = |is: fn(&CaseResult) -> bool| result.cases.iter().any(is);
    let parts = [
        ("findings", "Findings", any(|case| case.outcome >= Outcome::Advisory)),
        ("felt", "What polite clients felt", !result.probes.is_empty()),
        ("server", "The server meanwhile", result.server.is_some()),
        ("limits", "Limits and deadlines", any(|case| !case.measures.is_empty())),
        ("habits", "Habits", !result.habits.seen.is_empty()),
        ("cases", "All cases", !result.cases.is_empty()),
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

/// Probes over time, and a row a case that pressed.
fn pressed(report: &Report, plots: &mut Plots) -> Markup {
    let result = &report.result;
    let chart = timeline::timeline(result, plots);
    let rows: Vec<(&CaseResult, &Health)> =
        result.cases.iter().filter_map(|case| Some((case, case.health.as_ref()?))).collect();
    if chart.is_none() && rows.is_empty() {
        return html! {};
    }
    html! {
        h2 id="felt" { "What polite clients felt" }
        @if let Some(base) = &result.baseline {
            p { "Before anything pressed: " (words::baseline(base)) "." }
        }
        @if let Some(chart) = chart { (chart) }
        @if !rows.is_empty() {
            div class="wide" { table {
                tr {
                    th { "Case" } th class="word" { "" } th { "correct" } th { "shed" } th { "lost" }
                    th { "p99" } th { "back after" } th { "stood" } th { "followed" }
                    th class="word" { "polite control" }
                }
                @for (case, health) in rows { (health_row(case, health)) }
            } }
            p class="note" {
                "Shares of the time in which probes were answered as before, politely turned away, or \
                 not. Stood: connections that pressed, of those wanted. Followed: rounds in which the \
                 effect came with the pressure. The control is as many polite connections."
            }
        }
    }
}

fn health_row(case: &CaseResult, health: &Health) -> Markup {
    let back = match health.recovery {
        Some(Nanos::ZERO) => "at once".to_owned(),
        Some(span) => show::duration(span),
        None => "never".to_owned(),
    };
    let control =
        health.control_denied.map_or("-", |denied| if denied { "denied" } else { "held" });
    html! {
        tr {
            td { (case.case.id) } td class="word" { (outcome(case.outcome)) }
            td { (show::share(health.correct)) } td { (show::share(health.shed)) }
            td { (show::share(health.lost)) } td { (show::duration(health.p99)) } td { (back) }
            td { (health.armed) "/" (health.wanted) }
            td { (words::followed(health)) }
            td class="word" { (control) }
        }
    }
}

/// What a load felt that went on beside the cases.
fn beside(report: &Report) -> Markup {
    let Some(beside) = &report.beside else { return html! {} };
    let rows = beside.rows();
    html! {
        h2 { "Good users beside it" }
        p { (words::safe(&beside.head())) }
        @if !rows.is_empty() {
            div class="wide" { table {
                tr { th { "Case" } @for head in HEADS { th { (head) } } }
                @for (case, cells) in rows {
                    tr { td { (case) } @for cell in cells { td { (cell) } } }
                }
            } }
        }
        @if let Some(said) = beside.unfelt() { p class="note" { (said) } }
    }
}

fn habits(result: &RunResult) -> Markup {
    html! {
        @if !result.habits.seen.is_empty() {
            h2 id="habits" { "Habits of this server" }
            dl class="facts" {
                @for (name, seen) in &result.habits.seen { dt { (name) } dd { (words::safe(seen)) } }
            }
        }
    }
}

fn tallies(result: &RunResult) -> Markup {
    let tallied: Vec<&CaseResult> =
        result.cases.iter().filter(|case| !case.tally.is_empty()).collect();
    html! {
        @if !tallied.is_empty() {
            h2 { "What random data got" }
            div class="wide" { table {
                tr { th { "Case" } th class="text" { "" } th class="text" { "Answers" } }
                @for case in tallied {
                    tr {
                        td { (case.case.id) }
                        td class="text" { (case.case.title) }
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

/// What is put up with, until when and why.
fn waivers(report: &Report) -> Markup {
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

fn cases(report: &Report) -> Markup {
    let result = &report.result;
    html! {
        @if !result.cases.is_empty() {
            h2 id="cases" { "All cases" }
            div class="wide" { table class="sortable filtered" {
                tr {
                    th { "Case" } th class="text" { "" } th class="word" { "Outcome" }
                    th class="word" { "Level" } th { "Took" } th class="text" { "Rests on" }
                }
                @for case in &result.cases { (case_row(report, case)) }
            } }
        }
    }
}

fn case_row(report: &Report, case: &CaseResult) -> Markup {
    let found = &case.case;
    html! {
        tr data-outcome=(case.outcome.id()) {
            td {
                @if case.outcome >= Outcome::Advisory {
                    a href=(format!("#{}", found.id)) { (found.id) }
                } @else { (found.id) }
            }
            td class="text" {
                (found.title)
                @if let Some(why) = words::untested(case) { div class="soft" { (why) } }
                @if report.waived(&found.id).is_some() { div class="soft" { "waived" } }
            }
            td class="word" { (outcome(case.outcome)) }
            td class="word" { (found.level.id()) }
            td data-v=(case.took.0) { (show::duration(case.took)) }
            td class="text soft" { (found.reference) }
        }
    }
}

fn details(report: &Report) -> Markup {
    let result = &report.result;
    let addresses: Vec<String> = report.addresses.iter().map(ToString::to_string).collect();
    let plain = &result.plain;
    let mut facts = vec![
        ("Addresses", addresses.join(", ")),
        ("Class", report.class.id().to_owned()),
        ("Seed", report.seed.to_string()),
    ];
    if plain.status > 0 {
        facts.push(("Probed page", format!("{}, {}", plain.status, show::bytes(plain.body_len))));
    }
    for (label, kind) in [("New", ProbeKind::New), ("Kept", ProbeKind::Keep)] {
        let [correct, shed, lost] = words::probes_seen(result, kind).map(show::count);
        if [&correct, &shed, &lost].iter().any(|count| *count != "0") {
            let label = if label == "New" { "New probes" } else { "Kept probes" };
            facts.push((label, format!("{correct} correct, {shed} shed, {lost} lost")));
        }
    }
    html! {
        h2 { "Details" }
        dl class="facts" { @for (label, text) in facts { dt { (label) } dd { (text) } } }
    }
}
