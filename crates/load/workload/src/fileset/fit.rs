//! Compares files and requests with a model: file sets on a disk, generated sequences, and server
//! logs.
//!
//! For each property the figures are listed with the model's, and a rule with a named bound decides
//! whether it fits. The bounds were chosen for this program: the papers compare models and set no
//! bounds.

mod files;
mod requests;

pub use files::fit_files;
pub use requests::{Requests, fit_requests};

use crate::fileset::{Law, Matching, SequenceError, Spec};
use stats::fit::{self, Lambda};
use units::{Purpose, Seed};

/// Subject of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitModel {
    pub spec: Spec,
    /// Seed of the model's sizes and order.
    pub seed: Seed,
    pub matching: Matching,
    /// Number of requests for SURGE's most popular file.
    pub top: u64,
}

/// Compared properties.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fit {
    pub checks: Vec<FitCheck>,
    pub plots: Vec<Plot>,
    /// Reason why there are no requests of the model to compare with.
    pub no_reference: Option<SequenceError>,
}

/// One property.
#[derive(Clone, Debug, PartialEq)]
pub struct FitCheck {
    pub name: &'static str,
    /// Description of the model's law.
    pub law: String,
    /// Number of compared values.
    pub count: u64,
    pub anderson: Option<SubSamples>,
    pub lambda: Option<Lambda>,
    /// Bound of λ².
    pub lambda_max: f64,
    pub figures: Vec<FitFigure>,
    /// Reasons why it does not fit, one sentence each; empty if it fits.
    pub against: Vec<String>,
    /// The reason why it is undecided.
    pub untold: Option<String>,
}

/// A figure and the model's.
#[derive(Clone, Debug, PartialEq)]
pub struct FitFigure {
    pub name: String,
    pub found: f64,
    pub model: f64,
    pub kind: FigureUnit,
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    Bytes,
    Seconds,
    Share,
    Number,
}

/// Anderson-Darling test on random sub-samples: on a whole file it rejects every law, because no
/// file follows a law exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubSamples {
    /// A² of all values.
    pub whole: f64,
    /// Sub-samples, and values in each.
    pub samples: usize,
    pub size: usize,
    /// Number of sub-samples above the bound of 5 %.
    pub rejected: usize,
}

/// Values at some places, with the model's values there.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    pub id: &'static str,
    pub title: &'static str,
    pub across: &'static str,
    pub across_seconds: bool,
    pub along_share: bool,
    pub at: Vec<f64>,
    pub found: Vec<Option<f64>>,
    pub model: Vec<Option<f64>>,
    pub model_name: &'static str,
}

/// Bound of λ²: above it is another law, with relative differences of 22 % in the mean square.
pub const LAMBDA_MAX: f64 = 0.05;
/// Bound of λ² for counts by rank: a truncated sequence has less at the end.
pub const RANKS_LAMBDA_MAX: f64 = 0.1;
/// Sub-samples of the test, values in each, and the number that may be above the bound of 5 %: of
/// 100 samples of the law itself more are, once in a thousand times (a binomial).
const SAMPLES: usize = 100;
const SAMPLE_SIZE: usize = 100;
pub const REJECTED_MAX: usize = 12;
/// Number of places of a plot.
const PLACES: usize = 100;

impl FitCheck {
    fn new(name: &'static str, law: impl Into<String>, count: usize) -> FitCheck {
        FitCheck {
            name,
            law: law.into(),
            count: count as u64,
            anderson: None,
            lambda: None,
            lambda_max: LAMBDA_MAX,
            figures: Vec::new(),
            against: Vec::new(),
            untold: None,
        }
    }

    /// Returns whether the property fits; `None` if undecided.
    pub fn fits(&self) -> Option<bool> {
        self.untold.is_none().then_some(self.against.is_empty())
    }

    fn undecided_because(self, why: impl Into<String>) -> FitCheck {
        FitCheck { untold: Some(why.into()), ..self }
    }

    fn figure(&mut self, name: impl Into<String>, found: f64, model: f64, kind: FigureUnit) {
        self.figures.push(FitFigure { name: name.into(), found, model, kind });
    }

    /// Compares values of a continuous law, in ascending order, by sub-samples and by bins of their
    /// logarithms.
    fn follow(&mut self, values: &[f64], law: &Law, seed: Seed) {
        self.anderson = sub_samples(values, law, seed);
        if let Some(test) = self.anderson
            && test.rejected > REJECTED_MAX
        {
            let (rejected, samples) = (test.rejected, test.samples);
            self.against.push(format!(
                "Anderson-Darling rejects {rejected} of {samples} sub-samples at 5 % \
                 (by chance, at most {REJECTED_MAX})"
            ));
        }
        self.bins_of_logarithms(values, |x| law.cdf(x));
    }

