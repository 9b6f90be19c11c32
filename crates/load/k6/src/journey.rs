//! Scripts as journeys of a plan: an iteration of a user is one call of a function of the script.
//! The plan decides when iterations begin and judges the responses; k6's executors, thresholds and
//! summary are not used.

use crate::call::{HttpReply, Task, VuAnswer, VuFailure, VuRequest, WireRequest};
use crate::context::{Context, IterationFacts};
use crate::metrics::{CUSTOM_FROM, Store};
use crate::program::{Program, ReadFile};
use crate::scan;
use crate::scenario::{Executor, RampStage};
use crate::test::{OuterOptions, Test};
use crate::threshold::{Aggregate, MetricThresholds};
use crate::vu::Vu;
use sample::{FailureClass, Sample};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::Nanos;
use url::{Position, Url};
use workload::{ActedCall, Actor, ActorAction, ActorTurn, CallResponse, IterationStart};

/// Metric of the results of checks.
const CHECKS: &str = "checks";
/// Maximum number of metrics of a script: the limit for plans.
const METRICS_MAX: usize = 50;
/// Message for a script that opens a WebSocket.
const NO_SOCKETS: &str = "a script with WebSockets cannot run as a journey; run it with \
                          loadstone k6 run, or write steps with connect, send and expect";
/// Message for a script that makes gRPC calls.
const NO_GRPC: &str = "a script with gRPC cannot run as a journey; run it with loadstone k6 run, \
                       or write steps with grpc and message";
/// Name of calls that have neither a `name` tag nor a group.
pub const STEP: &str = "request";
/// Maximum number of steps of one script; calls with further names are counted under the first
/// step.
const STEPS_MAX: usize = 100;
/// Maximum number of consecutive pauses without a request; then the iteration is ended.
const PAUSES_MAX: u32 = 100_000;
/// Maximum number of requests that are simulated to find the first server.
const PROBES_MAX: u32 = 1_000;
/// Maximum number of users that wait for another iteration.
const SPARES_MAX: usize = 10_000;

/// Receives a line of the script's console.
pub type Console = fn(&str);

/// Script that a plan runs.
#[derive(Debug)]
pub struct PlannedScript {
    test: Test,
    /// Row of the scenario whose function is called.
    scenario: usize,
    /// Server of the script's first request.
    home: Option<Url>,
    /// Servers named in the script's text or variables.
    named: Vec<Url>,
}

impl PlannedScript {
    /// Reads a script and runs its init code. Arguments are variables, `NAME=value`, or the name of
    /// a scenario. No request is sent: the script is executed up to its first request, to find the
    /// server.
    ///
    /// # Errors
    /// Fails if the script is invalid, or has several scenarios and none is named.
    pub fn read(
        name: &str,
        args: &[String],
        read: ReadFile,
        seed: u64,
    ) -> Result<PlannedScript, String> {
        let mut env = BTreeMap::new();
        let mut wanted = None;
        for arg in args {
            match arg.split_once('=') {
                Some((name, value)) => drop(env.insert(name.to_owned(), value.to_owned())),
                None => wanted = Some(arg.as_str()),
            }
        }
        let program = Program::new(name, env, read);
        let test = Test::load(program, &OuterOptions::default(), seed).map_err(|it| it.text)?;
        for text in test.program.all_texts() {
            for import in scan::imports(&text) {
                if let Some(why) = unavailable(&import.name) {
                    return Err(format!("{name}: {}: {why}", import.name));
                }
            }
        }
        let scenario = choose(&test, wanted).map_err(|why| format!("{name}: {why}"))?;
        let mut script = PlannedScript { test, scenario, home: None, named: Vec::new() };
        script.named = script.servers_named();
        script.home = script.first_server().or_else(|| script.named.first().cloned());
        // it was executed only to find the server: discard its output
        script.test.program.take_log();
        Ok(script)
    }

    /// Returns the server of the first request; `None` if it is unknown before the run.
    pub fn base_server(&self) -> Option<&Url> {
        self.home.as_ref()
    }

