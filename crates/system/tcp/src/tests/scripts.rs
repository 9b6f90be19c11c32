//! Scripted segments in virtual time: the replies to the peer's segments, and when.

use crate::*;
use sample::FailureClass;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use units::{Nanos, Seed};

const PEER: End = End { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), port: 80 };
const SOURCES: Sources = Sources {
    first: IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)),
    addresses: 2,
    port_first: 40_000,
    port_last: 40_003,
};
/// The peer's initial sequence number; its data wraps around.
const THEIRS: u32 = u32::MAX - 1_000;

/// A stack and its scripted peer.
pub(super) struct Stage {
    pub(super) stack: TcpStack,
    pub(super) now: Nanos,
    /// Local endpoint of the connection, and its initial sequence number.
    pub(super) from: End,
    pub(super) ours: u32,
    pub(super) stamp: u32,
    pub(super) stamps: bool,
}

impl Stage {
    fn new(settings: TcpSettings) -> Stage {
        let stack = TcpStack::new(settings, SOURCES, Checksums::Ours, Seed(1));
        let from = End { address: Ipv4Addr::UNSPECIFIED.into(), port: 0 };
        Stage { stack, now: Nanos::from_secs(5), from, ours: 0, stamp: 100, stamps: true }
    }

    pub(super) fn open(settings: TcpSettings) -> Stage {
        let mut stage = Stage::new(settings);
        stage.stack.open(stage.now, 0, PEER, true, (None, None)).expect("tuples are free");
        let syn = stage.sent_heads();
        let (flow, head, _) = syn[0];
        (stage.from, stage.ours) = (flow.from, head.seq);
        stage
    }

    pub(super) fn established() -> Stage {
        let mut stage = Stage::open(TcpSettings::default());
        stage.answer_syn();
        assert_eq!(stage.sent(), ["A 1:0 ack 1"]);
        stage
    }

    pub(super) fn answer_syn(&mut self) {
        let head = Head {
            // never scaled in a SYN
            window: 64_000,
            mss: Some(1_460),
            shift: Some(7),
            sack_permitted: true,
            ..self.head(flag::SYN | flag::ACK, 0, 1)
        };
        self.inject(head, b"");
    }

    /// Returns a header of the peer, with relative sequence numbers.
    pub(super) fn head(&mut self, flags: u8, seq: u32, ack: u32) -> Head {
        self.stamp += 1;
        Head {
            seq: THEIRS.wrapping_add(seq),
            ack: self.ours.wrapping_add(ack),
            flags,
            window: 500,
            stamps: self.stamps.then_some((self.stamp, 0)),
            ..Head::default()
        }
    }

    pub(super) fn inject(&mut self, head: Head, payload: &[u8]) {
        let packet = self.packet(head, payload);
        self.stack.deliver(self.now, &packet, false);
    }

    /// Returns a packet of the peer.
    pub(super) fn packet(&self, head: Head, payload: &[u8]) -> Vec<u8> {
        let mut out = Outbox::new(Checksums::Ours);
        out.push(&Flow { from: PEER, to: self.from }, &head, [payload, b""]);
        out.packets().next().expect("one was put in").to_vec()
    }

    pub(super) fn peer_sends(&mut self, flags: u8, seq: u32, ack: u32, payload: &[u8]) {
        let head = self.head(flags, seq, ack);
        self.inject(head, payload);
    }

    /// Delivers a segment of the peer for a connection that does not exist.
    pub(super) fn deliver_stray(&mut self) {
        let mut out = Outbox::new(Checksums::Ours);
        let to = End { port: 40_001, ..self.from };
        let to = if to == self.from { End { port: 40_002, ..to } } else { to };
        let head = self.head(A, 1, 900);
        out.push(&Flow { from: PEER, to }, &head, [b"x", b""]);
        self.stack.deliver(self.now, out.packets().next().expect("one"), false);
    }

    pub(super) fn pass(&mut self, millis: u64) {
        self.now += Nanos::from_millis(millis);
        self.stack.arm(self.now);
        self.stack.tick(self.now);
    }

    pub(super) fn sent_heads(&mut self) -> Vec<(Flow, Head, usize)> {
        let heads = self.stack.outgoing().packets().map(|packet| match read(packet, false) {
            Some(ArrivedPacket::Segment { flow, head, payload }) => (flow, head, payload.len()),
            other => panic!("the stack sent {other:?}"),
        });
        let heads = heads.collect();
        self.stack.sent();
        heads
    }

