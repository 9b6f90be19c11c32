//! The manager's side of a fleet: other machines run a plan, and their counts are merged here like
//! those of cores.

use crate::merge::{Merge, why_not_redistributable};
use crate::plan_bundle::PlanBundle;
use crate::wire::{AgentEntries, POLL_INTERVAL, Wire};
use anyhow::{Context, Result, bail};
use engine::{Setup, Share};
use fleet::protocol::manager::FleetEvent;
use fleet::protocol::message::{Final, Holding};
use fleet::protocol::slots::SlotTable;
use fleet::protocol::stamp::RefusedMessages;
use fleet::{HostBudget, OnLoss};
use plan::Plan;
use record::run::{Driver, PathRecord};
use report::RunReport;
use sample::{AgentFacts, BudgetFacts, FleetFacts, PathFacts, RefusedFacts};
use session::console::print_message;
use session::exit::NotBegun;
use session::{Circumstances, Fleet, FleetTask, Watcher, signals, sut, units_of_work, wall_clock};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use units::Nanos;

/// Maximum time for agents to prepare a plan.
const PREPARE_MAX: Nanos = Nanos::from_secs(60);

/// Machines that run a plan; clones share one fleet.
#[derive(Clone)]
pub struct FleetRun {
    wire: Arc<Mutex<Wire>>,
    terms: Arc<Terms>,
}

/// Settings of the manager's operator for every run.
#[derive(Debug)]
pub struct Terms {
    pub on_loss: OnLoss,
    pub budgets: Vec<HostBudget>,
    pub beginning: Beginning,
}

/// Start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// Started by distributing the plan.
    Fresh,
    /// Another manager, which has exited, started the run.
    Attached,
}

impl std::fmt::Debug for FleetRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FleetRun")
    }
}

impl PartialEq for FleetRun {
    fn eq(&self, other: &FleetRun) -> bool {
        Arc::ptr_eq(&self.wire, &other.wire)
    }
}

impl Eq for FleetRun {}

/// Returns the hash of a plan's identity, by which the manager and its agents name it.
pub(crate) fn plan_hash(plan: &Plan) -> String {
    units::hex(Sha256::digest(plan::identity(plan)))
}

/// Refuses features that only one machine supports.
pub(crate) fn refusal(plan: &Plan) -> Option<&'static str> {
    if plan.connection.idle.is_some() {
        return Some("--idle works on one machine only: omit it");
    }
    if plan.connection.clients.is_some() && plan.driver.stack.is_own() {
        return Some("--clients over --stack own works on one machine only: omit --stack");
    }
    if plan.driver.stack.xdp().is_some() {
        return Some(
            "--stack own:xdp has one prefix of addresses, which all agents would use: start one \
             run on each machine, each with its own --sources, or omit --stack",
        );
    }
    if plan.specweb99.is_some() {
        return Some(
            "--workload specweb99-like compares its POSTs with the server's log, which one machine \
             must do alone: run it without a fleet",
        );
    }
    None
}

impl FleetRun {
    pub fn new(wire: Wire, terms: Terms) -> FleetRun {
        FleetRun { wire: Arc::new(Mutex::new(wire)), terms: Arc::new(terms) }
    }

    pub fn close(&self, why: &str) {
        let mut wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        if self.terms.beginning == Beginning::Attached && !wire.has_adopted() {
            // another process may fetch their data
            wire.leave();
        } else {
            wire.close(why);
        }
    }
}

impl Fleet for FleetRun {
    fn admit(&self, plan: &Plan) -> Result<Vec<BudgetFacts>> {
        let moved = (self.terms.on_loss == OnLoss::Redistribute)
            .then(|| why_not_redistributable(plan))
            .flatten();
        if let Some(why) = refusal(plan).map(str::to_owned).or(moved) {
            return Err(NotBegun(why).into());
        }
        crate::budget::check(plan, &self.terms.budgets).map_err(|why| NotBegun(why).into())
    }

