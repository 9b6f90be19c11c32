//! Chooses the next step from the responses: the source of calls, their users, and the script or
//! guide that processes responses. The worker acts.

use crate::Endpoint;
use crate::call::{Call, NO_USER};
use crate::guide::{AnsweredCall, Directory, Guided};
use crate::proof::KnownChallenge;
use crate::script::Scripted;
use crate::setup::{LateShare, Setup};
use crate::source::{People, Population, Source, lanes};
use crate::token::TokenCopies;
use conduit::{Peer, Slot};
use plan::{Pace, Think};
use protocol::http1::fields;
use protocol::http1::response::Asked;
use sample::{FailureClass, Note, Outcome, Remark, Sample, SessionRecord};
use std::collections::VecDeque;
use std::sync::Arc;
use units::Nanos;
use url::Url;
use workload::{Guide, Script, Step, Template};

/// Defers the next call of a user whose call failed to a later turn: a server that refuses at once
/// must not receive a call from within its own refusal.
const NEXT_TURN: Nanos = Nanos(1);

#[derive(Debug)]
pub(crate) struct Feedback {
    setup: Arc<Setup>,
    source: Source,
    people: People,
    population: Option<Population>,
    /// Failed calls of sessions, to be retried.
    again: VecDeque<Call>,
    /// True if users make one call after another, without pauses, groups or visits.
    one_by_one: bool,
    script: Option<Box<Scripted>>,
    guided: Option<Box<Guided>>,
    /// A script or a guide processes each response.
    attended: bool,
    /// End of the measured phase.
    until: Nanos,
    /// Schedule of the calls of a session, if they fall due by the clock.
    pace: Option<Pace>,
    /// A failed call does not end its session.
    survives: bool,
    /// The login of calls without a user.
    login: KnownChallenge,
    tokens: Option<Box<TokenCopies>>,
}

/// An arrival of an open load.
#[derive(Debug)]
pub(crate) enum Arrived {
    Call(Call),
    /// `count` calls of a new session's user.
    Session {
        user: u32,
        count: u32,
        intended: Nanos,
    },
}

/// Finished call of a user, reduced to what determines the next step. Small, and passed by value,
/// so that the call itself need not be in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedCall {
    pub(crate) user: u32,
    pub(crate) target: u32,
    pub(crate) index: u64,
    /// No byte of the request was sent, because there was no connection.
    pub(crate) unopened: bool,
    pub(crate) outcome: Outcome,
    /// Status code; zero without a response.
    pub(crate) status: u16,
}

/// Due time of a user's next calls, after one has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This number of calls is due now.
    Now(u32),
    /// The user thinks until that instant.
    Later(Nanos),
    /// The user rests because the number of users decreases: until that instant, or forever.
    Rests(Option<Nanos>),
    /// The same call is due again, at the next check of due calls.
    Again,
    /// No call is due now, and perhaps never again.
    Nothing,
}

/// Role of a dropped call in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DroppedPart {
    /// The call has no session.
    Nothing,
    /// The call is the first of its session: none of its calls was made.
    All,
    Rest,
}

/// A departed user.
#[derive(Debug)]
pub(crate) struct Retired {
    /// For a session, its record, and its connections, which end with it.
    pub(crate) session: Option<(SessionRecord, Vec<Slot>)>,
}

impl Feedback {
    pub(crate) fn new(setup: &Arc<Setup>, worker: u32) -> Feedback {
        let (source, people) = Source::new(setup, worker);
        let session = setup.plan.load.session();
        let tokens = setup.tokens.clone();
        Feedback {
            tokens: tokens.map(|tokens| Box::new(TokenCopies::new(tokens, setup.parts()))),
            source,
            people,
            again: VecDeque::new(),
            one_by_one: one_by_one(setup),
            population: Population::new(setup),
            script: None,
            guided: None,
            attended: false,
            until: setup.measure_until(),
            pace: session.and_then(|session| session.pace.clone()),
            survives: session.is_some_and(|session| session.survives),
            login: None,
            setup: setup.clone(),
        }
    }

