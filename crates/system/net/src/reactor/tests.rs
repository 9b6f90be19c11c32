use super::*;
use sample::FailureClass;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};

fn listener() -> (TcpListener, Peer) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = Peer::Tcp(listener.local_addr().unwrap());
    (listener, peer)
}

fn soon() -> Nanos {
    monotonic() + Nanos::from_secs(5)
}

fn reactor() -> Reactor {
    Reactor::new(Nanos::ZERO).unwrap()
}

/// Waits until the slot is readable and reads once.
fn read_some(reactor: &mut Reactor, slot: Slot) -> Result<Vec<u8>, IoError> {
    let (mut ready, mut buffer) = (Vec::new(), [0; 64]);
    loop {
        match reactor.read(slot, &mut buffer) {
            Err(IoError::WouldBlock) => reactor.wait(soon(), &mut ready),
            other => return other.map(|count| buffer[..count].to_vec()),
        }
    }
}

/// Writes, waiting for the connect where needed.
fn write_all(reactor: &mut dyn Io, slot: Slot, bytes: &[u8]) -> Result<(), IoError> {
    let mut ready = Vec::new();
    loop {
        match reactor.write(slot, bytes) {
            Ok(count) => {
                assert_eq!(count, bytes.len());
                return Ok(());
            }
            Err(IoError::WouldBlock) => reactor.wait(soon(), &mut ready),
            Err(other) => return Err(other),
        }
    }
}

#[test]
fn bytes_are_echoed_and_the_end_is_detected() {
    let (listener, peer) = listener();
    let mut reactor = reactor();
    reactor.open(0, &peer, &OpenOptions { nodelay: true, ..OpenOptions::default() }).unwrap();
    write_all(&mut reactor, 0, b"ping").unwrap();
    let (mut served, _) = listener.accept().unwrap();
    let mut got = [0; 4];
    served.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"ping");
    served.write_all(b"pong").unwrap();
    assert_eq!(read_some(&mut reactor, 0).unwrap(), b"pong");
    assert!(reactor.facts(0).is_some(), "TCP_INFO of an open connection");
    drop(served);
    assert_eq!(read_some(&mut reactor, 0).unwrap(), b"", "end of the stream");
    reactor.close(0, Close::Orderly);
    assert_eq!(reactor.facts(0), None);
}

#[test]
fn a_closed_port_is_refused() {
    let (listener, peer) = listener();
    drop(listener);
    let mut reactor = reactor();
    let outcome = reactor
        .open(0, &peer, &OpenOptions::default())
        .and_then(|()| write_all(&mut reactor, 0, b"x"));
    assert_eq!(outcome, Err(IoError::Failed(FailureClass::Refused)));
}

#[test]
fn a_reset_is_distinguished_from_an_end() {
    let (listener, peer) = listener();
    let mut reactor = reactor();
    reactor.open(0, &peer, &OpenOptions::default()).unwrap();
    write_all(&mut reactor, 0, b"ping").unwrap();
    let (served, _) = listener.accept().unwrap();
    connect::linger_zero(served.as_fd());
    drop(served);
    assert_eq!(read_some(&mut reactor, 0), Err(IoError::Failed(FailureClass::Reset)));
}

#[test]
fn events_of_a_former_connection_are_not_reported() {
    let (listener, peer) = listener();
    let mut reactor = reactor();
    reactor.open(0, &peer, &OpenOptions::default()).unwrap();
    write_all(&mut reactor, 0, b"ping").unwrap();
    let (mut served, _) = listener.accept().unwrap();
    served.write_all(b"pong").unwrap();
    reactor.close(0, Close::Orderly);
    let mut ready = vec![Ready { slot: 9, readable: true, writable: true, ended: false }];
    reactor.wait(monotonic(), &mut ready);
    assert_eq!(ready, []);
}

#[test]
fn local_addresses_can_be_chosen() {
    let (listener, peer) = listener();
    let mut reactor = reactor();
    let options =
        OpenOptions { bind: Some("127.0.0.9".parse().unwrap()), ..OpenOptions::default() };
    reactor.open(0, &peer, &options).unwrap();
    write_all(&mut reactor, 0, b"ping").unwrap();
    let (_, from) = listener.accept().unwrap();
    assert_eq!(from.ip().to_string(), "127.0.0.9");
}

