//! One connection of the firing range.

use super::body::{BodyReader, Taken};
use super::frames::Frames;
use super::head::{self, HeadRefusal, RequestHead};
use super::socket::{Handshake, SocketConnection, answer_handshake};
use super::streams::QuicStreams;
use super::{Act, Defect, Defects, page, worker};
use super::{BODY, HEAD, IDLE, SEND, SILENT};
use units::Nanos;

/// A prefix that no HTTP/1.1 request has.
const FRAMES_BEGIN: &[u8] = b"PRI *";

/// Number of pipelined requests served per read, with the defect that forgets some.
const PIPELINED_MAX: u32 = 8;
/// Time limit of a whole message and of a whole response, with the defect that is too strict.
const STRICT: Nanos = Nanos::from_secs(1);
/// A server with that defect crashes on one in this many requests.
const CHANCE: u32 = 25;
/// Maximum duration of one piece of work.
const COST_MAX: Nanos = Nanos::from_secs(5);

#[derive(Debug)]
pub(super) struct Connection {
    defects: Defects,
    buffer: Vec<u8>,
    /// HTTP/2.
    frames: Option<Box<Frames>>,
    /// HTTP/3.
    streams: Option<Box<QuicStreams>>,
    /// WebSocket, after 101.
    socket: Option<Box<SocketConnection>>,
    state: ReadPhase,
    acts: Vec<Act>,
    served: u32,
    /// Start of the current wait: connected, first byte of the head, head read, response sent.
    since: Nanos,
    /// Instant at which the last byte was received.
    heard: Nanos,
    /// Number of reads of the current message.
    reads: u32,
    /// Since when the client has not read pending data, and when the first of it was sent.
    unsent: Option<(Nanos, Nanos)>,
    gave_up: bool,
    /// True if each request is work, and the work caused by received data.
    limited: bool,
    cost: Nanos,
    /// Number of targets with %00 seen by the whole server.
    pub(super) nuls: u32,
    /// Number of requests served by the whole server.
    pub(super) requests: u32,
    /// State left by an earlier request on any connection: the next error response has no head.
    pub(super) marked: bool,
    /// Workers blocked forever since the previous call.
    pub(super) hung: u32,
    /// Number of chunk sizes refused because they exceed the limit of a body.
    pub(super) long_chunks: u32,
    /// The server has exited.
    pub(super) dead: bool,
}

#[derive(Debug)]
enum ReadPhase {
    Head,
    Body(Box<(RequestHead, BodyReader)>),
    /// Nothing further is read, because the connection is closed or hangs.
    Over,
}

impl Connection {
    pub(super) fn new(defects: &Defects, at: Nanos) -> Connection {
        Connection {
            defects: defects.clone(),
            buffer: Vec::new(),
            frames: None,
            streams: None,
            socket: None,
            state: ReadPhase::Head,
            acts: Vec::new(),
            served: 0,
            since: at,
            heard: at,
            reads: 0,
            unsent: None,
            gave_up: false,
            limited: defects.iter().any(|defect| defect.limits_rate()),
            cost: Nanos::ZERO,
            nuls: 0,
            requests: 0,
            marked: false,
            hung: 0,
            long_chunks: 0,
            dead: false,
        }
    }

    /// Returns a QUIC connection, which receives and sends pieces of its streams.
    pub(super) fn over_quic(defects: &Defects, at: Nanos) -> Connection {
        let streams = Some(Box::new(QuicStreams::new(defects)));
        Connection { streams, ..Connection::new(defects, at) }
    }

    /// Handles received bytes.
    pub(super) fn receive(&mut self, at: Nanos, bytes: &[u8]) -> Vec<Act> {
        if self.streams.is_some() || self.socket.is_some() || self.speaks_frames(bytes) {
            return self.pass_on(at, bytes);
        }
        if !matches!(self.state, ReadPhase::Over) {
            if matches!(self.state, ReadPhase::Head) && self.buffer.is_empty() {
                self.since = at;
                self.reads = 0;
            }
            self.heard = at;
            self.reads += 1;
            if self.has(Defect::SlowReads) {
                self.spend(Nanos(u64::from(self.reads) * 10));
            }
            self.buffer.extend_from_slice(bytes);
            let before = self.served;
            let split = self.reads > 1 && matches!(self.state, ReadPhase::Head);
            if split && self.has(Defect::RefusesSplitHeads) {
                self.refuse(HeadRefusal::Status(400));
            }
            while self.step(at, before) {}
            if self.socket.is_some() {
                // bytes after the handshake belong to the WebSocket
                let rest = std::mem::take(&mut self.buffer);
                let mut acts = std::mem::take(&mut self.acts);
                acts.extend(self.pass_on(at, &rest));
                return acts;
            }
            let late = self.served > before && self.buffer.ends_with(b"\r\n\r");
            self.dead |= late && self.has(Defect::AbortsOnLateByte);
        }
        std::mem::take(&mut self.acts)
    }

