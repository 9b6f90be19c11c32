use super::*;

/// The published vector of SplitMix64 from the state 1234567.
#[test]
fn the_stream_is_splitmix64() {
    let mut stream = Stream { state: 1_234_567 };
    let found: Vec<u64> = (0..5).map(|_| stream.next_u64()).collect();
    assert_eq!(
        found,
        [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ]
    );
}

/// The meaning of a stored seed must never change.
#[test]
fn seeds_are_stable_across_versions() {
    let first = |seed, purpose, index| Seed(seed).stream(purpose, index).next_u64();
    let table = [
        first(0, Purpose::Arrivals, 0),
        first(42, Purpose::Arrivals, 0),
        first(42, Purpose::Targets, 0),
        first(42, Purpose::Targets, 1),
        first(42, Purpose::Torture, u64::MAX),
    ];
    assert_eq!(format!("{table:016x?}"), include_str!("streams.txt").trim_end());
}

#[test]
fn streams_differ_by_seed_purpose_and_index() {
    let mut firsts = Vec::new();
    for seed in 0..20 {
        for purpose in [Purpose::Arrivals, Purpose::Targets, Purpose::Think, Purpose::Bootstrap] {
            firsts.extend((0..20).map(|index| Seed(seed).stream(purpose, index).next_u64()));
        }
    }
    let count = firsts.len();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), count);
}

#[test]
fn draws_keep_their_ranges_and_means() {
    let mut stream = Seed(1).stream(Purpose::Simulation, 0);
    let n = 40_000;
    let mean = |mut draw: Box<dyn FnMut() -> f64 + '_>| -> f64 {
        (0..n).map(|_| draw()).sum::<f64>() / f64::from(n)
    };
    let mut check = |low: f64, high: f64, wanted: f64, draw: fn(&mut Stream) -> f64| {
        let found = mean(Box::new(|| {
            let value = draw(&mut stream);
            assert!((low..high).contains(&value), "{value} is not in {low}..{high}");
            value
        }));
        assert!((found - wanted).abs() < 0.025 * wanted, "{found} is not {wanted}");
    };
    check(0.0, 1.0, 0.5, |stream| stream.unit());
    check(2.0, 6.0, 4.0, |stream| stream.uniform(2.0, 6.0));
    check(0.0, f64::INFINITY, 3.0, |stream| stream.exponential(3.0));
    check(0.0, 7.0, 3.0, |stream| stream.below(7) as f64);
    assert_eq!(stream.below(0), 0);
    assert_eq!(stream.below(1), 0);
}
