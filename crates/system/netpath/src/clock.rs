//! The monotonic clock.

use rustix::time::{ClockId, clock_gettime};
use units::Nanos;

pub(crate) fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
