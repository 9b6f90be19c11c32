//! Datagrams without a connection, for tests of how a server handles them: they are sent as given,
//! or as an Initial packet with the required protection (RFC 9001 section 5) and a requested
//! anomaly. Received datagrams are passed on unparsed, except for a CONNECTION_CLOSE in Initial
//! packets.

use crate::Handshakes;
use crate::hand::packet::{
    self, CarrierForm, NUMBER_LEN, NumberSpace, PacketForm, PacketHead, TAG_LEN,
};
use crate::inbox::Inbox;
use crate::wire::{INVENTED, VERSION, number, parameter_bytes, put_number};
use bytes::BytesMut;
use conduit::streams::{
    self, BROKEN, Cutter, HELLO, PieceKind, RESERVED, SHORT_ID, TOKEN, TRANSPORT,
};
use conduit::{Io, IoError, Slot};
use quinn_proto::crypto::Keys;
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, ConnectionIdGenerator, RandomConnectionIdGenerator, Side};
use sample::FailureClass;
use std::sync::Arc;

/// Length of a connection ID that is too short.
const SHORT_LEN: usize = 4;
/// Maximum number of datagrams of one Initial's ClientHello, and of sent bytes that are returned.
const DATAGRAMS_MAX: usize = 8;
const SENT_KEPT: usize = 64;

/// Types of frames (RFC 9000 section 19).
const CRYPTO: u8 = 0x06;
const CLOSE: u64 = 0x1c;
const APPLICATION_CLOSE: u64 = 0x1d;

pub(crate) struct Bare {
    keys: Keys,
    /// Keys for the short connection ID.
    short: Keys,
    hello: Vec<u8>,
    /// The connection IDs chosen for the server and for us.
    to: ConnectionId,
    from: ConnectionId,
    numbers: u64,
    cutter: Cutter,
    payload: Vec<u8>,
    inbox: Inbox,
    failed: Option<FailureClass>,
}

impl Bare {
    /// Returns `None` if no certificate can have this name.
    pub(crate) fn new(handshakes: &Handshakes, name: &str) -> Option<Bare> {
        let to = RandomConnectionIdGenerator::new(8).generate_cid();
        let from = RandomConnectionIdGenerator::new(8).generate_cid();
        let mut session = Arc::clone(handshakes)
            .start_session(VERSION, name, &parameters(&from, WINDOW)?)
            .ok()?;
        let mut hello = Vec::new();
        session.write_handshake(&mut hello);
        let keys = session.initial_keys(&to, Side::Client);
        let short = session.initial_keys(&ConnectionId::new(&to[..SHORT_LEN]), Side::Client);
        Some(Bare {
            keys,
            short,
            hello,
            to,
            from,
            numbers: 0,
            cutter: Cutter::default(),
            payload: Vec::new(),
            inbox: Inbox::default(),
            failed: None,
        })
    }

    /// Returns whether bytes wait for the worker.
    pub(crate) fn waits(&self) -> bool {
        self.inbox.waiting() > 0
    }

    /// Processes the pieces written by the worker.
    pub(crate) fn write(
        &mut self,
        io: &mut impl Io,
        slot: Slot,
        bytes: &[u8],
    ) -> Result<usize, IoError> {
        if let Some(class) = self.failed {
            return Err(IoError::Failed(class));
        }
        let mut at = 0;
        while at < bytes.len() {
            let opened = self.cutter.open(&bytes[at..]);
            at += opened.map_err(|_| IoError::Failed(FailureClass::OtherIo))?;
            let Some(head) = self.cutter.current() else { break };
            let part = self.cutter.payload(&bytes[at..]);
            at += part.len();
            self.payload.extend_from_slice(part);
            if !self.cutter.pass(part.len()) {
                continue;
            }
            let payload = std::mem::take(&mut self.payload);
            let datagrams = match head.kind {
                PieceKind::Datagram => vec![payload],
                PieceKind::Initial => self.initials(&payload),
                _ => return Err(IoError::Failed(FailureClass::OtherIo)),
            };
            for datagram in datagrams {
                // datagrams without room in the socket are lost, as on any path
                match io.write(slot, &datagram) {
                    Ok(_) => self.sent(&datagram),
                    Err(IoError::WouldBlock) => {}
                    Err(IoError::Failed(class)) => self.failed = Some(class),
                }
            }
        }
        Ok(at)
    }

    fn sent(&mut self, datagram: &[u8]) {
        let kept = &datagram[..datagram.len().min(SENT_KEPT)];
        streams::put(self.inbox.pieces(), PieceKind::Sent, datagram.len() as u64, kept);
    }

    pub(crate) fn read(
        &mut self,
        io: &mut impl Io,
        slot: Slot,
        scratch: &mut [u8],
        buffer: &mut [u8],
    ) -> Result<usize, IoError> {
        while !self.waits() && self.failed.is_none() {
            let (count, each) = match io.receive(slot, scratch) {
                Ok(read) => read,
                Err(IoError::WouldBlock) => return Err(IoError::WouldBlock),
                Err(IoError::Failed(class)) => {
                    self.failed = Some(class);
                    break;
                }
            };
            for datagram in scratch[..count].chunks(each.max(1)) {
                streams::put(self.inbox.pieces(), PieceKind::Datagram, 0, datagram);
                if let Some(code) = self.close_in(datagram) {
                    streams::put_code(self.inbox.pieces(), PieceKind::Close, 0, Some(code));
                }
            }
        }
        let count = self.inbox.read(buffer);
        match (count, self.failed) {
            (0, Some(class)) => Err(IoError::Failed(class)),
            (0, None) => Err(IoError::WouldBlock),
            _ => Ok(count),
        }
    }

