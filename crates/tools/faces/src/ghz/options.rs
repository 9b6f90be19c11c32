//! Settings of ghz's flags and its configuration file.

use super::config;
use super::go::{parse_count, parse_number, parse_size, parse_time};
use super::kingpin::{CommandLine, FlagKind, kind_of_flag, split};
use crate::{Ending, Files};
use serde_json::{Map, Value};
use units::Nanos;

/// Settings of a run. Fields are the names of flags.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Options {
    pub(super) proto: String,
    pub(super) protoset: String,
    pub(super) call: String,
    pub(super) import_paths: Vec<String>,
    pub(super) cacert: String,
    pub(super) cert: String,
    pub(super) key: String,
    pub(super) cname: String,
    pub(super) skip_tls: bool,
    pub(super) insecure: bool,
    pub(super) authority: String,
    pub(super) is_async: bool,
    pub(super) rps: u64,
    pub(super) load: Schedule,
    pub(super) concurrency: u64,
    pub(super) workers: Schedule,
    pub(super) total: u64,
    pub(super) timeout: Nanos,
    pub(super) duration: Nanos,
    pub(super) max_duration: Nanos,
    pub(super) duration_stop: DurationStop,
    pub(super) data: Value,
    pub(super) data_file: String,
    pub(super) binary: Vec<u8>,
    pub(super) binary_file: String,
    pub(super) metadata: Map<String, Value>,
    pub(super) metadata_file: String,
    pub(super) stream_interval: Nanos,
    pub(super) stream_call_duration: Nanos,
    pub(super) stream_call_count: u64,
    pub(super) stream_dynamic_messages: bool,
    pub(super) reflect_metadata: Map<String, Value>,
    pub(super) output: String,
    pub(super) format: String,
    pub(super) skip_first: u64,
    pub(super) count_errors: bool,
    pub(super) connections: u64,
    pub(super) connect_timeout: Nanos,
    pub(super) keepalive: Nanos,
    pub(super) name: String,
    pub(super) tags: Map<String, Value>,
    pub(super) cpus: u64,
    pub(super) debug: String,
    pub(super) enable_compression: bool,
    pub(super) lb_strategy: String,
    pub(super) max_recv: Option<u64>,
    pub(super) max_send: Option<u64>,
    pub(super) disable_template_functions: bool,
    pub(super) disable_template_data: bool,
    pub(super) host: String,
}

/// A schedule of rates or of workers: `const`, `step` or `line`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) kind: String,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) step: i64,
    pub(super) step_duration: Nanos,
    pub(super) max_duration: Nanos,
}

impl Schedule {
    /// Returns whether the value changes during the run.
    pub(super) fn changes(&self) -> bool {
        matches!(self.kind.as_str(), "step" | "line")
    }

    /// Returns the time for which each step lasts.
    pub(super) fn step_length(&self) -> Nanos {
        if self.kind == "line" { Nanos::SECOND } else { self.step_duration }
    }
}

/// Treatment of calls in flight at the end of `--duration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DurationStop {
    /// Calls in flight fail and are counted.
    #[default]
    Close,
    /// Calls in flight run to their outcome.
    Wait,
    /// Calls in flight are abandoned and not counted.
    Ignore,
}

impl Options {
    /// Returns ghz's defaults on a machine with `cores` cores.
    fn new(cores: u64) -> Options {
        let schedule = Schedule { kind: "const".to_owned(), ..Schedule::default() };
        Options {
            load: schedule.clone(),
            concurrency: 50,
            workers: Schedule { step: 1, ..schedule },
            total: 200,
            timeout: Nanos::from_secs(20),
            format: "summary".to_owned(),
            connections: 1,
            connect_timeout: Nanos::from_secs(10),
            cpus: cores,
            ..Options::default()
        }
    }

    /// Returns the time after which the run ends, independent of its count.
    pub(super) fn time_limit(&self) -> Nanos {
        if self.max_duration.is_zero() { self.duration } else { self.max_duration }
    }
}

const USAGE: &str = include_str!("usage.txt");
const FORMATS: [&str; 8] =
    ["summary", "csv", "json", "pretty", "html", "influx-summary", "influx-details", "prometheus"];

/// Returns the ending for an error in the command line.
fn fatal(text: &str) -> Ending {
    Ending::error(format!("ghz: error: {text}\n"), 1)
}

