//! A crafted connection, for tests of how a server handles input that no library sends: packets
//! composed by the worker, protected with the keys of the connection, among those of a well-behaved
//! client. No clock, no socket: datagrams and times in, datagrams out.
//!
//! It performs the handshake, acknowledges packets, retransmits, respects the server's windows and
//! validates paths. It has no congestion control, as its conversations are short. Packets of the
//! worker are sent as they are, once.

mod frames;
mod keys;
mod limits;
pub(crate) mod packet;
mod shake;
mod space;

pub(crate) use shake::Shake;

use crate::inbox::Inbox;
use crate::session::{HandSessions, Tickets};
use crate::wire::{number, parameter_bytes, put_number};
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

/// The minimum size of a datagram with an Initial packet or for path validation (RFC 9000 sections
/// 8.2.1 and 14.1), and the maximum of any datagram.
const SIZE: usize = 1_200;
/// Maximum size of the frames of one packet, bytes.
const FRAMES_MAX: usize = 1_100;
/// Retransmission timeout, which doubles, and the number of retransmissions.
const AGAIN: Nanos = Nanos::from_millis(300);
const TRIES: u32 = 6;
/// Credit of the server: large enough that it never waits.
const WINDOW: u64 = (1 << 30) - 1;
/// Maximum number of packets waiting for keys; conversations before the end of the handshake are
/// short.
const POSTPONED_MAX: usize = 1_024;
/// H3_NO_ERROR.
const NO_ERROR: u64 = 0x100;
/// One of QUIC's own codes (RFC 9000 section 20.1).
const APPLICATION_ERROR: u8 = 0x0c;
/// Length of the token at the end of a stateless reset (RFC 9000 section 10.3).
const TOKEN_LEN: usize = 16;

/// Output of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HandOut {
    Datagram(Vec<u8>),
    /// The following datagrams are sent from another local port.
    Port,
}

/// A connection ID issued by the server.
#[derive(Clone, Debug)]
struct GivenId {
    sequence: u64,
    id: Vec<u8>,
}

/// Maximum number of stored bytes of a control stream: its type, and a SETTINGS frame.
const CONTROL_MAX: usize = 512;

/// The first bytes of the server's control stream (RFC 9114 section 6.2.1), and its stream number.
#[derive(Debug, Default)]
struct ControlBegin {
    stream: Option<u64>,
    begun: Vec<u8>,
}

