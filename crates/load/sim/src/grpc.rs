//! A gRPC server over the same queueing models: each message of a request has an answer, and pings
//! are judged as grpc-go judges them.

use crate::http2::{DATA, GOAWAY, HEADERS, SETTINGS, frame};
use crate::servers::Queue;
use crate::world::{Action, Client, Server};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use units::Nanos;

const PING: u8 = 6;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const FRAME_HEADER: usize = 9;
const PREFACE: usize = 24;
const ENHANCE_YOUR_CALM: u32 = 11;
/// Number of bytes before each message: a flag and its length.
const PREFIX: usize = 5;
/// Minimum interval of pings without data; two pings that are too early are accepted (grpc-go's
/// enforcement policy).
const PING_INTERVAL: Nanos = Nanos::from_secs(300);
const STRIKES_MAX: u32 = 2;

/// Instants at which answers were sent, in the order of the messages, or at which pings arrived.
pub type Answered = Arc<Mutex<Vec<Nanos>>>;

/// A gRPC server that answers each message.
#[derive(Debug)]
pub struct ChatServer {
    queue: Queue,
    /// Instants of the answers; `None` if messages have no answer.
    answered: Option<Answered>,
    /// Number of bytes of each answer.
    length: u8,
    acknowledges: bool,
    pinged: Answered,
    /// Fields of the trailers in addition to the status.
    trailers: Vec<(&'static str, String)>,
    clients: BTreeMap<Client, ChatClient>,
}

#[derive(Debug, Default)]
struct ChatClient {
    input: Vec<u8>,
    greeted: bool,
    /// Bytes of messages by stream.
    streams: BTreeMap<u32, Vec<u8>>,
    /// HEADERS or DATA were sent since the last ping.
    has_sent: bool,
    last_ping: Option<Nanos>,
    strikes: u32,
}

impl ChatServer {
    /// Creates a server that answers each message when the model decides.
    pub fn new(queue: Queue, answered: &Answered) -> ChatServer {
        ChatServer {
            queue,
            answered: Some(answered.clone()),
            length: 0,
            acknowledges: true,
            pinged: Answered::default(),
            trailers: Vec::new(),
            clients: BTreeMap::new(),
        }
    }

    /// Creates a server that answers no message.
    pub fn silent(queue: Queue) -> ChatServer {
        ChatServer { answered: None, ..ChatServer::new(queue, &Answered::default()) }
    }

    /// Sends answers with this number of bytes.
    #[must_use]
    pub fn with_length(self, length: u8) -> ChatServer {
        ChatServer { length, ..self }
    }

    /// Leaves pings without an acknowledgment.
    #[must_use]
    pub fn without_acknowledgments(self) -> ChatServer {
        ChatServer { acknowledges: false, ..self }
    }

    /// Keeps the instants of pings.
    #[must_use]
    pub fn with_pings(self, pinged: &Answered) -> ChatServer {
        ChatServer { pinged: pinged.clone(), ..self }
    }

    /// Adds a field to the trailers.
    #[must_use]
    pub fn with_trailer(mut self, name: &'static str, value: String) -> ChatServer {
        self.trailers.push((name, value));
        self
    }

    /// Returns the answers to the messages of a piece of a request, and the end of the call.
    fn data(
        &mut self,
        now: Nanos,
        client: &mut ChatClient,
        (stream, ends): (u32, bool),
        payload: &[u8],
    ) -> Vec<(Nanos, Action)> {
        let Some(answered) = &self.answered else { return Vec::new() };
        let buffer = client.streams.entry(stream).or_default();
        buffer.extend_from_slice(payload);
        let mut actions = Vec::new();
        let mut last = now;
        while let Some([_, length @ ..]) = buffer.first_chunk::<PREFIX>() {
            let whole = PREFIX + u32::from_be_bytes(*length) as usize;
            if buffer.len() < whole {
                break;
            }
            buffer.drain(..whole);
            last = self.queue.finish(now);
            answered.lock().expect("one thread").push(last);
            let mut answer = vec![0; PREFIX + usize::from(self.length)];
            answer[PREFIX - 1] = self.length;
            let answer = frame(DATA, 0, stream, &answer);
            actions.push((last, Action::Bytes(answer)));
        }
        client.has_sent |= !actions.is_empty();
        if ends {
            client.streams.remove(&stream);
            let mut fields = Vec::new();
            literal("grpc-status", "0", &mut fields);
            for (name, value) in &self.trailers {
                literal(name, value, &mut fields);
            }
            let end = frame(HEADERS, END_STREAM | END_HEADERS, stream, &fields);
            // after the answers in progress
            let at = answered.lock().expect("one thread").iter().copied().fold(last, Nanos::max);
            actions.push((at, Action::Bytes(end)));
        }
        actions
    }

