//! A ramp as text, JSON and CSV.

use super::curves::ramp;
use super::rendered::{ramp_html, ramp_json as json, ramp_text as text};
use crate::Style;
use crate::ramp::{Purpose, RampRecord, RampReport, csv};
use sample::FailureClass;
use serde_json::Value;
use stats::curve::{CapacityEnd, Curve, OverloadShape, Span};
use stats::{CauseId, State};

const PLAIN: Style =
    Style { unicode: true, color: false, quiet: false, percentiles: false, full: true, columns: 0 };

fn repository(path: &str) -> Value {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../");
    serde_json::from_str(&std::fs::read_to_string(format!("{root}{path}")).unwrap()).unwrap()
}

fn errors(document: &Value) -> String {
    let registry = jsonschema::Registry::new()
        .add("urn:loadstone:run:1", repository("docs/schema/run.schema.json"))
        .unwrap()
        .prepare()
        .unwrap();
    let schema = repository("docs/schema/ramp.schema.json");
    let validator = jsonschema::options().with_registry(&registry).build(&schema).unwrap();
    let lines = validator
        .iter_errors(document)
        .map(|error| format!("{} at {}", error, error.instance_path()));
    lines.collect::<Vec<_>>().join("\n")
}

fn document(report: &RampReport) -> Value {
    serde_json::from_str(&json(report)).unwrap()
}

fn published(ramp: &RampRecord) -> Value {
    serde_json::from_str(&crate::ramp::json(ramp)).unwrap()
}

fn answer(report: &RampReport, row: usize) -> Vec<(&'static str, String)> {
    crate::ramp::answer(&RampRecord::new(report), row)
}

fn missed(report: &RampReport) -> bool {
    crate::ramp::missed(&RampRecord::new(report))
}

/// Returns a ramp without any measurement.
fn ramp_without_measurement() -> RampRecord {
    let mut report = ramp(&["http://127.0.0.1:2020/work"]);
    report.steps.retain(|step| step.point.client_limited);
    report.curves = vec![Curve::default()];
    RampRecord::new(&report).with_verdict(&[], false)
}

#[test]
fn a_ramp_of_one_server_is_shown() {
    insta::assert_snapshot!(text(&ramp(&["http://127.0.0.1:2020/work"]), PLAIN));
}

#[test]
fn two_servers_in_plain_ascii() {
    let style = Style { unicode: false, ..PLAIN };
    insta::assert_snapshot!(text(&ramp(&["prefork", "cgi"]), style));
}

/// Long figures leave room for names that differ only in the middle.
#[test]
fn servers_side_by_side_are_distinguishable() {
    let labels = ["http://127.0.0.1:2020/prefork/work", "http://127.0.0.1:2020/threads/work"];
    let mut report = ramp(&labels);
    report.axis = stats::curve::Axis::Population;
    for curve in &mut report.curves {
        let span = |at: f64| Span { at, low: at, high: f64::INFINITY };
        curve.peak = Some(Span { at: 98_765.4, low: 98_000.0, high: 99_000.0 });
        curve.knee.as_mut().unwrap().at = span(12_345.0);
        let capacity = curve.capacity.as_mut().unwrap();
        (capacity.how, capacity.at) = (CapacityEnd::NeverMissed, span(12_345.0));
        (curve.overload.shape, curve.overload.kept_share) = (OverloadShape::Collapse, 0.512);
        curve.overload.recovery_s = f64::INFINITY;
    }
    let shown = text(&report, PLAIN);
    let rows: Vec<&str> =
        shown.lines().skip_while(|line| *line != "Side by side").skip(1).take(3).collect();
    assert!(rows.iter().all(|row| row.chars().count() <= 80), "{shown}");
    let figures = "98,765/s  12,345 users  > 12,345 users  51.2 %  not seen";
    let names: Vec<&str> = rows[1..].iter().filter_map(|row| row.strip_suffix(figures)).collect();
    assert_eq!(names.len(), 2, "{shown}");
    assert_ne!(names[0], names[1], "{shown}");
    let page = ramp_html(&report);
    assert!(page.contains("at least 12,345 users") && page.contains("collapse, 51.2 % kept"));
}

#[test]
fn quiet_is_verdict_and_answer() {
    let style = Style { quiet: true, ..PLAIN };
    insta::assert_snapshot!(text(&ramp(&["http://127.0.0.1:2020/work"]), style));
}

/// No lower step was run.
#[test]
fn a_knee_without_a_lower_end_is_noted() {
    let mut report = ramp(&["http://127.0.0.1:2020/work"]);
    report.steps.retain(|step| step.point.level >= 500.0);
    let points: Vec<(Purpose, stats::curve::Point)> =
        report.steps.iter().map(|step| (step.purpose, step.point)).collect();
    report.curves = vec![stats::curve::curve(&points, report.axis, &[])];
    let message = "(at most 600/s; lower values were not measured)";
    let note = "The knee may lie anywhere below 500";
    let text = text(&report, PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(message) && text.contains(note), "{text}");
    let page = ramp_html(&report);
    assert!(page.contains("at most 600/s; lower values were not measured"), "{page}");
    assert!(page.contains(note) && !page.contains("0/s to 600/s"), "{page}");
    let document = document(&report);
    assert_eq!(errors(&document), "");
    assert!(document["knee"]["low"].is_null(), "{}", document["knee"]);
    assert!(document["knee"]["offered_per_s"].is_number(), "{}", document["knee"]);
}

