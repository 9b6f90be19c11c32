//! `--native`: the equivalent native command, or a plan if options cannot express it.

use super::options::Cleartext;
use super::work::Work;
use crate::Ending;
use crate::words::{plan_script, shell_quoted};
use plan::{HttpVersion, Plan};

/// Returns the native command; `plan`: the plan of the face.
pub(super) fn command(work: &Work, plan: &Plan) -> Ending {
    let options = &work.options;
    let needs_plan = options.rps > 0.0
        || options.timing
        || options.rate.is_some()
        || work.asked.paths.len() > 1
        || options.connect_to.is_some()
        || options.headers.iter().any(|(name, _)| name.starts_with(':') || name == "user-agent")
        || (options.data.is_some() && options.cleartext == Cleartext::Http1);
    if needs_plan {
        return Ending::text(plan_script("h2load.toml", plan));
    }
    Ending::text(options_of(work, plan).join(" ") + "\n")
}

fn options_of(work: &Work, plan: &Plan) -> Vec<String> {
    let options = &work.options;
    let url = plan.targets.first().map_or("", |target| target.url.as_str());
    let mut parts = vec!["loadstone run".to_owned(), shell_quoted(url)];
    let mut add = |name: &str, value: String| {
        parts.push(format!("{name} {}", shell_quoted(&value)));
    };
    let http1 = plan.request.version == HttpVersion::Http11;
    let offers = |name: &str| plan.tls.alpn.iter().any(|offered| offered == name);
    let version = match plan.request.version {
        HttpVersion::Auto if !offers("h2") => "1.1",
        HttpVersion::Auto if !offers("http/1.1") => "2",
        HttpVersion::Auto => "auto",
        _ if http1 => "1.1",
        _ => "2",
    };
    add("--http", version.to_owned());
    add("-c", options.clients.to_string());
    match work.requests() {
        Some(requests) => add("-n", requests.to_string()),
        None => add("-d", plan::rules::show_span(options.duration)),
    }
    if work.is_timed() && !options.warm_up.is_zero() {
        add("--warmup", plan::rules::show_span(options.warm_up));
    }
    let depth = if version == "1.1" { "--pipeline" } else { "--streams" };
    if options.streams > 1 {
        add(depth, options.streams.to_string());
    }
    add("--threads", options.threads.to_string());
    if version != "1.1" {
        for (name, value) in http2_options(plan) {
            add(name, value.to_string());
        }
    }
    for (name, value) in &options.headers {
        add("-H", format!("{name}: {value}"));
    }
    if let Some(file) = &options.data {
        add("--body-file", file.clone());
    }
    if let Some(path) = &options.unix {
        add("--unix", path.clone());
    }
    if !options.active_timeout.is_zero() {
        add("--timeout", plan::rules::show_span(plan.timeouts.call));
    }
    if let Some(span) = plan.timeouts.progress {
        add("--progress-timeout", plan::rules::show_span(span));
    }
    if let Some(file) = &options.log {
        add("--log", file.clone());
    }
    if work.asked.base.secure {
        add("--ciphers", plan.tls.ciphers.join(","));
        add("--groups", plan.tls.groups.join(","));
        parts.push("--insecure --no-resumption".to_owned());
    }
    parts
}

/// Returns the announced settings, if different from the defaults.
fn http2_options(plan: &Plan) -> Vec<(&'static str, u32)> {
    let (http2, usual) = (plan.http2, plan::Http2Plan::default());
    [
        ("--stream-window", http2.stream_window, usual.stream_window),
        ("--connection-window", http2.connection_window, usual.connection_window),
        ("--header-table", http2.header_table, usual.header_table),
        ("--encoder-table", http2.encoder_table, usual.encoder_table),
        ("--frame-max", http2.frame_max, usual.frame_max),
    ]
    .into_iter()
    .filter(|(_, value, usual)| value != usual)
    .map(|(name, value, _)| (name, value))
    .collect()
}
