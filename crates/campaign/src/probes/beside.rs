//! Any director, with probes beside it.

use super::Probes;
use crate::{CampaignEvent, Watcher};
use dialogue::talk::{All, Conversations, Director, Talk, Wake};
use torture::result::Probe;
use units::Nanos;

/// A director beside which probes run: it is heard next after each of them.
pub trait ProbeListener: Director {
    /// A probe of the server's health is over.
    fn probed(&mut self, _probe: &Probe) {}
}

impl ProbeListener for All {}

/// Plays what another directs, and the probes beside it. Probes go on until the other is done, and
/// those that were begun by then are waited for. The other hears of each probe that is over.
pub struct Probed<'a> {
    director: &'a mut dyn ProbeListener,
    probes: Probes,
    watcher: &'a mut dyn Watcher,
    /// When the other wants to be heard; `None` before it was.
    wake: Option<Wake>,
    felt: Vec<Probe>,
}

impl std::fmt::Debug for Probed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probed").field("probes", &self.probes).finish_non_exhaustive()
    }
}

impl<'a> Probed<'a> {
    pub fn new(
        director: &'a mut dyn ProbeListener,
        probes: Probes,
        watcher: &'a mut dyn Watcher,
    ) -> Probed<'a> {
        Probed { director, probes, watcher, wake: None, felt: Vec::new() }
    }

    /// Every probe that is over, in the order of their ends.
    pub fn into_felt(self) -> Vec<Probe> {
        self.felt
    }

    /// Tells of the probes that are over; false when there are none.
    fn tell(&mut self) -> bool {
        let new = self.probes.take();
        for probe in &new {
            self.watcher.hear(CampaignEvent::ProbeOver(probe));
            self.director.probed(probe);
        }
        let any = !new.is_empty();
        self.felt.extend(new);
        any
    }

    /// Whether the other has nothing more to do.
    fn is_done(&self, stage: &Conversations<'_>) -> bool {
        match self.wake {
            Some(Wake::Done) => true,
            Some(Wake::WhenOver) => stage.count() == self.probes.count(),
            _ => false,
        }
    }
}

impl Director for Probed<'_> {
    fn direct(
        &mut self,
        now: Nanos,
        stage: &mut Conversations<'_>,
        over: Vec<(usize, Talk)>,
    ) -> Wake {
        let rest = self.probes.absorb(now, over);
        let mut told = self.tell();
        // its responses are read before the other decides, and what fell due is sent before it works
        let mut next = self.probes.begin(now, stage);
        told |= self.tell();
        if self.wake == Some(Wake::Done) {
            self.director.curtain(rest);
        } else if told
            || !rest.is_empty()
            || self.director.watches()
            || !matches!(self.wake, Some(Wake::At(at)) if at > now)
        {
            self.wake = Some(self.director.direct(now, stage, rest));
        }
        if self.is_done(stage) {
            self.wake = Some(Wake::Done);
            self.probes.stop();
            next = self.probes.begin(now, stage);
            self.tell();
            if self.probes.is_idle() {
                return Wake::Done;
            }
        }
        match self.wake {
            Some(Wake::At(at)) => Wake::At(at.min(next)),
            _ if next == Nanos::NEVER => Wake::WhenOver,
            _ => Wake::At(next),
        }
    }

    fn curtain(&mut self, over: Vec<(usize, Talk)>) {
        let rest = self.probes.absorb(Nanos::ZERO, over);
        self.tell();
        self.director.curtain(rest);
    }
}
