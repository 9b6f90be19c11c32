//! Single exchanges, each on a connection of its own: all connections are made first, then all
//! requests go out at the same moment, and every answer is kept whole. For checks, where what came
//! back matters and not how much of it.

use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot, TlsFactory, TlsSession};
use sample::FailureClass;
use units::Nanos;
use url::Url;
use wire::answer::{AnswerError, AnswerFacts, AnswerReader, Asked, Framing, HeadCache};

/// One request, ready to go.
#[derive(Clone, Debug)]
pub struct Request {
    /// Addresses, tried in turn; never empty.
    pub peers: Vec<Peer>,
    /// Name for SNI and the certificate check; `None` without TLS.
    pub tls_name: Option<String>,
    pub bytes: Vec<u8>,
    pub asked: Asked,
    /// From the moment the requests go out to the end of the answer.
    pub timeout: Nanos,
}

/// A request on its way out.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Scheme, host and port say where it goes.
    pub url: Url,
    pub bytes: Vec<u8>,
    pub asked: Asked,
    /// From the moment it goes out to the end of its answer.
    pub timeout: Nanos,
}

/// Whoever can make exchanges.
pub trait Caller {
    /// Makes a connection for each request, then sends all at the same moment; gives back what was
    /// heard in the order of the requests.
    fn exchange(&mut self, requests: Vec<Outgoing>) -> Vec<Heard>;

    /// It is to end now: the user has had enough.
    fn interrupted(&self) -> bool;
}

/// A whole answer.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub facts: AnswerFacts,
    /// The final head as it stood on the wire.
    pub head: Vec<u8>,
    /// Chunk framing removed, content coding not undone.
    pub body: Vec<u8>,
}

/// Why there is no whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub class: FailureClass,
    pub text: String,
}

impl Trouble {
    /// Its words, and what to do about a certificate: most servers under test have signed their own.
    pub fn with_way_out(&self) -> String {
        match self.class {
            FailureClass::Certificate => format!(
                "{}. Trust its issuer with --ca FILE, or accept any certificate with --insecure.",
                self.text
            ),
            _ => self.text.clone(),
        }
    }
}

/// What came of a request.
#[derive(Clone, Debug)]
pub struct Heard {
    pub result: Result<Reply, Trouble>,
    /// A connection (and its TLS) was made.
    pub connected: bool,
    /// From the moment the requests went out to the end; zero when it came to that never.
    pub took: Nanos,
}

/// What a turn ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Nothing to do until then, unless a connection becomes ready.
    Until(Nanos),
    Over,
}

/// Bytes of body that are kept; a longer one is a failure.
pub const BODY_MAX: usize = 64 << 20;
/// How long the server is given to close a connection that it said it would close.
const LINGER: Nanos = Nanos::from_millis(500);

/// Where a connection stands; never goes back, but for the next address of `Connecting`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Handshake,
    /// Waits for the others.
    Ready,
    Asked,
    /// The answer is whole; the end of the connection is still to come.
    Closing(Nanos),
    Over,
}

#[derive(Debug)]
struct Line {
    request: Request,
    stage: Stage,
    /// The next of the request's addresses.
    peer: usize,
    session: Option<Box<dyn TlsSession>>,
    /// For the transport, of which `out_at` bytes are gone.
    out: Vec<u8>,
    out_at: usize,
    plain: Vec<u8>,
    reader: AnswerReader,
    body: Vec<u8>,
    /// Why nothing more can be written; an answer may be there all the same.
    unwritable: Option<FailureClass>,
    ended: bool,
    connected: bool,
    heard: Option<(Result<Reply, Trouble>, Nanos)>,
}

/// Requests that go out together, as a machine: [`Exchange::turn`] and [`Exchange::handle`].
pub struct Exchange<'t> {
    lines: Vec<Line>,
    tls: Option<&'t mut dyn TlsFactory>,
    cache: HeadCache,
    connect: Nanos,
    /// When connections must stand; `None` before the first turn.
    stand_by: Option<Nanos>,
    released: Option<Nanos>,
}

