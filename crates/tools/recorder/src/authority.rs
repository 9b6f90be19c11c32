//! A certificate authority for this machine only: its key signs the certificates that replace those
//! of recorded servers.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Name of the authority in lists of certificates.
const NAME: &str = "Loadstone recorder (this machine only)";
/// Maximum number of names with a certificate; beyond it, certificates are created again.
const NAMES_MAX: usize = 1_000;
/// Validity of a certificate for a server. Apple's clients accept at most 398 days.
const LEAF_VALID: Duration = Duration::from_secs(90 * 86_400);
/// Time before now from which certificates are valid, for clients whose clock is slow.
const CLOCK_BEHIND_MAX: Duration = Duration::from_secs(86_400);

/// The authority, and the certificates that it has signed.
#[derive(Debug)]
pub struct LocalAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
    key: String,
    made: Mutex<BTreeMap<String, Arc<ServerConfig>>>,
}

fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

impl LocalAuthority {
    /// Generates an authority with a new key.
    ///
    /// # Errors
    /// Fails if no key can be generated.
    pub fn generate() -> Result<LocalAuthority, String> {
        let cannot = |error: rcgen::Error| format!("cannot make a certificate: {error}");
        let key = KeyPair::generate().map_err(cannot)?;
        let certificate = params().self_signed(&key).map_err(cannot)?.pem();
        Ok(LocalAuthority::new(certificate, key.serialize_pem(), key))
    }

    /// Loads an existing authority from its certificate and key as PEM.
    ///
    /// # Errors
    /// Fails if the key is invalid.
    pub fn from_pem(certificate: &str, key: &str) -> Result<LocalAuthority, String> {
        let pair = KeyPair::from_pem(key).map_err(|error| format!("its key is wrong: {error}"))?;
        Ok(LocalAuthority::new(certificate.to_owned(), key.to_owned(), pair))
    }

    fn new(certificate: String, key: String, pair: KeyPair) -> LocalAuthority {
        let issuer = Issuer::new(params(), pair);
        LocalAuthority { issuer, certificate, key, made: Mutex::default() }
    }

    /// Returns the certificate as PEM, for clients that must trust it.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the private key as PEM.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns TLS settings that impersonate a server of this name.
    ///
    /// # Errors
    /// Fails if the name cannot be in a certificate.
    pub(crate) fn server(&self, name: &str) -> Result<Arc<ServerConfig>, String> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.get(name) {
            return Ok(known.clone());
        }
        let config = Arc::new(self.make(name).map_err(|error| format!("{name}: {error}"))?);
        if made.len() >= NAMES_MAX {
            made.clear();
        }
        made.insert(name.to_owned(), config.clone());
        Ok(config)
    }

    fn make(&self, name: &str) -> Result<ServerConfig, String> {
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let params = CertificateParams::new(vec![name.to_owned()]);
        let mut params = params.map_err(|error| error.to_string())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let now = SystemTime::now();
        params.not_before = (now - CLOCK_BEHIND_MAX).into();
        params.not_after = (now + LEAF_VALID).into();
        let leaf = params.signed_by(&key, &self.issuer).map_err(|error| error.to_string())?;
        let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], secret)
            });
        let mut config = config.map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}
