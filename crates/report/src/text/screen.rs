//! One screen of 24 lines: what was asked, how much came through, how long it took, what failed, what
//! limits the server. `--full` has everything.

use super::layout::Page;
use super::{Style, begun, parts, picture, times};
use crate::{Figures, RunReport, words};

/// Lines of a terminal, less the one that the prompt takes.
const LINES: usize = 23;
/// Rows of the histogram: fewer tell nothing, more than these are not needed.
const BARS: std::ops::RangeInclusive<usize> = 4..=8;

/// What follows the server's conduct and the verdict.
pub(super) fn screen(page: &mut Page, report: &RunReport, figures: &Figures, style: Style) {
    page.blank();
    parts::asked(page, report);
    if !begun(report) {
        if let Some(first) = words::first_call(report) {
            page.fact("First call", &first);
        }
        return;
    }
    parts::figures(page, report, figures);
    times::table(page, report, figures);
    parts::objectives(page, report);
    if style.percentiles {
        times::spectrum(page, figures);
    }
    parts::failure_classes(page, report);
    times::runs(page, report);
    times::per_url(page, report);
    let mut findings = Page::default();
    parts::findings(&mut findings, report);
    let room = LINES.saturating_sub(page.lines() + findings.lines() + 2);
    let bars = room.clamp(*BARS.start(), *BARS.end());
    picture::histogram(page, &figures.response, style.columns, bars);
    page.append(findings);
}
