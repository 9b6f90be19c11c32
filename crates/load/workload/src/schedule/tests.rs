use super::*;
use proptest::prelude::*;

mod law;

const SEED: Seed = Seed(42);
const START: Nanos = Nanos(5_000_000_123);

fn at(secs: f64) -> ScheduleEnd {
    ScheduleEnd { at: Some(Nanos::from_secs_f64(secs)), count: None }
}

fn count(count: u64) -> ScheduleEnd {
    ScheduleEnd { at: None, count: Some(count) }
}

/// Returns a rate that rises from 100 to 2,000 per second over 10 s, and then stays constant.
fn ramp(gaps: Gaps) -> ArrivalSpec {
    let ramp_over = Nanos::from_secs(10);
    ArrivalSpec { to: 2000.0, ramp_over, gaps, ..ArrivalSpec::constant(100.0) }
}

fn offsets(spec: &ArrivalSpec) -> Vec<u64> {
    Schedule::new(spec, SEED, START).map(|arrival| (arrival.intended - START).0).collect()
}

#[test]
fn constant_arrivals_are_at_multiples_of_the_gap() {
    let spec = ArrivalSpec { end: at(0.01), ..ArrivalSpec::constant(300.0) };
    assert_eq!(offsets(&spec), [0, 3_333_333, 6_666_667]);
    let spec = ArrivalSpec { end: at(1.0), ..ArrivalSpec::constant(100.0) };
    assert_eq!(offsets(&spec).len(), 100, "what would fall due at the end does not");
}

#[test]
fn constant_arrivals_do_not_drift() {
    let per_s = 30_000_u64;
    let mut schedule = Schedule::new(&ArrivalSpec::constant(per_s as f64), SEED, START);
    for index in [1, 7, 1_000_003, 86_400 * per_s + 1] {
        schedule.seek(index);
        let exact = (u128::from(index) * 1_000_000_000 / u128::from(per_s)) as u64;
        let found = schedule.next().unwrap();
        assert_eq!(found.index, index);
        assert!((found.intended - START).0.abs_diff(exact) <= 1, "{index}");
    }
}

#[test]
fn a_trace_returns_exactly_its_instants() {
    let instants: Vec<Nanos> = [0, 5, 5, 90].map(Nanos::from_millis).into();
    let trace = ArrivalSpec { at: Some(instants.into()), ..ArrivalSpec::constant(1.0) };
    assert_eq!(offsets(&trace), [0, 5_000_000, 5_000_000, 90_000_000]);
    let three = ArrivalSpec { end: count(3), ..trace.clone() };
    assert_eq!(offsets(&three).len(), 3);
    let early = ArrivalSpec { end: at(0.09), ..trace.clone() };
    assert_eq!(offsets(&early).len(), 3, "what would fall due at the end does not");
    let schedule = Schedule::new(&trace, SEED, START);
    let due = |millis| schedule.count_due(START + Nanos::from_millis(millis));
    assert_eq!([due(0), due(5), due(89), due(1_000)], [1, 3, 3, 4]);
    let spans = [1, 3, 4].map(|count| schedule.measured_span(count).0);
    assert_eq!(spans, [1_000_000_000, 7_500_000, 120_000_000], "and a mean gap behind the last");
    let shares = (0..3).flat_map(|n| Schedule::shared(&trace, SEED, START, Share::new(n, 3)));
    assert_eq!(shares.map(|arrival| arrival.index).collect::<Vec<_>>(), [0, 3, 1, 2]);
    let falling: Vec<Nanos> = vec![Nanos(2), Nanos(1)];
    assert!(ArrivalSpec { at: Some(falling.into()), ..trace }.check().is_err());
}

#[test]
fn bursts_share_an_instant_and_keep_the_rate() {
    let spec = ArrivalSpec { burst: 4, end: count(10), ..ArrivalSpec::constant(1000.0) };
    let (a, b, c) = (0, 4_000_000, 8_000_000);
    assert_eq!(offsets(&spec), [a, a, a, a, b, b, b, b, c, c]);
    let poisson = ArrivalSpec { burst: 4, gaps: Gaps::Poisson, end: at(10.0), ..spec.clone() };
    let offsets = offsets(&poisson);
    assert!(offsets.chunks_exact(4).all(|burst| burst.iter().all(|one| *one == burst[0])));
    assert!(offsets.windows(2).filter(|pair| pair[0] != pair[1]).count() > 2_000);
    assert!((9_000..11_000).contains(&offsets.len()), "{}", offsets.len());
}

