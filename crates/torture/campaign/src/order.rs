//! The order of a run: plain requests, the server's features, the baseline, then case by case, and
//! finally the shrinking.

use crate::life::AffectedPart;
use crate::pressure::blame;
use crate::{
    CampaignEvent, GATE, Runner, Settings, TestTarget, Watcher, World, baseline, culprit, families,
    gate, memory, offers, preconditions, shrinking, tries,
};
use torture::case::{Case, Exchange, GRPC, Need};
use torture::cause;
use torture::judge::{Plain, TestOutcome};
use torture::result::{CaseResult, Recovery, RunResult};

/// Runs the cases in order. `watcher` is notified of every event.
pub fn run(
    target: &TestTarget,
    settings: &Settings,
    cases: &[Case],
    world: &mut dyn World,
    watcher: &mut dyn Watcher,
) -> RunResult {
    let start = world.now();
    let mut runner = Runner::new(target, settings, cases, world, watcher);
    let mut result = RunResult { slots_named: settings.slots, ..RunResult::default() };
    match preconditions::check(&mut runner) {
        Ok(plain) => runner.set_plain(Plain { outside: settings.outside, ..plain }),
        Err(why) => {
            result.ended_early = Some(why);
            result.end(runner.world.stopped());
            result.took = runner.now() - start;
            return result;
        }
    }
    result.plain = runner.profile.plain().clone();
    result.habits = offers::oddities(&mut runner);
    let has = offers::offers(&mut runner, &mut result);
    result.baseline = Some(baseline::measure(&mut runner));
    runner.profile.learn_quiet(result.baseline.unwrap_or_default());
    runner.life.begin(runner.world);
    families::hold_in_background(&mut runner);
    if let Some(budget) = settings.budget {
        runner.world.governor().end_cases_at(start + budget);
    }
    let (fatal, calm): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| families::is_fatal(case));
    cases_of(&mut runner, calm, &has, &mut result);
    if result.ended_early.is_none() {
        if time_limit_reason(&mut runner).is_none() {
            result.shrunk = shrinking::shrink_all(&mut runner);
        }
        runner.life.forget(runner.world);
        cases_of(&mut runner, fatal, &has, &mut result);
    }
    families::release_background(&mut runner);
    result.cases.sort_by(|one, other| one.case.id.cmp(&other.case.id));
    cause::merge(&mut result.cases, &result.shrunk);
    result.end(runner.world.stopped());
    result.took = runner.now() - start;
    result.habits.seen.extend(runner.profile.into_traits());
    result.probes = runner.prober.into_kept();
    result.server = runner.life.into_seen();
    result
}

/// Runs cases until the last one, a request to stop, or the loss of the server.
fn cases_of(runner: &mut Runner<'_>, mut cases: Vec<&Case>, has: &[Need], result: &mut RunResult) {
    let beside = families::is_in_background(runner);
    cases.sort_by_key(|case| families::place(case, beside));
    for case in cases {
        if runner.is_stopped() {
            return;
        }
        if let Some(why) = time_limit_reason(runner) {
            let mut left = CaseResult::new(case);
            left.skip(why);
            left.out_of_time = true;
            runner.report(CampaignEvent::CaseOver(&left));
            result.cases.push(left);
            continue;
        }
        runner.report(CampaignEvent::CaseBegins(case));
        let mut done = case_of(runner, case, has, result.post_trouble.as_deref());
        done.mask(&runner.target.secrets);
        runner.report(CampaignEvent::CaseOver(&done));
        families::handle_case_end(runner, &done);
        let lost = done.recovery == Recovery::Never;
        let id = done.case.id.clone();
        result.cases.push(done);
        if lost {
            let span = units::show::duration(GATE);
            result.ended_early =
                Some(format!("no plain request got its usual response within {span} of {id}"));
            return;
        }
        if let Some(why) = memory::limit_reason(runner) {
            result.ended_early = Some(why);
            return;
        }
    }
}

/// Returns why no further case is run, if the time for all cases is used up.
fn time_limit_reason(runner: &mut Runner<'_>) -> Option<String> {
    let now = runner.now();
    let budget = runner.settings.budget?;
    let over = runner.world.governor().cases_are_over(now);
    over.then(|| {
        format!(
            "the time limit for all cases, {}, was reached (--budget SPAN raises it)",
            units::show::duration(budget)
        )
    })
}

