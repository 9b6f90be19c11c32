//! Gates of synthetic runs: the blocks, the answer, and how it is shown.

use super::sessions;
use crate::compare::{html, json, junit, markdown_of_compare, text};
use crate::{RunRecord, Style};
use record::compare::{
    CompareRecord, Comparison, FailIf, Gate, GateAnswer, GateEnd, GateRecord, assemble, read,
};
use stats::{Cause, CauseId, State};
use units::Nanos;

/// Returns a comparison with blocks until the gate is certain, at most `most`; the second server's
/// times are `times` as long.
fn gate(bounds: &[&str], times: f64, most: usize) -> CompareRecord {
    let bounds: Vec<FailIf> = bounds.iter().map(|bound| FailIf::parse(bound).unwrap()).collect();
    let mut gate = Gate::new(&bounds);
    let mut sides = [Vec::new(), Vec::new()];
    let mut order = Vec::new();
    while !gate.is_over() && order.len() < most {
        let block = order.len();
        let run = |index: usize, times: f64| RunRecord::new(&sessions::run(index, times, 1.0));
        let before = [run(2 * block, 1.0), run(2 * block + 1, 1.0)];
        let after = [run(2 * block + 3, times), run(2 * block + 6, times)];
        gate.block(&before, &after);
        sides[0].extend(before);
        sides[1].extend(after);
        order.push(if block.is_multiple_of(2) { "ABBA" } else { "BAAB" });
    }
    let end = GateEnd {
        budget: Nanos::from_secs(600),
        spent: Nanos::from_secs(4 * order.len() as u64),
        restarts: vec![order.len() as u32; 2],
        ..GateEnd::default()
    };
    assemble(&Comparison {
        runs: sides.to_vec(),
        order: order.join(" "),
        bounds,
        gate: Some(gate.record(&end)),
        ..sessions::blocks(1.0, 1.0, &[])
    })
}

fn outcome(record: &CompareRecord) -> &GateRecord {
    record.gate.as_ref().unwrap()
}

#[test]
fn a_gate_passes_fails_or_names_its_resolution() {
    let kept = gate(&["p50 +5%"], 1.0, 40);
    assert_eq!((outcome(&kept).answer, outcome(&kept).blocks), (GateAnswer::Pass, 5));
    assert_eq!(kept.answer, "PASS after 5 blocks in 20.0 s: B keeps p50 +5%.");
    let broken = gate(&["p50 +5%", "throughput -3%"], 1.2, 40);
    assert_eq!((outcome(&broken).answer, outcome(&broken).blocks), (GateAnswer::Fail, 6));
    assert_eq!(broken.answer, "FAIL after 6 blocks in 24.0 s: B breaks p50 +5%.");
    let open = gate(&["p50 +0.1%"], 1.001, 8);
    let bound = &outcome(&open).bounds[0];
    assert_eq!(bound.answer, GateAnswer::Undecidable);
    assert!(bound.text.contains("can detect +") && bound.text.contains("not +0.10 %"), "{bound:?}");
    assert!(outcome(&open).help.iter().any(|text| text.contains("--budget")), "{open:?}");
}

/// A late client does not cause failures, so a bound on failures is still judged.
#[test]
fn failures_are_judged_although_the_client_was_late() {
    let bounds = ["failures +1%", "p50 +5%"].map(|bound| FailIf::parse(bound).unwrap());
    let run = |index: usize, share: f64, cause: CauseId| {
        let mut run = sessions::run(index, 1.0, 1.0);
        run.runs[0].failure_share = share;
        run.verdict.state = State::Invalid;
        let (text, advice) = (String::new(), String::new());
        run.verdict.causes = vec![Cause { id: cause, figure: 1.0, text, advice }];
        RunRecord::new(&run)
    };
    let judged = |cause: CauseId| {
        let mut gate = Gate::new(&bounds);
        for block in 0..7 {
            let side = |from: usize, share| [from, from + 1].map(|index| run(index, share, cause));
            gate.block(&side(2 * block, 0.0), &side(2 * block, 0.2));
        }
        let record = gate.record(&GateEnd::default());
        (record.answer, record.blocks, record.blocks_invalid)
    };
    assert_eq!(judged(CauseId::Slip), (GateAnswer::Fail, 7, 0));
    assert_eq!(judged(CauseId::NotOffered), (GateAnswer::Undecidable, 0, 7));
    let mut comparison = sessions::blocks(1.0, 1.0, &["failures +1%"]);
    for (side, share) in comparison.runs.iter_mut().zip([0.0, 0.2]) {
        for (index, one) in side.iter_mut().enumerate() {
            *one = run(index, share, CauseId::Slip);
        }
    }
    let bound = &assemble(&comparison).bounds[0];
    assert!(bound.crossed && bound.certain, "{bound:?}");
}

