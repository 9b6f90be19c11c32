//! Several results on one page.

use crate::RunRecord;
use record::ramp::RampRecord;
use std::collections::BTreeMap;

/// Run with its name among others: its id or tag in the store.
#[derive(Clone, Debug)]
pub struct Named<'a> {
    pub name: String,
    pub report: &'a RunRecord,
}

/// Combines ramps into one session: a label for each target of each ramp. `None` without ramps, or
/// if some are over rates and others over populations.
pub fn combine_ramps(ramps: &[(String, RampRecord)]) -> Option<RampRecord> {
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
        let mut given: BTreeMap<&str, String> = BTreeMap::new();
        for label in &ramp.labels {
            let mut wanted = match ramp.labels.len() {
                1 => name.clone(),
                _ => format!("{name}: {label}"),
            };
            // steps know their target by its label, and a ramp may be named twice
            while all.labels.contains(&wanted) {
                wanted.push_str(" again");
            }
            given.insert(label, wanted.clone());
            all.labels.push(wanted);
        }
        all.curves.extend(ramp.curves.iter().cloned());
        all.findings.extend(ramp.findings.iter().cloned());
        all.steps.extend(ramp.steps.iter().cloned().map(|mut step| {
            if let Some(given) = given.get(step.label.as_str()) {
                step.label.clone_from(given);
            }
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
