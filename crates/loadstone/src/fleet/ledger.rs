//! Account of an agent: its reports, and the counts in its place if it is lost. The schedule
//! determines how many arrivals were due on it at any instant, so none is forgotten.

use engine::{Owed, Share};
use stats::Counts;
use units::Nanos;

/// Progress of an agent in the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LedgerState {
    Live,
    /// Silent, or ended early: calls due on it are lost.
    Lost,
    Over,
}

/// A part of the load that an agent owes, for some of the time.
#[derive(Clone, Debug)]
pub(super) struct OwedPart {
    pub(super) share: Share,
    /// Arrivals that are due from this instant on; zero: all of them.
    pub(super) from: Nanos,
    /// And before this instant.
    until: Nanos,
    /// The offer by which the part was taken or given.
    offer: Option<u64>,
}

/// The last instant before this one.
fn before(at: Nanos) -> Nanos {
    Nanos(at.0.saturating_sub(1))
}

impl OwedPart {
    /// Arrivals of the measured phase and of the warm-up that are due at or before `until`.
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

/// The account of one agent.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) state: LedgerState,
    /// The agent's messages are now ignored.
    pub(super) abandoned: bool,
    parts: Vec<OwedPart>,
    /// Counts of its own rows.
    measured: Counts,
    warm_up: Counts,
    /// Counts added in its place.
    pub(super) ghost: (Counts, Counts),
    /// The edge of its latest row, its own or an added one.
    pub(super) edge: Nanos,
    /// Edge of the latest added row; zero without one.
    pub(super) ghost_edge: Nanos,
    /// Edge of its latest own row.
    pub(super) own_edge: Nanos,
    pub(super) lost_at: Option<Nanos>,
    pub(super) ending: String,
}

/// Counts of the measured phase and of the warm-up that represent an interval of a lost agent.
pub(super) type Ghost = (Counts, Counts);

impl Ledger {
    pub(super) fn new(shares: Vec<Share>, start: Nanos) -> Ledger {
        let whole = |share| OwedPart { share, from: Nanos::ZERO, until: Nanos::NEVER, offer: None };
        Ledger {
            state: LedgerState::Live,
            abandoned: false,
            parts: shares.into_iter().map(whole).collect(),
            measured: Counts::default(),
            warm_up: Counts::default(),
            ghost: Ghost::default(),
            edge: start,
            ghost_edge: Nanos::ZERO,
            own_edge: start,
            lost_at: None,
            ending: "done".to_owned(),
        }
    }

    /// A row of its own.
    pub(super) fn add(&mut self, measured: &Counts, warm_up: &Counts, edge: Nanos) {
        self.measured.merge(measured);
        self.warm_up.merge(warm_up);
        self.own_edge = self.own_edge.max(edge);
        self.edge = self.edge.max(edge);
    }

    /// Calls lost up to the instant `until`, beyond those added before: arrivals that fell due, and
    /// those whose outcome was still open. In a closed loop the number of due calls is unknown.
    pub(super) fn ghost_until(&mut self, owed: Option<&Owed>, until: Nanos) -> Ghost {
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

    /// The instant after which it owes nothing.
    pub(super) fn owes_until(&self) -> Nanos {
        self.parts.iter().map(|part| part.until).max().unwrap_or(Nanos::NEVER)
    }

    /// Returns whether it owes, or owed, a part of another agent's load.
    pub(super) fn has_taken_over(&self) -> bool {
        self.parts.iter().any(|part| !part.from.is_zero())
    }

    /// Returns whether others continue all of its load.
    pub(super) fn is_taken_over(&self) -> bool {
        self.owes_until() < Nanos::NEVER
    }

    /// The share of the load of each of its workers at the start.
    pub(super) fn weights(&self) -> Vec<f64> {
        let own = self.parts.iter().filter(|part| part.from.is_zero());
        own.map(|part| {
            let (slots, of) = part.share.slots();
            slots.len() as f64 / f64::from(of.max(1))
        })
        .collect()
    }

    /// Removes its parts to be transferred to others, one by one.
    pub(super) fn leave(&mut self) -> Vec<OwedPart> {
        let leaves = |part: &mut OwedPart| part.until == Nanos::NEVER;
        self.parts.extract_if(.., leaves).collect()
    }

    /// A part that it has had since `from` belongs to another agent from the instant `at` on.
    pub(super) fn give(&mut self, share: Share, from: Nanos, at: Nanos, offer: u64) {
        self.parts.push(OwedPart { share, from, until: at, offer: Some(offer) });
    }

    /// Takes another agent's parts, which belong to it from the instant `at` on.
    pub(super) fn take(&mut self, shares: impl Iterator<Item = Share>, at: Nanos, offer: u64) {
        let part = |share| OwedPart { share, from: at, until: Nanos::NEVER, offer: Some(offer) };
        self.parts.extend(shares.map(part));
    }

    /// Notes that it has not accepted an offer.
    pub(super) fn refuse(&mut self, offer: u64) {
        self.parts.retain(|part| part.offer != Some(offer));
    }

    /// No agent accepted the part: it owes it to the end.
    pub(super) fn keep(&mut self, offer: u64) {
        let refused = self.parts.iter_mut().filter(|part| part.offer == Some(offer));
        refused.for_each(|part| part.until = Nanos::NEVER);
    }

    /// Notes that it is back: the counts added in its place are removed.
    pub(super) fn revive(&mut self) -> Ghost {
        self.state = LedgerState::Live;
        self.lost_at = None;
        "done".clone_into(&mut self.ending);
        std::mem::take(&mut self.ghost)
    }

    /// Calls that its own rows report as presented to the server, whatever their outcome.
    pub(super) fn offered(&self) -> u64 {
        self.measured.due.saturating_sub(self.measured.dropped)
    }

    pub(super) fn lost(&self) -> u64 {
        self.ghost.0.lost
    }
}
