//! The verdict on a measurement, complete or not.

use crate::calibration::Calibration;
use crate::placement::Placement;
use host::Foreign;
use plan::Plan;
use sample::{FleetFacts, PathFacts};
use stats::verdict::{Evidence, judge};
use stats::{Measurement, Verdict};
use units::Nanos;

/// Shorter times are not judged: the work of other programs is counted in ticks of 10 ms.
pub(crate) const FOREIGN_TIME_MIN: Nanos = Nanos::SECOND;

/// Observations of a measurement in addition to its figures; `None` is ignored.
#[derive(Debug)]
pub struct Circumstances<'a> {
    /// Share of its core that the busiest worker used, 0..=1.
    pub busiest: f64,
    /// Largest share of its time that a worker was ready to run and waited for a core, 0..=1.
    pub waited: f64,
    pub foreign: Option<Foreign>,
    pub path: Option<&'a PathFacts>,
    pub fleet: Option<&'a FleetFacts>,
}

/// Judges measurements, complete or not.
#[derive(Clone, Debug)]
pub struct Judge {
    workers: u32,
    shared_cores: Option<String>,
    calibration: Option<Calibration>,
}

impl Judge {
    pub(crate) fn new(placement: &Placement, calibration: Option<&Calibration>) -> Judge {
        Judge {
            workers: placement.workers,
            shared_cores: placement.shared.clone(),
            calibration: calibration.cloned(),
        }
    }

    /// Returns the verdict on a measurement of this plan.
    pub fn verdict(
        &self,
        plan: &Plan,
        measurement: &Measurement,
        seen: Circumstances<'_>,
    ) -> Verdict {
        let quantiles = printed_quantiles(plan, measurement);
        let mut evidence = Evidence::new(measurement);
        evidence.closed_loop = plan.is_closed();
        evidence.scenarios = plan.scenario_names();
        evidence.ramped = plan.is_ramped();
        evidence.without_row = without_row(plan, measurement);
        let throughput =
            measurement.total.in_window as f64 / measurement.window.as_secs_f64().max(1e-9);
        let known = self.calibration.as_ref();
        let ceiling =
            known.map_or(0.0, |known| known.share_of_ceiling(plan, throughput, self.workers));
        evidence.driver_busy = Some(seen.busiest.max(ceiling).min(1.0));
        evidence.waited_share = self.waited_share(measurement, seen.waited);
        evidence.path = seen.path;
        evidence.fleet = seen.fleet;
        if let Some(foreign) = seen.foreign.filter(|found| found.elapsed > FOREIGN_TIME_MIN) {
            evidence.foreign_share = Some(foreign.share);
            evidence.steal_share = Some(foreign.steal_share);
        }
        evidence.shared_cores.clone_from(&self.shared_cores);
        evidence.quantiles = &quantiles;
        evidence.objectives = &plan.measure.slo;
        evidence.doubt_max = plan.measure.doubt_max;
        judge(&evidence)
    }

    /// Returns an upper bound on the share of the calls' time in which their worker waited for a
    /// core. If a worker has a mean of fewer than one outstanding call, its whole wait is charged to
    /// these calls.
    fn waited_share(&self, measurement: &Measurement, waited: f64) -> f64 {
        let response = measurement.total.response();
        let time = response.mean().as_secs_f64() * response.count() as f64;
        let workers = measurement.window.as_secs_f64() * f64::from(self.workers.max(1));
        let outstanding = (time / workers.max(1e-9)).clamp(1e-6, 1.0);
        (waited / outstanding).min(1.0)
    }
}

/// Returns the number of users or sessions without a row of a feeder that does not set `used-up`.
fn without_row(plan: &Plan, measurement: &Measurement) -> u64 {
    let feeders = plan.journeys.iter().flat_map(|journeys| &journeys.feeders);
    let dry = feeders.zip(&measurement.total.journeys.dry);
    dry.filter(|(feeder, _)| feeder.used_up.is_none()).map(|(_, count)| count).sum()
}

/// Returns the quantiles that the report prints: the requested ones, or the usual ones with enough
/// samples.
pub fn printed_quantiles(plan: &Plan, measurement: &Measurement) -> Vec<f64> {
    let wanted = &plan.measure.quantiles;
    if *wanted != plan::MeasurePlan::default().quantiles {
        return wanted.clone();
    }
    let count = measurement.total.response().count();
    let enough = |q: &f64| *q >= 1.0 || count >= stats::samples_needed(*q);
    wanted.iter().copied().filter(enough).collect()
}
