//! The firing range as a whole: its connections, slots, work, crashes and restarts.

use super::connection::Connection;
use super::mix::Mix;
use super::pool::Pool;
use super::process::ProcessState;
use super::worker::{Fate, Worker};
use super::{Act, Defect, Defects, page};
use sample::{Death, Ending, ServerState};
use std::collections::{BTreeMap, VecDeque};
use units::Nanos;

/// Time until a supervisor restarts a crashed server.
pub const RESTART: Nanos = Nanos::from_millis(500);
/// Time without a listener during a restart that completes open requests first.
pub const RENEWAL: Nanos = Nanos::from_millis(500);
/// Number of connections above which a server with that defect crashes.
pub const MANY: usize = 50;
/// Time without responses after all slots were occupied, with slow recovery.
pub const RECOVERY: Nanos = Nanos::from_secs(10);
/// Length of a short accept queue, and the time to accept one connection.
pub const BACKLOG: usize = 5;
pub const ACCEPT_EVERY: Nanos = Nanos::from_millis(10);
/// Retransmission timeout of a lost connection attempt (RFC 6298 section 2).
pub const RETRANSMIT: Nanos = Nanos::from_secs(1);
/// Time that a server blocks for a client that does not read.
const STANDSTILL: Nanos = Nanos::from_secs(10);
/// Time of a response that a half-closed client must not get.
const RESPONSE_TIME: Nanos = Nanos::from_millis(50);
/// Maximum bytes received on a connection without a slot; the rest is dropped.
const WAITING_MAX: usize = 1 << 20;
/// Memory leaked per request, and in total.
const LEAK: usize = 64 << 10;
const LEAK_MAX: usize = 256 << 20;
/// Number of pieces leaked per body.
const BODY_LEAK: usize = 8;
/// Memory that a chunk size above the limit allocates, and growth per second after a client
/// abandons such a chunk. This memory is only reported in the process state, not allocated.
const CHUNK_LEAK: u64 = 32 << 20;
const CHUNK_GROWTH: f64 = 200e6;
/// Maximum number of leaked descriptors.
const LEFT_OPEN_MAX: u64 = 10_000;
/// With that defect, one in this many resets leaks a slot.
const SOME: u64 = 4;

/// Result of a connection attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Accept,
    /// The queue is full: the client's kernel retries after this time and succeeds.
    Later(Nanos),
    /// The connection is refused.
    Refuse,
}

/// A server of many connections.
#[derive(Debug)]
pub struct FaultyServer {
    defects: Defects,
    /// True if the connections use QUIC.
    over_quic: bool,
    pool: Pool,
    /// If requests are work.
    worker: Option<Worker>,
    clients: BTreeMap<u64, ClientState>,
    /// Connections waiting for a slot, oldest first.
    queue: VecDeque<u64>,
    /// Pending actions, by instant, in order.
    acts: BTreeMap<(Nanos, u64), (u64, Act)>,
    numbered: u64,
    /// Until when the single thread is busy.
    busy_until: Nanos,
    /// The next connection is accepted then, if that takes time.
    accept_free: Nanos,
    /// Down until then.
    dead_until: Nanos,
    /// A resource was withdrawn.
    starved: bool,
    nuls: u32,
    requests: u32,
    marked: bool,
    /// Leaked memory.
    leaked: Vec<Vec<u8>>,
    /// Additional memory in the reported state, and the time since when it grows.
    shown: u64,
    grows_since: Option<Nanos>,
    resets: u64,
    mix: Mix,
    itself: ProcessState,
}

#[derive(Debug)]
struct ClientState {
    connection: Connection,
    /// True if it has a slot, and whether it waits for one.
    holds: bool,
    queued: bool,
    /// Data is not read before this instant.
    from: Nanos,
    /// Received but not read.
    waiting: Vec<u8>,
    /// The client half-closed meanwhile.
    half_closed: bool,
    /// The server has closed it, or will after its response.
    closed: bool,
    parting: bool,
}

