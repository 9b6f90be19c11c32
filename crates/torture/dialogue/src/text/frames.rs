//! Macros for HTTP/2 frames.

use super::{Values, expanded};
use crate::http2::write::{self, PseudoFields};
use crate::http2::{END_HEADERS, FLAGS, HEADERS, KINDS, PREFACE, RST_STREAM};
use protocol::hpack::Field;
use units::quoted;

/// Appends the expansion of an HTTP/2 macro to `out`. Returns false for other macros.
pub(super) fn expand(
    name: &str,
    argument: &str,
    values: &Values,
    out: &mut Vec<u8>,
) -> Result<bool, String> {
    let bytes = match name {
        "preface" => PREFACE.to_vec(),
        "opening" => write::opening(),
        "ack" => write::settings_ack(),
        "ping" => write::ping(),
        "frame" => frame(argument, None, values)?,
        "framed" => {
            let (length, rest) = argument.split_once(' ').unwrap_or((argument, ""));
            frame(rest, Some(number(length)?), values)?
        }
        "get" => write::request(number(argument)?, &request("GET", values)),
        "begin" => write::frame(HEADERS, END_HEADERS, number(argument)?, &request("POST", values)),
        "streams" => streams(number(argument)?, values, &[]),
        "resets" => streams(number(argument)?, values, &[0, 0, 0, CANCEL]),
        "request" => request(if argument.is_empty() { "GET" } else { argument }, values),
        "field" => field(argument, values, protocol::hpack::literal)?,
        "kept" => field(argument, values, protocol::hpack::kept)?,
        _ => return Ok(false),
    };
    out.extend(bytes);
    Ok(true)
}

/// Returns the header block of a request to the probed page; a POST uses the page that accepts
/// bodies, if given.
pub(super) fn request(method: &str, values: &Values) -> Vec<u8> {
    let post = method == "POST" && !values.post.is_empty();
    let scheme = if values.scheme.is_empty() { "http" } else { &values.scheme };
    let path = if post { &values.post } else { &values.path };
    let asked = PseudoFields { method, scheme, authority: &values.host, path };
    write::request_block(asked, &values.fields)
}

/// Maximum number of requests whose content never arrives, each on its own stream.
const STREAMS_MAX: u32 = 10_000;

/// CANCEL, the code for canceled requests (RFC 9113 section 7).
const CANCEL: u8 = 8;

/// Returns requests on `count` streams.
/// `reset`: the code that resets each of them, if any.
fn streams(count: u32, values: &Values, reset: &[u8]) -> Vec<u8> {
    let block = request("POST", values);
    let one = |number| {
        let mut out = write::frame(HEADERS, END_HEADERS, 2 * number + 1, &block);
        if !reset.is_empty() {
            out.extend(write::frame(RST_STREAM, 0, 2 * number + 1, reset));
        }
        out
    };
    (0..count.min(STREAMS_MAX)).flat_map(one).collect()
}

/// Parses `KIND FLAGS STREAM TEXT`, with a declared length that may be false.
fn frame(argument: &str, length: Option<u32>, values: &Values) -> Result<Vec<u8>, String> {
    let mut parts = argument.splitn(4, ' ');
    let mut next = || parts.next().unwrap_or_default();
    let kind = next();
    let flags = next();
    let stream = next();
    let kind = named(kind, &KINDS)?;
    let flags = self::flags(flags)?;
    let stream = number(stream)?;
    let payload = expanded(next(), values)?;
    let mut out = write::head(length.unwrap_or(payload.len() as u32), kind, flags, stream).to_vec();
    out.extend(payload);
    Ok(out)
}

fn flags(text: &str) -> Result<u8, String> {
    text.split('+').try_fold(0, |all, flag| Ok(all | named(flag, &FLAGS)?))
}

