//! `loadstone.fit/1`: comparison of files, a sequence or a log with a model. Every key is always
//! present; undecided values are null.

use crate::document;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::fileset::fit::{FigureUnit, Fit, FitCheck, FitFigure, FitModel, Plot};

/// The schema that is written, and the only one that is accepted.
pub const SCHEMA: &str = "loadstone.fit/1";

/// Subject of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FitKind {
    Files,
    Sequence,
    Log,
}

/// The result of a comparison with a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct FitRecord {
    pub schema: String,
    /// The folder or file that was read.
    pub of: String,
    pub kind: FitKind,
    /// The model, as typed.
    pub model: String,
    pub seed: u64,
    /// No property differs, and at least one was decided.
    pub fits: bool,
    /// Lines that could not be read.
    pub broken: u64,
    /// One entry for each property.
    pub properties: Vec<PropertyRecord>,
    pub plots: Vec<PlotRecord>,
}

/// A property and its model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct PropertyRecord {
    pub name: String,
    /// Description of the model's law.
    pub law: String,
    /// Number of examined values.
    pub count: u64,
    /// Null if undecided.
    pub fits: Option<bool>,
    /// Reasons, one sentence each.
    pub against: Vec<String>,
    /// Reason why it is undecided.
    pub untold: Option<String>,
    /// Null if the law is not continuous, or values occur more than once.
    pub anderson_darling: Option<SubSamplesRecord>,
    /// λ² of Pederson and Johnson: 0 is the law itself; null with fewer than two bins.
    pub lambda_squared: Option<f64>,
    /// Maximum of λ² for a fit.
    pub lambda_squared_max: f64,
    /// Number of bins.
    pub bins: u64,
    pub figures: Vec<FittedFigure>,
}

/// The test of Anderson and Darling, with all parameters known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SubSamplesRecord {
    /// A² of all values; for many of them it rejects every law.
    pub whole: f64,
    /// Random sub-samples, and values in each.
    pub samples: u64,
    pub size: u64,
    /// Number of sub-samples above the bound of 5 %, 2.492.
    pub rejected: u64,
    /// Number attributable to chance.
    pub rejected_max: u64,
}

/// A figure and the model's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct FittedFigure {
    pub name: String,
    pub found: Option<f64>,
    pub model: f64,
    pub unit: FittedUnit,
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FittedUnit {
    Bytes,
    Seconds,
    Share,
    Number,
}

/// Values at points of an axis, and the model's values at the same points; null without a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct PlotRecord {
    pub id: String,
    pub title: String,
    /// Meaning of the points on the axis.
    pub across: String,
    /// The values on the axis are seconds.
    pub across_seconds: bool,
    /// The values are shares, 0 to 1.
    pub along_share: bool,
    pub at: Vec<f64>,
    pub found: Vec<Option<f64>>,
    pub model: Vec<Option<f64>>,
    pub model_name: String,
}

impl FitRecord {
    /// Builds the record. `of`: the input; `broken`: its unreadable lines.
    pub fn new(of: &str, kind: FitKind, model: &FitModel, broken: u64, fit: &Fit) -> FitRecord {
        let judged: Vec<bool> = fit.checks.iter().filter_map(FitCheck::fits).collect();
        FitRecord {
            schema: SCHEMA.to_owned(),
            of: of.to_owned(),
            kind,
            model: model.spec.to_string(),
            seed: model.seed.0,
            fits: !judged.is_empty() && judged.iter().all(|fits| *fits),
            broken,
            properties: fit.checks.iter().map(PropertyRecord::new).collect(),
            plots: fit.plots.iter().map(PlotRecord::new).collect(),
        }
    }
}

impl PropertyRecord {
    fn new(check: &FitCheck) -> PropertyRecord {
        let tested = check.anderson.map(|test| SubSamplesRecord {
            whole: test.whole,
            samples: test.samples as u64,
            size: test.size as u64,
            rejected: test.rejected as u64,
            rejected_max: workload::fileset::fit::REJECTED_MAX as u64,
        });
        PropertyRecord {
            name: check.name.to_owned(),
            law: check.law.clone(),
            count: check.count,
            fits: check.fits(),
            against: check.against.clone(),
            untold: check.untold.clone(),
            anderson_darling: tested,
            lambda_squared: check.lambda.map(|lambda| lambda.value),
            lambda_squared_max: check.lambda_max,
            bins: check.lambda.map_or(0, |lambda| lambda.bins as u64),
            figures: check.figures.iter().map(FittedFigure::new).collect(),
        }
    }
}

impl FittedFigure {
    fn new(figure: &FitFigure) -> FittedFigure {
        FittedFigure {
            name: figure.name.clone(),
            found: Some(figure.found).filter(|found| found.is_finite()),
            model: figure.model,
            unit: match figure.kind {
                FigureUnit::Bytes => FittedUnit::Bytes,
                FigureUnit::Seconds => FittedUnit::Seconds,
                FigureUnit::Share => FittedUnit::Share,
                FigureUnit::Number => FittedUnit::Number,
            },
        }
    }
}

impl PlotRecord {
    fn new(plot: &Plot) -> PlotRecord {
        PlotRecord {
            id: plot.id.to_owned(),
            title: plot.title.to_owned(),
            across: plot.across.to_owned(),
            across_seconds: plot.across_seconds,
            along_share: plot.along_share,
            at: plot.at.clone(),
            found: plot.found.clone(),
            model: plot.model.clone(),
            model_name: plot.model_name.to_owned(),
        }
    }
}

/// Reads a record from JSON. Keys that a newer version added are ignored.
///
/// # Errors
/// Fails if the text is not JSON, or JSON of another kind; the error has the position and the
/// reason.
pub fn read(text: &str) -> Result<FitRecord, String> {
    document::read(text, SCHEMA, "loadstone workload verify --json")
}
