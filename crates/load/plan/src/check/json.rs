//! Places in a JSON document, and their values as text.

mod exact;
mod raw;

use exact::Filtered;
use raw::RawJson;
use serde_json::Value;
use serde_json_path::JsonPath;

/// A JSON pointer (RFC 6901), or a JSONPath (RFC 9535), which begins with `$`.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonPlace {
    Pointer(String),
    Path { text: String, path: Box<CheckedPath> },
}

/// A JSONPath whose filters compare 64-bit integers exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedPath {
    path: JsonPath,
    filtered: Option<Filtered>,
}

impl CheckedPath {
    /// Returns pointers to everything that the path selects, in document order.
    fn pointers(&self, document: &Value) -> Vec<String> {
        let exact = self.filtered.as_ref().and_then(|filtered| filtered.exact(document));
        let (path, document) = match &exact {
            Some((path, document)) => (path, document),
            None => (&self.path, document),
        };
        let found = path.query_located(document);
        found.iter().map(|it| it.location().to_json_pointer()).collect()
    }
}

impl JsonPlace {
    /// # Errors
    /// Fails if the text is neither.
    pub fn parse(text: &str) -> Result<JsonPlace, String> {
        if text.starts_with('$') {
            return match JsonPath::parse(text) {
                Ok(path) => {
                    let path = Box::new(CheckedPath { path, filtered: Filtered::parse(text) });
                    Ok(JsonPlace::Path { text: text.to_owned(), path })
                }
                Err(error) => Err(format!(
                    "{text:?} is not a JSONPath: {} at character {}",
                    error.message(),
                    error.position()
                )),
            };
        }
        if !text.is_empty() && !text.starts_with('/') {
            return Err(format!(
                "{text:?} is not a place in JSON: a pointer begins with /, like /items/0/name, and a \
                 JSONPath with $, like $.items[0].name"
            ));
        }
        Ok(JsonPlace::Pointer(text.to_owned()))
    }

    /// Returns the path as written; empty for the whole document.
    pub fn as_str(&self) -> &str {
        match self {
            JsonPlace::Pointer(text) | JsonPlace::Path { text, .. } => text,
        }
    }

    /// Returns everything that the path selects, in document order.
    pub fn find<'v>(&self, document: &'v Value) -> Vec<&'v Value> {
        match self {
            JsonPlace::Pointer(pointer) => document.pointer(pointer).into_iter().collect(),
            JsonPlace::Path { path, .. } if path.filtered.is_some() => {
                let pointers = path.pointers(document).into_iter();
                pointers.filter_map(|pointer| document.pointer(&pointer)).collect()
            }
            JsonPlace::Path { path, .. } => path.path.query(document).all(),
        }
    }

    /// Returns the text of everything that the path selects, up to `most` values. A string is
    /// without its quotation marks, a number has the digits of `body`, from which `document` was
    /// parsed.
    pub fn texts(&self, body: &[u8], document: &Value, most: usize) -> Vec<String> {
        let mut raw = None;
        let mut text = |(pointer, value): (String, &Value)| match value {
            Value::String(text) => text.clone(),
            value if is_exact(value) => value.to_string(),
            value => {
                let raw = raw.get_or_insert_with(|| RawJson::parse(body));
                raw.at(&pointer).map_or_else(|| value.to_string(), RawJson::text)
            }
        };
        match self {
            JsonPlace::Pointer(pointer) => {
                let found = document.pointer(pointer).into_iter().take(most);
                found.map(|value| text((pointer.clone(), value))).collect()
            }
            JsonPlace::Path { path, .. } => {
                let found = path.pointers(document).into_iter().take(most);
                found
                    .filter_map(|pointer| {
                        let value = document.pointer(&pointer)?;
                        Some(text((pointer, value)))
                    })
                    .collect()
            }
        }
    }
}

/// Returns whether printing the value restores its digits: numbers other than 64-bit integers are
/// doubles here.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_i64() || number.is_u64(),
        Value::Array(all) => all.iter().all(is_exact),
        Value::Object(all) => all.values().all(is_exact),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(place: &str, body: &str) -> Vec<String> {
        let document = serde_json::from_str(body).unwrap();
        JsonPlace::parse(place).unwrap().texts(body.as_bytes(), &document, 10)
    }

    #[test]
    fn a_number_keeps_the_digits_of_the_body() {
        let body =
            r#" {"u": 18446744073709551616, "m" :1.10, "all": [1, -0.0, 1e2, {"a/b~": 2.50}]} "#;
        for (place, found) in [
            ("/u", "18446744073709551616"),
            ("/m", "1.10"),
            ("/all/1", "-0.0"),
            ("$.all[2]", "1e2"),
            ("/all/3/a~1b~0", "2.50"),
            ("$.all[3]['a/b~']", "2.50"),
            ("/all", r#"[1,-0.0,1e2,{"a/b~":2.50}]"#),
        ] {
            assert_eq!(texts(place, body), [found], "{place}");
        }
        assert_eq!(texts("$.all[:3]", body), ["1", "-0.0", "1e2"]);
    }

    #[test]
    fn the_last_of_equal_keys_counts_and_escapes_are_read() {
        let body = r#"{"\u0061": 1.0, "a": 2.50, "t": {"k\n": "x\"]}", "n": 0.10}}"#;
        assert_eq!(texts("/a", body), ["2.50"]);
        assert_eq!(texts("/t", body), [r#"{"k\n":"x\"]}","n":0.10}"#]);
        assert_eq!(texts("/t/k\n", body), ["x\"]}"]);
    }
}
