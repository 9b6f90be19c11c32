//! siege's configuration file: its location, syntax and keys, and the variables that it shares with
//! the file of URLs.

use super::config::{Config, Login, Reps, fatal};
use crate::words::atoi;
use crate::{Ending, Files};
use std::collections::BTreeMap;

/// File that siege creates in the home of a user without a configuration file, and then reads.
const SHIPPED: &str = "verbose = true
color = on
quiet = false
json_output = true
show-logfile = true
logging = false
gmethod = HEAD
parser = true
nofollow = ad.doubleclick.net
nofollow = pagead2.googlesyndication.com
nofollow = ads.pubsqrd.com
nofollow = ib.adnxs.com
limit = 255
protocol = HTTP/1.1
chunked = true
cache = false
connection = close
concurrent = 25
delay = 0.0
internet = false
benchmark = false
accept-encoding = gzip, deflate
url-escaping = true
unique = true
";

/// Maximum size of a configuration file's header lines.
const HEADERS_MAX: usize = 2_048;
/// Maximum number of references resolved in one line; a circular reference would never end.
const REFERENCES_MAX: usize = 100;

/// Reads the file named by `-R`, `$SIEGERC` or the user's home. If the home has none, the defaults
/// that siege would have written are used, and nothing is written.
pub(super) fn load(given: Option<&str>, files: &dyn Files) -> Result<Config, Ending> {
    let mut config = Config::default();
    let named = given.map(str::to_owned).or_else(|| files.variable("SIEGERC"));
    let home = files.variable("HOME").unwrap_or_default();
    config.rc = named.clone().unwrap_or_else(|| format!("{home}/.siege/siege.conf"));
    let text = match files.read(&config.rc) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) if named.is_none() => SHIPPED.to_owned(),
        Err(_) => return Err(missing(&config.rc)),
    };
    let mut variables = BTreeMap::new();
    for line in text.lines() {
        read_line(line, &mut config, &mut variables, files)?;
    }
    Ok(config)
}

fn missing(path: &str) -> Ending {
    let stars = "*".repeat(50);
    let text = format!(
        "{stars}\nsiege: could not open {path}\nrun 'siege.config' to generate a new config \
         file\n{stars}\n"
    );
    Ending::error(text, 1)
}

fn read_line(
    line: &str,
    config: &mut Config,
    variables: &mut BTreeMap<String, String>,
    files: &dyn Files,
) -> Result<(), Ending> {
    let line = line.trim();
    // a password may hold the sign that begins a comment anywhere else
    let line = if line.starts_with("login") { line } else { line.split('#').next().unwrap_or("") };
    if line.trim().is_empty() {
        return Ok(());
    }
    let (key, value) = split(line);
    let key = evaluated(key, variables, files);
    let value = evaluated(value, variables, files).trim().to_owned();
    if !apply(config, &key, &value)? {
        variables.insert(key, value);
    }
    Ok(())
}

/// Returns a name and the text after the following spaces, `=` or `:`.
pub(super) fn split(line: &str) -> (&str, &str) {
    let separates = |sign: char| sign.is_whitespace() || sign == '=' || sign == ':';
    let end = line.find(separates).unwrap_or(line.len());
    (&line[..end], line[end..].trim_start_matches(separates))
}

/// Returns the text with `$(NAME)`, `${NAME}` and `$NAME` (up to a slash or the end) replaced by
/// variables of the file or of the environment, and removed if there is no such variable. `\$` is a
/// dollar.
pub(super) fn evaluated(
    text: &str,
    variables: &BTreeMap<String, String>,
    files: &dyn Files,
) -> String {
    let (mut out, mut rest) = (String::new(), text.to_owned());
    for _ in 0..REFERENCES_MAX {
        let Some(at) = rest.find('$') else { break };
        if let Some(before) = rest[..at].strip_suffix('\\') {
            out.push_str(before);
            out.push('$');
            rest = rest[at + 1..].to_owned();
            continue;
        }
        let behind = &rest[at + 1..];
        let name = behind.strip_prefix(['{', '(']).unwrap_or(behind);
        let end = name.find(['}', ')', '/']).unwrap_or(name.len());
        let value = variables.get(&name[..end]).cloned().or_else(|| files.variable(&name[..end]));
        let after = name[end..].strip_prefix(['}', ')']).unwrap_or(&name[end..]);
        rest = format!("{}{}{after}", &rest[..at], value.unwrap_or_default());
    }
    out + &rest
}

