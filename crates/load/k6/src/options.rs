//! Options of a test: read from the config file, the script, the environment and the flags, in k6's
//! order; later values take precedence.

mod network;

pub use network::{DnsOptions, HttpDebug, OfferedVersions, PreferredFamily, TlsOptions};

use crate::addresses::AddressOptions;
use crate::duration;
use crate::scenario::{Executor, RampStage, Scenario};
use crate::threshold::{Expression, MetricThresholds, Threshold, split_name};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use units::Nanos;

/// Consolidated options.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub scenarios: Vec<Scenario>,
    pub thresholds: Vec<MetricThresholds>,
    pub no_setup: bool,
    pub no_teardown: bool,
    pub setup_timeout: Nanos,
    pub summary_timeout: Nanos,
    pub teardown_timeout: Nanos,
    pub max_redirects: u32,
    /// Maximum number of simultaneous requests of a batch, and of these to one host.
    pub batch: usize,
    pub batch_per_host: usize,
    pub user_agent: String,
    pub insecure: bool,
    pub throws: bool,
    pub no_connection_reuse: bool,
    pub no_cookies_reset: bool,
    pub discard_bodies: bool,
    pub min_iteration: Nanos,
    pub trend_stats: Vec<String>,
    pub time_unit: Option<String>,
    pub tags: Vec<(String, String)>,
    pub system_tags: Vec<String>,
    pub blocked_hosts: Vec<String>,
    pub addresses: Arc<AddressOptions>,
    pub local_addresses: Vec<IpAddr>,
    /// Maximum rate of the requests of all users, per second.
    pub rps: Option<f64>,
    /// True if the connections of a user end with each iteration.
    pub disconnects: bool,
    pub http_debug: HttpDebug,
    pub tls: TlsOptions,
    pub dns: DnsOptions,
    /// The options as JSON, for `test.options` and `inspect`.
    pub json: Value,
}

/// Maximum number of calls that one user has in flight; further calls wait.
pub const SIMULTANEOUS_MAX: usize = 1_000;

/// Names of all options of k6; any other name is unknown.
const KNOWN: &[&str] = &[
    "vus",
    "duration",
    "iterations",
    "stages",
    "scenarios",
    "paused",
    "executionSegment",
    "executionSegmentSequence",
    "noSetup",
    "setupTimeout",
    "noTeardown",
    "teardownTimeout",
    "handleSummaryTimeout",
    "rps",
    "dns",
    "maxRedirects",
    "userAgent",
    "batch",
    "batchPerHost",
    "httpDebug",
    "insecureSkipTLSVerify",
    "tlsCipherSuites",
    "tlsVersion",
    "tlsAuth",
    "throw",
    "thresholds",
    "blacklistIPs",
    "blockHostnames",
    "hosts",
    "noConnectionReuse",
    "noVUConnectionReuse",
    "minIterationDuration",
    "cloud",
    "ext",
    "summaryTrendStats",
    "summaryTimeUnit",
    "systemTags",
    "tags",
    "metricSamplesBufferSize",
    "noCookiesReset",
    "discardResponseBodies",
    "localIPs",
    "features",
];

/// Options of k6 that change the behavior of a test but are not supported.
const REFUSED: &[(&str, &str)] = &[
    ("paused", "start the test at the intended time"),
    ("executionSegment", "use `loadstone fleet` for a load from several machines"),
    ("executionSegmentSequence", "use `loadstone fleet` for a load from several machines"),
];

/// Options that k6 reads only for runs in Grafana Cloud.
const OF_CLOUD: &[&str] = &["cloud", "ext"];

/// System tags of values by default.
const SYSTEM_TAGS: &[&str] = &[
    "proto",
    "subproto",
    "status",
    "method",
    "url",
    "name",
    "group",
    "check",
    "error",
    "error_code",
    "tls_version",
    "scenario",
    "service",
    "expected_response",
];

/// Problems in a layer, which end the test, and notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub errors: Vec<String>,
    pub warnings: Vec<String>,
}

/// Layers, merged in order.
#[derive(Clone, Debug, Default)]
pub struct Layers(Map<String, Value>);

const EXECUTION: [&str; 4] = ["duration", "iterations", "stages", "scenarios"];

