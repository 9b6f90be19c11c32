//! One session: rustls's buffered connection, fed and drained by hand.

use crate::tls::error::{session_error, tls_error};
use conduit::{TlsError, TlsSession};
use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};
use sample::TlsFacts;
use std::io::{BufRead, Write};
use units::quoted;

/// Client's end of one TLS connection.
#[derive(Debug)]
pub struct ClientSession {
    connection: ClientConnection,
    /// The first received bytes, for the error message if the peer does not use TLS.
    opening: Opening,
    closed: bool,
    /// Data sent before the handshake completed, until the server accepts or rejects it.
    early: Vec<u8>,
    early_read: Option<bool>,
    /// The error that ended the session; no input is accepted after it.
    failed: Option<TlsError>,
}

impl ClientSession {
    pub(crate) fn new(mut connection: ClientConnection) -> ClientSession {
        // a request of any size is accepted at once; the plan bounds its size
        connection.set_buffer_limit(None);
        ClientSession {
            connection,
            opening: Opening::default(),
            closed: false,
            early: Vec::new(),
            early_read: None,
            failed: None,
        }
    }

    fn take_in(&mut self, mut rest: &[u8], plaintext: &mut Vec<u8>) -> Result<(), TlsError> {
        // Data after close_notify must be ignored (RFC 8446 §6.1).
        while !rest.is_empty() && !self.closed {
            self.connection
                .read_tls(&mut rest)
                .map_err(|error| tls_error(format!("a TLS message too long: {error}")))?;
            let state = self.connection.process_new_packets();
            self.settle_early();
            // complete data before a broken record belongs to the application
            self.drain_plaintext(plaintext);
            match state {
                Ok(state) => self.closed = state.peer_has_closed(),
                Err(error) => return Err(self.explain(&error)),
            }
        }
        Ok(())
    }

    /// Appends everything decrypted so far to `plaintext`. `closed` reports an empty or ended
    /// reader.
    fn drain_plaintext(&mut self, plaintext: &mut Vec<u8>) {
        let mut reader = self.connection.reader();
        while let Ok(chunk) = reader.fill_buf() {
            let count = chunk.len();
            if count == 0 {
                return;
            }
            plaintext.extend_from_slice(chunk);
            reader.consume(count);
        }
    }

    /// Sends data again after the handshake that the server did not accept early.
    fn settle_early(&mut self) {
        if self.early.is_empty() || self.connection.is_handshaking() {
            return;
        }
        let early = std::mem::take(&mut self.early);
        let read = self.connection.is_early_data_accepted();
        self.early_read = Some(read);
        if !read {
            self.send(&early);
        }
    }

    fn explain(&self, error: &rustls::Error) -> TlsError {
        let plain = session_error(error);
        match self.opening.not_tls() {
            Some(bytes) if self.connection.is_handshaking() => tls_error(format!(
                "the response is not TLS but starts with {}: is this a plain-text port? ({})",
                quoted(&String::from_utf8_lossy(bytes)),
                plain.text
            )),
            _ => plain,
        }
    }
}

impl TlsSession for ClientSession {
    fn feed(&mut self, ciphertext: &[u8], plaintext: &mut Vec<u8>) -> Result<(), TlsError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.opening.note(ciphertext);
        let result = self.take_in(ciphertext, plaintext);
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }

    fn send(&mut self, plaintext: &[u8]) {
        if let Err(error) = self.connection.writer().write_all(plaintext) {
            // reported by the next feed; there is no caller to notify here
            self.failed.get_or_insert_with(|| tls_error(error.to_string()));
        }
    }

    fn send_early(&mut self, plaintext: &[u8]) -> bool {
        let Some(mut early) = self.connection.early_data() else { return false };
        // the server's ticket limits early data; a request is not split
        if early.bytes_left() < plaintext.len() || early.write_all(plaintext).is_err() {
            return false;
        }
        self.early.extend_from_slice(plaintext);
        true
    }

    fn early_read(&self) -> Option<bool> {
        self.early_read
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        // writing into memory cannot fail; if it did, the waiting bytes would be sent with the next
        // call
        while self.connection.wants_write() && self.connection.write_tls(out).is_ok() {}
    }

    fn handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn closed(&self) -> bool {
        self.closed
    }

    fn close(&mut self) {
        self.connection.send_close_notify();
    }

    fn facts(&self) -> Option<TlsFacts> {
        facts_of(&self.connection)
    }
}

/// Returns negotiated parameters; `None` during the handshake.
pub(crate) fn facts_of(connection: &ClientConnection) -> Option<TlsFacts> {
    let state: &rustls::CommonState = connection;
    facts_of_state(state)
}

/// Returns the facts of any connection.
pub(crate) fn facts_of_state(connection: &rustls::CommonState) -> Option<TlsFacts> {
    if connection.is_handshaking() {
        return None;
    }
    let version = match connection.protocol_version()? {
        ProtocolVersion::TLSv1_2 => "TLSv1.2".to_owned(),
        ProtocolVersion::TLSv1_3 => "TLSv1.3".to_owned(),
        other => format!("{other:?}"),
    };
    let cipher = format!("{:?}", connection.negotiated_cipher_suite()?.suite());
    let group = connection.negotiated_key_exchange_group();
    let alpn = connection.alpn_protocol().unwrap_or_default();
    let certificate = connection.peer_certificates().and_then(<[_]>::first);
    Some(TlsFacts {
        version,
        cipher,
        group: group.map(|group| format!("{:?}", group.name())).unwrap_or_default(),
        resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        key_bits: certificate.map_or(0, crate::tls::key_bits::key_bits),
        alpn: String::from_utf8_lossy(alpn).into_owned(),
    })
}

/// The first bytes of the peer.
#[derive(Debug, Default)]
struct Opening {
    bytes: [u8; 24],
    len: usize,
}

impl Opening {
    fn note(&mut self, more: &[u8]) {
        let room = &mut self.bytes[self.len..];
        let count = room.len().min(more.len());
        room[..count].copy_from_slice(&more[..count]);
        self.len += count;
    }

    /// Returns the bytes if the first is not a content type of a TLS record (RFC 8446 §5.1: 20 to
    /// 23).
    fn not_tls(&self) -> Option<&[u8]> {
        let bytes = &self.bytes[..self.len];
        bytes.first().filter(|first| !(20..=23).contains(*first)).map(|_| bytes)
    }
}
