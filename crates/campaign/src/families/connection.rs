//! How a connection is used: a request in pieces, in single bytes, from a port that is used again.

use crate::tries::accuse;
use crate::{PLAIN_DEADLINE, Runner, TRIES, habits};
use dialogue::talk::{Move, Talk, TalkEnd, TalkScript};
use torture::case::{Case, RequestSplits, SamePort, SingleBytes};
use torture::judge;
use torture::judge::{ConversationOutcome, Judgement, LimitOutcome, TestOutcome};
use torture::record;
use torture::record::Execution;
use torture::result::{CaseResult, ExchangeResult, Measure, Unit};
use units::{Nanos, show};

/// Failures of which everything is kept.
const KEPT_MAX: usize = 5;
/// Bytes of a field that only fills up.
const FIELD: usize = 500;
/// Time may grow so many times faster than the bytes do; what is over sooner is nobody's worry.
const GROWTH_MAX: f64 = 2.0;
const LONG_MIN: Nanos = Nanos::from_millis(50);
/// Seconds: a quotient by less says nothing.
const NOTHING: f64 = 1e-6;

/// A valid request cut in two at every place: the parser's state outlives a read.
pub(super) fn splits(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &RequestSplits,
    result: &mut CaseResult,
) {
    let request = habits::plain_request(runner.target, "Connection: close\r\n");
    let step = request.len().div_ceil(with.splits.max(1) as usize).max(1);
    let places: Vec<usize> = (1..request.len()).step_by(step).collect();
    let pause = with.pause;
    let cut = |at: usize| {
        let (first, second) = request.split_at(at);
        vec![Move::Send(first.to_vec()), Move::Pause(pause), Move::Send(second.to_vec())]
    };
    for group in places.chunks(with.together.max(1) as usize) {
        if runner.is_stopped() || result.exchanges.len() >= KEPT_MAX {
            return;
        }
        let scripts: Vec<TalkScript> =
            group.iter().map(|at| runner.bare(cut(*at), PLAIN_DEADLINE)).collect();
        let talks = runner.together(scripts.clone());
        for ((at, script), talk) in group.iter().zip(&scripts).zip(talks) {
            let name = format!("cut after byte {at}");
            plainly(runner, case, &name, script, talk, result);
        }
    }
}

/// Requests in single bytes, as fast as they go, short ones and long ones: the cost of a byte does
/// not grow with their number.
pub(super) fn single_bytes(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SingleBytes,
    result: &mut CaseResult,
) {
    let requests = [with.short, with.long].map(|size| padded(runner, size.0 as usize));
    let mut times = [Vec::new(), Vec::new()];
    let mut whole = [Vec::new(), Vec::new()];
    for _ in 0..with.rounds {
        for ((request, times), whole) in requests.iter().zip(&mut times).zip(&mut whole) {
            if runner.is_stopped() || result.exchanges.len() >= KEPT_MAX {
                return;
            }
            // the control: what the same bytes take in one piece
            let control = runner.bare(vec![Move::Send(request.clone())], PLAIN_DEADLINE * 4);
            whole.push(runner.hold(control).over);
            let moves = request.iter().map(|byte| Move::Send(vec![*byte])).collect();
            let script = runner.bare(moves, PLAIN_DEADLINE * 4);
            let talk = runner.hold(script.clone());
            times.push(talk.over);
            let name = format!("{} single bytes", request.len());
            plainly(runner, case, &name, &script, talk, result);
        }
    }
    let median = |mut times: Vec<Nanos>| {
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    let noise = spread(&times[0]).max(spread(&whole[0]));
    let (medians, whole) = (times.map(median), whole.map(median));
    for (request, median) in requests.iter().zip(medians) {
        let seconds = Some(median.as_secs_f64());
        result.measures.push(Measure {
            what: format!("a request of {} single bytes", request.len()),
            low: seconds,
            high: seconds,
            unit: Unit::Spent,
            note: format!("median of {}", with.rounds),
        });
    }
    let longer = requests[1].len() as f64 / requests[0].len() as f64;
    // what their length alone costs is no matter of pieces
    let more = |at: usize| (medians[at] - whole[at]).as_secs_f64();
    // a busy machine makes the control the slower one now and then: less than its noise is no time
    let (short, long) = (more(0).max(noise), more(1));
    if long > short * longer * GROWTH_MAX && long > LONG_MIN.as_secs_f64() {
        let why = format!(
            "{longer:.1} times the bytes took {:.1} times as long in single bytes as in one piece \
             ({} more, {} more for the short one): the work of a read grows with what was read before",
            long / short.max(NOTHING),
            show::duration(Nanos::from_secs_f64(long)),
            show::duration(Nanos::from_secs_f64(short))
        );
        result.note(LimitOutcome::Degraded, why);
    }
}

/// A plain request, filled up to about a length with fields of 500 bytes at most.
fn padded(runner: &Runner<'_>, length: usize) -> Vec<u8> {
    let bare = habits::plain_request(runner.target, "").len();
    let mut fields = String::new();
    while bare + fields.len() + FIELD < length {
        fields.push_str(&format!("X-Loadstone: {}\r\n", "a".repeat(FIELD - 15)));
    }
    habits::plain_request(runner.target, &fields)
}

/// Connections one after the other from one port, which the server may still remember.
pub(super) fn same_port(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SamePort,
    result: &mut CaseResult,
) {
    let request = habits::plain_request(runner.target, "Connection: close\r\n");
    // a port of our own choice, out of the range from which the kernel takes its own
    let port = 20_000 + (runner.settings.seed % 10_000) as u16;
    let (mut made, mut refused) = (0_u64, None);
    if let Some(dropped) = drops_half_closed(runner, &request, with) {
        result.note(ConversationOutcome::Advisory, dropped);
        return;
    }
    for _ in 0..with.connections {
        if runner.is_stopped() {
            return;
        }
        // both sides end the connection at about the same time
        let moves = vec![Move::Send(request.clone()), Move::HalfClose];
        let mut script = runner.bare(moves, PLAIN_DEADLINE);
        script.options.port = Some(port);
        let talk = runner.hold(script.clone());
        if let TalkEnd::Unconnected(class) = talk.end {
            refused = Some(class.explain());
            break;
        }
        made += 1;
        plainly(runner, case, "one more from the same port", &script, talk, result);
    }
    let note = match refused {
        Some(why) => format!("then no connection: {why}"),
        None => "every one that was tried".to_owned(),
    };
    result.measures.push(Measure {
        what: "connections from one port, one after the other".to_owned(),
        low: Some(made as f64),
        high: None,
        unit: Unit::Connections,
        note,
    });
}

/// The control, on ports of their own: a server that drops requests whose client ends its side at once
/// says nothing of ports.
fn drops_half_closed(runner: &mut Runner<'_>, request: &[u8], with: &SamePort) -> Option<String> {
    let count = with.connections;
    let mut dropped = 0;
    for _ in 0..count {
        if runner.is_stopped() {
            return None;
        }
        let moves = vec![Move::Send(request.to_vec()), Move::HalfClose];
        let script = runner.bare(moves, PLAIN_DEADLINE);
        let talk = runner.hold(script);
        let ended = matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_) | TalkEnd::Silent);
        dropped += u64::from(ended && talk.replies.responses.is_empty());
    }
    (dropped > 0).then(|| {
        format!(
            "{dropped} of {count} clients that ended their side right behind the request got no \
             response, each from a port of its own: this server takes that for a client that has left \
             (RFC 9112 section 9.6), and its ports cannot be judged"
        )
    })
}

