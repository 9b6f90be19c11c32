//! QUIC handshakes (RFC 9001): rustls behind quinn-proto's interface. The library has its own
//! implementation; this one also reports the negotiated values, as other sessions do, and takes
//! transport parameters as bytes, which need not be valid.

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

/// The only supported version (RFC 9000 section 15).
const VERSION: u32 = 1;

/// Functions for names, session facts and errors, provided by the owner of the TLS settings.
#[derive(Clone, Copy, Debug)]
pub struct SessionWords {
    /// Parses the name of a server; `None` if no certificate can have it.
    pub name: fn(&str) -> Option<ServerName<'static>>,
    /// Returns the negotiated parameters, once the handshake is complete.
    pub facts: fn(&CommonState) -> Option<TlsFacts>,
    pub why: fn(&rustls::Error) -> String,
}

/// Returns handshakes with these settings: TLS 1.3 only (RFC 9001 section 4.2).
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
    let suite = initial_suite()?;
    Some(Handshake { connection, suite, words, reported: false, next: None, spoiled: None })
}

/// Session tickets that a crafted connection uses and stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tickets {
    None,
    Sound,
    /// Tickets with one flipped bit, which the server must reject.
    Stale,
}

/// Performs the handshakes of crafted connections, which have their own ticket store.
#[derive(Clone, Debug)]
pub struct HandSessions {
    config: Arc<ClientConfig>,
    sound: Resuming,
    stale: Resuming,
    words: SessionWords,
}

/// Settings with a ticket store.
#[derive(Clone, Debug)]
struct Resuming {
    config: Arc<ClientConfig>,
    tickets: Arc<EarlyTickets>,
}

impl Resuming {
    fn new(config: &ClientConfig) -> Resuming {
        let tickets = Arc::new(EarlyTickets::default());
        let mut config = config.clone();
        config.resumption = Resumption::store(tickets.clone());
        config.enable_early_data = true;
        Resuming { config: Arc::new(config), tickets }
    }
}

impl HandSessions {
    /// Creates a factory with these settings, except for resumption and early data.
    pub fn new(config: &ClientConfig, words: SessionWords) -> HandSessions {
        let sound = Resuming::new(config);
        let stale = Resuming::new(config);
        let mut full = config.clone();
        full.resumption = Resumption::disabled();
        HandSessions { config: Arc::new(full), sound, stale, words }
    }

    fn for_tickets(&self, tickets: Tickets) -> Option<&Resuming> {
        match tickets {
            Tickets::None => None,
            Tickets::Sound => Some(&self.sound),
            Tickets::Stale => Some(&self.stale),
        }
    }

    /// Creates a session; uses a ticket of this kind if there is one, and stores its tickets as
    /// this kind. `alpn`: the protocol is offered. `None` if no certificate can have this name.
    pub(crate) fn start(
        &self,
        name: &str,
        parameters: Vec<u8>,
        (tickets, alpn): (Tickets, bool),
    ) -> Option<Box<dyn crypto::Session>> {
        let mut config = self.for_tickets(tickets).map_or(&self.config, |one| &one.config).clone();
        if !alpn {
            Arc::make_mut(&mut config).alpn_protocols.clear();
        }
        let mut made = started(config, (self.words.name)(name)?, parameters, self.words)?;
        made.spoiled = (tickets == Tickets::Stale).then(Vec::new);
        Some(Box::new(made))
    }

    /// Returns whether there is a ticket of this kind for this server that permits early data.
    pub(crate) fn has_ticket(&self, name: &str, tickets: Tickets) -> bool {
        let Some(name) = (self.words.name)(name) else { return false };
        self.for_tickets(tickets)
            .is_some_and(|one| one.tickets.lock().iter().any(|(of, _)| *of == name))
    }

    /// Discards this server's tickets of a kind.
    pub(crate) fn forget(&self, name: &str, tickets: Tickets) {
        if let (Some(name), Some(one)) = ((self.words.name)(name), self.for_tickets(tickets)) {
            one.tickets.lock().retain(|(of, _)| *of != name);
        }
    }
}

/// Maximum number of stored tickets; the oldest is discarded first.
const TICKETS_MAX: usize = 64;

/// Tickets that permit early data. The lock is required by the trait; it is never contended.
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
    /// Formats without the secrets.
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

/// Returns the cipher suite of the first packets, which is fixed (RFC 9001 section 5.2), whatever
/// suites TLS may negotiate.
fn initial_suite() -> Option<Suite> {
    use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()
}

