//! Texts with names as placeholders for values.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use regex::bytes::Regex;
use std::collections::BTreeMap;

/// Source of the values of names.
pub trait ValueSource {
    /// Returns a value; `None` if it does not exist, or not yet.
    fn value(&self, name: &str) -> Option<&str>;

    /// Returns the compiled form of a regular expression, if there is one.
    fn pattern(&self, _text: &str) -> Option<Regex> {
        None
    }
}

impl ValueSource for BTreeMap<String, String> {
    fn value(&self, name: &str) -> Option<&str> {
        self.get(name).map(String::as_str)
    }
}

/// Syntax of a name in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    /// `${name}`; `$${` is a plain `${`. In check plans.
    Dollar,
    /// `{{name}}`; `\{{` is a plain `{{`. In journeys.
    Braces,
}

impl Marks {
    fn open(self) -> &'static str {
        match self {
            Marks::Dollar => "${",
            Marks::Braces => "{{",
        }
    }

    fn close(self) -> &'static str {
        match self {
            Marks::Dollar => "}",
            Marks::Braces => "}}",
        }
    }

    /// Returns the character that makes an opening mark plain text.
    fn escape(self) -> char {
        match self {
            Marks::Dollar => '$',
            Marks::Braces => '\\',
        }
    }
}

/// Encoding of an inserted value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    #[default]
    AsIs,
    /// Literal text in a regular expression.
    Pattern,
    /// Percent-encoded, as part of a URL. A value at the start of the text is a whole URL and stays
    /// unchanged.
    UrlPart,
    /// Contents of a JSON string.
    Json,
}

/// Characters that need no encoding in a segment or query of a URL (RFC 3986 section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

impl Fill {
    /// Appends a value to `out`.
    pub fn put(self, value: &str, out: &mut String) {
        match self {
            Fill::AsIs => out.push_str(value),
            Fill::Pattern => out.push_str(&regex::escape(value)),
            Fill::UrlPart if out.is_empty() => out.push_str(value),
            Fill::UrlPart => out.extend(utf8_percent_encode(value, UNRESERVED)),
            Fill::Json => {
                let quoted = serde_json::Value::from(value).to_string();
                out.push_str(&quoted[1..quoted.len() - 1]);
            }
        }
    }
}

/// A text with names for values that become known later. Variables of the plan are inserted when it
/// is parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    parts: Vec<TextPart>,
    fill: Fill,
    /// A name with its marks, for messages.
    dollar: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TextPart {
    Plain(String),
    Named(String, Fill),
}

impl TextPart {
    /// Removes the backslash from `\${`, which could be a placeholder of another tool.
    fn unescape_dollars(&mut self) {
        if let TextPart::Plain(text) = self
            && text.contains("\\${")
        {
            *text = text.replace("\\${", "${");
        }
    }
}

impl Text {
    /// Returns a text without placeholders.
    pub fn plain(text: impl Into<String>) -> Text {
        Text { parts: vec![TextPart::Plain(text.into())], ..Text::default() }
    }

    /// Inserts `vars` at once; `known` decides which other names will have values.
    ///
    /// # Errors
    /// Fails for an unknown name, or an opening mark without its closing mark.
    pub(crate) fn read(
        text: &str,
        (marks, fill): (Marks, Fill),
        vars: &BTreeMap<String, String>,
        known: &dyn Fn(&str) -> bool,
    ) -> Result<Text, String> {
        let (open, close) = (marks.open(), marks.close());
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(open) {
            if rest[..at].ends_with(marks.escape()) {
                plain.push_str(&rest[..at - 1]);
                plain.push_str(open);
                rest = &rest[at + open.len()..];
                continue;
            }
            plain.push_str(&rest[..at]);
            let Some((name, after)) = rest[at + open.len()..].split_once(close) else {
                return Err(format!(
                    "there is a {open} without its {close}; write {}{open} for the two characters",
                    marks.escape()
                ));
            };
            let name = if marks == Marks::Braces { name.trim() } else { name };
            let is_known = |name: &str| vars.contains_key(name) || known(name);
            let (name, fill) = match marks {
                Marks::Braces if !is_known(name) => with_filter(name, fill)?,
                _ => (name, fill),
            };
            match vars.get(name) {
                // the text before it decides whether a URL starts with it
                Some(value) if parts.is_empty() => fill.put(value, &mut plain),
                Some(value) => {
                    let mut put = ".".to_owned();
                    fill.put(value, &mut put);
                    plain.push_str(&put[1..]);
                }
                None if known(name) => {
                    parts.push(TextPart::Plain(std::mem::take(&mut plain)));
                    parts.push(TextPart::Named(name.to_owned(), fill));
                }
                None => return Err(unknown(marks, name)),
            }
            rest = after;
        }
        plain.push_str(rest);
        parts.push(TextPart::Plain(plain));
        if marks == Marks::Braces {
            parts.iter_mut().for_each(TextPart::unescape_dollars);
        }
        if marks == Marks::Braces
            && let Some(name) =
                foreign_placeholder(text, &|name| vars.contains_key(name) || known(name))
        {
            return Err(format!(
                "${{{name}}} is not filled in: write {{{{{name}}}}}, or \\${{{name}}} for the characters"
            ));
        }
        Ok(Text { parts, fill, dollar: marks == Marks::Dollar })
    }

