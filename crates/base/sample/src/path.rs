//! Figures of an emulated path during a measurement.

use units::Nanos;

/// Facts of one path, or of the paths of one population, over one measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathFacts {
    /// Path as configured.
    pub spec: String,
    pub seed: u64,
    /// Duration of the observation.
    pub span: Nanos,
    /// One per kind of client; a single one if all use the same path.
    pub kinds: Vec<PathKind>,
    /// Lateness of packet delivery relative to the due time.
    pub late_p50: Nanos,
    pub late_p99: Nanos,
    pub late_max: Nanos,
    /// Share of the span in which the forwarder neither slept nor spun, 0..=1.
    pub busy: f64,
    /// Time for which it spun before due instants.
    pub spun: Nanos,
    /// Packets dropped because the forwarder or its devices had no room: not an emulated loss.
    pub overflowed: u64,
    /// Packets that were not of this path (no IPv4, or a stranger's address), and were not carried.
    pub foreign: u64,
}

/// Clients with the same kind of path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathKind {
    pub name: String,
    pub clients: u32,
    /// Configured round trip of an empty packet, without queues.
    pub rtt: Nanos,
    pub up: PathDirection,
    pub down: PathDirection,
}

/// One direction of the path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathDirection {
    /// Description of the link.
    pub link: String,
    pub arrived: u64,
    pub delivered: u64,
    pub delivered_bytes: u64,
    pub duplicated: u64,
    pub corrupted: u64,
    /// Packets lost by the loss model, an outage, a full queue, or CoDel.
    pub lost_to_model: u64,
    pub lost_to_outage: u64,
    pub lost_to_queue: u64,
    pub lost_to_codel: u64,
}

impl PathDirection {
    /// Returns the share of received packets, copies included, that the path lost, 0..=1.
    pub fn loss(&self) -> f64 {
        let came = self.arrived + self.duplicated;
        if came == 0 { 0.0 } else { self.lost() as f64 / came as f64 }
    }

    pub fn lost(&self) -> u64 {
        self.lost_to_model + self.lost_to_outage + self.lost_to_queue + self.lost_to_codel
    }
}

impl PathFacts {
    /// Returns the number of packets received in both directions, over all kinds.
    pub fn packets(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.up.arrived + kind.down.arrived).sum()
    }

    /// Returns the number of packets that the path lost as configured, both directions of all
    /// kinds.
    pub fn lost(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.up.lost() + kind.down.lost()).sum()
    }

    /// Returns the share of handshakes whose SYN or SYN-ACK it loses, 0..=1: the mean over the
    /// clients.
    pub fn handshake_loss(&self) -> f64 {
        let clients: f64 = self.kinds.iter().map(|kind| f64::from(kind.clients)).sum();
        let both = |kind: &PathKind| 1.0 - (1.0 - kind.up.loss()) * (1.0 - kind.down.loss());
        let sum: f64 = self.kinds.iter().map(|kind| both(kind) * f64::from(kind.clients)).sum();
        sum / clients.max(1.0)
    }

    /// Returns the shortest configured round trip.
    pub fn rtt_min(&self) -> Nanos {
        self.kinds.iter().map(|kind| kind.rtt).min().unwrap_or_default()
    }
}
