//! Figures of our own TCP during a measurement.

use std::net::IpAddr;

/// Counts of packets and events, of all workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFacts {
    pub sent: u64,
    pub received: u64,
    pub retransmitted: u64,
    /// Number of SYNs among them.
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
    /// Established connections.
    pub established: u64,
    /// Connections that were not opened because every address and port was taken.
    pub tuples_out: u64,
    /// Packets that a network device rejected.
    pub refused: u64,
    /// Received packets without room.
    pub missed: u64,
    /// Packets received in batches.
    pub batched: u64,
    /// One of our addresses that another host uses too.
    pub conflict: Option<AddressConflict>,
}

/// Address of ours that another host on the link uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressConflict {
    pub address: IpAddr,
    /// Ethernet address of the other host.
    pub by: [u8; 6],
}

impl std::ops::AddAssign for StackFacts {
    fn add_assign(&mut self, other: StackFacts) {
        self.sent += other.sent;
        self.received += other.received;
        self.retransmitted += other.retransmitted;
        self.syn_retransmitted += other.syn_retransmitted;
        self.timeouts += other.timeouts;
        self.recoveries += other.recoveries;
        self.out_of_order += other.out_of_order;
        self.duplicate += other.duplicate;
        self.challenges += other.challenges;
        self.resets_sent += other.resets_sent;
        self.resets_received += other.resets_received;
        self.established += other.established;
        self.tuples_out += other.tuples_out;
        self.refused += other.refused;
        self.missed += other.missed;
        self.batched += other.batched;
        self.conflict = self.conflict.or(other.conflict);
    }
}
