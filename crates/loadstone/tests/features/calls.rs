//! The per-call log, parsed.

use crate::support::{Ran, run};
use std::path::Path;

/// Line of the call log; times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) index: u64,
    /// Intended instant; negative in the warm-up.
    pub(crate) intended: i64,
    pub(crate) response: Option<i64>,
    pub(crate) service: Option<i64>,
    pub(crate) slip: Option<i64>,
    pub(crate) outcome: String,
    pub(crate) class: String,
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) target: usize,
}

/// Runs with `--log` and returns the calls in index order.
#[track_caller]
pub(crate) fn logged(args: &[&str]) -> Vec<Call> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.tsv");
    let mut all = vec!["run", "--quiet", "--log", path.to_str().unwrap()];
    all.extend(args);
    let ran: Ran = run(&all).expect(&[0, 4]);
    assert!(!ran.stdout.is_empty());
    read(&path)
}

#[track_caller]
pub(crate) fn read(path: &Path) -> Vec<Call> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let header =
        "index\tintended_s\tresponse_s\tservice_s\tslip_s\toutcome\tclass\tstatus\tbytes\ttarget";
    assert_eq!(lines.next(), Some(header));
    let mut calls: Vec<Call> = lines.map(parse).collect();
    calls.sort_by_key(|call| call.index);
    calls
}

fn parse(line: &str) -> Call {
    let cells: Vec<&str> = line.split('\t').collect();
    let [index, intended, response, service, slip, outcome, class, status, bytes, target] =
        cells[..]
    else {
        panic!("a line of ten cells: {line:?}");
    };
    Call {
        index: index.parse().unwrap(),
        intended: nanos(intended).unwrap(),
        response: nanos(response),
        service: nanos(service),
        slip: nanos(slip),
        outcome: outcome.to_owned(),
        class: class.to_owned(),
        status: status.parse().unwrap(),
        bytes: bytes.parse().unwrap(),
        target: target.parse().unwrap(),
    }
}

/// Parses `-1.000000001` without floating-point errors.
fn nanos(text: &str) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, part) = digits.split_once('.').unwrap();
    assert_eq!(part.len(), 9, "{text}");
    Some(sign * (whole.parse::<i64>().unwrap() * 1_000_000_000 + part.parse::<i64>().unwrap()))
}

/// Returns the gaps between successive due instants, in nanoseconds.
pub(crate) fn gaps(calls: &[Call]) -> Vec<i64> {
    calls.windows(2).map(|pair| pair[1].intended - pair[0].intended).collect()
}
