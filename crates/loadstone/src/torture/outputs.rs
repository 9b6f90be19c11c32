//! Outputs of the results.

use crate::exit::Failure;
use crate::files;
use args::TortureOutputs;
use campaign::TestTarget;
use record::torture::TortureRecord;
use report::torture::Report;
use torture::case::Case;
use units::Nanos;
use world::directory::Recorder;

/// Checks that every result can be written, before anything is sent.
pub(super) fn check(outputs: &TortureOutputs) -> Result<(), Failure> {
    outputs.check().map_err(|error| Failure::usage(error.to_string()))?;
    let others = [&outputs.html, &outputs.junit, &outputs.probes];
    files::check_results(outputs.json.as_ref(), others.into_iter().flatten())
}

/// Starts to record the evidence, if requested. `now` is the instant of the run's clock.
///
/// # Errors
/// Fails if its folder cannot be created.
pub(super) fn recorder(
    outputs: &TortureOutputs,
    target: &TestTarget,
    cases: &[Case],
    report: &Report,
    now: Nanos,
) -> Result<Option<Recorder>, Failure> {
    let parent = outputs.out.as_ref();
    parent.map(|parent| Recorder::new(parent, target, cases, report, now)).transpose()
}

/// Writes every result, even after a failure; the first error is reported.
pub(super) fn write(outputs: &TortureOutputs, torture: &TortureRecord) -> Result<(), Failure> {
    let json = outputs.json.as_ref().map(|sink| (sink, report::torture::json(torture)));
    let html = outputs.html.as_ref().map(|path| (path, report::torture::html(torture)));
    let junit = outputs.junit.as_ref().map(|path| (path, report::torture::junit(torture)));
    let probes = || report::torture::probes_csv(&torture.probe_series);
    let probes = outputs.probes.as_ref().map(|path| (path, probes()));
    let others = [html, junit, probes].into_iter().flatten();
    let style = crate::run::output::style(outputs.quiet, false, true);
    files::write_results(json, others, || report::torture::text(torture, style))
}
