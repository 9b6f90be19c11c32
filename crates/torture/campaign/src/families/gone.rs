//! Tests whether the server recovers from hung requests of this run after their clients have
//! disconnected. This case runs last, because a server that does not recover is lost.

use crate::attempts::Rate;
use crate::hangs::HungRequest;
use crate::{GATE, Runner, culprit, gate};
use dialogue::talk::{TalkEnd, TalkScript};
use torture::case::{Case, Family, HangRepeats};
use torture::judge;
use torture::judge::{ConversationOutcome, FailureKind, Judgement, PressureOutcome, TestOutcome};
use torture::result::{CaseResult, Recovery};
use units::{Nanos, show};

/// Returns the number and duration of repetitions of a hung request.
pub(crate) fn repeats() -> Option<HangRepeats> {
    // the tests parse the catalog
    let all = torture::catalogue::cases().unwrap_or_default();
    all.into_iter().find_map(|case| match case.family {
        Some(Family::HangGone(with)) => Some(with),
        _ => None,
    })
}

pub(super) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &HangRepeats,
    result: &mut CaseResult,
) {
    let most = usize::try_from(with.most).unwrap_or(usize::MAX);
    let hangs: Vec<HungRequest> = runner.hangs.first(most);
    if !hangs.is_empty() && !runner.world.governor().may_repeat() {
        return result.skip("stress is not repeated here");
    }
    for hung in hangs {
        let times = with.times;
        match repeat_hang(runner, &hung.script, times, with.patience) {
            Some(lost) => report(runner, case, &hung, lost, result),
            None => result.notes.push(format!(
                "{} {}: up to {} more such requests, each abandoned by its client, blocked no \
                other client",
                hung.case,
                hung.name,
                show::count(times)
            )),
        }
        if matches!(result.outcome, TestOutcome::Leak) || runner.is_stopped() {
            return;
        }
    }
}

/// Describes a server that did not recover from `count` requests.
pub(crate) fn describe_lost_workers(sent: u64) -> String {
    let such = if sent == 1 {
        "one such request, whose client has"
    } else {
        "such requests, whose clients have"
    };
    let many = if sent == 1 { String::new() } else { format!("{} ", show::count(sent)) };
    format!(
        "workers lost permanently: after {many}{such} disconnected, no plain request got a response \
        for {}",
        show::duration(GATE)
    )
}

fn report(
    runner: &mut Runner<'_>,
    case: &Case,
    hung: &HungRequest,
    (sent, recovery): (u64, Recovery),
    result: &mut CaseResult,
) {
    let many = if sent == 1 { "one more".to_owned() } else { format!("{sent} more") };
    let text = format!("{} {}, {many}", hung.case, hung.name);
    if let Recovery::After(back) = recovery {
        let back = show::duration(back);
        let why = format!("{text}: plain requests got responses again after {back}");
        return result.note(ConversationOutcome::Advisory, why);
    }
    let why = describe_lost_workers(sent);
    let script = TalkScript { start: runner.now(), ..hung.script.clone() };
    let talk = runner.hold(script.clone());
    let judgement = Judgement {
        outcome: PressureOutcome::Leak.into(),
        seen: judge::seen(&talk),
        expected: "plain requests get their usual response after the client disconnects".to_owned(),
        why: why.clone(),
        kind: Some(FailureKind::Lost),
        ..Judgement::default()
    };
    result.notes.push(format!("{}: {why}", hung.case));
    culprit::keep(runner, case, &text, Rate::ONCE, (&script, talk), judgement, result);
}

/// Repeats and abandons a request. Returns the number after which plain requests failed, and when
/// they recovered; `None` if they never failed or the request no longer hangs.
pub(crate) fn repeat_hang(
    runner: &mut Runner<'_>,
    script: &TalkScript,
    times: u64,
    patience: Nanos,
) -> Option<(u64, Recovery)> {
    for sent in 1..=times {
        let start = runner.now();
        let talk = runner.hold(TalkScript { start, deadline: patience, ..script.clone() });
        let recovery = gate::pass(runner);
        if recovery.is_late() {
            return Some((sent, recovery));
        }
        if talk.end != TalkEnd::Silent || runner.must_end_run() {
            return None;
        }
    }
    None
}