#[test]
fn a_failure_has_the_words_of_the_system() {
    let mut reactor = reactor();
    let nowhere = Peer::Unix("/gone/socket".into());
    let options = OpenOptions::default();
    let other = IoError::Failed(FailureClass::OtherIo);
    assert_eq!(reactor.open(1, &nowhere, &options), Err(other));
    assert_eq!(reactor.failure_text(1).as_deref(), Some("No such file or directory (os error 2)"));
    assert_eq!(reactor.failure_text(0), None);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = Peer::Tcp(listener.local_addr().unwrap());
    drop(listener);
    reactor.open(2, &nobody, &options).unwrap();
    let refused = Err(IoError::Failed(FailureClass::Refused));
    assert_eq!(write_all(&mut reactor, 2, b"ping"), refused);
    assert_eq!(reactor.failure_text(2).as_deref(), Some("Connection refused (os error 111)"));
}

#[test]
fn waiting_reaches_the_instant_and_counts_spinning() {
    let mut reactor = Reactor::new(Nanos::from_micros(200)).unwrap();
    let (until, mut ready) = (monotonic() + Nanos::from_millis(2), Vec::new());
    reactor.wait(until, &mut ready);
    assert!(monotonic() >= until);
    assert!(reactor.spin() <= Nanos::from_secs(5));
    assert_eq!(ready, []);
}

