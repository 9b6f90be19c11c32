//! Runs plans in the simulated world.

use crate::tokens::TokenMachine;
use crate::world::{Server, SimIo, World};
use conduit::{Peer, Ready};
use engine::exchange::{Exchange, ExchangeOutcome, Pause, Request, Terms};
use engine::journey::Travel;
use engine::{
    Collector, Directory, Driven, Endpoint, Link, Order, Row, ScenarioWorkers, Setup, Share, Turn,
    Worker, endpoint_key,
};
use plan::Plan;
use sample::{CallRecord, ConnectionRecord, Ends, Sample, SessionRecord, TokenFacts};
use stats::{Measurement, Snapshot};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;
use workload::{Actor, Guide, Script};

/// Finished simulation.
#[derive(Debug)]
pub struct Simulated {
    pub measurement: Measurement,
    /// Every call, if the plan was run with a log.
    pub calls: Vec<(Sample, sample::Outcome)>,
    pub connections: Vec<ConnectionRecord>,
    pub sessions: Vec<SessionRecord>,
    /// Every byte that the clients sent, in order.
    pub sent: Vec<u8>,
    pub ended_at: Nanos,
    /// Error in a script, if one failed.
    pub broken: Option<String>,
    /// Counts of token requests, including those before the first due instant.
    pub tokens: TokenFacts,
    /// The reason why the run ended without a valid token.
    pub token_lost: Option<String>,
}

pub(crate) struct Bench {
    collector: Collector,
    calls: Vec<(Sample, sample::Outcome)>,
    ends: Ends,
    order: Order,
    /// Error of a script.
    broken: Option<String>,
    /// Transforms each row before the collector.
    carry: Option<Carry>,
}

/// Transformation of workers' rows, such as encoding them for another machine.
pub type Carry = Box<dyn FnMut(Row) -> Row>;

impl Bench {
    pub(crate) fn new(setup: &Arc<Setup>) -> Bench {
        Bench {
            collector: Collector::new(setup.clone()),
            calls: Vec::new(),
            ends: Ends::default(),
            order: Order::Go,
            broken: None,
            carry: None,
        }
    }

    /// Returns the result; `interrupted`: the run was stopped before its end.
    pub(crate) fn finish(self, interrupted: bool, ended_at: Nanos) -> Simulated {
        Simulated {
            measurement: self.collector.finish(interrupted),
            calls: self.calls,
            broken: self.broken,
            connections: self.ends.connections,
            sessions: self.ends.sessions,
            sent: Vec::new(),
            tokens: TokenFacts::default(),
            token_lost: None,
            ended_at,
        }
    }
}

impl Link for Bench {
    fn order(&mut self) -> Order {
        if self.order == Order::Go && self.collector.is_over() {
            self.order = Order::Stop;
        }
        self.order
    }

    fn row(&mut self, row: Row) -> Box<Snapshot> {
        let row = match &mut self.carry {
            Some(carry) => carry(row),
            None => row,
        };
        self.collector.add(row).0
    }

    fn report_script_failure(&mut self, text: String) {
        self.broken.get_or_insert(text);
    }

    fn log(&mut self, calls: &mut Vec<CallRecord>) {
        self.calls.extend(calls.drain(..).map(|call| (call.sample, call.outcome)));
    }

    fn ends(&mut self, ends: &mut Ends) {
        self.ends.connections.append(&mut ends.connections);
        self.ends.sessions.append(&mut ends.sessions);
    }
}

/// Returns the defaults of `run`, for one URL, as the basis of a test's plan.
pub fn plan_for(url: &str) -> Plan {
    let url = url::Url::parse(url).expect("a test's URL is well formed");
    Plan::for_url(url)
}

/// Start of every simulation: not zero, so that a forgotten offset is noticed.
const START: Nanos = Nanos::from_secs(1_000);

/// Runs a plan against a server, with `workers` workers and no link delay.
pub fn execute(plan: Plan, server: Box<dyn Server>, workers: u32) -> Simulated {
    execute_with(plan, World::new(server, Nanos::ZERO, START), workers, None)
}

