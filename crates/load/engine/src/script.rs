//! A script that creates a worker's requests. Not used without a script.

use conduit::Peer;
use protocol::http1::response::Asked;
use units::Nanos;
use workload::{Script, ScriptError, Wants};

/// A worker's part of a script, and its first failure.
#[derive(Debug)]
pub(crate) struct Scripted {
    part: Box<dyn Script>,
    wants: Wants,
    failure: Option<ScriptError>,
}

impl Scripted {
    pub(crate) fn new(part: Box<dyn Script>) -> Scripted {
        Scripted { wants: part.wants(), part, failure: None }
    }

    pub(crate) fn makes_pauses(&self) -> bool {
        self.wants.pauses
    }

    pub(crate) fn wants_responses(&self) -> bool {
        self.wants.responses
    }

    /// Appends the next request; returns its kind and the number of responses.
    pub(crate) fn request(&mut self, out: &mut Vec<u8>) -> (Asked, u16) {
        let made = self.part.request(out);
        (self.kept(made).unwrap_or_default(), self.wants.requests)
    }

    /// Returns the wait before a user's next call.
    pub(crate) fn pause(&mut self) -> Nanos {
        if !self.wants.pauses {
            return Nanos::ZERO;
        }
        let made = self.part.pause();
        self.kept(made).unwrap_or(Nanos::ZERO)
    }

    /// Passes a response to the script, if it needs responses.
    pub(crate) fn take_response(&mut self, status: u16, head: &[u8], body: &[u8]) {
        if self.wants.responses {
            let result = self.part.response(status, head, body);
            self.kept(result);
        }
    }

    pub(crate) fn peer(&mut self) -> Option<Peer> {
        self.part.peer()
    }

    pub(crate) fn stopped(&self) -> bool {
        self.part.stopped()
    }

    /// Returns the error, once.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        Some(self.failure.take()?.0)
    }

    /// Keeps the first failure; the next turn ends the run with it.
    fn kept<T>(&mut self, result: Result<T, ScriptError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failure.get_or_insert(error);
                None
            }
        }
    }
}
