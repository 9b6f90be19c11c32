//! JSON whose numbers are text. Only for documents that `serde_json` has accepted: it bounds their
//! depth.

use std::collections::BTreeMap;

/// A value, with scalars as written in the document.
#[derive(Debug)]
pub(super) enum RawJson<'b> {
    Scalar(&'b [u8]),
    Array(Vec<RawJson<'b>>),
    /// Members of an object; of members with the same name, the last one counts.
    Object(BTreeMap<String, RawJson<'b>>),
}

impl<'b> RawJson<'b> {
    pub(super) fn parse(document: &'b [u8]) -> RawJson<'b> {
        Scanner { document, at: 0 }.value()
    }

    /// Returns the value at a JSON pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<&RawJson<'b>> {
        let tokens = pointer.split('/').skip(1);
        tokens.map(|token| token.replace("~1", "/").replace("~0", "~")).try_fold(
            self,
            |value, token| match value {
                RawJson::Scalar(_) => None,
                RawJson::Array(all) => all.get(token.parse::<usize>().ok()?),
                RawJson::Object(all) => all.get(&token),
            },
        )
    }

    /// Renders compact JSON, with members by name as `serde_json` prints them.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            RawJson::Scalar(text) if text.first() == Some(&b'"') => {
                out.push_str(&quoted(&string(text)))
            }
            RawJson::Scalar(text) => out.push_str(&String::from_utf8_lossy(text)),
            RawJson::Array(all) => {
                out.push('[');
                for (row, value) in all.iter().enumerate() {
                    out.push_str(if row == 0 { "" } else { "," });
                    value.write(out);
                }
                out.push(']');
            }
            RawJson::Object(all) => {
                out.push('{');
                for (row, (name, value)) in all.iter().enumerate() {
                    out.push_str(if row == 0 { "" } else { "," });
                    out.push_str(&quoted(name));
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a JSON string without its quotation marks and escapes.
fn string(text: &[u8]) -> String {
    serde_json::from_slice(text).unwrap_or_default()
}

/// Parses valid JSON from its start. On invalid JSON the result is unspecified, but parsing ends.
struct Scanner<'b> {
    document: &'b [u8],
    at: usize,
}

impl<'b> Scanner<'b> {
    /// Returns the next byte that is neither white space nor a separator.
    fn next(&mut self) -> Option<u8> {
        let rest = &self.document[self.at..];
        let skipped = rest.iter().position(|byte| !b" \t\r\n,:".contains(byte));
        self.at += skipped.unwrap_or(rest.len());
        self.document.get(self.at).copied()
    }

    fn value(&mut self) -> RawJson<'b> {
        match self.next() {
            Some(b'[') => {
                self.at += 1;
                let mut all = Vec::new();
                while self.next().is_some_and(|byte| byte != b']') {
                    all.push(self.value());
                }
                self.at += 1;
                RawJson::Array(all)
            }
            Some(b'{') => {
                self.at += 1;
                let mut all = BTreeMap::new();
                while self.next().is_some_and(|byte| byte != b'}') {
                    let name = string(self.scalar());
                    all.insert(name, self.value());
                }
                self.at += 1;
                RawJson::Object(all)
            }
            _ => RawJson::Scalar(self.scalar()),
        }
    }

    fn scalar(&mut self) -> &'b [u8] {
        let rest = &self.document[self.at.min(self.document.len())..];
        let length = match rest.first() {
            Some(b'"') => {
                let mut escaped = false;
                let end = rest.iter().skip(1).position(|byte| {
                    let ends = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    ends
                });
                end.map_or(rest.len(), |end| end + 2)
            }
            _ => {
                let end = rest.iter().position(|byte| b" \t\r\n,:]}".contains(byte));
                // consumes at least a byte, so that parsing ends
                end.unwrap_or(rest.len()).max(1).min(rest.len())
            }
        };
        self.at += length;
        &rest[..length]
    }
}
