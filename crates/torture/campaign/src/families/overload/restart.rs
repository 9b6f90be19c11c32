//! the server is restarted while well-behaved clients continue.

use super::course::{self, LoadPlan};
use super::load::Flow;
use super::steps::{LoadedCall, Met};
use super::{CUT_SHORT, found, load_effect};
use crate::knee::Knee;
use crate::{Done, Runner, ServerCommand};
use torture::case::{Case, OverloadRestart};
use torture::judge::PressureOutcome;
use torture::result::{CaseResult, Measure, Unit};
use units::{Nanos, show};

/// Background load, as a share of the knee.
const EASY: f64 = 0.3;
/// Duration of the load before the command.
const BEFORE: Nanos = Nanos::from_secs(2);

/// Effect of a restart on the requests of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RestartEffect {
    /// Requests outstanding when the command started.
    in_flight: u64,
    /// Connections cut off: reset, or with a truncated response.
    cut: u64,
    /// The connection was closed regularly without a response byte.
    closed: u64,
    refused: u64,
    /// Requests without a response in time.
    silent: u64,
    /// Responses with 503 or 429, and other unusual ones.
    shed: u64,
    wrong: u64,
    due: u64,
    /// Time from the first refused connection to the first served one.
    refused_for: Nanos,
}

impl RestartEffect {
    /// Computes the effect on the calls of a load, with the command started at this instant.
    fn new(calls: &[LoadedCall], at: Nanos) -> RestartEffect {
        let mut effect = RestartEffect::default();
        let mut refused: Option<(Nanos, Nanos)> = None;
        for call in calls {
            let end = call.due + call.over;
            effect.due += 1;
            effect.in_flight += u64::from(
                call.due <= at && end > at && !matches!(call.met, Met::Unsent | Met::Unopened),
            );
            match call.met {
                Met::Reset | Met::Short => effect.cut += 1,
                Met::Closed => effect.closed += 1,
                Met::Refused => {
                    effect.refused += 1;
                    let (first, last) = refused.unwrap_or((call.due, call.due));
                    refused = Some((first.min(call.due), last.max(call.due)));
                }
                Met::Silent => effect.silent += 1,
                Met::Shed => effect.shed += 1,
                Met::Wrong | Met::Fault => effect.wrong += 1,
                Met::Right | Met::Unsent | Met::Unopened | Met::Ours => {}
            }
        }
        if let Some((first, last)) = refused {
            let right = calls.iter().filter(|call| call.met == Met::Right && call.due > last);
            let again = right.map(|call| call.due).min().unwrap_or(last);
            effect.refused_for = again - first;
        }
        effect
    }

    fn lost(&self) -> u64 {
        self.cut + self.closed + self.refused + self.silent + self.shed + self.wrong
    }

    fn words(&self) -> String {
        let parts = [
            (self.cut, "cut off"),
            (self.closed, "closed without a response"),
            (self.refused, "refused"),
            (self.silent, "no response in time"),
            (self.shed, "shed"),
            (self.wrong, "unexpected response"),
        ];
        let named: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", show::count(*count)))
            .collect();
        if named.is_empty() { "all got their usual response".to_owned() } else { named.join(", ") }
    }
}

