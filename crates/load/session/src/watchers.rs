//! Several watchers of one run, notified in order.

use crate::watcher::{Lease, Takeovers, Watcher};
use engine::{Order, Row};
use sample::{AgentNow, CallRecord, Ends};
use stats::{Second, Snapshot};
use std::sync::Arc;

/// Passes everything on to each watcher, in order; the most severe order applies.
pub struct Watchers(pub Vec<Box<dyn Watcher>>);

impl std::fmt::Debug for Watchers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watchers").finish_non_exhaustive()
    }
}

impl Watcher for Watchers {
    fn second(&mut self, second: &Second, total: &Snapshot) {
        self.0.iter_mut().for_each(|watcher| watcher.second(second, total));
    }

    fn agents(&mut self, agents: &[AgentNow]) {
        self.0.iter_mut().for_each(|watcher| watcher.agents(agents));
    }

    fn row(&mut self, row: &Row) {
        self.0.iter_mut().for_each(|watcher| watcher.row(row));
    }

    /// Notifies every watcher; returns the first error.
    fn calls(&mut self, calls: &[CallRecord]) -> anyhow::Result<()> {
        let mut result = Ok(());
        for watcher in &mut self.0 {
            result = result.and(watcher.calls(calls));
        }
        result
    }

    fn ends(&mut self, ends: &Ends) {
        self.0.iter_mut().for_each(|watcher| watcher.ends(ends));
    }

    fn order(&self) -> Order {
        let gravity = |order: &Order| match order {
            Order::Go => 0,
            Order::Stop => 1,
            Order::Abandon => 2,
        };
        self.0.iter().map(|watcher| watcher.order()).max_by_key(gravity).unwrap_or(Order::Go)
    }

    fn lease(&self) -> Option<Arc<Lease>> {
        self.0.iter().find_map(|watcher| watcher.lease())
    }

    fn takeovers(&self) -> Option<Arc<Takeovers>> {
        self.0.iter().find_map(|watcher| watcher.takeovers())
    }

    fn end(&mut self) {
        self.0.iter_mut().for_each(|watcher| watcher.end());
    }

    /// Closes every watcher; returns the first error.
    fn close(&mut self) -> anyhow::Result<()> {
        let mut closed = Ok(());
        for watcher in &mut self.0 {
            closed = closed.and(watcher.close());
        }
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    struct One {
        name: &'static str,
        wish: Order,
        events: Rc<RefCell<Vec<String>>>,
    }

    impl Watcher for One {
        fn second(&mut self, second: &Second, _: &Snapshot) {
            self.events.borrow_mut().push(format!("{} at {}", self.name, second.at_s));
        }

        fn calls(&mut self, _: &[CallRecord]) -> anyhow::Result<()> {
            self.events.borrow_mut().push(format!("{} calls", self.name));
            anyhow::bail!("{} cannot write", self.name)
        }

        fn order(&self) -> Order {
            self.wish
        }

        fn end(&mut self) {
            self.events.borrow_mut().push(format!("{} ends", self.name));
        }
    }

    #[test]
    fn all_watchers_are_notified_and_the_first_error_counts() {
        let events = Rc::new(RefCell::new(Vec::new()));
        let one = |name, wish| -> Box<dyn Watcher> {
            Box::new(One { name, wish, events: events.clone() })
        };
        let mut both = Watchers(vec![one("a", Order::Stop), one("b", Order::Go)]);
        both.second(&Second { at_s: 3.0, ..Second::default() }, &Snapshot::default());
        assert_eq!(both.calls(&[]).unwrap_err().to_string(), "a cannot write");
        both.end();
        both.close().unwrap();
        assert_eq!(both.order(), Order::Stop);
        let order = ["a at 3", "b at 3", "a calls", "b calls", "a ends", "b ends"];
        assert_eq!(*events.borrow(), order);
        assert_eq!(Watchers(Vec::new()).order(), Order::Go);
    }
}
