//! Many connections at once: the number of connections in a state at which well-behaved clients are
//! affected.

pub(super) mod burst;
pub(super) mod churn;
mod connection_search;
pub(super) mod held;
pub(super) mod honest;
pub(super) mod parting;
mod refill;

use units::Nanos;

/// Default number of new connections per second.
const OPENS: u64 = 150;

/// Returns the interval for this many per second.
fn pace(per_second: u64) -> Nanos {
    Nanos(Nanos::SECOND.0 / per_second.max(1))
}
