//! Timeouts: one list and one ticking task per serving thread, as in the chapter, whose first
//! design (a waiting thread per connection) overloaded its server.
//!
//! A timeout expires once the server has waited for the client for the configured time, to within a
//! sixteenth; time in which the server works does not count.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

/// Steps in which time is counted towards a time-out.
const STEPS: u32 = 16;

/// Event that the server waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Not waiting for the client: a node is processing the request.
    Nothing,
    /// A request's head, including its first byte.
    Head,
    /// More of a request's body.
    Body,
    /// Waits for the client to receive more of the response.
    Taking,
}

/// Timeouts of one thread.
#[derive(Debug)]
pub(crate) struct Aborts {
    timeout: Duration,
    now: Rc<Cell<u64>>,
    next: Cell<u64>,
    watched: RefCell<BTreeMap<u64, Rc<Watch>>>,
}

/// Waiting state of a connection.
#[derive(Debug)]
pub(crate) struct Watch {
    waiting: Cell<Waiting>,
    /// The step in which the waiting began.
    since: Cell<u64>,
    now: Rc<Cell<u64>>,
    overdue: Notify,
}

/// A connection's place in the list; dropping it frees the place.
#[derive(Debug)]
pub(crate) struct Abort {
    aborts: Rc<Aborts>,
    id: u64,
}

impl Aborts {
    pub(crate) fn new(timeout: Duration) -> Aborts {
        Aborts { timeout, now: Rc::default(), next: Cell::new(0), watched: RefCell::default() }
    }

    /// Counts the steps forever.
    pub(crate) async fn tick(&self) {
        let step = (self.timeout / STEPS).max(Duration::from_millis(1));
        loop {
            tokio::time::sleep(step).await;
            self.step();
        }
    }

    fn step(&self) {
        let now = self.now.get() + 1;
        self.now.set(now);
        for watch in self.watched.borrow().values() {
            if watch.is_overdue(now) {
                watch.overdue.notify_one();
            }
        }
    }

    /// Starts a watch that waits for a request's head.
    pub(crate) fn watch(&self) -> Rc<Watch> {
        Rc::new(Watch {
            waiting: Cell::new(Waiting::Head),
            since: Cell::new(self.now.get()),
            now: Rc::clone(&self.now),
            overdue: Notify::new(),
        })
    }

    /// Adds a watch to the list.
    pub(crate) fn request(self: &Rc<Aborts>, watch: Rc<Watch>) -> Abort {
        let id = self.next.get();
        self.next.set(id + 1);
        self.watched.borrow_mut().insert(id, watch);
        Abort { aborts: Rc::clone(self), id }
    }
}

impl Watch {
    /// Restarts the wait, for this event.
    pub(crate) fn wait_for(&self, waiting: Waiting) {
        self.waiting.set(waiting);
        self.since.set(self.now.get());
    }

    pub(crate) fn waiting(&self) -> Waiting {
        self.waiting.get()
    }

    /// Records that a write found the socket full: the wait begins, if it has not begun.
    pub(crate) fn write_blocked(&self) {
        if self.waiting.get() == Waiting::Nothing {
            self.wait_for(Waiting::Taking);
        }
    }

    /// Records that the client accepted data.
    pub(crate) fn note_written(&self) {
        match self.waiting.get() {
            Waiting::Taking => self.waiting.set(Waiting::Nothing),
            // the rest of the last response is still sent
            Waiting::Head => self.since.set(self.now.get()),
            Waiting::Nothing | Waiting::Body => {}
        }
    }

    fn is_overdue(&self, now: u64) -> bool {
        // the step in which the wait started was already in progress: one more makes a whole
        // timeout
        self.waiting.get() != Waiting::Nothing && now - self.since.get() > u64::from(STEPS)
    }

    /// Ends once the server has waited too long.
    pub(crate) async fn overdue(&self) {
        self.overdue.notified().await;
    }
}

impl Drop for Abort {
    fn drop(&mut self) {
        self.aborts.watched.borrow_mut().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(aborts: &Aborts, count: u32) {
        for _ in 0..count {
            aborts.step();
        }
    }

    fn overdue(aborts: &Aborts, watch: &Watch) -> bool {
        watch.is_overdue(aborts.now.get())
    }

    #[test]
    fn a_wait_is_overdue_after_its_time_and_work_does_not_count() {
        let aborts = Rc::new(Aborts::new(Duration::from_secs(10)));
        let watch = &aborts.watch();
        steps(&aborts, STEPS);
        assert!(!overdue(&aborts, watch));
        steps(&aborts, 1);
        assert!(overdue(&aborts, watch));
        watch.wait_for(Waiting::Nothing);
        steps(&aborts, 5 * STEPS);
        assert!(!overdue(&aborts, watch));
        watch.write_blocked();
        steps(&aborts, STEPS);
        watch.write_blocked();
        steps(&aborts, 1);
        assert!(overdue(&aborts, watch), "a second full write does not begin anew");
        watch.note_written();
        assert!(!overdue(&aborts, watch));
    }

    #[test]
    fn a_dripping_body_is_awaited_but_a_head_is_not() {
        let aborts = Rc::new(Aborts::new(Duration::from_secs(10)));
        let watch = aborts.watch();
        for _ in 0..100 {
            watch.wait_for(Waiting::Body);
            steps(&aborts, STEPS - 1);
            assert!(!overdue(&aborts, &watch));
        }
        watch.wait_for(Waiting::Head);
        steps(&aborts, STEPS + 1);
        assert!(overdue(&aborts, &watch));
    }

    #[test]
    fn a_dropped_time_out_leaves_the_list() {
        let aborts = Rc::new(Aborts::new(Duration::from_secs(1)));
        let first = aborts.request(aborts.watch());
        let second = aborts.request(aborts.watch());
        drop(first);
        assert_eq!(aborts.watched.borrow().keys().copied().collect::<Vec<_>>(), [1]);
        drop(second);
        assert!(aborts.watched.borrow().is_empty());
    }
}
