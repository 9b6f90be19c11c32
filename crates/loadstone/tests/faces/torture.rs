//! `loadstone torture.pl` against the built-in site. The script itself is not packaged: its report
//! is compared with its known template.

use crate::support::process::run_with_input;
use crate::support::{Site, run};
use std::collections::BTreeMap;

fn torture(args: &[&str]) -> crate::support::Ran {
    run(&[&["torture.pl"], args].concat())
}

/// Masks numbers and dates in the text.
fn masked(text: &str) -> String {
    let mut out = Vec::new();
    for line in text.lines() {
        let dated = line.split_once("ing at ").map(|(start, _)| format!("{start}ing at DATE"));
        let figures = |text: &str| {
            let mut masked = String::new();
            for letter in text.chars() {
                let digit = letter.is_ascii_digit() || letter == '.';
                if !(digit && masked.ends_with('#')) {
                    masked.push(if letter.is_ascii_digit() { '#' } else { letter });
                }
            }
            masked
        };
        out.push(dated.unwrap_or_else(|| match line.split_once(':') {
            Some((label, rest)) => format!("{label}:{}", figures(rest)),
            None => line.to_owned(),
        }));
    }
    out.join("\n")
}

#[test]
fn the_report_has_all_lines() {
    let site = Site::start(&[]);
    let ran = torture(&["-c", "5", "-t", "10", &site.url("/hw")]).expect(&[0]);
    assert_eq!(ran.stderr, "");
    insta::assert_snapshot!(masked(&ran.stdout), @r"
    ** torture.pl version 1.05 starting at DATE
    Transactions:           #
    Elapsed time:           # sec
    Bytes Transferred:      # bytes
    Response Time:          # sec
    Transaction Rate:       # trans/sec
    Throughput:             # bytes/sec
    Concurrency:            #
    Status Code 200:        #
    ** torture.pl version 1.05 ending at DATE
    ");
    assert!(ran.stdout.contains("Transactions:           50\n"), "{ran:#?}");
    assert!(ran.stdout.contains("Bytes Transferred:      550 bytes\n"), "{ran:#?}");
    assert!(ran.stdout.contains("Status Code 200:        50\n"), "{ran:#?}");
    assert_eq!(site.stop().requests, 50);
}

/// Status and length of the target of each line of an access log.
fn logged(text: &str) -> Vec<(String, usize)> {
    let line = |line: &str| {
        let (_, rest) = line.split_once('"').unwrap();
        let (request, rest) = rest.rsplit_once('"').unwrap();
        let target = request.split(' ').nth(1).unwrap().len();
        (rest.split_whitespace().next().unwrap().to_owned(), target)
    };
    text.lines().map(line).collect()
}

#[test]
fn a_uri_is_refused_exactly_from_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let site = Site::start(&[("uri-max", "8192"), ("log", log.to_str().unwrap())]);
    let ran = torture(&["-t", "40", "-c", "2", "-l", "9000", &site.url("/hw")]).expect(&[0]);
    site.stop();
    let lines = logged(&std::fs::read_to_string(&log).unwrap());
    assert_eq!(lines.len(), 80);
    for (status, target) in &lines {
        let right = if *target > 8_192 { "414" } else { "200" };
        assert_eq!(status, right, "a target of {target} bytes");
    }
    for status in ["200", "414"] {
        let count = lines.iter().filter(|(seen, _)| seen == status).count();
        assert!(count > 10, "{count} of {status}");
        let line = format!("Status Code {status}:        {count}\n");
        assert!(ran.stdout.contains(&line), "{line} in {ran:#?}");
    }
}

#[test]
fn data_goes_into_the_path_or_the_body() {
    let site = Site::start(&[]);
    let posted = torture(&["-P", "-t", "5", "-l", "500", &site.url("/echo")]).expect(&[0]);
    assert!(posted.stdout.contains("Status Code 200:        5\n"), "{posted:#?}");
    let in_path = torture(&["-p", "-t", "5", "-l", "50", &site.url("/hw")]).expect(&[0]);
    assert!(in_path.stdout.contains("Status Code 404:        5\n"), "{in_path:#?}");
    // raw bytes are not a request line
    let raw = torture(&["-r", "-t", "5", "-l", "500", &site.url("/hw")]).expect(&[0]);
    assert!(raw.stdout.contains("Status Code 400:"), "{raw:#?}");
}

#[test]
fn trouble_is_warned_of() {
    let site = Site::start(&[("error-share", "100%")]);
    let ran = torture(&["-t", "3", &site.url("/hw")]).expect(&[0]);
    assert!(ran.stdout.contains("Status Code 500:        3\n"), "{ran:#?}");
    assert_eq!(ran.stderr.lines().count(), 3, "{ran:#?}");
    assert!(ran.stderr.lines().all(|line| line.ends_with(": Internal Server Error")), "{ran:#?}");
    let url = format!("http://127.0.0.1:{}/", crate::support::free_port());
    let ran = torture(&[&url]).expect(&[0]);
    assert!(ran.stdout.contains("Status Code 503:        1\n"), "{ran:#?}");
    let (process, message) = ran.stderr.split_once(": ").unwrap();
    assert!(process.parse::<u32>().is_ok_and(|process| process > 1), "{ran:#?}");
    assert_eq!(message, "connection refused\n");
    let site = Site::start(&[("garbage", "")]);
    let ran = torture(&["-t", "2", &site.url("/")]).expect(&[0]);
    assert!(ran.stdout.contains("Status Code 400:        2\n"), "{ran:#?}");
}

