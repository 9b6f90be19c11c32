//! What can be wrong with TLS settings, in words that name the option and the way out; and which
//! failure class an error of a handshake belongs to.

use conduit::TlsError;
use sample::FailureClass;
use std::fmt;
use units::quoted;

/// Which file the user handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    Ca,
    Cert,
    Key,
}

impl FileRole {
    fn option(self) -> &'static str {
        match self {
            FileRole::Ca => "--ca",
            FileRole::Cert => "--cert",
            FileRole::Key => "--key",
        }
    }
}

/// Why no client can be made of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// A file is no PEM, or holds nothing of the kind that is needed.
    File {
        role: FileRole,
        why: String,
    },
    /// The key is not the certificate's.
    KeyMismatch,
    /// A key without a certificate.
    KeyAlone,
    /// The system keeps no trust anchors that can be used.
    NoRoots {
        why: String,
    },
    UnknownGroup {
        name: String,
    },
    UnknownCipher {
        name: String,
    },
    /// The ciphers or groups leave nothing for the protocol versions asked for.
    NothingLeft {
        what: &'static str,
        versions: &'static str,
    },
    /// A protocol name that ALPN cannot carry.
    Alpn {
        name: String,
    },
    /// The library refused the settings for a reason not foreseen here.
    Library(String),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::File { role, why } => write!(f, "the file of {} {why}", role.option()),
            SetupError::KeyMismatch => {
                f.write_str("the key of --key does not belong to the certificate of --cert")
            }
            SetupError::KeyAlone => {
                f.write_str("--key needs --cert: a key alone proves nothing to a server")
            }
            SetupError::NoRoots { why } => write!(
                f,
                "this system has no trusted root certificates that can be used ({why}); \
                 give --ca FILE or --insecure"
            ),
            SetupError::UnknownGroup { name } => write!(
                f,
                "{} is no key-exchange group known here; known: {}",
                quoted(name),
                crate::names::group_list()
            ),
            SetupError::UnknownCipher { name } => write!(
                f,
                "{} is no cipher suite known here; known: {}",
                quoted(name),
                crate::names::cipher_list()
            ),
            SetupError::NothingLeft { what, versions } => write!(
                f,
                "none of the {what} can be used with {versions}; name others, or change --tls"
            ),
            SetupError::Alpn { name } => write!(
                f,
                "{} cannot be offered by ALPN: a protocol name has 1 to 255 bytes",
                quoted(name)
            ),
            SetupError::Library(why) => write!(f, "these TLS settings do not go together: {why}"),
        }
    }
}

impl std::error::Error for SetupError {}

/// The class and the words of an error that ended a session.
pub(crate) fn session_error(error: &rustls::Error) -> TlsError {
    use rustls::Error;
    let class = match error {
        Error::InvalidCertificate(_)
        | Error::NoCertificatesPresented
        | Error::InvalidCertRevocationList(_) => FailureClass::Certificate,
        _ => FailureClass::Tls,
    };
    TlsError { class, text: error.to_string() }
}

pub(crate) fn tls_error(text: String) -> TlsError {
    TlsError { class: FailureClass::Tls, text }
}
