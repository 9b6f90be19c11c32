//! Attempts of an exchange. Each attempt at a silent server takes its full timeout, so silence is
//! awaited concurrently: a short first attempt shows whether confirmation is needed, and the
//! confirming attempts run at once.

use crate::attempts::{Rate, Reproduced, Tries};
use crate::life::AffectedPart;
use crate::trail::Suspect;
use crate::{Runner, TRIES, gate, inherited_state, preconditions, scripts};
use dialogue::talk::{Talk, TalkEnd, TalkScript};
use std::collections::VecDeque;
use torture::case::{Case, Exchange, ScriptStep};
use torture::judge;
use torture::judge::{FailureKind, Judgement, TestOutcome};
use torture::record;
use torture::record::Execution;
use torture::result::{ExchangeResult, Recovery};
use units::Nanos;

/// Time limit of the first attempt for a silent server.
const PATIENCE: Nanos = Nanos::SECOND;
/// Number of concurrent attempts after a first one without any response.
pub(crate) const TOGETHER: usize = 2;
/// Attempts repeated because the server was not listening.
const RESTARTS_MAX: u32 = 3;

/// Attempts of one exchange that ran in advance.
#[derive(Debug, Default)]
pub(crate) struct AheadAttempts {
    /// Completed attempts, judged in turn.
    waiting: VecDeque<(TalkScript, Talk)>,
    /// True if neither the first attempt nor any concurrent one got a response, so that it counts
    /// too.
    pub(crate) silent: bool,
    /// Conversations before the first attempt.
    pub(crate) before: Vec<Suspect>,
}

/// Runs an exchange, retrying failures: it is a finding if most attempts fail.
pub(crate) fn exchange(
    runner: &mut Runner<'_>,
    case: &Case,
    exchange: &Exchange,
) -> ExchangeResult {
    let mut tries: Tries<ExchangeResult> = Tries::at_least(exchange.attempts);
    let mut advised = Rate::default();
    let mut had = AheadAttempts::default();
    let mut restarts = 0;
    while let Some(attempt) = tries.next() {
        // the short attempt before the concurrent attempts counts too
        let enough = had.silent && attempt == TRIES;
        if enough || runner.is_stopped() || attempt > 1 && runner.case_is_over() {
            break;
        }
        let (script, talk) = next_try(runner, case, exchange, attempt - 1, &mut had);
        if talk.end == TalkEnd::Ours && runner.is_stopped() {
            // this attempt was interrupted, which shows nothing about the server
            break;
        }
        let mut judgement = judge::judge(exchange, case.level, &talk, runner.profile.plain());
        let affected = runner.life.observe(runner.world);
        blame_conversation(affected, &mut judgement, &talk, tries.kept());
        if affected >= AffectedPart::Worker {
            name_given_up(runner, case, exchange, &mut judgement);
        }
        let execution = Execution {
            case,
            name: &exchange.name,
            attempt,
            script: &script,
            talk: &talk,
            judgement: &judgement,
        };
        runner.report_with_effect(&execution, affected);
        let is_unconnected = matches!(talk.end, TalkEnd::Unconnected(_));
        let is_restarting = is_unconnected && attempt > 1 && restarts < RESTARTS_MAX;
        if is_restarting && gate::pass(runner) != Recovery::Never {
            // the server was being restarted after an earlier attempt: this is not an attempt
            restarts += 1;
            continue;
        }
        let bad = match judgement.outcome {
            TestOutcome::Fail | TestOutcome::Crashed => true,
            // an unreachable server may be gone; limited or uncompared data shows nothing about it
            TestOutcome::Inconclusive => is_unconnected,
            _ => false,
        };
        let advises = judgement.outcome == TestOutcome::Advisory;
        advised.count(advises);
        let replaces = (bad || advises)
            && tries.kept().is_none_or(|kept| is_worse_or_equal(&judgement, &kept.judgement));
        if talk.end != TalkEnd::Silent {
            tries.measure_rate();
        }
        tries.add(bad, replaces, result_of(exchange, judgement, &script, talk));
        if affected >= AffectedPart::Killed {
            break;
        }
    }
    let mut result = concluded(runner, case, exchange, tries, &had);
    add_rate(&mut result.judgement, advised);
    result
}

