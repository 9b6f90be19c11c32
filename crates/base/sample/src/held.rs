//! Idle connections held open during a load.

use units::Nanos;

/// States of the held connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldFacts {
    /// Number requested.
    pub wanted: u64,
    /// Number established at some time.
    pub stood: u64,
    /// Number never established: refused, or without a response.
    pub failed: u64,
    /// Most that were open at once.
    pub peak: u64,
    /// Number open when the load ended.
    pub open: u64,
    /// Ended by the server in order, and by a reset.
    pub closed: u64,
    pub reset: u64,
    /// Bytes that the server sent on them without a request.
    pub bytes: u64,
    /// Time from opening the first to establishing the last.
    pub setup: Nanos,
    /// Ages of connections closed by the server: minimum, median and maximum.
    pub age_min: Nanos,
    pub age_p50: Nanos,
    pub age_max: Nanos,
}

impl HeldFacts {
    /// Adds the connections of another worker. The median of both is that of the worker with more
    /// closed ones.
    pub fn add(&mut self, other: &HeldFacts) {
        let (ended, more) = (self.ended(), other.ended());
        if more > 0 {
            self.age_min = if ended > 0 { self.age_min.min(other.age_min) } else { other.age_min };
            self.age_p50 = if more > ended { other.age_p50 } else { self.age_p50 };
            self.age_max = self.age_max.max(other.age_max);
        }
        self.wanted += other.wanted;
        self.stood += other.stood;
        self.failed += other.failed;
        self.peak += other.peak;
        self.open += other.open;
        self.closed += other.closed;
        self.reset += other.reset;
        self.bytes += other.bytes;
        self.setup = self.setup.max(other.setup);
    }

    /// Returns the number closed by the server.
    pub fn ended(&self) -> u64 {
        self.closed + self.reset
    }
}
