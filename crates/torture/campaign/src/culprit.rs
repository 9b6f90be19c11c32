//! Finds the conversation that caused a failure: tries each one separately, then the smallest set
//! that causes the failure.

mod by_chance;

use crate::attempts::Rate;
use crate::findings::Finding;
use crate::hangs::HungRequest;
use crate::life::AffectedPart;
use crate::search::{LossRate, SearchEnd};
use crate::trail::Suspect;
use crate::{CampaignEvent, GATE, Runner, search};
use dialogue::talk::{Talk, TalkScript};
use torture::case::Case;
use torture::judge;
use torture::judge::{FailureKind, Judgement, TestOutcome};
use torture::record::{Execution, pauses, sent};
use torture::result::{CULPRIT, CaseResult, ExchangeResult, Recovery, SUSPECT};
use units::show;

/// Finds the cause after plain requests failed and recovered: tries the last conversation
/// separately, then shorter and shorter tails, then omits unnecessary conversations.
pub(crate) fn attribute(
    runner: &mut Runner<'_>,
    case: &Case,
    affected: AffectedPart,
    result: &mut CaseResult,
) {
    if !runner.budget.is_wanted() {
        return;
    }
    runner.budget.renew();
    let tail = runner.trail.take_tail();
    let Some(last) = tail.last().cloned() else { return };
    let alone = search::loss_rate(runner, std::slice::from_ref(&last));
    match alone {
        Ok(found) if found.rate.is_usual() => {
            blame_conversation(runner, case, &last, found, result)
        }
        Ok(_) => attribute_to_tail(runner, case, affected, &tail, result),
        Err(end) => result.notes.push(unfinished(end, tail.len())),
    }
    // these attempts are not part of the earlier conversations
    runner.trail.forget();
}

/// Attributes a loss to earlier conversations, if the last one does not cause it.
fn attribute_to_tail(
    runner: &mut Runner<'_>,
    case: &Case,
    affected: AffectedPart,
    tail: &[Suspect],
    result: &mut CaseResult,
) {
    let crashed = matches!(affected, AffectedPart::Worker | AffectedPart::Server);
    match among(runner, tail).as_ref().map(Option::as_deref) {
        Ok(Some([one])) => {
            let found = search::loss_rate(runner, std::slice::from_ref(one));
            blame_conversation(runner, case, one, found.unwrap_or_default(), result);
        }
        Ok(Some(several)) => record_culprits(runner, case, several, result),
        Ok(None) if crashed => by_chance::find(runner, case, affected, tail, result),
        Ok(None) => result.notes.push(format!(
            "plain requests failed once and not again: neither after the last conversation alone nor \
            after the last {}",
            tail.len()
        )),
        Err(end) => {
            if *end == SearchEnd::Lost {
                result.recovery = Recovery::Never;
                result.show(TestOutcome::Fail);
            }
            result.notes.push(unfinished(*end, tail.len()));
        }
    }
}

/// Describes a search for the cause that ended without an answer.
fn unfinished(end: SearchEnd, tail: usize) -> String {
    let last = match tail {
        1 => "the last conversation".to_owned(),
        count => format!("the last {count} conversations"),
    };
    match end {
        SearchEnd::Spent => {
            format!(
                "plain requests failed; the search in {last} was stopped before it found the cause"
            )
        }
        SearchEnd::Lost => format!(
            "plain requests failed, and after a repetition of {last} they got no response for {}",
            show::duration(GATE)
        ),
    }
}

/// Remark on a crash that was observed only once.
const UNCONFIRMED: &str = "; seen once: the server was not restarted, so the cause is unconfirmed";

/// Remarks on a suspect and on a culprit if the server was not restarted.
const LAST_BEFORE: &str = "the last request before the crash; whether it is the cause is unknown, \
    because the server was not restarted";
const SILENT_SINCE: &str = "since then the server has not responded to any request";

