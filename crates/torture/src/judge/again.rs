//! Judging a conversation by what its case says now, whoever had it and whenever.

use super::{Judgement, Plain, judge, renegotiation};
use crate::case::{Case, Family};
use crate::fuzz;
use crate::fuzz::Shot;
use dialogue::talk::{Talk, TalkScript};

/// Judges the exchange of this name; `None` where the case judges by code, or has no such exchange.
pub fn again(
    case: &Case,
    name: &str,
    script: &TalkScript,
    talk: &Talk,
    plain: &Plain,
) -> Option<Judgement> {
    if let Some(exchange) = case.exchanges.iter().find(|exchange| exchange.name == name) {
        return Some(judge(exchange, case.level, talk, plain));
    }
    // what came of a wish for a new handshake stands in the conversation alone
    if matches!(case.family, Some(Family::TlsAgain(_))) {
        return Some(renegotiation::Wish::of(talk).judgement(true));
    }
    let mutates = matches!(case.family, Some(Family::MutateBodies(_)));
    (mutates || case.fuzz.is_some()).then(|| random(script, talk, plain))
}

/// Judges random data: nothing that a server may do is expected of it.
pub fn random(script: &TalkScript, talk: &Talk, plain: &Plain) -> Judgement {
    let shot = Shot {
        moves: script.steps.clone(),
        methods: script.methods.clone(),
        // data that is no valid request is followed by one that is
        valid: script.follow_up.is_none(),
        follows: script.follow_up.is_some(),
    };
    fuzz::judge(&shot, talk, plain)
}
