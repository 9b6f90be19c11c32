//! The pages: from a request to a response.

use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use hyper::ext::Protocol;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode, Version};

use super::Common;
use super::body::{PageBody, Pieces, Upload};
use super::dynamic::DynamicPages;
use super::events::{EventText, Events};
use super::grpc;
use super::grpc_form::CallForm;
use super::model;
use super::raw::{RawKind, RawResponse};
use super::socket::SocketVisit;
use crate::Sleeping;
use crate::head::{SERVER, bodiless, unix_ms};
use crate::pattern;
use crate::route::{
    AUTH_PASSWORD, AUTH_TOKEN, AUTH_USER, BEARER, INVALID_CLIENT, NO_TOKEN, Refusal, Route,
    bearer_of, credentials, is_current, login_text, name_text, token_text,
};
use units::Nanos;
use websocket::handshake::ServerError;

/// Result of a request.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every response is a page")]
pub(super) enum SiteResponse {
    Page(Response<PageBody>),
    Raw(RawResponse),
    /// The stream is a WebSocket from here on (RFC 8441).
    Tunnel(Box<SocketVisit>),
}

const WELCOME: &str = include_str!("welcome.html");
pub(super) const TEXT: &str = "text/plain";
const JSON: &str = "application/json";
const BINARY: &str = "application/octet-stream";

/// Answers any request.
pub(super) async fn answer(request: Request<Upload>, common: &Common) -> SiteResponse {
    // hyper omits the content itself only in HTTP/1 (RFC 9110 section 9.3.2)
    let bare = request.method() == Method::HEAD && request.version() >= Version::HTTP_2;
    match answer_whole(request, common).await {
        // the fields stay as GET would have them, the length with them
        SiteResponse::Page(response) if bare => {
            SiteResponse::Page(response.map(|_| PageBody::Whole(Bytes::new())))
        }
        response => response,
    }
}

async fn answer_whole(request: Request<Upload>, common: &Common) -> SiteResponse {
    if let Some(form) = CallForm::new(&request) {
        return SiteResponse::Page(grpc::respond(request, form, common).await);
    }
    let found = match refused(&request, common) {
        Some(refusal) => Err(refusal),
        None => target_route(&request, common),
    };
    let route = match found {
        Ok(Route::Welcome) if common.hello => Route::Hello,
        Err(refusal) if common.hello && refusal.status == 404 => Route::Hello,
        Ok(route) => route,
        Err(refusal) => return SiteResponse::Page(refuse(&refusal)),
    };
    if request.method() == Method::OPTIONS {
        let response = page_of(StatusCode::NO_CONTENT, None, PageBody::Whole(Bytes::new()));
        return SiteResponse::Page(with(response, header::ALLOW, route.allow()));
    }
    if let Some(protocol) = request.extensions().get::<Protocol>() {
        return tunnel(&route, protocol, &request, common);
    }
    if !route.allows(request.method().as_str()) {
        let text = format!(
            "{} is not allowed for this page; it takes {}.\n",
            request.method(),
            route.allow()
        );
        let response = refuse(&Refusal { status: 405, text });
        return SiteResponse::Page(with(response, header::ALLOW, route.allow()));
    }
    if let Route::Socket(plan) = &route
        && let Err(error) = SocketVisit::new(&request, plan)
    {
        return SiteResponse::Page(no_socket(error));
    }
    if let Some(raw) = by_hand(&route, &request) {
        return SiteResponse::Raw(raw);
    }
    SiteResponse::Page(page(route, request, common).await)
}

/// Responds to an extended CONNECT (RFC 8441 section 4).
fn tunnel(
    route: &Route,
    protocol: &Protocol,
    request: &Request<Upload>,
    common: &Common,
) -> SiteResponse {
    if protocol.as_str() != "websocket" {
        let text =
            format!("Streams of {} are not supported; only websocket is.\n", protocol.as_str());
        return SiteResponse::Page(refuse(&Refusal { status: 501, text }));
    }
    let Route::Socket(plan) = route else {
        let text = "This page is not a WebSocket; /ws is.\n".to_owned();
        return SiteResponse::Page(refuse(&Refusal { status: 404, text }));
    };
    match SocketVisit::for_tunnel(request, plan, common.next_tunnel()) {
        Ok(visit) => SiteResponse::Tunnel(Box::new(visit)),
        Err(error) => SiteResponse::Page(no_socket(error)),
    }
}

