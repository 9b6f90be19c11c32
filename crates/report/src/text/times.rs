//! Tables of times.

use super::layout::Page;
use crate::{Figures, Headline, RunReport, facts, figures, words};
use stats::{Doubt, Estimate, Hist, Snapshot, quantile_name, samples_needed};
use units::{Nanos, show};

/// Rows of the per-URL table; the last holds all others.
pub(crate) const URLS_MAX: usize = 11;
/// Rows of the same where they are the steps of journeys.
pub(crate) const STEPS_MAX: usize = 25;
/// Sentences on journeys.
pub(crate) const NOTES_MAX: usize = 20;

const HEAD: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Response time, how much of it may be the client's lateness, and service time beside it.
fn main_rows(report: &RunReport, figures: &Figures) -> Vec<Vec<String>> {
    let mut rows = vec![header("", &["p50", "p90", "p99", "p99.9", "max", "mean"])];
    rows.push(times_row("response time", &figures.response));
    rows.extend(figures.doubt.as_ref().and_then(lateness_row));
    rows.push(times_row("service time", &report.measurement.total.service));
    rows
}

/// Response time alone, and how much of it may be the client's lateness.
pub(crate) fn brief(page: &mut Page, report: &RunReport, figures: &Figures) {
    if report.measurement.total.counts.done() == 0 {
        return;
    }
    let mut rows = main_rows(report, figures);
    rows.pop();
    page.blank();
    page.table(&rows);
    marks(page, &figures.response);
}

/// The table of the first screen; without `all`, neither what its marks mean nor service times that
/// are the response times once more.
pub(crate) fn table(page: &mut Page, report: &RunReport, figures: &Figures, all: bool) {
    if report.measurement.total.counts.done() == 0 {
        return;
    }
    page.blank();
    let mut rows = main_rows(report, figures);
    let [_, response, .., service] = &rows[..] else { return };
    let same = response[1..] == service[1..];
    if same && !all {
        rows.pop();
    }
    page.table(&rows);
    if all {
        marks(page, &figures.response);
    }
}

