//! Comparison of posted data with the server's log.

/// POSTs compared with the server's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostFacts {
    /// POSTs that were answered: each must be in the log.
    pub answered: u64,
    /// POSTs without a correct response: each may be in the log.
    pub unanswered: u64,
    /// Number of records of the log.
    pub recorded: u64,
    /// Answered, and not in the log.
    pub missing: u64,
    /// POSTs that are in the log, but were never sent.
    pub unknown: u64,
    /// Reason why there is no log for the comparison.
    pub trouble: Option<String>,
}

impl PostFacts {
    /// Returns whether the log exists and contains the sent POSTs.
    pub fn agree(&self) -> bool {
        self.trouble.is_none() && self.missing + self.unknown == 0
    }

    /// Adds the records of another run.
    pub fn add(&mut self, other: &PostFacts) {
        self.answered += other.answered;
        self.unanswered += other.unanswered;
        self.recorded += other.recorded;
        self.missing += other.missing;
        self.unknown += other.unknown;
        self.trouble = self.trouble.take().or_else(|| other.trouble.clone());
    }
}
