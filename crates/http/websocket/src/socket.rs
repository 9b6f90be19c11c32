//! One open connection: messages in and out, replies to control frames, and the closing handshake.

use crate::close;
use crate::deflate::{Agreed, Deflater, InflateError, Inflater};
use crate::frame::{CONTROL_MAX, Header, HeaderReader, Opcode, RSV1, write_frame};
use crate::mask::{Masking, apply_mask};
use crate::utf8::Utf8Check;
use std::ops::Range;

/// Side of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// Limits on data from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLimits {
    /// Bytes of a message, after decompression.
    pub message_max: usize,
    /// Maximum number of frames of a message.
    pub frames_max: u32,
}

impl Default for MessageLimits {
    /// Returns 64 MiB in 131,072 frames.
    fn default() -> MessageLimits {
        MessageLimits { message_max: 64 << 20, frames_max: 1 << 17 }
    }
}

/// Options of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    pub role: Side,
    /// Masking of outgoing frames; [`Masking::Off`] for servers.
    pub masking: Masking,
    pub limits: MessageLimits,
    /// Text must be UTF-8, and fails at its first wrong byte.
    pub check_utf8: bool,
    pub deflate: Option<Agreed>,
}

impl SocketOptions {
    /// Returns a client with these masks and the default limits, which checks text.
    pub fn client(masking: Masking) -> SocketOptions {
        let (role, limits) = (Side::Client, MessageLimits::default());
        SocketOptions { role, masking, limits, check_utf8: true, deflate: None }
    }

    /// Returns a server with the default limits, which checks text.
    pub fn server() -> SocketOptions {
        SocketOptions { role: Side::Server, ..SocketOptions::client(Masking::Off) }
    }
}

/// Place of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// In the input of the call that returned it.
    Input(Range<usize>),
    /// In the socket, until its next input.
    Held,
}

/// Meaning of a piece of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// All input was consumed, and no message is complete.
    Nothing,
    /// A message is whole. `wire`: bytes of its frames.
    Message { text: bool, frames: u32, wire: u64, payload: Payload },
    /// A ping, for which a pong was written.
    Ping,
    /// A pong, solicited or unsolicited; its payload is kept.
    Pong,
    /// Close frame from the peer. Its code is `None` if the frame is empty.
    Close { code: Option<u16> },
}

/// Consumed bytes of the input, and their meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub consumed: usize,
    pub event: SocketEvent,
}

/// Violation by the peer. The close frame with this code was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    pub code: u16,
    pub why: &'static str,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (close code {})", self.why, self.code)
    }
}

impl std::error::Error for Violation {}

const fn violation(why: &'static str) -> Violation {
    Violation { code: close::PROTOCOL_ERROR, why }
}

/// A message of which frames have been received.
#[derive(Clone, Copy, Debug)]
struct Partial {
    text: bool,
    compressed: bool,
    frames: u32,
    wire: u64,
    utf8: Utf8Check,
}

/// A frame whose payload is incomplete.
#[derive(Clone, Copy, Debug)]
struct Open {
    header: Header,
    taken: u64,
}

/// Buffers above this are not kept between messages.
const KEPT_MAX: usize = 64 << 10;

/// Connection after its handshake.
#[derive(Debug)]
pub struct WebSocket {
    role: Side,
    masking: Masking,
    limits: MessageLimits,
    check_utf8: bool,
    header: HeaderReader,
    open: Option<Open>,
    partial: Option<Partial>,
    /// Payload of the current message, or of the last one.
    message: Vec<u8>,
    /// Payload of the last control frame.
    control: Vec<u8>,
    /// The last event's payload is in `control`.
    holds_control: bool,
    /// `message` belongs to a message that is over.
    stale: bool,
    sent_close: bool,
    got_close: bool,
    failed: bool,
    coding: Option<Box<Coding>>,
}

/// Compression of both directions.
#[derive(Debug)]
struct Coding {
    deflater: Deflater,
    inflater: Inflater,
    scratch: Vec<u8>,
}

impl WebSocket {
    /// Returns a connection whose handshake is over.
    pub fn new(options: &SocketOptions) -> WebSocket {
        let coding = options.deflate.map(|agreed| Box::new(Coding::new(options.role, &agreed)));
        WebSocket {
            role: options.role,
            masking: options.masking.clone(),
            limits: options.limits,
            check_utf8: options.check_utf8,
            header: HeaderReader::default(),
            open: None,
            partial: None,
            message: Vec::new(),
            control: Vec::new(),
            holds_control: false,
            stale: false,
            sent_close: false,
            got_close: false,
            failed: false,
            coding,
        }
    }

    /// Returns whether a close frame was sent: no data may follow it.
    pub fn is_closing(&self) -> bool {
        self.sent_close
    }

