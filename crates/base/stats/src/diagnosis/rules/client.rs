use super::super::{Confidence, Rule, Sign, View};
use crate::verdict::{DRIVER_BUSY_MAX, SLIP_MAX};
use sample::{Blame, FailureClass};
use units::show;

pub(crate) const RULE: Rule = Rule {
    id: "client-limited",
    title: "The client limits the result",
    reasoning: "A client whose threads are always busy, that issues most calls late, or that runs \
        out of ports or descriptors would measure the same figures against a faster server. All \
        other findings then describe the client's limit, not the server's. A client that is \
        occasionally late, because its machine takes its cores for a few milliseconds, is not \
        limited: the verdict covers its lateness.",
    source: "WebMark, second principle: be sure that the client is not what is measured; Swerve's \
             table 8-4, where 1,012 connections were the client's descriptor limit.",
    thresholds: &[
        (DRIVER_BUSY_MAX, "share of its core that the busiest worker uses, spinning excluded"),
        (0.001, "seconds by which half of the calls are issued late, in an open load"),
    ],
    advice: "Give the client more cores with --threads, another machine, or less load; then \
        measure again.",
    excludes: &[
        "serial-handler",
        "worker-pool",
        "bandwidth-limit",
        "scheduling-quantum",
        "mixed-backends",
        "warm-up",
    ],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let own = |(class, _): &(&FailureClass, &u64)| class.blame() == Blame::Driver;
    let failures = view.total.failures.iter().filter(own);
    if let Some((class, count)) = failures.max_by_key(|(_, count)| **count) {
        let text = format!("{} times: {}", show::count(*count), class.explain());
        return Sign::new(Confidence::Certain, text);
    }
    let busy = view.evidence.driver_busy.unwrap_or(0.0);
    let lag = view.total.lag.quantile(0.5);
    let late = view.evidence.users.is_none() && lag > SLIP_MAX && lag.0 * 2 > view.typical().0;
    if busy >= DRIVER_BUSY_MAX {
        let text = format!("a worker of this client used {} of its core", show::share(busy));
        return Sign::new(Confidence::Likely, text);
    }
    if late {
        let text = format!(
            "half of the calls were issued at least {} late, because of the client's own lag",
            show::duration(lag)
        );
        return Sign::new(Confidence::Likely, text);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::super::Evidence;
    use super::*;
    use crate::Measurement;
    use units::Nanos;

    #[test]
    fn an_occasionally_late_client_is_not_the_limit() {
        let found = |late: u64| {
            let mut measurement = Measurement::default();
            let total = &mut measurement.total;
            total.service.record_n(Nanos::from_millis(1), 1_000);
            total.lag.record_n(Nanos::from_micros(5), 1_000 - late);
            total.lag.record_n(Nanos::from_millis(6), late);
            find(&View::new(&Evidence::new(&measurement))).is_some()
        };
        assert!(!found(30) && !found(400));
        assert!(found(600));
    }
}
