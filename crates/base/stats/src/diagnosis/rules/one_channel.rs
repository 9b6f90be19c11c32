use super::super::shape::ratio;
use super::super::{Confidence, Rule, Sign, View};
use units::show;

const TIME_MIN: f64 = 0.2;
const CALLS_MIN: f64 = 0.05;

pub(crate) const RULE: Rule = Rule {
    id: "one-channel",
    title: "All calls share one connection and wait for its streams",
    reasoning: "A gRPC client usually opens one channel, which is one HTTP/2 connection to one \
        server. The server (SETTINGS_MAX_CONCURRENT_STREAMS, often 100) or the client (--streams) \
        limits the streams of a connection. Calls beyond the limit wait on the client, while \
        server and link have capacity left. Many servers also read a connection in one thread, and \
        a connection-level (layer 4) load balancer sends all calls of a connection to one back end.",
    source: "RFC 9113 §5.1.2; the gRPC project's performance guide, which recommends several channels \
             where streams of one connection queue.",
    thresholds: &[
        (1.0, "connection open at once"),
        (TIME_MIN, "share of the response time that is spent waiting for a stream, at least"),
        (CALLS_MIN, "share of the calls that waited, at least"),
    ],
    advice: "Open several connections (-c, --connections-max), as a pool of channels in the real client \
             would, or allow more streams (--streams, or the server's limit).",
    excludes: &["stream-limit", "worker-pool", "serial-handler"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let connections = &view.total.connections;
    let waits = &connections.stream_wait;
    if !view.enough() || view.evidence.measurement.connections_peak != 1 || waits.is_empty() {
        return None;
    }
    let response = view.total.response();
    let sum = |hist: &crate::Hist| hist.mean().as_secs_f64() * hist.count() as f64;
    let time = ratio(sum(waits), sum(&response)).min(1.0);
    let calls = ratio(waits.count() as f64, view.done() as f64).min(1.0);
    if time < TIME_MIN || calls < CALLS_MIN {
        return None;
    }
    let peak = connections.http2.streams_peak.max(connections.http3.streams_peak);
    let text = format!(
        "one connection carried all calls, at most {} at once: {} of the calls waited for a stream, \
         {} of the response time",
        show::count(peak),
        show::share(calls),
        show::share(time)
    );
    Sign::new(Confidence::Certain, text)
}

#[cfg(test)]
mod tests {
    use super::super::super::Evidence;
    use super::super::super::testing::{http2_facts, measured};
    use super::*;
    use units::Nanos;

    /// Returns the finding for 1,000 calls of 10 ms each, of which `waited` waited for this time.
    fn finding(open: u64, waited: u64, wait: Nanos) -> Option<String> {
        let mut measurement = measured(http2_facts(1_000));
        measurement.connections_peak = open;
        measurement.total.succeeded.record_n(Nanos::from_millis(10), 1_000);
        measurement.total.connections.stream_wait.record_n(wait, waited);
        find(&View::new(&Evidence::new(&measurement))).map(|sign| sign.evidence)
    }

    #[test]
    fn waits_for_the_streams_of_one_connection_are_found() {
        let text = "one connection carried all calls, at most 10 at once: 60.0 % of the calls waited \
                    for a stream, 30.0 % of the response time";
        assert_eq!(finding(1, 600, Nanos::from_millis(5)).as_deref(), Some(text));
        assert_eq!(finding(2, 600, Nanos::from_millis(5)), None);
        assert_eq!(finding(1, 600, Nanos::from_millis(3)), None);
        assert_eq!(finding(1, 49, Nanos::from_secs(1)), None);
        assert_eq!(finding(1, 0, Nanos::ZERO), None);
    }
}
