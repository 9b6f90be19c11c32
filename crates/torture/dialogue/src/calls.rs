//! Calls of gRPC over HTTP/2 by hand: valid or invalid requests as bytes, and the status of a
//! response (the gRPC project's `PROTOCOL-HTTP2.md`).

use crate::http2::write::{self, PseudoFields};
use crate::http2::{END_HEADERS, HEADERS};
use crate::replies::Response;
use protocol::grpc::{CONTENT_TYPE, Code, expected_codes, status_of};
use units::ParseError;

/// Method that most servers offer, and that accepts an empty message.
pub const HEALTH: &str = "/grpc.health.v1.Health/Check";
/// An empty message with its prefix.
pub const EMPTY: [u8; 5] = [0; 5];
/// Fields of every call, in addition to the pseudo-header fields.
pub const FIELDS: &str = "te: trailers\r\ncontent-type: application/grpc\r\n";

/// Returns a call: its fields, and the message as all of its content.
pub fn call(stream: u32, block: &[u8], message: &[u8]) -> Vec<u8> {
    [write::frame(HEADERS, END_HEADERS, stream, block), write::content(stream, message)].concat()
}

/// Returns the fields of a call as a header block; `fields` are HTTP/1.1 lines.
pub fn block(scheme: &str, authority: &str, path: &str, fields: &str) -> Vec<u8> {
    let asked = PseudoFields { method: "POST", scheme, authority, path };
    write::request_block(asked, &format!("{FIELDS}{fields}"))
}

/// Parses comma-separated names or numbers of status codes.
///
/// # Errors
/// Fails for text that is neither.
pub fn parse_codes(text: &str) -> Result<Vec<u8>, ParseError> {
    expected_codes(text)
}

/// Status of a call, as the server sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallStatus {
    pub number: u32,
    /// The status name, such as NOT_FOUND.
    pub name: &'static str,
}

impl CallStatus {
    pub fn is_ok(&self) -> bool {
        self.number == 0
    }
}

impl Response {
    /// Returns whether this is a response of gRPC, by its content type.
    pub fn is_grpc_response(&self) -> bool {
        self.field("content-type").any(|one| one.starts_with(CONTENT_TYPE))
    }

    /// Returns the status in the trailers, or in the head if there are none; `None` if the server
    /// sent none.
    pub fn call_status(&self) -> Option<CallStatus> {
        let status = status_of(self.status, &self.head, &self.trailers);
        let number = status.number;
        status.sent.then(|| CallStatus { number, name: Code::from_number(number).name() })
    }

    /// Returns whether the response has the form of gRPC: HTTP status 200, one status of the
    /// specification at its end, and a message in percent-encoding. An HTTP error without the
    /// content type of gRPC has it too.
    pub fn is_sound_call(&self) -> bool {
        if !self.is_grpc_response() {
            return self.status != 200 && self.call_status().is_none();
        }
        // the first line of a head is the status line
        let head: Vec<&[u8]> = self.head.split(|byte| *byte == b'\n').skip(1).collect();
        let lines = head.into_iter().chain(self.trailers.split(|byte| *byte == b'\n'));
        let fields: Vec<(&[u8], &[u8])> = lines.filter_map(field_of).collect();
        let values = |name: &[u8]| {
            let named = fields.iter().filter(move |(known, _)| *known == name);
            named.map(|(_, value)| *value).collect::<Vec<_>>()
        };
        let known = |value: &[u8]| {
            // `parse` would also accept a sign
            let digits = Some(value).filter(|value| value.iter().all(u8::is_ascii_digit));
            let text = digits.and_then(|digits| str::from_utf8(digits).ok());
            let number = text.and_then(|text| text.parse::<usize>().ok());
            number.is_some_and(|number| number < Code::ALL.len())
        };
        let statuses = values(b"grpc-status");
        let messages = values(b"grpc-message");
        self.complete
            && self.status == 200
            && matches!(statuses[..], [one] if known(one))
            && messages.len() <= 1
            && messages.iter().all(|message| is_percent_encoded(message))
    }
}

fn field_of(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = line.iter().position(|byte| *byte == b':')?;
    Some((&line[..at], line[at + 1..].trim_ascii()))
}

/// Returns whether the bytes are printable ASCII, with two hexadecimal digits after each %.
fn is_percent_encoded(mut text: &[u8]) -> bool {
    while let Some((first, rest)) = text.split_first() {
        text = match (first, rest) {
            (b'%', [high, low, after @ ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                after
            }
            (b'%', _) => return false,
            (b' '..=b'~', _) => rest,
            _ => return false,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, head: &str, trailers: &str) -> Response {
        let head = format!("HTTP/2 {status}\r\n{head}\r\n").into_bytes();
        let trailers = trailers.as_bytes().to_vec();
        Response { status, head, trailers, complete: true, ..Response::default() }
    }

    #[test]
    fn the_form_of_a_response_is_checked() {
        let grpc = "content-type: application/grpc\r\n";
        for (status, head, trailers, name, sound) in [
            (200, grpc, "grpc-status: 0\r\n", Some("OK"), true),
            (200, grpc, "grpc-status: 5\r\ngrpc-message: a%20b\r\n", Some("NOT_FOUND"), true),
            (200, grpc, "grpc-status: 5\r\ngrpc-message: a%2\r\n", Some("NOT_FOUND"), false),
            (200, grpc, "grpc-status: 5\r\ngrpc-message: \u{e9}\r\n", Some("NOT_FOUND"), false),
            (200, grpc, "grpc-status: 17\r\n", Some("UNKNOWN"), false),
            (200, grpc, "grpc-status: +5\r\n", Some("NOT_FOUND"), false),
            (200, grpc, "grpc-status: 0\r\ngrpc-status: 0\r\n", Some("OK"), false),
            (200, grpc, "", None, false),
            (415, "", "", None, true),
            (200, "", "", None, false),
            (500, grpc, "grpc-status: 13\r\n", Some("INTERNAL"), false),
        ] {
            let one = response(status, head, trailers);
            assert_eq!(one.call_status().map(|found| found.name), name, "{trailers}");
            assert_eq!(one.is_sound_call(), sound, "{status} {trailers}");
        }
        let only = response(200, "content-type: application/grpc\r\ngrpc-status: 12\r\n", "");
        assert_eq!(only.call_status().map(|found| found.name), Some("UNIMPLEMENTED"));
        assert!(only.is_sound_call());
    }
}
