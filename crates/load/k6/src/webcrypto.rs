//! WebCrypto's operations on keys given as bytes. A key of AES or HMAC is its raw bytes, a private
//! key is PKCS #8, a public key of RSA is a SubjectPublicKeyInfo, and one of an elliptic curve is
//! an uncompressed point.

mod elliptic;
mod rsa;

use aws_lc_rs::cipher::{self, DecryptionContext, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{aead, pbkdf2};
use rquickjs::prelude::Func;
use rquickjs::{ArrayBuffer, Ctx, Exception, Object, Result};
use std::num::NonZeroU32;

/// Size of a GCM tag in bytes.
const TAG_BYTES: usize = 16;
/// Maximum number of bits that one call derives.
const DERIVED_BITS_MAX: f64 = 8.0 * 65_536.0;
/// Maximum number of rounds of PBKDF2 of one call: about a second.
const ROUNDS_MAX: f64 = 5e6;

/// Result of an operation: bytes, or the name and the message of an exception.
type Made = std::result::Result<Vec<u8>, String>;

/// Fields that a script passes with a call.
struct SubtleFields<'a, 'js>(&'a Object<'js>);

impl SubtleFields<'_, '_> {
    fn text(&self, name: &str) -> String {
        self.0.get(name).unwrap_or_default()
    }

    fn number(&self, name: &str) -> f64 {
        self.0.get(name).unwrap_or(0.0)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        let found: Option<ArrayBuffer<'_>> = self.0.get(name).ok();
        // SAFETY: no script runs until the bytes are copied.
        found.and_then(|found| unsafe { found.as_bytes() }.map(<[u8]>::to_vec)).unwrap_or_default()
    }
}

/// Returns the message for a combination that is not available.
fn unsupported(what: &str) -> String {
    format!("NotSupportedError: {what} is not available")
}

/// Returns the message for an operation that failed: it gives no reason, which could help to find
/// the key.
fn failed(what: &str) -> String {
    format!("OperationError: {what} failed")
}

/// Returns the message for a key or parameter that cannot be used.
fn invalid(what: &str) -> String {
    format!("DataError: {what} is not valid")
}

pub(crate) fn install<'js>(native: &Object<'js>) -> Result<()> {
    native.set(
        "subtle",
        Func::from(
            |ctx: Ctx<'js>, name: String, fields: Object<'js>| -> Result<ArrayBuffer<'js>> {
                let made = perform(&name, &SubtleFields(&fields));
                let made = made.map_err(|why| Exception::throw_message(&ctx, &why))?;
                ArrayBuffer::new(ctx, made)
            },
        ),
    )
}

fn perform(name: &str, fields: &SubtleFields<'_, '_>) -> Made {
    match name {
        "encrypt" | "decrypt" => match &*fields.text("name") {
            "AES-GCM" => gcm(name == "encrypt", fields),
            "AES-CBC" => cbc(name == "encrypt", fields),
            "AES-CTR" => ctr(fields),
            "RSA-OAEP" => rsa::crypt(name == "encrypt", fields),
            other => Err(unsupported(other)),
        },
        "sign" | "verify" => match &*fields.text("name") {
            "ECDSA" if name == "sign" => elliptic::sign(fields),
            "ECDSA" => elliptic::verify(fields),
            _ if name == "sign" => rsa::sign(fields),
            _ => rsa::verify(fields),
        },
        "pbkdf2" => derive(fields),
        "ecdh" => elliptic::agree(fields),
        "ecGenerate" => elliptic::generate(fields),
        "ecPublic" => elliptic::public_of(fields),
        "ecScalar" => elliptic::scalar_of(fields),
        "ecPrivate" => elliptic::private_of_scalar(fields),
        "ecPoint" => elliptic::point_of(fields),
        "ecInfo" => elliptic::info_of(fields),
        "rsaGenerate" => rsa::generate(fields),
        "rsaPublic" => rsa::public_of(fields),
        "rsaCheck" => rsa::checked(fields),
        "rsaPrivateOf" => rsa::private_of_parts(fields),
        "rsaPublicOf" => rsa::public_of_parts(fields),
        other => Err(unsupported(other)),
    }
}

fn cipher_key(fields: &SubtleFields<'_, '_>) -> std::result::Result<UnboundCipherKey, String> {
    let key = fields.bytes("key");
    let algorithm = match key.len() {
        16 => &cipher::AES_128,
        24 => &cipher::AES_192,
        32 => &cipher::AES_256,
        _ => return Err(invalid("the length of the key")),
    };
    UnboundCipherKey::new(algorithm, &key).map_err(|_| invalid("the key"))
}

