//! Rounds of pressure, as they are planned; and what pressed in the case under way, so that it can be had again:
//! for a leak, and for a culprit.

use dialogue::talk::{Move, TalkScript};
use units::Nanos;

/// What is done in one round.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The conversations, and when each begins after the first.
    pub(crate) scripts: Vec<(Nanos, TalkScript)>,
    /// From the last one's beginning to the release of all.
    pub(crate) hold: Nanos,
    /// Released as soon as every conversation is over, and enough probes have fallen due.
    pub(crate) until_over: bool,
    /// Released when well-behaved clients were served again for so long, after they had been denied.
    pub(crate) until_served: Option<Nanos>,
    /// It presses from the first conversation on, and not only once all have begun.
    pub(crate) armed_early: bool,
    /// Probes are as before for so long: the round is over.
    pub(crate) calm: Nanos,
}

impl Plan {
    /// The server's end of a connection shows only where it is read.
    pub(crate) fn sees_ends(&self) -> bool {
        let deaf = |(_, script): &(Nanos, TalkScript)| script.steps.contains(&Move::StopReading);
        !self.scripts.iter().any(deaf)
    }

    /// These conversations, a `pace` apart.
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

/// Kinds of pressure of one case that are kept.
const KEPT_MAX: usize = 4;

/// The largest round of each kind.
#[derive(Debug, Default)]
pub(crate) struct LargestRounds(Vec<Plan>);

impl LargestRounds {
    pub(crate) fn begin_case(&mut self) {
        self.0.clear();
    }

    /// Keeps a round where it is the largest of its kind.
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
