//! Counts events within the last second.

use std::collections::VecDeque;
use units::Nanos;

const SPAN: Nanos = Nanos::from_secs(1);
/// Events closer together than this share an entry with the later instant. That keeps the list
/// short, and entries expire late rather than early.
const GRAIN: Nanos = Nanos::from_millis(1);

/// At most this many within any second.
#[derive(Clone, Debug)]
pub(super) struct Window {
    max: Option<u64>,
    sum: u64,
    /// Start of the entry, last addition, and count.
    entries: VecDeque<(Nanos, Nanos, u64)>,
}

impl Window {
    pub(super) fn new(max: Option<u64>) -> Window {
        Window { max, sum: 0, entries: VecDeque::new() }
    }

    /// Returns how many more events are allowed now.
    pub(super) fn room(&mut self, now: Nanos) -> u64 {
        let Some(max) = self.max else { return u64::MAX };
        while let Some((_, last, count)) = self.entries.front().copied()
            && last + SPAN <= now
        {
            self.sum -= count;
            self.entries.pop_front();
        }
        max.saturating_sub(self.sum)
    }

    pub(super) fn take(&mut self, now: Nanos, count: u64) {
        if self.max.is_none() || count == 0 {
            return;
        }
        self.sum += count;
        match self.entries.back_mut() {
            Some((first, last, sum)) if now < *first + GRAIN => {
                *last = now;
                *sum += count;
            }
            _ => self.entries.push_back((now, now, count)),
        }
    }

    /// Moves an event from an earlier instant to now; returns false if it is too old to be moved.
    pub(super) fn postpone(&mut self, taken: Nanos, now: Nanos) -> bool {
        let entry = self.entries.back_mut();
        let Some((_, last, _)) =
            entry.filter(|(first, _, _)| *first <= taken && now < *first + GRAIN)
        else {
            return self.max.is_none();
        };
        *last = now;
        true
    }

    /// Returns when there will be room for `wanted`, if no events are added. An amount above the
    /// limit never fits: then returns when all entries have expired.
    pub(super) fn free_at(&self, wanted: u64) -> Nanos {
        let mut room = self.max.unwrap_or(u64::MAX).saturating_sub(self.sum);
        let mut at = Nanos::ZERO;
        for (_, last, count) in &self.entries {
            if room >= wanted {
                break;
            }
            room += count;
            at = *last + SPAN;
        }
        at
    }
}
