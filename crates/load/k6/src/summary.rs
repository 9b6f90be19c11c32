//! The end of a test: the text that k6 prints, the data of `handleSummary`, and the exports.

use crate::metrics::{
    CheckCount, Contains, Groups, MetricKind, MetricSink, Registry, Section, Store, add_check, row,
};
use crate::test::Test;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Data of a test's summary.
#[derive(Debug)]
pub struct TestSummary<'a> {
    pub test: &'a Test,
    pub all: &'a Store,
    pub elapsed_s: f64,
    /// True to show the metrics that a compact text omits.
    pub full: bool,
}

/// Metric or sub-metric with its values.
struct SummaryRow<'a> {
    name: String,
    kind: MetricKind,
    contains: Contains,
    sink: &'a MetricSink,
    metric: usize,
}

/// Returns the values of a metric that has none.
fn empty_sink(kind: MetricKind) -> &'static MetricSink {
    static EMPTY: LazyLock<[(MetricKind, MetricSink); 4]> = LazyLock::new(|| {
        [MetricKind::Counter, MetricKind::Gauge, MetricKind::Rate, MetricKind::Trend]
            .map(|kind| (kind, MetricSink::new(kind)))
    });
    let found = EMPTY.iter().find(|(known, _)| *known == kind);
    &found.expect("every kind is in the list").1
}

/// Metrics of HTTP and execution that a compact text shows.
const COMPACT: [usize; 8] = [
    row::HTTP_DURATION,
    row::HTTP_FAILED,
    row::HTTP_REQS,
    row::ITERATION_DURATION,
    row::ITERATIONS,
    row::DROPPED,
    row::VUS,
    row::VUS_MAX,
];

impl<'a> TestSummary<'a> {
    fn registry(&self) -> &'a Registry {
        self.test.program.metrics()
    }

    /// Returns all metrics with values or thresholds, by name; sub-metrics follow their parents.
    fn rows(&self) -> Vec<SummaryRow<'a>> {
        let registry = self.registry();
        let mut all = Vec::new();
        let named = |name: &str, metric: usize, sink: &'a MetricSink| {
            let def = &registry.defs[metric];
            SummaryRow {
                name: name.to_owned(),
                kind: def.kind,
                contains: def.contains,
                sink,
                metric,
            }
        };
        // as in k6, thresholds show a metric, and the parent of a sub-metric
        let thresholds = &self.test.options().thresholds;
        let judged = |name: &str| thresholds.iter().any(|it| it.name == name || it.metric == name);
        for (metric, def) in registry.defs.iter().enumerate() {
            let used = self.all.sink(metric).filter(|sink| sink.is_used());
            let empty = judged(&def.name).then(|| empty_sink(def.kind));
            all.extend(used.or(empty).map(|sink| named(&def.name, metric, sink)));
        }
        for (place, sub) in registry.subs.iter().enumerate() {
            let used = self.all.sub(place).filter(|sink| sink.is_used());
            let empty = judged(&sub.name).then(|| empty_sink(registry.defs[sub.parent].kind));
            all.extend(used.or(empty).map(|sink| named(&sub.name, sub.parent, sink)));
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn stats(&self) -> &'a [String] {
        &self.test.options().trend_stats
    }

    fn unit(&self) -> Option<&'a str> {
        self.test.options().time_unit.as_deref()
    }

    fn rate(&self, count: f64) -> f64 {
        if self.elapsed_s > 0.0 { count / self.elapsed_s } else { 0.0 }
    }
}

