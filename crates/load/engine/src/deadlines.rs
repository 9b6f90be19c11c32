//! Deadlines of connections: a heap with one effective entry per slot, postponed lazily.
//!
//! A call's deadline is nearly always later than that of the previous call, and a slot's next
//! connection has a later deadline than its previous one. Therefore an entry stays unchanged when
//! the deadline moves later, and is examined again when it expires: usual calls and connections do
//! not touch the heap. An entry replaced by an earlier one stays until its instant and is then
//! ignored. Code that moves a deadline earlier calls `Pool::arm` or `Pool::arm_again`.

use conduit::Slot;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::{Nanos, room_for_more};

#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: BinaryHeap<Reverse<(Nanos, Slot)>>,
}

/// An expired entry: the connection in this slot asked to be examined at this instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alarm {
    pub(crate) at: Nanos,
    pub(crate) slot: Slot,
}

impl Deadlines {
    #[inline]
    pub(crate) fn push(&mut self, at: Nanos, slot: Slot) {
        if self.heap.len() == self.heap.capacity() {
            self.grow();
        }
        self.heap.push(Reverse((at, slot)));
    }

    #[cold]
    fn grow(&mut self) {
        self.heap.reserve_exact(room_for_more(self.heap.len()));
    }

    pub(crate) fn next(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::NEVER, |Reverse((at, ..))| *at)
    }

    pub(crate) fn pop_until(&mut self, now: Nanos) -> Option<Alarm> {
        if self.next() > now {
            return None;
        }
        let Reverse((at, slot)) = self.heap.pop()?;
        Some(Alarm { at, slot })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_fire_in_order_and_never_early() {
        let mut deadlines = Deadlines::default();
        for (at, slot) in [(30, 3), (10, 1), (20, 2)] {
            deadlines.push(Nanos(at), slot);
        }
        assert_eq!(deadlines.next(), Nanos(10));
        assert_eq!(deadlines.pop_until(Nanos(9)), None);
        let slots: Vec<_> =
            std::iter::from_fn(|| deadlines.pop_until(Nanos(25))).map(|a| a.slot).collect();
        assert_eq!(slots, [1, 2]);
        assert_eq!(deadlines.next(), Nanos(30));
    }
}