pub(in crate::families) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &OverloadRestart,
    result: &mut CaseResult,
) {
    let Some(knee) = found(runner, case, with.search(), result) else { return };
    let (span, easy) = (with.watch, sustainable_rate(&knee));
    let at = runner.now() + BEFORE;
    runner.life.expect_end();
    runner.world.schedule_command(ServerCommand::Restart, at);
    let end = BEFORE + span;
    let flow = Flow::new(0, Nanos::ZERO, end, easy);
    let route = course::probed_route(runner);
    let course = LoadPlan { resends: false, ..LoadPlan::new(vec![route], vec![flow], end) };
    let played = course::play(runner, case, with.waiting, course);
    let done = runner.world.finished_commands();
    let (health, verdict) = load_effect(runner, &played, BEFORE);
    result.health = Some(health);
    let Some(command) = ran(&done, ServerCommand::Restart, result) else { return };
    let began = command.began - played.load.start();
    let effect = RestartEffect::new(played.load.calls(), began);
    measure(&effect, command, easy, result);
    let lost = effect.cut + effect.silent;
    if lost > 0 {
        result.notes.push(format!(
            "cut off or without a response: {} of {} requests",
            show::count(lost),
            show::count(effect.due),
        ));
    }
    let shown = if played.cut_short {
        result.notes.push(CUT_SHORT.to_owned());
        PressureOutcome::Inconclusive
    } else if health.recovery.is_none() || verdict.outcome == PressureOutcome::Leak {
        result.notes.push("the server did not come back".to_owned());
        PressureOutcome::Crashed
    } else if command.trouble.is_some() {
        PressureOutcome::Inconclusive
    } else if lost > 0 {
        PressureOutcome::Degraded
    } else {
        PressureOutcome::Held
    };
    result.outcome = shown.into();
}

/// Returns a rate that the server sustains easily, even if its knee is unknown.
pub(super) fn sustainable_rate(knee: &Knee) -> f64 {
    knee.sustainable_rate(EASY)
}

/// Returns the completed command; records if it was not run or failed.
pub(super) fn ran<'a>(
    done: &'a [Done],
    action: ServerCommand,
    result: &mut CaseResult,
) -> Option<&'a Done> {
    let found = done.iter().find(|one| one.action == action);
    let option = action.option();
    match found.map(|one| &one.trouble) {
        None => {
            result.outcome = PressureOutcome::Inconclusive.into();
            result.notes.push(format!("{option} was not run"));
        }
        Some(Some(trouble)) => result.notes.push(format!("{option}: {trouble}")),
        Some(None) => {}
    }
    found
}

fn measure(effect: &RestartEffect, command: &Done, easy: f64, result: &mut CaseResult) {
    let count = |what: &str, count: u64, note: String| {
        Measure::exact(what, count as f64, Unit::Count, note)
    };
    let took = show::duration(command.ended - command.began);
    result.measures.push(Measure::exact(
        "refused during a restart",
        effect.refused_for.as_secs_f64(),
        Unit::Spent,
        format!("the command took {took}, at {}", show::rate(easy)),
    ));
    result.measures.push(count("lost during a restart", effect.lost(), effect.words()));
    let note = match effect.in_flight {
        0 => "none in flight".to_owned(),
        _ if effect.cut == 0 => "no request was cut off".to_owned(),
        _ => format!("{} of all requests were cut off", show::count(effect.cut)),
    };
    result.measures.push(count("in flight at the restart", effect.in_flight, note));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_of_a_restart_are_counted() {
        let ms = Nanos::from_millis;
        let call = |due: u64, over: u64, met| LoadedCall {
            route: 0,
            due: ms(due),
            late: Nanos::ZERO,
            over: ms(over),
            met,
        };
        let calls = [
            call(900, 50, Met::Right),
            call(990, 20, Met::Right),
            call(995, 10, Met::Reset),
            call(999, 10, Met::Closed),
            call(1_100, 0, Met::Refused),
            call(1_200, 0, Met::Refused),
            call(1_300, 5, Met::Right),
            call(1_400, 5, Met::Shed),
        ];
        let effect = RestartEffect::new(&calls, ms(1_000));
        assert_eq!((effect.in_flight, effect.cut, effect.closed, effect.refused), (3, 1, 1, 2));
        assert_eq!((effect.refused_for, effect.lost(), effect.due), (ms(200), 5, 8));
        assert_eq!(effect.words(), "1 cut off, 1 closed without a response, 2 refused, 1 shed");
        let none = RestartEffect::new(&calls[..1], ms(1_000));
        assert_eq!(
            (none.words(), none.refused_for),
            ("all got their usual response".into(), ms(0))
        );
    }
}
