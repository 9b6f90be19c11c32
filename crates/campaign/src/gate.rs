//! The gate that every case goes through: it is announced to the server's log, and at its end plain requests
//! are answered as before, or the time until they are is taken.

use crate::health::remarking;
use crate::{GATE, GATE_EVERY, PLAIN_DEADLINE, Runner};
use dialogue::governor::Spent;
use dialogue::talk::{Move, Talk, TalkScript};
use torture::case::Case;
use torture::judge::TestOutcome;
use torture::result::CaseResult;
use units::{Nanos, show};

/// Asks for the probed page once.
fn ask(runner: &mut Runner<'_>) -> Talk {
    let request = runner.health.request(runner.target);
    runner.ask(&request)
}

/// Says what comes; from now on the time of the case counts, and what goes out is its own.
pub(crate) fn announce(runner: &mut Runner<'_>, case: &Case) -> Spent {
    if runner.health.is_first() {
        runner.ask(&remarking(runner.target, &format!("before {}", case.id)));
    }
    let now = runner.now();
    let template = format!("during {}: {}", case.id, dialogue::governor::SPENT);
    let bytes = remarking(runner.target, &template);
    let beacon = runner.bare(vec![Move::Send(bytes)], PLAIN_DEADLINE);
    let beacon = TalkScript { probe: true, ..beacon };
    let governor = runner.world.governor();
    governor.begin_case();
    governor.set_beacon(now, Some(beacon));
    governor.spent()
}

/// The case is over but for its gate, whose plain requests say so.
pub(crate) fn conclude(runner: &mut Runner<'_>, before: Spent, result: &mut CaseResult) {
    let now = runner.now();
    let governor = runner.world.governor();
    let spent = governor.spent().since(before);
    let cut_off = governor.case_ends().is_some_and(|at| at <= now);
    let bound = governor.bounds().map(|bounds| bounds.case_max);
    governor.end_case();
    governor.set_beacon(now, None);
    result.spent = spent;
    runner.health.say(format!("after {}: {}", result.case.id, spent.words()));
    if let Some(bound) = bound.filter(|_| cut_off) {
        let span = show::duration(bound);
        result.notes.push(format!("cut off by the bound on the time of a case, {span}"));
        if result.case.exchanges.len() > result.exchanges.len() {
            result.show(TestOutcome::Inconclusive);
        }
    }
}

/// Plain requests are answered as before, or the time until they were.
pub(crate) fn pass(runner: &mut Runner<'_>) -> Option<Option<Nanos>> {
    let start = runner.now();
    let mut late = false;
    loop {
        let talk = ask(runner);
        let plain = runner.profile.plain();
        let right = talk.replies.responses.first().is_some_and(|first| plain.is(first));
        let now = runner.now();
        match right {
            true if late => return Some(Some(now - start)),
            true => return None,
            false if runner.is_stopped() => return None,
            false if now - start > GATE => return Some(None),
            false => runner.world.pause(GATE_EVERY),
        }
        late = true;
    }
}
