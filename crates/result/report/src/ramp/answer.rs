//! The curves' results as text: knee, capacity, overload, recovery, and the prediction.

use super::{RampRecord, RampStepRecord};
use crate::words::{self, printable};
use stats::curve::{
    Axis, Capacity, CapacityEnd, Curve, Knee, OverloadShape, Point, Purpose, Span, Usl,
    inconclusive_reason,
};
use units::{Nanos, show};

/// Losses on the way down below this count as noise.
const LOSS_MIN: f64 = 0.05;

/// Formats a load on the axis: `261/s`, `64 users`.
pub fn load(axis: Axis, level: f64) -> String {
    match axis {
        Axis::Rate => rate(level),
        Axis::Population => words::counted(level.round().max(0.0) as u64, "user"),
        // an inserted level: two decimal places are enough
        Axis::Loss => format!("{} %", (level * 1e4).round() / 1e2),
        Axis::RoundTrip => words::span(Nanos::from_secs_f64(level)),
        Axis::LinkRate => bits(level),
    }
}

/// Formats a load on the axis; `-` without one.
pub(super) fn level(axis: Axis, at: f64) -> String {
    if at.is_finite() { load(axis, at) } else { "-".to_owned() }
}

/// Returns the unit of levels, as a column heading.
pub(super) fn axis_word(axis: Axis) -> &'static str {
    match axis {
        Axis::Rate => "rate",
        Axis::Population => "users",
        Axis::Loss => "loss",
        Axis::RoundTrip => "round trip",
        Axis::LinkRate => "link's rate",
    }
}

fn bits(per_s: f64) -> String {
    let (value, unit) = match per_s {
        v if v >= 1e9 => (v / 1e9, "Gbit/s"),
        v if v >= 1e6 => (v / 1e6, "Mbit/s"),
        v if v >= 1e3 => (v / 1e3, "kbit/s"),
        v => (v, "bit/s"),
    };
    format!("{} {unit}", (value * 1e2).round() / 1e2)
}

/// Formats an estimated or interpolated rate with three digits.
fn rate(per_s: f64) -> String {
    if !per_s.is_finite() || per_s == 0.0 {
        return show::rate(per_s);
    }
    let digits = per_s.abs().log10().floor() as i32;
    let unit = 10f64.powi((digits - 3).min(0));
    show::rate((per_s / unit).round() * unit)
}

/// Formats a capacity briefly, by its interval only: `261/s`, `64 users or more`, `below 10/s`.
pub fn capacity_description(axis: Axis, capacity: &Span) -> String {
    match capacity {
        Span { high, .. } if *high == f64::INFINITY => {
            format!("{} or more", load(axis, capacity.at))
        }
        Span { at, high, .. } if *at <= 0.0 && *high > 0.0 => {
            format!("below {}", load(axis, *high))
        }
        span => load(axis, span.at),
    }
}

/// Formats a knee briefly, by its interval only: `knee 261/s`, `no knee up to 640/s`, `knee below
/// 10/s`.
pub fn knee_description(axis: Axis, knee: &Span) -> String {
    match knee {
        Span { high, .. } if *high == f64::INFINITY => {
            format!("no knee up to {}", load(axis, knee.at))
        }
        span => format!("knee {}", capacity_description(axis, span)),
    }
}

