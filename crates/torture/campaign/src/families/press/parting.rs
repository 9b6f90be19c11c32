//! Clients that disconnect: by a reset before the response, or by closing in the middle of a
//! request.

use super::churn::{is_by_server, noisy};
use super::held::post_head;
use super::refill::{fill, places, refill};
use super::{OPENS, pace};
use crate::pressure::{BACK_WITHIN, Plan, Round};
use crate::{Runner, bounds, habits, pressure};
use dialogue::talk::{Move, TalkScript};
use torture::case::{Case, PressEnds, PressResets};
use torture::judge::{LoadOutcome, PressureOutcome, TestOutcome};
use torture::result::{CaseResult, Measure, Unit};
use units::{Nanos, show};

/// Sends complete requests and resets before the response, in rounds: leaked resources add up.
pub(in crate::families) fn resets(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &PressResets,
    result: &mut CaseResult,
) {
    if noisy(runner, result) {
        return;
    }
    let (count, rate) = (with.connections, with.rate);
    let rounds = with.rounds.max(1);
    let request = habits::plain_request(runner.target, "");
    let former = places(runner, case);
    let mut slowest = Nanos::ZERO;
    let mut slow: Vec<Vec<String>> = Vec::new();
    let mut made = 0;
    for turn in 1..=rounds {
        made = turn;
        let steps = vec![Move::Send(request.clone()), Move::Reset];
        let scripts = (0..count).map(|_| runner.bare(steps.clone(), LIFE)).collect();
        let plan = Plan {
            until_over: true,
            armed_early: true,
            ..Plan::paced(
                scripts,
                pace(bounds::opens_max(runner.world.governor(), rate)),
                Nanos::SECOND,
            )
        };
        let round = pressure::round_with_confirmed_denial(runner, &case.id, &plan);
        let back = round.health.recovery;
        slowest = slowest.max(back.unwrap_or_default());
        match round.outcome {
            PressureOutcome::Degraded => slow.push(round.notes.clone()),
            _ => lasting(result, &round, turn, rounds),
        }
        result.health = Some(round.health);
        if back.is_none() {
            break;
        }
        if turn < rounds && runner.must_end_run() {
            let why =
                format!("the run, or the time of the case, ended after {turn} of {rounds} rounds");
            result.note(PressureOutcome::Inconclusive, why);
            break;
        }
    }
    slowed(result, slow, made);
    if let Some(former) = former {
        refill(runner, result, former, &|runner, hold| fill(runner, case, former, hold));
    }
    // if our own probes were late, so were their observations
    let sick = result.outcome == TestOutcome::Inconclusive;
    if slowest > BACK_WITHIN && result.outcome < TestOutcome::Degraded && !sick {
        result.outcome = PressureOutcome::Degraded.into();
        result
            .notes
            .push(format!("after resets the server took {} to recover", show::duration(slowest)));
    }
}

/// Records the slow rounds out of `made`, with their notes. A single one of several may be chance:
/// other programs slow the server too.
fn slowed(result: &mut CaseResult, slow: Vec<Vec<String>>, made: u64) {
    let Some(first) = slow.first() else { return };
    let often = slow.len() as u64 * 2 > made;
    result.show(if often { PressureOutcome::Degraded } else { PressureOutcome::Held });
    if made > 1 {
        result.notes.push(format!("in {} of {made} rounds:", slow.len()));
    }
    result.notes.extend(first.iter().cloned());
}

/// Records the effect of a round, whether it lasts or occurred only during the round.
fn lasting(result: &mut CaseResult, round: &Round, turn: u64, rounds: u64) {
    result.show(round.outcome);
    let lasts = matches!(round.outcome, PressureOutcome::Leak | PressureOutcome::Crashed);
    if lasts {
        result.notes.push(format!("in round {turn} of {rounds}:"));
    }
    for note in round.notes.iter().filter(|_| round.outcome > PressureOutcome::Held) {
        if !result.notes.contains(note) {
            result.notes.push(note.clone());
        }
    }
}