#[test]
fn unix_sockets_work_and_have_no_tcp_facts() {
    let folder = std::env::temp_dir().join(format!("loadstone-reactor-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let mut reactor = reactor();
    reactor.open(3, &Peer::Unix(path), &OpenOptions::default()).unwrap();
    write_all(&mut reactor, 3, b"ping").unwrap();
    let (mut served, _) = listener.accept().unwrap();
    let mut got = [0; 4];
    served.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"ping");
    assert_eq!(reactor.facts(3), None);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Datagrams are sent whole, several per call, and received with their size.
#[test]
fn datagrams_keep_their_bounds() {
    let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut io = Reactor::new(Nanos::ZERO).unwrap();
    let to = Peer::Udp(peer.local_addr().unwrap());
    io.open(0, &to, &OpenOptions::default()).unwrap();
    assert_eq!(io.send(0, &[7; 2_500], 1_000), Ok(2_500));
    let mut buffer = [0; 4_096];
    let mut sizes = Vec::new();
    let mut from = None;
    for _ in 0..3 {
        let (count, sender) = peer.recv_from(&mut buffer).unwrap();
        sizes.push(count);
        from = Some(sender);
    }
    assert_eq!(sizes, [1_000, 1_000, 500]);
    assert_eq!(io.receive(0, &mut buffer), Err(IoError::WouldBlock));
    peer.send_to(b"back", from.unwrap()).unwrap();
    let mut ready = Vec::new();
    io.wait(monotonic() + Nanos::from_secs(10), &mut ready);
    assert!(ready.iter().any(|event| event.slot == 0 && event.readable));
    assert_eq!(io.receive(0, &mut buffer), Ok((4, 4)));
    assert_eq!(&buffer[..4], b"back");
}

/// A closed UDP port is reported, as by ICMP.
#[test]
fn a_closed_port_of_udp_refuses() {
    let gone = "127.0.0.1:1".parse().unwrap();
    let mut io = Reactor::new(Nanos::ZERO).unwrap();
    io.open(0, &Peer::Udp(gone), &OpenOptions::default()).unwrap();
    assert_eq!(io.send(0, b"hello", 5), Ok(5));
    let mut ready = Vec::new();
    io.wait(monotonic() + Nanos::from_secs(10), &mut ready);
    let refused = IoError::Failed(FailureClass::Refused);
    assert_eq!(io.receive(0, &mut [0; 16]), Err(refused));
}

#[test]
fn an_unopened_slot_can_be_closed() {
    let mut reactor = Reactor::new(Nanos::ZERO).unwrap();
    reactor.close(7, Close::Orderly);
    reactor.close(7, Close::Reset);
}

/// Returns both reactors; only one without io_uring.
fn worlds() -> Vec<Box<dyn Io>> {
    let ring = RingReactor::new(Nanos::ZERO).ok();
    let mut worlds: Vec<Box<dyn Io>> = vec![Box::new(reactor())];
    worlds.extend(ring.map(|ring| Box::new(ring) as Box<dyn Io>));
    worlds
}

/// Returns a Unix socket with a listen queue of one connection, which is taken, and the first
/// accepted connection.
fn full_queue(name: &str) -> (std::path::PathBuf, UnixListener, UnixStream) {
    let name = format!("loadstone-reactor-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let first = UnixStream::connect(&path).unwrap();
    (path, listener, first)
}

/// Linux refuses a connect to a full queue with EAGAIN and does not notify when there is room.
#[test]
fn a_connect_waits_for_room_in_the_listen_queue() {
    let (path, listener, _first) = full_queue("room");
    let peer = Peer::Unix(path.clone());
    let mut ready = Vec::new();
    for io in &mut worlds() {
        for slot in [0, 1] {
            io.open(slot, &peer, &OpenOptions::default()).unwrap();
            assert_eq!(io.write(slot, b"ping"), Err(IoError::WouldBlock));
            assert_eq!(io.read(slot, &mut [0; 8]), Err(IoError::WouldBlock));
        }
        // no result while nothing accepts
        let until = monotonic() + Nanos::from_millis(20);
        while monotonic() < until {
            io.wait(until, &mut ready);
            assert_eq!(ready, []);
        }
        io.close(1, Close::Orderly);
        drop(listener.accept().unwrap());
        while !ready.iter().any(|event| event.slot == 0 && event.writable) {
            io.wait(soon(), &mut ready);
        }
        // this connection fills the queue for the next world
        assert_eq!(io.write(0, b"ping"), Ok(4));
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_vanished_server_refuses_waiting_connects() {
    for (number, io) in worlds().iter_mut().enumerate() {
        let (path, listener, _first) = full_queue(&format!("gone-{number}"));
        io.open(0, &Peer::Unix(path.clone()), &OpenOptions::default()).unwrap();
        assert_eq!(io.write(0, b""), Err(IoError::WouldBlock));
        drop(listener);
        let refused = IoError::Failed(FailureClass::Refused);
        assert_eq!(write_all(io.as_mut(), 0, b"ping"), Err(refused));
        if number == 0 {
            assert_eq!(io.failure_text(0).as_deref(), Some("Connection refused (os error 111)"));
        }
        assert_eq!(io.read(0, &mut [0; 8]), Err(refused));
        std::fs::remove_file(&path).unwrap();
    }
}

/// Runs users that each have their connection served, close it and open the next; returns the
/// maximum number served while another one waited.
fn longest_wait(io: &mut dyn Io, listener: &UnixListener, peer: &Peer, users: u8) -> usize {
    let mut ready = Vec::new();
    let mut opened = vec![0; usize::from(users)];
    let enter = |io: &mut dyn Io, user: u8| {
        io.open(user.into(), peer, &OpenOptions::default()).unwrap();
        io.write(user.into(), &[user]).ok();
    };
    (0..users).for_each(|user| enter(io, user));
    let mut longest = 0;
    for served in 1..=10 * usize::from(users) {
        let mut user = [0];
        listener.accept().unwrap().0.read_exact(&mut user).unwrap();
        let [user] = user;
        longest = longest.max(served - opened[usize::from(user)]);
        opened[usize::from(user)] = served;
        io.close(user.into(), Close::Orderly);
        enter(io, user);
        // the place is taken at once, by a waiting connect
        io.wait(Nanos::ZERO, &mut ready);
        let next = ready.first().expect("somebody got the place").slot;
        assert_eq!(io.write(next, &[next as u8]), Ok(1));
    }
    longest
}

#[test]
fn waiting_connects_are_not_overtaken() {
    let name = format!("loadstone-reactor-{}-turns", std::process::id());
    let path = std::env::temp_dir().join(name);
    for mut io in worlds() {
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 3).unwrap();
        let peer = Peer::Unix(path.clone());
        assert_eq!(longest_wait(io.as_mut(), &listener, &peer, 40), 40);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn arrivals_are_busy_waited_while_connects_wait() {
    let (path, _listener, _first) = full_queue("spin");
    let span = Nanos::from_secs(10);
    let mut worlds: Vec<Box<dyn Io>> = vec![Box::new(Reactor::new(span).unwrap())];
    worlds.extend(RingReactor::new(span).ok().map(|ring| Box::new(ring) as Box<dyn Io>));
    for io in &mut worlds {
        io.open(0, &Peer::Unix(path.clone()), &OpenOptions::default()).unwrap();
        let until = monotonic() + Nanos::from_millis(2);
        io.wait(until, &mut Vec::new());
        assert!(monotonic() >= until && io.spin() > Nanos::ZERO);
    }
    std::fs::remove_file(&path).unwrap();
}
