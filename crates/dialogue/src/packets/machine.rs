//! The TCP behind a script: numbers, acknowledgements, order. No clock, no device: packets and instants
//! come in, packets go out.

use super::wire::{RawSegment, arrived_line, is_kind, mss, stamps};
use super::{
    Acks, Opening, PACKETS_MAX, PacketContent, PacketKind, PlaceBase, SegmentStep, SeqPlace,
    StreamPart,
};
use std::collections::VecDeque;
use tcp::{End, Flow, Head, flag};
use units::Nanos;

/// A SYN that meets silence is sent again after this, so often.
const SYN_AGAIN: Nanos = Nanos::SECOND;
const SYN_TRIES: u32 = 3;
/// Content that is not acknowledged is sent again after this, so often: a server whose queue is full drops
/// it.
const RESEND: Nanos = Nanos::SECOND;
const RESENDS: u32 = 3;
/// Pieces by which one segment is acknowledged, and bytes that are acknowledged before they came, in
/// all at most.
const SPLIT: u32 = 8;
const AHEAD: u32 = 1_460;
const AHEAD_MAX: u32 = 256 << 10;
/// Content of one segment.
const SEGMENT_MAX: usize = 1_400;
/// Ticks of our time stamps begin so high that they can be turned back.
const STAMPS_FROM: u32 = 1 << 30;

/// What a packet that came brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeardSegment {
    /// Content that is in order now.
    pub bytes: Vec<u8>,
    pub fin: bool,
    /// The peer broke the connection.
    pub broken: bool,
    /// The handshake stands since this packet.
    pub stands: bool,
    /// What a step waited for has come.
    pub saw: Option<PacketKind>,
}

/// What the machine waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StepWait {
    /// The answer to the SYN of a handshake, which is sent again at the instant.
    Open {
        with: Opening,
        tries: u32,
        at: Nanos,
    },
    Expect {
        kinds: Vec<PacketKind>,
        until: Nanos,
    },
    /// Segments that go out by and by.
    Pieces,
}

/// One connection, or what a server may take for one.
#[derive(Debug)]
pub struct PacketTalk {
    flow: Flow,
    iss: u32,
    /// The next number of ours; what the peer has acknowledged.
    next: u32,
    acked: u32,
    irs: u32,
    /// The next number of the peer's, once it has said one.
    due: u32,
    answered: bool,
    peer_window: u32,
    window: u16,
    /// Time stamps are in use; the peer's last.
    stamped: bool,
    echo: u32,
    acks: Acks,
    ahead: u32,
    stream: Vec<u8>,
    waiting: Option<StepWait>,
    pieces: VecDeque<(Nanos, RawSegment)>,
    /// What is not acknowledged, when it is sent again, and how often it was.
    kept: Vec<RawSegment>,
    resend_at: Nanos,
    resends: u32,
    out: Vec<Vec<u8>>,
    lines: Vec<String>,
    packets: u64,
    /// Content that has gone out, in bytes.
    sent: u64,
    peer_fin: bool,
    broken: bool,
    our_fin: bool,
    /// We have acknowledged the peer's SYN.
    stood: bool,
    now: Nanos,
}

