//! Source of calls: a population of users (closed), a schedule of calls (open), a schedule of
//! sessions (partly open). Also the indices of calls, so that content does not depend on timing.

use crate::call::NO_USER;
use crate::proof::KnownChallenge;
use crate::setup::{LateShare, Setup};
use conduit::Slot;
use plan::{Arrivals, Load, RETRIES_MAX, SessionPlan, Think};
use sample::{Arrival, SessionRecord};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::{Nanos, room_for_more};
use workload::Jar;
use workload::schedule::{ArrivalSpec, Levels, Schedule, ScheduleEnd, Share};

/// A user of a closed loop, or a session, whose calls follow one another.
#[derive(Debug)]
pub(crate) struct User {
    /// Number across all workers: identifies the user's random streams.
    pub(crate) id: u64,
    pub(crate) conn: Option<Slot>,
    pub(crate) outstanding: u32,
    /// Number of entries in the heap of thinkers.
    pub(crate) thinking: u32,
    /// Number of calls left; `u32::MAX` if only the end of the run limits them.
    pub(crate) left: u32,
    pub(crate) turns: u64,
    pub(crate) belongings: Option<Box<UserExtras>>,
    /// The session has a failed call.
    pub(crate) failed: bool,
    pub(crate) active: bool,
    /// The session's record, and its retried calls.
    pub(crate) started: Nanos,
    pub(crate) responses: u32,
    pub(crate) connections: u32,
    pub(crate) retries: u32,
}

/// Memory of a thinking user, without connection and optional state (docs/design/own-stack.md); its
/// entry in the heap of thinkers is additional.
const _: () = assert!(size_of::<User>() <= 80);

/// State that only users of some plans have.
#[derive(Debug, Default)]
pub(crate) struct UserExtras {
    /// Further connections, if a user may have several.
    pub(crate) more: Vec<Slot>,
    pub(crate) jar: Option<Box<Jar>>,
    /// Latest cookie, if only that one is sent.
    pub(crate) cookie: Option<Box<str>>,
    pub(crate) login: KnownChallenge,
    /// The WebSockets that steps of its journey opened, by their numbers.
    pub(crate) sockets: Vec<(u32, Slot)>,
}

impl User {
    /// Returns the state for writing, like [`User::own`].
    pub(crate) fn own(&mut self) -> &mut UserExtras {
        self.belongings.get_or_insert_default()
    }

    /// Returns the further connections.
    pub(crate) fn more(&self) -> &[Slot] {
        self.belongings.as_ref().map_or(&[], |own| &own.more)
    }

    pub(crate) fn record(&self, now: Nanos) -> SessionRecord {
        SessionRecord {
            index: self.id,
            intended: self.started,
            ended: now,
            responses: self.responses,
            connections: self.connections,
            failed: self.failed,
        }
    }
}

/// Intended number of users over time.
#[derive(Clone, Debug)]
pub(crate) struct Population {
    levels: Levels,
    /// First instant of the measured phase, at which the levels begin.
    from: Nanos,
}

impl Population {
    /// Returns `None` if all users exist all the time.
    pub(crate) fn new(setup: &Setup) -> Option<Population> {
        let closed = matches!(setup.plan.load, Load::Closed { session: None, .. });
        let stages = setup.plan.stages.as_ref().filter(|_| closed)?;
        Some(Population { levels: stages.levels.clone(), from: setup.measure_from() })
    }

    /// Returns the first instant, from `at` on, at which user `id` exists, or `None` if it never
    /// exists again.
    pub(crate) fn next(&self, id: u64, at: Nanos) -> Option<Nanos> {
        if at < self.from && self.levels.first() > id as f64 {
            return Some(at);
        }
        self.levels.next_within(id, at - self.from).map(|span| self.from + span)
    }
}

/// The kind of load, with its own state.
#[derive(Debug)]
pub(crate) enum Source {
    Closed { think: Think },
    Open(Box<OpenSource>),
}

/// Arrivals of calls, or of sessions.
#[derive(Debug)]
pub(crate) struct OpenSource {
    arrivals: ArrivalProcess,
    next: Option<Arrival>,
    /// True if no more calls arrive, even if parts of the load are taken over.
    stopped: bool,
    pub(crate) session: Option<SessionPlan>,
}

