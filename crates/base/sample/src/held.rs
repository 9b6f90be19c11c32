//! Connections that were held open beside a load and never used.

use units::Nanos;

/// What became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldFacts {
    /// How many were to be held.
    pub wanted: u64,
    /// How many stood at some time.
    pub stood: u64,
    /// How many never stood: refused, or without a response.
    pub failed: u64,
    /// Most that were open at once.
    pub peak: u64,
    /// How many were open when the load ended.
    pub open: u64,
    /// Ended by the server in order, and by a reset.
    pub closed: u64,
    pub reset: u64,
    /// Bytes that the server sent on them unasked.
    pub bytes: u64,
    /// From the first that was opened to the last of them that stood.
    pub setup: Nanos,
    /// How long those had stood that the server ended: the shortest, the median and the longest.
    pub age_min: Nanos,
    pub age_p50: Nanos,
    pub age_max: Nanos,
}

impl HeldFacts {
    /// Adds another worker's. The median of both is that of the one with more ended ones.
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

    /// How many the server ended.
    pub fn ended(&self) -> u64 {
        self.closed + self.reset
    }
}