/// Executes a plan in a world that the caller provides; `stop_after`: instant at which the run is
/// abandoned.
///
/// # Panics
/// Panics if the plan cannot be prepared: a test's plan is valid.
pub fn execute_with(
    plan: Plan,
    world: World,
    workers: u32,
    stop_after: Option<Nanos>,
) -> Simulated {
    let sources = (0..workers).map(|_| RequestSource::Plan).collect();
    run_to_its_end(plan, world, sources, stop_after)
}

/// Executes a plan with a worker for each of these parts of the load, whose rows go through
/// `carry`: a fleet of machines with one worker each.
///
/// # Panics
/// Panics if the plan cannot be prepared: a test's plan is valid.
pub fn execute_parts(plan: Plan, world: World, shares: Vec<Share>, carry: Carry) -> Simulated {
    let sources = shares.iter().map(|_| RequestSource::Plan).collect();
    run_parts(plan, world, sources, None, Some((shares, carry)))
}

/// Executes a plan with a worker for each script, which makes its requests.
///
/// # Panics
/// Panics if the plan cannot be prepared: a test's plan is valid.
pub fn execute_scripted(plan: Plan, world: World, scripts: Vec<Box<dyn Script>>) -> Simulated {
    run_to_its_end(plan, world, scripts.into_iter().map(RequestSource::Script).collect(), None)
}

/// Executes a plan with one worker whose users are guided; `directory` resolves their servers.
///
/// # Panics
/// Panics if the plan cannot be prepared: a test's plan is valid.
pub fn execute_guided(
    plan: Plan,
    world: World,
    guide: Box<dyn Guide>,
    directory: Box<dyn Directory>,
) -> Simulated {
    run_to_its_end(plan, world, vec![RequestSource::Guide(guide, directory)], None)
}

/// Executes a plan with `workers` workers whose users follow the plan's journeys; `given`: values
/// as from a setup.
///
/// # Panics
/// Panics if the plan has no journeys, or cannot be prepared: a test's plan is valid.
pub fn execute_journeys(
    plan: Plan,
    world: World,
    workers: u32,
    given: &BTreeMap<String, String>,
) -> Simulated {
    execute_acted(plan, world, workers, given, &|| Vec::new())
}

/// Executes a plan with journeys that programs carry out; `actors`: the programs of one worker, by
/// the rows of the journeys.
///
/// # Panics
/// Panics like [`execute_journeys`].
pub fn execute_acted(
    plan: Plan,
    world: World,
    workers: u32,
    given: &BTreeMap<String, String>,
    actors: &dyn Fn() -> Vec<Option<Box<dyn Actor>>>,
) -> Simulated {
    let travel = Travel::new(&plan, given).expect("the plan has journeys");
    let cast = |worker| {
        let guide = travel.guide_with(Share::new(worker, workers), actors());
        RequestSource::Guide(guide, Box::new(Nowhere))
    };
    let sources = (0..workers).map(cast).collect();
    run_to_its_end(plan, world, sources, None)
}

/// Directory without places except those of the plan.
#[derive(Debug)]
pub(crate) struct Nowhere;

impl Directory for Nowhere {
    fn endpoint(&mut self, _: &url::Url) -> Option<Endpoint> {
        None
    }
}

/// Source of a worker's requests.
enum RequestSource {
    Plan,
    Script(Box<dyn Script>),
    Guide(Box<dyn Guide>, Box<dyn Directory>),
}

fn run_to_its_end(
    plan: Plan,
    world: World,
    sources: Vec<RequestSource>,
    stop_after: Option<Nanos>,
) -> Simulated {
    run_parts(plan, world, sources, stop_after, None)
}