#[test]
fn the_first_end_holds() {
    let count_of = |end| offsets(&ArrivalSpec { end, ..ArrivalSpec::constant(100.0) }).len();
    let both = |secs, count| ScheduleEnd { at: Some(Nanos::from_secs(secs)), count: Some(count) };
    assert_eq!(count_of(both(1, 50)), 50);
    assert_eq!(count_of(both(1, 500)), 100);
    assert_eq!(count_of(count(0)), 0);
    assert_eq!(count_of(at(0.0)), 0);
}

#[test]
fn the_end_counts_from_the_end_of_the_warm_up() {
    let warm = ArrivalSpec { warm_up: Nanos::from_secs(2), ..ramp(Gaps::Poisson) };
    for (end, measured) in [(count(1000), 1000), (ScheduleEnd::default(), u64::MAX)] {
        let schedule = Schedule::new(&ArrivalSpec { end, ..warm.clone() }, SEED, START);
        let first = schedule.first_measured();
        let in_warm_up = schedule.clone().take_while(|a| a.intended < START + warm.warm_up);
        assert_eq!(in_warm_up.count() as u64, first);
        assert!((150..250).contains(&first), "2 s at 100/s: {first}");
        let due = schedule.measured_due(Nanos::NEVER);
        assert_eq!(due, if measured == u64::MAX { u64::MAX - first } else { measured });
    }
    let spec = ArrivalSpec { end: at(3.0), warm_up: Nanos::SECOND, ..ArrivalSpec::constant(10.0) };
    let schedule = Schedule::new(&spec, SEED, START);
    assert_eq!((schedule.first_measured(), schedule.measured_due(Nanos::NEVER)), (10, 30));
    assert_eq!(schedule.measured_due(START + Nanos::from_secs(2)), 11);
    assert_eq!(schedule.measured_due(START), 0);
    assert_eq!(schedule.count(), 40);
}

#[test]
fn a_counted_load_spans_the_time_of_its_rate() {
    let warm_up = Nanos::from_millis(1_500);
    for gaps in [Gaps::Constant, Gaps::Poisson, Gaps::Uniform] {
        let constant = ArrivalSpec { gaps, warm_up, ..ArrivalSpec::constant(40.0) };
        let schedule = Schedule::new(&constant, SEED, START);
        for (count, span) in [(0, 0), (1, 25), (40, 1_000), (100, 2_500)] {
            assert_eq!(schedule.measured_span(count), Nanos::from_millis(span), "{gaps:?}");
        }
    }
    // from 0+ to 20 a second within 2 s: the integral is 20 at its end, 5 at its half
    let rising = ArrivalSpec {
        from: 1e-9,
        ramp_over: Nanos::from_secs(2),
        warm_up,
        ..ArrivalSpec::constant(20.0)
    };
    let schedule = Schedule::new(&rising, SEED, START);
    for (count, span) in [(5, 1_000), (20, 2_000), (60, 4_000)] {
        let exact = Nanos::from_millis(span);
        let found = schedule.measured_span(count);
        assert!(found.max(exact) - found.min(exact) < Nanos::from_micros(1), "{count}: {found:?}");
    }
}

#[test]
fn a_rate_may_jump_after_the_warm_up() {
    let spec =
        ArrivalSpec { to: 4.0, warm_up: Nanos::SECOND, end: at(1.0), ..ArrivalSpec::constant(2.0) };
    let quarter = 250_000_000;
    assert_eq!(offsets(&spec), [0, 2, 4, 5, 6, 7].map(|quarters| quarters * quarter));
}

