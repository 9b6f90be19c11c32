//! Determines which limit applies first: a long method may exceed the limit of the request line, a
//! long line or field that of the whole head. Reported, not scored.

use super::growth::{self, Boundary, Growth, Shot};
use super::heads::{begun, ended, filler, with_separator};
use crate::{Runner, TestTarget};
use torture::case::{Case, SizeLimit};
use torture::judge::LimitOutcome;
use torture::result::{CaseResult, Measure, Unit};
use units::show;

/// Bytes added elsewhere to the largest accepted input.
const MORE: u64 = 1_000;
/// Start of the searches for methods and versions.
const LEAST: u64 = 8;

pub(in crate::families) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SizeLimit,
    result: &mut CaseResult,
) {
    let most = with.most.0;
    tokens(runner, case, most, result);
    let target = runner.target;
    let lines = |size: u64, more: u64| long_line(target, size, more);
    overlap(runner, case, most, ("request line", "the whole head", &lines), result);
    let fields = |size: u64, more: u64| long_field(target, size, more);
    overlap(runner, case, most, ("field line", "the whole head", &fields), result);
    let methods = |size: u64, more: u64| long_method(target, size, more);
    overlap(runner, case, most, ("method", "the request line", &methods), result);
}

/// Tests unknown methods and versions: they are refused, but beyond some length the refusal
/// differs.
fn tokens(runner: &mut Runner<'_>, case: &Case, most: u64, result: &mut CaseResult) {
    let target = runner.target;
    let method = |size: u64| long_method(target, size, 0);
    let version = |size: u64| {
        let (path, host, ours) = (&target.values.path, &target.values.host, &target.fields);
        let version = format!("HTTP/1.1{}", "1".repeat(size as usize));
        ended(format!("GET {path} {version}\r\nHost: {host}\r\n{ours}"))
    };
    let kinds = [
        Growth {
            counted: "the method alone; beyond it, the refusal differs",
            ..Growth::over_bytes("method", most, &method)
        },
        Growth {
            counted: "excess digits; beyond them, the refusal differs",
            ..Growth::over_bytes("version", most, &version)
        },
    ];
    for growth in kinds {
        let growth = Growth { least: LEAST, endless: LimitOutcome::Pass, ..growth };
        growth::grow(runner, case, &growth, result);
    }
}

/// Builds a request with one enlarged part, and additional bytes elsewhere under the same outer
/// limit.
type Grown<'a> = &'a dyn Fn(u64, u64) -> Shot;

fn long_line(target: &TestTarget, size: u64, more: u64) -> Shot {
    let path = with_separator(&target.values.path);
    let line = format!("GET {path} HTTP/1.1\r\n");
    let head = begun(target, "GET", &format!("{path}{}", filler(size, line.len())));
    ended(head + &field("X-More", more))
}

fn long_field(target: &TestTarget, size: u64, more: u64) -> Shot {
    let head = begun(target, "GET", &target.values.path) + &field("X-Loadstone", size);
    ended(head + &field("X-More", more))
}

fn long_method(target: &TestTarget, size: u64, more: u64) -> Shot {
    let method = filler(size, 0).to_uppercase();
    let path = match more {
        0 => target.values.path.clone(),
        more => with_separator(&target.values.path) + &filler(more, 0),
    };
    ended(begun(target, &method, &path))
}

/// Returns a field line of this size with its end, or nothing for 0.
fn field(name: &str, size: u64) -> String {
    match size {
        0 => String::new(),
        size => format!("{name}: {}\r\n", filler(size, name.len() + 4)),
    }
}

/// Determines the limit that applies: grows `what` to its limit, then adds bytes elsewhere in
/// `around`.
fn overlap(
    runner: &mut Runner<'_>,
    case: &Case,
    most: u64,
    (what, around, grown): (&str, &str, Grown<'_>),
    result: &mut CaseResult,
) {
    let alone = |size: u64| grown(size, 0);
    let least = if what == "method" { LEAST } else { Growth::over_bytes(what, most, &alone).least };
    let growth = Growth { least, ..Growth::over_bytes(what, most, &alone) };
    if runner.is_stopped() {
        return;
    }
    let Some(Boundary { low, high, base }) = growth::boundary(runner, case, &growth) else {
        return;
    };
    let mut ask = |size: u64| {
        let name = format!("{what} of {}, and {MORE} more", show::count(size));
        growth::probe_amount(runner, case, &name, grown(size, MORE), base)
    };
    // the added part must be acceptable on its own
    let (Some(Ok(())), Some(at_bound)) = (ask(least), ask(low)) else { return };
    let more = format!("{} more bytes around it", show::count(MORE));
    result.measures.push(Measure {
        what: format!("limit on a {what}"),
        low: Some(low as f64),
        high: Some(high as f64),
        unit: Unit::Bytes,
        note: match at_bound {
            Ok(()) => format!("its own limit: accepted with {more}"),
            Err(why) => format!("the limit on {around}: refused with {more} ({why})"),
        },
    });
}
