//! A client that requests a renegotiation within its session, which TLS up to 1.2 permits.

use crate::{Runner, habits};
use dialogue::talk::{Move, Talk, TalkScript};
use torture::case::{Case, TlsAgain};
use torture::judge::Judgement;
use torture::judge::renegotiation::Renegotiation;
use torture::record::Execution;
use torture::result::{CaseResult, ExchangeResult};
use units::Nanos;

/// Name of the exchange.
const NAME: &str = "requested by the client";
/// Maximum response bytes in the report: the header and the start of a ServerHello.
const RECEIVED_SHOWN: usize = 48;
/// Pause between the renegotiation request and a plain request: a server that ignores the former
/// responds to the latter.
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
    let talks = runner.play_all(vec![script.clone(); with.connections as usize]);
    let results: Vec<Renegotiation> = talks.iter().map(Renegotiation::new).collect();
    if results.iter().all(|result| *result == Renegotiation::NoSession) {
        return result.skip("it does not support TLS 1.2; later versions have no renegotiation");
    }
    let granted = results.iter().filter(|result| **result == Renegotiation::Granted).count();
    let always = granted == results.len();
    let mut worst: Option<(Judgement, &Talk)> = None;
    for (index, (result, talk)) in results.iter().zip(&talks).enumerate() {
        let judgement = result.judgement(always);
        let attempt = index as u32 + 1;
        let judged = &judgement;
        let execution =
            Execution { case, name: NAME, attempt, script: &script, talk, judgement: judged };
        runner.report_conversation(&execution);
        if worst.as_ref().is_none_or(|(worst, _)| worst.outcome < judgement.outcome) {
            worst = Some((judgement, talk));
        }
    }
    let Some((judgement, talk)) = worst else { return };
    result.show(judgement.outcome);
    if granted > 0 {
        let host = &runner.target.values.host;
        result.notes.push(format!(
            "to reproduce: run openssl s_client -tls1_2 -connect {host} and type R on a line by \
            itself"
        ));
    }
    result.exchanges.push(ExchangeResult {
        name: NAME.to_owned(),
        judgement,
        tries: results.len() as u32,
        failed: granted as u32,
        // it was encrypted: the same bytes cannot be sent again
        sent: Vec::new(),
        received: talk.raw.iter().take(RECEIVED_SHOWN).copied().collect(),
        took: talk.over,
        pauses: Vec::new(),
    });
}
