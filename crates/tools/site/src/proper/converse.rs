//! One connection: hyper as far as possible, hand-written responses where it declines, and an
//! orderly close.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::body::{Bytes, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Common;
use super::body::{PageBody, Upload};
use super::dynamic::Remote;
use super::pages;
use super::passed::{MustReset, RequestFaults};
use super::raw::{RawKind, RawResponse};
use super::socket::SocketVisit;
use super::stream::{Backlog, CountedStream, Socket};
use crate::access::AccessLine;
use crate::config::HEAD_MAX;
use crate::counters::Counters;
use crate::head::Date;

/// Buffer limit of hyper per connection: above the limit on a head, so that the latter applies.
const BUFFER_MAX: usize = 2 * HEAD_MAX;
/// Maximum number of header fields of a request.
const FIELDS_MAX: usize = 128;
/// Maximum amount that a client may still send, and maximum time, after our side is closed.
const LINGER_BYTES_MAX: usize = 1 << 20;
const LINGER_MAX: Duration = Duration::from_secs(1);

/// Settings, counters and log of one connection.
#[derive(Clone, Debug)]
pub(super) struct ConnectionLog(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    common: Rc<Common>,
    counters: Arc<Counters>,
    peer: Option<SocketAddr>,
    backlog: Rc<Backlog>,
    /// A connection that hyper returned for a handwritten response.
    handed_back: RefCell<Option<RawResponse>>,
    date: RefCell<Date>,
    /// Faults, on a connection of the fault loop.
    faults: Option<RequestFaults>,
}

impl ConnectionLog {
    pub(super) fn new(
        common: Rc<Common>,
        counters: Arc<Counters>,
        peer: Option<SocketAddr>,
    ) -> ConnectionLog {
        ConnectionLog(Rc::new(Inner {
            common,
            counters,
            peer,
            backlog: Rc::default(),
            handed_back: RefCell::new(None),
            date: RefCell::new(Date::new()),
            faults: None,
        }))
    }

    /// Applies faults to each request. The log must not be shared yet.
    pub(super) fn with_faults(mut self, faults: RequestFaults) -> ConnectionLog {
        if let Some(inner) = Rc::get_mut(&mut self.0) {
            inner.faults = Some(faults);
        }
        self
    }

    pub(super) fn common(&self) -> &Common {
        &self.0.common
    }

    /// Serves the connection to its end.
    pub(super) async fn converse(self, socket: Socket) {
        self.converse_from(socket, Bytes::new()).await;
    }

    /// Serves the connection to its end. `input` was read from it already.
    pub(super) async fn converse_from(self, socket: Socket, input: Bytes) {
        let inner = &self.0;
        let backlog = Rc::clone(&inner.backlog);
        let mut stream = CountedStream::new(socket, Arc::clone(&inner.counters), backlog);
        stream.put_back(input);
        match begins_http2(&mut stream).await {
            Ok(true) => return self.converse_http2(stream).await,
            Ok(false) => {}
            Err(_) => return,
        }
        loop {
            let mut builder = http1::Builder::new();
            // a client that closed its side after a request still reads (RFC 9112 section 9.6)
            builder.half_close(true);
            builder.max_buf_size(BUFFER_MAX).max_header_size(HEAD_MAX).max_headers(FIELDS_MAX);
            let mut connection = builder.serve_connection(TokioIo::new(stream), self.clone());
            let end = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
            let parts = connection.into_parts();
            stream = parts.io.into_inner();
            let raw = inner.handed_back.borrow_mut().take();
            match (raw, end) {
                (Some(raw), _) => {
                    stream.put_back(parts.read_buf);
                    let date = inner.date.borrow_mut().text().to_owned();
                    if raw.write(&mut stream, &date).await.is_err() {
                        return;
                    }
                    if let RawKind::Socket(visit) = &raw.kind {
                        // an error is ignored: the client has disconnected
                        visit.serve(&mut stream, &inner.common.rooms).await.ok();
                    }
                    if raw.keep {
                        continue;
                    }
                }
                (None, Err(_)) if self.must_reset() => {
                    return stream.reset();
                }
                (None, Err(error)) => self.book_refusal(&error),
                (None, Ok(())) => {}
            }
            break;
        }
        linger(stream).await;
    }

    /// Serves HTTP/2 with prior knowledge (RFC 9113 section 3.3).
    async fn converse_http2(self, stream: CountedStream) {
        let resetter = self.0.faults.is_some().then(|| stream.resetter());
        let connection = http2::Builder::new(Local)
            .max_header_list_size(HEAD_MAX as u32)
            .enable_connect_protocol()
            .serve_connection(TokioIo::new(stream), self.clone());
        let mut connection = Box::pin(connection);
        poll_fn(|cx| match self.must_reset() {
            true => Poll::Ready(()),
            // hyper has already answered protocol errors
            false => connection.as_mut().poll(cx).map(|_| ()),
        })
        .await;
        if let (true, Some(Ok(resetter))) = (self.must_reset(), resetter) {
            // the reset ends all streams of the connection
            drop(connection);
            resetter.reset();
        }
    }

    /// Returns whether a fault requires that the connection be reset.
    fn must_reset(&self) -> bool {
        self.0.faults.as_ref().is_some_and(|faults| faults.must_reset())
    }

    /// Counts hyper's own response to a head that it could not parse.
    fn book_refusal(&self, error: &hyper::Error) {
        if !error.is_parse() || error.is_parse_version_h2() {
            return;
        }
        self.0.counters.requests(1);
        self.book("", if error.is_parse_too_large() { 431 } else { 400 }, None);
    }

