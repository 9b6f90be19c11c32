//! The worker: what it holds, its turn, and the loop that drives it.

use crate::call::Call;
use crate::connection::Conn;
use crate::deadlines::Deadlines;
use crate::guide::Guided;
use crate::script::Scripted;
use crate::setup::{Endpoint, Setup};
use crate::source::{People, Source};
use conduit::{Io, Slot, TlsFactory};
use sample::{CallRecord, Ends};
use stats::{Recorder, Snapshot};
use std::collections::VecDeque;
use std::sync::Arc;
use units::Nanos;
use wire::answer::HeadCache;

/// What the collector tells the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Go on.
    Go,
    /// Nothing more falls due; what is under way is followed to its outcome.
    Stop,
    /// Give up what is under way, now.
    Abandon,
}

/// A worker's way to the collector.
pub trait Link {
    fn order(&mut self) -> Order;

    /// Hands an interval's snapshot over and gets a clear one back.
    fn row(&mut self, row: crate::Row) -> Box<Snapshot>;

    /// Hands finished calls over, where calls are logged; empties the list.
    fn log(&mut self, calls: &mut Vec<CallRecord>);

    /// The script failed, as the text says; this worker is done.
    fn broken(&mut self, text: String);

    /// Hands ended connections and sessions over, where they are recorded; empties the lists.
    fn ends(&mut self, ends: &mut Ends) {
        *ends = Ends::default();
    }
}

/// What the driver is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Wait for readiness, at most until then.
    Wait(Nanos),
    /// The run is over; all connections are closed.
    Done,
}

/// One core's part of a run. Owns everything it touches.
#[derive(Debug)]
pub struct Worker {
    pub(crate) setup: Arc<Setup>,
    pub(crate) id: u32,
    pub(crate) source: Source,
    pub(crate) people: People,
    pub(crate) conns: Vec<Conn>,
    pub(crate) free: Vec<Slot>,
    pub(crate) open_count: u32,
    pub(crate) connections_peak: u32,
    pub(crate) opened_count: u64,
    pub(crate) opens_this_turn: u32,
    /// Readiness events handled in the turn before this one, and so far in this one.
    pub(crate) events_before: u32,
    pub(crate) events: u32,
    /// TCP_INFO samples that are due by the plan's share.
    pub(crate) facts_owed: f64,
    /// For each endpoint: connections that can take a call, the latest used last.
    pub(crate) ready: Vec<Vec<(Slot, u32)>>,
    /// For each endpoint: calls that wait for a connection, in order of their due instants.
    pub(crate) queues: Vec<VecDeque<Call>>,
    pub(crate) queued: u64,
    pub(crate) limits: Limits,
    pub(crate) deadlines: Deadlines,
    pub(crate) recorder: Recorder,
    /// A clear snapshot for the next row.
    pub(crate) spare: Box<Snapshot>,
    pub(crate) cache: HeadCache,
    pub(crate) tls: Option<Tls>,
    pub(crate) buffer: Box<[u8]>,
    pub(crate) plain: Vec<u8>,
    pub(crate) dirty: Vec<Slot>,
    /// Calls of sessions that are made again.
    pub(crate) again: VecDeque<Call>,
    /// Calls to be put on a connection again.
    pub(crate) stranded: Vec<Call>,
    pub(crate) next_due: Nanos,
    pub(crate) stopping: bool,
    pub(crate) row_end: Nanos,
    /// The end of the row or of the beat under way, whichever is first.
    pub(crate) edge: Nanos,
    pub(crate) row_start: Nanos,
    pub(crate) spun: Nanos,
    pub(crate) received: u64,
    pub(crate) log: Vec<CallRecord>,
    pub(crate) ends: Ends,
    /// The log holds a failure that is not to be kept back.
    pub(crate) log_urgent: bool,
    /// Answers that are still to be kept, and the one of the call that is being concluded.
    pub(crate) answers_left: u64,
    pub(crate) answer: Vec<u8>,
    /// For each endpoint whose addresses are tried in order: the one that is tried now, and whether
    /// it took a connection.
    pub(crate) address: Vec<(usize, bool)>,
    /// From then on nothing more falls due: users and sessions that still think leave.
    pub(crate) last_due: Nanos,
    /// When calls under way are given up: the end of the measured phase, or never.
    pub(crate) cut: Nanos,
    pub(crate) last_done: Nanos,
    /// Users make one call after the other, without pauses, groups or visits.
    pub(crate) one_by_one: bool,
    /// Bodies are looked at, by the plan's expectations or by a script.
    pub(crate) looks: bool,
    pub(crate) script: Option<Box<Scripted>>,
    pub(crate) guided: Option<Box<Guided>>,
    /// A script or a guide attends to each answer.
    pub(crate) attended: bool,
    /// The plan's, and behind them those that a guide's users have met.
    pub(crate) endpoints: Vec<Arc<Endpoint>>,
}

