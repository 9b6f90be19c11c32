//! Sessions of `compare` made of synthetic runs.

use super::fixtures;
use crate::{Headline, RunRecord, RunReport};
use plan::HttpVersion;
use record::compare::{Comparison, FailIf};
use stats::State;
use std::sync::LazyLock;

/// Returns a run of 100 calls or more whose headline figures are scaled by `times` and `rates`,
/// with a small spread that depends on `index`.
pub(crate) fn run(index: usize, times: f64, rates: f64) -> RunReport {
    static WHOLE: LazyLock<RunReport> = LazyLock::new(|| fixtures::whole(fixtures::repeated()));
    let mut run = WHOLE.clone();
    let spread = 1.0 + 0.004 * ((index * 7) % 5) as f64;
    let (times, rates) = (times * spread, rates / spread);
    run.runs = vec![Headline {
        state: State::Valid,
        throughput_per_s: 10_000.0 * rates,
        goodput_per_s: 9_990.0 * rates,
        failure_share: 0.001,
        mean_s: 0.0011 * times,
        p50_s: 0.001 * times,
        p90_s: 0.002 * times,
        p99_s: 0.004 * times,
        p99_9_s: 0.008 * times,
        conforming: 0,
        max_s: 0.02,
    }];
    run
}

/// Returns a comparison of the runs of both sides.
pub(crate) fn comparison(
    before: Vec<RunReport>,
    after: Vec<RunReport>,
    order: &str,
    bounds: &[&str],
) -> Comparison {
    comparison_of_records([records(&before), records(&after)], order, bounds)
}

fn records(runs: &[RunReport]) -> Vec<RunRecord> {
    runs.iter().map(RunRecord::new).collect()
}

fn comparison_of_records(
    [before, after]: [Vec<RunRecord>; 2],
    order: &str,
    bounds: &[&str],
) -> Comparison {
    Comparison {
        name: "http://a.example/ against http://b.example/".into(),
        labels: vec!["http://a.example/".into(), "http://b.example/".into()],
        commands: vec![None, None],
        started_unix_s: 1_795_000_000.0,
        runs: vec![before, after],
        order: order.into(),
        bounds: bounds.iter().map(|bound| FailIf::parse(bound).unwrap()).collect(),
        cautions: Vec::new(),
        ended_early: None,
        gate: None,
    }
}

/// Returns the records of twelve runs.
fn side(from: usize, times: f64, rates: f64) -> Vec<RunRecord> {
    (from..from + 12).map(|index| RunRecord::new(&run(index, times, rates))).collect()
}

/// Returns a comparison of six blocks; the second side's times are `times` as long, and its rates
/// `rates` as high.
pub(crate) fn blocks(times: f64, rates: f64, bounds: &[&str]) -> Comparison {
    static BEFORE: LazyLock<Vec<RunRecord>> = LazyLock::new(|| side(0, 1.0, 1.0));
    let order = "ABBA BAAB BAAB ABBA ABBA BAAB";
    comparison_of_records([BEFORE.clone(), side(3, times, rates)], order, bounds)
}

/// Returns a comparison of one site over three protocols: the second's times are twice as long, the
/// third is like the first.
pub(crate) fn over_protocols(bounds: &[&str]) -> Comparison {
    let versions = [HttpVersion::Http11, HttpVersion::Http2, HttpVersion::Http3];
    let side = |(at, version): (usize, HttpVersion)| {
        let (times, rates) = if version == HttpVersion::Http2 { (2.0, 0.5) } else { (1.0, 1.0) };
        let run = |index: usize| {
            let mut run = run(index + 3 * at, times, rates);
            run.plan.request.version = version;
            RunRecord::new(&fixtures::whole(run))
        };
        (0..12).map(run).collect()
    };
    Comparison {
        name: "http://a.example/: HTTP/2 and HTTP/3 against HTTP/1.1".into(),
        labels: versions.iter().map(|version| version.name().to_owned()).collect(),
        commands: vec![None; 3],
        started_unix_s: 1_795_000_000.0,
        runs: versions.into_iter().enumerate().map(side).collect(),
        order: "ABCCBA CABBAC BACCAB ABCCBA CBAABC ACBBCA".into(),
        bounds: bounds.iter().map(|bound| FailIf::parse(bound).unwrap()).collect(),
        cautions: Vec::new(),
        ended_early: None,
        gate: None,
    }
}

/// Returns a comparison of one run per side.
pub(crate) fn one_run_each() -> Comparison {
    comparison(vec![run(0, 1.0, 1.0)], vec![run(1, 2.0, 0.5)], "", &["p99 +5%"])
}
