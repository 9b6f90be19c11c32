//! A test: a script that has been read, with its consolidated options.

use crate::call::{REQUEST_TIMEOUT, Task, VuAnswer, VuFailure, VuRequest};
use crate::context::{Context, ScenarioFacts};
use crate::metrics::{MetricKind, MetricSink, Store};
use crate::modules::{ModuleRef, resolve};
use crate::options::{Findings, Layers, Options};
use crate::program::{LogLine, Program};
use crate::scan;
use crate::scenario::{Roster, ScenarioProgress};
use crate::vu::Vu;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use units::Nanos;

/// Exit codes of k6.
pub mod exit {
    pub const THRESHOLDS: u8 = 99;
    pub const SETUP_TIMEOUT: u8 = 100;
    pub const TEARDOWN_TIMEOUT: u8 = 101;
    pub const CONFIG: u8 = 104;
    pub const INTERRUPTED: u8 = 105;
    pub const EXCEPTION: u8 = 107;
    pub const ABORTED: u8 = 108;
    pub const MARKED_FAILED: u8 = 110;
    /// A command line that cannot be used, a missing script, or a script without functions: k6 has
    /// no code for them and exits with -1.
    pub const USAGE: u8 = 255;
}

/// Reason why a test cannot be run: the message, and k6's exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    pub text: String,
    pub code: u8,
}

/// File of `--config`.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    pub name: String,
    pub text: String,
    pub json: Value,
}

/// Options given outside the script.
#[derive(Clone, Debug, Default)]
pub struct OuterOptions {
    pub config: Option<ConfigFile>,
    pub environment: Option<Value>,
    pub flags: Option<Value>,
}

/// Places of options in findings.
const ENVIRONMENT: &str = "environment";
const FLAGS: &str = "flags";

impl OuterOptions {
    /// Returns a finding about an option given outside of the script, with its line if it is in
    /// the file; `None` for other findings.
    fn placed(&self, finding: &str) -> Option<String> {
        let after = |place: &str| finding.strip_prefix(place)?.strip_prefix(": ");
        let config = self.config.as_ref();
        let in_config = config.and_then(|file| Some((file, after(&file.name)?)));
        if let Some((file, rest)) = in_config {
            return Some(match line_of_finding(&file.text, rest) {
                Some(line) => format!("{}:{line}: {rest}", file.name),
                None => finding.to_owned(),
            });
        }
        let is_outside = [ENVIRONMENT, FLAGS].into_iter().any(|place| after(place).is_some());
        is_outside.then(|| finding.to_owned())
    }
}

/// Reason why a test ends before its scenarios do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    Aborted(String),
    Thresholds(Vec<String>),
    Setup(String),
    SetupTimeout,
    Init(String),
}

/// A test, shared by all workers.
#[derive(Debug)]
pub struct Test {
    pub program: Arc<Program>,
    pub roster: Roster,
    pub progress: Vec<ScenarioProgress>,
    pub facts: Vec<Arc<ScenarioFacts>>,
    pub exports: BTreeSet<String>,
    pub warnings: Vec<String>,
    pub seed: u64,
    stores: Mutex<Vec<Arc<Mutex<Store>>>>,
    setup: Mutex<Option<Arc<str>>>,
    /// Instant at which the scenarios begin; 0 during setup.
    base: AtomicU64,
    origin: AtomicU64,
    last: AtomicU64,
    /// Number of users that have not left yet.
    pub(crate) present: AtomicU64,
    stop: Mutex<Option<StopReason>>,
    stopped: AtomicBool,
    /// Users that have run the init code.
    pub(crate) created: AtomicU64,
    pub(crate) teardown_failed: Mutex<Option<u8>>,
    may_stop: bool,
    /// Instant at which the next request may begin, by the option `rps`.
    next_slot: AtomicU64,
}