/// Returns the response to an invalid request for a WebSocket (RFC 6455 section 4.4).
fn no_socket(error: ServerError) -> Response<PageBody> {
    let text =
        "This page is a WebSocket: request it with Upgrade: websocket and version 13.\n".to_owned();
    let status = match error {
        ServerError::BadRequest => 400,
        ServerError::Version => 426,
    };
    let response = with(refuse(&Refusal { status, text }), header::SEC_WEBSOCKET_VERSION, "13");
    with(response, header::UPGRADE, "websocket")
}

/// Returns the page for `OPTIONS *`, which concerns the whole server (RFC 9110 §9.3.7): the page
/// with the most methods represents it.
fn target_route(request: &Request<Upload>, common: &Common) -> Result<Route, Refusal> {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    if target == "*" && request.method() == Method::OPTIONS {
        return Ok(Route::Echo { head_only: false });
    }
    let path = request.uri().path().strip_prefix('/').unwrap_or_default();
    match (&common.files, &common.dynamic) {
        (Some(files), _) if files.find(path).is_some() => Ok(Route::File(path.to_owned())),
        (_, Some(_)) if DynamicPages::path(path).is_some() => Ok(Route::Dynamic(path.to_owned())),
        _ => Route::parse(target),
    }
}

/// Returns whether the text is `host [":" port]` without a user (RFC 9110 §7.2), or empty, as for a
/// target without an authority.
fn names_a_host(value: &HeaderValue) -> bool {
    let Ok(text) = value.to_str() else { return false };
    if text.is_empty() {
        return true;
    }
    let port = text.rsplit_once(':').map_or("", |(_, port)| port);
    let digits = port.ends_with(']') || port.bytes().all(|byte| byte.is_ascii_digit());
    text.parse::<Authority>().is_ok_and(|authority| !authority.as_str().contains('@')) && digits
}

/// Returns the error in a request independent of its target.
fn refused(request: &Request<Upload>, common: &Common) -> Option<Refusal> {
    // RFC 9112 §3.2: one Host field, exactly, from HTTP/1.1 on
    let hosts: Vec<&HeaderValue> = request.headers().get_all(header::HOST).iter().collect();
    let right = match hosts.as_slice() {
        [] => request.version() != Version::HTTP_11,
        [host] => names_a_host(host),
        _ => false,
    };
    if !right {
        let text = "An HTTP/1.1 request needs one Host field that names a host.\n".to_owned();
        return Some(Refusal { status: 400, text });
    }
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target as u64 > common.uri_max {
        let text = format!("The URI is longer than the limit of {} bytes.\n", common.uri_max);
        return Some(Refusal { status: 414, text });
    }
    if request.body().size_hint().lower() > common.body_max {
        return Some(too_large(common));
    }
    None
}

fn too_large(common: &Common) -> Refusal {
    let text = format!("The body is longer than the limit of {} bytes.\n", common.body_max);
    Refusal { status: 413, text }
}

/// Returns the responses that hyper would not write, if the request allows them: HTTP/1.0 has
/// neither interim responses nor chunks, and an unread body would interfere.
fn by_hand(route: &Route, request: &Request<Upload>) -> Option<RawResponse> {
    if request.version() != Version::HTTP_11 || !request.body().is_end_stream() {
        return None;
    }
    let kind = match *route {
        Route::Socket(ref plan) => RawKind::Socket(Box::new(SocketVisit::new(request, plan).ok()?)),
        Route::Close(len) => RawKind::Close { len },
        Route::Chunked { len, pieces, trailer: true } => RawKind::Trailer { len, pieces },
        Route::Status { code: code @ 100..=199, .. } => RawKind::Interim { code },
        _ => return None,
    };
    let ends =
        matches!(kind, RawKind::Close { .. } | RawKind::Interim { code: 101 } | RawKind::Socket(_));
    Some(RawResponse {
        head_only: request.method() == Method::HEAD,
        keep: !ends && !asks_to_close(request.headers()),
        kind,
    })
}

