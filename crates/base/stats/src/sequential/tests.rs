use super::*;

mod noise;

fn sequence(differences: &[f64], spread: f64) -> Sequence {
    let mut sequence = Sequence::default();
    for difference in differences {
        let before = vec![0.0, spread];
        let after = vec![*difference, difference + spread];
        sequence.push(&Block { before, after });
    }
    sequence
}

const RISE: Margin = Margin { scale: Scale::Ratio, limit: 0.03, rises: true };

/// 1.9^n reaches 20 with the fifth block and 40 with the sixth.
#[test]
fn the_first_answer_takes_five_blocks() {
    assert_eq!((blocks_min(0.05), blocks_min(0.025), blocks_min(0.01)), (5, 6, 8));
    let far = sequence(&[1.0; 6], 0.001);
    let answers: Vec<MarginAnswer> = (0..6)
        .map(|count| {
            let first = sequence(&[1.0; 6][..count], 0.001);
            RISE.answer(&first, 1)
        })
        .collect();
    assert_eq!(answers[..5], [MarginAnswer::Undecided; 5]);
    assert_eq!(answers[5], MarginAnswer::Fail);
    // with two figures a failure needs twice the evidence, a pass does not
    assert_eq!(RISE.answer(&sequence(&[1.0; 5], 0.001), 2), MarginAnswer::Undecided);
    assert_eq!(RISE.answer(&far, 2), MarginAnswer::Fail);
    assert_eq!(RISE.answer(&sequence(&[-1.0; 5], 0.001), 2), MarginAnswer::Pass);
}

#[test]
fn a_fall_of_throughput_fails_and_a_rise_passes() {
    let fall = Margin { scale: Scale::Ratio, limit: -0.03, rises: false };
    assert_eq!(fall.answer(&sequence(&[-0.2; 8], 0.01), 1), MarginAnswer::Fail);
    assert_eq!(fall.answer(&sequence(&[0.2; 8], 0.01), 1), MarginAnswer::Pass);
    let judged = fall.judge_margin(&sequence(&[-0.02, 0.02, -0.03, 0.02, 0.0, -0.01], 0.03), 1);
    assert_eq!(judged.answer, MarginAnswer::Undecided);
    assert!(judged.decidable < -0.03 && judged.low < judged.high, "{judged:?}");
}

/// Every margin beyond an end is excluded, and none before it.
#[test]
fn the_ends_are_where_the_evidence_reaches_the_level() {
    let some = sequence(&[0.01, 0.03, 0.02, 0.05, -0.01, 0.02, 0.04, 0.02, 0.03, 0.01], 0.02);
    let (low, high) = (some.end(Direction::Below, 0.05), some.end(Direction::Above, 0.05));
    assert!(low < some.estimate() && some.estimate() < high, "{low} {high}");
    assert!(some.shows(Direction::Below, high + 1e-6, 0.05));
    assert!(!some.shows(Direction::Below, high - 1e-6, 0.05));
    assert!(some.shows(Direction::Above, low - 1e-6, 0.05));
    assert!(!some.shows(Direction::Above, low + 1e-6, 0.05));
    let few = sequence(&[0.01; 4], 0.01);
    assert!(few.end(Direction::Above, 0.05).is_infinite());
    assert!(RISE.judge_margin(&few, 1).decidable.is_nan());
}

/// Shares of zero have no spread, and a later rise is found nevertheless.
#[test]
fn equal_values_do_not_use_up_the_wealth() {
    let margin = Margin { scale: Scale::Points, limit: 0.001, rises: true };
    let mut shares = Sequence::default();
    let none = Block { before: vec![0.0; 2], after: vec![0.0; 2] };
    (0..4).for_each(|_| shares.push(&none));
    assert_eq!(margin.answer(&shares, 1), MarginAnswer::Undecided);
    let some = Block { before: vec![0.0; 2], after: vec![0.02, 0.03] };
    let mut blocks = 0;
    while margin.answer(&shares, 1) == MarginAnswer::Undecided && blocks < 40 {
        shares.push(&some);
        blocks += 1;
    }
    assert_eq!(margin.answer(&shares, 1), MarginAnswer::Fail, "after {blocks}");
    assert!(blocks <= 25, "{blocks}");
}

#[test]
fn values_without_a_logarithm_are_refused() {
    let good = Block { before: vec![1.0, 2.0], after: vec![1.0] };
    assert!(scaled(Scale::Ratio, &good).is_some());
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let block = Block { before: vec![1.0, bad], after: vec![1.0] };
        assert!(scaled(Scale::Ratio, &block).is_none(), "{bad}");
    }
    let empty = Block { before: Vec::new(), after: vec![1.0] };
    assert!(scaled(Scale::Points, &empty).is_none());
}

#[test]
fn the_blocks_still_needed_grow_near_the_margin() {
    let noisy = [0.04, -0.04, 0.03, -0.03, 0.05, -0.05, 0.01, -0.01];
    let of = |limit: f64| Margin { limit, ..RISE }.judge_margin(&sequence(&noisy, 0.04), 1);
    let (near, far) = (of(0.005), of(0.03));
    assert_eq!((near.answer, far.answer), (MarginAnswer::Undecided, MarginAnswer::Undecided));
    assert!(near.blocks_needed > far.blocks_needed, "{near:?} {far:?}");
    assert!(far.blocks_needed > Some(8), "{far:?}");
}
