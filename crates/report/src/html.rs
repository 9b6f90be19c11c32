//! The report as one self-contained page: no network, no fonts, no script; readable on paper, light
//! or dark. Whatever a peer sent is text: it is escaped by the template and could not run anyway,
//! since the policy of the page allows nothing but its own style sheet.

mod axis;
mod charts;
mod sections;

use crate::{Figures, RunReport, text, words};
use base64::Engine;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("html/style.css");

/// The page.
pub fn html(report: &RunReport) -> String {
    let figures = Figures::new(report);
    page(report, &body(report, &figures)).into_string()
}

fn page(report: &RunReport, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (report.verdict.state.id()) ": " (words::name(report)) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    }
}

/// Nothing from anywhere, and of the page itself only the style sheet with this hash.
fn policy() -> String {
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

fn body(report: &RunReport, figures: &Figures) -> Markup {
    let (name, target) = (words::name(report), words::target(&report.plan));
    html! {
        header {
            p class="kicker" { "Measurement of a web server" }
            h1 { (name) }
            @if name != target { p { (target) } }
            p class="soft" { (text::done_sentence(report)) }
        }
        (sections::verdict(report))
        p class="answer" { (words::answer(report, figures)) }
        (sections::tiles(report, figures))
        (sections::objectives(report))
        @if let Some(charts) = charts::over_time(report) { h2 { "Over time" } (charts) }
        (sections::times(report, figures))
        (sections::phases(report, figures))
        (sections::server_timings(report))
        (sections::outcomes(report))
        (sections::runs(report))
        (sections::findings(report))
        (sections::per_url(report))
        (sections::details(report, figures))
        footer {
            "Measured " (words::timestamp(report.started_unix_s))
            @let machine = words::environment(report);
            @if !machine.is_empty() { " on " (machine) }
            "."
        }
    }
}
