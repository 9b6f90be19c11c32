//! In which way a conversation failed: two failures of one kind may have one cause.

use super::{Plain, broken_server, is_hang, out_of_step};
use dialogue::http2::FOLLOW_UP;
use dialogue::replies::Response;
use dialogue::talk::Talk;

/// A way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// Answered with a status that is the server's own fault.
    Status(u16),
    /// Everything was sent, nothing came back, and the connection stays open.
    Hang,
    /// What came back is no HTTP.
    NoHttp,
    /// The responses no longer fit the requests.
    OutOfStep,
    /// Plain requests were not answered as before afterwards.
    Lost,
    /// It fails behind what another client said before, and by itself does not.
    Inherited,
    /// The response to another request came.
    Foreign,
    /// Answered, after more time than its size can explain.
    Slow,
    /// Answered, though not as the text demands.
    Answer,
}

impl FailureKind {
    /// All but the statuses.
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

    /// As it is shown: `hang`, `500`.
    pub fn named(text: &str) -> Option<FailureKind> {
        let named = FailureKind::NAMED.into_iter().find(|kind| kind.to_string() == text);
        named.or_else(|| text.parse().ok().map(FailureKind::Status))
    }

    /// The way in which this conversation failed, which did.
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

/// Over HTTP/2 the follow-up got no response: that it got none is not that it got another's.
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
