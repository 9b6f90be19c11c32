//! The permutation test: how rarely random labelings give such a difference.

use super::Block;
use units::Stream;

/// Maximum number of labelings: all of them up to this number, otherwise a random sample of this
/// size.
pub const LABELINGS_MAX: usize = 20_000;

/// Labels of the runs of one block, in the order before, after: `true` for "after".
pub type Labels = Vec<bool>;

/// Labelings of the runs of every block. The true labels always come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelings {
    /// For each block the possible labelings.
    pub choices: Vec<Vec<Labels>>,
    /// For each labeling of all blocks, the row of every block's choice.
    pub rows: Vec<Vec<u32>>,
}

/// Returns all ways to label the runs of the blocks (given as numbers of runs before and after);
/// beyond `most` of them, the true one and random ones up to `most`.
pub fn labelings(blocks: &[(usize, usize)], most: usize, stream: &mut Stream) -> Labelings {
    let mut complete = true;
    let mut of_block = |&(before, after): &(usize, usize)| {
        choices(before, after, most).unwrap_or_else(|| {
            complete = false;
            let truth: Labels = (0..before + after).map(|at| at >= before).collect();
            let draws = (0..most).map(|_| shuffled(&truth, stream)).collect::<Vec<_>>();
            std::iter::once(truth).chain(draws).collect()
        })
    };
    let choices: Vec<Vec<Labels>> = blocks.iter().map(&mut of_block).collect();
    let counts = choices.iter().map(Vec::len);
    let product = counts.clone().try_fold(1usize, usize::checked_mul);
    let rows = match product.filter(|product| complete && *product <= most) {
        Some(product) => (0..product).map(|index| digits(index, counts.clone())).collect(),
        None => {
            let mut rows = vec![vec![0; blocks.len()]];
            for _ in 0..most {
                rows.push(counts.clone().map(|count| stream.below(count as u64) as u32).collect());
            }
            rows
        }
    };
    Labelings { choices, rows }
}

/// Returns a number in digits of these bases, the first digit varying fastest.
fn digits(mut index: usize, bases: impl Iterator<Item = usize>) -> Vec<u32> {
    let mut digit = |base: usize| {
        let row = index % base;
        index /= base;
        row as u32
    };
    bases.map(&mut digit).collect()
}

/// Returns all choices of `after` out of all runs, the last ones first; `None` beyond `most`.
fn choices(before: usize, after: usize, most: usize) -> Option<Vec<Labels>> {
    let total = before + after;
    let mut found = Vec::new();
    // the places that are labeled "after", from the last one to the first
    let mut places: Vec<usize> = (before..total).collect();
    loop {
        let mut labels = vec![false; total];
        places.iter().for_each(|place| labels[*place] = true);
        found.push(labels);
        if found.len() > most {
            return None;
        }
        let Some(mover) = (0..after).find(|&at| places[at] > at) else { return Some(found) };
        places[mover] -= 1;
        (0..mover).for_each(|at| places[at] = places[mover] - (mover - at));
    }
}

fn shuffled(truth: &Labels, stream: &mut Stream) -> Labels {
    let mut labels = truth.clone();
    for at in (1..labels.len()).rev() {
        labels.swap(at, stream.below(at as u64 + 1) as usize);
    }
    labels
}

/// Returns, for each figure, the share of labelings in which some figure's difference is as rare as
/// its own. Differences are measured relative to their spread over the labelings, and each is
/// compared with the largest of a labeling. All figures have the same blocks.
pub(super) fn p_values(figures: &[&[Block]], stream: &mut Stream) -> Vec<f64> {
    let Some(first) = figures.first() else { return Vec::new() };
    let form: Vec<(usize, usize)> =
        first.iter().map(|block| (block.before.len(), block.after.len())).collect();
    let labelings = labelings(&form, LABELINGS_MAX, stream);
    let in_spreads: Vec<Vec<f64>> =
        figures.iter().map(|blocks| in_spreads(blocks, &labelings)).collect();
    let largest: Vec<f64> = (0..labelings.rows.len())
        .map(|index| in_spreads.iter().map(|figure| figure[index]).fold(0.0, f64::max))
        .collect();
    let share = |figure: &Vec<f64>| {
        // equal up to rounding counts as equal
        let own = figure[0] * (1.0 - 1e-9);
        let as_rare = largest.iter().filter(|other| **other >= own).count();
        as_rare as f64 / largest.len() as f64
    };
    in_spreads.iter().map(share).collect()
}

/// Returns the size of the difference under each labeling, in their spread.
fn in_spreads(blocks: &[Block], labelings: &Labelings) -> Vec<f64> {
    let table: Vec<Vec<f64>> = blocks
        .iter()
        .zip(&labelings.choices)
        .map(|(block, choices)| choices.iter().map(|labels| relabeled(block, labels)).collect())
        .collect();
    let sum = |rows: &Vec<u32>| -> f64 {
        rows.iter().zip(&table).map(|(row, table)| table[*row as usize]).sum()
    };
    let found: Vec<f64> = labelings.rows.iter().map(sum).collect();
    let squares: f64 = found.iter().map(|one| one * one).sum();
    let spread = (squares / found.len() as f64).sqrt();
    found.iter().map(|one| if spread > 0.0 { one.abs() / spread } else { 0.0 }).collect()
}

/// Returns the mean of the values labeled after − mean of the others.
fn relabeled(block: &Block, labels: &Labels) -> f64 {
    let (mut after, mut before) = (0.0, 0.0);
    for (value, is_after) in block.before.iter().chain(&block.after).zip(labels) {
        if *is_after { after += value } else { before += value }
    }
    after / block.after.len() as f64 - before / block.before.len() as f64
}
