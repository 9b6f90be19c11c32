//! The session of a connection that carries tunnels: HTTP/2, or HTTP/3 over QUIC.

use conduit::streams::{PieceKind, put_code};
use conduit::{Io, Slot};
use protocol::http3;
use std::ops::Range;

/// Maximum number of bytes of a tunnel that wait for the peer's window.
const QUEUE_MAX: usize = http2::TUNNEL_QUEUE_MAX;

#[derive(Debug)]
pub(crate) enum TunnelSession {
    Http2(Box<http2::Session>),
    Http3(Box<http3::Session>),
}

/// Piece of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CarriedPart {
    pub(crate) place: usize,
    /// Content within the input.
    pub(crate) body: Range<usize>,
    /// The stream is finished and was removed.
    pub(crate) done: bool,
}

/// A stream that ended without a complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoneTunnel {
    pub(crate) place: usize,
    pub(crate) refused: bool,
    pub(crate) by_peer: bool,
}

/// Names of the protocols, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CarrierName {
    pub(crate) http: &'static str,
    /// The standard of WebSocket over it.
    pub(crate) standard: &'static str,
}

impl TunnelSession {
    pub(crate) fn http2(settings: &http2::SessionSettings) -> TunnelSession {
        let settings = http2::SessionSettings { keeps_heads: true, ..*settings };
        TunnelSession::Http2(Box::new(http2::Session::new(&settings)))
    }

    /// Creates a session of HTTP/3, and appends what precedes its first request to `out`.
    pub(crate) fn http3(section_max: u32, out: &mut Vec<u8>) -> TunnelSession {
        let settings = http3::SessionSettings { keeps_heads: true, section_max };
        let session = http3::Session::new(&settings);
        session.start(out);
        TunnelSession::Http3(Box::new(session))
    }

    pub(crate) fn name(&self) -> CarrierName {
        match self {
            TunnelSession::Http2(_) => {
                CarrierName { http: "HTTP/2", standard: "RFC 8441 section 3" }
            }
            TunnelSession::Http3(_) => {
                CarrierName { http: "HTTP/3", standard: "RFC 9220 section 3" }
            }
        }
    }

    /// Returns the number of streams that may be open at once.
    pub(crate) fn capacity(&self) -> u32 {
        match self {
            TunnelSession::Http2(session) => session.capacity(),
            TunnelSession::Http3(session) if session.is_open() => {
                // unknown before the handshake is complete
                session
                    .streams_max()
                    .map_or(u32::MAX, |most| u32::try_from(most).unwrap_or(u32::MAX))
            }
            TunnelSession::Http3(_) => 0,
        }
    }

    pub(crate) fn accepts_tunnels(&self) -> Option<bool> {
        match self {
            TunnelSession::Http2(session) => session.accepts_tunnels(),
            TunnelSession::Http3(session) => session.accepts_tunnels(),
        }
    }

    pub(crate) fn is_going_away(&self) -> bool {
        match self {
            TunnelSession::Http2(session) => session.is_going_away(),
            TunnelSession::Http3(session) => session.is_going_away(),
        }
    }

    /// Opens the stream of a tunnel and returns its id.
    pub(crate) fn open(&mut self, request: &http2::Request, out: &mut Vec<u8>) -> u64 {
        match self {
            // ids of HTTP/2 are positive
            TunnelSession::Http2(session) => session.open_tunnel(request, out) as u64,
            TunnelSession::Http3(session) => {
                session.open_tunnel(&http3::Coded::new(request.fields(), None), out)
            }
        }
    }

    /// Queues bytes of a tunnel; returns how many were accepted. `unsent`: number of earlier bytes
    /// that wait below the session.
    pub(crate) fn push(
        &mut self,
        id: u64,
        bytes: &[u8],
        unsent: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        match self {
            TunnelSession::Http2(session) => session.push(id as i32, bytes),
            TunnelSession::Http3(session) => {
                let count = bytes.len().min(QUEUE_MAX.saturating_sub(unsent));
                if count > 0 {
                    session.push(id, &bytes[..count], out);
                }
                count
            }
        }
    }

    /// Returns whether too many bytes of a tunnel wait for the peer's window.
    pub(crate) fn is_full<I: Io>(&mut self, id: u64, (io, slot): (&mut I, Slot)) -> bool {
        let waiting = match self {
            TunnelSession::Http2(session) => session.queued(id as i32),
            TunnelSession::Http3(_) => io.unsent(slot, id),
        };
        waiting > QUEUE_MAX / 2
    }