    /// Returns whether the data starts like HTTP/2 with prior knowledge (RFC 9113 section 3.3).
    fn speaks_frames(&mut self, bytes: &[u8]) -> bool {
        let fresh = self.served == 0 && matches!(self.state, ReadPhase::Head);
        let begins = fresh && self.buffer.is_empty() && bytes.starts_with(FRAMES_BEGIN);
        if self.frames.is_none() && begins {
            self.frames = Some(Box::new(Frames::new(&self.defects)));
        }
        self.frames.is_some()
    }

    /// Passes received bytes to the protocol that replaces HTTP/1.1 on this connection.
    fn pass_on(&mut self, at: Nanos, bytes: &[u8]) -> Vec<Act> {
        (self.since, self.heard) = (at, at);
        if matches!(self.state, ReadPhase::Over) {
            return Vec::new();
        }
        let (acts, dead, over) = if let Some(frames) = &mut self.frames {
            (frames.receive(at, bytes), frames.dead, frames.is_over())
        } else if let Some(socket) = &mut self.socket {
            (socket.receive(bytes), socket.dead, socket.is_over())
        } else if let Some(streams) = &mut self.streams {
            let acts = streams.receive(bytes);
            self.hung += std::mem::take(&mut streams.hung);
            (acts, streams.dead, streams.is_over())
        } else {
            return Vec::new();
        };
        self.dead |= dead;
        if over {
            self.state = ReadPhase::Over;
        }
        acts
    }

    /// Handles a half-close by the client.
    pub(super) fn ended(&mut self) -> Vec<Act> {
        let half = !self.buffer.is_empty() || matches!(self.state, ReadPhase::Body(_));
        match &self.state {
            ReadPhase::Over => {}
            ReadPhase::Body(parts) if self.has(Defect::ServesHalfBodies) => {
                let response = page::response(&parts.0, &self.defects, true);
                self.acts.push(Act::Send(response));
                self.close();
            }
            _ if half && self.has(Defect::ForgetsHalfClosed) => self.state = ReadPhase::Over,
            _ => self.close(),
        }
        std::mem::take(&mut self.acts)
    }

    /// Records how many bytes wait for the client to read.
    pub(super) fn unsent(&mut self, at: Nanos, bytes: u64) {
        self.unsent = match (bytes, self.unsent) {
            (0, _) => None,
            _ if self.gave_up => None,
            (_, Some((_, first))) => Some((at, first)),
            (_, None) => Some((at, at)),
        };
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.unsent.is_some()
    }

    /// Returns when the connection or a call on it times out.
    pub(super) fn due(&self) -> Nanos {
        self.own_due().min(self.frames.as_ref().map_or(Nanos::NEVER, |frames| frames.due()))
    }

    fn own_due(&self) -> Nanos {
        if let Some((last, first)) = self.unsent {
            return match (self.has(Defect::TooStrict), self.has(Defect::WaitsForReaders)) {
                (true, _) => first + STRICT,
                (_, true) => Nanos::NEVER,
                _ => last + SEND,
            };
        }
        let (span, endless, per_read) = match (&self.state, self.buffer.is_empty()) {
            (ReadPhase::Over, _) => return Nanos::NEVER,
            (ReadPhase::Body(_), _) => (BODY, Defect::WaitsForBodies, Defect::BodyPerRead),
            (ReadPhase::Head, false) => (HEAD, Defect::WaitsForHeads, Defect::HeadPerRead),
            (ReadPhase::Head, true) if self.served == 0 => {
                (SILENT, Defect::WaitsForSilent, Defect::WaitsForSilent)
            }
            (ReadPhase::Head, true) => (IDLE, Defect::WaitsForIdle, Defect::WaitsForIdle),
        };
        let message = !self.buffer.is_empty() || matches!(self.state, ReadPhase::Body(_));
        match self.has(endless) {
            true => Nanos::NEVER,
            _ if message && self.has(Defect::TooStrict) => self.since + STRICT,
            _ if self.has(per_read) => self.heard + span,
            _ => self.since + span,
        }
    }

    /// Handles a timeout.
    pub(super) fn wake(&mut self) -> Vec<Act> {
        let own_due = self.own_due();
        if let Some(frames) = self.frames.as_mut().filter(|frames| frames.due() < own_due) {
            return frames.expire();
        }
        let message = !self.buffer.is_empty() || matches!(self.state, ReadPhase::Body(_));
        if self.unsent.take().is_some() {
            self.gave_up = true;
            self.acts.push(Act::GiveUp);
        } else if message && !matches!(self.state, ReadPhase::Over) {
            self.acts.push(Act::Send(page::error(408, true, &self.defects)));
            self.acts.push(Act::Close);
        } else {
            self.acts.push(Act::Close);
        }
        self.state = ReadPhase::Over;
        std::mem::take(&mut self.acts)
    }

