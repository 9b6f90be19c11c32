//! A curl command, if curl can send exactly these bytes: it puts Host first, sends fields only as
//! `Name: value`, and one request at a time.

use super::{only_bytes, place};
use crate::torture::send::printf_quoted;
use torture::record::Transcript;

/// Fields that curl adds unless disabled.
const OWN_FIELDS: [&str; 2] = ["User-Agent", "Accept"];

pub(super) fn line(kept: &Transcript) -> Result<String, String> {
    let bytes = only_bytes(kept)?;
    let (host, port) = place(kept)?;
    let request = CurlRequest::parse(&bytes)?;
    let mut words = vec!["curl -g -i".to_owned()];
    words.push(format!("--http{}", request.version));
    match request.method {
        "GET" if request.body.is_empty() => {}
        "HEAD" => words.push("-I".to_owned()),
        method => words.push(format!("-X {method}")),
    }
    words.push(format!("--request-target {}", quoted(request.target)));
    if request.fields.first().is_none_or(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        words.push("-H 'Host:'".to_owned());
    }
    for (name, value) in &request.fields {
        let field = if value.is_empty() { format!("{name};") } else { format!("{name}: {value}") };
        words.push(format!("-H {}", quoted(&field)));
    }
    let has = |name: &str| request.fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    OWN_FIELDS
        .iter()
        .filter(|name| !has(name))
        .for_each(|name| words.push(format!("-H '{name}:'")));
    let mut before = String::new();
    if !request.body.is_empty() {
        for name in ["Content-Type", "Expect"] {
            if !has(name) {
                words.push(format!("-H '{name}:'"));
            }
        }
        before = format!("printf '{}' | ", printf_quoted(request.body));
        words.push("--data-binary @-".to_owned());
    }
    let scheme = if kept.script.tls_name.is_some() { "https" } else { "http" };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    words.push(quoted(&format!("{scheme}://{host}:{port}/")));
    Ok(format!("{before}{}\n", words.join(" ")))
}

struct CurlRequest<'b> {
    method: &'b str,
    target: &'b str,
    version: &'b str,
    fields: Vec<(&'b str, &'b str)>,
    body: &'b [u8],
}

fn no(what: &str) -> String {
    format!("curl cannot send it: {what}; use --as sh")
}

impl<'b> CurlRequest<'b> {
    fn parse(bytes: &'b [u8]) -> Result<CurlRequest<'b>, String> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.ok_or_else(|| no("its head has no end"))?;
        let (head, body) = (&bytes[..end], &bytes[end + 4..]);
        let printable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\r' | b'\n');
        if !head.iter().all(printable) {
            return Err(no("its head has bytes that are not text"));
        }
        let head = std::str::from_utf8(head).map_err(|_| no("its head is not text"))?;
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let parts: Vec<&str> = first.split(' ').collect();
        let [method, target, version] = parts[..] else {
            return Err(no("its first line is not method, target and version"));
        };
        let version = match version {
            "HTTP/1.0" => "1.0",
            "HTTP/1.1" => "1.1",
            _ => return Err(no("its version is neither HTTP/1.0 nor HTTP/1.1")),
        };
        let word = |text: &str| !text.is_empty() && text.bytes().all(token);
        if !word(method) || target.is_empty() || target.contains(['\r', '\n']) {
            return Err(no("it has no valid method or target"));
        }
        let fields = lines.map(field).collect::<Result<Vec<(&str, &str)>, String>>()?;
        let request = CurlRequest { method, target, version, fields, body };
        request.check()?;
        Ok(request)
    }

    /// Checks whether curl leaves it unchanged.
    fn check(&self) -> Result<(), String> {
        let named = |wanted: &'static str| {
            let own = move |(at, (name, _)): (usize, &(&str, &str))| {
                name.eq_ignore_ascii_case(wanted).then_some(at)
            };
            self.fields.iter().enumerate().filter_map(own).collect::<Vec<usize>>()
        };
        if !matches!(named("host")[..], [] | [0]) {
            return Err(no("it has Host twice, or not first"));
        }
        if !named("transfer-encoding").is_empty() {
            return Err(no("curl would encode the body itself"));
        }
        let lengths = named("content-length");
        let right = |at: &usize| self.fields[*at].1.parse() == Ok(self.body.len());
        let stated = matches!(&lengths[..], [at] if right(at));
        if !self.body.is_empty() && !stated {
            return Err(no("its body length differs from Content-Length"));
        }
        if self.method == "HEAD" && !self.body.is_empty() {
            return Err(no("it is a HEAD with a body"));
        }
        Ok(())
    }
}

fn field(line: &str) -> Result<(&str, &str), String> {
    let wrong = || no(&format!("{} is not a field that curl can write", units::quoted(line)));
    let (name, rest) = line.split_once(':').ok_or_else(wrong)?;
    let value = if rest.is_empty() { rest } else { rest.strip_prefix(' ').ok_or_else(wrong)? };
    let plain = !name.is_empty() && name.bytes().all(token);
    let trimmed = value.trim() == value && (rest.is_empty() || !value.is_empty());
    if plain && trimmed && !value.contains(['\r', '\n']) { Ok((name, value)) } else { Err(wrong()) }
}

/// Returns whether the byte may be part of a token (RFC 9110 section 5.6.2).
fn token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns a word in single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