    /// Returns whether both close frames were exchanged, or the peer violated the protocol.
    pub fn is_closed(&self) -> bool {
        self.failed || self.sent_close && self.got_close
    }

    /// Returns whether the input ended inside a frame or message.
    pub fn is_inside(&self) -> bool {
        self.header.is_inside() || self.open.is_some() || self.partial.is_some()
    }

    /// Returns the state of the masks if nothing else must be kept until the next message: there is
    /// no compression, no incomplete message and no closing handshake.
    pub fn masks_at_rest(&self) -> Option<Masking> {
        let ends = self.sent_close || self.got_close || self.failed;
        let rests = !self.is_inside() && !ends && self.coding.is_none();
        rests.then(|| self.masking.clone())
    }

    /// Returns the bytes of an event's payload.
    pub fn payload<'a>(&'a self, payload: &Payload, input: &'a [u8]) -> &'a [u8] {
        match payload {
            Payload::Input(range) => input.get(range.clone()).unwrap_or_default(),
            Payload::Held if self.holds_control => &self.control,
            Payload::Held => &self.message,
        }
    }
}

/// Input.
impl WebSocket {
    /// Processes input up to the next event; must be called again with the rest. Replies are
    /// written to `out`.
    ///
    /// # Errors
    /// Fails if the peer violates the protocol or a limit; the connection must be closed after
    /// `out` was sent, and takes no further input.
    pub fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, Violation> {
        self.drop_stale();
        if self.failed || self.got_close {
            // RFC 6455 section 5.5.1: bytes after a close frame are ignored
            return Ok(Received { consumed: input.len(), event: SocketEvent::Nothing });
        }
        let result = self.take(input, out);
        if let Err(failure) = &result {
            self.failed = true;
            self.write_close(Some(failure.code), "", out);
        }
        result
    }

    fn drop_stale(&mut self) {
        self.holds_control = false;
        if std::mem::take(&mut self.stale) {
            self.message.clear();
            if self.message.capacity() > KEPT_MAX {
                self.message = Vec::new();
            }
        }
    }

