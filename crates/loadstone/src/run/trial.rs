//! A single measurement of many: a target is reached once, and then measured under one load after
//! another. `ramp` and `compare` are made of these.

use super::keeping::Keeping;
use super::measure::measure;
use super::prepare::{Loads, Prepared};
use super::scripted::Stages;
use super::threads::Watcher;
use super::watchers::Watchers;
use super::{assemble, own_stack, reach_unless_interrupted};
use crate::calibration::Calibration;
use crate::exit::Failure;
use engine::Setup;
use plan::{Load, Plan};
use report::{FirstCall, RunReport};
use sample::Environment;
use std::cell::Cell;

/// A target that answered, and what every trial of it shares.
#[derive(Clone)]
pub(crate) struct Target {
    /// As typed, without a password: [`RunReport::name`].
    pub(crate) name: String,
    /// As typed, with what was settled with the servers: bounds that depend on the load are set by each trial.
    pub(crate) plan: Plan,
    pub(crate) prepared: Prepared,
    pub(crate) first_call: FirstCall,
}

/// What came of the first call to a target.
pub(crate) enum Reached {
    Target(Box<Target>),
    /// No connection, or no TLS on it: a report that says so.
    Nobody(Box<RunReport>),
    /// A signal came first.
    Interrupted,
}

/// Looks names up, makes TLS ready and makes the plain call that goes first.
///
/// # Errors
/// Names without an address, TLS settings that cannot be used, limits that the plan cannot keep.
pub(crate) fn reach(plan: &Plan, name: &str, session: &TrialSession) -> Result<Reached, Failure> {
    let threads = own_stack::threads_of_sharers(plan, &session.prefixes);
    let loads = Loads::Several { threads };
    let Some((prepared, found)) = reach_unless_interrupted(plan, loads)? else {
        return Ok(Reached::Interrupted);
    };
    if found.unreachable {
        let plan = prepared.plan.clone();
        let environment = &session.environment;
        let report = super::unreachable_report(&plan, &prepared, found, environment, name);
        return Ok(Reached::Nobody(Box::new(report)));
    }
    let (name, plan) = (name.to_owned(), prepared.settled.applied(plan));
    let first_call = found.call;
    Ok(Reached::Target(Box::new(Target { name, plan, prepared, first_call })))
}

/// What every trial of a session shares.
pub(crate) struct TrialSession {
    pub(crate) environment: Environment,
    /// Of the plans of its targets.
    prefixes: Vec<own_stack::PrefixUse>,
    pub(crate) calibration: Option<Calibration>,
    /// Where the trials are written while they run.
    pub(crate) keeping: Keeping,
    /// Trials so far.
    trials: Cell<usize>,
    /// Figures for others while a trial goes on.
    pub(crate) meters: Option<super::meters::Meters>,
    /// The terminal that shows each trial while it goes on.
    pub(crate) view: Option<super::view::View>,
    /// What becomes of finished calls, beside being counted.
    pub(crate) logging: engine::Logging,
}

impl TrialSession {
    /// A session of the targets of these plans.
    pub(crate) fn of<'a>(plans: impl IntoIterator<Item = &'a Plan>) -> TrialSession {
        let environment = host::environment();
        let calibration = Calibration::load(&environment);
        TrialSession {
            environment,
            prefixes: plans.into_iter().filter_map(own_stack::prefix_use).collect(),
            calibration,
            keeping: Keeping::nowhere(),
            trials: Cell::new(0),
            meters: None,
            view: None,
            logging: engine::Logging::default(),
        }
    }

    /// Measures `target` once: its plan, with `change` applied to it.
    ///
    /// # Errors
    /// Limits that this load cannot keep; a watcher that cannot go on.
    pub(crate) fn trial(
        &self,
        target: &Target,
        change: &Change,
        watcher: &mut dyn FnMut(&Setup) -> Box<dyn Watcher>,
    ) -> Result<RunReport, Failure> {
        let plan = change.applied(&target.plan);
        if let Some(why) = plan::feeder_shortage(&plan) {
            return Err(Failure::usage(why));
        }
        let prepared = target.prepared.refit(plan)?;
        let plan = prepared.plan.clone();
        let calibration = self.calibration.as_ref();
        let mut stages = Stages::default();
        // standard output is for what is made of all the trials
        let casts = stages.cast(&plan, &prepared, true)?;
        let trial = self.trials.replace(self.trials.get() + 1);
        let mut watchers = |setup: &Setup| -> Box<dyn Watcher> {
            let mut all = vec![watcher(setup)];
            all.extend(self.keeping.watcher(trial));
            if let Some(meters) = &self.meters {
                let number = u32::try_from(trial + 1).unwrap_or(u32::MAX);
                all.push(Box::new(meters.watch(setup, &target.name, number)));
            }
            Box::new(Watchers(all))
        };
        let measured = measure(&plan, &prepared, calibration, self.logging, casts, &mut watchers);
        let mut measured = measured.map_err(Failure::from_run)?;
        stages.keep(&mut measured);
        let first = Some(target.first_call.clone());
        let runs = vec![measured];
        let known = self.calibration.clone();
        Ok(assemble(&plan, &prepared, first, runs, &self.environment, known, &target.name))
    }
}

/// How a trial's plan differs from its target's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    pub(crate) load: Option<Load>,
    pub(crate) path: Option<wan::PathSpec>,
    pub(crate) duration: Option<units::Nanos>,
    pub(crate) seed: Option<u64>,
    /// What the trial is judged by.
    pub(crate) objectives: Option<Vec<stats::Objective>>,
    /// Length of a row of the time series.
    pub(crate) interval: Option<units::Nanos>,
}

impl Change {
    /// The plan of one trial.
    fn applied(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        plan.measure.repeat = 1;
        if let Some(load) = &self.load {
            plan.load = load.clone();
        }
        if let Some(path) = &self.path {
            plan.connection.path = Some(path.clone());
        }
        if let Some(span) = self.duration {
            plan.stop.duration = Some(span);
        }
        if let Some(seed) = self.seed {
            plan.seed = seed;
        }
        if let Some(objectives) = &self.objectives {
            plan.measure.slo.clone_from(objectives);
            plan.settle_objectives();
        }
        if let Some(interval) = self.interval {
            plan.measure.interval = interval;
        }
        plan
    }
}
