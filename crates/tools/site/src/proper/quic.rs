//! HTTP/3 over QUIC with quinn and h3, which share only QUIC's state machine with the tested
//! client.

mod connect;
mod range;
mod stream;

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use h3::server::RequestStream;
use http_body_util::BodyExt;
use hyper::body::{Buf, Bytes};
use hyper::ext::Protocol;
use hyper::{Request, Response};
use quinn::crypto::rustls::QuicServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use self::connect::{FilteredConnection, FilteredStream, restore_protocol};
pub(super) use self::range::serve as serve_range;
use self::stream::SocketStream;
use super::Common;
use super::body::{Held, Upload};
use super::converse::{ConnectionLog, SiteAnswer};
use crate::SiteError;
use crate::config::{EarlyData, Http3};
use crate::counters::Counters;

/// Requests of a connection at once: as many as over HTTP/2.
const STREAMS_MAX: u32 = 200;

/// A bound socket, with its QUIC settings.
#[derive(Debug)]
pub(crate) struct QuicListener {
    socket: UdpSocket,
    config: quinn::ServerConfig,
    early: Option<EarlyData>,
}

impl QuicListener {
    /// # Errors
    /// Fails for files that cannot be read or used, and for an address that is in use.
    pub(crate) fn bind(
        address: SocketAddr,
        wanted: &Http3,
        early: Option<EarlyData>,
    ) -> Result<QuicListener, SiteError> {
        let config = config(wanted, early)?;
        let failed = |reason| SiteError::Listen { address: format!("{address} (UDP)"), reason };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(SiteError::Resources)?;
        Ok(QuicListener { socket, config, early })
    }
}