    /// Returns the servers named in the text, except for the first.
    pub fn further_servers(&self) -> Vec<String> {
        let home = self.home.as_ref().map(Url::origin);
        let mut known = BTreeSet::new();
        let all = self.named.iter().map(Url::origin).filter(|it| Some(it) != home.as_ref());
        all.map(|it| it.ascii_serialization()).filter(|it| known.insert(it.clone())).collect()
    }

    /// Returns the names of the script's calls: literal `name` tags and groups.
    pub fn steps(&self) -> Vec<String> {
        let mut all = vec![STEP.to_owned()];
        for text in self.test.program.all_texts() {
            for name in scan::call_names(&text) {
                let clear = !name.trim().is_empty() && !name.contains(['<', '>', ':', '{', '$']);
                if clear && !all.contains(&name) && all.len() < STEPS_MAX {
                    all.push(name);
                }
            }
        }
        all
    }

    /// Returns the names of the metrics for which the script provides numbers: its own, and its
    /// checks if a threshold refers to them.
    pub fn metrics(&self) -> Vec<String> {
        let all = self.test.program.metrics().defs.iter().skip(CUSTOM_FROM);
        let mut names: Vec<String> = all.map(|metric| metric.name.clone()).collect();
        if self.test.options().thresholds.iter().any(|it| it.metric == CHECKS) {
            names.push(CHECKS.to_owned());
        }
        names.truncate(METRICS_MAX);
        names
    }

    /// Returns the files that the script has read, without the script itself.
    ///
    /// # Errors
    /// Fails if one of the files is not text.
    pub fn files(&self) -> Result<Vec<(String, String)>, String> {
        self.test.program.files_read()
    }

    /// Returns whether the script has the function of this stage.
    pub fn has_stage(&self, stage: ScriptStage) -> bool {
        match stage {
            ScriptStage::Setup => self.test.has_setup(),
            ScriptStage::Teardown => self.test.has_teardown(),
        }
    }

    /// Returns the load of the script's scenario as options of `run`.
    pub fn load_options(&self) -> Vec<(&'static str, String)> {
        load_options(&self.test.options().scenarios[self.scenario].executor)
    }

    /// Returns the script's thresholds as objectives, and the thresholds without an equivalent.
    pub fn objectives(&self) -> (Vec<String>, Vec<String>) {
        let mut ours = Vec::new();
        let mut left = Vec::new();
        let known = self.metrics();
        for metric in &self.test.options().thresholds {
            for threshold in &metric.all {
                let own = known.contains(&metric.metric);
                match objective(metric, &threshold.expression, own) {
                    Some(text) => ours.push(text),
                    None => left.push(format!("{}: {}", metric.name, threshold.expression.source)),
                }
            }
        }
        (ours, left)
    }

    /// Lists the parts of the script that a journey ignores, each with its replacement.
    pub fn not_applied(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.test.has_summary() {
            all.push("handleSummary(): loadstone k6 run calls it; here --json FILE".to_owned());
        }
        let options = &self.test.options().json;
        let unset = [json!(null), json!(false), json!(0), json!({}), json!([]), json!("")];
        for (name, instead) in [
            ("noConnectionReuse", "give --close"),
            ("insecureSkipTLSVerify", "give --insecure"),
            ("minIterationDuration", "give --rate"),
            ("noVUConnectionReuse", "give --close"),
            ("rps", "give --rate"),
            ("hosts", "give --resolve"),
            ("blacklistIPs", "names are not checked"),
            ("dns", "give -4, -6 or --resolve"),
            ("localIPs", "give --bind"),
            ("tlsVersion", "give --tls"),
            ("tlsCipherSuites", "give --ciphers"),
            ("tlsAuth", "give --cert and --key"),
        ] {
            if options.get(name).is_some_and(|value| !unset.contains(value)) {
                all.push(format!("option {name}: {instead}"));
            }
        }
        all.extend(self.test.warnings.iter().cloned());
        all
    }

