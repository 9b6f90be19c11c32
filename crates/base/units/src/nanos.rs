//! An instant or a span in whole nanoseconds.

use std::ops::{Add, AddAssign, Mul, Sub};

/// Nanoseconds: an instant on the monotonic clock of one process, or the span between two instants.
///
/// Subtraction saturates at zero: two instants that the kernel stamped out of order are "at the
/// same time", never a span of 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    pub const ZERO: Nanos = Nanos(0);
    /// Later than any instant: "never" for deadlines.
    pub const NEVER: Nanos = Nanos(u64::MAX);
    pub const SECOND: Nanos = Nanos(1_000_000_000);

    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros.saturating_mul(1_000))
    }

    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis.saturating_mul(1_000_000))
    }

    pub const fn from_secs(secs: u64) -> Nanos {
        Nanos(secs.saturating_mul(1_000_000_000))
    }

    /// Converts seconds to the nearest nanosecond: negative values and NaN to zero, too large ones
    /// to [`Self::NEVER`].
    pub fn from_secs_f64(secs: f64) -> Nanos {
        Nanos((secs * 1e9).round() as u64)
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    pub const fn saturating_add(self, span: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(span.0))
    }

    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, span: Nanos) -> Nanos {
        self.saturating_add(span)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, span: Nanos) {
        *self = *self + span;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Mul<u64> for Nanos {
    type Output = Nanos;
    fn mul(self, times: u64) -> Nanos {
        Nanos(self.0.saturating_mul(times))
    }
}

#[cfg(test)]
mod tests;
