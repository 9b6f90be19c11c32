//! Values for schemas without an example: the simplest value that the schema accepts.

use super::{Description, FileValue, Object};
use serde_json::{Value, json};

/// Depth from which objects have only their required fields, and depth from which values are null.
const OPTIONAL_DEPTH_MAX: usize = 3;
const DEPTH_MAX: usize = 8;
/// Maximum length of a text, and maximum number of items, that a schema can demand.
const LENGTH_MAX: u64 = 1_000;
/// Maximum number of values in a request: schemas that refer to each other may demand any number.
const VALUES_MAX: usize = 10_000;

/// An example text for each format of OpenAPI and JSON Schema.
const FORMATS: [(&str, &str); 14] = [
    ("date", "2026-01-31"),
    ("date-time", "2026-01-31T12:00:00Z"),
    ("time", "12:00:00Z"),
    ("duration", "PT1S"),
    ("email", "user@example.com"),
    ("hostname", "example.com"),
    ("ipv4", "192.0.2.1"),
    ("ipv6", "2001:db8::1"),
    ("uri", "https://example.com/"),
    ("url", "https://example.com/"),
    ("uri-reference", "/a"),
    ("uuid", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"),
    ("byte", "dGV4dA=="),
    ("json-pointer", "/a"),
];

impl<'a> Description<'a> {
    /// Returns the example of a schema, or a value that it accepts.
    ///
    /// # Errors
    /// Fails if a reference has no target, or a request would have too many values.
    pub(super) fn made(&self, schema: FileValue<'a>, depth: usize) -> Result<Value, String> {
        self.count_made(1)?;
        let schema = self.resolved(schema)?;
        if let Some(example) = self.example(schema)?.or_else(|| schema.get("const")) {
            return Ok(example.value.clone());
        }
        if depth == DEPTH_MAX {
            return Ok(Value::Null);
        }
        for choice in ["oneOf", "anyOf"] {
            let first = schema.get(choice).and_then(|list| Some(list.at(list.value.get(0)?)));
            let is_object = schema.get("properties").is_some() || schema.get("allOf").is_some();
            if let Some(first) = first.filter(|_| !is_object) {
                return self.made(first, depth + 1);
            }
        }
        match kind_of(schema) {
            "object" => self.object(schema, depth).map(Value::Object),
            "array" => {
                let count = schema.value.get("minItems").and_then(Value::as_u64).unwrap_or(1);
                let count = count.clamp(1, LENGTH_MAX) as usize;
                let before = self.made.get();
                let item = match schema.get("items") {
                    Some(items) => self.made(items, depth + 1)?,
                    None => json!("text"),
                };
                self.count_made((self.made.get() - before).max(1) * (count - 1))?;
                Ok(Value::Array(vec![item; count]))
            }
            "integer" | "number" => Ok(number(schema.value)),
            "boolean" => Ok(Value::Bool(true)),
            "null" => Ok(Value::Null),
            _ => Ok(Value::String(text(schema.value))),
        }
    }

    /// Counts values that are made for the current request.
    pub(super) fn count_made(&self, more: usize) -> Result<(), String> {
        let made = self.made.get() + more;
        self.made.set(made);
        let why = || format!("its schemas demand more than {VALUES_MAX} values");
        (made <= VALUES_MAX).then_some(()).ok_or_else(why)
    }

    fn object(&self, schema: FileValue<'a>, depth: usize) -> Result<Object, String> {
        let mut fields = Object::new();
        // all parts of allOf, and the first choice of oneOf and anyOf
        for (list, count) in [("allOf", usize::MAX), ("oneOf", 1), ("anyOf", 1)] {
            let parts = schema.value.get(list).and_then(Value::as_array);
            for part in parts.into_iter().flatten().take(count) {
                if let Value::Object(more) = self.made(schema.at(part), depth + 1)? {
                    fields.extend(more);
                }
            }
        }
        let required = schema.value.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|it| it == name));
        let properties = schema.get("properties").and_then(|it| it.value.as_object());
        for (name, property) in properties.into_iter().flatten() {
            let property = self.resolved(schema.at(property))?;
            let is_read_only = property.value.get("readOnly") == Some(&Value::Bool(true));
            if is_read_only || (depth >= OPTIONAL_DEPTH_MAX && !is_required(name)) {
                continue;
            }
            fields.insert(name.clone(), self.made(property, depth + 1)?);
        }
        Ok(fields)
    }
}

/// Returns the type of a schema's values; from OpenAPI 3.1 on, a schema may list several.
fn kind_of(schema: FileValue<'_>) -> &str {
    let value = schema.value;
    match value.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if value.get("properties").is_some() || value.get("allOf").is_some() => "object",
        _ if value.get("items").is_some() => "array",
        _ => "string",
    }
}