/// Adds the rate of an advisory that only some attempts show.
fn add_rate(judgement: &mut Judgement, advised: Rate) {
    if judgement.outcome == TestOutcome::Advisory && advised.failed < advised.made {
        let separator = if judgement.why.is_empty() { "" } else { "; " };
        let rate = advised.text();
        judgement.why.push_str(&format!("{separator}attempts that show it: {rate}"));
    }
}

/// Returns the result of an attempt.
fn result_of(
    exchange: &Exchange,
    judgement: Judgement,
    script: &TalkScript,
    talk: Talk,
) -> ExchangeResult {
    let again = record::sent_again(script, &talk, judgement.kind);
    ExchangeResult {
        name: exchange.name.clone(),
        judgement,
        tries: 0,
        failed: 0,
        sent: again.bytes,
        received: talk.raw,
        took: talk.over,
        pauses: again.pauses,
    }
}

/// Returns the result of all attempts.
fn concluded(
    runner: &mut Runner<'_>,
    case: &Case,
    exchange: &Exchange,
    mut tries: Tries<ExchangeResult>,
    had: &AheadAttempts,
) -> ExchangeResult {
    if had.silent && tries.reproduced() == Reproduced::Always {
        tries.count(true);
    }
    let reproduced = tries.reproduced();
    let counts = (tries.attempt_count(), tries.failed());
    let mut result = tries.into_kept().unwrap_or_else(|| not_tried(exchange));
    (result.tries, result.failed) = counts;
    if reproduced == Reproduced::Sometimes && result.judgement.outcome != TestOutcome::Crashed {
        result.judgement.outcome = TestOutcome::Flaky;
    }
    if result.judgement.outcome == TestOutcome::Flaky {
        inherited_state::confirm(runner, case, exchange, &had.before, &mut result);
    }
    result
}

/// Returns whether the later judgment replaces the earlier one. The worse one is kept; of two equal
/// ones the later, unless the server crashed in the first.
fn is_worse_or_equal(later: &Judgement, before: &Judgement) -> bool {
    before.outcome != TestOutcome::Crashed && later.outcome >= before.outcome
}

/// Returns the next attempt; `tried`: number of judged ones.
fn next_try(
    runner: &mut Runner<'_>,
    case: &Case,
    exchange: &Exchange,
    tried: u32,
    tries: &mut AheadAttempts,
) -> (TalkScript, Talk) {
    if tried == 1 {
        tries.before = runner.trail.suspects();
        // the first attempt itself
        tries.before.pop();
    }
    if let Some(had) = tries.waiting.pop_front() {
        return had;
    }
    if tried > 0 {
        inherited_state::isolate_attempt(runner);
    }
    let full = longest_silence(runner, exchange);
    let deadline = if tried == 0 { first_try(exchange, full) } else { full };
    let script = TalkScript { deadline, ..scripts::of_exchange(runner, exchange) };
    let talk = runner.hold(script.clone());
    let silent = |talk: &Talk| talk.end == TalkEnd::Silent;
    if tried > 0 || !silent(&talk) || runner.is_stopped() {
        return (script, talk);
    }
    let judgement = judge::judge(exchange, case.level, &talk, runner.profile.plain());
    if judgement.outcome < TestOutcome::Inconclusive {
        // the server may wait for more data, regardless of the timeout
        return (script, talk);
    }
    if runner.settings.silence_max.is_some() {
        preconditions::measure_plain_time(runner);
    }
    let full = longest_silence(runner, exchange);
    inherited_state::isolate_attempt(runner);
    let scripts: Vec<TalkScript> = (0..TOGETHER)
        .map(|_| TalkScript { deadline: full, ..scripts::of_exchange(runner, exchange) })
        .collect();
    let talks = runner.play_all(scripts.clone());
    let all_silent = talks.len() == TOGETHER && talks.iter().all(silent);
    tries.waiting = scripts.into_iter().zip(talks).collect();
    // a slow moment of the server is not a hang: the short attempt counts if the others are silent
    // too, and is discarded otherwise
    tries.silent = all_silent;
    tries.waiting.pop_front().unwrap_or((script, talk))
}

