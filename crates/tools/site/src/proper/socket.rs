//! WebSocket: echo or broadcast after a delay, messages on a schedule, and faults on demand.

use std::collections::VecDeque;

use hyper::body::Bytes;
use hyper::header::{HeaderValue, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_PROTOCOL};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Duration, Instant, sleep_until};
use units::{Purpose, Seed, Stream};
use websocket::handshake::{ServerError, ServerRequest, key, read_request};
use websocket::{SocketEvent, SocketOptions, WebSocket, close};

use super::body::PageBody;
use super::rooms::{Membership, ROOMS_MAX, RoomMessage, Rooms};
use crate::route::SocketPlan;

/// Number of bytes per read.
const READ_SIZE: usize = 16 << 10;
/// Maximum number of answers that wait for their time; beyond it the client is not read.
const ANSWERS_MAX: usize = 10_000;

/// A connection that is a WebSocket from here on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SocketVisit {
    request: ServerRequest,
    plan: SocketPlan,
}

impl SocketVisit {
    /// Parses a request's head.
    ///
    /// # Errors
    /// Fails with the error of the upgrade.
    pub(super) fn new<B>(
        request: &hyper::Request<B>,
        plan: &SocketPlan,
    ) -> Result<SocketVisit, ServerError> {
        SocketVisit::read(request, request.method().as_str(), "", plan)
    }

    /// Creates the WebSocket of an extended CONNECT (RFC 8441 section 5), which has no key:
    /// `number` replaces it.
    ///
    /// # Errors
    /// As [`SocketVisit::new`].
    pub(super) fn for_tunnel<B>(
        request: &hyper::Request<B>,
        plan: &SocketPlan,
        number: u64,
    ) -> Result<SocketVisit, ServerError> {
        let key = key((u128::from(number) << 64).to_le_bytes());
        let fields = format!(
            "host: stream\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: {key}\r\n"
        );
        SocketVisit::read(request, "GET", &fields, plan)
    }

    fn read<B>(
        request: &hyper::Request<B>,
        method: &str,
        fields: &str,
        plan: &SocketPlan,
    ) -> Result<SocketVisit, ServerError> {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let mut head = format!("{method} {target} HTTP/1.1\r\n{fields}").into_bytes();
        let given = |name: &str| fields.contains(&format!("{name}: "));
        for (name, value) in request.headers().iter().filter(|(name, _)| !given(name.as_str())) {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        match read_request(&head) {
            Some((_, Ok(request))) => Ok(SocketVisit { request, plan: plan.clone() }),
            Some((_, Err(error))) => Err(error),
            None => Err(ServerError::BadRequest),
        }
    }

    /// Returns the 101. It accepts the first offered subprotocol, and compression if offered.
    pub(super) fn response(&self) -> Vec<u8> {
        let subprotocol = self.request.subprotocols.first();
        self.request.response(subprotocol.map(String::as_str), true)
    }

    /// Returns the response to an extended CONNECT, with the same choices.
    pub(super) fn tunnel_response(&self) -> hyper::Response<PageBody> {
        let mut response = hyper::Response::new(PageBody::Whole(Bytes::new()));
        let extension = self.request.deflate.as_ref().map(|(answer, _)| answer.value());
        let fields = [
            (SEC_WEBSOCKET_PROTOCOL, self.request.subprotocols.first().cloned()),
            (SEC_WEBSOCKET_EXTENSIONS, extension),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                let value = HeaderValue::try_from(value).expect("a token, or our own text");
                response.headers_mut().insert(name, value);
            }
        }
        response
    }

    /// Serves the connection to its end.
    ///
    /// # Errors
    /// Fails if the client has disconnected.
    pub(super) async fn serve(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        rooms: &Rooms,
    ) -> std::io::Result<()> {
        let deflate = self.request.deflate.as_ref().map(|(_, agreed)| *agreed);
        let socket = WebSocket::new(&SocketOptions { deflate, ..SocketOptions::server() });
        // every connection loses other messages, the same ones for the same key
        let connection = self
            .request
            .key
            .bytes()
            .fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut server = EchoServer::new(socket, &self.plan, connection);
        if let Some(name) = &self.plan.room {
            server.room = rooms.join(name);
            if server.room.is_none() {
                server.refuse_room();
            }
        }
        server.serve(stream).await
    }
}

/// An answer that waits for its time.
struct SocketAnswer {
    at: Instant,
    text: bool,
    payload: Vec<u8>,
}

struct EchoServer<'a> {
    socket: WebSocket,
    plan: &'a SocketPlan,
    begun: Instant,
    answers: VecDeque<SocketAnswer>,
    /// Room whose members get the messages, instead of an echo.
    room: Option<Membership>,
    seen: u64,
    pushed: u64,
    losses: Stream,
    out: Vec<u8>,
    /// True if the connection will be dropped without a close frame.
    dropped: bool,
    /// True if the connection will be closed once all answers are sent.
    ending: bool,
}

