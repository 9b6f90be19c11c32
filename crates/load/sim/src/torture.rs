//! The faulty server in virtual time: torture conversations with a server whose defects are all
//! known.

use crate::run::drive_ready;
use crate::world::{Action, Admission, Client, Server, SimIo, World};
use campaign::{CampaignEvent, Done, Failure, ServerCommand, TestTarget, Watcher};
use conduit::Io;
use conduit::Peer;
use dialogue::governor::Governor;
use dialogue::http2::Protocol;
use dialogue::talk::{Carried, Conversations, Director, TalkScript, WaitUntil, play};
use dialogue::text::Values;
use faulty::{Act, Defects, Entry};
use sample::{Death, ServerState};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use torture::case::Case;
use torture::judge::TestOutcome;
use torture::record::{self, Execution, Run, Transcript};
use units::Nanos;

/// Returns the firing range as a torture target, with the page that accepts bodies.
pub fn target() -> TestTarget {
    TestTarget {
        peer: Peer::Tcp(SocketAddr::from(([127, 0, 0, 1], 80))),
        tls_name: None,
        protocol: Default::default(),
        values: Values {
            path: faulty::PATH.into(),
            host: "127.0.0.1".into(),
            post: faulty::POST.into(),
            outside: "etc/hostname".into(),
            ..Values::default()
        },
        takes_bodies: true,
        fields: String::new(),
        secrets: Vec::new(),
    }
}

/// Returns the firing range over HTTP/3 as a torture target.
pub fn target_over_quic() -> TestTarget {
    let plain = target();
    let address = SocketAddr::from(([127, 0, 0, 1], 443));
    TestTarget {
        peer: Peer::Quic { address, name: "127.0.0.1".to_owned() },
        tls_name: Some("127.0.0.1".to_owned()),
        protocol: Protocol::Http3,
        values: Values { scheme: "https".to_owned(), ..plain.values },
        ..plain
    }
}

/// Keeps the first failure of each name, as a run directory does.
#[derive(Debug)]
pub struct KeptFailures {
    /// Stored outcomes.
    wanted: fn(TestOutcome) -> bool,
    run: Run,
    kept: Vec<Transcript>,
    /// Conversations that must precede failures, by the failures' names.
    behind: Vec<(String, Vec<TalkScript>)>,
}

impl KeptFailures {
    pub fn new(wanted: fn(TestOutcome) -> bool) -> KeptFailures {
        KeptFailures { wanted, run: Run::default(), kept: Vec::new(), behind: Vec::new() }
    }

    /// Returns the kept failures, written and parsed again; `cases` are those of the run.
    ///
    /// # Panics
    /// Panics if the failures cannot be parsed, or a case is missing: the test must fail.
    pub fn failures(&self, cases: &[Case]) -> Vec<Failure> {
        let again = |kept: &Transcript| {
            let read = record::read(&record::write(kept));
            let case = cases.iter().find(|case| case.id == kept.case);
            let before = self.behind.iter().find(|(name, _)| *name == kept.name);
            Failure {
                transcript: read.expect("written data can be parsed"),
                case: case.expect("a case of the run").clone(),
                before: before.map_or_else(Vec::new, |(_, scripts)| scripts.clone()),
            }
        };
        self.kept.iter().map(again).collect()
    }

    fn keep(&mut self, execution: &Execution<'_>) {
        let known = |one: &Transcript| one.case == execution.case.id && one.name == execution.name;
        if (self.wanted)(execution.judgement.outcome) && !self.kept.iter().any(known) {
            self.kept.push(Transcript::new(&self.run, execution));
        }
    }
}

impl Watcher for KeptFailures {
    fn observe(&mut self, event: CampaignEvent<'_>) {
        match event {
            CampaignEvent::Ready(plain) => self.run.plain = plain.clone(),
            CampaignEvent::FailsAfter { name, before } => {
                self.behind.push((name.to_owned(), before.to_vec()));
            }
            CampaignEvent::ConversationOver(execution) => self.keep(execution),
            _ => {}
        }
    }
}

/// The firing range as a server of the simulated world.
#[derive(Debug)]
pub struct FiringRange {
    range: faulty::FaultyServer,
    clients: BTreeMap<u64, Client>,
    ids: BTreeMap<Client, u64>,
    next: u64,
    commands: Commands,
}

/// User commands waiting to be run against the range, by time: an outbox of the field, and an inbox
/// of the server.
#[derive(Clone, Debug, Default)]
pub struct Commands(Rc<RefCell<VecDeque<(Nanos, ServerCommand)>>>);

impl FiringRange {
    pub fn new(defects: &Defects) -> FiringRange {
        FiringRange {
            range: faulty::FaultyServer::new(defects),
            clients: BTreeMap::new(),
            ids: BTreeMap::new(),
            next: 0,
            commands: Commands::default(),
        }
    }

    /// Uses HTTP/3 over simulated QUIC connections: pieces of streams without packets.
    pub fn over_quic(defects: &Defects) -> FiringRange {
        FiringRange { range: faulty::FaultyServer::over_quic(defects), ..FiringRange::new(defects) }
    }

    /// Connects it to the user commands.
    pub fn with_commands(mut self, commands: &Commands) -> FiringRange {
        self.commands = commands.clone();
        self
    }

    fn run_commands(&mut self, now: Nanos) {
        let mut waiting = self.commands.0.borrow_mut();
        while let Some((at, action)) = waiting.pop_front_if(|(at, _)| *at <= now) {
            match action {
                ServerCommand::Restart => self.range.restart(at),
                ServerCommand::Starve => self.range.starve(true),
                ServerCommand::Relieve => self.range.starve(false),
            }
        }
    }

