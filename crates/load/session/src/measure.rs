//! One measurement: runs a session's plan, and gathers what is needed to judge it.

use crate::assemble::{finished, initial_report};
use crate::change::Change;
use crate::exit::Failure;
use crate::judge::{Circumstances, FOREIGN_TIME_MIN, Judge};
use crate::load::{Observers, RunLoad};
use crate::network::{FleetTask, Network};
use crate::placement;
use crate::scripts::Requesters;
use crate::session::{Fit, Session};
use crate::sut;
use crate::threads::{RequestSource, WorkerThreads};
use crate::tokens::Renewal;
use crate::watcher::Watcher;
use crate::watchers::Watchers;
use anyhow::Result;
use engine::{Setup, Share};
use host::ForeignWatch;
use plan::Plan;
use record::run::RunReport;
use std::sync::Arc;

impl Session {
    /// Runs the plan once under a load, and judges the result.
    ///
    /// # Errors
    /// A [`Failure`] if the load exceeds limits, or a script is invalid; `NotBegun` if a fleet did
    /// not start; other errors if a script or a watcher failed during the run.
    pub fn measure(&self, load: &RunLoad, observers: Observers<'_>) -> Result<RunReport> {
        let changed = match load {
            RunLoad::Repeat(_) => None,
            RunLoad::Changed(change) => Some(self.checked(change)?),
        };
        let fit = changed.as_ref().unwrap_or(&self.fit);
        let plan = load.seeded(&fit.plan);
        if !matches!(fit.network, Network::Fleet(_)) {
            self.obtain_tokens(&plan)?;
        }
        let Observers { watch, logging, sources, aside, scripts } = observers;
        let mut requesters = Requesters::default();
        let sources = match sources {
            Some(sources) => sources,
            None => requesters.sources(&plan, self, fit, aside)?,
        };
        let mut run = initial_report(self, fit);
        if let Network::Fleet(fleet) = &fit.network {
            let task = FleetTask {
                plan: &plan,
                endpoints: &self.servers.endpoints,
                captured: &self.captured.values,
                sut: self.sut.as_ref(),
                judge: self.judge(),
            };
            fleet.measure(&task, watch, &mut run)?;
        } else {
            self.run_here(plan, fit, (sources, logging), watch, &mut run)?;
        }
        requesters.finish(&mut run, scripts);
        Ok(finished(run))
    }

    /// Runs [`Session::measure`] under a changed load, with only a watcher.
    ///
    /// # Errors
    /// Fails like [`Session::measure`].
    pub fn trial(
        &self,
        change: &Change,
        watch: &mut dyn FnMut(&Setup) -> Box<dyn Watcher>,
    ) -> Result<RunReport, Failure> {
        let load = RunLoad::Changed(change.clone());
        self.measure(&load, Observers::new(watch)).map_err(Failure::from_run)
    }

    fn checked(&self, change: &Change) -> Result<Fit, Failure> {
        if let Some(why) = plan::feeder_shortage(&change.applied(&self.base)) {
            return Err(Failure::usage(why));
        }
        Ok(self.fitted(change)?)
    }

    /// Returns the part of the load of each worker.
    pub(crate) fn shares(&self, fit: &Fit) -> Vec<Share> {
        let workers = fit.placement.workers;
        match &self.part {
            Some(part) => part.shares.clone(),
            None => (0..workers).map(|worker| Share::new(worker, workers)).collect(),
        }
    }

    /// Runs the plan with the workers of this machine.
    fn run_here(
        &self,
        plan: Plan,
        fit: &Fit,
        (sources, logging): (Vec<RequestSource>, engine::Logging),
        watch: &mut dyn FnMut(&Setup) -> Box<dyn Watcher>,
        run: &mut RunReport,
    ) -> Result<()> {
        let foreign = ForeignWatch::start();
        let sut = sut::watch(self.sut.as_ref(), &self.servers.endpoints)?;
        // its thread opens its sockets before the start of the load is set
        let renewal = Renewal::start(self, &plan)?;
        let setup = Arc::new(self.setup(plan, fit, logging)?);
        if let Some(sut) = &sut {
            sut.begin(setup.measure_from());
        }
        let mut observer = watch(&setup);
        if let Some(renewal) = &renewal {
            observer = Box::new(Watchers(vec![renewal.watcher(), observer]));
        }
        // earlier traffic of the network is not part of this run
        fit.network.facts()?;
        let ahead = (setup.start - net::reactor::monotonic()).as_secs_f64();
        run.started_unix_s = crate::wall_clock::unix_seconds() + ahead;
        let (tls, cores) = (self.servers.tls.as_ref(), &fit.placement.cores);
        let worker_threads =
            WorkerThreads { setup: &setup, tls, cores, network: &fit.network, sources };
        let driven = worker_threads.run(&mut *observer, run);
        run.sut = sut.map(sut::SutWatch::end);
        let closed = observer.close();
        let waited = driven?;
        closed?;
        let foreign = (foreign.elapsed() > FOREIGN_TIME_MIN)
            .then(|| foreign.end(|| placement::local_servers(&self.servers.endpoints)))
            .flatten();
        (run.path, run.stack) = fit.network.facts()?;
        let busiest = run.driver.busy.iter().copied().fold(0.0, f64::max);
        let seen = Circumstances { busiest, waited, foreign, path: run.path.as_ref(), fleet: None };
        let judge = Judge::new(&fit.placement, self.env.calibration.as_ref());
        run.verdict = judge.verdict(&setup.plan, &run.measurement, seen);
        if let Some(renewal) = renewal {
            renewal.finish(run);
        }
        Ok(())
    }

    fn setup(&self, mut plan: Plan, fit: &Fit, logging: engine::Logging) -> Result<Setup> {
        let part = self.part.as_ref();
        // the calls of one agent decide nothing: the manager ends the run
        plan.stop.until_sure &= part.is_none();
        let start = part.map_or_else(
            || net::reactor::monotonic() + self.env.lead + placement::hold_lead_time(&plan),
            |part| part.start,
        );
        let crowd = fit.network.crowd(&plan);
        let endpoints = self.servers.endpoints.clone();
        let mut setup = Setup::new(plan, endpoints, fit.placement.workers, start)?;
        if let Some(part) = part {
            setup = setup.with_shares(part.shares.clone())?;
        }
        setup.logging = logging;
        setup.tokens.clone_from(&self.tokens);
        let now_s = net::reactor::monotonic().as_secs_f64();
        setup.unix_s = (crate::wall_clock::unix_seconds() - now_s).max(0.0) as u64;
        setup.crowd = crowd;
        if self.guides_open_sockets {
            setup.expect_sockets()?;
        }
        Ok(setup)
    }
}
