//! Cases that need raw TCP segments: requests split anywhere and reordered, contradictory segments,
//! and connections held without sockets.

use super::connection::plainly;
use crate::pressure::Plan;
use crate::tries::blame_conversation;
use crate::{PLAIN_DEADLINE, Runner, bounds, habits, pressure, scripts};
use dialogue::packets::{
    Opening, PacketContent, PacketKind, PacketStep, PlaceBase, SegmentStep, SeqPlace, StreamPart,
};
use dialogue::talk::{Move, Talk, TalkEnd, TalkScript};
use torture::case::{Case, RequestSplits, SegmentOverlap, SegmentState, SegmentsHeld};
use torture::judge::{
    ConversationOutcome, FailureKind, Judgement, PressureOutcome, TestOutcome, seen,
};
use torture::record::{self, Execution};
use torture::result::{CaseResult, ExchangeResult, Measure, Unit};
use units::Nanos;

/// Maximum number of failures recorded completely.
const KEPT_MAX: usize = 5;
/// Interval between the starts of two held connections.
const APART: Nanos = Nanos::from_millis(20);
/// Maximum lifetime of a held connection that the server does not close.
const LIFE: Nanos = Nanos::from_secs(120);
/// Number of response bytes that exceed the kernel's send buffer, and maximum number of requests
/// for them per connection.
const MORE: u64 = 512 << 10;
const REQUESTS_MAX: u64 = 1_000;
/// Number of response bytes that any server's window permits at once, and the server's time to read
/// the requests.
const AT_ONCE: usize = 16 << 10;
const TO_READ: Nanos = Nanos::from_millis(50);
/// Advertised window of a connection of raw segments until it is closed.
const WINDOW: u16 = 1_024;
/// Assumed size of a response without its content.
const HEAD: u64 = 100;
/// The SYN flag alone (RFC 9293 section 3.1).
const SYN: u8 = 0x02;
/// Size of half a request.
const HALF: i32 = 12;

fn part(from: i32, to: Option<i32>) -> SegmentStep {
    SegmentStep { part: Some(StreamPart { from, to }), times: 1, ..SegmentStep::default() }
}

fn packet(step: SegmentStep) -> Move {
    Move::Packet(PacketStep::Segment(Box::new(step)))
}

fn open(window: u16) -> Move {
    Move::Packet(PacketStep::Open(Opening { window, ..Opening::default() }))
}

/// Sends a valid request in two segments split at every position, in order and reversed.
pub(super) fn send_split_everywhere(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &RequestSplits,
    result: &mut CaseResult,
) {
    let length = habits::plain_request(runner.target, "Connection: close\r\n").len();
    let step = length.div_ceil(with.splits.max(1) as usize).max(1);
    let pause = Move::Pause(with.pause);
    let cut = |at: usize, swapped: bool| {
        let mut halves = [packet(part(0, Some(at as i32))), packet(part(at as i32, None))];
        if swapped {
            halves.reverse();
        }
        let [first, second] = halves;
        vec![open(u16::MAX), first, pause.clone(), second]
    };
    let places: Vec<(usize, bool)> =
        (1..length).step_by(step).flat_map(|at| [(at, false), (at, true)]).collect();
    for group in places.chunks(with.together.max(1) as usize) {
        if runner.is_stopped() || result.exchanges.len() >= KEPT_MAX {
            return;
        }
        let scripts: Vec<TalkScript> = group
            .iter()
            .map(|(at, swapped)| scripts::segments(runner, cut(*at, *swapped), PLAIN_DEADLINE))
            .collect();
        let talks = runner.play_all(scripts.clone());
        for (((at, swapped), script), talk) in group.iter().zip(&scripts).zip(talks) {
            let order = if *swapped { ", the second segment first" } else { "" };
            plainly(runner, case, &format!("cut after byte {at}{order}"), script, talk, result);
        }
    }
}

/// An overlap of two segments before delivery: the bytes that the first and the second cover. The
/// byte before them is sent last.
struct Geometry {
    name: &'static str,
    first: (i32, Option<i32>),
    second: (i32, Option<i32>),
}

/// The third byte distinguishes the two.
const GEOMETRIES: [Geometry; 4] = [
    Geometry { name: "same place", first: (1, Some(12)), second: (1, Some(12)) },
    Geometry { name: "second inside first", first: (1, Some(12)), second: (2, Some(4)) },
    Geometry { name: "second around first", first: (2, Some(4)), second: (1, Some(12)) },
    Geometry { name: "second begins first", first: (2, Some(12)), second: (1, Some(4)) },
];

