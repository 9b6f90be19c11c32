//! One screen of 24 lines: what was asked, how much came through, how long it took, what failed, what
//! limits the server. `--full` has everything.

use super::layout::Page;
use super::{Style, begun, parts, picture, times};
use crate::{RunRecord, RunTimes, words};
use record::run::JourneyRecord;

/// Lines of a terminal, less the one that the prompt takes.
const LINES: usize = 23;
/// Rows of the histogram: fewer tell nothing, more are not needed.
const BARS_MIN: usize = 3;
const BARS_MAX: usize = 8;

/// How much is said where there is not room for all.
#[derive(Clone, Copy, Debug)]
struct Detail {
    /// Characters of each part of what was asked for.
    asked: usize,
    /// Causes of the verdict, and of these such with advice.
    causes: (usize, usize),
    across_runs: bool,
    /// Rows of the histogram at least; more where there is room.
    bars: Option<usize>,
    /// Findings with their evidence, and of these such with advice.
    findings: (usize, usize),
    /// Rows of the table of URLs.
    urls: usize,
    /// Service times that are equal to the response times, what the marks of quantiles mean, each run
    /// of several and all that is known across them.
    rest: bool,
    /// Objectives and failures have a table each, and not a line.
    tables: bool,
}

/// What stands on every screen: what the server did, the verdict with a cause, throughput, failures,
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

/// What is added where it fits, the most important first.
const MORE: [fn(&mut Detail); 14] = [
    |detail| detail.asked = 130,
    |detail| detail.causes.0 = 2,
    |detail| detail.across_runs = true,
    |detail| detail.bars = Some(BARS_MIN),
    |detail| detail.findings = (1, 0),
    |detail| detail.findings = (1, 1),
    |detail| detail.urls = 4,
    |detail| detail.causes.0 = usize::MAX,
    |detail| detail.bars = Some(BARS_MIN + 1),
    |detail| detail.causes.1 = 1,
    |detail| detail.rest = true,
    |detail| detail.tables = true,
    |detail| (detail.findings, detail.urls) = ((usize::MAX, 1), times::URLS_MAX),
    |detail| detail.findings = (usize::MAX, usize::MAX),
];

/// As much as fits; with the list of quantiles, which somebody asked for, everything.
pub(crate) fn screen(report: &RunRecord, all: &RunTimes, style: Style) -> Page {
    let composed = |detail| composed(report, all, style, detail);
    let mut detail = LEAST;
    let mut page = composed(detail);
    for more in MORE {
        let mut next = detail;
        more(&mut next);
        let fuller = composed(next);
        if style.percentiles || fuller.lines() <= LINES {
            (detail, page) = (next, fuller);
        }
    }
    page
}

fn composed(report: &RunRecord, all: &RunTimes, style: Style, detail: Detail) -> Page {
    let mut page = super::opened(report, style, detail.causes);
    page.blank();
    parts::asked(&mut page, report, detail.asked);
    if !begun(report) {
        if let Some(first) = words::first_call(report) {
            page.fact("First call", &first);
        }
        if report.journeys.as_ref().is_some_and(JourneyRecord::noticed) {
            // why users asked for nothing
            times::journeys(&mut page, report, times::NOTES_MAX);
        }
        return page;
    }
    parts::throughput(&mut page, report);
    parts::failed(&mut page, report, !detail.tables);
    parts::score(&mut page, report);
    parts::verified(&mut page, report);
    parts::streams(&mut page, report);
    if !detail.tables {
        parts::objectives_in_lines(&mut page, report);
    }
    times::table(&mut page, report, all, detail.rest);
    times::streams(&mut page, report);
    if detail.tables {
        parts::objectives(&mut page, report);
    }
    if style.percentiles {
        times::spectrum(&mut page, report, all);
    }
    if detail.tables {
        parts::failure_classes(&mut page, report);
    }
    if detail.rest {
        times::each_run(&mut page, report);
    }
    if detail.across_runs {
        times::across_runs(&mut page, report, detail.rest);
    }
    let steps = report.journeys.as_ref().map_or(0, |_| times::STEPS_MAX);
    times::scenarios(&mut page, report);
    times::clients(&mut page, report);
    times::per_url(&mut page, report, detail.urls.max(steps));
    times::journeys(&mut page, report, times::NOTES_MAX);
    let findings = findings(&page, report, detail);
    if let Some(bars) = detail.bars {
        let room = LINES.saturating_sub(page.lines() + findings.lines() + 2);
        let bars = room.clamp(bars, BARS_MAX);
        picture::histogram(&mut page, &all.response, style.columns, bars);
    }
    page.append(findings);
    page
}

/// What limits the server, the first findings only. Evidence that the report's first line has is not
/// repeated.
fn findings(page: &Page, report: &RunRecord, detail: Detail) -> Page {
    let mut page = page.alike();
    let (shown, advised) = detail.findings;
    let said = &report.server.sentence;
    let mut shown: Vec<_> = report.findings.iter().take(shown).enumerate().collect();
    shown.retain(|(index, finding)| *index < advised || finding.evidence != *said);
    let hidden = report.findings.len() - shown.len();
    if shown.is_empty() {
        return page;
    }
    page.heading(&match hidden {
        0 => "What limits this server".to_owned(),
        more => format!("What limits this server ({more} more with --full)"),
    });
    for (index, finding) in shown {
        let named = format!("{} ({})", finding.id, finding.confidence);
        match finding.evidence == *said {
            true => page.line(&format!("  {named}")),
            false => page.wrapped("  ", &format!("{named}: {}", finding.evidence)),
        }
        if index < advised {
            page.wrapped("    try: ", &finding.advice);
        }
    }
    page
}
