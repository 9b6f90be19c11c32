//! Tables and lists of the page.

use super::charts;
use super::page::Plots;
use crate::facts;
use crate::{Finding, RunRecord, RunTimes, figures, words};
use maud::{Markup, html};
use record::run::{ConductRecord, EnvironmentRecord, RunHist, VerdictRecord};
use stats::{Hist, samples_needed};
use units::{Nanos, show};

/// Rows of the per-URL table.
const URLS_MAX: usize = 100;

/// What the server did, before how far that can be believed.
pub(crate) fn conduct(server: &ConductRecord) -> Markup {
    let kind = if server.state.is_good() { "valid" } else { "invalid" };
    html! {
        section class=(format!("verdict server {kind}")) {
            p class="word" { "Server: " strong { (server.state.word()) } " " (server.detail()) }
            @if let Some(example) = &server.example {
                p class="soft" { "It responds: " code { (example) } }
            }
        }
    }
}

pub(crate) fn verdict(verdict: &VerdictRecord) -> Markup {
    let state = verdict.state;
    html! {
        section class=(format!("verdict {}", state.id().to_lowercase())) {
            p class="word" { "Measurement: " strong { (state.id()) } " " (words::state_meaning(state)) }
            @if !verdict.causes.is_empty() {
                ul {
                    @for cause in &verdict.causes {
                        li {
                            code { (cause.id) } " " (cause.text) "."
                            div class="soft" { (words::sentence(&cause.advice)) }
                        }
                    }
                }
            }
        }
    }
}

pub(crate) fn tile(label: &str, value: &str, sub: &str) -> Markup {
    html! { div { dt { (label) } dd { (value) } @if !sub.is_empty() { dd class="sub" { (sub) } } } }
}

pub(crate) fn tiles(report: &RunRecord, response: &Hist) -> Markup {
    let against = match report.intended_per_s {
        Some(intended) => {
            format!("offered {} of {}", show::rate(report.offered_per_s), show::rate(intended))
        }
        None => format!("good {}", show::rate(report.goodput_per_s)),
    };
    let at = |quantile| {
        if response.is_empty() { "-".to_owned() } else { quantile_cell(response, quantile) }
    };
    html! {
        dl class="tiles" {
            (tile("Throughput", &show::rate(report.throughput_per_s), &against))
            (tile("Response p50", &at(0.5), "half of the calls"))
            (tile("Response p99", &at(0.99), "99 of 100 calls"))
            (tile("Response p99.9", &at(0.999), "999 of 1,000 calls"))
            (tile("Failures", &show::share(report.failure_share),
                &format!("of {}", words::counted(report.outcomes.due, "call"))))
        }
    }
}

/// What can be done with the charts by pointer, said where there is a script.
pub(crate) fn how_to_look() -> Markup {
    html! {
        p class="note scripted-only" {
            "Drag across a chart to look closer, double-click for the whole; click a name to hide its \
             line."
        }
    }
}

pub(crate) fn footer(started_unix_s: f64, environment: &EnvironmentRecord) -> Markup {
    html! { footer { (measured(started_unix_s, environment)) } }
}

/// When and on which machine.
pub(crate) fn measured(started_unix_s: f64, environment: &EnvironmentRecord) -> Markup {
    let machine = words::machine(environment);
    html! {
        "Measured " (words::timestamp(started_unix_s))
        @if !machine.is_empty() { " on " (machine) }
        "."
    }
}

pub(crate) fn objectives(report: &RunRecord) -> Markup {
    html! {
        @if !report.slo.is_empty() {
            h2 { "Objectives" }
            div class="wide" { table class="narrow" {
                tr { th { "Objective" } th { "Figure" } th { "" } }
                @for result in &report.slo {
                    tr {
                        td { code { (result.objective.text) } }
                        td { (result.figure_text()) }
                        @if result.undecided { td { "undecided" } }
                        @else if result.met { td class="met" { "✓ met" } }
                        @else { td class="missed" { "✗ missed" } }
                    }
                }
            } }
        }
    }
}

fn quantile_cell(hist: &Hist, quantile: f64) -> String {
    let mark = if hist.count() < samples_needed(quantile) { "~" } else { "" };
    format!("{mark}{}", show::duration(hist.quantile(quantile)))
}

fn times_row(class: &str, label: &str, hist: &Hist) -> Markup {
    html! {
        tr class=(class) {
            td { (label) }
            @for quantile in [0.5, 0.9, 0.99, 0.999] {
                td { @if hist.is_empty() { "-" } @else { (quantile_cell(hist, quantile)) } }
            }
            td { @if hist.is_empty() { "-" } @else { (show::duration(hist.max())) } }
            td { @if hist.is_empty() { "-" } @else { (show::duration(hist.mean())) } }
            td { (show::count(hist.count())) }
        }
    }
}

