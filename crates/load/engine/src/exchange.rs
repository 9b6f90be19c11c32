//! Single exchanges, each on a separate connection: all connections are made first, then all
//! requests are sent at the same moment, and every response is kept in full. Used by checks, where
//! content matters rather than volume.

mod message;
mod socket;
mod terms;
mod voice;

pub use message::Message;
pub(crate) use socket::SocketMove;
pub use socket::SocketTalk;
pub use terms::{ResponseLimits, Terms};

use conduit::{Close, Io, IoError, Peer, Ready, Slot, TlsError, TlsFactory, TlsSession};
use protocol::grpc::BodyReader;
use protocol::http1::response::{Asked, Framing, HeadCache, ResponseFacts};
use sample::FailureClass;
use terms::Patience;
use units::Nanos;
use url::Url;
use voice::{Voice, VoiceOutput};

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// Addresses, tried in turn; never empty.
    pub peers: Vec<Peer>,
    /// Name for SNI and the certificate check; `None` without TLS, and with QUIC, which has its
    /// own.
    pub tls_name: Option<String>,
    /// The CONNECT request for a tunnel through a proxy (RFC 9110 section 9.3.6).
    pub tunnel: Option<Vec<u8>>,
    pub message: Message,
    /// Time limit from sending the requests to the end of the response.
    pub timeout: Nanos,
}

/// Request being sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Scheme, host and port determine the destination.
    pub url: Url,
    pub message: Message,
    /// Time limit from sending the request to the end of its response.
    pub timeout: Nanos,
    /// Over TLS it is sent as HTTP/2 if the server prefers that to HTTP/1.1 (ALPN).
    pub negotiates: bool,
}

/// Components that can perform exchanges.
pub trait Caller {
    /// Makes a connection for each request, then sends all at the same moment; returns the
    /// responses in request order.
    fn exchange(&mut self, requests: Vec<Outgoing>) -> Vec<ExchangeOutcome>;

    /// Returns whether the exchange must end now because the user interrupted it.
    fn interrupted(&self) -> bool;
}

/// A complete response.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub facts: ResponseFacts,
    /// The final head as received.
    pub head: Vec<u8>,
    /// Body with chunk framing removed and content coding kept.
    pub body: Vec<u8>,
}

/// Reason why there is no complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeError {
    pub class: FailureClass,
    pub text: String,
    /// A hint on how to fix it.
    pub fix_text: Option<&'static str>,
}

/// Most servers under test have self-signed certificates.
const TRUST: &str = "Trust its issuer with --ca FILE, or accept any certificate with --insecure.";

impl ExchangeError {
    pub fn new(class: FailureClass, text: String) -> ExchangeError {
        ExchangeError { class, text, fix_text: None }
    }

    /// Returns the error text with a hint.
    pub fn with_fix(&self) -> String {
        let untrusted = self.class == FailureClass::Certificate;
        match self.fix_text.or(untrusted.then_some(TRUST)) {
            Some(fix_text) => format!("{}. {fix_text}", self.text),
            None => self.text.clone(),
        }
    }

    /// Returns the error text with the hint for callers whose only TLS options are --ca and
    /// --insecure.
    pub fn with_common_fix(&self) -> String {
        let of_tls = matches!(self.class, FailureClass::Tls | FailureClass::Certificate);
        let fix_text = self.fix_text.filter(|_| !of_tls);
        ExchangeError { fix_text, ..self.clone() }.with_fix()
    }
}

impl From<TlsError> for ExchangeError {
    fn from(TlsError { class, text, fix_text }: TlsError) -> ExchangeError {
        ExchangeError { class, text, fix_text }
    }
}

/// Result of a request.
#[derive(Clone, Debug)]
pub struct ExchangeOutcome {
    pub result: Result<Reply, ExchangeError>,
    /// A connection (with TLS if used) was established.
    pub connected: bool,
    /// Time from sending the requests to the end; zero if they were never sent.
    pub took: Nanos,
}

impl ExchangeOutcome {
    /// Returns the result of a request without an established connection.
    pub fn nothing(trouble: ExchangeError) -> ExchangeOutcome {
        ExchangeOutcome { result: Err(trouble), connected: false, took: Nanos::ZERO }
    }
}