    /// Returns the sent segments as text: flags, relative sequence number and length,
    /// acknowledgment, SACK blocks.
    pub(super) fn sent(&mut self) -> Vec<String> {
        let ours = self.ours;
        let line = |(_, head, length): (Flow, Head, usize)| {
            let names = [(flag::SYN, 'S'), (flag::FIN, 'F'), (flag::RST, 'R'), (flag::PSH, 'P')];
            let more = [(flag::ACK, 'A'), (flag::URG, 'U'), (flag::ECE, 'E'), (flag::CWR, 'C')];
            let flags: String =
                names.iter().chain(&more).filter(|row| head.has(row.0)).map(|row| row.1).collect();
            let mut text = format!("{flags} {}:{length}", head.seq.wrapping_sub(ours));
            if head.has(flag::ACK) {
                text += &format!(" ack {}", head.ack.wrapping_sub(THEIRS));
            }
            for (from, to) in head.sacks() {
                let (from, to) = (from.wrapping_sub(THEIRS), to.wrapping_sub(THEIRS));
                text += &format!(" sack {from}-{to}");
            }
            text
        };
        self.sent_heads().into_iter().map(line).collect()
    }

    pub(super) fn write(&mut self, bytes: usize) {
        let taken = self.stack.write(self.now, 0, &vec![7; bytes]);
        assert_eq!(taken, Ok(bytes));
    }

    pub(super) fn read(&mut self) -> Result<usize, NotDone> {
        self.stack.read(self.now, 0, &mut [0; 100_000])
    }
}

pub(super) const NOTHING: [&str; 0] = [];
pub(super) const A: u8 = flag::ACK;
/// Payload of a full segment with timestamps.
pub(super) const FULL: usize = 1_448;

#[test]
fn the_handshake_is_linuxs() {
    let mut stage = Stage::new(TcpSettings::default());
    stage.stack.open(stage.now, 0, PEER, true, (None, None)).expect("tuples are free");
    let (_, syn, _) = stage.sent_heads()[0];
    assert_eq!((syn.flags, syn.window, syn.mss), (flag::SYN, 64_240, Some(1_460)));
    assert_eq!((syn.shift, syn.sack_permitted, syn.stamps.is_some()), (Some(7), true, true));
    assert_eq!(stage.stack.write(stage.now, 0, b"x"), Err(NotDone::WouldBlock));
}

#[test]
fn a_lost_syn_is_repeated_for_131_seconds() {
    let mut stage = Stage::open(TcpSettings::default());
    for secs in [1, 1, 1, 1, 1, 2, 4, 8, 16, 32] {
        let pause = secs * 1_000;
        stage.pass(pause - 1);
        assert_eq!(stage.sent(), NOTHING, "too early");
        stage.pass(1);
        assert_eq!(stage.sent(), ["S 0:0"]);
    }
    stage.pass(63_999);
    assert_eq!(stage.stack.write(stage.now, 0, b""), Err(NotDone::WouldBlock));
    stage.pass(1);
    assert_eq!(stage.sent(), NOTHING);
    assert_eq!(
        stage.stack.write(stage.now, 0, b""),
        Err(NotDone::Failed(FailureClass::SocketTimeout))
    );
}

#[test]
fn a_refusal_is_one_only_when_it_answers_our_syn() {
    let mut stage = Stage::open(TcpSettings::default());
    stage.peer_sends(flag::RST | A, 0, 77, b"");
    stage.peer_sends(flag::RST, 0, 1, b"");
    assert_eq!(stage.stack.write(stage.now, 0, b""), Err(NotDone::WouldBlock));
    stage.peer_sends(flag::RST | A, 0, 1, b"");
    assert_eq!(stage.stack.write(stage.now, 0, b""), Err(NotDone::Failed(FailureClass::Refused)));
}

#[test]
fn a_server_that_remembers_a_former_connection_is_reset() {
    let mut stage = Stage::open(TcpSettings::default());
    stage.peer_sends(A, 500, 9_000, b"");
    assert_eq!(stage.sent(), ["R 9000:0", "S 0:0"]);
}

#[test]
fn a_peer_without_options_is_sent_none() {
    let mut stage = Stage::open(TcpSettings::default());
    stage.stamps = false;
    let head = Head { window: 5_000, ..stage.head(flag::SYN | A, 0, 1) };
    stage.inject(head, b"");
    stage.write(1_000);
    let sent = stage.sent_heads();
    assert!(sent.iter().all(|(_, head, _)| head.stamps.is_none() && head.sack_count == 0));
    let lengths: Vec<usize> = sent.iter().map(|row| row.2).collect();
    assert_eq!(lengths, [0, 536, 464], "RFC 9293's MSS");
}

