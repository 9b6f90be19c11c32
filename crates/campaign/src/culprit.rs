//! Which conversation did it, where a server was lost: each by itself, then the fewest that do it together.

use crate::findings::Finding;
use crate::hangs::HungRequest;
use crate::life::Struck;
use crate::trail::Suspect;
use crate::{CampaignEvent, GATE, Runner, TRIES, gate, search};
use dialogue::talk::{Talk, TalkScript};
use torture::case::Case;
use torture::judge;
use torture::judge::{FailureKind, Judgement, TestOutcome};
use torture::record::{Execution, pauses, sent};
use torture::result::{CaseResult, ExchangeResult};
use units::show;

/// How the name of a conversation begins that is accused of what came after it.
pub const CULPRIT: &str = "culprit: ";

/// Plain requests failed after a case, and are answered again: what did it? Each by itself is
/// tried first, the last one, then ever shorter ends of the tail; then what can be left out is.
pub(crate) fn attribute(runner: &mut Runner<'_>, case: &Case, result: &mut CaseResult) {
    if !runner.budget.is_wanted() {
        return;
    }
    runner.budget.renew();
    let tail = runner.trail.take_tail();
    let Some(last) = tail.last().cloned() else { return };
    let alone =
        search::mostly(runner, |runner| search::lost_after(runner, std::slice::from_ref(&last)));
    let guilty = match alone {
        Some(true) => Some(vec![last]),
        Some(false) => among(runner, &tail),
        None => None,
    };
    // what was tried here is no part of what was said before
    runner.trail.forget();
    match guilty.as_deref() {
        Some([one]) => accuse(runner, case, one, result),
        Some(several) => accuse_all(runner, case, several, result),
        None => result.notes.push(format!(
            "plain requests failed, and did not again: not after the last conversation by \
             itself, nor after the last {}",
            tail.len()
        )),
    }
}

/// The server ended and stays away, or answers nobody any more: the last conversation before can only
/// be named.
pub(crate) fn suspect(
    runner: &mut Runner<'_>,
    case: &Case,
    struck: Struck,
    result: &mut CaseResult,
) {
    if struck != Struck::Server && blame_hang(runner, case, result) {
        return;
    }
    let Some(last) = runner.trail.take_last() else { return };
    // it is there already, with its bytes
    let known = |one: &ExchangeResult| {
        one.name == last.name && one.judgement.outcome == TestOutcome::Crashed
    };
    if result.exchanges.iter().any(known) {
        return;
    }
    let name = format!("{CULPRIT}{}", last.name);
    let (outcome, why) = match struck {
        Struck::Server => {
            (TestOutcome::Crashed, "the server's process ended after it, and was not started again")
        }
        _ => (
            TestOutcome::Fail,
            "it was the last that was said: no plain request has been answered since",
        ),
    };
    let Some(talk) = last.talk else { return };
    let judgement = Judgement {
        outcome,
        seen: judge::seen(&talk),
        expected: "plain requests answered as before".to_owned(),
        why: why.to_owned(),
        kind: Some(FailureKind::Lost),
    };
    keep(runner, case, &name, 1, (&last.script, talk), judgement, result);
}

/// Nobody is answered any more since requests of this case hung: the first of them, with its bytes.
/// False where none did.
fn blame_hang(runner: &mut Runner<'_>, case: &Case, result: &mut CaseResult) -> bool {
    let hung = runner.hangs.of_case(&case.id).cloned();
    let Some(HungRequest { name, script, talk, .. }) = hung else { return false };
    let judgement = Judgement {
        outcome: TestOutcome::Leak,
        seen: judge::seen(&talk),
        expected: "plain requests answered as before, once the client has left".to_owned(),
        why: format!(
            "gone for good: it hung while plain requests were answered, and since such requests, whose \
             clients have left, none was for {}",
            show::duration(GATE)
        ),
        kind: Some(FailureKind::Lost),
    };
    let name = format!("{CULPRIT}{name}");
    keep(runner, case, &name, 1, (&script, talk), judgement, result);
    true
}

