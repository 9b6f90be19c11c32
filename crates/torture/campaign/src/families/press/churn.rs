//! Connections that are opened and closed: at a rate, and one for each request.

use super::{OPENS, pace};
use crate::pressure::Plan;
use crate::{Runner, bounds, habits, pressure};
use dialogue::talk::Awaited;
use dialogue::talk::{Move, TalkEnd};
use torture::case::{Case, PressKeepAlive, PressRate};
use torture::judge::PressureOutcome;
use torture::result::{CaseResult, Measure, Unit};
use units::{Nanos, show};

/// Number of rate steps up to the maximum.
const STEPS: u64 = 4;
const CALL_DEADLINE: Nanos = Nanos::from_secs(30);

/// Opens and closes connections at growing rates, at the maximum for the whole time.
pub(in crate::families) fn rate(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &PressRate,
    result: &mut CaseResult,
) {
    if noisy(runner, result) {
        return;
    }
    let (most, span) = (bounds::opens_max(runner.world.governor(), with.rate), with.span);
    let mut borne = 0;
    let mut learned = true;
    for step in 1..=STEPS {
        let rate = (most * step / STEPS).max(1);
        let lasts = if step == STEPS { span } else { Nanos(span.0 / STEPS) };
        let count = (lasts.as_secs_f64() * rate as f64).ceil() as u64;
        let scripts = (0..count).map(|_| runner.bare(vec![Move::Close], CALL_DEADLINE)).collect();
        let plan = Plan { until_over: true, ..Plan::paced(scripts, pace(rate), Nanos::SECOND) };
        // the load starts with the first connection
        let plan = Plan { armed_early: true, ..plan };
        let round = pressure::confirmed_round(runner, &case.id, &plan);
        let refused = round.ended.iter().filter(|one| one.connected.is_none()).count();
        let bound = round.is_bound();
        learned = round.outcome != PressureOutcome::Inconclusive;
        result.show(round.outcome);
        result.health = Some(round.health);
        result.notes.extend(round.notes);
        if refused > 0 {
            result.notes.push(format!("at {rate}/s {refused} of {count} connections were refused"));
        }
        if bound {
            return measure_rate(result, borne, Some(rate), "well-behaved clients were affected");
        }
        if learned {
            borne = rate;
        }
        if step < STEPS && runner.must_end_run() {
            // nothing is known about the remaining rates
            learned = false;
            result.show(PressureOutcome::Inconclusive);
            break;
        }
    }
    let note = if learned {
        "no limit found within our bounds"
    } else {
        "higher rates were not \
        tested"
    };
    measure_rate(result, borne, None, note);
}

fn measure_rate(result: &mut CaseResult, low: u64, high: Option<u64>, note: &str) {
    if low == 0 && high.is_none() {
        return;
    }
    result.measures.push(Measure {
        what: "connections opened and closed".to_owned(),
        low: Some(low as f64),
        high: high.map(|high| high as f64),
        unit: Unit::PerSecond,
        note: note.to_owned(),
    });
}

/// Sends the same requests on one connection, and each on a separate connection.
pub(in crate::families) fn keep_alive(
    runner: &mut Runner<'_>,
    _: &Case,
    with: &PressKeepAlive,
    result: &mut CaseResult,
) {
    let count = with.requests.max(1);
    let request = habits::plain_request(runner.target, "");
    let call = [Move::Send(request), Move::Await(Awaited::Response)];
    let mut steps: Vec<Move> = (0..count).flat_map(|_| call.clone()).collect();
    steps.push(Move::Close);
    let script = runner.bare(steps, CALL_DEADLINE);
    let kept = runner.hold(script);
    let done = kept.replies.responses.iter().filter(|one| one.complete).count() as u64;
    if done < count {
        result.notes.push(format!(
            "of {count} requests on one connection {done} got responses: {}",
            torture::judge::seen(&kept)
        ));
    }
    let start = runner.now();
    let closing = habits::plain_request(runner.target, "Connection: close\r\n");
    let (mut single, gap) = (0, pace(bounds::opens_max(runner.world.governor(), OPENS)));
    for _ in 0..count {
        single += u64::from(!runner.ask(&closing).replies.responses.is_empty());
        // never faster than connections may be opened
        runner.world.pause(gap);
        if runner.is_stopped() {
            result.outcome = PressureOutcome::Inconclusive.into();
            return;
        }
    }
    let pauses = gap * count;
    let alone = (runner.now() - start) - pauses;
    if done == 0 || single == 0 {
        result.outcome = PressureOutcome::Inconclusive.into();
        return;
    }
    let each = |span: Nanos, calls: u64| span.as_secs_f64() / calls as f64;
    let ratio = each(alone, single) / each(kept.over, done).max(1e-9);
    result.measures.push(Measure::exact(
        "new connection relative to a kept one",
        ratio,
        Unit::Ratio,
        format!(
            "{} per request, {} on a kept connection",
            show::duration(Nanos::from_secs_f64(each(alone, single))),
            show::duration(Nanos::from_secs_f64(each(kept.over, done)))
        ),
    ));
}

/// If effects on well-behaved clients cannot be judged, records this and returns true.
pub(super) fn noisy(runner: &Runner<'_>, result: &mut CaseResult) -> bool {
    let Some(why) = pressure::noise(runner) else { return false };
    result.outcome = PressureOutcome::Inconclusive.into();
    result.notes.push(why);
    true
}

/// Returns whether the server closed the connection.
pub(super) fn is_by_server(end: TalkEnd) -> bool {
    matches!(end, TalkEnd::Closed | TalkEnd::Broken(_))
}
