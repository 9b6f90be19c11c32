//! Curves of known form, and the conclusions from their steps.

use super::*;

/// Returns the measurement of a server with a capacity of `capacity` per second and responses in 4
/// ms; beyond it, it keeps the share `kept`.
fn server(level: f64, capacity: f64, kept: f64) -> Point {
    let achieved = if level <= capacity { level } else { capacity * kept };
    Point {
        level,
        offered_per_s: level,
        achieved_per_s: achieved,
        goodput_per_s: achieved,
        concurrency: achieved * 0.004,
        response_mean_s: 0.004,
        service_mean_s: 0.004,
        p99_s: if level <= capacity { 0.010 } else { 1.0 },
        met: Some(level <= capacity),
        window_s: 10.0,
        ..Point::default()
    }
}

fn staircase(capacity: f64, kept: f64, top: u32) -> Vec<(Purpose, Point)> {
    (1..=top).map(|step| (Purpose::Up, server(f64::from(step) * 50.0, capacity, kept))).collect()
}

fn curve_text(curve: &Curve) -> String {
    let knee = curve.knee.as_ref().map(|knee| knee.at);
    let (knee, overload) = (knee.unwrap_or_default(), &curve.overload);
    format!(
        "{:.0} in {:.0}..{:.0}, {:?} {:.2} at {:.0}",
        knee.at, knee.low, knee.high, overload.shape, overload.kept_share, overload.at_level
    )
}

#[test]
fn overload_has_a_shape() {
    // (kept past the knee, highest of the 50/s steps) → knee, its interval, overload
    for (kept, top, expected) in [
        (1.0, 12, "261 in 248..300, Flat 1.00 at 500"),
        (0.8, 12, "250 in 248..300, Sag 0.84 at 500"),
        (0.3, 12, "250 in 248..300, Collapse 0.31 at 500"),
        (1.0, 7, "261 in 248..300, Unseen NaN at NaN"),
    ] {
        assert_eq!(curve_text(&curve(&staircase(261.0, kept, top), Axis::Rate, &[])), expected);
    }
}

/// A level between the knee and the peak has less goodput than the peak because less is offered.
#[test]
fn goodput_that_rises_past_the_knee_is_no_overload() {
    let failing = |level: f64| Point {
        goodput_per_s: level * 0.98,
        failure_share: if level > 100.0 { 0.02 } else { 0.0 },
        ..server(level, 1_000.0, 1.0)
    };
    let steps: Vec<_> =
        (1..=4).map(|step| (Purpose::Up, failing(f64::from(step) * 100.0))).collect();
    let found = curve(&steps, Axis::Rate, &[]);
    assert_eq!(curve_text(&found), "100 in 99..200, Flat 1.00 at 400");
}

/// An interval from 0 would claim that lower loads were tested.
#[test]
fn a_knee_below_every_usable_step_has_no_lower_end() {
    let mut steps = staircase(60.0, 1.0, 8);
    steps[0].1.client_limited = true;
    let limited = curve(&steps, Axis::Rate, &[]);
    let knee = limited.knee.as_ref().unwrap().at;
    assert_eq!((knee.low, knee.high, knee.is_open_below()), (0.0, 100.0, true));
    let note = "The knee may lie anywhere below 100, because no step below could be used: this \
        client was late, or at its own limit.";
    assert!(limited.notes.iter().any(|curve_text| curve_text == note), "{:?}", limited.notes);
    // the same where the first step was too high
    let high = curve(&steps[1..], Axis::Rate, &[]);
    let note = "The knee may lie anywhere below 100, because no step below was run: start lower.";
    assert!(high.notes.iter().any(|curve_text| curve_text == note), "{:?}", high.notes);
    let whole = curve(&staircase(100.0, 1.0, 8), Axis::Rate, &[]);
    assert!(!whole.knee.unwrap().at.is_open_below());
    assert!(
        whole.notes.iter().all(|curve_text| !curve_text.contains("anywhere below")),
        "{:?}",
        whole.notes
    );
}

#[test]
fn a_curve_without_saturation_has_no_knee() {
    let curve = curve(&staircase(1_000.0, 1.0, 8), Axis::Rate, &[]);
    assert_eq!(curve.knee, None);
    let capacity = curve.capacity.unwrap();
    assert_eq!((capacity.how, capacity.at.low), (CapacityEnd::NeverMissed, 400.0));
    assert!(capacity.at.high.is_infinite());
    assert_eq!(curve.notes[0], "No knee up to 400/s: throughput kept up with the load; go higher.");
    assert_eq!(
        curve.predicted_per_s, None,
        "350/s were measured, and one call at a time makes 250"
    );
}