    fn take(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, Violation> {
        let mut rest = input;
        loop {
            let mut frame = match self.open.take() {
                Some(frame) => frame,
                None => {
                    let before = rest.len();
                    let header = self.header.take(&mut rest);
                    self.count_wire(before - rest.len());
                    match header.map_err(|_| violation("a length that is not in its form"))? {
                        None => {
                            return Ok(Received {
                                consumed: input.len(),
                                event: SocketEvent::Nothing,
                            });
                        }
                        Some(header) => self.begin(&header, before - rest.len())?,
                    }
                }
            };
            let at = input.len() - rest.len();
            if let Some(received) = self.take_single_frame(&frame, rest, at) {
                return received;
            }
            let wanted = frame.header.length - frame.taken;
            let count = usize::try_from(wanted).map_or(rest.len(), |wanted| wanted.min(rest.len()));
            let (piece, after) = rest.split_at(count);
            self.add(&frame, piece)?;
            frame.taken += count as u64;
            rest = after;
            if frame.taken < frame.header.length {
                self.open = Some(frame);
                return Ok(Received { consumed: input.len(), event: SocketEvent::Nothing });
            }
            if let Some(event) = self.end_frame(&frame, out)? {
                return Ok(Received { consumed: input.len() - rest.len(), event });
            }
        }
    }

    fn count_wire(&mut self, count: usize) {
        if let Some(partial) = &mut self.partial {
            partial.wire += count as u64;
        }
    }

    /// Checks a header against the rules and the previous frames.
    fn begin(&mut self, header: &Header, size: usize) -> Result<Open, Violation> {
        match (self.role, header.mask) {
            (Side::Client, Some(_)) => return Err(violation("a masked frame from a server")),
            (Side::Server, None) => return Err(violation("an unmasked frame from a client")),
            _ => {}
        }
        let first = matches!(header.opcode, Opcode::Text | Opcode::Binary);
        let allowed = if first && self.coding.is_some() { RSV1 } else { 0 };
        if header.rsv & !allowed != 0 {
            return Err(violation("a reserved bit without an extension that defines it"));
        }
        if let Opcode::Reserved(_) = header.opcode {
            return Err(violation("a reserved opcode"));
        }
        if header.opcode.is_control() {
            if !header.fin {
                return Err(violation("a fragmented control frame"));
            }
            if header.length > CONTROL_MAX as u64 {
                return Err(violation("a control frame with more than 125 bytes"));
            }
            self.control.clear();
        } else {
            self.begin_data(header, first, size)?;
        }
        Ok(Open { header: *header, taken: 0 })
    }

    fn begin_data(&mut self, header: &Header, first: bool, size: usize) -> Result<(), Violation> {
        match (&self.partial, first) {
            (None, true) => {
                self.partial = Some(Partial {
                    text: header.opcode == Opcode::Text,
                    compressed: header.rsv & RSV1 != 0,
                    frames: 0,
                    wire: size as u64,
                    utf8: Utf8Check::default(),
                });
            }
            (None, false) => return Err(violation("a continuation frame without a message")),
            (Some(_), true) => return Err(violation("a new message inside a fragmented one")),
            (Some(_), false) => {}
        }
        let Some(partial) = &mut self.partial else { return Ok(()) };
        partial.frames += 1;
        let too_big = |why| Violation { code: close::TOO_BIG, why };
        if partial.frames > self.limits.frames_max {
            return Err(too_big("a message of more frames than the limit"));
        }
        let room = self.limits.message_max.saturating_sub(self.message.len()) as u64;
        if !partial.compressed && header.length > room {
            return Err(too_big("a message above the limit"));
        }
        Ok(())
    }

    /// Returns a complete message in one frame, if all of it is in the input and not compressed: no
    /// copy is needed.
    #[inline]
    fn take_single_frame(
        &mut self,
        frame: &Open,
        rest: &[u8],
        at: usize,
    ) -> Option<Result<Received, Violation>> {
        let Header { fin, mask: None, length, opcode, .. } = frame.header else { return None };
        let length = usize::try_from(length).ok().filter(|length| *length <= rest.len())?;
        let partial = self.partial.filter(|it| it.frames == 1 && !it.compressed)?;
        if !fin || opcode.is_control() || frame.taken > 0 {
            return None;
        }
        let payload = &rest[..length];
        if partial.text && self.check_utf8 && std::str::from_utf8(payload).is_err() {
            return Some(Err(NOT_UTF8));
        }
        self.partial = None;
        let event = SocketEvent::Message {
            text: partial.text,
            frames: 1,
            wire: partial.wire + length as u64,
            payload: Payload::Input(at..at + length),
        };
        Some(Ok(Received { consumed: at + length, event }))
    }

    /// Processes a piece of a frame's payload.
    fn add(&mut self, frame: &Open, piece: &[u8]) -> Result<(), Violation> {
        let Header { opcode, mask, .. } = frame.header;
        if opcode.is_control() {
            let from = self.control.len();
            self.control.extend_from_slice(piece);
            if let Some(key) = mask {
                apply_mask(key, frame.taken, &mut self.control[from..]);
            }
            return Ok(());
        }
        self.count_wire(piece.len());
        let Some(partial) = &mut self.partial else { return Ok(()) };
        let from = self.message.len();
        if partial.compressed
            && let Some(coding) = &mut self.coding
        {
            let Coding { inflater, scratch, .. } = &mut **coding;
            scratch.clear();
            scratch.extend_from_slice(piece);
            if let Some(key) = mask {
                apply_mask(key, frame.taken, scratch);
            }
            let pushed = inflater.push(scratch, &mut self.message, self.limits.message_max);
            pushed.map_err(inflate_failure)?;
        } else {
            self.message.extend_from_slice(piece);
            if let Some(key) = mask {
                apply_mask(key, frame.taken, &mut self.message[from..]);
            }
        }
        if partial.text && self.check_utf8 && !partial.utf8.push(&self.message[from..]) {
            return Err(NOT_UTF8);
        }
        Ok(())
    }

    /// Ends a frame.
    fn end_frame(
        &mut self,
        frame: &Open,
        out: &mut Vec<u8>,
    ) -> Result<Option<SocketEvent>, Violation> {
        match frame.header.opcode {
            Opcode::Ping => {
                let payload = std::mem::take(&mut self.control);
                self.write_control(Opcode::Pong, &payload, out);
                self.control = payload;
                self.holds_control = true;
                Ok(Some(SocketEvent::Ping))
            }
            Opcode::Pong => {
                self.holds_control = true;
                Ok(Some(SocketEvent::Pong))
            }
            Opcode::Close => self.end_by_peer(out).map(Some),
            _ if frame.header.fin => self.end_message().map(Some),
            _ => Ok(None),
        }
    }

    fn end_message(&mut self) -> Result<SocketEvent, Violation> {
        let Some(mut partial) = self.partial.take() else { return Ok(SocketEvent::Nothing) };
        if partial.compressed
            && let Some(coding) = &mut self.coding
        {
            let from = self.message.len();
            let finished = coding.inflater.finish(&mut self.message, self.limits.message_max);
            finished.map_err(inflate_failure)?;
            if partial.text && self.check_utf8 && !partial.utf8.push(&self.message[from..]) {
                return Err(NOT_UTF8);
            }
        }
        if partial.text && self.check_utf8 && !partial.utf8.is_whole() {
            return Err(NOT_UTF8);
        }
        self.stale = true;
        let Partial { text, frames, wire, .. } = partial;
        Ok(SocketEvent::Message { text, frames, wire, payload: Payload::Held })
    }

    /// Handles the peer's close frame, and answers it with its own code.
    fn end_by_peer(&mut self, out: &mut Vec<u8>) -> Result<SocketEvent, Violation> {
        let code = match *self.control {
            [] => None,
            [_] => return Err(violation("a close frame with one byte")),
            [high, low, ref reason @ ..] => {
                let code = u16::from_be_bytes([high, low]);
                if !close::is_valid(code) {
                    return Err(violation("a close code that must not be sent"));
                }
                if std::str::from_utf8(reason).is_err() {
                    return Err(Violation {
                        code: close::INVALID_PAYLOAD,
                        why: "a close reason that is not UTF-8",
                    });
                }
                Some(code)
            }
        };
        self.got_close = true;
        self.holds_control = true;
        self.write_close(code, "", out);
        Ok(SocketEvent::Close { code })
    }
}

const NOT_UTF8: Violation =
    Violation { code: close::INVALID_PAYLOAD, why: "text that is not UTF-8" };

fn inflate_failure(error: InflateError) -> Violation {
    match error {
        InflateError::Broken => {
            Violation { code: close::INVALID_PAYLOAD, why: "a corrupt compressed message" }
        }
        InflateError::TooLong => {
            Violation { code: close::TOO_BIG, why: "a message above the limit" }
        }
    }
}

/// Output.
impl WebSocket {
    /// Appends a message in one frame, compressed if negotiated. After a close frame, writes
    /// nothing.
    pub fn send(&mut self, text: bool, payload: &[u8], out: &mut Vec<u8>) {
        self.send_in_frames(text, payload, usize::MAX, out);
    }

