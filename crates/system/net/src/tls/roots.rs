//! Trust anchors: the user's own, or the system's.

use crate::tls::{FileRole, SetupError, pem};
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;

/// Loads the anchors of `--ca`. Each must be usable: a partly understood file would fail later,
/// during the handshake, with a message that does not name it.
pub(crate) fn own(
    text: &[u8],
) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), SetupError> {
    let certificates = pem::certificates(FileRole::Ca, text)?;
    let mut store = RootCertStore::empty();
    for (index, certificate) in certificates.iter().enumerate() {
        store.add(certificate.clone()).map_err(|error| SetupError::File {
            role: FileRole::Ca,
            why: format!("has a certificate (number {}) that cannot be used: {error}", index + 1),
        })?;
    }
    Ok((store, certificates))
}

/// Returns the system's anchors; unparsable certificates are skipped, as usual.
pub(crate) fn system() -> Result<RootCertStore, SetupError> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(found.certs);
    if !store.is_empty() {
        return Ok(store);
    }
    let why = match found.errors.first() {
        Some(error) => error.to_string(),
        None => "none were found".to_owned(),
    };
    Err(SetupError::NoRoots { why })
}
