//! PEM files of scripts: certificates, and private keys that may be encrypted.

use crate::digest::{base64_decode, base64_encode, digest};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";
/// Number of characters in a line of base64.
const LINE: usize = 64;

/// Block of a PEM file.
struct PemBlock<'a> {
    label: &'a str,
    /// Lines like `DEK-Info: …` (RFC 1421 section 4.6).
    fields: Vec<(&'a str, &'a str)>,
    content: Vec<u8>,
}

/// Returns the first block; `None` without a block, or if it is damaged.
fn first_block(text: &str) -> Option<PemBlock<'_>> {
    let (label, rest) = text[text.find(BEGIN)? + BEGIN.len()..].split_once(DASHES)?;
    let (body, _) = rest.split_once(&format!("-----END {label}{DASHES}"))?;
    let mut fields = Vec::new();
    let mut encoded = String::new();
    for line in body.lines().map(str::trim) {
        match line.split_once(':') {
            Some((name, value)) => fields.push((name, value.trim())),
            None => encoded.push_str(line),
        }
    }
    let content = base64_decode(&encoded, "std").ok().filter(|content| !content.is_empty())?;
    Some(PemBlock { label, fields, content })
}

/// Returns whether the text has a certificate.
pub(crate) fn has_certificate(text: &str) -> bool {
    let at = text.find("-----BEGIN CERTIFICATE-----");
    at.and_then(|at| first_block(&text[at..])).is_some()
}

/// Returns whether the text has a private key that is not encrypted.
pub(crate) fn has_private_key(text: &str) -> bool {
    let found = first_key(text);
    found.is_some_and(|key| key.label != "ENCRYPTED PRIVATE KEY" && key.field("DEK-Info").is_none())
}

/// Returns the first private key. Files of elliptic curves may begin with parameters.
fn first_key(text: &str) -> Option<PemBlock<'_>> {
    let starts = text.match_indices(BEGIN).map(|(at, _)| &text[at..]);
    starts.filter_map(first_block).find(|block| block.label.ends_with("PRIVATE KEY"))
}

impl PemBlock<'_> {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// Decrypts a private key in the format of `openssl rsa -aes256 -traditional`, as k6 does.
///
/// # Errors
/// Fails if the key is not encrypted in this format, or the password is wrong.
pub(crate) fn decrypted_key(text: &str, password: &str) -> Result<String, String> {
    let block = first_key(text).ok_or("failed to decode PEM key")?;
    if block.label == "ENCRYPTED PRIVATE KEY" {
        return Err("encrypted pkcs8 formatted key is not supported; convert it with openssl rsa \
                    -aes256 -traditional, or decrypt it with openssl pkey"
            .to_owned());
    }
    let info =
        block.field("DEK-Info").ok_or("a password is given, but the key is not encrypted")?;
    let (cipher, iv) = info.split_once(',').unwrap_or((info, ""));
    let (algorithm, length) = match cipher {
        "AES-128-CBC" => (&AES_128, 16),
        "AES-192-CBC" => (&AES_192, 24),
        "AES-256-CBC" => (&AES_256, 32),
        other => {
            return Err(format!(
                "a key encrypted with {other} cannot be read; encrypt it with openssl rsa \
                 -aes256 -traditional"
            ));
        }
    };
    let iv: [u8; 16] = hex_bytes(iv).and_then(|iv| iv.try_into().ok()).ok_or(
        "the initialization vector in the key's DEK-Info field is not 16 bytes in hexadecimal",
    )?;
    let wrong = || "x509: decryption password incorrect".to_owned();
    let key = UnboundCipherKey::new(algorithm, &key_of(password, &iv[..8], length));
    let key = key.and_then(PaddedBlockDecryptingKey::cbc_pkcs7).map_err(|_| wrong())?;
    let mut content = block.content;
    let context = DecryptionContext::Iv128(FixedLength::from(iv));
    let plain = key.decrypt(&mut content, context).map_err(|_| wrong())?;
    // a wrong password may leave valid padding; a key is a sequence of DER
    if plain.first() != Some(&0x30) {
        return Err(wrong());
    }
    let encoded = base64_encode(plain, "std")?;
    let mut out = format!("{BEGIN}{}{DASHES}\n", block.label);
    for line in encoded.as_bytes().chunks(LINE) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out.push_str(&format!("-----END {}{DASHES}\n", block.label));
    Ok(out)
}

/// Derives a key like OpenSSL's `EVP_BytesToKey` with MD5 and one iteration.
fn key_of(password: &str, salt: &[u8], length: usize) -> Vec<u8> {
    let mut key = Vec::new();
    let mut last = Vec::new();
    while key.len() < length {
        let input = [&last, password.as_bytes(), salt].concat();
        last = digest("md5", &input, None).unwrap_or_default();
        key.extend_from_slice(&last);
    }
    key.truncate(length);
    key
}

fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "-----BEGIN EC PRIVATE KEY-----\n\
        MHcCAQEEIKdmTz4cik9edR8vqQW+KxJc5ZEwjpSwcjTbQretLsQyoAoGCCqGSM49\n\
        AwEHoUQDQgAE5Sd3cDVX7uSEmtpCl0YcyvjDd0n/VGTqReJOaZVR4hRwE3bQYzr6\n\
        8QHym0X5ds5c6BhMvi7qyTZo/GmMXFbAhg==\n\
        -----END EC PRIVATE KEY-----\n";
    const ENCRYPTED: &str = "-----BEGIN EC PRIVATE KEY-----\n\
        Proc-Type: 4,ENCRYPTED\n\
        DEK-Info: AES-256-CBC,4CA37B18F5650A71178F777920C8A8F3\n\
        \n\
        35TsiPRNoh4Rz+lH30wmiYnL7bFbr8qOXI44fQOvSG2d0IZA7HhudcxuxA1+Uidm\n\
        CYh/PUCLrzLZAWlTzaI3LgXDxTY21vefQQTen2LrsOeERU++ei5isBjZ3rFgzOav\n\
        CjgNGBOc6qCSwmZJNc4bHbzWAPziTZRUNB2owkTsUVA=\n\
        -----END EC PRIVATE KEY-----\n";

    #[test]
    fn keys_are_decrypted_with_their_password() {
        assert!(has_private_key(PLAIN) && !has_private_key(ENCRYPTED));
        let key = decrypted_key(ENCRYPTED, "secret").unwrap();
        assert!(has_private_key(&key));
        let content = |text: &str| first_key(text).unwrap().content;
        assert_eq!(content(&key), content(PLAIN));
        assert_eq!(
            decrypted_key(ENCRYPTED, "other").unwrap_err(),
            "x509: decryption password incorrect"
        );
    }

    #[test]
    fn keys_of_other_formats_are_refused() {
        let pkcs8 =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let des = ENCRYPTED.replace("AES-256-CBC", "DES-EDE3-CBC");
        for (text, why) in [
            (pkcs8, "encrypted pkcs8 formatted key is not supported"),
            (&des, "encrypted with DES-EDE3-CBC cannot be read"),
            (PLAIN, "is not encrypted"),
            ("", "failed to decode PEM key"),
            ("-----BEGIN RSA PRIVATE KEY-----\n!\n-----END RSA PRIVATE KEY-----\n", "decode PEM"),
        ] {
            let found = decrypted_key(text, "secret").unwrap_err();
            assert!(found.contains(why), "{found}");
        }
        assert!(!has_certificate(PLAIN) && !has_certificate("-----BEGIN CERTIFICATE-----\nx"));
    }
}
