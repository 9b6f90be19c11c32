//! A worker's connections: which are open, which can take a call, which calls wait, when each must
//! make progress, and where new ones go. It knows calls only as waiting or outstanding.

use crate::call::{Call, NO_USER};
use crate::connection::{Conn, Employed, PutCall, Work};
use crate::deadlines::Deadlines;
use crate::setup::{Endpoint, Setup, http2_of, open_options};
use crate::speaker::websocket::RestingSocket;
use crate::speaker::{EndpointKind, Protocol};
use conduit::{Close, Io, IoError, Peer, Slot, TlsFactory, TlsSession};
use plan::{AddressOrder, Timeouts};
use sample::FailureClass;
use std::collections::VecDeque;
use std::sync::Arc;
use units::{Nanos, NumberMap, room_for_more};

#[derive(Debug)]
pub(crate) struct Pool {
    setup: Arc<Setup>,
    worker: u32,
    limits: PoolLimits,
    slots: Vec<PoolSlot>,
    free: Vec<Slot>,
    /// Boxes returned by idle and closed connections.
    #[expect(
        clippy::vec_box,
        reason = "a connection has its work in a box, which is returned unchanged"
    )]
    spare: Vec<Box<Work>>,
    open_count: u32,
    opened_count: u64,
    opens_this_turn: u32,
    /// The endpoints of the plan, followed by those that a guide's users reached.
    endpoints: Vec<EndpointState>,
    /// Calls in the endpoints' queues.
    queued: u64,
    /// Calls removed from their connections, to be assigned to others.
    stranded: Vec<Call>,
    /// Connections with bytes to write out.
    dirty: Vec<Slot>,
    deadlines: Deadlines,
    tls: Option<Tls>,
    keeps_heads: bool,
    /// Idle WebSockets without working state.
    resting: NumberMap<RestingSocket>,
    /// The connection that had the last turn.
    last_in_turn: Slot,
}

/// The reason for which a connection was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener {
    pub(crate) user: u32,
    /// The user or session it belongs to, if clients have their own addresses.
    pub(crate) id: Option<u64>,
    /// True if no bytes may be sent before the handshake is complete.
    pub(crate) late: bool,
}

#[derive(Debug)]
struct PoolSlot {
    conn: Conn,
    /// The connection is in the list of connections with bytes to write.
    dirty: bool,
    /// The connection is in its endpoint's list of connections that can take a call.
    listed: bool,
    /// The client whose address the connection uses, or [`NO_USER`].
    client: u32,
}

/// The size of a plain HTTP/1 connection between its calls (docs/design/own-stack.md).
const _: () = assert!(size_of::<PoolSlot>() <= 88);

/// Maximum number of spare boxes: boxes left over from a time when all connections had calls would
/// use more memory than all idle connections.
const SPARE_MAX: usize = 1_024;

/// Number of outstanding calls per connection for which memory is reserved; further calls allocate
/// it when they arrive.
const CALLS_PREPARED_MAX: u32 = 128;

#[derive(Debug)]
struct EndpointState {
    endpoint: Arc<Endpoint>,
    /// Connections that can take a call, the most recently used last.
    ready: Vec<(Slot, u32)>,
    /// Calls that wait for a connection, in order of their due instants.
    queue: VecDeque<Call>,
    /// Lower bound of the deadlines of the queued calls. Used only if calls have their own time
    /// limits; otherwise the first call has the earliest deadline.
    soonest: Nanos,
    has_own_limits: bool,
    /// If addresses are tried in order: the current one, and whether an address has accepted a
    /// connection.
    address: usize,
    reached: bool,
    kind: EndpointKind,
}

/// Maximum number of simultaneous calls of a guide's user on one connection of gRPC.
const GRPC_CALLS_MAX: u32 = 100;

/// The worker's parts of the plan's limits.
#[derive(Clone, Copy, Debug)]
struct PoolLimits {
    connections: u32,
    queue: u64,
    /// Maximum number of outstanding requests, and of calls, on one connection.
    depth: u32,
    /// Number of these calls for which a connection is prepared.
    prepared: u32,
    /// Calls use the connections in turn once all are open, like WebSocket messages in an open
    /// load.
    in_turn: bool,
    calls: u32,
    /// Maximum number of connections of one user.
    per_user: u32,
    /// The shortest limit on a call's time, counted from its due instant.
    open: Nanos,
    /// Shortest limit on the time of a call whose connection is still being opened.
    opening: Nanos,
    /// A deadline can move earlier without a new call: when the first byte of a response arrives,
    /// or when an older call becomes the next one in order.
    moves_earlier: bool,
}

