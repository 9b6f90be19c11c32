//! Behavior of the curve at its peak and beyond.

use super::{Hysteresis, Level, Overload, OverloadShape, Point, Span};
use crate::interval::t_mean;

/// Flat: at least this share of the peak is kept.
const FLAT_SHARE: f64 = 0.95;
/// Less than this share: collapse.
const COLLAPSE_SHARE: f64 = 0.5;
/// Minimum distance of an overload level past the knee, in knees, and its nominal distance.
const BEYOND_KNEES: f64 = 1.5;
const TWICE: f64 = 2.0;

/// Returns the highest mean goodput of a level, with Student's interval over its repeats.
pub fn peak(levels: &[Level]) -> Option<Span> {
    let best = best(levels)?;
    let values: Vec<f64> = best.points.iter().map(|point| point.goodput_per_s).collect();
    let (low, high) = match t_mean(&values) {
        Some(estimate) => (estimate.low.max(0.0), estimate.high),
        None => (f64::NAN, f64::NAN),
    };
    Some(Span { at: goodput(best), low, high })
}

fn best(levels: &[Level]) -> Option<&Level> {
    let known = levels.iter().filter(|level| goodput(level).is_finite());
    known.max_by(|a, b| goodput(a).total_cmp(&goodput(b)))
}

fn goodput(level: &Level) -> f64 {
    level.mean(|point| point.goodput_per_s)
}

/// Returns the goodput at twice the knee relative to the peak; the caller adds the recovery time.
/// If the goodput still rises past the knee (a knee found by failures), a level below the peak's
/// has less than the peak because less is offered, so it does not count.
pub fn overload(levels: &[Level], knee: Option<f64>, peak: Option<Span>) -> Overload {
    let unseen = Overload {
        shape: OverloadShape::Unseen,
        kept_share: f64::NAN,
        at_level: f64::NAN,
        recovery_s: f64::NAN,
    };
    let (Some(knee), Some(peak)) = (knee, peak) else { return unseen };
    let share_of_peak = |level: &Level| (goodput(level) / peak.at).clamp(0.0, 1.0);
    let best_at = best(levels).map_or(knee, |best| best.at);
    let far = |level: &&Level| {
        let rising = level.at < best_at && share_of_peak(level) < FLAT_SHARE;
        level.at >= BEYOND_KNEES * knee && !rising
    };
    let from_twice = |level: &Level| (level.at - TWICE * knee).abs();
    let nearest = levels.iter().filter(far).min_by(|a, b| from_twice(a).total_cmp(&from_twice(b)));
    let Some(level) = nearest.filter(|_| knee > 0.0 && peak.at > 0.0) else { return unseen };
    let kept_share = share_of_peak(level);
    let shape = match kept_share {
        share if share >= FLAT_SHARE => OverloadShape::Flat,
        share if share >= COLLAPSE_SHARE => OverloadShape::Sag,
        _ => OverloadShape::Collapse,
    };
    Overload { shape, kept_share, at_level: level.at, ..unseen }
}

/// Returns the largest loss of mean goodput on the way down relative to the way up; `None` without
/// a level that was held both ways.
pub fn hysteresis(up: &[Level], down: &[Level]) -> Option<Hysteresis> {
    let loss = |below: &Level| {
        let same = |above: &&Level| (above.at - below.at).abs() <= 1e-6 * below.at.abs();
        let above = up.iter().find(same)?;
        let loss_share = (1.0 - goodput(below) / goodput(above)).clamp(0.0, 1.0);
        Some(Hysteresis { loss_share, at_level: below.at })
            .filter(|found| !found.loss_share.is_nan())
    };
    down.iter().filter_map(loss).max_by(|a, b| a.loss_share.total_cmp(&b.loss_share))
}

/// Returns 1 / mean service time of the lowest level, in calls per second: the expected capacity of
/// a server that handles one call at a time. `None` if the mean number of calls in flight there was
/// above one, because the calls then waited for each other.
pub fn predicted(levels: &[Level]) -> Option<f64> {
    let lowest = levels.first()?;
    let alone = lowest.mean(|point| point.concurrency) <= 1.0;
    let per_s = 1.0 / lowest.mean(|point: &Point| point.service_mean_s);
    (alone && per_s.is_finite() && per_s > 0.0).then_some(per_s)
}
