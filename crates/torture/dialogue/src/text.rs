//! The language of a case's bytes: text with escapes and macros, so that a head of 64 KiB is one
//! readable line.
//!
//! | macro | expansion |
//! |---|---|
//! | `\r` `\n` `\t` `\0` `\\` | the escaped byte |
//! | `\xHH` | the byte with these two hexadecimal digits |
//! | `{{` `}}` | a brace |
//! | `{path}` `{host}` `{post}` `{outside}` `{marker}` `{etag}` `{modified}` | values of the run, from [`Values`] |
//! | `{repeat N x TEXT}` | TEXT, N times; a brace in it is written `\x7b` |
//! | `{hex 00 ff …}` | these bytes |
//! | `{size TEXT}` `{hexsize TEXT}` | the number of bytes of TEXT, decimal and hexadecimal |
//!
//! Frames of HTTP/2, whether they may be sent or not; a text within may hold macros:
//!
//! | macro | expansion |
//! |---|---|
//! | `{preface}` `{opening}` `{ack}` `{ping}` | the preface; the preface with SETTINGS and a window; a SETTINGS acknowledgment; a PING |
//! | `{frame KIND FLAGS STREAM TEXT}` | a frame: `HEADERS` or 0 to 255, `END_STREAM+END_HEADERS` or 0 to 255, the stream, its payload |
//! | `{framed N KIND FLAGS STREAM TEXT}` | the same with a declared length of N bytes |
//! | `{get N}` `{begin N}` | a complete GET on stream N; the start of a POST, whose body follows |
//! | `{streams N}` | N requests, at most 10,000, each the start of a POST on its own stream |
//! | `{resets N}` | the same, each reset at once |
//! | `{request METHOD}` | the header block of a request |
//! | `{field NAME=VALUE}` `{kept NAME=VALUE}` | a literal field; one with indexing |
//!
//! WebSocket:
//!
//! | macro | expansion |
//! |---|---|
//! | `{socket}` `{upgrade TEXT}` | the path of the WebSocket; a valid handshake with these additional field lines, over HTTP/2 as a frame on stream 1 |
//! | `{connect CHANGES}` | the header block of a handshake over HTTP/2 (RFC 8441), with CHANGES as for gRPC |
//! | `{ws OPTIONS TEXT}` | a frame: `text`, `binary`, `continuation`, `close`, `ping`, `pong` or an opcode, followed by `+more` (not the last), `+rsv1`, `+rsv2`, `+rsv3`, `+bare` (no mask), `+long16`, `+long64` (form of the length) or `+size=N` (declared length) |
//!
//! gRPC; CHANGES are separated by `|`: `NAME=VALUE` replaces or adds a field, `-NAME` omits one:
//!
//! | macro | expansion |
//! |---|---|
//! | `{message}` `{prefix FLAG LENGTH}` `{msg FLAG TEXT}` | a valid message with its prefix; a prefix; a prefix and this message |
//! | `{rpc CHANGES}` | the header block of a call |
//! | `{call N CHANGES}` `{call-head N CHANGES}` `{content N TEXT}` | a valid call on stream N; its fields only; its content with the end of the stream |
//! | `{calls N CHANGES}` `{call-heads N CHANGES}` `{canceled N CHANGES}` | N of them, each on its own stream; each canceled at once |
//!
//! Streams of HTTP/3, by QUIC's numbers, and what is on them; numbers are decimal or begin with 0x:
//!
//! | macro | expansion |
//! |---|---|
//! | `{open}` | a control stream with SETTINGS, and the two QPACK streams |
//! | `{on STREAM TEXT}` `{last STREAM TEXT}` | bytes of a stream; the last bytes of a stream |
//! | `{abort STREAM CODE}` `{stop STREAM CODE}` | RESET_STREAM; STOP_SENDING |
//! | `{h3 KIND TEXT}` `{h3-long N KIND TEXT}` | a frame: `HEADERS` or a number, its payload; one with a declared length of N bytes |
//! | `{section METHOD}` `{line NAME=VALUE}` | the field section of a request; a literal field line |
//! | `{ask STREAM}` `{start STREAM}` | a complete GET; the start of a POST, whose content follows |
//! | `{asks N}` `{aborts N}` | N requests on streams from 0 on; the same, each canceled at once |
//! | `{varint N}` | a QUIC variable-length integer |
//! | `{capacity N}` | a QPACK instruction that sets the capacity to that permitted by the server plus N bytes |
//! | `{packet OPTIONS TEXT}` | a packet with these QUIC frames; `none`, or its anomalies |
//! | `{limit NAME STREAM}` | frames that test one of the server's limits |
//! | `{port}` | the following datagrams are sent from another local port |
//! | `{shake OPTIONS TEXT}` | anomalies of the handshake, or `none`; transport parameters after the usual ones |
//! | `{hello FROM TO}` | bytes FROM to TO (exclusive) of our ClientHello |
//! | `{finish}` `{update}` `{again}` | our last handshake messages; a key update; everything again, as another connection |

