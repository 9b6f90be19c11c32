//! From options to a plan. Untyped options keep the values of the plan file or the defaults; a
//! contradiction is an error that names both sides.

use super::options::GivenOptions;
use super::recorded::plan_from_curl;
use super::run::*;
use super::{Outputs, UsageError, parse};
use plan::options::Setting;
use plan::representative::parse_representative;
use plan::rules::show_think;
use plan::stages::StageUnit;
use plan::{
    FileSource, HttpVersion, Load, Location, Order, Plan, PlanDraft, ScriptPlan, TargetPlan,
};
use session::programs::{self, ScriptOutline};
use std::path::Path;
use url::Url;

impl RunArgs {
    /// Returns the validated plan, and the destinations of its results.
    ///
    /// # Errors
    /// Fails for what is malformed, contradictory, or in a file that cannot be read: exit code 2.
    pub fn into_plan(self, files: &dyn FileSource) -> Result<(Plan, Outputs), UsageError> {
        self.common.into_plan(self.target.as_deref(), self.script_args, files)
    }
}

impl CommonArgs {
    /// Returns the plan of a target that is given elsewhere.
    ///
    /// # Errors
    /// Fails like [`RunArgs::into_plan`].
    pub(super) fn into_plan(
        mut self,
        target: Option<&str>,
        script_args: Vec<String>,
        files: &dyn FileSource,
    ) -> Result<(Plan, Outputs), UsageError> {
        self.given.check_sources()?;
        self.given.check_versions()?;
        let program = self.given.program(target, &script_args, files)?;
        let base = Base::read(target, &self.given, program.as_ref(), files)?;
        let version_open = !self.given.has("http") && !base.names("request", "http");
        let proxy_open = !self.given.has("proxy") && !base.names("connection", "proxy");
        let outputs = self.output.outputs(base.name, self.given.has("percentiles"));
        let outputs = Outputs { version_open, proxy_open, ..outputs };
        outputs.check()?;
        let mut plan = PlanDraft::new(base.plan);
        self.given.apply_workload(&mut plan, base.from_file)?;
        // weights in a list only matter for random order
        if self.given.has("urls") && plan.has_weights() && plan.sequence.is_empty() {
            plan.order = Order::Random;
        }
        match program {
            Some(program) => self.given.apply_program(&mut plan, program, base.from_file)?,
            None => apply_plan_script(&mut plan, script_args, files)?,
        }
        self.given.settle_load(&plan)?;
        self.given.apply(&mut plan, files)?;
        self.given.apply_grpc(&mut plan, files)?;
        self.given.settle_model(&mut plan, base.from_file, files)?;
        self.given.settle_method(&mut plan, base.from_file);
        self.given.settle_websocket(&mut plan)?;
        self.given.check_streams(&plan)?;
        self.given.settle_streams(&mut plan, base.from_file);
        let mut plan = plan.settle();
        if let Err(problems) = plan::validate(&plan) {
            let error = UsageError::from(problems);
            return Err(if base.from_file { error.within(&outputs.name) } else { error });
        }
        if outputs.junit.is_some() && plan.measure.slo.is_empty() {
            return Err(UsageError::new(
                "--junit writes a test case per objective and needs one; add --slo 'p99<200ms'",
            ));
        }
        if outputs.version_open && !self.given.has("alpn") {
            negotiate_version(&mut plan);
        }
        Ok((plan, outputs))
    }
}

/// Refuses `--until-sure` where several runs are compared with each other.
///
/// # Errors
/// Fails if the plan has it; `instead` completes the message.
pub(super) fn refuse_until_sure(plan: &Plan, instead: &str) -> Result<(), UsageError> {
    match plan.stop.until_sure {
        true => Err(UsageError::new(format!("--until-sure is for single runs: {instead}"))),
        false => Ok(()),
    }
}

/// A script, with the outline of its journey if it defines one.
struct ReadScript {
    script: ScriptPlan,
    outline: Option<ScriptOutline>,
}

/// Passes arguments to the script of a plan; a script that defines a journey becomes one.
fn apply_plan_script(
    plan: &mut Plan,
    args: Vec<String>,
    files: &dyn FileSource,
) -> Result<(), UsageError> {
    let Some(script) = &mut plan.script else {
        return match args.is_empty() {
            true => Ok(()),
            false => Err(UsageError::new(
                "arguments after -- are for a script; add --script FILE, or drop them",
            )),
        };
    };
    if !args.is_empty() {
        script.args = args;
    }
    let script = script.clone();
    let outline = programs::outline(&script, files);
    match outline.map_err(|why| UsageError::new(format!("--script: {why}")))? {
        Some(outline) => plan
            .set_journey_script(script, outline.program)
            .map_err(|error| UsageError::new(error.0)),
        None => Ok(()),
    }
}

