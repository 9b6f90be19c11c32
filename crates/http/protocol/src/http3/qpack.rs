//! Compressed fields of a message (QPACK, RFC 9204): by the static table and by Huffman's code. Our
//! side announces an empty dynamic table, and uses none of the peer's, so that no stream waits for
//! another.

mod dynamic;
mod table;

pub use dynamic::{DynamicTable, Malformed, TableSection, TableUse, USES_MAX};

use crate::hpack::huffman;
use table::STATIC;

/// Overhead of one field in the size of a list (RFC 9114 section 4.2.2).
const FIELD_OVERHEAD: u64 = 32;

/// Prefix of a section without references to a dynamic table (RFC 9204 section 4.5.1).
pub(crate) const PREFIX: [u8; 2] = [0, 0];

/// Reason why a section was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The fields cannot be decompressed; the connection cannot be used any further (RFC 9204
    /// section 2.2).
    Coding,
    /// The field list is larger than our limit.
    TooLarge,
    /// The consumer of the fields rejects this one.
    Field,
}

/// Appends one field to `out`.
pub(crate) fn put_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let whole =
        STATIC.iter().position(|known| known.0.as_bytes() == name && known.1.as_bytes() == value);
    if let Some(index) = whole {
        return put_number(out, 0b1100_0000, 6, index as u64);
    }
    match STATIC.iter().position(|known| known.0.as_bytes() == name) {
        Some(index) => put_number(out, 0b0101_0000, 4, index as u64),
        None => put_string(out, 0b0010_0000, 3, name),
    }
    put_string(out, 0, 7, value);
}

/// Encodes a number after the bits of `first` that define its kind (RFC 7541 section 5.1).
fn put_number(out: &mut Vec<u8>, first: u8, bits: u32, number: u64) {
    let max = (1 << bits) - 1;
    if number < max {
        return out.push(first | number as u8);
    }
    out.push(first | max as u8);
    let mut rest = number - max;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Encodes a string, by Huffman if that is shorter; the bit before its length indicates it.
fn put_string(out: &mut Vec<u8>, first: u8, bits: u32, text: &[u8]) {
    let coded = huffman::coded_len(text);
    if coded < text.len() {
        put_number(out, first | 1 << bits, bits, coded as u64);
        huffman::encode(text, out);
    } else {
        put_number(out, first, bits, text.len() as u64);
        out.extend_from_slice(text);
    }
}

/// Returns the fields of a section that refers to no dynamic table; `None` if it cannot be read, or
/// its list is larger than `list_max`.
pub fn read_section(section: &[u8], list_max: u32) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut fields = Vec::new();
    let read = SectionDecoder::default().decode(section, list_max, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
        Ok(())
    });
    read.ok().map(|_| fields)
}

/// Returns a section of these fields, which refers to no dynamic table.
pub fn write_section<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let mut section = PREFIX.to_vec();
    fields.into_iter().for_each(|(name, value)| put_field(&mut section, name, value));
    section
}

/// Decodes sections; its buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct SectionDecoder {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl SectionDecoder {
    /// Passes the fields of a section to `take`, in order; returns their uncompressed size in names
    /// and values.
    pub(crate) fn decode(
        &mut self,
        section: &[u8],
        list_max: u32,
        mut take: impl FnMut(&[u8], &[u8]) -> Result<(), Unreadable>,
    ) -> Result<u64, Unreadable> {
        let mut input = Input(section);
        // nothing may refer to a table that has no bytes
        if input.number(8)? != 0 {
            return Err(Unreadable::Coding);
        }
        input.number(7)?;
        let (mut list, mut plain) = (0, 0);
        while let Some(first) = input.0.first().copied() {
            let (name, value) = self.field(&mut input, first, list_max)?;
            let bytes = (name.len() + value.len()) as u64;
            plain += bytes;
            list += bytes + FIELD_OVERHEAD;
            if list > u64::from(list_max) {
                return Err(Unreadable::TooLarge);
            }
            take(name, value)?;
        }
        Ok(plain)
    }

    /// Reads one field (RFC 9204 section 4.5).
    fn field<'a, 'i: 'a>(
        &'a mut self,
        input: &mut Input<'i>,
        first: u8,
        list_max: u32,
    ) -> Result<(&'a [u8], &'a [u8]), Unreadable> {
        let name = if first & 0b1000_0000 != 0 {
            let (index, fixed) = (input.number(6)?, first & 0b0100_0000 != 0);
            let (name, value) = entry(index, fixed)?;
            return Ok((name, value));
        } else if first & 0b0100_0000 != 0 {
            let (index, fixed) = (input.number(4)?, first & 0b0001_0000 != 0);
            entry(index, fixed)?.0
        } else if first & 0b0010_0000 != 0 {
            input.string(3, &mut self.name, list_max)?
        } else {
            // a post-base name of the dynamic table, or such a field
            return Err(Unreadable::Coding);
        };
        let value = input.string(7, &mut self.value, list_max)?;
        Ok((name, value))
    }
}

