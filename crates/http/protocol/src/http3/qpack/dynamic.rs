//! The dynamic table on the decoder's side (RFC 9204 section 3.2): the effects of the peer's
//! instructions, and sections that refer to the table. The client permits none; test servers do.

use super::FIELD_OVERHEAD;
use crate::hpack::huffman;
use std::collections::VecDeque;

/// Continuation bytes of a number (section 4.1.1).
const NUMBER_MAX: u32 = 8;

/// Name and value.
type TableField = (Vec<u8>, Vec<u8>);

/// The peer's instruction or section cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A capacity above the permitted one (section 4.3.1).
    Capacity,
    /// A section refers to an entry that is not in the table (sections 2.2.1 and 4.5.1).
    Reference,
    /// The list of a section is larger than is read.
    TooLarge,
    /// Anything else.
    Other,
}

/// Requirements of a section on the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableUse {
    /// Number of insertions required before it can be read.
    pub required: u64,
    /// The entries that it refers to, by their numbers among all that were ever inserted, [`USES_MAX`] at most.
    pub entries: Vec<u64>,
}

/// Reported references of a section.
pub const USES_MAX: usize = 1_024;

/// A field section that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableSection {
    /// The fields, and the entries of the table that they refer to.
    Fields(Vec<(Vec<u8>, Vec<u8>)>, Option<TableUse>),
    /// The section waits until this many entries were inserted.
    Waits(u64),
}

/// Entries that the peer has inserted.
#[derive(Clone, Debug, Default)]
pub struct DynamicTable {
    /// Maximum capacity that the peer may set, and the current one.
    capacity_max: u64,
    capacity: u64,
    size: u64,
    /// Entries, newest first.
    entries: VecDeque<TableField>,
    inserted: u64,
    /// A partially received instruction.
    bytes: Vec<u8>,
}

/// Reason why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableStop {
    Short,
    Capacity,
    /// The section refers to a missing entry.
    Missing,
    TooLarge,
    Bad,
}

impl DynamicTable {
    /// Returns a table of at most this many bytes.
    pub fn new(capacity_max: u64) -> DynamicTable {
        DynamicTable { capacity_max, ..DynamicTable::default() }
    }

    /// Returns the number of entries ever inserted.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the number of the oldest entry that is still present.
    pub fn oldest(&self) -> u64 {
        self.inserted - self.entries.len() as u64
    }

    /// Processes bytes of the peer's encoder stream; returns how many entries they inserted.
    ///
    /// # Errors
    /// Fails with a connection error QPACK_ENCODER_STREAM_ERROR (section 4.3).
    pub fn instruct(&mut self, bytes: &[u8]) -> Result<u64, Malformed> {
        let before = self.inserted;
        let mut held = std::mem::take(&mut self.bytes);
        held.extend_from_slice(bytes);
        let mut rest = &held[..];
        loop {
            let mut input = TableInput { rest };
            match self.instruction(&mut input) {
                Ok(()) => rest = input.rest,
                Err(TableStop::Short) => {
                    self.bytes = rest.to_vec();
                    return Ok(self.inserted - before);
                }
                Err(TableStop::Capacity) => return Err(Malformed::Capacity),
                Err(TableStop::Missing | TableStop::TooLarge | TableStop::Bad) => {
                    return Err(Malformed::Other);
                }
            }
        }
    }

    /// Processes one instruction (section 4.3).
    fn instruction(&mut self, input: &mut TableInput<'_>) -> Result<(), TableStop> {
        let first = *input.rest.first().ok_or(TableStop::Short)?;
        if first & 0b1000_0000 != 0 {
            let (index, fixed) = (input.number(6)?, first & 0b0100_0000 != 0);
            let name = match fixed {
                true => of_static(index)?.0,
                false => self.newest(index).ok_or(TableStop::Bad)?.0.clone(),
            };
            let value = input.string(7, self.capacity)?;
            self.insert((name, value))
        } else if first & 0b0100_0000 != 0 {
            let name = input.string(5, self.capacity)?;
            let value = input.string(7, self.capacity)?;
            self.insert((name, value))
        } else if first & 0b0010_0000 != 0 {
            let capacity = input.number(5)?;
            if capacity > self.capacity_max {
                return Err(TableStop::Capacity);
            }
            self.capacity = capacity;
            self.shrink(0);
            Ok(())
        } else {
            let index = input.number(5)?;
            let copy = self.newest(index).ok_or(TableStop::Bad)?.clone();
            self.insert(copy)
        }
    }

