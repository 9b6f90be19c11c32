//! Ramps and comparisons made of synthetic runs.

use super::fixtures::{self, answered};
use crate::RunReport;
use crate::ramp::{Purpose, RampReport, RampStep};
use plan::{Arrivals, Load};
use sample::{FailureClass, Outcome};
use stats::curve::{Axis, Point, curve};
use stats::{Cause, CauseId, State, Verdict};
use std::sync::LazyLock;
use units::{Nanos, Rate, Seed};

/// Length of a step.
const HOLD: Nanos = Nanos(2_000_000_000);

/// Returns the calls at a constant rate to a server that serves one at a time, `service_us` each on
/// average; calls time out after a second of waiting.
fn queue(rate: f64, service_us: f64, seed: u64) -> Vec<fixtures::Call> {
    let mut stream = Seed(seed).stream(units::Purpose::Simulation, 2);
    let mut free = fixtures::START;
    let mut calls = Vec::new();
    for index in 0..(rate * HOLD.as_secs_f64()) as u64 {
        let intended = fixtures::START + Nanos::from_secs_f64(index as f64 / rate);
        let begin = free.max(intended);
        free = begin + Nanos::from_micros(1 + stream.exponential(service_us) as u64);
        let mut call = answered(index, intended, intended, free - intended);
        if free - intended > Nanos::SECOND {
            call.outcome = Outcome::TimedOut;
            call.sample.class = Some(FailureClass::ClientTimeout);
            call.sample.status = 0;
            call.sample.first_byte = Nanos::ZERO;
            call.sample.done = intended + Nanos::SECOND;
            free = begin;
        }
        calls.push(call);
    }
    calls
}

/// Returns one held load, as `run` reports it.
pub(crate) fn held(rate: f64, service_us: f64, seed: u64) -> RunReport {
    let arrivals = Arrivals::constant(Rate(rate));
    let load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
    let mut plan = fixtures::plan_of(load, &["http://127.0.0.1:2020/work"]);
    plan.stop.duration = Some(HOLD);
    plan.measure.slo = stats::parse_objectives("p99<100ms").unwrap();
    let calls = queue(rate, service_us, seed);
    let mut measurement = fixtures::count(&calls, HOLD, Nanos::ZERO, 1);
    measurement.intended = Some(calls.len() as u64);
    fixtures::bare(plan, measurement)
}

fn step(label: usize, (purpose, level): (Purpose, f64), repeat: u32, service_us: f64) -> RampStep {
    let seed = level as u64 + 7 * u64::from(repeat) + purpose as u64;
    let mut run = held(level, service_us, seed);
    if level > 850.0 {
        run.verdict = Verdict {
            state: State::Invalid,
            causes: vec![Cause {
                id: CauseId::NotOffered,
                figure: 0.9,
                text: "90.0 % of the intended load was offered".to_owned(),
                advice: "Lower the rate.".to_owned(),
            }],
        };
    }
    let objectives = &run.plan.measure.slo;
    let point = Point::new(level, &run.measurement, &run.verdict, false, objectives);
    RampStep { label, purpose, repeat, point, settled_s: 0.25, run }
}

/// A staircase of 100 to 900 calls per second at servers with capacities of about 500 and 370, each
/// level twice, one step down, the last one beyond the client's limit.
static BOTH: LazyLock<RampReport> = LazyLock::new(|| {
    let mut steps = Vec::new();
    for label in 0..2 {
        let service_us = 2_000.0 + 700.0 * label as f64;
        for level in [100.0, 200.0, 300.0, 400.0, 450.0, 500.0, 600.0, 800.0] {
            steps.extend((0..2).map(|n| step(label, (Purpose::Up, level), n, service_us)));
        }
        steps.push(step(label, (Purpose::Overload, 900.0), 0, service_us));
        steps.push(step(label, (Purpose::Recovery, 200.0), 0, service_us));
        steps.push(step(label, (Purpose::Down, 300.0), 0, service_us));
    }
    let plan = steps[0].run.plan.clone();
    let curves = (0..2).map(|label| {
        let mine = steps.iter().filter(|step| step.label == label);
        let points: Vec<(Purpose, Point)> = mine.map(|step| (step.purpose, step.point)).collect();
        let mut curve = curve(&points, Axis::Rate, &plan.measure.slo);
        curve.overload.recovery_s = 1.25;
        curve
    });
    RampReport {
        name: String::new(),
        axis: Axis::Rate,
        labels: Vec::new(),
        curves: curves.collect(),
        plan,
        plan_toml: "version = 1\n".to_owned(),
        started_unix_s: 1_795_235_590.0,
        environment: fixtures::environment(),
        ended_early: None,
        findings: Vec::new(),
        steps,
    }
});

/// Returns the ramp of one server, or of two.
pub(crate) fn ramp(labels: &[&str]) -> RampReport {
    let mut report = BOTH.clone();
    report.steps.retain(|step| step.label < labels.len());
    report.curves.truncate(labels.len());
    report.labels = labels.iter().map(|&label| label.to_owned()).collect();
    report
}

/// Returns the ramp with plans that can be parsed again.
pub(crate) fn whole_ramp(labels: &[&str]) -> RampReport {
    let mut ramp = ramp(labels);
    ramp.plan_toml = plan::to_toml(&ramp.plan, plan::Secrets::Masked);
    for step in &mut ramp.steps {
        step.run = fixtures::whole(step.run.clone());
    }
    ramp
}
