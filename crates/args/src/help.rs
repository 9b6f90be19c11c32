//! Help by topic: the first steps, `run -h` by task, and `--help=TOPIC`.

use super::{Cli, UsageError};
use clap::{Arg, Command, CommandFactory};
use std::ffi::OsString;

/// Output of `loadstone` without arguments.
pub const FIRST_STEPS: &str = "\
Loadstone loads, measures and torture-tests web servers. Most used:

  loadstone run http://localhost:8080/
        load a server with 10 users for 10 seconds, and report
  loadstone run --rate 200/s --slo 'p99<50ms, failures<0.1%' URL
        a fixed rate with objectives: exit code 1 if one is missed, for CI
  loadstone run journey.toml
        users who log in, search and buy, step by step
  loadstone ramp URL
        find the load that the server can take
  loadstone compare http://old:8080/ http://new:8080/
        whether the new version is slower, with intervals
  loadstone torture http://localhost:8080/
        test how your own server handles broken and hostile requests

Without a server at hand: loadstone demo. All commands: loadstone --help.
The options of a command: loadstone run -h.
";

/// The options of `run -h`, by task.
const SHORT: [(&str, &[&str]); 4] = [
    (
        "Load",
        &["connections", "rate", "stages", "think", "duration", "requests", "warmup", "repeat"],
    ),
    (
        "Request",
        &[
            "urls",
            "method",
            "header",
            "body",
            "body-file",
            "user",
            "bearer",
            "http",
            "follow",
            "cookies",
            "timeout",
            "insecure",
            "ca",
        ],
    ),
    ("Pass or fail", &["expect-status", "slo"]),
    ("Output", &["json", "html", "junit", "quiet", "full", "line", "live"]),
];

/// Commands that have the options of `run`.
const RUNS: [&str; 3] = ["run", "ramp", "compare"];

/// A topic of `--help=NAME`.
struct Topic {
    name: &'static str,
    about: &'static str,
    /// Returns whether the topic includes an option, by its help section, its page in the guide or
    /// its name.
    has: fn(&str, &str, &str) -> bool,
}

const fn topic(
    name: &'static str,
    about: &'static str,
    has: fn(&str, &str, &str) -> bool,
) -> Topic {
    Topic { name, about, has }
}

/// The options of the topic `net`.
const NET: [&str; 13] = [
    "unix",
    "resolve",
    "bind",
    "proxy",
    "ipv4",
    "ipv6",
    "send-buffer",
    "recv-buffer",
    "no-nodelay",
    "reset",
    "stack",
    "sources",
    "tcp",
];

const TOPICS: [Topic; 15] = [
    topic("load", "How much load, and for how long", |part, _, _| {
        part == "Load" || part == "End of the run"
    }),
    topic("request", "What is requested", |part, _, _| part == "Request"),
    topic("pass", "What makes a call or a run fail", |part, _, name| {
        part.starts_with("Expectations")
            || ["slo", "abort-if", "until-sure", "junit", "doubt-max"].contains(&name)
    }),
    topic("login", "Logins", |_, _, name| {
        ["user", "digest", "bearer", "aws-sigv4", "cookies", "cert", "key"].contains(&name)
            || name.starts_with("token-")
    }),
    topic("timeouts", "Time limits", |part, _, _| part == "Time limits"),
    topic("connections", "Connections", |part, _, _| part == "Connections"),
    topic("tls", "TLS", |part, _, _| part == "TLS"),
    topic("http2", "HTTP/2", |_, page, name| {
        (page == "http2-and-http3" && name != "migrate") || name == "http"
    }),
    topic("http3", "HTTP/3", |_, page, name| {
        let only_http2 = ["header-table", "encoder-table", "frame-max"].contains(&name);
        (page == "http2-and-http3" && !only_http2) || ["http", "early-data"].contains(&name)
    }),
    topic("grpc", "gRPC", |part, _, _| part == "gRPC"),
    topic("websocket", "WebSocket", |_, page, _| page == "websocket"),
    topic("paths", "Emulated paths", |_, page, _| page == "paths"),
    topic("net", "Addresses, proxies, sockets and TCP", |_, _, name| NET.contains(&name)),
    topic("measuring", "Measurement, and the resources of this machine", |part, _, _| {
        part == "Measuring" || part == "This machine"
    }),
    topic("output", "Results", |part, _, _| part == "Output"),
];

/// Builds the command for a command line: its `-h` lists the options by task.
pub fn command_for(argv: &[OsString]) -> Command {
    let command = Cli::command();
    match argv.iter().any(|word| word == "-h") {
        true => by_task(command),
        false => command,
    }
}

