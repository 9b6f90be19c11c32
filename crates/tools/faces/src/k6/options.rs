//! k6's command line.

use crate::Files;
use k6::test::exit;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Settings given on the command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    pub(super) command: Command,
    /// Path of the script; `-` is standard input.
    pub(super) script: String,
    /// Options that override those of the script.
    pub(super) flags: Value,
    pub(super) environment: Value,
    /// File of `--config`.
    pub(super) config: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    /// `json` or `csv`, and the file.
    pub(super) out: Option<(String, String)>,
    pub(super) summary_export: Option<String>,
    pub(super) machine_readable: bool,
    pub(super) summary: SummaryMode,
    pub(super) no_thresholds: bool,
    pub(super) quiet: bool,
    /// True to print lines of `console.debug`.
    pub(super) verbose: bool,
    pub(super) requirements: bool,
}

/// Reason why a command line cannot be used, and the exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) text: String,
    pub(super) code: u8,
}

impl Refusal {
    /// Refuses a feature of k6 that is not available here.
    fn unavailable(text: String) -> Refusal {
        Refusal { text, code: exit::CONFIG }
    }
}

/// An error that k6 reports as well.
impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal { text, code: exit::USAGE }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Run,
    Inspect,
    Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SummaryMode {
    Compact,
    Full,
    Disabled,
}

/// Flags with a value that set an option: long name, short name, option, and how the value is read.
const VALUES: &[(&str, &str, &str, Form)] = &[
    ("vus", "u", "vus", Form::Number),
    ("duration", "d", "duration", Form::Span),
    ("iterations", "i", "iterations", Form::Number),
    ("max-redirects", "", "maxRedirects", Form::Number),
    ("batch", "", "batch", Form::Number),
    ("batch-per-host", "", "batchPerHost", Form::Number),
    ("rps", "", "rps", Form::Number),
    ("user-agent", "", "userAgent", Form::Text),
    ("min-iteration-duration", "", "minIterationDuration", Form::Span),
    ("summary-time-unit", "", "summaryTimeUnit", Form::Text),
    ("summary-trend-stats", "", "summaryTrendStats", Form::List),
    ("system-tags", "", "systemTags", Form::List),
    ("block-hostnames", "", "blockHostnames", Form::List),
    ("blacklist-ip", "", "blacklistIPs", Form::List),
    ("local-ips", "", "localIPs", Form::Text),
    ("dns", "", "dns", Form::Text),
    ("execution-segment", "", "executionSegment", Form::Text),
    ("execution-segment-sequence", "", "executionSegmentSequence", Form::Text),
];

/// Flags without a value that set an option.
const SWITCHES: &[(&str, &str, &str)] = &[
    ("paused", "p", "paused"),
    ("no-setup", "", "noSetup"),
    ("no-teardown", "", "noTeardown"),
    ("insecure-skip-tls-verify", "", "insecureSkipTLSVerify"),
    ("no-connection-reuse", "", "noConnectionReuse"),
    ("no-vu-connection-reuse", "", "noVUConnectionReuse"),
    ("throw", "w", "throw"),
    ("discard-response-bodies", "", "discardResponseBodies"),
];

/// Switches without effect here: there is no color, no REST server and no usage report.
const IDLE: &[&str] = &["no-color", "no-usage-report", "profiling-enabled"];

