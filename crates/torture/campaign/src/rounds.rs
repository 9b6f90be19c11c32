//! Plans of load rounds, and the loads of the current case, which can be repeated for a leak or a
//! culprit.

use dialogue::talk::{Move, TalkScript};
use units::Nanos;

/// Plan of one round.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The conversations, with start times relative to the first.
    pub(crate) scripts: Vec<(Nanos, TalkScript)>,
    /// Time from the start of the last connection to the release of all.
    pub(crate) hold: Nanos,
    /// Releases as soon as every conversation is over and enough probes were due.
    pub(crate) until_over: bool,
    /// Duration for which well-behaved clients must be served again, after being denied, before the
    /// release.
    pub(crate) until_served: Option<Nanos>,
    /// The load counts from the first conversation, not only once all have started.
    pub(crate) armed_early: bool,
    /// The round is over once probes are normal for this time.
    pub(crate) calm: Nanos,
}

impl Plan {
    /// Returns whether closes by the server are visible, which requires reading.
    pub(crate) fn observes_closes(&self) -> bool {
        let stops_reading =
            |(_, script): &(Nanos, TalkScript)| script.steps.contains(&Move::StopReading);
        !self.scripts.iter().any(stops_reading)
    }

    /// Returns a plan of these conversations at an interval of `pace`.
    pub(crate) fn paced(scripts: Vec<TalkScript>, pace: Nanos, hold: Nanos) -> Plan {
        let at = |index: usize| pace * index as u64;
        Plan {
            scripts: scripts.into_iter().enumerate().map(|(i, script)| (at(i), script)).collect(),
            hold,
            until_over: false,
            until_served: None,
            armed_early: false,
            calm: Nanos::SECOND,
        }
    }
}

/// Maximum number of kinds of load kept per case.
const KEPT_MAX: usize = 4;

/// The largest round of each kind.
#[derive(Debug, Default)]
pub(crate) struct LargestRounds(Vec<Plan>);

impl LargestRounds {
    pub(crate) fn begin_case(&mut self) {
        self.0.clear();
    }

    /// Keeps a round if it is the largest of its kind.
    pub(crate) fn remember(&mut self, plan: &Plan) {
        let first = |plan: &Plan| plan.scripts.first().map(|(_, script)| script.steps.clone());
        let known = self.0.iter().position(|known| first(known) == first(plan));
        match known {
            Some(place) if plan.scripts.len() > self.0[place].scripts.len() => {
                self.0[place] = plan.clone();
            }
            None if self.0.len() < KEPT_MAX => self.0.push(plan.clone()),
            _ => {}
        }
    }

    pub(crate) fn plans(&self) -> &[Plan] {
        &self.0
    }
}
