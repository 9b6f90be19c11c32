//! A client that asks for a new handshake within its session, as TLS up to 1.2 lets it.

use crate::case::{Case, Family};
use crate::hello::{ALERT, HANDSHAKE};
use crate::judge::{Judgement, Outcome};
use crate::session::{CaseResult, ExchangeResult, Execution, Runner, habits};
use crate::talk::{End, Move, Script, Talk};
use sample::FailureClass;
use units::Nanos;

/// What case files call this.
pub(crate) const WISH: &str = "tls.again";
/// What the exchange is called.
const NAME: &str = "asked for by the client";
/// Bytes of what came back that the report has: the header and the beginning of a ServerHello.
const RECEIVED_SHOWN: usize = 48;
const APPLICATION: u8 = 23;
/// Handshake messages (RFC 5246 section 7.4).
const SERVER_HELLO: u8 = 2;
/// Alerts (RFC 5246 section 7.2).
const CLOSE_NOTIFY: u8 = 0;
const NO_RENEGOTIATION: u8 = 100;
/// Between the wish and a plain request: whoever ignores the wish answers that.
const THEN: Nanos = Nanos::from_millis(500);

/// What came of the wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// A ServerHello came: the new handshake has begun.
    Granted,
    /// An alert: its description.
    Refused(u8),
    /// A plain request behind it was answered as if it had not been.
    Ignored,
    Ended,
    /// Nothing came, and the connection stands.
    Unanswered,
    /// There was no session of TLS 1.2 to ask it in.
    NoSession,
    /// No connection, or it was ended by us.
    Unasked,
}

impl Wish {
    fn of(talk: &Talk) -> Wish {
        let first = records(&talk.raw).find_map(|(kind, fragment)| match (kind, fragment) {
            (HANDSHAKE, [SERVER_HELLO, ..]) => Some(Wish::Granted),
            (ALERT, [_, CLOSE_NOTIFY]) => Some(Wish::Ended),
            (ALERT, [_, description]) => Some(Wish::Refused(*description)),
            (APPLICATION, _) => Some(Wish::Ignored),
            _ => None,
        });
        first.unwrap_or(match talk.end {
            End::Unconnected(FailureClass::Tls) => Wish::NoSession,
            End::Unconnected(_) | End::Bounded | End::Ours => Wish::Unasked,
            End::Closed | End::Broken(_) => Wish::Ended,
            End::Open | End::Silent => Wish::Unanswered,
        })
    }

    fn said(self) -> String {
        match self {
            Wish::Granted => "a new handshake begins".to_owned(),
            Wish::Refused(NO_RENEGOTIATION) => "alert no_renegotiation".to_owned(),
            Wish::Refused(description) => format!("alert {description}"),
            Wish::Ignored => "ignored, and the next request is answered".to_owned(),
            Wish::Ended => "closed".to_owned(),
            Wish::Unanswered => "nothing, and the connection stands".to_owned(),
            Wish::NoSession => "no session of TLS 1.2".to_owned(),
            Wish::Unasked => "not asked".to_owned(),
        }
    }

    /// `always`: it was granted on every connection.
    fn judge(self, always: bool) -> Outcome {
        match self {
            Wish::Granted if always => Outcome::Fail,
            Wish::Granted | Wish::Unanswered => Outcome::Advisory,
            Wish::Refused(_) | Wish::Ignored | Wish::Ended => Outcome::Pass,
            Wish::NoSession | Wish::Unasked => Outcome::Inconclusive,
        }
    }

    fn judgement(self, always: bool) -> Judgement {
        Judgement {
            outcome: self.judge(always),
            seen: self.said(),
            expected: "alert no_renegotiation, or an end".to_owned(),
            why: self.why(always).to_owned(),
        }
    }

    fn why(self, always: bool) -> &'static str {
        match self {
            Wish::Granted if always => "every connection may ask for handshakes without end",
            Wish::Granted => "it is granted now and then",
            Wish::Unanswered => "the wish is neither granted nor refused",
            _ => "",
        }
    }
}

