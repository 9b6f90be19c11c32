//! A guide's report of a call, for counting and for the lines.

use sample::{FailureClass, Sample};

/// Line about a request.
#[derive(Clone, Debug)]
pub(super) struct LoggedRequest {
    /// `HTTP/1.1`.
    pub(super) protocol: String,
    pub(super) code: u16,
    /// True if the response came from the user's cache, without a request.
    pub(super) cached: bool,
    pub(super) method: &'static str,
    pub(super) shown: String,
    pub(super) row: u32,
}

/// Contribution of a call to the counts.
#[derive(Clone, Debug, Default)]
pub(super) struct CallReport {
    /// Requests now known to be successful: the call itself, and those whose redirect or challenge
    /// it answered.
    pub(super) hits: u32,
    pub(super) failed: u32,
    /// True if its time, its bytes, and its rank among the longest and the shortest count.
    pub(super) timed: bool,
    pub(super) measured: bool,
    /// True for a status below 400, or 401 or 407; `okay` is true only for 200.
    pub(super) success: bool,
    pub(super) okay: bool,
    /// Lines of the call, then those of cached parts.
    pub(super) lines: Vec<LoggedRequest>,
    pub(super) out: Vec<u8>,
    pub(super) err: String,
}

/// Returns siege's text for a failure; the numbers are those of its source lines.
pub(super) fn sentence(sample: &Sample) -> Option<String> {
    let connecting = sample.sent.is_zero();
    Some(match sample.class? {
        // the server closed the connection before any data: siege is silent
        FailureClass::ClosedEarly => return None,
        FailureClass::WorkloadEnd => return Some(unresolved("Name or service not known")),
        FailureClass::Tls | FailureClass::Certificate => {
            super::config::error("Failed to make an SSL connection: 5")
        }
        FailureClass::Reset if !connecting => {
            let reset = "Connection reset by peer";
            super::config::error(&format!("socket: read error {reset} sock.c:635: {reset}"))
        }
        FailureClass::ConnectTimeout => {
            super::config::error("socket: unable to connect sock.c:282: Connection timed out")
        }
        class if connecting => {
            let known = crate::words::system_error(class).map(|(_, sentence)| sentence);
            let why = known.unwrap_or_else(|| class.explain());
            super::config::error(&format!("socket: unable to connect sock.c:282: {why}"))
        }
        class => super::config::error(&format!("socket: {}", class.explain())),
    })
}

/// Returns the text for a name without an address. siege appends the text of `errno`. On most
/// machines the lookup does not set it, so no text is appended here.
pub(super) fn unresolved(why: &str) -> String {
    let error = super::config::error;
    let at = "Address resolution failed at sock.c:158 with the following error:";
    error(at) + &error(why)
}
