//! Tables of a run: times, and results of each run, URL, scenario, kind of client and step.

use crate::blocks::{count_cell, longest_cell, quantile, quantile_cell};
use crate::section::{
    Block, CellLook, Column, ColumnKind, DataTable, Document, Forms, Inline, RowLook, TableCell,
    TableRow, Voice, Words, heading, subheading, text_block, with_lead,
};
use crate::{Headline, RunRecord, RunTimes, facts, figures, words};
use record::run::{MetricRecord, RunHist, StepStreamsRecord, UrlRecord};
use stats::{Doubt, Estimate, Hist, quantile_name, samples_needed};
use units::{Nanos, show};

/// Maximum number of rows of the per-URL table; the last row is all others.
pub(super) const URLS_MAX: usize = 11;
/// Rows of the table if it has steps of journeys.
pub(super) const STEPS_MAX: usize = 25;
/// Maximum number of sentences on journeys.
const NOTES_MAX: usize = 20;
const FIRST_NOTES_MAX: usize = 3;

const HEAD: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Renders response time, the part of it that may be the client's lateness, and service time.
fn main_table(report: &RunRecord, all: &RunTimes) -> DataTable {
    let count = Column::from("calls").only(Forms::PAGE);
    let columns = ["", "p50", "p90", "p99", "p99.9", "max", "mean"].map(Column::from);
    DataTable::new(columns.into_iter().chain([count]))
        .with([times_row("response time", &all.response)])
        .with(all.doubt.as_ref().and_then(lateness_row))
        .with([times_row("service time", &report.hist(RunHist::Service))])
}

/// Renders only the response time, and the part that may be the client's lateness.
pub(super) fn brief(document: &mut Document, report: &RunRecord, all: &RunTimes) {
    if report.outcomes.done() > 0 {
        let mut table = main_table(report, all);
        table.rows.pop();
        document.add(Forms::QUIET, [Block::Gap, Block::Table(table)]);
        document.add(Forms::QUIET, marks(&all.response));
    }
}

/// Renders the table of the first screen; without `all`, it has neither the legend of its marks nor
/// service times that equal the response times.
pub(super) fn first(document: &mut Document, report: &RunRecord, known: &RunTimes, all: bool) {
    if report.outcomes.done() == 0 {
        return;
    }
    let mut table = main_table(report, known);
    let figures = |row: Option<&TableRow>| row.map(|row| row.cells[1..7].to_vec());
    if !all && figures(table.rows.first()) == figures(table.rows.last()) {
        table.rows.pop();
    }
    document.add(Forms::SCREEN, [Block::Gap, Block::Table(table)]);
    document.add(Forms::SCREEN, marks(&known.response).filter(|_| all));
}

/// Renders the times with the slip between them and explanations.
pub(crate) fn times(document: &mut Document, forms: Forms, report: &RunRecord, all: &RunTimes) {
    if report.outcomes.done() == 0 {
        return;
    }
    let mut table = main_table(report, all);
    let in_doubt = table.rows.len() > 2;
    table = table.with([times_row("slip", &report.hist(RunHist::Slip))]);
    let (wait, lag) = (report.hist(RunHist::Wait), report.hist(RunHist::Lag));
    // In a punctual closed loop both parts are zero.
    if !wait.max().is_zero() || !lag.max().is_zero() {
        table = table.with([part(times_row("wait", &wait)), part(times_row("lag", &lag))]);
    }
    document.add(forms & Forms::TEXT, [Block::Gap, Block::Table(table.clone())]);
    let failed = report.hist(RunHist::Failed);
    if !failed.is_empty() {
        table = table.with([times_row("failed calls, apart", &failed)]);
    }
    document.add(forms & Forms::PAGE, [Block::Table(table)]);
    let legend = format!(
        "Response time counts from the instant a call was due: {} succeeded, {} timed out. \
         Service time counts from its issue. Slip = response − service.",
        show::count(report.outcomes.succeeded),
        show::count(report.outcomes.timed_out)
    );
    document.add(forms, [with_lead("  ", Voice::Note, legend)]);
    if in_doubt {
        let text = "Lateness: upper bound of client delay in the response time.";
        document.add(forms, [with_lead("  ", Voice::Note, text)]);
    }
    document.add(forms, marks(&all.response));
}

