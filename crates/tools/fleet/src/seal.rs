//! Sealed messages, which only their agent can open (HPKE, RFC 9180, base mode). A plan contains
//! the secrets of its requests, which the server between manager and agents must not see.

use crate::FleetError;
use rustls::crypto::aws_lc_rs::hpke::DH_KEM_X25519_HKDF_SHA256_AES_256 as SUITE;
use rustls::crypto::hpke::{EncapsulatedSecret, Hpke, HpkePrivateKey, HpkePublicKey};

/// Context that sealed messages of this protocol are bound to.
const INFO: &[u8] = b"loadstone fleet plan 1";
/// Bytes of the encapsulated key before the message (X25519).
const ENCAPSULATED: usize = 32;

/// An agent's key pair: made when it starts, and never stored.
pub struct SealKey {
    public: Vec<u8>,
    secret: HpkePrivateKey,
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey")
    }
}

fn failed(what: &str, error: &rustls::Error) -> FleetError {
    FleetError(format!("cannot {what} a sealed plan: {error}"))
}

impl SealKey {
    /// # Errors
    /// Fails if the system provides no random bytes.
    pub fn generate() -> Result<SealKey, FleetError> {
        let pair = SUITE.generate_key_pair().map_err(|error| failed("make a key for", &error))?;
        let (HpkePublicKey(public), secret) = pair;
        Ok(SealKey { public, secret })
    }

    /// Returns the half that messages are sealed with.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// # Errors
    /// Fails if it was sealed for another agent, or modified in transit.
    pub fn open(&self, sealed: &[u8]) -> Result<Vec<u8>, FleetError> {
        let Some((key, text)) = sealed.split_at_checked(ENCAPSULATED) else {
            return Err(FleetError::new("a sealed plan that is too short"));
        };
        let key = EncapsulatedSecret(key.to_vec());
        SUITE.open(&key, INFO, &[], text, &self.secret).map_err(|error| failed("open", &error))
    }
}

/// Seals a message to the holder of the secret half of `public`.
///
/// # Errors
/// Fails for an invalid key.
pub fn seal(public: &[u8], message: &[u8]) -> Result<Vec<u8>, FleetError> {
    let key = HpkePublicKey(public.to_vec());
    let sealed = SUITE.seal(INFO, &[], message, &key);
    let (EncapsulatedSecret(mut out), text) = sealed.map_err(|error| failed("make", &error))?;
    out.extend_from_slice(&text);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_of_the_key_opens_it() {
        let (one, other) = (SealKey::generate().unwrap(), SealKey::generate().unwrap());
        let mut sealed = seal(one.public(), b"bearer s3cret").unwrap();
        assert!(!sealed.windows(6).any(|bytes| bytes == b"s3cret"));
        assert_eq!(one.open(&sealed).unwrap(), b"bearer s3cret");
        assert!(other.open(&sealed).is_err());
        *sealed.last_mut().unwrap() ^= 1;
        assert!(one.open(&sealed).is_err());
        assert!(one.open(b"short").is_err());
        assert!(seal(b"no key", b"").is_err());
    }
}
