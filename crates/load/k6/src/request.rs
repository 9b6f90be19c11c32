//! Requests of k6/http: their redirects, cookies, logins and values.

use crate::buffer::view;
use crate::call::{Headers, HttpReply, REQUEST_TIMEOUT, WireRequest};
use crate::context::Context;
use crate::metrics::row;
use crate::options::{HttpDebug, Options};
use percent_encoding::percent_decode_str;
use protocol::http1::coding::Decoder;
use protocol::http1::fields;
use protocol::login::digest as login;
use rquickjs::{Array, ArrayBuffer, Object, Result, Value};
use sample::{FailureClass, Sample};
use std::borrow::Cow;
use std::sync::Arc;
use units::Nanos;
use url::Url;
use workload::SOCKET_KEY_MARK;

/// k6's error codes for an invalid URL, and for an address or a name that the options exclude.
pub(crate) const INVALID_URL: u32 = 1020;
const BLACKLISTED_ADDRESS: u32 = 1110;
const BLOCKED_HOST: u32 = 1111;

/// Request made by the script.
#[derive(Debug, Default)]
pub(crate) struct HttpCall {
    method: Cow<'static, str>,
    pub(crate) url: String,
    pub(crate) body: Vec<u8>,
    /// True if the body is a text of the script.
    pub(crate) is_text: bool,
    headers: Vec<String>,
    cookies: Vec<String>,
    tags: Vec<String>,
    timeout_ms: f64,
    redirects: f64,
    pub(crate) response_type: String,
    /// Expected statuses; `None` if no response counts as failed.
    expected: Option<Cow<'static, [u32]>>,
    auth: String,
    compression: String,
    jar: i32,
    /// True if bodies are discarded unless the request asks for its body.
    pub(crate) discards: bool,
}

/// Methods of the script's functions.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
/// Pairs of first and last status that are expected unless the script names others.
const EXPECTED: &[u32] = &[200, 399];

/// Request as the script passes it: method, URL, body, names and values of tags, and an array of
/// the parameters that few requests have.
pub(crate) type CallParts<'js> = (
    rquickjs::String<'js>,
    rquickjs::String<'js>,
    Value<'js>,
    Option<Vec<String>>,
    Option<Array<'js>>,
);

impl HttpCall {
    /// Reads a request from an object with the parts as properties.
    pub(crate) fn new<'js>(made: &Object<'js>, context: &Context) -> Result<HttpCall> {
        let parts = (
            made.get("method")?,
            made.get("url")?,
            made.get("body")?,
            made.get("tags")?,
            made.get("more")?,
        );
        HttpCall::from_parts(parts, context)
    }

    pub(crate) fn from_parts(parts: CallParts<'_>, context: &Context) -> Result<HttpCall> {
        let (method, url, body, tags, more) = parts;
        let method = method.to_string()?;
        let known = METHODS.into_iter().find(|known| *known == method);
        let is_text = body.is_string();
        let body = match body.as_string() {
            Some(text) => text.to_string()?.into_bytes(),
            None => {
                ArrayBuffer::from_value(body).map_or_else(Vec::new, |data| view(&data).to_vec())
            }
        };
        let call = HttpCall {
            method: known.map_or(Cow::Owned(method), Cow::Borrowed),
            url: url.to_string()?,
            body,
            is_text,
            tags: tags.unwrap_or_default(),
            timeout_ms: -1.0,
            redirects: -1.0,
            expected: Some(Cow::Borrowed(EXPECTED)),
            jar: -1,
            discards: context.program.options().is_some_and(|it| it.discard_bodies),
            ..HttpCall::default()
        };
        match more {
            Some(more) => call.with_params(&more),
            None => Ok(call),
        }
    }

    /// Adds the parameters that few requests have, in the order in which the script passes them.
    fn with_params(self, more: &Array<'_>) -> Result<HttpCall> {
        Ok(HttpCall {
            headers: more.get(0)?,
            cookies: more.get(1)?,
            timeout_ms: more.get(2)?,
            redirects: more.get(3)?,
            response_type: more.get(4)?,
            expected: more.get::<Option<Vec<u32>>>(5)?.map(Cow::Owned),
            auth: more.get(6)?,
            compression: more.get(7)?,
            jar: more.get(8)?,
            ..self
        })
    }

    fn timeout(&self) -> Nanos {
        if self.timeout_ms < 0.0 {
            return REQUEST_TIMEOUT;
        }
        Nanos::from_secs_f64(self.timeout_ms / 1e3)
    }

    fn is_expected(&self, status: u16) -> bool {
        let Some(list) = &self.expected else { return true };
        list.chunks_exact(2).any(|pair| (pair[0]..=pair[1]).contains(&u32::from(status)))
    }
}