    /// Runs the script until it makes a request, without sending the request.
    fn first_server(&self) -> Option<Url> {
        let store = Arc::new(Mutex::new(Store::default()));
        let context = Context::new(self.test.program.clone(), store, 0, self.test.seed);
        let (mut vu, ..) = Vu::new(&self.test.program, context).ok()?;
        self.enter(&vu);
        let exec = &self.test.options().scenarios[self.scenario].exec;
        let mut argument = None;
        for function in [self.test.has_setup().then_some("setup"), Some(exec.as_str())] {
            let Some(function) = function else { continue };
            let task =
                Task { function: function.to_owned(), argument, iteration: 0, wants_result: true };
            let mut request = vu.resume(VuAnswer::Run(task), Nanos::SECOND);
            for _ in 0..PROBES_MAX {
                let VuRequest::Sleep(_) = request else { break };
                request = vu.resume(VuAnswer::Go, Nanos::SECOND);
            }
            argument = match request {
                VuRequest::Http(wire) => return Some((*wire.url).clone()),
                VuRequest::Finished(outcome) => outcome.ok().flatten().map(Arc::from),
                VuRequest::Sleep(_)
                | VuRequest::Socket(..)
                | VuRequest::Any(_)
                | VuRequest::Ready { .. } => return None,
            };
        }
        None
    }

    fn servers_named(&self) -> Vec<Url> {
        let program = &self.test.program;
        let texts = program.all_texts();
        let literals = texts.iter().flat_map(|text| scan::urls(text));
        let given = program.env.values().filter(|value| value.contains("://")).cloned();
        given.chain(literals).filter_map(|text| Url::parse(&text).ok()).collect()
    }

    /// Assigns the user to the scenario.
    fn enter(&self, vu: &Vu) {
        vu.context().set_scenario(self.test.facts[self.scenario].clone(), Nanos::SECOND);
    }
}

/// Function of a script that runs once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptStage {
    Setup,
    Teardown,
}

impl ScriptStage {
    /// Returns the name of the function in the script.
    pub fn function(self) -> &'static str {
        match self {
            ScriptStage::Setup => "setup",
            ScriptStage::Teardown => "teardown",
        }
    }
}

/// Returns the row of the scenario to run.
fn choose(test: &Test, wanted: Option<&str>) -> Result<usize, String> {
    let all = &test.options().scenarios;
    let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
    match (wanted, all.len()) {
        (Some(name), _) => names.iter().position(|known| *known == name).ok_or_else(|| {
            format!(
                "\"{name}\" is not one of its scenarios ({}); variables are given as NAME=value",
                names.join(", ")
            )
        }),
        (None, 1) => Ok(0),
        (None, _) => Err(format!(
            "it has {} scenarios, and a journey is one of them: name it after --, as in loadstone \
             run SCRIPT -- {}, or run all of them by loadstone k6 run",
            names.len(),
            names[0]
        )),
    }
}

/// Converts an executor to options of `run`.
fn load_options(executor: &Executor) -> Vec<(&'static str, String)> {
    let span = |span: &Nanos| crate::duration::show(*span);
    let iterations = |vus: &u64, count: u64, max: &Nanos| {
        let mut all = vec![("connections", vus.to_string()), ("requests", count.to_string())];
        if *max != Nanos::from_secs(600) {
            all.push(("duration", span(max)));
        }
        all
    };
    match executor {
        Executor::SharedIterations { vus, iterations: count, max_duration } => {
            iterations(vus, *count, max_duration)
        }
        Executor::PerVuIterations { vus, iterations: count, max_duration } => {
            iterations(vus, vus.saturating_mul(*count), max_duration)
        }
        Executor::ConstantVus { vus, duration } => {
            vec![("connections", vus.to_string()), ("duration", span(duration))]
        }
        Executor::RampingVus { start, stages, .. } => {
            vec![(
                "stages",
                stages_text(*start as f64, stages, |level| format!("{}", level as u64)),
            )]
        }
        Executor::ConstantArrivalRate { rate, unit, duration, .. } => {
            let rate = rate / unit.as_secs_f64();
            vec![("rate", format!("{rate}/s")), ("duration", span(duration))]
        }
        Executor::RampingArrivalRate { start, unit, stages, .. } => {
            let per_s = |level: f64| format!("{}/s", level / unit.as_secs_f64());
            vec![("stages", stages_text(*start, stages, per_s))]
        }
    }
}

