//! Simultaneous connections: the length of the accept queue, and which clients wait.

use super::churn::noisy;
use crate::pressure::{Plan, Round};
use crate::{Runner, bounds, habits, pressure};
use dialogue::talk::{Move, TalkScript};
use torture::case::{Case, PressBurst};
use torture::judge::{LoadOutcome, PressureOutcome};
use torture::result::{CaseResult, Measure, Unit};
use units::{Nanos, show};

/// Duration of a connection attempt whose SYN was lost and retransmitted (RFC 6298 section 2: the
/// first retransmission follows after one second).
const REPEATED: Nanos = Nanos::from_millis(900);
/// Time limit of each connection of a burst.
const DEADLINE: Nanos = Nanos::from_secs(10);
/// Interval of waves: the connections permitted per second are opened at once, the next wave
/// follows a second later.
const WAVE: Nanos = Nanos::from_millis(1_100);

pub(in crate::families) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &PressBurst,
    result: &mut CaseResult,
) {
    if noisy(runner, result) {
        return;
    }
    let count = bounds::connections_max(runner.world.governor(), with.connections);
    let at_once = bounds::opens_max(runner.world.governor(), count);
    let at_once = bounds::requests_max(runner.world.governor(), at_once);
    let round = burst(runner, case, (count, at_once), Nanos::ZERO);
    if round.outcome == PressureOutcome::Inconclusive {
        result.outcome = PressureOutcome::Inconclusive.into();
        result.notes.extend(round.notes);
        return;
    }
    let within = with.within;
    let fast = fast(&round);
    let served = round.ended.iter().filter(|one| one.right).count() as u64;
    let slow = round.ended.iter().filter(|one| one.right && one.over > within).count() as u64;
    let failed = count - served;
    let waves = match at_once < count {
        true => format!("; {at_once} per second, because of our limits"),
        false => String::new(),
    };
    result.measures.push(Measure {
        what: "connections at once".to_owned(),
        low: Some(fast as f64),
        high: (fast < count).then_some(fast as f64 + 1.0),
        unit: Unit::Connections,
        note: match fast < count {
            true => format!(
                "the others waited {} or more: the accept queue was full{waves}",
                show::duration(REPEATED)
            ),
            false => format!("all were accepted at once{waves}"),
        },
    });
    if slow > 0 || failed > 0 {
        result.notes.push(format!(
            "of {count} simultaneous connections {served} were served, {slow} of them after more \
            than {}",
            show::duration(within)
        ));
    }
    let shown: LoadOutcome = match (failed, slow) {
        (0, 0) => PressureOutcome::Held.into(),
        _ => LoadOutcome::Advisory,
    };
    result.outcome = shown.into();
    result.health = Some(round.health);
    // a lasting effect outranks the burst's effect on itself
    if matches!(round.outcome, PressureOutcome::Leak | PressureOutcome::Crashed) {
        result.outcome = round.outcome.into();
        result.notes.extend(round.notes);
        return;
    }
    if !runner.is_stopped() {
        queue(runner, case, at_once, with.silence, result);
    }
}

/// Measures the queue of busy workers: clients connect and stay silent for a while. A server that
/// reads one request at a time accepts no other connection during that time.
fn queue(
    runner: &mut Runner<'_>,
    case: &Case,
    count: u64,
    silence: Nanos,
    result: &mut CaseResult,
) {
    let round = burst(runner, case, (count, count), silence);
    // the kept probe occupied its own worker
    let fast = fast(&round) + u64::from(round.kept);
    if round.outcome == PressureOutcome::Inconclusive || fast >= count {
        return;
    }
    let slots = runner.settings.slots.or(runner.profile.slots()).filter(|slots| *slots <= fast);
    let (what, of) = match slots {
        Some(slots) => ("accept queue", format!(", in addition to {slots} being served")),
        None => ("workers and accept queue", String::new()),
    };
    let low = (fast - slots.unwrap_or(0)) as f64;
    result.measures.push(Measure {
        what: what.to_owned(),
        low: Some(low),
        high: Some(low + 1.0),
        unit: Unit::Connections,
        note: format!(
            "clients that are silent for {}{of}: additional ones waited {} or longer for a \
            connection",
            show::duration(silence),
            show::duration(REPEATED)
        ),
    });
    result.show(LoadOutcome::Advisory);
}

/// Opens connections at a rate; each sends after a while.
fn burst(
    runner: &mut Runner<'_>,
    case: &Case,
    (count, at_once): (u64, u64),
    silence: Nanos,
) -> Round {
    let request = habits::plain_request(runner.target, "Connection: close\r\n");
    let mut steps = vec![Move::Send(request)];
    if silence > Nanos::ZERO {
        steps.insert(0, Move::Pause(silence));
    }
    let script = runner.bare(steps, DEADLINE + silence);
    // between two probes, which would occupy slots themselves
    let first = Nanos(runner.prober.every().0 / 4);
    let at = |index: u64| first + WAVE * (index / at_once.max(1));
    let scripts: Vec<(Nanos, TalkScript)> =
        (0..count).map(|index| (at(index), script.clone())).collect();
    let plan = Plan {
        scripts,
        until_over: true,
        armed_early: true,
        ..Plan::paced(Vec::new(), Nanos::ZERO, DEADLINE + silence)
    };
    pressure::round(runner, &case.id, &plan)
}

/// Returns how many connected at the first attempt.
fn fast(round: &Round) -> u64 {
    let at_once = |span: Option<Nanos>| span.is_some_and(|span| span < REPEATED);
    round.ended.iter().filter(|one| at_once(one.connected)).count() as u64
}
