//! Frames of one stream, as they come.

use super::{DATA, HEADERS};
use http3::varint;

/// Types that are known, beside DATA, and those of HTTP/2, which are reserved (RFC 9114 sections 7.2 and
/// 7.2.8): HEADERS and all up to CONTINUATION, and MAX_PUSH_ID. All others are passed over.
fn is_known(kind: u64) -> bool {
    matches!(kind, HEADERS..=9 | 0xd)
}

/// What has come of the frames.
#[derive(Debug)]
pub(super) enum Met {
    /// DATA or an unknown frame begins.
    Begins(u64),
    /// So many bytes of such a frame; of DATA they are content, and none otherwise.
    Content(u64),
    Whole(u64, Vec<u8>),
    /// A frame is longer than what is taken.
    TooLong,
}

#[derive(Debug, Default)]
pub(super) struct FrameBuffer {
    bytes: Vec<u8>,
    /// Bytes of a frame that is not kept that are still to come.
    left: u64,
    /// That frame is DATA.
    content: bool,
}

impl FrameBuffer {
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// No frame is under way.
    pub(super) fn is_between(&self) -> bool {
        self.bytes.is_empty() && self.left == 0
    }

    /// `None`: more is needed.
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
            (self.left, self.content) = (length, kind == DATA);
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