impl std::fmt::Debug for Exchange<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").field("lines", &self.lines).finish_non_exhaustive()
    }
}

impl<'t> Exchange<'t> {
    /// `connect`: the longest that making the connections may take. `tls` must be there when a
    /// request has a `tls_name`.
    pub fn new(
        requests: Vec<Request>,
        connect: Nanos,
        tls: Option<&'t mut dyn TlsFactory>,
    ) -> Exchange<'t> {
        let lines = requests.into_iter().map(Line::new).collect();
        let cache = HeadCache::new();
        Exchange { lines, tls, cache, connect, stand_by: None, released: None }
    }

    /// Does what can be done now.
    pub fn turn(&mut self, io: &mut impl Io) -> Pause {
        let stand_by = match self.stand_by {
            Some(at) => at,
            None => {
                let at = io.now() + self.connect;
                self.stand_by = Some(at);
                for slot in 0..self.lines.len() {
                    self.open(io, slot);
                }
                at
            }
        };
        let now = io.now();
        self.pass_deadlines(now, stand_by);
        self.release(io);
        let busy = self.lines.iter().filter(|line| line.stage != Stage::Over);
        let next = busy.map(|line| line.deadline(stand_by, self.released)).min();
        match next {
            Some(at) => Pause::Until(at),
            None => {
                self.hang_up(io);
                Pause::Over
            }
        }
    }

    /// Takes one readiness event.
    pub fn handle(&mut self, io: &mut impl Io, event: Ready) {
        self.move_on(io, event.slot as usize);
    }

    /// Ends everything now; what has no answer yet has none.
    pub fn abandon(&mut self, io: &mut impl Io) {
        let now = io.now();
        for line in &mut self.lines {
            line.fail(FailureClass::OtherIo, "interrupted".to_owned(), now);
        }
        self.hang_up(io);
    }

    /// What was heard, in the order of the requests.
    pub fn finish(self) -> Vec<Heard> {
        let start = self.released;
        let heard = |line: Line| {
            let silent = || (Err(trouble(FailureClass::OtherIo, "not begun")), Nanos::ZERO);
            let (result, at) = line.heard.unwrap_or_else(silent);
            let took = start.map_or(Nanos::ZERO, |start| at - start);
            Heard { result, connected: line.connected, took }
        };
        self.lines.into_iter().map(heard).collect()
    }

    fn hang_up(&mut self, io: &mut impl Io) {
        for slot in 0..self.lines.len() {
            io.close(slot as Slot, Close::Orderly);
        }
    }

    fn pass_deadlines(&mut self, now: Nanos, stand_by: Nanos) {
        let released = self.released;
        for line in &mut self.lines {
            if now < line.deadline(stand_by, released) {
                continue;
            }
            match line.stage {
                Stage::Connecting | Stage::Handshake => {
                    let class = FailureClass::ConnectTimeout;
                    line.fail(class, class.explain().to_owned(), now);
                }
                Stage::Asked => {
                    let span = units::show::duration(line.request.timeout);
                    line.fail(
                        FailureClass::ClientTimeout,
                        format!("no whole response within {span}"),
                        now,
                    );
                }
                Stage::Closing(_) => line.stage = Stage::Over,
                Stage::Ready | Stage::Over => {}
            }
        }
    }

    /// All requests go out once every connection stands or has failed.
    fn release(&mut self, io: &mut impl Io) {
        let waits = |line: &Line| matches!(line.stage, Stage::Connecting | Stage::Handshake);
        if self.released.is_some() || self.lines.iter().any(waits) {
            return;
        }
        self.released = Some(io.now());
        for line in self.lines.iter_mut().filter(|line| line.stage == Stage::Ready) {
            line.stage = Stage::Asked;
            line.reader.start(line.request.asked);
            let bytes = std::mem::take(&mut line.request.bytes);
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
        let options = OpenOptions { nodelay: true, ..OpenOptions::default() };
        let opened = io.open(slot as Slot, &peer, &options);
        // nothing written: whether the connection stands
        match opened.and_then(|()| io.write(slot as Slot, &[])) {
            Ok(_) => self.connected(io, slot),
            Err(IoError::WouldBlock) => {}
            Err(IoError::Failed(class)) => self.refused(io, slot, class),
        }
    }

    fn connected(&mut self, io: &mut impl Io, slot: usize) {
        let line = &mut self.lines[slot];
        let Some(name) = line.request.tls_name.clone() else {
            line.connected = true;
            line.stage = Stage::Ready;
            return;
        };
        let session = match &mut self.tls {
            Some(factory) => factory.session(&name).map_err(|error| (error.class, error.text)),
            None => Err((FailureClass::Tls, "TLS is not set up".to_owned())),
        };
        match session {
            Ok(session) => {
                line.session = Some(session);
                line.stage = Stage::Handshake;
                line.drain();
                self.move_on(io, slot);
            }
            Err((class, text)) => line.fail(class, text, io.now()),
        }
    }

    /// Writes and reads as far as it goes.
    fn move_on(&mut self, io: &mut impl Io, slot: usize) {
        let Some(line) = self.lines.get_mut(slot) else { return };
        match line.stage {
            Stage::Connecting => match io.write(slot as Slot, &[]) {
                Ok(_) => self.connected(io, slot),
                Err(IoError::WouldBlock) => {}
                Err(IoError::Failed(class)) => self.refused(io, slot, class),
            },
            Stage::Handshake | Stage::Asked | Stage::Closing(_) => {
                line.flush(io, slot);
                line.listen(io, slot, &mut self.cache);
                line.flush(io, slot);
            }
            Stage::Ready | Stage::Over => {}
        }
    }

    /// The address does not take us: the next one, if there is one.
    fn refused(&mut self, io: &mut impl Io, slot: usize, class: FailureClass) {
        io.close(slot as Slot, Close::Orderly);
        let line = &mut self.lines[slot];
        if line.peer < line.request.peers.len() {
            return self.open(io, slot);
        }
        let name = match line.request.peers.last() {
            Some(peer) => peer.to_string(),
            None => String::new(),
        };
        line.fail(class, format!("{name}: {}", class.explain()), io.now());
    }
}

