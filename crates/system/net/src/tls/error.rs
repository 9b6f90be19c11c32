//! Errors in TLS settings, with messages that name the option and the fix, and the failure class of
//! handshake errors.

use crate::tls::verify::is_webpki_error;
use conduit::TlsError;
use sample::FailureClass;
use std::fmt;
use units::quoted;

/// The file that the user supplied.
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

/// Reason why a client cannot be created from the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// A file is not PEM, or lacks an item of the required kind.
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
    /// `known`: the supported names.
    UnknownGroup {
        name: String,
        known: String,
    },
    UnknownCipher {
        name: String,
        known: String,
    },
    /// The ciphers or groups leave nothing for the requested protocol versions.
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
            SetupError::UnknownGroup { name, known } => {
                write!(f, "{} is not a known key-exchange group; known: {known}", quoted(name))
            }
            SetupError::UnknownCipher { name, known } => {
                write!(f, "{} is not a known cipher suite; known: {known}", quoted(name))
            }
            SetupError::NothingLeft { what, versions } => write!(
                f,
                "none of the {what} can be used with {versions}; name others, or change --tls"
            ),
            SetupError::Alpn { name } => write!(
                f,
                "{} cannot be offered by ALPN: a protocol name has 1 to 255 bytes",
                quoted(name)
            ),
            SetupError::Library(why) => write!(f, "these TLS settings are incompatible: {why}"),
        }
    }
}

impl std::error::Error for SetupError {}

/// Returns the class and message of an error that ended a session.
pub(crate) fn session_error(error: &rustls::Error) -> TlsError {
    use rustls::Error;
    let class = match error {
        Error::InvalidCertificate(_)
        | Error::NoCertificatesPresented
        | Error::InvalidCertRevocationList(_) => FailureClass::Certificate,
        _ => FailureClass::Tls,
    };
    TlsError { class, text: text(error), fix_text: fix_text(error) }
}

/// Returns the library's message, or a plainer one if the library prints type names.
fn text(error: &rustls::Error) -> String {
    match error {
        bad if is_authority(bad) => {
            "invalid peer certificate: self-signed or issued by an unknown CA".to_owned()
        }
        other => other.to_string(),
    }
}

/// Returns whether the error is about a certificate marked as a CA's that a server presents as its
/// own: as created by `openssl req -x509`.
fn is_authority(error: &rustls::Error) -> bool {
    is_webpki_error(error, &webpki::Error::CaUsedAsEndEntity)
}

/// Returns a hint for an error with a known cause, from alerts (RFC 8446 §6.2, RFC 6066 §3) and
/// from the incompatibilities that the library reports.
fn fix_text(error: &rustls::Error) -> Option<&'static str> {
    use rustls::{
        AlertDescription as Alert, CertificateError as Bad, Error, PeerIncompatible as Gap,
    };
    Some(match error {
        Error::AlertReceived(Alert::ProtocolVersion)
        | Error::PeerIncompatible(
            Gap::ServerDoesNotSupportTls12Or13 | Gap::ServerTlsVersionIsDisabledByOurConfig,
        ) => {
            "The server supports none of the offered TLS versions: change --tls (1.2 and 1.3 \
             can be offered), or enable one of them at the server."
        }
        Error::AlertReceived(Alert::HandshakeFailure | Alert::InsufficientSecurity)
        | Error::PeerIncompatible(
            Gap::NoCipherSuitesInCommon
            | Gap::NoKxGroupsInCommon
            | Gap::NoSignatureSchemesInCommon
            | Gap::NoEcPointFormatsInCommon,
        ) => {
            "No cipher or group in common: leave out --ciphers and --groups to offer all, or \
             change the server's list. A server that requires a client certificate (--cert, --key) \
             may send the same alert."
        }
        Error::AlertReceived(Alert::CertificateRequired | Alert::NoCertificate) => {
            "The server requires a client certificate: give --cert FILE and --key FILE."
        }
        Error::AlertReceived(
            Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied,
        ) => {
            "The server rejects the client certificate, or its absence: give --cert \
             and --key of one whose issuer it trusts."
        }
        Error::AlertReceived(Alert::UnrecognisedName) => {
            "The server has no host of that name: correct the URL, or name it with --server-name."
        }
        Error::AlertReceived(Alert::NoApplicationProtocol) | Error::NoApplicationProtocol => {
            "The server speaks none of the protocols that ALPN offers: change --http or --alpn."
        }
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "Renew the server's certificate, or accept any with --insecure."
        }
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "The certificate is not valid yet: compare the clocks of both machines, or accept any \
             with --insecure."
        }
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "The certificate is for another name: name one of its names with --server-name, or \
             accept any with --insecure."
        }
        bad if is_authority(bad) => {
            "Trust this certificate with --ca FILE, or accept any with --insecure."
        }
        // a signature that does not fit: another authority has the issuer's name, or the server's own
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "Trust the certificate's issuer with --ca FILE, or accept any with --insecure."
        }
        Error::InvalidCertificate(_) => "Renew the certificate, or accept any with --insecure.",
        _ => return None,
    })
}

pub(crate) fn tls_error(text: String) -> TlsError {
    TlsError { class: FailureClass::Tls, text, fix_text: None }
}