    /// Makes `script` the source of requests from now on.
    pub(crate) fn use_script(&mut self, script: Box<dyn Script>) {
        let mut scripted = Box::new(Scripted::new(script));
        if scripted.makes_pauses() && matches!(self.source, Source::Closed { .. }) {
            self.people.postpone(|_| scripted.pause());
        }
        self.script = Some(scripted);
        self.attended = true;
    }

    /// Makes a guide decide the users' steps from now on.
    pub(crate) fn set_guide(&mut self, guide: Box<dyn Guide>, directory: Box<dyn Directory>) {
        let guided = Guided::new(guide, directory, &mut self.people, self.setup.start);
        self.guided = Some(Box::new(guided));
        self.attended = true;
        self.one_by_one = false;
    }

    /// Takes over a part of the load; does nothing in a closed loop.
    pub(crate) fn take_over(&mut self, more: &LateShare) {
        if let Source::Open(open) = &mut self.source {
            open.take_over(&self.setup, more);
        }
    }

    /// Stops the load: nothing more falls due.
    pub(crate) fn stop(&mut self) {
        if let Source::Open(open) = &mut self.source {
            open.stop();
        }
    }

    /// Returns the next instant at which a call falls due; retried calls fall due `now`.
    pub(crate) fn next_due(&self, now: Nanos) -> Nanos {
        let again = if self.again.is_empty() { Nanos::NEVER } else { now };
        self.source.next_due().min(self.people.next_due()).min(again)
    }

    /// Returns the instant of the next arrival of an open load; `NEVER` in a closed one.
    pub(crate) fn next_arrival(&self) -> Nanos {
        self.source.next_due()
    }

