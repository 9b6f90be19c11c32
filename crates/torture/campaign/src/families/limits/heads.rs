//! Growing parts of a head.

use super::growth::{self, Growth, NUMBER_LEAST, Shot};
use super::work;
use crate::{Runner, TestTarget};
use std::fmt::Write;
use torture::case::{Case, NumberLimit, SizeLimit};
use torture::judge::LimitOutcome;
use torture::result::{CaseResult, Unit};

/// Size of a field line in a long head, including its line end.
const LINE: usize = 1_000;

/// Returns the request line and our fields, without the final empty line.
pub(super) fn begun(target: &TestTarget, method: &str, path: &str) -> String {
    let (host, ours) = (&target.values.host, &target.fields);
    format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{ours}")
}

pub(super) fn ended(mut head: String) -> Shot {
    head.push_str("\r\n");
    Shot::new("GET", head.into_bytes())
}

/// Returns filler letters up to `size` bytes.
pub(super) fn filler(size: u64, known: usize) -> String {
    "a".repeat(usize::try_from(size).unwrap_or(usize::MAX).saturating_sub(known))
}

/// Returns the path with the separator for another parameter.
pub(super) fn with_separator(path: &str) -> String {
    format!("{path}{}", if path.contains('?') { '&' } else { '?' })
}

pub(in crate::families) fn target(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SizeLimit,
    result: &mut CaseResult,
) {
    let target = runner.target;
    let path = with_separator(&target.values.path);
    let shot = |size: u64| {
        let line = format!("GET {path} HTTP/1.1\r\n");
        ended(begun(target, "GET", &format!("{path}{}", filler(size, line.len()))))
    };
    let growth = Growth {
        counted: "the line with its CRLF",
        wanted: &[414],
        ..Growth::over_bytes("request line", with.most.0, &shot)
    };
    work::grow_timed(runner, case, &growth, result);
}

/// Grows a field line.
fn line(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SizeLimit,
    result: &mut CaseResult,
    what: &str,
    made: &dyn Fn(u64) -> String,
) {
    let target = runner.target;
    let path = &target.values.path;
    let shot = |size: u64| ended(begun(target, "GET", path) + &made(size));
    let growth = Growth {
        counted: "the field line with its CRLF",
        wanted: &[431, 400, 413],
        ..Growth::over_bytes(what, with.most.0, &shot)
    };
    work::grow_timed(runner, case, &growth, result);
}

pub(in crate::families) fn value(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SizeLimit,
    result: &mut CaseResult,
) {
    let made = |size| format!("X-Loadstone: {}\r\n", filler(size, "X-Loadstone: \r\n".len()));
    line(runner, case, with, result, "field value", &made);
}

pub(in crate::families) fn name(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SizeLimit,
    result: &mut CaseResult,
) {
    let made = |size| format!("X-{}: a\r\n", filler(size, "X-: a\r\n".len()));
    line(runner, case, with, result, "field name", &made);
}

pub(in crate::families) fn fields(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &NumberLimit,
    result: &mut CaseResult,
) {
    let target = runner.target;
    let path = &target.values.path;
    let own = 1 + target.fields.matches('\n').count() as u64;
    let same = |_: u64| "a: 1\r\n".to_owned();
    let distinct = |number: u64| format!("a{number:x}: 1\r\n");
    let kinds: [(&str, &dyn Fn(u64) -> String); 2] =
        [("fields of one name", &same), ("fields", &distinct)];
    for (what, field) in kinds {
        let shot = |count: u64| {
            let lines: String = (own..count).map(field).collect();
            ended(begun(target, "GET", path) + &lines)
        };
        let growth = Growth {
            counted: "all field lines, Host and ours too",
            unit: Unit::Fields,
            least: NUMBER_LEAST.max(own),
            wanted: &[431, 400, 413],
            ..Growth::over_number(what, with.most, &shot)
        };
        work::grow_timed(runner, case, &growth, result);
    }
}

pub(in crate::families) fn head(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SizeLimit,
    result: &mut CaseResult,
) {
    let target = runner.target;
    let path = &target.values.path;
    let shot = |size: u64| {
        let mut head = begun(target, "GET", path);
        // the empty line counts too; names differ, because servers merge fields of one name
        let mut left = usize::try_from(size).unwrap_or(0).saturating_sub(head.len() + 2);
        for number in 0.. {
            let name = format!("X{number:04}: ");
            let known = name.len() + 2;
            let length = if left >= LINE + known { LINE } else { left };
            if length < known {
                break;
            }
            head.push_str(&format!("{name}{}\r\n", "a".repeat(length - known)));
            left -= length;
        }
        ended(head)
    };
    let growth = Growth {
        counted: "all bytes to the empty line, in fields of 1,000",
        wanted: &[431, 400, 413],
        ..Growth::over_bytes("whole head", with.most.0, &shot)
    };
    growth::grow(runner, case, &growth, result);
}

pub(in crate::families) fn pairs(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &NumberLimit,
    result: &mut CaseResult,
) {
    let target = runner.target;
    let path = &target.values.path;
    let cookies = |count: u64| {
        let pairs = vec!["a=1"; usize::try_from(count).unwrap_or(0)].join("; ");
        ended(begun(target, "GET", path) + &format!("Cookie: {pairs}\r\n"))
    };
    let query = |count: u64| {
        let pairs = vec!["a=1"; usize::try_from(count).unwrap_or(0)].join("&");
        ended(begun(target, "GET", &(with_separator(path) + &pairs)))
    };
    let segments = |count: u64| {
        let mut made = String::new();
        for _ in 0..count {
            write!(made, "/a").expect("writing to a String cannot fail");
        }
        ended(begun(target, "GET", &made))
    };
    let kinds: [(&str, &dyn Fn(u64) -> Shot); 3] =
        [("cookie pairs", &cookies), ("query pairs", &query), ("path segments", &segments)];
    for (what, shot) in kinds {
        let growth =
            Growth { endless: LimitOutcome::Pass, ..Growth::over_number(what, with.most, shot) };
        work::grow_timed(runner, case, &growth, result);
    }
}