/// A request in progress, from hop to hop.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) method: Cow<'static, str>,
    pub(crate) url: Arc<Url>,
    body: Vec<u8>,
    headers: Vec<(String, String)>,
    authorization: Option<String>,
}

/// Request with its redirects.
#[derive(Debug)]
pub(crate) struct RequestChain {
    pub(crate) ask: HttpCall,
    /// Next request; `None` if its URL cannot be used.
    pub(crate) hop: Option<Hop>,
    /// Group in which the request began.
    pub(crate) group: String,
    /// Maximum number of redirects, and those followed.
    pub(crate) most: u32,
    pub(crate) hops: u32,
    /// True if it has answered a challenge from the server.
    pub(crate) challenged: bool,
    /// Error and code of a request that the options do not allow.
    pub(crate) refusal: Option<(String, u32)>,
    /// Fields of the last request.
    pub(crate) sent: Arc<Headers>,
    /// Method and URL before the first redirect.
    pub(crate) first: Option<[String; 2]>,
}

/// Finished request.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ask: HttpCall,
    pub(crate) seen: SeenResponse,
    pub(crate) hop: Hop,
    pub(crate) sent: Arc<Headers>,
    /// Method and URL of the request, if it was redirected.
    pub(crate) first: Option<[String; 2]>,
}

impl RequestChain {
    /// # Errors
    /// Fails for a header or a body that cannot be sent.
    pub(crate) fn new(
        context: &Context,
        ask: HttpCall,
    ) -> std::result::Result<RequestChain, String> {
        let url = crate::program::request_url(&ask.url);
        let most = match ask.redirects >= 0.0 {
            true => ask.redirects as u32,
            false => context.program.options().map_or(10, |it| it.max_redirects),
        };
        let hop = match url {
            Some(url) => Some(first_hop(&ask, url)?),
            None => None,
        };
        let group = context.group.borrow().clone();
        Ok(RequestChain {
            ask,
            hop,
            group,
            most,
            hops: 0,
            challenged: false,
            refusal: None,
            sent: Arc::default(),
            first: None,
        })
    }

    /// Returns the host of the next request.
    pub(crate) fn host(&self) -> String {
        let url = self.hop.as_ref().map(|hop| &hop.url);
        url.map_or_else(String::new, |url| {
            url[url::Position::BeforeHost..url::Position::AfterPort].to_owned()
        })
    }

    /// Returns the next request; `None` if nothing is sent, and an empty reply ends the work.
    pub(crate) fn wire(&mut self, context: &Context) -> Option<WireRequest> {
        let hop = self.hop.as_ref()?;
        let wire = wire_of(context, &self.ask, hop);
        self.sent.clone_from(&wire.headers);
        let Some(options) = context.program.options() else { return Some(wire) };
        if options.http_debug != HttpDebug::Nothing {
            let mut head = Vec::new();
            wire.render_head(&mut head);
            let shown = shown_message(&head, &wire.body, options.http_debug);
            context.program.log("info", "http-debug", format!("Request:\n{shown}"));
        }
        self.refusal = refusal(options, &hop.url);
        self.refusal.is_none().then_some(wire)
    }

