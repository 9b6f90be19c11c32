//! The manager as a state machine: present, ready and silent agents, and missing rows.

use crate::protocol::message::{
    AgentStatus, Final, FromAgent, FromWatch, Hello, Holding, ManagerMessage, Status, ToAgent,
    WatchHello, What,
};
use crate::protocol::row;
use crate::protocol::stamp::{NumberWindow, RefusedMessages, Stamp, Stamped};
use crate::protocol::{BEAT, DEAD_MAN, LOST_AFTER, PROTOCOL, SUSPECT_AFTER};
use sample::SutSeries;
use std::collections::{BTreeMap, VecDeque};
use units::Nanos;

/// Bytes of a plan in one message: two digits a byte, and well below a server's limit of 1 MiB.
pub const PART_BYTES: usize = 128 << 10;
/// Maximum number of rows of one agent that wait for an earlier one: those of an hour.
const HELD_MAX: usize = 4_096;
/// A gap is requested again after this time.
const RESEND_PAUSE: Nanos = Nanos::from_millis(500);
/// The start is at least this far ahead, plus this much per agent.
const LEAD_MIN: Nanos = Nanos::from_millis(1_000);
const LEAD_PER_AGENT: Nanos = Nanos::from_micros(500);
/// Minimum time to the start in shortest round trips, within bounds; a more distant agent cannot
/// start in time with the others.
const LEAD_WAYS: u64 = 50;
const LEAD_MAX: Nanos = Nanos::from_secs(30);
/// Time added to a clock's bound: drift since the comparison, and how long after reading the clock
/// a worker still issues calls due then.
const FENCE_MARGIN: Nanos = Nanos::from_millis(500);
/// Minimum interval between confirmations to an agent that is received again.
const CONFIRM_INTERVAL: Nanos = Nanos::from_millis(50);
/// Maximum number of unheard agents per message: their names fit into it.
const NAMED_MAX: usize = 4_096;
/// Maximum number of processes with the same id that wait for its place.
const APPLICANTS_MAX: usize = 8;
/// Maximum number of agents of one fleet.
pub const AGENTS_MAX: usize = 10_000;

/// An agent's place in the fleet.
#[derive(Debug)]
pub struct AgentEntry {
    pub hello: Hello,
    pub heard: Nanos,
    pub stage: AgentStage,
    /// The offset of its clock that it started by, and the bound, in nanoseconds.
    pub ahead: i64,
    pub bound: u64,
    pub workers: u32,
    next_row: u64,
    /// Rows that wait for an earlier one.
    early: BTreeMap<u64, Vec<u8>>,
    asked: Nanos,
    pub content: Option<Final>,
    /// The part that it holds of a run started by another manager.
    pub held: Option<Holding>,
    /// True if all of its rows were passed on.
    pub whole: bool,
    /// Time since when the manager's messages list it as unheard.
    named: Option<Nanos>,
    /// True if it is excluded from this step, whatever it sends: others have its part.
    relieved: bool,
    /// True if another process now has its name, and does not know the step.
    anew: bool,
    /// True if the agent announced that it left.
    left: bool,
    /// Numbers of the messages received from its process, and the number of messages sent to it.
    received: NumberWindow,
    sent_count: u64,
}

impl AgentEntry {
    /// Returns whether rows may be missing: later rows wait, or the end is known.
    fn may_have_gap(&self) -> bool {
        !self.early.is_empty() || self.content.is_some() && !self.whole
    }

    fn new(hello: Hello, number: u64, now: Nanos) -> AgentEntry {
        AgentEntry {
            hello,
            heard: now,
            stage: AgentStage::Idle,
            ahead: 0,
            bound: 0,
            workers: 0,
            next_row: 0,
            early: BTreeMap::new(),
            asked: Nanos::ZERO,
            content: None,
            held: None,
            whole: false,
            named: None,
            relieved: false,
            anew: false,
            left: false,
            received: NumberWindow::after(number),
            sent_count: 0,
        }
    }
}

/// Process that sent a hello and has no place yet.
#[derive(Debug)]
struct Applicant {
    session: u64,
    /// The number it must prove.
    proof: u64,
    first: Nanos,
}

/// An agent's progress in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentStage {
    Idle,
    Asked,
    Ready,
    Arming,
    Armed,
    Running,
    Over,
    /// Silent for too long, or left on its own.
    Lost,
}

/// Maximum number of stored rows of a watch: more than a day of rows.
const WATCH_ROWS_MAX: usize = 100_000;

/// The watch of the target's machine, and its rows of this step.
#[derive(Debug)]
struct WatchEntry {
    id: String,
    hello: WatchHello,
    heard: Nanos,
    received: NumberWindow,
    sent_count: u64,
    series: SutSeries,
}

