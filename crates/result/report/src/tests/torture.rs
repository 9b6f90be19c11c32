//! A torture report in its formats.

use super::tortures::{case, lost, mixed, pressed, report_with_load, watched};
use super::{fits_its_schema, validator_of};
use crate::Style;
use crate::torture::{DryRun, Report, dry_run, explain, json, junit, list, text};
use campaign::{Settings, TestTarget};
use dialogue::text::Values;
use record::torture::read;
use serde_json::Value;
use torture::judge::{FailureKind, Severity, TestOutcome};
use torture::result::{CaseResult, ExchangeResult};
use torture::safety::Class;
use units::Nanos;

#[test]
fn the_text_lists_the_findings() {
    let style = Style { unicode: true, ..Style::default() };
    insta::assert_snapshot!("torture_text", text(&mixed().record(), style));
    let quiet = text(&mixed().record(), Style { quiet: true, ..style });
    assert!(quiet.contains("S-07 fail") && !quiet.contains("Habits"), "{quiet}");
    assert!(text(&mixed().record(), Style::default()).is_ascii());
    let painted = text(&mixed().record(), Style { color: true, ..style });
    assert!(painted.contains("\nS-07 \u{1b}[1;31mfail\u{1b}[0m (high) "), "{painted}");
    insta::assert_snapshot!("torture_text_of_pressure", text(&pressed().record(), style));
    let lost = text(&lost().record(), style);
    for found in
        ["It ended early: ", "; interrupted", "did not accept a body: 405", "no longer get"]
    {
        assert!(lost.contains(found), "{found:?}: {lost}");
    }
}

/// An interrupted round leaves the recovery unknown, which is not "never".
#[test]
fn an_unobserved_recovery_is_unknown() {
    let mut report = pressed();
    let felt = |one: &&mut CaseResult| one.case.id == "W-10";
    let case = report.result.cases.iter_mut().find(felt).unwrap();
    let health = case.health.as_mut().unwrap();
    (health.cut_short, health.recovery) = (true, None);
    let style = Style { unicode: true, ..Style::default() };
    let found = text(&report.record(), style);
    let ended = "not known: the run, or the time of the case, ended first";
    let unwrapped = found.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains(ended) && !unwrapped.contains("recovery never"), "{found}");
    let whole = json(&report.record());
    fits_its_schema("torture", &whole);
    let read_back = read(&whole).unwrap();
    assert_eq!(text(&read_back, style), found);
    let document: Value = serde_json::from_str(&whole).unwrap();
    let cases = document["cases"].as_array().unwrap();
    let case = cases.iter().find(|one| one["id"] == "W-10").unwrap();
    assert!(case["health"]["recovery_s"].is_null(), "{case}");
}

#[test]
fn the_background_load_is_reported() {
    let style = Style { unicode: true, ..Style::default() };
    let whole = text(&report_with_load().record(), style);
    let start = whole.find("Background load").unwrap();
    let end = whole.find("Responses to random data").unwrap();
    insta::assert_snapshot!("torture_text_of_good_users", &whole[start..end]);
    assert!(!text(&mixed().record(), style).contains("Background load"));
    let page = crate::torture::html(&report_with_load().record());
    assert!(page.contains("Background load") && page.contains("Too many"), "{page}");
    let document = read(&json(&report_with_load().record())).unwrap();
    let beside = document.beside.unwrap();
    assert_eq!(beside.run.schema, "loadstone.run/1");
    assert_eq!(
        beside.cases.iter().map(|case| case.felt).collect::<Vec<_>>(),
        [true, false, true, false]
    );
}

#[test]
fn the_markdown_lists_findings_and_limits() {
    insta::assert_snapshot!("torture_markdown", crate::torture::markdown(&pressed().record()));
    let lost = crate::torture::markdown(&lost().record());
    assert!(lost.contains("It ended early: no plain request got"), "{lost}");
    let mut passed = mixed();
    passed.result.cases.retain(|case| case.case.id == "S-01");
    assert!(crate::torture::markdown(&passed.record()).starts_with("### ✅ No finding in 1 case"));
    passed.result.interrupted = true;
    assert!(crate::torture::markdown(&passed.record()).starts_with("### ⚠️ No finding in 1 case"));
    passed.result.cases.clear();
    assert!(crate::torture::markdown(&passed.record()).starts_with("### ⚠️ Nothing was tested"));
}

