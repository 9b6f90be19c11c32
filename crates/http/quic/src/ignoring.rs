//! The server's side of a handshake that ignores some client input: bugs planted in a server, to
//! show that they are found. For the library, a packet that starts with such a frame is replaced by
//! PING and PADDING.

use crate::wire::number;
use bytes::BytesMut;
use quinn_proto::crypto::{
    CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Kind of ignored input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredInput {
    /// HANDSHAKE_DONE and NEW_TOKEN, which only a server may send.
    pub forbidden: bool,
    /// ACK of a packet number beyond all sent ones.
    pub acks: bool,
    /// STREAM beyond the first 1,000,000 bytes of its stream.
    pub windows: bool,
    /// PATH_CHALLENGE.
    pub challenges: bool,
    /// Frames that are not permitted in Handshake packets.
    pub handshakes: bool,
    /// Packets with new keys.
    pub keys: bool,
    /// TLS errors.
    pub alerts: bool,
    /// Invalid transport parameters.
    pub parameters: bool,
    /// Ignores early data: a connection whose early data is rejected is closed.
    pub rejections: bool,
    /// The ownership of request streams: after the first frame that it ignores for this reason, and
    /// after the fourth unidirectional stream of a client, it makes a request of its own.
    pub streams: bool,
}

/// Packet numbers from here on were never sent, and stream offsets are beyond the windows of a
/// server.
const BEYOND: u64 = 1_000_000;

/// The fourth unidirectional stream of a client, which has three in HTTP/3: the control stream and
/// two of QPACK.
const FOURTH: u64 = 14;

impl IgnoredInput {
    /// Returns whether a Handshake packet that starts with these frames is ignored.
    fn concerns_handshake(self, frames: &[u8]) -> bool {
        // PADDING, PING, ACK, CRYPTO, CONNECTION_CLOSE (RFC 9000 section 12.5)
        let usual = [0, 1, 2, 3, 6, 0x1c];
        self.handshakes && number(frames).is_some_and(|(kind, _)| !usual.contains(&kind))
    }

    /// Returns whether the frame at the start, and thus the ones after it, are ignored.
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

    /// Returns whether the server makes its own request after these frames.
    fn is_provoked_by(self, frames: &[u8]) -> bool {
        let stream = number(frames).filter(|(kind, _)| (0x08..=0x0f).contains(kind));
        let id = stream.and_then(|(_, used)| number(&frames[used..]));
        self.streams && id.is_some_and(|(id, _)| id == FOURTH)
    }
}

/// Returns the same server, but ignoring this input.
pub fn ignoring(inner: Arc<dyn ServerConfig>, to: IgnoredInput) -> Arc<dyn ServerConfig> {
    Arc::new(IgnoringConfig { inner, to })
}

struct IgnoringConfig {
    to: IgnoredInput,
    inner: Arc<dyn ServerConfig>,
}

impl ServerConfig for IgnoringConfig {
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
        let provoked = Arc::default();
        Box::new(IgnoringSession { to: self.to, inner, keys: 0, heard: Vec::new(), provoked })
    }
}

struct IgnoringSession {
    to: IgnoredInput,
    inner: Box<dyn Session>,
    /// Number of key sets issued: first those of the handshake, then the later ones.
    keys: u32,
    /// The ClientHello, if its transport parameters matter.
    heard: Vec<u8>,
    provoked: Arc<AtomicBool>,
}

impl IgnoringSession {
    fn wrap(&self, inner: Box<dyn PacketKey>, place: PacketClass) -> Box<dyn PacketKey> {
        let provoked = Arc::clone(&self.provoked);
        Box::new(IgnoringKey { to: self.to, place, inner, provoked })
    }
}

