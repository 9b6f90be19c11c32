//! Comparisons of runs with known figures.

use super::rendered::{comparison, protocols, session, single};
use super::sessions::run;
use crate::Style;
use crate::compare::{csv, json, text};
use record::compare::{FailIf, Judgement, Scope, plan_differences};
use sample::FailureClass;
use stats::State;

const STYLE: Style =
    Style { unicode: true, color: false, quiet: false, percentiles: false, full: true, columns: 0 };

#[test]
fn a_slower_server_is_called_worse() {
    insta::assert_snapshot!(text(&session(1.07, 0.96, &["p99 +5%", "throughput -10%"]), STYLE));
}

#[test]
fn the_same_server_shows_no_difference() {
    insta::assert_snapshot!(text(&session(1.0, 1.0, &["p99 +5%"]), STYLE));
}

/// Each further side is compared with the first, with a share of the level, and has its own bounds.
#[test]
fn three_protocols_are_each_held_against_the_first() {
    let report = protocols(&["p99 +5%"]);
    let judged: Vec<_> = report
        .contrasts()
        .map(|one| (one.letter, one.label, one.differences[5].judgement, one.bounds[0].crossed))
        .collect();
    assert_eq!(
        judged,
        [('B', "HTTP/2", Judgement::Worse, true), ('C', "HTTP/3", Judgement::NoneShown, false),]
    );
    insta::assert_snapshot!(text(&report, STYLE));
    let csv = csv(&report);
    assert_eq!(csv.lines().filter(|line| line.ends_with(",C")).count(), report.differences.len());
}

#[test]
fn lines_fit_the_terminal_and_ascii_is_ascii() {
    let some = [
        session(1.07, 0.9, &["p99 +5%"]),
        session(1.0, 1.0, &[]),
        single(),
        protocols(&["p99 +5%"]),
    ];
    for report in some {
        let plain = text(&report, Style { unicode: false, ..STYLE });
        assert!(plain.is_ascii() && !plain.contains('?'), "{plain}");
        assert!(plain.lines().all(|line| line.len() <= 80), "{plain}");
        let quiet = text(&report, Style { quiet: true, ..STYLE });
        assert!(quiet.lines().count() < 9 && plain.lines().count() > 8, "{quiet}");
    }
}

/// Refusals are answered fast: their rate is not a throughput.
#[test]
fn a_failing_side_is_reported_and_its_refusals_are_not_compared() {
    let failing = |index| {
        let mut run = run(index, 1.0, 1.0);
        let total = &mut run.measurement.total;
        let failed = total.counts.succeeded / 2;
        total.counts.succeeded -= failed;
        total.counts.failed += failed;
        *total.failures.entry(FailureClass::Status).or_default() += failed;
        total.status.add_n(503, failed);
        run
    };
    let before = (0..12).map(failing).collect();
    let after = (0..12).map(|index| run(index + 3, 1.0, 1.0)).collect();
    let order = "ABBA BAAB BAAB ABBA ABBA BAAB";
    let report = comparison(before, after, order, &["throughput -5%", "goodput -5%"]);
    assert!(report.answer.starts_with("A is failing: "), "{}", report.answer);
    assert!(report.answer.contains("answered 503"), "{}", report.answer);
    let compared = |figure: &str| report.differences.iter().any(|one| one.figure == figure);
    assert!(!compared("throughput") && compared("goodput"));
    assert!(report.bounds[0].crossed && report.bounds[0].why.contains("a failing side"));
}

/// One run per side shows no spread between runs.
#[test]
fn single_runs_are_not_judged() {
    let report = single();
    assert!(report.differences.iter().all(|one| one.judgement == Judgement::TooFew));
    assert!(report.bounds[0].undecided && !report.bounds[0].crossed);
    insta::assert_snapshot!(text(&report, STYLE));
}

#[test]
fn runs_recorded_separately_are_compared_by_their_repeats() {
    let mut before = run(0, 1.0, 1.0);
    before.runs = (0..5).map(|index| run(index, 1.0, 1.0).runs[0]).collect();
    let mut after = run(0, 1.0, 1.0);
    after.runs = (0..5).map(|index| run(index, 0.5, 1.5).runs[0]).collect();
    let report = comparison(vec![before], vec![after], "", &["p50 +5%"]);
    let p50 = report.differences.iter().find(|one| one.figure == "p50").unwrap();
    assert_eq!(p50.judgement, Judgement::Better);
    assert!((p50.change + 0.5).abs() < 0.01 && !report.bounds[0].crossed, "{report:?}");
}

