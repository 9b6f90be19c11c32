//! Sessions with exposed keys.

use super::*;

/// Returns a client with exposed keys, after its handshake; the suite by rustls's name.
fn through(cipher: &str) -> (Wire, Arc<ServerConfig>) {
    let pki = pki();
    let ciphers = strings(&[cipher]);
    let mut factory = factory(&Settings { exposed_keys: true, ciphers, ..trusting(&pki) });
    let config = Arc::new(any_server(&pki));
    let mut wire = Wire::new(&mut factory, "localhost", &config);
    wire.client = factory.exposed_keys("localhost").unwrap();
    assert!(wire.client.handshaking() && wire.client.finished().is_none());
    assert!(!wire.client.send_record(22, &[0]), "before the handshake");
    wire.step = 7;
    wire.settle().unwrap();
    assert!(!wire.client.handshaking());
    (wire, config)
}

#[test]
fn records_go_both_ways_and_a_new_handshake_is_refused() {
    for cipher in [
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    ] {
        let (mut wire, _) = through(cipher);
        let facts = wire.client.facts().unwrap();
        assert_eq!((facts.version.as_str(), facts.cipher.as_str()), ("TLSv1.2", cipher));
        assert_eq!(wire.client.finished().map(|data| data.len()), Some(12));
        wire.client.send(b"a request");
        wire.settle().unwrap();
        assert_eq!(wire.at_server, b"a request");
        wire.server.writer().write_all(b"an answer").unwrap();
        wire.settle().unwrap();
        assert_eq!(wire.at_client, [&[23, 3, 3, 0, 9][..], b"an answer"].concat());
        wire.at_client.clear();
        let hello = [&[1, 0, 0, 41, 3, 3][..], &[7; 32], &[0, 0, 2, 0xc0, 0x2b, 1, 0]].concat();
        assert!(wire.client.send_record(22, &hello));
        wire.settle().unwrap();
        assert_eq!(wire.at_client, [21, 3, 3, 0, 2, 1, 100], "{cipher}");
        wire.client.send(b", another");
        wire.server.send_close_notify();
        wire.settle().unwrap();
        assert_eq!(wire.at_server, b"a request, another");
        assert!(wire.client.closed());
    }
}

#[test]
fn an_invalid_record_ends_the_session() {
    let (mut wire, _) = through("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
    let mut plain = Vec::new();
    assert!(!wire.client.send_record(22, &[0; 20_000]), "longer than any record");
    for (bytes, sent) in [
        (&[23, 3, 3, 0, 3, 1, 2, 3][..], "cannot be decrypted"),
        (&[23, 3, 3, 0xff, 0xff][..], "65535 bytes"),
    ] {
        let (mut wire, _) = through("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256");
        let error = wire.client.feed(bytes, &mut plain).unwrap_err();
        assert!(error.text.contains(sent), "{}", error.text);
        assert_eq!(wire.client.feed(&[0], &mut plain).unwrap_err().text, error.text);
    }
    assert!(plain.is_empty());
}

#[test]
fn exposed_keys_need_tls_1_2_and_a_request() {
    let pki = pki();
    let mut usual = factory(&trusting(&pki));
    assert!(usual.exposed_keys("localhost").unwrap_err().text.contains("export"));
    let mut factory = factory(&Settings { exposed_keys: true, ..trusting(&pki) });
    let config = Arc::new(server_of(&pki.server, &[&rustls::version::TLS13], None));
    let mut wire = Wire::new(&mut factory, "localhost", &config);
    wire.client = factory.exposed_keys("localhost").unwrap();
    assert_eq!(wire.settle().unwrap_err().class, FailureClass::Tls);
}