/// Reads flags and the configuration file.
///
/// # Errors
/// Fails with how the program ends in place of a run.
pub(super) fn parse(args: &[String], files: &dyn Files) -> Result<Options, Ending> {
    let usage = |text: &str| fatal(&format!("{text}, try --help"));
    let (flags, host) = match split(args).map_err(|text| usage(&text))? {
        CommandLine::Help => {
            let text = USAGE.replace("CPUS", &format!("{:<4}", files.cores()));
            return Err(Ending { err: text, ..Ending::default() });
        }
        CommandLine::Version => {
            let text = concat!("loadstone ", env!("CARGO_PKG_VERSION"), " as ghz v0.120.0\n");
            return Err(Ending { err: text.to_owned(), ..Ending::default() });
        }
        CommandLine::Given { flags, host } => (flags, host),
    };
    check_values(&flags).map_err(|text| usage(&text))?;
    let mut options = Options::new(files.cores());
    let text = |name: &str| flags.iter().find(|(known, _)| *known == name);
    if let Some((_, path)) = text("config").filter(|(_, path)| !path.trim().is_empty()) {
        let read = config::load(path.trim(), files).map_err(|text| fatal(&text))?;
        config::apply_all(&mut options, read).map_err(|text| fatal(&text))?;
    }
    for (name, value) in &flags {
        apply(&mut options, name, value, files).map_err(|text| fatal(&text))?;
    }
    if let Some(host) = host {
        options.host = host;
    }
    Ok(options)
}

