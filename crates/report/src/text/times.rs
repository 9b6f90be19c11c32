//! Tables of times.

use super::layout::Page;
use crate::{Headline, RunRecord, RunTimes, facts, figures, words};
use record::run::{RunHist, UrlRecord};
use stats::{Doubt, Estimate, Hist, quantile_name, samples_needed};
use units::{Nanos, show};

/// Rows of the per-URL table; the last holds all others.
pub(crate) const URLS_MAX: usize = 11;
/// Rows of the same where they are the steps of journeys.
pub(crate) const STEPS_MAX: usize = 25;
/// Sentences on journeys.
pub(crate) const NOTES_MAX: usize = 20;

const HEAD: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Response time, how much of it may be the client's lateness, and service time beside it.
fn main_rows(report: &RunRecord, all: &RunTimes) -> Vec<Vec<String>> {
    let mut rows = vec![header("", &["p50", "p90", "p99", "p99.9", "max", "mean"])];
    rows.push(times_row("response time", &all.response));
    rows.extend(all.doubt.as_ref().and_then(lateness_row));
    rows.push(times_row("service time", &report.hist(RunHist::Service)));
    rows
}

/// Response time alone, and how much of it may be the client's lateness.
pub(crate) fn brief(page: &mut Page, report: &RunRecord, all: &RunTimes) {
    if report.outcomes.done() == 0 {
        return;
    }
    let mut rows = main_rows(report, all);
    rows.pop();
    page.blank();
    page.table(&rows);
    marks(page, &all.response);
}

/// The table of the first screen; without `all`, neither what its marks mean nor service times that
/// are the response times once more.
pub(crate) fn table(page: &mut Page, report: &RunRecord, known: &RunTimes, all: bool) {
    if report.outcomes.done() == 0 {
        return;
    }
    page.blank();
    let mut rows = main_rows(report, known);
    let [_, response, .., service] = &rows[..] else { return };
    let same = response[1..] == service[1..];
    if same && !all {
        rows.pop();
    }
    page.table(&rows);
    if all {
        marks(page, &known.response);
    }
}

/// The same with the slip between them and what the words mean.
pub(crate) fn times(page: &mut Page, report: &RunRecord, all: &RunTimes) {
    if report.outcomes.done() == 0 {
        return;
    }
    page.blank();
    let mut rows = main_rows(report, all);
    let in_doubt = rows.len() > 3;
    rows.push(times_row("slip", &report.hist(RunHist::Slip)));
    let (wait, lag) = (report.hist(RunHist::Wait), report.hist(RunHist::Lag));
    // In a punctual closed loop both parts are nothing.
    if !wait.max().is_zero() || !lag.max().is_zero() {
        rows.push(times_row("  wait", &wait));
        rows.push(times_row("  lag", &lag));
    }
    page.table(&rows);
    let legend = format!(
        "Response time counts from the instant a call was due: {} succeeded, {} timed out. \
         Service time counts from its issue. Slip = response − service.",
        show::count(report.outcomes.succeeded),
        show::count(report.outcomes.timed_out)
    );
    page.wrapped("  ", &legend);
    if in_doubt {
        let text = "Lateness: at most so much of the response time is this client's own.";
        page.wrapped("  ", text);
    }
    marks(page, &all.response);
}

fn marks(page: &mut Page, hist: &Hist) {
    let short = HEAD.iter().find(|(_, quantile)| marked(hist, *quantile));
    if let Some((name, quantile)) = short.filter(|_| !hist.is_empty()) {
        let text = format!(
            "~ fewer samples than the quantile needs ({name}: {})",
            show::count(samples_needed(*quantile))
        );
        page.wrapped("  ", &text);
    }
}

fn marked(hist: &Hist, quantile: f64) -> bool {
    hist.count() < samples_needed(quantile)
}

fn header(label: &str, names: &[&str]) -> Vec<String> {
    std::iter::once(label).chain(names.iter().copied()).map(str::to_owned).collect()
}

fn times_row(label: &str, hist: &Hist) -> Vec<String> {
    let mut row = vec![label.to_owned()];
    if hist.is_empty() {
        row.extend(std::iter::repeat_n("-".to_owned(), HEAD.len() + 2));
        return row;
    }
    row.extend(HEAD.iter().map(|(_, quantile)| quantile_cell(hist, *quantile)));
    row.push(show::duration(hist.max()));
    row.push(show::duration(hist.mean()));
    row
}

/// The bound on the client's lateness in each figure; `None` where it changes none of them.
fn lateness_row(doubt: &Doubt) -> Option<Vec<String>> {
    let shown = HEAD.iter().any(|(_, quantile)| doubt.shows(*quantile)) || doubt.shows(1.0);
    let mut row = vec!["  lateness ≤".to_owned()];
    row.extend(HEAD.iter().map(|(_, quantile)| show::duration(doubt.at(*quantile))));
    row.push(show::duration(doubt.at(1.0)));
    row.push(show::duration(doubt.of_mean()));
    shown.then_some(row)
}

