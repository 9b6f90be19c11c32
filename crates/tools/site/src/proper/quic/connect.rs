//! Extended CONNECT (RFC 9220) below h3. h3 rejects unknown protocols, so the pseudo-header
//! `:protocol` passes through it as a regular field.

use std::task::{Context, Poll, ready};

use h3::error::Code;
use h3::quic::{
    BidiStream, Connection, ConnectionErrorIncoming, OpenStreams, RecvStream, SendStream,
    StreamErrorIncoming, StreamId, WriteBuf,
};
use hyper::Request;
use hyper::body::Bytes;
use hyper::ext::Protocol;
use protocol::http3::{read_section, varint, write_section};

use crate::config::HEAD_MAX;

/// The field that replaces `:protocol`. A client's own field of this name is removed.
const PROTOCOL_FIELD: &str = "loadstone-protocol";

/// Frame types (RFC 9114 section 7.2).
const DATA: u64 = 0;
const HEADERS: u64 = 1;

/// Returns the request with the protocol of an extended CONNECT as an extension, as over HTTP/2.
pub(super) fn restore_protocol(mut request: Request<()>) -> Request<()> {
    let value = request.headers_mut().remove(PROTOCOL_FIELD);
    if let Some(protocol) = value.as_ref().and_then(|value| value.to_str().ok()) {
        request.extensions_mut().insert(Protocol::from(protocol));
    }
    request
}

/// Returns a field section with `:protocol` as a usual field; `None` if it needs no change. A
/// section that h3 must reject stays as it is.
fn with_usual_protocol(section: &[u8]) -> Option<Vec<u8>> {
    let fields = read_section(section, HEAD_MAX as u32)?;
    let has = |wanted: &str| fields.iter().filter(|(name, _)| name == wanted.as_bytes()).count();
    let connects = fields.contains(&(b":method".to_vec(), b"CONNECT".to_vec()));
    let named = has(":protocol") == 1 && connects;
    if !named && has(PROTOCOL_FIELD) == 0 {
        return None;
    }
    let is_protocol = |name: &[u8]| named && name == b":protocol";
    let usual =
        |(name, _): &&(Vec<u8>, Vec<u8>)| name != PROTOCOL_FIELD.as_bytes() && !is_protocol(name);
    let kept = fields.iter().filter(usual).map(|(name, value)| (&name[..], &value[..]));
    let protocol = fields.iter().filter(|(name, _)| is_protocol(name));
    let protocol = protocol.map(|(_, value)| (PROTOCOL_FIELD.as_bytes(), &value[..]));
    Some(write_section(kept.chain(protocol)))
}

/// Filter of a stream's received bytes: holds them back up to the end of the first HEADERS frame.
#[derive(Debug, Default)]
struct HeadFilter {
    held: Vec<u8>,
    /// Bytes of the current frame that pass unchanged.
    passing: u64,
    is_done: bool,
}

impl HeadFilter {
    /// Returns the bytes that may be read, of the received ones.
    fn pass(&mut self, bytes: &[u8]) -> Bytes {
        self.held.extend_from_slice(bytes);
        let mut out = Vec::new();
        while !self.is_done && self.pass_frame(&mut out) {}
        if self.is_done {
            out.append(&mut self.held);
        }
        out.into()
    }

    /// Moves the next frame, or the received part of one that is not HEADERS, to `out`; returns
    /// whether another one may follow.
    fn pass_frame(&mut self, out: &mut Vec<u8>) -> bool {
        let passed = self.held.len().min(usize::try_from(self.passing).unwrap_or(usize::MAX));
        out.extend(self.held.drain(..passed));
        self.passing -= passed as u64;
        let Some((kind, first)) = varint::get(&self.held) else { return false };
        let Some((length, second)) = varint::get(&self.held[first..]) else { return false };
        let start = first + second;
        if kind != HEADERS && kind != DATA {
            self.passing = length + start as u64;
            return true;
        }
        // content before the head is an error, and h3 needs no longer head
        self.is_done = kind == DATA || length > HEAD_MAX as u64;
        let end = start + length.min(HEAD_MAX as u64) as usize;
        if self.is_done || self.held.len() < end {
            return false;
        }
        if let Some(section) = with_usual_protocol(&self.held[start..end]) {
            varint::put(out, HEADERS);
            varint::put(out, section.len() as u64);
            out.extend(section);
            self.held.drain(..end);
        }
        self.is_done = true;
        false
    }

    /// Returns the held bytes of a stream that ends.
    fn finish(&mut self) -> Option<Bytes> {
        self.is_done = true;
        let rest = std::mem::take(&mut self.held);
        (!rest.is_empty()).then(|| rest.into())
    }
}

/// A request's stream, or its receiving half, whose head is filtered.
pub(super) struct FilteredStream<S> {
    inner: S,
    head: HeadFilter,
}

impl<S> FilteredStream<S> {
    fn new(inner: S) -> FilteredStream<S> {
        FilteredStream { inner, head: HeadFilter::default() }
    }
}

impl<S: RecvStream<Buf = Bytes>> RecvStream for FilteredStream<S> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        while !self.head.is_done {
            let Some(bytes) = ready!(self.inner.poll_data(cx))? else {
                return Poll::Ready(Ok(self.head.finish()));
            };
            let passed = self.head.pass(&bytes);
            if !passed.is_empty() {
                return Poll::Ready(Ok(Some(passed)));
            }
        }
        self.inner.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.inner.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.inner.recv_id()
    }
}

