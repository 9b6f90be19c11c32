//! Several results on one page.

use crate::RunReport;
use record::ramp::RampReport;

/// A run and what it is called beside others: its id or tag in the store.
#[derive(Clone, Debug)]
pub struct Named<'a> {
    pub name: String,
    pub report: &'a RunReport,
}

/// Ramps put side by side, as if they were of one session: a label for each target of each ramp.
/// `None` for no ramp, and for ramps of which one is over rates and another over populations.
pub fn together(ramps: &[(String, RampReport)]) -> Option<RampReport> {
    let (_, first) = ramps.first()?;
    if ramps.iter().any(|(_, ramp)| ramp.axis != first.axis) {
        return None;
    }
    let mut all = first.clone();
    all.labels.clear();
    all.steps.clear();
    all.curves.clear();
    all.findings.clear();
    for (name, ramp) in ramps {
        let offset = all.labels.len();
        let label = |label: &String| match ramp.labels.len() {
            1 => name.clone(),
            _ => format!("{name}: {label}"),
        };
        all.labels.extend(ramp.labels.iter().map(label));
        all.curves.extend(ramp.curves.iter().cloned());
        all.findings.extend(ramp.findings.iter().cloned());
        all.steps.extend(ramp.steps.iter().cloned().map(|mut step| {
            step.label += offset;
            step
        }));
        if ramp.verdict.state > all.verdict.state {
            all.verdict = ramp.verdict.clone();
        }
        all.ended_early = all.ended_early.or_else(|| ramp.ended_early.clone());
    }
    all.name = String::new();
    Some(all)
}