/// Returns the meaning of the mark of a quantile, if one is marked.
fn marks(hist: &Hist) -> Option<Block> {
    let marked = |(_, quantile): &&(&str, f64)| hist.count() < samples_needed(*quantile);
    let (name, quantile) = HEAD.iter().find(marked).filter(|_| !hist.is_empty())?;
    let text = format!(
        "~ fewer samples than the quantile needs ({name}: {})",
        show::count(samples_needed(*quantile))
    );
    Some(with_lead("  ", Voice::Note, text))
}

fn part(row: TableRow) -> TableRow {
    TableRow { look: RowLook::Part, ..row }
}

fn times_row(label: &str, hist: &Hist) -> TableRow {
    let time = |time: Nanos| if hist.is_empty() { "-".to_owned() } else { show::duration(time) };
    let mut row = vec![label.to_owned()];
    row.extend(HEAD.iter().map(|(_, of)| quantile(hist, *of)));
    row.extend([time(hist.max()), time(hist.mean()), show::count(hist.count())]);
    row.into()
}

/// Returns a row with the bound on the client's lateness in each figure; `None` if it changes none
/// of them. A bound also applies to the quantiles above, so the bounds increase along the row.
fn lateness_row(doubt: &Doubt) -> Option<TableRow> {
    let quantiles = || HEAD.iter().map(|(_, quantile)| *quantile).chain([1.0]);
    let shown = quantiles().any(|quantile| doubt.shows(quantile));
    let bounds = quantiles().scan(Nanos::ZERO, |most, quantile| {
        *most = doubt.at(quantile).max(*most);
        Some(*most)
    });
    let mut row = vec!["lateness ≤".to_owned()];
    row.extend(bounds.chain([doubt.of_mean()]).map(bound));
    row.push(String::new());
    shown.then(|| part(row.into()))
}

/// Formats an upper bound, rounded up so that it does not look like a measurement.
fn bound(most: Nanos) -> String {
    const LEAST: u64 = 1_000;
    let most = most.0;
    if most == 0 {
        return show::duration(Nanos::ZERO);
    }
    // half a percent is the width of a histogram's classes
    let most = (most - most / 200).max(LEAST);
    let unit = 10_u64.pow(most.ilog10().saturating_sub(1));
    let text = show::duration(Nanos(most.div_ceil(unit).saturating_mul(unit)));
    text.replace(".00 ", " ").replace(".0 ", " ")
}

/// Renders the quantiles that the plan lists.
pub(super) fn spectrum(report: &RunRecord, all: &RunTimes) -> [Block; 3] {
    let count = all.response.count();
    let rows = report.quantiles.iter().map(|row| {
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
    });
    let table = DataTable::new(["", "response", "from", "to", "service", "calls above"]);
    let note = "From and to: the 95 % interval, corrected for calls that depend on each other.";
    [heading("Quantiles"), Block::Table(table.with(rows)), with_lead("  ", Voice::Note, note)]
}

/// Renders the parts of service time, and the server's own timings.
pub(super) fn phases(document: &mut Document, forms: Forms, report: &RunRecord) {
    let names = ["dns", "connect", "tls", "first byte", "transfer"];
    let phases = parts_table("Phases", "Phases", &facts::phases(report, names));
    let spent = super::charts::composition(report).filter(|_| phases.is_some());
    document.add(forms, phases);
    document.add(forms & Forms::PAGE, spent);
    let work = "What the server reports of its work (Server-Timing)";
    document.add(forms, parts_table("Server-Timing", work, &figures::server_timings(report)));
    let malformed = report.server_timings.server_timing_malformed;
    if malformed > 0 {
        let text = format!("Server-Timing: {} malformed.", show::count(malformed));
        document.add(forms, [with_lead("  ", Voice::Note, text)]);
    }
}