/// Handshake of one connection.
struct Handshake {
    connection: Connection,
    suite: Suite,
    words: SessionWords,
    /// The negotiated protocol was reported.
    reported: bool,
    next: Option<Secrets>,
    /// Incomplete data after the handshake, if tickets will be corrupted.
    spoiled: Option<Vec<u8>>,
}

/// The TLS message with a ticket, and the header length of messages (RFC 8446 sections 4 and
/// 4.6.1).
const NEW_SESSION_TICKET: u8 = 4;
const MESSAGE_HEAD: usize = 4;
/// Maximum number of bytes that wait for the rest of their message.
const WAITING_MAX: usize = 128 << 10;

/// Takes complete messages received after a handshake, and flips one bit of each ticket. The
/// session itself is not affected: its keys depend on earlier data (section 7.1).
fn flip_ticket_bits(waiting: &mut Vec<u8>, came: &[u8]) -> Vec<u8> {
    waiting.extend_from_slice(came);
    let mut at = 0;
    while let Some(&[kind, high, mid, low]) = waiting[at..].first_chunk::<MESSAGE_HEAD>() {
        let length = u32::from_be_bytes([0, high, mid, low]) as usize;
        let Some(message) = waiting.get_mut(at..at + MESSAGE_HEAD + length) else { break };
        if kind == NEW_SESSION_TICKET
            && let Some(byte) = ticket_in(message)
        {
            *byte ^= 1;
        }
        at += MESSAGE_HEAD + length;
    }
    // data that never becomes a message is passed on unchanged
    let end = if waiting.len() - at > WAITING_MAX { waiting.len() } else { at };
    waiting.drain(..end).collect()
}

/// Returns the last byte of the ticket of a NewSessionTicket.
fn ticket_in(message: &mut [u8]) -> Option<&mut u8> {
    // lifetime and age addition, then a nonce after its length
    let nonce_at = MESSAGE_HEAD + 8;
    let ticket_at = nonce_at + 1 + usize::from(*message.get(nonce_at)?);
    let length = usize::from(u16::from_be_bytes(*message.get(ticket_at..)?.first_chunk()?));
    message.get_mut(ticket_at + 2..ticket_at + 2 + length)?.last_mut()
}

impl crypto::Session for Handshake {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        let side = if side == Side::Client { rustls::Side::Client } else { rustls::Side::Server };
        packed(self.suite.keys(dst_cid, side, Version::V1))
    }

    /// Returns [`TlsFacts`], once the handshake is complete.
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        (self.words.facts)(&self.connection).map(|facts| -> Box<dyn Any> { Box::new(facts) })
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        // the library assumes that the server's former parameters exist if there are keys
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
        let behind = !self.connection.is_handshaking();
        let changed = self
            .spoiled
            .as_mut()
            .filter(|_| behind)
            .map(|waiting| flip_ticket_bits(waiting, bytes));
        let bytes = changed.as_deref().unwrap_or(bytes);
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
        let news = !self.reported && self.connection.alpn_protocol().is_some();
        self.reported |= news;
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

    /// Returns whether the integrity tag of a Retry packet is valid (RFC 9001 section 5.8).
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

/// Length of the integrity tag of a Retry packet, its key and its nonce (RFC 9001 section 5.8).
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_of_each_ticket_is_changed_and_nothing_else() {
        let body = [&[0, 0, 1, 0, 9, 9, 9, 9][..], &[2, 7, 7], &[0, 3, 1, 2, 4], &[0, 0]].concat();
        let message = [&[4, 0, 0, body.len() as u8][..], &body].concat();
        let mut changed = message.clone();
        changed[4 + 8 + 3 + 2 + 2] = 5;
        let other = [24, 0, 0, 1, 1];
        let sent = [&message[..], &other, &message].concat();
        let expected = [&changed[..], &other, &changed].concat();
        for size in [1, 5, sent.len()] {
            let mut waiting = Vec::new();
            let out: Vec<u8> =
                sent.chunks(size).flat_map(|part| flip_ticket_bits(&mut waiting, part)).collect();
            assert_eq!(out, expected, "pieces of {size} bytes");
            assert!(waiting.is_empty());
        }
        for cut in MESSAGE_HEAD..message.len() {
            let mut short = [&[4, 0, 0, (cut - MESSAGE_HEAD) as u8], &message[4..cut]].concat();
            // no truncation panics
            assert!(ticket_in(&mut short).is_none_or(|byte| *byte == 4));
        }
    }
}