fn quantile_cell(hist: &Hist, quantile: f64) -> String {
    if hist.is_empty() {
        return "-".to_owned();
    }
    let mark = if marked(hist, quantile) { "~" } else { "" };
    format!("{mark}{}", show::duration(hist.quantile(quantile)))
}

/// The quantiles that the plan lists.
pub(crate) fn spectrum(page: &mut Page, report: &RunRecord, all: &RunTimes) {
    page.heading("Quantiles");
    let mut rows = vec![header("", &["response", "from", "to", "service", "calls above"])];
    let count = all.response.count();
    rows.extend(report.quantiles.iter().map(|row| {
        let mark = if row.enough_samples { "" } else { "~" };
        let response = Nanos::from_secs_f64(row.response_time_s);
        let above = count - all.response.count_at_or_below(response).min(count);
        let end = |end: Option<f64>| end.map_or_else(|| "-".to_owned(), words::seconds);
        vec![
            quantile_name(row.quantile),
            format!("{mark}{}", show::duration(response)),
            end(row.low_s),
            end(row.high_s),
            format!("{mark}{}", words::seconds(row.service_time_s)),
            show::count(above),
        ]
    }));
    page.table(&rows);
    page.wrapped(
        "  ",
        "From and to: the 95 % interval by order statistics, calls being independent.",
    );
}

/// The parts of service time.
pub(crate) fn phases(page: &mut Page, report: &RunRecord) {
    let names = ["dns", "connect", "tls", "first byte", "transfer"];
    parts_table(page, "Phases", &facts::phases(report, names));
    server_timings(page, report);
}

/// What the server says of its own work.
fn server_timings(page: &mut Page, report: &RunRecord) {
    parts_table(page, "Server-Timing", &figures::server_timings(report));
    let malformed = report.server_timings.server_timing_malformed;
    if malformed > 0 {
        page.wrapped("  ", &format!("Server-Timing: {} malformed.", show::count(malformed)));
    }
}

/// Times of events in streams.
pub(crate) fn streams(page: &mut Page, report: &RunRecord) {
    parts_table(page, "Streams", &facts::streams::times(report));
}

/// A row per histogram; nothing without any.
fn parts_table(page: &mut Page, heading: &str, parts: &[(&str, Hist)]) {
    if parts.is_empty() {
        return;
    }
    page.blank();
    let mut rows = vec![header(heading, &["mean", "p50", "p99", "max", "count"])];
    rows.extend(parts.iter().map(|(name, hist)| {
        vec![
            (*name).to_owned(),
            show::duration(hist.mean()),
            quantile_cell(hist, 0.5),
            quantile_cell(hist, 0.99),
            show::duration(hist.max()),
            show::count(hist.count()),
        ]
    }));
    headed(page, rows);
}

/// A table whose header's first cell stands at the margin as the section's heading.
fn headed(page: &mut Page, rows: Vec<Vec<String>>) {
    let mut table = page.alike();
    table.table(&rows);
    let heading = rows.first().and_then(|row| row.first()).cloned().unwrap_or_default();
    for (index, line) in table.finish().lines().enumerate() {
        let line = match (index, line.split_once(&heading)) {
            (0, Some((_, rest))) => format!("{heading}  {rest}"),
            _ => line.to_owned(),
        };
        page.line(&line);
    }
}

/// Each run, and the mean across runs with its interval.
pub(crate) fn runs(page: &mut Page, report: &RunRecord) {
    each_run(page, report);
    across_runs(page, report, true);
}

pub(crate) fn each_run(page: &mut Page, report: &RunRecord) {
    if report.runs.is_empty() {
        return;
    }
    page.blank();
    let mut rows = vec![header("Runs", &["throughput", "p50", "p99", "p99.9", "failures", ""])];
    let cells = |(index, run): (usize, &Headline)| {
        let time = |seconds| show::duration(Nanos::from_secs_f64(seconds));
        vec![
            (index + 1).to_string(),
            show::rate(run.throughput_per_s),
            time(run.p50_s),
            time(run.p99_s),
            time(run.p99_9_s),
            show::share(run.failure_share),
            run.state.id().to_owned(),
        ]
    };
    rows.extend(report.runs.iter().enumerate().map(cells));
    headed(page, rows);
}

/// The means across runs; of these, without `all`, the ones that are asked for most.
pub(crate) fn across_runs(page: &mut Page, report: &RunRecord, all: bool) {
    let mut estimates = figures::estimates(&report.runs);
    estimates.retain(|(name, ..)| all || ACROSS_MOST.contains(name));
    if estimates.is_empty() {
        return;
    }
    page.blank();
    let mut rows = vec![header("Across runs", &["mean", "from", "to", "±"])];
    rows.extend(estimates.iter().map(|(name, estimate, kind)| {
        vec![
            (*name).to_owned(),
            kind.show(estimate.value),
            kind.show(estimate.low),
            kind.show(estimate.high),
            show::share(half_share(estimate)),
        ]
    }));
    headed(page, rows);
    if all {
        page.wrapped("  ", "From and to: the 95 % interval of the mean (Student's t).");
    }
}

