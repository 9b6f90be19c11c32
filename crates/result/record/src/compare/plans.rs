//! Checks whether two runs had the same plan.

use std::collections::BTreeMap;
use toml::Value;

/// Properties of the plans that must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything but the servers' names and ports.
    SameCalls,
    /// Load and other settings; the targets may differ.
    SameLoad,
}

/// Returns the keys in which two plans (as TOML) differ, with both values: `load.users: 10 and 20`.
/// Seeds and the number of repeats may differ; a plan that cannot be read differs as a whole.
pub fn plan_differences(first: &str, second: &str, scope: Scope) -> Vec<String> {
    let (Some(first), Some(second)) = (flat(first, scope), flat(second, scope)) else {
        return vec!["a plan that cannot be read".to_owned()];
    };
    let keys: std::collections::BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    let shown = |value: Option<&String>| match value {
        Some(text) if text.chars().count() > 60 => "…".to_owned(),
        Some(text) => text.clone(),
        None => "nothing".to_owned(),
    };
    let mut differences: Vec<String> = keys
        .into_iter()
        .filter(|key| first.get(*key) != second.get(*key))
        .map(|key| match table_of_one(key, &first, &second) {
            Some(only) => only,
            None => format!("{key}: {} and {}", shown(first.get(key)), shown(second.get(key))),
        })
        .collect();
    // every key of a table that one plan lacks has the same text
    differences.dedup();
    differences
}

/// Returns the table of a key that only one of the plans has: one difference, regardless of its
/// content.
fn table_of_one(key: &str, first: &Keys, second: &Keys) -> Option<String> {
    let (table, _) = key.split_once('.')?;
    let has = |keys: &Keys| {
        keys.keys().any(|key| key.split_once('.').is_some_and(|(name, _)| name == table))
    };
    match (has(first), has(second)) {
        (true, false) => Some(format!("only the first has [{table}]")),
        (false, true) => Some(format!("only the second has [{table}]")),
        _ => None,
    }
}

/// Keys with dots and their values as text.
type Keys = BTreeMap<String, String>;

/// Returns the keys of a plan; `None` if the text is not TOML.
fn flat(text: &str, scope: Scope) -> Option<Keys> {
    let table: toml::Table = text.parse().ok()?;
    let mut keys = BTreeMap::new();
    walk("", &Value::Table(table), &mut keys);
    keys.retain(|key, _| !matches!(key.as_str(), "seed" | "measure.repeat"));
    keys.retain(|key, _| scope == Scope::SameCalls || !affects_calls(key));
    for (key, value) in &mut keys {
        if key == "url" || (key.starts_with("targets.") && key.ends_with(".url")) {
            *value = without_server(value);
        }
    }
    Some(keys)
}

/// Returns whether a key concerns the calls and their protocol. The rate of messages is the load of
/// a WebSocket.
fn affects_calls(key: &str) -> bool {
    // plans with journeys have one URL, others one for each target
    key == "url"
        || (["targets.", "websocket.", "grpc."].iter().any(|table| key.starts_with(table))
            && key != "websocket.rate")
}

fn walk(prefix: &str, value: &Value, keys: &mut Keys) {
    let inner = |name: &str| match prefix {
        "" => name.to_owned(),
        _ => format!("{prefix}.{name}"),
    };
    match value {
        Value::Table(table) => {
            table.iter().for_each(|(name, value)| walk(&inner(name), value, keys));
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(row, value)| {
                walk(&inner(&row.to_string()), value, keys);
            });
        }
        Value::String(text) => {
            keys.insert(prefix.to_owned(), text.clone());
        }
        other => {
            keys.insert(prefix.to_owned(), other.to_string());
        }
    }
}

/// Returns the path and query of a URL.
fn without_server(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(url) => url[url::Position::BeforePath..].to_owned(),
        Err(_) => url.to_owned(),
    }
}