/// A single step that falls short is not a knee, unless it is the last.
#[test]
fn one_dip_is_not_a_knee() {
    let mut steps = staircase(1_000.0, 1.0, 8);
    steps[3].1.achieved_per_s = 190.0;
    assert_eq!(curve(&steps, Axis::Rate, &[]).knee, None);
    steps[3].1.failure_share = 0.002;
    assert_eq!(curve_text(&curve(&steps, Axis::Rate, &[])), "150 in 148..200, Flat 1.00 at 400");
}

/// Short windows miss the calls in flight at their end: not a sign of saturation.
#[test]
fn calls_in_flight_after_a_short_window_are_not_a_knee() {
    let mut steps = staircase(1_000.0, 1.0, 8);
    for (_, point) in &mut steps {
        (point.window_s, point.response_mean_s) = (1.0, 0.050);
        point.achieved_per_s *= 0.95;
    }
    assert_eq!(curve(&steps, Axis::Rate, &[]).knee, None);
}

#[test]
fn points_that_the_client_limited_are_used_nowhere() {
    let mut steps = staircase(1_000.0, 1.0, 8);
    for (_, point) in &mut steps[5..] {
        (point.client_limited, point.achieved_per_s, point.failure_share) = (true, 1.0, 0.5);
    }
    let curve = curve(&steps, Axis::Rate, &[]);
    assert_eq!(curve.knee, None);
    assert_eq!(curve.capacity.unwrap().how, CapacityEnd::ClientLimited);
    assert_eq!(
        curve.notes[0],
        "3 steps were limited by the client, not the server, and excluded from all figures here."
    );
}

#[test]
fn the_way_down_is_compared_with_the_way_up() {
    let mut steps = staircase(261.0, 1.0, 8);
    steps.extend((1..=8).rev().map(|step| {
        let mut point = server(f64::from(step) * 50.0, 261.0, 1.0);
        if step == 3 {
            point.goodput_per_s *= 0.6;
        }
        (Purpose::Down, point)
    }));
    let found = curve(&steps, Axis::Rate, &[]).hysteresis.unwrap();
    assert!((found.loss_share - 0.4).abs() < 1e-9, "{found:?}");
    assert_eq!(format!("{:.0}", found.at_level), "150");
    assert_eq!(curve(&staircase(261.0, 1.0, 8), Axis::Rate, &[]).hysteresis, None);
}

#[test]
fn repeats_give_the_peak_an_interval_and_widen_the_knee() {
    let mut steps = staircase(261.0, 1.0, 8);
    let mut again = staircase(261.0, 1.0, 8);
    // in the repeat, the step at 250/s falls short
    for (index, (_, point)) in again.iter_mut().enumerate().filter(|(index, _)| *index >= 4) {
        point.achieved_per_s = 240.0 + index as f64;
        point.goodput_per_s = point.achieved_per_s;
    }
    steps.extend(again);
    let curve = curve(&steps, Axis::Rate, &[]);
    let (low, high) = curve.peak.unwrap().interval().unwrap();
    assert!(low < high, "{:?}", curve.peak);
    let knee = curve.knee.unwrap().at;
    assert_eq!((knee.low, knee.high), (198.0, 300.0));
}

#[test]
fn a_staircase_with_objectives_bounds_the_capacity() {
    let objectives = crate::parse_objectives("p99<50ms").unwrap();
    let capacity = curve(&staircase(261.0, 1.0, 8), Axis::Rate, &objectives).capacity.unwrap();
    let Span { at, low, high } = capacity.at;
    // no load between 250/s, which met the objectives, and 300/s, which missed them, was measured
    assert_eq!((capacity.how, at), (CapacityEnd::Bracketed, 250.0));
    assert!(low < 250.0 && high > 295.0, "{:?}", capacity.at);
    let never = curve(&staircase(10.0, 1.0, 8), Axis::Rate, &objectives).capacity.unwrap();
    assert_eq!((never.how, never.at.at, never.at.high), (CapacityEnd::NeverMet, 0.0, 50.0));
}

/// Returns the capacity by the levels 0 and 1 % of loss; `met`: whether each meets the objectives.
fn by_loss(met: [bool; 2]) -> Capacity {
    let objectives = crate::parse_objectives("p99<50ms").unwrap();
    let point = |(level, met)| (Purpose::Up, Point { level, met: Some(met), ..Point::default() });
    let steps: Vec<(Purpose, Point)> = [0.0, 0.01].into_iter().zip(met).map(point).collect();
    curve(&steps, Axis::Loss, &objectives).capacity.unwrap()
}

