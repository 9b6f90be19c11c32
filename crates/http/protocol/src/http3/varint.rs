//! Whole numbers as QUIC writes them (RFC 9000 section 16).

/// Largest number.
pub const MAX: u64 = (1 << 62) - 1;

/// Number of bytes of the longest encoding.
pub const BYTES_MAX: usize = 8;

/// Appends a number, at most [`MAX`], to `out`, in as few bytes as possible.
pub fn put(out: &mut Vec<u8>, number: u64) {
    let (bytes, form) = match number {
        0..=0x3f => (1, 0),
        0x40..=0x3fff => (2, 1),
        0x4000..=0x3fff_ffff => (4, 2),
        _ => (8, 3_u64),
    };
    let written = (number & MAX | form << (bytes * 8 - 2)).to_be_bytes();
    out.extend_from_slice(&written[8 - bytes..]);
}

/// Returns the number at the beginning of the bytes, and its length; `None` if it is incomplete.
pub fn get(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let rest = bytes.get(1..length)?;
    let number = rest.iter().fold(u64::from(first & 0x3f), |sum, byte| sum << 8 | u64::from(*byte));
    Some((number, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 appendix A.1.
    #[test]
    fn the_standard_s_examples() {
        for (bytes, number) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(get(bytes), Some((number, bytes.len())));
            assert_eq!(get(&bytes[..bytes.len() - 1]), None);
            let mut out = Vec::new();
            put(&mut out, number);
            assert_eq!(out, bytes);
        }
        assert_eq!(get(&[0x40, 0x25]), Some((37, 2)), "more bytes than needed");
    }
}
