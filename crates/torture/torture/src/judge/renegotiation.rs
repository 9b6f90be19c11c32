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
pub enum Renegotiation {
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

impl Renegotiation {
    pub fn new(talk: &Talk) -> Renegotiation {
        let first = records(&talk.raw).find_map(|(kind, fragment)| match (kind, fragment) {
            (HANDSHAKE, [SERVER_HELLO, ..]) => Some(Renegotiation::Granted),
            (ALERT, [_, CLOSE_NOTIFY]) => Some(Renegotiation::Ended),
            (ALERT, [_, description]) => Some(Renegotiation::Refused(*description)),
            (APPLICATION, _) => Some(Renegotiation::Ignored),
            _ => None,
        });
        first.unwrap_or(match talk.end {
            TalkEnd::Unconnected(FailureClass::Tls) => Renegotiation::NoSession,
            TalkEnd::Unconnected(_) | TalkEnd::Bounded | TalkEnd::Ours => Renegotiation::Unasked,
            TalkEnd::Closed | TalkEnd::Broken(_) => Renegotiation::Ended,
            TalkEnd::Open | TalkEnd::Silent => Renegotiation::Unanswered,
        })
    }

    pub fn description(self) -> String {
        match self {
            Renegotiation::Granted => "a new handshake starts".to_owned(),
            Renegotiation::Refused(NO_RENEGOTIATION) => "alert no_renegotiation".to_owned(),
            Renegotiation::Refused(description) => format!("alert {description}"),
            Renegotiation::Ignored => "ignored, and the next request gets a response".to_owned(),
            Renegotiation::Ended => "closed".to_owned(),
            Renegotiation::Unanswered => "no response, the connection stays open".to_owned(),
            Renegotiation::NoSession => "no TLS 1.2 session".to_owned(),
            Renegotiation::Unasked => "not requested".to_owned(),
        }
    }

    /// Judges the server.
    /// `always`: it was granted on every connection.
    pub fn judge(self, always: bool) -> ConversationOutcome {
        match self {
            Renegotiation::Granted if always => ConversationOutcome::Fail,
            Renegotiation::Granted | Renegotiation::Unanswered => ConversationOutcome::Advisory,
            Renegotiation::Refused(_) | Renegotiation::Ignored | Renegotiation::Ended => {
                ConversationOutcome::Pass
            }
            Renegotiation::NoSession | Renegotiation::Unasked => ConversationOutcome::Inconclusive,
        }
    }

    pub fn judgement(self, always: bool) -> Judgement {
        Judgement {
            outcome: self.judge(always).into(),
            seen: self.description(),
            expected: "alert no_renegotiation, or a closed connection".to_owned(),
            why: self.why(always).to_owned(),
            ..Judgement::default()
        }
    }

    pub fn why(self, always: bool) -> &'static str {
        match self {
            Renegotiation::Granted if always => "every connection may request unlimited handshakes",
            Renegotiation::Granted => "it is sometimes accepted",
            Renegotiation::Unanswered => "the request is neither accepted nor refused",
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
    fn each_renegotiation_result_is_described_and_judged() {
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
        for (raw, end, description, outcomes) in table {
            let renegotiation = Renegotiation::new(&heard(raw, end));
            assert_eq!(renegotiation.description(), description);
            assert_eq!(
                [renegotiation.judge(false), renegotiation.judge(true)],
                outcomes,
                "{description}"
            );
        }
    }
}
