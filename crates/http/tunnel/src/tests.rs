//! Tunnels over scripted connections: the server's frames are written by hand.

mod http3;

use super::*;
use std::collections::BTreeMap;

/// Connections whose peer is the test.
#[derive(Debug, Default)]
struct Wire {
    input: BTreeMap<Slot, Vec<u8>>,
    output: BTreeMap<Slot, Vec<u8>>,
    ready: Vec<Ready>,
    closed: Vec<Slot>,
    failed: Option<FailureClass>,
    facts: SocketFacts,
    quic: Option<QuicEnd>,
    /// Bytes of each stream that wait for the peer's credit.
    unsent: usize,
}

impl Wire {
    fn feed(&mut self, slot: Slot, bytes: &[u8]) {
        self.input.entry(slot).or_default().extend_from_slice(bytes);
        self.ready.push(Ready { slot, readable: true, writable: false, ended: false });
    }

    fn sent(&mut self, slot: Slot) -> Vec<u8> {
        self.output.remove(&slot).unwrap_or_default()
    }
}

impl Io for Wire {
    fn now(&mut self) -> Nanos {
        Nanos::ZERO
    }

    fn open(&mut self, slot: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
        self.output.insert(slot, Vec::new());
        Ok(())
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        if let Some(class) = self.failed {
            return Err(IoError::Failed(class));
        }
        self.output.entry(slot).or_default().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let input = self.input.entry(slot).or_default();
        let count = input.len().min(buffer.len());
        buffer[..count].copy_from_slice(&input[..count]);
        input.drain(..count);
        if count == 0 { Err(IoError::WouldBlock) } else { Ok(count) }
    }

    fn close(&mut self, slot: Slot, _: Close) {
        self.closed.push(slot);
    }

    fn shutdown_write(&mut self, _: Slot) {}

    fn facts(&mut self, _: Slot) -> Option<SocketFacts> {
        Some(self.facts)
    }

    fn quic(&mut self, _: Slot) -> Option<QuicEnd> {
        self.quic.clone()
    }

    fn unsent(&mut self, _: Slot, _: u64) -> usize {
        self.unsent
    }