/// The factory, with a Debug that omits keys.
struct Tls(Box<dyn TlsFactory + Send>);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl PoolLimits {
    fn new(setup: &Setup, worker: u32) -> PoolLimits {
        let share = |total: u64| setup.share(total, worker);
        let connection = &setup.plan.connection;
        let (connections, queue) = match &setup.plan.load {
            plan::Load::Closed { .. } => (u64::from(u32::MAX), u64::MAX),
            plan::Load::Open { connections_max, queue_max, .. } => (
                connections_max.map_or(u64::from(u32::MAX), |total| share(u64::from(total))),
                queue_max.map_or(u64::MAX, share),
            ),
        };
        let rooms = setup.plan.websocket.rooms.map(u64::from);
        let members = rooms.map(|rooms| share(rooms) * setup.plan.room_members());
        let connections = members.filter(|count| *count > 0).unwrap_or(connections);
        let together =
            crate::source::lanes(setup).max(connection.pipeline).max(setup.widest_group());
        let limits = &setup.plan.timeouts;
        let depth = connection.depth.unwrap_or(u32::MAX).min(together);
        let in_order = matches!(setup.protocol, Protocol::Http1(_));
        let hurries = limits.answer.zip(limits.progress).is_some_and(|(start, rest)| rest < start);
        PoolLimits {
            connections: u32::try_from(connections).unwrap_or(u32::MAX),
            queue,
            depth,
            prepared: depth.min(CALLS_PREPARED_MAX),
            in_turn: setup.is_open() && matches!(setup.protocol, Protocol::WebSocket(_)),
            calls: connection.calls.unwrap_or(u32::MAX),
            per_user: connection.per_user,
            open: limits.shortest(),
            opening: limits.shortest().min(limits.connect),
            moves_earlier: hurries || (depth > 1 && in_order),
        }
    }
}

impl EndpointState {
    fn new(endpoint: Endpoint, setup: &Setup) -> EndpointState {
        EndpointState {
            kind: match &setup.sockets {
                Some(_) if endpoint.key.starts_with("ws") => EndpointKind::Socket,
                Some(_) if endpoint.key.starts_with("grpc") => EndpointKind::Grpc,
                _ => EndpointKind::Plan,
            },
            endpoint: Arc::new(endpoint),
            ready: Vec::new(),
            queue: VecDeque::new(),
            soonest: Nanos::NEVER,
            has_own_limits: false,
            address: 0,
            reached: false,
        }
    }

    fn enqueue(&mut self, call: Call, limits: &Timeouts) {
        let deadline = call.deadline(limits);
        self.soonest = if self.queue.is_empty() { deadline } else { self.soonest.min(deadline) };
        self.has_own_limits |= call.time_limit().is_some();
        self.queue.push_back(call);
    }

    /// Removes a queued call whose deadline has passed.
    fn dequeue_expired(&mut self, limits: &Timeouts, now: Nanos) -> Option<Call> {
        if self.queue.front()?.deadline(limits) <= now {
            return self.queue.pop_front();
        }
        if !self.has_own_limits || self.soonest > now {
            return None;
        }
        let expired = self.queue.iter().position(|call| call.deadline(limits) <= now);
        if expired.is_none() {
            // the call with the earliest deadline was dequeued before: recompute the bound
            let deadlines = self.queue.iter().map(|call| call.deadline(limits));
            self.soonest = deadlines.min().unwrap_or(Nanos::NEVER);
        }
        self.queue.remove(expired?)
    }

    /// Returns a lower bound of the deadlines of the queued calls; `NEVER` if the queue is empty.
    fn queue_deadline(&self, limits: &Timeouts) -> Nanos {
        match self.queue.front() {
            None => Nanos::NEVER,
            Some(_) if self.has_own_limits => self.soonest,
            Some(first) => first.deadline(limits),
        }
    }
}

