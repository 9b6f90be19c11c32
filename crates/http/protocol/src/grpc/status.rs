//! The status of a call, from trailers or their replacement.

use super::message::{EarlyEnd, MessageLimits};
use crate::http1::fields;
use percent_encoding::percent_decode;
use units::{ParseError, quoted};

macro_rules! codes {
    ($($name:ident, $number:literal, $text:literal;)*) => {
        /// Status code of gRPC.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Code { $($name = $number,)* }

        impl Code {
            pub const ALL: [Code; 17] = [$(Code::$name,)*];

            /// Returns the name as in the specification: `NOT_FOUND`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }
        }
    };
}

codes! {
    Ok, 0, "OK";
    Cancelled, 1, "CANCELLED";
    Unknown, 2, "UNKNOWN";
    InvalidArgument, 3, "INVALID_ARGUMENT";
    DeadlineExceeded, 4, "DEADLINE_EXCEEDED";
    NotFound, 5, "NOT_FOUND";
    AlreadyExists, 6, "ALREADY_EXISTS";
    PermissionDenied, 7, "PERMISSION_DENIED";
    ResourceExhausted, 8, "RESOURCE_EXHAUSTED";
    FailedPrecondition, 9, "FAILED_PRECONDITION";
    Aborted, 10, "ABORTED";
    OutOfRange, 11, "OUT_OF_RANGE";
    Unimplemented, 12, "UNIMPLEMENTED";
    Internal, 13, "INTERNAL";
    Unavailable, 14, "UNAVAILABLE";
    DataLoss, 15, "DATA_LOSS";
    Unauthenticated, 16, "UNAUTHENTICATED";
}

impl Code {
    /// Returns the code with this number; a number that the specification does not have is UNKNOWN.
    pub fn from_number(number: u32) -> Code {
        let known = Code::ALL.get(usize::try_from(number).unwrap_or(usize::MAX));
        known.copied().unwrap_or(Code::Unknown)
    }

    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the meaning of a response without `grpc-status`, by its HTTP status
    /// (`http-grpc-status-mapping.md`).
    pub fn from_http_status(status: u16) -> Code {
        match status {
            400 => Code::Internal,
            401 => Code::Unauthenticated,
            403 => Code::PermissionDenied,
            404 => Code::Unimplemented,
            429 | 502 | 503 | 504 => Code::Unavailable,
            _ => Code::Unknown,
        }
    }
}

/// Parses the codes that are as expected: names or numbers, separated by commas.
///
/// # Errors
/// Fails for text that is neither a name nor a number of the specification.
pub fn expected_codes(text: &str) -> Result<Vec<u8>, ParseError> {
    let one = |item: &str| {
        let item = item.trim();
        let spelled = |code: &&Code| {
            code.name().eq_ignore_ascii_case(item)
                || code.name().replace('_', "").eq_ignore_ascii_case(item)
                || code.number().to_string() == item
        };
        let found = Code::ALL.iter().find(spelled).map(|code| code.number());
        found.ok_or_else(|| {
            ParseError(format!(
                "{} is not a gRPC status; write names or numbers from 0 to 16, such as \
                 OK,NOT_FOUND",
                quoted(item)
            ))
        })
    };
    text.split(',').map(one).collect()
}

/// End of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub code: Code,
    /// Status as sent by the server; codes beyond those of the specification are [`Code::Unknown`].
    pub number: u32,
    /// `grpc-message`, percent-decoded; without a status, what the server sent instead.
    pub message: String,
    /// False if it follows from the HTTP status; otherwise the server sent it, or the client ended
    /// the call with it.
    pub sent: bool,
}

impl Status {
    /// Returns the status of a call that the client ends at one of its limits.
    pub fn of_early_end(end: EarlyEnd, limits: MessageLimits) -> Status {
        let (code, message) = match end {
            EarlyEnd::Enough => {
                let count = limits.count.unwrap_or_default();
                (Code::Cancelled, format!("ended by the client after message {count}"))
            }
            EarlyEnd::TooLong { length } => {
                let most = limits.length.unwrap_or_default();
                // the text of gRPC's own clients
                let text = format!("grpc: received message larger than max ({length} vs. {most})");
                (Code::ResourceExhausted, text)
            }
        };
        Status { code, number: u32::from(code.number()), message, sent: true }
    }
}

/// Maximum length of a stored message, in characters.
pub(super) const MESSAGE_MAX: usize = 200;

/// Returns the status of a response: `grpc-status` is in the trailers, or in the head of a response
/// without content (Trailers-Only).
pub fn status_of(http_status: u16, head: &[u8], trailers: &[u8]) -> Status {
    let ok = Status { code: Code::Ok, number: 0, message: String::new(), sent: true };
    // nearly every call ends like this: skip the search for fields
    if trailers.starts_with(b"grpc-status: 0\r\n") {
        return ok;
    }
    let field =
        |name: &str| fields::find_trailer(trailers, name).or_else(|| fields::find(head, name));
    let number = field("grpc-status")
        .and_then(|value| str::from_utf8(value).ok()?.trim().parse::<u32>().ok());
    let Some(number) = number else {
        let message = format!("HTTP status {http_status} without grpc-status");
        let code = Code::from_http_status(http_status);
        return Status { code, number: u32::from(code.number()), message, sent: false };
    };
    if number == 0 {
        return ok;
    }
    let message = field("grpc-message").unwrap_or_default();
    let message = percent_decode(message).decode_utf8_lossy();
    Status {
        code: Code::from_number(number),
        number,
        message: message.chars().take(MESSAGE_MAX).collect(),
        sent: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"HTTP/2 200\r\ncontent-type: application/grpc\r\n\r\n";

    #[test]
    fn a_status_is_read_from_trailers_or_from_the_head() {
        let status =
            status_of(200, HEAD, b"grpc-status: 5\r\ngrpc-message: no%20user%0A%C3%A9\r\n");
        assert_eq!((status.code, status.sent), (Code::NotFound, true));
        assert_eq!(status.message, "no user\n\u{e9}");
        let only = b"HTTP/2 200\r\ngrpc-status: 12\r\n\r\n";
        assert_eq!(status_of(200, only, b"").code, Code::Unimplemented);
    }

    #[test]
    fn without_a_status_the_http_status_decides() {
        for (http, code) in [
            (200, Code::Unknown),
            (400, Code::Internal),
            (401, Code::Unauthenticated),
            (403, Code::PermissionDenied),
            (404, Code::Unimplemented),
            (503, Code::Unavailable),
        ] {
            let status = status_of(http, b"", b"");
            assert_eq!((status.code, status.sent), (code, false));
        }
        assert_eq!(status_of(200, HEAD, b"grpc-status: x\r\n").code, Code::Unknown);
        assert_eq!(status_of(200, HEAD, b"grpc-status: 99\r\n").code, Code::Unknown);
    }

    #[test]
    fn expected_codes_have_names_and_numbers() {
        assert_eq!(expected_codes("OK, not_found,NotFound,16").unwrap(), [0, 5, 5, 16]);
        for bad in ["", "17", "fine", "OK,,"] {
            assert!(expected_codes(bad).is_err(), "{bad:?}");
        }
    }
}
