//! The client side: plain HTTP, TLS, and tunnels of a browser's proxy.

use crate::forward::{BODY_MAX, forward, is_own};
use crate::{RecordedExchange, RecordedResponse, RecorderConfig};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio_rustls::TlsAcceptor;
use url::Url;

/// Maximum number of simultaneous connections.
const CONNECTIONS_MAX: usize = 1_000;
/// Maximum number of recorded exchanges, and of the bytes of their bodies.
const EXCHANGES_MAX: usize = 50_000;
const BYTES_MAX: usize = 512 << 20;
/// Maximum number of problems that are reported one by one.
const TROUBLES_MAX: usize = 100;

/// Path at which clients find the certificate of the authority.
const CERTIFICATE: &str = "/.loadstone/ca.pem";

/// State that all connections share.
#[derive(Debug)]
pub(crate) struct ProxyState {
    config: RecorderConfig,
    address: SocketAddr,
    exchanges: Mutex<Vec<RecordedExchange>>,
    bytes: Mutex<usize>,
    troubles: Mutex<Vec<String>>,
}

impl ProxyState {
    pub(crate) fn new(config: RecorderConfig, address: SocketAddr) -> ProxyState {
        ProxyState {
            config,
            address,
            exchanges: Mutex::default(),
            bytes: Mutex::default(),
            troubles: Mutex::default(),
        }
    }

    pub(crate) fn exchanges(&self) -> MutexGuard<'_, Vec<RecordedExchange>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_troubles(&self) -> Vec<String> {
        std::mem::take(&mut *self.troubles.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn trouble(&self, text: String) {
        let mut all = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < TROUBLES_MAX && !all.contains(&text) {
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

    /// The address of the recorder as clients see it.
    fn origin(&self, secure: bool) -> String {
        format!("{}://{}", if secure { "https" } else { "http" }, self.address)
    }
}

/// Destination of requests that name no server, by the connection they arrive on.
#[derive(Clone, Debug)]
enum Entrance {
    /// The listening port.
    Front { secure: bool },
    /// A tunnel to this server.
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
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
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

/// A connection to the listening port: TLS where it begins with a handshake.
async fn front(stream: TcpStream, shared: Arc<ProxyState>) {
    const HANDSHAKE: u8 = 22;
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(1) if first[0] == HANDSHAKE => {
            let name = shared.address.ip().to_string();
            secured(stream, &name, shared, Entrance::Front { secure: true }).await;
        }
        Ok(1) => serve_http(stream, shared, Entrance::Front { secure: false }).await,
        _ => {}
    }
}

async fn secured(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    name: &str,
    shared: Arc<ProxyState>,
    side: Entrance,
) {
    let config = match shared.config.authority.server(name) {
        Ok(config) => config,
        Err(why) => return shared.trouble(format!("no certificate for {why}")),
    };
    match TlsAcceptor::from(config).accept(stream).await {
        Ok(stream) => serve_http(stream, shared, side).await,
        Err(error) => shared.trouble(format!(
            "a client did not accept the certificate of {name} ({error}); it must trust the \
             recorder's certificate"
        )),
    }
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
    // a client that disconnects is not a problem
    drop(
        http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await,
    );
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

/// The server of a request.
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
            shared.origin(false)
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

/// Boxed: a tunnel serves requests, which can open tunnels.
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
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, BODY_MAX).collect().await else {
        shared.trouble(format!("the body of a request to {url} is incomplete or above 64 MiB"));
        return text(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body exceeds the limit of 64 MiB\n".to_owned(),
        );
    };
    let body = body.to_bytes();
    let mut headers = vec![("host".to_owned(), authority(&url))];
    for (name, value) in &head.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        if name != "host" && (name == "accept-encoding" || !is_own(name.as_str())) {
            headers
                .push((name.to_string(), at_the_server(&value, name.as_str(), &url, shared, side)));
        }
    }
    let method = head.method.as_str();
    let answered = forward(&url, method, &headers, body.clone(), &shared.config.tls).await;
    let (response, shown) = match answered {
        Ok(answer) => {
            let shown = shown(&answer, &url, shared, side);
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
        body: body.to_vec(),
        response,
    });
    shown
}

fn authority(url: &Url) -> String {
    url[url::Position::BeforeHost..url::Position::AfterPort].to_owned()
}

/// A request's field as sent to the server: with the server's address in place of the recorder's.
fn at_the_server(
    value: &str,
    name: &str,
    url: &Url,
    shared: &ProxyState,
    side: &Entrance,
) -> String {
    match side {
        Entrance::Front { secure } if matches!(name, "origin" | "referer") => {
            value.replacen(&shared.origin(*secure), &url.origin().ascii_serialization(), 1)
        }
        _ => value.to_owned(),
    }
}

/// The response as sent to the client: redirects to the server lead to the recorder, and cookies
/// are set for the recorder.
fn shown(
    answer: &RecordedResponse,
    url: &Url,
    shared: &ProxyState,
    side: &Entrance,
) -> Response<Full<Bytes>> {
    let reverse = match side {
        Entrance::Front { secure } if shared.config.upstream.is_some() => Some(*secure),
        _ => None,
    };
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers.iter().filter(|(name, _)| name != "content-length") {
        let value = match (reverse, name.as_str()) {
            (Some(secure), "location") => {
                value.replacen(&url.origin().ascii_serialization(), &shared.origin(secure), 1)
            }
            (Some(secure), "set-cookie") => local_cookie(value, secure),
            _ => value.clone(),
        };
        response = response.header(name, value);
    }
    let body = Full::new(Bytes::from(answer.body.clone()));
    let broken =
        |_| text(StatusCode::BAD_GATEWAY, "recorder: a field cannot be passed on\n".to_owned());
    response.body(body).unwrap_or_else(broken)
}

/// A cookie without the attributes that would keep it from the recorder's address.
fn local_cookie(value: &str, secure: bool) -> String {
    let kept = value.split(';').filter(|part| {
        let name = part.split('=').next().unwrap_or_default().trim().to_ascii_lowercase();
        name != "domain" && (secure || name != "secure")
    });
    kept.collect::<Vec<_>>().join(";")
}