pub(crate) fn quantile_or_dash(hist: &Hist, quantile: f64) -> String {
    if hist.is_empty() { "-".to_owned() } else { quantile_cell(hist, quantile) }
}

pub(crate) fn times(report: &RunRecord, all: &RunTimes, plots: &mut Plots) -> Markup {
    if report.outcomes.done() == 0 {
        return html! {};
    }
    html! {
        h2 { "Response time" }
        (times_table(report, &all.response))
        @if let Some(chart) = charts::spectrum(report, &all.response, plots) { (chart) }
    }
}

pub(crate) fn times_table(report: &RunRecord, response: &Hist) -> Markup {
    let of = |part| report.hist(part);
    let failed = of(RunHist::Failed);
    html! {
        div class="wide" { table {
            tr { th { "" } th { "p50" } th { "p90" } th { "p99" } th { "p99.9" } th { "max" }
                th { "mean" } th { "calls" } }
            (times_row("", "Response", response))
            (times_row("", "Service", &of(RunHist::Service)))
            (times_row("", "Slip = response − service", &of(RunHist::Slip)))
            (times_row("part", "wait for a connection", &of(RunHist::Wait)))
            (times_row("part", "lag of the client", &of(RunHist::Lag)))
            @if !failed.is_empty() { (times_row("", "Failed calls, apart", &failed)) }
        } }
        p class="note" {
            "Response time counts from the instant a call was due, of succeeded and timed-out calls; "
            "service time from its issue. ~ marks a quantile of fewer samples than it needs."
        }
    }
}

pub(crate) fn streams(report: &RunRecord) -> Markup {
    let Some(sentence) = facts::streams::sentence(report) else { return html! {} };
    html! {
        h2 { "Streams of events" }
        p { (sentence) "." }
        div class="wide" { table {
            tr { th { "" } th { "p50" } th { "p90" } th { "p99" } th { "p99.9" } th { "max" }
                th { "mean" } th { "count" } }
            @for (name, hist) in facts::streams::times(report) {
                (times_row(if name.starts_with(' ') { "part" } else { "" }, name.trim(), &hist))
            }
        } }
        p class="note" {
            "The time to the first event counts from the instant a call was due. Events that one read "
            "brought have no time between them; a stream that timed out has its last wait counted."
        }
    }
}

pub(crate) fn phases(report: &RunRecord) -> Markup {
    let names = ["Name look-up", "Connect", "TLS handshake", "First byte", "Transfer"];
    let phases = facts::phases(report, names);
    if phases.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Phases" }
        @if let Some(chart) = charts::composition(report) { (chart) }
        div class="wide" { table {
            tr { th { "" } th { "p50" } th { "p90" } th { "p99" } th { "p99.9" } th { "max" }
                th { "mean" } th { "count" } }
            @for (name, hist) in phases { (times_row("", name, &hist)) }
        } }
    }
}

pub(crate) fn server_timings(report: &RunRecord) -> Markup {
    let rows = figures::server_timings(report);
    let malformed = report.server_timings.server_timing_malformed;
    html! {
        @if !rows.is_empty() {
            h2 { "What the server says of its work (Server-Timing)" }
            div class="wide" { table {
                tr { th { "" } th { "p50" } th { "p90" } th { "p99" } th { "p99.9" } th { "max" }
                    th { "mean" } th { "count" } }
                @for (name, hist) in rows { (times_row("", name, &hist)) }
            } }
        }
        @if malformed > 0 {
            p class="note" { (words::counted(malformed, "malformed metric")) " in Server-Timing." }
        }
    }
}

pub(crate) fn outcomes(report: &RunRecord) -> Markup {
    let counts = &report.outcomes;
    let share = |n: u64| show::share(figures::ratio(n as f64, counts.due as f64));
    html! {
        h2 { "Outcomes" }
        div class="wide" { table class="narrow" {
            tr { th { "" } th { "calls" } th { "share" } }
            @for (name, count) in facts::ends(counts) {
                tr { td { (name) } td { (show::count(count)) } td { (share(count)) } }
            }
            tr class="sum" { td { "due" } td { (show::count(counts.due)) } td { (share(counts.due)) } }
        } }
        @if !report.failures.is_empty() {
            h3 { "Failures by class" }
            div class="wide" { table {
                tr { th { "Class" } th { "calls" } th class="text" { "blame" } th class="text" { "" } }
                @for failure in &report.failures {
                    tr {
                        td { code { (failure.class.id()) } }
                        td { (show::count(failure.count)) }
                        td class="text" { (failure.class.blame().id()) }
                        td class="text soft" { (failure.class.explain()) }
                    }
                }
            } }
        }
        @if !report.status.is_empty() {
            h3 { "Responses by status" }
            p { (facts::statuses(report)) }
        }
    }
}

