//! Parses header blocks: any input from a peer, within bounds.

use crate::hpack::huffman;
use crate::hpack::table::STATIC;
use std::collections::VecDeque;

/// Overhead per table entry in addition to its bytes (RFC 7541 section 4.1).
const OVERHEAD: usize = 32;
/// Maximum number of continuation bytes of an integer: more than 2^35 is neither a length nor an
/// index.
const INTEGER_BYTES: u32 = 5;

/// A name and a value.
pub type Field = (Vec<u8>, Vec<u8>);

/// Reason why a block cannot be decoded; the connection cannot continue (RFC 9113 section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// The block ends within a field.
    CutOff,
    /// An index of no entry, or 0.
    Index,
    /// An integer that no length and no index is.
    Integer,
    /// A string that is not valid Huffman code.
    Huffman,
    /// A table size above the permitted one, or an update after a field.
    TableSize,
    /// More fields, or more bytes of them, than are read.
    TooMuch,
}

impl std::fmt::Display for HpackError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            HpackError::CutOff => "it ends within a field",
            HpackError::Index => "an index without an entry",
            HpackError::Integer => "an integer above the limit",
            HpackError::Huffman => "a string that is not a Huffman code",
            HpackError::TableSize => "a change of the table that is not permitted",
            HpackError::TooMuch => "more than the limit",
        })
    }
}

impl std::error::Error for HpackError {}

/// Decoder of one connection.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// Entries, newest first.
    entries: VecDeque<Field>,
    size: usize,
    max: usize,
    /// Maximum table size in bytes: the value of SETTINGS_HEADER_TABLE_SIZE.
    permitted: usize,
    /// Maximum size of all fields of one block, in bytes.
    list_max: usize,
}

impl Decoder {
    /// Creates a decoder. `permitted`: size of the dynamic table in bytes; `list_max`: size of one
    /// block's fields, each of which counts 32 bytes more.
    pub fn new(permitted: usize, list_max: usize) -> Decoder {
        Decoder { entries: VecDeque::new(), size: 0, max: permitted, permitted, list_max }
    }

    /// Reads a whole block.
    ///
    /// # Errors
    /// Fails for an invalid or too large block: the table then differs from the peer's.
    pub fn decode(&mut self, block: &[u8]) -> Result<Vec<Field>, HpackError> {
        let mut rest = block;
        let mut fields: Vec<Field> = Vec::new();
        let mut room = self.list_max;
        while let Some(&first) = rest.first() {
            let field = match first {
                0x80.. => self.entry(number(&mut rest, 7)?)?,
                0x40.. => {
                    let field = self.literal(&mut rest, 6, room)?;
                    self.keep(field.clone());
                    field
                }
                0x20.. => {
                    let size = number(&mut rest, 5)? as usize;
                    if size > self.permitted || !fields.is_empty() {
                        return Err(HpackError::TableSize);
                    }
                    self.max = size;
                    self.evict(0);
                    continue;
                }
                _ => self.literal(&mut rest, 4, room)?,
            };
            room = room.checked_sub(weight(&field)).ok_or(HpackError::TooMuch)?;
            fields.push(field);
        }
        Ok(fields)
    }

    fn entry(&self, index: u64) -> Result<Field, HpackError> {
        let at = usize::try_from(index).ok().and_then(|index| index.checked_sub(1));
        let at = at.ok_or(HpackError::Index)?;
        match STATIC.get(at) {
            Some((name, value)) => Ok((name.as_bytes().to_vec(), value.as_bytes().to_vec())),
            None => self.entries.get(at - STATIC.len()).cloned().ok_or(HpackError::Index),
        }
    }

    fn literal(&self, rest: &mut &[u8], prefix: u32, room: usize) -> Result<Field, HpackError> {
        let name = match number(rest, prefix)? {
            0 => string(rest, room)?,
            index => self.entry(index)?.0,
        };
        Ok((name, string(rest, room)?))
    }

    fn keep(&mut self, field: Field) {
        let weight = weight(&field);
        self.evict(weight);
        if weight <= self.max {
            self.size += weight;
            self.entries.push_front(field);
        }
    }

    /// Makes room for this many bytes.
    fn evict(&mut self, wanted: usize) {
        while self.size + wanted > self.max {
            let Some(oldest) = self.entries.pop_back() else { return };
            self.size -= weight(&oldest);
        }
    }
}

fn weight((name, value): &Field) -> usize {
    name.len() + value.len() + OVERHEAD
}

