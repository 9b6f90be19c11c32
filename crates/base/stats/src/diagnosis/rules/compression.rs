use super::super::shape::ratio;
use super::super::{COMPLETIONS_MIN, Confidence, Rule, Sign, View};
use super::cpu::FULL_MIN;
use units::{Nanos, show};

const AGREED_MIN: f64 = 0.9;
const SAVED_MIN: f64 = 0.2;
const DEFLATE_NS: f64 = 10.0;
const INFLATE_NS: f64 = 2.0;
const COST_MIN: f64 = 0.5;

pub(crate) const RULE: Rule = Rule {
    id: "compression-cost",
    title: "Compression of WebSocket messages uses most of the server's CPU time, or saves little",
    reasoning: "With permessage-deflate the server inflates every message that it receives and \
        deflates those that it sends. The time for that grows with the plain bytes. This rule \
        assumes the nanoseconds per byte below, about a third of what zlib needs. If this estimate \
        is already a large part of the CPU time that --sut saw for a message, the server mainly \
        compresses. Short messages without a shared context, and content that is already \
        compressed, cost this time and save few bytes on the network.",
    source: "RFC 7692 sections 7 and 8; zlib 1.2 at level 6 on JSON messages.",
    thresholds: &[
        (AGREED_MIN, "share of the WebSockets that agreed on compression, at least"),
        (COMPLETIONS_MIN as f64, "messages in a direction, at least"),
        (DEFLATE_NS, "nanoseconds assumed per byte that the server deflates"),
        (INFLATE_NS, "nanoseconds assumed per byte that it inflates"),
        (COST_MIN, "share of the server's CPU time that this estimate is, at least; or"),
        (SAVED_MIN, "share of the bytes that compression saves, less than"),
        (FULL_MIN, "share of its cores that the server uses, at least, for a likely finding"),
    ],
    advice: "Compare both with `loadstone compare`, with and without --ws-compress. Leave short \
             messages and compressed content uncompressed (a threshold in the server), lower the \
             level, or keep the context between messages.",
    excludes: &["cpu-contention"],
    find,
};

/// Messages of one direction.
struct MessageBytes {
    count: u64,
    plain: u64,
    wire: u64,
    ns_per_byte: f64,
}

/// Returns the directions whose messages are compressed.
fn compressed(view: &View<'_>) -> Option<Vec<MessageBytes>> {
    let counts = &view.total.messages.counts;
    if ratio(counts.compressed as f64, counts.opened as f64) < AGREED_MIN {
        return None;
    }
    let sent = MessageBytes {
        count: counts.sent,
        plain: counts.payload_sent,
        wire: counts.wire_sent,
        ns_per_byte: INFLATE_NS,
    };
    let received = MessageBytes {
        count: counts.received,
        plain: counts.payload_received,
        wire: counts.wire_received,
        ns_per_byte: DEFLATE_NS,
    };
    // the client compresses all its messages; a server may send all of them uncompressed
    let ours = Some(sent).filter(|it| it.count >= COMPLETIONS_MIN);
    let theirs = Some(received).filter(|it| it.count >= COMPLETIONS_MIN && it.wire < it.plain);
    Some(ours.into_iter().chain(theirs).collect())
}

fn find(view: &View<'_>) -> Option<Sign> {
    let directions = compressed(view)?;
    let sum = |of: fn(&MessageBytes) -> u64| directions.iter().map(of).sum::<u64>() as f64;
    let (messages, plain, wire) = (sum(|it| it.count), sum(|it| it.plain), sum(|it| it.wire));
    if plain == 0.0 {
        return None;
    }
    let counts = &view.total.messages.counts;
    let saved = 1.0 - ratio(wire, plain);
    let busy = view.server_cpu();
    let full = busy.is_some_and(|share| share >= FULL_MIN);
    let confidence = if full { Confidence::Likely } else { Confidence::Possible };
    let saved_text = format!(
        "compression saved {} of {} a message",
        show::share(saved.max(0.0)),
        show::bytes((plain / messages) as u64)
    );
    if let Some(used) = busy.and_then(|share| cpu_for_message(view, share)) {
        let bound: f64 = directions.iter().map(|it| it.plain as f64 * it.ns_per_byte).sum();
        let all = counts.sent + counts.received;
        let least = bound / 1e9 / all as f64;
        if least >= COST_MIN * used {
            let time = |seconds| show::duration(Nanos::from_secs_f64(seconds));
            let evidence = format!(
                "{saved_text} and needed an estimated {} of CPU time for it, {} of the {} that the server used",
                time(least),
                show::share((least / used).min(1.0)),
                time(used)
            );
            return Sign::new(confidence, evidence);
        }
    }
    (saved < SAVED_MIN).then_some(Sign { confidence, evidence: saved_text })
}

