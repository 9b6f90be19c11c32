//! A crash that does not recur at once: many repetitions show how often it occurs, and whether it
//! depends on what is sent.

use super::{accuse, keep};
use crate::attempts::Rate;
use crate::trail::Suspect;
use crate::{Runner, gate, search};
use dialogue::talk::TalkScript;
use torture::case::Case;
use torture::cause;
use torture::judge::{self, FailureKind, Judgement, TestOutcome};
use torture::result::{CaseResult, ExchangeResult};
use units::show;

/// Repetitions of the last conversations, one after the other.
const ROUNDS: u32 = 20;
/// Crashes after which the rate is known well enough.
const CRASHES_MAX: u32 = 3;

/// Repeats the last conversations until some crashes show the rate, and records it: of the only
/// conversation that causes them, or of all.
pub(super) fn find(
    runner: &mut Runner<'_>,
    case: &Case,
    tail: &[Suspect],
    result: &mut CaseResult,
) {
    runner.budget.renew();
    let mut rates = vec![Rate::default(); tail.len()];
    for _ in 0..ROUNDS {
        if repeat(runner, tail, &mut rates).is_none() || crashes(&rates) >= CRASHES_MAX {
            break;
        }
    }
    let made: u32 = rates.iter().map(|rate| rate.made).sum();
    let guilty: Vec<usize> = (0..tail.len()).filter(|at| rates[*at].failed > 0).collect();
    let total = show::count(u64::from(made));
    match guilty.as_slice() {
        [] => {
            let why = format!(
                "a process crashed once, but not again in {total} repetitions of the last {} \
                conversations",
                tail.len()
            );
            for one in result.exchanges.iter_mut().filter(|one| is_crash(one)) {
                one.judgement.why.clone_from(&why);
            }
            result.notes.push(why);
        }
        [one] if rates[*one].failed > 1 => accuse(runner, case, &tail[*one], rates[*one], result),
        [.., last] => {
            // whatever was sent when it crashed is not the cause
            result.exchanges.retain(|one| !is_crash(one));
            let rate = Rate { made, failed: crashes(&rates) };
            keep_chance(runner, case, &tail[*last], rate, result);
        }
    }
}

fn is_crash(exchange: &ExchangeResult) -> bool {
    exchange.judgement.outcome == TestOutcome::Crashed
}

/// Records a crash that does not depend on what is sent.
fn keep_chance(
    runner: &mut Runner<'_>,
    case: &Case,
    last: &Suspect,
    rate: Rate,
    result: &mut CaseResult,
) {
    let script = TalkScript { start: runner.now(), ..last.script.clone() };
    let talk = runner.hold(script.clone());
    gate::pass(runner);
    runner.life.hear(runner.world);
    let judgement = Judgement {
        outcome: TestOutcome::Crashed,
        seen: judge::seen(&talk),
        expected: "plain requests get their usual response".to_owned(),
        why: cause::BY_CHANCE.to_owned(),
        kind: Some(FailureKind::Lost),
    };
    let name = "one of many requests";
    keep(runner, case, name, rate, (&script, talk), judgement, result);
}

fn crashes(rates: &[Rate]) -> u32 {
    rates.iter().map(|rate| rate.failed).sum()
}

/// Repeats each conversation once; `None`: the search must end.
fn repeat(runner: &mut Runner<'_>, tail: &[Suspect], rates: &mut [Rate]) -> Option<()> {
    for (suspect, rate) in tail.iter().zip(rates.iter_mut()).rev() {
        let lost = search::lost_after(runner, std::slice::from_ref(suspect))?;
        rate.count(lost);
    }
    Some(())
}
