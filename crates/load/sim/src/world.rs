//! The simulated world: one clock, one server, and the pipes between it and the workers.

use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use sample::{Death, FailureClass, ServerState, SocketFacts};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::rc::Rc;
use units::Nanos;

/// A client connection as seen by the server: worker, slot, opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client {
    pub worker: u32,
    pub slot: Slot,
    pub generation: u32,
}

/// Result of a connection attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Accept,
    /// Accept after this time: the first attempts were lost.
    AcceptAfter(Nanos),
    Refuse,
    /// No answer at all, as from a full backlog or a host that is down.
    Ignore,
    /// The driver itself cannot open the connection.
    Fail(FailureClass),
}

/// Action of the server at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Bytes(Vec<u8>),
    End,
    /// Drops data that the client has not received yet, then ends the connection.
    GiveUp,
    Reset,
}

/// A server without I/O: receives events and returns actions with their times.
pub trait Server {
    fn connect(&mut self, _now: Nanos, _client: Client) -> Admission {
        Admission::Accept
    }

    /// Handles received bytes; the actions follow at the given instants, none of them before `now`.
    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)>;

    /// Handles a client that has ended its sending side and still reads.
    fn half_closed(&mut self, _now: Nanos, _client: Client) -> Vec<(Nanos, Action)> {
        Vec::new()
    }

    /// Handles a client that has closed its side.
    fn ended(&mut self, _now: Nanos, _client: Client) {}

    /// Handles a client that has reset the connection.
    fn reset(&mut self, now: Nanos, client: Client) {
        self.ended(now, client);
    }

    /// Handles the number of bytes that wait because the client does not read. Called at each
    /// delivery of waiting bytes, if the window is limited.
    fn unsent(&mut self, _now: Nanos, _client: Client, _bytes: u64) {}

    /// Returns when the server acts without an event; `NEVER` if it does not.
    fn due(&self) -> Nanos {
        Nanos::NEVER
    }

    /// Observes the server's process on its machine; `None` if it is not visible.
    fn state(&self, _now: Nanos) -> Option<ServerState> {
        None
    }

    /// Returns processes of the server that ended since the last call.
    fn take_deaths(&mut self) -> Vec<Death> {
        Vec::new()
    }

    /// Handles the instant that `due` returned; returns the server's actions. Afterwards `due` is
    /// later.
    fn wake(&mut self, _now: Nanos) -> Vec<(Client, Action)> {
        Vec::new()
    }
}

#[derive(Debug)]
enum Event {
    Arrive(Client, Vec<u8>),
    Connected(Client),
    Refused(Client),
    Act(Client, Action),
    Shut(Client),
    Gone(Client, Close),
    /// The server has read the data that the client's transport held.
    Room(Client),
}

/// Client's end of one connection.
#[derive(Debug, Default)]
struct Pipe {
    generation: u32,
    open: bool,
    connected: bool,
    failed: Option<FailureClass>,
    inbox: VecDeque<u8>,
    /// Data sent by the server and not yet within the window.
    waiting: VecDeque<u8>,
    ended: bool,
    /// Number of bytes that the transport holds until the server reads them.
    held: usize,
    signal: Option<Ready>,
}

/// Duration of the client's own work; none by default. The clock advances while it works.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkTime {
    /// Time to open a connection.
    pub open: Nanos,
    /// Time of one write or read.
    pub transfer: Nanos,
    /// Additional time of the first work after this instant: the client was suspended.
    pub pause: Option<(Nanos, Nanos)>,
}

/// Times in which the host of a virtual machine takes its cores: neither client nor server acts
/// meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Stolen {
    /// Start and end of each burst, in order and without overlap.
    bursts: Vec<(Nanos, Nanos)>,
}

impl Stolen {
    /// Bursts of at most `length` between two instants; the gaps follow an exponential law with
    /// mean `gap`.
    pub fn bursts(seed: u64, within: (Nanos, Nanos), gap: Nanos, length: Nanos) -> Stolen {
        let mut random = units::Seed(seed).stream(units::Purpose::Simulation, 9);
        let (mut at, mut bursts) = (within.0, Vec::new());
        loop {
            at += Nanos::from_secs_f64(random.exponential(gap.as_secs_f64()));
            let end = at + Nanos((random.unit() * length.0 as f64) as u64);
            if end >= within.1 {
                return Stolen { bursts };
            }
            bursts.push((at, end));
            at = end;
        }
    }

