//! Results of checks, as text, JSON and XML.

use super::{fits_its_schema, validator_of};
use crate::Style;
use crate::check::{json, junit, text};
use crate::page::text::WIDTH;
use plan::check::{CheckResult, Difference, State, StepResult};
use record::check::CheckRecord;
use serde_json::Value;
use units::Nanos;

const PLAIN: Style =
    Style { unicode: true, color: false, quiet: false, percentiles: false, full: true, columns: 0 };

fn step(name: &str, millis: u64, state: State) -> StepResult {
    StepResult {
        name: name.to_owned(),
        line: 12,
        state,
        took: Nanos::from_millis(millis),
        asked: "GET http://127.0.0.1:2020/hw".to_owned(),
        status: Some(200),
        members: Vec::new(),
    }
}

fn wrong(what: &str, expected: &str, got: &str) -> State {
    State::Failed(Difference::new(what, expected, got))
}

pub(super) fn mixed() -> CheckRecord {
    CheckRecord::new(&mixed_result())
}

fn mixed_result() -> CheckResult {
    let mut group = step("two sleeps", 2_001, wrong("time", "at least 2.00 s", "1.00 s"));
    group.asked = String::new();
    group.members = vec![
        step("one", 1_000, State::Passed),
        step("the other", 1_001, State::Skipped("not met, as some may: outcome closed".into())),
    ];
    let long = "a name that is much longer than the line that it must fit on, and then some more";
    let body = wrong("body at byte 7", "\"hello <world>\"", "\"hello & \\u{1b}[31m\"");
    CheckResult {
        name: "The norm site".to_owned(),
        base: "http://127.0.0.1:2020/".to_owned(),
        started_unix_s: 1_000_877_486.0,
        took: Nanos::from_millis(3_210),
        steps: vec![
            step("welcome", 3, State::Passed),
            step("hello \u{1b}[2Jworld", 1, body),
            group,
            step(long, 12, wrong("header Content-Type", &"x".repeat(200), "no such field")),
            step("tmp is empty", 0, State::Skipped("--root says where".into())),
        ],
        interrupted: false,
        unreachable: None,
    }
}

pub(super) fn unreachable() -> CheckRecord {
    let steps = vec![step("welcome", 0, wrong("connection", "one", "connection refused"))];
    let why = Some("127.0.0.1:1: connection refused".to_owned());
    CheckRecord::new(&CheckResult { steps, unreachable: why, interrupted: true, ..mixed_result() })
}

#[test]
fn a_tree_of_marks() {
    insta::assert_snapshot!(text(&mixed(), PLAIN));
}

#[test]
fn failures_are_printed_in_plain_ascii() {
    let shown = text(&mixed(), Style { unicode: false, quiet: true, ..PLAIN });
    assert!(shown.is_ascii(), "{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn a_missing_server_is_reported() {
    insta::assert_snapshot!(text(&unreachable(), PLAIN));
}

#[test]
fn no_line_exceeds_the_page_or_controls_the_terminal() {
    for result in [mixed(), unreachable()] {
        for style in [PLAIN, Style { quiet: true, ..PLAIN }, Style { unicode: false, ..PLAIN }] {
            for line in text(&result, style).lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
                assert!(!line.contains(char::is_control), "{line:?}");
            }
        }
    }
}

/// Bidirectional controls and invisible characters reach a terminal only as escapes.
#[test]
fn server_text_cannot_rewrite_a_line() {
    let (name, got) = ("a \u{202e}olleh", "x\u{2066}y\u{200b}z\u{feff}");
    let steps = vec![step(name, 1, wrong("body at byte 0", "hello", got))];
    let shown = text(&CheckRecord::new(&CheckResult { steps, ..mixed_result() }), PLAIN);
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    assert!(lines.iter().any(|line| line.starts_with("✗ a \\u{202e}olleh")), "{shown}");
    assert!(lines.contains(&"got       x\\u{2066}y\\u{200b}z\\u{feff}"), "{shown}");
    let (marked, tagged) = ("\u{61c}a", "b\u{e0000}\u{e0041}\u{e007f}c\u{e0100}");
    assert_eq!(crate::words::safe(marked), "\\u{61c}a");
    assert_eq!(crate::words::safe(tagged), "b\\u{e0000}\\u{e0041}\\u{e007f}c\u{e0100}");
}

#[test]
fn color_changes_only_marks() {
    let coloured = text(&mixed(), Style { color: true, ..PLAIN });
    assert!(coloured.contains("\u{1b}[32m✓\u{1b}[0m welcome"), "{coloured}");
    assert!(coloured.contains("\u{1b}[1;31m✗\u{1b}[0m hello"), "{coloured}");
    let mut bare = coloured;
    for code in ["\u{1b}[32m", "\u{1b}[1;31m", "\u{1b}[0m"] {
        bare = bare.replace(code, "");
    }
    assert_eq!(bare, text(&mixed(), PLAIN));
}

#[test]
fn the_json_follows_its_schema() {
    for result in [mixed(), unreachable(), CheckRecord::new(&CheckResult::default())] {
        fits_its_schema("check", &json(&result));
        assert_eq!(record::check::read(&json(&result)), Ok(result));
    }
    let validator = validator_of("check");
    let mut wrong: Value = serde_json::from_str(&json(&mixed())).unwrap();
    wrong["steps"][0]["state"] = "fine".into();
    assert!(!validator.is_valid(&wrong));
    wrong = serde_json::from_str(&json(&mixed())).unwrap();
    wrong.as_object_mut().unwrap().remove("counts");
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn the_xml_is_well_formed_and_counts_right() {
    insta::assert_snapshot!(junit(&mixed()));
    for result in [mixed(), unreachable(), CheckRecord::new(&CheckResult::default())] {
        let text = junit(&result);
        let document = roxmltree::Document::parse(&text).unwrap();
        let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).unwrap();
        let count = |name: &str| document.descendants().filter(|n| n.has_tag_name(name)).count();
        for (attribute, tag, expected) in [
            ("tests", "testcase", result.counts.steps),
            ("failures", "failure", result.counts.failed),
            ("skipped", "skipped", result.counts.skipped),
        ] {
            assert_eq!(suite.attribute(attribute).unwrap(), expected.to_string());
            assert_eq!(count(tag) as u64, expected);
        }
    }
    let document = junit(&mixed());
    let document = roxmltree::Document::parse(&document).unwrap();
    let case = document.descendants().filter(|node| node.has_tag_name("testcase")).nth(1).unwrap();
    // an escape character is invalid in XML
    assert_eq!(case.attribute("name").unwrap(), "hello \u{fffd}[2Jworld");
    let failure = case.first_element_child().unwrap();
    assert!(failure.text().unwrap().contains("expected \"hello <world>\""));
}