/// Returns the values of a trend's statistics, in their order.
fn trend_values(sink: &MetricSink, stats: &[String]) -> Vec<f64> {
    let MetricSink::Trend(trend) = sink else { return Vec::new() };
    let share = |stat: &str| -> Option<f64> {
        let inner = stat.strip_prefix("p(")?.strip_suffix(')')?;
        Some(inner.trim().parse::<f64>().ok()? / 100.0)
    };
    let shares: Vec<f64> = stats.iter().filter_map(|stat| share(stat)).chain([0.5]).collect();
    let mut percentiles = trend.percentiles(&shares).into_iter();
    let median = *percentiles.as_slice().last().unwrap_or(&0.0);
    let value = |stat: &String| match stat.as_str() {
        "avg" => trend.mean(),
        "min" => trend.min,
        "max" => trend.max,
        "med" => median,
        "count" => trend.count as f64,
        _ => percentiles.next().unwrap_or(0.0),
    };
    stats.iter().map(value).collect()
}

/// The end-of-test text.
impl TestSummary<'_> {
    /// Renders the end-of-test text, as k6 prints it to a pipe.
    pub fn text(&self) -> String {
        let mut out = String::from("\n\n");
        self.thresholds(&mut out);
        out.push_str("  █ TOTAL RESULTS \n\n");
        self.checks(&mut out);
        self.metrics(&mut out);
        if self.full {
            self.sections(&mut out);
        }
        out.push('\n');
        out
    }

    fn thresholds(&self, out: &mut String) {
        let mut all: Vec<_> = self.test.options().thresholds.iter().collect();
        if all.is_empty() {
            return;
        }
        all.sort_by_key(|metric| (metric.metric.clone(), metric.name.clone()));
        out.push_str("  █ THRESHOLDS \n\n");
        let parents: Vec<&str> = all.iter().map(|metric| metric.name.as_str()).collect();
        for metric in &all {
            // a sub-metric with its own thresholds is shown below its parent
            let beneath = parents.contains(&metric.metric.as_str());
            let sub = metric.name.strip_prefix(&metric.metric).filter(|rest| !rest.is_empty());
            let sub = sub.filter(|_| beneath);
            let indent = if sub.is_some() { "      " } else { "    " };
            out.push_str(&format!("{indent}{}\n", sub.unwrap_or(&metric.name)));
            for threshold in &metric.all {
                let expression = &threshold.expression;
                let value =
                    self.test.value_of(self.all, metric, &expression.aggregate, self.elapsed_s);
                let holds = value.is_none_or(|value| expression.holds(value));
                let mark = if holds { '✓' } else { '✗' };
                let shown = self.threshold_value(metric, value.unwrap_or(0.0), &expression.shown);
                out.push_str(&format!(
                    "{indent}{mark} '{}' {}={shown}\n",
                    expression.source, expression.shown
                ));
            }
            out.push('\n');
        }
        out.push('\n');
    }

    fn threshold_value(
        &self,
        metric: &crate::threshold::MetricThresholds,
        value: f64,
        shown: &str,
    ) -> String {
        let registry = self.registry();
        let Some(def) = registry.find(&metric.metric).map(|row| &registry.defs[row]) else {
            return value.to_string();
        };
        let text = format_value(value, def.kind, def.contains, self.unit());
        if def.kind == MetricKind::Counter && shown == "rate" { format!("{text}/s") } else { text }
    }

    fn checks(&self, out: &mut String) {
        let judged = self.test.options().thresholds.iter().any(|it| it.metric == "checks");
        let empty = judged.then(|| empty_sink(MetricKind::Rate));
        if let Some(sink) = self.all.sink(row::CHECKS).or(empty) {
            self.check_block(out, 1, sink, &self.merged_checks());
        }
    }

    /// Returns all checks. Checks of the same name are merged, as in k6.
    fn merged_checks(&self) -> Vec<CheckCount> {
        let mut merged = Vec::new();
        for check in self.all.groups.0.iter().flat_map(|(_, checks)| checks) {
            add_check(&mut merged, &check.name, check.passes, check.fails);
        }
        merged
    }

    /// Writes the totals of the checks, and a line for each check. `level`: indentation level.
    fn check_block(
        &self,
        out: &mut String,
        level: usize,
        sink: &MetricSink,
        checks: &[CheckCount],
    ) {
        let MetricSink::Rate { passes, total } = sink else { return };
        let indent = "  ".repeat(level + 1);
        let fails = total - passes;
        let share = |part: u64| {
            [percent(part as f64 / (*total).max(1) as f64), format!("{part} out of {total}")]
        };
        let count = [fixed(*total as f64, 6), format!("{}/s", fixed(self.rate(*total as f64), 6))];
        let lines = [
            ("checks_total", count),
            ("checks_succeeded", share(*passes)),
            ("checks_failed", share(fails)),
        ];
        let width = lines.iter().map(|(_, [first, _])| first.chars().count()).max().unwrap_or(0);
        for (name, [first, second]) in lines {
            out.push_str(&format!("{indent}{name:.<19}: {first:<width$} {second}\n"));
        }
        out.push('\n');
        for check in checks {
            out.push_str(&check_lines(level, check));
        }
        out.push('\n');
    }

    fn metrics(&self, out: &mut String) {
        self.metric_block(out, 1, self.rows());
    }

    /// Writes the metrics under the headings of their kinds.
    fn metric_block(&self, out: &mut String, level: usize, rows: Vec<SummaryRow<'_>>) {
        let shown = |row: &&SummaryRow<'_>| {
            !matches!(row.metric, row::CHECKS | row::GROUP_DURATION)
                && (self.full || row.metric >= row::DATA_SENT || COMPACT.contains(&row.metric))
        };
        let rows: Vec<&SummaryRow<'_>> = rows.iter().filter(shown).collect();
        let table = SummaryTable::new(&rows, self);
        let indent = "  ".repeat(level + 1);
        for heading in ["CUSTOM", "HTTP", "EXECUTION", "NETWORK", "GRPC", "WEBSOCKET"] {
            let belongs = rows.iter().zip(&table.lines);
            let belongs = belongs.filter(|(row, _)| heading_of(&row.name) == heading);
            let lines: String = belongs.map(|(_, line)| format!("{indent}{line}\n")).collect();
            if !lines.is_empty() {
                out.push_str(&format!("{indent}{heading}\n{lines}\n"));
            }
        }
    }
}

