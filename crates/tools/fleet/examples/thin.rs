//! Thin agents: the agents' side of the protocol without a load, a thousand of them in a few
//! processes, to measure how many the manager and the server support. See docs/design/fleet.md for
//! the figures.
//!
//! ```text
//! cargo run -p fleet --example thin -- AGENTS SECONDS
//! ```

#![allow(clippy::print_stdout, reason = "what it finds out is for people")]

use fleet::protocol::PROTOCOL;
use fleet::protocol::agent::{Agent, AgentAction, ReadyFacts};
use fleet::protocol::manager::{FleetEvent, Manager, Post};
use fleet::protocol::message::{self, Final, Hello, ToAgent};
use fleet::protocol::row::{RowHead, decode, encode};
use fleet::protocol::slots::SlotTable;
use fleet::{
    Credentials, Grant, Incoming, NatsEndpoint, NatsLink, NatsServer, Role, SealKey, ServerOptions,
};
use fleet::{Subjects, seal};
use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Child, Command};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use units::Nanos;

const FLEET: &str = "thin";
/// Number of agents per process.
const PER_PROCESS: usize = 125;
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time between two calls of a machine.
const TURN: Duration = Duration::from_millis(20);
/// Number of calls per row.
const CALLS: u64 = 1_000;

type Done = Result<(), Box<dyn Error>>;

fn main() -> Done {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--agents", url, dir, from, to] => agents(url, dir, from.parse()?, to.parse()?),
        [agents, seconds] => manager(agents.parse()?, seconds.parse()?),
        _ => Err("give the number of agents, and of seconds".into()),
    }
}

/// Processes that end with their manager.
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // it may have exited on its own
            child.kill().ok();
            child.wait().ok();
        }
    }
}

fn manager(count: usize, seconds: u64) -> Done {
    let dir = tempfile::tempdir()?;
    let own = Credentials::generate(FLEET, Role::Manager)?;
    let mut grants = vec![Grant::from(&own)];
    for row in 0..count {
        let agent = Credentials::generate(FLEET, Role::Agent)?;
        agent.write(&dir.path().join(format!("{row}.creds")))?;
        grants.push(Grant::from(&agent));
    }
    let server = NatsServer::start(&ServerOptions::default(), FLEET, &grants)?;
    let place = NatsEndpoint { url: server.url(), ..NatsEndpoint::default() };
    let subjects = Subjects::new(FLEET);
    let (_, listen) = subjects.permitted(Role::Manager, &own.id());
    let link = NatsLink::connect(&place, &own, listen, PATIENCE)?;
    let program = std::env::current_exe()?;
    let mut processes = Processes(Vec::new());
    for from in (0..count).step_by(PER_PROCESS) {
        let to = count.min(from + PER_PROCESS);
        let mut command = Command::new(&program);
        command.args(["--agents", &place.url]).arg(dir.path());
        command.args([from.to_string(), to.to_string()]);
        processes.0.push(command.spawn()?);
    }
    let machine = Manager::new(1, count, net::reactor::monotonic());
    let mut desk = Desk { machine, link, subjects, server: server.pid(), ready: false, rows: 0 };
    desk.live(count, seconds)
}

/// Returns the CPU seconds of a process, user and system.
fn cpu_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

struct Desk {
    machine: Manager,
    link: NatsLink,
    subjects: Subjects,
    server: u32,
    ready: bool,
    rows: u64,
}

