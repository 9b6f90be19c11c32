//! Findings and advice: what was sent, what came back, what was expected, how to send it again.

use super::{outcome, severity};
use crate::torture::{send, words};
use crate::words::counted;
use maud::{Markup, html};
use record::torture::{CaseRecord, ExchangeRecord, TortureRecord};
use torture::judge::TestOutcome;

/// Bytes of an exchange that are shown; all of them are in the JSON.
const SHOWN_MAX: usize = 4_000;
/// Exchanges of one case that are shown.
const EXCHANGES_MAX: usize = 24;

pub(super) fn findings(record: &TortureRecord) -> Markup {
    let shown = record.notable();
    html! {
        @if !shown.is_empty() {
            h2 id="findings" { "Findings and advice" }
            @for case in shown { (finding(record, case)) }
        }
    }
}

fn finding(record: &TortureRecord, case: &CaseRecord) -> Markup {
    let bad = |exchange: &&ExchangeRecord| exchange.outcome >= TestOutcome::Advisory;
    let exchanges: Vec<&ExchangeRecord> = case.exchanges.iter().filter(bad).collect();
    let left_out = exchanges.len().saturating_sub(EXCHANGES_MAX);
    html! {
        details id=(case.id) open[case.outcome.is_finding()] {
            summary {
                strong { (case.id) } " " (outcome(case.outcome)) " " (severity(case)) " " (case.title)
            }
            div {
                p class="soft" { (case.level.id()) ", " (case.reference) }
                @if !case.reason.is_empty() { p { (crate::words::sentence(&case.reason)) } }
                (numbers(record, case))
                @for one in exchanges.iter().take(EXCHANGES_MAX) { (exchange(record, case, one)) }
                @if left_out > 0 {
                    p class="note" { (counted(left_out as u64, "exchange")) " more in the JSON." }
                }
            }
        }
    }
}

/// What belongs to the case as a whole.
fn numbers(record: &TortureRecord, case: &CaseRecord) -> Markup {
    let mut facts: Vec<(&str, String)> = Vec::new();
    if let Some(one) = record.waiver_of(&case.id) {
        let said = format!("until {}: {}", one.waiver.until, one.waiver.reason);
        facts.push(("Waived", words::safe(&said)));
    }
    if !case.matters.is_empty() {
        facts.push(("Matters", case.matters.clone()));
    }
    facts.extend(case.notes.iter().map(|note| ("Because", words::safe(note))));
    if let Some(health) = &case.health {
        facts.extend(words::impact(health, record.baseline.as_ref()));
    }
    for one in record.limits_of(&case.id) {
        let said = format!("{}: {} ({})", one.what, words::measure(one), one.note);
        facts.push(("Measured", words::safe(&said)));
    }
    facts.extend(case.recovery_s.map(|recovery| ("Afterwards", words::afterwards(recovery))));
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

fn exchange(record: &TortureRecord, case: &CaseRecord, exchange: &ExchangeRecord) -> Markup {
    let (sent, received) = (&exchange.sent.0, &exchange.received.0);
    let again = exchange.outcome.is_finding();
    let again = again.then(|| send::shell_line(&record.target, sent, &exchange.pauses)).flatten();
    let kept = record.kept_folder(&case.id, &exchange.name);
    html! {
        h3 { (words::safe(&exchange.name)) " " (outcome(exchange.outcome)) }
        dl class="facts" {
            @if !sent.is_empty() {
                dt { "Sent" } dd { pre class="bytes" { (send::lines(sent, SHOWN_MAX)) } }
            }
            dt { "Came back" } dd {
                (words::safe(&exchange.seen))
                @for response in send::responses(received) {
                    @if !response.is_empty() {
                        pre class="bytes" { (send::lines(response, SHOWN_MAX)) }
                    }
                }
            }
            @if !exchange.expected.is_empty() {
                dt { "Expected" } dd { (words::safe(&exchange.expected)) }
            }
            @if !exchange.why.is_empty() { dt { "Why" } dd { (words::safe(&exchange.why)) } }
            @if exchange.tries > 1 {
                dt { "Failed in" } dd { (exchange.failed) " of " (exchange.tries) " tries" }
            }
            @if let Some(shrunk) = record.shrunk_of(&case.id, &exchange.name) {
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
