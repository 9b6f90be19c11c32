//! Counts and times: outcomes, histograms, quantiles, comparisons of runs.

use crate::finished::{RunReport, SloResult, in_window};
use crate::ids;
use sample::{Blame, FailureClass};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::interval::Method;
use stats::{
    Blocks, Counts, Doubt, Estimate, Hist, Metric, Snapshot, interval, quantile_interval,
    samples_needed, webmark,
};
use std::collections::BTreeMap;
use units::Nanos;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct OutcomesRecord {
    pub due: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub dropped: u64,
    pub abandoned: u64,
    /// Arrivals of a lost machine of a fleet, with unknown outcome. Omitted if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl OutcomesRecord {
    pub(crate) fn new(counts: &Counts) -> OutcomesRecord {
        OutcomesRecord {
            due: counts.due,
            succeeded: counts.succeeded,
            failed: counts.failed,
            timed_out: counts.timed_out,
            dropped: counts.dropped,
            abandoned: counts.abandoned,
            lost: counts.lost,
        }
    }

    /// Returns the number of calls with a known outcome, except dropped and abandoned ones.
    pub fn done(&self) -> u64 {
        self.succeeded + self.failed + self.timed_out
    }

    /// Returns the number of failed, timed-out and dropped calls.
    pub fn bad(&self) -> u64 {
        self.failed + self.timed_out + self.dropped
    }
}
/// The usual figures of a histogram, in seconds; zeros when nothing was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct TimesRecord {
    /// Samples.
    pub count: u64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub mean: f64,
    /// Population standard deviation.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub stdev: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub min: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p50: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p75: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p90: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p95: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p99: f64,
    #[serde(rename = "p99.9")]
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p99_9: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub max: f64,
}