/// Too few usable steps: no figure, and INVALID.
#[test]
fn too_few_usable_steps_give_no_result() {
    let mut report = ramp(&["http://127.0.0.1:2020/work"]);
    for step in report.steps.iter_mut().filter(|step| step.point.level < 500.0) {
        step.point.client_limited = true;
    }
    let points: Vec<(Purpose, stats::curve::Point)> =
        report.steps.iter().map(|step| (step.purpose, step.point)).collect();
    report.curves = vec![stats::curve::curve(&points, report.axis, &[])];
    let report = RampRecord::new(&report).with_verdict(&[], false);
    assert_eq!(report.verdict.causes[0].id, CauseId::UnusableSteps);
    let text = crate::ramp::text(&report, PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(" describe the server unusable-steps: 11 of 17 steps"), "{text}");
    assert!(text.contains("Knee unknown: 11 of 17 steps are unusable"), "{text}");
    assert!(!text.contains("Peak") && !text.contains("Overload  "), "{text}");
    assert_eq!(errors(&published(&report)), "");
}

#[test]
fn a_capacity_is_described_in_few_words() {
    let of = |axis, at, low, high| crate::ramp::capacity_description(axis, &Span { at, low, high });
    let (rate, users) = (stats::curve::Axis::Rate, stats::curve::Axis::Population);
    assert_eq!(of(rate, 261.4, 240.0, 300.0), "261.4/s");
    assert_eq!(of(users, 64.0, 64.0, f64::INFINITY), "64 users or more");
    assert_eq!(of(rate, 0.0, 0.0, 10.0), "below 10/s");
    assert_eq!(of(users, 1.0, f64::NAN, f64::NAN), "1 user");
}

#[test]
fn no_line_is_wider_than_the_page() {
    let hostile =
        "\u{1b}[31m<script>alert(1)</script>\u{202e}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    let two = [ramp(&["one"]), ramp(&[hostile, "b"])].map(|report| RampRecord::new(&report));
    for report in two.into_iter().chain([ramp_without_measurement()]) {
        for unicode in [true, false] {
            let text = crate::ramp::text(&report, Style { unicode, ..PLAIN });
            for line in text.lines() {
                assert!(line.chars().count() <= crate::page::text::WIDTH, "{line}");
            }
            assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
            assert!(unicode || text.is_ascii());
        }
    }
}

#[test]
fn every_ramp_follows_the_schema() {
    for report in [ramp(&["one"]), ramp(&["one", "two"])] {
        assert_eq!(errors(&document(&report)), "");
    }
    assert_eq!(errors(&published(&ramp_without_measurement())), "");
}

#[test]
fn a_ramp_without_a_step_is_still_a_result() {
    let mut report = ramp(&["one"]);
    (report.steps, report.curves) = (Vec::new(), Vec::new());
    let report = RampRecord::new(&report).with_verdict(&["connection refused"], false);
    assert_eq!(errors(&published(&report)), "");
    let shown = crate::ramp::text(&report, PLAIN);
    assert!(
        shown.starts_with("Measurement   INVALID: the numbers do not describe the server\n              all-failed: connection refused"),
        "{shown}"
    );
    assert!(shown.contains("Steps         none was run"), "{shown}");
    assert_eq!(csv(&report).lines().count(), 1);
}

#[test]
fn the_schema_refuses_invalid_records() {
    let mut wrong = document(&ramp(&["one"]));
    wrong["overload"]["shape"] = "round".into();
    wrong["steps"][0]["outcomes"]["due"] = Value::from(-1);
    wrong.as_object_mut().unwrap().remove("curves");
    let errors = errors(&wrong);
    for part in ["round", "minimum", "curves"] {
        assert!(errors.contains(part), "{errors}");
    }
}

#[test]
fn the_csv_has_a_row_per_step() {
    let report = ramp(&["say \"hi\", twice", "b"]);
    let csv = csv(&RampRecord::new(&report));
    let mut lines = csv.lines();
    let columns = lines.next().unwrap().split(',').count();
    assert_eq!(lines.clone().count(), report.steps.len());
    let second = lines.clone().last().unwrap();
    assert_eq!(second.split(',').count(), columns, "{second}");
    let first = lines.next().unwrap();
    assert!(first.starts_with("1,\"say \"\"hi\"\", twice\",up,100,0,0.25,2,"), "{first}");
}

#[test]
fn client_limited_points_are_marked_and_noted() {
    let shown = text(&ramp(&["one"]), PLAIN);
    let marked: Vec<&str> = shown.lines().filter(|line| line.starts_with("*  ")).collect();
    assert_eq!(marked.len(), 1, "{shown}");
    assert!(marked[0].contains("900"), "{marked:?}");
    assert!(shown.contains("not-offered: 90.0 % of the intended load was offered"), "{shown}");
}

