//! Thousands of agents in virtual time: how long they take to join, the spread of their starts, and
//! the manager's load, over a network that loses rows and with clocks that are wrong and drift.
//! docs/design/fleet.md has the figures.

use fleet::protocol::agent::{Agent, AgentAction, ReadyFacts};
use fleet::protocol::manager::{AgentStage, FleetEvent, Manager, Post};
use fleet::protocol::message::{self, Final, FromAgent, Hello, ManagerMessage, ToAgent};
use fleet::protocol::row::{RowHead, encode};
use fleet::protocol::slots::SlotTable;
use fleet::protocol::stamp::Stamped;
use fleet::protocol::{BEAT, PROTOCOL};
use stats::Snapshot;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use units::{Nanos, Purpose, Seed, Stream};

const MS: u64 = 1_000_000;
/// Number of rows of the step, one per second.
const ROWS: u64 = 5;
/// Maximum drift between two clocks, in parts per million.
const DRIFT_PPM: f64 = 100.0;
/// Interval of the manager's thread.
const TURN: Nanos = Nanos::from_millis(50);

/// An event, ordered by its instant.
enum Event {
    Agent(usize),
    Row(usize),
    Manager,
    Up(usize, Stamped<FromAgent>),
    UpRow(usize, Vec<u8>),
    Down(usize, Stamped<ToAgent>),
    All(usize, std::rc::Rc<ManagerMessage>),
}

struct Member {
    agent: Agent,
    ahead: f64,
    speed: f64,
    /// The first instant by its own clock, and the rows that are sent.
    run: Option<(Nanos, u64)>,
    started: Option<Nanos>,
}

impl Member {
    /// Returns the reading of its clock at `now`; `true_time` is the inverse.
    fn own(&self, now: Nanos) -> Nanos {
        Nanos((now.0 as f64 * self.speed + self.ahead) as u64)
    }

    fn true_time(&self, own: Nanos) -> Nanos {
        Nanos(((own.0 as f64 - self.ahead) / self.speed) as u64)
    }
}

/// Messages that the manager received in a phase.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    messages: u64,
    bytes: u64,
}

struct Crowd {
    now: Nanos,
    dice: Stream,
    loss: f64,
    delay_ms: f64,
    manager: Manager,
    members: Vec<Member>,
    queue: BinaryHeap<Reverse<(Nanos, u64)>>,
    waiting: BTreeMap<u64, Event>,
    number: u64,
    ready: bool,
    going: bool,
    rows: u64,
    rows_lost: u64,
    heard: Heard,
}

fn id(row: usize) -> String {
    format!("A{row:05}")
}

impl Crowd {
    fn new(agents: usize, loss: f64, delay_ms: f64) -> Crowd {
        let now = Nanos::from_secs(100_000);
        let mut dice = Seed(11).stream(Purpose::Arrivals, 0);
        let members = (0..agents)
            .map(|row| {
                let speed = 1.0 + (dice.unit() - 0.5) * DRIFT_PPM * 1e-6;
                let ahead = (dice.unit() - 0.5) * 7.2e12;
                let hello = Hello { protocol: PROTOCOL, host: id(row), ..Hello::default() };
                let own = Nanos((now.0 as f64 * speed + ahead) as u64);
                let agent = Agent::new(&id(row), hello, own);
                Member { agent, ahead, speed, run: None, started: None }
            })
            .collect();
        let manager = Manager::new(1, agents, now);
        let mut crowd = Crowd {
            now,
            dice,
            loss,
            delay_ms,
            manager,
            members,
            queue: BinaryHeap::new(),
            waiting: BTreeMap::new(),
            number: 0,
            ready: false,
            going: false,
            rows: 0,
            rows_lost: 0,
            heard: Heard::default(),
        };
        crowd.at(now, Event::Manager);
        for row in 0..agents {
            // they are started within a second
            let at = now + Nanos((crowd.dice.unit() * 1e9) as u64);
            crowd.at(at, Event::Agent(row));
        }
        crowd
    }

    fn at(&mut self, at: Nanos, event: Event) {
        self.number += 1;
        self.queue.push(Reverse((at, self.number)));
        self.waiting.insert(self.number, event);
    }

