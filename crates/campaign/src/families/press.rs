//! Many connections at once: how many of a state a server bears before well-behaved clients observe it.

pub(super) mod burst;
pub(super) mod churn;
pub(super) mod held;
pub(super) mod honest;
pub(super) mod parting;
mod refill;
mod siege;

use units::Nanos;

/// New connections a second where nothing else is said.
const OPENS: u64 = 150;

/// Between two of so many a second.
fn pace(per_second: u64) -> Nanos {
    Nanos(Nanos::SECOND.0 / per_second.max(1))
}
