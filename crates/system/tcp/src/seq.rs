//! Sequence numbers: 32 bits that wrap around (RFC 9293 section 3.4).

/// Returns whether `a` is before `b`: the distance is less than half of the number space.
#[inline]
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[inline]
pub(crate) fn not_after(a: u32, b: u32) -> bool {
    !before(b, a)
}

/// Returns the later of two.
#[inline]
pub(crate) fn later(a: u32, b: u32) -> u32 {
    if before(a, b) { b } else { a }
}

/// Ranges of sequence numbers, sorted and disjoint; at most [`Ranges::MAX`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    /// Maximum number of ranges: data beyond it is forgotten and therefore retransmitted.
    pub(crate) const MAX: usize = 256;

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn as_slice(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// Adds `[from, to)`; returns the range that now contains it, or `None` if there was no room.
    pub(crate) fn add(&mut self, from: u32, to: u32) -> Option<(u32, u32)> {
        let first = self.0.partition_point(|range| before(range.1, from));
        let end = self.0.partition_point(|range| not_after(range.0, to));
        if first >= end {
            if self.0.len() >= Self::MAX {
                return None;
            }
            self.0.insert(first, (from, to));
            return Some((from, to));
        }
        let start = if before(from, self.0[first].0) { from } else { self.0[first].0 };
        let whole = (start, later(to, self.0[end - 1].1));
        self.0[first] = whole;
        self.0.drain(first + 1..end);
        Some(whole)
    }

    /// Removes everything before `from`.
    pub(crate) fn cut(&mut self, from: u32) {
        let gone = self.0.partition_point(|range| not_after(range.1, from));
        self.0.drain(..gone);
        if let Some(range) = self.0.first_mut() {
            range.0 = later(range.0, from);
        }
    }

    /// Returns the end of the range that contains `at`.
    pub(crate) fn end_of(&self, at: u32) -> Option<u32> {
        let row = self.0.partition_point(|range| not_after(range.1, at));
        self.0.get(row).filter(|range| not_after(range.0, at)).map(|range| range.1)
    }

    /// Returns the start of the first range after `at`.
    pub(crate) fn next_after(&self, at: u32) -> Option<u32> {
        let row = self.0.partition_point(|range| not_after(range.0, at));
        self.0.get(row).map(|range| range.0)
    }

    /// Returns the total length of the ranges from `from` on.
    pub(crate) fn sum_from(&self, from: u32) -> u32 {
        let part = |range: &(u32, u32)| {
            if before(from, range.1) { range.1.wrapping_sub(later(range.0, from)) } else { 0 }
        };
        self.0.iter().map(part).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        assert!(before(u32::MAX, 0) && before(u32::MAX - 5, 10) && !before(10, u32::MAX - 5));
        assert!(not_after(7, 7) && later(u32::MAX, 3) == 3);
    }

    #[test]
    fn ranges_merge_and_are_cut_across_the_wrap() {
        let base = u32::MAX - 100;
        let at = |offset: u32| base.wrapping_add(offset);
        let mut ranges = Ranges::default();
        assert_eq!(ranges.add(at(50), at(60)), Some((at(50), at(60))));
        ranges.add(at(200), at(210));
        ranges.add(at(90), at(120));
        assert_eq!(ranges.as_slice().len(), 3);
        // touches two of them
        assert_eq!(ranges.add(at(60), at(95)), Some((at(50), at(120))));
        assert_eq!(ranges.as_slice(), [(at(50), at(120)), (at(200), at(210))]);
        assert_eq!((ranges.end_of(at(119)), ranges.end_of(at(120))), (Some(at(120)), None));
        assert_eq!(ranges.next_after(at(120)), Some(at(200)));
        assert_eq!(ranges.sum_from(at(110)), 20);
        ranges.cut(at(205));
        assert_eq!(ranges.as_slice(), [(at(205), at(210))]);
        for row in 0..2 * Ranges::MAX as u32 {
            ranges.add(at(1_000 + 10 * row), at(1_001 + 10 * row));
        }
        assert_eq!(ranges.as_slice().len(), Ranges::MAX);
    }
}