impl Desk {
    fn live(&mut self, count: usize, seconds: u64) -> Done {
        let begin = net::reactor::monotonic();
        let mut first = None;
        while !self.machine.complete() {
            self.turn();
            if !self.machine.agent_entries().is_empty() {
                first.get_or_insert_with(net::reactor::monotonic);
            }
        }
        let now = net::reactor::monotonic();
        let joined = now - first.unwrap_or(now);
        println!(
            "{count} agents joined in {:.2} s, {:.2} s after the first process was started",
            joined.as_secs_f64(),
            (now - begin).as_secs_f64()
        );
        let sealed: Result<BTreeMap<String, Vec<u8>>, _> = self
            .machine
            .agent_entries()
            .iter()
            .map(|(id, agent_entry)| {
                Ok((id.clone(), seal(&agent_entry.hello.seal_key, &[7; 2_000])?))
            })
            .collect();
        let asked = net::reactor::monotonic();
        self.machine.prepare("hash", &sealed.map_err(|error: fleet::FleetError| error)?);
        while !self.ready {
            self.turn();
        }
        println!(
            "all had the plan after {:.2} s",
            (net::reactor::monotonic() - asked).as_secs_f64()
        );
        let table = SlotTable::new(&vec![1.0; count]);
        let ids: Vec<String> = self.machine.agent_entries().keys().cloned().collect();
        let slots = ids.into_iter().zip(table.slots.into_iter().map(|slots| vec![slots]));
        let start = net::reactor::monotonic() + self.machine.start_lead_time();
        self.machine.arm(slots.collect(), table.of, start);
        while net::reactor::monotonic() < start + Nanos::SECOND {
            self.turn();
        }
        let bounds: Vec<u64> =
            self.machine.agent_entries().values().map(|agent_entry| agent_entry.bound).collect();
        let worst = Nanos(bounds.into_iter().max().unwrap_or(0));
        println!("clocks are known to within {:.2} ms", worst.as_secs_f64() * 1e3);
        self.measure(seconds);
        self.machine.stop(true);
        let stopped = net::reactor::monotonic();
        while !self.machine.agent_entries().values().all(|agent_entry| agent_entry.whole) {
            self.turn();
            if net::reactor::monotonic() > stopped + Nanos::from_secs(20) {
                return Err("not every agent finished".into());
            }
        }
        let ended = (net::reactor::monotonic() - stopped).as_secs_f64();
        let rows: u64 = self
            .machine
            .agent_entries()
            .values()
            .filter_map(|agent_entry| Some(agent_entry.content.as_ref()?.rows))
            .sum();
        println!(
            "all agents had stopped {ended:.3} s after the order; {} of {rows} rows were lost",
            rows - self.rows
        );
        self.machine.disband("the trial is over");
        self.turn();
        Ok(())
    }

    /// Measures the cost of `seconds` of rows for the manager and the server.
    fn measure(&mut self, seconds: u64) {
        let own = std::process::id();
        let (before, from) = ((cpu_s(own), cpu_s(self.server)), net::reactor::monotonic());
        let rows = self.rows;
        while net::reactor::monotonic() < from + Nanos::from_secs(seconds) {
            self.turn();
        }
        let span = (net::reactor::monotonic() - from).as_secs_f64();
        let share = |now: f64, then: f64| (now - then) / span * 100.0;
        println!(
            "{:.0} rows a second; the manager used {:.0} % of a core, the server {:.0} %",
            (self.rows - rows) as f64 / span,
            share(cpu_s(own), before.0),
            share(cpu_s(self.server), before.1)
        );
    }

    fn turn(&mut self) {
        match self.link.inbox.recv_timeout(TURN) {
            Ok(Incoming::Message { subject, bytes, at }) => self.message(&subject, bytes, at),
            Ok(Incoming::TooSlow) => println!("the manager is too slow"),
            _ => {}
        }
        while let Ok(Incoming::Message { subject, bytes, at }) = self.link.inbox.try_recv() {
            self.message(&subject, bytes, at);
        }
        self.machine.tick(net::reactor::monotonic());
        self.post();
    }

    fn post(&mut self) {
        while let Some(post) = self.machine.post() {
            let (subject, bytes) = match post {
                Post::All(command) => (self.subjects.command(), message::write(&command)),
                Post::One(agent, mut payload) => {
                    if let ToAgent::Clock { returned, .. } = &mut payload.content {
                        *returned = net::reactor::monotonic().0;
                    }
                    (self.subjects.agent_subject(&agent), message::write(&payload))
                }
            };
            self.link.sender().send(subject, bytes);
        }
        while let Some(event) = self.machine.event() {
            match event {
                FleetEvent::Ready => self.ready = true,
                // the cost of reading a row is part of the trial
                FleetEvent::Row(_, bytes) => {
                    let mut snapshot = stats::Snapshot::default();
                    if decode(&bytes, &mut snapshot).is_ok() {
                        self.rows += 1;
                    }
                }
                FleetEvent::Lost(agent, why) | FleetEvent::StoodDown(agent, why) => {
                    println!("{agent}: {why}");
                }
                _ => {}
            }
        }
    }

    fn message(&mut self, subject: &str, bytes: Vec<u8>, at: Nanos) {
        let Some((kind, agent)) = self.subjects.sender(subject) else { return };
        if kind == "rows" {
            return self.machine.row(agent, bytes, at);
        }
        match message::read(&bytes) {
            Ok(content) => self.machine.receive(agent, content, at),
            Err(why) => println!("{why}"),
        }
        self.post();
    }
}

