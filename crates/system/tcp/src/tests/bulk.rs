//! Packets longer than a segment: when they are acknowledged, and data that is read in place.

use super::scripts::{A, FULL, NOTHING, Stage};
use crate::*;
use std::ops::Range;

/// Room for a packet.
const ROOM: usize = 70_000;
/// Offset of packets in it.
const AT: usize = 10;

/// Returns the byte at this offset of the peer's stream.
fn byte(at: usize) -> u8 {
    (at * 31 + at / 251) as u8
}

fn bytes(range: Range<usize>) -> Vec<u8> {
    range.map(byte).collect()
}

impl Stage {
    /// Delivers these bytes of the peer in one packet, which is read into the stack's room; returns
    /// whether they stay there.
    fn fits_in_room(&mut self, range: Range<usize>) -> bool {
        let head = self.head(A, 1 + range.start as u32, 1);
        let packet = self.packet(head, &bytes(range));
        let end = AT + packet.len();
        self.stack.room(ROOM)[AT..end].copy_from_slice(&packet);
        self.stack.deliver_here(self.now, AT..end, false)
    }

    fn take(&mut self, buffer: &mut Box<[u8]>) -> Result<Range<usize>, NotDone> {
        self.stack.take(self.now, 0, buffer)
    }

    fn batch_ends(&mut self) -> Vec<String> {
        self.stack.arm(self.now);
        self.sent()
    }
}

fn buffer() -> Box<[u8]> {
    vec![0; ROOM].into_boxed_slice()
}

#[test]
fn long_packets_are_acknowledged_when_their_batch_ends() {
    let mut stage = Stage::established();
    for at in [0, 10_000, 20_000] {
        stage.peer_sends(A, 1 + at, 1, &[1; 10_000]);
    }
    // a last segment belongs to the batch
    stage.peer_sends(A, 30_001, 1, &[1; FULL]);
    assert_eq!(stage.sent(), NOTHING);
    assert_eq!(stage.batch_ends(), ["A 1:0 ack 31449"]);
    assert_eq!(stage.batch_ends(), NOTHING);
    // the next request carries the acknowledgment
    stage.peer_sends(A, 31_449, 1, &[1; 10_000]);
    assert_eq!(stage.read(), Ok(30_000 + FULL + 10_000));
    stage.write(100);
    assert_eq!(stage.sent(), ["PA 1:100 ack 41449"]);
    assert_eq!(stage.batch_ends(), NOTHING);
    // without an end of the batch it is the next thing due
    stage.peer_sends(A, 41_449, 101, &[1; 10_000]);
    assert!(stage.stack.next_due(stage.now) > stage.now);
    assert_eq!(stage.sent(), ["A 101:0 ack 51449"]);
}

#[test]
fn a_hole_among_long_packets_is_reported_at_once() {
    let mut stage = Stage::established();
    stage.peer_sends(A, 1, 1, &[1; 10_000]);
    assert_eq!(stage.sent(), NOTHING);
    stage.peer_sends(A, 20_001, 1, &[1; 10_000]);
    assert_eq!(stage.sent(), ["A 1:0 ack 10001 sack 20001-30001"]);
    stage.peer_sends(A, 10_001, 1, &[1; 10_000]);
    assert_eq!(stage.sent(), ["A 1:0 ack 30001"]);
    // duplicate data
    stage.peer_sends(A, 10_001, 1, &[1; 10_000]);
    assert_eq!(stage.sent(), ["A 1:0 ack 30001 sack 10001-20001"]);
    stage.peer_sends(A | flag::FIN, 30_001, 1, &[1; 10_000]);
    assert_eq!(stage.sent(), ["A 1:0 ack 40002"]);
    assert_eq!(stage.batch_ends(), NOTHING);
}

#[test]
fn data_is_read_where_it_lies_in_its_packet() {
    let mut stage = Stage::established();
    let mut taken = buffer();
    for (row, mark) in [(0, 1), (1, 2)] {
        assert!(stage.fits_in_room(row * 10_000..(row + 1) * 10_000));
        *taken.last_mut().expect("room") = mark;
        let range = stage.take(&mut taken).expect("data");
        assert_eq!(taken[range], bytes(row * 10_000..(row + 1) * 10_000));
        // the two buffers were swapped
        assert_eq!(stage.stack.room(ROOM).last(), Some(&mark));
        assert_eq!(stage.take(&mut taken), Err(NotDone::WouldBlock));
    }
    // short data does not stay, and a buffer that is too short is not used for the next packet
    assert!(!stage.fits_in_room(20_000..20_100));
    assert_eq!(stage.take(&mut taken), Ok(0..100));
    assert!(stage.fits_in_room(20_100..30_100));
    let mut short = vec![0; 5_000].into_boxed_slice();
    assert_eq!(stage.take(&mut short), Ok(0..5_000));
    assert_eq!(*short, *bytes(20_100..25_100));
    assert_eq!(stage.take(&mut taken), Ok(0..5_000));
    assert_eq!(taken[..5_000], bytes(25_100..30_100));
}