/// Renders times of events in streams.
pub(super) fn streams(document: &mut Document, forms: Forms, report: &RunRecord) {
    let table = parts_table("Streams", "Streams of events", &facts::streams::times(report));
    let note = "The time to the first event counts from the instant a call was due. Events that one read \
                brought have no time between them; a stream that timed out has its last wait counted.";
    let note = table.as_ref().map(|_| with_lead("  ", Voice::Note, note));
    document.add(forms, table);
    document.add(forms & Forms::PAGE, note);
}

/// Renders the streams of each step, if there are several.
pub(super) fn step_streams(document: &mut Document, forms: Forms, report: &RunRecord) {
    let steps = report.bodies.streams.as_ref().map_or(&[][..], |streams| &streams.steps);
    let row = |step: &StepStreamsRecord| {
        let mut cells = vec![words::printable(&step.step, 200)];
        cells.extend([step.whole, step.events].map(show::count));
        let times = [&step.first_event_s, &step.between_events_s];
        cells
            .extend(times.into_iter().flat_map(|times| [times.p50, times.p99]).map(words::seconds));
        cells
    };
    let columns = ["step", "streams", "events", "first p50", "first p99", "gap p50", "gap p99"];
    let columns = columns.map(Column::from);
    let table =
        DataTable::new(columns).named("Stream", "Streams by step").with(steps.iter().map(row));
    document.add(forms, (steps.len() > 1).then_some(Block::Table(table)));
}

/// Renders the times of WebSockets.
pub(super) fn messages(document: &mut Document, forms: Forms, report: &RunRecord) {
    document.add(forms, parts_table("WebSocket", "WebSocket", &facts::messages::times(report)));
}

/// Returns a table with a row per histogram; `None` without histograms.
fn parts_table(name: &str, title: &str, parts: &[(&str, Hist)]) -> Option<Block> {
    let only = |head: &str| Column::from(head).only(Forms::PAGE);
    let columns =
        ["".into(), "mean".into(), "p50".into(), only("p90"), "p99".into(), only("p99.9")];
    let columns = columns.into_iter().chain(["max", "count"].map(Column::from));
    let row = |(name, hist): &(&str, Hist)| {
        let mut cells = vec![name.trim().to_owned(), show::duration(hist.mean())];
        cells.extend(HEAD.iter().map(|(_, of)| quantile(hist, *of)));
        cells.extend([show::duration(hist.max()), show::count(hist.count())]);
        let look = if name.starts_with(' ') { RowLook::Part } else { RowLook::Plain };
        TableRow { look, ..cells.into() }
    };
    let table = DataTable::new(columns).named(name, title).with(parts.iter().map(row));
    (!parts.is_empty()).then_some(Block::Table(table))
}

pub(super) fn each_run(document: &mut Document, forms: Forms, report: &RunRecord) {
    if report.runs.is_empty() {
        return;
    }
    let p90 = Column::from("p90").only(Forms::PAGE);
    let mut columns =
        ["", "throughput", "p50", "p99", "p99.9", "failures", ""].map(Column::from).to_vec();
    columns.insert(3, p90);
    let row = |(index, run): (usize, &Headline)| {
        let mut cells = vec![(index + 1).to_string(), show::rate(run.throughput_per_s)];
        cells.extend([run.p50_s, run.p90_s, run.p99_s, run.p99_9_s].map(words::seconds));
        cells.extend([show::share(run.failure_share), run.state.id().to_owned()]);
        cells
    };
    let rows = report.runs.iter().enumerate().map(row);
    document.add(forms, [Block::Table(DataTable::new(columns).named("Runs", "Runs").with(rows))]);
}