/// Facts of a request's connection in addition to the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contact {
    /// The address that accepted the connection.
    pub peer: Option<Peer>,
    /// ALPN name of the protocol that TLS negotiated, empty for none; `None` if no handshake was
    /// completed, or the connection uses QUIC.
    pub agreed: Option<String>,
    /// Streams that the peer permits at once, if announced.
    pub streams_max: Option<u64>,
    /// Instant at which the response was complete or had failed.
    pub at: Option<Nanos>,
}

/// Result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Nothing can be done until this instant, unless a connection becomes ready.
    Until(Nanos),
    Over,
}

/// Maximum size of a kept body in bytes; a longer one is a failure.
pub const BODY_MAX: usize = 64 << 20;
/// Size of one read, in bytes.
const READ_SIZE: usize = 64 << 10;

/// Establishment state of a connection. It never goes back, except that `Connecting` may try the
/// next address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    /// A tunnel was requested from the proxy.
    Tunnel,
    /// The proxy has established the tunnel.
    Through,
    Handshake,
    /// Waits for the other connections.
    Ready,
    Asked,
    /// The response is complete; the connection is not closed yet.
    Closing(Nanos),
    Over,
}

#[derive(Debug)]
struct Line {
    request: Request,
    stage: Stage,
    /// Index of the next of the request's addresses.
    peer: usize,
    /// Instant by which its connection must be established.
    connect_by: Nanos,
    /// The address accepted the connection.
    taken: bool,
    /// Protocol state with the proxy, if one is used.
    proxy: Option<Voice>,
    session: Option<Box<dyn TlsSession>>,
    /// Output for the transport; `out_at` bytes of `out` have been written.
    out: Vec<u8>,
    out_at: usize,
    plain: Vec<u8>,
    voice: Voice,
    body: Vec<u8>,
    /// Number of body bytes that are not kept.
    unkept: usize,
    limits: ResponseLimits,
    /// Reads the messages of a gRPC call, if they have limits.
    messages: Option<BodyReader>,
    patience: Patience,
    /// Reason why no more bytes can be written; a response may still arrive.
    unwritable: Option<(FailureClass, String)>,
    agreed: Option<String>,
    ended: bool,
    connected: bool,
    /// The server has sent something after the handshake.
    answered: bool,
    /// True if our side closed the connection before the others finished.
    parted: bool,
    heard: Option<(Result<Reply, ExchangeError>, Nanos)>,
}

/// Requests that are sent together, as a state machine: [`Exchange::turn`] and
/// [`Exchange::handle`].
pub struct Exchange<'t> {
    lines: Vec<Line>,
    tls: Option<&'t mut dyn TlsFactory>,
    /// For requests over HTTP/2: sessions that offer it in ALPN.
    tls_http2: Option<&'t mut dyn TlsFactory>,
    cache: HeadCache,
    terms: Terms,
    connect: Nanos,
    begun: bool,
    released: Option<Nanos>,
}

impl std::fmt::Debug for Exchange<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").field("lines", &self.lines).finish_non_exhaustive()
    }
}