fn asks_to_close(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).iter();
    let mut tokens =
        values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    tokens.any(|token| token.trim().eq_ignore_ascii_case("close"))
}

async fn page(route: Route, request: Request<Upload>, common: &Common) -> Response<PageBody> {
    match route {
        // a good upgrade was answered before
        Route::Socket(_) => no_socket(ServerError::BadRequest),
        Route::Welcome => ok("text/html; charset=utf-8", WELCOME),
        Route::Hello => ok(TEXT, "hello world"),
        Route::Sleep { seconds, span } => {
            let span = std::time::Duration::from_nanos(span.0);
            match common.sleeping {
                Sleeping::Parallel => tokio::time::sleep(span).await,
                Sleeping::OneAtATime => {
                    let _bed = common.bed.lock().await;
                    tokio::time::sleep(span).await;
                }
            }
            ok(TEXT, format!("Slept for {seconds} seconds"))
        }
        Route::Timed(span) => timed(span).await,
        Route::Bytes(len) => {
            page_of(StatusCode::OK, Some(BINARY), PageBody::Pattern { position: 0, len })
        }
        Route::Status { code, to } => status(code, &to),
        Route::Echo { head_only: true } => ok(TEXT, head_text(&request)),
        Route::Echo { head_only: false } => echo(request, common).await,
        Route::Chunked { len, pieces, .. } => {
            page_of(StatusCode::OK, Some(BINARY), PageBody::Pieces(Pieces::new(len, pieces)))
        }
        // only to HTTP/1.0, where a body of unknown length ends with the connection
        Route::Close(len) => {
            let pieces = len.div_ceil(pattern::BLOCK_LEN as u64);
            let body = PageBody::Pieces(Pieces::new(len, pieces));
            let response = page_of(StatusCode::OK, Some(TEXT), body);
            with(response, header::CONNECTION, "close")
        }
        Route::Cookie { set } => cookie(request.headers(), set.as_deref()),
        Route::Gzip(len) => gzip(len),
        Route::Events(plan) => {
            let kind = if plan.lines { "application/x-ndjson" } else { "text/event-stream" };
            page_of(
                StatusCode::OK,
                Some(kind),
                PageBody::Events(Events::new(plan, EventText::Numbers)),
            )
        }
        Route::Model(page) => model::respond(page, request, common).await,
        Route::Auth => auth(request.headers()),
        Route::Digest(target) => digest(request.method(), request.headers(), &target),
        Route::Login { name } => ok(JSON, login_text(&name)),
        Route::Token(lifetime) => token(request.headers(), lifetime),
        Route::Me => identity_page(request.headers()),
        Route::Redirect(0) => ok(TEXT, "Arrived.\n"),
        Route::Redirect(hops) => status(302, &format!("/redirect/{}", hops - 1)),
        Route::File(path) => file(&path, common),
        Route::Dynamic(path) => match (&common.dynamic, DynamicPages::path(&path)) {
            (Some(pages), Some(path)) => pages.answer(path, request).await,
            _ => refuse(&Refusal { status: 404, text: "There is no such page here.\n".to_owned() }),
        },
    }
}

/// Returns a file of the set that is served.
fn file(path: &str, common: &Common) -> Response<PageBody> {
    let found = common.files.as_ref().and_then(|set| Some((set, set.find(path)?)));
    let Some((set, file)) = found else {
        return refuse(&Refusal { status: 404, text: "There is no such file.\n".to_owned() });
    };
    let kind = match path.rsplit_once('.') {
        Some((_, "html")) => "text/html",
        Some((_, "txt")) => TEXT,
        Some((_, "gif")) => "image/gif",
        _ => BINARY,
    };
    let body = PageBody::File { content: set.content(file), position: 0, len: file.size };
    page_of(StatusCode::OK, Some(kind), body)
}

