//! Elliptic curves: ECDSA and ECDH on P-256, P-384 and P-521.

use super::{Made, SubtleFields, failed, invalid, unsupported};
use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey};
use aws_lc_rs::encoding::{AsBigEndian, AsDer, EcPrivateKeyBin, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{self, EcdsaKeyPair, EcdsaSigningAlgorithm, EcdsaVerificationAlgorithm};

/// Curve with the start of a SubjectPublicKeyInfo up to the point (RFC 5480), and the size of a
/// point.
struct EcCurve {
    agreement: &'static agreement::Algorithm,
    info: &'static [u8],
    point_bytes: usize,
}

fn curve(fields: &SubtleFields<'_, '_>) -> Result<EcCurve, String> {
    match &*fields.text("namedCurve") {
        "P-256" => Ok(EcCurve {
            agreement: &agreement::ECDH_P256,
            info:
                b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\
                \x03\x01\x07\x03\x42\x00",
            point_bytes: 65,
        }),
        "P-384" => Ok(EcCurve {
            agreement: &agreement::ECDH_P384,
            info:
                b"\x30\x76\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22\
                \x03\x62\x00",
            point_bytes: 97,
        }),
        "P-521" => Ok(EcCurve {
            agreement: &agreement::ECDH_P521,
            info:
                b"\x30\x81\x9b\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\
                \x23\x03\x81\x86\x00",
            point_bytes: 133,
        }),
        other => Err(unsupported(&format!("the curve {other}"))),
    }
}

type Ecdsa = (&'static EcdsaSigningAlgorithm, &'static EcdsaVerificationAlgorithm);

fn ecdsa(fields: &SubtleFields<'_, '_>) -> Result<Ecdsa, String> {
    let (curve, hash) = (fields.text("namedCurve"), fields.text("hash"));
    match (&*curve, &*hash) {
        ("P-256", "SHA-256") => {
            Ok((&signature::ECDSA_P256_SHA256_FIXED_SIGNING, &signature::ECDSA_P256_SHA256_FIXED))
        }
        ("P-384", "SHA-384") => {
            Ok((&signature::ECDSA_P384_SHA384_FIXED_SIGNING, &signature::ECDSA_P384_SHA384_FIXED))
        }
        ("P-521", "SHA-256") => {
            Ok((&signature::ECDSA_P521_SHA256_FIXED_SIGNING, &signature::ECDSA_P521_SHA256_FIXED))
        }
        ("P-521", "SHA-384") => {
            Ok((&signature::ECDSA_P521_SHA384_FIXED_SIGNING, &signature::ECDSA_P521_SHA384_FIXED))
        }
        ("P-521", "SHA-512") => {
            Ok((&signature::ECDSA_P521_SHA512_FIXED_SIGNING, &signature::ECDSA_P521_SHA512_FIXED))
        }
        _ => Err(unsupported(&format!("ECDSA on {curve} with {hash}"))),
    }
}

fn private(fields: &SubtleFields<'_, '_>) -> Result<PrivateKey, String> {
    let algorithm = curve(fields)?.agreement;
    let key = PrivateKey::from_private_key_der(algorithm, &fields.bytes("key"));
    key.map_err(|_| invalid("the private key"))
}

fn pkcs8(key: &PrivateKey) -> Made {
    let der: Pkcs8V1Der<'_> = key.as_der().map_err(|_| failed("the export of the key"))?;
    Ok(der.as_ref().to_vec())
}

pub(super) fn sign(fields: &SubtleFields<'_, '_>) -> Made {
    let key = EcdsaKeyPair::from_pkcs8(ecdsa(fields)?.0, &fields.bytes("key"));
    let key = key.map_err(|_| invalid("the private key"))?;
    let made = key.sign(&SystemRandom::new(), &fields.bytes("data"));
    Ok(made.map_err(|_| failed("ECDSA"))?.as_ref().to_vec())
}

/// Returns 1 for a valid signature, else 0.
pub(super) fn verify(fields: &SubtleFields<'_, '_>) -> Made {
    let key = signature::UnparsedPublicKey::new(ecdsa(fields)?.1, fields.bytes("key"));
    let valid = key.verify(&fields.bytes("data"), &fields.bytes("signature")).is_ok();
    Ok(vec![u8::from(valid)])
}

/// Returns the shared secret of a private key and the point of a peer.
pub(super) fn agree(fields: &SubtleFields<'_, '_>) -> Made {
    let (key, peer) = (private(fields)?, fields.bytes("peer"));
    let peer = UnparsedPublicKey::new(key.algorithm(), peer);
    agreement::agree(&key, peer, failed("ECDH"), |secret| Ok(secret.to_vec()))
}

pub(super) fn generate(fields: &SubtleFields<'_, '_>) -> Made {
    let key = PrivateKey::generate(curve(fields)?.agreement);
    pkcs8(&key.map_err(|_| failed("the generation of a key"))?)
}

/// Returns the point of a private key.
pub(super) fn public_of(fields: &SubtleFields<'_, '_>) -> Made {
    let point = private(fields)?.compute_public_key();
    Ok(point.map_err(|_| invalid("the private key"))?.as_ref().to_vec())
}

/// Returns the number that is a private key.
pub(super) fn scalar_of(fields: &SubtleFields<'_, '_>) -> Made {
    let key = private(fields)?;
    let scalar: EcPrivateKeyBin<'_> =
        key.as_be_bytes().map_err(|_| failed("the export of the key"))?;
    Ok(scalar.as_ref().to_vec())
}

pub(super) fn private_of_scalar(fields: &SubtleFields<'_, '_>) -> Made {
    let key = PrivateKey::from_private_key(curve(fields)?.agreement, &fields.bytes("key"));
    pkcs8(&key.map_err(|_| invalid("the private key"))?)
}

/// Returns the point in a SubjectPublicKeyInfo, or the point itself.
pub(super) fn point_of(fields: &SubtleFields<'_, '_>) -> Made {
    let (curve, key) = (curve(fields)?, fields.bytes("key"));
    let point = key.strip_prefix(curve.info).unwrap_or(&key);
    if point.len() != curve.point_bytes {
        return Err(invalid("the public key"));
    }
    let parsed: Result<agreement::ParsedPublicKey, _> =
        UnparsedPublicKey::new(curve.agreement, point).try_into();
    parsed.map_err(|_| invalid("the public key"))?;
    Ok(point.to_vec())
}

/// Returns a point as a SubjectPublicKeyInfo.
pub(super) fn info_of(fields: &SubtleFields<'_, '_>) -> Made {
    Ok([curve(fields)?.info, &fields.bytes("key")].concat())
}
