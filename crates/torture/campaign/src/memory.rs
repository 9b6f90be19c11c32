//! Finds single requests that exhaust memory: a request after which the memory of the server keeps
//! growing without further requests, and a request of which each repetition adds far more memory
//! than its own length. Both checks require visible processes of the server.

use crate::attempts::Rate;
use crate::memory_watch::IDLE_GROWN;
use crate::trail::Suspect;
use crate::{Runner, culprit, scripts};
use dialogue::talk::TalkScript;
use sample::ServerState;
use std::collections::BTreeSet;
use torture::case::{Case, Exchange};
use torture::judge::{self, FailureKind, Judgement, TestOutcome};
use torture::record;
use torture::result::{AFTER, CaseResult};
use units::{Nanos, show};

/// Minimum growth during a case for it to be examined: in bytes, and as a factor.
const GROWN: u64 = 32 << 20;
const GROWN_FACTOR: f64 = 1.25;
/// Time for growth to become visible after the client gives up a request.
const SETTLE: Nanos = Nanos::from_millis(100);
/// Samples without further requests: their interval, the minimum and maximum number, and the total
/// growth that suffices.
const IDLE_EVERY: Nanos = Nanos::from_millis(500);
const IDLE_LEAST: usize = 4;
const IDLE_MOST: usize = 8;
const IDLE_ENOUGH: u64 = 256 << 20;
/// Uncertainty of the onset of growth: the larger of this fraction of its age and this time.
const ONSET_PART: u64 = 10;
const ONSET_SLACK: Nanos = Nanos::from_millis(50);
/// Repetitions of one request: time to settle after each, maximum number, minimum growth by each,
/// the total growth that suffices, and its factor. A garbage-collected heap stops growing earlier.
const STEP_SETTLE: Nanos = Nanos::from_millis(300);
const STEPS_MAX: usize = 32;
const STEP_GROWN: u64 = 4 << 20;
const STEPS_ENOUGH: u64 = 256 << 20;
const STEPS_FACTOR: u64 = 4;
/// Minimum growth by a request, relative to its bytes.
const AMPLIFIED: u64 = 16;
/// Time for the server to release the memory of all repetitions.
const RELEASE: Nanos = Nanos::from_secs(2);
/// Maximum time for repeating the requests of a case.
const REPEATS_SPAN: Nanos = Nanos::from_secs(30);
/// Growth over the run after which a server whose memory keeps growing is no longer tested.
const RUN_GROWN_MAX: u64 = 4 << 30;

/// Growth of memory without further requests.
#[derive(Clone, Copy, Debug)]
struct IdleGrowth {
    from: u64,
    to: u64,
    span: Nanos,
}

