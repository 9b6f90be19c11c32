//! URLs as typed: on the command line, and in lists.

use crate::{Auth, ResolveRule, TargetPlan, rules};
use percent_encoding::percent_decode_str;
use units::{ParseError, quoted};
use url::{Host, Url};

/// Maximum number of lines in a list.
pub(crate) const LINES_MAX: usize = 1_000_000;
/// Maximum size of a URL in bytes; servers accept far less.
pub(crate) const URL_BYTES_MAX: usize = 64 * 1024;
/// Highest weight of a line.
pub(crate) const WEIGHT_MAX: f64 = 1e9;

/// Content of a URL: destination, and a login if present (`http://user:password@host/`).
#[derive(Clone, Debug, PartialEq)]
pub struct Location {
    /// Absolute `http` or `https` URL without login and fragment.
    pub url: Url,
    pub auth: Option<Auth>,
}

/// Parses `http://host/path`, `https://…`, or `host[:port][/path]`, which means http. IPv6
/// addresses need brackets unless the text is only the address.
///
/// # Errors
/// Fails if the URL is malformed, or has another scheme, no host or port 0.
pub fn parse_url(text: &str) -> Result<Location, ParseError> {
    parse_with(text, HTTP)
}

/// Parses an HTTP URL without a login.
///
/// # Errors
/// Fails like [`parse_url`], and for a URL with a login.
pub(crate) fn parse_service_url(text: &str) -> Result<Url, ParseError> {
    let Location { url, auth } = parse_url(text)?;
    match auth {
        None => Ok(url),
        Some(_) => Err(bad_url(text, "it contains a login, for which there are separate options")),
    }
}

/// Parses like [`parse_url`], but accepts `ws` and `wss` too.
///
/// # Errors
/// Fails like [`parse_url`].
pub fn parse_target_url(text: &str) -> Result<Location, ParseError> {
    parse_with(text, TARGETS)
}

/// Schemes of URLs for HTTP requests.
const HTTP: &[&str] = &["http", "https"];
/// Schemes of URLs that a load may use.
const TARGETS: &[&str] = &["http", "https", "ws", "wss"];

fn parse_with(text: &str, schemes: &[&str]) -> Result<Location, ParseError> {
    let text = text.trim();
    if without_zone(text).is_some() {
        let why = "it has an IPv6 zone, which only the URL of the command line can have; give --resolve \
                   '[ADDRESS]:PORT:ADDRESS%ZONE' and leave the zone out here";
        return Err(bad_url(text, why));
    }
    split_location(read_url(text, schemes)?).map_err(|why| bad_url(text, &why))
}

/// Parses like [`parse_url`], but the address may have a zone, `http://[fe80::1%eth0]/` or
/// `%25eth0` (RFC 9844). The URL and the Host field omit it; the rule has the address to connect
/// to.
///
/// # Errors
/// Fails like [`parse_url`], and for a zone that no interface can have.
pub fn parse_zoned_url(text: &str) -> Result<(Location, Option<ResolveRule>), ParseError> {
    let text = text.trim();
    let Some((bare, zone)) = without_zone(text) else { return Ok((parse_target_url(text)?, None)) };
    if let Some(why) = rules::zone_fault(&zone) {
        return Err(bad_url(
            text,
            &format!("its IPv6 zone {} cannot be used: {why}", quoted(&zone)),
        ));
    }
    let location = parse_target_url(&bare)
        .map_err(|_| bad_url(text, "its zone does not follow an IPv6 address"))?;
    let Some(Host::Ipv6(address)) = location.url.host() else {
        return Err(bad_url(text, "its zone does not follow an IPv6 address"));
    };
    let (host, port) = (format!("[{address}]"), location.url.port_or_known_default().unwrap_or(80));
    let rule = ResolveRule { host, port, address: address.into(), zone: Some(zone) };
    Ok((location, Some(rule)))
}