/// Returns 1, or the nearest number within the bounds.
fn number(schema: &Value) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let is_exclusive = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let whole = schema.get("type").is_none_or(|kind| kind != "number");
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let gap = step.unwrap_or(if whole { 1.0 } else { 0.5 });
    let mut low = bound("minimum").unwrap_or(f64::MIN);
    low = low.max(bound("exclusiveMinimum").map_or(low, |bound| bound + gap));
    let mut high = bound("maximum").unwrap_or(f64::MAX);
    high = high.min(bound("exclusiveMaximum").map_or(high, |bound| bound - gap));
    low += if is_exclusive("exclusiveMinimum") { gap } else { 0.0 };
    high -= if is_exclusive("exclusiveMaximum") { gap } else { 0.0 };
    let mut value = 1.0_f64.min(high).max(low);
    if let Some(step) = step {
        let above = (value / step).ceil() * step;
        value = if above > high { (value / step).floor() * step } else { above };
    }
    let value = if whole { value.ceil() } else { value };
    match whole && value.abs() < 9e15 {
        true => json!(value as i64),
        false => json!(value),
    }
}

/// Returns a text within the length limits of the schema; it has the schema's format if that fits.
fn text(schema: &Value) -> String {
    let length = |name: &str| schema.get(name).and_then(Value::as_u64);
    let min = length("minLength").unwrap_or(0).min(LENGTH_MAX) as usize;
    let max = length("maxLength").unwrap_or(LENGTH_MAX).min(LENGTH_MAX) as usize;
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    let known = FORMATS.iter().find(|(name, _)| *name == format);
    if let Some((_, text)) = known.filter(|(_, text)| (min..=max).contains(&text.len())) {
        return (*text).to_owned();
    }
    let mut text = format!("{:t<min$}", "text");
    text.truncate(max);
    text
}

#[cfg(test)]
mod tests {
    use super::super::{Documents, FileValue};
    use super::*;
    use std::cell::Cell;

    fn made_or_refused(schema: &Value) -> Result<Value, String> {
        let documents = Documents::from([(String::new(), Ok(schema.clone()))]);
        let base = "http://h/".parse().unwrap();
        let description = Description { documents: &documents, base, made: Cell::new(0) };
        description.made(FileValue { file: "", value: schema }, 0)
    }

    fn made(schema: &Value) -> Value {
        made_or_refused(schema).unwrap()
    }

    #[test]
    fn schemas_without_examples_have_simple_values() {
        for (schema, value) in [
            (json!({}), json!("text")),
            (json!({"type": "string", "maxLength": 2}), json!("te")),
            (json!({"type": "string", "minLength": 6}), json!("texttt")),
            (json!({"type": "string", "format": "date"}), json!("2026-01-31")),
            (json!({"type": ["null", "integer"]}), json!(1)),
            (json!({"type": "integer", "minimum": 10, "exclusiveMinimum": true}), json!(11)),
            (json!({"type": "integer", "exclusiveMinimum": 10, "multipleOf": 5}), json!(15)),
            (json!({"type": "number", "maximum": 0.5}), json!(0.5)),
            (json!({"type": "integer", "maximum": -3}), json!(-3)),
            (json!({"type": "integer", "maximum": -3, "multipleOf": 5}), json!(-5)),
            (json!({"type": "number", "maximum": 0.5, "multipleOf": 0.2}), json!(0.4)),
            (json!({"type": "string", "format": "byte", "maxLength": 2}), json!("te")),
            (
                json!({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2}),
                json!(["a", "a"]),
            ),
            (json!({"oneOf": [{"type": "boolean"}, {"type": "string"}]}), json!(true)),
            (
                json!({"properties": {"a": {"default": 1}}, "oneOf": [{"properties": {"b": {"default": 2}}}, {"properties": {"c": {}}}]}),
                json!({"a": 1, "b": 2}),
            ),
            (json!({"const": 5}), json!(5)),
            (json!({"type": "null"}), json!(null)),
            (
                json!({"allOf": [{"properties": {"a": {"type": "integer"}}}], "properties": {"b": {"default": 2}, "id": {"readOnly": true}}}),
                json!({"a": 1, "b": 2}),
            ),
        ] {
            assert_eq!(made(&schema), value, "{schema}");
        }
    }

    #[test]
    fn schemas_that_demand_any_number_of_values_are_refused() {
        let names: Vec<String> = (0..12).map(|n| format!("p{n}")).collect();
        let fields = names.iter().map(|name| (name.clone(), json!({"$ref": "#"})));
        let fields: Object = fields.collect();
        let row = json!({"type": "array", "minItems": 1_000, "items": {"$ref": "#"}});
        for schema in [json!({"type": "object", "required": names, "properties": fields}), row] {
            let error = made_or_refused(&schema).unwrap_err();
            assert_eq!(error, "its schemas demand more than 10000 values");
        }
    }

    #[test]
    fn schemas_that_contain_themselves_end() {
        let tree = json!({"type": "object", "required": ["next"], "properties": {
            "next": {"$ref": "#"}, "more": {"type": "array", "items": {"$ref": "#"}}}});
        let text = made(&tree).to_string();
        assert!(text.len() < 2_000 && text.ends_with('}'), "{text}");
    }
}
