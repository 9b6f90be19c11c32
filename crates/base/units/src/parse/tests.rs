use super::*;
use proptest::prelude::*;

fn message<T: std::fmt::Debug>(result: Result<T, ParseError>) -> String {
    result.unwrap_err().0
}

#[test]
fn durations_are_parsed() {
    for (text, ns) in [
        ("0", 0),
        ("0ms", 0),
        ("10s", 10_000_000_000),
        ("0.1s", 100_000_000),
        (".5s", 500_000_000),
        ("1ns", 1),
        ("500us", 500_000),
        ("500µs", 500_000),
        ("500μs", 500_000),
        ("1.234567ms", 1_234_567),
        ("1.2345675ms", 1_234_568),
        ("20ms", 20_000_000),
        ("5m", 300_000_000_000),
        ("1m30s", 90_000_000_000),
        (" 2 m 05 s ", 125_000_000_000),
        ("1h30m1s", 5_401_000_000_000),
        ("1d", 86_400_000_000_000),
        ("36500d", DURATION_MAX.0),
    ] {
        assert_eq!(parse_duration(text), Ok(Nanos(ns)), "{text}");
    }
}

#[test]
fn bad_durations_name_the_input_and_a_good_one() {
    for (text, why) in [
        ("", "it is empty"),
        ("  ", "it is empty"),
        ("-1s", "must not be negative"),
        ("ten", "does not begin with a number"),
        (".", "does not begin with a number"),
        ("10 parsecs", "\"parsecs\" is not a unit of time"),
        ("10S", "\"S\" is not a unit of time"),
        ("1m30", "a number in it has no unit"),
        ("1 30s", "a number in it has no unit"),
        ("1.2.3s", "a number in it has no unit"),
        ("1,5s", "a comma groups thousands only"),
        ("1e3s", "\"e\" is not a unit of time"),
        ("0.0001ns", "shorter than a nanosecond"),
        ("36501d", "longer than 100 years"),
        ("99999999999999999999999s", "too large"),
        ("18446744073709551615d", "longer than 100 years"),
        ("nan", "does not begin with a number"),
        ("inf", "does not begin with a number"),
    ] {
        let message = message(parse_duration(text));
        assert!(message.contains(why), "{text}: {message}");
        assert!(message.starts_with(&format!("{text:?} is not a duration")), "{message}");
        assert!(message.contains("500ms"), "{message}");
    }
}

#[test]
fn a_duration_needs_a_unit() {
    assert_eq!(parse_duration("0"), Ok(Nanos::ZERO));
    assert_eq!(
        message(parse_duration("100")),
        "\"100\" has no unit: write 100ms or 100s (units ns us ms s m h d)"
    );
    assert!(message(parse_duration(" 0.5 ")).contains("write 0.5ms or 0.5s"));
}

#[test]
fn rates_are_parsed() {
    for (text, per_s) in [
        ("2000/s", 2000.0),
        ("2,000/s", 2000.0),
        ("2_000/s", 2000.0),
        ("2k/s", 2000.0),
        ("2K/s", 2000.0),
        ("1.5M/s", 1_500_000.0),
        ("120/m", 2.0),
        ("120/min", 2.0),
        ("36/h", 0.01),
        ("864/d", 0.01),
        (" 10 / s ", 10.0),
        ("0.001/s", 0.001),
    ] {
        let rate = parse_rate(text).unwrap().0;
        assert!((rate / per_s - 1.0).abs() < 1e-12, "{text}: {rate}");
    }
}

#[test]
fn bad_rates_name_the_input_and_a_good_one() {
    for (text, why) in [
        ("0/s", "above zero"),
        ("-5/s", "not be negative"),
        ("", "a number is missing"),
        ("2000", "it has no unit"),
        ("2K", "it has no unit"),
        ("/s", "a number is missing"),
        ("5/", "\"\" is not a unit of time"),
        ("5/year", "\"year\" is not a unit of time"),
        ("5G/s", "\"G\" cannot be parsed"),
        ("1,5/s", "a comma groups thousands only"),
        ("5/s/s", "\"s/s\" is not a unit of time"),
    ] {
        let message = message(parse_rate(text));
        assert!(message.contains(why), "{text}: {message}");
        assert!(message.contains(&format!("{text:?}")) && message.contains("2000/s"), "{message}");
    }
}

