//! A server's whole curve: its behavior at each level of load, and the conclusions. Levels are
//! offered rates (calls a second) or populations (users); every estimated figure has its interval.
//! [`curve`] combines the steps; [`Search`] decides which load to try next.

mod assemble;
mod crumbs;
mod failing;
mod kneedle;
mod knees;
mod point;
mod recovery;
mod search;
mod shape;
mod threshold;
mod usl;

pub use assemble::curve;
pub use crumbs::inconclusive_reason;
pub use failing::{FAILURES_MAX, failing_from, fails_alike};
pub use kneedle::{Form, kneedle};
pub use knees::{Level, knee, knee_by_kneedle, levels, power};
pub use point::{OF_THE_CLIENT, Purpose};
pub use recovery::as_before;
pub use search::{Next, Search, SearchConfig, Trial, TrialEnd};
pub use shape::{hysteresis, overload, peak, predicted};
pub use threshold::{Tried, threshold};
pub use usl::usl;

use crate::Objective;

/// Unit of a step's level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axis {
    /// Offered calls a second, open load.
    #[default]
    Rate,
    /// Users of a closed load.
    Population,
    /// Share of packets that an emulated path loses in each direction, 0..=1, at constant load.
    Loss,
    /// Seconds of the path's round trip.
    RoundTrip,
    /// Bits per second that the path carries in each direction.
    LinkRate,
}

impl Axis {
    pub const ALL: [Axis; 5] =
        [Axis::Rate, Axis::Population, Axis::Loss, Axis::RoundTrip, Axis::LinkRate];

    /// Returns whether levels are loads. Otherwise they are properties of the path, the load is
    /// constant, and there is neither a knee nor an overload.
    pub fn is_load(self) -> bool {
        matches!(self, Axis::Rate | Axis::Population)
    }

    /// Returns a stable name.
    pub fn id(self) -> &'static str {
        match self {
            Axis::Rate => "rate",
            Axis::Population => "population",
            Axis::Loss => "loss",
            Axis::RoundTrip => "rtt",
            Axis::LinkRate => "link-rate",
        }
    }
}

/// One step of one target: a load that was held, and its measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// The requested load, on the [`Axis`].
    pub level: f64,
    /// Calls presented to the server a second.
    pub offered_per_s: f64,
    /// Completions per second inside the window, and successful ones among them.
    pub achieved_per_s: f64,
    pub goodput_per_s: f64,
    /// Mean calls in flight (Little).
    pub concurrency: f64,
    /// Mean response and service time in seconds; NaN without a sample.
    pub response_mean_s: f64,
    pub service_mean_s: f64,
    pub p99_s: f64,
    /// (failed + timed out + dropped) / due, 0..=1.
    pub failure_share: f64,
    /// Share of failures that the objectives permit, 0..=1; `None` if they do not bound failures,
    /// and 0.1 % is permitted.
    pub failures_max: Option<f64>,
    /// True if each objective of the search was met by a server that does not fail; `None` without
    /// objectives.
    pub met: Option<bool>,
    /// The client, not the server, set the limit: shown, never used in a fit.
    pub client_limited: bool,
    /// Length of the measured window in seconds; 0 if unknown. Calls in flight at its end are
    /// missing among the completions, which matters for short windows.
    pub window_s: f64,
}

/// A figure with its interval; both ends are NaN for a single repeat, which has no interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    pub at: f64,
    pub low: f64,
    pub high: f64,
}

impl Span {
    /// Returns the ends of the interval, if known; the upper end may be infinite.
    pub fn interval(&self) -> Option<(f64, f64)> {
        (!self.low.is_nan() && !self.high.is_nan()).then_some((self.low, self.high))
    }

    /// Returns whether the interval has no lower end because no lower load was measured. False for
    /// a load of 0, the lowest possible.
    pub fn is_open_below(&self) -> bool {
        self.at > 0.0 && self.low <= 0.0
    }
}

/// Load at which throughput stops keeping up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Knee {
    /// Offered calls per second, or users; the lower end is 0 if the lowest level already fell
    /// short.
    pub at: Span,
    /// The rule that found it, as text: `achieved/offered < 0.99 at two levels running`.
    pub rule: String,
}