/// Applies a setting; returns false if it is unknown and may be a variable.
fn apply(config: &mut Config, key: &str, value: &str) -> Result<bool, Ending> {
    let key = key.to_ascii_lowercase();
    Ok(apply_switch(config, &key, value)
        || apply_number(config, &key, value)
        || apply_text(config, &key, value)?)
}

fn apply_switch(config: &mut Config, key: &str, value: &str) -> bool {
    let begins =
        |word: &str| value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let on = begins("true");
    match key {
        "verbose" => config.verbose = on,
        "color" => config.color = on || begins("on"),
        "quiet" => config.quiet = on,
        "debug" => config.debug = on,
        "json_output" => config.json = on,
        "csv" => config.csv = on,
        "timestamp" => config.timestamp = on,
        "fullurl" => config.full_url = on,
        "display-id" => config.display_id = on,
        "show-logfile" => config.show_logfile = on,
        "logging" => config.logging = on,
        "gmethod" => config.get_by_head = Some(!value.eq_ignore_ascii_case("GET")),
        "parser" => config.parser = on,
        "protocol" => config.http11 = begins("HTTP/1.1"),
        "chunked" => config.chunked = on,
        "cache" => config.cache = on,
        "connection" => config.keep_alive = begins("keep-alive"),
        "expire-session" => config.expire_session = on,
        "cookies" => config.cookies = on,
        "internet" => config.internet = on,
        "benchmark" => config.benchmark = on,
        "url-escaping" => config.url_escaping = on,
        "unique" => config.unique = on,
        "follow-location" => config.follow = on,
        "zero-data-ok" => config.zero_data_ok = on,
        // nothing turns in the original either
        "spinner" => {}
        _ => return false,
    }
    true
}

fn apply_number(config: &mut Config, key: &str, value: &str) -> bool {
    match key {
        "limit" => config.limit = atoi(value),
        "concurrent" => config.users = atoi(value),
        "time" => config.seconds = seconds(value),
        "reps" => config.reps = reps(value),
        "delay" => config.delay = number(value),
        "timeout" => config.timeout = atoi(value),
        "failures" => config.failures = atoi(value),
        "attempts" => config.attempts = atoi(value),
        "ssl-timeout" => config.ssl_timeout = Some(atoi(value)),
        "proxy-port" => config.proxy_port = atoi(value),
        _ => return false,
    }
    true
}

fn apply_text(config: &mut Config, key: &str, value: &str) -> Result<bool, Ending> {
    let text = value.to_owned();
    match key {
        "logfile" => config.logfile = text,
        "file" => config.file = text,
        "url" => config.url = Some(text),
        "user-agent" => config.user_agent = text,
        "accept-encoding" if text.is_empty() => config.accept_encoding = "*".to_owned(),
        "accept-encoding" => config.accept_encoding = text,
        "header" => add_header(config, value)?,
        "nofollow" => config.no_follow.push(text),
        "login" => config.logins.push(Login::parse(value)),
        "login-url" => config.login_urls.push(text),
        "auth-url" => config.auth_urls.push(text),
        "proxy-login" => config.proxy_logins.push(Login::parse(value)),
        "proxy-host" => config.proxy_host = Some(text).filter(|host| !host.is_empty()),
        "ssl-cert" => config.ssl_cert = Some(text),
        "ssl-key" => config.ssl_key = Some(text),
        "ssl-ciphers" => config.ssl_ciphers = Some(text),
        // for FTP, which is refused by its URL
        "ftp-login" | "username" | "password" => {}
        _ => return Ok(false),
    }
    Ok(true)
}