/// Runs the parts. `parts`: parts of the load, one for each worker, and the transformation of their
/// rows.
fn run_parts(
    plan: Plan,
    world: World,
    sources: Vec<RequestSource>,
    stop_after: Option<Nanos>,
    parts: Option<(Vec<Share>, Carry)>,
) -> Simulated {
    let workers = sources.len() as u32;
    let world = Rc::new(RefCell::new(world));
    let renewal = TokenMachine::new(&plan, &world, workers);
    let start = world.borrow().now();
    let endpoints = endpoints_of(&plan);
    let mut setup = Setup::new(plan, endpoints, workers, start).expect("a test's plan is valid");
    let mut carry = None;
    if let Some((shares, how)) = parts {
        setup = setup.with_shares(shares).expect("somebody has a part");
        carry = Some(how);
    }
    let opens = |source: &RequestSource| match source {
        RequestSource::Guide(guide, _) => guide.makes_simultaneous_calls(),
        RequestSource::Plan | RequestSource::Script(_) => false,
    };
    if sources.iter().any(opens) {
        setup.expect_sockets().expect("a test's plan is valid");
    }
    setup.logging.calls = true;
    setup.logging.ends = true;
    setup.tokens = renewal.as_ref().map(|machine| machine.tokens.clone());
    let setup = Arc::new(setup);
    let mut bench = Bench::new(&setup);
    bench.carry = carry;
    let runners: Vec<OnCore<Worker>> = (0..workers)
        .zip(sources)
        .map(|(id, cast)| {
            let worker = Worker::new(setup.clone(), id, None);
            let worker = match cast {
                RequestSource::Plan => worker,
                RequestSource::Script(script) => worker.with_script(script),
                RequestSource::Guide(guide, directory) => worker.with_guide(guide, directory),
            };
            (worker, SimIo { world: world.clone(), worker: id }, false)
        })
        .collect();
    end_of(runners, &world, bench, (stop_after, renewal))
}

/// Executes a plan with scenarios. Each of its loads has a worker on each of `cores` cores;
/// `given`: values as from a setup of its journeys, if it has any.
///
/// # Panics
/// Panics if the plan cannot be prepared: a test's plan is valid.
pub fn execute_scenarios(
    plan: Plan,
    world: World,
    cores: u32,
    given: &BTreeMap<String, String>,
) -> Simulated {
    let endpoints = endpoints_of(&plan);
    let world = Rc::new(RefCell::new(world));
    let renewal = TokenMachine::new(&plan, &world, cores);
    let setup = Setup::new(plan, endpoints, cores, world.borrow().now());
    let mut setup = setup.expect("a test's plan is valid");
    setup.tokens = renewal.as_ref().map(|machine| machine.tokens.clone());
    (setup.logging.calls, setup.logging.ends) = (true, true);
    let setup = Arc::new(setup);
    let lanes = setup.per_scenario().expect("a test's plan is valid");
    let scenario_workers = |core| {
        let worker = |lane: &Arc<Setup>| {
            let worker = Worker::new(lane.clone(), core, None);
            match Travel::new(&lane.plan, given) {
                Some(travel) => {
                    worker.with_guide(travel.guide(Share::new(core, cores)), Box::new(Nowhere))
                }
                None => worker,
            }
        };
        let scenario_workers = ScenarioWorkers::new(core, lanes.iter().map(worker).collect());
        (scenario_workers, SimIo { world: world.clone(), worker: core }, false)
    };
    let crews = (0..cores).map(scenario_workers).collect();
    end_of(crews, &world, Bench::new(&setup), (None, renewal))
}

/// A core's program, its driver, and a flag that is set when it is done.
type OnCore<D> = (D, SimIo, bool);