impl IdleGrowth {
    /// Returns the growth in bytes per second.
    fn rate(self) -> f64 {
        self.to.saturating_sub(self.from) as f64 / self.span.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn text(self) -> String {
        format!(
            "resident memory grew from {} to {} within {}, without further requests: by {} per \
            second, during the whole observation",
            show::bytes(self.from),
            show::bytes(self.to),
            show::duration(self.span),
            show::bytes(self.rate() as u64)
        )
    }
}

/// Looks for requests that take memory, after a case whose conversations are judged one by one.
pub(crate) fn examine(runner: &mut Runner<'_>, case: &Case, result: &mut CaseResult) {
    if runner.memory.is_growing() || runner.life.is_gone() || runner.is_stopped() {
        return;
    }
    let Some(before) = runner.life.before().cloned() else { return };
    // the memory use of a whole machine grows for other reasons
    if !before.machine.is_empty() {
        return;
    }
    if runner.trail.suspects().last().is_some_and(Suspect::is_given_up) {
        runner.world.pause(SETTLE);
    }
    let Some(level) = level(runner, &before) else { return };
    if !has_grown(before.memory_bytes, level) {
        return;
    }
    let now = (runner.now(), level);
    if let Some(growth) = idle_growth(runner, &before) {
        let onset = runner.memory.onset(before.memory_bytes, growth.rate(), now);
        record_idle_growth(runner, case, growth, onset, result);
    } else if runner.world.governor().may_repeat() {
        repeat_requests(runner, case, &before, result);
    }
}

fn has_grown(before: u64, now: u64) -> bool {
    now.saturating_sub(before) >= GROWN && now as f64 >= before as f64 * GROWN_FACTOR
}

/// Returns the memory of the server; `None` if it is not visible, or if the processes changed, so
/// that their memory cannot be compared.
fn level(runner: &mut Runner<'_>, before: &ServerState) -> Option<u64> {
    runner.life.observe(runner.world);
    let now = runner.world.server()?;
    let is_same = now.listeners == before.listeners && now.workers.len() == before.workers.len();
    is_same.then_some(now.memory_bytes)
}

/// Returns the growth while no request is sent; `None` if it stops.
fn idle_growth(runner: &mut Runner<'_>, before: &ServerState) -> Option<IdleGrowth> {
    let (start, from) = (runner.now(), level(runner, before)?);
    let mut to = from;
    for count in 1..=IDLE_MOST {
        runner.world.pause(IDLE_EVERY);
        let next = level(runner, before)?;
        if runner.is_stopped() || next < to + IDLE_GROWN {
            return None;
        }
        to = next;
        if count >= IDLE_LEAST && to - from >= IDLE_ENOUGH {
            break;
        }
    }
    let span = runner.now() - start;
    (to - from >= GROWN).then_some(IdleGrowth { from, to, span })
}

/// Returns the conversation that caused growth with this onset and age: the last one that began
/// before the onset. If that one began at the onset and the client gave up the previous one,
/// returns the previous one.
fn guilty_of(suspects: &[Suspect], (onset, age): (Nanos, Nanos)) -> Option<&Suspect> {
    let slack = Nanos(age.0 / ONSET_PART).max(ONSET_SLACK);
    let start = |suspect: &Suspect| suspect.talk.as_ref().map_or(Nanos::ZERO, |talk| talk.start);
    let last = suspects.iter().rposition(|one| start(one) <= onset + slack);
    let last = last.unwrap_or_default();
    let previous = last.checked_sub(1).map(|at| &suspects[at]).filter(|one| one.is_given_up());
    let is_close = suspects.get(last).is_some_and(|one| start(one) + slack >= onset);
    previous.filter(|_| is_close).or(suspects.get(last))
}

/// Records growth without further requests, with the last conversation that began before it.
fn record_idle_growth(
    runner: &mut Runner<'_>,
    case: &Case,
    growth: IdleGrowth,
    onset: (Nanos, Nanos),
    result: &mut CaseResult,
) {
    let suspects = runner.trail.suspects();
    let guilty = guilty_of(&suspects, onset);
    let since = guilty.map_or(&case.id, |guilty| &guilty.case).clone();
    runner.memory.grows_since = Some(since);
    match guilty {
        Some(guilty) => {
            keep(runner, case, guilty, growth.text(), Some(FailureKind::Exhausts), result);
        }
        None => {
            result.show(TestOutcome::Leak);
            result.notes.push(growth.text());
        }
    }
}

/// Records a finding for a conversation that takes memory.
fn keep(
    runner: &mut Runner<'_>,
    case: &Case,
    guilty: &Suspect,
    why: String,
    kind: Option<FailureKind>,
    result: &mut CaseResult,
) {
    let Some(talk) = guilty.talk.clone() else { return };
    let name = match guilty.case == case.id {
        true => format!("{AFTER}{}", guilty.name),
        false => format!("{AFTER}{} {}", guilty.case, guilty.name),
    };
    let judgement = Judgement {
        outcome: TestOutcome::Leak,
        seen: judge::seen(&talk),
        expected: "the memory used by a request is released after it".to_owned(),
        why,
        kind,
        ..Judgement::default()
    };
    culprit::keep(runner, case, &name, Rate::ONCE, (&guilty.script, talk), judgement, result);
}

/// Repeats each request of a case, and records the first one of which each repetition adds memory.
fn repeat_requests(
    runner: &mut Runner<'_>,
    case: &Case,
    before: &ServerState,
    result: &mut CaseResult,
) {
    let end = runner.now() + REPEATS_SPAN;
    for (name, script) in requests_of(runner, case, result) {
        if runner.now() > end || runner.is_stopped() || runner.life.is_gone() {
            return;
        }
        if let Some(why) = growth_by_repetition(runner, &script, before) {
            let start = runner.now();
            let talk = runner.hold(TalkScript { start, ..script.clone() });
            let guilty = Suspect::new(case, &name, script, talk);
            return keep(runner, case, &guilty, why, None, result);
        }
    }
}

/// Returns the requests of a case with their names: its exchanges, or its last conversations.
fn requests_of(
    runner: &mut Runner<'_>,
    case: &Case,
    result: &CaseResult,
) -> Vec<(String, TalkScript)> {
    if !result.case.exchanges.is_empty() {
        let script = |exchange: &Exchange| scripts::of_exchange(runner, exchange);
        let exchanges = &result.case.exchanges;
        let all: Vec<TalkScript> = exchanges.iter().map(script).collect();
        return exchanges.iter().map(|one| one.name.clone()).zip(all).collect();
    }
    let mut known = BTreeSet::new();
    let mut suspects = runner.trail.suspects();
    suspects.retain(|one| one.case == case.id && known.insert(one.name.clone()));
    suspects.into_iter().map(|one| (one.name, one.script)).collect()
}

/// Repeats a request until memory has grown enough, and describes the growth; `None` if it stops.
fn growth_by_repetition(
    runner: &mut Runner<'_>,
    script: &TalkScript,
    before: &ServerState,
) -> Option<String> {
    let length = record::sent(&script.steps).len() as u64;
    let least = STEP_GROWN.max(length.saturating_mul(AMPLIFIED));
    let first = level(runner, before)?;
    let enough = (first.saturating_mul(STEPS_FACTOR)).max(first + STEPS_ENOUGH);
    let (mut last, mut count) = (first, 0);
    while last < enough && count < STEPS_MAX {
        let start = runner.now();
        runner.hold(TalkScript { start, ..script.clone() });
        runner.world.pause(STEP_SETTLE);
        let next = level(runner, before)?;
        if runner.is_stopped() || next < last + least {
            return None;
        }
        (last, count) = (next, count + 1);
    }
    runner.world.pause(RELEASE);
    let kept = level(runner, before)?;
    // at least half of the growth remains
    (kept >= first + (last - first) / 2 && last - first >= STEPS_ENOUGH).then(|| {
        format!(
            "resident memory grew from {} to {} over {} repetitions of this request of {}, and was \
            not released within {}",
            show::bytes(first),
            show::bytes(last),
            show::count(count as u64),
            show::bytes(length),
            show::duration(RELEASE)
        )
    })
}

/// Sends a recorded request again, and describes the growth of memory; `None` if the memory does
/// not grow.
pub(crate) fn replay(runner: &mut Runner<'_>, script: &TalkScript) -> Option<String> {
    let before = runner.world.server()?;
    let start = runner.now();
    runner.hold(TalkScript { start, ..script.clone() });
    runner.world.pause(SETTLE);
    let growth = idle_growth(runner, &before).map(IdleGrowth::text);
    growth.or_else(|| growth_by_repetition(runner, script, &before))
}

/// Notes growth of memory without further requests in the case about the whole run. Returns whether
/// memory grows in this way; growth caused by requests cannot be measured then.
pub(crate) fn note_idle_growth(runner: &mut Runner<'_>, result: &mut CaseResult) -> bool {
    if let Some(since) = &runner.memory.grows_since {
        result.notes.push(format!("resident memory grows without further requests: see {since}"));
        return true;
    }
    let Some(before) = runner.life.before().cloned() else { return false };
    let Some(growth) = idle_growth(runner, &before) else { return false };
    runner.memory.grows_since = Some(result.case.id.clone());
    result.show(TestOutcome::Leak);
    result.notes.push(growth.text());
    true
}

/// Returns why a server whose memory grows without further requests is no longer tested.
pub(crate) fn limit_reason(runner: &Runner<'_>) -> Option<String> {
    let since = runner.memory.grows_since.as_ref()?;
    let rows = runner.life.rows();
    let (first, last) = (&rows.first()?.state, &rows.last()?.state);
    let grown = last.memory_bytes.saturating_sub(first.memory_bytes);
    (grown >= RUN_GROWN_MAX).then(|| {
        format!(
            "resident memory of the server grew from {} to {} and still grows (see {since}): \
            further cases could exhaust the memory of its machine",
            show::bytes(first.memory_bytes),
            show::bytes(last.memory_bytes)
        )
    })
}