#[test]
fn a_path_without_loss_can_bound_the_capacity() {
    let bracket = by_loss([true, false]);
    assert_eq!(bracket.how, CapacityEnd::Bracketed);
    assert_eq!(bracket.at, Span { at: 0.0, low: 0.0, high: 0.01 });
    let upside_down = by_loss([false, true]);
    assert_eq!(upside_down.how, CapacityEnd::Bracketed);
    assert_eq!(upside_down.at, Span { at: 0.01, low: 0.01, high: 0.01 });
    assert_eq!(by_loss([true, true]).how, CapacityEnd::NeverMissed);
    assert_eq!(by_loss([false, false]).how, CapacityEnd::NeverMet);
    let objectives = crate::parse_objectives("p99<50ms").unwrap();
    let only = [(Purpose::Up, Point { met: Some(true), ..Point::default() })];
    let only = curve(&only, Axis::RoundTrip, &objectives).capacity.unwrap();
    assert_eq!((only.how, only.at.at, only.at.low), (CapacityEnd::NeverMissed, 0.0, 0.0));
}

/// Returns five trials at each of 30 levels, of which those up to 9 meet the objectives.
fn many_trials() -> Vec<Tried> {
    let levels = (1..=30).flat_map(|level| [f64::from(level); 5]);
    levels.map(|level| Tried { level, met: level < 9.5, length: 1.0 }).collect()
}

#[test]
fn many_trials_beyond_the_edge_do_not_hide_it() {
    let mut tried = many_trials();
    for found in [threshold(&tried, 0.95), threshold(&tried[..60], 0.95)] {
        let Span { at, low, high } = found.unwrap();
        assert!((9.0..10.0).contains(&at) && low > 8.5 && high < 10.5, "{at} {low} {high}");
    }
    // an outlier far above does not either
    tried[149].met = true;
    let found = threshold(&tried, 0.95).unwrap();
    assert!((9.0..10.0).contains(&found.at), "{found:?}");
    // the same mirrored: most of the trials far below
    let levels = (1..=30).flat_map(|level| [f64::from(level); 5]);
    let below: Vec<Tried> =
        levels.map(|level| Tried { level, met: level < 25.5, length: 1.0 }).collect();
    let found = threshold(&below, 0.95).unwrap();
    assert!((25.0..26.0).contains(&found.at), "{found:?}");
}

/// Returns the knee of a closed load; `steps`: (users, throughput) of steps of 10 s each.
fn populations(steps: &[(f64, f64)]) -> Option<Knee> {
    of_users(steps).knee
}

fn of_users(steps: &[(f64, f64)]) -> Curve {
    let point = |&(users, achieved): &(f64, f64)| {
        let point = Point {
            level: users,
            achieved_per_s: achieved,
            goodput_per_s: achieved,
            window_s: 10.0,
            ..Point::default()
        };
        (Purpose::Up, point)
    };
    let steps: Vec<(Purpose, Point)> = steps.iter().map(point).collect();
    curve(&steps, Axis::Population, &[])
}

#[test]
fn a_missing_knee_over_users_has_a_reason() {
    let two = of_users(&[(10.0, 400.0), (20.0, 400.0)]);
    assert_eq!(two.notes[0], "A knee over users needs three usable levels or more.");
    let three = of_users(&[(1.0, 100.0), (2.0, 200.0), (4.0, 400.0)]);
    let note =
        "No knee up to 4 users is distinguishable from noise: go higher, or hold each step longer.";
    assert_eq!((three.knee.as_ref(), three.notes[0].as_str()), (None, note));
    let one = of_users(&[(1.0, 100.0)]);
    assert_eq!(one.notes[0], "A knee over users needs three usable levels or more.");
}

#[test]
fn the_knee_over_populations_is_where_asymptotes_meet() {
    let four: Vec<(f64, f64)> =
        (1..=12).map(f64::from).map(|users| (users, (users * 100.0).min(400.0))).collect();
    let knee = populations(&four).unwrap();
    assert_eq!((knee.at.at, knee.at.low, knee.at.high), (4.0, 3.0, 5.0));
    assert!(knee.rule.starts_with("where throughput stops growing"), "{}", knee.rule);
    // there is no knee while more users add throughput, nor on a plateau that was just reached
    assert_eq!(populations(&four[..4]), None);
    assert_eq!(populations(&four[..5]), None);
}

