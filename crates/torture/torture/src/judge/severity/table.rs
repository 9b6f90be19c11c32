//! The table of severities: what was sent, and its effect.

use super::Severity::{Critical, High, Low, Medium};
use super::{RatedSeverity, Severity};
use crate::judge::FailureKind;

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentSort {
    /// A message in which two parsers may find different requests.
    Ambiguous,
    /// A message that an intermediary may interpret differently.
    Misleading,
    /// A message that costs the server far more than its client.
    Costly,
    /// A valid request.
    Valid,
    /// A recorded request, sent again.
    Replayed,
    /// A line end that should be reflected into a field.
    Injected,
    /// A path that leaves the tree of the server.
    Traversing,
    /// TCP segments, which need not form a request.
    Segments,
    /// Segments for the TCP of the kernel.
    Kernel,
    /// Anything else.
    Other,
}

impl SentSort {
    /// Returns the kind as a noun phrase.
    pub fn text(self) -> &'static str {
        match self {
            SentSort::Ambiguous => "ambiguous framing",
            SentSort::Misleading => "a misleading message",
            SentSort::Costly => "a costly message",
            SentSort::Valid => "a valid request",
            SentSort::Replayed => "a replayed request",
            SentSort::Injected => "a line terminator in a value",
            SentSort::Traversing => "a path outside the document root",
            SentSort::Segments => "TCP segments",
            SentSort::Kernel => "segments for the kernel",
            SentSort::Other => "anything",
        }
    }
}

/// Effect on the message, its connection, other requests and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Dead,
    Leak,
    Exhausted,
    ShutOut,
    Crowded,
    WorkerLost,
    OthersLost,
    Stopped,
    Late,
    Kept,
    Foreign,
    Inherited,
    OutOfStep,
    NextRefused,
    BothRefused,
    NextHangs,
    Hang,
    NoContinue,
    Unfinished,
    NoHttp,
    ServerError,
    Slow,
    Closed,
    Refused,
    ContentParsed,
    AnswerClosed,
    Answer,
}

impl Effect {
    /// Returns the effect of a failed exchange.
    pub(super) fn new(kind: Option<FailureKind>) -> Effect {
        match kind {
            Some(FailureKind::Status(_)) => Effect::ServerError,
            Some(FailureKind::Hang) => Effect::Hang,
            Some(FailureKind::NoContinue) => Effect::NoContinue,
            Some(FailureKind::Unfinished) => Effect::Unfinished,
            Some(FailureKind::NoHttp) => Effect::NoHttp,
            Some(FailureKind::OutOfStep) => Effect::OutOfStep,
            Some(FailureKind::NextRefused) => Effect::NextRefused,
            Some(FailureKind::BothRefused) => Effect::BothRefused,
            Some(FailureKind::NextHangs) => Effect::NextHangs,
            Some(FailureKind::Lost) => Effect::OthersLost,
            Some(FailureKind::Stopped) => Effect::Stopped,
            Some(FailureKind::Exhausts) => Effect::Exhausted,
            Some(FailureKind::Inherited) => Effect::Inherited,
            Some(FailureKind::Foreign) => Effect::Foreign,
            Some(FailureKind::Slow) => Effect::Slow,
            Some(FailureKind::Closed) => Effect::Closed,
            Some(FailureKind::Refused) => Effect::Refused,
            Some(FailureKind::ContentParsed) => Effect::ContentParsed,
            Some(FailureKind::AnswerClosed) => Effect::AnswerClosed,
            Some(FailureKind::Answer) | None => Effect::Answer,
        }
    }

    /// Returns whether it affects clients other than the one that sent the message.
    pub(super) fn affects_others(self) -> bool {
        matches!(
            self,
            Effect::Dead
                | Effect::Leak
                | Effect::Exhausted
                | Effect::ShutOut
                | Effect::Crowded
                | Effect::WorkerLost
                | Effect::OthersLost
                | Effect::Stopped
                | Effect::Foreign
                | Effect::Inherited
        )
    }

