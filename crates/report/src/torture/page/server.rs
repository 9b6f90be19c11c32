//! The server during the torture: what its own machine showed of it, from case to case.

use crate::page::html::frame::Plots;
use crate::section::chart::{
    AxisUnit, Chart, Dash, Dots, Horizontal, Line, POINTS_MAX, Tone, Values,
};
use crate::torture::{server, words};
use maud::{Markup, html};
use record::torture::{MomentRecord, TortureRecord};

const MEBIBYTE: f64 = 1_048_576.0;

/// Nothing where the server was not observed.
pub(super) fn section(record: &TortureRecord, plots: &mut Plots) -> Markup {
    let Some(seen) = &record.server else { return html! {} };
    let events = server::events(record);
    html! {
        h2 id="server" { "The server during the torture" }
        p { (server::head(seen)) }
        (charts(&seen.series, plots))
        div class="wide" { table {
            tr { th { "" } @for head in server::HEADS { th { (head) } } }
            @for (name, cells) in server::rows(record) {
                tr { td { (name) } @for cell in cells { td { (cell) } } }
            }
        } }
        p class="note" {
            "Cases in which nothing changed have no row. CPU is the time spent in the case, in the last \
             row the time spent in all cases together."
        }
        @if !events.is_empty() {
            ul { @for (case, said) in events { li { (case) ": " (words::safe(&said)) } } }
        }
    }
}

/// Two charts along the run; nothing for fewer than two observations.
fn charts(series: &[MomentRecord], plots: &mut Plots) -> Markup {
    let step = series.len().div_ceil(POINTS_MAX).max(1);
    let rows: Vec<&MomentRecord> = series.iter().step_by(step).collect();
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return html! {} };
    let (low, high) = (first.at_s, last.at_s);
    if rows.len() < 2 || high <= low {
        return html! {};
    }
    let x = Horizontal { name: "time", unit: AxisUnit::Time, log: false, low, high };
    let values =
        |of: fn(&MomentRecord) -> f64| -> Values { rows.iter().map(|row| Some(of(row))).collect() };
    let chart = |id: &str, title: &str, lines: Vec<Line>| Chart {
        words: format!("{title} over the time of the run"),
        lines,
        ..Chart::new(id, title, x, AxisUnit::Count)
            .with_places(rows.iter().map(|row| row.at_s).collect())
    };
    let memory = values(|row| row.memory_bytes as f64 / MEBIBYTE);
    let memory = vec![Line::new("in use", Tone::Blue, memory).filled().dotted(Dots::Joined)];
    let open = Line::new("descriptors", Tone::Blue, values(|row| row.descriptors as f64));
    let threads = Line::new("threads", Tone::Orange, values(|row| row.threads as f64));
    let held = vec![open.dotted(Dots::Joined), threads.dashed(Dash::Long)];
    html! {
        (plots.figure(&chart("server-memory", "Memory of the server, in MiB", memory)))
        (plots.figure(&chart("server-held", "Descriptors and threads of the server", held)))
    }
}