    /// Returns the instant itself or, within a burst, the end of the burst.
    pub fn after(&self, at: Nanos) -> Nanos {
        let next = self.bursts.partition_point(|(_, end)| *end <= at);
        match self.bursts.get(next) {
            Some((begin, end)) if *begin <= at => *end,
            _ => at,
        }
    }
}

/// Clock, events, pipes and the server.
pub struct World {
    now: Nanos,
    events: BinaryHeap<Reverse<(Nanos, u64)>>,
    payload: BTreeMap<u64, Event>,
    sequence: u64,
    pipes: BTreeMap<(u32, Slot), Pipe>,
    signalled: BTreeMap<u32, Vec<Slot>>,
    server: Box<dyn Server>,
    /// One-way delay of the link, each direction.
    delay: Nanos,
    /// Maximum number of bytes that the transport accepts in one write, so that partial writes
    /// happen.
    write_max: usize,
    /// Maximum number of bytes that the transport holds, and the time after which the server has
    /// read them.
    intake: Option<(usize, Nanos)>,
    /// Number of bytes in transit to a client that does not read.
    window: usize,
    labour: WorkTime,
    stolen: Stolen,
    /// Bytes sent by all clients, in order: the fingerprint of the run.
    pub sent: Vec<u8>,
    pub keep_sent: bool,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("now", &self.now).finish_non_exhaustive()
    }
}

impl World {
    pub fn new(server: Box<dyn Server>, delay: Nanos, start: Nanos) -> World {
        World {
            now: start,
            events: BinaryHeap::new(),
            payload: BTreeMap::new(),
            sequence: 0,
            pipes: BTreeMap::new(),
            signalled: BTreeMap::new(),
            server,
            delay,
            write_max: usize::MAX,
            intake: None,
            window: usize::MAX,
            labour: WorkTime::default(),
            stolen: Stolen::default(),
            sent: Vec::new(),
            keep_sent: false,
        }
    }

    /// Maximum number of bytes accepted by one write.
    pub fn limit_writes(&mut self, bytes: usize) {
        self.write_max = bytes.max(1);
    }

    /// Limits the server to reading this many bytes at a time, with this time between reads; the
    /// client must wait.
    pub fn limit_intake(&mut self, bytes: usize, every: Nanos) {
        self.intake = Some((bytes.max(1), every));
    }

    /// Limits the bytes that wait for a client to read them; the rest waits at the server.
    pub fn limit_window(&mut self, bytes: usize) {
        self.window = bytes.max(1);
    }

    /// Makes the client's work take time.
    pub fn charge(&mut self, labour: WorkTime) {
        self.labour = labour;
    }

    /// Makes the host suspend client and server at these times.
    pub fn steal(&mut self, stolen: Stolen) {
        self.stolen = stolen;
    }

    /// Advances the clock by the client's work of `span`.
    fn work(&mut self, span: Nanos) {
        self.now += span;
        if let Some((_, length)) = self.labour.pause.take_if(|(at, _)| *at <= self.now) {
            self.now += length;
        }
    }

    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Observations of the server's process.
    pub fn server_state(&self) -> Option<ServerState> {
        self.server.state(self.now)
    }

    pub fn server_deaths(&mut self) -> Vec<Death> {
        self.server.take_deaths()
    }

    /// Returns the instant of the next event; `NEVER` if no event is scheduled.
    pub fn next_event(&self) -> Nanos {
        self.next_arrival().min(self.server.due())
    }

    fn next_arrival(&self) -> Nanos {
        self.events.peek().map_or(Nanos::NEVER, |Reverse((at, _))| *at)
    }

    /// Advances the clock to `to`, or to the end of a burst of stolen time, and processes
    /// everything until then.
    pub fn advance(&mut self, to: Nanos) {
        let to = if to == Nanos::NEVER { to } else { self.stolen.after(to) };
        while self.next_event() <= to {
            let due = self.server.due();
            if due < self.next_arrival() {
                self.now = self.now.max(due);
                for (client, action) in self.server.wake(self.now) {
                    self.at(self.now + self.delay, Event::Act(client, action));
                }
                continue;
            }
            let Some(Reverse((at, key))) = self.events.pop() else { break };
            self.now = self.now.max(at);
            if let Some(event) = self.payload.remove(&key) {
                self.process_event(at, event);
            }
        }
        self.now = self.now.max(to);
    }

