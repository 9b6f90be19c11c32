//! A WebSocket connection (RFC 6455): it takes messages, answers pings and the closing handshake,
//! and fails on every violation. Messages get no response.

use super::head::RequestHead;
use super::{Act, Defect, Defects};
use websocket::deflate::{self, Inflater};
use websocket::frame::{CONTROL_MAX, Opcode, RSV1, write_frame};
use websocket::utf8::Utf8Check;
use websocket::{apply_mask, close, handshake};

/// Path of the WebSocket.
pub(super) const SOCKET: &str = "/ws";
/// Maximum size of a message, after inflation, and maximum number of its fragments.
const MESSAGE_MAX: u64 = 1 << 20;
const FRAGMENTS_MAX: u32 = 10_000;

/// Size of a frame whose memory cannot be allocated, with that defect.
const HUGE: u64 = 1 << 62;
/// Maximum number of bytes that a message inflates to, without a limit on it.
const INFLATED_MAX: usize = 64 << 20;
/// Number of pings on a connection that crash a server with that defect.
const PINGS_MAX: u32 = 5_000;

/// Reaction to a request for the path of the WebSocket.
pub(super) enum Handshake {
    /// A response without 101; `parts`: the connection closes after it.
    Refused {
        response: Vec<u8>,
        parts: bool,
    },
    Upgraded {
        response: Vec<u8>,
        socket: Box<SocketConnection>,
    },
}

/// Returns the reaction to a request; `None` if it is not for the WebSocket.
pub(super) fn answer_handshake(head: &RequestHead, defects: &Defects) -> Option<Handshake> {
    let path = head.target.split(|byte| *byte == b'?').next().unwrap_or_default();
    if path != SOCKET.as_bytes() {
        return None;
    }
    let has = |defect| defects.contains(&defect);
    let field = |name| head.field(name).map(String::from_utf8_lossy);
    let count = |name: &str| head.fields.iter().filter(|(found, _)| found == name).count();
    if !has_token(head, "upgrade", "websocket") {
        return Some(refusal(426, defects, head));
    }
    let proper =
        head.method == "GET" && head.minor >= 1 && has_token(head, "connection", "upgrade");
    if !proper && !has(Defect::UpgradesAnything) {
        return Some(refusal(400, defects, head));
    }
    // a body would be the first frames to one reader, and content to another
    if head.has_body() && !has(Defect::TakesBodiesForFrames) {
        return Some(refusal(400, defects, head));
    }
    let version = field("sec-websocket-version").is_some_and(|version| version == "13");
    if (!version || count("sec-websocket-version") != 1) && !has(Defect::UpgradesAnyVersion) {
        return Some(refusal(426, defects, head));
    }
    let key = field("sec-websocket-key").unwrap_or_default().into_owned();
    let valid = is_key(&key) && count("sec-websocket-key") == 1;
    if !valid && !has(Defect::UpgradesAnyKey) {
        return Some(refusal(400, defects, head));
    }
    let foreign = field("origin").is_some_and(|origin| {
        let host = field("host").unwrap_or_default();
        origin.split_once("://").is_none_or(|(_, rest)| rest != host)
    });
    if foreign && !has(Defect::UpgradesAnyOrigin) {
        return Some(refusal(403, defects, head));
    }
    Some(upgraded(head, &key, defects))
}

fn upgraded(head: &RequestHead, key: &str, defects: &Defects) -> Handshake {
    let has = |defect| defects.contains(&defect);
    let key = if has(Defect::AcceptsWrongly) { "AAAAAAAAAAAAAAAAAAAAAA==" } else { key };
    let mut response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Accept: {}\r\n",
        handshake::accept(key)
    );
    let offers = head.field("sec-websocket-extensions").map(String::from_utf8_lossy);
    let agreed = offers.as_deref().and_then(|offers| deflate::choose([offers]));
    if let Some((answer, _)) = &agreed {
        response.push_str(&format!("Sec-WebSocket-Extensions: {}\r\n", answer.value()));
    }
    if has(Defect::ChoosesAnyProtocol) {
        response.push_str("Sec-WebSocket-Protocol: chosen\r\n");
    }
    response.push_str("\r\n");
    let socket = Box::new(SocketConnection::new(defects, agreed.is_some()));
    Handshake::Upgraded { response: response.into_bytes(), socket }
}

fn refusal(status: u16, defects: &Defects, head: &RequestHead) -> Handshake {
    let (reason, fields) = match status {
        426 if defects.contains(&Defect::NamesNoVersion) => {
            ("Upgrade Required", "Upgrade: websocket\r\n")
        }
        426 => ("Upgrade Required", "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"),
        403 => ("Forbidden", ""),
        _ => ("Bad Request", ""),
    };
    let parts = !head.persistent || head.minor == 0;
    let end = if parts { "Connection: close\r\n" } else { "" };
    let response = format!(
        "HTTP/1.1 {status} {reason}\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n{fields}{end}\
        Content-Length: 0\r\n\r\n"
    );
    Handshake::Refused { response: response.into_bytes(), parts }
}

