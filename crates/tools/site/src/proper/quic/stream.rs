//! The content of a request's stream in both directions, as a connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use h3::error::StreamError;
use h3::server::RequestStream;
use hyper::body::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Http3Stream;
use super::connect::FilteredStream;

/// Maximum number of bytes in one DATA frame.
const FRAME_MAX: usize = 64 << 10;

type ReceiveHalf = RequestStream<FilteredStream<h3_quinn::RecvStream>, Bytes>;
type SendHalf = RequestStream<h3_quinn::SendStream<Bytes>, Bytes>;
type Sent = (SendHalf, Result<(), StreamError>);

/// State of the sending half.
enum Sending {
    Idle(Box<SendHalf>),
    /// This many bytes are being sent, or the end.
    Busy(usize, Pin<Box<dyn Future<Output = Sent>>>),
    Failed,
}

/// A stream after the response to an extended CONNECT.
pub(super) struct SocketStream {
    receive: ReceiveHalf,
    /// Received bytes that are not read yet.
    rest: Bytes,
    sending: Sending,
}

impl SocketStream {
    pub(super) fn new(stream: Http3Stream) -> SocketStream {
        let (send, receive) = stream.split();
        SocketStream { receive, rest: Bytes::new(), sending: Sending::Idle(Box::new(send)) }
    }

    /// Sends `bytes`, or the end of the stream if there are none; returns how many were sent.
    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Sending::Idle(_) = self.sending
            && let Sending::Idle(half) = std::mem::replace(&mut self.sending, Sending::Failed)
        {
            let count = bytes.len().min(FRAME_MAX);
            self.sending = Sending::Busy(count, Box::pin(send(*half, &bytes[..count])));
        }
        let Sending::Busy(count, sending) = &mut self.sending else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let (half, result) = ready!(sending.as_mut().poll(cx));
        let count = *count;
        self.sending = match result {
            Ok(()) => Sending::Idle(Box::new(half)),
            Err(_) => Sending::Failed,
        };
        Poll::Ready(result.map(|()| count).map_err(io::Error::other))
    }
}

/// Returns the sending of bytes, or of the end of the stream if there are none.
fn send(mut half: SendHalf, bytes: &[u8]) -> impl Future<Output = Sent> + use<> {
    let bytes = Bytes::copy_from_slice(bytes);
    async move {
        let sent = match bytes.is_empty() {
            true => half.finish().await,
            false => half.send_data(bytes).await,
        };
        (half, sent)
    }
}

impl AsyncRead for SocketStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(self.receive.poll_recv_data(cx)).map_err(io::Error::other)? {
                Some(mut data) => self.rest = data.copy_to_bytes(data.remaining()),
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SocketStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_send(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // a write ends when its bytes are sent
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send(cx, &[]).map_ok(|_| ())
    }
}
