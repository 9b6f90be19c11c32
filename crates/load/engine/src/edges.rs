//! The instants at which a worker must act without an event: the next due call, the end of the
//! current row and beat, and the end of the run. Also the amount of input in the previous turn,
//! which determines how a late worker spends its time.

use crate::setup::Setup;
use units::Nanos;

/// Maximum wait, so that a stop request is handled soon.
const WAIT_MAX: Nanos = Nanos::from_millis(50);

/// Validity of the last check for orders: a worker that is delayed for longer checks again before
/// it issues a call.
const ORDER_MAX: Nanos = Nanos::from_millis(100);

#[derive(Debug)]
pub(crate) struct Edges {
    /// Start of the current turn, at which orders are checked.
    turned: Nanos,
    /// The earliest instant at which a call may fall due; zero: check at once.
    next_due: Nanos,
    /// True if no more calls become due.
    stopping: bool,
    /// Instant after which no call becomes due: thinking users and sessions leave.
    last_due: Nanos,
    /// Instant at which calls in flight are abandoned: the end of the measured phase, or never.
    cut: Nanos,
    row_start: Nanos,
    row_end: Nanos,
    interval: Nanos,
    /// End of the current row or beat, whichever is first.
    edge: Nanos,
    /// Time spent spinning up to the end of the previous row.
    spun: Nanos,
    /// Readiness events handled in the turn before this one, and so far in this one.
    events_before: u32,
    events: u32,
}

/// A completed row of the time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowEnd {
    pub(crate) start: Nanos,
    /// End of the row as set by the plan, equal for all workers.
    pub(crate) edge: Nanos,
    /// Time spent spinning within the row.
    pub(crate) spun: Nanos,
}

impl Edges {
    pub(crate) fn new(setup: &Setup) -> Edges {
        let interval = setup.plan.measure.interval.0.max(1);
        let first = setup.plan.stop.warm_up.0 % interval;
        let at_once = setup.plan.stop.at_once;
        Edges {
            turned: setup.start,
            next_due: setup.start,
            stopping: false,
            last_due: last_due(setup),
            cut: if at_once { setup.measure_until() } else { Nanos::NEVER },
            row_start: setup.start,
            row_end: setup.start + Nanos(if first == 0 { interval } else { first }),
            interval: Nanos(interval),
            edge: setup.start,
            spun: Nanos::ZERO,
            events_before: 0,
            events: 0,
        }
    }

    pub(crate) fn start_turn(&mut self, now: Nanos) {
        self.turned = now;
        self.events_before = std::mem::take(&mut self.events);
    }

    #[inline]
    pub(crate) fn count_event(&mut self) {
        self.events += 1;
    }

    /// Returns true if the previous turn had input to read.
    pub(crate) fn had_events(&self) -> bool {
        self.events_before > 0
    }

    /// Stops the load: no more calls become due. Returns false if it had stopped before.
    pub(crate) fn stop(&mut self) -> bool {
        let first = !self.stopping;
        if first {
            self.stopping = true;
            // users in a think time leave when it ends: end it now
            self.next_due = Nanos::ZERO;
        }
        first
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Returns whether the last instant at which a call may fall due has passed.
    pub(crate) fn is_past_last_due(&self, now: Nanos) -> bool {
        now >= self.last_due
    }

    /// Returns whether calls in flight are abandoned.
    pub(crate) fn is_cut(&self, now: Nanos) -> bool {
        now >= self.cut
    }

    /// Returns whether a call is due and may be issued within this turn.
    #[inline]
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        now >= self.next_due && now <= self.turned + ORDER_MAX
    }

    /// Notes that everything due has been issued; the next call falls due at `at`.
    pub(crate) fn set_due(&mut self, at: Nanos) {
        self.next_due = at;
    }

    /// Records that one more call becomes due at `at`.
    pub(crate) fn add_due(&mut self, at: Nanos) {
        self.next_due = self.next_due.min(at);
    }

    #[inline]
    pub(crate) fn is_at_edge(&self, now: Nanos) -> bool {
        now >= self.edge
    }

    pub(crate) fn is_row_over(&self, now: Nanos) -> bool {
        now >= self.row_end
    }

    /// Sets the end of the current beat to `at`.
    pub(crate) fn set_beat(&mut self, at: Nanos) {
        self.edge = at.min(self.row_end);
    }

    /// Ends the current row and starts the next. `spun`: time spent spinning since the start.
    pub(crate) fn end_row(&mut self, now: Nanos, spun: Nanos) -> RowEnd {
        let over = RowEnd { start: self.row_start, edge: self.row_end, spun: spun - self.spun };
        self.spun = spun;
        self.row_start = now;
        while self.row_end <= now {
            self.row_end += self.interval;
        }
        over
    }

    /// Returns how long to wait, if connections have until `deadline` and queued calls until
    /// `queued`.
    #[inline]
    pub(crate) fn wake(&self, now: Nanos, deadline: Nanos, queued: Nanos) -> Nanos {
        let wait = self.next_due.min(deadline).min(self.edge).min(now + WAIT_MAX);
        wait.min(queued).min(self.cut)
    }
}

/// Returns the end of the measured phase; sessions that began before it may continue for one
/// timeout (law 4).
fn last_due(setup: &Setup) -> Nanos {
    let more = if setup.is_open() { setup.plan.timeouts.call } else { Nanos::ZERO };
    setup.measure_until() + more
}