fn has_token(head: &RequestHead, name: &str, token: &str) -> bool {
    let own = head.fields.iter().filter(|(found, _)| found == name);
    own.flat_map(|(_, value)| value.split(|byte| *byte == b','))
        .any(|element| element.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// Returns whether this is the base64 form of 16 bytes (RFC 4648 section 4).
fn is_key(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let bytes = text.as_bytes();
    // the last letter before the padding has four bits without meaning
    bytes.len() == 24
        && bytes.ends_with(b"==")
        && bytes[..22].iter().all(|byte| letter(*byte))
        && b"AQgw".contains(&bytes[21])
}

/// A connection after 101.
#[derive(Debug)]
pub(super) struct SocketConnection {
    defects: Defects,
    buffer: Vec<u8>,
    /// The message whose last fragment has not arrived.
    message: Option<SocketMessage>,
    inflater: Option<Inflater>,
    pings: u32,
    over: bool,
    failed: bool,
    /// The server has crashed.
    pub(super) dead: bool,
}

#[derive(Debug, Default)]
struct SocketMessage {
    is_text: bool,
    compressed: bool,
    size: u64,
    fragments: u32,
    check: Utf8Check,
}

/// The header of a frame, valid or not.
#[derive(Clone, Copy, Debug)]
struct FrameHead {
    fin: bool,
    rsv: u8,
    opcode: Opcode,
    mask: Option<[u8; 4]>,
    length: u64,
    /// The length has its shortest form, and its highest bit is not set.
    is_proper: bool,
    size: usize,
}

impl FrameHead {
    /// Reads a header; `None` until it is complete.
    fn read(bytes: &[u8]) -> Option<FrameHead> {
        let [first, second, ..] = *bytes else { return None };
        let (length, least, mut size) = match second & 0x7f {
            126 => (u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)), 126, 4),
            127 => (u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?), 0x1_0000, 10),
            short => (u64::from(short), 0, 2),
        };
        let mut mask = None;
        if second & 0x80 != 0 {
            mask = Some(bytes.get(size..size + 4)?.try_into().ok()?);
            size += 4;
        }
        Some(FrameHead {
            fin: first & 0x80 != 0,
            rsv: first >> 4 & 7,
            opcode: Opcode::from_bits(first),
            mask,
            length: length & (u64::MAX >> 1),
            is_proper: length >= least && length >> 63 == 0,
            size,
        })
    }
}

impl SocketConnection {
    pub(super) fn new(defects: &Defects, compresses: bool) -> SocketConnection {
        SocketConnection {
            defects: defects.clone(),
            buffer: Vec::new(),
            message: None,
            inflater: compresses.then(|| Inflater::new(false)),
            pings: 0,
            over: false,
            failed: false,
            dead: false,
        }
    }

    fn has(&self, defect: Defect) -> bool {
        self.defects.contains(&defect)
    }

