//! The plain call before the run: checks that the server responds, and records an example of a good
//! response. It also selects one address if a name has several, and finds the hosts that redirects
//! lead to.

use crate::network::ConnectionKind;
use conduit::{Io, TlsFactory};
use engine::exchange::{
    Contact, Exchange, ExchangeError, ExchangeOutcome, Message, Request, ResponseLimits, Terms,
};
use engine::redirect::{self, Redirect, redirect_method};
use engine::{Endpoint, build_template, endpoint_key, open_options, proof};
use net::reactor::{Reactor, failure_class};
use ownstack::OwnNetwork;
use plan::{HttpVersion, Masker, Plan};
use protocol::grpc;
use protocol::http1::fields;
use record::run::FirstCall;
use sample::FailureClass;
use std::sync::Arc;
use units::Nanos;
use url::Url;
use workload::Template;

/// Result of a plain call.
#[derive(Debug)]
pub struct PlainCall {
    pub call: FirstCall,
    /// No connection, or no TLS on it, could be established.
    pub unreachable: bool,
    /// Target of the response's redirect.
    pub(crate) location: Option<Url>,
    /// Number of streams that the server allows on a connection, if the protocol has streams.
    pub(crate) streams_max: Option<u32>,
    /// A gRPC call to a method that the server does not implement.
    pub(crate) unimplemented: bool,
}

/// Target of a redirect.
#[derive(Default)]
struct RetryHints {
    /// Destination of a redirect.
    location: Option<Url>,
    /// The head of a response that requests a login.
    refused: Option<Vec<u8>>,
    unimplemented: bool,
}

/// Limits for the excerpt of a response: bytes of body, fields of the head, characters in total.
const BODY_SHOWN_MAX: usize = 120;
const FIELDS_SHOWN_MAX: usize = 4;
const EXCERPT_MAX: usize = 300;

/// Makes one call to `template` at its endpoint, and keeps only the address that answered. If the
/// server requests the plan's login, the call is made again with it.
pub(crate) fn make(
    plan: &Plan,
    endpoint: &mut Endpoint,
    tls: Option<&net::tls::Client>,
    own: Option<&Arc<OwnNetwork>>,
    template: &Template,
) -> PlainCall {
    let now = crate::wall_clock::unix_seconds() as u64;
    let signed = proof::first_proof(plan, template, now);
    let (found, refused) = call_once(plan, endpoint, tls, own, signed.as_ref().unwrap_or(template));
    match refused.and_then(|head| proof::answer_to(plan, template, &head)) {
        Some(answer) => call_once(plan, endpoint, tls, own, &answer).0,
        None => found,
    }
}

/// Opens a connection to an endpoint without a request, and keeps only the address that accepted
/// it.
pub(crate) fn connect(
    plan: &Plan,
    endpoint: &mut Endpoint,
    tls: Option<&net::tls::Client>,
    own: Option<&Arc<OwnNetwork>>,
) -> PlainCall {
    let start = net::reactor::monotonic();
    let (heard, contact) = exchange(plan, endpoint, tls, own, Message::Handshake, 0);
    let took = contact.at.unwrap_or_else(net::reactor::monotonic) - start;
    let trouble = heard.result.err().or_else(|| without_http2(plan, contact.agreed.as_deref()));
    let unreachable = trouble.is_some();
    let call = trouble.map(|trouble| failed(plan, trouble, &contact, endpoint));
    let call = FirstCall { took, ..call.unwrap_or_default() };
    PlainCall { call, unreachable, location: None, streams_max: None, unimplemented: false }
}

/// Returns the error of a TLS connection for HTTP/2 that negotiated another protocol.
fn without_http2(plan: &Plan, agreed: Option<&str>) -> Option<ExchangeError> {
    let agreed = agreed.filter(|name| *name != http2::ALPN)?;
    (plan.request.version == HttpVersion::Http2).then(|| {
        let chosen = if agreed.is_empty() { "no protocol" } else { agreed };
        let text = format!("the server chose {chosen} where HTTP/2 (ALPN h2) was offered");
        ExchangeError::new(FailureClass::Tls, text)
    })
}

/// Makes one call; returns the head of a response that requests a login.
fn call_once(
    plan: &Plan,
    endpoint: &mut Endpoint,
    tls: Option<&net::tls::Client>,
    own: Option<&Arc<OwnNetwork>>,
    template: &Template,
) -> (PlainCall, Option<Vec<u8>>) {
    let start = net::reactor::monotonic();
    let message = Message::new(template.clone(), None);
    let (heard, contact) = exchange(plan, endpoint, tls, own, message, BODY_SHOWN_MAX);
    // closing the connection is not part of the call
    let took = contact.at.unwrap_or_else(net::reactor::monotonic) - start;
    // a response that violates the protocol cannot be measured
    let broken = |trouble: &ExchangeError| trouble.class == FailureClass::Protocol;
    let unreachable = !heard.connected || heard.result.as_ref().is_err_and(broken);
    let (call, leads) = match heard.result {
        Ok(reply) => {
            let version = match plan.request.version {
                HttpVersion::Http3 => "3".to_owned(),
                HttpVersion::Http2 => "2".to_owned(),
                _ => format!("1.{}", reply.facts.minor_version),
            };
            let facts = (reply.facts.status, reply.facts.body_bytes, version);
            first_call_text(plan, template, facts, &reply.head, &reply.body)
        }
        Err(trouble) => (failed(plan, trouble, &contact, endpoint), RetryHints::default()),
    };
    let streams_max = contact.streams_max.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
    let call = FirstCall { took, ..call };
    let RetryHints { location, refused, unimplemented } = leads;
    (PlainCall { call, unreachable, location, streams_max, unimplemented }, refused)
}

