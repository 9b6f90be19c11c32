//! Slow but well-behaved clients: many at modem speed, each of which completes its request.

use super::churn::noisy;
use super::held::post_head;
use super::{OPENS, pace};
use crate::pressure::Plan;
use crate::{Runner, bounds, habits, pressure};
use dialogue::talk::{Move, TalkScript};
use torture::case::{Case, PressHonest};
use torture::judge::{LoadOutcome, PressureOutcome};
use torture::record;
use torture::result::CaseResult;
use units::{Nanos, show};

/// Pieces per second.
const PIECES: u64 = 4;
/// Time for the response after the last piece.
const RESPONSE: Nanos = Nanos::from_secs(10);
/// Size of one filler field.
const FILLER: usize = 500;

pub(in crate::families) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &PressHonest,
    result: &mut CaseResult,
) {
    if noisy(runner, result) {
        return;
    }
    let (rate, size) = (with.rate.0.max(PIECES), with.size.0);
    let count = bounds::connections_max(runner.world.governor(), with.connections);
    let takes = runner.target.takes_bodies;
    let lasts = Nanos::from_secs_f64(size as f64 / rate as f64 + 1.0) + RESPONSE;
    let scripts = slow_clients(runner, count, (rate, size), lasts);
    let plan = Plan {
        until_over: true,
        ..Plan::paced(scripts, pace(bounds::opens_max(runner.world.governor(), OPENS)), lasts)
    };
    let round = pressure::confirmed_round(runner, &case.id, &plan);
    result.outcome = round.outcome.into();
    result.notes.extend(round.notes.iter().cloned());
    result.health = Some(round.health);
    if round.outcome == PressureOutcome::Inconclusive {
        return;
    }
    let served = |index: usize, right: bool, status: Option<u16>| match takes && index % 2 == 1 {
        true => status.is_some_and(|status| status < 400),
        false => right,
    };
    let cut: Vec<_> =
        round.ended.iter().filter(|one| !served(one.index, one.right, one.status)).collect();
    if cut.is_empty() {
        return;
    }
    let longest = cut.iter().map(|one| one.over).max().unwrap_or_default();
    let control = control(runner, &plan, lasts);
    let quick = pressure::round(runner, &case.id, &control);
    if quick.outcome == PressureOutcome::Inconclusive {
        result.show(PressureOutcome::Inconclusive);
        result.notes.push(format!(
            "{} of {count} slow clients were not served; the control run with as many fast \
            clients was inconclusive",
            cut.len()
        ));
        result.notes.extend(quick.notes);
        return;
    }
    let refused =
        quick.ended.iter().filter(|one| !served(one.index, one.right, one.status)).count();
    if refused >= cut.len() {
        result.show(PressureOutcome::Inconclusive);
        result.notes.push(format!(
            "{} of {count} slow clients were not served, and {refused} of as many fast ones: \
            slowness is not the cause",
            cut.len()
        ));
        return;
    }
    result.show(LoadOutcome::Advisory);
    result.notes.push(format!(
        "{} of {count} clients that sent {} per second were not served, the last after {}: a \
        timeout is too strict for slow links, or they were too many",
        cut.len(),
        show::bytes(rate),
        show::duration(longest)
    ));
}

/// Returns the control: the same number of equal requests, without the slow link.
fn control(runner: &mut Runner<'_>, slow: &Plan, lasts: Nanos) -> Plan {
    let at_once: Vec<TalkScript> = slow
        .scripts
        .iter()
        .map(|(_, script)| TalkScript {
            steps: vec![Move::Send(record::sent(&script.steps))],
            ..script.clone()
        })
        .collect();
    let pace = pace(bounds::opens_max(runner.world.governor(), OPENS));
    Plan { until_over: true, ..Plan::paced(at_once, pace, lasts) }
}

/// Returns clients on slow links: heads of this size, alternating with bodies if the server accepts
/// any.
fn slow_clients(
    runner: &mut Runner<'_>,
    count: u64,
    (rate, size): (u64, u64),
    lasts: Nanos,
) -> Vec<TalkScript> {
    let head = slowly(long_head(runner, size), rate);
    let body = slowly(long_body(runner, size), rate);
    let takes = runner.target.takes_bodies;
    (0..count)
        .map(|turn| match takes && turn % 2 == 1 {
            true => {
                TalkScript { methods: vec!["POST".to_owned()], ..runner.bare(body.clone(), lasts) }
            }
            false => runner.bare(head.clone(), lasts),
        })
        .collect()
}

/// Returns a valid request with a head of about this size.
fn long_head(runner: &Runner<'_>, size: u64) -> Vec<u8> {
    let lines = size as usize / FILLER;
    let fields: String = (0..lines)
        .map(|index| format!("X-Slow-{index}: {}\r\n", "a".repeat(FILLER - 13)))
        .collect();
    habits::plain_request(runner.target, &format!("{fields}Connection: close\r\n"))
}

fn long_body(runner: &Runner<'_>, size: u64) -> Vec<u8> {
    let mut bytes = post_head(runner, size);
    bytes.resize(bytes.len() + size as usize, b'a');
    bytes
}

/// Sends the same bytes at this rate per second.
fn slowly(bytes: Vec<u8>, rate: u64) -> Vec<Move> {
    let mut steps = Vec::new();
    for piece in bytes.chunks((rate / PIECES) as usize) {
        if !steps.is_empty() {
            steps.push(Move::Pause(pace(PIECES)));
        }
        steps.push(Move::Send(piece.to_vec()));
    }
    steps
}
