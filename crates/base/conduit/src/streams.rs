//! Pieces of streams: the data of a connection with several streams, passed between the protocol
//! and the driver that carries it (QUIC, RFC 9000).
//!
//! On such a connection `write` and `read` of [`crate::Io`] take and return a sequence of pieces,
//! each with a header of [`HEAD`] bytes:
//!
//! ```text
//! kind: u8   last: u8   reserved: u16   length: u32   stream: u64     (big-endian)
//! ```
//! Streams are identified by QUIC's numbers (RFC 9000 section 2.1). Both sides are in one process,
//! so the format is fixed and has no versions.

/// Bytes before each piece's payload.
pub const HEAD: usize = 16;

/// Kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// Bytes of the stream, in order; the first ones open it.
    Data = 0,
    /// The sender abandons the stream (RESET_STREAM); the payload is a code.
    Reset = 1,
    /// The receiver wants no more data (STOP_SENDING); the payload is a code.
    Stop = 2,
    /// From the driver: bytes that waited for the peer's stream limit are being sent. No payload.
    Opened = 3,
    /// From the driver, once, before anything else: the number of streams that the peer initially
    /// permits, as a code. It concerns no stream.
    Allowed = 4,
    /// To the driver: the code with which to close the connection, when it is closed. From the
    /// driver, last: the code with which the peer closed it, plus [`TRANSPORT`] for QUIC's own
    /// codes. Belongs to no stream.
    Close = 5,
    /// Without a connection, a raw datagram in either direction. Also to the driver of a crafted
    /// connection, in addition to its packets. Belongs to no stream.
    Datagram = 6,
    /// To the driver, without a connection: a datagram with an Initial packet to be created (RFC
    /// 9000 section 17.2.2). The payload is the datagram's size as two bytes, a byte of
    /// [`INITIAL_OPTIONS`], and frames that precede everything else.
    Initial = 7,
    /// From the driver, if no connection is established: the kept part of a sent datagram; its
    /// stream is the size of the whole datagram.
    Sent = 8,
    /// To the driver of a crafted connection: a packet. The payload is two bytes of
    /// [`PACKET_OPTIONS`], and frames (RFC 9000 section 19), which may be ones that a client must
    /// not send.
    Packet = 9,
    /// To the driver of a crafted connection: a packet that reaches one of the server's limits. The
    /// payload is its place among [`LIMITS`] as a code; it concerns its stream if the limit is a
    /// stream's.
    Limit = 10,
    /// To the driver, the same: the following packets are sent from another local port. No payload.
    Port = 11,
    /// From the driver of a crafted connection: a received QUIC frame. Its stream is the frame's
    /// type, or one of the numbers of [`FRAMES`] that are not types; the payload follows the type.
    Frame = 12,
    /// To the driver of a crafted connection: handshake options. They are known before the
    /// connection is opened, by [`crate::OpenOptions::by_hand`]; the piece itself has no effect.
    /// The payload is two bytes of [`SHAKE_OPTIONS`], and transport parameters to append to the
    /// usual ones.
    Shake = 13,
    /// To the driver of a crafted connection: bytes of our ClientHello in Initial packets, from the
    /// offset given as stream to the one before the payload's.
    Hello = 14,
    /// To the driver, in the same form: an action of the connection. The payload is its place among
    /// [`ACTIONS`] as a code.
    Action = 15,
    /// From the driver: some of the bytes that waited for the peer's credit are being sent. No
    /// payload.
    Went = 16,
}

/// Handshake options by name.
pub const SHAKE_OPTIONS: [(&str, u16); 10] = [
    // resumes a session and sends data before the handshake completes (RFC 9001 section 4.6)
    ("early", EARLY),
    // holds our Finished back until `finish`; data is sent from then on
    ("hold", HOLD),
    // sends data at once, after our ClientHello
    ("first", FIRST),
    // the same, and the ClientHello is not sent automatically
    ("mute", MUTE),
    // ignores received packets until `again`
    ("replay", REPLAY),
    // the last byte of the client's Finished is changed
    ("spoiled", SPOILED),
    // no protocol is offered by ALPN
    ("no-alpn", NO_ALPN),
    // without initial_source_connection_id (RFC 9000 section 7.3)
    ("unnamed", UNNAMED),
    // with `early`: one bit of the ticket is changed, so that the server does not recognize it
    ("stale", STALE),
    // the same with a new ticket, comparing SETTINGS with those of the ticket's connection
    ("fresh", FRESH),
];
pub const EARLY: u16 = 1;
pub const HOLD: u16 = 2;
pub const FIRST: u16 = 4;
pub const MUTE: u16 = 8;
pub const REPLAY: u16 = 16;
pub const SPOILED: u16 = 32;
pub const NO_ALPN: u16 = 64;
pub const UNNAMED: u16 = 128;
pub const STALE: u16 = 256;
pub const FRESH: u16 = 512;