impl<'t> Exchange<'t> {
    /// Creates an exchange. `connect`: maximum time for establishing a connection to one address,
    /// including everything that precedes the request. `tls` is required if an HTTP/1.x request has
    /// a `tls_name`.
    pub fn new(
        requests: Vec<Request>,
        connect: Nanos,
        tls: Option<&'t mut dyn TlsFactory>,
    ) -> Exchange<'t> {
        let lines = requests.into_iter().map(Line::new).collect();
        let cache = HeadCache::new();
        let (tls_http2, terms) = (None, Terms::default());
        Exchange { lines, tls, tls_http2, cache, terms, connect, begun: false, released: None }
    }

    /// Replaces the settings that differ from those of a check.
    pub fn with_terms(mut self, terms: Terms) -> Exchange<'t> {
        for line in &mut self.lines {
            line.limits = terms.limits;
            line.messages = terms.limits.message_reader();
            line.voice = Voice::new(&line.request.message, terms.limits.head_max);
        }
        self.terms = terms;
        self
    }

    /// Sets the TLS factory for sessions of HTTP/2 requests.
    pub fn http2_over(mut self, tls: Option<&'t mut dyn TlsFactory>) -> Exchange<'t> {
        self.tls_http2 = tls;
        self
    }

    /// Processes everything that can be done now.
    pub fn turn(&mut self, io: &mut impl Io) -> Pause {
        if !self.begun {
            self.begun = true;
            for slot in 0..self.lines.len() {
                self.open(io, slot);
            }
        }
        self.pass_deadlines(io);
        self.release(io);
        self.part(io);
        let busy = self.lines.iter().filter(|line| line.stage != Stage::Over);
        let next = busy.map(|line| line.deadline(self.released)).min();
        match next {
            Some(at) => Pause::Until(at),
            None => {
                self.hang_up(io);
                Pause::Over
            }
        }
    }

    /// Drives the exchange to its end, for callers without other work.
    pub fn drive(&mut self, io: &mut impl Io) {
        let mut ready = Vec::new();
        while let Pause::Until(at) = self.turn(io) {
            io.wait(at, &mut ready);
            for event in &ready {
                self.handle(io, *event);
            }
        }
    }

    /// Processes one readiness event.
    pub fn handle(&mut self, io: &mut impl Io, event: Ready) {
        self.move_on(io, event.slot as usize);
    }

    /// Ends everything now; incomplete responses are dropped.
    pub fn abandon(&mut self, io: &mut impl Io) {
        let now = io.now();
        for line in &mut self.lines {
            line.fail(FailureClass::OtherIo, "interrupted".to_owned(), now);
        }
        self.hang_up(io);
    }

    /// Returns the facts of the connection of a request, by the request's number.
    pub fn contact(&mut self, request: usize) -> Contact {
        let Some(line) = self.lines.get_mut(request) else { return Contact::default() };
        let taken = line.peer.checked_sub(1).filter(|_| line.taken);
        Contact {
            peer: taken.and_then(|row| line.request.peers.get(row).cloned()),
            agreed: line.agreed.clone(),
            streams_max: line.voice.streams_max(),
            at: line.heard.as_ref().map(|(_, at)| *at),
        }
    }

    /// Returns the responses, in request order.
    pub fn finish(self) -> Vec<ExchangeOutcome> {
        let start = self.released;
        let heard = |line: Line| {
            let silent = || {
                let why = ExchangeError::new(FailureClass::OtherIo, "not begun".to_owned());
                (Err(why), Nanos::ZERO)
            };
            let (result, at) = line.heard.unwrap_or_else(silent);
            let took = start.map_or(Nanos::ZERO, |start| at - start);
            ExchangeOutcome { result, connected: line.connected, took }
        };
        self.lines.into_iter().map(heard).collect()
    }

    /// Closes connections without a further request, unless the server closes them.
    fn part(&mut self, io: &mut impl Io) {
        for (slot, line) in self.lines.iter_mut().enumerate() {
            let over = line.stage == Stage::Over && line.heard.is_some();
            if over && line.request.message.ends_connection() && !line.parted {
                line.parted = true;
                io.close(slot as Slot, Close::Orderly);
            }
        }
    }

    fn hang_up(&mut self, io: &mut impl Io) {
        for (slot, _) in self.lines.iter().enumerate().filter(|(_, line)| !line.parted) {
            io.close(slot as Slot, Close::Orderly);
        }
    }

    fn pass_deadlines(&mut self, io: &mut impl Io) {
        let (now, released) = (io.now(), self.released);
        for slot in 0..self.lines.len() {
            let line = &mut self.lines[slot];
            if now < line.deadline(released) {
                continue;
            }
            match line.stage {
                Stage::Connecting => self.refused(io, slot, FailureClass::ConnectTimeout),
                Stage::Tunnel => {
                    let text = "the proxy did not answer CONNECT in time".to_owned();
                    line.fail(FailureClass::Proxy, text, now);
                }
                Stage::Handshake => {
                    let text = "the TLS handshake did not finish in time".to_owned();
                    line.fail(FailureClass::ConnectTimeout, text, now);
                }
                Stage::Asked => line.give_up(now, released),
                Stage::Closing(_) => line.stage = Stage::Over,
                Stage::Through | Stage::Ready | Stage::Over => {}
            }
        }
    }

    /// Sends all requests once every connection is established or has failed.
    fn release(&mut self, io: &mut impl Io) {
        let waits = |line: &Line| {
            matches!(line.stage, Stage::Connecting | Stage::Tunnel | Stage::Handshake)
        };
        if self.released.is_some() || self.lines.iter().any(waits) {
            return;
        }
        self.released = Some(io.now());
        for line in self.lines.iter_mut().filter(|line| line.stage == Stage::Ready) {
            if line.request.message.is_handshake() {
                line.close_after_handshake(io.now());
                continue;
            }
            line.stage = Stage::Asked;
            line.patience = line.limits.begin(io.now());
            let mut bytes = Vec::new();
            line.voice.send_request(&mut line.request.message, &mut bytes);
            line.send(&bytes);
        }
        for slot in 0..self.lines.len() {
            self.lines[slot].flush(io, slot);
        }
        for slot in 0..self.lines.len() {
            self.move_on(io, slot);
        }
    }

    /// Starts a connection to the next address.
    fn open(&mut self, io: &mut impl Io, slot: usize) {
        let line = &mut self.lines[slot];
        let Some(peer) = line.request.peers.get(line.peer).cloned() else {
            return line.fail(FailureClass::OtherIo, "no address".to_owned(), io.now());
        };
        line.peer += 1;
        line.connect_by = io.now() + self.connect;
        line.plain.clear();
        let opened = io.open(slot as Slot, &peer, &self.terms.options);
        // nothing written: checks whether the connection is established
        match opened.and_then(|()| io.write(slot as Slot, &[])) {
            Ok(_) => self.connected(io, slot),
            Err(IoError::WouldBlock) => {}
            Err(IoError::Failed(class)) => self.refused(io, slot, class),
        }
    }

    fn connected(&mut self, io: &mut impl Io, slot: usize) {
        let line = &mut self.lines[slot];
        line.taken = true;
        match line.request.tunnel.take() {
            Some(bytes) => {
                let mut connect = Message::Http1 { bytes, asked: Asked::Connect };
                line.proxy
                    .insert(Voice::new(&connect, line.limits.head_max))
                    .send_request(&mut connect, &mut line.out);
                line.stage = Stage::Tunnel;
                self.move_on(io, slot);
            }
            None => self.secure(io, slot),
        }
    }

    /// Continues after the transport to the server is connected: with TLS, if used.
    fn secure(&mut self, io: &mut impl Io, slot: usize) {
        let line = &mut self.lines[slot];
        let Some(name) = line.request.tls_name.clone() else {
            line.connected = true;
            line.stage = Stage::Ready;
            return;
        };
        let over_http2 = matches!(line.request.message, Message::Http2 { .. });
        let factory = if over_http2 { &mut self.tls_http2 } else { &mut self.tls };
        let none = || ExchangeError::new(FailureClass::Tls, "TLS is not set up".to_owned());
        let session = match factory {
            Some(factory) => factory.session(&name).map_err(ExchangeError::from),
            None => Err(none()),
        };
        match session {
            Ok(session) => {
                line.session = Some(session);
                line.stage = Stage::Handshake;
                line.drain();
                // data that follows the proxy's response
                let early = std::mem::take(&mut line.plain);
                line.take(&early, io, slot, &mut self.cache);
                self.move_on(io, slot);
            }
            Err(trouble) => line.end_with(trouble, io.now()),
        }
    }

    /// Writes and reads as much as possible.
    fn move_on(&mut self, io: &mut impl Io, slot: usize) {
        let Some(line) = self.lines.get_mut(slot) else { return };
        match line.stage {
            Stage::Connecting => {
                let written = match line.read_handshake(io, slot) {
                    Ok(()) => io.write(slot as Slot, &[]),
                    Err(error) => Err(error),
                };
                match written {
                    Ok(_) => self.connected(io, slot),
                    Err(IoError::WouldBlock) => {}
                    Err(IoError::Failed(class)) => self.refused(io, slot, class),
                }
            }
            Stage::Tunnel | Stage::Handshake | Stage::Asked | Stage::Closing(_) => {
                line.flush(io, slot);
                line.listen(io, slot, &mut self.cache);
                line.flush(io, slot);
                if line.stage == Stage::Through {
                    self.secure(io, slot);
                }
            }
            Stage::Through | Stage::Ready | Stage::Over => {}
        }
    }

    /// Handles a refused connection: tries the next address, if any.
    fn refused(&mut self, io: &mut impl Io, slot: usize, class: FailureClass) {
        // the system's error does not state our own limit
        let why = match class {
            FailureClass::ConnectTimeout => None,
            _ => io.failure_text(slot as Slot),
        };
        io.close(slot as Slot, Close::Orderly);
        let line = &mut self.lines[slot];
        if line.peer < line.request.peers.len() {
            return self.open(io, slot);
        }
        let name = match line.request.peers.last() {
            Some(peer) => peer.to_string(),
            None => String::new(),
        };
        let why = why.unwrap_or_else(|| class.explain().to_owned());
        line.fail_to_connect(class, format!("{name}: {why}"), io.now());
    }
}