impl Pool {
    /// Creates the pool of worker `worker`; `tls` is required if an endpoint uses TLS.
    pub(crate) fn new(
        setup: &Arc<Setup>,
        worker: u32,
        tls: Option<Box<dyn TlsFactory + Send>>,
    ) -> Pool {
        Pool {
            setup: setup.clone(),
            worker,
            limits: PoolLimits::new(setup, worker),
            slots: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            open_count: 0,
            opened_count: 0,
            opens_this_turn: 0,
            endpoints: setup
                .endpoints
                .iter()
                .cloned()
                .map(|endpoint| EndpointState::new(endpoint, setup))
                .collect(),
            queued: 0,
            stranded: Vec::new(),
            dirty: Vec::new(),
            deadlines: Deadlines::default(),
            tls: tls.map(Tls),
            keeps_heads: setup.keeps_heads(),
            resting: NumberMap::default(),
            last_in_turn: 0,
        }
    }

    /// Keeps the heads of responses on connections opened from now on.
    pub(crate) fn keep_heads(&mut self) {
        self.keeps_heads = true;
    }

    pub(crate) fn start_turn(&mut self) {
        self.opens_this_turn = 0;
    }

    #[inline]
    pub(crate) fn conn(&self, slot: Slot) -> &Conn {
        &self.slots[slot as usize].conn
    }

    #[inline]
    pub(crate) fn conn_mut(&mut self, slot: Slot) -> &mut Conn {
        &mut self.slots[slot as usize].conn
    }

    /// Returns all slots that were ever used.
    pub(crate) fn slots(&self) -> std::ops::Range<Slot> {
        0..self.slots.len() as Slot
    }

    pub(crate) fn opens_this_turn(&self) -> u32 {
        self.opens_this_turn
    }

    /// Returns the maximum number of calls on one connection.
    #[inline]
    pub(crate) fn calls_max(&self) -> u32 {
        self.limits.calls
    }

    /// Returns whether a user may have more than one connection.
    #[inline]
    pub(crate) fn has_several_per_user(&self) -> bool {
        self.limits.per_user > 1
    }
}

/// Connections that can take a call.
impl Pool {
    /// Returns whether the connection can take one more call to `endpoint`.
    #[inline]
    pub(crate) fn fits(&self, slot: Slot, endpoint: u32) -> bool {
        let conn = self.conn(slot);
        conn.endpoint() == endpoint && conn.takes(self.limits.depth, self.limits.calls)
    }

    /// Returns whether the peer accepts no further calls on this connection.
    pub(crate) fn refuses_further_calls(&self, slot: Slot) -> bool {
        self.conn(slot).refuses_further_calls(self.limits.depth)
    }

    /// Returns whether the user's connection to `endpoint` is full, and holds the call back until
    /// there is room.
    pub(crate) fn holds_back(&self, slot: Slot, endpoint: u32, user: u32) -> bool {
        let conn = self.conn(slot);
        conn.endpoint() == endpoint && conn.user() == user && conn.holds_back(self.limits.calls)
    }

