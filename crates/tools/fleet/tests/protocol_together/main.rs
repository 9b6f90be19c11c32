//! Manager and agents in virtual time, with a network between them that loses, delays, duplicates
//! and reorders messages, and clocks that differ.

#[path = "crowd.rs"]
mod crowd;
#[path = "losses.rs"]
mod losses;
#[path = "replays.rs"]
mod replays;

use fleet::protocol::agent::{Agent, AgentAction, ReadyFacts};
use fleet::protocol::manager::{AgentStage, FleetEvent, Manager, Post};
use fleet::protocol::message::{
    Final, FromAgent, Hello, ManagerMessage, PartEnding, ToAgent, What,
};
use fleet::protocol::row::{RowHead, encode};
use fleet::protocol::slots::SlotTable;
use fleet::protocol::stamp::{Stamp, Stamped};
use fleet::protocol::{DEAD_MAN, LOST_AFTER, PROTOCOL};
use stats::Snapshot;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Nanos, Purpose, Seed, Stream};
use workload::schedule::Share;

const MS: u64 = 1_000_000;
/// Number of rows of a step, one per tenth of a second.
const ROWS: u64 = 30;

#[derive(Clone)]
enum InFlight {
    Up(usize, Stamped<FromAgent>),
    Row(usize, Vec<u8>),
    Down(usize, Stamped<ToAgent>),
    All(usize, ManagerMessage),
}

/// Agent with its clock and a load that sends occasional rows.
struct Member {
    agent: Agent,
    /// Difference between its clock and the manager's.
    ahead: i64,
    run: Option<(Nanos, u64)>,
    /// The manager that started the current run.
    of: u64,
    /// Instant at which it must end, by its own clock.
    ceased: Option<Nanos>,
    stopped: bool,
    shares: Vec<Share>,
    started: Option<Nanos>,
    cut_off: bool,
    /// True if it receives messages, but its own are lost.
    mute: bool,
    /// Parts of other agents that it has taken over, with the time after the start.
    taken: Vec<(Share, Nanos)>,
    exit: Option<String>,
}

struct World {
    now: Nanos,
    dice: Stream,
    loss: f64,
    manager: Manager,
    members: Vec<Member>,
    messages_in_flight: Vec<(Nanos, InFlight)>,
    /// All sent messages.
    recorded: Vec<InFlight>,
    events: Vec<FleetEvent>,
    manager_alive: bool,
}

/// Numbers of messages that no machine has sent.
static NUMBER: AtomicU64 = AtomicU64::new(1);

