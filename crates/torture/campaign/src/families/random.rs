//! Random data: many executions, with retries of failed ones.

use crate::attempts::{Reproduced, Tries};
use crate::findings::Finding;
use crate::trail::Suspect;
use crate::{GRACE, PLAIN_DEADLINE, Runner, TRIES, gate, habits, preconditions};
use dialogue::talk::{Talk, TalkEnd, TalkScript};
use torture::case::{Case, Fuzz};
use torture::fuzz;
use torture::fuzz::Shot;
use torture::judge;
use torture::judge::{FailureKind, Judgement, TestOutcome};
use torture::record::{self, Execution, sent};
use torture::result::{CaseResult, ExchangeResult};
use units::Nanos;

/// Maximum number of failed executions recorded completely.
pub(crate) const KEPT_MAX: usize = 20;
/// Number of failures after which no more are sent.
pub(crate) const FAILURES_MAX: u64 = 50;

/// Number of hangs after which a case of random data stops: most have the same cause.
pub(crate) const HANGS_MAX: u64 = 8;
/// Timeout after a first confirmed hang: any more are counted but not confirmed.
const AFTER_HANG: Nanos = Nanos::SECOND;

/// Timeout for half a message: a server that refuses it does so at once.
const WAITING: Nanos = Nanos::SECOND;

pub(crate) fn run(runner: &mut Runner<'_>, case: &Case, fuzz: &Fuzz, result: &mut CaseResult) {
    let (mut failures, mut hangs, mut sent) = (0, 0, 0);
    let count = fuzz.count.min(runner.settings.executions_max);
    let at_once = fuzz.place.together().unwrap_or(runner.settings.workers.max(1));
    // a sample is spread over the whole range
    let mut indices = (0..count).map(|turn| turn * fuzz.count / count);
    while failures < FAILURES_MAX
        && !runner.is_stopped()
        && !runner.case_is_over()
        && !runner.life.is_gone()
    {
        let batch: Vec<u64> = indices.by_ref().take(at_once).collect();
        if batch.is_empty() {
            break;
        }
        let shots: Vec<Shot> = batch.iter().map(|one| shot(runner, case, fuzz, *one)).collect();
        let mut scripts: Vec<TalkScript> = shots.iter().map(|shot| script(runner, shot)).collect();
        if hangs > 0 {
            let most = runner.profile.silence_max(Some(AFTER_HANG)).unwrap_or(AFTER_HANG);
            scripts.iter_mut().for_each(|one| one.deadline = one.deadline.min(most));
        }
        let talks = runner.play_all(scripts.clone());
        suspect_all(runner, case, &batch, &scripts, &talks);
        // judged in the order of their numbers, however many were concurrent
        for (at, talk) in talks.into_iter().enumerate().take(shots.len()) {
            if failures == FAILURES_MAX || runner.is_stopped() {
                break;
            }
            let name = numbered(runner, batch[at]);
            let (shot, script) = (&shots[at], scripts[at].clone());
            let silent = talk.end == TalkEnd::Silent;
            let fired = assess(runner, case, &name, shot, 1, script, talk);
            if hangs > 0 && silent && !fired.1.outcome.is_favorable() {
                *result.tally.entry(fuzz::outcome_class(shot, &fired.0)).or_default() += 1;
                hangs += 1;
                continue;
            }
            let outcome = book(runner, case, name, shot, "", fired, result);
            failures += u64::from(outcome == TestOutcome::Fail);
            hangs += u64::from(outcome == TestOutcome::Fail && silent);
        }
        sent += batch.len() as u64;
        if hangs >= HANGS_MAX && sent < count {
            let note = format!(
                "in {hangs} of {sent} a response, or its end, was missing at the time limit; the \
                other {} were not sent",
                count - sent
            );
            result.notes.push(note);
            break;
        }
    }
}

/// Suspects all of several concurrent conversations: each was sent before the check and may have
/// crashed the server.
fn suspect_all(
    runner: &mut Runner<'_>,
    case: &Case,
    batch: &[u64],
    scripts: &[TalkScript],
    talks: &[Talk],
) {
    if talks.len() < 2 {
        return;
    }
    for ((index, script), talk) in batch.iter().zip(scripts).zip(talks) {
        let name = numbered(runner, *index);
        runner.trail.add(Suspect::new(case, &name, script.clone(), talk.clone()));
    }
}

fn numbered(runner: &Runner<'_>, index: u64) -> String {
    format!("number {index}, seed {}", runner.settings.seed)
}

/// Sends random data, retries failures, and records the result. `page`: prefix of the tally's row.
pub(crate) fn execution(
    runner: &mut Runner<'_>,
    case: &Case,
    name: String,
    shot: &Shot,
    page: &str,
    result: &mut CaseResult,
) -> TestOutcome {
    let fired = fire(runner, case, &name, shot, 1);
    book(runner, case, name, shot, page, fired, result)
}

