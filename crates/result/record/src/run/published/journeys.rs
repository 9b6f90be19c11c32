//! Observations of users on their journeys.

use super::times::TimesRecord;
use crate::words::{counted, printable};
use plan::Plan;
use plan::journey::JourneyPlan;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{JourneyTally, Noted, NumberTally, TransactionTally};

/// Characters of an example.
const EXAMPLE_MAX: usize = 300;

/// `journeys` of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct JourneyRecord {
    /// The iterations of each journey, then the blocks of steps.
    pub transactions: Vec<TransactionRecord>,
    /// Steps in the order of the plan; their calls are in per_url.
    pub steps: Vec<JourneyStepRecord>,
    pub captures: Vec<CaptureRecord>,
    pub feeders: Vec<FeederRecord>,
    /// Numbers that captures took from responses.
    #[serde(default)]
    pub metrics: Vec<MetricRecord>,
}

/// Numbers of a metric, in the unit of the responses; quantiles to four digits. Null without any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct MetricRecord {
    pub name: String,
    pub count: u64,
    /// Captured values that are not numbers between ±9,000,000,000,000.
    pub unreadable: u64,
    pub mean: Option<f64>,
    pub min: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    #[serde(rename = "p99.9")]
    pub p99_9: Option<f64>,
    pub max: Option<f64>,
}

impl MetricRecord {
    fn new(name: &str, tally: &NumberTally) -> MetricRecord {
        MetricRecord {
            name: name.to_owned(),
            count: tally.count(),
            unreadable: tally.unreadable,
            mean: tally.mean(),
            min: tally.ends().map(|(low, _)| low),
            p50: tally.quantile(0.5),
            p90: tally.quantile(0.9),
            p95: tally.quantile(0.95),
            p99: tally.quantile(0.99),
            p99_9: tally.quantile(0.999),
            max: tally.ends().map(|(_, high)| high),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct TransactionRecord {
    pub name: String,
    pub succeeded: u64,
    pub failed: u64,
    /// Sums of the response times of its calls.
    pub time_s: TimesRecord,
}

/// Observations of a step in addition to its calls, which are in `per_url`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct JourneyStepRecord {
    pub step: String,
    /// Responses that were not as expected.
    pub differed: NotedRecord,
    /// Times that it was skipped because its request could not be built.
    pub skipped: NotedRecord,
    /// Number of repeated logins for it.
    pub refreshed: u64,
    /// Responses that met the check, which does not affect the calls.
    pub check_met: u64,
    pub check_unmet: NotedRecord,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct CaptureRecord {
    pub step: String,
    pub name: String,
    pub missed: NotedRecord,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct FeederRecord {
    pub name: String,
    /// Users that found no row left.
    pub ran_dry: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct NotedRecord {
    pub count: u64,
    /// The first occurrence.
    pub example: Option<String>,
}

impl NotedRecord {
    fn new(rows: &[Noted], row: usize) -> NotedRecord {
        let noted = rows.get(row).cloned().unwrap_or_default();
        NotedRecord { count: noted.count, example: noted.example.map(|(_, text)| text) }
    }
}

impl JourneyRecord {
    /// Returns whether it has any content.
    pub fn noticed(&self) -> bool {
        let ended = self.transactions.iter().any(|row| row.succeeded + row.failed > 0);
        let measured = self.metrics.iter().any(|metric| metric.count > 0);
        ended || measured || !self.notes().is_empty()
    }

    /// Returns the notable observations, by the name of their step or feeder.
    pub fn notes(&self) -> Vec<(String, String)> {
        let mut notes = Vec::new();
        for capture in &self.captures {
            let why = format!("capture {} found nothing", capture.name);
            notes.extend(noted(&capture.missed, &capture.step, &why));
        }
        for row in &self.steps {
            let step = row.step.as_str();
            notes.extend(noted(&row.differed, step, "not as expected"));
            notes.extend(noted(&row.skipped, step, "skipped"));
            let of = counted(row.check_met + row.check_unmet.count, "response");
            notes.extend(noted(&row.check_unmet, step, &format!("of {of} the check failed")));
            if row.refreshed > 0 {
                notes.push((step.to_owned(), format!("logged in again {}", times(row.refreshed))));
            }
        }
        for metric in self.metrics.iter().filter(|metric| metric.unreadable > 0) {
            let text = format!("{} not a number", counted(metric.unreadable, "value"));
            notes.push((format!("metric {}", metric.name), text));
        }
        for feeder in self.feeders.iter().filter(|feeder| feeder.ran_dry > 0) {
            let text = format!("no row was left for {}", counted(feeder.ran_dry, "user"));
            notes.push((format!("feeder {}", feeder.name), text));
        }
        notes
    }

    /// Returns `None` if the plan has no journeys.
    pub(crate) fn from_plan(plan: &Plan, tally: &JourneyTally) -> Option<JourneyRecord> {
        plan.journeys.as_ref().map(|journeys| JourneyRecord::new(journeys, tally))
    }

    fn new(plan: &JourneyPlan, tally: &JourneyTally) -> JourneyRecord {
        let count = |rows: &[u64], row: usize| rows.get(row).copied().unwrap_or(0);
        let transactions = plan.transactions().into_iter().enumerate();
        let transactions = transactions.map(|(row, name)| {
            let none = TransactionTally::default();
            let counted = tally.transactions.get(row).unwrap_or(&none);
            TransactionRecord {
                name: name.to_owned(),
                succeeded: counted.succeeded,
                failed: counted.failed,
                time_s: TimesRecord::new(&counted.time),
            }
        });
        let steps = plan.steps().into_iter().enumerate();
        let steps = steps.map(|(row, step)| JourneyStepRecord {
            step: step.name.clone(),
            differed: NotedRecord::new(&tally.differed, row),
            skipped: NotedRecord::new(&tally.skipped, row),
            refreshed: count(&tally.refreshed, row),
            check_met: count(&tally.met, row),
            check_unmet: NotedRecord::new(&tally.unmet, row),
        });
        let captures = plan.captures().into_iter().enumerate();
        let captures = captures.map(|(row, (step, name))| CaptureRecord {
            step: step.to_owned(),
            name: name.to_owned(),
            missed: NotedRecord::new(&tally.missed, row),
        });
        let feeders = plan.feeders.iter().enumerate().map(|(row, feeder)| FeederRecord {
            name: feeder.name.clone(),
            ran_dry: count(&tally.dry, row),
        });
        let metrics = plan.metrics().into_iter().enumerate().map(|(row, name)| {
            let none = NumberTally::default();
            MetricRecord::new(name, tally.metrics.get(row).unwrap_or(&none))
        });
        JourneyRecord {
            metrics: metrics.collect(),
            transactions: transactions.collect(),
            steps: steps.collect(),
            captures: captures.collect(),
            feeders: feeders.collect(),
        }
    }
}

fn noted(noted: &NotedRecord, step: &str, why: &str) -> Option<(String, String)> {
    let example = noted.example.as_ref().map(|text| printable(text, EXAMPLE_MAX));
    let example = example.map_or(String::new(), |text| format!(": {text}"));
    let text = || (step.to_owned(), format!("{why} {}{example}", times(noted.count)));
    (noted.count > 0).then(text)
}

fn times(count: u64) -> String {
    counted(count, "time")
}