/// Waits, and reports the requested and the actual wait.
async fn timed(span: Nanos) -> Response<PageBody> {
    let start = tokio::time::Instant::now();
    tokio::time::sleep(std::time::Duration::from_nanos(span.0)).await;
    let took = start.elapsed().as_secs_f64() * 1e3;
    let value = format!("asked;dur={}, took;dur={took:.3};desc=\"measured\"", span.as_millis_f64());
    with(ok(TEXT, "timed\n"), HeaderName::from_static("server-timing"), &value)
}

fn status(code: u16, to: &str) -> Response<PageBody> {
    let code = match StatusCode::from_u16(code) {
        // only for HTTP/1.0, which knows no interim responses
        Ok(code) if code.is_informational() => return ok(TEXT, "after an interim response\n"),
        Ok(code) => code,
        Err(_) => return refuse(&Refusal { status: 400, text: "No such status.\n".to_owned() }),
    };
    // 205 has an empty body (RFC 9110 §15.3.6)
    let empty = bodiless(code.as_u16()) || code == StatusCode::RESET_CONTENT;
    let text = match empty {
        true => String::new(),
        false if code.is_redirection() => format!("{}: see {to}\n", code.as_str()),
        false => format!("{} {}\n", code.as_str(), code.canonical_reason().unwrap_or("")),
    };
    let kind = (!empty).then_some(TEXT);
    let response = page_of(code, kind, PageBody::Whole(text.into()));
    if code.is_redirection() { with(response, header::LOCATION, to) } else { response }
}

/// Echoes the request's body. With a known length it streams; otherwise the body is read first,
/// within bounds, so that a body that is too long gets a 413.
async fn echo(request: Request<Upload>, common: &Common) -> Response<PageBody> {
    let (head, mut incoming) = request.into_parts();
    let kind = head.headers.get(header::CONTENT_TYPE).cloned();
    let body = if incoming.size_hint().exact().is_some() {
        PageBody::Echo(incoming)
    } else {
        let mut held = common.hold();
        while let Some(frame) = incoming.frame().await {
            let Ok(frame) = frame else {
                let text = "The body is incomplete or malformed.\n".to_owned();
                return refuse(&Refusal { status: 400, text });
            };
            let Ok(data) = frame.into_data() else { continue };
            if held.len() + data.len() as u64 > common.body_max {
                return refuse(&too_large(common));
            }
            if !held.push(&data) {
                let text = "The bodies that are held at once are too long.\n".to_owned();
                return refuse(&Refusal { status: 503, text });
            }
        }
        PageBody::Held(held)
    };
    let mut response = page_of(StatusCode::OK, None, body);
    let kind = kind.unwrap_or_else(|| HeaderValue::from_static(BINARY));
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Returns the request's head as text; names in lower case, in order of first occurrence.
fn head_text(request: &Request<Upload>) -> Vec<u8> {
    let line = format!("{} {} {:?}\n", request.method(), request.uri(), request.version());
    let mut text = line.into_bytes();
    for (name, value) in request.headers() {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.push(b'\n');
    }
    text
}

fn cookie(headers: &HeaderMap, set: Option<&str>) -> Response<PageBody> {
    if let Some(set) = set {
        return with(ok(TEXT, format!("Set: {set}\n")), header::SET_COOKIE, set);
    }
    let mut text = Vec::new();
    for value in headers.get_all(header::COOKIE) {
        text.extend_from_slice(value.as_bytes());
        text.push(b'\n');
    }
    if text.is_empty() {
        text.extend_from_slice(b"No cookie was sent.\n");
    }
    ok(TEXT, text)
}

fn gzip(len: u64) -> Response<PageBody> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut position = 0;
    while position < len {
        let slice = pattern::slice(position, len - position);
        if std::io::Write::write_all(&mut encoder, slice).is_err() {
            break;
        }
        position += slice.len() as u64;
    }
    match encoder.finish() {
        Ok(packed) => with(ok(TEXT, packed), header::CONTENT_ENCODING, "gzip"),
        Err(_) => refuse(&Refusal { status: 500, text: "Packing failed.\n".to_owned() }),
    }
}