    /// Returns whether no call will fall due and none is in progress.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.people.active == 0 && self.source.next_due() == Nanos::NEVER
    }

    /// Takes the next arrival of an open load.
    pub(crate) fn arrive(&mut self) -> Option<Arrived> {
        let Source::Open(open) = &mut self.source else { return None };
        let (arrival, content) = open.take()?;
        if open.session.is_some() {
            let cookies = self.setup.plan.request.cookies;
            let calls = self.setup.session_calls(arrival.index);
            let user = self.people.admit(arrival.index, calls, cookies);
            let person = &mut self.people.users[user as usize];
            person.started = arrival.intended;
            let count = match (&mut self.guided, self.pace.is_some()) {
                (Some(guided), _) => {
                    guided.begin(user, person, arrival.intended);
                    1
                }
                (None, true) => self.take_due_calls(user, arrival.intended),
                (None, false) => self.step(user).0,
            };
            return Some(Arrived::Session { user, count, intended: arrival.intended });
        }
        let row = self.setup.targets.pick(content)?;
        let asked = self.setup.targets.template(row).asked;
        Some(Arrived::Call(Call::new(arrival.index, row, NO_USER, arrival.intended, asked)))
    }

    /// Returns a user whose think time ends by `until`: the instant, the user, the calls.
    pub(crate) fn pop_due_user(&mut self, until: Nanos) -> Option<(Nanos, u32, u32)> {
        let (at, user, count) = self.people.pop_due_user(until)?;
        // without an end of the sessions the run is being stopped, and no further instant is needed
        let paced = self.pace.is_some() && until != Nanos::NEVER;
        Some((at, user, if paced { self.take_due_calls(user, at) } else { count }))
    }

    /// Returns how many calls of a session with a clock schedule may be sent at `now`, limited by
    /// its connection, and records its next instant.
    fn take_due_calls(&mut self, user: u32, now: Nanos) -> u32 {
        let Some(pace) = &self.pace else { return 0 };
        let person = &mut self.people.users[user as usize];
        let all = match person.left {
            u32::MAX => u64::MAX,
            left => person.turns + u64::from(left),
        };
        let fallen = pace.due_within(now - person.started).min(all);
        let room = lanes(&self.setup).saturating_sub(person.outstanding);
        let count = fallen.saturating_sub(person.turns).min(u64::from(room)) as u32;
        // without room the next response checks the clock, which avoids ticks without effect
        if fallen < all && person.thinking == 0 && count < room {
            let at = person.started + pace.offset(fallen);
            self.people.think(at, user, 0);
        }
        count
    }

    /// Returns a failed call to be retried.
    pub(crate) fn take_again(&mut self) -> Option<Call> {
        self.again.pop_front()
    }

    pub(crate) fn again_count(&self) -> usize {
        self.again.len()
    }

    /// Returns whether a guide chooses the next steps of the users.
    #[inline]
    pub(crate) fn is_guided(&self) -> bool {
        !self.one_by_one && self.guided.is_some()
    }

    /// Returns the user's next call, due at `intended`, and its endpoint; `None` without a further
    /// call.
    #[inline(always)]
    pub(crate) fn next_call(
        &mut self,
        user: u32,
        intended: Nanos,
        warm_up: bool,
    ) -> Option<(Call, u32)> {
        let closed = matches!(self.source, Source::Closed { .. });
        let left = self.people.users[user as usize].left;
        if left == 0 || (closed && intended >= self.until) {
            return None;
        }
        let index = self.people.next_index(warm_up)?;
        let (row, due) = if self.one_by_one {
            (self.setup.targets.pick(index)?, intended)
        } else {
            (self.row_of(user, index)?, self.due_of(user, intended))
        };
        let person = &mut self.people.users[user as usize];
        person.left = if left == u32::MAX { left } else { left - 1 };
        person.outstanding += 1;
        person.turns += 1;
        let template = self.setup.targets.template(row);
        let mut call = Call::new(index, row, user, due, template.asked);
        if due < intended {
            // until now the session's earlier calls caused the delay, not this client
            call.admitted = intended;
        }
        Some((call, template.endpoint))
    }

    /// Returns the guided user's call due at `intended`, with its index; `None` without a further
    /// call.
    pub(crate) fn next_step(
        &mut self,
        user: u32,
        intended: Nanos,
        warm_up: bool,
        stopping: bool,
    ) -> Option<(Step, u64)> {
        let closed = matches!(self.source, Source::Closed { .. });
        let next_call = self.guided.as_mut()?.take_step(user);
        let index = self.people.next_index(warm_up);
        if stopping || (closed && intended >= self.until) {
            return None;
        }
        let (next_call, index) = (next_call?, index?);
        let person = &mut self.people.users[user as usize];
        person.outstanding += 1;
        person.turns += 1;
        Some((next_call, index))
    }

    /// Returns whether users have several calls in flight.
    pub(crate) fn has_simultaneous_calls(&self) -> bool {
        self.guided.as_ref().is_some_and(|guided| guided.makes_simultaneous_calls())
    }

    /// Returns the next step of a user with simultaneous calls; `None` if it has left.
    pub(crate) fn next_simultaneous(&mut self, user: u32, now: Nanos) -> Option<Step> {
        let guided = self.guided.as_mut()?;
        let person = self.people.users.get_mut(user as usize).filter(|it| it.active)?;
        guided.end_alarm(user, now);
        Some(guided.next_simultaneous(user, person, now))
    }

    /// Begins a call of a user with simultaneous calls and returns its index.
    pub(crate) fn begin_simultaneous(&mut self, user: u32, warm_up: bool) -> Option<u64> {
        let index = self.people.next_index(warm_up)?;
        let person = self.people.users.get_mut(user as usize)?;
        person.outstanding += 1;
        person.turns += 1;
        Some(index)
    }

    /// Returns the connections on which a user with simultaneous calls may have calls in flight.
    pub(crate) fn connections_in_use(&mut self, user: u32) -> Vec<Slot> {
        let person = self.people.user(user);
        person.map_or_else(Vec::new, |it| it.conn.iter().chain(it.more()).copied().collect())
    }

    /// Passes a part of the response to an open call to the guide.
    pub(crate) fn pass_part(&mut self, user: u32, lane: u32, body: &[u8]) {
        let id = self.user_id(user);
        if let (Some(guided), Some(id)) = (&mut self.guided, id) {
            guided.part(id, lane, body);
        }
    }

    /// Schedules a query for the user's next step at `at`. Returns false if an earlier one is
    /// scheduled.
    pub(crate) fn ask_simultaneous(&mut self, user: u32, at: Nanos) -> bool {
        let needed = self.guided.as_mut().is_some_and(|guided| guided.needs_alarm(user, at));
        if needed {
            self.people.think(at, user, 1);
        }
        needed
    }

    /// Ends a pause of a guided user: asks the guide for the next step. `None` if the user has a
    /// call to make, or nothing to do.
    pub(crate) fn finish_pause(&mut self, user: u32, now: Nanos) -> Option<Next> {
        let guided = self.guided.as_mut()?;
        if !guided.take_pause(user) {
            return None;
        }
        let person = self.people.users.get_mut(user as usize)?;
        match guided.pause(user, person, now) {
            Some(wait) if wait.is_zero() => Some(Next::Now(1)),
            Some(wait) => {
                self.people.think(now + wait, user, 1);
                Some(Next::Later(now + wait))
            }
            None => Some(Next::Nothing),
        }
    }

    /// Returns the row of the endpoint for a guided user's call. A new endpoint is looked up, and
    /// `add` gives it a row.
    pub(crate) fn endpoint_of(
        &mut self,
        url: &Arc<Url>,
        add: impl FnOnce(Endpoint) -> u32,
    ) -> Option<u32> {
        self.guided.as_mut()?.endpoint_of(url, &self.setup, add)
    }

    /// Returns the row of the target list for the user's next call.
    fn row_of(&self, user: u32, index: u64) -> Option<u32> {
        let person = &self.people.users[user as usize];
        match self.setup.script(person.id, person.turns) {
            Some(step) => Some(step.target),
            None if self.source.has_own_order() => self.setup.targets.pick(person.turns),
            None => self.setup.targets.pick(index),
        }
    }

    /// Returns when the user's next call falls due: by the clock if so configured, else at
    /// `intended`.
    fn due_of(&self, user: u32, intended: Nanos) -> Nanos {
        let person = &self.people.users[user as usize];
        self.pace.as_ref().map_or(intended, |pace| person.started + pace.offset(person.turns))
    }

    /// Returns how many calls the user makes next, and the pause before them.
    fn step(&self, user: u32) -> (u32, Nanos) {
        let person = &self.people.users[user as usize];
        if let Some(step) = self.setup.script(person.id, person.turns) {
            let lead = step.first && self.source.sends_first_alone();
            let room = self.source.parallel().saturating_sub(person.outstanding);
            return (if lead { 1 } else { step.rest.min(room) }, step.pause);
        }
        let think = || match self.source.think() {
            Think::None => Nanos::ZERO,
            think => think.pause(self.setup.seed, person.id, person.turns),
        };
        if self.setup.plan.connection.group.is_none() {
            let first = if person.turns == 0 { lanes(&self.setup) } else { 1 };
            return (first.min(person.left), think());
        }
        let group = u64::from(lanes(&self.setup));
        let into = person.turns % group;
        if into > 0 {
            // the response to the first call of the group has arrived: the rest of the group
            // follows at once
            return (((group - into) as u32).min(person.left), Nanos::ZERO);
        }
        let count = if self.source.sends_first_alone() { 1 } else { group as u32 };
        (count.min(person.left), think())
    }

    /// Handles the end of a user's call whose next call is due at once. Returns false if it did
    /// nothing; then [`Feedback::follow`] decides.
    #[inline(always)]
    pub(crate) fn continues(&mut self, ended: &EndedCall) -> bool {
        let simply = self.one_by_one && !self.attended && ended.outcome == Outcome::Succeeded;
        if simply {
            let person = &mut self.people.users[ended.user as usize];
            person.responses += 1;
            person.outstanding -= 1;
        }
        simply
    }

    /// Handles the end of a user's call: decides when the next one is due. `warm_up`: a call that
    /// is due now belongs to the warm-up.
    pub(crate) fn follow(&mut self, ended: EndedCall, warm_up: bool, now: Nanos) -> Next {
        let user = ended.user;
        let closed = matches!(self.source, Source::Closed { .. });
        let group = self.setup.plan.connection.group;
        let failed = ended.outcome != Outcome::Succeeded;
        let Some(person) = self.people.user(user) else { return Next::Nothing };
        person.responses += u32::from(ended.status != 0);
        if failed && ended.outcome == Outcome::Failed && self.source.retries(person) {
            person.retries += 1;
            self.repeat(ended, warm_up, now);
            return Next::Again;
        }
        person.outstanding -= 1;
        let survived = self.survives && ended.outcome == Outcome::Failed;
        if failed && !closed && !survived {
            person.failed = true;
            // a guide decides the next step itself
            person.left = if self.guided.is_some() { person.left } else { 0 };
        }
        let unanswered = failed && ended.status == 0 && (closed || survived);
        let least = match (unanswered, ended.unopened) {
            (false, _) => Nanos::ZERO,
            (true, false) => NEXT_TURN,
            (true, true) => self.setup.plan.connection.reconnect_pause.max(NEXT_TURN),
        };
        if self.pace.is_some() {
            if unanswered && person.left > 0 {
                self.people.think(now + least, user, 0);
                return Next::Later(now + least);
            }
            return match self.take_due_calls(user, now) {
                0 => Next::Nothing,
                count => Next::Now(count),
            };
        }
        let Some(person) = self.people.user(user) else { return Next::Nothing };
        // in a group with calls left, each call that ends starts the next one
        let within = self.source.parallel() != u32::MAX
            && self.setup.script(person.id, person.turns).is_some_and(|step| !step.first);
        let whole_group =
            (group.is_none() && !self.source.is_scripted()) || person.outstanding == 0 || within;
        if person.left == 0 || !whole_group {
            return Next::Nothing;
        }
        let (count, mut pause) = if self.one_by_one {
            (1, Nanos::ZERO)
        } else if let Some(guided) = &mut self.guided {
            if guided.makes_simultaneous_calls() {
                return self.follow_simultaneous(user, least, now);
            }
            match guided.pause(user, person, now) {
                Some(wait) => (1, wait),
                None => return Next::Nothing,
            }
        } else {
            self.step(user)
        };
        if closed && let Some(script) = &mut self.script {
            pause = pause.max(script.pause());
        }
        pause = pause.max(least);
        if let Some(rest) = self.rest(user, count, now + pause) {
            return rest;
        }
        if pause.is_zero() {
            return Next::Now(count);
        }
        self.people.think(now + pause, user, count);
        Next::Later(now + pause)
    }

    /// Handles the end of one of the simultaneous calls of a user: its guide decides the next one,
    /// at least `least` after now.
    fn follow_simultaneous(&mut self, user: u32, least: Nanos, now: Nanos) -> Next {
        if least.is_zero() {
            return Next::Now(1);
        }
        let at = now + least;
        self.ask_simultaneous(user, at);
        Next::Later(at)
    }

    /// Handles a user whose next calls would fall due at `at`, while the number of users decreases.
    fn rest(&mut self, user: u32, count: u32, at: Nanos) -> Option<Next> {
        let population = self.population.as_ref()?;
        let back = population.next(self.people.users[user as usize].id, at);
        if back == Some(at) {
            return None;
        }
        if let Some(back) = back {
            self.people.think(back, user, count);
        }
        Some(Next::Rests(back))
    }

    /// Schedules a session's failed call for the next check of due calls: a server that refuses at
    /// once must not receive a call from within its own refusal. The call stays outstanding.
    fn repeat(&mut self, ended: EndedCall, warm_up: bool, now: Nanos) {
        let index = self.people.next_index(warm_up).unwrap_or(ended.index);
        let asked = self.setup.targets.template(ended.target).asked;
        self.again.push_back(Call::new(index, ended.target, ended.user, now, asked));
    }
}

