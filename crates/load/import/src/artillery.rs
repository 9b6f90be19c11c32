//! Artillery scripts (YAML or JSON).

mod flow;
mod phases;

use crate::ImportRequest;
use crate::draft::*;
use crate::text::{DraftPart, Maker, Text};
use crate::tree::{TreeNode, Value, parse_json, parse_yaml};
use units::Nanos;

pub(crate) fn read(text: &str, request: &ImportRequest<'_>) -> Result<PlanDraft, String> {
    let root = match text.trim_start().starts_with('{') {
        true => parse_json(text).map_err(|why| format!("it is not JSON: {why}"))?,
        false => parse_yaml(text).map_err(|why| format!("it is not YAML: {why}"))?,
    };
    let scenarios =
        root.get("scenarios").ok_or("it is not an Artillery script: it has no scenarios")?;
    let mut reader = DraftReader {
        draft: PlanDraft::default(),
        request,
        target: String::new(),
        headers: Vec::new(),
    };
    // Artillery's client follows redirects and waits ten seconds
    reader.draft.settings.follow = Some(10);
    reader.draft.settings.timeout = Some(Nanos::from_secs(10));
    if let Some(config) = root.get("config") {
        reader.config(config);
    }
    reader.draft.setup = reader.read_once_steps(root.get("before"));
    for (index, scenario) in scenarios.list().iter().enumerate() {
        reader.scenario(scenario, index + 1);
    }
    reader.draft.teardown = reader.read_once_steps(root.get("after"));
    for (key, node) in root.map() {
        if !["config", "scenarios", "before", "after"].contains(&key.as_str()) {
            reader.draft.left_out.add(node.line, key, "it is not supported");
        }
    }
    Ok(reader.draft)
}

struct DraftReader<'a> {
    draft: PlanDraft,
    request: &'a ImportRequest<'a>,
    target: String,
    headers: Vec<(String, Text)>,
}

