//! A connection that is made by hand, for whoever tests how a server takes what no library sends: packets of the
//! worker's making, protected with the connection's keys, among those of a well-behaved client. No clock, no socket:
//! datagrams and instants come in, datagrams go out.
//!
//! It shakes hands, acknowledges what comes, sends again what is not acknowledged, keeps within the server's windows
//! and validates paths. It has no congestion control and says little: its conversations are short. What the worker
//! wants in a packet goes out as it is, once.

mod frames;
mod keys;
mod limits;
pub(crate) mod packet;
mod shake;
mod space;

pub(crate) use shake::Shake;

use crate::bare::{number, parameter_bytes, put_number};
use crate::inbox::Inbox;
use crate::session::{HandSessions, Tickets};
use conduit::IoError;
use conduit::streams::{
    self, Cutter, EARLY, NO_ALPN, NO_TICKET, PieceKind, RESET_SEEN, TRANSPORT, UNMOVED, UNNAMED,
};
use keys::{EarlyKeys, Phases};
use limits::Limits;
use packet::{ID_LEN, NumberSpace, PacketForm, parts};
use quinn_proto::crypto::Session;
use quinn_proto::{ConnectionId, ConnectionIdGenerator, RandomConnectionIdGenerator, Side};
use sample::FailureClass;
use shake::Shaking;
use space::{InFlight, InOrder, Space};
use std::collections::{BTreeMap, VecDeque};
use units::Nanos;

/// A datagram with an Initial packet, or one that validates a path, has so many bytes at least (RFC 9000 sections
/// 8.2.1 and 14.1); more than that no datagram has.
const SIZE: usize = 1_200;
/// Frames of one packet at most, in bytes.
const FRAMES_MAX: usize = 1_100;
/// What is not acknowledged is sent again after this and its doubles, so often.
const AGAIN: Nanos = Nanos::from_millis(300);
const TRIES: u32 = 6;
/// Bytes that the server may send: so many that it never waits.
const WINDOW: u64 = (1 << 30) - 1;
/// Packets that wait for keys at most; a conversation before its handshake is over is a short one.
const POSTPONED_MAX: usize = 1_024;
/// H3_NO_ERROR.
const NO_ERROR: u64 = 0x100;
/// Of QUIC's own codes (RFC 9000 section 20.1).
const APPLICATION_ERROR: u8 = 0x0c;
/// Bytes of the token behind a stateless reset (RFC 9000 section 10.3).
const TOKEN_LEN: usize = 16;

/// What goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HandOut {
    Datagram(Vec<u8>),
    /// What follows goes out from another local port.
    Port,
}

/// An identifier that the server gave us.
#[derive(Clone, Debug)]
struct GivenId {
    sequence: u64,
    id: Vec<u8>,
}

/// Bytes of a control stream that are kept: its type, and a SETTINGS frame.
const CONTROL_MAX: usize = 512;

/// The first bytes of the server's control stream (RFC 9114 section 6.2.1), and which stream that is.
#[derive(Debug, Default)]
struct ControlBegin {
    stream: Option<u64>,
    begun: Vec<u8>,
}

