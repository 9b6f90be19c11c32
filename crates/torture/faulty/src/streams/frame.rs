//! Parses the frames of one stream as they arrive.

use super::{DATA, HEADERS};
use protocol::http3::varint;

/// Returns whether the type is known: DATA aside, these are HEADERS and all up to CONTINUATION,
/// including those of HTTP/2, which are reserved (RFC 9114 sections 7.2 and 7.2.8), and
/// MAX_PUSH_ID. All others are ignored.
fn is_known(kind: u64) -> bool {
    matches!(kind, HEADERS..=9 | 0xd)
}

/// A parsed event.
#[derive(Debug)]
pub(super) enum Met {
    /// DATA or an unknown frame begins.
    Begins(u64),
    /// Bytes left of a frame of this type; those of DATA are content.
    Content(u64),
    Whole(u64, Vec<u8>),
    /// A frame exceeds the maximum size.
    TooLong,
}

#[derive(Debug, Default)]
pub(super) struct FrameBuffer {
    bytes: Vec<u8>,
    /// Remaining bytes of a frame that is not kept.
    left: u64,
    /// True if that frame is DATA.
    content: bool,
}

impl FrameBuffer {
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns whether no frame is incomplete.
    pub(super) fn is_between(&self) -> bool {
        self.bytes.is_empty() && self.left == 0
    }

    /// Returns the next frame, or `None` if more data is needed.
    pub(super) fn next(&mut self, max: usize) -> Option<Met> {
        if self.left > 0 {
            let count = (self.bytes.len() as u64).min(self.left);
            self.bytes.drain(..count as usize);
            self.left -= count;
            return (count > 0).then_some(Met::Content(if self.content { count } else { 0 }));
        }
        let (kind, first) = varint::get(&self.bytes)?;
        let (length, second) = varint::get(&self.bytes[first..])?;
        let head = first + second;
        if !is_known(kind) {
            self.bytes.drain(..head);
            self.left = length;
            self.content = kind == DATA;
            return Some(Met::Begins(kind));
        }
        if length > max as u64 {
            return Some(Met::TooLong);
        }
        let end = head + length as usize;
        let payload = self.bytes.get(head..end)?.to_vec();
        self.bytes.drain(..end);
        Some(Met::Whole(kind, payload))
    }
}