    fn ping(&self, now: Nanos, client: &mut ChatClient, payload: &[u8]) -> Vec<(Nanos, Action)> {
        let early = client.last_ping.is_some_and(|last| now < last + PING_INTERVAL);
        client.strikes = match (std::mem::take(&mut client.has_sent), early) {
            (true, _) => 0,
            (false, true) => client.strikes + 1,
            (false, false) => client.strikes,
        };
        client.last_ping = Some(now);
        self.pinged.lock().expect("one thread").push(now);
        if client.strikes > STRIKES_MAX {
            let last = (i32::MAX as u32).to_be_bytes();
            let payload = [&last[..], &ENHANCE_YOUR_CALM.to_be_bytes(), b"too_many_pings"].concat();
            let goaway = frame(GOAWAY, 0, 0, &payload);
            return vec![(now, Action::Bytes(goaway)), (now, Action::End)];
        }
        if !self.acknowledges {
            return Vec::new();
        }
        vec![(now, Action::Bytes(frame(PING, ACK, 0, payload)))]
    }

    fn frame(
        &mut self,
        now: Nanos,
        client: &mut ChatClient,
        (kind, flags, stream): (u8, u8, u32),
        payload: &[u8],
    ) -> Vec<(Nanos, Action)> {
        match kind {
            SETTINGS if flags & ACK == 0 => {
                vec![(now, Action::Bytes(frame(SETTINGS, ACK, 0, &[])))]
            }
            HEADERS if self.answered.is_some() => {
                // `:status: 200`, by its index in the static table (RFC 7541 appendix A)
                let head = frame(HEADERS, END_HEADERS, stream, &[0x88]);
                client.has_sent = true;
                vec![(now, Action::Bytes(head))]
            }
            DATA => self.data(now, client, (stream, flags & END_STREAM != 0), payload),
            PING if flags & ACK == 0 => self.ping(now, client, payload),
            _ => Vec::new(),
        }
    }
}

/// Encodes a literal field without indexing (RFC 7541 section 6.2.2), of fewer than 127 bytes each.
fn literal(name: &str, value: &str, out: &mut Vec<u8>) {
    out.push(0);
    for text in [name, value] {
        out.push(text.len() as u8);
        out.extend_from_slice(text.as_bytes());
    }
}

impl Server for ChatServer {
    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        let mut reading = self.clients.remove(&client).unwrap_or_default();
        reading.input.extend_from_slice(bytes);
        let mut actions = Vec::new();
        if !reading.greeted && reading.input.len() >= PREFACE {
            reading.input.drain(..PREFACE);
            reading.greeted = true;
            actions.push((now, Action::Bytes(frame(SETTINGS, 0, 0, &[]))));
        }
        while reading.greeted && reading.input.len() >= FRAME_HEADER {
            let [a, b, c, kind, flags, s, t, u, v] = reading.input[..FRAME_HEADER] else { break };
            let end = FRAME_HEADER + u32::from_be_bytes([0, a, b, c]) as usize;
            if reading.input.len() < end {
                break;
            }
            let whole: Vec<u8> = reading.input.drain(..end).collect();
            let head = (kind, flags, u32::from_be_bytes([s, t, u, v]));
            actions.extend(self.frame(now, &mut reading, head, &whole[FRAME_HEADER..]));
        }
        self.clients.insert(client, reading);
        actions
    }

    fn ended(&mut self, _now: Nanos, client: Client) {
        self.clients.remove(&client);
    }
}