#[test]
fn a_call_after_the_other_sets_no_timer_of_its_own() {
    let mut stage = Stage::established();
    let (mut ours, mut theirs, mut looks) = (1, 1, 0);
    for _ in 0..1_000 {
        stage.write(100);
        stage.sent_heads();
        ours += 100;
        // the owner reads and sends the next request at once: 40 ms later nothing is to be
        // acknowledged
        stage.now += Nanos::from_millis(50);
        while stage.stack.next_due(stage.now) <= stage.now {
            stage.stack.tick(stage.now);
            looks += 1;
        }
        stage.peer_sends(A, theirs, ours, &[1; 160]);
        theirs += 160;
        assert_eq!(stage.read(), Ok(160));
    }
    // one check per 200 ms, the minimum retransmission timeout
    assert!(looks <= 50 * 1_000 / 200 + 1, "{looks} timers");
}

#[test]
fn the_request_carries_the_acknowledgment() {
    let mut stage = Stage::established();
    stage.write(100);
    assert_eq!(stage.sent(), ["PA 1:100 ack 1"]);
    stage.peer_sends(A, 1, 101, &[1; 160]);
    assert_eq!((stage.read(), stage.sent().len()), (Ok(160), 0));
    stage.write(100);
    assert_eq!(stage.sent(), ["PA 101:100 ack 161"]);
    stage.peer_sends(A, 161, 201, &[1; 160]);
    stage.pass(39);
    assert_eq!(stage.sent(), NOTHING);
    stage.pass(1);
    assert_eq!(stage.sent(), ["A 201:0 ack 321"]);
    // the first full segments are acknowledged individually
    stage.peer_sends(A, 321, 201, &[1; FULL]);
    assert_eq!(stage.sent(), ["A 201:0 ack 1769"]);
}

#[test]
fn full_segments_are_acknowledged_in_pairs_after_sixteen() {
    let mut stage = Stage::established();
    let mut at = 1;
    let mut come = |stage: &mut Stage| {
        stage.peer_sends(A, at, 1, &[1; FULL]);
        at += FULL as u32;
        // the reader keeps up
        assert_eq!(stage.read(), Ok(FULL));
        stage.sent().len()
    };
    let acknowledged: Vec<usize> = (0..20).map(|_| come(&mut stage)).collect();
    assert_eq!(acknowledged, [[1_usize; 16].as_slice(), &[0, 1, 0, 1]].concat());
    // the acknowledgment of a last one is delayed
    assert_eq!(come(&mut stage), 0);
    stage.pass(39);
    assert_eq!(stage.sent(), NOTHING);
    stage.pass(1);
    assert_eq!(stage.sent(), [format!("A 1:0 ack {}", 1 + 21 * FULL)]);
}

#[test]
fn lost_requests_are_repeated_after_200_ms_with_doubling() {
    let mut stage = Stage::established();
    stage.write(10);
    stage.sent();
    // the first one is the tail loss probe
    for pause in [200, 200, 400, 800] {
        stage.pass(pause - 1);
        assert_eq!(stage.sent(), NOTHING, "before {pause} ms");
        stage.pass(2);
        assert_eq!(stage.sent(), ["PA 1:10 ack 1"], "after {pause} ms");
    }
    let facts = stage.stack.facts(0).map(|facts| facts.retransmits);
    assert_eq!(facts, Some(4));
}

#[test]
fn data_beyond_a_hole_is_reported_latest_first() {
    let mut stage = Stage::established();
    stage.peer_sends(A, 101, 1, &[1; 100]);
    assert_eq!(stage.sent(), ["A 1:0 ack 1 sack 101-201"]);
    stage.peer_sends(A, 301, 1, &[1; 100]);
    assert_eq!(stage.sent(), ["A 1:0 ack 1 sack 301-401 sack 101-201"]);
    assert_eq!(stage.read(), Err(NotDone::WouldBlock));
    stage.peer_sends(A, 1, 1, &[1; 150]);
    assert_eq!(stage.sent(), ["A 1:0 ack 201 sack 301-401"]);
    assert_eq!(stage.read(), Ok(200));
    // a duplicate (RFC 2883)
    stage.peer_sends(A, 101, 1, &[1; 50]);
    assert_eq!(stage.sent(), ["A 1:0 ack 201 sack 101-151 sack 301-401"]);
    stage.peer_sends(A | flag::FIN, 201, 1, &[1; 100]);
    assert_eq!(stage.read(), Ok(200), "the FIN belongs before what lies beyond it: it is forged");
    stage.sent();
    stage.peer_sends(A | flag::FIN, 401, 1, b"");
    assert_eq!((stage.sent(), stage.read()), (vec!["A 1:0 ack 402".into()], Ok(0)));
}

