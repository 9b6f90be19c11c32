//! Cases implemented in code: those that need time, many connections or a search. The case files
//! contain their parameters.

mod connection;
mod escalate;
mod frames;
mod gone;
mod growth;
mod limits;
mod mixed;
mod mutate;
mod overload;
mod pages;
mod press;
pub(crate) mod random;
mod segments;
mod slow;
mod tls;

pub(super) use gone::{describe_lost_workers, repeat_hang, repeats as hang_repeats};
pub(super) use limits::is_timed;
pub(super) use slow::{
    handle_case_end, hold_in_background, is_given, is_in_background, release_background,
    run_in_background,
};

use crate::{Runner, leak};
use torture::case::{Case, Family};
use torture::result::CaseResult;

/// Common properties of families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FamilySort {
    /// Short case that reproduces its findings: a replay runs it again.
    Brisk,
    /// Case whose exchanges fail only by a result that no request may cause: a server error, or a
    /// hang.
    Plain,
    /// Many open connections, with probes alongside.
    Press,
    /// Many connections opened and closed, with probes alongside.
    PressInPassing,
    Overload,
    /// Frames or segments, with probes alongside.
    Flood,
    /// Held state, held together with all others if the server has room for them.
    Slow,
    /// The summary of all slow states.
    Deadlines,
    /// The case may crash the server.
    Fatal,
    /// Case that needs the responses of all other cases.
    Last,
    /// Any other case.
    Other,
}

fn family_sort(family: &Family) -> FamilySort {
    match family {
        Family::ConnectionBytes(_)
        | Family::ConnectionSamePort(_)
        | Family::ConnectionSplits(_)
        | Family::Mixed(_)
        | Family::SegmentsCuts(_)
        | Family::SegmentsOverlap(_) => FamilySort::Brisk,
        Family::LimitBody(_)
        | Family::LimitChunks(_)
        | Family::LimitDeclared(_)
        | Family::LimitFields(_)
        | Family::LimitHead(_)
        | Family::LimitMethod(_)
        | Family::LimitName(_)
        | Family::LimitPairs(_)
        | Family::LimitPipeline(_)
        | Family::LimitRanges(_)
        | Family::LimitRequests(_)
        | Family::LimitTarget(_)
        | Family::LimitTrailers(_)
        | Family::LimitValue(_)
        | Family::MutateBodies(_) => FamilySort::Plain,
        Family::PressBurst(_) | Family::PressHeld(_) | Family::PressHonest(_) => FamilySort::Press,
        Family::PressEnds(_)
        | Family::PressKeepAlive(_)
        | Family::PressRate(_)
        | Family::PressResets(_) => FamilySort::PressInPassing,
        Family::OverloadHeld(_)
        | Family::OverloadMixed(_)
        | Family::OverloadRestart(_)
        | Family::OverloadSoak(_)
        | Family::OverloadSpike(_)
        | Family::OverloadStarve(_)
        | Family::OverloadStorm(_) => FamilySort::Overload,
        Family::Frames(_) | Family::SegmentsHeld(_) => FamilySort::Flood,
        Family::SlowBody(_)
        | Family::SlowBodyDripped(_)
        | Family::SlowHandshake(_)
        | Family::SlowHead(_)
        | Family::SlowHeadDripped(_)
        | Family::SlowIdle(_)
        | Family::SlowSilent(_)
        | Family::SlowSipped(_)
        | Family::SlowUnread(_) => FamilySort::Slow,
        Family::LimitDeadlines => FamilySort::Deadlines,
        Family::HangGone(_) => FamilySort::Fatal,
        Family::Growth(_) | Family::Lint => FamilySort::Last,
        Family::Escalate(_)
        | Family::Pages(_)
        | Family::TlsAgain(_)
        | Family::TlsHandshakes(_)
        | Family::TlsPieces(_)
        | Family::TlsRecords(_)
        | Family::TlsSilent(_) => FamilySort::Other,
    }
}

/// Returns the kind of a case implemented in code.
fn sort(case: &Case) -> Option<FamilySort> {
    case.family.as_ref().map(family_sort)
}

/// Position of cases that await held states.
const AWAITED: u8 = 2;

/// Returns the position of a case in the run. Single conversations come first: they show most for
/// their time, which may be limited. `beside`: slow states are held during other cases. They are
/// awaited as late as possible, but before cases that may make the server close them.
pub(super) fn place(case: &Case, beside: bool) -> u8 {
    match (sort(case) == Some(FamilySort::Last), beside) {
        (true, _) => 4,
        (false, true) if is_crowd(case) => 3,
        (false, true) if awaits_states(case) => AWAITED,
        (false, _) if case.exchanges.is_empty() => 1,
        (false, _) => 0,
    }
}

/// Returns whether it runs before the states held during other cases are awaited.
pub(super) fn precedes_states(case: &Case) -> bool {
    place(case, true) < AWAITED
}

/// Returns whether it may crash the server, so that it runs last.
pub(super) fn is_fatal(case: &Case) -> bool {
    sort(case) == Some(FamilySort::Fatal)
}

/// Returns whether the case holds many connections at once, which may make the server close others.
pub(super) fn is_crowd(case: &Case) -> bool {
    applies_load(case) && sort(case) != Some(FamilySort::PressInPassing)
}

/// Returns whether the case reports on held states of its own or of other cases.
pub(super) fn awaits_states(case: &Case) -> bool {
    matches!(sort(case), Some(FamilySort::Slow | FamilySort::Deadlines))
}

/// Returns whether it compares well-behaved clients with the baseline.
pub(super) fn applies_load(case: &Case) -> bool {
    let pressing = matches!(sort(case), Some(FamilySort::Overload | FamilySort::Flood));
    pressing || holds_connections(case)
}