impl FaultyServer {
    pub fn new(defects: &Defects) -> FaultyServer {
        FaultyServer {
            defects: defects.clone(),
            over_quic: false,
            pool: Pool::new(defects),
            worker: defects.iter().any(|defect| defect.limits_rate()).then(|| Worker::new(defects)),
            clients: BTreeMap::new(),
            queue: VecDeque::new(),
            acts: BTreeMap::new(),
            numbered: 0,
            busy_until: Nanos::ZERO,
            accept_free: Nanos::ZERO,
            dead_until: Nanos::ZERO,
            starved: false,
            nuls: 0,
            requests: 0,
            marked: false,
            leaked: Vec::new(),
            shown: 0,
            grows_since: None,
            resets: 0,
            mix: Mix::default(),
            itself: ProcessState::new(),
        }
    }

    /// Returns an HTTP/3 server: its connections receive and send pieces of streams, see
    /// [`conduit::streams`].
    pub fn over_quic(defects: &Defects) -> FaultyServer {
        FaultyServer { over_quic: true, ..FaultyServer::new(defects) }
    }

    /// Adds a connection; `id` is chosen by the caller, and free again once it is
    /// [`remove_connection`](Self::remove_connection).
    pub fn connect(&mut self, at: Nanos, id: u64) -> Entry {
        if at < self.dead_until {
            return Entry::Refuse;
        }
        let mut entry = Entry::Accept;
        let mut from = at;
        if self.has(Defect::ShortBacklog) {
            from = self.accept_free.max(at);
            if (from - at).0 / ACCEPT_EVERY.0 > BACKLOG as u64 {
                entry = Entry::Later(RETRANSMIT);
                from = at + RETRANSMIT;
            } else {
                self.accept_free = from + ACCEPT_EVERY;
            }
        }
        let connection = match self.over_quic {
            true => Connection::over_quic(&self.defects, from),
            false => Connection::new(&self.defects, from),
        };
        let client = ClientState {
            connection,
            holds: false,
            queued: false,
            from,
            waiting: Vec::new(),
            half_closed: false,
            closed: false,
            parting: false,
        };
        self.clients.insert(id, client);
        if self.has(Defect::DiesOfMany) && self.clients.len() > MANY {
            self.clients.remove(&id);
            self.die(at);
            return Entry::Refuse;
        }
        if self.has(Defect::Sheds) && self.pool.is_full() {
            self.schedule_act(at, id, Act::Send(page::error(503, true, &self.defects)));
            self.schedule_act(at, id, Act::Close);
            self.close(at, id);
        } else if !self.pool.idle_is_free {
            self.assign_slot(at, id);
        }
        entry
    }

    pub fn receive(&mut self, at: Nanos, id: u64, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(&id).filter(|client| !client.closed) else {
            return;
        };
        let unread = client.queued || client.from > at;
        let most = if unread { WAITING_MAX } else { usize::MAX };
        let room = most.saturating_sub(client.waiting.len()).min(bytes.len());
        client.waiting.extend_from_slice(&bytes[..room]);
        self.serve(at, id);
    }

    /// Handles a half-close by the client.
    pub fn half_closed(&mut self, at: Nanos, id: u64) {
        if self.has(Defect::DropsHalfClosed) {
            self.acts.retain(|_, (owner, act)| *owner != id || !matches!(act, Act::Send(_)));
        }
        let Some(client) = self.clients.get_mut(&id).filter(|client| !client.closed) else {
            return;
        };
        client.half_closed = true;
        self.serve(at, id);
    }

