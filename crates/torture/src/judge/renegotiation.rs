//! Judges a renegotiation request within a session of TLS 1.2 or earlier.

use super::{ConversationOutcome, Judgement};
use dialogue::hello::{ALERT, HANDSHAKE};
use dialogue::talk::{Talk, TalkEnd};
use sample::FailureClass;

const APPLICATION: u8 = 23;
/// Handshake messages (RFC 5246 section 7.4).
const SERVER_HELLO: u8 = 2;
/// Alerts (RFC 5246 section 7.2).
const CLOSE_NOTIFY: u8 = 0;
const NO_RENEGOTIATION: u8 = 100;

/// Result of the renegotiation request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A ServerHello arrived: the new handshake started.
    Granted,
    /// An alert: its description.
    Refused(u8),
    /// A plain request after it got its usual response.
    Ignored,
    Ended,
    /// No reply, and the connection stays open.
    Unanswered,
    /// There was no TLS 1.2 session.
    NoSession,
    /// No connection, or we closed it.
    Unasked,
}

impl Wish {
    pub fn of(talk: &Talk) -> Wish {
        let first = records(&talk.raw).find_map(|(kind, fragment)| match (kind, fragment) {
            (HANDSHAKE, [SERVER_HELLO, ..]) => Some(Wish::Granted),
            (ALERT, [_, CLOSE_NOTIFY]) => Some(Wish::Ended),
            (ALERT, [_, description]) => Some(Wish::Refused(*description)),
            (APPLICATION, _) => Some(Wish::Ignored),
            _ => None,
        });
        first.unwrap_or(match talk.end {
            TalkEnd::Unconnected(FailureClass::Tls) => Wish::NoSession,
            TalkEnd::Unconnected(_) | TalkEnd::Bounded | TalkEnd::Ours => Wish::Unasked,
            TalkEnd::Closed | TalkEnd::Broken(_) => Wish::Ended,
            TalkEnd::Open | TalkEnd::Silent => Wish::Unanswered,
        })
    }

    pub fn said(self) -> String {
        match self {
            Wish::Granted => "a new handshake starts".to_owned(),
            Wish::Refused(NO_RENEGOTIATION) => "alert no_renegotiation".to_owned(),
            Wish::Refused(description) => format!("alert {description}"),
            Wish::Ignored => "ignored, and the next request gets a response".to_owned(),
            Wish::Ended => "closed".to_owned(),
            Wish::Unanswered => "no response, the connection stays open".to_owned(),
            Wish::NoSession => "no TLS 1.2 session".to_owned(),
            Wish::Unasked => "not requested".to_owned(),
        }
    }

    /// `always`: it was granted on every connection.
    pub fn judge(self, always: bool) -> ConversationOutcome {
        match self {
            Wish::Granted if always => ConversationOutcome::Fail,
            Wish::Granted | Wish::Unanswered => ConversationOutcome::Advisory,
            Wish::Refused(_) | Wish::Ignored | Wish::Ended => ConversationOutcome::Pass,
            Wish::NoSession | Wish::Unasked => ConversationOutcome::Inconclusive,
        }
    }

    pub fn judgement(self, always: bool) -> Judgement {
        Judgement {
            outcome: self.judge(always).into(),
            seen: self.said(),
            expected: "alert no_renegotiation, or a closed connection".to_owned(),
            why: self.why(always).to_owned(),
            kind: None,
        }
    }

    pub fn why(self, always: bool) -> &'static str {
        match self {
            Wish::Granted if always => "every connection may request unlimited handshakes",
            Wish::Granted => "it is sometimes accepted",
            Wish::Unanswered => "the request is neither accepted nor refused",
            _ => "",
        }
    }
}

/// Splits a stream into complete records: type and content.
fn records(mut stream: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [kind, _, _, high, low, rest @ ..] = stream else { return None };
        let (fragment, rest) =
            rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
        stream = rest;
        Some((*kind, fragment))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::talk;
    use super::*;

    fn heard(raw: &[u8], end: TalkEnd) -> Talk {
        Talk { raw: raw.to_vec(), ..talk("", end, None) }
    }

    #[test]
    fn each_wish_is_told_and_judged() {
        let warning = [21, 3, 3, 0, 2, 1, 100];
        let answer = [23, 3, 3, 0, 4, b'H', b'T', b'T', b'P'];
        let both = [warning.as_slice(), &answer].concat();
        let hello = [22, 3, 3, 0, 4, 2, 0, 0, 0];
        let table: [(&[u8], TalkEnd, &str, [ConversationOutcome; 2]); 9] = [
            (&both, TalkEnd::Closed, "alert no_renegotiation", [ConversationOutcome::Pass; 2]),
            (&[21, 3, 3, 0, 2, 2, 10], TalkEnd::Closed, "alert 10", [ConversationOutcome::Pass; 2]),
            (&[21, 3, 3, 0, 2, 1, 0], TalkEnd::Closed, "closed", [ConversationOutcome::Pass; 2]),
            (
                &answer,
                TalkEnd::Closed,
                "ignored, and the next request gets a response",
                [ConversationOutcome::Pass; 2],
            ),
            (&[], TalkEnd::Closed, "closed", [ConversationOutcome::Pass; 2]),
            (
                &hello,
                TalkEnd::Silent,
                "a new handshake starts",
                [ConversationOutcome::Advisory, ConversationOutcome::Fail],
            ),
            // an incomplete record, or none
            (
                &hello[..7],
                TalkEnd::Silent,
                "no response, the connection stays open",
                [ConversationOutcome::Advisory; 2],
            ),
            (
                &[],
                TalkEnd::Unconnected(FailureClass::Tls),
                "no TLS 1.2 session",
                [ConversationOutcome::Inconclusive; 2],
            ),
            (
                &[],
                TalkEnd::Unconnected(FailureClass::Refused),
                "not requested",
                [ConversationOutcome::Inconclusive; 2],
            ),
        ];
        for (raw, end, said, outcomes) in table {
            let wish = Wish::of(&heard(raw, end));
            assert_eq!(wish.said(), said);
            assert_eq!([wish.judge(false), wish.judge(true)], outcomes, "{said}");
        }
    }
}