impl Layers {
    /// Merges the options of a layer over those of the previous layers; `place`: their source.
    pub fn apply(&mut self, layer: &Value, place: &str, findings: &mut Findings) {
        let Value::Object(layer) = layer else {
            findings.errors.push(format!("{place}: options must be an object"));
            return;
        };
        // a layer with a load replaces the load of the layers before it
        if EXECUTION.iter().any(|key| layer.get(*key).is_some_and(|value| !value.is_null())) {
            if self.0.contains_key("scenarios") {
                let text = format!("{place}: the load replaces the scenarios of other options");
                findings.warnings.push(text);
            }
            EXECUTION.iter().for_each(|key| drop(self.0.remove(*key)));
        }
        for (key, value) in layer {
            if value.is_null() {
                continue;
            }
            if !KNOWN.contains(&key.as_str()) {
                findings.warnings.push(format!("{place}: unknown option \"{key}\""));
                continue;
            }
            if OF_CLOUD.contains(&key.as_str()) {
                findings.warnings.push(format!(
                    "{place}: option \"{key}\" is ignored: it configures runs in Grafana Cloud, and \
                     this test runs here"
                ));
            }
            if let Some((_, fix)) = REFUSED.iter().find(|(name, _)| name == key)
                && *value != Value::Bool(false)
                && *value != json!("")
                && *value != json!([])
                && *value != json!({})
            {
                findings.errors.push(format!("{place}: option \"{key}\" is not available: {fix}"));
                continue;
            }
            self.0.insert(key.clone(), value.clone());
        }
    }

    /// Returns the consolidated options.
    pub fn finish(self, findings: &mut Findings) -> Options {
        let mut reader = OptionsReader { map: &self.0, findings };
        let scenarios = reader.scenarios();
        let thresholds = reader.thresholds();
        let trend_stats = reader.strings("summaryTrendStats").unwrap_or_else(|| {
            ["avg", "min", "med", "max", "p(90)", "p(95)"].map(str::to_owned).to_vec()
        });
        let system = reader.strings("systemTags");
        Options {
            addresses: Arc::new(reader.addresses()),
            local_addresses: reader.local_addresses(),
            tls: reader.tls(),
            dns: reader.dns(),
            rps: reader.count("rps").filter(|rate| *rate > 0).map(|rate| rate as f64),
            disconnects: reader.flag("noVUConnectionReuse"),
            http_debug: reader.http_debug(),
            scenarios,
            thresholds,
            no_setup: reader.flag("noSetup"),
            no_teardown: reader.flag("noTeardown"),
            setup_timeout: reader.span("setupTimeout", Nanos::from_secs(60)),
            teardown_timeout: reader.span("teardownTimeout", Nanos::from_secs(60)),
            summary_timeout: reader.span("handleSummaryTimeout", Nanos::from_secs(120)),
            max_redirects: reader.count("maxRedirects").unwrap_or(10) as u32,
            batch: reader.parse_simultaneous("batch", 20),
            batch_per_host: reader.parse_simultaneous("batchPerHost", 6),
            user_agent: reader.user_agent(),
            insecure: reader.flag("insecureSkipTLSVerify"),
            throws: reader.flag("throw"),
            no_connection_reuse: reader.flag("noConnectionReuse"),
            no_cookies_reset: reader.flag("noCookiesReset"),
            discard_bodies: reader.flag("discardResponseBodies"),
            min_iteration: reader.span("minIterationDuration", Nanos::ZERO),
            trend_stats,
            time_unit: reader.text("summaryTimeUnit"),
            tags: reader.pairs("tags"),
            system_tags: system
                .unwrap_or_else(|| SYSTEM_TAGS.iter().map(|tag| (*tag).to_owned()).collect()),
            blocked_hosts: reader.strings("blockHostnames").unwrap_or_default(),
            json: Value::Object(self.0),
        }
    }
}

struct OptionsReader<'a> {
    map: &'a Map<String, Value>,
    findings: &'a mut Findings,
}

