//! Real sockets on loopback over io_uring, compared with [`crate::reactor::Reactor`] and the same
//! peers.

use super::*;
use crate::reactor::Reactor;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Returns a ring; `None`, with a printed note, without io_uring.
fn ring() -> Option<RingReactor> {
    match RingReactor::new(Nanos::ZERO) {
        Ok(ring) => Some(ring),
        Err(error) => {
            // a closed standard error is not a failure
            writeln!(std::io::stderr(), "io_uring is not tested: {error}").ok();
            assert!(std::env::var_os("CI").is_none(), "{error}");
            None
        }
    }
}

fn listener() -> (TcpListener, Peer) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let peer = Peer::Tcp(listener.local_addr().expect("an address"));
    (listener, peer)
}

fn soon() -> Nanos {
    monotonic() + Nanos::from_secs(20)
}

/// Writes all of it, waiting where needed.
fn write_all(io: &mut impl Io, slot: Slot, bytes: &[u8]) -> Result<(), IoError> {
    let (mut ready, mut at) = (Vec::new(), 0);
    loop {
        match io.write(slot, &bytes[at..]) {
            Ok(count) => at += count,
            Err(IoError::WouldBlock) => {
                let until = soon();
                io.wait(until, &mut ready);
                assert!(monotonic() < until, "nothing can be written");
            }
            Err(error) => return Err(error),
        }
        if at == bytes.len() {
            return Ok(());
        }
    }
}

/// Waits until there is something to read, and reads once.
fn read_some(io: &mut impl Io, slot: Slot, room: usize) -> Result<Vec<u8>, IoError> {
    let (mut ready, mut buffer) = (Vec::new(), vec![0; room]);
    loop {
        match io.read(slot, &mut buffer) {
            Err(IoError::WouldBlock) => {
                let until = soon();
                io.wait(until, &mut ready);
                assert!(monotonic() < until, "nothing comes");
            }
            other => return other.map(|count| buffer[..count].to_vec()),
        }
    }
}

