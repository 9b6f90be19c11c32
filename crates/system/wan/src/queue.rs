//! Packets of a link, the queue before its transmitter, and the packets that are lost.

use crate::spec::QueueLimit;
use std::collections::VecDeque;
use units::Nanos;

/// A packet inside a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Number by which the caller finds the bytes.
    pub(crate) token: u32,
    pub(crate) bytes: u32,
    pub(crate) arrived: Nanos,
    /// Propagation delay after the packet has left.
    pub(crate) delay: Nanos,
    /// Selects the bit to flip.
    pub(crate) corrupt: Option<u64>,
    /// True if it overtakes the packets in flight.
    pub(crate) ahead: bool,
}

/// A FIFO queue with a byte count.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkQueue {
    packets: VecDeque<Packet>,
    bytes: u64,
}

impl LinkQueue {
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    pub(crate) fn push(&mut self, packet: Packet) {
        self.bytes += u64::from(packet.bytes);
        self.packets.push_back(packet);
    }

    pub(crate) fn first(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// Number of packets for which there is memory.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.packets.capacity()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn has_room(&self, limit: QueueLimit, bytes: u32) -> bool {
        match limit {
            QueueLimit::None => true,
            QueueLimit::Packets(most) => (self.packets.len() as u64) < u64::from(most),
            QueueLimit::Bytes(most) => self.bytes + u64::from(bytes) <= most,
        }
    }
}

/// Lost packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub token: u32,
    pub to: LostTo,
}

/// Cause of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostTo {
    /// Loss model.
    Model,
    /// Outage of the link.
    Outage,
    /// Full queue.
    LinkQueue,
    /// Drop by CoDel.
    CoDel,
}
