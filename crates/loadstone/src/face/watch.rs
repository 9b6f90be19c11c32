//! A face as the watcher of its run.

use anyhow::Context;
use engine::{Order, Row};
use faces::{Face, FaceDecision, FaceOutput, Interval};
use sample::{CallRecord, Ends};
use session::Watcher;
use session::console::{stderr, stdout};
use stats::{Second, Snapshot};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::rc::Rc;

/// Passes calls and rows to the face and prints its output.
pub(super) struct Watch {
    face: Rc<RefCell<Box<dyn Face>>>,
    log: Option<File>,
    wish: FaceDecision,
    /// The first error of the log, reported when the run ends.
    broken: anyhow::Result<()>,
}

impl Watch {
    pub(super) fn new(face: Rc<RefCell<Box<dyn Face>>>, log: Option<File>) -> Watch {
        Watch { face, log, wish: FaceDecision::GoOn, broken: Ok(()) }
    }

    fn apply(&mut self, output: &FaceOutput) -> anyhow::Result<()> {
        if output.wish != FaceDecision::GoOn {
            self.wish = output.wish;
        }
        if let Some(log) = self.log.as_mut().filter(|_| !output.log.is_empty()) {
            log.write_all(output.log.as_bytes()).context("cannot write to the log")?;
        }
        print(output);
        Ok(())
    }

    fn stop_on_error(&mut self, output: &FaceOutput) {
        if let Err(error) = self.apply(output) {
            self.wish = FaceDecision::Abandon;
            self.broken = Err(error);
        }
    }
}

impl Watcher for Watch {
    fn second(&mut self, second: &Second, total: &Snapshot) {
        let output = self.face.borrow_mut().row(second, total);
        self.stop_on_error(&output);
    }

    fn ends(&mut self, ends: &Ends) {
        let output = self.face.borrow_mut().ends(ends);
        self.stop_on_error(&output);
    }

    fn row(&mut self, row: &Row) {
        let Row { worker, start, end, ref snapshot, .. } = *row;
        let output = self.face.borrow_mut().interval(&Interval { worker, start, end, snapshot });
        self.stop_on_error(&output);
    }

    fn calls(&mut self, calls: &[CallRecord]) -> anyhow::Result<()> {
        let output = self.face.borrow_mut().calls(calls);
        self.apply(&output)
    }

    fn order(&self) -> Order {
        match self.wish {
            FaceDecision::GoOn => Order::Go,
            FaceDecision::Stop => Order::Stop,
            FaceDecision::Abandon => Order::Abandon,
        }
    }

    fn end(&mut self) {}

    fn close(&mut self) -> anyhow::Result<()> {
        std::mem::replace(&mut self.broken, Ok(()))
    }
}

/// Writes to both streams. As in the tools, which ignore SIGPIPE and the results of `printf`, a
/// closed reader neither ends the run nor changes the exit code.
pub(super) fn print(output: &FaceOutput) {
    let mut out = stdout();
    if !output.out.is_empty() {
        out.write_all(output.out.as_bytes()).and_then(|()| out.flush()).ok();
    }
    if !output.err.is_empty() {
        stderr().write_all(output.err.as_bytes()).ok();
    }
}
