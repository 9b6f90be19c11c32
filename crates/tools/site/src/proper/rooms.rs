//! Rooms of WebSockets: a message of a member is sent to all members, including the sender.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

/// Maximum number of messages queued for a member, which loses newer ones. A queue takes memory in
/// small blocks, as needed.
const BACKLOG_MAX: usize = 4_096;
/// Maximum number of rooms with members.
pub(super) const ROOMS_MAX: usize = 10_000;

/// A message to all members.
#[derive(Clone, Debug)]
pub(super) struct RoomMessage {
    pub(super) text: bool,
    pub(super) payload: Arc<[u8]>,
}

/// Queues of a room's members, by their numbers.
type Members = Mutex<BTreeMap<u64, mpsc::Sender<RoomMessage>>>;

/// All rooms of a server, by name.
#[derive(Debug, Default)]
pub(crate) struct Rooms(Mutex<BTreeMap<String, Arc<Members>>>);

/// A member's access to its room; dropping it leaves the room.
#[derive(Debug)]
pub(super) struct Membership {
    room: Arc<Members>,
    number: u64,
    receiver: mpsc::Receiver<RoomMessage>,
}

impl Rooms {
    /// Joins the room of this name; `None` if there are too many rooms.
    pub(super) fn join(&self, name: &str) -> Option<Membership> {
        let mut rooms = locked(&self.0);
        if rooms.len() >= ROOMS_MAX {
            rooms.retain(|_, room| !locked(room).is_empty());
        }
        if rooms.len() >= ROOMS_MAX && !rooms.contains_key(name) {
            return None;
        }
        let room = rooms.entry(name.to_owned()).or_default().clone();
        let (sender, receiver) = mpsc::channel(BACKLOG_MAX);
        let number = {
            let mut members = locked(&room);
            let number = members.last_key_value().map_or(0, |(last, _)| last + 1);
            members.insert(number, sender);
            number
        };
        Some(Membership { room, number, receiver })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Membership {
    pub(super) fn send(&self, message: &RoomMessage) {
        for member in locked(&self.room).values() {
            // a member that does not read loses it
            member.try_send(message.clone()).ok();
        }
    }

    /// Returns the next message to the room.
    pub(super) async fn next(&mut self) -> RoomMessage {
        match self.receiver.recv().await {
            Some(message) => message,
            None => std::future::pending().await,
        }
    }

    /// Returns the next message that has already arrived.
    pub(super) fn ready(&mut self) -> Option<RoomMessage> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        locked(&self.room).remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_beyond_the_limit_is_refused_until_one_is_empty() {
        let rooms = Rooms::default();
        let mut all: Vec<_> =
            (0..ROOMS_MAX).map(|number| rooms.join(&number.to_string()).unwrap()).collect();
        assert!(rooms.join("one more").is_none());
        assert!(rooms.join("7").is_some(), "a known room takes further members");
        all.pop();
        assert!(rooms.join("one more").is_some());
    }

    #[test]
    fn each_member_has_every_message_up_to_its_backlog() {
        let rooms = Rooms::default();
        let (mut fast, mut slow) = (rooms.join("a").unwrap(), rooms.join("a").unwrap());
        for number in 0..BACKLOG_MAX + 10 {
            let payload = number.to_string().into_bytes().into();
            fast.send(&RoomMessage { text: true, payload });
            let own = fast.ready().unwrap();
            assert_eq!(&*own.payload, number.to_string().as_bytes());
        }
        let held = std::iter::from_fn(|| slow.ready()).count();
        assert_eq!(held, BACKLOG_MAX);
    }
}