/// Part of a lost agent's load that was offered to another agent.
#[derive(Debug)]
struct Offer {
    number: u64,
    successor: String,
    message: ToAgent,
    asked: Nanos,
    answered: bool,
}

/// Action for the manager's network.
#[derive(Clone, Debug, PartialEq)]
pub enum Post {
    All(ManagerMessage),
    One(String, Stamped<ToAgent>),
}

/// Event for the caller that runs the plan.
#[derive(Clone, Debug, PartialEq)]
pub enum FleetEvent {
    Joined(String),
    /// A watch of the target's machine is present.
    Watched,
    /// All agents have prepared the plan.
    Ready,
    Unfit(String, String),
    /// All agents know the start, and that it is final.
    Going,
    /// An agent did not start, or not in time.
    StoodDown(String, String),
    /// The next row of an agent, in order.
    Row(String, Vec<u8>),
    /// An agent was silent for [`LOST_AFTER`], or left on its own.
    Lost(String, String),
    /// An agent's reply to the offer with this number: accepted, or why not.
    Taken {
        agent: String,
        number: u64,
        refused: Option<String>,
    },
    /// A lost agent is received again.
    Back(String),
    /// All rows of an agent arrived, and its ending.
    Over(String),
}

/// The manager's side of the protocol.
#[derive(Debug)]
pub struct Manager {
    epoch: u64,
    wanted: usize,
    /// The run that the step is of: the number of the manager that began it.
    run: u64,
    step: u64,
    /// Number of messages sent to all.
    sent_count: u64,
    /// Number of proofs requested.
    proofs: u64,
    /// Processes that sent a hello and have no place yet, by the id of the agent or watch.
    applicants: BTreeMap<String, Vec<Applicant>>,
    refused: RefusedMessages,
    /// The name of the step's plan.
    hash: String,
    start: Nanos,
    /// Time of the latest clock reading.
    now: Nanos,
    /// Instant of the last heartbeat.
    signed: Nanos,
    offers: Vec<Offer>,
    next_beat: Nanos,
    /// Start of the measured phase of the current step.
    measuring: Option<Nanos>,
    agent_entries: BTreeMap<String, AgentEntry>,
    watch: Option<WatchEntry>,
    posts: VecDeque<Post>,
    events: VecDeque<FleetEvent>,
}

