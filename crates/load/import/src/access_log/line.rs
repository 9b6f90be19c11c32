//! One line of an access log: Common Log Format, its combined form, or a JSON object as Caddy, nginx
//! and Apache write them.

use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::FormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use units::Nanos;

/// Content of a log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Address or name of the client, and the user agent if logged: clients that share an address
    /// may be several users.
    pub client: String,
    /// Time since 1970.
    pub at: Nanos,
    /// The log has fractions of a second.
    pub fine: bool,
    pub method: String,
    /// Path and query as requested.
    pub target: String,
    pub status: u16,
    /// Size of the body that was sent.
    pub bytes: u64,
}

/// Reason why a line is not a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError(pub String);

/// 10/Oct/2000:13:55:36 -0700
const COMMON_TIME: &[FormatItem<'_>] = format_description!(
    "[day]/[month repr:short]/[year]:[hour]:[minute]:[second] \
     [offset_hour sign:mandatory][offset_minute]"
);

/// Returns a line without leading marks: a byte order mark, and the NUL bytes that a file system
/// leaves where a log was not written to disk before a crash, or was truncated while open.
pub(crate) fn without_marks(line: &str) -> &str {
    line.trim_start_matches(['\u{feff}', '\0'])
}

/// Parses one line of an access log.
///
/// # Errors
/// Fails if a part is missing or malformed.
pub fn parse_line(line: &str) -> Result<Entry, LineError> {
    let line = without_marks(line);
    if line.trim_start().starts_with('{') { json(line) } else { common(line) }
}

/// Parses `host ident user [time] "request" status bytes`, optionally followed by `"referer" "user
/// agent"`.
fn common(line: &str) -> Result<Entry, LineError> {
    let wrong = |what: &str| LineError(what.to_owned());
    let (head, rest) = line.split_once('[').ok_or_else(|| wrong("no [time]"))?;
    let (when, rest) = rest.split_once(']').ok_or_else(|| wrong("no [time]"))?;
    let host = head.split_whitespace().next().ok_or_else(|| wrong("no client"))?;
    let mut rest = rest.trim_start();
    let request = quoted(&mut rest).ok_or_else(|| wrong("no \"request\""))?;
    let mut words = rest.split_whitespace();
    let status = words.next().and_then(|word| word.parse().ok());
    let bytes = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let agent = rest.find('"').and_then(|start| {
        let mut rest = &rest[start..];
        quoted(&mut rest)?;
        rest = rest.trim_start();
        quoted(&mut rest)
    });
    let at = OffsetDateTime::parse(when, COMMON_TIME).map_err(|_| wrong("no time in [ ]"))?;
    let (method, target) = request_line(request)?;
    Ok(Entry {
        client: client(host, agent),
        at: since_1970(at)?,
        fine: false,
        method,
        target,
        status: status.ok_or_else(|| wrong("no status"))?,
        bytes,
    })
}

fn client(host: &str, agent: Option<&str>) -> String {
    match agent {
        None | Some("" | "-") => host.to_owned(),
        Some(agent) => format!("{host} {agent}"),
    }
}

/// Splits a quoted string from the beginning of the text. A quote within is written `\"`.
fn quoted<'a>(text: &mut &'a str) -> Option<&'a str> {
    let inner = text.strip_prefix('"')?;
    let mut escaped = false;
    let end = inner.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })?;
    *text = &inner[end + 1..];
    Some(&inner[..end])
}

/// Parses `GET /path HTTP/1.1`, or `GET /path` of HTTP/0.9.
fn request_line(line: &str) -> Result<(String, String), LineError> {
    let wrong = || LineError("no request that can be sent".to_owned());
    let (method, rest) = line.split_once(' ').ok_or_else(wrong)?;
    let is_version = |word: &str| {
        let number = word.strip_prefix("HTTP/").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    match rest.rsplit_once(' ').filter(|(_, word)| is_version(word)) {
        Some((target, _)) => sendable(method, target),
        // without a version the end of the target is unknown
        None if rest.contains(' ') => Err(wrong()),
        None => sendable(method, rest),
    }
}

/// Returns a method and a target as sent: a target in absolute form loses its server, a blank
/// becomes `%20`, and an escape of nginx and Apache (`\xC3`) `%C3`.
fn sendable(method: &str, target: &str) -> Result<(String, String), LineError> {
    let token = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    let path = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            match &rest[end..] {
                path if path.starts_with('/') => path.to_owned(),
                query => format!("/{query}"),
            }
        }
        _ => target.to_owned(),
    };
    let path = if path.contains(['\\', ' ']) { escaped(&path) } else { path };
    let plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if token && path.starts_with('/') && plain {
        return Ok((method.to_owned(), path));
    }
    Err(LineError("no request that can be sent".to_owned()))
}

