//! Timers of connections, each for the connection with one generation of its slot. The user of a
//! timer ignores those of earlier connections.

use conduit::Slot;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

#[derive(Debug, Default)]
pub(crate) struct SlotTimers {
    due: BinaryHeap<Reverse<(Nanos, Slot, u32)>>,
}

impl SlotTimers {
    pub(crate) fn set(&mut self, slot: Slot, generation: u32, at: Nanos) {
        self.due.push(Reverse((at, slot, generation)));
    }

    /// Returns the instant of the next timer; `NEVER` if no timer is set.
    pub(crate) fn next(&self) -> Nanos {
        self.due.peek().map_or(Nanos::NEVER, |Reverse((at, ..))| *at)
    }

    /// Returns the next due timer and removes it. Returns its slot and generation.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<(Slot, u32)> {
        if self.next() > now {
            return None;
        }
        self.due.pop().map(|Reverse((_, slot, generation))| (slot, generation))
    }
}
