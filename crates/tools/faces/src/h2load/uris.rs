//! URIs: consecutive ones on the command line, one per line in a file, or after their instants in a
//! timing script.

use super::options::Options;
use crate::{Ending, Files};
use units::Nanos;

/// Destination of all requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) secure: bool,
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Base {
    pub(super) fn default_port(&self) -> u16 {
        if self.secure { 443 } else { 80 }
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}

/// Settings given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AskedUri {
    pub(super) base: Base,
    /// Paths with their queries.
    pub(super) paths: Vec<String>,
    /// Due time of each request after its client's start; empty without a timing script.
    pub(super) at: Vec<Nanos>,
    /// Warnings on standard error.
    pub(super) complaints: String,
}

/// Maximum number of requests of a script or a list.
const LINES_MAX: usize = 1_000_000;

fn wrong(text: impl std::fmt::Display) -> Ending {
    Ending::error(format!("{text}\n"), 1)
}

/// # Errors
/// Fails for files that cannot be read, lines without an instant, and invalid URIs.
pub(super) fn read(options: &Options, files: &dyn Files) -> Result<AskedUri, Ending> {
    let (mut at, mut complaints) = (Vec::new(), String::new());
    let uris = match &options.input {
        None => options.uris.clone(),
        Some(path) => {
            let bytes = if path == "-" { files.read_input() } else { files.read(path) };
            let bytes = bytes.map_err(|_| wrong(format!("cannot read input file: {path}")))?;
            let text = String::from_utf8_lossy(&bytes);
            if text.lines().nth(LINES_MAX).is_some() {
                return Err(wrong(format!(
                    "{path}: it has more than {LINES_MAX} lines; give fewer"
                )));
            }
            match options.timing {
                true => script(&text, &mut at, &mut complaints)?,
                false => text.lines().map(str::to_owned).collect(),
            }
        }
    };
    let first = uris.first().ok_or_else(|| wrong("no URI available"))?;
    let named = options.base.as_ref().unwrap_or(first);
    let base = base(named).ok_or_else(|| wrong(format!("invalid URI: {first}")))?;
    let path = |uri: &String| {
        let parts = parts(uri).ok_or_else(|| wrong(format!("invalid URI: {uri}")))?;
        Ok(parts.path)
    };
    let paths = uris.iter().map(path).collect::<Result<Vec<String>, Ending>>()?;
    Ok(AskedUri { base, paths, at, complaints })
}

/// Returns the scheme, host and port of a URI; the port is the default of the scheme if absent.
pub(super) fn base(uri: &str) -> Option<Base> {
    let parts = parts(uri)?;
    let (scheme, host) = (parts.scheme?, parts.host?);
    let secure = match scheme.to_ascii_lowercase().as_str() {
        "https" => true,
        "http" => false,
        _ => return None,
    };
    let port = parts.port.unwrap_or(if secure { 443 } else { 80 });
    Some(Base { secure, host, port })
}

struct UriParts {
    scheme: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    path: String,
}

/// Splits a URI, as strictly as the HTTP parser that h2load uses.
fn parts(uri: &str) -> Option<UriParts> {
    let odd = |byte: u8| byte <= b' ' || byte == 0x7f;
    if uri.is_empty() || uri.bytes().any(odd) {
        return None;
    }
    let (scheme, authority, rest) = if uri.starts_with('/') {
        (None, None, uri)
    } else {
        let (scheme, rest) = uri.split_once("://")?;
        if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return None;
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        (Some(scheme.to_owned()), Some(&rest[..end]), &rest[end..])
    };
    let (host, port) = match authority {
        None => (None, None),
        Some(text) => {
            let (host, port) = authority_parts(text)?;
            (Some(host), port)
        }
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let path = match rest {
        "" => "/".to_owned(),
        query if query.starts_with('?') => format!("/{query}"),
        path => path.to_owned(),
    };
    Some(UriParts { scheme, host, port, path })
}

fn authority_parts(text: &str) -> Option<(String, Option<u16>)> {
    let text = text.rsplit_once('@').map_or(text, |(_, host)| host);
    let (host, rest) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            let good = |byte: u8| byte.is_ascii_hexdigit() || b":.%".contains(&byte);
            if host.is_empty() || !host.bytes().all(good) {
                return None;
            }
            (host, rest)
        }
        None => {
            let end = text.find(':').unwrap_or(text.len());
            let good = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            if end == 0 || !text[..end].bytes().all(good) {
                return None;
            }
            text.split_at(end)
        }
    };
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        None => return None,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port.parse().ok()?),
        Some(_) => return None,
    };
    Some((host.to_owned(), port))
}