pub(crate) fn runs(report: &RunRecord) -> Markup {
    let estimates = figures::estimates(&report.runs);
    let time = |seconds: f64| show::duration(Nanos::from_secs_f64(seconds));
    html! {
        @if !report.runs.is_empty() {
            h2 { "Runs" }
            div class="wide" { table {
                tr { th { "Run" } th { "throughput" } th { "p50" } th { "p90" } th { "p99" }
                    th { "p99.9" } th { "failures" } th { "verdict" } }
                @for (index, run) in report.runs.iter().enumerate() {
                    tr {
                        td { (index + 1) } td { (show::rate(run.throughput_per_s)) }
                        td { (time(run.p50_s)) } td { (time(run.p90_s)) } td { (time(run.p99_s)) }
                        td { (time(run.p99_9_s)) } td { (show::share(run.failure_share)) }
                        td { (run.state.id()) }
                    }
                }
            } }
        }
        @if !estimates.is_empty() {
            h3 { "Across runs, with the 95 % interval of the mean (Student's t)" }
            div class="wide" { table class="narrow" {
                tr { th { "" } th { "mean" } th { "from" } th { "to" } }
                @for (name, estimate, kind) in estimates {
                    tr {
                        td { (name) } td { (kind.show(estimate.value)) }
                        td { (kind.show(estimate.low)) } td { (kind.show(estimate.high)) }
                    }
                }
            } }
        }
    }
}

pub(crate) fn per_url(report: &RunRecord) -> Markup {
    let rows = &report.per_url;
    let left_out = rows.len().saturating_sub(URLS_MAX);
    html! {
        @if !rows.is_empty() {
            @let steps = report.journeys.is_some();
            h2 { @if steps { "Per step" } @else { "Per URL" } }
            div class="wide" { table class="sortable" {
                tr { th { @if steps { "step" } @else { "URL" } } th { "calls" } th { "failed" } th { "p50" } th { "p99" } th { "max" } }
                @for row in rows.iter().take(URLS_MAX) {
                    tr {
                        td class="url" { (words::printable(row.label(), 400)) }
                        @let failed = row.failed + row.timed_out;
                        td data-v=(row.count) { (show::count(row.count)) }
                        td data-v=(failed) { (show::count(failed)) }
                        (time_cells(&report.hist_of_target(row.target), &[0.5, 0.99]))
                    }
                }
            } }
            @if left_out > 0 {
                p class="note" { (words::counted(left_out as u64, "row")) " more in the JSON." }
            }
        }
    }
}

/// Several loads at once.
pub(crate) fn scenarios(report: &RunRecord) -> Markup {
    let rows = &report.by_scenario;
    html! {
        @if !rows.is_empty() {
            h2 { "By scenario" }
            div class="wide" { table class="sortable" {
                tr {
                    th { "scenario" } th { "load" } th { "calls" } th { "failed" } th { "per second" }
                    th { "p50" } th { "p90" } th { "p99" } th { "max" }
                }
                @for (place, row) in rows.iter().enumerate() {
                    @let counts = &row.outcomes;
                    @let (failed, rate) = (counts.bad(), row.throughput_per_s);
                    tr {
                        td class="url" { (words::printable(&row.name, 400)) }
                        td class="url" { (words::printable(&row.load, 400)) }
                        td data-v=(counts.due) { (show::count(counts.due)) }
                        td data-v=(failed) { (show::count(failed)) }
                        td data-v=(rate) { (show::rate(rate)) }
                        (time_cells(&report.hist_of_scenario(place), &[0.5, 0.9, 0.99]))
                    }
                }
            } }
        }
    }
}

/// Some quantiles and the longest; dashes for none.
fn time_cells(response: &Hist, quantiles: &[f64]) -> Markup {
    html! {
        @if response.is_empty() { @for _ in quantiles { td { "-" } } td { "-" } }
        @else {
            @for &quantile in quantiles {
                td data-v=(response.quantile(quantile).0) { (quantile_cell(response, quantile)) }
            }
            td data-v=(response.max().0) { (show::duration(response.max())) }
        }
    }
}