/// Sections of a full summary: groups, and scenarios with their groups.
impl TestSummary<'_> {
    fn sections(&self, out: &mut String) {
        for name in self.groups_in("", "") {
            out.push_str(&format!("\n  █ GROUP: {name} \n\n"));
            self.section(out, 1, "", &format!("::{name}"));
        }
        let mut scenarios: Vec<&str> =
            self.all.sections.0.iter().map(|it| it.scenario.as_str()).collect();
        scenarios.sort_unstable();
        scenarios.dedup();
        for name in scenarios.into_iter().filter(|name| !name.is_empty()) {
            out.push_str(&format!("\n  █ SCENARIO: {name} \n\n"));
            self.section(out, 1, name, "");
        }
    }

    /// Writes the values of a scenario or group, and then its groups.
    fn section(&self, out: &mut String, level: usize, scenario: &str, group: &str) {
        let mut all = self.all.sections.0.iter();
        if let Some(section) = all.find(|it| it.scenario == scenario && it.group == group) {
            if let Some(sink) = section.sink(row::CHECKS) {
                self.check_block(out, level, sink, &section.checks);
            }
            self.metric_block(out, level, self.section_rows(section));
        }
        for name in self.groups_in(scenario, group) {
            out.push_str(&format!("{}↳ GROUP: {name} \n\n", "  ".repeat(level + 1)));
            self.section(out, level + 1, scenario, &format!("{group}::{name}"));
        }
    }

    /// Returns the names of the groups directly below a group of a scenario, in the order of their
    /// first values.
    fn groups_in(&self, scenario: &str, group: &str) -> Vec<&str> {
        let mut names = Vec::new();
        for section in self.all.sections.0.iter().filter(|it| it.scenario == scenario) {
            let below = section.group.strip_prefix(group).and_then(|it| it.strip_prefix("::"));
            let name = below.and_then(|it| it.split("::").next());
            if let Some(name) = name.filter(|name| !names.contains(name)) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the metrics of a section, by name.
    fn section_rows<'a>(&'a self, section: &'a Section) -> Vec<SummaryRow<'a>> {
        let defs = self.registry().defs.iter().enumerate();
        let mut rows: Vec<SummaryRow<'a>> = defs
            .filter_map(|(metric, def)| {
                let (kind, contains) = (def.kind, def.contains);
                let sink = section.sink(metric)?;
                Some(SummaryRow { name: def.name.clone(), kind, contains, sink, metric })
            })
            .collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        rows
    }
}

/// Returns the heading of a metric by its name, as k6 chooses it.
fn heading_of(name: &str) -> &'static str {
    const HTTP: [&str; 2] = ["http_reqs", "http_req_"];
    const EXECUTION: [&str; 4] = ["vus", "iterations", "iteration_duration", "dropped_iterations"];
    const NETWORK: [&str; 2] = ["data_sent", "data_received"];
    let is_of = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    match () {
        () if is_of(&HTTP) => "HTTP",
        () if is_of(&EXECUTION) => "EXECUTION",
        () if is_of(&NETWORK) => "NETWORK",
        () if is_of(&["grpc_"]) => "GRPC",
        () if is_of(&["ws_"]) => "WEBSOCKET",
        () => "CUSTOM",
    }
}

