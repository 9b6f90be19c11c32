//! A gate: the bounds of `--fail-if` judged after every block until each answer is certain or the
//! budget is spent. The arithmetic is `stats::sequential`'s.

use super::gate_record::{GateAnswer, GateBoundRecord, GateRecord};
use super::{BoundRecord, FailIf, amount};
use crate::run::RunRecord;
use crate::words::counted;
use stats::compare::{Block, Scale};
use stats::sequential::{ALPHA, JudgedMargin, MarginAnswer, Sequence, blocks_min, scaled};
use units::{Nanos, show};

/// Blocks of a gate so far.
#[derive(Clone, Debug)]
pub struct Gate {
    bounds: Vec<GateBound>,
    blocks: usize,
    invalid: usize,
}

/// One bound and the result of its figure so far.
#[derive(Clone, Debug)]
struct GateBound {
    bound: FailIf,
    sequence: Sequence,
    /// The first certain answer, which later blocks do not change.
    answer: MarginAnswer,
    /// Judgment at this block.
    judged: Option<JudgedMargin>,
    /// Reason why a run lacks the figure.
    lacking: Option<String>,
    /// Blocks that count for it, and excluded ones.
    blocks: usize,
    invalid: usize,
}

/// Runs of one block, before and after.
pub type BlockRuns = (Vec<RunRecord>, Vec<RunRecord>);

/// Returns the spread of the first bound's figure over the blocks of a pilot, as a share or in
/// points; `None` if a run lacks the figure.
pub fn pilot_spread(bounds: &[FailIf], blocks: &[BlockRuns]) -> Option<f64> {
    let bound = bounds.first()?;
    let mut sequence = Sequence::default();
    for (before, after) in blocks {
        let values = |runs: &[RunRecord]| runs.iter().map(|run| bound.value(run)).collect();
        let block = Block { before: values(before), after: values(after) };
        sequence.push(&scaled(bound.margin().scale, &block)?);
    }
    Some(sequence.spread()).filter(|spread| spread.is_finite())
}

/// Circumstances of a gate's end.
#[derive(Clone, Debug, Default)]
pub struct GateEnd {
    pub budget: Nanos,
    pub spent: Nanos,
    /// Servers started for each side; zero where they were already running.
    pub restarts: Vec<u32>,
    /// Both sides were measured at the same moment.
    pub duet: bool,
    /// Result of the pilot that chose the design; empty where it was given.
    pub pilot: String,
    /// Reason why the gate ended before an answer, other than its budget.
    pub cut_short: Option<String>,
}

impl Gate {
    /// Returns a gate of these bounds, without blocks.
    pub fn new(bounds: &[FailIf]) -> Gate {
        let watched = |bound: &FailIf| GateBound {
            bound: bound.clone(),
            sequence: Sequence::default(),
            answer: MarginAnswer::Undecided,
            judged: None,
            lacking: None,
            blocks: 0,
            invalid: 0,
        };
        Gate { bounds: bounds.iter().map(watched).collect(), blocks: 0, invalid: 0 }
    }

    /// Returns the fewest blocks after which a gate with this many bounds can fail.
    pub fn blocks_min(bounds: usize) -> usize {
        blocks_min(ALPHA / bounds.max(1) as f64)
    }

    /// Adds a block: the runs of each side in the order in which they were made. A block with a run
    /// that is INVALID, or that has too few calls for the figure, is excluded. That does not depend
    /// on the labels of the runs. Failures count although the client was late.
    pub fn block(&mut self, before: &[RunRecord], after: &[RunRecord]) {
        let figures = self.bounds.len();
        let runs = || before.iter().chain(after);
        let mut counts = false;
        for watched in &mut self.bounds {
            let lacking = runs().find_map(|run| watched.bound.missing_figure(run));
            if lacking.is_none() && runs().all(|run| watched.bound.counts(run)) {
                watched.block(before, after, figures);
                watched.blocks += 1;
                counts = true;
            } else {
                watched.invalid += 1;
                watched.lacking = lacking.or(watched.lacking.take());
            }
        }
        *(if counts { &mut self.blocks } else { &mut self.invalid }) += 1;
    }

    /// Returns the number of blocks that count.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Returns the answer so far: a bound that fails decides for all.
    pub fn answer(&self) -> MarginAnswer {
        let all = |answer: MarginAnswer| self.bounds.iter().all(|one| one.answer == answer);
        if self.bounds.iter().any(|one| one.answer == MarginAnswer::Fail) {
            MarginAnswer::Fail
        } else if all(MarginAnswer::Pass) {
            MarginAnswer::Pass
        } else {
            MarginAnswer::Undecided
        }
    }

