//! The manager's state machine on its thread: between the network and the code that runs the plan.

use anyhow::{Result, bail};
use fleet::protocol::LOST_AFTER;
use fleet::protocol::manager::{FleetEvent, Manager, Post};
use fleet::protocol::message::{self, Final, Hello, Holding, OperatorMessage, ToAgent};
use fleet::protocol::stamp::RefusedMessages;
use fleet::{Incoming, LinkSender, NatsLink, NatsServer, Subjects};
use sample::SutSeries;
use session::console::print_message;
use session::signals;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use units::Nanos;

/// Maximum delay in noticing a signal or a watcher's request.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum wait of the machine between calls.
const TURN: Duration = Duration::from_millis(50);

/// Pause between two attempts to start the server again.
const REVIVE_PAUSE: Nanos = Nanos::from_secs(1);
/// Maximum number of messages read at once.
const BATCH: usize = 10_000;

/// Maximum wait for the last row of the target's watcher.
const LAST_ROW_MAX: Nanos = Nanos::from_millis(500);

/// State of an agent at the start of a step.
#[derive(Clone, Debug)]
pub(crate) struct AgentEntryFacts {
    pub(crate) hello: Hello,
    pub(crate) workers: u32,
    /// Offset of the agent's clock and its bound, in nanoseconds.
    pub(crate) ahead: i64,
    pub(crate) bound: u64,
}

/// Agents by id, sorted.
pub(crate) type AgentEntries = BTreeMap<String, AgentEntryFacts>;

/// The manager's connection to the agents.
pub struct Wire {
    manager: Arc<Mutex<Manager>>,
    sender: LinkSender,
    subjects: Subjects,
    events: Receiver<FleetEvent>,
    thread: Option<JoinHandle<()>>,
    end: Sender<()>,
    version: String,
    /// True if another manager's run was taken over.
    adopted: bool,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Wire {
    /// Takes over a link of the manager; `server` is restarted if it exits.
    pub fn start(
        manager: Manager,
        link: NatsLink,
        subjects: Subjects,
        server: Option<NatsServer>,
    ) -> Result<Wire> {
        let manager = Arc::new(Mutex::new(manager));
        let (give, events) = channel();
        let (end, ended) = channel();
        let sender = link.sender();
        let version = link.version.map_or(String::new(), |version| version.to_string());
        let desk = Desk {
            manager: manager.clone(),
            link,
            subjects: subjects.clone(),
            server,
            down: false,
            next_try: Nanos::ZERO,
            give,
        };
        let body = move || desk.run(&ended);
        let thread = std::thread::Builder::new().name("fleet".into()).spawn(body)?;
        let (thread, adopted) = (Some(thread), false);
        Ok(Wire { manager, sender, subjects, events, thread, end, version, adopted })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Manager) -> T) -> T {
        let mut manager = self.manager.lock().unwrap_or_else(PoisonError::into_inner);
        let value = act(&mut manager);
        send_posts(&mut manager, &self.sender, &self.subjects);
        value
    }

    /// Returns the number of agents that take part.
    pub fn agents(&self) -> usize {
        self.agent_entries().len()
    }

    pub(crate) fn agent_entries(&self) -> AgentEntries {
        self.with(|manager| {
            let facts = |agent_entry: &fleet::protocol::manager::AgentEntry| AgentEntryFacts {
                hello: agent_entry.hello.clone(),
                workers: agent_entry.workers,
                ahead: agent_entry.ahead,
                bound: agent_entry.bound,
            };
            manager
                .agent_entries()
                .iter()
                .map(|(agent, agent_entry)| (agent.clone(), facts(agent_entry)))
                .collect()
        })
    }

    /// Reports of the agents about their parts.
    pub(crate) fn finals(&self) -> BTreeMap<String, Final> {
        self.with(|manager| {
            let entries = manager.agent_entries().iter();
            entries
                .filter_map(|(agent, entry)| Some((agent.clone(), entry.content.clone()?)))
                .collect()
        })
    }

