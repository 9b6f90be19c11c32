//! Observers of a run: the run directory, the audit log, the progress line.

use dialogue::talk::TalkScript;
use torture::case::Case;
use torture::judge::Plain;
use torture::record::Execution;
use torture::result::{CaseResult, Probe, Shrunk};
use units::Nanos;

/// An event of a run.
#[derive(Clone, Copy, Debug)]
pub enum CampaignEvent<'a> {
    /// The probed page responded with this; no other request was sent before.
    Ready(&'a Plain),
    CaseBegins(&'a Case),
    ConversationOver(&'a Execution<'a>),
    /// The conversation with this name fails after only these, each on its own connection.
    FailsAfter {
        name: &'a str,
        before: &'a [TalkScript],
    },
    /// A health probe has completed.
    ProbeOver(&'a Probe),
    /// The campaign waits for these held connections, at most until this instant.
    Awaits {
        names: &'a [String],
        until: Nanos,
    },
    CaseOver(&'a CaseResult),
    /// A failure was shrunk; the execution is the final one.
    FailureShrunk {
        shrunk: &'a Shrunk,
        execution: &'a Execution<'a>,
    },
}

/// Receives every event.
pub trait Watcher {
    fn observe(&mut self, event: CampaignEvent<'_>);
}

/// An observer that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn observe(&mut self, _: CampaignEvent<'_>) {}
}

/// Several observers, notified in order.
#[derive(Default)]
pub struct Watchers<'a>(pub Vec<&'a mut dyn Watcher>);

impl std::fmt::Debug for Watchers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watchers({})", self.0.len())
    }
}

impl Watcher for Watchers<'_> {
    fn observe(&mut self, event: CampaignEvent<'_>) {
        self.0.iter_mut().for_each(|one| one.observe(event));
    }
}
