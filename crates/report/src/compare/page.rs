//! The page of a comparison: the answer, each difference with its interval, both distributions, the
//! runs behind them.

use super::protocols::protocols;
use super::text::family;
use super::{COMMAND_CHARS_MAX, p_value, shown, sides_in_words};
use crate::figures::RUN_FIGURES;
use crate::html::axis::{Scale, WIDTH, coordinate};
use crate::html::chart::{Dash, Tone};
use crate::html::charts::{Distribution, by_quantile, few_samples};
use crate::html::page::{self, Plots};
use crate::html::sections;
use crate::{Headline, words};
use maud::{Markup, html};
use record::compare::{
    CompareRecord, Contrast, DifferenceRecord, Judgement, SideRecord, amount, interval,
};
use stats::Hist;
use units::show;

/// How the differences are laid out, in units of the view box.
#[derive(Clone, Copy, Debug)]
struct Forest {
    /// Which of both it is, for the style sheet.
    class: &'static str,
    width: f64,
    /// Where the axis begins and ends.
    axis: (f64, f64),
    /// Height of a figure's row, and of what stands above the first.
    row: f64,
    head: f64,
    /// From the top of a row to its interval.
    middle: f64,
    /// Names and values stand above their intervals, not beside them.
    stacked: bool,
}

/// Names left of the axis.
const BROAD: Forest = Forest {
    class: "broad",
    width: WIDTH,
    axis: (150.0, 880.0),
    row: 30.0,
    head: 34.0,
    middle: 15.0,
    stacked: false,
};

/// For a phone, whose screen is as wide as this in pixels: the axis has all of it, so that its right
/// half, where regressions of times are, needs no scrolling.
const NARROW: Forest = Forest {
    class: "narrow",
    width: 358.0,
    axis: (10.0, 336.0),
    row: 50.0,
    head: 34.0,
    middle: 32.0,
    stacked: true,
};

/// The page.
pub fn html(report: &CompareRecord) -> String {
    let mut plots = Plots::default();
    let body = body(report, &mut plots);
    page::page(&format!("Compared: {}", title(report)), &body, plots)
}

fn title(report: &CompareRecord) -> String {
    match report.name.is_empty() {
        true => format!("{} against {}", label(&report.after), label(&report.before)),
        false => words::printable(&report.name, 200),
    }
}

fn label(side: &SideRecord) -> String {
    words::printable(&side.label, 120)
}

fn body(report: &CompareRecord, plots: &mut Plots) -> Markup {
    html! {
        header {
            p class="kicker" { "Comparison of web servers" }
            h1 { (title(report)) }
            p class="soft" { (sides_in_words(report)) }
            @for (letter, side) in report.lettered() {
                @if let Some(command) = &side.command {
                    p class="soft" {
                        (letter) "'s server was restarted for each run: "
                        code { (words::printable(command, COMMAND_CHARS_MAX)) }
                    }
                }
            }
        }
        p class="answer" { (report.answer) }
        @if let Some(why) = &report.ended_early {
            section class="verdict degraded" {
                p class="word" { strong { "ENDED EARLY" } " " (words::printable(why, 1_000)) }
            }
        }
        @for caution in &report.cautions {
            section class="verdict degraded" {
                p class="word" { strong { "CAUTION" } " " (words::printable(caution, 1_000)) }
            }
        }
        (bounds(report))
        (all_protocols(report))
        h2 { "Differences" }
        @for contrast in report.contrasts() {
            @if !report.further.is_empty() {
                h3 { (contrast.letter) ", " (words::printable(contrast.label, 120)) ", to A" }
            }
            (forest(contrast))
            (table(contrast))
        }
        (method(report))
        h2 { "Response times of " (if report.further.is_empty() { "both" } else { "all" }) }
        (distributions(report, plots))
        (runs(report))
        @if let Some(machine) = report.environment.as_ref().filter(|_| report.runs().next().is_some()) {
            (sections::footer(report.started_unix_s, machine))
        }
    }
}