impl Line {
    fn new(request: Request) -> Line {
        Line {
            voice: Voice::new(&request.message, ResponseLimits::default().head_max),
            request,
            stage: Stage::Connecting,
            peer: 0,
            connect_by: Nanos::NEVER,
            taken: false,
            proxy: None,
            session: None,
            out: Vec::new(),
            out_at: 0,
            plain: Vec::new(),
            body: Vec::new(),
            unkept: 0,
            limits: ResponseLimits::default(),
            messages: None,
            patience: Patience::default(),
            unwritable: None,
            agreed: None,
            ended: false,
            connected: false,
            answered: false,
            parted: false,
            heard: None,
        }
    }

    /// Returns the instant at which its current wait times out.
    fn deadline(&self, released: Option<Nanos>) -> Nanos {
        match (self.stage, released) {
            (Stage::Connecting | Stage::Tunnel | Stage::Handshake, _) => self.connect_by,
            (Stage::Asked, Some(start)) => {
                let whole = start + self.request.timeout;
                self.patience.next().map_or(whole, |(at, _)| at.min(whole))
            }
            (Stage::Closing(until), _) => until,
            _ => Nanos::NEVER,
        }
    }

    /// Ends a late response, whether by its request's timeout or by a limit within that.
    fn give_up(&mut self, now: Nanos, released: Option<Nanos>) {
        let whole = released.map_or(Nanos::NEVER, |start| start + self.request.timeout);
        match self.patience.next() {
            Some((at, class)) if at < whole => self.fail(class, class.explain().to_owned(), now),
            _ => {
                let span = units::show::duration(self.request.timeout);
                let text = self.voice.late(&span);
                self.fail(FailureClass::ClientTimeout, text, now);
            }
        }
    }