mod calls;
mod frames;
mod sockets;
mod streams;

use units::quoted;

/// Maximum size of expanded text in bytes.
pub const TEXT_MAX: usize = 16 << 20;

/// Values of the placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// Path and query of the probed page.
    pub path: String,
    /// The value of the Host field: name or address, and the port unless it is the default.
    pub host: String,
    /// Path and query of a page that accepts bodies.
    pub post: String,
    /// Path of a file outside the server's tree, without its leading slash.
    pub outside: String,
    /// Unique mark of a request.
    pub marker: String,
    /// ETag, without the weak prefix, and Last-Modified of the probed page.
    pub etag: String,
    pub modified: String,
    /// The user's own field lines, each with its line end, which the server requires. They follow
    /// the Host line.
    pub fields: String,
    /// `http` or `https`; empty means `http`.
    pub scheme: String,
    /// Path and query of a WebSocket; empty if none was found.
    pub socket: String,
    /// The WebSocket is a stream of an HTTP/2 connection (RFC 8441).
    pub tunneled: bool,
    /// A message with its prefix that suits the gRPC method in `path`; empty if the target is not
    /// called over gRPC.
    pub message: Vec<u8>,
    /// Size of the QPACK table that the server allows.
    pub table: u64,
}

/// Returns the bytes that `text` represents.
///
/// # Errors
/// Fails if the text is invalid, with a sentence that quotes the position.
pub fn bytes(text: &str, values: &Values) -> Result<Vec<u8>, String> {
    let out = expanded(text, values)?;
    Ok(if values.fields.is_empty() { out } else { with_fields(&out, values.fields.as_bytes()) })
}

/// Does the same without the user's field lines in HTTP/1.1 heads; HTTP/2 requests have them.
fn expanded(text: &str, values: &Values) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '{', '}']) {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        rest = match rest.as_bytes()[0] {
            b'\\' => escape(rest, &mut out)?,
            b'{' if rest.starts_with("{{") => {
                out.push(b'{');
                &rest[2..]
            }
            b'{' => expand(rest, values, &mut out)?,
            _ if rest.starts_with("}}") => {
                out.push(b'}');
                &rest[2..]
            }
            _ => return Err(format!("a single }} at {}: write }}}}", quoted(rest))),
        };
        if out.len() > TEXT_MAX {
            return Err(format!("it is longer than {}", units::show::bytes(TEXT_MAX as u64)));
        }
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// Inserts these field lines into each head, after its first Host line. After a head that declares
/// a body nothing is changed: it may be that body.
fn with_fields(bytes: &[u8], fields: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + fields.len());
    let mut has_them = false;
    let mut declares_body = false;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        out.extend_from_slice(line);
        let begins = |name: &[u8]| {
            line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        declares_body |= begins(b"Content-Length") || begins(b"Transfer-Encoding");
        if line == b"\r\n" {
            has_them = declares_body;
        } else if begins(b"Host: ") && line.ends_with(b"\r\n") && !has_them {
            out.extend_from_slice(fields);
            has_them = true;
        }
    }
    out
}

/// Minimum number of equal bytes written as `{repeat …}`.
const REPEATED_MIN: usize = 32;

/// Returns text for these bytes, so that [`bytes`] returns them: one line of printable ASCII.
pub fn written(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + bytes.len() / 4);
    let mut rest = bytes;
    while let Some(&byte) = rest.first() {
        let run = rest.iter().take_while(|other| **other == byte).count();
        // repeated text cannot contain macros, and therefore no brace
        let count = if matches!(byte, b'{' | b'}') { 1 } else { run };
        let long = count >= REPEATED_MIN;
        if long {
            out.push_str(&format!("{{repeat {count} x "));
        }
        for _ in 0..if long { 1 } else { count } {
            write_byte(&mut out, byte);
        }
        if long {
            out.push('}');
        }
        rest = &rest[count..];
    }
    out
}

