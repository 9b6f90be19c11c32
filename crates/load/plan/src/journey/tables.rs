//! Journeys as tables of a plan file, as read, with file names replaced by contents, so that a
//! printed plan needs no other file.

use super::feeder::{FeederFormat, FeederRows};
use super::model::JourneyPlan;
use super::read::KEYS;
use crate::FileSource;
use crate::secrets::{MASK, is_secret_header, mask_content, mask_named};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::sync::Arc;
use toml::{Table, Value};
use units::ParseError;

/// Parses the tables of a text that was read before. Bodies, uploads and scripts are embedded; the
/// feeders keep their rows.
pub(super) fn parse(text: &str, files: &dyn FileSource) -> Result<Arc<Table>, ParseError> {
    let mut all: Table = toml::from_str(text).map_err(|error| {
        ParseError(format!("the plan is invalid: {}", error.to_string().trim()))
    })?;
    all.retain(|key, _| KEYS.contains(&key));
    for (_, value) in &mut all {
        put_files_in(value, files)?;
    }
    Ok(Arc::new(all))
}

/// Embeds the files that `body-file`, `send-file`, `script-file`, `script-files` and `file` in
/// `upload` name, each under the key for its content.
fn put_files_in(value: &mut Value, files: &dyn FileSource) -> Result<(), ParseError> {
    match value {
        Value::Array(all) => all.iter_mut().try_for_each(|one| put_files_in(one, files)),
        Value::Table(table) => {
            if let Some(path) = table.remove("body-file") {
                let bytes = content(&path, files)?;
                table.insert("body-base64".to_owned(), bytes);
            }
            if let Some(path) = table.remove("send-file") {
                let bytes = content(&path, files)?;
                table.insert("send-base64".to_owned(), bytes);
            }
            if let Some(path) = table.remove("script-file") {
                let path = path.as_str().unwrap_or_default().to_owned();
                table.insert("script".to_owned(), Value::String(program_text(&path, files)?));
                table.entry("script-name".to_owned()).or_insert(Value::String(path));
            }
            if let Some(Value::Array(list)) = table.get_mut("script-files") {
                for one in list.iter_mut() {
                    let Value::String(path) = one else { continue };
                    let text = program_text(path, files)?;
                    *one = Value::Table(script_file(path.clone(), text));
                }
            }
            if table.contains_key("field")
                && let Some(path) = table.remove("file")
            {
                let bytes = content(&path, files)?;
                table.insert("base64".to_owned(), bytes);
                let name = path.as_str().and_then(|path| path.rsplit('/').next());
                let name = name.unwrap_or("file.txt").to_owned();
                table.entry("name".to_owned()).or_insert(Value::String(name));
            }
            table.iter_mut().try_for_each(|(_, value)| put_files_in(value, files))
        }
        _ => Ok(()),
    }
}

/// Returns a file of a script as a table with its name and text.
pub(super) fn script_file(name: String, text: String) -> Table {
    let pairs = [("name", name), ("text", text)];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), Value::String(value))).collect()
}

/// Returns the text of a journey's program.
pub(super) fn program_text(path: &str, files: &dyn FileSource) -> Result<String, ParseError> {
    let bytes = files.read(path).map_err(ParseError)?;
    String::from_utf8(bytes)
        .map_err(|_| ParseError(format!("{path} is not UTF-8, which a journey's script must be")))
}

fn content(path: &Value, files: &dyn FileSource) -> Result<Value, ParseError> {
    let bytes = files.read(path.as_str().unwrap_or_default()).map_err(ParseError)?;
    Ok(Value::String(BASE64.encode(bytes)))
}

/// Returns the tables with all contents embedded.
pub(crate) fn shown(plan: &JourneyPlan) -> Table {
    with_feeders(plan, false, |table| table.text.clone())
}

/// Returns the tables with secrets replaced: the rows of feeders, logins, and values whose names
/// indicate secrets. Feeders keep the names of their files, so that the plan can be run where the
/// files exist.
pub(crate) fn masked(plan: &JourneyPlan) -> Table {
    with_masked_rows(plan, true)
}

/// Returns the masked tables without the names of feeder files: the rows identify a feeder.
pub(crate) fn masked_without_files(plan: &JourneyPlan) -> Table {
    with_masked_rows(plan, false)
}