    fn wait(&mut self, _: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
        ready.append(&mut self.ready);
    }
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status 200` and `:status 404` of HPACK's static table.
const OK: &[u8] = &[0x88];
const NOT_FOUND: &[u8] = &[0x8d];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Returns a SETTINGS frame with these ids and values.
fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (id, value) in pairs {
        payload.extend(id.to_be_bytes());
        payload.extend(value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, &payload)
}

fn allowing() -> Vec<u8> {
    settings(&[(8, 1)])
}

/// Frames as `kind flags stream length`, without the preface.
fn frames(bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut rest = bytes.strip_prefix(http2::PREFACE).unwrap_or(bytes);
    let mut found = Vec::new();
    while let [a, b, c, kind, flags, s0, s1, s2, s3, tail @ ..] = rest {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let stream = u32::from_be_bytes([*s0, *s1, *s2, *s3]);
        found.push((*kind, *flags, stream, tail[..length].to_vec()));
        rest = &tail[length..];
    }
    found
}

fn server() -> Peer {
    Peer::Tcp("127.0.0.1:1".parse().unwrap())
}

fn peer() -> Peer {
    Peer::Tunnel { to: Box::new(server()), name: None }
}

fn tunnels(per_connection: u32) -> Tunnels<Wire> {
    let settings = SessionSettings::default();
    Tunnels::new(Wire::default(), TunnelTerms { settings, per_connection, tls: None })
}

/// Slots that were reported, with `r` or `w` for each.
fn turn(io: &mut Tunnels<Wire>) -> String {
    let mut ready = Vec::new();
    io.wait(Nanos::NEVER, &mut ready);
    let text = |it: &Ready| {
        let kinds = [(it.readable, "r"), (it.writable, "w"), (it.ended, "e")];
        let kinds: String = kinds.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
        format!("{}{kinds}", it.slot)
    };
    ready.iter().map(text).collect::<Vec<_>>().join(" ")
}

fn read(io: &mut Tunnels<Wire>, slot: Slot) -> String {
    let mut buffer = [0; 4096];
    match io.read(slot, &mut buffer) {
        Ok(count) => String::from_utf8_lossy(&buffer[..count]).into_owned(),
        Err(error) => format!("{error:?}"),
    }
}

const UPGRADE: &[u8] = b"GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Returns `count` tunnels that have sent their upgrades on one connection.
fn asked(count: Slot) -> Tunnels<Wire> {
    let mut io = tunnels(100);
    (0..count).for_each(|slot| io.open(slot, &peer(), &OpenOptions::default()).unwrap());
    io.io.feed(0, &allowing());
    turn(&mut io);
    (0..count).for_each(|slot| assert_eq!(io.write(slot, UPGRADE), Ok(UPGRADE.len())));
    turn(&mut io);
    io
}

#[test]
fn a_tunnel_waits_for_settings_and_carries_bytes() {
    let mut io = tunnels(100);
    io.open(0, &peer(), &OpenOptions::default()).unwrap();
    assert_eq!(turn(&mut io), "");
    assert_eq!(io.write(0, UPGRADE), Err(IoError::WouldBlock));
    io.io.feed(0, &allowing());
    assert_eq!(turn(&mut io), "0w");
    // the head may arrive in parts
    assert_eq!(io.write(0, &UPGRADE[..20]), Ok(20));
    assert_eq!(io.write(0, &UPGRADE[20..]), Ok(UPGRADE.len() - 20));
    io.io.sent(0);
    turn(&mut io);
    let sent = frames(&io.io.sent(0));
    assert_eq!(sent.iter().rfind(|it| it.0 == HEADERS).map(|it| (it.1, it.2)), Some((4, 1)));
    io.io.feed(0, &[frame(HEADERS, END_HEADERS, 1, OK), frame(DATA, 0, 1, b"hi")].concat());
    assert_eq!(turn(&mut io), "0r");
    let text = read(&mut io, 0);
    assert!(text.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{text}");
    assert!(text.contains("Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhi"), "{text}");
    assert_eq!(io.write(0, b"frame"), Ok(5));
    turn(&mut io);
    assert_eq!(frames(&io.io.sent(0)), [(DATA, 0, 1, b"frame".to_vec())]);
    io.io.feed(0, &frame(DATA, END_STREAM, 1, b"bye"));
    assert_eq!(turn(&mut io), "0re");
    assert_eq!((read(&mut io, 0), read(&mut io, 0)), ("bye".to_owned(), String::new()));
    io.close(0, Close::Orderly);
    assert_eq!(frames(&io.io.sent(0)), [(DATA, END_STREAM, 1, Vec::new())]);
    assert_eq!((io.carriers(), io.carriers()), (1, 0));
}

#[test]
fn a_refused_upgrade_has_its_status() {
    let mut io = asked(1);
    io.io.feed(0, &frame(HEADERS, END_HEADERS | END_STREAM, 1, NOT_FOUND));
    assert_eq!(turn(&mut io), "0re");
    assert_eq!(read(&mut io, 0), "HTTP/1.1 404 \r\n\r\n");
}

#[test]
fn a_server_without_the_setting_is_reported() {
    let mut io = tunnels(100);
    io.open(0, &peer(), &OpenOptions::default()).unwrap();
    io.io.feed(0, &settings(&[]));
    assert_eq!(turn(&mut io), "0rwe");
    assert_eq!(io.write(0, &[]), Err(IoError::Failed(FailureClass::UpgradeRefused)));
    let why = io.failure_text(0).unwrap();
    assert!(why.contains("ENABLE_CONNECT_PROTOCOL (RFC 8441 section 3)"), "{why}");
    assert_eq!(io.io.closed, [0]);
}

#[test]
fn other_servers_are_recognized() {
    let mut io = tunnels(100);
    io.open(0, &peer(), &OpenOptions::default()).unwrap();
    io.io.feed(0, b"HTTP/1.1 400 Bad Request\r\n\r\n");
    turn(&mut io);
    assert_eq!(io.write(0, &[]), Err(IoError::Failed(FailureClass::Protocol)));
    assert!(io.failure_text(0).unwrap().contains("HTTP/1.x"));
    let mut io = tunnels(100);
    io.io.failed = Some(FailureClass::Refused);
    io.open(0, &peer(), &OpenOptions::default()).unwrap();
    assert_eq!(turn(&mut io), "0rwe");
    assert_eq!(io.write(0, &[]), Err(IoError::Failed(FailureClass::Refused)));
}

#[test]
fn tunnels_share_connections_within_both_limits() {
    let mut io = tunnels(3);
    (0..7).for_each(|slot| io.open(slot, &peer(), &OpenOptions::default()).unwrap());
    assert_eq!(io.carriers(), 3);
    // the first server allows two streams: its third tunnel moves
    io.io.feed(0, &settings(&[(8, 1), (3, 2)]));
    io.io.feed(1, &allowing());
    io.io.feed(2, &allowing());
    let mut reported = turn(&mut io);
    reported += &turn(&mut io);
    let admitted = io.tunnels.iter().filter(|tunnel| tunnel.stage == TunnelStage::Admitted).count();
    assert_eq!((admitted, io.carriers()), (7, 0), "{reported}");
    let on = |index| io.tunnels.iter().filter(|tunnel| tunnel.trunk == index).count();
    assert_eq!([on(0), on(1), on(2)], [2, 3, 2]);
}

#[test]
fn a_lost_connection_ends_all_of_its_tunnels() {
    let mut io = asked(3);
    let goaway = frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 1]);
    io.io.feed(0, &goaway);
    let ended = turn(&mut io);
    assert!(["0", "1", "2"].iter().all(|slot| ended.contains(slot)), "{ended}");
    io.open(3, &peer(), &OpenOptions::default()).unwrap();
    assert_eq!(io.carriers(), 2, "a connection that goes away takes no further tunnel");
}

#[test]
fn a_tunnel_of_a_lost_connection_cuts_no_stream_of_the_next() {
    let mut io = asked(2);
    io.io.feed(0, &frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 1]));
    turn(&mut io);
    io.close(1, Close::Reset);
    io.open(1, &peer(), &OpenOptions::default()).unwrap();
    io.io.feed(0, &allowing());
    assert_eq!(turn(&mut io), "1w");
    assert_eq!(io.write(1, UPGRADE), Ok(UPGRADE.len()));
    turn(&mut io);
    io.io.sent(0);
    // the streams of both tunnels have the id 1
    io.close(0, Close::Reset);
    let sent = frames(&io.io.sent(0));
    assert!(sent.iter().all(|it| it.0 != RST_STREAM), "{sent:?}");
}

#[test]
fn a_connection_without_settings_ends_with_its_last_tunnel() {
    let mut io = tunnels(100);
    (0..2).for_each(|slot| io.open(slot, &peer(), &OpenOptions::default()).unwrap());
    io.close(0, Close::Reset);
    assert!(io.io.closed.is_empty());
    io.close(1, Close::Reset);
    assert_eq!(io.io.closed, [0]);
    io.open(0, &peer(), &OpenOptions::default()).unwrap();
    assert_eq!(io.carriers(), 2);
}

#[test]
fn one_reset_stream_ends_one_tunnel() {
    let mut io = asked(2);
    io.io.feed(0, &frame(HEADERS, END_HEADERS, 1, OK));
    io.io.feed(0, &frame(HEADERS, END_HEADERS, 3, OK));
    turn(&mut io);
    io.io.feed(0, &frame(RST_STREAM, 0, 1, &8_u32.to_be_bytes()));
    assert_eq!(turn(&mut io), "0re");
    read(&mut io, 0);
    assert_eq!(read(&mut io, 0), "Failed(StreamReset)");
    io.close(1, Close::Reset);
    let sent = frames(&io.io.sent(0));
    assert!(sent.iter().any(|it| (it.0, it.2) == (RST_STREAM, 3)), "{sent:?}");
    // its place is free again
    io.open(1, &peer(), &OpenOptions::default()).unwrap();
    assert_eq!(turn(&mut io), "1w");
    assert_eq!(io.carriers(), 1);
}

#[test]
fn a_closed_window_holds_a_tunnel_back() {
    let mut io = asked(1);
    io.io.feed(0, &frame(HEADERS, END_HEADERS, 1, OK));
    turn(&mut io);
    let piece = [b'x'; 64 << 10];
    assert_eq!(io.write(0, &piece), Ok(64 << 10));
    turn(&mut io);
    // the windows of RFC 9113 section 6.9.2 let 65,535 bytes through
    assert_eq!(io.write(0, &piece), Ok((64 << 10) - 1));
    assert_eq!(io.write(0, &piece), Err(IoError::WouldBlock));
    turn(&mut io);
    let more = (1_u32 << 20).to_be_bytes();
    io.io.feed(0, &[frame(8, 0, 0, &more), frame(8, 0, 1, &more)].concat());
    turn(&mut io);
    assert_eq!(turn(&mut io), "0w");
    assert_eq!(io.write(0, b"y"), Ok(1));
}

#[test]
fn other_connections_pass_unchanged() {
    let mut io = tunnels(100);
    io.open(5, &server(), &OpenOptions::default()).unwrap();
    io.open(2, &peer(), &OpenOptions::default()).unwrap();
    assert_eq!(io.write(5, b"GET"), Ok(3));
    assert_eq!(io.io.sent(0), b"GET");
    io.io.feed(0, b"200");
    io.io.feed(1, &allowing());
    assert_eq!(turn(&mut io), "5r 2w");
    assert_eq!(read(&mut io, 5), "200");
    assert_eq!((io.carriers(), io.facts(5)), (1, Some(SocketFacts::default())));
    io.close(5, Close::Orderly);
    assert_eq!(io.io.closed, [0]);
    // the slot below is free again, also for a tunnel's connection
    let elsewhere = Peer::Tunnel { to: Box::new(Peer::Unix("x".into())), name: None };
    io.open(9, &elsewhere, &OpenOptions::default()).unwrap();
    io.io.feed(0, &allowing());
    assert_eq!(turn(&mut io), "9w");
    let secure = Peer::Tunnel { to: Box::new(server()), name: Some("h".to_owned()) };
    let refused = io.open(1, &secure, &OpenOptions::default());
    assert_eq!(refused, Err(IoError::Failed(FailureClass::Tls)), "no TLS was prepared");
}

#[test]
fn a_failed_write_ends_the_connection_after_its_input() {
    let mut io = asked(1);
    io.io.feed(0, &[frame(HEADERS, END_HEADERS, 1, OK), frame(DATA, 0, 1, b"hi")].concat());
    io.io.failed = Some(FailureClass::Reset);
    assert_eq!(io.write(0, b"x"), Ok(1));
    // the write fails, the received bytes are read, and the next turn has nothing left to do
    assert_eq!(turn(&mut io), "0rwe");
    assert!(read(&mut io, 0).ends_with("\r\n\r\nhi"));
    assert_eq!(read(&mut io, 0), "Failed(Reset)");
    assert_eq!((turn(&mut io), io.unread.len(), &io.io.closed[..]), (String::new(), 0, &[0][..]));
}

#[test]
fn facts_of_a_shared_connection_are_counted_once() {
    let mut io = asked(2);
    let facts = |retransmits| SocketFacts { retransmits, rtt: Nanos(7) };
    io.io.facts = facts(3);
    assert_eq!(io.facts(0), None, "another tunnel is open");
    io.close(0, Close::Reset);
    assert_eq!(io.facts(1), Some(facts(3)));
    io.io.facts = facts(5);
    // when the connection ends, one of its tunnels gets the remaining facts
    io.io.feed(0, &frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 1]));
    io.io.failed = Some(FailureClass::Reset);
    turn(&mut io);
    turn(&mut io);
    assert_eq!((io.facts(1), io.facts(1)), (Some(facts(2)), None));
}