/// Returns the server's CPU time in seconds for a message sent or received, in the measured phase.
fn cpu_for_message(view: &View<'_>, share: f64) -> Option<f64> {
    let messages = &view.total.messages;
    let cores = view.evidence.sut?.cores;
    // only received messages are also counted in the window: sent ones are scaled in proportion
    let both = ratio(
        (messages.counts.sent + messages.counts.received) as f64,
        messages.counts.received as f64,
    );
    let in_window = messages.in_window as f64 * both;
    (in_window > 0.0).then(|| share * cores * view.window_s / in_window)
}

#[cfg(test)]
mod tests {
    use super::super::super::Evidence;
    use super::*;
    use crate::Measurement;
    use sample::{SocketCounts, SutRow, SutSeries};

    /// 1,000 messages of 4,000 bytes in each direction.
    fn traffic() -> SocketCounts {
        SocketCounts {
            opened: 10,
            compressed: 10,
            sent: 1_000,
            received: 1_000,
            payload_sent: 4_000_000,
            payload_received: 4_000_000,
            wire_sent: 800_000,
            wire_received: 800_000,
            ..SocketCounts::default()
        }
    }

    /// Returns the finding for one second with these messages. `cpu`: how many of its two cores the
    /// server used; `None` without `--sut`.
    fn found(counts: SocketCounts, cpu: Option<f64>) -> Option<(Confidence, String)> {
        let mut measurement = Measurement { window: Nanos::SECOND, ..Measurement::default() };
        measurement.total.messages.counts = counts;
        measurement.total.messages.in_window = counts.received;
        let sut = cpu.map(|cpu_cores| SutSeries {
            cores: 2.0,
            rows: vec![SutRow { at_s: 1.0, cpu_cores, ..SutRow::default() }],
            ..SutSeries::default()
        });
        let mut evidence = Evidence::new(&measurement);
        evidence.sut = sut.as_ref();
        find(&View::new(&evidence)).map(|sign| (sign.confidence, sign.evidence))
    }

    #[test]
    fn a_server_that_mainly_compresses_is_found() {
        // 4,000 bytes need 8 µs one way and 40 µs the other
        let (confidence, text) = found(traffic(), Some(0.06)).unwrap();
        assert_eq!(confidence, Confidence::Possible, "its cores are idle");
        assert_eq!(
            text,
            "compression saved 80.0 % of 3.91 KiB a message and needed an estimated 24.0 µs of CPU time \
             for it, 80.0 % of the 30.0 µs that the server used"
        );
        assert_eq!(found(traffic(), Some(0.2)), None, "100 µs a message have another cause");
        assert_eq!(found(traffic(), None), None, "the server was not watched");
        let many = SocketCounts {
            sent: 50_000,
            received: 50_000,
            payload_sent: 200_000_000,
            payload_received: 200_000_000,
            wire_sent: 40_000_000,
            wire_received: 40_000_000,
            ..traffic()
        };
        assert_eq!(found(many, Some(1.9)).unwrap().0, Confidence::Likely);
    }

    #[test]
    fn a_server_that_sends_plain_messages_only_inflates() {
        let counts = SocketCounts { wire_received: 4_004_000, ..traffic() };
        assert_eq!(found(counts, Some(0.06)), None);
        // 8 µs for one of two messages, of 5 µs for each
        let (_, text) = found(counts, Some(0.01)).unwrap();
        assert!(
            text.contains("an estimated 4.00 µs of CPU time for it, 80.0 % of the 5.00 µs"),
            "{text}"
        );
    }

    #[test]
    fn compression_that_saves_little_is_found() {
        let random = SocketCounts { wire_sent: 4_004_000, wire_received: 4_004_000, ..traffic() };
        let (confidence, text) = found(random, None).unwrap();
        assert_eq!(confidence, Confidence::Possible);
        assert_eq!(text, "compression saved 0 % of 3.91 KiB a message");
        assert_eq!(found(random, Some(1.9)).unwrap().0, Confidence::Likely);
        let quarter = SocketCounts { wire_sent: 3_000_000, wire_received: 3_000_000, ..traffic() };
        assert_eq!(found(quarter, None), None);
        let few = SocketCounts { sent: 19, received: 19, ..random };
        assert_eq!(found(few, None), None);
    }

    #[test]
    fn uncompressed_websockets_are_no_finding() {
        let plain = SocketCounts { compressed: 0, ..traffic() };
        assert_eq!(found(plain, Some(1.9)), None);
        let some = SocketCounts { compressed: 8, ..traffic() };
        assert_eq!(found(some, Some(1.9)), None);
        assert_eq!(found(SocketCounts::default(), Some(1.9)), None);
    }
}
