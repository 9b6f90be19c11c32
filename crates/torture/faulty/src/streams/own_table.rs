//! The QPACK table of the firing range, if its client allows one (RFC 9204 section 2.1): one entry,
//! to which its responses refer. Switches make it violate the rules.

use super::{Checked, DECODER_STREAM_ERROR, Defect, Defects, rule};
use std::collections::BTreeMap;

/// The field of the entry, which takes 51 bytes (section 3.2.1).
const NAME: &[u8] = b"x-range";
const VALUE: &[u8] = b"firing-range";
const SIZE: u64 = (NAME.len() + VALUE.len()) as u64 + 32;
/// Capacity of the table: one entry, but not two.
const CAPACITY: u64 = SIZE + 8;
/// The type of the encoder stream.
const ENCODER: u8 = 2;

#[derive(Debug, Default)]
pub(super) struct OwnTable {
    /// Limits in the client's SETTINGS: bytes, and blocked streams.
    pub(super) capacity: u64,
    pub(super) blocked: u64,
    inserted: u64,
    /// Number of entries that the client has acknowledged.
    known: u64,
    /// By stream: unacknowledged sections with references, and the number of entries that each
    /// needs.
    open: BTreeMap<u64, Vec<u64>>,
}

impl OwnTable {
    /// Returns the initial instructions if the client allows a table; otherwise nothing.
    pub(super) fn begin(&mut self, defects: &Defects) -> Vec<u8> {
        let overfills = defects.contains(&Defect::OverfillsTables);
        if self.inserted > 0 || self.capacity < SIZE && !overfills {
            return Vec::new();
        }
        let capacity = if overfills { self.capacity + 1 } else { CAPACITY.min(self.capacity) };
        let mut bytes = vec![ENCODER];
        protocol::hpack::integer(0b0010_0000, 5, capacity, &mut bytes);
        if capacity >= SIZE {
            bytes.extend(self.insert());
        }
        bytes
    }

    /// Inserts an entry, which evicts the previous one.
    fn insert(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        protocol::hpack::integer(0b0100_0000, 5, NAME.len() as u64, &mut bytes);
        bytes.extend_from_slice(NAME);
        protocol::hpack::integer(0, 7, VALUE.len() as u64, &mut bytes);
        bytes.extend_from_slice(VALUE);
        self.inserted += 1;
        bytes
    }

    /// Returns the prefix of a response's section on this stream, and the line that refers to the
    /// entry.
    pub(super) fn refer(&mut self, stream: u64, defects: &Defects) -> (Vec<u8>, Vec<u8>) {
        let at_risk = self.open.values().filter(|needs| needs.iter().any(|one| *one > self.known));
        let may_wait = (at_risk.count() as u64) < self.blocked;
        let permitted =
            self.known == self.inserted || may_wait || defects.contains(&Defect::BlocksReaders);
        if self.inserted == 0 || !permitted {
            return (vec![0, 0], Vec::new());
        }
        self.open.entry(stream).or_default().push(self.inserted);
        // the count modulo twice the number of entries that fit (section 4.5.1.1)
        let full = 2 * (self.capacity / 32);
        let required = self.inserted % full.max(1) + 1;
        let beyond = u8::from(defects.contains(&Defect::RefersBeyondTables));
        let mut begin = Vec::new();
        protocol::hpack::integer(0, 8, required, &mut begin);
        begin.push(0);
        (begin, vec![0b1000_0000 | beyond])
    }

    /// Returns instructions after a response: another entry, if the previous one is not needed.
    pub(super) fn renew(&mut self, defects: &Defects) -> Vec<u8> {
        let needed = self.known < self.inserted || !self.open.is_empty();
        match self.inserted > 0 && (!needed || defects.contains(&Defect::EvictsReferenced)) {
            true => self.insert(),
            false => Vec::new(),
        }
    }

    /// Handles complete instructions of the client (section 4.4).
    pub(super) fn process(&mut self, bytes: &mut Vec<u8>) -> Checked {
        while let Some(first) = bytes.first().copied() {
            let bits = match first {
                0x80.. => 7,
                _ => 6,
            };
            let Some((number, used)) = number(bytes, bits) else {
                return rule(bytes.len() < 10, DECODER_STREAM_ERROR);
            };
            bytes.drain(..used);
            match first >> 6 {
                // Insert Count Increment
                0 => {
                    let known = self.known.saturating_add(number);
                    rule(number > 0 && known <= self.inserted, DECODER_STREAM_ERROR)?;
                    self.known = known;
                }
                // Stream Cancellation
                1 => {
                    self.open.remove(&number);
                }
                // Section Acknowledgement
                _ => {
                    let first = self.open.get_mut(&number).filter(|needs| !needs.is_empty());
                    let needed = first.map(|needs| needs.remove(0));
                    rule(needed.is_some(), DECODER_STREAM_ERROR)?;
                    self.known = self.known.max(needed.unwrap_or(0));
                    self.open.retain(|_, needs| !needs.is_empty());
                }
            }
        }
        Ok(())
    }
}

/// Parses a number in the last bits of a byte and the following bytes, or `None` if it is
/// incomplete.
fn number(bytes: &[u8], bits: u32) -> Option<(u64, usize)> {
    let max = (1_u64 << bits) - 1;
    let mut number = u64::from(*bytes.first()?) & max;
    if number < max {
        return Some((number, 1));
    }
    for (row, byte) in bytes.iter().skip(1).take(8).enumerate() {
        number += u64::from(byte & 0x7f) << (7 * row);
        if byte & 0x80 == 0 {
            return Some((number, row + 2));
        }
    }
    None
}
