//! a user command withdraws a resource that the server needs, and restores it.

use super::course::{self, Course};
use super::load::Flow;
use super::restart::{easy, ran};
use super::steps::{LoadedCall, Met};
use super::{CUT_SHORT, felt, found, measure_recovery};
use crate::{GATE, Runner, ServerCommand};
use torture::case::{Case, OverloadStarve};
use torture::judge::{LoadOutcome, PressureOutcome};
use torture::result::CaseResult;
use units::{Nanos, show};

/// Time before the command.
const BEFORE: Nanos = Nanos::from_secs(2);
/// Maximum share of requests without a response: the server should report an error.
const SILENT_MAX: f64 = 0.05;

pub(in crate::families) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &OverloadStarve,
    result: &mut CaseResult,
) {
    let Some(knee) = found(runner, case, with.search(), result) else { return };
    let (span, easy) = (with.starve, easy(&knee));
    let end = BEFORE + span;
    let start = runner.now();
    runner.world.send_for(ServerCommand::Starve, start + BEFORE);
    runner.world.send_for(ServerCommand::Relieve, start + end);
    // the load continues after the restoration, which needs a moment
    let flow = Flow::new(0, Nanos::ZERO, end + GATE, easy);
    let route = course::probed_route(runner);
    let played =
        course::play(runner, case, with.waiting, Course::new(vec![route], vec![flow], end));
    let done = runner.world.errands();
    let (health, verdict) = felt(runner, &played, BEFORE);
    result.health = Some(health);
    let Some(starved) = ran(&done, ServerCommand::Starve, result) else { return };
    let Some(relieved) = ran(&done, ServerCommand::Relieve, result) else { return };
    let trouble = starved.trouble.is_some() || relieved.trouble.is_some();
    let (from, until) = (starved.began - played.load.start(), relieved.began - played.load.start());
    let toll = Toll::of(played.load.calls(), from, until);
    let note = format!("starved for {}: {}", show::duration(until - from), toll.words());
    measure_recovery(result, "recovery after starvation", &health, note);
    let grave = [PressureOutcome::Crashed, PressureOutcome::Leak];
    let shown: LoadOutcome = match verdict.outcome {
        _ if played.cut_short => {
            result.notes.insert(0, CUT_SHORT.to_owned());
            PressureOutcome::Inconclusive.into()
        }
        _ if trouble => PressureOutcome::Inconclusive.into(),
        word if grave.contains(&word) => {
            result.notes.extend(verdict.notes);
            LoadOutcome::Felt(word)
        }
        _ if toll.unanswered as f64 > toll.due as f64 * SILENT_MAX => {
            let (lost, due) = (show::count(toll.unanswered), show::count(toll.due));
            result.notes.push(format!(
                "during the starvation {lost} of {due} requests got no response, not even an error"
            ));
            PressureOutcome::Degraded.into()
        }
        _ if toll.right == toll.due => {
            result
                .notes
                .push("the starvation had no effect, so nothing can be concluded".to_owned());
            LoadOutcome::Unseen
        }
        _ => PressureOutcome::Held.into(),
    };
    result.outcome = shown.into();
}

/// Results of requests that were due during the starvation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Toll {
    due: u64,
    right: u64,
    /// 503 or 429, or another error response.
    said: u64,
    /// No response or a truncated one, in any form.
    unanswered: u64,
}

impl Toll {
    fn of(calls: &[LoadedCall], from: Nanos, until: Nanos) -> Toll {
        let mut toll = Toll::default();
        for call in calls.iter().filter(|call| call.due >= from && call.due < until) {
            toll.due += 1;
            match call.met {
                Met::Right => toll.right += 1,
                Met::Shed | Met::Fault | Met::Wrong => toll.said += 1,
                Met::Short | Met::Closed | Met::Reset | Met::Refused | Met::Silent => {
                    toll.unanswered += 1;
                }
                Met::Unsent | Met::Unopened | Met::Ours => toll.due -= 1,
            }
        }
        toll
    }

    fn words(&self) -> String {
        let count = show::count;
        format!(
            "of {} requests {} got their usual response, {} another one, {} none",
            count(self.due),
            count(self.right),
            count(self.said),
            count(self.unanswered)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fell_due_while_it_starved_is_counted() {
        let ms = Nanos::from_millis;
        let met = [Met::Right, Met::Shed, Met::Fault, Met::Reset, Met::Silent, Met::Unsent];
        let call = |(n, met): (usize, &Met)| LoadedCall {
            route: 0,
            due: ms(n as u64 * 100),
            late: Nanos::ZERO,
            over: ms(1),
            met: *met,
        };
        let calls: Vec<LoadedCall> = met.iter().enumerate().map(call).collect();
        let all = Toll::of(&calls, ms(0), ms(1_000));
        assert_eq!(all, Toll { due: 5, right: 1, said: 2, unanswered: 2 });
        assert_eq!(Toll::of(&calls, ms(100), ms(200)).due, 1);
    }
}
