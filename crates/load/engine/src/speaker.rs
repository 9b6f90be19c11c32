//! The protocol of a connection, between the bytes of a transport and its calls: bytes and calls
//! are input; bytes and, per call, events are output. No I/O, no clock, no counting: pool,
//! deadlines and journal do not depend on the protocol.
//!
//! A speaker names a call by its position among the outstanding calls of its connection, in their
//! order: 0 is the oldest. When a call is done, refused, failed or withdrawn, its position is
//! removed and later ones move up by one, here and in the connection alike.
//! docs/decisions/0021-engine-one-speaker-per-protocol.md describes how to add a protocol.

mod http1;
mod http2;
mod http3;
#[cfg(test)]
pub(crate) mod numbered;
pub(crate) mod websocket;

use ::http2::{Late, ReleasedMessage, SessionSettings};
use http1::Http1;
pub(crate) use http1::class_of;
use http2::Http2;
use http3::Http3;
#[cfg(test)]
use numbered::Numbered;
use protocol::http1::response::{HeadCache, Leniency, Limits, ResponseFacts};
use protocol::http1::timing::{Malformed, Timing};
use sample::{FailureClass, Http2Facts, Http3Facts};
use std::ops::Range;
use std::sync::Arc;
use units::Nanos;
use websocket::{SocketEnd, SocketNews, SocketSpeaker, SocketTerms};
use workload::Template;

/// Protocol of a run's connections.
#[derive(Clone, Debug)]
pub(crate) enum Protocol {
    Http1(Limits),
    Http2(SessionSettings),
    /// HTTP/3, over a connection that provides streams ([`conduit::streams`]).
    Http3(::protocol::http3::SessionSettings),
    /// HTTP/1.1 upgraded to WebSocket: calls are messages.
    WebSocket(Arc<SocketTerms>),
    /// A multiplexed protocol that tests this interface.
    #[cfg(test)]
    Numbered,
}

/// Protocol state of one connection. An enum lets calls on the hot path be inlined.
#[derive(Debug)]
pub(crate) enum Speaker {
    Http1(Http1),
    Http2(Box<Http2>),
    Http3(Box<Http3>),
    WebSocket(Box<SocketSpeaker>),
    #[cfg(test)]
    Numbered(Numbered),
}

/// Read state shared by all connections of a worker.
#[derive(Debug, Default)]
pub(crate) struct ReadCaches {
    heads: HeadCache,
}

/// Protocol of an endpoint's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndpointKind {
    /// Requests of the plan.
    Plan,
    /// WebSockets that steps of journeys, or guides, open.
    Socket,
    /// HTTP/2, for calls of gRPC by guides.
    Grpc,
}

/// A call's request, rendered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) template: &'a Template,
    /// True if the request is the last one on the connection.
    pub(crate) last: bool,
    /// The value of a Cookie field.
    pub(crate) cookie: Option<&'a str>,
    /// Number of the call.
    pub(crate) index: u64,
}

/// Counts of a connection's protocol.
#[derive(Debug)]
pub(crate) enum ProtocolFacts {
    Http2(Http2Facts),
    Http3(Http3Facts),
    WebSocket { news: SocketNews, end: Option<SocketEnd>, input_at: Nanos },
}

/// Kind of a piece of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Processed {
    /// Number of consumed input bytes; zero if one piece of input has several events.
    pub(crate) consumed: usize,
    pub(crate) event: Event,
}

/// Result of examining an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptAlive {
    /// A ping was sent; `again`: when to examine the connection next.
    Pinged {
        again: Nanos,
    },
    Later {
        again: Nanos,
    },
    /// The peer does not acknowledge pings.
    Unanswered,
}

/// Meaning of a piece of input for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The input concerned only the connection, and may have been answered.
    Connection,
    /// Part of a response. `body`: the content within the input; `done`: the response ends here.
    Response { call: usize, body: Range<usize>, done: bool },
    /// The peer has not processed the call and will not do so: it may be assigned to another
    /// connection.
    Refused { call: usize },
    /// The peer abandons this call; the connection continues.
    Failed { call: usize, class: FailureClass },
}

/// Reason why the connection cannot be used any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Bytes arrived without a request. No call fails because of them.
    Unasked,
    /// The input cannot be parsed.
    Broken { class: FailureClass },
}

/// Calls the same method of the current protocol.
macro_rules! each {
    ($speaker:expr, $protocol:ident => $call:expr) => {
        match $speaker {
            Speaker::Http1($protocol) => $call,
            Speaker::Http2($protocol) => $call,
            Speaker::Http3($protocol) => $call,
            Speaker::WebSocket($protocol) => $call,
            #[cfg(test)]
            Speaker::Numbered($protocol) => $call,
        }
    };
}

