//! RSA: signatures by PKCS #1 and PSS, encryption by OAEP.

use super::{Made, SubtleFields, failed, invalid, unsupported};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{
    KeyPairComponents, KeySize, OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OAEP_SHA384_MGF1SHA384,
    OAEP_SHA512_MGF1SHA512, OaepAlgorithm, OaepPrivateDecryptingKey, OaepPublicEncryptingKey,
    PrivateDecryptingKey, PublicEncryptingKey, PublicKeyComponents,
};
use aws_lc_rs::signature::{
    self, KeyPair as _, RsaKeyPair, RsaParameters, RsaSignatureEncoding, UnparsedPublicKey,
};

/// AlgorithmIdentifier of rsaEncryption (RFC 8017 appendix A.1).
const RSA_ENCRYPTION: &[u8] = b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";

type Scheme = (&'static dyn signature::RsaEncoding, &'static RsaParameters);

/// Returns the encoding and the verification of a scheme. A salt is as long as the hash.
fn scheme(fields: &SubtleFields<'_, '_>) -> Result<Scheme, String> {
    let (name, hash) = (fields.text("name"), fields.text("hash"));
    let pair = |encoding: &'static RsaSignatureEncoding, parameters: &'static RsaParameters| {
        (encoding as &'static dyn signature::RsaEncoding, parameters)
    };
    let (salt_bytes, found) = match (&*name, &*hash) {
        ("RSASSA-PKCS1-v1_5", "SHA-256") => {
            (0, pair(&signature::RSA_PKCS1_SHA256, &signature::RSA_PKCS1_2048_8192_SHA256))
        }
        ("RSASSA-PKCS1-v1_5", "SHA-384") => {
            (0, pair(&signature::RSA_PKCS1_SHA384, &signature::RSA_PKCS1_2048_8192_SHA384))
        }
        ("RSASSA-PKCS1-v1_5", "SHA-512") => {
            (0, pair(&signature::RSA_PKCS1_SHA512, &signature::RSA_PKCS1_2048_8192_SHA512))
        }
        ("RSA-PSS", "SHA-256") => {
            (32, pair(&signature::RSA_PSS_SHA256, &signature::RSA_PSS_2048_8192_SHA256))
        }
        ("RSA-PSS", "SHA-384") => {
            (48, pair(&signature::RSA_PSS_SHA384, &signature::RSA_PSS_2048_8192_SHA384))
        }
        ("RSA-PSS", "SHA-512") => {
            (64, pair(&signature::RSA_PSS_SHA512, &signature::RSA_PSS_2048_8192_SHA512))
        }
        _ => return Err(unsupported(&format!("{name} with {hash}"))),
    };
    if salt_bytes > 0 && fields.number("saltLength") as usize != salt_bytes {
        return Err(unsupported(&format!("{hash} with a saltLength other than {salt_bytes}")));
    }
    Ok(found)
}

fn key_pair(fields: &SubtleFields<'_, '_>) -> Result<RsaKeyPair, String> {
    RsaKeyPair::from_pkcs8(&fields.bytes("key")).map_err(|_| invalid("the private key"))
}

pub(super) fn sign(fields: &SubtleFields<'_, '_>) -> Made {
    let (encoding, _) = scheme(fields)?;
    let key = key_pair(fields)?;
    let mut made = vec![0; key.public_modulus_len()];
    let signed = key.sign(encoding, &SystemRandom::new(), &fields.bytes("data"), &mut made);
    signed.map(|()| made).map_err(|_| failed("the signature"))
}

/// Returns 1 for a valid signature, else 0.
pub(super) fn verify(fields: &SubtleFields<'_, '_>) -> Made {
    let key = UnparsedPublicKey::new(scheme(fields)?.1, fields.bytes("key"));
    let valid = key.verify(&fields.bytes("data"), &fields.bytes("signature")).is_ok();
    Ok(vec![u8::from(valid)])
}

fn oaep(fields: &SubtleFields<'_, '_>) -> Result<&'static OaepAlgorithm, String> {
    match &*fields.text("hash") {
        "SHA-1" => Ok(&OAEP_SHA1_MGF1SHA1),
        "SHA-256" => Ok(&OAEP_SHA256_MGF1SHA256),
        "SHA-384" => Ok(&OAEP_SHA384_MGF1SHA384),
        "SHA-512" => Ok(&OAEP_SHA512_MGF1SHA512),
        other => Err(unsupported(&format!("RSA-OAEP with {other}"))),
    }
}