/// Formats stages, each with its two levels; a stage without length is a jump between its
/// neighbors.
fn stages_text(start: f64, stages: &[RampStage], show: impl Fn(f64) -> String) -> String {
    let mut level = start;
    let mut parts = Vec::new();
    for stage in stages {
        let target = stage.target.max(0.0);
        if !stage.duration.is_zero() {
            let length = crate::duration::show(stage.duration);
            parts.push(format!("{length}:{}..{}", show(level), show(target)));
        }
        level = target;
    }
    parts.join(", ")
}

/// Converts a threshold to an objective; `None` if there is no equivalent. `own`: its metric
/// belongs to the script.
fn objective(
    metric: &MetricThresholds,
    expression: &crate::threshold::Expression,
    own: bool,
) -> Option<String> {
    if !metric.tags.is_empty() {
        return None;
    }
    let (operator, value) = expression.bound()?;
    if own {
        let figure = match &expression.aggregate {
            // a rate is the mean of zeros and ones
            Aggregate::Average | Aggregate::Rate => "mean".to_owned(),
            Aggregate::Median => "p50".to_owned(),
            Aggregate::Max => "max".to_owned(),
            Aggregate::Percentile(percent) => format!("p{percent}"),
            Aggregate::Count | Aggregate::Value | Aggregate::Min => return None,
        };
        return Some(format!("metric {}: {figure}{operator}{value}", metric.metric));
    }
    let text = match (metric.metric.as_str(), &expression.aggregate) {
        ("http_req_duration", aggregate) => {
            let name = match aggregate {
                Aggregate::Average => "mean".to_owned(),
                Aggregate::Median => "median".to_owned(),
                Aggregate::Max => "max".to_owned(),
                Aggregate::Percentile(percent) => format!("p{percent}"),
                _ => return None,
            };
            format!("{name}{operator}{value}ms")
        }
        // in percent, rounded: 0.01 × 100 in binary is not 1
        ("http_req_failed", Aggregate::Rate) => {
            format!("failures{operator}{}%", (value * 1e8).round() / 1e6)
        }
        ("http_reqs", Aggregate::Rate) => format!("throughput{operator}{value}/s"),
        _ => return None,
    };
    Some(text)
}

/// Returns why a module is not available to journeys.
fn unavailable(module: &str) -> Option<&'static str> {
    match module {
        "k6/ws" | "k6/websockets" | "k6/experimental/websockets" => Some(NO_SOCKETS),
        "k6/net/grpc" | "k6/experimental/grpc" => Some(NO_GRPC),
        _ => None,
    }
}

fn failure_text(failure: VuFailure) -> String {
    match failure {
        VuFailure::Exception(text) => text,
        VuFailure::Abort(message) => format!("test.abort(): {message}"),
        VuFailure::Interrupted => "interrupted".to_owned(),
    }
}

/// Script and settings for the users of one worker.
#[derive(Clone, Debug)]
pub struct ActorSpec {
    pub script: Arc<PlannedScript>,
    /// Replaces the script's first server.
    pub base: Url,
    /// Further servers that the script may call.
    pub servers: Vec<Url>,
    /// Names of the steps of the journey, by row.
    pub steps: Vec<String>,
    /// Names of the script's metrics, by row.
    pub metrics: Vec<String>,
    /// Result of `setup`, as JSON.
    pub data: Option<String>,
    pub console: Console,
}

