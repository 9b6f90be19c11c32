//! Figures of our own TCP.

use sample::{AddressConflict, StackFacts};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct StackRecord {
    /// Packets.
    pub sent: u64,
    /// Packets.
    pub received: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// SYNs among them.
    pub syn_retransmitted: u64,
    /// Retransmissions by a timer.
    pub timeouts: u64,
    /// Losses detected by acknowledgments.
    pub recoveries: u64,
    /// Segments received out of order.
    pub out_of_order: u64,
    /// Segments without new data.
    pub duplicate: u64,
    /// Challenge ACKs sent for suspicious segments (RFC 5961).
    pub challenges: u64,
    pub resets_sent: u64,
    pub resets_received: u64,
    /// Connections that were established.
    pub established: u64,
    /// Connections that were not opened because every address and port was taken.
    pub tuples_out: u64,
    /// Packets that a network device rejected.
    pub refused: u64,
    /// Received packets dropped for lack of buffers, if known.
    #[serde(default)]
    pub missed: u64,
    /// Packets received in batches, by io_uring, if known.
    #[serde(default)]
    pub batched: u64,
    /// A local address of ours that another host used too; present if observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<ConflictRecord>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ConflictRecord {
    pub address: String,
    /// The other host's Ethernet address.
    pub by: String,
}

impl StackRecord {
    pub fn new(facts: &StackFacts) -> StackRecord {
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
            missed: facts.missed,
            batched: facts.batched,
            conflict: facts.conflict.as_ref().map(ConflictRecord::new),
        }
    }
}

impl ConflictRecord {
    pub fn new(conflict: &AddressConflict) -> ConflictRecord {
        ConflictRecord {
            address: conflict.address.to_string(),
            by: conflict.by.map(|byte| format!("{byte:02x}")).join(":"),
        }
    }
}
