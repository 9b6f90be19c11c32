//! k6: scripts in JavaScript as they are, with k6's summary, thresholds and exit codes.

mod options;

use crate::{
    Date, Ending, Extras, Face, FaceDecision, FaceOutput, Facts, Files, Job, Needs, OutFile,
    Reading, RequestLog, StartTrouble,
};
use k6::guide::ScriptGuides;
use k6::metrics::{Store, row};
use k6::options::{OfferedVersions, Options as TestOptions, PreferredFamily};
use k6::output::{Calendar, JsonOutput, csv_head, csv_lines, log_line, rfc3339};
use k6::program::{LogLine, Program};
use k6::summary::TestSummary;
use k6::test::{ConfigFile, LoadError, OuterOptions, StopReason, Test, exit};
use options::{Command, Options, SummaryMode};
use plan::{
    AddressFamily, AddressOrder, Expect, Load, Plan, TargetPlan, Think, Timeouts, TlsPlan,
    TlsVersions,
};
use record::run::RunRecord;
use serde_json::json;
use stats::{Second, Snapshot};
use std::sync::{Arc, Mutex, PoisonError};
use units::Nanos;
use url::Url;

/// Placeholder target for the plan, which needs a target; the script chooses the real ones.
const NOWHERE: &str = "http://127.0.0.1/";
/// The placeholder if only IPv6 addresses are used.
const NOWHERE_V6: &str = "http://[::1]/";
/// Maximum duration of opening a connection, as in k6.
const CONNECT: Nanos = Nanos::from_secs(30);
/// Seed of the scripts' random numbers.
const SEED: u64 = 1;