/// Kinds of clients, each behind its own kind of path.
pub(crate) fn clients(report: &RunRecord) -> Markup {
    let rows = &report.by_clients;
    html! {
        @if !rows.is_empty() {
            h2 { "By kind of clients" }
            div class="wide" { table class="sortable" {
                tr {
                    th { "behind" } th { "clients" } th { "calls" } th { "failed" } th { "p50" }
                    th { "p90" } th { "p99" } th { "max" }
                }
                @for (place, row) in rows.iter().enumerate() {
                    @let failed = row.failed + row.timed_out;
                    tr {
                        td class="url" { (words::printable(&row.name, 400)) }
                        td data-v=(row.clients) { (show::count(u64::from(row.clients))) }
                        td data-v=(row.count) { (show::count(row.count)) }
                        td data-v=(failed) { (show::count(failed)) }
                        (time_cells(&report.hist_of_clients(place), &[0.5, 0.9, 0.99]))
                    }
                }
            } }
        }
    }
}

/// Steps that belong together, and what users noticed beside their calls.
pub(crate) fn journeys(report: &RunRecord) -> Markup {
    html! {
        @if let Some(journeys) = &report.journeys {
            @let notes = journeys.notes();
            h2 { "Steps together" }
            div class="wide" { table class="sortable" {
                tr {
                    th { "journey or block" } th { "done" } th { "failed" } th { "p50" } th { "p99" }
                    th { "max" }
                }
                @for (place, row) in journeys.transactions.iter().enumerate() {
                    @let count = row.succeeded + row.failed;
                    tr {
                        td class="url" { (words::printable(&row.name, 400)) }
                        td data-v=(count) { (show::count(count)) }
                        td data-v=(row.failed) { (show::count(row.failed)) }
                        (time_cells(&report.hist_of_transaction(place), &[0.5, 0.99]))
                    }
                }
            } }
            @if !notes.is_empty() {
                h3 { "On the way" }
                ul { @for (name, text) in &notes { li { (words::printable(name, 100)) ": " (text) } } }
            }
        }
    }
}

/// What limits the server, the most certain first.
pub(crate) fn findings(findings: &[Finding]) -> Markup {
    html! {
        @if !findings.is_empty() {
            h2 { "What limits this server" }
            @for finding in findings {
                section class="finding" {
                    p class="head" {
                        code { (words::printable(&finding.id, 80)) }
                        span class="sure" { (finding.confidence) }
                    }
                    p { (words::sentence(&finding.evidence)) }
                    @if !finding.advice.is_empty() { p class="soft" { "Try: " (finding.advice) } }
                }
            }
        }
    }
}

/// Whether the client itself was well.
pub(crate) fn client(report: &RunRecord, plots: &mut Plots) -> Markup {
    let charts = charts::client(report, plots);
    html! {
        h2 { "The client itself" }
        p { (words::sentence(&facts::client(report))) }
        @if let Some(dummy) = facts::dummy(report) { p { (dummy) } }
        @if let Some(charts) = charts { (charts) }
    }
}

/// The one-line facts, the warm-up, sessions, the first call, the machine.
pub(crate) fn details(report: &RunRecord) -> Markup {
    let (plan, toml) = (report.plan.plan(), report.plan.toml());
    let mut facts = facts::facts(report);
    let score = report.score().map(|score| ("Score", score.sentence()));
    facts.splice(0..0, score);
    // the client has a section of its own
    facts.retain(|(label, _)| !matches!(*label, "Client" | ""));
    facts.extend(facts::warm_up(report).map(|text| ("Warm-up", text)));
    facts.extend(facts::sessions(report).map(|text| ("Sessions", text)));
    facts.extend(words::first_call(report).map(|text| ("First call", text)));
    for lookup in &report.resolved {
        let addresses = lookup.addresses.join(", ");
        let host = words::printable(&lookup.host, 120);
        let took = words::seconds(lookup.took_s);
        facts.push(("Name", format!("{host}: {addresses} (in {took})")));
    }
    if report.redirects > 0 {
        facts.push(("Redirects", show::count(report.redirects)));
    }
    html! {
        h2 { "Details" }
        dl class="facts" {
            @for (label, text) in facts { dt { (label) } dd { (text) } }
        }
        @if !toml.is_empty() {
            h2 { "Plan" }
            @let differing = record::words::differing_from_defaults(plan, toml);
            @if !differing.is_empty() {
                p class="soft" { "What differs from the defaults:" }
                pre { (differing) }
            }
            details { summary { "The whole plan" } pre { (toml) } }
        }
    }
}
