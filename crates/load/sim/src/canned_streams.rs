//! The simplest world with streams: every request of HTTP/2 or HTTP/3 is answered at once with the
//! same fields and content. For HTTP/3 this counts the session and the worker, but not QUIC.

use crate::canned::{Keep, closed_plan};
use conduit::streams::{Cutter, PieceKind, put_code, put_data};
use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use engine::{Endpoint, Setup, Worker, drive, endpoint_key};
use plan::{HttpVersion, Think};
use sample::SocketFacts;
use std::sync::Arc;
use units::Nanos;

/// Number of users, each with a connection.
const USERS: u32 = 10;

/// Size of an HTTP/2 frame header (RFC 9113 section 4.1), and of the preface before the first
/// frame.
const FRAME_HEADER: usize = 9;
const PREFACE: usize = 24;
const HEADERS: u8 = 1;

/// `:status: 200`, `content-type: text/plain` as a literal with an indexed name, and
/// `content-length: 13`: the minimum that nginx sends, without a dynamic table (RFC 7541 section
/// 6.2.2).
const FIELDS_HTTP2: &[u8] = b"\x88\x0f\x10\x0atext/plain\x0f\x0d\x0213";
/// Fields encoded with QPACK's static table (RFC 9204 section 4.5).
const FIELDS_HTTP3: &[u8] = b"\0\0\xd9\xf5\x54\x0213";
const CONTENT: &[u8] = b"Hello, world!";

/// `:status: 200`, and `content-type: application/grpc` as a literal.
const FIELDS_GRPC: &[u8] = b"\x88\x0f\x10\x10application/grpc";
/// `grpc-status: 0`.
const TRAILERS_GRPC: &[u8] = b"\x00\x0bgrpc-status\x010";
/// Message of gRPC with 64 bytes, after its prefix.
const MESSAGE: [u8; 69] = {
    let mut message = [b'x'; 69];
    (message[0], message[1], message[2], message[3], message[4]) = (0, 0, 0, 0, 64);
    message
};

/// Kind of the calls. Over HTTP/3 only `Get` is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannedKind {
    /// A GET of 13 bytes.
    Get,
    /// A POST of a message of 69 bytes, answered with 69 bytes.
    Post,
    /// The same as a call of gRPC, with its status in the trailers.
    Grpc,
}

/// Received, unanswered data of a connection.
#[derive(Debug, Default)]
struct ResponseLane {
    input: Vec<u8>,
    greeted: bool,
    cutter: Cutter,
    responses: Vec<u8>,
    at: usize,
}

/// Answers requests at once.
#[derive(Debug)]
struct CannedStreams {
    version: HttpVersion,
    kind: CannedKind,
    now: Nanos,
    lanes: Vec<ResponseLane>,
    pending: Vec<Slot>,
}

impl ResponseLane {
    /// Answers every request with complete fields.
    fn read_http2(&mut self, kind: CannedKind, bytes: &[u8]) {
        const DATA: u8 = 0;
        let frames: &[(u8, u8, &[u8])] = match kind {
            CannedKind::Get => &[(HEADERS, 4, FIELDS_HTTP2), (DATA, 1, CONTENT)],
            CannedKind::Post => &[(HEADERS, 4, FIELDS_GRPC), (DATA, 1, &MESSAGE)],
            CannedKind::Grpc => {
                &[(HEADERS, 4, FIELDS_GRPC), (DATA, 0, &MESSAGE), (HEADERS, 5, TRAILERS_GRPC)]
            }
        };
        self.input.extend_from_slice(bytes);
        let mut at = 0;
        if !self.greeted {
            if self.input.len() < PREFACE {
                return;
            }
            self.greeted = true;
            at = PREFACE;
            // empty SETTINGS
            self.responses.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        }
        while let Some(header) = self.input.get(at..at + FRAME_HEADER) {
            let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            if self.input.len() < at + FRAME_HEADER + length {
                break;
            }
            if header[3] == HEADERS {
                let stream = &header[5..9];
                for (kind, flags, payload) in frames {
                    let head = [0, 0, payload.len() as u8, *kind, *flags];
                    for part in [&head[..], stream, *payload] {
                        self.responses.extend_from_slice(part);
                    }
                }
            }
            at += FRAME_HEADER + length;
        }
        self.input.drain(..at);
    }

    fn read_http3(&mut self, bytes: &[u8]) {
        if !self.greeted {
            self.greeted = true;
            put_code(&mut self.responses, PieceKind::Allowed, 0, Some(1_000));
            // the control stream: its type, and empty SETTINGS
            put_data(&mut self.responses, 3, &[0, 4, 0], false);
        }
        let mut at = 0;
        while at < bytes.len() {
            at += self.cutter.open(&bytes[at..]).expect("the worker writes pieces");
            let Some(head) = self.cutter.current() else { return };
            let count = self.cutter.payload(&bytes[at..]).len();
            at += count;
            let whole = self.cutter.pass(count);
            if whole && head.kind == PieceKind::Data && head.last {
                let frames = [
                    &[1, FIELDS_HTTP3.len() as u8],
                    FIELDS_HTTP3,
                    &[0, CONTENT.len() as u8],
                    CONTENT,
                ];
                put_data(&mut self.responses, head.stream, &frames.concat(), true);
            }
        }
    }
}

