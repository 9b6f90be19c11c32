//! The part of a case's file that gives code its parameters.

use super::read::Wrong;
use crate::session::families;
use serde::Deserialize;
use std::collections::BTreeMap;
use units::{Nanos, parse_duration, parse_size, quoted};

/// Code that carries a case out, and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Which code.
    pub run: String,
    pub with: BTreeMap<String, Parameter>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// A plain number, of what the name says; a size is in bytes.
    Number(f64),
    Span(Nanos),
    Text(String),
}

/// What a parameter must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    Number,
    /// Bytes: `"1MiB"`, or a number.
    Size,
    /// `"60s"`.
    Span,
    Text,
}

impl Family {
    /// The number or size; 0 when there is none, which the reader of cases excludes.
    pub fn number(&self, name: &str) -> f64 {
        match self.with.get(name) {
            Some(Parameter::Number(number)) => *number,
            _ => 0.0,
        }
    }

    /// The number or size as a count; 0 when there is none, which the reader of cases excludes.
    pub fn count(&self, name: &str) -> u64 {
        // values below zero and beyond the range saturate
        self.number(name) as u64
    }

    /// The span; zero when there is none, which the reader of cases excludes.
    pub fn span(&self, name: &str) -> Nanos {
        match self.with.get(name) {
            Some(Parameter::Span(span)) => *span,
            _ => Nanos::ZERO,
        }
    }

    /// The text; empty when there is none, which the reader of cases excludes.
    pub fn text(&self, name: &str) -> &str {
        match self.with.get(name) {
            Some(Parameter::Text(text)) => text,
            _ => "",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FamilyText {
    run: toml::Spanned<String>,
    #[serde(default)]
    with: BTreeMap<String, toml::Spanned<toml::Value>>,
}

/// Every parameter of the code is given, in its kind, and no other.
pub(super) fn family(read: FamilyText) -> Result<Family, Wrong> {
    let (at, run) = (read.run.span().start, read.run.into_inner());
    let Some(member) = families::named(&run) else {
        let why = format!("{} is no family: {} are", quoted(&run), families::names().join(", "));
        return Err(Wrong { at, why });
    };
    let mut with = BTreeMap::new();
    for (name, given) in read.with {
        let at = given.span().start;
        let known = member.parameters.iter().find(|(known, _)| *known == name);
        let Some((_, kind)) = known else {
            return Err(Wrong { at, why: format!("{run} has no parameter {}", quoted(&name)) });
        };
        let value = parameter(*kind, given.into_inner()).map_err(|why| Wrong { at, why })?;
        with.insert(name, value);
    }
    match member.parameters.iter().find(|(name, _)| !with.contains_key(*name)) {
        Some((name, _)) => Err(Wrong { at, why: format!("{run} needs the parameter `{name}`") }),
        None => Ok(Family { run, with }),
    }
}

fn parameter(kind: ParameterKind, given: toml::Value) -> Result<Parameter, String> {
    use toml::Value::{Float, Integer, String as Text};
    match (kind, given) {
        (ParameterKind::Number | ParameterKind::Size, Integer(number)) if number >= 0 => {
            Ok(Parameter::Number(number as f64))
        }
        (ParameterKind::Number, Float(number)) if number.is_finite() && number >= 0.0 => {
            Ok(Parameter::Number(number))
        }
        (ParameterKind::Size, Text(text)) => parse_size(&text)
            .map(|bytes| Parameter::Number(bytes as f64))
            .map_err(|error| error.to_string()),
        (ParameterKind::Span, Text(text)) => {
            parse_duration(&text).map(Parameter::Span).map_err(|error| error.to_string())
        }
        (ParameterKind::Text, Text(text)) => Ok(Parameter::Text(text)),
        (ParameterKind::Number, other) => Err(format!("{other} is no number from 0")),
        (ParameterKind::Size, other) => Err(format!("{other} is no size, such as \"1MiB\"")),
        (ParameterKind::Span, other) => Err(format!("{other} is no span, such as \"60s\"")),
        (ParameterKind::Text, other) => Err(format!("{other} is no text")),
    }
}
