//! One measurement in the form that rules use: values that several of them need, computed once.

use super::phase::{Regularity, Ticks, phase};
use super::{COMPLETIONS_MIN, Evidence};
use crate::lives::{BEAT, BEATS_MAX, Lives};
use crate::{Hist, Second, Snapshot};
use sample::PathFacts;
use std::cell::OnceCell;
use units::Nanos;

/// An open load exceeds the capacity if less than this share of it is answered within the window.
const OVERLOAD_SHARE: f64 = 0.97;

/// Share of the responses that arrive with another one, if several users wait for the same tick.
pub(crate) const TOGETHER_MIN: f64 = 0.1;
/// Minimum share of the median service time for reporting a tick.
pub(crate) const TICK_SHARE_MIN: f64 = 0.2;

/// Input of a rule.
#[derive(Debug)]
pub struct View<'a> {
    pub(crate) evidence: &'a Evidence<'a>,
    pub(crate) total: &'a Snapshot,
    pub(crate) lives: &'a Lives,
    /// Length of the measured window in seconds; above 0.
    pub(crate) window_s: f64,
    /// Completions a second inside the window.
    pub(crate) throughput: f64,
    /// Mean calls in flight (Little).
    pub(crate) concurrency: f64,
    /// Whole rows of the measured window.
    pub(crate) rows: Vec<&'a Second>,
    /// (done, succeeded) in each recorded beat of the window.
    pub(crate) beats: Vec<(u32, u32)>,
    phase: OnceCell<Regularity>,
}

impl<'a> View<'a> {
    pub(crate) fn new(evidence: &'a Evidence<'a>) -> View<'a> {
        let measurement = evidence.measurement;
        let total = &measurement.total;
        let window_s = measurement.window.as_secs_f64().max(1e-9);
        let longest = measurement.series.iter().map(|row| row.span_s).fold(0.0, f64::max);
        let whole = |row: &&Second| {
            let inside = row.at_s >= -1e-6 && row.at_s + row.span_s <= window_s + 0.25 * longest;
            !row.warm_up && inside && row.span_s > 0.0 && row.span_s >= 0.9 * longest
        };
        let mut beats = total.beats.all();
        // the end of the window may shorten the last beat
        let whole_beats = (window_s / BEAT.as_secs_f64()) as usize;
        // after the last recorded beat nothing is known
        beats.resize(whole_beats.min(BEATS_MAX), (0, 0));
        View {
            evidence,
            total,
            lives: &total.connections.lives,
            window_s,
            throughput: total.in_window as f64 / window_s,
            concurrency: total.flight_integral as f64 / 1e9 / window_s,
            rows: measurement.series.iter().filter(whole).collect(),
            beats,
            phase: OnceCell::new(),
        }
    }

    /// Returns whether enough was completed for a conclusion.
    pub(crate) fn enough(&self) -> bool {
        self.total.counts.done() >= COMPLETIONS_MIN
    }

    /// Returns the number of calls with a known outcome.
    pub(crate) fn done(&self) -> u64 {
        self.total.counts.done()
    }

    /// Returns the number of responses with this status.
    pub(crate) fn status(&self, status: u16) -> u64 {
        self.total.status.seen().find(|(seen, _)| *seen == status).map_or(0, |(_, count)| count)
    }

    /// Returns whether connections carry more than one call.
    pub(crate) fn persistent(&self) -> bool {
        self.evidence.calls_max != Some(1)
    }

    pub(crate) fn service(&self) -> &'a Hist {
        &self.total.service
    }

    /// Returns the median service time.
    pub(crate) fn typical(&self) -> Nanos {
        self.total.service.quantile(0.5)
    }

    /// Returns whether calls of an open load are due faster than they are answered.
    pub(crate) fn overloaded(&self) -> bool {
        let measurement = self.evidence.measurement;
        let Some(intended) = measurement.intended else { return false };
        let wanted = intended as f64 / measurement.due_span().as_secs_f64().max(1e-9);
        self.throughput < OVERLOAD_SHARE * wanted
    }

    /// Returns the share of its cores that the server used, if it was watched.
    pub(crate) fn server_cpu(&self) -> Option<f64> {
        self.evidence.sut.and_then(|sut| sut.cpu_share())
    }

    /// Returns true if losses of the emulated path explain the number of late connects. The limit is
    /// twice the expected number and five standard deviations: losses are bursty, and a
    /// retransmission can be lost as well.
    pub(crate) fn lost_by_path(&self, late: u64, connects: u64) -> bool {
        let share = self.evidence.path.map_or(0.0, PathFacts::handshake_loss);
        let expected = share * connects as f64;
        expected > 0.0 && late as f64 <= 2.0 * expected + 5.0 * expected.sqrt()
    }

    /// Returns the result about the instants of the responses; computed on first use.
    pub(crate) fn phase(&self) -> Regularity {
        *self.phase.get_or_init(|| match phase(self.total.instants.all()) {
            Regularity::Locked(ticks) if !self.by_the_server(ticks) => Regularity::Free,
            other => other,
        })
    }

    /// Returns whether responses keep the phase of the server's clock, not that of the load's
    /// schedule, and do not follow one another, as from a limiter that admits a call at each tick.
    fn by_the_server(&self, ticks: Ticks) -> bool {
        let crowd = self.evidence.users.map_or(self.overloaded(), |users| users > 1);
        let paced = crowd && ticks.together < TOGETHER_MIN;
        let scheduled = self.evidence.users.is_none() && ticks.due_length > ticks.length / 2.0;
        // a tick that is short compared with the work hardly delays a call
        let matters = ticks.period.0 as f64 >= TICK_SHARE_MIN * self.typical().0 as f64;
        matters && !paced && !scheduled
    }
}