/// Users and sessions: which continue, which leave, and on which connection.
impl Feedback {
    /// Returns whether the user has no outstanding call.
    #[inline]
    pub(crate) fn is_idle(&self, user: u32) -> bool {
        self.people.users[user as usize].outstanding == 0
    }

    /// Removes a user with no outstanding and no due call.
    pub(crate) fn retire_if_idle(&mut self, user: u32, now: Nanos) -> Option<Retired> {
        let person = &mut self.people.users[user as usize];
        if !person.active || person.outstanding + person.thinking > 0 {
            return None;
        }
        let more = person.belongings.as_mut().map(|own| std::mem::take(&mut own.more));
        let sockets = person.belongings.as_mut().map(|own| std::mem::take(&mut own.sockets));
        let (first, mut conns) = (person.conn.take(), more.unwrap_or_default());
        conns.extend(sockets.into_iter().flatten().map(|(_, slot)| slot));
        let mut session = None;
        if let Source::Open(open) = &mut self.source {
            open.session_over(now);
            if let Some(slot) = first {
                conns.insert(0, slot);
            }
            session = Some((person.record(now), conns));
        }
        self.people.retire(user);
        Some(Retired { session })
    }

    /// Notes that a call of the user was dropped, which ends its session.
    pub(crate) fn drop_call(&mut self, user: u32) -> DroppedPart {
        let Some(person) = self.people.user(user) else { return DroppedPart::Nothing };
        person.outstanding -= 1;
        person.left = 0;
        person.failed = true;
        if person.turns == 1 && person.outstanding == 0 {
            self.people.retire(user);
            return DroppedPart::All;
        }
        DroppedPart::Rest
    }