/// Segment whose bytes the server used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OverlapWinner {
    First,
    Second,
    Neither,
}

impl OverlapWinner {
    fn text(self) -> &'static str {
        match self {
            OverlapWinner::First => "the first segment counts",
            OverlapWinner::Second => "the second segment counts",
            OverlapWinner::Neither => "neither counts",
        }
    }
}

/// Sends overlapping segments with different bytes: `GET`, and the invalid `GEX`.
pub(super) fn overlap(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SegmentOverlap,
    result: &mut CaseResult,
) {
    let plain = habits::plain_request(runner.target, "Connection: close\r\n");
    let mut other = plain.clone();
    if let Some(third) = other.get_mut(2) {
        *third = b'X';
    }
    if cannot_distinguish_requests(runner, &other) {
        let why = "not tested: the server responds to GEX as to GET";
        return runner.profile.record_trait("overlap".to_owned(), why);
    }
    for geometry in &GEOMETRIES {
        let mut taken: Vec<OverlapWinner> = Vec::new();
        for attempt in 1..=with.rounds as u32 {
            if runner.is_stopped() {
                return;
            }
            let script = scripts::segments(runner, overlapping(geometry, &other), PLAIN_DEADLINE);
            let talk = runner.hold(script.clone());
            let now = overlap_winner_of(runner, &talk);
            let agrees = taken.first().is_none_or(|before| *before == now);
            taken.push(now);
            let judgement = overlap_judgement(&talk, now, agrees);
            let affected = runner.life.observe(runner.world);
            let mut judgement = judgement;
            blame_conversation(affected, &mut judgement, &talk, None);
            let name = geometry.name;
            let execution = Execution {
                case,
                name,
                attempt,
                script: &script,
                talk: &talk,
                judgement: &judgement,
            };
            runner.report_with_effect(&execution, affected);
            if judgement.outcome != TestOutcome::Pass {
                result.show(judgement.outcome);
                result.exchanges.push(exchange(name, judgement, attempt, &script, talk));
                break;
            }
        }
        if let [first, rest @ ..] = taken.as_slice()
            && rest.iter().all(|one| one == first)
        {
            runner.profile.record_trait(format!("overlap, {}", geometry.name), first.text());
        }
    }
}

/// Returns whether the two requests cannot be distinguished.
fn cannot_distinguish_requests(runner: &mut Runner<'_>, other: &[u8]) -> bool {
    let talk = runner.ask(other);
    talk.replies.responses.first().is_some_and(|response| runner.profile.plain().is(response))
}

fn overlapping(geometry: &Geometry, other: &[u8]) -> Vec<Move> {
    let second = |(from, to): (i32, Option<i32>)| {
        let bytes = other[StreamPart { from, to }.range(other.len())].to_vec();
        let seq = Some(SeqPlace { base: PlaceBase::Start, more: from });
        let data = Some(PacketContent::Bytes(bytes));
        packet(SegmentStep { seq, data, times: 1, ..SegmentStep::default() })
    };
    vec![
        open(u16::MAX),
        packet(part(12, None)),
        packet(part(geometry.first.0, geometry.first.1)),
        second(geometry.second),
        // the remaining gap, with the bytes of the first
        packet(part(0, Some(1))),
        Move::Pause(Nanos::from_millis(50)),
        packet(part(0, Some(12))),
    ]
}

fn overlap_winner_of(runner: &Runner<'_>, talk: &Talk) -> OverlapWinner {
    match talk.replies.responses.first() {
        Some(response) if runner.profile.plain().is(response) => OverlapWinner::First,
        Some(_) => OverlapWinner::Second,
        None if matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_)) => OverlapWinner::Second,
        None => OverlapWinner::Neither,
    }
}

