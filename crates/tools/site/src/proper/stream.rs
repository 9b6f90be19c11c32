//! Sockets under hyper: TCP or Unix, every byte counted.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use hyper::body::{Buf, Bytes};
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::counters::Counters;
use crate::listen::Listener;

#[derive(Debug)]
pub(super) enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener),
}

#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Wraps a non-blocking socket; must be called inside a runtime.
    pub(super) fn from_fd(fd: OwnedFd, is_tcp: bool) -> io::Result<Socket> {
        Ok(if is_tcp {
            Socket::Tcp(TcpStream::from_std(fd.into())?)
        } else {
            Socket::Unix(UnixStream::from_std(fd.into())?)
        })
    }

    /// Closes the connection with a reset.
    fn reset(self) {
        match self {
            Socket::Tcp(socket) => reset_at_close(&socket),
            Socket::Unix(socket) => reset_at_close(&socket),
        }
    }

    fn resetter(&self) -> io::Result<Resetter> {
        let fd = match self {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        };
        fd.try_clone_to_owned().map(Resetter)
    }
}

/// Makes the close of a socket reset its connection.
fn reset_at_close(socket: impl AsFd) {
    // fails only on a connection that is gone already
    sockopt::set_socket_linger(socket, Some(std::time::Duration::ZERO)).ok();
}

/// A second descriptor of a connection whose stream has another owner.
#[derive(Debug)]
pub(super) struct Resetter(OwnedFd);

impl Resetter {
    /// Closes the connection with a reset. Its stream must be closed before.
    pub(super) fn reset(self) {
        reset_at_close(&self.0);
    }
}

impl Acceptor {
    /// Creates an acceptor; must be called inside a runtime.
    pub(super) fn new(listener: Listener) -> io::Result<Acceptor> {
        Ok(match listener {
            Listener::Tcp(listener) => Acceptor::Tcp(TcpListener::from_std(listener)?),
            Listener::Unix(listener) => Acceptor::Unix(UnixListener::from_std(listener)?),
        })
    }

    pub(super) async fn accept(&self) -> io::Result<(Socket, Option<SocketAddr>)> {
        match self {
            Acceptor::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // fails only for a closed connection, which the next read reports
                stream.set_nodelay(true).ok();
                Ok((Socket::Tcp(stream), Some(peer)))
            }
            Acceptor::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), None))
            }
        }
    }
}

/// State of the socket's buffer, for the task that must not overtake pending writes.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    full: Cell<bool>,
    waiting: RefCell<Option<Waker>>,
}

impl Backlog {
    /// Waits until the last write did not find the socket full.
    pub(super) fn poll_clear(&self, cx: &Context<'_>) -> Poll<()> {
        if self.full.get() {
            *self.waiting.borrow_mut() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn note_written(&self, full: bool) {
        self.full.set(full);
        if !full && let Some(waker) = self.waiting.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// A socket that counts bytes and accepts bytes that were read too far.
#[derive(Debug)]
pub(super) struct CountedStream {
    socket: Socket,
    put_back: Bytes,
    counters: Arc<Counters>,
    backlog: Rc<Backlog>,
}

impl CountedStream {
    pub(super) fn new(
        socket: Socket,
        counters: Arc<Counters>,
        backlog: Rc<Backlog>,
    ) -> CountedStream {
        CountedStream { socket, put_back: Bytes::new(), counters, backlog }
    }

    /// Closes the connection with a reset.
    pub(super) fn reset(self) {
        self.socket.reset();
    }

    /// Returns a handle that can reset the connection.
    ///
    /// # Errors
    /// Fails if the process has no descriptor left.
    pub(super) fn resetter(&self) -> io::Result<Resetter> {
        self.socket.resetter()
    }

    /// Puts `bytes` back at the front of the input.
    pub(super) fn put_back(&mut self, bytes: Bytes) {
        self.put_back = if self.put_back.is_empty() {
            bytes
        } else {
            [bytes, std::mem::take(&mut self.put_back)].concat().into()
        };
    }

    fn note(&self, result: &Poll<io::Result<usize>>) {
        match result {
            Poll::Ready(Ok(count)) => {
                self.counters.sent(*count);
                self.backlog.note_written(false);
            }
            Poll::Ready(Err(_)) => self.backlog.note_written(false),
            Poll::Pending => self.backlog.note_written(true),
        }
    }
}

impl AsyncRead for CountedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if !stream.put_back.is_empty() {
            let len = stream.put_back.len().min(buffer.remaining());
            buffer.put_slice(&stream.put_back[..len]);
            stream.put_back.advance(len);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let result = match &mut stream.socket {
            Socket::Tcp(socket) => Pin::new(socket).poll_read(cx, buffer),
            Socket::Unix(socket) => Pin::new(socket).poll_read(cx, buffer),
        };
        stream.counters.received(buffer.filled().len() - before);
        result
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        let result = match &mut stream.socket {
            Socket::Tcp(socket) => Pin::new(socket).poll_write(cx, bytes),
            Socket::Unix(socket) => Pin::new(socket).poll_write(cx, bytes),
        };
        stream.note(&result);
        result
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        let result = match &mut stream.socket {
            Socket::Tcp(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Socket::Unix(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
        };
        stream.note(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Sockets have nothing to flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Tcp(socket) => Pin::new(socket).poll_shutdown(cx),
            Socket::Unix(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}
