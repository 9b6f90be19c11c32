//! `--native`: the equivalent native command, or a plan if no option is equivalent.

use super::messages::{CallContent, GivenData};
use super::options::Options;
use super::setup;
use crate::Ending;
use crate::words::{plan_script, shell_quoted};
use plan::Plan;

/// Returns the native command; `plan`: the plan of the face.
pub(super) fn command(
    options: &Options,
    given: &GivenData,
    content: &CallContent,
    path: &str,
    plan: &Plan,
) -> Ending {
    if content.recipe.is_some() {
        let text =
            "ghz: --native: call data that differ from call to call cannot be translated yet\n";
        return Ending::error(text, 1);
    }
    let simple = content.bodies.len() == 1
        && !given.is_binary()
        && !options.enable_compression
        && options.load.kind == "const"
        && !options.is_async
        && !options.workers.changes()
        && options.stream_call_count == 0
        && options.stream_interval.is_zero()
        && options.stream_call_duration.is_zero()
        // a plan has the message as bytes, and needs no reflection
        && options.reflect_metadata.is_empty()
        && !options.host.starts_with("unix:");
    let untranslated = untranslated(options);
    if !simple {
        return Ending::text(untranslated + &plan_script("ghz.toml", plan));
    }
    let scheme = if options.insecure { "grpc" } else { "grpcs" };
    let host = options.host.strip_prefix("dns:///").unwrap_or(&options.host);
    let mut parts =
        vec!["loadstone run".to_owned(), shell_quoted(&format!("{scheme}://{host}{path}"))];
    let mut add = |name: &str, value: &str| parts.push(format!("{name} {}", shell_quoted(value)));
    message(options, given, plan, &mut add);
    if options.rps > 0 {
        add("--rate", &format!("{}/s", options.rps));
        add("--connections-max", &options.connections.to_string());
    } else {
        add("-c", &options.connections.to_string());
    }
    add("--streams", &setup::streams(options).to_string());
    if let Some(total) = plan.stop.requests {
        add("-n", &total.to_string());
    }
    if let Some(limit) = plan.stop.duration {
        add("-d", &format!("{}ms", limit.0 / 1_000_000));
    }
    if !options.timeout.is_zero() {
        add("--timeout", &format!("{}ms", options.timeout.0 / 1_000_000));
        add("--grpc-timeout", &format!("{}ms", options.timeout.0 / 1_000_000));
    }
    add("--connect-timeout", &format!("{}ms", plan.timeouts.connect.0 / 1_000_000));
    for (name, value) in &content.headers {
        add("-H", &format!("{name}: {value}"));
    }
    for (name, text) in [
        ("--ca", &options.cacert),
        ("--cert", &options.cert),
        ("--key", &options.key),
        ("--server-name", &options.cname),
    ] {
        if !options.insecure && !text.is_empty() {
            add(name, text);
        }
    }
    if options.skip_tls && !options.insecure {
        parts.push("--insecure".to_owned());
    }
    Ending::text(untranslated + &parts.join(" ") + "\n")
}

/// Adds the options for the messages, their description, and the authority.
fn message(options: &Options, given: &GivenData, plan: &Plan, add: &mut dyn FnMut(&str, &str)) {
    let shown = given.shown();
    if !shown.is_null() {
        add("--message", &super::go::json(&shown));
    }
    for (name, text) in [("--proto", &options.proto), ("--protoset", &options.protoset)] {
        if !text.is_empty() {
            add(name, text);
        }
    }
    if !options.proto.is_empty() && !options.import_paths.is_empty() {
        add("--proto-path", &super::messages::import_paths(options).join(","));
    }
    if let Some(most) = plan.grpc.response_message_max {
        add("--response-message-max", &most.to_string());
    }
    if !options.authority.is_empty() {
        add("-H", &format!("host: {}", options.authority));
    }
}

/// Lists options without an equivalent here, as shell comments.
fn untranslated(options: &Options) -> String {
    let mut out = String::new();
    let mut note = |given: bool, text: &str| {
        if given {
            out.push_str(&format!("# not translated: {text}\n"));
        }
    };
    note(options.skip_first > 0, "--skipFirst; --warmup TIME leaves out the first calls");
    note(!options.keepalive.is_zero(), "--keepalive; a connection under load has no idle time");
    note(
        !options.output.is_empty() || options.format != "summary",
        "--output and --format; --json FILE writes a report",
    );
    note(!options.debug.is_empty(), "--debug; --log FILE lists all calls");
    note(options.count_errors, "--count-errors; times of failed calls are reported separately");
    note(!options.tags.is_empty() || !options.name.is_empty(), "--name and --tags");
    out
}
