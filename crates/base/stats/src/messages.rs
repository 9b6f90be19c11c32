//! Messages of open conversations, such as WebSocket connections. Response times of answered
//! messages are those of calls; all other figures are here.

use crate::Hist;
use sample::{FanOutEvent, SocketClose, SocketCounts, SocketTime};
use std::collections::BTreeMap;
use units::Nanos;

/// Conversations and their messages. Counted over the whole run, the warm-up included, as
/// connections are.
#[derive(Clone, Debug, Default)]
pub struct MessageTally {
    pub counts: SocketCounts,
    /// Messages received inside the measured window.
    pub in_window: u64,
    /// Time from the upgrade request to the end of the server's 101.
    pub handshake: Hist,
    /// Time from one message of the server to the next on the same connection.
    pub gap: Hist,
    /// Time from a heartbeat's ping to its pong.
    pub ping: Hist,
    /// Time without a byte from the server before its side ended a conversation.
    pub silence: Hist,
    /// Number of conversations by the way in which they ended.
    pub closes: BTreeMap<SocketClose, u64>,
    /// Number of failed handshakes and conversations, by the peer's violation.
    pub violations: BTreeMap<String, u64>,
    pub fan_out: FanOutTally,
    pub reconnects: ReconnectTally,
}

/// Messages of conversations in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondMessages {
    pub sent: u64,
    pub received: u64,
    /// Times between messages that ended in the interval; zero without any.
    pub gap_p99: Nanos,
}

/// Reconnection of WebSockets after all of them were lost at once.
#[derive(Clone, Debug, Default)]
pub struct ReconnectTally {
    pub lost: u64,
    /// Failed attempts.
    pub failed: u64,
    /// Time from the loss until each WebSocket was open again.
    pub times: Hist,
}

/// Interval over which the rate of handshakes is taken.
const PEAK_SPAN: Nanos = Nanos::from_millis(100);

impl ReconnectTally {
    pub fn merge(&mut self, other: &ReconnectTally) {
        self.lost += other.lost;
        self.failed += other.failed;
        self.times.merge(&other.times);
    }

    /// Returns the number of WebSockets that are open again.
    pub fn restored(&self) -> u64 {
        self.times.count()
    }

    /// Returns the largest number of handshakes per second, over intervals of 100 ms.
    pub fn peak_per_s(&self) -> f64 {
        let spans = self.times.max().0 / PEAK_SPAN.0 + 1;
        let within = |span: u64| {
            let until = |span: u64| match span {
                0 => 0,
                span => self.times.count_at_or_below(Nanos(span * PEAK_SPAN.0)),
            };
            until(span + 1).saturating_sub(until(span))
        };
        let most = (0..spans.min(PEAK_SPANS_MAX)).map(within).max().unwrap_or(0);
        most as f64 / PEAK_SPAN.as_secs_f64()
    }
}

/// Intervals after the loss in which the peak is sought.
const PEAK_SPANS_MAX: u64 = 3_000;

/// Maximum number of distinct texts of violations.
const VIOLATIONS_MAX: usize = 20;

impl MessageTally {
    /// Records one duration of a conversation.
    pub fn record(&mut self, time: SocketTime) {
        match time {
            SocketTime::Handshake(span) => self.handshake.record(span),
            SocketTime::Gap(span) => self.gap.record(span),
            SocketTime::Ping(span) => self.ping.record(span),
        }
    }

    /// Records the end of a conversation, or of an attempt at one.
    pub fn end(&mut self, close: SocketClose, violation: Option<String>) {
        *self.closes.entry(close).or_default() += 1;
        if let Some(text) = violation {
            self.add_violation(text, 1);
        }
    }

    fn add_violation(&mut self, text: String, count: u64) {
        let known = self.violations.contains_key(&text);
        let text = match known || self.violations.len() < VIOLATIONS_MAX {
            true => text,
            false => "others".to_owned(),
        };
        *self.violations.entry(text).or_default() += count;
    }

    /// Returns the messages of an interval; `None` without messages.
    pub fn interval(&self) -> Option<SecondMessages> {
        let SocketCounts { sent, received, .. } = self.counts;
        let gap_p99 = self.gap.quantile(0.99);
        (sent + received > 0).then_some(SecondMessages { sent, received, gap_p99 })
    }

    /// Returns true before the first conversation or attempt at one.
    pub fn is_empty(&self) -> bool {
        self.counts.opened + self.ended() == 0
    }

    /// Returns the number of conversations that ended without a close frame, or by a violation.
    pub fn abnormal(&self) -> u64 {
        let abnormal = self.closes.iter().filter(|(close, _)| close.is_abnormal());
        abnormal.map(|(_, count)| count).sum()
    }