#[test]
fn three_duplicates_resend_only_the_lost_segment() {
    let mut stage = Stage::established();
    stage.write(8 * FULL);
    assert_eq!(stage.sent().len(), 8);
    for (row, expected) in [(1, 0), (2, 0), (3, 1)] {
        let mut head = stage.head(A, 1, 1);
        let start = stage.ours.wrapping_add(1 + FULL as u32);
        head.sacks[0] = (start, start.wrapping_add(row * FULL as u32));
        head.sack_count = 1;
        stage.inject(head, b"");
        let sent = stage.sent();
        assert_eq!(sent.len(), expected, "after duplicate {row}: {sent:?}");
        if expected == 1 {
            assert_eq!(sent, ["A 1:1448 ack 1"]);
        }
    }
    stage.peer_sends(A, 1, 1 + 8 * FULL as u32, b"");
    assert_eq!((stage.sent(), stage.stack.counts().recoveries), (vec![], 1));
}

/// Returns a connection with a round trip of 20 ms whose peer has five of our segments except the
/// fourth, or except the last two; the first three are acknowledged.
fn with_lossy_tail(has_last: bool) -> Stage {
    let mut stage = Stage::open(TcpSettings::default());
    stage.pass(20);
    stage.answer_syn();
    stage.sent();
    stage.write(5 * FULL);
    assert_eq!(stage.sent().len(), 5);
    stage.pass(20);
    let mut head = stage.head(A, 1, 1 + 3 * FULL as u32);
    if has_last {
        let last = stage.ours.wrapping_add(1 + 4 * FULL as u32);
        head.sacks[0] = (last, last.wrapping_add(FULL as u32));
        head.sack_count = 1;
    }
    stage.inject(head, b"");
    assert_eq!(stage.sent(), NOTHING);
    stage
}

#[test]
fn a_lost_tail_is_probed_after_two_round_trips() {
    let mut stage = with_lossy_tail(false);
    stage.pass(41);
    assert_eq!(stage.sent(), NOTHING);
    stage.pass(2);
    assert_eq!(stage.sent(), [format!("PA {}:1448 ack 1", 1 + 4 * FULL)]);
    // the segment that the probe reveals as missing is sent at once
    stage.pass(20);
    let mut head = stage.head(A, 1, 1 + 3 * FULL as u32);
    let last = stage.ours.wrapping_add(1 + 4 * FULL as u32);
    head.sacks[0] = (last, last.wrapping_add(FULL as u32));
    head.sack_count = 1;
    stage.inject(head, b"");
    assert_eq!(stage.sent(), [format!("A {}:1448 ack 1", 1 + 3 * FULL)]);
    stage.peer_sends(A, 1, 1 + 5 * FULL as u32, b"");
    let counts = stage.stack.counts();
    assert_eq!((counts.recoveries, counts.timeouts, counts.retransmitted), (1, 0, 2));
    stage.pass(10_000);
    assert_eq!(stage.sent(), NOTHING);
}

#[test]
fn a_hole_with_little_beyond_it_is_lost_after_a_quarter_rtt() {
    let mut stage = with_lossy_tail(true);
    stage.pass(4);
    assert_eq!(stage.sent(), NOTHING, "it may be reordered");
    stage.pass(2);
    assert_eq!(stage.sent(), [format!("A {}:1448 ack 1", 1 + 3 * FULL)]);
    stage.peer_sends(A, 1, 1 + 5 * FULL as u32, b"");
    let counts = stage.stack.counts();
    assert_eq!((counts.recoveries, counts.timeouts, counts.retransmitted), (1, 0, 1));
    // it was reordered: nothing is sent
    let mut stage = with_lossy_tail(true);
    stage.pass(4);
    stage.peer_sends(A, 1, 1 + 5 * FULL as u32, b"");
    stage.pass(10_000);
    assert_eq!((stage.sent(), stage.stack.counts().retransmitted), (vec![], 0));
}

