//! Documents as one self-contained page: no network, no fonts; readable without script and on
//! paper, light or dark. Every chart is drawn twice from one description: as SVG in the page, and
//! by the script with a cursor and zoom. Data from peers is text: the template escapes it, and it
//! could not run anyway, since the policy of the page allows only its own style and script.

pub(crate) mod axis;
pub(crate) mod draw;
mod forest;
pub(crate) mod frame;
mod histogram;
mod table;

use crate::section::{
    Block, Caution, Details, Document, FactList, Forms, Heading, Inline, Mark, Mood, Notice,
    Reason, Remedy, Sentence, Tile, Title, Voice, Words,
};
use crate::words;
use frame::{Bar, Plots};
use maud::{Markup, html};

/// Renders the page.
pub(crate) fn page(document: &Document) -> String {
    let mut plots = Plots::default();
    let body = body(document, &mut plots);
    frame::page(&document.title, &bar(document), &body, plots)
}

/// Returns the kind of the page, and links to its parts: those that it lists, or every heading with
/// an anchor.
fn bar(document: &Document) -> Bar {
    let mut bar = Bar::default();
    for block in document.blocks(Forms::PAGE) {
        match block {
            Block::Title(one) => bar.kicker = one.kicker,
            Block::Places(all) => bar.places = all.clone(),
            _ => {}
        }
    }
    if bar.places.is_empty() {
        let headings = document.blocks(Forms::PAGE).filter_map(|block| match block {
            Block::Heading(one) if one.level == 2 && !one.id.is_empty() => Some(one),
            _ => None,
        });
        // an id is the short name of its part
        let name = |id: &str| words::capitalized(&id.replace('-', " "));
        bar.places = headings.map(|one| (one.id, name(one.id))).collect();
    }
    bar
}

/// Renders the content of a document for the page.
pub(crate) fn body(document: &Document, plots: &mut Plots) -> Markup {
    html! { @for one in document.blocks(Forms::PAGE) { (block(one, plots)) } }
}

fn block(block: &Block, plots: &mut Plots) -> Markup {
    match block {
        Block::Gap
        | Block::Places(_)
        | Block::Checked { .. }
        | Block::Lines(_)
        | Block::Steps(_)
        | Block::Sparks(_) => html! {},
        Block::Title(one) => title(one),
        Block::Heading(one) => heading(one, plots),
        Block::Sentence(one) => sentence(one),
        Block::Caution(one) => caution(one),
        Block::Notice(one) => notice(one),
        Block::Facts(list) => facts(list),
        Block::Table(one) => table::table(one),
        Block::Code(code) => html! { pre { (code) } },
        Block::List(items) => html! { ul { @for item in items { li { (inline(item)) } } } },
        Block::Tiles(all) => html! { dl class="tiles" { @for one in all { (tile(one)) } } },
        Block::Marks(all) => marks(all),
        Block::Grid(groups) => html! {
            div class="grid" {
                @for group in groups { div { @for one in group { (self::block(one, plots)) } } }
            }
        },
        Block::Findings(all) => html! { div class="grid" { @for one in all { (finding(one)) } } },
        Block::Chart(chart) => plots.figure(chart),
        Block::Forest(one) => forest::figure(one),
        Block::Histogram(hist, rows) => histogram::table(hist, *rows),
        Block::Composition(one) => draw::composition(one),
        Block::HowToLook => chart_controls(),
        Block::Details(one) => details(one, plots),
        Block::Foot(text) => html! { footer { (text) } },
    }
}

/// Returns the CSS class of a mood, which sets its color.
pub(crate) fn class(mood: Mood) -> &'static str {
    match mood {
        Mood::Good => "valid",
        Mood::Doubtful => "degraded",
        Mood::Bad => "invalid",
        Mood::Unknown => "unknown",
    }
}

pub(crate) fn inline(words: &Words) -> Markup {
    html! {
        @for piece in &words.0 {
            @match piece {
                Inline::Plain(text) => (text),
                Inline::Code(text) => code { (text) },
                Inline::Strong(text) => strong { (text) },
                Inline::Badge(mood, text) => span class=(format!("badge {}", class(*mood))) { (text) },
                Inline::Link(id, text) => a href=(format!("#{id}")) { (text) },
                Inline::Command(text) | Inline::Bytes { lines: text, .. } => {
                    pre class="bytes" { (text) }
                }
                Inline::Below(text) => div class="soft" { (text) },
                Inline::Bars(bars, words) => (draw::bars(bars, words)),
            }
        }
    }
}

