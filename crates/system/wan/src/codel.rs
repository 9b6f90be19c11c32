//! CoDel, the controlled-delay queue (RFC 8289): packets are dropped at the head when the minimum
//! time in the queue has been above a target for an interval, at an increasing rate while it stays
//! so.

use crate::queue::{LinkQueue, Packet};
use crate::spec::CoDel;
use units::Nanos;

/// A queue of at most this many bytes is never too long (MAXPACKET in RFC 8289).
const PACKET_MAX: u64 = 1_500;

#[derive(Clone, Debug, Default)]
pub(crate) struct CoDelState {
    first_above: Option<Nanos>,
    next_drop: Nanos,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl CoDelState {
    /// Removes the next packet from the queue at `now`; packets dropped in the process are passed
    /// to `dropped`. `None` if the queue is empty.
    pub(crate) fn take(
        &mut self,
        codel: CoDel,
        now: Nanos,
        queue: &mut LinkQueue,
        dropped: &mut dyn FnMut(Packet),
    ) -> Option<Packet> {
        let (mut packet, mut may) = self.look(codel, now, queue)?;
        if self.dropping {
            self.dropping = may;
            while self.dropping && now >= self.next_drop {
                dropped(packet);
                self.count += 1;
                let Some(next) = self.look(codel, now, queue) else {
                    self.dropping = false;
                    return None;
                };
                (packet, may) = next;
                self.dropping = may;
                if may {
                    self.next_drop = self.control_law(codel, self.next_drop);
                }
            }
        } else if may {
            dropped(packet);
            self.enter(codel, now);
            packet = self.look(codel, now, queue)?.0;
        }
        Some(packet)
    }

    /// Starts dropping; continues with the former drop rate if that was recent.
    fn enter(&mut self, codel: CoDel, now: Nanos) {
        self.dropping = true;
        let recent = self.count.saturating_sub(self.last_count);
        let close = now - self.next_drop < codel.interval * 16;
        self.count = if recent > 1 && close { recent } else { 1 };
        self.next_drop = self.control_law(codel, now);
        self.last_count = self.count;
    }

    /// Removes the packet at the head; returns it and whether it may be dropped.
    fn look(&mut self, codel: CoDel, now: Nanos, queue: &mut LinkQueue) -> Option<(Packet, bool)> {
        let Some(packet) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        if now - packet.arrived < codel.target || queue.bytes() <= PACKET_MAX {
            self.first_above = None;
            return Some((packet, false));
        }
        let at = *self.first_above.get_or_insert(now + codel.interval);
        Some((packet, now >= at))
    }

    /// Returns when the next drop follows: after interval / √count (RFC 8289 section 5.4).
    fn control_law(&self, codel: CoDel, from: Nanos) -> Nanos {
        let gap = codel.interval.0 as f64 / f64::from(self.count.max(1)).sqrt();
        from + Nanos(gap.round() as u64)
    }
}
