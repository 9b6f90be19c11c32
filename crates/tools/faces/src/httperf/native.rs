//! `--native`: the equivalent native command if options can express it; otherwise a plan file and
//! the command that runs it.

use super::number::general;
use super::options::{Options, Period, Sessions};
use crate::words::{plan_script, shell_quoted};
use plan::Plan;

/// Returns the native command; `plan`: the plan of the face.
pub(super) fn command(options: &Options, plan: &Plan) -> String {
    if is_expressible(options) { line(options) } else { plan_script("httperf.toml", plan) }
}

/// Returns whether native options are sufficient.
fn is_expressible(options: &Options) -> bool {
    let load = match (&options.sessions, &options.period) {
        (None, Period::Sequential | Period::Fixed { .. } | Period::Exponential { .. }) => true,
        // ours are uniform from 0 on
        (None, Period::Uniform { low, .. }) => *low <= 0.0,
        // there a burst's first call is sent alone, and one session waits for another
        (Some(Sessions::Fixed { .. }), Period::Fixed { .. } | Period::Exponential { .. }) => {
            options.burst == 1 && options.max_connections == 0
        }
        _ => false,
    };
    let lists = options.wlog.is_some() || options.wset.is_some() || options.servers.is_some();
    let head = options.no_host_header
        || options.add_header_file.is_some()
        || options.add_header.as_deref().is_some_and(|text| !is_fields(text));
    let rest = options.retry_on_failure
        || options.think_timeout > 0.0
        || options.session_cookies
        || options.failure_status > 0
        || options.ssl.ca_path.is_some()
        || options.ssl.ciphers.is_some()
        || options.my_address.is_some();
    load && !lists && !head && !rest
}

/// Returns whether a text of `--add-header` consists only of header fields.
fn is_fields(text: &str) -> bool {
    let extra = super::request::unescape(text);
    let bytes = &extra.bytes;
    let field = |line: &String| line.split_once(": ").is_some_and(|(name, _)| !name.contains(' '));
    extra.complaints.is_empty() && bytes.ends_with(b"\r\n") && extra.lines().iter().all(field)
}

fn line(options: &Options) -> String {
    let scheme = if options.ssl.on { "https" } else { "http" };
    let usual = if options.ssl.on { 443 } else { 80 };
    let port = match options.port() {
        port if port == usual => String::new(),
        port => format!(":{port}"),
    };
    let host = &options.server;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let url = format!("{scheme}://{host}{port}{}", options.uri);
    let mut parts = vec!["loadstone run".to_owned(), shell_quoted(&url)];
    let mut add =
        |name: &str, value: String| parts.push(format!("{name} {}", shell_quoted(&value)));
    load(options, &mut add);
    if options.runtime > 0.0 {
        add("-d", format!("{}s", general(options.runtime)));
    }
    if options.burst > 1 {
        add("--group", options.burst.min(options.calls.max(1)).to_string());
    }
    if options.timeout > 0.0 {
        add("--progress-timeout", format!("{}s", general(options.timeout)));
    }
    if options.http_version == (1, 0) {
        add("--http", "1.0".into());
    }
    if let Some(method) = &options.method {
        add("--method", method.clone());
    }
    if let Some(name) = &options.server_name {
        add("-H", format!("Host: {name}"));
    }
    for line in super::request::unescape(options.add_header.as_deref().unwrap_or("")).lines() {
        add("-H", line);
    }
    tls(options, &mut add);
    if options.close_with_reset {
        parts.push("--reset".to_owned());
    }
    if options.ssl.on && !options.ssl.verify {
        parts.push("--insecure".to_owned());
    }
    parts.join(" ") + "\n"
}

fn load(options: &Options, add: &mut dyn FnMut(&str, String)) {
    let (sessions, calls, think) = match &options.sessions {
        Some(Sessions::Fixed { sessions, calls, think }) => (*sessions, *calls, *think),
        _ => (options.conns, options.calls, 0.0),
    };
    let (rate, gaps) = match &options.period {
        Period::Uniform { low, high } => (2.0 / (low + high), "uniform"),
        Period::Exponential { mean } => (1.0 / mean, "poisson"),
        Period::Fixed { rate, .. } => (*rate, "constant"),
        Period::Sequential | Period::Varying(_) => {
            add("-c", "1".into());
            add("-n", sessions.saturating_mul(calls.max(1)).to_string());
            return add("--calls", calls.max(1).to_string());
        }
    };
    add("--rate", format!("{}/s", general(rate)));
    if gaps != "constant" {
        add("--arrivals", gaps.into());
    }
    add("-n", sessions.to_string());
    add("--session", calls.max(1).to_string());
    if think > 0.0 {
        add("--think", format!("{}s", general(think)));
    }
}

fn tls(options: &Options, add: &mut dyn FnMut(&str, String)) {
    let ssl = &options.ssl;
    for (name, value) in [
        ("--ca", &ssl.ca_file),
        ("--cert", &ssl.certificate),
        ("--key", &ssl.key),
        ("--server-name", &ssl.server_name),
    ] {
        if let Some(value) = value {
            add(name, value.clone());
        }
    }
    let version = ssl.protocol.as_deref().and_then(|name| name.strip_prefix("TLSv1"));
    if let Some(minor) = version {
        add("--tls", format!("1{}", minor.replace('_', ".")));
    }
}
