//! Use of connections: a request in pieces, byte by byte, or from a reused port.

use crate::attempts::{Reproduced, Tries};
use crate::tries::blame_conversation;
use crate::{PLAIN_DEADLINE, Runner, habits};
use dialogue::talk::{Move, Talk, TalkEnd, TalkScript};
use torture::case::{Case, RequestSplits, SamePort, SingleBytes};
use torture::judge;
use torture::judge::{ConversationOutcome, Judgement, LimitOutcome, TestOutcome};
use torture::record;
use torture::record::Execution;
use torture::result::{CaseResult, ExchangeResult, Measure, Unit};
use units::{Nanos, show};

/// Maximum number of failures recorded completely.
const KEPT_MAX: usize = 5;
/// Size of a filler field in bytes.
const FIELD: usize = 500;
/// Maximum growth of time relative to bytes; shorter times are ignored.
const GROWTH_MAX: f64 = 2.0;
const LONG_MIN: Nanos = Nanos::from_millis(50);
/// Times below this, in seconds, do not make a meaningful quotient.
const NOTHING: f64 = 1e-6;

/// Splits a valid request at every position: the parser's state must survive a read.
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
        let talks = runner.play_all(scripts.clone());
        for ((at, script), talk) in group.iter().zip(&scripts).zip(talks) {
            let name = format!("cut after byte {at}");
            plainly(runner, case, &name, script, talk, result);
        }
    }
}

/// Sends short and long requests byte by byte at full speed: the cost of a byte must not grow with
/// their number.
pub(super) fn single_bytes(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SingleBytes,
    result: &mut CaseResult,
) {
    let [short, long] = [with.short, with.long].map(|size| size.0 as usize);
    let long = match longest_served(runner, long, short) {
        Some(long) if long > short => long,
        served => {
            let size = show::count(short as u64);
            let why = match served {
                Some(_) => format!(
                    "no request much longer than {size} bytes is served in one write: there is \
                    nothing to compare"
                ),
                None => format!("a request of {size} bytes is refused in one write too"),
            };
            return result.note(LimitOutcome::Inconclusive, why);
        }
    };
    let requests = [short, long].map(|length| padded(runner, length));
    let mut times = [Vec::new(), Vec::new()];
    let mut whole = [Vec::new(), Vec::new()];
    for _ in 0..with.rounds {
        for ((request, times), whole) in requests.iter().zip(&mut times).zip(&mut whole) {
            if runner.is_stopped() || result.exchanges.len() >= KEPT_MAX {
                return;
            }
            // the control: time of the same bytes in one write
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
    // the cost of the length alone is not the cost of splitting
    let more = |at: usize| (medians[at] - whole[at]).as_secs_f64();
    // on a busy machine the control is sometimes slower: differences below its noise do not count
    let (short, long) = (more(0).max(noise), more(1));
    if long > short * longer * GROWTH_MAX && long > LONG_MIN.as_secs_f64() {
        let why = format!(
            "{longer:.1} times the bytes took {:.1} times as long sent byte by byte as in one \
            write ({} more, {} more for the short request): the work per read grows with the \
            bytes already read",
            long / short.max(NOTHING),
            show::duration(Nanos::from_secs_f64(long)),
            show::duration(Nanos::from_secs_f64(short))
        );
        result.note(LimitOutcome::Degraded, why);
    }
}

fn median(mut times: Vec<Nanos>) -> Nanos {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Returns the length of a padded request that is served in one write: `most`, a fraction of it if
/// the server limits its head, or else `least`.
fn longest_served(runner: &mut Runner<'_>, most: usize, least: usize) -> Option<usize> {
    lengths(most, least).into_iter().find(|length| {
        let script = runner.bare(vec![Move::Send(padded(runner, *length))], PLAIN_DEADLINE);
        let talk = runner.hold(script);
        judgement(runner, &talk).outcome != ConversationOutcome::Fail.into()
    })
}

/// Returns the lengths to try: `most`, repeated halves of it that are at least twice `least`, and
/// `least`.
fn lengths(most: usize, least: usize) -> Vec<usize> {
    let halved = std::iter::successors(Some(most / 2), |length| Some(length / 2));
    let between = halved.take_while(|length| *length >= least.max(1) * 2);
    let longest = Some(most).filter(|most| *most > least);
    longest.into_iter().chain(between).chain([least]).collect()
}

/// Returns a plain request of about this length, padded with fields of at most 500 bytes.
fn padded(runner: &Runner<'_>, length: usize) -> Vec<u8> {
    let bare = habits::plain_request(runner.target, "").len();
    let mut fields = String::new();
    while bare + fields.len() + FIELD < length {
        fields.push_str(&format!("X-Loadstone: {}\r\n", "a".repeat(FIELD - 15)));
    }
    habits::plain_request(runner.target, &fields)
}

/// Opens successive connections from one port, which the server may still have state for.
pub(super) fn same_port(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SamePort,
    result: &mut CaseResult,
) {
    let request = habits::plain_request(runner.target, "Connection: close\r\n");
    // a port outside the kernel's ephemeral range
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
        // both sides close at about the same time
        let moves = vec![Move::Send(request.clone()), Move::HalfClose];
        let mut script = runner.bare(moves, PLAIN_DEADLINE);
        script.options.port = Some(port);
        let talk = runner.hold(script.clone());
        if let TalkEnd::Unconnected(class) = talk.end {
            refused = Some(class.explain());
            break;
        }
        made += 1;
        plainly(runner, case, "another connection from the same port", &script, talk, result);
    }
    let note = match refused {
        Some(why) => format!("then no connection: {why}"),
        None => "all attempts succeeded".to_owned(),
    };
    result.measures.push(Measure {
        what: "successive connections from one port".to_owned(),
        low: Some(made as f64),
        high: None,
        unit: Unit::Connections,
        note,
    });
}

/// Runs the control with different ports: if the server drops half-closed requests, ports are not
/// the reason.
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
            "{dropped} of {count} clients that half-closed right after the request got no \
            response, each from a different port: this server treats a half-close as a \
            disconnect (RFC 9112 section 9.6), so port reuse cannot be judged"
        )
    })
}

