//! Rendering of one run: text, a page and Markdown.

pub(crate) mod charts;
mod endings;
mod junit;
pub(crate) mod many;
pub(crate) mod parts;
mod screen;
pub(crate) mod server;
pub(crate) mod tables;

use crate::blocks::{
    ALL_CAUSES, conduct, conduct_line, findings, quantile, verdict, verdict_heading, verdict_line,
    verdict_words,
};
use crate::page::text::Style;
use crate::page::text::layout::Page;
use crate::section::{
    Block, Document, Forms, Title, Voice, Words, grid, placed, text_block, title,
};
use crate::{RunRecord, RunTimes, facts, page, words};
use charts::Along;
pub use junit::junit;
use record::run::SutRecord;
use units::show;

const BRIEF: Forms = Forms::QUIET;
const FULL: Forms = Forms::FULL;
const PAGE: Forms = Forms::PAGE;
const MARKDOWN: Forms = Forms::MARKDOWN;

/// Rows of the histogram if there is room for all.
const FULL_BARS: usize = 12;
/// Rows of the page's table of URLs.
const URLS_MAX: usize = 100;

/// Renders the report as text, with a line feed at its end. The first line is the server's conduct,
/// the second the verdict.
pub fn text(report: &RunRecord, style: Style) -> String {
    let all = RunTimes::new(report);
    let mut lines = Page::for_columns(style.columns).with_color(style.color);
    let mut last = lines.empty_copy();
    // on a terminal the first lines may have scrolled off
    if style.columns > 0 {
        page::text::write(&mut last, &closing(report), FULL);
    }
    match (style.quiet, style.full) {
        (true, _) => page::text::write(&mut lines, &brief(report, &all), BRIEF),
        (false, true) => {
            page::text::write(&mut lines, &whole(report, &all, style), FULL);
            lines.append(last);
        }
        (false, false) => lines = screen::screen(lines, report, &all, style, last),
    }
    page::text::finished(lines, style)
}

/// Formats one line for a log, with a line feed at its end: the server, the verdict, the most
/// important figures, and the missed objectives.
pub fn line(report: &RunRecord, style: Style) -> String {
    let response = report.response();
    let mut parts = vec![report.server.state.word().to_owned(), verdict_words(&report.verdict)];
    if has_results(report) {
        parts.push(show::rate(report.throughput_per_s));
        let at = |of| format!("{} {}", stats::quantile_name(of), quantile(&response, of));
        parts.extend([0.5, 0.99].map(at));
        parts.push(format!("{} failed", show::share(report.failure_share)));
        parts.extend(facts::messages::short_form(report));
        parts.extend(facts::streams::short_form(report));
    }
    parts.extend(parts::short_objectives(report));
    let mut lines = Page::default();
    lines.line(&parts.join(" · "));
    page::text::finished(lines, style)
}

/// Renders the page.
pub fn html(report: &RunRecord) -> String {
    let mut document = Document::new(format!("{}: {}", report.verdict.state.id(), report.name));
    let mut lines: Vec<Words> = Vec::new();
    if report.name != report.target {
        lines.push(report.target.as_str().into());
    }
    lines.push(done_sentence(report).into());
    lines.push(words::timestamp(report.started_unix_s).into());
    let (kicker, name) = ("Measurement of a web server", report.name.clone());
    document.add(PAGE, [Block::Title(Title { kicker, name, lines })]);
    figures(&mut document, report, &RunTimes::new(report));
    let measured = words::measured(report.started_unix_s, &report.environment);
    document.add(PAGE, [Block::Foot(measured)]);
    page::html::page(&document)
}

/// Renders one run as Markdown: its verdict, its figures and its findings.
pub fn markdown(report: &RunRecord) -> String {
    let all = RunTimes::new(report);
    let mut document = Document::default();
    document.add(
        MARKDOWN,
        [
            title(verdict_heading(&report.verdict, &report.slo, &report.name)),
            conduct(&report.server),
        ],
    );
    document.add(MARKDOWN, [text_block(Voice::Answer, words::answer(report, &all))]);
    document.add(MARKDOWN, [verdict(&report.verdict, ALL_CAUSES)]);
    document.add(MARKDOWN, [parts::short_form(report, &all.response)]);
    document.add(MARKDOWN, findings(&report.findings));
    let measured = words::measured(report.started_unix_s, &report.environment);
    document.add(MARKDOWN, [Block::Foot(format!("{}. {measured}", report.load))]);
    page::markdown::markdown(&document)
}

/// Returns the number of rows of the histogram: more if the response times are widely spread.
fn full_bars(all: &RunTimes) -> usize {
    FULL_BARS.max(page::text::picture::rows_needed(&all.response))
}

/// Returns the sentence about the load.
pub(crate) fn done_sentence(report: &RunRecord) -> String {
    let done = format!("{} · {}", report.load, words::protocol(report.plan.plan()));
    match report.interrupted {
        true => format!("{done}; interrupted after {}", words::seconds(report.duration_s)),
        false => done,
    }
}

/// Renders conduct and verdict again, one line each.
fn closing(report: &RunRecord) -> Document {
    let mut document = Document::default();
    document.add(FULL, [Block::Gap, conduct_line(&report.server), verdict_line(&report.verdict)]);
    document
}

/// Returns whether there is more than the verdict and a failed first call.
fn has_results(report: &RunRecord) -> bool {
    report.connections.established > 0 || report.outcomes.due > 1
}

