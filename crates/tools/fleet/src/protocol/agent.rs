//! An agent as a state machine: messages and time in, messages and actions out.

use crate::protocol::clock::{ClockEstimate, ClockExchange, Offset};
use crate::protocol::message::{
    Final, FromAgent, Hello, Holding, ManagerMessage, PartEnding, ToAgent, What,
};
use crate::protocol::stamp::{NumberWindow, RefusedMessages, Stamp, Stamped};
use crate::protocol::{BEAT, DEAD_MAN};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use units::Nanos;
use workload::schedule::Share;

/// Exchanges before an agent reports that it is ready.
const PROBES_MIN: u64 = 8;
/// A start in less than this time is not kept.
const START_MIN: Nanos = Nanos::from_millis(400);
/// Time before the start without a message of the manager after which the start is canceled.
const GO_BEFORE: Nanos = Nanos::from_millis(300);
/// Time for which an agent without a load waits for a silent manager.
pub(crate) const PATIENCE: Nanos = Nanos::from_secs(60);
/// Time for which an agent with counts keeps them for a manager that takes over.
const PATIENCE_WITH_ROWS: Nanos = Nanos::from_secs(600);
/// Maximum size of a plan in bytes.
pub const PLAN_BYTES_MAX: usize = 64 << 20;
/// Number of arrivals over which an agent's share of a load is counted.
const SHARE_OF: u64 = 1 << 24;
/// Tolerated relative error of a share counted in this way.
const ROUNDING: f64 = 1e-3;
/// Maximum number of slots of a load.
pub const SLOTS_MAX: u32 = 1 << 24;
/// Rows that are sent again at once.
const RESEND_MAX: usize = 256;

/// Action for an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentAction {
    Say(Stamped<FromAgent>),
    /// A row, sent for the first time or again.
    Row(Vec<u8>),
    /// Open the sealed plan, read it and prepare everything for it.
    Prepare {
        step: u64,
        hash: String,
        sealed: Vec<u8>,
    },
    /// Carry it out: each worker's part, from this instant of our clock on.
    Run {
        /// The number of the manager that began it.
        run: u64,
        step: u64,
        shares: Vec<Share>,
        start: Nanos,
    },
    /// Run this too, in addition to its own part: slots for each worker, of this many, from this
    /// time after the first instant on.
    Take {
        parts: Vec<Option<Share>>,
        from: Nanos,
    },
    /// Issue no calls from this instant of our clock on: another agent has the part.
    Cease {
        at: Nanos,
    },
    Stop,
    Abandon,
    /// Leave: whether the work was done, with the reason.
    Exit {
        done: bool,
        why: String,
    },
}

/// Result of preparing a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadyFacts {
    /// Hash of the plan as printed by us.
    pub hash: String,
    /// Number of workers that we have for the plan.
    pub workers: u32,
    /// Highest rate of the whole fleet, in calls per second; `None` in a closed loop.
    pub rate_peak: Option<f64>,
}

/// A plan received in parts.
#[derive(Clone, Debug, PartialEq)]
struct Receipt {
    step: u64,
    hash: String,
    parts: Vec<Option<Vec<u8>>>,
}

