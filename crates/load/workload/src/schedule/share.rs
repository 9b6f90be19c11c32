//! Divides the arrivals of a schedule among several workers.

use std::sync::Arc;

/// Indices whose remainder modulo the number of slots is in a given set. Worker `worker` of
/// `workers` has the remainder `worker`; in a fleet of unequal machines, each worker has slots in
/// proportion to its weight. If every slot belongs to one share, every index belongs to exactly one
/// share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Slots in ascending order, each below `of`; never empty.
    slots: Arc<[u32]>,
    of: u32,
}

/// Reason why slots are not a valid share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareError(pub String);

impl std::fmt::Display for ShareError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ShareError {}

impl Share {
    /// Returns the whole load.
    pub fn whole() -> Share {
        Share::new(0, 1)
    }

    /// # Panics
    /// Panics unless `worker` is below `workers`.
    pub fn new(worker: u32, workers: u32) -> Share {
        assert!(worker < workers, "workers are numbered from 0: {worker} of {workers}");
        Share { slots: Arc::new([worker]), of: workers }
    }

    /// Returns the share of these slots of `of`.
    ///
    /// # Errors
    /// Fails if there is no slot, the slots do not increase, or one is not below `of`: a table may
    /// originate from another machine.
    pub fn from_slots(slots: &[u32], of: u32) -> Result<Share, ShareError> {
        let Some(last) = slots.last() else {
            return Err(ShareError("a worker without a slot".into()));
        };
        if !slots.is_sorted_by(|one, next| one < next) || *last >= of {
            return Err(ShareError(format!("slots that are no rising numbers below {of}")));
        }
        Ok(Share { slots: slots.into(), of })
    }

    /// Returns the remainders in ascending order, and the divisor.
    pub fn slots(&self) -> (&[u32], u32) {
        (&self.slots, self.of)
    }

    /// Returns whether this is the share of the very first worker, which performs one-time work.
    pub fn is_first(&self) -> bool {
        self.slots[0] == 0
    }

    /// Returns member number `nth` of this share, counted from 0.
    #[inline]
    pub fn nth(&self, nth: u64) -> u64 {
        let wide = self.slots.len() as u64;
        if wide == 1 {
            return nth.saturating_mul(u64::from(self.of)).saturating_add(u64::from(self.slots[0]));
        }
        let slot = u64::from(self.slots[(nth % wide) as usize]);
        (nth / wide).saturating_mul(u64::from(self.of)).saturating_add(slot)
    }

    /// Returns the first index of this share that is not below `index`.
    pub fn first_from(&self, index: u64) -> u64 {
        self.nth(self.count_of(index))
    }

    /// Returns the number of the indices 0..`total` that belong to this share.
    pub fn count_of(&self, total: u64) -> u64 {
        let of = u64::from(self.of);
        let rest = total % of;
        let below = self.slots.partition_point(|slot| u64::from(*slot) < rest);
        (total / of).saturating_mul(self.slots.len() as u64).saturating_add(below as u64)
    }
}
