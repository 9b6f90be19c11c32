//! The part of a case's file that gives code its parameters.

use super::read::CaseFault;
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

/// Every family, and what its file must give it.
pub(super) const FAMILIES: &[(&str, &[(&str, ParameterKind)])] = &[
    (
        "connection.bytes",
        &[
            ("short", ParameterKind::Size),
            ("long", ParameterKind::Size),
            ("rounds", ParameterKind::Number),
        ],
    ),
    ("connection.same-port", &[("connections", ParameterKind::Number)]),
    (
        "connection.splits",
        &[
            ("splits", ParameterKind::Number),
            ("together", ParameterKind::Number),
            ("pause", ParameterKind::Span),
        ],
    ),
    (
        "escalate",
        &[
            ("levels", ParameterKind::Number),
            ("length", ParameterKind::Size),
            ("gap", ParameterKind::Span),
            ("hold", ParameterKind::Span),
            ("waiting", ParameterKind::Number),
        ],
    ),
    (
        "frames",
        &[
            ("kind", ParameterKind::Text),
            ("connections", ParameterKind::Number),
            ("frames", ParameterKind::Number),
            ("each", ParameterKind::Number),
            ("pause", ParameterKind::Span),
            ("hold", ParameterKind::Span),
        ],
    ),
    (
        "hang.gone",
        &[
            ("times", ParameterKind::Number),
            ("most", ParameterKind::Number),
            ("patience", ParameterKind::Span),
        ],
    ),
    ("limit.body", &[("most", ParameterKind::Size)]),
    ("limit.chunks", &[("most", ParameterKind::Size), ("number", ParameterKind::Number)]),
    ("limit.deadlines", &[]),
    ("limit.declared", &[("most", ParameterKind::Size)]),
    ("limit.fields", &[("most", ParameterKind::Number)]),
    ("limit.head", &[("most", ParameterKind::Size)]),
    ("limit.method", &[("most", ParameterKind::Size)]),
    ("limit.name", &[("most", ParameterKind::Size)]),
    ("limit.pairs", &[("most", ParameterKind::Number)]),
    ("limit.pipeline", &[("most", ParameterKind::Number)]),
    ("limit.ranges", &[("most", ParameterKind::Number)]),
    ("limit.requests", &[("most", ParameterKind::Number)]),
    ("limit.target", &[("most", ParameterKind::Size)]),
    ("limit.trailers", &[("most", ParameterKind::Size), ("number", ParameterKind::Number)]),
    ("limit.value", &[("most", ParameterKind::Size)]),
    ("lint", &[]),
    (
        "mixed",
        &[
            ("connections", ParameterKind::Number),
            ("depth", ParameterKind::Number),
            ("rounds", ParameterKind::Number),
            ("order", ParameterKind::Text),
            ("beside", ParameterKind::Text),
        ],
    ),
    (
        crate::fuzz::mutate::FAMILY,
        &[
            ("corpus", ParameterKind::Number),
            ("number", ParameterKind::Number),
            ("span", ParameterKind::Span),
        ],
    ),
    (
        "overload.held",
        &[
            ("from", ParameterKind::Number),
            ("ceiling", ParameterKind::Number),
            ("step", ParameterKind::Span),
            ("waiting", ParameterKind::Number),
            ("hold", ParameterKind::Span),
        ],
    ),
    (
        "overload.mixed",
        &[
            ("from", ParameterKind::Number),
            ("ceiling", ParameterKind::Number),
            ("step", ParameterKind::Span),
            ("waiting", ParameterKind::Number),
            ("hold", ParameterKind::Span),
        ],
    ),
    (
        "overload.restart",
        &[
            ("from", ParameterKind::Number),
            ("ceiling", ParameterKind::Number),
            ("step", ParameterKind::Span),
            ("waiting", ParameterKind::Number),
            ("watch", ParameterKind::Span),
        ],
    ),
    (
        "overload.soak",
        &[
            ("from", ParameterKind::Number),
            ("ceiling", ParameterKind::Number),
            ("step", ParameterKind::Span),
            ("waiting", ParameterKind::Number),
            ("window", ParameterKind::Span),
            ("odd", ParameterKind::Number),
        ],
    ),
    (
        "overload.spike",
        &[
            ("from", ParameterKind::Number),
            ("ceiling", ParameterKind::Number),
            ("step", ParameterKind::Span),
            ("waiting", ParameterKind::Number),
            ("spike", ParameterKind::Span),
        ],
    ),
    (
        "overload.starve",
        &[
            ("from", ParameterKind::Number),
            ("ceiling", ParameterKind::Number),
            ("step", ParameterKind::Span),
            ("waiting", ParameterKind::Number),
            ("starve", ParameterKind::Span),
        ],
    ),
    ("overload.storm", &[("storm", ParameterKind::Span), ("connections", ParameterKind::Number)]),
    (
        "pages",
        &[
            ("each", ParameterKind::Number),
            ("length", ParameterKind::Size),
            ("pages", ParameterKind::Number),
        ],
    ),
    (
        "press.burst",
        &[
            ("connections", ParameterKind::Number),
            ("within", ParameterKind::Span),
            ("silence", ParameterKind::Span),
        ],
    ),
    (
        "press.ends",
        &[
            ("connections", ParameterKind::Number),
            ("within", ParameterKind::Span),
            ("horizon", ParameterKind::Span),
        ],
    ),
    (
        "press.held",
        &[
            ("state", ParameterKind::Text),
            ("connections", ParameterKind::Number),
            ("hold", ParameterKind::Span),
        ],
    ),
    (
        "press.honest",
        &[
            ("connections", ParameterKind::Number),
            ("rate", ParameterKind::Size),
            ("size", ParameterKind::Size),
        ],
    ),
    ("press.keep-alive", &[("requests", ParameterKind::Number)]),
    ("press.rate", &[("rate", ParameterKind::Number), ("span", ParameterKind::Span)]),
    (
        "press.resets",
        &[
            ("connections", ParameterKind::Number),
            ("rate", ParameterKind::Number),
            ("rounds", ParameterKind::Number),
        ],
    ),
    (
        "segments.cuts",
        &[
            ("splits", ParameterKind::Number),
            ("together", ParameterKind::Number),
            ("pause", ParameterKind::Span),
        ],
    ),
    (
        "segments.held",
        &[
            ("kind", ParameterKind::Text),
            ("connections", ParameterKind::Number),
            ("hold", ParameterKind::Span),
        ],
    ),
    ("segments.overlap", &[("rounds", ParameterKind::Number)]),
    ("slow.body", &[("horizon", ParameterKind::Span), ("soon", ParameterKind::Span)]),
    (
        "slow.body-dripped",
        &[
            ("horizon", ParameterKind::Span),
            ("soon", ParameterKind::Span),
            ("every", ParameterKind::Span),
        ],
    ),
    ("slow.handshake", &[("horizon", ParameterKind::Span), ("soon", ParameterKind::Span)]),
    ("slow.head", &[("horizon", ParameterKind::Span), ("soon", ParameterKind::Span)]),
    (
        "slow.head-dripped",
        &[
            ("horizon", ParameterKind::Span),
            ("soon", ParameterKind::Span),
            ("every", ParameterKind::Span),
        ],
    ),
    ("slow.idle", &[("horizon", ParameterKind::Span), ("soon", ParameterKind::Span)]),
    ("slow.silent", &[("horizon", ParameterKind::Span), ("soon", ParameterKind::Span)]),
    (
        "slow.sipped",
        &[
            ("horizon", ParameterKind::Span),
            ("soon", ParameterKind::Span),
            ("least", ParameterKind::Size),
            ("buffer", ParameterKind::Size),
        ],
    ),
    (
        "slow.unread",
        &[
            ("horizon", ParameterKind::Span),
            ("soon", ParameterKind::Span),
            ("least", ParameterKind::Size),
            ("buffer", ParameterKind::Size),
        ],
    ),
    ("tls.again", &[("connections", ParameterKind::Number), ("wait", ParameterKind::Span)]),
    ("tls.handshakes", &[("rate", ParameterKind::Number), ("hold", ParameterKind::Span)]),
    ("tls.pieces", &[("wait", ParameterKind::Span)]),
    ("tls.records", &[("wait", ParameterKind::Span)]),
    ("tls.silent", &[("horizon", ParameterKind::Span), ("soon", ParameterKind::Span)]),
];

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
pub(super) fn family(read: FamilyText) -> Result<Family, CaseFault> {
    let (at, run) = (read.run.span().start, read.run.into_inner());
    let Some((_, parameters)) = FAMILIES.iter().find(|(name, _)| *name == run) else {
        let why = format!(
            "{} is no family: {} are",
            quoted(&run),
            FAMILIES.iter().map(|(name, _)| *name).collect::<Vec<&str>>().join(", ")
        );
        return Err(CaseFault { at, why });
    };
    let mut with = BTreeMap::new();
    for (name, given) in read.with {
        let at = given.span().start;
        let known = parameters.iter().find(|(known, _)| *known == name);
        let Some((_, kind)) = known else {
            return Err(CaseFault { at, why: format!("{run} has no parameter {}", quoted(&name)) });
        };
        let value = parameter(*kind, given.into_inner()).map_err(|why| CaseFault { at, why })?;
        with.insert(name, value);
    }
    match parameters.iter().find(|(name, _)| !with.contains_key(*name)) {
        Some((name, _)) => {
            Err(CaseFault { at, why: format!("{run} needs the parameter `{name}`") })
        }
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
        (ParameterKind::Number, other) => Err(format!("{other} is not a number from 0")),
        (ParameterKind::Size, other) => Err(format!("{other} is not a size, such as \"1MiB\"")),
        (ParameterKind::Span, other) => Err(format!("{other} is not a span, such as \"60s\"")),
        (ParameterKind::Text, other) => Err(format!("{other} is not text")),
    }
}