/// Closes in the middle of a head or a body: the rest can never arrive.
pub(in crate::families) fn ends(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &PressEnds,
    result: &mut CaseResult,
) {
    if noisy(runner, result) {
        return;
    }
    let (within, horizon) = (with.within, with.horizon);
    let mut parts = vec![("head", half_head(runner, horizon))];
    if runner.target.takes_bodies {
        parts.push(("body", half_body(runner, horizon)));
    }
    let count = bounds::connections_max(runner.world.governor(), with.connections);
    let gap = pace(bounds::opens_max(runner.world.governor(), OPENS));
    let former = places(runner, case);
    for (part, script) in parts {
        let scripts = (0..count).map(|_| runner.bare(script.steps.clone(), horizon));
        let scripts = scripts.map(|one| TalkScript { hold: true, ..one }).collect();
        let plan =
            Plan { until_over: true, armed_early: true, ..Plan::paced(scripts, gap, horizon) };
        let round = pressure::confirmed_round(runner, &case.id, &plan);
        if round.outcome == PressureOutcome::Inconclusive || runner.is_stopped() {
            result.show(PressureOutcome::Inconclusive);
            result.notes.extend(round.notes);
            return;
        }
        judge_ends(result, part, &round, within, horizon);
        if round.is_bound() {
            result.show(round.outcome);
            result.notes.extend(round.notes);
        }
        result.health = Some(round.health);
    }
    if let Some(former) = former {
        refill(runner, result, former, &|runner, hold| fill(runner, case, former, hold));
    }
}

fn judge_ends(result: &mut CaseResult, part: &str, round: &Round, within: Nanos, horizon: Nanos) {
    let mut spans: Vec<Nanos> =
        round.ended.iter().filter(|one| is_by_server(one.end)).map(|one| one.over).collect();
    spans.sort_unstable();
    let left = round.ended.len() - spans.len();
    let last = spans.last().copied();
    result.measures.push(Measure {
        what: format!("client close inside a {part}"),
        low: Some(last.unwrap_or(horizon).as_secs_f64()),
        high: last.filter(|_| left == 0).map(Nanos::as_secs_f64),
        unit: Unit::Spent,
        note: match left {
            0 => format!("the server closed all {}", spans.len()),
            _ => format!(
                "{left} of {} were still open after {}",
                round.ended.len(),
                show::duration(horizon)
            ),
        },
    });
    if left > 0 {
        result.show(LoadOutcome::Unbounded);
        result.notes.push(format!(
            "{left} of {} connections whose client had closed inside a {part} were still open \
            after {}",
            round.ended.len(),
            show::duration(horizon)
        ));
    } else if let Some(last) = last.filter(|last| *last > within) {
        result.show(LoadOutcome::Advisory);
        result.notes.push(format!(
            "a connection whose client had closed inside a {part} was closed only after {}",
            show::duration(last)
        ));
    }
}

const LIFE: Nanos = Nanos::from_secs(10);

fn half_head(runner: &mut Runner<'_>, horizon: Nanos) -> TalkScript {
    let mut head = habits::plain_request(runner.target, "");
    head.truncate(head.len() - 2);
    runner.bare(vec![Move::Send(head), Move::HalfClose], horizon)
}

fn half_body(runner: &mut Runner<'_>, horizon: Nanos) -> TalkScript {
    let mut bytes = post_head(runner, 10_000);
    bytes.extend_from_slice(&[b'a'; 100]);
    runner.bare(vec![Move::Send(bytes), Move::HalfClose], horizon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use torture::catalogue;

    /// A run may end before all planned rounds.
    #[test]
    fn slow_rounds_are_compared_with_the_rounds_made() {
        let case = catalogue::cases().into_iter().flatten().find(|case| case.id == "C-03");
        let case = case.expect("a case of the catalogue");
        for (slow, made, outcome, note) in [
            (1, 1, TestOutcome::Degraded, None),
            (1, 3, TestOutcome::Held, Some("in 1 of 3 rounds:")),
            (2, 3, TestOutcome::Degraded, Some("in 2 of 3 rounds:")),
        ] {
            let mut result = CaseResult::new(&case);
            slowed(&mut result, vec![vec!["slow".to_owned()]; slow], made);
            assert_eq!(result.outcome, outcome, "{slow} of {made}");
            let notes: Vec<&str> = note.into_iter().chain(["slow"]).collect();
            assert_eq!(result.notes, notes);
        }
    }
}
