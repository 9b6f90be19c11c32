//! Connects to Unix sockets whose listen queue is full. The kernel refuses such a connect with
//! EAGAIN and sends no notification when there is room, so it is retried by a timer and after a
//! connection to the same socket was closed; the worker's connect timeout ends it.

use crate::reactor::clock::monotonic;
use crate::reactor::connect::connect_unix;
use conduit::{Peer, Slot};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use units::Nanos;

/// Between two tries: doubled while the queue stays full.
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
const PAUSE_MAX: Nanos = Nanos::from_millis(8);

/// Connects that wait for room.
#[derive(Debug, Default)]
pub(crate) struct RoomQueue {
    lines: Vec<WaitingLine>,
    /// Instant of the next retry, and the delay of the one after it.
    next: Nanos,
    pause: Nanos,
}

/// Connects that wait for one Unix socket, in the order in which they were opened.
#[derive(Debug)]
struct WaitingLine {
    path: PathBuf,
    /// Waiting connects, each with the generation of its slot; a closed one stays until its turn.
    waiting: VecDeque<(Slot, u32)>,
}

/// The Unix socket that a connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineId(u32);

impl LineId {
    /// The connect waits for no socket.
    pub(crate) const NONE: LineId = LineId(u32::MAX);
}

impl Default for LineId {
    fn default() -> LineId {
        LineId::NONE
    }
}

impl RoomQueue {
    /// Returns the line of a peer.
    pub(crate) fn line(&mut self, peer: &Peer) -> LineId {
        let Peer::Unix(path) = peer else { return LineId::NONE };
        // by bytes: comparing paths takes them apart
        let known = self.lines.iter().position(|line| line.path.as_os_str() == path.as_os_str());
        let index = known.unwrap_or_else(|| {
            self.lines.push(WaitingLine { path: path.clone(), waiting: VecDeque::new() });
            self.lines.len() - 1
        });
        LineId(index as u32)
    }

    /// Returns whether a connect now would overtake waiting ones.
    pub(crate) fn is_waited_for(&self, line: LineId) -> bool {
        self.lines.get(line.0 as usize).is_some_and(|line| !line.waiting.is_empty())
    }

    pub(crate) fn push(&mut self, line: LineId, slot: Slot, generation: u32, now: Nanos) {
        if self.next_try().is_none() {
            (self.next, self.pause) = (now + PAUSE_MIN, PAUSE_MIN);
        }
        if let Some(line) = self.lines.get_mut(line.0 as usize) {
            line.waiting.push_back((slot, generation));
        }
    }

    /// Handles a closed connection: the server may accept the next one, so waiting connects are
    /// retried at once.
    pub(crate) fn closed(&mut self, line: LineId) {
        if self.is_waited_for(line) {
            self.next = Nanos::ZERO;
        }
    }

    /// Returns when [`RoomQueue::look`] is due; `None` if no connect waits.
    pub(crate) fn next_try(&self) -> Option<Nanos> {
        self.lines.iter().any(|line| !line.waiting.is_empty()).then_some(self.next)
    }