impl ControlBegin {
    /// These bytes of a stream in one direction are the next; `first`: none were before them.
    fn take(&mut self, stream: u64, first: bool, bytes: &[u8]) {
        if first && self.stream.is_none() && bytes.first() == Some(&0) {
            self.stream = Some(stream);
        }
        if self.stream == Some(stream) {
            let room = CONTROL_MAX - self.begun.len();
            self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// A whole frame is there (RFC 9114 section 7.1).
    fn is_whole(&self) -> bool {
        let frame = self.begun.get(1..).unwrap_or_default();
        let whole = || {
            let (_, first) = number(frame)?;
            let (length, second) = number(&frame[first..])?;
            let rest = frame.len() - first - second;
            Some(rest as u64 >= length)
        };
        whole().unwrap_or(false)
    }
}

pub(crate) struct Hand {
    session: Box<dyn Session>,
    spaces: [Space; 3],
    /// Whom the server answers to: at first what we called it.
    to: Vec<u8>,
    first_to: ConnectionId,
    from: ConnectionId,
    /// It has spoken: what it called itself stays.
    named: bool,
    token: Vec<u8>,
    spare: Vec<GivenId>,
    reset_tokens: Vec<Vec<u8>>,
    limits: Limits,
    /// Of each stream of ours the next byte; of each of theirs what came.
    said: BTreeMap<u64, u64>,
    came: BTreeMap<u64, InOrder>,
    /// Bytes of our window that are used, and those that wait for bytes before them, of all streams.
    window_used: u64,
    held: usize,
    /// What the server's control stream began with, and with what on the connection that our ticket came on.
    control: ControlBegin,
    remembered: Option<Vec<u8>>,
    /// What the server's windows hold back, in order.
    waiting: VecDeque<(u64, Vec<u8>, bool)>,
    /// Frames that go into the next packet, and those that wait until there are keys for them.
    ready: Vec<Vec<u8>>,
    postponed: Vec<Vec<u8>>,
    shaking: Shaking,
    /// Those of 0-RTT packets, until there are others, and from then on for packets of the worker's making.
    early: Option<EarlyKeys>,
    spent: Option<EarlyKeys>,
    phases: Phases,
    /// The handshake is confirmed: that was told.
    stands: bool,
    closing: Option<u64>,
    cutter: Cutter,
    payload: Vec<u8>,
    inbox: Inbox,
    over: Option<Result<(), FailureClass>>,
    out: VecDeque<HandOut>,
    tries: u32,
    heard_at: Nanos,
    now: Nanos,
}

impl Hand {
    /// With a ticket of this kind where there is one; those that come are kept. `None`: the server can have no
    /// certificate for this name.
    pub(crate) fn new(
        sessions: &HandSessions,
        name: &str,
        shake: Shake,
        tickets: Tickets,
        now: Nanos,
    ) -> Option<Hand> {
        let first_to = RandomConnectionIdGenerator::new(ID_LEN).generate_cid();
        let from = RandomConnectionIdGenerator::new(ID_LEN).generate_cid();
        let mut said = parameter_bytes((!shake.is(UNNAMED)).then_some(&from), WINDOW);
        said.extend_from_slice(&shake.parameters);
        let session = sessions.start(name, said, (tickets, !shake.is(NO_ALPN)))?;
        let mut hand = Hand {
            session,
            spaces: <[Space; 3]>::default(),
            to: first_to.to_vec(),
            first_to,
            from,
            named: false,
            token: Vec::new(),
            spare: Vec::new(),
            reset_tokens: Vec::new(),
            limits: Limits::default(),
            said: BTreeMap::new(),
            came: BTreeMap::new(),
            window_used: 0,
            held: 0,
            control: ControlBegin::default(),
            remembered: None,
            waiting: VecDeque::new(),
            ready: Vec::new(),
            postponed: Vec::new(),
            shaking: Shaking::of(shake),
            early: None,
            spent: None,
            phases: Phases::default(),
            stands: false,
            closing: None,
            cutter: Cutter::default(),
            payload: Vec::new(),
            inbox: Inbox::default(),
            over: None,
            out: VecDeque::new(),
            tries: 0,
            heard_at: now,
            now,
        };
        hand.spaces[0].keys = Some(hand.session.initial_keys(&first_to, Side::Client));
        hand.shake_hands();
        if hand.shaking.shake.is(EARLY) {
            hand.begin_early();
        }
        Some(hand)
    }

    /// What the server's control stream began with.
    pub(crate) fn control(&self) -> &[u8] {
        &self.control.begun
    }

    /// Its first frame is there, behind its type.
    pub(crate) fn has_settings(&self) -> bool {
        self.control.is_whole()
    }

    /// With what it began on the connection that the ticket came on.
    pub(crate) fn remember(&mut self, control: Vec<u8>) {
        self.remembered = Some(control);
    }

    /// What the server permitted the last time holds until it says more (RFC 9000 section 7.4.1).
    fn begin_early(&mut self) {
        self.early = self.session.early_crypto();
        match (&self.early, self.session.transport_parameters()) {
            (Some(_), Ok(Some(known))) => self.limits = Limits::of(&known),
            _ => self.tell(NO_TICKET, &[]),
        }
    }

    /// What is to go out next.
    pub(crate) fn next_out(&mut self) -> Option<HandOut> {
        self.out.pop_front()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Bytes that wait for the worker.
    pub(crate) fn waiting(&self) -> usize {
        self.inbox.waiting()
    }

    /// When there is something to do though nothing comes.
    pub(crate) fn due(&self) -> Nanos {
        if self.over.is_some() || self.shaking.passes_over {
            return Nanos::NEVER;
        }
        let flights = self.spaces.iter().flat_map(|space| space.flight.values());
        let first = flights.map(|one| one.at).min();
        // a server may not go on until it has heard of us (RFC 9002 section 6.2.2.1)
        let first = first.or((!self.stands).then_some(self.heard_at));
        first.map_or(Nanos::NEVER, |at| at + Nanos(AGAIN.0 << self.tries))
    }

    /// Time has come.
    pub(crate) fn tick(&mut self, now: Nanos) {
        self.now = now;
        if self.due() > now {
            return;
        }
        if self.tries == TRIES {
            let stood = self.stands;
            let lost =
                if stood { FailureClass::SocketTimeout } else { FailureClass::ConnectTimeout };
            self.over = Some(Err(lost));
            return;
        }
        self.tries += 1;
        self.heard_at = now;
        let mut said = false;
        let speaks = self.speaks();
        for level in NumberSpace::ALL {
            let space = &mut self.spaces[level as usize];
            if level == NumberSpace::Data && !speaks {
                // what was lost goes out with what is held back
                space.flight.values_mut().for_each(|one| one.at = now);
                continue;
            }
            let lost = std::mem::take(&mut space.flight);
            for (_, one) in lost {
                said = true;
                self.send(level, &one.frames, true);
            }
        }
        if !said {
            let known = |level: &NumberSpace| {
                let held = *level == NumberSpace::Data && self.shaking.holds();
                self.spaces[*level as usize].keys.is_some() && !held
            };
            if let Some(level) = NumberSpace::ALL.into_iter().rev().find(known) {
                self.send(level, &[0x01], false);
            }
        }
    }

    /// The socket has failed.
    pub(crate) fn lose_path(&mut self, class: FailureClass) {
        let class = match class {
            FailureClass::Refused if self.stands => FailureClass::Reset,
            other => other,
        };
        self.over.get_or_insert(Err(class));
    }

    /// Says goodbye, in packets that the server can read.
    pub(crate) fn close(&mut self) {
        if self.over.is_some() {
            return;
        }
        let known = |level: NumberSpace| self.spaces[level as usize].keys.is_some();
        if known(NumberSpace::Data) && !self.shaking.holds() {
            let mut frame = vec![0x1d];
            put_number(&mut frame, self.closing.unwrap_or(NO_ERROR));
            frame.push(0);
            return self.send(NumberSpace::Data, &frame, false);
        }
        // before the handshake is over an end of HTTP's has no other name (RFC 9000 section 10.2.3)
        let handshake = known(NumberSpace::Handshake);
        let level = if handshake { NumberSpace::Handshake } else { NumberSpace::Initial };
        self.send(level, &[0x1c, APPLICATION_ERROR, 0, 0], false);
    }
}

/// The worker's side.
impl Hand {
    /// Takes pieces.
    ///
    /// # Errors
    /// `WouldBlock` before the handshake is confirmed, or as far as the worker wanted to be before it; `Failed` where
    /// the connection is no more.
    pub(crate) fn write(&mut self, bytes: &[u8], now: Nanos) -> Result<(), IoError> {
        self.now = now;
        match self.over {
            Some(Err(class)) => return Err(IoError::Failed(class)),
            Some(Ok(())) => return Err(IoError::Failed(FailureClass::ClosedEarly)),
            None if !self.takes() => return Err(IoError::WouldBlock),
            None => {}
        }
        let mut at = 0;
        while at < bytes.len() {
            let taken = self.cutter.open(&bytes[at..]);
            at += taken.map_err(|_| IoError::Failed(FailureClass::OtherIo))?;
            let Some(head) = self.cutter.current() else { break };
            let part = self.cutter.payload(&bytes[at..]);
            at += part.len();
            self.payload.extend_from_slice(part);
            if self.cutter.pass(part.len()) {
                let payload = std::mem::take(&mut self.payload);
                self.take_piece(head, payload);
            }
        }
        self.flush();
        Ok(())
    }

    fn take_piece(&mut self, head: streams::Head, payload: Vec<u8>) {
        let code = streams::code(&payload).unwrap_or(0);
        match head.kind {
            PieceKind::Data => self.put(head.stream, payload, head.last),
            PieceKind::Reset => {
                let size = self.said.get(&head.stream).copied().unwrap_or(0);
                self.ready.push(frames::of_numbers(0x04, &[head.stream, code, size]));
            }
            PieceKind::Stop => self.ready.push(frames::of_numbers(0x05, &[head.stream, code])),
            PieceKind::Close => self.closing = Some(code),
            PieceKind::Datagram => {
                self.flush();
                self.out.push_back(HandOut::Datagram(payload));
            }
            PieceKind::Packet => {
                self.flush();
                if let [high, low, frames @ ..] = &payload[..] {
                    self.say_packet(u16::from_be_bytes([*high, *low]), frames);
                }
            }
            PieceKind::Limit => {
                self.flush();
                let wanted = usize::try_from(code).unwrap_or(usize::MAX);
                match self.limits.frames(wanted, head.stream, &self.said) {
                    Some(packets) => {
                        packets.iter().for_each(|one| self.send(NumberSpace::Data, one, true))
                    }
                    None => self.tell(streams::UNLIMITED, &[]),
                }
            }
            PieceKind::Port => self.change_port(),
            PieceKind::Hello => {
                self.flush();
                self.say_hello(head.stream, code);
            }
            PieceKind::Deed => self.perform(code),
            PieceKind::Opened
            | PieceKind::Went
            | PieceKind::Allowed
            | PieceKind::Initial
            | PieceKind::Sent
            | PieceKind::Shake
            | PieceKind::Frame => {}
        }
    }

    /// Bytes of a stream, as soon as the server takes all of them: what is longer than a window never goes
    /// out, and neither does what is said behind it.
    fn put(&mut self, stream: u64, bytes: Vec<u8>, last: bool) {
        if !self.waiting.is_empty() || !self.limits.fits(stream, bytes.len(), &self.said) {
            self.waiting.push_back((stream, bytes, last));
            return;
        }
        let mut offset = self.said.get(&stream).copied().unwrap_or(0);
        let mut rest = &bytes[..];
        loop {
            let (now, later) = rest.split_at(rest.len().min(FRAMES_MAX - 32));
            let ends = last && later.is_empty();
            self.ready.push(frames::stream(stream, offset, now, ends));
            offset += now.len() as u64;
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        self.said.insert(stream, offset);
    }

    /// What was held back and may go now.
    fn put_waiting(&mut self) {
        while let Some((stream, bytes, last)) = self.waiting.pop_front() {
            if !self.limits.fits(stream, bytes.len(), &self.said) {
                self.waiting.push_front((stream, bytes, last));
                return;
            }
            let others = std::mem::take(&mut self.waiting);
            self.put(stream, bytes, last);
            self.waiting = others;
        }
    }

    /// Goes on from another port, under another identifier where the server gave one (RFC 9000 section 9.5).
    fn change_port(&mut self) {
        self.flush();
        if self.limits.stays {
            return self.tell(UNMOVED, &[]);
        }
        self.change_identifier();
        self.out.push_back(HandOut::Port);
        self.send(NumberSpace::Data, &[0x01], true);
    }

    /// Gives pieces.
    ///
    /// # Errors
    /// There is nothing now, or the connection is no more.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, IoError> {
        let count = self.inbox.read(buffer);
        match (count, self.over) {
            (0, Some(Ok(()))) => Ok(0),
            (0, Some(Err(class))) => Err(IoError::Failed(class)),
            (0, None) => Err(IoError::WouldBlock),
            _ => Ok(count),
        }
    }

    fn tell(&mut self, kind: u64, content: &[u8]) {
        streams::put(self.inbox.pieces(), PieceKind::Frame, kind, content);
    }
}

/// The server's side.
impl Hand {
    /// Takes a datagram.
    pub(crate) fn take(&mut self, now: Nanos, datagram: &[u8]) {
        (self.now, self.heard_at) = (now, now);
        if self.over.is_some() || self.shaking.passes_over {
            return;
        }
        let (mut rest, mut understood) = (datagram.to_vec(), false);
        while let Some(parts) = parts(&rest) {
            let later = rest.split_off(parts.end);
            understood |= match parts.kind {
                PacketForm::Of(level) => self.take_packet(level, &parts, &mut rest),
                PacketForm::Retry => self.take_retry(&parts.from, &rest),
                PacketForm::Other => true,
            };
            rest = later;
        }
        if !understood && self.is_reset(datagram) {
            self.tell(RESET_SEEN, &[]);
            self.over = Some(Err(FailureClass::Reset));
        }
        self.put_waiting();
        self.flush();
        self.say_postponed();
        let held = self.shaking.holds();
        for level in NumberSpace::ALL {
            let space = &mut self.spaces[level as usize];
            // what the server could not read is not said
            if level == NumberSpace::Data && held {
                continue;
            }
            if std::mem::take(&mut space.owes)
                && let Some(ack) = space.ack()
            {
                self.send(level, &ack, false);
            }
        }
    }

    fn take_packet(
        &mut self,
        level: NumberSpace,
        parts: &packet::PacketParts,
        bytes: &mut [u8],
    ) -> bool {
        let Some((number, frames)) = self.opened(level, bytes, parts.number_at) else {
            return false;
        };
        if level == NumberSpace::Initial && !self.named {
            (self.to, self.named) = (parts.from.clone(), true);
        }
        if self.spaces[level as usize].is_new(number) && self.over.is_none() {
            self.take_frames(level, &frames);
        }
        true
    }

    /// RFC 9000 section 17.2.5: the server wants to see its token, once.
    fn take_retry(&mut self, from: &[u8], packet: &[u8]) -> bool {
        let head_end = 7 + self.from.len() + from.len();
        let body = packet.len().saturating_sub(TOKEN_LEN);
        let valid = self.token.is_empty() && !self.named && head_end < body && {
            let (head, payload) = packet.split_at(head_end);
            self.session.is_valid_retry(&self.first_to, head, payload)
        };
        if valid {
            self.token = packet[head_end..body].to_vec();
            self.to = from.to_vec();
            let keys = self.session.initial_keys(&ConnectionId::new(from), Side::Client);
            let space = &mut self.spaces[0];
            space.keys = Some(keys);
            for (_, one) in std::mem::take(&mut space.flight) {
                self.send(NumberSpace::Initial, &one.frames, true);
            }
            // it has passed over what was said early
            let early = std::mem::take(&mut self.spaces[NumberSpace::Data as usize].flight);
            for (_, one) in early {
                self.send(NumberSpace::Data, &one.frames, true);
            }
        }
        valid
    }

    /// It ends with a token by which the server says that it knows the connection no more.
    fn is_reset(&self, datagram: &[u8]) -> bool {
        let begin = datagram.len().saturating_sub(TOKEN_LEN);
        self.reset_tokens.iter().any(|token| *token == datagram[begin..])
    }

    fn confirm(&mut self) {
        if !std::mem::replace(&mut self.stands, true) {
            self.spaces[0].flight.clear();
            self.spaces[1].flight.clear();
            let allowed = Some(self.limits.streams);
            streams::put_code(self.inbox.pieces(), PieceKind::Allowed, 0, allowed);
        }
    }

    fn closed(&mut self, code: u64) {
        streams::put_code(self.inbox.pieces(), PieceKind::Close, 0, Some(code));
        let orderly = matches!(code, 0 | NO_ERROR) || code == TRANSPORT;
        self.over = Some(if orderly { Ok(()) } else { Err(FailureClass::Protocol) });
    }

    /// Frames that are ready go out, as many in one packet as it takes.
    fn flush(&mut self) {
        // a PATH_RESPONSE is sent once (RFC 9000 section 13.3), in a datagram of its own that is full
        let (answers, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.ready).into_iter().partition(|frame| frame[0] == 0x1b);
        answers.iter().for_each(|frame| self.send(NumberSpace::Data, frame, false));
        let mut packet = Vec::new();
        for frame in rest {
            if packet.len() + frame.len() > FRAMES_MAX {
                self.send(NumberSpace::Data, &packet, true);
                packet.clear();
            }
            packet.extend(frame);
        }
        if !packet.is_empty() {
            self.send(NumberSpace::Data, &packet, true);
        }
    }

    /// Frames for which there were no keys.
    fn say_postponed(&mut self) {
        if self.speaks() {
            for frames in std::mem::take(&mut self.postponed) {
                self.send(NumberSpace::Data, &frames, true);
            }
        }
    }

    /// A packet of ours. `kept`: it is sent again where it is not acknowledged.
    fn send(&mut self, level: NumberSpace, frames: &[u8], kept: bool) {
        if level == NumberSpace::Data && !self.speaks() {
            if kept && self.postponed.len() < POSTPONED_MAX {
                self.postponed.push(frames.to_vec());
            }
            return;
        }
        let path = matches!(frames.first(), Some(0x1a | 0x1b));
        let least = if level == NumberSpace::Initial || path { SIZE } else { 0 };
        let number = self.spaces[level as usize].next;
        let packet = self.sealed((level, self.form(level)), frames, 0, least);
        if packet.is_empty() {
            return;
        }
        if kept {
            let one = InFlight { frames: frames.to_vec(), at: self.now };
            self.spaces[level as usize].flight.insert(number, one);
        }
        self.out.push_back(HandOut::Datagram(packet));
    }
}