fn named(text: &str, names: &[(&str, u8)]) -> Result<u8, String> {
    match names.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(*value),
        None => text.parse().map_err(|_| format!("{} is not part of a frame", quoted(text))),
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{} is not a valid number in a frame", quoted(text)))
}

fn field(
    argument: &str,
    values: &Values,
    write: fn(&[u8], &[u8], &mut Vec<u8>),
) -> Result<Vec<u8>, String> {
    let wrong = || format!("{} is not NAME=VALUE", quoted(argument));
    let (name, value) = argument.split_once('=').ok_or_else(wrong)?;
    let mut out = Vec::new();
    write(&expanded(name, values)?, &expanded(value, values)?, &mut out);
    Ok(out)
}

/// Returns the header block of these fields. `changes` are separated by `|`: `NAME=VALUE` replaces
/// or adds a field, `-NAME` omits one.
pub(super) fn changed(
    mut fields: Vec<Field>,
    changes: &str,
    values: &Values,
) -> Result<Vec<u8>, String> {
    for change in changes.split('|').filter(|change| !change.is_empty()) {
        if let Some(name) = change.strip_prefix('-') {
            fields.retain(|(known, _)| known != name.as_bytes());
            continue;
        }
        let wrong = || format!("{} is not NAME=VALUE", quoted(change));
        let (name, value) = change.split_once('=').ok_or_else(wrong)?;
        let value = expanded(value, values)?;
        match fields.iter_mut().find(|(known, _)| known == name.as_bytes()) {
            Some((_, known)) => *known = value,
            None => fields.push((name.as_bytes().to_vec(), value)),
        }
    }
    let mut out = Vec::new();
    fields.iter().for_each(|(name, value)| write::field(name, value, &mut out));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::made_for_tests as made;

    #[test]
    fn frame_macros_expand() {
        let block = "\\x00\\x07:method\\x03GET\\x00\\x07:scheme\\x04http\\x00\\n:authority\\x01h\\x00\\x05:path\\x02/p\\x00\\x03x-a\\x01b";
        for (text, expected) in [
            ("{ping}", "\\x00\\x00\\x08\\x06\\x00\\x00\\x00\\x00\\x00lodstone".to_owned()),
            (
                "{frame DATA END_STREAM+PADDED 3 \\x01a\\0}",
                "\\x00\\x00\\x03\\x00\\t\\x00\\x00\\x00\\x03\\x01a\\x00".to_owned(),
            ),
            ("{framed 70000 99 0 0 }", "\\x01\\x11pc\\x00\\x00\\x00\\x00\\x00".to_owned()),
            ("{get 1}", format!("\\x00\\x00:\\x01\\x05\\x00\\x00\\x00\\x01{block}")),
            (
                "{frame HEADERS 5 1 {request}}",
                format!("\\x00\\x00:\\x01\\x05\\x00\\x00\\x00\\x01{block}"),
            ),
            ("{repeat 2 x {ack}}", "\\x00\\x00\\x00\\x04\\x01\\x00\\x00\\x00\\x00".repeat(2)),
            ("{kept a={repeat 3 x b}}", "@\\x01a\\x03bbb".to_owned()),
        ] {
            assert_eq!(made(text).as_deref(), Ok(expected.as_str()), "{text}");
        }
    }

    #[test]
    fn invalid_frame_macros_are_reported() {
        for (text, why) in [
            ("{frame NEWS 0 0}", "\"NEWS\" is not part of a frame"),
            ("{frame DATA 0 x}", "\"x\" is not a valid number in a frame"),
            ("{framed}", "\"\" is not a valid number in a frame"),
            ("{field a}", "\"a\" is not NAME=VALUE"),
            ("{frame DATA 0 1 {nothing}}", "\"nothing\" is not a macro"),
            ("{frame DATA 0 1 {ping}", "\"{frame DATA 0 1 {ping}\" has no }"),
        ] {
            assert_eq!(made(text), Err(why.to_owned()), "{text}");
        }
    }
}
