//! Resources used by a watched server at each load, and which was exhausted at its limit.

use super::{RampRecord, load};
use record::run::SutRecord;
use sample::Fullness;
use stats::curve::Purpose;
use units::show;

/// Returns (load, use of the server's resources) of a target's steps on the way up, ascending; the
/// highest of repeats. Empty if not watched.
pub(super) fn watched(report: &RampRecord, label: usize) -> Vec<(f64, Fullness)> {
    let mut levels: Vec<(f64, Fullness)> = Vec::new();
    for step in report.steps_of(label) {
        let part = [Purpose::Up, Purpose::Search, Purpose::Confirm, Purpose::Overload];
        let sut = step.run.sut.as_ref().map(SutRecord::series);
        let sut = sut.filter(|sut| sut.measured().next().is_some());
        let Some(sut) = sut.filter(|_| part.contains(&step.purpose)) else { continue };
        let (level, full) = (step.level, sut.fullness());
        match levels.iter_mut().find(|(known, _)| (known - level).abs() <= 1e-6 * level.abs()) {
            Some((_, known)) => *known = max_fullness(known, &full),
            None => levels.push((level, full)),
        }
    }
    levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    levels
}

fn max_fullness(a: &Fullness, b: &Fullness) -> Fullness {
    Fullness {
        cpu: a.cpu.max(b.cpu),
        memory: a.memory.max(b.memory),
        descriptors: a.descriptors.max(b.descriptors),
        accept_queue: a.accept_queue.max(b.accept_queue),
        overflows: a.overflows.max(b.overflows),
    }
}

/// Describes the server's resource that was saturated at the knee, or at the highest load if there
/// is no knee: at the first watched load from there on.
pub(super) fn at_knee(report: &RampRecord, label: usize) -> Option<String> {
    let levels = watched(report, label);
    let last = levels.last()?;
    let knee = report.curves.get(label)?.curve().knee.map(|knee| knee.at.at);
    let beyond = |knee: f64| levels.iter().find(|(level, _)| *level >= knee * (1.0 - 1e-6));
    let (level, full) = knee.and_then(beyond).unwrap_or(last);
    let mut parts = vec![format!("CPU {}", show::share(full.cpu))];
    let others = [
        ("memory", full.memory),
        ("descriptors", full.descriptors),
        ("accept queue", full.accept_queue),
    ];
    let known = others.iter().filter(|(_, share)| *share > 0.0);
    parts.extend(known.map(|(name, share)| format!("{name} {}", show::share(*share))));
    if full.overflows > 0 {
        let lost = show::count(full.overflows);
        parts.push(format!("{lost} connections were dropped because a listen queue was full"));
    }
    let names = full.full();
    let text = match names.is_empty() {
        true => "no resource was full".to_owned(),
        false => format!("full: {}", names.join(", ")),
    };
    let place = if knee.is_some() { "by the knee" } else { "at the highest load" };
    Some(format!("{place}, at {}, {}; {text}.", load(report.axis, *level), parts.join(", ")))
}
