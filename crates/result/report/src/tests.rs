//! Outputs of synthetic runs: data in, text out.

mod across;
mod check;
mod compare;
mod curves;
mod fixtures;
mod formats;
mod gate;
mod markdown;
mod page;
mod ramp;
mod read_back;
mod rendered;
mod schema;
mod screen;
mod sessions;
mod survey;
mod torture;
mod torture_again;
mod torture_chain;
mod torture_diff;
mod tortures;
mod watching;

use serde_json::Value;

/// Returns a published schema by its name: `run`, `torture`.
fn schema_of(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/schema");
    let text = std::fs::read_to_string(format!("{folder}/{name}.schema.json"));
    serde_json::from_str(&text.expect("the schema is there")).expect("the schema is JSON")
}

fn validator_of(name: &str) -> jsonschema::Validator {
    let others = jsonschema::Registry::new().add("urn:loadstone:run:1", schema_of("run"));
    let others = others.expect("the schema is one").prepare().expect("it stands alone");
    let options = jsonschema::options().with_registry(&others);
    options.build(&schema_of(name)).expect("the schema is one")
}

/// Checks that the document is valid, and that the schema describes each of its keys.
#[track_caller]
fn fits_its_schema(name: &str, document: &str) {
    let document: Value = serde_json::from_str(document).expect("the document is JSON");
    let errors: Vec<String> = validator_of(name)
        .iter_errors(&document)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    assert_eq!(errors, [""; 0]);
    let schema = schema_of(name);
    for key in document.as_object().expect("the document is an object").keys() {
        assert!(schema["properties"].get(key).is_some(), "{key} is not described");
    }
}
