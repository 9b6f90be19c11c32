//! Sent and received packets of one packet number space, and out-of-order bytes.

use crate::wire::put_number;
use quinn_proto::crypto::Keys;
use std::collections::{BTreeMap, BTreeSet};
use units::Nanos;

/// Maximum number of stored packet numbers, and of ranges in an ACK.
const NUMBERS_MAX: usize = 1_024;
const RANGES_MAX: usize = 32;
/// Memory overhead of a waiting piece.
const PIECE: usize = 64;

/// Unacknowledged frames.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    pub(super) frames: Vec<u8>,
    pub(super) at: Nanos,
}

#[derive(Default)]
pub(super) struct Space {
    pub(super) keys: Option<Keys>,
    /// Our next packet number.
    pub(super) next: u64,
    /// Received packet numbers.
    came: BTreeSet<u64>,
    /// An ack-eliciting packet was received.
    pub(super) owes: bool,
    /// Received bytes of the handshake, and the number of sent ones.
    pub(super) crypto: InOrder,
    pub(super) crypto_sent: u64,
    pub(super) flight: BTreeMap<u64, InFlight>,
}

impl Space {
    pub(super) fn largest(&self) -> Option<u64> {
        self.came.last().copied()
    }

    /// Returns false if this packet was received before, or may have been.
    pub(super) fn is_new(&mut self, number: u64) -> bool {
        let forgotten = self.came.len() == NUMBERS_MAX && self.came.first() > Some(&number);
        if forgotten || !self.came.insert(number) {
            return false;
        }
        if self.came.len() > NUMBERS_MAX {
            self.came.pop_first();
        }
        true
    }

    /// Returns an ACK of the received packets (RFC 9000 section 19.3); `None` if there are none.
    pub(super) fn ack(&self) -> Option<Vec<u8>> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for number in self.came.iter().rev() {
            let full = ranges.len() == RANGES_MAX;
            match ranges.last_mut() {
                Some((low, _)) if *number + 1 == *low => *low = *number,
                _ if full => break,
                _ => ranges.push((*number, *number)),
            }
        }
        let (mut low, high) = *ranges.first()?;
        let mut out = vec![0x02];
        put_number(&mut out, high);
        put_number(&mut out, 0);
        put_number(&mut out, ranges.len() as u64 - 1);
        put_number(&mut out, high - low);
        for (next_low, next_high) in &ranges[1..] {
            put_number(&mut out, low - next_high - 2);
            put_number(&mut out, next_high - next_low);
            low = *next_low;
        }
        Some(out)
    }
}

/// Reassembly of bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct InOrder {
    next: u64,
    parts: BTreeMap<u64, Vec<u8>>,
    held: usize,
    /// The highest received offset.
    highest: u64,
    end: Option<u64>,
}

impl InOrder {
    pub(super) fn put(&mut self, offset: u64, bytes: &[u8], last: bool) {
        // integers have 62 bits
        let end = offset + bytes.len() as u64;
        if last {
            self.end = Some(end);
        }
        self.highest = self.highest.max(end);
        let known = self.parts.get(&offset).map_or(0, Vec::len);
        if end <= self.next || known >= bytes.len() {
            return;
        }
        if self.parts.insert(offset, bytes.to_vec()).is_none() {
            self.held += PIECE;
        }
        self.held += bytes.len() - known;
    }

    /// Returns the bytes now in order.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while let Some((offset, bytes)) = self.parts.pop_first() {
            if offset > self.next {
                self.parts.insert(offset, bytes);
                break;
            }
            self.held -= bytes.len() + PIECE;
            let old = usize::try_from(self.next - offset).unwrap_or(usize::MAX);
            if let Some(new) = bytes.get(old..) {
                self.next += new.len() as u64;
                out.extend_from_slice(new);
            }
        }
        out
    }

    /// Returns the number of bytes taken in order.
    pub(super) fn consumed(&self) -> u64 {
        self.next
    }

    /// Returns the number of bytes that wait for earlier ones, including the memory overhead of
    /// each piece.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.held
    }

    /// Records that the stream ends at this offset, and that bytes missing before it will not
    /// arrive.
    pub(super) fn reach(&mut self, size: u64) {
        self.highest = self.highest.max(size);
    }

    /// Returns the number of used bytes of the stream's window.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// Returns whether everything was taken.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_packets_are_acknowledged_in_ranges() {
        let mut space = Space::default();
        assert_eq!(space.ack(), None);
        for number in [0, 1, 2, 5, 9, 8] {
            assert!(space.is_new(number));
        }
        assert!(!space.is_new(5));
        // 9 to 8, one number between, 5, one between less one, 2 to 0
        assert_eq!(space.ack().unwrap(), [2, 9, 0, 2, 1, 1, 0, 1, 2]);
        for number in 10..10 + NUMBERS_MAX as u64 {
            assert!(space.is_new(number));
        }
        assert!(!space.is_new(3), "it may have been received");
    }

    #[test]
    fn bytes_are_put_in_order() {
        let mut arrivals = InOrder::default();
        arrivals.put(3, b"lo", true);
        assert_eq!(arrivals.take(), b"");
        arrivals.put(0, b"hel", false);
        arrivals.put(2, b"l", false);
        assert_eq!(arrivals.take(), b"hello");
        assert!(arrivals.is_over());
        arrivals.put(0, b"hello", true);
        assert_eq!((arrivals.take(), arrivals.buffered_bytes()), (Vec::new(), 0));
        arrivals.put(70, b"x", false);
        arrivals.put(5, b"!", false);
        assert_eq!((arrivals.highest(), arrivals.buffered_bytes()), (71, 2 + 2 * PIECE));
        assert_eq!((arrivals.take(), arrivals.buffered_bytes()), (b"!".to_vec(), 1 + PIECE));
    }
}