fn write_byte(out: &mut String, byte: u8) {
    match byte {
        b'\r' => out.push_str("\\r"),
        b'\n' => out.push_str("\\n"),
        b'\t' => out.push_str("\\t"),
        b'\\' => out.push_str("\\\\"),
        b'{' => out.push_str("{{"),
        b'}' => out.push_str("}}"),
        b' '..=b'~' => out.push(char::from(byte)),
        other => out.push_str(&format!("\\x{other:02x}")),
    }
}

/// Parses and removes one escape at the front.
fn escape<'t>(text: &'t str, out: &mut Vec<u8>) -> Result<&'t str, String> {
    let wrong =
        || format!("{} is not an escape; write \\r, \\n, \\t, \\0, \\\\ or \\xHH", quoted(text));
    let byte = match text.as_bytes().get(1) {
        Some(b'r') => b'\r',
        Some(b'n') => b'\n',
        Some(b't') => b'\t',
        Some(b'0') => 0,
        Some(b'\\') => b'\\',
        Some(b'x') => {
            let digits = text.get(2..4).ok_or_else(wrong)?;
            out.push(hex(digits).ok_or_else(wrong)?);
            return Ok(&text[4..]);
        }
        _ => return Err(wrong()),
    };
    out.push(byte);
    Ok(&text[2..])
}

fn hex(digits: &str) -> Option<u8> {
    let plain = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if plain { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// Parses and removes one macro at the front.
fn expand<'t>(text: &'t str, values: &Values, out: &mut Vec<u8>) -> Result<&'t str, String> {
    let Some(end) = closing(text) else {
        return Err(format!("{} has no }}", quoted(text)));
    };
    let inside = &text[1..end];
    let after = &text[end + 1..];
    let (name, argument) = inside.split_once(' ').unwrap_or((inside, ""));
    match name {
        "path" => out.extend_from_slice(values.path.as_bytes()),
        "host" => out.extend_from_slice(values.host.as_bytes()),
        "post" => out.extend_from_slice(values.post.as_bytes()),
        "outside" => out.extend_from_slice(values.outside.as_bytes()),
        "marker" => out.extend_from_slice(values.marker.as_bytes()),
        "etag" => out.extend_from_slice(values.etag.as_bytes()),
        "modified" => out.extend_from_slice(values.modified.as_bytes()),
        "repeat" => repeat(argument, values, out)?,
        "hex" => {
            for digits in argument.split_whitespace() {
                let byte = hex(digits);
                out.push(byte.ok_or_else(|| format!("{} is not a byte", quoted(digits)))?);
            }
        }
        "size" => {
            let size = expanded(argument, values)?.len();
            out.extend_from_slice(size.to_string().as_bytes());
        }
        "hexsize" => {
            let size = expanded(argument, values)?.len();
            out.extend_from_slice(format!("{size:x}").as_bytes());
        }
        _ if frames::expand(name, argument, values, out)? => {}
        _ if sockets::expand(name, argument, values, out)? => {}
        _ if streams::expand(name, argument, values, out)? => {}
        _ if calls::expand(name, argument, values, out)? => {}
        _ => return Err(format!("{} is not a macro", quoted(inside))),
    }
    Ok(after)
}

/// Maximum nesting of macros.
const DEPTH_MAX: usize = 8;

/// Returns the end of the macro at the front; `None` also if it is nested deeper than
/// [`DEPTH_MAX`].
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' if depth == DEPTH_MAX => return None,
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn repeat(argument: &str, values: &Values, out: &mut Vec<u8>) -> Result<(), String> {
    let wrong = || format!("{} is not N x TEXT", quoted(argument));
    let (count, text) = argument.split_once(" x ").ok_or_else(wrong)?;
    let count: usize = count.trim().parse().map_err(|_| wrong())?;
    let once = expanded(text, values)?;
    let fits = once.len().checked_mul(count).is_some_and(|all| all <= TEXT_MAX);
    if !fits {
        return Err(format!("{{repeat {argument}}} is longer than 16 MiB"));
    }
    (0..count).for_each(|_| out.extend_from_slice(&once));
    Ok(())
}

