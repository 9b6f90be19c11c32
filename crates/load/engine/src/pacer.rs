//! Messages of streams on an absolute schedule: message k of a call is due k intervals after the
//! call, regardless of what the server does.

use conduit::Slot;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::{Nanos, Rate};

/// The next message of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PacedMessage {
    pub(crate) due: Nanos,
    pub(crate) slot: Slot,
    pub(crate) generation: u32,
    /// Index of the call.
    pub(crate) index: u64,
    /// The call's due instant.
    intended: Nanos,
    /// Number of the message in its stream, from 0.
    number: u64,
}

#[derive(Debug)]
pub(crate) struct Pacer {
    rate: Rate,
    due: BinaryHeap<Reverse<PacedMessage>>,
}

/// Returns the instant at which message `number` of a call is due.
pub(crate) fn due_instant(intended: Nanos, rate: Rate, number: u64) -> Nanos {
    intended + Nanos::from_secs_f64(number as f64 / rate.0)
}

impl Pacer {
    pub(crate) fn new(rate: Rate) -> Pacer {
        Pacer { rate, due: BinaryHeap::new() }
    }

    /// Records that a call was sent with its first message.
    pub(crate) fn begin(&mut self, slot: Slot, generation: u32, index: u64, intended: Nanos) {
        let due = due_instant(intended, self.rate, 1);
        let message = PacedMessage { due, slot, generation, index, intended, number: 1 };
        self.due.push(Reverse(message));
    }

    /// Records that the message was sent, if the call has more messages.
    pub(crate) fn again(&mut self, message: PacedMessage) {
        let number = message.number + 1;
        let due = due_instant(message.intended, self.rate, number);
        self.due.push(Reverse(PacedMessage { due, number, ..message }));
    }

    pub(crate) fn next(&self) -> Nanos {
        self.due.peek().map_or(Nanos::NEVER, |Reverse(message)| message.due)
    }

    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<PacedMessage> {
        if self.next() > now {
            return None;
        }
        self.due.pop().map(|Reverse(message)| message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Nanos {
        Nanos::from_millis(n)
    }

    /// A late message does not delay the next one, and messages of several calls interleave.
    #[test]
    fn lateness_does_not_move_the_due_instants_of_messages() {
        let mut pacer = Pacer::new(Rate(100.0));
        pacer.begin(1, 0, 7, ms(1_000));
        pacer.begin(2, 0, 8, ms(1_004));
        assert_eq!(pacer.next(), ms(1_010));
        assert_eq!(pacer.take_due(ms(1_009)), None);
        let mut due = Vec::new();
        // the loop runs late, after three messages of each call were due
        while let Some(message) = pacer.take_due(ms(1_035)) {
            due.push((message.index, message.due));
            pacer.again(message);
        }
        let expected = [
            (7, ms(1_010)),
            (8, ms(1_014)),
            (7, ms(1_020)),
            (8, ms(1_024)),
            (7, ms(1_030)),
            (8, ms(1_034)),
        ];
        assert_eq!(due, expected);
        assert_eq!(pacer.next(), ms(1_040));
    }

    #[test]
    fn an_instant_is_exact_after_many_messages() {
        let due = due_instant(ms(5), Rate(3.0), 30_000_000);
        assert_eq!(due, Nanos::from_secs(10_000_000) + ms(5));
    }
}