/// Returns the text without the zone of the address in brackets, and the zone.
fn without_zone(text: &str) -> Option<(String, String)> {
    let from = text.find("://").map_or(0, |at| at + 3);
    let end = text[from..].find(['/', '?', '#']).map_or(text.len(), |at| from + at);
    let open = from + text[from..end].rfind('[')?;
    let close = open + text[open..end].find(']')?;
    let (address, zone) = text[open..close].split_once('%')?;
    let zone = zone.strip_prefix("25").filter(|zone| !zone.is_empty()).unwrap_or(zone);
    Some((format!("{}{address}{}", &text[..open], &text[close..]), zone.to_owned()))
}

/// Parses `http://[user:password@]host:port` or `host:port` of a proxy; the login stays in the URL.
///
/// # Errors
/// Fails like [`parse_url`], for a scheme other than http, and for a path.
pub fn parse_proxy(text: &str) -> Result<Url, ParseError> {
    let text = text.trim();
    let bad = |why: &str| {
        ParseError(format!(
            "{} is not a proxy: {why}; write {PROXY}",
            quoted_without_password(text)
        ))
    };
    let mut url = read_url(text, HTTP)?;
    split_location(url.clone()).map_err(|why| bad(&why))?;
    if url.scheme() != "http" {
        return Err(bad(
            "a proxy is contacted over plain http (https targets are tunneled through it)",
        ));
    }
    if url.path() != "/" || url.query().is_some() {
        return Err(bad("it has a path"));
    }
    url.set_fragment(None);
    Ok(url)
}

fn read_url(text: &str, schemes: &[&str]) -> Result<Url, ParseError> {
    let bad = |why: &str| bad_url(text, why);
    if let Some(what) = file_fault(text) {
        return Err(ParseError(format!("{} is {what}", quoted(text))));
    }
    // a scheme without its colon, which would be looked up as a name
    if let Some((scheme, rest)) = text.split_once("//")
        && matches!(scheme, "http" | "https")
    {
        return Err(bad(&format!("there is no colon after {scheme}, as in {scheme}://{rest}")));
    }
    if text.starts_with("locustfile") && text.ends_with(".py") {
        let why = "is a script of Locust, which is not supported; write the load as a plan (.toml)";
        return Err(ParseError(format!("{} {why}", quoted(text))));
    }
    if let Some(why) = character_fault(text) {
        return Err(bad(why));
    }
    let parsed = match scheme_of(text) {
        Some(scheme) if !schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known)) => {
            let why = match schemes.len() {
                2 => format!("the scheme {} is neither http nor https", quoted(scheme)),
                _ => format!(
                    "the scheme {} is not http, https, ws, wss, grpc or grpcs",
                    quoted(scheme)
                ),
            };
            return Err(bad(&why));
        }
        // browsers would treat the first part of the path as the host
        Some(scheme) if text[scheme.len() + 3..].starts_with(['/', '\\']) => {
            return Err(bad("the host is missing"));
        }
        Some(_) => Url::parse(text),
        None if text.starts_with(['/', '?', '#', '.']) => return Err(bad("the host is missing")),
        None if text.parse::<std::net::Ipv6Addr>().is_ok() => {
            Url::parse(&format!("http://[{text}]"))
        }
        None => Url::parse(&format!("http://{text}")),
    };
    parsed.map_err(|error| match bare_ipv6(text) {
        Some(url) => bad(&format!("an IPv6 address needs brackets, as in {url}")),
        None => bad(&error.to_string()),
    })
}

