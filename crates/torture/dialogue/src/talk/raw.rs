//! Packets between conversations of raw TCP segments and the device.

use super::Conversations;
use conduit::Io;
use tcp::ArrivedPacket;

/// Maximum number of exchange rounds at one instant: instant replies get instant reactions, but not
/// forever.
const ROUNDS_MAX: usize = 64;
/// Maximum number of received packets per round: a fast sender must not block all others.
const PACKETS_MAX: usize = 256;

impl Conversations<'_> {
    /// Returns whether such conversations are active.
    pub(super) fn has_raw(&self) -> bool {
        self.link.is_some() && self.lines.iter().flatten().any(|line| line.is_raw())
    }

    /// Sends and receives packets until neither yields more; returns whether any arrived.
    pub(super) fn exchange_packets(&mut self, io: &mut impl Io) -> bool {
        if !self.has_raw() {
            return false;
        }
        let mut packet = Vec::new();
        let mut any = false;
        for _ in 0..ROUNDS_MAX {
            let mut came = false;
            for line in self.lines.iter_mut().flatten() {
                let now = io.now();
                let out = line.take_packets(now, self.governor);
                let Some(link) = &mut self.link else { return any };
                out.iter().for_each(|packet| link.send(packet));
            }
            for _ in 0..PACKETS_MAX {
                if !self.link.as_mut().is_some_and(|link| link.receive(&mut packet)) {
                    break;
                }
                came = true;
                self.deliver(io, &packet);
            }
            any |= came;
            if !came {
                break;
            }
        }
        any
    }

    /// Delivers a packet to its conversation.
    fn deliver(&mut self, io: &mut impl Io, packet: &[u8]) {
        let Some(ArrivedPacket::Segment { flow, head, payload }) = tcp::read(packet, false) else {
            return;
        };
        let now = io.now();
        let mine = |line: &super::Conversation| line.raw_end() == Some(flow.to);
        let found = self.lines.iter().position(|line| line.as_ref().is_some_and(mine));
        let Some(slot) = found else { return };
        let Some(line) = &mut self.lines[slot] else { return };
        line.take_packet(now, &head, payload);
        self.news |= line.take_news(self.governor);
        if line.is_over() {
            self.retire(io, slot);
        }
    }
}
