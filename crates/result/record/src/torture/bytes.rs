//! Bytes of a conversation as text.

#[cfg(any(test, feature = "schema"))]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
#[cfg(any(test, feature = "schema"))]
use std::borrow::Cow;

/// Bytes, in JSON escaped as in a string of C: `GET / HTTP/1.1\r\n\x00`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireBytes(pub Vec<u8>);

impl Serialize for WireBytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0.escape_ascii())
    }
}

#[cfg(any(test, feature = "schema"))]
impl JsonSchema for WireBytes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "WireBytes".into()
    }

    fn json_schema(to: &mut SchemaGenerator) -> Schema {
        to.subschema_for::<String>()
    }
}

impl<'de> Deserialize<'de> for WireBytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<WireBytes, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = unescaped(&text);
        let wrong = || D::Error::custom(format!("{} is not escaped as in C", units::quoted(&text)));
        bytes.map(WireBytes).ok_or_else(wrong)
    }
}

/// Parses the escaped form of bytes; `None` for an unknown escape.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'r' => b'\r',
            b'n' => b'\n',
            b't' => b'\t',
            plain @ (b'\\' | b'\'' | b'"') => plain,
            b'x' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                // two hexadecimal digits are at most 255
                (digit()? * 16 + digit()?) as u8
            }
            _ => return None,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_read_back() {
        let all = WireBytes((0..=255).collect());
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<WireBytes>(&text).unwrap(), all);
        for wrong in ["\\", "\\q", "\\x1", "\\xzz"] {
            assert_eq!(unescaped(wrong), None, "{wrong}");
        }
    }
}