struct Thin {
    id: String,
    agent: Agent,
    link: NatsLink,
    seal_key: SealKey,
    /// The manager that started the current run, and the next row.
    run: u64,
    next: Option<(Nanos, u64)>,
    calls: stats::Snapshot,
    gone: bool,
}

/// Runs the agents of one process on a single thread, in addition to the threads of their
/// connections.
fn agents(url: &str, dir: &str, from: usize, to: usize) -> Done {
    let subjects = Subjects::new(FLEET);
    let place = NatsEndpoint { url: url.to_owned(), ..NatsEndpoint::default() };
    let mut all = Vec::new();
    for row in from..to {
        let own = Credentials::read(&std::path::Path::new(dir).join(format!("{row}.creds")))?;
        let (id, seal_key) = (own.id(), SealKey::generate()?);
        let listen = vec![subjects.command(), subjects.agent_subject(&id)];
        let link = NatsLink::connect(&place, &own, listen, PATIENCE)?;
        let hello = Hello {
            protocol: PROTOCOL,
            seal_key: seal_key.public().to_vec(),
            session: 1 + row as u64,
            ..Hello::default()
        };
        let agent = Agent::new(&id, hello, net::reactor::monotonic());
        let (run, next, calls) = (0, None, calls());
        all.push(Thin { id, agent, link, seal_key, run, next, calls, gone: false });
        all.iter_mut().for_each(|thin| thin.turn(&subjects));
    }
    while all.iter().any(|thin| !thin.gone) {
        all.iter_mut().for_each(|thin| thin.turn(&subjects));
        std::thread::park_timeout(Duration::from_millis(2));
    }
    Ok(())
}

impl Thin {
    fn turn(&mut self, subjects: &Subjects) {
        loop {
            match self.link.inbox.recv_timeout(Duration::ZERO) {
                Ok(Incoming::Message { subject, bytes, at }) if subject == subjects.command() => {
                    if let Ok(command) = message::read(&bytes) {
                        self.agent.commanded(&command, at);
                    }
                }
                Ok(Incoming::Message { bytes, at, .. }) => {
                    if let Ok(content) = message::read(&bytes) {
                        self.agent.receive(content, at);
                    }
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    self.gone = true;
                    return;
                }
            }
        }
        let now = net::reactor::monotonic();
        self.agent.tick(now);
        if let Some((due, number)) = self.next.filter(|(due, _)| *due <= now) {
            let (run, step) = (self.run, 1);
            let head = RowHead { run, step, number, ..RowHead::default() };
            self.agent.row(encode(&head, &self.calls));
            self.next = Some((due + Nanos::SECOND, number + 1));
        }
        while let Some(action) = self.agent.next_action() {
            self.act(action, subjects);
        }
    }

    fn act(&mut self, action: AgentAction, subjects: &Subjects) {
        let send = |subject, bytes| self.link.sender().send(subject, bytes);
        match action {
            AgentAction::Say(content) => send(subjects.from(&self.id), message::write(&content)),
            AgentAction::Row(bytes) => send(subjects.rows(&self.id), bytes),
            AgentAction::Prepare { step, hash, sealed } => {
                let opened = self.seal_key.open(&sealed).map_err(|error| error.to_string());
                let facts = ReadyFacts { hash: hash.clone(), workers: 1, rate_peak: None };
                self.agent.prepared(step, &hash, opened.map(|_| facts));
            }
            AgentAction::Run { run, start, .. } => {
                (self.run, self.next) = (run, Some((start + Nanos::SECOND, 0)));
            }
            AgentAction::Take { .. } | AgentAction::Cease { .. } => {}
            AgentAction::Stop | AgentAction::Abandon => {
                if self.next.take().is_some() {
                    self.agent.report_end(Final::default(), net::reactor::monotonic());
                }
            }
            AgentAction::Exit { .. } => self.gone = true,
        }
    }
}

/// Returns a thousand calls: their row is as large as that of a real agent with this rate.
fn calls() -> stats::Snapshot {
    let mut snapshot = stats::Snapshot::default();
    let mut dice = 0x9E37_79B9_u64;
    for _ in 0..CALLS {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let took = Nanos::from_micros(300 + (dice >> 33) % 5_000);
        for hist in [&mut snapshot.service, &mut snapshot.succeeded, &mut snapshot.punctual] {
            hist.record(took);
        }
    }
    (snapshot.counts.due, snapshot.counts.succeeded) = (CALLS, CALLS);
    snapshot
}