    /// Returns the number of conversations that ended.
    pub fn ended(&self) -> u64 {
        self.closes.values().sum()
    }

    pub fn merge(&mut self, other: &MessageTally) {
        self.counts.merge(&other.counts);
        self.in_window += other.in_window;
        self.handshake.merge(&other.handshake);
        self.gap.merge(&other.gap);
        self.ping.merge(&other.ping);
        self.silence.merge(&other.silence);
        self.fan_out.merge(&other.fan_out);
        self.reconnects.merge(&other.reconnects);
        for (close, count) in &other.closes {
            *self.closes.entry(*close).or_default() += count;
        }
        for (text, count) in &other.violations {
            self.add_violation(text.clone(), *count);
        }
    }

    /// Clears the counts and keeps the memory.
    pub fn clear(&mut self) {
        let back = &mut self.reconnects.times;
        let all = [&mut self.handshake, &mut self.gap, &mut self.ping, &mut self.silence, back];
        let [handshake, gap, ping, silence, times] = all.map(Hist::take_cleared);
        let reconnects = ReconnectTally { times, ..ReconnectTally::default() };
        let mut fan_out = std::mem::take(&mut self.fan_out);
        fan_out.clear();
        let rest = MessageTally::default();
        *self = MessageTally { handshake, gap, ping, silence, fan_out, reconnects, ..rest };
    }
}

/// Messages that one member of a room published for all others, due in the measured phase.
#[derive(Clone, Debug, Default)]
pub struct FanOutTally {
    /// Published messages, and how many of them reached every receiver.
    pub messages: u64,
    pub complete: u64,
    /// Expected receptions, and those that took place.
    pub expected: u64,
    pub received: u64,
    /// Receptions of messages that the receiver already had, and of messages after a later one.
    pub duplicates: u64,
    pub out_of_order: u64,
    /// Time from due to a receiver: of all receptions, of each message's first and of its last.
    pub each: Hist,
    pub first: Hist,
    pub last: Hist,
}

impl FanOutTally {
    pub fn add(&mut self, event: FanOutEvent) {
        match event {
            FanOutEvent::Delivered { due, at, in_order } => {
                self.each.record(at - due);
                self.out_of_order += u64::from(!in_order);
            }
            FanOutEvent::Duplicate { .. } => self.duplicates += 1,
            FanOutEvent::Settled { due, expected, received, first, last } => {
                self.messages += 1;
                self.complete += u64::from(received >= expected);
                self.expected += expected;
                self.received += received;
                if received > 0 {
                    self.first.record(first - due);
                    self.last.record(last - due);
                }
            }
        }
    }

    /// Returns the share of the expected receptions that took place; NaN if none was expected.
    pub fn reach(&self) -> f64 {
        match self.expected {
            0 => f64::NAN,
            expected => self.received as f64 / expected as f64,
        }
    }

    pub fn merge(&mut self, other: &FanOutTally) {
        self.messages += other.messages;
        self.complete += other.complete;
        self.expected += other.expected;
        self.received += other.received;
        self.duplicates += other.duplicates;
        self.out_of_order += other.out_of_order;
        self.each.merge(&other.each);
        self.first.merge(&other.first);
        self.last.merge(&other.last);
    }

    /// Clears the counts and keeps the memory.
    fn clear(&mut self) {
        let [each, first, last] =
            [&mut self.each, &mut self.first, &mut self.last].map(Hist::take_cleared);
        *self = FanOutTally { each, first, last, ..FanOutTally::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    #[test]
    fn tallies_add_up_and_clear() {
        let mut one = MessageTally::default();
        one.counts.sent = 3;
        one.record(SocketTime::Handshake(Nanos::from_millis(2)));
        one.end(SocketClose::Server(1000), None);
        one.end(SocketClose::Lost, Some("text that is not UTF-8".to_owned()));
        let mut both = one.clone();
        both.merge(&one);
        assert_eq!((both.counts.sent, both.handshake.count()), (6, 2));
        assert_eq!((both.ended(), both.abnormal()), (4, 2));
        assert_eq!(both.violations["text that is not UTF-8"], 2);
        both.clear();
        assert_eq!((both.ended(), both.handshake.count(), both.counts.sent), (0, 0, 0));
    }

    #[test]
    fn texts_of_violations_are_bounded() {
        let mut tally = MessageTally::default();
        for number in 0..100 {
            tally.end(SocketClose::Lost, Some(format!("reason {number}")));
        }
        assert_eq!(tally.violations.len(), VIOLATIONS_MAX + 1);
        assert_eq!(tally.violations.values().sum::<u64>(), 100);
    }
}