fn escaped(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len() + 16);
    let mut rest = path;
    while let Some(next) = rest.chars().next() {
        let digits = rest.strip_prefix("\\x").and_then(|digits| digits.get(..2));
        if let Some(digits) = digits.filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            escaped.push('%');
            escaped.push_str(digits);
            rest = &rest[4..];
            continue;
        }
        if next == ' ' {
            escaped.push_str("%20");
        } else {
            escaped.push(next);
        }
        rest = &rest[next.len_utf8()..];
    }
    escaped
}

fn json(line: &str) -> Result<Entry, LineError> {
    let wrong = |what: &str| LineError(what.to_owned());
    let value: Value = serde_json::from_str(line).map_err(|_| wrong("no JSON object"))?;
    let whole = value.as_object().ok_or_else(|| wrong("no JSON object"))?;
    // Caddy nests the request in an object
    let request = whole.get("request").and_then(Value::as_object).unwrap_or(whole);
    let (method, target) = match first(whole, &["request", "request_line"]).and_then(Value::as_str)
    {
        Some(line) => request_line(line)?,
        None => {
            let method = text(request, &["method", "request_method", "verb"]);
            let target = text(request, &["uri", "request_uri", "path", "url"]);
            let both = method.zip(target).ok_or_else(|| wrong("no request"))?;
            sendable(both.0, both.1)?
        }
    };
    let host = text(request, &["remote_ip", "client_ip", "remote_addr", "remote_host", "client"]);
    let host = host.ok_or_else(|| wrong("no client"))?;
    let agent = text(request, &["http_user_agent", "user_agent", "agent"]);
    let headers = request.get("headers").and_then(Value::as_object);
    let listed = headers.and_then(|headers| headers.get("User-Agent")?.get(0)?.as_str());
    let when = first(whole, &["ts", "msec", "time_iso8601", "time_local", "@timestamp", "time"]);
    let (at, fine) = instant(when.ok_or_else(|| wrong("no time"))?)?;
    let number = |names: &[&str]| first(whole, names).and_then(number);
    let status = number(&["status", "status_code"]).ok_or_else(|| wrong("no status"))?;
    Ok(Entry {
        client: client(host, agent.or(listed)),
        at,
        fine,
        method,
        target,
        status: u16::try_from(status).map_err(|_| wrong("no status"))?,
        bytes: number(&["size", "body_bytes_sent", "bytes_sent", "bytes"]).unwrap_or(0),
    })
}

fn first<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| object.get(*name))
}

fn text<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    first(object, names).and_then(Value::as_str)
}

/// Returns the value of a number or of a numeric text: nginx quotes all values.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Parses seconds since 1970, RFC 3339, or the time of the common format.
fn instant(value: &Value) -> Result<(Nanos, bool), LineError> {
    let wrong = || LineError("no time".to_owned());
    let seconds = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    if let Some(seconds) = seconds {
        let known = (0.0..=1e10).contains(&seconds);
        let at = known.then(|| Nanos::from_secs_f64(seconds)).ok_or_else(wrong)?;
        return Ok((at, seconds.fract() != 0.0));
    }
    let text = value.as_str().ok_or_else(wrong)?;
    let at = OffsetDateTime::parse(text, &Rfc3339)
        .or_else(|_| OffsetDateTime::parse(text, COMMON_TIME))
        .map_err(|_| wrong())?;
    Ok((since_1970(at)?, at.nanosecond() != 0))
}