impl Speaker {
    /// Creates the speaker of a connection. `keeps_heads`: the head of a complete response is
    /// available. `lenient`: deviations from HTTP/1.x that are accepted.
    pub(crate) fn new(protocol: Protocol, keeps_heads: bool, lenient: Leniency) -> Speaker {
        match protocol {
            Protocol::Http1(limits) => Speaker::Http1(Http1::new(keeps_heads, lenient, limits)),
            Protocol::Http2(settings) => {
                Speaker::Http2(Box::new(Http2::new(SessionSettings { keeps_heads, ..settings })))
            }
            Protocol::Http3(settings) => {
                let settings = ::protocol::http3::SessionSettings { keeps_heads, ..settings };
                Speaker::Http3(Box::new(Http3::new(settings)))
            }
            Protocol::WebSocket(terms) => Speaker::WebSocket(Box::new(SocketSpeaker::new(terms))),
            #[cfg(test)]
            Protocol::Numbered => Speaker::Numbered(Numbered::default()),
        }
    }

    /// Starts a new connection; bytes that precede the first request are written to `out`.
    pub(crate) fn start(&mut self, out: &mut Vec<u8>) {
        each!(self, protocol => protocol.start(out));
    }

    /// Returns the maximum number of outstanding calls, if the plan permits `depth`. It may change
    /// with announcements from the peer; zero: no further call.
    #[inline]
    pub(crate) fn capacity(&self, depth: u32) -> u32 {
        each!(self, protocol => protocol.capacity(depth))
    }

    /// Returns whether responses may come in any order: then each call has its own deadlines, and
    /// an abandoned call does not end the connection.
    #[inline]
    pub(crate) fn is_multiplexed(&self) -> bool {
        match self {
            Speaker::Http1(_) => false,
            Speaker::Http2(_) | Speaker::Http3(_) | Speaker::WebSocket(_) => true,
            #[cfg(test)]
            Speaker::Numbered(_) => true,
        }
    }

    /// Returns whether the calls are streams in the bytes of one transport.
    #[inline]
    pub(crate) fn has_streams(&self) -> bool {
        match self {
            Speaker::Http2(_) => true,
            // streams of QUIC are those of the transport
            Speaker::Http1(_) | Speaker::Http3(_) | Speaker::WebSocket(_) => false,
            #[cfg(test)]
            Speaker::Numbered(_) => true,
        }
    }

    /// Sends a request: the call becomes the last outstanding one.
    #[inline(always)]
    pub(crate) fn send_request(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        each!(self, protocol => protocol.send_request(request, out));
    }