fn check_lines(level: usize, check: &CheckCount) -> String {
    let CheckCount { name, passes, fails } = check;
    let indent = "  ".repeat(level + 1);
    if *fails == 0 {
        return format!("{indent}✓ {name}\n");
    }
    let percent = 100 * passes / (passes + fails).max(1);
    // k6 indents the second line of a check by twice its level
    let inner = "  ".repeat(2 * level + 1);
    format!("{indent}✗ {name}\n{inner}↳  {percent}% — ✓ {passes} / ✗ {fails}\n")
}

/// Lines of metrics with aligned columns.
struct SummaryTable {
    lines: Vec<String>,
}

impl SummaryTable {
    fn new(rows: &[&SummaryRow<'_>], summary: &TestSummary<'_>) -> SummaryTable {
        let labels: Vec<String> = rows.iter().map(|row| label(&row.name)).collect();
        let widest = |texts: &mut dyn Iterator<Item = &String>| {
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let dots = widest(&mut labels.iter()) + 3;
        let cells: Vec<Vec<String>> = rows.iter().map(|row| cells(row, summary)).collect();
        let is_trend = |at: usize| rows[at].kind == MetricKind::Trend;
        let columns = |trend: bool, column: usize| {
            let all = cells.iter().enumerate().filter(|(at, _)| is_trend(*at) == trend);
            widest(&mut all.filter_map(|(_, list)| list.get(column)))
        };
        let line = |at: usize| {
            let (text, list) = (&labels[at], &cells[at]);
            let fill = ".".repeat(dots - text.chars().count());
            let values: Vec<String> = if is_trend(at) {
                let stats = summary.stats().iter().zip(list).enumerate();
                stats
                    .map(|(place, (stat, value))| {
                        format!("{stat}={}", padded(value, columns(true, place)))
                    })
                    .collect()
            } else {
                let last = list.len().saturating_sub(1);
                let all = list.iter().enumerate();
                all.map(|(place, value)| {
                    let width = if place == last { 0 } else { columns(false, place) };
                    padded(value, width)
                })
                .collect()
            };
            format!("{text}{fill}: {}", values.join(" "))
        };
        SummaryTable { lines: (0..rows.len()).map(line).collect() }
    }
}

fn padded(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}

/// Returns the label of a metric; the label of a sub-metric has only its tags.
fn label(name: &str) -> String {
    match name.split_once('{') {
        Some((_, tags)) => format!("  {{ {} }}", tags.trim_end_matches('}')),
        None => name.to_owned(),
    }
}

fn cells(row: &SummaryRow<'_>, summary: &TestSummary<'_>) -> Vec<String> {
    let unit = summary.unit();
    let show = |value: f64| format_value(value, row.kind, row.contains, unit);
    match row.sink {
        MetricSink::Counter { count, .. } => {
            vec![show(*count), format!("{}/s", show(summary.rate(*count)))]
        }
        MetricSink::Gauge { value, min, max, .. } => {
            vec![show(*value), format!("min={}", show(*min)), format!("max={}", show(*max))]
        }
        MetricSink::Rate { passes, total } => {
            let share = *passes as f64 / (*total).max(1) as f64;
            vec![percent(share), format!("{passes} out of {total}")]
        }
        MetricSink::Trend(_) => {
            let values = trend_values(row.sink, summary.stats());
            let stats = summary.stats().iter().zip(values);
            stats
                .map(|(stat, value)| if stat == "count" { fixed(value, 6) } else { show(value) })
                .collect()
        }
    }
}

/// Formats a share in percent, truncated to two decimals.
fn percent(share: f64) -> String {
    format!("{:.2}%", (share * 10_000.0).trunc() / 100.0)
}

/// Formats with at most this number of decimals, without trailing zeros.
fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn truncated(value: f64, digits: i32) -> String {
    let power = 10_f64.powi(digits);
    fixed((value * power).trunc() / power, digits.unsigned_abs() as usize)
}

/// Formats a value for people.
pub fn format_value(
    value: f64,
    kind: MetricKind,
    contains: Contains,
    unit: Option<&str>,
) -> String {
    if kind == MetricKind::Rate {
        return percent(value);
    }
    match contains {
        Contains::Data => data(value),
        Contains::Time => match unit {
            Some("s") => format!("{:.2}s", value / 1e3),
            Some("ms") => format!("{value:.2}ms"),
            Some("us") => format!("{:.2}µs", value * 1e3),
            _ => span(value),
        },
        Contains::Default => fixed(value, 6),
    }
}

fn data(value: f64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    if value < 10.0 {
        return format!("{} B", fixed(value, 6));
    }
    let mut power = (value.log10() / 3.0 + 1e-12).floor().clamp(0.0, 6.0) as usize;
    let mut size = (value / 1000_f64.powi(power as i32) * 10.0 + 0.5).floor() / 10.0;
    if size >= 1000.0 && power < 6 {
        (size, power) = (1.0, power + 1);
    }
    let digits = usize::from(size < 10.0);
    format!("{size:.digits$} {}", UNITS[power])
}

/// Formats a duration in milliseconds.
fn span(ms: f64) -> String {
    if ms <= 0.0 {
        return if ms < 0.0 { format!("-{}", span(-ms)) } else { "0s".to_owned() };
    }
    if ms < 0.001 {
        return format!("{}ns", (ms * 1e6).trunc());
    }
    if ms < 1.0 {
        return format!("{}µs", truncated(ms * 1e3, 2));
    }
    if ms < 1e3 {
        return format!("{}ms", truncated(ms, 2));
    }
    let seconds = truncated(ms % 60_000.0 / 1e3, if ms > 60_000.0 { 0 } else { 2 });
    let minutes = (ms / 60_000.0).trunc() as u64;
    match minutes {
        0 => format!("{seconds}s"),
        1..60 => format!("{minutes}m{seconds}s"),
        _ => format!("{}h{}m{seconds}s", minutes / 60, minutes % 60),
    }
}

/// The data of `handleSummary`, and the exports.
impl TestSummary<'_> {
    /// Returns the argument of `handleSummary`.
    pub fn data(&self) -> Value {
        let options = self.test.options();
        let setup = self.test.setup_data();
        let mut made = json!({
            "root_group": group_tree(&self.all.groups, "", true),
            "options": {
                "summaryTrendStats": options.trend_stats,
                "summaryTimeUnit": options.time_unit.clone().unwrap_or_default(),
                "noColor": false,
            },
            "state": {
                "isStdOutTTY": false,
                "isStdErrTTY": false,
                "testRunDurationMs": self.elapsed_s * 1e3,
            },
            "metrics": self.metrics_data(),
        });
        if let Some(setup) = setup.and_then(|json| serde_json::from_str::<Value>(&json).ok()) {
            made["setup_data"] = setup;
        }
        made
    }

    fn metrics_data(&self) -> Map<String, Value> {
        let mut all = Map::new();
        for row in self.rows() {
            let mut one = json!({
                "type": row.kind.id(),
                "contains": row.contains.id(),
                "values": self.values(row.sink),
            });
            let thresholds = self.threshold_results(&row.name);
            if !thresholds.is_empty() {
                let ok = thresholds.into_iter().map(|(source, ok)| (source, json!({"ok": ok})));
                one["thresholds"] = Value::Object(ok.collect());
            }
            all.insert(row.name, one);
        }
        all
    }

    fn values(&self, sink: &MetricSink) -> Map<String, Value> {
        let made = match sink {
            MetricSink::Counter { count, .. } => json!({"count": count, "rate": self.rate(*count)}),
            MetricSink::Gauge { value, min, max, .. } => {
                json!({"value": value, "min": min, "max": max})
            }
            MetricSink::Rate { passes, total } => json!({
                "rate": *passes as f64 / (*total).max(1) as f64,
                "passes": passes,
                "fails": total - passes,
            }),
            MetricSink::Trend(_) => {
                let values = trend_values(sink, self.stats());
                self.stats().iter().zip(values).map(|(stat, value)| (stat.clone(), value)).collect()
            }
        };
        if let Value::Object(map) = made { map } else { Map::new() }
    }

    /// Returns the expressions of a metric, and whether each holds.
    fn threshold_results(&self, name: &str) -> Vec<(String, bool)> {
        let mut all = Vec::new();
        for metric in self.test.options().thresholds.iter().filter(|it| it.name == name) {
            for threshold in &metric.all {
                let aggregate = &threshold.expression.aggregate;
                let value = self.test.value_of(self.all, metric, aggregate, self.elapsed_s);
                let ok = value.is_none_or(|value| threshold.expression.holds(value));
                all.push((threshold.expression.source.clone(), ok));
            }
        }
        all
    }

    /// Renders the file of `--summary-export`: values one level higher, thresholds true if crossed.
    pub fn export(&self) -> Value {
        let mut metrics = Map::new();
        for row in self.rows() {
            let mut values = self.values(row.sink);
            if let Some(rate) = values.remove("rate").filter(|_| row.kind == MetricKind::Rate) {
                values.insert("value".to_owned(), rate);
            } else if let MetricSink::Counter { count, .. } = row.sink {
                values.insert("rate".to_owned(), json!(self.rate(*count)));
            }
            let crossed = self.threshold_results(&row.name).into_iter();
            let crossed: Map<String, Value> =
                crossed.map(|(source, ok)| (source, json!(!ok))).collect();
            if !crossed.is_empty() {
                values.insert("thresholds".to_owned(), Value::Object(crossed));
            }
            metrics.insert(row.name, Value::Object(values));
        }
        json!({ "metrics": metrics, "root_group": group_tree(&self.all.groups, "", false) })
    }

    /// Renders the file of `--summary-export` with `--new-machine-readable-summary`.
    pub fn machine_readable(&self, generated_at: &str) -> Value {
        let rows = self.rows().into_iter();
        let metrics: Vec<Value> = rows.map(|row| {
            let values = match row.sink {
                MetricSink::Counter { count, .. } => json!({"count": count}),
                MetricSink::Rate { passes, total } => json!({
                    "matches": passes,
                    "total": total,
                    "rate": *passes as f64 / (*total).max(1) as f64,
                }),
                other => Value::Object(self.values(other)),
            };
            json!({"name": row.name, "type": row.kind.id(), "contains": row.contains.id(), "values": values})
        }).collect();
        let checks: Vec<Value> = self
            .merged_checks()
            .iter()
            .map(|it| json!({"name": it.name, "passes": it.passes, "fails": it.fails}))
            .collect();
        json!({
            "version": "1.0.0",
            "config": {
                "duration": self.elapsed_s, "execution": "local", "script": self.test.program.entry,
            },
            "metadata": {"k6Version": crate::VERSION, "generatedAt": generated_at},
            "results": {"checks": {"metrics": [], "results": checks}, "metrics": metrics},
        })
    }
}

/// Renders a group with its checks and groups; `lists`: as arrays rather than objects by name.
fn group_tree(groups: &Groups, path: &str, lists: bool) -> Value {
    let known = groups.0.iter().find(|(known, _)| known == path);
    let checks: Vec<(String, Value)> = known
        .iter()
        .flat_map(|(_, checks)| checks)
        .map(|check| {
            let full = format!("{path}::{}", check.name);
            let value = json!({
                "name": check.name, "path": full, "id": id(&full),
                "passes": check.passes, "fails": check.fails,
            });
            (check.name.clone(), value)
        })
        .collect();
    let mut names: Vec<&str> = Vec::new();
    let prefix = format!("{path}::");
    for (known, _) in &groups.0 {
        let rest = known.strip_prefix(&prefix).unwrap_or_default();
        let name = rest.split("::").next().unwrap_or_default();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    let inner: Vec<(String, Value)> = names
        .into_iter()
        .map(|name| (name.to_owned(), group_tree(groups, &format!("{prefix}{name}"), lists)))
        .collect();
    let put = |all: Vec<(String, Value)>| match lists {
        true => Value::Array(all.into_iter().map(|(_, value)| value).collect()),
        false => Value::Object(all.into_iter().collect()),
    };
    let name = path.rsplit("::").next().unwrap_or_default();
    json!({
        "name": name, "path": path, "id": id(path),
        "groups": put(inner), "checks": put(checks),
    })
}

/// Returns k6's id of a group or check: the MD5 of its path.
fn id(path: &str) -> String {
    units::hex(crate::digest::digest("md5", path.as_bytes(), None).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_k6_shows_them() {
        let time = |ms| format_value(ms, MetricKind::Trend, Contains::Time, None);
        for (ms, shown) in [
            (0.0, "0s"),
            (0.000_5, "500ns"),
            (0.604_066, "604.06µs"),
            (12.5, "12.5ms"),
            (52.0, "52ms"),
            (1_234.5, "1.23s"),
            (90_000.0, "1m30s"),
            (3_723_000.0, "1h2m3s"),
        ] {
            assert_eq!(time(ms), shown);
        }
        let bytes = |value| format_value(value, MetricKind::Counter, Contains::Data, None);
        for (value, shown) in [
            (0.0, "0 B"),
            (859.0, "859 B"),
            (5_419.0, "5.4 kB"),
            (15_400.0, "15 kB"),
            (2.5e6, "2.5 MB"),
        ] {
            assert_eq!(bytes(value), shown);
        }
        assert_eq!(format_value(0.666_666, MetricKind::Rate, Contains::Default, None), "66.66%");
        assert_eq!(
            format_value(6.702_536, MetricKind::Counter, Contains::Default, None),
            "6.702536"
        );
    }

    #[test]
    fn groups_are_a_tree() {
        let mut groups = Groups::default();
        groups.visit("::outer");
        groups.check("::outer::inner", "deep", 6, 0);
        groups.check("::outer", "never", 0, 6);
        let tree = group_tree(&groups, "", true);
        assert_eq!(tree["id"], "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(tree["groups"][0]["id"], "c34b428ee7255085dfe7fef53d3394d5");
        let deep = &tree["groups"][0]["groups"][0]["checks"][0];
        assert_eq!(deep["id"], "a935e3dc0886f69695349968f863b5e2");
    }
}
