//! Bodies of responses.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use workload::fileset::FileContent;

use super::events::Events;
use super::grpc::{Conversation, GrpcReplies};
use crate::pattern::{self, BLOCK_LEN};

/// Body of a response.
#[derive(Debug)]
pub(super) enum PageBody {
    Whole(Bytes),
    /// Pattern bytes of known length.
    Pattern {
        position: u64,
        len: u64,
    },
    /// A file of a set, whose bytes are computed while they are sent.
    File {
        content: FileContent,
        position: u64,
        len: u64,
    },
    /// Pattern bytes in pieces without announced length: chunked, or up to the end of the
    /// connection.
    Pieces(Pieces),
    /// Events on a schedule.
    Events(Events),
    /// Messages of gRPC, with trailers.
    Replies(GrpcReplies),
    /// gRPC responses to messages as they arrive.
    Conversation(Box<Conversation>),
    /// The request's body of known length, passed on.
    Echo(Upload),
    /// A request's body that must be read first.
    Held(Held),
}

/// `len` pattern bytes in `pieces` pieces, whose lengths differ by at most 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    len: u64,
    pieces: u64,
    next: u64,
}

impl Pieces {
    /// Creates a body. No piece may be empty or longer than one block of the pattern.
    pub(super) fn new(len: u64, pieces: u64) -> Pieces {
        Pieces { len, pieces, next: 0 }
    }
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.next == self.pieces {
            return None;
        }
        let start = |index: u64| {
            (u128::from(self.len) * u128::from(index) / u128::from(self.pieces)) as u64
        };
        let (from, to) = (start(self.next), start(self.next + 1));
        self.next += 1;
        Some(pattern::bytes(from, (to - from) as usize))
    }
}

/// Reservation of buffered bytes, released on drop.
#[derive(Debug)]
pub(super) struct Held {
    bytes: Vec<u8>,
    booked: u64,
    held: Arc<AtomicU64>,
    most: u64,
}

impl Held {
    /// Creates an empty body. `held`: total size of all held bodies, of which `most` bytes are
    /// permitted.
    pub(super) fn new(held: Arc<AtomicU64>, most: u64) -> Held {
        Held { bytes: Vec::new(), booked: 0, held, most }
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns false if too much is held already, and nothing was added.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        let more = bytes.len() as u64;
        if self.held.fetch_add(more, Ordering::Relaxed) + more > self.most {
            self.held.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.booked += more;
        self.bytes.extend_from_slice(bytes);
        true
    }

    /// Returns the bytes themselves; they count up to the drop of `self`.
    #[cfg(feature = "h3")]
    pub(super) fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes).into()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.held.fetch_sub(self.booked, Ordering::Relaxed);
    }
}

impl Body for PageBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let bytes = match self.get_mut() {
            PageBody::Whole(bytes) => std::mem::take(bytes),
            PageBody::Pattern { position, len } => {
                let bytes = Bytes::from_static(pattern::slice(*position, *len - *position));
                *position += bytes.len() as u64;
                bytes
            }
            PageBody::File { content, position, len } => {
                let mut bytes = vec![0; (*len - *position).min(BLOCK_LEN as u64) as usize];
                content.fill(*position, &mut bytes);
                *position += bytes.len() as u64;
                bytes.into()
            }
            PageBody::Pieces(pieces) => pieces.next().unwrap_or_default(),
            PageBody::Events(events) => std::task::ready!(events.poll_next(cx)),
            PageBody::Held(held) => std::mem::take(&mut held.bytes).into(),
            PageBody::Replies(replies) => {
                return Poll::Ready(std::task::ready!(replies.poll_next(cx)).map(Ok));
            }
            PageBody::Conversation(talk) => {
                return Poll::Ready(std::task::ready!(talk.poll_next(cx)).map(Ok));
            }
            PageBody::Echo(incoming) => return poll_data(incoming, cx),
        };
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            PageBody::Whole(bytes) => bytes.is_empty(),
            PageBody::Pattern { position, len } | PageBody::File { position, len, .. } => {
                position == len
            }
            PageBody::Pieces(_)
            | PageBody::Events(_)
            | PageBody::Replies(_)
            | PageBody::Conversation(_) => false,
            PageBody::Held(held) => held.bytes.is_empty(),
            PageBody::Echo(incoming) => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            PageBody::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            PageBody::Pattern { position, len } | PageBody::File { position, len, .. } => {
                SizeHint::with_exact(len - position)
            }
            PageBody::Pieces(_)
            | PageBody::Events(_)
            | PageBody::Replies(_)
            | PageBody::Conversation(_) => SizeHint::default(),
            PageBody::Held(held) => SizeHint::with_exact(held.len()),
            PageBody::Echo(incoming) => incoming.size_hint(),
        }
    }
}

/// Body of a request.
#[derive(Debug)]
pub(super) enum Upload {
    Coming(Incoming),
    /// The body was read completely before.
    #[cfg(feature = "h3")]
    Whole(Bytes),
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Upload::Coming(incoming) => Pin::new(incoming).poll_frame(cx),
            #[cfg(feature = "h3")]
            Upload::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Upload::Coming(incoming) => incoming.is_end_stream(),
            #[cfg(feature = "h3")]
            Upload::Whole(bytes) => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Upload::Coming(incoming) => incoming.size_hint(),
            #[cfg(feature = "h3")]
            Upload::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}

/// Returns the next data of a request's body; its trailers are not passed on.
fn poll_data(
    mut incoming: &mut Upload,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    loop {
        match std::task::ready!(Pin::new(&mut incoming).poll_frame(cx)) {
            Some(Ok(frame)) if frame.is_data() => return Poll::Ready(Some(Ok(frame))),
            Some(Ok(_)) => {}
            other => return Poll::Ready(other),
        }
    }
}

const _: () = assert!(crate::route::PIECE_MAX <= BLOCK_LEN as u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_form_the_pattern_without_empty_ones() {
        for (len, pieces) in [(0, 0), (1, 1), (10, 4), (10, 10), (131_073, 3)] {
            let parts: Vec<Bytes> = Pieces::new(len, pieces).collect();
            assert_eq!(parts.len() as u64, pieces);
            assert!(parts.iter().all(|part| !part.is_empty()));
            let whole = parts.concat();
            assert_eq!(whole.len() as u64, len);
            let right = |(i, byte): (usize, &u8)| *byte == pattern::LINE[i % 64];
            assert!(whole.iter().enumerate().all(right));
        }
    }

    #[test]
    fn buffered_bytes_are_bounded_and_released() {
        let held = Arc::new(AtomicU64::new(90));
        let mut first = Held::new(Arc::clone(&held), 100);
        assert!(first.push(&[0; 10]));
        assert!(!first.push(&[0]));
        assert_eq!(first.len(), 10);
        drop(first);
        assert_eq!(held.load(Ordering::Relaxed), 90);
    }
}
