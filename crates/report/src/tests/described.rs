//! The published schemas against the records: every key that a record has is described, at every
//! depth; no schema describes a key that no record has; lists of names are those of the types.

use super::{curves, fixtures, schema_of, sessions, tortures};
use plan::scenario::ScenarioPlan;
use record::server::Conduct;
use sample::{AgentFacts, Blame, FleetFacts, PathFacts, PathKind, SutRow, SutSeries, TlsFacts};
use serde_json::Value;
use stats::curve::{Axis, CapacityEnd, OverloadShape, Purpose};
use stats::diagnosis::Confidence;
use stats::{CauseId, State};
use std::collections::BTreeSet;

/// The schemas that refer to each other, by what stands before the `#` of a reference.
struct Walk {
    /// The name of the schema that the documents are of.
    name: &'static str,
    schemas: Vec<(&'static str, Value)>,
    /// Keys of documents that no schema describes.
    unknown: BTreeSet<String>,
    /// Where the schemas describe a key that a document had.
    seen: BTreeSet<String>,
}

impl Walk {
    fn new(name: &'static str) -> Walk {
        let mut names = vec![name];
        names.extend(Some("run").filter(|other| *other != name));
        let schemas = names.into_iter().map(|name| (name, schema_of(name))).collect();
        Walk { name, schemas, unknown: BTreeSet::new(), seen: BTreeSet::new() }
    }

    /// A place in a schema, as `run#/properties/bytes`.
    fn at(&self, place: &str) -> Value {
        let (name, pointer) = place.split_once('#').expect("a place has a name");
        let schema = self.schemas.iter().find(|(known, _)| *known == name);
        let (_, schema) = schema.unwrap_or_else(|| panic!("{place}: no such schema"));
        schema.pointer(pointer).unwrap_or_else(|| panic!("{place} is not there")).clone()
    }

    /// The place that a reference in `place` means.
    fn referred(place: &str, reference: &str) -> String {
        match reference.strip_prefix("urn:loadstone:") {
            Some(other) => {
                let (name, pointer) = other.split_once('#').unwrap_or((other, ""));
                format!("{}#{pointer}", name.trim_end_matches(":1"))
            }
            None => format!("{}{reference}", place.split('#').next().unwrap_or_default()),
        }
    }

    /// `place` and whatever else it says of the same value.
    fn alternatives(&self, place: &str) -> Vec<String> {
        let node = self.at(place);
        let mut all = vec![place.to_owned()];
        if let Some(reference) = node["$ref"].as_str() {
            all.extend(self.alternatives(&Walk::referred(place, reference)));
        }
        for list in ["allOf", "anyOf", "oneOf"] {
            let count = node[list].as_array().map_or(0, Vec::len);
            for index in 0..count {
                all.extend(self.alternatives(&format!("{place}/{list}/{index}")));
            }
        }
        all
    }

    fn document(&mut self, text: &str) {
        let document = serde_json::from_str(text).unwrap();
        self.value(&format!("{}#", self.name), &document, "");
    }

    fn value(&mut self, place: &str, value: &Value, path: &str) {
        let places = self.alternatives(place);
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    self.key(&places, key, inner, &format!("{path}.{key}"));
                }
            }
            Value::Array(list) => {
                let items = places.iter().map(|place| format!("{place}/items"));
                let items: Vec<String> = items.filter(|place| self.is_there(place)).collect();
                for (items, inner) in
                    items.iter().flat_map(|place| list.iter().map(move |one| (place, one)))
                {
                    self.value(items, inner, &format!("{path}[]"));
                }
            }
            _ => {}
        }
    }

    fn is_there(&self, place: &str) -> bool {
        let (name, pointer) = place.split_once('#').expect("a place has a name");
        self.schemas
            .iter()
            .any(|(known, schema)| *known == name && schema.pointer(pointer).is_some())
    }

    fn key(&mut self, places: &[String], key: &str, inner: &Value, path: &str) {
        let escaped = key.replace('~', "~0").replace('/', "~1");
        let named = places.iter().map(|place| format!("{place}/properties/{escaped}"));
        let other = places.iter().map(|place| format!("{place}/additionalProperties"));
        let named: Vec<String> = named.filter(|place| self.is_there(place)).collect();
        let other: Vec<String> = other.filter(|place| self.is_there(place)).collect();
        let open = places.iter().all(|place| self.at(place).get("properties").is_none());
        if named.is_empty() && other.is_empty() && !open {
            self.unknown.insert(path.to_owned());
        }
        for place in named.iter().chain(&other) {
            self.seen.insert(place.clone());
            self.value(place, inner, path);
        }
    }

    /// Keys of this schema that no document had.
    fn unseen(&self) -> BTreeSet<String> {
        let mut described = BTreeSet::new();
        describe(&self.schemas[0].1, &format!("{}#", self.name), &mut described);
        described.difference(&self.seen).cloned().collect()
    }
}

/// Every property that a schema describes, by its place.
fn describe(node: &Value, place: &str, found: &mut BTreeSet<String>) {
    let Some(map) = node.as_object() else {
        for (index, inner) in node.as_array().into_iter().flatten().enumerate() {
            describe(inner, &format!("{place}/{index}"), found);
        }
        return;
    };
    for (key, inner) in map.iter().filter(|(key, _)| *key != "examples") {
        let within = format!("{place}/{key}");
        if key == "properties" {
            for (name, inner) in inner.as_object().into_iter().flatten() {
                let place = format!("{within}/{name}");
                describe(inner, &place, found);
                found.insert(place);
            }
        } else {
            describe(inner, &within, found);
        }
    }
}