/// Judges a conversation that was kept; each try of a replay is one of those that were granted.
pub(crate) fn wish(talk: &Talk) -> Judgement {
    Wish::of(talk).judgement(true)
}

pub(super) fn run(runner: &mut Runner<'_>, case: &Case, family: &Family, result: &mut CaseResult) {
    let request = habits::plain_request(runner.target, "Connection: close\r\n");
    let steps = vec![Move::Renegotiate, Move::Pause(THEN), Move::Send(request)];
    let script = Script { hold: true, ..runner.bare(steps, family.span("wait")) };
    let talks = runner.together(vec![script.clone(); family.count("connections") as usize]);
    let wishes: Vec<Wish> = talks.iter().map(Wish::of).collect();
    if wishes.iter().all(|wish| *wish == Wish::NoSession) {
        result.outcome = Outcome::Skipped;
        result.skipped =
            Some("it agrees on no TLS 1.2; later versions know no such thing".to_owned());
        return;
    }
    let granted = wishes.iter().filter(|wish| **wish == Wish::Granted).count();
    let always = granted == wishes.len();
    let mut worst: Option<(Judgement, &Talk)> = None;
    for (index, (wish, talk)) in wishes.iter().zip(&talks).enumerate() {
        let judgement = wish.judgement(always);
        let attempt = index as u32 + 1;
        let judged = &judgement;
        let execution =
            Execution { case, name: NAME, attempt, script: &script, talk, judgement: judged };
        runner.watcher.execution(&execution);
        if worst.as_ref().is_none_or(|(worst, _)| worst.outcome < judgement.outcome) {
            worst = Some((judgement, talk));
        }
    }
    let Some((judgement, talk)) = worst else { return };
    result.outcome = result.outcome.max(judgement.outcome);
    if granted > 0 {
        let host = &runner.target.values.host;
        result.notes.push(format!(
            "openssl s_client -tls1_2 -connect {host} asks for it too, where a line of one R is typed"
        ));
    }
    result.exchanges.push(ExchangeResult {
        name: NAME.to_owned(),
        judgement,
        tries: wishes.len() as u32,
        failed: granted as u32,
        // it was encrypted: nobody can send the same bytes again
        sent: Vec::new(),
        received: talk.raw.iter().take(RECEIVED_SHOWN).copied().collect(),
        took: talk.over,
    });
}

/// Whole records: their types, and what stands behind their headers.
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

    #[test]
    fn each_wish_is_told_and_judged() {
        let warning = [21, 3, 3, 0, 2, 1, 100];
        let answer = [23, 3, 3, 0, 4, b'H', b'T', b'T', b'P'];
        let both = [warning.as_slice(), &answer].concat();
        let hello = [22, 3, 3, 0, 4, 2, 0, 0, 0];
        let table: [(&[u8], End, &str, [Outcome; 2]); 9] = [
            (&both, End::Closed, "alert no_renegotiation", [Outcome::Pass; 2]),
            (&[21, 3, 3, 0, 2, 2, 10], End::Closed, "alert 10", [Outcome::Pass; 2]),
            (&[21, 3, 3, 0, 2, 1, 0], End::Closed, "closed", [Outcome::Pass; 2]),
            (&answer, End::Closed, "ignored, and the next request is answered", [Outcome::Pass; 2]),
            (&[], End::Closed, "closed", [Outcome::Pass; 2]),
            (&hello, End::Silent, "a new handshake begins", [Outcome::Advisory, Outcome::Fail]),
            // a record that has not come whole, nothing at all
            (
                &hello[..7],
                End::Silent,
                "nothing, and the connection stands",
                [Outcome::Advisory; 2],
            ),
            (
                &[],
                End::Unconnected(FailureClass::Tls),
                "no session of TLS 1.2",
                [Outcome::Inconclusive; 2],
            ),
            (&[], End::Unconnected(FailureClass::Refused), "not asked", [Outcome::Inconclusive; 2]),
        ];
        for (raw, end, said, outcomes) in table {
            let wish = Wish::of(&talk(raw, end));
            assert_eq!(wish.said(), said);
            assert_eq!([wish.judge(false), wish.judge(true)], outcomes, "{said}");
        }
    }
}
