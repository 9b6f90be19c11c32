//! The plain call that goes first: is somebody there, and what does a good response look like? It
//! also settles on one address where a name has several, and finds the hosts that redirects lead to.

mod over_http2;
#[cfg(feature = "h3")]
mod over_http3;

use conduit::{Peer, TlsError, TlsFactory, TlsSession};
use engine::exchange::{Trouble, misread};
use engine::{Endpoint, build_template, endpoint_key, open_options, proof, redirect_method};
use ownstack::{OwnNetwork, OwnSocket};
use plan::{HttpVersion, Plan};
use reactor::failure_class;
use report::FirstCall;
use sample::FailureClass;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use units::Nanos;
use url::Url;
use wire::fields;
use wire::response::{Asked, HeadCache, ResponseError, ResponseReader};
use workload::Template;

/// What the first call found out.
pub(crate) struct Found {
    pub(crate) call: FirstCall,
    /// No connection could be made, or no TLS on it.
    pub(crate) unreachable: bool,
    /// Where the response redirects to.
    pub(crate) location: Option<Url>,
    /// Streams that the server allows on a connection, where it has such.
    pub(crate) streams_max: Option<u32>,
}

/// Where a response leads to.
#[derive(Default)]
struct Leads {
    /// The URL of a redirect.
    location: Option<Url>,
    /// The head of a response that asks for a login.
    refused: Option<Vec<u8>>,
}

/// Bytes of body read before the first call is content.
const BODY_MAX: u64 = 64 << 20;

/// Bytes of body, fields of the head, and characters in all of the excerpt of a response.
const BODY_SHOWN_MAX: usize = 120;
const FIELDS_SHOWN_MAX: usize = 4;
const EXCERPT_MAX: usize = 300;

/// Why the call came to nothing.
struct CallTrouble {
    class: FailureClass,
    text: String,
    connected: bool,
    /// What to do about it, where more is known than the class tells.
    way_out: Option<&'static str>,
}

impl CallTrouble {
    fn of(error: TlsError, connected: bool) -> CallTrouble {
        CallTrouble { class: error.class, text: error.text, connected, way_out: error.way_out }
    }

    fn from_exchange(trouble: Trouble, connected: bool) -> CallTrouble {
        let Trouble { class, text, way_out } = trouble;
        CallTrouble { class, text, connected, way_out }
    }
}

/// Makes one call to `template` at its endpoint, whose addresses are then the one that answered. Where the
/// server asks for the plan's login, the call is made again with it.
pub(crate) fn make(
    plan: &Plan,
    endpoint: &mut Endpoint,
    tls: Option<&tls::Client>,
    own: Option<&Arc<OwnNetwork>>,
    template: &Template,
) -> Found {
    let now = crate::wall_clock::unix_seconds() as u64;
    let signed = proof::first_proof(plan, template, now);
    let (found, refused) = once(plan, endpoint, tls, own, signed.as_ref().unwrap_or(template));
    match refused.and_then(|head| proof::answer_to(plan, template, &head)) {
        Some(answer) => once(plan, endpoint, tls, own, &answer).0,
        None => found,
    }
}

/// One call, and the head of a response that asks for a login.
fn once(
    plan: &Plan,
    endpoint: &mut Endpoint,
    tls: Option<&tls::Client>,
    own: Option<&Arc<OwnNetwork>>,
    template: &Template,
) -> (Found, Option<Vec<u8>>) {
    let start = reactor::monotonic();
    let over_tcp = |endpoint: &mut Endpoint| -> Result<_, CallTrouble> {
        let stream = connect(plan, endpoint, own)?;
        let mut call = Call::new(plan, stream, start);
        call.establish(plan, endpoint, tls)?;
        let (mut first, leads) = call.exchange(plan, template)?;
        // closing the connection is no part of the call
        first.took = reactor::monotonic() - start;
        Ok((first, leads, call.streams_max))
    };
    let outcome = match plan.request.version {
        #[cfg(feature = "h3")]
        HttpVersion::Http3 => {
            let outcome = over_http3::call(plan, endpoint, tls, template);
            let took = reactor::monotonic() - start;
            outcome.map(|(first, leads, most)| (FirstCall { took, ..first }, leads, most))
        }
        _ => over_tcp(endpoint),
    };
    match outcome {
        Ok((call, leads, streams_max)) => {
            let found = Found { call, unreachable: false, location: leads.location, streams_max };
            (found, leads.refused)
        }
        Err(trouble) => (
            Found {
                call: FirstCall {
                    took: reactor::monotonic() - start,
                    failure: Some((trouble.class, trouble.text)),
                    way_out: trouble.way_out.map(str::to_owned),
                    ..FirstCall::default()
                },
                unreachable: !trouble.connected,
                location: None,
                streams_max: None,
            },
            None,
        ),
    }
}

