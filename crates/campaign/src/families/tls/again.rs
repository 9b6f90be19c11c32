//! A client that asks for a new handshake within its session, as TLS up to 1.2 lets it.

use crate::{Runner, habits};
use dialogue::talk::{Move, Talk, TalkScript};
use torture::case::{Case, TlsAgain};
use torture::judge::Judgement;
use torture::judge::renegotiation::Wish;
use torture::record::Execution;
use torture::result::{CaseResult, ExchangeResult};
use units::Nanos;

/// What the exchange is called.
const NAME: &str = "asked for by the client";
/// Bytes of what came back that the report has: the header and the beginning of a ServerHello.
const RECEIVED_SHOWN: usize = 48;
/// Between the wish and a plain request: whoever ignores the wish answers that.
const THEN: Nanos = Nanos::from_millis(500);

pub(in crate::families) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &TlsAgain,
    result: &mut CaseResult,
) {
    let request = habits::plain_request(runner.target, "Connection: close\r\n");
    let steps = vec![Move::Renegotiate, Move::Pause(THEN), Move::Send(request)];
    let script = TalkScript { hold: true, ..runner.bare(steps, with.wait) };
    let talks = runner.together(vec![script.clone(); with.connections as usize]);
    let wishes: Vec<Wish> = talks.iter().map(Wish::of).collect();
    if wishes.iter().all(|wish| *wish == Wish::NoSession) {
        return result.skip("it agrees on no TLS 1.2; later versions know no such thing");
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
        runner.told(&execution);
        if worst.as_ref().is_none_or(|(worst, _)| worst.outcome < judgement.outcome) {
            worst = Some((judgement, talk));
        }
    }
    let Some((judgement, talk)) = worst else { return };
    result.show(judgement.outcome);
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
        pauses: Vec::new(),
    });
}
