//! Retransmissions of a recovery and the congestion window: scripted segments.

use super::scripts::{A, FULL, Stage};
use crate::{Head, TcpSettings, flag};
use units::Nanos;

/// Returns a connection with a round trip of 20 ms.
fn stage() -> Stage {
    let mut stage = Stage::open(TcpSettings::default());
    stage.pass(20);
    stage.answer_syn();
    stage.sent();
    stage
}

/// Returns the start of segment `number`.
fn at(number: usize) -> u32 {
    1 + (number * FULL) as u32
}

impl Stage {
    /// Delivers an acknowledgment of a peer that has everything before segment `ack`, and the
    /// segments of `ranges`.
    fn peer_has(&mut self, ack: usize, ranges: &[(usize, usize)]) {
        let mut head = self.head(A, 1, at(ack));
        for (row, (from, to)) in ranges.iter().enumerate() {
            let numbers = [from, to].map(|number| self.ours.wrapping_add(at(*number)));
            head.sacks[row] = (numbers[0], numbers[1]);
        }
        head.sack_count = ranges.len() as u8;
        self.inject(head, b"");
    }

    /// Returns the numbers of the segments that were sent.
    fn segments(&mut self) -> Vec<u32> {
        let ours = self.ours;
        let heads = self.sent_heads();
        heads.iter().map(|(_, head, _)| (head.seq.wrapping_sub(ours) - 1) / FULL as u32).collect()
    }

    /// Writes this many segments, which arrive; returns how many were sent at once.
    fn burst(&mut self, count: usize, before: usize) -> usize {
        self.write(count * FULL);
        let first = self.segments().len();
        let mut sent = first;
        while sent < count {
            self.pass(20);
            self.peer_has(before + sent, &[]);
            sent += self.segments().len();
        }
        self.pass(20);
        self.peer_has(before + count, &[]);
        first
    }
}

/// In a recovery, data sent before data that has arrived is lost, regardless of the amount after
/// it.
#[test]
fn all_holes_of_a_round_trip_are_repaired_in_the_next() {
    let mut stage = stage();
    stage.write(10 * FULL);
    assert_eq!(stage.segments().len(), 10);
    stage.pass(20);
    stage.peer_has(1, &[(2, 5)]);
    assert_eq!(stage.segments(), [1]);
    // one segment beyond this hole
    stage.peer_has(1, &[(2, 8), (9, 10)]);
    assert_eq!(stage.segments(), [8]);
    stage.pass(20);
    stage.peer_has(10, &[]);
    let counts = stage.stack.counts();
    assert_eq!((counts.recoveries, counts.timeouts, counts.retransmitted), (1, 0, 2));
}

/// Segment 1 is lost twice. This is detected once segment 8, retransmitted later, has arrived.
#[test]
fn repeated_losses_are_repaired_without_a_timeout() {
    let mut stage = stage();
    stage.write(10 * FULL);
    stage.sent();
    stage.pass(20);
    stage.peer_has(1, &[(2, 8), (9, 10)]);
    assert_eq!(stage.segments(), [1, 8]);
    stage.pass(20);
    stage.peer_has(1, &[(2, 10)]);
    assert_eq!(stage.segments(), [1]);
    stage.pass(20);
    stage.peer_has(10, &[]);
    let counts = stage.stack.counts();
    assert_eq!((counts.recoveries, counts.timeouts, counts.retransmitted), (1, 0, 3));
    // new data sent after it reveals it too
    let mut stage = self::stage();
    stage.write(20 * FULL);
    assert_eq!(stage.segments().len(), 10);
    stage.pass(20);
    stage.peer_has(1, &[(2, 10)]);
    assert_eq!(stage.segments(), [1, 10, 11, 12, 13]);
    stage.pass(20);
    stage.peer_has(1, &[(2, 11)]);
    assert_eq!(stage.segments()[0], 1);
    assert_eq!(stage.stack.counts().timeouts, 0);
}