#[test]
fn a_short_head_is_returned_with_the_following_bulk() {
    let mut stage = Stage::established();
    let mut taken = buffer();
    assert!(!stage.fits_in_room(0..250));
    assert!(!stage.fits_in_room(250..300));
    assert!(stage.fits_in_room(300..20_300));
    let range = stage.take(&mut taken).expect("data");
    assert!(range.start > 0, "the packet itself");
    assert_eq!(taken[range], bytes(0..20_300));
    assert_eq!(stage.take(&mut taken), Err(NotDone::WouldBlock));
    // more than fits before a packet
    assert!(stage.fits_in_room(20_300..30_300));
    assert!(stage.fits_in_room(30_300..40_300));
    assert_eq!(stage.take(&mut taken), Ok(0..20_000));
    assert_eq!(taken[..20_000], bytes(20_300..40_300));
}

#[test]
fn unread_data_is_kept_in_order() {
    let mut stage = Stage::established();
    let mut taken = buffer();
    // one packet after the other, then a hole that is filled with an overlap
    assert!(stage.fits_in_room(0..8_000));
    assert!(stage.fits_in_room(8_000..16_000));
    assert!(!stage.fits_in_room(24_000..30_000));
    assert!(!stage.fits_in_room(12_000..25_000));
    assert!(stage.fits_in_room(29_000..36_000));
    let mut got = Vec::new();
    while let Ok(range) = stage.take(&mut taken) {
        got.extend_from_slice(&taken[range]);
    }
    assert_eq!(got, bytes(0..36_000));
    // a packet of another connection arrives before the data is read
    assert!(stage.fits_in_room(36_000..44_000));
    stage.stack.deliver(stage.now, &[0; 60], false);
    stage.stack.room(ROOM).fill(0);
    assert_eq!(stage.take(&mut taken), Ok(0..8_000));
    assert_eq!(taken[..8_000], bytes(36_000..44_000));
}

#[test]
fn the_end_of_a_connection_releases_its_packet() {
    let mut stage = Stage::established();
    let mut taken = buffer();
    assert!(stage.fits_in_room(0..8_000));
    // a reset after the data: the data is read first
    let reset = stage.head(flag::RST, 8_001, 0);
    stage.inject(reset, b"");
    assert_eq!(stage.take(&mut taken), Ok(0..8_000));
    let failed = NotDone::Failed(sample::FailureClass::Reset);
    assert_eq!(stage.take(&mut taken), Err(failed));
    // no reader takes it, and the next connection in its row has none of it
    let mut stage = Stage::established();
    assert!(stage.fits_in_room(0..8_000));
    stage.stack.close(stage.now, 0, false);
    assert_eq!(stage.sent(), ["RA 1:0 ack 8001"]);
    stage.stack.open(stage.now, 0, super::world::SERVER, true, (None, None)).expect("free");
    assert_eq!(stage.take(&mut taken), Err(NotDone::WouldBlock));
    stage.stack.room(ROOM);
    assert_eq!(stage.take(&mut taken), Err(NotDone::WouldBlock));
}

#[test]
fn a_reader_that_stops_closes_the_window() {
    let settings = TcpSettings { receive_max: 100_000, ..TcpSettings::default() };
    let mut stage = Stage::open(settings);
    stage.answer_syn();
    stage.sent();
    let mut taken = buffer();
    // the first is read, so that the window opens completely
    assert!(stage.fits_in_room(0..20_000));
    stage.take(&mut taken).expect("data");
    stage.batch_ends();
    for row in 0..6 {
        stage.fits_in_room(20_000 + row * 30_000..50_000 + row * 30_000);
        stage.stack.arm(stage.now);
    }
    let (_, last, _) = *stage.sent_heads().last().expect("a full window is told");
    let (window, size) = (last.window, last.ack.wrapping_sub(stage.head(A, 0, 0).seq) as usize);
    assert_eq!((window, size), (0, 120_001));
    let mut got = Vec::new();
    while let Ok(range) = stage.take(&mut taken) {
        got.extend_from_slice(&taken[range]);
    }
    assert_eq!(got, bytes(20_000..120_000));
    let (_, update, _) = *stage.sent_heads().last().expect("its opening is told");
    assert_eq!(u32::from(update.window) << 1, 70_000, "what one read has made room for");
}
