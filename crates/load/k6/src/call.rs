//! Data that passes between a user and the engine: the calls of a script, and their results.

use sample::Sample;
use std::borrow::Cow;
use std::sync::Arc;
use units::Nanos;
use url::Url;

/// Maximum duration of a request unless the script sets another.
pub(crate) const REQUEST_TIMEOUT: Nanos = Nanos::from_secs(60);

/// Names and values of header fields.
pub type Headers = Vec<(String, String)>;

/// Request in the form that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireRequest {
    pub method: Cow<'static, str>,
    pub url: Arc<Url>,
    /// In the order in which they are sent, including Host.
    pub headers: Arc<Headers>,
    pub body: Vec<u8>,
    /// Value of its tag `name`; empty without one.
    pub name: String,
    /// Pairs of first and last expected status, or `None` if all statuses are expected.
    pub expected: Option<Cow<'static, [u32]>>,
    /// Timeout; `None` for the longest one of the script.
    pub timeout: Option<Nanos>,
    /// The body grows after the request is sent.
    pub keeps_open: bool,
}

impl WireRequest {
    /// Appends the request in HTTP/1.1.
    pub(crate) fn render(&self, out: &mut Vec<u8>) {
        self.render_head(out);
        out.extend_from_slice(&self.body);
    }

    pub(crate) fn render_head(&self, out: &mut Vec<u8>) {
        let path = &self.url[url::Position::BeforePath..url::Position::AfterQuery];
        let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
        for text in [&*self.method, " ", path, " HTTP/1.1\r\n"] {
            put(text);
        }
        for (name, value) in self.headers.iter() {
            for text in [name, ": ", value, "\r\n"] {
                put(text);
            }
        }
        put("\r\n");
    }
}

/// Result of a request.
#[derive(Clone, Debug, Default)]
pub struct HttpReply {
    pub sample: Sample,
    /// Head as received; empty without a complete response, as is `body`, which is not decoded.
    pub head: Vec<u8>,
    pub body: Vec<u8>,
    /// True if it is a part of the body of a response to a request that is kept open.
    pub is_part: bool,
    /// True if earlier parts were dropped because the script did not read them.
    pub is_cut: bool,
}

/// An action on a WebSocket of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketRequest {
    Open(Box<WireRequest>),
    Send {
        text: bool,
        payload: Vec<u8>,
    },
    Ping,
    /// Waits for the next frame from the server; `None` for the timeout of calls.
    Listen(Option<Nanos>),
    Close(u16),
}

/// Event that a user waits for.
#[derive(Debug)]
pub enum VuRequest {
    /// The init code has run: the exported options as JSON, and the names of exported functions.
    Ready { options: Option<String>, exports: Vec<String> },
    /// End of a pause.
    Sleep(Nanos),
    /// Response to a request.
    Http(Box<WireRequest>),
    /// The end of an action on the WebSocket with this number.
    Socket(u32, Box<SocketRequest>),
    /// End of any call in `Context::next_begun`; `None` for no time limit.
    Any(Option<Nanos>),
    /// A task is over; the user is idle.
    Finished(Result<Option<String>, VuFailure>),
}

/// Result passed to a user.
#[derive(Debug)]
pub enum VuAnswer {
    /// The pause is over, or the user begins.
    Go,
    Http(Box<HttpReply>),
    /// The call in this lane has ended.
    Ended(u32, Box<HttpReply>),
    Run(Task),
    /// Ends the current task.
    Interrupt,
    /// The user is no longer needed.
    End,
}

/// A function of the script to be called.
#[derive(Clone, Debug)]
pub struct Task {
    /// Name of the exported function.
    pub function: String,
    /// Argument of the function as JSON.
    pub argument: Option<Arc<str>>,
    pub iteration: u64,
    /// True if the caller wants the result as JSON.
    pub wants_result: bool,
}

/// Call that a user has started.
#[derive(Debug)]
pub enum VuCall {
    Http(Box<WireRequest>),
    /// An action on the WebSocket with this number.
    Socket(u32, Box<SocketRequest>),
    /// More of the body of the request in this lane, which is kept open.
    Extend {
        bytes: Vec<u8>,
        ends: bool,
    },
    /// The open request in this lane is abandoned.
    Cancel,
}

impl VuCall {
    /// Returns whether it is a request of `k6/http`.
    pub(crate) fn is_request(&self) -> bool {
        matches!(self, VuCall::Http(wire) if matches!(wire.url.scheme(), "http" | "https"))
    }

    /// Returns whether it continues a stream or a WebSocket.
    pub(crate) fn is_continuation(&self) -> bool {
        match self {
            VuCall::Http(_) => false,
            VuCall::Socket(_, request) => !matches!(**request, SocketRequest::Open(_)),
            VuCall::Extend { .. } | VuCall::Cancel => true,
        }
    }
}

/// Reason why a task failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VuFailure {
    /// Exception: its text with the stack.
    Exception(String),
    /// Call of `test.abort()`, with its message.
    Abort(String),
    Interrupted,
}
