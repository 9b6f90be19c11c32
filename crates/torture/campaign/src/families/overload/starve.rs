//! a user command withdraws a resource that the server needs, and restores it.

use super::course::{self, LoadPlan};
use super::load::Flow;
use super::restart::{ran, sustainable_rate};
use super::steps::{LoadedCall, Met};
use super::{CUT_SHORT, found, load_effect, measure_recovery};
use crate::{GATE, Runner, ServerCommand};
use torture::case::{Case, OverloadStarve};
use torture::judge::{LoadOutcome, PressureOutcome};
use torture::result::CaseResult;
use units::{Nanos, show};

/// Duration of the load before the command.
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
    let (span, easy) = (with.starve, sustainable_rate(&knee));
    let end = BEFORE + span;
    let start = runner.now();
    runner.world.schedule_command(ServerCommand::Starve, start + BEFORE);
    runner.world.schedule_command(ServerCommand::Relieve, start + end);
    // the load continues after the restoration, which needs a moment
    let flow = Flow::new(0, Nanos::ZERO, end + GATE, easy);
    let route = course::probed_route(runner);
    let played =
        course::play(runner, case, with.waiting, LoadPlan::new(vec![route], vec![flow], end));
    let done = runner.world.finished_commands();
    let (health, verdict) = load_effect(runner, &played, BEFORE);
    result.health = Some(health);
    let Some(starved) = ran(&done, ServerCommand::Starve, result) else { return };
    let Some(relieved) = ran(&done, ServerCommand::Relieve, result) else { return };
    let trouble = starved.trouble.is_some() || relieved.trouble.is_some();
    let (from, until) = (starved.began - played.load.start(), relieved.began - played.load.start());
    let results = StarvationResult::new(played.load.calls(), from, until);
    let note = format!("starved for {}: {}", show::duration(until - from), results.words());
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
        _ if results.unanswered as f64 > results.due as f64 * SILENT_MAX => {
            let (lost, due) = (show::count(results.unanswered), show::count(results.due));
            result.notes.push(format!(
                "during the starvation {lost} of {due} requests got no response, not even an error"
            ));
            PressureOutcome::Degraded.into()
        }
        _ if results.right == results.due => {
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
struct StarvationResult {
    due: u64,
    right: u64,
    /// Responses with 503 or 429, or another error status.
    responded: u64,
    /// Requests without a response, or with a truncated one.
    unanswered: u64,
}

impl StarvationResult {
    fn new(calls: &[LoadedCall], from: Nanos, until: Nanos) -> StarvationResult {
        let mut results = StarvationResult::default();
        for call in calls.iter().filter(|call| call.due >= from && call.due < until) {
            results.due += 1;
            match call.met {
                Met::Right => results.right += 1,
                Met::Shed | Met::Fault | Met::Wrong => results.responded += 1,
                Met::Short | Met::Closed | Met::Reset | Met::Refused | Met::Silent => {
                    results.unanswered += 1;
                }
                Met::Unsent | Met::Unopened | Met::Ours => results.due -= 1,
            }
        }
        results
    }

    fn words(&self) -> String {
        let count = show::count;
        format!(
            "of {} requests {} got their usual response, {} another one, {} none",
            count(self.due),
            count(self.right),
            count(self.responded),
            count(self.unanswered)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_due_during_starvation_are_counted() {
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
        let all = StarvationResult::new(&calls, ms(0), ms(1_000));
        assert_eq!(all, StarvationResult { due: 5, right: 1, responded: 2, unanswered: 2 });
        assert_eq!(StarvationResult::new(&calls, ms(100), ms(200)).due, 1);
    }
}
