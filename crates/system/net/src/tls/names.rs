//! Common names of cipher suites and key-exchange groups.

use crate::tls::SetupError;
use rustls::SupportedCipherSuite;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{ALL_CIPHER_SUITES, ALL_KX_GROUPS};

/// rustls's name, the IANA name if it differs, and OpenSSL's. For TLS 1.3 OpenSSL uses IANA's (RFC
/// 8446 §B.4).
const CIPHERS: &[[&str; 2]] = &[
    ["TLS13_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"],
    ["TLS13_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"],
    ["TLS13_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"],
    ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"],
    ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"],
    ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"],
    ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"],
    ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"],
    ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"],
];

/// Names of groups: rustls's first, then those of NIST, ANSI and OpenSSL.
const GROUPS: &[&[&str]] = &[
    &["X25519"],
    &["secp256r1", "P-256", "prime256v1"],
    &["secp384r1", "P-384"],
    &["X25519MLKEM768"],
    &["secp256r1MLKEM768"],
    &["MLKEM768"],
    &["MLKEM1024"],
];

/// Returns the suites named, in order, each once.
pub(crate) fn ciphers(names: &[String]) -> Result<Vec<SupportedCipherSuite>, SetupError> {
    let mut found: Vec<SupportedCipherSuite> = Vec::new();
    for name in names {
        let suite = cipher(name).ok_or_else(|| SetupError::UnknownCipher {
            name: name.clone(),
            known: cipher_list(),
        })?;
        if !found.contains(&suite) {
            found.push(suite);
        }
    }
    Ok(found)
}

/// Returns the groups named, in order, each once.
pub(crate) fn groups(names: &[String]) -> Result<Vec<&'static dyn SupportedKxGroup>, SetupError> {
    let mut found: Vec<&'static dyn SupportedKxGroup> = Vec::new();
    for name in names {
        let group = group(name)
            .ok_or_else(|| SetupError::UnknownGroup { name: name.clone(), known: group_list() })?;
        if !found.iter().any(|known| known.name() == group.name()) {
            found.push(group);
        }
    }
    Ok(found)
}

/// Returns the supported names, for messages.
fn cipher_list() -> String {
    CIPHERS.iter().map(|names| names[1]).collect::<Vec<_>>().join(", ")
}

fn group_list() -> String {
    GROUPS.iter().map(|names| names[0]).collect::<Vec<_>>().join(", ")
}

fn cipher(name: &str) -> Option<SupportedCipherSuite> {
    let name = name.trim();
    let row = CIPHERS.iter().find(|row| row.iter().any(|known| same(known, name)))?;
    ALL_CIPHER_SUITES.iter().copied().find(|suite| format!("{:?}", suite.suite()) == row[0])
}

fn group(name: &str) -> Option<&'static dyn SupportedKxGroup> {
    let name = name.trim();
    let row = GROUPS.iter().find(|row| row.iter().any(|known| same(known, name)))?;
    ALL_KX_GROUPS.iter().copied().find(|group| format!("{:?}", group.name()) == row[0])
}

/// Returns whether two names are equal, ignoring case and the difference between `-` and `_`.
fn same(known: &str, typed: &str) -> bool {
    let plain = |byte: u8| if byte == b'-' { b'_' } else { byte.to_ascii_lowercase() };
    known.bytes().map(plain).eq(typed.bytes().map(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_name_all_that_the_library_has() {
        let suites: Vec<_> = ciphers(&CIPHERS.map_names()).unwrap();
        assert_eq!(suites, ALL_CIPHER_SUITES);
        let typed: Vec<String> = GROUPS.iter().map(|row| row[0].to_owned()).collect();
        assert_eq!(groups(&typed).unwrap().len(), ALL_KX_GROUPS.len());
    }

    trait Named {
        fn map_names(&self) -> Vec<String>;
    }

    impl Named for [[&str; 2]] {
        fn map_names(&self) -> Vec<String> {
            self.iter().map(|row| row[1].to_owned()).collect()
        }
    }

    #[test]
    fn names_of_openssl_and_iana_are_accepted() {
        for (typed, ours) in [
            ("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
            ("tls_ecdhe_rsa_with_aes_128_gcm_sha256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
            (" TLS_AES_128_GCM_SHA256 ", "TLS13_AES_128_GCM_SHA256"),
            ("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
        ] {
            let suite = cipher(typed).unwrap();
            assert_eq!(format!("{:?}", suite.suite()), ours, "{typed}");
        }
        for (typed, ours) in
            [("p-256", "secp256r1"), ("PRIME256V1", "secp256r1"), ("x25519", "X25519")]
        {
            assert_eq!(format!("{:?}", group(typed).unwrap().name()), ours, "{typed}");
        }
    }

    #[test]
    fn the_order_is_kept_and_duplicates_are_removed() {
        let typed = ["P-384", "x25519", "secp384r1"].map(str::to_owned);
        let names: Vec<_> = groups(&typed).unwrap().iter().map(|group| group.name()).collect();
        assert_eq!(format!("{names:?}"), "[secp384r1, X25519]");
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = ciphers(&["RC4-MD5".to_owned()]).unwrap_err().to_string();
        assert!(
            error.contains("RC4-MD5") && error.contains("ECDHE-RSA-AES128-GCM-SHA256"),
            "{error}"
        );
        let error = groups(&["brainpool".to_owned()]).err().unwrap().to_string();
        assert!(error.contains("brainpool") && error.contains("X25519MLKEM768"), "{error}");
    }
}
