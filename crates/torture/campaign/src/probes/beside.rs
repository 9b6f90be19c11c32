//! Plays any director with probes alongside.

use super::Probes;
use crate::{CampaignEvent, Watcher};
use dialogue::talk::{All, Conversations, Director, Talk, Wake};
use torture::result::Probe;
use units::Nanos;

/// Director with concurrent probes: it is called after each of them.
pub trait ProbeListener: Director {
    /// Handles a completed probe of the server's health.
    fn probed(&mut self, _probe: &Probe) {}
}

impl ProbeListener for All {}

/// Plays another director with concurrent probes. Probes continue until the director is done;
/// outstanding ones are awaited. The director is notified of each completed probe.
pub struct Probed<'a> {
    director: &'a mut dyn ProbeListener,
    probes: Probes,
    watcher: &'a mut dyn Watcher,
    /// Instant at which the director wants to be called; `None` before the first call.
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

    /// Returns all completed probes in order of completion.
    pub fn into_completed(self) -> Vec<Probe> {
        self.felt
    }

    /// Notifies the director of completed probes; returns false if there are none.
    fn notify_director(&mut self) -> bool {
        let new = self.probes.take();
        for probe in &new {
            self.watcher.observe(CampaignEvent::ProbeOver(probe));
            self.director.probed(probe);
        }
        let any = !new.is_empty();
        self.felt.extend(new);
        any
    }

    /// Returns whether the director is done.
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
        let mut notified = self.notify_director();
        // its responses are read before the director decides, and due probes are sent before it
        // works
        let mut next = self.probes.begin(now, stage);
        notified |= self.notify_director();
        if self.wake == Some(Wake::Done) {
            self.director.on_abandoned(rest);
        } else if notified
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
            self.notify_director();
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

    fn on_abandoned(&mut self, over: Vec<(usize, Talk)>) {
        let rest = self.probes.absorb(Nanos::ZERO, over);
        self.notify_director();
        self.director.on_abandoned(rest);
    }
}