    /// Returns the readiness events of a worker since the last call.
    pub fn take_ready(&mut self, worker: u32) -> Vec<Ready> {
        let slots = self.signalled.remove(&worker).unwrap_or_default();
        let pipes = &mut self.pipes;
        slots.iter().filter_map(|slot| pipes.get_mut(&(worker, *slot))?.signal.take()).collect()
    }

    fn at(&mut self, at: Nanos, event: Event) {
        let at = match event {
            // actions of a server within a burst happen after the burst
            Event::Act(..) => self.stolen.after(at),
            _ => at,
        };
        self.sequence += 1;
        self.payload.insert(self.sequence, event);
        self.events.push(Reverse((at.max(self.now), self.sequence)));
    }

    fn pipe(&mut self, client: Client) -> Option<&mut Pipe> {
        let pipe = self.pipes.get_mut(&(client.worker, client.slot))?;
        (pipe.open && pipe.generation == client.generation).then_some(pipe)
    }

    fn signal(&mut self, client: Client, readable: bool, writable: bool, ended: bool) {
        let Some(pipe) = self.pipe(client) else { return };
        let fresh = pipe.signal.is_none();
        let signal = pipe.signal.get_or_insert(Ready {
            slot: client.slot,
            readable: false,
            writable: false,
            ended: false,
        });
        signal.readable |= readable;
        signal.writable |= writable;
        signal.ended |= ended;
        if fresh {
            self.signalled.entry(client.worker).or_default().push(client.slot);
        }
    }

    /// Processes an event. `at`: when it occurred; the clock is later if the client was at work
    /// meanwhile.
    fn process_event(&mut self, at: Nanos, event: Event) {
        match event {
            Event::Connected(client) => {
                if let Some(pipe) = self.pipe(client) {
                    pipe.connected = true;
                    self.signal(client, false, true, false);
                }
            }
            Event::Refused(client) => self.fail(client, FailureClass::Refused),
            Event::Arrive(client, bytes) => {
                for (when, action) in self.server.receive(at, client, &bytes) {
                    self.at(when + self.delay, Event::Act(client, action));
                }
            }
            Event::Act(client, Action::Bytes(bytes)) => {
                if let Some(pipe) = self.pipe(client) {
                    pipe.waiting.extend(bytes);
                    self.deliver(at, client);
                    self.signal(client, true, false, false);
                }
            }
            Event::Act(client, action @ (Action::End | Action::GiveUp)) => {
                if let Some(pipe) = self.pipe(client) {
                    pipe.ended = true;
                    if action == Action::GiveUp {
                        pipe.waiting.clear();
                    }
                    self.signal(client, true, false, true);
                }
            }
            Event::Act(client, Action::Reset) => self.fail(client, FailureClass::Reset),
            Event::Shut(client) => {
                for (when, action) in self.server.half_closed(at, client) {
                    self.at(when + self.delay, Event::Act(client, action));
                }
            }
            Event::Room(client) => {
                if let Some(pipe) = self.pipe(client) {
                    pipe.held = 0;
                    self.signal(client, false, true, false);
                }
            }
            Event::Gone(client, Close::Orderly) => self.server.ended(at, client),
            Event::Gone(client, Close::Reset) => self.server.reset(at, client),
        }
    }

    /// Moves waiting data into the window; notifies the server of the rest.
    fn deliver(&mut self, at: Nanos, client: Client) {
        let window = self.window;
        let Some(pipe) = self.pipe(client) else { return };
        if pipe.waiting.is_empty() {
            return;
        }
        let room = window.saturating_sub(pipe.inbox.len()).min(pipe.waiting.len());
        // whole pieces: byte by byte, a response of many MiB takes seconds
        let (front, back) = pipe.waiting.as_slices();
        let first = front.len().min(room);
        pipe.inbox.extend(&front[..first]);
        pipe.inbox.extend(&back[..room - first]);
        pipe.waiting.drain(..room);
        let left = pipe.waiting.len() as u64;
        if window != usize::MAX {
            self.server.unsent(at, client, left);
        }
    }

    fn fail(&mut self, client: Client, class: FailureClass) {
        if let Some(pipe) = self.pipe(client) {
            pipe.failed = Some(class);
            pipe.waiting.clear();
            self.signal(client, true, true, true);
        }
    }
}

/// One worker's view of the world.
#[derive(Clone, Debug)]
pub(crate) struct SimIo {
    pub(crate) world: Rc<RefCell<World>>,
    pub(crate) worker: u32,
}