    /// Processes the reply to a request; returns `None` if another request follows.
    pub(crate) fn take(&mut self, context: &Context, mut reply: HttpReply) -> Option<Finished> {
        let Some(hop) = self.hop.take() else { return Some(self.finish_bad_url()) };
        if reply.sample.done.is_zero() {
            reply.sample = blocked_sample(context.now());
        }
        let mut reply = SeenResponse::new(within(reply, self.ask.timeout()));
        self.explain(context, &hop, &mut reply);
        let group = context.group.replace(self.group.clone());
        reply.count(context, &self.ask, &hop);
        *context.group.borrow_mut() = group;
        absorb(context, &self.ask, &hop.url, &reply.head);
        if reply.is_challenge
            && !std::mem::replace(&mut self.challenged, true)
            && let Some(answer) = digest(context, &hop, &reply.head)
        {
            self.hop = Some(Hop { authorization: Some(answer), ..hop });
            return None;
        }
        let Some(next) = reply.redirect_target(&hop) else { return Some(self.finish(reply, hop)) };
        if self.hops == self.most {
            if self.most > 0 && self.ask.redirects < 0.0 {
                let text = format!(
                    "Stopped after {} redirects and returned the redirection; pass {{ redirects: n \
                     }} in request params or set global maxRedirects to silence this",
                    self.most
                );
                context.program.log("warning", "", text);
            }
            return Some(self.finish(reply, hop));
        }
        self.hops += 1;
        self.first.get_or_insert_with(|| [hop.method.to_string(), hop.url.to_string()]);
        self.hop = Some(next);
        None
    }

    /// Adds the facts that the response itself does not show: why its request was not sent, and
    /// whether it is the expected challenge of a login.
    fn explain(&mut self, context: &Context, hop: &Hop, reply: &mut SeenResponse) {
        let options = context.program.options();
        let not_found = reply.sample.class == Some(FailureClass::WorkloadEnd);
        let refused = options.filter(|_| not_found).and_then(|it| refusal(it, &hop.url));
        if let Some((why, code)) = self.refusal.take().or(refused) {
            (reply.error, reply.code) = (why, code);
        }
        reply.is_challenge = self.ask.auth == "digest" && !self.challenged && reply.status == 401;
        let debug = options.map_or(HttpDebug::Nothing, |it| it.http_debug);
        if debug != HttpDebug::Nothing && !reply.head.is_empty() {
            let shown = shown_message(&reply.head, &reply.body, debug);
            context.program.log("info", "http-debug", format!("Response:\n{shown}"));
        }
    }

    fn finish(&mut self, seen: SeenResponse, hop: Hop) -> Finished {
        let sent = std::mem::take(&mut self.sent);
        let (ask, first) = (std::mem::take(&mut self.ask), self.first.take());
        Finished { ask, seen, hop, sent, first }
    }

    /// Returns a response with an error and no value, for a URL that cannot be requested.
    fn finish_bad_url(&mut self) -> Finished {
        let error = format!("invalid URL: \"{}\"; write it like http://host/path", self.ask.url);
        let url = Url::parse("http://invalid.invalid/").expect("a constant URL is well formed");
        let method = self.ask.method.clone();
        let url = Arc::new(url);
        let hop = Hop { method, url, body: Vec::new(), headers: Vec::new(), authorization: None };
        let seen =
            SeenResponse { error, code: INVALID_URL, ..SeenResponse::new(HttpReply::default()) };
        self.finish(seen, hop)
    }
}

fn first_hop(ask: &HttpCall, url: Arc<Url>) -> std::result::Result<Hop, String> {
    let mut headers = Vec::new();
    for pair in ask.headers.chunks_exact(2) {
        let (name, value) = (canonical(&pair[0]), pair[1].trim().to_owned());
        let clean = name.bytes().all(|byte| byte > b' ' && byte != b':' && byte < 127);
        if !clean || name.is_empty() || value.contains(['\r', '\n', '\0']) {
            return Err(format!("invalid header \"{}\": \"{}\"", pair[0], pair[1]));
        }
        headers.retain(|(known, _)| *known != name);
        headers.push((name, value));
    }
    headers.sort();
    let mut body = ask.body.clone();
    for coding in ask.compression.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        body = crate::compress::compress(coding, &body)?;
        headers.push(("Content-Encoding".to_owned(), coding.to_owned()));
    }
    let mut authorization = None;
    if !url.username().is_empty() && matches!(ask.auth.as_str(), "" | "basic") {
        let login = |text: &str| percent_decoded(text);
        let pair = format!("{}:{}", login(url.username()), login(url.password().unwrap_or("")));
        let coded = crate::digest::base64_encode(pair.as_bytes(), "std")?;
        authorization = Some(format!("Basic {coded}"));
    }
    if ask.auth == "ntlm" {
        return Err("auth: 'ntlm' is not available; use basic or digest".to_owned());
    }
    Ok(Hop { method: ask.method.clone(), url, body, headers, authorization })
}

fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Writes a header's name like Go: `content-type` becomes `Content-Type`.
fn canonical(name: &str) -> String {
    let mut start = true;
    let letters = name.chars().map(|letter| {
        let made = if start { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() };
        start = letter == '-';
        made
    });
    letters.collect()
}

/// Returns the response to a Digest challenge.
fn digest(context: &Context, hop: &Hop, head: &[u8]) -> Option<String> {
    let challenge = login::challenge(fields::all(head, "www-authenticate"))?;
    let cnonce = format!("{:016x}", context.random().next_u64());
    let user = percent_decoded(hop.url.username());
    let password = percent_decoded(hop.url.password().unwrap_or_default());
    let mut answers = login::Answers::new(challenge, &user, &password, cnonce);
    let target = &hop.url[url::Position::BeforePath..url::Position::AfterQuery];
    Some(answers.authorization(&hop.method, target))
}

fn jar_of(ask: &HttpCall) -> usize {
    usize::try_from(ask.jar).unwrap_or(0)
}

fn absorb(context: &Context, ask: &HttpCall, url: &Url, head: &[u8]) {
    if let Some(jar) = context.jars.borrow_mut().get_mut(jar_of(ask)) {
        for value in fields::set_cookies(head) {
            jar.absorb(url, value);
        }
    }
}

/// Replaces the scheme of a URL by http or https.
fn as_http(url: &Url) -> Cow<'_, Url> {
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return Cow::Borrowed(url),
    };
    let text = format!("{scheme}{}", &url[url::Position::AfterScheme..]);
    Url::parse(&text).map_or(Cow::Borrowed(url), Cow::Owned)
}

/// Returns names and values of a Cookie field, in turn.
pub(crate) fn pairs(header: Option<String>) -> Vec<String> {
    let header = header.unwrap_or_default();
    let all = header.split("; ").filter_map(|pair| pair.split_once('='));
    all.flat_map(|(name, value)| [name.to_owned(), value.to_owned()]).collect()
}

/// Returns the Cookie field: cookies of the jar, with those of the request.
fn cookies(context: &Context, ask: &HttpCall, url: &Url) -> Option<String> {
    let jars = context.jars.borrow();
    let jar = jars.get(jar_of(ask)).filter(|jar| jar.is_used());
    if jar.is_none() && ask.cookies.is_empty() {
        return None;
    }
    // a WebSocket uses the cookies of the HTTP server of its URL (RFC 6265 section 5.4)
    let jar = jar.and_then(|jar| jar.header(&as_http(url)));
    let mut all: Vec<String> = Vec::new();
    for own in ask.cookies.chunks_exact(3) {
        all.push(format!("{}={}", own[0], own[1]));
    }
    for pair in pairs(jar).chunks_exact(2) {
        let replaced =
            ask.cookies.chunks_exact(3).any(|own| own[0] == pair[0] && !own[2].is_empty());
        if !replaced {
            all.push(format!("{}={}", pair[0], pair[1]));
        }
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// Returns a request that opens a WebSocket at a `ws` or `wss` URL.
///
/// # Errors
/// Fails if the request is invalid; the text states why.
pub(crate) fn upgrade(
    context: &Context,
    ask: &HttpCall,
) -> std::result::Result<WireRequest, String> {
    let wrong = || format!("invalid URL: \"{}\"; write it like ws://host/path", ask.url);
    let mut url = Url::parse(&ask.url).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "ws" | "wss") || url.host_str().is_none() {
        return Err(wrong());
    }
    url.set_fragment(None);
    let mut wire = wire_of(context, ask, &first_hop(ask, Arc::new(url))?);
    let fields = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", SOCKET_KEY_MARK),
    ];
    Arc::make_mut(&mut wire.headers)
        .extend(fields.map(|(name, value)| (name.to_owned(), value.to_owned())));
    Ok(wire)
}

