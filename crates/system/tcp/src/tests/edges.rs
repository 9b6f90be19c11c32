//! Rare events: questions of the peer, unclean ends, exhausted tuples.

use super::scripts::{A, Stage};
use crate::{Head, flag};

/// Returns how many segments were sent, and those that differ from the one before.
fn alike(stage: &mut Stage) -> (usize, Vec<String>) {
    let mut sent = stage.sent();
    let count = sent.len();
    sent.dedup();
    (count, sent)
}

/// A server sends keep-alive probes on every open connection: thousands per second.
#[test]
fn all_questions_whether_we_are_there_are_answered() {
    let mut stage = Stage::established();
    for _ in 0..3_000 {
        stage.peer_sends(A, 0, 1, b"");
    }
    assert_eq!(alike(&mut stage), (3_000, vec!["A 1:0 ack 1".into()]));
    // our acknowledgment of the handshake was lost
    for _ in 0..3_000 {
        stage.peer_sends(flag::SYN | A, 0, 1, b"");
    }
    assert_eq!(alike(&mut stage), (3_000, vec!["A 1:0 ack 1".into()]));
}

#[test]
fn doubtful_segments_and_strays_are_limited_separately() {
    let mut stage = Stage::established();
    for _ in 0..3_000 {
        stage.peer_sends(flag::RST, 50, 1, b"");
    }
    assert_eq!(stage.sent().len(), 1_000);
    for _ in 0..3_000 {
        stage.deliver_stray();
    }
    assert_eq!(alike(&mut stage), (1_000, vec!["R 900:0".into()]));
    stage.pass(1_000);
    stage.peer_sends(flag::RST, 50, 1, b"");
    stage.deliver_stray();
    assert_eq!(stage.sent(), ["A 1:0 ack 1", "R 900:0"]);
}

#[test]
fn a_wrong_fin_does_not_keep_the_real_one_out() {
    let mut stage = Stage::established();
    stage.peer_sends(A | flag::FIN, 500, 1, b"");
    assert_eq!(stage.sent(), ["A 1:0 ack 1"]);
    stage.peer_sends(A | flag::FIN, 1, 1, b"ab");
    assert_eq!(stage.sent(), ["A 1:0 ack 4"]);
    assert_eq!((stage.read(), stage.read()), (Ok(2), Ok(0)));
}

/// A reader that leaves a byte each time: data already read is freed.
#[test]
fn read_data_uses_no_memory() {
    const EACH: usize = 50_000;
    let mut stage = Stage::established();
    stage.peer_sends(A, 1, 1, b"x");
    for row in 0..2_000 {
        stage.peer_sends(A, (2 + row * EACH) as u32, 1, &[1; EACH]);
        assert_eq!(stage.stack.read(stage.now, 0, &mut [0; EACH]), Ok(EACH));
        stage.pass(1);
        stage.stack.sent();
    }
    let buffers = stage.stack.buffers();
    assert!(buffers <= 8 * EACH, "{buffers} bytes");
}

/// The window stays closed, and no owner of the connection waits for it to open.
#[test]
fn an_orphan_at_a_closed_window_is_abandoned() {
    let mut stage = Stage::established();
    let closed = |stage: &mut Stage| {
        let head = Head { window: 0, ..stage.head(A, 1, 1) };
        stage.inject(head, b"");
    };
    closed(&mut stage);
    stage.write(10);
    stage.stack.close(stage.now, 0, false);
    for minute in 0..40 {
        if minute < 5 {
            assert_eq!(stage.stack.connections(), 1, "what is written is to be delivered still");
        }
        closed(&mut stage);
        stage.pass(60_000);
    }
    assert_eq!(stage.stack.connections(), 0);
}
