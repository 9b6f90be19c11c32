//! The fields of a call.

use super::super::request::values;
use protocol::hpack::Field;
use units::Nanos;

/// Returns the first value of a field.
pub(super) fn value<'f>(fields: &'f [Field], name: &str) -> Option<&'f [u8]> {
    values(fields, name.as_bytes()).next()
}

pub(super) fn size(fields: &[Field]) -> usize {
    fields.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// Returns the span of `grpc-timeout`: at most eight digits, and a unit.
pub(super) fn timeout(value: &[u8]) -> Option<Nanos> {
    let (unit, digits) = value.split_last()?;
    let known = (1..=8).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let number: u64 = str::from_utf8(digits).ok()?.parse().ok().filter(|_| known)?;
    let nanos = match unit {
        b'H' => 3_600_000_000_000,
        b'M' => 60_000_000_000,
        b'S' => 1_000_000_000,
        b'm' => 1_000_000,
        b'u' => 1_000,
        b'n' => 1,
        _ => return None,
    };
    Some(Nanos(number.saturating_mul(nanos)))
}

/// Returns whether these are values in base64, with padding or without.
pub(super) fn is_base64(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').all(|one| {
        let one = one.trim_ascii();
        let padding = one.iter().rev().take_while(|byte| **byte == b'=').count();
        let digits = &one[..one.len() - padding];
        let known = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
        // one leftover character is less than a byte, and no padding completes it
        let whole = digits.len() % 4 != 1 && (padding == 0 || one.len().is_multiple_of(4));
        padding <= 2 && digits.iter().all(known) && whole
    })
}
