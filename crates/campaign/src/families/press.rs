//! Many connections at once: how many of a state a server bears before well-behaved clients observe it.

mod burst;
mod churn;
pub(super) mod held;
mod honest;
mod parting;
mod refill;
mod siege;

use super::Member;
use units::Nanos;

pub(super) const MEMBERS: &[Member] = &[
    Member { name: "press.held", run: held::run },
    Member { name: "press.rate", run: churn::rate },
    Member { name: "press.resets", run: parting::resets },
    Member { name: "press.ends", run: parting::ends },
    Member { name: "press.burst", run: burst::run },
    Member { name: "press.keep-alive", run: churn::keep_alive },
    Member { name: "press.honest", run: honest::run },
];

/// Those whose connections come and go.
pub(super) const BRIEF: [&str; 4] =
    ["press.rate", "press.resets", "press.ends", "press.keep-alive"];

/// New connections a second where nothing else is said.
const OPENS: u64 = 150;

/// Between two of so many a second.
fn pace(per_second: u64) -> Nanos {
    Nanos(Nanos::SECOND.0 / per_second.max(1))
}
