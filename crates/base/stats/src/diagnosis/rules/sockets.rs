//! Rules about WebSockets.

use super::super::shape::{between, ratio};
use super::super::{Confidence, Rule, Sign, View};
use units::{Nanos, show};

const ENDS_MIN: u64 = 5;
const SILENCE_MIN_S: f64 = 5.0;
const WIDTH: f64 = 0.05;
const SHARE_MIN: f64 = 0.8;
/// Idle timeouts of proxies and load balancers in seconds.
const KNOWN: [f64; 8] = [30.0, 55.0, 60.0, 100.0, 120.0, 300.0, 350.0, 600.0];
const KNOWN_WIDTH: f64 = 0.02;

pub(crate) const IDLE: Rule = Rule {
    id: "idle-timeout",
    title: "WebSockets are ended after a fixed time of silence",
    reasoning: "Proxies and load balancers end a connection on which no byte has arrived from the \
        server for a while, most of them without a close frame. The silence before the end is then \
        nearly the same on all connections. A server's own limit on the age of a connection looks \
        the same if the connection was silent all the time.",
    source: "nginx proxy_read_timeout (60 s), AWS ALB idle timeout (60 s), HAProxy timeout tunnel, \
             Cloudflare (100 s).",
    thresholds: &[
        (ENDS_MIN as f64, "WebSockets that the server's side ended, at least"),
        (SILENCE_MIN_S, "seconds of silence in the median, at least"),
        (WIDTH, "distance from the median, as a share of it, within which the silences are, for"),
        (SHARE_MIN, "share of the WebSockets, at least"),
        (KNOWN_WIDTH, "distance from a usual timeout, as a share of it, for likely, at most"),
    ],
    advice: "Let clients or the server send pings more often than that (--ws-ping), or raise the \
             idle timeout of the proxy (proxy_read_timeout, timeout tunnel).",
    excludes: &[],
    find: find_idle,
};

fn find_idle(view: &View<'_>) -> Option<Sign> {
    let silence = &view.total.messages.silence;
    let median = silence.quantile(0.5);
    if silence.count() < ENDS_MIN || median.as_secs_f64() < SILENCE_MIN_S {
        return None;
    }
    let width = Nanos::from_secs_f64(median.as_secs_f64() * WIDTH);
    let alike = between(silence, median - width, median + width);
    if ratio(alike as f64, silence.count() as f64) < SHARE_MIN {
        return None;
    }
    let seconds = median.as_secs_f64();
    let known = KNOWN.iter().any(|usual| (seconds - usual).abs() <= usual * KNOWN_WIDTH);
    let confidence = if known { Confidence::Likely } else { Confidence::Possible };
    let evidence = format!(
        "{} of {} WebSockets that the server's side ended had been silent for about {}",
        show::count(alike),
        show::count(silence.count()),
        show::duration(median)
    );
    Sign::new(confidence, evidence)
}

const MESSAGES_MIN: u64 = 20;
const RECEIVERS_MIN: f64 = 10.0;
const SPREAD_SHARE_MIN: f64 = 0.8;
const EACH_MIN_S: f64 = 20e-6;
const MIDDLE: (f64, f64) = (0.3, 0.7);
const BUSY_MAX: f64 = 0.5;

pub(crate) const SERIAL: Rule = Rule {
    id: "fan-out-serial",
    title: "A message is sent to its receivers one after another",
    reasoning: "A server that writes a published message to one receiver at a time reaches the last \
        one after as many writes as there are receivers. Most of the time to the last receiver is \
        then the distance from the first one, and half of the receivers are reached in half of it. \
        The client also handles the receptions of a room one after another, in about a microsecond \
        each.",
    source: "One loop over N receivers takes N writes; first and last receiver of --ws-rooms.",
    thresholds: &[
        (MESSAGES_MIN as f64, "messages, at least"),
        (RECEIVERS_MIN, "receivers of a message, at least"),
        (SPREAD_SHARE_MIN, "share of the time to the last receiver after the first one, at least"),
        (EACH_MIN_S, "seconds for each receiver, at least"),
        (MIDDLE.0, "place of the median receiver between the first and the last, at least"),
        (MIDDLE.1, "the same, at most"),
        (BUSY_MAX, "share of its core that the busiest worker uses, for likely, at most"),
    ],
    advice: "Send to the members of a room from several threads, encode the frame once for all of \
             them, and do not wait for one receiver before writing to the next.",
    excludes: &[],
    find: find_serial,
};

