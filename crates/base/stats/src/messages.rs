//! Messages of open conversations, such as WebSocket connections. Response times of messages that
//! have an answer are those of calls; this is what calls do not have.

use crate::Hist;
use sample::{SocketClose, SocketCounts, SocketTime};
use std::collections::BTreeMap;

/// Conversations and their messages. Counted over the whole run, the warm-up included, as
/// connections are.
#[derive(Clone, Debug, Default)]
pub struct MessageTally {
    pub counts: SocketCounts,
    /// Messages received inside the measured window.
    pub in_window: u64,
    /// From the upgrade request to the end of the server's 101.
    pub handshake: Hist,
    /// From one message of the server to the next on the same connection.
    pub gap: Hist,
    /// From a heartbeat's ping to its pong.
    pub ping: Hist,
    /// How conversations ended.
    pub closes: BTreeMap<SocketClose, u64>,
    /// Why handshakes and conversations failed, by what the peer did.
    pub violations: BTreeMap<String, u64>,
}

/// Distinct texts of violations that are kept.
const VIOLATIONS_MAX: usize = 20;

impl MessageTally {
    /// One duration of a conversation.
    pub fn record(&mut self, time: SocketTime) {
        match time {
            SocketTime::Handshake(span) => self.handshake.record(span),
            SocketTime::Gap(span) => self.gap.record(span),
            SocketTime::Ping(span) => self.ping.record(span),
        }
    }

    /// A conversation, or the attempt at one, is over.
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

    /// Conversations that ended without a close frame, or by a violation.
    pub fn abnormal(&self) -> u64 {
        let abnormal = self.closes.iter().filter(|(close, _)| close.is_abnormal());
        abnormal.map(|(_, count)| count).sum()
    }

    /// Conversations that ended.
    pub fn ended(&self) -> u64 {
        self.closes.values().sum()
    }

    pub fn merge(&mut self, other: &MessageTally) {
        self.counts.merge(&other.counts);
        self.in_window += other.in_window;
        self.handshake.merge(&other.handshake);
        self.gap.merge(&other.gap);
        self.ping.merge(&other.ping);
        for (close, count) in &other.closes {
            *self.closes.entry(*close).or_default() += count;
        }
        for (text, count) in &other.violations {
            self.add_violation(text.clone(), *count);
        }
    }

    /// Forgets the counts and keeps the memory.
    pub fn clear(&mut self) {
        let hists = [&mut self.handshake, &mut self.gap, &mut self.ping].map(|hist| {
            hist.clear();
            std::mem::take(hist)
        });
        let [handshake, gap, ping] = hists;
        *self = MessageTally { handshake, gap, ping, ..MessageTally::default() };
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
