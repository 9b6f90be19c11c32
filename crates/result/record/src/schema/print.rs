//! A schema in readable order: the meaning of a key before its checks, keys in the order in which
//! they are written, and short values on one line.

use serde_json::{Map, Value};

/// Maximum length of a line in characters, where a node can be broken.
const COLUMNS: usize = 110;
/// Keywords in this order; the others follow.
const FIRST: [&str; 9] =
    ["$schema", "$id", "title", "description", "type", "const", "enum", "$ref", "required"];
/// Keywords that come last.
const LAST: [&str; 2] = ["properties", "$defs"];

pub(super) fn printed(schema: &Value) -> String {
    let mut text = String::new();
    node(schema, 0, &mut text);
    text.push('\n');
    text
}

fn node(value: &Value, depth: usize, to: &mut String) {
    let short = on_a_line(value);
    let line = to.lines().next_back().map_or(0, |line| line.chars().count());
    if line + short.chars().count() <= COLUMNS {
        to.push_str(&short);
        return;
    }
    match value {
        Value::Object(map) => {
            let keys = ordered(map);
            list(keys.len(), ['{', '}'], depth, to, |index, to| {
                let key = keys[index];
                to.push_str(&format!("{}: ", Value::from(key)));
                match (key, &map[key]) {
                    ("properties", Value::Object(inner)) => {
                        properties(inner, &map.get("required"), depth + 1, to);
                    }
                    (_, inner) => node(inner, depth + 1, to),
                }
            });
        }
        Value::Array(items) => list(items.len(), ['[', ']'], depth, to, |index, to| {
            node(&items[index], depth + 1, to);
        }),
        _ => to.push_str(&short),
    }
}

fn on_a_line(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let key = |key: &str| format!("{}: {}", Value::from(key), on_a_line(&map[key]));
            format!("{{{}}}", ordered(map).into_iter().map(key).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(on_a_line).collect::<Vec<_>>().join(", "))
        }
        _ => value.to_string(),
    }
}

/// Returns the properties in the order in which they are written, which is that of `required`.
fn properties(map: &Map<String, Value>, required: &Option<&Value>, depth: usize, to: &mut String) {
    let required = required.and_then(Value::as_array).into_iter().flatten();
    let mut keys: Vec<&str> =
        required.filter_map(Value::as_str).filter(|key| map.contains_key(*key)).collect();
    let more: Vec<&str> =
        map.keys().map(String::as_str).filter(|key| !keys.contains(key)).collect();
    keys.extend(more);
    list(keys.len(), ['{', '}'], depth, to, |index, to| {
        to.push_str(&format!("{}: ", Value::from(keys[index])));
        node(&map[keys[index]], depth + 1, to);
    });
}

fn ordered(map: &Map<String, Value>) -> Vec<&str> {
    let place = |key: &str| match FIRST.iter().position(|first| *first == key) {
        Some(place) => place,
        None if LAST.contains(&key) => FIRST.len() + 1,
        None => FIRST.len(),
    };
    let mut keys: Vec<&str> = map.keys().map(String::as_str).collect();
    // `$defs` sorts before `properties` and belongs after it
    keys.sort_by_key(|key| (place(key), *key == "$defs"));
    keys
}

fn list(
    count: usize,
    [open, close]: [char; 2],
    depth: usize,
    to: &mut String,
    item: impl Fn(usize, &mut String),
) {
    to.push(open);
    for index in 0..count {
        to.push_str(if index == 0 { "\n" } else { ",\n" });
        to.push_str(&"  ".repeat(depth + 1));
        item(index, to);
    }
    to.push('\n');
    to.push_str(&"  ".repeat(depth));
    to.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn short_objects_share_a_line_and_keys_are_ordered() {
        let long = "a sentence that is long enough to break the node that it stands in, twice over";
        let schema = json!({
            "$defs": {"B": {"type": "number"}},
            "properties": {"a": {"type": "string", "description": long}, "z": {"type": "null"}},
            "required": ["z", "a"],
            "title": "t/1",
        });
        let printed = printed(&schema);
        let keys: Vec<&str> = printed.lines().map(str::trim_start).collect();
        assert_eq!(
            keys[1..5],
            [
                "\"title\": \"t/1\",",
                "\"required\": [\"z\", \"a\"],",
                "\"properties\": {",
                "\"z\": {\"type\": \"null\"},"
            ]
        );
        assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), schema);
    }
}
