//! Fields of encoded messages, found without their descriptors.

use protocol::grpc::varint;

/// Returns a number that is equal for equal values of a field. `path`: the field numbers of the
/// enclosing messages, then that of the field. A missing field counts as 0, the default of proto3.
/// Returns `None` if the bytes are not a valid message.
pub(crate) fn field_key(message: &[u8], path: &[u32]) -> Option<u64> {
    let (number, inner) = path.split_first()?;
    let mut found = FieldValue::Number(0);
    let mut rest = message;
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let value = FieldValue::read((tag & 7) as u8, &mut rest)?;
        // of a field that occurs several times, the last one counts
        if tag >> 3 == u64::from(*number) {
            found = value;
        }
    }
    match (found, inner) {
        (FieldValue::Number(0), _) => Some(0),
        (value, []) => Some(value.key()),
        (FieldValue::Bytes(bytes), inner) => field_key(bytes, inner),
        (FieldValue::Number(_), _) => None,
    }
}

enum FieldValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> FieldValue<'a> {
    /// Reads a value of a wire type. Groups are not read: proto3 has none.
    fn read(wire: u8, rest: &mut &'a [u8]) -> Option<FieldValue<'a>> {
        match wire {
            0 => varint(rest).map(FieldValue::Number),
            1 => {
                Some(FieldValue::Number(u64::from_le_bytes(take_bytes(rest, 8)?.try_into().ok()?)))
            }
            2 => {
                let length = usize::try_from(varint(rest)?).ok()?;
                take_bytes(rest, length).map(FieldValue::Bytes)
            }
            5 => Some(FieldValue::Number(
                u32::from_le_bytes(take_bytes(rest, 4)?.try_into().ok()?).into(),
            )),
            _ => None,
        }
    }

    fn key(&self) -> u64 {
        match self {
            FieldValue::Number(number) => *number,
            // FNV-1a; an empty text is the default, which may be absent
            FieldValue::Bytes([]) => 0,
            FieldValue::Bytes(bytes) => bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            }),
        }
    }
}

fn take_bytes<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (value, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_equal_keys_wherever_they_are() {
        // 1: 150, 2: "testing", 3: {1: 7}, 4: fixed64, 5: fixed32
        let message =
            b"\x08\x96\x01\x12\x07testing\x1a\x02\x08\x07\x21\x05\0\0\0\0\0\0\0\x2d\x06\0\0\0";
        assert_eq!(field_key(message, &[1]), Some(150));
        assert_eq!(field_key(message, &[3, 1]), Some(7));
        assert_eq!(field_key(message, &[4]), Some(5));
        assert_eq!(field_key(message, &[5]), Some(6));
        let text = field_key(message, &[2]);
        assert_eq!(text, field_key(b"\x12\x07testing", &[2]));
        assert_ne!(text, field_key(b"\x12\x07testinh", &[2]));
        // the last one counts, and an absent field is the default
        assert_eq!(field_key(b"\x08\x01\x08\x02", &[1]), Some(2));
        assert_eq!(field_key(b"\x12\0", &[2]), field_key(b"", &[2]));
        assert_eq!(field_key(b"", &[3, 1]), Some(0));
    }

    #[test]
    fn bytes_that_are_no_message_have_no_key() {
        for bytes in [&b"\x08"[..], b"\x12\x05abc", b"\x0b", b"\x21\0", b"\x80\x80"] {
            assert_eq!(field_key(bytes, &[1]), None, "{bytes:?}");
        }
        assert_eq!(field_key(b"\x08\x01", &[1, 2]), None);
        assert_eq!(field_key(b"\x08\x01", &[]), None);
    }
}
