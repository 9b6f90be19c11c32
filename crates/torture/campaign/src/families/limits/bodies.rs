//! Growing parts of a body: declared and real length, chunks, trailers.

use super::growth::{self, Growth, NUMBER_LEAST, Shot};
use super::work;
use crate::{Runner, TestTarget};
use dialogue::talk::Awaited;
use dialogue::talk::Move;
use torture::case::{Case, SizeAndNumberLimit, SizeLimit};
use torture::judge::LimitOutcome;
use torture::result::{CaseResult, Unit};
use units::Nanos;

/// Growth factor of a declared length: larger than for sent bytes, because it costs nothing.
const DECLARED_FACTOR: u64 = 16;
/// Time for the reply to 100-continue.
const PATIENCE: Nanos = Nanos::SECOND;
/// Numbers of chunks, if the server accepts that many. The work for each number is compared with
/// the work for a tenth of it.
const CHUNKS: [u64; 2] = [2_000, 20_000];

fn posted(target: &TestTarget, fields: &str) -> String {
    let (path, host, ours) = (&target.values.post, &target.values.host, &target.fields);
    format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n{ours}{fields}\r\n")
}

/// Withholds the body: the server responds to its length at once, or waits.
pub(in crate::families) fn declared(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SizeLimit,
    result: &mut CaseResult,
) {
    let target = runner.target;
    let shot = |size: u64| {
        let head = posted(target, &format!("Content-Length: {size}\r\nExpect: 100-continue\r\n"));
        let await_word = Move::Await(Awaited::Interim);
        Shot {
            steps: vec![Move::Send(head.into_bytes()), await_word, Move::Close],
            methods: vec!["POST".to_owned()],
            deadline: PATIENCE,
        }
    };
    let growth = Growth {
        counted: "Content-Length",
        is_sent: false,
        factor: DECLARED_FACTOR,
        wanted: &[413],
        ..Growth::over_bytes("declared body", with.most.0, &shot)
    };
    growth::grow(runner, case, &growth, result);
}

pub(in crate::families) fn body(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SizeLimit,
    result: &mut CaseResult,
) {
    let target = runner.target;
    let shot = |size: u64| {
        let mut bytes = posted(target, &format!("Content-Length: {size}\r\n")).into_bytes();
        bytes.resize(bytes.len() + usize::try_from(size).unwrap_or(0), b'a');
        Shot::new("POST", bytes)
    };
    let growth = Growth {
        counted: "its content",
        wanted: &[413],
        endless: LimitOutcome::Pass,
        ..Growth::over_bytes("body", with.most.0, &shot)
    };
    growth::grow(runner, case, &growth, result);
}

fn chunked(target: &TestTarget, rest: &str) -> Shot {
    let head = posted(target, "Transfer-Encoding: chunked\r\n");
    Shot::new("POST", (head + rest).into_bytes())
}

pub(in crate::families) fn chunks(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SizeAndNumberLimit,
    result: &mut CaseResult,
) {
    let target = runner.target;
    let extended = |size: u64| {
        let extension = "a".repeat(usize::try_from(size).unwrap_or(0).saturating_sub(1));
        chunked(target, &format!("1;{extension}\r\na\r\n0\r\n\r\n"))
    };
    let mut growth = Growth {
        counted: "from the semicolon to the CRLF",
        wanted: &[400, 413, 431],
        ..Growth::over_bytes("chunk extension", with.most.0, &extended)
    };
    growth::grow(runner, case, &growth, result);
    let tiny = |count: u64| {
        let chunks = "1\r\na\r\n".repeat(usize::try_from(count).unwrap_or(0));
        chunked(target, &format!("{chunks}0\r\n\r\n"))
    };
    growth = Growth {
        what: "one-byte chunks",
        counted: "",
        unit: Unit::Count,
        is_sent: true,
        least: NUMBER_LEAST,
        most: with.number,
        endless: LimitOutcome::Pass,
        shot: &tiny,
        ..growth
    };
    let taken = growth::grow(runner, case, &growth, result).unwrap_or(0);
    for count in CHUNKS.into_iter().filter(|count| *count <= taken) {
        work::compare(runner, case, &growth, count, result);
    }
}

pub(in crate::families) fn trailers(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SizeAndNumberLimit,
    result: &mut CaseResult,
) {
    let target = runner.target;
    let long = |size: u64| {
        let value = "a".repeat(usize::try_from(size).unwrap_or(0).saturating_sub(5));
        chunked(target, &format!("1\r\na\r\n0\r\nX: {value}\r\n\r\n"))
    };
    let mut growth = Growth {
        counted: "its line with its CRLF",
        wanted: &[400, 413, 431],
        ..Growth::over_bytes("trailer", with.most.0, &long)
    };
    growth::grow(runner, case, &growth, result);
    let many = |count: u64| {
        let lines = "a: 1\r\n".repeat(usize::try_from(count).unwrap_or(0));
        chunked(target, &format!("1\r\na\r\n0\r\n{lines}\r\n"))
    };
    growth = Growth {
        what: "trailers",
        counted: "their lines",
        unit: Unit::Fields,
        is_sent: true,
        least: NUMBER_LEAST,
        most: with.number,
        shot: &many,
        ..growth
    };
    growth::grow(runner, case, &growth, result);
}
