//! The rows of targets, scenarios and kinds of clients.

use super::{ClientsRecord, OutcomesRecord, ScenarioRecord, TagRecord, TimesRecord, UrlRecord};
use crate::finished::{RunReport, per_second};
use crate::words;
use plan::Plan;
use plan::scenario::ScenarioPlan;

/// Returns the names of the rows of a plan's targets, for `rows` of them.
pub fn row_labels(plan: &Plan, rows: usize) -> Vec<String> {
    (0..rows).map(|index| name(plan, rows, index)).map(|(name, url)| name.unwrap_or(url)).collect()
}

/// Returns the name of a row's target, if it has one, and its URL or pattern.
fn name(plan: &Plan, rows: usize, index: usize) -> (Option<String>, String) {
    let shared = plan.row_count() > rows && index + 1 == rows;
    let part = plan.row(index).filter(|_| !shared);
    let target = part.and_then(|part| plan.targets.get(part.first));
    let url = match (part.and_then(|part| part.fold), target) {
        (Some(fold), _) => plan.measure.folds.patterns[fold].text.clone(),
        (None, Some(target)) => words::shown_url(&target.url),
        (None, None) => "other".to_owned(),
    };
    (target.and_then(|target| target.name.clone()), url)
}

/// Maximum number of rows whose times are published over time.
const OVER_TIME_MAX: usize = 50;

/// Returns the time in seconds, rounded to four digits: a chart needs no more.
fn rounded(time: units::Nanos) -> f64 {
    let step = 10_u64.pow(time.0.max(1).ilog10().saturating_sub(3));
    units::Nanos((time.0 + step / 2) / step * step).as_secs_f64()
}

/// Returns one row per target or pattern, most called first; steps of journeys in the plan's order.
/// Empty with a single target.
pub(super) fn per_url(report: &RunReport) -> Vec<UrlRecord> {
    let tallies = &report.measurement.total.targets;
    let plan = &report.plan;
    let shared_row = plan.row_count() > tallies.len();
    let steps = plan.journeys.iter().flat_map(|journeys| journeys.steps());
    let tags: Vec<_> = steps.map(|step| step.tags.clone()).collect();
    let row = |(index, tally): (usize, &stats::TargetTally)| {
        let shared = shared_row && index + 1 == tallies.len();
        let part = plan.row(index).filter(|_| !shared);
        let (name, url) = name(plan, tallies.len(), index);
        UrlRecord {
            target: index,
            name,
            url,
            tags: tags.get(index).cloned().unwrap_or_default(),
            folded: part.filter(|part| part.fold.is_some()).map_or(0, |part| part.targets),
            count: tally.ended(),
            succeeded: tally.succeeded,
            failed: tally.failed,
            timed_out: tally.timed_out,
            body_bytes: tally.body_bytes,
            response_time_s: TimesRecord::new(&tally.response),
            over_time_s: Vec::new(),
        }
    };
    let mut rows: Vec<UrlRecord> = tallies.iter().enumerate().map(row).collect();
    // steps are read in their order, which is the plan's
    if report.plan.journeys.is_none() {
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    }
    for row in rows.iter_mut().take(OVER_TIME_MAX) {
        let means = report.measurement.slices.means(row.target);
        row.over_time_s = means.into_iter().map(|mean| mean.map(rounded)).collect();
    }
    rows
}

/// Returns one row per tag of steps, by name; empty without tags.
pub(super) fn by_tag(report: &RunReport) -> Vec<TagRecord> {
    let total = &report.measurement.total;
    let tags = report.plan.journeys.as_ref().map(plan::journey::JourneyPlan::tags);
    let row = |(tag, targets): (String, Vec<u32>)| {
        let mut sum = stats::TargetTally::default();
        // a single target has no separate row, because it equals the run
        if total.targets.is_empty() {
            sum.succeeded = total.counts.succeeded;
            sum.failed = total.counts.failed;
            sum.timed_out = total.counts.timed_out;
            sum.body_bytes = total.body_bytes;
            sum.response = total.response();
        }
        for tally in targets.iter().filter_map(|row| total.targets.get(*row as usize)) {
            sum.merge(tally);
        }
        TagRecord {
            tag,
            targets,
            count: sum.ended(),
            succeeded: sum.succeeded,
            failed: sum.failed,
            timed_out: sum.timed_out,
            body_bytes: sum.body_bytes,
            response_time_s: TimesRecord::new(&sum.response),
        }
    };
    tags.unwrap_or_default().into_iter().map(row).collect()
}

/// Returns one row per scenario, in the plan's order; empty without scenarios.
pub(super) fn by_scenario(report: &RunReport) -> Vec<ScenarioRecord> {
    let tallies = &report.measurement.total.scenarios;
    let none = stats::ScenarioTally::default();
    let row = |(row, scenario): (usize, &ScenarioPlan)| {
        let tally = tallies.get(row).unwrap_or(&none);
        let per_s = |count: u64| per_second(count, report.measurement.window);
        ScenarioRecord {
            name: scenario.name.clone(),
            load: words::scenario(&report.plan, scenario),
            outcomes: OutcomesRecord::new(&tally.counts),
            intended: tally.intended,
            unissued: tally.unissued,
            sessions: tally.sessions_started,
            throughput_per_s: per_s(tally.in_window),
            goodput_per_s: per_s(tally.good_in_window),
            in_window: tally.in_window,
            good_in_window: tally.good_in_window,
            body_bytes: tally.body_bytes,
            response_time_s: TimesRecord::new(&tally.response),
        }
    };
    report.plan.scenarios.iter().enumerate().map(row).collect()
}

/// Returns one row per kind of clients, in the plan's order; empty without kinds.
pub(super) fn by_clients(report: &RunReport) -> Vec<ClientsRecord> {
    let Some(population) = &report.plan.connection.clients else { return Vec::new() };
    let tallies = &report.measurement.total.clients;
    let counts = population.counts(report.plan.client_count());
    let none = stats::TargetTally::default();
    let row = |(row, (name, clients)): (usize, (String, u32))| {
        let tally = tallies.get(row).unwrap_or(&none);
        ClientsRecord {
            name,
            clients,
            count: tally.ended(),
            succeeded: tally.succeeded,
            failed: tally.failed,
            timed_out: tally.timed_out,
            body_bytes: tally.body_bytes,
            response_time_s: TimesRecord::new(&tally.response),
        }
    };
    report.plan.client_names().into_iter().zip(counts).enumerate().map(row).collect()
}
