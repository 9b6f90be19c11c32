//! UTF-8 that arrives in pieces, checked byte by byte so that the first wrong byte is found.

/// State of a check between two pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utf8Check {
    /// Number of bytes that the character still needs.
    needed: u8,
    /// Bounds of its next byte; they are narrower for the second byte of some characters.
    low: u8,
    high: u8,
}

impl Utf8Check {
    /// Checks a piece; returns false if the text cannot become valid.
    #[must_use]
    pub fn push(&mut self, piece: &[u8]) -> bool {
        let mut rest = piece;
        while self.needed > 0 {
            let [byte, after @ ..] = rest else { return true };
            if !self.step(*byte) {
                return false;
            }
            rest = after;
        }
        // whole characters by the standard library, which is many times faster
        match std::str::from_utf8(rest) {
            Ok(_) => true,
            Err(error) if error.error_len().is_some() => false,
            Err(error) => rest[error.valid_up_to()..].iter().all(|byte| self.step(*byte)),
        }
    }

    /// Returns whether the text so far ends with a whole character.
    pub fn is_whole(&self) -> bool {
        self.needed == 0
    }

    fn step(&mut self, byte: u8) -> bool {
        if self.needed == 0 {
            let (needed, low, high) = match byte {
                0x00..=0x7f => (0, 0x80, 0xbf),
                0xc2..=0xdf => (1, 0x80, 0xbf),
                0xe0 => (2, 0xa0, 0xbf),
                0xed => (2, 0x80, 0x9f),
                0xe1..=0xef => (2, 0x80, 0xbf),
                0xf0 => (3, 0x90, 0xbf),
                0xf1..=0xf3 => (3, 0x80, 0xbf),
                0xf4 => (3, 0x80, 0x8f),
                _ => return false,
            };
            (self.needed, self.low, self.high) = (needed, low, high);
            return true;
        }
        let fits = (self.low..=self.high).contains(&byte);
        (self.needed, self.low, self.high) = (self.needed - 1, 0x80, 0xbf);
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn verdict(pieces: &[&[u8]]) -> bool {
        let mut check = Utf8Check::default();
        pieces.iter().all(|piece| check.push(piece)) && check.is_whole()
    }

    proptest! {
        #[test]
        fn every_cut_gives_the_verdict_of_the_standard_library(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..12),
                "\\PC{0,8}".prop_map(String::into_bytes),
            ],
            cut in any::<proptest::sample::Index>(),
        ) {
            let cut = cut.index(bytes.len() + 1);
            let wanted = std::str::from_utf8(&bytes).is_ok();
            prop_assert_eq!(verdict(&[&bytes[..cut], &bytes[cut..]]), wanted);
        }
    }

    #[test]
    fn the_first_wrong_byte_is_found_when_it_arrives() {
        // Autobahn 6.4: F4 90 cannot be continued to a character
        let mut check = Utf8Check::default();
        assert!(check.push("κόσμε".as_bytes()));
        assert!(check.push(&[0xf4]));
        assert!(!check.push(&[0x90]));
    }
}
