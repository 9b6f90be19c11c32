//! Who looks on while a run is under way: the run directory, the audit log, the progress line.

use dialogue::talk::TalkScript;
use torture::case::Case;
use torture::judge::Plain;
use torture::record::Execution;
use torture::result::{CaseResult, Probe, Shrunk};

/// Hears of everything as it happens.
pub trait Watcher {
    /// The probed page answers, and this is what; nothing else was sent before.
    fn ready(&mut self, _plain: &Plain) {}

    /// A case begins.
    fn begin(&mut self, _case: &Case) {}

    /// A conversation is over.
    fn execution(&mut self, _execution: &Execution<'_>) {}

    /// The conversation of this name fails behind these alone, each on a connection of its own.
    fn behind(&mut self, _name: &str, _before: &[TalkScript]) {}

    /// A probe of the server's health is over.
    fn probe(&mut self, _probe: &Probe) {}

    /// A case is over.
    fn case(&mut self, _result: &CaseResult) {}

    /// A failure was shrunk; the execution is that of what is left.
    fn shrunk(&mut self, _shrunk: &Shrunk, _execution: &Execution<'_>) {}
}

/// Nobody looks on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {}

/// Several look on, told in their order.
#[derive(Default)]
pub struct Watchers<'a>(pub Vec<&'a mut dyn Watcher>);

impl std::fmt::Debug for Watchers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watchers({})", self.0.len())
    }
}

impl Watcher for Watchers<'_> {
    fn ready(&mut self, plain: &Plain) {
        self.0.iter_mut().for_each(|one| one.ready(plain));
    }

    fn begin(&mut self, case: &Case) {
        self.0.iter_mut().for_each(|one| one.begin(case));
    }

    fn execution(&mut self, execution: &Execution<'_>) {
        self.0.iter_mut().for_each(|one| one.execution(execution));
    }

    fn behind(&mut self, name: &str, before: &[TalkScript]) {
        self.0.iter_mut().for_each(|one| one.behind(name, before));
    }

    fn probe(&mut self, probe: &Probe) {
        self.0.iter_mut().for_each(|one| one.probe(probe));
    }

    fn case(&mut self, result: &CaseResult) {
        self.0.iter_mut().for_each(|one| one.case(result));
    }

    fn shrunk(&mut self, shrunk: &Shrunk, execution: &Execution<'_>) {
        self.0.iter_mut().for_each(|one| one.shrunk(shrunk, execution));
    }
}