/// Returns the options of `run -h` under the headings of tasks.
pub(super) fn by_task(command: Command) -> Command {
    let task = |arg: Arg| {
        let name = arg.get_long().unwrap_or_default();
        match SHORT.iter().find(|(_, names)| names.contains(&name)) {
            Some((heading, _)) => arg.help_heading(*heading),
            None => arg,
        }
    };
    command.mut_subcommand("run", |run| run.mut_args(task))
}

/// Returns the output of `--help=TOPIC`; `None` if the command line has no such word.
///
/// # Errors
/// Fails if there is no such topic.
pub fn topic_page(argv: &[OsString]) -> Option<Result<String, UsageError>> {
    let words = argv.iter().skip(1).map(|word| word.to_string_lossy());
    let words: Vec<_> = words.take_while(|word| word != "--").collect();
    let named = words.iter().find_map(|word| word.strip_prefix("--help="))?.to_lowercase();
    let name = words.iter().find(|word| !word.starts_with('-')).map_or("run", |word| word);
    // for other commands clap reports that --help takes no value
    let name = RUNS.iter().find(|known| **known == name)?;
    let Some(topic) = TOPICS.iter().find(|topic| topic.name == named) else {
        return Some(Err(UsageError::new(format!(
            "--help={named}: there is no such topic; topics are {}, and --help alone prints everything",
            names().join(", ")
        ))));
    };
    Some(Ok(page(name, topic)))
}

fn names() -> Vec<&'static str> {
    TOPICS.iter().map(|topic| topic.name).collect()
}

fn page(command: &str, topic: &Topic) -> String {
    let chosen = |arg: Arg| {
        let name = arg.get_long().unwrap_or_default().to_owned();
        let page = plan::options::named(&name).map_or("", |row| row.page);
        let part = arg.get_help_heading().unwrap_or_default().to_owned();
        match !name.is_empty() && (topic.has)(&part, page, &name) {
            true => arg,
            false => arg.hide(true),
        }
    };
    let mut cli = Cli::command().mut_subcommand(command, |sub| {
        let sub = sub.disable_help_flag(true).mut_args(chosen);
        sub.help_template(format!("{} (loadstone {command})\n\n{{options}}\n", topic.about))
    });
    cli.build();
    let sub = cli.find_subcommand_mut(command);
    sub.map(|sub| sub.render_long_help().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested_help(line: &str) -> Option<Result<String, UsageError>> {
        topic_page(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_short_help_has_the_options_of_the_tasks_and_no_other() {
        let cli = Cli::command();
        let run = cli.find_subcommand("run").unwrap();
        let shown = run.get_arguments().filter(|arg| !arg.is_positional());
        let shown = shown.filter(|arg| !arg.is_hide_short_help_set() && !arg.is_hide_set());
        let shown: Vec<&str> = shown.filter_map(Arg::get_long).filter(|it| *it != "help").collect();
        let mut tasks: Vec<&str> = SHORT.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut sorted = shown.clone();
        sorted.sort_unstable();
        tasks.sort_unstable();
        assert_eq!(sorted, tasks);
    }

    #[test]
    fn every_topic_has_options_and_every_option_a_topic() {
        let cli = Cli::command();
        for topic in &TOPICS {
            let page =
                requested_help(&format!("loadstone run --help={}", topic.name)).unwrap().unwrap();
            assert!(page.lines().filter(|line| line.contains("  --")).count() > 1, "{page}");
        }
        for arg in cli.find_subcommand("run").unwrap().get_arguments() {
            let Some(name) = arg.get_long().filter(|name| *name != "help") else { continue };
            let page = plan::options::named(name).map_or("", |row| row.page);
            let part = arg.get_help_heading().unwrap_or_default();
            assert!(TOPICS.iter().any(|topic| (topic.has)(part, page, name)), "{name}");
        }
    }

    #[test]
    fn a_topic_is_printed_alone() {
        let page = requested_help("loadstone run --help=tls").unwrap().unwrap();
        assert!(page.contains("--early-data") && page.contains("--ciphers"), "{page}");
        assert!(!page.contains("--rate") && !page.contains("--json"), "{page}");
        let wrong =
            requested_help("loadstone ramp --help=cookies").unwrap().unwrap_err().to_string();
        assert!(wrong.contains("topics are load, request"), "{wrong}");
        assert!(requested_help("loadstone run --help").is_none());
        assert!(requested_help("loadstone run --script x.lua http://h/ -- --help=tls").is_none());
        assert!(requested_help("loadstone torture --help=tls").is_none());
    }
}