/// Returns the request of a hop in the form that is sent.
fn wire_of(context: &Context, ask: &HttpCall, hop: &Hop) -> WireRequest {
    let cookies = cookies(context, ask, &hop.url);
    let is_plain = hop.headers.is_empty()
        && hop.authorization.is_none()
        && cookies.is_none()
        && hop.body.is_empty();
    let headers = match is_plain {
        true => context.plain_headers(&hop.method, &hop.url, || headers_of(context, hop, None)),
        false => Arc::new(headers_of(context, hop, cookies)),
    };
    WireRequest {
        method: hop.method.clone(),
        url: hop.url.clone(),
        headers,
        body: hop.body.clone(),
        name: name_of(&ask.tags),
        expected: ask.expected.clone(),
        timeout: Some(ask.timeout()),
        keeps_open: false,
    }
}

/// Returns the fields of a hop; `cookies`: those of its jar and of the request.
fn headers_of(context: &Context, hop: &Hop, cookies: Option<String>) -> Headers {
    let options = context.program.options();
    let given =
        |name: &str| hop.headers.iter().find(|(known, _)| known == name).map(|it| it.1.clone());
    let authority = &hop.url[url::Position::BeforeHost..url::Position::AfterPort];
    let mut headers =
        vec![("Host".to_owned(), given("Host").unwrap_or_else(|| authority.to_owned()))];
    let agent = options.map(|it| it.user_agent.clone()).unwrap_or_default();
    headers.push(("User-Agent".to_owned(), given("User-Agent").unwrap_or(agent)));
    let bodied = matches!(&*hop.method, "POST" | "PUT" | "PATCH");
    if bodied || !hop.body.is_empty() {
        headers.push(("Content-Length".to_owned(), hop.body.len().to_string()));
    }
    let own = ["Host", "User-Agent", "Content-Length", "Transfer-Encoding"];
    let rest = hop.headers.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    let mut rest: Vec<_> = rest.cloned().collect();
    if let Some(value) = hop.authorization.clone().filter(|_| given("Authorization").is_none()) {
        rest.push(("Authorization".to_owned(), value));
    }
    if let Some(mut value) = cookies {
        if let Some(place) = rest.iter().position(|(name, _)| name == "Cookie") {
            value = format!("{}; {value}", rest.remove(place).1);
        }
        rest.push(("Cookie".to_owned(), value));
    }
    rest.sort();
    headers.extend(rest);
    headers
}

/// Returns the error and code of a URL that `blockHostnames` or `blacklistIPs` excludes. Patterns
/// of names are exact, or like `*.example.com`.
fn refusal(options: &Options, url: &Url) -> Option<(String, u32)> {
    let host = url.host_str().unwrap_or_default();
    let blocks = |pattern: &&String| match pattern.strip_prefix('*') {
        Some(end) => host.ends_with(end),
        None => host == *pattern,
    };
    if let Some(pattern) = options.blocked_hosts.iter().find(blocks) {
        let text = format!("hostname ({host}) is in a blocked pattern ({pattern})");
        return Some((text, BLOCKED_HOST));
    }
    let port = url.port_or_known_default().unwrap_or_default();
    options.addresses.refusal(host, port).map(|why| (why, BLACKLISTED_ADDRESS))
}

/// Returns a message as `httpDebug` logs it.
fn shown_message(head: &[u8], body: &[u8], debug: HttpDebug) -> String {
    let head = String::from_utf8_lossy(head);
    match debug {
        HttpDebug::Full => format!("{}\n\n{}", head.trim_end(), String::from_utf8_lossy(body)),
        _ => head.trim_end().to_owned(),
    }
}

/// Returns the sample of a request to a host that the options block: it takes no time.
fn blocked_sample(now: Nanos) -> Sample {
    Sample { issued: now, sent: now, done: now, intended: now, admitted: now, ..Sample::default() }
}

/// Drops a reply after the time limit: the request counts as timed out.
fn within(mut reply: HttpReply, limit: Nanos) -> HttpReply {
    let sample = &mut reply.sample;
    let from = if sample.sent.is_zero() { sample.intended } else { sample.sent };
    if sample.done - from > limit && sample.status != 0 {
        sample.done = from + limit;
        sample.first_byte = Nanos::ZERO;
        sample.class = Some(FailureClass::ClientTimeout);
        (reply.head, reply.body) = (Vec::new(), Vec::new());
    }
    reply
}

