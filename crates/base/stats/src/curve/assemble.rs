//! Conclusions from the steps of one target.

use super::{
    Axis, Capacity, CapacityEnd, Curve, Knee, Level, Point, Purpose, Span, Tried, failing_from,
    hysteresis, inconclusive_reason, knee, knee_by_kneedle, levels, overload, peak, power,
    predicted, threshold, usl,
};
use crate::Objective;
use crate::interval::CONFIDENCE;

/// Returns the curve of one target, from the steps upwards, the trials of a search and the
/// overload; steps downwards are compared with them, and steps after an overload are excluded.
/// Points that the client limited are excluded. `objectives`: those that [`Point::met`] answers,
/// may be empty. The caller fills in recovery times, and a capacity found by a search replaces the
/// one computed here.
pub fn curve(steps: &[(Purpose, Point)], axis: Axis, objectives: &[Objective]) -> Curve {
    if let Some(why) = inconclusive_reason(steps.iter().map(|(purpose, point)| (*purpose, point))) {
        return Curve { notes: vec![format!("{why}.")], ..Curve::default() };
    }
    let of = |wanted: &[Purpose]| -> Vec<Level> {
        levels(steps.iter().filter(|(part, _)| wanted.contains(part)).map(|(_, point)| point))
    };
    if !axis.is_load() {
        return path_effect(&of(&[Purpose::Up]), axis, steps, objectives);
    }
    let (up, down) = (of(&[Purpose::Up]), of(&[Purpose::Down]));
    let whole = of(&[Purpose::Up, Purpose::Search, Purpose::Confirm, Purpose::Overload]);
    let knee = knee(&whole, axis);
    let peak = peak(&whole);
    let usable = whole.iter().flat_map(|level| &level.points);
    // a refusal costs the server less than a response: failing steps follow another law
    let serving = usable.filter(|point| !point.fails());
    let pairs: Vec<(f64, f64)> =
        serving.map(|point| (point.concurrency, point.goodput_per_s)).collect();
    let usl = usl(&pairs).filter(|law| law.explains(&whole));
    let limited = steps.iter().filter(|(_, point)| point.client_limited).count();
    let failing = failing_from(&whole);
    let capacity = match objectives.is_empty() {
        _ if failing.is_some() => None,
        true => capacity_before_knee(&whole, knee.as_ref(), limited > 0),
        false => by_objectives(&whole, objectives, limited > 0),
    };
    // a server that handles calls in parallel exceeds the prediction for one call at a time
    let is_above = |predicted: &f64| peak.is_none_or(|peak| peak.at <= predicted * 1.005);
    let mut curve = Curve {
        peak: peak.filter(|peak| peak.at > 0.0),
        kneedle: knee_by_kneedle(&whole).filter(|_| axis == Axis::Rate && failing.is_none()),
        power_at: power(&whole).filter(|_| whole.len() > 2),
        capacity,
        overload: overload(&whole, knee.as_ref().map(|knee| knee.at.at), peak),
        usl: usl.filter(|_| failing.is_none()),
        hysteresis: hysteresis(&up, &down),
        predicted_per_s: predicted(&whole).filter(|_| failing.is_none()).filter(is_above),
        knee,
        notes: Vec::new(),
    };
    curve.notes = notes(&curve, &whole, axis, limited);
    curve.notes.extend(open_below(&curve, &whole, steps));
    curve
}

/// For paths at one load: the best level, and the highest loss or delay at which the objectives are
/// met. For a rate higher is better, so a threshold from below does not apply.
fn path_effect(
    levels: &[Level],
    axis: Axis,
    steps: &[(Purpose, Point)],
    objectives: &[Objective],
) -> Curve {
    let limited = steps.iter().any(|(_, point)| point.client_limited);
    let asked = !objectives.is_empty() && axis != Axis::LinkRate;
    let capacity = asked.then(|| by_objectives(levels, objectives, limited)).flatten();
    Curve { peak: peak(levels), capacity, ..Curve::default() }
}

/// Returns the highest level before the knee; without a knee, all levels.
fn capacity_before_knee(levels: &[Level], knee: Option<&Knee>, limited: bool) -> Option<Capacity> {
    let highest = levels.last()?.at;
    let (at, how) = match knee {
        Some(knee) => (knee.at, CapacityEnd::Bracketed),
        None => (
            Span { at: highest, low: highest, high: f64::INFINITY },
            if limited { CapacityEnd::ClientLimited } else { CapacityEnd::NeverMissed },
        ),
    };
    Some(Capacity { at, confidence: CONFIDENCE, objectives: Vec::new(), how })
}

