//! Bytes as text.

use std::fmt::Write;

/// Formats bytes as hexadecimal digits, in lower case.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String accepts all text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(hex([0, 15, 16, 255]), "000f10ff");
        assert_eq!(hex([]), "");
    }
}