/// Renders the means across runs; without `all`, only the main ones.
pub(super) fn render_run_means(
    document: &mut Document,
    forms: Forms,
    report: &RunRecord,
    all: bool,
) {
    let mut estimates = figures::estimates(&report.runs);
    estimates.retain(|(name, ..)| all || ACROSS_MOST.contains(name));
    if estimates.is_empty() {
        return;
    }
    let rows = estimates.iter().map(|(name, estimate, kind)| {
        vec![
            (*name).to_owned(),
            kind.show(estimate.value),
            kind.show(estimate.low),
            kind.show(estimate.high),
            show::share(half_share(estimate)),
        ]
    });
    let table = DataTable::new(["", "mean", "from", "to", "±"]).narrow();
    document.add(forms, [Block::Table(table.named("Across runs", "Across runs").with(rows))]);
    let note = "From and to: the 95 % interval of the mean (Student's t).";
    document.add(forms, all.then(|| with_lead("  ", Voice::Note, note)));
}

const ACROSS_MOST: [&str; 4] = ["throughput", "failures", "p50", "p99"];

/// Returns half the interval as a share of the mean; NaN for a mean of zero.
fn half_share(estimate: &Estimate) -> f64 {
    figures::ratio((estimate.high - estimate.low) / 2.0, estimate.value)
}

/// Returns the maximum number of rows of the per-URL table in a form with room for all.
pub(super) fn rows_max(report: &RunRecord) -> usize {
    if report.journeys.is_some() { STEPS_MAX } else { URLS_MAX }
}

/// Renders the most called URLs, at most `rows_max` rows including one for all others.
pub(super) fn per_url(document: &mut Document, forms: Forms, report: &RunRecord, rows_max: usize) {
    let urls = &report.per_url;
    if urls.is_empty() || rows_max == 0 {
        return;
    }
    let shown = if urls.len() > rows_max { rows_max - 1 } else { urls.len() };
    let (shown, folded) = urls.split_at(shown);
    let mut hists: Vec<Hist> = shown.iter().map(|row| report.hist_of_target(row.target)).collect();
    let mut all = Hist::new();
    folded.iter().for_each(|row| all.merge(&report.hist_of_target(row.target)));
    hists.push(all);
    let ends = ends(&hists);
    let tagged = urls.iter().any(|row| !row.tags.is_empty());
    let row = |(row, hist): (&UrlRecord, &Hist)| -> TableRow {
        let counts = (row.count, row.failed + row.timed_out);
        let mut cells = ended_row(words::printable(row.label(), 400), counts, hist, ends);
        if tagged {
            let tags = row.tags.iter().map(|(name, value)| format!("{name}={value}"));
            cells.insert(1, tags.collect::<Vec<_>>().join(" ").into());
        }
        cells.into()
    };
    let mut rows: Vec<TableRow> = shown.iter().zip(&hists).map(row).collect();
    if let ([_, ..], Some(all)) = (folded, hists.last()) {
        let sum = |of: fn(&UrlRecord) -> u64| folded.iter().map(of).sum();
        let name = format!("{} more", show::count(folded.len() as u64));
        let counts = (sum(|row| row.count), sum(|row| row.failed + row.timed_out));
        let mut cells = ended_row(name, counts, all, ends);
        if tagged {
            cells.insert(1, "".into());
        }
        rows.push(TableRow { look: RowLook::Rest, ..cells.into() });
    }
    let (title, head) =
        if report.journeys.is_some() { ("Per step", "step") } else { ("Per URL", "URL") };
    let tags = tagged.then(|| Column::new(ColumnKind::Text, "tags").only(Forms::PAGE));
    let counts = tags.into_iter().chain(["calls", "failed"].map(Column::from));
    // after the name, the counts, the share and the distribution
    let place = 5 + usize::from(tagged);
    let mut table = ended_table((title, title), head, counts, rows);
    if shown.iter().any(|row| row.over_time_s.len() > 1) {
        table.columns.insert(place, Column::from("over time").only(Forms::PAGE));
        for (row, url) in table.rows.iter_mut().zip(shown.iter().map(Some).chain([None])) {
            row.cells.insert(place, url.map_or_else(|| "".into(), over_time));
        }
    }
    document.add(forms, [Block::Table(table)]);
    let left_out = words::counted(folded.len() as u64, "row");
    let note = || text_block(Voice::Note, format!("{left_out} more in the JSON."));
    document.add(forms & Forms::PAGE, (!folded.is_empty()).then(note));
}