/// Returns whether each of its conversations is judged separately: the case applies no load and
/// does not concern the whole run.
pub(super) fn is_judged_by_conversation(case: &Case) -> bool {
    !applies_load(case) && sort(case) != Some(FamilySort::Last)
}

/// Returns whether its load is the number of connections.
fn holds_connections(case: &Case) -> bool {
    matches!(sort(case), Some(FamilySort::Press | FamilySort::PressInPassing))
}

/// Returns whether the case holds a slow state.
pub(super) fn is_slow(case: &Case) -> bool {
    sort(case) == Some(FamilySort::Slow)
}

/// Returns whether a replay runs it again.
pub(super) fn is_replayable(case: &Case) -> bool {
    sort(case) == Some(FamilySort::Brisk)
}

/// Returns whether its exchanges fail only by a result that no request may cause.
pub(super) fn fails_without_expectations(case: &Case) -> bool {
    sort(case) == Some(FamilySort::Plain)
}

/// Runs a case and records the result.
pub(super) fn run(runner: &mut Runner<'_>, case: &Case, family: &Family, result: &mut CaseResult) {
    run_family(runner, case, family, result);
    if applies_load(case) {
        leak::detect(runner, case, result);
    }
}

fn run_family(runner: &mut Runner<'_>, case: &Case, family: &Family, result: &mut CaseResult) {
    match family {
        Family::ConnectionBytes(with) => connection::single_bytes(runner, case, with, result),
        Family::ConnectionSamePort(with) => connection::same_port(runner, case, with, result),
        Family::ConnectionSplits(with) => connection::splits(runner, case, with, result),
        Family::Escalate(with) => escalate::run(runner, case, with, result),
        Family::Frames(with) => frames::run(runner, case, with, result),
        Family::Growth(with) => growth::run(runner, case, with, result),
        Family::HangGone(with) => gone::run(runner, case, with, result),
        Family::LimitBody(with) => limits::bodies::body(runner, case, with, result),
        Family::LimitChunks(with) => limits::bodies::chunks(runner, case, with, result),
        Family::LimitDeadlines => slow::summary(runner, result),
        Family::LimitDeclared(with) => limits::bodies::declared(runner, case, with, result),
        Family::LimitFields(with) => limits::heads::fields(runner, case, with, result),
        Family::LimitHead(with) => limits::heads::head(runner, case, with, result),
        Family::LimitMethod(with) => limits::overlaps::run(runner, case, with, result),
        Family::LimitName(with) => limits::heads::name(runner, case, with, result),
        Family::LimitPairs(with) => limits::heads::pairs(runner, case, with, result),
        Family::LimitPipeline(with) => limits::pipeline::depth(runner, case, with, result),
        Family::LimitRanges(with) => limits::ranges::ranges(runner, case, with, result),
        Family::LimitRequests(with) => limits::pipeline::requests(runner, case, with, result),
        Family::LimitTarget(with) => limits::heads::target(runner, case, with, result),
        Family::LimitTrailers(with) => limits::bodies::trailers(runner, case, with, result),
        Family::LimitValue(with) => limits::heads::value(runner, case, with, result),
        Family::Lint => runner.lints.report(result),
        Family::Mixed(with) => mixed::run(runner, case, with, result),
        Family::MutateBodies(with) => mutate::run(runner, case, with, result),
        Family::OverloadHeld(with) => overload::held::run(runner, case, with, result),
        Family::OverloadMixed(with) => overload::mixed::run(runner, case, with, result),
        Family::OverloadRestart(with) => overload::restart::run(runner, case, with, result),
        Family::OverloadSoak(with) => overload::soak::run(runner, case, with, result),
        Family::OverloadSpike(with) => overload::spike::run(runner, case, with, result),
        Family::OverloadStarve(with) => overload::starve::run(runner, case, with, result),
        Family::OverloadStorm(with) => overload::storm::run(runner, case, with, result),
        Family::Pages(with) => pages::run(runner, case, with, result),
        Family::PressBurst(with) => press::burst::run(runner, case, with, result),
        Family::PressEnds(with) => press::parting::ends(runner, case, with, result),
        Family::PressHeld(with) => press::held::run(runner, case, with, result),
        Family::PressHonest(with) => press::honest::run(runner, case, with, result),
        Family::PressKeepAlive(with) => press::churn::keep_alive(runner, case, with, result),
        Family::PressRate(with) => press::churn::rate(runner, case, with, result),
        Family::PressResets(with) => press::parting::resets(runner, case, with, result),
        Family::SegmentsCuts(with) => segments::send_split_everywhere(runner, case, with, result),
        Family::SegmentsHeld(with) => segments::held(runner, case, with, result),
        Family::SegmentsOverlap(with) => segments::overlap(runner, case, with, result),
        Family::SlowBody(_)
        | Family::SlowBodyDripped(_)
        | Family::SlowHandshake(_)
        | Family::SlowHead(_)
        | Family::SlowHeadDripped(_)
        | Family::SlowIdle(_)
        | Family::SlowSilent(_)
        | Family::SlowSipped(_)
        | Family::SlowUnread(_) => slow::run(runner, case, result),
        Family::TlsAgain(with) => tls::again::run(runner, case, with, result),
        Family::TlsHandshakes(with) => tls::handshakes(runner, case, with, result),
        Family::TlsPieces(with) => tls::pieces(runner, case, with, result),
        Family::TlsRecords(with) => tls::records(runner, case, with, result),
        Family::TlsSilent(with) => tls::silent(runner, case, with, result),
    }
}
