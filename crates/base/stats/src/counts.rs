//! Arrivals by outcome.

/// Arrivals by outcome. `due` is always the sum of the others (law 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub due: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub dropped: u64,
    pub abandoned: u64,
    /// Arrivals due on a lost machine, whose outcome is unknown. Always 0 on one machine.
    pub lost: u64,
    /// Gauges at the end of the interval: due, not yet issued; issued, not yet done. In an interval
    /// snapshot they are changes, so that sums over intervals and workers are levels.
    pub queued: i64,
    pub in_flight: i64,
}

impl Counts {
    /// Checks law 2. `Err` has the message about the broken count.
    pub fn conserved(&self) -> Result<(), String> {
        let ended = self.succeeded
            + self.failed
            + self.timed_out
            + self.dropped
            + self.abandoned
            + self.lost;
        let accounted = ended as i64 + self.queued + self.in_flight;
        if accounted == self.due as i64 {
            return Ok(());
        }
        Err(format!(
            "conservation broken: {} due but {accounted} accounted for: {self:?}",
            self.due
        ))
    }

    pub fn merge(&mut self, other: &Counts) {
        self.due += other.due;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.dropped += other.dropped;
        self.abandoned += other.abandoned;
        self.lost += other.lost;
        self.queued += other.queued;
        self.in_flight += other.in_flight;
    }

    /// Returns the number of calls with a known outcome, except dropped and abandoned ones.
    pub fn done(&self) -> u64 {
        self.succeeded + self.failed + self.timed_out
    }

    /// Returns the number of failed, timed-out and dropped calls.
    pub fn unsuccessful(&self) -> u64 {
        self.failed + self.timed_out + self.dropped
    }

    /// Returns (failed + timed out + dropped) / due, 0..=1.
    pub fn failure_share(&self) -> f64 {
        if self.due == 0 { 0.0 } else { self.unsuccessful() as f64 / self.due as f64 }
    }
}
