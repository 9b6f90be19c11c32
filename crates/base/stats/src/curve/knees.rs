//! Finds the load from which throughput falls short, by a rule that is printed with it.

use super::{Axis, Form, Knee, Point, Span, failing_from, kneedle};
use units::{Purpose, Seed, Stream};

/// Share of the offered load below which throughput falls short.
const FOLLOWS_SHARE: f64 = 0.99;
/// Number of resamples for the interval of a knee.
const RESAMPLES: usize = 1_000;

/// The usable points at one level: its repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    pub at: f64,
    /// Points; at least one.
    pub points: Vec<Point>,
}

impl Level {
    /// Returns the mean of a figure over the repeats.
    pub fn mean(&self, figure: impl Fn(&Point) -> f64) -> f64 {
        self.points.iter().map(figure).sum::<f64>() / self.points.len() as f64
    }
}

/// Returns the points by level, ascending, without those that the client limited. Levels that
/// differ by less than a millionth are one.
pub fn levels<'a>(points: impl IntoIterator<Item = &'a Point>) -> Vec<Level> {
    let usable = |point: &&Point| !point.client_limited && point.level.is_finite();
    let mut sorted: Vec<Point> = points.into_iter().filter(usable).copied().collect();
    sorted.sort_by(|a, b| a.level.total_cmp(&b.level));
    let mut levels: Vec<Level> = Vec::new();
    for point in sorted {
        match levels.last_mut() {
            Some(level) if point.level - level.at <= 1e-6 * level.at.abs() => {
                level.points.push(point);
            }
            _ => levels.push(Level { at: point.level, points: vec![point] }),
        }
    }
    levels
}

/// Returns the knee; `None` if no knee can be distinguished from noise.
///
/// Throughput counts successful responses. Over offered rates the knee is the first level at which
/// successful/offered is below 0.99 there and at the next level (or at the highest one tried), or
/// at which more calls fail than are allowed; `at` lies where the throughput of that level meets
/// the diagonal, between the level before and it, or at the level before, if calls fail. A server
/// that fails at the lowest level has no knee. The interval runs from 0.99 of the last level that
/// kept up to the first that falls short by more than chance explains: twice the standard error of
/// a Poisson count. A bootstrap over the repeats widens it if every level has two or more.
///
/// Over populations the knee is where the asymptotes of throughput meet: N* = X_max · N₁ / X(N₁),
/// with N₁ the lowest population and X_max the highest throughput (Denning & Buzen, "The
/// Operational Analysis of Queueing Network Models", 1978). Below N* users hardly wait for one
/// another; above it they add no throughput.
pub fn knee(levels: &[Level], axis: Axis) -> Option<Knee> {
    if failing_from(levels).is_some() {
        return None;
    }
    match axis {
        Axis::Rate => knee_of_rates(levels),
        Axis::Population => knee_of_users(levels),
        Axis::Loss | Axis::RoundTrip | Axis::LinkRate => None,
    }
}

fn knee_of_rates(levels: &[Level]) -> Option<Knee> {
    let means = |level: &Level| Mean {
        level: level.at,
        offered: level.mean(|point| point.offered_per_s),
        achieved: level.mean(Point::served_per_s),
        fails: level.fails(),
        window_s: level.mean(|point| point.window_s),
        measured_s: level.points.iter().map(|point| point.window_s).sum(),
    };
    let base_s = levels.first()?.mean(|point| point.response_mean_s);
    let found: Vec<Mean> = levels.iter().map(means).collect();
    let (at, mut low, mut high) = throughput_shortfall(&found, base_s)?;
    let again = resampled(levels, |levels| {
        throughput_shortfall(&levels.iter().map(means).collect::<Vec<_>>(), base_s)
    });
    if let Some((lows, highs)) = again {
        low = low.min(lows);
        high = high.max(highs);
    }
    let rule = match levels.iter().find_map(|level| level.points[0].failures_max) {
        None => {
            "achieved/offered below 0.99 at two levels in a row or at the highest, or failures \
                 above 0.1 %"
                .to_owned()
        }
        Some(most) => format!(
            "achieved/offered below 0.99 at two levels in a row or at the highest, or failures above {}",
            units::show::share(most)
        ),
    };
    Some(Knee { at: Span { at, low, high }, rule })
}