#[derive(Debug)]
enum ArrivalProcess {
    /// Sessions that start on a schedule, with the index of the first arrival after the warm-up.
    Scheduled(Box<Strands>, u64),
    /// Consecutive sessions: each end starts the next.
    InTurn(Turns),
}

/// Parts of a schedule that one worker has: its own, and those taken over from other workers.
#[derive(Debug)]
struct Strands {
    /// Each part with its next arrival; never empty.
    all: Vec<(Schedule, Option<Arrival>)>,
    /// Index of the part with the earliest arrival.
    earliest: usize,
}

impl Strands {
    fn new(schedule: Schedule) -> Strands {
        let mut strands = Strands { all: Vec::new(), earliest: 0 };
        strands.add(schedule);
        strands
    }

    fn add(&mut self, mut schedule: Schedule) {
        let first = schedule.next();
        self.all.push((schedule, first));
        self.find_earliest();
    }

    fn next(&self) -> Option<Arrival> {
        self.all[self.earliest].1
    }

    /// Returns the arrival after the next one.
    fn after_next(&mut self) -> Option<Arrival> {
        let (schedule, next) = &mut self.all[self.earliest];
        *next = schedule.next();
        if self.all.len() > 1 {
            self.find_earliest();
        }
        self.next()
    }

    fn find_earliest(&mut self) {
        let due = |row: &usize| self.all[*row].1.map_or(Nanos::NEVER, |arrival| arrival.intended);
        self.earliest = (0..self.all.len()).min_by_key(due).unwrap_or(0);
    }
}

/// Sessions of a closed loop.
#[derive(Debug)]
struct Turns {
    /// Instants of the sessions that are due.
    due: VecDeque<Nanos>,
    started: u64,
    /// This worker's part of the count, and the instant after which no session falls due.
    most: u64,
    until: Nanos,
    share: Share,
}

impl Turns {
    /// Creates the users of a worker. `gap`: time between the starts of consecutive users of all
    /// workers.
    fn new(setup: &Setup, worker: u32, users: u32, gap: Nanos) -> Turns {
        let most = setup.requests_max().map_or(u64::MAX, |total| setup.share(total, worker));
        let users = setup.share(u64::from(users), worker).min(most);
        let (part, until) = (setup.part(worker), setup.measure_until());
        let due = (0..users).map(|row| setup.start + gap * part.nth(row));
        let due: VecDeque<Nanos> = due.take_while(|due| *due < until).collect();
        Turns { started: due.len() as u64, due, most, until, share: setup.part(worker).clone() }
    }

    fn next(&mut self) -> Option<Arrival> {
        let intended = self.due.pop_front()?;
        let given = self.started - self.due.len() as u64 - 1;
        Some(Arrival { index: self.share.nth(given), intended })
    }

    /// Returns the next arrival, or a due session if that is earlier.
    fn earliest(&mut self, next: Arrival) -> Arrival {
        let Some(due) = self.due.front().copied().filter(|due| *due < next.intended) else {
            return next;
        };
        self.due.pop_front();
        self.put(next.intended);
        Arrival { intended: due, ..next }
    }

    fn end_session(&mut self, now: Nanos) {
        if self.started < self.most && now < self.until {
            self.started += 1;
            self.put(now);
        }
    }

    /// Inserts in ascending order of the instants: some users may start after the first sessions
    /// end.
    fn put(&mut self, due: Nanos) {
        let at = self.due.partition_point(|known| *known <= due);
        self.due.insert(at, due);
    }

    fn stop(&mut self) {
        self.due.clear();
        self.most = 0;
    }
}

impl OpenSource {
    fn new(setup: &Setup, worker: u32, arrivals: &Arrivals, session: Option<SessionPlan>) -> Self {
        let spec = arrival_spec(setup, arrivals);
        let share = setup.part(worker).clone();
        let schedule = Schedule::shared(&spec, setup.seed, setup.start, share);
        let first_measured = schedule.first_measured();
        let strands = Box::new(Strands::new(schedule));
        let next = strands.next();
        let arrivals = ArrivalProcess::Scheduled(strands, first_measured);
        OpenSource { arrivals, next, stopped: false, session }
    }

    fn in_turn(setup: &Setup, worker: u32, users: u32, session: SessionPlan) -> Self {
        let mut turns = Turns::new(setup, worker, users, session.start_gap);
        let next = turns.next();
        let (arrivals, session) = (ArrivalProcess::InTurn(turns), Some(session));
        OpenSource { arrivals, next, stopped: false, session }
    }