/// Accepts plain responses only; failures are retried.
pub(super) fn plainly(
    runner: &mut Runner<'_>,
    case: &Case,
    name: &str,
    script: &TalkScript,
    talk: Talk,
    result: &mut CaseResult,
) {
    let mut tries: Tries<ExchangeResult> = Tries::default();
    let mut talk = Some(talk);
    while let Some(attempt) = tries.next() {
        let talk = talk.take().unwrap_or_else(|| {
            let again = TalkScript { start: runner.now(), ..script.clone() };
            runner.hold(again)
        });
        let mut judgement = judgement(runner, &talk);
        let affected = runner.life.observe(runner.world);
        blame_conversation(affected, &mut judgement, &talk, None);
        let outcome = judgement.outcome;
        let execution =
            Execution { case, name, attempt, script, talk: &talk, judgement: &judgement };
        runner.report_with_effect(&execution, affected);
        let one = ExchangeResult {
            name: name.to_owned(),
            judgement,
            tries: 0,
            failed: 0,
            sent: record::sent(&script.steps),
            received: talk.raw,
            took: talk.over,
            pauses: record::pauses(&script.steps),
        };
        tries.add(outcome != TestOutcome::Pass, false, one);
    }
    let reproduced = tries.reproduced();
    let counts = (tries.attempt_count(), tries.failed());
    let Some(mut kept) = tries.into_kept().filter(|_| reproduced != Reproduced::Never) else {
        return;
    };
    (kept.tries, kept.failed) = counts;
    if reproduced == Reproduced::Sometimes {
        kept.judgement.outcome = TestOutcome::Flaky;
    }
    result.show(kept.judgement.outcome);
    result.exchanges.push(kept);
}

fn judgement(runner: &Runner<'_>, talk: &Talk) -> Judgement {
    let responses = &talk.replies.responses;
    let right = !responses.is_empty()
        && responses.iter().all(|response| runner.profile.plain().is(response));
    let outcome = match talk.end {
        _ if right => ConversationOutcome::Pass,
        // our own close reveals nothing about the server
        TalkEnd::Unconnected(_) | TalkEnd::Bounded | TalkEnd::Ours => {
            ConversationOutcome::Inconclusive
        }
        _ => ConversationOutcome::Fail,
    };
    let why = if right { "" } else { "a valid request did not get the usual response" };
    Judgement {
        outcome: outcome.into(),
        seen: judge::seen(talk),
        expected: "plain".to_owned(),
        why: why.to_owned(),
        ..Judgement::default()
    }
}

/// Returns the difference between the longest and the shortest, in seconds.
fn spread(times: &[Nanos]) -> f64 {
    let (least, most) = (times.iter().min(), times.iter().max());
    least.zip(most).map_or(0.0, |(least, most)| (*most - *least).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_request_is_tried_last() {
        assert_eq!(lengths(6_000, 600), [6_000, 3_000, 1_500, 600]);
        assert_eq!(lengths(1_000, 600), [1_000, 600]);
        assert_eq!(lengths(600, 600), [600]);
        assert_eq!(lengths(0, 0), [0]);
    }
}