/// Returns whether a target is a script rather than a URL or a plan.
pub(super) fn is_script(target: &str) -> bool {
    !target.contains("://") && plan::is_javascript(target)
}

/// Lets a server choose the version over TLS, as browsers and curl do. A plan that requires
/// HTTP/1.1 keeps it.
pub(super) fn negotiate_version(plan: &mut Plan) {
    let secure = plan.targets.iter().any(|target| plan::is_secure(&target.url));
    let by_default = plan.request.version == HttpVersion::Http11
        && plan.tls.alpn == plan::TlsPlan::default().alpn
        && plan.connection.pipeline == 1
        && !plan.is_websocket();
    if !secure || !by_default {
        return;
    }
    let mut open = plan.clone();
    open.request.version = HttpVersion::Auto;
    if plan::validate(&open).is_ok() {
        *plan = open;
    }
}

/// Changes made by the options.
struct Base {
    plan: Plan,
    name: String,
    /// Read from a plan file; otherwise a plan of defaults with a URL or a list.
    from_file: bool,
    /// The tables of the plan file.
    tables: toml::Table,
}

impl Base {
    /// Returns whether the plan file has this key.
    fn names(&self, table: &str, key: &str) -> bool {
        self.tables.get(table).and_then(|table| table.get(key)).is_some()
    }

    fn read(
        target: Option<&str>,
        given: &GivenOptions,
        program: Option<&ReadScript>,
        files: &dyn FileSource,
    ) -> Result<Base, UsageError> {
        let target = target.filter(|target| !is_script(target));
        let urls = given.text("urls");
        let curl = given.text("curl");
        let is_file = |target: &str| !target.contains("://") && target.ends_with(".toml");
        let mut base = match (target, urls) {
            (Some(_), _) if curl.is_some() => {
                return Err(UsageError::new("--curl names the URL itself; drop the other one"));
            }
            (Some(path), _) if is_file(path) => {
                let (plan, tables) = read_tables(path, files)?;
                Base { plan, name: path.to_owned(), from_file: true, tables }
            }
            (Some(url), _) => {
                let grpc = plan::http_url(url);
                let (location, zone) = plan::parse_zoned_url(grpc.as_deref().unwrap_or(url))?;
                let mut base = Base::from_url(location, given)?;
                if grpc.is_some() {
                    base.plan.use_grpc();
                    if let Some(rest) = base.name.strip_prefix("http") {
                        base.name = format!("grpc{rest}");
                    }
                }
                base.plan.connection.resolve.extend(zone);
                base
            }
            (None, Some(list)) => Base {
                plan: Plan::for_targets(Vec::new()),
                name: list.to_owned(),
                from_file: false,
                tables: toml::Table::new(),
            },
            (None, None) if curl.is_some() => {
                let plan = plan_from_curl(curl.unwrap_or_default(), files)?;
                let name = plan.targets.first().map(|target| target.url.to_string());
                let name = name.unwrap_or_default();
                Base { plan, name, from_file: false, tables: toml::Table::new() }
            }
            (None, None) if program.is_some_and(|it| it.outline.is_some()) => {
                Base::from_script(program, given)?
            }
            (None, None) => {
                return Err(UsageError::new(
                    "no URL is given; write loadstone run http://host:port/path, a PLAN.toml, or \
                     --urls FILE",
                ));
            }
        };
        if let Some(path) = urls {
            let url = target.filter(|_| !base.from_file).and(base.plan.targets.first());
            let start = url.map(|target| target.url.clone());
            base.plan.targets = read_list(path, start.as_ref(), files)?.into();
            if !base.from_file {
                base.name = if path == "-" { "standard input".to_owned() } else { path.to_owned() };
            }
        } else if let Some(option) = given.first_of(&["random", "once"])
            && !base.from_file
        {
            return Err(UsageError::new(format!(
                "--{option} needs a list of URLs; add --urls FILE"
            )));
        }
        Ok(base)
    }

