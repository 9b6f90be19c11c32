//! The key length of a certificate, as OpenSSL counts it.

use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

/// Returns the number of bits of the public key; 0 for an unknown kind of certificate or key.
pub(crate) fn key_bits(certificate: &CertificateDer<'_>) -> u32 {
    let Ok(parsed) = EndEntityCert::try_from(certificate) else { return 0 };
    key_size(parsed.subject_public_key_info().as_ref()).unwrap_or(0)
}

/// Returns the key size of a SubjectPublicKeyInfo (RFC 5280 §4.1): RSA by its modulus (RFC 8017
/// §A.1.1), elliptic curves by the curve's order (RFC 5480 §2.1.1.1), Ed25519 (RFC 8410 §3).
fn key_size(info: &[u8]) -> Option<u32> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    const CURVE: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
    const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
    const CURVES: [(&[u8], u32); 3] = [
        (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], 256),
        (&[0x2b, 0x81, 0x04, 0x00, 0x22], 384),
        (&[0x2b, 0x81, 0x04, 0x00, 0x23], 521),
    ];
    let (inner, _) = element(SEQUENCE, info)?;
    let (algorithm, rest) = element(SEQUENCE, inner)?;
    let (kind, parameters) = element(OBJECT_ID, algorithm)?;
    match kind {
        RSA => {
            let (bits, _) = element(BIT_STRING, rest)?;
            let (key, _) = element(SEQUENCE, bits.get(1..)?)?;
            let (modulus, _) = element(INTEGER, key)?;
            let start = modulus.iter().position(|byte| *byte != 0)?;
            let digits = &modulus[start..];
            Some(digits.len() as u32 * 8 - digits[0].leading_zeros())
        }
        CURVE => {
            let (curve, _) = element(OBJECT_ID, parameters)?;
            CURVES.iter().find(|(known, _)| *known == curve).map(|(_, bits)| *bits)
        }
        ED25519 => Some(253),
        _ => None,
    }
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT_ID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// Returns the value of the first element, which must have this tag, and the rest (DER, X.690
/// §8.1).
fn element(tag: u8, input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let fold = |sum: usize, digit: &u8| sum << 8 | usize::from(*digit);
            (digits.iter().fold(0, fold), rest)
        }
        _ => return None,
    };
    let parts = rest.split_at_checked(length)?;
    (found == tag).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{
        CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
    };

    #[test]
    fn curves_have_the_bits_of_their_order() {
        for (kind, bits) in
            [(&PKCS_ECDSA_P256_SHA256, 256), (&PKCS_ECDSA_P384_SHA384, 384), (&PKCS_ED25519, 253)]
        {
            let key = KeyPair::generate_for(kind).unwrap();
            let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            let certificate = params.self_signed(&key).unwrap();
            assert_eq!(key_bits(certificate.der()), bits);
        }
    }

    #[test]
    fn rsa_by_its_modulus() {
        // a modulus of 9 bits, written by hand
        let key = [0x30, 0x07, 0x02, 0x02, 0x01, 0x11, 0x02, 0x01, 0x03];
        let mut info =
            vec![0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
        info.extend([0x03, key.len() as u8 + 1, 0]);
        info.extend(key);
        let whole = [&[0x30, info.len() as u8], info.as_slice()].concat();
        assert_eq!(key_size(&whole), Some(9));
        for end in 0..whole.len() {
            assert_eq!(key_size(&whole[..end]), None, "cut at {end}");
        }
    }
}