/// Reads everything up to the end of the stream like a worker: until a short read, then again after
/// an event.
fn read_to_end(io: &mut impl Io, slot: Slot) -> Result<Vec<u8>, IoError> {
    let (mut all, mut ready, mut buffer) = (Vec::new(), Vec::new(), vec![0; 64 << 10]);
    loop {
        let until = soon();
        io.wait(until, &mut ready);
        assert!(monotonic() < until, "the end does not come after {} bytes", all.len());
        for event in ready.iter().filter(|event| event.slot == slot && event.readable) {
            loop {
                match io.read(slot, &mut buffer) {
                    Ok(0) => return Ok(all),
                    Ok(count) => {
                        all.extend_from_slice(&buffer[..count]);
                        if count < buffer.len() && !event.ended {
                            break;
                        }
                    }
                    Err(IoError::WouldBlock) => break,
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

/// Returns bytes without repetition, so that no piece equals another.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn connected(io: &mut impl Io, listener: &TcpListener, peer: &Peer, slot: Slot) -> TcpStream {
    io.open(slot, peer, &OpenOptions { nodelay: true, ..OpenOptions::default() }).expect("opened");
    write_all(io, slot, b"hello").expect("written");
    let (mut served, _) = listener.accept().expect("a connection");
    let mut got = [0; 5];
    served.read_exact(&mut got).expect("what was written");
    assert_eq!(&got, b"hello");
    served
}

#[test]
fn bytes_are_echoed_and_the_end_is_detected() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    let mut served = connected(&mut io, &listener, &peer, 3);
    for round in 0..50_u8 {
        assert_eq!(io.write(3, &[round; 90]), Ok(90));
        served.write_all(&[round; 200]).expect("written");
        assert_eq!(read_some(&mut io, 3, 64 << 10), Ok(vec![round; 200]));
        let mut got = [0; 90];
        served.read_exact(&mut got).expect("a request");
        assert_eq!(got, [round; 90]);
    }
    assert!(io.facts(3).is_some(), "TCP_INFO of an open connection");
    drop(served);
    assert_eq!(read_some(&mut io, 3, 64), Ok(Vec::new()), "end of the stream");
    io.close(3, Close::Orderly);
    assert_eq!(io.facts(3), None);
}

/// No write waits: data is sent before the loop sleeps, and at the latest with the 32nd connection.
#[test]
fn a_large_batch_is_submitted_at_once() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    let mut served: Vec<TcpStream> =
        (0..40).map(|slot| connected(&mut io, &listener, &peer, slot)).collect();
    for slot in 0..40 {
        assert_eq!(io.write(slot, b"request"), Ok(7));
    }
    let mut got = [0; 7];
    for stream in &mut served[..WRITES_MAX as usize] {
        stream.read_exact(&mut got).expect("it was handed over");
    }
    served[39].set_nonblocking(true).expect("set");
    assert!(served[39].read(&mut got).is_err(), "it waits for the end of the turn");
    // this many reads end a turn
    for _ in 0..READS_MAX {
        assert_eq!(io.read(0, &mut got), Err(IoError::WouldBlock));
    }
    served[39].read_exact(&mut got).expect("it was handed over");
}

#[test]
fn writes_keep_their_order() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    let mut served = connected(&mut io, &listener, &peer, 0);
    let all = pattern(3 * COPIED_MAX);
    let (small, large) = all.split_at(COPIED_MAX / 2);
    assert_eq!(io.write(0, small), Ok(small.len()));
    assert_eq!(io.write(0, &large[..9]), Ok(9));
    let taken = io.write(0, &large[9..]).expect("an empty socket takes some");
    let mut got = vec![0; small.len() + 9 + taken];
    served.read_exact(&mut got).expect("all of it");
    assert!(got == all[..got.len()]);
}

/// Uploads larger than all buffers on the way, in writes of every size, to a reader that starts
/// late.
#[test]
fn unaccepted_bytes_are_sent_later() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    let options = OpenOptions { send_buffer: Some(8_192), ..OpenOptions::default() };
    io.open(0, &peer, &options).expect("opened");
    write_all(&mut io, 0, b"hello").expect("written");
    let (mut served, _) = listener.accept().expect("a connection");
    let body = pattern(3_000_000);
    // until the socket is full and unread; in writes that are copied
    let mut at = 0;
    while let Ok(count) = io.write(0, &body[at..at + 5_000]) {
        at += count;
        let mut ready = Vec::new();
        io.wait(monotonic(), &mut ready);
        assert!(at < body.len() / 2, "the socket is full at some time");
    }
    assert!(!io.sockets[0].unsent.is_empty(), "some bytes were taken of a write, and not all");
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        served.read_to_end(&mut all).map(|_| all)
    });
    for piece in body[at..].chunks(3_001).take(100) {
        write_all(&mut io, 0, piece).expect("written");
        at += piece.len();
    }
    write_all(&mut io, 0, &body[at..]).expect("written");
    io.shutdown_write(0);
    let mut ready = Vec::new();
    while !reader.is_finished() {
        io.wait(monotonic() + Nanos::from_millis(20), &mut ready);
    }
    let got = reader.join().expect("no panic").expect("read");
    assert!(got[..5] == *b"hello" && got[5..] == body, "{} bytes came", got.len());
}

/// Responses longer than a buffer, than all buffers, and than the worker's memory.
#[test]
fn long_responses_arrive_completely() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    for length in [1, BUFFER - 1, BUFFER, BUFFER + 1, 65_536, 10 * BUFFER, 3_000_000] {
        let body = pattern(length);
        let mut served = connected(&mut io, &listener, &peer, 0);
        let sent = body.clone();
        let writer = std::thread::spawn(move || served.write_all(&sent));
        let got = read_to_end(&mut io, 0).expect("read");
        assert!(got == body, "{} bytes of {length}", got.len());
        writer.join().expect("no panic").expect("written");
        io.close(0, Close::Orderly);
    }
}

