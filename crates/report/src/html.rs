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

use crate::{Figures, RunReport, text, words};
use maud::{Markup, html};
use page::Plots;

/// The page.
pub fn html(report: &RunReport) -> String {
    let mut plots = Plots::default();
    let body = body(report, &Figures::new(report), &mut plots);
    let title = format!("{}: {}", report.verdict.state.id(), words::name(report));
    page::page(&title, &body, plots)
}

fn body(report: &RunReport, figures: &Figures, plots: &mut Plots) -> Markup {
    let (name, target) = (words::name(report), words::target(&report.plan));
    html! {
        header {
            p class="kicker" { "Measurement of a web server" }
            h1 { (name) }
            @if name != target { p { (target) } }
            p class="soft" { (text::done_sentence(report)) }
            p class="soft" { (sections::measured(report.started_unix_s, &report.environment)) }
        }
        (figures_of(report, figures, plots))
    }
}

/// Everything below the name of the run.
fn figures_of(report: &RunReport, figures: &Figures, plots: &mut Plots) -> Markup {
    html! {
        (sections::conduct(&record::server::Server::of(report)))
        (sections::verdict(&report.verdict))
        p class="answer" { (words::answer(report, figures)) }
        (sections::tiles(report, figures))
        (histogram::section(&figures.response))
        (sections::objectives(report))
        (sections::findings(&report.findings))
        @if let Some(charts) = charts::over_time(report, plots) {
            h2 { "Over time" }
            (charts)
            (sections::how_to_look())
        }
        (sections::times(report, figures, plots))
        (sections::streams(report))
        (sections::phases(report, figures))
        (sections::server_timings(report))
        (sections::outcomes(report))
        (sections::runs(report))
        (sections::scenarios(report))
        (sections::clients(report))
        (sections::per_url(report))
        (sections::journeys(report))
        (server::section(report, charts::time_axis(report), plots))
        (sections::client(report, figures, plots))
        (sections::details(report, figures))
    }
}