impl OptionsReader<'_> {
    fn wrong(&mut self, key: &str, wanted: &str, got: &Value) {
        self.findings.errors.push(format!("option \"{key}\": {got} is not {wanted}"));
    }

    fn flag(&mut self, key: &str) -> bool {
        match self.map.get(key) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.wrong(key, "true or false", other);
                false
            }
        }
    }

    fn count(&mut self, key: &str) -> Option<u64> {
        let value = self.map.get(key)?;
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        if number.is_none() {
            self.wrong(key, "a whole number", value);
        }
        number
    }

    /// Parses a number of simultaneous requests; 0 sets no limit.
    fn parse_simultaneous(&mut self, key: &str, default: u64) -> usize {
        match self.count(key).unwrap_or(default) {
            0 => SIMULTANEOUS_MAX,
            count => usize::try_from(count).unwrap_or(usize::MAX).min(SIMULTANEOUS_MAX),
        }
    }

    fn text(&mut self, key: &str) -> Option<String> {
        let value = self.map.get(key)?;
        if value.as_str().is_none() {
            self.wrong(key, "a text", value);
        }
        value.as_str().map(str::to_owned)
    }

    fn strings(&mut self, key: &str) -> Option<Vec<String>> {
        let value = self.map.get(key)?;
        let list = value.as_array().map(|list| list.iter().map(Value::as_str).collect());
        match list.flatten_texts() {
            Some(list) => Some(list),
            None => {
                self.wrong(key, "a list of texts", value);
                None
            }
        }
    }

    fn pairs(&mut self, key: &str) -> Vec<(String, String)> {
        let Some(value) = self.map.get(key) else { return Vec::new() };
        let Some(object) = value.as_object() else {
            self.wrong(key, "an object", value);
            return Vec::new();
        };
        object.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
    }

    fn span(&mut self, key: &str, default: Nanos) -> Nanos {
        self.map.get(key).map_or(default, |value| self.read_span(key, value))
    }

    fn read_span(&mut self, key: &str, value: &Value) -> Nanos {
        match duration::parse(&plain(value)) {
            Ok(span) => span,
            Err(why) => {
                self.findings.errors.push(format!("option \"{key}\": {why}"));
                Nanos::ZERO
            }
        }
    }
}

trait FlattenTexts {
    fn flatten_texts(self) -> Option<Vec<String>>;
}

impl FlattenTexts for Option<Vec<Option<&str>>> {
    fn flatten_texts(self) -> Option<Vec<String>> {
        self?.into_iter().map(|text| text.map(str::to_owned)).collect()
    }
}

impl Options {
    /// Returns the options as JSON, with the scenario that shortcuts such as `vus` describe.
    pub(crate) fn derived_json(&self) -> String {
        let mut json = self.json.clone();
        if json.get("scenarios").is_none_or(is_empty) {
            let each = |it: &Scenario| (it.name.clone(), it.executor.json());
            json["scenarios"] = self.scenarios.iter().map(each).collect::<Map<_, _>>().into();
        }
        json.to_string()
    }
}

/// Returns whether a value is a list or an object without elements.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