/// Returns the headline: throughput, response times, and whether the objectives are met.
fn brief(report: &RunRecord, all: &RunTimes) -> Document {
    let mut document = Document::default();
    document.add(BRIEF, [conduct(&report.server), verdict(&report.verdict, (usize::MAX, 0))]);
    if has_results(report) {
        document.add(BRIEF, [Block::Gap]);
        document.add(BRIEF, parts::headline(report));
        tables::brief(&mut document, report, all);
        parts::objectives(&mut document, BRIEF, report);
        tables::first_notes(&mut document, BRIEF, report);
    }
    document
}

/// Renders everything, for a terminal.
fn whole(report: &RunRecord, all: &RunTimes, style: Style) -> Document {
    let mut document = Document::default();
    document.add(FULL, [conduct(&report.server), verdict(&report.verdict, ALL_CAUSES), Block::Gap]);
    document.add(FULL, parts::describe_setup(report));
    if !has_results(report) {
        return document;
    }
    document.add(FULL, [Block::Gap]);
    document.add(FULL, parts::headline(report));
    tables::times(&mut document, FULL, report, all);
    parts::objectives(&mut document, FULL, report);
    if style.percentiles {
        document.add(FULL, tables::spectrum(report, all));
    }
    document.add(FULL, parts::histogram(&all.response, full_bars(all)));
    parts::outcomes(&mut document, FULL, report);
    parts::failures(&mut document, FULL, report);
    parts::failed_responses(&mut document, FULL, report);
    tables::each_run(&mut document, FULL, report);
    tables::render_run_means(&mut document, FULL, report, true);
    document.add(FULL, parts::per_second(report));
    tables::phases(&mut document, FULL, report);
    document.add(FULL, [Block::Gap, parts::all_facts(report)]);
    tables::scenarios(&mut document, FULL, report);
    tables::clients(&mut document, FULL, report);
    tables::per_url(&mut document, FULL, report, tables::rows_max(report));
    tables::by_tag(&mut document, FULL, report);
    tables::metrics(&mut document, FULL, report);
    tables::journeys(&mut document, FULL, report);
    tables::not_imported(&mut document, FULL, report);
    document.add(FULL, findings(&report.findings));
    document
}

/// Renders everything below the name of the run in the page. The first screen has the verdict, the
/// objectives, five figures, and throughput and quantiles over time.
fn figures(document: &mut Document, report: &RunRecord, all: &RunTimes) {
    document.add(PAGE, [text_block(Voice::Answer, words::answer(report, all))]);
    let server = std::iter::once(conduct(&report.server)).chain(parts::marks(report)).collect();
    let measurement = vec![verdict(&report.verdict, ALL_CAUSES)];
    document.add(PAGE, [Block::Grid(vec![server, measurement])]);
    document.add(PAGE, [parts::tiles(report, &all.response)]);
    let along = Along::new(report);
    if let Some(along) = &along {
        document.add(PAGE, [placed("over-time", "Over time")]);
        document.add(PAGE, charts::over_time(along, report));
        document.add(PAGE, [Block::HowToLook]);
    }
    let limits = findings(&report.findings);
    if !limits.is_empty() {
        document.add(PAGE, [placed("limits", "What limits this server")]);
        document.add(PAGE, limits.into_iter().skip(1));
    }
    requests(document, report);
    if report.outcomes.done() > 0 {
        document.add(PAGE, [placed("response-time", "Response time")]);
        document.add(PAGE, [parts::distribution(report, all, full_bars(all))]);
    }
    document.add(PAGE, [placed("outcomes", "Outcomes and failures")]);
    document.add(PAGE, [parts::endings(report)]);
    parts::failed_responses(document, PAGE, report);
    parts::objectives(document, PAGE, report);
    tables::each_run(document, PAGE, report);
    tables::render_run_means(document, PAGE, report, true);
    resources(document, report, along.as_ref());
    parts::details(document, report);
}

/// Renders a row for each step, URL, scenario, kind of clients and journey.
fn requests(document: &mut Document, report: &RunRecord) {
    let mut rows = Document::default();
    tables::per_url(&mut rows, PAGE, report, URLS_MAX);
    tables::by_tag(&mut rows, PAGE, report);
    tables::metrics(&mut rows, PAGE, report);
    tables::journeys(&mut rows, PAGE, report);
    tables::not_imported(&mut rows, PAGE, report);
    tables::scenarios(&mut rows, PAGE, report);
    tables::clients(&mut rows, PAGE, report);
    tables::streams(&mut rows, PAGE, report);
    tables::step_streams(&mut rows, PAGE, report);
    tables::messages(&mut rows, PAGE, report);
    if rows.blocks(PAGE).next().is_some() {
        document.add(PAGE, [placed("requests", "Requests")]);
        document.sections.append(&mut rows.sections);
    }
}

/// Renders the resources of their machines that the server, if it was watched, and the client used.
fn resources(document: &mut Document, report: &RunRecord, along: Option<&Along>) {
    if let Some(sut) = report.sut.as_ref().map(SutRecord::series) {
        let text = words::sentence(&facts::server(&sut));
        document.add(PAGE, [placed("server", "The server itself"), text_block(Voice::Plain, text)]);
        document.add(PAGE, server::over_time(&sut, along.map(|along| along.x)));
    }
    let client = words::sentence(&facts::client(report));
    document.add(PAGE, [placed("client", "The client itself"), text_block(Voice::Plain, client)]);
    document.add(PAGE, facts::dummy(report).map(|dummy| text_block(Voice::Plain, dummy)));
    document.add(PAGE, along.map(|along| grid(charts::client(along))));
}