    /// Handles received bytes.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Vec<Act> {
        let mut acts = Vec::new();
        self.buffer.extend_from_slice(bytes);
        let mut at = 0;
        while !self.over && !self.dead {
            let Some(head) = FrameHead::read(&self.buffer[at..]) else { break };
            if let Err(code) = self.check(&head) {
                self.fail(code, &mut acts);
                break;
            }
            if head.length >= HUGE && self.has(Defect::DiesOfHugeLength) {
                self.dead = true;
                break;
            }
            let length = usize::try_from(head.length).unwrap_or(usize::MAX);
            let start = at + head.size;
            let Some(end) = start.checked_add(length).filter(|end| *end <= self.buffer.len())
            else {
                break;
            };
            let mut payload = self.buffer[start..end].to_vec();
            if let Some(key) = head.mask {
                apply_mask(key, 0, &mut payload);
            }
            at = end;
            if let Err(code) = self.take(&head, &payload, &mut acts) {
                self.fail(code, &mut acts);
            }
        }
        self.buffer.drain(..at);
        acts
    }

    /// Checks a header as soon as it is complete.
    fn check(&self, head: &FrameHead) -> Result<(), u16> {
        let starts = matches!(head.opcode, Opcode::Text | Opcode::Binary);
        let may_compress = self.inflater.is_some() && starts && head.rsv == RSV1;
        let reserved = head.rsv != 0 && !may_compress || matches!(head.opcode, Opcode::Reserved(_));
        let too_long = head.length > CONTROL_MAX as u64;
        let long = head.opcode.is_control() && (too_long || !head.fin);
        let continues = head.opcode == Opcode::Continuation;
        let mixed = starts && self.message.is_some() || continues && self.message.is_none();
        let cut = starts && !head.fin || continues;
        let wrong = [
            (head.mask.is_none(), Defect::TakesUnmasked),
            (reserved, Defect::IgnoresReserved),
            (!head.is_proper, Defect::TakesLongLengths),
            (long, Defect::TakesAnyControl),
            (mixed, Defect::TakesAnyFragment),
        ];
        let wrong = wrong.into_iter().any(|(broken, switch)| broken && !self.has(switch));
        if wrong || cut && self.has(Defect::RefusesFragments) {
            return Err(close::PROTOCOL_ERROR);
        }
        let size = self.message.as_ref().map_or(0, |message| message.size);
        let large = !head.opcode.is_control() && size.saturating_add(head.length) > MESSAGE_MAX;
        let huge = head.length >= HUGE && self.has(Defect::DiesOfHugeLength);
        match large && !huge && !self.has(Defect::TakesAnyMessage) {
            true => Err(close::TOO_BIG),
            false => Ok(()),
        }
    }

    /// Handles a frame.
    fn take(&mut self, head: &FrameHead, payload: &[u8], acts: &mut Vec<Act>) -> Result<(), u16> {
        match head.opcode {
            Opcode::Ping => self.pong(payload, acts),
            Opcode::Close => return self.close(payload, acts),
            Opcode::Pong | Opcode::Reserved(_) => {}
            Opcode::Text | Opcode::Binary | Opcode::Continuation => {
                return self.data(head, payload);
            }
        }
        Ok(())
    }

    fn pong(&mut self, payload: &[u8], acts: &mut Vec<Act>) {
        self.pings += 1;
        self.dead |= self.pings > PINGS_MAX && self.has(Defect::DiesOfPings);
        if self.has(Defect::AnswersNoPing) {
            return;
        }
        let cut = if self.has(Defect::CutsPongs) { payload.len() / 2 } else { payload.len() };
        send(Opcode::Pong, &payload[..cut], acts);
    }

    fn close(&mut self, payload: &[u8], acts: &mut Vec<Act>) -> Result<(), u16> {
        let code = match *payload {
            [] => Ok(close::NORMAL),
            [_] => Err(close::PROTOCOL_ERROR),
            [high, low, ref reason @ ..] => {
                let code = u16::from_be_bytes([high, low]);
                match (close::is_valid(code), std::str::from_utf8(reason)) {
                    (false, _) => Err(close::PROTOCOL_ERROR),
                    (true, Err(_)) => Err(close::INVALID_PAYLOAD),
                    (true, Ok(_)) => Ok(code),
                }
            }
        };
        if self.has(Defect::StaysAfterClose) {
            return Ok(());
        }
        if self.has(Defect::TakesAnyClose) {
            self.part(payload, acts);
            return Ok(());
        }
        self.part(&code?.to_be_bytes(), acts);
        Ok(())
    }

    fn data(&mut self, head: &FrameHead, payload: &[u8]) -> Result<(), u16> {
        let is_text = head.opcode == Opcode::Text;
        let compressed = head.rsv == RSV1 && self.inflater.is_some();
        if head.opcode != Opcode::Continuation {
            self.message = Some(SocketMessage { is_text, compressed, ..SocketMessage::default() });
        }
        let (any_text, by_fragment) =
            (self.has(Defect::TakesAnyText), self.has(Defect::ChecksFragments));
        let any_count = self.has(Defect::TakesAnyFragments);
        let max = match self.has(Defect::InflatesAnything) {
            true => INFLATED_MAX,
            false => MESSAGE_MAX as usize,
        };
        let message = self.message.get_or_insert_default();
        message.size += payload.len() as u64;
        message.fragments += 1;
        if message.fragments > FRAGMENTS_MAX && !any_count {
            return Err(close::TOO_BIG);
        }
        let mut plain = payload.to_vec();
        if let Some(inflater) = self.inflater.as_mut().filter(|_| message.compressed) {
            plain.clear();
            let mut inflated = inflater.push(payload, &mut plain, max);
            if head.fin && inflated.is_ok() {
                inflated = inflater.finish(&mut plain, max);
            }
            match inflated {
                Ok(()) => {}
                Err(deflate::InflateError::TooLong) => return Err(close::TOO_BIG),
                Err(_) if self.defects.contains(&Defect::TakesBadDeflate) => {}
                Err(deflate::InflateError::Broken) => return Err(close::INVALID_PAYLOAD),
            }
        }
        let valid = message.check.push(&plain) && (message.check.is_whole() || !head.fin);
        let torn = by_fragment && !message.check.is_whole();
        if message.is_text && (!valid || torn) && !any_text {
            return Err(close::INVALID_PAYLOAD);
        }
        if head.fin {
            self.message = None;
        }
        Ok(())
    }

    /// Fails the connection (RFC 6455 section 7.1.7).
    fn fail(&mut self, code: u16, acts: &mut Vec<Act>) {
        self.failed = true;
        self.part(&code.to_be_bytes(), acts);
    }

    /// Sends a Close frame and ends the connection.
    fn part(&mut self, payload: &[u8], acts: &mut Vec<Act>) {
        send(Opcode::Close, payload, acts);
        acts.push(Act::Close);
        self.over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Returns whether it ended with an error.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns whether it has received a part of a frame.
    pub(super) fn is_inside_frame(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Fails because of a frame that is not complete, with that defect.
    pub(super) fn refuse_part(&mut self) -> Vec<Act> {
        let mut acts = Vec::new();
        self.fail(close::PROTOCOL_ERROR, &mut acts);
        acts
    }
}

fn send(opcode: Opcode, payload: &[u8], acts: &mut Vec<Act>) {
    let mut out = Vec::new();
    write_frame(opcode, true, 0, None, payload, &mut out);
    acts.push(Act::Send(out));
}