/// Returns a text unchanged, and any other value as JSON.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Scenarios, and the shortcuts for them.
impl OptionsReader<'_> {
    fn scenarios(&mut self) -> Vec<Scenario> {
        self.check_conflicts();
        let given = |key: &str| self.map.get(key).filter(|value| !is_empty(value));
        let is_shortcut = |key: &str| key != "scenarios" && self.map.contains_key(key);
        let vus_alone = self.map.contains_key("vus") && !EXECUTION.into_iter().any(is_shortcut);
        let (scenarios, stages) = (given("scenarios"), given("stages"));
        if let Some(value) = scenarios {
            if !vus_alone {
                return self.named_scenarios(value);
            }
            let text = "option \"vus\" overrides the scenarios; remove one of them".to_owned();
            self.findings.warnings.push(text);
        }
        for key in ["stages", "scenarios"] {
            if self.map.get(key).is_some_and(is_empty) {
                let text = format!("option \"{key}\" is empty and has no effect");
                self.findings.warnings.push(text);
            }
        }
        let vus = self.count("vus").unwrap_or(1);
        let duration = self.map.get("duration").cloned();
        let max_duration = Nanos::from_secs(600);
        let executor = if let Some(value) = stages {
            let stages = self.stages("stages", value);
            Executor::RampingVus { start: vus, stages, graceful_ramp_down: Nanos::from_secs(30) }
        } else if let Some(iterations) = self.count("iterations") {
            let span = duration.map(|value| self.read_span("duration", &value));
            let max_duration = span.unwrap_or(max_duration);
            Executor::SharedIterations { vus, iterations, max_duration }
        } else if let Some(value) = duration {
            Executor::ConstantVus { vus, duration: self.read_span("duration", &value) }
        } else if vus_alone {
            Executor::SharedIterations { vus, iterations: vus, max_duration }
        } else {
            Executor::PerVuIterations { vus, iterations: 1, max_duration }
        };
        self.check_iterations(&executor);
        vec![Scenario {
            name: "default".to_owned(),
            executor,
            start: Nanos::ZERO,
            graceful_stop: Nanos::from_secs(30),
            exec: "default".to_owned(),
            env: BTreeMap::new(),
            tags: Vec::new(),
        }]
    }

    fn named_scenarios(&mut self, value: &Value) -> Vec<Scenario> {
        let Some(object) = value.as_object() else {
            self.wrong("scenarios", "an object of scenarios", value);
            return Vec::new();
        };
        let mut all: Vec<Scenario> =
            object.iter().filter_map(|(name, value)| self.scenario(name, value)).collect();
        all.sort_by(|a, b| (a.start, &a.name).cmp(&(b.start, &b.name)));
        all
    }

    /// Refuses options of which each sets a load.
    fn check_conflicts(&mut self) {
        let is_set = |key: &str| match key {
            "stages" => self.map.get(key).is_some_and(|value| !is_empty(value)),
            _ => self.map.contains_key(key),
        };
        for (one, other) in [
            ("iterations", "stages"),
            ("iterations", "scenarios"),
            ("duration", "stages"),
            ("duration", "scenarios"),
            ("stages", "scenarios"),
        ] {
            if is_set(one) && is_set(other) {
                let text = format!("options \"{one}\" and \"{other}\": give one of them");
                self.findings.errors.push(text);
                return;
            }
        }
    }

    fn check_iterations(&mut self, executor: &Executor) {
        if let Executor::SharedIterations { vus, iterations, .. } = executor
            && iterations < vus
        {
            let text = format!(
                "the number of iterations ({iterations}) shouldn't be less than the number of VUs \
                 ({vus})"
            );
            self.findings.errors.push(text);
        }
    }

    fn stages(&mut self, key: &str, value: &Value) -> Vec<RampStage> {
        let Some(list) = value.as_array() else {
            self.wrong(key, "a list of stages", value);
            return Vec::new();
        };
        let mut all = Vec::new();
        for stage in list {
            let target = stage.get("target").and_then(Value::as_f64);
            let span = stage.get("duration");
            let (Some(target), Some(span)) = (target, span) else {
                self.wrong(key, "a stage like {duration: '30s', target: 10}", stage);
                continue;
            };
            all.push(RampStage { duration: self.read_span(key, span), target });
        }
        all
    }

    fn scenario(&mut self, name: &str, value: &Value) -> Option<Scenario> {
        let before = self.findings.errors.len();
        let Some(object) = value.as_object() else {
            self.wrong(name, "a scenario", value);
            return None;
        };
        let kind = object.get("executor").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut inner = OptionsReader { map: object, findings: &mut *self.findings };
        let executor = inner.executor(name, &kind);
        if let Some(executor) = &executor {
            inner.check_iterations(executor);
        }
        let common = ["executor", "startTime", "gracefulStop", "exec", "env", "tags", "options"];
        for key in object.keys() {
            let own = Executor::keys(&kind);
            if !common.contains(&key.as_str()) && !own.contains(&key.as_str()) && !own.is_empty() {
                let text = format!("scenario \"{name}\": {kind} has no option \"{key}\"");
                inner.findings.errors.push(text);
            }
        }
        let graceful = inner.span("gracefulStop", Nanos::from_secs(30));
        let scenario = Scenario {
            name: name.to_owned(),
            executor: executor?,
            start: inner.span("startTime", Nanos::ZERO),
            graceful_stop: graceful,
            exec: inner.text("exec").unwrap_or_else(|| "default".to_owned()),
            env: inner.pairs("env").into_iter().collect(),
            tags: inner.pairs("tags"),
        };
        for error in &mut self.findings.errors[before..] {
            if !error.contains(&format!("scenario \"{name}\"")) {
                *error = format!("scenario \"{name}\": {error}");
            }
        }
        Some(scenario)
    }

    fn executor(&mut self, name: &str, kind: &str) -> Option<Executor> {
        let max_duration = Nanos::from_secs(600);
        Some(match kind {
            "shared-iterations" => Executor::SharedIterations {
                vus: self.count("vus").unwrap_or(1),
                iterations: self.count("iterations").unwrap_or(1),
                max_duration: self.span("maxDuration", max_duration),
            },
            "per-vu-iterations" => Executor::PerVuIterations {
                vus: self.count("vus").unwrap_or(1),
                iterations: self.count("iterations").unwrap_or(1),
                max_duration: self.span("maxDuration", max_duration),
            },
            "constant-vus" => Executor::ConstantVus {
                vus: self.count("vus").unwrap_or(1),
                duration: self.needed_span(name, "duration"),
            },
            "ramping-vus" => Executor::RampingVus {
                start: self.count("startVUs").unwrap_or(1),
                stages: self.needed_stages(name),
                graceful_ramp_down: self.span("gracefulRampDown", Nanos::from_secs(30)),
            },
            "constant-arrival-rate" => {
                let pre = self.needed_count(name, "preAllocatedVUs");
                Executor::ConstantArrivalRate {
                    rate: self.needed_count(name, "rate") as f64,
                    unit: self.span("timeUnit", Nanos::SECOND),
                    duration: self.needed_span(name, "duration"),
                    pre,
                    max: self.count("maxVUs").unwrap_or(pre),
                }
            }
            "ramping-arrival-rate" => {
                let pre = self.needed_count(name, "preAllocatedVUs");
                Executor::RampingArrivalRate {
                    start: self.count("startRate").unwrap_or(0) as f64,
                    unit: self.span("timeUnit", Nanos::SECOND),
                    stages: self.needed_stages(name),
                    pre,
                    max: self.count("maxVUs").unwrap_or(pre),
                }
            }
            other => {
                let text = format!(
                    "scenario \"{name}\": unknown executor \"{other}\"; use shared-iterations, \
                     per-vu-iterations, constant-vus, ramping-vus, constant-arrival-rate or \
                     ramping-arrival-rate"
                );
                self.findings.errors.push(text);
                return None;
            }
        })
    }

    fn missing(&mut self, name: &str, key: &str) {
        self.findings.errors.push(format!("scenario \"{name}\": {key} is missing"));
    }

    fn needed_count(&mut self, name: &str, key: &str) -> u64 {
        if !self.map.contains_key(key) {
            self.missing(name, key);
        }
        self.count(key).unwrap_or(0)
    }

    fn needed_span(&mut self, name: &str, key: &str) -> Nanos {
        if !self.map.contains_key(key) {
            self.missing(name, key);
        }
        self.span(key, Nanos::ZERO)
    }

    fn needed_stages(&mut self, name: &str) -> Vec<RampStage> {
        match self.map.get("stages") {
            Some(value) => self.stages("stages", &value.clone()),
            None => {
                self.missing(name, "stages");
                Vec::new()
            }
        }
    }
}