    /// Returns the effect as a clause.
    pub fn text(self) -> &'static str {
        match self {
            Effect::Dead => "the server's process exits",
            Effect::Leak => "resources are not released",
            Effect::Exhausted => "memory grows afterwards, without further requests",
            Effect::ShutOut => {
                "others get no response, though as many well-behaved connections have no such effect"
            }
            Effect::Crowded => "others get no response, regardless of what the connections do",
            Effect::WorkerLost => "a worker crashes",
            Effect::OthersLost => "others get no or wrong responses afterwards",
            Effect::Stopped => "no client gets a response afterwards",
            Effect::Late => "others are served slowly",
            Effect::Kept => "the connection is kept until the end of the test's wait",
            Effect::Foreign => "the response belongs to another request",
            Effect::Inherited => "the response depends on another client's request",
            Effect::OutOfStep => "the next request on the connection gets a wrong response",
            Effect::NextRefused => {
                "the next request is refused, but not because the connection ends"
            }
            Effect::BothRefused => "it and the next request are refused, and the connection ends",
            Effect::NextHangs => "the next request on the connection gets no response",
            Effect::Hang => "no response, and the connection stays open",
            Effect::NoContinue => "no response until the content arrives, despite its expectation",
            Effect::Unfinished => "the response does not end",
            Effect::NoHttp => "the response is not HTTP",
            Effect::ServerError => "500 or another server error",
            Effect::Slow => "the response takes more time than its size explains",
            Effect::Closed => "the connection ends without a response",
            Effect::Refused => "it is refused differently than required",
            Effect::ContentParsed => "its content is parsed as a request, which gets a response",
            Effect::AnswerClosed => "it is processed, and the connection ends",
            Effect::Answer => "it is processed, and the connection stays open",
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeverityRow {
    pub sent: SentSort,
    pub effect: Effect,
    pub rated: RatedSeverity,
}

const fn row(
    sent: SentSort,
    effect: Effect,
    severity: Severity,
    reason: &'static str,
) -> SeverityRow {
    SeverityRow { sent, effect, rated: RatedSeverity { severity, reason } }
}

/// All ratings. A row for a particular message precedes the row for any message: the first one that
/// fits applies.
pub const TABLE: [SeverityRow; 48] = [
    // effects on the server and on other clients
    row(
        SentSort::Other,
        Effect::Dead,
        Critical,
        "the server's process exits: all its clients are disconnected",
    ),
    row(
        SentSort::Other,
        Effect::Leak,
        Critical,
        "resources are not released: enough repetitions stop the server",
    ),
    row(
        SentSort::Other,
        Effect::Exhausted,
        Critical,
        "one request makes the memory of the server grow, even after its client has disconnected: \
        it may exhaust the memory of the machine",
    ),
    row(
        SentSort::Other,
        Effect::Stopped,
        Critical,
        "the server stops: no client gets a response afterwards",
    ),
    row(SentSort::Other, Effect::ShutOut, Critical, "a few connections block all other clients"),
    row(
        SentSort::Other,
        Effect::Crowded,
        High,
        "well-behaved clients are not served meanwhile: a limit on connections or on work is reached",
    ),
    row(
        SentSort::Other,
        Effect::WorkerLost,
        High,
        "a worker of the server crashes: its clients are disconnected",
    ),
    row(
        SentSort::Other,
        Effect::OthersLost,
        High,
        "afterwards, plain requests of other clients no longer get their usual response",
    ),
    row(
        SentSort::Other,
        Effect::Late,
        Medium,
        "well-behaved clients are served slowly, or some not at all",
    ),
    row(
        SentSort::Other,
        Effect::Kept,
        Medium,
        "each such connection occupies a slot for longer than the test waited",
    ),
    row(
        SentSort::Other,
        Effect::Foreign,
        Critical,
        "a client gets the response to another request",
    ),
    row(
        SentSort::Other,
        Effect::Inherited,
        Critical,
        "a request of one client changes the response to another",
    ),
    // effects on the next request of the connection, which may be that of another client
    row(
        SentSort::Other,
        Effect::OutOfStep,
        Critical,
        "responses no longer match their requests: a client may get the response of another",
    ),
    row(SentSort::Ambiguous, Effect::NextRefused, Critical, CONTENT_PARSED),
    row(SentSort::Other, Effect::ContentParsed, Critical, CONTENT_PARSED),
    row(SentSort::Other, Effect::NextRefused, Medium, NEXT_REFUSED),
    row(SentSort::Other, Effect::BothRefused, Medium, NEXT_REFUSED),
    row(
        SentSort::Ambiguous,
        Effect::NextHangs,
        Critical,
        "the next request is parsed as content of the message: it may be that of another client",
    ),
    row(
        SentSort::Other,
        Effect::NextHangs,
        High,
        "a following valid request on the same connection gets no response",
    ),
    // no complete response
    row(SentSort::Ambiguous, Effect::Hang, Medium, UNREFUSED),
    row(SentSort::Misleading, Effect::Hang, Medium, UNREFUSED),
    row(SentSort::Costly, Effect::Hang, Medium, UNREFUSED),
    row(
        SentSort::Segments,
        Effect::Hang,
        High,
        "there is no response, and the connection is kept open",
    ),
    row(
        SentSort::Other,
        Effect::Hang,
        High,
        "a request gets no response, and its connection is kept open",
    ),
    row(
        SentSort::Other,
        Effect::NoContinue,
        Low,
        "a client that waits for 100 (Continue) before it sends the content gets no response",
    ),
    row(SentSort::Ambiguous, Effect::Unfinished, Medium, UNENDED),
    row(SentSort::Misleading, Effect::Unfinished, Medium, UNENDED),
    row(
        SentSort::Other,
        Effect::Unfinished,
        High,
        "a response begins and does not end: its client waits, and its connection is occupied",
    ),
    row(SentSort::Valid, Effect::Closed, High, UNSERVED),
    row(SentSort::Other, Effect::Closed, Low, SENDER_ONLY),
    row(SentSort::Valid, Effect::NoHttp, High, UNSERVED),
    row(SentSort::Other, Effect::NoHttp, Medium, "an intermediary cannot parse the response"),
    row(SentSort::Valid, Effect::ServerError, High, UNSERVED),
    row(
        SentSort::Other,
        Effect::ServerError,
        Low,
        "the request gets a response, but a server error",
    ),
    row(SentSort::Other, Effect::Slow, Medium, COSTLY),
    // a complete response
    row(SentSort::Valid, Effect::Refused, High, UNSERVED),
    row(SentSort::Other, Effect::Refused, Low, SENDER_ONLY),
    row(
        SentSort::Ambiguous,
        Effect::Answer,
        Critical,
        "the server and an intermediary in front of it may find different requests in the same bytes",
    ),
    row(SentSort::Misleading, Effect::Answer, Medium, MISLED),
    row(SentSort::Costly, Effect::Answer, Medium, COSTLY),
    row(SentSort::Valid, Effect::Answer, High, UNSERVED),
    row(
        SentSort::Replayed,
        Effect::Answer,
        High,
        "an attacker who replays a recorded request executes it again, as its sender",
    ),
    row(
        SentSort::Injected,
        Effect::Answer,
        High,
        "an attacker's link adds fields, or a whole response, to what a browser or a cache receives",
    ),
    row(
        SentSort::Traversing,
        Effect::Answer,
        Critical,
        "a client reads files that the server must not serve",
    ),
    row(SentSort::Kernel, Effect::Answer, Low, KERNEL),
    row(SentSort::Other, Effect::Answer, Low, SENDER_ONLY),
    row(SentSort::Ambiguous, Effect::AnswerClosed, Medium, MISLED),
    row(SentSort::Other, Effect::AnswerClosed, Low, SENDER_ONLY),
];

const CONTENT_PARSED: &str = "bytes of the message are parsed as the start of the next request, \
    which may be that of another client";
const NEXT_REFUSED: &str = "a following valid request on the same connection is refused";
const COSTLY: &str =
    "a client makes the server use far more CPU time or memory than it uses itself";
const UNREFUSED: &str =
    "it is neither processed nor refused: each such connection is occupied until its timeout";
const UNENDED: &str =
    "its response does not end: each such connection is occupied until its timeout";
const UNSERVED: &str = "valid requests fail";
const SENDER_ONLY: &str = "only the client that sends this is affected";
const MISLED: &str = "an intermediary may interpret the message differently";
const KERNEL: &str = "caused by the TCP of the server's kernel, not by the server's program";

/// Returns the rating of an effect. For a processed message whose connection ends, and for the
/// kernel, the row of a processed message applies if there is no particular one.
pub(super) fn rate(sent: SentSort, effect: Effect) -> RatedSeverity {
    let find = |sent: SentSort, effect: Effect| {
        let fits = |row: &&SeverityRow| row.sent == sent && row.effect == effect;
        TABLE.iter().find(fits).map(|row| row.rated)
    };
    let stands_in = effect == Effect::AnswerClosed || sent == SentSort::Kernel;
    let processed = (stands_in && !effect.affects_others()).then(|| find(sent, Effect::Answer));
    find(sent, effect)
        .or(processed.flatten())
        .or_else(|| find(SentSort::Other, effect))
        .expect("the table has a row for every effect")
}