impl ActorSpec {
    /// Runs `setup` or `teardown`; `exchange` makes its requests. Returns the result of `setup`, as
    /// JSON.
    ///
    /// # Errors
    /// Fails with the text and line of the script's error.
    pub fn run_stage(
        &self,
        stage: ScriptStage,
        exchange: &mut dyn FnMut(&ActedCall) -> HttpReply,
    ) -> Result<Option<String>, String> {
        let function = stage.function();
        let test = &self.script.test;
        let context = Context::new(test.program.clone(), Arc::default(), 0, test.seed);
        let (mut vu, ..) = Vu::new(&test.program, context).map_err(failure_text)?;
        vu.context().set_group(&format!("::{function}"));
        let start = Instant::now();
        let task = Task {
            function: function.to_owned(),
            argument: self.data.as_deref().map(Arc::from),
            iteration: 0,
            wants_result: stage == ScriptStage::Setup,
        };
        let mut answer = VuAnswer::Run(task);
        loop {
            let request = vu.resume(answer, since(start));
            self.print();
            answer = match request {
                VuRequest::Http(wire) => {
                    let call = self.call(&vu, *wire, Nanos::ZERO)?;
                    VuAnswer::Http(Box::new(exchange(&call)))
                }
                VuRequest::Sleep(span) => {
                    std::thread::sleep(Duration::from_nanos(span.0));
                    VuAnswer::Go
                }
                VuRequest::Finished(outcome) => {
                    return outcome.map_err(|it| one_line(&failure_text(it)));
                }
                VuRequest::Socket(..) | VuRequest::Any(_) | VuRequest::Ready { .. } => {
                    VuAnswer::End
                }
            };
        }
    }

    /// Prints the lines that the script has logged.
    fn print(&self) {
        for line in self.script.test.program.take_log() {
            (self.console)(&line.text);
        }
    }

    /// Converts a request to the form of plans.
    fn call(&self, vu: &Vu, wire: WireRequest, wait: Nanos) -> Result<ActedCall, String> {
        let WireRequest { method, url, headers, body, name, expected, .. } = wire;
        let mut url = Arc::unwrap_or_clone(url);
        let mut headers = Arc::unwrap_or_clone(headers);
        let authority = url[Position::BeforeHost..Position::AfterPort].to_owned();
        if self.script.base_server().is_some_and(|home| is_same_server(home, &url)) {
            url = moved(&url, &self.base);
        }
        if !self.servers.iter().chain([&self.base]).any(|server| is_same_server(server, &url)) {
            return Err(format!(
                "{} is not a server of this run: name it in the script, or as a variable after --",
                url.origin().ascii_serialization()
            ));
        }
        headers.retain(|(name, value)| match name.as_str() {
            "Host" => *value != authority,
            // the engine writes its own
            "Content-Length" => false,
            "User-Agent" => !value.starts_with("Grafana k6/"),
            _ => true,
        });
        let group = vu.context().group.borrow();
        let names = [name.as_str(), group.rsplit("::").next().unwrap_or_default()];
        let row = |name: &str| self.steps.iter().position(|step| step == name);
        let step = names.into_iter().find_map(row).unwrap_or(0) as u32;
        let bodied = !body.is_empty() || matches!(&*method, "POST" | "PUT" | "PATCH");
        let statuses = expected_statuses(expected.as_deref());
        let body = bodied.then_some(body);
        let method = method.into_owned();
        Ok(ActedCall { wait, step, method, url, headers, body, statuses, socket: None })
    }
}

/// Returns the time on a script's clock, which began at one second.
fn since(start: Instant) -> Nanos {
    Nanos::SECOND + Nanos::from_secs_f64(start.elapsed().as_secs_f64())
}

/// Users of one worker.
#[derive(Debug)]
pub struct ScriptActor {
    spec: ActorSpec,
    /// By row of the script's metrics: the row in the plan, or `None` if the plan does not have the
    /// metric.
    metric_rows: Vec<Option<u32>>,
    data: Option<Arc<str>>,
    store: Arc<Mutex<Store>>,
    users: BTreeMap<u64, Vu>,
    spares: Vec<Vu>,
    start: Instant,
}

impl ScriptActor {
    pub fn new(spec: ActorSpec) -> ScriptActor {
        let row_of = |name: &String| spec.metrics.iter().position(|known| known == name);
        let all = spec.script.test.program.metrics().defs.iter();
        let metric_rows = all.map(|metric| row_of(&metric.name).map(|row| row as u32)).collect();
        ScriptActor {
            metric_rows,
            data: spec.data.as_deref().map(Arc::from),
            store: Arc::default(),
            users: BTreeMap::new(),
            spares: Vec::new(),
            start: Instant::now(),
            spec,
        }
    }