    /// Returns whether it is between requests, without data of the next one.
    pub(super) fn is_idle(&self) -> bool {
        let idle = self.frames.as_ref().is_none_or(|frames| frames.is_idle())
            && self.streams.as_ref().is_none_or(|streams| streams.is_idle());
        matches!(self.state, ReadPhase::Head) && self.buffer.is_empty() && idle
    }

    /// Returns whether it is reading chunks that are longer than allowed.
    pub(super) fn awaits_long_chunk(&self) -> bool {
        matches!(&self.state, ReadPhase::Body(parts) if parts.1.is_too_long())
    }

    /// Returns whether it is in the middle of a body.
    pub(super) fn reads_body(&self) -> bool {
        matches!(self.state, ReadPhase::Body(_))
    }

    /// Returns whether a call waits for its content.
    pub(super) fn is_inside_call(&self) -> bool {
        self.frames.as_ref().is_some_and(|frames| frames.is_inside_call())
    }

    /// Returns the number of responses.
    pub(super) fn served(&self) -> u32 {
        self.served
    }

    /// Takes the work since the previous call.
    pub(super) fn take_cost(&mut self) -> Nanos {
        std::mem::take(&mut self.cost).min(COST_MAX)
    }

    fn has(&self, defect: Defect) -> bool {
        self.defects.contains(&defect)
    }

    fn spend(&mut self, span: Nanos) {
        self.cost += span;
    }

    fn close(&mut self) {
        self.acts.push(Act::Close);
        self.state = ReadPhase::Over;
    }

    /// Advances one step; returns false if more data is needed. `before`: responses before these
    /// bytes arrived.
    fn step(&mut self, at: Nanos, before: u32) -> bool {
        match std::mem::replace(&mut self.state, ReadPhase::Over) {
            ReadPhase::Over => false,
            ReadPhase::Head => self.read_head(at),
            ReadPhase::Body(parts) => self.read_body(at, before, parts),
        }
    }

    fn read_head(&mut self, at: Nanos) -> bool {
        let behind = self.served > 0 && self.has(Defect::HangsAfterGarbage);
        match head::read(&mut self.buffer, &self.defects) {
            Ok(None) => {
                self.state = ReadPhase::Head;
                false
            }
            Ok(Some(head)) => {
                if head.wants_continue(&self.defects) && self.buffer.is_empty() {
                    self.acts.push(Act::Send(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()));
                }
                self.spend(head.cost(&self.defects));
                let body = BodyReader::new(&head, &self.defects);
                self.since = at;
                self.state = ReadPhase::Body(Box::new((head, body)));
                true
            }
            Err(_) if behind => false,
            Err(_) if self.has(Defect::LeavesTraces) && std::mem::take(&mut self.marked) => {
                self.acts.push(Act::Send(b"Bad Request".to_vec()));
                self.close();
                false
            }
            Err(refusal) => {
                self.marked = true;
                self.refuse(refusal)
            }
        }
    }

    fn read_body(
        &mut self,
        at: Nanos,
        before: u32,
        mut parts: Box<(RequestHead, BodyReader)>,
    ) -> bool {
        let body = &mut parts.1;
        match body.take(&mut self.buffer, &self.defects) {
            Ok(Taken::More) => {
                self.state = ReadPhase::Body(parts);
                false
            }
            Ok(Taken::Done) => {
                if self.has(Defect::HangsOnEmptyBodies) && parts.1.is_empty(&parts.0) {
                    return false;
                }
                let cost = parts.1.cost(&self.defects);
                self.spend(cost);
                self.since = at;
                if let Some(status) = parts.1.odd_status(&self.defects) {
                    self.served += 1;
                    self.acts.push(Act::Send(page::error(status, false, &self.defects)));
                    self.state = ReadPhase::Head;
                    return true;
                }
                self.serve(before, &parts.0)
            }
            Err(refusal) => {
                self.long_chunks += u32::from(parts.1.is_too_long());
                self.refuse(refusal)
            }
        }
    }