#[test]
fn the_state_of_the_server_is_reported() {
    let style = Style { unicode: true, ..Style::default() };
    let whole = text(&watched().record(), style);
    let start = whole.find("The server during the torture").unwrap();
    let end = whole.find("Limits and deadlines").unwrap();
    insta::assert_snapshot!("torture_text_of_the_server", &whole[start..end]);
    assert!(!text(&pressed().record(), style).contains("The server during the torture"));
    let page = crate::torture::html(&watched().record());
    for found in ["The server during the torture", "Memory of the server, in MiB", "exit code 3"] {
        assert!(page.contains(found), "{found}");
    }
    let document = read(&json(&watched().record())).unwrap();
    let case = document.cases.iter().find(|case| case.id == "W-10").unwrap();
    let deaths = &case.server.as_ref().unwrap().deaths;
    assert_eq!(
        (deaths.len(), deaths[0].how.to_string()),
        (3, "signal 11 (SIGSEGV), core dumped".to_owned())
    );
}

#[test]
fn cases_are_listed_and_explained() {
    let (first, fuzz) = (case("S-50"), case("F-01"));
    insta::assert_snapshot!("torture_explain", explain(&first) + "\n" + &explain(&fuzz));
    // the needs of an exchange are listed below it, in addition to those of the case
    let needs = |id: &str| explain(&case(id)).matches("needs").count();
    let bodies = case("B-11");
    let of_exchanges = bodies.exchanges.iter().map(|one| one.needs.len()).sum::<usize>();
    assert_eq!((needs("B-11"), of_exchanges), (bodies.needs.len() + of_exchanges, 2));
    let target = TestTarget {
        peer: conduit_peer(),
        tls_name: None,
        protocol: Default::default(),
        values: Values { path: "/".into(), ..Values::default() },
        takes_bodies: false,
        fields: String::new(),
        secrets: Vec::new(),
    };
    let settings =
        Settings { seed: 1, executions_max: 50, baseline: Nanos::SECOND, ..Settings::default() };
    let bounds = Class::Public.usual();
    let barred = Some("the proof does not name group limits".to_owned());
    let cases = [(first.clone(), None), (fuzz.clone(), None), (case("F-02"), barred)];
    let plan = DryRun {
        report: &mixed(),
        target: &target,
        settings: &settings,
        bounds: &bounds,
        cases: &cases,
        wanting: Some("a proof"),
    };
    insta::assert_snapshot!("torture_dry_run", dry_run(&plan));
    assert_eq!(list(&[first]).lines().count(), 1);
}

fn conduit_peer() -> conduit::Peer {
    conduit::Peer::Unix("/nowhere".into())
}

#[test]
fn the_json_follows_its_schema() {
    for report in [mixed(), lost(), pressed(), report_with_load(), watched()] {
        fits_its_schema("torture", &json(&report.record()));
    }
    let validator = validator_of("torture");
    let mut wrong: Value = serde_json::from_str(&json(&mixed().record())).unwrap();
    wrong["cases"][0]["outcome"] = "fine".into();
    assert!(!validator.is_valid(&wrong));
}

/// Returns a report with four exchanges that fail in one way and one in another, and a second case
/// that fails in the first way.
fn repetitive() -> Report {
    let mut report = mixed();
    let like = |name: &str, sent: &str| {
        let mut one: ExchangeResult = report.result.cases[1].exchanges[0].clone();
        one.name = name.into();
        one.sent = sent.as_bytes().to_vec();
        one.judgement.kind = Some(FailureKind::Status(500));
        one.judgement.outcome = TestOutcome::Fail;
        one.judgement.seen = "500, closed".into();
        one
    };
    let exchanges = vec![like("a", "GET /long"), like("b", "G"), like("c", "GET"), like("d", "GE")];
    let mut other = like("e", "GET /e");
    other.judgement.seen = "502, closed".into();
    let fails = |id: &str, exchanges: Vec<ExchangeResult>| CaseResult {
        outcome: TestOutcome::Fail,
        exchanges,
        ..CaseResult::new(&case(id))
    };
    let second = fails("F-02", vec![like("f", "GET /f")]);
    let first = fails("F-01", [exchanges, vec![other]].concat());
    report.result.cases = vec![first, second];
    report
}

#[test]
fn similar_failures_share_one_block_with_the_shortest_example() {
    let style = Style { unicode: true, quiet: true, ..Style::default() };
    let shown = text(&repetitive().record(), style);
    let blocks = shown.lines().filter(|line| line.starts_with("    sent "));
    let sent: Vec<&str> = blocks.map(|line| &line[14..]).collect();
    assert_eq!(sent, ["G", "GET /e"], "{shown}");
    assert!(shown.contains("    alike     3: a, c, d\n"), "{shown}");
    assert!(shown.contains("\n  1 exchange with the same result as in F-01: f\n"), "{shown}");
    assert!(shown.contains("2 findings in 2 cases (2 low): 2 failed"), "{shown}");
}