/// Flags of k6 that change its behavior, and are not available.
const REFUSED: &[(&str, &str)] = &[
    ("linger", "remove it"),
    ("console-output", "redirect standard error"),
    ("address", "remove it; there is no REST server"),
    ("traces-output", "remove it"),
    ("features", "remove it"),
    ("secret-source", "pass secrets with -e"),
    ("log-output", "redirect standard error"),
    ("log-format", "remove it"),
    ("compatibility-mode", "remove it; modules and CommonJS both work"),
    ("type", "remove it; the name of the script decides"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Number,
    Span,
    Text,
    List,
}

impl Form {
    fn read(self, flag: &str, text: &str) -> Result<Value, String> {
        match self {
            Form::Text => Ok(json!(text)),
            Form::Span => k6::duration::parse(text)
                .map(|_| json!(text))
                .map_err(|why| format!("invalid argument for --{flag}: {why}")),
            Form::List => Ok(text.split(',').map(str::trim).map(Value::from).collect()),
            Form::Number => text.parse::<u64>().map(Value::from).map_err(|_| {
                format!("invalid argument \"{text}\" for --{flag}: write a whole number")
            }),
        }
    }
}

/// Variables of the environment that set options.
const VARIABLES: &[(&str, &str)] = &[
    ("K6_VUS", "vus"),
    ("K6_DURATION", "duration"),
    ("K6_ITERATIONS", "iterations"),
    ("K6_STAGES", "stage"),
    ("K6_NO_SETUP", "no-setup"),
    ("K6_NO_TEARDOWN", "no-teardown"),
    ("K6_MAX_REDIRECTS", "max-redirects"),
    ("K6_USER_AGENT", "user-agent"),
    ("K6_INSECURE_SKIP_TLS_VERIFY", "insecure-skip-tls-verify"),
    ("K6_NO_CONNECTION_REUSE", "no-connection-reuse"),
    ("K6_MIN_ITERATION_DURATION", "min-iteration-duration"),
    ("K6_THROW", "throw"),
    ("K6_DISCARD_RESPONSE_BODIES", "discard-response-bodies"),
    ("K6_SUMMARY_TREND_STATS", "summary-trend-stats"),
    ("K6_SUMMARY_TIME_UNIT", "summary-time-unit"),
    ("K6_SYSTEM_TAGS", "system-tags"),
    ("K6_BLOCK_HOSTNAMES", "block-hostnames"),
    ("K6_BLACKLIST_IPS", "blacklist-ip"),
    ("K6_BATCH", "batch"),
    ("K6_BATCH_PER_HOST", "batch-per-host"),
    ("K6_RPS", "rps"),
    ("K6_NO_VU_CONNECTION_REUSE", "no-vu-connection-reuse"),
    ("K6_DNS", "dns"),
    ("K6_LOCAL_IPS", "local-ips"),
    ("K6_HTTP_DEBUG", "http-debug"),
];

/// Reads the command line.
///
/// # Errors
/// Fails with a sentence that names the argument.
pub(super) fn parse(args: &[String], files: &dyn Files) -> Result<Options, Refusal> {
    let mut rest = args.iter().map(String::as_str);
    let command = command(rest.next())?;
    let env = if command == Command::Run { files.variables() } else { Vec::new() };
    let mut options = Options {
        command,
        script: String::new(),
        flags: Value::Null,
        environment: environment(files)?,
        config: files.variable("K6_CONFIG"),
        env: env.into_iter().collect(),
        out: None,
        summary_export: files.variable("K6_SUMMARY_EXPORT"),
        machine_readable: false,
        summary: SummaryMode::Compact,
        no_thresholds: false,
        quiet: false,
        verbose: false,
        requirements: false,
    };
    let mut flags = Map::new();
    let mut own_env = Vec::new();
    while let Some(arg) = rest.next() {
        if arg == "-" || !arg.starts_with('-') {
            if !options.script.is_empty() {
                return Err(format!("one script at a time: {} and {arg}", options.script).into());
            }
            arg.clone_into(&mut options.script);
            continue;
        }
        let (name, inline) = split(arg);
        let mut value = || -> Result<String, String> {
            let given = inline.clone().or_else(|| rest.next().map(str::to_owned));
            given.ok_or_else(|| format!("flag needs an argument: {arg}"))
        };
        if take_option(&mut flags, &name, inline.as_deref(), &mut value)? {
            continue;
        }
        match name.as_str() {
            "env" | "e" => {
                let text = value()?;
                let (key, value) = text.split_once('=').ok_or_else(|| {
                    format!("invalid environment variable \"{text}\": write NAME=VALUE")
                })?;
                own_env.push((key.to_owned(), value.to_owned()));
            }
            "config" | "c" => options.config = Some(value()?),
            "out" | "o" => set_out(&mut options, &value()?)?,
            "summary-export" => options.summary_export = Some(value()?),
            "summary-mode" => options.summary = summary_mode(&value()?)?,
            "no-summary" => options.summary = SummaryMode::Disabled,
            "new-machine-readable-summary" => options.machine_readable = true,
            "no-thresholds" => options.no_thresholds = true,
            "quiet" | "q" => options.quiet = true,
            "verbose" | "v" => options.verbose = true,
            "execution-requirements" => options.requirements = true,
            "include-system-env-vars" if inline.as_deref() == Some("false") => options.env.clear(),
            "include-system-env-vars" => options.env.extend(files.variables()),
            _ => return Err(unknown(arg, &name)),
        }
    }
    options.env.extend(own_env);
    options.flags = Value::Object(flags);
    if options.script.is_empty() && command != Command::Version {
        return Err("a script is missing: k6 run script.js".to_owned().into());
    }
    Ok(options)
}

fn command(word: Option<&str>) -> Result<Command, Refusal> {
    match word {
        Some("run") => Ok(Command::Run),
        Some("inspect") => Ok(Command::Inspect),
        Some("version" | "--version") => Ok(Command::Version),
        // as k6 ends without a login
        Some("cloud") => {
            Err("k6 cloud needs Grafana Cloud, which is not available; run the script \
                              here with k6 run SCRIPT, or on several machines with loadstone fleet"
                .to_owned()
                .into())
        }
        Some(other @ ("archive" | "deps" | "new" | "x" | "features")) => {
            Err(Refusal::unavailable(format!("k6 {other} is not available; run and inspect are")))
        }
        Some(other) => Err(format!("unknown command \"{other}\"; use run or inspect").into()),
        None => Err("a command is missing: k6 run script.js".to_owned().into()),
    }
}

/// Splits `--name=value`, `--name`, `-n`, `-nvalue`.
fn split(arg: &str) -> (String, Option<String>) {
    if let Some(long) = arg.strip_prefix("--") {
        return match long.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (long.to_owned(), None),
        };
    }
    let short: String = arg.chars().skip(1).take(1).collect();
    let value: String = arg.chars().skip(2).collect();
    let value = value.strip_prefix('=').map_or(value.clone(), str::to_owned);
    (short, Some(value).filter(|value| !value.is_empty()))
}

