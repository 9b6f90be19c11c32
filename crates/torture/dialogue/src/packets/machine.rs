//! The TCP of a script: sequence numbers, acknowledgments, order. It has no clock and no device:
//! packets and instants come in, packets go out.

use super::wire::{RawSegment, arrived_line, is_kind, mss, stamps};
use super::{
    Acks, Opening, PACKETS_MAX, PacketContent, PacketKind, PlaceBase, SegmentStep, SeqPlace,
    StreamPart,
};
use std::collections::VecDeque;
use tcp::{End, Flow, Head, flag};
use units::Nanos;

/// Interval and number of SYN retransmissions.
const SYN_AGAIN: Nanos = Nanos::SECOND;
const SYN_TRIES: u32 = 3;
/// Interval and number of retransmissions of unacknowledged content: a server with a full queue
/// drops it.
const RESEND: Nanos = Nanos::SECOND;
const RESENDS: u32 = 3;
/// Number of acknowledgments per segment when splitting, and maximum total of bytes acknowledged
/// before their arrival.
const SPLIT: u32 = 8;
const AHEAD: u32 = 1_460;
const AHEAD_MAX: u32 = 256 << 10;
/// Maximum content of one segment.
const SEGMENT_MAX: usize = 1_400;
/// Start of our timestamps, high enough to be turned back.
const STAMPS_FROM: u32 = 1 << 30;

/// Result of a received packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedSegment {
    /// Content that is now in order.
    pub bytes: Vec<u8>,
    pub fin: bool,
    /// The peer broke the connection.
    pub broken: bool,
    /// This packet completed the handshake.
    pub is_established: bool,
    /// Event that a step waited for.
    pub saw: Option<PacketKind>,
}

/// Event that the machine waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StepWait {
    /// The reply to the SYN of a handshake, which is retransmitted at this instant.
    Open {
        with: Opening,
        tries: u32,
        at: Nanos,
    },
    Expect {
        kinds: Vec<PacketKind>,
        until: Nanos,
    },
    /// Segments that are sent over time.
    Pieces,
}

/// One connection, or an exchange that a server may mistake for one.
#[derive(Debug)]
pub struct PacketTalk {
    flow: Flow,
    iss: u32,
    /// Our next sequence number, and the peer's acknowledgment.
    next: u32,
    acked: u32,
    irs: u32,
    /// The peer's next sequence number, once known.
    due: u32,
    answered: bool,
    peer_window: u32,
    window: u16,
    /// Timestamps are in use; the peer's last one.
    stamped: bool,
    echo: u32,
    acks: Acks,
    ahead: u32,
    stream: Vec<u8>,
    waiting: Option<StepWait>,
    pieces: VecDeque<(Nanos, RawSegment)>,
    /// Unacknowledged segments, the instant of the next retransmission, and their count.
    kept: Vec<RawSegment>,
    resend_at: Nanos,
    resends: u32,
    out: Vec<Vec<u8>>,
    lines: Vec<String>,
    packets: u64,
    /// Number of sent content bytes.
    sent: u64,
    peer_fin: bool,
    broken: bool,
    our_fin: bool,
    /// We have acknowledged the peer's SYN.
    was_established: bool,
    now: Nanos,
}

impl PacketTalk {
    /// Returns a conversation between two ends; `iss` is the initial sequence number.
    pub fn new(from: End, to: End, iss: u32) -> PacketTalk {
        PacketTalk {
            flow: Flow { from, to },
            iss,
            next: iss,
            acked: iss,
            irs: 0,
            due: 0,
            answered: false,
            peer_window: 0,
            window: u16::MAX,
            stamped: false,
            echo: 0,
            acks: Acks::Each,
            ahead: 0,
            stream: Vec::new(),
            waiting: None,
            pieces: VecDeque::new(),
            kept: Vec::new(),
            resend_at: Nanos::NEVER,
            resends: 0,
            out: Vec::new(),
            lines: Vec::new(),
            packets: 0,
            sent: 0,
            peer_fin: false,
            broken: false,
            our_fin: false,
            was_established: false,
            now: Nanos::ZERO,
        }
    }

    /// Returns our address and port.
    pub fn from(&self) -> End {
        self.flow.from
    }

