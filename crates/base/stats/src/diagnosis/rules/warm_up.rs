use super::super::shape::{mean, median, ratio, variation};
use super::super::{Confidence, Rule, Sign, View};
use crate::steady::mann_kendall;
use units::{Nanos, show};

const ROWS_MIN: usize = 8;
const GAIN_MIN: f64 = 1.3;
const SPREADS_MIN: f64 = 4.0;
const COST_MIN: f64 = 0.02;
/// Maximum change of the settled rows, from their first to their second half.
const CHANGE_MAX: f64 = 0.15;
/// Largest p-value of the trend that counts as a decay.
const DECAY_P_MAX: f64 = 0.01;
/// Maximum share of the rows that a decay may take; the rest must be settled.
const DECAY_SHARE_MAX: f64 = 2.0 / 3.0;
/// Minimum number of rows of a decay: a single one is a level.
const DECAY_ROWS_MIN: usize = 2;

pub(crate) const RULE: Rule = Rule {
    id: "warm-up",
    title: "The server is slower at the beginning",
    reasoning: "Empty caches, interpreted code, pools that fill and backend connections that are \
        not yet open make the first calls more expensive; then the times settle at a lower level. \
        If two levels explain the series best, it is cut between them; if it falls gradually, it \
        is cut at the row from which the best non-increasing line is level. The first part must be \
        clearly above the second, and the second must be stable. A cut in the second half of the \
        run is not a warm-up.",
    source: "White, Cobb, Spratt, WSC 2000 (MSER-5); Barrett et al., OOPSLA 2017 (virtual machine \
        warm-up blows hot and cold); Ayer et al., Annals of Mathematical Statistics 26, 1955 \
        (isotonic regression).",
    thresholds: &[
        (8.0, "rows of the series, at least"),
        (GAIN_MIN, "ratio of the first level to the second, at least"),
        (SPREADS_MIN, "standard deviations of the settled rows between the two, at least"),
        (COST_MIN, "share of the whole run's mean that the slow beginning adds, at least"),
        (
            CHANGE_MAX,
            "change within the settled rows, from their first to their second half, at most",
        ),
        (DECAY_P_MAX, "of a gradual fall: p-value of the Mann-Kendall test, at most"),
        (DECAY_SHARE_MAX, "of a gradual fall: share of the rows that it takes, at most"),
    ],
    advice: "Exclude the start with --warmup to measure the steady state; otherwise warm the \
        server up before it gets traffic.",
    // connections opened early and late seem to reach servers of different speed
    excludes: &["drift", "serial-handler", "worker-pool", "cpu-contention", "mixed-backends"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let rows = view.rows.iter().filter(|row| row.p50 > Nanos::ZERO);
    let times: Vec<f64> = rows.map(|row| row.p50.as_secs_f64()).collect();
    if times.len() < ROWS_MIN || view.evidence.ramped {
        return None;
    }
    let row_s = view.rows.first().map_or(1.0, |row| row.span_s);
    let duration = |seconds| show::duration(Nanos::from_secs_f64(seconds));
    if let Some(cut) = levels(&times) {
        let (slow, settled) = times.split_at(cut);
        let text = format!(
            "the median response time was {} for the first {}, then settled at {}",
            duration(mean(slow)),
            duration(cut as f64 * row_s),
            duration(mean(settled))
        );
        return Sign::new(Confidence::Likely, text);
    }
    let cut = decay(&times)?;
    let text = format!(
        "the median response time fell from {} to {} over the first {}, then stayed there",
        duration(times[0]),
        duration(mean(&times[cut..])),
        duration(cut as f64 * row_s)
    );
    Sign::new(Confidence::Likely, text)
}

/// Returns the number of rows of the higher of two levels, where two levels explain the rows.
fn levels(times: &[f64]) -> Option<usize> {
    warm_up_cut(times).filter(|cut| settles(times, *cut))
}

/// Returns the cut between two levels that explain the rows best, if it is in the first half.
fn warm_up_cut(times: &[f64]) -> Option<usize> {
    let cuts = 1..times.len();
    let best =
        cuts.min_by(|a, b| squared_distance(times, *a).total_cmp(&squared_distance(times, *b)))?;
    (best * 2 <= times.len()).then_some(best)
}

/// Returns the number of rows of a gradual fall, after which the rows are settled. See decision 23.
fn decay(times: &[f64]) -> Option<usize> {
    // most of the fall is early: a step late in the run is not a warm-up
    warm_up_cut(times)?;
    let trend = mann_kendall(times)?;
    if trend.score >= 0 || trend.p_value > DECAY_P_MAX {
        return None;
    }
    let line = never_rising(times);
    let tail = &times[times.len() - times.len() / 3..];
    let level = median(tail);
    let settled = level * (1.0 + CHANGE_MAX) + 2.0 * variation(tail) * level;
    let cut = line.iter().position(|value| *value <= settled)?;
    let soon = cut as f64 <= DECAY_SHARE_MAX * times.len() as f64;
    (cut >= DECAY_ROWS_MIN && soon && settles(times, cut)).then_some(cut)
}

/// Returns whether the rows from `cut` on are clearly below those before, by a relevant amount, and
/// stable.
fn settles(times: &[f64], cut: usize) -> bool {
    let (slow, settled) = times.split_at(cut);
    let (before, after) = (mean(slow), mean(settled));
    let spread = variation(settled) * after;
    let (early, late) = settled.split_at(settled.len() / 2);
    let change = (ratio(mean(late), mean(early)) - 1.0).abs();
    let cost = (before / after - 1.0) * cut as f64 / times.len() as f64;
    before >= GAIN_MIN * after
        && before - after >= SPREADS_MIN * spread
        && change <= CHANGE_MAX
        && cost >= COST_MIN
}

/// Returns the non-increasing values closest to these, by least squares: rising neighbors are
/// pooled until none rise.
fn never_rising(values: &[f64]) -> Vec<f64> {
    // (sum, values)
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for value in values {
        let mut pool = (*value, 1);
        while let Some((sum, count)) = pools.last().copied()
            && sum / count as f64 <= pool.0 / pool.1 as f64
        {
            pool = (pool.0 + sum, pool.1 + count);
            pools.pop();
        }
        pools.push(pool);
    }
    let level = |(sum, count): &(f64, usize)| std::iter::repeat_n(sum / *count as f64, *count);
    pools.iter().flat_map(level).collect()
}

/// Returns the squared distance of the values from the means of their two parts.
fn squared_distance(values: &[f64], cut: usize) -> f64 {
    let part = |part: &[f64]| {
        let mean = mean(part);
        part.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    part(&values[..cut]) + part(&values[cut..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Purpose, Seed, Stream};

    const SEEDS: u64 = 500;

    /// Time of a row without noise.
    type Level = fn(usize) -> f64;

    /// Returns rows in milliseconds, each off by a few per cent.
    fn rows(seed: u64, level: impl Fn(usize) -> f64, noise: f64) -> Vec<f64> {
        let mut random: Stream = Seed(seed).stream(Purpose::Simulation, 5);
        // twelve of a kind, less their mean, are near to a normal law
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        (0..20).map(|at| (level(at) * (1.0 + noise * normal())).max(0.01)).collect()
    }

    fn finding(level: impl Fn(usize) -> f64 + Copy, noise: f64) -> u64 {
        let found = |seed: &u64| {
            let rows = rows(*seed, level, noise);
            levels(&rows).or_else(|| decay(&rows)).is_some()
        };
        (0..SEEDS).filter(found).count() as u64
    }

    #[test]
    fn a_nonincreasing_fit_has_known_values() {
        assert_eq!(never_rising(&[5.0, 3.0, 4.0, 1.0]), [5.0, 3.5, 3.5, 1.0]);
        assert_eq!(never_rising(&[1.0, 2.0, 3.0]), [2.0, 2.0, 2.0]);
        assert!(never_rising(&[]).is_empty());
    }

    #[test]
    fn a_gradual_fall_is_found_where_it_ends() {
        // 60 ms to 2 ms over half of the rows
        let straight = |at: usize| if at < 10 { 60.0 - 5.8 * at as f64 } else { 2.0 };
        let curved = |at: usize| 2.0 + 58.0 * (-(at as f64) / 2.0).exp();
        let slight = |at: usize| 10.0 + 10.0 * (1.0 - at as f64 / 8.0).max(0.0);
        let seen = [finding(straight, 0.05), finding(curved, 0.05), finding(slight, 0.05)];
        assert!(seen.iter().all(|count| *count >= SEEDS * 99 / 100), "{seen:?}");
        let ends = decay(&rows(1, straight, 0.05));
        assert_eq!(ends, Some(10));
        assert_eq!(levels(&rows(1, straight, 0.05)), None, "two levels are not enough");
    }

    #[test]
    fn noise_is_rarely_reported_as_warm_up() {
        let even = |_| 10.0;
        let upward = |at: usize| 10.0 + 0.3 * at as f64;
        let step_up = |at: usize| if at < 9 { 10.0 } else { 25.0 };
        let late_step = |at: usize| if at < 12 { 25.0 } else { 10.0 };
        let ongoing = |at: usize| 60.0 - 2.5 * at as f64;
        let kinds: [(&str, Level); 5] = [
            ("even", even),
            ("upward", upward),
            ("step up", step_up),
            ("late step", late_step),
            ("goes on falling", ongoing),
        ];
        for (name, level) in kinds {
            let seen = [0.02, 0.1, 0.3].map(|noise| finding(level, noise));
            // rows that are off by a third hide where a step lies, and whether a fall has ended
            let most = [SEEDS / 100, SEEDS / 100, SEEDS / 20];
            assert!(seen.iter().zip(most).all(|(count, most)| *count <= most), "{name}: {seen:?}");
        }
    }
}