    fn measure(
        &self,
        task: &FleetTask<'_>,
        watch: &mut dyn FnMut(&Setup) -> Box<dyn Watcher>,
        run: &mut RunReport,
    ) -> Result<()> {
        let plan = task.plan;
        let budgets = self.admit(plan)?;
        let mut wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = match self.terms.beginning {
            Beginning::Fresh => begin(&mut wire, task, self.terms.on_loss),
            Beginning::Attached => adopt(&mut wire, plan),
        };
        let (start, parts) = begun.map_err(|error| NotBegun(format!("{error:#}")))?;
        let endpoints = task.endpoints.to_vec();
        let setup = Arc::new(Setup::new(plan.clone(), endpoints, parts.len() as u32, start)?);
        wire.measuring(setup.measure_from());
        let mut observer = watch(&setup);
        let ahead = start.0 as f64 - net::reactor::monotonic().0 as f64;
        run.started_unix_s = wall_clock::unix_seconds() + ahead / 1e9;
        let sut = sut::watch(task.sut, task.endpoints)?;
        if let Some(sut) = &sut {
            sut.begin(setup.measure_from());
        }
        let mut merge = Merge::new(setup, &parts, self.terms.on_loss);
        merge.set_agent_names(&wire.agent_entries());
        merge.give_up(GONE);
        merge.run(&mut wire, &mut *observer);
        run.sut = sut.map(sut::SutWatch::end).or_else(|| wire.seen(merge.span()));
        observer.end();
        let closed = observer.close();
        closed?;
        wire.done();
        let mut finals = wire.finals();
        finals.retain(|agent, _| !merge.has_abandoned(agent));
        add_cost(&mut run.driver, &finals);
        let fleet = FleetFacts { budgets, ..facts(&wire, &merge, &parts, &finals) };
        run.path = paths(&finals)?;
        run.measurement = merge.finish();
        let busiest = run.driver.busy.iter().copied().fold(0.0, f64::max);
        let path = run.path.as_ref();
        let seen = Circumstances { busiest, waited: 0.0, foreign: None, path, fleet: Some(&fleet) };
        run.verdict = task.judge.verdict(plan, &run.measurement, seen);
        run.fleet = Some(fleet);
        Ok(())
    }
}

/// Parts of the load per agent, one for each of its workers.
type AgentShares = BTreeMap<String, Vec<Share>>;

fn shares_of(slots: &BTreeMap<String, Vec<Vec<u32>>>, of: u32) -> Result<AgentShares> {
    let mut parts = AgentShares::new();
    for (agent, workers) in slots {
        let shares = workers.iter().map(|slots| Share::from_slots(slots, of));
        parts.insert(agent.clone(), shares.collect::<Result<_, _>>()?);
    }
    Ok(parts)
}

/// Distributes the plan and starts the agents: the first instant, and the parts of the load.
fn begin(wire: &mut Wire, task: &FleetTask<'_>, on_loss: OnLoss) -> Result<(Nanos, AgentShares)> {
    if on_loss != OnLoss::Stop {
        // named before any is removed, because names count the current ones
        let named = |agent: String| (wire.name(&agent), agent);
        let absent: Vec<(String, String)> = wire.absent().into_iter().map(named).collect();
        for (name, agent) in absent {
            dismiss(wire, &agent, &name, "it is finished")?;
        }
    }
    let plan = task.plan;
    crate::public::check(plan, task.endpoints, wire.agent_entries().len())?;
    let mut tokens = TokenCounts::new();
    loop {
        distribute_plan(wire, task, on_loss, &tokens)?;
        let division = Division::new(plan, &wire.agent_entries())?;
        let needed = division.token_counts(plan);
        // which agent has which users is known only now; they request their tokens before the start.
        // A third round follows only if an agent was lost in the second
        if !plan.token.per_user || needed == tokens {
            return arm(wire, division);
        }
        tokens = needed;
    }
}

/// Number of tokens that each agent requests before the start, by id. An agent without an entry
/// requests the token that all its users share, or none.
type TokenCounts = BTreeMap<String, u32>;

