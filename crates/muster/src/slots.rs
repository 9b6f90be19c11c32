//! Who sends which arrival: a table of slots. Arrival k belongs to slot k mod S, and every slot to one
//! worker of the fleet, in proportion to the workers' weights.

/// Slots for each worker where weights differ: a weight is kept to within a sixteenth.
const SLOTS_PER_WORKER: u32 = 16;

/// The slots of every worker of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotTable {
    /// Slots in all.
    pub of: u32,
    /// By worker, in the order of the weights; in rising order.
    pub slots: Vec<Vec<u32>>,
}

impl SlotTable {
    /// A table for workers of these weights, each above zero. Slot after slot goes to the worker who
    /// is furthest behind what its weight is worth, so that not only the whole table but each run of
    /// arrivals is divided as the weights are. Of equals the first is served: the table is a function
    /// of the weights alone.
    ///
    /// Equal weights give as many slots as workers: worker w has the arrivals that leave the
    /// remainder w, as the workers of one process have.
    pub fn new(weights: &[f64]) -> SlotTable {
        let workers = weights.len() as u32;
        let first = weights.first().copied().unwrap_or(1.0);
        let even = weights.iter().all(|weight| (weight - first).abs() <= first * 1e-6);
        let of = if even { workers } else { (workers * SLOTS_PER_WORKER).next_power_of_two() };
        let sum: f64 = weights.iter().sum();
        let mut slots = vec![Vec::new(); weights.len()];
        for slot in 0..of {
            let behind = |worker: &usize| {
                let due = weights[*worker] / sum * f64::from(slot + 1);
                due - slots[*worker].len() as f64
            };
            // of equals the last is the maximum: from behind, so that it is the first
            let next =
                (0..weights.len()).rev().max_by(|one, other| behind(one).total_cmp(&behind(other)));
            if let Some(next) = next {
                slots[next].push(slot);
            }
        }
        SlotTable { of, slots }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use schedule::Share;

    #[test]
    fn equal_weights_are_the_remainders_of_one_process() {
        let table = SlotTable::new(&[2.0, 2.0, 2.0]);
        assert_eq!(table, SlotTable { of: 3, slots: vec![vec![0], vec![1], vec![2]] });
    }

    #[test]
    fn half_the_weight_gets_half_the_slots_evenly_spread() {
        let table = SlotTable::new(&[1.0, 0.5]);
        assert_eq!(table.of, 32);
        assert_eq!(table.slots[1].len(), 11);
        let gaps: Vec<u32> = table.slots[1].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (2..=4).contains(gap)), "{gaps:?}");
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
                owned.map(|slots| Share::of_slots(slots, table.of).unwrap()).collect();
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
        fn shares_keep_to_the_weights(weights in prop::collection::vec(0.2_f64..5.0, 2..40)) {
            let table = SlotTable::new(&weights);
            let sum: f64 = weights.iter().sum();
            for (slots, weight) in table.slots.iter().zip(&weights) {
                let due = weight / sum * f64::from(table.of);
                prop_assert!((slots.len() as f64 - due).abs() < 2.0, "{} {due}", slots.len());
            }
        }
    }
}
