use super::super::queueing::{ALONE_MIN, CROWD_MIN, queueing};
use super::super::{Confidence, Rule, Sign, View};
use units::show;

const WORKERS_MIN: f64 = 1.5;
/// Maximum number of workers that can be estimated from one load despite noise.
const WORKERS_MAX: f64 = 256.0;

pub(crate) const RULE: Rule = Rule {
    id: "worker-pool",
    title: "A fixed number of workers serves the calls",
    reasoning: "By Little's law, throughput times the time that one call takes alone is the number \
        of calls in service at the same time. If more are in flight than that, k workers take the \
        calls in turn: throughput is k / service time, and more users only wait longer. When all \
        users start at once, the first k calls end together, the next k a service time later.",
    source: "Little, Operations Research 9, 1961; the M/M/m queue in Jain, The Art of Computer \
             Systems Performance Analysis, chapter 31.",
    thresholds: &[
        (WORKERS_MIN, "calls in service, from"),
        (WORKERS_MAX, "calls in service, at most"),
        (CROWD_MIN, "calls in flight per call in work, at least"),
        (ALONE_MIN.0 as f64 / 1e9, "seconds that a call takes alone, at least"),
    ],
    advice: "Raise the number of workers, threads or backend connections if the machine has room, \
             or shorten what a worker waits for.",
    excludes: &["scheduling-quantum", "mixed-backends", "rate-limit", "drift", "warm-up"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let queueing = queueing(view).filter(|queueing| queueing.waits())?;
    let stepped = queueing.step.filter(|step| {
        let step = *step as f64;
        step > 1.0 && (step - queueing.working).abs() <= (0.25 * step).max(1.0)
    });
    let workers = stepped.map_or(queueing.working.round(), |step| step as f64);
    if !(WORKERS_MIN..=WORKERS_MAX).contains(&workers) {
        return None;
    }
    let mut text = format!(
        "about {workers} workers: {} answered, while a call alone takes {}, makes {:.1} calls in \
         service of {:.1} in flight",
        show::rate(view.throughput),
        show::duration(queueing.alone),
        queueing.working,
        queueing.crowd
    );
    if let Some(step) = stepped {
        text += &format!("; of the users' first calls, made at once, {step} ended together first");
    }
    let sure = match (stepped, queueing.from_first) {
        (Some(_), _) => Confidence::Certain,
        (None, Some(_)) => Confidence::Likely,
        (None, None) => Confidence::Possible,
    };
    Sign::new(sure, text)
}
