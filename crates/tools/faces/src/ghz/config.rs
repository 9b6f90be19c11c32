//! ghz's configuration file: JSON, TOML or YAML with the names of flags as keys.

use super::go::parse_time;
use super::kingpin::{FlagKind, kind_of_flag};
use super::options::{Options, go_json_error, kind_of, set, size_of, texts};
use crate::Files;
use serde_json::{Map, Value};

/// Returns the keys of a file and their values.
///
/// # Errors
/// Fails with a message about a file that cannot be read, or is malformed.
pub(super) fn load(path: &str, files: &dyn Files) -> Result<Map<String, Value>, String> {
    let Ok(bytes) = files.read(path) else {
        return Err(format!("Failed to find configuration {path}"));
    };
    let text = String::from_utf8_lossy(&bytes);
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let value: Value = match ending.as_deref() {
        Some("toml") => toml::from_str(&text).map_err(|why| format!("toml: {}", why.message()))?,
        Some("yaml" | "yml") => {
            workload::yaml::parse(&text).map_err(|why| format!("yaml: {why}"))?
        }
        _ => serde_json::from_str(&text).map_err(|why| go_json_error(&text, &why))?,
    };
    match value {
        Value::Object(map) => Ok(map),
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type runner.Config",
            kind_of(&other)
        )),
    }
}

/// Applies the keys of a file to the options.
///
/// # Errors
/// Fails if a value's type differs from its key's.
pub(super) fn apply_all(options: &mut Options, read: Map<String, Value>) -> Result<(), String> {
    if !read.is_empty() {
        // the file's defaults are not those of the flags
        (options.workers.start, options.workers.step) = (1, 0);
    }
    read.into_iter().try_for_each(|(key, value)| apply(options, &key, value))
}

fn apply(options: &mut Options, key: &str, value: Value) -> Result<(), String> {
    match (key, &value) {
        ("data", _) => {
            check_data(&value)?;
            options.data = value;
        }
        ("metadata", _) => options.metadata = texts(&value)?,
        ("tags", _) => options.tags = texts(&value)?,
        ("reflect-metadata", _) => options.reflect_metadata = texts(&value)?,
        ("import-paths", Value::Array(items)) => {
            let texts = items.iter().filter_map(Value::as_str);
            options.import_paths = texts.map(str::to_owned).collect();
        }
        ("max-recv-message-size", Value::String(text)) => {
            options.max_recv = Some(size_of("recv", text)?);
        }
        ("max-send-message-size", Value::String(text)) => {
            options.max_send = Some(size_of("send", text)?);
        }
        (_, Value::Null) => {}
        (key, Value::String(text)) if is_count(key) && !text.is_empty() => {
            return Err(format!(
                "json: cannot unmarshal string into Go struct field Config.{key} of type uint"
            ));
        }
        (key, Value::Number(number)) if kind_of_flag(key) == Some(FlagKind::Time) => {
            // ghz takes a number only with a unit
            return Err(parse_time(&number.to_string()).err().unwrap_or_default());
        }
        (key, Value::String(text)) => set(options, key, text)?,
        (key, other) => set(options, key, &other.to_string())?,
    }
    Ok(())
}

fn is_count(key: &str) -> bool {
    matches!(kind_of_flag(key), Some(FlagKind::Count | FlagKind::Number))
}

/// Checks a request, or a list of them.
fn check_data(data: &Value) -> Result<(), String> {
    match data {
        Value::Object(_) | Value::Null => Ok(()),
        Value::Array(items) if items.is_empty() => Err("data array must not be empty".to_owned()),
        Value::Array(items) if items.iter().all(Value::is_object) => Ok(()),
        Value::Array(_) => Err("data array contains unsupported type".to_owned()),
        _ => Err("unsupported type for Data".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_a_file_replace_no_key_of_it() {
        let text = r#"{"concurrency-step": 1, "concurrency-start": 0, "total": 9}"#;
        let mut options = Options::default();
        options.workers.step = 1;
        apply_all(&mut options, serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!((options.workers.start, options.workers.step, options.total), (0, 1, 9));
        let mut options = Options::default();
        apply_all(&mut options, serde_json::from_str(r#"{"total": 9}"#).unwrap()).unwrap();
        assert_eq!((options.workers.start, options.workers.step), (1, 0));
    }
}
