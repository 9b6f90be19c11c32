//! A session with exposed keys: after an ordinary TLS 1.2 handshake this module creates and reads
//! its records. rustls performs the handshake and exports the keys; it would neither start a second
//! handshake nor report the alert that refuses one.

use crate::tls::error::{session_error, tls_error};
use crate::tls::session::facts_of;
use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce,
    UnboundKey,
};
use conduit::{TlsError, TlsSession};
use rustls::{ClientConnection, ConnectionTrafficSecrets};
use sample::TlsFacts;

/// Record types (RFC 5246 section 6.2.1).
const CHANGE_CIPHER: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION: u8 = 23;
/// Type, version and length of a record.
const HEADER: usize = 5;
/// Maximum size of a fragment, and of an encrypted one (RFC 5246 sections 6.2.1 and 6.2.3).
const FRAGMENT_MAX: usize = 1 << 14;
const CIPHERTEXT_MAX: usize = FRAGMENT_MAX + 2_048;
/// The part of a nonce that AES-GCM sends with each record (RFC 5288 section 3).
const EXPLICIT: usize = 8;
/// Maximum number of bytes kept of our side of a handshake, to find our Finished.
const SENT_MAX: usize = 256 << 10;
/// A Finished message: type, length and twelve bytes of verify_data (RFC 5246 section 7.4.9).
const FINISHED_HEAD: [u8; 4] = [20, 0, 0, 12];
const CLOSE_NOTIFY: [u8; 2] = [1, 0];

/// Client's end of one TLS 1.2 connection.
#[derive(Debug)]
pub(crate) struct OpenSession {
    state: OpenState,
    /// Received bytes that are not a complete record yet.
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    /// Our side of the handshake.
    sent: Vec<u8>,
    facts: Option<TlsFacts>,
    closed: bool,
    failed: Option<TlsError>,
}

#[derive(Debug)]
enum OpenState {
    Shaking(Box<ClientConnection>),
    Open(Box<Records>),
    /// No more bytes can be read or sent.
    Over,
}

impl OpenSession {
    pub(crate) fn new(connection: ClientConnection) -> OpenSession {
        OpenSession {
            state: OpenState::Shaking(Box::new(connection)),
            inbox: Vec::new(),
            outbox: Vec::new(),
            sent: Vec::new(),
            facts: None,
            closed: false,
            failed: None,
        }
    }

    /// Takes the first record from the input; `None` if it is incomplete.
    fn next_record(&mut self) -> Result<Option<Vec<u8>>, TlsError> {
        let [_, _, _, high, low, ..] = self.inbox[..] else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length > CIPHERTEXT_MAX {
            return Err(tls_error(format!("a record of {length} bytes, which is too long")));
        }
        let whole = HEADER + length;
        Ok((self.inbox.len() >= whole).then(|| self.inbox.drain(..whole).collect()))
    }

    fn take_in(&mut self, plaintext: &mut Vec<u8>) -> Result<(), TlsError> {
        while let Some(record) = self.next_record()? {
            match &mut self.state {
                OpenState::Shaking(connection) => {
                    connection
                        .read_tls(&mut &record[..])
                        .map_err(|error| tls_error(error.to_string()))?;
                    connection.process_new_packets().map_err(|error| session_error(&error))?;
                    self.open()?;
                }
                OpenState::Open(records) => {
                    let (kind, fragment) = records.read(&record)?;
                    self.closed |= kind == ALERT && fragment == CLOSE_NOTIFY;
                    plaintext.extend([kind, 3, 3]);
                    plaintext.extend((fragment.len() as u16).to_be_bytes());
                    plaintext.extend(fragment);
                }
                OpenState::Over => return Ok(()),
            }
        }
        Ok(())
    }

