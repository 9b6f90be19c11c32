//! Macros for HTTP/3 streams and their content.

use super::{Values, expanded};
use crate::http2::write::PseudoFields;
use crate::http3::{CANCELLED, HEADERS, KINDS};
use crate::http3::{datagrams, packets, write};
use units::quoted;

/// Maximum number of requests of one macro.
const STREAMS_MAX: u64 = 10_000;

/// Appends the expansion of an HTTP/3 macro to `out`. Returns false for other macros.
pub(super) fn expand(
    name: &str,
    argument: &str,
    values: &Values,
    out: &mut Vec<u8>,
) -> Result<bool, String> {
    let bytes = match name {
        "open" => write::opening(),
        "on" => parse_stream_bytes(argument, false, values)?,
        "last" => parse_stream_bytes(argument, true, values)?,
        "h3" => {
            let (kind, rest) = two(argument);
            write::frame(kind_of(kind)?, &expanded(rest, values)?)
        }
        "h3-long" => {
            let (length, rest) = two(argument);
            let (kind, rest) = two(rest);
            write::framed(number(length)?, kind_of(kind)?, &expanded(rest, values)?)
        }
        "varint" => {
            let mut bytes = Vec::new();
            write::varint(number(argument)?, &mut bytes);
            bytes
        }
        "abort" => code_on(argument, write::reset)?,
        "stop" => code_on(argument, write::stop)?,
        "section" => section(if argument.is_empty() { "GET" } else { argument }, values),
        "line" => line(argument, values)?,
        "ask" => write::request(number(argument)?, &section("GET", values)),
        "start" => {
            let head = write::frame(HEADERS, &section("POST", values));
            write::stream_bytes(number(argument)?, &head, false)
        }
        "asks" => each(argument, |id| write::request(id, &section("GET", values)))?,
        "starts" => {
            let head = write::frame(HEADERS, &section("POST", values));
            each(argument, |id| write::stream_bytes(id, &head, false))?
        }
        "aborts" => {
            each(argument, |id| [write::reset(id, CANCELLED), write::stop(id, CANCELLED)].concat())?
        }
        _ => match expand_packets(name, argument, values)? {
            Some(bytes) => bytes,
            None => return Ok(false),
        },
    };
    out.extend(bytes);
    Ok(true)
}

/// Does the same for packets, and for QPACK instructions.
fn expand_packets(name: &str, argument: &str, values: &Values) -> Result<Option<Vec<u8>>, String> {
    Ok(Some(match name {
        "datagram" => datagrams::datagram(&expanded(argument, values)?),
        "initial" => {
            let (size, rest) = two(argument);
            let (options, frames) = two(rest);
            let wrong = || format!("{} is not a datagram size", quoted(size));
            let size = size.parse().map_err(|_| wrong())?;
            datagrams::initial(size, options, &expanded(frames, values)?)?
        }
        "capacity" => {
            // Set Dynamic Table Capacity (RFC 9204 section 4.3.1)
            let mut bytes = Vec::new();
            protocol::hpack::integer(
                0b0010_0000,
                5,
                values.table.saturating_add(number(argument)?),
                &mut bytes,
            );
            bytes
        }
        "packet" => {
            let (options, frames) = two(argument);
            packets::packet(options, &expanded(frames, values)?)?
        }
        "limit" => {
            let (name, stream) = two(argument);
            packets::limit(name, if stream.is_empty() { 0 } else { number(stream)? })?
        }
        "port" => packets::port(),
        "shake" => {
            let (options, parameters) = two(argument);
            packets::handshake_options(options, &expanded(parameters, values)?)?
        }
        "hello" => {
            let (from, to) = two(argument);
            packets::hello(number(from)?, number(to)?)
        }
        _ if argument.is_empty() => return Ok(packets::action(name)),
        _ => return Ok(None),
    }))
}

/// Parses `COUNT`, or `FIRST COUNT`: repeats for this many requests, numbered from 0.
fn each(argument: &str, make: impl Fn(u64) -> Vec<u8>) -> Result<Vec<u8>, String> {
    let (first, count) = argument.split_once(' ').unwrap_or(("0", argument));
    let first = number(first)?;
    let count = number(count)?;
    if first > STREAMS_MAX || count > STREAMS_MAX {
        return Err(format!("{} exceeds the limit of {STREAMS_MAX} streams", quoted(argument)));
    }
    Ok((first..first + count).flat_map(|index| make(4 * index)).collect())
}