    /// Returns an entry by the number of entries inserted since.
    fn newest(&self, index: u64) -> Option<&TableField> {
        self.entries.get(usize::try_from(index).ok()?)
    }

    fn insert(&mut self, field: TableField) -> Result<(), TableStop> {
        let size = size_of(&field);
        if size > self.capacity {
            return Err(TableStop::Bad);
        }
        self.shrink(size);
        self.size += size;
        self.entries.push_front(field);
        self.inserted += 1;
        Ok(())
    }

    /// Makes room for this many bytes.
    fn shrink(&mut self, room: u64) {
        while self.size + room > self.capacity {
            let Some(oldest) = self.entries.pop_back() else { return };
            self.size -= size_of(&oldest);
        }
    }

    /// Reads a field section, of which a list of `list_max` bytes at most is taken.
    ///
    /// # Errors
    /// Fails with a connection error QPACK_DECOMPRESSION_FAILED (section 2.2), or a list that is
    /// too large.
    pub fn section(&self, section: &[u8], list_max: u32) -> Result<TableSection, Malformed> {
        self.read(section, u64::from(list_max)).map_err(|stop| match stop {
            TableStop::Missing => Malformed::Reference,
            TableStop::TooLarge => Malformed::TooLarge,
            TableStop::Short | TableStop::Capacity | TableStop::Bad => Malformed::Other,
        })
    }

    fn read(&self, section: &[u8], list_max: u64) -> Result<TableSection, TableStop> {
        let mut input = TableInput { rest: section };
        let required = self.required(input.number(8)?)?;
        let below = input.rest.first().is_some_and(|byte| byte & 0x80 != 0);
        let delta = input.number(7)?;
        let base = match below {
            true => required.checked_sub(delta + 1).ok_or(TableStop::Missing)?,
            false => required + delta,
        };
        if required > self.inserted {
            return Ok(TableSection::Waits(required));
        }
        let (mut fields, mut list) = (Vec::new(), 0);
        let mut entries = Vec::new();
        while !input.rest.is_empty() {
            let (field, entry) = self.field(&mut input, required, base, list_max)?;
            entries.extend(entry.filter(|_| entries.len() < USES_MAX));
            list += size_of(&field);
            if list > list_max {
                return Err(TableStop::TooLarge);
            }
            fields.push(field);
        }
        let used = (required > 0).then_some(TableUse { required, entries });
        Ok(TableSection::Fields(fields, used))
    }

    /// Returns the encoded insert count (section 4.5.1.1).
    fn required(&self, encoded: u64) -> Result<u64, TableStop> {
        if encoded == 0 {
            return Ok(0);
        }
        let full = 2 * (self.capacity_max / FIELD_OVERHEAD);
        if encoded > full {
            return Err(TableStop::Missing);
        }
        let most = self.inserted + full / 2;
        let wrapped = most / full * full;
        let mut required = wrapped + encoded - 1;
        if required > most {
            required = required.checked_sub(full).ok_or(TableStop::Missing)?;
        }
        if required == 0 { Err(TableStop::Missing) } else { Ok(required) }
    }

    /// Reads one field line (section 4.5); returns the entry that it refers to.
    fn field(
        &self,
        input: &mut TableInput<'_>,
        required: u64,
        base: u64,
        most: u64,
    ) -> Result<(TableField, Option<u64>), TableStop> {
        let first = *input.rest.first().ok_or(TableStop::Short)?;
        let behind = |index: u64| self.absolute(base.checked_add(index), required);
        let before = |index: u64| self.absolute(base.checked_sub(index + 1), required);
        if first & 0b1000_0000 != 0 {
            let (index, fixed) = (input.number(6)?, first & 0b0100_0000 != 0);
            if fixed {
                return Ok((of_static(index)?, None));
            }
            let (number, entry) = before(index)?;
            return Ok((entry.clone(), Some(number)));
        }
        if first & 0b1111_0000 == 0b0001_0000 {
            let (number, entry) = behind(input.number(4)?)?;
            return Ok((entry.clone(), Some(number)));
        }
        let (name, number) = if first & 0b0100_0000 != 0 {
            let (index, fixed) = (input.number(4)?, first & 0b0001_0000 != 0);
            if fixed {
                (of_static(index)?.0, None)
            } else {
                let (number, entry) = before(index)?;
                (entry.0.clone(), Some(number))
            }
        } else if first & 0b0010_0000 != 0 {
            (input.string(3, most)?, None)
        } else {
            let (number, entry) = behind(input.number(3)?)?;
            (entry.0.clone(), Some(number))
        };
        Ok(((name, input.string(7, most)?), number))
    }

