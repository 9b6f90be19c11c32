//! Counts requests in the bytes of a connection, which need not be HTTP. A request begins with the
//! first byte; each empty line after that ends one. A GET, a POST and half a head each count as
//! one, and pipelined GETs count individually.

use crate::http2::{FRAME_HEAD, HEADERS, PREFACE, Protocol};
use conduit::streams::{self, AGAIN, Head, PieceKind};

/// Methods that change data on a server.
const WRITING: [&[u8]; 3] = [b"PUT", b"DELETE", b"PATCH"];
/// Maximum length of a word to compare: longer methods are none of these.
const WORD_MAX: usize = 8;

/// Counts the requests of one connection.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Granted requests, and how many of them the bytes have used so far.
    granted: u64,
    used: u64,
    /// Number of empty lines so far.
    heads: u64,
    /// True if bytes other than line terminators were sent.
    text: bool,
    /// Position within `LF [CR] LF`.
    line: LineKind,
    /// The first word of a possible request.
    word: Vec<u8>,
    word_over: bool,
    /// Position in the frames of HTTP/2.
    frames: Option<FramePosition>,
    /// Position in the pieces of HTTP/3.
    pieces: Option<PiecePosition>,
}

/// Position within the sent pieces of streams.
#[derive(Clone, Debug, Default)]
struct PiecePosition {
    /// Remaining bytes of the current piece.
    left: usize,
    /// Received part of the next piece's header.
    head: Vec<u8>,
    /// Highest request stream so far.
    highest: Option<u64>,
    /// Number of requests so far.
    requests: u64,
}

/// Position within the sent frames.
#[derive(Clone, Debug)]
struct FramePosition {
    /// Remaining bytes of the preface or of the current frame.
    left: usize,
    /// Received part of the next frame's header.
    head: Vec<u8>,
    /// Number of HEADERS frames so far.
    requests: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineKind {
    /// At the start of a line.
    #[default]
    Start,
    /// After a CR at the start of a line.
    StartCr,
    Within,
}

/// Number of bytes that may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendPermit {
    /// Number of bytes that may be sent; at least one.
    Bytes(usize),
    /// No bytes may be sent until another request is [granted](Requests::grant).
    Ask,
    /// No bytes may be sent, because they contain PUT, DELETE or PATCH.
    Writes,
}

impl Requests {
    /// Returns a counter for a connection of this protocol.
    pub fn new(protocol: Protocol) -> Requests {
        let frames = protocol.is_http2().then(FramePosition::default);
        let pieces = protocol.is_http3().then(PiecePosition::default);
        Requests { frames, pieces, ..Requests::default() }
    }

    /// Allows one more request.
    pub fn grant(&mut self) {
        self.granted += 1;
    }

    /// Returns how many of these bytes may be sent, and counts them as sent.
    pub fn leave(&mut self, bytes: &[u8], writes: bool) -> SendPermit {
        if self.frames.is_some() || self.pieces.is_some() {
            return self.leave_frames(bytes);
        }
        for (at, byte) in bytes.iter().enumerate() {
            let first = self.used == 0;
            let ends_head = *byte == b'\n' && self.line != LineKind::Within && self.heads > 0;
            if (first || ends_head) && self.used == self.granted {
                return if at == 0 { SendPermit::Ask } else { SendPermit::Bytes(at) };
            }
            if !writes && self.writes(*byte) {
                return if at == 0 { SendPermit::Writes } else { SendPermit::Bytes(at) };
            }
            if first || ends_head {
                self.used += 1;
            }
            self.pass(*byte);
        }
        SendPermit::Bytes(bytes.len())
    }

    fn leave_frames(&mut self, bytes: &[u8]) -> SendPermit {
        if self.used == 0 {
            if self.granted == 0 {
                return SendPermit::Ask;
            }
            self.used = 1;
        }
        let mut free = self.granted - self.used;
        let before = free;
        let count = match (&mut self.frames, &mut self.pieces) {
            (Some(frames), _) => frames.pass(bytes, &mut free),
            (None, Some(pieces)) => pieces.pass(bytes, &mut free),
            (None, None) => 0,
        };
        self.used += before - free;
        if count == 0 { SendPermit::Ask } else { SendPermit::Bytes(count) }
    }

    /// Returns whether this byte would complete a method that changes data.
    fn writes(&self, byte: u8) -> bool {
        let ends = byte == b' ' || byte == b'\t';
        ends && !self.word_over && WRITING.iter().any(|word| self.word.eq_ignore_ascii_case(word))
    }

    fn pass(&mut self, byte: u8) {
        let empty = byte == b'\n' && self.line != LineKind::Within;
        self.line = match (byte, self.line) {
            (b'\n', _) => LineKind::Start,
            (b'\r', LineKind::Start) => LineKind::StartCr,
            _ => LineKind::Within,
        };
        if empty {
            // empty lines before a request are not heads, but a request may follow
            self.heads += u64::from(self.text);
        }
        self.text |= !matches!(byte, b'\r' | b'\n');
        match byte {
            b'\n' => {
                self.word.clear();
                self.word_over = false;
            }
            b'\r' => {}
            b' ' | b'\t' => self.word_over = true,
            _ if self.word_over => {}
            _ if self.word.len() < WORD_MAX => self.word.push(byte),
            _ => self.word_over = true,
        }
    }
}