fn title(one: &Title) -> Markup {
    html! {
        header {
            h1 { (one.name) }
            @for line in &one.lines { p class="soft" { (inline(line)) } }
        }
    }
}

fn heading(one: &Heading, plots: &Plots) -> Markup {
    let id = Some(one.id).filter(|id| !id.is_empty()).map(|id| plots.named(id));
    html! {
        @match one.level {
            2 => h2 id=[id] { (one.text) },
            _ => h3 id=[id] { (one.text) },
        }
    }
}

fn sentence(sentence: &Sentence) -> Markup {
    let class = match sentence.voice {
        Voice::Plain => None,
        Voice::Answer => Some("answer"),
        Voice::Note => Some("note"),
        Voice::Soft => Some("soft"),
        Voice::Head => return html! { h3 { (inline(&sentence.words)) } },
    };
    html! { p class=[class] { (inline(&sentence.words)) } }
}

fn caution(caution: &Caution) -> Markup {
    let word = if caution.word.is_empty() { "Caution" } else { caution.word }.to_uppercase();
    html! {
        section class="verdict degraded" { p class="word" { strong { (word) } " " (caution.text) } }
    }
}

fn notice(notice: &Notice) -> Markup {
    // the style of the word replaces the colon
    let behind = notice.after_word().trim_start_matches(':').trim_start();
    let goes_on = if notice.sentence.is_empty() { notice.meaning } else { behind };
    html! {
        section class=(format!("verdict {}", class(notice.mood))) {
            p class="word" {
                @if !notice.label.is_empty() { (notice.label) ": " }
                strong { (notice.word) } " " (goes_on)
            }
            @if let Some(example) = &notice.example {
                p class="soft" { "It responds: " code { (example) } }
            }
            @if !notice.reasons.is_empty() || !notice.items.is_empty() {
                ul {
                    @for reason in &notice.reasons {
                        li { code { (reason.id) } " " (reason.text) "." }
                    }
                    @for item in &notice.items { li { (inline(item)) } }
                }
            }
            (advice(&notice.reasons, notice.mood == Mood::Bad))
        }
    }
}

/// Renders advice for the reasons, collapsed if the result is usable without change.
fn advice(reasons: &[Reason], open: bool) -> Markup {
    let mut advised = reasons.iter().filter(|reason| !reason.advice.is_empty()).peekable();
    html! {
        @if advised.peek().is_some() {
            details class="advice" open[open] {
                summary { "What to do" }
                ul {
                    @for reason in advised {
                        li { code { (reason.id) } " " (words::sentence(&reason.advice)) }
                    }
                }
            }
        }
    }
}

fn marks(all: &[Mark]) -> Markup {
    let sign = |mood| match mood {
        Mood::Good => "✓",
        Mood::Bad => "✗",
        Mood::Doubtful | Mood::Unknown => "?",
    };
    html! {
        ul class="marks" {
            @for one in all {
                li class=(class(one.mood)) {
                    b { (sign(one.mood)) } code { (one.name) } span { (one.value) }
                }
            }
        }
    }
}

fn facts(list: &FactList) -> Markup {
    html! {
        dl class="facts" {
            @for (label, words) in &list.rows {
                @if !label.is_empty() { dt { (words::capitalized(label)) } }
                dd { (inline(words)) }
            }
        }
    }
}

fn tile(one: &Tile) -> Markup {
    html! {
        div {
            dt { (one.label) } dd { (one.value) }
            @if !one.sub.is_empty() { dd class="sub" { (one.sub) } }
        }
    }
}

fn finding(one: &Remedy) -> Markup {
    html! {
        section class="finding" {
            p class="head" { code { (one.id) } span class="sure" { (one.sure) } }
            p { (words::sentence(&one.evidence)) }
            @if !one.advice.is_empty() { p class="soft" { "Try: " (one.advice) } }
        }
    }
}

/// Renders the pointer controls of the charts, shown if scripts run.
fn chart_controls() -> Markup {
    html! {
        p class="note scripted-only" {
            "Drag across a chart to zoom, double-click to reset; click a name to hide its line."
        }
    }
}

fn details(one: &Details, plots: &mut Plots) -> Markup {
    let before = plots.enter(&one.charts);
    let body = body(&one.body, plots);
    plots.leave(before);
    let id = Some(one.id.as_str()).filter(|id| !id.is_empty());
    html! {
        details id=[id] open[one.open] { summary { (inline(&one.summary)) } div { (body) } }
    }
}