    /// Notes that a call of the user failed on its connection, which ends its session.
    pub(crate) fn fail_session(&mut self, user: u32) {
        if self.guided.is_none() {
            self.people.fail_session(user, &self.source);
        }
    }

    /// Like [`Feedback::fail_session`], unless the call will be retried or its session survives.
    pub(crate) fn fail_session_unless_repeated(&mut self, user: u32) {
        if let Some(person) = self.people.user(user)
            && !self.survives
            && !self.source.retries(person)
        {
            self.fail_session(user);
        }
    }

    pub(crate) fn has_failed(&mut self, user: u32) -> bool {
        // an earlier failure does not fail the next call of a guided user
        self.guided.is_none() && self.people.user(user).is_some_and(|person| person.failed)
    }

    /// Returns the user's number across all workers; `None` without a user.
    pub(crate) fn user_id(&mut self, user: u32) -> Option<u64> {
        self.people.user(user).map(|person| person.id)
    }

    /// Returns the value of Authorization with the token of the user's calls.
    pub(crate) fn token(&mut self, user: u32) -> Option<&str> {
        let id = self.user_id(user);
        self.tokens.as_mut()?.authorization(id)
    }

    /// Notes that the server refuses the token of a call sent at this instant.
    pub(crate) fn refuse_token(&mut self, user: u32, sent: Nanos, now: Nanos) {
        let id = self.user_id(user);
        if let Some(tokens) = &self.tokens {
            tokens.refuse(id, sent, now);
        }
    }

