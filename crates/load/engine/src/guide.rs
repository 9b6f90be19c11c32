//! The guide of a worker's users: each next call depends on the previous response, and may use a
//! server that the plan does not name. Not used without a guide.

use crate::Endpoint;
use crate::setup::{Setup, endpoint_key};
use crate::source::{People, User};
use sample::{FailureClass, Note, Outcome, Remark, Sample};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Nanos;
use url::Url;
use workload::{CallEnd, Guide, Step, Template, WholeResponse};

/// Resolves endpoints during a run. It may block: the worker waits.
pub trait Directory: std::fmt::Debug + Send {
    /// Returns `None` if the name has no address.
    fn endpoint(&mut self, url: &Url) -> Option<Endpoint>;
}

/// An answered call that will be judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnsweredCall {
    /// Row of the target list.
    pub(crate) row: u32,
    pub(crate) status: u16,
    /// Time from the first byte of the request to the end of the response.
    pub(crate) took: Nanos,
    pub(crate) now: Nanos,
}

/// Maximum number of endpoints that a worker discovers beyond those of the plan; calls to any more
/// fail.
const MET_MAX: usize = 1_000;

/// A worker's guide, and the next actions of its users.
#[derive(Debug)]
pub(crate) struct Guided {
    guide: Box<dyn Guide>,
    directory: Box<dyn Directory>,
    /// Discovered endpoints; `None` if the name cannot be resolved.
    met: BTreeMap<String, Option<u32>>,
    /// The last URL looked up, with the result.
    last_met: Option<(Arc<Url>, Option<u32>)>,
    /// The next call of each user, by the user's row.
    next_calls: Vec<Option<Step>>,
    /// Head of the response to the call that has just ended.
    head: Vec<u8>,
    body: Vec<u8>,
    keeps_bodies: bool,
    sees_every_response: bool,
    ends_with_its_users: bool,
    /// Instants at which a guide with simultaneous calls is queried, by row of the user. `None` if
    /// users make one call at a time.
    alarms: Option<Vec<Alarms>>,
}

/// Instants at which the guide is queried for a user's next step, the earliest last.
type Alarms = Vec<Nanos>;

/// Returns the wait before a step, or `None` if there is no further step.
fn wait_of(step: &Step) -> Option<Nanos> {
    match step {
        Step::Call(next_call) => Some(next_call.wait),
        Step::Target { wait, .. } | Step::Pause { wait } => Some(*wait),
        Step::Extend { .. }
        | Step::Cancel { .. }
        | Step::Await
        | Step::Disconnect
        | Step::Leave => None,
    }
}

