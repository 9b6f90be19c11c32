//! Steps on a WebSocket: the user opens one, sends messages, waits for messages and closes it.

use super::{JourneyPart, JourneyPlan};
use crate::Plan;
use crate::check::Content;
use units::Nanos;
use url::Url;

/// Action of a step on the user's WebSocket. The upgrade's URL and fields, and the message to send
/// (as a body), are in the step's [`ask`](super::JourneyStep::ask).
#[derive(Clone, Debug, PartialEq)]
pub enum SocketStep {
    /// Opens the WebSocket: the response is the server's 101.
    Connect,
    /// Sends a message. Without an answer the step is done when the message is sent.
    Send { answer: Option<MessageRule> },
    /// Waits for messages from the server.
    Expect(MessageRule),
    /// Sends a close frame with this code and waits for the server's.
    Close { code: u16 },
}

/// Messages that a step waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRule {
    /// Required content of the messages; others are skipped.
    pub matching: Content,
    /// Number of messages; the last one is the response of the step.
    pub count: u32,
    /// Timeout from the instant at which the step is due; `None` for the plan's limit of calls.
    pub timeout: Option<Nanos>,
}

impl SocketStep {
    /// Returns the messages that the step waits for.
    pub fn rule(&self) -> Option<&MessageRule> {
        match self {
            SocketStep::Send { answer } => answer.as_ref(),
            SocketStep::Expect(rule) => Some(rule),
            SocketStep::Connect | SocketStep::Close { .. } => None,
        }
    }
}

/// Returns the URL with the scheme for WebSocket: `http` becomes `ws`, and `https` becomes `wss`.
pub fn websocket_base(base: &Url) -> Url {
    let mut url = base.clone();
    let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
    // both are special schemes, so the change is always allowed
    url.set_scheme(scheme).ok();
    url
}

impl JourneyPlan {
    /// Returns whether a step uses a WebSocket.
    pub fn has_sockets(&self) -> bool {
        self.steps().iter().any(|step| step.socket.is_some())
    }

    /// Returns the rows of the steps whose calls are messages.
    pub fn message_rows(&self) -> Vec<u32> {
        let steps = self.steps().into_iter();
        let is_message =
            |socket: &SocketStep| matches!(socket, SocketStep::Send { .. } | SocketStep::Expect(_));
        steps.filter(|step| step.socket.as_ref().is_some_and(is_message)).map(|it| it.row).collect()
    }

    /// Returns whether the first step of the first journey is neither an HTTP request nor a script.
    pub fn has_special_first_step(&self) -> bool {
        fn first(parts: &[JourneyPart]) -> Option<bool> {
            match parts.first()? {
                JourneyPart::Step(step) => Some(step.socket.is_some() || step.grpc.is_some()),
                JourneyPart::Block(block) => first(&block.parts),
            }
        }
        self.journeys.first().and_then(|journey| first(&journey.parts)).unwrap_or(false)
    }
}

impl Plan {
    /// Returns whether connections may be WebSockets: all of them, or those that steps of journeys
    /// open.
    pub fn speaks_websocket(&self) -> bool {
        let of_journeys = |it: &JourneyPlan| it.has_sockets() || it.is_scripted();
        self.is_websocket() || self.journeys.as_ref().is_some_and(of_journeys)
    }
}