    fn fail(&mut self, class: FailureClass, text: String, now: Nanos) {
        self.end_with(ExchangeError::new(class, text), now);
    }

    /// Like [`Line::fail`], for a peer that may not support the protocol.
    fn fail_to_connect(&mut self, class: FailureClass, text: String, now: Nanos) {
        let unmet = matches!(
            class,
            FailureClass::Refused
                | FailureClass::ConnectTimeout
                | FailureClass::SocketTimeout
                | FailureClass::Unreachable
                | FailureClass::Protocol
        );
        let fix_text = self.request.message.unconnected_fix().filter(|_| unmet);
        self.end_with(ExchangeError { class, text, fix_text }, now);
    }

    fn end_with(&mut self, trouble: ExchangeError, now: Nanos) {
        if self.heard.is_none() {
            self.heard = Some((Err(trouble), now));
        }
        self.stage = Stage::Over;
    }

    fn send(&mut self, bytes: &[u8]) {
        match &mut self.session {
            Some(session) => {
                session.send(bytes);
                session.drain(&mut self.out);
            }
            None => self.out.extend_from_slice(bytes),
        }
    }

    fn drain(&mut self) {
        if let Some(session) = &mut self.session {
            session.drain(&mut self.out);
        }
    }

    fn flush(&mut self, io: &mut impl Io, slot: usize) {
        while self.unwritable.is_none() && self.out_at < self.out.len() {
            match io.write(slot as Slot, &self.out[self.out_at..]) {
                Ok(count) => self.out_at += count,
                Err(IoError::WouldBlock) => return,
                Err(IoError::Failed(class)) => {
                    self.unwritable = Some((class, words(io, slot, class)));
                }
            }
        }
    }

