//! Purpose of a step, and a measurement as a point of the curve.

use super::{Axis, Point};
use crate::{CauseId, Little, Measurement, Metric, Objective, Op, State, Verdict, offered};
use units::Nanos;

/// Purpose of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// A step of the staircase on its way up.
    #[default]
    Up,
    /// The same level again on the way down.
    Down,
    /// Trial of the search for the capacity.
    Search,
    /// Long trial that confirms or refutes the result of the search.
    Confirm,
    /// Deliberately beyond the capacity.
    Overload,
    /// Step after an overload, until the server answers as before.
    Recovery,
}

impl Purpose {
    pub const ALL: [Purpose; 6] = [
        Purpose::Up,
        Purpose::Down,
        Purpose::Search,
        Purpose::Confirm,
        Purpose::Overload,
        Purpose::Recovery,
    ];

    /// Returns a stable name.
    pub fn id(self) -> &'static str {
        match self {
            Purpose::Up => "up",
            Purpose::Down => "down",
            Purpose::Search => "search",
            Purpose::Confirm => "confirm",
            Purpose::Overload => "overload",
            Purpose::Recovery => "recovery",
        }
    }

    /// Returns the purpose with this name.
    pub fn from_name(id: &str) -> Option<Purpose> {
        Purpose::ALL.into_iter().find(|purpose| purpose.id() == id)
    }
}

/// Causes of a verdict that mean: the client, not the server, was the limit.
pub const OF_THE_CLIENT: [CauseId; 6] = [
    CauseId::NotOffered,
    CauseId::Slip,
    CauseId::Wait,
    CauseId::Ports,
    CauseId::Descriptors,
    CauseId::DriverCpu,
];

impl Point {
    /// Returns the measurement of one step. `level`: requested value on the axis. `sessions`: each
    /// arrival is a session of calls, which are due long after it, so that the offered load is
    /// counted over the window and not over the time of the arrivals.
    pub fn new(
        level: f64,
        measurement: &Measurement,
        verdict: &Verdict,
        sessions: bool,
        objectives: &[Objective],
    ) -> Point {
        let (total, window) = (&measurement.total, measurement.window);
        let per_s = |count: u64, span: Nanos| match span.is_zero() {
            true => 0.0,
            false => count as f64 / span.as_secs_f64(),
        };
        let response = total.response();
        let mean = |hist: &crate::Hist| match hist.is_empty() {
            true => f64::NAN,
            false => hist.mean().as_secs_f64(),
        };
        let figures = |objective: &Objective| objective.figures(total, window);
        let met = objectives.iter().map(|objective| objective.evaluate(&figures(objective)).1);
        let failure_share = total.counts.failure_share();
        let span = if sessions { window } else { measurement.due_span() };
        let point = Point {
            level,
            offered_per_s: per_s(offered(total), span),
            achieved_per_s: per_s(total.in_window, window),
            goodput_per_s: per_s(total.good_in_window, window),
            concurrency: Little::new(total, window).map_or(0.0, |little| little.concurrency),
            response_mean_s: mean(&response),
            service_mean_s: mean(&total.service),
            p99_s: match response.is_empty() {
                true => f64::NAN,
                false => response.quantile(0.99).as_secs_f64(),
            },
            failure_share,
            failures_max: allowed_failures(objectives),
            met: met.reduce(|all, one| all && one),
            client_limited: client_limited(verdict),
            window_s: window.as_secs_f64(),
        };
        // fast refusals stay within a time bound, but are not capacity
        Point { met: point.met.map(|met| met && !point.fails()), ..point }
    }

    /// Returns whether the server sustains the load here: completions match the offered load
    /// (always true over populations), no more calls fail than permitted, and the objectives are
    /// met. The thresholds are those of the knee: 99 % and 0.1 %. `rest_s`: mean response time of
    /// the idle server (at most a quarter of the window counts); calls due this shortly before the
    /// end may still be in flight.
    pub fn follows(&self, axis: Axis, rest_s: f64) -> bool {
        let under_way = self.offered_per_s * rest_s.clamp(0.0, 0.25 * self.window_s) + 1.0;
        let expected = 0.99 * self.offered_per_s * self.window_s - under_way;
        let keeps_up = axis != Axis::Rate || self.served_per_s() * self.window_s >= expected;
        keeps_up && !self.fails() && self.met != Some(false)
    }

    /// Returns the successful responses per second and, while no more fail than permitted, the
    /// failed ones.
    pub(super) fn served_per_s(&self) -> f64 {
        if self.fails() { self.goodput_per_s } else { self.achieved_per_s }
    }
}

