//! Journeys run by a user's program: requests to it, one call after another. The engine knows only
//! this interface; a higher layer implements it.

use crate::SocketCall;
use std::sync::Arc;
use units::Nanos;
use url::Url;

/// An iteration that a user begins.
#[derive(Clone, Copy, Debug)]
pub struct IterationStart<'a> {
    /// Number across all workers, from 0.
    pub user: u64,
    pub iteration: u64,
    /// Values of the feeder columns that the iteration takes, as `feeder.column`.
    pub values: &'a [(String, String)],
}

/// Response to a call.
#[derive(Clone, Copy, Debug)]
pub struct CallResponse<'a> {
    /// Status code; 0 without a complete response.
    pub status: u16,
    pub head: &'a [u8],
    pub body: &'a [u8],
    /// Time from the first byte of the request to the end of the response.
    pub took: Nanos,
    /// The id of the failure class, if the call failed by the plan's own rules.
    pub error: Option<&'static str>,
}

/// A call requested by a program.
#[derive(Clone, Debug)]
pub struct ActedCall {
    /// Time that the user waits before the call.
    pub wait: Nanos,
    /// Row among the steps of its journey, from 0.
    pub step: u32,
    pub method: String,
    pub url: Url,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// Expected statuses; empty for those of the plan.
    pub statuses: Vec<u16>,
    /// Action on the user's WebSocket, with the body as its message; `None` if the call is a
    /// request.
    pub socket: Option<Arc<SocketCall>>,
}

/// Next action of a program.
#[derive(Clone, Debug)]
pub enum ActorAction {
    Call(Box<ActedCall>),
    /// The iteration is over; the user waits before the next one.
    Over {
        wait: Nanos,
    },
    /// The program ends the run and this iteration, for this reason.
    Abort(String),
    /// The program failed, which ends this iteration; file, line and reason.
    Broke(String),
}

/// Result of running a program until it waits.
#[derive(Clone, Debug)]
pub struct ActorTurn {
    /// Error that the program found in the previous call.
    pub failure: Option<String>,
    /// Result of a check that is only counted: `None` if it was met.
    pub checks: Vec<Option<String>>,
    /// Values of metrics, by their rows among those of the program.
    pub values: Vec<(u32, f64)>,
    pub action: ActorAction,
}

/// Program of one journey, for the users of one worker.
pub trait Actor: std::fmt::Debug + Send {
    /// Begins an iteration of a user. The user's previous state is dropped.
    fn begin(&mut self, begun: &IterationStart<'_>) -> ActorTurn;

    /// Resumes after the user's call; `Err`: the call could not be made, with the reason.
    fn resume(&mut self, user: u64, heard: Result<&CallResponse<'_>, &str>) -> ActorTurn;

    /// Ends the iteration early.
    fn end_early(&mut self, user: u64);

    /// Drops the state of a user that has left.
    fn forget(&mut self, user: u64);
}
