//! Rules about WebSockets that reconnect, and about those that read slowly.

use super::super::shape::ratio;
use super::super::{Confidence, Rule, Sign, View};
use crate::ReconnectTally;
use sample::SocketClose;
use units::show;

const LOST_MIN: u64 = 10;
const FAILED_SHARE_MIN: f64 = 0.1;
const RETURN_MIN_S: f64 = 1.0;
const RETURN_FACTOR_MIN: f64 = 5.0;

pub(crate) const RECONNECTS: Rule = Rule {
    id: "slow-reconnects",
    title: "Clients that reconnect at the same time wait a long time or are refused",
    reasoning: "After a restart or a network failure all clients reconnect at once. A server that \
        accepts connections, makes TLS handshakes or checks logins one by one needs \
        the sum of their times, and a full accept queue or a limit refuses clients. The handshakes \
        before the reset show how long a single one takes.",
    source: "Reconnect storm of --ws-storm; the thundering herd problem.",
    thresholds: &[
        (LOST_MIN as f64, "WebSockets reset at the same time, at least"),
        (
            FAILED_SHARE_MIN,
            "failed attempts per reset WebSocket, at least; or a WebSocket was not reopened; or",
        ),
        (RETURN_MIN_S, "seconds until the last WebSocket was open again, at least, and"),
        (RETURN_FACTOR_MIN, "times the 99th percentile of all handshakes, at least"),
    ],
    advice: "Let clients wait a random time before they reconnect and back off after a failure; \
             raise the server's accept queue, and make logins cheap.",
    excludes: &[],
    find: find_reconnects,
};

fn find_reconnects(view: &View<'_>) -> Option<Sign> {
    let messages = &view.total.messages;
    let ReconnectTally { lost, failed, times } = &messages.reconnects;
    if *lost < LOST_MIN {
        return None;
    }
    let missing = lost.saturating_sub(messages.reconnects.restored());
    let last = times.max();
    let usual = messages.handshake.quantile(0.99).as_secs_f64();
    let slow =
        last.as_secs_f64() >= RETURN_MIN_S && last.as_secs_f64() >= usual * RETURN_FACTOR_MIN;
    let turned_away = ratio(*failed as f64, *lost as f64) >= FAILED_SHARE_MIN;
    if missing == 0 && !slow && !turned_away {
        return None;
    }
    let mut evidence = format!(
        "{} of the {} WebSockets that were reset are open again",
        show::count(times.count()),
        show::count(*lost)
    );
    if times.count() > 0 {
        evidence += &format!(", the last one after {}", show::duration(last));
    }
    if *failed > 0 {
        evidence += &format!("; failed attempts: {}", show::count(*failed));
    }
    Sign::new(Confidence::Certain, evidence)
}

const ENDED_SHARE_MIN: f64 = 0.05;
const AGE_MIN_S: f64 = 2.0;

pub(crate) const SLOW_CONSUMER: Rule = Rule {
    id: "slow-consumer",
    title: "The server disconnects clients that read slowly, or queues messages for them",
    reasoning: "A client that reads more slowly than the server sends fills the buffers of the \
        network. The server must then drop messages, close the connection, or keep the messages \
        in memory. Connections that the server closed show the second case; old answers show the \
        third, or large buffers in the network.",
    source: "Clients of --ws-read-rate; RFC 9293 section 3.8.6 (a receiver's window).",
    thresholds: &[
        (ENDED_SHARE_MIN, "share of the WebSockets that the server closed, at least, or"),
        (AGE_MIN_S, "seconds of the 99th percentile of the response times, at least"),
    ],
    advice: "Bound the queue of each client, and decide what happens when it is full: drop old \
             messages, or close with 1013 or 1008. Watch the server's memory during the run \
             (--sut).",
    excludes: &[],
    find: find_slow_consumer,
};

fn find_slow_consumer(view: &View<'_>) -> Option<Sign> {
    let rate = view.evidence.read_rate?;
    let messages = &view.total.messages;
    let by_server =
        |close: &SocketClose| matches!(close, SocketClose::Server(_) | SocketClose::Lost);
    let ended: u64 = messages.closes.iter().filter(|(it, _)| by_server(it)).map(|(_, n)| n).sum();
    let opened = messages.counts.opened;
    let reads = format!("at {}/s", show::bytes(u64::from(rate)));
    if ended > 0 && ratio(ended as f64, opened as f64) >= ENDED_SHARE_MIN {
        let (ended, opened) = (show::count(ended), show::count(opened));
        let evidence =
            format!("the server closed {ended} of {opened} WebSockets that read {reads}");
        return Sign::new(Confidence::Likely, evidence);
    }
    let age = view.total.response().quantile(0.99);
    if age.as_secs_f64() < AGE_MIN_S {
        return None;
    }
    let age = show::duration(age);
    let evidence =
        format!("1 % of the answers to clients that read {reads} are at least {age} old");
    Sign::new(Confidence::Possible, evidence)
}

#[cfg(test)]
mod tests {
    use super::super::super::Evidence;
    use super::*;
    use crate::Measurement;
    use units::Nanos;

    fn sign_of(rule: &Rule, count: impl FnOnce(&mut Measurement)) -> Option<(Confidence, String)> {
        let mut measurement = Measurement { window: Nanos::SECOND, ..Measurement::default() };
        count(&mut measurement);
        let mut evidence = Evidence::new(&measurement);
        evidence.read_rate = Some(1_000);
        (rule.find)(&View::new(&evidence)).map(|sign| (sign.confidence, sign.evidence))
    }

    #[test]
    fn a_slow_or_incomplete_return_is_found() {
        let back = |lost: u64, times: &[u64], failed: u64| {
            sign_of(&RECONNECTS, |measurement| {
                let messages = &mut measurement.total.messages;
                (0..100).for_each(|_| messages.handshake.record(Nanos::from_millis(10)));
                let tally = &mut messages.reconnects;
                (tally.lost, tally.failed) = (lost, failed);
                times.iter().for_each(|ms| tally.times.record(Nanos::from_millis(*ms)));
            })
            .map(|(_, text)| text)
        };
        assert_eq!(back(10, &[900; 10], 0), None);
        let slow = back(10, &[1_200; 10], 0).unwrap();
        assert!(slow.starts_with("10 of the 10") && slow.contains("1.20 s"), "{slow}");
        assert!(back(10, &[100; 9], 0).unwrap().starts_with("9 of the 10"));
        assert!(back(10, &[100; 10], 1).unwrap().contains("failed attempts: 1"));
        assert_eq!(back(9, &[100; 8], 0), None, "too few");
    }

    #[test]
    fn ended_and_queued_slow_consumers_are_found() {
        let ended = sign_of(&SLOW_CONSUMER, |measurement| {
            let messages = &mut measurement.total.messages;
            messages.counts.opened = 20;
            messages.end(SocketClose::Server(1008), None);
        });
        let (confidence, text) = ended.unwrap();
        assert_eq!(confidence, Confidence::Likely);
        assert_eq!(text, "the server closed 1 of 20 WebSockets that read at 1000 B/s");
        let old = |ms: u64| {
            sign_of(&SLOW_CONSUMER, |measurement| {
                measurement.total.succeeded.record(Nanos::from_millis(ms));
            })
        };
        assert!(old(3_000).is_some_and(|(confidence, _)| confidence == Confidence::Possible));
        assert_eq!(old(1_900), None);
    }
}
