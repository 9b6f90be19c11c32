//! Macros for calls of gRPC.

use super::frames::changed;
use super::{Values, expanded};
use crate::calls;
use crate::http2::write::{self, PseudoFields};
use crate::http2::{END_HEADERS, HEADERS, RST_STREAM};
use protocol::hpack::Field;
use units::quoted;

/// Maximum number of calls of one macro.
const CALLS_MAX: u32 = 10_000;
/// CANCEL, the code for canceled requests (RFC 9113 section 7).
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// Appends the expansion of a gRPC macro to `out`. Returns false for other macros.
pub(super) fn expand(
    name: &str,
    argument: &str,
    values: &Values,
    out: &mut Vec<u8>,
) -> Result<bool, String> {
    let (first, rest) = argument.split_once(' ').unwrap_or((argument, ""));
    match name {
        "rpc" => out.extend(block(argument, values)?),
        "message" => out.extend_from_slice(message(values)),
        "prefix" => {
            let flag: u8 = first.parse().map_err(|_| wrong(first, "a flag"))?;
            out.push(flag);
            out.extend_from_slice(&number(rest)?.to_be_bytes());
        }
        "msg" => {
            let flag: u8 = first.parse().map_err(|_| wrong(first, "a flag"))?;
            let content = expanded(rest, values)?;
            out.push(flag);
            out.extend_from_slice(&(content.len() as u32).to_be_bytes());
            out.extend(content);
        }
        "call" => out.extend(calls::call(number(first)?, &block(rest, values)?, message(values))),
        "call-head" => {
            out.extend(write::frame(HEADERS, END_HEADERS, number(first)?, &block(rest, values)?));
        }
        "content" => out.extend(write::content(number(first)?, &expanded(rest, values)?)),
        "calls" | "canceled" | "call-heads" => {
            let (count, block) = (number(first)?, block(rest, values)?);
            if count > CALLS_MAX {
                return Err(format!("{} exceeds the limit of {CALLS_MAX} calls", quoted(first)));
            }
            for stream in (0..count).map(|index| 2 * index + 1) {
                match name {
                    "call-heads" => {
                        out.extend(write::frame(HEADERS, END_HEADERS, stream, &block));
                    }
                    _ => out.extend(calls::call(stream, &block, message(values))),
                }
                if name == "canceled" {
                    out.extend(write::frame(RST_STREAM, 0, stream, &CANCEL));
                }
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Returns the message of a valid call, with its prefix.
fn message(values: &Values) -> &[u8] {
    if values.message.is_empty() { &calls::EMPTY } else { &values.message }
}

/// Returns the header block of a call. `changes` are separated by `|`: `NAME=VALUE` replaces or
/// adds a field, `-NAME` omits one.
fn block(changes: &str, values: &Values) -> Result<Vec<u8>, String> {
    let scheme = if values.scheme.is_empty() { "http" } else { &values.scheme };
    let (authority, path) = (&values.host, &values.path);
    let asked = PseudoFields { method: "POST", scheme, authority, path };
    let lines = format!("{}{}", calls::FIELDS, values.fields);
    let mut fields: Vec<Field> = Vec::new();
    write::each_field(asked, &lines, |name, value| fields.push((name.to_vec(), value.to_vec())));
    changed(fields, changes, values)
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| wrong(text, "a number"))
}

fn wrong(text: &str, wanted: &str) -> String {
    format!("{} is not {wanted} of a call", quoted(text))
}

#[cfg(test)]
mod tests {
    use super::super::made_for_tests as made;

    #[test]
    fn call_macros_expand() {
        for (text, expected) in [
            ("{message}", r"\x00\x00\x00\x00\x00"),
            ("{prefix 1 4294967295}", r"\x01\xff\xff\xff\xff"),
            ("{msg 0 ab}", r"\x00\x00\x00\x00\x02ab"),
            ("{content 3 ab}", r"\x00\x00\x02\x00\x01\x00\x00\x00\x03ab"),
        ] {
            assert_eq!(made(text).as_deref(), Ok(expected), "{text}");
        }
        let head = made("{rpc te=gzip|-content-type|x-b=c}").unwrap();
        assert!(head.contains(r"POST") && head.contains(r"\x02te\x04gzip"), "{head}");
        assert!(head.ends_with(r"\x03x-b\x01c") && !head.contains("content-type"), "{head}");
        let calls = made("{calls 2}").unwrap();
        assert_eq!(calls, made("{call 1}{call 3}").unwrap());
        assert_eq!(made("{canceled 1}"), made(r"{call 1}{frame RST_STREAM 0 1 \0\0\0\x08}"));
        for (text, why) in [
            ("{call x}", "\"x\" is not a number of a call"),
            ("{prefix 256 1}", "\"256\" is not a flag of a call"),
            ("{rpc te}", "\"te\" is not NAME=VALUE"),
            ("{calls 10001}", "\"10001\" exceeds the limit of 10000 calls"),
        ] {
            assert_eq!(made(text), Err(why.to_owned()), "{text}");
        }
    }
}