fn bounds(report: &CompareRecord) -> Markup {
    html! {
        @if report.contrasts().any(|contrast| !contrast.bounds.is_empty()) {
            h2 { "Bounds" }
            div class="wide" { table {
                tr { th { "Bound" } th class="word" { "" } th class="text" { "why" } }
                @for contrast in report.contrasts() {
                    @for bound in contrast.bounds {
                        tr {
                            td { (contrast.mark(report)) code { (bound.text) } }
                            @if bound.crossed { td class="missed word" { "✗ crossed" } }
                            @else { td class="met word" { "✓ kept" } }
                            td class="text" { (bound.why) }
                        }
                    }
                }
            } }
        }
    }
}

/// One site over several protocols: what each took.
fn all_protocols(report: &CompareRecord) -> Markup {
    html! {
        @if let Some(protocols) = protocols(report) {
            h2 { "The protocols" }
            div class="wide" { table {
                tr { th { "" } @for name in &protocols.names { th { (name) } } }
                @for row in &protocols.rows {
                    tr { @for cell in row { td { (cell) } } }
                }
            } }
        }
    }
}

fn tone(one: &DifferenceRecord) -> Tone {
    match one.judgement {
        Judgement::Better => Tone::Green,
        Judgement::Worse => Tone::Red,
        Judgement::NoneShown | Judgement::TooFew => Tone::Blue,
    }
}

/// Farthest that the axis of differences reaches: +200 %. What lies beyond is marked at its edge. Nothing
/// falls by more than all it has.
const REACH_MAX: f64 = 2.0;
const FALL_MAX: f64 = 1.0;

/// Each ratio as a point with its interval, and the noise floor behind it.
fn forest(contrast: Contrast<'_>) -> Markup {
    let known = |one: &&DifferenceRecord| one.change.is_finite() && !one.points();
    let rows: Vec<&DifferenceRecord> = contrast.differences.iter().filter(known).collect();
    let title = format!("{} to A, with the interval", contrast.letter);
    let told = format!("Differences of {} to A with their intervals", contrast.letter);
    if rows.is_empty() {
        return html! { p { "No difference can be had." } };
    }
    let ends = rows.iter().flat_map(|one| [one.change, one.low, one.high, one.noise]);
    let reach = ends.filter(|end| end.is_finite()).fold(0.01, |most: f64, end| most.max(end.abs()));
    let reach = (reach * 1.05).min(REACH_MAX);
    html! {
        figure {
            figcaption {
                strong { (title) }
                span class="key" { "grey: what A differs by from itself" }
            }
            (drawn(&rows, reach, &told, &BROAD))
            (drawn(&rows, reach, &told, &NARROW))
        }
    }
}

fn drawn(rows: &[&DifferenceRecord], reach: f64, told: &str, forest: &Forest) -> Markup {
    let scale = Scale::exact(-reach.min(FALL_MAX), reach, forest.axis);
    let bottom = forest.head + forest.row * rows.len() as f64;
    html! {
        div class=(format!("wide chart {}", forest.class)) {
            svg viewBox=(format!("0 0 {} {}", forest.width, bottom + 6.0)) role="img"
                aria-label=(told) {
                @for tick in ticks(&scale, forest) {
                    @let place = scale.place(tick);
                    @let x = coordinate(place);
                    line class=(if tick.abs() < 1e-12 { "axis" } else { "grid" })
                        x1=(x) x2=(x) y1=(coordinate(forest.head - 10.0)) y2=(coordinate(bottom)) {}
                    @let half = TICK_WIDTH / 2.0;
                    @let inside = place.clamp(half, forest.width - half);
                    text x=(coordinate(inside)) y="16" text-anchor="middle" { (percent(tick)) }
                }
                @for (n, one) in rows.iter().enumerate() {
                    @let top = forest.head + forest.row * n as f64;
                    (names(one, top, reach, forest))
                    (row_of_forest(one, top + forest.middle, &scale, reach, forest))
                }
            }
        }
    }
}