impl PacketTalk {
    /// A conversation from one end to another; `iss` is the number of its first SYN.
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
            stood: false,
            now: Nanos::ZERO,
        }
    }

    /// What our side is called.
    pub fn from(&self) -> End {
        self.flow.from
    }

    /// Packets that are to go out, in order.
    pub fn take_out(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.out)
    }

    /// What went out and came since this was asked last, a line for each segment: `> S 0:0(0) win 1`.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// More packets than a conversation may send.
    pub fn is_bounded(&self) -> bool {
        self.packets >= PACKETS_MAX
    }

    /// Bytes of content that went out.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// A step of it is under way.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// The answer to the SYN of a handshake has not come.
    pub fn is_opening(&self) -> bool {
        matches!(self.waiting, Some(StepWait::Open { .. }))
    }

    /// When there is something to do though nothing comes.
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

    /// The bytes that parts are cut from.
    pub fn set_stream(&mut self, content: &PacketContent) {
        self.stream = content.bytes(&crate::text::Values::default());
    }

    pub fn set_acks(&mut self, acks: Acks) {
        self.acks = acks;
    }

    /// Offers this window from now on.
    pub fn set_window(&mut self, window: u16) {
        self.window = window;
        if self.answered {
            self.acknowledge(self.due);
        }
    }

    /// Begins a handshake.
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

    /// Sends what the step says, at once or by and by.
    pub fn say(&mut self, now: Nanos, step: &SegmentStep) {
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
        // only what goes where it belongs moves our own number
        let counts = step.seq.is_none();
        self.our_fin |= counts && flags & flag::FIN != 0;
        let mut at = now;
        for _ in 0..step.times.max(1) {
            let mut number = seq;
            for content in cut(&content, step.size.map_or(SEGMENT_MAX, usize::from)) {
                let mut segment = self.raw(step, number, content.to_vec());
                segment.keep = counts && is_polite(&segment) && step.stamp == 0;
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

    /// Bytes behind everything that was said.
    pub fn say_bytes(&mut self, now: Nanos, bytes: &[u8]) {
        let data = Some(PacketContent::Bytes(bytes.to_vec()));
        self.say(now, &SegmentStep { data, times: 1, ..SegmentStep::default() });
    }

    /// The whole stream behind everything that was said, in order.
    pub fn say_stream(&mut self, now: Nanos) {
        let part = Some(StreamPart::ALL);
        self.say(now, &SegmentStep { part, times: 1, ..SegmentStep::default() });
    }

    /// FIN from us.
    pub fn half_close(&mut self, now: Nanos) {
        let flags = Some(flag::FIN | flag::ACK);
        self.say(now, &SegmentStep { flags, times: 1, ..SegmentStep::default() });
    }

    /// Leaves nothing behind: FIN where the peer has ended in order and we have not, otherwise RST with
    /// the number that the peer waits for.
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
        // what the peer has and has not acknowledged yet may be there, or have a hole
        let (all, acked) = (parting(self.next), parting(self.acked));
        let holes = self.answered && self.acked != self.next;
        self.our_fin |= fin;
        self.send(all);
        if holes && !fin {
            self.send(acked);
        }
    }

    /// Time has come; gives what a step saw that waited long enough.
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

    /// Takes a segment that came for us.
    pub fn take(&mut self, now: Nanos, head: &Head, payload: &[u8]) -> HeardSegment {
        self.now = now;
        let mut heard = HeardSegment::default();
        if head.has(flag::SYN) && !self.answered && !head.has(flag::RST) {
            self.irs = head.seq;
            (self.due, self.answered) = (head.seq.wrapping_add(1), true);
            self.stamped &= head.stamps.is_some();
            heard.stands = true;
        }
        self.lines.push(format!("< {}", arrived_line(head, payload.len(), self.iss, self.irs)));
        self.peer_window = u32::from(head.window);
        if let Some((value, _)) = head.stamps {
            self.echo = value;
        }
        if head.has(flag::ACK) && is_after(head.ack, self.acked) {
            self.acked = head.ack;
            self.kept.retain(|one| is_after(one.seq.wrapping_add(one.span()), head.ack));
            (self.resends, self.resend_at) = (0, now + RESEND);
            if is_after(self.acked, self.next) {
                // what filled a hole brought what lay behind it
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
            (heard.broken, self.broken) = (true, true);
            return heard;
        }
        if head.has(flag::SYN) {
            // of a handshake of ours the third segment, again where the answer comes again
            let ours = matches!(self.waiting, Some(StepWait::Open { .. }));
            if ours {
                self.waiting = None;
            }
            if ours || self.stood {
                self.acknowledge(self.due);
            }
            return heard;
        }
        self.content(head, payload, &mut heard);
        heard
    }

    /// Content and FIN, in order or not.
    fn content(&mut self, head: &Head, payload: &[u8], heard: &mut HeardSegment) {
        let span = payload.len() as u32 + u32::from(head.has(flag::FIN));
        if !self.answered {
            return;
        }
        if span == 0 {
            // a probe of a window that we closed has an old number, and wants an answer
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

    /// As the policy has it.
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

    /// Milliseconds, from a high number on.
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

    /// Everything that is not acknowledged, once more.
    fn resend(&mut self) {
        self.resends += 1;
        self.resend_at = self.now + RESEND;
        for segment in self.kept.clone() {
            let (ack, window, options) = (self.due, self.window, self.usual_options(0));
            self.send(RawSegment { ack, window, options, keep: false, ..segment });
        }
    }

    fn send(&mut self, segment: RawSegment) {
        if self.is_bounded() {
            return;
        }
        // what is too long for a packet is what no script can have said: its pieces are short
        let Some(packet) = segment.packet(&self.flow) else { return };
        self.packets += 1;
        self.stood |= self.answered && segment.flags & (flag::ACK | flag::RST) == flag::ACK;
        self.sent += segment.payload.len() as u64;
        self.lines.push(format!("> {}", segment.line(self.iss, self.irs)));
        self.out.push(packet);
        if segment.keep {
            if self.kept.is_empty() {
                (self.resends, self.resend_at) = (0, self.now + RESEND);
            }
            self.kept.push(segment);
        }
    }
}

/// A well-behaved client could have sent it, and has to see it acknowledged.
fn is_polite(segment: &RawSegment) -> bool {
    let odd = flag::SYN | flag::RST | flag::URG;
    let flags = segment.flags & flag::ACK != 0 && segment.flags & odd == 0;
    flags && segment.span() > 0 && !segment.wrong_sum && segment.offset.is_none()
}

/// Pieces of content; one empty piece where there is none.
fn cut(content: &[u8], size: usize) -> Vec<&[u8]> {
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