    /// Returns the counts of messages that the manager refused: those of other runs and processes.
    pub(crate) fn refused(&self) -> RefusedMessages {
        self.with(|manager| manager.refused())
    }

    /// Returns the agent's machine, and its place in the order of ids.
    pub(crate) fn name(&self, agent: &str) -> String {
        self.with(|manager| {
            let row = manager.agent_entries().keys().position(|known| known == agent);
            let host = manager
                .agent_entries()
                .get(agent)
                .map(|agent_entry| agent_entry.hello.host.clone());
            format!("agent {} on {}", row.unwrap_or_default() + 1, host.unwrap_or_default())
        })
    }

    /// Returns the version of the NATS server.
    pub(crate) fn server_version(&self) -> String {
        self.version.clone()
    }

    pub(crate) fn event(&self, patience: Duration) -> Option<FleetEvent> {
        self.events.recv_timeout(patience).ok()
    }

    /// Returns the agents from which no more messages are expected.
    pub(crate) fn absent(&self) -> Vec<String> {
        self.with(|manager| manager.absent())
    }

    /// Continues without an agent.
    pub(crate) fn dismiss(&self, agent: &str) {
        self.with(|manager| manager.dismiss(agent));
    }

    pub(crate) fn prepare(&self, hash: &str, sealed: &BTreeMap<String, Vec<u8>>) {
        // the remains of the previous step belong to no agent
        while self.events.try_recv().is_ok() {}
        self.with(|manager| manager.prepare(hash, sealed));
    }

    pub(crate) fn arm(&self, slots: BTreeMap<String, Vec<Vec<u32>>>, of: u32, start: Nanos) {
        self.with(|manager| manager.arm(slots, of, start));
    }

    /// Queries the agents' parts of a run whose manager has exited, by id.
    ///
    /// # Errors
    /// Fails if not all of them answer within `patience`.
    pub(crate) fn query_assignments(&self, patience: Nanos) -> Result<BTreeMap<String, Holding>> {
        self.with(Manager::query_assignments);
        let until = net::reactor::monotonic() + patience;
        while !self.with(|manager| {
            manager.agent_entries().values().all(|agent_entry| agent_entry.held.is_some())
        }) {
            self.event(POLL_INTERVAL);
            if net::reactor::monotonic() > until {
                bail!("not every agent reported its parts");
            }
        }
        Ok(self.with(|manager| {
            let held = manager.agent_entries().iter();
            held.filter_map(|(agent, agent_entry)| Some((agent.clone(), agent_entry.held.clone()?)))
                .collect()
        }))
    }

    /// Continues a step that another manager began at this instant.
    pub(crate) fn adopt(&mut self, (run, step): (u64, u64), start: Nanos) {
        self.with(|manager| manager.adopt(run, step, start));
        self.adopted = true;
    }

    pub(crate) fn has_adopted(&self) -> bool {
        self.adopted
    }

    /// Returns the minimum time between now and the start of a step.
    pub(crate) fn start_lead_time(&self) -> Nanos {
        self.with(|manager| manager.start_lead_time())
    }

    /// Announces the start of the measured phase, so that the target's watcher uses the same
    /// intervals.
    pub(crate) fn measuring(&self, from: Nanos) {
        self.with(|manager| manager.measuring(from));
    }

    /// Returns observations of the target's machine in a measured phase of `span_s`. Its last row
    /// may still be missing.
    pub(crate) fn seen(&self, span_s: f64) -> Option<SutSeries> {
        let until = net::reactor::monotonic() + LAST_ROW_MAX;
        loop {
            let series = self.with(|manager| manager.seen().cloned())?;
            let last = series.rows.last().map_or(0.0, |row| row.at_s);
            // a row ends within a tenth of a second of its edge, unless nothing reads anymore
            let whole = last + 0.1 >= span_s || !series.trouble.is_empty();
            if whole || span_s.is_infinite() || net::reactor::monotonic() > until {
                return Some(series);
            }
            self.event(POLL_INTERVAL);
        }
    }

