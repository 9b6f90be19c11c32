//! From a record back to a comparison.

use super::published::{BoundRecord, CompareRecord, DifferenceRecord, FurtherRecord, SideRecord};
use super::{BoundResult, CompareReport, Difference, FurtherSide};
use crate::run::{HistogramRecord, RunReport};
use sample::Environment;
use stats::compare::Scale;
use stats::{Measurement, Verdict};

impl CompareRecord {
    /// A comparison that says the same, fit for every form of a report: all runs of a side are one
    /// that was repeated.
    ///
    /// # Errors
    /// A record of a version that did not keep what was measured, or whose parts do not fit together:
    /// a sentence that goes on from the file's name.
    pub fn report(&self) -> Result<CompareReport, String> {
        let environment = self.environment.as_ref().ok_or(
            "has no key \"environment\", without which it cannot be rendered again: it was written \
             by an earlier version; name the result in the store, or write the JSON anew",
        )?;
        let environment = environment.facts();
        let sides = || {
            let further = self.further.iter().map(|one| &one.side);
            [&self.before, &self.after].into_iter().chain(further)
        };
        let runs = |side: &SideRecord| side.runs(&environment, self.started_unix_s);
        Ok(CompareReport {
            name: self.name.clone(),
            labels: sides().map(|side| side.label.clone()).collect(),
            commands: sides().map(|side| side.command.clone()).collect(),
            started_unix_s: self.started_unix_s,
            runs: sides().map(runs).collect(),
            order: self.order.join(" "),
            confidence: self.confidence,
            resamples: self.resamples,
            differences: self.differences.iter().map(DifferenceRecord::difference).collect(),
            bounds: self.bounds.iter().map(BoundRecord::result).collect(),
            further: self.further.iter().map(FurtherRecord::further).collect(),
            protocols: self.protocols.clone(),
            cautions: self.cautions.clone(),
            ended_early: self.ended_early.clone(),
        })
    }
}

impl FurtherRecord {
    fn further(&self) -> FurtherSide {
        FurtherSide {
            differences: self.differences.iter().map(DifferenceRecord::difference).collect(),
            bounds: self.bounds.iter().map(BoundRecord::result).collect(),
        }
    }
}

impl SideRecord {
    fn runs(&self, environment: &Environment, started_unix_s: f64) -> Vec<RunReport> {
        let Some(plan) = self.plan.as_ref() else { return Vec::new() };
        let response = self.response_histogram.as_ref().map(HistogramRecord::hist);
        let mut measurement = Measurement::default();
        measurement.total.succeeded = response.unwrap_or_default();
        vec![RunReport {
            name: self.label.clone(),
            plan: plan.plan().clone(),
            plan_toml: plan.toml().to_owned(),
            started_unix_s,
            environment: environment.clone(),
            measurement,
            verdict: Verdict::default(),
            driver: crate::run::Driver::default(),
            resolved: Vec::new(),
            first_call: None,
            runs: self.runs.clone(),
            slo: Vec::new(),
            findings: Vec::new(),
            sut: None,
            path: None,
            stack: None,
            held: None,
            posts: None,
            fleet: None,
        }]
    }
}

impl DifferenceRecord {
    fn difference(&self) -> Difference {
        let number = |figure: Option<f64>| figure.unwrap_or(f64::NAN);
        Difference {
            figure: self.figure.clone(),
            before: number(self.before),
            after: number(self.after),
            relative: number(self.change),
            low: number(self.low),
            high: number(self.high),
            points: self.scale == Scale::Points,
            noise: number(self.noise),
            detectable: number(self.detectable),
            effect: number(self.effect),
            p_value: number(self.p_value),
            judgement: self.judgement,
        }
    }
}

impl BoundRecord {
    fn result(&self) -> BoundResult {
        BoundResult { text: self.text.clone(), crossed: self.crossed, why: self.why.clone() }
    }
}
