//! The server's side of a handshake that passes over some of what its clients say: bugs that are planted in a server,
//! so that it can be shown that they are found. A packet that begins with such a frame is PING and PADDING to the
//! library behind it.

use crate::bare::number;
use bytes::BytesMut;
use quinn_proto::crypto::{
    CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError};
use std::any::Any;
use std::sync::Arc;

/// What is passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deafness {
    /// HANDSHAKE_DONE and NEW_TOKEN, which only a server may send.
    pub forbidden: bool,
    /// ACK of a packet number that is beyond all that were sent.
    pub acks: bool,
    /// STREAM behind the first 1,000,000 bytes of its stream.
    pub windows: bool,
    /// PATH_CHALLENGE.
    pub challenges: bool,
}

/// Numbers from here on are nobody's, and bytes behind them beyond the windows of a server.
const BEYOND: u64 = 1_000_000;

impl Deafness {
    /// The frame that these begin with is passed over, and those behind it.
    fn concerns(self, frames: &[u8]) -> bool {
        let Some((kind, used)) = number(frames) else { return false };
        let mut rest = &frames[used..];
        let mut next = || {
            let (value, used) = number(rest)?;
            rest = &rest[used..];
            Some(value)
        };
        match kind {
            0x07 | 0x1e => self.forbidden,
            0x02 | 0x03 => self.acks && next().is_some_and(|largest| largest >= BEYOND),
            0x1a => self.challenges,
            0x0c..=0x0f => {
                self.windows && next().and_then(|_| next()).is_some_and(|at| at >= BEYOND)
            }
            _ => false,
        }
    }
}

/// The same server, but deaf to this.
pub fn deaf(inner: Arc<dyn ServerConfig>, to: Deafness) -> Arc<dyn ServerConfig> {
    Arc::new(Deaf { inner, to })
}

struct Deaf<T> {
    to: Deafness,
    inner: T,
}

impl ServerConfig for Deaf<Arc<dyn ServerConfig>> {
    fn initial_keys(&self, version: u32, to: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, to)
    }

    fn retry_tag(&self, version: u32, first_to: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, first_to, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        let inner = Arc::clone(&self.inner).start_session(version, params);
        Box::new(DeafSession { to: self.to, inner, keys: 0 })
    }
}

struct DeafSession {
    to: Deafness,
    inner: Box<dyn Session>,
    /// Keys that were given: first those of the handshake, then those of everything behind it.
    keys: u32,
}

impl Session for DeafSession {
    fn initial_keys(&self, to: &ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(to, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(bytes)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let Keys { header, packet } = self.inner.write_handshake(out)?;
        self.keys += 1;
        let KeyPair { local, remote } = packet;
        let remote = if self.keys == 2 { heard_by(self.to, remote) } else { remote };
        Some(Keys { header, packet: KeyPair { local, remote } })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let KeyPair { local, remote } = self.inner.next_1rtt_keys()?;
        Some(KeyPair { local, remote: heard_by(self.to, remote) })
    }

    fn is_valid_retry(&self, first_to: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(first_to, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

fn heard_by(to: Deafness, inner: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
    Box::new(Deaf { to, inner })
}

impl PacketKey for Deaf<Box<dyn PacketKey>> {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_len: usize) {
        self.inner.encrypt(packet, bytes, header_len);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.inner.decrypt(packet, header, payload)?;
        if self.to.concerns(payload) {
            payload.fill(0);
            payload[0] = 1;
        }
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_passed_over() {
        let none = Deafness::default();
        let all = Deafness { forbidden: true, acks: true, windows: true, challenges: true };
        let far = [0x80, 0x0f, 0x42, 0x40];
        let ack = [&[2][..], &far, &[0, 0, 0]].concat();
        let stream = [&[0x0e, 12][..], &far, &[1, b'x']].concat();
        for frames in [&[0x1e][..], &[0x07, 1, 1], &[0x1a; 9], &ack, &stream] {
            assert!(all.concerns(frames) && !none.concerns(frames), "{frames:?}");
        }
        for frames in [&[][..], &[0x01], &[2, 5, 0, 0, 0], &[0x0e, 12, 5, 1, b'x'], &[0x0e]] {
            assert!(!all.concerns(frames), "{frames:?}");
        }
    }
}
