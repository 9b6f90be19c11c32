//! A torture's report in its three forms.

use crate::Style;
use crate::torture::{Report, dry_run, explain, json, junit, list, text};
use serde_json::Value;
use std::collections::BTreeMap;
use torture::case::Case;
use torture::catalogue;
use torture::judge::{Judgement, Outcome, Plain};
use torture::safety::Class;
use torture::session::{CaseResult, ExchangeResult, Habits, RunResult, Target};
use torture::text::Values;
use units::Nanos;

fn case(id: &str) -> Case {
    catalogue::cases().unwrap().into_iter().find(|case| case.id == id).unwrap()
}

fn result(id: &str, outcome: Outcome) -> CaseResult {
    CaseResult { outcome, ..CaseResult::of(&case(id)) }
}

fn exchange(name: &str, outcome: Outcome, sent: &[u8]) -> ExchangeResult {
    ExchangeResult {
        name: name.into(),
        judgement: Judgement {
            outcome,
            seen: "200, the connection stands".into(),
            expected: "400".into(),
            why: "the text demands otherwise".into(),
        },
        tries: 3,
        failed: 2,
        sent: sent.to_vec(),
        received: b"HTTP/1.1 200 OK\r\n\x1b[2J".to_vec(),
        took: Nanos::from_millis(3),
    }
}

fn mixed() -> Report {
    let mut failed = result("S-07", Outcome::Fail);
    let request = b"GET /'\x00 HTTP/1.1\r\nHost : h\r\n\r\n";
    failed.exchanges.push(exchange("space", Outcome::Fail, request));
    failed.recovery = Some(Some(Nanos::from_millis(1_200)));
    let mut skipped = result("S-30", Outcome::Skipped);
    skipped.skipped = Some("no page that takes bodies is named (--post PATH)".into());
    let mut random = result("F-01", Outcome::Flaky);
    random.tally = BTreeMap::from([("200".into(), 900), ("414".into(), 100)]);
    random.exchanges.push(exchange("number 42, seed 1", Outcome::Flaky, &[b'a'; 3_000]));
    let cases = vec![random, failed, skipped, result("S-01", Outcome::Pass)];
    Report {
        target: "http://127.0.0.1:8080/".into(),
        addresses: vec!["127.0.0.1".parse().unwrap()],
        class: Class::Local,
        started_unix_s: 1_790_000_000.0,
        result: RunResult {
            plain: Plain { status: 200, body_len: 13, digest: None },
            habits: Habits { seen: vec![("a line of junk", "400, closed".into())] },
            cases,
            took: Nanos::from_millis(2_500),
            ..RunResult::default()
        },
    }
}

fn lost() -> Report {
    let mut report = mixed();
    report.result.cases[1].recovery = Some(None);
    report.result.ended_early = Some("no plain request was answered as before".into());
    report.result.interrupted = true;
    report.result.post_trouble = Some("405, the connection stands".into());
    report
}

#[test]
fn the_text_says_what_was_found() {
    let style = Style { unicode: true, ..Style::default() };
    insta::assert_snapshot!("torture_text", text(&mixed(), style));
    let quiet = text(&mixed(), Style { quiet: true, ..style });
    assert!(quiet.contains("S-07 fail") && !quiet.contains("Habits"), "{quiet}");
    assert!(text(&mixed(), Style::default()).is_ascii());
    let lost = text(&lost(), style);
    for said in ["It ended early: ", "; interrupted", "took no body: 405", "any more"] {
        assert!(lost.contains(said), "{said:?}: {lost}");
    }
}

#[test]
fn cases_are_listed_and_explained() {
    let (first, fuzz) = (case("S-50"), case("F-01"));
    insta::assert_snapshot!("torture_explain", explain(&first) + "\n" + &explain(&fuzz));
    let target = Target {
        peer: conduit_peer(),
        tls_name: None,
        values: Values { path: "/".into(), ..Values::default() },
        takes_bodies: false,
        fields: String::new(),
    };
    let said = dry_run(&mixed(), &target, &[first.clone(), fuzz.clone()]);
    insta::assert_snapshot!("torture_dry_run", said);
    assert_eq!(list(&[first]).lines().count(), 1);
}

fn conduit_peer() -> conduit::Peer {
    conduit::Peer::Unix("/nowhere".into())
}

#[test]
fn the_json_keeps_its_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/torture.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for report in [mixed(), lost()] {
        let document: Value = serde_json::from_str(&json(&report)).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert_eq!(errors, [""; 0]);
        for key in document.as_object().unwrap().keys() {
            assert!(schema["properties"].get(key).is_some(), "{key} is not described");
        }
    }
    let mut wrong: Value = serde_json::from_str(&json(&mixed())).unwrap();
    wrong["cases"][0]["outcome"] = "fine".into();
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn the_xml_is_well_formed_and_counts_right() {
    let text = junit(&lost());
    let document = roxmltree::Document::parse(&text).unwrap();
    let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).unwrap();
    let count = |name: &str| document.descendants().filter(|n| n.has_tag_name(name)).count();
    for (attribute, tag, expected) in
        [("tests", "testcase", 4), ("failures", "failure", 2), ("skipped", "skipped", 1)]
    {
        assert_eq!(suite.attribute(attribute).unwrap(), expected.to_string(), "{text}");
        assert_eq!(count(tag), expected, "{text}");
    }
}