/// The worker's parts of the plan's limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connections: u32,
    pub(crate) queue: u64,
    pub(crate) bytes: u64,
    /// Requests outstanding on one connection; calls one connection carries.
    pub(crate) depth: u32,
    pub(crate) calls: u32,
    /// Connections that one user may have.
    pub(crate) per_user: u32,
}

/// Bytes read at once; one buffer serves all connections of a worker.
const READ_SIZE: usize = 64 << 10;

/// Never wait longer, so that an order to stop is obeyed soon.
const NAP: Nanos = Nanos::from_millis(50);

/// Logged calls are handed over when this many are there.
const LOG_BATCH: usize = 4096;

/// The factory, with a Debug that says nothing of keys.
pub(crate) struct Tls(pub(crate) Box<dyn TlsFactory + Send>);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Worker {
    /// Worker `id` of `setup.workers`; `tls` is needed where an endpoint has TLS.
    pub fn new(setup: Arc<Setup>, id: u32, tls: Option<Box<dyn TlsFactory + Send>>) -> Worker {
        let (source, people) = Source::new(&setup, id);
        let window = (setup.measure_from(), setup.measure_until());
        let endpoints = setup.endpoints.len();
        let interval = setup.plan.measure.interval.0.max(1);
        let first = setup.plan.stop.warm_up.0 % interval;
        let row_end = setup.start + Nanos(if first == 0 { interval } else { first });
        let mut recorder = Recorder::new(setup.targets.len(), window);
        let mut spare = Box::new(Snapshot::prepared(setup.targets.len()));
        if setup.is_open() {
            recorder.now.expect_slip();
            spare.expect_slip();
        }
        Worker {
            source,
            people,
            conns: Vec::new(),
            free: Vec::new(),
            open_count: 0,
            connections_peak: 0,
            opened_count: 0,
            opens_this_turn: 0,
            events_before: 0,
            events: 0,
            facts_owed: 1.0,
            ready: vec![Vec::new(); endpoints],
            queues: vec![VecDeque::new(); endpoints],
            queued: 0,
            limits: Limits::of(&setup, id),
            deadlines: Deadlines::default(),
            recorder,
            spare,
            cache: HeadCache::new(),
            tls: tls.map(Tls),
            buffer: vec![0; READ_SIZE].into_boxed_slice(),
            plain: Vec::new(),
            dirty: Vec::new(),
            again: VecDeque::new(),
            stranded: Vec::new(),
            next_due: setup.start,
            stopping: false,
            row_end,
            edge: setup.start,
            row_start: setup.start,
            spun: Nanos::ZERO,
            received: 0,
            log: Vec::new(),
            ends: Ends::default(),
            log_urgent: false,
            answers_left: setup.logging.answers,
            answer: Vec::new(),
            address: vec![(0, false); endpoints],
            last_due: last_due(&setup),
            cut: if setup.plan.stop.at_once { window.1 } else { Nanos::NEVER },
            last_done: setup.start,
            one_by_one: one_by_one(&setup),
            looks: setup.body.looks(),
            script: None,
            guided: None,
            attended: false,
            endpoints: setup.endpoints.iter().cloned().map(Arc::new).collect(),
            id,
            setup,
        }
    }