    /// Returns the first of these connections that can take one more call to `endpoint`; a gRPC
    /// connection carries many.
    pub(crate) fn fitting<'a>(
        &self,
        mut all: impl Iterator<Item = &'a Slot>,
        endpoint: u32,
    ) -> Option<Slot> {
        let depth = if self.is_grpc(endpoint) { GRPC_CALLS_MAX } else { self.limits.depth };
        let fits = |slot: &&Slot| {
            let conn = self.conn(**slot);
            conn.endpoint() == endpoint && conn.takes(depth, self.limits.calls)
        };
        all.find(fits).copied()
    }

    /// Returns another connection of a user whose first one is full, or the first if no more may be
    /// opened. `None` if another one must be opened.
    pub(crate) fn another(
        &self,
        first: Option<Slot>,
        more: &[Slot],
        endpoint: u32,
    ) -> Option<Slot> {
        let full = more.len() as u64 + 1 >= u64::from(self.limits.per_user);
        let fitting = more.iter().find(|slot| self.fits(**slot, endpoint)).copied();
        fitting.or(first.filter(|_| full))
    }

    /// Like [`Pool::listed`], for the user or session `id`: if clients have their own addresses,
    /// only a connection from that address is suitable.
    #[inline]
    pub(crate) fn listed_for(&mut self, endpoint: u32, id: Option<u64>) -> Option<Slot> {
        match &self.setup.crowd {
            _ if self.endpoints[endpoint as usize].ready.is_empty() => None,
            None => self.listed(endpoint),
            Some(_) => self.listed_of_client(endpoint, id?),
        }
    }

    fn listed_of_client(&mut self, endpoint: u32, id: u64) -> Option<Slot> {
        let client = self.setup.crowd.as_ref()?.client(id);
        let mut ready = self.endpoints[endpoint as usize].ready.iter().rev();
        let fits = |slot: Slot, generation: u32| {
            let entry = &self.slots[slot as usize];
            let conn = &entry.conn;
            entry.client == client
                && conn.generation() == generation
                && conn.user() == NO_USER
                && conn.takes(self.limits.depth, self.limits.calls)
        };
        ready.find(|(slot, generation)| fits(*slot, *generation)).map(|(slot, _)| *slot)
    }

    /// Returns the most recently used connection to `endpoint` that can take a call and has no
    /// user.
    pub(crate) fn listed(&mut self, endpoint: u32) -> Option<Slot> {
        let list = &mut self.endpoints[endpoint as usize].ready;
        while let Some(&(slot, generation)) = list.last() {
            let entry = &mut self.slots[slot as usize];
            let conn = &entry.conn;
            let fits = conn.takes(self.limits.depth, self.limits.calls) && conn.user() == NO_USER;
            if conn.generation() == generation && fits {
                return Some(slot);
            }
            if conn.generation() == generation {
                entry.listed = false;
            }
            list.pop();
        }
        None
    }

    /// Returns the next connection in turn that can take a call, if calls use them in turn.
    pub(crate) fn next_in_turn(&mut self, endpoint: u32) -> Option<Slot> {
        if !self.limits.in_turn {
            return None;
        }
        let count = self.slots.len() as Slot;
        for step in 1..=count {
            let slot = (self.last_in_turn + step) % count;
            if self.fits(slot, endpoint) {
                self.last_in_turn = slot;
                return Some(slot);
            }
        }
        None
    }

    pub(crate) fn has_listed(&mut self) -> bool {
        if self.limits.in_turn {
            return !self.has_room();
        }
        (0..self.endpoints.len() as u32).any(|endpoint| self.listed(endpoint).is_some())
    }

    /// Offers a connection to the next waiting call.
    pub(crate) fn list(&mut self, slot: Slot) {
        let entry = &mut self.slots[slot as usize];
        let conn = &entry.conn;
        let fits = conn.user() == NO_USER && conn.takes(self.limits.depth, self.limits.calls);
        if !entry.listed && fits && !self.limits.in_turn {
            entry.listed = true;
            let place = (slot, conn.generation());
            self.endpoints[conn.endpoint() as usize].ready.push(place);
        }
    }

    /// Returns an idle connection to another endpoint, which may be closed to make room.
    pub(crate) fn idle_elsewhere(&mut self, endpoint: u32) -> Option<Slot> {
        let others = (0..self.endpoints.len() as u32).filter(|other| *other != endpoint);
        for other in others {
            if let Some(slot) = self.listed(other)
                && self.conn(slot).is_idle()
            {
                return Some(slot);
            }
        }
        None
    }
}

/// Calls that wait for a connection.
impl Pool {
    /// Adds a call to the queue; returns it if the queue is full.
    pub(crate) fn enqueue(&mut self, call: Call, endpoint: u32) -> Option<Call> {
        if self.queued >= self.limits.queue {
            return Some(call);
        }
        self.queued += 1;
        self.endpoints[endpoint as usize].enqueue(call, &self.setup.plan.timeouts);
        None
    }

    /// Returns the first queued call that this connection can take now.
    #[inline]
    pub(crate) fn dequeue_for(&mut self, slot: Slot) -> Option<Call> {
        let conn = &self.slots[slot as usize].conn;
        if !conn.takes(self.limits.depth, self.limits.calls) {
            return None;
        }
        let call = self.endpoints[conn.endpoint() as usize].queue.pop_front()?;
        self.queued -= 1;
        Some(call)
    }

    /// Removes a queued call whose timeout has expired: its own, or the plan's.
    pub(crate) fn dequeue_expired(&mut self, now: Nanos) -> Option<Call> {
        let limits = &self.setup.plan.timeouts;
        let call = self.endpoints.iter_mut().find_map(|it| it.dequeue_expired(limits, now))?;
        self.queued -= 1;
        Some(call)
    }