fn config(wanted: &Http3, early: Option<EarlyData>) -> Result<quinn::ServerConfig, SiteError> {
    let refuse = |path: &Path, why: String| SiteError::Value {
        option: "http3".to_owned(),
        value: path.display().to_string(),
        why,
    };
    let bad = |path: &Path, what: &str, error: rustls_pki_types::pem::Error| {
        refuse(path, format!("no {what} in PEM can be read from it ({error})"))
    };
    let chain = CertificateDer::pem_file_iter(&wanted.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| bad(&wanted.cert, "certificate", error))?;
    let key = PrivateKeyDer::from_pem_file(&wanted.key)
        .map_err(|error| bad(&wanted.key, "private key", error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let unfit = |error: rustls::Error| refuse(&wanted.cert, error.to_string());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unfit)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unfit)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    if early.is_some() {
        // over QUIC a ticket allows all or nothing (RFC 9001 section 4.6.1)
        tls.max_early_data_size = u32::MAX;
    }
    tls.session_storage = match early {
        Some(EarlyData::Refuse) => Arc::new(DiscardingSessions),
        _ => rustls::server::ServerSessionMemoryCache::new(SESSIONS_MAX),
    };
    let tls =
        QuicServerConfig::try_from(tls).map_err(|error| refuse(&wanted.cert, error.to_string()))?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    let mut transport = quinn::TransportConfig::default();
    transport.max_concurrent_bidi_streams(STREAMS_MAX.into());
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Sessions that can be resumed: more than clients of a test open at once.
const SESSIONS_MAX: usize = 16_384;

/// Session store that claims to store sessions and returns none.
#[derive(Debug)]
struct DiscardingSessions;

impl rustls::server::StoresServerSessions for DiscardingSessions {
    fn put(&self, _key: Vec<u8>, _value: Vec<u8>) -> bool {
        true
    }

    fn get(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// Accepts forever, if there is a listener.
pub(super) async fn accept(quic: Option<QuicListener>, common: &Common, counters: &Arc<Counters>) {
    let Some(QuicListener { socket, config, early }) = quic else {
        return std::future::pending().await;
    };
    let own = quinn::EndpointConfig::default();
    let runtime = Arc::new(quinn::TokioRuntime);
    let Ok(endpoint) = quinn::Endpoint::new(own, Some(config), socket, runtime) else { return };
    let common = Rc::new(common.clone());
    while let Some(incoming) = endpoint.accept().await {
        let Ok(permit) = Arc::clone(&common.room).acquire_owned().await else { return };
        counters.connection();
        let peer = Some(incoming.remote_address());
        let visit = ConnectionLog::new(Rc::clone(&common), Arc::clone(counters), peer);
        tokio::task::spawn_local(async move {
            converse(incoming, visit, early).await;
            drop(permit);
        });
    }
}

/// Serves one connection to its end; h3 reports protocol errors to the client.
async fn converse(incoming: quinn::Incoming, visit: ConnectionLog, early: Option<EarlyData>) {
    let Ok(connecting) = incoming.accept() else { return };
    let (over, shaken) = tokio::sync::watch::channel(early.is_none());
    let connection = match early {
        None => connecting.await.ok(),
        // a server can always send before its handshake completes
        Some(_) => connecting.into_0rtt().ok().map(|(connection, whole)| {
            tokio::task::spawn_local(async move {
                whole.await;
                over.send_replace(true);
            });
            connection
        }),
    };
    let Some(connection) = connection else { return };
    let connection = FilteredConnection::new(connection);
    let mut settings = h3::server::builder();
    settings.enable_extended_connect(true);
    let Ok(mut connection) = settings.build::<_, Bytes>(connection).await else { return };
    while let Ok(Some(asked)) = connection.accept().await {
        let visit = visit.clone();
        let (mut shaken, is_early) = (shaken.clone(), !*shaken.borrow());
        tokio::task::spawn_local(async move {
            if let Ok((request, mut stream)) = asked.resolve_request().await {
                let request = restore_protocol(request);
                // an attacker who replays a recorded request executes it twice (RFC 8470 section 3)
                let waits = early == Some(EarlyData::Accept) && !request.method().is_safe();
                if is_early && waits && shaken.wait_for(|over| *over).await.is_err() {
                    return;
                }
                if is_early && early == Some(EarlyData::TooEarly) {
                    let status = hyper::StatusCode::TOO_EARLY;
                    if refuse(&request, &mut stream, &visit, status).await.is_ok() {
                        // a complete response is not a client error (RFC 9114 section 4.1); the
                        // read of the head is over, and there was none since
                        stream.stop_sending(h3::error::Code::H3_NO_ERROR);
                    }
                    return;
                }
                // nothing is sent to a client that has disconnected
                answer(request, stream, visit).await.ok();
            }
        });
    }
}

/// Sends only the status, without reading the rest of the request. h3's `stop_sending` panics while
/// h3-quinn waits for more of the stream, which it does after any part of a body; then dropping the
/// stream sends STOP_SENDING.
async fn refuse(
    request: &Request<()>,
    stream: &mut Http3Stream,
    visit: &ConnectionLog,
    status: hyper::StatusCode,
) -> Result<(), h3::error::StreamError> {
    visit.book_refused(request, status.as_u16());
    let mut head = Response::new(());
    *head.status_mut() = status;
    stream.send_response(head).await?;
    stream.finish().await
}

type Http3Stream = RequestStream<FilteredStream<h3_quinn::BidiStream<Bytes>>, Bytes>;

/// Answers one request, and serves the WebSocket that may follow on its stream.
async fn answer(
    request: Request<()>,
    mut stream: Http3Stream,
    visit: ConnectionLog,
) -> Result<(), h3::error::StreamError> {
    // booked up to the end: an echo sends these bytes back
    let mut body = visit.common().hold();
    // the content of an extended CONNECT follows the response
    let has_body = request.extensions().get::<Protocol>().is_none();
    if has_body && !read_body(&mut stream, &mut body, visit.common().body_max).await? {
        let status = hyper::StatusCode::SERVICE_UNAVAILABLE;
        return refuse(&request, &mut stream, &visit, status).await;
    }
    let request = request.map(|()| Upload::Whole(body.take()));
    // only HTTP/1.1 connections are returned
    let Ok(SiteAnswer { response, socket }) = visit.respond(request).await else { return Ok(()) };
    let (head, mut content) = response.into_parts();
    stream.send_response(Response::from_parts(head, ())).await?;
    if let Some(socket) = socket {
        visit.serve_socket(&socket, SocketStream::new(stream)).await;
        return Ok(());
    }
    while let Some(Ok(frame)) = content.frame().await {
        match frame.into_data() {
            Ok(data) => stream.send_data(data).await?,
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    stream.send_trailers(trailers).await?;
                }
            }
        }
    }
    stream.finish().await
}

/// Reads a body up to one byte more than `most`, so that the response is 413. Returns false if too
/// many bytes of bodies are held.
async fn read_body(
    stream: &mut Http3Stream,
    body: &mut Held,
    most: u64,
) -> Result<bool, h3::error::StreamError> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    while let Some(mut data) = stream.recv_data().await? {
        let room = most.saturating_add(1) - body.len() as usize;
        let taken = data.remaining().min(room);
        if !body.push(&data.copy_to_bytes(taken)) {
            return Ok(false);
        }
        if taken == room {
            break;
        }
    }
    Ok(true)
}