    /// Does what has fallen due and says until when nothing else will.
    pub fn turn<I: Io>(&mut self, io: &mut I, link: &mut dyn Link) -> Turn {
        let now = io.now();
        self.opens_this_turn = 0;
        self.events_before = std::mem::take(&mut self.events);
        let order = if now >= self.cut { Order::Abandon } else { link.order() };
        match order {
            Order::Go => {}
            Order::Stop => self.stop(),
            Order::Abandon => {
                self.abandon(io, now);
                self.end_row(io, link, now, true);
                return Turn::Done;
            }
        }
        if let Some(text) = self.script_failure() {
            link.broken(text);
            self.abandon(io, now);
            self.end_row(io, link, now, true);
            return Turn::Done;
        }
        if now >= self.last_due {
            self.stop();
        }
        if now >= self.edge {
            self.pass_edge(io, link, now);
        }
        if self.log.len() >= LOG_BATCH || self.log_urgent {
            self.log_urgent = false;
            link.log(&mut self.log);
        }
        if self.ends.len() >= LOG_BATCH {
            link.ends(&mut self.ends);
        }
        self.expire(io, now);
        self.fall_due(io, now);
        self.flush_dirty(io, now);
        if self.finished(now) {
            self.close_all(io, now);
            self.end_row(io, link, now, true);
            return Turn::Done;
        }
        Turn::Wait(self.wake(now))
    }

    /// Takes one readiness event.
    #[inline]
    pub fn handle<I: Io>(&mut self, io: &mut I, ready: conduit::Ready) {
        self.events += 1;
        let now = self.progress(io, ready);
        self.flush_dirty(io, now);
        if now >= self.next_due {
            self.fall_due(io, now);
        }
    }

    /// Until when to wait: the earliest of all that can fall due.
    fn wake(&self, now: Nanos) -> Nanos {
        let queues = self.queues.iter().filter_map(VecDeque::front);
        let oldest = queues.map(|call| call.intended).min().unwrap_or(Nanos::NEVER);
        let wait = self.next_due.min(self.deadlines.next()).min(self.edge).min(now + NAP);
        wait.min(oldest + self.setup.plan.timeouts.call).min(self.cut)
    }

    pub(crate) fn stop(&mut self) {
        if !self.stopping {
            self.stopping = true;
            if let Source::Open(open) = &mut self.source {
                open.stop();
            }
            // thinking users retire as they wake: wake them now
            self.next_due = Nanos::ZERO;
        }
    }
}

/// The end of the measured phase; sessions that began in it may go on for one timeout (law 4).
fn last_due(setup: &Setup) -> Nanos {
    let more = if setup.is_open() { setup.plan.timeouts.call } else { Nanos::ZERO };
    setup.measure_until() + more
}

/// Whether the users of a closed loop just make one call after the other.
fn one_by_one(setup: &Setup) -> bool {
    let plain = |think: &plan::Think, session: &Option<plan::SessionPlan>| {
        *think == plan::Think::None && session.is_none() && setup.plan.connection.group.is_none()
    };
    matches!(&setup.plan.load, plan::Load::Closed { think, session, .. } if plain(think, session))
}

impl Limits {
    fn of(setup: &Setup, worker: u32) -> Limits {
        let share = |total: u64| setup.share(total, worker);
        let connection = &setup.plan.connection;
        let (connections, queue) = match &setup.plan.load {
            plan::Load::Closed { .. } => (u64::from(u32::MAX), u64::MAX),
            plan::Load::Open { connections_max, queue_max, .. } => (
                connections_max.map_or(u64::from(u32::MAX), |total| share(u64::from(total))),
                queue_max.map_or(u64::MAX, share),
            ),
        };
        let together =
            crate::source::lanes(setup).max(connection.pipeline).max(setup.widest_group());
        Limits {
            connections: u32::try_from(connections).unwrap_or(u32::MAX),
            queue,
            bytes: setup.plan.stop.bytes.map_or(u64::MAX, share),
            depth: connection.depth.unwrap_or(u32::MAX).min(together),
            calls: connection.calls.unwrap_or(u32::MAX),
            per_user: connection.per_user,
        }
    }
}

/// Runs a worker to its end on one driver.
pub fn drive<I: Io>(worker: &mut Worker, io: &mut I, link: &mut dyn Link) {
    let mut ready = Vec::with_capacity(1024);
    while let Turn::Wait(until) = worker.turn(io, link) {
        io.wait(until, &mut ready);
        for event in &ready {
            worker.handle(io, *event);
        }
    }
}
