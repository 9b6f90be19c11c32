//! Connections that are WebSockets.

use super::{Conn, Work};
use crate::call::Call;
use crate::speaker::EndpointKind;
use crate::speaker::websocket::{Conclusion, RestingSocket, SocketNews, SocketSpeaker};
use units::Nanos;
use workload::Template;

impl Conn {
    /// Returns the events on the WebSocket since the last query.
    #[inline]
    pub(crate) fn take_news(&mut self) -> Option<SocketNews> {
        self.work.as_mut()?.speaker.socket()?.take_news()
    }

    /// Sends a heartbeat on the WebSocket.
    pub(crate) fn ping(&mut self, now: Nanos) {
        if let Some(work) = &mut self.work
            && let Some(socket) = work.speaker.socket()
        {
            socket.ping(now, work.transport.plaintext());
        }
    }

    /// Concludes the oldest call on the WebSocket, if it waits for no response.
    pub(crate) fn conclude_sent(&mut self) -> Conclusion {
        let Some(work) = self.work.as_mut() else { return Conclusion::ByEvent };
        let sent = !work.transport.has_output();
        work.speaker.socket().map_or(Conclusion::ByEvent, |socket| socket.conclude_sent(sent))
    }

    /// Requests the upgrade of a connection without a call, as a member of a room.
    pub(crate) fn join(&mut self, template: &Template, room: u64, index: u64) {
        if let Some(work) = &mut self.work
            && let Some(socket) = work.speaker.socket()
        {
            socket.join(template, room, index, work.transport.plaintext());
        }
    }

    /// Refuses further calls, so that the connection is closed after its last response.
    pub(crate) fn use_up(&mut self) {
        self.assigned = u32::MAX;
    }

    /// Returns whether it is a WebSocket whose handshake is complete.
    pub(crate) fn has_open_socket(&mut self) -> bool {
        let socket = self.work.as_mut().and_then(|work| work.speaker.socket());
        socket.is_some_and(|socket| socket.is_open())
    }

    /// Notes that the client ends the WebSocket without a close frame.
    pub(crate) fn reset_socket(&mut self) {
        if let Some(socket) = self.work.as_mut().and_then(|work| work.speaker.socket()) {
            socket.reset();
        }
    }

    /// Returns whether it is a WebSocket whose close frame the client sent first. The server then
    /// ends the connection (RFC 6455 section 7.1.1).
    #[inline(never)]
    pub(super) fn is_closed_by_client(&mut self) -> bool {
        let socket = self.work.as_mut().and_then(|work| work.speaker.socket());
        socket.is_some_and(|socket| socket.is_closed_by_client())
    }

    /// Returns the key of the message that was sent last.
    pub(crate) fn sent_key(&mut self) -> Option<u64> {
        self.work.as_mut()?.speaker.socket()?.sent_key()
    }

    /// Returns the content of the response to the call that ended last, on a WebSocket of a
    /// journey.
    pub(crate) fn take_answer(&mut self) -> Option<Vec<u8>> {
        self.work.as_mut()?.speaker.socket()?.take_answer()
    }

    /// Takes messages that still wait for a call when the WebSocket ends.
    pub(crate) fn take_left_over(&mut self) -> Vec<Vec<u8>> {
        let socket = self.work.as_mut().and_then(|work| work.speaker.socket());
        socket.map(SocketSpeaker::take_left_over).unwrap_or_default()
    }

    /// Returns the row of a call that listens on a WebSocket.
    pub(crate) fn listening_row(&self) -> Option<usize> {
        self.work.as_ref()?.calls.iter().position(Call::listens)
    }

    /// Takes the working state of an open WebSocket without calls. Returns it and the part that
    /// must be kept while the WebSocket is idle. WebSockets with TLS or compression, and those of
    /// journeys, keep their state: for them it returns `None`.
    pub(crate) fn rest_socket(&mut self) -> Option<(Box<Work>, RestingSocket)> {
        let open = self.is_open();
        let work = self.work.as_mut().filter(|work| open && work.calls.is_empty())?;
        if !work.transport.is_plain() || work.setup.is_some() {
            return None;
        }
        let state = work.speaker.socket()?.state_at_rest()?;
        self.work.take().map(|work| (work, state))
    }

    /// Continues a connection without working state.
    pub(crate) fn resume(&mut self, work: Box<Work>) {
        self.work = Some(work);
    }

    /// Returns whether the connection is a WebSocket.
    pub(crate) fn is_socket(&mut self) -> bool {
        self.work.as_mut().is_some_and(|work| work.speaker.socket().is_some())
    }

    /// Drops the working state if the next connection is of another kind.
    pub(crate) fn keep_work_for(&mut self, kind: EndpointKind) {
        if self.work.as_ref().is_some_and(|work| work.kind() != kind) {
            self.work = None;
        }
    }
}
