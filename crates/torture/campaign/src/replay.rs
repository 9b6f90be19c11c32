//! Replays earlier failures to check whether they are fixed.

use crate::findings::Finding;
use crate::{
    CampaignEvent, GATE, Runner, Settings, TestTarget, Watcher, World, families, gate, habits,
    inherited_state, leak, memory, preconditions, service_time, shrinking,
};
use dialogue::governor::Stop;
use dialogue::http3;
use dialogue::talk::{Move, Talk, TalkScript};
use torture::case::{Case, Family, HangRepeats};
use torture::judge;
use torture::judge::{FailureKind, Judgement, Plain, TestOutcome};
use torture::record::{Execution, Transcript};
use torture::result::{
    AFTER, CaseResult, Recovery, ReplayResult, ReplayVerdict, Replayed, Shrunk, is_accused,
};
use units::{Nanos, show};

/// Recorded failure, with the case that judges it.
#[derive(Clone, Debug)]
pub struct Failure {
    pub transcript: Transcript,
    pub case: Case,
    /// Conversations to play first, in this order, each on its own connection.
    pub before: Vec<TalkScript>,
}

/// Maximum number of simultaneous conversations, whatever a file requests.
const AT_ONCE_MAX: usize = 1_000;

/// Treatment of pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    Kept,
    /// As soon as possible: without pauses.
    Asap,
}

/// Replays each failure this many times.
pub fn replay(
    target: &TestTarget,
    settings: &Settings,
    failures: &[Failure],
    (times, timing): (u32, Timing),
    world: &mut dyn World,
    watcher: &mut dyn Watcher,
) -> ReplayResult {
    let mut result = ReplayResult::default();
    let mut runner = Runner::new(target, settings, &[], world, watcher);
    match preconditions::check(&mut runner) {
        Ok(plain) => {
            // what must not be served was recorded with the failure
            let outside = failures.iter().find_map(|one| one.transcript.plain.outside);
            runner.set_plain(Plain { outside, ..plain });
        }
        Err(why) => {
            result.ended_early = Some(why);
            return result;
        }
    }
    for failure in failures {
        if runner.is_stopped() {
            break;
        }
        let (row, lost) = replay_one(&mut runner, failure, times, timing);
        result.rows.push(row);
        if lost {
            let span = show::duration(GATE);
            result.ended_early =
                Some(format!("no plain request got its usual response within {span}"));
            break;
        }
    }
    match runner.world.stopped() {
        Some(Stop::Interrupted) => result.interrupted = true,
        Some(stop) => result.ended_early = Some(stop.why().to_owned()),
        None => {}
    }
    result
}

/// Shrinks each failure within the budget of the settings; the entry is empty for a failure that no
/// longer occurs.
///
/// # Errors
/// Fails with the reason why plain requests get no response.
pub fn shrink_failures(
    target: &TestTarget,
    settings: &Settings,
    failures: &[Failure],
    world: &mut dyn World,
    watcher: &mut dyn Watcher,
) -> Result<Vec<Option<Shrunk>>, String> {
    let mut runner = Runner::new(target, settings, &[], world, watcher);
    let plain = preconditions::check(&mut runner)?;
    runner.set_plain(plain);
    let mut all = Vec::new();
    for failure in failures {
        if runner.is_stopped() {
            break;
        }
        runner.budget.renew();
        let finding = Finding {
            case: failure.case.clone(),
            name: failure.transcript.name.clone(),
            script: again(target, &failure.transcript.script),
            kind: kind(&failure.transcript),
            slow: slow_failure_time(&failure.transcript),
        };
        all.push(shrinking::shrink_one(&mut runner, &finding));
    }
    Ok(all)
}

/// Returns the time of a failure by slowness alone.
fn slow_failure_time(kept: &Transcript) -> Option<Nanos> {
    // ranges are judged by length and can be degraded too
    let slow = kept.judgement.outcome == TestOutcome::Degraded && families::is_timed(&kept.name);
    service_time::work_of(&kept.talk).filter(|_| slow)
}

/// Returns how it failed.
fn kind(kept: &Transcript) -> FailureKind {
    if slow_failure_time(kept).is_some() {
        return FailureKind::Slow;
    }
    let judged = judge::random(&kept.script, &kept.talk, &kept.plain);
    if is_accused(&kept.name) || judged.outcome.is_favorable() {
        FailureKind::Lost
    } else {
        FailureKind::new(&kept.talk, &kept.plain)
    }
}

/// Returns the script for the current target: the follow-up requests its page.
fn again(target: &TestTarget, script: &TalkScript) -> TalkScript {
    TalkScript {
        peer: target.peer.clone(),
        tls_name: target.tls_name.clone().filter(|_| !script.protocol.is_http3()),
        follow_up: script.follow_up.as_ref().map(|kept| {
            let stream = http3::stream_of(kept).unwrap_or_default();
            habits::follow_up(target, stream)
        }),
        ..script.clone()
    }
}

