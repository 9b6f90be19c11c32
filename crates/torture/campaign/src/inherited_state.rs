//! A request that fails once and passes after a plain request: an earlier request of another client
//! may be the cause. State that leaks between clients is worse than the failure itself.

use crate::search::SearchEnd;
use crate::trail::Suspect;
use crate::{CampaignEvent, PLAIN_DEADLINE, Runner, habits, scripts, search};
use dialogue::talk::{Move, TalkScript};
use torture::case::{Case, Exchange};
use torture::judge;
use torture::judge::{FailureKind, TestOutcome};
use torture::result::ExchangeResult;

/// Number of attempts after the suspected conversations, all of which must fail ...
const CONFIRMATIONS: i32 = 8;
/// ... and maximum probability that they fail by chance.
const CHANCE_MAX: f64 = 0.01;

/// Sends a plain request on a new connection, so that no attempt depends on state left by the
/// previous one.
pub(crate) fn isolate_attempt(runner: &mut Runner<'_>) {
    let plain = habits::plain_request(runner.target, "Connection: close\r\n");
    let script = TalkScript { probe: true, ..runner.bare(vec![Move::Send(plain)], PLAIN_DEADLINE) };
    runner.hold(script);
}

/// Checks an exchange that failed in some attempts only. It fails if it does so after the earlier
/// conversations.
pub(crate) fn confirm(
    runner: &mut Runner<'_>,
    case: &Case,
    exchange: &Exchange,
    before: &[Suspect],
    result: &mut ExchangeResult,
) {
    if !may_be_inherited(result) {
        return;
    }
    let Some(guilty) = preceding_causes(runner, case, exchange, before) else { return };
    let names: Vec<String> =
        guilty.iter().map(|one| format!("{} {}", one.case, one.name)).collect();
    let judgement = &mut result.judgement;
    judgement.outcome = TestOutcome::Fail;
    judgement.kind = Some(FailureKind::Inherited);
    judgement.why = format!(
        "it fails after {} on another connection but not after a plain request: state leaks \
        between connections",
        names.join("; then ")
    );
    let scripts: Vec<TalkScript> = guilty.into_iter().map(|one| one.script).collect();
    runner.report(CampaignEvent::FailsAfter { name: &exchange.name, before: &scripts });
}

/// Returns whether an earlier request on another connection may be the cause of an intermittent
/// failure.
fn may_be_inherited(result: &ExchangeResult) -> bool {
    // an exchange that often fails by chance does so after any conversation
    let share = f64::from(result.failed) / f64::from(result.tries.max(1));
    // parsed content is the request's own fault; a late response only makes it intermittent
    let is_own = result.judgement.kind == Some(FailureKind::ContentParsed);
    share.powi(CONFIRMATIONS) <= CHANCE_MAX && !is_own
}

/// Returns the smallest set of earlier conversations, in order, after which the exchange fails
/// again.
fn preceding_causes(
    runner: &mut Runner<'_>,
    case: &Case,
    exchange: &Exchange,
    before: &[Suspect],
) -> Option<Vec<Suspect>> {
    if !runner.budget.is_wanted() || before.is_empty() {
        return None;
    }
    runner.budget.renew();
    let mut fails = |runner: &mut Runner<'_>, some: &[Suspect]| {
        search::mostly(runner, |runner| fails_after(runner, case, exchange, some))
    };
    // the last one is the most likely
    let mut count = 1;
    loop {
        let end = &before[before.len() - count..];
        if fails(runner, end).ok()? {
            let guilty = search::fewest_of(runner, end, &mut fails);
            return is_certain(runner, case, exchange, &guilty).ok()?.then_some(guilty);
        }
        if count == before.len() {
            return None;
        }
        count = (count * 2).min(before.len());
    }
}

/// Returns whether the exchange always fails after these conversations.
fn is_certain(
    runner: &mut Runner<'_>,
    case: &Case,
    exchange: &Exchange,
    guilty: &[Suspect],
) -> Result<bool, SearchEnd> {
    for _ in 0..CONFIRMATIONS {
        if !fails_after(runner, case, exchange, guilty)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn fails_after(
    runner: &mut Runner<'_>,
    case: &Case,
    exchange: &Exchange,
    before: &[Suspect],
) -> Result<bool, SearchEnd> {
    isolate_attempt(runner);
    for suspect in before {
        search::repeat_conversation(runner, suspect)?;
    }
    let script = scripts::of_exchange(runner, exchange);
    let talk = runner.hold(script);
    let judgement = judge::judge(exchange, case.level, &talk, runner.profile.plain());
    Ok(judgement.outcome == TestOutcome::Fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use torture::judge::Judgement;
    use units::Nanos;

    #[test]
    fn parsed_content_and_frequent_failures_are_not_inherited() {
        let inherited = |kind, failed| {
            may_be_inherited(&ExchangeResult {
                name: "x".to_owned(),
                judgement: Judgement { kind: Some(kind), ..Judgement::default() },
                tries: 20,
                failed,
                sent: Vec::new(),
                received: Vec::new(),
                took: Nanos::ZERO,
                pauses: Vec::new(),
            })
        };
        assert!(inherited(FailureKind::Answer, 8));
        assert!(!inherited(FailureKind::Answer, 16));
        assert!(!inherited(FailureKind::ContentParsed, 8));
    }
}
