//! Requests over HTTP/2 with TLS that are written together.
//!
//! A server that writes each response by itself would cause a write for nearly each call, because
//! the client is usually faster and finds one response at a time. So requests wait while responses
//! can be read without waiting for them: the socket is read again, and the requests are written once
//! it has no more data.

use super::Conn;

/// Number of requests that are written without a further read.
const GATHERED_MAX: u32 = 16;
/// Maximum number of outstanding calls with which requests wait: with more, a read finds several
/// responses, and further reads cost as much as the writes that they save.
const OUTSTANDING_MAX: usize = 32;

impl Conn {
    /// Returns whether requests wait for more responses: there are few, and the server still has
    /// calls to answer. Only over TLS, and with tens of streams at most: elsewhere this saves nothing,
    /// as measured in bench/history/http2-streams.md.
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
