//! The bytes of every generated body: 64 characters in a cycle, so that any offset can be checked
//! without storing the body.

use hyper::body::Bytes;

/// Byte `i` of a generated body is byte `i % 64` of this line.
pub(crate) const LINE: &[u8; 64] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-\n";

/// Maximum length that one call of [`slice()`] returns.
pub(crate) const BLOCK_LEN: usize = 64 * 1024;

static BLOCK: [u8; BLOCK_LEN] = {
    let mut block = [0; BLOCK_LEN];
    let mut index = 0;
    while index < BLOCK_LEN {
        block[index] = LINE[index % LINE.len()];
        index += 1;
    }
    block
};

/// Returns body bytes from `position` on: `wanted` bytes, or as many as are contiguous (at least
/// one if `wanted` is above 0).
pub(crate) fn slice(position: u64, wanted: u64) -> &'static [u8] {
    let start = (position % LINE.len() as u64) as usize;
    let len = wanted.min((BLOCK_LEN - start) as u64) as usize;
    &BLOCK[start..start + len]
}

/// Returns at most [`BLOCK_LEN`] contiguous bytes from `position` on.
pub(crate) fn bytes(position: u64, wanted: usize) -> Bytes {
    let first = slice(position, wanted as u64);
    if first.len() == wanted {
        return Bytes::from_static(first);
    }
    let rest = slice(position + first.len() as u64, (wanted - first.len()) as u64);
    Bytes::from([first, rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offset_continues_the_line() {
        for position in [0, 1, 63, 64, 100, 65_535, 1 << 40] {
            for wanted in [0usize, 1, 64, 1000, BLOCK_LEN] {
                let got = bytes(position, wanted);
                assert_eq!(got.len(), wanted);
                assert!(
                    got.iter()
                        .enumerate()
                        .all(|(i, byte)| *byte == LINE[((position + i as u64) % 64) as usize])
                );
            }
        }
    }
}
