//! A record as a JSON document: how it is written and read.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Renders a document in the form of all outputs: indented, with a line feed at its end.
pub fn printed(record: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(record)
        .expect("strings, numbers, lists and maps with text keys always serialise");
    text.push('\n');
    text
}

/// Returns the schema that a document names: `loadstone.check/1`.
///
/// # Errors
/// Fails if the text is not JSON, or names no schema.
pub fn schema_of(text: &str) -> Result<String, String> {
    let whole: serde_json::Value = serde_json::from_str(without_mark(text))
        .map_err(|error| format!("is damaged or not JSON: {error}"))?;
    let schema = whole.get("schema").and_then(serde_json::Value::as_str);
    schema.map(str::to_owned).ok_or_else(|| "names no schema: it has no key \"schema\"".to_owned())
}

/// Reads a record of `schema`, which `command` writes. Keys that a newer version added are ignored.
///
/// # Errors
/// Fails if the text is not JSON, or JSON of another kind; the error has the position and the
/// reason.
pub fn read<T: DeserializeOwned>(text: &str, schema: &str, command: &str) -> Result<T, String> {
    let found = schema_of(text)?;
    if found != schema {
        let found = units::quoted(&found);
        return Err(format!("is {found}, not {schema} (of {command})"));
    }
    // read once more from the text: the error then has the line and column
    let read = serde_json::from_str(without_mark(text));
    read.map_err(|error| format!("is not a valid {schema}: {error}"))
}

/// Removes the byte order mark that some editors write at the start of a text.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_schema_is_refused_by_name() {
        let read = |text: &str| read::<serde_json::Value>(text, "a/1", "loadstone a");
        assert!(read(r#"{"schema": "a/1", "more": 1}"#).is_ok());
        assert!(read("\u{feff}{\"schema\": \"a/1\"}").is_ok());
        assert_eq!(
            read(r#"{"schema": "b/1"}"#),
            Err("is \"b/1\", not a/1 (of loadstone a)".into())
        );
        assert!(read("{}").unwrap_err().contains("names no schema"));
        assert!(read("{").unwrap_err().starts_with("is damaged or not JSON"));
    }
}
