//! Requests that are sent in parts: on a schedule, or as soon as the peer permits.

use super::Conn;
use crate::call::Call;
use http2::ReleasedMessage;
use units::Nanos;

impl Conn {
    /// Sends the next message of the call with this index. `None` if the call has ended, or all its
    /// messages were sent.
    pub(crate) fn release_message(&mut self, index: u64) -> Option<ReleasedMessage> {
        let work = self.work.as_mut()?;
        let row = work.calls.iter().position(|call| call.index == index)?;
        work.speaker.release(row, work.transport.plaintext())
    }

    /// Returns the row of the user's call in this lane whose request is kept open.
    pub(crate) fn open_row(&self, user: u32, lane: u32) -> Option<usize> {
        let is_it = |call: &Call| call.user == user && call.open_lane() == Some(lane);
        self.work.as_ref()?.calls.iter().position(is_it)
    }

    /// Adds to the body of a request that is kept open. Returns false if too many bytes wait.
    pub(crate) fn extend(&mut self, row: usize, more: (&[u8], bool)) -> bool {
        let open = self.is_open();
        let Some(work) = self.work.as_mut() else { return true };
        if open {
            return work.speaker.extend(row, more, work.transport.plaintext());
        }
        // the call is put on another connection if this one cannot be established
        work.calls.get_mut(row).is_none_or(|call| call.keep_more(more))
    }

    /// Sends the bytes that its calls have kept for an established connection.
    pub(crate) fn send_kept(&mut self) {
        let Some(work) = self.work.as_deref_mut().filter(|work| work.speaker.is_multiplexed())
        else {
            return;
        };
        for (row, call) in work.calls.iter_mut().enumerate() {
            if let Some((bytes, ends)) = call.take_more() {
                let taken = work.speaker.extend(row, (&bytes, ends), work.transport.plaintext());
                debug_assert!(taken, "kept bytes have the limit of a stream's queue");
            }
        }
    }

    /// Returns the index of the call in this row and the time it has waited for a stream; `None` if
    /// its stream is open.
    pub(crate) fn stream_wait(&self, row: usize, now: Nanos) -> Option<(u64, Nanos)> {
        let work = self.work.as_ref().filter(|work| self.is_open() && work.speaker.waits(row))?;
        let call = work.calls.get(row)?;
        Some((call.index, now - call.issued.max(self.established)))
    }

    /// Counts the bytes sent at `now` for requests that waited for room, or for a stream. `waited` is
    /// called with the index of each call that waited for a stream, and its wait.
    pub(crate) fn count_late_bytes(&mut self, now: Nanos, mut waited: impl FnMut(u64, Nanos)) {
        let Some(work) = &mut self.work else { return };
        let has_streams = work.speaker.socket().is_none();
        while let Some(call) = work.speaker.take_opened() {
            if let Some(call) = work.calls.get_mut(call) {
                if has_streams {
                    waited(call.index, now - call.issued.max(self.established));
                }
                // the wait ends now, unless the connection was established later; the call has been
                // in flight since it was issued (law 1)
                if call.issued >= self.established {
                    call.admitted = now;
                }
                call.sent = now;
            }
        }
        while let Some(late) = work.speaker.take_late() {
            if let Some(call) = work.calls.get_mut(late.place) {
                call.bytes_sent += late.bytes;
                call.written = now;
                if late.begins {
                    waited(call.index, now - call.issued.max(self.established));
                    call.sent = now;
                }
            }
        }
    }
}
