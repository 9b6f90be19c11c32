//! Connections that are WebSockets.

use super::Conn;
use crate::speaker::websocket::SocketNews;
use units::Nanos;

impl Conn {
    /// What happened on the WebSocket since this was last asked.
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

    /// The oldest message on the WebSocket has gone out whole and has no answer to wait for.
    pub(crate) fn conclude_sent(&mut self) -> bool {
        let Some(work) = self.work.as_mut() else { return false };
        !work.transport.has_output()
            && work.speaker.socket().is_some_and(|socket| socket.conclude_sent())
    }
}