/// Returns the population at which users begin to wait for one another. `None` if throughput still
/// grows with the users, or for fewer than three levels.
fn knee_of_users(levels: &[Level]) -> Option<Knee> {
    let (first, top) = (levels.first()?, levels.last()?);
    if levels.len() < 3 {
        return None;
    }
    let rate = |level: &Level| level.mean(|point| point.goodput_per_s);
    let plateau = levels.iter().map(rate).fold(0.0, f64::max);
    let (base, at) = (rate(first), plateau * first.at / rate(first));
    if !(base > 0.0 && at.is_finite()) {
        return None;
    }
    // levels well beyond are on the plateau: their scatter is noise, regardless of its cause
    let counted = counting_noise(first).hypot(counting_noise(top));
    let from = if at <= first.at * (1.0 + 2.0 * counted) { levels[1].at } else { BEYOND * at };
    let beyond: Vec<f64> = levels.iter().filter(|level| level.at >= from).map(rate).collect();
    let noise = counting_noise(first).hypot(scatter(&beyond).max(counting_noise(top)));
    let (low, high) = (at * (1.0 - 2.0 * noise), at * (1.0 + 2.0 * noise));
    // the plateau has been seen only if levels lie beyond the upper end of the knee
    if beyond.is_empty() || high >= top.at {
        return None;
    }
    // users are whole: the knee is between two neighboring numbers of them
    let (low, high) = (low.floor().max(1.0), high.ceil());
    let open_below = at <= first.at * (1.0 + 2.0 * noise) && first.at > 1.0;
    let low = if open_below { 0.0 } else { low };
    let rule = "where throughput stops growing with the users";
    Some(Knee { at: Span { at: at.clamp(low, high), low, high }, rule: rule.to_owned() })
}

/// Multiple of the knee above which throughput counts as flat.
const BEYOND: f64 = 1.5;

/// Returns the relative standard error of a level's throughput, as if its completions were a
/// Poisson process; 1 if the length of its steps is unknown.
fn counting_noise(level: &Level) -> f64 {
    let count: f64 = level.points.iter().map(|point| point.goodput_per_s * point.window_s).sum();
    if count > 0.0 { count.sqrt().recip() } else { 1.0 }
}

/// Returns the standard deviation over mean; 0 below two values.
fn scatter(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / count;
    let sum: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (sum / (count - 1.0)).sqrt() / mean
}

/// Returns the knee of throughput over the level by [`kneedle`], with S = 1. The interval runs from
/// the level below to the level above, widened as in [`knee`]. `None` for fewer than five levels.
pub fn knee_by_kneedle(levels: &[Level]) -> Option<Knee> {
    if levels.len() < 5 {
        return None;
    }
    let x: Vec<f64> = levels.iter().map(|level| level.at).collect();
    let found = |levels: &[Level]| -> Option<(f64, f64, f64)> {
        let y: Vec<f64> =
            levels.iter().map(|level| level.mean(|point| point.goodput_per_s)).collect();
        let at = kneedle(&x, &y, Form::ConcaveIncreasing, 1.0)?;
        let index = x.iter().position(|level| *level >= at)?;
        Some((at, x[index.saturating_sub(1)], x[(index + 1).min(x.len() - 1)]))
    };
    let (at, mut low, mut high) = found(levels)?;
    if let Some((lows, highs)) = resampled(levels, found) {
        low = low.min(lows);
        high = high.max(highs);
    }
    Some(Knee { at: Span { at, low, high }, rule: "Kneedle, S = 1, of throughput".to_owned() })
}

