//! The report as one self-contained page: no network, no fonts; readable without script and on paper,
//! light or dark. Every chart is drawn twice from one description: as SVG in the page, and by the
//! script with a cursor and zoom. Whatever a peer sent is text: it is escaped by the template and
//! could not run anyway, since the policy of the page allows nothing but its own style and script.

pub(crate) mod axis;
pub(crate) mod chart;
pub(crate) mod charts;
mod draw;
mod endings;
pub(crate) mod histogram;
pub(crate) mod many;
pub(crate) mod page;
pub(crate) mod sections;
pub(crate) mod server;

use crate::{RunRecord, RunTimes, text, words};
use maud::{Markup, html};
use page::Plots;

/// The page.
pub fn html(report: &RunRecord) -> String {
    let mut plots = Plots::default();
    let body = body(report, &mut plots);
    let title = format!("{}: {}", report.verdict.state.id(), report.name);
    page::page(&title, &body, plots)
}

fn body(report: &RunRecord, plots: &mut Plots) -> Markup {
    let (name, target) = (&report.name, &report.target);
    html! {
        header {
            p class="kicker" { "Measurement of a web server" }
            h1 { (name) }
            @if name != target { p { (target) } }
            p class="soft" { (text::done_sentence(report)) }
            p class="soft" { (sections::measured(report.started_unix_s, &report.environment)) }
        }
        (figures_of(report, plots))
    }
}

/// Everything below the name of the run.
fn figures_of(report: &RunRecord, plots: &mut Plots) -> Markup {
    let all = &RunTimes::of(report);
    html! {
        (sections::conduct(&report.server))
        (sections::verdict(&report.verdict))
        p class="answer" { (words::answer(report, all)) }
        (sections::tiles(report, &all.response))
        (histogram::section(&all.response))
        (sections::objectives(report))
        (sections::findings(&report.findings))
        @if let Some(charts) = charts::over_time(report, plots) {
            h2 { "Over time" }
            (charts)
            (sections::how_to_look())
        }
        (sections::times(report, all, plots))
        (sections::streams(report))
        (sections::phases(report))
        (sections::server_timings(report))
        (sections::outcomes(report))
        (sections::runs(report))
        (sections::scenarios(report))
        (sections::clients(report))
        (sections::per_url(report))
        (sections::journeys(report))
        (server::section(report, charts::time_axis(report), plots))
        (sections::client(report, plots))
        (sections::details(report))
    }
}