/// Keeps a conversation with its bytes, for the result and for whoever looks on.
pub(crate) fn keep(
    runner: &mut Runner<'_>,
    case: &Case,
    name: &str,
    tries: u32,
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
        tries,
        failed: tries.div_ceil(2),
        sent: sent(&script.steps),
        received: talk.raw,
        took: talk.over,
        pauses: pauses(&script.steps),
    });
}

/// The fewest of the tail after which plain requests fail; `None` where they do not after all.
fn among(runner: &mut Runner<'_>, tail: &[Suspect]) -> Option<Vec<Suspect>> {
    if search::mostly(runner, |runner| search::lost_after(runner, tail)) != Some(true) {
        return None;
    }
    let (mut passes, mut fails) = (1, tail.len());
    while passes + 1 < fails {
        let middle = passes + (fails - passes) / 2;
        let end = &tail[tail.len() - middle..];
        match search::mostly(runner, |runner| search::lost_after(runner, end)) {
            Some(true) => fails = middle,
            Some(false) => passes = middle,
            None => break,
        }
    }
    let end = &tail[tail.len() - fails..];
    Some(search::fewest_of(runner, end, &mut |runner, some| {
        search::mostly(runner, |runner| search::lost_after(runner, some))
    }))
}

/// One conversation did it: once more, to be kept and to be shrunk.
pub(crate) fn accuse(
    runner: &mut Runner<'_>,
    case: &Case,
    guilty: &Suspect,
    result: &mut CaseResult,
) {
    let script = TalkScript { start: runner.now(), ..guilty.script.clone() };
    let talk = runner.hold(script.clone());
    gate::pass(runner);
    let struck = runner.life.hear(runner.world);
    let name = match guilty.case == case.id {
        true => format!("{CULPRIT}{}", guilty.name),
        false => format!("{CULPRIT}{} {}", guilty.case, guilty.name),
    };
    let lost = (TestOutcome::Fail, "plain requests fail");
    let (outcome, what) = struck.judged().unwrap_or(lost);
    let judgement = Judgement {
        outcome,
        seen: judge::seen(&talk),
        expected: "plain requests answered as before".to_owned(),
        why: format!("{what} after it by itself"),
        kind: Some(FailureKind::Lost),
    };
    runner.findings.add(Finding {
        case: case.clone(),
        name: name.clone(),
        script: script.clone(),
        kind: FailureKind::Lost,
        slow: None,
    });
    keep(runner, case, &name, TRIES, (&script, talk), judgement, result);
}

/// Several did it together, in this order: the last of them stands for all.
fn accuse_all(runner: &mut Runner<'_>, case: &Case, several: &[Suspect], result: &mut CaseResult) {
    let names: Vec<String> =
        several.iter().map(|one| format!("{} {}", one.case, one.name)).collect();
    result.notes.push(format!(
        "plain requests fail after these {} in this order, and after no fewer of them: {}",
        several.len(),
        names.join("; ")
    ));
    let Some((last, before)) = several.split_last() else { return };
    let Some(talk) = last.talk.clone() else { return };
    let behind = match before.len() {
        1 => "another".to_owned(),
        count => format!("{count} others"),
    };
    let name = format!("{CULPRIT}{} {}, behind {behind}", last.case, last.name);
    let judgement = Judgement {
        outcome: TestOutcome::Fail,
        seen: judge::seen(&talk),
        expected: "plain requests answered as before".to_owned(),
        why: "plain requests fail after it, behind what was said before it".to_owned(),
        kind: Some(FailureKind::Lost),
    };
    let scripts: Vec<TalkScript> = before.iter().map(|one| one.script.clone()).collect();
    runner.report(CampaignEvent::FailsBehind { name: &name, before: &scripts });
    keep(runner, case, &name, TRIES, (&last.script, talk), judgement, result);
}
