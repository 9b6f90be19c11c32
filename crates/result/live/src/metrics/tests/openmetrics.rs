//! A strict parser of OpenMetrics 1.0 text, as a reference for the encoder.

use std::collections::{BTreeMap, BTreeSet};

/// Sample: name, labels and value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

#[derive(Debug, Default)]
pub(super) struct MetricFamily {
    pub(super) kind: String,
    unit: String,
    help: String,
    pub(super) lines: Vec<Line>,
}

/// Suffixes that a type's samples carry (OpenMetrics §5).
fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "counter" => &["_total", "_created"],
        "gauge" => &[""],
        "info" => &["_info"],
        "histogram" => &["_bucket", "_count", "_sum", "_created"],
        other => panic!("type {other:?}"),
    }
}

/// Reads a whole exposition; panics on any violation of the format.
pub(super) fn read(text: &str) -> BTreeMap<String, MetricFamily> {
    let body = text.strip_suffix("# EOF\n").expect("ends in # EOF and a line feed");
    let mut families: BTreeMap<String, MetricFamily> = BTreeMap::new();
    let mut current = String::new();
    let mut seen = BTreeSet::new();
    for line in body.lines() {
        if let Some(meta) = line.strip_prefix("# ") {
            let mut words = meta.splitn(3, ' ');
            let (what, name, rest) =
                (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            assert!(is_good_name(name), "{line}");
            if current != name {
                assert!(!families.contains_key(name), "{name} in two places");
                current = name.to_owned();
            }
            let family = families.entry(current.clone()).or_default();
            assert!(family.lines.is_empty(), "metadata behind samples: {line}");
            let slot = match what {
                "HELP" => &mut family.help,
                "TYPE" => &mut family.kind,
                "UNIT" => &mut family.unit,
                _ => panic!("{line}"),
            };
            assert!(slot.is_empty(), "twice: {line}");
            rest.clone_into(slot);
            continue;
        }
        let sample = sample(line);
        let family = families.get_mut(&current).expect("metadata before samples");
        let suffix = sample.name.strip_prefix(&current).expect("a sample of its family");
        assert!(suffixes(&family.kind).contains(&suffix), "{line}");
        assert!(seen.insert(format!("{}{:?}", sample.name, sample.labels)), "twice: {line}");
        family.lines.push(sample);
    }
    for (name, family) in &families {
        assert!(!family.help.is_empty() && !family.kind.is_empty(), "{name}");
        assert!(family.unit.is_empty() || name.ends_with(&format!("_{}", family.unit)), "{name}");
        if family.kind == "histogram" {
            histogram(name, family);
        }
    }
    families
}

fn is_good_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !name.is_empty() && name.chars().all(good) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn sample(line: &str) -> Line {
    let end = line.find(['{', ' ']).unwrap();
    let name = line[..end].to_owned();
    assert!(is_good_name(&name), "{line}");
    let mut labels = BTreeMap::new();
    let mut rest = &line[end..];
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, value) = rest.split_once("=\"").expect("label=\"value\"");
            assert!(is_good_name(label), "{line}");
            let (value, after) = quoted(value);
            assert!(labels.insert(label.to_owned(), value).is_none(), "label twice: {line}");
            rest = after.strip_prefix(',').unwrap_or(after);
            assert!(!after.starts_with(",}"), "{line}");
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').expect("a space before the value");
    Line { name, labels, value: value.parse().unwrap_or_else(|_| panic!("value of {line}")) }
}

/// Returns the unescaped text up to the closing quote, and the rest after the quote.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match chars.next().unwrap().1 {
                'n' => '\n',
                c @ ('\\' | '"') => c,
                other => panic!("escape {other:?}"),
            }),
            c => value.push(c),
        }
    }
    panic!("no closing quote: {text}")
}

/// Bounds rise, counts do not fall, the last bound is infinite and counts everything.
fn histogram(name: &str, family: &MetricFamily) {
    let mut before = (f64::NEG_INFINITY, 0.0);
    for line in family.lines.iter().filter(|line| line.name.ends_with("_bucket")) {
        let bound = &line.labels["le"];
        let bound: f64 = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
        assert!(bound > before.0 && line.value >= before.1, "{name}: {line:?} after {before:?}");
        before = (bound, line.value);
    }
    assert!(before.0.is_infinite(), "{name} lacks +Inf");
    let one = |suffix: &str| {
        let named = family.lines.iter().filter(|line| line.name == format!("{name}{suffix}"));
        let values: Vec<f64> = named.map(|line| line.value).collect();
        assert_eq!(values.len(), 1, "{name}{suffix}");
        values[0]
    };
    assert!((one("_count") - before.1).abs() < 0.5, "{name}");
    assert!(one("_sum") >= 0.0, "{name}");
}
