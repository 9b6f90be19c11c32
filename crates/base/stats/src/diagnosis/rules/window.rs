use super::super::shape::ratio;
use super::super::{Confidence, Http2Limits, Rule, Sign, View};
use units::show;

const SHARE_MIN: f64 = 0.5;
/// A hundred megabits a second, and a gigabit, in bytes: links that a window is compared with.
const LINES: [(f64, &str); 2] = [(12.5e6, "100 Mbit/s"), (125e6, "1 Gbit/s")];

pub(crate) const RULE: Rule = Rule {
    id: "window-limit",
    title: "The client's flow-control window is too small for the path",
    reasoning: "At most one window of content may be in flight: a connection cannot receive more \
        than its window per round trip, however fast the link is. Filling a link takes its \
        bandwidth-delay product, the bytes that it holds in one round trip. When the bytes that a \
        connection receives per second approach its window divided by the round-trip time, the \
        window is the limit, not the server or the link. The same holds for the stream of a \
        response that is longer than the stream's window.",
    source: "RFC 9113 §5.2 and §6.9; RFC 7323 §1.1 (window over round-trip time); round-trip times \
             by the kernel's TCP_INFO.",
    thresholds: &[(
        SHARE_MIN,
        "share of the window over the round-trip time that is received in each second, at least",
    )],
    advice: "Announce larger windows (--connection-window, --stream-window), as large as the \
             bandwidth-delay product at least; in production that is a setting of the clients.",
    excludes: &["bandwidth-limit"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let limits = view.evidence.http2?;
    let total = view.total;
    let rtt = total.connections.rtt.quantile(0.5).as_secs_f64();
    if !view.enough() || total.connections.http2.streams == 0 || rtt <= 0.0 {
        return None;
    }
    connection(view, limits, rtt).or_else(|| stream(view, limits, rtt))
}

/// Detects that the window of a connection limits all its responses together.
fn connection(view: &View<'_>, limits: Http2Limits, rtt: f64) -> Option<Sign> {
    let connections = view.evidence.measurement.connections_peak.max(1) as f64;
    let rate = view.total.body_bytes as f64 / view.window_s / connections;
    let window = f64::from(limits.connection_window);
    if ratio(rate, window / rtt) < SHARE_MIN {
        return None;
    }
    let text = format!(
        "each connection received {}/s; its window of {} over a round trip of {} allows {}/s. {}",
        bytes(rate),
        bytes(window),
        show::duration(units::Nanos::from_secs_f64(rtt)),
        bytes(window / rtt),
        products(rtt)
    );
    Sign::new(Confidence::Likely, text)
}

/// Detects that the window of a stream limits its response.
fn stream(view: &View<'_>, limits: Http2Limits, rtt: f64) -> Option<Sign> {
    let total = view.total;
    let size = ratio(total.body_bytes as f64, view.done() as f64);
    let window = f64::from(limits.stream_window);
    let rate = ratio(size, total.transfer.mean().as_secs_f64());
    if size < window || ratio(rate, window / rtt) < SHARE_MIN {
        return None;
    }
    let text = format!(
        "a response of {} arrived at {}/s; its stream's window of {} over a round trip of {} \
         allows {}/s. {}",
        bytes(size),
        bytes(rate),
        bytes(window),
        show::duration(units::Nanos::from_secs_f64(rtt)),
        bytes(window / rtt),
        products(rtt)
    );
    Sign::new(Confidence::Likely, text)
}

/// Returns the bandwidth-delay products of common links.
fn products(rtt: f64) -> String {
    let one = |(rate, name): &(f64, &str)| format!("{} at {name}", bytes(rate * rtt));
    let all: Vec<String> = LINES.iter().map(one).collect();
    format!("The bandwidth-delay product of this path is {}", all.join(", "))
}

fn bytes(number: f64) -> String {
    show::bytes(number.max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{http2_facts, measured};
    use super::super::super::{Evidence, Http2Limits};
    use super::*;
    use units::Nanos;

    /// Returns the finding for one connection with a round trip of 10 ms and a window of 100,000
    /// bytes that has received `bytes` in a second.
    fn finding(bytes: u64) -> Option<String> {
        let mut measurement = measured(http2_facts(1_000));
        measurement.total.body_bytes = bytes;
        measurement.connections_peak = 1;
        measurement.total.connections.rtt.record(Nanos::from_millis(10));
        let mut evidence = Evidence::new(&measurement);
        evidence.http2 = Some(Http2Limits {
            streams: 10,
            stream_window: 1 << 30,
            connection_window: 100_000,
            header_table: 4_096,
            encoder_table: 4_096,
        });
        find(&View::new(&evidence)).map(|sign| sign.evidence)
    }

    #[test]
    fn a_nearly_full_window_is_reported() {
        // a window each 10 ms is 10,000,000 bytes a second
        let text = finding(5_100_000).unwrap();
        assert!(text.contains("bandwidth-delay product of this path is 122 KiB at 100"), "{text}");
        assert_eq!(finding(4_900_000), None);
    }
}