#[test]
fn a_probe_that_repairs_a_loss_halves_the_window() {
    for (twice, room) in [(false, 6), (true, 10)] {
        let mut stage = with_lossy_tail(false);
        stage.peer_sends(A, 1, 1 + 4 * FULL as u32, b"");
        // one segment: its acknowledgment may be delayed by 200 ms
        stage.pass(243);
        assert_eq!(stage.sent(), [format!("PA {}:1448 ack 1", 1 + 4 * FULL)]);
        stage.write(FULL);
        assert_eq!(stage.sent().len(), 1);
        let mut head = stage.head(A, 1, 1 + 6 * FULL as u32);
        if twice {
            let last = stage.ours.wrapping_add(1 + 4 * FULL as u32);
            head.sacks[0] = (last, last.wrapping_add(FULL as u32));
            head.sack_count = 1;
        }
        stage.inject(head, b"");
        stage.write(40 * FULL);
        let sent = stage.sent().len();
        assert!(if twice { sent >= room } else { sent < room }, "{twice} {sent}");
    }
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let mut stage = Stage::established();
    let mut closed = stage.head(A, 1, 1);
    closed.window = 0;
    stage.inject(closed, b"");
    stage.write(10);
    assert_eq!(stage.sent(), NOTHING);
    stage.pass(1_001);
    assert_eq!(stage.sent(), ["A 0:0 ack 1"]);
    for _ in 0..40 {
        let mut closed = stage.head(A, 1, 1);
        closed.window = 0;
        stage.inject(closed, b"");
        stage.pass(120_000);
    }
    assert!(!stage.sent().is_empty(), "as long as it answers it is asked");
    stage.peer_sends(A, 1, 1, b"");
    assert_eq!(stage.sent(), ["PA 1:10 ack 1"]);
}

#[test]
fn our_window_closes_and_its_opening_is_announced() {
    let settings = TcpSettings { receive_max: 10_000, ..TcpSettings::default() };
    let mut stage = Stage::open(settings);
    stage.answer_syn();
    stage.sent();
    for row in 0..7 {
        stage.peer_sends(A, 1 + row * FULL as u32, 1, &[1; FULL]);
    }
    let (_, last, _) = *stage.sent_heads().last().expect("full segments are acknowledged");
    assert_eq!(
        (last.window, last.ack),
        (0, THEIRS.wrapping_add(10_001)),
        "what does not fit is cut"
    );
    assert_eq!(stage.read(), Ok(10_000));
    let (_, update, _) = stage.sent_heads()[0];
    assert_eq!(update.window, 10_000);
}

#[test]
fn resets_have_to_be_exact() {
    let mut stage = Stage::established();
    stage.peer_sends(flag::RST, 50, 1, b"");
    assert_eq!(stage.sent(), ["A 1:0 ack 1"], "within the window: challenged (RFC 5961)");
    stage.peer_sends(flag::RST, 9_000_000, 1, b"");
    assert_eq!(stage.sent(), NOTHING, "outside of it");
    stage.peer_sends(flag::SYN, 1, 1, b"");
    assert_eq!(stage.sent(), ["A 1:0 ack 1"]);
    assert_eq!(stage.read(), Err(NotDone::WouldBlock));
    stage.peer_sends(flag::RST, 1, 1, b"");
    assert_eq!(stage.read(), Err(NotDone::Failed(FailureClass::Reset)));
}

#[test]
fn challenges_are_limited() {
    let mut stage = Stage::established();
    for _ in 0..3_000 {
        stage.peer_sends(flag::RST, 50, 1, b"");
    }
    assert_eq!(stage.sent().len(), 1_000);
}

#[test]
fn after_an_active_close_the_tuple_waits() {
    let mut stage = Stage::established();
    stage.stack.close(stage.now, 0, false);
    assert_eq!(stage.sent(), ["FA 1:0 ack 1"]);
    stage.peer_sends(A, 1, 2, b"");
    stage.peer_sends(flag::FIN | A, 1, 2, b"");
    assert_eq!(stage.sent(), ["A 2:0 ack 2"]);
    assert_eq!((stage.stack.connections(), stage.stack.resting()), (0, 1));
    // the FIN again: our acknowledgment was lost
    stage.peer_sends(flag::FIN | A, 1, 2, b"");
    assert_eq!(stage.sent(), ["A 2:0 ack 2"]);
    let (address, port) = (Some(stage.from.address), Some(stage.from.port));
    let again = stage.stack.open(stage.now, 0, PEER, true, (address, port));
    assert_eq!(again, Err(FailureClass::AddressUnavailable), "within a second");
    stage.pass(1_000);
    stage.stack.open(stage.now, 0, PEER, true, (address, port)).expect("RFC 6191");
    let (_, syn, _) = stage.sent_heads()[0];
    assert!((syn.seq.wrapping_sub(stage.ours) as i32) > 2, "above all numbers of before");
}

#[test]
fn the_server_closes_first() {
    let mut stage = Stage::established();
    stage.peer_sends(flag::FIN | A, 1, 1, b"ab");
    assert_eq!(stage.sent(), ["A 1:0 ack 4"]);
    assert_eq!((stage.read(), stage.read()), (Ok(2), Ok(0)));
    stage.stack.close(stage.now, 0, false);
    assert_eq!(stage.sent(), ["FA 1:0 ack 4"]);
    stage.peer_sends(A, 4, 2, b"");
    assert_eq!((stage.stack.connections(), stage.stack.resting()), (0, 0));
}

