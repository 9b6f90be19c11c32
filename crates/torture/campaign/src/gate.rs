//! The gate of every case. The case is announced in the server's log; at its end, plain requests
//! get their usual response, or the time until they do is measured.

use crate::health::remarking;
use crate::{GATE, GATE_EVERY, PLAIN_DEADLINE, Runner};
use dialogue::governor::Spent;
use dialogue::talk::{Move, Talk, TalkScript};
use torture::case::Case;
use torture::judge::TestOutcome;
use torture::result::{CaseResult, Recovery};
use units::{Nanos, show};

/// Requests the probed page once.
fn ask(runner: &mut Runner<'_>) -> Talk {
    let request = runner.health.request(runner.target);
    runner.ask(&request)
}

/// Announces the case; from now on its time and traffic are counted.
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

/// Ends the case. The plain requests of its gate announce the end.
pub(crate) fn conclude(runner: &mut Runner<'_>, before: Spent, result: &mut CaseResult) {
    let now = runner.now();
    let governor = runner.world.governor();
    let spent = governor.spent().since(before);
    let cut_off = governor.case_ends().is_some_and(|at| at <= now);
    let limit = governor.case_limit();
    governor.end_case();
    governor.set_beacon(now, None);
    result.spent = spent;
    runner.health.announce(format!("after {}: {}", result.case.id, spent.words()));
    if cut_off {
        result.out_of_time = limit.is_none();
        result.notes.push(stopped_by(limit, runner.settings.budget));
        if result.case.exchanges.len() > result.exchanges.len() {
            result.show(TestOutcome::Inconclusive);
        }
    }
}

/// Describes the time limit that stopped a case: its own, or the one for all cases.
fn stopped_by(limit: Option<Nanos>, budget: Option<Nanos>) -> String {
    let shown = |span: Nanos| format!(", {}", show::duration(span));
    match limit {
        Some(limit) => format!("stopped by the time limit of a case{}", shown(limit)),
        None => {
            let budget = budget.map(shown).unwrap_or_default();
            format!("stopped by the time limit for all cases{budget} (--budget SPAN raises it)")
        }
    }
}

/// Checks that plain requests get their usual response, or measures the time until then.
pub(crate) fn pass(runner: &mut Runner<'_>) -> Recovery {
    let start = runner.now();
    let mut late = false;
    loop {
        let talk = ask(runner);
        let plain = runner.profile.plain();
        let right = talk.replies.responses.first().is_some_and(|first| plain.is(first));
        let now = runner.now();
        match right {
            true if late => return Recovery::After(now - start),
            true => return Recovery::AtOnce,
            // an interrupted conversation shows nothing about the server
            false if runner.is_stopped() => return Recovery::AtOnce,
            false if now - start > GATE => return Recovery::Never,
            false => runner.world.pause(GATE_EVERY),
        }
        late = true;
    }
}
