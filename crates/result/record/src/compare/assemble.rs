//! From runs to differences.

use super::bounds::NotCompared;
use super::{
    BoundRecord, CompareRecord, DifferenceRecord, FailIf, FurtherRecord, GateRecord, Judgement,
    LETTERS, SCHEMA, SideRecord, answer, failing, protocols, sentence, sequential, verdict,
};
use crate::figures::{FigureKind, RUN_FIGURES, RunFigure};
use crate::run::{EnvironmentRecord, Headline, HistogramRecord, RunRecord};
use crate::timestamp;
use crate::words::counted;
use sample::Environment;
use stats::compare::{BLOCKS_MIN, Block, Compared, Effort, RUNS_MIN, Scale, Series};
use stats::interval::CONFIDENCE;
use stats::{Hist, State, samples_needed};
use units::{Purpose, Seed};

/// Number of resamples per interval.
const RESAMPLES: u32 = 10_000;

/// Number of runs of a side in one block.
pub const OF_A_BLOCK: usize = 2;

/// Two sets of runs to be compared, or more of which each is held against the first.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    pub name: String,
    /// Names of the sides.
    pub labels: Vec<String>,
    /// The commands that restarted the servers for each run, if any.
    pub commands: Vec<Option<String>>,
    /// Start in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// The runs of each side; with an order, two of each for every block.
    pub runs: Vec<Vec<RunRecord>>,
    /// The order of the runs, with a group of letters for each block, such as `ABBA BAAB`; empty
    /// for two separately recorded sets.
    pub order: String,
    pub bounds: Vec<FailIf>,
    /// Known reservations.
    pub cautions: Vec<String>,
    /// Reason why it ended before its last block; earlier blocks are complete.
    pub ended_early: Option<String>,
    /// The outcome of a gate, which stops when it is certain: its intervals hold at every block.
    pub gate: Option<GateRecord>,
}

/// Differences of a side from the first.
pub type SideFigures = (Vec<DifferenceRecord>, Vec<BoundRecord>);

/// Compares. Quantiles for which a run has too few calls are omitted.
pub fn assemble(comparison: &Comparison) -> CompareRecord {
    let Comparison { runs, order, bounds, .. } = comparison;
    let figures: Vec<&RunFigure> =
        RUN_FIGURES.iter().filter(|figure| comparable(figure.0, runs).is_none()).collect();
    let headlines: Vec<Vec<Headline>> = runs.iter().map(|runs| headlines(runs)).collect();
    let found = LETTERS.chars().zip(&headlines).skip(1).map(|(letter, side)| {
        let pair = [headlines[0].as_slice(), side];
        let family = headlines.len() - 1;
        let differences = match comparison.gate {
            Some(_) => sequential::differences(letter, &figures, pair),
            None => differences(letter, &figures, pair, !order.is_empty(), family),
        };
        let judge = |bound: &FailIf| {
            let sound = runs.iter().flatten().all(|run| bound.counts(run));
            bound.judge(&differences, comparable(bound.figure(), runs), sound)
        };
        let bounds = match &comparison.gate {
            Some(gate) => gate.plain_bounds(),
            None => bounds.iter().map(judge).collect(),
        };
        (differences, bounds)
    });
    let mut record = put_together(comparison, found.collect());
    record.cautions.extend(verdict_cautions(&comparison.labels, &headlines));
    if comparison.gate.is_none() {
        record.cautions.extend(too_few(&headlines, order));
    }
    record
}

