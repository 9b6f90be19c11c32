//! The server's limits (RFC 9000 sections 4 and 18.2), and frames that test them.

use super::frames;
use crate::transport::{number_of_parameter, parameter};
use quinn_proto::transport_parameters::TransportParameters;
use std::collections::BTreeMap;

/// Maximum number of streams used up to reach the connection limit.
const STREAMS_USED: u64 = 64;
/// Maximum number of streams with a stored limit.
const RAISED_MAX: usize = 20_000;
/// Bytes of the connection limit reserved for later data.
const LEFT: u64 = 4_096;
/// First of these streams: earlier ones belong to the conversation itself.
const FIRST_USED: u64 = 8;

#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// Bytes of all streams.
    data: u64,
    /// Bytes of each request stream, and of each unidirectional stream.
    stream_data: u64,
    one_way_data: u64,
    /// Request streams, and unidirectional streams.
    pub(super) streams: u64,
    one_way: u64,
    /// Streams with a raised limit.
    raised: BTreeMap<u64, u64>,
    /// The server forbids migration.
    pub(super) stays: bool,
    pub(super) reset_token: Option<Vec<u8>>,
    /// The sequence number of the server's connection ID in use.
    pub(super) used: u64,
    /// Number below which the server has retired connection IDs.
    pub(super) retired: u64,
}

impl Limits {
    pub(super) fn new(known: &TransportParameters) -> Limits {
        let of = |id| number_of_parameter(known, id);
        Limits {
            data: of(0x04),
            stream_data: of(0x06),
            one_way_data: of(0x07),
            streams: of(0x08),
            one_way: of(0x09),
            raised: BTreeMap::new(),
            stays: parameter(known, 0x0c).is_some(),
            reset_token: parameter(known, 0x02),
            used: 0,
            retired: 0,
        }
    }

    /// Returns the limits that a server may not reduce after accepting early data (RFC 9000 section
    /// 7.4.1).
    pub(super) fn remembered(&self) -> [u64; 5] {
        [self.data, self.stream_data, self.one_way_data, self.streams, self.one_way]
    }

    pub(super) fn raise_data_limit(&mut self, most: u64) {
        self.data = self.data.max(most);
    }

    pub(super) fn raise_stream_data_limit(&mut self, stream: u64, most: u64) {
        let now = self.of_stream(stream);
        if self.raised.len() < RAISED_MAX || self.raised.contains_key(&stream) {
            self.raised.insert(stream, now.max(most));
        }
    }

    pub(super) fn raise_stream_limit(&mut self, one_way: bool, most: u64) {
        let limit = if one_way { &mut self.one_way } else { &mut self.streams };
        *limit = most.max(*limit);
    }

    fn of_stream(&self, stream: u64) -> u64 {
        let usual = if stream & 2 == 0 { self.stream_data } else { self.one_way_data };
        self.raised.get(&stream).copied().unwrap_or(usual)
    }

    /// Returns whether this many more bytes of this stream may be sent.
    pub(super) fn fits(&self, stream: u64, more: usize, sent_offsets: &BTreeMap<u64, u64>) -> bool {
        let most = if stream & 2 == 0 { self.streams } else { self.one_way };
        let now = sent_offsets.get(&stream).copied().unwrap_or(0);
        let all: u64 = sent_offsets.values().sum();
        let more = more as u64;
        stream >> 2 < most && now + more <= self.of_stream(stream) && all + more <= self.data
    }

    /// Returns the frames of packets that test one of [`conduit::streams::LIMITS`]; `None` if there
    /// is no such limit.
    pub(super) fn frames(
        &self,
        wanted: usize,
        stream: u64,
        sent_offsets: &BTreeMap<u64, u64>,
    ) -> Option<Vec<Vec<u8>>> {
        let byte = |stream: u64, offset: u64| vec![frames::stream(stream, offset, b"x", false)];
        let of_stream = self.of_stream(stream);
        // integers have 62 bits, and stream counts 60
        let bytes = (1 << 62) - 1;
        let streams = 1 << 60;
        Some(match wanted {
            0 => byte(stream, self.edge(stream, sent_offsets).checked_sub(1)?),
            1 if of_stream < bytes => byte(stream, of_stream),
            2 => self.beyond_connection(sent_offsets)?,
            3 => byte(4 * self.streams.checked_sub(1)?, 0),
            4 if self.streams < streams => byte(4 * self.streams, 0),
            5 if self.one_way < streams => byte(4 * self.one_way + 2, 0),
            _ => return None,
        })
    }

