//! The published schemas, made from the types of the records: a key, its type and its possible
//! names cannot differ from the written ones, because both come from the same type.

mod print;

use crate::{check, compare, fit, history, ramp, run, runs, survey, torture};
use ::torture::chain::{DisagreementClass, Handling, Meeting};
use ::torture::survey::Confidence;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Text for every record, after the sentence of its type.
const GENERAL: &str = "Times are in seconds, rates per second, shares 0 to 1; an unavailable \
    figure is null. Every key that this version always writes is required; later versions may add \
    keys.";

/// A schema as a file of `docs/schema`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// `run.schema.json`.
    pub file: String,
    /// JSON, indented, with a line feed at its end.
    pub text: String,
}

/// Returns every record's schema (JSON Schema, draft 2020-12). Those of a ramp and of a torture,
/// which contain whole runs, refer to the schema of a run; the others are self-contained.
pub fn published() -> Vec<Published> {
    let run = generate::<run::RunRecord>(run::SCHEMA);
    let mut ramp = generate::<ramp::RampRecord>(ramp::SCHEMA);
    let mut torture = generate::<torture::TortureRecord>(torture::SCHEMA);
    [&mut ramp, &mut torture].into_iter().for_each(|other| refer(other, &run));
    let others = [
        generate::<compare::CompareRecord>(compare::SCHEMA),
        generate::<check::CheckRecord>(check::SCHEMA),
        generate::<survey::SurveyRecord>(survey::SCHEMA),
        generate::<fit::FitRecord>(fit::SCHEMA),
        generate::<history::HistoryRecord>(history::SCHEMA),
        generate::<torture::chain::ChainRecord>(torture::chain::SCHEMA),
        generate::<torture::diff::DiffRecord>(torture::diff::SCHEMA),
        generate::<torture::rejudged::RejudgedRecord>(torture::rejudged::SCHEMA),
        generate::<torture::replay::ReplayRecord>(torture::replay::SCHEMA),
        generate::<runs::RunsRecord>(runs::SCHEMA),
    ];
    [run, ramp, torture].iter().chain(&others).map(file).collect()
}

/// Returns the schema of a record, with the name `name`, such as `loadstone.run/1`.
fn generate<T: JsonSchema>(name: &str) -> Value {
    // as written: keys that are always present are required
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut whole = settings.into_generator().into_root_schema_for::<T>().to_value();
    let of_type = whole["description"].as_str().unwrap_or_default().to_owned();
    whole["$id"] = json!(format!("urn:loadstone:{}:1", stem(name)));
    whole["title"] = json!(name);
    whole["description"] = json!(format!("{of_type} {GENERAL}"));
    whole["properties"]["schema"] = json!({ "const": name });
    plain(&mut whole);
    whole
}

/// Returns `run` for `loadstone.run/1`.
fn stem(name: &str) -> String {
    name.trim_start_matches("loadstone.").trim_end_matches("/1").to_owned()
}

fn file(schema: &Value) -> Published {
    let stem = stem(schema["title"].as_str().unwrap_or_default());
    Published { file: format!("{stem}.schema.json"), text: print::printed(schema) }
}

/// Replaces definitions that the run's schema has too by references to it.
fn refer(other: &mut Value, run: &Value) {
    let of_run = |name: &str, node: &Value| run["$defs"].get(name) == Some(node);
    let mut shared = Vec::new();
    if let Some(defs) = other["$defs"].as_object_mut() {
        shared.extend(
            defs.iter().filter(|(name, node)| of_run(name, node)).map(|(name, _)| name.clone()),
        );
        defs.retain(|name, _| !shared.contains(name));
        defs.values_mut().for_each(|node| refer_whole(node, run));
    }
    redirect(other, &shared);
}