    /// Returns the connection that carries the user's calls.
    #[inline]
    pub(crate) fn connection_of(&mut self, user: u32) -> Option<Slot> {
        self.people.user(user)?.conn
    }

    /// Returns the user's further connections.
    pub(crate) fn further_connections_of(&mut self, user: u32) -> &[Slot] {
        self.people.user(user).map_or(&[], |person| person.more())
    }

    /// Records that a connection was opened for the user; `several`: in addition to existing ones.
    pub(crate) fn give_connection(&mut self, user: u32, slot: Slot, several: bool) {
        if let Some(person) = self.people.user(user) {
            person.connections += 1;
            match person.conn {
                Some(_) if several => person.own().more.push(slot),
                _ => person.conn = Some(slot),
            }
        }
    }

    /// Records that a step of the user's journey opened the WebSocket with this number.
    pub(crate) fn give_socket(&mut self, user: u32, number: u32, slot: Slot) {
        if let Some(person) = self.people.user(user) {
            person.connections += 1;
            let sockets = &mut person.own().sockets;
            sockets.retain(|(known, _)| *known != number);
            sockets.push((number, slot));
        }
    }

    /// Returns the user's WebSocket with this number.
    pub(crate) fn socket_of(&mut self, user: u32, number: u32) -> Option<Slot> {
        let sockets = &self.people.user(user)?.belongings.as_ref()?.sockets;
        sockets.iter().find(|(known, _)| *known == number).map(|(_, slot)| *slot)
    }

