//! Account of an agent: its reports and, if it is lost, the counts that replace them. The schedule
//! determines how many arrivals were due on the agent at any instant, so all are counted.

use engine::{Owed, Share};
use stats::Counts;
use units::Nanos;

/// Progress of an agent in the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LedgerState {
    Live,
    /// The agent is silent or ended early; calls due on it are lost.
    Lost,
    Over,
}

/// Part of the load that an agent owes, for a part of the run.
#[derive(Clone, Debug)]
pub(crate) struct OwedPart {
    pub(crate) share: Share,
    /// First instant from which arrivals are owed; zero for all.
    pub(crate) from: Nanos,
    /// Instant at which the debt ends, exclusive.
    until: Nanos,
    /// Offer by which the part was accepted or given away.
    offer: Option<u64>,
}

/// Returns the last instant before this one.
fn before(at: Nanos) -> Nanos {
    Nanos(at.0.saturating_sub(1))
}

impl OwedPart {
    /// Returns the numbers of arrivals of the measured phase and of the warm-up that are due at or
    /// before `until`.
    fn due(&self, owed: &Owed, until: Nanos) -> (u64, u64) {
        let last = until.min(before(self.until));
        if last < self.from {
            return (0, 0);
        }
        let share = std::slice::from_ref(&self.share);
        let (due, warm_up) = owed.due(share, last);
        let (earlier, warm_earlier) = match self.from {
            Nanos::ZERO => (0, 0),
            from => owed.due(share, before(from)),
        };
        (due - earlier, warm_up - warm_earlier)
    }
}

/// Account of one agent.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) state: LedgerState,
    /// The agent's messages are now ignored.
    pub(crate) abandoned: bool,
    parts: Vec<OwedPart>,
    /// Counts of the agent's own rows.
    measured: Counts,
    warm_up: Counts,
    /// Counts that replace missing rows.
    pub(crate) ghost: (Counts, Counts),
    /// End of its latest row, reported or replaced.
    pub(crate) edge: Nanos,
    /// End of the latest replaced row; zero without one.
    pub(crate) ghost_edge: Nanos,
    /// End of its latest reported row.
    pub(crate) own_edge: Nanos,
    pub(crate) lost_at: Option<Nanos>,
    pub(crate) ending: String,
}

/// Counts of the measured phase and of the warm-up for an interval of a lost agent.
pub(crate) type LostCounts = (Counts, Counts);

impl Ledger {
    pub(crate) fn new(shares: Vec<Share>, start: Nanos) -> Ledger {
        let whole = |share| OwedPart { share, from: Nanos::ZERO, until: Nanos::NEVER, offer: None };
        Ledger {
            state: LedgerState::Live,
            abandoned: false,
            parts: shares.into_iter().map(whole).collect(),
            measured: Counts::default(),
            warm_up: Counts::default(),
            ghost: LostCounts::default(),
            edge: start,
            ghost_edge: Nanos::ZERO,
            own_edge: start,
            lost_at: None,
            ending: "done".to_owned(),
        }
    }

    /// Adds a row that the agent reported.
    pub(crate) fn add(&mut self, measured: &Counts, warm_up: &Counts, edge: Nanos) {
        self.measured.merge(measured);
        self.warm_up.merge(warm_up);
        self.own_edge = self.own_edge.max(edge);
        self.edge = self.edge.max(edge);
    }

    /// Returns the counts of calls lost up to the instant `until`, beyond those counted before:
    /// arrivals that were due, and calls without an outcome. In a closed loop the number of due
    /// calls is unknown.
    pub(crate) fn lost_counts_until(&mut self, owed: Option<&Owed>, until: Nanos) -> LostCounts {
        let (due, warm) = owed.map_or((0, 0), |owed| self.due(owed, until));
        let known = |own: &Counts, ghost: &Counts, due: u64| {
            let more = due.saturating_sub(own.due + ghost.due);
            let open = own.queued + own.in_flight + ghost.queued + ghost.in_flight;
            Counts {
                due: more,
                lost: more + open.max(0).unsigned_abs(),
                queued: -(own.queued + ghost.queued),
                in_flight: -(own.in_flight + ghost.in_flight),
                ..Counts::default()
            }
        };
        let ghost =
            (known(&self.measured, &self.ghost.0, due), known(&self.warm_up, &self.ghost.1, warm));
        self.ghost.0.merge(&ghost.0);
        self.ghost.1.merge(&ghost.1);
        ghost
    }

    fn due(&self, owed: &Owed, until: Nanos) -> (u64, u64) {
        let add = |(due, warm): (u64, u64), (more, warmer)| (due + more, warm + warmer);
        self.parts.iter().map(|part| part.due(owed, until)).fold((0, 0), add)
    }

    /// Returns the instant after which the agent owes nothing.
    pub(crate) fn owed_until(&self) -> Nanos {
        self.parts.iter().map(|part| part.until).max().unwrap_or(Nanos::NEVER)
    }

    /// Returns whether the agent owes, or owed, a part of another agent's load.
    pub(crate) fn has_taken_over(&self) -> bool {
        self.parts.iter().any(|part| !part.from.is_zero())
    }

    /// Returns whether other agents continue all of its load.
    pub(crate) fn is_taken_over(&self) -> bool {
        self.owed_until() < Nanos::NEVER
    }

    /// Returns each worker's share of the load at the start.
    pub(crate) fn weights(&self) -> Vec<f64> {
        let own = self.parts.iter().filter(|part| part.from.is_zero());
        own.map(|part| {
            let (slots, of) = part.share.slots();
            slots.len() as f64 / f64::from(of.max(1))
        })
        .collect()
    }

    /// Removes the agent's parts so that they can be offered to others one by one.
    pub(crate) fn leave(&mut self) -> Vec<OwedPart> {
        let leaves = |part: &mut OwedPart| part.until == Nanos::NEVER;
        self.parts.extract_if(.., leaves).collect()
    }

    /// Gives the part that the agent has had since `from` to another agent, from the instant `at`
    /// on.
    pub(crate) fn transfer(&mut self, share: Share, from: Nanos, at: Nanos, offer: u64) {
        self.parts.push(OwedPart { share, from, until: at, offer: Some(offer) });
    }

    /// Adds parts of another agent, from the instant `at` on.
    pub(crate) fn take(&mut self, shares: impl Iterator<Item = Share>, at: Nanos, offer: u64) {
        let part = |share| OwedPart { share, from: at, until: Nanos::NEVER, offer: Some(offer) };
        self.parts.extend(shares.map(part));
    }

    /// Records that the agent has not accepted an offer.
    pub(crate) fn refuse(&mut self, offer: u64) {
        self.parts.retain(|part| part.offer != Some(offer));
    }

    /// Keeps the part, which no agent accepted: the agent owes it until the end.
    pub(crate) fn keep(&mut self, offer: u64) {
        let refused = self.parts.iter_mut().filter(|part| part.offer == Some(offer));
        refused.for_each(|part| part.until = Nanos::NEVER);
    }

    /// Restores an agent that is back: the counts that replaced its rows are removed.
    pub(crate) fn restore_agent(&mut self) -> LostCounts {
        self.state = LedgerState::Live;
        self.lost_at = None;
        "done".clone_into(&mut self.ending);
        std::mem::take(&mut self.ghost)
    }

    /// Returns the calls that its own rows report as presented to the server, regardless of their
    /// outcome.
    pub(crate) fn offered(&self) -> u64 {
        self.measured.due.saturating_sub(self.measured.dropped)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.ghost.0.lost
    }
}
