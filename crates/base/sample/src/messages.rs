//! Facts of open conversations with messages in both directions, such as WebSocket connections.

use units::Nanos;

/// Counts of conversations and their messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketCounts {
    /// Handshakes that succeeded.
    pub opened: u64,
    /// Number of connections among them that negotiated compression.
    pub compressed: u64,
    /// HTTP/2 connections that carried them; 0 if each had its own.
    pub carriers: u64,
    /// Messages sent.
    pub sent: u64,
    /// Complete messages received.
    pub received: u64,
    /// Messages among them that matched no outstanding message.
    pub unmatched: u64,
    /// Answers among them to messages that had timed out.
    pub late: u64,
    /// Frames of the received messages.
    pub frames_received: u64,
    /// Bytes of payload, before compression.
    pub payload_sent: u64,
    pub payload_received: u64,
    /// Bytes of the frames of messages.
    pub wire_sent: u64,
    pub wire_received: u64,
    /// Heartbeats sent, and their pongs.
    pub pings: u64,
    pub pongs: u64,
}

impl SocketCounts {
    pub fn merge(&mut self, other: &SocketCounts) {
        self.opened += other.opened;
        self.compressed += other.compressed;
        self.carriers += other.carriers;
        self.sent += other.sent;
        self.received += other.received;
        self.unmatched += other.unmatched;
        self.late += other.late;
        self.frames_received += other.frames_received;
        self.payload_sent += other.payload_sent;
        self.payload_received += other.payload_received;
        self.wire_sent += other.wire_sent;
        self.wire_received += other.wire_received;
        self.pings += other.pings;
        self.pongs += other.pongs;
    }
}

/// A duration of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketTime {
    /// Time from the upgrade request to the end of its response.
    Handshake(Nanos),
    /// Time from one message from the server to the next.
    Gap(Nanos),
    /// Time from a ping to its pong.
    Ping(Nanos),
}

/// End of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SocketClose {
    /// The client sent the close frame, with this code.
    Client(u16),
    /// The server sent the close frame; 1005: without a code.
    Server(u16),
    /// The connection ended without a close frame (1006).
    Lost,
    /// The server broke the protocol; the client closed with this code.
    Violation(u16),
    /// The handshake failed.
    Refused,
}

impl SocketClose {
    /// Returns whether the WebSocket ended without the closing handshake, by a violation, or with a
    /// code that reports a failure.
    pub fn is_abnormal(self) -> bool {
        match self {
            SocketClose::Client(_) => false,
            SocketClose::Server(code) => !matches!(code, 1000 | 1001 | 1005 | 3000..=4999),
            SocketClose::Lost | SocketClose::Violation(_) | SocketClose::Refused => true,
        }
    }

    /// Returns the side that ended it, as published.
    pub fn side(self) -> &'static str {
        match self {
            SocketClose::Client(_) => "client",
            SocketClose::Server(_) => "server",
            SocketClose::Lost => "lost",
            SocketClose::Violation(_) => "violation",
            SocketClose::Refused => "refused",
        }
    }

    /// Returns the close code; 1006 if none was sent.
    pub fn code(self) -> u16 {
        match self {
            SocketClose::Client(code) | SocketClose::Server(code) => code,
            SocketClose::Violation(code) => code,
            SocketClose::Lost | SocketClose::Refused => 1006,
        }
    }
}

/// Outcome of a message that one member of a room published for all others. `due`: its due instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanOutEvent {
    /// A member received it; `in_order`: after all earlier messages that it has received.
    Delivered { due: Nanos, at: Nanos, in_order: bool },
    /// A member received it again.
    Duplicate { due: Nanos },
    /// All receivers have the message, or its time limit has passed. `first`, `last`: when a
    /// receiver got it.
    Settled { due: Nanos, expected: u64, received: u64, first: Nanos, last: Nanos },
}

impl FanOutEvent {
    /// Returns the due instant of the message.
    pub fn due(self) -> Nanos {
        match self {
            FanOutEvent::Delivered { due, .. }
            | FanOutEvent::Duplicate { due }
            | FanOutEvent::Settled { due, .. } => due,
        }
    }
}
