//! The JSON of runs against its published schema, and the schema against the design.

use super::curves::whole_ramp;
use super::fixtures::whole;
use super::rendered::{json, ramp_json};
use super::{fixtures, rendered};
use serde_json::Value;

fn repository(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../");
    std::fs::read_to_string(format!("{root}{path}")).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(&repository("docs/schema/run.schema.json")).unwrap()
}

/// Returns each error on a line; empty for a valid document.
fn errors(document: &Value) -> String {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    let lines = validator
        .iter_errors(document)
        .map(|error| format!("{} at {}", error, error.instance_path()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the JSON block in the design page, with figures of a histogram for its `{…}`.
fn least_set() -> Value {
    let design = repository("docs/design.md");
    let start = design.find("    {\"schema\": \"loadstone.run/1\"").unwrap();
    let end = start + design[start..].find("\n\n").unwrap();
    let times = r#"{"count":0,"mean":0.0,"p50":0.0,"p90":0.0,"p99":0.0,"p99.9":0.0,"max":0.0}"#;
    serde_json::from_str(&design[start..end].replace("{…}", times)).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn every_run_follows_the_schema() {
    let runs = [
        fixtures::valid(),
        fixtures::troubled(),
        fixtures::repeated(),
        fixtures::empty(),
        fixtures::extreme(),
        fixtures::over_http2(),
        fixtures::over_http3(),
        fixtures::of_journeys(),
    ];
    for run in runs {
        let document = serde_json::from_str(&json(&run)).unwrap();
        assert_eq!(errors(&document), "");
    }
}

#[test]
fn the_designs_least_set_is_required() {
    let schema = schema();
    let required = schema["required"].as_array().unwrap();
    for key in keys(&least_set()) {
        assert!(required.iter().any(|one| one == key), "{key}");
    }
}

/// The required names are present inside the objects too, in every run.
#[test]
fn every_run_has_the_least_set() {
    fn assert_has(value: &Value, least: &Value, path: &str) {
        let Some(least) = least.as_object().filter(|_| path != ".status") else { return };
        for (key, inner) in least {
            let found = value.get(key).unwrap_or_else(|| panic!("{path}.{key} is missing"));
            assert_has(found, inner, &format!("{path}.{key}"));
        }
    }
    for run in [fixtures::valid(), fixtures::troubled(), fixtures::empty()] {
        assert_has(&serde_json::from_str(&json(&run)).unwrap(), &least_set(), "");
    }
}

/// The schema describes every key that a run writes.
#[test]
fn every_key_is_described() {
    let schema = schema();
    for run in [fixtures::valid(), fixtures::troubled(), fixtures::repeated()] {
        let document: Value = serde_json::from_str(&json(&run)).unwrap();
        for key in keys(&document) {
            assert!(schema["properties"].get(key).is_some(), "{key}");
        }
    }
}

#[test]
fn the_schema_refuses_invalid_records() {
    let mut document: Value = serde_json::from_str(&json(&fixtures::valid())).unwrap();
    document["verdict"]["state"] = "FINE".into();
    document["outcomes"]["due"] = Value::from(-1);
    document.as_object_mut().unwrap().remove("tcp");
    let errors = errors(&document);
    for wrong in ["FINE", "minimum", "tcp"] {
        assert!(errors.contains(wrong), "{errors}");
    }
}

/// The published form is the record: reading it back returns the same bytes.
#[test]
fn a_run_reads_back_as_it_was_written() {
    let runs = [
        fixtures::valid(),
        fixtures::troubled(),
        fixtures::repeated(),
        fixtures::empty(),
        fixtures::extreme(),
    ];
    for run in runs.map(whole) {
        let written = json(&run);
        let record = record::run::read(&written).unwrap();
        assert_eq!(record::document::printed(&record), written);
    }
}

#[test]
fn ramps_and_comparisons_read_back_as_they_were_written() {
    for labels in [&["one"][..], &["one", "two"]] {
        let written = ramp_json(&whole_ramp(labels));
        let record = record::ramp::read(&written).unwrap();
        assert_eq!(record::document::printed(&record), written);
    }
    for comparison in [rendered::session(0.9, 1.1, &["p99 +5%"]), rendered::single()] {
        let written = crate::compare::json(&comparison);
        let record = record::compare::read(&written).unwrap();
        assert_eq!(record::document::printed(&record), written);
    }
}
