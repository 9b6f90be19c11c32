//! Connects to Unix sockets whose listen queue is full. The kernel refuses such a connect with EAGAIN and
//! tells nobody when there is room, so it is tried again by a timer; the worker's limit for connects ends it.

use conduit::Slot;
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use units::Nanos;

/// Between two tries: doubled while the queue stays full.
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
const PAUSE_MAX: Nanos = Nanos::from_millis(8);

/// The connects that wait, in the order in which they were opened.
#[derive(Debug, Default)]
pub(crate) struct RoomQueue {
    waiting: Vec<WaitingConnect>,
    /// When the next try is due, and how long after that the one behind it.
    next: Nanos,
    pause: Nanos,
}

#[derive(Debug)]
struct WaitingConnect {
    slot: Slot,
    path: PathBuf,
    /// Why it will not come to a connection; told when the worker writes next.
    failed: Option<Errno>,
}

/// What is known of a connect that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoomState {
    NotYet,
    Failed(Errno),
}

impl RoomQueue {
    pub(crate) fn push(&mut self, slot: Slot, path: &Path, now: Nanos) {
        if self.next_try().is_none() {
            (self.next, self.pause) = (now + PAUSE_MIN, PAUSE_MIN);
        }
        self.waiting.push(WaitingConnect { slot, path: path.to_owned(), failed: None });
    }

    /// The connection of a slot is over.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.waiting.retain(|waiting| waiting.slot != slot);
    }

    /// `None`: the slot does not wait.
    pub(crate) fn state(&self, slot: Slot) -> Option<RoomState> {
        let waiting = self.waiting.iter().find(|waiting| waiting.slot == slot)?;
        Some(waiting.failed.map_or(RoomState::NotYet, RoomState::Failed))
    }

    /// When [`RoomQueue::retry`] is due; `None`: nobody waits.
    pub(crate) fn next_try(&self) -> Option<Nanos> {
        self.waiting.iter().any(|waiting| waiting.failed.is_none()).then_some(self.next)
    }

    /// Tries the connects again; gives back the slots of which there is news. Of those to one socket that
    /// stand behind one without room none is tried: they would find none either, and come in their turn.
    pub(crate) fn retry(
        &mut self,
        now: Nanos,
        mut connect: impl FnMut(Slot, &Path) -> Result<(), Errno>,
    ) -> Vec<Slot> {
        let mut full: Vec<PathBuf> = Vec::new();
        let mut news = Vec::new();
        self.waiting.retain_mut(|waiting| {
            if waiting.failed.is_some() || full.contains(&waiting.path) {
                return true;
            }
            match connect(waiting.slot, &waiting.path) {
                Err(Errno::AGAIN) => {
                    full.push(waiting.path.clone());
                    return true;
                }
                Err(Errno::INTR) => return true,
                Ok(()) => {}
                Err(errno) => waiting.failed = Some(errno),
            }
            news.push(waiting.slot);
            waiting.failed.is_some()
        });
        let pause = if news.is_empty() { self.pause * 2 } else { PAUSE_MIN };
        self.pause = pause.min(PAUSE_MAX);
        self.next = now + self.pause;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Retries at each instant that is due, while `room` has an entry for each: how many connects find room.
    fn told(waiting: &[&str], room: &[usize]) -> Vec<String> {
        let mut queue = RoomQueue::default();
        for (slot, path) in waiting.iter().enumerate() {
            queue.push(slot as Slot, Path::new(path), Nanos::ZERO);
        }
        let mut lines = Vec::new();
        for room in room {
            let Some(now) = queue.next_try() else { break };
            let (mut left, mut tried) = (*room, 0);
            let news = queue.retry(now, |_, path| {
                tried += 1;
                if path.ends_with("gone") {
                    return Err(Errno::CONNREFUSED);
                }
                left = left.checked_sub(1).ok_or(Errno::AGAIN)?;
                Ok(())
            });
            lines.push(format!("{} ms: {tried} tried, news of {news:?}", now.0 / 1_000_000));
        }
        lines
    }

    #[test]
    fn a_full_queue_is_asked_seldom_and_in_turn() {
        let expected = [
            "1 ms: 1 tried, news of []",
            "3 ms: 1 tried, news of []",
            "7 ms: 1 tried, news of []",
            "15 ms: 1 tried, news of []",
            "23 ms: 3 tried, news of [0, 1]",
            "24 ms: 1 tried, news of [2]",
        ];
        assert_eq!(told(&["a", "a", "a"], &[0, 0, 0, 0, 2, 9, 9]), expected);
    }

    #[test]
    fn a_socket_that_is_gone_keeps_no_other_waiting() {
        let expected = ["1 ms: 2 tried, news of [1]", "2 ms: 1 tried, news of [0]"];
        assert_eq!(told(&["a", "gone"], &[0, 1, 1]), expected);
        let mut queue = RoomQueue::default();
        queue.push(3, Path::new("gone"), Nanos::ZERO);
        assert_eq!(queue.state(3), Some(RoomState::NotYet));
        queue.retry(Nanos::from_millis(1), |_, _| Err(Errno::CONNREFUSED));
        assert_eq!(queue.state(3), Some(RoomState::Failed(Errno::CONNREFUSED)));
        queue.forget(3);
        assert_eq!(queue.state(3), None);
    }
}
