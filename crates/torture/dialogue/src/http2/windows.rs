//! Flow control of the content that we send (RFC 9113 section 5.2): a DATA frame waits until the
//! windows of the connection and of its stream have room for all of it.

use super::{DATA, FRAME_HEAD, PREFACE};
use std::collections::BTreeMap;

/// Initial window of the connection and of each stream (RFC 9113 section 6.9.2).
const INITIAL: i64 = 65_535;
/// Maximum number of streams whose windows are known; content of others is sent at once.
const STREAMS_MAX: usize = 1_024;

/// Windows of the peer, and the position within the frames that were sent.
#[derive(Clone, Debug)]
pub(crate) struct SendWindows {
    connection: i64,
    initial: i64,
    /// Changes of the windows of single streams, relative to the initial size.
    streams: BTreeMap<u32, i64>,
    /// Remaining bytes of the preface or of the current frame.
    left: usize,
}

impl Default for SendWindows {
    fn default() -> SendWindows {
        SendWindows {
            connection: INITIAL,
            initial: INITIAL,
            streams: BTreeMap::new(),
            left: PREFACE.len(),
        }
    }
}

impl SendWindows {
    /// Processes the peer's SETTINGS_INITIAL_WINDOW_SIZE, which changes all streams.
    pub(crate) fn set_initial(&mut self, size: u32) {
        self.initial = i64::from(size);
    }

    /// Processes a WINDOW_UPDATE of the peer.
    pub(crate) fn open(&mut self, stream: u32, more: u32) {
        self.change(stream, i64::from(more));
    }

    fn change(&mut self, stream: u32, by: i64) {
        if stream == 0 {
            self.connection += by;
        } else if self.streams.len() < STREAMS_MAX || self.streams.contains_key(&stream) {
            *self.streams.entry(stream).or_default() += by;
        }
    }

    fn room(&self, stream: u32) -> i64 {
        let own = self.streams.get(&stream).copied().unwrap_or_default();
        self.connection.min(self.initial + own)
    }

    /// Returns how many of the next bytes may be sent: whole frames, up to `most` bytes.
    pub(crate) fn permitted(&self, next: &[u8], most: usize) -> usize {
        let mut spent = SendWindows { streams: BTreeMap::new(), ..self.clone() };
        let mut at = self.left;
        while at < most.min(next.len()) {
            let Some((length, kind, stream)) = head(&next[at..]) else { break };
            let used = spent.streams.get(&stream).copied().unwrap_or_default();
            let room = self.room(stream) + used;
            if kind == DATA && length as i64 > room.min(spent.connection) {
                return at;
            }
            if kind == DATA {
                spent.change(0, -(length as i64));
                spent.change(stream, -(length as i64));
            }
            at += FRAME_HEAD + length;
        }
        most.min(next.len())
    }

    /// Counts bytes that are sent. `next` continues after them.
    pub(crate) fn pass(&mut self, next: &[u8], count: usize) {
        let mut at = self.left;
        while at < count {
            let Some((length, kind, stream)) = head(&next[at..]) else { break };
            if kind == DATA {
                self.change(0, -(length as i64));
                self.change(stream, -(length as i64));
            }
            at += FRAME_HEAD + length;
        }
        self.left = at.saturating_sub(count);
    }
}

/// Returns length, type and stream of the frame at the front.
fn head(bytes: &[u8]) -> Option<(usize, u8, u32)> {
    let [high, middle, low, kind, _, a, b, c, d] = *bytes.first_chunk::<FRAME_HEAD>()?;
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    Some((length, kind, u32::from_be_bytes([a & 127, b, c, d])))
}

#[cfg(test)]
mod tests {
    use super::super::{HEADERS, write};
    use super::*;

    #[test]
    fn content_waits_for_both_windows() {
        let mut windows = SendWindows::default();
        let start = [PREFACE, &write::frame(HEADERS, 4, 1, b"block")].concat();
        assert_eq!(windows.permitted(&start, start.len()), start.len());
        windows.pass(&start, start.len());
        // four frames of 16,384 bytes exceed 65,535 bytes by one
        let data = write::data(1, &[b'a'; 65_536]);
        let three = 3 * (FRAME_HEAD + 16_384);
        assert_eq!(windows.permitted(&data, data.len()), three);
        // a part of a frame was sent before
        windows.pass(&data, three - 100);
        windows.pass(&data[three - 100..], 100);
        let rest = &data[three..];
        assert_eq!(windows.permitted(rest, rest.len()), 0);
        windows.open(1, 1);
        assert_eq!(windows.permitted(rest, rest.len()), 0);
        windows.open(0, 1);
        assert_eq!(windows.permitted(rest, rest.len()), rest.len());
        windows.pass(rest, rest.len());
        let more = write::data(3, b"b");
        assert_eq!(windows.permitted(&more, more.len()), 0);
        windows.open(0, 10);
        windows.set_initial(0);
        assert_eq!(windows.permitted(&more, more.len()), 0);
        windows.set_initial(1);
        assert_eq!(windows.permitted(&more, more.len()), more.len());
    }
}
