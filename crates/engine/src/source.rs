//! Where calls come from: a population of users (closed), a schedule of calls (open), a schedule of
//! sessions (partly open). Also the indices of calls, so that content depends on no timing.

use crate::call::NOBODY;
use crate::setup::Setup;
use conduit::Slot;
use plan::{Arrivals, Load, SessionPlan, Think};
use sample::Arrival;
use schedule::{ArrivalSpec, End, Schedule, Share};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;
use workload::Jar;

/// Someone whose calls follow one another: a user of a closed loop, or a session.
#[derive(Debug)]
pub(crate) struct User {
    /// Number across all workers: names the user's random streams.
    pub(crate) id: u64,
    pub(crate) conn: Option<Slot>,
    pub(crate) outstanding: u32,
    /// Entries in the heap of thinkers.
    pub(crate) thinking: u32,
    /// Calls left; `u32::MAX` where only the run's end limits them.
    pub(crate) left: u32,
    pub(crate) turns: u64,
    pub(crate) jar: Option<Box<Jar>>,
    /// A session with a failed call.
    pub(crate) failed: bool,
    pub(crate) active: bool,
}

/// The kind of load, with its own state.
#[derive(Debug)]
pub(crate) enum Source {
    Closed { think: Think },
    Open(Box<OpenSource>),
}

#[derive(Debug)]
pub(crate) struct OpenSource {
    schedule: Schedule,
    /// Index of the first arrival after the warm-up.
    first_measured: u64,
    next: Option<Arrival>,
    pub(crate) session: Option<SessionPlan>,
}

impl OpenSource {
    fn new(setup: &Setup, worker: u32, arrivals: &Arrivals, session: Option<SessionPlan>) -> Self {
        let spec = arrival_spec(setup, arrivals);
        let share = Share::new(worker, setup.workers);
        let mut schedule = Schedule::shared(&spec, setup.seed, setup.start, share);
        let (first_measured, next) = (schedule.first_measured(), schedule.next());
        OpenSource { schedule, first_measured, next, session }
    }

    /// The instant of the next arrival; `NEVER` after the last.
    pub(crate) fn next_due(&self) -> Nanos {
        self.next.map_or(Nanos::NEVER, |arrival| arrival.intended)
    }

    /// The next arrival, and the index that decides its content: both phases count from zero.
    pub(crate) fn take(&mut self) -> Option<(Arrival, u64)> {
        let arrival = self.next?;
        self.next = self.schedule.next();
        let content = arrival.index.checked_sub(self.first_measured).unwrap_or(arrival.index);
        Some((arrival, content))
    }

    pub(crate) fn stop(&mut self) {
        self.next = None;
    }
}

/// The plan's arrival process with its phases and its end.
pub(crate) fn arrival_spec(setup: &Setup, arrivals: &Arrivals) -> ArrivalSpec {
    let stop = &setup.plan.stop;
    ArrivalSpec {
        from: arrivals.from.0,
        to: arrivals.to.0,
        ramp_over: stop.duration.unwrap_or(Nanos::ZERO),
        warm_up: stop.warm_up,
        gaps: arrivals.gaps,
        burst: arrivals.burst,
        end: End { at: stop.duration, count: setup.requests_max() },
    }
}

/// Users, the thinkers among them, and the counters that give calls their indices.
#[derive(Debug)]
pub(crate) struct People {
    pub(crate) users: Vec<User>,
    free: Vec<u32>,
    thinking: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
    pub(crate) active: u32,
    /// Calls begun in the warm-up and in the measured phase.
    warm_calls: u64,
    calls: u64,
    /// This worker's part of `-n` in a closed loop.
    calls_max: u64,
    worker: u32,
    workers: u32,
}

impl People {
    pub(crate) fn new(setup: &Setup, worker: u32) -> People {
        let closed = matches!(setup.plan.load, Load::Closed { .. });
        let asked = setup.requests_max().filter(|_| closed);
        let listed = setup.targets.calls_max();
        let calls_max = asked.or(listed).map_or(u64::MAX, |total| setup.share(total, worker));
        People {
            users: Vec::new(),
            free: Vec::new(),
            thinking: BinaryHeap::new(),
            active: 0,
            warm_calls: 0,
            calls: 0,
            calls_max,
            worker,
            workers: setup.workers,
        }
    }

