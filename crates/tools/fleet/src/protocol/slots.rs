//! Assignment of arrivals: a table of slots. Arrival k belongs to slot k mod S, and every slot to
//! one worker of the fleet, in proportion to the workers' weights.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slots for each worker where weights differ: a weight is kept to within a sixteenth.
const SLOTS_PER_WORKER: u32 = 16;

/// The slots of every worker of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotTable {
    /// Total number of slots.
    pub of: u32,
    /// Slots by worker, in the order of the weights; in ascending order.
    pub slots: Vec<Vec<u32>>,
}

impl SlotTable {
    /// Returns a table for workers of these weights, each above zero. The next slot goes to the
    /// worker whose next one is due first; the n-th slot of a worker is due at (n - ½) / weight
    /// (the Sainte-Laguë method for seats). Therefore each sequence of arrivals is divided by
    /// weight, and not only the whole table. Of equal workers the first is served: the table is a
    /// function of the weights alone.
    ///
    /// Equal weights give one slot per worker: worker w has the arrivals with remainder w, like the
    /// workers of one process.
    pub fn new(weights: &[f64]) -> SlotTable {
        let workers = weights.len() as u32;
        let first = weights.first().copied().unwrap_or(1.0);
        if weights.iter().all(|weight| (weight - first).abs() <= first * 1e-6) {
            let slots = (0..workers).map(|worker| vec![worker]).collect();
            return SlotTable { of: workers, slots };
        }
        let of = (workers * SLOTS_PER_WORKER).next_power_of_two();
        let mut slots = vec![Vec::new(); weights.len()];
        // the bits of numbers above zero are in the order of the numbers
        let due = |had: usize, worker: usize| ((had as f64 + 0.5) / weights[worker]).to_bits();
        let mut next: BinaryHeap<_> =
            (0..weights.len()).map(|worker| Reverse((due(0, worker), worker))).collect();
        for slot in 0..of {
            let mut turn = next.peek_mut().expect("workers of different weights are several");
            let worker = turn.0.1;
            slots[worker].push(slot);
            turn.0.0 = due(slots[worker].len(), worker);
        }
        SlotTable { of, slots }
    }

    /// Returns a table of `of` slots, dealt to the workers in turn.
    pub fn even(of: u32, workers: u32) -> SlotTable {
        let of_worker = |worker: u32| (worker..of).step_by(workers.max(1) as usize).collect();
        SlotTable { of, slots: (0..workers).map(of_worker).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use workload::schedule::Share;

    #[test]
    fn equal_weights_are_the_remainders_of_one_process() {
        let table = SlotTable::new(&[2.0, 2.0, 2.0]);
        assert_eq!(table, SlotTable { of: 3, slots: vec![vec![0], vec![1], vec![2]] });
    }

    #[test]
    fn an_even_table_is_dealt_in_turn() {
        let table = SlotTable::even(5, 2);
        assert_eq!(table, SlotTable { of: 5, slots: vec![vec![0, 2, 4], vec![1, 3]] });
    }

    #[test]
    fn half_the_weight_gets_half_the_slots_evenly_spread() {
        let table = SlotTable::new(&[1.0, 0.5]);
        assert_eq!(table.of, 32);
        assert_eq!(table.slots[1].len(), 11);
        let gaps: Vec<u32> = table.slots[1].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (2..=4).contains(gap)), "{gaps:?}");
    }

    /// Comparing every worker for each slot would take minutes.
    #[test]
    fn a_table_of_twenty_thousand_workers_is_soon_made() {
        let weights: Vec<f64> = (0..20_000).map(|worker| f64::from(1 + worker % 2)).collect();
        let table = SlotTable::new(&weights);
        assert_eq!(table.of, 1 << 19);
        let of =
            |rest: usize| table.slots.iter().skip(rest).step_by(2).map(Vec::len).sum::<usize>();
        assert_eq!(of(0) + of(1), 1 << 19);
        assert!(of(0).abs_diff((1 << 19) / 3) <= 10_000, "{}", of(0));
        let even = SlotTable::new(&vec![1.0; 1 << 20]);
        assert_eq!((even.of, &even.slots[9][..]), (1 << 20, &[9][..]));
    }

    proptest! {
        #[test]
        fn every_arrival_has_one_owner(
            weights in prop::collection::vec(0.2_f64..5.0, 1..40),
            total in 0_u64..5_000,
        ) {
            let table = SlotTable::new(&weights);
            let owned = table.slots.iter().filter(|slots| !slots.is_empty());
            let shares: Vec<Share> =
                owned.map(|slots| Share::from_slots(slots, table.of).unwrap()).collect();
            let counts: u64 = shares.iter().map(|share| share.count_of(total)).sum();
            prop_assert_eq!(counts, total);
            let mut all = Vec::new();
            for share in &shares {
                all.extend((0..share.count_of(total)).map(|nth| share.nth(nth)));
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..total).collect::<Vec<_>>());
        }

        #[test]
        fn shares_follow_the_weights(weights in prop::collection::vec(0.2_f64..5.0, 2..40)) {
            let table = SlotTable::new(&weights);
            let sum: f64 = weights.iter().sum();
            for (slots, weight) in table.slots.iter().zip(&weights) {
                let due = weight / sum * f64::from(table.of);
                prop_assert!((slots.len() as f64 - due).abs() < 2.0, "{} {due}", slots.len());
            }
        }
    }
}
