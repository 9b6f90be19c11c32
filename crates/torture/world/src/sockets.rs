//! The real world of a torture run: sockets.

use crate::commands::Commands;
use crate::seen::Seen;
use campaign::{Done, ServerCommand, World};
use conduit::{Io, Ready, TlsFactory};
use dialogue::governor::Governor;
use dialogue::governor::Stop;
use dialogue::http2::Protocol;
use dialogue::packets::PacketLink;
use dialogue::talk::{Carried, Conversations, Director, WaitUntil, play};
use net::reactor::Reactor;
use ownstack::RawLink;
use sample::{Death, PathFacts, ServerState};
use session::over_quic::{Carrier, Quic};
use session::{EmulatedPath, Failure};
use torture::case::Need;
use units::Nanos;

/// Maximum delay until a reason to stop is noticed.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(50);

/// Source of external reasons to stop the run.
pub type Outside = Box<dyn FnMut() -> Option<Stop>>;

pub struct Sockets {
    reactor: Reactor,
    /// QUIC sockets for HTTP/3.
    quic: Option<Box<Quic>>,
    tls: Option<net::tls::Factory>,
    governor: Governor,
    outside: Outside,
    /// Latest measurement of this program's own CPU use, with its time.
    work: (Nanos, Nanos),
    /// The server's own side, if visible.
    server: Option<Seen>,
    commands: Commands,
    /// Conversations reused by later executions.
    carried: Carried,
    /// The emulated path of the cases.
    route: Option<EmulatedPath>,
    /// Destination of raw TCP segments, or the reason why raw TCP is not available.
    raw: Result<RawLink, String>,
}

impl std::fmt::Debug for Sockets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sockets").finish_non_exhaustive()
    }
}

impl Sockets {
    /// # Errors
    /// Fails if no descriptor is available.
    pub fn new(
        tls: Option<net::tls::Factory>,
        governor: Governor,
        outside: Outside,
    ) -> Result<Sockets, Failure> {
        let reactor = Reactor::new(Nanos::ZERO)
            .map_err(|error| Failure::usage(format!("cannot wait for sockets: {error}")))?;
        Ok(Sockets {
            reactor,
            quic: None,
            tls,
            governor,
            outside,
            work: (Nanos::ZERO, Nanos::ZERO),
            server: None,
            commands: Commands::new(Vec::new()),
            carried: Carried::default(),
            route: None,
            raw: Err(Need::Device.missing().to_owned()),
        })
    }

    /// Uses QUIC with these handshakes.
    ///
    /// # Errors
    /// Fails if no descriptor is available.
    pub fn over_quic(mut self, protocol: Protocol) -> Result<Sockets, Failure> {
        let carrier = self.tls.as_ref().filter(|_| protocol.is_http3());
        if let Some(carrier) = carrier.and_then(Carrier::from_factory) {
            let reactor = Reactor::new(Nanos::ZERO)
                .map_err(|error| Failure::usage(format!("cannot wait for sockets: {error}")))?;
            self.quic = Some(Box::new(carrier.wrap(reactor)));
        }
        Ok(self)
    }

    /// Watches the server's own side.
    pub fn with_server_watch(mut self, server: Option<Seen>) -> Sockets {
        self.server = server;
        self
    }

    /// Uses an emulated path.
    pub fn with_path(mut self, route: Option<EmulatedPath>) -> Sockets {
        self.route = route;
        self
    }

    /// Sets the destination of raw TCP segments.
    pub fn raw(mut self, raw: Result<RawLink, String>) -> Sockets {
        self.raw = raw;
        self
    }

    /// Returns the traffic through the path.
    ///
    /// # Errors
    /// Fails if the path failed.
    pub fn path_facts(&self) -> Result<Option<PathFacts>, Failure> {
        self.route.as_ref().map(EmulatedPath::facts).transpose().map_err(Failure::from)
    }

    /// Runs the user's commands.
    pub fn with_commands(mut self, commands: Commands) -> Sockets {
        self.commands = commands;
        self
    }

    fn look(&mut self) {
        let now = self.reactor.now();
        self.governor.look(now);
        if let Some(why) = (self.outside)() {
            self.governor.stop(why);
        }
    }
}

