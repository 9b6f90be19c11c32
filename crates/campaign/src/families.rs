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
mod slow;
mod tls;

pub(super) use gone::{HangsSeen, gone_for_good};
pub(super) use limits::{is_as_slow, is_timed, work_of};
pub(super) use overload::Knee;
pub(super) use slow::Meter;

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
    slow::MEMBERS,
    tls::MEMBERS,
    LINT,
];

const LINT: &[Member] =
    &[Member { name: LINT_NAME, run: |runner, _, _, result| runner.linted(result) }];
const LINT_NAME: &str = "lint";

/// What can be said only when all else has been: what every answer looked like.
pub(super) fn is_last(case: &Case) -> bool {
    case.family.as_ref().is_some_and(|family| family.run == LINT_NAME)
}

/// It may cost the server its life, so that it comes behind everything.
pub(super) fn is_fatal(case: &Case) -> bool {
    case.family.as_ref().is_some_and(|family| family.run == gone::NAME)
}

/// It holds what well-behaved clients feel against the quiet server.
pub(super) fn presses(case: &Case) -> bool {
    let run = case.family.as_ref().map(|family| family.run.as_str());
    let pressing = || press::MEMBERS.iter().chain(overload::MEMBERS).chain(frames::MEMBERS);
    run.is_some_and(|run| pressing().any(|member| member.name == run))
}

/// It holds a slow state, with those of all others where the server has room for them.
pub fn is_slow(case: &Case) -> bool {
    case.family.as_ref().is_some_and(|family| slow::SlowState::named(&family.run).is_some())
}

/// It is over soon, and finds again by itself what it found: a replay carries it out anew.
pub(super) fn is_brisk(case: &Case) -> bool {
    let brisk = connection::MEMBERS.iter().chain(mixed::MEMBERS);
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
