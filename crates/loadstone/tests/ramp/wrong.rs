//! Wrong input: a message that names it and the fix, exit code 2, and no request.

use super::words;
use crate::support::run;

#[test]
fn what_cannot_be() {
    let url = "http://127.0.0.1:9/";
    let wrong: &[(&[&str], &str)] = &[
        (&[], "no URL is given"),
        (
            &["--rate", "5/s", url],
            "--rate: a ramp sets the rate of its steps; give --from and --to",
        ),
        (&["-c", "5", url], "give --population"),
        (&["-d", "5s", url], "each step of a ramp lasts --hold"),
        (&["-n", "5", url], "--hold"),
        (&["--log", "x", url], "--log is for single runs"),
        (&["--hdr", "x", url], "--hdr is for single runs"),
        (&["--live", url], "--live draws on standard error"),
        (&["--from", "200/s", "--to", "100/s", url], "--from 200 is above --to 100"),
        (&["--from", "nine", url], "--from"),
        (&["--from", "0/s", url], "--from"),
        (&["--population", "--to", "10/s", url], "with --population loads are users"),
        (&["--population", "--from", "0", url], "0 users make no call"),
        (&["--step", "10/s", url], "add --to"),
        (&["--to", "100/s", "--step", "1/s", "--factor", "2", url], "cannot be used with"),
        (&["--to", "100/s", "--factor", "1", url], "--factor 1 does not raise the load"),
        (&["--to", "100/s", "--factor", "NaN", url], "does not raise the load"),
        (&["--to", "1000000/s", "--step", "1/s", url], "more than 1000 steps"),
        (&["--shuffle", url], "add --to"),
        (&["--find", "capacity", url], "--find capacity needs objectives"),
        (&["--find", "p99", url], "--find takes capacity, or objectives"),
        (&["--find", "p99<1s", "--down", url], "omit --down"),
        (&["--find", "p99<1s", "--repeat", "2", url], "--repeat"),
        (&["--hold", "0s", url], "--hold is 0"),
        (&["--repeat", "0", url], "--repeat is 0"),
        (&["--overload", "--no-overload", url], "cannot be used with"),
        (&["a=http://h/", "a=http://i/"], "two targets are called a"),
        (&["--urls", "-", "a=http://h/", "b=http://i/"], "one target only"),
        (&["--population", "--to", "4", "--arrivals", "poisson", url], "--arrivals"),
    ];
    for (args, message) in wrong {
        let args: Vec<&str> = std::iter::once("ramp").chain(args.iter().copied()).collect();
        let found = run(&args);
        assert_eq!(found.code, 2, "{args:?}\n{found:#?}");
        assert!(found.stderr.contains(message), "{args:?}\n{}", found.stderr);
        assert!(found.stdout.is_empty(), "{args:?}\n{}", found.stdout);
    }
}

#[test]
fn the_plan_can_be_read_before() {
    let line = "ramp --print-plan --from 10/s --to 30/s --step 10/s";
    let found = run(&words(line, "a=http://h/?x=1")).expect(&[0]).stdout;
    assert!(
        found.starts_with("# a: 3 steps, each held 5.00 s; the plan shows the highest"),
        "{found}"
    );
    assert!(found.contains("\n#   10/s, 20/s, 30/s\n"), "{found}");
    assert!(found.contains("http://h/?x=1"), "{found}");
    // many of them are wrapped, and the output is a plan
    let line =
        "ramp --print-plan --population --from 1 --to 900 --step 3 --repeat 2 --down --shuffle";
    let found = run(&words(line, "http://127.0.0.1:1/")).expect(&[0]).stdout;
    assert!(found.lines().all(|line| line.chars().count() <= 80), "{found}");
    let text = found.replace("\n#", "").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("2 times over, in random order, then down the same way"), "{text}");
    assert!(text.contains("users: 1, 4, 7, 10,") && text.contains(" 895, 898, 900"), "{text}");
    let plan: toml::Table = found.parse().unwrap();
    assert_eq!(plan["load"]["users"].as_integer(), Some(900));
}
