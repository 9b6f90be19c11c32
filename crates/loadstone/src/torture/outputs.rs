//! Where the results go.

use super::directory::Recorder;
use crate::args::TortureOutputs;
use crate::exit::Failure;
use crate::files;
use report::torture::Report;
use torture::case::Case;
use torture::session::Target;
use units::Nanos;

/// Before anything is sent: that every result can be written.
pub(super) fn check(outputs: &TortureOutputs) -> Result<(), Failure> {
    files::check_results(outputs.json.as_ref(), &outputs.junit)
}

/// Begins to keep the evidence, where that is asked for. `now` is the instant of the run's clock.
///
/// # Errors
/// Its folder cannot be made.
pub(super) fn recorder(
    outputs: &TortureOutputs,
    target: &Target,
    cases: &[Case],
    report: &Report,
    now: Nanos,
) -> Result<Option<Recorder>, Failure> {
    let parent = outputs.out.as_ref();
    parent.map(|parent| Recorder::new(parent, target, cases, report, now)).transpose()
}

/// Writes all results; every one is tried, the first failure is told.
pub(super) fn write(outputs: &TortureOutputs, report: &Report) -> Result<(), Failure> {
    let json = outputs.json.as_ref().map(|sink| (sink, report::torture::json(report)));
    let junit = outputs.junit.as_ref().map(|path| (path, report::torture::junit(report)));
    let style = crate::run::output::style(outputs.quiet, false);
    files::write_results(json, junit, || report::torture::text(report, style))
}
