//! A ClientHello, byte by byte, for messages that no TLS library would send.

/// Variable parts of a ClientHello. Every current server supports the rest: TLS 1.3 and 1.2,
/// X25519, the usual suites.
#[derive(Clone, Debug, Default)]
pub struct Hello {
    /// Name for SNI; `None` omits the extension.
    pub name: Option<Vec<u8>>,
    /// The only ALPN protocol; `None` omits the extension.
    pub protocol: Option<Vec<u8>>,
    /// Within a TLS 1.2 session, the verify_data of our Finished (RFC 5746 section 3.5).
    pub again: Option<Vec<u8>>,
}

const SUITES_13: [u16; 3] = [0x1301, 0x1302, 0x1303];
const SUITES: [u16; 8] = [0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0x009c];
const SIGNATURES: [u16; 8] = [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];
/// Record types (RFC 8446 section 5.1).
pub const ALERT: u8 = 21;
pub const HANDSHAKE: u8 = 22;

impl Hello {
    /// Returns the handshake message (RFC 8446 section 4.1.2) without a record.
    pub fn message(&self) -> Vec<u8> {
        let newest = self.again.is_none();
        let suites: Vec<u16> = SUITES_13.into_iter().filter(|_| newest).chain(SUITES).collect();
        let session: &[u8] = if newest { &[0xa5; 32] } else { &[] };
        let mut body = vec![3, 3];
        body.extend([0x5a; 32]);
        body.extend(with_length::<1>(session));
        body.extend(with_length::<2>(&words(&suites)));
        body.extend([1, 0]);
        body.extend(with_length::<2>(&self.extensions()));
        let mut message = vec![1];
        message.extend(with_length::<3>(&body));
        message
    }

    /// Returns the message in one record.
    pub fn record(&self) -> Vec<u8> {
        record(HANDSHAKE, &self.message())
    }

    fn extensions(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |kind: u16, content: &[u8]| {
            out.extend(kind.to_be_bytes());
            out.extend(with_length::<2>(content));
        };
        if let Some(name) = &self.name {
            let mut entry = vec![0];
            entry.extend(with_length::<2>(name));
            put(0, &with_length::<2>(&entry));
        }
        put(10, &with_length::<2>(&words(&[0x001d, 0x0017, 0x0018])));
        put(11, &[1, 0]);
        put(13, &with_length::<2>(&words(&SIGNATURES)));
        if let Some(protocol) = &self.protocol {
            put(16, &with_length::<2>(&with_length::<1>(protocol)));
        }
        // extended master secret, required again by a session that had it (RFC 7627)
        put(23, &[]);
        if self.again.is_none() {
            put(43, &with_length::<1>(&words(&[0x0304, 0x0303])));
            put(45, &[1, 1]);
            put(51, &with_length::<2>(&key_share()));
        }
        put(0xff01, &with_length::<1>(self.again.as_deref().unwrap_or_default()));
        out
    }
}

/// Returns the name for SNI; `None` for an address (RFC 6066 section 3).
pub fn name_of(host: &str) -> Option<Vec<u8>> {
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    (!is_address).then(|| host.as_bytes().to_vec())
}

/// Returns X25519's base point: a valid key that is never used.
fn key_share() -> Vec<u8> {
    let mut key = [0; 32];
    key[0] = 9;
    let mut share = vec![0x00, 0x1d];
    share.extend(with_length::<2>(&key));
    share
}

/// Returns a record with this fragment.
pub fn record(kind: u8, fragment: &[u8]) -> Vec<u8> {
    let mut out = vec![kind, 3, 1];
    out.extend(with_length::<2>(fragment));
    out
}

/// Returns bytes preceded by their length in `N` bytes.
fn with_length<const N: usize>(bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u64).to_be_bytes();
    let mut out = length[8 - N..].to_vec();
    out.extend_from_slice(bytes);
    out
}

fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}