fn with_masked_rows(plan: &JourneyPlan, named: bool) -> Table {
    let mut all = with_feeders(plan, named, |_| String::new());
    for (place, feeder) in feeders_of(&mut all).zip(&plan.feeders) {
        if let FeederRows::Table(table) = &feeder.rows {
            let text = match table.format {
                FeederFormat::Csv => masked_csv(&feeder.columns),
                FeederFormat::JsonLines => masked_json(&feeder.columns),
            };
            place.insert("text".to_owned(), Value::String(text));
        }
    }
    for (_, value) in &mut all {
        mask(value, false);
    }
    all
}

fn masked_csv(columns: &[String]) -> String {
    let quote = |column: &String| format!("\"{}\"", column.replace('"', "\"\""));
    let heads: Vec<String> = columns.iter().map(quote).collect();
    let row: Vec<&str> = columns.iter().map(|_| MASK).collect();
    format!("{}\n{}\n", heads.join(","), row.join(","))
}

fn masked_json(columns: &[String]) -> String {
    let row: serde_json::Map<String, serde_json::Value> =
        columns.iter().map(|column| (column.clone(), MASK.into())).collect();
    serde_json::Value::Object(row).to_string()
}

fn with_feeders(
    plan: &JourneyPlan,
    named: bool,
    text: impl Fn(&super::FeederTable) -> String,
) -> Table {
    let mut all = (*plan.tables).clone();
    for (place, feeder) in feeders_of(&mut all).zip(&plan.feeders) {
        if let FeederRows::Table(table) = &feeder.rows {
            if !named {
                place.remove("file");
            }
            let format = match table.format {
                FeederFormat::Csv => "csv",
                FeederFormat::JsonLines => "jsonl",
            };
            place.insert("format".to_owned(), Value::String(format.to_owned()));
            place.insert("text".to_owned(), Value::String(text(table)));
        }
    }
    all
}

fn feeders_of(all: &mut Table) -> impl Iterator<Item = &mut Table> {
    let feeders = all.get_mut("feeder").and_then(Value::as_array_mut);
    feeders.into_iter().flatten().filter_map(Value::as_table_mut)
}

/// Masks a value. `secret`: its name indicates a secret. A text that consists only of values
/// reveals only their names.
fn mask(value: &mut Value, secret: bool) {
    /// Keys with the content of requests and messages as text.
    const CONTENT: [&str; 4] = ["body", "json", "message", "send"];
    match value {
        Value::String(text) if secret && !text.contains("{{") => MASK.clone_into(text),
        Value::Integer(_) | Value::Float(_) if secret => *value = Value::String(MASK.to_owned()),
        Value::Array(all) => all.iter_mut().for_each(|one| mask(one, secret)),
        Value::Table(table) => {
            for (key, value) in table.iter_mut() {
                match value {
                    Value::String(login) if key == "user" && login.contains(':') => {
                        let name = login.split(':').next().unwrap_or_default();
                        *login = format!("{name}:{MASK}");
                    }
                    Value::String(text) if key == "url" => *text = mask_named(text, MASK),
                    Value::String(text) if CONTENT.contains(&key.as_str()) => {
                        let masked = mask_content(text.as_bytes(), MASK);
                        *text = String::from_utf8_lossy(&masked).into_owned();
                    }
                    Value::String(code) if key.ends_with("base64") => {
                        if let Ok(content) = BASE64.decode(&*code) {
                            *code = BASE64.encode(mask_content(&content, MASK));
                        }
                    }
                    // the keywords of a capture or of an expectation are not secret
                    Value::Table(_) => mask(value, false),
                    _ => mask(value, is_secret_header(key)),
                }
            }
        }
        _ => {}
    }
}

/// Returns whether a table of the plan contains a secret that [`mask`] replaced.
pub(crate) fn is_masked(plan: &JourneyPlan) -> bool {
    shown(plan).iter().any(|(key, value)| holds_mask(key, value))
}

fn holds_mask(key: &str, value: &Value) -> bool {
    match value {
        Value::String(code) if key.ends_with("base64") => {
            let content = BASE64.decode(code).unwrap_or_default();
            code.contains(MASK) || String::from_utf8_lossy(&content).contains(MASK)
        }
        Value::String(text) => text.contains(MASK),
        Value::Array(all) => all.iter().any(|one| holds_mask(key, one)),
        Value::Table(table) => table.iter().any(|(key, value)| holds_mask(key, value)),
        _ => false,
    }
}

/// Returns a feeder whose rows were masked when its plan was printed.
pub(crate) fn masked_feeder(plan: &JourneyPlan) -> Option<&super::Feeder> {
    plan.feeders.iter().find(|feeder| match &feeder.rows {
        FeederRows::Table(table) => table.text.contains(MASK),
        FeederRows::Generated(_) => false,
    })
}
