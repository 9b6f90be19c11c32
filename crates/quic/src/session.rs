//! Handshakes of QUIC (RFC 9001): rustls behind quinn-proto's contract. The library has an implementation of its own;
//! this one also tells what was agreed on, as other sessions do, and takes transport parameters as bytes, which need
//! not be right.

use crate::Handshakes;
use aws_lc_rs::aead;
use quinn_proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::quic::{ClientConnection, Connection, KeyChange, Secrets, Suite, Version};
use rustls::{ClientConfig, CommonState, NamedGroup};
use rustls_pki_types::ServerName;
use sample::TlsFacts;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The only version spoken (RFC 9000 section 15).
const VERSION: u32 = 1;

/// What whoever has the settings of TLS knows of names, sessions and errors.
#[derive(Clone, Copy, Debug)]
pub struct SessionWords {
    /// `None`: no certificate can have this name.
    pub name: fn(&str) -> Option<ServerName<'static>>,
    /// What was agreed on, once the handshake is over.
    pub facts: fn(&CommonState) -> Option<TlsFacts>,
    pub why: fn(&rustls::Error) -> String,
}

/// Handshakes with these settings: TLS 1.3 alone (RFC 9001 section 4.2).
pub fn handshakes(config: Arc<ClientConfig>, words: SessionWords) -> Handshakes {
    Arc::new(TlsHandshakes { config, words })
}

struct TlsHandshakes {
    config: Arc<ClientConfig>,
    words: SessionWords,
}

impl crypto::ClientConfig for TlsHandshakes {
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
        let name = (self.words.name)(server_name).ok_or_else(refused)?;
        let made = started(self.config.clone(), name, parameters, self.words);
        Ok(Box::new(made.ok_or_else(refused)?))
    }
}

fn started(
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    parameters: Vec<u8>,
    words: SessionWords,
) -> Option<Handshake> {
    let connection = ClientConnection::new(config, Version::V1, name, parameters).ok()?;
    let connection = Connection::Client(connection);
    Some(Handshake { connection, suite: initial_suite()?, words, told: false, next: None })
}

/// Makes the handshakes of connections by hand, which have a store of tickets of their own.
#[derive(Clone, Debug)]
pub struct HandSessions {
    config: Arc<ClientConfig>,
    resuming: Arc<ClientConfig>,
    tickets: Arc<EarlyTickets>,
    words: SessionWords,
}

impl HandSessions {
    /// With these settings, but for resumption and early data.
    pub fn new(config: &ClientConfig, words: SessionWords) -> HandSessions {
        let tickets = Arc::new(EarlyTickets::default());
        let mut full = config.clone();
        full.resumption = Resumption::disabled();
        let mut resuming = config.clone();
        resuming.resumption = Resumption::store(tickets.clone());
        resuming.enable_early_data = true;
        HandSessions { config: Arc::new(full), resuming: Arc::new(resuming), tickets, words }
    }

    /// `resuming`: with a ticket where there is one, and tickets of this session are kept. `None`: the server can
    /// have no certificate for this name.
    pub(crate) fn start(
        &self,
        name: &str,
        parameters: Vec<u8>,
        (resuming, alpn): (bool, bool),
    ) -> Option<Box<dyn crypto::Session>> {
        let mut config = if resuming { self.resuming.clone() } else { self.config.clone() };
        if !alpn {
            Arc::make_mut(&mut config).alpn_protocols.clear();
        }
        let made = started(config, (self.words.name)(name)?, parameters, self.words)?;
        Some(Box::new(made))
    }

    /// There is a ticket of this server's that permits early data.
    pub(crate) fn has_ticket(&self, name: &str) -> bool {
        let Some(name) = (self.words.name)(name) else { return false };
        self.tickets.lock().iter().any(|(of, _)| *of == name)
    }
}

/// Tickets that are kept at most; the oldest is thrown away first.
const TICKETS_MAX: usize = 64;

/// Tickets that permit early data. The lock is the trait's demand; nobody else ever holds it.
#[derive(Default)]
struct EarlyTickets {
    kept: Mutex<VecDeque<(ServerName<'static>, Tls13ClientSessionValue)>>,
}

impl EarlyTickets {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(ServerName<'static>, Tls13ClientSessionValue)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for EarlyTickets {
    /// Without the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EarlyTickets").field("kept", &self.lock().len()).finish()
    }
}

impl ClientSessionStore for EarlyTickets {
    fn set_kx_hint(&self, _name: ServerName<'static>, _group: NamedGroup) {}

    fn kx_hint(&self, _name: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _name: ServerName<'static>, _value: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _name: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        if value.max_early_data_size() == 0 {
            return;
        }
        let mut kept = self.lock();
        if kept.len() == TICKETS_MAX {
            kept.pop_front();
        }
        kept.push_back((name, value));
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut kept = self.lock();
        let row = kept.iter().rposition(|(of, _)| of == name)?;
        kept.remove(row).map(|(_, value)| value)
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
    words: SessionWords,
    /// The protocol that was agreed on has been told.
    told: bool,
    next: Option<Secrets>,
}

impl crypto::Session for Handshake {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        let side = if side == Side::Client { rustls::Side::Client } else { rustls::Side::Server };
        packed(self.suite.keys(dst_cid, side, Version::V1))
    }

    /// [`TlsFacts`], once the handshake is over.
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        (self.words.facts)(&self.connection).map(|facts| -> Box<dyn Any> { Box::new(facts) })
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
                reason: (self.words.why)(&error),
            },
            None => TransportError {
                code: TransportErrorCode::PROTOCOL_VIOLATION,
                frame: None,
                reason: (self.words.why)(&error),
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
