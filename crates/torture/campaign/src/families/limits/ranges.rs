//! Many ranges of one page: the response must not be much longer than the page.

use super::growth::{self, Shot};
use crate::Runner;
use dialogue::talk::{Talk, TalkEnd};
use torture::case::{Case, NumberLimit};
use torture::judge;
use torture::judge::{Cause, FailureKind, Judgement, LimitOutcome};
use torture::record;
use torture::result::{CaseResult, ExchangeResult, Measure, Unit};
use units::show;

/// Maximum response bytes per page byte without an advisory, and without a finding.
const SHARE_HELD: f64 = 1.1;
const SHARE_MAX: f64 = 4.0;
/// Permitted overhead for the parts of a multipart response: a few hundred bytes each, which is a
/// multiple of a short page but costs the server nothing.
const PARTS: u64 = 16 << 10;
/// Number of ranges in the first and the second request of each kind.
const FEW: u64 = 5;

/// Builds a list of ranges: the number of ranges, and the size of the page.
type RangeForm = fn(u64, u64) -> String;

const KINDS: [(&str, RangeForm); 3] = [
    ("disjoint", |count, length| {
        let step = (length / count).max(2);
        list(count, |at| format!("{}-{}", at * step, at * step))
    }),
    ("overlapping", |count, _| list(count, |at| format!("{at}-"))),
    ("reversed", |count, length| {
        let step = (length / count).max(2);
        list(count, |at| format!("{}-{}", (count - at) * step, (count - at) * step + 1))
    }),
];

fn list(count: u64, one: impl Fn(u64) -> String) -> String {
    (0..count).map(one).collect::<Vec<_>>().join(",")
}

pub(in crate::families) fn ranges(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &NumberLimit,
    result: &mut CaseResult,
) {
    for (kind, made) in KINDS {
        let mut worst: Option<(f64, String)> = None;
        for count in [FEW, with.most] {
            if runner.is_stopped() {
                return;
            }
            let name = format!("{} {kind} ranges", show::count(count));
            let list = made(count, runner.profile.plain().body_len);
            let (share, seen) = ask(runner, case, &name, &list, result);
            if let Some(share) = share.filter(|share| worst.as_ref().is_none_or(|w| w.0 < *share)) {
                worst = Some((share, format!("{name}: {seen}")));
            }
        }
        let Some((share, note)) = worst else { continue };
        result.measures.push(Measure::exact(
            format!("bytes for {kind} ranges"),
            share,
            Unit::Ratio,
            format!("relative to the whole page; {note}"),
        ));
    }
}

/// Returns the received bytes per page byte, and a description.
fn ask(
    runner: &mut Runner<'_>,
    case: &Case,
    name: &str,
    list: &str,
    result: &mut CaseResult,
) -> (Option<f64>, String) {
    let values = &runner.target.values;
    let (path, host, ours) = (&values.path, &values.host, &runner.target.fields);
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{ours}Range: bytes={list}\r\n\r\n");
    let (script, talk) = growth::send_shot(runner, Shot::new("GET", request.into_bytes()));
    let length = runner.profile.plain().body_len.max(1);
    let came = talk.replies.responses.first().map(|response| response.body_len);
    let share = came.map(|came| came as f64 / length as f64);
    // a page shorter than its request costs no more than the request
    let asked = length.max(talk.sent);
    let (outcome, why) = judge_range(&talk, came, (length, asked));
    let judgement = growth::noted(runner, case, name, 1, &script, &talk, outcome, why);
    let seen = judgement.seen.clone();
    if judgement.kind == Some(FailureKind::Lost) {
        result.note(LimitOutcome::Fail, format!("{name}: {}", judgement.why));
    } else if outcome != LimitOutcome::Pass {
        let is_long = share.is_some_and(|share| share >= SHARE_HELD);
        let cause = is_long.then_some(Cause::LongRanges);
        result.show(outcome);
        result.exchanges.push(ExchangeResult {
            name: name.to_owned(),
            judgement: Judgement { expected: expected(), cause, ..judgement },
            tries: 1,
            failed: 1,
            sent: record::sent(&script.steps),
            received: talk.raw,
            took: talk.over,
            pauses: Vec::new(),
        });
    }
    (share, seen)
}

fn expected() -> String {
    format!("200, 206 or 416 with at most {SHARE_HELD} times the bytes of the page")
}

/// Judges the response. `length`: size of the page; `asked`: size that the response is compared
/// with.
fn judge_range(
    talk: &Talk,
    came: Option<u64>,
    (length, asked): (u64, u64),
) -> (LimitOutcome, String) {
    if let TalkEnd::Unconnected(class) = talk.end {
        return (LimitOutcome::Inconclusive, format!("no connection: {}", class.explain()));
    }
    if let Some(why) = judge::broken_response(talk) {
        return (LimitOutcome::Fail, why);
    }
    let Some(came) = came else {
        return match talk.end {
            TalkEnd::Silent => {
                (LimitOutcome::Fail, "no response, the connection stays open".into())
            }
            TalkEnd::Bounded | TalkEnd::Ours => {
                (LimitOutcome::Inconclusive, "one of our limits was reached first".into())
            }
            // refusing this many is a valid response
            _ => (LimitOutcome::Pass, String::new()),
        };
    };
    let share = charged(came, asked);
    let text = format!(
        "{} for a page of {} and a request of {}",
        show::bytes(came),
        show::bytes(length),
        show::bytes(talk.sent)
    );
    match share {
        SHARE_MAX.. => {
            (LimitOutcome::Fail, format!("{text}: a short request causes a large response"))
        }
        SHARE_HELD.. => (LimitOutcome::Degraded, format!("{text}: more than the page itself")),
        _ => (LimitOutcome::Pass, String::new()),
    }
}

/// Returns response bytes per reference byte, without the allowed overhead of parts.
fn charged(came: u64, asked: u64) -> f64 {
    came.saturating_sub(PARTS) as f64 / asked.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_headers_are_free_and_repeated_pages_are_charged() {
        // Caddy: a page of 214 bytes in 107 parts, requested with 8,647 bytes
        assert!(charged(15_322, 8_647) < SHARE_HELD);
        // the same page 1,000 times, and a longer one five times
        assert!(charged(214_000, 8_647) > SHARE_MAX);
        assert!(charged(500_000, 100_000) > SHARE_MAX);
        let twice = charged(200_000, 100_000);
        assert!(twice > SHARE_HELD && twice < SHARE_MAX);
    }

    #[test]
    fn range_lists_are_built_by_kind() {
        let table = [
            ("disjoint", 3, 30, "0-0,10-10,20-20"),
            ("overlapping", 3, 30, "0-,1-,2-"),
            ("reversed", 3, 30, "30-31,20-21,10-11"),
            ("disjoint", 3, 1, "0-0,2-2,4-4"),
        ];
        for (name, count, length, expected) in table {
            let (_, made) = KINDS.iter().find(|(kind, _)| *kind == name).unwrap();
            assert_eq!(made(count, length), expected);
        }
    }
}
