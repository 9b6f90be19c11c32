//! Heartbeats: pings on WebSockets at an interval, each connection with its own phase, so that
//! connections opened together do not ping at the same time; and keepalive pings of gRPC.

use crate::churn::{Lifetimes, Storm};
use crate::pacer::Pacer;
use crate::setup::Setup;
use crate::slot_timers::SlotTimers;
use conduit::Slot;
use plan::Plan;
use units::{Nanos, Purpose, Seed, Stream};

/// Messages that a worker sends at set times, independent of calls.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) heartbeats: Option<Heartbeats>,
    pub(crate) pacer: Option<Pacer>,
    pub(crate) lifetimes: Option<Lifetimes>,
    pub(crate) storm: Option<Storm>,
}

impl Timed {
    /// Creates the timers; `None` if the plan needs none.
    pub(crate) fn new(setup: &Setup, worker: u32) -> Option<Box<Timed>> {
        let plan = &setup.plan;
        let heartbeats = Heartbeats::new(plan, worker);
        let pacer = plan.grpc.message_rate.map(Pacer::new);
        let lifetimes = Lifetimes::new(plan, worker);
        let storm = Storm::new(plan, setup.measure_from());
        let churns = lifetimes.is_some() || storm.is_some();
        let any = heartbeats.is_some() || pacer.is_some() || churns;
        any.then(|| Box::new(Timed { heartbeats, pacer, lifetimes, storm }))
    }

    /// Records that a connection was established.
    pub(crate) fn begin(&mut self, slot: Slot, generation: u32, socket: bool, now: Nanos) {
        if let Some(heartbeats) = &mut self.heartbeats
            && heartbeats.are_for(socket)
        {
            heartbeats.begin(slot, generation, now);
        }
        if socket {
            self.begin_lifetime(slot, generation, now);
        }
    }

    pub(crate) fn begin_lifetime(&mut self, slot: Slot, generation: u32, now: Nanos) {
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.begin(slot, generation, now);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Heartbeats {
    interval: Nanos,
    /// They are keepalive pings of gRPC.
    keepalive: bool,
    phases: Stream,
    /// Next pings, or next examinations, of the connections.
    pub(crate) timers: SlotTimers,
}

impl Heartbeats {
    /// Creates the heartbeats of worker `worker`, or `None` if the plan has none, or its calls are
    /// pings.
    pub(crate) fn new(plan: &Plan, worker: u32) -> Option<Heartbeats> {
        let keepalive = plan.grpc.keepalive.filter(|_| plan.has_grpc());
        let sockets = plan.websocket.ping.filter(|_| plan.speaks_websocket());
        let interval = keepalive.or(sockets.filter(|_| !plan.holds_websockets()))?;
        let keepalive = keepalive.is_some();
        let phases = Seed(plan.seed).stream(Purpose::Sockets, u64::MAX - u64::from(worker));
        Some(Heartbeats { interval, keepalive, phases, timers: SlotTimers::default() })
    }

    /// Notes that a connection was established.
    pub(crate) fn begin(&mut self, slot: Slot, generation: u32, now: Nanos) {
        if self.keepalive {
            return self.again(slot, generation, now);
        }
        let phase = Nanos(self.phases.below(self.interval.0.max(1)));
        self.timers.set(slot, generation, now + phase);
    }

    /// Returns whether they are for connections of this kind.
    pub(crate) fn are_for(&self, socket: bool) -> bool {
        socket != self.keepalive
    }

    /// Returns the time without data after which a connection is pinged, if they are keepalive
    /// pings.
    pub(crate) fn keepalive(&self) -> Option<Nanos> {
        self.keepalive.then_some(self.interval)
    }

    /// Notes that a connection was pinged.
    pub(crate) fn again(&mut self, slot: Slot, generation: u32, now: Nanos) {
        self.timers.set(slot, generation, now + self.interval);
    }
}
