use super::super::{Confidence, Rule, Sign, View};
use crate::verdict::{DRIVER_BUSY_MAX, SLIP_MAX};
use sample::{Blame, FailureClass};
use units::show;

pub(crate) const RULE: Rule = Rule {
    id: "client-limited",
    title: "The client itself sets the figures",
    reasoning: "A client whose thread is busy all the time, that issues most calls late, or that is \
                out of ports or descriptors, would measure the same figures against a faster \
                server. Whatever else is found is then found at the client's limit, not at the \
                server's. A client that is late now and then, because its machine takes its cores \
                for some milliseconds, is not limited: its lateness belongs to the verdict.",
    source: "WebMark, second principle: be sure that the client is not what is measured; Swerve's \
             table 8-4, where 1,012 connections were the client's descriptor limit.",
    thresholds: &[
        (DRIVER_BUSY_MAX, "share of its core that the busiest worker uses, spinning excluded"),
        (0.001, "seconds by which half of the calls are issued late, in an open load"),
    ],
    advice: "Give the client more cores with --threads, another machine, or less to do; then look \
             at the server again.",
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
            "half of the calls were issued late, by {} or more, through the client's own lag",
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
    fn a_client_that_is_late_now_and_then_is_not_the_limit() {
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