    /// Returns the text, if no placeholder is left.
    pub fn settled(&self) -> Option<String> {
        self.expand(&BTreeMap::new()).ok()
    }

    /// Returns the names whose values are inserted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.insertions().map(|(name, _)| name)
    }

    /// Returns the names whose values are inserted, with the encoding of each.
    pub fn insertions(&self) -> impl Iterator<Item = (&str, Fill)> {
        self.parts.iter().filter_map(|part| match part {
            TextPart::Plain(_) => None,
            TextPart::Named(name, fill) => Some((name.as_str(), *fill)),
        })
    }

    /// Returns the encoding of values without a filter; it applies after the start of the text.
    pub fn fill(&self) -> Fill {
        self.fill
    }

    /// Returns the text before the first value.
    pub fn beginning(&self) -> &str {
        match self.parts.first() {
            Some(TextPart::Plain(text)) => text,
            _ => "",
        }
    }

    /// Inserts the values.
    ///
    /// # Errors
    /// Fails if a value is missing.
    pub fn expand(&self, values: &dyn ValueSource) -> Result<String, String> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TextPart::Plain(text) => out.push_str(text),
                TextPart::Named(name, fill) => match values.value(name) {
                    Some(value) => fill.put(value, &mut out),
                    None if self.dollar => return Err(format!("${{{name}}} was not captured")),
                    None => return Err(format!("{{{{{name}}}}} has no value")),
                },
            }
        }
        Ok(out)
    }

    /// Returns the text as written, except for variables.
    pub fn shown(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TextPart::Plain(text) => out.push_str(text),
                TextPart::Named(name, _) if self.dollar => out.extend(["${", name, "}"]),
                TextPart::Named(name, _) => out.extend(["{", name, "}"]),
            }
        }
        out
    }
}

/// Separates a name from its filter: `name|json`.
fn with_filter(name: &str, fill: Fill) -> Result<(&str, Fill), String> {
    let Some((bare, filter)) = name.split_once('|') else { return Ok((name, fill)) };
    match (filter.trim(), fill) {
        ("json", Fill::AsIs) => Ok((bare.trim_end(), Fill::Json)),
        ("json", Fill::Json) => {
            Err(format!("{{{{{name}}}}}: every value is escaped in this text, so remove |json"))
        }
        ("json", Fill::Pattern | Fill::UrlPart) => Err(format!(
            "{{{{{name}}}}}: |json is for bodies, messages and fields, not for URLs and regular \
             expressions; remove it"
        )),
        (other, _) => Err(format!(
            "{{{{{name}}}}}: {other} is not a filter; the only one is |json, which escapes a value \
             as part of a JSON string"
        )),
    }
}

/// Returns a known name as `${name}`, which other tools fill in.
fn foreign_placeholder<'t>(text: &'t str, known: &dyn Fn(&str) -> bool) -> Option<&'t str> {
    let marks = text.match_indices("${").filter(|(at, _)| !text[..*at].ends_with('\\'));
    let names = marks.filter_map(|(at, mark)| Some(text[at + mark.len()..].split_once('}')?.0));
    names.into_iter().find(|name| known(name.trim()))
}

fn unknown(marks: Marks, name: &str) -> String {
    match marks {
        Marks::Dollar => {
            format!("${{{name}}} is neither in [vars] nor captured by an earlier step")
        }
        Marks::Braces => format!(
            "{{{{{name}}}}} is not defined: it is not a variable of [vars], not a column of a feeder \
             (written feeder.column), and no earlier step captures it"
        ),
    }
}
