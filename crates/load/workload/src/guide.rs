//! Users whose next request depends on earlier responses: pages and their parts, redirects, logins,
//! caches. The engine knows only this interface; a higher layer implements it.

use crate::Template;
use sample::{FailureClass, Note, Outcome, Remark, Sample};
use units::Nanos;

/// Next action of a user.
#[derive(Clone, Debug)]
pub enum Step {
    Call(GuideCall),
    /// The plan's target of that row, unchanged, after a wait.
    Target {
        wait: Nanos,
        row: u32,
    },
    /// The user makes no call, and the guide is asked again after the wait.
    Pause {
        wait: Nanos,
    },
    /// The user makes no more calls.
    Leave,
}

/// A call requested by a guide.
#[derive(Clone, Debug)]
pub struct GuideCall {
    /// How long the user waits before it.
    pub wait: Nanos,
    /// Row of the target list that it counts for.
    pub row: u32,
    /// The request. Its URL determines the endpoint.
    pub template: Box<Template>,
}

/// Result of a user's call.
#[derive(Clone, Copy, Debug)]
pub struct CallEnd<'a> {
    pub sample: &'a Sample,
    pub outcome: Outcome,
    /// The response's head and body as received; empty without a complete response. The body is
    /// also empty unless the guide [keeps bodies](Guide::keeps_bodies), and is cut off at 16 MiB.
    pub head: &'a [u8],
    pub body: &'a [u8],
}

/// A whole response, before its call is counted.
#[derive(Clone, Copy, Debug)]
pub struct WholeResponse<'a> {
    /// Row of the target list that the call counts for.
    pub row: u32,
    pub status: u16,
    /// As in [`CallEnd`].
    pub head: &'a [u8],
    pub body: &'a [u8],
    /// From the first byte of the request to the end of the response.
    pub took: Nanos,
    pub now: Nanos,
}

/// The users of one worker. Users are known by their numbers across all workers.
pub trait Guide: std::fmt::Debug + Send {
    /// It needs bodies; called once, before the run.
    fn keeps_bodies(&self) -> bool;

    /// Error in a response; `planned`: errors by the plan's own expectations.
    fn judge(
        &mut self,
        _user: u64,
        _heard: &WholeResponse<'_>,
        planned: Option<FailureClass>,
    ) -> Option<FailureClass> {
        planned
    }

    /// It is notified of each call's end, even if calls are not logged; called once.
    fn attends_to_each(&self) -> bool {
        false
    }

    /// The run ends when all its users have left; called once.
    fn ends_with_its_users(&self) -> bool {
        false
    }

    /// Passes on the values that a user captured or was given: they may be secrets, and are masked
    /// in responses that are shown.
    fn secrets(&self, _user: u64, _add: &mut dyn FnMut(&str)) {}

    /// Returns its observations since the last call.
    fn report(&mut self, _hear: &mut dyn FnMut(Remark)) {}

    /// The user's next action. `now` is on the clock of samples.
    fn next(&mut self, user: u64, now: Nanos) -> Step;

    /// A call of the user has ended. The note is added to its record.
    fn ended(&mut self, user: u64, came: &CallEnd<'_>) -> Option<Note>;

    /// The user's WebSocket has ended, and these messages wait for a call: each begins with its
    /// [opcode](crate::opcode).
    fn socket_ended(&mut self, _user: u64, _left: Vec<Vec<u8>>) {}

    /// Takes back the request of a call that has ended, whose memory another one may use.
    fn take_back(&mut self, _template: Box<Template>) {}
}

/// Makes the guides of a run.
pub trait Guides: std::fmt::Debug {
    /// The guide of the users of one worker.
    fn guide(&self) -> Box<dyn Guide>;
}