/// Continues without an agent before the start: the others share the whole load.
fn dismiss(wire: &Wire, agent: &str, name: &str, why: &str) -> Result<()> {
    wire.dismiss(agent);
    match wire.agent_entries().len() {
        0 => bail!("{name} is lost before the start: {why}; no agent is left"),
        left => print_message(&format!("{name} is left out: {why}; the load is shared by {left}")),
    }
    Ok(())
}

/// Maximum time for agents to report their parts.
const RECALL_MAX: Nanos = Nanos::from_secs(10);
/// Number of parts of a load: several for each core of the largest fleet.
const PARTS_MAX: u32 = 1 << 24;
/// Owner of parts whose agents exited with their manager.
const GONE: &str = "gone";

/// Returns the reason why the agents' state cannot be taken over as a run of the plan with this
/// hash; `None` if it can.
fn why_not_adoptable<'a>(
    mut held: impl Iterator<Item = &'a Holding>,
    hash: &str,
) -> Option<String> {
    held.find_map(|holding| {
        match holding {
        Holding { hash: other, .. } if other != hash => Some(
            "the agents run another plan: repeat the command line of their manager".into(),
        ),
        Holding { of, .. } if *of > PARTS_MAX => {
            Some(format!("an agent reports {of} parts of the load, more than any fleet has"))
        }
        // its rows count taken-over parts; only the exited manager knew their owners and times
        Holding { taken: 1.., .. } => Some(
            "parts of a lost agent were reassigned, and only the previous manager knew which: this \
             run cannot be taken over"
                .into(),
        ),
        _ => None,
    }
    })
}

/// Takes over a run whose manager has exited. Returns its first instant by our clock, and the parts
/// of the load; a part without an owner belongs to [`GONE`].
fn adopt(wire: &mut Wire, plan: &Plan) -> Result<(Nanos, AgentShares)> {
    let held = wire.query_assignments(RECALL_MAX)?;
    let now = net::reactor::monotonic();
    let mut held: Vec<_> = held.into_iter().filter(|(_, holding)| holding.step > 0).collect();
    // the remains of an earlier step belong to no agent
    let step = held.iter().map(|(_, held)| (held.run, held.step)).max().unwrap_or_default();
    held.retain(|(_, held)| (held.run, held.step) == step);
    let Some((_, first)) = held.first() else {
        bail!("no agent holds a run: its manager ended, or the agents were restarted");
    };
    let of = first.of;
    if let Some(why) = why_not_adoptable(held.iter().map(|(_, holding)| holding), &plan_hash(plan))
    {
        bail!(why);
    }
    // the last answer is the nearest to this instant
    let since = held.iter().map(|(_, holding)| holding.since).max().unwrap_or(0);
    let slots: BTreeMap<String, Vec<Vec<u32>>> =
        held.iter().map(|(agent, holding)| (agent.clone(), holding.slots.clone())).collect();
    let mut parts = shares_of(&slots, of)?;
    let owned: BTreeSet<u32> = slots.into_values().flatten().flatten().collect();
    let gone: Vec<u32> = (0..of).filter(|slot| !owned.contains(slot)).collect();
    if !gone.is_empty() {
        print_message(&format!(
            "{} of the load's {of} parts are lost: no agent holds them",
            gone.len()
        ));
        parts.insert(GONE.to_owned(), vec![Share::from_slots(&gone, of)?]);
    }
    let start = now - Nanos(since);
    wire.adopt(step, start);
    print_message(&format!(
        "step {} of {} agents is taken over, {} after its start",
        step.1,
        held.len(),
        units::show::duration(Nanos(since))
    ));
    Ok((start, parts))
}

