use super::super::shape::{mean, median};
use super::super::{Confidence, Rule, Sign, View};
use crate::lives::BEAT;
use units::{Nanos, show};

const PER_STEP_MIN: f64 = 8.0;
const COVERED_MIN: f64 = 0.6;
const STILL_MAX: f64 = 0.1;
const STALLS_MIN: usize = 3;
const SURE_MIN: usize = 5;
const REGULAR_WITHIN: f64 = 0.15;
const DUTY_MAX: f64 = 0.5;

pub(crate) const RULE: Rule = Rule {
    id: "periodic-stall",
    title: "The server stalls at regular intervals",
    reasoning: "Stop-the-world garbage collection, checkpoints, log rotation, cron jobs and CPU \
        quotas stop a server's responses for a while, at equal intervals. Completions in steps of \
        50 ms show gaps; random gaps are not equally spaced. Every call that falls due in a gap \
        waits for its end, so the response time has a tail as long as the gap.",
    source: "Tene on coordinated omission (a stall hides in most tools); Linux CFS bandwidth \
             control, whose periods are 100 ms.",
    thresholds: &[
        (PER_STEP_MIN, "completions in a usual step, at least; steps are widened for it"),
        (STILL_MAX, "share of the usual completions in a stalled step, at most"),
        (
            3.0,
            "stalls, at least; certain from 5, in an open load whose client was not late by half of one",
        ),
        (REGULAR_WITHIN, "share of the period by which their intervals differ, at most"),
        (COVERED_MIN, "share of the run that the stalls and their intervals cover, at least"),
        (DUTY_MAX, "share of the time spent in stalls, at most"),
    ],
    advice: "Compare the period with the server's garbage collector log, its checkpoints, cron, and \
             its container's CPU quota (cpu.stat: nr_throttled).",
    excludes: &[
        "round-timeout",
        "drift",
        "warm-up",
        "serial-handler",
        "worker-pool",
        "scheduling-quantum",
        "mixed-backends",
    ],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    if view.evidence.uneven {
        // its pauses may belong to the load
        return None;
    }
    let done: Vec<f64> = view.beats.iter().map(|(done, _)| f64::from(*done)).collect();
    let busy: Vec<f64> = done.iter().copied().filter(|done| *done > 0.0).collect();
    let usual = median(&busy).min(2.0 * mean(&done));
    if usual <= 0.0 {
        return None;
    }
    let width = (PER_STEP_MIN / usual).ceil().max(1.0) as usize;
    let steps: Vec<f64> = done.chunks_exact(width).map(|chunk| chunk.iter().sum()).collect();
    let stalls = stalls(&steps);
    let starts: Vec<f64> = stalls.iter().map(|(start, _)| *start as f64).collect();
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if stalls.len() < STALLS_MIN {
        return None;
    }
    let period = median(&gaps);
    let slack = (REGULAR_WITHIN * period).max(2.0);
    let regular = gaps.iter().filter(|gap| (*gap - period).abs() <= slack).count();
    let lengths: Vec<f64> = stalls.iter().map(|(_, length)| *length as f64).collect();
    let covered = period * stalls.len() as f64 / steps.len() as f64;
    // intervals of a few steps are meaningless, and so are stalls in only one part of the run
    if regular * 10 < gaps.len() * 9 || period < 4.0 || covered < COVERED_MIN {
        return None;
    }
    let step_s = BEAT.as_secs_f64() * width as f64;
    let (length, period) = (median(&lengths) * step_s, mean(&gaps) * step_s);
    let text = format!(
        "no response for about {} every {}, {} times; the longest response took {}",
        show::duration(Nanos::from_secs_f64(length)),
        show::duration(Nanos::from_secs_f64(period)),
        stalls.len(),
        show::duration(view.total.response().max())
    );
    // a suspended client completes nothing either: an open load shows it by its lateness
    let late = view.total.lag.max().as_secs_f64() >= length / 2.0;
    if view.evidence.users.is_none() && late {
        return None;
    }
    let sure = stalls.len() >= SURE_MIN && view.evidence.users.is_none();
    Sign::new(if sure { Confidence::Certain } else { Confidence::Likely }, text)
}

/// Returns (first step, length) of each run of empty steps; none if most steps are empty or nothing
/// follows the last one.
fn stalls(steps: &[f64]) -> Vec<(usize, usize)> {
    let usual = median(steps);
    let still = |done: &f64| *done <= STILL_MAX * usual;
    let share = steps.iter().filter(|done| still(done)).count() as f64 / steps.len().max(1) as f64;
    let mut found: Vec<(usize, usize)> = Vec::new();
    if usual <= 0.0 || share > DUTY_MAX {
        return found;
    }
    for (at, _) in steps.iter().enumerate().filter(|(_, done)| still(done)) {
        match found.last_mut() {
            Some((start, length)) if *start + *length == at => *length += 1,
            _ => found.push((at, 1)),
        }
    }
    found.retain(|(start, length)| *start > 0 && start + length < steps.len());
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measurement;
    use crate::diagnosis::Evidence;
    use crate::lives::{BEATS_MAX, Beats};

    /// Bursts of a second, each done in 600 ms.
    #[test]
    fn pauses_of_the_load_are_not_stalls() {
        let mut measurement =
            Measurement { window: Nanos::from_secs(10), ..Measurement::default() };
        let beat = |at: usize| if at % 20 < 12 { (83, 83) } else { (0, 0) };
        measurement.total.beats = Beats::from_all((0..200).map(beat).collect());
        let even = Evidence::new(&measurement);
        assert!(find(&View::new(&even)).is_some());
        assert!(find(&View::new(&Evidence { uneven: true, ..even })).is_none());
    }

    #[test]
    fn a_run_longer_than_its_beats_is_judged_by_them() {
        let mut measurement =
            Measurement { window: Nanos::from_secs(7_200), ..Measurement::default() };
        // every 30 s nothing for a second, as long as beats are recorded
        let beat = |at: usize| if at % 600 >= 580 { (0, 0) } else { (10, 10) };
        measurement.total.beats = Beats::from_all((0..BEATS_MAX).map(beat).collect());
        let evidence = Evidence::new(&measurement);
        let sign = find(&View::new(&evidence)).expect("a stall every 30 s");
        assert!(sign.evidence.starts_with("no response for about 1.00 s every 30.0 s, 59"));
    }
}