/// The marks of the axis: every other one where all would run into each other.
fn ticks(scale: &Scale, forest: &Forest) -> Vec<f64> {
    let all = scale.ticks();
    let apart = (forest.axis.1 - forest.axis.0) / all.len().max(1) as f64;
    let zero = all.iter().position(|tick| tick.abs() < 1e-12).unwrap_or(0);
    let step = if apart < TICK_WIDTH { 2 } else { 1 };
    all.into_iter().enumerate().filter(|(n, _)| n % step == zero % step).map(|(_, t)| t).collect()
}

/// What a mark such as `+150 %` takes.
const TICK_WIDTH: f64 = 52.0;

/// The figure's name, and what does not lie on the axis; stacked, the difference in words as well.
fn names(one: &DifferenceRecord, top: f64, reach: f64, forest: &Forest) -> Markup {
    let (name_x, anchor) = match forest.stacked {
        true => (forest.axis.0, "start"),
        false => (forest.axis.0 - 16.0, "end"),
    };
    let name_y = top + if forest.stacked { 12.0 } else { forest.middle };
    let words = match forest.stacked {
        true => format!("{} ({})", amount(one.change, one.points()), interval(one)),
        false => beyond(one, reach),
    };
    let words_y = top + if forest.stacked { 16.0 } else { forest.middle - 5.0 };
    let class = match forest.stacked {
        true => format!("change {}", tone(one).class()),
        false => "beyond".to_owned(),
    };
    html! {
        text x=(coordinate(name_x)) y=(coordinate(name_y)) dy="4" text-anchor=(anchor) { (one.figure) }
        @if !words.is_empty() {
            text class=(class) x=(coordinate(forest.axis.1 - 4.0)) y=(coordinate(words_y))
                text-anchor="end" { (words) }
        }
    }
}

/// Marks are round: no digits are wanted behind them.
fn percent(share: f64) -> String {
    let percent = (share * 1e6).round() / 1e4;
    let sign = if percent > 0.0 { "+" } else { "" };
    format!("{sign}{percent} %")
}

/// The interval of a difference, its point and the noise floor behind both.
fn row_of_forest(
    one: &DifferenceRecord,
    y: f64,
    scale: &Scale,
    reach: f64,
    forest: &Forest,
) -> Markup {
    let class = tone(one).class();
    let noise = Some(one.noise).filter(|noise| noise.is_finite());
    let ends = one.low.is_finite() && one.high.is_finite();
    let end = forest.axis.1;
    html! {
        @if let Some(noise) = noise {
            @let (low, high) = (scale.place(-noise.abs()), scale.place(noise.abs()));
            rect class="fill t-soft range" x=(coordinate(low)) y=(coordinate(y - 9.0))
                width=(coordinate((high - low).max(1.0))) height="18" rx="2" {}
        }
        @if ends {
            path class=(format!("curve {class}"))
                d=(format!("M{} {y}H{}", coordinate(scale.place(one.low)),
                    coordinate(scale.place(one.high)))) {}
        }
        @if one.change <= reach {
            circle class=(format!("fill {class}")) cx=(coordinate(scale.place(one.change)))
                cy=(coordinate(y)) r="4.5" {}
        }
        @if one.change > reach || (ends && one.high > reach) {
            path class=(format!("fill {class} beyond"))
                d=(format!("M{0} {1}L{2} {y}L{0} {3}Z", coordinate(end), coordinate(y - 6.0),
                    coordinate(end + ARROW), coordinate(y + 6.0))) {}
        }
    }
}

/// Length of the arrow behind the axis's end.
const ARROW: f64 = 12.0;