    /// Returns the bytes that a stream may have; if all streams together may not have more, some
    /// are reserved for the rest of the conversation.
    fn edge(&self, stream: u64, sent_offsets: &BTreeMap<u64, u64>) -> u64 {
        let others =
            sent_offsets.iter().filter(|(other, _)| **other != stream).map(|(_, offset)| offset);
        let left = self.data.saturating_sub(others.sum::<u64>());
        self.of_stream(stream).min(left.saturating_sub(LEFT))
    }

    /// Returns streams and final bytes that use each stream's limit until their sum exceeds the
    /// connection limit by one.
    fn beyond_connection(&self, sent_offsets: &BTreeMap<u64, u64>) -> Option<Vec<Vec<u8>>> {
        let mut left = self.data - sent_offsets.values().sum::<u64>().min(self.data);
        let last = self.streams.min(FIRST_USED + STREAMS_USED);
        let mut out = Vec::new();
        for index in FIRST_USED..last {
            let stream = 4 * index;
            let most = self.of_stream(stream);
            // the byte at `left` is the first beyond the limit
            let beyond = left < most;
            let offset = if beyond { left } else { most.checked_sub(1)? };
            out.push(frames::stream(stream, offset, b"x", false));
            if beyond {
                return Some(out);
            }
            left -= most;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(data: u64, stream_data: u64, streams: u64) -> Limits {
        Limits { data, stream_data, streams, one_way_data: 100, one_way: 3, ..Limits::default() }
    }

    #[test]
    fn sent_data_respects_the_limits() {
        let sent_offsets = BTreeMap::from([(0, 60), (2, 10)]);
        let mut limits = limits(100, 64, 2);
        assert!(limits.fits(0, 4, &sent_offsets) && !limits.fits(0, 5, &sent_offsets));
        assert!(
            limits.fits(4, 30, &sent_offsets) && !limits.fits(4, 31, &sent_offsets),
            "of the connection"
        );
        assert!(
            !limits.fits(8, 1, &sent_offsets)
                && limits.fits(10, 1, &sent_offsets)
                && !limits.fits(14, 1, &sent_offsets)
        );
        limits.raise_stream_limit(false, 3);
        limits.raise_data_limit(1_000);
        limits.raise_stream_data_limit(0, 70);
        limits.raise_stream_data_limit(0, 65);
        assert!(limits.fits(8, 64, &sent_offsets) && limits.fits(0, 10, &sent_offsets));
        assert!(!limits.fits(0, 11, &sent_offsets));
    }

    #[test]
    fn limits_are_touched_to_the_byte() {
        let sent_offsets = BTreeMap::from([(0, 40)]);
        let few = limits(1_000, 400, 100);
        let narrow = limits(5_000, 5_000, 100).frames(0, 12, &sent_offsets).unwrap().concat();
        assert_eq!(narrow, frames::stream(12, 5_000 - 40 - LEFT - 1, b"x", false));
        let wide = limits(10_000, 400, 100).frames(0, 0, &sent_offsets).unwrap().concat();
        assert_eq!(wide, frames::stream(0, 399, b"x", false));
        let frames = |wanted| few.frames(wanted, 0, &sent_offsets).unwrap().concat();
        assert_eq!(frames(1), frames::stream(0, 400, b"x", false));
        assert_eq!(frames(3), frames::stream(396, 0, b"x", false));
        assert_eq!(frames(4), frames::stream(400, 0, b"x", false));
        assert_eq!(frames(5), frames::stream(14, 0, b"x", false));
        // 40 bytes, two times 400, and 160 are the limit
        let touched = [(32, 399), (36, 399), (40, 160)];
        let expected = touched.map(|(stream, at)| frames::stream(stream, at, b"x", false));
        assert_eq!(frames(2), expected.concat());
        let most = (1 << 62) - 1;
        assert_eq!(limits(most, 400, 100).frames(2, 0, &sent_offsets), None);
        assert_eq!(limits(most, most, 1 << 60).frames(1, 0, &sent_offsets), None);
    }
}