impl Test {
    /// Reads a script: its imports, its init code, its options.
    ///
    /// # Errors
    /// Fails with everything that is wrong with the script, and the exit code.
    pub fn load(program: Program, outer: &OuterOptions, seed: u64) -> Result<Test, LoadError> {
        let program = Arc::new(program);
        if let Some(text) = program.unreadable_entry() {
            return Err(LoadError { text, code: exit::USAGE });
        }
        let refused = refused_imports(&program);
        if !refused.is_empty() {
            return Err(LoadError { text: refused.join("\n"), code: exit::EXCEPTION });
        }
        let store = Arc::new(Mutex::new(Store::default()));
        let context = Context::new(program.clone(), store, 0, seed);
        let (vu, exported, exports) = Vu::new(&program, context).map_err(|failure| {
            let text = match failure {
                VuFailure::Exception(text) => with_import_line(&program, text),
                VuFailure::Abort(text) => text,
                VuFailure::Interrupted => "the init context was interrupted".to_owned(),
            };
            LoadError { text, code: exit::EXCEPTION }
        })?;
        drop(vu);
        let exports: BTreeSet<String> = exports.into_iter().collect();
        if exports.is_empty() {
            let text = format!(
                "{} exports no function; write export default function () {{ … }}",
                program.entry
            );
            return Err(LoadError { text, code: exit::USAGE });
        }
        let mut findings = Findings::default();
        let exported = exported.and_then(|json| serde_json::from_str::<Value>(&json).ok());
        let options = consolidate(exported.as_ref(), outer, &mut findings);
        check(&program, &options, &exports, &mut findings);
        let text = program.text(&program.entry).unwrap_or_default();
        let lined = |list: Vec<String>| -> Vec<String> {
            let line = |it: String| {
                outer.placed(&it).unwrap_or_else(|| with_line(&program.entry, &text, it))
            };
            list.into_iter().map(line).collect()
        };
        if !findings.errors.is_empty() {
            let text = lined(findings.errors).join("\n");
            return Err(LoadError { text, code: exit::CONFIG });
        }
        let warnings = lined(findings.warnings);
        Ok(Test::new(program, options, exports, warnings, seed))
    }

    fn new(
        program: Arc<Program>,
        options: Options,
        exports: BTreeSet<String>,
        warnings: Vec<String>,
        seed: u64,
    ) -> Test {
        let roster = Roster::new(&options.scenarios);
        let facts = options.scenarios.iter().map(|scenario| {
            Arc::new(ScenarioFacts {
                name: scenario.name.clone(),
                executor: scenario.executor.id(),
                start: scenario.start,
                length: scenario.executor.length(),
                env: scenario.env.clone(),
                tags: scenario.tags.clone(),
            })
        });
        let facts = facts.collect();
        let progress = options.scenarios.iter().cloned().map(ScenarioProgress::new).collect();
        let users = roster.users.len() as u64;
        program.counts.users.store(users, Ordering::Relaxed);
        let aborts = options.thresholds.iter().flat_map(|it| &it.all).any(|it| it.abort_on_fail);
        let text = program.text(&program.entry).unwrap_or_default();
        let may_stop = aborts || text.contains("abort");
        // this is the only place that sets it
        drop(program.options.set(options));
        Test {
            program,
            progress,
            facts,
            exports,
            warnings,
            seed,
            stores: Mutex::default(),
            setup: Mutex::default(),
            base: AtomicU64::new(0),
            origin: AtomicU64::new(0),
            last: AtomicU64::new(0),
            present: AtomicU64::new(users),
            stop: Mutex::default(),
            stopped: AtomicBool::new(false),
            created: AtomicU64::new(0),
            teardown_failed: Mutex::default(),
            may_stop,
            next_slot: AtomicU64::new(0),
            roster,
        }
    }

    pub fn options(&self) -> &Options {
        self.program.options().expect("a test is made with its options")
    }

    /// Reserves the next instant at which a request may begin, by the option `rps`.
    pub(crate) fn next_slot(&self, now: Nanos) -> Nanos {
        let every = Nanos::from_secs_f64(self.options().rps.map_or(0.0, |rate| 1.0 / rate));
        let after = |next: u64| Some(next.max(now.0).saturating_add(every.0));
        let reserved = self.next_slot.fetch_update(Ordering::AcqRel, Ordering::Acquire, after);
        Nanos(reserved.unwrap_or(0).max(now.0))
    }

    pub fn users(&self) -> u64 {
        self.roster.users.len() as u64
    }

    /// Creates a store for the values of one worker.
    pub fn new_store(&self) -> Arc<Mutex<Store>> {
        let store = Arc::new(Mutex::new(Store::default()));
        self.stores.lock().unwrap_or_else(PoisonError::into_inner).push(store.clone());
        store
    }

