//! Requests created by a user's program during the run. The engine knows only this interface; a
//! higher layer implements it.

use conduit::Peer;
use protocol::http1::response::Asked;
use units::Nanos;

/// Callbacks that a script needs; returned once, before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// The script determines the wait before each request.
    pub pauses: bool,
    /// The script receives each response: status, head and body.
    pub responses: bool,
    /// Number of requests in one of its texts, at least 1: they are sent together, as one call.
    pub requests: u16,
}

/// A script failed; the text has its name and the line. This ends the run.
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

    /// Returns the wait before the next request.
    ///
    /// # Errors
    /// Fails if the script fails.
    fn pause(&mut self) -> Result<Nanos, ScriptError>;

    /// Appends the next request's bytes to `out`.
    ///
    /// # Errors
    /// Fails if the script fails.
    fn request(&mut self, out: &mut Vec<u8>) -> Result<Asked, ScriptError>;

    /// Processes a response; called only if the script [wants](Wants::responses) responses.
    ///
    /// # Errors
    /// Fails if the script fails.
    fn response(&mut self, status: u16, head: &[u8], body: &[u8]) -> Result<(), ScriptError>;

    /// Returns the destination of the next connection; `None` for the plan's.
    fn peer(&mut self) -> Option<Peer>;

    /// Returns whether the script stops this worker.
    fn stopped(&self) -> bool;
}