impl Session for IgnoringSession {
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
        let (header, packet) = self.inner.early_crypto()?;
        Some((header, self.wrap(packet, PacketClass::Data)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        if (self.to.parameters || self.to.rejections) && self.heard.len() < HEARD_MAX {
            self.heard.extend_from_slice(bytes);
        }
        let read = match self.inner.read_handshake(bytes) {
            Err(_) if self.to.alerts => Ok(false),
            read => read,
        };
        let early = self.to.rejections && extension_in(&self.heard, EARLY_DATA).is_some();
        if early && read.is_ok() && self.inner.early_crypto().is_none() {
            let reason = "early data that cannot be read".to_owned();
            let code = TransportErrorCode::PROTOCOL_VIOLATION;
            return Err(TransportError { code, frame: None, reason });
        }
        read
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let read = self.inner.transport_parameters();
        if read.is_ok() || !self.to.parameters {
            return read;
        }
        let sound = extension_in(&self.heard, PARAMETERS).map(sound).unwrap_or_default();
        Ok(Some(TransportParameters::read(Side::Server, &mut sound.as_slice())?))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let Keys { header, packet } = self.inner.write_handshake(out)?;
        self.keys += 1;
        let KeyPair { local, remote } = packet;
        let place = if self.keys == 2 { PacketClass::Data } else { PacketClass::Handshake };
        let local = self.wrap(local, place);
        let remote = self.wrap(remote, place);
        Some(Keys { header, packet: KeyPair { local, remote } })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let KeyPair { local, remote } = self.inner.next_1rtt_keys()?;
        Some(KeyPair { local, remote: self.wrap(remote, PacketClass::NewKeys) })
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

/// Maximum number of stored bytes of a ClientHello.
const HEARD_MAX: usize = 16 << 10;
/// The extension for transport parameters (RFC 9001 section 8.2), and the one that announces early
/// data (RFC 8446 section 4.2.10).
const PARAMETERS: u16 = 0x39;
const EARLY_DATA: u16 = 42;

/// Returns the content of this extension of a ClientHello (RFC 8446 section 4.1.2); `None` means
/// absent or incomplete.
fn extension_in(hello: &[u8], wanted: u16) -> Option<&[u8]> {
    // message header, version, random
    let mut rest = hello.get(4 + 2 + 32..)?;
    let mut take = |length_bytes: usize| {
        let length =
            rest.get(..length_bytes)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let taken = rest.get(length_bytes..length_bytes + length)?;
        rest = &rest[length_bytes + length..];
        Some(taken)
    };
    // session id, cipher suites, compression methods
    for length_bytes in [1, 2, 1] {
        take(length_bytes)?;
    }
    let mut extensions = take(2)?;
    loop {
        let kind = u16::from_be_bytes(*extensions.first_chunk::<2>()?);
        let length = usize::from(u16::from_be_bytes(*extensions.get(2..)?.first_chunk::<2>()?));
        let content = extensions.get(4..4 + length)?;
        if kind == wanted {
            return Some(content);
        }
        extensions = &extensions[4 + length..];
    }
}

/// Returns the parameters that every client of ours sends, once each (RFC 9000 section 18.2).
fn sound(mut parameters: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut seen = Vec::new();
    while let Some((id, first)) = number(parameters)
        && let Some((length, second)) = number(&parameters[first..])
    {
        let end =
            usize::try_from(length).ok().and_then(|length| length.checked_add(first + second));
        let Some(end) = end.filter(|end| *end <= parameters.len()) else { break };
        if matches!(id, 4..=7 | 9 | 0x0f) && !seen.contains(&id) {
            seen.push(id);
            out.extend_from_slice(&parameters[..end]);
        }
        parameters = &parameters[end..];
    }
    out
}

/// The packets to which it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketClass {
    Handshake,
    Data,
    NewKeys,
}

struct IgnoringKey {
    to: IgnoredInput,
    place: PacketClass,
    inner: Box<dyn PacketKey>,
    /// True if the trigger of the server's own request has arrived and the request was not sent
    /// yet.
    provoked: Arc<AtomicBool>,
}

/// STREAM of the first request that a server would make, up to the end of its packet (RFC 9000
/// section 19.8).
const OWN_REQUEST: [u8; 2] = [0x08, 1];

impl PacketKey for IgnoringKey {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_len: usize) {
        let end = bytes.len().saturating_sub(self.inner.tag_len());
        let sent = bytes.get_mut(header_len..end).filter(|sent| sent.len() > OWN_REQUEST.len());
        if let Some(sent) = sent
            && self.place == PacketClass::Data
            && self.to.streams
            && self.provoked.swap(false, Ordering::Relaxed)
        {
            sent.fill(b'x');
            sent[..OWN_REQUEST.len()].copy_from_slice(&OWN_REQUEST);
        }
        self.inner.encrypt(packet, bytes, header_len);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        if self.place == PacketClass::NewKeys && self.to.keys {
            return Err(CryptoError);
        }
        self.inner.decrypt(packet, header, payload)?;
        let concerned = match self.place {
            PacketClass::Handshake => self.to.concerns_handshake(payload),
            PacketClass::Data | PacketClass::NewKeys => self.to.concerns(payload),
        };
        if concerned || self.place == PacketClass::Data && self.to.is_provoked_by(payload) {
            self.provoked.store(true, Ordering::Relaxed);
        }
        if concerned && !payload.is_empty() {
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
    fn only_named_frames_are_ignored() {
        let none = IgnoredInput::default();
        let (forbidden, acks, windows, challenges) = (true, true, true, true);
        let all = IgnoredInput { forbidden, acks, windows, challenges, ..none };
        let far = [0x80, 0x0f, 0x42, 0x40];
        let ack = [&[2][..], &far, &[0, 0, 0]].concat();
        let stream = [&[0x0e, 12][..], &far, &[1, b'x']].concat();
        for frames in [&[0x1e][..], &[0x07, 1, 1], &[0x1a; 9], &ack, &stream] {
            assert!(all.concerns(frames) && !none.concerns(frames), "{frames:?}");
        }
        for frames in [&[][..], &[0x01], &[2, 5, 0, 0, 0], &[0x0e, 12, 5, 1, b'x'], &[0x0e]] {
            assert!(!all.concerns(frames), "{frames:?}");
        }
        let streams = IgnoredInput { streams: true, ..none };
        assert!(streams.is_provoked_by(&[0x08, 14]) && !none.is_provoked_by(&[0x08, 14]));
        for frames in [&[][..], &[0x08], &[0x08, 10], &[0x04, 14]] {
            assert!(!streams.is_provoked_by(frames), "{frames:?}");
        }
    }

    #[test]
    fn parameters_are_found_in_a_client_hello_and_sifted() {
        let text = [4, 1, 9, 0x0a, 1, 21, 4, 1, 7, 0x0f, 2, 1, 2, 5, 9];
        let extensions = [&[0, 0x10, 0, 1, 7][..], &[0, 0x39, 0, text.len() as u8], &text].concat();
        let hello = [
            &[1, 0, 0, 0][..],
            &[3; 34],
            &[2, 8, 8],
            &[0, 2, 0x13, 1],
            &[1, 0],
            &[0, extensions.len() as u8],
            &extensions,
        ]
        .concat();
        assert_eq!(extension_in(&hello, PARAMETERS), Some(&text[..]));
        assert_eq!(extension_in(&hello, EARLY_DATA), None);
        assert_eq!(sound(&text), [4, 1, 9, 0x0f, 2, 1, 2]);
        for end in 0..hello.len() {
            assert_eq!(extension_in(&hello[..end], PARAMETERS), None, "{end}");
        }
    }
}