    /// Returns whether no further block changes the answer.
    pub fn is_over(&self) -> bool {
        self.answer() != MarginAnswer::Undecided
            || self.bounds.iter().any(GateBound::lacks_first_figure)
    }

    /// Returns the outcome of the gate.
    pub fn record(&self, end: &GateEnd) -> GateRecord {
        let bounds: Vec<GateBoundRecord> =
            self.bounds.iter().map(|one| one.record(self.bounds.len())).collect();
        let answer = GateAnswer::new(self.answer());
        let mut record = GateRecord {
            answer,
            sentence: String::new(),
            alpha: ALPHA,
            budget_s: end.budget.as_secs_f64(),
            spent_s: end.spent.as_secs_f64(),
            blocks: self.blocks as u64,
            blocks_invalid: self.invalid as u64,
            restarts: end.restarts.clone(),
            design: if end.duet { "duet" } else { "turns" }.to_owned(),
            pilot: end.pilot.clone(),
            bounds,
            help: Vec::new(),
        };
        let lacking = self.bounds.iter().any(GateBound::lacks_first_figure);
        record.sentence = match lacking && answer == GateAnswer::Undecidable {
            true => "UNDECIDABLE: a bounded figure is missing in a run.".to_owned(),
            false => sentence(&record, end),
        };
        if answer == GateAnswer::Undecidable {
            record.help = self.help(&record, end);
        }
        record
    }

    /// Measures that would make an undecidable gate decidable.
    fn help(&self, record: &GateRecord, end: &GateEnd) -> Vec<String> {
        let mut help: Vec<String> = self
            .bounds
            .iter()
            .filter(|one| one.answer == MarginAnswer::Undecided)
            .filter_map(|one| one.lacking.as_ref())
            .map(|why| format!("{why}: give longer runs (-d) or a higher rate."))
            .collect();
        if self.bounds.iter().any(GateBound::lacks_first_figure) {
            return help;
        }
        let undecided = || self.bounds.iter().filter(|one| one.answer == MarginAnswer::Undecided);
        if undecided().any(|one| one.invalid > one.blocks) {
            help.push(
                "Most blocks had an INVALID run: lower the load or use a quieter machine."
                    .to_owned(),
            );
        }
        let open = record.bounds.iter().filter(|one| one.answer == GateAnswer::Undecidable);
        // each bound has its own rate of blocks that count
        let waits = open.clone().map(|one| {
            let each = end.spent.as_secs_f64() / (one.blocks > 0).then_some(one.blocks)? as f64;
            Some((one.blocks_needed?, each * one.blocks_needed? as f64))
        });
        let waits: Option<Vec<(u64, f64)>> = waits.collect();
        if let Some((needed, wait_s)) =
            waits.and_then(|all| all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)))
        {
            // a value that can be pasted
            help.push(format!(
                "About {} would decide it on this machine (--budget {}s).",
                counted(show::estimate(needed), "block"),
                show::estimate(wait_s.ceil() as u64)
            ));
        }
        let bound = open.clone().find(|one| one.decidable.is_some());
        if let Some((one, decidable)) = bound.and_then(|one| Some((one, one.decidable?))) {
            let wider = amount(rounded_out(decidable), one.points);
            help.push(format!("A bound of {} {wider} would have been met.", one.figure));
        }
        help
    }
}

/// Rounds a share to whole percents away from zero.
fn rounded_out(share: f64) -> f64 {
    ((share * 100.0).abs().ceil() / 100.0).copysign(share)
}

impl GateBound {
    /// Returns whether a run lacks the figure before any block has counted.
    fn lacks_first_figure(&self) -> bool {
        self.blocks == 0 && self.lacking.is_some()
    }

    fn block(&mut self, before: &[RunRecord], after: &[RunRecord], figures: usize) {
        let values = |runs: &[RunRecord]| runs.iter().map(|run| self.bound.value(run)).collect();
        let block = Block { before: values(before), after: values(after) };
        let margin = self.bound.margin();
        let Some(block) = scaled(margin.scale, &block) else { return };
        self.sequence.push(&block);
        if self.answer == MarginAnswer::Undecided {
            self.answer = margin.answer(&self.sequence, figures);
            if self.answer != MarginAnswer::Undecided {
                self.judged = Some(margin.judge_margin(&self.sequence, figures));
            }
        }
    }