/// Sends the sealed plan to every agent, and waits until all have prepared it.
fn distribute_plan(
    wire: &mut Wire,
    task: &FleetTask<'_>,
    on_loss: OnLoss,
    tokens: &TokenCounts,
) -> Result<()> {
    let usual = if task.plan.token.per_user { 0 } else { task.plan.token_count() };
    let mut plan_bundle = PlanBundle::new(task.plan, task.endpoints, task.captured);
    let mut sealed = BTreeMap::new();
    // agents with the same number of tokens receive the same bytes
    let mut written: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for (agent, agent_entry) in wire.agent_entries() {
        plan_bundle.tokens = tokens.get(&agent).copied().unwrap_or(usual);
        let bytes = written.entry(plan_bundle.tokens).or_insert_with(|| plan_bundle.to_bytes());
        let bytes = fleet::seal(&agent_entry.hello.seal_key, bytes);
        sealed.insert(agent.clone(), bytes.with_context(|| format!("the plan for {agent}"))?);
    }
    wire.prepare(&plan_hash(task.plan), &sealed);
    let until = net::reactor::monotonic() + PREPARE_MAX;
    loop {
        match wire.event(POLL_INTERVAL) {
            Some(FleetEvent::Ready) => return Ok(()),
            Some(FleetEvent::Unfit(agent, why)) => {
                bail!("{} cannot run the plan: {why}", wire.name(&agent))
            }
            Some(FleetEvent::Lost(agent, why)) if on_loss == OnLoss::Stop => {
                bail!("{} is lost before the start: {why}", wire.name(&agent))
            }
            Some(FleetEvent::Lost(agent, why)) => {
                dismiss(wire, &agent, &wire.name(&agent), &why)?;
            }
            _ => {}
        }
        if signals::received_signal() > 0 {
            bail!("interrupted before the start");
        }
        if net::reactor::monotonic() > until {
            bail!("not every agent was ready for the plan within a minute");
        }
    }
}

/// The division of a load among agents.
struct Division {
    /// Slots of each worker, by agent.
    slots: BTreeMap<String, Vec<Vec<u32>>>,
    /// Slots in all.
    of: u32,
    shares: AgentShares,
}

impl Division {
    fn new(plan: &Plan, agent_entries: &AgentEntries) -> Result<Division> {
        let units = units_of_work(plan);
        if units < agent_entries.len() as u64 {
            let what =
                if plan.websocket.rooms.is_some() { "rooms" } else { "users or connections" };
            bail!("{units} {what} are too few for {} agents", agent_entries.len());
        }
        let wanted: u64 =
            agent_entries.values().map(|agent_entry| u64::from(agent_entry.workers.max(1))).sum();
        // more workers than users or connections would be idle
        let workers_of = |workers: u32| if wanted > units { 1 } else { workers.max(1) };
        let mut weights = Vec::new();
        let known =
            agent_entries.values().all(|agent_entry| agent_entry.hello.calls_per_core > 0.0);
        for agent_entry in agent_entries.values() {
            let weight = if known { agent_entry.hello.calls_per_core } else { 1.0 };
            weights.extend((0..workers_of(agent_entry.workers)).map(|_| weight));
        }
        // a room is not divided, and all have the same share of the messages
        let rooms = plan.websocket.rooms.filter(|_| plan.is_websocket());
        let table = match rooms {
            Some(rooms) => SlotTable::even(rooms, weights.len() as u32),
            None => SlotTable::new(&weights),
        };
        let mut all = table.slots.into_iter();
        let slots: BTreeMap<String, Vec<Vec<u32>>> = agent_entries
            .iter()
            .map(|(agent, agent_entry)| {
                let count = workers_of(agent_entry.workers) as usize;
                (agent.clone(), all.by_ref().take(count).collect())
            })
            .collect();
        Ok(Division { shares: shares_of(&slots, table.of)?, slots, of: table.of })
    }

    fn token_counts(&self, plan: &Plan) -> TokenCounts {
        let counts = self.shares.iter();
        counts.map(|(agent, parts)| (agent.clone(), plan.token_count_of(parts))).collect()
    }
}