#[test]
fn verdicts_of_runs_are_cautions() {
    let mut report = run(0, 1.0, 1.0);
    report.runs[0].state = State::Invalid;
    let report = comparison(vec![report], vec![run(0, 1.0, 1.0)], "", &[]);
    assert_eq!(
        report.cautions[0],
        "1 of 1 runs of http://a.example/ are INVALID: their numbers do not describe the server."
    );
}

#[test]
fn bounds_are_read_and_refused() {
    for good in ["p99 +5%", "p99+5%", "throughput -3.5 %", "failures +0.1%", "mean +0%"] {
        assert!(FailIf::parse(good).is_ok(), "{good}");
    }
    let errors: Vec<String> = [
        "p99",
        "p98 +5%",
        "p99 +5",
        "p99 -5%",
        "throughput +5%",
        "goodput -100%",
        "p99 +x%",
        "p99 +%",
    ]
    .iter()
    .map(|bad| FailIf::parse(bad).unwrap_err().0)
    .collect();
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn bounds_are_judged() {
    let judged = |times: f64, bound: &str| {
        let report = session(times, 1.0, &[bound]);
        let bound = &report.bounds[0];
        format!("{} {}", if bound.crossed { "crossed:" } else { "kept:" }, bound.why)
    };
    let lines: Vec<String> =
        [(1.07, "p99 +5%"), (1.03, "p99 +5%"), (1.0, "p99 +5%"), (0.9, "p99 +5%")]
            .iter()
            .map(|(times, bound)| judged(*times, bound))
            .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_json_follows_its_schema() {
    for report in [session(1.07, 0.9, &["p99 +5%"]), single(), comparison(vec![], vec![], "", &[])]
    {
        super::fits_its_schema("compare", &json(&report));
    }
}

#[test]
fn the_csv_has_a_row_for_each_figure() {
    let csv = csv(&session(1.07, 0.9, &[]));
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 9);
    assert!(rows.iter().all(|row| row.split(',').count() == 12), "{csv}");
    assert!(rows.iter().any(|row| row.starts_with("p99,") && row.ends_with(",worse")), "{csv}");
}

#[test]
fn different_plans_are_distinguished() {
    let plan = |url: &str, users: u32, seed: u32| {
        format!("seed = {seed}\n[load]\nusers = {users}\n[[targets]]\nurl = \"{url}\"\n")
    };
    let a = plan("http://a:1/x?y", 10, 1);
    let differences = |b: &str, scope| plan_differences(&a, b, scope);
    assert_eq!(differences(&plan("http://b:2/x?y", 10, 2), Scope::SameCalls), [""; 0]);
    assert_eq!(
        differences(&plan("http://b/z", 20, 1), Scope::SameCalls),
        ["load.users: 10 and 20", "targets.0.url: /x?y and /z"]
    );
    assert_eq!(differences(&plan("http://b/z", 20, 1), Scope::SameLoad), ["load.users: 10 and 20"]);
    // a plan with a journey has one URL for all
    let journey = |url: &str| format!("url = \"{url}\"\n[[journey]]\nname = \"j\"\n");
    let servers = (journey("http://a:1/"), journey("http://b:2/"));
    for scope in [Scope::SameCalls, Scope::SameLoad] {
        assert_eq!(plan_differences(&servers.0, &servers.1, scope), [""; 0]);
    }
    assert_eq!(differences("no plan", Scope::SameLoad), ["a plan that cannot be read"]);
}

#[test]
fn a_table_of_one_plan_is_one_difference() {
    let http = "[load]\nusers = 10\n[[targets]]\nurl = \"http://a/\"\n";
    let socket = "[load]\nusers = 10\n[websocket]\nexpect = \"echo\"\nping = false\n\
                  [[targets]]\nurl = \"ws://a/\"\n";
    assert_eq!(
        plan_differences(http, socket, Scope::SameCalls),
        ["only the second has [websocket]"]
    );
    assert_eq!(
        plan_differences(socket, http, Scope::SameCalls),
        ["only the first has [websocket]"]
    );
    // the same load over another protocol
    assert_eq!(plan_differences(http, socket, Scope::SameLoad), [""; 0]);
    let paced = socket.replace("ping = false", "rate = \"10/s\"");
    assert_eq!(
        plan_differences(http, &paced, Scope::SameLoad),
        ["only the second has [websocket]"]
    );
}
