//! Sends one request to its server, over a separate connection.

use crate::RecordedResponse;
use crate::bodies::{BodyRoom, collect};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use url::{Position, Url};

/// Maximum time for a connection, and for TLS on it.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Maximum time for a response.
const RESPONSE_MAX: Duration = Duration::from_secs(120);

/// Fields of a single connection, which are not forwarded (RFC 9110 section 7.6.1). Content codings
/// are not requested, so that recorded bodies are readable.
const OWN: [&str; 8] = [
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "keep-alive",
    "te",
    "transfer-encoding",
    "upgrade",
    "accept-encoding",
];

/// Returns whether a field belongs to the connection rather than to the message.
pub(crate) fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// State shared by all requests: the TLS configuration and the room for bodies.
#[derive(Clone, Copy)]
pub(crate) struct Upstream<'a> {
    pub(crate) tls: &'a Arc<ClientConfig>,
    pub(crate) room: &'a BodyRoom,
}

/// Sends a request and waits for its complete response.
///
/// # Errors
/// Fails without a connection within 10 s, or without a complete response within two minutes.
pub(crate) async fn forward(
    url: &Url,
    method: &str,
    headers: &[(String, String)],
    body: Bytes,
    upstream: Upstream<'_>,
) -> Result<RecordedResponse, String> {
    let exchange = exchange(url, method, headers, body, upstream);
    let within = timeout(RESPONSE_MAX, exchange).await;
    within.unwrap_or_else(|_| Err(format!("no response within {} s", RESPONSE_MAX.as_secs())))
}

async fn exchange(
    url: &Url,
    method: &str,
    headers: &[(String, String)],
    body: Bytes,
    upstream: Upstream<'_>,
) -> Result<RecordedResponse, String> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(80);
    let connected = timeout(CONNECT_MAX, TcpStream::connect((host.as_str(), port))).await;
    let connected = connected.unwrap_or_else(|_| Err(too_late()));
    let stream = connected.map_err(|error| format!("no connection to {host}:{port}: {error}"))?;
    let path = &url[Position::BeforePath..Position::AfterQuery];
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers.iter().filter(|(name, _)| !is_own(name)) {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(body)).map_err(|error| error.to_string())?;
    if url.scheme() != "https" {
        return send(stream, request, upstream.room).await;
    }
    let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(upstream.tls.clone());
    let secured = timeout(CONNECT_MAX, connector.connect(name, stream)).await;
    let secured = secured.unwrap_or_else(|_| Err(too_late()));
    send(secured.map_err(|error| format!("TLS with the server: {error}"))?, request, upstream.room)
        .await
}

fn too_late() -> std::io::Error {
    std::io::Error::other(format!("no answer within {} s", CONNECT_MAX.as_secs()))
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
    room: &BodyRoom,
) -> Result<RecordedResponse, String> {
    let made = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = made.map_err(|error| error.to_string())?;
    let driver = ConnectionTask(tokio::spawn(connection));
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let (head, body) = response.into_parts();
    let body = collect(body, room).await.map_err(|why| format!("the response: {why}"))?;
    drop(driver);
    let reason = head.status.canonical_reason().unwrap_or_default().to_owned();
    let framing = [header::TRANSFER_ENCODING, header::CONNECTION];
    let fields = head.headers.iter().filter(|(name, _)| !framing.contains(name));
    let text = |value: &header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(RecordedResponse {
        status: head.status.as_u16(),
        reason,
        headers: fields.map(|(name, value)| (name.to_string(), text(value))).collect(),
        body,
    })
}

/// The task of a connection, which ends with the exchange even if that times out.
struct ConnectionTask(tokio::task::JoinHandle<hyper::Result<()>>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
