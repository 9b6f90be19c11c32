//! One screen of 24 lines: the load, throughput, response times, failures, bottlenecks. `--full`
//! has everything.

use super::{has_results, parts, tables};
use crate::blocks::{conduct, verdict};
use crate::page::text::layout::Page;
use crate::page::text::{self, LINES, Style, picture};
use crate::section::{Block, Document, Forms, Voice, facts as fact_list, heading, with_lead};
use crate::words::counted;
use crate::{RunRecord, RunTimes, facts, words};
use record::run::JourneyRecord;

const SCREEN: Forms = Forms::SCREEN;

/// Rows of the histogram: fewer are uninformative, more unnecessary.
const BARS_MIN: usize = 3;
const BARS_MAX: usize = 8;
/// A terminal of this width has two columns: figures, and next to them the histogram and findings.
const TWO_COLUMNS: usize = 120;
/// Maximum width of two columns.
const COLUMNS_MAX: usize = 160;
/// Blanks between two columns.
const APART: usize = 3;

/// Level of detail if not everything fits.
#[derive(Clone, Copy, Debug)]
struct Detail {
    /// Maximum characters of each part of the load.
    asked: usize,
    /// Causes of the verdict, and how many of these have advice.
    causes: (usize, usize),
    across_runs: bool,
    /// Minimum number of rows of the histogram; more if there is room, and at least one for each
    /// class with more than a tail of the calls: rows that hold several would look like modes.
    bars: Option<usize>,
    /// Findings with their evidence, and how many of these have advice.
    findings: (usize, usize),
    /// Rows of the table of URLs.
    urls: usize,
    /// Service times that equal the response times, the legend of quantile marks, each of several
    /// runs and the figures across them.
    rest: bool,
    /// Objectives and failures have a table each, instead of a line.
    tables: bool,
}

/// Parts of every screen: state of the server, the verdict with a cause, throughput, failures,
/// objectives and response times.
const LEAST: Detail = Detail {
    asked: 60,
    causes: (1, 0),
    across_runs: false,
    bars: None,
    findings: (0, 0),
    urls: 0,
    rest: false,
    tables: false,
};

/// Optional parts, most important first.
const MORE: [fn(&mut Detail); 14] = [
    |detail| detail.across_runs = true,
    // a finding may report that the figures are not the server's
    |detail| detail.findings = (1, 0),
    |detail| detail.bars = Some(BARS_MIN),
    |detail| detail.asked = 130,
    |detail| detail.causes.0 = 2,
    |detail| detail.findings = (1, 1),
    |detail| detail.urls = 4,
    |detail| detail.causes.0 = usize::MAX,
    |detail| detail.bars = Some(BARS_MIN + 1),
    |detail| detail.causes.1 = 1,
    |detail| detail.rest = true,
    |detail| detail.tables = true,
    |detail| (detail.findings, detail.urls) = ((usize::MAX, 1), tables::URLS_MAX),
    |detail| detail.findings = (usize::MAX, usize::MAX),
];

/// Renders as much as fits; everything if the list of quantiles is requested. `empty`: a page for
/// the terminal. `closing`: lines at its end, omitted from a page that fills the screen without
/// them.
pub(super) fn screen(
    empty: Page,
    report: &RunRecord,
    all: &RunTimes,
    style: Style,
    closing: Page,
) -> Page {
    let lines = LINES.saturating_sub(closing.lines());
    let composed = |detail| composed(empty.empty_copy(), report, all, style, (detail, lines));
    let mut detail = LEAST;
    let mut page = composed(detail);
    for more in MORE {
        let mut next = detail;
        more(&mut next);
        let fuller = composed(next);
        // next to a long column there is room for more
        if style.percentiles || fuller.lines() <= lines.max(page.lines()) {
            (detail, page) = (next, fuller);
        }
    }
    if page.lines() <= lines || page.lines() > LINES {
        page.append(closing);
    }
    page
}

fn composed(
    mut page: Page,
    report: &RunRecord,
    all: &RunTimes,
    style: Style,
    (detail, lines): (Detail, usize),
) -> Page {
    text::write(&mut page, &head(report, detail), SCREEN);
    if style.columns >= TWO_COLUMNS && has_results(report) {
        return render_columns(page, report, all, style, detail);
    }
    text::write(&mut page, &figures(report, all, style, detail), SCREEN);
    let mut last = page.empty_copy();
    if has_results(report) {
        text::write(&mut last, &findings(report, detail), SCREEN);
        if let Some(least) = detail.bars {
            let room = lines.saturating_sub(page.lines() + last.lines() + 2);
            let needed = picture::rows_needed(&all.response);
            let least = least.max(needed);
            let rows = room.clamp(least, BARS_MAX.max(needed));
            let mut drawn = Document::default();
            drawn.add(SCREEN, parts::histogram(&all.response, rows));
            text::write(&mut page, &drawn, SCREEN);
        }
    }
    page.append(last);
    page
}