    /// Returns λ² of values, ascending and above zero, in bins of their logarithms by Scott's rule.
    /// `below`: the model's share at or below a value.
    fn bins_of_logarithms(&mut self, values: &[f64], below: impl Fn(f64) -> f64) {
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let (Some(width), [first, .., last]) = (fit::scott_width(&logs), &logs[..]) else { return };
        let bins = (((last - first) / width).ceil() as usize).clamp(1, 10_000);
        let mut counts = vec![0_u64; bins];
        for log in &logs {
            counts[(((log - first) / width) as usize).min(bins - 1)] += 1;
        }
        // values of the model beyond the outermost bins belong to these bins
        let edge = |bin: usize| match bin {
            0 => 0.0,
            bin if bin == bins => 1.0,
            bin => below((first + bin as f64 * width).exp()),
        };
        let shares: Vec<f64> = (0..bins).map(|bin| edge(bin + 1) - edge(bin)).collect();
        self.bins(&counts, &shares);
    }

    fn bins(&mut self, counts: &[u64], shares: &[f64]) {
        self.lambda = fit::lambda_squared(counts, shares, 0);
        if let Some(lambda) = self.lambda
            && lambda.value > self.lambda_max
        {
            let (found, most) = (lambda.value, self.lambda_max);
            self.against.push(format!("λ² is {found:.3}, above {most}"));
        }
    }

    /// Adds a figure, and checks that it lies within `1/factor` and `factor` times the model's.
    fn within(&mut self, name: &str, found: f64, model: f64, factor: f64, kind: FigureUnit) {
        self.figure(name, found, model, kind);
        let ratio = found / model;
        // without a ratio the figure is out of bounds too
        if !(1.0 / factor..=factor).contains(&ratio) {
            self.against.push(format!(
                "{name} is {ratio:.2} times the model's (the bound is a factor of {factor} either way)"
            ));
        }
    }
}

/// Tests sub-samples of ascending `values`. `None` if there are fewer values than two sub-samples
/// need.
fn sub_samples(values: &[f64], law: &Law, seed: Seed) -> Option<SubSamples> {
    if values.len() < 2 * SAMPLE_SIZE {
        return None;
    }
    let below: Vec<f64> = values.iter().map(|value| law.cdf(*value)).collect();
    let whole = fit::anderson_darling(&below)?;
    let rejected = (0..SAMPLES).filter(|sample| {
        let mut stream = seed.stream(Purpose::Bootstrap, *sample as u64);
        let draw = |_| below[stream.below(below.len() as u64) as usize];
        let mut drawn: Vec<f64> = (0..SAMPLE_SIZE).map(draw).collect();
        drawn.sort_by(f64::total_cmp);
        fit::anderson_darling(&drawn).is_some_and(|found| found > fit::ANDERSON_DARLING_5)
    });
    let rejected = rejected.count();
    Some(SubSamples { whole, samples: SAMPLES, size: SAMPLE_SIZE, rejected })
}

/// Returns the quantile at this share; `sorted` is not empty.
fn at<T: Copy>(sorted: &[T], share: f64) -> T {
    let row = (sorted.len() as f64 * share).ceil() as usize;
    sorted[row.saturating_sub(1).min(sorted.len() - 1)]
}

/// Returns points from `low` to `high`, with a constant factor between them.
fn places(low: f64, high: f64) -> Vec<f64> {
    let (low, high) = (low.max(f64::MIN_POSITIVE), high.max(low * 1.000_001));
    let step = (high / low).ln() / (PLACES - 1) as f64;
    (0..PLACES).map(|place| low * (step * place as f64).exp()).collect()
}

/// Returns the share of ascending values above each place.
fn above(sorted: &[f64], places: &[f64]) -> Vec<Option<f64>> {
    let share = |place: &f64| {
        let above = sorted.len() - sorted.partition_point(|value| value <= place);
        (above > 0).then_some(above as f64 / sorted.len() as f64)
    };
    places.iter().map(share).collect()
}

/// Returns the log-log plot of P(X > x), in which a Pareto tail is a line of slope −a.
fn llcd(
    id: &'static str,
    title: &'static str,
    across: &'static str,
    sorted: &[f64],
    law: impl Fn(f64) -> f64,
) -> Option<Plot> {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return None };
    let places = places(first.max(1e-3), *last);
    // below the share of a single value, the model's share has nothing to be compared with
    let least = 0.5 / sorted.len() as f64;
    let model = |place: &f64| Some(1.0 - law(*place)).filter(|share| *share > least);
    Some(Plot {
        id,
        title,
        across,
        across_seconds: across == "seconds",
        along_share: true,
        found: above(sorted, &places),
        model: places.iter().map(model).collect(),
        at: places,
        model_name: "model",
    })
}

#[cfg(test)]
mod tests;