    /// Records how many bytes wait for the client to read them.
    pub fn unsent(&mut self, at: Nanos, id: u64, bytes: u64) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if bytes > 0 && self.defects.contains(&Defect::StandsStillUnread) {
            self.busy_until = self.busy_until.max(at + STANDSTILL);
        }
        client.connection.unsent(at, bytes);
        if bytes > 0 && !std::mem::replace(&mut client.holds, true) {
            self.pool.occupy_slot_anyway();
        }
        let over = client.closed || client.connection.is_idle() && self.pool.idle_is_free;
        if bytes == 0 && over {
            self.free(at, id);
        }
    }

    /// Removes the connection; `reset`: the client broke it.
    pub fn remove_connection(&mut self, at: Nanos, id: u64, reset: bool) {
        let unheard = self.clients.get(&id).is_some_and(|client| client.connection.served() == 0);
        self.resets += u64::from(reset);
        let awaits = |client: &ClientState| client.connection.awaits_long_chunk();
        if self.has(Defect::GrowsAfterChunks) && self.clients.get(&id).is_some_and(awaits) {
            self.grows_since.get_or_insert(at);
        }
        if reset && self.has(Defect::MixesAborted) {
            self.mix.leave(id);
        }
        let several = self.clients.get(&id).is_some_and(|client| client.connection.served() > 1);
        let within = self.clients.get(&id).is_some_and(|client| client.connection.is_inside_call());
        if reset && several && self.has(Defect::DiesOfAborts)
            || within && self.has(Defect::DiesOfCutCalls)
        {
            self.die(at);
        }
        if reset && self.has(Defect::KeepsDescriptors) {
            self.itself.left_open = (self.itself.left_open + 1).min(LEFT_OPEN_MAX);
        }
        let some = self.has(Defect::LosesSomeSlots) && self.resets.is_multiple_of(SOME);
        let lost = reset && (some || self.has(Defect::LosesSlotsToResets))
            || !reset && unheard && self.has(Defect::LosesSlotsToCloses);
        if lost {
            self.pool.lose();
        }
        self.queue.retain(|waiting| *waiting != id);
        if let Some(worker) = &mut self.worker {
            worker.forget(id);
        }
        if let Some(client) = self.clients.get_mut(&id) {
            client.connection.unsent(at, 0);
        }
        self.close(at, id);
        self.clients.remove(&id);
        self.acts.retain(|_, (owner, _)| *owner != id);
    }

    /// Restarts the server: open requests are completed first, unless a switch prevents it.
    pub fn restart(&mut self, at: Nanos) {
        if self.has(Defect::LosesInFlight) {
            return self.die(at);
        }
        let away = if self.has(Defect::StaysAway) { Nanos::NEVER } else { at + RENEWAL };
        self.dead_until = away;
        for id in self.clients.keys().copied().collect::<Vec<u64>>() {
            let owes = self.worker.as_ref().is_some_and(|worker| worker.has_requests_of(id));
            match self.clients.get_mut(&id) {
                Some(client) if owes => client.parting = true,
                _ => {
                    self.schedule_act(at, id, Act::Close);
                    self.close(at, id);
                }
            }
        }
    }

    /// Withdraws a resource that it needs, or restores it.
    pub fn starve(&mut self, starved: bool) {
        self.starved = starved || self.starved && self.has(Defect::StaysStarved);
    }

    /// Returns when there is something to do; `NEVER` if nothing is pending.
    pub fn due(&self) -> Nanos {
        let act = self.acts.keys().next().map_or(Nanos::NEVER, |(at, _)| *at);
        let act = self.worker.as_ref().map_or(act, |worker| act.min(worker.due()));
        self.clients.values().map(ClientState::due).fold(act, Nanos::min)
    }

    /// Takes all actions due until now, in order.
    pub fn acts(&mut self, at: Nanos) -> Vec<(u64, Act)> {
        let due: Vec<u64> = self
            .clients
            .iter()
            .filter(|(_, client)| client.due() <= at)
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            self.wake(at, id);
        }
        let done = self.worker.as_mut().map(|worker| worker.done(at)).unwrap_or_default();
        for (id, mut acts) in done {
            let parting = self.clients.get(&id).is_some_and(|client| client.parting);
            if parting && !acts.contains(&Act::Close) {
                acts.push(Act::Close);
            }
            self.schedule_acts(at, id, acts);
        }
        let rest = self.acts.split_off(&(at.saturating_add(Nanos(1)), 0));
        std::mem::replace(&mut self.acts, rest).into_values().collect()
    }

    /// Returns the length of the accept queue and the accept interval, if limited.
    pub fn backlog(&self) -> Option<(usize, Nanos)> {
        self.has(Defect::ShortBacklog).then_some((BACKLOG, ACCEPT_EVERY))
    }

    /// Returns until when connections are refused.
    pub fn dead_until(&self) -> Nanos {
        self.dead_until
    }

    /// Returns whether its process must end with SIGABRT.
    pub fn is_aborted(&self) -> bool {
        self.itself.aborted
    }

    /// Returns the number of leaked descriptors.
    pub fn left_open(&self) -> u64 {
        self.itself.left_open
    }

    /// Returns the state that its machine would show.
    pub fn state(&self, at: Nanos) -> ServerState {
        let kept = (self.leaked.len() * LEAK) as u64;
        let grown = self.grows_since.map_or(Nanos::ZERO, |since| at - since).as_secs_f64();
        let kept = kept + self.shown + (grown * CHUNK_GROWTH) as u64;
        self.itself.state(at, self.clients.len() as u64, kept)
    }

    /// Takes its processes that exited since the previous call.
    pub fn take_deaths(&mut self) -> Vec<Death> {
        self.itself.take_deaths()
    }

    fn has(&self, defect: Defect) -> bool {
        self.defects.contains(&defect)
    }

    /// Assigns a slot or a place in the queue; returns whether it has a slot.
    fn assign_slot(&mut self, at: Nanos, id: u64) -> bool {
        let Some(client) = self.clients.get_mut(&id) else { return false };
        if client.holds {
            return true;
        }
        client.holds = self.pool.take();
        let holds = client.holds;
        if !holds && !std::mem::replace(&mut client.queued, true) {
            self.queue.push_back(id);
        }
        if self.pool.is_full() && self.has(Defect::RecoversSlowly) {
            self.busy_until = at + RECOVERY;
        }
        holds
    }

    /// Reads pending data.
    fn serve(&mut self, at: Nanos, id: u64) {
        if !self.clients.get(&id).is_some_and(|client| client.from <= at && !client.closed) {
            return;
        }
        if !self.assign_slot(at, id) {
            return;
        }
        let Some(client) = self.clients.get_mut(&id) else { return };
        let before = client.connection.served();
        client.connection.nuls = self.nuls;
        client.connection.marked = self.marked;
        client.connection.requests = self.requests;
        let bytes = std::mem::take(&mut client.waiting);
        let mut acts = match bytes.is_empty() {
            true => Vec::new(),
            false => client.connection.receive(at, &bytes),
        };
        if client.half_closed {
            client.half_closed = false;
            let keeps =
                self.defects.contains(&Defect::KeepsBodies) && client.connection.reads_body();
            if keeps && self.leaked.len() < LEAK_MAX / LEAK {
                self.leaked.extend(vec![vec![1; LEAK]; BODY_LEAK]);
            }
            if self.defects.contains(&Defect::DropsHalfClosed) {
                acts.retain(|act| !matches!(act, Act::Send(_)));
            }
            acts.extend(client.connection.ended());
        }
        self.nuls = client.connection.nuls;
        self.marked = client.connection.marked;
        self.requests = client.connection.requests;
        let cost = client.connection.take_cost();
        if self.defects.contains(&Defect::KeepsChunks) {
            self.shown +=
                CHUNK_LEAK * u64::from(std::mem::take(&mut client.connection.long_chunks));
        }
        for _ in 0..std::mem::take(&mut client.connection.hung) {
            self.pool.lose();
        }
        let dead = client.connection.dead;
        let idle = client.connection.is_idle();
        let served = client.connection.served() - before;
        if served == 0 && !acts.is_empty() && self.has(Defect::MixesRefused) {
            self.mix.leave(id);
        }
        self.mix.insert_foreign_responses(
            &self.defects,
            id,
            &mut acts,
            (u64::from(before), self.clients.len()),
        );
        if dead {
            return self.die(at);
        }
        if served > 0 && self.has(Defect::KeepsMemory) && self.leaked.len() < LEAK_MAX / LEAK {
            self.leaked.push(vec![1; LEAK]);
        }
        self.work(at, id, acts, cost, served > 0);
        if idle && self.pool.idle_is_free {
            self.free(at, id);
        }
    }

    /// Performs requested actions: at once, when the single thread is free, or by the worker.
    fn work(&mut self, at: Nanos, id: u64, mut acts: Vec<Act>, cost: Nanos, served: bool) {
        let has = |defect| self.defects.contains(&defect);
        let Some(worker) = self.worker.as_mut().filter(|_| served) else {
            self.busy_until = self.busy_until.max(at) + cost;
            return self.schedule_acts(at, id, acts);
        };
        let decision = match self.starved {
            true if has(Defect::DiesStarved) => Fate::Dies,
            true if has(Defect::SilentStarved) => return,
            true => Fate::Shed,
            false => worker.take(at, id, &mut acts, cost),
        };
        match decision {
            Fate::Waits => {}
            Fate::Shed => {
                let busy = Act::Send(page::error(503, false, &self.defects));
                let ends = acts.into_iter().filter(|act| !matches!(act, Act::Send(_)));
                self.schedule_acts(at, id, std::iter::once(busy).chain(ends).collect());
            }
            Fate::Dies => self.die(at),
        }
    }

    fn wake(&mut self, at: Nanos, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if client.waiting.is_empty() && !client.half_closed {
            let acts = client.connection.wake();
            self.schedule_acts(at, id, acts);
        } else {
            self.serve(at, id);
        }
    }

    fn schedule_acts(&mut self, at: Nanos, id: u64, acts: Vec<Act>) {
        let when = if self.has(Defect::DropsHalfClosed) { at + RESPONSE_TIME } else { at };
        for act in acts {
            let ends = !matches!(act, Act::Send(_));
            self.schedule_act(when, id, act);
            if ends {
                self.close(at, id);
            }
        }
    }

    fn schedule_act(&mut self, at: Nanos, id: u64, act: Act) {
        self.numbered += 1;
        let when = at.max(self.busy_until);
        self.acts.insert((when, self.numbered), (id, act));
    }

    /// Handles the close of a connection by the server, or its loss.
    fn close(&mut self, at: Nanos, id: u64) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.closed = true;
            if !client.connection.has_unsent() {
                self.free(at, id);
            }
        }
    }

    /// Passes a slot to the next waiting connection.
    fn free(&mut self, at: Nanos, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if !std::mem::take(&mut client.holds) {
            return;
        }
        self.pool.release_slot();
        if self.pool.is_full() {
            return;
        }
        if let Some(next) = self.queue.pop_front() {
            if let Some(client) = self.clients.get_mut(&next) {
                client.queued = false;
            }
            self.assign_slot(at, next);
            self.serve(at, next);
        }
    }

    fn die(&mut self, at: Nanos) {
        self.itself.aborted = self.has(Defect::AbortsOnEncodedNul);
        let forever = self.itself.aborted || self.has(Defect::DiesOnEncodedNul);
        self.dead_until = if forever { Nanos::NEVER } else { at + RESTART };
        let aborts = [
            Defect::DiesOfLongField,
            Defect::DiesOfPipelined,
            Defect::AbortsOnLateByte,
            Defect::DiesOfAborts,
        ]
        .into_iter()
        .any(|defect| self.has(defect));
        let how = match (self.itself.aborted || aborts, forever) {
            (true, _) => Ending::Signal { number: 6, core: false },
            (_, true) => Ending::Exit(0),
            _ => Ending::Signal { number: 11, core: false },
        };
        self.itself.end(how, self.dead_until);
        self.leaked.clear();
        (self.shown, self.grows_since) = (0, None);
        self.acts.clear();
        self.busy_until = Nanos::ZERO;
        self.queue.clear();
        self.pool.clear();
        if let Some(worker) = &mut self.worker {
            worker.clear();
        }
        for client in self.clients.values_mut() {
            client.closed = true;
            client.holds = false;
        }
        for id in self.clients.keys().copied().collect::<Vec<u64>>() {
            self.schedule_act(at, id, Act::Reset);
        }
    }
}

impl ClientState {
    fn due(&self) -> Nanos {
        // connections waiting for a slot are not read: no timeout runs
        if self.queued || self.closed && !self.connection.has_unsent() {
            return Nanos::NEVER;
        }
        match self.waiting.is_empty() && !self.half_closed {
            true => self.connection.due(),
            false => self.from,
        }
    }
}