fn number() -> u64 {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Returns a manager's message about its own run.
fn word(epoch: u64, at: Nanos, what: What) -> ManagerMessage {
    let (run, number) = (epoch, number());
    ManagerMessage { epoch, run, number, at: at.0, unheard: Vec::new(), what }
}

/// Returns a manager's message to a process without a session, about its own run.
fn to_agent(content: ToAgent) -> Stamped<ToAgent> {
    Stamped { stamp: Stamp { session: 0, run: content.epoch(), number: number() }, content }
}

/// Returns a message of a process without a session about a run.
fn of_run(run: u64, content: FromAgent) -> Stamped<FromAgent> {
    Stamped { stamp: Stamp { session: 0, run, number: number() }, content }
}

/// Lets an agent send a hello, and another with the requested proof.
fn join(manager: &mut Manager, agent: &str, hello: Hello, now: Nanos) {
    let mut hello = hello;
    for _ in 0..2 {
        manager.receive(agent, of_run(0, FromAgent::Hello(hello.clone())), now);
        let asked = std::iter::from_fn(|| manager.post()).find_map(|post| match post {
            Post::One(_, Stamped { content: ToAgent::Prove { proof, .. }, .. }) => Some(proof),
            _ => None,
        });
        hello.proof = asked.unwrap_or(hello.proof);
    }
}

fn name(row: usize) -> String {
    format!("A{row}")
}

impl World {
    fn new(agents: usize, loss: f64, seed: u64) -> World {
        let now = Nanos::from_secs(1_000);
        let member = |row: usize| {
            let ahead = (row as i64 - 1) * 77_000_000_000;
            let hello = Hello { protocol: PROTOCOL, host: name(row), ..Hello::default() };
            let own = Nanos(now.0.saturating_add_signed(ahead));
            Member {
                agent: Agent::new(&name(row), hello, own),
                ahead,
                run: None,
                of: 0,
                ceased: None,
                stopped: false,
                shares: Vec::new(),
                started: None,
                cut_off: false,
                mute: false,
                taken: Vec::new(),
                exit: None,
            }
        };
        World {
            now,
            dice: Seed(seed).stream(Purpose::Arrivals, 0),
            loss,
            manager: Manager::new(7, agents, now),
            members: (0..agents).map(member).collect(),
            messages_in_flight: Vec::new(),
            recorded: Vec::new(),
            events: Vec::new(),
            manager_alive: true,
        }
    }

    fn post(&mut self, message_in_flight: InFlight) {
        self.recorded.push(message_in_flight.clone());
        let copies = if self.dice.unit() < self.loss {
            0
        } else {
            1 + u64::from(self.dice.unit() < self.loss)
        };
        let at = Nanos(self.now.0 + (1.0 + 9.0 * self.dice.unit()) as u64 * MS);
        match message_in_flight {
            InFlight::Row(row, bytes) => {
                (0..copies).for_each(|_| {
                    self.messages_in_flight.push((at, InFlight::Row(row, bytes.clone())))
                });
            }
            // only the state machines repeat anything but rows: the server between them loses
            // nothing while both are connected
            other => self.messages_in_flight.push((at, other)),
        }
    }

    /// Advances time by a millisecond.
    fn step(&mut self) {
        self.now = Nanos(self.now.0 + MS);
        let (due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.messages_in_flight)
            .into_iter()
            .partition(|(at, _)| *at <= self.now);
        self.messages_in_flight = later;
        for (_, message_in_flight) in due {
            self.deliver(message_in_flight);
        }
        if self.manager_alive {
            self.manager.tick(self.now);
            while let Some(post) = self.manager.post() {
                match post {
                    Post::All(command) => (0..self.members.len())
                        .for_each(|row| self.post(InFlight::All(row, command.clone()))),
                    Post::One(agent, content) => {
                        let row = agent[1..].parse().expect("the number of an agent");
                        self.post(InFlight::Down(row, content));
                    }
                }
            }
            while let Some(event) = self.manager.event() {
                self.events.push(event);
            }
        }
        (0..self.members.len()).for_each(|row| self.member(row));
    }

    fn deliver(&mut self, message_in_flight: InFlight) {
        let own = |member: &Member, now: Nanos| Nanos(now.0.saturating_add_signed(member.ahead));
        match message_in_flight {
            InFlight::Up(row, _)
            | InFlight::Row(row, _)
            | InFlight::Down(row, _)
            | InFlight::All(row, _)
                if self.members[row].cut_off => {}
            InFlight::Up(row, _) | InFlight::Row(row, _) if self.members[row].mute => {}
            InFlight::Up(_, _) | InFlight::Row(_, _) if !self.manager_alive => {}
            InFlight::Up(row, content) => self.manager.receive(&name(row), content, self.now),
            InFlight::Row(row, bytes) => self.manager.row(&name(row), bytes, self.now),
            InFlight::Down(row, payload) => {
                let now = own(&self.members[row], self.now);
                self.members[row].agent.receive(payload, now);
            }
            InFlight::All(row, command) => {
                let now = own(&self.members[row], self.now);
                self.members[row].agent.commanded(&command, now);
            }
        }
    }

    fn member(&mut self, row: usize) {
        let member = &mut self.members[row];
        let now = Nanos(self.now.0.saturating_add_signed(member.ahead));
        member.agent.tick(now);
        if let Some((start, sent)) = member.run
            && now.0 >= start.0 + (sent + 1) * 100 * MS
        {
            let last = sent + 1 == ROWS || member.stopped;
            let (run, number) = (member.of, sent);
            let head = RowHead { run, step: 1, number, last, ..RowHead::default() };
            member.agent.row(encode(&head, &Snapshot::default()));
            member.run = if last { None } else { Some((start, sent + 1)) };
            if last {
                member.agent.report_end(Final::default(), now);
            }
        }
        while let Some(action) = self.members[row].agent.next_action() {
            let member = &mut self.members[row];
            match action {
                AgentAction::Say(content) => self.post(InFlight::Up(row, content)),
                AgentAction::Row(bytes) => self.post(InFlight::Row(row, bytes)),
                AgentAction::Prepare { step, hash, sealed } => {
                    assert_eq!((hash.as_str(), sealed.len()), ("hash", 300_000));
                    let rate_peak = Some(600.0);
                    let facts = ReadyFacts { hash: hash.clone(), workers: 2, rate_peak };
                    member.agent.prepared(step, &hash, Ok(facts));
                }
                AgentAction::Run { run, shares, start, .. } => {
                    member.of = run;
                    member.shares = shares;
                    member.run = Some((start, 0));
                    member.started = Some(Nanos(start.0.saturating_add_signed(-member.ahead)));
                }
                AgentAction::Take { parts, from } => {
                    let parts = parts.into_iter().flatten();
                    member.taken.extend(parts.map(|part| (part, from)));
                }
                AgentAction::Cease { at } => member.ceased = Some(at),
                AgentAction::Stop | AgentAction::Abandon => member.stopped = true,
                AgentAction::Exit { why, .. } => member.exit = Some(why),
            }
        }
    }

    fn until(&mut self, limit: Nanos, what: impl Fn(&World) -> bool) {
        let end = self.now + limit;
        while !what(self) {
            assert!(self.now < end, "waited for {limit:?}: {:?}", self.manager.agent_entries());
            self.step();
        }
    }

    /// Lets all agents join, prepare and start; returns the start.
    fn go(&mut self) -> Nanos {
        self.until(Nanos::from_secs(20), |world| world.manager.complete());
        let sealed = self.manager.agent_entries().keys().map(|id| (id.clone(), vec![7; 300_000]));
        let sealed: BTreeMap<String, Vec<u8>> = sealed.collect();
        self.manager.prepare("hash", &sealed);
        self.until(Nanos::from_secs(20), |world| world.events.contains(&FleetEvent::Ready));
        let count = self.members.len() * 2;
        let table = SlotTable::new(&vec![1.0; count]);
        let slots = (0..self.members.len())
            .map(|row| (name(row), table.slots[2 * row..2 * row + 2].to_vec()))
            .collect();
        let start = self.now + Nanos::from_secs(2);
        self.manager.arm(slots, table.of, start);
        self.until(Nanos::from_secs(2), |world| world.events.contains(&FleetEvent::Going));
        start
    }

    fn rows_of(&self, row: usize) -> Vec<u64> {
        let rows = self.events.iter().filter_map(|event| match event {
            FleetEvent::Row(agent, bytes) if *agent == name(row) => {
                Some(fleet::protocol::row::head(bytes).expect("a row").number)
            }
            _ => None,
        });
        rows.collect()
    }
}

#[test]
fn rows_arrive_complete_and_ordered_at_20_percent_loss() {
    for seed in 1..=5 {
        let mut world = World::new(4, 0.2, seed);
        let start = world.go();
        let over = |world: &World| {
            world
                .manager
                .agent_entries()
                .values()
                .all(|agent_entry| agent_entry.stage == AgentStage::Over)
        };
        world.until(Nanos::from_secs(20), over);
        for (row, member) in world.members.iter().enumerate() {
            assert_eq!(world.rows_of(row), (0..ROWS).collect::<Vec<_>>());
            // every agent starts within the bound, although its clock is off by minutes
            let off = member.started.unwrap().0.abs_diff(start.0);
            let agent_entry = &world.manager.agent_entries()[&name(row)];
            assert!(off <= agent_entry.bound, "{off} {}", agent_entry.bound);
            assert!(agent_entry.bound <= 10 * MS, "{}", agent_entry.bound);
        }
        let sum: u64 =
            world.members.iter().flat_map(|one| &one.shares).map(|one| one.count_of(999)).sum();
        assert_eq!(sum, 999);
    }
}

#[test]
fn an_agent_without_its_manager_stops_by_itself() {
    let mut world = World::new(2, 0.0, 1);
    let start = world.go();
    world.until(Nanos::from_secs(5), |world| world.now > start);
    world.manager_alive = false;
    let from = world.now;
    // the load would continue for three seconds: keep it longer
    world.members.iter_mut().for_each(|member| member.run = Some((Nanos(u64::MAX / 2), 0)));
    world.until(Nanos::from_secs(9), |world| world.members.iter().all(|member| member.stopped));
    let took = world.now - from;
    assert!(took > Nanos(DEAD_MAN.0 - 500 * MS) && took < Nanos(DEAD_MAN.0 + 500 * MS), "{took:?}");
    world.members.iter_mut().for_each(|member| {
        let now = Nanos(world.now.0.saturating_add_signed(member.ahead));
        member.agent.report_end(Final::default(), now);
        let ending =
            std::iter::from_fn(|| member.agent.next_action()).find_map(|action| match action {
                AgentAction::Say(Stamped { content: FromAgent::Final(end), .. }) => {
                    Some(end.ending)
                }
                _ => None,
            });
        assert_eq!(ending, Some(PartEnding::DeadMan));
    });
    // its counts are kept for a manager that replaces the silent one
    let limit = Nanos::from_secs(620);
    world.until(limit, |world| world.members.iter().all(|member| member.exit.is_some()));
}

#[test]
fn a_disconnected_agent_is_lost_after_6_s_and_its_rows_follow() {
    let mut world = World::new(3, 0.05, 3);
    let start = world.go();
    world.until(Nanos::from_secs(5), |world| world.now > start + Nanos::from_millis(500));
    world.members[1].cut_off = true;
    let from = world.now;
    let lost = |world: &World| {
        world
            .events
            .iter()
            .any(|event| matches!(event, FleetEvent::Lost(agent, _) if agent == "A1"))
    };
    world.until(Nanos::from_secs(9), lost);
    let took = world.now - from;
    assert!(took > Nanos(LOST_AFTER.0 - 600 * MS) && took < Nanos(LOST_AFTER.0 + 600 * MS));
    assert!(world.rows_of(1).len() < ROWS as usize);
    world.members[1].cut_off = false;
    world.until(Nanos::from_secs(9), |world| {
        world.manager.agent_entries()["A1"].stage == AgentStage::Over
    });
    assert!(world.events.contains(&FleetEvent::Back("A1".into())));
    assert_eq!(world.rows_of(1), (0..ROWS).collect::<Vec<_>>());
}

#[test]
fn a_late_start_message_cancels_the_start() {
    let mut world = World::new(1, 0.0, 1);
    world.until(Nanos::from_secs(20), |world| world.manager.complete());
    let sealed = BTreeMap::from([(name(0), vec![7; 300_000])]);
    world.manager.prepare("hash", &sealed);
    world.until(Nanos::from_secs(20), |world| world.events.contains(&FleetEvent::Ready));
    let start = world.now + Nanos::from_millis(200);
    world.manager.arm(BTreeMap::from([(name(0), vec![vec![0]])]), 1, start);
    let down =
        |world: &World| world.events.iter().any(|event| matches!(event, FleetEvent::StoodDown(..)));
    world.until(Nanos::from_secs(1), down);
    assert!(world.members[0].run.is_none());
}

#[test]
fn another_protocol_a_full_fleet_an_older_manager_are_refused() {
    let now = Nanos::from_secs(5);
    let mut manager = Manager::new(3, 1, now);
    let hello = |protocol| FromAgent::Hello(Hello { protocol, ..Hello::default() });
    let refusal = |manager: &mut Manager| {
        std::iter::from_fn(|| manager.post()).find_map(|post| match post {
            Post::One(_, Stamped { content: ToAgent::Refused { why, .. }, .. }) => Some(why),
            _ => None,
        })
    };
    manager.receive("A0", of_run(0, hello(PROTOCOL + 1)), now);
    assert!(refusal(&mut manager).unwrap().contains("the same version of loadstone"));
    join(&mut manager, "A0", Hello { protocol: PROTOCOL, ..Hello::default() }, now);
    assert!(manager.complete());
    manager.receive("A1", of_run(0, hello(PROTOCOL)), now);
    assert!(refusal(&mut manager).unwrap().contains("has its 1 agents"));

    let mut agent = Agent::new("A0", Hello::default(), now);
    let command = |epoch| word(epoch, now, What::Disband { why: "end".into() });
    agent.receive(to_agent(ToAgent::Welcome { epoch: 3, agents: 1 }), now);
    agent.commanded(&command(2), now);
    assert_eq!(agent.next_action(), None);
    agent.commanded(&command(4), now);
    assert_eq!(agent.next_action(), Some(AgentAction::Abandon));
}

#[test]
fn another_managers_run_is_neither_ended_nor_taken_for_ours() {
    let now = Nanos::from_secs(5);
    let mut manager = Manager::new(3, 1, now);
    join(&mut manager, "A0", Hello { protocol: PROTOCOL, ..Hello::default() }, now);
    let ended =
        |run| of_run(run, FromAgent::Final(Box::new(Final { step: 1, ..Final::default() })));
    let dismisses = |manager: &mut Manager| {
        std::iter::from_fn(|| manager.post())
            .any(|post| matches!(post, Post::All(word) if word.what == (What::Done { step: 1 })))
    };
    manager.receive("A0", ended(2), now);
    assert!(!dismisses(&mut manager));
    let sealed = BTreeMap::from([("A0".to_owned(), vec![7])]);
    manager.prepare("hash", &sealed);
    manager.receive("A0", ended(2), now);
    assert_eq!(manager.agent_entries()["A0"].content, None);
    assert!(!dismisses(&mut manager));
    manager.prepare("hash", &sealed);
    manager.receive("A0", ended(2), now);
    assert!(!dismisses(&mut manager));
    manager.receive("A0", ended(3), now);
    assert!(dismisses(&mut manager));
    assert_eq!(manager.refused().late, 4);
}
