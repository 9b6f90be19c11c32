//! Slots: the concurrency of a server, if a switch limits it.

use super::{Defect, Defects};

/// Connections, or requests, that a small pool serves at once.
pub const POOL: usize = 8;
/// Slots of a server that leaks them.
pub const LEAKY_POOL: usize = 64;
/// Slots of a server that leaks slots, and whose idle connections occupy them.
pub const HELD_POOL: usize = 108;

/// The number of slots, the condition that occupies one, and the number of occupied ones.
#[derive(Debug)]
pub(super) struct Pool {
    /// Number of slots, or `None` if unlimited.
    slots: Option<usize>,
    /// An idle connection releases its slot.
    pub(super) idle_is_free: bool,
    taken: usize,
    lost: usize,
}

impl Pool {
    pub(super) fn new(defects: &Defects) -> Pool {
        let has = |defect| defects.contains(&defect);
        let small = [
            Defect::FewSlots,
            Defect::FewWorkers,
            Defect::Sheds,
            Defect::RecoversSlowly,
            Defect::HangsOnExtensions,
            Defect::HangsOnInsertCount,
        ];
        let leaky = [Defect::LosesSlotsToResets, Defect::LosesSlotsToCloses];
        let slots = match (small.map(has).contains(&true), leaky.map(has).contains(&true)) {
            (true, _) => Some(POOL),
            (_, true) => Some(LEAKY_POOL),
            _ => has(Defect::LosesSomeSlots).then_some(HELD_POOL),
        };
        let by_connection =
            has(Defect::FewSlots) || has(Defect::Sheds) || has(Defect::LosesSomeSlots);
        let idle_is_free = !by_connection;
        Pool { slots, idle_is_free, taken: 0, lost: 0 }
    }

    pub(super) fn is_full(&self) -> bool {
        self.slots.is_some_and(|slots| self.taken + self.lost >= slots)
    }

    /// Returns false if none is left.
    pub(super) fn take(&mut self) -> bool {
        let free = !self.is_full();
        self.taken += usize::from(free);
        free
    }

    /// Occupies a slot for continuing work, even if none is left.
    pub(super) fn occupy_slot_anyway(&mut self) {
        self.taken += 1;
    }

    pub(super) fn release_slot(&mut self) {
        self.taken -= 1;
    }

    /// Leaks a slot.
    pub(super) fn lose(&mut self) {
        self.lost += 1;
    }

    /// Frees all slots after a restart.
    pub(super) fn clear(&mut self) {
        self.taken = 0;
        self.lost = 0;
    }
}
