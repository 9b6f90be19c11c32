use super::super::{Confidence, Rule, Sign, View};
use crate::verdict::{DRIVER_BUSY_MAX, SLIP_MAX};
use sample::{Blame, FailureClass};
use units::show;

pub(crate) const RULE: Rule = Rule {
    id: "client-limited",
    title: "The client itself sets the figures",
    reasoning: "A client whose thread is busy all the time, that is late for its own schedule, or \
                that is out of ports or descriptors, would measure the same figures against a \
                faster server. Whatever else is found is then found at the client's limit, not at \
                the server's.",
    source: "WebMark, second principle: be sure that the client is not what is measured; Swerve's \
             table 8-4, where 1,012 connections were the client's descriptor limit.",
    thresholds: &[
        (DRIVER_BUSY_MAX, "share of its core that the busiest worker uses, spinning excluded"),
        (0.001, "seconds that the loop is late at p99, in an open load"),
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
    let lag = view.total.lag.quantile(0.99);
    let late = view.evidence.users.is_none() && lag > SLIP_MAX && lag.0 * 2 > view.typical().0;
    if busy >= DRIVER_BUSY_MAX {
        let text = format!("a worker of this client used {} of its core", show::share(busy));
        return Sign::new(Confidence::Likely, text);
    }
    if late {
        let text = format!(
            "calls were issued late, by {} at p99, through the client's own lag",
            show::duration(lag)
        );
        return Sign::new(Confidence::Likely, text);
    }
    None
}