impl Manager {
    /// Returns a manager of `wanted` agents.
    pub fn new(epoch: u64, wanted: usize, now: Nanos) -> Manager {
        Manager {
            epoch,
            wanted: wanted.min(AGENTS_MAX),
            run: epoch,
            step: 0,
            sent_count: 0,
            proofs: 0,
            applicants: BTreeMap::new(),
            refused: RefusedMessages::default(),
            hash: String::new(),
            start: Nanos::NEVER,
            now,
            signed: now,
            offers: Vec::new(),
            next_beat: now,
            measuring: None,
            agent_entries: BTreeMap::new(),
            watch: None,
            posts: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    pub fn post(&mut self) -> Option<Post> {
        self.posts.pop_front()
    }

    pub fn event(&mut self) -> Option<FleetEvent> {
        self.events.pop_front()
    }

    /// Returns the agents by id, so that their order is the same in every run.
    pub fn agent_entries(&self) -> &BTreeMap<String, AgentEntry> {
        &self.agent_entries
    }

    /// Returns the state for an operator.
    pub fn status(&self, now: Nanos) -> Status {
        let agent = |(id, agent_entry): (&String, &AgentEntry)| AgentStatus {
            id: id.clone(),
            host: agent_entry.hello.host.clone(),
            stage: format!("{:?}", agent_entry.stage).to_lowercase(),
            silent_ms: (now - agent_entry.heard).0 / 1_000_000,
            rows: agent_entry.next_row,
        };
        let agents = self.agent_entries.iter().map(agent).collect();
        Status { step: self.step, wanted: self.wanted, agents, refused: self.refused }
    }

    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns the run to which the step belongs: the number of the manager that began it.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Returns how many messages were refused, by reason.
    pub fn refused(&self) -> RefusedMessages {
        self.refused
    }

    /// Returns the number of the manager.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Sets the required number of agents, known only later.
    pub fn expect(&mut self, wanted: usize) {
        self.wanted = wanted.min(AGENTS_MAX);
    }

    /// Returns whether the required number has joined.
    pub fn complete(&self) -> bool {
        self.agent_entries.len() >= self.wanted
    }

    fn all(&mut self, what: What) {
        let named =
            self.agent_entries.iter().filter(|(_, agent_entry)| agent_entry.named.is_some());
        let unheard = named.map(|(agent, _)| agent.clone()).collect();
        self.sent_count += 1;
        let (epoch, run, number) = (self.epoch, self.run, self.sent_count);
        let word = ManagerMessage { epoch, run, number, at: self.now.0, unheard, what };
        self.posts.push_back(Post::All(word));
    }

    /// Sends a message to an agent with a place.
    fn one(&mut self, agent: &str, message: ToAgent) {
        let run = self.run;
        let Some(agent_entry) = self.agent_entries.get_mut(agent) else { return };
        agent_entry.sent_count += 1;
        let stamp =
            Stamp { session: agent_entry.hello.session, run, number: agent_entry.sent_count };
        self.posts.push_back(Post::One(agent.to_owned(), Stamped { stamp, content: message }));
    }

    /// Sends a message to a process without a place.
    fn outside(&mut self, id: &str, session: u64, content: ToAgent) {
        let stamp = Stamp { session, run: self.run, number: 0 };
        self.posts.push_back(Post::One(id.to_owned(), Stamped { stamp, content }));
    }

    /// Returns whether the message is the next one, or a late one, of the process with the place.
    fn accepts(&mut self, agent: &str, stamp: Stamp) -> bool {
        let Some(agent_entry) = self.agent_entries.get_mut(agent) else {
            self.refused.foreign += 1;
            return false;
        };
        if agent_entry.hello.session != stamp.session {
            self.refused.foreign += 1;
            return false;
        }
        if !agent_entry.received.accept(stamp.number) {
            self.refused.replayed += 1;
            return false;
        }
        true
    }

    /// Handles a message of an agent.
    pub fn receive(&mut self, agent: &str, message: Stamped<FromAgent>, now: Nanos) {
        let Stamped { stamp, content: message } = message;
        if let FromAgent::Hello(hello) = message {
            return self.admit(agent, stamp, hello, now);
        }
        if !self.accepts(agent, stamp) {
            return;
        }
        self.alive(agent, now);
        let this = self.step;
        // a process's messages about another run, or an earlier step, change nothing in this one
        let old = message.step().is_some_and(|step| (stamp.run, step) != (self.run, this));
        self.refused.late += u64::from(old);
        match message {
            FromAgent::Hello(_) | FromAgent::Alive => {}
            FromAgent::Clock { sent } => {
                let (epoch, received) = (self.epoch, now.0);
                self.one(agent, ToAgent::Clock { epoch, sent, received, returned: received });
            }
            // reports of a forgotten earlier step are repeated until dismissed
            FromAgent::Final(content) if stamp.run == self.run && content.step < this => {
                self.all(What::Done { step: content.step });
            }
            _ if old => {}
            FromAgent::Ready { hash, .. } if hash != self.hash => {
                let why = "it prepared a different plan than it received: use the same version of \
                           loadstone on both";
                self.events.push_back(FleetEvent::Unfit(agent.to_owned(), why.to_owned()));
            }
            FromAgent::Ready { workers, bound, .. } => {
                self.stage(agent, AgentStage::Asked, AgentStage::Ready, |agent_entry| {
                    (agent_entry.workers, agent_entry.bound) = (workers, bound);
                });
                self.ready_when_all();
            }
            FromAgent::Unfit { why, .. } => {
                self.events.push_back(FleetEvent::Unfit(agent.to_owned(), why));
            }
            FromAgent::Armed { ahead, bound, .. } => {
                self.stage(agent, AgentStage::Arming, AgentStage::Armed, |agent_entry| {
                    (agent_entry.ahead, agent_entry.bound) = (ahead, bound);
                });
                self.start_when_armed();
            }
            FromAgent::StoodDown { why, .. } => {
                self.events.push_back(FleetEvent::StoodDown(agent.to_owned(), why));
            }
            FromAgent::Final(content) => self.finish(agent, *content, now),
            FromAgent::Taken { number, refused, .. } => {
                self.answered(agent, number, refused);
            }
            FromAgent::Held(holding) => {
                if let Some(agent_entry) = self.agent_entries.get_mut(agent) {
                    agent_entry.held.get_or_insert(holding);
                }
            }
            FromAgent::Leaving { why } => {
                if let Some(agent_entry) = self.agent_entries.get_mut(agent) {
                    agent_entry.left = true;
                }
                self.lose_agent(agent, &why);
            }
        }
    }

    /// Handles a hello. A process gets a place once it has proved that it runs now: a hello may be
    /// a replay from a process that has ended.
    fn admit(&mut self, agent: &str, stamp: Stamp, hello: Hello, now: Nanos) {
        let session = hello.session;
        let refused = if hello.protocol != PROTOCOL {
            Some(other_protocol("agent", hello.protocol))
        } else if !self.agent_entries.contains_key(agent) && self.complete() {
            Some(format!("the fleet has its {} agents", self.wanted))
        } else {
            None
        };
        if let Some(why) = refused {
            return self.outside(agent, session, ToAgent::Refused { epoch: self.epoch, why });
        }
        if self
            .agent_entries
            .get(agent)
            .is_some_and(|agent_entry| agent_entry.hello.session == session)
        {
            if !self.accepts(agent, stamp) {
                return;
            }
            self.alive(agent, now);
        } else {
            let place = self.agent_entries.get(agent).filter(|agent_entry| !agent_entry.left);
            let held = place.map(|agent_entry| (agent_entry.heard, agent_entry.hello.host.clone()));
            if !self.admits(agent, (session, hello.proof), held, now) {
                return;
            }
            self.take_place(agent, stamp, hello, now);
        }
        self.one(agent, ToAgent::Welcome { epoch: self.epoch, agents: self.wanted as u32 });
    }

    /// Returns whether an unknown process gets the place of this id. `held`: when the current
    /// holder was last received, and its machine.
    fn admits(
        &mut self,
        id: &str,
        (session, proof): (u64, u64),
        held: Option<(Nanos, String)>,
        now: Nanos,
    ) -> bool {
        if self.applicants.len() >= AGENTS_MAX && !self.applicants.contains_key(id) {
            self.refused.foreign += 1;
            return false;
        }
        let waiting = self.applicants.entry(id.to_owned()).or_default();
        let Some(known) = waiting.iter().find(|known| known.session == session) else {
            self.proofs += 1;
            // hellos to an earlier manager have another number
            let proof = self.epoch.rotate_left(32) ^ self.proofs;
            if waiting.len() == APPLICANTS_MAX {
                waiting.remove(0);
            }
            waiting.push(Applicant { session, proof, first: now });
            self.outside(id, session, ToAgent::Prove { epoch: self.epoch, proof });
            return false;
        };
        let (asked, first) = (known.proof, known.first);
        if proof != asked {
            self.outside(id, session, ToAgent::Prove { epoch: self.epoch, proof: asked });
            return false;
        }
        let Some((heard, host)) = held.filter(|(heard, _)| now - *heard <= SUSPECT_AFTER) else {
            self.applicants.remove(id);
            return true;
        };
        if heard > first + SUSPECT_AFTER {
            let why = format!(
                "a process on {host} uses the same credentials and is running: give each process \
                 its own file (`loadstone fleet creds --agents N`)"
            );
            self.outside(id, session, ToAgent::Refused { epoch: self.epoch, why });
        }
        // the other one may have just ended: this one sends another hello
        false
    }

    /// Assigns the place of an agent to a process.
    fn take_place(&mut self, agent: &str, stamp: Stamp, hello: Hello, now: Nanos) {
        let Some(agent_entry) = self.agent_entries.get_mut(agent) else {
            self.agent_entries.insert(agent.to_owned(), AgentEntry::new(hello, stamp.number, now));
            self.events.push_back(FleetEvent::Joined(agent.to_owned()));
            return;
        };
        agent_entry.anew = true;
        (agent_entry.hello, agent_entry.heard, agent_entry.left) = (hello, now, false);
        (agent_entry.received, agent_entry.sent_count) = (NumberWindow::after(stamp.number), 0);
        if !matches!(agent_entry.stage, AgentStage::Idle) {
            self.lose_agent(agent, "it was restarted");
        }
    }

    /// Records that the agent was received.
    fn alive(&mut self, agent: &str, now: Nanos) {
        let Some(agent_entry) = self.agent_entries.get_mut(agent) else { return };
        agent_entry.heard = now;
        if agent_entry.named.is_some() && !agent_entry.relieved && !agent_entry.anew {
            agent_entry.named = None;
            // it may have little time left
            self.next_beat = self.next_beat.min(self.signed + CONFIRM_INTERVAL);
        }
        if agent_entry.stage == AgentStage::Lost
            && !agent_entry.whole
            && !agent_entry.anew
            && !agent_entry.left
        {
            agent_entry.stage = AgentStage::Running;
            self.events.push_back(FleetEvent::Back(agent.to_owned()));
        }
    }

    fn stage(
        &mut self,
        agent: &str,
        from: AgentStage,
        to: AgentStage,
        then: impl FnOnce(&mut AgentEntry),
    ) {
        if let Some(agent_entry) =
            self.agent_entries.get_mut(agent).filter(|agent_entry| agent_entry.stage == from)
        {
            agent_entry.stage = to;
            then(agent_entry);
        }
    }

    /// Returns the agents from which no more messages are expected: lost; excluded without having
    /// ended, and not restarted; or silent for the time after which an agent counts as lost.
    pub fn absent(&self) -> Vec<String> {
        let absent = |agent_entry: &AgentEntry| {
            let given_up = agent_entry.relieved && agent_entry.content.is_none();
            (agent_entry.stage == AgentStage::Lost || given_up) && !agent_entry.anew
                || self.now - agent_entry.heard > LOST_AFTER
        };
        let agent_entries =
            self.agent_entries.iter().filter(|(_, agent_entry)| absent(agent_entry));
        agent_entries.map(|(agent, _)| agent.clone()).collect()
    }

    /// Continues without an agent, between two steps or before the start of one. It is not
    /// replaced, so the fleet is smaller.
    pub fn dismiss(&mut self, agent: &str) {
        if self.agent_entries.remove(agent).is_some() {
            self.wanted = self.agent_entries.len();
            self.ready_when_all();
        }
    }

    fn ready_when_all(&mut self) {
        let ready = |agent_entry: &AgentEntry| agent_entry.stage == AgentStage::Ready;
        if !self.agent_entries.is_empty() && self.agent_entries.values().all(ready) {
            self.events.push_back(FleetEvent::Ready);
        }
    }

    /// Distributes the plan: to each agent, sealed for that agent.
    pub fn prepare(&mut self, hash: &str, sealed: &BTreeMap<String, Vec<u8>>) {
        self.run = self.epoch;
        self.step += 1;
        hash.clone_into(&mut self.hash);
        self.measuring = None;
        self.offers.clear();
        let (epoch, step) = (self.epoch, self.step);
        let mut messages = Vec::new();
        for (agent, agent_entry) in &mut self.agent_entries {
            agent_entry.stage = AgentStage::Asked;
            (agent_entry.next_row, agent_entry.content, agent_entry.whole) = (0, None, false);
            (agent_entry.named, agent_entry.relieved, agent_entry.anew) = (None, false, false);
            agent_entry.early.clear();
            let Some(bytes) = sealed.get(agent) else { continue };
            let parts = bytes.len().div_ceil(PART_BYTES).max(1) as u32;
            for part in 0..parts {
                let from = part as usize * PART_BYTES;
                let bytes = bytes[from..bytes.len().min(from + PART_BYTES)].to_vec();
                let hash = hash.to_owned();
                let message = ToAgent::Plan { epoch, step, hash, part, parts, bytes };
                messages.push((agent.clone(), message));
            }
        }
        messages.into_iter().for_each(|(agent, message)| self.one(&agent, message));
    }

    /// Returns how far ahead a start must be: every agent is notified and confirms, over paths that
    /// may be much slower than their best.
    pub fn start_lead_time(&self) -> Nanos {
        let way = self
            .agent_entries
            .values()
            .map(|agent_entry| agent_entry.bound)
            .max()
            .unwrap_or(0)
            .saturating_mul(2);
        let agents = Nanos(LEAD_PER_AGENT.0 * self.agent_entries.len() as u64);
        (LEAD_MIN + agents).max(Nanos(way.saturating_mul(LEAD_WAYS))).min(LEAD_MAX)
    }

    /// Asks all agents which parts they hold of a run whose manager has exited.
    pub fn query_assignments(&mut self) {
        let epoch = self.epoch;
        let unknown =
            self.agent_entries.iter().filter(|(_, agent_entry)| agent_entry.held.is_none());
        let agents: Vec<String> = unknown.map(|(agent, _)| agent.clone()).collect();
        agents.iter().for_each(|agent| self.one(agent, ToAgent::Recall { epoch }));
    }

    /// Takes over the run: requests its rows from the first on, when they are found to be missing.
    pub fn adopt(&mut self, run: u64, step: u64, start: Nanos) {
        (self.run, self.step, self.start) = (run, step, start);
        for agent_entry in self.agent_entries.values_mut() {
            let Some(held) = &agent_entry.held else { continue };
            (agent_entry.stage, agent_entry.workers, agent_entry.bound) =
                (AgentStage::Running, held.slots.len() as u32, held.bound);
            (agent_entry.next_row, agent_entry.content, agent_entry.whole) = (0, None, false);
            agent_entry.early.clear();
        }
    }

    /// Sends each agent its slots, and the first instant to all.
    pub fn arm(&mut self, slots: BTreeMap<String, Vec<Vec<u32>>>, of: u32, start: Nanos) {
        self.start = start;
        let (epoch, step, agents) = (self.epoch, self.step, slots.len() as u32);
        for (agent, slots) in slots {
            self.stage(&agent, AgentStage::Ready, AgentStage::Arming, |_| {});
            self.one(&agent, ToAgent::Arm { epoch, step, slots, of, start: start.0, agents });
        }
    }

    /// Withdraws a lost agent's part: the agent is listed as unheard until the end of the step,
    /// even if it returns. From the returned instant on it certainly issues no calls: it has
    /// received no valid heartbeat since it is listed, and stops [`DEAD_MAN`] after the last one.
    pub fn relieve(&mut self, agent: &str) -> Nanos {
        let now = self.now;
        let Some(agent_entry) = self.agent_entries.get_mut(agent) else { return now };
        if agent_entry.content.is_some() {
            // it announced its end
            return now;
        }
        agent_entry.relieved = true;
        let named = *agent_entry.named.get_or_insert(now);
        let fence = named + DEAD_MAN + Nanos(agent_entry.bound) + FENCE_MARGIN;
        let (epoch, step) = (self.epoch, self.step);
        // it may receive this although it is not received itself; it stops by then in any case
        self.one(agent, ToAgent::Cease { epoch, step, at: fence.0 });
        fence
    }

    /// Offers a lost agent's part to another one: slots for each of its workers, from this time
    /// after the first instant on. The offer is repeated until it is answered. Returns its number.
    pub fn offer(&mut self, successor: &str, slots: Vec<Vec<u32>>, of: u32, from: Nanos) -> u64 {
        let (epoch, step, number) = (self.epoch, self.step, self.offers.len() as u64);
        let message = ToAgent::Take { epoch, step, number, slots, of, from: from.0 };
        self.one(successor, message.clone());
        let (successor, asked) = (successor.to_owned(), self.now);
        self.offers.push(Offer { number, successor, message, asked, answered: false });
        number
    }

    fn answered(&mut self, agent: &str, number: u64, refused: Option<String>) {
        let mine = |offer: &&mut Offer| offer.number == number && offer.successor == agent;
        let Some(offer) = self.offers.iter_mut().find(mine).filter(|offer| !offer.answered) else {
            return;
        };
        offer.answered = true;
        let agent = agent.to_owned();
        self.events.push_back(FleetEvent::Taken { agent, number, refused });
    }

    fn offer_again(&mut self, now: Nanos) {
        let mut again = Vec::new();
        for offer in &mut self.offers {
            if !offer.answered && now >= offer.asked + RESEND_PAUSE {
                offer.asked = now;
                again.push((offer.successor.clone(), offer.message.clone()));
            }
        }
        again.into_iter().for_each(|(successor, message)| self.one(&successor, message));
    }

    fn start_when_armed(&mut self) {
        let all = |stage: AgentStage| {
            self.agent_entries.values().all(|agent_entry| agent_entry.stage == stage)
        };
        if all(AgentStage::Armed) {
            self.agent_entries
                .values_mut()
                .for_each(|agent_entry| agent_entry.stage = AgentStage::Running);
            self.all(What::Go { step: self.step });
            self.events.push_back(FleetEvent::Going);
        }
    }

    /// Sets the start of the step's measured phase, for the watch of the target.
    pub fn measuring(&mut self, from: Nanos) {
        if let Some(watch) = &mut self.watch {
            watch.series = fresh(&watch.hello);
        }
        self.measuring = Some(from);
        self.sign();
    }

    /// Sends a heartbeat to all.
    fn sign(&mut self) {
        self.signed = self.now;
        let step = self.step;
        self.all(match self.measuring {
            Some(from) => What::Measuring { step, from: from.0 },
            None => What::Beat,
        });
    }

    /// Returns whether the target's machine is watched.
    pub fn watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Returns the rows of the target's machine in this step; `None` if it is not watched.
    pub fn seen(&self) -> Option<&SutSeries> {
        self.watch.as_ref().map(|watch| &watch.series)
    }

    /// Handles a message of the watch of the target's machine.
    pub fn receive_from_watch(&mut self, id: &str, message: Stamped<FromWatch>, now: Nanos) {
        let Stamped { stamp, content: message } = message;
        if let FromWatch::Hello(hello) = message {
            return self.accept_watch(id, stamp, hello, now);
        }
        let this = (self.run, self.step);
        let place = self.watch.as_mut().filter(|watch| watch.id == id);
        let Some(watch) = place.filter(|watch| watch.hello.session == stamp.session) else {
            self.refused.foreign += 1;
            return;
        };
        if !watch.received.accept(stamp.number) {
            self.refused.replayed += 1;
            return;
        }
        watch.heard = now;
        match message {
            FromWatch::Row { step, .. } if (stamp.run, step) != this => self.refused.late += 1,
            FromWatch::Row { row, .. } => {
                let rows = &mut watch.series.rows;
                let later = rows.last().is_none_or(|last| last.at_s < row.at_s);
                if row.at_s.is_finite() && later && rows.len() < WATCH_ROWS_MAX {
                    rows.push(row);
                }
            }
            FromWatch::Trouble { why } => watch.series.trouble = why,
            FromWatch::Clock { sent } => {
                let (epoch, received) = (self.epoch, now.0);
                self.send_to_watch(ToAgent::Clock { epoch, sent, received, returned: received });
            }
            FromWatch::Hello(_) => {}
        }
    }

    fn send_to_watch(&mut self, content: ToAgent) {
        let Some(watch) = &mut self.watch else { return };
        watch.sent_count += 1;
        let stamp = Stamp { session: watch.hello.session, run: self.run, number: watch.sent_count };
        self.posts.push_back(Post::One(watch.id.clone(), Stamped { stamp, content }));
    }

    /// Accepts a watch; it replaces one that has fallen silent.
    fn accept_watch(&mut self, id: &str, stamp: Stamp, hello: WatchHello, now: Nanos) {
        let (session, proof) = (hello.session, hello.proof);
        let other = self.watch.as_ref().filter(|watch| watch.id != id);
        let refused = if hello.protocol != PROTOCOL {
            Some(other_protocol("watch", hello.protocol))
        } else {
            other.filter(|watch| now - watch.heard <= LOST_AFTER).map(|watch| {
                format!("{} on {} is watched already", watch.hello.name, watch.hello.host)
            })
        };
        if let Some(why) = refused {
            return self.outside(id, session, ToAgent::Refused { epoch: self.epoch, why });
        }
        let place = self.watch.as_mut().filter(|watch| watch.id == id);
        match place {
            Some(watch) if watch.hello.session == session => {
                if !watch.received.accept(stamp.number) {
                    self.refused.replayed += 1;
                    return;
                }
                watch.heard = now;
            }
            known => {
                let held = known.map(|watch| (watch.heard, watch.hello.host.clone()));
                if !self.admits(id, (session, proof), held, now) {
                    return;
                }
                let received = NumberWindow::after(stamp.number);
                let (id, series) = (id.to_owned(), fresh(&hello));
                self.watch =
                    Some(WatchEntry { id, hello, heard: now, received, sent_count: 0, series });
                self.events.push_back(FleetEvent::Watched);
            }
        }
        self.send_to_watch(ToAgent::Welcome { epoch: self.epoch, agents: self.wanted as u32 });
    }

    /// Stops calls in this step; with `abandon`, also those in flight.
    pub fn stop(&mut self, abandon: bool) {
        let step = self.step;
        self.all(if abandon { What::Abandon { step } } else { What::Stop { step } });
    }

    /// Records that the step is merged.
    pub fn done(&mut self) {
        self.measuring = None;
        self.all(What::Done { step: self.step });
    }

    /// Ends the fleet.
    pub fn disband(&mut self, why: &str) {
        self.all(What::Disband { why: why.to_owned() });
    }

    /// Handles a row of an agent; rows are passed on in order, each once.
    pub fn row(&mut self, agent: &str, bytes: Vec<u8>, now: Nanos) {
        let Ok(head) = row::head(&bytes) else { return };
        let Some(agent_entry) = self.agent_entries.get(agent) else {
            self.refused.foreign += 1;
            return;
        };
        if (head.run, head.step) != (self.run, self.step) {
            self.refused.late += 1;
            return;
        }
        if head.number < agent_entry.next_row || agent_entry.early.contains_key(&head.number) {
            // an old row does not show that the agent is alive
            self.refused.replayed += 1;
            return;
        }
        self.alive(agent, now);
        let Some(agent_entry) = self.agent_entries.get_mut(agent) else { return };
        if !matches!(agent_entry.stage, AgentStage::Running | AgentStage::Over) {
            return;
        }
        // the next row is always accepted: it empties a full shelf
        let full = head.number > agent_entry.next_row && agent_entry.early.len() >= HELD_MAX;
        if full {
            return;
        }
        agent_entry.early.insert(head.number, bytes);
        self.deliver_rows(agent, now);
    }

    fn deliver_rows(&mut self, agent: &str, now: Nanos) {
        let Some(agent_entry) = self.agent_entries.get_mut(agent) else { return };
        while let Some(bytes) = agent_entry.early.remove(&agent_entry.next_row) {
            agent_entry.next_row += 1;
            self.events.push_back(FleetEvent::Row(agent.to_owned(), bytes));
        }
        let rows = agent_entry.content.as_ref().map(|content| content.rows);
        if rows == Some(agent_entry.next_row) && !agent_entry.whole {
            agent_entry.whole = true;
            agent_entry.stage = AgentStage::Over;
            self.events.push_back(FleetEvent::Over(agent.to_owned()));
        }
        self.request_missing_rows(agent, now);
    }

    /// Requests rows that later rows or an announcement show to be missing.
    fn request_missing_rows(&mut self, agent: &str, now: Nanos) {
        let (epoch, step) = (self.epoch, self.step);
        let Some(agent_entry) = self.agent_entries.get_mut(agent) else { return };
        let end = agent_entry.content.as_ref().map(|content| content.rows);
        let end = end.or_else(|| agent_entry.early.keys().next().copied()).unwrap_or(0);
        if end <= agent_entry.next_row || now < agent_entry.asked + RESEND_PAUSE {
            return;
        }
        agent_entry.asked = now;
        let missing =
            (agent_entry.next_row..end).filter(|row| !agent_entry.early.contains_key(row));
        let rows: Vec<u64> = missing.take(256).collect();
        if !rows.is_empty() {
            self.one(agent, ToAgent::Resend { epoch, step, rows });
        }
    }

    fn finish(&mut self, agent: &str, content: Final, now: Nanos) {
        let Some(agent_entry) = self.agent_entries.get_mut(agent) else { return };
        if matches!(agent_entry.stage, AgentStage::Running | AgentStage::Over) {
            // a repetition changes nothing
            agent_entry.content.get_or_insert(content);
            self.deliver_rows(agent, now);
        }
    }

    fn lose_agent(&mut self, agent: &str, why: &str) {
        let Some(agent_entry) = self.agent_entries.get_mut(agent) else { return };
        if !matches!(agent_entry.stage, AgentStage::Over | AgentStage::Lost) {
            agent_entry.stage = AgentStage::Lost;
            self.events.push_back(FleetEvent::Lost(agent.to_owned(), why.to_owned()));
        }
    }

    /// Handles the passage of time.
    pub fn tick(&mut self, now: Nanos) {
        self.now = now;
        self.suspect(now);
        self.offer_again(now);
        if now >= self.next_beat {
            self.next_beat = now + BEAT;
            self.sign();
        }
        let silent = |agent_entry: &AgentEntry| {
            let waited_for = !matches!(
                agent_entry.stage,
                AgentStage::Idle | AgentStage::Over | AgentStage::Lost
            );
            waited_for && now - agent_entry.heard > LOST_AFTER
        };
        let odd = |(_, agent_entry): &(&String, &AgentEntry)| {
            silent(agent_entry) || agent_entry.may_have_gap()
        };
        // nearly all of thousands of agents are well, so no name is copied for them
        let agents: Vec<String> =
            self.agent_entries.iter().filter(odd).map(|(agent, _)| agent.clone()).collect();
        for agent in agents {
            let agent_entry = &self.agent_entries[&agent];
            if silent(agent_entry) {
                let why = format!("silent for {}", units::show::duration(now - agent_entry.heard));
                self.lose_agent(&agent, &why);
            }
            self.request_missing_rows(&agent, now);
        }
    }

    /// Lists silent or lost agents from now on.
    fn suspect(&mut self, now: Nanos) {
        let mut named =
            self.agent_entries.values().filter(|agent_entry| agent_entry.named.is_some()).count();
        for agent_entry in self.agent_entries.values_mut() {
            let silent = match agent_entry.stage {
                AgentStage::Running => now - agent_entry.heard > SUSPECT_AFTER,
                AgentStage::Lost => true,
                _ => false,
            };
            if silent && agent_entry.named.is_none() && named < NAMED_MAX {
                agent_entry.named = Some(now);
                named += 1;
            }
        }
    }

    /// Returns when the state machine must be called again at the latest.
    pub fn next_at(&self) -> Nanos {
        self.next_beat
    }
}

/// Returns why an agent with another protocol version is refused.
fn other_protocol(who: &str, protocol: u32) -> String {
    format!(
        "this {who} speaks protocol {protocol} and the manager {PROTOCOL}: use the same version of \
         loadstone on both"
    )
}

/// Returns the series of a watch before its first row.
fn fresh(hello: &WatchHello) -> SutSeries {
    SutSeries {
        name: format!("{} on {}", hello.name, hello.host),
        cores: hello.cores,
        memory_max: hello.memory_max,
        descriptors_max: hello.descriptors_max,
        accept_queue_max: hello.accept_queue_max,
        ..SutSeries::default()
    }
}
