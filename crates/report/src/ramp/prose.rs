//! What the page and the Markdown of a ramp say beside [`super::answer`]: the answer as prose,
//! and the figures of each target in columns.

use super::{RampRecord, answer, load};
use crate::words;
use record::ramp::CurveRecord;
use stats::State;
use stats::curve::{Axis, Capacity, CapacityEnd, Curve, Overload, OverloadShape, Span, Usl};
use units::show;

/// A load on the axis, `-` where there is none.
pub(crate) fn level(axis: Axis, at: f64) -> String {
    if at.is_finite() { load(axis, at) } else { "-".to_owned() }
}

/// Both ends of an interval, or the one that is known; empty where there is none.
pub(crate) fn ends(axis: Axis, span: &Span) -> String {
    match span.interval() {
        Some((_, high)) if span.is_open_below() && high.is_finite() => {
            format!("at most {}; how far below was not measured", level(axis, high))
        }
        Some((low, high)) if high.is_finite() => {
            format!("{} to {}", level(axis, low), level(axis, high))
        }
        _ => String::new(),
    }
}

/// A figure and its interval, where there is one: `1,200/s (1,150/s to 1,260/s)`.
fn span(axis: Axis, span: &Span) -> String {
    let ends = ends(axis, span);
    let interval = if ends.is_empty() { ends } else { format!(" ({ends})") };
    format!("{}{interval}", level(axis, span.at))
}

/// The shape of the overload in a word.
pub(crate) fn shape(overload: &Overload) -> &'static str {
    match overload.shape {
        OverloadShape::Flat => "flat",
        OverloadShape::Sag => "sag",
        OverloadShape::Collapse => "collapse",
        OverloadShape::Unseen => "unseen",
    }
}

/// The scalability law's figures in one line.
fn usl(usl: &Usl) -> String {
    let part = |name: &str, span: &Span| {
        let interval = span.interval().map_or_else(String::new, |(low, high)| {
            format!(" ({} to {})", words::figure(low), words::figure(high))
        });
        format!("{name} {}{interval}", words::figure(span.at))
    };
    let most = match usl.n_max.is_finite() {
        true => format!(
            "most at {} in flight: {}",
            show::count(usl.n_max.round().max(0.0) as u64),
            show::rate(usl.x_max)
        ),
        false => format!("tends to {}", show::rate(usl.x_max)),
    };
    let one = show::rate(usl.g.at);
    let parts = (part("contention", &usl.a), part("coherency", &usl.b));
    format!("one in flight {one}, {}, {}; {most}", parts.0, parts.1)
}

/// The figures of one target: a label and a sentence each.
pub(crate) fn facts(report: &RampRecord, row: usize) -> Vec<(&'static str, String)> {
    let mut facts = answer(report, row);
    let Some(curve) = report.curves.get(row).map(CurveRecord::curve) else { return facts };
    let axis = report.axis;
    let by_form = curve.kneedle.as_ref();
    facts
        .extend(by_form.map(|knee| ("By its form", format!("{} (Kneedle)", span(axis, &knee.at)))));
    facts.extend(curve.power_at.map(|at| {
        ("Most power", format!("{}: throughput over response time (Kleinrock)", level(axis, at)))
    }));
    facts.extend(curve.usl.as_ref().map(|fit| ("Scalability", usl(fit))));
    facts
}

/// Name of a figure of a curve, and how it is had: as a number to sort by, and as text.
pub(crate) type CurveFigure = (&'static str, fn(Axis, &Curve) -> (f64, String));

pub(crate) const FIGURES: [CurveFigure; 5] = [
    ("peak goodput", |_, curve| {
        let peak = curve.peak.map_or(f64::NAN, |peak| peak.at);
        (or_zero(peak), level(Axis::Rate, peak))
    }),
    ("knee", |axis, curve| {
        let at = curve.knee.as_ref().map_or(f64::NAN, |knee| knee.at.at);
        (or_zero(at), level(axis, at))
    }),
    ("capacity", |axis, curve| match &curve.capacity {
        None => (0.0, "-".to_owned()),
        Some(found) => (or_zero(found.at.at), capacity(axis, found)),
    }),
    ("overload", |_, curve| {
        let share = curve.overload.kept_share;
        let text = match curve.overload.shape {
            OverloadShape::Unseen => "-".to_owned(),
            _ => format!("{}, {} kept", shape(&curve.overload), show::share(share)),
        };
        (or_zero(share), text)
    }),
    ("recovery", |_, curve| {
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

fn capacity(axis: Axis, found: &Capacity) -> String {
    match found.how {
        CapacityEnd::Bracketed => level(axis, found.at.at),
        CapacityEnd::NeverMissed | CapacityEnd::ClientLimited => {
            format!("at least {}", level(axis, found.at.low))
        }
        CapacityEnd::NeverMet => "none".to_owned(),
    }
}

/// The result in words, a sentence or two for each target.
pub(crate) fn answers(report: &RampRecord) -> Vec<String> {
    let mut told = Vec::new();
    if report.verdict.state == State::Invalid {
        told.push("Measured, though not a description of the server.".to_owned());
    }
    if report.steps.is_empty() {
        told.push("No step was measured.".to_owned());
        return told;
    }
    for (label, curve) in report.labels.iter().zip(&report.curves()) {
        let name = match report.labels.len() {
            1 => "The server".to_owned(),
            _ => words::printable(label, 80),
        };
        told.push(one_answer(&name, report.axis, curve));
    }
    told
}

fn one_answer(name: &str, axis: Axis, curve: &Curve) -> String {
    let Some(peak) = &curve.peak else { return format!("{name}: no step can be used.") };
    if !axis.is_load() {
        let peak = level(Axis::Rate, peak.at);
        return format!("{name} gives at most {peak} good responses on these paths.");
    }
    let follows = match (&curve.knee, axis) {
        (Some(knee), Axis::Rate) => format!("follows the load up to {}", span(axis, &knee.at)),
        (Some(knee), _) => {
            format!("throughput grows with the users up to {}", span(axis, &knee.at))
        }
        (None, _) => "followed the load as far as it was tried".to_owned(),
    };
    let peak = level(Axis::Rate, peak.at);
    let peak =
        format!(" and gives at most {} good responses a second.", peak.trim_end_matches("/s"));
    let asked = curve.capacity.as_ref().filter(|found| !found.objectives.is_empty());
    let asked = asked.map_or_else(String::new, |found| {
        let rules: Vec<&str> = found.objectives.iter().map(|one| one.text.as_str()).collect();
        let rules = words::printable(&rules.join(", "), 200);
        format!(" Its capacity with {rules}: {}.", capacity(axis, found))
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