/// Returns the Authorization field of a request.
fn authorization(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()
}

/// Returns a token for the client of the page of Basic authentication.
fn token(headers: &HeaderMap, lifetime: Nanos) -> Response<PageBody> {
    let login = authorization(headers).and_then(|field| credentials(field, "basic"));
    if login == Some(AUTH_TOKEN) {
        return ok(JSON, token_text(lifetime, unix_ms()));
    }
    let body = PageBody::Whole(Bytes::from_static(INVALID_CLIENT.as_bytes()));
    let response = page_of(StatusCode::UNAUTHORIZED, Some(JSON), body);
    with(response, header::WWW_AUTHENTICATE, "Basic realm=\"loadstone site\"")
}

fn identity_page(headers: &HeaderMap) -> Response<PageBody> {
    match authorization(headers).and_then(bearer_of) {
        Some(name) if is_current(name, unix_ms()) => ok(JSON, name_text(name)),
        _ => {
            let response = refuse(&Refusal { status: 401, text: NO_TOKEN.to_owned() });
            with(response, header::WWW_AUTHENTICATE, BEARER)
        }
    }
}

fn auth(headers: &HeaderMap) -> Response<PageBody> {
    let login = authorization(headers).and_then(|field| credentials(field, "basic"));
    if login == Some(AUTH_TOKEN) {
        return ok(TEXT, "Welcome, fred.\n");
    }
    let text = "This page is for fred, whose password is flintstone.\n".to_owned();
    let response = refuse(&Refusal { status: 401, text });
    with(response, header::WWW_AUTHENTICATE, "Basic realm=\"loadstone site\"")
}

/// A challenge: its nonce never expires, because the site keeps no state of its users.
const DIGEST: &str =
    "Digest realm=\"loadstone site\", qop=\"auth\", algorithm=SHA-256, nonce=\"bG9hZHN0b25l\"";

fn digest(method: &Method, headers: &HeaderMap, target: &str) -> Response<PageBody> {
    let field = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let asked = protocol::login::digest::challenge([DIGEST.as_bytes()].into_iter());
    let right = asked.zip(field).is_some_and(|(asked, field)| {
        let request = (method.as_str(), target);
        protocol::login::digest::is_answered(&asked, field, request, (AUTH_USER, AUTH_PASSWORD))
    });
    if right {
        return ok(TEXT, "Welcome, fred.\n");
    }
    let text = "This page is for fred, whose password is flintstone.\n".to_owned();
    with(refuse(&Refusal { status: 401, text }), header::WWW_AUTHENTICATE, DIGEST)
}

pub(super) fn ok(kind: &'static str, body: impl Into<Bytes>) -> Response<PageBody> {
    page_of(StatusCode::OK, Some(kind), PageBody::Whole(body.into()))
}

pub(super) fn refuse(refusal: &Refusal) -> Response<PageBody> {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
    page_of(status, Some(TEXT), PageBody::Whole(refusal.text.clone().into()))
}

/// Returns the response to a request whose page a fault replaces.
pub(super) fn on_demand(status: u16) -> Response<PageBody> {
    refuse(&Refusal { status, text: format!("{status} on demand\n") })
}

/// Returns a response with the fields that all responses have. The length is set here, because
/// hyper would not send 0 to a HEAD.
pub(super) fn page_of(
    status: StatusCode,
    kind: Option<&'static str>,
    body: PageBody,
) -> Response<PageBody> {
    let len = body.size_hint().exact().filter(|_| !bodiless(status.as_u16()));
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static(SERVER));
    if let Some(kind) = kind {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    if let Some(len) = len {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(len));
    }
    response
}

/// Adds a field; `value` is visible ASCII: a constant, or checked by the route's parser.
pub(super) fn with(
    mut response: Response<PageBody>,
    name: HeaderName,
    value: &str,
) -> Response<PageBody> {
    match HeaderValue::from_str(value) {
        Ok(value) => {
            response.headers_mut().insert(name, value);
            response
        }
        Err(_) => {
            refuse(&Refusal { status: 400, text: "Not to be put into a header.\n".to_owned() })
        }
    }
}