    fn now(&self) -> Nanos {
        since(self.start)
    }

    /// Returns a user, possibly reused from an earlier iteration.
    fn user(&mut self, number: u64) -> Result<Vu, String> {
        if let Some(vu) = self.users.remove(&number).or_else(|| self.spares.pop()) {
            return Ok(vu);
        }
        let test = &self.spec.script.test;
        let store = self.store.clone();
        let context = Context::new(test.program.clone(), store, number + 1, test.seed);
        context.keep_notes();
        let (vu, ..) = Vu::new(&test.program, context).map_err(failure_text)?;
        self.spec.script.enter(&vu);
        Ok(vu)
    }

    /// Runs the script to its next request or to the end of its iteration.
    fn drive(&mut self, number: u64, mut vu: Vu, mut request: VuRequest) -> ActorTurn {
        let mut wait = Nanos::ZERO;
        let mut pauses = 0;
        let action = loop {
            match request {
                VuRequest::Sleep(span) if pauses < PAUSES_MAX => {
                    pauses += 1;
                    wait += span;
                    request = vu.resume(VuAnswer::Go, self.now() + wait);
                }
                VuRequest::Http(wire) => match self.spec.call(&vu, *wire, wait) {
                    Ok(call) => break ActorAction::Call(Box::new(call)),
                    Err(why) => {
                        interrupt(&mut vu, self.now());
                        break ActorAction::Broke(why);
                    }
                },
                VuRequest::Finished(Ok(_) | Err(VuFailure::Interrupted))
                | VuRequest::Ready { .. } => break ActorAction::Over { wait },
                VuRequest::Finished(Err(VuFailure::Abort(message))) => {
                    break ActorAction::Abort(message);
                }
                VuRequest::Finished(Err(failure)) => {
                    break ActorAction::Broke(one_line(&failure_text(failure)));
                }
                VuRequest::Socket(..) | VuRequest::Any(_) => {
                    interrupt(&mut vu, self.now());
                    break ActorAction::Broke(NO_SOCKETS.to_owned());
                }
                VuRequest::Sleep(_) => {
                    interrupt(&mut vu, self.now());
                    let why = format!("{PAUSES_MAX} pauses in a row without a request");
                    break ActorAction::Broke(why);
                }
            }
        };
        self.spec.print();
        let notes = vu.context().take_notes();
        let checks = notes.checks.into_iter().map(|(name, met)| (!met).then_some(name)).collect();
        let values = notes.values.into_iter();
        let row_of = |row: usize| self.metric_rows.get(row).copied().flatten();
        let values = values.filter_map(|(row, value)| Some((row_of(row)?, value))).collect();
        self.users.insert(number, vu);
        ActorTurn { failure: None, checks, values, action }
    }
}

/// Returns a turn with only an action.
fn bare(action: ActorAction) -> ActorTurn {
    ActorTurn { failure: None, checks: Vec::new(), values: Vec::new(), action }
}

/// Returns the expected statuses; empty for those of the plan.
fn expected_statuses(pairs: Option<&[u32]>) -> Vec<u16> {
    match pairs {
        Some([200, 399]) => Vec::new(),
        None => (100..=599).collect(),
        Some(pairs) => {
            let ranges = pairs.chunks_exact(2).map(|pair| pair[0]..=pair[1].min(599));
            ranges.flatten().filter_map(|status| u16::try_from(status).ok()).collect()
        }
    }
}

/// Compares the origins of two URLs over HTTP, without allocating them.
fn is_same_server(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.host() == b.host()
        && a.port_or_known_default() == b.port_or_known_default()
}

/// Returns the URL with another server.
fn moved(url: &Url, base: &Url) -> Url {
    let path = &url[Position::BeforePath..Position::AfterQuery];
    base.join(path).unwrap_or_else(|_| url.clone())
}

