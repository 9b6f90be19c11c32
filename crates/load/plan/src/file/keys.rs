//! Tables of the plan file whose keys are rows of the option table.

use super::read::{Table, duplicate_error};
use crate::options::Scalar;
use crate::options::{Given, Inputs, KeyValue, Setting, Shape, keys_of, rows_of};
use crate::stages::StageUnit;
use crate::{FileSource, Plan, Secrets, options};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{ParseError, quoted};
use wan::{Trace, TraceSource};

/// Tables that are read and printed row by row.
pub(crate) const TABLES: [&str; 14] = [
    "connection",
    "http2",
    "tls",
    "timeouts",
    "measure",
    "driver",
    "expect",
    "request",
    "",
    "stop",
    "load",
    "grpc",
    "websocket",
    "token",
];
pub(super) const CONNECTION: usize = 0;
pub(super) const HTTP2: usize = 1;
pub(super) const TLS: usize = 2;
pub(super) const TIMEOUTS: usize = 3;
pub(super) const MEASURE: usize = 4;
pub(super) const DRIVER: usize = 5;
pub(super) const EXPECT: usize = 6;
pub(super) const REQUEST: usize = 7;
/// Keys outside all tables.
pub(super) const TOP: usize = 8;
pub(super) const STOP: usize = 9;
pub(super) const LOAD: usize = 10;
pub(super) const GRPC: usize = 11;
pub(super) const WEBSOCKET: usize = 12;
pub(super) const TOKEN: usize = 13;

/// Keys of the table [`TABLES`]`[TABLE]` of a file, in its order.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys<const TABLE: usize>(Vec<(String, KeyValue)>);

impl<const TABLE: usize> Keys<TABLE> {
    /// Applies the keys of a file to the plan.
    ///
    /// # Errors
    /// Fails if a value does not match its grammar; the error names the key.
    pub(super) fn read(mut self, plan: &mut Plan, inputs: Inputs<'_>) -> Result<(), ParseError> {
        if let Some((key, why)) = self.contradiction() {
            return Err(Table(TABLES[TABLE]).fault(key, why));
        }
        let mut all = Vec::new();
        for row in rows_of(TABLES[TABLE]) {
            let key = row.key().1;
            let ending = |name: &str| {
                let ending = name.strip_prefix(key)?;
                row.field.endings.iter().copied().find(|known| *known == ending)
            };
            let given = self.0.extract_if(.., |(name, _)| ending(name).is_some());
            let given = given.filter_map(|(name, value)| Some((ending(&name)?, value)));
            let before = all.len();
            all.extend(given.map(|(ending, value)| Given { row, ending, value }));
            if all.len() > before + 1 {
                return Err(Table(TABLES[TABLE]).fault(key, duplicate_error(key)));
            }
        }
        options::put(plan, all, inputs).map_err(|(row, ending, why)| {
            let key = format!("{}{ending}", row.key().1);
            Table(TABLES[TABLE]).fault(&key, why)
        })
    }

    /// Returns the keys that exclude each other, with the key to report.
    fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        let has = |key| self.has(key);
        let staged = self.one("stages").and_then(|text| text.typed());
        let other = staged.is_some_and(|text| match StageUnit::from_text(&text) {
            StageUnit::Users => has("rate"),
            StageUnit::PerSecond => has("users"),
        });
        let found = [
            (
                has("pipeline") && has("streams"),
                "streams",
                "it is the HTTP/2 name of pipeline: give one of them",
            ),
            (
                other,
                "stages",
                "the load has stages of users and a rate, or stages of rates and users; drop one",
            ),
            (
                has("users") && (has("rate") || has("at")),
                "users",
                "a load has either users or a rate; drop one",
            ),
        ];
        found.into_iter().find(|it| it.0).map(|(_, key, why)| (key, why))
    }

    pub(super) fn show(plan: &Plan, secrets: Secrets) -> Keys<TABLE> {
        let shown = keys_of(TABLES[TABLE]).into_iter().filter(|row| (row.shown)(plan));
        let show = |row: &Setting| {
            let (ending, value) = (row.field.show)(plan, secrets);
            (format!("{}{ending}", row.key().1), value)
        };
        Keys(shown.map(show).collect())
    }

    /// Wraps keys that were read elsewhere.
    pub(super) fn new<const N: usize>(given: [(&str, Option<Scalar>); N]) -> Keys<TABLE> {
        let one =
            |(key, value): (&str, Option<Scalar>)| Some((key.to_owned(), KeyValue::One(value?)));
        Keys(given.into_iter().filter_map(one).collect())
    }

    /// Returns the value shown under a key.
    pub(super) fn one(&self, key: &str) -> Option<Scalar> {
        self.0.iter().find_map(|(name, value)| match value {
            KeyValue::One(value) if name == key => Some(value.clone()),
            _ => None,
        })
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    /// Returns whether a key has a value other than `false`.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.0.iter().any(|(name, value)| name == key && *value != KeyValue::One(Scalar::Off))
    }

    /// Returns the texts by name under a key.
    pub(super) fn texts(&self, key: &str) -> BTreeMap<String, String> {
        match self.0.iter().find(|(name, _)| name == key) {
            Some((_, KeyValue::Texts(texts))) => texts.clone(),
            _ => BTreeMap::new(),
        }
    }
}

