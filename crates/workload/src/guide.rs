//! Users who decide what they ask for next from what came of it before: pages and their parts,
//! redirects, logins, caches. The engine knows this contract only; who keeps it lives above.

use crate::Template;
use sample::{Note, Outcome, Sample};
use units::Nanos;

/// What a user does next.
#[derive(Clone, Debug)]
pub enum Step {
    Call(Box<Errand>),
    /// The user makes no more calls.
    Leave,
}

/// A call that a guide wants made.
#[derive(Clone, Debug)]
pub struct Errand {
    /// How long the user waits before it.
    pub wait: Nanos,
    /// Row of the target list that it counts for.
    pub row: u32,
    /// The request. Which endpoint it goes to is found by its URL.
    pub template: Template,
}

/// What came of a user's call.
#[derive(Clone, Copy, Debug)]
pub struct Came<'a> {
    pub sample: &'a Sample,
    pub outcome: Outcome,
    /// The answer's head and body as they came; empty where there was no whole answer. The body is
    /// empty too unless the guide [keeps bodies](Guide::keeps_bodies), and is cut off at 16 MiB.
    pub head: &'a [u8],
    pub body: &'a [u8],
}

/// The users of one worker. Users are known by their numbers across all workers.
pub trait Guide: std::fmt::Debug + Send {
    /// It wants to see bodies; asked once, before the run.
    fn keeps_bodies(&self) -> bool;

    /// What the user does next. `now` is on the clock of samples.
    fn next(&mut self, user: u64, now: Nanos) -> Step;

    /// A call of the user has ended. The note goes into its record.
    fn ended(&mut self, user: u64, came: &Came<'_>) -> Option<Note>;
}

/// Makes the guides of a run.
pub trait Guides: std::fmt::Debug {
    /// The guide of the users of one worker.
    fn guide(&self) -> Box<dyn Guide>;
}