/// Returns the bytes of a text, for the tests of the macros below.
#[cfg(test)]
fn made_for_tests(text: &str) -> Result<String, String> {
    let values = Values {
        path: "/p".into(),
        host: "h".into(),
        socket: "/s".into(),
        fields: "X-A: b\r\n".into(),
        ..Values::default()
    };
    bytes(text, &values).map(|bytes| bytes.escape_ascii().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> String {
        let values = Values {
            path: "/p?q".into(),
            host: "h:1".into(),
            post: "/post".into(),
            marker: "m7".into(),
            etag: "\"e\"".into(),
            ..Values::default()
        };
        match bytes(text, &values) {
            Ok(bytes) => bytes.escape_ascii().to_string(),
            Err(why) => format!("wrong: {why}"),
        }
    }

    #[test]
    fn text_expands_to_bytes() {
        let table = [
            (
                r"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n",
                r"GET /p?q HTTP/1.1\r\nHost: h:1\r\n\r\n",
            ),
            (r"{post} {marker} {{x}}", "/post m7 {x}"),
            (r"{etag}{modified}", r#"\"e\""#),
            (r"\0\t\\\x7f\xFF", r"\x00\t\\\x7f\xff"),
            (r"{repeat 3 x a\n}b", r"a\na\na\nb"),
            (r"{hex 00 ff 41}", r"\x00\xffA"),
            (r"{size a\r\n{repeat 9 x b}} {hexsize {path}{path}}", "12 8"),
            ("{repeat 0 x a}", ""),
            ("ä", r"\xc3\xa4"),
        ];
        for (text, expected) in table {
            assert_eq!(made(text), expected, "{text}");
        }
    }

    #[test]
    fn user_fields_are_inserted_into_each_head_once() {
        let values = Values { host: "h".into(), fields: "A: b\r\n".into(), ..Values::default() };
        let table = [
            (r"G\r\nHost: {host}\r\n\r\n", "G\r\nHost: h\r\nA: b\r\n\r\n"),
            (r"Host: {host}\r\nHost: {host}\r\n\r\n", "Host: h\r\nA: b\r\nHost: h\r\n\r\n"),
            (
                r"Host: {host}\r\n\r\nHost: {host}\r\n\r\n",
                "Host: h\r\nA: b\r\n\r\nHost: h\r\nA: b\r\n\r\n",
            ),
            (r"Host: b\r\n\r\n", "Host: b\r\nA: b\r\n\r\n"),
            (
                r"Host: h\r\nContent-Length: 11\r\n\r\nHost: h\r\n\r\n",
                "Host: h\r\nA: b\r\nContent-Length: 11\r\n\r\nHost: h\r\n\r\n",
            ),
            (r"Host: {host}\n\n", "Host: h\n\n"),
        ];
        for (text, expected) in table {
            assert_eq!(
                bytes(text, &values).unwrap().escape_ascii().to_string(),
                expected.as_bytes().escape_ascii().to_string()
            );
        }
    }

    #[test]
    fn bytes_are_written_as_text() {
        let long = [b"{x} \r\n\t\0\\".as_slice(), &[b'a'; 40], b"\xff"].concat();
        assert_eq!(written(&long), r"{{x}} \r\n\t\x00\\{repeat 40 x a}\xff");
    }

    #[test]
    fn errors_name_the_position() {
        let table = [
            (r"\q", "not an escape"),
            (r"\x1", "not an escape"),
            (r"\x+1", "not an escape"),
            ("{path", "has no }"),
            ("a}", "a single }"),
            ("{what}", "not a macro"),
            ("{repeat 3 a}", "not N x TEXT"),
            ("{repeat 99999999999999999999 x a}", "not N x TEXT"),
            ("{repeat 99999999 x a}", "longer than 16 MiB"),
            ("{hex 0 1}", "not a byte"),
        ];
        for (text, part) in table {
            let result = made(text);
            assert!(result.starts_with("wrong: ") && result.contains(part), "{text}: {result}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            bytes(&text, &Values::default()).ok();
        }

        #[test]
        fn written_text_expands_to_the_same_bytes(
            pieces in proptest::collection::vec((0u8..=255, 1usize..70), 0..20)
        ) {
            let all: Vec<u8> = pieces.iter().flat_map(|(byte, count)| vec![*byte; *count]).collect();
            let text = written(&all);
            assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text}");
            assert_eq!(bytes(&text, &Values::default()), Ok(all), "{text}");
        }
    }
}
