//! Requests whose content differs from call to call, independent of responses. The engine knows
//! only this interface; a higher layer implements it.

use units::Nanos;

/// Content of one call's request, in addition to the plan's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeRequest {
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Makes the content of the requests of one worker's calls.
pub trait RequestMaker: std::fmt::Debug + Send {
    /// Returns the content of call `index`, counted across all workers; `None` if it cannot be
    /// made, and the call fails. `now`: on the clock of samples.
    fn make(&mut self, index: u64, now: Nanos) -> Option<MadeRequest>;
}

/// Creates the makers of a run.
pub trait RequestMakers: std::fmt::Debug {
    /// Creates the maker of one worker's requests.
    fn maker(&self) -> Box<dyn RequestMaker>;
}
