//! A check plan in executable form.

use super::{JsonPlace, Text};
use crate::HttpVersion;
use units::Nanos;
use url::Url;
use workload::Selector;

/// Everything that a check does, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckPlan {
    pub name: String,
    /// Base of relative URLs of steps.
    pub base: Url,
    /// Time limit of establishing a connection, including TLS.
    pub connect: Nanos,
    /// Steps; at least one.
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Unique among the steps.
    pub name: String,
    /// Line of the plan file, from 1.
    pub line: usize,
    /// Reason why the step is skipped: its `when` is false.
    pub skip: Option<String>,
    /// Number of rounds, at least 1.
    pub repeat: u32,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// One request.
    Ask(Box<Ask>),
    /// Requests that are sent at the same moment.
    Together(Group),
    /// A file below the folder that `--root` names.
    File { path: String, wanted: Content, within: Nanos },
    /// A folder below the folder that `--root` names.
    Folder { path: String, wanted: Entries, within: Nanos },
}

/// A request and the requirements on its response.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    pub method: String,
    /// Absolute, or relative to the base.
    pub url: Text,
    /// Added to the URL's own query, percent-encoded.
    pub query: Vec<(String, Text)>,
    pub headers: Vec<(String, Text)>,
    pub body: Body,
    /// `name:password`, for the Basic scheme.
    pub user: Option<Text>,
    /// Cookie jar; `None` for no cookies.
    pub jar: Option<String>,
    pub version: HttpVersion,
    /// True to ask the server to close the connection after its response.
    pub close: bool,
    /// Time limit from sending the request to the end of the response.
    pub timeout: Nanos,
    pub expect: Expect,
    pub capture: Vec<(String, Capture)>,
    /// Moves on the WebSocket that the request of a check opens; empty: no WebSocket.
    pub talk: Vec<TalkMove>,
}

/// A move on a WebSocket.
#[derive(Clone, Debug, PartialEq)]
pub enum TalkMove {
    /// Sends a message: bytes as a binary message, everything else as text.
    Send(Body),
    /// Waits for this many messages with this content; others are skipped.
    Expect { matching: Content, count: u32 },
    /// Sends a close frame with this code and waits for the server's.
    Close(u16),
    /// Waits for the server's close frame with this code; 1005: a frame without a code.
    Closed(u16),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body {
    #[default]
    None,
    Text(Text),
    Bytes(Vec<u8>),
    /// `application/json`, with values inserted into its strings.
    Json(Text),
    /// `application/x-www-form-urlencoded`, in this order.
    Form(Vec<(String, Text)>),
    /// `multipart/form-data` (RFC 7578): fields, then files.
    Multipart(Vec<(String, Text)>, Vec<Upload>),
}

/// One file of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct Upload {
    pub field: String,
    /// File name sent to the server.
    pub name: String,
    pub media_type: String,
    pub content: UploadContent,
}

#[derive(Clone, Debug, PartialEq)]
pub enum UploadContent {
    /// The text, repeated this many times.
    Text(Text, u32),
    Bytes(Vec<u8>),
}

/// Requirements on a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expect {
    pub outcome: Wanted,
    /// Inclusive ranges; empty for any status below 400.
    pub statuses: Vec<(u16, u16)>,
    pub headers: Vec<(String, HeaderRule)>,
    pub body: Content,
    /// Bounds of the time from sending the request to the end of the response.
    pub at_least: Option<Nanos>,
    pub at_most: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    #[default]
    Response,
    /// The connection is closed without a response.
    Closed,
    /// No connection is accepted.
    Refused,
    /// No complete response arrives within the timeout.
    TimedOut,
}

impl Wanted {
    /// Returns the name of the outcome in a plan file.
    pub fn id(self) -> &'static str {
        match self {
            Wanted::Response => "answer",
            Wanted::Closed => "closed",
            Wanted::Refused => "refused",
            Wanted::TimedOut => "timeout",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum HeaderRule {
    Exact(Text),
    Contains(Text),
    Regex(Text),
    Absent,
    Present,
}

/// Requirements on a body or a file, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    pub exact: Option<Text>,
    pub contains: Vec<Text>,
    pub lacks: Vec<Text>,
    pub regex: Vec<Text>,
    /// Number of matches of an expression.
    pub count: Vec<(Text, u64)>,
    pub sha256: Option<[u8; 32]>,
    /// Length in bytes.
    pub length: Option<u64>,
    /// A location and its required value.
    pub json: Vec<(JsonPlace, JsonRule)>,
    /// True for a GraphQL response with data and without errors, regardless of its status.
    pub graphql: bool,
}

/// Required value at a path of a JSON document.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonRule {
    /// Exact text. If a captured value is inserted, a number or boolean with that text is accepted
    /// too.
    Text(Text),
    Value(serde_json::Value),
}

/// Required content of a folder.
#[derive(Clone, Debug, PartialEq)]
pub enum Entries {
    Empty,
    /// Exactly these entries, in any order.
    Exactly(Vec<String>),
}

/// Source of a value, and its use.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    pub from: CaptureFrom,
    /// The value is the first group, or the whole match.
    pub regex: Option<Text>,
    /// Selects one of several values.
    pub take: Take,
    /// Lifetime of the value, in a journey.
    pub scope: Scope,
    /// A missing value is not a failure of the call, only counted.
    pub optional: bool,
    /// The values are numbers of this metric, in a journey.
    pub metric: Option<CaptureMetric>,
}

/// A metric that captured numbers are counted in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureMetric {
    pub name: String,
    /// Row among the metrics of the plan.
    pub row: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CaptureFrom {
    Status,
    Header(String),
    /// The value of a cookie that the response sets.
    Cookie(String),
    Body,
    Json(JsonPlace),
    /// Elements of a page: the value of an attribute, or their text.
    Html {
        css: Selector,
        attribute: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Take {
    #[default]
    First,
    Last,
    /// Random value, drawn with the seed.
    Random,
}

/// Lifetime of a captured value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Until the user restarts its journey.
    #[default]
    Iteration,
    /// For the lifetime of the user.
    User,
}

/// Requests that are sent at the same moment: all connections are made first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    pub members: Vec<(String, Ask)>,
    /// Names in the order in which the requests must end; empty: any order.
    pub order: Vec<String>,
    /// Required number of members that meet their expectations. Without either bound, all must.
    pub succeeded: Option<u32>,
    pub failed: Option<u32>,
    /// Bounds of the time from the common start to the last end.
    pub at_least: Option<Nanos>,
    pub at_most: Option<Nanos>,
}