impl<S: SendStream<Bytes>> SendStream<Bytes> for FilteredStream<S> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.inner.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.inner.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.inner.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.inner.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.inner.send_id()
    }
}

impl<S> BidiStream<Bytes> for FilteredStream<S>
where
    S: BidiStream<Bytes> + RecvStream<Buf = Bytes>,
    S::RecvStream: RecvStream<Buf = Bytes>,
{
    type SendStream = S::SendStream;
    type RecvStream = FilteredStream<S::RecvStream>;

    fn split(self) -> (Self::SendStream, Self::RecvStream) {
        let (send, receive) = self.inner.split();
        (send, FilteredStream { inner: receive, head: self.head })
    }
}

/// Streams opened by the site.
pub(super) struct FilteredOpener(h3_quinn::OpenStreams);

impl OpenStreams<Bytes> for FilteredOpener {
    type BidiStream = FilteredStream<h3_quinn::BidiStream<Bytes>>;
    type SendStream = h3_quinn::SendStream<Bytes>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        OpenStreams::<Bytes>::poll_open_bidi(&mut self.0, cx).map_ok(FilteredStream::new)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        OpenStreams::<Bytes>::poll_open_send(&mut self.0, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        OpenStreams::<Bytes>::close(&mut self.0, code, reason);
    }
}

/// A connection whose requests are filtered.
pub(super) struct FilteredConnection(h3_quinn::Connection);

impl FilteredConnection {
    pub(super) fn new(connection: quinn::Connection) -> FilteredConnection {
        FilteredConnection(h3_quinn::Connection::new(connection))
    }
}

impl OpenStreams<Bytes> for FilteredConnection {
    type BidiStream = FilteredStream<h3_quinn::BidiStream<Bytes>>;
    type SendStream = h3_quinn::SendStream<Bytes>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        OpenStreams::<Bytes>::poll_open_bidi(&mut self.0, cx).map_ok(FilteredStream::new)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        OpenStreams::<Bytes>::poll_open_send(&mut self.0, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        OpenStreams::<Bytes>::close(&mut self.0, code, reason);
    }
}

impl Connection<Bytes> for FilteredConnection {
    type RecvStream = h3_quinn::RecvStream;
    type OpenStreams = FilteredOpener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        Connection::<Bytes>::poll_accept_recv(&mut self.0, cx)
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        Connection::<Bytes>::poll_accept_bidi(&mut self.0, cx).map_ok(FilteredStream::new)
    }

    fn opener(&self) -> FilteredOpener {
        FilteredOpener(Connection::<Bytes>::opener(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields<'a> = &'a [(&'a str, &'a str)];

    fn headers(fields: Fields<'_>) -> Vec<u8> {
        let bytes = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let section = write_section(bytes);
        let mut frame = vec![HEADERS as u8];
        varint::put(&mut frame, section.len() as u64);
        [frame, section].concat()
    }

    /// Passes bytes in pieces of this size.
    fn filtered(bytes: &[u8], size: usize) -> Vec<u8> {
        let mut filter = HeadFilter::default();
        let mut out = Vec::new();
        bytes.chunks(size).for_each(|piece| out.extend(filter.pass(piece)));
        out.extend(filter.finish().unwrap_or_default());
        out
    }

    const CONNECT: (&str, &str) = (":method", "CONNECT");
    const WEBSOCKET: (&str, &str) = (":protocol", "websocket");
    const HOST: (&str, &str) = (":authority", "h");
    /// A frame without meaning (RFC 9114 section 7.2.8).
    const GREASE: &[u8] = &[0x21, 3, b'a', b'b', b'c'];

    #[test]
    fn an_extended_connect_passes_h3() {
        let own = (PROTOCOL_FIELD, "x");
        let sent = [GREASE, &headers(&[CONNECT, WEBSOCKET, HOST, own]), b"\0\x02hi"].concat();
        let usual = headers(&[CONNECT, HOST, (PROTOCOL_FIELD, "websocket")]);
        let expected = [GREASE, &usual, b"\0\x02hi"].concat();
        for size in 1..=sent.len() {
            assert_eq!(filtered(&sent, size), expected, "pieces of {size} bytes");
        }
    }

    #[test]
    fn a_client_cannot_set_the_protocol_by_a_field() {
        let get = (":method", "GET");
        let sent = headers(&[get, HOST, (PROTOCOL_FIELD, "websocket")]);
        assert_eq!(filtered(&sent, 7), headers(&[get, HOST]));
    }

    #[test]
    fn other_streams_pass_unchanged() {
        let long = [&[HEADERS as u8, 0x80, 1, 0x87, 0][..], &[7; 100]].concat();
        for sent in [
            &headers(&[(":method", "GET"), HOST])[..],
            // rejected by h3: a protocol without CONNECT, two protocols, garbage, content first
            &headers(&[(":method", "GET"), WEBSOCKET, HOST]),
            &headers(&[CONNECT, WEBSOCKET, WEBSOCKET, HOST]),
            &[1, 4, 9, 9, 9, 9],
            b"\0\x02hi",
            // longer than a head may be, and cut off
            &long,
            &headers(&[CONNECT, WEBSOCKET, HOST])[..9],
        ] {
            for size in 1..=sent.len() {
                assert_eq!(filtered(sent, size), sent, "pieces of {size} bytes");
            }
        }
    }
}