/// Actions of a crafted connection.
pub const ACTIONS: [&str; 3] = [
    // sends Finished
    "finish",
    // everything from here on is protected with the next keys (RFC 9001 section 6.1)
    "update",
    // resends everything from another port to another connection ID, like an attacker with a
    // recording: the same ClientHello, the same requests. The connection continues there.
    "again",
];
pub const FINISH: u64 = 0;
pub const UPDATE: u64 = 1;
pub const AGAIN: u64 = 2;

/// Oddities of a packet of a crafted connection, by name.
pub const PACKET_OPTIONS: [(&str, u16); 12] = [
    // the reserved bits of its header are set (RFC 9000 section 17.3.1)
    ("reserved", RESERVED),
    // its last byte is wrong, so it cannot be decrypted
    ("broken", BROKEN),
    // the bit of its header that is always set is not (the same section)
    ("unfixed", UNFIXED),
    // to a connection that the server does not know
    ("stranger", STRANGER),
    // the same bytes twice
    ("twice", TWICE),
    // in a Handshake packet (section 17.2.4)
    ("handshake", IN_HANDSHAKE),
    // with a key that was never negotiated, and the phase bit (RFC 9001 section 6)
    ("phase", PHASE),
    // in an Initial packet, in a 0-RTT packet (sections 17.2.2 and 17.2.3)
    ("initial", IN_INITIAL),
    ("early", IN_EARLY),
    // with the keys from before the last key update, though its number is higher (RFC 9001 section
    // 6.4)
    ("old", OLD),
    // created now, and sent after the first packet with the next keys
    ("late", LATE),
    // of an Initial packet: with a token that no server gave us (section 8.1.2)
    ("token", WITH_TOKEN),
];
pub const UNFIXED: u16 = 1;
pub const STRANGER: u16 = 8;
pub const TWICE: u16 = 16;
pub const IN_HANDSHAKE: u16 = 32;
pub const PHASE: u16 = 64;
pub const IN_INITIAL: u16 = 128;
pub const IN_EARLY: u16 = 256;
pub const OLD: u16 = 512;
pub const LATE: u16 = 1024;
pub const WITH_TOKEN: u16 = 2048;

/// Limits of the server (RFC 9000 sections 4.1 and 4.6), and the frames sent about them.
pub const LIMITS: [&str; 6] = [
    // the last byte of the stream that the server permits, and the one after it
    "stream-edge",
    "stream-beyond",
    // one byte more than the connection may have
    "connection-beyond",
    // the last stream for a request that may be opened, and the first that may not; the first in one direction
    "streams-edge",
    "streams-beyond",
    "one-way-beyond",
];

