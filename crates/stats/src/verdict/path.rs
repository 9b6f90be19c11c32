//! Whether an emulated path did what it was asked to do.

use crate::{Cause, CauseId};
use sample::PathFacts;
use units::{Nanos, show};

/// DEGRADED `path-late`: p99 of the forwarder's own lateness above this, and above
/// [`PATH_LATE_SHARE_MAX`] of the shortest round trip that was asked for, whichever is less.
pub const PATH_LATE_MAX: Nanos = Nanos::from_millis(1);
pub const PATH_LATE_SHARE_MAX: f64 = 0.05;
/// Lateness that no round trip is too short for: what a sleeping thread needs to wake up.
pub const PATH_LATE_MIN: Nanos = Nanos::from_micros(100);

/// INVALID `path-overload`: packets that no model lost.
pub fn path_overload(facts: &PathFacts) -> Option<Cause> {
    (facts.overflowed > 0).then(|| Cause {
        id: CauseId::PathOverload,
        figure: facts.overflowed as f64,
        text: format!(
            "{} packets were lost to the emulation itself, beside the {} that came to it",
            show::count(facts.overflowed),
            show::count(facts.packets())
        ),
        advice: "More packets came than one core forwards: lower the load or the path's rate, or \
                 use fewer, larger responses."
            .to_owned(),
    })
}

/// DEGRADED `path-late`: the path was slower than it was asked to be.
pub fn path_late(facts: &PathFacts) -> Option<Cause> {
    let limit = late_limit(facts.rtt_min());
    (facts.late_p99 > limit).then(|| Cause {
        id: CauseId::PathLate,
        figure: facts.late_p99.as_secs_f64(),
        text: format!(
            "packets were handed over late by {} (p99, at most {}; p50 {}), on a path of {} round \
             trip",
            show::duration(facts.late_p99),
            show::duration(limit),
            show::duration(facts.late_p50),
            show::duration(facts.rtt_min())
        ),
        advice:
            "The round trips are longer than asked for by that much: give the forwarder a free \
                 core (fewer --threads, --cpus), or lower the load."
                .to_owned(),
    })
}

fn late_limit(rtt: Nanos) -> Nanos {
    if rtt.is_zero() {
        return PATH_LATE_MAX;
    }
    let share = Nanos((rtt.0 as f64 * PATH_LATE_SHARE_MAX) as u64);
    share.clamp(PATH_LATE_MIN, PATH_LATE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::PathKind;

    fn facts(rtt: Nanos, late_p99: Nanos, overflowed: u64) -> PathFacts {
        let kind = PathKind { rtt, ..PathKind::default() };
        PathFacts { kinds: vec![kind], late_p99, overflowed, ..PathFacts::default() }
    }

    #[test]
    fn lateness_counts_from_a_millisecond_or_a_twentieth_of_the_round_trip() {
        let late = |rtt_ms, late_us| {
            let facts = facts(Nanos::from_millis(rtt_ms), Nanos::from_micros(late_us), 0);
            path_late(&facts).is_some()
        };
        assert_eq!([late(300, 1_000), late(300, 1_001)], [false, true]);
        assert_eq!([late(4, 200), late(4, 201)], [false, true]);
        assert_eq!([late(1, 100), late(1, 101)], [false, true]);
        assert_eq!([late(0, 1_000), late(0, 1_001)], [false, true]);
    }

    #[test]
    fn one_packet_that_no_model_lost_is_too_many() {
        let of = |lost| path_overload(&facts(Nanos::ZERO, Nanos::ZERO, lost));
        assert_eq!(of(0), None);
        let cause = of(1).expect("a cause");
        assert_eq!(cause.id.id(), "path-overload");
        assert!(cause.text.starts_with("1 packets were lost to the emulation itself"));
    }
}