    /// Returns the server of the script's first request.
    fn from_script(program: Option<&ReadScript>, given: &GivenOptions) -> Result<Base, UsageError> {
        let name = program.map_or("", |it| it.script.name.as_str());
        let found = program.and_then(|it| it.outline.as_ref()).and_then(|it| it.base.as_ref());
        let Some(url) = found else {
            return Err(UsageError::new(format!(
                "{name} does not determine its server before its first request; name it: loadstone \
                 run URL --script {name}"
            )));
        };
        let place = url.origin().ascii_serialization();
        let base = Base::from_url(plan::parse_url(&place)?, given)?;
        Ok(Base { name: name.to_owned(), ..base })
    }

    fn from_url(location: Location, given: &GivenOptions) -> Result<Base, UsageError> {
        let Location { url, auth } = location;
        if let Some(option) = given.first_of(&["user", "bearer", "digest"])
            && auth.is_some()
        {
            return Err(UsageError::new(format!(
                "the URL has a login and --{option} gives another one; drop one"
            )));
        }
        let name = url.to_string();
        let mut plan = Plan::for_url(url);
        plan.request.auth = auth;
        Ok(Base { plan, name, from_file: false, tables: toml::Table::new() })
    }
}

/// Reads the plan of a file, unchanged.
///
/// # Errors
/// Fails for a file that cannot be read, or is not a plan.
pub(super) fn read_plan(path: &str, files: &dyn FileSource) -> Result<Plan, UsageError> {
    read_tables(path, files).map(|(plan, _)| plan)
}

/// Reads a plan, and the tables of its file.
fn read_tables(path: &str, files: &dyn FileSource) -> Result<(Plan, toml::Table), UsageError> {
    let text = read_text(path, files)?;
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let plan = plan::from_toml(&text, &PlanFolder { folder, files })
        .map_err(|error| UsageError::new(format!("{path}: {error}")))?;
    Ok((plan, toml::from_str(&text).unwrap_or_default()))
}

fn read_list(
    path: &str,
    base: Option<&Url>,
    files: &dyn FileSource,
) -> Result<Vec<TargetPlan>, UsageError> {
    let text = read_text(path, files)
        .map_err(|error| UsageError::new(format!("--urls {path}: {error}; give a line per URL")))?;
    plan::parse_url_list(&text, base)
        .map_err(|error| UsageError::new(format!("--urls {path}: {error}")))
}

fn read_text(path: &str, files: &dyn FileSource) -> Result<String, UsageError> {
    let bytes = files.read(path).map_err(UsageError::new)?;
    String::from_utf8(bytes)
        .map_err(|_| UsageError::new(format!("{} is not UTF-8 text", units::quoted(path))))
}

/// Relative file names in a plan are resolved against the plan's own folder.
struct PlanFolder<'a> {
    folder: &'a Path,
    files: &'a dyn FileSource,
}

impl FileSource for PlanFolder<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        if path == "-" {
            return self.files.read(path);
        }
        self.files.read(&self.folder.join(path).to_string_lossy())
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        self.files.variable(name)
    }
}

impl GivenOptions {
    /// Counts the options that read standard input.
    pub(super) fn stdin_readers(&self) -> usize {
        let sources = ["urls", "body-file", "script"];
        sources.into_iter().filter(|source| self.text(source) == Some("-")).count()
    }

    fn check_sources(&self) -> Result<(), UsageError> {
        let stdin = |name| self.text(name) == Some("-");
        if stdin("urls") && stdin("body-file") {
            return Err(UsageError::new(
                "--urls - and --body-file - both read standard input, which can be read only once; \
                 give a file to one of them",
            ));
        }
        if stdin("script") && self.stdin_readers() > 1 {
            return Err(UsageError::new(
                "--script - reads standard input, and another option does so too; give a file to \
                 one of them",
            ));
        }
        // curl's notation for a file
        if let Some(file) = self.text("body").and_then(|body| body.strip_prefix('@'))
            && !file.is_empty()
            && !file.contains(['\n', ' '])
        {
            return Err(UsageError::new(format!(
                "--body sends its text as it is, here \"@{file}\": give a file as --body-file {file}, \
                 also for a body that begins with @"
            )));
        }
        let name = |header: &str| header.split(':').next().unwrap_or_default().trim().to_owned();
        let named = |header: &str| name(header).eq_ignore_ascii_case("user-agent");
        if self.has("user-agent") && self.texts("header").any(named) {
            return Err(UsageError::new(
                "--user-agent and -H 'User-Agent: …' both write that header; drop one",
            ));
        }
        Ok(())
    }

