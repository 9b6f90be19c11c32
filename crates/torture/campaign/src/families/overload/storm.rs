//! all kinds of load, mixed by the seed. During the storm the server may serve no client, but
//! it must not crash; afterwards it must recover completely.

use super::{CUT_SHORT, measure_recovery};
use crate::families::press::held;
use crate::pressure::{Plan, Round};
use crate::{GATE, Runner, bounds, habits, pressure};
use dialogue::talk::{Move, TalkEnd, TalkScript};
use sample::FailureClass;
use torture::case::{Case, OverloadStorm};
use torture::judge::PressureOutcome;
use torture::result::{CaseResult, Probe};
use units::{Nanos, Purpose, Seed, Stream, show};

/// Divisor of the limits for a storm.
const OF_BOUNDS: u64 = 2;
/// Lifetime of a connection that does not close at once.
const LIFE: (Nanos, Nanos) = (Nanos::from_millis(500), Nanos::from_millis(9_500));
/// Mean lifetime in seconds.
const LIFE_MEAN: f64 = 5.0;
/// Share of the kinds listed below that last.
const LASTING: f64 = 0.6;
/// Maximum length of a storm as a share of the time of a case: the rest needs time too.
const OF_CASE: f64 = 0.7;
/// Number of requests in a pipeline.
const PIPELINE: usize = 8;
/// Index of the seed's purpose, which no stream of random data has.
const INDEX: u64 = u64::MAX;

pub(in crate::families) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &OverloadStorm,
    result: &mut CaseResult,
) {
    let span = span(runner, with);
    let scripts = storm(runner, with, span);
    let count = scripts.len();
    let plan =
        Plan { scripts, armed_early: true, ..Plan::paced(Vec::new(), Nanos::ZERO, Nanos::ZERO) };
    let seen = runner.prober.count();
    let round = pressure::round_once(runner, &case.id, &plan);
    let health = round.health;
    let died = died(runner.prober.kept_since(seen), &round);
    let note = format!(
        "after {} of {} odd connections, seed {}; the impact meanwhile is not judged",
        show::duration(span),
        show::count(count as u64),
        runner.settings.seed
    );
    measure_recovery(result, "recovery from a storm", &health, note);
    result.health = Some(torture::result::Health { rounds: 0, ..health });
    let limit = limit(runner);
    if let Some(why) = died {
        result.outcome = PressureOutcome::Crashed.into();
        result.notes.push(why);
        return;
    }
    let felt = match (round.outcome, health.recovery) {
        (PressureOutcome::Crashed, _) => {
            result.notes.extend(round.notes);
            PressureOutcome::Crashed
        }
        _ if runner.case_is_over() || runner.is_stopped() => {
            result.notes.push(CUT_SHORT.to_owned());
            PressureOutcome::Inconclusive
        }
        (PressureOutcome::Leak, _) => {
            result.notes.extend(round.notes);
            PressureOutcome::Leak
        }
        (_, Some(back)) if back <= limit => PressureOutcome::Held,
        (_, Some(back)) => {
            let (back, limit) = (show::duration(back), show::duration(limit));
            result.notes.push(format!(
                "the server recovered only {back} after the storm; twice its longest timeout is \
                {limit}"
            ));
            PressureOutcome::Degraded
        }
        (_, None) => {
            let gate = show::duration(GATE);
            result.notes.push(format!("the server did not recover within {gate} of the storm"));
            PressureOutcome::Leak
        }
    };
    result.outcome = felt.into();
}

/// Returns why the server crashed or was restarted: connections were refused for a moment, and
/// others reset. Many connections close at any time, so resets of half of them cannot be required.
fn died(probes: &[Probe], round: &Round) -> Option<String> {
    let nobody = TalkEnd::Unconnected(FailureClass::Refused);
    let refused = probes.iter().filter(|probe| probe.refused).count()
        + round.ended.iter().filter(|one| one.end == nobody).count();
    let reset = round.ended.iter().filter(|one| matches!(one.end, TalkEnd::Broken(_))).count();
    (refused > 0 && reset >= RESETS_FEW).then(|| {
        format!(
            "the server was down for a while: {reset} connections were reset, and {refused} \
            refused"
        )
    })
}

/// Returns the allowed recovery time: twice the longest measured timeout, at most the watched time.
fn limit(runner: &Runner<'_>) -> Nanos {
    let longest = runner.states.longest().unwrap_or(GATE);
    (longest * 2).min(GATE)
}

fn span(runner: &mut Runner<'_>, with: &OverloadStorm) -> Nanos {
    let bound = runner.world.governor().bounds().map(|bounds| bounds.case_max);
    let most =
        bound.map_or(Nanos::NEVER, |bound| Nanos::from_secs_f64(bound.as_secs_f64() * OF_CASE));
    with.storm.min(most)
}

/// Returns every conversation with its start time.
fn storm(runner: &mut Runner<'_>, with: &OverloadStorm, span: Nanos) -> Vec<(Nanos, TalkScript)> {
    let most = bounds::connections_max(runner.world.governor(), with.connections) / OF_BOUNDS;
    let opens = bounds::opens_max(runner.world.governor(), u64::MAX / OF_BOUNDS) / OF_BOUNDS;
    // as many are opened as closed
    let rate = (most as f64 / (LIFE_MEAN * LASTING)).min(opens as f64).max(1.0);
    let mut stream = Seed(runner.settings.seed).stream(Purpose::Torture, INDEX);
    let (mut at, mut all) = (0.0, Vec::new());
    loop {
        at += stream.exponential(1.0 / rate);
        let begins = Nanos::from_secs_f64(at);
        if begins >= span {
            return all;
        }
        all.push((begins, one(runner, &mut stream)));
    }
}

/// Returns a conversation of some kind; `LASTING` of the kinds last.
fn one(runner: &mut Runner<'_>, stream: &mut Stream) -> TalkScript {
    let life = Nanos(stream.uniform(LIFE.0.0 as f64, LIFE.1.0 as f64) as u64);
    let plain = habits::plain_request(runner.target, "");
    let takes_bodies = runner.target.takes_bodies;
    let script = match stream.below(10) {
        0 | 1 => held::half_head(runner),
        2 => held::dripped_head(runner),
        3 if takes_bodies => held::dripped_body(runner),
        3 | 4 => held::idle(runner),
        5 => held::abandoned(runner),
        6 => runner.bare(vec![Move::Send(plain), Move::Reset], life),
        7 => runner.bare(vec![Move::Close], life),
        8 => runner
            .bare(vec![Move::Send(plain.repeat(PIPELINE)), Move::Pause(BRIEF), Move::Close], life),
        _ => {
            let half = plain[..plain.len() / 2].to_vec();
            runner.bare(vec![Move::Send(half), Move::HalfClose], life)
        }
    };
    TalkScript { deadline: life, ..script }
}

/// Fewer resets than this do not indicate a crash.
const RESETS_FEW: usize = 3;
/// Time after which a pipeline is abandoned.
const BRIEF: Nanos = Nanos::from_millis(20);