    /// Appends a message in frames of at most `frame_max` bytes.
    pub fn send_in_frames(
        &mut self,
        text: bool,
        payload: &[u8],
        frame_max: usize,
        out: &mut Vec<u8>,
    ) {
        if self.sent_close {
            return;
        }
        let mut coding = self.coding.take();
        let (payload, rsv) = match &mut coding {
            Some(coding) => coding.compress(payload),
            None => (payload, 0),
        };
        let frame_max = frame_max.max(1);
        let count = payload.len().div_ceil(frame_max).max(1);
        for frame in 0..count {
            let from = frame * frame_max;
            let piece = &payload[from..payload.len().min(from.saturating_add(frame_max))];
            let (opcode, rsv) = match (frame, text) {
                (0, true) => (Opcode::Text, rsv),
                (0, false) => (Opcode::Binary, rsv),
                _ => (Opcode::Continuation, 0),
            };
            let key = self.masking.next_key();
            write_frame(opcode, frame + 1 == count, rsv, key, piece, out);
        }
        self.coding = coding;
    }

    /// Appends a ping; the payload is cut to 125 bytes.
    pub fn ping(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        self.write_control(Opcode::Ping, payload, out);
    }

    /// Appends an unsolicited pong; the payload is cut to 125 bytes.
    pub fn pong(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        self.write_control(Opcode::Pong, payload, out);
    }

    /// Begins the closing handshake, or completes it. The reason is truncated to the permitted
    /// length.
    pub fn close(&mut self, code: Option<u16>, reason: &str, out: &mut Vec<u8>) {
        self.write_close(code, reason, out);
    }

    fn write_close(&mut self, code: Option<u16>, reason: &str, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        if let Some(code) = code {
            payload.extend_from_slice(&code.to_be_bytes());
            let mut end = reason.len().min(CONTROL_MAX - 2);
            while !reason.is_char_boundary(end) {
                end -= 1;
            }
            payload.extend_from_slice(&reason.as_bytes()[..end]);
        }
        self.write_control(Opcode::Close, &payload, out);
        self.sent_close = true;
    }

    fn write_control(&mut self, opcode: Opcode, payload: &[u8], out: &mut Vec<u8>) {
        if !self.sent_close {
            let payload = &payload[..payload.len().min(CONTROL_MAX)];
            write_frame(opcode, true, 0, self.masking.next_key(), payload, out);
        }
    }
}

impl Coding {
    fn new(role: Side, agreed: &Agreed) -> Coding {
        let client = (agreed.client_window_bits, agreed.client_no_context_takeover);
        let server = (agreed.server_window_bits, agreed.server_no_context_takeover);
        let (own, peer) = match role {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        Coding {
            deflater: Deflater::new(own.0, own.1),
            inflater: Inflater::new(peer.1),
            scratch: Vec::new(),
        }
    }

    /// Returns the payload to be sent, with the reserved bits of its first frame.
    fn compress<'a>(&'a mut self, payload: &'a [u8]) -> (&'a [u8], u8) {
        self.scratch.clear();
        if self.deflater.compress(payload, &mut self.scratch) {
            (&self.scratch, RSV1)
        } else {
            (payload, 0)
        }
    }
}
