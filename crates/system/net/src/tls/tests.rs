//! Sessions against rustls's own server, in memory; certificates are made on the spot.

use super::*;
use conduit::{TlsError, TlsFactory, TlsSession};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::crypto::aws_lc_rs;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use sample::{FailureClass, TlsFacts};
use std::io::{Read, Write};
use std::sync::Arc;

mod open;
mod settings;

/// A certificate authority and the certificates that it signed, all as PEM.
struct Pki {
    ca: String,
    server: Pair,
    client: Pair,
}

struct Pair {
    cert: String,
    key: String,
}

fn pki() -> Pki {
    pki_of("a test's authority")
}

fn pki_of(authority: &str) -> Pki {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, authority);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let sign = |names: &[&str], usage: ExtendedKeyUsagePurpose| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &issuer).unwrap();
        Pair { cert: cert.pem(), key: key.serialize_pem() }
    };
    Pki {
        ca: issuer.pem(),
        server: sign(&["localhost", "127.0.0.1", "::1"], ExtendedKeyUsagePurpose::ServerAuth),
        client: sign(&["a user"], ExtendedKeyUsagePurpose::ClientAuth),
    }
}

fn chain(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().unwrap()
}

fn server_of(
    pair: &Pair,
    versions: &[&'static SupportedProtocolVersion],
    client_ca: Option<&str>,
) -> ServerConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .unwrap();
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut store = rustls::RootCertStore::empty();
            store.add(chain(ca).remove(0)).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    builder.with_single_cert(chain(&pair.cert), key).unwrap()
}

fn any_server(pki: &Pki) -> ServerConfig {
    server_of(&pki.server, rustls::ALL_VERSIONS, None)
}

