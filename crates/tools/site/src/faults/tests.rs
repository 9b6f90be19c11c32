use units::{Purpose, Seed};

use super::*;

#[test]
fn times_are_read_in_three_forms() {
    let ms = Nanos::from_millis;
    assert_eq!(TimeLaw::parse("10ms"), Ok(TimeLaw::Fixed(ms(10))));
    assert_eq!(TimeLaw::parse("5ms..20ms"), Ok(TimeLaw::Uniform { low: ms(5), high: ms(20) }));
    assert_eq!(TimeLaw::parse("exp:10ms"), Ok(TimeLaw::Exponential { mean: ms(10) }));
    assert_eq!(TimeLaw::parse("0"), Ok(TimeLaw::Fixed(Nanos::ZERO)));
    for text in ["", "x", "20ms..5ms", "exp:", "2h", "5ms..", "-1s"] {
        assert!(TimeLaw::parse(text).is_err(), "{text}");
    }
}

#[test]
fn samples_follow_their_law() {
    let draw = |law: TimeLaw| {
        let mut stream = Seed(1).stream(Purpose::Site, 0);
        (0..20_000).map(|_| law.sample(&mut stream).as_millis_f64()).collect::<Vec<f64>>()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let fixed = draw(TimeLaw::parse("10ms").unwrap());
    assert!(fixed.iter().all(|value| (value - 10.0).abs() < 1e-9));
    let uniform = draw(TimeLaw::parse("5ms..20ms").unwrap());
    assert!(uniform.iter().all(|value| (5.0..20.0).contains(value)));
    assert!((mean(&uniform) - 12.5).abs() < 0.1, "{}", mean(&uniform));
    let exponential = draw(TimeLaw::parse("exp:10ms").unwrap());
    assert!((mean(&exponential) - 10.0).abs() < 0.3, "{}", mean(&exponential));
    // P(X > mean) = 1/e for no other law of this mean among the three
    let above = exponential.iter().filter(|value| **value > 10.0).count() as f64 / 20_000.0;
    assert!((above - (-1.0_f64).exp()).abs() < 0.02, "{above}");
}

#[test]
fn stalls_shares_and_drips_are_read_or_refused() {
    let stall = Stall { length: Nanos::from_millis(500), period: Nanos::from_secs(2) };
    assert_eq!(Stall::parse("500ms/2s"), Ok(stall));
    for text in ["500ms", "2s/2s", "0/2s", "1s/2h", "a/b"] {
        assert!(Stall::parse(text).is_err(), "{text}");
    }
    assert_eq!(parse_share("1%"), Ok(0.01));
    assert_eq!(parse_share("0.25"), Ok(0.25));
    assert_eq!(parse_share("100 %"), Ok(1.0));
    for text in ["0", "1", "01", "1e0", "101%", "1.5", "-1%", "+0.5", "NaN", "", "%"] {
        assert!(parse_share(text).is_err(), "{text}");
    }
    assert_eq!(parse_drip("100B/s"), Ok(100));
    assert_eq!(parse_drip("64k/s"), Ok(65_536));
    for text in ["10", "64k", "64k/m", "0/s", "x", "x/s", "/s"] {
        assert!(parse_drip(text).is_err(), "{text}");
    }
}

#[test]
fn contradictions_are_reported() {
    let delay = Some(TimeLaw::Fixed(Nanos::SECOND));
    let with = |change: fn(&mut Faults)| {
        let mut faults = Faults::default();
        change(&mut faults);
        faults
    };
    assert_eq!(Faults { delay, one_at_a_time: true, ..Faults::default() }.conflict(), None);
    let wrong = [
        with(|f| f.one_at_a_time = true),
        with(|f| (f.misbehaviour, f.drip) = (Some(Misbehaviour::NeverAnswer), Some(1))),
        with(|f| (f.misbehaviour, f.drip) = (Some(Misbehaviour::CloseEarly), Some(1))),
        with(|f| (f.misbehaviour, f.error_share) = (Some(Misbehaviour::Garbage), 0.5)),
        Faults { delay, misbehaviour: Some(Misbehaviour::NeverAnswer), ..Faults::default() },
    ];
    for faults in wrong {
        assert!(faults.conflict().is_some(), "{faults:?}");
    }
}
