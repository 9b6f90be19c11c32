//! One value of the plan file: a text, a number, or `false` for "none".

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Off,
    Whole(i64),
    Number(f64),
    Text(String),
}

impl Scalar {
    /// Returns the value as typed on the command line; `None` for `false`.
    pub(crate) fn typed(&self) -> Option<String> {
        Some(match self {
            Scalar::Off => return None,
            Scalar::Whole(number) => number.to_string(),
            // `http = 1.0` is typed 1.0
            Scalar::Number(number) if number.fract().abs() <= 0.0 => format!("{number:.1}"),
            Scalar::Number(number) => number.to_string(),
            Scalar::Text(text) => text.clone(),
        })
    }

    /// Returns a number, for checking bounds; `None` otherwise.
    pub(crate) fn amount(&self) -> f64 {
        match self {
            Scalar::Whole(number) => *number as f64,
            Scalar::Number(number) => *number,
            Scalar::Off | Scalar::Text(_) => f64::NAN,
        }
    }

    /// Returns a whole number; TOML's integers end at 2^63.
    pub(crate) fn whole(number: u64) -> Scalar {
        i64::try_from(number).map_or_else(|_| Scalar::Text(number.to_string()), Scalar::Whole)
    }

    pub(crate) fn text(text: impl Into<String>) -> Scalar {
        Scalar::Text(text.into())
    }

    pub(crate) fn or_off<T>(value: Option<T>, show: impl FnOnce(T) -> Scalar) -> Option<Scalar> {
        Some(value.map_or(Scalar::Off, show))
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Scalar::Off => serializer.serialize_bool(false),
            Scalar::Whole(number) => serializer.serialize_i64(*number),
            Scalar::Number(number) => serializer.serialize_f64(*number),
            Scalar::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text in quotes, a number, or false for none")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Scalar, E> {
        if value {
            return Err(E::custom("true is not enough here: give the value, or false for none"));
        }
        Ok(Scalar::Off)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar::whole(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar::text(value))
    }
}