/// Renders steps combined by their tags.
pub(super) fn by_tag(document: &mut Document, forms: Forms, report: &RunRecord) {
    let all = &report.by_tag;
    let hists: Vec<Hist> = all.iter().map(|row| report.hist_of_tag(row)).collect();
    let ends = ends(&hists);
    let rows = all.iter().zip(&hists).map(|(row, response)| {
        let counts = (row.count, row.failed + row.timed_out);
        ended_row(words::printable(&row.tag, 200), counts, response, ends)
    });
    let columns = ["calls", "failed"].map(Column::from);
    let table = ended_table(("Per tag", "By tag"), "tag", columns, rows);
    document.add(forms, (!all.is_empty()).then_some(Block::Table(table)));
}

/// Numbers that captures took from responses.
pub(super) fn metrics(document: &mut Document, forms: Forms, report: &RunRecord) {
    let all = report.journeys.iter().flat_map(|journeys| &journeys.metrics);
    let shown = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), words::number);
    let row = |metric: &MetricRecord| {
        let mut cells = vec![words::printable(&metric.name, 200), show::count(metric.count)];
        let figures =
            [metric.mean, metric.min, metric.p50, metric.p90, metric.p95, metric.p99, metric.max];
        cells.extend(figures.map(shown));
        cells
    };
    let rows: Vec<Vec<String>> = all.map(row).collect();
    let only = |head: &str| Column::from(head).only(Forms::PAGE);
    let columns = ["metric".into(), "count".into(), "mean".into(), only("min"), "p50".into()];
    let columns =
        columns.into_iter().chain([only("p90"), "p95".into(), "p99".into(), "max".into()]);
    let shown = !rows.is_empty();
    let table = DataTable::new(columns).named("Metrics", "Metrics").with(rows);
    document.add(forms, shown.then_some(Block::Table(table)));
}

/// Renders the kinds of clients, each with its own kind of path.
pub(super) fn clients(document: &mut Document, forms: Forms, report: &RunRecord) {
    let all = &report.parts.by_clients;
    let hists: Vec<Hist> = (0..all.len()).map(|place| report.hist_of_clients(place)).collect();
    let ends = ends(&hists);
    let rows = all.iter().zip(&hists).map(|(row, response)| {
        let name = words::printable(&row.name, 60);
        let mut cells = ended_row(name, (row.count, row.failed + row.timed_out), response, ends);
        cells.insert(1, count_cell(u64::from(row.clients)));
        cells
    });
    let columns = ["clients", "calls", "failed"].map(Column::from);
    let table = ended_table(("Behind", "By kind of clients"), "behind", columns, rows);
    document.add(forms, (!all.is_empty()).then_some(Block::Table(table)));
}

/// Renders several simultaneous loads.
pub(super) fn scenarios(document: &mut Document, forms: Forms, report: &RunRecord) {
    let all = &report.parts.by_scenario;
    let name = |row: &record::run::ScenarioRecord| words::printable(&row.name, 60);
    let hists: Vec<Hist> = (0..all.len()).map(|place| report.hist_of_scenario(place)).collect();
    let ends = ends(&hists);
    let rows = all.iter().zip(&hists).map(|(row, response)| {
        let counts = &row.outcomes;
        let mut cells = ended_row(name(row), (counts.due, counts.bad()), response, ends);
        let rate = row.throughput_per_s;
        cells.insert(3, TableCell::by(rate, show::rate(rate)));
        cells
    });
    let columns = ["calls", "failed", "per second"].map(Column::from);
    let table = ended_table(("Per scenario", "By scenario"), "scenario", columns, rows);
    document.add(forms, (!all.is_empty()).then_some(Block::Table(table)));
    let load = |row: &record::run::ScenarioRecord| {
        with_lead("  ", Voice::Plain, format!("{}: {}", name(row), row.load))
    };
    document.add(forms, all.iter().map(load));
}

