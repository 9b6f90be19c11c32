//! Detects when probes are normal again after the end of the load.

use torture::result::{Probe, ProbeKind, Seen};
use units::Nanos;

/// Watches probes of both kinds. Instants count from the start of the run.
#[derive(Clone, Debug)]
pub(crate) struct RecoveryWatch {
    /// Response time from which a probe is not normal.
    slow_from: Nanos,
    /// Interval between two probes of a kind.
    every: Nanos,
    /// Required time of normal probes.
    span: Nanos,
    released_at: Nanos,
    /// Tracks of probes on new connections and on the kept one.
    tracks: [Track; 2],
}

/// Probes of a kind after the release: the due instant of the last abnormal one, and the due and
/// response instants of those since.
#[derive(Clone, Debug, Default)]
struct Track {
    /// True if probes of this kind are sent.
    used: bool,
    bad_at: Option<Nanos>,
    good: Vec<(Nanos, Nanos)>,
}

impl Track {
    /// Returns whether probes were normal for the required time, with none outstanding.
    fn is_calm(&self, calm: Nanos, every: Nanos) -> bool {
        let due_times = || self.good.iter().map(|(due, _)| *due);
        let (Some(first), Some(last)) = (due_times().min(), due_times().max()) else {
            return !self.used;
        };
        let span = last - first;
        span >= calm && self.good.len() as u64 > span.0 / every.0.max(1)
    }

    fn recovered_at(&self) -> Option<Nanos> {
        self.good.iter().min().map(|(_, answered)| *answered)
    }

    fn note_probe(&mut self, probe: &Probe, as_before: bool) {
        if as_before && self.bad_at.is_none_or(|bad| probe.due > bad) {
            self.good.push((probe.due, probe.due + probe.over));
        } else if !as_before {
            self.bad_at = Some(self.bad_at.map_or(probe.due, |bad| bad.max(probe.due)));
            self.good.retain(|(due, _)| *due > probe.due);
        }
    }
}

impl RecoveryWatch {
    pub(crate) fn new(slow_from: Nanos, every: Nanos, span: Nanos) -> RecoveryWatch {
        RecoveryWatch {
            slow_from,
            every,
            span,
            released_at: Nanos::NEVER,
            tracks: Default::default(),
        }
    }

    /// Marks the end of the load: probes due from now on count.
    pub(crate) fn release(&mut self, at: Nanos) {
        self.released_at = at;
    }

    pub(crate) fn note_probe(&mut self, probe: &Probe) {
        let track = &mut self.tracks[usize::from(probe.kind == ProbeKind::Keep)];
        track.used = true;
        if probe.due >= self.released_at {
            track.note_probe(probe, probe.seen == Seen::Correct && probe.over <= self.slow_from);
        }
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.tracks.iter().all(|track| track.is_calm(self.span, self.every))
    }

    /// Returns the instant since which all probes were normal; `None` if they are not.
    pub(crate) fn recovered_at(&self) -> Option<Nanos> {
        let back = || self.tracks.iter().filter_map(Track::recovered_at).max();
        if self.is_calm() { back() } else { None }
    }
}
