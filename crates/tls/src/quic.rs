//! Handshakes for QUIC (RFC 9001): rustls behind quinn-proto's contract. The library has an
//! implementation of its own; this one also tells what was agreed on, as other sessions do: the cipher,
//! the group, and whether a session was resumed.

use crate::client::parse_name;
use crate::session::facts_of_state;
use aws_lc_rs::aead;
use quinn_proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::ClientConfig;
use rustls::quic::{ClientConnection, Connection, KeyChange, Secrets, Suite, Version};
use std::any::Any;
use std::sync::Arc;

/// The only version spoken (RFC 9000 section 15).
const VERSION: u32 = 1;

/// Makes the handshakes of one worker.
pub(crate) struct Handshakes {
    config: Arc<ClientConfig>,
}

impl Handshakes {
    pub(crate) fn new(config: Arc<ClientConfig>) -> Handshakes {
        Handshakes { config }
    }
}

impl crypto::ClientConfig for Handshakes {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        if version != VERSION {
            return Err(ConnectError::UnsupportedVersion);
        }
        let mut parameters = Vec::new();
        params.write(&mut parameters);
        let refused = || ConnectError::InvalidServerName(server_name.to_owned());
        let name = parse_name(server_name).map_err(|_| refused())?;
        let config = self.config.clone();
        let connection = ClientConnection::new(config, Version::V1, name, parameters);
        let (connection, suite) = (connection.map_err(|_| refused())?, initial_suite());
        Ok(Box::new(Handshake {
            connection: Connection::Client(connection),
            suite: suite.ok_or(ConnectError::EndpointStopping)?,
            told: false,
            next: None,
        }))
    }
}

/// The suite of the first packets is fixed (RFC 9001 section 5.2), whatever suites TLS may agree on.
fn initial_suite() -> Option<Suite> {
    use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()
}

/// One connection's.
struct Handshake {
    connection: Connection,
    suite: Suite,
    /// The protocol that was agreed on has been told.
    told: bool,
    next: Option<Secrets>,
}

impl crypto::Session for Handshake {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        let side = if side == Side::Client { rustls::Side::Client } else { rustls::Side::Server };
        packed(self.suite.keys(dst_cid, side, Version::V1))
    }

    /// [`sample::TlsFacts`], once the handshake is over.
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        facts_of_state(&self.connection).map(|facts| -> Box<dyn Any> { Box::new(facts) })
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        // the library takes the server's former parameters for given where there are keys
        self.connection.quic_transport_parameters()?;
        let keys = self.connection.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.connection {
            Connection::Client(client) => Some(client.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.connection.read_hs(bytes).map_err(|error| match self.connection.alert() {
            Some(alert) => TransportError {
                code: TransportErrorCode::crypto(alert.into()),
                frame: None,
                reason: crate::error::session_error(&error).text,
            },
            None => TransportError {
                code: TransportErrorCode::PROTOCOL_VIOLATION,
                frame: None,
                reason: crate::error::session_error(&error).text,
            },
        })?;
        let news = !self.told && self.connection.alpn_protocol().is_some();
        self.told |= news;
        Ok(news)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut bytes) = self.connection.quic_transport_parameters() else { return Ok(None) };
        Ok(Some(TransportParameters::read(Side::Client, &mut bytes)?))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        match self.connection.write_hs(out)? {
            KeyChange::Handshake { keys } => Some(packed(keys)),
            KeyChange::OneRtt { keys, next } => {
                self.next = Some(next);
                Some(packed(keys))
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    /// RFC 9001 section 5.8.
    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some(at) = payload.len().checked_sub(TAG) else { return false };
        let mut pseudo = vec![orig_dst_cid.len() as u8];
        pseudo.extend_from_slice(orig_dst_cid);
        pseudo.extend_from_slice(header);
        pseudo.extend_from_slice(&payload[..at]);
        let Ok(key) = aead::UnboundKey::new(&aead::AES_128_GCM, &RETRY_KEY) else { return false };
        let nonce = aead::Nonce::assume_unique_for_key(RETRY_NONCE);
        let mut tag = payload[at..].to_vec();
        aead::LessSafeKey::new(key).open_in_place(nonce, aead::Aad::from(&pseudo), &mut tag).is_ok()
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let made = self.connection.export_keying_material(output, label, Some(context));
        made.map(|_| ()).map_err(|_| ExportKeyingMaterialError)
    }
}

/// Bytes of the tag behind a Retry packet, its key and its nonce (RFC 9001 section 5.8).
const TAG: usize = 16;
const RETRY_KEY: [u8; 16] = [
    0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e,
];
const RETRY_NONCE: [u8; 12] =
    [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

fn packed(keys: rustls::quic::Keys) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(keys.local.header),
            remote: Box::new(keys.remote.header),
        },
        packet: KeyPair {
            local: Box::new(keys.local.packet),
            remote: Box::new(keys.remote.packet),
        },
    }
}
