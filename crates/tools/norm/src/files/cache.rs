//! Recently read files, within bounds, and how long they are valid.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Capacity, and validity without a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheBounds {
    /// Longer files are not kept, in bytes.
    pub(crate) file_max: u64,
    /// Total size of all kept contents in bytes.
    pub(crate) bytes_max: u64,
    pub(crate) entries_max: usize,
    /// Time after which a file is checked again before it is served: the maximum delay of a change,
    /// or, while another request is just checking, [`BELIEVED_MAX`].
    pub(crate) look_again: Duration,
}

impl Default for CacheBounds {
    fn default() -> CacheBounds {
        CacheBounds {
            file_max: 256 * 1024,
            bytes_max: 64 * 1024 * 1024,
            entries_max: 4_096,
            look_again: Duration::from_millis(100),
        }
    }
}

/// Maximum age of the last check of a served file, however slow the file system is.
pub(super) const BELIEVED_MAX: Duration = Duration::from_secs(1);

/// State of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known<V> {
    /// The entry can be served unchanged.
    Fresh(V),
    /// Must be compared with the file; other requests receive it meanwhile.
    Old(V),
    Nothing,
}

/// Two generations of entries. Used entries move to the young generation. When it has filled its
/// half of the bounds, it becomes the old one, and the previous old one is dropped.
#[derive(Debug)]
pub(super) struct Cache<V> {
    bounds: CacheBounds,
    generations: Mutex<Generations<V>>,
}

#[derive(Debug)]
struct Generations<V> {
    young: HashMap<String, CachedValue<V>>,
    young_bytes: u64,
    old: HashMap<String, CachedValue<V>>,
}

#[derive(Debug)]
struct CachedValue<V> {
    value: Arc<V>,
    bytes: u64,
    /// Instant of the last verification of the file, taken before the check.
    confirmed: Instant,
    /// Instant at which the last check started.
    looked: Instant,
}

impl<V> CachedValue<V> {
    fn known(&mut self, now: Instant, look_again: Duration) -> Known<Arc<V>> {
        let since = |then: Instant| now.saturating_duration_since(then);
        let age = since(self.confirmed);
        let being_looked_at = since(self.looked) < look_again && age < BELIEVED_MAX;
        if age < look_again || being_looked_at {
            return Known::Fresh(Arc::clone(&self.value));
        }
        self.looked = now;
        Known::Old(Arc::clone(&self.value))
    }
}

impl<V> Cache<V> {
    pub(super) fn new(bounds: CacheBounds) -> Cache<V> {
        let generations =
            Generations { young: HashMap::new(), young_bytes: 0, old: HashMap::new() };
        Cache { bounds, generations: Mutex::new(generations) }
    }

    pub(super) fn look(&self, key: &str, now: Instant) -> Known<Arc<V>> {
        let mut generations = self.lock();
        if let Some(kept) = generations.young.get_mut(key) {
            return kept.known(now, self.bounds.look_again);
        }
        if !generations.rejuvenate(key, self.bounds) {
            return Known::Nothing;
        }
        let kept = generations.young.get_mut(key);
        kept.map_or(Known::Nothing, |kept| kept.known(now, self.bounds.look_again))
    }

    /// Stores an entry. `confirmed`: an instant before the file was examined.
    pub(super) fn keep(&self, key: &str, value: Arc<V>, bytes: u64, confirmed: Instant) {
        // the key and the books take memory too
        let bytes = bytes + key.len() as u64 + ENTRY_BYTES;
        let mut generations = self.lock();
        generations.forget(key);
        let kept = CachedValue { value, bytes, confirmed, looked: confirmed };
        generations.put(key.to_owned(), kept, self.bounds);
    }

    pub(super) fn forget(&self, key: &str) {
        self.lock().forget(key);
    }

    fn lock(&self) -> MutexGuard<'_, Generations<V>> {
        // no code between lock and unlock can leave the entries inconsistent
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Approximate overhead of an entry in addition to content and key: headers, maps.
const ENTRY_BYTES: u64 = 1_024;

impl<V> Generations<V> {
    fn rejuvenate(&mut self, key: &str, bounds: CacheBounds) -> bool {
        let Some((key, kept)) = self.old.remove_entry(key) else { return false };
        self.put(key, kept, bounds);
        true
    }

    fn put(&mut self, key: String, kept: CachedValue<V>, bounds: CacheBounds) {
        let bytes = kept.bytes;
        if bytes > bounds.bytes_max / 2 || bounds.entries_max < 2 {
            return;
        }
        let full = self.young_bytes + bytes > bounds.bytes_max / 2
            || self.young.len() + 1 > bounds.entries_max / 2;
        if full {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes;
        self.young.insert(key, kept);
    }

    fn forget(&mut self, key: &str) {
        self.old.remove(key);
        if let Some(kept) = self.young.remove(key) {
            self.young_bytes -= kept.bytes;
        }
    }
}

#[cfg(test)]
mod tests;