    /// Ends our side of a tunnel.
    pub(crate) fn end(&mut self, id: u64, out: &mut Vec<u8>) {
        match self {
            TunnelSession::Http2(session) => session.end_tunnel(id as i32),
            TunnelSession::Http3(session) => session.end_tunnel(id, out),
        }
    }

    /// Abandons a tunnel.
    pub(crate) fn withdraw(&mut self, place: usize, out: &mut Vec<u8>) {
        match self {
            TunnelSession::Http2(session) => session.withdraw(place),
            TunnelSession::Http3(session) => session.withdraw(place, out),
        }
    }

    /// Appends the remaining output to `out`.
    pub(crate) fn drain(&mut self, out: &mut Vec<u8>) {
        match self {
            TunnelSession::Http2(session) => session.drain(out),
            // every method of the HTTP/3 session appends its output at once
            TunnelSession::Http3(_) => {}
        }
    }

    /// Processes input of at most one frame; returns how many bytes were used.
    ///
    /// # Errors
    /// Fails for a violation by the server.
    pub(crate) fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, String> {
        match self {
            TunnelSession::Http2(session) => {
                let fed = session.feed(input)?;
                session.violation().map_or(Ok(fed.consumed), Err)
            }
            TunnelSession::Http3(session) => {
                let fed = session.feed(input, out).map_err(|violation| {
                    put_code(out, PieceKind::Close, 0, Some(violation.code));
                    violation.to_string()
                })?;
                // a blocked tunnel is detected by its unsent bytes, so these events are dropped
                while session.take_opened().or_else(|| session.take_unblocked()).is_some() {}
                Ok(fed.consumed)
            }
        }
    }

    pub(crate) fn take_gone(&mut self) -> Option<GoneTunnel> {
        match self {
            TunnelSession::Http2(session) => {
                let http2::Gone { place, refused, by_peer, .. } = session.take_gone()?;
                Some(GoneTunnel { place, refused, by_peer })
            }
            TunnelSession::Http3(session) => {
                let http3::GoneStream { place, refused, by_peer, .. } = session.take_gone()?;
                Some(GoneTunnel { place, refused, by_peer })
            }
        }
    }

    pub(crate) fn take_part(&mut self) -> Option<CarriedPart> {
        match self {
            TunnelSession::Http2(session) => {
                let http2::Part { place, body, done, .. } = session.take_part()?;
                Some(CarriedPart { place, body, done })
            }
            TunnelSession::Http3(session) => {
                let http3::Part { place, body, done } = session.take_part()?;
                Some(CarriedPart { place, body, done })
            }
        }
    }

    /// Takes the id of a tunnel whose data the server does not want.
    pub(crate) fn take_stopped(&mut self) -> Option<u64> {
        match self {
            TunnelSession::Http2(_) => None,
            TunnelSession::Http3(session) => session.take_stopped(),
        }
    }

    /// Returns the status of the response that `part` belongs to; 0 before it arrives.
    pub(crate) fn status(&self, part: &CarriedPart) -> u16 {
        match self {
            TunnelSession::Http2(session) if part.done => session.facts().status,
            TunnelSession::Http2(session) => session.partial(part.place).map_or(0, |it| it.status),
            TunnelSession::Http3(session) if part.done => session.facts().status,
            TunnelSession::Http3(session) => session.partial(part.place).map_or(0, |it| it.status),
        }
    }

    /// Returns the head of that response.
    pub(crate) fn head(&self, part: &CarriedPart) -> &[u8] {
        match self {
            TunnelSession::Http2(session) if part.done => session.head(),
            TunnelSession::Http2(session) => session.head_of(part.place),
            TunnelSession::Http3(session) if part.done => session.head(),
            TunnelSession::Http3(session) => session.head_of(part.place),
        }
    }

    /// Returns whether the server has ended its side of a tunnel.
    pub(crate) fn is_ended_by_peer(&mut self, id: u64) -> bool {
        match self {
            TunnelSession::Http2(session) => session.is_ended_by_peer(id as i32),
            TunnelSession::Http3(session) => session.is_ended_by_peer(id),
        }
    }
}
