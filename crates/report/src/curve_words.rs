//! What the steps of a target say, in words: shared by every output of a ramp.

use crate::ramp::RampReport;
use crate::words;
use stats::State;
use stats::curve::{Axis, Capacity, CapacityEnd, Curve, Overload, OverloadShape, Span, Usl};
use units::show;

/// A level with its unit: `1,200/s`, `64 users`.
pub(crate) fn level(axis: Axis, at: f64) -> String {
    match axis {
        _ if !at.is_finite() => "-".to_owned(),
        Axis::Rate => show::rate(at),
        Axis::Population => {
            let number = match at {
                ..100.0 if at.fract().abs() > 0.05 => format!("{at:.1}"),
                _ => show::count(at.round().max(0.0) as u64),
            };
            format!("{number} {}", if number == "1" { "user" } else { "users" })
        }
    }
}

/// A figure and its interval, where there is one: `1,200/s (1,150/s to 1,260/s)`.
pub(crate) fn span(axis: Axis, span: &Span) -> String {
    let at = level(axis, span.at);
    match span.interval() {
        Some((low, high)) if high.is_finite() => {
            format!("{at} ({} to {})", level(axis, low), level(axis, high))
        }
        Some((low, _)) => format!("{at} ({} or more)", level(axis, low)),
        None => at,
    }
}

