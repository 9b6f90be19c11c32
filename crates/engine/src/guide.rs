//! A guide of a worker's users: each one's next call is decided by what came of the one before, and
//! may go to a place that the plan does not name. Where there is no guide, nothing of this is
//! touched.

use crate::Endpoint;
use crate::setup::{Setup, endpoint_key};
use crate::source::{People, User};
use sample::{Note, Outcome, Sample};
use std::collections::{BTreeMap, VecDeque};
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
    /// The response to the call that is being concluded.
    head: Vec<u8>,
    body: Vec<u8>,
    keeps_bodies: bool,
}

impl Guided {
    /// Asks the guide for everyone's first call, which falls due after the guide's wait from `start`.
    pub(crate) fn new(
        mut guide: Box<dyn Guide>,
        directory: Box<dyn Directory>,
        people: &mut People,
        start: Nanos,
    ) -> Guided {
        let mut errands = vec![None; people.users.len()];
        let mut waits = VecDeque::new();
        for (user, errand) in people.users.iter_mut().zip(&mut errands) {
            match guide.next(user.id, start) {
                Step::Call(first) => {
                    waits.push_back(first.wait);
                    *errand = Some(first);
                }
                Step::Leave => {
                    waits.push_back(Nanos::ZERO);
                    user.left = 0;
                }
            }
        }
        // everyone is due at the start: the order is that of their rows
        people.put_off(|| waits.pop_front().unwrap_or(Nanos::ZERO));
        Guided {
            keeps_bodies: guide.keeps_bodies(),
            guide,
            directory,
            met: BTreeMap::new(),
            errands,
            head: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn keeps_bodies(&self) -> bool {
        self.keeps_bodies
    }

    /// The call that the user is about to make.
    pub(crate) fn take_errand(&mut self, user: u32) -> Option<Box<Errand>> {
        self.errands[user as usize].take()
    }

    /// A response is there: what the guide will want of it is kept.
    pub(crate) fn keep(&mut self, head: &[u8], body: impl FnOnce(&mut Vec<u8>)) {
        self.head.clear();
        self.head.extend_from_slice(head);
        self.body.clear();
        body(&mut self.body);
    }

    /// Tells the guide what came of a user's call.
    pub(crate) fn tell(&mut self, sample: &Sample, outcome: Outcome) -> Option<Note> {
        let came = Came { sample, outcome, head: &self.head, body: &self.body };
        let note = sample.user.and_then(|user| self.guide.ended(user, &came));
        self.head.clear();
        self.body.clear();
        note
    }

    /// The wait before the user's next call, which is kept until it is over; `None`: the user
    /// leaves.
    pub(crate) fn pause(&mut self, row: u32, user: &mut User, now: Nanos) -> Option<Nanos> {
        match self.guide.next(user.id, now) {
            Step::Call(errand) => {
                let wait = errand.wait;
                self.errands[row as usize] = Some(errand);
                Some(wait)
            }
            Step::Leave => {
                user.left = 0;
                None
            }
        }
    }

    /// The row of a URL's endpoint, which is looked for when it is met for the first time; `add`
    /// gives it a row.
    pub(crate) fn endpoint_of(
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
