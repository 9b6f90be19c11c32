//! The report for people at a terminal: at most 80 columns, readable in black and white. The first
//! line is the server's conduct, the second the verdict. What does not apply to a run is left out.

pub(crate) mod layout;
pub(crate) mod parts;
pub(crate) mod picture;
mod screen;
mod spark;
mod times;

use crate::{RunRecord, RunTimes, words};
use layout::{LABEL, Page};
use record::run::VerdictRecord;
use record::server::Conduct;
use stats::State;

/// Widest line, in characters.
pub(crate) const WIDTH: usize = 80;

/// How the text is to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// `µ`, `·` and block characters; otherwise plain ASCII.
    pub unicode: bool,
    /// The verdict's word in colour (ANSI escapes).
    pub color: bool,
    /// Verdict and headline only.
    pub quiet: bool,
    /// The list of quantiles as well.
    pub percentiles: bool,
    /// Everything that is known, and not one screen of it.
    pub full: bool,
    /// Columns of the terminal; 0: as many as a page has.
    pub columns: usize,
}

/// The report as text, with a line feed at its end.
pub fn text(report: &RunRecord, style: Style) -> String {
    let all = RunTimes::of(report);
    let page = match (style.quiet, style.full) {
        (true, _) => brief(report, &all, style),
        (false, true) => whole(report, &all, style),
        (false, false) => screen::screen(report, &all, style),
    };
    let text = if style.unicode { page.finish() } else { ascii(&page.finish()) };
    match style.color {
        true => coloured(&text, Some(report.server.state), report.verdict.state),
        false => text,
    }
}

/// The headline: what came through, how long it took, and whether that is what was asked for.
fn brief(report: &RunRecord, all: &RunTimes, style: Style) -> Page {
    let mut page = opened(report, style, (usize::MAX, 0));
    if begun(report) {
        parts::headline(&mut page, report);
        times::brief(&mut page, report, all);
        parts::objectives(&mut page, report);
    }
    page
}

/// A page that begins with the server and the verdict, as [`verdict`] takes `causes`.
fn opened(report: &RunRecord, style: Style, causes: (usize, usize)) -> Page {
    let mut page = Page::for_columns(style.columns);
    parts::server(&mut page, &report.server);
    verdict(&mut page, "Measurement", &report.verdict, causes);
    page
}

/// Everything that is known.
fn whole(report: &RunRecord, all: &RunTimes, style: Style) -> Page {
    let mut page = opened(report, style, (usize::MAX, usize::MAX));
    parts::what_was_done(&mut page, report);
    if begun(report) {
        measured(&mut page, report, all, style);
    }
    page
}

fn measured(page: &mut Page, report: &RunRecord, all: &RunTimes, style: Style) {
    parts::headline(page, report);
    times::times(page, report, all);
    parts::objectives(page, report);
    if style.percentiles {
        times::spectrum(page, report, all);
    }
    picture::histogram(page, &all.response, style.columns, FULL_BARS);
    parts::outcomes(page, report);
    parts::failures(page, report);
    times::runs(page, report);
    spark::per_second(page, report);
    times::phases(page, report);
    parts::facts(page, report);
    times::clients(page, report);
    times::per_url(page, report, times::rows_max(report));
    times::journeys(page, report, times::NOTES_MAX);
    parts::findings(page, report);
}

/// Rows of the histogram where there is room for all.
const FULL_BARS: usize = 12;

/// Whether there is anything to tell but the verdict: more than a first call that met nobody.
fn begun(report: &RunRecord) -> bool {
    report.connections.established > 0 || report.outcomes.due > 1
}

/// `VALID`, or the state and so many causes with their figures, the first of them with advice.
pub(crate) fn verdict(
    page: &mut Page,
    label: &str,
    verdict: &VerdictRecord,
    (causes, advised): (usize, usize),
) {
    let state = verdict.state.id();
    page.fact(label, state);
    for (index, cause) in verdict.causes.iter().take(causes).enumerate() {
        page.fact("", &format!("{}: {}", cause.id, cause.text));
        if index < advised && !cause.advice.is_empty() {
            page.wrapped(&" ".repeat(LABEL + 2), &cause.advice);
        }
    }
    match verdict.causes.len().saturating_sub(causes) {
        0 => {}
        1 => page.fact("", "1 more cause with --full"),
        more => page.fact("", &format!("{more} more causes with --full")),
    }
}

/// Bold, and green, yellow or red: the words themselves say the same without colour.
pub(crate) fn coloured(text: &str, conduct: Option<Conduct>, state: State) -> String {
    let code = match state {
        State::Valid => "1;32",
        State::Degraded => "1;33",
        State::Invalid => "1;31",
    };
    let text = painted(text, state.id(), code);
    match conduct {
        Some(conduct) => {
            painted(&text, conduct.word(), if conduct.is_good() { "1;32" } else { "1;31" })
        }
        None => text,
    }
}

/// The first `word` that stands in the column beside the labels.
fn painted(text: &str, word: &str, code: &str) -> String {
    let lines = text.split_inclusive('\n');
    let mut at = 0;
    for line in lines {
        let here = line.char_indices().nth(LABEL).map_or(line.len(), |(index, _)| index);
        if line[here..].starts_with(word) {
            let (before, rest) = text.split_at(at + here);
            let rest = &rest[word.len()..];
            return format!("{before}\u{1b}[{code}m{word}\u{1b}[0m{rest}");
        }
        at += line.len();
    }
    text.to_owned()
}

/// Each character of ours by one of ASCII's, so that columns stay aligned.
pub(crate) fn ascii(text: &str) -> String {
    let fold = |c: char| match c {
        'µ' => 'u',
        '·' => '|',
        '−' => '-',
        '×' => 'x',
        '÷' => '/',
        '±' => '~',
        '≤' => '<',
        c if picture::is_bar(c) => '#',
        '✓' => '+',
        '✗' => 'x',
        '–' => '-',
        c if c.is_ascii() => c,
        c => spark::ascii_level(c).unwrap_or('?'),
    };
    text.chars().map(fold).collect()
}

/// The sentence on what was done, for the text and for the page.
pub(crate) fn done_sentence(report: &RunRecord) -> String {
    format!("{} · {}", report.load, words::protocol(report.plan.plan()))
}
