//! Calls of a guide's user on the WebSocket that the user has open.

use std::sync::Arc;
use units::Nanos;

/// Action of a call on the user's WebSocket.
#[derive(Clone, Debug)]
pub enum SocketAction {
    /// Opens a WebSocket with the request of the template, replacing the user's WebSocket with the
    /// same number.
    Connect,
    /// Sends the bytes of the template as a message, of text or binary. Without an answer the call
    /// is done when the message is sent.
    Send { text: bool, answer: Option<AwaitedMessages> },
    /// Waits for messages that have arrived since the last call, or will arrive.
    Expect(AwaitedMessages),
    /// Waits for the next data of the server, received since the last call or later: a message, a
    /// pong or a close frame. The content of the response is its [opcode](opcode), then its
    /// payload. Another call on the WebSocket ends this one without a response, as does its
    /// timeout.
    Listen,
    /// Sends a ping with the bytes of the template.
    Ping,
    /// Sends a close frame with this code and waits for the server's.
    Close { code: u16 },
}

/// First byte of the result of a [`SocketAction::Listen`] (RFC 6455 section 5.2).
pub mod opcode {
    pub const TEXT: u8 = 1;
    pub const BINARY: u8 = 2;
    /// Close frame; its payload is the code, as two bytes.
    pub const CLOSE: u8 = 8;
    pub const PONG: u8 = 10;
}

/// Value of `Sec-WebSocket-Key` in a template that opens a WebSocket; the connection's own replaces
/// it.
pub const SOCKET_KEY_MARK: &str = "AAAAAAAAAAAAAAAAAAAAAA==";

/// Call on a WebSocket.
#[derive(Clone, Debug)]
pub struct SocketCall {
    pub action: SocketAction,
    /// Timeout from the due instant; `None` for the plan's limit of calls.
    pub timeout: Option<Nanos>,
    /// For a call that opens a WebSocket: true if later calls on it [listen](SocketAction::Listen).
    pub listens: bool,
    /// Number of the WebSocket among those that the user has open.
    pub socket: u32,
}

/// Messages from the server that a call waits for.
#[derive(Clone, Debug)]
pub struct AwaitedMessages {
    /// Messages that count; `None` for all.
    pub filter: Option<Arc<dyn MessageFilter>>,
    /// Number of messages, at least 1; the last one is the response to the call.
    pub count: u32,
}

/// Selects messages from a server.
pub trait MessageFilter: std::fmt::Debug + Send + Sync {
    /// Returns whether a message with this payload counts.
    fn takes(&self, payload: &[u8]) -> bool;
}

impl SocketCall {
    /// Returns whether the call opens a WebSocket: its template is then a request.
    pub fn opens(&self) -> bool {
        matches!(self.action, SocketAction::Connect)
    }
}

impl SocketAction {
    /// Returns the messages that the call waits for.
    pub fn awaited(&self) -> Option<&AwaitedMessages> {
        match self {
            SocketAction::Send { answer, .. } => answer.as_ref(),
            SocketAction::Expect(awaited) => Some(awaited),
            SocketAction::Connect
            | SocketAction::Listen
            | SocketAction::Ping
            | SocketAction::Close { .. } => None,
        }
    }
}

impl AwaitedMessages {
    /// Returns whether a message with this payload is one of them.
    pub fn takes(&self, payload: &[u8]) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.takes(payload))
    }
}