#[test]
fn a_run_with_delays_completes_its_transactions() {
    let site = Site::start(&[]);
    let ran = torture(&["-d", "0.2", "-t", "4", &site.url("/hw")]).expect(&[0]);
    assert!(ran.stdout.contains("Transactions:           4\n"), "{ran:#?}");
    for args in [&["-t", "-1", "http://h/"][..], &["-z", "http://h/"], &[]] {
        let ran = torture(args).expect(&[255]);
        assert!(ran.stderr.contains("Usage: torture.pl"), "{ran:#?}");
    }
}

/// Perl's numbers, and arguments that the script ignores.
#[test]
fn a_place_that_cannot_be_reached_is_a_status_503() {
    for url in ["http://name.invalid/", "https://127.0.0.1/", "127.0.0.1:80"] {
        let ran = torture(&["-c", "2", "-t", "2.7", url, "further", "words"]).expect(&[0]);
        assert!(ran.stdout.contains("Status Code 503:        4\n"), "{ran:#?}");
        assert_eq!(ran.stderr.lines().count(), 4, "{ran:#?}");
    }
}

/// Number of requests for each path, from an access log.
fn asked(log: &std::path::Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in std::fs::read_to_string(log).unwrap().lines() {
        let target = line.split(' ').skip_while(|word| !word.starts_with('"')).nth(1).unwrap();
        *counts.entry(target.split('?').next().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn a_list_is_visited_at_random() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let site = Site::start(&[("log", log.to_str().unwrap())]);
    let urls = ["/hw", "/bytes/10", "/bytes/20", "/status/404"].map(|path| site.url(path));
    // the last line weighs as much as the three others together
    let list = format!("{}\n# a remark\n{}\n{}\n{} weight=3\n", urls[0], urls[1], urls[2], urls[3]);
    let line = ["torture.pl", "--urls", "-", "-t", "100", "-c", "3", "-l", "9"];
    let ran = run_with_input(&line, list.as_bytes()).expect(&[0]);
    assert!(ran.stdout.contains("Transactions:           300\n"), "{ran:#?}");
    site.stop();
    let counts = asked(&log);
    assert_eq!(counts.len(), 4, "{counts:?}");
    assert!((20..80).contains(&counts["/hw"]), "{counts:?}");
    assert!((100..200).contains(&counts["/status/404"]), "{counts:?}");
    assert!(ran.stdout.contains(&format!("Status Code 404:        {}\n", counts["/status/404"])));
    for (list, complaint) in [
        ("https://h/\n", "is not an http:// URL"),
        ("POST http://h/\n", "has a method or a body"),
        ("http://h/ http://g/\n", "line 1 of the URL list"),
        ("", "the URL list is empty"),
    ] {
        let ran = run_with_input(&["torture.pl", "--urls", "-"], list.as_bytes()).expect(&[255]);
        assert!(ran.stderr.contains(complaint), "{ran:#?}");
    }
    let both = torture(&["--urls", "/no/such/file", "http://h/"]).expect(&[255]);
    assert!(both.stderr.starts_with("give --urls FILE or a URL, not both\nUsage:"), "{both:#?}");
    let missing = torture(&["--urls=/no/such/file"]).expect(&[255]);
    assert!(missing.stderr.contains("/no/such/file: No such file"), "{missing:#?}");
}

#[test]
fn a_crawl_makes_the_list() {
    let site = Site::start(&[]);
    let list = run(&["workload", "crawl", &site.url("/"), "--calls-max", "12"]).expect(&[0]);
    assert!(list.stdout.lines().all(|url| url.starts_with(&site.url("/"))), "{list:#?}");
    // one of these servers takes seconds to answer
    let quick = |url: &&str| !url.contains("/sleep");
    let lines: Vec<&str> = list.stdout.lines().filter(quick).collect();
    assert!(lines.len() > 3, "{list:#?}");
    let list = lines.join("\n");
    let line = ["torture.pl", "--urls", "-", "-t", "20"];
    let ran = run_with_input(&line, list.as_bytes()).expect(&[0]);
    assert!(ran.stdout.contains("Status Code 200:        20\n"), "{ran:#?}");
    let line = ["run", "--urls", "-", "--random", "-n", "20", "--json", "-"];
    let ran = run_with_input(&line, list.as_bytes()).expect(&[0, 4]);
    assert_eq!(ran.json()["status"], serde_json::json!({"200": 20}), "{ran:#?}");
}