impl Io for SimIo {
    fn now(&mut self) -> Nanos {
        self.world.borrow().now
    }

    fn open(&mut self, slot: Slot, _peer: &Peer, _options: &OpenOptions) -> Result<(), IoError> {
        let mut world = self.world.borrow_mut();
        let labour = world.labour.open;
        world.work(labour);
        let pipe = world.pipes.entry((self.worker, slot)).or_default();
        let generation = pipe.generation + 1;
        *pipe = Pipe { generation, open: true, ..Pipe::default() };
        let client = Client { worker: self.worker, slot, generation };
        let (now, trip) = (world.now, world.delay * 2);
        match world.server.connect(now, client) {
            Admission::Accept if trip.is_zero() => {
                if let Some(pipe) = world.pipe(client) {
                    pipe.connected = true;
                }
            }
            Admission::Accept => world.at(now + trip, Event::Connected(client)),
            Admission::AcceptAfter(span) => world.at(now + trip + span, Event::Connected(client)),
            Admission::Refuse => world.at(now + trip, Event::Refused(client)),
            Admission::Ignore => {}
            Admission::Fail(class) => return Err(IoError::Failed(class)),
        }
        Ok(())
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        let mut world = self.world.borrow_mut();
        let labour = world.labour.transfer;
        world.work(labour);
        let (mut taken, at) = (bytes.len().min(world.write_max), world.now + world.delay);
        let intake = world.intake;
        let Some(pipe) = world.pipes.get_mut(&(self.worker, slot)) else {
            return Err(IoError::Failed(FailureClass::OtherIo));
        };
        if let Some(class) = pipe.failed {
            return Err(IoError::Failed(class));
        }
        if !pipe.connected {
            return Err(IoError::WouldBlock);
        }
        if taken == 0 {
            return Ok(0);
        }
        let client = Client { worker: self.worker, slot, generation: pipe.generation };
        if let Some((most, every)) = intake {
            taken = taken.min(most - pipe.held);
            if taken == 0 {
                return Err(IoError::WouldBlock);
            }
            pipe.held += taken;
            if pipe.held == most {
                world.at(at + every, Event::Room(client));
            }
        }
        if world.keep_sent {
            world.sent.extend_from_slice(&bytes[..taken]);
        }
        world.at(at, Event::Arrive(client, bytes[..taken].to_vec()));
        Ok(taken)
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let mut world = self.world.borrow_mut();
        let labour = world.labour.transfer;
        world.work(labour);
        let Some(pipe) = world.pipes.get_mut(&(self.worker, slot)) else {
            return Err(IoError::Failed(FailureClass::OtherIo));
        };
        if pipe.inbox.is_empty() {
            return match pipe.failed {
                Some(class) => Err(IoError::Failed(class)),
                None if pipe.ended => Ok(0),
                None => Err(IoError::WouldBlock),
            };
        }
        let count = pipe.inbox.len().min(buffer.len());
        let (front, back) = pipe.inbox.as_slices();
        let first = front.len().min(count);
        buffer[..first].copy_from_slice(&front[..first]);
        buffer[first..count].copy_from_slice(&back[..count - first]);
        pipe.inbox.drain(..count);
        let client = Client { worker: self.worker, slot, generation: pipe.generation };
        let now = world.now;
        world.deliver(now, client);
        Ok(count)
    }

    fn shutdown_write(&mut self, slot: Slot) {
        let mut world = self.world.borrow_mut();
        let at = world.now + world.delay;
        if let Some(pipe) = world.pipes.get(&(self.worker, slot)) {
            let client = Client { worker: self.worker, slot, generation: pipe.generation };
            world.at(at, Event::Shut(client));
        }
    }

    fn close(&mut self, slot: Slot, how: Close) {
        let mut world = self.world.borrow_mut();
        let at = world.now + world.delay;
        if let Some(pipe) = world.pipes.get_mut(&(self.worker, slot)).filter(|pipe| pipe.open) {
            pipe.open = false;
            pipe.signal = None;
            let client = Client { worker: self.worker, slot, generation: pipe.generation };
            world.at(at, Event::Gone(client, how));
        }
    }

    fn facts(&mut self, _slot: Slot) -> Option<SocketFacts> {
        let world = self.world.borrow();
        Some(SocketFacts { retransmits: 0, rtt: world.delay * 2 })
    }

    /// Not used: the run loop moves the clock, because several workers share it.
    fn wait(&mut self, _until: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
    }
}
