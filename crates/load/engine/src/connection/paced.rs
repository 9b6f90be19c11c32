//! Calls whose messages leave on a schedule.

use super::Conn;
use http2::ReleasedMessage;

impl Conn {
    /// Sends the next message of the call with this index. Returns `None` if the call is no longer
    /// here, or all its messages were sent.
    pub(crate) fn release_message(&mut self, index: u64) -> Option<ReleasedMessage> {
        let work = self.work.as_mut()?;
        let row = work.calls.iter().position(|call| call.index == index)?;
        work.speaker.release(row, work.transport.plaintext())
    }
}