/// What of a difference the axis cannot show, in words.
fn beyond(one: &DifferenceRecord, reach: f64) -> String {
    let change = |share: f64| amount(share, one.points());
    let point = (one.change > reach).then(|| change(one.change));
    let end = one.high.is_finite() && one.high > reach;
    let end = end.then(|| format!("to {}", change(one.high)));
    let noise = one.noise.is_finite() && one.noise > reach;
    let noise =
        noise.then(|| format!("A to itself ±{}", change(one.noise).trim_start_matches('+')));
    let moved = [point, end].into_iter().flatten().collect::<Vec<_>>().join(" ");
    [Some(moved), noise]
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

fn table(contrast: Contrast<'_>) -> Markup {
    let letter = contrast.letter;
    html! {
        div class="wide" { table {
            tr {
                th { "" } th { "A" } th { (letter) } th { (letter) " to A" } th { "interval" } th { "p" }
                th { "noise floor" } th { "Cliff's delta" } th class="word" { "" }
            }
            @for one in contrast.differences { (table_row(one)) }
        } }
    }
}

fn table_row(one: &DifferenceRecord) -> Markup {
    let noise = match one.noise.is_finite() {
        true => format!("±{}", amount(one.noise.abs(), one.points()).trim_start_matches('+')),
        false => "-".to_owned(),
    };
    let effect = match one.effect.is_finite() {
        true => format!("{:+.2}", one.effect),
        false => "-".to_owned(),
    };
    html! {
        tr {
            td { (one.figure) } td { (shown(one, one.before)) } td { (shown(one, one.after)) }
            td { (amount(one.change, one.points())) } td { (interval(one)) } td { (p_value(one)) }
            td { (noise) } td { (effect) }
            @match one.judgement {
                Judgement::Better => { td class="met word" { "better" } }
                Judgement::Worse => { td class="missed word" { "worse" } }
                Judgement::NoneShown => { td class="soft word" { "no difference shown" } }
                Judgement::TooFew => { td class="soft word" { "too few runs" } }
            }
        }
    }
}

fn method(report: &CompareRecord) -> Markup {
    let what = if report.order.is_empty() { "runs" } else { "blocks" };
    html! {
        p class="note" {
            "Intervals hold " (show::share(report.confidence)) ", by bootstrap over " (what) " ("
            (show::count(u64::from(report.resamples))) " resamples). p: how often labels drawn anew make \
            any of these figures differ as much. Cliff's delta: 1 when every run of B lies above every \
            run of A, −1 when below." (family(report))
        }
    }
}

/// How the distribution of each side is drawn.
const LOOKS: [(Tone, Dash); 3] =
    [(Tone::Blue, Dash::None), (Tone::Orange, Dash::Long), (Tone::Green, Dash::Short)];

fn distributions(report: &CompareRecord, plots: &mut Plots) -> Markup {
    let side = |(letter, side): (char, &SideRecord)| {
        (format!("{letter}: {}", label(side)), side.response())
    };
    let sides: Vec<(String, Hist)> = report.lettered().map(side).collect();
    let all: Vec<Distribution<'_>> = sides
        .iter()
        .zip(LOOKS)
        .map(|((name, hist), look)| Distribution { name, look, hist })
        .collect();
    match by_quantile("spectrum", "Response time by quantile (log scales)", &all) {
        Some(chart) => html! {
            (plots.figure(&chart))
            (sections::how_to_look())
            (few_samples())
        },
        None => html! { p { "There are no response times to show." } },
    }
}

fn runs(report: &CompareRecord) -> Markup {
    html! {
        h2 { "Runs" }
        @if !report.order.is_empty() {
            p class="soft" { "In turns, as drawn: " (words::printable(&report.order.join(" "), 400)) }
        }
        div class="wide" { table class="sortable" {
            tr {
                th { "Side" } th { "run" }
                @for (name, ..) in RUN_FIGURES { th { (name) } }
                th class="word" { "verdict" }
            }
            @for (letter, side) in report.lettered() {
                @for (n, headline) in side.runs.iter().enumerate() {
                    (run_row(letter, n, headline))
                }
            }
        } }
    }
}

fn run_row(side: char, n: usize, headline: &Headline) -> Markup {
    html! {
        tr {
            td { (side) } td data-v=(n + 1) { (n + 1) }
            @for (_, figure, kind) in RUN_FIGURES {
                @let value = figure(headline);
                td data-v=(value) { (kind.show(value)) }
            }
            td class="word" { (headline.state.id()) }
        }
    }
}
