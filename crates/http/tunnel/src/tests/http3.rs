//! Tunnels over HTTP/3: the server's stream pieces are written by hand.

use super::{Wire, read, turn};
use crate::{TunnelTerms, Tunnels};
use conduit::streams::{self, Cutter, PieceKind};
use conduit::{Close, Io, IoError, OpenOptions, Peer, Slot};
use http2::SessionSettings;
use protocol::http3::{read_section, varint, write_section};
use sample::{FailureClass, QuicEnd, QuicFacts};
use units::Nanos;

const DATA: u64 = 0;
const HEADERS: u64 = 1;
const SETTINGS: u64 = 4;
const GOAWAY: u64 = 7;
/// The server's control stream.
const CONTROL: u64 = 3;
const CANCELLED: u64 = 0x10c;

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    varint::put(&mut frame, kind);
    varint::put(&mut frame, payload.len() as u64);
    [&frame, payload].concat()
}

/// Returns a HEADERS frame of a response.
fn head(status: &str) -> Vec<u8> {
    frame(HEADERS, &write_section([(&b":status"[..], status.as_bytes())]))
}

fn data(stream: u64, bytes: &[u8], last: bool) -> Vec<u8> {
    let mut piece = Vec::new();
    streams::put_data(&mut piece, stream, bytes, last);
    piece
}

fn signal(kind: PieceKind, stream: u64, code: u64) -> Vec<u8> {
    let mut piece = Vec::new();
    streams::put_code(&mut piece, kind, stream, Some(code));
    piece
}

/// Returns the start of a connection whose server permits this many streams, with these settings.
fn start(streams_max: u64, settings: &[u8]) -> Vec<u8> {
    let control = [&[0], &frame(SETTINGS, settings)[..]].concat();
    [signal(PieceKind::Allowed, 0, streams_max), data(CONTROL, &control, false)].concat()
}

/// Settings with SETTINGS_ENABLE_CONNECT_PROTOCOL.
const CONNECT: &[u8] = &[8, 1];

fn peer() -> Peer {
    let address = "127.0.0.1:1".parse().unwrap();
    Peer::Tunnel { to: Box::new(Peer::Quic { address, name: "h".to_owned() }), name: None }
}

fn tunnels(per_connection: u32) -> Tunnels<Wire> {
    let settings = SessionSettings::default();
    Tunnels::new(Wire::default(), TunnelTerms { settings, per_connection, tls: None })
}

fn open(io: &mut Tunnels<Wire>, slots: impl IntoIterator<Item = Slot>) {
    slots.into_iter().for_each(|slot| io.open(slot, &peer(), &OpenOptions::default()).unwrap());
}

/// Returns tunnels that have sent their upgrades on one connection.
fn asked(slots: std::ops::Range<Slot>) -> Tunnels<Wire> {
    let mut io = tunnels(100);
    open(&mut io, slots.clone());
    turn(&mut io);
    io.io.feed(0, &start(100, CONNECT));
    turn(&mut io);
    slots.for_each(|slot| {
        assert_eq!(io.write(slot, super::UPGRADE), Ok(super::UPGRADE.len()));
    });
    turn(&mut io);
    io.io.sent(0);
    io
}

/// Returns sent pieces: `data 0 fin`, `reset 4 10c`, … with their payloads.
fn pieces(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut cutter = Cutter::default();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        at += cutter.open(&bytes[at..]).unwrap();
        let Some(head) = cutter.current() else { break };
        let payload = cutter.payload(&bytes[at..]).to_vec();
        at += payload.len();
        assert!(cutter.pass(payload.len()), "a whole piece");
        let end = if head.last { " fin" } else { "" };
        let code = streams::code(&payload).filter(|_| head.kind != PieceKind::Data);
        let code = code.map(|code| format!(" {code:x}")).unwrap_or_default();
        found.push((format!("{:?} {}{end}{code}", head.kind, head.stream), payload));
    }
    found
}

