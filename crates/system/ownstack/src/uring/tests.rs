use super::*;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::os::fd::OwnedFd;

/// Returns a packet queue and its other end; `None`, with a message, without io_uring.
pub(crate) fn pair() -> Option<(OwnedFd, OwnedFd)> {
    if let Err(error) = probe() {
        use std::io::Write;
        // no one reads it when standard error is closed
        writeln!(io::stderr(), "io_uring is not tested: {error}").ok();
        assert!(std::env::var_os("CI").is_none(), "{error}");
        return None;
    }
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .expect("a pair of sockets");
    // as long as the default of Linux, whatever this machine is set to
    for end in [&ours, &theirs] {
        rustix::net::sockopt::set_socket_send_buffer_size(end, 106_496).expect("a queue's length");
    }
    Some((ours, theirs))
}

fn queue() -> Option<(PacketRing, OwnedFd)> {
    let (ours, theirs) = pair()?;
    Some((PacketRing::open(&ours).expect("a ring"), theirs))
}

fn packets(count: usize, length: usize) -> Vec<Vec<u8>> {
    (0..count).map(|row| vec![row as u8; length]).collect()
}

fn sent(packets: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    packets.iter().map(Vec::as_slice)
}

fn put(queue: &OwnedFd, packets: &[Vec<u8>]) {
    for packet in packets {
        rustix::io::write(queue, packet).expect("it takes packets");
    }
}

/// Returns everything available now.
fn received(queue: &OwnedFd) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; 70_000];
    let mut all = Vec::new();
    while let Ok(length) = rustix::io::read(queue, &mut buffer[..])
        && length > 0
    {
        all.push(buffer[..length].to_vec());
    }
    all
}

fn taken(ring: &mut PacketRing, span: Option<Duration>) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    ring.exchange(std::iter::empty(), span);
    ring.take(|packet| all.push(packet.to_vec()));
    all
}

const NOW: Option<Duration> = Some(Duration::ZERO);
const LONG: Option<Duration> = Some(Duration::from_secs(20));

#[test]
fn packets_go_out_in_order_and_their_memory_is_free_at_once() {
    let Some((mut ring, peer)) = queue() else { return };
    let mut all = packets(8, 300);
    ring.send(sent(&all));
    for packet in &mut all {
        packet.fill(0xee);
    }
    assert_eq!(received(&peer), packets(8, 300));
    assert_eq!(ring.refused(), 0);
}

#[test]
fn one_call_hands_over_and_waits() {
    let Some((mut ring, peer)) = queue() else { return };
    let both = packets(2, 60);
    put(&peer, &both);
    let mut came = Vec::new();
    ring.exchange(sent(&both), LONG);
    ring.take(|packet| came.push(packet.to_vec()));
    assert_eq!((received(&peer), came), (both.clone(), both));
    // nothing arrived: the wait ends after the span
    assert!(taken(&mut ring, Some(Duration::from_millis(1))).is_empty());
    put(&peer, &packets(1, 9));
    assert_eq!(taken(&mut ring, LONG), packets(1, 9));
}

#[test]
fn more_packets_than_buffers_arrive_complete_and_ordered() {
    let Some((mut ring, peer)) = queue() else { return };
    let mut came = Vec::new();
    let (rounds, each) = (100, 8);
    for round in 1..=rounds {
        put(&peer, &packets(each, 1_000));
        while came.len() < round * each {
            let more = taken(&mut ring, LONG);
            assert!(!more.is_empty(), "{} came", came.len());
            came.extend(more);
        }
    }
    assert_eq!(came.len(), rounds * each);
    assert!(came.chunks(each).all(|round| round == packets(each, 1_000)));
}

#[test]
fn packets_of_any_length_are_whole() {
    let Some((mut ring, peer)) = queue() else { return };
    for length in [1, 60, 1_500, 9_000, 65_545, 40, 65_545] {
        let one = packets(1, length);
        put(&peer, &one);
        assert_eq!(taken(&mut ring, LONG), one, "{length}");
    }
}

#[test]
fn refused_packets_are_counted_and_others_sent() {
    let Some((mut ring, peer)) = queue() else { return };
    // more than the queue of the socket holds
    let many = packets(600, 1_000);
    ring.send(sent(&many));
    let there = received(&peer);
    // the kernel reports some of its failures per call
    ring.settle_all();
    let refused = ring.refused() as usize;
    assert!(refused > 0 && there.len() + refused == 600, "{} and {refused}", there.len());
    assert_eq!(there, many[..there.len()], "the first ones are there");
    ring.send(sent(&many[..1]));
    assert!(taken(&mut ring, NOW).is_empty());
    assert_eq!((received(&peer).len(), ring.refused(), ring.is_broken()), (1, 0, false));
}

#[test]
fn an_ended_ring_keeps_sent_and_unread_packets() {
    let Some((mut ring, peer)) = queue() else { return };
    assert!(taken(&mut ring, NOW).is_empty(), "the request that reads is open");
    ring.send(sent(&packets(5, 100)));
    drop(ring);
    assert_eq!(received(&peer), packets(5, 100));
    // the other end sees a close only when nothing keeps the file open
    let closed = rustix::io::write(&peer, &[1]);
    assert_eq!(closed, Err(Errno::PIPE));
}

#[test]
fn use_from_another_thread_is_refused_safely() {
    let Some((ring, peer)) = queue() else { return };
    let elsewhere = std::thread::spawn(move || {
        let mut ring = ring;
        ring.send(sent(&packets(3, 50)));
        (ring.is_broken(), ring.refused())
    });
    assert_eq!(elsewhere.join().expect("no panic"), (true, 3));
    assert!(received(&peer).is_empty());
}

/// Failures that one call cannot report are reported in the same turn.
#[test]
fn a_turn_reports_all_refusals_together() {
    let Some((mut ring, peer)) = queue() else { return };
    ring.send(sent(&packets(600, 1_000)));
    let there = received(&peer).len();
    assert!(taken(&mut ring, NOW).is_empty());
    assert_eq!(ring.refused() as usize, 600 - there);
}

/// Reading fails permanently, as for a deleted device: it is tried only once.
#[test]
fn a_deleted_device_is_not_read_again() {
    let Some((mut ring, peer)) = queue() else { return };
    put(&peer, &packets(2, 60));
    ring.exchange(sent(&packets(1, 60)), NOW);
    assert!(ring.reading && !ring.is_gone());
    // a socket whose peer closed with unread packets is reset
    drop(peer);
    ring.exchange(std::iter::empty(), LONG);
    let mut came = 0;
    for _ in 0..8 {
        ring.take(|_| came += 1);
        ring.exchange(std::iter::empty(), NOW);
    }
    assert_eq!((came, ring.is_gone(), ring.reading), (2, true, false));
}