#[test]
fn the_verdict_is_that_of_the_steps_that_were_used() {
    let report = ramp(&["one"]);
    let of = |report: &RampReport, died: &[&str], interrupted| {
        RampRecord::new(report).with_verdict(died, interrupted).verdict
    };
    // one step was beyond the client
    let found = of(&report, &[], false);
    assert_eq!((found.state, found.causes.len()), (State::Degraded, 1));
    assert!(found.causes[0].text.starts_with("1 of 19 steps are unusable; "), "{found:?}");
    let mut usable = report.clone();
    usable.steps.retain(|step| !step.point.client_limited);
    assert_eq!(of(&usable, &[], false).state, State::Valid);
    let died = of(&report, &["it died at step 7 of 20: connection refused"], false);
    assert_eq!((died.state, died.causes[0].id), (State::Invalid, CauseId::AllFailed));
    let interrupted = of(&report, &[], true);
    assert_eq!(
        (interrupted.state, interrupted.causes[0].id),
        (State::Degraded, CauseId::Interrupted)
    );
    let barren = ramp_without_measurement();
    assert_eq!(barren.verdict.state, State::Invalid);
    assert_eq!(barren.verdict.causes[0].id, CauseId::NotOffered);
}

#[test]
fn causes_are_listed_once_with_the_number_of_steps() {
    let mut report = ramp(&["one"]);
    let cause = |id, figure: f64| stats::Cause {
        id,
        figure,
        text: format!("figure {figure}"),
        advice: "Wait.".to_owned(),
    };
    for (index, step) in report.steps.iter_mut().enumerate().take(4) {
        step.run.verdict.causes = vec![cause(CauseId::ForeignCpu, index as f64)];
    }
    let past_the_knee = report.steps.iter_mut().find(|step| step.point.level > 700.0).unwrap();
    past_the_knee.run.verdict.causes = vec![cause(CauseId::Drift, 1.0)];
    report.steps.retain(|step| !step.point.client_limited);
    let judged = |report: &_| RampRecord::new(report).with_verdict(&[], false).verdict;
    assert_eq!(judged(&report).state, State::Valid, "causes of VALID steps are notes");
    report.steps[0].run.verdict.state = State::Degraded;
    let found = judged(&report);
    assert_eq!(found.state, State::Degraded);
    assert_eq!(found.causes.len(), 1, "{found:?}");
    let usable = report.steps.len();
    assert_eq!(found.causes[0].text, format!("in 4 of {usable} steps, at worst: figure 3"));
}

#[test]
fn an_objective_is_missed_only_above_measured_loads() {
    let mut report = ramp(&["one"]);
    assert!(!missed(&report));
    let capacity = report.curves[0].capacity.as_mut().unwrap();
    capacity.how = CapacityEnd::NeverMet;
    capacity.at = Span { at: 0.0, low: 0.0, high: 200.0 };
    assert!(missed(&report));
    assert!(answer(&report, 0)[0].1.starts_with("none. Even the lowest tested load, "));
    report.steps[0].point.client_limited = true;
    assert!(!missed(&report));
    assert!(answer(&report, 0)[0].1.contains("No lower step is usable"));
}

#[test]
fn a_missing_recovery_is_reported() {
    let mut report = ramp(&["one"]);
    let describe = |report: &RampReport| {
        let found = answer(report, 0).into_iter().find(|(name, _)| *name == "Recovery");
        found.map(|(_, text)| text)
    };
    assert!(describe(&report).unwrap().starts_with("1.25 s after"));
    report.curves[0].overload.recovery_s = f64::INFINITY;
    assert!(describe(&report).unwrap().contains("did not respond as before"));
    assert_eq!(document(&report)["overload"]["recovered"], false);
    report.curves[0].overload.recovery_s = f64::NAN;
    assert_eq!(describe(&report), None);
    assert_eq!(document(&report)["overload"]["recovered"], Value::Null);
}

#[test]
fn steps_are_grouped_by_purpose() {
    let report = document(&ramp(&["one"]));
    let purposes = report["steps"].as_array().unwrap().iter();
    let up = purposes.clone().filter(|step| step["purpose"] == Purpose::Up.id()).count();
    assert_eq!(up, 16);
    assert_eq!(purposes.last().unwrap()["purpose"], Purpose::Down.id());
}

#[test]
fn a_server_that_fails_at_the_lowest_load_is_reported() {
    let mut report = ramp(&["one"]);
    for step in &mut report.steps {
        let total = &mut step.run.measurement.total;
        let failed = total.counts.succeeded / 2;
        total.counts.succeeded -= failed;
        total.counts.failed += failed;
        total.failures.insert(FailureClass::Status, failed);
        total.status.add_n(500, failed);
        step.point.failure_share = 0.5;
    }
    let found = answer(&report, 0);
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["Server", "Knee"]);
    assert!(found[0].1.starts_with("failing: 50.0 % of 200 calls (100 answered 500)"), "{found:?}");
    assert!(found[0].1.ends_with(", at 100/s."), "{found:?}");
    assert!(RampRecord::new(&report).fails());
    assert!(!RampRecord::new(&ramp(&["one"])).fails());
}