    /// Takes over a part of the load from another worker; this is not possible with chained
    /// sessions.
    pub(crate) fn take_over(&mut self, setup: &Setup, more: &LateShare) {
        let (ArrivalProcess::Scheduled(strands, _), Load::Open { arrivals, .. }) =
            (&mut self.arrivals, &setup.plan.load)
        else {
            return;
        };
        if self.stopped {
            return;
        }
        let spec = arrival_spec(setup, arrivals);
        let share = more.share.clone();
        let mut schedule = Schedule::shared(&spec, setup.seed, setup.start, share);
        if let Some(before) = more.from.0.checked_sub(1) {
            schedule.seek(schedule.count_due(setup.start + Nanos(before)));
        }
        strands.add(schedule);
        self.next = strands.next();
    }

    /// Returns the instant of the next arrival; `NEVER` after the last.
    pub(crate) fn next_due(&self) -> Nanos {
        self.next.map_or(Nanos::NEVER, |arrival| arrival.intended)
    }

    /// Returns the next arrival, and the index that decides its content: both phases count from
    /// zero.
    pub(crate) fn take(&mut self) -> Option<(Arrival, u64)> {
        let arrival = self.next?;
        self.next = match &mut self.arrivals {
            ArrivalProcess::Scheduled(strands, _) => strands.after_next(),
            ArrivalProcess::InTurn(turns) => turns.next(),
        };
        let first_measured = match &self.arrivals {
            ArrivalProcess::Scheduled(_, first) => *first,
            ArrivalProcess::InTurn(_) => 0,
        };
        let content = arrival.index.checked_sub(first_measured).unwrap_or(arrival.index);
        Some((arrival, content))
    }

    /// Notes the end of a session, which may start the next one.
    pub(crate) fn session_over(&mut self, now: Nanos) {
        if let ArrivalProcess::InTurn(turns) = &mut self.arrivals {
            turns.end_session(now);
            self.next = match self.next {
                None => turns.next(),
                Some(next) => Some(turns.earliest(next)),
            };
        }
    }

    pub(crate) fn stop(&mut self) {
        (self.next, self.stopped) = (None, true);
        if let ArrivalProcess::InTurn(turns) = &mut self.arrivals {
            turns.stop();
        }
    }
}

/// Returns the plan's arrival process with its phases and its end.
pub(crate) fn arrival_spec(setup: &Setup, arrivals: &Arrivals) -> ArrivalSpec {
    let stop = &setup.plan.stop;
    ArrivalSpec {
        from: arrivals.from.0,
        to: arrivals.to.0,
        levels: setup.plan.stages.as_ref().map(|stages| stages.levels.clone()),
        ramp_over: stop.duration.unwrap_or(Nanos::ZERO),
        warm_up: stop.warm_up,
        gaps: arrivals.gaps,
        burst: arrivals.burst,
        at: arrivals.at.clone(),
        end: ScheduleEnd { at: stop.duration, count: setup.requests_max() },
    }
}

/// Users, including those that think, and the counters that give calls their indices.
#[derive(Debug)]
pub(crate) struct People {
    pub(crate) users: Vec<User>,
    free: Vec<u32>,
    thinking: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
    pub(crate) active: u32,
    /// Number of calls started in the warm-up and in the measured phase.
    warm_calls: u64,
    calls: u64,
    /// This worker's part of `-n` in a closed loop.
    calls_max: u64,
    share: Share,
}