    /// Turns the users of a WebSocket into connections that share a rate, and applies the defaults
    /// of the scheme.
    fn settle_websocket(&self, plan: &mut Plan) -> Result<(), UsageError> {
        if let Some(rate) = self.text("ws-rate") {
            let rate = units::parse_rate(rate)
                .map_err(|why| UsageError::new(format!("--ws-rate: {}", why.0)))?;
            let Load::Closed { users, session: None, .. } = plan.load else {
                return Err(UsageError::new(
                    "--ws-rate cannot be used with a load that has a rate or sessions; drop one",
                ));
            };
            if !plan.is_websocket() {
                return Err(UsageError::new(
                    "--ws-rate needs a ws:// or wss:// URL; with http:// write --rate",
                ));
            }
            plan.load = Load::Open {
                arrivals: plan::Arrivals::constant(rate),
                session: None,
                connections_max: Some(users),
                queue_max: None,
            };
        }
        plan.settle_websocket();
        Ok(())
    }

    /// Builds the request to a language model if the plan has only its URL.
    fn settle_model(
        &self,
        plan: &mut Plan,
        from_file: bool,
        files: &dyn FileSource,
    ) -> Result<(), UsageError> {
        let given = self.first_of(&["prompt", "model", "max-tokens"]);
        let Some(api) = plan.model_api() else {
            return given.map_or(Ok(()), |option| {
                let why =
                    "describes a request to a language model; add --stream openai or anthropic";
                Err(UsageError::new(format!("--{option} {why}")))
            });
        };
        let other = ["body", "body-file", "form", "urls", "curl", "script", "workload", "method"];
        let is_url = !from_file && plan.journeys.is_none() && plan.script.is_none();
        if let Some(option) = given.filter(|_| !is_url) {
            let why = "needs a URL: a plan has the request itself, as json or body";
            return Err(UsageError::new(format!("--{option} {why}")));
        }
        if !is_url || given.is_none() && self.first_of(&other).is_some() {
            return Ok(());
        }
        let prompt = match self.text("prompt") {
            Some(text) => Some(match text.strip_prefix('@') {
                Some(file) => read_text(file, files)?,
                None => text.to_owned(),
            }),
            None => None,
        };
        let tokens_max = self.text("max-tokens").map(plan::parse_tokens).transpose()?;
        let model = self.text("model").map(str::to_owned);
        plan.ask_model(api, &plan::ModelRequest { model, prompt, tokens_max });
        plan.post_bodies();
        Ok(())
    }

    /// Derives a missing method from the body. A plan file always names its method.
    fn settle_method(&self, plan: &mut Plan, from_file: bool) {
        let bodied = self.first_of(&["body", "body-file", "form", "urls"]).is_some();
        if !self.has("method") && (bodied || !from_file) {
            plan.post_bodies();
        }
    }

    /// Reads the script that makes the requests: the target, or the file of `--script`.
    fn program(
        &self,
        target: Option<&str>,
        args: &[String],
        files: &dyn FileSource,
    ) -> Result<Option<ReadScript>, UsageError> {
        let of_target = target.filter(|target| is_script(target));
        let path = match (of_target, self.text("script")) {
            (Some(path), Some(_)) => {
                return Err(UsageError::new(format!(
                    "{path} and --script are both scripts; drop one"
                )));
            }
            (Some(path), None) | (None, Some(path)) => path,
            (None, None) => return Ok(None),
        };
        let text = files.read(path);
        let text = text.map_err(|why| UsageError::new(format!("--script: {why}")))?;
        let name = if path == "-" { "standard input" } else { path }.to_owned();
        let mut script = ScriptPlan { name, text, args: args.to_vec(), files: Vec::new() };
        let outline = programs::outline(&script, files);
        let outline = outline.map_err(|why| UsageError::new(format!("--script: {why}")))?;
        script.files = outline.as_ref().map(|it| it.files.clone()).unwrap_or_default();
        Ok(Some(ReadScript { script, outline }))
    }

    /// Puts the script into the plan; a script that defines a journey becomes a journey. Its load
    /// and objectives apply unless options set others.
    fn apply_program(
        &mut self,
        plan: &mut Plan,
        program: ReadScript,
        from_file: bool,
    ) -> Result<(), UsageError> {
        let ReadScript { script, outline } = program;
        let Some(outline) = outline else {
            plan.script = Some(script);
            return Ok(());
        };
        if !from_file {
            self.apply_script_load(&outline);
        }
        if !self.has("slo") && !outline.objectives.is_empty() {
            self.or("slo", &outline.objectives.join(", "));
        }
        plan.not_imported.extend(outline.left_out);
        plan.set_journey_script(script, outline.program).map_err(|error| UsageError::new(error.0))
    }