/// Renders journeys, and observations of users in addition to their calls.
pub(super) fn journeys(document: &mut Document, forms: Forms, report: &RunRecord) {
    let Some(journeys) = &report.journeys else { return };
    let all = &journeys.transactions;
    let hists: Vec<Hist> = (0..all.len()).map(|place| report.hist_of_transaction(place)).collect();
    let ends = ends(&hists);
    let rows = all.iter().zip(&hists).map(|(row, times)| {
        let counts = (row.succeeded + row.failed, row.failed);
        ended_row(words::printable(&row.name, 400), counts, times, ends)
    });
    let columns = ["done", "failed"].map(Column::from);
    let names = ("Journeys", "Journeys and blocks");
    let table = ended_table(names, "journey or block", columns, rows);
    document.add(forms, [Block::Table(table)]);
    let notes = journeys.notes();
    if notes.is_empty() {
        return;
    }
    document.add(forms, [subheading("Notes")]);
    let describe = |text: String| with_lead("  ", Voice::Plain, text);
    let note = |(name, text): &(String, String)| {
        describe(format!("{}: {text}", words::printable(name, 100)))
    };
    document.add(forms, notes.iter().take(NOTES_MAX).map(note));
    let more = notes.len().saturating_sub(NOTES_MAX);
    document.add(forms, (more > 0).then(|| describe(format!("{more} more in the JSON"))));
}

/// Renders omissions of an import, so that readers of the result know them too.
pub(super) fn not_imported(document: &mut Document, forms: Forms, report: &RunRecord) {
    let all = &report.plan.plan().not_imported;
    if all.is_empty() {
        return;
    }
    document.add(forms, [subheading("Not imported")]);
    let describe = |text: String| with_lead("  ", Voice::Plain, text);
    document.add(forms, all.iter().take(NOTES_MAX).map(|one| describe(words::printable(one, 300))));
    let more = all.len().saturating_sub(NOTES_MAX);
    document.add(forms, (more > 0).then(|| describe(format!("{more} more in the plan"))));
}

/// Renders the first observations of users, if there is no room for more.
pub(super) fn first_notes(document: &mut Document, forms: Forms, report: &RunRecord) {
    let Some(journeys) = &report.journeys else { return };
    let notes = journeys.notes();
    let note = |(name, text): &(String, String)| {
        with_lead("  ", Voice::Plain, format!("{}: {text}", words::printable(name, 100)))
    };
    if !notes.is_empty() {
        document.add(forms, [subheading("Notes")]);
        document.add(forms, notes.iter().take(FIRST_NOTES_MAX).map(note));
    }
}

/// Returns a table with a row for each name: counts, then times. `head`: heading of the column of
/// names.
fn ended_table<R: Into<TableRow>>(
    (name, title): (&str, &str),
    head: &str,
    counts: impl IntoIterator<Item = Column>,
    rows: impl IntoIterator<Item = R>,
) -> DataTable {
    let only = |head: &str| Column::from(head).only(Forms::PAGE);
    let times = ["p50".into(), only("p90"), only("p95"), "p99".into(), "max".into()];
    let times = [only("share"), only("distribution")].into_iter().chain(times);
    let columns = std::iter::once(Column::new(ColumnKind::Name, head)).chain(counts).chain(times);
    DataTable::new(columns).named(name, title).sortable().with(rows)
}