/// Runs one case. `trouble`: the response of the `--post` page, if it refuses a plain POST.
fn case_of(
    runner: &mut Runner<'_>,
    case: &Case,
    has: &[Need],
    trouble: Option<&str>,
) -> CaseResult {
    let start = runner.now();
    let mut result = CaseResult::new(case);
    runner.trail.begin_case();
    runner.life.begin_case();
    runner.pressed.begin_case();
    let target = runner.target;
    let given = |need: &Need| match need {
        Need::Tls => target.tls_name.is_some(),
        _ => has.contains(need),
    };
    if let Some(why) = skip_reason(runner, case, &given, trouble) {
        result.skip(why);
        return result;
    }
    if !keep_sendable(case, &given, &mut result) {
        return result;
    }
    let before = gate::announce(runner, case);
    for exchange in result.case.exchanges.clone() {
        if runner.must_end_run() || runner.life.is_gone() {
            break;
        }
        let done = tries::exchange(runner, case, &exchange);
        result.show(done.judgement.outcome);
        result.exchanges.push(done);
    }
    if let Some(fuzz) = &case.fuzz {
        families::random::run(runner, case, fuzz, &mut result);
    }
    if let Some(family) = &case.family {
        families::run(runner, case, family, &mut result);
    }
    gate::conclude(runner, before, &mut result);
    result.recovery = gate::pass(runner);
    let affected = runner.life.judge_case(runner.world, &mut result);
    if result.recovery.is_late() && affected != AffectedPart::Killed {
        result.show(TestOutcome::Fail);
    }
    find_culprit_bytes(runner, case, affected, &mut result);
    if families::is_judged_by_conversation(case) {
        memory::examine(runner, case, &mut result);
    }
    runner.life.end_case(runner.world, &mut result);
    result.took = runner.now() - start;
    result
}

/// Returns why the case cannot run against this target. `trouble` as in [`case_of`].
fn skip_reason(
    runner: &mut Runner<'_>,
    case: &Case,
    given: &dyn Fn(&Need) -> bool,
    trouble: Option<&str>,
) -> Option<String> {
    if let Some(need) = case.needs.iter().find(|need| !given(need)) {
        let why = match need {
            Need::Device => runner.world.device().err(),
            Need::Socket => no_socket(runner),
            Need::Post => {
                trouble.map(|trouble| format!("the --post page refuses a plain POST: {trouble}"))
            }
            _ => None,
        };
        return Some(why.unwrap_or_else(|| need.missing().to_owned()));
    }
    if case.runs_in(runner.target.version()) {
        return runner.world.governor().why_forbidden(&case.id).map(str::to_owned);
    }
    let version = case.version_spoken();
    Some(match case.group() {
        GRPC => "it needs a gRPC target (grpc://…)".to_owned(),
        _ => format!("it needs HTTP/{version} (--http {version})"),
    })
}

/// Removes the exchanges that lack a precondition, with a note each. Returns false if no exchange
/// is left; the case is then skipped.
fn keep_sendable(case: &Case, given: &dyn Fn(&Need) -> bool, result: &mut CaseResult) -> bool {
    let missing = |exchange: &Exchange| exchange.needs.iter().copied().find(|need| !given(need));
    let note = |exchange: &Exchange| {
        Some(format!("{} was not sent: {}", exchange.name, missing(exchange)?.missing()))
    };
    let notes: Vec<String> = case.exchanges.iter().filter_map(note).collect();
    let is_exchanges_only = case.fuzz.is_none() && case.family.is_none();
    if is_exchanges_only && !notes.is_empty() && notes.len() == case.exchanges.len() {
        result.skip(notes.join("; "));
        return false;
    }
    result.case.exchanges.retain(|one| missing(one).is_none());
    result.notes.extend(notes);
    true
}

/// Returns why there is no WebSocket: HTTP/2 connections do not carry one, or the given path does
/// not accept it.
fn no_socket(runner: &Runner<'_>) -> Option<String> {
    if runner.target.protocol.is_http2() && !runner.profile.tunnels() {
        return Some(NO_TUNNELS.to_owned());
    }
    if let Some(why) = runner.profile.socket_trouble() {
        return Some(why.to_owned());
    }
    let given = &runner.target.values.socket;
    (!given.is_empty()).then(|| format!("{given} does not speak WebSocket (--ws-path)"))
}

/// Reason for skipping WebSocket cases over HTTP/2.
const NO_TUNNELS: &str = "the server does not announce SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441)";

/// Finds the bytes that caused the failure.
fn find_culprit_bytes(
    runner: &mut Runner<'_>,
    case: &Case,
    affected: AffectedPart,
    result: &mut CaseResult,
) {
    if families::applies_load(case) {
        // a load case fails by its numbers, unless a process exited
        if affected != AffectedPart::Nothing {
            blame::blame(runner, case, result);
        }
        return;
    }
    let late =
        result.recovery.is_late() || runner.trail.was_lost() || affected != AffectedPart::Nothing;
    if late && result.recovery != Recovery::Never {
        culprit::attribute(runner, case, affected, result);
    } else if late {
        culprit::suspect(runner, case, affected, result);
    }
}
