//! The server's QPACK table as a client sees it (RFC 9204 section 2.1): faults are recorded, and
//! parsing continues.

use ::protocol::http3::{DynamicTable, Malformed, TableSection, TableUse};
use conduit::streams::{
    SECTION_CODING, SECTION_LARGE, TABLE_BLOCKED, TABLE_CAPACITY, TABLE_EVICTED, TABLE_INSTRUCTION,
    TABLE_REFERENCE, TABLE_USED,
};
use std::collections::{BTreeMap, BTreeSet};

use crate::http3::TablePermit;
use crate::replies::HEAD_MAX;

/// Maximum number of sections remembered until they are acknowledged.
const SECTIONS_MAX: usize = 4_096;

/// Result of one section.
pub(super) enum SectionRead {
    Fields(Vec<(Vec<u8>, Vec<u8>)>),
    /// The section is blocked on entries.
    Waits,
    /// Reason why it cannot be decoded.
    Unreadable(&'static str),
}

#[derive(Clone, Debug, Default)]
pub(super) struct ServerTable {
    permit: TablePermit,
    table: DynamicTable,
    /// Number of entries that we have acknowledged (section 2.1.4).
    known: u64,
    /// Unacknowledged sections with references, by stream.
    open: BTreeMap<u64, Vec<TableUse>>,
    open_count: usize,
    /// Streams with a blocked section.
    waiting: BTreeSet<u64>,
    /// True if nothing that follows on the encoder stream can be parsed.
    broken: bool,
    /// Faults already recorded, and faults still to record.
    reported: BTreeSet<u64>,
    news: Vec<u64>,
    owed: Vec<u8>,
}

impl ServerTable {
    pub(super) fn new(permit: TablePermit) -> ServerTable {
        let table = DynamicTable::new(permit.capacity);
        ServerTable { permit, table, ..ServerTable::default() }
    }

    /// Returns new faults, each once.
    pub(super) fn new_faults(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.news)
    }

