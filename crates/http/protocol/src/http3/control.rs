//! The streams that the server opens: its control stream, and those of QPACK (RFC 9114 section 6.2).

use crate::http3::Violation;
use crate::http3::code::{
    CLOSED_CRITICAL_STREAM, ENCODER_STREAM_ERROR, EXCESSIVE_LOAD, FRAME_ERROR, FRAME_UNEXPECTED,
    ID_ERROR, MISSING_SETTINGS, SETTINGS_ERROR, STREAM_CREATION_ERROR,
};
use crate::http3::frame::{
    CANCEL_PUSH, DATA, FrameReader, GOAWAY, HEADERS, MAX_PUSH_ID, PUSH_PROMISE, SETTINGS,
    is_reserved,
};
use crate::http3::varint;

/// Types of streams (RFC 9114 section 6.2, RFC 9204 section 4.2).
pub(crate) const CONTROL: u64 = 0x0;
const PUSH: u64 = 0x1;
const ENCODER: u64 = 0x2;
const DECODER: u64 = 0x3;

/// Set Dynamic Table Capacity 0: the only instruction that an encoder may send for a table without
/// bytes (RFC 9204 section 4.3.1).
const NO_CAPACITY: u8 = 0x20;

/// Maximum payload of a frame on the control stream, in bytes.
const FRAME_MAX: u64 = 16 << 10;

/// Maximum number of streams of the server that are remembered: one of each type, and some of types
/// unknown here.
const STREAMS_MAX: usize = 16;

/// All streams that the server opened on one connection.
#[derive(Debug, Default)]
pub(crate) struct Control {
    streams: Vec<Incoming>,
    reader: FrameReader,
    payload: Vec<u8>,
    settled: bool,
    /// True if the server accepts extended CONNECT; `None` before its SETTINGS are complete.
    connects: Option<bool>,
    /// The first stream that the server will not process, from its last GOAWAY.
    limit: Option<u64>,
    goaways: u64,
}

#[derive(Debug, Default)]
struct Incoming {
    id: u64,
    /// The received part of its type.
    begun: Vec<u8>,
    kind: Option<u64>,
}

impl Control {
    /// Returns the stream from which on requests are not processed; `None` if the server is not
    /// going away.
    pub(crate) fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns whether the server accepts extended CONNECT (RFC 9220 section 3); `None` before its
    /// SETTINGS.
    pub(crate) fn accepts_tunnels(&self) -> Option<bool> {
        self.connects
    }

    /// Returns the number of GOAWAY frames so far and resets it.
    pub(crate) fn take_goaways(&mut self) -> u64 {
        std::mem::take(&mut self.goaways)
    }

    /// Processes data of a stream that the server opened; returns how many bytes were used.
    pub(crate) fn process(&mut self, id: u64, input: &[u8]) -> Result<usize, Violation> {
        let row = self.row(id)?;
        let Some(kind) = self.streams[row].kind else {
            return self.begin(row, input);
        };
        match kind {
            CONTROL => self.process_control(input),
            ENCODER if input.iter().any(|byte| *byte != NO_CAPACITY) => Err(Violation::new(
                ENCODER_STREAM_ERROR,
                "an insertion into a dynamic table of capacity 0",
                "RFC 9204 section 4.3",
            )),
            // acknowledgments without effect are ignored; unknown types may be ignored
            _ => Ok(input.len()),
        }
    }

    /// Handles the end or reset of a control or QPACK stream.
    pub(crate) fn end(&mut self, id: u64) -> Result<(), Violation> {
        let Some(row) = self.streams.iter().position(|stream| stream.id == id) else {
            return Ok(());
        };
        let stream = self.streams.swap_remove(row);
        match stream.kind {
            Some(CONTROL | ENCODER | DECODER) => Err(Violation::new(
                CLOSED_CRITICAL_STREAM,
                "the end of a critical stream",
                "RFC 9114 section 6.2.1",
            )),
            _ => Ok(()),
        }
    }

    fn row(&mut self, id: u64) -> Result<usize, Violation> {
        if let Some(row) = self.streams.iter().position(|stream| stream.id == id) {
            return Ok(row);
        }
        if self.streams.len() == STREAMS_MAX {
            let what = "too many streams opened by the server";
            return Err(Violation::new(EXCESSIVE_LOAD, what, "RFC 9114 section 10.5"));
        }
        self.streams.push(Incoming { id, ..Incoming::default() });
        Ok(self.streams.len() - 1)
    }

    /// Reads the type of a stream, a byte at a time; returns the number of consumed bytes.
    fn begin(&mut self, row: usize, input: &[u8]) -> Result<usize, Violation> {
        let mut taken = 0;
        let stream = &mut self.streams[row];
        for byte in input {
            stream.begun.push(*byte);
            taken += 1;
            if let Some((kind, _)) = varint::get(&stream.begun) {
                stream.kind = Some(kind);
                self.admit(kind)?;
                break;
            }
        }
        Ok(taken)
    }

