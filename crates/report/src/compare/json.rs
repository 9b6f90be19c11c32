//! `loadstone.compare/1`. Every key is always there; times are in seconds, rates per second, shares
//! 0..=1; a figure that cannot be had is null.

use super::{CompareReport, text};
use crate::Headline;
use crate::json::parts::Run;
use crate::words;
use record::compare::headlines;
use serde::Serialize;

/// The comparison as JSON, indented, with a line feed at its end.
pub fn json(report: &CompareReport) -> String {
    let side = |side: usize| Side {
        label: &report.labels[side],
        command: report.commands[side].as_deref(),
        plan: report.runs[side].first().map(|run| crate::json::plan_value(&run.plan_toml)),
        runs: headlines(&report.runs[side]).iter().map(Run::of as fn(&Headline) -> Run).collect(),
    };
    let document = Document {
        schema: "loadstone.compare/1",
        answer: text::answer(report),
        name: &report.name,
        started: words::timestamp(report.started_unix_s),
        started_unix_s: report.started_unix_s,
        order: report.order.split_whitespace().collect(),
        confidence: report.confidence,
        resamples: report.resamples,
        differences: report.differences.iter().map(Difference::of).collect(),
        bounds: report.bounds.iter().map(Bound::of).collect(),
        cautions: &report.cautions,
        ended_early: report.ended_early.as_deref(),
        before: side(0),
        after: side(1),
    };
    crate::json::printed(&document)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    answer: String,
    name: &'a str,
    started: String,
    started_unix_s: f64,
    order: Vec<&'a str>,
    confidence: f64,
    resamples: u32,
    differences: Vec<Difference<'a>>,
    bounds: Vec<Bound<'a>>,
    cautions: &'a [String],
    ended_early: Option<&'a str>,
    before: Side<'a>,
    after: Side<'a>,
}

#[derive(Serialize)]
struct Side<'a> {
    label: &'a str,
    command: Option<&'a str>,
    runs: Vec<Run>,
    plan: Option<serde_json::Value>,
}

#[derive(Serialize)]
struct Difference<'a> {
    figure: &'a str,
    before: Option<f64>,
    after: Option<f64>,
    scale: &'static str,
    change: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    noise: Option<f64>,
    detectable: Option<f64>,
    effect: Option<f64>,
    p_value: Option<f64>,
    judgement: &'static str,
    text: String,
}

impl Difference<'_> {
    fn of(one: &super::Difference) -> Difference<'_> {
        let known = |value: f64| value.is_finite().then_some(value);
        Difference {
            figure: &one.figure,
            before: known(one.before),
            after: known(one.after),
            scale: if one.points { "points" } else { "ratio" },
            change: known(one.relative),
            low: known(one.low),
            high: known(one.high),
            noise: known(one.noise),
            detectable: known(one.detectable),
            effect: known(one.effect),
            p_value: known(one.p_value),
            judgement: one.judgement.id(),
            text: text::sentence(one),
        }
    }
}

#[derive(Serialize)]
struct Bound<'a> {
    text: &'a str,
    crossed: bool,
    why: &'a str,
}

impl Bound<'_> {
    fn of(one: &super::BoundResult) -> Bound<'_> {
        Bound { text: &one.text, crossed: one.crossed, why: &one.why }
    }
}