/// RFC 9937: the window is reduced while acknowledgments arrive. Of 20 segments one is lost; half
/// as many are sent as arrive.
#[test]
fn a_recovery_sends_in_proportion_to_delivered_data() {
    let mut stage = stage();
    stage.burst(20, 0);
    stage.write(42 * FULL);
    assert_eq!(stage.segments().len(), 20);
    stage.pass(20);
    // two new ones, as duplicates allow (RFC 3042), then the lost one
    for (has, sent) in [(22, 40), (23, 41), (24, 20)] {
        stage.peer_has(20, &[(21, has)]);
        assert_eq!(stage.segments(), [sent]);
    }
    let sent = (25..=42).map(|has| {
        stage.peer_has(20, &[(21, has)]);
        stage.segments().len()
    });
    let sent: Vec<usize> = sent.collect();
    // at the end 10 are in flight, half of 20
    assert_eq!(sent, [0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1]);
    stage.pass(20);
    stage.peer_has(51, &[]);
    assert_eq!(stage.segments().len(), 10);
    assert_eq!(stage.stack.counts().retransmitted, 1);
}

/// RFC 9937: if most of the window is lost, retransmission starts slowly instead of all at once.
#[test]
fn a_recovery_from_many_losses_starts_slowly() {
    let mut stage = stage();
    stage.write(10 * FULL);
    assert_eq!(stage.segments().len(), 10);
    stage.pass(20);
    stage.peer_has(0, &[(9, 10)]);
    stage.pass(6);
    assert_eq!(stage.segments(), [0]);
    for (has, sent) in [(1, &[1, 2][..]), (2, &[3, 4]), (3, &[5, 6]), (4, &[7, 8])] {
        stage.pass(20);
        stage.peer_has(has, &[(9, 10)]);
        assert_eq!(stage.segments(), sent, "behind {has}");
    }
    stage.peer_has(10, &[]);
    let counts = stage.stack.counts();
    assert_eq!((counts.recoveries, counts.timeouts, counts.retransmitted), (1, 0, 9));
}

/// With small segments, as sent with TCP_NODELAY, each one that arrives allows another one.
#[test]
fn holes_of_short_segments_are_repaired_within_a_round_trip() {
    let mut stage = stage();
    for _ in 0..10 {
        stage.write(100);
    }
    assert_eq!(stage.sent_heads().len(), 10);
    stage.pass(20);
    let ours = stage.ours;
    let place = |number: u32| ours.wrapping_add(1 + number * 100);
    let mut again = Vec::new();
    // 0, 2 and 4 are lost
    for ranges in [
        &[(1, 2)][..],
        &[(3, 4), (1, 2)],
        &[(5, 6), (3, 4), (1, 2)],
        &[(5, 7), (3, 4), (1, 2)],
        &[(5, 8), (3, 4), (1, 2)],
        &[(5, 9), (3, 4), (1, 2)],
    ] {
        let mut head = stage.head(A, 1, 1);
        for (row, (from, to)) in ranges.iter().enumerate() {
            head.sacks[row] = (place(*from), place(*to));
        }
        head.sack_count = ranges.len() as u8;
        stage.inject(head, b"");
        let sent = stage.sent_heads();
        again.extend(sent.iter().map(|(_, head, _)| (head.seq.wrapping_sub(ours) - 1) / 100));
    }
    assert_eq!(again, [0, 2, 4]);
}

/// A whole flight is lost and a queue has grown: the acknowledgment of the probe arrives shortly
/// before the timeout, that of the retransmissions after it.
#[test]
fn a_recovery_restarts_the_timeout() {
    let mut stage = stage();
    stage.write(10 * FULL);
    assert_eq!(stage.segments().len(), 10);
    stage.pass(42);
    assert_eq!(stage.segments(), [9]);
    stage.pass(200);
    stage.peer_has(0, &[(9, 10)]);
    assert_eq!(stage.segments(), [0]);
    stage.pass(219);
    assert_eq!((stage.segments(), stage.stack.counts().timeouts), (vec![], 0));
    stage.pass(1);
    assert_eq!((stage.segments(), stage.stack.counts().timeouts), (vec![0], 1));
}