    /// Applies the load from the script's own options; a load or length on the command line
    /// overrides it.
    fn apply_script_load(&mut self, outline: &ScriptOutline) {
        let load = self.first_of(LOAD_OPTIONS).is_some();
        let length = self.first_of(&["duration", "requests"]).is_some();
        for (name, value) in &outline.load {
            let is_length = matches!(*name, "duration" | "requests");
            let replaced = if is_length { length } else { load || (length && *name == "stages") };
            if !replaced {
                self.or(name, value);
            }
        }
    }

    /// Parses the value of `--http`.
    pub(super) fn versions(&self) -> Vec<HttpVersion> {
        self.text("http").and_then(|text| parse::versions(text).ok()).unwrap_or_default()
    }

    /// Checks for a single version; `compare` splits a list beforehand.
    fn check_versions(&self) -> Result<(), UsageError> {
        if self.versions().len() > 1 {
            return Err(UsageError::new(
                "--http takes one version here; to compare several, use loadstone compare \
                 URL --http 1.1,2",
            ));
        }
        Ok(())
    }
}

/// Options that choose and shape the load; the last five are for open loads.
const LOAD_OPTIONS: &[&str] = &[
    "connections",
    "rate",
    "stages",
    "think",
    "session",
    "arrivals",
    "burst",
    "connections-max",
    "queue-max",
];

impl GivenOptions {
    /// Applies the requests of a model, which replace the URL.
    fn apply_workload(&self, plan: &mut Plan, from_file: bool) -> Result<(), UsageError> {
        let Some(model) = self.text("workload") else { return Ok(()) };
        let model = parse_representative(model)?;
        let open = self.first_of(&["rate", "stages"]).is_some();
        if open && model.is_per_user() {
            return Err(UsageError::new(
                "--workload simulates users who wait for their pages and cannot be used with --rate or \
                 --stages; drop one (`loadstone workload sequence` makes a list for --urls, which goes with --rate)",
            ));
        }
        if model.has_rate() && (open || self.has("connections")) {
            return Err(UsageError::new(
                "--workload s-client-like sets its own rate, sockets / timeout, and cannot be used with \
                 -c, --rate or --stages; drop them (a ramp has rates too: there, write --close \
                 --connect-timeout 500ms)",
            ));
        }
        let base = plan.targets.first().map(|target| target.url.clone());
        let (Some(base), false) = (base, from_file) else {
            return Err(UsageError::new(
                "--workload needs the URL of a server, not a plan; give it",
            ));
        };
        let seed = self.count("seed").unwrap_or(plan.seed);
        let made = model.apply(plan, &base, seed);
        made.map_err(|why| UsageError::new(format!("--workload: {why}")))
    }

    /// Combines the load options with the plan's load.
    fn settle_load(&mut self, plan: &Plan) -> Result<(), UsageError> {
        if !plan.scenarios.is_empty() {
            return self.refuse_with_scenarios();
        }
        let users = self.has("connections");
        let rate = self.has("rate");
        if rate && users {
            return Err(UsageError::new(
                "-c and --rate contradict each other: with -c users wait for responses, with \
                 --rate calls do not wait; drop one (to bound the connections of an open load \
                 give --connections-max)",
            ));
        }
        if (users || rate) && self.has("stages") {
            return Err(UsageError::new(
                "--stages sets the number of users or calls over time, and so do -c and --rate; \
                 drop one of them",
            ));
        }
        let is_open = matches!(plan.load, Load::Open { .. });
        let becomes_open = match self.text("stages").map(StageUnit::from_text) {
            Some(unit) => unit == StageUnit::PerSecond,
            None => rate || (is_open && !users),
        };
        if !becomes_open {
            return self.refuse_open_options();
        }
        match &plan.load {
            Load::Open { session: Some(_), .. } => {}
            _ if self.has("think") && !self.has("session") => {
                return Err(UsageError::new(
                    "--think with --rate needs --session N: single calls have no user with a think time; \
                     add --session, or give -c instead of --rate",
                ));
            }
            // users converted to sessions keep their think time
            Load::Closed { think, .. } if rate && self.has("session") => {
                self.or("think", &show_think(*think));
            }
            _ => {}
        }
        Ok(())
    }