impl Io for CannedStreams {
    fn now(&mut self) -> Nanos {
        self.now += Nanos(1_000);
        self.now
    }

    fn open(&mut self, slot: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
        let index = slot as usize;
        if self.lanes.len() <= index {
            self.lanes.resize_with(index + 1, ResponseLane::default);
        }
        self.lanes[index] = ResponseLane::default();
        Ok(())
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        let lane = &mut self.lanes[slot as usize];
        match self.version {
            HttpVersion::Http3 => lane.read_http3(bytes),
            _ => lane.read_http2(self.kind, bytes),
        }
        if lane.at < lane.responses.len() && !self.pending.contains(&slot) {
            self.pending.push(slot);
        }
        Ok(bytes.len())
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let lane = &mut self.lanes[slot as usize];
        let rest = &lane.responses[lane.at..];
        let count = rest.len().min(buffer.len());
        if count == 0 {
            return Err(IoError::WouldBlock);
        }
        buffer[..count].copy_from_slice(&rest[..count]);
        lane.at += count;
        if lane.at == lane.responses.len() {
            lane.responses.clear();
            lane.at = 0;
        }
        Ok(count)
    }

    fn close(&mut self, slot: Slot, _: Close) {
        self.lanes[slot as usize] = ResponseLane::default();
    }

    fn shutdown_write(&mut self, _: Slot) {}

    fn facts(&mut self, _: Slot) -> Option<SocketFacts> {
        None
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
        let readable = |slot| Ready { slot, readable: true, writable: false, ended: false };
        ready.extend(self.pending.drain(..).map(readable));
        if ready.is_empty() {
            self.now = self.now.max(until);
        }
    }
}

/// Makes `calls` calls of ten users with this many streams each, over HTTP/2 or HTTP/3, into
/// `keep`.
///
/// # Panics
/// Panics if the plan cannot be prepared, which its constants exclude.
pub fn calls_over_streams(calls: u64, version: HttpVersion, streams: u32, keep: &mut Keep) {
    calls_of_kind(calls, version, (CannedKind::Get, streams), keep);
}

/// Makes calls like [`calls_over_streams`], of a kind.
///
/// # Panics
/// Panics like [`calls_over_streams`], and for kinds other than `Get` over HTTP/3.
pub fn calls_of_kind(
    calls: u64,
    version: HttpVersion,
    (kind, streams): (CannedKind, u32),
    keep: &mut Keep,
) {
    let http3 = version == HttpVersion::Http3;
    assert!(!http3 || kind == CannedKind::Get, "{kind:?} over HTTP/3");
    let url = if http3 { "https://127.0.0.1:18080/hw" } else { "http://127.0.0.1:18080/hw" };
    let mut plan = closed_plan(url, USERS, Think::None, calls);
    plan.request.version = version;
    if kind != CannedKind::Get {
        plan.request.method = "POST".to_owned();
        plan.request.body = Some(MESSAGE.to_vec());
    }
    if kind == CannedKind::Grpc {
        plan.use_grpc();
    }
    plan.connection.pipeline = streams;
    let start = Nanos::from_secs(1_000);
    let address = "127.0.0.1:18080".parse().expect("an address");
    let peer = match http3 {
        true => Peer::Quic { address, name: "localhost".to_owned() },
        false => Peer::Tcp(address),
    };
    let key = endpoint_key(&plan.targets[0].url);
    let place = Endpoint { key, peers: vec![peer], tls_name: None, tunnel: None, absolute: false };
    let setup = Setup::new(plan, vec![place], 1, start).expect("the constants are valid");
    let mut io =
        CannedStreams { version, kind, now: start, lanes: Vec::new(), pending: Vec::new() };
    drive(&mut Worker::new(Arc::new(setup), 0, None), &mut io, keep);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_grpc_and_posts_succeed() {
        for kind in [CannedKind::Post, CannedKind::Grpc] {
            let mut keep = Keep::default();
            calls_of_kind(1_000, HttpVersion::Http2, (kind, 10), &mut keep);
            assert_eq!(keep.total.counts.succeeded, 1_000, "{kind:?}");
            assert_eq!(keep.total.body_bytes, 1_000 * MESSAGE.len() as u64);
            let messages = u64::from(kind == CannedKind::Grpc) * 1_000;
            assert_eq!(keep.total.streams.in_window, messages, "{kind:?}");
        }
    }

    /// The counted program makes its calls with the configured number of streams.
    #[test]
    fn every_call_is_answered() {
        for (version, streams) in
            [(HttpVersion::Http2, 1), (HttpVersion::Http2, 100), (HttpVersion::Http3, 10)]
        {
            let mut keep = Keep::default();
            calls_over_streams(2_000, version, streams, &mut keep);
            let connections = &keep.total.connections;
            assert_eq!((keep.total.counts.succeeded, connections.established), (2_000, 10));
            let peak = connections.http2.streams_peak.max(connections.http3.streams_peak);
            assert_eq!(peak, u64::from(streams), "{version:?}");
            assert_eq!(keep.total.body_bytes, 2_000 * CONTENT.len() as u64);
        }
    }
}
