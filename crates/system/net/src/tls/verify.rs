//! Certificate verification where rustls's own rule differs from the requested one.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;

/// `--insecure`: any certificate is accepted. Signatures over the handshake are still checked.
#[derive(Debug)]
pub(crate) struct AcceptAny {
    algorithms: WebPkiSupportedAlgorithms,
}

impl AcceptAny {
    pub(crate) fn new(provider: &CryptoProvider) -> AcceptAny {
        AcceptAny { algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        unless_version_1(verify_tls12_signature(message, cert, dss, &self.algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        unless_version_1(verify_tls13_signature(message, cert, dss, &self.algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// X.509 version 1, the default of `openssl x509 -req`: webpki does not read its key, so its
/// signature cannot be verified. A configuration that accepts any certificate accepts this one too.
fn unless_version_1(
    verdict: Result<HandshakeSignatureValid, Error>,
) -> Result<HandshakeSignatureValid, Error> {
    match verdict {
        Err(error) if is_webpki_error(&error, &webpki::Error::UnsupportedCertVersion) => {
            Ok(HandshakeSignatureValid::assertion())
        }
        other => other,
    }
}

/// `--ca`: anchors of the user. webpki refuses a server that presents an anchor itself if it is
/// marked as a CA, like the output of `openssl req -x509` in a lab; a user who names that very
/// certificate trusts it. Its dates (checked before that refusal), its name and the handshake's
/// signatures must still be valid.
#[derive(Debug)]
pub(crate) struct OwnRoots {
    webpki: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl OwnRoots {
    pub(crate) fn new(
        webpki: Arc<WebPkiServerVerifier>,
        trusted: Vec<CertificateDer<'static>>,
    ) -> OwnRoots {
        OwnRoots { webpki, trusted }
    }
}

impl ServerCertVerifier for OwnRoots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.webpki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verdict {
            Err(error)
                if is_webpki_error(&error, &webpki::Error::CaUsedAsEndEntity)
                    && self.trusted.iter().any(|trusted| trusted == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

pub(crate) fn is_webpki_error(error: &Error, wanted: &webpki::Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            other.0.downcast_ref::<webpki::Error>() == Some(wanted)
        }
        _ => false,
    }
}
