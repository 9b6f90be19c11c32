//! The original's requests, byte for byte.

use super::options::Options;
use super::sesslog::SessionRequest;

/// Lines after the Host line of every request, and the message about them on standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extra {
    pub(super) bytes: Vec<u8>,
    pub(super) complaints: Vec<String>,
}

/// Decodes the escapes in `--add-header`: `\n` is CRLF, `\r` CR, `\a` LF, `\\` a backslash, `\` and
/// digits the byte of that octal number.
pub(super) fn unescape(text: &str) -> Extra {
    let mut extra = Extra::default();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            extra.push(letter);
            continue;
        }
        match letters.next() {
            Some('\\') | None => extra.bytes.push(b'\\'),
            Some('a') => extra.bytes.push(b'\n'),
            Some('r') => extra.bytes.push(b'\r'),
            Some('n') => extra.bytes.extend_from_slice(b"\r\n"),
            Some(digit) if digit.is_digit(8) => {
                let mut number = digit.to_digit(8).unwrap_or(0);
                while let Some(next) = letters.peek().and_then(|letter| letter.to_digit(8)) {
                    number = (number * 8 + next) & 0xff;
                    letters.next();
                }
                extra.bytes.push(number as u8);
            }
            Some(other) => {
                let what = format!("ignoring unknown escape sequence `\\{other}' in --add-header");
                extra.complaints.push(what);
                extra.push(other);
            }
        }
    }
    extra
}

impl Extra {
    /// Returns the header fields, one line each.
    pub(super) fn lines(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.bytes);
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    fn push(&mut self, letter: char) {
        self.bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Renders a request to `host`, by `method`. `extra`: lines after Host; contents are the body, with
/// their length if not empty.
pub(super) fn render(
    options: &Options,
    host: &str,
    method: &str,
    request: &SessionRequest,
    extra: &[u8],
) -> Vec<u8> {
    let SessionRequest { uri, contents, .. } = request;
    let mut bytes = Vec::with_capacity(128 + uri.len() + extra.len() + contents.len());
    let (major, minor) = options.http_version;
    bytes.extend_from_slice(method.as_bytes());
    bytes.push(b' ');
    bytes.extend_from_slice(uri);
    bytes.extend_from_slice(format!(" HTTP/{major}.{minor}\r\n").as_bytes());
    bytes.extend_from_slice(b"User-Agent: httperf/0.9.0\r\n");
    if (major, minor) == (1, 0) {
        bytes.extend_from_slice(b"Connection: keep-alive\r\n");
    }
    if !options.no_host_header {
        let host = options.server_name.as_deref().unwrap_or(host);
        bytes.extend_from_slice(format!("Host: {host}\r\n").as_bytes());
    } else if options.strict {
        // the original's own mistake: its head ends here, and the rest belongs to another request
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(extra);
    if !contents.is_empty() {
        bytes.extend_from_slice(format!("Content-length: {}\r\n", contents.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(contents);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(options: &Options, method: &str, extra: &str, contents: &str) -> String {
        let contents = contents.as_bytes().to_vec();
        let request = SessionRequest { method: "GET", uri: b"/x".to_vec(), contents };
        let bytes = render(options, "localhost", method, &request, extra.as_bytes());
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn requests_are_those_of_the_original() {
        let mut options = Options::default();
        let plain = "GET /x HTTP/1.1\r\nUser-Agent: httperf/0.9.0\r\nHost: localhost\r\n\r\n";
        assert_eq!(text(&options, "GET", "", ""), plain);
        options.server_name = Some("www".into());
        let full = "POST /x HTTP/1.1\r\nUser-Agent: httperf/0.9.0\r\nHost: www\r\n\
                    A: b\r\nContent-length: 3\r\n\r\nabc";
        assert_eq!(text(&options, "POST", "A: b\r\n", "abc"), full);
        options.http_version = (1, 0);
        options.no_host_header = true;
        let old = "GET /x HTTP/1.0\r\nUser-Agent: httperf/0.9.0\r\nConnection: keep-alive\r\n\r\n";
        assert_eq!(text(&options, "GET", "", ""), old);
        options.strict = true;
        assert_eq!(text(&options, "GET", "", ""), format!("{old}\r\n"));
    }

    #[test]
    fn escapes_are_undone() {
        let bytes = |text| unescape(text).bytes;
        assert_eq!(bytes(r"A: b\nC: d\r\a"), b"A: b\r\nC: d\r\n");
        assert_eq!(bytes(r"\\x\101\0"), b"\\xA\0");
        let odd = unescape(r"a\q");
        assert_eq!(odd.bytes, b"aq");
        assert_eq!(odd.complaints, [r"ignoring unknown escape sequence `\q' in --add-header"]);
    }
}