/// QUIC frames reported by name, and other events reported like frames.
pub const FRAMES: [(&str, u64); 29] = [
    ("NEW_TOKEN", 0x07),
    ("NEW_CONNECTION_ID", 0x18),
    ("RETIRE_CONNECTION_ID", 0x19),
    ("PATH_CHALLENGE", 0x1a),
    ("PATH_RESPONSE", 0x1b),
    ("HANDSHAKE_DONE", 0x1e),
    // the server knows the connection no more (RFC 9000 section 10.3)
    ("stateless-reset", RESET_SEEN),
    // there is no such limit, so nothing was sent
    ("unlimited", UNLIMITED),
    // the server forbids migration (section 18.2), so we did not migrate
    ("unmoved", UNMOVED),
    // the server has given no ticket that permits early data (RFC 9001 section 4.6.1)
    ("no-ticket", NO_TICKET),
    // it has accepted our early data, or rejected it, so it was resent
    ("early-accepted", EARLY_ACCEPTED),
    ("early-rejected", EARLY_REJECTED),
    // part of a response arrived while our Finished was held back
    ("before-finished", BEFORE_FINISHED),
    // a packet with the next keys arrived
    ("key-update", KEY_UPDATE),
    // limits are higher than those that were remembered for early data, or lower
    ("raised", RAISED),
    ("reduced", REDUCED),
    // reported by the reader: the server uses its QPACK table, has a capacity above the permitted
    // one, or sends impossible instructions; a section refers to a missing entry; more streams
    // could block than permitted; an entry was evicted while still needed
    ("table-used", TABLE_USED),
    ("table-capacity", TABLE_CAPACITY),
    ("table-instruction", TABLE_INSTRUCTION),
    ("table-reference", TABLE_REFERENCE),
    ("table-blocked", TABLE_BLOCKED),
    ("table-evicted", TABLE_EVICTED),
    // the same: a section that cannot be decoded, and one that is larger than is read
    ("section-coding", SECTION_CODING),
    ("section-large", SECTION_LARGE),
    // the server sent more than our windows, or on more streams than we, permit (RFC 9000 sections 4.1 and 4.6)
    ("beyond-limits", BEYOND_LIMITS),
    // the start of the server's control stream on the ticket's connection; reported by the reader:
    // its SETTINGS were compared with those and now permit less (RFC 9114 section 7.2.4.2)
    ("remembered", REMEMBERED),
    ("settings-reduced", SETTINGS_REDUCED),
    // more out-of-order bytes arrived than are kept
    ("held-large", HELD_LARGE),
    // received data violates QUIC or TLS, so we closed the connection
    ("broken-rules", BROKEN_RULES),
];
pub const RESET_SEEN: u64 = 1 << 62;
pub const UNLIMITED: u64 = RESET_SEEN + 1;
pub const UNMOVED: u64 = RESET_SEEN + 2;
pub const NO_TICKET: u64 = RESET_SEEN + 3;
pub const EARLY_ACCEPTED: u64 = RESET_SEEN + 4;
pub const EARLY_REJECTED: u64 = RESET_SEEN + 5;
pub const BEFORE_FINISHED: u64 = RESET_SEEN + 6;
pub const KEY_UPDATE: u64 = RESET_SEEN + 7;
pub const RAISED: u64 = RESET_SEEN + 8;
pub const REDUCED: u64 = RESET_SEEN + 9;
pub const TABLE_USED: u64 = RESET_SEEN + 10;
pub const TABLE_CAPACITY: u64 = RESET_SEEN + 11;
pub const TABLE_INSTRUCTION: u64 = RESET_SEEN + 12;
pub const TABLE_REFERENCE: u64 = RESET_SEEN + 13;
pub const TABLE_BLOCKED: u64 = RESET_SEEN + 14;
pub const TABLE_EVICTED: u64 = RESET_SEEN + 15;
pub const SECTION_CODING: u64 = RESET_SEEN + 16;
pub const SECTION_LARGE: u64 = RESET_SEEN + 17;
pub const BEYOND_LIMITS: u64 = RESET_SEEN + 18;
pub const REMEMBERED: u64 = RESET_SEEN + 19;
pub const SETTINGS_REDUCED: u64 = RESET_SEEN + 20;
pub const HELD_LARGE: u64 = RESET_SEEN + 21;
pub const BROKEN_RULES: u64 = RESET_SEEN + 22;

/// Oddities of an Initial packet, by name, as bits of its description.
pub const INITIAL_OPTIONS: [(&str, u16); 5] = [
    // a ClientHello, in as many datagrams as it needs
    ("hello", HELLO),
    // the reserved bits of its header are set (section 17.2)
    ("reserved", RESERVED),
    // its last byte is wrong, so it cannot be decrypted
    ("broken", BROKEN),
    // with a token that no server gave us (section 8.1)
    ("token", TOKEN),
    // the destination has an identifier of four bytes, where eight are the least (section 7.2)
    ("short", SHORT_ID),
];
pub const HELLO: u16 = 1;
pub const RESERVED: u16 = 2;
pub const BROKEN: u16 = 4;
pub const TOKEN: u16 = 8;
pub const SHORT_ID: u16 = 16;

/// Flag for codes of QUIC itself (RFC 9000 section 20.1), as opposed to those of the application
/// protocol: codes have 62 bits.
pub const TRANSPORT: u64 = 1 << 63;

/// Header of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub kind: PieceKind,
    /// The stream ends with this piece.
    pub last: bool,
    /// Length of the payload in bytes.
    pub length: u32,
    pub stream: u64,
}

impl Head {
    pub fn to_bytes(self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = self.kind as u8;
        bytes[1] = u8::from(self.last);
        bytes[4..8].copy_from_slice(&self.length.to_be_bytes());
        bytes[8..].copy_from_slice(&self.stream.to_be_bytes());
        bytes
    }

    /// Returns `None` if no piece begins like this.
    pub fn from_bytes(bytes: &[u8; HEAD]) -> Option<Head> {
        let kind = match bytes[0] {
            0 => PieceKind::Data,
            1 => PieceKind::Reset,
            2 => PieceKind::Stop,
            3 => PieceKind::Opened,
            4 => PieceKind::Allowed,
            5 => PieceKind::Close,
            6 => PieceKind::Datagram,
            7 => PieceKind::Initial,
            8 => PieceKind::Sent,
            9 => PieceKind::Packet,
            10 => PieceKind::Limit,
            11 => PieceKind::Port,
            12 => PieceKind::Frame,
            13 => PieceKind::Shake,
            14 => PieceKind::Hello,
            15 => PieceKind::Action,
            16 => PieceKind::Went,
            _ => return None,
        };
        let [.., a, b, c, d, e, f, g, h] = *bytes;
        let length = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let stream = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        Some(Head { kind, last: bytes[1] != 0, length, stream })
    }
}

