//! The client side: plain HTTP, TLS, and tunnels of a browser's proxy.

use crate::bodies::{BodyRoom, collect};
use crate::forward::{Upstream, forward, is_own};
use crate::{RecordedExchange, RecordedResponse, RecorderConfig};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::Acceptor;
use url::Url;

/// Maximum number of simultaneous connections.
const CONNECTIONS_MAX: usize = 1_000;
/// Maximum number of recorded exchanges, and of bytes in their bodies. `bodies` bounds bodies that
/// are not recorded yet.
const EXCHANGES_MAX: usize = 50_000;
const BYTES_MAX: usize = 512 << 20;
/// Maximum time for the first byte of a connection, for the head of a request, and between two
/// requests.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Maximum time for a TLS handshake with a client.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Maximum time for the body of a request.
const REQUEST_MAX: Duration = Duration::from_secs(120);
/// Maximum number of problems reported individually.
const PROBLEMS_MAX: usize = 100;

/// Path at which clients find the certificate of the authority.
const CERTIFICATE: &str = "/.loadstone/ca.pem";

/// State that all connections share.
#[derive(Debug)]
pub(crate) struct ProxyState {
    config: RecorderConfig,
    address: SocketAddr,
    exchanges: Mutex<Vec<RecordedExchange>>,
    bytes: Mutex<usize>,
    /// Bodies that are being received or sent.
    room: BodyRoom,
    troubles: Mutex<Vec<String>>,
}

impl ProxyState {
    pub(crate) fn new(config: RecorderConfig, address: SocketAddr) -> ProxyState {
        ProxyState {
            config,
            address,
            exchanges: Mutex::default(),
            bytes: Mutex::default(),
            room: BodyRoom::default(),
            troubles: Mutex::default(),
        }
    }

    pub(crate) fn exchanges(&self) -> MutexGuard<'_, Vec<RecordedExchange>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn upstream(&self) -> Upstream<'_> {
        Upstream { tls: &self.config.tls, room: &self.room }
    }

    pub(crate) fn take_troubles(&self) -> Vec<String> {
        std::mem::take(&mut *self.troubles.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn trouble(&self, text: String) {
        let mut all = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < PROBLEMS_MAX && !all.contains(&text) {
            all.push(text);
        }
    }

    fn keep(&self, exchange: RecordedExchange) {
        let answer = exchange.response.as_ref().map_or(0, |response| response.body.len());
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.exchanges();
        if all.len() >= EXCHANGES_MAX || *bytes + exchange.body.len() + answer > BYTES_MAX {
            let text = "the recording is full (50,000 exchanges, 512 MiB): later ones are left out";
            drop(all);
            return self.trouble(text.to_owned());
        }
        *bytes += exchange.body.len() + answer;
        all.push(exchange);
    }
}

/// The recorder as a client sees it: at the address that its Host field names.
#[derive(Clone, Debug)]
struct SeenOrigin(String);

impl SeenOrigin {
    fn new(request: &Request<Incoming>, shared: &ProxyState, side: &Entrance) -> SeenOrigin {
        let secure = matches!(side, Entrance::Front { secure: true });
        let scheme = if secure { "https" } else { "http" };
        let host = request.headers().get("host").and_then(|host| host.to_str().ok());
        let named = host.and_then(|host| Url::parse(&format!("{scheme}://{host}")).ok());
        // only a host and a port: neither a path nor a login
        let bare =
            |url: &Url| url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let named = named.filter(|url| url.has_host() && url.username().is_empty() && bare(url));
        SeenOrigin(match named {
            Some(url) => url.origin().ascii_serialization(),
            None => format!("{scheme}://{}", shared.address),
        })
    }
}

/// Destination of requests that name no server, by the connection they arrive on.
#[derive(Clone, Debug)]
enum Entrance {
    /// The listening port.
    Front { secure: bool },
    /// Tunnel to this server.
    Tunnel(Url),
}

/// Accepts connections until it is stopped.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    shared: Arc<ProxyState>,
    mut stop: oneshot::Receiver<()>,
) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return shared.trouble(format!("cannot wait for connections: {error}")),
    };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stop => return,
        };
        let (stream, _) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                shared.trouble(format!("a connection cannot be accepted: {error}"));
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(permit) = room.clone().try_acquire_owned() else { continue };
        let shared = shared.clone();
        tokio::spawn(async move {
            front(stream, shared).await;
            drop(permit);
        });
    }
}