/// Parses lines of an instant in milliseconds, a tab and a URI: appends the instants to `at`, and
/// returns the URIs.
fn script(text: &str, at: &mut Vec<Nanos>, complaints: &mut String) -> Result<Vec<String>, Ending> {
    let mut uris = Vec::new();
    for (row, line) in text.lines().enumerate() {
        let number = row + 1;
        if line.is_empty() {
            putln!(complaints, "Empty line detected at line {number}. Ignoring and continuing.");
            continue;
        }
        let Some((time, uri)) = line.split_once('\t') else {
            return Err(wrong(format!(
                "Invalid line format detected, no tab character at line {number}. \n\t{line}"
            )));
        };
        let millis = leading_number(time).filter(|millis| *millis >= 0.0 && millis.is_finite());
        let Some(millis) = millis else {
            return Err(wrong(format!("Time value error at line {number}. \n\tvalue = {time}")));
        };
        let nanos = (millis * 1e6).min(units::DURATION_MAX.0 as f64);
        let instant = Nanos(nanos.round() as u64);
        if at.last().is_some_and(|last| *last > instant) {
            return Err(wrong(format!(
                "Time value error at line {number}. \n\tvalue = {time}, which is before the line \
                 above; put the lines in the order of their times"
            )));
        }
        at.push(instant);
        uris.push(uri.to_owned());
    }
    Ok(uris)
}

/// Parses the longest beginning that is a number, as `strtod` does.
fn leading_number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c)));
    let text = &text[..end.unwrap_or(text.len())];
    (1..=text.len()).rev().find_map(|end| text.get(..end)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_parsed_as_by_h2load() {
        let shown = |uri: &str| match (base(uri), parts(uri)) {
            (Some(base), Some(parts)) => {
                format!("{} {} {} {}", base.scheme(), base.host, base.port, parts.path)
            }
            (_, Some(parts)) => format!("path {}", parts.path),
            _ => "invalid".to_owned(),
        };
        for (uri, wanted) in [
            ("http://h", "http h 80 /"),
            ("https://h:8443/a?b#c", "https h 8443 /a?b"),
            ("http://u:p@h?q", "http h 80 /?q"),
            ("HTTPS://[::1]:1/", "https ::1 1 /"),
            ("/a/b?c", "path /a/b?c"),
            ("foo", "invalid"),
            ("h:80/", "invalid"),
            ("http://", "invalid"),
            ("http://h:99999/", "invalid"),
            ("http://h:x/", "invalid"),
            ("http://h/a b", "invalid"),
            ("", "invalid"),
        ] {
            assert_eq!(shown(uri), wanted, "{uri}");
        }
    }

    #[test]
    fn a_script_has_an_instant_before_each_uri() {
        let (mut at, mut complaints) = (Vec::new(), String::new());
        let uris = script("0\thttp://h/a\n\n1.5 x\t/b\n", &mut at, &mut complaints).unwrap();
        assert_eq!(uris, ["http://h/a", "/b"]);
        assert_eq!(at, [Nanos::ZERO, Nanos(1_500_000)]);
        assert_eq!(complaints, "Empty line detected at line 2. Ignoring and continuing.\n");
        for (text, output) in [
            ("1 /a", "no tab character at line 1"),
            ("x\t/a", "Time value error at line 1"),
            ("-1\t/a", "Time value error at line 1"),
            ("2\t/a\n1\t/b", "Time value error at line 2"),
        ] {
            let ending = script(text, &mut Vec::new(), &mut String::new()).unwrap_err();
            assert!(ending.err.contains(output), "{text}: {}", ending.err);
        }
    }
}