/// Appends a piece without payload, or with a code as its payload, to `out`.
pub fn put_code(out: &mut Vec<u8>, kind: PieceKind, stream: u64, code: Option<u64>) {
    let length = if code.is_some() { 8 } else { 0 };
    out.extend_from_slice(&Head { kind, last: false, length, stream }.to_bytes());
    out.extend(code.into_iter().flat_map(u64::to_be_bytes));
}

/// Appends one piece with this payload, shorter than [`PIECE_MAX`], to `out`.
pub fn put(out: &mut Vec<u8>, kind: PieceKind, stream: u64, payload: &[u8]) {
    let length = payload.len() as u32;
    out.extend_from_slice(&Head { kind, last: false, length, stream }.to_bytes());
    out.extend_from_slice(payload);
}

/// Appends bytes of a stream to `out`, in as many pieces as needed.
pub fn put_data(out: &mut Vec<u8>, stream: u64, bytes: &[u8], last: bool) {
    let mut rest = bytes;
    loop {
        let (now, later) = rest.split_at(rest.len().min(PIECE_MAX));
        let last = last && later.is_empty();
        let length = now.len() as u32;
        out.extend_from_slice(&Head { kind: PieceKind::Data, last, length, stream }.to_bytes());
        out.extend_from_slice(now);
        rest = later;
        if rest.is_empty() {
            return;
        }
    }
}

/// Maximum size of one piece's payload in bytes.
pub const PIECE_MAX: usize = 1 << 30;

/// Returns the code that is a piece's payload.
pub fn code(payload: &[u8]) -> Option<u64> {
    payload.try_into().ok().map(u64::from_be_bytes)
}

/// Parses pieces incrementally, however they are split.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cutter {
    head: [u8; HEAD],
    have: usize,
    current: Option<Head>,
    /// Remaining bytes of the payload.
    left: u32,
}

/// Bytes that no driver writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPiece;

impl Cutter {
    /// Reads the available part of an incomplete header; returns how many bytes that was.
    ///
    /// # Errors
    /// Fails if no piece begins like this.
    pub fn open(&mut self, input: &[u8]) -> Result<usize, NoPiece> {
        if self.current.is_some() {
            return Ok(0);
        }
        let taken = (HEAD - self.have).min(input.len());
        self.head[self.have..self.have + taken].copy_from_slice(&input[..taken]);
        self.have += taken;
        if self.have == HEAD {
            let head = Head::from_bytes(&self.head).ok_or(NoPiece)?;
            (self.current, self.left) = (Some(head), head.length);
        }
        Ok(taken)
    }

    /// Returns the current piece; `None` if its header is incomplete.
    pub fn current(&self) -> Option<Head> {
        self.current
    }

    /// Returns the part of its payload that the input contains.
    pub fn payload<'a>(&self, input: &'a [u8]) -> &'a [u8] {
        &input[..input.len().min(self.left as usize)]
    }

    /// Consumes this number of payload bytes. Returns true if the piece is complete and the next
    /// one starts.
    pub fn pass(&mut self, count: usize) -> bool {
        self.left -= count as u32;
        if self.left > 0 {
            return false;
        }
        (self.current, self.have) = (None, 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces do not depend on how the bytes are split.
    #[test]
    fn pieces_parse_at_every_cut() {
        let mut bytes = Vec::new();
        put_data(&mut bytes, 4, b"hello", false);
        put_code(&mut bytes, PieceKind::Reset, 8, Some(0x10b));
        put_data(&mut bytes, 4, b"", true);
        put_code(&mut bytes, PieceKind::Opened, 12, None);
        for size in 1..bytes.len() {
            let (mut cutter, mut reported) = (Cutter::default(), Vec::new());
            let mut payload = Vec::new();
            for chunk in bytes.chunks(size) {
                let mut at = 0;
                while at < chunk.len() {
                    at += cutter.open(&chunk[at..]).expect("pieces of our own");
                    let Some(head) = cutter.current() else { continue };
                    let bytes = cutter.payload(&chunk[at..]);
                    at += bytes.len();
                    payload.extend_from_slice(bytes);
                    if cutter.pass(bytes.len()) {
                        let bytes = std::mem::take(&mut payload);
                        reported.push((head.kind, head.stream, head.last, bytes));
                    }
                }
            }
            let code = 0x10b_u64.to_be_bytes().to_vec();
            let expected = vec![
                (PieceKind::Data, 4, false, b"hello".to_vec()),
                (PieceKind::Reset, 8, false, code),
                (PieceKind::Data, 4, true, Vec::new()),
                (PieceKind::Opened, 12, false, Vec::new()),
            ];
            assert_eq!(reported, expected, "pieces of {size} bytes");
        }
    }

    #[test]
    fn an_invalid_piece_is_an_error() {
        assert_eq!(Cutter::default().open(&[255; HEAD]), Err(NoPiece));
    }
}