/// Records a failure after its retries.
pub(crate) fn book(
    runner: &mut Runner<'_>,
    case: &Case,
    name: String,
    shot: &Shot,
    page: &str,
    (talk, judgement): (Talk, Judgement),
    result: &mut CaseResult,
) -> TestOutcome {
    let row = format!("{page}{}", fuzz::outcome_class(shot, &talk));
    *result.tally.entry(row).or_default() += 1;
    // a conversation that our own limits stopped shows nothing about the server
    if judgement.outcome.is_favorable() || talk.end == TalkEnd::Bounded {
        return TestOutcome::Pass;
    }
    let kind = FailureKind::new(&talk, runner.profile.plain());
    let silent = talk.end == TalkEnd::Silent;
    let again_bytes = record::sent_again(&script(runner, shot), &talk, judgement.kind);
    let mut kept = ExchangeResult {
        name,
        judgement,
        tries: 1,
        failed: 1,
        sent: again_bytes.bytes,
        received: talk.raw,
        took: talk.over,
        pauses: again_bytes.pauses,
    };
    again(runner, case, shot, silent, &mut kept);
    let outcome = kept.judgement.outcome;
    if outcome == TestOutcome::Fail {
        let mut script = script(runner, shot);
        if kind.is_behind() {
            script.grace = GRACE;
        }
        let (case, name) = (case.clone(), kept.name.clone());
        runner.findings.add(Finding { case, name, script, kind, slow: None });
    }
    result.show(outcome);
    if !outcome.is_favorable() && result.exchanges.len() < KEPT_MAX {
        result.exchanges.push(kept);
    }
    outcome
}

fn shot(runner: &Runner<'_>, case: &Case, fuzz: &Fuzz, index: u64) -> Shot {
    let (values, fields) = (&runner.target.values, &runner.target.fields);
    fuzz::shot(runner.settings.seed, &case.id, case.version, fuzz, index, values, fields)
}

pub(crate) fn script(runner: &mut Runner<'_>, shot: &Shot) -> TalkScript {
    // legitimate waiting is silent, however long
    let rightly = judge::missing_part(&sent(&shot.moves)).map_or(Nanos::NEVER, |_| WAITING);
    let silence = runner
        .profile
        .silence_max(runner.settings.silence_max)
        .unwrap_or(Nanos::NEVER)
        .min(rightly);
    let mut script = runner.bare(shot.moves.clone(), PLAIN_DEADLINE.min(silence));
    script.methods.clone_from(&shot.methods);
    // the follow-up response shows whether both sides agree on message boundaries
    script.follow_up = shot.follows.then(|| habits::plain_request(runner.target, ""));
    script
}

pub(crate) fn fire(
    runner: &mut Runner<'_>,
    case: &Case,
    name: &str,
    shot: &Shot,
    attempt: u32,
) -> (Talk, Judgement) {
    let script = script(runner, shot);
    let talk = runner.hold(script.clone());
    assess(runner, case, name, shot, attempt, script, talk)
}

pub(crate) fn assess(
    runner: &mut Runner<'_>,
    case: &Case,
    name: &str,
    shot: &Shot,
    attempt: u32,
    mut script: TalkScript,
    mut talk: Talk,
) -> (Talk, Judgement) {
    if judge::out_of_step(&talk, runner.profile.plain()).is_some() {
        // a response to surplus bytes may have crossed the follow-up: wait for it this time
        script.grace = GRACE;
        talk = runner.hold(script.clone());
    }
    let judgement = fuzz::judge(shot, &talk, runner.profile.plain());
    let (script, judged) = (&script, &judgement);
    let execution = Execution { case, name, attempt, script, talk: &talk, judgement: judged };
    runner.report_conversation(&execution);
    (talk, judgement)
}

/// Retries a failure, which is a finding only if it is reproducible.
fn again(
    runner: &mut Runner<'_>,
    case: &Case,
    shot: &Shot,
    silent: bool,
    kept: &mut ExchangeResult,
) {
    let mut tries: Tries<()> = Tries::after_failure();
    if silent && !runner.is_stopped() {
        preconditions::measure_plain_time(runner);
        // wait for silence concurrently
        let scripts: Vec<TalkScript> = (1..TRIES).map(|_| script(runner, shot)).collect();
        for (script, talk) in scripts.clone().into_iter().zip(runner.play_all(scripts)) {
            if is_cut(runner, &talk) {
                continue;
            }
            let attempt = tries.attempt_count() + 1;
            let judged = assess(runner, case, &kept.name, shot, attempt, script, talk);
            tries.count(!judged.1.outcome.is_favorable());
        }
    }
    while let Some(attempt) = tries.next() {
        if runner.is_stopped() || runner.life.is_gone() {
            break;
        }
        let (mut talk, mut judgement) = fire(runner, case, &kept.name, shot, attempt);
        if matches!(talk.end, TalkEnd::Unconnected(_)) {
            // the server is being restarted after an earlier attempt: this is not an attempt
            gate::pass(runner);
            (talk, judgement) = fire(runner, case, &kept.name, shot, attempt);
        }
        if is_cut(runner, &talk) || matches!(talk.end, TalkEnd::Unconnected(_)) {
            break;
        }
        tries.count(!judgement.outcome.is_favorable());
        if !silent && kept.judgement.outcome != TestOutcome::Inconclusive {
            tries.measure_rate();
        }
    }
    (kept.tries, kept.failed) = (tries.attempt_count(), tries.failed());
    if silent && kept.tries > 1 && kept.failed == 1 && runner.settings.silence_max.is_some() {
        // it had little time, and responds with more
        kept.judgement.outcome = TestOutcome::Pass;
    }
    let flaky = tries.reproduced() == Reproduced::Sometimes;
    if flaky && kept.judgement.outcome == TestOutcome::Fail {
        kept.judgement.outcome = TestOutcome::Flaky;
    }
}

/// Returns whether one of our limits or the end of the run stopped it; then it is not an attempt.
fn is_cut(runner: &Runner<'_>, talk: &Talk) -> bool {
    talk.end == TalkEnd::Bounded || talk.end == TalkEnd::Ours && runner.is_stopped()
}