impl Guided {
    /// Asks the guide for the first call of every user, which falls due after the guide's wait from
    /// `start`.
    pub(crate) fn new(
        mut guide: Box<dyn Guide>,
        directory: Box<dyn Directory>,
        people: &mut People,
        start: Nanos,
    ) -> Guided {
        let mut next_calls = vec![None; people.users.len()];
        let alarms =
            guide.makes_simultaneous_calls().then(|| vec![Alarms::new(); people.users.len()]);
        let mut waits = Vec::with_capacity(people.users.len());
        for (user, next_call) in people.users.iter_mut().zip(&mut next_calls) {
            let first = guide.next(user.id, start);
            let wait = wait_of(&first);
            waits.push(wait.unwrap_or(Nanos::ZERO));
            if wait.is_some() {
                *next_call = Some(first);
            } else {
                user.left = 0;
            }
        }
        people.postpone(|row| waits.get(row as usize).copied().unwrap_or(Nanos::ZERO));
        Guided {
            keeps_bodies: guide.keeps_bodies(),
            sees_every_response: guide.sees_every_response(),
            ends_with_its_users: guide.ends_with_its_users(),
            guide,
            alarms,
            directory,
            met: BTreeMap::new(),
            last_met: None,
            next_calls,
            head: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn keeps_bodies(&self) -> bool {
        self.keeps_bodies
    }

    pub(crate) fn sees_every_response(&self) -> bool {
        self.sees_every_response
    }

    pub(crate) fn ends_with_its_users(&self) -> bool {
        self.ends_with_its_users
    }

    pub(crate) fn makes_simultaneous_calls(&self) -> bool {
        self.alarms.is_some()
    }

    /// Returns the next step of a user with simultaneous calls.
    pub(crate) fn next_simultaneous(&mut self, row: u32, user: &mut User, now: Nanos) -> Step {
        // a pause of the start is over
        let first = self.take_step(row).filter(|step| !matches!(step, Step::Pause { .. }));
        let step = first.unwrap_or_else(|| self.guide.next(user.id, now));
        if matches!(step, Step::Leave) {
            user.left = 0;
            // alarms that are still set do not keep it
            user.thinking = 0;
        }
        step
    }

    /// Passes a part of a response to the guide.
    pub(crate) fn part(&mut self, user: u64, lane: u32, body: &[u8]) {
        self.guide.part(user, lane, body);
    }

    /// Removes the user's alarms that have expired.
    pub(crate) fn end_alarm(&mut self, row: u32, now: Nanos) {
        if let Some(alarms) = self.alarms.as_mut().and_then(|all| all.get_mut(row as usize)) {
            alarms.retain(|at| *at > now);
        }
    }

    /// Returns whether an alarm must be set to query the guide for the user at `at`.
    pub(crate) fn needs_alarm(&mut self, row: u32, at: Nanos) -> bool {
        let alarms = self.alarms.as_mut().and_then(|all| all.get_mut(row as usize));
        let Some(alarms) = alarms else { return true };
        if alarms.last().is_some_and(|earliest| *earliest <= at) {
            return false;
        }
        alarms.push(at);
        true
    }

    /// Returns the next call of the user.
    pub(crate) fn take_step(&mut self, user: u32) -> Option<Step> {
        self.next_calls.get_mut(user as usize)?.take()
    }

    /// Takes the user's next step if it is a pause that has just ended; returns whether it was one.
    pub(crate) fn take_pause(&mut self, user: u32) -> bool {
        let next_call = self.next_calls.get_mut(user as usize);
        next_call.is_some_and(|next_call| {
            next_call.take_if(|it| matches!(it, Step::Pause { .. })).is_some()
        })
    }

    /// Handles the arrival of a user, whose first call is due at once.
    pub(crate) fn begin(&mut self, row: u32, user: &mut User, now: Nanos) {
        let count = self.next_calls.len().max(row as usize + 1);
        self.next_calls.resize(count, None);
        let first = self.guide.next(user.id, now);
        let next_call = &mut self.next_calls[row as usize];
        *next_call = Some(first).filter(|first| wait_of(first).is_some());
        if next_call.is_none() {
            user.left = 0;
        }
    }

    /// Returns the failure of the kept response; `planned`: as judged by the plan.
    pub(crate) fn judge(
        &mut self,
        user: u64,
        seen: &AnsweredCall,
        planned: Option<FailureClass>,
    ) -> Option<FailureClass> {
        let AnsweredCall { row, status, took, now } = *seen;
        let (head, body) = (&self.head[..], &self.body[..]);
        self.guide.judge(user, &WholeResponse { row, status, head, body, took, now }, planned)
    }

    /// Adds the values that the user captured or took from a feeder.
    pub(crate) fn add_secrets(&self, user: u64, add: &mut dyn FnMut(&str)) {
        self.guide.secrets(user, add);
    }

    /// Collects the observations of the guide since the last call.
    pub(crate) fn collect_remarks(&mut self, take: &mut dyn FnMut(Remark)) {
        self.guide.report(take);
    }

    /// Keeps the data of a response that the guide needs.
    pub(crate) fn keep(&mut self, head: &[u8], body: impl FnOnce(&mut Vec<u8>)) {
        self.head.clear();
        self.head.extend_from_slice(head);
        self.body.clear();
        body(&mut self.body);
    }

    /// Keeps trailers after the head.
    pub(crate) fn keep_trailers(&mut self, trailers: &[u8]) {
        self.head.extend_from_slice(trailers);
    }

    /// Notifies the guide of the end of a user's call.
    pub(crate) fn report(&mut self, sample: &Sample, outcome: Outcome, lane: u32) -> Option<Note> {
        let came = CallEnd { sample, outcome, head: &self.head, body: &self.body, lane };
        let note = sample.user.and_then(|user| self.guide.note_call_end(user, &came));
        self.head.clear();
        self.body.clear();
        note
    }

    /// Handles the end of a user's WebSocket, for which these messages wait for a call.
    pub(crate) fn end_socket(&mut self, user: u64, socket: u32, left: Vec<Vec<u8>>) {
        self.guide.socket_ended(user, socket, left);
    }

    /// Returns the request of a call that has ended to the guide.
    pub(crate) fn take_back(&mut self, template: Box<Template>) {
        self.guide.take_back(template);
    }

    /// Returns the wait before the user's next call, which is kept until it is over; `None` if the
    /// user leaves.
    pub(crate) fn pause(&mut self, row: u32, user: &mut User, now: Nanos) -> Option<Nanos> {
        let next = self.guide.next(user.id, now);
        let wait = wait_of(&next);
        match wait {
            Some(_) => self.next_calls[row as usize] = Some(next),
            None => user.left = 0,
        }
        wait
    }

    /// Returns the row of a URL's endpoint, which is looked up on first use; `add` gives it a row.
    pub(crate) fn endpoint_of(
        &mut self,
        url: &Arc<Url>,
        setup: &Setup,
        add: impl FnOnce(Endpoint) -> u32,
    ) -> Option<u32> {
        // the requests of a step share one URL
        if let Some((last, row)) = &self.last_met
            && Arc::ptr_eq(last, url)
        {
            return *row;
        }
        let row = self.looked_up(url, setup, add);
        self.last_met = Some((url.clone(), row));
        row
    }

    fn looked_up(
        &mut self,
        url: &Url,
        setup: &Setup,
        add: impl FnOnce(Endpoint) -> u32,
    ) -> Option<u32> {
        let key = endpoint_key(url);
        if let Some(row) = setup.keys.get(&key) {
            return Some(*row);
        }
        if let Some(known) = self.met.get(&key) {
            return *known;
        }
        if self.met.len() >= MET_MAX {
            return None;
        }
        let found = self.directory.endpoint(url).map(add);
        self.met.insert(key, found);
        found
    }
}