impl ControlBegin {
    /// Takes the next bytes of a unidirectional stream; `first`: they are its first bytes.
    fn take(&mut self, stream: u64, first: bool, bytes: &[u8]) {
        if first && self.stream.is_none() && bytes.first() == Some(&0) {
            self.stream = Some(stream);
        }
        if self.stream == Some(stream) {
            let room = CONTROL_MAX - self.begun.len();
            self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// Returns whether a complete frame has arrived (RFC 9114 section 7.1).
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
    /// The server's connection ID; initially our choice.
    to: Vec<u8>,
    first_to: ConnectionId,
    from: ConnectionId,
    /// The server has replied: its own connection ID is final.
    named: bool,
    token: Vec<u8>,
    spare: Vec<GivenId>,
    reset_tokens: Vec<Vec<u8>>,
    limits: Limits,
    /// The next offset of each of our streams; the received data of each of the server's.
    sent_offsets: BTreeMap<u64, u64>,
    came: BTreeMap<u64, InOrder>,
    /// Used bytes of our connection window, and bytes waiting for earlier ones, of all streams.
    window_used: u64,
    held: usize,
    /// The start of the server's control stream, and that of the connection on which our ticket was
    /// issued.
    control: ControlBegin,
    remembered: Option<Vec<u8>>,
    /// Data held back by the server's windows, in order.
    waiting: VecDeque<(u64, Vec<u8>, bool)>,
    /// Frames for the next packet, and those that wait for keys.
    ready: Vec<Vec<u8>>,
    postponed: Vec<Vec<u8>>,
    shaking: Shaking,
    /// 0-RTT keys, until others are available, and from then on for packets composed by the worker.
    early: Option<EarlyKeys>,
    spent: Option<EarlyKeys>,
    phases: Phases,
    /// The handshake is confirmed, and this was reported.
    is_established: bool,
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
    /// Creates a connection; uses a ticket of this kind if there is one, and stores new ones.
    /// `None` if no certificate can have this name.
    pub(crate) fn new(
        sessions: &HandSessions,
        name: &str,
        shake: Shake,
        tickets: Tickets,
        now: Nanos,
    ) -> Option<Hand> {
        let first_to = RandomConnectionIdGenerator::new(ID_LEN).generate_cid();
        let from = RandomConnectionIdGenerator::new(ID_LEN).generate_cid();
        let mut parameters = parameter_bytes((!shake.is(UNNAMED)).then_some(&from), WINDOW);
        parameters.extend_from_slice(&shake.parameters);
        let session = sessions.start(name, parameters, (tickets, !shake.is(NO_ALPN)))?;
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
            sent_offsets: BTreeMap::new(),
            came: BTreeMap::new(),
            window_used: 0,
            held: 0,
            control: ControlBegin::default(),
            remembered: None,
            waiting: VecDeque::new(),
            ready: Vec::new(),
            postponed: Vec::new(),
            shaking: Shaking::new(shake),
            early: None,
            spent: None,
            phases: Phases::default(),
            is_established: false,
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
        hand.advance_handshake();
        if hand.shaking.shake.is(EARLY) {
            hand.begin_early();
        }
        Some(hand)
    }

    /// Returns the start of the server's control stream.
    pub(crate) fn control(&self) -> &[u8] {
        &self.control.begun
    }

    /// Returns whether the first frame of the control stream, after its type, has arrived.
    pub(crate) fn has_settings(&self) -> bool {
        self.control.is_whole()
    }

    /// Remembers the start of the control stream on the connection on which the ticket was issued.
    pub(crate) fn remember(&mut self, control: Vec<u8>) {
        self.remembered = Some(control);
    }

    /// Applies the server's former limits until it sends new ones (RFC 9000 section 7.4.1).
    fn begin_early(&mut self) {
        self.early = self.session.early_crypto();
        match (&self.early, self.session.transport_parameters()) {
            (Some(_), Ok(Some(known))) => self.limits = Limits::new(&known),
            _ => self.report_frame(NO_TICKET, &[]),
        }
    }

    /// Returns the next output.
    pub(crate) fn next_out(&mut self) -> Option<HandOut> {
        self.out.pop_front()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Returns the number of bytes waiting for the worker.
    pub(crate) fn waiting(&self) -> usize {
        self.inbox.waiting()
    }

    /// Returns when to act even if nothing arrives.
    pub(crate) fn due(&self) -> Nanos {
        if self.over.is_some() || self.shaking.passes_over {
            return Nanos::NEVER;
        }
        let flights = self.spaces.iter().flat_map(|space| space.flight.values());
        let first = flights.map(|one| one.at).min();
        // a server may be unable to continue until it hears from us (RFC 9002 section 6.2.2.1)
        let first = first.or((!self.is_established).then_some(self.heard_at));
        first.map_or(Nanos::NEVER, |at| at + Nanos(AGAIN.0 << self.tries))
    }

    /// Handles timers.
    pub(crate) fn tick(&mut self, now: Nanos) {
        self.now = now;
        if self.due() > now {
            return;
        }
        if self.tries == TRIES {
            let was_established = self.is_established;
            let lost = if was_established {
                FailureClass::SocketTimeout
            } else {
                FailureClass::ConnectTimeout
            };
            self.over = Some(Err(lost));
            return;
        }
        self.tries += 1;
        self.heard_at = now;
        let mut resent = false;
        let speaks = self.can_read_frames();
        for level in NumberSpace::ALL {
            let space = &mut self.spaces[level as usize];
            if level == NumberSpace::Data && !speaks {
                // lost data is sent together with held data
                space.flight.values_mut().for_each(|one| one.at = now);
                continue;
            }
            let lost = std::mem::take(&mut space.flight);
            for (_, one) in lost {
                resent = true;
                self.send(level, &one.frames, true);
            }
        }
        if !resent {
            let known = |level: &NumberSpace| {
                let held = *level == NumberSpace::Data && self.shaking.holds();
                self.spaces[*level as usize].keys.is_some() && !held
            };
            if let Some(level) = NumberSpace::ALL.into_iter().rev().find(known) {
                self.send(level, &[0x01], false);
            }
        }
    }

    /// Handles the failure of the socket.
    pub(crate) fn lose_path(&mut self, class: FailureClass) {
        let class = match class {
            FailureClass::Refused if self.is_established => FailureClass::Reset,
            other => other,
        };
        self.over.get_or_insert(Err(class));
    }

    /// Sends CONNECTION_CLOSE, in packets that the server can read.
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
        // before the handshake is complete an HTTP close must use this code (RFC 9000 section
        // 10.2.3)
        let handshake = known(NumberSpace::Handshake);
        let level = if handshake { NumberSpace::Handshake } else { NumberSpace::Initial };
        self.send(level, &[0x1c, APPLICATION_ERROR, 0, 0], false);
    }
}

/// Methods that the worker calls.
impl Hand {
    /// Processes the pieces that the worker writes.
    ///
    /// # Errors
    /// Fails with `WouldBlock` before the handshake is confirmed, or before the point at which the
    /// worker wants to write, and with `Failed` if the connection is closed.
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
                let size = self.sent_offsets.get(&head.stream).copied().unwrap_or(0);
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
                    self.send_packet(u16::from_be_bytes([*high, *low]), frames);
                }
            }
            PieceKind::Limit => {
                self.flush();
                let wanted = usize::try_from(code).unwrap_or(usize::MAX);
                match self.limits.frames(wanted, head.stream, &self.sent_offsets) {
                    Some(packets) => {
                        packets.iter().for_each(|one| self.send(NumberSpace::Data, one, true))
                    }
                    None => self.report_frame(streams::UNLIMITED, &[]),
                }
            }
            PieceKind::Port => self.change_port(),
            PieceKind::Hello => {
                self.flush();
                self.send_hello(head.stream, code);
            }
            PieceKind::Action => self.perform(code),
            PieceKind::Opened
            | PieceKind::Went
            | PieceKind::Allowed
            | PieceKind::Initial
            | PieceKind::Sent
            | PieceKind::Shake
            | PieceKind::Frame => {}
        }
    }

    /// Sends a stream's data as soon as the server's window has room for all of it: data longer
    /// than a window is never sent, nor is the data after it.
    fn put(&mut self, stream: u64, bytes: Vec<u8>, last: bool) {
        if !self.waiting.is_empty() || !self.limits.fits(stream, bytes.len(), &self.sent_offsets) {
            self.waiting.push_back((stream, bytes, last));
            return;
        }
        let mut offset = self.sent_offsets.get(&stream).copied().unwrap_or(0);
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
        self.sent_offsets.insert(stream, offset);
    }

    /// Sends held data that is now permitted.
    fn put_waiting(&mut self) {
        while let Some((stream, bytes, last)) = self.waiting.pop_front() {
            if !self.limits.fits(stream, bytes.len(), &self.sent_offsets) {
                self.waiting.push_front((stream, bytes, last));
                return;
            }
            let others = std::mem::take(&mut self.waiting);
            self.put(stream, bytes, last);
            self.waiting = others;
        }
    }

    /// Continues from another port, with another connection ID if the server issued one (RFC 9000
    /// section 9.5).
    fn change_port(&mut self) {
        self.flush();
        if self.limits.stays {
            return self.report_frame(UNMOVED, &[]);
        }
        self.change_identifier();
        self.out.push_back(HandOut::Port);
        self.send(NumberSpace::Data, &[0x01], true);
    }

    /// Reads pieces for the worker; returns their length.
    ///
    /// # Errors
    /// Fails if there is no data now, or the connection is closed.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, IoError> {
        let count = self.inbox.read(buffer);
        match (count, self.over) {
            (0, Some(Ok(()))) => Ok(0),
            (0, Some(Err(class))) => Err(IoError::Failed(class)),
            (0, None) => Err(IoError::WouldBlock),
            _ => Ok(count),
        }
    }

    fn report_frame(&mut self, kind: u64, content: &[u8]) {
        streams::put(self.inbox.pieces(), PieceKind::Frame, kind, content);
    }
}

