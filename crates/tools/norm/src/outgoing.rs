//! Outgoing content.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::exchange::{Content, Piece};

/// Read size for files.
const READ_MAX: u64 = 128 * 1024;

pub(crate) static SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Receives the end of a response's content.
pub(crate) trait ContentObserver: std::fmt::Debug {
    /// Returns the measurements known at the end of chunked content, for its trailer.
    fn late_field(&self) -> Option<String>;

    /// Records that the content was written or abandoned.
    fn content_over(&self);
}

/// Body of a response. When it is dropped, the observer is notified that the content was sent.
#[derive(Debug)]
pub(crate) struct OutgoingContent {
    matter: Matter,
    observer: Rc<dyn ContentObserver>,
    /// True if a trailer with the timings follows, once.
    trailer: bool,
}

#[derive(Debug)]
enum Matter {
    Bytes(Bytes),
    Pieces(Pieces),
    Stream(mpsc::Receiver<io::Result<Bytes>>),
}

impl OutgoingContent {
    pub(crate) fn new(
        content: Content,
        observer: Rc<dyn ContentObserver>,
        trailer: bool,
    ) -> OutgoingContent {
        let matter = match content {
            Content::Bytes(bytes) => Matter::Bytes(bytes),
            Content::Pieces(pieces) => Matter::Pieces(Pieces::new(pieces)),
            Content::Stream(receiver) => Matter::Stream(receiver),
            Content::Empty | Content::Elsewhere(_) => Matter::Bytes(Bytes::new()),
        };
        OutgoingContent { matter, observer, trailer }
    }

    fn end(&mut self) -> Option<io::Result<Frame<Bytes>>> {
        let trailer = std::mem::take(&mut self.trailer);
        let text = trailer.then(|| self.observer.late_field()).flatten()?;
        let mut fields = HeaderMap::new();
        fields.insert(SERVER_TIMING.clone(), HeaderValue::from_str(&text).ok()?);
        Some(Ok(Frame::trailers(fields)))
    }
}

impl Drop for OutgoingContent {
    fn drop(&mut self) {
        self.observer.content_over();
    }
}

impl Body for OutgoingContent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let outgoing = self.get_mut();
        let next = match &mut outgoing.matter {
            Matter::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                (!bytes.is_empty()).then_some(Ok(bytes))
            }
            Matter::Pieces(pieces) => ready!(pieces.poll_next(cx)),
            Matter::Stream(receiver) => ready!(receiver.poll_recv(cx)),
        };
        Poll::Ready(match next {
            Some(data) => Some(data.map(Frame::data)),
            None => outgoing.end(),
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.size_hint().exact(), Some(0))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.matter {
            Matter::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Matter::Pieces(pieces) => SizeHint::with_exact(pieces.left),
            Matter::Stream(_) => SizeHint::default(),
        }
    }
}

/// Bytes and parts of files in sequence. Files are read outside the serving thread.
#[derive(Debug)]
struct Pieces {
    waiting: VecDeque<Piece>,
    reading: Option<JoinHandle<io::Result<Read>>>,
    /// Number of remaining bytes.
    left: u64,
}

/// Data read from a file, and the rest of the piece.
type Read = (Bytes, Option<Piece>);

impl Pieces {
    fn new(pieces: Vec<Piece>) -> Pieces {
        let left = pieces.iter().map(Piece::len).sum();
        Pieces { waiting: pieces.into(), reading: None, left }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if let Some(reading) = &mut self.reading {
                let read = ready!(Pin::new(reading).poll(cx));
                self.reading = None;
                return Poll::Ready(Some(match read.map_err(io::Error::other).flatten() {
                    Ok((bytes, rest)) => {
                        if let Some(rest) = rest {
                            self.waiting.push_front(rest);
                        }
                        self.left -= bytes.len() as u64;
                        Ok(bytes)
                    }
                    Err(error) => Err(error),
                }));
            }
            match self.waiting.pop_front() {
                None => return Poll::Ready(None),
                Some(piece) if piece.len() == 0 => {}
                Some(Piece::Bytes(bytes)) => {
                    self.left -= bytes.len() as u64;
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Some(Piece::File { file, start, len }) => {
                    let read = move || read_part(file, start, len);
                    self.reading = Some(tokio::task::spawn_blocking(read));
                }
            }
        }
    }
}

/// Reads the next part of a file's piece. A file that has become shorter breaks the response off.
fn read_part(file: File, start: u64, len: u64) -> io::Result<Read> {
    let now = len.min(READ_MAX);
    let mut buffer = vec![0; now as usize];
    file.read_exact_at(&mut buffer, start)?;
    let rest = Piece::File { file, start: start + now, len: len - now };
    Ok((buffer.into(), (rest.len() > 0).then_some(rest)))
}