/// Traces embedded in the plan, and files for the other names.
pub(super) struct PlanTraces<'a> {
    held: BTreeMap<String, Arc<Trace>>,
    files: &'a dyn FileSource,
}

impl<'a> PlanTraces<'a> {
    /// # Errors
    /// Fails if a text is not a trace.
    pub(super) fn read(
        texts: BTreeMap<String, String>,
        files: &'a dyn FileSource,
    ) -> Result<PlanTraces<'a>, ParseError> {
        let read = |(name, gaps): (String, String)| {
            let trace = Trace::parse_gaps(&gaps).map_err(|fault| {
                Table("connection").fault("traces", format!("{}: {fault}", quoted(&name)))
            })?;
            Ok((name, Arc::new(trace)))
        };
        Ok(PlanTraces { held: texts.into_iter().map(read).collect::<Result<_, _>>()?, files })
    }
}

impl TraceSource for PlanTraces<'_> {
    fn trace(&self, file: &str) -> Result<Arc<Trace>, String> {
        match self.held.get(file) {
            Some(trace) => Ok(trace.clone()),
            None => Trace::parse_file(file, &self.files.read(file)?),
        }
    }
}

impl Serialize for KeyValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            KeyValue::One(value) => value.serialize(serializer),
            KeyValue::Switch(on) => serializer.serialize_bool(*on),
            KeyValue::List(items) => items.serialize(serializer),
            KeyValue::Texts(texts) => texts.serialize(serializer),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Shape {
    type Value = KeyValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<KeyValue, D::Error> {
        match self {
            Shape::One => Scalar::deserialize(deserializer).map(KeyValue::One),
            Shape::Text => String::deserialize(deserializer).map(Scalar::Text).map(KeyValue::One),
            Shape::Switch => bool::deserialize(deserializer).map(KeyValue::Switch),
            Shape::List => Vec::deserialize(deserializer).map(KeyValue::List),
            Shape::Texts => BTreeMap::deserialize(deserializer).map(KeyValue::Texts),
        }
    }
}

impl<const TABLE: usize> Serialize for Keys<TABLE> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de, const TABLE: usize> Deserialize<'de> for Keys<TABLE> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rows = keys_of(TABLES[TABLE]);
        let key = |row: &'static Setting| {
            let shape = row.field.shape;
            row.field.endings.iter().map(move |ending| (format!("{}{ending}", row.key().1), shape))
        };
        let known: Vec<_> = rows.into_iter().flat_map(key).collect();
        deserializer.deserialize_map(KeysVisitor(&known)).map(Keys)
    }
}

/// Collects the keys of a table, with the kinds of their values.
#[derive(Clone, Copy)]
struct KeysVisitor<'a>(&'a [(String, Shape)]);

impl<'de> Visitor<'de> for KeysVisitor<'_> {
    type Value = Vec<(String, KeyValue)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut given = Vec::new();
        while let Some((key, shape)) = map.next_key_seed(KnownKey(self.0))? {
            given.push((key, map.next_value_seed(shape)?));
        }
        Ok(given)
    }
}

/// A key as read, so that an error about an unknown key has its line.
struct KnownKey<'a>(&'a [(String, Shape)]);

impl<'de> DeserializeSeed<'de> for KnownKey<'_> {
    type Value = (String, Shape);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let key = String::deserialize(deserializer)?;
        let known = self.0.iter().find(|(known, _)| *known == key).cloned();
        known.ok_or_else(|| {
            let names: Vec<String> = self.0.iter().map(|(name, _)| format!("`{name}`")).collect();
            let names = names.join(", ");
            D::Error::custom(format!("unknown field `{key}`, expected one of {names}"))
        })
    }
}
