//! A worker whose users are guided: each one's next call is decided by what came of the one before,
//! and may go to a place that the plan does not name. Where there is no guide, nothing of this is
//! touched.

use crate::Endpoint;
use crate::call::{Call, End};
use crate::setup::endpoint_key;
use crate::worker::Worker;
use conduit::{Io, Slot};
use sample::{FailureClass, Note, Outcome, Sample};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use units::Nanos;
use url::Url;
use workload::{Came, Errand, Guide, Step};

/// Finds the endpoints that a run meets on its way. It may take its time: the worker waits.
pub trait Directory: std::fmt::Debug + Send {
    /// `None`: the name has no address.
    fn endpoint(&mut self, url: &Url) -> Option<Endpoint>;
}

/// Endpoints that a worker meets beyond those of the plan, at most; calls to further ones fail.
const MET_MAX: usize = 1_000;

/// A worker's guide, and what its users are about to do.
#[derive(Debug)]
pub(crate) struct Guided {
    guide: Box<dyn Guide>,
    directory: Box<dyn Directory>,
    /// Endpoints that were met; `None`: it is nowhere.
    met: BTreeMap<String, Option<u32>>,
    /// By row of the user: the next call.
    errands: Vec<Option<Box<Errand>>>,
    /// The answer of the call that is being concluded.
    head: Vec<u8>,
    body: Vec<u8>,
    pub(crate) keeps_bodies: bool,
}

impl Worker {
    /// The same worker with its users guided. The load is a closed one without think times and
    /// sessions; each user stays until the guide lets it leave.
    #[must_use]
    pub fn with_guide(mut self, guide: Box<dyn Guide>, directory: Box<dyn Directory>) -> Worker {
        let keeps_bodies = guide.keeps_bodies();
        let mut guided = Box::new(Guided {
            guide,
            directory,
            met: BTreeMap::new(),
            errands: vec![None; self.people.users.len()],
            head: Vec::new(),
            body: Vec::new(),
            keeps_bodies,
        });
        let start = self.setup.start;
        let mut waits = VecDeque::new();
        for (row, user) in self.people.users.iter_mut().enumerate() {
            match guided.guide.next(user.id, start) {
                Step::Call(errand) => {
                    waits.push_back(errand.wait);
                    guided.errands[row] = Some(errand);
                }
                Step::Leave => {
                    waits.push_back(Nanos::ZERO);
                    user.left = 0;
                }
            }
        }
        // everyone is due at the start: the order is that of their rows
        self.people.put_off(|| waits.pop_front().unwrap_or(Nanos::ZERO));
        self.looks = self.looks || keeps_bodies;
        self.attended = true;
        self.one_by_one = false;
        self.guided = Some(guided);
        self
    }

    /// An answer is there: what the guide will want of it is kept.
    pub(crate) fn keep_for_guide(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot as usize];
        if let Some(guided) = &mut self.guided {
            guided.head.clear();
            guided.head.extend_from_slice(conn.reader.head());
            std::mem::swap(&mut guided.body, &mut conn.body);
            conn.body.clear();
        }
    }

    /// Tells the guide what came of a user's call.
    pub(crate) fn tell_guide(&mut self, sample: &Sample, outcome: Outcome) -> Option<Note> {
        let guided = self.guided.as_mut()?;
        let came = Came { sample, outcome, head: &guided.head, body: &guided.body };
        let note = sample.user.and_then(|user| guided.guide.ended(user, &came));
        guided.head.clear();
        guided.body.clear();
        note
    }

    /// The wait before the user's next call, which is kept until it is over; `None`: the user
    /// leaves.
    pub(crate) fn guided_pause(&mut self, user: u32, now: Nanos) -> Option<Nanos> {
        let id = self.people.users[user as usize].id;
        let guided = self.guided.as_mut()?;
        match guided.guide.next(id, now) {
            Step::Call(errand) => {
                let wait = errand.wait;
                guided.errands[user as usize] = Some(errand);
                Some(wait)
            }
            Step::Leave => {
                self.people.users[user as usize].left = 0;
                None
            }
        }
    }

    /// The guided user's call falls due.
    pub(crate) fn emit_errand<I: Io>(
        &mut self,
        io: &mut I,
        user: u32,
        intended: Nanos,
        now: Nanos,
    ) {
        let over = intended >= self.setup.measure_until() || self.stopping;
        let errand = self.guided.as_mut().and_then(|all| all.errands[user as usize].take());
        let index = self.people.next_index(self.recorder.in_warm_up(intended));
        let (Some(errand), Some(index), false) = (errand, index, over) else {
            return self.retire_if_idle(io, user, now);
        };
        let Errand { row, mut template, .. } = *errand;
        let person = &mut self.people.users[user as usize];
        person.outstanding += 1;
        person.turns += 1;
        let endpoint = self.met(&template.url);
        template.endpoint = endpoint.unwrap_or(0);
        let mut call = Call::new(index, row, user, intended, template.asked);
        call.detour = Some(Box::new(template));
        self.recorder.due(intended);
        match endpoint {
            Some(_) => self.place(io, call, now),
            None => self.conclude(io, call, End::failed(FailureClass::WorkloadEnd), now),
        }
    }

    /// The row of a URL's endpoint, which is looked for when it is met for the first time.
    fn met(&mut self, url: &Url) -> Option<u32> {
        let key = endpoint_key(url);
        if let Some(row) = self.setup.keys.get(&key) {
            return Some(*row);
        }
        let guided = self.guided.as_mut()?;
        if let Some(known) = guided.met.get(&key) {
            return *known;
        }
        if guided.met.len() >= MET_MAX {
            return None;
        }
        let found = guided.directory.endpoint(url).map(|endpoint| {
            self.endpoints.push(Arc::new(endpoint));
            self.ready.push(Vec::new());
            self.queues.push(VecDeque::new());
            self.address.push((0, false));
            self.endpoints.len() as u32 - 1
        });
        guided.met.insert(key, found);
        found
    }
}