/// Fails for the first value that is not of its flag's kind.
fn check_values(flags: &[(&'static str, String)]) -> Result<(), String> {
    for (name, value) in flags {
        match kind_of_flag(name) {
            Some(FlagKind::Count) => drop(parse_count(value)?),
            Some(FlagKind::Number) => drop(parse_number(value)?),
            Some(FlagKind::Time) => drop(parse_time(value)?),
            Some(FlagKind::Format) if !FORMATS.contains(&value.as_str()) => {
                return Err(format!(
                    "enum value must be one of {}, got '{value}'",
                    FORMATS.join(",")
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes the value of a flag into the options.
fn apply(options: &mut Options, name: &str, value: &str, files: &dyn Files) -> Result<(), String> {
    let trimmed = value.trim();
    match name {
        "data" if value == "@" => options.data = Value::from("@"),
        "data" if !trimmed.is_empty() => options.data = json_of("data", value)?,
        "metadata" if !trimmed.is_empty() => {
            options.metadata = texts_of("metadata", trimmed)?;
        }
        "tags" if !trimmed.is_empty() => options.tags = texts_of("tags", trimmed)?,
        "reflect-metadata" if !trimmed.is_empty() => {
            options.reflect_metadata = texts_of("reflection metadata", trimmed)?;
        }
        "binary" if value == "true" => {
            options.binary = files.read_input().map_err(|error| error.text)?;
        }
        "max-recv-message-size" => options.max_recv = Some(size_of("recv", value)?),
        "max-send-message-size" => options.max_send = Some(size_of("send", value)?),
        "import-paths" if !trimmed.is_empty() => {
            options.import_paths = trimmed.split(',').map(str::to_owned).collect();
        }
        "config" | "binary" | "import-paths" | "data" | "metadata" | "tags"
        | "reflect-metadata" => {}
        name => set(options, name, value)?,
    }
    Ok(())
}

/// Parses a limit on message sizes, in bytes.
pub(super) fn size_of(direction: &str, text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|why| format!("invalid max call {direction} message size: {why}"))
}

/// Writes a plain value into the options; `name` is a flag, or a key of the configuration file.
///
/// # Errors
/// Fails with Go's message about the value.
pub(super) fn set(options: &mut Options, name: &str, value: &str) -> Result<(), String> {
    let text = || value.to_owned();
    let switch = value == "true";
    match name {
        "proto" => options.proto = value.trim().to_owned(),
        "protoset" => options.protoset = value.trim().to_owned(),
        "call" => options.call = value.trim().to_owned(),
        "cacert" => options.cacert = value.trim().to_owned(),
        "cert" => options.cert = value.trim().to_owned(),
        "key" => options.key = value.trim().to_owned(),
        "cname" => options.cname = text(),
        "skipTLS" => options.skip_tls = switch,
        "insecure" => options.insecure = switch,
        "authority" => options.authority = text(),
        "async" => options.is_async = switch,
        "rps" => options.rps = parse_count(value)?,
        "concurrency" => options.concurrency = parse_count(value)?,
        "total" => options.total = parse_count(value)?,
        "timeout" => options.timeout = parse_time(value)?,
        "duration" => options.duration = parse_time(value)?,
        "max-duration" => options.max_duration = parse_time(value)?,
        "duration-stop" => {
            options.duration_stop = match value.to_ascii_lowercase().as_str() {
                "wait" => DurationStop::Wait,
                "ignore" => DurationStop::Ignore,
                _ => DurationStop::Close,
            };
        }
        "data-file" => options.data_file = value.trim().to_owned(),
        "binary-file" => options.binary_file = text(),
        "metadata-file" => options.metadata_file = value.trim().to_owned(),
        "stream-interval" => options.stream_interval = parse_time(value)?,
        "stream-call-duration" => options.stream_call_duration = parse_time(value)?,
        "stream-call-count" => options.stream_call_count = parse_count(value)?,
        "stream-dynamic-messages" => options.stream_dynamic_messages = switch,
        "output" => options.output = value.trim().to_owned(),
        "format" => options.format = text(),
        "skipFirst" => options.skip_first = parse_count(value)?,
        "count-errors" => options.count_errors = switch,
        "connections" => options.connections = parse_count(value)?,
        "connect-timeout" => options.connect_timeout = parse_time(value)?,
        "keepalive" => options.keepalive = parse_time(value)?,
        "name" => options.name = value.trim().to_owned(),
        "cpus" => options.cpus = parse_count(value)?,
        "debug" => options.debug = text(),
        "enable-compression" => options.enable_compression = switch,
        "lb-strategy" => options.lb_strategy = text(),
        "disable-template-functions" => options.disable_template_functions = switch,
        "disable-template-data" => options.disable_template_data = switch,
        "host" => options.host = text(),
        name => set_schedule(options, name, value)?,
    }
    Ok(())
}

fn set_schedule(options: &mut Options, name: &str, value: &str) -> Result<(), String> {
    let (schedule, part) = match name.split_once('-') {
        Some(("load", part)) => (&mut options.load, part),
        Some(("concurrency", part)) => (&mut options.workers, part),
        // a key that the program does not know either
        _ => return Ok(()),
    };
    match part {
        "schedule" => value.clone_into(&mut schedule.kind),
        "start" => schedule.start = parse_count(value)?,
        "end" => schedule.end = parse_count(value)?,
        "step" => schedule.step = parse_number(value)?,
        "step-duration" => schedule.step_duration = parse_time(value)?,
        "max-duration" => schedule.max_duration = parse_time(value)?,
        _ => {}
    }
    Ok(())
}

/// Parses a value given as JSON.
fn json_of(what: &str, text: &str) -> Result<Value, String> {
    serde_json::from_str(text)
        .map_err(|why| format!("error unmarshaling {what} '{text}': {}", go_json_error(text, &why)))
}

/// Parses a map of texts given as JSON.
fn texts_of(what: &str, text: &str) -> Result<Map<String, Value>, String> {
    let value = json_of(what, text)?;
    texts(&value).map_err(|why| format!("error unmarshaling {what} '{text}': {why}"))
}

/// Returns the value as a map of texts.
///
/// # Errors
/// Fails with Go's message.
pub(super) fn texts(value: &Value) -> Result<Map<String, Value>, String> {
    let refused = |value: &Value, wanted: &str| {
        format!("json: cannot unmarshal {} into Go value of type {wanted}", kind_of(value))
    };
    match value {
        Value::Null => Ok(Map::new()),
        Value::Object(map) => match map.values().find(|value| !value.is_string()) {
            Some(other) => Err(refused(other, "string")),
            None => Ok(map.clone()),
        },
        other => Err(refused(other, "map[string]string")),
    }
}

/// Returns Go's name for the kind of a JSON value.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns Go's message about invalid JSON, for the common cases.
pub(super) fn go_json_error(text: &str, why: &serde_json::Error) -> String {
    if why.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let line = text.lines().nth(why.line().saturating_sub(1)).unwrap_or_default();
    let Some(letter) = line.chars().nth(why.column().saturating_sub(1)) else {
        return why.to_string();
    };
    let place = match why.to_string() {
        text if text.starts_with("key must be a string") => {
            "looking for beginning of object key string"
        }
        text if text.starts_with("trailing characters") => "after top-level value",
        text if text.starts_with("expected `,` or `}`") => "after object key:value pair",
        text if text.starts_with("expected `,` or `]`") => "after array element",
        text if text.starts_with("expected `:`") => "after object key",
        _ => "looking for beginning of value",
    };
    format!("invalid character '{letter}' {place}")
}