#[test]
fn junit_fails_for_severe_findings_only() {
    for (fail_on, failures) in [(Severity::Low, 2), (Severity::Medium, 0)] {
        let xml = junit(&Report { fail_on, ..repetitive() }.record());
        let document = roxmltree::Document::parse(&xml).unwrap();
        let count = |tag: &str| document.descendants().filter(|one| one.has_tag_name(tag)).count();
        assert_eq!((count("failure"), count("system-out")), (failures, 2 - failures), "{xml}");
    }
    let mut nothing = mixed();
    nothing.result.cases.clear();
    nothing.result.ended_early = Some("no response to a plain request".into());
    let xml = junit(&nothing.record());
    assert!(xml.contains("tests=\"1\" failures=\"0\" errors=\"1\""), "{xml}");
    assert!(xml.contains("<error message=\"no response to a plain request\"/>"), "{xml}");
}

#[test]
fn the_xml_is_well_formed_and_its_counts_are_correct() {
    let all = Report { fail_on: Severity::Low, ..lost() };
    let text = junit(&all.record());
    let document = roxmltree::Document::parse(&text).unwrap();
    let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).unwrap();
    let count = |name: &str| document.descendants().filter(|n| n.has_tag_name(name)).count();
    // four cases, and that the run ended early
    for (attribute, tag, expected) in [
        ("tests", "testcase", 5),
        ("failures", "failure", 2),
        ("errors", "error", 1),
        ("skipped", "skipped", 1),
    ] {
        assert_eq!(suite.attribute(attribute).unwrap(), expected.to_string(), "{text}");
        assert_eq!(count(tag), expected, "{text}");
    }
}

/// The written document is parsed, and written again identically.
#[test]
fn the_json_is_parsed_back() {
    for report in [mixed(), lost(), pressed(), report_with_load(), watched()] {
        let written = json(&report.record());
        let again = serde_json::to_string_pretty(&read(&written).unwrap()).unwrap();
        assert_eq!(again + "\n", written);
        assert_eq!(read(&written).unwrap(), report.record());
    }
    for (text, found) in [
        ("{\"schema\": \"loadstone.run/1\"}", "is \"loadstone.run/1\", not loadstone.torture/1"),
        ("{}", "names no schema"),
        ("[1]", "names no schema"),
        ("{\"schema\": \"loadstone.tor", "is damaged or not JSON: "),
        (
            "{\"schema\": \"loadstone.torture/1\"}",
            "is not a valid loadstone.torture/1: missing field",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(found), "{text}: {error}");
    }
    let wrong = json(&mixed().record()).replace("\"outcome\": \"flaky\"", "\"outcome\": \"fine\"");
    assert!(read(&wrong).unwrap_err().contains("\"fine\" is not an outcome at line"));
}

/// A result must not look complete if there was no time for some cases.
#[test]
fn cases_without_time_are_named_in_every_form() {
    let mut report = mixed();
    report.result.cases.retain(|case| !case.outcome.is_finding());
    report.result.cases[0].out_of_time = true;
    let record = report.record();
    assert_eq!((record.out_of_time, record.is_cut()), (1, true));
    let why = "Incomplete: the time for all cases ended before 1 of 2 cases was complete";
    let whole = text(&record, Style::default()).replace('\n', " ");
    assert!(whole.contains(why), "{whole}");
    let xml = junit(&record);
    assert!(xml.contains("name=\"all cases are tested\"") && xml.contains(why), "{xml}");
    report.result.cases[0].out_of_time = false;
    let record = report.record();
    assert_eq!((record.is_cut(), record.incomplete()), (false, None));
    assert!(!junit(&record).contains("all cases are tested"));
    // nor if it ended before all cases, which has exit code 4 too
    report.result.ended_early = Some("the memory of the server grows".to_owned());
    let xml = junit(&report.record());
    let why = "<error message=\"the run ended early: the memory of the server grows\"/>";
    assert!(xml.contains("name=\"all cases are tested\"") && xml.contains(why), "{xml}");
    (report.result.ended_early, report.result.interrupted) = (None, true);
    assert!(junit(&report.record()).contains("<error message=\"the run was interrupted\"/>"));
}
