//! The manager's side of a fleet: other machines carry a plan out, and what they count is merged here
//! as the rows of cores are.

use super::merge::{Merge, OnLoss};
use super::wire::{Seats, Wire};
use crate::calibration::Calibration;
use crate::run::measure::{Measured, Seen, verdict};
use crate::run::prepare::Prepared;
use crate::run::threads::{DriverCost, Watcher};
use anyhow::{Context, Result, bail};
use engine::{Setup, Share};
use muster::manager::FleetEvent;
use muster::message::Final;
use muster::slots::SlotTable;
use plan::{Load, Plan, Secrets};
use sample::{AgentFacts, FleetFacts};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use units::Nanos;

/// Longest that agents may take to prepare a plan.
const PREPARE_MAX: Nanos = Nanos::from_secs(60);
/// The start lies at least so far ahead: everybody is told of it, and confirms.
const LEAD_MIN: Nanos = Nanos::from_millis(1_000);
/// What the start lies further ahead for each agent.
const LEAD_PER_AGENT: Nanos = Nanos::from_micros(500);
/// How long a signal or a watcher's wish may go unnoticed.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// The machines that carry a plan out; clones are the same fleet.
#[derive(Clone)]
pub(crate) struct Convoy(Arc<Mutex<Wire>>, OnLoss);

impl std::fmt::Debug for Convoy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Convoy")
    }
}

impl PartialEq for Convoy {
    fn eq(&self, other: &Convoy) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Convoy {}

/// The name of a plan: the hash of its print, with its secrets masked.
pub(super) fn plan_hash(plan: &Plan) -> String {
    let digest = Sha256::digest(plan::to_toml(plan, Secrets::Masked));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What only one machine can do.
pub(super) fn refusal(plan: &Plan) -> Option<&'static str> {
    if plan.connection.path.is_some() {
        return Some("--path is a network of one machine, and a fleet has several: leave it out");
    }
    if plan.connection.idle.is_some() {
        return Some("--idle connections are held by one machine: leave it out");
    }
    if plan.connection.clients.is_some() && plan.driver.stack == plan::StackChoice::Own {
        return Some("--clients over --stack own is carried by one machine: leave --stack out");
    }
    if plan.journeys.as_ref().is_some_and(|journeys| !journeys.setup.is_empty()) {
        return Some("what the [[setup]] of journeys captures cannot be handed to agents yet");
    }
    if plan.stop.bytes.is_some() {
        return Some("--bytes-max is counted by one machine: give -d or -n");
    }
    None
}

impl Convoy {
    pub(super) fn new(wire: Wire, on_loss: OnLoss) -> Convoy {
        Convoy(Arc::new(Mutex::new(wire)), on_loss)
    }

    pub(super) fn close(&self, why: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).close(why);
    }

    /// Carries the plan out once on all agents.
    ///
    /// # Errors
    /// A plan that an agent cannot or may not carry out, and an agent that is lost before the start.
    pub(crate) fn measure(
        &self,
        plan: &Plan,
        prepared: &Prepared,
        calibration: Option<&Calibration>,
        watcher: &mut dyn FnMut(&Setup) -> Box<dyn Watcher>,
    ) -> Result<Measured> {
        if let Some(why) = refusal(plan) {
            bail!("{why}");
        }
        let mut wire = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hand_out(&mut wire, plan)?;
        let seats = wire.seats();
        let (start, parts) = arm(&mut wire, plan, &seats)?;
        let setup =
            Setup::new(plan.clone(), prepared.endpoints.clone(), seats.len() as u32, start)?;
        let setup = Arc::new(setup);
        let mut observer = watcher(&setup);
        let ahead = start.0 as f64 - reactor::monotonic().0 as f64;
        let started_unix_s = crate::wall_clock::unix_seconds() + ahead / 1e9;
        let sut = crate::run::measure::watch_server(prepared)?;
        if let Some(sut) = &sut {
            sut.begin(setup.measure_from());
        }
        let mut merge = Merge::new(setup, &parts, self.1);
        let gathered = merge.run(&mut wire, &mut *observer);
        let sut = sut.map(crate::run::sut::Watch::end);
        observer.end();
        let closed = observer.close();
        gathered?;
        closed?;
        wire.done();
        let finals = wire.finals();
        let cost = cost(&finals);
        let fleet = facts(&wire, &merge, &parts, &finals);
        let measurement = merge.finish();
        let fleet_seen = Some(&fleet);
        let seen = Seen { busiest: cost.busiest, foreign: None, path: None, fleet: fleet_seen };
        let verdict = verdict(plan, prepared, &measurement, seen, calibration);
        let fleet = Some(fleet);
        Ok(Measured {
            measurement,
            verdict,
            cost,
            started_unix_s,
            sut,
            path: None,
            stack: None,
            held: None,
            fleet,
        })
    }
}

/// The parts of the load of each agent, one for each of its workers.
type Parts = BTreeMap<String, Vec<Share>>;

fn shares_of(slots: &BTreeMap<String, Vec<Vec<u32>>>, of: u32) -> Result<Parts> {
    let mut parts = Parts::new();
    for (agent, workers) in slots {
        let shares = workers.iter().map(|slots| Share::of_slots(slots, of));
        parts.insert(agent.clone(), shares.collect::<Result<_, _>>()?);
    }
    Ok(parts)
}

