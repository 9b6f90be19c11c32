//! Findings and advice: what was sent, what came back, what was expected, how to send it again.

use super::outcome;
use crate::torture::{Report, send, words};
use crate::words::counted;
use maud::{Markup, html};
use torture::judge::Outcome;
use torture::result::{CaseResult, ExchangeResult};

/// Bytes of an exchange that are shown; all of them are in the JSON.
const SHOWN_MAX: usize = 4_000;
/// Exchanges of one case that are shown.
const EXCHANGES_MAX: usize = 24;

pub(super) fn findings(report: &Report) -> Markup {
    let mut shown: Vec<&CaseResult> = report.result.cases.iter().collect();
    shown.retain(|case| case.outcome >= Outcome::Advisory);
    shown.sort_by_key(|case| std::cmp::Reverse(case.outcome));
    html! {
        @if !shown.is_empty() {
            h2 id="findings" { "Findings and advice" }
            @for case in shown { (finding(report, case)) }
        }
    }
}

fn finding(report: &Report, case: &CaseResult) -> Markup {
    let found = &case.case;
    let bad = |exchange: &&ExchangeResult| exchange.judgement.outcome >= Outcome::Advisory;
    let exchanges: Vec<&ExchangeResult> = case.exchanges.iter().filter(bad).collect();
    let left_out = exchanges.len().saturating_sub(EXCHANGES_MAX);
    html! {
        details id=(found.id) open[case.outcome.is_finding()] {
            summary { strong { (found.id) } " " (outcome(case.outcome)) " " (found.title) }
            div {
                p class="soft" { (found.level.id()) ", " (found.reference) }
                p { (crate::words::sentence(&found.why)) }
                (numbers(report, case))
                @for one in exchanges.iter().take(EXCHANGES_MAX) { (exchange(report, case, one)) }
                @if left_out > 0 {
                    p class="note" { (counted(left_out as u64, "exchange")) " more in the JSON." }
                }
            }
        }
    }
}

/// What belongs to the case as a whole.
fn numbers(report: &Report, case: &CaseResult) -> Markup {
    let mut facts: Vec<(&str, String)> = Vec::new();
    if let Some(one) = report.waived(&case.case.id) {
        let said = format!("until {}: {}", one.waiver.until, one.waiver.reason);
        facts.push(("Waived", words::safe(&said)));
    }
    facts.extend(case.notes.iter().map(|note| ("Because", words::safe(note))));
    if let Some(health) = &case.health {
        facts.extend(words::felt(health, report.result.baseline.as_ref()));
    }
    for one in &case.measures {
        let said = format!("{}: {} ({})", one.what, words::measure(one), one.note);
        facts.push(("Measured", words::safe(&said)));
    }
    facts.extend(case.recovery.map(|recovery| ("Afterwards", words::afterwards(recovery))));
    html! {
        @if !facts.is_empty() {
            dl class="facts" {
                @for (label, said) in facts {
                    dt { (crate::words::sentence(label).trim_end_matches('.')) } dd { (said) }
                }
            }
        }
    }
}

fn exchange(report: &Report, case: &CaseResult, exchange: &ExchangeResult) -> Markup {
    let judgement = &exchange.judgement;
    let again = judgement.outcome.is_finding();
    let again = again.then(|| send::shell_line(&report.target, &exchange.sent)).flatten();
    let kept = report.result.kept_folder(&case.case.id, &exchange.name);
    html! {
        h3 { (words::safe(&exchange.name)) " " (outcome(judgement.outcome)) }
        dl class="facts" {
            @if !exchange.sent.is_empty() {
                dt { "Sent" } dd { pre class="bytes" { (send::lines(&exchange.sent, SHOWN_MAX)) } }
            }
            dt { "Came back" } dd {
                (words::safe(&judgement.seen))
                @if !exchange.received.is_empty() {
                    pre class="bytes" { (send::lines(&exchange.received, SHOWN_MAX)) }
                }
            }
            @if !judgement.expected.is_empty() {
                dt { "Expected" } dd { (words::safe(&judgement.expected)) }
            }
            @if !judgement.why.is_empty() { dt { "Why" } dd { (words::safe(&judgement.why)) } }
            @if exchange.tries > 1 {
                dt { "Failed in" } dd { (exchange.failed) " of " (exchange.tries) " tries" }
            }
            @if let Some(shrunk) = report.result.shrunk_of(&case.case.id, &exchange.name) {
                dt { "Shrunk" } dd { (words::shrunk(shrunk)) }
            }
            @if let Some(folder) = kept {
                dt { "Replay" }
                dd { pre class="bytes" { "loadstone torture replay " (send::word(folder)) } }
            }
            @if let Some(line) = again { dt { "Again" } dd { pre class="bytes" { (line) } } }
        }
    }
}