/// Handlers for the server's input.
impl Hand {
    /// Processes a datagram.
    pub(crate) fn take(&mut self, now: Nanos, datagram: &[u8]) {
        self.now = now;
        self.heard_at = now;
        if self.over.is_some() || self.shaking.passes_over {
            return;
        }
        let mut rest = datagram.to_vec();
        let mut understood = false;
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
            self.report_frame(RESET_SEEN, &[]);
            self.over = Some(Err(FailureClass::Reset));
        }
        self.put_waiting();
        self.flush();
        self.send_postponed();
        let held = self.shaking.holds();
        for level in NumberSpace::ALL {
            let space = &mut self.spaces[level as usize];
            // data that the server cannot read yet is not sent
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
            self.to = parts.from.clone();
            self.named = true;
        }
        if self.spaces[level as usize].is_new(number) && self.over.is_none() {
            self.take_frames(level, &frames);
        }
        true
    }

    /// Handles a Retry (RFC 9000 section 17.2.5): the server requires its token, once.
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
            // the server has dropped the early data
            let early = std::mem::take(&mut self.spaces[NumberSpace::Data as usize].flight);
            for (_, one) in early {
                self.send(NumberSpace::Data, &one.frames, true);
            }
        }
        valid
    }

    /// Returns whether it ends with a token of a stateless reset.
    fn is_reset(&self, datagram: &[u8]) -> bool {
        let begin = datagram.len().saturating_sub(TOKEN_LEN);
        self.reset_tokens.iter().any(|token| *token == datagram[begin..])
    }

    fn confirm(&mut self) {
        if !std::mem::replace(&mut self.is_established, true) {
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

    /// Sends pending frames, as many per packet as fit.
    fn flush(&mut self) {
        // a PATH_RESPONSE is sent once (RFC 9000 section 13.3), in its own full datagram
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

    /// Sends frames for which there were no keys before.
    fn send_postponed(&mut self) {
        if self.can_read_frames() {
            for frames in std::mem::take(&mut self.postponed) {
                self.send(NumberSpace::Data, &frames, true);
            }
        }
    }

    /// Sends a packet. `kept`: it is retransmitted unless acknowledged.
    fn send(&mut self, level: NumberSpace, frames: &[u8], kept: bool) {
        if level == NumberSpace::Data && !self.can_read_frames() {
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