/// Returns the level of the largest power, throughput over mean response time (Kleinrock 1979):
/// half of the capacity of an M/M/1 server. Failing levels are excluded. `None` without a response
/// time.
pub fn power(levels: &[Level]) -> Option<f64> {
    let of = |level: &Level| {
        level.mean(|point| point.goodput_per_s) / level.mean(|point| point.response_mean_s)
    };
    let serving = levels.iter().filter(|level| !level.fails());
    let finite = serving.map(|level| (level.at, of(level))).filter(|(_, p)| p.is_finite());
    finite.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
}

struct Mean {
    level: f64,
    offered: f64,
    achieved: f64,
    fails: bool,
    /// Window of one step, and of all at this level.
    window_s: f64,
    measured_s: f64,
}

/// Returns the range from 0.99 of the level before (or 0) to the first level that falls short by
/// more than chance; between them, the point at which the insufficient throughput meets the
/// diagonal.
fn throughput_shortfall(found: &[Mean], base_s: f64) -> Option<(f64, f64, f64)> {
    let shortfall = |mean: &Mean| {
        // calls that a quiet server would still have had in flight when the window closed
        let under_way = match mean.window_s > 0.0 && base_s > 0.0 {
            true => (base_s / mean.window_s).min(0.5),
            false => 0.0,
        };
        (FOLLOWS_SHARE - under_way) * mean.offered - mean.achieved
    };
    let short = |mean: &Mean| shortfall(mean) > 0.0;
    let by_chance = |mean: &Mean| match mean.measured_s > 0.0 {
        true => 2.0 * (mean.offered / mean.measured_s).sqrt(),
        false => 0.0,
    };
    let past = |index: usize| {
        let next_short = found.get(index + 1).is_none_or(&short);
        found[index].fails || (short(&found[index]) && next_short)
    };
    if found.len() < 2 {
        return None;
    }
    let first = (0..found.len()).find(|index| past(*index))?;
    let decisive =
        found[first..].iter().find(|mean| mean.fails || shortfall(mean) > by_chance(mean))?;
    let (high, end) = (decisive.level, found[first].level);
    let below = if first > 0 { found[first - 1].level } else { 0.0 };
    // if calls fail, the load at which that began is unknown
    let at = if found[first].fails { below } else { found[first].achieved.clamp(below, end) };
    // keeping up to within a hundredth is the precision of the rule
    Some((at, FOLLOWS_SHARE * below, high))
}

/// Returns the 2.5 % quantile of the lower ends and the 97.5 % quantile of the upper ends over
/// resampled repeats; `None` if a level has a single repeat or most resamples have no knee.
fn resampled(
    levels: &[Level],
    find: impl Fn(&[Level]) -> Option<(f64, f64, f64)>,
) -> Option<(f64, f64)> {
    if levels.iter().any(|level| level.points.len() < 2) {
        return None;
    }
    let mut stream = Seed(1).stream(Purpose::Bootstrap, 0);
    let mut ends: Vec<(f64, f64)> = Vec::new();
    for _ in 0..RESAMPLES {
        let drawn: Vec<Level> =
            levels.iter().map(|level| resampled_once(level, &mut stream)).collect();
        ends.extend(find(&drawn).map(|(_, low, high)| (low, high)));
    }
    if ends.len() * 2 < RESAMPLES {
        return None;
    }
    let cut = ends.len() / 40;
    let mut lows: Vec<f64> = ends.iter().map(|end| end.0).collect();
    let mut highs: Vec<f64> = ends.iter().map(|end| end.1).collect();
    lows.sort_by(f64::total_cmp);
    highs.sort_by(f64::total_cmp);
    Some((lows[cut], highs[highs.len() - 1 - cut]))
}

fn resampled_once(level: &Level, stream: &mut Stream) -> Level {
    let count = level.points.len() as u64;
    let one = |_: &Point| level.points[stream.below(count) as usize];
    Level { at: level.at, points: level.points.iter().map(one).collect() }
}