    /// Refuses load options for a plan with scenarios: each scenario has its own load.
    fn refuse_with_scenarios(&self) -> Result<(), UsageError> {
        let Some(option) = self.first_of(LOAD_OPTIONS) else { return Ok(()) };
        let option = label(option);
        Err(UsageError::new(format!(
            "the plan has scenarios, each with its own load, but {option} sets one load: change it \
             in the plan"
        )))
    }

    fn refuse_open_options(&self) -> Result<(), UsageError> {
        let Some(option) = self.first_of(&LOAD_OPTIONS[4..]).map(label) else { return Ok(()) };
        Err(UsageError::new(match self.has("connections") {
            true => format!(
                "-c and {option} contradict each other: {option} belongs to an open load; \
                 give --rate instead of -c, or drop {option}"
            ),
            false => format!("{option} belongs to an open load; add --rate, or drop {option}"),
        }))
    }
}

fn label(option: &str) -> String {
    plan::options::named(option).map_or_else(String::new, Setting::label)
}

/// Options of HTTP/2 only: HTTP/3 has no such table, and its frames have any length.
const HTTP2_OPTIONS: &[&str] = &["header-table", "encoder-table", "frame-max"];

/// Default number of streams of a connection in an open load: the minimum that RFC 9113 section
/// 6.5.2 recommends servers to allow.
const STREAMS_OPEN: u32 = 100;

impl GivenOptions {
    /// Drops the options of other HTTP versions: each of two compared versions has its own.
    pub(super) fn keep_version(&mut self, version: HttpVersion) {
        if version.has_streams() {
            self.leave_out(&["pipeline"]);
        } else {
            self.leave_out(STREAM_OPTIONS);
        }
        if version == HttpVersion::Http3 {
            self.leave_out(HTTP2_OPTIONS);
        }
    }

    /// Checks options that need HTTP/2 or HTTP/3.
    fn check_streams(&self, plan: &Plan) -> Result<(), UsageError> {
        let version = plan.request.version;
        if version == HttpVersion::Http3 && !cfg!(feature = "h3") {
            return Err(UsageError::new(
                "this program was built without HTTP/3; use --http 2, or build with the feature h3",
            ));
        }
        let speaks = version.has_streams();
        if plan.is_websocket() && self.has("streams") {
            return Err(UsageError::new(
                "--streams is an option of HTTP requests; with WebSocket write --ws-per-connection",
            ));
        }
        let given = STREAM_OPTIONS.iter().find(|option| self.has(option));
        if let Some(option) = given.filter(|_| !speaks) {
            return Err(UsageError::new(format!(
                "--{option} is an option of HTTP/2; add --http 2, or drop it"
            )));
        }
        let of_http2 = HTTP2_OPTIONS.iter().find(|option| self.has(option));
        if let Some(option) = of_http2.filter(|_| version == HttpVersion::Http3) {
            return Err(UsageError::new(format!(
                "--{option} is an HTTP/2 option, which HTTP/3 does not have; drop it"
            )));
        }
        if speaks && self.has("pipeline") {
            return Err(UsageError::new(
                "--pipeline is an HTTP/1.1 option; with --http 2 or 3 write --streams",
            ));
        }
        Ok(())
    }

    /// Sets the default number of streams per connection. An open load uses as many as the server
    /// permits, but at most the number of calls of a connection. `from_file`: the plan sets the
    /// number.
    fn settle_streams(&self, plan: &mut Plan, from_file: bool) {
        let open = matches!(plan.load, Load::Open { session: None, .. });
        let given = from_file || self.has("streams");
        if open && !given && plan.request.version.has_streams() && !plan.is_websocket() {
            plan.connection.pipeline =
                plan.connection.calls.unwrap_or(STREAMS_OPEN).clamp(1, STREAMS_OPEN);
        }
    }
}

/// Options of connections that have streams.
const STREAM_OPTIONS: &[&str] = &[
    "streams",
    "stream-window",
    "connection-window",
    "header-table",
    "encoder-table",
    "frame-max",
];

impl OutputArgs {
    pub(super) fn outputs(self, name: String, percentiles: bool) -> Outputs {
        Outputs {
            name,
            json: self.json,
            csv: self.csv,
            hdr: self.hdr,
            html: self.html,
            junit: self.junit,
            md: self.md,
            log: self.log,
            quiet: self.quiet,
            full: self.full,
            line: self.line,
            live: self.live,
            metrics: self.metrics,
            otlp: self.otlp,
            sut: self.sut,
            percentiles,
            print_plan: self.print_plan,
            version_open: false,
            proxy_open: false,
            store: self.store.store,
        }
    }
}