impl TimesRecord {
    pub(crate) fn new(hist: &Hist) -> TimesRecord {
        let summary = hist.summary();
        TimesRecord {
            count: summary.count,
            mean: summary.mean.as_secs_f64(),
            stdev: summary.stdev.as_secs_f64(),
            min: summary.min.as_secs_f64(),
            p50: summary.p50.as_secs_f64(),
            p75: summary.p75.as_secs_f64(),
            p90: summary.p90.as_secs_f64(),
            p95: summary.p95.as_secs_f64(),
            p99: summary.p99.as_secs_f64(),
            p99_9: summary.p99_9.as_secs_f64(),
            max: summary.max.as_secs_f64(),
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct TimesByOutcome {
    pub succeeded: TimesRecord,
    pub failed: TimesRecord,
    pub timed_out: TimesRecord,
}

impl TimesByOutcome {
    pub(crate) fn new(total: &Snapshot) -> TimesByOutcome {
        TimesByOutcome {
            succeeded: TimesRecord::new(&total.succeeded),
            failed: TimesRecord::new(&total.failed),
            timed_out: TimesRecord::new(&total.timed_out),
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct PhasesRecord {
    pub dns: TimesRecord,
    pub connect: TimesRecord,
    pub tls: TimesRecord,
    pub first_byte: TimesRecord,
    pub transfer: TimesRecord,
}

impl PhasesRecord {
    pub(crate) fn new(total: &Snapshot, dns: &Hist) -> PhasesRecord {
        PhasesRecord {
            dns: TimesRecord::new(dns),
            connect: TimesRecord::new(&total.connect),
            tls: TimesRecord::new(&total.tls),
            first_byte: TimesRecord::new(&total.first_byte),
            transfer: TimesRecord::new(&total.transfer),
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct FailureRecord {
    #[serde(with = "ids::failure_class")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "ids::failure_class::schema")
    )]
    pub class: FailureClass,
    #[serde(with = "ids::blame")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::blame::schema"))]
    pub blame: Blame,
    pub count: u64,
    /// Meaning of the class.
    pub text: String,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct UrlRecord {
    /// Row of the target list, from 0; with --fold, row of the folded list.
    pub target: usize,
    /// Name: the step of a journey.
    #[serde(default)]
    pub name: Option<String>,
    /// The URL, or the pattern of --fold.
    pub url: String,
    /// Tags of the step, by name.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Number of URLs that --fold combined here; 0: the row belongs to one URL.
    #[serde(default)]
    pub folded: u64,
    pub count: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub body_bytes: u64,
    pub response_time_s: TimesRecord,
    /// Mean response time in each of up to 48 parts of the window, of equal length except the last;
    /// null without a call. Absent for rows after the first 50, and with repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time_s: Vec<Option<f64>>,
}

/// The calls of all steps with a tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct TagRecord {
    /// `name=value`.
    pub tag: String,
    /// Rows of the target list.
    pub targets: Vec<u32>,
    pub count: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub body_bytes: u64,
    pub response_time_s: TimesRecord,
}

/// A kind of clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ClientsRecord {
    /// The path's profile, or the name given to it.
    pub name: String,
    /// Clients of this kind, each with its own address and path.
    pub clients: u32,
    pub count: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub body_bytes: u64,
    pub response_time_s: TimesRecord,
}

impl UrlRecord {
    /// Returns the column heading.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.url)
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct QuantileRecord {
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub quantile: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub response_time_s: f64,
    /// The same without the client's own lateness.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub response_time_without_lag_s: Option<f64>,
    /// 95 % interval, corrected for dependent calls; for an objective on this quantile, the
    /// objective's interval. Null if there are too few calls for this end.
    pub low_s: Option<f64>,
    pub high_s: Option<f64>,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub service_time_s: f64,
    pub samples_needed: u64,
    pub enough_samples: bool,
}

impl QuantileRecord {
    /// Returns the quantiles that the plan lists. `response`: the headline's times.
    pub(crate) fn all(report: &RunReport, response: &Hist) -> Vec<QuantileRecord> {
        let total = &report.measurement.total;
        let doubt = Doubt::new(total);
        let mut blocks = Blocks::default();
        in_window(&report.measurement).for_each(|row| blocks.push(row.spread.block()));
        let of_objective = |quantile: f64| {
            let same = |slo: &&SloResult| {
                slo.objective.of.is_none() && slo.objective.metric == Metric::Response(quantile)
            };
            report.slo.iter().find(same).and_then(|slo| slo.interval)
        };
        let row = |&quantile: &f64| {
            let own = || quantile_interval(response, quantile, &blocks);
            let interval = of_objective(quantile).or_else(own);
            let lowest = doubt.as_ref().map(|doubt| doubt.lowest_at(quantile));
            let needed = samples_needed(quantile);
            QuantileRecord {
                quantile,
                response_time_s: response.quantile(quantile).as_secs_f64(),
                response_time_without_lag_s: lowest.map(Nanos::as_secs_f64),
                low_s: interval.map(|found| found.low).filter(|low| *low > 0.0),
                high_s: interval.map(|found| found.high).filter(|high| high.is_finite()),
                service_time_s: total.service.quantile(quantile).as_secs_f64(),
                samples_needed: needed,
                enough_samples: response.count() >= needed,
            }
        };
        let wanted = report.plan.measure.quantiles.iter();
        wanted.filter(|quantile| quantile.is_finite()).map(row).collect()
    }
}

/// A mean across runs with its 95 % interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct EstimateRecord {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    pub runs: usize,
    pub confidence: f64,
    #[serde(with = "ids::method")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::method::schema"))]
    pub method: Method,
}

impl EstimateRecord {
    pub(crate) fn new(estimate: &Estimate) -> EstimateRecord {
        EstimateRecord {
            mean: estimate.value,
            low: estimate.low,
            high: estimate.high,
            runs: estimate.count,
            confidence: interval::CONFIDENCE,
            method: estimate.method,
        }
    }
}
/// The pieces of T = w·S + mean R.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct WeightedRecord {
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub w: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub setup_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub exchange_s: f64,
}

impl WeightedRecord {
    pub(crate) fn new(weighted: webmark::Weighted) -> WeightedRecord {
        WeightedRecord {
            w: weighted.weight,
            setup_s: weighted.setup_s,
            exchange_s: weighted.exchange_s,
        }
    }
}