/// On a path that reorders, a little data beyond a hole no longer indicates a loss.
#[test]
fn a_path_that_reorders_gets_time() {
    let mut stage = stage();
    stage.write(10 * FULL);
    stage.sent();
    stage.pass(20);
    stage.peer_has(1, &[(2, 3)]);
    stage.peer_has(10, &[]);
    assert_eq!(stage.stack.counts().retransmitted, 0);
    stage.write(10 * FULL);
    stage.sent();
    stage.pass(20);
    stage.peer_has(11, &[(12, 15)]);
    assert_eq!(stage.segments(), [11]);
    stage.peer_has(11, &[(12, 18), (19, 20)]);
    assert_eq!(stage.segments(), []);
    stage.peer_has(20, &[]);
    assert_eq!(stage.stack.counts().retransmitted, 1);
}

/// The used window counts, not the bytes in flight when the loss is detected: at the end of an
/// upload that is next to nothing.
#[test]
fn a_loss_at_the_end_of_an_upload_costs_half_the_window() {
    let mut stage = stage();
    assert_eq!(stage.burst(20, 0), 10);
    assert_eq!(stage.burst(20, 20), 20);
    stage.write(20 * FULL);
    stage.sent();
    stage.pass(20);
    stage.peer_has(56, &[(57, 60)]);
    assert_eq!(stage.segments(), [56]);
    stage.pass(20);
    stage.peer_has(60, &[]);
    // slow start had doubled the used window: 40, of which half remains
    assert_eq!(stage.burst(30, 60), 20);
}

/// The case of RFC 7661 with the rule of RFC 2861, as in Linux: a window not fully used for one
/// timeout is reduced by half of the unused part, and an idle one is halved per timeout.
#[test]
fn an_unused_window_decays() {
    let mut stage = stage();
    stage.burst(20, 0);
    stage.burst(20, 20);
    let mut sent = 40;
    for _ in 0..8 {
        stage.burst(12, sent);
        stage.pass(20);
        sent += 12;
    }
    let first = stage.burst(40, sent);
    assert!((20..30).contains(&first), "{first} of 40 or so, 12 of which were used");
    sent += 40;
    stage.pass(10_000);
    assert_eq!(stage.burst(40, sent), 10);
}

/// The growth counter of the window survives idle periods: 48 segments in three calls let a window
/// of 10 grow to 11, 12, 13 and 14.
#[test]
fn an_idle_period_keeps_the_window() {
    let mut stage = stage();
    stage.burst(20, 0);
    stage.write(10 * FULL);
    stage.sent();
    stage.pass(20);
    stage.peer_has(21, &[(22, 30)]);
    assert_eq!(stage.segments(), [21]);
    stage.pass(20);
    stage.peer_has(30, &[]);
    for call in 0..3 {
        stage.write(16 * FULL);
        assert_eq!(stage.segments().len(), [10, 11, 12][call]);
        stage.pass(20);
        for segment in 1..=16 {
            stage.peer_has(30 + call * 16 + segment, &[]);
            stage.sent();
        }
    }
    assert_eq!(stage.burst(20, 78), 14);
}

/// A retransmission that counted as lost but arrived is not sent a third time, even if nothing else
/// is due.
#[test]
fn delivered_segments_are_not_retransmitted() {
    let mut stage = stage();
    stage.write(14 * FULL);
    assert_eq!(stage.segments().len(), 10);
    let ack = |stage: &mut Stage, ack: u32, ranges: &[(u32, u32)]| {
        let mut head = stage.head(A, 1, ack);
        for (row, (from, to)) in ranges.iter().enumerate() {
            head.sacks[row] = (stage.ours.wrapping_add(*from), stage.ours.wrapping_add(*to));
        }
        head.sack_count = ranges.len() as u8;
        stage.inject(head, b"");
    };
    stage.pass(20);
    ack(&mut stage, 1, &[(11, at(4)), (at(4) + 10, at(6)), (at(6) + 10, at(8) - 100)]);
    stage.segments();
    stage.pass(20);
    ack(&mut stage, 1, &[(11, at(4)), (at(4) + 10, at(8) - 100)]);
    stage.segments();
    stage.pass(1);
    ack(&mut stage, at(4), &[(at(4) + 10, at(8))]);
    assert!(!stage.segments().contains(&0), "the first segment was acknowledged");
}