    fn book(&self, request: &str, status: u16, body_len: Option<u64>) {
        self.0.counters.answers(status, 1);
        if let Some(log) = &self.0.common.log {
            log.line(&AccessLine { peer: self.0.peer, request, status: Some(status), body_len });
        }
    }

    /// Counts a request that is answered with only this status.
    #[cfg(feature = "h3")]
    pub(super) fn book_refused<B>(&self, request: &Request<B>, status: u16) {
        self.0.counters.requests(1);
        self.book(&self.line(request), status, Some(0));
    }

    /// Returns a request for the log; empty without a log.
    fn line<B>(&self, request: &Request<B>) -> String {
        match self.0.common.log {
            Some(_) => {
                format!("{} {} {:?}", request.method(), request.uri(), request.version())
            }
            None => String::new(),
        }
    }

    /// Responds to a request. A stream whose request is for a WebSocket is then served as one.
    async fn serve(
        self,
        mut request: Request<Upload>,
    ) -> Result<Response<PageBody>, ConnectionReturned> {
        let tunnel = hyper::upgrade::on(&mut request);
        let SiteAnswer { response, socket } = self.respond(request).await?;
        if let Some(visit) = socket {
            tokio::task::spawn_local(async move {
                let Ok(stream) = tunnel.await else { return };
                self.serve_socket(&visit, TokioIo::new(stream)).await;
            });
        }
        Ok(response)
    }

    /// Returns the response to a request.
    pub(super) async fn respond(
        &self,
        mut request: Request<Upload>,
    ) -> Result<SiteAnswer, ConnectionReturned> {
        self.0.counters.requests(1);
        if let Some(peer) = self.0.peer.filter(|_| self.0.common.dynamic.is_some()) {
            request.extensions_mut().insert(Remote(peer.ip()));
        }
        let line = self.line(&request);
        if let Some(faults) = &self.0.faults {
            match faults.wait().await {
                Ok(None) => {}
                Ok(Some(status)) => {
                    let response = pages::on_demand(status);
                    self.book(&line, status, None);
                    return Ok(SiteAnswer { response, socket: None });
                }
                Err(MustReset) => {
                    self.0.counters.unanswered();
                    return Err(ConnectionReturned);
                }
            }
        }
        match pages::answer(request, self.common()).await {
            pages::SiteResponse::Page(response) => {
                let body_len = hyper::body::Body::size_hint(response.body()).exact();
                self.book(&line, response.status().as_u16(), body_len);
                Ok(SiteAnswer { response, socket: None })
            }
            pages::SiteResponse::Tunnel(visit) => {
                let response = visit.tunnel_response();
                self.book(&line, response.status().as_u16(), None);
                Ok(SiteAnswer { response, socket: Some(visit) })
            }
            pages::SiteResponse::Raw(raw) => {
                // hyper drops unwritten data when it returns a connection
                poll_fn(|cx| self.0.backlog.poll_clear(cx)).await;
                self.book(&line, raw.status(), None);
                *self.0.handed_back.borrow_mut() = Some(raw);
                Err(ConnectionReturned)
            }
        }
    }

    /// Serves the WebSocket on a stream to its end.
    pub(super) async fn serve_socket(
        &self,
        visit: &SocketVisit,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
    ) {
        // an error is ignored: the client has disconnected
        visit.serve(&mut stream, &self.0.common.rooms).await.ok();
        linger(stream).await;
    }
}

/// A response, and the WebSocket that uses its stream afterwards.
#[derive(Debug)]
pub(super) struct SiteAnswer {
    pub(super) response: Response<PageBody>,
    /// The stream carries this WebSocket after the response.
    pub(super) socket: Option<Box<SocketVisit>>,
}

impl Service<Request<Incoming>> for ConnectionLog {
    type Response = Response<PageBody>;
    type Error = ConnectionReturned;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectionReturned>>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        Box::pin(self.clone().serve(request.map(Upload::Coming)))
    }
}

/// The bytes with which HTTP/2 begins (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Returns whether the client starts with the HTTP/2 preface; the read bytes are read again.
async fn begins_http2(stream: &mut CountedStream) -> std::io::Result<bool> {
    let mut begun = Vec::with_capacity(PREFACE.len());
    while begun.len() < PREFACE.len() && PREFACE.starts_with(&begun) {
        let mut rest = [0; PREFACE.len()];
        let room = PREFACE.len() - begun.len();
        match stream.read(&mut rest[..room]).await? {
            0 => break,
            count => begun.extend_from_slice(&rest[..count]),
        }
    }
    let begins = begun == PREFACE;
    stream.put_back(begun.into());
    Ok(begins)
}

/// Streams are served on the thread of their connection.
#[derive(Clone, Copy, Debug)]
struct Local;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(stream);
    }
}

/// hyper returns the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionReturned;

impl std::fmt::Display for ConnectionReturned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the response is written by hand")
    }
}

impl std::error::Error for ConnectionReturned {}

/// Closes our side and waits for the client to close its own, so that unread input does not turn
/// the close into a reset that could destroy the response (RFC 9112 §9.6).
async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let swallow = async {
        let mut buffer = vec![0; 16 * 1024];
        let mut left = LINGER_BYTES_MAX;
        while left > 0 {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => left = left.saturating_sub(count),
            }
        }
    };
    // over time or not: the connection ends here
    tokio::time::timeout(LINGER_MAX, swallow).await.ok();
}