/// Returns the results of one target, most important first: name and sentence.
pub fn answer(report: &RampRecord, row: usize) -> Vec<(&'static str, String)> {
    let Some(curve) = report.curves.get(row) else { return Vec::new() };
    let curve = &curve.curve();
    let axis = report.axis;
    let used = report.steps_of(row).any(|step| !step.client_limited);
    if report.steps_of(row).next().is_none() {
        return Vec::new();
    }
    if let Some(why) = unusable_steps(report, row) {
        return vec![("Knee", format!("unknown: {why}"))];
    }
    if !used {
        let text = "no step is usable: the client was late, or at its own limit, in all of them"
            .to_owned();
        return vec![("Knee", text)];
    }
    if let Some(step) = report.failing(row) {
        return failing(axis, step);
    }
    if !axis.is_load() {
        return path_effect(report, row, curve);
    }
    let known = [
        ("Capacity", asked_for(report, row, curve)),
        ("Knee", Some(knee(report, row, curve))),
        ("Peak", peak(curve)),
        ("Overload", overload(axis, curve)),
        ("Recovery", recovery(curve)),
        ("Way down", hysteresis(axis, curve)),
        ("Predicted", predicted(curve)),
        ("Server", super::watched::at_knee(report, row)),
    ];
    known.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

/// Returns the facts about a server that fails even at the lowest load.
fn failing(axis: Axis, step: &RampStepRecord) -> Vec<(&'static str, String)> {
    let server = printable(&step.run.server.sentence, 200);
    vec![
        ("Server", format!("{server}, at {}.", load(axis, step.level))),
        ("Knee", "unknown, because calls already fail at the lowest load.".to_owned()),
    ]
}

/// Returns why a target's steps allow no conclusion, if so.
fn unusable_steps(report: &RampRecord, row: usize) -> Option<String> {
    let points: Vec<(Purpose, Point)> =
        report.steps_of(row).map(|step| (step.purpose, step.point())).collect();
    inconclusive_reason(points.iter().map(|(purpose, point)| (*purpose, point)))
}

/// Describes the effect of a path on the good responses of a constant load, from one end to the
/// other.
fn path_effect(report: &RampRecord, row: usize, curve: &Curve) -> Vec<(&'static str, String)> {
    let axis = report.axis;
    let points: Vec<Point> = report.steps_of(row).map(RampStepRecord::point).collect();
    let levels = stats::curve::levels(&points);
    let (Some(first), Some(last)) = (levels.first(), levels.last()) else { return Vec::new() };
    let good = |level: &stats::curve::Level| level.mean(|point| point.goodput_per_s);
    let (before, after) = (good(first), good(last));
    let word = axis_word(axis);
    let of = if before > 0.0 {
        format!(", {} of it", show::share(after / before))
    } else {
        String::new()
    };
    let text = format!(
        "{} successful responses/s at {word} {}, {} at {}{of}.",
        rate(before),
        load(axis, first.at),
        rate(after),
        load(axis, last.at)
    );
    let mut known = vec![("Path", text)];
    if let Some(found) = curve.capacity.as_ref().filter(|found| !found.objectives.is_empty()) {
        let rules = rules(found);
        let text = match found.how {
            CapacityEnd::Bracketed => {
                format!("{rules} is met up to {word} {}.", with_ends(axis, &found.at, BETWEEN))
            }
            CapacityEnd::NeverMet => format!("{rules} is missed on every path."),
            CapacityEnd::NeverMissed | CapacityEnd::ClientLimited => {
                format!("{rules} is met on every path.")
            }
        };
        known.push(("Objectives", text));
    }
    known
}

/// Text before the lower end of an interval, and between its ends: for sentences, and for figures.
pub(super) const BETWEEN: (&str, &str) = ("between ", " and ");
pub(super) const TO: (&str, &str) = ("", " to ");

/// Formats an interval: `240/s to 300/s`, or only the known end; empty without an interval.
pub(super) fn ends(axis: Axis, span: &Span, (before, between): (&str, &str)) -> String {
    match span.interval() {
        Some((_, high)) if span.is_open_below() && high.is_finite() => {
            format!("at most {}; lower values were not measured", load(axis, high))
        }
        Some((low, high)) if high > low && high.is_finite() => {
            format!("{before}{}{between}{}", load(axis, low), load(axis, high))
        }
        _ => String::new(),
    }
}

/// Formats a load with its interval, if known: `250/s (240/s to 300/s)`.
pub(super) fn with_ends(axis: Axis, span: &Span, words: (&str, &str)) -> String {
    let at = level(axis, span.at);
    match ends(axis, span, words) {
        none if none.is_empty() => at,
        ends => format!("{at} ({ends})"),
    }
}

/// Describes the capacity under objectives.
fn asked_for(report: &RampRecord, row: usize, curve: &Curve) -> Option<String> {
    let axis = report.axis;
    let capacity = curve.capacity.as_ref().filter(|found| !found.objectives.is_empty())?;
    let rules = rules(capacity);
    let at = |level: f64| load(axis, level);
    Some(match capacity.how {
        CapacityEnd::Bracketed => {
            let span = &capacity.at;
            let share = format!("{:.0} %", 100.0 * capacity.confidence);
            let interval = match span.interval() {
                Some((low, high)) => {
                    format!(", {} to {} at {share} confidence", at(low), at(high))
                }
                None => String::new(),
            };
            format!("{} under {rules}{interval}.", at(span.at))
        }
        CapacityEnd::NeverMissed => format!(
            "above {}. Every tested load meets {rules}; go higher with --to.",
            at(capacity.at.at)
        ),
        CapacityEnd::NeverMet if report.is_unknown_below(row, capacity.at.high) => format!(
            "below {}, which misses {rules}. No lower step is usable.",
            at(capacity.at.high)
        ),
        CapacityEnd::NeverMet => {
            format!("none. Even the lowest tested load, {}, misses {rules}.", at(capacity.at.high))
        }
        CapacityEnd::ClientLimited => format!(
            "{} or more under {rules}. Above that, this client was late or at its own limit; \
             give it more cores, or several machines.",
            at(capacity.at.at)
        ),
    })
}

/// Formats the objectives of the ramp.
pub(super) fn rules(capacity: &Capacity) -> String {
    let texts: Vec<String> =
        capacity.objectives.iter().map(|objective| printable(&objective.text, 60)).collect();
    texts.join(", ")
}

fn knee(report: &RampRecord, row: usize, curve: &Curve) -> String {
    let axis = report.axis;
    let follows = match axis {
        Axis::Rate => "Throughput keeps up with the offered load to",
        _ => "Throughput grows with the number of users to",
    };
    match &curve.knee {
        Some(Knee { at, rule }) => {
            format!("{}. {follows} there; rule: {rule}.", with_ends(axis, at, BETWEEN))
        }
        None => {
            let steps = report.steps_of(row);
            let usable =
                steps.filter(|step| !step.client_limited && step.purpose != Purpose::Recovery);
            let highest = usable.map(|step| step.level).fold(0.0, f64::max);
            format!("none was seen up to {}, the highest usable step.", load(axis, highest))
        }
    }
}

/// Returns the nominal and the usable capacity.
fn peak(curve: &Curve) -> Option<String> {
    let peak = curve.peak.as_ref()?;
    let interval = match peak.interval() {
        Some((low, high)) if high > low => format!(" ({} to {})", rate(low), rate(high)),
        _ => String::new(),
    };
    Some(format!("{} successful responses/s{interval}.", rate(peak.at).trim_end_matches("/s")))
}

fn overload(axis: Axis, curve: &Curve) -> Option<String> {
    let overload = &curve.overload;
    let kept = show::share(overload.kept_share);
    let at = load(axis, overload.at_level);
    let word = match overload.shape {
        OverloadShape::Flat => "stays flat",
        OverloadShape::Sag => "sags",
        OverloadShape::Collapse => "collapses",
        OverloadShape::Unseen => return None,
    };
    Some(format!("throughput {word}; {kept} of the peak is kept at {at}."))
}

fn recovery(curve: &Curve) -> Option<String> {
    let recovery_s = curve.overload.recovery_s;
    // without an overload there is no recovery
    if recovery_s.is_nan() || curve.overload.shape == OverloadShape::Unseen {
        return None;
    }
    Some(match recovery_s.is_finite() {
        true => format!(
            "{} after the end of the overload it responded as before.",
            words::seconds(recovery_s)
        ),
        false => "it did not respond as before while it was observed.".to_owned(),
    })
}

fn hysteresis(axis: Axis, curve: &Curve) -> Option<String> {
    let found = curve.hysteresis?;
    Some(match found.loss_share >= LOSS_MIN {
        true => format!(
            "{} less goodput at {} than when the load was rising.",
            show::share(found.loss_share),
            load(axis, found.at_level)
        ),
        false => "as when the load was rising.".to_owned(),
    })
}

fn predicted(curve: &Curve) -> Option<String> {
    let predicted = curve.predicted_per_s?;
    let measured = curve.peak?.at;
    Some(format!(
        "one call at a time takes {}, which makes {}; measured {} ({}).",
        words::seconds(1.0 / predicted),
        rate(predicted),
        rate(measured),
        show::share(measured / predicted)
    ))
}

/// Returns the facts about the fitted curves.
pub(super) fn law(axis: Axis, curve: &Curve) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(found) = &curve.kneedle {
        let rule = found.rule.trim_start_matches("Kneedle, ");
        facts.push(("Kneedle", format!("{}; {rule}", with_ends(axis, &found.at, TO))));
    }
    if let Some(at) = curve.power_at {
        let text = format!("best ratio of throughput to response time at {}", load(axis, at));
        facts.push(("Power", text));
    }
    facts.extend(curve.usl.as_ref().map(|law| ("Scalability", scalability(law))));
    facts
}

