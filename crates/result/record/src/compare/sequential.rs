//! Differences of a gate: their intervals are valid although the gate stops as soon as the result
//! is certain.

use super::DifferenceRecord;
use super::assemble::{difference, in_blocks, scale};
use crate::figures::RunFigure;
use crate::run::Headline;
use stats::compare::{Block, Compared, Scale, cliffs_delta};
use stats::interval::CONFIDENCE;
use stats::sequential::{Direction, Sequence, scaled};

/// Returns the differences of the second side to the first.
pub(super) fn differences(
    letter: char,
    figures: &[&RunFigure],
    [before, after]: [&[Headline]; 2],
) -> Vec<DifferenceRecord> {
    let one = |(figure, value, kind): &&RunFigure| {
        let values = |side: &[Headline]| side.iter().map(value).collect();
        let blocks = in_blocks(values(before), values(after), true);
        difference(letter, figure, *kind, compared(scale(*kind), &blocks, figures.len()))
    };
    figures.iter().map(one).collect()
}

/// Compares a figure. It differs if the confidence sequence at its share of the level excludes
/// zero.
fn compared(scale: Scale, blocks: &[Block], figures: usize) -> Compared {
    let mut sequence = Sequence::default();
    let sound: Option<Vec<Block>> = blocks.iter().map(|block| scaled(scale, block)).collect();
    let sound = sound.unwrap_or_default();
    sound.iter().for_each(|block| sequence.push(block));
    let level = 0.5 * (1.0 - CONFIDENCE);
    let strict = level / figures.max(1) as f64;
    let different = [Direction::Above, Direction::Below]
        .iter()
        .any(|direction| sequence.shows(*direction, 0.0, strict));
    let of = |side: fn(&Block) -> &Vec<f64>| -> Vec<f64> {
        sound.iter().flat_map(side).copied().collect()
    };
    let (before, after) = (of(|block| &block.before), of(|block| &block.after));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let level_of = |values: &[f64]| match scale {
        Scale::Ratio => mean(values).exp(),
        Scale::Points => mean(values),
    };
    let change = |difference: f64| match scale {
        Scale::Ratio if difference.is_finite() => difference.exp_m1(),
        _ if difference.is_finite() => difference,
        _ => f64::NAN,
    };
    Compared {
        before: level_of(&before),
        after: level_of(&after),
        change: change(sequence.estimate()),
        low: change(sequence.end(Direction::Below, level)),
        high: change(sequence.end(Direction::Above, level)),
        noise: f64::NAN,
        detectable: f64::NAN,
        effect: cliffs_delta(&before, &after),
        p_value: f64::NAN,
        different,
        enough: !sound.is_empty(),
    }
}