/// Largest load that meets the objectives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capacity {
    pub at: Span,
    /// Confidence of the interval, 0..1.
    pub confidence: f64,
    pub objectives: Vec<Objective>,
    pub how: CapacityEnd,
}

/// Limit of a capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CapacityEnd {
    /// Loads above it missed the objectives, loads below met them.
    #[default]
    Bracketed,
    /// Every tested load met the objectives: the interval has no upper end (infinite).
    NeverMissed,
    /// No tested load met the objectives: `at` is 0, and `high` the lowest tested load.
    NeverMet,
    /// The client's own limit came first: `low` is the measured part, the upper end is infinite.
    ClientLimited,
}

impl CapacityEnd {
    pub const ALL: [CapacityEnd; 4] = [
        CapacityEnd::Bracketed,
        CapacityEnd::NeverMissed,
        CapacityEnd::NeverMet,
        CapacityEnd::ClientLimited,
    ];

    /// Returns a stable name.
    pub fn id(self) -> &'static str {
        match self {
            CapacityEnd::Bracketed => "bracketed",
            CapacityEnd::NeverMissed => "never-missed",
            CapacityEnd::NeverMet => "never-met",
            CapacityEnd::ClientLimited => "client-limited",
        }
    }
}

/// Throughput past the knee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverloadShape {
    /// At least 95 % of the peak is kept.
    Flat,
    /// Less, but at least half.
    Sag,
    /// Less than half of the peak is kept.
    Collapse,
    /// No usable step is far enough beyond the knee.
    #[default]
    Unseen,
}

impl OverloadShape {
    pub const ALL: [OverloadShape; 4] =
        [OverloadShape::Flat, OverloadShape::Sag, OverloadShape::Collapse, OverloadShape::Unseen];

    /// Returns a stable name.
    pub fn id(self) -> &'static str {
        match self {
            OverloadShape::Flat => "flat",
            OverloadShape::Sag => "sag",
            OverloadShape::Collapse => "collapse",
            OverloadShape::Unseen => "unseen",
        }
    }
}

/// Behavior past the knee, and after it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overload {
    pub shape: OverloadShape,
    /// Share of the peak goodput that is kept at twice the knee (or at `at_level`, the nearest
    /// usable level above 1.5 knees), 0..=1; NaN if not observed.
    pub kept_share: f64,
    pub at_level: f64,
    /// Seconds from the end of the overload until the server answered as before; NaN if not
    /// measured, infinite if it did not within the time limit.
    pub recovery_s: f64,
}

/// The universal scalability law, X(N) = g N / (1 + a (N − 1) + b N (N − 1)), fitted to throughput
/// against mean concurrency (Gunther).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usl {
    /// Throughput of one, contention, coherency; the latter two are not negative.
    pub g: Span,
    pub a: Span,
    pub b: Span,
    /// Concurrency of the largest throughput; infinite when b is 0.
    pub n_max: f64,
    /// Throughput at that point; g/a if b is 0.
    pub x_max: f64,
    /// Residual standard error, calls a second; n − 3 degrees of freedom.
    pub residual: f64,
    /// Number of points in the fit.
    pub points: usize,
}

/// Difference between the way up and the way down at the same levels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hysteresis {
    /// Largest relative loss of goodput on the way down, 0..=1, and its level.
    pub loss_share: f64,
    pub at_level: f64,
}

/// Conclusions from the steps of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Highest goodput of a usable step, with the interval over its repeats, calls a second.
    pub peak: Option<Span>,
    pub knee: Option<Knee>,
    /// The knee by Kneedle, from the form of throughput over load only, for comparison.
    pub kneedle: Option<Knee>,
    /// Level of the largest power (Kleinrock): throughput over mean response time.
    pub power_at: Option<f64>,
    /// Throughput at the objective or, without one, the highest level before the knee with failures
    /// below 0.1 %.
    pub capacity: Option<Capacity>,
    pub overload: Overload,
    pub usl: Option<Usl>,
    pub hysteresis: Option<Hysteresis>,
    /// Capacity predicted from one call at a time (1 / mean service time of the lowest step), in
    /// calls per second; `None` if unknown, or if a step exceeded it.
    pub predicted_per_s: Option<f64>,
    /// Sentences about missing conclusions, with the reasons.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests;