/// Takes an integer off the front (RFC 7541 section 5.1).
fn number(rest: &mut &[u8], prefix: u32) -> Result<u64, HpackError> {
    let (&first, mut more) = rest.split_first().ok_or(HpackError::CutOff)?;
    let most = (1_u64 << prefix) - 1;
    let mut value = u64::from(first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (&byte, after) = more.split_first().ok_or(HpackError::CutOff)?;
            more = after;
            value += u64::from(byte & 127) << (7 * shift);
            shift += 1;
            if byte < 128 {
                break;
            }
            if shift >= INTEGER_BYTES {
                return Err(HpackError::Integer);
            }
        }
    }
    *rest = more;
    Ok(value)
}

/// Takes a string of at most `room` bytes off the front (RFC 7541 section 5.2).
fn string(rest: &mut &[u8], room: usize) -> Result<Vec<u8>, HpackError> {
    let coded = rest.first().is_some_and(|first| *first >= 128);
    let length = usize::try_from(number(rest, 7)?).map_err(|_| HpackError::Integer)?;
    let bytes = rest.get(..length).ok_or(HpackError::CutOff)?;
    *rest = &rest[length..];
    if !coded {
        return if length > room { Err(HpackError::TooMuch) } else { Ok(bytes.to_vec()) };
    }
    let mut text = Vec::new();
    match huffman::decode(bytes, room, &mut text) {
        Some(()) => Ok(text),
        None if text.len() > room => Err(HpackError::TooMuch),
        None => Err(HpackError::Huffman),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        digits.chunks(2).map(|two| pair(two).unwrap()).collect()
    }

    fn describe(read: Result<Vec<Field>, HpackError>) -> String {
        let line =
            |(name, value): &Field| format!("{}={}", name.escape_ascii(), value.escape_ascii());
        match read {
            Ok(fields) => fields.iter().map(line).collect::<Vec<String>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    /// RFC 7541 appendix C.6: three responses on one connection, with a table of 256 bytes.
    #[test]
    fn the_standard_s_responses() {
        let mut decoder = Decoder::new(256, 10_000);
        let first = describe(decoder.decode(&bytes(
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad1718\
             63c78f0b97c8e9ae82ae43d3",
        )));
        assert_eq!(
            first,
            ":status=302 cache-control=private date=Mon, 21 Oct 2013 20:13:21 GMT \
             location=https://www.example.com"
        );
        let second = describe(decoder.decode(&bytes("4883640effc1c0bf")));
        assert_eq!(second, first.replace("302", "307"));
        assert_eq!(decoder.size, 222);
        let third = describe(decoder.decode(&bytes(
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b3\
             35dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
        )));
        assert!(third.starts_with(":status=200 cache-control=private date="), "{third}");
        assert!(
            third.ends_with("set-cookie=foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1")
        );
        assert_eq!((decoder.size, decoder.entries.len()), (215, 3));
    }

    #[test]
    fn an_invalid_block_is_refused() {
        let long = format!("000161 d0 {}", "18c6318c63".repeat(16));
        for (block, sent) in [
            ("80", "an index without an entry"),
            ("ff80808080808080", "an integer above the limit"),
            ("c6", "an index without an entry"),
            ("00", "it ends within a field"),
            ("000161", "it ends within a field"),
            ("000161 05 61", "it ends within a field"),
            ("000161 81 ff", "a string that is not a Huffman code"),
            // 128 letters in 80 bytes, and 8 of them in 5
            (&long, "more than the limit"),
            ("000161 85 18c6318c63", "a=aaaaaaaa"),
            ("3fe21f", "a change of the table that is not permitted"),
            ("82 20", "a change of the table that is not permitted"),
            ("20 3fe11f 82", ":method=GET"),
            ("828282", "more than the limit"),
        ] {
            let mut decoder = Decoder::new(4_096, 100);
            assert_eq!(describe(decoder.decode(&bytes(block))), sent, "{block}");
        }
    }

    #[test]
    fn written_data_is_read_back() {
        let mut block = Vec::new();
        crate::hpack::literal(b"x-a", &[b'v'; 300], &mut block);
        crate::hpack::kept(b"x-b", b"w", &mut block);
        crate::hpack::integer(0x80, 7, 62, &mut block);
        let read = Decoder::new(4_096, 10_000).decode(&block).unwrap();
        assert_eq!(read[0], (b"x-a".to_vec(), vec![b'v'; 300]));
        assert_eq!((&read[1], read.len()), (&read[2], 3));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..4)) {
            let mut decoder = Decoder::new(256, 1_000);
            for block in blocks {
                decoder.decode(&block).ok();
                prop_assert!(decoder.size <= decoder.max);
            }
        }
    }
}
