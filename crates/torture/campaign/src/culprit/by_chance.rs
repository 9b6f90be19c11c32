//! A crash that does not recur at once. Many repetitions show how often it occurs, and whether it
//! depends on what is sent.

use super::{blame_conversation, keep};
use crate::attempts::Rate;
use crate::life::AffectedPart;
use crate::search::{LossRate, SearchEnd};
use crate::trail::Suspect;
use crate::{GATE, Runner, search};
use dialogue::talk::TalkScript;
use torture::case::Case;
use torture::judge::{self, Cause, FailureKind, Judgement, TestOutcome};
use torture::result::{CaseResult, ExchangeResult, Recovery};
use units::show;

/// Repetitions of the last conversations, one after the other.
const ROUNDS: u32 = 20;
/// Crashes after which the rate is known well enough.
const CRASHES_MAX: u32 = 3;
/// Minimum number of crashes to report a rate or a dependence on the sent data.
const CRASHES_MIN: u32 = 2;
/// Threshold for the probability that random crashes all follow the same conversation; below it,
/// that conversation is the cause.
const COINCIDENCE_MAX: f64 = 0.05;

/// Result of the repetitions.
struct Repetitions {
    /// Rate of each conversation.
    rates: Vec<Rate>,
    affected: AffectedPart,
    /// Reason why the repetitions ended early.
    end: Option<SearchEnd>,
}

impl Repetitions {
    fn total(&self) -> Rate {
        let sum = |of: fn(&Rate) -> u32| self.rates.iter().map(of).sum();
        Rate { made: sum(|rate| rate.made), failed: sum(|rate| rate.failed) }
    }

    /// Returns the positions of the conversations after which a process crashed.
    fn crash_positions(&self) -> Vec<usize> {
        (0..self.rates.len()).filter(|at| self.rates[*at].failed > 0).collect()
    }

    fn verdict(&self) -> CrashVerdict {
        let failed = self.total().failed;
        match self.crash_positions().as_slice() {
            [] => CrashVerdict::NotAgain,
            _ if failed < CRASHES_MIN => CrashVerdict::TooFew,
            [one] if coincidence(self.rates.len(), failed) <= COINCIDENCE_MAX => {
                CrashVerdict::Depends(*one)
            }
            [_] => CrashVerdict::TooFew,
            [.., last] => CrashVerdict::Chance(*last),
        }
    }
}

/// Conclusion from the repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CrashVerdict {
    NotAgain,
    /// Too few crashes to distinguish a random crash from one that depends on the request.
    TooFew,
    /// The crash follows only this conversation.
    Depends(usize),
    /// The crash follows different conversations; this one was the last.
    Chance(usize),
}

/// Returns the probability that random crashes all follow the same conversation.
fn coincidence(conversations: usize, crashes: u32) -> f64 {
    match conversations {
        0 | 1 => 0.0,
        n => (n as f64).powi(1 - crashes.min(100) as i32),
    }
}

/// Repeats the last conversations until enough crashes show the rate, and records it for the
/// conversation that causes them, or for all. `affected`: the part affected by the observed crash.
pub(super) fn find(
    runner: &mut Runner<'_>,
    case: &Case,
    affected: AffectedPart,
    tail: &[Suspect],
    result: &mut CaseResult,
) {
    runner.budget.renew();
    let mut found = Repetitions { rates: vec![Rate::default(); tail.len()], affected, end: None };
    for _ in 0..ROUNDS {
        if let Err(end) = repeat(runner, tail, &mut found) {
            found.end = Some(end);
            break;
        }
        let undecided = found.verdict() == CrashVerdict::TooFew;
        if found.total().failed >= CRASHES_MAX && !undecided {
            break;
        }
    }
    let total = found.total();
    let stopped = found.end == Some(SearchEnd::Lost);
    match found.verdict() {
        CrashVerdict::NotAgain | CrashVerdict::TooFew => {
            let why = unexplained(&found, tail.len());
            for one in result.exchanges.iter_mut().filter(|one| is_crash(one)) {
                one.judgement.why.clone_from(&why);
            }
            result.notes.push(why);
        }
        CrashVerdict::Depends(one) => {
            let before = LossRate { rate: found.rates[one], affected: found.affected, stopped };
            blame_conversation(runner, case, &tail[one], before, result);
        }
        CrashVerdict::Chance(last) => {
            // the data sent at the time of the crash is not the cause
            result.exchanges.retain(|one| !is_crash(one));
            let seen = LossRate { rate: total, affected: found.affected, stopped };
            record_random_crash(runner, case, &tail[last], seen, result);
        }
    }
    if stopped {
        result.recovery = Recovery::Never;
        result.show(TestOutcome::Fail);
    }
}

