//! Journeys carried out by a program of the user's: what is asked of it, one call after the other.
//! The engine knows this contract only; who keeps it lives in a shell.

use units::Nanos;
use url::Url;

/// An iteration that a user begins.
#[derive(Clone, Copy, Debug)]
pub struct IterationBegun<'a> {
    /// Numbers across all workers, from 0.
    pub user: u64,
    pub iteration: u64,
    /// The columns of feeders that it takes, as `feeder.column`.
    pub values: &'a [(String, String)],
}

/// What came back to a call.
#[derive(Clone, Copy, Debug)]
pub struct HeardBack<'a> {
    /// 0: there was no whole response.
    pub status: u16,
    pub head: &'a [u8],
    pub body: &'a [u8],
    /// From the first byte of the request to the end of the response.
    pub took: Nanos,
    /// The id of the failure class, where the call has failed by the plan's own rules.
    pub error: Option<&'static str>,
}

/// A call that a program wants made.
#[derive(Clone, Debug)]
pub struct ActedCall {
    /// How long the user waits before it.
    pub wait: Nanos,
    /// Row among the steps of its journey, from 0.
    pub step: u32,
    pub method: String,
    pub url: Url,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// Statuses that are as expected; empty: those of the plan.
    pub statuses: Vec<u16>,
}

/// What a program does next.
#[derive(Clone, Debug)]
pub enum Deed {
    Call(Box<ActedCall>),
    /// The iteration is over; the user waits before the next one.
    Over {
        wait: Nanos,
    },
    /// The program went wrong in this iteration, which ends it: file, line and what was wrong.
    Broke(String),
}

/// What a program did until it had to wait.
#[derive(Clone, Debug)]
pub struct ActorTurn {
    /// What it found wrong with the call that has just ended.
    pub failure: Option<String>,
    /// What it only counts: `None` where the check was met.
    pub checks: Vec<Option<String>>,
    pub deed: Deed,
}

/// The program of one journey, for the users of one worker.
pub trait Actor: std::fmt::Debug + Send {
    /// A user begins an iteration. What it was about before is forgotten.
    fn begin(&mut self, begun: &IterationBegun<'_>) -> ActorTurn;

    /// The user's call has ended; `Err`: it could not be made, and why.
    fn resume(&mut self, user: u64, heard: Result<&HeardBack<'_>, &str>) -> ActorTurn;

    /// The iteration ends here.
    fn leave_off(&mut self, user: u64);

    /// The user is gone, and what was kept of it can go too.
    fn forget(&mut self, user: u64);
}