const ACROSS_MOST: [&str; 4] = ["throughput", "failures", "p50", "p99"];

/// Half the interval as a share of the mean; NaN for a mean of zero.
fn half_share(estimate: &Estimate) -> f64 {
    figures::ratio((estimate.high - estimate.low) / 2.0, estimate.value)
}

/// Rows of the per-URL table where there is room for all.
pub(crate) fn rows_max(report: &RunRecord) -> usize {
    if report.journeys.is_some() { STEPS_MAX } else { URLS_MAX }
}

/// The most called URLs, at most `rows_max` rows with the one of all others.
pub(crate) fn per_url(page: &mut Page, report: &RunRecord, rows_max: usize) {
    let urls = &report.per_url;
    if urls.is_empty() || rows_max == 0 {
        return;
    }
    let shown = if urls.len() > rows_max { rows_max - 1 } else { urls.len() };
    let (shown, folded) = urls.split_at(shown);
    page.blank();
    let title = if report.journeys.is_some() { "Per step" } else { "Per URL" };
    let mut rows = vec![header(title, &["calls", "failed", "p50", "p99", "max"])];
    rows.extend(shown.iter().map(|row| {
        let name = words::printable(row.label(), 400);
        let failed = row.failed + row.timed_out;
        ended_row(name, (row.count, failed), &report.hist_of_target(row.target))
    }));
    if !folded.is_empty() {
        let sum = |of: fn(&UrlRecord) -> u64| folded.iter().map(of).sum();
        let mut all = Hist::new();
        folded.iter().for_each(|row| all.merge(&report.hist_of_target(row.target)));
        let name = format!("{} more", show::count(folded.len() as u64));
        let counts = (sum(|row| row.count), sum(|row| row.failed + row.timed_out));
        rows.push(ended_row(name, counts, &all));
    }
    headed(page, rows);
}

/// Kinds of clients, each behind its own kind of path.
pub(crate) fn clients(page: &mut Page, report: &RunRecord) {
    let all = &report.by_clients;
    if all.is_empty() {
        return;
    }
    page.blank();
    let columns = ["clients", "calls", "failed", "p50", "p99", "max"];
    let mut rows = vec![header("Behind", &columns)];
    rows.extend(all.iter().enumerate().map(|(place, row)| {
        let response = report.hist_of_clients(place);
        let name = words::printable(&row.name, 60);
        let mut cells = ended_row(name, (row.count, row.failed + row.timed_out), &response);
        cells.insert(1, show::count(u64::from(row.clients)));
        cells
    }));
    headed(page, rows);
}

/// Several loads at once.
pub(crate) fn scenarios(page: &mut Page, report: &RunRecord) {
    let all = &report.by_scenario;
    if all.is_empty() {
        return;
    }
    page.blank();
    let columns = ["calls", "failed", "per second", "p50", "p99", "max"];
    let mut rows = vec![header("Per scenario", &columns)];
    rows.extend(all.iter().enumerate().map(|(place, row)| {
        let (counts, response) = (&row.outcomes, report.hist_of_scenario(place));
        let name = words::printable(&row.name, 60);
        let mut cells = ended_row(name, (counts.due, counts.bad()), &response);
        cells.insert(3, show::rate(row.throughput_per_s));
        cells
    }));
    headed(page, rows);
    for row in all {
        page.wrapped("  ", &format!("{}: {}", words::printable(&row.name, 60), row.load));
    }
}

/// Steps that belong together, and what users noticed beside their calls.
pub(crate) fn journeys(page: &mut Page, report: &RunRecord, notes_max: usize) {
    let Some(journeys) = &report.journeys else { return };
    page.blank();
    let mut rows = vec![header("Together", &["done", "failed", "p50", "p99", "max"])];
    rows.extend(journeys.transactions.iter().enumerate().map(|(place, row)| {
        let name = words::printable(&row.name, 400);
        let counts = (row.succeeded + row.failed, row.failed);
        ended_row(name, counts, &report.hist_of_transaction(place))
    }));
    headed(page, rows);
    let notes = journeys.notes();
    if notes.is_empty() {
        return;
    }
    page.heading("On the way");
    for (name, text) in notes.iter().take(notes_max) {
        page.wrapped("  ", &format!("{}: {text}", words::printable(name, 100)));
    }
    if notes.len() > notes_max {
        page.line(&format!("  {} more in the JSON", notes.len() - notes_max));
    }
}

/// A name, how many ended and how many of these failed, and how long they took.
fn ended_row(name: String, (ended, failed): (u64, u64), times: &Hist) -> Vec<String> {
    vec![
        name,
        show::count(ended),
        show::count(failed),
        quantile_cell(times, 0.5),
        quantile_cell(times, 0.99),
        if times.is_empty() { "-".to_owned() } else { show::duration(times.max()) },
    ]
}
