//! `--native`: the equivalent native command.

use super::options::Options;
use crate::Ending;
use crate::words::shell_quoted;

pub(super) fn command(options: &Options) -> Ending {
    let mut parts = vec!["loadstone run".to_owned(), shell_quoted(&options.args[0])];
    let mut add =
        |name: &str, value: String| parts.push(format!("{name} {}", shell_quoted(&value)));
    let connections = options.connections_used().to_string();
    match options.rate {
        None => add("-c", connections),
        Some(rate) => {
            add("--rate", format!("{rate}/s"));
            add("--connections-max", connections);
        }
    }
    add("-d", format!("{}s", options.duration_s));
    add("--threads", options.threads.to_string());
    add("--timeout", format!("{}s", options.timeout_s));
    if let Some(script) = &options.script {
        add("--script", script.clone());
    }
    for (name, value) in options.fields() {
        add("-H", format!("{name}: {value}"));
    }
    if options.url.scheme.eq_ignore_ascii_case("https") {
        parts.push("--insecure".to_owned());
    }
    if options.latency {
        parts.push("--percentiles".to_owned());
    }
    if options.script.is_some() && options.args.len() > 1 {
        parts.push("--".to_owned());
        parts.extend(options.args[1..].iter().map(|arg| shell_quoted(arg)));
    }
    Ending::text(parts.join(" ") + "\n")
}