const BANNER: &str = "
         /\\      Grafana   /‾‾/  
    /\\  /  \\     |\\  __   /  /   
   /  \\/    \\    | |/ /  /   ‾‾\\ 
  /          \\   |   (  |  (‾)  |
 / __________ \\  |_|\\_\\  \\_____/ 

";

/// Reads k6's command line.
pub(crate) fn read(args: &[String], extras: Extras, files: &dyn Files) -> Reading {
    match begin(args, extras, files) {
        Ok(job) => Reading::Run(Box::new(job)),
        Err(ending) => Reading::End(ending),
    }
}

/// Formats a line of the log on standard error.
fn error_line(level: &'static str, text: &str, files: &dyn Files) -> String {
    let now = (files.now().unix_s * 1e9) as i128;
    log_line(&LogLine::new(level, text), now)
}

fn begin(args: &[String], extras: Extras, files: &dyn Files) -> Result<Job, Ending> {
    let refused = |text: &str, code: u8| Ending::error(error_line("error", text, files), code);
    let options = options::parse(args, files).map_err(|why| refused(&why.text, why.code))?;
    if options.command == Command::Version {
        return Err(Ending::text(format!("k6 v{} (loadstone)\n", k6::VERSION)));
    }
    let test = load(&options, files).map_err(|error| refused(&error.text, error.code))?;
    if options.command == Command::Inspect {
        return Err(Ending::text(inspect(&test, options.requirements)));
    }
    if options.out.is_some() {
        test.keep_points();
    }
    if options.summary == SummaryMode::Full {
        test.keep_sections();
    }
    let test = Arc::new(test);
    let plan = plan(&test, files);
    let log = options.out.as_ref().map(|(_, path)| RequestLog {
        path: path.clone(),
        complaint: error_line("error", &format!("cannot open {path} for --out"), files),
        code: exit::CONFIG,
        fresh: true,
    });
    let guides = Box::new(ScriptGuides(test.clone()));
    let face = Box::new(K6::new(test, options, extras.strict));
    let needs = Needs::default();
    Ok(Job { guides: Some(guides), log, ..Job::new(plan, needs, extras, face) })
}

/// Reads the script with its options.
fn load(options: &Options, files: &dyn Files) -> Result<Test, LoadError> {
    let config = match &options.config {
        None => None,
        Some(path) => {
            let wrong = |text: String| LoadError { text, code: exit::CONFIG };
            let bytes = files
                .read(path)
                .map_err(|why| wrong(format!("cannot read the config {path}: {}", why.text)))?;
            let json = serde_json::from_slice(&bytes)
                .map_err(|why| wrong(format!("the config {path} is not JSON: {why}")))?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Some(ConfigFile { name: path.clone(), text, json })
        }
    };
    let disk = files.reader();
    let (entry, read): (&str, k6::program::ReadFile) = if options.script == "-" {
        let text = files.read_input().map_err(|why| why.text);
        let given = Mutex::new(text);
        let read = move |path: &str| match path {
            "-" => given.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            other => disk(other),
        };
        ("-", Box::new(read))
    } else {
        (&options.script, disk)
    };
    let outer = OuterOptions {
        config,
        environment: Some(options.environment.clone()),
        flags: Some(options.flags.clone()),
    };
    Test::load(Program::new(entry, options.env.clone(), read), &outer, SEED)
}

/// Returns the options as `k6 inspect` prints them.
fn inspect(test: &Test, requirements: bool) -> String {
    let mut json = test.options().json.clone();
    if requirements {
        json["totalDuration"] = json!(k6::duration::show(test.longest()));
        json["maxVUs"] = json!(test.users());
    }
    let text = serde_json::to_string_pretty(&json).unwrap_or_default();
    text + "\n"
}

fn plan(test: &Test, files: &dyn Files) -> Plan {
    let options = test.options();
    let nowhere = match options.dns.family {
        PreferredFamily::V6 => NOWHERE_V6,
        PreferredFamily::Any | PreferredFamily::V4 => NOWHERE,
    };
    let target = Url::parse(nowhere).expect("a constant URL is well formed");
    let mut plan = Plan::for_targets(vec![TargetPlan::new(target)]);
    let users = u32::try_from(test.users()).unwrap_or(u32::MAX);
    plan.load = Load::Closed { users, think: Think::None, session: None };
    // the guide knows when its users are done
    plan.stop.duration = None;
    plan.stop.requests = Some(u64::MAX);
    plan.timeouts = Timeouts {
        connect: CONNECT,
        first_byte: None,
        progress: None,
        answer: None,
        call: test.longest_request(),
    };
    // the script decides which statuses count as failed
    plan.expect = Expect { status: vec![(100, 599)], ..Expect::default() };
    plan.measure.interval = Nanos::SECOND;
    plan.measure.tcp_info_share = 0.0;
    plan.connection.calls = options.no_connection_reuse.then_some(1);
    plan.connection.reconnect_pause = Nanos::ZERO;
    plan.connection.per_user = k6::options::SIMULTANEOUS_MAX as u32;
    plan.connection.bind.clone_from(&options.local_addresses);
    plan.connection.prefer = match options.dns.family {
        PreferredFamily::Any => AddressFamily::Any,
        PreferredFamily::V4 => AddressFamily::V4,
        PreferredFamily::V6 => AddressFamily::V6,
    };
    if options.dns.first {
        plan.connection.addresses = AddressOrder::FirstThatAnswers;
    }
    plan.tls = tls_plan(options);
    let workers = files.cores().min(test.users()).max(1);
    plan.driver.threads = u32::try_from(workers).ok();
    plan
}

fn tls_plan(options: &TestOptions) -> TlsPlan {
    let tls = &options.tls;
    let identity = tls.identity.as_ref();
    TlsPlan {
        insecure: options.insecure,
        alpn: Vec::new(),
        versions: match tls.versions {
            OfferedVersions::Both => TlsVersions::Any,
            OfferedVersions::V12 => TlsVersions::Tls12,
            OfferedVersions::V13 => TlsVersions::Tls13,
        },
        ciphers: tls.ciphers.clone(),
        cert: identity.map(|(cert, _)| cert.clone().into_bytes()),
        key: identity.map(|(_, key)| key.clone().into_bytes()),
        ..TlsPlan::default()
    }
}

/// A test in progress.
#[derive(Debug)]
struct K6 {
    test: Arc<Test>,
    options: Options,
    strict: bool,
    date: Date,
    /// Figures of the runner: users, dropped iterations.
    own: Arc<Mutex<Store>>,
    json: JsonOutput,
    /// True if the head of the CSV output is written.
    has_head: bool,
    /// Seconds that have passed.
    seconds: u64,
}

impl K6 {
    fn new(test: Arc<Test>, options: Options, strict: bool) -> K6 {
        K6 {
            own: test.new_store(),
            test,
            options,
            strict,
            date: Date::default(),
            json: JsonOutput::default(),
            has_head: false,
            seconds: 0,
        }
    }

    fn calendar(&self) -> Calendar {
        Calendar { at: self.date.at, unix_s: self.date.unix_s }
    }

    /// Adds a value of the runner's.
    fn add(&self, metric: usize, value: f64, at: Nanos, tags: &[(String, String)]) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.add(self.test.program.metrics(), metric, value, at, tags);
    }

    /// Returns output of the script and the runner since the last call.
    fn log(&self, at: Nanos) -> String {
        let now = (self.date.unix_s * 1e9) as i128 + i128::from(at.0) - i128::from(self.date.at.0);
        let lines = self.test.program.take_log();
        let shown = lines.iter().filter(|line| line.level != "debug" || self.options.verbose);
        shown.map(|line| log_line(line, now)).collect()
    }

    /// Returns the lines of the output since the last time.
    fn points(&mut self) -> String {
        let Some((kind, _)) = &self.options.out else { return String::new() };
        let points = self.test.take_points();
        match kind.as_str() {
            "json" => self.json.lines(&self.test, &self.calendar(), &points),
            _ => {
                let head = if self.has_head { String::new() } else { csv_head(&self.test) };
                self.has_head = true;
                head + &csv_lines(&self.test, &self.calendar(), &points)
            }
        }
    }

    fn progress(&self, over: bool) -> String {
        let test = &self.test;
        let count =
            |it: &std::sync::atomic::AtomicU64| it.load(std::sync::atomic::Ordering::Relaxed);
        let counts = &test.program.counts;
        let (users, active) = (test.users(), if over { 0 } else { count(&counts.active) });
        let width = users.to_string().len();
        let now = if over { test.end() } else { self.row_end() };
        let clock = self.elapsed_s(now);
        let (minutes, seconds) = ((clock / 60.0).trunc(), clock % 60.0);
        let mut out = format!(
            "\nrunning ({minutes:02}m{seconds:04.1}s), {active:0width$}/{users} VUs, {} complete and {} \
             interrupted iterations\n",
            count(&counts.completed),
            count(&counts.interrupted),
        );
        let longest = test.facts.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
        let passed = test.base().map_or(0.0, |base| now.as_secs_f64() - base.as_secs_f64());
        for facts in &test.facts {
            let length = facts.length.as_secs_f64();
            let into = (passed - facts.start.as_secs_f64()).clamp(0.0, length);
            let done = over || into >= length;
            let mark = if done { '✓' } else { ' ' };
            let percent = if done { 100.0 } else { 100.0 * into / length.max(1e-9) };
            out.push_str(&format!(
                "{:<longest$} {mark} [ {percent:>3.0}% ] {into:.1}s/{}\n",
                facts.name,
                k6::duration::show(facts.length),
            ));
        }
        out
    }

    /// Returns the seconds from the start of setup; 0 before it.
    fn elapsed_s(&self, now: Nanos) -> f64 {
        let origin = self.test.origin();
        if origin.is_zero() { 0.0 } else { (now - origin).as_secs_f64() }
    }

    /// Returns the end of the current row.
    fn row_end(&self) -> Nanos {
        self.date.at + Nanos::from_secs(self.seconds)
    }

    /// Returns the opening lines.
    fn opening(&self) -> String {
        let test = &self.test;
        let output = match &self.options.out {
            Some((kind, path)) => format!("{kind} ({path})"),
            None => "-".to_owned(),
        };
        let count = test.facts.len();
        let mut out = format!(
            "{BANNER}\n     execution: local\n        script: {}\n        output: {output}\n\n     \
             scenarios: (100.00%) {count} scenario{}, {} max VUs, {} max duration (incl. graceful \
             stop):\n",
            self.options.script,
            if count == 1 { "" } else { "s" },
            test.users(),
            k6::duration::show(test.longest()),
        );
        for progress in &test.progress {
            out.push_str(&format!("              * {}\n", progress.scenario.describe()));
        }
        out.push_str("\n\n");
        out
    }

    /// Counts iterations that no user was free for.
    fn count_dropped(&self) {
        let Some(base) = self.test.base() else { return };
        let end = self.test.end();
        for progress in &self.test.progress {
            let dropped = progress.take_dropped(end - base);
            if dropped > 0 {
                self.test.warn_of_missing_users(progress);
                let tags = [("scenario".to_owned(), progress.scenario.name.clone())];
                self.add(row::DROPPED, dropped as f64, end, &tags);
            }
        }
    }

    /// Warns if no iteration has finished.
    fn warn_without_iterations(&self) {
        let completed = &self.test.program.counts.completed;
        if completed.load(std::sync::atomic::Ordering::Relaxed) == 0 {
            let text = "No script iterations fully finished, consider making the test duration \
                        longer";
            self.test.program.log("warning", "", text);
        }
    }

    /// Returns the text of the summary, or the script's own text, with the files that the script
    /// writes.
    fn summarize(&self, summary: &TestSummary<'_>) -> Ending {
        let mut ending = Ending::default();
        if self.options.summary != SummaryMode::Disabled {
            match self.test.handle_summary(&summary.data()) {
                None => ending.out = summary.text(),
                Some(Ok(parts)) => {
                    for (name, text) in parts {
                        match name.as_str() {
                            "stdout" => ending.out.push_str(&text),
                            "stderr" => ending.err.push_str(&text),
                            _ => ending.files.push(file(&name, text)),
                        }
                    }
                }
                Some(Err(why)) => {
                    let text =
                        format!("handleSummary() failed, the default summary follows: {why}");
                    self.test.program.log("error", "", text);
                    ending.out = summary.text();
                }
            }
        }
        if let Some(path) = &self.options.summary_export {
            let made = if self.options.machine_readable {
                summary.machine_readable(&rfc3339((self.date.unix_s * 1e9) as i128))
            } else {
                summary.export()
            };
            let text = serde_json::to_string_pretty(&made).unwrap_or_default();
            ending.files.push(file(path, text + "\n"));
        }
        ending
    }

    /// Returns the reason why the test ends, and k6's exit code for it.
    fn verdict(&self, crossed: &[String], signal: usize) -> (Option<String>, u8) {
        let names = |all: &[String]| {
            let quoted: Vec<String> = all.iter().map(|name| format!("'{name}'")).collect();
            format!("thresholds on metrics {} have been crossed", quoted.join(", "))
        };
        if signal != 0 {
            return (
                Some("test run was aborted because it was interrupted".to_owned()),
                exit::INTERRUPTED,
            );
        }
        match self.test.stop_reason() {
            Some(StopReason::Aborted(message)) => {
                return (Some(format!("test aborted: {message}")), exit::ABORTED);
            }
            Some(StopReason::Thresholds(all)) => {
                let text = format!(
                    "{}; at least one has abortOnFail enabled, the test was stopped early",
                    names(&all)
                );
                return (Some(text), exit::THRESHOLDS);
            }
            Some(StopReason::Setup(text) | StopReason::Init(text)) => {
                return (Some(text), exit::EXCEPTION);
            }
            Some(StopReason::SetupTimeout) => {
                let limit = self.test.options().setup_timeout.as_secs_f64();
                let text = format!("setup() execution timed out after {limit:.0} seconds");
                return (Some(text), exit::SETUP_TIMEOUT);
            }
            None => {}
        }
        if let Some(code) = self.test.teardown_code() {
            return (None, code);
        }
        if !crossed.is_empty() {
            return (Some(names(crossed)), exit::THRESHOLDS);
        }
        let marked =
            self.test.program.counts.marked_failed.load(std::sync::atomic::Ordering::Relaxed);
        (None, if marked { exit::MARKED_FAILED } else { 0 })
    }
}

