//! The pilot of `--design auto`: runs a few blocks of each design, and selects the one with the
//! smaller variance for the same time.

use super::live::{BlockEnd, Measurer};
use crate::exit::Failure;
use net::reactor::monotonic;
use record::compare::{BlockRuns, pilot_spread};
use units::{Nanos, show};

/// Blocks of each design in a pilot.
const BLOCKS: u32 = 4;
/// First block number of the pilot: its seeds lie beyond those of the blocks that count.
const FIRST: u32 = 1_000_000;

/// Design that a pilot chose.
pub(super) enum Chosen {
    Design {
        duet: bool,
        why: String,
    },
    /// A block was not completed.
    Ended(BlockEnd),
}

/// Measures some blocks of each design.
///
/// # Errors
/// Fails like a block.
pub(super) fn choose(measurer: &mut Measurer<'_, '_>) -> Result<Chosen, Failure> {
    let mut found = Vec::new();
    for duet in [false, true] {
        let start = monotonic();
        let mut blocks: Vec<BlockRuns> = Vec::new();
        for block in 0..BLOCKS {
            let heading =
                format!("pilot {} of {}", block + 1 + u32::from(duet) * BLOCKS, 2 * BLOCKS);
            match measurer.block(FIRST + block, duet, &heading)? {
                BlockEnd::Whole(mut runs, _) => {
                    let after = runs.pop().unwrap_or_default();
                    blocks.push((runs.pop().unwrap_or_default(), after));
                }
                ended => return Ok(Chosen::Ended(ended)),
            }
        }
        let each = (monotonic() - start).as_secs_f64() / f64::from(BLOCKS);
        found.push((pilot_spread(measurer.bounds(), &blocks), each));
    }
    Ok(decided(&found))
}

/// Decides between turns and duet, each with its spread and the seconds of a block.
fn decided(found: &[(Option<f64>, f64)]) -> Chosen {
    let [(Some(turns), turns_s), (Some(duet), duet_s)] = found else {
        let why = "The pilot could not compare the designs: the sides were measured in turns.";
        return Chosen::Design { duet: false, why: why.to_owned() };
    };
    let better = duet * duet * duet_s < turns * turns * turns_s;
    let of = |spread: &f64, span: &f64| {
        let span = show::duration(Nanos::from_secs_f64(*span));
        format!("{:.2} % in blocks of {span}", 100.0 * spread)
    };
    let name = if better { "the duet" } else { "turns" };
    let why = format!(
        "A pilot of {BLOCKS} blocks each saw a spread of {} in turns and {} in a duet; {name} gives \
         the smaller variance for the same time.",
        of(turns, turns_s),
        of(duet, duet_s)
    );
    Chosen::Design { duet: better, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_variance_for_the_same_time_wins() {
        let duet =
            |turns: Option<f64>, duet: Option<f64>| match decided(&[(turns, 4.0), (duet, 2.0)]) {
                Chosen::Design { duet, why } => {
                    assert!(why.contains("turns"), "{why}");
                    duet
                }
                Chosen::Ended(_) => unreachable!("nothing was measured"),
            };
        assert!(duet(Some(0.02), Some(0.02)), "half the time");
        assert!(!duet(Some(0.02), Some(0.03)));
        assert!(!duet(None, Some(0.01)));
    }
}