fn since_1970(at: OffsetDateTime) -> Result<Nanos, LineError> {
    let nanos = u64::try_from(at.unix_timestamp_nanos());
    nanos.map(Nanos).map_err(|_| LineError("no time after 1970".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COMBINED: &str = "192.0.2.7 - fred [10/Oct/2000:13:55:36 -0700] \
        \"GET /a?q=\\\"x HTTP/1.0\" 200 2326 \"http://h/\\\"start\" \"Mozilla/4.08 [en]\"";

    fn entry(line: &str) -> Entry {
        parse_line(line).unwrap()
    }

    #[test]
    fn the_formats_of_the_servers_are_read() {
        let common = entry("h - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\" 304 -");
        assert_eq!(common.client, "h");
        assert_eq!(common.at, Nanos::from_secs(971_211_336));
        assert_eq!((common.method.as_str(), common.target.as_str()), ("GET", "/a"));
        assert_eq!((common.status, common.bytes, common.fine), (304, 0, false));

        let combined = entry(&COMBINED.replace("\\\"x", "x"));
        assert_eq!(combined.client, "192.0.2.7 Mozilla/4.08 [en]");
        assert_eq!((combined.target.as_str(), combined.bytes), ("/a?q=x", 2326));

        let caddy = entry(
            r#"{"level":"info","ts":1646861401.5,"logger":"http.log.access","request":{"remote_ip":"192.0.2.7","method":"HEAD","uri":"/b","headers":{"User-Agent":["curl/7"]}},"size":12,"status":200}"#,
        );
        assert_eq!((caddy.client.as_str(), caddy.fine), ("192.0.2.7 curl/7", true));
        assert_eq!((caddy.at, caddy.bytes), (Nanos::from_millis(1_646_861_401_500), 12));
        assert_eq!((caddy.method.as_str(), caddy.target.as_str()), ("HEAD", "/b"));

        let nginx = entry(
            r#"{"time_iso8601":"2022-03-09T21:30:01+00:00","remote_addr":"192.0.2.7","request":"POST http://h:1/c HTTP/1.1","status":"201","body_bytes_sent":"7"}"#,
        );
        assert_eq!((nginx.at, nginx.fine), (Nanos::from_secs(1_646_861_401), false));
        assert_eq!((nginx.method.as_str(), nginx.target.as_str()), ("POST", "/c"));
        assert_eq!((nginx.status, nginx.bytes), (201, 7));

        let bare =
            entry("h - - [10/Oct/2000:13:55:36 -0700] \"GET http://h?to=/hw HTTP/1.1\" 200 1");
        assert_eq!(bare.target, "/?to=/hw");
    }

    #[test]
    fn a_target_is_whole_and_its_blanks_are_escaped() {
        let target = |request: &str| {
            entry(&format!("h - - [10/Oct/2000:13:55:36 -0700] \"{request}\" 200 1")).target
        };
        for (request, expected) in [
            ("GET /a b c.html HTTP/1.1", "/a%20b%20c.html"),
            ("GET /a  HTTP/1.1 HTTP/2.0", "/a%20%20HTTP/1.1"),
            ("GET /a\\xC3\\xA9\\x22?q=\\x5C HTTP/1.1", "/a%C3%A9%22?q=%5C"),
            ("GET http://h/a b HTTP/1.1", "/a%20b"),
            ("GET /a", "/a"),
        ] {
            assert_eq!(target(request), expected, "{request}");
        }
        let caddy =
            r#"{"ts":1,"request":{"remote_ip":"h","method":"GET","uri":"/b c"},"status":200}"#;
        assert_eq!(entry(caddy).target, "/b%20c");
    }

    #[test]
    fn marks_before_a_line_do_not_belong_to_the_client() {
        let line = "h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1";
        for marks in ["\u{feff}", "\0\0\0", "\0\u{feff}"] {
            assert_eq!(entry(&format!("{marks}{line}")), entry(line));
        }
        let json = r#"{"ts":1,"request":"GET / HTTP/1.1","remote_addr":"h","status":200}"#;
        assert_eq!(entry(&format!("\u{feff}{json}")), entry(json));
    }

    #[test]
    fn an_invalid_entry_names_the_missing_field() {
        for (line, why) in [
            ("", "no [time]"),
            ("h - - [x] \"GET / HTTP/1.0\" 200 1", "no time in [ ]"),
            ("h - - [10/Oct/2000:13:55:36 -0700] GET / 200", "no \"request\""),
            ("h - - [10/Oct/2000:13:55:36 -0700] \"\\x16\\x03\" 400 1", "no request that can"),
            ("h - - [10/Oct/2000:13:55:36 -0700] \"GET * HTTP/1.1\" 400 1", "no request that can"),
            (COMBINED, "no request that can"),
            ("h - - [10/Oct/2000:13:55:36 -0700] \"GET /a b\" 200 1", "no request that can"),
            ("h - - [10/Oct/2000:13:55:36 -0700] \"GET /a b HTTP/x\" 200 1", "no request that"),
            ("h - - [10/Oct/2000:13:55:36 -0700] \"GET /a\\xg1 HTTP/1.1\" 200 1", "no request"),
            ("h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" - 1", "no status"),
            ("{\"ts\":1}", "no request"),
            ("{\"ts\":", "no JSON object"),
            (
                "{\"ts\":-1,\"request\":\"GET / HTTP/1.0\",\"remote_addr\":\"h\",\"status\":200}",
                "no time",
            ),
            (
                "{\"ts\":1,\"request\":\"GET / HTTP/1.0\",\"remote_addr\":\"h\",\"status\":70000}",
                "no status",
            ),
        ] {
            let error = parse_line(line).unwrap_err().0;
            assert!(error.starts_with(why), "{line}: {error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_lines_are_handled(line in "\\PC*", cut in 0_usize..200) {
            parse_line(&line).ok();
            let cut = COMBINED.floor_char_boundary(cut);
            parse_line(&COMBINED[..cut]).ok();
            parse_line(&format!("{{{line}")).ok();
        }
    }
}
