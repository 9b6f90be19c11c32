use super::super::shape::{line, ratio};
use super::super::{Confidence, Rule, Sign, View};
use crate::Hist;
use units::{Nanos, show};

/// Common configured timeouts, in seconds.
const ROUND_S: &[f64] = &[
    0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0,
    120.0,
];
const COUNT_MIN: u64 = 3;
const SHARE_MIN: f64 = 0.0005;
const APART: u64 = 4;

pub(crate) const RULE: Rule = Rule {
    id: "round-timeout",
    title: "A dependency of the server times out",
    reasoning: "When a dependency does not answer (a database, a backend, a name server, a lock), \
        its client gives up after a configured time: 1, 2, 5, 10 or 30 seconds. Affected calls end \
        just after a round time, far above the usual one and with few others near it, as failures \
        or as fallback responses. Round times are unlikely by chance.",
    source: "nginx's proxy_read_timeout (60 s) and 504; glibc's resolver, 5 s a try; the common \
             defaults of database pools.",
    thresholds: &[
        (3.0, "calls at the round time, at least"),
        (SHARE_MIN, "share of the calls, at least"),
        (4.0, "times the usual service time, at least"),
    ],
    advice: "Find the component that waits this long, and for what: check the server's log at \
        those instants, its backends, name server and database connection pool.",
    excludes: &["periodic-stall", "mixed-backends", "drift"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    if !view.enough() {
        return None;
    }
    let usual = view.typical();
    let mut best: Option<(f64, u64, u64)> = None;
    for at in ROUND_S {
        let low = Nanos::from_secs_f64(at * 0.998);
        let high = Nanos::from_secs_f64(at * 1.015)
            + Nanos::from_millis(4)
            + usual.min(Nanos::from_millis(20));
        if low.0 < APART * usual.0 {
            continue;
        }
        let failed = peak_calls(&view.total.failed, low, high);
        let count = peak_calls(&view.total.succeeded, low, high) + failed;
        if count > best.map_or(0, |(_, most, _)| most) {
            best = Some((*at, count, failed));
        }
    }
    let (at, count, failed) = best?;
    let share = ratio(count as f64, view.done() as f64);
    if count < COUNT_MIN || share < SHARE_MIN {
        return None;
    }
    let text = format!(
        "{} of {} calls ({}) ended just after {}, {} of them as failures; the usual one takes {}",
        show::count(count),
        show::count(view.done()),
        show::share(share),
        show::duration(Nanos::from_secs_f64(at)),
        show::count(failed),
        show::duration(usual)
    );
    Sign::new(Confidence::Likely, text)
}

/// Returns the number of calls at that time, if it is a peak.
fn peak_calls(hist: &Hist, low: Nanos, high: Nanos) -> u64 {
    let line = line(hist, low, high);
    if line.is_peak(COUNT_MIN) { line.count } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::super::Evidence;
    use super::*;
    use crate::Measurement;

    #[test]
    fn failures_are_counted_among_the_calls_that_are_reported() {
        let mut measurement = Measurement::default();
        let total = &mut measurement.total;
        (total.counts.succeeded, total.counts.failed) = (1_000, 15);
        for (took_ms, count, failed) in [(1, 1_000, false), (101, 12, true), (115, 3, true)] {
            let took = Nanos::from_millis(took_ms);
            let of = if failed { &mut total.failed } else { &mut total.succeeded };
            of.record_n(took, count);
            total.service.record_n(took, count);
        }
        let sign = find(&View::new(&Evidence::new(&measurement))).unwrap();
        assert!(sign.evidence.starts_with("12 of 1,015 calls"), "{}", sign.evidence);
        assert!(sign.evidence.contains("100 ms, 12 of them as failures"), "{}", sign.evidence);
    }
}