/// Reply with the data that scripts and metric values need.
#[derive(Debug)]
pub(crate) struct SeenResponse {
    sample: Sample,
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) status: u16,
    pub(crate) proto: String,
    pub(crate) error: String,
    pub(crate) code: u32,
    /// True for the challenge to which a login responds; it counts as expected.
    is_challenge: bool,
}

impl SeenResponse {
    fn new(reply: HttpReply) -> SeenResponse {
        let HttpReply { sample, head, mut body, .. } = reply;
        let status = if head.is_empty() { 0 } else { sample.status };
        let (mut error, mut code) = failure(&sample, status);
        if let Some(encoding) = fields::content_encoding(&head).filter(|_| status != 0) {
            let mut plain = Vec::new();
            let decoded = Decoder::for_encoding(&encoding).is_some_and(|mut decoder| {
                decoder.push(&body, &mut plain).is_ok() && decoder.finish().is_ok()
            });
            if decoded {
                body = plain;
            } else if !body.is_empty() {
                (error, code) = ("cannot decompress the response".to_owned(), 1701);
            }
        }
        let proto = match head.iter().position(|byte| *byte == b' ') {
            Some(end) if status != 0 => String::from_utf8_lossy(&head[..end]).into_owned(),
            _ => String::new(),
        };
        SeenResponse { sample, head, body, status, proto, error, code, is_challenge: false }
    }

    /// Returns the phases in milliseconds: blocked, connecting, handshaking, sending, waiting,
    /// receiving.
    pub(crate) fn timings(&self) -> [f64; 6] {
        let it = &self.sample;
        let millis = |from: Nanos, to: Nanos| {
            if from.is_zero() || to <= from { 0.0 } else { (to - from).as_millis_f64() }
        };
        let connecting = it.connect.map_or(0.0, Nanos::as_millis_f64);
        let handshaking = it.tls.map_or(0.0, Nanos::as_millis_f64);
        let written = it.written.max(it.sent);
        let blocked = millis(it.intended, it.sent).max(connecting + handshaking);
        let answered = if it.first_byte.is_zero() { it.done } else { it.first_byte };
        [
            blocked,
            connecting,
            handshaking,
            millis(it.sent, written),
            millis(written, answered),
            millis(it.first_byte, it.done),
        ]
    }

    fn failed(&self, ask: &HttpCall) -> bool {
        self.status == 0 || !(self.is_challenge || ask.is_expected(self.status))
    }

    /// Adds the values of one hop.
    fn count(&self, context: &Context, ask: &HttpCall, hop: &Hop) {
        let [blocked, connecting, handshaking, sending, waiting, receiving] = self.timings();
        let failed = self.failed(ask);
        let tags = if context.wants_tags() { self.tags(context, ask, hop) } else { Vec::new() };
        let values = [
            (row::HTTP_REQS, 1.0),
            (row::HTTP_DURATION, sending + waiting + receiving),
            (row::HTTP_BLOCKED, blocked),
            (row::HTTP_CONNECTING, connecting),
            (row::HTTP_TLS, handshaking),
            (row::HTTP_SENDING, sending),
            (row::HTTP_WAITING, waiting),
            (row::HTTP_RECEIVING, receiving),
            (row::HTTP_FAILED, f64::from(u8::from(failed))),
        ];
        // without expected statuses, no request counts as failed
        let count = values.len() - usize::from(ask.expected.is_none());
        context.record_all(&values[..count], &tags);
        context.count_bytes(self.sample.bytes_sent, self.sample.bytes_received);
    }

