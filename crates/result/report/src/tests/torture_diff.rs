//! Comparison of two torture results, and waivers.

use super::tortures::{case, mixed, pressed, result};
use super::validator_of;
use crate::Style;
use crate::torture::diff;
use crate::torture::{Report, html, json, junit, text};
use record::document::printed;
use record::torture::TortureRecord;
use record::torture::diff::{ChangeKind, DiffRecord, compare};
use record::torture::waivers::{self, Day};
use serde_json::Value;
use torture::judge::{Severity, TestOutcome};
use torture::result::Unit;

fn unicode() -> Style {
    Style { unicode: true, ..Style::default() }
}

/// Returns the report of the same server one version later: one finding fixed, one new, one worse,
/// one renamed, and a timeout removed.
fn later() -> Report {
    let mut report = pressed();
    let find = |report: &mut Report, id: &str| -> usize {
        report.result.cases.iter().position(|one| one.case.id == id).unwrap()
    };
    let at = find(&mut report, "S-07");
    report.result.cases[at].outcome = TestOutcome::Pass;
    report.result.cases[at].exchanges.clear();
    let at = find(&mut report, "S-01");
    report.result.cases[at].outcome = TestOutcome::Fail;
    let at = find(&mut report, "W-10");
    report.result.cases[at].outcome = TestOutcome::Crashed;
    let at = find(&mut report, "F-01");
    report.result.cases[at].case.version += 1;
    let at = find(&mut report, "W-02");
    report.result.cases[at].outcome = TestOutcome::Skipped;
    report.result.cases[at].skipped = Some("no time".into());
    let at = find(&mut report, "L-01");
    report.result.cases[at].measures[0].high = Some(4_097.0);
    report.result.cases[at].measures[0].low = Some(4_096.0);
    report.result.cases.push(result("S-55", TestOutcome::Fail));
    report.result.habits.seen[0].1 = "reset <b>\u{202e}|".into();
    report.seed = 7;
    report.result.interrupted = true;
    report
}

fn documents() -> [TortureRecord; 2] {
    [pressed().record(), later().record()]
}

fn kinds(diff: &DiffRecord) -> Vec<(&str, ChangeKind)> {
    diff.changes.iter().map(|change| (change.case.as_str(), change.kind)).collect()
}

#[test]
fn new_and_fixed_findings_are_listed() {
    let [a, b] = documents();
    let diff = compare(&a, &b);
    let expected = [
        ("S-01", ChangeKind::New),
        ("W-10", ChangeKind::Worse),
        ("S-07", ChangeKind::Fixed),
        ("W-02", ChangeKind::Untested),
        ("F-01", ChangeKind::Version),
        ("S-55", ChangeKind::OnlyB),
    ];
    assert_eq!(kinds(&diff), expected);
    assert_eq!((diff.worse, diff.unchanged), (2, 3));
    insta::assert_snapshot!("torture_diff", diff::text(&diff, unicode()));
    insta::assert_snapshot!("torture_diff_markdown", diff::markdown(&diff));
    let quiet = diff::text(&diff, Style { quiet: true, ..unicode() });
    assert!(quiet.contains("S-01") && !quiet.contains("S-07") && !quiet.contains("Habits"));
    assert!(diff::text(&diff, Style::default()).is_ascii());

    let document: Value = serde_json::from_str(&printed(&diff)).unwrap();
    let validator = validator_of("torture-diff");
    let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
    assert_eq!(errors, [""; 0]);
    assert_eq!(serde_json::from_value::<DiffRecord>(document).unwrap(), diff);

    let back = compare(&b, &a);
    assert_eq!(back.changes[1].kind, ChangeKind::Eased, "{:?}", kinds(&back));
    let same = compare(&a, &a);
    assert_eq!((same.worse, same.limits.len(), same.cautions.len()), (0, 0, 0));
    assert!(
        same.changes.iter().all(|change| change.kind == ChangeKind::Still),
        "{:?}",
        kinds(&same)
    );
}

/// Each exchange counts: a case that fails in one more way is worse.
#[test]
fn another_exchange_that_fails_is_worse() {
    let two = |second: TestOutcome| {
        let mut report = mixed();
        let failed = &mut report.result.cases[1];
        let mut other = failed.exchanges[0].clone();
        (other.name, other.judgement.outcome) = ("tab".into(), second);
        failed.exchanges.push(other);
        report.record()
    };
    let (one, both) = (two(TestOutcome::Pass), two(TestOutcome::Fail));
    let at = |diff: &DiffRecord| {
        let found = diff.changes.iter().find(|change| change.case == "S-07").unwrap();
        (found.kind, found.detail.clone())
    };
    assert_eq!(at(&compare(&one, &both)), (ChangeKind::Worse, "fails now: tab".into()));
    assert_eq!(at(&compare(&both, &one)), (ChangeKind::Eased, "no longer fails: tab".into()));
    assert_eq!(at(&compare(&one, &one)), (ChangeKind::Still, String::new()));
}