/// Accepts a connection to the listening port, with TLS if it begins with a handshake.
async fn front(stream: TcpStream, shared: Arc<ProxyState>) {
    const HANDSHAKE: u8 = 22;
    let mut first = [0];
    match timeout(IDLE_MAX, stream.peek(&mut first)).await {
        Ok(Ok(1)) if first[0] == HANDSHAKE => {
            // a client that names no server has connected to an address
            let own = stream.local_addr().unwrap_or(shared.address);
            let name = own.ip().to_string();
            secured(stream, &name, shared, Entrance::Front { secure: true }).await;
        }
        Ok(Ok(1)) => serve_http(stream, shared, Entrance::Front { secure: false }).await,
        _ => {}
    }
}

/// Accepts TLS from a client, as the server that its handshake names, or else as `name`.
async fn secured(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    name: &str,
    shared: Arc<ProxyState>,
    side: Entrance,
) {
    let handshake = async {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await;
        let start = start.map_err(|error| not_accepted(name, &error.to_string()))?;
        let name = start.client_hello().server_name().unwrap_or(name).to_owned();
        let config = shared.config.authority.server(&name);
        let config = config.map_err(|why| format!("no certificate for {why}"))?;
        let stream = start.into_stream(config).await;
        stream.map_err(|error| not_accepted(&name, &error.to_string()))
    };
    let made = timeout(HANDSHAKE_MAX, handshake).await;
    let late = || {
        let limit = HANDSHAKE_MAX.as_secs();
        Err(format!("a client did not finish its TLS handshake with {name} within {limit} s"))
    };
    match made.unwrap_or_else(|_| late()) {
        Ok(stream) => serve_http(stream, shared, side).await,
        Err(why) => shared.trouble(why),
    }
}

fn not_accepted(name: &str, why: &str) -> String {
    format!(
        "a client did not accept the certificate of {name} ({why}); it must trust the recorder's \
         certificate"
    )
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    shared: Arc<ProxyState>,
    side: Entrance,
) {
    let service = service_fn(move |request| {
        let shared = shared.clone();
        let side = side.clone();
        async move { Ok::<_, Infallible>(answer(request, shared, side).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(IDLE_MAX);
    // a client that disconnects is not a problem
    drop(server.serve_connection(TokioIo::new(stream), service).with_upgrades().await);
}

fn text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<ProxyState>,
    side: Entrance,
) -> Response<Full<Bytes>> {
    if request.method() == Method::CONNECT {
        return connect(request, shared);
    }
    if request.headers().contains_key("upgrade") {
        shared
            .trouble(format!("{} is a WebSocket or another upgrade: not recorded", request.uri()));
        let why = "the recorder does not forward upgraded connections\n";
        return text(StatusCode::NOT_IMPLEMENTED, why.to_owned());
    }
    let url = match destination(&request, &shared, &side) {
        Ok(url) => url,
        Err(response) => return *response,
    };
    record(request, url, &shared, &side).await
}

/// Returns the server of a request.
fn destination(
    request: &Request<Incoming>,
    shared: &ProxyState,
    side: &Entrance,
) -> Result<Url, Box<Response<Full<Bytes>>>> {
    let uri = request.uri();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let found = match (uri.scheme(), side, &shared.config.upstream) {
        (Some(_), ..) => Url::parse(&uri.to_string()).ok(),
        (None, Entrance::Front { .. }, _) if path == CERTIFICATE => {
            let pem = shared.config.authority.certificate().to_owned();
            return Err(Box::new(text(StatusCode::OK, pem)));
        }
        (None, Entrance::Tunnel(base), _) | (None, Entrance::Front { .. }, Some(base)) => {
            base.join(path).ok()
        }
        (None, Entrance::Front { .. }, None) => None,
    };
    let url = found.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| {
        let why = format!(
            "This is loadstone's recorder. Make {} the HTTP proxy of a browser, or start it with \
             --upstream URL to record one server. The certificate for https:// is at {CERTIFICATE}.\n",
            SeenOrigin::new(request, shared, side).0
        );
        Box::new(text(StatusCode::BAD_REQUEST, why))
    })
}

/// Opens a tunnel, whose requests are recorded.
fn connect(request: Request<Incoming>, shared: Arc<ProxyState>) -> Response<Full<Bytes>> {
    let authority = request.uri().authority().map(|it| it.as_str().to_owned());
    let secure = authority.as_ref().is_none_or(|it| !it.ends_with(":80"));
    let scheme = if secure { "https" } else { "http" };
    let base = authority.and_then(|it| Url::parse(&format!("{scheme}://{it}/")).ok());
    let Some(base) = base.filter(Url::has_host) else {
        return text(StatusCode::BAD_REQUEST, "CONNECT takes host:port\n".to_owned());
    };
    tokio::spawn(tunnel(request, base, shared));
    Response::new(Full::default())
}

/// Serves a tunnel. Boxed, because its requests can open tunnels.
fn tunnel(
    request: Request<Incoming>,
    base: Url,
    shared: Arc<ProxyState>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
        let stream = TokioIo::new(upgraded);
        let side = Entrance::Tunnel(base.clone());
        if base.scheme() == "http" {
            return serve_http(stream, shared, side).await;
        }
        let name = base.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        secured(stream, &name, shared, side).await;
    })
}

