//! One connection from acceptance to its end: hyper handles HTTP, this module responds to requests
//! that hyper refuses, then the connection is closed gracefully.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::abort::{Abort, Waiting};
use crate::refusal;
use crate::stream::VisitStream;
use crate::timing::Point;
use crate::visit::Visit;

/// Longest head of a request in bytes.
const HEAD_MAX: usize = 64 * 1024;
/// Buffer limit of hyper per connection: above the limit on a head, so that the latter applies.
const BUFFER_MAX: usize = 2 * HEAD_MAX;
/// Maximum amount that a client may still send, and maximum time, after our side is closed.
const LINGER_BYTES_MAX: usize = 1 << 20;
const LINGER_MAX: Duration = Duration::from_secs(1);

/// Serves a connection to its end.
pub(crate) async fn run(visit: Rc<Visit>, abort: Abort, socket: TcpStream) {
    let timing = visit.timing();
    let begun = timing.start();
    let stream = VisitStream::new(socket, Rc::clone(&visit));
    let socket = talk(&visit, stream).await;
    timing.stop(Point::Talk, begun);

    let closing = timing.start();
    close(socket, visit.is_unread()).await;
    timing.stop(Point::Close, closing);

    let releasing = timing.start();
    drop(abort);
    visit.release();
    timing.stop(Point::Release, releasing);
    timing.stop(Point::Run, begun);
}

/// Serves the requests of a connection until it ends or the client is silent for too long.
async fn talk(visit: &Rc<Visit>, stream: VisitStream) -> TcpStream {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(BUFFER_MAX).max_header_size(HEAD_MAX);
    let service = service_fn(|request| Box::pin(Rc::clone(visit).serve(request)));
    let mut connection = builder.serve_connection(TokioIo::new(stream), service);
    let end = tokio::select! {
        biased;
        end = poll_fn(|cx| connection.poll_without_shutdown(cx)) => Some(end),
        () = visit.watch().overdue() => None,
    };
    // dropping the connection changes its state
    let (awaited, waiting) = (visit.expects_head(), visit.watch().waiting());
    let parts = connection.into_parts();
    let status = match end {
        Some(Err(error)) if error.is_parse() && awaited => {
            Some(refusal::status_of_bytes(&parts.read_buf, error.is_parse_too_large()))
        }
        Some(_) => None,
        None => {
            visit.shared().log.info(&format!("Timeout of connection from {}", visit.peer()));
            let begun = match waiting {
                Waiting::Head => awaited && !parts.read_buf.is_empty(),
                Waiting::Body => true,
                Waiting::Nothing | Waiting::Taking => false,
            };
            begun.then_some(StatusCode::REQUEST_TIMEOUT)
        }
    };
    let mut socket = parts.io.into_inner().into_socket();
    if let Some(status) = status {
        respond(visit, status, &mut socket).await;
    }
    socket
}

/// Sends the last response on a connection, written by hand, for a request that is invalid or
/// incomplete.
async fn respond(visit: &Visit, status: StatusCode, socket: &mut TcpStream) {
    visit.leave_unread();
    visit.shared().counters.request();
    // a client that has disconnected misses nothing, and one that takes nothing is not waited for
    let response = refusal::raw(status);
    tokio::time::timeout(LINGER_MAX, socket.write_all(response.as_bytes())).await.ok();
}

/// Closes the connection. If input was left unread, first waits for the client to close its side,
/// so that the close does not become a reset that could destroy the response (RFC 9112 §9.6).
async fn close(mut socket: TcpStream, unread: bool) {
    let shut: io::Result<()> = socket.shutdown().await;
    if shut.is_err() || !unread {
        return;
    }
    let swallow = async {
        let mut buffer = vec![0; 16 * 1024];
        let mut left = LINGER_BYTES_MAX;
        while left > 0 {
            match socket.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => left = left.saturating_sub(count),
            }
        }
    };
    // the connection ends here, whether or not the time is over
    tokio::time::timeout(LINGER_MAX, swallow).await.ok();
}