#[test]
fn peeking_takes_nothing() {
    let mut schedule = Schedule::new(&ramp(Gaps::Uniform), SEED, START);
    for _ in 0..100 {
        let (peeked, again) = (schedule.peek(), schedule.peek());
        assert_eq!(peeked, again);
        assert_eq!(peeked, schedule.next());
    }
}

#[test]
fn an_infinite_gap_ends_the_schedule() {
    let spec = ArrivalSpec::constant(1e-12);
    let indices: Vec<u64> = Schedule::new(&spec, SEED, START).map(|a| a.index).collect();
    assert_eq!(indices, [0], "the second falls due after 30,000 years");
}

#[test]
fn impossible_specifications_are_reported() {
    let good = ArrivalSpec::constant(1.0);
    assert_eq!(good.check(), Ok(()));
    for (spec, name) in [
        (ArrivalSpec { from: 0.0, ..good.clone() }, "`from` is 0"),
        (ArrivalSpec { to: f64::NAN, ..good.clone() }, "`to` is NaN"),
        (ArrivalSpec { to: -1.0, ..good.clone() }, "`to` is -1"),
        (ArrivalSpec { from: f64::INFINITY, ..good.clone() }, "`from` is inf"),
        (ArrivalSpec { burst: 0, ..good.clone() }, "`burst` is 0"),
    ] {
        let why = spec.check().unwrap_err();
        assert!(why.contains(name), "{why}");
    }
}

fn gaps() -> impl Strategy<Value = Gaps> {
    prop_oneof![Just(Gaps::Constant), Just(Gaps::Poisson), Just(Gaps::Uniform)]
}

prop_compose! {
    fn specs()(
        from in 1.0..5000.0_f64,
        to in 1.0..5000.0_f64,
        ramp_ms in 0u64..2000,
        warm_ms in 0u64..300,
        gaps in gaps(),
        burst in 1u32..6,
        end in 0u64..2000,
    ) -> ArrivalSpec {
        let (ramp_over, warm_up) = (Nanos::from_millis(ramp_ms), Nanos::from_millis(warm_ms));
        let end = ScheduleEnd { at: Some(Nanos::from_millis(1500)), count: Some(end) };
        ArrivalSpec { from, to, ramp_over, levels: None, warm_up, gaps, burst, at: None, end }
    }
}

fn stages_of(stages: &[(f64, f64, f64)]) -> Levels {
    let stage = |&(secs, from, to)| Stage { over: Nanos::from_secs_f64(secs), from, to };
    Levels::new(&stages.iter().map(stage).collect::<Vec<_>>()).unwrap()
}

#[test]
fn stages_give_the_arrivals_of_their_area() {
    let hill =
        stages_of(&[(2.0, 0.0, 100.0), (1.0, 100.0, 100.0), (1.0, 0.0, 0.0), (1.0, 50.0, 0.0)]);
    let spec = |gaps, warm_up| ArrivalSpec {
        levels: Some(hill.clone()),
        gaps,
        warm_up,
        end: at(9.0),
        ..ArrivalSpec::constant(1.0)
    };
    let all: Vec<Arrival> =
        Schedule::new(&spec(Gaps::Constant, Nanos::ZERO), SEED, START).collect();
    let within = |from: f64, to: f64| {
        let inside = |arrival: &&Arrival| {
            let t = (arrival.intended - START).as_secs_f64();
            t >= from && t < to
        };
        all.iter().filter(inside).count()
    };
    assert_eq!([within(0.0, 1.0), within(1.0, 2.0), within(2.0, 3.0)], [25, 75, 100]);
    assert_eq!([within(3.0, 4.0), within(4.0, 5.0), within(5.0, 99.0)], [0, 25, 0]);
    assert_eq!(all.len(), 225);
    let poisson = Schedule::new(&spec(Gaps::Poisson, Nanos::ZERO), SEED, START);
    let drawn = poisson.count() as f64;
    assert!((drawn - 225.0).abs() < 5.0 * 15.0, "{drawn}");
    // a warm-up has the level of the start, which is zero here
    let warm = Schedule::new(&spec(Gaps::Constant, Nanos::SECOND), SEED, START);
    assert_eq!((warm.first_measured(), warm.count()), (0, 225));
}