/// Names the last conversation as suspect, because the server has exited for good or no longer
/// responds.
pub(crate) fn suspect(
    runner: &mut Runner<'_>,
    case: &Case,
    affected: AffectedPart,
    result: &mut CaseResult,
) {
    if affected == AffectedPart::Killed {
        return result.notes.push("no request is blamed for that".to_owned());
    }
    if result.outcome == TestOutcome::Leak {
        // the case names the cause
        return;
    }
    let crashed = affected == AffectedPart::Server;
    if !crashed && blame_hung_request(runner, case, result) {
        return;
    }
    // a request that got its response did not hang
    let last = match crashed {
        true => runner.trail.take_last(),
        false => runner.trail.take_first_silent(&case.id).map(|one| (one, None)),
    };
    let Some((last, earlier)) = last else {
        let why = "no plain request has got a response since, although the last conversations all got theirs";
        return result.notes.push(why.to_owned());
    };
    // it is already recorded, with its bytes
    let known = |one: &ExchangeResult| {
        one.name == last.name && one.judgement.outcome == TestOutcome::Crashed
    };
    if let Some(recorded) = result.exchanges.iter_mut().find(|one| known(one)) {
        let why = &mut recorded.judgement.why;
        let earlier = earlier.filter(|earlier| !why.contains(earlier)).unwrap_or_default();
        why.push_str(&format!("{earlier}{UNCONFIRMED}"));
        return;
    }
    let (outcome, why) = match crashed {
        true => (TestOutcome::Crashed, format!("{LAST_BEFORE}{}", earlier.unwrap_or_default())),
        false => (TestOutcome::Fail, SILENT_SINCE.to_owned()),
    };
    let Some(talk) = last.talk else { return };
    let role = if crashed { SUSPECT } else { CULPRIT };
    let name = format!("{role}{}", last.name);
    let judgement = loss(&talk, outcome, FailureKind::Stopped, why);
    keep(runner, case, &name, Rate::ONCE, (&last.script, talk), judgement, result);
}

/// Returns the judgment of a conversation that is blamed for a loss.
fn loss(talk: &Talk, outcome: TestOutcome, kind: FailureKind, why: String) -> Judgement {
    Judgement {
        outcome,
        seen: judge::seen(talk),
        expected: "plain requests get their usual response".to_owned(),
        why,
        kind: Some(kind),
        ..Judgement::default()
    }
}

/// Names the first hung request of this case if no client gets a response any longer, although some
/// did after it hung. Returns false if there is no such request.
fn blame_hung_request(runner: &mut Runner<'_>, case: &Case, result: &mut CaseResult) -> bool {
    let hung = runner.hangs.of_case(&case.id).cloned();
    let Some(HungRequest { name, script, talk, .. }) = hung.filter(|one| one.survived) else {
        return false;
    };
    let judgement = Judgement {
        outcome: TestOutcome::Leak,
        seen: judge::seen(&talk),
        expected: "plain requests get their usual response after the client disconnects".to_owned(),
        why: format!(
            "workers lost permanently: it hung while plain requests were still served; after more \
            such requests, whose clients have disconnected, none was served for {}",
            show::duration(GATE)
        ),
        kind: Some(FailureKind::Lost),
        ..Judgement::default()
    };
    let name = format!("{CULPRIT}{name}");
    keep(runner, case, &name, Rate::ONCE, (&script, talk), judgement, result);
    true
}

/// Records a conversation with its bytes, for the result and for observers.
pub(crate) fn keep(
    runner: &mut Runner<'_>,
    case: &Case,
    name: &str,
    rate: Rate,
    (script, talk): (&TalkScript, Talk),
    judgement: Judgement,
    result: &mut CaseResult,
) {
    runner.report(CampaignEvent::ConversationOver(&Execution {
        case,
        name,
        attempt: 1,
        script,
        talk: &talk,
        judgement: &judgement,
    }));
    result.show(judgement.outcome);
    result.exchanges.push(ExchangeResult {
        name: name.to_owned(),
        judgement,
        tries: rate.made,
        failed: rate.failed,
        sent: sent(&script.steps),
        received: talk.raw,
        took: talk.over,
        pauses: pauses(&script.steps),
    });
}

