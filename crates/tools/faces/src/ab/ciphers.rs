//! `-Z`: OpenSSL's cipher lists, limited to supported suites, and OpenSSL's names for the
//! negotiated suites.

use plan::TlsVersions;

/// Cipher suite: OpenSSL's name, our name, and the key's bits.
struct Suite {
    openssl: &'static str,
    ours: &'static str,
    bits: u32,
}

const fn suite(openssl: &'static str, ours: &'static str, bits: u32) -> Suite {
    Suite { openssl, ours, bits }
}

const NEWEST: [Suite; 3] = [
    suite("TLS_AES_256_GCM_SHA384", "TLS13_AES_256_GCM_SHA384", 256),
    suite("TLS_CHACHA20_POLY1305_SHA256", "TLS13_CHACHA20_POLY1305_SHA256", 256),
    suite("TLS_AES_128_GCM_SHA256", "TLS13_AES_128_GCM_SHA256", 128),
];

const OLDER: [Suite; 6] = [
    suite("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", 256),
    suite("ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", 256),
    suite("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", 256),
    suite("ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", 256),
    suite("ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", 128),
    suite("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", 128),
];

/// Returns OpenSSL's name and the key's bits for a suite by our name; an unknown suite keeps its
/// name.
pub(crate) fn openssl_name(ours: &str) -> (&str, u32) {
    let known = NEWEST.iter().chain(&OLDER).find(|suite| suite.ours == ours);
    known.map_or((ours, 0), |suite| (suite.openssl, suite.bits))
}

/// Returns the suites of a list, by OpenSSL's names. A list selects TLS 1.2 suites and does not
/// affect those of 1.3, unless only 1.3 is enabled (SSL_CTX_set_ciphersuites). `None` if no suite
/// is left.
pub(crate) fn chosen(list: &str, versions: TlsVersions) -> Option<Vec<String>> {
    let words = || list.split([':', ',', ' ']).filter(|word| !word.is_empty());
    let name = |suite: &Suite| suite.openssl.to_owned();
    if versions == TlsVersions::Tls13 {
        let named = |word| NEWEST.iter().find(|suite: &&Suite| suite.openssl == word);
        let found: Vec<String> = words().filter_map(named).map(name).collect();
        return (!found.is_empty()).then_some(found);
    }
    let mut kept: Vec<&Suite> = Vec::new();
    for word in words() {
        match word.split_at(1) {
            ("!" | "-", rest) => kept.retain(|suite| !covers(rest, suite.openssl)),
            ("+" | "@", _) => {}
            _ => {
                let more = OLDER.iter().filter(|suite| covers(word, suite.openssl));
                let fresh: Vec<&Suite> =
                    more.filter(|suite| kept.iter().all(|k| k.ours != suite.ours)).collect();
                kept.extend(fresh);
            }
        }
    }
    if kept.is_empty() {
        return None;
    }
    let newest = NEWEST.iter().filter(|_| versions == TlsVersions::Any);
    Some(newest.chain(kept).map(name).collect())
}

/// Returns whether a word of a list (a name, a group, or groups joined by `+`) covers a suite.
fn covers(word: &str, name: &str) -> bool {
    word.split('+').all(|part| match part {
        "ALL" | "DEFAULT" | "HIGH" | "ECDH" | "ECDHE" | "EECDH" | "kECDHE" | "kEECDH"
        | "TLSv1.2" => true,
        "AESGCM" => name.contains("-GCM-"),
        "AES" => name.contains("AES"),
        "AES128" => name.contains("AES128"),
        "AES256" => name.contains("AES256"),
        "CHACHA20" => name.contains("CHACHA20"),
        "RSA" | "aRSA" => name.contains("-RSA-"),
        "ECDSA" | "aECDSA" => name.contains("-ECDSA-"),
        "SHA256" => name.ends_with("SHA256"),
        "SHA384" => name.ends_with("SHA384"),
        whole => whole == name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_select_supported_protocols() {
        let describe = |list: &str, versions| {
            format!("{list}: {}", chosen(list, versions).map_or("none".into(), |all| all.join(" ")))
        };
        let lines = [
            describe("ECDHE-RSA-AES128-GCM-SHA256", TlsVersions::Tls12),
            describe("HIGH:!CHACHA20:!aRSA", TlsVersions::Tls12),
            describe("AES128:@STRENGTH:AES128", TlsVersions::Any),
            describe("bogus", TlsVersions::Any),
            describe("HIGH:!ALL", TlsVersions::Any),
            describe("TLS_AES_128_GCM_SHA256", TlsVersions::Tls13),
            describe("HIGH", TlsVersions::Tls13),
        ];
        insta::assert_snapshot!(lines.join("\n"), @"
        ECDHE-RSA-AES128-GCM-SHA256: ECDHE-RSA-AES128-GCM-SHA256
        HIGH:!CHACHA20:!aRSA: ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-ECDSA-AES128-GCM-SHA256
        AES128:@STRENGTH:AES128: TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256 TLS_AES_128_GCM_SHA256 ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-RSA-AES128-GCM-SHA256
        bogus: none
        HIGH:!ALL: none
        TLS_AES_128_GCM_SHA256: TLS_AES_128_GCM_SHA256
        HIGH: none
        ");
    }
}