    /// Returns everything collected so far.
    pub fn collected(&self) -> Store {
        let mut all = Store::default();
        for store in self.stores.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            all.merge(&store.lock().unwrap_or_else(PoisonError::into_inner));
        }
        all
    }

    /// Keeps every value with its tags, for an output. Must be called before the test begins.
    pub fn keep_points(&self) {
        self.program.registry().keeps_points = true;
    }

    /// Keeps the values of each scenario and group, for a full summary. Must be called before the
    /// test begins.
    pub fn keep_sections(&self) {
        self.program.registry().keeps_sections = true;
    }

    /// Returns the values with tags since the previous call.
    pub fn take_points(&self) -> Vec<crate::metrics::DataPoint> {
        let mut all = Vec::new();
        for store in self.stores.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            all.append(&mut store.points);
        }
        all.sort_by_key(|point| point.at);
        all
    }

    /// Stops the test early; the first reason counts.
    pub fn stop(&self, reason: StopReason) {
        let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        stop.get_or_insert(reason);
        self.stopped.store(true, Ordering::Release);
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the instant at which the scenarios begin.
    pub fn base(&self) -> Option<Nanos> {
        Some(Nanos(self.base.load(Ordering::Acquire))).filter(|at| !at.is_zero())
    }

    pub(crate) fn begin_scenarios(&self, now: Nanos) {
        self.base.store(now.0.max(1), Ordering::Release);
    }

    /// Returns the first instant of the test.
    pub fn origin(&self) -> Nanos {
        Nanos(self.origin.load(Ordering::Relaxed))
    }

    pub(crate) fn note_origin(&self, now: Nanos) {
        let fresh =
            self.origin.compare_exchange(0, now.0.max(1), Ordering::Relaxed, Ordering::Relaxed);
        if fresh.is_ok() {
            self.program.counts.origin.store(now.0, Ordering::Relaxed);
        }
    }

    /// Returns whether all users have run the init code.
    pub(crate) fn has_created_all(&self) -> bool {
        self.created.load(Ordering::Acquire) >= self.users()
    }

    /// Notes that a user was present at `now`.
    pub(crate) fn note_end(&self, now: Nanos) {
        self.last.fetch_max(now.0, Ordering::Relaxed);
    }

    /// Returns whether all users have left.
    pub fn is_over(&self) -> bool {
        self.present.load(Ordering::Acquire) == 0
    }

    /// Warns, once per scenario, that iterations were dropped because it has too few users.
    pub fn warn_of_missing_users(&self, progress: &ScenarioProgress) {
        if progress.has_warned.swap(true, Ordering::Relaxed) {
            return;
        }
        let scenario = &progress.scenario;
        let users = scenario.executor.users();
        let text =
            format!("Insufficient VUs, reached {users} active VUs and cannot initialize more");
        self.program.log_line(LogLine {
            fields: vec![
                ("executor", scenario.executor.id().to_owned()),
                ("scenario", scenario.name.clone()),
            ],
            ..LogLine::new("warning", text)
        });
    }

    /// Returns the last instant of the test.
    pub fn end(&self) -> Nanos {
        Nanos(self.last.load(Ordering::Relaxed)).max(self.origin())
    }

    /// Returns the exit code for a failed teardown.
    pub fn teardown_code(&self) -> Option<u8> {
        *self.teardown_failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a threshold can end the test.
    pub fn may_abort(&self) -> bool {
        self.options().thresholds.iter().flat_map(|it| &it.all).any(|it| it.abort_on_fail)
    }

    /// Returns the maximum time of a request: k6's 60 s, or the script's value.
    pub fn longest_request(&self) -> Nanos {
        let text = self.program.text(&self.program.entry).unwrap_or_default();
        let asked = scan::values_of_key(&text, "timeout").into_iter();
        let asked = asked.filter_map(|value| crate::duration::parse(&value).ok());
        asked.fold(REQUEST_TIMEOUT, Nanos::max)
    }

    /// Calls the script's `handleSummary`; returns texts by destination. `None` if there is no such
    /// function.
    pub fn handle_summary(&self, data: &Value) -> Option<Result<Vec<(String, String)>, String>> {
        self.exports.contains("handleSummary").then(|| self.call_summary(data))
    }

    fn call_summary(&self, data: &Value) -> Result<Vec<(String, String)>, String> {
        let describe = |failure: VuFailure| match failure {
            VuFailure::Exception(text) | VuFailure::Abort(text) => text,
            VuFailure::Interrupted => "it was interrupted".to_owned(),
        };
        let store = Arc::new(Mutex::new(Store::default()));
        let context = Context::new(self.program.clone(), store, 0, self.seed);
        let (mut vu, _, _) = Vu::new(&self.program, context).map_err(describe)?;
        let task = Task {
            function: "handleSummary".to_owned(),
            argument: Some(data.to_string().into()),
            iteration: 0,
            wants_result: true,
        };
        let limit = self.options().summary_timeout;
        vu.context().set_deadline(self.end() + limit);
        let mut request = vu.resume(VuAnswer::Run(task), self.end());
        if matches!(request, VuRequest::Finished(Err(VuFailure::Interrupted))) {
            return Err(format!(
                "it took longer than {}; handleSummaryTimeout sets the limit",
                crate::duration::show(limit)
            ));
        }
        // the network is no longer available
        while !matches!(request, VuRequest::Finished(_) | VuRequest::Ready { .. }) {
            request = vu.resume(VuAnswer::Interrupt, self.end());
        }
        let VuRequest::Finished(outcome) = request else { return Err("it did not end".to_owned()) };
        let json = outcome.map_err(describe)?.unwrap_or_default();
        let made: Value = serde_json::from_str(&json).map_err(|why| why.to_string())?;
        let Value::Object(parts) = made else {
            return Err("it must return an object of names and texts".to_owned());
        };
        let text = |(name, value): (String, Value)| match value {
            Value::String(text) => Ok((name, text)),
            _ => Err(format!("the value of \"{name}\" must be a text")),
        };
        parts.into_iter().map(text).collect()
    }

    pub(crate) fn set_setup(&self, json: Option<&str>) {
        *self.setup.lock().unwrap_or_else(PoisonError::into_inner) = json.map(Arc::from);
    }

    /// Returns the result of `setup`, as JSON.
    pub fn setup_data(&self) -> Option<Arc<str>> {
        self.setup.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the test may end before its scenarios do.
    pub(crate) fn stops_early(&self) -> bool {
        self.may_stop
    }

    pub(crate) fn has_setup(&self) -> bool {
        self.exports.contains("setup") && !self.options().no_setup
    }

    pub(crate) fn has_summary(&self) -> bool {
        self.exports.contains("handleSummary")
    }

    pub(crate) fn has_teardown(&self) -> bool {
        self.exports.contains("teardown") && !self.options().no_teardown
    }

    /// Returns the longest time from the first scenario's start to the end of the last graceful
    /// stop.
    pub fn longest(&self) -> Nanos {
        self.progress.iter().map(ScenarioProgress::hard_end).max().unwrap_or(Nanos::ZERO)
    }

    /// Returns the thresholds that are crossed now, by the names of their metrics. `for_abort`:
    /// only thresholds that end the test, after their delay.
    pub fn crossed(&self, all: &Store, elapsed_s: f64, for_abort: bool) -> Vec<String> {
        let mut names = Vec::new();
        for metric in &self.options().thresholds {
            let is_used = self.sink_of(all, metric).is_some_and(MetricSink::is_used);
            if for_abort && !is_used {
                continue;
            }
            let crossed = metric.all.iter().any(|threshold| {
                let counts =
                    !for_abort || (threshold.abort_on_fail && elapsed_s >= threshold.delay_s);
                counts
                    && self
                        .value_of(all, metric, &threshold.expression.aggregate, elapsed_s)
                        .is_some_and(|value| !threshold.expression.holds(value))
            });
            if crossed {
                names.push(metric.name.clone());
            }
        }
        names
    }

    /// Returns the value that a threshold tests: as in k6, 0 if nothing was collected. `None` for
    /// a rate without values, which meets every threshold.
    pub fn value_of(
        &self,
        all: &Store,
        metric: &crate::threshold::MetricThresholds,
        aggregate: &crate::threshold::Aggregate,
        elapsed_s: f64,
    ) -> Option<f64> {
        let registry = self.program.metrics();
        match self.sink_of(all, metric).filter(|sink| sink.is_used()) {
            Some(sink) => Some(aggregate.value(sink, elapsed_s)),
            None => {
                let kind = registry.defs[registry.find(&metric.metric)?].kind;
                (kind != MetricKind::Rate).then_some(0.0)
            }
        }
    }

    /// Returns the collected values of a threshold's metric.
    pub fn sink_of<'a>(
        &self,
        all: &'a Store,
        metric: &crate::threshold::MetricThresholds,
    ) -> Option<&'a MetricSink> {
        let registry = self.program.metrics();
        let row = registry.find(&metric.metric)?;
        if metric.tags.is_empty() {
            return all.sink(row);
        }
        let sub = registry.subs.iter().position(|sub| sub.parent == row && sub.tags == metric.tags);
        all.sub(sub?)
    }
}

