//! `--native`: the command of our own that does the same, as far as there is one.

use super::number::general;
use super::options::{Options, Period, Sessions};
use crate::words::shell_quoted;

pub(super) fn command(options: &Options) -> String {
    let scheme = if options.ssl.on { "https" } else { "http" };
    let usual = if options.ssl.on { 443 } else { 80 };
    let port = match options.port() {
        port if port == usual => String::new(),
        port => format!(":{port}"),
    };
    let url = format!("{scheme}://{}{port}{}", options.server, options.uri);
    let mut parts = vec!["loadstone run".to_owned(), shell_quoted(&url)];
    let mut add =
        |name: &str, value: String| parts.push(format!("{name} {}", shell_quoted(&value)));
    let (sessions, calls, think) = match &options.sessions {
        None => (options.conns, options.calls, 0.0),
        Some(Sessions::Fixed { sessions, calls, think }) => (*sessions, *calls, *think),
        // what is in the file takes a plan: `visits` in its [load]
        Some(Sessions::Logged { sessions, think, .. }) => (*sessions, 1, *think),
    };
    match &options.period {
        Period::Sequential => {
            add("-c", "1".into());
            add("-n", sessions.saturating_mul(calls).to_string());
            add("--calls", calls.to_string());
        }
        period => {
            let (rate, gaps) = match period {
                Period::Uniform { low, high } => (2.0 / (low + high), "uniform"),
                Period::Exponential { mean } => (1.0 / mean, "poisson"),
                Period::Fixed { rate, .. } => (*rate, "constant"),
                Period::Varying(pairs) => (1.0 / pairs[0].0, "constant"),
                Period::Sequential => (1.0, "constant"),
            };
            add("--rate", format!("{}/s", general(rate)));
            if gaps != "constant" {
                add("--arrivals", gaps.into());
            }
            add("-n", sessions.to_string());
            add("--session", calls.to_string());
        }
    }
    if think > 0.0 {
        add("--think", format!("{}s", general(think)));
    }
    if options.burst > 1 {
        add("--group", options.burst.min(calls).to_string());
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
    for line in super::request::unescape(options.add_header.as_deref().unwrap_or("")).lines() {
        add("-H", line);
    }
    if options.ssl.on && !options.ssl.verify {
        parts.push("--insecure".to_owned());
    }
    parts.join(" ") + "\n"
}
