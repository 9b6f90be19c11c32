//! Values of the file with their lines, so that every message can name them.

use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};
use units::{ParseError, quoted};

/// A value under its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    text: &'a str,
    /// Offset of the first byte in `text`.
    pub(crate) at: usize,
    pub(crate) key: &'a str,
    value: &'a DeValue<'a>,
}

/// Table whose keys are taken out one by one; unread keys are rejected.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    text: &'a str,
    at: usize,
    name: &'a str,
    left: BTreeMap<&'a str, Node<'a>>,
    asked: Vec<&'static str>,
}

/// Returns the line of a byte of the text, from 1.
fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

impl<'a> Table<'a> {
    pub(crate) fn new(
        text: &'a str,
        at: usize,
        name: &'a str,
        table: &'a DeTable<'a>,
    ) -> Table<'a> {
        let node = |(key, value): (&'a toml::Spanned<_>, &'a toml::Spanned<DeValue<'a>>)| {
            let key: &'a std::borrow::Cow<'a, str> = key.get_ref();
            let at = value.span().start;
            (key.as_ref(), Node { text, at, key: key.as_ref(), value: value.get_ref() })
        };
        let left = table.iter().map(node).collect();
        Table { text, at, name, left, asked: Vec::new() }
    }

    pub(crate) fn take(&mut self, key: &'static str) -> Option<Node<'a>> {
        self.asked.push(key);
        self.left.remove(key)
    }

    /// Returns the value of a flag; false if the key is absent.
    pub(crate) fn flag(&mut self, key: &'static str) -> Result<bool, ParseError> {
        self.take(key).map_or(Ok(false), |node| node.flag())
    }

    /// Returns the value of a key, and leaves it marked as unread.
    pub(crate) fn find(&self, key: &str) -> Option<Node<'a>> {
        self.left.get(key).copied()
    }

    /// Hides these keys from messages that list known keys.
    pub(crate) fn hide_keys(&mut self, keys: &[&str]) {
        self.asked.retain(|asked| !keys.contains(asked));
    }

    /// Returns the remaining keys, in file order.
    pub(crate) fn rest(&mut self) -> Vec<Node<'a>> {
        let mut rest: Vec<Node<'a>> = std::mem::take(&mut self.left).into_values().collect();
        rest.sort_by_key(|node| node.at);
        rest
    }

    pub(crate) fn line(&self) -> usize {
        line_of(self.text, self.at)
    }

    pub(crate) fn fault(&self, why: impl std::fmt::Display) -> ParseError {
        ParseError(format!("line {}: {}: {why}", self.line(), self.name))
    }

    /// # Errors
    /// Fails for unread keys; the message lists the known ones.
    pub(crate) fn close(mut self) -> Result<(), ParseError> {
        let known = self.asked.join(", ");
        match self.rest().first() {
            None => Ok(()),
            Some(node) => {
                Err(node.fault(format!("not a key of {}; its keys are {known}", self.name)))
            }
        }
    }
}

impl<'a> Node<'a> {
    pub(crate) fn fault(&self, why: impl std::fmt::Display) -> ParseError {
        ParseError(format!("line {}: {}: {why}", line_of(self.text, self.at), self.key))
    }

    fn wants(&self, what: &str) -> ParseError {
        self.fault(format!("it must be {what}, and is {}", self.kind()))
    }

    fn kind(&self) -> &'static str {
        match self.value {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        }
    }

    pub(crate) fn text(&self) -> Result<&'a str, ParseError> {
        match self.value {
            DeValue::String(text) => Ok(text.as_ref()),
            _ => Err(self.wants("a text in quotes")),
        }
    }

    /// Returns a text, or a number as written.
    pub(crate) fn text_or_number(&self) -> Result<String, ParseError> {
        match self.value {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            DeValue::Integer(number) => Ok(number.to_string()),
            DeValue::Float(number) => Ok(number.to_string()),
            _ => Err(self.wants("a text in quotes or a number")),
        }
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self.value, DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_))
    }

    /// Parses `true` or `false`; `None` for anything else.
    pub(crate) fn switch(&self) -> Option<bool> {
        match self.value {
            DeValue::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn flag(&self) -> Result<bool, ParseError> {
        self.switch().ok_or_else(|| self.wants("true or false"))
    }

    /// Returns a list, or a single value as a list of one.
    pub(crate) fn list(&self) -> Vec<Node<'a>> {
        let one = |value: &'a toml::Spanned<DeValue<'a>>| Node {
            at: value.span().start,
            value: value.get_ref(),
            ..*self
        };
        match self.value {
            DeValue::Array(values) => values.iter().map(one).collect(),
            _ => vec![*self],
        }
    }

    /// Returns the tables under a key: a list of them, or a single one.
    pub(crate) fn tables(&self) -> Result<Vec<Table<'a>>, ParseError> {
        self.list().iter().map(Node::table).collect()
    }

    pub(crate) fn table(&self) -> Result<Table<'a>, ParseError> {
        match self.value {
            DeValue::Table(table) => Ok(Table::new(self.text, self.at, self.key, table)),
            _ => Err(self.wants("a table")),
        }
    }

    /// Returns the value as JSON; dates become strings.
    ///
    /// # Errors
    /// Fails for a number that JSON does not have.
    pub(crate) fn json(&self) -> Result<serde_json::Value, ParseError> {
        use serde_json::Value;
        Ok(match self.value {
            DeValue::String(text) => Value::String(text.clone().into_owned()),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(date) => Value::String(date.to_string()),
            DeValue::Integer(number) => {
                let whole = i64::from_str_radix(number.as_str(), number.radix());
                whole.map(Value::from).map_err(|_| self.fault("the number is too large"))?
            }
            DeValue::Float(number) => {
                let value: Option<f64> = number.as_str().parse().ok();
                let value = value.and_then(serde_json::Number::from_f64);
                Value::Number(value.ok_or_else(|| self.fault("JSON cannot represent this number"))?)
            }
            DeValue::Array(_) => {
                Value::Array(self.list().iter().map(Node::json).collect::<Result<_, _>>()?)
            }
            DeValue::Table(_) => {
                let entries = self.table()?.rest();
                let entry = |node: &Node<'_>| Ok((node.key.to_owned(), node.json()?));
                Value::Object(entries.iter().map(entry).collect::<Result<_, ParseError>>()?)
            }
        })
    }
}

/// Parses one of a few names.
pub(crate) fn pick<T: Copy>(text: &str, names: &[(&str, T)]) -> Result<T, ParseError> {
    let found = names.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        ParseError(format!("{} is not one of {}", quoted(text), known.join(", ")))
    })
}
