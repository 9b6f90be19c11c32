//! Hash maps whose keys are numbers: users, hashes, ids.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Map by number. The standard hasher resists keys chosen by an attacker, at ten times the cost;
/// these keys are our own numbers, or already hashes.
pub type NumberMap<V> = HashMap<u64, V, BuildHasherDefault<NumberHasher>>;

/// Multiplies by an odd constant and folds the halves (Fibonacci hashing), so that consecutive numbers
/// differ in all bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        let wide =
            u128::from(self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A table uses the highest seven bits and the lowest ones.
    #[test]
    fn consecutive_numbers_differ_in_the_bits_that_a_table_looks_at() {
        let hash = |number: u64| {
            let mut hasher = NumberHasher::default();
            hasher.write_u64(number);
            hasher.finish()
        };
        for stride in [1, 8, 1 << 32] {
            let low: BTreeSet<u64> = (0..1024).map(|row| hash(row * stride) % 1024).collect();
            let high: BTreeSet<u64> = (0..1024).map(|row| hash(row * stride) >> 57).collect();
            assert!(low.len() > 550 && high.len() > 100, "{stride}: {} {}", low.len(), high.len());
        }
    }

    #[test]
    fn a_map_keeps_its_entries() {
        let mut map = NumberMap::default();
        map.extend((0..10_000_u64).map(|number| (number, number + 1)));
        assert_eq!((map.len(), map.get(&77), map.get(&10_000)), (10_000, Some(&78), None));
    }
}
