//! Compares expected behavior of a server with a torture's result.

use serde::Deserialize;
use serde_json::Value;

/// Something that is known of a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Truth {
    /// The case that shows it.
    pub(crate) case: String,
    /// Expectation as text.
    pub(crate) expect: String,
    /// Measured by us, or read in the server's own source or manual.
    pub(crate) from: From,
    shows: Conditions,
    /// Known difference, and its reason.
    differs: Option<Differs>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum From {
    Measured,
    Source,
}

/// A difference that is understood, and the observation that identifies it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Differs {
    why: String,
    /// Only if the cases use an emulated path.
    #[serde(default)]
    through_path: bool,
    shows: Conditions,
}

/// Requirements on a case's result; unspecified parts are not checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Conditions {
    outcome: Option<Vec<String>>,
    /// Part of an exchange's name, and of an observation in such an exchange.
    #[serde(default)]
    exchange: String,
    seen: Option<String>,
    /// The whole interval of a measured number is here.
    limit: Option<[f64; 2]>,
    /// A measured number has no upper end.
    #[serde(default)]
    unbounded: bool,
}

/// Result of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Agrees,
    /// Differs as explained.
    Explained(String),
    Unexplained,
    /// Inconclusive: the report has the reason.
    Inconclusive,
    /// The program has no such case.
    NotTested,
}

/// A row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) expect: String,
    pub(crate) from: From,
    pub(crate) seen: String,
    pub(crate) verdict: Verdict,
}

impl Truth {
    /// Returns whether the conditions name an exchange without an expected observation (`seen`).
    pub(crate) fn names_unused_exchange(&self) -> bool {
        let unused = |shows: &Conditions| !shows.exchange.is_empty() && shows.seen.is_none();
        unused(&self.shows) || self.differs.as_ref().is_some_and(|differs| unused(&differs.shows))
    }

    /// Holds it against a torture's document.
    pub(crate) fn judge(&self, document: &Value) -> Row {
        let none = Vec::new();
        let cases = document["cases"].as_array().unwrap_or(&none);
        let case = cases.iter().find(|case| case["id"] == self.case.as_str());
        let (seen, verdict) = match case {
            None => ("not tested by this version".to_owned(), Verdict::NotTested),
            Some(case) => {
                let limits = limits_of(document, &self.case);
                let through_path = !document["path"].is_null();
                let explained = self.differs.as_ref().filter(|differs| {
                    (through_path || !differs.through_path) && differs.shows.hold(case, &limits)
                });
                let verdict = match (self.shows.hold(case, &limits), explained) {
                    (true, _) => Verdict::Agrees,
                    (false, _) if case["outcome"] == "inconclusive" => Verdict::Inconclusive,
                    (false, Some(differs)) => Verdict::Explained(differs.why.clone()),
                    (false, None) => Verdict::Unexplained,
                };
                (describe_seen(case, &limits, &self.shows), verdict)
            }
        };
        let case = self.case.clone();
        let expect = self.expect.clone();
        Row { case, expect, from: self.from, seen, verdict }
    }
}

impl Conditions {
    fn hold(&self, case: &Value, limits: &[&Value]) -> bool {
        let outcome = case["outcome"].as_str().unwrap_or_default();
        let as_outcome =
            self.outcome.as_ref().is_none_or(|known| known.iter().any(|one| one == outcome));
        let as_seen = self.seen.as_ref().is_none_or(|part| {
            let mut own = exchanges(case).filter(|one| text(one, "name").contains(&self.exchange));
            own.any(|one| text(one, "seen").contains(part))
        });
        let inside = |limit: &&Value, [least, most]: [f64; 2]| {
            let low = limit["low"].as_f64();
            let high = limit["high"].as_f64();
            let (Some(low), Some(high)) = (low.or(high), high) else { return false };
            low >= least && high <= most
        };
        let as_limit = self.limit.is_none_or(|range| limits.iter().any(|one| inside(one, range)));
        let as_endless = !self.unbounded || limits.iter().any(|one| one["high"].is_null());
        as_outcome && as_seen && as_limit && as_endless
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn exchanges(case: &Value) -> impl Iterator<Item = &Value> {
    case["exchanges"].as_array().into_iter().flatten()
}

fn limits_of<'v>(document: &'v Value, case: &str) -> Vec<&'v Value> {
    let all = document["limits"].as_array().into_iter().flatten();
    all.filter(|limit| limit["case"] == case).collect()
}

