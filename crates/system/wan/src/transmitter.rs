//! The transmitter that empties the queue before a link.

use crate::codel::CoDelState;
use crate::outage::OutageState;
use crate::queue::{LinkQueue, Lost, LostTo, Packet};
use crate::spec::{Carrier, LinkSpec, QueuePolicy};
use crate::trace::{OPPORTUNITY_BYTES, TRACE_OVERHEAD};
use units::Nanos;

/// Empties a queue at the rate of a link. A packet counts as queued until its transmission starts.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    queue: LinkQueue,
    codel: CoDelState,
    outage: Option<OutageState>,
    /// Instant at which the previous packet has left.
    free: Nanos,
    /// The virtual clock of the rate: when the token bucket is as full as at the start.
    earned: Nanos,
    origin: Nanos,
    /// The next delivery opportunity of a trace.
    opportunity: u64,
    /// Bytes left of the opportunity, and of the packet that is partly sent.
    room: u32,
    partly: Option<(Packet, u32)>,
}

impl Transmitter {
    /// Returns a transmitter. `outage`: the outages whose ends packets wait for.
    pub(crate) fn new(outage: Option<OutageState>, origin: Nanos) -> Transmitter {
        Transmitter {
            queue: LinkQueue::default(),
            codel: CoDelState::default(),
            outage,
            free: Nanos::ZERO,
            earned: Nanos::ZERO,
            origin,
            opportunity: 0,
            room: 0,
            partly: None,
        }
    }

    pub(crate) fn queued(&self) -> usize {
        self.queue.len() + usize::from(self.partly.is_some())
    }

    /// Packet capacity of the queue's memory.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.queue.capacity()
    }

    /// Adds a packet to the queue unless it is full.
    pub(crate) fn push(&mut self, spec: &LinkSpec, packet: Packet, lost: &mut Vec<Lost>) -> bool {
        let limit = spec.queue.limit;
        if spec.queue.policy == QueuePolicy::DropHead {
            while !self.queue.has_room(limit, packet.bytes) {
                let Some(oldest) = self.queue.pop() else { break };
                lost.push(Lost { token: oldest.token, to: LostTo::LinkQueue });
            }
        }
        let fits = self.queue.has_room(limit, packet.bytes);
        if fits {
            self.queue.push(packet);
        }
        fits
    }

    /// Returns when the next packet starts to leave; for a trace, when it can next carry something.
    pub(crate) fn next(&mut self, spec: &LinkSpec) -> Option<Nanos> {
        if let Carrier::Trace(trace) = &spec.carrier {
            if self.partly.is_some() {
                return Some(self.origin + trace.at(self.opportunity));
            }
            let head = self.queue.first()?;
            self.opportunity = self.opportunity.max(trace.after(head.arrived - self.origin));
            return Some(self.origin + trace.at(self.opportunity));
        }
        let head = self.queue.first()?;
        let at = self.free.max(head.arrived);
        Some(match (&mut self.outage, &spec.outage) {
            (Some(state), Some(outage)) => state.present(outage, at),
            _ => at,
        })
    }

    /// Transmits the packets that start at `at`, as returned by [`Self::next`]: `out` gets each
    /// packet with the time at which its last bit has left.
    pub(crate) fn serve(
        &mut self,
        spec: &LinkSpec,
        at: Nanos,
        lost: &mut Vec<Lost>,
        out: &mut dyn FnMut(Packet, Nanos),
    ) {
        if let Carrier::Trace(_) = &spec.carrier {
            self.room = OPPORTUNITY_BYTES;
            self.opportunity += 1;
            while self.room > 0 && self.use_opportunity(spec, at, lost, out) {}
            return;
        }
        let Some(packet) = self.take(spec, at, lost) else { return };
        let leaves = match &spec.carrier {
            Carrier::Bits { per_second, overhead, burst } => {
                let spent = transmission(u64::from(packet.bytes + overhead), *per_second);
                let saved = transmission(*burst, *per_second);
                self.earned = self.earned.max(at - saved) + spent;
                self.earned.max(at)
            }
            Carrier::Unlimited | Carrier::Trace(_) => at,
        };
        self.free = leaves;
        out(packet, leaves);
    }

    /// Sends a packet, or part of it, with the current opportunity; false if the queue is empty.
    fn use_opportunity(
        &mut self,
        spec: &LinkSpec,
        at: Nanos,
        lost: &mut Vec<Lost>,
        out: &mut dyn FnMut(Packet, Nanos),
    ) -> bool {
        let (packet, left) = match self.partly.take() {
            Some(partly) => partly,
            None => match self.take(spec, at, lost) {
                Some(packet) => (packet, packet.bytes + TRACE_OVERHEAD),
                None => return false,
            },
        };
        let carried = left.min(self.room);
        self.room -= carried;
        if carried == left {
            out(packet, at);
        } else {
            self.partly = Some((packet, left - carried));
        }
        true
    }

    fn take(&mut self, spec: &LinkSpec, at: Nanos, lost: &mut Vec<Lost>) -> Option<Packet> {
        match spec.queue.policy {
            QueuePolicy::CoDel(codel) => {
                let mut dropped =
                    |packet: Packet| lost.push(Lost { token: packet.token, to: LostTo::CoDel });
                self.codel.take(codel, at, &mut self.queue, &mut dropped)
            }
            QueuePolicy::DropTail | QueuePolicy::DropHead => self.queue.pop(),
        }
    }
}

/// Returns the duration of `bytes` at a rate in bits per second.
pub(crate) fn transmission(bytes: u64, bits_per_second: u64) -> Nanos {
    let rate = u128::from(bits_per_second.max(1));
    let nanos = (u128::from(bytes) * 8_000_000_000 + rate / 2) / rate;
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