fn find_serial(view: &View<'_>) -> Option<Sign> {
    let fan_out = &view.total.messages.fan_out;
    let receivers = ratio(fan_out.expected as f64, fan_out.messages as f64);
    if fan_out.messages < MESSAGES_MIN || receivers < RECEIVERS_MIN {
        return None;
    }
    let median = |hist: &crate::Hist| hist.quantile(0.5).as_secs_f64();
    let (first, last) = (median(&fan_out.first), median(&fan_out.last));
    let spread = last - first;
    let each = ratio(spread, receivers - 1.0);
    let middle = ratio(median(&fan_out.each) - first, spread);
    let linear = (MIDDLE.0..=MIDDLE.1).contains(&middle);
    if spread < last * SPREAD_SHARE_MIN || each < EACH_MIN_S || !linear {
        return None;
    }
    let idle = view.evidence.driver_busy.is_some_and(|busy| busy <= BUSY_MAX);
    let confidence = if idle { Confidence::Likely } else { Confidence::Possible };
    let time = |seconds: f64| show::duration(Nanos::from_secs_f64(seconds));
    let evidence = format!(
        "the last of {receivers:.0} receivers has a message {} after the first: {} for each of them",
        time(spread),
        time(each)
    );
    Sign::new(confidence, evidence)
}

#[cfg(test)]
mod tests {
    use super::super::super::Evidence;
    use super::*;
    use crate::Measurement;

    fn sign_of(
        rule: &Rule,
        busy: f64,
        count: impl FnOnce(&mut Measurement),
    ) -> Option<(Confidence, String)> {
        let mut measurement = Measurement { window: Nanos::SECOND, ..Measurement::default() };
        count(&mut measurement);
        let mut evidence = Evidence::new(&measurement);
        evidence.driver_busy = Some(busy);
        (rule.find)(&View::new(&evidence)).map(|sign| (sign.confidence, sign.evidence))
    }

    #[test]
    fn equal_silences_before_the_end_are_an_idle_timeout() {
        let silent = |times: &[u64]| {
            sign_of(&IDLE, 0.1, |measurement| {
                let silence = &mut measurement.total.messages.silence;
                times.iter().for_each(|time| silence.record(Nanos::from_millis(*time)));
            })
        };
        let (confidence, text) = silent(&[60_010, 60_020, 60_005, 60_000, 12_000, 60_400]).unwrap();
        assert_eq!(confidence, Confidence::Likely);
        assert!(text.starts_with("5 of 6 WebSockets"), "{text}");
        let odd = silent(&[47_000, 47_100, 47_000, 47_000, 47_050]).unwrap().0;
        assert_eq!(odd, Confidence::Possible);
        assert_eq!(silent(&[60_000; 4]), None, "too few");
        assert_eq!(silent(&[4_000; 10]), None, "too short");
        assert_eq!(
            silent(&[10_000, 20_000, 30_000, 40_000, 50_000, 60_000]),
            None,
            "no fixed time"
        );
    }

    #[test]
    fn receivers_in_even_steps_are_a_serial_fan_out() {
        /// Returns the finding for 100 receivers, the first after `first` and each further one
        /// `step` microseconds later.
        fn reach(first: u64, step: u64, busy: f64) -> Option<(Confidence, String)> {
            sign_of(&SERIAL, busy, |measurement| {
                let fan_out = &mut measurement.total.messages.fan_out;
                (fan_out.messages, fan_out.expected) = (50, 5_000);
                for _ in 0..50 {
                    let at = |number: u64| Nanos::from_micros(first + step * number);
                    (0..100).for_each(|number| fan_out.each.record(at(number)));
                    fan_out.first.record(at(0));
                    fan_out.last.record(at(99));
                }
            })
        }
        let (confidence, text) = reach(500, 50, 0.2).unwrap();
        assert_eq!(confidence, Confidence::Likely);
        assert!(text.contains("last of 100 receivers") && text.contains("50.0 µs"), "{text}");
        assert_eq!(reach(500, 50, 0.9).unwrap().0, Confidence::Possible);
        assert_eq!(reach(500, 19, 0.2), None, "as fast as the client itself may be");
        assert_eq!(reach(20_000, 50, 0.2), None, "the first takes most of the time");
    }
}