    /// Removes all calls that wait for a connection or a retry.
    pub(crate) fn drain_waiting(&mut self) -> Vec<Call> {
        let mut calls = std::mem::take(&mut self.stranded);
        for endpoint in &mut self.endpoints {
            calls.extend(endpoint.queue.drain(..));
        }
        self.queued = 0;
        calls
    }

    pub(crate) fn has_queued(&self) -> bool {
        self.queued > 0
    }

    /// Returns when the next queued call may have to be abandoned; `NEVER` if the queue is empty.
    #[inline]
    pub(crate) fn queue_deadline(&self) -> Nanos {
        let limits = &self.setup.plan.timeouts;
        let deadlines = self.endpoints.iter().map(|endpoint| endpoint.queue_deadline(limits));
        deadlines.min().unwrap_or(Nanos::NEVER)
    }

    /// Removes the calls from a connection that can no longer answer them.
    #[inline]
    pub(crate) fn detach_calls(&mut self, slot: Slot) {
        let conn = &mut self.slots[slot as usize].conn;
        if !conn.is_idle() {
            conn.take_back_unsent();
            self.stranded.extend(conn.drain());
        }
    }

    pub(crate) fn detach_call(&mut self, call: Call) {
        self.stranded.push(call);
    }

    pub(crate) fn take_stranded(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.stranded)
    }

    #[inline]
    pub(crate) fn has_stranded(&self) -> bool {
        !self.stranded.is_empty()
    }
}

/// Pending output, and its deadline.
impl Pool {
    #[inline]
    pub(crate) fn mark_dirty(&mut self, slot: Slot) {
        let entry = &mut self.slots[slot as usize];
        if !entry.dirty {
            entry.dirty = true;
            self.dirty.push(slot);
        }
    }

    /// Takes a connection with bytes to write.
    #[inline]
    pub(crate) fn take_dirty(&mut self) -> Option<Slot> {
        while let Some(slot) = self.dirty.pop() {
            let entry = &mut self.slots[slot as usize];
            if std::mem::take(&mut entry.dirty) {
                return Some(slot);
            }
        }
        None
    }

    /// Like [`Pool::arm`], for a call just put on the connection: nearly always, an entry for
    /// earlier calls expires before this call's deadline.
    #[inline]
    pub(crate) fn arm_for(&mut self, slot: Slot, call: PutCall) {
        let watched = if call.open {
            call.armed <= call.intended + self.limits.open
        } else {
            let opened = self.slots[slot as usize].conn.opened();
            call.armed <= call.intended.min(opened) + self.limits.opening
        };
        if !watched {
            self.arm(slot);
        }
    }

    /// Examines the connection after data arrived, if data can move a deadline earlier.
    #[inline(always)]
    pub(crate) fn arm_again(&mut self, slot: Slot) {
        if self.limits.moves_earlier
            && let Some(at) = self.slots[slot as usize].conn.rearm(&self.setup.plan.timeouts)
        {
            self.deadlines.push(at, slot);
        }
    }

    /// Ensures that the connection is examined by its deadline.
    pub(crate) fn arm(&mut self, slot: Slot) {
        let conn = &mut self.slots[slot as usize].conn;
        if let Some(at) = conn.arm(&self.setup.plan.timeouts) {
            self.deadlines.push(at, slot);
        }
    }

    #[inline]
    pub(crate) fn next_deadline(&self) -> Nanos {
        self.deadlines.next()
    }

    /// Takes a connection whose deadline has passed.
    pub(crate) fn pop_expired(&mut self, now: Nanos) -> Option<Slot> {
        while let Some(alarm) = self.deadlines.pop_until(now) {
            let conn = &mut self.slots[alarm.slot as usize].conn;
            if !conn.disarm(alarm.at) {
                continue;
            }
            if conn.deadline(&self.setup.plan.timeouts) <= now {
                return Some(alarm.slot);
            }
            self.arm(alarm.slot);
        }
        None
    }
}

