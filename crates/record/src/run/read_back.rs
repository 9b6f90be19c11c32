//! From a record back to the run that it was made of.

use super::published::{
    ClientRecord, EnvironmentRecord, FindingRecord, FirstCallRecord, FleetRecord, HeadlineRecord,
    HeldRecord, PathRecord, ResolvedRecord, RunRecord, SloRecord, Specweb99Record, StackRecord,
    SutRecord, VerdictRecord, plan_value,
};
use super::{Driver, DummyRun, Finding, FirstCall, Headline, Resolved, RunReport, SloResult};
use plan::{Plan, Secrets};
use sample::{Environment, SutRow, SutSeries};
use stats::{Cause, Objective, Verdict};
use units::Nanos;

impl RunRecord {
    /// The run that this record was made of, fit for every form of a report.
    ///
    /// # Errors
    /// A record of a version that did not keep what was measured, or whose parts do not fit together:
    /// a sentence that goes on from the file's name.
    pub fn report(&self) -> Result<RunReport, String> {
        let (mut plan, plan_toml) = plan_of(&self.plan)?;
        // which quantiles are shown is settled when the run is, and not in the plan as it was given
        plan.measure.quantiles = self.quantiles.iter().map(|row| row.quantile).collect();
        Ok(RunReport {
            name: self.name.clone(),
            plan,
            plan_toml,
            started_unix_s: self.started_unix_s,
            environment: self.environment.facts(),
            measurement: self.measurement()?,
            verdict: self.verdict.verdict(),
            driver: self.client.driver(),
            resolved: self.resolved.iter().map(ResolvedRecord::lookup).collect::<Result<_, _>>()?,
            first_call: self.first_call.as_ref().map(FirstCallRecord::call),
            runs: self.runs.iter().map(HeadlineRecord::headline).collect(),
            slo: self.slo.iter().map(SloRecord::result).collect::<Result<_, _>>()?,
            findings: self.findings.iter().map(FindingRecord::finding).collect(),
            sut: self.sut.as_ref().map(SutRecord::series),
            path: self.path.as_ref().map(PathRecord::facts),
            stack: self.stack.as_ref().map(StackRecord::facts),
            held: self.held.as_ref().map(HeldRecord::facts),
            posts: self.bodies.specweb99.as_ref().and_then(Specweb99Record::post_facts),
            fleet: self.fleet.as_ref().map(FleetRecord::facts),
        })
    }
}

/// A plan from its tables, and it as TOML.
pub(crate) fn plan_of(tables: &serde_json::Value) -> Result<(Plan, String), String> {
    let wrong = |why: String| format!("has a plan that cannot be read: {why}");
    let toml = toml::Value::try_from(tables).map_err(|error| wrong(error.to_string()))?;
    let toml = toml::to_string(&toml).map_err(|error| wrong(error.to_string()))?;
    let plan = plan::from_masked_toml(&toml).map_err(|error| wrong(error.0))?;
    // an earlier version's plan lacks what is known today: it stays as it was
    let today = plan::to_toml(&plan, Secrets::Masked);
    let text = if plan_value(&today) == *tables { today } else { toml };
    Ok((plan, text))
}

/// A figure that could not be had.
fn number(figure: Option<f64>) -> f64 {
    figure.unwrap_or(f64::NAN)
}

impl EnvironmentRecord {
    pub(crate) fn facts(&self) -> Environment {
        Environment {
            host: self.host.clone(),
            kernel: self.kernel.clone(),
            cpu_model: self.cpu_model.clone(),
            cores: self.cores,
            memory_bytes: self.memory_bytes,
            governor: self.governor.clone(),
            container: self.container.clone(),
            version: self.version.clone(),
        }
    }
}

impl VerdictRecord {
    pub(crate) fn verdict(&self) -> Verdict {
        let cause = |one: &super::published::CauseRecord| Cause {
            id: one.id,
            figure: number(one.figure),
            text: one.text.clone(),
            advice: one.advice.clone(),
        };
        Verdict { state: self.state, causes: self.causes.iter().map(cause).collect() }
    }
}

impl ClientRecord {
    fn driver(&self) -> Driver {
        let dummy = self.dummy.as_ref();
        Driver {
            io: self.io.clone(),
            threads: self.threads,
            cpu_user_s: self.cpu_user_s,
            cpu_system_s: self.cpu_system_s,
            spin_s: self.spin_s,
            busy: self.busy.clone(),
            dummy: dummy.map(|one| DummyRun { call_s: one.call_s, taken_unix_s: one.taken_unix_s }),
        }
    }
}

impl ResolvedRecord {
    fn lookup(&self) -> Result<Resolved, String> {
        let address = |text: &String| {
            text.parse().map_err(|_| format!("resolved: {} is not an address", units::quoted(text)))
        };
        Ok(Resolved {
            host: self.host.clone(),
            addresses: self.addresses.iter().map(address).collect::<Result<_, _>>()?,
            took: Nanos::from_secs_f64(self.took_s),
        })
    }
}

impl FirstCallRecord {
    fn call(&self) -> FirstCall {
        let failure = self.failure.as_ref();
        FirstCall {
            status: self.status,
            http_version: self.http_version.clone(),
            negotiated: self.negotiated.clone(),
            length: self.length,
            server: self.server.clone(),
            took: Nanos::from_secs_f64(self.took_s),
            failure: failure.map(|one| (one.class, one.detail.clone())),
            way_out: failure.and_then(|one| one.advice.clone()),
            excerpt: self.excerpt.clone(),
            alt_svc: self.alt_svc.clone(),
        }
    }
}

impl HeadlineRecord {
    /// The figures of one run of several.
    pub(crate) fn headline(&self) -> Headline {
        Headline {
            state: self.state,
            throughput_per_s: self.throughput_per_s,
            goodput_per_s: self.goodput_per_s,
            failure_share: self.failure_share,
            mean_s: self.mean_s,
            p50_s: self.p50_s,
            p90_s: self.p90_s,
            p99_s: self.p99_s,
            p99_9_s: self.p99_9_s,
            max_s: self.max_s,
            conforming: self.conforming,
        }
    }
}

impl SloRecord {
    fn result(&self) -> Result<SloResult, String> {
        let objective = Objective::parse(&self.objective).map_err(|error| error.0)?;
        Ok(SloResult {
            objective,
            figure: number(self.figure),
            without_lag: self.figure_without_lag,
            met: self.met,
            undecided: self.undecided,
        })
    }
}

impl FindingRecord {
    pub(crate) fn finding(&self) -> Finding {
        Finding {
            id: self.id.clone(),
            confidence: self.confidence,
            evidence: self.evidence.clone(),
            advice: self.r#try.clone(),
        }
    }
}

impl SutRecord {
    fn series(&self) -> SutSeries {
        let row = |row: &super::published::SutRowRecord| SutRow {
            at_s: row.at_s,
            cpu_cores: row.cpu_cores,
            memory_bytes: row.memory_bytes,
            threads: row.threads,
            descriptors: row.descriptors,
            switches_per_s: row.switches_per_s,
            listen_overflows: row.listen_overflows,
            accept_queue: row.accept_queue,
            half_open: row.half_open,
        };
        SutSeries {
            name: self.name.clone(),
            cores: self.cores,
            memory_max: self.memory_max_bytes,
            descriptors_max: self.descriptors_max,
            accept_queue_max: self.accept_queue_max,
            rows: self.series.iter().map(row).collect(),
            trouble: self.trouble.clone().unwrap_or_default(),
        }
    }
}