#[test]
fn a_reader_with_little_room_gets_all_in_order() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    let body = pattern(3 * BUFFER + 77);
    let mut served = connected(&mut io, &listener, &peer, 0);
    served.write_all(&body).expect("written");
    drop(served);
    let mut got = Vec::new();
    loop {
        let part = read_some(&mut io, 0, 1_000).expect("read");
        if part.is_empty() {
            break;
        }
        got.extend(part);
    }
    assert!(got == body, "{} bytes", got.len());
}

/// A response and the end of its connection that arrive together are reported together, so that no
/// request is put on an ended connection.
#[test]
fn bytes_and_a_following_end_are_one_event() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    let mut served = connected(&mut io, &listener, &peer, 0);
    served.write_all(b"the last").expect("written");
    drop(served);
    let mut ready = Vec::new();
    io.wait(soon(), &mut ready);
    assert_eq!(ready, [Ready { slot: 0, readable: true, writable: false, ended: true }]);
    assert_eq!(read_some(&mut io, 0, 64), Ok(b"the last".to_vec()));
    assert_eq!(io.read(0, &mut [0; 64]), Ok(0));
}

#[test]
fn refusals_and_resets_have_their_names() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    let served = connected(&mut io, &listener, &peer, 0);
    connect::linger_zero(served.as_fd());
    drop(served);
    let reset = IoError::Failed(FailureClass::Reset);
    assert_eq!(read_some(&mut io, 0, 64), Err(reset));
    io.close(0, Close::Orderly);
    // the write encounters it first
    let served = connected(&mut io, &listener, &peer, 0);
    connect::linger_zero(served.as_fd());
    drop(served);
    assert_eq!(io.write(0, b"nobody hears this"), Ok(17));
    assert_eq!(read_some(&mut io, 0, 64), Err(reset));
    assert_eq!(io.write(0, b"nor this"), Err(reset));
    io.close(0, Close::Reset);
    drop(listener);
    let outcome =
        io.open(0, &peer, &OpenOptions::default()).and_then(|()| write_all(&mut io, 0, b"x"));
    assert_eq!(outcome, Err(IoError::Failed(FailureClass::Refused)));
    io.close(0, Close::Orderly);
}

/// An open request holds its socket, but FIN must be sent.
#[test]
fn the_peer_sees_the_end_of_a_closed_connection() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    let mut ready = Vec::new();
    for (how, end) in [(Close::Orderly, Ok(0)), (Close::Reset, Err("Connection reset by peer"))] {
        let mut served = connected(&mut io, &listener, &peer, 0);
        // the request that receives is open
        io.wait(monotonic(), &mut ready);
        assert_eq!(io.write(0, b"the last words"), Ok(14));
        io.close(0, how);
        io.wait(monotonic(), &mut ready);
        assert_eq!(ready, []);
        let mut got = [0; 14];
        if how == Close::Orderly {
            served.read_exact(&mut got).expect("what was written before");
        } else {
            // a reset discards unread data
            while matches!(served.read(&mut got), Ok(1..)) {}
        }
        let seen = served.read(&mut got);
        match end {
            Ok(count) => assert_eq!(seen.ok(), Some(count)),
            // the previous read reported the reset
            Err(_) => assert!(!matches!(seen, Ok(1..))),
        }
    }
}

#[test]
fn events_of_a_former_connection_are_not_reported() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    let mut ready = Vec::new();
    for _ in 0..100 {
        let mut served = connected(&mut io, &listener, &peer, 0);
        io.wait(monotonic(), &mut ready);
        served.write_all(b"for the former one").expect("written");
        // mid-turn: received and not reported
        io.exchange(Await::Now);
        io.close(0, Close::Orderly);
        let again = connected(&mut io, &listener, &peer, 0);
        io.wait(monotonic(), &mut ready);
        assert_eq!(ready, []);
        assert_eq!(io.read(0, &mut [0; 64]), Err(IoError::WouldBlock));
        io.close(0, Close::Orderly);
        drop(again);
    }
    let posted = usize::from(BUFFERS) - io.pieces.free.len();
    assert_eq!(posted, BUFFERS_MIN, "no buffer was lost");
}