impl Default for FramePosition {
    fn default() -> FramePosition {
        FramePosition { left: PREFACE.len(), head: Vec::new(), requests: 0 }
    }
}

/// Takes one of the free requests; returns false if there are none. The first one belongs to the
/// connection.
fn charge(first: bool, free: &mut u64) -> bool {
    if first {
        return true;
    }
    let left = free.checked_sub(1);
    *free = left.unwrap_or(0);
    left.is_some()
}

impl FramePosition {
    /// Returns how many of these bytes may be sent with `free` further requests; they count as
    /// sent, and `free` is reduced. The first request is the connection's own.
    fn pass(&mut self, bytes: &[u8], free: &mut u64) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if self.left > 0 {
                let count = self.left.min(bytes.len() - at);
                self.left -= count;
                at += count;
                continue;
            }
            let rest = &bytes[at..];
            // the header may arrive in pieces: the type follows the length
            let kind = 3_usize.checked_sub(self.head.len()).and_then(|at| rest.get(at));
            if kind == Some(&HEADERS) {
                if !charge(self.requests == 0, free) {
                    return at;
                }
                self.requests += 1;
            }
            let count = (FRAME_HEAD - self.head.len()).min(rest.len());
            self.head.extend_from_slice(&rest[..count]);
            at += count;
            if self.head.len() == FRAME_HEAD {
                let length = [0, self.head[0], self.head[1], self.head[2]];
                self.left = u32::from_be_bytes(length) as usize;
                self.head.clear();
            }
        }
        at
    }
}

/// Number of bytes of a packet piece that identify its first frame: header, options, type.
const OPENED: usize = streams::HEAD + 3;
/// Size of a piece with a code.
const CODED: usize = streams::HEAD + 8;

fn is_packet(piece: Head) -> bool {
    piece.kind == PieceKind::Packet && piece.length >= 3
}

fn is_action(piece: Head) -> bool {
    piece.kind == PieceKind::Action && piece.length >= 8
}

impl PiecePosition {
    /// Returns how many bytes of the piece's start are needed.
    fn bytes_needed(&self) -> usize {
        let head = self.head.first_chunk::<{ streams::HEAD }>().and_then(Head::from_bytes);
        match head {
            Some(piece) if is_packet(piece) => OPENED,
            Some(piece) if is_action(piece) => CODED,
            _ => streams::HEAD,
        }
    }

    /// Charges for the requests that these bytes start: a complete header and everything else that
    /// is [wanted](Self::wanted). Returns false if it may not be sent yet.
    fn charge(&mut self, piece: Head, begun: &[u8], free: &mut u64) -> bool {
        let is_request = piece.kind == PieceKind::Data && piece.stream.is_multiple_of(4);
        if is_request && self.highest.is_none_or(|highest| piece.stream > highest) {
            if !charge(self.highest.is_none(), free) {
                return false;
            }
            self.highest = Some(piece.stream);
            self.requests += 1;
        }
        // a packet that begins with STREAM may contain a request
        if is_packet(piece) && matches!(begun[OPENED - 1], 0x08..=0x0f) {
            if !charge(false, free) {
                return false;
            }
            self.requests += 1;
        }
        // everything is sent once more
        if is_action(piece) && streams::code(&begun[streams::HEAD..]) == Some(AGAIN) {
            let Some(left) = free.checked_sub(self.requests) else { return false };
            *free = left;
        }
        true
    }

    /// Like [`FramePosition::pass`]: each bidirectional stream is a request.
    fn pass(&mut self, bytes: &[u8], free: &mut u64) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if self.left > 0 {
                let count = self.left.min(bytes.len() - at);
                self.left -= count;
                at += count;
                continue;
            }
            let rest = &bytes[at..];
            let count = (self.bytes_needed() - self.head.len()).min(rest.len());
            let head: Vec<u8> = self.head.iter().chain(&rest[..count]).copied().collect();
            let Some(whole) = head.first_chunk::<{ streams::HEAD }>() else {
                self.head = head;
                at += count;
                continue;
            };
            let Some(piece) = Head::from_bytes(whole) else { return bytes.len() };
            let short = is_packet(piece) && head.len() < OPENED;
            if short || is_action(piece) && head.len() < CODED {
                self.head = head;
                at += count;
                continue;
            }
            if !self.charge(piece, &head, free) {
                return at;
            }
            self.left = piece.length as usize + streams::HEAD - head.len();
            self.head.clear();
            at += count;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> u64 {
        let mut requests = Requests::default();
        let mut rest = text.as_bytes();
        let mut asked = 0;
        while !rest.is_empty() {
            match requests.leave(rest, true) {
                SendPermit::Bytes(count) => rest = &rest[count..],
                SendPermit::Ask => {
                    asked += 1;
                    requests.grant();
                }
                SendPermit::Writes => panic!("writing is permitted"),
            }
        }
        asked
    }

