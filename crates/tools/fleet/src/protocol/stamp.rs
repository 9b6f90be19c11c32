//! Stamps of messages: the process, the run, and the number of the message. A message of an earlier
//! run, of another process with the same credentials, or one that arrives a second time, is refused
//! and counted.

use serde::{Deserialize, Serialize};

/// Maximum distance below the highest received number at which numbers are still accepted, because
/// messages may overtake each other.
const WINDOW: u64 = 1_024;
const WORDS: usize = (WINDOW / 64) as usize;

/// Identification of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The agent's process: the sender of a message to the manager, the addressee of a message from it.
    #[serde(default)]
    pub session: u64,
    /// The run that the sender works on: the number of the manager that began it; 0 without a run.
    #[serde(default)]
    pub run: u64,
    /// Counts the sender's messages to this addressee, from 1; 0: not counted.
    #[serde(default)]
    pub number: u64,
}

/// A message with its stamp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamped<T> {
    #[serde(flatten)]
    pub content: T,
    #[serde(default)]
    pub stamp: Stamp,
}

/// Number of messages that were refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedMessages {
    /// Messages from or to another process: an earlier one, a second one with the same credentials,
    /// or an unknown one.
    pub foreign: u64,
    /// Messages of an earlier manager, another run or another step.
    pub late: u64,
    /// Messages received a second time.
    pub replayed: u64,
}

impl RefusedMessages {
    /// Returns the number of refused messages in all.
    pub fn sum(&self) -> u64 {
        self.foreign + self.late + self.replayed
    }

    /// Adds the counts of another process.
    pub fn add(&mut self, other: &RefusedMessages) {
        self.foreign = self.foreign.saturating_add(other.foreign);
        self.late = self.late.saturating_add(other.late);
        self.replayed = self.replayed.saturating_add(other.replayed);
    }
}

/// Received message numbers of one sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberWindow {
    /// Highest number up to which all are refused.
    floor: u64,
    top: u64,
    /// Bit `number % WINDOW`: received, for the numbers from `top - WINDOW + 1` to `top`.
    seen: [u64; WORDS],
}

impl NumberWindow {
    /// Returns a window for a sender whose message with this number was received; earlier numbers
    /// are refused.
    pub fn after(number: u64) -> NumberWindow {
        NumberWindow { floor: number, top: number, seen: [0; WORDS] }
    }

    /// Returns whether a message with this number is new, and marks it as received.
    pub fn accept(&mut self, number: u64) -> bool {
        if number <= self.floor || number.saturating_add(WINDOW) <= self.top {
            return false;
        }
        if number > self.top {
            let forget = (number - self.top).min(WINDOW);
            for passed in (0..forget).map(|back| number - back) {
                self.set(passed, false);
            }
            self.top = number;
        }
        let fresh = self.seen[Self::word(number)] & Self::bit(number) == 0;
        self.set(number, true);
        fresh
    }

    fn word(number: u64) -> usize {
        (number % WINDOW / 64) as usize
    }

    fn bit(number: u64) -> u64 {
        1 << (number % 64)
    }

    fn set(&mut self, number: u64, seen: bool) {
        let word = &mut self.seen[Self::word(number)];
        if seen {
            *word |= Self::bit(number);
        } else {
            *word &= !Self::bit(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::{FromAgent, read, write};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_number_is_accepted_once() {
        let mut window = NumberWindow::default();
        let order = [1, 1, 3, 2, 3, 2, 1_030, 7, 5, 6, 6, u64::MAX, 1_030, u64::MAX];
        let accepted: Vec<u64> =
            order.into_iter().filter(|number| window.accept(*number)).collect();
        assert_eq!(accepted, [1, 3, 2, 1_030, 7, u64::MAX]);
        assert!(!NumberWindow::default().accept(0));
        let mut later = NumberWindow::after(9);
        assert_eq!([8, 9, 10, 10].map(|number| later.accept(number)), [false, false, true, false]);
    }

    #[test]
    fn a_message_without_a_stamp_has_no_session() {
        let stray: Stamped<FromAgent> = read(br#"{"say":"leaving","why":"a"}"#).unwrap();
        assert_eq!(stray.stamp, Stamp::default());
        let stamp = Stamp { session: u64::MAX, run: 7, number: 3 };
        let taken = FromAgent::Taken { step: 1, number: 9, refused: None };
        let message = Stamped { stamp, content: taken };
        assert_eq!(read::<Stamped<FromAgent>>(&write(&message)).unwrap(), message);
    }

    proptest! {
        #[test]
        fn no_number_is_accepted_twice(numbers in prop::collection::vec(0_u64..3_000, 0..400)) {
            let (mut window, mut known) = (NumberWindow::default(), BTreeSet::new());
            let mut top = 0;
            for number in numbers {
                let fresh = number > 0 && number + WINDOW > top && !known.contains(&number);
                prop_assert_eq!(window.accept(number), fresh, "{}", number);
                if fresh {
                    known.insert(number);
                    top = top.max(number);
                }
            }
        }
    }
}
