use super::super::shape::{between, line, ratio};
use super::super::{Confidence, Rule, Sign, View};
use crate::Hist;
use units::{Nanos, show};

/// Range of Linux's delayed acknowledgment: 40 ms, plus up to two ticks of 4 ms and a wake-up.
const LOW: Nanos = Nanos::from_millis(38);
const HIGH: Nanos = Nanos::from_millis(50);
const COUNT_MIN: u64 = 5;
const SHARE_MIN: f64 = 0.02;

pub(crate) const RULE: Rule = Rule {
    id: "nagle-delayed-ack",
    title: "Nagle's algorithm waits for a delayed acknowledgement",
    reasoning: "A server that writes head and body separately, with Nagle's algorithm enabled, \
        sends the first piece and keeps the second until the first is acknowledged. The client's \
        kernel has nothing to send meanwhile and acknowledges late: after 40 ms on Linux. A new \
        connection is acknowledged at once for its first packets, so the first calls are fast. \
        Only the rest of the response, after its first byte, is late.",
    source: "RFC 896 and RFC 1122 §4.2.3.2; J. Nagle on the interaction of the two; Linux \
             TCP_DELACK_MIN of 40 ms.",
    thresholds: &[
        (0.038, "seconds: from"),
        (0.05, "seconds: to"),
        (SHARE_MIN, "share of the responses that take this long, at least"),
    ],
    advice: "Set TCP_NODELAY on the server's connections, or write head and body in one call \
             (writev, a buffer, TCP_CORK).",
    excludes: &[
        "rate-limit",
        "serial-handler",
        "worker-pool",
        "scheduling-quantum",
        "bandwidth-limit",
        "drift",
        "warm-up",
        "mixed-backends",
    ],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    if !view.enough() {
        return None;
    }
    let share_of = |hist: &Hist| {
        let line = line(hist, LOW, HIGH);
        let share = ratio(line.count as f64, hist.count() as f64);
        (line.is_peak(COUNT_MIN) && share >= SHARE_MIN).then_some((line.count, share))
    };
    let first = view.lives.first.quantile(0.5);
    // a handler that takes 40 ms between head and body does so for the first call as well
    let quick_first = view.persistent() && !view.lives.first.is_empty() && first.0 * 4 < LOW.0;
    if let Some((count, share)) = share_of(&view.total.transfer) {
        let text = format!(
            "{} responses ({}) paused about 40 ms between their first byte and their last; the first \
             byte took {}",
            show::count(count),
            show::share(share),
            show::duration(view.total.first_byte.quantile(0.5))
        );
        let sure = if quick_first { Confidence::Certain } else { Confidence::Likely };
        return Sign::new(sure, text);
    }
    let (count, share) = share_of(&view.total.first_byte)?;
    let quick = between(view.service(), Nanos::ZERO, Nanos(LOW.0 / 4));
    if !quick_first && quick * 20 < view.done() {
        // the whole server may just take 40 ms
        return None;
    }
    let text = format!(
        "{} calls ({}) took about 40 ms, and hardly any took a time between that and the fast \
         ones; the first call of a connection took {}",
        show::count(count),
        show::share(share),
        show::duration(first)
    );
    Sign::new(if quick_first { Confidence::Likely } else { Confidence::Possible }, text)
}
