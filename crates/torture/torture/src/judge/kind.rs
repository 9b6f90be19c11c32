//! How a conversation failed: two failures of one kind may have the same cause.

use super::{Plain, broken_server, is_hang, out_of_step};
use dialogue::http2::FOLLOW_UP;
use dialogue::replies::Response;
use dialogue::talk::Talk;

/// A kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// A response with a status that reports a server error.
    Status(u16),
    /// Everything was sent, there was no response, and the connection stays open.
    Hang,
    /// The response is not HTTP.
    NoHttp,
    /// Responses no longer match requests.
    OutOfStep,
    /// Afterwards plain requests did not get their usual response.
    Lost,
    /// It fails after a request of another client, but not alone.
    Inherited,
    /// The response of another request was received.
    Foreign,
    /// The response took more time than its size can explain.
    Slow,
    /// The response violates the specification.
    Answer,
}

impl FailureKind {
    /// All kinds except statuses.
    pub const NAMED: [FailureKind; 8] = [
        FailureKind::Hang,
        FailureKind::NoHttp,
        FailureKind::OutOfStep,
        FailureKind::Lost,
        FailureKind::Inherited,
        FailureKind::Foreign,
        FailureKind::Slow,
        FailureKind::Answer,
    ];

    /// Parses the shown form: `hang`, `500`.
    pub fn named(text: &str) -> Option<FailureKind> {
        let named = FailureKind::NAMED.into_iter().find(|kind| kind.to_string() == text);
        named.or_else(|| text.parse().ok().map(FailureKind::Status))
    }

    /// Returns how this failed conversation failed.
    pub fn of(talk: &Talk, plain: &Plain) -> FailureKind {
        let fault =
            |status: u16| (500..600).contains(&status) && !matches!(status, 501 | 503 | 505);
        let answers = &talk.replies.responses;
        match answers.iter().find(|answer| fault(answer.status)) {
            Some(answer) if broken_server(talk).is_some() => FailureKind::Status(answer.status),
            _ if is_hang(talk) => FailureKind::Hang,
            _ if answers.is_empty() && talk.replies.junk.is_some() => FailureKind::NoHttp,
            _ if followed_by_nothing(talk) && out_of_step(talk, plain).is_some() => {
                FailureKind::Hang
            }
            _ if out_of_step(talk, plain).is_some() => FailureKind::OutOfStep,
            _ => FailureKind::Answer,
        }
    }
}

/// Returns whether the follow-up got no response over HTTP/2, which is different from a wrong one.
fn followed_by_nothing(talk: &Talk) -> bool {
    let whole = |answer: &Response| answer.stream == FOLLOW_UP && answer.complete;
    talk.replies.frames.is_some() && !talk.replies.responses.iter().any(whole)
}

impl std::fmt::Display for FailureKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FailureKind::Status(status) => write!(f, "{status}"),
            FailureKind::Hang => f.write_str("hang"),
            FailureKind::NoHttp => f.write_str("no HTTP"),
            FailureKind::OutOfStep => f.write_str("out of step"),
            FailureKind::Lost => f.write_str("lost"),
            FailureKind::Inherited => f.write_str("inherited"),
            FailureKind::Foreign => f.write_str("foreign"),
            FailureKind::Slow => f.write_str("slow"),
            FailureKind::Answer => f.write_str("answer"),
        }
    }
}
