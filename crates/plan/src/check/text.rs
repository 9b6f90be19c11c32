//! Texts with `${name}` in them.

use std::collections::BTreeMap;

/// A text in which `${name}` stands for a captured value. Variables of the plan are put in when it
/// is read; `$${` is a plain `${`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    parts: Vec<Part>,
    /// Values are put in as literal text of a regular expression.
    pattern: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Plain(String),
    Captured(String),
}

impl Text {
    /// A text without anything to put in.
    pub fn plain(text: impl Into<String>) -> Text {
        Text { parts: vec![Part::Plain(text.into())], pattern: false }
    }

    /// `vars` are put in at once; `captured` says which other names are known.
    ///
    /// # Errors
    /// A name that is not known, or a `${` without its `}`.
    pub(super) fn read(
        text: &str,
        pattern: bool,
        vars: &BTreeMap<String, String>,
        captured: &dyn Fn(&str) -> bool,
    ) -> Result<Text, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if rest[..at].ends_with('$') {
                plain.push_str(&rest[..at - 1]);
                plain.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            plain.push_str(&rest[..at]);
            let Some((name, after)) = rest[at + 2..].split_once('}') else {
                return Err("there is a ${ without its }; write $${ for the two characters".into());
            };
            match vars.get(name) {
                Some(value) if pattern => plain.push_str(&regex::escape(value)),
                Some(value) => plain.push_str(value),
                None if captured(name) => {
                    parts.push(Part::Plain(std::mem::take(&mut plain)));
                    parts.push(Part::Captured(name.to_owned()));
                }
                None => {
                    return Err(format!(
                        "${{{name}}} is neither in [vars] nor captured by an earlier step"
                    ));
                }
            }
            rest = after;
        }
        plain.push_str(rest);
        parts.push(Part::Plain(plain));
        Ok(Text { parts, pattern })
    }

    /// The text, when nothing is left to put in.
    pub fn settled(&self) -> Option<String> {
        self.expand(&BTreeMap::new()).ok()
    }

    /// With captured values put in.
    ///
    /// # Errors
    /// A value that the earlier step has not captured.
    pub fn expand(&self, captured: &BTreeMap<String, String>) -> Result<String, String> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Plain(text) => out.push_str(text),
                Part::Captured(name) => match captured.get(name) {
                    Some(value) if self.pattern => out.push_str(&regex::escape(value)),
                    Some(value) => out.push_str(value),
                    None => return Err(format!("${{{name}}} was not captured")),
                },
            }
        }
        Ok(out)
    }
}