    /// Separates the user from the connection, which continues.
    pub(crate) fn part_from_connection(&mut self, user: u32) {
        if let Some(person) = self.people.user(user) {
            person.conn = None;
        }
    }

    /// Returns the connections of a user with nothing outstanding.
    pub(crate) fn connections_at_rest(&mut self, user: u32) -> Vec<Slot> {
        let Some(person) = self.people.user(user).filter(|person| person.outstanding == 0) else {
            return Vec::new();
        };
        let own = person.belongings.as_ref();
        let sockets = own.into_iter().flat_map(|own| &own.sockets).map(|(_, slot)| *slot);
        person.conn.iter().chain(person.more()).copied().chain(sockets).collect()
    }

    /// Passes the last messages of a user's WebSocket to the guide.
    pub(crate) fn end_socket(&mut self, user: u32, slot: Slot, left: Vec<Vec<u8>>) {
        let Some(person) = self.people.user(user) else { return };
        let own = person.belongings.as_ref();
        let sockets = own.map_or(&[][..], |own| &own.sockets);
        let number = sockets.iter().find(|(_, known)| *known == slot).map(|(number, _)| *number);
        if let (Some(guided), Some(number)) = (&mut self.guided, number) {
            guided.end_socket(person.id, number, left);
        }
    }

    /// Notes that the user's connection no longer exists.
    pub(crate) fn lose_connection(&mut self, user: u32, slot: Slot) {
        let Some(person) = self.people.user(user) else { return };
        if person.conn == Some(slot) {
            person.conn = person.belongings.as_mut().and_then(|own| own.more.pop());
            self.source.connection_over(person);
        } else if let Some(own) = &mut person.belongings {
            own.more.retain(|other| *other != slot);
            own.sockets.retain(|(_, other)| *other != slot);
        }
    }

    /// Records that the user has no connection, or that its connection accepts no further calls.
    /// This may end the session.
    pub(crate) fn end_with_connection(&mut self, user: u32) {
        if let Some(person) = self.people.user(user) {
            self.source.connection_over(person);
        }
    }

    /// Returns the value of the Cookie field that the user sends to `url`.
    pub(crate) fn cookie(&self, user: u32, template: &Template) -> Option<String> {
        let own = self.people.users.get(user as usize)?.belongings.as_ref()?;
        match &own.cookie {
            Some(last) => Some(last.to_string()),
            None => own.jar.as_ref().filter(|jar| jar.is_used())?.header(template.url()),
        }
    }

    /// Returns the latest login challenge from the server to this user, or to all calls without a
    /// user.
    pub(crate) fn login_of(&mut self, user: u32) -> &mut KnownChallenge {
        match self.people.users.get_mut(user as usize) {
            Some(person) => &mut person.own().login,
            None => &mut self.login,
        }
    }

    /// Adds the cookies of a response's head to the user's jar.
    pub(crate) fn take_cookies(&mut self, user: u32, from: &Template, head: &[u8]) {
        let last_alone = self.setup.plan.request.last_cookie;
        let Some(person) = self.people.user(user) else { return };
        if last_alone && let Some(value) = fields::set_cookies(head).last() {
            let pair = value.split(|byte| *byte == b';').next().unwrap_or_default();
            person.own().cookie = Some(String::from_utf8_lossy(pair).trim().into());
        } else if let Some(jar) = person.belongings.as_mut().and_then(|own| own.jar.as_mut()) {
            for value in fields::set_cookies(head) {
                jar.absorb(from.url(), value);
            }
        }
    }
}

/// The script's and the guide's part.
impl Feedback {
    #[inline]
    pub(crate) fn is_attended(&self) -> bool {
        self.attended
    }

    #[inline]
    pub(crate) fn is_scripted(&self) -> bool {
        self.script.is_some()
    }