/// Pieces received for a connection and not read.
fn pieces_of(io: &RingReactor, slot: Slot) -> usize {
    let next = |id: &u16| Some(io.pieces.next[usize::from(*id)]).filter(|id| *id != NONE);
    let first = Some(io.sockets[slot as usize].first).filter(|id| *id != NONE);
    std::iter::successors(first, next).count()
}

/// The end of one connection keeps the events of others, and each is reported once.
#[test]
fn a_close_keeps_the_events_of_others() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    let mut served = [0, 1, 2].map(|slot| connected(&mut io, &listener, &peer, slot));
    let until = soon();
    let mut hear = |io: &mut RingReactor, slots: &[Slot], bytes: &[u8]| {
        for slot in slots {
            let pieces = pieces_of(io, *slot);
            served[*slot as usize].write_all(bytes).expect("written");
            // mid-turn: received and not reported
            while pieces_of(io, *slot) == pieces {
                io.exchange(Await::Now);
                assert!(monotonic() < until, "nothing comes");
            }
        }
    };
    hear(&mut io, &[0, 1, 2], b"first");
    io.close(0, Close::Orderly);
    hear(&mut io, &[1, 2], b"second");
    let mut ready = Vec::new();
    io.wait(monotonic(), &mut ready);
    ready.sort_by_key(|event| event.slot);
    let readable = |slot| Ready { readable: true, ..quiet(slot) };
    assert_eq!(ready, [readable(1), readable(2)]);
    for slot in [1, 2] {
        assert_eq!(read_some(&mut io, slot, 64), Ok(b"firstsecond".to_vec()));
    }
    // the last one has no successor
    hear(&mut io, &[1, 2], b"third");
    io.close(2, Close::Orderly);
    io.wait(monotonic(), &mut ready);
    assert_eq!(ready, [readable(1)]);
}

/// More connections than buffers, and more events than are reported at once.
#[test]
fn a_thousand_connections_at_once() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    const COUNT: u32 = 1_000;
    // both ends are here
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits }).expect("raised");
    let mut served: Vec<TcpStream> =
        (0..COUNT).map(|slot| connected(&mut io, &listener, &peer, slot)).collect();
    let (mut ready, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    for round in 0..3_u32 {
        for slot in 0..COUNT {
            assert_eq!(io.write(slot, &(slot + round).to_ne_bytes()), Ok(4));
        }
        io.wait(monotonic(), &mut ready);
        for (slot, stream) in served.iter_mut().enumerate() {
            let mut got = [0; 4];
            stream.read_exact(&mut got).expect("a request");
            assert_eq!(u32::from_ne_bytes(got), slot as u32 + round);
            stream.write_all(&got.repeat(25)).expect("written");
        }
        let mut heard = vec![0; COUNT as usize];
        while heard.iter().sum::<usize>() < COUNT as usize * 100 {
            let until = soon();
            io.wait(until, &mut ready);
            assert!(monotonic() < until, "{:?} came", heard.iter().sum::<usize>());
            for event in &ready {
                let count = io.read(event.slot, &mut buffer).expect("bytes");
                let want = (event.slot + round).to_ne_bytes();
                assert!(buffer[..count].chunks(4).all(|piece| piece == want));
                heard[event.slot as usize] += count;
            }
        }
    }
    drop(served);
    let mut ended = 0;
    while ended < COUNT {
        io.wait(soon(), &mut ready);
        for event in &ready {
            assert_eq!(io.read(event.slot, &mut buffer), Ok(0));
            io.close(event.slot, Close::Orderly);
            ended += 1;
        }
    }
    assert_eq!(io.open, 0);
}

