//! The path of siege's users through their URLs, as a guide of the engine's users.

use super::address::Address;
use super::config::Config;
use super::visitor::Visitor;
use sample::Note;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Nanos;
use workload::{CallEnd, Guide, Guides, Step};

/// State shared by all users.
#[derive(Clone, Debug)]
pub(super) struct Journey {
    pub(super) config: Config,
    pub(super) urls: Vec<Address>,
    /// Logins for the first requests of users, in turn.
    pub(super) logins: Vec<Address>,
    /// URLs requested if a page of the same host answers 403.
    pub(super) gates: Vec<Address>,
}

impl Journey {
    /// Returns the servers whose names are resolved before the run.
    pub(super) fn all(&self) -> impl Iterator<Item = &Address> {
        self.urls.iter().chain(&self.logins).chain(&self.gates)
    }
}

/// Guides of the journey.
#[derive(Debug)]
pub(super) struct Leaders(pub(super) Arc<Journey>);

impl Guides for Leaders {
    fn guide(&self) -> Box<dyn Guide> {
        Box::new(Leader { journey: self.0.clone(), visitors: BTreeMap::new(), failed: 0 })
    }
}

/// Users of one worker.
#[derive(Debug)]
struct Leader {
    journey: Arc<Journey>,
    visitors: BTreeMap<u64, Visitor>,
    /// Failed transactions of this worker's users.
    failed: u32,
}

impl Leader {
    /// Returns whether users leave at the end of their page, after this number of failures.
    fn given_up(&self) -> bool {
        let most = self.journey.config.failures;
        most > 0 && i64::from(self.failed) >= i64::from(most)
    }
}

impl Guide for Leader {
    fn keeps_bodies(&self) -> bool {
        self.journey.config.parser || self.journey.config.print
    }

    fn next(&mut self, user: u64, now: Nanos) -> Step {
        let given_up = self.given_up();
        let journey = &self.journey;
        let visitor = self.visitors.entry(user).or_insert_with(|| Visitor::new(journey, user));
        visitor.step(journey, now, given_up)
    }

    fn note_call_end(&mut self, user: u64, came: &CallEnd<'_>) -> Option<Note> {
        let visitor = self.visitors.get_mut(&user)?;
        let mut call_report = visitor.ended(&self.journey, came);
        self.failed = self.failed.saturating_add(call_report.failed);
        let given_up = self.given_up();
        let visitor = self.visitors.get_mut(&user)?;
        visitor.look_ahead(&self.journey, came.sample.done, given_up, &mut call_report.lines);
        Some(Note(Arc::new(call_report)))
    }
}