/// Gives the plan to every agent, sealed to it, and waits until all are ready for it.
fn hand_out(wire: &mut Wire, plan: &Plan) -> Result<()> {
    let text = plan::to_toml(plan, Secrets::Shown);
    let mut sealed = BTreeMap::new();
    for (agent, seat) in wire.seats() {
        let bytes = fleet::seal(&seat.hello.seal_key, text.as_bytes());
        sealed.insert(agent.clone(), bytes.with_context(|| format!("the plan for {agent}"))?);
    }
    wire.prepare(&plan_hash(plan), &sealed);
    let until = reactor::monotonic() + PREPARE_MAX;
    loop {
        match wire.event(LOOK) {
            Some(FleetEvent::Ready) => return Ok(()),
            Some(FleetEvent::Unfit(agent, why)) => {
                bail!("{} cannot carry the plan out: {why}", wire.name(&agent))
            }
            Some(FleetEvent::Lost(agent, why)) => {
                bail!("{} is lost before the start: {why}", wire.name(&agent))
            }
            _ => {}
        }
        if crate::signals::caught() > 0 {
            bail!("interrupted before the start");
        }
        if reactor::monotonic() > until {
            bail!("not every agent was ready for the plan within a minute");
        }
    }
}

/// Divides the plan and sets the first instant; when all agents know both, they are told to go.
fn arm(wire: &mut Wire, plan: &Plan, seats: &Seats) -> Result<(Nanos, Parts)> {
    let units = match &plan.load {
        Load::Closed { users, .. } => u64::from(*users),
        Load::Open { connections_max, .. } => connections_max.map_or(u64::MAX, u64::from),
    };
    if units < seats.len() as u64 {
        bail!("{units} users or connections are too few for {} agents", seats.len());
    }
    let wanted: u64 = seats.values().map(|seat| u64::from(seat.workers.max(1))).sum();
    // more workers than there are users or connections would have nothing to do
    let workers_of = |workers: u32| if wanted > units { 1 } else { workers.max(1) };
    let mut weights = Vec::new();
    for seat in seats.values() {
        let known = seats.values().all(|seat| seat.hello.calls_per_core > 0.0);
        let weight = if known { seat.hello.calls_per_core } else { 1.0 };
        weights.extend((0..workers_of(seat.workers)).map(|_| weight));
    }
    let table = SlotTable::new(&weights);
    let mut slots = table.slots.into_iter();
    let parts: BTreeMap<String, Vec<Vec<u32>>> = seats
        .iter()
        .map(|(agent, seat)| {
            let count = workers_of(seat.workers) as usize;
            (agent.clone(), slots.by_ref().take(count).collect())
        })
        .collect();
    let lead = LEAD_MIN + Nanos(LEAD_PER_AGENT.0 * seats.len() as u64);
    let start = reactor::monotonic() + lead;
    let shares = shares_of(&parts, table.of)?;
    wire.arm(parts, table.of, start);
    loop {
        match wire.event(LOOK) {
            Some(FleetEvent::Going) => return Ok((start, shares)),
            Some(FleetEvent::StoodDown(agent, why)) => {
                wire.stop(true);
                bail!("{} did not start: {why}", wire.name(&agent));
            }
            Some(FleetEvent::Lost(agent, why)) => {
                wire.stop(true);
                bail!("{} is lost before the start: {why}", wire.name(&agent));
            }
            _ => {}
        }
        if reactor::monotonic() > start {
            wire.stop(true);
            bail!("not every agent confirmed the start in time");
        }
    }
}

/// What all agents spent.
fn cost(finals: &BTreeMap<String, Final>) -> DriverCost {
    let busy: Vec<f64> = finals.values().flat_map(|said| said.busy.iter().copied()).collect();
    DriverCost {
        busiest: busy.iter().copied().fold(0.0, f64::max),
        busy,
        user_s: finals.values().map(|said| said.user_s).sum(),
        system_s: finals.values().map(|said| said.system_s).sum(),
    }
}

/// The machines and their parts, for the report.
fn facts(
    wire: &Wire,
    merge: &Merge,
    parts: &Parts,
    finals: &BTreeMap<String, Final>,
) -> FleetFacts {
    let mut agents = Vec::new();
    for (agent, seat) in wire.seats() {
        let said = finals.get(&agent).cloned().unwrap_or_default();
        let Some(account) = merge.account(&agent) else { continue };
        let labels: Vec<String> =
            seat.hello.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        // the slots of all agents are the whole: a million arrivals show the share
        let of_million = |shares: &Vec<Share>| {
            shares.iter().map(|share| share.count_of(1_000_000)).sum::<u64>() as f64 / 1e6
        };
        agents.push(AgentFacts {
            host: seat.hello.host,
            build: seat.hello.build,
            labels: labels.join(","),
            workers: parts.get(&agent).map_or(0, Vec::len) as u32,
            weight: parts.get(&agent).map_or(0.0, of_million),
            offered: said.offered.max(account.offered),
            lost: account.lost,
            lost_at_s: account.lost_at_s,
            ending: account.ending,
            p50: Nanos::from_secs_f64(said.p50_s),
            p99: Nanos::from_secs_f64(said.p99_s),
            slip_p99: Nanos::from_secs_f64(said.slip_p99_s),
            busy: said.busy.iter().copied().fold(0.0, f64::max),
            clock_ahead_s: seat.ahead as f64 / 1e9,
            clock_bound: Nanos(seat.bound),
            clock_drift_s: said.drift_s.unwrap_or(f64::NAN),
            first_call_s: said.first_s.unwrap_or(f64::NAN),
            state: said.state,
            causes: said.causes.into_iter().map(|cause| cause.id).collect(),
            id: agent,
        });
    }
    FleetFacts { server: wire.server_version(), agents }
}