/// Opening and closing.
impl Pool {
    /// Returns whether one more connection may be open.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.open_count < self.limits.connections
    }

    /// Starts a connection for `user`, to `peer` or to the endpoint's next address; the first write
    /// follows with the next flush. `id`: the number of the user or session.
    ///
    /// # Errors
    /// Fails if no socket could be opened.
    pub(crate) fn open<I: Io>(
        &mut self,
        io: &mut I,
        endpoint: u32,
        Opener { user, id, late }: Opener,
        peer: Option<&Peer>,
        now: Nanos,
    ) -> Result<Slot, FailureClass> {
        let slot = self.free.pop().unwrap_or_else(|| self.add_slot());
        let plan = &self.setup.plan;
        let turn = self.setup.part(self.worker).nth(self.opened_count);
        self.opened_count += 1;
        self.opens_this_turn += 1;
        let place = &self.endpoints[endpoint as usize];
        let end = &place.endpoint;
        let address = match plan.connection.addresses {
            AddressOrder::InTurn => (turn % end.peers.len() as u64) as usize,
            AddressOrder::FirstThatAnswers => place.address,
        };
        let mut options = open_options(plan, turn);
        options.early &= !late;
        let mut client = NO_USER;
        if let Some(crowd) = &self.setup.crowd {
            client = crowd.client(id.unwrap_or(turn));
            options.bind = Some(crowd.address(client));
        }
        options.user = id.filter(|_| plan.tls.user_sessions);
        if let Err(error) = io.open(slot, peer.unwrap_or(&end.peers[address]), &options) {
            self.free.push(slot);
            return Err(class_of(error));
        }
        let direct = end.is_direct();
        let entry = &mut self.slots[slot as usize];
        (entry.dirty, entry.listed, entry.client) = (false, false, client);
        entry.conn.renew(endpoint, address, user, now);
        if self.setup.sockets.is_some() {
            entry.conn.keep_work_for(place.kind);
        }
        let own = match place.kind {
            EndpointKind::Plan => None,
            EndpointKind::Socket => self.setup.sockets.clone(),
            EndpointKind::Grpc => Some(http2_of(&self.setup.plan)),
        };
        let kind = place.kind;
        let take = || match own {
            Some(protocol) => Box::new(Work::new(protocol, true, Default::default()).of_kind(kind)),
            None => work(&mut self.spare, &self.setup, self.keeps_heads),
        };
        entry.conn.begin(take, (direct, self.limits.prepared), io.now());
        entry.conn.allow_early(options.early);
        self.open_count += 1;
        Ok(slot)
    }

    fn add_slot(&mut self) -> Slot {
        let conn = Conn::new();
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(room_for_more(self.slots.len()));
        }
        self.slots.push(PoolSlot { conn, dirty: false, listed: false, client: NO_USER });
        self.slots.len() as Slot - 1
    }

    /// Prepares a connection, which may have been idle, for a call; its bytes must be written.
    #[inline(always)]
    pub(crate) fn assign_call(&mut self, slot: Slot) -> Employed<'_> {
        let Pool { slots, spare, setup, keeps_heads, limits, dirty, resting, .. } = self;
        let entry = &mut slots[slot as usize];
        if !entry.dirty {
            entry.dirty = true;
            dirty.push(slot);
        }
        entry.conn.assign_call(|| {
            let mut work = work(spare, setup, *keeps_heads);
            // skip the lookup: most loads have no resting WebSockets
            let socket = if resting.is_empty() { None } else { resting.remove(&u64::from(slot)) };
            work.resume(limits.prepared, socket);
            work
        })
    }

    /// Releases memory of a connection that may have no call in flight: it needs little until the
    /// next call.
    pub(crate) fn rest(&mut self, slot: Slot) {
        let conn = &mut self.slots[slot as usize].conn;
        if let Some(work) = conn.rest() {
            self.recycle(work);
        } else if let Some((work, state)) = conn.rest_socket() {
            self.resting.insert(u64::from(slot), state);
            self.recycle(work);
        }
    }

    /// Returns whether the connection is an idle WebSocket without working state.
    pub(crate) fn is_resting(&self, slot: Slot) -> bool {
        self.resting.contains_key(&u64::from(slot))
    }

    /// Restores the working state of an idle WebSocket. Returns false for other connections.
    #[inline(never)]
    pub(crate) fn wake(&mut self, slot: Slot) -> bool {
        let Some(state) = self.resting.remove(&u64::from(slot)) else { return false };
        let mut work = work(&mut self.spare, &self.setup, self.keeps_heads);
        work.resume(self.limits.prepared, Some(state));
        self.slots[slot as usize].conn.resume(work);
        true
    }

    fn recycle(&mut self, mut work: Box<Work>) {
        work.clear();
        if work.kind() == EndpointKind::Plan && self.spare.len() < SPARE_MAX {
            self.spare.push(work);
        }
    }

    /// Returns a TLS session for a connection to `name`; `user`: the user whose sessions it
    /// resumes, if users have their own.
    ///
    /// # Errors
    /// Fails if the name cannot be checked, or there is no TLS.
    pub(crate) fn tls_session(
        &mut self,
        name: &str,
        user: Option<u64>,
    ) -> Result<Box<dyn TlsSession>, FailureClass> {
        let Some(factory) = &mut self.tls else { return Err(FailureClass::Tls) };
        let made = match user {
            Some(user) => factory.0.session_of(name, user),
            None => factory.0.session(name),
        };
        made.map_err(|error| error.class)
    }

    /// Returns a TLS session that offers these protocols by ALPN.
    ///
    /// # Errors
    /// Fails like [`Pool::tls_session`].
    pub(crate) fn tls_session_for(
        &mut self,
        name: &str,
        alpn: &[&str],
    ) -> Result<Box<dyn TlsSession>, FailureClass> {
        let Some(factory) = &mut self.tls else { return Err(FailureClass::Tls) };
        factory.0.session_offering(name, alpn).map_err(|error| error.class)
    }

    /// Closes the socket; the slot can be reused.
    pub(crate) fn close<I: Io>(&mut self, io: &mut I, slot: Slot, how: Close) {
        io.close(slot, how);
        self.open_count -= 1;
        self.free.push(slot);
        // the slot keeps its working state for the next connection, unless there are many
        if self.free.len() > SPARE_MAX
            && let Some(work) = self.slots[slot as usize].conn.take_work()
        {
            self.recycle(work);
        }
    }
}

