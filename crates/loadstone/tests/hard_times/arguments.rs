//! Any command line ends with a documented exit code.

use crate::support::{Ran, Site, finish, program};
use proptest::prelude::*;
use proptest::sample::select;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Options with a value.
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
    "--priority",
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

/// Options that bound the duration, with values short enough for a test.
const BOUNDS: &[&str] = &["-d", "-n", "--warmup", "--repeat", "--timeout"];
const BOUND_VALUES: &[&str] = &["", "0", "1", "2", "7", "30ms", "1ns", "-1", "x", "1e300", "2.5"];

/// Options without a value.
const SWITCHES: &[&str] = &[
    "--until-sure",
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
    "--early-data",
    "--percentiles",
    "--conforming-heads",
    "-q",
    "--print-plan",
];

/// Values: valid for some option, at the bounds, and invalid.
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

/// Options that write or store, with possible destinations: files in the test's folder, devices
/// that store nothing, and invalid ones.
const WRITERS: &[&str] = &["--json", "--csv", "--html", "--hdr", "--log", "--store"];
const FILES: &[&str] = &[
    "-",
    "",
    "out",
    "kept.db",
    "other.db",
    ":memory:",
    "none",
    "no/such/file",
    ".",
    "/dev/null",
    "/dev/full",
    "site.sock",
];

/// Options of `ramp`, with short loads.
const RAMP_VALUED: &[&str] =
    &["--from", "--to", "--step", "--factor", "--find", "--slo", "--repeat"];
const RAMP_VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "-1",
    "1.5",
    "10/s",
    "60/s",
    "1e300/s",
    "NaN",
    "inf",
    "",
    "x",
    "p99<50ms",
    "failures<50%",
    "p99<1ns",
    "capacity",
];
const RAMP_SWITCHES: &[&str] = &["--population", "--shuffle", "--down", "--no-overload", "-q"];

const COMPARE_VALUED: &[&str] =
    &["--blocks", "--fail-if", "--a-command", "--b-command", "--ready", "--sut", "--repeat"];
const COMPARE_VALUES: &[&str] = &[
    "0",
    "4",
    "5",
    "1001",
    "-1",
    "x",
    "",
    " ",
    "p99 +5%",
    "p99 -5%",
    "throughput -3%",
    "p50 +0%",
    "exit 3",
    "sleep 50 & exit",
    "30ms",
    "0s",
];
const COMPARE_SWITCHES: &[&str] = &["--force", "-q", "--print-plan", "--percentiles"];

/// Names of results, stored or not.
const RESULTS: &[&str] = &[
    "last",
    "last~0",
    "last~1",
    "last~99999999999",
    "run-1",
    "1",
    "run-2",
    "ramp-1",
    "run-0",
    "-1",
    "",
    "tag",
    "kept.db",
    "other.db",
    "/dev/null",
    "a,b",
    "run-1,run-1,run-1,run-1",
    "\u{1}x",
];
const RUNS_WORDS: &[&str] = &["list", "show", "tag", "untag", "delete", "export", "import", "x"];
const READ_OPTIONS: &[&str] =
    &["--json", "--csv", "--html", "--md", "--store", "--name", "--tag", "--kind", "--since", "-n"];
const READ_VALUES: &[&str] = &["run", "ramp", "compare", "1h", "99999999d", "2026-11-20", "0", "2"];
const READ_SWITCHES: &[&str] = &["-q", "--percentiles", "--plan", "--yes"];

/// Renders `--name=value`, or `-nvalue`.
fn joined((name, value): (&str, &str)) -> String {
    let equals = if name.starts_with("--") { "=" } else { "" };
    format!("{name}{equals}{value}")
}

fn one_of(
    names: &'static [&'static str],
    values: &'static [&'static str],
) -> impl Strategy<Value = String> {
    (select(names), select(values)).prop_map(joined)
}

fn switch(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(names).prop_map(str::to_owned)
}

fn one_option() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => one_of(VALUED, VALUES),
        1 => one_of(BOUNDS, BOUND_VALUES),
        2 => switch(SWITCHES),
        1 => one_of(WRITERS, FILES),
    ]
}

fn ramp_option() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => one_of(RAMP_VALUED, RAMP_VALUES),
        2 => switch(RAMP_SWITCHES),
        1 => one_of(WRITERS, FILES),
        1 => switch(SWITCHES),
    ]
}