    /// Returns where permission was requested, for bytes in pieces of `size`.
    fn permission_points(protocol: Protocol, sent: &[u8], size: usize) -> Vec<usize> {
        let mut requests = Requests::new(protocol);
        let (mut at, mut asked) = (0, Vec::new());
        while at < sent.len() {
            let end = sent.len().min(at + size);
            match requests.leave(&sent[at..end], false) {
                SendPermit::Bytes(count) => at += count,
                SendPermit::Ask => {
                    asked.push(at);
                    requests.grant();
                }
                SendPermit::Writes => panic!("no method is read"),
            }
        }
        asked
    }

    #[test]
    fn each_frame_of_headers_is_a_request() {
        use crate::http2::write;
        let ask = |stream| write::request(stream, b"x");
        let sent = [write::opening(), ask(1), write::ping(), ask(3), ask(5)].concat();
        let (opening, one) = (write::opening().len(), ask(1).len());
        let second = opening + one + write::ping().len();
        assert_eq!(
            permission_points(Protocol::Http2, &sent, sent.len()),
            [0, second, second + one]
        );
        for size in [1, 2, 3, 4, 7] {
            let asked = permission_points(Protocol::Http2, &sent, size);
            assert_eq!(asked.len(), 3, "pieces of {size} bytes: {asked:?}");
        }
    }

    #[test]
    fn each_stream_of_http3_is_a_request() {
        use crate::http3::write;
        let ask = |stream| write::request(stream, b"x");
        let sent = [write::opening(), ask(0), write::reset(0, 1), ask(4), ask(8)].concat();
        let second = write::opening().len() + ask(0).len() + write::reset(0, 1).len();
        for size in [1, 7, sent.len()] {
            let asked = permission_points(Protocol::Http3, &sent, size);
            assert_eq!(asked.len(), 3, "pieces of {size} bytes: {asked:?}");
            assert!(size == 1 || asked == [0, second, second + ask(4).len()] || size == 7);
        }
    }

    #[test]
    fn packets_that_begin_with_a_stream_are_requests() {
        use crate::http3::packets::packet;
        let stream = packet("none", b"\x09\0abc").unwrap();
        let sent = [packet("none", b"").unwrap(), packet("twice", b"\x01").unwrap(), stream];
        let sent = [sent.concat(), sent[1..].concat()].concat();
        for size in [1, 5, 17, sent.len()] {
            let asked = permission_points(Protocol::Http3, &sent, size);
            // the first request, which every connection has, and two packets
            assert_eq!(asked.len(), 3, "pieces of {size} bytes: {asked:?}");
        }
    }

    #[test]
    fn replayed_requests_need_permission_again() {
        use crate::http3::packets::action;
        use crate::http3::write;
        let ask = |stream| write::request(stream, b"x");
        let again = action("again").unwrap();
        let sent = [ask(0), ask(4), again.clone(), action("finish").unwrap(), again].concat();
        for size in [1, 7, sent.len()] {
            let asked = permission_points(Protocol::Http3, &sent, size);
            // two, and both twice more
            assert_eq!(asked.len(), 6, "pieces of {size} bytes: {asked:?}");
        }
    }

    #[test]
    fn requests_are_counted_for_any_bytes() {
        for (text, expected) in [
            ("", 0),
            ("G", 1),
            ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", 1),
            ("GET / HTTP/1.1\nHost: h\n\n", 1),
            ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", 1),
            ("POST / HTTP/1.1\r\nHost: h\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 2),
            (&"GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(7), 7),
            (&"GET / HTTP/1.1\nHost: h\n\n".repeat(7), 7),
        ] {
            assert_eq!(count(text), expected, "{text:?}");
        }
    }

    fn refuses(requests: &mut Requests, mut rest: &[u8]) -> bool {
        while !rest.is_empty() {
            match requests.leave(rest, false) {
                SendPermit::Bytes(count) => rest = &rest[count..],
                SendPermit::Writes => return true,
                SendPermit::Ask => panic!("enough was granted"),
            }
        }
        false
    }

    #[test]
    fn writing_methods_are_detected_at_any_line_start() {
        for (pieces, expected) in [
            (&["PUT / HTTP/1.1\r\n"][..], true),
            (&["delete / HTTP/1.1\r\n"], true),
            (&["\r\n\r\nPATCH\t/ HTTP/1.1\r\n"], true),
            (&["GET / HTTP/1.1\r\n\r\nPUT / HTTP/1.1\r\n"], true),
            (&["P", "U", "T", " "], true),
            (&["GET / HTTP/1.1\r\nHost: PUT x\r\n\r\n"], false),
            (&["PUTT / HTTP/1.1\r\n"], false),
            (&["OPTIONS * HTTP/1.1\r\n"], false),
        ] {
            let mut requests = Requests::default();
            for _ in 0..3 {
                requests.grant();
            }
            let refused = pieces.iter().any(|piece| refuses(&mut requests, piece.as_bytes()));
            assert_eq!(refused, expected, "{pieces:?}");
        }
    }
}