/// Returns the kind of a text that names a file instead of a host, by its extension, and how to use
/// such a file. No top-level domain equals one of these extensions.
fn file_fault(text: &str) -> Option<&'static str> {
    let local = ["./", "../", "/", "~/"].iter().any(|start| text.starts_with(start));
    if text.contains("://") || (text.contains(['/', ':']) && !local) {
        return None;
    }
    let (_, ending) = text.rsplit('/').next()?.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "js" | "mjs" | "cjs" | "ts" => {
            "a script in JavaScript; run a script of k6 with loadstone k6 run FILE, or write the load \
             as a plan (.toml)"
        }
        "har" => {
            "a recording; convert it into a plan with loadstone workload import FILE.har -o plan.toml"
        }
        "yaml" | "yml" | "json" => {
            "not a URL; plans are TOML files (.toml), and a Postman collection, an Artillery script, an \
             OpenAPI description or a HAR file becomes one by loadstone workload import FILE -o plan.toml"
        }
        "jmx" => {
            "a test plan of JMeter; convert it into a plan with loadstone workload import FILE.jmx -o \
             plan.toml"
        }
        "lua" => "a script; write --script FILE.lua and the URL of the server",
        "log" => {
            "a log; convert it into a plan with loadstone workload import FILE.log URL -o plan.toml"
        }
        "txt" | "csv" => "not a URL; a list of URLs, one a line, is given as --urls FILE",
        "feature" | "scala" | "java" | "rb" => {
            "not a URL; scripts of other tools are not supported: write the load as a plan (.toml)"
        }
        "toml" => "a plan; loadstone run, ramp, compare and check take plans",
        _ => return None,
    })
}

/// Returns the probably intended URL for an IPv6 address without brackets: `http://[::1]:8443/`.
fn bare_ipv6(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, after) = rest.split_at(end);
    let is_address = |text: &str| text.parse::<std::net::Ipv6Addr>().is_ok();
    if host.contains('[') || !host.contains("::") && host.matches(':').count() < 7 {
        return None;
    }
    match host.rsplit_once(':') {
        Some((address, port)) if is_address(address) && port.parse::<u16>().is_ok() => {
            Some(format!("{scheme}://[{address}]:{port}{after}"))
        }
        _ => is_address(host).then(|| format!("{scheme}://[{host}]{after}")),
    }
}

fn bad_url(text: &str, why: &str) -> ParseError {
    ParseError(format!("{} is not a URL: {why}; write {EXAMPLE}", quoted_without_password(text)))
}

/// Parses a list with one URL per line, `[METHOD] URL [weight=N] [body=TEXT]`. Empty lines and
/// lines that begin with `#` are ignored; the body is the rest of its line. With a base, lines that
/// begin with `/`, `?` or `.` are resolved against it.
///
/// # Errors
/// Fails at the first invalid line, by its number, and for a list without any URL or with more than
/// a million lines.
pub fn parse_url_list(text: &str, base: Option<&Url>) -> Result<Vec<TargetPlan>, ParseError> {
    let mut targets = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        if index >= LINES_MAX {
            return Err(ParseError(format!("the URL list has more than {LINES_MAX} lines")));
        }
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let target = parse_line(line, base)
            .map_err(|error| ParseError(format!("line {} of the URL list: {error}", index + 1)))?;
        targets.push(target);
    }
    if targets.is_empty() {
        return Err(ParseError("the URL list is empty: give a line per URL".to_owned()));
    }
    Ok(targets)
}

fn parse_line(line: &str, base: Option<&Url>) -> Result<TargetPlan, ParseError> {
    let (method, rest) = take_method(line);
    let method = method.map(rules::parse_method).transpose()?;
    let (address, mut rest) = take_word(rest);
    let mut target = TargetPlan { method, ..TargetPlan::new(parse_address(address, base)?) };
    let mut weighted = false;
    while !rest.is_empty() {
        if let Some(body) = rest.strip_prefix("body=") {
            target.body = Some(body.as_bytes().to_vec());
            break;
        }
        let (word, after) = take_word(rest);
        match word.strip_prefix("weight=") {
            Some(_) if weighted => return Err(ParseError("it has two weights".to_owned())),
            Some(number) => target.weight = parse_weight(number)?,
            None => {
                return Err(ParseError(format!(
                    "{} is not supported; the URL may be followed by weight=N and body=TEXT",
                    quoted(word)
                )));
            }
        }
        weighted = true;
        rest = after;
    }
    Ok(target)
}