fn runs() -> Vec<crate::RunReport> {
    let mut watched = fixtures::troubled();
    watched.sut = Some(SutSeries { rows: vec![SutRow::default()], ..SutSeries::default() });
    watched.path = Some(PathFacts { kinds: vec![PathKind::default()], ..PathFacts::default() });
    watched.plan.connection.clients = plan::rules::parse_clients("dsl:60%,3g:40%").ok();
    watched.plan.scenarios = vec![ScenarioPlan {
        name: "all".into(),
        load: watched.plan.load.clone(),
        stages: None,
        start: units::Nanos::SECOND,
        duration: None,
        parts: vec![0],
    }];
    watched.fleet =
        Some(FleetFacts { agents: vec![AgentFacts::default()], ..FleetFacts::default() });
    watched.measurement.total.counts.due += 1;
    watched.measurement.total.counts.lost += 1;
    watched.measurement.total.connections.tls.insert(TlsFacts::default(), 1);
    let mut runs = vec![watched];
    runs.extend([
        fixtures::over_http2(),
        fixtures::over_http3(),
        fixtures::of_journeys(),
        fixtures::valid(),
        fixtures::repeated(),
        fixtures::empty(),
        fixtures::extreme(),
    ]);
    runs
}

#[track_caller]
fn agree(walk: &Walk) {
    assert_eq!(walk.unknown, BTreeSet::new(), "keys that docs/schema does not describe");
    assert_eq!(walk.unseen(), BTreeSet::new(), "keys of docs/schema that no record has");
}

#[test]
fn the_schema_of_a_run_has_its_keys() {
    let mut walk = Walk::new("run");
    runs().iter().for_each(|run| walk.document(&crate::json(run)));
    agree(&walk);
}

#[test]
fn the_schema_of_a_ramp_has_its_keys() {
    let mut walk = Walk::new("ramp");
    walk.document(&crate::ramp::json(&curves::ramp(&["one", "two"])));
    agree(&walk);
}

#[test]
fn the_schema_of_a_comparison_has_its_keys() {
    let mut walk = Walk::new("compare");
    walk.document(&crate::compare::json(&sessions::session(0.9, 1.1, &["p99 +5%"])));
    agree(&walk);
}

fn torture_through(path: PathFacts) -> record::torture::Report {
    record::torture::Report { path: Some(path), ..tortures::mixed() }
}

#[test]
fn the_schema_of_a_torture_describes_its_keys() {
    let mut walk = Walk::new("torture");
    let path = PathFacts { kinds: vec![PathKind::default()], ..PathFacts::default() };
    for report in [
        torture_through(path),
        tortures::mixed(),
        tortures::lost(),
        tortures::pressed(),
        tortures::accompanied(),
        tortures::watched(),
    ] {
        walk.document(&crate::torture::json(&report.record()));
    }
    assert_eq!(walk.unknown, BTreeSet::new());
}

/// The names at a place of a schema.
fn names(schema: &str, pointer: &str) -> BTreeSet<String> {
    let schema = schema_of(schema);
    let list = schema.pointer(pointer).and_then(Value::as_array);
    let list = list.unwrap_or_else(|| panic!("{pointer} is no list"));
    list.iter().map(|name| name.as_str().expect("names are texts").to_owned()).collect()
}

#[track_caller]
fn lists<'a>(schema: &str, pointer: &str, known: impl IntoIterator<Item = &'a str>) {
    let known: BTreeSet<String> = known.into_iter().map(str::to_owned).collect();
    assert_eq!(names(schema, pointer), known, "{schema}{pointer}");
}

#[test]
fn names_in_schemas_are_those_of_the_types() {
    let run = |pointer: &str, known: &[&'static str]| lists("run", pointer, known.iter().copied());
    let ids = |all: &[State]| all.iter().map(|one| one.id()).collect::<Vec<_>>();
    run("/properties/verdict/properties/state/enum", &ids(&State::ALL));
    run("/properties/server/properties/state/enum", &Conduct::ALL.map(Conduct::id));
    run("/$defs/blame/enum", &Blame::ALL.map(Blame::id));
    lists("run", "/$defs/cause/properties/id/enum", CauseId::ALL.iter().map(|one| one.id()));
    lists("run", "/$defs/finding/properties/id/enum", record::finding_ids());
    run("/$defs/finding/properties/confidence/enum", &Confidence::ALL.map(Confidence::id));
    let ramp =
        |pointer: &str, known: &[&'static str]| lists("ramp", pointer, known.iter().copied());
    ramp("/properties/axis/enum", &Axis::ALL.map(Axis::id));
    ramp("/properties/steps/items/properties/purpose/enum", &Purpose::ALL.map(Purpose::id));
    ramp("/$defs/capacity/properties/end/enum", &CapacityEnd::ALL.map(CapacityEnd::id));
    ramp("/$defs/overload/properties/shape/enum", &OverloadShape::ALL.map(OverloadShape::id));
}
