//! Responses that are invalid in HTTP/1.x: without a head (HTTP/0.9, or another protocol), or
//! truncated. ab treats everything before the first empty line as the head.

use sample::CallRecord;

/// ab's buffer size for finding the end of a head.
const BUFFER: usize = 8_191;
/// Offset from the word `HTTP` to the status: `HTTP/1.x `.
const TO_STATUS: usize = 9;

/// ab's view of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OddResponse {
    /// Assumed status; `None` without an empty line, in which case ab does not search for a status.
    pub(super) status: Option<String>,
    /// Number of bytes after the empty line; for chunks, of their content.
    pub(super) body_bytes: u64,
}

impl OddResponse {
    /// Returns `None` for a complete response, or without a response.
    pub(super) fn new(call: &CallRecord) -> Option<OddResponse> {
        let sample = &call.sample;
        if sample.status != 0 || call.response.is_empty() {
            return None;
        }
        let seen = OddResponse::read(&call.response, sample.bytes_received);
        let has_head = sample.head_bytes > 0;
        Some(if has_head { OddResponse { body_bytes: sample.body_bytes, ..seen } } else { seen })
    }

    /// Examines a response of `length` bytes by its beginning, `start`.
    fn read(start: &[u8], length: u64) -> OddResponse {
        // a C string ends with its first zero byte
        let text = start[..start.len().min(BUFFER)].split(|byte| *byte == 0).next();
        let text = text.unwrap_or_default();
        let end_by = |line: &[u8]| find(text, line).map(|at| (at, at + line.len()));
        let Some((end, body)) = end_by(b"\r\n\r\n").or_else(|| end_by(b"\n\n")) else {
            return OddResponse { status: None, body_bytes: 0 };
        };
        // the line end before the empty line belongs to the head
        let head = &text[..end + (body - end) / 2];
        let word = find(head, b"HTTP").map(|at| &head[at..]);
        let status = match word.and_then(|word| word.get(TO_STATUS..)) {
            Some(rest) if !rest.is_empty() => {
                String::from_utf8_lossy(&rest[..rest.len().min(3)]).into_owned()
            }
            _ => "500".to_owned(),
        };
        OddResponse { status: Some(status), body_bytes: length.saturating_sub(body as u64) }
    }

    pub(super) fn is_2xx(&self) -> bool {
        self.status.as_ref().is_none_or(|status| status.starts_with('2'))
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> (Option<String>, u64) {
        let OddResponse { status, body_bytes } = OddResponse::read(text, text.len() as u64 + 100);
        (status, body_bytes)
    }

    #[test]
    fn an_empty_line_divides_head_and_body() {
        let some = |status: &str, bytes| (Some(status.to_owned()), bytes);
        assert_eq!(read(b""), (None, 0));
        assert_eq!(read(b"hello\r\nworld"), (None, 0));
        assert_eq!(read(b"hello\r\n\r\nworld"), some("500", 105));
        assert_eq!(read(b"hello\n\nworld"), some("500", 105));
        // the line with carriage returns takes precedence, wherever it is
        assert_eq!(read(b"a\n\nb\r\n\r\nc"), some("500", 101));
        assert_eq!(read(b"a\0\r\n\r\nb"), (None, 0));
        assert_eq!(read(b"x HTTP/1.0 204 No\r\n\r\n"), some("204", 100));
        assert_eq!(read(b"HTTP/1.0\r\n\r\n"), some("\n", 100));
        assert_eq!(read(b"HTTP\n\n"), some("500", 100));
    }

    #[test]
    fn no_end_is_looked_for_beyond_the_buffer() {
        let long = [&vec![b'x'; BUFFER - 3][..], b"\r\n\r\n"].concat();
        assert_eq!(read(&long), (None, 0));
        assert_eq!(read(&long[1..]), (Some("500".to_owned()), 100));
    }
}
