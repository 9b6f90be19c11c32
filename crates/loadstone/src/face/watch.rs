//! A face as the watcher of its run.

use anyhow::Context;
use engine::{Order, Row};
use faces::{Face, Interval, Said, Wish};
use sample::{CallRecord, Ends};
use session::Watcher;
use stats::{Second, Snapshot};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::rc::Rc;

/// Passes calls and rows to the face and prints its output.
pub(super) struct Watch {
    face: Rc<RefCell<Box<dyn Face>>>,
    log: Option<File>,
    wish: Wish,
    /// The first error of the log, reported when the run ends.
    broken: anyhow::Result<()>,
}

impl Watch {
    pub(super) fn new(face: Rc<RefCell<Box<dyn Face>>>, log: Option<File>) -> Watch {
        Watch { face, log, wish: Wish::GoOn, broken: Ok(()) }
    }

    fn heed(&mut self, said: &Said) -> anyhow::Result<()> {
        if said.wish != Wish::GoOn {
            self.wish = said.wish;
        }
        if let Some(log) = self.log.as_mut().filter(|_| !said.log.is_empty()) {
            log.write_all(said.log.as_bytes()).context("cannot write to the log")?;
        }
        print(said);
        Ok(())
    }

    fn stop_on_error(&mut self, said: &Said) {
        if let Err(error) = self.heed(said) {
            self.wish = Wish::Abandon;
            self.broken = Err(error);
        }
    }
}

impl Watcher for Watch {
    fn second(&mut self, second: &Second, total: &Snapshot) {
        let said = self.face.borrow_mut().row(second, total);
        self.stop_on_error(&said);
    }

    fn ends(&mut self, ends: &Ends) {
        let said = self.face.borrow_mut().ends(ends);
        self.stop_on_error(&said);
    }

    fn row(&mut self, row: &Row) {
        let Row { worker, start, end, ref snapshot, .. } = *row;
        let said = self.face.borrow_mut().interval(&Interval { worker, start, end, snapshot });
        self.stop_on_error(&said);
    }

    fn calls(&mut self, calls: &[CallRecord]) -> anyhow::Result<()> {
        let said = self.face.borrow_mut().calls(calls);
        self.heed(&said)
    }

    fn order(&self) -> Order {
        match self.wish {
            Wish::GoOn => Order::Go,
            Wish::Stop => Order::Stop,
            Wish::Abandon => Order::Abandon,
        }
    }

    fn end(&mut self) {}

    fn close(&mut self) -> anyhow::Result<()> {
        std::mem::replace(&mut self.broken, Ok(()))
    }
}

/// Writes to both streams. Like the tools, which ignore SIGPIPE and the results of `printf`: a
/// closed reader neither ends the run nor changes the exit code.
pub(super) fn print(said: &Said) {
    let mut out = std::io::stdout().lock();
    if !said.out.is_empty() {
        out.write_all(said.out.as_bytes()).and_then(|()| out.flush()).ok();
    }
    if !said.err.is_empty() {
        std::io::stderr().lock().write_all(said.err.as_bytes()).ok();
    }
}
