use super::*;
use std::fmt::Debug;

/// Compares each text with the debug output of its value, or the message.
fn check<T: Debug>(parse: impl Fn(&str) -> Result<T, ParseError>, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let shown = match parse(text) {
            Ok(value) => format!("{value:?}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(&shown, expected, "for {text:?}");
    }
}

#[test]
fn statuses_are_parsed() {
    check(
        parse_statuses,
        &[
            ("200", "[(200, 200)]"),
            ("200,204, 300-399", "[(200, 200), (204, 204), (300, 399)]"),
            ("2xx,404", "[(200, 299), (404, 404)]"),
            (
                "",
                r#""" is not a list of statuses: "" is not a status from 100 to 599; write 200,204 or 200-299 or 2xx"#,
            ),
            (
                "99",
                r#""99" is not a list of statuses: "99" is not a status from 100 to 599; write 200,204 or 200-299 or 2xx"#,
            ),
            (
                "300-200",
                r#""300-200" is not a list of statuses: "300-200" has its first value above its last; write 200,204 or 200-299 or 2xx"#,
            ),
            (
                "9xx",
                r#""9xx" is not a list of statuses: "900" is not a status from 100 to 599; write 200,204 or 200-299 or 2xx"#,
            ),
        ],
    );
}

#[test]
fn body_rules_are_read_and_shown() {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let cases = [
        ("exact:", BodyRule::Exact(vec![])),
        ("exact:a:b", BodyRule::Exact(b"a:b".to_vec())),
        ("contains:exact:x", BodyRule::Contains(b"exact:x".to_vec())),
        ("regex:^<h1>", BodyRule::Regex("^<h1>".into())),
        ("exact-base64:/w==", BodyRule::Exact(vec![0xff])),
    ];
    for (text, rule) in cases {
        assert_eq!(parse_body_rule(text).unwrap(), rule);
        assert_eq!(show_body_rule(&rule), text);
    }
    assert_eq!(parse_body_rule("hello").unwrap(), BodyRule::Contains(b"hello".to_vec()));
    assert_eq!(parse_body_rule("http://x").unwrap(), BodyRule::Contains(b"http://x".to_vec()));
    let digest = parse_body_rule(&format!("sha256:{empty}")).unwrap();
    assert!(matches!(digest, BodyRule::Sha256(bytes) if bytes[..2] == [0xe3, 0xb0]));
    assert_eq!(show_body_rule(&digest), format!("sha256:{empty}"));
    check(
        parse_body_rule,
        &[
            ("", "an expected body is empty; to ask for an empty one write exact:"),
            ("regex:(", r#""(" is not a regular expression: unclosed group"#),
            (
                "sha256:12",
                r#""12" is not a SHA-256 digest: it must have 64 hexadecimal digits; write what sha256sum prints"#,
            ),
            (
                "exact-base64:?",
                r#""exact-base64:?" is not an expected body: what follows the colon is not base64; write exact:TEXT"#,
            ),
        ],
    );
}

#[test]
fn abort_rules_are_parsed() {
    let rule = parse_abort_rule(" failures>50% for 5s ").unwrap();
    assert_eq!(rule.text, "failures>50% for 5s");
    assert_eq!(rule.hold, Nanos::from_secs(5));
    assert_eq!(rule.objective.metric, stats::Metric::Failures);
    assert_eq!(parse_abort_rule("p99>1s").unwrap().hold, Nanos::ZERO);
    for bad in ["", "failures", "failures>50% for", "failures>50% for ever", "x>1 for 5s"] {
        assert!(parse_abort_rule(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn hosts_are_as_urls_name_them() {
    for (text, host) in [
        ("Shop.example", "shop.example"),
        ("b\u{fc}cher.example", "xn--bcher-kva.example"),
        ("::1", "[::1]"),
        ("[0:0::1]", "[::1]"),
        ("192.0.2.7", "192.0.2.7"),
    ] {
        assert_eq!(parse_host(text).as_deref(), Ok(host));
    }
    let example = "write shop.example or 192.0.2.7 or [2001:db8::7]";
    for (text, why) in [
        ("", "it is empty"),
        ("http://h/", "it is a URL"),
        ("h:80", "it has a port, but the rule covers every port of the host"),
        ("a b", "no URL has it"),
    ] {
        let message = format!("{} is not a host: {why}; {example}", quoted(text));
        assert_eq!(parse_host(text).unwrap_err().0, message);
    }
}

#[test]
fn a_zone_is_for_ipv6_alone() {
    let why = |text: &str| parse_resolve(text).unwrap_err().0;
    assert!(why("h:80:127.0.0.1%lo").contains("the zone \"lo\" cannot be used: IPv4 has no zones"));
    assert!(why("h:80:::1%").contains("it is empty"));
    assert!(why("h:80:::1%a b").contains("no interface has such a name"));
    assert!(why("h:80:::1%abcdefghijklmnop").contains("at most 15"));
}

#[test]
fn resolve_rules_are_parsed() {
    for (text, shown) in [
        ("Example.com:443:127.0.0.1", "example.com:443:127.0.0.1"),
        ("h:80:::1", "h:80:::1"),
        ("h:80:[::1]", "h:80:::1"),
        ("[::2]:80:[::1]", "[::2]:80:::1"),
        ("[FE80:0::1]:80:[fe80::1%eth0]", "[fe80::1]:80:fe80::1%eth0"),
        ("B\u{fc}cher.example:80:::1", "xn--bcher-kva.example:80:::1"),
        ("xn--bcher-kva.example:80:::1", "xn--bcher-kva.example:80:::1"),
    ] {
        let rule = parse_resolve(text).unwrap();
        assert_eq!(show_resolve(&rule), shown);
        assert_eq!(parse_resolve(&show_resolve(&rule)).unwrap(), rule);
    }
    check(
        parse_resolve,
        &[
            (
                "h:80",
                r#""h:80" is not a resolve rule: it does not have three parts; write HOST:PORT:ADDRESS"#,
            ),
            (
                "[::1",
                r#""[::1" is not a resolve rule: it does not have three parts; write HOST:PORT:ADDRESS"#,
            ),
            (
                "[ä]é:1:2",
                r#""[ä]é:1:2" is not a resolve rule: it does not have three parts; write HOST:PORT:ADDRESS"#,
            ),
            (
                ":80:1.2.3.4",
                r#"":80:1.2.3.4" is not a resolve rule: the host is missing; write HOST:PORT:ADDRESS"#,
            ),
            (
                "h:0:1.2.3.4",
                r#""h:0:1.2.3.4" is not a resolve rule: "0" is not a port from 1 to 65535; write HOST:PORT:ADDRESS"#,
            ),
            (
                "h:80:other",
                r#""h:80:other" is not a resolve rule: "other" is not an IPv4 or IPv6 address; write HOST:PORT:ADDRESS"#,
            ),
        ],
    );
}

#[test]
fn local_addresses_are_parsed() {
    let shown = |text: &str| {
        parse_bind(text).map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let cases: &[(&str, &str)] = &[
        (
            "127.0.0.2-127.0.0.4, 127.0.1.1",
            r#"["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.1.1"]"#,
        ),
        ("::1-::2,127.0.0.1", r#"["::1", "::2", "127.0.0.1"]"#),
        (
            "127.0.0.9-127.0.0.2",
            r#""127.0.0.9-127.0.0.2" is not a list of addresses: the range "127.0.0.9-127.0.0.2" has its first value above its last; write 127.0.0.2-127.0.0.9,127.0.1.1"#,
        ),
        (
            "127.0.0.1-::1",
            r#""127.0.0.1-::1" is not a list of addresses: a range mixes IPv4 and IPv6; write 127.0.0.2-127.0.0.9,127.0.1.1"#,
        ),
        (
            "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            r#""::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" is not a list of addresses: it names more than 4096; write 127.0.0.2-127.0.0.9,127.0.1.1"#,
        ),
        (
            "127.0.0.1-127.0.0.3,127.0.0.2",
            r#""127.0.0.1-127.0.0.3,127.0.0.2" is not a list of addresses: 127.0.0.2 appears twice; write 127.0.0.2-127.0.0.9,127.0.1.1"#,
        ),
        (
            "eth0",
            r#""eth0" is not a list of addresses: "eth0" is not an IP address; write 127.0.0.2-127.0.0.9,127.0.1.1"#,
        ),
    ];
    check(shown, cases);
    assert_eq!(parse_bind("10.0.0.0-10.0.15.255").unwrap().len(), BIND_MAX);
    assert!(parse_bind("10.0.0.0-10.0.15.255,10.1.0.0").is_err());
}

#[test]
fn think_times_are_read_and_shown() {
    for (text, think) in [
        ("none", Think::None),
        ("500ms", Think::Fixed(Nanos::from_millis(500))),
        ("1s..3s", Think::Uniform(Nanos::SECOND, Nanos::from_secs(3))),
        ("exp:2s", Think::Exponential(Nanos::from_secs(2))),
        ("lognormal:2s,0.8", Think::Lognormal(Nanos::from_secs(2), 0.8)),
        ("1500001ns", Think::Fixed(Nanos(1_500_001))),
    ] {
        assert_eq!(parse_think(text).unwrap(), think);
        assert_eq!(show_think(think), text);
    }
    assert_eq!(parse_think("0").unwrap(), Think::None);
    for bad in
        ["", "3s..1s", "1s..1s", "exp:0", "exp:", "..", "soon", "lognormal:2s", "lognormal:2s,0"]
    {
        assert!(parse_think(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn percentiles_are_exact_and_sorted() {
    assert_eq!(
        parse_percentiles("99.9,p50,max,90,50").unwrap(),
        [0.5, 0.9, 0.999, 1.0],
        "99.9 is the nearest number to 0.999"
    );
    for bad in ["", "0", "101", "x", "1e1", "-5", "50,,90", "nan"] {
        assert!(parse_percentiles(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn cores_are_parsed() {
    check(
        parse_cpus,
        &[
            ("0", "[0]"),
            ("0,2-3", "[0, 2, 3]"),
            (
                "3-2",
                r#""3-2" is not a list of cores: the range "3-2" has its first value above its last; write 0,2-3"#,
            ),
            ("1,0-1", r#""1,0-1" is not a list of cores: core 1 appears twice; write 0,2-3"#),
            (
                "0-4294967295",
                r#""0-4294967295" is not a list of cores: "4294967295" is not a core number below 4096; write 0,2-3"#,
            ),
        ],
    );
}

#[test]
fn bit_rates_are_parsed() {
    check(
        parse_bits,
        &[
            ("320000", "320000.0"),
            ("320k", "320000.0"),
            ("2Mbit/s", "2000000.0"),
            ("1.5 Mbit/s", "1500000.0"),
            ("k", r#""k" is not a bit rate: it is not a number; write 320k or 2Mbit/s"#),
            ("0", r#""0" is not a bit rate: it must be above zero; write 320k or 2Mbit/s"#),
            ("inf", r#""inf" is not a bit rate: it is not a number; write 320k or 2Mbit/s"#),
        ],
    );
}

#[test]
fn headers_are_parsed() {
    check(
        parse_header,
        &[
            ("Accept: text/html", r#"("Accept", "text/html")"#),
            ("X:", r#"("X", "")"#),
            ("a:b:c ", r#"("a", "b:c")"#),
            ("no colon", r#""no colon" is not a header: it has no colon; write 'Name: value'"#),
            (
                "a b: c",
                r#""a b: c" is not a header: "a b" is not a field name; write 'Name: value'"#,
            ),
            (
                "a: b\r\nc: d",
                r#""a: b\r\nc: d" is not a header: a control character is in the value; write 'Name: value'"#,
            ),
            (
                "content-LENGTH: 3",
                r#""content-LENGTH: 3" is not a header: content-LENGTH is derived from the body and added automatically; write 'Name: value'"#,
            ),
        ],
    );
}

#[test]
fn methods_and_users_are_parsed() {
    assert_eq!(parse_method("PURGE").unwrap(), "PURGE");
    for bad in ["", "GET /", "connect", "G\nT"] {
        assert!(parse_method(bad).is_err(), "{bad:?}");
    }
    let basic = |user: &str, password: &str| Auth::Basic {
        user: user.to_owned(),
        password: password.to_owned(),
    };
    assert_eq!(parse_user("fred:a:b").unwrap(), basic("fred", "a:b"));
    assert_eq!(parse_user("fred").unwrap(), basic("fred", ""));
    assert!(parse_user("fred:\n").is_err());
}

#[test]
fn a_span_is_shown_without_loss() {
    for (ns, text) in [(0, "0s"), (1, "1ns"), (1_500_000_000, "1500ms"), (90_000_000_000, "90s")] {
        assert_eq!(show_span(Nanos(ns)), text);
        assert_eq!(parse_duration(text).unwrap(), Nanos(ns));
    }
}