/// Describes the observed behavior briefly.
fn describe_seen(case: &Value, limits: &[&Value], conditions: &Conditions) -> String {
    let mut parts = vec![text(case, "outcome").to_owned()];
    if let Some(skipped) = case["skipped"].as_str() {
        parts.push(skipped.to_owned());
    }
    if case["outcome"] == "inconclusive" {
        let notes = case["notes"].as_array().into_iter().flatten();
        parts.extend(notes.filter_map(Value::as_str).take(1).map(str::to_owned));
    }
    if conditions.seen.is_some() || limits.is_empty() {
        let own = exchanges(case).filter(|one| text(one, "name").contains(&conditions.exchange));
        let mut each: Vec<String> =
            own.map(|one| format!("{}: {}", text(one, "name"), text(one, "seen"))).collect();
        let more = each.len().saturating_sub(4);
        each.truncate(4);
        parts.extend(each);
        if more > 0 {
            parts.push(format!("and {more} more"));
        }
    }
    for limit in limits {
        let number = |key: &str| limit[key].as_f64().map_or_else(|| "-".to_owned(), show);
        let low = number("low");
        let high = number("high");
        let range = match limit["high"].is_null() {
            true => format!("longer than {low}"),
            false if low == high => low,
            false => format!("{low} to {high}"),
        };
        let what = text(limit, "what");
        let note = text(limit, "note");
        let unit = match text(limit, "unit") {
            "ratio" => "times",
            unit => unit,
        };
        parts.push(format!("{what}: {range} {unit}, {note}"));
    }
    if let Some(health) = case["health"].as_object() {
        let share = |key: &str| health.get(key).and_then(Value::as_f64).unwrap_or(0.0) * 100.0;
        parts.push(format!("correct {:.0} %, lost {:.0} %", share("correct"), share("lost")));
    }
    parts.join("; ")
}

fn show(number: f64) -> String {
    let steps = if number.abs() < 1.0 { 1_000.0 } else { 10.0 };
    format!("{}", (number * steps).round() / steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        serde_json::json!({
            "limits": [{"case": "W-02", "what": "half a head", "low": 59.5, "high": 60.5,
                "unit": "seconds", "note": "closed"},
                {"case": "W-03", "what": "dripped", "low": 180.0, "high": null,
                "unit": "seconds", "note": "none"}],
            "cases": [
                {"id": "W-02", "outcome": "pass", "skipped": null, "exchanges": []},
                {"id": "W-03", "outcome": "unbounded", "skipped": null, "exchanges": []},
                {"id": "W-10", "outcome": "inconclusive", "skipped": null, "exchanges": [],
                    "notes": ["too few probes"]},
                {"id": "S-15", "outcome": "pass", "skipped": null, "exchanges": [
                    {"name": "NUL", "seen": "closed"}, {"name": "tab", "seen": "400"}]},
            ],
        })
    }

    fn truth(text: &str) -> Truth {
        let (case, shows) = text.split_once(": ").unwrap();
        let head = format!("case = \"{case}\"\nexpect = \"x\"\nfrom = \"measured\"\n");
        toml::from_str(&format!("{head}shows = {shows}")).unwrap()
    }

    fn judged(text: &str) -> Row {
        truth(text).judge(&document())
    }

    #[test]
    fn rows_agree_differ_or_are_not_tested() {
        for (truth, verdict) in [
            ("W-02: { limit = [58, 64] }", Verdict::Agrees),
            ("W-02: { limit = [50, 60] }", Verdict::Unexplained),
            ("W-02: { unbounded = true }", Verdict::Unexplained),
            ("W-03: { unbounded = true }", Verdict::Agrees),
            ("W-03: { limit = [58, 64] }", Verdict::Unexplained),
            ("S-15: { seen = \"400\" }", Verdict::Agrees),
            ("S-15: { exchange = \"NUL\", seen = \"400\" }", Verdict::Unexplained),
            ("S-15: { outcome = [\"fail\", \"pass\"] }", Verdict::Agrees),
            ("W-10: { outcome = [\"held\"] }", Verdict::Inconclusive),
            ("L-01: {}", Verdict::NotTested),
            (
                "S-15: { seen = \"505\" }\ndiffers = { why = \"y\", shows = { seen = \"closed\" } }",
                Verdict::Explained("y".to_owned()),
            ),
            (
                "S-15: { seen = \"505\" }\ndiffers = { why = \"y\", shows = { seen = \"404\" } }",
                Verdict::Unexplained,
            ),
        ] {
            assert_eq!(judged(truth).verdict, verdict, "{truth}");
        }
        let slow = "W-02: { limit = [50, 60] }\ndiffers = { through_path = true, why = \"z\", \
                    shows = { outcome = [\"pass\"] } }";
        assert_eq!(judged(slow).verdict, Verdict::Unexplained);
        let mut behind = document();
        behind["path"] = serde_json::json!({"spec": "rtt=200ms"});
        assert_eq!(truth(slow).judge(&behind).verdict, Verdict::Explained("z".to_owned()));
        assert_eq!(judged("W-02: {}").seen, "pass; half a head: 59.5 to 60.5 seconds, closed");
        assert!(judged("W-03: {}").seen.contains("longer than 180 seconds"));
    }
}
