//! Measured runs and ramps, converted to their records and then to each form.

use super::sessions;
use crate::ramp::{RampRecord, RampReport};
use crate::{Named, RunRecord, RunReport, Style};
use record::compare::{CompareRecord, assemble};

pub(crate) fn text(run: &RunReport, style: Style) -> String {
    crate::text(&RunRecord::new(run), style)
}

pub(crate) fn html(run: &RunReport) -> String {
    crate::html(&RunRecord::new(run))
}

pub(crate) fn json(run: &RunReport) -> String {
    crate::json(&RunRecord::new(run))
}

pub(crate) fn csv(run: &RunReport) -> String {
    crate::csv(&RunRecord::new(run))
}

pub(crate) fn hdr_log(run: &RunReport) -> String {
    crate::hdr_log(&RunRecord::new(run))
}

pub(crate) fn markdown(run: &RunReport) -> String {
    crate::markdown(&RunRecord::new(run))
}

/// Renders several runs in a form that shows them side by side.
pub(crate) fn side_by_side(runs: &[RunReport], form: fn(&[Named<'_>]) -> String) -> String {
    let runs: Vec<RunRecord> = runs.iter().map(RunRecord::new).collect();
    let name = |(n, report)| Named { name: format!("run-{n}"), report };
    form(&runs.iter().enumerate().map(name).collect::<Vec<_>>())
}

pub(crate) fn ramp_text(ramp: &RampReport, style: Style) -> String {
    crate::ramp::text(&RampRecord::new(ramp), style)
}

pub(crate) fn ramp_html(ramp: &RampReport) -> String {
    crate::ramp::html(&RampRecord::new(ramp))
}

pub(crate) fn ramp_json(ramp: &RampReport) -> String {
    crate::ramp::json(&RampRecord::new(ramp))
}

/// Result of `compare` for the runs of both sides.
pub(crate) fn comparison(
    before: Vec<RunReport>,
    after: Vec<RunReport>,
    order: &str,
    bounds: &[&str],
) -> CompareRecord {
    assemble(&sessions::comparison(before, after, order, bounds))
}

pub(crate) fn session(times: f64, rates: f64, bounds: &[&str]) -> CompareRecord {
    assemble(&sessions::blocks(times, rates, bounds))
}

pub(crate) fn protocols(bounds: &[&str]) -> CompareRecord {
    assemble(&sessions::over_protocols(bounds))
}

pub(crate) fn single() -> CompareRecord {
    assemble(&sessions::one_run_each())
}
