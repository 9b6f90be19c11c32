//! Macros for WebSocket (RFC 6455): the handshake, also over HTTP/2 (RFC 8441), and frames whether
//! they may be sent or not.

use super::frames::changed;
use super::{Values, expanded};
use crate::http2::write::{self, PseudoFields};
use crate::http2::{END_HEADERS, HEADERS, SOCKET};
use protocol::hpack::Field;
use units::quoted;
use websocket::apply_mask;
use websocket::handshake::ClientOffer;

/// The key of the example in RFC 6455 section 1.3, and that of its section 5.7: what is sent must
/// not change from run to run.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// Appends the expansion of a WebSocket macro to `out`. Returns false for other macros.
pub(super) fn expand(
    name: &str,
    argument: &str,
    values: &Values,
    out: &mut Vec<u8>,
) -> Result<bool, String> {
    match name {
        "socket" => out.extend_from_slice(values.socket.as_bytes()),
        "upgrade" if values.tunneled => out.extend(connect_frame(argument, values)?),
        "upgrade" => out.extend(handshake(argument, values)?),
        "connect" => out.extend(changed(connect(values, ""), argument, values)?),
        "ws" => frame(argument, values, out)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Returns a valid handshake with these additional field lines.
fn handshake(more: &str, values: &Values) -> Result<Vec<u8>, String> {
    let (path, host) = (&values.socket, &values.host);
    let mut out = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n").into_bytes();
    ClientOffer::default().write_fields(KEY, &mut out);
    out.extend(expanded(more, values)?);
    out.extend_from_slice(b"\r\n");
    Ok(out)
}

/// Returns the fields of an extended CONNECT (RFC 8441 section 5), with these additional field
/// lines.
fn connect(values: &Values, more: &str) -> Vec<Field> {
    let scheme = if values.scheme.is_empty() { "http" } else { &values.scheme };
    let (authority, path) = (&values.host, &values.socket);
    let asked = PseudoFields { method: "CONNECT", scheme, authority, path };
    let lines = format!("Sec-WebSocket-Version: 13\r\n{}{more}", values.fields);
    let mut fields: Vec<Field> = Vec::new();
    write::each_field(asked, &lines, |name, value| fields.push((name.to_vec(), value.to_vec())));
    let regular = fields.iter().position(|(name, _)| !name.starts_with(b":"));
    let protocol = (b":protocol".to_vec(), b"websocket".to_vec());
    fields.insert(regular.unwrap_or(fields.len()), protocol);
    fields
}

/// Returns a valid handshake on the first stream.
fn connect_frame(more: &str, values: &Values) -> Result<Vec<u8>, String> {
    let more = expanded(more, values)?;
    let fields = connect(values, &String::from_utf8_lossy(&more));
    Ok(write::frame(HEADERS, END_HEADERS, SOCKET, &changed(fields, "", values)?))
}

/// Options of a frame.
struct FrameForm {
    first: u8,
    masked: bool,
    /// Bytes of the extended length: 0, 2 or 8; `None` means the shortest form.
    form: Option<u8>,
    /// Declared length, if it is not that of the payload.
    declared: Option<u64>,
}

/// Names of opcodes.
const OPCODES: [(&str, u8); 6] =
    [("continuation", 0), ("text", 1), ("binary", 2), ("close", 8), ("ping", 9), ("pong", 10)];

impl FrameForm {
    /// Parses `text+more+rsv1`: an opcode, followed by options.
    fn read(options: &str) -> Result<FrameForm, String> {
        let mut words = options.split('+');
        let opcode = words.next().unwrap_or_default();
        let named = OPCODES.iter().find(|(name, _)| *name == opcode).map(|(_, bits)| *bits);
        let bits = named.or_else(|| opcode.parse().ok().filter(|bits| *bits < 16));
        let bits = bits.ok_or_else(|| {
            format!("{} is not an opcode: write text, ping, … or 0 to 15", quoted(opcode))
        })?;
        let mut form = FrameForm { first: 0x80 | bits, masked: true, form: None, declared: None };
        for word in words {
            match word {
                "more" => form.first &= 0x7f,
                "rsv1" => form.first |= 0x40,
                "rsv2" => form.first |= 0x20,
                "rsv3" => form.first |= 0x10,
                "bare" => form.masked = false,
                "long16" => form.form = Some(2),
                "long64" => form.form = Some(8),
                other => {
                    let size = other.strip_prefix("size=").and_then(|size| size.parse().ok());
                    form.declared = Some(size.ok_or_else(|| {
                        format!(
                            "{} is not an option of a frame: write more, rsv1, rsv2, rsv3, bare, \
                            long16, long64 or size=N",
                            quoted(other)
                        )
                    })?);
                }
            }
        }
        Ok(form)
    }
}

/// Appends the frame `OPTIONS TEXT`.
fn frame(argument: &str, values: &Values, out: &mut Vec<u8>) -> Result<(), String> {
    let (options, text) = argument.split_once(' ').unwrap_or((argument, ""));
    let form = FrameForm::read(options)?;
    let mut payload = expanded(text, values)?;
    let length = form.declared.unwrap_or(payload.len() as u64);
    let extended = form.form.unwrap_or(match length {
        0..=125 => 0,
        126..=0xffff => 2,
        _ => 8,
    });
    let mask = if form.masked { 0x80 } else { 0 };
    out.push(form.first);
    match extended {
        0 => out.push(mask | length as u8),
        2 => {
            out.push(mask | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(mask | 127);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
    if form.masked {
        out.extend_from_slice(&MASK);
        apply_mask(MASK, 0, &mut payload);
    }
    out.extend(payload);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::made_for_tests as made;

    #[test]
    fn frames_are_written_as_named() {
        for (text, bytes) in [
            // RFC 6455 section 5.7
            ("{ws text Hello}", r"\x81\x857\xfa!=\x7f\x9fMQX"),
            ("{ws text+bare Hello}", r"\x81\x05Hello"),
            ("{ws text+more+rsv1+bare a}{ws continuation+bare b}", r"A\x01a\x80\x01b"),
            ("{ws 11+bare}{ws 3+rsv2+rsv3+bare}", r"\x8b\x00\xb3\x00"),
            ("{ws binary+long16+bare ab}", r"\x82~\x00\x02ab"),
            ("{ws binary+long64+bare ab}", r"\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x02ab"),
            ("{ws ping+size=9+bare ab}", r"\x89\tab"),
        ] {
            assert_eq!(made(text).unwrap(), bytes, "{text}");
        }
        let long = made("{ws binary+bare {repeat 126 x a}}").unwrap();
        assert!(long.starts_with(r"\x82~\x00~aaa"), "{long}");
        let upgrade = made(r"{upgrade Origin: http://h\r\n}").unwrap();
        let (start, end) =
            (r"GET /s HTTP/1.1\r\nHost: h\r\nX-A: b\r\n", r"\r\nOrigin: http://h\r\n\r\n");
        assert!(upgrade.starts_with(start) && upgrade.ends_with(end), "{upgrade}");
        let connect = made("{connect :path=/x|-sec-websocket-version}").unwrap();
        assert!(connect.contains(r"\t:protocol\twebsocket\x00\x03x-a\x01b"), "{connect}");
        assert!(connect.contains(r":path\x02/x") && !connect.contains("version"), "{connect}");
        for (text, why) in [
            ("{ws what a}", "is not an opcode"),
            ("{ws 16 a}", "is not an opcode"),
            ("{ws text+size=x a}", "is not an option of a frame"),
        ] {
            assert!(made(text).unwrap_err().contains(why), "{text}");
        }
    }
}