/// Waits for sockets, until the instant or the next check.
fn waited(io: &mut impl Io, until: Nanos) -> Vec<Ready> {
    let (mut ready, nap) = (Vec::new(), io.now() + CHECK_INTERVAL);
    io.wait(until.min(nap), &mut ready);
    ready
}

/// Makes new sockets of this thread use the path, if there is one.
fn enter(route: Option<&EmulatedPath>) {
    if let Some(route) = route {
        route.enter().expect("a network namespace created by this process");
    }
}

/// Ends that.
fn leave(route: Option<&EmulatedPath>) {
    if let Some(route) = route {
        route.leave().expect("the original network namespace of this thread");
    }
}

impl World for Sockets {
    fn now(&mut self) -> Nanos {
        self.reactor.now()
    }

    fn play(&mut self, director: &mut dyn Director) {
        self.look();
        let factory = self.tls.as_mut().map(|factory| factory as &mut dyn TlsFactory);
        let patience = self.route.as_ref().map_or(Nanos::ZERO, EmulatedPath::setup_allowance);
        let mut stage = Conversations::new(factory, &mut self.governor)
            .patient(patience)
            .carrying(&mut self.carried)
            .linked(self.raw.as_mut().ok().map(|raw| raw as &mut dyn PacketLink));
        let (outside, commands) = (&mut self.outside, &mut self.commands);
        let route = self.route.as_ref();
        enter(route);
        let mut look = |now: Nanos, governor: &mut Governor| {
            if commands.is_awaited() {
                // the user's commands run where the server is
                leave(route);
                commands.look(now);
                enter(route);
            }
            if let Some(why) = outside() {
                governor.stop(why);
            }
        };
        match &mut self.quic {
            Some(quic) => play(&mut **quic, &mut stage, director, &mut |io, until, governor| {
                let ready = waited(io, until);
                look(io.now(), governor);
                ready
            }),
            None => play(&mut self.reactor, &mut stage, director, &mut |io, until, governor| {
                let ready = waited(io, until);
                look(io.now(), governor);
                ready
            }),
        }
        stage.return_carried(&mut self.carried);
        leave(route);
    }

    fn pause(&mut self, span: Nanos) {
        let mut ready = Vec::new();
        let until = self.reactor.now() + span;
        if !self.carried.is_empty() {
            return self.play(&mut WaitUntil { until });
        }
        while self.reactor.now() < until && self.governor.stopped().is_none() {
            let nap = self.reactor.now() + CHECK_INTERVAL;
            self.reactor.wait(until.min(nap), &mut ready);
            self.look();
        }
    }

    fn carried(&mut self) -> &mut Carried {
        &mut self.carried
    }

    fn device(&self) -> Result<(), String> {
        self.raw.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    fn own_work(&mut self) -> Option<f64> {
        // of this thread: a background load has its own
        let used = host::cpu::ThreadTime::now().cpu;
        let now = self.reactor.now();
        let (before, used_before) = std::mem::replace(&mut self.work, (now, used));
        let span = (now - before).as_secs_f64();
        (span > 0.0).then(|| (used - used_before).as_secs_f64() / span)
    }

    fn server(&mut self) -> Option<ServerState> {
        self.server.as_mut().and_then(Seen::state)
    }

    fn server_memory(&mut self) -> Option<u64> {
        self.server.as_ref().and_then(Seen::memory_bytes)
    }

    fn deaths(&mut self) -> Vec<Death> {
        self.server.as_mut().map(Seen::deaths).unwrap_or_default()
    }

    fn schedule_command(&mut self, action: ServerCommand, at: Nanos) {
        self.commands.schedule_command(action, at);
    }

    fn finished_commands(&mut self) -> Vec<Done> {
        let mut ready = Vec::new();
        self.commands.conclude(self.reactor.now());
        while !self.commands.is_over() {
            let nap = self.reactor.now() + CHECK_INTERVAL;
            self.reactor.wait(nap, &mut ready);
            self.commands.look(self.reactor.now());
        }
        self.commands.take()
    }

    fn governor(&mut self) -> &mut Governor {
        &mut self.governor
    }

    fn stopped(&self) -> Option<Stop> {
        self.governor.stopped().cloned()
    }
}