    /// Retries the due connects and returns the slots with news. `socket`: the socket of a slot if
    /// its generation still matches.
    #[cold]
    pub(crate) fn look<'a>(
        &mut self,
        socket: impl Fn(Slot, u32) -> Option<BorrowedFd<'a>>,
    ) -> Vec<(Slot, Result<(), Errno>)> {
        let now = monotonic();
        if now < self.next {
            return Vec::new();
        }
        self.retry(now, |slot, generation, path| {
            Some(connect_unix(socket(slot, generation)?, path))
        })
    }

    /// Retries the connects of each line until the listen queue is full. `connect` gets a slot and
    /// its generation, and returns `None` for a connect that was closed meanwhile.
    fn retry(
        &mut self,
        now: Nanos,
        mut connect: impl FnMut(Slot, u32, &Path) -> Option<Result<(), Errno>>,
    ) -> Vec<(Slot, Result<(), Errno>)> {
        let mut news = Vec::new();
        for line in &mut self.lines {
            while let Some((slot, generation)) = line.waiting.front().copied() {
                match connect(slot, generation, &line.path) {
                    Some(Err(Errno::AGAIN)) => break,
                    Some(connected) => news.push((slot, connected)),
                    None => {}
                }
                line.waiting.pop_front();
            }
        }
        let pause = if news.is_empty() { self.pause * 2 } else { PAUSE_MIN };
        self.pause = pause.min(PAUSE_MAX);
        self.next = now + self.pause;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns which of the slots 0, 1, … wait, with their sockets.
    fn waiting(paths: &[&str]) -> RoomQueue {
        let mut queue = RoomQueue::default();
        for (slot, path) in paths.iter().enumerate() {
            let line = queue.line(&Peer::Unix(path.into()));
            queue.push(line, slot as Slot, 1, Nanos::ZERO);
        }
        queue
    }

    /// Runs the due retries while `room` has entries: how many connects find room each time. The
    /// connections of `closed` have ended.
    fn run_retries(queue: &mut RoomQueue, closed: &[Slot], room: &[usize]) -> Vec<String> {
        let mut lines = Vec::new();
        for room in room {
            let Some(now) = queue.next_try() else { break };
            let (mut left, mut tried) = (*room, 0);
            let news = queue.retry(now, |slot, _, path| {
                if closed.contains(&slot) {
                    return None;
                }
                tried += 1;
                if path.ends_with("gone") {
                    return Some(Err(Errno::CONNREFUSED));
                }
                Some(left.checked_sub(1).map(|rest| left = rest).ok_or(Errno::AGAIN))
            });
            let news = news.iter().map(|(slot, end)| match end {
                Ok(()) => format!(", {slot} connected"),
                Err(errno) => format!(", {slot} {:?}", crate::reactor::failure::class(*errno)),
            });
            let news: String = news.collect();
            lines.push(format!("{} ms: {tried} tried{news}", now.0 / 1_000_000));
        }
        lines
    }

    #[test]
    fn a_full_queue_is_retried_rarely_and_in_turn() {
        let expected = [
            "1 ms: 1 tried",
            "3 ms: 1 tried",
            "7 ms: 1 tried",
            "15 ms: 1 tried",
            "23 ms: 3 tried, 0 connected, 1 connected",
            "24 ms: 1 tried, 2 connected",
        ];
        assert_eq!(
            run_retries(&mut waiting(&["a", "a", "a"]), &[], &[0, 0, 0, 0, 2, 9, 9]),
            expected
        );
    }

    #[test]
    fn a_closed_socket_blocks_no_other() {
        let expected = ["1 ms: 2 tried, 1 Refused", "2 ms: 1 tried, 0 connected"];
        assert_eq!(run_retries(&mut waiting(&["a", "gone"]), &[], &[0, 1, 1]), expected);
    }

    #[test]
    fn a_closed_slot_is_not_retried() {
        let mut queue = waiting(&["a", "a", "a", "a"]);
        let expected = ["1 ms: 2 tried, 1 connected", "2 ms: 1 tried, 3 connected"];
        assert_eq!(run_retries(&mut queue, &[0, 2], &[1, 1, 1]), expected);
        assert_eq!(run_retries(&mut waiting(&["a"]), &[0], &[1, 1]), ["1 ms: 0 tried"]);
    }

    #[test]
    fn a_close_triggers_retries_of_its_socket() {
        let mut queue = waiting(&["a"]);
        let (a, b) = (queue.line(&Peer::Unix("a".into())), queue.line(&Peer::Unix("b".into())));
        queue.closed(b);
        queue.closed(LineId::NONE);
        assert_eq!(queue.next_try(), Some(PAUSE_MIN));
        queue.closed(a);
        assert_eq!(queue.next_try(), Some(Nanos::ZERO));
        assert!(queue.is_waited_for(a) && !queue.is_waited_for(b));
    }
}
