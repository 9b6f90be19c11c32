//! Enums of lower crates, written and read as their stable ids; those crates do not depend on
//! serde.

use stats::compare::Scale;
use stats::curve::{Axis, CapacityEnd, OverloadShape, Purpose};
use stats::diagnosis::Confidence;
use stats::interval::Method;
use stats::{CauseId, State};

use sample::{Blame, FailureClass};

const SCALES: [Scale; 2] = [Scale::Ratio, Scale::Points];

fn scale_id(scale: Scale) -> &'static str {
    match scale {
        Scale::Ratio => "ratio",
        Scale::Points => "points",
    }
}

/// A module for serde's `with`: `$all` are the values, `$id` returns the id of a value.
macro_rules! by_id {
    ($module:ident, $type:ty, $all:expr, $id:expr, $what:literal) => {
        pub(crate) mod $module {
            use super::*;
            use serde::{Deserialize, Deserializer, Serializer, de::Error};

            pub(crate) fn serialize<S: Serializer>(one: &$type, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str($id(*one))
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                from: D,
            ) -> Result<$type, D::Error> {
                let id = String::deserialize(from)?;
                let found = $all.iter().copied().find(|one| $id(*one) == id);
                found.ok_or_else(|| {
                    D::Error::custom(format!(concat!("{} is not ", $what), units::quoted(&id)))
                })
            }

            /// Returns a schema that lists the ids.
            #[cfg(any(test, feature = "schema"))]
            pub(crate) fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let ids: Vec<&str> = $all.iter().map(|one| $id(*one)).collect();
                schemars::json_schema!({ "type": "string", "enum": ids })
            }
        }
    };
}

/// The same for a value that may be missing.
macro_rules! by_id_or_none {
    ($name:ident, $of:ty, $by:literal, $schema:literal) => {
        pub(crate) mod $name {
            #[cfg(any(test, feature = "schema"))]
            use schemars::JsonSchema;
            use serde::{Deserialize, Deserializer, Serialize, Serializer};

            #[derive(Serialize, Deserialize)]
            #[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
            #[cfg_attr(any(test, feature = "schema"), schemars(inline))]
            struct ById(
                #[serde(with = $by)]
                #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = $schema))]
                $of,
            );

            pub(crate) fn serialize<S: Serializer>(
                one: &Option<$of>,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                one.map(ById).serialize(to)
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                from: D,
            ) -> Result<Option<$of>, D::Error> {
                Ok(Option::<ById>::deserialize(from)?.map(|ById(one)| one))
            }

            /// Returns a schema that lists the ids, and null.
            #[cfg(any(test, feature = "schema"))]
            pub(crate) fn schema(to: &mut schemars::SchemaGenerator) -> schemars::Schema {
                Option::<ById>::json_schema(to)
            }
        }
    };
}

pub(crate) use {by_id, by_id_or_none};

by_id!(axis, Axis, Axis::ALL, Axis::id, "an axis");
by_id!(blame, Blame, Blame::ALL, Blame::id, "to blame");
by_id!(capacity_end, CapacityEnd, CapacityEnd::ALL, CapacityEnd::id, "an end of a search");
by_id!(cause, CauseId, CauseId::ALL, CauseId::id, "a cause");
by_id!(change_scale, Scale, SCALES, scale_id, "a scale");
by_id!(confidence, Confidence, Confidence::ALL, Confidence::id, "a confidence");
by_id!(failure_class, FailureClass, FailureClass::ALL, FailureClass::id, "a class of failures");
by_id!(method, Method, Method::ALL, Method::id, "a method");
by_id!(overload_shape, OverloadShape, OverloadShape::ALL, OverloadShape::id, "a shape");
by_id!(purpose, Purpose, Purpose::ALL, Purpose::id, "a purpose");
by_id!(state, State, State::ALL, State::id, "a state of a verdict");

/// An objective, as typed.
pub(crate) mod objective {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use stats::Objective;

    pub(crate) fn serialize<S: Serializer>(one: &Objective, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&one.text)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Objective, D::Error> {
        Objective::parse(&String::deserialize(from)?).map_err(|error| D::Error::custom(error.0))
    }
}

/// Objectives in a row, as they were typed; empty without any.
pub(crate) mod objectives {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use stats::{Objective, parse_objectives};

    pub(crate) fn serialize<S: Serializer>(all: &[Objective], to: S) -> Result<S::Ok, S::Error> {
        let texts: Vec<&str> = all.iter().map(|one| one.text.as_str()).collect();
        to.serialize_str(&texts.join(", "))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Objective>, D::Error> {
        match String::deserialize(from)?.as_str() {
            "" => Ok(Vec::new()),
            rules => parse_objectives(rules).map_err(|error| D::Error::custom(error.0)),
        }
    }
}
