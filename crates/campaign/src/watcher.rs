//! Who looks on while a run is under way: the run directory, the audit log, the progress line.

use dialogue::talk::TalkScript;
use torture::case::Case;
use torture::judge::Plain;
use torture::record::Execution;
use torture::result::{CaseResult, Probe, Shrunk};

/// What happens in a run, as it happens.
#[derive(Clone, Copy, Debug)]
pub enum CampaignEvent<'a> {
    /// The probed page answers, and this is what; nothing else was sent before.
    Ready(&'a Plain),
    CaseBegins(&'a Case),
    ConversationOver(&'a Execution<'a>),
    /// The conversation of this name fails behind these alone, each on a connection of its own.
    FailsBehind {
        name: &'a str,
        before: &'a [TalkScript],
    },
    /// A probe of the server's health is over.
    ProbeOver(&'a Probe),
    CaseOver(&'a CaseResult),
    /// A failure was shrunk; the execution is that of what is left.
    FailureShrunk {
        shrunk: &'a Shrunk,
        execution: &'a Execution<'a>,
    },
}

/// Hears of everything as it happens.
pub trait Watcher {
    fn hear(&mut self, event: CampaignEvent<'_>);
}

/// Nobody looks on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn hear(&mut self, _: CampaignEvent<'_>) {}
}

/// Several look on, told in their order.
#[derive(Default)]
pub struct Watchers<'a>(pub Vec<&'a mut dyn Watcher>);

impl std::fmt::Debug for Watchers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watchers({})", self.0.len())
    }
}

impl Watcher for Watchers<'_> {
    fn hear(&mut self, event: CampaignEvent<'_>) {
        self.0.iter_mut().for_each(|one| one.hear(event));
    }
}
