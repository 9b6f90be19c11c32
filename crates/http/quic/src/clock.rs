//! Converts between two clocks: this program counts nanoseconds, the library uses the type of the
//! standard library.

use std::time::{Duration, Instant};
use units::Nanos;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    instant: Instant,
    nanos: Nanos,
}

impl Clock {
    /// Creates the conversion: both arguments are the same time.
    pub(crate) fn new(instant: Instant, nanos: Nanos) -> Clock {
        Clock { instant, nanos }
    }

    pub(crate) fn instant(&self, at: Nanos) -> Instant {
        self.instant + Duration::from_nanos((at - self.nanos).0)
    }

    /// Converts to nanoseconds, rounded up; never before the time of [`Clock::new`].
    pub(crate) fn nanos(&self, at: Instant) -> Nanos {
        let span = at.saturating_duration_since(self.instant);
        self.nanos + Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX >> 1))
    }
}