/// Replaces the parts of a node that a run has too by a reference to the run, and keeps the
/// additions.
fn refer_whole(node: &mut Value, run: &Value) {
    let Some(of_run) = run["properties"].as_object() else { return };
    let names: Vec<&String> = of_run.keys().collect();
    let has_all = names.iter().all(|name| node["properties"].get(name.as_str()).is_some());
    if !has_all {
        return;
    }
    if let Some(properties) = node["properties"].as_object_mut() {
        properties.retain(|name, _| !of_run.contains_key(name));
    }
    if let Some(required) = node["required"].as_array_mut() {
        required.retain(|name| !name.as_str().is_some_and(|name| of_run.contains_key(name)));
    }
    node["$ref"] = json!("urn:loadstone:run:1");
}

fn redirect(node: &mut Value, shared: &[String]) {
    match node {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get_mut("$ref")
                && let Some(name) = reference.strip_prefix("#/$defs/")
                && shared.iter().any(|one| one == name)
            {
                *reference = format!("urn:loadstone:run:1{reference}");
            }
            map.values_mut().for_each(|inner| redirect(inner, shared));
        }
        Value::Array(list) => list.iter_mut().for_each(|inner| redirect(inner, shared)),
        _ => {}
    }
}

/// Removes details of Rust: the names of its number types, and line feeds of comments.
fn plain(node: &mut Value) {
    match node {
        Value::Object(map) => {
            map.retain(|key, inner| match key.as_str() {
                "format" => !inner.as_str().is_some_and(is_rust_format),
                // value for readers if an earlier version wrote nothing
                "default" => inner.is_object(),
                _ => true,
            });
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            map.values_mut().for_each(plain);
        }
        Value::Array(list) => list.iter_mut().for_each(plain),
        _ => {}
    }
}

fn is_rust_format(format: &str) -> bool {
    format.starts_with("uint") || format.starts_with("int") || matches!(format, "double" | "float")
}

/// Returns the schema of a text that is one of these names, or `null` if it may be missing. For
/// `schema_with`.
fn one_of(names: impl IntoIterator<Item = &'static str>) -> Schema {
    json_schema!({ "type": "string", "enum": names.into_iter().collect::<Vec<_>>() })
}

fn one_or_none(names: impl IntoIterator<Item = &'static str>) -> Schema {
    let names = names.into_iter().map(Value::from).chain([Value::Null]);
    json_schema!({ "type": ["string", "null"], "enum": names.collect::<Vec<_>>() })
}

pub(crate) fn finding(_: &mut SchemaGenerator) -> Schema {
    one_of(crate::finding_ids())
}

pub(crate) fn verified_against(_: &mut SchemaGenerator) -> Schema {
    one_of(run::VERIFIED_AGAINST)
}

pub(crate) fn stream_form(_: &mut SchemaGenerator) -> Schema {
    one_of(run::STREAM_FORMS)
}

pub(crate) fn token_count(_: &mut SchemaGenerator) -> Schema {
    one_of(run::TOKEN_COUNTS)
}

pub(crate) fn compared_figure(_: &mut SchemaGenerator) -> Schema {
    one_of(crate::figures::RUN_FIGURES.map(|(name, ..)| name))
}

pub(crate) fn software_confidence(_: &mut SchemaGenerator) -> Schema {
    one_of(Confidence::ALL.map(Confidence::id))
}

pub(crate) fn software_confidence_or_none(_: &mut SchemaGenerator) -> Schema {
    one_or_none(Confidence::ALL.map(Confidence::id))
}

pub(crate) fn disagreement(_: &mut SchemaGenerator) -> Schema {
    one_of(DisagreementClass::ALL.map(DisagreementClass::id))
}

pub(crate) fn handling(_: &mut SchemaGenerator) -> Schema {
    one_or_none(Handling::ALL.map(Handling::id))
}

pub(crate) fn meeting(_: &mut SchemaGenerator) -> Schema {
    one_or_none(Meeting::ALL.map(Meeting::id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_files_match_the_types() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/schema/");
        for Published { file, text } in published() {
            let kept = std::fs::read_to_string(format!("{folder}{file}")).unwrap_or_default();
            assert!(
                kept == text,
                "docs/schema/{file} is not what the types say: cargo xtask schema"
            );
        }
    }
}
