//! Enums of the torture crate, written and read as their stable ids.

use crate::ids::{by_id, by_id_or_none};
use torture::case::RequirementLevel;
use torture::judge::{FailureKind, Severity, TestOutcome};
use torture::result::{ProbeKind, Seen, Unit};
use torture::safety::Class;

const CLASSES: [Class; 4] = [Class::Local, Class::Private, Class::Public, Class::Never];
const LEVELS: [RequirementLevel; 4] = [
    RequirementLevel::Must,
    RequirementLevel::Should,
    RequirementLevel::May,
    RequirementLevel::Opinion,
];
const UNITS: [Unit; 9] = [
    Unit::Bytes,
    Unit::Fields,
    Unit::Seconds,
    Unit::Spent,
    Unit::Connections,
    Unit::Requests,
    Unit::PerSecond,
    Unit::Ratio,
    Unit::Count,
];

const PROBE_KINDS: [ProbeKind; 2] = [ProbeKind::New, ProbeKind::Keep];
const ALL_SEEN: [Seen; 3] = [Seen::Correct, Seen::Shed, Seen::Lost];

pub(super) fn probe_kind_id(kind: ProbeKind) -> &'static str {
    match kind {
        ProbeKind::New => "new",
        ProbeKind::Keep => "keep",
    }
}

pub(super) fn seen_id(seen: Seen) -> &'static str {
    match seen {
        Seen::Correct => "correct",
        Seen::Shed => "shed",
        Seen::Lost => "lost",
    }
}

fn unit_id(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "bytes",
        Unit::Fields => "fields",
        Unit::Seconds => "seconds",
        Unit::Spent => "spent_seconds",
        Unit::Connections => "connections",
        Unit::Requests => "requests",
        Unit::PerSecond => "per_second",
        Unit::Ratio => "ratio",
        Unit::Count => "count",
    }
}

by_id!(outcome, TestOutcome, TestOutcome::ALL, TestOutcome::id, "an outcome");
by_id!(class, Class, CLASSES, Class::id, "a class of addresses");
by_id!(level, RequirementLevel, LEVELS, RequirementLevel::id, "a level");
by_id!(unit, Unit, UNITS, unit_id, "a unit");
by_id!(probe_kind, ProbeKind, PROBE_KINDS, probe_kind_id, "a kind of probe");
by_id!(seen, Seen, ALL_SEEN, seen_id, "seen by a probe");

by_id!(severity, Severity, Severity::ALL, Severity::id, "a severity");

by_id_or_none!(
    severity_or_none,
    torture::judge::Severity,
    "super::severity",
    "super::severity::schema"
);
by_id_or_none!(
    outcome_or_none,
    torture::judge::TestOutcome,
    "super::outcome",
    "super::outcome::schema"
);

/// A way to fail, as shown: `hang`, `500`.
pub(super) mod kind {
    use super::FailureKind;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(one: &FailureKind, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(one)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<FailureKind, D::Error> {
        let text = String::deserialize(from)?;
        FailureKind::from_name(&text).ok_or_else(|| {
            D::Error::custom(format!("{} is not a kind of failure", units::quoted(&text)))
        })
    }

    #[cfg(any(test, feature = "schema"))]
    pub(crate) fn schema(to: &mut schemars::SchemaGenerator) -> schemars::Schema {
        to.subschema_for::<String>()
    }
}