    /// Extracts the keys after the handshake.
    fn open(&mut self) -> Result<(), TlsError> {
        self.pump();
        let OpenState::Shaking(connection) = std::mem::replace(&mut self.state, OpenState::Over)
        else {
            return Ok(());
        };
        if connection.is_handshaking() {
            self.state = OpenState::Shaking(connection);
            return Ok(());
        }
        self.facts = facts_of(&connection);
        let secrets = connection
            .dangerous_extract_secrets()
            .map_err(|error| tls_error(format!("its keys cannot be exported: {error}")))?;
        let (ours, theirs) = (Half::new(secrets.tx)?, Half::new(secrets.rx)?);
        let finished = ours.finished_in(&self.sent)?;
        self.sent = Vec::new();
        self.state = OpenState::Open(Box::new(Records { ours, theirs, finished }));
        Ok(())
    }

    /// Moves handshake bytes to the output, and keeps a copy.
    fn pump(&mut self) {
        if let OpenState::Shaking(connection) = &mut self.state {
            let before = self.outbox.len();
            // writing into memory cannot fail; if it did, the waiting bytes would be sent with the
            // next call
            while connection.wants_write() && connection.write_tls(&mut self.outbox).is_ok() {}
            let room = SENT_MAX.saturating_sub(self.sent.len());
            self.sent.extend(self.outbox[before..].iter().take(room));
        }
    }
}

impl TlsSession for OpenSession {
    fn feed(&mut self, ciphertext: &[u8], plaintext: &mut Vec<u8>) -> Result<(), TlsError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.inbox.extend_from_slice(ciphertext);
        let result = self.take_in(plaintext);
        if let Err(error) = &result {
            self.pump();
            self.failed = Some(error.clone());
        }
        result
    }

    fn send(&mut self, plaintext: &[u8]) {
        for piece in plaintext.chunks(FRAGMENT_MAX) {
            if !self.send_record(APPLICATION, piece) {
                let error =
                    tls_error("data cannot be sent before the handshake is complete".into());
                self.failed.get_or_insert(error);
            }
        }
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        self.pump();
        out.append(&mut self.outbox);
    }

    fn handshaking(&self) -> bool {
        !matches!(self.state, OpenState::Open(_))
    }

    fn closed(&self) -> bool {
        self.closed
    }

    fn close(&mut self) {
        self.send_record(ALERT, &CLOSE_NOTIFY);
    }

    fn facts(&self) -> Option<TlsFacts> {
        self.facts.clone()
    }

    fn finished(&self) -> Option<Vec<u8>> {
        match &self.state {
            OpenState::Open(records) => Some(records.finished.clone()),
            OpenState::Shaking(_) | OpenState::Over => None,
        }
    }

    fn send_record(&mut self, kind: u8, fragment: &[u8]) -> bool {
        let OpenState::Open(records) = &mut self.state else { return false };
        match records.ours.seal(kind, fragment) {
            Some(record) => self.outbox.extend(record),
            None => return false,
        }
        true
    }
}

/// Both directions.
#[derive(Debug)]
struct Records {
    ours: Half,
    theirs: Half,
    finished: Vec<u8>,
}

impl Records {
    fn read(&mut self, record: &[u8]) -> Result<(u8, Vec<u8>), TlsError> {
        let kind = record[0];
        let fragment = self.theirs.open(self.theirs.next, kind, &record[HEADER..]);
        self.theirs.next += 1;
        Ok((kind, fragment.ok_or_else(|| tls_error("a record that cannot be decrypted".into()))?))
    }
}

/// One direction.
#[derive(Debug)]
struct Half {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    /// The sequence number of the next record.
    next: u64,
}