/// Renders figures to the left, the histogram and findings to the right.
fn render_columns(
    mut page: Page,
    report: &RunRecord,
    all: &RunTimes,
    style: Style,
    detail: Detail,
) -> Page {
    let mut left = page.of_width(text::WIDTH);
    text::write(&mut left, &figures(report, all, style, detail), SCREEN);
    let mut right = page.of_width(style.columns.min(COLUMNS_MAX) - text::WIDTH - APART);
    if detail.bars.is_some() {
        let mut drawn = Document::default();
        drawn.add(
            SCREEN,
            parts::histogram(&all.response, BARS_MAX.max(picture::rows_needed(&all.response))),
        );
        text::write(&mut right, &drawn, SCREEN);
    }
    text::write(&mut right, &findings(report, detail), SCREEN);
    page.append_next_to(left, right, APART);
    page
}

/// Renders the conduct of the server, and the verdict.
fn head(report: &RunRecord, detail: Detail) -> Document {
    let mut document = Document::default();
    document.add(SCREEN, [conduct(&report.server), verdict(&report.verdict, detail.causes)]);
    document
}

/// Renders everything above the histogram, except the head.
fn figures(report: &RunRecord, all: &RunTimes, style: Style, detail: Detail) -> Document {
    let mut document = Document::default();
    let mut lines = parts::run_facts(report, detail.asked);
    if !has_results(report) {
        lines.extend(words::first_call(report).map(|first| ("First call", first)));
        document.add(SCREEN, [Block::Gap, fact_list(lines)]);
        if report.journeys.as_ref().is_some_and(JourneyRecord::noticed) {
            // why users sent nothing
            tables::journeys(&mut document, SCREEN, report);
        }
        return document;
    }
    lines.extend([parts::throughput(report), parts::failed(report, !detail.tables)]);
    lines.extend(parts::score(report));
    if let Some(sentence) = facts::verified::sentence(report) {
        lines.push(("Verified", sentence));
        lines.extend(facts::verified::first_example(report).map(|example| ("", example)));
    }
    lines.extend(report.bodies.grpc.iter().flat_map(facts::grpc::facts));
    lines.extend(facts::streams::sentence(report).map(|sentence| ("Streams", sentence)));
    lines.extend(facts::messages::facts(report));
    if !detail.tables {
        lines.extend(parts::objective_lines(report));
    }
    document.add(SCREEN, [Block::Gap, fact_list(lines)]);
    tables::first(&mut document, report, all, detail.rest);
    tables::streams(&mut document, SCREEN, report);
    tables::step_streams(&mut document, SCREEN, report);
    tables::messages(&mut document, SCREEN, report);
    if detail.tables {
        parts::objectives(&mut document, SCREEN, report);
    }
    if style.percentiles {
        document.add(SCREEN, tables::spectrum(report, all));
    }
    if detail.tables {
        parts::failure_classes(&mut document, SCREEN, report);
    }
    if detail.rest {
        tables::each_run(&mut document, SCREEN, report);
    }
    if detail.across_runs {
        tables::render_run_means(&mut document, SCREEN, report, detail.rest);
    }
    let steps = report.journeys.as_ref().map_or(0, |_| tables::STEPS_MAX);
    tables::scenarios(&mut document, SCREEN, report);
    tables::clients(&mut document, SCREEN, report);
    tables::per_url(&mut document, SCREEN, report, detail.urls.max(steps));
    tables::journeys(&mut document, SCREEN, report);
    tables::not_imported(&mut document, SCREEN, report);
    document
}

/// States only the number of findings, if no finding fits.
fn unshown(hidden: usize) -> Option<Block> {
    let them = if hidden == 1 { "it" } else { "them" };
    let counted = counted(hidden as u64, "finding");
    (hidden > 0).then(|| Block::Lines(vec![format!("{counted}: --full shows {them}")]))
}

/// Returns the bottlenecks of the server, the first findings only. Evidence in the report's first
/// line is not repeated.
fn findings(report: &RunRecord, detail: Detail) -> Document {
    let mut document = Document::default();
    let (shown, advised) = detail.findings;
    let sentence = &report.server.sentence;
    if shown == 0 {
        let hidden = report.findings.iter().filter(|finding| finding.evidence != *sentence).count();
        document.add(SCREEN, unshown(hidden));
        return document;
    }
    let mut shown: Vec<_> = report.findings.iter().take(shown).enumerate().collect();
    shown.retain(|(index, finding)| *index < advised || finding.evidence != *sentence);
    let hidden = report.findings.len() - shown.len();
    if shown.is_empty() {
        return document;
    }
    let more = match hidden {
        0 => String::new(),
        more => format!(" ({more} more with --full)"),
    };
    document.add(SCREEN, [heading(format!("What limits this server{more}"))]);
    for (index, finding) in shown {
        let named = format!("{} ({})", finding.id, finding.confidence);
        document.add(
            SCREEN,
            [match finding.evidence == *sentence {
                true => Block::Lines(vec![format!("  {named}")]),
                false => with_lead("  ", Voice::Plain, format!("{named}: {}", finding.evidence)),
            }],
        );
        if index < advised {
            document.add(SCREEN, [with_lead("    try: ", Voice::Plain, finding.advice.as_str())]);
        }
    }
    document
}
