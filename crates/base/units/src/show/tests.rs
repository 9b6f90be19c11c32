use super::*;
use crate::{parse_duration, parse_rate, parse_size};
use proptest::prelude::*;

#[test]
fn durations_are_shown_with_three_digits() {
    for (ns, text) in [
        (0, "0 s"),
        (1, "1 ns"),
        (850, "850 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (12_345, "12.3 µs"),
        (999_400, "999 µs"),
        (999_600, "1.00 ms"),
        (9_996_000, "10.0 ms"),
        (4_560_000, "4.56 ms"),
        (99_960_000, "100 ms"),
        (1_234_000_000, "1.23 s"),
        (59_940_000_000, "59.9 s"),
        (59_960_000_000, "1 m 00 s"),
        (125_000_000_000, "2 m 05 s"),
        (3_599_600_000_000, "1 h 00 m"),
        (11_220_000_000_000, "3 h 07 m"),
        (86_399_999_999_999, "1 d 00 h"),
        (190_800_000_000_000, "2 d 05 h"),
        (u64::MAX, "213,504 d 00 h"),
    ] {
        assert_eq!(duration(Nanos(ns)), text, "{ns}");
    }
}

#[test]
fn counts_rates_sizes_and_shares() {
    assert_eq!(count(0), "0");
    assert_eq!(count(999), "999");
    assert_eq!(count(1_234_567), "1,234,567");
    for (per_s, text) in [
        (0.0, "0/s"),
        (0.012_34, "0.0123/s"),
        (1.234, "1.23/s"),
        (12.34, "12.3/s"),
        (100.0, "100/s"),
        (123.45, "123.5/s"),
        (1234.54, "1,234.5/s"),
        (2000.0, "2,000/s"),
        (12_345.4, "12,345/s"),
        (1_234_567.8, "1,234,568/s"),
        (f64::NAN, "-"),
        (f64::INFINITY, "-"),
    ] {
        assert_eq!(rate(per_s), text);
    }
    for (n, text) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.50 KiB"),
        (1_048_575, "1.00 MiB"),
        (12_897_485, "12.3 MiB"),
        (u64::MAX, "16.0 EiB"),
    ] {
        assert_eq!(bytes(n), text);
    }
}

#[test]
fn a_partial_share_is_not_rounded_to_all_or_nothing() {
    for (value, text) in [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.123_4, "12.3 %"),
        (0.012_34, "1.23 %"),
        (0.001_234, "0.123 %"),
        (0.999_6, "99.96 %"),
        (0.999_999, "99.9999 %"),
        (0.000_001, "0.0001 %"),
        (1.5, "150.0 %"),
        (f64::NAN, "-"),
    ] {
        assert_eq!(share(value), text);
    }
}

fn near(found: f64, wanted: f64, tolerance: f64) -> bool {
    (found - wanted).abs() <= tolerance * wanted
}

proptest! {
    #[test]
    fn printed_values_parse_back(digits in 1u64..1_000_000, power in 0u32..13) {
        let ns = digits.saturating_mul(10u64.pow(power)).min(crate::parse::DURATION_MAX.0 / 2);
        let text = duration(Nanos(ns));
        // Half of the last printed place: 1/200 below a minute, then 0.5 s in 60, 0.5 m in 60, 0.5 h in 24.
        let tolerance = if ns < 60_000_000_000 { 0.0051 } else if ns < 86_400_000_000_000 { 0.0085 } else { 0.022 };
        let read = parse_duration(&text).unwrap().0;
        prop_assert!(near(read as f64, ns as f64, tolerance), "{ns} {text}");
        prop_assert!(near(parse_size(&bytes(ns)).unwrap() as f64, ns as f64, 0.0051), "{ns}");
        let per_s = digits as f64 * 10f64.powi(power as i32 - 8);
        prop_assert!(near(parse_rate(&rate(per_s)).unwrap().0, per_s, 0.0051), "{per_s}");
    }
}