/// Returns the smallest part of the tail after which plain requests fail, or `None` if they do not
/// fail again.
fn among(runner: &mut Runner<'_>, tail: &[Suspect]) -> Result<Option<Vec<Suspect>>, SearchEnd> {
    if !search::mostly(runner, |runner| search::lost_after(runner, tail))? {
        return Ok(None);
    }
    let (mut passes, mut fails) = (1, tail.len());
    while passes + 1 < fails {
        let middle = passes + (fails - passes) / 2;
        let end = &tail[tail.len() - middle..];
        match search::mostly(runner, |runner| search::lost_after(runner, end)) {
            Ok(true) => fails = middle,
            Ok(false) => passes = middle,
            Err(_) => break,
        }
    }
    let end = &tail[tail.len() - fails..];
    Ok(Some(search::fewest_of(runner, end, &mut |runner, some| {
        search::mostly(runner, |runner| search::lost_after(runner, some))
    })))
}

/// Records a single culprit that `before` describes. Unless the server has stopped for good,
/// repeats it once to record its response. If it usually fails, it is also shrunk.
pub(crate) fn blame_conversation(
    runner: &mut Runner<'_>,
    case: &Case,
    guilty: &Suspect,
    before: LossRate,
    result: &mut CaseResult,
) {
    let script = TalkScript { start: runner.now(), ..guilty.script.clone() };
    let mut found = before;
    let talk = match guilty.talk.as_ref().filter(|_| before.stopped) {
        Some(talk) => talk.clone(),
        None => {
            let talk = runner.hold(script.clone());
            if !before.stopped {
                found.count(search::current_effect(runner));
            }
            talk
        }
    };
    let LossRate { rate, affected, stopped } = found;
    if stopped {
        result.recovery = Recovery::Never;
    }
    let name = match guilty.case == case.id {
        true => format!("{CULPRIT}{}", guilty.name),
        false => format!("{CULPRIT}{} {}", guilty.case, guilty.name),
    };
    let (kind, fails) = match stopped {
        true => (FailureKind::Stopped, "plain requests no longer get a response"),
        false => (FailureKind::Lost, "plain requests fail"),
    };
    let (outcome, what) = affected.judged().unwrap_or((TestOutcome::Fail, fails));
    let often = match rate.is_usual() {
        true => String::new(),
        false => format!(", in {}", rate.text()),
    };
    if rate.is_usual() && !stopped {
        runner.findings.add(Finding {
            case: case.clone(),
            name: name.clone(),
            script: script.clone(),
            kind,
            slow: None,
        });
    }
    let judgement = loss(&talk, outcome, kind, format!("{what} after it alone{often}"));
    keep(runner, case, &name, rate, (&script, talk), judgement, result);
}

/// Records several culprits in order; the last one represents all of them.
fn record_culprits(
    runner: &mut Runner<'_>,
    case: &Case,
    several: &[Suspect],
    result: &mut CaseResult,
) {
    let names: Vec<String> =
        several.iter().map(|one| format!("{} {}", one.case, one.name)).collect();
    result.notes.push(format!(
        "plain requests fail after these {} requests in this order, and not after fewer of them: \
        {}",
        several.len(),
        names.join("; ")
    ));
    let Some((last, before)) = several.split_last() else { return };
    let Some(talk) = last.talk.clone() else { return };
    let behind = match before.len() {
        1 => "another".to_owned(),
        count => format!("{count} others"),
    };
    let name = format!("{CULPRIT}{} {}, after {behind}", last.case, last.name);
    let scripts: Vec<TalkScript> = before.iter().map(|one| one.script.clone()).collect();
    runner.report(CampaignEvent::FailsAfter { name: &name, before: &scripts });
    let known = LossRate { rate: Rate::ONCE, ..LossRate::default() };
    let LossRate { rate, stopped, .. } = search::loss_rate(runner, several).unwrap_or(known);
    let kind = match stopped {
        true => {
            result.recovery = Recovery::Never;
            FailureKind::Stopped
        }
        false => FailureKind::Lost,
    };
    let why = "plain requests fail after it and the requests before it".to_owned();
    let judgement = loss(&talk, TestOutcome::Fail, kind, why);
    keep(runner, case, &name, rate, (&last.script, talk), judgement, result);
}
