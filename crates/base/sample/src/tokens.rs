//! Token requests of a run, counted separately from its calls.

use units::Nanos;

/// Requests for tokens (OAuth 2.0 client credentials).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenFacts {
    /// Requests answered with a token.
    pub obtained: u64,
    /// Obtained before the expiry of an earlier token.
    pub renewed: u64,
    /// Obtained after the server answered 401 to an earlier token.
    pub replaced: u64,
    /// Requests without a token in the response.
    pub failed: u64,
    /// Longest time of an answered request.
    pub slowest: Nanos,
    /// Reason why the last failed request failed.
    pub trouble: Option<String>,
}

impl TokenFacts {
    /// Adds the requests of another run.
    pub fn add(&mut self, other: &TokenFacts) {
        self.obtained += other.obtained;
        self.renewed += other.renewed;
        self.replaced += other.replaced;
        self.failed += other.failed;
        self.slowest = self.slowest.max(other.slowest);
        self.trouble = other.trouble.clone().or_else(|| self.trouble.take());
    }
}