/// The protocol that the server chooses of those that are offered by ALPN, from a handshake and
/// nothing behind it; the inner `None`: it chose nothing. `None`: there was no handshake.
pub(crate) fn preference(
    plan: &Plan,
    endpoint: &mut Endpoint,
    tls: Option<&tls::Client>,
    own: Option<&Arc<OwnNetwork>>,
) -> Option<Option<String>> {
    let stream = connect(plan, endpoint, own).ok()?;
    let mut call = Call::new(plan, stream, reactor::monotonic());
    call.establish(plan, endpoint, tls).ok()?;
    let facts = call.session.as_ref()?.facts()?;
    // so that the server does not take the end for an error
    if let Some(session) = &mut call.session {
        session.close();
    }
    call.drain().ok();
    Some(Some(facts.alpn).filter(|name| !name.is_empty()))
}

/// The URL that a redirect of the first target leads to, when its host is not known yet.
pub(crate) fn unknown_host(found: &Found, plan: &Plan, endpoints: &[Endpoint]) -> Option<Url> {
    let url = found.location.clone().filter(|_| plan.request.follow_max > 0)?;
    // of anything else a call is made all the same, and fails as a redirect that leads nowhere
    let spoken = plan.request.version != HttpVersion::Http3 || url.scheme() == "https";
    if !spoken
        || !matches!(url.scheme(), "http" | "https")
        || url.port() == Some(0)
        || !url.has_host()
    {
        return None;
    }
    let key = endpoint_key(&url);
    endpoints.iter().all(|endpoint| endpoint.key != key).then_some(url)
}

/// The request for a redirect's URL.
pub(crate) fn request_for(plan: &Plan, url: &Url, row: u32, absolute: bool) -> Option<Template> {
    build_template(plan, url, "GET", &[], None, row, absolute).ok()
}

trait LimitedStream: Read + Write + Send {
    fn limit(&mut self, left: Duration) -> std::io::Result<()>;
}

impl LimitedStream for TcpStream {
    fn limit(&mut self, left: Duration) -> std::io::Result<()> {
        self.set_read_timeout(Some(left))?;
        self.set_write_timeout(Some(left))
    }
}

impl LimitedStream for UnixStream {
    fn limit(&mut self, left: Duration) -> std::io::Result<()> {
        self.set_read_timeout(Some(left))?;
        self.set_write_timeout(Some(left))
    }
}

impl LimitedStream for OwnSocket {
    fn limit(&mut self, left: Duration) -> std::io::Result<()> {
        OwnSocket::limit(self, left);
        Ok(())
    }
}

/// Connects to the first address that takes it, over our own TCP where that is to measure.
fn connect(
    plan: &Plan,
    endpoint: &mut Endpoint,
    own: Option<&Arc<OwnNetwork>>,
) -> Result<Box<dyn LimitedStream>, CallTrouble> {
    let options = open_options(plan, 0);
    let mut trouble = None;
    for peer in endpoint.peers.clone() {
        let within = plan.timeouts.connect;
        let stream: std::io::Result<Box<dyn LimitedStream>> = match (&peer, own) {
            (_, Some(own)) => OwnSocket::connect(own, plan.seed, &peer, &options, within)
                .map(|socket| Box::new(socket) as _),
            (Peer::Tcp(address), None) => {
                reactor::connect_tcp(*address, &options, within).map(|tcp| Box::new(tcp) as _)
            }
            (Peer::Unix(path), None) => UnixStream::connect(path).map(|unix| Box::new(unix) as _),
            (Peer::Udp(_) | Peer::Quic { .. }, None) => Err(ErrorKind::Unsupported.into()),
        };
        match stream {
            Ok(stream) => {
                endpoint.peers = vec![peer];
                return Ok(stream);
            }
            Err(error) => {
                let text = format!("{peer}: {error}");
                let class = class_of_connect(&error);
                trouble = Some(CallTrouble { class, text, connected: false, way_out: None });
            }
        }
    }
    let none = || CallTrouble {
        class: FailureClass::OtherIo,
        text: "no address".into(),
        connected: false,
        way_out: None,
    };
    Err(trouble.unwrap_or_else(none))
}

/// Of an error of making a connection.
fn class_of_connect(error: &std::io::Error) -> FailureClass {
    match error.kind() {
        // our own limit looks as the kernel's does, and a Unix socket's full queue as no answer
        ErrorKind::TimedOut | ErrorKind::WouldBlock => FailureClass::ConnectTimeout,
        _ => failure_class(error),
    }
}