/// Describes a crash whose cause the repetitions do not show.
fn unexplained(found: &Repetitions, tail: usize) -> String {
    let total = found.total();
    let end = match found.end {
        None => String::new(),
        Some(SearchEnd::Spent) => "; the search was stopped early".to_owned(),
        Some(SearchEnd::Lost) => {
            format!("; then plain requests got no response for {}", show::duration(GATE))
        }
    };
    match total.failed {
        0 => format!(
            "a process crashed once, but not again in {} repetitions of the last {tail} \
            conversations{end}",
            show::count(u64::from(total.made))
        ),
        _ => format!(
            "a process crashed again, in repetitions of the last {tail} conversations ({}): too \
            few crashes to tell whether the input matters{end}",
            total.text()
        ),
    }
}

fn is_crash(exchange: &ExchangeResult) -> bool {
    exchange.judgement.outcome == TestOutcome::Crashed
}

/// Records a crash that does not depend on the sent data.
fn record_random_crash(
    runner: &mut Runner<'_>,
    case: &Case,
    last: &Suspect,
    LossRate { rate, affected, stopped }: LossRate,
    result: &mut CaseResult,
) {
    let script = TalkScript { start: runner.now(), ..last.script.clone() };
    let talk = match last.talk.as_ref().filter(|_| stopped) {
        Some(talk) => talk.clone(),
        None => {
            let talk = runner.hold(script.clone());
            search::current_effect(runner);
            talk
        }
    };
    // a worker's crash disconnects its clients only
    let (outcome, what) = match affected.judged() {
        Some((outcome @ TestOutcome::Crashed, _)) => (outcome, "a process of the server"),
        _ => (TestOutcome::Fail, "a worker of the server"),
    };
    let judgement = Judgement {
        outcome,
        seen: judge::seen(&talk),
        expected: "plain requests get their usual response".to_owned(),
        why: format!("{what} crashes at random, regardless of the input (in {})", rate.text()),
        kind: Some(FailureKind::Lost),
        cause: Some(Cause::Chance),
        ..Judgement::default()
    };
    let name = "one of many requests";
    keep(runner, case, name, rate, (&script, talk), judgement, result);
}

/// Repeats each conversation once.
fn repeat(
    runner: &mut Runner<'_>,
    tail: &[Suspect],
    found: &mut Repetitions,
) -> Result<(), SearchEnd> {
    for at in (0..tail.len()).rev() {
        let effect = search::effect_of(runner, std::slice::from_ref(&tail[at]))?;
        found.rates[at].count(effect.is_loss());
        found.affected = found.affected.max(effect.affected);
        if effect.recovery == Recovery::Never {
            return Err(SearchEnd::Lost);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(crashes: &[u32]) -> CrashVerdict {
        let rate = |failed: &u32| Rate { made: 20, failed: *failed };
        let rates = crashes.iter().map(rate).collect();
        Repetitions { rates, affected: AffectedPart::Server, end: None }.verdict()
    }

    #[test]
    fn two_crashes_are_needed_for_a_verdict() {
        for (crashes, expected) in [
            (&[0, 0, 0][..], CrashVerdict::NotAgain),
            (&[0, 1, 0], CrashVerdict::TooFew),
            (&[1, 0, 1], CrashVerdict::Chance(2)),
            // twice after the same of two conversations: by chance in one of two runs
            (&[2, 0], CrashVerdict::TooFew),
            (&[6, 0], CrashVerdict::Depends(0)),
            (&[0, 3, 0, 0, 0], CrashVerdict::Depends(1)),
            (&[2], CrashVerdict::Depends(0)),
        ] {
            assert_eq!(verdict(crashes), expected, "{crashes:?}");
        }
    }

    #[test]
    fn a_single_crash_of_many_requests_names_its_interval() {
        let rates = vec![Rate { made: 200, failed: 1 }, Rate { made: 200, failed: 0 }];
        let found =
            Repetitions { rates, affected: AffectedPart::Worker, end: Some(SearchEnd::Spent) };
        assert_eq!(
            unexplained(&found, 2),
            "a process crashed again, in repetitions of the last 2 conversations (1 of 400, which \
            is 0.044 % to 1.40 % with 95 % confidence): too few crashes to tell whether the input \
            matters; the search was stopped early"
        );
    }
}