/// Uses [`threshold`] with every step as a trial; if that gives no result, the highest level that
/// met the objectives and the lowest that missed them.
fn by_objectives(levels: &[Level], objectives: &[Objective], limited: bool) -> Option<Capacity> {
    let points = levels.iter().flat_map(|level| &level.points);
    let longest = points.clone().map(|point| point.window_s).fold(0.0, f64::max);
    let length = |point: &Point| if longest > 0.0 { point.window_s / longest } else { 1.0 };
    let tried: Vec<Tried> = points
        .filter_map(|point| {
            point.met.map(|met| Tried { level: point.level, met, length: length(point) })
        })
        .collect();
    let levels = |met: bool| tried.iter().filter(move |one| one.met == met).map(|one| one.level);
    let highest = levels(true).max_by(f64::total_cmp);
    let lowest = levels(false).min_by(f64::total_cmp);
    let (at, how) = match (threshold(&tried, CONFIDENCE), highest, lowest) {
        // loads between the highest that met them and the lowest that missed were not tested
        (Some(span), Some(highest), Some(lowest)) if highest < lowest => {
            let at = span.at.min(highest).max(span.low);
            (Span { at, ..span }, CapacityEnd::Bracketed)
        }
        (Some(span), ..) => (span, CapacityEnd::Bracketed),
        // the law knows no level 0, such as that of a path without loss
        (None, Some(highest), Some(lowest)) => {
            let high = lowest.max(highest);
            (Span { at: highest, low: highest, high }, CapacityEnd::Bracketed)
        }
        (None, Some(highest), None) => (
            Span { at: highest, low: highest, high: f64::INFINITY },
            if limited { CapacityEnd::ClientLimited } else { CapacityEnd::NeverMissed },
        ),
        (None, None, lowest) => (Span { at: 0.0, low: 0.0, high: lowest? }, CapacityEnd::NeverMet),
    };
    Some(Capacity { at, confidence: CONFIDENCE, objectives: objectives.to_vec(), how })
}

/// Returns the undetermined results, with reasons.
fn notes(curve: &Curve, levels: &[Level], axis: Axis, limited: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if limited > 0 {
        let steps = if limited == 1 { "step was" } else { "steps were" };
        notes.push(format!(
            "{limited} {steps} limited by the client, not the server, and excluded from all \
             figures here."
        ));
    }
    if let Some(lowest) = failing_from(levels) {
        notes.push(format!(
            "Calls already fail at {lowest:.0}, the lowest usable level, so failures give neither \
             a knee nor a capacity."
        ));
        return notes;
    }
    notes.extend(no_knee(curve, levels, axis));
    if curve.usl.is_none() {
        notes.push(
            "No scalability law: it needs four usable levels of concurrency, contention or coherency \
             above 0 within its interval, and no measured throughput above its maximum."
                .to_owned(),
        );
    }
    notes
}

/// States that there is no knee, with the reason.
fn no_knee(curve: &Curve, levels: &[Level], axis: Axis) -> Option<String> {
    let users = axis == Axis::Population;
    if users && levels.len() < 3 {
        return Some("A knee over users needs three usable levels or more.".to_owned());
    }
    let highest = levels.last().filter(|_| levels.len() > 1);
    let Some(highest) = highest.map(|level| level.at) else {
        return Some("A knee needs two usable levels or more.".to_owned());
    };
    curve.knee.is_none().then(|| match users {
        true => format!(
            "No knee up to {highest:.0} users is distinguishable from noise: go higher, or hold \
             each step longer."
        ),
        false => format!(
            "No knee up to {highest:.0}/s: throughput kept up with the load; go \
             higher."
        ),
    })
}

/// States that a knee has no lower end, with the reason.
fn open_below(curve: &Curve, levels: &[Level], steps: &[(Purpose, Point)]) -> Option<String> {
    curve.knee.as_ref().filter(|knee| knee.at.is_open_below())?;
    let lowest = levels.first()?.at;
    let set_aside = steps.iter().any(|(_, point)| point.client_limited && point.level < lowest);
    let why = match set_aside {
        true => "could be used: this client was late, or at its own limit",
        false => "was run: start lower",
    };
    Some(format!("The knee may lie anywhere below {lowest:.0}, because no step below {why}."))
}