    fn record(&self, figures: usize) -> GateBoundRecord {
        let margin = self.bound.margin();
        let judged = self.judged.unwrap_or_else(|| margin.judge_margin(&self.sequence, figures));
        let known = |figure: f64| figure.is_finite().then_some(figure);
        let points = margin.scale == Scale::Points;
        let mut record = GateBoundRecord {
            bound: self.bound.text().to_owned(),
            figure: self.bound.figure().to_owned(),
            answer: GateAnswer::new(self.answer),
            points,
            limit: margin.limit,
            change: known(judged.change),
            low: known(judged.low),
            high: known(judged.high),
            decidable: known(judged.decidable),
            blocks: self.blocks as u64,
            blocks_invalid: self.invalid as u64,
            blocks_needed: judged.blocks_needed,
            text: String::new(),
        };
        record.text = match &self.lacking {
            Some(why) if self.lacks_first_figure() => format!("{why}, so it cannot be judged"),
            _ => bound_sentence(&record),
        };
        record
    }
}

/// Returns the range of a change: `+1.2 to +4.0 %`; `unknown` while neither end is excluded.
fn range(one: &GateBoundRecord) -> String {
    let of = |end: f64| amount(end, one.points);
    match (one.low, one.high) {
        (Some(low), Some(high)) => {
            let low = of(low);
            let low = low.rsplit_once(' ').map_or("", |(number, _)| number);
            format!("{low} to {}", of(high))
        }
        (Some(low), None) => format!("at least {}", of(low)),
        (None, Some(high)) => format!("at most {}", of(high)),
        (None, None) => "not bounded yet".to_owned(),
    }
}

fn bound_sentence(one: &GateBoundRecord) -> String {
    let change = one.change.map_or_else(|| "-".to_owned(), |change| amount(change, one.points));
    let (figure, range) = (&one.figure, range(one));
    match one.answer {
        GateAnswer::Pass => format!("{figure} changed by {change} ({range}): within the bound"),
        GateAnswer::Fail => format!("{figure} changed by {change} ({range}): beyond the bound"),
        GateAnswer::Undecidable => {
            let limit = amount(one.limit, one.points);
            match one.decidable {
                Some(seen) => format!(
                    "{figure} changed by {change} ({range}): can detect {}, not {limit}",
                    amount(seen, one.points)
                ),
                None => format!("{figure} changed by {change}: too few blocks to see any bound"),
            }
        }
    }
}

/// Returns the answer in one sentence.
fn sentence(record: &GateRecord, end: &GateEnd) -> String {
    let after = format!(
        "after {} in {}",
        counted(record.blocks, "block"),
        show::duration(Nanos::from_secs_f64(record.spent_s.round()))
    );
    let of = |wanted: GateAnswer| -> Vec<&str> {
        let found = record.bounds.iter().filter(|one| one.answer == wanted);
        found.map(|one| one.bound.as_str()).collect()
    };
    match record.answer {
        GateAnswer::Pass => format!("PASS {after}: B keeps {}.", of(GateAnswer::Pass).join(", ")),
        GateAnswer::Fail => format!("FAIL {after}: B breaks {}.", of(GateAnswer::Fail).join(", ")),
        GateAnswer::Undecidable => {
            let open = of(GateAnswer::Undecidable).join(", ");
            match &end.cut_short {
                Some(why) => format!("UNDECIDABLE {after}: {why}; not decided: {open}."),
                None => format!(
                    "UNDECIDABLE {after}: this machine cannot decide {open} within {}.",
                    show::duration(Nanos::from_secs_f64(record.budget_s))
                ),
            }
        }
    }
}

impl GateRecord {
    /// Returns the bounds in the form of every comparison; an undecided one counts as not crossed.
    pub fn plain_bounds(&self) -> Vec<BoundRecord> {
        let plain = |one: &GateBoundRecord| BoundRecord {
            text: one.bound.clone(),
            crossed: one.answer == GateAnswer::Fail,
            certain: one.answer == GateAnswer::Fail,
            undecided: one.answer == GateAnswer::Undecidable,
            why: one.text.clone(),
        };
        self.bounds.iter().map(plain).collect()
    }

    /// Restarts of the servers between the runs, as text.
    pub fn restarts_text(&self) -> String {
        match self.restarts.iter().map(|count| u64::from(*count)).collect::<Vec<_>>().as_slice() {
            [] | [0, 0] => "No restart was seen: the result is about these two processes, not \
                            about two builds."
                .to_owned(),
            counts => {
                let each: Vec<String> =
                    counts.iter().map(|count| counted(*count, "start")).collect();
                format!("The servers were started during the gate: {}.", each.join(" and "))
            }
        }
    }
}