fn entry(index: u64, fixed: bool) -> Result<(&'static [u8], &'static [u8]), Unreadable> {
    let known = usize::try_from(index).ok().and_then(|index| STATIC.get(index));
    let (name, value) = known.filter(|_| fixed).ok_or(Unreadable::Coding)?;
    Ok((name.as_bytes(), value.as_bytes()))
}

/// The unread rest of a section.
struct Input<'a>(&'a [u8]);

impl<'i> Input<'i> {
    /// Returns a number in the last `bits` of a byte and the following bytes.
    fn number(&mut self, bits: u32) -> Result<u64, Unreadable> {
        let max = (1_u64 << bits) - 1;
        let mut number = u64::from(self.byte()?) & max;
        if number < max {
            return Ok(number);
        }
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            number += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Unreadable::Coding)
    }

    fn byte(&mut self) -> Result<u8, Unreadable> {
        let (first, rest) = self.0.split_first().ok_or(Unreadable::Coding)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Returns a string whose length has `bits`; the bit before them marks Huffman encoding.
    fn string<'a>(
        &mut self,
        bits: u32,
        buffer: &'a mut Vec<u8>,
        max: u32,
    ) -> Result<&'a [u8], Unreadable>
    where
        'i: 'a,
    {
        let coded = self.0.first().is_some_and(|byte| byte >> bits & 1 == 1);
        let length = usize::try_from(self.number(bits)?).map_err(|_| Unreadable::Coding)?;
        if length > self.0.len() {
            return Err(Unreadable::Coding);
        }
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        if !coded {
            return Ok(text);
        }
        buffer.clear();
        if huffman::decode(text, max as usize, buffer).is_none() {
            let broken =
                if buffer.len() > max as usize { Unreadable::TooLarge } else { Unreadable::Coding };
            return Err(broken);
        }
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(section: &[u8], max: u32) -> Result<Vec<String>, Unreadable> {
        let mut fields = Vec::new();
        SectionDecoder::default().decode(section, max, |name, value| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            fields.push(format!("{}={}", text(name), text(value)));
            Ok(())
        })?;
        Ok(fields)
    }

    /// RFC 9204 appendix B.1: a name of the static table with a literal value.
    #[test]
    fn the_standard_s_example() {
        let section = [b"\x00\x00\x51\x0b".as_slice(), b"/index.html"].concat();
        assert_eq!(read(&section, 1_000), Ok(vec![":path=/index.html".to_owned()]));
        let mut out = PREFIX.to_vec();
        put_field(&mut out, b":path", b"/index.html");
        assert!(out.len() < section.len() && out.starts_with(b"\x00\x00\x51"), "coded: {out:x?}");
        assert_eq!(read(&out, 1_000), read(&section, 1_000));
    }

    #[test]
    fn static_table_fields_are_indexed() {
        let mut out = PREFIX.to_vec();
        put_field(&mut out, b":method", b"GET");
        put_field(&mut out, b"x-frame-options", b"sameorigin");
        assert_eq!(out, [0, 0, 0xc0 | 17, 0xff, 98 - 63]);
        assert_eq!(
            read(&out, 1_000),
            Ok(vec![":method=GET".into(), "x-frame-options=sameorigin".into()])
        );
    }

    #[test]
    fn references_to_a_dynamic_table_are_errors() {
        for section in [
            &[1, 0][..],         // inserts that are required
            &[0, 0, 0x80],       // an index of it
            &[0, 0, 0x10],       // a post-base index
            &[0, 0, 0x40, 0],    // a name of it
            &[0, 0, 0x00, 0],    // a post-base name
            &[0, 0, 0xff, 0x40], // beyond the static table
            &[0, 0, 0x51, 0x0b], // a value that is not there
            &[0],                // no base
            &[0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        ] {
            assert_eq!(read(section, 1_000), Err(Unreadable::Coding), "{section:x?}");
        }
    }

    #[test]
    fn lists_are_bounded() {
        let mut out = PREFIX.to_vec();
        put_field(&mut out, b"x", &[b'v'; 100]);
        assert_eq!(read(&out, 132), Err(Unreadable::TooLarge));
        assert!(read(&out, 133).is_ok());
        put_field(&mut out, b"x", &[b'v'; 10_000]);
        assert_eq!(read(&out, 2_000), Err(Unreadable::TooLarge));
    }

    proptest! {
        #[test]
        fn every_list_round_trips(fields in prop::collection::vec(("[a-z:-]{1,30}", ".{0,300}"), 0..20)) {
            let mut out = PREFIX.to_vec();
            let mut expected = Vec::new();
            for (name, value) in &fields {
                put_field(&mut out, name.as_bytes(), value.as_bytes());
                expected.push(format!("{name}={value}"));
            }
            prop_assert_eq!(read(&out, 1 << 20), Ok(expected));
        }

        #[test]
        fn no_bytes_make_it_panic(section in prop::collection::vec(any::<u8>(), 0..200)) {
            read(&section, 1_000).ok();
        }
    }
}
