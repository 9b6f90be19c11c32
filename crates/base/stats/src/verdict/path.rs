//! Checks whether an emulated path behaved as configured.

use crate::{Cause, CauseId};
use sample::PathFacts;
use units::{Nanos, show};

/// DEGRADED `path-late`: median of the forwarder's own lateness above this share of the shortest
/// configured round trip. It is then in every round trip.
pub const PATH_LATE_SHARE_MAX: f64 = 0.05;
/// Lateness that is acceptable for any round trip: the wake-up time of a sleeping thread.
pub const PATH_LATE_MIN: Nanos = Nanos::from_micros(100);
/// If response times are unknown: p99 of the lateness above this, and above
/// [`DOUBT_MAX`](super::DOUBT_MAX) of the shortest round trip.
pub const PATH_LATE_MAX: Nanos = Nanos::from_millis(1);

/// Results that lateness could change.
#[derive(Clone, Debug)]
pub struct PathAnswer {
    /// p99 of the response time.
    pub p99: Nanos,
    /// Share that may be due to lateness: [`Evidence::doubt_max`](super::Evidence::doubt_max).
    pub doubt_max: f64,
    /// A time objective that was missed by at most the lateness.
    pub turned: Option<String>,
}

/// Returns the delay of a response by the lateness of the path: once for each direction.
pub fn round_trip_lateness(facts: &PathFacts) -> Nanos {
    facts.late_p99 + facts.late_p99
}

/// Returns the cause `path-overload` (INVALID): packets that no model lost.
pub fn path_overload(facts: &PathFacts) -> Option<Cause> {
    (facts.overflowed > 0).then(|| Cause {
        id: CauseId::PathOverload,
        figure: facts.overflowed as f64,
        text: format!(
            "the emulation itself lost {} packets, in addition to the {} that reached it",
            show::count(facts.overflowed),
            show::count(facts.packets())
        ),
        advice: "More packets arrived than one core can forward: lower the load or the path's \
            rate, or use fewer, larger responses."
            .to_owned(),
    })
}

/// Returns the cause `path-late` (DEGRADED): the path was slower than configured, by enough to
/// change the answer: the usual round trip is longer, or the p99, or an objective was missed
/// because of it. Delays of a few packets in a hundred change none of these, and are reported only
/// among the facts.
pub fn path_late(facts: &PathFacts, answer: Option<&PathAnswer>) -> Option<Cause> {
    let text = usual(facts).or_else(|| match answer {
        Some(answer) => path_caution(facts, answer),
        None => alone(facts),
    })?;
    Some(Cause {
        id: CauseId::PathLate,
        figure: facts.late_p99.as_secs_f64(),
        text,
        advice:
            "The round trips are longer than configured by that much: give the emulation a free \
                 core (fewer --threads, --cpus), or lower the load."
                .to_owned(),
    })
}

fn usual(facts: &PathFacts) -> Option<String> {
    let limit = PATH_LATE_MIN.max(share(facts.rtt_min(), PATH_LATE_SHARE_MAX));
    (facts.late_p50 > limit).then(|| {
        format!(
            "packets were usually delivered late by {} (p50, at most {}), on a path of {} round \
             trip",
            show::duration(facts.late_p50),
            show::duration(limit),
            show::duration(facts.rtt_min())
        )
    })
}

fn path_caution(facts: &PathFacts, answer: &PathAnswer) -> Option<String> {
    if let Some(objective) = &answer.turned {
        return Some(format!(
            "{objective} was missed by no more than the lateness of the path: {} (p99, both ways)",
            show::duration(round_trip_lateness(facts))
        ));
    }
    let limit = PATH_LATE_MIN.max(share(answer.p99, answer.doubt_max));
    (!answer.p99.is_zero() && facts.late_p99 > limit).then(|| {
        format!(
            "packets were delivered late by {} (p99), where the p99 of the response time is {} \
             (at most {} of it)",
            show::duration(facts.late_p99),
            show::duration(answer.p99),
            show::share(answer.doubt_max)
        )
    })
}

fn alone(facts: &PathFacts) -> Option<String> {
    let limit = PATH_LATE_MAX.max(share(facts.rtt_min(), super::DOUBT_MAX));
    (facts.late_p99 > limit).then(|| {
        format!(
            "packets were delivered late by {} (p99, at most {}), on a path of {} round trip",
            show::duration(facts.late_p99),
            show::duration(limit),
            show::duration(facts.rtt_min())
        )
    })
}

fn share(of: Nanos, share: f64) -> Nanos {
    Nanos((of.0 as f64 * share) as u64)
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
    fn lateness_counts_if_it_can_change_the_answer() {
        let late = |p50_us, p99_us, answer: Option<&PathAnswer>| {
            let facts = facts(Nanos::from_millis(20), Nanos::from_micros(p99_us), 0);
            let facts = PathFacts { late_p50: Nanos::from_micros(p50_us), ..facts };
            path_late(&facts, answer).map_or_else(String::new, |cause| cause.text)
        };
        let answer = |turned: Option<&str>| PathAnswer {
            p99: Nanos::from_millis(40),
            doubt_max: 0.25,
            turned: turned.map(str::to_owned),
        };
        // one in a hundred waited for a busy core: negligible in a p99 of 40 ms
        assert_eq!(late(5, 5_000, Some(&answer(None))), "");
        assert_eq!(
            late(5, 10_001, Some(&answer(None))),
            "packets were delivered late by 10.0 ms (p99), where the p99 of the response time is \
             40.0 ms (at most 25.0 % of it)"
        );
        assert_eq!(
            late(5, 5_000, Some(&answer(Some("p99<39ms")))),
            "p99<39ms was missed by no more than the lateness of the path: 10.0 ms (p99, both ways)"
        );
        // a twentieth of the round trip, in every one
        assert_eq!(late(1_000, 2_000, Some(&answer(None))), "");
        assert!(late(1_001, 2_000, Some(&answer(None))).starts_with("packets were usually"));
        assert_eq!(late(5, 5_000, None), "");
        assert!(late(5, 5_001, None).contains("(p99, at most 5.00 ms), on a path of 20.0 ms"));
    }

    #[test]
    fn one_packet_that_no_model_lost_is_too_many() {
        let of = |lost| path_overload(&facts(Nanos::ZERO, Nanos::ZERO, lost));
        assert_eq!(of(0), None);
        let cause = of(1).expect("a cause");
        assert_eq!(cause.id.id(), "path-overload");
        assert!(cause.text.starts_with("the emulation itself lost 1 packets"));
    }
}