#[test]
fn both_close_at_once() {
    let mut stage = Stage::established();
    stage.stack.close(stage.now, 0, false);
    stage.sent();
    stage.peer_sends(flag::FIN | A, 1, 1, b"");
    assert_eq!(stage.sent(), ["A 2:0 ack 2"]);
    stage.peer_sends(A, 2, 2, b"");
    assert_eq!((stage.stack.connections(), stage.stack.resting()), (0, 1));
}

#[test]
fn closing_with_unread_bytes_or_to_late_ones_resets() {
    let mut stage = Stage::established();
    stage.peer_sends(A, 1, 1, b"unread");
    stage.stack.close(stage.now, 0, false);
    assert_eq!(stage.sent(), ["RA 1:0 ack 7"]);
    let mut stage = Stage::established();
    stage.stack.close(stage.now, 0, false);
    stage.peer_sends(A, 1, 2, b"late");
    assert_eq!(stage.sent(), ["FA 1:0 ack 1", "RA 2:0 ack 1"]);
    assert_eq!(stage.stack.connections(), 0);
}

#[test]
fn an_unanswered_fin_abandons_the_orphan() {
    let mut stage = Stage::established();
    stage.stack.close(stage.now, 0, false);
    stage.peer_sends(A, 1, 2, b"");
    stage.pass(60_000);
    assert_eq!(stage.stack.connections(), 0);
}

#[test]
fn segments_without_a_connection_are_reset() {
    let mut stage = Stage::established();
    stage.deliver_stray();
    assert_eq!(stage.sent(), ["R 900:0"]);
}

#[test]
fn old_time_stamps_are_old_duplicates() {
    let mut stage = Stage::established();
    let mut old = stage.head(A, 1, 1);
    old.stamps = Some((50, 0));
    stage.inject(old, b"old");
    assert_eq!(
        (stage.sent(), stage.read()),
        (vec!["A 1:0 ack 1".into()], Err(NotDone::WouldBlock))
    );
}

#[test]
fn a_link_that_is_too_small_makes_smaller_segments() {
    let mut stage = Stage::established();
    stage.write(1_400);
    let packet = stage.stack.outgoing().packets().next().expect("the request").to_vec();
    stage.sent();
    let mut icmp = vec![3, 4, 0, 0, 0, 0];
    icmp.extend_from_slice(&600_u16.to_be_bytes());
    icmp.extend_from_slice(&packet[..28]);
    let total = 20 + icmp.len();
    let sum: u32 = icmp.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    let check = !(((sum >> 16) + (sum & 0xffff)) as u16);
    icmp[2..4].copy_from_slice(&check.to_be_bytes());
    let mut whole = vec![0x45, 0, 0, total as u8, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 9];
    let IpAddr::V4(ours) = stage.from.address else { panic!("the sources are of IPv4") };
    whole.extend_from_slice(&ours.octets());
    whole.extend_from_slice(&icmp);
    stage.stack.deliver(stage.now, &whole, false);
    assert_eq!(stage.sent(), ["A 1:548 ack 1", "A 549:548 ack 1", "PA 1097:304 ack 1"]);
    // new connections use the known path MTU; ten minutes later the path may have changed
    let largest_of = |slot: u32, stage: &mut Stage| {
        stage.stack.open(stage.now, slot, PEER, true, (None, None)).expect("tuples are free");
        let (flow, head, _) = stage.sent_heads()[0];
        (stage.from, stage.ours) = (flow.from, head.seq);
        stage.answer_syn();
        stage.stack.write(stage.now, slot, &[b'x'; 1_400]).expect("an open connection");
        stage.sent_heads().iter().map(|(.., length)| *length).max()
    };
    assert_eq!(largest_of(1, &mut stage), Some(548));
    stage.now += Nanos::from_secs(600);
    assert_eq!(largest_of(2, &mut stage), Some(1_400));
}