/// Sets the first instant; when all agents know it and their parts, they are started.
fn arm(wire: &mut Wire, division: Division) -> Result<(Nanos, AgentShares)> {
    let Division { slots, of, shares } = division;
    let start = net::reactor::monotonic() + wire.start_lead_time();
    wire.arm(slots, of, start);
    loop {
        match wire.event(POLL_INTERVAL) {
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
        if net::reactor::monotonic() > start {
            wire.stop(true);
            bail!("not every agent confirmed the start in time");
        }
    }
}

/// Returns the path counts of all agents; `None` if the plan has no path.
fn paths(finals: &BTreeMap<String, Final>) -> Result<Option<PathFacts>> {
    let texts = finals.values().filter_map(|report| report.path.as_deref());
    let read = |text: &str| serde_json::from_str(text).map(|path: PathRecord| path.facts());
    let all: Result<Vec<PathFacts>, _> = texts.map(read).collect();
    Ok(report::merged_paths(all.context("an agent's report on its path")?.into_iter()))
}

/// Fills in the costs of all agents.
fn add_cost(driver: &mut Driver, finals: &BTreeMap<String, Final>) {
    driver.busy = finals.values().flat_map(|report| report.busy.iter().copied()).collect();
    driver.cpu_user_s = finals.values().map(|report| report.user_s).sum();
    driver.cpu_system_s = finals.values().map(|report| report.system_s).sum();
}

/// Returns the machines and their parts, for the report.
fn facts(
    wire: &Wire,
    merge: &Merge,
    parts: &AgentShares,
    finals: &BTreeMap<String, Final>,
) -> FleetFacts {
    let mut agents = Vec::new();
    for (agent, agent_entry) in wire.agent_entries() {
        let report = finals.get(&agent).cloned().unwrap_or_default();
        let Some(account) = merge.account(&agent) else { continue };
        let labels = crate::merge::labels(&agent_entry.hello);
        // the slots of all agents are the whole load: a million arrivals show the share
        let of_million = |shares: &Vec<Share>| {
            shares.iter().map(|share| share.count_of(1_000_000)).sum::<u64>() as f64 / 1e6
        };
        agents.push(AgentFacts {
            host: agent_entry.hello.host,
            build: agent_entry.hello.build,
            labels,
            workers: parts.get(&agent).map_or(0, Vec::len) as u32,
            weight: parts.get(&agent).map_or(0.0, of_million),
            offered: report.offered.max(account.offered),
            lost: account.lost,
            lost_at_s: account.lost_at_s,
            ending: account.ending,
            p50: Nanos::from_secs_f64(report.p50_s),
            p99: Nanos::from_secs_f64(report.p99_s),
            slip_p99: Nanos::from_secs_f64(report.slip_p99_s),
            busy: report.busy.iter().copied().fold(0.0, f64::max),
            clock_ahead_s: agent_entry.ahead as f64 / 1e9,
            clock_bound: Nanos(agent_entry.bound),
            clock_drift_s: report.drift_s.unwrap_or(f64::NAN),
            first_call_s: report.first_s.unwrap_or(f64::NAN),
            state: report.state,
            causes: report.causes.into_iter().map(|cause| cause.id).collect(),
            id: agent,
        });
    }
    let (server, moved) = (wire.server_version(), merge.part_moves());
    let mut refused = wire.refused();
    finals.values().for_each(|report| refused.add(&report.refused));
    let RefusedMessages { foreign, late, replayed } = refused;
    let refused = RefusedFacts { foreign, late, replayed };
    FleetFacts { server, agents, moved, budgets: Vec::new(), refused }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_moved_parts_is_not_taken_over() {
        let holding = |hash: &str, of, taken| Holding {
            step: 1,
            hash: hash.to_owned(),
            slots: vec![vec![0]],
            of,
            taken,
            ..Holding::default()
        };
        let why =
            |second: Holding| why_not_adoptable([&holding("a", 3, 0), &second].into_iter(), "a");
        assert_eq!(why(holding("a", 3, 0)), None);
        assert!(why(holding("b", 3, 0)).unwrap().contains("another plan"));
        assert!(why(holding("a", PARTS_MAX + 1, 0)).unwrap().contains("parts of the load"));
        assert!(why(holding("a", 3, 1)).unwrap().contains("cannot be taken over"));
    }
}