/// Judges whether the failure again caused a result that no request may cause.
fn judge_without_expectations(kept: &Transcript, talk: &Talk) -> Judgement {
    if let Some(before) = slow_failure_time(kept) {
        let slow = service_time::is_similarly_slow(talk, before);
        let took = show::duration(service_time::work_of(talk).unwrap_or_default());
        return Judgement {
            outcome: if slow { TestOutcome::Degraded } else { TestOutcome::Pass },
            seen: judge::seen(talk),
            expected: kept.judgement.expected.clone(),
            why: format!("it took {took}, compared with {} before", show::duration(before)),
            kind: slow.then_some(FailureKind::Slow),
            ..Judgement::default()
        };
    }
    let hangs = || judge::is_hang(talk).then(|| "no response again".to_owned());
    let why = judge::broken_response(talk).or_else(hangs);
    Judgement {
        outcome: if why.is_some() { TestOutcome::Fail } else { TestOutcome::Pass },
        seen: judge::seen(talk),
        expected: kept.judgement.expected.clone(),
        why: why.unwrap_or_default(),
        ..Judgement::default()
    }
}

/// Returns the number of simultaneous conversations of a leak.
fn simultaneous(failure: &Failure) -> Option<usize> {
    let kept = &failure.transcript;
    let leaks =
        kept.judgement.outcome == TestOutcome::Leak && families::applies_load(&failure.case);
    let (count, _) = kept.name.split_once(' ').filter(|_| leaks)?;
    let count: usize = count.replace(',', "").parse().ok()?;
    Some(count.clamp(1, AT_ONCE_MAX))
}

/// Judges a conversation without a rule in its case: a culprit by the plain requests after it; a
/// case in code only while it runs.
fn unjudged(failure: &Failure, talk: &Talk) -> Judgement {
    let kept = &failure.transcript;
    let accused = is_accused(&kept.name);
    if families::fails_without_expectations(&failure.case) && !accused {
        return judge_without_expectations(kept, talk);
    }
    let by_code = || {
        format!("{} is judged by code while it runs and cannot be judged again", failure.case.id)
    };
    Judgement {
        outcome: if accused { TestOutcome::Pass } else { TestOutcome::Inconclusive },
        seen: judge::seen(talk),
        expected: kept.judgement.expected.clone(),
        why: if accused { String::new() } else { by_code() },
        ..Judgement::default()
    }
}

/// Returns the verdict from conclusive attempts and failures.
fn verdict(learned: u32, failed: u32) -> ReplayVerdict {
    match (learned, failed) {
        (0, _) => ReplayVerdict::Unlearned,
        (_, 0) => ReplayVerdict::Fixed,
        (learned, failed) if learned == failed => ReplayVerdict::Failing,
        _ => ReplayVerdict::Flaky,
    }
}

/// Plays the preceding conversations, after a plain request.
fn play_preceding(runner: &mut Runner<'_>, failure: &Failure) {
    if failure.before.is_empty() {
        return;
    }
    inherited_state::isolate_attempt(runner);
    for before in &failure.before {
        let start = runner.now();
        runner.hold(TalkScript { start, ..again(runner.target, before) });
    }
}

/// Returns the result, and whether the server is lost.
fn replay_one(
    runner: &mut Runner<'_>,
    failure: &Failure,
    times: u32,
    timing: Timing,
) -> (Replayed, bool) {
    let kept = &failure.transcript;
    let by_code = !is_accused(&kept.name) && families::is_replayable(&failure.case);
    if let Some(family) = failure.case.family.as_ref().filter(|_| by_code) {
        return replay_case(runner, &failure.case, family, times);
    }
    if let Some(Family::HangGone(with)) = &failure.case.family {
        return replay_gone(runner, failure, with, times);
    }
    if kept.name.starts_with(AFTER) {
        return replay_memory(runner, failure, times);
    }
    let gone = kept.judgement.outcome == TestOutcome::Leak && is_accused(&kept.name);
    if gone && let Some(with) = families::hang_repeats() {
        return replay_gone(runner, failure, &with, times);
    }
    if let Some(count) = simultaneous(failure) {
        return replay_leak(runner, failure, count, times);
    }
    let mut script = again(runner.target, &kept.script);
    if timing == Timing::Asap {
        script.steps.retain(|step| !matches!(step, Move::Pause(_)));
    }
    repeat_attempts(runner, times, |runner, attempt| {
        play_preceding(runner, failure);
        script.start = runner.now();
        let talk = runner.hold(script.clone());
        let judged =
            judge::again(&failure.case, &kept.name, &script, &talk, runner.profile.plain());
        let mut judgement = judged.unwrap_or_else(|| unjudged(failure, &talk));
        let gate = gate::pass(runner);
        if let Some((outcome, why)) = runner.life.observe(runner.world).judged() {
            judgement.outcome = judgement.outcome.max(outcome);
            why.clone_into(&mut judgement.why);
        } else if gate.is_late() {
            judgement.outcome = judgement.outcome.max(TestOutcome::Fail);
            "plain requests did not get their usual response at once"
                .clone_into(&mut judgement.why);
        }
        runner.report(CampaignEvent::ConversationOver(&Execution {
            case: &failure.case,
            name: &kept.name,
            attempt,
            script: &script,
            talk: &talk,
            judgement: &judgement,
        }));
        Tried::once(judgement, gate == Recovery::Never)
    })
}