/// Thresholds.
impl OptionsReader<'_> {
    fn thresholds(&mut self) -> Vec<MetricThresholds> {
        let Some(value) = self.map.get("thresholds") else { return Vec::new() };
        let Some(object) = value.as_object() else {
            self.wrong("thresholds", "an object of metrics", value);
            return Vec::new();
        };
        let mut all = Vec::new();
        for (name, list) in object {
            let Some(list) = list.as_array() else {
                self.wrong("thresholds", "a list of expressions", list);
                continue;
            };
            let (metric, tags) = match split_name(name) {
                Ok(parts) => parts,
                Err(why) => {
                    self.findings.errors.push(why);
                    continue;
                }
            };
            let read: Vec<Threshold> =
                list.iter().filter_map(|entry| self.threshold(name, entry)).collect();
            all.push(MetricThresholds { name: name.clone(), metric, tags, all: read });
        }
        all
    }

    fn threshold(&mut self, name: &str, entry: &Value) -> Option<Threshold> {
        let source = entry.as_str().or_else(|| entry.get("threshold")?.as_str());
        let Some(source) = source else {
            self.wrong("thresholds", "an expression", entry);
            return None;
        };
        let expression = match Expression::parse(source) {
            Ok(expression) => expression,
            Err(why) => {
                self.findings.errors.push(format!("metric \"{name}\": {why}"));
                return None;
            }
        };
        let delay = entry.get("delayAbortEval").filter(|value| !value.is_null());
        let delay = delay.map_or(Nanos::ZERO, |value| self.read_span("delayAbortEval", value));
        let abort_on_fail = entry.get("abortOnFail").and_then(Value::as_bool).unwrap_or(false);
        Some(Threshold { expression, abort_on_fail, delay_s: delay.as_secs_f64() })
    }
}
