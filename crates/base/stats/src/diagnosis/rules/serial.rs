use super::super::queueing::{ALONE_MIN, CROWD_MIN, queueing};
use super::super::{Confidence, Rule, Sign, View};
use units::show;

const ONE_MIN: f64 = 0.6;
const ONE_MAX: f64 = 1.5;

pub(crate) const RULE: Rule = Rule {
    id: "serial-handler",
    title: "The server works on one call at a time",
    reasoning: "By Little's law, throughput times the time that one call takes alone is the number \
        of calls in service at the same time. If that number is one, while many calls are in \
        flight, all but one of them wait: throughput is 1 / service time regardless of the load, and \
        the response time grows with the number of users. When all users start at once, their \
        first calls end one after the other, a service time apart.",
    source: "Little, Operations Research 9, 1961; Lindley's recursion; the single-server queue in \
             Jain, The Art of Computer Systems Performance Analysis, chapter 31.",
    thresholds: &[
        (ONE_MIN, "calls in service, from"),
        (ONE_MAX, "calls in service, below"),
        (CROWD_MIN, "calls in flight per call in work, at least"),
        (ALONE_MIN.0 as f64 / 1e9, "seconds that a call takes alone, at least"),
    ],
    advice: "Look for what only one call can hold: a global lock, one database connection, a \
             single-threaded handler that blocks, a file that is opened exclusively.",
    excludes: &[
        "scheduling-quantum",
        "mixed-backends",
        "rate-limit",
        "worker-pool",
        "drift",
        "warm-up",
    ],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let queueing = queueing(view).filter(|queueing| queueing.waits())?;
    let one = queueing.working >= ONE_MIN && queueing.working < ONE_MAX;
    if !one || queueing.step.is_some_and(|step| step > 1) {
        return None;
    }
    let mut text = format!(
        "{} answered, while a call alone takes {}: {:.2} calls are in service and {:.1} in flight",
        show::rate(view.throughput),
        show::duration(queueing.alone),
        queueing.working,
        queueing.crowd
    );
    let confirmed = queueing.from_first.is_some();
    if confirmed {
        text += "; the users' first calls, made at once, ended one after the other";
    }
    Sign::new(if confirmed { Confidence::Certain } else { Confidence::Likely }, text)
}
