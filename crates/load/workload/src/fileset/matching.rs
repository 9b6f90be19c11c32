//! Number of requests per file.

use crate::fileset::Law;
use std::collections::BTreeMap;

/// Returns the number of requests for the file of each rank: ⌊top/rank⌋, as SURGE's generator
/// computes Zipf's law.
pub fn zipf_counts(files: usize, top: u64) -> Vec<u64> {
    (1..=files as u64).map(|rank| top / rank).collect()
}

/// Assigns one of the counts to each size, so that the *requested* sizes follow `target`: from the
/// largest size down, each gets the unused count closest to the missing probability above the next
/// size. The tail is matched first, because it carries most bytes.
///
/// `sizes` are in bytes, in ascending order, as many as there are counts. Returns the count of each
/// size.
pub fn matched(sizes: &[u64], counts: &[u64], target: &Law) -> Vec<u64> {
    assert_eq!(sizes.len(), counts.len(), "a count for each size");
    let total: u64 = counts.iter().sum();
    let mut unused: BTreeMap<u64, usize> = BTreeMap::new();
    for count in counts {
        *unused.entry(*count).or_default() += 1;
    }
    let mut given = vec![0; sizes.len()];
    let mut assigned = 0_u64;
    for index in (0..sizes.len()).rev() {
        let next = index.checked_sub(1).map_or(0, |below| sizes[below]);
        let wanted = total as f64 * (1.0 - target.cdf(next as f64));
        let missing = (wanted - assigned as f64).max(0.0);
        let count = nearest(&unused, missing as u64);
        take(&mut unused, count);
        given[index] = count;
        assigned += count;
    }
    given
}

/// Returns the key nearest to `wanted`; the smaller of two that are equally near.
fn nearest(unused: &BTreeMap<u64, usize>, wanted: u64) -> u64 {
    let below = unused.range(..=wanted).next_back().map(|(count, _)| *count);
    let above = unused.range(wanted..).next().map(|(count, _)| *count);
    match (below, above) {
        (Some(below), Some(above)) if above - wanted < wanted - below => above,
        (Some(below), _) => below,
        (None, above) => above.expect("there are as many counts as sizes"),
    }
}

fn take(unused: &mut BTreeMap<u64, usize>, count: u64) {
    if let Some(left) = unused.get_mut(&count) {
        *left -= 1;
        if *left == 0 {
            unused.remove(&count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1 of the reference values: the sums of the truncated counts.
    #[test]
    fn counts_are_truncated() {
        for (files, top, sum) in
            [(2_000, 2_000, 15_518), (2_000, 20_000, 162_599), (5_000, 50_000, 452_279)]
        {
            assert_eq!(zipf_counts(files, top).iter().sum::<u64>(), sum);
        }
    }

    #[test]
    fn every_count_is_used_exactly_once() {
        let (sizes, counts) =
            ((1..=500).map(|i| i * i).collect::<Vec<u64>>(), zipf_counts(500, 900));
        let mut given = matched(&sizes, &counts, &Law::Pareto { k: 1000.0, a: 1.0 });
        given.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(given, counts);
    }
}