/// Creates the record of a comparison with known figures: `found` of each side after the first.
pub fn put_together(comparison: &Comparison, found: Vec<SideFigures>) -> CompareRecord {
    let Comparison { labels, runs, .. } = comparison;
    let responses: Vec<Hist> = runs.iter().map(|runs| responses(runs)).collect();
    let mut sides = (0..labels.len()).map(|side| side_of(comparison, side, responses.get(side)));
    let mut side = || sides.next().unwrap_or_default();
    let (before, after) = (side(), side());
    let mut found = found.into_iter();
    let (differences, bounds) = found.next().unwrap_or_default();
    let further = ('C'..).zip(sides).zip(found).map(|((letter, side), (differences, bounds))| {
        let answer = verdict(letter, &differences);
        FurtherRecord { answer, differences, bounds, side }
    });
    let machine = runs.iter().flatten().next().map(|run| run.environment.clone());
    let mut record = CompareRecord {
        schema: SCHEMA.to_owned(),
        answer: String::new(),
        name: comparison.name.clone(),
        started: timestamp(comparison.started_unix_s),
        started_unix_s: comparison.started_unix_s,
        order: comparison.order.split_whitespace().map(str::to_owned).collect(),
        confidence: CONFIDENCE,
        resamples: if comparison.gate.is_some() { 0 } else { RESAMPLES },
        differences,
        bounds,
        cautions: comparison.cautions.clone(),
        ended_early: comparison.ended_early.clone(),
        before,
        after,
        further: further.collect(),
        protocols: protocols(runs, &responses),
        gate: comparison.gate.clone(),
        environment: machine.or_else(|| Some(EnvironmentRecord::new(&Environment::default()))),
    };
    let failing = LETTERS.chars().zip(runs);
    let failing = failing.filter_map(|(letter, runs)| failing::sentence(letter, runs));
    let answer = comparison.gate.as_ref().map_or_else(|| answer(&record), gate_answer);
    record.answer = failing.chain([answer]).collect::<Vec<_>>().join(" ");
    record
}

fn gate_answer(gate: &GateRecord) -> String {
    gate.sentence.clone()
}

/// Returns the response times of all runs of a side.
fn responses(runs: &[RunRecord]) -> Hist {
    let mut all = Hist::new();
    runs.iter().for_each(|run| all.merge(&run.response()));
    all
}

/// Returns one side; `response`: times of all its runs, `None` without runs.
fn side_of(comparison: &Comparison, side: usize, response: Option<&Hist>) -> SideRecord {
    let runs = comparison.runs.get(side).map_or(&[][..], Vec::as_slice);
    let none = Hist::new();
    SideRecord {
        label: comparison.labels[side].clone(),
        command: comparison.commands.get(side).cloned().flatten(),
        runs: headlines(runs),
        plan: runs.first().map(|run| run.plan.clone()),
        response_histogram: Some(HistogramRecord::new(response.unwrap_or(&none))),
    }
}

/// Returns the difference between the second and the first. `family`: number of comparisons in one
/// result, including this one.
fn differences(
    letter: char,
    figures: &[&RunFigure],
    [before, after]: [&[Headline]; 2],
    interleaved: bool,
    family: usize,
) -> Vec<DifferenceRecord> {
    let blocks = |figure: fn(&Headline) -> f64| {
        let values = |side: &[Headline]| side.iter().map(figure).collect();
        in_blocks(values(before), values(after), interleaved)
    };
    let series: Vec<Series> = figures
        .iter()
        .map(|(_, figure, kind)| Series { scale: scale(*kind), blocks: blocks(*figure) })
        .collect();
    let mut stream = Seed(1).stream(Purpose::Bootstrap, 0);
    let effort = Effort { resamples: RESAMPLES, family };
    let compared = stats::compare::compare(&series, effort, &mut stream);
    let found = figures.iter().zip(compared);
    found.map(|((figure, _, kind), found)| difference(letter, figure, *kind, found)).collect()
}

fn headlines(runs: &[RunRecord]) -> Vec<Headline> {
    runs.iter().flat_map(RunRecord::headlines).collect()
}

