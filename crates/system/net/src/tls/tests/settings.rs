//! Unusable settings and their messages.

use super::*;

fn refusal(settings: &Settings) -> String {
    Client::new(settings).unwrap_err().to_string()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    Some(text.as_bytes().to_vec())
}

#[test]
fn each_bad_file_is_reported_with_its_option() {
    let pki = pki();
    let base = trusting(&pki);
    let cut = &pki.ca[..pki.ca.len() - 30];
    let odd = "-----BEGIN CERTIFICATE-----\nMII*\n-----END CERTIFICATE-----\n";
    let hollow = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let with_ca = |text: &str| Settings { ca: bytes(text), ..base.clone() };
    let with_pair =
        |cert: &str, key: &str| Settings { cert: bytes(cert), key: bytes(key), ..base.clone() };
    for (settings, option, words) in [
        (with_ca(""), "--ca", "is empty"),
        (with_ca("\u{30}\u{82}\u{1}"), "--ca", "not PEM text"),
        (with_ca(&pki.client.key), "--ca", "holds no certificate"),
        (with_ca(cut), "--ca", "no END line"),
        (with_ca(odd), "--ca", "malformed PEM"),
        (with_ca(hollow), "--ca", "number 1"),
        (with_pair(&pki.client.key, &pki.client.key), "--cert", "holds no certificate"),
        (with_pair(hollow, &pki.client.key), "--cert", "cannot be used"),
        (with_pair(&pki.client.cert, &pki.client.cert), "--key", "holds no private key"),
        (with_pair(&pki.client.cert, encrypted), "--key", "openssl pkey"),
        (with_pair(&pki.client.cert, &pki.server.key), "--key", "does not belong"),
        (Settings { key: bytes(&pki.client.key), ..base.clone() }, "--key", "needs --cert"),
        (Settings { cert: bytes(&pki.client.cert), ..base.clone() }, "--cert", "no private key"),
    ] {
        let error = refusal(&settings);
        assert!(error.contains(option) && error.contains(words), "{error}");
    }
}

#[test]
fn the_certificate_file_may_contain_the_key() {
    let pki = pki();
    let both = format!("{}{}", pki.client.key, pki.client.cert);
    let settings = Settings { cert: bytes(&both), ..trusting(&pki) };
    let config = Arc::new(server_of(&pki.server, rustls::ALL_VERSIONS, Some(&pki.ca)));
    visit(&mut factory(&settings), &config);
}

#[test]
fn combinations_without_a_usable_choice_are_refused() {
    let base = Settings { insecure: true, ..Settings::default() };
    let ciphers = strings(&["TLS_AES_128_GCM_SHA256"]);
    let error = refusal(&Settings { versions: Versions::Tls12, ciphers, ..base.clone() });
    assert!(error.contains("ciphers") && error.contains("TLS 1.2"), "{error}");
    let groups = strings(&["X25519MLKEM768"]);
    let error = refusal(&Settings { versions: Versions::Tls12, groups, ..base.clone() });
    assert!(error.contains("groups") && error.contains("TLS 1.2"), "{error}");
    let error = refusal(&Settings { alpn: strings(&[""]), ..base.clone() });
    assert!(error.contains("ALPN"), "{error}");
    let error = refusal(&Settings { alpn: vec!["x".repeat(256)], ..base.clone() });
    assert!(error.contains("ALPN"), "{error}");
    assert!(refusal(&Settings { ciphers: strings(&["RC4"]), ..base.clone() }).contains("RC4"));
    assert!(refusal(&Settings { groups: strings(&["P-1"]), ..base }).contains("P-1"));
}

#[test]
fn the_debug_text_has_no_private_key() {
    let pki = pki();
    let settings =
        Settings { cert: bytes(&pki.client.cert), key: bytes("secret-bytes"), ..trusting(&pki) };
    let shown = format!("{settings:?}");
    assert!(shown.contains("key: true") && !shown.contains("115, 101, 99"), "{shown}");
}