/// After a timeout no recovery starts until everything sent before is acknowledged: the holes that
/// the peer reports set no timer that would find nothing to do.
#[test]
fn holes_set_no_timer_after_a_timeout() {
    let mut stage = stage();
    stage.write(10 * FULL);
    stage.pass(20);
    stage.peer_has(1, &[(5, 6)]);
    stage.pass(6);
    stage.segments();
    // the retransmissions are lost too
    stage.pass(1_000);
    assert_eq!((stage.segments(), stage.stack.counts().timeouts), (vec![1], 1));
    stage.pass(20);
    stage.peer_has(2, &[(5, 6)]);
    assert_eq!(stage.segments()[..2], [2, 3]);
    let (end, mut looks) = (stage.now + Nanos::from_millis(190), 0);
    loop {
        let due = stage.stack.next_due(stage.now);
        if due > end {
            break;
        }
        stage.now = stage.now.max(due);
        stage.stack.tick(stage.now);
        looks += 1;
    }
    assert!(looks <= 3, "{looks} timers before the next timeout");
}

/// Data that the peer has beyond the bytes sent since a timeout frees no room. The threshold is
/// half of the 10 segments that were in flight, not half of the value to which the recovery had
/// reduced them.
#[test]
fn after_a_timeout_the_window_covers_only_later_segments() {
    let mut stage = stage();
    stage.write(20 * FULL);
    assert_eq!(stage.segments().len(), 10);
    stage.pass(20);
    stage.peer_has(0, &[(5, 10)]);
    assert_eq!(stage.segments()[0], 0);
    // all of that is lost
    stage.pass(1_000);
    assert_eq!((stage.segments(), stage.stack.counts().timeouts), (vec![0], 1));
    stage.pass(20);
    stage.peer_has(1, &[(5, 10)]);
    assert_eq!(stage.segments(), [1, 2]);
    stage.pass(20);
    stage.peer_has(2, &[(5, 10)]);
    assert_eq!(stage.segments(), [3, 4]);
    // five from here on
    stage.pass(20);
    stage.peer_has(10, &[]);
    assert_eq!(stage.segments(), [10, 11, 12, 13, 14]);
}

/// Returns a connection without timestamps, with or without tail loss probes, with a round trip of
/// this many milliseconds.
fn without_stamps(rtt: u64, rack: bool) -> Stage {
    let settings = TcpSettings { stamps: false, rack, ..TcpSettings::default() };
    let mut stage = Stage::open(settings);
    stage.stamps = false;
    stage.pass(rtt);
    stage.sent();
    stage.answer_syn();
    stage.sent();
    stage
}

/// Returns the retransmissions of each of this number of calls over a path that took 10 ms and now
/// takes one second.
fn resends_when_slow(rack: bool, calls: u32) -> Vec<usize> {
    let mut stage = without_stamps(10, rack);
    let mut resends = |call: u32| {
        stage.write(100);
        for _ in 0..100 {
            stage.pass(10);
        }
        stage.peer_sends(A, 1, 101 + call * 100, b"");
        stage.sent().len() - 1
    };
    (0..calls).map(&mut resends).collect()
}

#[test]
fn a_path_that_became_slow_is_measured_after_all() {
    assert_eq!(resends_when_slow(false, 8), [2, 1, 0, 0, 0, 0, 0, 0]);
}