/// Measured on a server that handles one call at a time, 4 ms each: noise on a plateau is not a
/// knee.
#[test]
fn noise_on_a_plateau_is_not_a_knee() {
    let seen = [233.0, 241.0, 242.0, 246.0, 249.0, 248.0];
    let steps: Vec<(f64, f64)> = (1..).map(f64::from).zip(seen).collect();
    let knee = populations(&steps).unwrap().at;
    assert_eq!((knee.low, knee.high), (1.0, 2.0), "{knee:?}");
    assert!((1.0..1.2).contains(&knee.at), "{knee:?}");
    // without a lower population, the knee may be anywhere below
    let high: Vec<(f64, f64)> = steps.iter().map(|(users, rate)| (users * 10.0, *rate)).collect();
    let knee = populations(&high[3..]).unwrap().at;
    assert!(knee.is_open_below(), "{knee:?}");
}

/// Returns the measurement of a limiter at `limit` calls per second: the other calls fail at once.
fn limiter(level: f64, limit: f64) -> Point {
    let good = level.min(limit);
    Point {
        level,
        offered_per_s: level,
        achieved_per_s: level,
        goodput_per_s: good,
        concurrency: level * 0.004,
        response_mean_s: 0.004,
        service_mean_s: 0.004,
        p99_s: 0.010,
        failure_share: 1.0 - good / level,
        window_s: 10.0,
        ..Point::default()
    }
}

#[test]
fn refused_calls_are_not_throughput() {
    let steps: Vec<(Purpose, Point)> =
        (1..=16).map(|step| (Purpose::Up, limiter(f64::from(step) * 100.0, 1_000.0))).collect();
    let found = curve(&steps, Axis::Rate, &[]);
    let knee = found.knee.unwrap().at;
    assert_eq!((knee.at, knee.high), (1_000.0, 1_100.0));
    assert!((found.peak.unwrap().at - 1_000.0).abs() < 1e-9, "{:?}", found.peak);
    assert!(found.power_at.unwrap() <= 1_000.0, "{:?}", found.power_at);
    assert_eq!(found.usl, None, "up to the limit the load is followed, which is no contention");
    assert!(found.capacity.unwrap().at.high <= 1_100.0);
}

#[test]
fn failures_at_the_lowest_load_give_no_knee() {
    let failing = |share: f64, met: Option<bool>| {
        let point = |level: f64| Point { failure_share: share, met, ..limiter(level, level) };
        let steps: Vec<(Purpose, Point)> =
            [100.0, 200.0, 300.0, 400.0, 500.0].map(|at| (Purpose::Up, point(at))).to_vec();
        curve(&steps, Axis::Rate, &crate::parse_objectives("p95<50ms").unwrap())
    };
    for share in [0.3, 1.0] {
        let found = failing(share, Some(false));
        assert_eq!((&found.knee, &found.capacity, &found.usl), (&None, &None, &None));
        assert_eq!(
            found.notes,
            ["Calls already fail at 100, the lowest usable level, so failures give neither a \
                 knee nor a capacity."]
        );
    }
    assert!(failing(0.0005, Some(true)).capacity.is_some());
}

#[test]
fn a_law_is_reported_only_if_the_steps_support_it() {
    let law = |a: f64, b: f64| Usl { g: 100.0, a, b };
    struct Usl {
        g: f64,
        a: f64,
        b: f64,
    }
    let steps = |law: &Usl, extra: Option<f64>| -> Vec<(Purpose, Point)> {
        let at = |n: f64| law.g * n / (1.0 + law.a * (n - 1.0) + law.b * n * (n - 1.0));
        let mut steps: Vec<(Purpose, Point)> = (1..=10)
            .map(|users| {
                let (n, wobble) = (f64::from(users), 1.0 + 0.002 * f64::from(users % 3 - 1));
                let x = at(n) * wobble;
                let point = Point {
                    level: n,
                    offered_per_s: x,
                    achieved_per_s: x,
                    goodput_per_s: x,
                    concurrency: n,
                    response_mean_s: n / x,
                    service_mean_s: n / x,
                    window_s: 10.0,
                    ..Point::default()
                };
                (Purpose::Up, point)
            })
            .collect();
        if let Some(goodput) = extra {
            steps[9].1.goodput_per_s = goodput;
        }
        steps
    };
    let record_end =
        |law: &Usl, extra| curve(&steps(law, extra), Axis::Population, &[]).usl.is_some();
    assert!(record_end(&law(0.05, 0.01), None), "contention and coherency");
    assert!(!record_end(&law(0.0, 0.0), None), "throughput grows with the users: no law");
    assert!(!record_end(&law(0.05, 0.02), Some(2_000.0)), "a step above the law's maximum");
}
