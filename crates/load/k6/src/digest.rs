//! Digests and encodings by the names that scripts use.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use hmac::{EagerHash, Hmac, KeyInit, Mac};
use sha2::Digest;

/// Returns the digest of `data`, or its HMAC with `key`. `None` if the algorithm is unknown.
pub(crate) fn digest(name: &str, data: &[u8], key: Option<&[u8]>) -> Option<Vec<u8>> {
    Some(match name {
        "md4" => one::<md4::Md4>(data, key)?,
        "md5" => one::<md5::Md5>(data, key)?,
        "sha1" => one::<sha1::Sha1>(data, key)?,
        "sha256" => one::<sha2::Sha256>(data, key)?,
        "sha384" => one::<sha2::Sha384>(data, key)?,
        "sha512" => one::<sha2::Sha512>(data, key)?,
        "sha512_224" => one::<sha2::Sha512_224>(data, key)?,
        "sha512_256" => one::<sha2::Sha512_256>(data, key)?,
        "ripemd160" => one::<ripemd::Ripemd160>(data, key)?,
        _ => return None,
    })
}

fn one<D: Digest + EagerHash>(data: &[u8], key: Option<&[u8]>) -> Option<Vec<u8>> {
    let Some(key) = key else { return Some(D::digest(data).to_vec()) };
    let mut mac = Hmac::<D>::new_from_slice(key).ok()?;
    mac.update(data);
    Some(mac.finalize().into_bytes().to_vec())
}

/// # Errors
/// Fails if the variant of base64 is unknown.
pub(crate) fn base64_encode(data: &[u8], form: &str) -> Result<String, String> {
    match form {
        "std" => Ok(STANDARD.encode(data)),
        "rawstd" => Ok(STANDARD_NO_PAD.encode(data)),
        "url" => Ok(URL_SAFE.encode(data)),
        "rawurl" => Ok(URL_SAFE_NO_PAD.encode(data)),
        other => Err(format!("unknown base64 variant '{other}'; use std, rawstd, url or rawurl")),
    }
}

/// # Errors
/// Fails if the variant is unknown, or the text is not base64.
pub(crate) fn base64_decode(text: &str, form: &str) -> Result<Vec<u8>, String> {
    let made = match form {
        "std" => STANDARD.decode(text),
        "rawstd" => STANDARD_NO_PAD.decode(text),
        "url" => URL_SAFE.decode(text),
        "rawurl" => URL_SAFE_NO_PAD.decode(text),
        other => return base64_encode(b"", other).map(String::into_bytes),
    };
    made.map_err(|why| format!("not base64: {why}"))
}
