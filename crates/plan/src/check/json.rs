//! Places in a JSON document.

use serde_json::Value;
use serde_json_path::JsonPath;

/// A JSON pointer (RFC 6901), or a JSONPath (RFC 9535), which begins with `$`.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonPlace {
    Pointer(String),
    Path { text: String, path: Box<JsonPath> },
}

impl JsonPlace {
    /// # Errors
    /// What is neither: a sentence.
    pub fn parse(text: &str) -> Result<JsonPlace, String> {
        if text.starts_with('$') {
            return match JsonPath::parse(text) {
                Ok(path) => Ok(JsonPlace::Path { text: text.to_owned(), path: Box::new(path) }),
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

    /// As it was written; empty for the whole document.
    pub fn as_str(&self) -> &str {
        match self {
            JsonPlace::Pointer(text) | JsonPlace::Path { text, .. } => text,
        }
    }

    /// Everything that it leads to, in the order of the document.
    pub fn find<'v>(&self, document: &'v Value) -> Vec<&'v Value> {
        match self {
            JsonPlace::Pointer(pointer) => document.pointer(pointer).into_iter().collect(),
            JsonPlace::Path { path, .. } => path.query(document).all(),
        }
    }
}