impl Half {
    fn new((next, secrets): (u64, ConnectionTrafficSecrets)) -> Result<Half, TlsError> {
        type Found<'a> = (&'static Algorithm, &'a [u8], &'a [u8]);
        let (algorithm, key, iv): Found<'_> = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => {
                (&AES_128_GCM, key.as_ref(), iv.as_ref())
            }
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => {
                (&AES_256_GCM, key.as_ref(), iv.as_ref())
            }
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (&CHACHA20_POLY1305, key.as_ref(), iv.as_ref())
            }
            _ => return Err(tls_error("a cipher suite whose keys cannot be exported".into())),
        };
        let unusable = || tls_error("keys that do not fit their cipher".into());
        let key = UnboundKey::new(algorithm, key).map_err(|_| unusable())?;
        let iv = iv.try_into().map_err(|_| unusable())?;
        Ok(Half { key: LessSafeKey::new(key), iv, next })
    }

    /// Returns the explicit part of a record's nonce, which precedes its ciphertext.
    fn explicit(&self) -> usize {
        if self.key.algorithm() == &CHACHA20_POLY1305 { 0 } else { EXPLICIT }
    }

    /// Returns the nonce of a record of ours: RFC 7905 section 2, which AES-GCM may use as well.
    fn nonce(&self, sequence: u64) -> [u8; NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, more) in nonce[NONCE_LEN - 8..].iter_mut().zip(sequence.to_be_bytes()) {
            *byte ^= more;
        }
        nonce
    }

    /// Returns the next record; `None` if the fragment is too long for a record.
    fn seal(&mut self, kind: u8, fragment: &[u8]) -> Option<Vec<u8>> {
        if fragment.len() > FRAGMENT_MAX {
            return None;
        }
        let nonce = self.nonce(self.next);
        let aad = Aad::from(additional(self.next, kind, fragment.len()));
        let mut sealed = fragment.to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(unique, aad, &mut sealed).ok()?;
        self.next += 1;
        let explicit = &nonce[NONCE_LEN - self.explicit()..];
        let length = (explicit.len() + sealed.len()) as u16;
        let mut record = vec![kind, 3, 3];
        record.extend(length.to_be_bytes());
        record.extend(explicit);
        record.extend(sealed);
        Some(record)
    }

    /// Returns the content of the record with this number; `None` if it was not sealed with the
    /// key.
    fn open(&self, sequence: u64, kind: u8, ciphertext: &[u8]) -> Option<Vec<u8>> {
        let (explicit, sealed) = ciphertext.split_at_checked(self.explicit())?;
        let mut nonce = self.nonce(sequence);
        nonce[NONCE_LEN - explicit.len()..].copy_from_slice(explicit);
        let length = sealed.len().checked_sub(self.key.algorithm().tag_len())?;
        let aad = Aad::from(additional(sequence, kind, length));
        let mut opened = sealed.to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        let plain = self.key.open_in_place(unique, aad, &mut opened).ok()?.len();
        opened.truncate(plain);
        Some(opened)
    }

    /// Returns the verify_data of the Finished message in our output: the first encrypted record.
    fn finished_in(&self, sent: &[u8]) -> Result<Vec<u8>, TlsError> {
        let mut changed = false;
        for (kind, body) in records(sent) {
            if changed && kind == HANDSHAKE {
                let message = self.open(0, kind, body).unwrap_or_default();
                let data = message.strip_prefix(&FINISHED_HEAD);
                return data
                    .map(<[u8]>::to_vec)
                    .ok_or_else(|| tls_error("our own Finished cannot be read".into()));
            }
            changed |= kind == CHANGE_CIPHER;
        }
        Err(tls_error("the handshake went without our Finished".into()))
    }
}

/// Returns the additional data of a record (RFC 5246 section 6.2.3.3).
fn additional(sequence: u64, kind: u8, length: usize) -> [u8; 13] {
    let mut data = [0; 13];
    data[..8].copy_from_slice(&sequence.to_be_bytes());
    data[8..11].copy_from_slice(&[kind, 3, 3]);
    data[11..].copy_from_slice(&(length as u16).to_be_bytes());
    data
}

/// Returns the complete records of a stream: types and content.
fn records(mut stream: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [kind, _, _, high, low, rest @ ..] = stream else { return None };
        let (body, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
        stream = rest;
        Some((*kind, body))
    })
}