pub(super) fn crypt(encrypts: bool, fields: &SubtleFields<'_, '_>) -> Made {
    let algorithm = oaep(fields)?;
    let (key, data, label) = (fields.bytes("key"), fields.bytes("data"), fields.bytes("label"));
    let label = Some(&label[..]).filter(|label| !label.is_empty());
    let why = || failed("RSA-OAEP");
    if encrypts {
        let key = PublicEncryptingKey::from_der(&key).map_err(|_| invalid("the public key"))?;
        let key = OaepPublicEncryptingKey::new(key).map_err(|_| why())?;
        let mut out = vec![0; key.ciphertext_size()];
        let made = key.encrypt(algorithm, &data, &mut out, label).map_err(|_| why())?;
        return Ok(made.to_vec());
    }
    let key = PrivateDecryptingKey::from_pkcs8(&key).map_err(|_| invalid("the private key"))?;
    let key = OaepPrivateDecryptingKey::new(key).map_err(|_| why())?;
    let mut out = vec![0; key.min_output_size()];
    let made = key.decrypt(algorithm, &data, &mut out, label).map_err(|_| why())?;
    Ok(made.to_vec())
}

pub(super) fn generate(fields: &SubtleFields<'_, '_>) -> Made {
    let size = match fields.number("modulusLength") as u32 {
        2048 => KeySize::Rsa2048,
        3072 => KeySize::Rsa3072,
        4096 => KeySize::Rsa4096,
        other => return Err(unsupported(&format!("a modulusLength of {other}"))),
    };
    let key = PrivateDecryptingKey::generate(size).map_err(|_| failed("the generation"))?;
    let der: Pkcs8V1Der<'_> = key.as_der().map_err(|_| failed("the export of the key"))?;
    Ok(der.as_ref().to_vec())
}

/// Returns the SubjectPublicKeyInfo of a private key.
pub(super) fn public_of(fields: &SubtleFields<'_, '_>) -> Made {
    let key = key_pair(fields)?;
    let der: PublicKeyX509Der<'_> =
        key.public_key().as_der().map_err(|_| failed("the export of the key"))?;
    Ok(der.as_ref().to_vec())
}

/// Returns a SubjectPublicKeyInfo if it is valid.
pub(super) fn checked(fields: &SubtleFields<'_, '_>) -> Made {
    let key = fields.bytes("key");
    PublicEncryptingKey::from_der(&key).map_err(|_| invalid("the public key"))?;
    Ok(key)
}

/// Builds a private key from the parts of a JSON Web Key (RFC 7518 section 6.3).
pub(super) fn private_of_parts(fields: &SubtleFields<'_, '_>) -> Made {
    let part = |name: &str| fields.bytes(name);
    let key = RsaKeyPair::from_components(&KeyPairComponents {
        public_key: PublicKeyComponents { n: part("n"), e: part("e") },
        d: part("d"),
        p: part("p"),
        q: part("q"),
        dP: part("dp"),
        dQ: part("dq"),
        qInv: part("qi"),
    });
    let key = key.map_err(|_| invalid("the private key"))?;
    let der: Pkcs8V1Der<'_> = key.as_der().map_err(|_| failed("the export of the key"))?;
    Ok(der.as_ref().to_vec())
}

/// Builds a SubjectPublicKeyInfo from a modulus and an exponent.
pub(super) fn public_of_parts(fields: &SubtleFields<'_, '_>) -> Made {
    let integer = |name: &str| {
        let bytes = fields.bytes(name);
        // a leading zero keeps the number positive
        let bytes = if bytes.first().is_some_and(|first| *first >= 0x80) {
            [&[0], &bytes[..]].concat()
        } else {
            bytes
        };
        element(0x02, &bytes)
    };
    let key = element(0x30, &[integer("n"), integer("e")].concat());
    let text = element(0x03, &[&[0], &key[..]].concat());
    let info = element(0x30, &[RSA_ENCRYPTION, &text].concat());
    PublicEncryptingKey::from_der(&info).map_err(|_| invalid("the public key"))?;
    Ok(info)
}

/// Encodes an element of DER.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u64).to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut out = vec![tag];
    if content.len() < 0x80 {
        out.push(content.len() as u8);
    } else {
        out.push(0x80 | length.len() as u8);
        out.extend(length);
    }
    out.extend_from_slice(content);
    out
}