    /// Takes the instructions for the server's encoder.
    pub(super) fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.owed)
    }

    fn report(&mut self, what: u64) {
        if self.reported.insert(what) {
            self.news.push(what);
        }
    }

    /// Parses bytes of the server's encoder stream.
    pub(super) fn instruct(&mut self, bytes: &[u8]) {
        if self.broken {
            return;
        }
        // one byte at a time: evicted entries are visible only between instructions
        for byte in bytes {
            let before = self.table.oldest();
            match self.table.instruct(&[*byte]) {
                Ok(_) => self.look_at_evicted(before),
                Err(why) => {
                    self.broken = true;
                    let capacity = why == Malformed::Capacity;
                    return self.report(if capacity { TABLE_CAPACITY } else { TABLE_INSTRUCTION });
                }
            }
        }
        let inserted = self.table.inserted();
        if self.permit.acknowledges && inserted > self.known {
            // Insert Count Increment (section 4.4.3)
            protocol::hpack::integer(0, 6, inserted - self.known, &mut self.owed);
            self.known = inserted;
        }
    }

    /// Checks for evicted entries that were present before (section 2.1.1).
    fn look_at_evicted(&mut self, before: u64) {
        let now = self.table.oldest();
        // one byte of a peer can evict an entry: check until there is something to record
        if now == before || self.reported.contains(&TABLE_EVICTED) {
            return;
        }
        let refers = |used: &TableUse| used.entries.iter().any(|one| (before..now).contains(one));
        let unknown = now > before && now > self.known;
        if unknown || now > before && self.open.values().flatten().any(refers) {
            self.report(TABLE_EVICTED);
        }
    }

    /// Decodes a section of this stream.
    pub(super) fn section(&mut self, stream: u64, section: &[u8]) -> SectionRead {
        match self.table.section(section, HEAD_MAX as u32) {
            Ok(TableSection::Waits(_)) if self.broken => {
                SectionRead::Unreadable("a field section blocked on a broken table")
            }
            Ok(TableSection::Waits(required)) => {
                self.waiting.insert(stream);
                let used = TableUse { required, entries: Vec::new() };
                self.check_blocked_streams(stream, &used);
                SectionRead::Waits
            }
            Ok(TableSection::Fields(fields, used)) => {
                self.waiting.remove(&stream);
                if let Some(used) = used {
                    self.report(TABLE_USED);
                    self.check_blocked_streams(stream, &used);
                    self.keep(stream, used);
                }
                SectionRead::Fields(fields)
            }
            Err(why) => {
                self.waiting.remove(&stream);
                let (what, words) = match why {
                    Malformed::Reference => {
                        (TABLE_REFERENCE, "a field section that refers to a missing table entry")
                    }
                    Malformed::TooLarge => (SECTION_LARGE, "fields of more than 256 KiB"),
                    Malformed::Capacity | Malformed::Other => {
                        (SECTION_CODING, "an undecodable field section")
                    }
                };
                self.report(what);
                SectionRead::Unreadable(words)
            }
        }
    }

    /// Checks the number of streams that could become blocked (section 2.1.2): those with a section
    /// that needs more than we have acknowledged.
    fn check_blocked_streams(&mut self, stream: u64, used: &TableUse) {
        if used.required <= self.known {
            return;
        }
        let known = self.known;
        let at_risk = |uses: &[TableUse]| uses.iter().any(|one| one.required > known);
        let others = self.open.iter().filter(|(of, uses)| **of != stream && at_risk(uses));
        let waiting = self.waiting.iter().filter(|of| **of != stream);
        if (others.count() + waiting.count()) as u64 + 1 > self.permit.blocked {
            self.report(TABLE_BLOCKED);
        }
    }

    fn keep(&mut self, stream: u64, used: TableUse) {
        if self.permit.acknowledges {
            // Section Acknowledgement (section 4.4.1)
            protocol::hpack::integer(0b1000_0000, 7, stream, &mut self.owed);
            self.known = self.known.max(used.required);
        } else if self.open_count < SECTIONS_MAX {
            self.open_count += 1;
            self.open.entry(stream).or_default().push(used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A capacity of 80 bytes; each entry takes 34.
    const BEGIN: &[u8] = b"\x3f\x31\x41a\x01b";

    fn read(permit: (u64, u64, bool), sent: &[(Option<u64>, &[u8])]) -> (Vec<u64>, Vec<u8>) {
        let (capacity, blocked, acknowledges) = permit;
        let mut table = ServerTable::new(TablePermit { capacity, blocked, acknowledges });
        for (stream, bytes) in sent {
            match stream {
                None => table.instruct(bytes),
                Some(stream) => {
                    table.section(*stream, bytes);
                }
            }
        }
        (table.new_faults(), table.take_replies())
    }

    #[test]
    fn faults_of_the_server_table_are_detected() {
        let more: &[u8] = b"\x41c\x01d";
        let (first, second): (&[u8], &[u8]) = (b"\x02\0\x80", b"\x03\0\x80");
        let of = |name: &str, permit, sent: &[(Option<u64>, &[u8])], reported: &[u64]| {
            assert_eq!(read(permit, sent).0, reported, "{name}");
        };
        let begin = (None, BEGIN);
        let one = (Some(0), first);
        of("an entry that was acknowledged", (100, 0, true), &[begin, one], &[TABLE_USED]);
        of("one that may wait", (100, 1, false), &[begin, one], &[TABLE_USED]);
        let used = [TABLE_USED, TABLE_BLOCKED];
        of("one that may not", (100, 0, false), &[begin, one], &used);
        of("two on one stream", (100, 1, false), &[begin, one, one], &[TABLE_USED]);
        of("a second stream", (100, 1, false), &[begin, one, (Some(4), first)], &used);
        of("it comes later", (100, 1, false), &[(None, b"\x3f\x31"), one, (None, more)], &[]);
        of("two wait", (100, 1, false), &[one, (Some(4), first)], &[TABLE_BLOCKED]);
        let three = [begin, (None, more), (None, more)];
        of("what was acknowledged goes", (100, 1, true), &three, &[]);
        of("what was not goes", (100, 1, false), &three, &[TABLE_EVICTED]);
        let within = [begin, (None, more), (Some(0), second), (None, more)];
        of("what is used goes", (100, 1, false), &within, &[TABLE_USED, TABLE_EVICTED]);
        of("above the capacity", (60, 1, true), &[begin], &[TABLE_CAPACITY]);
        of("no table is permitted", (0, 0, true), &[begin], &[TABLE_CAPACITY]);
        of(
            "a copy of a missing entry",
            (100, 1, true),
            &[(None, b"\x3f\x31\0")],
            &[TABLE_INSTRUCTION],
        );
        let missing: &[u8] = b"\x02\0\x81";
        of("no such entry", (100, 1, true), &[begin, (Some(0), missing)], &[TABLE_REFERENCE]);
        let (cut, refers): (&[u8], &[u8]) = (b"\0\0\x51\x0bxy", b"\x02\0\x80");
        of("a value that is cut", (0, 0, true), &[(Some(0), cut)], &[SECTION_CODING]);
        of("no table, and a reference", (0, 0, true), &[(Some(0), refers)], &[TABLE_REFERENCE]);
        let large = [&b"\0\0\x51\x7f\x81\xff\x0f"[..], &b"v".repeat(HEAD_MAX)].concat();
        of("more than the limit", (0, 0, true), &[(Some(0), &large)], &[SECTION_LARGE]);
    }

    #[test]
    fn received_frames_are_acknowledged_like_a_client() {
        let sent = [(None, BEGIN), (Some(4), &b"\x02\0\x80"[..])];
        assert_eq!(read((100, 0, true), &sent).1, [1, 0x84]);
        assert_eq!(read((100, 0, false), &sent).1, []);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(sent in proptest::collection::vec(proptest::prelude::any::<(bool, u8, Vec<u8>)>(), 0..12)) {
            let mut table = ServerTable::new(TablePermit { capacity: 100, blocked: 2, acknowledges: true });
            table.instruct(BEGIN);
            for (instruction, stream, bytes) in sent {
                if instruction {
                    table.instruct(&bytes);
                } else {
                    table.section(u64::from(stream), &bytes);
                }
            }
        }
    }
}