impl<'a> EchoServer<'a> {
    fn new(socket: WebSocket, plan: &'a SocketPlan, connection: u64) -> EchoServer<'a> {
        EchoServer {
            socket,
            plan,
            begun: Instant::now(),
            answers: VecDeque::new(),
            room: None,
            seen: 0,
            pushed: 0,
            losses: Seed(1).stream(Purpose::Site, connection),
            out: Vec::new(),
            dropped: false,
            ending: false,
        }
    }

    async fn serve(
        mut self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ) -> std::io::Result<()> {
        let mut buffer = vec![0; READ_SIZE];
        loop {
            let now = Instant::now();
            self.send_due(now);
            self.end_if_answered();
            if !self.out.is_empty() {
                stream.write_all(&self.out).await?;
                self.out.clear();
            }
            if self.dropped || self.socket.is_closed() {
                return Ok(());
            }
            let wake = self.next_due();
            let reads = self.answers.len() < ANSWERS_MAX && !self.ending;
            tokio::select! {
                read = stream.read(&mut buffer), if reads => {
                    let count = read?;
                    if count == 0 {
                        return Ok(());
                    }
                    self.take(&buffer[..count], Instant::now());
                }
                message = next_of(&mut self.room), if reads => {
                    self.schedule_room_messages(message, Instant::now());
                }
                () = sleep_until(wake.unwrap_or(now)), if wake.is_some() => {}
            }
        }
    }

    /// Closes a connection that cannot join its room: an echo would look like a room with one
    /// member.
    fn refuse_room(&mut self) {
        let reason = format!("there are {ROOMS_MAX} rooms already");
        self.socket.close(Some(close::TRY_AGAIN_LATER), &reason, &mut self.out);
    }

    fn next_due(&self) -> Option<Instant> {
        let push = self.plan.push_interval().map(|every| self.begun + every * self.next_push());
        self.answers.front().map(|answer| answer.at).into_iter().chain(push).min()
    }

    fn next_push(&self) -> u32 {
        u32::try_from(self.pushed + 1).unwrap_or(u32::MAX)
    }

    fn send_due(&mut self, now: Instant) {
        while self.answers.front().is_some_and(|answer| answer.at <= now) {
            let Some(answer) = self.answers.pop_front() else { break };
            self.socket.send(answer.text, &answer.payload, &mut self.out);
        }
        while let Some(every) = self.plan.push_interval()
            && self.begun + every * self.next_push() <= now
        {
            self.pushed += 1;
            let text = format!("push {}", self.pushed);
            self.socket.send(true, text.as_bytes(), &mut self.out);
        }
    }

    /// Ends the connection as the plan wants, after the answers to earlier messages.
    fn end_if_answered(&mut self) {
        if !self.ending || !self.answers.is_empty() {
            return;
        }
        self.ending = false;
        match self.plan.close_code {
            0 => self.dropped = true,
            code => self.socket.close(Some(code), "as asked", &mut self.out),
        }
    }

    fn take(&mut self, input: &[u8], now: Instant) {
        let mut rest = input;
        while !rest.is_empty() && !self.ending {
            // nothing can be sent after the reply to a close frame
            self.send_due(now);
            let Ok(received) = self.socket.receive(rest, &mut self.out) else { return };
            if let SocketEvent::Message { text, payload, .. } = &received.event {
                let payload = self.socket.payload(payload, rest).to_vec();
                self.answer(*text, payload, now);
            }
            rest = &rest[received.consumed..];
        }
    }

    fn answer(&mut self, text: bool, payload: Vec<u8>, now: Instant) {
        self.seen += 1;
        if self.plan.close_after.is_some_and(|most| self.seen > most) {
            self.ending = true;
            return;
        }
        match &self.room {
            Some(room) => room.send(&RoomMessage { text, payload: payload.into() }),
            None => self.schedule(text, payload, now),
        }
    }

    /// Schedules a message of the room, and any others that have arrived.
    fn schedule_room_messages(&mut self, first: RoomMessage, now: Instant) {
        let mut next = Some(first);
        while let Some(RoomMessage { text, payload }) = next {
            self.schedule(text, payload.to_vec(), now);
            let full = self.answers.len() >= ANSWERS_MAX;
            next = self.room.as_mut().filter(|_| !full).and_then(Membership::ready);
        }
    }

    /// Sends a message after the plan's delay, unless it must be lost.
    fn schedule(&mut self, text: bool, payload: Vec<u8>, now: Instant) {
        if self.losses.unit() < self.plan.lose {
            return;
        }
        let mut at = now + Duration::from_nanos(self.plan.delay.0);
        if let Some((stall, every)) = self.plan.stall {
            // silent for `stall` at the end of each period
            let every = Duration::from_nanos(every.0);
            let passed = at.duration_since(self.begun).as_nanos() % every.as_nanos();
            let quiet_from = every.as_nanos().saturating_sub(u128::from(stall.0));
            if passed >= quiet_from {
                at += Duration::from_nanos((every.as_nanos() - passed) as u64);
            }
        }
        self.answers.push_back(SocketAnswer { at, text, payload });
    }
}

/// Returns the next message to a room; waits forever without a room.
async fn next_of(room: &mut Option<Membership>) -> RoomMessage {
    match room {
        Some(room) => room.next().await,
        None => std::future::pending().await,
    }
}
