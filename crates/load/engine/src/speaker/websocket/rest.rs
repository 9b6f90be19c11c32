//! Idle WebSockets: they keep only the state that the next message needs.

use super::{Phase, SocketSpeaker};
use ::websocket::{Masking, SocketOptions, WebSocket};
use units::Nanos;

/// State of an open WebSocket without calls.
#[derive(Debug)]
pub(crate) struct RestingSocket {
    masks: Masking,
    heard_at: Nanos,
    input_at: Nanos,
    pinged_at: Nanos,
}

impl SocketSpeaker {
    /// Returns the state that the WebSocket needs later, if that is all: it is open without
    /// compression, and nothing is outstanding or unreported.
    pub(crate) fn state_at_rest(&self) -> Option<RestingSocket> {
        let Phase::Open(socket) = &self.phase else { return None };
        let awaits = !self.calls.is_empty() || !self.late.is_empty() || self.owed > 0;
        let busy = awaits || self.greeting || self.opened.start < self.opened.end;
        let unreported = self.end.is_some() || !self.is_silent();
        if busy || unreported || self.steps.is_some() || self.terms.publishes {
            return None;
        }
        let SocketSpeaker { heard_at, input_at, pinged_at, .. } = *self;
        Some(RestingSocket { masks: socket.masks_at_rest()?, heard_at, input_at, pinged_at })
    }

    /// Continues an open WebSocket.
    pub(crate) fn resume(&mut self, rest: RestingSocket) {
        let RestingSocket { masks, heard_at, input_at, pinged_at } = rest;
        let options = SocketOptions::client(masks);
        self.phase = Phase::Open(Box::new(WebSocket::new(&options)));
        (self.heard_at, self.input_at, self.pinged_at) = (heard_at, input_at, pinged_at);
    }
}
