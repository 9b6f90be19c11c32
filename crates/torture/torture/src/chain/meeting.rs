//! Interpretation of one message of the proxy by a server.

use crate::judge;
use crate::judge::Plain;
use dialogue::talk::{Talk, TalkEnd};

/// Number of requests that the server finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// The server finds one message, like the proxy.
    Agrees,
    /// The server refuses it and closes the connection.
    Refuses,
    /// Less than one: it waits for more, which would be the next client's request.
    Waits,
    /// The server finds more than one message.
    FindsMore,
    /// Inconclusive.
    Unlearned,
}

impl Meeting {
    pub const ALL: [Meeting; 5] =
        [Meeting::Agrees, Meeting::Refuses, Meeting::Waits, Meeting::FindsMore, Meeting::Unlearned];

    pub fn id(self) -> &'static str {
        match self {
            Meeting::Agrees => "agrees",
            Meeting::Refuses => "refuses",
            Meeting::Waits => "waits",
            Meeting::FindsMore => "finds-more",
            Meeting::Unlearned => "unlearned",
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Meeting::Agrees => "finds the same request",
            Meeting::Refuses => "refuses it and ends the connection",
            Meeting::Waits => "waits for more: the next client's request would become its content",
            Meeting::FindsMore => "finds another request inside it, or after it",
            Meeting::Unlearned => "was not received",
        }
    }

    pub fn is_disagreement(self) -> bool {
        matches!(self, Meeting::Waits | Meeting::FindsMore)
    }

    /// Judges a conversation that sent the message directly to the server, with a valid request
    /// after it.
    pub fn new(talk: &Talk, plain: &Plain) -> Meeting {
        let responses = talk.replies.responses.len();
        let own = talk.before_follow_up.unwrap_or(responses).min(responses);
        match talk.end {
            TalkEnd::Unconnected(_) | TalkEnd::Bounded | TalkEnd::Ours => Meeting::Unlearned,
            _ if own > 1 => Meeting::FindsMore,
            _ if judge::out_of_step(talk, plain).is_some() => Meeting::FindsMore,
            TalkEnd::Closed | TalkEnd::Broken(_) if own == 0 => Meeting::Refuses,
            TalkEnd::Closed | TalkEnd::Broken(_) if refused(talk) => Meeting::Refuses,
            _ if own == 0 => Meeting::Waits,
            _ => Meeting::Agrees,
        }
    }
}

fn refused(talk: &Talk) -> bool {
    talk.replies.responses.first().is_some_and(|response| response.status >= 400)
}