    /// Processes plaintext, one event at a time; must be called again while there is input left.
    /// Protocol replies are written to `out`, with [`Event::Connection`]. An in-order protocol is
    /// processed separately: see [`Http1::process`].
    pub(crate) fn process(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Result<Processed, Fault> {
        match self {
            Speaker::Http1(_) => Err(Fault::Unasked),
            Speaker::Http2(http2) => http2.process(input, out),
            Speaker::Http3(http3) => http3.process(input, out),
            Speaker::WebSocket(socket) => socket.process(input, now, out),
            #[cfg(test)]
            Speaker::Numbered(numbered) => numbered.process(input, out),
        }
    }

    /// Handles the peer's close with calls outstanding. `Ok`: the close ends the oldest call's
    /// response.
    pub(crate) fn receive_end(&mut self) -> Result<(), FailureClass> {
        each!(self, protocol => protocol.receive_end())
    }

    /// Abandons the call on our side. Returns true if the connection continues without it.
    pub(crate) fn withdraw(&mut self, call: usize, out: &mut Vec<u8>) -> bool {
        each!(self, protocol => protocol.withdraw(call, out))
    }

    /// Returns the facts of the completed response, or of the received part of a failed one; valid
    /// from its last event until the next event.
    #[inline(always)]
    pub(crate) fn facts(&self) -> ResponseFacts {
        each!(self, protocol => protocol.facts())
    }

    /// Returns the bytes of the response's head, if heads are kept; the received part while the
    /// response is in progress.
    pub(crate) fn head(&self) -> &[u8] {
        each!(self, protocol => protocol.head())
    }

    /// Returns the bytes of the head of a response in progress, if heads are kept and the protocol
    /// has streams.
    pub(crate) fn head_of(&self, call: usize) -> &[u8] {
        match self {
            Speaker::Http2(http2) => http2.head_of(call),
            Speaker::Http3(http3) => http3.head_of(call),
            _ => &[],
        }
    }

    /// Returns the fields of its trailers, where heads are kept and the protocol is HTTP/2 or
    /// HTTP/3.
    pub(crate) fn trailers(&self) -> &[u8] {
        match self {
            Speaker::Http2(http2) => http2.trailers(),
            Speaker::Http3(http3) => http3.trailers(),
            _ => &[],
        }
    }

    /// Passes each `Server-Timing` entry of the current response to `count`.
    pub(crate) fn for_each_timing(&self, count: impl FnMut(Result<Timing<'_>, Malformed>)) {
        match self {
            Speaker::Http1(http1) => http1.timings().for_each(count),
            Speaker::Http2(http2) => http2.timings().for_each(count),
            Speaker::Http3(http3) => http3.timings().for_each(count),
            Speaker::WebSocket(_) => {}
            #[cfg(test)]
            Speaker::Numbered(_) => {}
        }
    }

    /// Returns the name by which the peer must choose the protocol in ALPN, or `None` if any choice
    /// is accepted.
    pub(crate) fn demanded(&self) -> Option<&'static str> {
        matches!(self, Speaker::Http2(_)).then_some(::http2::ALPN)
    }

    /// Returns the stream id of the completed response; 0 without streams.
    pub(crate) fn stream_id(&self) -> i32 {
        match self {
            Speaker::Http2(http2) => http2.stream_id(),
            _ => 0,
        }
    }

    /// Returns the next call of whose request a further part was sent.
    pub(crate) fn take_late(&mut self) -> Option<Late> {
        match self {
            Speaker::Http2(http2) => http2.take_late(),
            Speaker::Http3(http3) => http3.take_late(),
            _ => None,
        }
    }

    /// Sends the next message of a paced request.
    pub(crate) fn release(&mut self, call: usize, out: &mut Vec<u8>) -> Option<ReleasedMessage> {
        match self {
            Speaker::Http2(http2) => http2.release(call, out),
            _ => None,
        }
    }

    /// Adds to the body of a request that is kept open. Returns false if too many bytes wait.
    pub(crate) fn extend(&mut self, call: usize, more: (&[u8], bool), out: &mut Vec<u8>) -> bool {
        match self {
            Speaker::Http2(http2) => http2.extend(call, more, out),
            _ => true,
        }
    }

    /// Pings a connection that received no bytes for some time.
    pub(crate) fn keep_alive(&mut self, now: Nanos, out: &mut Vec<u8>) -> KeptAlive {
        match self {
            Speaker::Http2(http2) => http2.keep_alive(now, out),
            _ => KeptAlive::Later { again: Nanos::NEVER },
        }
    }

    /// Returns the next call that waited for a stream and whose request is being sent now.
    pub(crate) fn take_opened(&mut self) -> Option<usize> {
        match self {
            Speaker::Http3(http3) => http3.take_opened(),
            Speaker::WebSocket(socket) => socket.take_opened(),
            _ => None,
        }
    }

    /// Returns whether the call is queued because of the peer's limit on concurrent streams.
    pub(crate) fn waits(&self, call: usize) -> bool {
        match self {
            Speaker::Http2(http2) => http2.waits(call),
            Speaker::Http3(http3) => http3.waits(call),
            _ => false,
        }
    }

    /// Returns whether the connection is finished: no call is outstanding, and the peer accepts no
    /// more.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Speaker::Http2(http2) => http2.is_over(),
            Speaker::Http3(http3) => http3.is_over(),
            _ => false,
        }
    }

    /// Returns whether the connection has no counts, and no state to keep for the next call when
    /// none is outstanding.
    #[inline]
    pub(crate) fn forgets(&self) -> bool {
        matches!(self, Speaker::Http1(_))
    }

    /// Returns the counts of the protocol itself and resets them.
    pub(crate) fn take_facts(&mut self) -> Option<ProtocolFacts> {
        match self {
            Speaker::Http2(http2) => Some(ProtocolFacts::Http2(http2.take_facts())),
            Speaker::Http3(http3) => Some(ProtocolFacts::Http3(http3.take_facts())),
            Speaker::WebSocket(socket) => Some(ProtocolFacts::WebSocket {
                news: socket.take_news().unwrap_or_default(),
                input_at: socket.input_at(),
                end: socket.take_end(),
            }),
            _ => None,
        }
    }

    /// Returns the WebSocket, if the connection is one.
    #[inline]
    pub(crate) fn socket(&mut self) -> Option<&mut SocketSpeaker> {
        match self {
            Speaker::WebSocket(socket) => Some(socket),
            _ => None,
        }
    }

    /// Returns the received part of a call's incomplete response; `None` before its first byte.
    pub(crate) fn partial(&self, call: usize) -> Option<ResponseFacts> {
        each!(self, protocol => protocol.partial(call))
    }
}