fn trusting(pki: &Pki) -> Settings {
    Settings { ca: Some(pki.ca.clone().into_bytes()), ..Settings::default() }
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn factory(settings: &Settings) -> Factory {
    Client::new(settings).unwrap().factory()
}

/// A client and a server joined in memory.
struct Wire {
    client: Box<dyn TlsSession>,
    server: ServerConnection,
    /// Data that each end has decrypted so far.
    at_client: Vec<u8>,
    at_server: Vec<u8>,
    /// Most bytes that the client is fed at a time.
    step: usize,
}

impl Wire {
    fn new(factory: &mut Factory, name: &str, config: &Arc<ServerConfig>) -> Wire {
        Wire::from_client(factory.session(name).unwrap(), config)
    }

    fn from_client(client: Box<dyn TlsSession>, config: &Arc<ServerConfig>) -> Wire {
        Wire {
            client,
            server: ServerConnection::new(config.clone()).unwrap(),
            at_client: Vec::new(),
            at_server: Vec::new(),
            step: usize::MAX,
        }
    }

    /// Transfers bytes in both directions until neither end has any. Returns the client's error, if
    /// any.
    fn settle(&mut self) -> Result<(), TlsError> {
        loop {
            let mut up = Vec::new();
            self.client.drain(&mut up);
            let mut rest = &up[..];
            while !rest.is_empty() && self.server.read_tls(&mut rest).is_ok_and(|count| count > 0) {
                // an error of the server shows as the alert that it sends
                self.server.process_new_packets().ok();
                self.server.reader().read_to_end(&mut self.at_server).ok();
            }
            let mut down = Vec::new();
            while self.server.wants_write() {
                self.server.write_tls(&mut down).unwrap();
            }
            for part in down.chunks(self.step.min(down.len()).max(1)) {
                self.client.feed(part, &mut self.at_client)?;
            }
            if up.is_empty() && down.is_empty() {
                return Ok(());
            }
        }
    }
}

/// Runs one session from its first byte to both ends' close_notify; returns its final facts.
fn visit(factory: &mut Factory, config: &Arc<ServerConfig>) -> TlsFacts {
    visit_by(factory.session("localhost").unwrap(), config)
}

fn visit_by(client: Box<dyn TlsSession>, config: &Arc<ServerConfig>) -> TlsFacts {
    let mut wire = Wire::from_client(client, config);
    assert!(wire.client.handshaking() && wire.client.facts().is_none());
    wire.client.send(b"GET / HTTP/1.1\r\n\r\n");
    wire.settle().unwrap();
    assert_eq!(wire.at_server, b"GET / HTTP/1.1\r\n\r\n");
    wire.server.writer().write_all(b"an answer").unwrap();
    wire.settle().unwrap();
    assert_eq!(wire.at_client, b"an answer");
    assert!(!wire.client.handshaking() && !wire.client.closed());
    wire.client.close();
    wire.server.send_close_notify();
    wire.settle().unwrap();
    assert!(wire.client.closed());
    wire.client.facts().unwrap()
}

fn failure(settings: &Settings, name: &str, config: ServerConfig) -> TlsError {
    let mut wire = Wire::new(&mut factory(settings), name, &Arc::new(config));
    wire.settle().unwrap_err()
}

#[test]
fn the_requested_versions_are_negotiated() {
    let pki = pki();
    let config = Arc::new(any_server(&pki));
    for (versions, version, cipher) in [
        (Versions::Any, "TLSv1.3", "TLS13_AES_256_GCM_SHA384"),
        (Versions::Tls13, "TLSv1.3", "TLS13_AES_256_GCM_SHA384"),
        (Versions::Tls12, "TLSv1.2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    ] {
        let facts = visit(&mut factory(&Settings { versions, ..trusting(&pki) }), &config);
        let expected = TlsFacts {
            version: version.to_owned(),
            cipher: cipher.to_owned(),
            group: "X25519".to_owned(),
            resumed: false,
            key_bits: 256,
            alpn: String::new(),
        };
        assert_eq!(facts, expected);
    }
}

#[test]
fn a_version_that_the_server_does_not_speak_is_a_tls_failure() {
    let pki = pki();
    let config = server_of(&pki.server, &[&rustls::version::TLS12], None);
    let settings = Settings { versions: Versions::Tls13, ..trusting(&pki) };
    let error = failure(&settings, "localhost", config);
    assert_eq!(error.class, FailureClass::Tls);
    assert!(error.text.contains("ProtocolVersion"), "{}", error.text);
    assert!(error.fix_text.unwrap().contains("--tls"), "{error:?}");
}

#[test]
fn ciphers_and_groups_are_those_named() {
    let pki = pki();
    let config = Arc::new(any_server(&pki));
    for (ciphers, groups, seen) in [
        (&["ECDHE-ECDSA-AES128-GCM-SHA256"][..], &["P-384"][..], ("TLSv1.2", "secp384r1")),
        (&["TLS_CHACHA20_POLY1305_SHA256"], &["X25519MLKEM768"], ("TLSv1.3", "X25519MLKEM768")),
    ] {
        let settings =
            Settings { ciphers: strings(ciphers), groups: strings(groups), ..trusting(&pki) };
        let facts = visit(&mut factory(&settings), &config);
        assert_eq!((&*facts.version, &*facts.group), seen);
    }
}

#[test]
fn a_factory_resumes_from_its_second_session_on() {
    let pki = pki();
    for (versions, group) in [(Versions::Tls13, "X25519"), (Versions::Tls12, "")] {
        let mut config = any_server(&pki);
        config.ticketer = aws_lc_rs::Ticketer::new().unwrap();
        let config = Arc::new(config);
        let settings = Settings { resumption: true, versions, ..trusting(&pki) };
        let client = Client::new(&settings).unwrap();
        let mut first = client.factory();
        assert!(!visit(&mut first, &config).resumed, "{versions:?}");
        for _ in 0..3 {
            let facts = visit(&mut first, &config);
            assert!(facts.resumed, "{versions:?}");
            assert_eq!(facts.group, group);
        }
        let mut second = client.factory();
        assert!(!visit(&mut second, &config).resumed, "tickets are not shared between workers");
    }
}

/// Early data of a session: accepted at once, or resent automatically.
#[test]
fn early_data_is_read_or_sent_again() {
    let pki = pki();
    let request = b"GET / HTTP/1.1\r\n\r\n";
    for (most, forgets, read) in
        [(1_000, false, Some(true)), (1_000, true, Some(false)), (0, false, None)]
    {
        let mut config = any_server(&pki);
        config.max_early_data_size = most;
        let willing = Arc::new(config.clone());
        config.session_storage = if forgets {
            rustls::server::ServerSessionMemoryCache::new(8)
        } else {
            willing.session_storage.clone()
        };
        let config = Arc::new(config);
        let settings = Settings { resumption: true, early_data: true, ..trusting(&pki) };
        let mut factory = factory(&settings);
        visit(&mut factory, &willing);
        let mut wire = Wire::new(&mut factory, "localhost", &config);
        let sent = wire.client.send_early(request);
        assert_eq!(sent, read.is_some(), "{most} {forgets}");
        assert!(!wire.client.send_early(&[b'x'; 2_000]), "more than a ticket allows");
        assert_eq!(wire.client.early_read(), None);
        let mut hello = Vec::new();
        wire.client.drain(&mut hello);
        wire.server.read_tls(&mut &hello[..]).unwrap();
        wire.server.process_new_packets().unwrap();
        let mut early = Vec::new();
        if let Some(mut data) = wire.server.early_data() {
            data.read_to_end(&mut early).ok();
        }
        wire.settle().unwrap();
        assert_eq!(wire.client.early_read(), read);
        let late = [&early[..], &wire.at_server].concat();
        assert_eq!(late, if sent { &request[..] } else { b"" }, "once, and whole");
        assert_eq!(!early.is_empty(), read == Some(true));
    }
}

#[test]
fn early_data_is_sent_only_on_request() {
    let pki = pki();
    let mut config = any_server(&pki);
    config.max_early_data_size = 1_000;
    let config = Arc::new(config);
    let mut factory = factory(&Settings { resumption: true, ..trusting(&pki) });
    visit(&mut factory, &config);
    let mut wire = Wire::new(&mut factory, "localhost", &config);
    assert!(!wire.client.send_early(b"GET"));
    wire.settle().unwrap();
    assert!(wire.client.facts().unwrap().resumed);
}

#[test]
fn tickets_for_all_concurrent_connections_are_kept() {
    let pki = pki();
    let mut config = any_server(&pki);
    config.ticketer = aws_lc_rs::Ticketer::new().unwrap();
    let config = Arc::new(config);
    let mut factory = factory(&Settings { resumption: true, ..trusting(&pki) });
    for _ in 0..20 {
        visit(&mut factory, &config);
    }
    // opened together: none can use a ticket of another
    let mut wires: Vec<Wire> =
        (0..20).map(|_| Wire::new(&mut factory, "localhost", &config)).collect();
    for wire in &mut wires {
        wire.settle().unwrap();
        assert!(wire.client.facts().unwrap().resumed);
    }
}

#[test]
fn users_resume_only_their_own_sessions() {
    let pki = pki();
    for versions in [Versions::Tls12, Versions::Tls13] {
        let mut config = any_server(&pki);
        config.ticketer = aws_lc_rs::Ticketer::new().unwrap();
        let config = Arc::new(config);
        for (resumption, wanted) in
            [(true, [false, true, false, true, true, false]), (false, [false; 6])]
        {
            let settings = Settings { resumption, versions, ..trusting(&pki) };
            let mut factory = factory(&settings);
            let resumed = [1, 1, 2, 2, 1, 3].map(|user| {
                let client = factory.session_of("localhost", user).unwrap();
                visit_by(client, &config).resumed
            });
            assert_eq!(resumed, wanted, "{versions:?}");
            // connections without a user have their own store
            assert!(!visit(&mut factory, &config).resumed);
        }
    }
}

#[test]
fn nothing_is_resumed_when_resumption_is_off() {
    let pki = pki();
    for versions in [Versions::Tls12, Versions::Tls13] {
        let config = Arc::new(any_server(&pki));
        let mut factory = factory(&Settings { versions, ..trusting(&pki) });
        for _ in 0..3 {
            assert!(!visit(&mut factory, &config).resumed);
        }
    }
}

#[test]
fn without_stored_sessions_every_handshake_is_full() {
    let pki = pki();
    let mut config = any_server(&pki);
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    let config = Arc::new(config);
    let mut factory = factory(&Settings { resumption: true, ..trusting(&pki) });
    for _ in 0..2 {
        assert!(!visit(&mut factory, &config).resumed);
    }
}

#[test]
fn sni_has_the_name_but_not_an_address() {
    let pki = pki();
    let config = Arc::new(any_server(&pki));
    let mut factory = factory(&trusting(&pki));
    for (name, sni) in
        [("localhost", Some("localhost")), ("127.0.0.1", None), ("[::1]", None), ("::1", None)]
    {
        let mut wire = Wire::new(&mut factory, name, &config);
        wire.settle().unwrap();
        assert_eq!(wire.server.server_name(), sni, "{name}");
        assert!(!wire.client.handshaking());
    }
}

#[test]
fn an_invalid_name_is_refused_before_anything_is_sent() {
    let pki = pki();
    let error = factory(&trusting(&pki)).session("no such/name").unwrap_err();
    assert_eq!(error.class, FailureClass::Tls);
    assert!(error.text.contains("no such/name"), "{}", error.text);
}

#[test]
fn alpn_is_agreed_on_or_refused() {
    let pki = pki();
    let settings = Settings { alpn: strings(&["h2", "http/1.1"]), ..trusting(&pki) };
    let mut config = any_server(&pki);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let facts = visit(&mut factory(&settings), &Arc::new(config.clone()));
    assert_eq!(facts.alpn, "http/1.1");
    // RFC 7301 §3.2: no_application_protocol
    config.alpn_protocols = vec![b"other".to_vec()];
    let error = failure(&settings, "localhost", config.clone());
    assert_eq!(error.class, FailureClass::Tls);
    assert!(error.text.contains("NoApplicationProtocol"), "{}", error.text);
    assert!(error.fix_text.unwrap().contains("--alpn"), "{error:?}");
    // not offered: the server has nothing to refuse
    assert_eq!(visit(&mut factory(&trusting(&pki)), &Arc::new(config)).alpn, "");
}

#[test]
fn a_client_certificate_is_sent_on_request() {
    let pki = pki();
    for versions in [Versions::Tls12, Versions::Tls13] {
        let config = Arc::new(server_of(&pki.server, rustls::ALL_VERSIONS, Some(&pki.ca)));
        let mut settings = Settings { versions, ..trusting(&pki) };
        let error = failure(&settings, "localhost", (*config).clone());
        assert_eq!(error.class, FailureClass::Tls, "the server's refusal is no bad certificate");
        assert!(error.fix_text.unwrap().contains("--cert"), "{error:?}");
        settings.cert = Some(pki.client.cert.clone().into_bytes());
        settings.key = Some(pki.client.key.clone().into_bytes());
        let mut wire = Wire::new(&mut factory(&settings), "localhost", &config);
        wire.client.send(b"hello");
        wire.settle().unwrap();
        assert_eq!(wire.at_server, b"hello");
        assert_eq!(wire.server.peer_certificates().unwrap(), chain(&pki.client.cert));
    }
}

#[test]
fn certificates_that_do_not_hold_are_certificate_failures() {
    let (pki, stranger) = (pki(), pki_of("a stranger"));
    for (settings, name, word, option) in [
        (trusting(&stranger), "localhost", "UnknownIssuer", "--ca FILE"),
        (trusting(&pki), "example.com", "example.com", "--server-name"),
        (trusting(&pki), "127.0.0.2", "127.0.0.2", "--server-name"),
    ] {
        for versions in [Versions::Tls12, Versions::Tls13] {
            let settings = Settings { versions, ..settings.clone() };
            let error = failure(&settings, name, any_server(&pki));
            assert_eq!(error.class, FailureClass::Certificate);
            assert!(error.text.contains(word), "{}", error.text);
            assert!(error.fix_text.unwrap().contains(option), "{error:?}");
        }
    }
}

/// The output of `openssl req -x509`: a self-signed certificate marked as a CA.
#[test]
fn a_self_signed_certificate_is_called_that() {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let own = Pair { cert: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() };
    let config = || server_of(&own, rustls::ALL_VERSIONS, None);
    let error = failure(&trusting(&pki()), "localhost", config());
    assert_eq!(error.class, FailureClass::Certificate);
    assert!(error.text.contains("self-signed") && !error.text.contains("Other"), "{error:?}");
    let fix_text = error.fix_text.unwrap();
    assert!(fix_text.contains("--insecure") && fix_text.contains("--ca FILE"), "{error:?}");
    // both ways out lead out
    let trusted = Settings { ca: Some(own.cert.clone().into_bytes()), ..Settings::default() };
    let any = Settings { insecure: true, ..Settings::default() };
    for settings in [trusted, any] {
        visit(&mut factory(&settings), &Arc::new(config()));
    }
}

#[test]
fn no_common_settings_are_reported_with_their_options() {
    let pki = pki();
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|suite| format!("{:?}", suite.suite()).contains("CHACHA20"));
    let key = PrivateKeyDer::from_pem_slice(pki.server.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain(&pki.server.cert), key)
        .unwrap();
    let ciphers = strings(&["ECDHE-ECDSA-AES128-GCM-SHA256"]);
    let settings = Settings { versions: Versions::Tls12, ciphers, ..trusting(&pki) };
    let error = failure(&settings, "localhost", config);
    assert_eq!(error.class, FailureClass::Tls);
    assert!(error.fix_text.unwrap().contains("--ciphers"), "{error:?}");
}

#[test]
fn insecure_accepts_any_certificate() {
    let pki = pki();
    let config = Arc::new(any_server(&pki));
    for versions in [Versions::Tls12, Versions::Tls13] {
        let settings = Settings { insecure: true, versions, ..Settings::default() };
        let mut wire = Wire::new(&mut factory(&settings), "example.com", &config);
        wire.settle().unwrap();
        assert!(!wire.client.handshaking());
    }
}

#[test]
fn insecure_does_not_accept_another_key() {
    let pki = pki();
    let wrong = PrivateKeyDer::from_pem_slice(pki.client.key.as_bytes()).unwrap();
    for versions in [Versions::Tls12, Versions::Tls13] {
        let config = presenting(chain(&pki.server.cert), wrong.clone_key());
        let settings = Settings { insecure: true, versions, ..Settings::default() };
        let error = failure(&settings, "localhost", config);
        assert!(error.text.contains("BadSignature"), "{}", error.text);
    }
}

/// Returns a server that presents the pair without checking whether it matches.
fn presenting(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> ServerConfig {
    let key = aws_lc_rs::sign::any_supported_type(&key).unwrap();
    let resolver = rustls::sign::SingleCertAndKey::from(CertifiedKey::new(chain, key));
    ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver))
}