/// Returns a row: a name, its numbers of ended and failed calls, and their times. `ends`: ends of
/// the axis that all rows share.
fn ended_row(
    name: String,
    (ended, failed): (u64, u64),
    times: &Hist,
    ends: (Nanos, Nanos),
) -> Vec<TableCell> {
    let share = figures::ratio(failed as f64, ended as f64);
    let look = if failed > 0 { CellLook::Missed } else { CellLook::Plain };
    let failures = TableCell { look, ..count_cell(failed) };
    let share = TableCell { look, ..TableCell::by(share, show::share(share)) };
    let mut cells = vec![name.into(), count_cell(ended), failures, share, shape(times, ends)];
    cells.extend([0.5, 0.9, 0.95, 0.99].map(|of| quantile_cell(times, of)));
    cells.push(longest_cell(times));
    cells
}

/// Returns the minimum and maximum time of all.
fn ends(all: &[Hist]) -> (Nanos, Nanos) {
    let there = || all.iter().filter(|hist| !hist.is_empty());
    let low = there().map(|hist| hist.quantile(0.0)).min().unwrap_or(Nanos(1)).max(Nanos(1));
    (low, there().map(Hist::max).max().unwrap_or(low).max(low))
}

/// Returns a cell with the mean response times over time as bars, whose height is relative to the
/// longest.
fn over_time(row: &UrlRecord) -> TableCell {
    let times = || row.over_time_s.iter().flatten().copied();
    let longest = times().fold(0.0, f64::max);
    if longest <= 0.0 {
        return "-".into();
    }
    let height = |mean: &Option<f64>| match mean {
        Some(mean) => (mean / longest * 100.0).round().max(4.0) as u8,
        None => 0,
    };
    let bars = row.over_time_s.iter().map(height).collect();
    let least = times().fold(longest, f64::min);
    let (least, most) = (words::seconds(least), words::seconds(longest));
    let words = format!("mean response time over the run, from {least} to {most}");
    TableCell::by(
        longest / times().last().unwrap_or(longest),
        Words::default().with(Inline::Bars(bars, words)),
    )
}

/// Bars of a small histogram.
const BARS: usize = 24;

/// Draws times as a small histogram on a logarithmic axis. The height of a bar is the root of its
/// count, so that a thin tail is visible.
fn shape(times: &Hist, (low, high): (Nanos, Nanos)) -> TableCell {
    if times.is_empty() {
        return "-".into();
    }
    let decades = (high.0 as f64 / low.0 as f64).ln().max(1e-9);
    let mut counts = [0_u64; BARS];
    for (time, count) in times.buckets() {
        let part = (time.0.max(low.0) as f64 / low.0 as f64).ln() / decades;
        counts[((part * BARS as f64) as usize).min(BARS - 1)] += count;
    }
    let most = counts.into_iter().max().unwrap_or(1).max(1) as f64;
    let height = |count: u64| (count as f64 / most).sqrt() * 100.0;
    let least = |count: u64| if count > 0 { height(count).max(8.0) } else { 0.0 };
    let bars = counts.map(|count| least(count).round() as u8).to_vec();
    let words = format!("from {} to {}", show::duration(low), show::duration(high));
    let picture = Words::default().with(Inline::Bars(bars, words));
    TableCell::by(times.mean().0 as f64, picture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_on_lateness_rise_from_the_median_to_the_maximum() {
        let ms = Nanos::from_millis;
        let mut response = Hist::new();
        response.record_n(ms(10), 900);
        response.record_n(ms(30), 99);
        response.record(ms(500));
        let mut punctual = Hist::new();
        punctual.record_n(ms(10), 999);
        punctual.record(ms(500));
        let row = lateness_row(&Doubt::between(response, punctual).unwrap()).unwrap();
        let cells: Vec<String> = row.cells.iter().map(|cell| cell.words.bare()).collect();
        assert_eq!(cells[..6], ["lateness ≤", "0 s", "0 s", "20 ms", "20 ms", "20 ms"]);
    }

    #[test]
    fn a_bound_is_a_round_figure_above() {
        let shown = [0, 1, 511, 1_041, 55_600, 1_474_559, 99_900_000].map(|ns| bound(Nanos(ns)));
        assert_eq!(shown, ["0 s", "1 µs", "1 µs", "1.10 µs", "56 µs", "1.50 ms", "100 ms"]);
    }
}