    fn admit(&self, kind: u64) -> Result<(), Violation> {
        if kind == PUSH {
            let what = "a push that was not allowed";
            return Err(Violation::new(ID_ERROR, what, "RFC 9114 section 6.2.2"));
        }
        let same = self.streams.iter().filter(|stream| stream.kind == Some(kind)).count();
        if matches!(kind, CONTROL | ENCODER | DECODER) && same > 1 {
            let what = "a second stream of a type that may exist only once";
            return Err(Violation::new(STREAM_CREATION_ERROR, what, "RFC 9114 section 6.2.1"));
        }
        Ok(())
    }

    fn process_control(&mut self, input: &[u8]) -> Result<usize, Violation> {
        let head = self.reader.open(input);
        let Some((kind, left)) = self.reader.current() else { return Ok(head) };
        if head > 0 {
            self.begin_frame(kind, left)?;
        }
        let rest = &input[head..];
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
        if matches!(kind, SETTINGS | GOAWAY) {
            self.payload.extend_from_slice(&rest[..count]);
        }
        if self.reader.pass(count) {
            let payload = std::mem::take(&mut self.payload);
            match kind {
                SETTINGS => self.connects = Some(check_settings(&payload)?),
                GOAWAY => self.go_away(&payload)?,
                _ => {}
            }
            self.payload = payload;
            self.payload.clear();
        }
        Ok(head + count)
    }

    fn begin_frame(&mut self, kind: u64, length: u64) -> Result<(), Violation> {
        let unexpected = |what| Err(Violation::new(FRAME_UNEXPECTED, what, "RFC 9114 section 7.2"));
        if !self.settled && kind != SETTINGS {
            let what = "a control stream that does not begin with SETTINGS";
            return Err(Violation::new(MISSING_SETTINGS, what, "RFC 9114 section 6.2.1"));
        }
        match kind {
            SETTINGS if self.settled => return unexpected("SETTINGS a second time"),
            DATA | HEADERS | PUSH_PROMISE => {
                return unexpected("a request stream's frame on the control stream");
            }
            MAX_PUSH_ID => return unexpected("MAX_PUSH_ID, which only clients send"),
            CANCEL_PUSH => {
                let what = "CANCEL_PUSH for an unknown push";
                return Err(Violation::new(ID_ERROR, what, "RFC 9114 section 7.2.3"));
            }
            kind if is_reserved(kind) => {
                return unexpected("a frame type reserved by HTTP/2");
            }
            SETTINGS | GOAWAY if length > FRAME_MAX => {
                let what = "a frame on the control stream longer than 16 KiB";
                return Err(Violation::new(EXCESSIVE_LOAD, what, "RFC 9114 section 10.5"));
            }
            _ => {}
        }
        self.settled = true;
        Ok(())
    }

    fn go_away(&mut self, payload: &[u8]) -> Result<(), Violation> {
        let read = varint::get(payload).filter(|(_, bytes)| *bytes == payload.len());
        let Some((id, _)) = read else {
            let what = "GOAWAY with anything but one number";
            return Err(Violation::new(FRAME_ERROR, what, "RFC 9114 section 7.1"));
        };
        if !id.is_multiple_of(4) || self.limit.is_some_and(|before| id > before) {
            let what = "GOAWAY with an invalid stream ID";
            return Err(Violation::new(ID_ERROR, what, "RFC 9114 section 5.2"));
        }
        // a graceful shutdown sends it twice (RFC 9114 section 5.2)
        self.goaways += u64::from(self.limit.is_none());
        self.limit = Some(id);
        Ok(())
    }
}

/// SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 9220 section 5).
const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;

/// Checks that no settings of HTTP/2 occur, and none twice (RFC 9114 section 7.2.4). Returns
/// whether they permit extended CONNECT.
fn check_settings(payload: &[u8]) -> Result<bool, Violation> {
    let broken = |code, what| Err(Violation::new(code, what, "RFC 9114 section 7.2.4"));
    let mut rest = payload;
    let mut seen = Vec::new();
    let mut connects = false;
    while !rest.is_empty() {
        let Some((id, first)) = varint::get(rest) else {
            return broken(FRAME_ERROR, "SETTINGS that end within a number");
        };
        let Some((value, second)) = varint::get(&rest[first..]) else {
            return broken(FRAME_ERROR, "SETTINGS that end within a number");
        };
        if matches!(id, 0x2..=0x5) || seen.contains(&id) {
            return broken(SETTINGS_ERROR, "a setting that may not occur, or occurs twice");
        }
        if seen.len() == SETTINGS_MAX {
            return broken(EXCESSIVE_LOAD, "too many settings");
        }
        connects |= id == ENABLE_CONNECT_PROTOCOL && value == 1;
        seen.push(id);
        rest = &rest[first + second..];
    }
    Ok(connects)
}

/// Maximum number of settings of one frame.
const SETTINGS_MAX: usize = 64;
