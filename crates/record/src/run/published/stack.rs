//! What our own TCP did.

use sample::StackFacts;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackRecord {
    pub sent: u64,
    pub received: u64,
    pub retransmitted: u64,
    pub syn_retransmitted: u64,
    pub timeouts: u64,
    pub recoveries: u64,
    pub out_of_order: u64,
    pub duplicate: u64,
    pub challenges: u64,
    pub resets_sent: u64,
    pub resets_received: u64,
    pub established: u64,
    pub tuples_out: u64,
    pub refused: u64,
}

impl StackRecord {
    pub(crate) fn of(facts: &StackFacts) -> StackRecord {
        StackRecord {
            sent: facts.sent,
            received: facts.received,
            retransmitted: facts.retransmitted,
            syn_retransmitted: facts.syn_retransmitted,
            timeouts: facts.timeouts,
            recoveries: facts.recoveries,
            out_of_order: facts.out_of_order,
            duplicate: facts.duplicate,
            challenges: facts.challenges,
            resets_sent: facts.resets_sent,
            resets_received: facts.resets_received,
            established: facts.established,
            tuples_out: facts.tuples_out,
            refused: facts.refused,
        }
    }

    pub(crate) fn facts(&self) -> StackFacts {
        StackFacts {
            sent: self.sent,
            received: self.received,
            retransmitted: self.retransmitted,
            syn_retransmitted: self.syn_retransmitted,
            timeouts: self.timeouts,
            recoveries: self.recoveries,
            out_of_order: self.out_of_order,
            duplicate: self.duplicate,
            challenges: self.challenges,
            resets_sent: self.resets_sent,
            resets_received: self.resets_received,
            established: self.established,
            tuples_out: self.tuples_out,
            refused: self.refused,
        }
    }
}