/// Endpoints and their addresses.
impl Pool {
    pub(crate) fn endpoint(&self, row: u32) -> &Arc<Endpoint> {
        &self.endpoints[row as usize].endpoint
    }

    /// Adds an endpoint that the plan does not name; returns its row.
    pub(crate) fn add_endpoint(&mut self, endpoint: Endpoint) -> u32 {
        self.endpoints.push(EndpointState::new(endpoint, &self.setup));
        self.endpoints.len() as u32 - 1
    }

    /// Returns whether connections to the endpoint are WebSockets that steps of journeys open.
    pub(crate) fn is_socket(&self, endpoint: u32) -> bool {
        self.endpoints[endpoint as usize].kind == EndpointKind::Socket
    }

    /// Returns whether connections to the endpoint carry gRPC calls of guides.
    pub(crate) fn is_grpc(&self, endpoint: u32) -> bool {
        self.endpoints[endpoint as usize].kind == EndpointKind::Grpc
    }

    /// Returns the address that is currently tried.
    pub(crate) fn address(&self, endpoint: u32) -> usize {
        self.endpoints[endpoint as usize].address
    }

    /// Notes that the endpoint accepted a connection.
    pub(crate) fn mark_reached(&mut self, endpoint: u32) {
        self.endpoints[endpoint as usize].reached = true;
    }

    /// Continues with the address after `address`, if addresses are tried in order and none has
    /// accepted a connection yet. Returns false after the last one.
    pub(crate) fn give_up_address(&mut self, endpoint: u32, address: usize) -> bool {
        if self.setup.plan.connection.addresses != AddressOrder::FirstThatAnswers {
            return false;
        }
        let place = &mut self.endpoints[endpoint as usize];
        let none_left = place.address == address && address + 1 >= place.endpoint.peers.len();
        if place.reached || none_left {
            return false;
        }
        place.address = place.address.max(address + 1);
        true
    }
}

/// Returns the working state for a connection.
#[inline(never)]
#[expect(
    clippy::vec_box,
    reason = "a connection has its work in a box, which is returned unchanged"
)]
fn work(spare: &mut Vec<Box<Work>>, setup: &Setup, keeps_heads: bool) -> Box<Work> {
    let new = || Box::new(Work::new(setup.protocol.clone(), keeps_heads, setup.logging.lenient));
    spare.pop().unwrap_or_else(new)
}

pub(crate) fn class_of(error: IoError) -> FailureClass {
    match error {
        IoError::Failed(class) => class,
        // `open` and `read` of an ended connection never return this
        IoError::WouldBlock => FailureClass::OtherIo,
    }
}