/// `412.3/s (405/s to 420/s) at p99<50ms`.
pub(crate) fn capacity(axis: Axis, capacity: &Capacity) -> String {
    let at = &capacity.at;
    let objectives: Vec<&str> = capacity.objectives.iter().map(|one| one.text.as_str()).collect();
    let under = match objectives.is_empty() {
        true => String::new(),
        false => format!(" with {}", words::printable(&objectives.join(", "), 200)),
    };
    match capacity.how {
        CapacityEnd::Bracketed => format!("{}{under}", span(axis, at)),
        CapacityEnd::NeverMissed => {
            format!("at least {}{under}: no load tried was too much", level(axis, at.low))
        }
        CapacityEnd::NeverMet => {
            format!("none{under}: not even {} was kept", level(axis, at.high))
        }
        CapacityEnd::ClientLimited => {
            format!("at least {}{under}: the client's own limit came first", level(axis, at.low))
        }
    }
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

/// `flat: 98.2 % of the peak is kept at 800/s; recovered within 1.20 s`; `None` when nothing was seen.
pub(crate) fn overload(axis: Axis, overload: &Overload) -> Option<String> {
    let mut parts = Vec::new();
    if overload.shape != OverloadShape::Unseen {
        parts.push(format!(
            "{}: {} of the peak is kept at {}",
            shape(overload),
            show::share(overload.kept_share),
            level(axis, overload.at_level)
        ));
    }
    parts.extend(recovery(overload));
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn recovery(overload: &Overload) -> Option<String> {
    match overload.recovery_s {
        s if s.is_nan() => None,
        s if s.is_infinite() => Some("it did not recover within the time it was given".to_owned()),
        s => Some(format!("recovered within {}", words::seconds(s))),
    }
}

/// The scalability law's figures in one line.
pub(crate) fn usl(usl: &Usl) -> String {
    let part = |name: &str, span: &Span| {
        let interval = span.interval().map_or_else(String::new, |(low, high)| {
            format!(" ({} to {})", words::figure(low), words::figure(high))
        });
        format!("{name} {}{interval}", words::figure(span.at))
    };
    let most = match usl.n_max.is_finite() {
        true => format!(
            "most at {} in flight: {}",
            words::figure(usl.n_max.round()),
            show::rate(usl.x_max)
        ),
        false => format!("tends to {}", show::rate(usl.x_max)),
    };
    format!(
        "one in flight {}, {}, {}; {most}",
        show::rate(usl.g.at),
        part("contention", &usl.a),
        part("coherency", &usl.b)
    )
}

/// The figures of one target: a label and a sentence each.
pub(crate) fn facts(axis: Axis, curve: &Curve) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let peak = curve.peak.as_ref().map(|peak| span(Axis::Rate, peak));
    facts.push(("Peak goodput", peak.unwrap_or_else(|| "-".to_owned())));
    facts.push((
        "Knee",
        match &curve.knee {
            Some(knee) => format!("{}, by: {}", span(axis, &knee.at), knee.rule),
            None => "not reached: throughput followed the load at every step used".to_owned(),
        },
    ));
    let by_form = curve.kneedle.as_ref();
    facts
        .extend(by_form.map(|knee| ("by its form", format!("{} (Kneedle)", span(axis, &knee.at)))));
    let capacity = curve.capacity.as_ref().map(|found| capacity(axis, found));
    facts.extend(capacity.map(|text| ("Capacity", text)));
    facts.extend(overload(axis, &curve.overload).map(|text| ("Overload", text)));
    facts.extend(curve.hysteresis.map(|found| {
        let (loss, at) = (show::share(found.loss_share), level(axis, found.at_level));
        ("Way down", format!("at most {loss} less goodput than on the way up, at {at}"))
    }));
    facts.extend(curve.predicted_per_s.map(|rate| ("One at a time", predicted(rate, curve))));
    facts.extend(curve.power_at.map(|at| {
        ("Most power", format!("{}: throughput over response time (Kleinrock)", level(axis, at)))
    }));
    facts.extend(curve.usl.as_ref().map(|fit| ("Scalability", usl(fit))));
    facts
}

/// What the time of a single call promises, against what was reached.
fn predicted(rate: f64, curve: &Curve) -> String {
    let promised = format!("one call at a time would make {}", show::rate(rate));
    match &curve.peak {
        Some(peak) if rate > 0.0 => {
            format!("{promised}; {} of it was reached", show::share(peak.at / rate))
        }
        _ => promised,
    }
}

/// Name of a figure of a curve, and how it is had: as a number to sort by, and as text.
pub(crate) type CurveFigure = (&'static str, fn(Axis, &Curve) -> (f64, String));

pub(crate) const FIGURES: [CurveFigure; 5] = [
    ("peak goodput", |_, curve| {
        let peak = curve.peak.map_or(f64::NAN, |peak| peak.at);
        (or_zero(peak), show::rate(peak))
    }),
    ("knee", |axis, curve| {
        let at = curve.knee.as_ref().map_or(f64::NAN, |knee| knee.at.at);
        (or_zero(at), level(axis, at))
    }),
    ("capacity", |axis, curve| match &curve.capacity {
        None => (0.0, "-".to_owned()),
        Some(found) => {
            let text = match found.how {
                CapacityEnd::Bracketed => level(axis, found.at.at),
                CapacityEnd::NeverMissed | CapacityEnd::ClientLimited => {
                    format!("at least {}", level(axis, found.at.low))
                }
                CapacityEnd::NeverMet => "none".to_owned(),
            };
            (or_zero(found.at.at), text)
        }
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

/// The result in words, a sentence or two for each target.
pub(crate) fn answers(report: &RampReport) -> Vec<String> {
    let mut told = Vec::new();
    if report.verdict.state == State::Invalid {
        told.push("Measured, though not a description of the server.".to_owned());
    }
    for (label, curve) in report.labels.iter().zip(&report.curves) {
        let name = match report.labels.len() {
            1 => "The server".to_owned(),
            _ => words::printable(label, 80),
        };
        told.push(one_answer(&name, report.axis, curve));
    }
    if report.steps.is_empty() {
        told.push("No step was measured.".to_owned());
    }
    told
}

fn one_answer(name: &str, axis: Axis, curve: &Curve) -> String {
    let follows = match &curve.knee {
        Some(knee) => format!("{name} follows the load up to {}", span(axis, &knee.at)),
        None => format!("{name} followed the load as far as it was tried"),
    };
    let peak = curve.peak.as_ref().map_or_else(String::new, |peak| {
        format!(" and gives at most {} good answers a second", bare_rate(peak.at))
    });
    let capacity = match &curve.capacity {
        Some(found) if !found.objectives.is_empty() => {
            format!(" Its capacity is {}.", capacity(axis, found))
        }
        _ => String::new(),
    };
    let past = match curve.overload.shape {
        OverloadShape::Unseen => String::new(),
        OverloadShape::Flat => " Beyond, throughput stays.".to_owned(),
        OverloadShape::Sag => {
            format!(" Beyond, throughput sags to {} of its peak.", kept(&curve.overload))
        }
        OverloadShape::Collapse => {
            format!(" Beyond, throughput collapses to {} of its peak.", kept(&curve.overload))
        }
    };
    format!("{follows}{peak}.{capacity}{past}")
}

fn kept(overload: &Overload) -> String {
    show::share(overload.kept_share)
}

fn bare_rate(rate: f64) -> String {
    show::rate(rate).trim_end_matches("/s").to_owned()
}