/// Nothing but plain responses may come; what fails is tried again.
pub(super) fn plainly(
    runner: &mut Runner<'_>,
    case: &Case,
    name: &str,
    script: &TalkScript,
    talk: Talk,
    result: &mut CaseResult,
) {
    let mut kept: Option<ExchangeResult> = None;
    let mut talk = Some(talk);
    for attempt in 1..=TRIES {
        let talk = talk.take().unwrap_or_else(|| {
            let again = TalkScript { start: runner.now(), ..script.clone() };
            runner.hold(again)
        });
        let mut judgement = judgement(runner, &talk);
        let struck = runner.life.hear(runner.world);
        accuse(struck, &mut judgement, &talk, None);
        let outcome = judgement.outcome;
        let execution =
            Execution { case, name, attempt, script, talk: &talk, judgement: &judgement };
        runner.told_of(&execution, struck);
        if outcome == TestOutcome::Pass && kept.is_none() {
            return;
        }
        let kept = kept.get_or_insert_with(|| ExchangeResult {
            name: name.to_owned(),
            judgement,
            tries: 0,
            failed: 0,
            sent: record::sent(&script.steps),
            received: talk.raw,
            took: talk.over,
            pauses: Vec::new(),
        });
        kept.tries = attempt;
        kept.failed += u32::from(outcome != TestOutcome::Pass);
    }
    if let Some(mut kept) = kept {
        if kept.failed < kept.tries {
            kept.judgement.outcome = TestOutcome::Flaky;
        }
        result.show(kept.judgement.outcome);
        result.exchanges.push(kept);
    }
}

fn judgement(runner: &Runner<'_>, talk: &Talk) -> Judgement {
    let responses = &talk.replies.responses;
    let right = !responses.is_empty()
        && responses.iter().all(|response| runner.profile.plain().is(response));
    let outcome = match talk.end {
        _ if right => ConversationOutcome::Pass,
        // what we ended ourselves says nothing of the server
        TalkEnd::Unconnected(_) | TalkEnd::Bounded | TalkEnd::Ours => {
            ConversationOutcome::Inconclusive
        }
        _ => ConversationOutcome::Fail,
    };
    let why = if right { "" } else { "a valid request did not get the plain response" };
    Judgement {
        outcome: outcome.into(),
        seen: judge::seen(talk),
        expected: "plain".to_owned(),
        why: why.to_owned(),
        kind: None,
    }
}

/// How far the longest of these is from the shortest, in seconds.
fn spread(times: &[Nanos]) -> f64 {
    let (least, most) = (times.iter().min(), times.iter().max());
    least.zip(most).map_or(0.0, |(least, most)| (*most - *least).as_secs_f64())
}