    /// Appends the script's next request to `out`; returns its kind, and the number of responses.
    pub(crate) fn scripted_request(&mut self, out: &mut Vec<u8>) -> (Asked, u16) {
        self.script.as_mut().map_or((Asked::Ordinary, 1), |script| script.request(out))
    }

    /// Returns the address that the script chose for the next connection.
    pub(crate) fn scripted_peer(&mut self) -> Option<Peer> {
        self.script.as_mut()?.peer()
    }

    /// Returns the script's error, once.
    pub(crate) fn script_failure(&mut self) -> Option<String> {
        self.script.as_mut()?.take_failure()
    }

    /// Returns whether a script or a guide needs bodies.
    pub(crate) fn wants_bodies(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.wants_responses())
            || self.guided.as_ref().is_some_and(|guided| guided.keeps_bodies())
    }

    pub(crate) fn wants_heads(&self) -> bool {
        self.wants_bodies() || self.guided.is_some()
    }

    /// Passes a response to the script. Returns true if the script ends the run.
    pub(crate) fn show_script(&mut self, status: u16, head: &[u8], body: &[u8]) -> bool {
        let Some(script) = &mut self.script else { return false };
        script.take_response(status, head, body);
        script.stopped()
    }

    /// Keeps a response for the guide, until its call is concluded.
    pub(crate) fn keep_for_guide(&mut self, head: &[u8], body: impl FnOnce(&mut Vec<u8>)) {
        if let Some(guided) = &mut self.guided {
            guided.keep(head, body);
        }
    }

    /// Keeps the trailers, which follow the head.
    pub(crate) fn keep_trailers(&mut self, trailers: &[u8]) {
        if let Some(guided) = &mut self.guided {
            guided.keep_trailers(trailers);
        }
    }

    /// Returns whether a guide is notified of each call's end.
    pub(crate) fn is_attended_to_the_end(&self) -> bool {
        self.guided.as_ref().is_some_and(|guided| guided.sees_every_response())
    }

    /// Returns whether the run ends with the last user.
    pub(crate) fn ends_with_its_users(&self) -> bool {
        self.guided.as_ref().is_some_and(|guided| guided.ends_with_its_users())
            && matches!(self.source, Source::Closed { .. })
    }

    /// Returns the failure of a response as judged by the guide; `planned`: as judged by the plan.
    pub(crate) fn judge_by_guide(
        &mut self,
        user: u32,
        seen: &AnsweredCall,
        planned: Option<FailureClass>,
    ) -> Option<FailureClass> {
        let id = self.user_id(user);
        match (&mut self.guided, id) {
            (Some(guided), Some(id)) => guided.judge(id, seen, planned),
            _ => planned,
        }
    }

    /// Adds the values that the user captured or took from a feeder.
    pub(crate) fn add_secrets(&mut self, user: u32, add: &mut dyn FnMut(&str)) {
        let id = self.user_id(user);
        if let (Some(guided), Some(id)) = (&self.guided, id) {
            guided.add_secrets(id, add);
        }
    }

    /// Collects the observations of the guide since the last call.
    pub(crate) fn collect_remarks(&mut self, take: &mut dyn FnMut(Remark)) {
        if let Some(guided) = &mut self.guided {
            guided.collect_remarks(take);
        }
    }

    /// Returns the request of a call that has ended to the guide.
    pub(crate) fn recycle(&mut self, template: Box<Template>) {
        if let Some(guided) = &mut self.guided {
            guided.take_back(template);
        }
    }

    /// Notifies the guide of the end of a user's call.
    pub(crate) fn notify_guide(
        &mut self,
        sample: &Sample,
        outcome: Outcome,
        lane: u32,
    ) -> Option<Note> {
        self.guided.as_mut()?.report(sample, outcome, lane)
    }
}

/// Returns whether the users of a closed loop only make one call after another.
fn one_by_one(setup: &Setup) -> bool {
    let plain = |think: &Think, session: &Option<plan::SessionPlan>| {
        *think == Think::None && session.is_none() && setup.plan.connection.group.is_none()
    };
    setup.plan.stages.is_none()
        && matches!(&setup.plan.load, plan::Load::Closed { think, session, .. } if plain(think, session))
}
