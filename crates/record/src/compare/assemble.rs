//! From runs to differences.

use super::{CompareReport, Difference, FailIf, FurtherSide, Judgement, protocols};
use crate::figures::{FigureKind, RUN_FIGURES, RunFigure};
use crate::run::{Headline, RunReport};
use crate::words::counted;
use stats::compare::{BLOCKS_MIN, Block, Compared, Effort, RUNS_MIN, Scale, Series};
use stats::interval::CONFIDENCE;
use stats::{State, samples_needed};
use units::{Purpose, Seed};

/// Resamples behind each interval.
const RESAMPLES: u32 = 10_000;

/// Runs of either side in one block.
const OF_A_BLOCK: usize = 2;

/// Two sets of runs to be compared, or more of which each is held against the first.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    pub name: String,
    pub labels: Vec<String>,
    /// As [`CompareReport::commands`].
    pub commands: Vec<Option<String>>,
    /// In seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// As [`CompareReport::runs`]; with an order, two of each side for every block.
    pub runs: Vec<Vec<RunReport>>,
    /// As [`CompareReport::order`].
    pub order: String,
    pub bounds: Vec<FailIf>,
    /// What is known against it beforehand.
    pub cautions: Vec<String>,
    /// As [`CompareReport::ended_early`].
    pub ended_early: Option<String>,
}

/// Compares. Quantiles for which a run has too few calls are left out.
pub fn assemble(comparison: Comparison) -> CompareReport {
    let Comparison { runs, order, bounds, mut cautions, .. } = comparison;
    let headlines: Vec<Vec<Headline>> = runs.iter().map(|runs| headlines(runs)).collect();
    let figures: Vec<&RunFigure> =
        RUN_FIGURES.iter().filter(|figure| enough_calls(figure.0, &runs)).collect();
    let mut found = (1..headlines.len()).map(|side| {
        let pair = [&headlines[0], &headlines[side]].map(Vec::as_slice);
        let family = headlines.len() - 1;
        let differences = differences(&figures, pair, !order.is_empty(), family);
        let bounds = bounds.iter().map(|bound| bound.judge(&differences)).collect();
        FurtherSide { differences, bounds }
    });
    let FurtherSide { differences, bounds } = found.next().unwrap_or_default();
    let further = found.collect();
    cautions.extend(verdict_cautions(&comparison.labels, &headlines));
    cautions.extend(too_few(&headlines, &order));
    CompareReport {
        name: comparison.name,
        labels: comparison.labels,
        commands: comparison.commands,
        started_unix_s: comparison.started_unix_s,
        protocols: protocols(&runs),
        runs,
        order,
        confidence: CONFIDENCE,
        resamples: RESAMPLES,
        differences,
        bounds,
        further,
        cautions,
        ended_early: comparison.ended_early,
    }
}

/// Of the second to the first. `family`: comparisons that one result makes, this one among them.
fn differences(
    figures: &[&RunFigure],
    [before, after]: [&[Headline]; 2],
    interleaved: bool,
    family: usize,
) -> Vec<Difference> {
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
    found.map(|((figure, _, kind), found)| difference(figure, *kind, found)).collect()
}

/// Every run of its own: repeats are several.
pub fn headlines(runs: &[RunReport]) -> Vec<Headline> {
    let of = |run: &RunReport| match run.runs.is_empty() {
        true => vec![Headline::of(&run.measurement, run.verdict.state)],
        false => run.runs.clone(),
    };
    runs.iter().flat_map(of).collect()
}

fn in_blocks(before: Vec<f64>, after: Vec<f64>, interleaved: bool) -> Vec<Block> {
    if !interleaved {
        return vec![Block { before, after }];
    }
    let pairs = before.chunks(OF_A_BLOCK).zip(after.chunks(OF_A_BLOCK));
    pairs.map(|(before, after)| Block { before: before.to_vec(), after: after.to_vec() }).collect()
}

fn scale(kind: FigureKind) -> Scale {
    match kind {
        FigureKind::Share => Scale::Points,
        FigureKind::Rate | FigureKind::Time => Scale::Ratio,
    }
}

/// A quantile needs calls beyond it in every run.
fn enough_calls(figure: &str, runs: &[Vec<RunReport>]) -> bool {
    let Some(percent) = figure.strip_prefix('p').and_then(|text| text.parse::<f64>().ok()) else {
        return true;
    };
    let needed = samples_needed(percent / 100.0);
    let calls =
        |run: &RunReport| run.measurement.total.response().count() / run.runs.len().max(1) as u64;
    runs.iter().flatten().all(|run| calls(run) >= needed)
}

fn difference(figure: &str, kind: FigureKind, found: Compared) -> Difference {
    let rose_is_worse = kind == FigureKind::Time || figure == "failures";
    let judgement = match found {
        Compared { enough: false, .. } => Judgement::TooFew,
        Compared { different: false, .. } => Judgement::NoneShown,
        Compared { change, .. } if (change > 0.0) == rose_is_worse => Judgement::Worse,
        _ => Judgement::Better,
    };
    Difference {
        figure: figure.to_owned(),
        before: found.before,
        after: found.after,
        relative: found.change,
        low: found.low,
        high: found.high,
        points: kind == FigureKind::Share,
        noise: found.noise,
        detectable: found.detectable,
        effect: found.effect,
        p_value: found.p_value,
        judgement,
    }
}

fn verdict_cautions(labels: &[String], headlines: &[Vec<Headline>]) -> Vec<String> {
    let mut cautions = Vec::new();
    for (label, runs) in labels.iter().zip(headlines) {
        for (state, meaning) in [
            (State::Invalid, "their numbers do not describe the server"),
            (State::Degraded, "their numbers stand with reservations"),
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

/// Why nothing can be said, where nothing can.
fn too_few(headlines: &[Vec<Headline>], order: &str) -> Option<String> {
    let fewest = headlines.iter().map(Vec::len).min().unwrap_or(0);
    let blocks = order.split_whitespace().count();
    if !order.is_empty() {
        return (blocks < BLOCKS_MIN).then(|| {
            format!(
                "{} cannot show a difference; it takes {BLOCKS_MIN}.",
                counted(blocks as u64, "block")
            )
        });
    }
    (fewest < RUNS_MIN).then(|| {
        format!(
            "Runs of the same server differ from each other, and {} a side cannot tell by how much; \
             it takes {RUNS_MIN}: record them with --repeat {RUNS_MIN}, or let compare interleave \
             two URLs.",
            counted(fewest as u64, "run")
        )
    })
}
