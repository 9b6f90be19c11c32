//! The Grafana dashboard queries existing figures.

use super::openmetrics::read;
use super::reading;
use crate::metrics::text;
use serde_json::Value;
use std::collections::BTreeSet;

const DASHBOARD: &str = include_str!("../../../../../../docs/grafana/loadstone.json");

fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("expr" | "query" | "definition", Value::String(text)) => {
                        found.push(text.clone())
                    }
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

/// Returns every word of an expression that may be a name of a figure.
fn names(expression: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    expression.split(move |c| !part(c)).filter(|word| word.starts_with("loadstone"))
}

#[test]
fn every_name_of_the_dashboard_is_on_the_endpoint() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let reading = reading();
    let families = read(&text(&reading));
    let mut there: BTreeSet<String> =
        families.values().flat_map(|family| family.lines.iter().map(|l| l.name.clone())).collect();
    // native histograms have the family's name
    there.extend(reading.families.iter().map(crate::metrics::MetricFamily::prometheus_name));
    let mut asked = Vec::new();
    expressions(&dashboard, &mut asked);
    let wanted: BTreeSet<&str> = asked.iter().flat_map(|text| names(text)).collect();
    assert!(wanted.len() >= 15, "{wanted:?}");
    for name in wanted {
        assert!(there.contains(name), "{name} is on no endpoint");
    }
}

/// Each panel has a title, a position and a query.
#[test]
fn the_dashboard_is_complete() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut places = BTreeSet::new();
    for panel in panels {
        assert!(!panel["title"].as_str().unwrap().is_empty());
        assert!(!panel["targets"].as_array().unwrap().is_empty(), "{}", panel["title"]);
        let place = &panel["gridPos"];
        let (x, y) = (place["x"].as_u64().unwrap(), place["y"].as_u64().unwrap());
        assert!(x + place["w"].as_u64().unwrap() <= 24, "{}", panel["title"]);
        assert!(places.insert((x, y)), "{}", panel["title"]);
    }
}
