//! Test certificates, and a TLS server that reports the parameters of each handshake.

use super::http::{read_request, response};
use super::{Scripted, keep};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Certificate with its key, both PEM.
pub(crate) struct Pair {
    pub(crate) cert: String,
    pub(crate) key: String,
}

/// Certificate authority with the certificates that it signed.
pub(crate) struct Pki {
    pub(crate) ca: String,
    pub(crate) server: Pair,
    pub(crate) client: Pair,
}

impl Pki {
    /// Creates an authority and a server certificate for `localhost`, `shop.example`, 127.0.0.1 and
    /// ::1.
    pub(crate) fn new() -> Pki {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "a test's authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let sign = |names: &[&str], usage: ExtendedKeyUsagePurpose| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let mut params = CertificateParams::new(names).unwrap();
            params.extended_key_usages = vec![usage];
            let key = KeyPair::generate().unwrap();
            let cert = params.signed_by(&key, &issuer).unwrap();
            Pair { cert: cert.pem(), key: key.serialize_pem() }
        };
        let names = ["localhost", "shop.example", "127.0.0.1", "::1"];
        Pki {
            ca: issuer.pem(),
            server: sign(&names, ExtendedKeyUsagePurpose::ServerAuth),
            client: sign(&["a user"], ExtendedKeyUsagePurpose::ClientAuth),
        }
    }
}

/// Requirements and offers of the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsOptions {
    /// Only clients with a certificate of our authority.
    pub(crate) client_certificate: bool,
    /// Protocols for ALPN; empty for no ALPN.
    pub(crate) alpn: Vec<&'static str>,
    /// Limits the server to TLS 1.2.
    pub(crate) only_12: bool,
}

/// Handshake as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    /// Number of the connection, from 0; connection 0 is the plain first call.
    pub(crate) connection: usize,
    pub(crate) version: String,
    pub(crate) cipher: String,
    pub(crate) group: String,
    pub(crate) resumed: bool,
    pub(crate) sni: Option<String>,
    pub(crate) alpn: Option<String>,
    pub(crate) client_certificate: bool,
    /// Number of requests answered on the connection.
    pub(crate) requests: u64,
}

/// Answers every request on a finished handshake with 200 and `hello`.
pub(crate) struct TlsServer {
    server: Scripted,
    seen: Arc<(Mutex<Vec<Handshake>>, Condvar)>,
    pub(crate) pki: Pki,
    /// Files of the authority, of the client's certificate and of its key, for options.
    pub(crate) files: Files,
    folder: tempfile::TempDir,
}

/// Paths of the files.
pub(crate) struct Files {
    pub(crate) ca: String,
    pub(crate) cert: String,
    pub(crate) key: String,
}

impl TlsServer {
    pub(crate) fn start(options: &TlsOptions) -> TlsServer {
        let pki = Pki::new();
        let config = Arc::new(server_config(&pki, options));
        let seen = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let book = Arc::clone(&seen);
        let server = Scripted::start(move |stream, connection| {
            if let Some(handshake) = serve(stream, connection, &config) {
                book.0.lock().unwrap_or_else(PoisonError::into_inner).push(handshake);
                book.1.notify_all();
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let keep = |name: &str, pem: &str| keep(folder.path(), name, pem);
        let files = Files {
            ca: keep("ca.pem", &pki.ca),
            cert: keep("client.pem", &pki.client.cert),
            key: keep("client.key", &pki.client.key),
        };
        TlsServer { server, seen, pki, files, folder }
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.address.port()
    }

    /// Returns an https URL with the name in the certificate.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port())
    }

    /// Returns the completed handshakes of the run in connection order, without that of the plain
    /// first call. Waits until `count` connections have ended.
    pub(crate) fn handshakes(&self, count: usize) -> Vec<Handshake> {
        let (book, more) = &*self.seen;
        let seen = book.lock().unwrap_or_else(PoisonError::into_inner);
        let run = |seen: &[Handshake]| -> Vec<Handshake> {
            seen.iter().filter(|handshake| handshake.connection > 0).cloned().collect()
        };
        let few = |seen: &mut Vec<Handshake>| run(seen).len() < count;
        let waited = more.wait_timeout_while(seen, Duration::from_secs(30), few);
        let mut seen = run(&waited.unwrap_or_else(PoisonError::into_inner).0);
        seen.sort_by_key(|handshake| handshake.connection);
        seen
    }
}

fn server_config(pki: &Pki, options: &TlsOptions) -> ServerConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let versions: &[&rustls::SupportedProtocolVersion] =
        if options.only_12 { &[&rustls::version::TLS12] } else { rustls::ALL_VERSIONS };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_protocol_versions(versions).unwrap();
    let builder = if options.client_certificate {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(chain(&pki.ca));
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivateKeyDer::from_pem_slice(pki.server.key.as_bytes()).unwrap();
    let mut config = builder.with_single_cert(chain(&pki.server.cert), key).unwrap();
    config.alpn_protocols = options.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    // tickets of TLS 1.2 too, not only the session cache
    config.ticketer = aws_lc_rs::Ticketer::new().unwrap();
    config
}

fn chain(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().unwrap()
}

fn serve(stream: TcpStream, connection: usize, config: &Arc<ServerConfig>) -> Option<Handshake> {
    let session = ServerConnection::new(Arc::clone(config)).unwrap();
    let mut reader = BufReader::new(StreamOwned::new(session, stream));
    let mut requests = 0;
    while read_request(&mut reader).is_some() {
        requests += 1;
        let stream = reader.get_mut();
        if stream.write_all(&response(200, "", "hello")).and_then(|()| stream.flush()).is_err() {
            break;
        }
    }
    let session = &reader.get_ref().conn;
    session.handshake_kind()?;
    Some(Handshake {
        connection,
        version: format!("{:?}", session.protocol_version()?),
        cipher: format!("{:?}", session.negotiated_cipher_suite()?.suite()),
        group: session
            .negotiated_key_exchange_group()
            .map(|group| format!("{:?}", group.name()))
            .unwrap_or_default(),
        resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
        sni: session.server_name().map(str::to_owned),
        alpn: session.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
        client_certificate: session.peer_certificates().is_some(),
        requests,
    })
}