impl People {
    pub(crate) fn new(setup: &Setup, worker: u32) -> People {
        let closed = matches!(setup.plan.load, Load::Closed { session: None, .. });
        // iterations of journeys are counted by their guide
        let closed = closed && setup.plan.journeys.is_none();
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
            share: setup.part(worker).clone(),
        }
    }

    /// Admits one more user, with `left` calls.
    pub(crate) fn admit(&mut self, id: u64, left: u32, cookies: bool) -> u32 {
        let user = User {
            id,
            conn: None,
            outstanding: 0,
            thinking: 0,
            left,
            turns: 0,
            belongings: cookies.then(with_jar),
            failed: false,
            active: true,
            started: Nanos::ZERO,
            responses: 0,
            connections: 0,
            retries: 0,
        };
        self.active += 1;
        if let Some(row) = self.free.pop() {
            self.users[row as usize] = user;
            return row;
        }
        if self.users.len() == self.users.capacity() {
            self.users.reserve_exact(room_for_more(self.users.len()));
        }
        self.users.push(user);
        self.users.len() as u32 - 1
    }

    /// Removes a user whose visit is over.
    pub(crate) fn retire(&mut self, row: u32) {
        let user = &mut self.users[row as usize];
        if user.active {
            user.active = false;
            if let Some(own) = &mut user.belongings {
                own.jar = None;
            }
            self.active -= 1;
            self.free.push(row);
        }
    }

    pub(crate) fn user(&mut self, row: u32) -> Option<&mut User> {
        if row == NO_USER { None } else { self.users.get_mut(row as usize) }
    }

    /// Notes that a call of the user failed on its connection, which ends its session.
    pub(crate) fn fail_session(&mut self, row: u32, source: &Source) {
        if let (Source::Open(_), Some(user)) = (source, self.user(row)) {
            user.failed = true;
            user.left = 0;
        }
    }

    /// Schedules `count` calls of the user for `at`.
    pub(crate) fn think(&mut self, at: Nanos, row: u32, count: u32) {
        self.users[row as usize].thinking += 1;
        if self.thinking.len() == self.thinking.capacity() {
            self.thinking.reserve_exact(room_for_more(self.thinking.len()));
        }
        self.thinking.push(Reverse((at, row, count)));
    }

    /// Delays every thinking user, starting with the earliest: `span` returns the delay for a
    /// user's row.
    pub(crate) fn postpone(&mut self, mut span: impl FnMut(u32) -> Nanos) {
        // sorted from the last to the first, because the heap is reversed
        let mut entries = std::mem::take(&mut self.thinking).into_sorted_vec();
        for Reverse((at, row, _)) in entries.iter_mut().rev() {
            *at += span(*row);
        }
        self.thinking = entries.into();
    }

    pub(crate) fn next_due(&self) -> Nanos {
        self.thinking.peek().map_or(Nanos::NEVER, |Reverse((at, ..))| *at)
    }

    pub(crate) fn pop_due_user(&mut self, now: Nanos) -> Option<(Nanos, u32, u32)> {
        if self.next_due() > now {
            return None;
        }
        let Reverse(entry) = self.thinking.pop()?;
        let user = &mut self.users[entry.1 as usize];
        // a user with simultaneous calls may leave before its alarms
        user.thinking = user.thinking.saturating_sub(1);
        Some(entry)
    }

    /// Returns the index of the next call of users; `None` when the worker's part of the count is
    /// done. Warm-up calls are counted separately from zero, and do not reduce that part.
    #[inline]
    pub(crate) fn next_index(&mut self, warm_up: bool) -> Option<u64> {
        let counter = if warm_up { &mut self.warm_calls } else { &mut self.calls };
        if !warm_up && *counter >= self.calls_max {
            return None;
        }
        let index = self.share.nth(*counter);
        *counter += 1;
        Some(index)
    }
}

