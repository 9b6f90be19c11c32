//! Certificates and keys from PEM text (RFC 7468).

use crate::tls::{FileRole, SetupError};
use rustls_pki_types::pem::{Error, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Returns all certificates of a file; at least one.
pub(crate) fn certificates(
    role: FileRole,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, SetupError> {
    let found: Result<Vec<_>, Error> = CertificateDer::pem_slice_iter(text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(SetupError::File { role, why: nothing_found("certificate", text) }),
        Err(error) => Err(SetupError::File { role, why: broken(&error) }),
    }
}

/// Returns the first private key of a file.
pub(crate) fn private_key(
    role: FileRole,
    text: &[u8],
) -> Result<PrivateKeyDer<'static>, SetupError> {
    let why = match PrivateKeyDer::from_pem_slice(text) {
        Ok(key) => return Ok(key),
        Err(Error::NoItemsFound) if holds(text, b"ENCRYPTED PRIVATE KEY") => {
            "holds an encrypted key; decrypt it first: openssl pkey -in FILE -out PLAIN".to_owned()
        }
        Err(Error::NoItemsFound) => nothing_found("private key", text),
        Err(error) => broken(&error),
    };
    Err(SetupError::File { role, why })
}

fn nothing_found(what: &str, text: &[u8]) -> String {
    if text.is_empty() {
        return format!("is empty; a {what} in PEM is needed");
    }
    if !holds(text, b"-----BEGIN ") {
        return format!(
            "is not PEM text (no line \"-----BEGIN …\"), so there is no {what} in it; \
             from DER: openssl x509 or openssl pkey with -inform der -in FILE -out FILE.pem"
        );
    }
    format!("is PEM but holds no {what}")
}

fn broken(error: &Error) -> String {
    match error {
        Error::MissingSectionEnd { .. } => "is malformed PEM: a section has no END line".to_owned(),
        Error::IllegalSectionStart { .. } => {
            "is malformed PEM: a BEGIN line is malformed".to_owned()
        }
        Error::Base64Decode(why) => format!("is malformed PEM: {why}"),
        other => format!("cannot be read as PEM: {other}"),
    }
}

fn holds(text: &[u8], needle: &[u8]) -> bool {
    text.windows(needle.len()).any(|window| window == needle)
}
