//! The socket under hyper: notifies the connection's visit of all bytes.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::visit::Visit;

/// A socket that reports every byte to its [`Visit`].
#[derive(Debug)]
pub(crate) struct VisitStream {
    socket: TcpStream,
    visit: Rc<Visit>,
}

impl VisitStream {
    pub(crate) fn new(socket: TcpStream, visit: Rc<Visit>) -> VisitStream {
        VisitStream { socket, visit }
    }

    pub(crate) fn into_socket(self) -> TcpStream {
        self.socket
    }

    fn note(&self, result: &Poll<io::Result<usize>>) {
        match result {
            Poll::Ready(_) => self.visit.watch().note_written(),
            Poll::Pending => self.visit.watch().write_blocked(),
        }
    }
}

impl AsyncRead for VisitStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        let before = buffer.filled().len();
        let result = Pin::new(&mut stream.socket).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            stream.visit.note_input();
        }
        result
    }
}

impl AsyncWrite for VisitStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        if stream.visit.expects_head() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let result = Pin::new(&mut stream.socket).poll_write(cx, bytes);
        stream.note(&result);
        result
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        if stream.visit.expects_head() {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        let result = Pin::new(&mut stream.socket).poll_write_vectored(cx, slices);
        stream.note(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Records that all data was written: a socket has nothing to flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.visit.written();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