impl Source {
    /// Returns the source of worker `worker`'s part of the load, and its users at the start.
    pub(crate) fn new(setup: &Setup, worker: u32) -> (Source, People) {
        let mut people = People::new(setup, worker);
        let source = match &setup.plan.load {
            Load::Closed { users, session: Some(session), .. } => {
                let turns = OpenSource::in_turn(setup, worker, *users, session.clone());
                Source::Open(Box::new(turns))
            }
            Load::Closed { users, think, session: None } => {
                let cookies = setup.plan.request.cookies;
                let population = Population::new(setup);
                for row in 0..setup.share(u64::from(*users), worker) {
                    let id = setup.part(worker).nth(row);
                    let first = match &population {
                        Some(all) => all.next(id, setup.start),
                        None => Some(setup.start),
                    };
                    let Some(first) = first else { continue };
                    let user = people.admit(id, u32::MAX, cookies);
                    people.think(first, user, lanes(setup));
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

    fn session(&self) -> Option<&SessionPlan> {
        match self {
            Source::Closed { .. } => None,
            Source::Open(open) => open.session.as_ref(),
        }
    }

    pub(crate) fn think(&self) -> Think {
        match self {
            Source::Closed { think } => *think,
            Source::Open(_) => self.session().map_or(Think::None, |session| session.think),
        }
    }

    /// Returns whether sessions follow visits: each group waits for the last response of the
    /// previous group.
    pub(crate) fn is_scripted(&self) -> bool {
        self.session().is_some_and(|session| !session.visits.is_empty())
    }

    /// Returns the maximum number of concurrent calls of a visit's group.
    pub(crate) fn parallel(&self) -> u32 {
        self.session().and_then(|session| session.parallel).unwrap_or(u32::MAX)
    }

    /// Returns whether the first call of a group is sent alone.
    pub(crate) fn sends_first_alone(&self) -> bool {
        self.session().is_some_and(|session| session.lead)
    }

    /// Returns whether each session walks the targets independently.
    pub(crate) fn has_own_order(&self) -> bool {
        self.session().is_some_and(|session| session.own_order)
    }

    /// Returns whether a failed call of the user will be retried.
    pub(crate) fn retries(&self, user: &User) -> bool {
        user.retries < RETRIES_MAX && self.session().is_some_and(|session| session.retry)
    }

    /// Notes that the user's connection no longer exists; this may end the user's session.
    pub(crate) fn connection_over(&self, user: &mut User) {
        if self.session().is_some_and(|session| session.one_connection) {
            user.left = 0;
        }
    }
}

fn with_jar() -> Box<UserExtras> {
    Box::new(UserExtras { jar: Some(Box::default()), ..UserExtras::default() })
}

/// Returns how many calls of one user are sent at once.
pub(crate) fn lanes(setup: &Setup) -> u32 {
    setup.plan.connection.group.unwrap_or(setup.plan.connection.pipeline).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;
    use conduit::Peer;
    use plan::Plan;
    use units::Rate;
    use workload::schedule::Gaps;

    fn setup(gaps: Gaps) -> Setup {
        let mut plan = Plan::for_url("http://a.example/".parse().unwrap());
        let arrivals = Arrivals { gaps, ..Arrivals::constant(Rate(1_000.0)) };
        plan.load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
        plan.stop.duration = Some(Nanos::from_secs(2));
        plan.stop.warm_up = Nanos::from_millis(300);
        let key = crate::endpoint_key(&plan.targets[0].url);
        let peers = vec![Peer::Unix("/a".into())];
        let endpoint = Endpoint { key, peers, tls_name: None, tunnel: None, absolute: false };
        Setup::new(plan, vec![endpoint], 4, Nanos::from_secs(7)).unwrap()
    }

    fn source(setup: &Setup, worker: u32) -> Box<OpenSource> {
        match Source::new(setup, worker).0 {
            Source::Open(open) => open,
            Source::Closed { .. } => panic!("a rate is not a closed loop"),
        }
    }

    fn rest(open: &mut OpenSource) -> Vec<Arrival> {
        std::iter::from_fn(|| Some(open.take()?.0)).collect()
    }

    #[test]
    fn a_part_that_is_taken_over_is_sent_once_and_in_order() {
        for gaps in [Gaps::Constant, Gaps::Poisson] {
            let setup = setup(gaps);
            let from = Nanos::from_millis(1_100);
            let cut = setup.start + from;
            let mut whole: Vec<Arrival> =
                (0..4).flat_map(|worker| rest(&mut source(&setup, worker))).collect();
            whole.sort_by_key(|arrival| arrival.index);
            let mut seen = Vec::new();
            for worker in 0..3 {
                let mut open = source(&setup, worker);
                // some of its sessions have ended before it takes over the other worker's
                seen.extend((0..40).filter_map(|_| Some(open.take()?.0)));
                if worker == 1 {
                    open.take_over(&setup, &LateShare { share: setup.part(3).clone(), from });
                }
                let rest = rest(&mut open);
                assert!(rest.is_sorted_by_key(|arrival| arrival.intended));
                seen.extend(rest);
            }
            let gone = rest(&mut source(&setup, 3));
            seen.extend(gone.into_iter().filter(|arrival| arrival.intended < cut));
            seen.sort_by_key(|arrival| arrival.index);
            assert_eq!(seen, whole, "{gaps:?}");
        }
    }

    #[test]
    fn a_stopped_source_takes_over_nothing() {
        let setup = setup(Gaps::Constant);
        let mut open = source(&setup, 0);
        open.stop();
        open.take_over(&setup, &LateShare { share: setup.part(3).clone(), from: Nanos::ZERO });
        assert_eq!(open.next_due(), Nanos::NEVER);
    }
}