/// The later half of the blocks is late, which counts only for the failures: the time that the p50
/// needs follows from its own blocks.
#[test]
fn the_time_that_a_bound_needs_follows_from_its_blocks() {
    let bounds = ["failures +1%", "p50 +0.1%"].map(|bound| FailIf::parse(bound).unwrap());
    let mut gate = Gate::new(&bounds);
    for block in 0..16 {
        let run = |index: usize, times: f64| {
            let mut run = sessions::run(index, times, 1.0);
            if block >= 8 {
                run.verdict.state = State::Invalid;
                let (text, advice) = (String::new(), String::new());
                run.verdict.causes = vec![Cause { id: CauseId::Slip, figure: 1.0, text, advice }];
            }
            RunRecord::new(&run)
        };
        let before = [run(2 * block, 1.0), run(2 * block + 1, 1.0)];
        gate.block(&before, &[run(2 * block + 3, 1.001), run(2 * block + 6, 1.001)]);
    }
    let record = gate.record(&GateEnd { spent: Nanos::from_secs(64), ..GateEnd::default() });
    let [failures, median] = &record.bounds[..] else { panic!("two bounds") };
    assert_eq!((failures.blocks, failures.blocks_invalid), (16, 0));
    assert_eq!((median.blocks, median.blocks_invalid), (8, 8));
    let needed = median.blocks_needed.unwrap();
    let time = format!("--budget {}s", 8 * needed);
    assert!(record.help.iter().any(|help| help.contains(&time)), "{time}: {:?}", record.help);
}

/// A run that the machine interrupted has too few calls, so its block is excluded. A load with too
/// few calls from the first block on ends the gate at once.
#[test]
fn a_block_with_too_few_calls_is_left_out() {
    let bounds = [FailIf::parse("p50 +5%").unwrap()];
    let judged = |short: fn(usize) -> bool| {
        let mut gate = Gate::new(&bounds);
        let mut block = 0;
        while !gate.is_over() && block < 12 {
            let run = |index: usize| {
                let mut run = RunRecord::new(&sessions::run(index, 1.0, 1.0));
                if short(index) {
                    run.response_time_s.count = 5;
                }
                run
            };
            gate.block(&[run(2 * block), run(2 * block + 1)], &[run(2 * block + 3), run(100)]);
            block += 1;
        }
        (gate.record(&GateEnd::default()), block)
    };
    let (record, _) = judged(|index| index == 4);
    assert_eq!((record.answer, record.blocks_invalid), (GateAnswer::Pass, 1), "{record:?}");
    let (record, blocks) = judged(|index| index < 100);
    assert_eq!((record.answer, blocks), (GateAnswer::Undecidable, 1));
    assert!(record.help[0].contains("p50 needs 6 calls per run, but one has 5"), "{record:?}");
}

/// Every form shows an undecided bound as neither kept nor exceeded.
#[test]
fn an_undecided_bound_is_neither_kept_nor_crossed() {
    let open = gate(&["p50 +0.1%"], 1.001, 8);
    let style = Style { unicode: true, ..Style::default() };
    let shown = text(&open, style);
    assert!(shown.contains("  ! Undecided: p50 +0.1%: "), "{shown}");
    assert!(!shown.contains('✓') && !shown.contains('✗'), "{shown}");
    assert!(!shown.contains("resamples") && shown.contains("confidence sequences"), "{shown}");
    assert!(html(&open).contains("undecided"));
    let md = markdown_of_compare(&open);
    assert!(md.contains("started during the gate: 8 starts and 8 starts"), "{md}");
    let xml = junit(&open);
    assert!(xml.contains("skipped=\"1\"") && xml.contains("failures=\"0\""), "{xml}");
    let back = read(&json(&open)).unwrap();
    assert_eq!(back.gate, open.gate);
    assert_eq!(json(&back), json(&open));
}
