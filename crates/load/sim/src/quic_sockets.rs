//! WebSockets on streams of the simulated HTTP/3 server (RFC 9220): each echoes.

use protocol::http3::varint;
use websocket::{SocketEvent, SocketOptions, WebSocket};

/// Frame types (RFC 9114 section 7.2).
const DATA: u64 = 0;
const HEADERS: u64 = 1;

/// `:status: 200` by its index in the static table (RFC 9204 appendix A), as a HEADERS frame.
pub(crate) const HEAD: [u8; 5] = [1, 3, 0, 0, 0xd9];

/// A stream whose request is an extended CONNECT.
#[derive(Debug)]
pub(crate) struct EchoStream {
    /// Received bytes of an incomplete frame.
    held: Vec<u8>,
    socket: WebSocket,
}

impl EchoStream {
    pub(crate) fn new() -> EchoStream {
        EchoStream { held: Vec::new(), socket: WebSocket::new(&SocketOptions::server()) }
    }

    /// Returns the reply to received bytes of the stream.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let (mut reply, mut content) = (Vec::new(), Vec::new());
        while let Some((kind, payload)) = self.next_frame() {
            match kind {
                HEADERS => reply.extend_from_slice(&HEAD),
                DATA => self.echo(&payload, &mut content),
                _ => {}
            }
        }
        if !content.is_empty() {
            varint::put(&mut reply, DATA);
            varint::put(&mut reply, content.len() as u64);
            reply.append(&mut content);
        }
        reply
    }

    /// Returns whether the closing handshake is complete.
    pub(crate) fn is_closed(&self) -> bool {
        self.socket.is_closed()
    }

    fn next_frame(&mut self) -> Option<(u64, Vec<u8>)> {
        let (kind, first) = varint::get(&self.held)?;
        let (length, second) = varint::get(&self.held[first..])?;
        let start = first + second;
        let payload = self.held.get(start..start + length as usize)?.to_vec();
        self.held.drain(..start + payload.len());
        Some((kind, payload))
    }

    fn echo(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let Ok(received) = self.socket.receive(rest, out) else { return };
            if let SocketEvent::Message { text, payload, .. } = &received.event {
                let message = self.socket.payload(payload, rest).to_vec();
                self.socket.send(*text, &message, out);
            }
            rest = &rest[received.consumed..];
        }
    }
}