/// One blocking exchange over TCP. It is not one of `engine::exchange`, as that over HTTP/3 is: an `Io`
/// tells a class where the system has words of its own for what is wrong, a proxy's CONNECT is no
/// stage there, and what TLS says to do about its error is not handed on.
struct Call {
    stream: Box<dyn LimitedStream>,
    session: Option<Box<dyn TlsSession>>,
    plain: Vec<u8>,
    ended: bool,
    deadline: Nanos,
    streams_max: Option<u32>,
    /// A limit within the whole call's, and what it is called when it is reached.
    patience: Option<(Nanos, FailureClass)>,
    progress: Option<Nanos>,
}

impl Call {
    fn new(plan: &Plan, stream: Box<dyn LimitedStream>, start: Nanos) -> Call {
        Call {
            stream,
            session: None,
            plain: Vec::new(),
            ended: false,
            deadline: start + plan.timeouts.call,
            streams_max: None,
            patience: None,
            progress: plan.timeouts.progress,
        }
    }

    /// The proxy's tunnel and TLS, where the endpoint has them.
    fn establish(
        &mut self,
        plan: &Plan,
        endpoint: &Endpoint,
        tls: Option<&tls::Client>,
    ) -> Result<(), CallTrouble> {
        if let Some(request) = &endpoint.tunnel {
            self.write(request).map_err(|trouble| CallTrouble { connected: false, ..trouble })?;
            let (facts, _, _) = self.read_response(Asked::Connect).map_err(|trouble| {
                CallTrouble { class: FailureClass::Proxy, connected: false, ..trouble }
            })?;
            if !(200..300).contains(&facts.status) {
                let text = format!("the proxy answered CONNECT with {}", facts.status);
                let class = FailureClass::Proxy;
                return Err(CallTrouble { class, text, connected: false, way_out: None });
            }
        }
        let (Some(name), Some(client)) = (&endpoint.tls_name, tls) else { return Ok(()) };
        let session = client.factory().session(name);
        self.session = Some(session.map_err(|error| CallTrouble::of(error, false))?);
        self.drain()?;
        self.deadline = self.deadline.min(reactor::monotonic() + plan.timeouts.connect);
        while self.session.as_ref().is_some_and(|session| session.handshaking()) {
            self.fill().map_err(|trouble| CallTrouble { connected: false, ..trouble })?;
            if self.ended {
                return Err(CallTrouble {
                    class: FailureClass::Tls,
                    text: "the server closed during the TLS handshake".into(),
                    connected: false,
                    way_out: None,
                });
            }
        }
        self.deadline = reactor::monotonic() + plan.timeouts.call;
        Ok(())
    }

    fn exchange(
        &mut self,
        plan: &Plan,
        template: &Template,
    ) -> Result<(FirstCall, Leads), CallTrouble> {
        let (status, length, http_version, head, body) = match &template.http2 {
            Some(request) => {
                let (facts, head, body) = self.exchange_http2(plan, request)?;
                (facts.status, facts.body_bytes, "2".to_owned(), head, body)
            }
            None => {
                self.send(&template.last)?;
                self.expect_response(plan);
                let (facts, head, body) = self.read_response(template.asked)?;
                let version = format!("1.{}", facts.minor_version);
                (facts.status, facts.body_bytes, version, head, body)
            }
        };
        Ok(told(template, (status, length, http_version), &head, &body))
    }

    /// The request is sent: the limits of its response begin.
    fn expect_response(&mut self, plan: &Plan) {
        let now = reactor::monotonic();
        let limits = &plan.timeouts;
        let first_byte = limits.first_byte.map(|span| (now + span, FailureClass::FirstByteTimeout));
        let still = limits.answer.or(limits.progress);
        let still = still.map(|span| (now + span, FailureClass::ProgressTimeout));
        self.patience = first_byte.into_iter().chain(still).min_by_key(|(at, _)| *at);
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), CallTrouble> {
        match &mut self.session {
            Some(session) => {
                session.send(bytes);
                self.drain()
            }
            None => self.write(bytes),
        }
    }

    fn read_response(
        &mut self,
        asked: Asked,
    ) -> Result<(wire::response::ResponseFacts, Vec<u8>, Vec<u8>), CallTrouble> {
        let mut begun = Vec::new();
        let mut reader = ResponseReader::new(true);
        let mut cache = HeadCache::new();
        reader.start(asked);
        loop {
            let input = std::mem::take(&mut self.plain);
            let mut at = 0;
            while at < input.len() {
                let read = reader.advance(&mut cache, &input[at..]);
                let advance = read.map_err(|error| unreadable(error, &input[at..]))?;
                let room = BODY_SHOWN_MAX.saturating_sub(begun.len());
                begun.extend(input[at..][advance.body.clone()].iter().take(room));
                at += advance.consumed;
                if advance.done {
                    self.plain = input[at..].to_vec();
                    return Ok((reader.facts(), reader.head().to_vec(), begun));
                }
                if advance.consumed == 0 {
                    break;
                }
            }
            if reader.facts().body_bytes > BODY_MAX {
                return Ok((reader.facts(), reader.head().to_vec(), begun));
            }
            if self.ended {
                reader.end_of_input().map_err(|error| unreadable(error, &[]))?;
                return Ok((reader.facts(), reader.head().to_vec(), begun));
            }
            self.fill()?;
        }
    }