fn file(path: &str, text: String) -> OutFile {
    OutFile {
        path: path.to_owned(),
        text,
        append: false,
        complaint: format!("cannot write {path}"),
        code: 0,
    }
}

/// Renders our own figures, which k6 does not have.
fn own_block(report: &RunRecord) -> String {
    let times = &report.response_time_s;
    let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    let mut out = format!(
        "\n  █ LOADSTONE \n\n    response time from the due instant: p50 {}, p95 {}, p99 {}, max {} ({} \
         requests)\n    lateness of the client: p99 {}\n    verdict: {}\n",
        ms(times.p50),
        ms(times.p95),
        ms(times.p99),
        ms(times.max),
        times.count,
        ms(report.lag_s.p99),
        report.verdict.state.id(),
    );
    for cause in &report.verdict.causes {
        out.push_str(&format!("      {}\n", cause.text));
    }
    out
}

impl Face for K6 {
    fn set_date(&mut self, date: &Date) {
        self.date = *date;
    }

    fn begin(&mut self) -> FaceOutput {
        let mut output = FaceOutput::default();
        if !self.options.quiet {
            output.out = self.opening();
        }
        for warning in &self.test.warnings {
            self.test.program.log("warning", "", warning.as_str());
        }
        output
    }

    fn row(&mut self, _: &Second, _: &Snapshot) -> FaceOutput {
        self.seconds += 1;
        let at = self.row_end();
        if self.test.is_over() {
            // the end of the run shortens the last row
            return FaceOutput { err: self.log(at), log: self.points(), ..FaceOutput::default() };
        }
        let active = self.test.program.counts.active.load(std::sync::atomic::Ordering::Relaxed);
        self.add(row::VUS, active as f64, at, &[]);
        self.add(row::VUS_MAX, self.test.users() as f64, at, &[]);
        let judged = self.seconds.is_multiple_of(2) && !self.options.no_thresholds;
        if judged && self.test.may_abort() {
            let crossed = self.test.crossed(&self.test.collected(), self.elapsed_s(at), true);
            if !crossed.is_empty() {
                self.test.stop(StopReason::Thresholds(crossed));
            }
        }
        let out = if self.options.quiet { String::new() } else { self.progress(false) };
        FaceOutput { out, err: self.log(at), log: self.points(), wish: FaceDecision::GoOn }
    }