fn end_of<D: Driven>(
    mut runners: Vec<OnCore<D>>,
    world: &Rc<RefCell<World>>,
    mut bench: Bench,
    (stop_after, mut renewal): (Option<Nanos>, Option<TokenMachine>),
) -> Simulated {
    let start = world.borrow().now();
    let stop_at = stop_after.map_or(Nanos::NEVER, |span| start + span);
    loop {
        let now = world.borrow().now();
        if now >= stop_at {
            bench.order = Order::Abandon;
        }
        let renewed = renewal.as_mut().map_or(Nanos::NEVER, TokenMachine::turn);
        if renewal.as_ref().is_some_and(|machine| machine.tokens.lost(now).is_some()) {
            bench.order = Order::Stop;
        }
        let Some(wake) = run_one_turn(&mut runners, &mut bench) else { break };
        let wake = wake.min(renewed);
        let is_handled = renewal.as_mut().is_some_and(TokenMachine::handle);
        if !handle_all(&mut runners, world) && !is_handled {
            let next = world.borrow().next_event();
            world.borrow_mut().advance(next.min(wake).min(stop_at.max(now + Nanos(1))));
        }
    }
    let mut world = world.borrow_mut();
    let sent = std::mem::take(&mut world.sent);
    let tokens = renewal.as_ref().map(|machine| machine.tokens.clone());
    let token_lost = tokens.as_ref().and_then(|tokens| tokens.lost(world.now()));
    let tokens = tokens.map_or_else(TokenFacts::default, |tokens| tokens.take_facts());
    Simulated {
        sent,
        tokens,
        token_lost,
        ..bench.finish(stop_after.is_some(), world.now() - start)
    }
}

/// Returns events that are ready now; if there are none, the clock advances to the next event, at
/// most to `wake`.
pub(crate) fn drive_ready(world: &Rc<RefCell<World>>, wake: Nanos) -> Vec<Ready> {
    let now = world.borrow().now();
    world.borrow_mut().advance(now);
    let ready = world.borrow_mut().take_ready(0);
    if ready.is_empty() {
        let next = world.borrow().next_event();
        world.borrow_mut().advance(next.min(wake));
    }
    ready
}

/// Sends requests together in the simulated world; returns the responses and the duration.
pub fn exchange(
    world: World,
    requests: Vec<Request>,
    connect: Nanos,
) -> (Vec<ExchangeOutcome>, Nanos) {
    exchange_with_terms(world, requests, connect, Terms::default())
}

/// Like [`exchange`], with these settings.
pub fn exchange_with_terms(
    world: World,
    requests: Vec<Request>,
    connect: Nanos,
    terms: Terms,
) -> (Vec<ExchangeOutcome>, Nanos) {
    let start = world.now();
    let world = Rc::new(RefCell::new(world));
    let mut io = SimIo { world: world.clone(), worker: 0 };
    let mut machine = Exchange::new(requests, connect, None).with_terms(terms);
    while let Pause::Until(wake) = machine.turn(&mut io) {
        for event in drive_ready(&world, wake) {
            machine.handle(&mut io, event);
        }
    }
    let took = world.borrow().now() - start;
    (machine.finish(), took)
}

/// Runs one turn of every worker; returns the earliest wake-up, or `None` when all are done.
fn run_one_turn<D: Driven>(runners: &mut [OnCore<D>], bench: &mut Bench) -> Option<Nanos> {
    let mut wake = None;
    for (worker, io, done) in runners.iter_mut().filter(|(_, _, done)| !done) {
        match worker.turn(io, bench) {
            Turn::Wait(until) => wake = Some(wake.map_or(until, |at: Nanos| at.min(until))),
            Turn::Done => *done = true,
        }
    }
    wake
}

/// Passes pending readiness to the workers; returns false if there was none.
fn handle_all<D: Driven>(runners: &mut [OnCore<D>], world: &Rc<RefCell<World>>) -> bool {
    let now = world.borrow().now();
    // events at this very instant, before time moves
    world.borrow_mut().advance(now);
    let mut any = false;
    for (worker, io, _) in runners {
        let ready = world.borrow_mut().take_ready(io.worker);
        for event in engine::ends_first(&ready) {
            any = true;
            worker.handle(io, *event);
        }
    }
    any
}

pub(crate) fn endpoints_of(plan: &Plan) -> Vec<Endpoint> {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for target in &plan.targets {
        let key = endpoint_key(&target.url);
        if endpoints.iter().all(|endpoint| endpoint.key != key) {
            let peers = vec![Peer::Tcp(([127, 0, 0, 1], 1).into())];
            endpoints.push(Endpoint { key, peers, tls_name: None, tunnel: None, absolute: false });
        }
    }
    endpoints
}