pub(super) fn in_blocks(before: Vec<f64>, after: Vec<f64>, interleaved: bool) -> Vec<Block> {
    if !interleaved {
        return vec![Block { before, after }];
    }
    let pairs = before.chunks(OF_A_BLOCK).zip(after.chunks(OF_A_BLOCK));
    pairs.map(|(before, after)| Block { before: before.to_vec(), after: after.to_vec() }).collect()
}

pub(super) fn scale(kind: FigureKind) -> Scale {
    match kind {
        FigureKind::Share => Scale::Points,
        FigureKind::Rate | FigureKind::Time => Scale::Ratio,
    }
}

/// Returns why a figure is not compared; `None` if it is.
fn comparable(figure: &str, runs: &[Vec<RunRecord>]) -> Option<NotCompared> {
    let refuses = |runs: &Vec<RunRecord>| failing::share(runs) > failing::REFUSED_SHARE_MAX;
    if figure == "throughput" && runs.iter().any(refuses) {
        return Some(NotCompared::FailingSide);
    }
    (!enough_calls(figure, runs)).then_some(NotCompared::TooFewCalls)
}

/// Returns whether every run has enough calls beyond a quantile.
fn enough_calls(figure: &str, runs: &[Vec<RunRecord>]) -> bool {
    let Some(percent) = figure.strip_prefix('p').and_then(|text| text.parse::<f64>().ok()) else {
        return true;
    };
    let needed = samples_needed(percent / 100.0);
    let calls = |run: &RunRecord| run.response_time_s.count / run.runs.len().max(1) as u64;
    runs.iter().flatten().all(|run| calls(run) >= needed)
}

pub(super) fn difference(
    letter: char,
    figure: &str,
    kind: FigureKind,
    found: Compared,
) -> DifferenceRecord {
    let rose_is_worse = kind == FigureKind::Time || figure == "failures";
    let judgement = match found {
        Compared { enough: false, .. } => Judgement::TooFew,
        Compared { different: false, .. } => Judgement::NoneShown,
        Compared { change, .. } if (change > 0.0) == rose_is_worse => Judgement::Worse,
        _ => Judgement::Better,
    };
    let mut difference = DifferenceRecord {
        figure: figure.to_owned(),
        before: found.before,
        after: found.after,
        scale: scale(kind),
        change: found.change,
        low: found.low,
        high: found.high,
        noise: found.noise,
        detectable: found.detectable,
        effect: found.effect,
        p_value: found.p_value,
        judgement,
        text: String::new(),
    };
    difference.text = sentence(letter, &difference);
    difference
}

fn verdict_cautions(labels: &[String], headlines: &[Vec<Headline>]) -> Vec<String> {
    let mut cautions = Vec::new();
    for (label, runs) in labels.iter().zip(headlines) {
        for (state, meaning) in [
            (State::Invalid, "their numbers do not describe the server"),
            (State::Degraded, "their numbers are usable with reservations"),
        ] {
            let count = runs.iter().filter(|run| run.state == state).count();
            if count > 0 {
                let (of, id) = (runs.len(), state.id());
                cautions.push(format!("{count} of {of} runs of {label} are {id}: {meaning}."));
            }
        }
    }
    cautions
}

/// Returns why the runs are too few for a decision; `None` if they suffice.
fn too_few(headlines: &[Vec<Headline>], order: &str) -> Option<String> {
    let fewest = headlines.iter().map(Vec::len).min().unwrap_or(0);
    let blocks = order.split_whitespace().count();
    if !order.is_empty() {
        return (blocks < BLOCKS_MIN).then(|| {
            format!(
                "{} cannot show a difference; {BLOCKS_MIN} are needed.",
                counted(blocks as u64, "block")
            )
        });
    }
    (fewest < RUNS_MIN).then(|| {
        format!(
            "Runs of the same server differ from each other, and {} a side do not show by how \
             much; {RUNS_MIN} are needed: record them with --repeat {RUNS_MIN}, or let compare \
             interleave two URLs.",
            counted(fewest as u64, "run")
        )
    })
}