/// The same with the slip between them and what the words mean.
pub(crate) fn times(page: &mut Page, report: &RunReport, figures: &Figures) {
    let total = &report.measurement.total;
    if total.counts.done() == 0 {
        return;
    }
    page.blank();
    let mut rows = main_rows(report, figures);
    let in_doubt = rows.len() > 3;
    rows.push(times_row("slip", &total.slip));
    // In a punctual closed loop both parts are nothing.
    if !total.wait.max().is_zero() || !total.lag.max().is_zero() {
        rows.push(times_row("  wait", &total.wait));
        rows.push(times_row("  lag", &total.lag));
    }
    page.table(&rows);
    let legend = format!(
        "Response time counts from the instant a call was due: {} succeeded, {} timed out. \
         Service time counts from its issue. Slip = response − service.",
        show::count(total.counts.succeeded),
        show::count(total.counts.timed_out)
    );
    page.wrapped("  ", &legend);
    if in_doubt {
        let text = "Lateness: at most so much of the response time is this client's own.";
        page.wrapped("  ", text);
    }
    marks(page, &figures.response);
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
pub(crate) fn spectrum(page: &mut Page, figures: &Figures) {
    page.heading("Quantiles");
    let mut rows = vec![header("", &["response", "from", "to", "service", "calls above"])];
    let count = figures.response.count();
    rows.extend(figures.quantiles.iter().map(|row| {
        let mark = if row.enough { "" } else { "~" };
        let above = count - figures.response.count_at_or_below(row.response).min(count);
        let end = |end: Option<Nanos>| end.map_or_else(|| "-".to_owned(), show::duration);
        vec![
            quantile_name(row.quantile),
            format!("{mark}{}", show::duration(row.response)),
            end(row.interval.map(|(low, _)| low)),
            end(row.interval.map(|(_, high)| high)),
            format!("{mark}{}", show::duration(row.service)),
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
pub(crate) fn phases(page: &mut Page, report: &RunReport, figures: &Figures) {
    let total = &report.measurement.total;
    let phases = [
        ("dns", &figures.dns),
        ("connect", &total.connect),
        ("tls", &total.tls),
        ("first byte", &total.first_byte),
        ("transfer", &total.transfer),
    ];
    let seen: Vec<_> = phases.into_iter().filter(|(_, hist)| !hist.is_empty()).collect();
    parts_table(page, "Phases", &seen);
    server_timings(page, total);
}

/// What the server says of its own work.
fn server_timings(page: &mut Page, total: &Snapshot) {
    parts_table(page, "Server-Timing", &figures::server_timings(total));
    let malformed = total.server_timings.malformed();
    if malformed > 0 {
        page.wrapped("  ", &format!("Server-Timing: {} malformed.", show::count(malformed)));
    }
}

/// Times of events in streams.
pub(crate) fn streams(page: &mut Page, report: &RunReport) {
    parts_table(page, "Streams", &facts::streams::times(report));
}

/// A row per histogram; nothing without any.
fn parts_table(page: &mut Page, heading: &str, parts: &[(&str, &Hist)]) {
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
pub(crate) fn runs(page: &mut Page, report: &RunReport) {
    each_run(page, report);
    across_runs(page, report, true);
}

pub(crate) fn each_run(page: &mut Page, report: &RunReport) {
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
pub(crate) fn across_runs(page: &mut Page, report: &RunReport, all: bool) {
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
pub(crate) fn rows_max(report: &RunReport) -> usize {
    if report.plan.journeys.is_some() { STEPS_MAX } else { URLS_MAX }
}

/// The most called URLs, at most `rows_max` rows with the one of all others.
pub(crate) fn per_url(page: &mut Page, report: &RunReport, rows_max: usize) {
    let mut urls = figures::url_rows(report);
    if urls.is_empty() || rows_max == 0 {
        return;
    }
    let shown = if urls.len() > rows_max { rows_max - 1 } else { urls.len() };
    let folded = urls.split_off(shown);
    if let Some((first, rest)) = folded.split_first() {
        let mut other = rest.iter().fold(clone_of(first), |mut sum, row| {
            sum.count += row.count;
            sum.failed += row.failed;
            sum.timed_out += row.timed_out;
            sum.response.merge(&row.response);
            sum
        });
        other.url = format!("{} more", show::count(folded.len() as u64));
        other.name = None;
        urls.push(other);
    }
    page.blank();
    let title = if report.plan.journeys.is_some() { "Per step" } else { "Per URL" };
    let mut rows = vec![header(title, &["calls", "failed", "p50", "p99", "max"])];
    rows.extend(urls.iter().map(|row| {
        vec![
            words::printable(row.label(), 400),
            show::count(row.count),
            show::count(row.failed + row.timed_out),
            quantile_cell(&row.response, 0.5),
            quantile_cell(&row.response, 0.99),
            if row.response.is_empty() {
                "-".to_owned()
            } else {
                show::duration(row.response.max())
            },
        ]
    }));
    headed(page, rows);
}

/// Kinds of clients, each behind its own kind of path.
pub(crate) fn clients(page: &mut Page, report: &RunReport) {
    let all = figures::clients_rows(report);
    if all.is_empty() {
        return;
    }
    page.blank();
    let columns = ["clients", "calls", "failed", "p50", "p99", "max"];
    let mut rows = vec![header("Behind", &columns)];
    rows.extend(all.iter().map(|row| {
        let max = (!row.response.is_empty()).then(|| show::duration(row.response.max()));
        vec![
            words::printable(&row.name, 60),
            show::count(u64::from(row.clients)),
            show::count(row.count()),
            show::count(row.failed + row.timed_out),
            quantile_cell(&row.response, 0.5),
            quantile_cell(&row.response, 0.99),
            max.unwrap_or_else(|| "-".to_owned()),
        ]
    }));
    headed(page, rows);
}

/// Several loads at once.
pub(crate) fn scenarios(page: &mut Page, report: &RunReport) {
    let all = figures::scenario_rows(report);
    if all.is_empty() {
        return;
    }
    page.blank();
    let columns = ["calls", "failed", "per second", "p50", "p99", "max"];
    let mut rows = vec![header("Per scenario", &columns)];
    let window = report.measurement.window.as_secs_f64().max(1e-9);
    rows.extend(all.iter().map(|row| {
        let (counts, response) = (&row.tally.counts, &row.tally.response);
        let max = (!response.is_empty()).then(|| show::duration(response.max()));
        vec![
            words::printable(&row.name, 60),
            show::count(counts.due),
            show::count(counts.failed + counts.timed_out + counts.dropped),
            show::rate(row.tally.in_window as f64 / window),
            quantile_cell(response, 0.5),
            quantile_cell(response, 0.99),
            max.unwrap_or_else(|| "-".to_owned()),
        ]
    }));
    headed(page, rows);
    for row in &all {
        page.wrapped("  ", &format!("{}: {}", words::printable(&row.name, 60), row.load));
    }
}

/// Steps that belong together, and what users noticed beside their calls.
pub(crate) fn journeys(page: &mut Page, report: &RunReport, notes_max: usize) {
    let transactions = record::journeys::transactions(report);
    if transactions.is_empty() {
        return;
    }
    page.blank();
    let mut rows = vec![header("Together", &["done", "failed", "p50", "p99", "max"])];
    rows.extend(transactions.iter().map(|row| {
        let empty = row.time.is_empty();
        vec![
            words::printable(&row.name, 400),
            show::count(row.count),
            show::count(row.failed),
            quantile_cell(&row.time, 0.5),
            quantile_cell(&row.time, 0.99),
            if empty { "-".to_owned() } else { show::duration(row.time.max()) },
        ]
    }));
    headed(page, rows);
    let notes = record::journeys::notes(report);
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

fn clone_of(row: &figures::UrlRow) -> figures::UrlRow {
    figures::UrlRow { url: String::new(), name: None, response: row.response.clone(), ..*row }
}