#[test]
fn waiting_reaches_the_instant_and_counts_spinning() {
    // the whole wait lies within the span: there is no sleep
    let Ok(mut io) = RingReactor::new(Nanos::from_millis(50)) else { return };
    let (start, deadline, mut ready) = (monotonic(), soon(), Vec::new());
    // once is enough, if the thread has the processor at some time before the instant
    while io.spin().is_zero() {
        assert!(monotonic() < deadline, "nothing is counted");
        let until = monotonic() + Nanos::from_millis(5);
        io.wait(until, &mut ready);
        assert!(monotonic() >= until);
        assert_eq!(ready, []);
    }
    assert!(io.spin() <= monotonic() - start);
}

#[test]
fn unix_sockets_go_by_it_and_datagrams_do_not() {
    let Some(mut io) = ring() else { return };
    let folder = std::env::temp_dir().join(format!("loadstone-ring-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    io.open(1, &Peer::Unix(path), &OpenOptions::default()).expect("opened");
    write_all(&mut io, 1, b"ping").expect("written");
    let (mut served, _) = listener.accept().expect("a connection");
    served.write_all(b"pong").expect("written");
    assert_eq!(read_some(&mut io, 1, 64), Ok(b"pong".to_vec()));
    std::fs::remove_dir_all(&folder).expect("removed");
    let udp = Peer::Udp("127.0.0.1:9".parse().expect("an address"));
    assert!(io.open(2, &udp, &OpenOptions::default()).is_err());
    io.close(7, Close::Orderly);
}

/// If the kernel no longer works with a ring, its connections fail and each is notified.
#[test]
fn a_broken_ring_fails_its_connections() {
    let Some(mut io) = ring() else { return };
    let (listener, peer) = listener();
    let _served = [0, 1].map(|slot| connected(&mut io, &listener, &peer, slot));
    io.kernel.break_ring();
    let mut ready = Vec::new();
    io.wait(soon(), &mut ready);
    assert_eq!(ready.iter().map(|event| event.slot).collect::<Vec<_>>(), [0, 1]);
    for event in ready {
        assert!(event.readable && event.ended);
        let over = IoError::Failed(FailureClass::OtherIo);
        assert_eq!(io.read(event.slot, &mut [0; 9]), Err(over));
        assert_eq!(io.write(event.slot, b"x"), Err(over));
        io.close(event.slot, Close::Orderly);
        assert_eq!(io.open(event.slot, &peer, &OpenOptions::default()), Err(over));
    }
    let until = monotonic() + Nanos::from_millis(3);
    io.wait(until, &mut Vec::new());
    assert!(monotonic() >= until, "it sleeps as long as there is nothing to do");
}

/// A loop of either kind, with the same peer: a request, a response in two pieces, and a reset.
#[test]
fn both_reactors_report_the_same_events() {
    let Some(ring) = ring() else { return };
    let epoll = Reactor::new(Nanos::ZERO).expect("a loop");
    assert_eq!(story(ring), story(epoll));
}

fn story(mut io: impl Io) -> Vec<String> {
    let (listener, peer) = listener();
    let mut lines = Vec::new();
    let mut served = connected(&mut io, &listener, &peer, 5);
    for piece in ["HTTP/1.1 200 OK\r\n", "\r\nbody"] {
        served.write_all(piece.as_bytes()).expect("written");
        let came = read_some(&mut io, 5, 64).expect("read");
        lines.push(String::from_utf8_lossy(&came).into_owned());
    }
    served.shutdown(std::net::Shutdown::Write).expect("half closed");
    lines.push(format!("{:?}", read_some(&mut io, 5, 64)));
    lines.push(format!("{:?}", write_all(&mut io, 5, b"still heard")));
    let mut ready = Vec::new();
    io.wait(monotonic(), &mut ready);
    let mut got = [0; 11];
    served.read_exact(&mut got).expect("what was written");
    lines.push(String::from_utf8_lossy(&got).into_owned());
    io.close(5, Close::Reset);
    io.wait(monotonic(), &mut ready);
    lines.push(format!("{:?}", served.read(&mut got).map_err(|error| error.kind())));
    lines
}