    /// Waits until a watcher of the target joins.
    ///
    /// # Errors
    /// Fails if no watcher joined within `patience`, or a signal arrived.
    pub fn await_watch(&self, patience: Duration) -> Result<()> {
        let until = net::reactor::monotonic() + Nanos(patience.as_nanos() as u64);
        while !self.with(|manager| manager.watched()) {
            self.event(TURN);
            if signals::received_signal() > 0 {
                bail!("interrupted: no `fleet watch` had joined yet");
            }
            if net::reactor::monotonic() > until {
                bail!("no `fleet watch` joined in time; see --watch and --wait");
            }
        }
        Ok(())
    }

    /// Withdraws a lost agent's part; returns the instant after which that agent certainly issues
    /// nothing.
    pub(crate) fn relieve(&self, agent: &str) -> Nanos {
        self.with(|manager| manager.relieve(agent))
    }

    /// Offers slots of a lost agent to another agent; returns the number of the offer.
    pub(crate) fn offer(&self, successor: &str, slots: Vec<Vec<u32>>, of: u32, from: Nanos) -> u64 {
        self.with(|manager| manager.offer(successor, slots, of, from))
    }

    pub(crate) fn stop(&self, abandon: bool) {
        self.with(|manager| manager.stop(abandon));
    }

    pub(crate) fn done(&self) {
        self.with(Manager::done);
    }

    /// Waits until all agents have joined.
    ///
    /// # Errors
    /// Fails if they have not joined within `patience`, or a signal arrived.
    pub fn await_agents(&self, wanted: usize, patience: Duration) -> Result<()> {
        let until = net::reactor::monotonic() + Nanos(patience.as_nanos() as u64);
        while !self.with(|manager| manager.complete()) {
            self.event(TURN);
            let there = self.with(|manager| manager.agent_entries().len());
            if signals::received_signal() > 0 {
                bail!("interrupted: {there} of {wanted} agents had joined");
            }
            if net::reactor::monotonic() > until {
                bail!("only {there} of {wanted} agents joined in time; see --wait");
            }
        }
        Ok(())
    }

    /// Waits for the agents of a run that another manager began: for all of them, or until the time
    /// is over after which the missing ones are lost. `wanted`: wait for this number instead.
    ///
    /// # Errors
    /// Fails if none has joined within `patience`, or a signal arrived.
    pub fn rejoin(&self, wanted: Option<usize>, patience: Duration) -> Result<()> {
        let until = net::reactor::monotonic() + Nanos(patience.as_nanos() as u64);
        let mut first = Nanos::NEVER;
        loop {
            let (there, complete) = self.with(|manager| {
                let entries = manager.agent_entries().values();
                let held = entries.filter_map(|entry| entry.held.as_ref());
                let most = held.map(|held| held.agents as usize).max().filter(|most| *most > 0);
                if let (None, Some(most)) = (wanted, most) {
                    manager.expect(most);
                }
                manager.query_assignments();
                (manager.agent_entries().len(), manager.complete())
            });
            let now = net::reactor::monotonic();
            if there > 0 {
                first = first.min(now);
            }
            if complete || first < Nanos::NEVER && now > first + LOST_AFTER {
                return Ok(());
            }
            if signals::received_signal() > 0 {
                bail!("interrupted: {there} agents had answered");
            }
            if now > until {
                bail!("no agent answered in time; see --wait");
            }
            self.event(TURN);
        }
    }

    /// Ends the fleet.
    pub(crate) fn close(&mut self, why: &str) {
        self.with(|manager| manager.disband(why));
        self.leave();
    }

