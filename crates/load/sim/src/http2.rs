//! An HTTP/2 server over the same queueing models: it parses frames, does not decode fields, and
//! answers each request when the model decides.

use crate::servers::Queue;
use crate::world::{Action, Client, Server};
use std::collections::BTreeMap;
use units::Nanos;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
/// Identifier of the setting in SETTINGS (RFC 9113 section 6.5.2).
const MAX_CONCURRENT_STREAMS: u16 = 3;
const FRAME_HEADER: usize = 9;
const PREFACE: usize = 24;
/// `:status: 200`, by its index in the static table (RFC 7541 appendix A).
const STATUS_200: u8 = 0x88;
const REFUSED_STREAM: u32 = 7;
const INTERNAL_ERROR: u32 = 2;

/// Renders one frame (RFC 9113 section 4.1).
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Handling of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamTreatment {
    /// The request is answered.
    Served,
    /// RST_STREAM: not processed, or abandoned.
    Refused,
    Reset,
    /// The request never gets a response.
    Ignored,
}

/// The simulated HTTP/2 server.
pub struct Streams {
    queue: Queue,
    streams_max: Option<u32>,
    /// Requests of a connection before GOAWAY.
    calls_max: Option<u32>,
    /// Delay of GOAWAY after the last response; `None` if it is sent as soon as the last request
    /// arrives.
    goaway_after: Option<Nanos>,
    treatment: fn(u64) -> StreamTreatment,
    body: fn(u64) -> &'static [u8],
    clients: BTreeMap<Client, UnreadInput>,
    seen: u64,
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").field("seen", &self.seen).finish_non_exhaustive()
    }
}

/// Unread client data.
#[derive(Debug, Default)]
struct UnreadInput {
    input: Vec<u8>,
    greeted: bool,
    calls: u32,
}

impl Streams {
    pub fn new(queue: Queue) -> Streams {
        Streams {
            queue,
            streams_max: None,
            calls_max: None,
            goaway_after: None,
            treatment: |_| StreamTreatment::Served,
            body: |_| b"hello",
            clients: BTreeMap::new(),
            seen: 0,
        }
    }

    /// Announces this limit on concurrent streams.
    #[must_use]
    pub fn with_streams_max(self, streams: u32) -> Streams {
        Streams { streams_max: Some(streams), ..self }
    }

    /// Sends GOAWAY on each connection after this many requests, as with a keep-alive limit.
    #[must_use]
    pub fn with_calls_max(self, calls: u32) -> Streams {
        Streams { calls_max: Some(calls), ..self }
    }

    /// Sends GOAWAY with this delay after the response to the last request; zero: in one piece with
    /// it.
    #[must_use]
    pub fn with_goaway_after(self, span: Nanos) -> Streams {
        Streams { goaway_after: Some(span), ..self }
    }

    /// Sets the handling of the request with this number, from 0.
    #[must_use]
    pub fn with_treatment(self, treatment: fn(u64) -> StreamTreatment) -> Streams {
        Streams { treatment, ..self }
    }

    /// Sets the body of the response to the request with this number, from 0.
    #[must_use]
    pub fn with_bodies(self, body: fn(u64) -> &'static [u8]) -> Streams {
        Streams { body, ..self }
    }

    fn greeting(&self) -> Vec<u8> {
        let entry =
            |max: u32| [&MAX_CONCURRENT_STREAMS.to_be_bytes()[..], &max.to_be_bytes()].concat();
        frame(SETTINGS, 0, 0, &self.streams_max.map(entry).unwrap_or_default())
    }

    fn request(&mut self, now: Nanos, stream: u32, calls: u32) -> Vec<(Nanos, Action)> {
        let (treatment, content) = ((self.treatment)(self.seen), (self.body)(self.seen));
        self.seen += 1;
        let mut actions = match treatment {
            StreamTreatment::Served => {
                let head = frame(HEADERS, END_HEADERS, stream, &[STATUS_200]);
                let body = frame(DATA, END_STREAM, stream, content);
                vec![(self.queue.finish(now), Action::Bytes([head, body].concat()))]
            }
            StreamTreatment::Ignored => Vec::new(),
            StreamTreatment::Refused | StreamTreatment::Reset => {
                let code = if treatment == StreamTreatment::Refused {
                    REFUSED_STREAM
                } else {
                    INTERNAL_ERROR
                };
                let bytes = frame(RST_STREAM, 0, stream, &code.to_be_bytes());
                vec![(now, Action::Bytes(bytes))]
            }
        };
        if self.calls_max == Some(calls) {
            let payload = [stream.to_be_bytes(), 0u32.to_be_bytes()].concat();
            let goaway = frame(GOAWAY, 0, 0, &payload);
            match (self.goaway_after, actions.last_mut()) {
                (Some(Nanos::ZERO), Some((_, Action::Bytes(response)))) => response.extend(goaway),
                (Some(span), Some((answered, _))) => {
                    let at = *answered + span;
                    actions.push((at, Action::Bytes(goaway)));
                }
                _ => actions.push((now, Action::Bytes(goaway))),
            }
        }
        actions
    }
}

impl Server for Streams {
    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        let mut reading = self.clients.remove(&client).unwrap_or_default();
        reading.input.extend_from_slice(bytes);
        let mut actions = Vec::new();
        if !reading.greeted && reading.input.len() >= PREFACE {
            reading.input.drain(..PREFACE);
            reading.greeted = true;
            actions.push((now, Action::Bytes(self.greeting())));
        }
        while reading.greeted && reading.input.len() >= FRAME_HEADER {
            let [a, b, c, kind, flags, s, t, u, v] = reading.input[..FRAME_HEADER] else { break };
            let end = FRAME_HEADER + u32::from_be_bytes([0, a, b, c]) as usize;
            if reading.input.len() < end {
                break;
            }
            reading.input.drain(..end);
            match kind {
                SETTINGS if flags & ACK == 0 => {
                    actions.push((now, Action::Bytes(frame(SETTINGS, ACK, 0, &[]))));
                }
                // a request without content ends with its fields
                HEADERS if flags & END_STREAM != 0 => {
                    reading.calls += 1;
                    let stream = u32::from_be_bytes([s, t, u, v]);
                    actions.extend(self.request(now, stream, reading.calls));
                }
                _ => {}
            }
        }
        self.clients.insert(client, reading);
        actions
    }

    fn ended(&mut self, _now: Nanos, client: Client) {
        self.clients.remove(&client);
    }
}