#[test]
fn insecure_accepts_a_certificate_of_version_1() {
    let pem = include_str!("../../testdata/version-1.pem");
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
    for versions in [Versions::Tls12, Versions::Tls13] {
        let settings = Settings { insecure: true, versions, ..Settings::default() };
        visit(&mut factory(&settings), &Arc::new(presenting(chain(pem), key.clone_key())));
    }
}

#[test]
fn a_self_signed_server_is_trusted_by_its_own_certificate() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(strings(&["localhost"])).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let cert = params.self_signed(&key).unwrap().pem();
    let settings = Settings { ca: Some(cert.clone().into_bytes()), ..Settings::default() };
    let config =
        Arc::new(server_of(&Pair { cert, key: key.serialize_pem() }, rustls::ALL_VERSIONS, None));
    visit(&mut factory(&settings), &config);
    let error = failure(&settings, "example.com", (*config).clone());
    assert_eq!(error.class, FailureClass::Certificate);
    // the same shape, but not the certificate that was named
    let other = params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
    let settings = Settings { ca: Some(other.into_bytes()), ..Settings::default() };
    let error = failure(&settings, "localhost", (*config).clone());
    assert_eq!(error.class, FailureClass::Certificate);
}

#[test]
fn plain_text_instead_of_tls_is_recognized() {
    let pki = pki();
    for step in [1, 7, usize::MAX] {
        let mut session = factory(&trusting(&pki)).session("localhost").unwrap();
        let answer = b"HTTP/1.1 400 Bad Request\r\n\r\n";
        let mut out = Vec::new();
        let result: Result<(), TlsError> =
            answer.chunks(step.min(answer.len())).try_for_each(|part| session.feed(part, &mut out));
        let error = result.unwrap_err();
        assert_eq!(error.class, FailureClass::Tls);
        assert!(error.text.contains("not TLS but starts with \"H"), "{}", error.text);
        assert!(out.is_empty());
        assert_eq!(session.feed(b"more", &mut out).unwrap_err(), error, "the end stays the end");
    }
}