    /// Leaves the fleet unchanged.
    pub(crate) fn leave(&mut self) {
        self.end.send(()).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

#[cfg(test)]
impl Wire {
    /// Returns a manager connection without agents.
    pub(crate) fn disconnected(manager: Manager) -> Wire {
        let ((_, events), (end, _)) = (channel(), channel());
        Wire {
            manager: Arc::new(Mutex::new(manager)),
            sender: LinkSender::disconnected(),
            subjects: Subjects::new("nobody"),
            events,
            thread: None,
            end,
            version: String::new(),
            adopted: false,
        }
    }
}

fn send_posts(manager: &mut Manager, sender: &LinkSender, subjects: &Subjects) {
    while let Some(post) = manager.post() {
        match post {
            Post::All(command) => sender.send(subjects.command(), message::write(&command)),
            Post::One(agent, mut post) => {
                if let ToAgent::Clock { returned, .. } = &mut post.content {
                    *returned = net::reactor::monotonic().0;
                }
                sender.send(subjects.agent_subject(&agent), message::write(&post));
            }
        }
    }
}

/// State of the manager's thread.
struct Desk {
    manager: Arc<Mutex<Manager>>,
    link: NatsLink,
    subjects: Subjects,
    server: Option<NatsServer>,
    /// The connection to the server is down.
    down: bool,
    /// Earliest restart after a failed start.
    next_try: Nanos,
    give: Sender<FleetEvent>,
}

impl Desk {
    fn run(mut self, ended: &Receiver<()>) {
        loop {
            match self.link.inbox.recv_timeout(TURN) {
                Ok(heard) => self.note_incoming(heard),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // after a delay all queued messages are read before an agent counts as silent
            for _ in 0..BATCH {
                let Ok(heard) = self.link.inbox.try_recv() else { break };
                self.note_incoming(heard);
            }
            if self.down && net::reactor::monotonic() >= self.next_try {
                self.restart_if_exited();
            }
            let mut manager = self.manager.lock().unwrap_or_else(PoisonError::into_inner);
            manager.tick(net::reactor::monotonic());
            send_posts(&mut manager, &self.link.sender(), &self.subjects);
            while let Some(event) = manager.event() {
                self.give.send(event).ok();
            }
            drop(manager);
            if ended.try_recv().is_ok() {
                return;
            }
        }
    }

    fn note_incoming(&mut self, heard: Incoming) {
        match heard {
            Incoming::Message { subject, bytes, at } => self.message(&subject, bytes, at),
            // a killed server may take a while to exit: poll until it is back
            Incoming::Disconnected => self.down = true,
            Incoming::Connected => self.down = false,
            Incoming::Refused(why) => print_message(&format!("the server refuses: {why}")),
            Incoming::TooSlow => {}
        }
    }

    fn restart_if_exited(&mut self) {
        let Some(server) = &mut self.server else { return };
        match server.restart_if_exited() {
            Ok(true) => print_message("nats-server had exited and was restarted"),
            Ok(false) => {}
            Err(error) => {
                self.next_try = net::reactor::monotonic() + REVIVE_PAUSE;
                print_message(&error.to_string());
            }
        }
    }

    fn message(&mut self, subject: &str, bytes: Vec<u8>, at: Nanos) {
        let Some((kind, agent)) = self.subjects.sender(subject) else { return };
        let mut manager = self.manager.lock().unwrap_or_else(PoisonError::into_inner);
        match kind {
            "rows" => manager.row(agent, bytes, at),
            "from" => match message::read(&bytes) {
                Ok(content) => manager.receive(agent, content, at),
                Err(why) => print_message(&format!("agent {agent}: {why}")),
            },
            "sut" => match message::read(&bytes) {
                Ok(content) => manager.receive_from_watch(agent, content, at),
                Err(why) => print_message(&format!("watch {agent}: {why}")),
            },
            "ctl" => match message::read(&bytes) {
                Ok(OperatorMessage::Abort) => signals::interrupt(),
                Ok(OperatorMessage::Status) => {
                    let status = message::write(&manager.status(at));
                    self.link.sender().send(self.subjects.answer(), status);
                }
                Err(why) => print_message(&why),
            },
            _ => {}
        }
        // an answer to a clock query is sent at once
        send_posts(&mut manager, &self.link.sender(), &self.subjects);
    }
}