/// Ends the current task.
fn interrupt(vu: &mut Vu, now: Nanos) {
    for _ in 0..16 {
        if !vu.is_running() {
            return;
        }
        vu.resume(VuAnswer::Interrupt, now);
    }
}

/// Formats an exception with the first line of its stack.
fn one_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let head = lines.next().unwrap_or_default();
    match lines.find(|line| {
        line.starts_with("at ") && !line.contains("native") && !line.contains("builtin:")
    }) {
        Some(place) => format!("{head} ({place})"),
        None => head.to_owned(),
    }
}

impl Actor for ScriptActor {
    fn begin(&mut self, begun: &IterationStart<'_>) -> ActorTurn {
        let mut vu = match self.user(begun.user) {
            Ok(vu) => vu,
            Err(why) => {
                return bare(ActorAction::Broke(one_line(&why)));
            }
        };
        let now = self.now();
        interrupt(&mut vu, now);
        let options = self.spec.script.test.options();
        let own = vu.context().next_iteration();
        let facts = IterationFacts { of_user: own, in_scenario: own, of_scenario: begun.iteration };
        vu.context().set_iteration(facts, options.no_cookies_reset);
        vu.context().seed_iteration(begun.iteration);
        let task = Task {
            function: options.scenarios[self.spec.script.scenario].exec.clone(),
            argument: self.data.clone(),
            iteration: own,
            wants_result: false,
        };
        let request = vu.resume(VuAnswer::Run(task), now);
        self.drive(begun.user, vu, request)
    }

    fn resume(&mut self, user: u64, heard: Result<&CallResponse<'_>, &str>) -> ActorTurn {
        let Some(mut vu) = self.users.remove(&user) else {
            return bare(ActorAction::Over { wait: Nanos::ZERO });
        };
        let now = self.now();
        let reply = match heard {
            Ok(heard) => reply(heard, now),
            Err(_) => HttpReply {
                sample: Sample { class: Some(FailureClass::OtherIo), ..at(now, Nanos::ZERO) },
                ..HttpReply::default()
            },
        };
        let request = vu.resume(VuAnswer::Http(Box::new(reply)), now);
        self.drive(user, vu, request)
    }

    fn end_early(&mut self, user: u64) {
        let now = self.now();
        if let Some(vu) = self.users.get_mut(&user) {
            interrupt(vu, now);
        }
    }

    fn forget(&mut self, user: u64) {
        self.end_early(user);
        if let Some(vu) = self.users.remove(&user)
            && self.spares.len() < SPARES_MAX
        {
            self.spares.push(vu);
        }
    }
}

/// Returns a sample of a call that ended at `now` after this time.
fn at(now: Nanos, took: Nanos) -> Sample {
    let sent = now - took;
    Sample {
        intended: sent,
        admitted: sent,
        issued: sent,
        sent,
        written: sent,
        first_byte: now,
        done: now,
        ..Sample::default()
    }
}

fn reply(heard: &CallResponse<'_>, now: Nanos) -> HttpReply {
    let class = heard.error.and_then(|id| FailureClass::ALL.iter().find(|it| it.id() == id));
    let sample = Sample { status: heard.status, class: class.copied(), ..at(now, heard.took) };
    let (head, body) = (heard.head.to_vec(), heard.body.to_vec());
    HttpReply { sample, head, body, ..HttpReply::default() }
}

/// Returns the reply of an exchange outside the run; `error`: no reply arrived.
pub fn stage_reply(status: u16, head: Vec<u8>, body: Vec<u8>, took: Nanos) -> HttpReply {
    let sample = Sample { status, ..at(Nanos::SECOND + took, took) };
    HttpReply { sample, head, body, ..HttpReply::default() }
}

/// Returns the reply for an exchange that failed.
pub fn stage_failure(class: FailureClass) -> HttpReply {
    let sample = Sample { class: Some(class), ..at(Nanos::SECOND, Nanos::ZERO) };
    HttpReply { sample, ..HttpReply::default() }
}

#[cfg(test)]
mod tests;