proptest! {
    #[test]
    fn stages_are_undone_by_their_inverse(
        levels in proptest::collection::vec((0.0..3.0_f64, 0.0..500.0_f64, 0.0..500.0_f64), 1..6),
        t in 0.0..20.0_f64,
    ) {
        let levels = stages_of(&levels);
        let spec = ArrivalSpec { levels: Some(levels), ..ArrivalSpec::constant(1.0) };
        let curve = RateCurve::new(&spec);
        let back = curve.inverse(curve.integral(t));
        prop_assert!((curve.integral(back) - curve.integral(t)).abs() < 1e-6, "{t} {back}");
    }

    #[test]
    fn count_follows_the_integral(spec in specs(), at_ms in 0u64..3000) {
        let spec = ArrivalSpec { gaps: Gaps::Constant, end: ScheduleEnd::default(), ..spec };
        let schedule = Schedule::new(&spec, SEED, START);
        let t = Nanos::from_millis(at_ms);
        let due = schedule.count_due(START + t);
        let integral = RateCurve::new(&spec).integral(t.as_secs_f64());
        // the first burst falls due at 0, so the count is ahead by up to one burst
        let ahead = due as f64 - integral;
        prop_assert!(ahead > -1e-3 && ahead < f64::from(spec.burst) + 1e-3, "{due} {integral}");
        let walked = schedule.take_while(|arrival| arrival.intended <= START + t).count();
        prop_assert_eq!(due, walked as u64);
    }

    #[test]
    fn the_count_by_an_instant_matches_the_arrivals(spec in specs(), at_ms in 0u64..2500) {
        let schedule = Schedule::new(&spec, SEED, START);
        let all: Vec<Arrival> = schedule.clone().collect();
        let t = START + Nanos::from_millis(at_ms);
        let due = all.iter().filter(|arrival| arrival.intended <= t).count();
        prop_assert_eq!(schedule.count_due(t), due as u64);
        prop_assert_eq!(schedule.count_due(Nanos::NEVER), all.len() as u64);
        prop_assert!(all.is_sorted_by_key(|arrival| arrival.intended));
        prop_assert!(all.iter().zip(0..).all(|(arrival, index)| arrival.index == index));
    }

    #[test]
    fn shares_sum_to_the_whole(spec in specs(), workers in 1u32..9) {
        let whole: Vec<Arrival> = Schedule::new(&spec, SEED, START).collect();
        let mut parts = Vec::new();
        for worker in 0..workers {
            let share = Share::new(worker, workers);
            let part: Vec<Arrival> = Schedule::shared(&spec, SEED, START, share.clone()).collect();
            prop_assert_eq!(part.len() as u64, share.count_of(whole.len() as u64));
            parts.extend(part);
        }
        parts.sort_by_key(|arrival| arrival.index);
        prop_assert_eq!(parts, whole);
    }

    #[test]
    fn resuming_anywhere_yields_the_same_arrivals(spec in specs(), from in 0u64..500, workers in 1u32..4) {
        let share = Share::new(0, workers);
        let mut resumed = Schedule::shared(&spec, SEED, START, share);
        let rest: Vec<Arrival> = resumed.clone().filter(|arrival| arrival.index >= from).collect();
        let _skipped = resumed.nth(3);
        resumed.seek(from);
        prop_assert_eq!(resumed.collect::<Vec<_>>(), rest);
    }

    #[test]
    fn the_inverse_undoes_the_integral(spec in specs(), t in 0.0..4.0_f64) {
        let curve = RateCurve::new(&spec);
        prop_assert!((curve.inverse(curve.integral(t)) - t).abs() < 1e-9);
        let (step, slope) = (1e-6, (spec.to - spec.from).abs());
        let change = (curve.integral(t + step) - curve.integral(t)) / step;
        let ramp_s = spec.ramp_over.as_secs_f64();
        let tolerance = if ramp_s < 0.01 { slope } else { slope * step / ramp_s } + 1e-3;
        prop_assert!((change - curve.rate(t)).abs() <= tolerance, "{change} {}", curve.rate(t));
    }
}