    /// Reads QUIC's handshake datagrams before the connection is established; data that the server
    /// sends after its handshake may arrive with them.
    fn read_handshake(&mut self, io: &mut impl Io, slot: usize) -> Result<(), IoError> {
        let message = &self.request.message;
        // a tunnel reads those of its shared connection itself
        if !message.is_http3() || message.is_tunneled() {
            return Ok(());
        }
        let mut buffer = vec![0; READ_SIZE];
        loop {
            match io.read(slot as Slot, &mut buffer) {
                Ok(0) => return Err(IoError::Failed(FailureClass::ClosedEarly)),
                Ok(count) => self.plain.extend_from_slice(&buffer[..count]),
                Err(IoError::WouldBlock) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn listen(&mut self, io: &mut impl Io, slot: usize, cache: &mut HeadCache) {
        let mut buffer = vec![0; READ_SIZE];
        while !matches!(self.stage, Stage::Through | Stage::Over) {
            match io.read(slot as Slot, &mut buffer) {
                Ok(0) => {
                    self.ended = true;
                    return self.end(io.now());
                }
                Ok(count) => self.take(&buffer[..count], io, slot, cache),
                Err(IoError::WouldBlock) => return,
                Err(IoError::Failed(class)) => {
                    let unwritable = self.unwritable.take();
                    let (class, why) =
                        unwritable.unwrap_or_else(|| (class, words(io, slot, class)));
                    let class = match self.stage {
                        Stage::Tunnel => FailureClass::Proxy,
                        _ => class,
                    };
                    return self.fail(class, why, io.now());
                }
            }
        }
    }

    fn take(&mut self, bytes: &[u8], io: &mut impl Io, slot: usize, cache: &mut HeadCache) {
        let Some(session) = &mut self.session else {
            self.plain.extend_from_slice(bytes);
            self.read_proxy(cache, io.now());
            self.read_response(cache, io.now());
            return self.flush(io, slot);
        };
        let fed = session.feed(bytes, &mut self.plain);
        let (closed, shaking) = (session.closed(), session.handshaking());
        let agreed = (self.stage == Stage::Handshake && !shaking)
            .then(|| session.facts().map(|facts| facts.alpn).unwrap_or_default());
        self.drain();
        self.flush(io, slot);
        if let Err(error) = fed {
            // with TLS 1.3 the server may reject the client's part of the handshake after our side
            // has finished
            self.connected &= self.answered;
            return self.end_with(error.into(), io.now());
        }
        if let Some(agreed) = agreed {
            let trouble = self.request.message.disagreement(&agreed);
            self.agreed = Some(agreed);
            if let Some(trouble) = trouble {
                return self.end_with(trouble, io.now());
            }
            self.connected = true;
            self.stage = Stage::Ready;
        }
        self.read_response(cache, io.now());
        if closed {
            self.end(io.now());
        }
    }

    /// Reads the proxy's response to CONNECT.
    fn read_proxy(&mut self, cache: &mut HeadCache, now: Nanos) {
        let Some(proxy) = self.proxy.as_mut().filter(|_| self.stage == Stage::Tunnel) else {
            return;
        };
        let input = std::mem::take(&mut self.plain);
        match proxy.process(cache, &input, &mut Vec::new(), &mut Vec::new()) {
            Ok(VoiceOutput { used, done, .. }) => {
                self.plain = input[used..].to_vec();
                if done {
                    self.pass_proxy(now);
                }
            }
            Err(trouble) => self.fail(FailureClass::Proxy, trouble.text, now),
        }
    }

    /// Handles the proxy's response to CONNECT.
    fn pass_proxy(&mut self, now: Nanos) {
        let status = self.proxy.as_ref().map_or(0, |proxy| proxy.reply().0.status);
        if (200..300).contains(&status) {
            self.stage = Stage::Through;
        } else {
            let text = format!("the proxy answered CONNECT with {status}");
            self.fail(FailureClass::Proxy, text, now);
        }
    }

    /// Closes after a handshake without a request, so that the server does not see an error.
    fn close_after_handshake(&mut self, now: Nanos) {
        if let Some(session) = &mut self.session {
            session.close();
        }
        self.drain();
        self.heard = Some((Ok(Reply::default()), now));
        self.stage = Stage::Over;
    }

    /// Processes received data, and keeps the rest.
    fn read_response(&mut self, cache: &mut HeadCache, now: Nanos) {
        if self.stage != Stage::Asked {
            return;
        }
        let input = std::mem::take(&mut self.plain);
        let (mut reply, kept) = (Vec::new(), self.body.len());
        let heard = self.voice.process(cache, &input, &mut self.body, &mut reply);
        if !reply.is_empty() {
            self.send(&reply);
        }
        match heard {
            Ok(VoiceOutput { used, begun, done }) => {
                if !input.is_empty() {
                    self.answered = true;
                    self.patience.process(&self.limits, now, begun);
                }
                self.plain = input[used..].to_vec();
                let long = self.unkept + self.body.len() > BODY_MAX;
                let enough = self.messages.as_mut().is_some_and(|messages| {
                    messages.push(&self.body[kept..]);
                    messages.early_end().is_some()
                });
                self.truncate_body();
                if done {
                    self.whole(now);
                } else if enough || long && self.limits.body_kept.is_some() {
                    let (facts, head) = self.voice.so_far();
                    let body = std::mem::take(&mut self.body);
                    self.heard = Some((Ok(Reply { facts, head, body }), now));
                    self.stage = Stage::Over;
                } else if long {
                    let text =
                        "the body is longer than 64 MiB, the limit for reading it".to_owned();
                    self.fail(FailureClass::Length, text, now);
                }
            }
            Err(trouble) => {
                // without any data of the protocol, the peer probably does not support it
                self.connected &= self.voice.is_met();
                self.end_with(trouble, now);
            }
        }
    }

    /// Truncates the body to the limits.
    fn truncate_body(&mut self) {
        let kept = self.limits.body_kept.unwrap_or(usize::MAX);
        self.unkept += self.body.len().saturating_sub(kept);
        self.body.truncate(kept);
    }

    fn whole(&mut self, now: Nanos) {
        let (facts, head) = self.voice.reply();
        let reply = Reply { facts, head, body: std::mem::take(&mut self.body) };
        self.heard = Some((Ok(reply), now));
        let closes = !facts.persistent && facts.framing != Framing::UntilClose && !self.ended;
        self.stage = if closes { Stage::Closing(now + self.limits.linger) } else { Stage::Over };
    }

    /// Handles the peer's close.
    fn end(&mut self, now: Nanos) {
        match self.stage {
            Stage::Asked => match self.voice.receive_end() {
                Ok(()) if self.session.as_ref().is_some_and(|session| !session.closed()) => {
                    self.fail(FailureClass::ClosedEarly, CUT.to_owned(), now);
                }
                Ok(()) => {
                    self.ended = true;
                    self.whole(now);
                }
                Err(trouble) => self.end_with(trouble, now),
            },
            Stage::Tunnel => match self.proxy.as_mut().map(Voice::receive_end) {
                Some(Err(trouble)) => self.fail(FailureClass::Proxy, trouble.text, now),
                _ => self.pass_proxy(now),
            },
            Stage::Ready => self.end_with(voice::closed_early(), now),
            Stage::Handshake => self.fail(
                FailureClass::Tls,
                "the server closed during the TLS handshake".to_owned(),
                now,
            ),
            _ => self.stage = Stage::Over,
        }
    }
}

/// Message for a body that an unauthenticated close cannot end.
const CUT: &str = "the connection was closed without TLS's close_notify, so that the body may be cut off \
                   (RFC 9112 section 9.8)";

/// Returns the description of a failed connection.
fn words(io: &mut impl Io, slot: usize, class: FailureClass) -> String {
    io.failure_text(slot as Slot).unwrap_or_else(|| class.explain().to_owned())
}
