//! Number of requests per connection: pipelined, and one after the other.

use super::growth::{self, Shot};
use crate::{Runner, habits};
use dialogue::replies::RESPONSES_MAX;
use dialogue::talk::Awaited;
use dialogue::talk::{Move, Talk, TalkEnd};
use torture::case::{Case, NumberLimit};
use torture::judge;
use torture::judge::{ConversationOutcome, FailureKind, Judgement, TestOutcome};
use torture::record;
use torture::result::{CaseResult, ExchangeResult, Measure, Unit};
use units::{Nanos, show};

/// Time limit for all responses of one connection.
const TIME: Nanos = Nanos::from_secs(60);
/// Initial depth; each further depth is ten times the previous one.
const DEPTH: u64 = 10;
/// Maximum size of sent bytes kept as evidence.
const SENT_MAX: usize = 64 << 10;

/// Sends pipelined plain requests.
pub(in crate::families) fn depth(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &NumberLimit,
    result: &mut CaseResult,
) {
    let request = habits::plain_request(runner.target, "");
    let most = with.most.min(RESPONSES_MAX as u64 - 1);
    let mut measure = None;
    let mut count = DEPTH.min(most);
    loop {
        if runner.is_stopped() {
            break;
        }
        let bytes = request.repeat(usize::try_from(count).unwrap_or(0));
        let methods = vec!["GET".to_owned(); usize::try_from(count).unwrap_or(0)];
        let shot = Shot { methods, deadline: TIME, ..Shot::new("GET", bytes) };
        let (script, talk) = growth::send_shot(runner, shot);
        let right =
            talk.replies.responses.iter().filter(|one| runner.profile.plain().is(one)).count()
                as u64;
        let (shown, why) = judge_pipeline(&talk, right, count);
        let outcome = TestOutcome::from(shown);
        let name = format!("{} requests at once", show::count(count));
        let judgement = growth::noted(runner, case, &name, 1, &script, &talk, outcome, why);
        if judgement.kind == Some(FailureKind::Lost) {
            result.note(ConversationOutcome::Fail, format!("{name}: {}", judgement.why));
            break;
        }
        let closed = right < count;
        if outcome.is_favorable() {
            let note = if closed { "closed after them" } else { "all got responses in order" };
            let beyond = closed.then_some(right as f64 + 1.0);
            measure = Some((right as f64, beyond, note.to_owned()));
        } else {
            let mut sent = record::sent(&script.steps);
            sent.truncate(SENT_MAX);
            let expected = "a response to each, or a closed connection".to_owned();
            result.show(shown);
            result.exchanges.push(ExchangeResult {
                name,
                judgement: Judgement { expected, ..judgement },
                tries: 1,
                failed: 1,
                sent,
                received: talk.raw,
                took: talk.over,
                pauses: Vec::new(),
            });
        }
        if !outcome.is_favorable() || closed || count == most {
            break;
        }
        count = (count * 10).min(most);
    }
    if let Some((low, high, note)) = measure {
        let what = "pipelined requests".to_owned();
        result.measures.push(Measure { what, low: Some(low), high, unit: Unit::Requests, note });
    }
}

fn judge_pipeline(talk: &Talk, right: u64, count: u64) -> (ConversationOutcome, String) {
    let responses = talk.replies.responses.len() as u64;
    if let Some(why) = judge::broken_response(talk) {
        return (ConversationOutcome::Fail, why);
    }
    let wrong = talk.replies.responses.iter().filter(|one| one.complete).count() as u64 - right;
    match talk.end {
        TalkEnd::Unconnected(class) => {
            (ConversationOutcome::Inconclusive, format!("no connection: {}", class.explain()))
        }
        _ if wrong > 0 => (
            ConversationOutcome::Fail,
            format!("{} responses differed from the page", show::count(wrong)),
        ),
        _ if right == count => (ConversationOutcome::Pass, String::new()),
        TalkEnd::Closed | TalkEnd::Broken(_) if right > 0 => {
            (ConversationOutcome::Pass, String::new())
        }
        TalkEnd::Silent => {
            let why = format!("{} of {} got responses, then nothing more", responses, count);
            (ConversationOutcome::Fail, why)
        }
        TalkEnd::Bounded | TalkEnd::Ours => {
            (ConversationOutcome::Inconclusive, "one of our limits was reached first".into())
        }
        _ => (ConversationOutcome::Advisory, "it was closed without a response".to_owned()),
    }
}

/// Sends plain requests one after the other.
pub(in crate::families) fn requests(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &NumberLimit,
    result: &mut CaseResult,
) {
    let request = habits::plain_request(runner.target, "");
    let most = with.most.min(RESPONSES_MAX as u64 - 1);
    let mut steps = Vec::new();
    for _ in 0..most {
        steps.extend([Move::Send(request.clone()), Move::Await(Awaited::Response)]);
    }
    let methods = vec!["GET".to_owned(); usize::try_from(most).unwrap_or(0)];
    let (script, talk) = growth::send_shot(runner, Shot { steps, methods, deadline: TIME });
    growth::noted(
        runner,
        case,
        "one after the other",
        1,
        &script,
        &talk,
        ConversationOutcome::Pass,
        String::new(),
    );
    let responses = &talk.replies.responses;
    let count = responses.iter().filter(|one| one.complete).count() as u64;
    if let TalkEnd::Unconnected(_) | TalkEnd::Bounded | TalkEnd::Ours = talk.end {
        result.note(ConversationOutcome::Inconclusive, judge::seen(&talk));
        return;
    }
    let announced = responses.last().is_some_and(|last| !last.persistent);
    let next = Some(count as f64 + 1.0);
    // our time limit was reached and the server closed nothing
    let out_of_time = talk.end == TalkEnd::Silent && count < most && !announced;
    let (high, note) = match (count < most, announced) {
        (false, false) => (None, "the connection stays".to_owned()),
        (_, true) => (next, "the last response announced the close".to_owned()),
        _ if out_of_time => (None, format!("not closed within {} s", TIME.as_secs_f64())),
        (true, false) => (next, "the close was not announced".to_owned()),
    };
    result.measures.push(Measure {
        what: "requests per connection".to_owned(),
        low: Some(count as f64),
        high,
        unit: Unit::Requests,
        note,
    });
}