/// Brackets that touch are the same number; times vary anyway, sizes do not.
#[test]
fn changed_numbers_are_listed() {
    let with = |unit: Unit, low: f64, high: Option<f64>| {
        let mut report = pressed();
        let measure = &mut report.result.cases[6].measures[0];
        (measure.unit, measure.low, measure.high) = (unit, Some(low), high);
        report.record()
    };
    for (unit, (a_low, a_high), (b_low, b_high), moved) in [
        (Unit::Bytes, (8_190.0, 8_191.0), (8_190.0, 8_191.0), false),
        (Unit::Bytes, (8_190.0, 8_191.0), (8_192.0, 8_193.0), true),
        (Unit::Seconds, (60.0, 60.2), (60.9, 61.0), false),
        (Unit::Seconds, (60.0, 60.2), (65.0, 65.2), true),
        (Unit::Seconds, (0.1, 0.1), (0.5, 0.5), false),
        (Unit::PerSecond, (100.0, 100.0), (115.0, 115.0), false),
        (Unit::PerSecond, (100.0, 100.0), (150.0, 150.0), true),
    ] {
        let (a, b) = (with(unit, a_low, Some(a_high)), with(unit, b_low, Some(b_high)));
        assert_eq!(compare(&a, &b).limits.len(), usize::from(moved), "{unit:?} {a_low} {b_low}");
    }
    let (some, none) = (with(Unit::Seconds, 60.0, Some(60.5)), with(Unit::Seconds, 180.0, None));
    let found = diff::text(&compare(&some, &none), unicode());
    assert!(found.contains("now over 180 s"), "{found}");
}

fn waived(file: &str) -> Report {
    let mut report = pressed();
    // the catalog does not contain all of the invented cases
    let mut known: Vec<_> = report.result.cases.iter().map(|one| one.case.clone()).collect();
    known.push(case("S-55"));
    let waivers = waivers::read(file, &known).unwrap();
    let today = Day::from_unix_seconds(report.started_unix_s);
    report.waivers = waivers::apply(&waivers, &report.result.cases, today);
    report
}

const WAIVERS: &str = "\
[[waive]]
case = \"S-07\"
reason = \"the old <i>proxy</i>, ticket 12\"
until = 2099-01-01

[[waive]]
case = \"W-10\"
reason = \"until the move\"
until = 2020-01-01

[[waive]]
case = \"S-01\"
reason = \"never seen\"
until = 2099-01-01
";

#[test]
fn a_waived_finding_is_shown_and_does_not_count() {
    let report = waived(WAIVERS);
    let record = report.record();
    let found: Vec<&str> = record.counted_findings().iter().map(|one| one.id.as_str()).collect();
    assert_eq!(found, ["W-10", "W-02", "F-01"]);
    let outcome = text(&report.record(), unicode());
    for part in [
        "3 findings in 7 cases",
        "1 of them waived",
        "waived    until 2099-01-01: the old",
        "W-10, until 2020-01-01: until the move (it has expired: the finding counts again)",
        "S-01, until 2099-01-01: never seen (nothing that it names failed: remove it)",
    ] {
        let flat = outcome.split_whitespace().collect::<Vec<_>>().join(" ");
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&part), "{part}\n{outcome}");
    }
    let document: Value = serde_json::from_str(&json(&report.record())).unwrap();
    assert!(validator_of("torture").is_valid(&document));
    assert_eq!(
        (&document["findings"], &document["waivers"][1]["state"]),
        (&3.into(), &"expired".into())
    );
    let page = html(&report.record());
    assert!(page.contains("3 FINDINGS") && page.contains("the old &lt;i&gt;proxy"), "{page}");
    let report = Report { fail_on: Severity::Low, ..report };
    let xml = junit(&report.record());
    let suite = roxmltree::Document::parse(&xml).unwrap();
    let count = |tag: &str| suite.descendants().filter(|node| node.has_tag_name(tag)).count();
    assert_eq!((count("failure"), count("skipped")), (3, 2), "{xml}");
}

/// A new finding that is waived in B does not fail the comparison.
#[test]
fn a_waived_finding_is_not_worse() {
    let without = {
        let mut report = pressed();
        report.result.cases[1].outcome = TestOutcome::Pass;
        report.record()
    };
    let (plain, waived) = (pressed().record(), waived(WAIVERS).record());
    assert_eq!(compare(&without, &plain).worse, 1);
    let diff = compare(&without, &waived);
    assert_eq!((diff.worse, diff.changes[0].kind), (0, ChangeKind::New));
    let message = diff::text(&diff, unicode()).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        message.contains("Nothing is worse in B") && message.contains("waived: the old"),
        "{message}"
    );
}
