use super::super::shape::{mean, variation};
use super::super::{Confidence, Rule, Sign, View};
use units::{Nanos, show};

const ROWS_MIN: usize = 8;
const GAIN_MIN: f64 = 1.3;
const SPREADS_MIN: f64 = 4.0;
const COST_MIN: f64 = 0.02;

pub(crate) const RULE: Rule = Rule {
    id: "warm-up",
    title: "The server is slower at the beginning",
    reasoning: "Empty caches, code that is still interpreted, pools that fill and connections to \
                backends that are yet to be made cost the first calls more; then the times settle \
                at a lower level and stay there. The series is cut where two levels explain it \
                best; the first must be clearly above the second, and the second must not go on \
                changing.",
    source: "White, Cobb, Spratt, WSC 2000 (MSER-5); Barrett et al., OOPSLA 2017 (virtual machine \
             warm-up blows hot and cold).",
    thresholds: &[
        (8.0, "rows of the series, at least"),
        (GAIN_MIN, "times that the first level is the second, at least"),
        (SPREADS_MIN, "standard deviations of the settled rows between the two, at least"),
        (COST_MIN, "share of the whole run's mean that the slow beginning adds, at least"),
    ],
    advice: "Leave the beginning out with --warmup when the settled state is what is asked for; warm \
             the server before it gets traffic when the beginning is.",
    excludes: &["drift", "serial-handler", "worker-pool", "cpu-contention"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let rows = view.rows.iter().filter(|row| row.p50 > Nanos::ZERO);
    let times: Vec<f64> = rows.map(|row| row.p50.as_secs_f64()).collect();
    if times.len() < ROWS_MIN || view.evidence.ramped {
        return None;
    }
    let cut =
        (1..=times.len() / 2).min_by(|a, b| misfit(&times, *a).total_cmp(&misfit(&times, *b)))?;
    let (slow, settled) = times.split_at(cut);
    let (before, after) = (mean(slow), mean(settled));
    let spread = variation(settled) * after;
    let (early, late) = settled.split_at(settled.len() / 2);
    let still_changes = (mean(late) / mean(early) - 1.0).abs() > 0.15;
    let cost = (before / after - 1.0) * cut as f64 / times.len() as f64;
    if before < GAIN_MIN * after
        || before - after < SPREADS_MIN * spread
        || still_changes
        || cost < COST_MIN
    {
        return None;
    }
    let row_s = view.rows.first().map_or(1.0, |row| row.span_s);
    let text = format!(
        "the median response time was {} for the first {}, then settled at {}",
        show::duration(Nanos::from_secs_f64(before)),
        show::duration(Nanos::from_secs_f64(cut as f64 * row_s)),
        show::duration(Nanos::from_secs_f64(after))
    );
    Sign::new(Confidence::Likely, text)
}

/// Squared distance of the values from the means of their two parts.
fn misfit(values: &[f64], cut: usize) -> f64 {
    let part = |part: &[f64]| {
        let mean = mean(part);
        part.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    part(&values[..cut]) + part(&values[cut..])
}
