use super::*;

#[test]
fn arithmetic_saturates() {
    let (one, two) = (Nanos(1), Nanos(2));
    assert_eq!(one - two, Nanos::ZERO, "stamped out of order is at the same time");
    assert_eq!(Nanos::NEVER + one, Nanos::NEVER);
    assert_eq!(Nanos::NEVER * 2, Nanos::NEVER);
    assert_eq!(Nanos::from_secs(u64::MAX), Nanos::NEVER);
    let mut sum = two;
    sum += one;
    assert_eq!(sum, Nanos(3));
}

#[test]
fn seconds_are_rounded_to_the_nearest_nanosecond() {
    for (secs, nanos) in [
        (0.1, 100_000_000),
        (1.234_567_891_2, 1_234_567_891),
        (0.000_000_000_6, 1),
        (-1.0, 0),
        (f64::NAN, 0),
        (1e300, u64::MAX),
        (f64::INFINITY, u64::MAX),
    ] {
        assert_eq!(Nanos::from_secs_f64(secs), Nanos(nanos), "{secs}");
    }
    assert!((Nanos::from_millis(1_500).as_secs_f64() - 1.5).abs() < 1e-12);
    assert!((Nanos::from_micros(1_500).as_millis_f64() - 1.5).abs() < 1e-12);
}