/// Returns a call without a usable response.
fn failed(
    plan: &Plan,
    trouble: ExchangeError,
    contact: &Contact,
    endpoint: &Endpoint,
) -> FirstCall {
    let over_quic = plan.request.version == HttpVersion::Http3;
    let ExchangeError { class, text, fix_text } = trouble;
    let peer = contact.peer.as_ref().or(endpoint.peers.last()).filter(|_| over_quic);
    let text = match peer {
        Some(peer) => named(class, text, &peer.to_string()),
        None => text,
    };
    let refused = matches!(class, FailureClass::Refused | FailureClass::Unreachable);
    if refused && plan.connection.proxy.is_some() {
        let text = format!("the proxy cannot be reached: {text}");
        let fix_text = Some("Start the proxy, or correct --proxy.".to_owned());
        return FirstCall { failure: Some((class, text)), fix_text, ..FirstCall::default() };
    }
    let failure = Some((class, text));
    FirstCall { failure, fix_text: fix_text.map(str::to_owned), ..FirstCall::default() }
}

/// Errors of a QUIC connection are reported with its address; errors of a stream are not.
fn named(class: FailureClass, text: String, peer: &str) -> String {
    match class {
        FailureClass::Protocol | FailureClass::StreamReset | FailureClass::StreamRefused => text,
        _ if text.starts_with(peer) => text,
        _ => format!("{peer}: {text}"),
    }
}

/// Performs one exchange with an endpoint over the plan's transport, and keeps only the address
/// that accepted the connection. `kept` bytes of the response's content are kept.
pub(super) fn exchange(
    plan: &Plan,
    endpoint: &mut Endpoint,
    tls: Option<&net::tls::Client>,
    own: Option<&Arc<OwnNetwork>>,
    message: Message,
    kept: usize,
) -> (ExchangeOutcome, Contact) {
    let over_http2 = matches!(message, Message::Http2 { .. });
    let request = Request {
        peers: endpoint.peers.clone(),
        tls_name: endpoint.tls_name.clone(),
        tunnel: endpoint.tunnel.clone(),
        message,
        timeout: plan.timeouts.call,
    };
    let mut factory = tls.map(net::tls::Client::factory);
    let factory = factory.as_mut().map(|factory| factory as &mut dyn TlsFactory);
    let (http1, http2) = if over_http2 { (None, factory) } else { (factory, None) };
    let machine = Exchange::new(vec![request], plan.timeouts.connect, http1).http2_over(http2);
    let done = over_connections_of(plan, tls, own, machine, kept);
    let (heard, contact) = done.unwrap_or_else(|error| {
        let trouble = ExchangeError::new(failure_class(&error), error.to_string());
        (ExchangeOutcome::nothing(trouble), Contact::default())
    });
    if let Some(peer) = &contact.peer {
        endpoint.peers = vec![peer.clone()];
    }
    (heard, contact)
}

/// Performs the exchange over the plan's kind of connection: QUIC, our own TCP, or the kernel's
/// sockets.
fn over_connections_of(
    plan: &Plan,
    tls: Option<&net::tls::Client>,
    own: Option<&Arc<OwnNetwork>>,
    machine: Exchange<'_>,
    kept: usize,
) -> std::io::Result<(ExchangeOutcome, Contact)> {
    let mut terms = terms(plan, kept);
    if let Some(own) = own {
        let mut io = own.caller(plan.seed)?;
        terms.options.bind = Some(io.first_address());
        let machine = machine.with_terms(terms);
        let done = match ConnectionKind::new(plan, tls) {
            ConnectionKind::Shared(shared) => drive(machine, &mut shared.wrap(&mut io)),
            _ => drive(machine, &mut io),
        };
        io.finish_connections();
        return Ok(done);
    }
    let mut io = Reactor::new(Nanos::ZERO)?;
    let machine = machine.with_terms(terms);
    Ok(match ConnectionKind::new(plan, tls) {
        ConnectionKind::Quic(carrier) => drive(machine, &mut carrier.wrap(io)),
        ConnectionKind::Shared(shared) => drive(machine, &mut shared.wrap(io)),
        ConnectionKind::SharedQuic(shared, carrier) => {
            drive(machine, &mut shared.wrap(carrier.wrap(io)))
        }
        ConnectionKind::Tcp | ConnectionKind::SlowReads(_) => drive(machine, &mut io),
    })
}