#[test]
fn rate_spans_are_parsed() {
    for (text, from, to) in [
        ("2000/s", 2000.0, 2000.0),
        ("100..2000/s", 100.0, 2000.0),
        ("100..2k/s", 100.0, 2000.0),
        ("60..120/m", 1.0, 2.0),
        ("60/m..120/s", 1.0, 120.0),
        ("60/s..120/m", 60.0, 2.0),
    ] {
        let span = RateSpan { from: Rate(from), to: Rate(to) };
        assert_eq!(parse_rate_span(text), Ok(span), "{text}");
    }
    for text in ["0..5/s", "..5/s", "5..", "5..6", "5/s..6", "1..2..3/s", "1..5/x", "1/x..5/s"] {
        let message = message(parse_rate_span(text));
        assert!(message.contains(&format!("{text:?} is not a rate")), "{message}");
    }
}

#[test]
fn sizes_are_parsed() {
    for (text, bytes) in [
        ("0", 0),
        ("64", 64),
        ("64B", 64),
        ("64k", 65_536),
        ("64KiB", 65_536),
        ("64 kB", 65_536),
        ("1.5k", 1_536),
        ("1M", 1 << 20),
        ("2G", 2 << 30),
        ("1T", 1 << 40),
        ("1,024", 1_024),
    ] {
        assert_eq!(parse_size(text), Ok(bytes), "{text}");
    }
    for (text, why) in [
        ("", "empty"),
        ("-1", "negative"),
        ("k", "does not begin with a number"),
        ("1x", "\"x\" is not a unit of size"),
        ("1k5", "\"k5\" is not a unit of size"),
        ("99999999T", "too large"),
    ] {
        let message = message(parse_size(text));
        assert!(message.contains(why) && message.contains("64k"), "{text}: {message}");
    }
}

#[test]
fn messages_are_short_and_cannot_play_with_the_terminal() {
    let message = message(parse_duration(&format!("\u{1b}[2J{}", "9".repeat(10_000))));
    assert!(message.len() < 400 && !message.contains('\u{1b}'), "{message}");
}

#[test]
fn listen_addresses_are_parsed() {
    let read = |text: &str| parse_listen(text).map_or_else(|error| error.0, |at| at.to_string());
    assert_eq!(read("9464"), "127.0.0.1:9464");
    assert_eq!(read(":9464"), "127.0.0.1:9464");
    assert_eq!(read("0"), "127.0.0.1:0");
    assert_eq!(read("0.0.0.0:80"), "0.0.0.0:80");
    assert_eq!(read("[::1]:80"), "[::1]:80");
    for bad in ["", "x", "70000", "localhost:1", "1.2.3.4", "::1"] {
        assert!(read(bad).ends_with("write a port like 8080, or 127.0.0.1:8080"), "{bad}");
    }
}

proptest! {
    #[test]
    fn typed_input_never_panics(text in "\\PC*", digits in "[0-9.,_/kMsmunhd -]{0,40}") {
        for text in [text, digits] {
            for message in [
                parse_duration(&text).map(|_| ()),
                parse_rate(&text).map(|_| ()),
                parse_rate_span(&text).map(|_| ()),
                parse_size(&text).map(|_| ()),
            ].into_iter().filter_map(Result::err) {
                prop_assert!(!message.0.is_empty());
            }
            if let Ok(rate) = parse_rate(&text) {
                prop_assert!(rate.0.is_finite() && rate.0 > 0.0);
            }
        }
    }

    #[test]
    fn whole_nanoseconds_are_parsed_exactly(ns in 0..DURATION_MAX.0) {
        prop_assert_eq!(parse_duration(&format!("{ns}ns")), Ok(Nanos(ns)));
        let text = format!("{}.{:09}s", ns / 1_000_000_000, ns % 1_000_000_000);
        prop_assert_eq!(parse_duration(&text), Ok(Nanos(ns)));
    }
}

#[test]
fn counts_are_whole_and_have_decimal_suffixes() {
    for (text, count) in [
        ("0", 0),
        ("500", 500),
        ("1k", 1_000),
        ("2.5M", 2_500_000),
        ("10,000", 10_000),
        (" 3G ", 3_000_000_000),
    ] {
        assert_eq!(parse_count(text), Ok(count), "{text}");
    }
    assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
    for text in ["", "1.5", "-1", "k", "1x", "18446744073709551616", "99999999999G", "1 k k"] {
        let message = message(parse_count(text));
        assert!(message.contains("is not a count: "), "{text}: {message}");
    }
}