/// A handshake over IPv6 with another stack whose addresses differ only in the first bits.
#[test]
fn ipv6_addresses_are_compared_in_all_bits() {
    let address =
        |net: u16, last: u16| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, net, 0, 0, 0xf, last));
    let sources = Sources { first: address(9, 1), ..SOURCES };
    let mut stack = TcpStack::new(TcpSettings::default(), sources, Checksums::Ours, Seed(1));
    let (now, peer) = (Nanos::from_secs(1), End { address: address(7, 2), port: 80 });
    assert_eq!(stack.open(now, 0, PEER, true, (None, None)), Err(FailureClass::Unreachable));
    stack.open(now, 0, peer, true, (None, None)).expect("tuples are free");
    let syn = stack.outgoing().packets().next().expect("a SYN").to_vec();
    stack.sent();
    let Some(ArrivedPacket::Segment { flow, head, .. }) = read(&syn, false) else {
        panic!("no segment")
    };
    // 20 bytes less than over IPv4
    assert_eq!((flow.to, head.mss), (peer, Some(1_440)));
    let answer = Head {
        seq: 5,
        ack: head.seq.wrapping_add(1),
        flags: flag::SYN | A,
        window: 64_000,
        mss: Some(9_000),
        ..Head::default()
    };
    let IpAddr::V6(ours) = flow.from.address else { panic!("{flow:?}") };
    let others = Ipv6Addr::from_bits(ours.to_bits() ^ 1 << 64);
    let mut heads = |to: Ipv6Addr| {
        let mut out = Outbox::new(Checksums::Ours);
        let to = End { address: to.into(), ..flow.from };
        out.push(&Flow { from: peer, to }, &answer, [b"", b""]);
        stack.deliver(now, out.packets().next().expect("one"), false);
        let count = stack.outgoing().len();
        stack.sent();
        (count, stack.counts().established)
    };
    assert_eq!((heads(others), heads(ours)), ((0, 0), (1, 1)));
    assert!(stack.facts(0).is_some());
}

#[test]
fn congestion_is_echoed_and_answered() {
    let mut stage = Stage::open(TcpSettings { ecn: true, ..TcpSettings::default() });
    let head = Head { mss: Some(1_460), ..stage.head(flag::SYN | A | flag::ECE, 0, 1) };
    stage.inject(head, b"");
    stage.sent();
    let marked = Head { ecn: 3, ..stage.head(A, 1, 1) };
    stage.inject(marked, &[1; FULL + 12]);
    assert_eq!(stage.sent(), ["AE 1:0 ack 1461"]);
    stage.peer_sends(A | flag::ECE | flag::CWR, 1_461, 1, &[1; FULL]);
    stage.write(10);
    let sent = stage.sent_heads();
    let (_, data, _) = sent.last().expect("the request");
    assert!(data.has(flag::CWR) && !data.has(flag::ECE) && data.ecn == 2, "{data:?}");
}

#[test]
fn idle_peers_are_probed_if_enabled() {
    let keep_alive = Some(Nanos::from_secs(10));
    let mut stage = Stage::open(TcpSettings { keep_alive, ..TcpSettings::default() });
    stage.answer_syn();
    stage.sent();
    stage.pass(10_000);
    assert_eq!(stage.sent(), ["A 0:0 ack 1"]);
    for _ in 0..9 {
        stage.pass(75_000);
    }
    assert_eq!(stage.read(), Err(NotDone::Failed(FailureClass::SocketTimeout)));
}

#[test]
fn a_closed_side_sends_no_probe_and_repeats_its_fin() {
    let keep_alive = Some(Nanos::from_secs(1));
    let mut stage = Stage::open(TcpSettings { keep_alive, ..TcpSettings::default() });
    stage.answer_syn();
    stage.sent();
    stage.stack.close(stage.now, 0, false);
    let end = stage.sent();
    assert_eq!(end, ["FA 1:0 ack 1"]);
    for _ in 0..20 {
        stage.pass(1_000);
    }
    let again = stage.sent();
    assert!(again.len() > 3 && again.iter().all(|sent| *sent == end[0]), "{again:?}");
}

#[test]
fn a_repeated_syn_requests_no_ecn() {
    let mut stage = Stage::new(TcpSettings { ecn: true, ..TcpSettings::default() });
    stage.stack.open(stage.now, 0, PEER, true, (None, None)).expect("tuples are free");
    let asks = |stage: &mut Stage| {
        let sent = stage.sent_heads();
        sent.iter().map(|(_, head, _)| head.has(flag::ECE)).collect::<Vec<bool>>()
    };
    assert_eq!(asks(&mut stage), [true]);
    stage.pass(1_000);
    assert_eq!(asks(&mut stage), [false]);
}

#[test]
fn urgent_bytes_are_marked() {
    let mut stage = Stage::established();
    stage.stack.send_urgent(stage.now, 0, b'!');
    let (_, head, length) = stage.sent_heads()[0];
    assert_eq!((head.has(flag::URG), head.urgent, length), (true, 1, 1));
}

