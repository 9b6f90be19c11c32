//! Frames of a stream (RFC 9114 section 7.1): a type, a length, a payload.

use crate::http3::varint;

pub(crate) const DATA: u64 = 0x0;
pub(crate) const HEADERS: u64 = 0x1;
pub(crate) const CANCEL_PUSH: u64 = 0x3;
pub(crate) const SETTINGS: u64 = 0x4;
pub(crate) const PUSH_PROMISE: u64 = 0x5;
pub(crate) const GOAWAY: u64 = 0x7;
pub(crate) const MAX_PUSH_ID: u64 = 0xd;

/// Returns whether the type is one of HTTP/2 that must not be sent (RFC 9114 section 7.2.8).
pub(crate) fn is_reserved(kind: u64) -> bool {
    matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
}

/// Appends a frame header to `out`.
pub(crate) fn put_head(out: &mut Vec<u8>, kind: u64, length: u64) {
    varint::put(out, kind);
    varint::put(out, length);
}

/// The partially received frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameReader {
    head: [u8; 2 * varint::BYTES_MAX],
    have: usize,
    /// Type, and remaining bytes of the payload; `None` if the header is incomplete.
    current: Option<(u64, u64)>,
}

impl FrameReader {
    /// Reads the available part of an incomplete frame header; returns how many bytes that was.
    pub(crate) fn open(&mut self, input: &[u8]) -> usize {
        let mut taken = 0;
        while self.current.is_none() && taken < input.len() {
            self.head[self.have] = input[taken];
            self.have += 1;
            taken += 1;
            let read = varint::get(&self.head[..self.have]);
            let Some((kind, bytes)) = read else { continue };
            let rest = varint::get(&self.head[bytes..self.have]);
            self.current = rest.map(|(length, _)| (kind, length));
        }
        taken
    }

    /// Returns the number of bytes of the head.
    pub(crate) fn head_bytes(&self) -> u64 {
        self.have as u64
    }

    /// Returns the type of a frame with a complete header, and the remaining bytes of its payload.
    pub(crate) fn current(&self) -> Option<(u64, u64)> {
        self.current
    }

    /// Consumes this many bytes of the payload. Returns true if the frame is complete.
    pub(crate) fn pass(&mut self, count: usize) -> bool {
        let Some((_, left)) = &mut self.current else { return false };
        *left -= count as u64;
        if *left > 0 {
            return false;
        }
        (self.have, self.current) = (0, None);
        true
    }

    /// Returns whether no frame is in progress.
    pub(crate) fn is_between(&self) -> bool {
        self.have == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_byte_by_byte() {
        let mut bytes = Vec::new();
        put_head(&mut bytes, 0x1234, 70_000);
        let mut reader = FrameReader::default();
        assert!(reader.is_between());
        for at in 0..bytes.len() {
            assert_eq!(reader.current(), None, "after {at} bytes");
            assert_eq!(reader.open(&bytes[at..=at]), 1);
        }
        assert_eq!(reader.current(), Some((0x1234, 70_000)));
        assert_eq!(reader.head_bytes(), bytes.len() as u64);
        assert!(!reader.pass(69_999) && reader.pass(1) && reader.is_between());
    }

    #[test]
    fn a_frame_without_payload_is_whole_at_once() {
        let mut reader = FrameReader::default();
        assert_eq!(reader.open(&[0x4, 0, 9, 9]), 2);
        assert_eq!(reader.current(), Some((SETTINGS, 0)));
        assert!(reader.pass(0));
    }
}