/// Adds a header line from the user.
pub(super) fn add_header(config: &mut Config, line: &str) -> Result<(), Ending> {
    if !line.contains(':') {
        return Err(Ending::error(fatal("no ':' in http-header"), 1));
    }
    if line.len() + config.headers.len() + 3 > HEADERS_MAX {
        return Err(Ending::error(fatal("header is too large"), 1));
    }
    if line.contains(['\r', '\n', '\0']) {
        return Err(Ending::error(fatal("a header is one line, without CR or LF"), 1));
    }
    config.headers.push_str(line);
    config.headers.push_str("\r\n");
    Ok(())
}

/// Parses `90s`, `5M` or `1h`; a number without a unit is in minutes. Digits after a point are
/// ignored, as in siege: `2.5S` is two seconds.
pub(super) fn seconds(text: &str) -> i32 {
    let count = atoi(text).max(0);
    let unit = text.trim().chars().find(|sign| sign.is_ascii_alphabetic());
    count.saturating_mul(match unit.map(|sign| sign.to_ascii_lowercase()) {
        Some('s') => 1,
        Some('h') => 3_600,
        _ => 60,
    })
}

pub(super) fn reps(text: &str) -> Reps {
    if text.eq_ignore_ascii_case("once") {
        return Reps::Once;
    }
    Reps::Pages(u32::try_from(atoi(text)).unwrap_or(0))
}

/// Parses like C's `atof` for ordinary numbers; never negative, and 0 without a number.
pub(super) fn number(text: &str) -> f64 {
    crate::httperf::decimal(text).map_or(0.0, |(number, _)| number.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Files for Nothing {
        fn read(&self, _: &str) -> Result<Vec<u8>, crate::SystemError> {
            Err(crate::SystemError { number: 2, text: "No such file or directory".into() })
        }

        fn variable(&self, name: &str) -> Option<String> {
            (name == "HOME").then(|| "/home/jo".to_owned())
        }
    }

    #[test]
    fn variables_of_the_file_precede_the_environment() {
        let variables: BTreeMap<String, String> =
            [("HOST", "h:80"), ("LOOP", "$(LOOP)")].map(|(a, b)| (a.into(), b.into())).into();
        for (text, wanted) in [
            ("http://$(HOST)/a", "http://h:80/a"),
            ("${HOST}/$HOST/x", "h:80/h:80/x"),
            ("$HOME/log", "/home/jo/log"),
            ("$(NONE)x", "x"),
            (r"a\$5", "a$5"),
        ] {
            assert_eq!(evaluated(text, &variables, &Nothing), wanted);
        }
        assert_eq!(evaluated("$(LOOP)", &variables, &Nothing), "$(LOOP)");
    }

    #[test]
    fn a_home_without_a_file_means_sieges_defaults() {
        let config = load(None, &Nothing).expect("the shipped text is readable");
        assert_eq!(config.rc, "/home/jo/.siege/siege.conf");
        assert!(config.verbose && config.json && config.parser && config.http11);
        assert_eq!((config.users, config.limit, config.no_follow.len()), (25, 255, 4));
        let lost = load(Some("/nowhere"), &Nothing).unwrap_err();
        assert_eq!(lost.code, 1);
        assert!(lost.err.contains("could not open /nowhere\n"), "{}", lost.err);
    }

    #[test]
    fn lines_are_split_at_blanks_and_signs() {
        assert_eq!(split("delay = 1.5"), ("delay", "1.5"));
        assert_eq!(split("proxy-login: jeff:secret"), ("proxy-login", "jeff:secret"));
        assert_eq!(split("alone"), ("alone", ""));
    }

    #[test]
    fn times_have_units() {
        let read = ["90s", "5M", "2h", "7", "5x", "abc", "-3", "99999999h"].map(seconds);
        assert_eq!(read, [90, 300, 7_200, 420, 300, 0, 0, i32::MAX]);
        let delays = ["1.5", "x", "-2", ".25", "1e1", "2E-1s", "1.2.3", "3e", "1e999"];
        let read = delays.map(|text| (number(text) * 100.0).round() as i64);
        assert_eq!(read, [150, 0, 0, 25, 1_000, 20, 120, 300, 0]);
    }
}