/// Takes a first word in capitals as the method if a URL follows: `POST /form`.
fn take_method(line: &str) -> (Option<&str>, &str) {
    let (word, rest) = take_word(line);
    let capitals = word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    let url_follows =
        !rest.is_empty() && !rest.starts_with("weight=") && !rest.starts_with("body=");
    if capitals && url_follows { (Some(word), rest) } else { (None, line) }
}

fn take_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (word, rest.trim_start())
}

fn parse_address(text: &str, base: Option<&Url>) -> Result<Url, ParseError> {
    let bad = |why: &str| ParseError(format!("{} {why}", quoted_without_password(text)));
    let location = match (text.starts_with(['/', '?', '.']), base) {
        (false, _) => parse_url(text)?,
        (true, None) => {
            return Err(bad("has no host; write it in full, or give a base URL with --urls"));
        }
        (true, Some(base)) => {
            if let Some(why) = character_fault(text) {
                return Err(bad(&format!("is not a URL: {why}")));
            }
            let joined = base.join(text).map_err(|error| bad(&format!("is not a URL: {error}")))?;
            split_location(joined).map_err(|why| bad(&format!("is not a URL: {why}")))?
        }
    };
    if location.auth.is_some() {
        return Err(bad("contains a login; give --user NAME:PASSWORD for the whole list instead"));
    }
    Ok(location.url)
}

pub(crate) fn parse_weight(text: &str) -> Result<f64, ParseError> {
    match text.parse::<f64>() {
        Ok(weight) if weight > 0.0 && weight <= WEIGHT_MAX => Ok(weight),
        _ => Err(ParseError(format!(
            "{} is not a weight: it must be a number above 0 and up to {WEIGHT_MAX}",
            quoted(text)
        ))),
    }
}

/// Quotes like [`quoted`], without the password of a login.
fn quoted_without_password(text: &str) -> String {
    let start = text.find("://").map_or(0, |at| at + 3);
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at);
    let login = text[start..end].rfind('@').map(|at| &text[start..start + at]);
    match login.and_then(|login| login.split_once(':')) {
        Some((user, _)) => {
            let rest = &text[start + login.map_or(0, str::len)..];
            quoted(&format!("{}{user}:***{rest}", &text[..start]))
        }
        None => quoted(text),
    }
}

/// Returns the text before `://`, if it can be a scheme (RFC 3986 §3.1).
fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let mark = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    scheme.bytes().all(mark).then_some(scheme)
}

/// Rejects characters that the URL library would change silently: it removes tabs and line ends; a
/// space becomes %20.
fn character_fault(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("it is empty");
    }
    if text.len() > URL_BYTES_MAX {
        return Some("it is longer than 64 KiB");
    }
    if text.chars().any(char::is_control) {
        return Some("it contains a control character");
    }
    text.contains(' ').then_some("it contains a space (write %20)")
}

fn split_location(mut url: Url) -> Result<Location, String> {
    if url.host_str().is_none_or(str::is_empty) {
        return Err("the host is missing".to_owned());
    }
    if url.port() == Some(0) {
        return Err("port 0 cannot be connected to".to_owned());
    }
    url.set_fragment(None);
    let auth = match (url.username(), url.password()) {
        ("", None) => None,
        (user, password) => {
            Some(Auth::Basic { user: decoded(user)?, password: decoded(password.unwrap_or(""))? })
        }
    };
    // an http URL with a host always accepts both
    let cleared = url.set_username("").and_then(|()| url.set_password(None));
    cleared.map_err(|()| "its login cannot be removed".to_owned())?;
    Ok(Location { url, auth })
}

fn decoded(text: &str) -> Result<String, String> {
    let text = percent_decode_str(text).decode_utf8();
    let text = text.map_err(|_| "its login is not UTF-8".to_owned())?;
    if text.chars().any(char::is_control) {
        return Err("a control character is in its login".to_owned());
    }
    Ok(text.into_owned())
}

const EXAMPLE: &str = "http://host:port/path";
const PROXY: &str = "http://host:port";

#[cfg(test)]
mod tests;
