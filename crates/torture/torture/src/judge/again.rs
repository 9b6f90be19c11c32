//! Judges a recorded conversation by the current version of its case.

use super::{Judgement, Plain, judge, renegotiation};
use crate::case::{Case, Family};
use crate::fuzz;
use crate::fuzz::Shot;
use crate::result::is_accused;
use dialogue::talk::{Talk, TalkScript};

/// Judges the exchange with this name; `None` if the case is judged by code, has no such exchange,
/// or if the conversation is accused of a failure of other clients.
pub fn again(
    case: &Case,
    name: &str,
    script: &TalkScript,
    talk: &Talk,
    plain: &Plain,
) -> Option<Judgement> {
    if is_accused(name) {
        return None;
    }
    if let Some(exchange) = case.exchanges.iter().find(|exchange| exchange.name == name) {
        return Some(judge(exchange, case.level, talk, plain));
    }
    // the result of a renegotiation request is visible in the conversation only
    if matches!(case.family, Some(Family::TlsAgain(_))) {
        return Some(renegotiation::Renegotiation::new(talk).judgement(true));
    }
    let mutates = matches!(case.family, Some(Family::MutateBodies(_)));
    (mutates || case.fuzz.is_some()).then(|| random(script, talk, plain))
}

/// Judges random data, which has no expected outcome.
pub fn random(script: &TalkScript, talk: &Talk, plain: &Plain) -> Judgement {
    let shot = Shot {
        moves: script.steps.clone(),
        methods: script.methods.clone(),
        // invalid data is followed by a valid request
        valid: script.follow_up.is_none(),
        follows: script.follow_up.is_some(),
    };
    fuzz::judge(&shot, talk, plain)
}
