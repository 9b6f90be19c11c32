//! What an agent has accounted for, and what is counted in its place when it is lost: the schedule
//! says how many arrivals were due on it at any instant, so that none is forgotten.

use engine::{Owed, Share};
use stats::Counts;
use units::Nanos;

/// Where an agent is in the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LedgerState {
    Live,
    /// Silent, or ended before its time: what falls due on it is lost.
    Lost,
    Over,
}

/// One agent's account.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) standing: LedgerState,
    shares: Vec<Share>,
    /// From its own rows.
    measured: Counts,
    warm_up: Counts,
    /// What was put in for it.
    pub(super) ghost: (Counts, Counts),
    /// The edge of its latest row, of itself or put in for it.
    pub(super) edge: Nanos,
    /// Edge of the latest row that was put in for it; zero without one.
    pub(super) ghost_edge: Nanos,
    /// Edge of its latest own row.
    pub(super) own_edge: Nanos,
    pub(super) lost_at: Option<Nanos>,
    pub(super) ending: String,
}

/// Counts of the measured phase and of the warm-up that stand for an interval of a lost agent.
pub(super) type Ghost = (Counts, Counts);

impl Ledger {
    pub(super) fn new(shares: Vec<Share>, start: Nanos) -> Ledger {
        Ledger {
            standing: LedgerState::Live,
            shares,
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

    /// What is lost up to the instant `until`, beyond what was put in before: arrivals that fell due,
    /// and those whose outcome was still open. In a closed loop nobody knows what would have fallen
    /// due.
    pub(super) fn ghost_until(&mut self, owed: Option<&Owed>, until: Nanos) -> Ghost {
        let (due, warm) = owed.map_or((0, 0), |owed| owed.due(&self.shares, until));
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

    /// It has turned up: what was put in for it goes out again.
    pub(super) fn revive(&mut self) -> Ghost {
        self.standing = LedgerState::Live;
        self.lost_at = None;
        "done".clone_into(&mut self.ending);
        std::mem::take(&mut self.ghost)
    }

    /// Calls that its own rows say were presented to the server, whatever became of them.
    pub(super) fn offered(&self) -> u64 {
        self.measured.due.saturating_sub(self.measured.dropped)
    }

    pub(super) fn lost(&self) -> u64 {
        self.ghost.0.lost
    }
}
