//! Requests recorded by other tools: HAR files, curl's command lines, examples of OpenAPI.
//!
//! Reads no files and resolves no names: the caller passes the text.

mod cmd;
mod commands;
mod curl;
mod grpcurl;
mod har;
mod openapi;
mod words;

pub use curl::{Curl, CurlLogin, CurlVersion, has_command, parse_curl, read_commands};
pub use grpcurl::{Grpcurl, is_grpcurl, parse_grpcurl};
pub use har::{HarAnswer, HarPostData, boundary, har_body, har_unsent, is_page_header, read_har};
pub use openapi::read_openapi;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use std::collections::BTreeMap;
use units::Nanos;
use url::Url;

/// Characters that are percent-encoded: all but the unreserved ones (RFC 3986 section 2.3).
const NOT_UNRESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Time since the first request; zero if not recorded.
    pub at: Nanos,
    pub method: String,
    pub url: Url,
    /// Header fields in order, without those that the client itself writes, such as Host and
    /// Content-Length.
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

/// Requests in time order, and elements that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    pub requests: Vec<Recorded>,
    /// Reasons for left-out elements, with counts.
    pub left_out: BTreeMap<String, u64>,
}

/// Reason why a file or a command cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedError(pub String);

/// Maximum number of requests.
pub const REQUESTS_MAX: usize = 1_000_000;

impl Recording {
    fn leave_out(&mut self, why: impl Into<String>) {
        *self.left_out.entry(why.into()).or_default() += 1;
    }

    /// # Errors
    /// Fails beyond [`REQUESTS_MAX`].
    fn push(&mut self, request: Recorded) -> Result<(), RecordedError> {
        if self.requests.len() == REQUESTS_MAX {
            return Err(RecordedError(format!(
                "it has more than {REQUESTS_MAX} requests; shorten it"
            )));
        }
        self.requests.push(request);
        Ok(())
    }
}

/// Returns whether a header field concerns the connection or the framing of a message (RFC 9110
/// section 7.6.1, RFC 9112), or is a pseudo-header of HTTP/2 as browsers write them into HAR. The
/// client generates such fields itself.
pub(crate) fn is_connection_header(name: &str) -> bool {
    const OURS: [&str; 9] = [
        "connection",
        "content-length",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-connection",
        "te",
        "transfer-encoding",
        "upgrade",
    ];
    name.starts_with(':') || OURS.iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

impl std::fmt::Display for RecordedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RecordedError {}