    /// Lets one more user in; `left` calls are theirs.
    pub(crate) fn admit(&mut self, id: u64, left: u32, cookies: bool) -> u32 {
        let user = User {
            id,
            conn: None,
            outstanding: 0,
            thinking: 0,
            left,
            turns: 0,
            jar: cookies.then(Box::default),
            failed: false,
            active: true,
        };
        self.active += 1;
        if let Some(row) = self.free.pop() {
            self.users[row as usize] = user;
            return row;
        }
        self.users.push(user);
        self.users.len() as u32 - 1
    }

    /// The user's visit is over.
    pub(crate) fn retire(&mut self, row: u32) {
        let user = &mut self.users[row as usize];
        if user.active {
            user.active = false;
            user.jar = None;
            self.active -= 1;
            self.free.push(row);
        }
    }

    pub(crate) fn user(&mut self, row: u32) -> Option<&mut User> {
        if row == NOBODY { None } else { self.users.get_mut(row as usize) }
    }

    /// `count` calls of the user fall due at `at`.
    pub(crate) fn think(&mut self, at: Nanos, row: u32, count: u32) {
        self.users[row as usize].thinking += 1;
        self.thinking.push(Reverse((at, row, count)));
    }

    /// Puts off everyone who thinks, each by a span of their own.
    pub(crate) fn put_off(&mut self, mut span: impl FnMut() -> Nanos) {
        let entries = std::mem::take(&mut self.thinking).into_sorted_vec();
        for Reverse((at, row, count)) in entries {
            self.thinking.push(Reverse((at + span(), row, count)));
        }
    }

    pub(crate) fn next_due(&self) -> Nanos {
        self.thinking.peek().map_or(Nanos::NEVER, |Reverse((at, ..))| *at)
    }

    pub(crate) fn rouse(&mut self, now: Nanos) -> Option<(Nanos, u32, u32)> {
        if self.next_due() > now {
            return None;
        }
        let Reverse(entry) = self.thinking.pop()?;
        self.users[entry.1 as usize].thinking -= 1;
        Some(entry)
    }

    /// The index of the next call of users; `None` when the worker's part of the count is done.
    /// Warm-up calls count from zero on their own, so that they use up no part of it.
    #[inline]
    pub(crate) fn next_index(&mut self, warm_up: bool) -> Option<u64> {
        let counter = if warm_up { &mut self.warm_calls } else { &mut self.calls };
        if !warm_up && *counter >= self.calls_max {
            return None;
        }
        let index = *counter * u64::from(self.workers) + u64::from(self.worker);
        *counter += 1;
        Some(index)
    }
}

impl Source {
    /// The source of worker `worker`'s part of the load, and its people at the start.
    pub(crate) fn new(setup: &Setup, worker: u32) -> (Source, People) {
        let mut people = People::new(setup, worker);
        let source = match &setup.plan.load {
            Load::Closed { users, think } => {
                let cookies = setup.plan.request.cookies;
                for row in 0..setup.share(u64::from(*users), worker) {
                    let id = row * u64::from(setup.workers) + u64::from(worker);
                    let user = people.admit(id, u32::MAX, cookies);
                    people.think(setup.start, user, lanes(setup));
                }
                Source::Closed { think: *think }
            }
            Load::Open { arrivals, session, .. } => {
                let open = OpenSource::new(setup, worker, arrivals, session.clone());
                Source::Open(Box::new(open))
            }
        };
        (source, people)
    }

    pub(crate) fn next_due(&self) -> Nanos {
        match self {
            Source::Closed { .. } => Nanos::NEVER,
            Source::Open(open) => open.next_due(),
        }
    }

    pub(crate) fn think(&self) -> Think {
        match self {
            Source::Closed { think } => *think,
            Source::Open(open) => {
                open.session.as_ref().map_or(Think::None, |session| session.think)
            }
        }
    }
}

/// How many calls of one user go out at once.
pub(crate) fn lanes(setup: &Setup) -> u32 {
    setup.plan.connection.group.unwrap_or(setup.plan.connection.pipeline).max(1)
}
