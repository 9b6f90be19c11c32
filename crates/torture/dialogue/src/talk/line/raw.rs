//! A conversation of raw TCP segments: the same script, events and replies, with its own TCP
//! instead of a socket.

use super::{Conversation, LinePhase};
use crate::governor::Governor;
use crate::packets::{PacketLink, PacketStep, PacketTalk, ReceivedSegment};
use crate::talk::{Move, TalkEnd, What};
use conduit::Peer;
use sample::FailureClass;
use std::net::{IpAddr, SocketAddr};
use tcp::{End, Head};
use units::{Nanos, Purpose, Seed};

impl Conversation {
    /// Uses this device end; without one there is no connection.
    pub(in crate::talk) fn speak_raw(&mut self, from: End) {
        let ends = (from.address, &self.script.peer);
        let (IpAddr::V4(ours), Peer::Tcp(SocketAddr::V4(to))) = ends else { return };
        let to = End { address: IpAddr::V4(*to.ip()), port: to.port() };
        // a different number for each end: no segment of an earlier conversation matches
        let index = u64::from(ours.to_bits()) << 16 | u64::from(from.port);
        let iss = Seed(index).stream(Purpose::Sequence, index).next_u64() as u32;
        self.raw_talk = Some(Box::new(PacketTalk::new(from, to, iss)));
    }

    pub(in crate::talk) fn is_raw(&self) -> bool {
        self.raw_talk.is_some()
    }

    /// Returns the end that its packets are sent to.
    pub(in crate::talk) fn raw_end(&self) -> Option<End> {
        self.raw_talk.as_ref().map(|raw| raw.from())
    }

    pub(super) fn begin_raw(&mut self, now: Nanos) {
        if self.raw_talk.is_none() {
            return self.finish(TalkEnd::Unconnected(FailureClass::Unreachable), now);
        }
        self.stage = LinePhase::Talking;
        self.perform_raw_steps(now);
    }

    /// Performs every possible step.
    pub(super) fn perform_raw_steps(&mut self, now: Nanos) {
        let saw = self.raw_talk.as_mut().and_then(|raw| raw.tick(now));
        if let Some(kind) = saw {
            self.note(now, What::Saw(kind));
        }
        while self.stage == LinePhase::Talking && self.paused_until.is_none() {
            let waits = self.raw_talk.as_ref().is_none_or(|raw| raw.is_waiting());
            if waits || !self.raw_step(now) {
                break;
            }
        }
        self.note_segments(now);
        if self.raw_talk.as_ref().is_some_and(|raw| raw.is_bounded()) {
            return self.finish(TalkEnd::Bounded, now);
        }
        if self.stage == LinePhase::Listening && self.settled_at().is_some_and(|at| at <= now) {
            self.finish(TalkEnd::Open, now);
        }
    }

    /// Performs the next step; returns false if it must wait, or all are done.
    fn raw_step(&mut self, now: Nanos) -> bool {
        let Some(step) = self.script.steps.get(self.step).cloned() else {
            self.stage = LinePhase::Listening;
            self.heard_at = self.heard_at.max(now);
            return false;
        };
        let Some(raw) = &mut self.raw_talk else { return false };
        match step {
            Move::Pause(span) => {
                self.paused_until = Some(now + span);
                return false;
            }
            Move::Await(what) => {
                if !self.take_awaited(what) {
                    return false;
                }
            }
            Move::Send(bytes) => raw.send_bytes_step(now, &bytes),
            Move::HalfClose => {
                raw.half_close(now);
                self.note(now, What::HalfClosed);
            }
            Move::Reset | Move::Close => {
                self.note(now, What::ResetByUs);
                self.finish(TalkEnd::Ours, now);
            }
            Move::Packet(step) => match step {
                PacketStep::Stream(content) => raw.set_stream(&content),
                PacketStep::Open(with) => raw.open(now, with),
                PacketStep::Segment(segment) => raw.send_step(now, &segment),
                PacketStep::Expect { kinds, within } => raw.expect(now, &kinds, within),
                PacketStep::Acks(acks) => raw.set_acks(acks),
                PacketStep::Window(window) => raw.set_window(window),
            },
            // possible with sockets only
            Move::Urgent | Move::StopReading | Move::Read | Move::Sip(_) | Move::Renegotiate => {}
        }
        self.step += 1;
        true
    }

    /// Handles a received segment.
    pub(in crate::talk) fn take_packet(&mut self, now: Nanos, head: &Head, payload: &[u8]) {
        let Some(raw) = &mut self.raw_talk else { return };
        let ReceivedSegment { bytes, fin, broken, is_established, saw } =
            raw.take(now, head, payload);
        self.note_segments(now);
        if let Some(kind) = saw {
            self.note(now, What::Saw(kind));
        }
        if is_established && self.connected.is_none() {
            self.connected = Some(now - self.script.start);
            self.note(now, What::Connected);
        }
        if !bytes.is_empty() {
            self.heard_at = now;
            self.received += bytes.len() as u64;
            self.note(now, What::Received(bytes.len()));
            self.understand(&bytes);
        }
        if fin || broken {
            let class = match self.connected {
                None => FailureClass::Refused,
                Some(_) => FailureClass::Reset,
            };
            if self.connected.is_none() && saw.is_none() {
                return self.finish(TalkEnd::Unconnected(class), now);
            }
            return self.ended(now, broken.then_some(class));
        }
        self.perform_raw_steps(now);
    }

    /// Takes the packets to send.
    pub(in crate::talk) fn take_packets(
        &mut self,
        now: Nanos,
        governor: &mut Governor,
    ) -> Vec<Vec<u8>> {
        let Some(raw) = &mut self.raw_talk else { return Vec::new() };
        let out = raw.take_out();
        let count = raw.sent() - self.sent;
        if count > 0 {
            self.sent += count;
            governor.sent(now, usize::try_from(count).unwrap_or(usize::MAX));
            self.note(now, What::Sent(usize::try_from(count).unwrap_or(usize::MAX)));
        }
        out
    }

    /// Ends it without leaving state at the peer.
    pub(in crate::talk) fn end_without_state(&mut self, now: Nanos, link: &mut dyn PacketLink) {
        let Some(raw) = &mut self.raw_talk else { return };
        raw.leave(now);
        raw.take_out().iter().for_each(|packet| link.send(packet));
        self.note_segments(now);
    }

    fn note_segments(&mut self, now: Nanos) {
        let lines = self.raw_talk.as_mut().map(|raw| raw.take_lines()).unwrap_or_default();
        lines.into_iter().for_each(|line| self.note(now, What::Segment(line)));
    }
}
