//! siege's texts about itself: version, help, configuration.

use super::config::{Config, LOG_FILE, Login, Reps, URLS_FILE, VERSION};
use crate::Ending;

const COPYRIGHT: &str = "Copyright (C) 2018 by Jeffrey Fulmer, et al.
This is free software; see the source for copying conditions.
There is NO warranty; not even for MERCHANTABILITY or FITNESS
FOR A PARTICULAR PURPOSE.
";

pub(super) fn number(config: &Config) -> &'static str {
    if config.newer { "4.1.7" } else { VERSION }
}

/// Returns the version line; with the copyright if requested, or in debug mode.
pub(super) fn version(config: &Config, whole: bool) -> String {
    let number = number(config);
    match (config.debug, whole) {
        (true, _) => format!("SIEGE {number}: debugging enabled\n\n{COPYRIGHT}\n"),
        (false, true) => format!("SIEGE {number}\n\n{COPYRIGHT}\n"),
        (false, false) => format!("SIEGE {number}\n"),
    }
}

/// Lines of the options, as printed by the tool.
const OPTIONS: &str = r#"  -V, --version             VERSION, prints the version number.
  -h, --help                HELP, prints this section.
  -C, --config              CONFIGURATION, show the current config.
  -v, --verbose             VERBOSE, prints notification to screen.
  -q, --quiet               QUIET turns verbose off and suppresses output.
  -g, --get                 GET, pull down HTTP headers and display the
                            transaction. Great for application debugging.
  -p, --print               PRINT, like GET only it prints the entire page.
  -c, --concurrent=NUM      CONCURRENT users, default is 10
  -r, --reps=NUM            REPS, number of times to run the test.
  -t, --time=NUMm           TIMED testing where "m" is modifier S, M, or H
                            ex: --time=1H, one hour test.
  -d, --delay=NUM           Time DELAY, random delay before each request
  -b, --benchmark           BENCHMARK: no delays between requests.
  -i, --internet            INTERNET user simulation, hits URLs randomly.
  -f, --file=FILE           FILE, select a specific URLS FILE.
  -R, --rc=FILE             RC, specify an siegerc file
  -l, --log[=FILE]          LOG to FILE. If FILE is not specified, the
                            default is used: /var/log/siege.log
  -m, --mark="text"         MARK, mark the log file with a string.
                            between .001 and NUM. (NOT COUNTED IN STATS)
  -H, --header="text"       Add a header to request (can be many)
  -A, --user-agent="text"   Sets User-Agent in request
  -T, --content-type="text" Sets Content-Type in request
  -j, --json-output         JSON OUTPUT, print final stats to stdout as JSON
      --no-parser           NO PARSER, turn off the HTML page parser
      --no-follow           NO FOLLOW, do not follow HTTP redirects
"#;

pub(super) fn help(config: &Config) -> Ending {
    let out = format!(
        "Usage: siege [options]\n       siege [options] URL\n       siege -g \
         URL\nOptions:\n{OPTIONS}\n{COPYRIGHT}\n"
    );
    Ending { out, err: version(config, false), ..Ending::default() }
}

/// Renders the output of `-C`.
pub(super) fn config(config: &Config) -> String {
    let mut out = String::from("CURRENT  SIEGE  CONFIGURATION\n");
    putln!(out, "{}", config.user_agent);
    putln!(out, "Edit the resource file to change the settings.");
    putln!(out, "{}", "-".repeat(46));
    for (name, value) in rows(config) {
        putln!(out, "{:32}{value}", format!("{name}:"));
    }
    if config.parser && !config.no_follow.is_empty() {
        putln!(out, "no-follow:");
        config.no_follow.iter().for_each(|host| putln!(out, " - {host}"));
    }
    putln!(out, "{:32}{}", "proxy auth:", credentials(&config.proxy_logins));
    putln!(out, "{:32}{}", "www auth:", credentials(&config.logins));
    out
}

fn credentials(logins: &[Login]) -> String {
    let line = |login: &Login| {
        let Login { user, password, realm } = login;
        format!("credentials:  {user}:{password}:{realm}\n")
    };
    logins.iter().map(line).collect()
}

fn rows(config: &Config) -> Vec<(&'static str, String)> {
    let truth = |on: bool| on.to_string();
    let word = |on: bool, yes: &str, no: &str| (if on { yes } else { no }).to_owned();
    let mut rows = vec![
        ("version", number(config).to_owned()),
        ("verbose", truth(config.verbose)),
        ("color", truth(config.color)),
        ("quiet", truth(config.quiet)),
        ("debug", truth(config.debug)),
        ("protocol", word(config.http11, "HTTP/1.1", "HTTP/1.0")),
        ("HTML parser", word(config.parser, "enabled", "disabled")),
        ("get method", word(config.get_by_head != Some(false), "HEAD", "GET")),
    ];
    if let Some(host) = &config.proxy_host {
        rows.push(("proxy-host", host.clone()));
        rows.push(("proxy-port", config.proxy_port.to_string()));
    }
    let time = if config.seconds > 0 { format!("{} seconds", config.seconds) } else { na() };
    let reps = match config.reps {
        Reps::Pages(count @ 1..) => count.to_string(),
        _ => na(),
    };
    let plural = if config.delay > 1.0 { "s" } else { "" };
    rows.extend([
        ("connection", word(config.keep_alive, "keep-alive", "close")),
        ("concurrent users", config.users.to_string()),
        ("time to run", time),
        ("repetitions", reps),
        ("socket timeout", config.timeout.to_string()),
        ("cache enabled", truth(config.cache)),
        ("accept-encoding", config.accept_encoding.clone()),
        ("delay", format!("{:.3} sec{plural}", config.delay)),
        ("internet simulation", truth(config.internet)),
        ("benchmark mode", truth(config.benchmark)),
        ("failures until abort", config.failures.to_string()),
    ]);
    let long = |text: &&String| text.len() > 1;
    rows.extend([
        ("named URL", config.url.as_ref().filter(long).cloned().unwrap_or_else(|| "none".into())),
        ("URLs file", Some(&config.file).filter(long).map_or(URLS_FILE, |file| file).to_owned()),
        ("thread limit", config.limit.to_string()),
        ("logging", truth(config.logging)),
        ("log file", Some(&config.logfile).filter(long).map_or(LOG_FILE, |file| file).to_owned()),
        ("resource file", config.rc.clone()),
        ("timestamped output", truth(config.timestamp)),
        ("comma separated output", truth(config.csv)),
        ("allow redirects", truth(config.follow)),
        ("allow zero byte data", truth(config.zero_data_ok)),
        ("allow chunked encoding", truth(config.chunked)),
        ("upload unique files", truth(config.unique)),
        ("json output", truth(config.json)),
    ]);
    rows
}

fn na() -> String {
    "n/a".to_owned()
}