#[test]
fn all_addresses_are_used_before_a_port_is_reused() {
    let mut stage = Stage::new(TcpSettings::default());
    for slot in 0..8 {
        stage.stack.open(stage.now, slot, PEER, true, (None, None)).expect("there are eight");
    }
    let mut ends: Vec<End> = stage.sent_heads().iter().map(|(flow, ..)| flow.from).collect();
    assert!(ends.windows(2).all(|two| two[0].address != two[1].address));
    ends.sort();
    ends.dedup();
    assert_eq!(ends.len(), 8);
    let none = stage.stack.open(stage.now, 8, PEER, true, (None, None));
    assert_eq!((none, stage.stack.counts().tuples_out), (Err(FailureClass::AddressUnavailable), 1));
}

#[test]
fn used_up_tuples_are_not_searched_again_and_again() {
    for stamps in [true, false] {
        let mut stage = Stage::open(TcpSettings::default());
        stage.stamps = stamps;
        stage.answer_syn();
        stage.stack.close(stage.now, 0, false);
        stage.peer_sends(A, 1, 2, b"");
        stage.peer_sends(flag::FIN | A, 1, 2, b"");
        // seven are in use, and one is in TIME-WAIT
        for slot in 1..8 {
            stage.stack.open(stage.now, slot, PEER, true, (None, None)).expect("seven are free");
        }
        let looked_at = stage.stack.tuples_examined();
        let again = |stage: &mut Stage| stage.stack.open(stage.now, 8, PEER, true, (None, None));
        assert_eq!(again(&mut stage), Err(FailureClass::AddressUnavailable));
        stage.now += Nanos::from_secs(1);
        // RFC 6191: if timestamps distinguish the connections
        assert_eq!(again(&mut stage).is_ok(), stamps, "after a second");
        if !stamps {
            assert_eq!(stage.stack.tuples_examined(), looked_at);
            stage.now += Nanos::from_secs(60);
            assert!(again(&mut stage).is_ok(), "after 61 seconds");
        }
    }
}

#[test]
fn the_first_unacknowledged_stamp_is_echoed() {
    let mut stage = Stage::established();
    // the first segments are acknowledged individually
    stage.stamp = 200;
    stage.peer_sends(A, 1, 1, b"abc");
    let held = stage.stack.outgoing().is_empty();
    stage.stamp = 300;
    stage.peer_sends(A, 4, 1, b"def");
    stage.stack.write(stage.now, 0, b"next").expect("there is room");
    let (_, head, _) = stage.sent_heads()[0];
    let echoed = head.stamps.map(|(_, echo)| echo);
    assert_eq!((held, echoed), (true, Some(201)));
}

#[test]
fn a_connection_at_rest_takes_less_than_256_bytes() {
    let sources = Sources { addresses: 4, port_first: 1_024, port_last: 65_535, ..SOURCES };
    let mut stack = TcpStack::new(TcpSettings::default(), sources, Checksums::Ours, Seed(3));
    let now = Nanos::from_secs(1);
    const COUNT: u32 = 100_000;
    for slot in 0..COUNT {
        stack.open(now, slot, PEER, true, (None, None)).expect("tuples are free");
        stack.arm(now);
        let syn = stack.outgoing().packets().next().map(|packet| read(packet, false));
        let Some(Some(ArrivedPacket::Segment { flow, head, .. })) = syn else { panic!("no SYN") };
        stack.sent();
        let back = Flow { from: flow.to, to: flow.from };
        let answer = Head {
            ack: head.seq.wrapping_add(1),
            flags: flag::SYN | flag::ACK,
            window: 65_535,
            ..Head::default()
        };
        let mut out = Outbox::new(Checksums::Ours);
        out.push(&back, &answer, [b"", b""]);
        stack.deliver(now, out.packets().next().expect("one"), true);
        stack.sent();
    }
    assert_eq!(stack.connections(), COUNT as usize);
    let each = |stack: &TcpStack| stack.memory() / COUNT as usize;
    // with their SYN timers, and eight bytes each in the census of held connections
    assert!(each(&stack) + 8 <= 256, "{} bytes a connection", each(&stack));
    let before = each(&stack);
    stack.tick(now + Nanos::from_secs(2));
    let after = each(&stack);
    assert!(after + 8 <= 132 && after + 16 <= before, "{before} and {after} bytes a connection");
    let (mut resets, mut from) = (0, Some(0));
    while let Some(row) = from {
        from = stack.abandon(now, row);
        let waiting = stack.outgoing().len();
        assert!(waiting <= 256, "{waiting} packets wait at once");
        resets += waiting as u32;
        stack.sent();
    }
    assert_eq!((resets, stack.connections()), (COUNT, 0));
}
