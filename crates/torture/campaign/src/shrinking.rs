//! Finds the shortest conversation that still fails in the same way, for each finding.

use crate::findings::Finding;
use crate::search::{SearchEnd, is_lost, mostly};
use crate::service_time::is_similarly_slow;
use crate::shrink::shrink;
use crate::{CampaignEvent, Runner, gate};
use dialogue::talk::{Move, Talk, TalkScript};
use torture::framing::{self, FramingFault, FramingReading};
use torture::judge;
use torture::judge::{FailureKind, Judgement, Plain, TestOutcome};
use torture::record::{Execution, sent};
use torture::result::Shrunk;
use units::Nanos;

/// Silence that counts as a hang for candidates; the final form gets its full time.
const HANG_SPAN: Nanos = Nanos::from_millis(500);
/// Factor on the duration of the first failure, for failures with a response, and minimum.
const TIMES_AS_LONG: u64 = 4;
const SPAN_MIN: Nanos = Nanos::from_millis(100);

/// Shrinks failures as far as the budget allows.
pub(crate) fn shrink_all(runner: &mut Runner<'_>) -> Vec<Shrunk> {
    runner.budget.renew();
    let mut all = Vec::new();
    for finding in runner.findings.take() {
        if runner.budget_left().is_none() {
            break;
        }
        all.extend(shrink_one(runner, &finding));
    }
    all
}

/// Shrinks one finding; returns `None` if it no longer fails.
pub(crate) fn shrink_one(runner: &mut Runner<'_>, finding: &Finding) -> Option<Shrunk> {
    let before = runner.budget.spent();
    let whole = &finding.script.steps;
    let start = runner.now();
    if mostly(runner, |runner| fails(runner, finding, &finding.script, whole)) != Ok(true) {
        return None;
    }
    let took = Nanos((runner.now() - start).0.saturating_mul(TIMES_AS_LONG));
    let pauses = whole.iter().map(|step| if let Move::Pause(span) = step { span.0 } else { 0 });
    let pauses = Nanos(pauses.fold(0, u64::saturating_add));
    // the server waits for the rest of half a message: it need not respond
    let whole_message = |moves: &[Move]| {
        let bytes = sent(moves);
        judge::missing_part(&bytes).is_none() && faulty::responds_or_closes(&bytes)
    };
    let complete = whole_message(whole);
    let span = if is_silent(finding.kind) { HANG_SPAN } else { took.max(SPAN_MIN) };
    let deadline = (span + pauses).min(finding.script.deadline);
    let hasty = TalkScript { deadline, ..finding.script.clone() };
    // a crash counts even if the shorter request is invalid
    let is_crash = matches!(finding.kind, FailureKind::Lost | FailureKind::Stopped);
    let framing = framing::read(&sent(whole));
    let mut found = shrink(whole, &mut |moves| {
        let strays = !is_crash && has_new_fault(&framing, moves);
        if strays || complete && !whole_message(moves) {
            return Some(false);
        }
        mostly(runner, |runner| fails(runner, finding, &hasty, moves)).ok()
    });
    if is_silent(finding.kind) {
        let moves = found.moves.clone();
        let sure = mostly(runner, |runner| fails(runner, finding, &finding.script, &moves));
        if sure != Ok(true) {
            found.moves.clone_from(whole);
            found.finished = false;
        }
    }
    if finding.slow.is_some() {
        // reaching half the time is not a boundary of the server
        found.boundaries.clear();
    }
    let script = TalkScript { steps: found.moves, ..finding.script.clone() };
    let shrunk = Shrunk {
        case: finding.case.id.clone(),
        name: finding.name.clone(),
        kind: finding.kind,
        from: sent(whole).len(),
        script,
        boundaries: found.boundaries,
        executions: runner.budget.spent() - before,
        finished: found.finished,
    };
    show(runner, finding, &shrunk);
    Some(shrunk)
}

/// Returns whether a shorter form of an HTTP/1 request violates a framing rule that the whole
/// satisfies. That form may fail because of the violation.
fn has_new_fault(whole: &FramingReading, moves: &[Move]) -> bool {
    let is_new = |fault: &FramingFault| !whole.faults.contains(fault);
    whole.minor.is_some() && framing::read(&sent(moves)).faults.iter().any(is_new)
}

/// Returns whether these steps fail in the same way as the finding.
fn fails(
    runner: &mut Runner<'_>,
    finding: &Finding,
    script: &TalkScript,
    moves: &[Move],
) -> Result<bool, SearchEnd> {
    runner.spend().ok_or(SearchEnd::Spent)?;
    let start = runner.now();
    let script = TalkScript { steps: moves.to_vec(), start, ..script.clone() };
    let talk = runner.hold(script.clone());
    let lost = is_lost(runner)?;
    if finding.kind == FailureKind::Lost || lost {
        return Ok(lost && finding.kind == FailureKind::Lost);
    }
    if let Some(before) = finding.slow {
        return Ok(is_similarly_slow(&talk, before));
    }
    let same = FailureKind::new(&talk, runner.profile.plain()) == finding.kind;
    Ok(same && judge_talk(&script, &talk, runner.profile.plain()).outcome == TestOutcome::Fail)
}

/// Plays the shortest conversation once more, for the observers.
fn show(runner: &mut Runner<'_>, finding: &Finding, shrunk: &Shrunk) {
    if runner.is_stopped() {
        return;
    }
    let script = TalkScript { start: runner.now(), ..shrunk.script.clone() };
    let talk = runner.hold(script.clone());
    let judgement = judge_talk(&script, &talk, runner.profile.plain());
    gate::pass(runner);
    let execution = Execution {
        case: &finding.case,
        name: &finding.name,
        attempt: 1,
        script: &script,
        talk: &talk,
        judgement: &judgement,
    };
    runner.report(CampaignEvent::FailureShrunk { shrunk, execution: &execution });
}

fn judge_talk(script: &TalkScript, talk: &Talk, plain: &Plain) -> Judgement {
    judge::random(script, talk, plain)
}

/// Returns whether the failure lasts until the deadline.
fn is_silent(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Hang | FailureKind::Unfinished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_forms_violate_no_further_rule() {
        let is_new = |whole: &str, shorter: &str| {
            let shorter = [Move::Send(shorter.as_bytes().to_vec())];
            has_new_fault(&framing::read(whole.as_bytes()), &shorter)
        };
        let whole = "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1e9\r\n\r\n";
        assert!(!is_new(whole, "G / HTTP/1.1\r\nContent-Length:1e9\r\n\r\n"));
        assert!(is_new(whole, "  HTTP/1.1\r\nContent-Length:1e9\r\n\r\n"));
        assert!(is_new(whole, "GET / HTTP/1.1\nContent-Length:1e9\r\n\r\n"));
        // not HTTP/1: every form is invalid
        assert!(!is_new("GET /\r\n\r\n", "G\r\nx\r\n\r\n"));
    }
}