    fn leave(&mut self, now: Nanos, client: Client, reset: bool) {
        if let Some(id) = self.ids.remove(&client) {
            self.clients.remove(&id);
            self.range.remove_connection(now, id, reset);
        }
    }
}

impl Server for FiringRange {
    fn connect(&mut self, now: Nanos, client: Client) -> Admission {
        self.next += 1;
        let admission = match self.range.connect(now, self.next) {
            Entry::Refuse => return Admission::Refuse,
            Entry::Later(span) => Admission::AcceptAfter(span),
            Entry::Accept => Admission::Accept,
        };
        self.clients.insert(self.next, client);
        self.ids.insert(client, self.next);
        admission
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        if let Some(id) = self.ids.get(&client) {
            self.range.receive(now, *id, bytes);
        }
        Vec::new()
    }

    fn half_closed(&mut self, now: Nanos, client: Client) -> Vec<(Nanos, Action)> {
        if let Some(id) = self.ids.get(&client) {
            self.range.half_closed(now, *id);
        }
        Vec::new()
    }

    fn ended(&mut self, now: Nanos, client: Client) {
        self.leave(now, client, false);
    }

    fn reset(&mut self, now: Nanos, client: Client) {
        self.leave(now, client, true);
    }

    fn unsent(&mut self, now: Nanos, client: Client, bytes: u64) {
        if let Some(id) = self.ids.get(&client) {
            self.range.unsent(now, *id, bytes);
        }
    }

    fn state(&self, now: Nanos) -> Option<ServerState> {
        Some(self.range.state(now))
    }

    fn take_deaths(&mut self) -> Vec<Death> {
        self.range.take_deaths()
    }

    fn due(&self) -> Nanos {
        let action = self.commands.0.borrow().front().map_or(Nanos::NEVER, |(at, _)| *at);
        self.range.due().min(action)
    }

    fn wake(&mut self, now: Nanos) -> Vec<(Client, Action)> {
        self.run_commands(now);
        let acts = self.range.acts(now);
        let known = acts.into_iter().filter_map(|(id, act)| Some((*self.clients.get(&id)?, act)));
        let action = |act| match act {
            Act::Send(bytes) => Action::Bytes(bytes),
            Act::Close => Action::End,
            Act::GiveUp => Action::GiveUp,
            Act::Reset => Action::Reset,
        };
        known.map(|(client, act)| (client, action(act))).collect()
    }
}

/// The simulated world as seen by a torture session.
pub struct Field {
    world: Rc<RefCell<World>>,
    governor: Governor,
    /// Another source of stops, polled every [`CHECK_INTERVAL`].
    outside: Option<Outside>,
    commands: Commands,
    sent_for: Vec<Done>,
    patience: Nanos,
    carried: Carried,
}

/// Function that returns the reason if the run must stop.
pub type Outside = Box<dyn FnMut(Nanos) -> Option<dialogue::governor::Stop>>;

/// Maximum delay until a reason to stop is noticed: the same as in the real world.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(50);

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Field").field("governor", &self.governor).finish_non_exhaustive()
    }
}

impl Field {
    /// Creates a field without limits.
    pub fn new(world: World) -> Field {
        Field::governed(world, Governor::unbounded())
    }

    pub fn governed(world: World, governor: Governor) -> Field {
        Field {
            world: Rc::new(RefCell::new(world)),
            governor,
            outside: None,
            commands: Commands::default(),
            sent_for: Vec::new(),
            patience: Nanos::ZERO,
            carried: Carried::default(),
        }
    }

    /// Sets a path that loses handshake packets.
    pub fn patient(mut self, patience: Nanos) -> Field {
        self.patience = patience;
        self
    }

    /// Sets commands that a server accepts.
    pub fn with_commands(mut self, commands: &Commands) -> Field {
        self.commands = commands.clone();
        self
    }

    /// Adds another source of stops.
    pub fn watched(mut self, outside: Outside) -> Field {
        self.outside = Some(outside);
        self
    }
}

impl campaign::World for Field {
    fn now(&mut self) -> Nanos {
        self.world.borrow().now()
    }

    fn play(&mut self, director: &mut dyn Director) {
        let mut io = SimIo { world: self.world.clone(), worker: 0 };
        let world = self.world.clone();
        let outside = &mut self.outside;
        let mut stage = Conversations::new(None, &mut self.governor)
            .patient(self.patience)
            .carrying(&mut self.carried);
        play(&mut io, &mut stage, director, &mut |io, until, governor| {
            let now = io.now();
            let Some(outside) = outside else { return drive_ready(&world, until) };
            if let Some(why) = outside(now) {
                governor.stop(why);
            }
            drive_ready(&world, until.min(now + CHECK_INTERVAL))
        });
        stage.return_carried(&mut self.carried);
    }

    fn pause(&mut self, span: Nanos) {
        let until = self.world.borrow().now() + span;
        if !self.carried.is_empty() {
            return self.play(&mut WaitUntil { until });
        }
        self.world.borrow_mut().advance(until);
    }

    fn carried(&mut self) -> &mut Carried {
        &mut self.carried
    }

    fn server(&mut self) -> Option<ServerState> {
        self.world.borrow().server_state()
    }

    fn deaths(&mut self) -> Vec<Death> {
        self.world.borrow_mut().server_deaths()
    }

    fn governor(&mut self) -> &mut Governor {
        &mut self.governor
    }

    fn schedule_command(&mut self, action: ServerCommand, at: Nanos) {
        self.commands.0.borrow_mut().push_back((at, action));
        self.sent_for.push(Done { action, began: at, ended: at, trouble: None });
    }

    fn finished_commands(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.sent_for)
    }

    fn stopped(&self) -> Option<dialogue::governor::Stop> {
        self.governor.stopped().cloned()
    }
}