impl DraftReader<'_> {
    /// Parses `{{ name }}`, `{{ $uuid }}` and `{{ $randomNumber(1, 9) }}`.
    fn text(&mut self, source: &str, line: usize) -> Text {
        let left_out = &mut self.draft.left_out;
        Text::braces(source, &mut |name| {
            let Some(function) = name.strip_prefix('$') else { return Text::named(name) };
            template(function).unwrap_or_else(|| {
                left_out.add(
                    line,
                    format!("{{{{ {name} }}}}"),
                    "it is not known; the text x is sent",
                );
                Text::plain("x")
            })
        })
    }

    fn config(&mut self, config: &TreeNode) {
        for (key, node) in config.map() {
            match key.as_str() {
                "target" => {
                    self.target = node.scalar().unwrap_or_default().trim_end_matches('/').to_owned()
                }
                "phases" => self.phases(node.list()),
                "variables" => self.variables(node),
                "payload" => match &node.value {
                    Value::List(list) => list.iter().for_each(|one| self.payload(one)),
                    _ => self.payload(node),
                },
                "defaults" => self.defaults(node),
                "http" => self.http(node),
                "tls" => {
                    self.draft.settings.insecure =
                        node.get("rejectUnauthorized").is_some_and(TreeNode::is_false);
                }
                "ensure" => self.ensure(node),
                "plugins" => self.plugins(node),
                "environments" => {
                    self.draft.left_out.add(
                        node.line,
                        "environments",
                        "a plan has one environment; give its URL after the file",
                    );
                }
                "processor" => {
                    let why = "its functions are JavaScript, which is not executed";
                    self.draft.left_out.add(
                        node.line,
                        format!("processor {}", node.scalar().unwrap_or_default()),
                        why,
                    );
                }
                other => self.draft.left_out.add(
                    node.line,
                    format!("config.{other}"),
                    "it is not supported",
                ),
            }
        }
    }

    fn variables(&mut self, node: &TreeNode) {
        for (name, value) in node.map() {
            match &value.value {
                Value::List(list) => {
                    let values: Vec<String> = list.iter().filter_map(TreeNode::scalar).collect();
                    self.draft.made.push((name.clone(), Maker::OneOf(values)));
                }
                _ => {
                    let text = value.scalar().unwrap_or_else(|| value.json());
                    let text = self.text(&text, value.line);
                    self.draft.vars.push((name.clone(), text));
                }
            }
        }
    }

    fn defaults(&mut self, node: &TreeNode) {
        for (name, value) in node.get("headers").map(TreeNode::map).unwrap_or_default() {
            let value = self.text(&value.scalar().unwrap_or_default(), value.line);
            self.headers.push((name.clone(), value));
        }
        for (key, inner) in node.map() {
            match key.as_str() {
                "headers" => {}
                "strictCapture" | "think" => {
                    self.draft.left_out.add(
                        inner.line,
                        format!("config.defaults.{key}"),
                        "it is not supported as a default",
                    );
                }
                other => self.draft.left_out.add(
                    inner.line,
                    format!("config.defaults.{other}"),
                    "it is not supported",
                ),
            }
        }
    }

    fn http(&mut self, node: &TreeNode) {
        for (key, inner) in node.map() {
            match key.as_str() {
                "timeout" => {
                    self.draft.settings.timeout =
                        phases::time(inner).or(self.draft.settings.timeout)
                }
                "extendedMetrics" => {}
                "defaults" => self.defaults(inner),
                "pool" | "maxSockets" => {
                    self.draft.left_out.add(
                        inner.line,
                        format!("config.http.{key}"),
                        "each user has its own connection here",
                    );
                }
                other => self.draft.left_out.add(
                    inner.line,
                    format!("config.http.{other}"),
                    "it is not supported",
                ),
            }
        }
    }

    fn plugins(&mut self, node: &TreeNode) {
        for (key, inner) in node.map() {
            match key.as_str() {
                "ensure" => self.ensure(inner),
                // assertions are read from its steps; each step has a separate row
                "expect" | "metrics-by-endpoint" | "apdex" | "fake-data" => {}
                other => self.draft.left_out.add(
                    inner.line,
                    format!("plugin {other}"),
                    "it is not supported",
                ),
            }
        }
    }

    /// Converts thresholds to objectives.
    fn ensure(&mut self, node: &TreeNode) {
        let mut rules: Vec<(&String, &TreeNode)> = Vec::new();
        for (key, inner) in node.map() {
            match key.as_str() {
                "thresholds" => rules.extend(
                    inner.list().iter().flat_map(TreeNode::map).map(|(name, value)| (name, value)),
                ),
                "conditions" => {
                    for one in inner.list() {
                        let what = one.text_at("expression").to_owned();
                        self.draft.left_out.add(
                            one.line,
                            format!("condition {what}"),
                            "write it as an objective: --slo",
                        );
                    }
                }
                _ => rules.push((key, inner)),
            }
        }
        for (name, value) in rules {
            let quantile = name.rsplit('.').next().unwrap_or_default();
            let known = ["p50", "p75", "p90", "p95", "p99", "p999", "median", "max", "mean"]
                .contains(&quantile);
            let times = known && (!name.contains('.') || name.starts_with("http.response_time."));
            let quantile = match quantile {
                "median" => "p50",
                "p999" => "p99.9",
                other => other,
            };
            match value.number() {
                Some(limit) if times && limit > 0.0 => {
                    self.draft.slo.push(format!("{quantile}<{}ms", crate::write::number(limit)));
                }
                Some(limit) if name == "maxErrorRate" && limit > 0.0 => {
                    self.draft.slo.push(format!("failures<{}%", crate::write::number(limit)));
                }
                _ => self.draft.left_out.add(
                    value.line,
                    format!("ensure {name}"),
                    "write it as an objective: --slo",
                ),
            }
        }
    }

    fn payload(&mut self, node: &TreeNode) {
        let path = node.text_at("path").to_owned();
        let fields: Vec<String> =
            node.list_at("fields").iter().filter_map(TreeNode::scalar).collect();
        let delimiter = node.text_at("delimiter").as_bytes().first().copied().unwrap_or(b',');
        let rows = self.request.read(&path).ok().map(|(_, bytes)| bytes);
        let rows = rows.and_then(|bytes| crate::jmx::csv_rows(&bytes, delimiter));
        let skip = node.get("skipHeader").is_some_and(TreeNode::is_true);
        let mut rows: Vec<Vec<String>> = match rows {
            Some(rows) => rows.into_iter().skip(usize::from(skip)).collect(),
            None => {
                let why = format!(
                    "{} cannot be read; a row with the text MISSING takes its place, replace text = … by file = …",
                    units::quoted(&path)
                );
                self.draft.left_out.add(node.line, "payload", why);
                vec![fields.iter().map(|_| "MISSING".to_owned()).collect()]
            }
        };
        rows.retain(|row| row.len() >= fields.len());
        rows.iter_mut().for_each(|row| row.truncate(fields.len()));
        let distinct: std::collections::BTreeSet<&String> = fields.iter().collect();
        if fields.is_empty() || rows.is_empty() || distinct.len() < fields.len() {
            self.draft.left_out.add(
                node.line,
                format!("payload {path}"),
                "it has no fields or no rows",
            );
            return;
        }
        if node.get("loadAll").is_some_and(TreeNode::is_true) {
            self.draft.left_out.add(node.line, "payload loadAll", "each iteration takes one row");
        }
        let order = if node.text_at("order") == "sequence" { "sequential" } else { "random" };
        let name = format!("data{}", self.draft.tables.len() + 1);
        let text = crate::jmx::csv_text(&fields, &rows);
        let table =
            DataTable { name, columns: fields, rows: TableRows::Inline(text), order, stop: false };
        self.draft.tables.push(table);
    }

    /// Parses `before` and `after`: steps that run once.
    fn read_once_steps(&mut self, node: Option<&TreeNode>) -> Vec<DraftStep> {
        let Some(node) = node else { return Vec::new() };
        let pieces = self.flow(node.list_at("flow"), 0);
        let steps = pieces.into_iter().filter_map(|piece| match piece {
            DraftPiece::Step(step) => Some(*step),
            DraftPiece::Block(block) => {
                self.draft.left_out.add(
                    node.line,
                    block.name,
                    "only requests run before and after the load",
                );
                None
            }
        });
        steps.collect()
    }

    fn scenario(&mut self, node: &TreeNode, number: usize) {
        let name = node.scalar_at("name").unwrap_or_else(|| format!("scenario {number}"));
        let engine = node.text_at("engine");
        if !["", "http"].contains(&engine) {
            let why = "only the engine http is imported; the whole scenario is omitted";
            return self.draft.left_out.add(
                node.line,
                format!("scenario {name} (engine {engine})"),
                why,
            );
        }
        for key in [
            "beforeRequest",
            "afterResponse",
            "beforeScenario",
            "afterScenario",
            "onError",
            "testFunction",
        ] {
            if let Some(inner) = node.get(key) {
                self.draft.left_out.add(
                    inner.line,
                    key,
                    "functions are JavaScript, which is not executed",
                );
            }
        }
        let weight = node.get("weight").and_then(TreeNode::number).filter(|weight| *weight > 0.0);
        let parts = self.flow(node.list_at("flow"), 0);
        self.draft.journeys.push(DraftJourney { name, weight, parts, ..DraftJourney::default() });
    }
}

/// Returns the value of a function in a template.
fn template(function: &str) -> Option<Text> {
    let (name, list) = function.split_once('(').unwrap_or((function, ""));
    let numbers: Vec<i64> =
        list.trim_end_matches(')').split(',').filter_map(|it| it.trim().parse().ok()).collect();
    let made = |maker: Maker| Some(Text(vec![DraftPart::Made(maker)]));
    match (name.trim(), &numbers[..]) {
        ("uuid" | "testId", _) => made(Maker::Uuid),
        ("randomNumber", [from, to]) => made(Maker::Range(*from.min(to), *from.max(to))),
        ("randomString", [length]) => {
            made(Maker::Letters(usize::try_from(*length).ok()?.clamp(1, 10_000)))
        }
        ("randomString", []) => made(Maker::Letters(10)),
        ("timestamp", _) => made(Maker::Millis),
        ("loopCount" | "loopElement", _) => made(Maker::IterationNumber),
        ("environment", _) => Some(Text::plain("default")),
        (name, _) => {
            let variable =
                name.strip_prefix("env.").or_else(|| name.strip_prefix("processEnvironment."))?;
            Some(Text::named(variable))
        }
    }
}