    /// Reads once, and notes when the stream has ended: by its end, or by TLS's close_notify.
    fn fill(&mut self) -> Result<(), CallTrouble> {
        self.limit()?;
        let mut buffer = [0; 16 << 10];
        let count = self.stream.read(&mut buffer).map_err(|error| self.silence(&error))?;
        match &mut self.session {
            Some(session) => {
                let fed = session.feed(&buffer[..count], &mut self.plain);
                self.ended |= session.closed();
                self.drain()?;
                fed.map_err(|error| CallTrouble::of(error, true))?;
            }
            None => self.plain.extend_from_slice(&buffer[..count]),
        }
        if self.patience.is_some() && !self.plain.is_empty() {
            self.patience = self.standstill();
        }
        self.ended |= count == 0;
        Ok(())
    }

    /// The limit of a standstill that begins now.
    fn standstill(&self) -> Option<(Nanos, FailureClass)> {
        self.progress.map(|span| (reactor::monotonic() + span, FailureClass::ProgressTimeout))
    }

    fn silence(&self, error: &std::io::Error) -> CallTrouble {
        let late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        let (class, text) = match self.patience {
            Some((at, class)) if late && at < self.deadline => (class, class.explain().to_owned()),
            _ if late => (FailureClass::ClientTimeout, "no whole response in time".to_owned()),
            _ => (failure_class(error), error.to_string()),
        };
        CallTrouble { class, text, connected: true, way_out: None }
    }

    fn drain(&mut self) -> Result<(), CallTrouble> {
        let mut out = Vec::new();
        if let Some(session) = &mut self.session {
            session.drain(&mut out);
        }
        self.write(&out)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CallTrouble> {
        self.limit()?;
        self.stream.write_all(bytes).map_err(|error| self.silence(&error))
    }

    fn limit(&mut self) -> Result<(), CallTrouble> {
        let now = reactor::monotonic();
        let end = self.patience.map_or(self.deadline, |(at, _)| at.min(self.deadline));
        if now >= end {
            // bytes that never end keep every single read short
            return Err(self.silence(&ErrorKind::TimedOut.into()));
        }
        let left = Duration::from_nanos((end - now).0.max(1_000));
        self.stream.limit(left).map_err(|error| self.silence(&error))
    }
}

/// What a response says: `facts` are its status, the length of its content and its version.
fn told(
    template: &Template,
    (status, length, http_version): (u16, u64, String),
    head: &[u8],
    body: &[u8],
) -> (FirstCall, Leads) {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let redirect = redirect_method(status, &template.method).is_some();
    let location = fields::location(head).filter(|_| redirect);
    let location = location.and_then(|value| template.url().join(&text(value)).ok());
    let call = FirstCall {
        status,
        http_version,
        length,
        server: fields::find(head, "server").map(text),
        excerpt: Some(excerpt(head, body)),
        alt_svc: fields::find(head, "alt-svc").map(text),
        ..FirstCall::default()
    };
    let refused = (status == 401).then(|| head.to_vec());
    (call, Leads { location, refused })
}

/// The status line, some fields and the first bytes of the body, fit for one line. Cookies are left
/// out: they may be somebody's key.
fn excerpt(head: &[u8], body: &[u8]) -> String {
    let head = String::from_utf8_lossy(head);
    let secret = |line: &&str| line.to_ascii_lowercase().starts_with("set-cookie");
    let lines = head.lines().filter(|line| !line.is_empty() && !secret(line));
    let mut parts: Vec<String> = lines.take(FIELDS_SHOWN_MAX + 1).map(str::to_owned).collect();
    // coded bytes tell a reader nothing
    if !body.is_empty() && fields::find(head.as_bytes(), "content-encoding").is_none() {
        parts.push(String::from_utf8_lossy(body).split_whitespace().collect::<Vec<_>>().join(" "));
    }
    report::printable(&parts.join(" | "), EXCERPT_MAX)
}

/// `at`: the bytes at which the response could not be understood.
fn unreadable(error: ResponseError, at: &[u8]) -> CallTrouble {
    CallTrouble::from_exchange(misread(&error, at), true)
}