fn block(
    fields: &SubtleFields<'_, '_>,
    name: &str,
) -> std::result::Result<FixedLength<16>, String> {
    let bytes: [u8; 16] = fields.bytes(name).try_into().map_err(|_| {
        format!("OperationError: {name} has 16 bytes; write new Uint8Array(16) and fill it")
    })?;
    Ok(FixedLength::from(bytes))
}

fn cbc(encrypts: bool, fields: &SubtleFields<'_, '_>) -> Made {
    let (key, iv, mut data) = (cipher_key(fields)?, block(fields, "iv")?, fields.bytes("data"));
    if encrypts {
        let key = cipher::PaddedBlockEncryptingKey::cbc_pkcs7(key);
        let key = key.map_err(|_| failed("AES-CBC"))?;
        let context = EncryptionContext::Iv128(iv);
        key.less_safe_encrypt(&mut data, context).map_err(|_| failed("AES-CBC"))?;
        return Ok(data);
    }
    let key = cipher::PaddedBlockDecryptingKey::cbc_pkcs7(key).map_err(|_| failed("AES-CBC"))?;
    let context = DecryptionContext::Iv128(iv);
    let plain = key.decrypt(&mut data, context).map_err(|_| failed("AES-CBC"))?;
    Ok(plain.to_vec())
}

/// Encrypts or decrypts: the operation is the same.
fn ctr(fields: &SubtleFields<'_, '_>) -> Made {
    let (key, counter) = (cipher_key(fields)?, block(fields, "counter")?);
    let mut data = fields.bytes("data");
    let key = cipher::EncryptingKey::ctr(key).map_err(|_| failed("AES-CTR"))?;
    let context = EncryptionContext::Iv128(counter);
    key.less_safe_encrypt(&mut data, context).map_err(|_| failed("AES-CTR"))?;
    Ok(data)
}

fn gcm(encrypts: bool, fields: &SubtleFields<'_, '_>) -> Made {
    let (key, iv) = (fields.bytes("key"), fields.bytes("iv"));
    if fields.number("tagLength") as usize != 8 * TAG_BYTES {
        return Err(unsupported("a tagLength other than 128"));
    }
    let algorithm = match key.len() {
        16 => &aead::AES_128_GCM,
        24 => &aead::AES_192_GCM,
        32 => &aead::AES_256_GCM,
        _ => return Err(invalid("the length of the key")),
    };
    let nonce = aead::Nonce::try_assume_unique_for_key(&iv);
    let nonce = nonce.map_err(|_| unsupported("an iv of AES-GCM of other than 12 bytes"))?;
    let key = aead::UnboundKey::new(algorithm, &key).map_err(|_| invalid("the key"))?;
    let key = aead::LessSafeKey::new(key);
    let (aad, mut data) = (aead::Aad::from(fields.bytes("additionalData")), fields.bytes("data"));
    if encrypts {
        let sealed = key.seal_in_place_append_tag(nonce, aad, &mut data);
        return sealed.map(|()| data).map_err(|_| failed("AES-GCM"));
    }
    let plain = key.open_in_place(nonce, aad, &mut data).map_err(|_| failed("AES-GCM"))?;
    Ok(plain.to_vec())
}

fn derive(fields: &SubtleFields<'_, '_>) -> Made {
    let algorithm = match &*fields.text("hash") {
        "SHA-1" => pbkdf2::PBKDF2_HMAC_SHA1,
        "SHA-256" => pbkdf2::PBKDF2_HMAC_SHA256,
        "SHA-384" => pbkdf2::PBKDF2_HMAC_SHA384,
        "SHA-512" => pbkdf2::PBKDF2_HMAC_SHA512,
        other => return Err(unsupported(other)),
    };
    let (rounds, bits) = (fields.number("iterations"), fields.number("bits"));
    if !(1.0..=ROUNDS_MAX).contains(&rounds) {
        return Err(format!("OperationError: iterations must be 1 to {ROUNDS_MAX}"));
    }
    if !(8.0..=DERIVED_BITS_MAX).contains(&bits) || bits % 8.0 != 0.0 {
        return Err(invalid("the number of bits"));
    }
    let rounds = NonZeroU32::new(rounds as u32).ok_or_else(|| invalid("iterations"))?;
    let mut out = vec![0; bits as usize / 8];
    pbkdf2::derive(algorithm, rounds, &fields.bytes("salt"), &fields.bytes("key"), &mut out);
    Ok(out)
}