/// Repeats a hung request to test whether the server recovers. If it does not, there is only one
/// attempt.
fn replay_gone(
    runner: &mut Runner<'_>,
    failure: &Failure,
    with: &HangRepeats,
    times: u32,
) -> (Replayed, bool) {
    let script = again(runner.target, &failure.transcript.script);
    repeat_attempts(runner, times, |runner, _| {
        let found = families::repeat_hang(runner, &script, with.times, with.patience);
        let (outcome, text, lost) = match found {
            Some((sent, Recovery::Never)) => {
                (TestOutcome::Leak, families::describe_lost_workers(sent), true)
            }
            _ => (TestOutcome::Pass, "plain requests got responses".to_owned(), false),
        };
        Tried::once(judgment_of(failure, outcome, text), lost)
    })
}

/// Sends a request again to test whether memory grows after it.
fn replay_memory(runner: &mut Runner<'_>, failure: &Failure, times: u32) -> (Replayed, bool) {
    let script = again(runner.target, &failure.transcript.script);
    repeat_attempts(runner, times, |runner, _| {
        runner.life.observe(runner.world);
        let (outcome, text) = match memory::replay(runner, &script) {
            Some(text) => (TestOutcome::Leak, text),
            None if runner.world.server().is_none() => {
                (TestOutcome::Inconclusive, NOT_VISIBLE.to_owned())
            }
            None => (TestOutcome::Pass, "resident memory did not grow".to_owned()),
        };
        Tried::once(judgment_of(failure, outcome, text), gate::pass(runner) == Recovery::Never)
    })
}

/// Reason of an inconclusive attempt if the resources of the server are unknown.
const NOT_VISIBLE: &str = "the server's processes are not visible";

/// Runs rounds of simultaneous conversations to test whether their resources are released.
fn replay_leak(
    runner: &mut Runner<'_>,
    failure: &Failure,
    count: usize,
    times: u32,
) -> (Replayed, bool) {
    let script = again(runner.target, &failure.transcript.script);
    let mut first = None;
    repeat_attempts(runner, times, |runner, _| {
        runner.life.observe(runner.world);
        let leaks = leak::repeat_leaking_rounds(runner, &failure.case, &script, count, &mut first);
        let (outcome, text) = match leaks {
            None => (TestOutcome::Inconclusive, NOT_VISIBLE.into()),
            Some(leaks) if leaks.is_empty() => {
                (TestOutcome::Pass, "the resources were released".into())
            }
            Some(leaks) => {
                let texts: Vec<String> = leaks.into_iter().map(|leak| leak.text).collect();
                (TestOutcome::Leak, texts.join("; "))
            }
        };
        Tried::once(judgment_of(failure, outcome, text), gate::pass(runner) == Recovery::Never)
    })
}

/// Runs a case judged by code again.
fn replay_case(
    runner: &mut Runner<'_>,
    case: &Case,
    family: &Family,
    times: u32,
) -> (Replayed, bool) {
    repeat_attempts(runner, times, |runner, _| {
        let mut result = CaseResult::new(case);
        families::run(runner, case, family, &mut result);
        let lost = gate::pass(runner) == Recovery::Never;
        let judgements = result.exchanges.into_iter().map(|one| one.judgement).collect();
        Tried { outcome: result.outcome, judgements, lost }
    })
}

/// Returns a judgment of an attempt with a description.
fn judgment_of(failure: &Failure, outcome: TestOutcome, text: String) -> Judgement {
    Judgement {
        outcome,
        expected: failure.transcript.judgement.expected.clone(),
        why: if outcome == TestOutcome::Pass { String::new() } else { text.clone() },
        seen: text,
        ..Judgement::default()
    }
}

/// Result of an attempt.
struct Tried {
    outcome: TestOutcome,
    judgements: Vec<Judgement>,
    /// True if the server is lost.
    lost: bool,
}

impl Tried {
    /// Records that one conversation or search was judged.
    fn once(judgement: Judgement, lost: bool) -> Tried {
        Tried { outcome: judgement.outcome, judgements: vec![judgement], lost }
    }
}

/// Repeats an attempt until done or the server is lost. Attempts are numbered from 1; returns the
/// worst judgment.
fn repeat_attempts(
    runner: &mut Runner<'_>,
    times: u32,
    mut once: impl FnMut(&mut Runner<'_>, u32) -> Tried,
) -> (Replayed, bool) {
    let (mut tries, mut learned, mut failed, mut lost) = (0, 0, 0, false);
    let mut worst: Option<Judgement> = None;
    while tries < times && !lost && !runner.is_stopped() {
        tries += 1;
        let tried = once(runner, tries);
        lost = tried.lost;
        learned += u32::from(tried.outcome.is_tested());
        failed += u32::from(tried.outcome.is_finding());
        for judgement in tried.judgements {
            if worst.as_ref().is_none_or(|worst| worst.outcome < judgement.outcome) {
                worst = Some(judgement);
            }
        }
    }
    let verdict = verdict(learned, failed);
    (Replayed { verdict, tries, failed, judgement: worst.unwrap_or_default() }, lost)
}
