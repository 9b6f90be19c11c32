use super::super::shape::{between, ratio};
use super::super::{Confidence, Rule, Sign, View};
use units::{Nanos, show};

/// Linux's minimum wait for an acknowledgment before a retransmission (TCP_RTO_MIN).
const RTO_MIN: Nanos = Nanos::from_millis(200);
const STEPS_MIN: u64 = 5;
const STEP_SHARE_MIN: f64 = 0.0005;
const COUNTED_MIN: u64 = 5;
const COUNTED_SHARE_MIN: f64 = 0.001;

pub(crate) const RULE: Rule = Rule {
    id: "retransmission",
    title: "Packets are lost between client and server",
    reasoning: "A lost packet that no other packet follows is sent again only when the \
        retransmission timer expires: after at least 200 ms on Linux, doubled with each attempt. \
        Calls with a loss take the usual time plus 200 ms, or 600 ms, with little between. The \
        client's kernel counts its own retransmissions (TCP_INFO); those of the server show only \
        in the times.",
    source: "RFC 6298; Linux TCP_RTO_MIN (include/net/tcp.h); tcp(7) on TCP_INFO.",
    thresholds: &[
        (0.2, "seconds of the shortest retransmission timer"),
        (STEP_SHARE_MIN, "share of calls one timer above the usual, at least"),
        (COUNTED_SHARE_MIN, "retransmits that the kernel counted, per call, at least"),
    ],
    advice: "Look for loss on the path: interface counters (ip -s link), a full queue, a policer, \
        a duplex mismatch, a busy virtual switch; nstat on both ends shows which side \
        retransmits.",
    excludes: &[
        "round-timeout",
        "nagle-delayed-ack",
        "scheduling-quantum",
        "drift",
        "periodic-stall",
    ],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let service = view.service();
    let usual = view.typical();
    if !view.enough() || usual > RTO_MIN {
        return None;
    }
    // most usual calls, even the fastest, take longer than the timer
    let spread = service.quantile(0.75) * 2 + Nanos::from_millis(14);
    let late = |timers: u64| {
        let low = service.min() + RTO_MIN * timers - Nanos::from_millis(2);
        (between(service, low, low + spread), between(service, low - Nanos::from_millis(60), low))
    };
    let ((one, before_one), (two, before_two)) = (late(1), late(3));
    let count = one + if before_two * 4 <= two { two } else { 0 };
    let share = ratio(count as f64, view.done() as f64);
    let apart = one >= STEPS_MIN && before_one * 4 <= one && spread < RTO_MIN;
    let stepped = apart && share >= STEP_SHARE_MIN;
    let retransmits = view.total.connections.retransmits;
    let counted_share = ratio(retransmits as f64, view.done() as f64);
    let counted = retransmits >= COUNTED_MIN && counted_share >= COUNTED_SHARE_MIN;
    let kernel = format!(
        "the client's TCP retransmitted {} segments on {} sampled connections",
        show::count(retransmits),
        show::count(view.total.connections.rtt.count())
    );
    let steps = format!(
        "{} of {} calls ({}) took a retransmission timer of 200 ms (or 600 ms) more than the usual {}",
        show::count(count),
        show::count(view.done()),
        show::share(share),
        show::duration(usual)
    );
    match (stepped, counted) {
        (true, true) => Sign::new(Confidence::Certain, format!("{steps}; {kernel}")),
        // a thread may wait as long for a core
        (true, false) if view.evidence.machine_busy => {
            Sign::new(Confidence::Likely, steps).map(Sign::possibly_local)
        }
        (true, false) => Sign::new(Confidence::Likely, steps),
        (false, true) => Sign::new(Confidence::Likely, kernel),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Evidence;
    use super::*;
    use crate::Measurement;

    /// Steps of 200 ms are a sign of loss, unless threads waited for a core; the kernel's count is a
    /// sign in any case.
    #[test]
    fn on_a_busy_machine_only_counted_losses_are_likely() {
        let confidence = |retransmits, machine_busy| {
            let mut measurement = Measurement::default();
            let total = &mut measurement.total;
            total.counts.succeeded = 1_000;
            total.service.record_n(Nanos::from_millis(1), 980);
            total.service.record_n(Nanos::from_millis(201), 20);
            total.connections.retransmits = retransmits;
            let evidence = Evidence { machine_busy, ..Evidence::new(&measurement) };
            let sign = find(&View::new(&evidence)).unwrap();
            (sign.confidence.id(), sign.evidence.contains("other programs used the cores"))
        };
        assert_eq!(confidence(0, false), ("likely", false));
        assert_eq!(confidence(0, true), ("possible", true));
        assert_eq!(confidence(20, true), ("certain", false));
    }

    /// Our own TCP may have counted them.
    #[test]
    fn retransmissions_name_the_tcp_that_sent_them() {
        let mut measurement = Measurement::default();
        let total = &mut measurement.total;
        total.counts.succeeded = 1_000;
        total.service.record_n(Nanos::from_millis(1), 1_000);
        total.connections.retransmits = 20;
        let sign = find(&View::new(&Evidence::new(&measurement))).unwrap();
        assert!(
            sign.evidence.starts_with("the client's TCP retransmitted 20"),
            "{}",
            sign.evidence
        );
    }
}