impl Receipt {
    fn is_whole(&self) -> bool {
        self.parts.iter().all(Option::is_some)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum AgentState {
    Idle,
    Receiving(Receipt),
    Preparing {
        step: u64,
        hash: String,
    },
    /// Everything but the clock may be ready.
    Ready {
        step: u64,
        ready: ReadyFacts,
        announced: bool,
    },
    Armed {
        step: u64,
        shares: Vec<Share>,
        start: Nanos,
    },
    Running {
        step: u64,
        ending: PartEnding,
    },
    /// Everything was sent; the end is repeated until the manager confirms it.
    Over {
        content: Box<Final>,
        again: Nanos,
    },
}

/// The agent's side of the protocol.
#[derive(Debug)]
pub struct Agent {
    id: String,
    hello: Hello,
    epoch: u64,
    welcome: bool,
    /// Number of sent messages.
    number: u64,
    /// Received messages of the manager: those to us, and those to all.
    received: NumberWindow,
    commands: NumberWindow,
    refused: RefusedMessages,
    /// Number of machines of the fleet.
    machines: u32,
    /// Time of the latest clock reading.
    now: Nanos,
    heard: Nanos,
    /// The latest instant at which a manager certainly monitored us: it was present and received
    /// us.
    watched: Nanos,
    next_sign: Nanos,
    next_probe: Nanos,
    clock: ClockEstimate,
    state: AgentState,
    /// Rows of the step, by number.
    rows: Vec<Vec<u8>>,
    /// The running step, and its first instant by our clock.
    held: Option<(Holding, Nanos)>,
    /// The highest rate that the whole fleet reaches in the step.
    rate_peak: Option<f64>,
    /// The manager whose plan is running.
    client: u64,
    /// Plan of a later manager, which ends the current plan.
    next: Option<Receipt>,
    /// Replies to the parts offered in this step, by number.
    taken: BTreeMap<u64, Option<String>>,
    /// Parts that were taken over.
    extra: Vec<Share>,
    actions: VecDeque<AgentAction>,
}

impl Agent {
    /// Creates an agent. `id`: its name at the manager.
    pub fn new(id: &str, hello: Hello, now: Nanos) -> Agent {
        Agent {
            id: id.to_owned(),
            hello,
            epoch: 0,
            welcome: false,
            number: 0,
            received: NumberWindow::default(),
            commands: NumberWindow::default(),
            refused: RefusedMessages::default(),
            machines: 1,
            now,
            heard: now,
            watched: now,
            next_sign: now,
            next_probe: now,
            clock: ClockEstimate::default(),
            state: AgentState::Idle,
            rows: Vec::new(),
            held: None,
            rate_peak: None,
            client: 0,
            next: None,
            taken: BTreeMap::new(),
            extra: Vec::new(),
            actions: VecDeque::new(),
        }
    }

    /// Returns the next action.
    pub fn next_action(&mut self) -> Option<AgentAction> {
        self.actions.pop_front()
    }

    /// Returns when a manager last monitored us: the dead-man switch counts from then.
    pub fn watched_at(&self) -> Nanos {
        self.watched
    }

    /// Returns the offset of the manager's clock from ours.
    pub fn offset(&self) -> Option<Offset> {
        self.clock.best(self.now)
    }

    pub fn drift(&self) -> Option<i64> {
        self.clock.drift()
    }

    /// Returns how many messages of this or another manager were refused.
    pub fn refused(&self) -> RefusedMessages {
        self.refused
    }

    /// Returns the last message of a process that ends.
    pub fn leave(&mut self, why: &str) -> Stamped<FromAgent> {
        self.stamped(FromAgent::Leaving { why: why.to_owned() }, self.client)
    }

    fn stamped(&mut self, content: FromAgent, run: u64) -> Stamped<FromAgent> {
        self.number += 1;
        let stamp = Stamp { session: self.hello.session, run, number: self.number };
        Stamped { stamp, content }
    }

    fn send(&mut self, message: FromAgent) {
        self.send_for_run(self.client, message);
    }

    fn send_for_run(&mut self, run: u64, message: FromAgent) {
        let message = self.stamped(message, run);
        self.actions.push_back(AgentAction::Say(message));
    }

    /// Follows a manager with a higher number, which does not know this agent yet and whose clock
    /// is unknown.
    fn follow(&mut self, epoch: u64, now: Nanos) {
        (self.epoch, self.hello.proof) = (epoch, 0);
        (self.received, self.commands) = (NumberWindow::default(), NumberWindow::default());
        (self.welcome, self.next_sign, self.next_probe) = (false, now, now);
        self.clock = ClockEstimate::default();
    }

    /// Returns whether a message to this agent is from our manager and was not received before.
    /// Follows a manager with a higher number.
    fn accepts(&mut self, stamp: Stamp, content: &ToAgent, now: Nanos) -> bool {
        let epoch = content.epoch();
        if stamp.session != self.hello.session {
            self.refused.foreign += 1;
            return false;
        }
        if epoch < self.epoch {
            self.refused.late += 1;
            return false;
        }
        // these go to processes that have no place in the fleet yet, or no longer
        if matches!(content, ToAgent::Refused { .. } | ToAgent::Prove { .. }) {
            return true;
        }
        if epoch > self.epoch {
            if matches!(content, ToAgent::Clock { .. }) {
                // a different manager has a different clock
                return false;
            }
            self.follow(epoch, now);
        }
        if !self.received.accept(stamp.number) {
            self.refused.replayed += 1;
            return false;
        }
        self.heard = now;
        true
    }

    /// Handles the passage of time.
    pub fn tick(&mut self, now: Nanos) {
        self.now = now;
        if now >= self.next_sign {
            self.next_sign = now + BEAT;
            let sign = match self.welcome {
                true => FromAgent::Alive,
                false => FromAgent::Hello(self.hello.clone()),
            };
            self.send(sign);
        }
        if self.welcome && now >= self.next_probe {
            self.next_probe = now + self.clock.pause(self.machines);
            self.send(FromAgent::Clock { sent: now.0 });
        }
        let silence = now - self.heard;
        let unwatched = now - self.watched;
        match &mut self.state {
            AgentState::Running { ending, .. }
                if unwatched > DEAD_MAN && *ending == PartEnding::Done =>
            {
                *ending = PartEnding::DeadMan;
                self.actions.push_back(AgentAction::Stop);
            }
            AgentState::Armed { start, step, .. } if now + GO_BEFORE > *start => {
                let step = *step;
                self.cancel_step(step, "the manager did not confirm the start");
            }
            AgentState::Over { content, again } if now >= *again => {
                *again = now + Nanos::SECOND;
                let content = content.clone();
                self.send(FromAgent::Final(content));
            }
            _ => {}
        }
        let patience = match self.state {
            AgentState::Over { .. } => PATIENCE_WITH_ROWS,
            _ => PATIENCE,
        };
        if silence > patience && !matches!(self.state, AgentState::Running { .. }) {
            let why = format!("the manager was silent for {}", units::show::duration(patience));
            self.actions.push_back(AgentAction::Exit { done: false, why });
        }
    }

    /// Handles the manager's reply to a time request.
    fn note_time(&mut self, exchange: ClockExchange) {
        self.clock.add(exchange);
        self.report_ready();
    }

    fn report_ready(&mut self) {
        let enough = self.clock.exchanges() >= PROBES_MIN;
        if let AgentState::Ready { step, ready, announced: announced @ false } = &mut self.state
            && enough
        {
            *announced = true;
            let (step, hash, workers) = (*step, ready.hash.clone(), ready.workers);
            let bound = self.offset().map_or(0, |offset| offset.bound.0);
            self.send(FromAgent::Ready { step, hash, workers, bound });
        }
    }

    /// Handles a message to this agent; `now`: its arrival.
    pub fn receive(&mut self, message: Stamped<ToAgent>, now: Nanos) {
        self.now = now;
        let Stamped { stamp, content } = message;
        if !self.accepts(stamp, &content, now) {
            return;
        }
        match content {
            ToAgent::Prove { epoch, proof } => {
                if epoch > self.epoch {
                    self.follow(epoch, now);
                }
                self.hello.proof = proof;
                if !self.welcome {
                    self.send(FromAgent::Hello(self.hello.clone()));
                }
            }
            ToAgent::Welcome { agents, .. } => (self.welcome, self.machines) = (true, agents),
            ToAgent::Refused { why, .. } => {
                self.actions.push_back(AgentAction::Exit { done: false, why })
            }
            ToAgent::Clock { sent, received, returned, .. } => {
                let [sent, received, returned] = [sent, received, returned].map(Nanos);
                self.note_time(ClockExchange { sent, received, returned, answered: now });
            }
            ToAgent::Plan { step, hash, part, parts, bytes, .. } => {
                self.receive_part(Receipt { step, hash, parts: Vec::new() }, part, parts, bytes);
            }
            ToAgent::Recall { .. } => {
                let holding = self.holding(now);
                self.send(FromAgent::Held(holding));
            }
            // the others concern a run
            _ if stamp.run != self.client => self.refused.late += 1,
            ToAgent::Arm { step, slots, of, start, agents, .. } => {
                let (run, bound) = (self.client, self.offset().map_or(0, |offset| offset.bound.0));
                let holding = Holding { run, step, slots, of, agents, bound, ..Holding::default() };
                self.arm(holding, Nanos(start), now);
            }
            ToAgent::Take { step, number, slots, of, from, .. } => {
                self.take(step, number, (&slots, of), Nanos(from), now);
            }
            ToAgent::Cease { step, at, .. } => self.end_part_at(step, Nanos(at), now),
            ToAgent::Resend { step, rows, .. } => {
                if self.step() == Some(step) {
                    let wanted = rows.iter().take(RESEND_MAX);
                    let found = wanted.filter_map(|row| self.rows.get(usize::try_from(*row).ok()?));
                    self.actions.extend(found.cloned().map(AgentAction::Row).collect::<Vec<_>>());
                }
            }
        }
    }

    /// Handles a message to all agents.
    pub fn commanded(&mut self, command: &ManagerMessage, now: Nanos) {
        self.now = now;
        if command.epoch < self.epoch {
            self.refused.late += 1;
            return;
        }
        if command.epoch > self.epoch {
            self.follow(command.epoch, now);
        }
        if !self.commands.accept(command.number) {
            self.refused.replayed += 1;
            return;
        }
        self.heard = now;
        if !command.unheard.contains(&self.id) {
            // never later than its arrival: a clock may be wrong by its bound
            let sent = self.offset().map_or(now, |offset| offset.here(Nanos(command.at)));
            self.watched = self.watched.max(sent.min(now));
        }
        match &command.what {
            What::Beat | What::Measuring { .. } => {}
            What::Disband { why } => {
                self.actions.push_back(AgentAction::Abandon);
                self.actions.push_back(AgentAction::Exit { done: true, why: why.clone() });
            }
            // the others concern a run; this one is another
            _ if command.run != self.client => self.refused.late += 1,
            What::Go { step } => self.begin_armed(*step),
            What::Stop { step } if self.running(*step) => self.actions.push_back(AgentAction::Stop),
            What::Abandon { step } if self.running(*step) => {
                self.actions.push_back(AgentAction::Abandon)
            }
            What::Abandon { step } | What::Stop { step } => {
                if matches!(&self.state, AgentState::Armed { step: armed, .. } if armed == step) {
                    self.state = AgentState::Idle;
                }
            }
            What::Done { step } => {
                if self.step() == Some(*step) && !self.running(*step) {
                    self.state = AgentState::Idle;
                    self.rows.clear();
                }
            }
        }
    }

    /// Ends the part at an instant of the manager's clock: it belongs to another agent from then
    /// on.
    fn end_part_at(&mut self, step: u64, at: Nanos, now: Nanos) {
        if self.running(step) {
            // never later than that instant: a clock may be wrong by its bound
            let at = self.offset().map_or(now, |offset| offset.here(at) - offset.bound);
            self.actions.push_back(AgentAction::Cease { at });
        }
    }

    fn step(&self) -> Option<u64> {
        match &self.state {
            AgentState::Idle => None,
            AgentState::Receiving(Receipt { step, .. })
            | AgentState::Preparing { step, .. }
            | AgentState::Ready { step, .. }
            | AgentState::Armed { step, .. }
            | AgentState::Running { step, .. } => Some(*step),
            AgentState::Over { content, .. } => Some(content.step),
        }
    }

    fn holding(&self, now: Nanos) -> Holding {
        let counted = matches!(self.state, AgentState::Running { .. } | AgentState::Over { .. });
        let held = self.held.as_ref().filter(|_| counted);
        held.map_or_else(Holding::default, |(holding, start)| Holding {
            since: (now - *start).0,
            taken: self.taken.values().filter(|refused| refused.is_none()).count() as u32,
            ..holding.clone()
        })
    }

    fn running(&self, step: u64) -> bool {
        matches!(&self.state, AgentState::Running { step: of, .. } if *of == step)
    }

    /// Handles a part of a plan. First ends a running plan of another manager: a manager with a
    /// higher number that does not take over replaces the run.
    fn receive_part(&mut self, plan: Receipt, part: u32, parts: u32, bytes: Vec<u8>) {
        let count = parts as usize;
        if count == 0 || count > PLAN_BYTES_MAX >> 10 || part >= parts {
            return;
        }
        let mut known = match &mut self.state {
            AgentState::Running { .. } if self.client == self.epoch => return,
            AgentState::Running { .. } => self.next.take(),
            AgentState::Receiving(known) => Some(known.clone()),
            _ => None,
        };
        known = known.filter(|known| {
            (known.step, &known.hash, known.parts.len()) == (plan.step, &plan.hash, count)
        });
        let fresh = known.is_none();
        let mut plan = known.unwrap_or(Receipt { parts: vec![None; count], ..plan });
        plan.parts[part as usize] = Some(bytes);
        if plan.parts.iter().flatten().map(Vec::len).sum::<usize>() > PLAN_BYTES_MAX {
            let why = format!("the plan is larger than {PLAN_BYTES_MAX} bytes");
            let step = plan.step;
            if !matches!(self.state, AgentState::Running { .. }) {
                self.state = AgentState::Idle;
            }
            return self.send_for_run(self.epoch, FromAgent::Unfit { step, why });
        }
        if matches!(self.state, AgentState::Running { .. }) {
            self.next = Some(plan);
            if fresh {
                self.actions.push_back(AgentAction::Abandon);
            }
        } else {
            self.unfold(plan);
        }
    }

    /// Prepares a plan whose parts have all arrived.
    fn unfold(&mut self, plan: Receipt) {
        if !plan.is_whole() {
            self.client = self.epoch;
            self.state = AgentState::Receiving(plan);
            return;
        }
        let Receipt { step, hash, parts } = plan;
        let sealed = parts.into_iter().flatten().flatten().collect();
        self.state = AgentState::Preparing { step, hash: hash.clone() };
        self.client = self.epoch;
        self.rows.clear();
        self.actions.push_back(AgentAction::Prepare { step, hash, sealed });
    }

    /// Records that the plan with this hash is prepared, or cannot run here. Returns false if it is
    /// no longer needed: this may be the late result of an earlier manager's request.
    pub fn prepared(&mut self, step: u64, hash: &str, outcome: Result<ReadyFacts, String>) -> bool {
        if self.state != (AgentState::Preparing { step, hash: hash.to_owned() }) {
            return false;
        }
        match outcome {
            Ok(ready) => {
                self.state = AgentState::Ready { step, ready, announced: false };
                self.report_ready();
            }
            Err(why) => {
                self.state = AgentState::Idle;
                self.send(FromAgent::Unfit { step, why });
            }
        }
        true
    }

    fn arm(&mut self, holding: Holding, start: Nanos, now: Nanos) {
        let step = holding.step;
        let AgentState::Ready { step: known, ready, .. } = &self.state else { return };
        if *known != step {
            return;
        }
        let (rate_peak, hash) = (ready.rate_peak, ready.hash.clone());
        let slots = holding.slots.iter();
        let shares: Result<Vec<Share>, _> =
            slots.map(|slots| Share::from_slots(slots, holding.of)).collect();
        let shares = match shares {
            Ok(shares) if !shares.is_empty() => shares,
            Ok(_) => return self.cancel_step(step, "no part of the load is left for this agent"),
            Err(why) => return self.cancel_step(step, &why.to_string()),
        };
        if let Some(why) = self.rate_limit_refusal(rate_peak, shares.iter()) {
            return self.cancel_step(step, &why);
        }
        let Some(offset) = self.offset() else {
            return self.cancel_step(step, "the manager's clock is not known");
        };
        let start = offset.here(start);
        if start < now + START_MIN {
            return self.cancel_step(step, "the start was announced too late");
        }
        let (ahead, bound) = (offset.ahead, offset.bound.0);
        self.held = Some((Holding { hash, bound, ..holding }, start));
        self.rate_peak = rate_peak;
        self.taken.clear();
        self.extra.clear();
        self.send(FromAgent::Armed { step, ahead, bound });
        self.state = AgentState::Armed { step, shares, start };
    }

    /// Returns the reason if our operator's rate limit forbids these parts of a load that peaks at
    /// `rate_peak`.
    fn rate_limit_refusal<'a>(
        &self,
        rate_peak: Option<f64>,
        shares: impl Iterator<Item = &'a Share>,
    ) -> Option<String> {
        let (most, peak) = self.hello.rate_max.zip(rate_peak)?;
        // parts repeat within fewer arrivals than these
        let own: u64 = shares.map(|share| share.count_of(SHARE_OF)).sum();
        let asked = peak * own as f64 / SHARE_OF as f64;
        (asked > most * (1.0 + ROUNDING)).then(|| {
            format!(
                "its operator allows {} and its part of the load is {}: more agents, or see --rate-max",
                units::show::rate(most),
                units::show::rate(asked)
            )
        })
    }

    /// Answers the offer of a part of a lost agent's load: takes the part once or refuses it, and
    /// repeats the answer if the offer is repeated.
    fn take(&mut self, step: u64, number: u64, slots: (&[Vec<u32>], u32), from: Nanos, now: Nanos) {
        if self.step() != Some(step) {
            return;
        }
        let refused = match self.taken.get(&number) {
            Some(content) => content.clone(),
            None => self.takes(slots, from, now).err(),
        };
        self.taken.insert(number, refused.clone());
        self.send(FromAgent::Taken { step, number, refused });
    }

    fn takes(
        &mut self,
        (slots, of): (&[Vec<u32>], u32),
        from: Nanos,
        now: Nanos,
    ) -> Result<(), String> {
        let AgentState::Running { ending: PartEnding::Done, .. } = &self.state else {
            return Err("its own part is finished".into());
        };
        if self.rate_peak.is_none() {
            return Err("only a load with a rate can be passed on".into());
        }
        let Some((holding, start)) = &self.held else {
            return Err("it runs nothing".into());
        };
        let own = &holding.slots;
        // a part may be cut finer than the load was: into more slots, each part of a former slot
        if slots.len() > own.len() || !of.is_multiple_of(holding.of.max(1)) || of > SLOTS_MAX {
            return Err("the part does not fit its workers".into());
        }
        if now >= *start + from {
            return Err("it was announced too late".into());
        }
        let part = |slots: &Vec<u32>| match slots.as_slice() {
            [] => Ok(None),
            slots => Share::from_slots(slots, of).map(Some),
        };
        let parts: Result<Vec<Option<Share>>, _> = slots.iter().map(part).collect();
        let parts = parts.map_err(|why| why.to_string())?;
        // its own slots refer to the load as divided at the start, however finely the part is
        // divided
        let mine: Result<Vec<Share>, _> =
            own.iter().map(|slots| Share::from_slots(slots, holding.of)).collect();
        let mine = mine.map_err(|why| why.to_string())?;
        if parts
            .iter()
            .flatten()
            .any(|part| mine.iter().chain(&self.extra).any(|own| overlap(part, own)))
        {
            return Err("it already runs some of these slots".into());
        }
        let all = mine.iter().chain(&self.extra).chain(parts.iter().flatten());
        if let Some(why) = self.rate_limit_refusal(self.rate_peak, all) {
            return Err(why);
        }
        self.extra.extend(parts.iter().flatten().cloned());
        self.actions.push_back(AgentAction::Take { parts, from });
        Ok(())
    }

    fn begin_armed(&mut self, step: u64) {
        if !matches!(&self.state, AgentState::Armed { step: of, .. } if *of == step) {
            return;
        }
        let running = AgentState::Running { step, ending: PartEnding::Done };
        if let AgentState::Armed { shares, start, .. } = std::mem::replace(&mut self.state, running)
        {
            self.actions.push_back(AgentAction::Run { run: self.client, step, shares, start });
        }
    }

    fn cancel_step(&mut self, step: u64, why: &str) {
        self.state = AgentState::Idle;
        self.send(FromAgent::StoodDown { step, why: why.to_owned() });
    }

    /// Sends the next row of the running step.
    pub fn row(&mut self, row: Vec<u8>) {
        self.rows.push(row.clone());
        self.actions.push_back(AgentAction::Row(row));
    }

    /// Reports the end of the step after its workers have finished. Adds the number of rows and how
    /// the run ended, which the agent knows.
    pub fn report_end(&mut self, mut content: Final, now: Nanos) {
        let AgentState::Running { step, ending } = &self.state else { return };
        content.step = *step;
        content.rows = self.rows.len() as u64;
        if content.ending == PartEnding::Done {
            content.ending = *ending;
        }
        if let Some(plan) = self.next.take() {
            // no manager requests results of an earlier one
            return self.unfold(plan);
        }
        content.refused = self.refused;
        content.drift_s = self.clock.drift().map(|drift| drift as f64 / 1e9);
        let content = Box::new(content);
        self.send(FromAgent::Final(content.clone()));
        self.state = AgentState::Over { content, again: now + Nanos::SECOND };
    }

    /// Returns when the state machine must be called again at the latest.
    pub fn next_at(&self) -> Nanos {
        let probe = if self.welcome { self.next_probe } else { Nanos::NEVER };
        self.next_sign.min(probe)
    }
}

/// Returns whether two parts of a load share an arrival.
fn overlap(one: &Share, other: &Share) -> bool {
    let ((one, of), (other, other_of)) = (one.slots(), other.slots());
    let (mut common, mut rest) = (of, other_of);
    while rest > 0 {
        (common, rest) = (rest, common % rest);
    }
    let taken: BTreeSet<u32> = other.iter().map(|slot| slot % common).collect();
    one.iter().any(|slot| taken.contains(&(slot % common)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Numbers of messages in these tests.
    static NUMBER: AtomicU64 = AtomicU64::new(1);

    fn number() -> u64 {
        NUMBER.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a message of the manager with this number, about its own run.
    fn stamped(content: ToAgent) -> Stamped<ToAgent> {
        let stamp = Stamp { session: 0, run: content.epoch(), number: number() };
        Stamped { stamp, content }
    }

    fn command(epoch: u64, what: What) -> ManagerMessage {
        let (run, number) = (epoch, number());
        ManagerMessage { epoch, run, number, at: NOW.0, unheard: Vec::new(), what }
    }

    const NOW: Nanos = Nanos::from_secs(10);

    /// Returns an agent with assigned slots of a load of 1,000/s.
    fn armed(rate_max: Option<f64>, slots: &[Vec<u32>], of: u32) -> Agent {
        let now = NOW;
        let mut agent = Agent::new("A", Hello { rate_max, ..Hello::default() }, now);
        agent.receive(stamped(ToAgent::Welcome { epoch: 1, agents: 1 }), now);
        for _ in 0..PROBES_MIN {
            let clock = ToAgent::Clock { epoch: 1, sent: now.0, received: now.0, returned: now.0 };
            agent.receive(stamped(clock), now);
        }
        let plan = ToAgent::Plan {
            epoch: 1,
            step: 1,
            hash: String::new(),
            part: 0,
            parts: 1,
            bytes: vec![],
        };
        agent.receive(stamped(plan), now);
        let ready = ReadyFacts { workers: 1, rate_peak: Some(1_000.0), ..ReadyFacts::default() };
        agent.prepared(1, "", Ok(ready));
        let start = (now + Nanos::from_secs(2)).0;
        let slots = slots.to_vec();
        agent
            .receive(stamped(ToAgent::Arm { epoch: 1, step: 1, slots, of, start, agents: 4 }), now);
        agent
    }

    fn last_message(agent: &mut Agent) -> Option<FromAgent> {
        let actions = std::iter::from_fn(|| agent.next_action());
        actions
            .filter_map(|action| {
                if let AgentAction::Say(message) = action { Some(message.content) } else { None }
            })
            .last()
    }

    #[test]
    fn the_clock_of_a_later_manager_is_estimated_again() {
        let now = Nanos::from_secs(10);
        let mut agent = Agent::new("A", Hello::default(), now);
        let beat = |epoch| command(epoch, What::Beat);
        let clock = |epoch| ToAgent::Clock { epoch, sent: now.0, received: 7, returned: 7 };
        agent.receive(stamped(ToAgent::Welcome { epoch: 1, agents: 1 }), now);
        agent.receive(stamped(clock(1)), now);
        assert!(agent.offset().is_some());
        agent.commanded(&beat(1), now);
        assert!(agent.offset().is_some());
        agent.commanded(&beat(2), now);
        assert_eq!(agent.offset(), None);
        // a replaced manager's messages have another clock, and it cannot refuse agents
        while agent.next_action().is_some() {}
        agent.receive(stamped(clock(1)), now);
        agent.receive(stamped(ToAgent::Refused { epoch: 1, why: "full".into() }), now);
        assert_eq!((agent.offset(), agent.next_action()), (None, None));
        agent.receive(stamped(ToAgent::Refused { epoch: 2, why: "full".into() }), now);
        assert!(matches!(agent.next_action(), Some(AgentAction::Exit { .. })));
    }

    #[test]
    fn a_ceiling_is_held_against_the_agents_own_part() {
        let quarter = [vec![1]];
        let last = |rate_max, slots: &[Vec<u32>]| last_message(&mut armed(rate_max, slots, 4));
        assert!(matches!(last(Some(250.0), &quarter), Some(FromAgent::Armed { .. })));
        assert!(matches!(last(None, &quarter), Some(FromAgent::Armed { .. })));
        let Some(FromAgent::StoodDown { why, .. }) = last(Some(240.0), &quarter) else {
            panic!("it starts beyond its ceiling");
        };
        assert!(why.contains("allows 240/s") && why.contains("is 250/s"), "{why}");
        // two workers of one agent count together
        let half = [vec![1], vec![3]];
        assert!(matches!(last(Some(250.0), &half), Some(FromAgent::StoodDown { .. })));
    }

    /// Offers another sixth of the load to an agent with a third; returns its reply, and the number
    /// of parts that it then reports as taken over.
    fn offered_a_sixth(rate_max: f64) -> (Option<String>, u32) {
        let mut agent = armed(Some(rate_max), &[vec![1]], 3);
        let what = What::Go { step: 1 };
        agent.commanded(&command(1, what), NOW);
        let from = Nanos::from_secs(9).0;
        let (step, number, slots) = (1, 0, vec![vec![5]]);
        agent.receive(stamped(ToAgent::Take { epoch: 1, step, number, slots, of: 6, from }), NOW);
        let Some(FromAgent::Taken { refused, .. }) = last_message(&mut agent) else {
            panic!("it does not answer");
        };
        agent.receive(stamped(ToAgent::Recall { epoch: 1 }), NOW);
        let Some(FromAgent::Held(holding)) = last_message(&mut agent) else {
            panic!("it does not say what it holds");
        };
        (refused, holding.taken)
    }

    #[test]
    fn a_part_that_is_cut_finer_does_not_shrink_its_own() {
        let (why, taken) = offered_a_sixth(450.0);
        let why = why.expect("333/s and 167/s are more than it may");
        assert!(why.contains("is 500") && taken == 0, "{why}");
        // a successor learns of the part
        assert_eq!(offered_a_sixth(501.0), (None, 1));
    }
}