/// Passes a request on, keeps the exchange, and answers the client.
async fn record(
    request: Request<Incoming>,
    url: Url,
    shared: &ProxyState,
    side: &Entrance,
) -> Response<Full<Bytes>> {
    let at = SystemTime::now();
    let start = Instant::now();
    let seen = SeenOrigin::new(&request, shared, side);
    let (head, body) = request.into_parts();
    let body = timeout(REQUEST_MAX, collect(body, &shared.room)).await;
    let late = || Err(format!("it is incomplete after {} s", REQUEST_MAX.as_secs()));
    let body = match body.unwrap_or_else(|_| late()) {
        Ok(body) => body,
        Err(why) => {
            shared.trouble(format!("the body of a request to {url} is not passed on: {why}"));
            return text(StatusCode::PAYLOAD_TOO_LARGE, format!("recorder: the body: {why}\n"));
        }
    };
    let mut headers = vec![("host".to_owned(), authority(&url))];
    for (name, value) in &head.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        if name != "host" && (name == "accept-encoding" || !is_own(name.as_str())) {
            headers.push((
                name.to_string(),
                with_server_address(&value, name.as_str(), &url, &seen, side),
            ));
        }
    }
    let method = head.method.as_str();
    let answered = forward(&url, method, &headers, body.clone(), shared.upstream()).await;
    let (response, shown) = match answered {
        Ok(answer) => {
            let shown = rewrite_response(&answer, &url, shared, (side, &seen));
            (Some(answer), shown)
        }
        Err(why) => {
            shared.trouble(format!("{url}: {why}"));
            (None, text(StatusCode::BAD_GATEWAY, format!("recorder: {url}: {why}\n")))
        }
    };
    shared.keep(RecordedExchange {
        at,
        took_ms: start.elapsed().as_secs_f64() * 1e3,
        method: method.to_owned(),
        url,
        headers,
        body,
        response,
    });
    shown
}

fn authority(url: &Url) -> String {
    url[url::Position::BeforeHost..url::Position::AfterPort].to_owned()
}

/// Returns a request's field as sent to the server: with the server's address in place of the
/// recorder's.
fn with_server_address(
    value: &str,
    name: &str,
    url: &Url,
    seen: &SeenOrigin,
    side: &Entrance,
) -> String {
    match side {
        Entrance::Front { .. } if matches!(name, "origin" | "referer") => {
            value.replacen(&seen.0, &url.origin().ascii_serialization(), 1)
        }
        _ => value.to_owned(),
    }
}

/// Returns the response as sent to the client: redirects to the server lead to the recorder, and
/// cookies are set for the recorder.
fn rewrite_response(
    answer: &RecordedResponse,
    url: &Url,
    shared: &ProxyState,
    (side, seen): (&Entrance, &SeenOrigin),
) -> Response<Full<Bytes>> {
    let reverse = match side {
        Entrance::Front { secure } if shared.config.upstream.is_some() => Some(*secure),
        _ => None,
    };
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers.iter().filter(|(name, _)| name != "content-length") {
        let value = match (reverse, name.as_str()) {
            (Some(_), "location") => {
                value.replacen(&url.origin().ascii_serialization(), &seen.0, 1)
            }
            (Some(secure), "set-cookie") => local_cookie(value, secure),
            _ => value.clone(),
        };
        response = response.header(name, value);
    }
    let body = Full::new(answer.body.clone());
    let broken =
        |_| text(StatusCode::BAD_GATEWAY, "recorder: a field cannot be passed on\n".to_owned());
    response.body(body).unwrap_or_else(broken)
}

/// Returns a cookie without the attributes that would keep it from the recorder's address.
fn local_cookie(value: &str, secure: bool) -> String {
    let kept = value.split(';').filter(|part| {
        let name = part.split('=').next().unwrap_or_default().trim().to_ascii_lowercase();
        name != "domain" && (secure || name != "secure")
    });
    kept.collect::<Vec<_>>().join(";")
}