    /// Returns an entry by its number among all that were ever inserted, the first of which is 0.
    fn absolute(
        &self,
        number: Option<u64>,
        required: u64,
    ) -> Result<(u64, &TableField), TableStop> {
        let number = number.filter(|number| *number < required).ok_or(TableStop::Missing)?;
        let entry = self.newest(self.inserted - 1 - number).ok_or(TableStop::Missing)?;
        Ok((number, entry))
    }
}

fn size_of(field: &TableField) -> u64 {
    (field.0.len() + field.1.len()) as u64 + FIELD_OVERHEAD
}

fn of_static(index: u64) -> Result<TableField, TableStop> {
    let (name, value) = super::entry(index, true).map_err(|_| TableStop::Bad)?;
    Ok((name.to_vec(), value.to_vec()))
}

struct TableInput<'r> {
    rest: &'r [u8],
}

impl TableInput<'_> {
    fn byte(&mut self) -> Result<u8, TableStop> {
        let (first, rest) = self.rest.split_first().ok_or(TableStop::Short)?;
        self.rest = rest;
        Ok(*first)
    }

    fn number(&mut self, bits: u32) -> Result<u64, TableStop> {
        let max = (1_u64 << bits) - 1;
        let mut number = u64::from(self.byte()?) & max;
        if number < max {
            return Ok(number);
        }
        for row in 0..NUMBER_MAX {
            let byte = self.byte()?;
            number += u64::from(byte & 0x7f) << (7 * row);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(TableStop::Bad)
    }

    /// Returns a string of at most this many bytes.
    fn string(&mut self, bits: u32, most: u64) -> Result<Vec<u8>, TableStop> {
        let coded = self.rest.first().is_some_and(|byte| byte >> bits & 1 == 1);
        let length = self.number(bits)?;
        if length > most {
            let there = length <= self.rest.len() as u64;
            return Err(if there { TableStop::TooLarge } else { TableStop::Bad });
        }
        let length = usize::try_from(length).map_err(|_| TableStop::Bad)?;
        let (text, rest) = self.rest.split_at_checked(length).ok_or(TableStop::Short)?;
        self.rest = rest;
        if !coded {
            return Ok(text.to_vec());
        }
        let mut plain = Vec::new();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        match huffman::decode(text, most, &mut plain) {
            Some(_) => Ok(plain),
            None if plain.len() > most => Err(TableStop::TooLarge),
            None => Err(TableStop::Bad),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(instructions: &[u8]) -> DynamicTable {
        let mut table = DynamicTable::new(220);
        table.instruct(instructions).unwrap();
        table
    }

    fn fields(table: &DynamicTable, section: &[u8]) -> Option<String> {
        match table.section(section, 1_000).ok()? {
            TableSection::Fields(fields, _) => {
                let text = fields.iter().map(|(name, value)| {
                    format!("{}={}", name.escape_ascii(), value.escape_ascii())
                });
                Some(text.collect::<Vec<_>>().join(" "))
            }
            TableSection::Waits(count) => Some(format!("waits for {count}")),
        }
    }

    /// RFC 9204 appendix B.2 to B.5, with its capacity of 220.
    #[test]
    fn the_standard_s_example_is_read() {
        let mut table = DynamicTable::new(220);
        let first = b"\x3f\xbd\x01\xc0\x0fwww.example.com\xc1\x0c/sample/path";
        for byte in first {
            table.instruct(&[*byte]).unwrap();
        }
        assert_eq!((table.inserted, table.size), (2, 106));
        let got = fields(&table, b"\x03\x81\x10\x11").unwrap();
        assert_eq!(got, ":authority=www.example.com :path=/sample/path");
        assert_eq!(table.instruct(b"\x4acustom-key\x0ccustom-value"), Ok(1));
        assert_eq!(table.instruct(b"\x02"), Ok(1));
        assert_eq!((table.inserted, table.size), (4, 217));
        let got = fields(&table, b"\x05\x00\x80\xc1\x81").unwrap();
        assert_eq!(got, ":authority=www.example.com :path=/ custom-key=custom-value");
        table.instruct(b"\x81\x0dcustom-value2").unwrap();
        assert_eq!((table.inserted, table.size, table.entries.len()), (5, 215, 4));
    }

    #[test]
    fn invalid_sections_are_reported() {
        let table = table(b"\x3f\xbd\x01\x41a\x01b\x41c\x01d");
        assert_eq!(fields(&table, b"\x03\0\x80\x81").unwrap(), "c=d a=b");
        assert_eq!(fields(&table, b"\x03\0\x40\x01x").unwrap(), "c=x");
        assert_eq!(fields(&table, b"\x03\x81\0\x01x").unwrap(), "a=x");
        assert_eq!(fields(&table, b"\x04\0\x80").unwrap(), "waits for 3");
        let (reference, other) = (Malformed::Reference, Malformed::Other);
        let long = [&b"\0\0\x27\x00"[..], &b"x".repeat(2)].concat();
        let large = [&b"\0\0\x21x\x7f\xff\x07"[..], &b"v".repeat(1_150)].concat();
        for (section, why, what) in [
            (&b"\x03\0\x82"[..], reference, "before the first"),
            (b"\x02\0\x10", reference, "beyond the required count that it declares"),
            (b"\0\0\x80", reference, "it needs nothing"),
            (b"\x02\x85\x80", reference, "a base below 0"),
            (b"\x3f\0\x80", reference, "an impossible insert count"),
            (b"\x03", other, "cut"),
            (&long, other, "a truncated name"),
            (b"\0\0\xff\x40", other, "beyond the static table"),
            (b"\0\0\x21x\x81\xff\xff", other, "a Huffman code with an invalid end"),
            (&large, Malformed::TooLarge, "a list above the limit"),
        ] {
            assert_eq!(table.section(section, 1_000), Err(why), "{what}");
        }
        let used = |section: &[u8]| match table.section(section, 1_000) {
            Ok(TableSection::Fields(_, used)) => used,
            _ => None,
        };
        let needs =
            |required, entries: &[u64]| Some(TableUse { required, entries: entries.to_vec() });
        assert_eq!(used(b"\x03\0\x80\x81"), needs(2, &[1, 0]));
        assert_eq!(used(b"\x03\x81\0\x01x\xc1"), needs(2, &[0]));
        assert_eq!(used(b"\0\0\xc1"), None);
        let mut small = table.clone();
        small.instruct(b"\x3f\x09").unwrap();
        assert_eq!(fields(&small, b"\x03\0\x81"), None, "evicted");
        assert_eq!(fields(&small, b"\x03\0\x80").unwrap(), "c=d");
    }

    #[test]
    fn invalid_instructions_are_reported() {
        for (bytes, what) in [
            (&b"\x3f\xbe\x01"[..], "above the capacity"),
            (b"\x41a\x01b", "no capacity was set"),
            (b"\x3f\x02\x41a\x01b", "larger than the capacity"),
            (b"\x3f\xbd\x01\0", "a copy of a missing entry"),
            (b"\x3f\xbd\x01\x80\x01b", "the name of a missing entry"),
            (b"\x3f\xbd\x01\xff\x24\x01b", "beyond the static table"),
            (b"\x3f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "a number without an end"),
            (b"\x3f\xbd\x01\x41a\x7f\xff\xff\x03", "a value larger than the table"),
        ] {
            let expected =
                if what == "above the capacity" { Malformed::Capacity } else { Malformed::Other };
            assert_eq!(DynamicTable::new(220).instruct(bytes), Err(expected), "{what}");
        }
    }

    proptest::proptest! {
        /// For any input, the table stays within its capacity, and the splits make no difference.
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, section: Vec<u8>, cut in 1_usize..9) {
            let begin = b"\x3f\xbd\x01\x41a\x01b";
            let (mut whole, mut pieces) = (table(begin), table(begin));
            let first = whole.instruct(&bytes);
            let mut second = Ok(0);
            for piece in bytes.chunks(cut) {
                second = second.and_then(|sum| pieces.instruct(piece).map(|count| sum + count));
            }
            proptest::prop_assert_eq!(first, second);
            proptest::prop_assert!(whole.size <= whole.capacity && whole.capacity <= 220);
            let _read_or_not = whole.section(&section, 1_000);
        }
    }
}