impl Line {
    fn new(request: Request) -> Line {
        Line {
            request,
            stage: Stage::Connecting,
            peer: 0,
            session: None,
            out: Vec::new(),
            out_at: 0,
            plain: Vec::new(),
            reader: AnswerReader::new(true),
            body: Vec::new(),
            unwritable: None,
            ended: false,
            connected: false,
            heard: None,
        }
    }

    /// The instant at which it has waited long enough for what it waits for.
    fn deadline(&self, stand_by: Nanos, released: Option<Nanos>) -> Nanos {
        match (self.stage, released) {
            (Stage::Connecting | Stage::Handshake, _) => stand_by,
            (Stage::Asked, Some(start)) => start + self.request.timeout,
            (Stage::Closing(until), _) => until,
            _ => Nanos::NEVER,
        }
    }

    fn fail(&mut self, class: FailureClass, text: String, now: Nanos) {
        if self.heard.is_none() {
            self.heard = Some((Err(Trouble { class, text }), now));
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
                Err(IoError::Failed(class)) => self.unwritable = Some(class),
            }
        }
    }

    fn listen(&mut self, io: &mut impl Io, slot: usize, cache: &mut HeadCache) {
        let mut buffer = vec![0; 64 << 10];
        while self.stage != Stage::Over {
            match io.read(slot as Slot, &mut buffer) {
                Ok(0) => {
                    self.ended = true;
                    return self.end(io.now());
                }
                Ok(count) => self.take(&buffer[..count], io, slot, cache),
                Err(IoError::WouldBlock) => return,
                Err(IoError::Failed(class)) => {
                    let class = self.unwritable.unwrap_or(class);
                    return self.fail(class, class.explain().to_owned(), io.now());
                }
            }
        }
    }

    fn take(&mut self, bytes: &[u8], io: &mut impl Io, slot: usize, cache: &mut HeadCache) {
        let Some(session) = &mut self.session else {
            self.plain.extend_from_slice(bytes);
            return self.read_answer(cache, io.now());
        };
        let fed = session.feed(bytes, &mut self.plain);
        let (closed, shaking) = (session.closed(), session.handshaking());
        self.drain();
        self.flush(io, slot);
        if let Err(error) = fed {
            return self.fail(error.class, error.text, io.now());
        }
        if self.stage == Stage::Handshake && !shaking {
            self.connected = true;
            self.stage = Stage::Ready;
        }
        self.read_answer(cache, io.now());
        if closed {
            self.end(io.now());
        }
    }

    /// Reads what has come; what is left over is kept.
    fn read_answer(&mut self, cache: &mut HeadCache, now: Nanos) {
        if self.stage != Stage::Asked {
            return;
        }
        let input = std::mem::take(&mut self.plain);
        let mut at = 0;
        while at < input.len() {
            let advance = match self.reader.advance(cache, &input[at..]) {
                Ok(advance) => advance,
                Err(error) => return self.fail_with(error, &input[at..], now),
            };
            self.body.extend_from_slice(&input[at..][advance.body.clone()]);
            at += advance.consumed;
            if self.body.len() > BODY_MAX {
                let text = "the body is longer than 64 MiB, more than is looked at".to_owned();
                return self.fail(FailureClass::Length, text, now);
            }
            if advance.done {
                return self.whole(now);
            }
            if advance.consumed == 0 {
                break;
            }
        }
        self.plain = input[at..].to_vec();
    }

    fn whole(&mut self, now: Nanos) {
        let facts = self.reader.facts();
        let reply = Reply {
            facts,
            head: self.reader.head().to_vec(),
            body: std::mem::take(&mut self.body),
        };
        self.heard = Some((Ok(reply), now));
        let closes = !facts.persistent && facts.framing != Framing::UntilClose && !self.ended;
        self.stage = if closes { Stage::Closing(now + LINGER) } else { Stage::Over };
    }

    /// The peer has ended its side.
    fn end(&mut self, now: Nanos) {
        match self.stage {
            Stage::Asked => match self.reader.end_of_input() {
                Ok(()) => {
                    self.ended = true;
                    self.whole(now);
                }
                Err(error) => self.fail_with(error, &[], now),
            },
            Stage::Ready => self.fail_with(AnswerError::ClosedEarly, &[], now),
            Stage::Handshake => self.fail(
                FailureClass::Tls,
                "the server closed during the TLS handshake".to_owned(),
                now,
            ),
            _ => self.stage = Stage::Over,
        }
    }

    /// `at`: the bytes at which the answer could not be understood.
    fn fail_with(&mut self, error: AnswerError, at: &[u8], now: Nanos) {
        let class = match error {
            AnswerError::NotHttp => FailureClass::NotHttp,
            AnswerError::BadFraming(_) | AnswerError::HeadTooLarge => FailureClass::BadFraming,
            AnswerError::ClosedEarly => FailureClass::ClosedEarly,
            AnswerError::Truncated => FailureClass::Truncated,
        };
        // a TLS record of an alert (RFC 8446 §5.1)
        let alert = class == FailureClass::NotHttp && at.starts_with(&[0x15, 0x03]);
        let text = if alert {
            "the server responded in TLS: is this a port for https://?".to_owned()
        } else {
            error.to_string()
        };
        self.fail(class, text, now);
    }
}

fn trouble(class: FailureClass, text: &str) -> Trouble {
    Trouble { class, text: text.to_owned() }
}
