//! Rooms of WebSockets: a message of a member goes to all members, including the sender.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast;

/// Maximum number of messages queued for a member; it loses older ones.
const BACKLOG_MAX: usize = 4_096;
/// Maximum number of rooms with members.
const ROOMS_MAX: usize = 10_000;

/// A message to all members.
#[derive(Clone, Debug)]
pub(super) struct RoomMessage {
    pub(super) text: bool,
    pub(super) payload: Arc<[u8]>,
}

/// All rooms of a server, by name.
#[derive(Debug, Default)]
pub(crate) struct Rooms(Mutex<BTreeMap<String, broadcast::Sender<RoomMessage>>>);

/// A member's access to its room.
#[derive(Debug)]
pub(super) struct Membership {
    sender: broadcast::Sender<RoomMessage>,
    receiver: broadcast::Receiver<RoomMessage>,
}

impl Rooms {
    /// Joins the room of this name; `None` if there are too many rooms.
    pub(super) fn join(&self, name: &str) -> Option<Membership> {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rooms.len() >= ROOMS_MAX {
            rooms.retain(|_, room| room.receiver_count() > 0);
        }
        if rooms.len() >= ROOMS_MAX && !rooms.contains_key(name) {
            return None;
        }
        let sender = rooms.entry(name.to_owned());
        let sender = sender.or_insert_with(|| broadcast::channel(BACKLOG_MAX).0).clone();
        let receiver = sender.subscribe();
        Some(Membership { sender, receiver })
    }
}

impl Membership {
    pub(super) fn send(&self, message: RoomMessage) {
        // the sender is a member itself: there is always a receiver
        self.sender.send(message).ok();
    }

    /// The next message to the room.
    pub(super) async fn next(&mut self) -> RoomMessage {
        loop {
            match self.receiver.recv().await {
                Ok(message) => return message,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
            }
        }
    }

    /// The next message that has already arrived.
    pub(super) fn ready(&mut self) -> Option<RoomMessage> {
        self.receiver.try_recv().ok()
    }
}
