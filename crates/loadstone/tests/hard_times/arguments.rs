//! Any command line ends in one of the promised exit codes.

use crate::support::{Site, finish, program};
use proptest::prelude::*;

/// Options that take a value.
const VALUED: &[&str] = &[
    "-c",
    "--rate",
    "--think",
    "--session",
    "--arrivals",
    "--burst",
    "--connections-max",
    "--queue-max",
    "--seed",
    "--bytes-max",
    "--abort-if",
    "--method",
    "-H",
    "--body",
    "--user",
    "--bearer",
    "--user-agent",
    "--http",
    "--expect-status",
    "--expect-length",
    "--expect-body",
    "--connect-timeout",
    "--first-byte-timeout",
    "--progress-timeout",
    "--calls",
    "--pipeline",
    "--group",
    "--resolve",
    "--bind",
    "--proxy",
    "--send-buffer",
    "--recv-buffer",
    "--ca",
    "--cert",
    "--key",
    "--tls",
    "--alpn",
    "--server-name",
    "--groups",
    "--ciphers",
    "--slo",
    "--conforming",
    "--interval",
    "--threads",
    "--cpus",
    "--nice",
    "--unix",
    "--urls",
    "--body-file",
];

/// Options that say how long it takes, with values that a test can wait for.
const BOUNDS: &[&str] = &["-d", "-n", "--warmup", "--repeat", "--timeout"];
const BOUND_VALUES: &[&str] = &["", "0", "1", "2", "7", "30ms", "1ns", "-1", "x", "1e300", "2.5"];

/// Options that stand alone.
const SWITCHES: &[&str] = &[
    "--random",
    "--once",
    "--compressed",
    "--follow",
    "--cookies",
    "--close",
    "-4",
    "-6",
    "--no-nodelay",
    "--reset",
    "--insecure",
    "--no-resumption",
    "--percentiles",
    "--conforming-heads",
    "-q",
    "--print-plan",
];

/// Values: good for one option or another, at the edges, and nonsense.
const VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "16",
    "-1",
    "1.5",
    "1e9",
    "65536",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "99999999999999999999",
    "NaN",
    "inf",
    "",
    " ",
    "-",
    "\u{1}x",
    "µ",
    "x",
    "50ms",
    "0s",
    "1ns",
    "10000d",
    "99999999999d",
    "10ms..20ms",
    "20ms..10ms",
    "exp:5ms",
    "exp:",
    "100/s",
    "1/d",
    "10..500/s",
    "10000000/s",
    "poisson",
    "constant",
    "1k",
    "1M",
    "16E",
    "1..2",
    "200",
    "200,404",
    "100-599",
    "p99<50ms",
    "failures>50% for 1s",
    "exact:hello world",
    "regex:.*",
    "sha256:00",
    "A: b",
    "A:",
    ": b",
    "1.0",
    "1.1",
    "1.2",
    "1.3",
    "none",
    "localhost:80:127.0.0.1",
    "127.0.0.1",
    "127.0.0.2-127.0.0.9",
    "::1",
    "0.0.0.0",
    "http://127.0.0.1:1",
    "a:b",
    "0,1",
    "0-99",
    "/dev/null",
    "/gone",
    "http/1.1",
    "X25519",
    "localhost",
];

fn one_option() -> impl Strategy<Value = String> {
    let joined = |(name, value): (&str, &str)| {
        let equals = if name.starts_with("--") { "=" } else { "" };
        format!("{name}{equals}{value}")
    };
    let valued = (prop::sample::select(VALUED), prop::sample::select(VALUES)).prop_map(joined);
    let bound = (prop::sample::select(BOUNDS), prop::sample::select(BOUND_VALUES)).prop_map(joined);
    let switch = prop::sample::select(SWITCHES).prop_map(str::to_owned);
    prop_oneof![6 => valued, 1 => bound, 2 => switch]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_command_line_ends_in_a_promised_way(
        options in prop::collection::vec(one_option(), 0..6),
        secure in any::<bool>(),
    ) {
        let site = Site::start(&[]);
        let scheme = if secure { "https" } else { "http" };
        let url = format!("{scheme}://{}/hw", site.authority());
        let mut args: Vec<String> = vec!["run".into()];
        args.extend(options);
        // bounds, where the options set none
        for (name, value) in [("-d", "30ms"), ("-n", "20"), ("--timeout", "1s")] {
            if !args.iter().any(|arg| arg.starts_with(name)) {
                args.extend([name.to_owned(), value.to_owned()]);
            }
        }
        args.push(url);
        let ran = finish(program(&args), b"");
        prop_assert!((0..=5).contains(&ran.code), "{args:?} gives {}: {}", ran.code, ran.stderr);
        prop_assert!(!ran.stderr.contains("panicked"), "{args:?}: {}", ran.stderr);
        // who is refused is told why
        prop_assert!(ran.code != 2 || !ran.stderr.is_empty(), "{args:?} is refused without a word");
    }
}