    /// Returns the datagrams of the described Initial.
    fn initials(&mut self, described: &[u8]) -> Vec<Vec<u8>> {
        let [high, low, options, ref frames @ ..] = *described else { return Vec::new() };
        let options = u16::from(options);
        let size = usize::from(u16::from_be_bytes([high, low]));
        let mut made = Vec::new();
        let mut frames = frames.to_vec();
        let mut offset = 0;
        let hello = if options & HELLO == 0 { Vec::new() } else { self.hello.clone() };
        loop {
            let room = size.saturating_sub(self.head_len(options) + TAG_LEN + frames.len() + 8);
            let end = hello.len().min(offset + room);
            if end > offset {
                frames.push(CRYPTO);
                put_number(&mut frames, offset as u64);
                put_number(&mut frames, (end - offset) as u64);
                frames.extend_from_slice(&hello[offset..end]);
            }
            made.push(self.initial(size, options, &frames));
            if end == hello.len() || end == offset || made.len() == DATAGRAMS_MAX {
                return made;
            }
            frames.clear();
            offset = end;
        }
    }

    fn destination(&self, options: u16) -> &[u8] {
        if options & SHORT_ID == 0 { &self.to[..] } else { &self.to[..SHORT_LEN] }
    }

    /// Returns the number of bytes of the header of an Initial (RFC 9000 section 17.2.2), with its
    /// packet number.
    fn head_len(&self, options: u16) -> usize {
        let token = if options & TOKEN == 0 { 0 } else { INVENTED.len() };
        let ids = self.destination(options).len() + self.from.len();
        1 + 4 + 2 + ids + 1 + token + 2 + NUMBER_LEN
    }

    fn initial(&mut self, size: usize, options: u16, frames: &[u8]) -> Vec<u8> {
        let keys = if options & SHORT_ID == 0 { &self.keys } else { &self.short };
        let token: &[u8] = if options & TOKEN == 0 { b"" } else { INVENTED };
        let to = self.destination(options);
        let from = &self.from[..];
        let number = self.numbers;
        // at least as much as the header protection sample needs (RFC 9001 section 5.4.2)
        let least = self.head_len(options) + TAG_LEN + keys.header.local.sample_size();
        // the others have a different meaning there
        let odd = options & (RESERVED | BROKEN);
        let local = (&*keys.header.local, &*keys.packet.local);
        let packet = PacketHead { form: CarrierForm::Initial, to, from, token, number, odd }
            .sealed(local, frames, size.max(least));
        self.numbers += 1;
        packet
    }

    /// Returns the code of a CONNECTION_CLOSE in the Initial packets of a datagram, as encoded in
    /// pieces.
    fn close_in(&self, datagram: &[u8]) -> Option<u64> {
        let mut rest = datagram.to_vec();
        loop {
            let opened = [&self.keys, &self.short]
                .into_iter()
                .find_map(|keys| opened(keys, &mut rest.clone()));
            let (frames, end) = opened?;
            if let Some(code) = closing(&frames) {
                return Some(code);
            }
            rest.drain(..end);
        }
    }
}

/// Returns the frames of the Initial packet at the start of these bytes, and where it ends.
fn opened(keys: &Keys, bytes: &mut [u8]) -> Option<(BytesMut, usize)> {
    let parts = packet::parts(bytes)?;
    if bytes[0] & 0x40 == 0 || parts.kind != PacketForm::Of(NumberSpace::Initial) {
        return None;
    }
    let header = &*keys.header.remote;
    let packet = packet::unmasked(header, &mut bytes[..parts.end], parts.number_at, None)?;
    Some((packet.frames(&*keys.packet.remote)?, parts.end))
}

/// Number of bytes that a server may send on a connection that is never established.
const WINDOW: u64 = 65_535;

/// Returns the transport parameters of a client; the server may open its control stream and more.
fn parameters(from: &ConnectionId, window: u64) -> Option<TransportParameters> {
    let text = parameter_bytes(Some(from), window);
    TransportParameters::read(Side::Server, &mut text.as_slice()).ok()
}

/// Returns the code of the first CONNECTION_CLOSE among these frames of an Initial packet.
fn closing(mut frames: &[u8]) -> Option<u64> {
    loop {
        let (kind, used) = number(frames)?;
        frames = &frames[used..];
        let mut take = || {
            let (value, used) = number(frames)?;
            frames = frames.get(used..)?;
            Some(value)
        };
        match kind {
            0 | 1 => {}
            2 | 3 => {
                // the largest number and the delay, the number of ranges, the first of them
                take()?;
                take()?;
                let ranges = take()?;
                take()?;
                let counts = if kind == 3 { 3 } else { 0 };
                for _ in 0..ranges.checked_mul(2)?.checked_add(counts)? {
                    take()?;
                }
            }
            6 => {
                take()?;
                let length = usize::try_from(take()?).ok()?;
                frames = frames.get(length..)?;
            }
            CLOSE => return Some(take()? | TRANSPORT),
            APPLICATION_CLOSE => return take(),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_after_other_frames_is_found() {
        // ACK of one range, CRYPTO of two bytes, PADDING, then CONNECTION_CLOSE with
        // PROTOCOL_VIOLATION
        let frames = [2, 0, 0, 0, 0, 6, 0, 2, 1, 1, 0, 0, 0x1c, 0x0a, 6, 0];
        assert_eq!(closing(&frames), Some(0x0a | TRANSPORT));
        assert_eq!(closing(&[0x1d, 0x41, 0x00, 0]), Some(0x100));
        assert_eq!(closing(&frames[..12]), None, "no such frame");
        assert_eq!(closing(&[2, 0, 0, 0xff]), None, "cut");
        assert_eq!(closing(&[8, 1, 1]), None, "a frame that Initial packets do not have");
    }
}
