//! everything that presses, mixed by the seed. While it lasts the server may serve nobody, but
//! it must not die; afterwards all has to be as before.

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

/// Of the bounds, what a storm takes.
const OF_BOUNDS: u64 = 2;
/// How long a connection lasts that is not over at once.
const LIFE: (Nanos, Nanos) = (Nanos::from_millis(500), Nanos::from_millis(9_500));
/// So long one in two of them lasts, or less.
const LIFE_MEAN: f64 = 5.0;
/// Share of the kinds below that last.
const LASTING: f64 = 0.6;
/// A storm is no longer than this share of the time of a case: what follows needs some too.
const OF_CASE: f64 = 0.7;
/// Requests in one pipeline.
const PIPELINE: usize = 8;
/// Purpose of the seed: no stream of random data has such an index.
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
                "all was as before only {back} after the storm, and twice the longest deadline is {limit}"
            ));
            PressureOutcome::Degraded
        }
        (_, None) => {
            let gate = show::duration(GATE);
            result.notes.push(format!("all was not as before within {gate} of the storm"));
            PressureOutcome::Leak
        }
    };
    result.outcome = felt.into();
}

/// Nobody listened for a moment, and connections were reset: the server died, or was restarted.
/// So many of them stand at any time that no half of all can be asked for.
fn died(probes: &[Probe], round: &Round) -> Option<String> {
    let nobody = TalkEnd::Unconnected(FailureClass::Refused);
    let refused = probes.iter().filter(|probe| probe.refused).count()
        + round.ended.iter().filter(|one| one.end == nobody).count();
    let reset = round.ended.iter().filter(|one| matches!(one.end, TalkEnd::Broken(_))).count();
    (refused > 0 && reset >= RESETS_FEW).then(|| {
        format!(
            "the server was gone for a while: {reset} connections were reset, and {refused} refused"
        )
    })
}

/// What the server may take to be as before: twice the longest of its deadlines, as far as they were
/// measured, and no longer than is watched.
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

/// Every conversation, and when it begins.
fn storm(runner: &mut Runner<'_>, with: &OverloadStorm, span: Nanos) -> Vec<(Nanos, TalkScript)> {
    let most = bounds::connections_max(runner.world.governor(), with.connections) / OF_BOUNDS;
    let opens = bounds::opens_max(runner.world.governor(), u64::MAX / OF_BOUNDS) / OF_BOUNDS;
    // as many come as go
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

/// A conversation of some kind; `LASTING` of the kinds last.
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

/// Fewer resets than these are no sign of a death.
const RESETS_FEW: usize = 3;
/// A pipeline is left so soon after it was sent.
const BRIEF: Nanos = Nanos::from_millis(20);