/// Tail loss probes precede each timeout; every second call is measured, until the probe timer
/// exceeds a round trip.
#[test]
fn a_probe_does_not_hide_that_a_path_became_slow() {
    assert_eq!(resends_when_slow(true, 14), [3, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
}

/// RFC 6298 (5.7).
#[test]
fn a_repeated_syn_without_rtt_sets_the_rto_to_3_s() {
    let mut stage = without_stamps(1_000, false);
    stage.write(100);
    assert_eq!(stage.sent().len(), 1);
    stage.pass(2_999);
    assert_eq!(stage.sent().len(), 0);
    stage.pass(2);
    assert_eq!(stage.sent().len(), 1);
}

/// RFC 2018 section 8: a peer may drop data it has reported.
#[test]
fn data_reneged_by_the_peer_costs_one_timeout() {
    let mut stage = stage();
    stage.write(10 * FULL);
    assert_eq!(stage.segments().len(), 10);
    stage.pass(20);
    stage.peer_has(1, &[(2, 8)]);
    assert_eq!(stage.segments()[0], 1);
    stage.pass(20);
    stage.peer_has(2, &[]);
    let mut has = 2;
    for _ in 0..40 {
        stage.pass(20);
        let before = has;
        for segment in stage.segments() {
            has += usize::from(segment as usize == has);
        }
        if has > before {
            stage.peer_has(has, &[]);
        }
    }
    assert_eq!((has, stage.stack.counts().timeouts), (10, 1));
}

/// Returns a connection whose peer marks congestion, with a round trip of 20 ms.
fn marked() -> Stage {
    let mut stage = Stage::open(TcpSettings { ecn: true, ..TcpSettings::default() });
    stage.pass(20);
    let head = stage.head(flag::SYN | A | flag::ECE, 0, 1);
    let head = Head { window: 64_000, mss: Some(1_460), shift: Some(7), ..head };
    stage.inject(Head { sack_permitted: true, ..head }, b"");
    stage.sent();
    stage
}

/// RFC 3168 section 6.1.2 only forbids halving the window twice.
#[test]
fn a_loss_with_a_congestion_mark_is_repaired_at_once() {
    let mut stage = marked();
    stage.write(10 * FULL);
    assert_eq!(stage.segments().len(), 10);
    stage.pass(20);
    stage.peer_sends(A | flag::ECE, 1, at(1), b"");
    assert_eq!(stage.segments(), []);
    stage.peer_has(1, &[(2, 5)]);
    assert_eq!(stage.segments(), [1]);
    stage.pass(20);
    stage.peer_has(10, &[]);
    stage.write(20 * FULL);
    assert_eq!(stage.segments().len(), 5, "half of 10");
    let counts = stage.stack.counts();
    assert_eq!((counts.recoveries, counts.timeouts), (1, 0));
}

/// The mark has halved the window of 20. After the next loss half as many are sent as arrive.
#[test]
fn a_loss_after_a_congestion_mark_halves_the_flight() {
    let mut stage = marked();
    stage.burst(20, 0);
    stage.write(45 * FULL);
    assert_eq!(stage.segments().len(), 20);
    stage.pass(20);
    stage.peer_sends(A | flag::ECE, 1, at(21), b"");
    let sent = (22..=40).map(|has| {
        stage.peer_has(21, &[(22, has + 1)]);
        stage.segments().len()
    });
    let sent: usize = sent.sum();
    assert!((10..=12).contains(&sent), "{sent} for 19 that arrived");
}

/// Everything in flight is lost after the mark: the timeout leaves the threshold at half of the 20,
/// up to which the window doubles.
#[test]
fn a_timeout_after_a_congestion_mark_does_not_halve_again() {
    let mut stage = marked();
    stage.burst(20, 0);
    stage.write(60 * FULL);
    assert_eq!(stage.segments().len(), 20);
    stage.pass(20);
    stage.peer_sends(A | flag::ECE, 1, at(21), b"");
    stage.segments();
    for _ in 0..500 {
        stage.pass(10);
    }
    assert!(stage.stack.counts().timeouts > 0);
    stage.segments();
    let (mut has, mut flight, mut flights) = (21, 1, Vec::new());
    for _ in 0..4 {
        has += flight;
        stage.pass(20);
        stage.peer_has(has, &[]);
        flight = stage.segments().len();
        flights.push(flight);
    }
    assert_eq!(flights, [2, 4, 8, 10]);
}

/// Sequence numbers are compared within 2 GiB: a mark left at the start of a stream would then be
/// ahead.
#[test]
fn loss_marks_are_advanced_on_a_long_stream() {
    let mut stage = stage();
    for round in 1..20 {
        stage.write(10 * FULL);
        assert!(!stage.segments().is_empty());
        stage.pass(20);
        stage.peer_has(10 * round - 1, &[]);
        assert_eq!(stage.stack.marks_after(0), Some((0, 0)), "round {round}");
    }
}
