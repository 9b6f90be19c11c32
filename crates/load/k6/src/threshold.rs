//! Thresholds: `p(95)<500` on a metric, judged by k6's definitions.

use crate::metrics::{MetricKind, MetricSink};

/// Aggregate that is compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Aggregate {
    Count,
    Rate,
    Value,
    Average,
    Min,
    Max,
    Median,
    /// Percentile, in percent.
    Percentile(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// Threshold expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Expression as written.
    pub source: String,
    pub aggregate: Aggregate,
    /// Aggregate as printed: `p(95)`.
    pub shown: String,
    operator: Operator,
    value: f64,
}

const OPERATORS: [(&str, Operator); 7] = [
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("===", Operator::Equal),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl Expression {
    /// # Errors
    /// Fails if the text is not `aggregation operator number`.
    pub fn parse(source: &str) -> Result<Expression, String> {
        let wrong = |why: &str| {
            format!(
                "failed parsing threshold expression \"{source}\": {why}; write it like p(95)<500"
            )
        };
        let at = source.find(['<', '>', '=', '!']).ok_or_else(|| wrong("it has no operator"))?;
        let (left, rest) = source.split_at(at);
        let found = OPERATORS.iter().find(|(text, _)| rest.starts_with(text));
        let (text, operator) = found.ok_or_else(|| wrong("its operator is unknown"))?;
        let number = rest[text.len()..].trim();
        let value = number.parse().map_err(|_| wrong(&format!("\"{number}\" is not a number")))?;
        let shown = left.trim().to_owned();
        let aggregate = Aggregate::parse(&shown)
            .ok_or_else(|| wrong(&format!("\"{shown}\" is not an aggregation")))?;
        Ok(Expression { source: source.to_owned(), aggregate, shown, operator: *operator, value })
    }

    /// Returns whether metrics of this kind have the aggregate.
    pub fn fits(&self, kind: MetricKind) -> bool {
        match kind {
            MetricKind::Counter => matches!(self.aggregate, Aggregate::Count | Aggregate::Rate),
            MetricKind::Gauge => self.aggregate == Aggregate::Value,
            MetricKind::Rate => self.aggregate == Aggregate::Rate,
            MetricKind::Trend => {
                !matches!(self.aggregate, Aggregate::Count | Aggregate::Rate | Aggregate::Value)
            }
        }
    }

    /// Returns the operator and the number of an upper or a lower bound; `None` for equality.
    pub fn bound(&self) -> Option<(&'static str, f64)> {
        let exact = matches!(self.operator, Operator::Equal | Operator::NotEqual);
        let found = OPERATORS.iter().find(|(_, operator)| *operator == self.operator && !exact);
        found.map(|(text, _)| (*text, self.value))
    }

    pub fn holds(&self, value: f64) -> bool {
        #[allow(clippy::float_cmp, reason = "k6 compares for exact equality as well")]
        match self.operator {
            Operator::Less => value < self.value,
            Operator::LessOrEqual => value <= self.value,
            Operator::Greater => value > self.value,
            Operator::GreaterOrEqual => value >= self.value,
            Operator::Equal => value == self.value,
            Operator::NotEqual => value != self.value,
        }
    }
}

impl Aggregate {
    fn parse(text: &str) -> Option<Aggregate> {
        Some(match text {
            "count" => Aggregate::Count,
            "rate" => Aggregate::Rate,
            "value" => Aggregate::Value,
            "avg" => Aggregate::Average,
            "min" => Aggregate::Min,
            "max" => Aggregate::Max,
            "med" => Aggregate::Median,
            other => {
                let inner = other.strip_prefix("p(")?.strip_suffix(')')?;
                Aggregate::Percentile(inner.trim().parse().ok()?)
            }
        })
    }

    /// Returns the value of the aggregate; `elapsed_s`: length of the test so far.
    pub fn value(&self, sink: &MetricSink, elapsed_s: f64) -> f64 {
        match (sink, self) {
            (MetricSink::Counter { count, .. }, Aggregate::Rate) => {
                if elapsed_s > 0.0 {
                    count / elapsed_s
                } else {
                    0.0
                }
            }
            (MetricSink::Counter { count, .. }, _) => *count,
            (MetricSink::Gauge { value, .. }, _) => *value,
            (MetricSink::Rate { passes, total }, _) => {
                if *total > 0 {
                    *passes as f64 / *total as f64
                } else {
                    0.0
                }
            }
            (MetricSink::Trend(trend), Aggregate::Min) => trend.min,
            (MetricSink::Trend(trend), Aggregate::Max) => trend.max,
            (MetricSink::Trend(trend), Aggregate::Median) => trend.percentile(0.5),
            (MetricSink::Trend(trend), Aggregate::Percentile(percent)) => {
                trend.percentile(percent / 100.0)
            }
            (MetricSink::Trend(trend), Aggregate::Count) => trend.count as f64,
            (MetricSink::Trend(trend), _) => trend.mean(),
        }
    }
}

/// One threshold of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    pub expression: Expression,
    pub abort_on_fail: bool,
    /// Time in seconds before which the threshold cannot abort the test.
    pub delay_s: f64,
}

/// All thresholds of a metric or sub-metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricThresholds {
    /// Name as written: `http_req_duration{status:200}`.
    pub name: String,
    pub metric: String,
    pub tags: Vec<(String, String)>,
    pub all: Vec<Threshold>,
}

/// Splits `name{tag:value,…}`.
///
/// # Errors
/// Fails if the braces are not closed, or contain anything else.
pub fn split_name(name: &str) -> Result<(String, Vec<(String, String)>), String> {
    let Some((metric, rest)) = name.split_once('{') else {
        return Ok((name.to_owned(), Vec::new()));
    };
    let inner = rest.strip_suffix('}').ok_or_else(|| {
        format!("threshold on \"{name}\": the selector has no closing brace; write {metric}{{tag:value}}")
    })?;
    let mut tags = Vec::new();
    for part in inner.split(',').filter(|part| !part.trim().is_empty()) {
        let (tag, value) = part.split_once(':').unwrap_or((part, ""));
        let clean = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        tags.push((clean(tag), clean(value)));
    }
    Ok((metric.trim().to_owned(), tags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_and_judged() {
        for (source, value, holds) in [
            ("p(95)<500", 499.0, true),
            ("p(95) < 500", 500.0, false),
            ("rate<=0.01", 0.01, true),
            ("count>10", 10.0, false),
            ("rate===1", 1.0, true),
            ("avg!=3", 3.0, false),
        ] {
            assert_eq!(Expression::parse(source).unwrap().holds(value), holds, "{source}");
        }
        for bad in ["p(95)", "p(x)<1", "speed<1", "rate<x", "p(95)<500ms", ""] {
            let why = Expression::parse(bad).unwrap_err();
            assert!(why.contains(bad) && why.contains("p(95)<500"), "{why}");
        }
    }

    #[test]
    fn selectors_name_tags() {
        let (metric, tags) = split_name("http_reqs{status:200, name:\"http://a/b\"}").unwrap();
        assert_eq!(metric, "http_reqs");
        assert_eq!(
            tags,
            [("status", "200"), ("name", "http://a/b")].map(|(a, b)| (a.into(), b.into()))
        );
        assert!(split_name("x{a:b").unwrap_err().contains("closing brace"));
    }
}