/// Returns the share of failures that the objectives of the whole run allow, the strictest of
/// several.
fn allowed_failures(objectives: &[Objective]) -> Option<f64> {
    let bound = |objective: &Objective| {
        let above = matches!(objective.op, Op::Below | Op::AtMost);
        let of_run = objective.metric == Metric::Failures && objective.of.is_none();
        (of_run && above).then_some(objective.bound)
    };
    objectives.iter().filter_map(bound).min_by(f64::total_cmp)
}

/// Returns whether the client, not the server, set the limit.
fn client_limited(verdict: &Verdict) -> bool {
    let of_the_client = verdict.causes.iter().any(|cause| OF_THE_CLIENT.contains(&cause.id));
    verdict.state != State::Valid && of_the_client
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Counts};
    use sample::{Outcome, Sample};

    #[test]
    fn every_purpose_is_found_by_its_name() {
        for purpose in Purpose::ALL {
            assert_eq!(Purpose::from_name(purpose.id()), Some(purpose));
        }
        assert_eq!(Purpose::from_name("sideways"), None);
    }

    fn verdict(id: CauseId, state: State) -> Verdict {
        let cause = Cause { id, figure: 1.0, text: String::new(), advice: String::new() };
        Verdict { state, causes: vec![cause] }
    }

    /// Returns ten calls due in one second, nine of them answered after 10 ms.
    fn measurement() -> Measurement {
        let window = Nanos::SECOND;
        let mut recorder = crate::Recorder::new(1, (Nanos::ZERO, window));
        for index in 0..10 {
            let at = Nanos::from_millis(index * 100);
            recorder.due(at);
            recorder.issued(at, at);
            let sample = Sample {
                intended: at,
                issued: at,
                admitted: at,
                sent: at,
                first_byte: at + Nanos::from_millis(9),
                done: at + Nanos::from_millis(10),
                ..Sample::default()
            };
            let outcome = if index == 9 { Outcome::Failed } else { Outcome::Succeeded };
            recorder.done(&sample, outcome, true);
        }
        let total = *recorder.swap(window, Box::default());
        assert_eq!(total.counts.conserved(), Ok(()), "{:?}", Counts::default());
        Measurement { total, window, elapsed: window, ..Measurement::default() }
    }

    #[track_caller]
    fn near(figure: f64, expected: f64) {
        assert!((figure / expected - 1.0).abs() < 0.01, "{figure} is not {expected}");
    }

    #[test]
    fn a_measurement_becomes_a_point() {
        let objectives = crate::parse_objectives("p99<50ms, failures<5%").unwrap();
        let point = Point::new(10.0, &measurement(), &Verdict::default(), false, &objectives);
        near(point.offered_per_s, 10.0);
        near(point.achieved_per_s, 10.0);
        near(point.goodput_per_s, 9.0);
        near(point.concurrency, 0.1);
        near(point.response_mean_s, 0.01);
        near(point.failure_share, 0.1);
        assert_eq!(point.met, Some(false));
        assert!(!point.client_limited && !point.follows(Axis::Rate, 0.01));
    }

    #[test]
    fn failures_miss_an_objective_of_time() {
        // one of ten calls fails
        for (objectives, fails, met) in [
            ("p99<50ms", true, false),
            ("p99<50ms, failures<5%", true, false),
            ("p99<50ms, failures<20%", false, true),
            ("p99<50ms, failures<20%, failures<5%", true, false),
        ] {
            let parsed = crate::parse_objectives(objectives).unwrap();
            let point = Point::new(10.0, &measurement(), &Verdict::default(), false, &parsed);
            assert_eq!((point.fails(), point.met), (fails, Some(met)), "{objectives}");
        }
    }

    #[test]
    fn without_objectives_nothing_is_met_or_missed() {
        let point = Point::new(10.0, &Measurement::default(), &Verdict::default(), false, &[]);
        assert_eq!(point.met, None);
        assert!(point.response_mean_s.is_nan() && point.p99_s.is_nan());
    }

    #[test]
    fn the_client_is_reported_when_it_set_the_limit() {
        let limited = |id, state| {
            Point::new(1.0, &measurement(), &verdict(id, state), false, &[]).client_limited
        };
        assert!(limited(CauseId::NotOffered, State::Invalid));
        assert!(limited(CauseId::Descriptors, State::Invalid));
        assert!(limited(CauseId::DriverCpu, State::Degraded));
        assert!(!limited(CauseId::Drift, State::Degraded));
        assert!(!limited(CauseId::AllFailed, State::Invalid));
    }
}
