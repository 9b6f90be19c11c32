//! Cases that are code: what needs time, many connections or a search. Their parameters are in the
//! same files as those of all other cases.

mod connection;
mod escalate;
mod frames;
mod gone;
mod limits;
mod mixed;
mod mutate;
mod overload;
mod pages;
mod press;
mod segments;
mod slow;
mod tls;

pub(super) use gone::{HangsSeen, family as hang_family, gone_for_good};
pub(super) use limits::{is_as_slow, is_timed, work_of};
pub(super) use overload::Knee;
pub(super) use slow::{Meter, are_beside};

use super::Runner;
use torture::case::{Case, Family};
use torture::result::CaseResult;

/// A family of cases: what its file calls it, what its file must give it, and its code.
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
}

/// Carries a case out, and says in the result what came of it.
pub(crate) type Run = fn(&mut Runner<'_>, &Case, &Family, &mut CaseResult);

/// Every family, a list per file.
const ALL: &[&[Member]] = &[
    connection::MEMBERS,
    escalate::MEMBERS,
    frames::MEMBERS,
    gone::MEMBERS,
    limits::MEMBERS,
    mixed::MEMBERS,
    mutate::MEMBERS,
    overload::MEMBERS,
    pages::MEMBERS,
    press::MEMBERS,
    segments::HOLDING,
    segments::MEMBERS,
    slow::MEMBERS,
    tls::MEMBERS,
    LINT,
];

const LINT: &[Member] =
    &[Member { name: LINT_NAME, run: |runner, _, _, result| runner.linted(result) }];
const LINT_NAME: &str = "lint";

/// What can be said only when all else has been: what every response looked like.
fn is_last(case: &Case) -> bool {
    case.family.as_ref().is_some_and(|family| family.run == LINT_NAME)
}

/// Where a case comes: `beside` says that states are held beside the cases, which are waited for as late
/// as can be, and before anything comes that may have the server end them.
pub(super) fn place(case: &Case, beside: bool) -> u8 {
    match (is_last(case), beside) {
        (true, _) => 3,
        (false, true) if is_crowd(case) => 2,
        (false, true) if awaits_states(case) => 1,
        (false, _) => 0,
    }
}

/// It may cost the server its life, so that it comes behind everything.
pub(super) fn is_fatal(case: &Case) -> bool {
    case.family.as_ref().is_some_and(|family| family.run == gone::NAME)
}

/// It holds many connections at once, which may have the server end those of others.
pub(super) fn is_crowd(case: &Case) -> bool {
    let run = case.family.as_ref().map(|family| family.run.as_str());
    presses(case) && !run.is_some_and(|run| press::BRIEF.contains(&run))
}

/// It says what became of states that were held, its own or those of others.
pub(super) fn awaits_states(case: &Case) -> bool {
    is_slow(case) || case.family.as_ref().is_some_and(|family| family.run == slow::SUMMARY)
}

/// It holds what well-behaved clients observe against the quiet server.
pub(super) fn presses(case: &Case) -> bool {
    let run = case.family.as_ref().map(|family| family.run.as_str());
    let pressing = || {
        let others = frames::MEMBERS.iter().chain(segments::HOLDING);
        press::MEMBERS.iter().chain(overload::MEMBERS).chain(others)
    };
    run.is_some_and(|run| pressing().any(|member| member.name == run))
}

/// It holds a slow state, with those of all others where the server has room for them.
pub(super) fn is_slow(case: &Case) -> bool {
    case.family.as_ref().is_some_and(|family| slow::SlowState::named(&family.run).is_some())
}

/// It is over soon, and finds again by itself what it found: a replay carries it out anew.
pub(super) fn is_brisk(case: &Case) -> bool {
    let brisk = connection::MEMBERS.iter().chain(mixed::MEMBERS).chain(segments::MEMBERS);
    let mut names = brisk.map(|member| member.name);
    case.family.as_ref().is_some_and(|family| names.any(|name| name == family.run))
}

/// Its exchanges fail by what no request may cause: a fault of the server's own, or a hang.
pub(super) fn fails_plainly(case: &Case) -> bool {
    let plain = limits::MEMBERS.iter().chain(mutate::MEMBERS);
    let mut names = plain.map(|member| member.name);
    case.family.as_ref().is_some_and(|family| names.any(|name| name == family.run))
}

/// The family of this name.
pub(crate) fn named(name: &str) -> Option<&'static Member> {
    ALL.iter().flat_map(|list| list.iter()).find(|member| member.name == name)
}

pub(super) fn run(runner: &mut Runner<'_>, case: &Case, family: &Family, result: &mut CaseResult) {
    // the reader of cases knows every name
    if let Some(member) = named(&family.run) {
        (member.run)(runner, case, family, result);
        if presses(case) {
            runner.look_for_leak(case, result);
        }
    }
}
