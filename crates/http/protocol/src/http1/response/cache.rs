//! Recent heads of one worker.

use super::ResponseError;
use super::head::{Known, is_equivalent, parse, parse_any_version};

/// Recently received heads of one worker, shared by its connections: a repeated head is recognized
/// by comparing bytes instead of parsing. The last match is tried first; a new head replaces the
/// oldest, and is parsed only if it differs from all of them in more than irrelevant values.
///
/// Comparing a prefix is enough: where a head ends depends on its own bytes only.
#[derive(Debug)]
pub struct HeadCache {
    entries: Vec<CachedHead>,
    /// Latest match; never a head with timings, which the short cut does not keep.
    latest: usize,
    /// Index of the oldest head, which is replaced next.
    oldest: usize,
}

#[derive(Debug)]
struct CachedHead {
    head: Vec<u8>,
    known: Known,
}

const ENTRIES_MAX: usize = 4;
/// No entry.
const NONE: usize = ENTRIES_MAX;
/// Longer heads are parsed each time.
const HEAD_MAX: usize = 4 << 10;
/// Number of bytes reserved in advance, so that learning a usual head does not allocate.
const HEAD_USUAL: usize = 1 << 10;

impl Default for HeadCache {
    fn default() -> HeadCache {
        HeadCache::new()
    }
}

impl HeadCache {
    pub fn new() -> HeadCache {
        let empty = || CachedHead { head: Vec::with_capacity(HEAD_USUAL), known: Known::default() };
        let entries = std::iter::repeat_with(empty).take(ENTRIES_MAX).collect();
        HeadCache { entries, latest: 0, oldest: 0 }
    }

    /// Returns the most recently matched head, if `input` begins with it.
    #[inline]
    pub(super) fn latest(&self, input: &[u8]) -> Option<&Known> {
        self.entries.get(self.latest)?.matching(input)
    }

    /// Finds a known head at the start of `input`, which becomes the last match.
    pub(super) fn recall(&mut self, input: &[u8]) -> Option<Known> {
        let found = self.entries.iter().position(|entry| entry.matching(input).is_some())?;
        Some(self.matched(found))
    }

    /// Understands a whole head and remembers it; `any_version`: see [`super::Leniency`].
    pub(super) fn learn(&mut self, head: &[u8], any_version: bool) -> Result<Known, ResponseError> {
        let parse = if any_version { parse_any_version } else { parse };
        if head.len() > HEAD_MAX {
            return parse(head);
        }
        let like = self.entries.iter().find(|entry| is_equivalent(&entry.head, head));
        let known = match like {
            Some(entry) => Known { len: head.len(), ..entry.known },
            None => parse(head)?,
        };
        let entry = &mut self.entries[self.oldest];
        entry.head.clear();
        entry.head.extend_from_slice(head);
        entry.known = known;
        let known = self.matched(self.oldest);
        self.oldest = (self.oldest + 1) % ENTRIES_MAX;
        Ok(known)
    }

    fn matched(&mut self, index: usize) -> Known {
        let known = self.entries[index].known;
        if !known.timed {
            self.latest = index;
        } else if self.latest == index {
            self.latest = NONE;
        }
        known
    }
}

impl CachedHead {
    #[inline]
    fn matching(&self, input: &[u8]) -> Option<&Known> {
        let known = !self.head.is_empty() && input.starts_with(&self.head);
        known.then_some(&self.known)
    }
}