/// Imports that cannot be resolved, over all local files.
fn refused_imports(program: &Program) -> Vec<String> {
    let mut seen = BTreeSet::from([program.entry.clone()]);
    let mut queue = vec![(program.entry.clone(), None::<(String, usize)>)];
    let mut refused = Vec::new();
    while let Some((path, from)) = queue.pop() {
        let text = match program.text(&path) {
            Ok(text) => text,
            Err(why) => {
                let place = from.map(|(file, line)| format!("{file}:{line}: ")).unwrap_or_default();
                refused.push(format!("{place}{why}"));
                continue;
            }
        };
        for import in scan::imports(&text) {
            match resolve(&path, &import.name) {
                ModuleRef::Refused(why) => refused.push(format!(
                    "{path}:{}: cannot import \"{}\": {why}",
                    import.line, import.name
                )),
                ModuleRef::File(file) if seen.insert(file.clone()) => {
                    queue.push((file, Some((path.clone(), import.line))));
                }
                _ => {}
            }
        }
    }
    refused
}

/// Merges the layers of options.
fn consolidate(exported: Option<&Value>, outer: &OuterOptions, findings: &mut Findings) -> Options {
    let mut layers = Layers::default();
    if let Some(file) = &outer.config {
        layers.apply(&file.json, &file.name, findings);
    }
    if let Some(exported) = exported {
        layers.apply(exported, "options", findings);
    }
    if let Some(environment) = &outer.environment {
        layers.apply(environment, ENVIRONMENT, findings);
    }
    if let Some(flags) = &outer.flags {
        layers.apply(flags, FLAGS, findings);
    }
    layers.finish(findings)
}