/// Parses a flag that sets an option of the test; returns false for other flags.
fn take_option(
    flags: &mut Map<String, Value>,
    name: &str,
    inline: Option<&str>,
    value: &mut dyn FnMut() -> Result<String, String>,
) -> Result<bool, String> {
    if IDLE.contains(&name) {
        return Ok(true);
    }
    if let Some((_, _, key)) =
        SWITCHES.iter().find(|(long, short, _)| *long == name || *short == name)
    {
        let on = match inline {
            None | Some("true" | "1") => true,
            Some("false" | "0") => false,
            Some(other) => {
                return Err(format!(
                    "invalid argument \"{other}\" for --{name}: write true or false"
                ));
            }
        };
        flags.insert((*key).to_owned(), json!(on));
        return Ok(true);
    }
    let known = VALUES.iter().find(|(long, short, ..)| *long == name || *short == name);
    if let Some((long, _, key, form)) = known {
        let made = form.read(long, &value()?)?;
        let joined = match (flags.get(*key), made) {
            (Some(Value::Array(before)), Value::Array(more)) => {
                Value::Array([before.clone(), more].concat())
            }
            (_, made) => made,
        };
        flags.insert((*key).to_owned(), joined);
        return Ok(true);
    }
    match name {
        "http-debug" => {
            flags.insert("httpDebug".to_owned(), json!(inline.unwrap_or("headers")));
            Ok(true)
        }
        "stage" | "s" => {
            let mut all = flags.remove("stages").unwrap_or_else(|| json!([]));
            if let (Value::Array(all), Value::Array(more)) = (&mut all, stages(&value()?)?) {
                all.extend(more);
            }
            flags.insert("stages".to_owned(), all);
            Ok(true)
        }
        "tag" => {
            let text = value()?;
            let (key, tag) = text
                .split_once('=')
                .ok_or_else(|| format!("invalid tag \"{text}\": write NAME=VALUE"))?;
            let mut all = flags.remove("tags").unwrap_or_else(|| json!({}));
            all[key] = json!(tag);
            flags.insert("tags".to_owned(), all);
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Parses `30s:10,1m:0`.
fn stages(text: &str) -> Result<Value, String> {
    let stage = |part: &str| {
        let (duration, target) = part.split_once(':')?;
        let target: u64 = target.trim().parse().ok()?;
        Some(json!({"duration": duration.trim(), "target": target}))
    };
    text.split(',')
        .map(|part| {
            stage(part).ok_or_else(|| format!("invalid stage \"{part}\": write it like 30s:10"))
        })
        .collect()
}

/// Outputs of k6 that are not available.
const OTHER_OUTPUTS: [&str; 7] = [
    "cloud",
    "experimental-opentelemetry",
    "experimental-prometheus-rw",
    "influxdb",
    "opentelemetry",
    "statsd",
    "web-dashboard",
];

fn set_out(options: &mut Options, text: &str) -> Result<(), Refusal> {
    let (kind, path) = text.split_once('=').unwrap_or((text, ""));
    if !matches!(kind, "json" | "csv") {
        let text = format!("output \"{kind}\" is not available; use json=FILE or csv=FILE");
        let known = OTHER_OUTPUTS.contains(&kind);
        return Err(if known { Refusal::unavailable(text) } else { text.into() });
    }
    if path.is_empty() || path == "-" || path.ends_with(".gz") {
        let fix = format!("name a plain file, like --out {kind}=results.{kind}");
        return Err(Refusal::unavailable(format!("--out {text}: {fix}")));
    }
    if options.out.is_some() {
        return Err(Refusal::unavailable(format!("--out {text}: one output at a time")));
    }
    options.out = Some((kind.to_owned(), path.to_owned()));
    Ok(())
}

fn summary_mode(text: &str) -> Result<SummaryMode, String> {
    match text {
        "compact" => Ok(SummaryMode::Compact),
        "full" => Ok(SummaryMode::Full),
        "disabled" => Ok(SummaryMode::Disabled),
        other => Err(format!("invalid --summary-mode \"{other}\": use compact, full or disabled")),
    }
}

fn unknown(arg: &str, name: &str) -> Refusal {
    match REFUSED.iter().find(|(known, _)| *known == name) {
        Some((_, fix)) => Refusal::unavailable(format!("{arg} is not available: {fix}")),
        None => format!("unknown flag: {arg}").into(),
    }
}

/// Returns the options that variables set.
fn environment(files: &dyn Files) -> Result<Value, Refusal> {
    let mut map = Map::new();
    for (variable, flag) in VARIABLES {
        let Some(text) = files.variable(variable).filter(|text| !text.is_empty()) else { continue };
        let mut value = || Ok(text.clone());
        take_option(&mut map, flag, Some(&text), &mut value)
            .map_err(|why| Refusal { text: format!("{variable}: {why}"), code: exit::CONFIG })?;
    }
    Ok(Value::Object(map))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemError;

    struct Nothing;

    impl Files for Nothing {
        fn read(&self, _: &str) -> Result<Vec<u8>, SystemError> {
            Err(SystemError { number: 2, text: "No such file or directory".to_owned() })
        }

        fn variable(&self, name: &str) -> Option<String> {
            (name == "K6_VUS").then(|| "7".to_owned())
        }
    }

    fn read(line: &str) -> Result<Options, Refusal> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&args, &Nothing)
    }

    #[test]
    fn flags_become_options() {
        let options = read(
            "run -u 5 --duration=30s -e A=b=c --stage 10s:5,5s:0 -s 1s:1 --tag x=y --throw \
             --system-tags url,status --out json=o.json -q a.js",
        )
        .unwrap();
        assert_eq!(options.script, "a.js");
        assert_eq!(options.env["A"], "b=c");
        assert_eq!(options.environment, json!({"vus": 7}));
        assert_eq!(
            options.flags,
            json!({
                "vus": 5, "duration": "30s", "throw": true, "tags": {"x": "y"},
                "systemTags": ["url", "status"],
                "stages": [{"duration": "10s", "target": 5}, {"duration": "5s", "target": 0},
                    {"duration": "1s", "target": 1}],
            })
        );
    }

    #[test]
    fn wrong_values_are_reported() {
        for (line, words, code) in [
            ("", "a command is missing", 255),
            ("cloud run a.js", "run the script here with k6 run SCRIPT", 255),
            ("archive a.js", "k6 archive is not available", 104),
            ("login", "unknown command", 255),
            ("run", "a script is missing", 255),
            ("run a.js b.js", "a.js and b.js", 255),
            ("run -u x a.js", "\"x\" for --vus", 255),
            ("run --console-output x a.js", "redirect standard error", 104),
            ("run --nope a.js", "unknown flag: --nope", 255),
            ("run -o influxdb=x a.js", "json=FILE", 104),
            ("run -o odd a.js", "json=FILE", 255),
            ("run -o json a.js", "name a plain file", 104),
            ("run -d odd a.js", "for --duration", 255),
            ("run --stage 5 a.js", "30s:10", 255),
            ("run -e A a.js", "NAME=VALUE", 255),
            ("run --duration", "flag needs an argument", 255),
        ] {
            let why = read(line).unwrap_err();
            assert!(why.text.contains(words) && why.code == code, "{line}: {why:?}");
        }
    }
}
