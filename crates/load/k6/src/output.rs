//! `--out json` and `--out csv`, and the lines of the log.

use crate::metrics::DataPoint;
use crate::program::LogLine;
use crate::test::Test;
use serde_json::json;
use std::collections::BTreeSet;
use units::Nanos;

/// Calendar of a run: seconds since 1970 at an instant of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calendar {
    pub at: Nanos,
    pub unix_s: f64,
}

impl Calendar {
    fn unix_ns(&self, at: Nanos) -> i128 {
        (self.unix_s * 1e9) as i128 + i128::from(at.0) - i128::from(self.at.0)
    }

    /// Formats RFC 3339 in UTC, with nanoseconds.
    pub fn rfc3339(&self, at: Nanos) -> String {
        rfc3339(self.unix_ns(at))
    }
}

/// Formats RFC 3339 in UTC, without a zero fraction.
pub fn rfc3339(unix_ns: i128) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let fraction = unix_ns.rem_euclid(1_000_000_000);
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // days from 1970 to a date of the Gregorian calendar, with years that begin in March
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    let fraction = format!("{fraction:09}");
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{dot}{fraction}Z")
}

/// JSON lines: a metric before its first point, then points.
#[derive(Debug, Default)]
pub struct JsonOutput {
    known: BTreeSet<usize>,
}

impl JsonOutput {
    pub fn lines(&mut self, test: &Test, calendar: &Calendar, points: &[DataPoint]) -> String {
        let registry = test.program.metrics();
        let mut out = String::new();
        for point in points {
            let def = &registry.defs[point.metric];
            if self.known.insert(point.metric) {
                let thresholds = test.options().thresholds.iter().filter(|it| it.name == def.name);
                let sources: Vec<&str> = thresholds
                    .flat_map(|it| &it.all)
                    .map(|it| it.expression.source.as_str())
                    .collect();
                let line = json!({
                    "type": "Metric",
                    "data": {
                        "name": def.name, "type": def.kind.id(), "contains": def.contains.id(),
                        "thresholds": sources, "submetrics": null,
                    },
                    "metric": def.name,
                });
                out.push_str(&format!("{line}\n"));
            }
            let tags: serde_json::Map<String, serde_json::Value> =
                point.tags.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            let line = json!({
                "metric": def.name,
                "type": "DataPoint",
                "data": {"time": calendar.rfc3339(point.at), "value": number(point.value), "tags": tags},
            });
            out.push_str(&format!("{line}\n"));
        }
        out
    }
}

/// Formats whole numbers without a fraction.
fn number(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

/// Returns the columns of the CSV output: the system tags by name, and one column for all others.
fn csv_tags(test: &Test) -> Vec<&str> {
    let system = test.options().system_tags.iter().map(String::as_str);
    let mut all: Vec<&str> = system.filter(|tag| !["vu", "iter", "url"].contains(tag)).collect();
    if test.options().system_tags.iter().any(|tag| tag == "url") {
        all.push("url");
    }
    all.sort_unstable();
    all
}

/// Returns the first line of the CSV output.
pub fn csv_head(test: &Test) -> String {
    format!("metric_name,timestamp,metric_value,{},extra_tags,metadata\n", csv_tags(test).join(","))
}

pub fn csv_lines(test: &Test, calendar: &Calendar, points: &[DataPoint]) -> String {
    let registry = test.program.metrics();
    let columns = csv_tags(test);
    let mut out = String::new();
    for point in points {
        let seconds = calendar.unix_ns(point.at).div_euclid(1_000_000_000);
        let name = &registry.defs[point.metric].name;
        let mut cells = vec![name.clone(), seconds.to_string(), format!("{:.6}", point.value)];
        let find = |wanted: &str| point.tags.iter().find(|(name, _)| name == wanted);
        cells.extend(columns.iter().map(|tag| find(tag).map_or(String::new(), |it| it.1.clone())));
        let extra = point.tags.iter().filter(|(name, _)| !columns.contains(&name.as_str()));
        let extra: Vec<String> = extra.map(|(name, value)| format!("{name}={value}")).collect();
        cells.push(extra.join("&"));
        cells.push(String::new());
        let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        out.push_str(&format!("{}\n", cells.join(",")));
    }
    out
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell.to_owned()
}

/// Formats a log line as k6 writes it to a pipe.
pub fn log_line(line: &LogLine, unix_ns: i128) -> String {
    let plain = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._/@^+".contains(c))
    };
    let quoted = |text: &str| if plain(text) { text.to_owned() } else { json!(text).to_string() };
    let time = rfc3339(unix_ns - unix_ns.rem_euclid(1_000_000_000));
    let mut made = format!("time=\"{time}\" level={}", line.level);
    if !line.text.is_empty() {
        made.push_str(&format!(" msg={}", quoted(&line.text)));
    }
    for (name, value) in &line.fields {
        made.push_str(&format!(" {name}={}", quoted(value)));
    }
    made + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_924_674, "2026-11-29T03:57:54Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000_000), shown);
        }
        assert_eq!(rfc3339(1_500_000_000), "1970-01-01T00:00:01.5Z");
    }

    #[test]
    fn a_log_line_is_quoted_where_needed() {
        let line = |text: &str| LogLine {
            fields: vec![("source", "console".to_owned())],
            ..LogLine::new("info", text)
        };
        let shown = log_line(&line("hello \"you\""), 0);
        assert_eq!(
            shown,
            "time=\"1970-01-01T00:00:00Z\" level=info msg=\"hello \\\"you\\\"\" source=console\n"
        );
        assert!(log_line(&line("hello"), 0).contains("msg=hello source"));
        assert!(log_line(&line(""), 0).ends_with(" level=info source=console\n"));
    }
}