/// Returns the form of the response to the first target's gRPC call, and the limits of its messages.
fn message_limits(plan: &Plan) -> Option<(grpc::BodyForm, grpc::MessageLimits)> {
    let limits = Some(plan.grpc.response_limits()).filter(|_| plan.is_grpc())?;
    let is_limited = limits != grpc::MessageLimits::default();
    Some((*plan.grpc_forms().first()?, limits)).filter(|_| is_limited)
}

fn terms(plan: &Plan, kept: usize) -> Terms {
    let limits = &plan.timeouts;
    Terms {
        options: open_options(plan, 0),
        limits: ResponseLimits {
            first_byte: limits.first_byte,
            progress: limits.progress,
            answer: limits.answer,
            body_kept: Some(kept),
            head_max: plan.connection.head_max,
            linger: Nanos::ZERO,
            messages: message_limits(plan),
        },
    }
}

fn drive(mut machine: Exchange<'_>, io: &mut impl Io) -> (ExchangeOutcome, Contact) {
    machine.drive(io);
    let contact = machine.contact(0);
    let unasked = || ExchangeError::new(FailureClass::OtherIo, "nothing was asked".to_owned());
    (machine.finish().pop().unwrap_or_else(|| ExchangeOutcome::nothing(unasked())), contact)
}

/// Returns the protocol that the server chooses by ALPN, from a handshake without a request. The inner
/// option is `None` if it chose none, and the outer one if the handshake failed.
pub(crate) fn preference(
    plan: &Plan,
    endpoint: &mut Endpoint,
    tls: Option<&net::tls::Client>,
    own: Option<&Arc<OwnNetwork>>,
) -> Option<Option<String>> {
    let (heard, contact) = exchange(plan, endpoint, tls, own, Message::Handshake, 0);
    heard.result.ok()?;
    contact.agreed.map(|name| Some(name).filter(|name| !name.is_empty()))
}

/// Returns the destination of the first target's redirect, if its host is not known yet.
pub(crate) fn unknown_host(found: &PlainCall, plan: &Plan, endpoints: &[Endpoint]) -> Option<Url> {
    let url = found.location.clone().filter(|_| plan.request.follow_max > 0)?;
    // any other redirect is followed, and fails as a redirect without a usable target
    let negotiated = plan.request.version != HttpVersion::Http3 || url.scheme() == "https";
    if !negotiated
        || !matches!(url.scheme(), "http" | "https")
        || url.port() == Some(0)
        || !url.has_host()
    {
        return None;
    }
    let key = endpoint_key(&url);
    endpoints.iter().all(|endpoint| endpoint.key != key).then_some(url)
}

/// Returns the request after a redirect of `from`: a GET, without the credentials of another
/// server.
pub(crate) fn redirected(
    plan: &Plan,
    from: &Template,
    url: &Url,
    (endpoint, absolute): (u32, bool),
) -> Option<Template> {
    let (headers, body) = (&[][..], None);
    Redirect { from, url, method: "GET", headers, body, endpoint, absolute }.build(plan).ok()
}

/// Returns a GET with the fields and the login of the plan.
pub(crate) fn request_for(plan: &Plan, url: &Url, row: u32, absolute: bool) -> Option<Template> {
    build_template(plan, url, "GET", &[], None, row, absolute).ok()
}

/// Describes a response: `facts` are its status, the length of its content and its version.
fn first_call_text(
    plan: &Plan,
    template: &Template,
    (status, length, http_version): (u16, u64, String),
    head: &[u8],
    body: &[u8],
) -> (FirstCall, RetryHints) {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let redirect = redirect_method(status, &template.method).is_some();
    let location = fields::location(head).filter(|_| redirect);
    let location = location.and_then(|value| redirect::location(template.url(), value));
    let mut secrets = Masker::new(plan);
    secrets.add_request(&template.last);
    let call = FirstCall {
        status,
        http_version,
        length,
        server: fields::find(head, "server").map(text),
        excerpt: Some(excerpt(head, body, &secrets)),
        alt_svc: fields::find(head, "alt-svc").map(text),
        ..FirstCall::default()
    };
    let refused = (status == 401).then(|| head.to_vec());
    let unimplemented =
        plan.is_grpc() && grpc::status_of(status, head, &[]).code == grpc::Code::Unimplemented;
    (call, RetryHints { location, refused, unimplemented })
}

/// Formats the status line, some fields and the first bytes of the body on one line, masked.
/// Cookies are omitted: they may be credentials.
fn excerpt(head: &[u8], body: &[u8], secrets: &Masker) -> String {
    let head = String::from_utf8_lossy(head);
    let secret = |line: &&str| line.to_ascii_lowercase().starts_with("set-cookie");
    let lines = head.lines().filter(|line| !line.is_empty() && !secret(line));
    let lines = lines.take(FIELDS_SHOWN_MAX + 1).map(|line| secrets.field(line));
    let mut parts: Vec<String> = lines.collect();
    // encoded bytes are useless to a reader
    if !body.is_empty() && fields::find(head.as_bytes(), "content-encoding").is_none() {
        let text = secrets.text(&String::from_utf8_lossy(body));
        parts.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    record::words::printable(&parts.join(" | "), EXCERPT_MAX)
}