/// Formats the figures of the scalability law in one line.
fn scalability(law: &Usl) -> String {
    let with = |span: &Span| {
        let interval = span.interval().map_or_else(String::new, |(low, high)| {
            format!(" ({} to {})", words::figure(low), words::figure(high))
        });
        format!("{}{interval}", words::figure(span.at))
    };
    let most = show::rate(law.x_max.round());
    let most = match law.n_max.is_finite() {
        true => {
            format!("largest throughput {most} at {} concurrent calls", words::figure(law.n_max))
        }
        false => format!("no more than {most}"),
    };
    format!("contention {}, coherency {}; {most}", with(&law.a), with(&law.b))
}

/// Describes the steps briefly: `12 steps, rates from 100/s to 350/s, 5 s each`.
pub fn steps_sentence(report: &RampRecord) -> String {
    if report.steps.is_empty() {
        return "none was run".to_owned();
    }
    let levels = report.steps.iter().map(|step| step.level);
    let low = levels.clone().fold(f64::INFINITY, f64::min);
    let high = levels.fold(0.0, f64::max);
    let count = words::counted(report.steps.len() as u64, "step");
    let range = format!("{} to {}", load(report.axis, low), load(report.axis, high));
    let windows = report.steps.iter().map(|step| Nanos::from_secs_f64(step.run.duration_s));
    let (short, long) = (windows.clone().min(), windows.max());
    let held = match (short, long) {
        (Some(short), Some(long)) if short == long => format!(", {} each", words::span(long)),
        (Some(_), Some(long)) => format!(", at most {} each", words::span(long)),
        _ => String::new(),
    };
    format!("{count}, {range}{held}; the server was idle between them")
}
