//! Text of a ramp in addition to [`super::answer`]: the answer as prose, and the figures of each
//! target in columns.

use super::answer::{TO, level, rules, with_ends};
use super::{LONG, RampRecord};
use crate::section::Forms;
use crate::words;
use stats::State;
use stats::curve::{Axis, Capacity, CapacityEnd, Curve, Overload, OverloadShape};
use units::show;

/// Returns a short name for the shape of the overload.
pub(super) fn shape(overload: &Overload) -> &'static str {
    match overload.shape {
        OverloadShape::Flat => "flat",
        OverloadShape::Sag => "sag",
        OverloadShape::Collapse => "collapse",
        OverloadShape::Unseen => "unseen",
    }
}

/// Name of a figure of a curve, the forms that have it, and its value: as a sort key, and as text.
pub(super) type CurveFigure = (&'static str, Forms, fn(Axis, &Curve) -> (f64, String));

/// Names of targets need the width of a terminal: cells there are short, with whole numbers.
pub(super) const FIGURES: [CurveFigure; 8] = [
    ("peak goodput", Forms::WIDE, |_, curve| {
        let peak = curve.peak.map_or(f64::NAN, |peak| peak.at);
        (or_zero(peak), level(Axis::Rate, peak))
    }),
    ("peak", LONG, |_, curve| {
        let peak = curve.peak.map_or(f64::NAN, |peak| peak.at.round());
        (or_zero(peak), level(Axis::Rate, peak))
    }),
    ("knee", Forms::ALL, |axis, curve| {
        let at = curve.knee.as_ref().map_or(f64::NAN, |knee| knee.at.at);
        (or_zero(at), level(axis, at))
    }),
    ("capacity", Forms::WIDE, |axis, curve| match &curve.capacity {
        None => (0.0, "-".to_owned()),
        Some(found) => (or_zero(found.at.at), capacity(axis, found, AT_LEAST)),
    }),
    ("capacity", LONG, |axis, curve| match &curve.capacity {
        None => (0.0, "-".to_owned()),
        Some(found) => (or_zero(found.at.at), capacity(axis, found, ">")),
    }),
    ("overload", Forms::WIDE, |_, curve| {
        let share = curve.overload.kept_share;
        let text = match curve.overload.shape {
            OverloadShape::Unseen => "-".to_owned(),
            _ => format!("{}, {} kept", shape(&curve.overload), show::share(share)),
        };
        (or_zero(share), text)
    }),
    ("kept", LONG, |_, curve| {
        let share = curve.overload.kept_share;
        let text = match curve.overload.shape {
            OverloadShape::Unseen => "-".to_owned(),
            _ => show::share(share),
        };
        (or_zero(share), text)
    }),
    ("recovery", Forms::ALL, |_, curve| {
        let recovery_s = curve.overload.recovery_s;
        let text = match recovery_s {
            s if s.is_nan() => "-".to_owned(),
            s if s.is_infinite() => "not seen".to_owned(),
            s => words::seconds(s),
        };
        (or_zero(recovery_s), text)
    }),
];

fn or_zero(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

const AT_LEAST: &str = "at least";

/// Formats the capacity, prefixed with `at_least` if its extent is unknown.
fn capacity(axis: Axis, found: &Capacity, at_least: &str) -> String {
    match found.how {
        CapacityEnd::Bracketed => level(axis, found.at.at),
        CapacityEnd::NeverMissed | CapacityEnd::ClientLimited => {
            format!("{at_least} {}", level(axis, found.at.low))
        }
        CapacityEnd::NeverMet => "none".to_owned(),
    }
}

/// Returns the result as text, a sentence or two for each target.
pub(super) fn answers(report: &RampRecord) -> Vec<String> {
    let mut lines = Vec::new();
    if report.verdict.state == State::Invalid {
        lines.push("Measured, but not representative of the server.".to_owned());
    }
    if report.steps.is_empty() {
        lines.push("No step was measured.".to_owned());
        return lines;
    }
    for (row, (label, curve)) in report.labels.iter().zip(&report.curves()).enumerate() {
        let name = match report.labels.len() {
            1 => "The server".to_owned(),
            _ => words::printable(label, 80),
        };
        if let Some(step) = report.failing(row) {
            let server = words::printable(&step.run.server.sentence, 200);
            lines.push(format!("{name}: {server}, at {}.", level(report.axis, step.level)));
            continue;
        }
        lines.push(one_answer(&name, report.axis, curve));
    }
    lines
}

fn one_answer(name: &str, axis: Axis, curve: &Curve) -> String {
    let Some(peak) = &curve.peak else { return format!("{name}: no step is usable.") };
    if !axis.is_load() {
        let peak = level(Axis::Rate, peak.at);
        return format!("{name} peaks at {peak} successful responses on these paths.");
    }
    let follows = match (&curve.knee, axis) {
        (Some(knee), Axis::Rate) => {
            format!("keeps up with the offered load to {}", with_ends(axis, &knee.at, TO))
        }
        (Some(knee), _) => {
            format!("gives more throughput to more users up to {}", with_ends(axis, &knee.at, TO))
        }
        (None, _) => "kept up with the offered load in all steps".to_owned(),
    };
    let peak = level(Axis::Rate, peak.at);
    let peak = format!(" and peaks at {} successful responses/s.", peak.trim_end_matches("/s"));
    let asked = curve.capacity.as_ref().filter(|found| !found.objectives.is_empty());
    let asked = asked.map_or_else(String::new, |found| {
        format!(" Its capacity with {}: {}.", rules(found), capacity(axis, found, AT_LEAST))
    });
    let kept = show::share(curve.overload.kept_share);
    let past = match curve.overload.shape {
        OverloadShape::Unseen => String::new(),
        OverloadShape::Flat => " Past its knee, throughput stays.".to_owned(),
        OverloadShape::Sag => format!(" Past its knee, throughput sags to {kept} of the peak."),
        OverloadShape::Collapse => {
            format!(" Past its knee, throughput collapses to {kept} of the peak.")
        }
    };
    format!("{name} {follows}{peak}{asked}{past}")
}