/// Returns the silence that counts as a failure of this exchange on this server.
fn longest_silence(runner: &Runner<'_>, exchange: &Exchange) -> Nanos {
    silence(exchange, runner.profile.silence_max(runner.settings.silence_max))
}

/// Returns the silence that counts as a failure: as defined by the exchange, at most `most`.
fn silence(exchange: &Exchange, most: Option<Nanos>) -> Nanos {
    let most = most.map_or(Nanos::NEVER, |most| most + pauses(exchange));
    exchange.deadline.min(most)
}

/// Returns the timeout of the first attempt at a silent server; `full`: timeout of the concurrent
/// attempts.
fn first_try(exchange: &Exchange, full: Nanos) -> Nanos {
    full.min(PATIENCE + pauses(exchange))
}

/// Returns the result of an exchange that the end of the run prevented.
fn not_tried(exchange: &Exchange) -> ExchangeResult {
    ExchangeResult {
        name: exchange.name.clone(),
        judgement: Judgement { outcome: TestOutcome::Inconclusive, ..Judgement::default() },
        tries: 0,
        failed: 0,
        sent: Vec::new(),
        received: Vec::new(),
        took: Nanos::ZERO,
        pauses: Vec::new(),
    }
}

/// Blames this conversation, or the previous attempt, for exits of the server's processes: a
/// refused connection cannot be the cause.
pub(crate) fn blame_conversation(
    affected: AffectedPart,
    judgement: &mut Judgement,
    talk: &Talk,
    earlier: Option<&mut ExchangeResult>,
) {
    if affected == AffectedPart::Killed {
        // a single observation does not show that the request is the cause
        return;
    }
    let Some((outcome, why)) = affected.judged() else { return };
    let guilty = match (talk.end, earlier) {
        (TalkEnd::Unconnected(_), None) => return,
        (TalkEnd::Unconnected(_), Some(earlier)) => &mut earlier.judgement,
        _ => judgement,
    };
    guilty.outcome = outcome;
    why.clone_into(&mut guilty.why);
    guilty.kind = Some(FailureKind::Lost);
}

/// Names the request before a crash as a possible cause if the client gave it up.
fn name_given_up(runner: &Runner<'_>, case: &Case, exchange: &Exchange, judged: &mut Judgement) {
    if judged.kind != Some(FailureKind::Lost) {
        return;
    }
    let previous = runner.trail.suspects().pop();
    let earlier = previous.and_then(|one| one.as_earlier_cause(&case.id, &exchange.name));
    judged.why.push_str(&earlier.unwrap_or_default());
}

/// Returns the time that an exchange pauses before everything is sent.
fn pauses(exchange: &Exchange) -> Nanos {
    let pause = |step: &ScriptStep| match step {
        ScriptStep::Pause(span) => *span,
        ScriptStep::Packet(step) => step.waits(),
        _ => Nanos::ZERO,
    };
    exchange.steps.iter().map(pause).fold(Nanos::ZERO, |sum, span| sum + span)
}

/// Returns the maximum duration of an attempt that gets no response: the short one, then the
/// concurrent ones.
pub(crate) fn max_silent_duration(exchange: &Exchange, silence_max: Option<Nanos>) -> Nanos {
    let full = silence(exchange, silence_max);
    first_try(exchange, full) + full
}
