use super::*;
use proptest::prelude::*;

/// Formats each metric as `name` or `name=duration`, or as `!` if it is malformed.
fn shown(value: &str) -> String {
    let one = |timing: Result<Timing<'_>, Malformed>| match timing {
        Ok(Timing { name, duration: Some(duration) }) => format!("{name}={}", duration.0),
        Ok(Timing { name, duration: None }) => name.to_owned(),
        Err(Malformed) => "!".to_owned(),
    };
    timings(value.as_bytes()).map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn metrics_of_all_forms_are_parsed() {
    for (value, expected) in [
        ("", ""),
        (" , ,", ""),
        ("miss", "miss"),
        ("db;dur=53", "db=53000000"),
        ("db;dur=53.2, app;dur=47", "db=53200000 app=47000000"),
        ("cache;desc=\"Cache Read\";dur=23.2", "cache=23200000"),
        ("cache ; dur = 0.5 ; desc = x", "cache=500000"),
        ("total;DUR=\"12.5\"", "total=12500000"),
        ("a;dur=0", "a=0"),
        ("a;dur=.5,a;dur=1.", "a=500000 a=1000000"),
        ("a;dur=1e3", "a=1000000000"),
        ("a;dur=0.000001", "a=1"),
        ("a;dur=10000000", "a=10000000000000"),
        // the first one counts (W3C Server Timing §3.1)
        ("a;dur=1;dur=2", "a=1000000"),
        ("a;dur=1;", "a=1000000"),
        ("a;;dur=1", "a=1000000"),
        ("a;desc=\"x, y; dur=9\";dur=1,b", "a=1000000 b"),
        ("a;desc=\"\\\"\";dur=1,b", "a=1000000 b"),
        ("a;dur=1,\r\n b;dur=2", "a=1000000 b=2000000"),
        ("CamelCase;dur=1,camelcase;dur=2", "CamelCase=1000000 camelcase=2000000"),
    ] {
        assert_eq!(shown(value), expected, "{value:?}");
    }
}

#[test]
fn malformed_metrics_are_reported_and_others_read() {
    for metric in [
        ";dur=1",
        "a b;dur=1",
        "a;dur",
        "a;dur=",
        "a;dur=x",
        "a;dur=12ms",
        "a;dur=-1",
        "a;dur=10000000.1",
        "a;dur=1e400",
        "a;dur=inf",
        "a;dur=NaN",
        "a;=1",
        "a;desc=\"x\"y",
        "a;desc=x y",
        "\u{e9};dur=1",
        "\"a\";dur=1",
        "a=1",
    ] {
        assert_eq!(shown(&format!("b;dur=1, {metric} , c;dur=2")), "b=1000000 ! c=2000000");
    }
    // an unclosed quote extends to the end
    assert_eq!(shown("a;dur=1,b;desc=\"x,c;dur=2"), "a=1000000 !");
}

#[test]
fn names_have_a_bound() {
    let longest = "n".repeat(NAME_MAX);
    assert_eq!(shown(&format!("{longest};dur=1")), format!("{longest}=1000000"));
    assert_eq!(shown(&format!("{longest}n;dur=1,b")), "! b");
}

fn metric() -> impl Strategy<Value = (String, Option<u32>, Option<String>)> {
    (
        "[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,64}",
        prop::option::of(0u32..10_000_000),
        prop::option::of("[ -~]{0,20}"),
    )
}

proptest! {
    #[test]
    fn written_metrics_are_read_back(metrics in prop::collection::vec(metric(), 0..6)) {
        let written: Vec<String> = metrics.iter().map(|(name, duration, description)| {
            let duration = duration.map_or_else(String::new, |ms| format!(";dur={ms}"));
            let description = description.as_ref().map_or_else(String::new, |text| {
                format!(";desc=\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
            });
            format!("{name}{description}{duration}")
        }).collect();
        let wanted: Vec<_> = metrics.iter().map(|(name, duration, _)| {
            let duration = duration.map(|ms| Nanos::from_millis(u64::from(ms)));
            Ok(Timing { name, duration })
        }).collect();
        let value = written.join(", ");
        prop_assert_eq!(timings(value.as_bytes()).collect::<Vec<_>>(), wanted, "{}", value);
    }
}