    /// Takes the packets to send, in order.
    pub fn take_out(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.out)
    }

    /// Takes the lines for segments sent and received since the previous call: `> S 0:0(0) win 1`.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Returns whether the maximum number of packets was reached.
    pub fn is_bounded(&self) -> bool {
        self.packets >= PACKETS_MAX
    }

    /// Returns the sent content in bytes.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns whether a step is in progress.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Returns whether the reply to the SYN of a handshake is pending.
    pub fn is_opening(&self) -> bool {
        matches!(self.waiting, Some(StepWait::Open { .. }))
    }

    /// Returns the next instant with something to do without a packet.
    pub fn due(&self) -> Nanos {
        let step = match &self.waiting {
            None => Nanos::NEVER,
            Some(StepWait::Open { at, .. }) => *at,
            Some(StepWait::Expect { until, .. }) => *until,
            Some(StepWait::Pieces) => self.pieces.front().map_or(Nanos::ZERO, |(at, _)| *at),
        };
        let again = if self.may_resend() { self.resend_at } else { Nanos::NEVER };
        step.min(again)
    }

    /// Sets the bytes that parts are cut from.
    pub fn set_stream(&mut self, content: &PacketContent) {
        self.stream = content.bytes(&crate::text::Values::default());
    }

    pub fn set_acks(&mut self, acks: Acks) {
        self.acks = acks;
    }

    /// Advertises this window from now on.
    pub fn set_window(&mut self, window: u16) {
        self.window = window;
        if self.answered {
            self.acknowledge(self.due);
        }
    }

    /// Starts a handshake.
    pub fn open(&mut self, now: Nanos, with: Opening) {
        self.now = now;
        self.window = with.window;
        self.stamped = with.stamps;
        self.syn(with);
        self.waiting = Some(StepWait::Open { with, tries: 1, at: now + SYN_AGAIN });
    }

    /// Waits for one of these.
    pub fn expect(&mut self, now: Nanos, kinds: &[PacketKind], within: Nanos) {
        self.waiting = Some(StepWait::Expect { kinds: kinds.to_vec(), until: now + within });
    }

    /// Sends the segments of the step, at once or over time.
    pub fn send_step(&mut self, now: Nanos, step: &SegmentStep) {
        self.now = now;
        let content = match (&step.part, &step.data) {
            (Some(part), _) => self.stream[part.range(self.stream.len())].to_vec(),
            (None, Some(data)) => data.bytes(&crate::text::Values::default()),
            (None, None) => Vec::new(),
        };
        let flags = step.flags.unwrap_or(0);
        let seq = match (step.seq, step.part) {
            (Some(place), _) => self.place(place),
            (None, Some(part)) if flags & flag::SYN == 0 => {
                let from = part.range(self.stream.len()).start as u32;
                self.iss.wrapping_add(1).wrapping_add(from)
            }
            (None, _) => self.next,
        };
        // only segments at the regular position advance our sequence number
        let counts = step.seq.is_none();
        self.our_fin |= counts && flags & flag::FIN != 0;
        let mut at = now;
        for _ in 0..step.times.max(1) {
            let mut number = seq;
            for content in split_content(&content, step.size.map_or(SEGMENT_MAX, usize::from)) {
                let mut segment = self.raw(step, number, content.to_vec());
                segment.keep = counts && is_well_behaved(&segment) && step.stamp == 0;
                number = number.wrapping_add(segment.span());
                self.pieces.push_back((at, segment));
                at += step.gap;
            }
            if counts && is_after(number, self.next) {
                self.next = number;
            }
        }
        self.waiting = Some(StepWait::Pieces);
        self.pieces_out(now);
    }

    /// Sends bytes after everything sent before.
    pub fn send_bytes_step(&mut self, now: Nanos, bytes: &[u8]) {
        let data = Some(PacketContent::Bytes(bytes.to_vec()));
        self.send_step(now, &SegmentStep { data, times: 1, ..SegmentStep::default() });
    }

    /// Sends the whole stream after everything sent before, in order.
    pub fn send_stream_step(&mut self, now: Nanos) {
        let part = Some(StreamPart::ALL);
        self.send_step(now, &SegmentStep { part, times: 1, ..SegmentStep::default() });
    }

    /// Sends FIN.
    pub fn half_close(&mut self, now: Nanos) {
        let flags = Some(flag::FIN | flag::ACK);
        self.send_step(now, &SegmentStep { flags, times: 1, ..SegmentStep::default() });
    }

    /// Ends the connection without leaving state at the peer: FIN if the peer has closed and we
    /// have not, otherwise RST with the sequence number that the peer expects.
    pub fn leave(&mut self, now: Nanos) {
        self.now = now;
        self.pieces.clear();
        self.kept.clear();
        self.waiting = None;
        if self.broken || self.peer_fin && self.our_fin || self.packets == 0 {
            return;
        }
        let fin = self.peer_fin && !self.our_fin && self.acked == self.next;
        let flags = if fin { flag::FIN } else { flag::RST } | flag::ACK;
        let parting = |seq: u32| RawSegment {
            seq,
            ack: self.due,
            flags,
            window: self.window,
            options: self.usual_options(0),
            ..RawSegment::default()
        };
        // unacknowledged data may have arrived, or may have a gap
        let all = parting(self.next);
        let acked = parting(self.acked);
        let holes = self.answered && self.acked != self.next;
        self.our_fin |= fin;
        self.send(all);
        if holes && !fin {
            self.send(acked);
        }
    }

    /// Handles timeouts; returns the event of a step that waited long enough.
    pub fn tick(&mut self, now: Nanos) -> Option<PacketKind> {
        self.now = now;
        if self.may_resend() && self.resend_at <= now {
            self.resend();
        }
        match self.waiting.clone() {
            Some(StepWait::Expect { until, .. }) if until <= now => {
                self.waiting = None;
                return Some(PacketKind::Nothing);
            }
            Some(StepWait::Open { with, tries, at }) if at <= now && tries < SYN_TRIES => {
                self.next = self.iss;
                self.syn(with);
                let at = now + SYN_AGAIN;
                self.waiting = Some(StepWait::Open { with, tries: tries + 1, at });
            }
            Some(StepWait::Open { with, tries, at }) if at <= now => {
                self.waiting = Some(StepWait::Open { with, tries, at: Nanos::NEVER });
            }
            Some(StepWait::Pieces) => self.pieces_out(now),
            _ => {}
        }
        None
    }

    /// Handles a received segment for us.
    pub fn take(&mut self, now: Nanos, head: &Head, payload: &[u8]) -> ReceivedSegment {
        self.now = now;
        let mut heard = ReceivedSegment::default();
        if head.has(flag::SYN) && !self.answered && !head.has(flag::RST) {
            self.irs = head.seq;
            self.due = head.seq.wrapping_add(1);
            self.answered = true;
            self.stamped &= head.stamps.is_some();
            heard.is_established = true;
        }
        self.lines.push(format!("< {}", arrived_line(head, payload.len(), self.iss, self.irs)));
        self.peer_window = u32::from(head.window);
        if let Some((value, _)) = head.stamps {
            self.echo = value;
        }
        if head.has(flag::ACK) && is_after(head.ack, self.acked) {
            self.acked = head.ack;
            self.kept.retain(|one| is_after(one.seq.wrapping_add(one.span()), head.ack));
            self.resends = 0;
            self.resend_at = now + RESEND;
            if is_after(self.acked, self.next) {
                // data that filled a gap released the data after it
                self.next = self.acked;
            }
        }
        if let Some(StepWait::Expect { kinds, .. }) = &self.waiting {
            heard.saw = kinds.iter().copied().find(|kind| is_kind(*kind, head, payload.len()));
            if heard.saw.is_some() {
                self.waiting = None;
            }
        }
        if head.has(flag::RST) {
            heard.broken = true;
            self.broken = true;
            return heard;
        }
        if head.has(flag::SYN) {
            // the third segment of our handshake, repeated if the reply is repeated
            let ours = matches!(self.waiting, Some(StepWait::Open { .. }));
            if ours {
                self.waiting = None;
            }
            if ours || self.was_established {
                self.acknowledge(self.due);
            }
            return heard;
        }
        self.content(head, payload, &mut heard);
        heard
    }

    /// Handles content and FIN, in order or not.
    fn content(&mut self, head: &Head, payload: &[u8], heard: &mut ReceivedSegment) {
        let span = payload.len() as u32 + u32::from(head.has(flag::FIN));
        if !self.answered {
            return;
        }
        if span == 0 {
            // a probe of a window that we closed has an old sequence number, and needs a reply
            if head.seq == self.due.wrapping_sub(1) && self.acks != Acks::None {
                self.acknowledge(self.due);
            }
            return;
        }
        let old = self.due.wrapping_sub(head.seq);
        if old as i32 >= 0 && old < span {
            let new = payload.get(old as usize..).unwrap_or_default();
            heard.bytes.extend_from_slice(new);
            let before = self.due;
            self.due = head.seq.wrapping_add(span);
            heard.fin = head.has(flag::FIN);
            self.peer_fin |= heard.fin;
            self.acknowledge_new(before);
        } else if self.acks != Acks::None {
            self.acknowledge(self.due);
        }
    }

    /// Acknowledges according to the policy.
    fn acknowledge_new(&mut self, before: u32) {
        match self.acks {
            Acks::None => {}
            Acks::Each => self.acknowledge(self.due),
            Acks::Split => {
                let span = self.due.wrapping_sub(before);
                for piece in 1..=SPLIT.min(span) {
                    let part = u64::from(span) * u64::from(piece) / u64::from(SPLIT.min(span));
                    self.acknowledge(before.wrapping_add(part as u32));
                }
            }
            Acks::Ahead => {
                self.acknowledge(self.due);
                if !self.peer_fin && self.ahead < AHEAD_MAX {
                    self.ahead += AHEAD;
                    self.acknowledge(self.due.wrapping_add(AHEAD));
                }
            }
        }
    }

    fn acknowledge(&mut self, number: u32) {
        let segment = RawSegment {
            seq: self.next,
            ack: number,
            flags: flag::ACK,
            window: self.window,
            options: self.usual_options(0),
            ..RawSegment::default()
        };
        self.send(segment);
    }

    fn syn(&mut self, with: Opening) {
        let mut options = with.mss.map(mss).unwrap_or_default();
        if with.stamps {
            options.extend(stamps(self.clock(), 0));
        }
        let segment = RawSegment {
            seq: self.iss,
            flags: flag::SYN,
            window: with.window,
            options,
            ..RawSegment::default()
        };
        self.next = self.iss.wrapping_add(1);
        self.send(segment);
    }

    fn raw(&self, step: &SegmentStep, seq: u32, payload: Vec<u8>) -> RawSegment {
        let usual = if payload.is_empty() { flag::ACK } else { flag::PSH | flag::ACK };
        let flags = step.flags.unwrap_or(usual);
        let ack = match step.ack {
            Some(place) => self.ack_place(place),
            None if flags & flag::ACK != 0 => self.due,
            None => 0,
        };
        let mut options = step.options.clone();
        if options.is_empty() && flags & flag::SYN == 0 {
            options = self.usual_options(step.stamp);
        }
        RawSegment {
            seq,
            ack,
            flags,
            window: step.window.unwrap_or(self.window),
            urgent: step.urgent,
            reserved: step.reserved,
            offset: step.offset,
            options,
            payload,
            wrong_sum: step.wrong_sum,
            keep: false,
        }
    }

    fn place(&self, place: SeqPlace) -> u32 {
        let base = match place.base {
            PlaceBase::Next => self.next,
            PlaceBase::Start => self.iss.wrapping_add(1),
            PlaceBase::Edge => self.acked.wrapping_add(self.peer_window),
        };
        base.wrapping_add_signed(place.more)
    }

    fn ack_place(&self, place: SeqPlace) -> u32 {
        let base = match place.base {
            PlaceBase::Next => self.due,
            PlaceBase::Start => self.irs.wrapping_add(1),
            PlaceBase::Edge => self.due.wrapping_add(u32::from(self.window)),
        };
        base.wrapping_add_signed(place.more)
    }

    fn usual_options(&self, turn: i32) -> Vec<u8> {
        match self.stamped {
            true => stamps(self.clock().wrapping_add_signed(turn), self.echo),
            false => Vec::new(),
        }
    }

    /// Returns milliseconds, starting at a high number.
    fn clock(&self) -> u32 {
        STAMPS_FROM.wrapping_add((self.now.0 / 1_000_000) as u32)
    }

    fn pieces_out(&mut self, now: Nanos) {
        while let Some((_, segment)) = self.pieces.pop_front_if(|(at, _)| *at <= now) {
            self.send(segment);
        }
        if self.pieces.is_empty() {
            self.waiting = None;
        }
    }

    fn may_resend(&self) -> bool {
        !self.kept.is_empty() && self.resends < RESENDS && !self.broken
    }

    /// Retransmits everything unacknowledged.
    fn resend(&mut self) {
        self.resends += 1;
        self.resend_at = self.now + RESEND;
        for segment in self.kept.clone() {
            let ack = self.due;
            let window = self.window;
            let options = self.usual_options(0);
            self.send(RawSegment { ack, window, options, keep: false, ..segment });
        }
    }

    fn send(&mut self, segment: RawSegment) {
        if self.is_bounded() {
            return;
        }
        // no script can produce a segment too long for a packet: its pieces are short
        let Some(packet) = segment.packet(&self.flow) else { return };
        self.packets += 1;
        self.was_established |=
            self.answered && segment.flags & (flag::ACK | flag::RST) == flag::ACK;
        self.sent += segment.payload.len() as u64;
        self.lines.push(format!("> {}", segment.line(self.iss, self.irs)));
        self.out.push(packet);
        if segment.keep {
            if self.kept.is_empty() {
                self.resends = 0;
                self.resend_at = self.now + RESEND;
            }
            self.kept.push(segment);
        }
    }
}

/// Returns whether a well-behaved client could have sent it, so that it must be acknowledged.
fn is_well_behaved(segment: &RawSegment) -> bool {
    let odd = flag::SYN | flag::RST | flag::URG;
    let flags = segment.flags & flag::ACK != 0 && segment.flags & odd == 0;
    flags && segment.span() > 0 && !segment.wrong_sum && segment.offset.is_none()
}

/// Splits content into pieces; one empty piece without content.
fn split_content(content: &[u8], size: usize) -> Vec<&[u8]> {
    match content.is_empty() {
        true => vec![content],
        false => content.chunks(size.clamp(1, SEGMENT_MAX)).collect(),
    }
}

fn is_after(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) > 0
}

#[cfg(test)]
mod tests;