    fn serve(&mut self, before: u32, head: &RequestHead) -> bool {
        self.served += 1;
        self.marked = false;
        self.reads = 0;
        if self.apply_target_defects(head) {
            return false;
        }
        if let Some(handshake) = answer_handshake(head, &self.defects) {
            return self.upgrade(handshake);
        }
        let costly = head.target.starts_with(page::COSTLY.as_bytes());
        if self.limited {
            self.spend(worker::service() * if costly { worker::COSTLY_FACTOR } else { 1 });
        }
        if self.served - before > PIPELINED_MAX {
            self.dead |= self.has(Defect::DiesOfPipelined);
            if self.dead || self.has(Defect::ForgetsPipelined) {
                return false;
            }
        }
        let parting = !head.persistent && !self.has(Defect::IgnoresClose);
        let faulty = head.faulty_framing || head.both_lengths && !head.chunked;
        let closes = parting && !head.faulty_framing
            || faulty
                && !self.has(Defect::KeepsAfterFaultyFraming)
                && !self.has(Defect::BelievesLength);
        let response = page::response(head, &self.defects, closes);
        let before = self.acts.len();
        self.acts.push(Act::Send(response.clone()));
        if head.both_lengths && self.has(Defect::AnswersTwice) {
            self.acts.push(Act::Send(response));
        }
        if self.has(Defect::AnswersBackwards) && before > 0 {
            self.acts.swap(before - 1, before);
        }
        if closes {
            self.close();
            return false;
        }
        self.state = ReadPhase::Head;
        true
    }

    /// Answers a WebSocket handshake; returns true if the connection reads further requests.
    fn upgrade(&mut self, handshake: Handshake) -> bool {
        match handshake {
            Handshake::Refused { response, parts } => {
                self.acts.push(Act::Send(response));
                if parts {
                    self.close();
                } else if !self.has(Defect::StaysOnRefusal) {
                    self.state = ReadPhase::Head;
                    return true;
                }
            }
            Handshake::Upgraded { response, socket } => {
                self.acts.push(Act::Send(response));
                self.socket = Some(socket);
                self.state = ReadPhase::Head;
            }
        }
        false
    }

    /// Applies defects triggered by the content of a target; returns true if one replaced the
    /// response.
    fn apply_target_defects(&mut self, head: &RequestHead) -> bool {
        let encoded = head.target.windows(3).any(|three| three == b"%00");
        self.nuls += u32::from(encoded);
        self.requests += 1;
        if self.has(Defect::CrashesByChance) && self.requests.is_multiple_of(CHANCE) {
            self.dead = true;
            return true;
        }
        let now_and_then = self.has(Defect::FailsNowAndThen) && self.nuls.is_multiple_of(5);
        let crashes = self.has(Defect::CrashesOnThirdNul) && self.nuls.is_multiple_of(3);
        if encoded && (self.has(Defect::FailsOnEncodedNul) || now_and_then) {
            self.acts.push(Act::Send(page::error(500, true, &self.defects)));
            self.close();
        } else if encoded && (self.ends_on_nul() || crashes) || self.ends_on_percent_n(head) {
            self.dead = true;
        } else if encoded && self.has(Defect::StallsOnOdd) {
            self.stall();
        } else {
            return encoded && self.has(Defect::HangsOnEncodedNul);
        }
        true
    }

    fn ends_on_percent_n(&self, head: &RequestHead) -> bool {
        self.has(Defect::DiesOnPercentN) && head.target.windows(2).any(|two| two == b"%n")
    }

    fn ends_on_nul(&self) -> bool {
        self.has(Defect::DiesOnEncodedNul) || self.has(Defect::AbortsOnEncodedNul)
    }

    /// Begins a response and does not end it.
    fn stall(&mut self) {
        self.acts.push(Act::Send(page::endless()));
        self.state = ReadPhase::Over;
    }

    fn refuse(&mut self, refusal: HeadRefusal) -> bool {
        let status = match refusal {
            HeadRefusal::Hang => {
                self.hung += u32::from(self.has(Defect::HangsOnExtensions));
                return false;
            }
            HeadRefusal::Dies => {
                self.dead = true;
                return false;
            }
            HeadRefusal::Limit(_) if self.has(Defect::HangsAtLimits) => return false,
            HeadRefusal::Limit(_) if self.has(Defect::LosesErrors) => {
                self.acts.push(Act::Reset);
                self.state = ReadPhase::Over;
                return false;
            }
            HeadRefusal::Limit(_) if self.has(Defect::FailsAtLimits) => 500,
            HeadRefusal::Limit(_) if self.has(Defect::SaysBadRequestAtLimits) => 400,
            HeadRefusal::Limit(status) | HeadRefusal::Status(status) => status,
        };
        if self.has(Defect::HangsInsteadOfRefusing) {
            return false;
        }
        if self.has(Defect::StallsOnOdd) {
            self.stall();
            return false;
        }
        if self.has(Defect::FailsInsteadOfRefusing) {
            self.acts.push(Act::Send(page::error(500, true, &self.defects)));
        } else if self.has(Defect::StaysAfterRefusing) {
            self.acts.push(Act::Send(page::error(status, false, &self.defects)));
            self.buffer.clear();
            self.state = ReadPhase::Head;
            return false;
        } else if !self.has(Defect::RefusesWithoutAWord) {
            self.acts.push(Act::Send(page::error(status, true, &self.defects)));
        }
        self.close();
        false
    }
}
