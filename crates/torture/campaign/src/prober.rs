//! The probes: how they are sent, and which of them the result keeps.

use crate::probes::{Pattern, ProbeListener, Probed, Probes, Probing};
use crate::{PROBES_MAX, Watcher, World};
use torture::result::Probe;
use units::Nanos;

#[derive(Debug)]
pub(crate) struct Prober {
    probing: Probing,
    /// The start of the run, from which probes count.
    origin: Nanos,
    /// Probes of the whole run, at most [`PROBES_MAX`].
    kept: Vec<Probe>,
}

impl Prober {
    pub(crate) fn new(probing: Probing, origin: Nanos) -> Prober {
        Prober { probing, origin, kept: Vec::new() }
    }

    /// Returns the interval between two probes of a kind.
    pub(crate) fn every(&self) -> Nanos {
        self.probing.every
    }

    /// Returns the time limit of each.
    pub(crate) fn deadline(&self) -> Nanos {
        self.probing.deadline
    }

    /// Returns whether probes use a kept connection too.
    pub(crate) fn keeps(&self) -> bool {
        self.probing.keep
    }

    pub(crate) fn keep_connection(&mut self, keep: bool) {
        self.probing.keep = keep;
    }

    /// Sets a deadline not shorter than the idle server needs.
    pub(crate) fn settle(&mut self, p99: Nanos) {
        self.probing.settle(p99);
    }

    pub(crate) fn origin(&self) -> Nanos {
        self.origin
    }

    /// Plays a director with probes alongside, and returns the probes sent.
    pub(crate) fn play(
        &mut self,
        world: &mut dyn World,
        watcher: &mut dyn Watcher,
        pattern: Pattern,
        director: &mut dyn ProbeListener,
    ) -> Vec<Probe> {
        let probes = Probes::new(&self.probing, pattern);
        let mut both = Probed::new(director, probes, watcher);
        world.play(&mut both);
        let felt = both.into_completed();
        let room = PROBES_MAX.saturating_sub(self.kept.len());
        self.kept.extend(felt.iter().take(room).cloned());
        felt
    }

    /// Returns the number of kept probes.
    pub(crate) fn count(&self) -> usize {
        self.kept.len()
    }

    /// Returns the kept probes after the first `count`.
    pub(crate) fn kept_since(&self, count: usize) -> &[Probe] {
        &self.kept[count..]
    }

    pub(crate) fn into_kept(self) -> Vec<Probe> {
        self.kept
    }
}
