//! Requests over HTTP/2 with TLS that are written together.
//!
//! A server that writes each response by itself would cause a write for nearly each call, because
//! the client is usually faster than the server and finds one response per read. So requests are held back while responses
//! are already available: the socket is read again, and the requests are written once it has no more
//! data, or a limit is reached.

use super::Conn;

/// Number of waiting requests at which they are written without a further read.
const GATHERED_MAX: u32 = 16;
/// Maximum number of outstanding calls with which requests wait: with more, a read finds several
/// responses, and further reads cost as much as the writes that they save.
const OUTSTANDING_MAX: usize = 32;

impl Conn {
    /// Returns whether requests wait for more responses: few requests are waiting, and the server
    /// still has calls to answer. Only over TLS and with at most [`OUTSTANDING_MAX`] calls: otherwise
    /// this saves nothing, as measured in bench/history/http2-streams.md.
    #[inline]
    pub(crate) fn gathers_requests(&self) -> bool {
        self.work.as_deref().is_some_and(|work| {
            work.transport.is_encrypted()
                && work.speaker.has_streams()
                && (1..GATHERED_MAX).contains(&work.unflushed)
                && (work.unflushed as usize + 1..=OUTSTANDING_MAX).contains(&work.calls.len())
        })
    }
}