fn compare_option() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => one_of(COMPARE_VALUED, COMPARE_VALUES),
        2 => switch(COMPARE_SWITCHES),
        1 => one_of(WRITERS, FILES),
        1 => switch(SWITCHES),
    ]
}

fn read_word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => switch(RESULTS),
        2 => one_of(READ_OPTIONS, READ_VALUES),
        2 => one_of(READ_OPTIONS, FILES),
        1 => switch(READ_SWITCHES),
    ]
}

/// Folder with a store that contains a result.
static KEPT: LazyLock<TempDir> = LazyLock::new(|| {
    let (folder, site) = (tempfile::tempdir().unwrap(), Site::start(&[]));
    let url = site.url("/hw");
    let words = ["run", "-c", "1", "-n", "8", "-q", "--store", "kept.db", &url];
    let mut command = program(&words);
    command.current_dir(folder.path());
    finish(command, b"").expect(&[0, 4]);
    folder
});

/// Runs a command line in a separate folder with a store that contains a result, and checks that
/// nothing panics and that refusals have a reason.
fn run_checked(args: &[String], codes: &[i32]) -> Result<Ran, TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(KEPT.path().join("kept.db"), folder.path().join("kept.db")).unwrap();
    let mut command = program(args);
    command.current_dir(folder.path()).env("XDG_DATA_HOME", folder.path());
    let ran = finish(command, b"");
    prop_assert!(codes.contains(&ran.code), "{args:?} gives {}: {}", ran.code, ran.stderr);
    prop_assert!(!ran.stderr.contains("panicked"), "{args:?}: {}", ran.stderr);
    prop_assert!(ran.code != 2 || !ran.stderr.is_empty(), "{args:?} is refused without a word");
    for device in ["/dev/null-journal", "/dev/full-journal", "/dev/null-wal"] {
        prop_assert!(!Path::new(device).exists(), "{args:?} makes {device}");
    }
    Ok(ran)
}

const MEASURED: &[i32] = &[0, 1, 2, 3, 4, 5];
/// Commands that only read: they open no connection and judge nothing.
const READ: &[i32] = &[0, 2, 5];

/// Adds the options that the line lacks to end soon.
fn bounded(args: &mut Vec<String>, bounds: &[(&str, &str)]) {
    for (name, value) in bounds {
        if !args.iter().any(|arg| arg.starts_with(name)) {
            args.extend([(*name).to_owned(), (*value).to_owned()]);
        }
    }
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
        let mut args: Vec<String> = vec!["run".into()];
        args.extend(options);
        bounded(&mut args, &[("-d", "30ms"), ("-n", "20"), ("--timeout", "1s")]);
        args.push(format!("{scheme}://{}/hw", site.authority()));
        run_checked(&args, MEASURED)?;
    }

    #[test]
    fn any_look_at_results_ends_in_a_promised_way(
        command in select(&["report", "runs", "runs", "compare"][..]),
        task in select(RUNS_WORDS),
        words in prop::collection::vec(read_word(), 0..5),
    ) {
        let mut args = vec![command.to_owned()];
        args.extend((command == "runs").then(|| task.to_owned()));
        args.extend(words);
        bounded(&mut args, &[("--store", "kept.db")]);
        // a comparison of stored runs is judged by their own verdicts
        run_checked(&args, if command == "compare" { MEASURED } else { READ })?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 30, ..ProptestConfig::default() })]

    #[test]
    fn any_ramp_ends_in_a_promised_way(options in prop::collection::vec(ramp_option(), 0..5)) {
        let site = Site::start(&[]);
        let mut args = vec!["ramp".to_owned()];
        args.extend(options);
        let to = if args.iter().any(|arg| arg == "--population") { "3" } else { "60/s" };
        let times = [("--to", to), ("--hold", "20ms"), ("--settle", "30ms"), ("--timeout", "1s")];
        bounded(&mut args, &times);
        args.push(site.url("/hw"));
        run_checked(&args, MEASURED)?;
    }

    #[test]
    fn any_comparison_ends_in_a_promised_way(
        options in prop::collection::vec(compare_option(), 0..5),
        targets in 0..3_usize,
    ) {
        let site = Site::start(&[]);
        let mut args = vec!["compare".to_owned()];
        args.extend(options);
        let bounds = [("-d", "20ms"), ("-n", "5"), ("-c", "1"), ("--blocks", "5"), ("--timeout", "1s")];
        bounded(&mut args, &bounds);
        args.extend((0..targets).map(|_| site.url("/hw")));
        run_checked(&args, MEASURED)?;
    }
}
