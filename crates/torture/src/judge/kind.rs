//! In which way a conversation failed: two failures of one kind may have one cause.

use super::{Plain, broken_server, is_hang, out_of_step};
use dialogue::talk::Talk;

/// A way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// Answered with a status that is the server's own fault.
    Status(u16),
    /// Everything was sent, nothing came back, and the connection stands.
    Hang,
    /// What came back is no HTTP.
    NoHttp,
    /// The answers no longer fit the requests.
    OutOfStep,
    /// Plain requests were not answered as before afterwards.
    Lost,
    /// Answered, though not as the text demands.
    Answer,
}

impl FailureKind {
    /// The way in which this conversation failed, which did.
    pub fn of(talk: &Talk, plain: &Plain) -> FailureKind {
        let fault =
            |status: u16| (500..600).contains(&status) && !matches!(status, 501 | 503 | 505);
        let answers = &talk.replies.answers;
        match answers.iter().find(|answer| fault(answer.status)) {
            Some(answer) if broken_server(talk).is_some() => FailureKind::Status(answer.status),
            _ if is_hang(talk) => FailureKind::Hang,
            _ if answers.is_empty() && talk.replies.junk.is_some() => FailureKind::NoHttp,
            _ if out_of_step(talk, plain).is_some() => FailureKind::OutOfStep,
            _ => FailureKind::Answer,
        }
    }
}

impl std::fmt::Display for FailureKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FailureKind::Status(status) => write!(f, "{status}"),
            FailureKind::Hang => f.write_str("hang"),
            FailureKind::NoHttp => f.write_str("no HTTP"),
            FailureKind::OutOfStep => f.write_str("out of step"),
            FailureKind::Lost => f.write_str("lost"),
            FailureKind::Answer => f.write_str("answer"),
        }
    }
}