fn overlap_judgement(talk: &Talk, taken: OverlapWinner, agrees: bool) -> Judgement {
    let unconnected = matches!(talk.end, TalkEnd::Unconnected(_) | TalkEnd::Bounded);
    let (outcome, why) = match taken {
        _ if unconnected => (ConversationOutcome::Inconclusive, "no connection"),
        OverlapWinner::Neither => (
            ConversationOutcome::Fail,
            "every byte was delivered in one version or another, but there was no response",
        ),
        _ if !agrees => {
            (ConversationOutcome::Fail, "the same segments delivered different bytes than before")
        }
        _ => (ConversationOutcome::Pass, ""),
    };
    Judgement {
        outcome: outcome.into(),
        seen: seen(talk),
        expected: "always the bytes of the same segment".to_owned(),
        why: why.to_owned(),
        kind: (outcome == ConversationOutcome::Fail).then_some(FailureKind::Answer),
        ..Judgement::default()
    }
}

fn exchange(
    name: &str,
    judgement: Judgement,
    tries: u32,
    script: &TalkScript,
    talk: Talk,
) -> ExchangeResult {
    ExchangeResult {
        name: name.to_owned(),
        judgement,
        tries,
        failed: 1,
        sent: record::sent(&script.steps),
        received: talk.raw,
        took: talk.over,
        pauses: Vec::new(),
    }
}

/// Holds connections in a state that needs raw segments, with well-behaved clients alongside.
pub(super) fn held(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SegmentsHeld,
    result: &mut CaseResult,
) {
    if let Some(why) = pressure::noise(runner) {
        result.outcome = PressureOutcome::Inconclusive.into();
        result.notes.push(why);
        return;
    }
    let (kind, steps) = steps_of_state(runner, with.kind);
    let connections = bounds::connections_max(runner.world.governor(), with.connections);
    let bare = scripts::segments(runner, steps, LIFE);
    let script = TalkScript { hold: true, ..bare };
    let scripts = (0..connections).map(|_| script.clone()).collect();
    let plan = Plan { armed_early: true, ..Plan::paced(scripts, APART, with.hold) };
    let round = pressure::confirmed_round(runner, &case.id, &plan);
    result.show(round.outcome);
    result.health = Some(round.health);
    result.notes.extend(round.notes.iter().cloned());
    if round.health.cut_short {
        return;
    }
    let ended = round
        .ended
        .iter()
        .filter(|one| matches!(one.end, TalkEnd::Closed | TalkEnd::Broken(_)))
        .count();
    let established = round.ended.iter().filter(|one| one.connected.is_some()).count();
    let hold = units::show::duration(with.hold);
    result.measures.push(Measure::exact(
        format!("connections held: {kind}"),
        established as f64,
        Unit::Connections,
        format!("for {hold} plus the time to open them; the server closed {ended} of them"),
    ));
}

/// Returns the name of a state, and the steps that lead to it.
fn steps_of_state(runner: &Runner<'_>, state: SegmentState) -> (&'static str, Vec<Move>) {
    match state {
        SegmentState::HalfOpen => {
            let syn = packet(SegmentStep { flags: Some(SYN), times: 1, ..SegmentStep::default() });
            let kinds = vec![PacketKind::SynAck, PacketKind::Rst];
            let expect = PacketStep::Expect { kinds, within: Nanos::SECOND };
            ("half-open", vec![syn, Move::Packet(expect)])
        }
        SegmentState::HalfClosed => {
            let half = packet(part(0, Some(HALF)));
            ("half-closed", vec![open(u16::MAX), half, Move::HalfClose])
        }
        SegmentState::ZeroWindow => {
            let requests = unread_requests(runner);
            let length = requests.len() as i32;
            let mut steps = vec![
                Move::Packet(PacketStep::Stream(PacketContent::Bytes(requests))),
                open(WINDOW),
                Move::Packet(PacketStep::Window(0)),
            ];
            for from in (0..length).step_by(AT_ONCE) {
                let to = length.min(from + AT_ONCE as i32);
                steps.extend([packet(part(from, Some(to))), Move::Pause(TO_READ)]);
            }
            ("zero-window", steps)
        }
    }
}

/// Returns requests whose responses exceed the kernel's send buffer.
fn unread_requests(runner: &Runner<'_>) -> Vec<u8> {
    if let Some(big) = &runner.settings.big {
        let (host, ours) = (&runner.target.values.host, &runner.target.fields);
        return format!("GET {big} HTTP/1.1\r\nHost: {host}\r\n{ours}\r\n").into_bytes();
    }
    let count = MORE / (runner.profile.plain().body_len + HEAD);
    habits::plain_request(runner.target, "").repeat(count.clamp(1, REQUESTS_MAX) as usize)
}