fn names(bytes: &[u8]) -> Vec<String> {
    pieces(bytes).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_tunnel_waits_for_settings_and_carries_bytes() {
    let mut io = tunnels(100);
    open(&mut io, [0]);
    assert_eq!(turn(&mut io), "");
    assert_eq!(names(&io.io.sent(0)), ["Data 2"], "our control stream");
    assert_eq!(io.write(0, super::UPGRADE), Err(IoError::WouldBlock));
    io.io.feed(0, &start(100, CONNECT));
    assert_eq!(turn(&mut io), "0w");
    assert_eq!(io.write(0, super::UPGRADE), Ok(super::UPGRADE.len()));
    turn(&mut io);
    let sent = pieces(&io.io.sent(0));
    assert_eq!((sent.len(), &sent[0].0[..]), (1, "Data 0"));
    let request = read_section(&sent[0].1[2..], 1_000).unwrap();
    let text = |(name, value): &(Vec<u8>, Vec<u8>)| {
        format!("{} {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
    };
    assert_eq!(
        request.iter().map(text).collect::<Vec<_>>().join(", "),
        ":method CONNECT, :protocol websocket, :scheme https, :authority h, :path /ws, \
         sec-websocket-version 13"
    );
    io.io.feed(0, &data(0, &[head("200"), frame(DATA, b"hi")].concat(), false));
    assert_eq!(turn(&mut io), "0r");
    let text = read(&mut io, 0);
    assert!(text.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{text}");
    assert!(text.contains("Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhi"), "{text}");
    assert_eq!(io.write(0, b"frame"), Ok(5));
    turn(&mut io);
    let sent = pieces(&io.io.sent(0));
    assert_eq!(sent, [("Data 0".to_owned(), frame(DATA, b"frame"))]);
    // the end of the stream ends the WebSocket; our side ends when the worker closes it
    io.io.feed(0, &data(0, &frame(DATA, b"bye"), true));
    assert_eq!(turn(&mut io), "0re");
    assert_eq!((read(&mut io, 0), read(&mut io, 0)), ("bye".to_owned(), String::new()));
    io.close(0, Close::Orderly);
    assert_eq!(names(&io.io.sent(0)), ["Data 0 fin"]);
    turn(&mut io);
    assert!(io.trunks[0].as_ref().unwrap().members.is_empty(), "its stream is free");
    assert_eq!((io.carriers(), io.carriers()), (1, 0));
}

#[test]
fn the_empty_end_of_either_side_closes_the_tunnel() {
    let mut io = asked(0..2);
    io.io.feed(0, &data(0, &head("200"), false));
    turn(&mut io);
    read(&mut io, 0);
    io.io.feed(0, &data(0, &[], true));
    assert_eq!((turn(&mut io), read(&mut io, 0)), ("0re".to_owned(), String::new()));
    // ours first, and the stream is free when the server ends it too
    io.io.feed(0, &data(4, &head("200"), false));
    turn(&mut io);
    io.shutdown_write(1);
    turn(&mut io);
    assert_eq!(names(&io.io.sent(0)), ["Data 4 fin"]);
    io.close(1, Close::Orderly);
    assert_eq!(io.trunks[0].as_ref().unwrap().members.len(), 2);
    io.io.feed(0, &data(4, &[], true));
    turn(&mut io);
    assert_eq!(io.trunks[0].as_ref().unwrap().members.len(), 1);
}

#[test]
fn a_refused_upgrade_has_its_status() {
    let mut io = asked(0..1);
    // a server may stop the request that it has refused (RFC 9114 section 4.1)
    let stop = signal(PieceKind::Stop, 0, 0x100);
    io.io.feed(0, &[stop, data(0, &head("404"), true)].concat());
    assert_eq!(turn(&mut io), "0re");
    assert_eq!(read(&mut io, 0), "HTTP/1.1 404 \r\n\r\n");
    assert_eq!(read(&mut io, 0), "");
}

#[test]
fn a_server_without_the_setting_is_reported() {
    for settings in [&[][..], &[8, 0], &[6, 50]] {
        let mut io = tunnels(100);
        open(&mut io, [0]);
        io.io.feed(0, &start(100, settings));
        assert_eq!(turn(&mut io), "0rwe");
        assert_eq!(io.write(0, &[]), Err(IoError::Failed(FailureClass::UpgradeRefused)));
        let why = io.failure_text(0).unwrap();
        assert!(why.contains("HTTP/3") && why.contains("(RFC 9220 section 3)"), "{why}");
        assert_eq!(io.io.closed, [0]);
    }
    let mut io = tunnels(100);
    open(&mut io, [0]);
    io.io.feed(0, &start(0, CONNECT));
    turn(&mut io);
    assert!(io.failure_text(0).unwrap().contains("allows no streams on an HTTP/3 connection"));
}

#[test]
fn tunnels_share_connections_within_both_limits() {
    let mut io = tunnels(3);
    open(&mut io, 0..7);
    assert_eq!(io.carriers(), 3);
    // the first server permits two streams: its third tunnel moves
    io.io.feed(0, &start(2, CONNECT));
    io.io.feed(1, &start(100, CONNECT));
    io.io.feed(2, &start(100, CONNECT));
    turn(&mut io);
    turn(&mut io);
    let on = |index| io.tunnels.iter().filter(|tunnel| tunnel.trunk == index).count();
    assert_eq!(([on(0), on(1), on(2)], io.opened), ([2, 3, 2], 0));
}

#[test]
fn one_ended_stream_ends_one_tunnel() {
    let mut io = asked(0..4);
    for stream in [0, 4, 8, 12] {
        io.io.feed(0, &data(stream, &head("200"), false));
    }
    turn(&mut io);
    (0..4).for_each(|slot| drop(read(&mut io, slot)));
    io.io.feed(0, &signal(PieceKind::Reset, 0, CANCELLED));
    assert_eq!((turn(&mut io), &read(&mut io, 0)[..]), ("0re".to_owned(), "Failed(StreamReset)"));
    // STOP_SENDING may arrive before the last bytes, which are read
    let last = data(4, &frame(DATA, b"bye"), false);
    io.io.feed(0, &[signal(PieceKind::Stop, 4, 0x100), last].concat());
    assert_eq!((turn(&mut io), &read(&mut io, 1)[..]), ("1re".to_owned(), "bye"));
    assert_eq!(read(&mut io, 1), "Failed(StreamReset)");
    turn(&mut io);
    assert_eq!(names(&io.io.sent(0)), ["Reset 4 10c", "Stop 4 10c"]);
    // STOP_SENDING together with the server's FIN is an orderly end
    let last = data(8, &frame(DATA, b"bye"), true);
    io.io.feed(0, &[signal(PieceKind::Stop, 8, 0), last].concat());
    turn(&mut io);
    assert_eq!((read(&mut io, 2), read(&mut io, 2)), ("bye".to_owned(), String::new()));
    io.close(3, Close::Reset);
    let sent = names(&io.io.sent(0));
    assert!(sent.contains(&"Reset 12 10c".to_owned()), "{sent:?}");
    // the places are free again
    open(&mut io, [5]);
    assert_eq!((turn(&mut io), io.carriers()), ("5w".to_owned(), 1));
}

#[test]
fn a_connection_that_goes_away_keeps_its_older_streams() {
    let mut io = asked(0..3);
    io.io.feed(0, &data(0, &head("200"), false));
    turn(&mut io);
    io.io.feed(0, &data(CONTROL, &frame(GOAWAY, &[4]), false));
    let ended = turn(&mut io);
    assert_eq!(ended, "1re 2re");
    assert_eq!(read(&mut io, 1), "Failed(StreamRefused)");
    open(&mut io, [3]);
    assert_eq!(io.carriers(), 2, "a connection that goes away takes no further tunnel");
    io.io.feed(0, &data(0, &frame(DATA, b"hi"), false));
    turn(&mut io);
    assert!(read(&mut io, 0).ends_with("\r\n\r\nhi"));
    // it ends with its last tunnel
    io.close(0, Close::Orderly);
    io.io.feed(0, &data(0, &[], true));
    turn(&mut io);
    assert_eq!(io.io.closed, [0]);
}

#[test]
fn a_violation_closes_the_connection_with_its_code() {
    let mut io = asked(0..2);
    io.io.feed(0, &data(0, &frame(DATA, b"content before the head"), false));
    let ended = turn(&mut io);
    assert!(ended.contains("0r") && ended.contains("1r"), "{ended}");
    assert_eq!(io.write(1, b"x"), Err(IoError::Failed(FailureClass::Protocol)));
    assert!(io.failure_text(1).unwrap().contains("RFC 9114 section 4.1"));
    assert_eq!(
        (names(&io.io.sent(0)), &io.io.closed[..]),
        (vec!["Close 0 105".to_owned()], &[0][..])
    );
    // trailers are not part of a tunnel
    let mut io = asked(0..1);
    io.io.feed(0, &data(0, &[head("200"), head("200")].concat(), false));
    turn(&mut io);
    assert!(io.failure_text(0).unwrap().contains("RFC 9114 section 4.4"));
}

#[test]
fn unsent_bytes_hold_a_tunnel_back() {
    let mut io = asked(0..1);
    io.io.feed(0, &data(0, &head("200"), false));
    turn(&mut io);
    let piece = [b'x'; 100 << 10];
    assert_eq!(io.write(0, &piece), Ok(64 << 10));
    io.io.unsent = 64 << 10;
    assert_eq!(io.write(0, &piece), Err(IoError::WouldBlock));
    assert_eq!(turn(&mut io), "", "the server's window is closed");
    io.io.unsent = 0;
    io.io.feed(0, &signal(PieceKind::Went, 0, 0));
    turn(&mut io);
    assert_eq!(turn(&mut io), "0w");
    assert_eq!(io.write(0, b"y"), Ok(1));
}

#[test]
fn connections_are_closed_at_the_end() {
    struct Ended(std::rc::Rc<std::cell::Cell<u32>>);
    impl Io for Ended {
        fn now(&mut self) -> Nanos {
            Nanos::ZERO
        }
        fn open(&mut self, _: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
            Ok(())
        }
        fn write(&mut self, _: Slot, bytes: &[u8]) -> Result<usize, IoError> {
            Ok(bytes.len())
        }
        fn read(&mut self, _: Slot, _: &mut [u8]) -> Result<usize, IoError> {
            Err(IoError::WouldBlock)
        }
        fn close(&mut self, _: Slot, _: Close) {
            self.0.set(self.0.get() + 1);
        }
        fn shutdown_write(&mut self, _: Slot) {}
        fn facts(&mut self, _: Slot) -> Option<sample::SocketFacts> {
            None
        }
        fn wait(&mut self, _: Nanos, _: &mut Vec<conduit::Ready>) {}
    }
    let closed = std::rc::Rc::default();
    let settings = SessionSettings::default();
    let terms = TunnelTerms { settings, per_connection: 1, tls: None };
    let mut io = Tunnels::new(Ended(std::rc::Rc::clone(&closed)), terms);
    (0..2).for_each(|slot| io.open(slot, &peer(), &OpenOptions::default()).unwrap());
    drop(io);
    assert_eq!(closed.get(), 2);
}

#[test]
fn facts_of_quic_are_counted_once() {
    let mut io = asked(0..2);
    let end = |packets_sent| {
        let facts =
            QuicFacts { handshakes: 1, packets_sent, rtt_sum: Nanos(7), ..QuicFacts::default() };
        QuicEnd { facts, ..QuicEnd::default() }
    };
    io.io.quic = Some(end(10));
    assert_eq!(io.quic(0), None, "another tunnel is open");
    io.close(0, Close::Reset);
    assert_eq!(io.quic(1), Some(end(10)));
    io.io.quic = Some(end(15));
    // when the connection ends, one of its tunnels gets the remaining facts
    io.io.feed(0, &data(0, &frame(DATA, b"no head"), false));
    io.io.feed(0, &data(CONTROL, &[], true));
    turn(&mut io);
    let rest = QuicFacts { packets_sent: 5, ..QuicFacts::default() };
    assert_eq!((io.quic(1).map(|end| end.facts), io.quic(1)), (Some(rest), None));
}