/// Checks the complete script: missing functions, and metrics that thresholds name.
fn check(
    program: &Program,
    options: &Options,
    exports: &BTreeSet<String>,
    findings: &mut Findings,
) {
    for scenario in &options.scenarios {
        for why in scenario.executor.problems() {
            findings.errors.push(format!("scenario \"{}\": {why}", scenario.name));
        }
        if !exports.contains(&scenario.exec) {
            let text = format!(
                "scenario \"{}\": function \"{}\" is not exported by the script",
                scenario.name, scenario.exec
            );
            findings.errors.push(text);
        }
    }
    let mut registry = program.registry();
    if let Some(parent) = registry.find("http_req_duration") {
        let tags = vec![("expected_response".to_owned(), "true".to_owned())];
        registry.sub("http_req_duration{expected_response:true}", parent, tags);
    }
    for metric in &options.thresholds {
        let Some(row) = registry.find(&metric.metric) else {
            let text = format!(
                "invalid threshold defined on metric \"{}\": no metric name \"{}\" found",
                metric.name, metric.metric
            );
            findings.errors.push(text);
            continue;
        };
        let kind = registry.defs[row].kind;
        for threshold in metric.all.iter().filter(|one| !one.expression.fits(kind)) {
            let text = format!(
                "invalid threshold \"{}\" on metric \"{}\": a {} has no {}",
                threshold.expression.source,
                metric.name,
                kind.id(),
                threshold.expression.shown
            );
            findings.errors.push(text);
        }
        if !metric.tags.is_empty() {
            registry.sub(&metric.name, row, metric.tags.clone());
        }
    }
}

/// Adds file and line to a finding that names an option in quotes.
fn with_line(file: &str, text: &str, finding: String) -> String {
    match line_of_finding(text, &finding) {
        Some(line) => format!("{file}:{line}: {finding}"),
        None => finding,
    }
}

/// Returns the line of the first option that a finding names in quotes.
fn line_of_finding(text: &str, finding: &str) -> Option<usize> {
    let mut names = finding.split('"').skip(1).step_by(2);
    names.find_map(|name| scan::line_of_key(text, name))
}

/// Adds file and line to the JavaScript engine's message about a missing export.
fn with_import_line(program: &Program, message: String) -> String {
    let named = || {
        let (_, rest) = message.split_once("Could not find export '")?;
        let (export, rest) = rest.split_once("' in module '")?;
        let (module, _) = rest.rsplit_once('\'')?;
        program.modules_read().into_iter().find_map(|(path, text)| {
            let mut imports = scan::imports(&text).into_iter();
            let import = imports.find(|import| {
                text.contains(export)
                    && resolve(&path, &import.name).key().as_deref() == Some(module)
            })?;
            Some(format!("{path}:{}: \"{}\" has no export \"{export}\"", import.line, import.name))
        })
    };
    named().unwrap_or(message)
}