#[test]
fn bytes_one_at_a_time_give_the_same_plaintext() {
    let pki = pki();
    let config = Arc::new(any_server(&pki));
    let body: Vec<u8> = (0..40_000u32).map(|index| (index % 251) as u8).collect();
    for versions in [Versions::Tls12, Versions::Tls13] {
        let settings = Settings { versions, ..trusting(&pki) };
        for step in [1, 1_000, usize::MAX] {
            let mut wire = Wire::new(&mut factory(&settings), "localhost", &config);
            wire.step = step;
            wire.settle().unwrap();
            wire.server.writer().write_all(&body).unwrap();
            wire.settle().unwrap();
            assert!(wire.at_client == body, "{versions:?}, {step} at a time");
        }
    }
}

#[test]
fn large_bodies_go_out_whole() {
    let pki = pki();
    let config = Arc::new(any_server(&pki));
    let body = vec![7; 300_000];
    for early in [true, false] {
        let mut wire = Wire::new(&mut factory(&trusting(&pki)), "localhost", &config);
        if !early {
            wire.settle().unwrap();
        }
        wire.client.send(&body);
        wire.settle().unwrap();
        assert_eq!(wire.at_server.len(), body.len(), "before the handshake: {early}");
    }
}

#[test]
fn data_after_close_notify_is_ignored() {
    let pki = pki();
    let config = Arc::new(any_server(&pki));
    let mut wire = Wire::new(&mut factory(&trusting(&pki)), "localhost", &config);
    wire.settle().unwrap();
    wire.server.writer().write_all(b"the last").unwrap();
    wire.server.send_close_notify();
    let mut down = Vec::new();
    wire.server.write_tls(&mut down).unwrap();
    down.extend_from_slice(b"rubbish that is no record");
    let mut plain = Vec::new();
    wire.client.feed(&down, &mut plain).unwrap();
    assert_eq!(plain, b"the last");
    assert!(wire.client.closed());
    wire.client.feed(b"still more", &mut plain).unwrap();
    assert_eq!(plain, b"the last");
}

#[test]
fn a_damaged_record_ends_the_session_after_the_whole_ones() {
    let pki = pki();
    let config = Arc::new(any_server(&pki));
    let mut wire = Wire::new(&mut factory(&trusting(&pki)), "localhost", &config);
    wire.settle().unwrap();
    let mut down = Vec::new();
    wire.server.writer().write_all(b"whole").unwrap();
    wire.server.write_tls(&mut down).unwrap();
    wire.server.writer().write_all(b"damaged").unwrap();
    wire.server.write_tls(&mut down).unwrap();
    *down.last_mut().unwrap() ^= 1;
    let mut plain = Vec::new();
    let error = wire.client.feed(&down, &mut plain).unwrap_err();
    assert_eq!(error.class, FailureClass::Tls);
    assert_eq!(plain, b"whole");
    let mut alert = Vec::new();
    wire.client.drain(&mut alert);
    assert_eq!(alert.first(), Some(&23), "the alert (encrypted, as all of TLS 1.3) goes out");
}
