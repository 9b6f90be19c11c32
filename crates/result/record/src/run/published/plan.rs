//! The plan of a run, in its published and its working form.

use crate::run::Headline;
use plan::{Load, Plan, Secrets};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// A plan, written as the tables of its file, secrets masked.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[serde(try_from = "Value")]
#[cfg_attr(any(test, feature = "schema"), schemars(with = "Value"))]
pub struct PlanRecord {
    plan: Plan,
    /// Printed form.
    toml: String,
}

impl PartialEq for PlanRecord {
    fn eq(&self, other: &PlanRecord) -> bool {
        self.toml == other.toml
    }
}

impl PlanRecord {
    /// Returns the record of a plan.
    /// `toml`: the plan with every secret masked.
    pub fn new(plan: &Plan, toml: &str) -> PlanRecord {
        PlanRecord { plan: plan.clone(), toml: toml.to_owned() }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the plan as TOML, with masked secrets.
    pub fn toml(&self) -> &str {
        &self.toml
    }
}

/// Returns the plan's tables as objects; text that is not TOML stays text.
fn tables(toml: &str) -> Value {
    toml::from_str(toml).unwrap_or_else(|_| Value::String(toml.to_owned()))
}

impl Serialize for PlanRecord {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        tables(&self.toml).serialize(to)
    }
}

impl TryFrom<Value> for PlanRecord {
    type Error = String;

    fn try_from(read: Value) -> Result<PlanRecord, String> {
        let wrong = |why: String| format!("a plan that cannot be read: {why}");
        let toml = toml::Value::try_from(&read).map_err(|error| wrong(error.to_string()))?;
        let toml = toml::to_string(&toml).map_err(|error| wrong(error.to_string()))?;
        let plan = plan::from_masked_toml(&toml).map_err(|error| wrong(error.0))?;
        // an earlier version's plan lacks keys that are known today: it stays unchanged
        let today = plan::to_toml(&plan, Secrets::Masked);
        let toml = if tables(&today) == read { today } else { toml };
        Ok(PlanRecord { plan, toml })
    }
}

impl super::RunRecord {
    /// Returns the headline of one of several runs, or of repeats together.
    pub fn headline(&self) -> Headline {
        let times = &self.response_time_s;
        Headline {
            state: self.verdict.state,
            throughput_per_s: self.throughput_per_s,
            goodput_per_s: self.goodput_per_s,
            failure_share: self.failure_share,
            mean_s: times.mean,
            p50_s: times.p50,
            p90_s: times.p90,
            p99_s: times.p99,
            p99_9_s: times.p99_9,
            max_s: times.max,
            conforming: self.conforming_connections.count,
        }
    }

    /// Returns every run separately: repeats are several.
    pub fn headlines(&self) -> Vec<Headline> {
        if self.runs.is_empty() { vec![self.headline()] } else { self.runs.clone() }
    }

    /// Returns the calls per second that the plan intends at the start and at the end of the
    /// window. `None` without such an intention, for sessions, several loads or a nonlinear rate,
    /// and for consecutive runs that each ramp.
    pub fn intended_rates(&self) -> Option<(f64, f64)> {
        let plan = &self.plan.plan;
        let Load::Open { arrivals, session: None, .. } = &plan.load else { return None };
        if plan.stages.is_some() || !plan.scenarios.is_empty() {
            return None;
        }
        let steady = arrivals.from == arrivals.to;
        (steady || self.runs.is_empty()).then_some((arrivals.from.0, arrivals.to.0))
    }
}
