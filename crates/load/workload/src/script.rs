//! Requests created by a user's program during the run. The engine knows only this interface; a
//! higher layer implements it.

use conduit::Peer;
use protocol::http1::response::Asked;
use units::Nanos;

/// Callbacks of a script; called once, before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// It determines how long to wait before each request.
    pub pauses: bool,
    /// It receives each response: status, head and body.
    pub responses: bool,
    /// Requests in one of its texts, at least 1: they go out together, as one call.
    pub requests: u16,
}

/// A script failed; the text names it and the line. It ends the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError(pub String);

impl std::fmt::Display for ScriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScriptError {}

/// One worker's part of a script.
pub trait Script: std::fmt::Debug + Send {
    fn wants(&self) -> Wants;

    /// The wait before the next request.
    ///
    /// # Errors
    /// As the script failed.
    fn pause(&mut self) -> Result<Nanos, ScriptError>;

    /// Appends the next request's bytes to `out`.
    ///
    /// # Errors
    /// As the script failed.
    fn request(&mut self, out: &mut Vec<u8>) -> Result<Asked, ScriptError>;

    /// Processes a response; called only if it [wants](Wants::responses) them.
    ///
    /// # Errors
    /// As the script failed.
    fn response(&mut self, status: u16, head: &[u8], body: &[u8]) -> Result<(), ScriptError>;

    /// Destination of the next connection; `None`: the plan's.
    fn peer(&mut self) -> Option<Peer>;

    /// The script stops this worker.
    fn stopped(&self) -> bool;
}