    fn cannot_start(&mut self, trouble: &StartTrouble) -> Ending {
        let text = match trouble {
            StartTrouble::Name { host, text } => format!("{host}: {text}"),
            StartTrouble::Descriptors => {
                "too many open files; raise the limit (ulimit -n) or lower the number of VUs"
                    .to_owned()
            }
            other => other.text().to_owned(),
        };
        let line = LogLine::new("error", text);
        Ending::error(log_line(&line, (self.date.unix_s * 1e9) as i128), exit::CONFIG)
    }

    fn report(&mut self, report: &RunRecord, facts: &Facts) -> Ending {
        self.count_dropped();
        let all = self.test.collected();
        let elapsed_s = self.elapsed_s(self.test.end());
        let full = self.options.summary == SummaryMode::Full;
        let summary = TestSummary { test: &self.test, all: &all, elapsed_s, full };
        let crossed = match self.options.no_thresholds {
            true => Vec::new(),
            false => self.test.crossed(&all, elapsed_s, false),
        };
        let mut ending = self.summarize(&summary);
        if !self.options.quiet {
            ending.out.push_str(&self.progress(true));
        }
        if !self.strict && self.options.summary != SummaryMode::Disabled {
            ending.out.push_str(&own_block(report));
        }
        let (why, code) = self.verdict(&crossed, facts.signal);
        if self.test.stop_reason().is_none() && facts.signal == 0 {
            self.warn_without_iterations();
        }
        if let Some(why) = why {
            self.test.program.log("error", "", why);
        }
        ending.err.insert_str(0, &self.log(self.test.end()));
        if let Some((_, path)) = self.options.out.clone() {
            let text = self.points();
            ending.files.insert(0, OutFile { append: true, ..file(&path, text) });
        }
        ending.notes.extend(crate::client_note(report));
        ending.code = code;
        ending
    }
}