    /// Returns the arrival of a message sent now: delays are usually short, occasionally very long,
    /// and never the same in both directions.
    fn way(&mut self) -> Nanos {
        let long = if self.dice.unit() < 0.01 { 20.0 } else { 1.0 };
        self.now + Nanos((self.delay_ms * (0.5 + self.dice.unit()) * long * MS as f64) as u64)
    }

    fn until(&mut self, limit: Nanos, what: impl Fn(&Crowd) -> bool) {
        let end = self.now + limit;
        while !what(self) {
            let Some(Reverse((at, number))) = self.queue.pop() else { panic!("nothing happens") };
            assert!(at < end, "waited for {limit:?}");
            self.now = at;
            if let Some(event) = self.waiting.remove(&number) {
                self.happen(event);
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Manager => {
                self.manager.tick(self.now);
                self.at(self.now + TURN, Event::Manager);
            }
            Event::Up(row, content) => {
                self.count(message::write(&content).len());
                self.manager.receive(&id(row), content, self.now);
            }
            Event::UpRow(row, bytes) => {
                self.count(bytes.len());
                self.manager.row(&id(row), bytes, self.now);
            }
            Event::Down(row, payload) => {
                let own = self.members[row].own(self.now);
                self.members[row].agent.receive(payload, own);
                self.follow(row);
            }
            Event::All(row, command) => {
                let own = self.members[row].own(self.now);
                self.members[row].agent.commanded(&command, own);
                self.follow(row);
            }
            Event::Agent(row) => {
                let own = self.members[row].own(self.now);
                self.members[row].agent.tick(own);
                self.follow(row);
                let next = self.members[row].agent.next_at();
                let at = self.members[row].true_time(next).max(self.now + Nanos(MS));
                self.at(at.min(self.now + BEAT), Event::Agent(row));
            }
            Event::Row(row) => self.row(row),
        }
        self.post();
    }

    fn count(&mut self, bytes: usize) {
        self.heard.messages += 1;
        self.heard.bytes += bytes as u64;
    }

    fn post(&mut self) {
        while let Some(post) = self.manager.post() {
            match post {
                Post::All(command) => {
                    let command = std::rc::Rc::new(command);
                    for row in 0..self.members.len() {
                        let at = self.way();
                        self.at(at, Event::All(row, command.clone()));
                    }
                }
                Post::One(agent, content) => {
                    let row = agent[1..].parse().expect("the number of an agent");
                    let at = self.way();
                    self.at(at, Event::Down(row, content));
                }
            }
        }
        while let Some(event) = self.manager.event() {
            match event {
                FleetEvent::Ready => self.ready = true,
                FleetEvent::Going => self.going = true,
                FleetEvent::Row(..) => self.rows += 1,
                FleetEvent::Lost(..) | FleetEvent::StoodDown(..) | FleetEvent::Unfit(..) => {
                    panic!("{event:?}")
                }
                _ => {}
            }
        }
    }

    /// Sends the next row of an agent's load.
    fn row(&mut self, row: usize) {
        let member = &mut self.members[row];
        let Some((start, sent)) = member.run else { return };
        let last = sent + 1 == ROWS;
        let head = RowHead { run: 1, step: 1, number: sent, last, ..RowHead::default() };
        member.agent.row(encode(&head, &Snapshot::default()));
        member.run = Some((start, sent + 1));
        if last {
            let own = member.own(self.now);
            member.agent.report_end(Final::default(), own);
        } else {
            let next = member.true_time(start + Nanos(Nanos::SECOND.0 * (sent + 2)));
            self.at(next, Event::Row(row));
        }
        self.follow(row);
    }

    fn follow(&mut self, row: usize) {
        while let Some(action) = self.members[row].agent.next_action() {
            match action {
                AgentAction::Say(content) => {
                    let at = self.way();
                    self.at(at, Event::Up(row, content));
                }
                AgentAction::Row(bytes) => {
                    if self.dice.unit() < self.loss {
                        self.rows_lost += 1;
                        continue;
                    }
                    let at = self.way();
                    self.at(at, Event::UpRow(row, bytes));
                }
                AgentAction::Prepare { step, hash, .. } => {
                    let facts = ReadyFacts { hash: hash.clone(), workers: 1, rate_peak: None };
                    self.members[row].agent.prepared(step, &hash, Ok(facts));
                }
                AgentAction::Run { start, .. } => {
                    let member = &mut self.members[row];
                    let at = member.true_time(start);
                    (member.run, member.started) = (Some((start, 0)), Some(at));
                    let first = member.true_time(start + Nanos::SECOND);
                    self.at(first, Event::Row(row));
                }
                AgentAction::Stop
                | AgentAction::Abandon
                | AgentAction::Cease { .. }
                | AgentAction::Take { .. } => {}
                AgentAction::Exit { why, .. } => panic!("{why}"),
            }
        }
    }

    /// Runs from start to end; returns the observations.
    fn live(&mut self) -> Seen {
        let begin = self.now;
        self.until(Nanos::from_secs(30), |crowd| crowd.manager.complete());
        let joined = self.now - begin;
        // the clocks are compared for two seconds
        let later = self.now + Nanos::from_secs(3);
        self.until(Nanos::from_secs(4), |crowd| crowd.now >= later);
        let agents: Vec<String> = self.manager.agent_entries().keys().cloned().collect();
        let sealed = agents.iter().map(|agent| (agent.clone(), vec![7; 2_000])).collect();
        let asked = self.now;
        self.manager.prepare("hash", &sealed);
        self.until(Nanos::from_secs(30), |crowd| crowd.ready);
        let table = SlotTable::new(&vec![1.0; agents.len()]);
        let slots = agents.iter().cloned().zip(table.slots.into_iter().map(|slots| vec![slots]));
        let lead = self.manager.start_lead_time();
        let start = self.now + lead;
        self.manager.arm(slots.collect(), table.of, start);
        self.until(lead, |crowd| crowd.going);
        assert!(self.now - asked < lead, "the start is confirmed before it comes");
        self.until(lead + lead, |crowd| crowd.now >= start);
        let before = self.heard;
        let end = start + Nanos::from_secs(ROWS - 1);
        self.until(Nanos::from_secs(ROWS), |crowd| crowd.now >= end);
        let span = (ROWS - 1) as f64;
        let messages_per_s = (self.heard.messages - before.messages) as f64 / span;
        self.until(Nanos::from_secs(30), |crowd| {
            crowd
                .manager
                .agent_entries()
                .values()
                .all(|agent_entry| agent_entry.stage == AgentStage::Over)
        });
        let mut errors = Vec::new();
        for (row, member) in self.members.iter().enumerate() {
            let bound = self.manager.agent_entries()[&id(row)].bound;
            let off = member.started.expect("it started").0.abs_diff(start.0);
            // a clock continues to drift between its last exchange and the start
            let since = (lead.0 + 10 * Nanos::SECOND.0) as f64 * DRIFT_PPM * 1e-6;
            assert!(off as f64 <= bound as f64 + since, "{row}: {off} {bound}");
            errors.push(off);
        }
        errors.sort_unstable();
        let at = |share: f64| Nanos(errors[((errors.len() - 1) as f64 * share) as usize]);
        Seen { joined, messages_per_s, error_p50: at(0.5), error_max: at(1.0) }
    }
}

#[derive(Debug)]
struct Seen {
    joined: Nanos,
    messages_per_s: f64,
    error_p50: Nanos,
    error_max: Nanos,
}

fn check(agents: usize, loss: f64, delay_ms: f64) -> Seen {
    let mut crowd = Crowd::new(agents, loss, delay_ms);
    let seen = crowd.live();
    assert_eq!(crowd.rows, agents as u64 * ROWS, "each row once");
    assert!(loss == 0.0 || crowd.rows_lost > 0);
    assert!(seen.joined < Nanos::from_secs(3), "{seen:?}");
    // a row and two heartbeats a second, repeated requests, and time requests, whose number does
    // not grow with the agents
    let (usual, questions) = (agents as f64 * 3.0, 2_000.0);
    assert!((usual * 0.9..usual * 1.5 + questions).contains(&seen.messages_per_s), "{seen:?}");
    seen
}

#[test]
fn a_thousand_agents_start_together_and_lose_no_row() {
    let seen = check(1_000, 0.02, 1.0);
    assert!(seen.error_p50 < Nanos::from_micros(500), "{seen:?}");
    assert!(seen.error_max < Nanos::from_millis(2), "{seen:?}");
}