    fn tags(&self, context: &Context, ask: &HttpCall, hop: &Hop) -> Vec<(String, String)> {
        let url = shown_url(&hop.url);
        let named = ask.tags.chunks_exact(2).any(|pair| pair[0] == "name");
        let mut system = vec![
            ("method", hop.method.to_string()),
            ("status", self.status.to_string()),
            ("url", if named { name_of(&ask.tags) } else { url.clone() }),
        ];
        if !named {
            system.push(("name", url));
        }
        if !self.proto.is_empty() {
            system.push(("proto", self.proto.clone()));
        }
        if ask.expected.is_some() {
            system.push(("expected_response", (!self.failed(ask)).to_string()));
        }
        if !self.error.is_empty() {
            system.push(("error", self.error.clone()));
        }
        if self.code != 0 {
            system.push(("error_code", self.code.to_string()));
        }
        let all = system.into_iter().filter(|(name, _)| context.wants_system_tag(name));
        let all = all.map(|(name, value)| (name.to_owned(), value));
        let own = ask.tags.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        context.all_tags(all.chain(own))
    }

    /// Returns the target of a redirect.
    fn redirect_target(&self, hop: &Hop) -> Option<Hop> {
        let keeps = match self.status {
            301..=303 => false,
            307 | 308 => true,
            _ => return None,
        };
        let location = fields::location(&self.head)?;
        let mut url = hop.url.join(std::str::from_utf8(location).ok()?).ok()?;
        url.set_fragment(None);
        let same_host = url.host_str() == hop.url.host_str();
        let mut headers = hop.headers.clone();
        headers
            .retain(|(name, _)| same_host || !matches!(name.as_str(), "Authorization" | "Cookie"));
        headers.retain(|(name, _)| name != "Host");
        let safe = hop.url.scheme() != "https" || url.scheme() == "https";
        if safe && !headers.iter().any(|(name, _)| name == "Referer") {
            headers.push(("Referer".to_owned(), shown_url(&hop.url)));
        }
        let mut method = hop.method.clone();
        let mut body = hop.body.clone();
        if !keeps {
            if method != "HEAD" {
                method = Cow::Borrowed("GET");
            }
            body.clear();
            headers
                .retain(|(name, _)| !matches!(name.as_str(), "Content-Type" | "Content-Encoding"));
        }
        let authorization = hop.authorization.clone().filter(|_| same_host);
        Some(Hop { method, url: Arc::new(url), body, headers, authorization })
    }
}

fn name_of(tags: &[String]) -> String {
    let found = tags.chunks_exact(2).find(|pair| pair[0] == "name");
    found.map(|pair| pair[1].clone()).unwrap_or_default()
}

/// Formats the URL with a masked user name and password.
fn shown_url(url: &Url) -> String {
    if url.username().is_empty() {
        return url.to_string();
    }
    let mut shown = url.clone();
    if shown.set_username("****").is_err() || shown.set_password(Some("****")).is_err() {
        return url.to_string();
    }
    shown.to_string()
}

pub(crate) fn flat_headers(head: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    for (name, value) in fields::fields(head) {
        all.push(canonical(&String::from_utf8_lossy(name)));
        all.push(String::from_utf8_lossy(value).into_owned());
    }
    all
}

/// Returns the text and the code of the error.
pub(crate) fn failure(sample: &Sample, status: u16) -> (String, u32) {
    if status >= 400 {
        return (String::new(), 1000 + u32::from(status));
    }
    if status != 0 {
        return (String::new(), 0);
    }
    use FailureClass as Class;
    let (text, code) = match sample.class {
        None => ("the request was not sent", 1000),
        Some(Class::Refused) => ("dial: connection refused", 1212),
        Some(Class::ConnectTimeout) => ("dial: i/o timeout", 1211),
        Some(Class::SocketTimeout | Class::Unreachable) => ("dial: no route to host", 1213),
        Some(
            Class::ClientTimeout
            | Class::FirstByteTimeout
            | Class::ProgressTimeout
            | Class::KeepaliveTimeout
            | Class::QueueTimeout,
        ) => ("request timeout", 1050),
        Some(Class::Reset) => ("read: connection reset by peer", 1220),
        Some(Class::ClosedEarly | Class::Truncated) => ("EOF", 1000),
        Some(Class::WorkloadEnd) => ("lookup: no such host", 1101),
        Some(Class::Certificate) => ("x509: certificate is not accepted", 1310),
        Some(Class::Tls) => ("tls: handshake failure", 1300),
        Some(Class::StreamReset | Class::StreamRefused) => ("stream error", 1630),
        Some(other) => (other.explain(), 1000),
    };
    (text.to_owned(), code)
}