/// Returns the field section of a request to the probed page; a POST uses the page that accepts
/// bodies, if given.
pub(super) fn section(method: &str, values: &Values) -> Vec<u8> {
    let post = method == "POST" && !values.post.is_empty();
    let path = if post { &values.post } else { &values.path };
    let asked = PseudoFields { method, scheme: "https", authority: &values.host, path };
    write::section(asked, &values.fields)
}

fn two(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// Parses `STREAM TEXT`.
fn parse_stream_bytes(argument: &str, last: bool, values: &Values) -> Result<Vec<u8>, String> {
    let (stream, text) = two(argument);
    Ok(write::stream_bytes(number(stream)?, &expanded(text, values)?, last))
}

/// Parses `STREAM CODE`.
fn code_on(argument: &str, write: fn(u64, u64) -> Vec<u8>) -> Result<Vec<u8>, String> {
    let (stream, code) = two(argument);
    Ok(write(number(stream)?, number(code)?))
}

/// Parses `NAME=VALUE`.
fn line(argument: &str, values: &Values) -> Result<Vec<u8>, String> {
    let wrong = || format!("{} is not NAME=VALUE", quoted(argument));
    let (name, value) = argument.split_once('=').ok_or_else(wrong)?;
    let mut out = Vec::new();
    write::field(&expanded(name, values)?, &expanded(value, values)?, &mut out);
    Ok(out)
}

fn kind_of(text: &str) -> Result<u64, String> {
    match KINDS.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(*value),
        None => number(text).map_err(|_| format!("{} is not a frame type", quoted(text))),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let read = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    read.map_err(|_| format!("{} is not a stream or frame number", quoted(text)))
}

#[cfg(test)]
mod tests {
    use super::super::made_for_tests as made;

    #[test]
    fn stream_macros_expand() {
        let zero = "\\x00".repeat(7);
        let head = |last: u8, length: u8, stream: u8| {
            format!("\\x00\\x0{last}\\x00\\x00\\x00\\x00\\x00\\x{length:02x}{zero}\\x{stream:02x}")
        };
        for (text, expected) in [
            ("{h3 DATA abc}", "\\x00\\x03abc".to_owned()),
            ("{h3-long 100 0x21 }", "!@d".to_owned()),
            ("{varint 0x4242}{varint 7}", "\\x80\\x00BB\\x07".to_owned()),
            ("{on 2 \\0{h3 SETTINGS }}", format!("{}\\x00\\x04\\x00", head(0, 3, 2))),
            ("{capacity 30}{capacity 31}", ">?\\x00".to_owned()),
            ("{last 0 }", head(1, 0, 0)),
            ("{line x-a=b}", "#x-a\\x01b".to_owned()),
            ("{line content-length=10}", "\\'\\x07content-length\\x0210".to_owned()),
        ] {
            assert_eq!(made(text).as_deref(), Ok(expected.as_str()), "{text}");
        }
        let asked = made("{ask 4}").unwrap();
        assert!(asked.contains("/p") && asked.ends_with("#x-a\\x01b"), "{asked}");
        assert_eq!(made("{asks 3}").unwrap().matches("/p").count(), 3);
        assert_eq!(made("{aborts 2 1}"), made("{abort 8 0x10c}{stop 8 0x10c}"));
        assert_eq!(made("{starts 1 1}"), made("{start 4}"));
    }

    #[test]
    fn invalid_stream_macros_are_reported() {
        for (text, why) in [
            ("{h3 NEWS }", "\"NEWS\" is not a frame type"),
            ("{on x abc}", "\"x\" is not a stream or frame number"),
            ("{abort 0 CANCEL}", "\"CANCEL\" is not a stream or frame number"),
            ("{asks 1 20000}", "\"1 20000\" exceeds the limit of 10000 streams"),
            ("{initial 1200 large }", "\"large\" is not an option of an Initial"),
            ("{initial x none }", "\"x\" is not a datagram size"),
            ("{line a}", "\"a\" is not NAME=VALUE"),
            ("{packet odd }", "\"odd\" is not an option of a packet"),
            ("{limit sky 4}", "\"sky\" is not a QUIC limit"),
            ("{shake late }", "\"late\" is not an option of a handshake"),
            ("{hello 0 x}", "\"x\" is not a stream or frame number"),
        ] {
            assert_eq!(made(text), Err(why.to_owned()), "{text}");
        }
    }
}
