//! Lists of URLs: order, weights, results per URL.

use crate::calls::logged;
use crate::support::http::Recorder;
use crate::support::{Site, measure, measured, outcomes, run, run_with_input, text, whole};
use std::collections::BTreeMap;

fn file(lines: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.txt");
    std::fs::write(&path, lines).unwrap();
    let name = path.to_str().unwrap().to_owned();
    (folder, name)
}

#[test]
fn a_list_is_taken_in_order_with_a_row_for_each_url() {
    let site = Site::start(&[]);
    let lines = format!(
        "# pages\n{}\n\n{}\n{}\n",
        site.url("/bytes/10"),
        site.url("/status/404"),
        site.url("/bytes/30")
    );
    let (_folder, list) = file(&lines);
    let json = measure(&["-c", "1", "-n", "7", "--urls", &list]);
    assert_eq!(outcomes(&json), [7, 5, 2, 0, 0, 0]);
    let rows = json["per_url"].as_array().unwrap();
    let found: Vec<(&str, u64, u64, u64, u64)> = rows
        .iter()
        .map(|row| {
            let name = text(row, "/url").split_at(site.url("").len()).1;
            let [count, good, bad] = ["/count", "/succeeded", "/failed"].map(|key| whole(row, key));
            (name, count, good, bad, whole(row, "/body_bytes"))
        })
        .collect();
    let body = found[1].4;
    assert_eq!(
        found,
        [("/bytes/10", 3, 3, 0, 30), ("/status/404", 2, 0, 2, body), ("/bytes/30", 2, 2, 0, 60)]
    );
    let targets: Vec<usize> =
        logged(&["-c", "1", "-n", "7", "--urls", &list]).iter().map(|call| call.target).collect();
    assert_eq!(targets, [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn once_takes_each_url_one_time_and_ends() {
    let site = Site::start(&[]);
    let lines: String =
        (0..25).map(|len| format!("{}\n", site.url(&format!("/bytes/{len}")))).collect();
    let (_folder, list) = file(&lines);
    for options in [&["-c", "4"][..], &["--rate", "1000/s"], &["-c", "3", "--pipeline", "2"]] {
        let mut args = vec!["--once", "--urls", &list];
        args.extend(options);
        let json = measure(&args);
        assert_eq!(outcomes(&json), [25, 25, 0, 0, 0, 0], "{options:?}");
        // 0 + 1 + … + 24
        assert_eq!(whole(&json, "/bytes/body"), 300, "{options:?}");
    }
}

#[test]
fn random_draws_by_weight_and_by_seed() {
    let site = Site::start(&[]);
    let lines = format!("{} weight=9\n{}\n", site.url("/bytes/1"), site.url("/bytes/2"));
    let (_folder, list) = file(&lines);
    let draw = |seed| {
        let args = ["-c", "1", "-n", "400", "--random", "--seed", seed, "--urls", &list];
        logged(&args).iter().map(|call| call.target).collect::<Vec<usize>>()
    };
    let targets = draw("3");
    let rare = targets.iter().filter(|target| **target == 1).count();
    // 40 are expected, with a standard deviation of 6
    assert!((10..=70).contains(&rare), "{rare}");
    assert_eq!(targets, draw("3"));
    assert_ne!(targets, draw("4"));
}

#[test]
fn a_line_has_its_own_method_and_body() {
    let server = Recorder::plain();
    let lines = format!(
        "GET {a}\nPOST {b} body=x=1&y=two words\nDELETE {c}\n/relative\n",
        a = server.url("/a"),
        b = server.url("/b"),
        c = server.url("/c")
    );
    let (_folder, list) = file(&lines);
    measure(&["-c", "1", "-n", "4", "--urls", &list, &server.url("/")]);
    let seen: Vec<(String, Vec<u8>)> = server
        .requests()
        .into_iter()
        .map(|request| (format!("{} {}", request.method(), request.target()), request.body))
        .collect();
    let expected =
        [("GET /a", ""), ("POST /b", "x=1&y=two words"), ("DELETE /c", ""), ("GET /relative", "")];
    let expected = expected.map(|(line, body)| (line.to_owned(), body.as_bytes().to_vec()));
    assert_eq!(seen, expected);
}

#[test]
fn a_list_can_be_read_from_a_pipe() {
    let site = Site::start(&[]);
    let lines = format!("{}\n{}\n", site.url("/bytes/100"), site.url("/bytes/200"));
    let args = ["run", "--json", "-", "-c", "1", "--once", "--urls", "-"];
    let json = run_with_input(&args, lines.as_bytes()).expect(&[0, 4]).json();
    assert_eq!(outcomes(&json)[..2], [2, 2]);
    assert_eq!(whole(&json, "/bytes/body"), 300);
}

#[test]
fn beyond_a_thousand_urls_the_rest_is_one_row() {
    let site = Site::start(&[]);
    let lines: String =
        (0..1_200).map(|n| format!("{}\n", site.url(&format!("/hw?{n}")))).collect();
    let (_folder, list) = file(&lines);
    let json = measure(&["-c", "2", "--once", "--urls", &list]);
    assert_eq!(outcomes(&json)[..2], [1_200, 1_200]);
    let rows = json["per_url"].as_array().unwrap();
    assert!(rows.len() <= 1_001, "{}", rows.len());
    let counted: u64 = rows.iter().map(|row| whole(row, "/count")).sum();
    assert_eq!(counted, 1_200);
    let other = rows.iter().find(|row| row["url"] == "other").expect("a row for the rest");
    assert_eq!(whole(other, "/count"), 1_200 - (rows.len() as u64 - 1));
}

#[test]
fn one_list_may_name_several_servers() {
    let (one, two) = (Site::start(&[]), Site::start(&[]));
    let lines = format!("{}\n{}\n", one.url("/bytes/5"), two.url("/bytes/7"));
    let (_folder, list) = file(&lines);
    let json = measure(&["-c", "2", "-n", "10", "--urls", &list]);
    assert_eq!(outcomes(&json), [10, 10, 0, 0, 0, 0]);
    assert_eq!(whole(&json, "/bytes/body"), 60);
    // the plain first call goes to the first line's server
    assert_eq!((one.stop().requests, two.stop().requests), (6, 5));
}

#[test]
fn a_plan_that_is_printed_is_the_same_plan_when_it_is_read() {
    let (_folder, list) = file("http://h/a weight=2\nPOST http://h/b body=x\n");
    let sets: &[&[&str]] = &[
        &["http://h:81/x?y=1", "-c", "3", "-n", "5", "--think", "exp:1s", "-H", "A: b"],
        &["http://h/", "--rate", "10..20/s", "--session", "3", "--arrivals", "poisson"],
        &["--urls", &list, "--random", "--cookies", "--follow", "--compressed", "--http", "1.0"],
        &["https://h/", "--tls", "1.2", "--insecure", "--no-resumption", "--server-name", "n"],
        &["http://h/", "--slo", "p99<50ms, failures<0.1%", "--abort-if", "failures>50% for 5s"],
        &["http://h/", "--timeout", "1s", "--connect-timeout", "2s", "--first-byte-timeout", "3s"],
        &["http://h/", "--expect-status", "200-299", "--expect-body", "regex:a+", "--repeat", "4"],
        &["http://h/", "--bind", "127.0.0.2", "--resolve", "h:80:127.0.0.1", "--pipeline", "4"],
        &[
            "http://h/",
            "--rate",
            "5/s",
            "--burst",
            "2",
            "--connections-max",
            "7",
            "--queue-max",
            "9",
        ],
        &["http://h/", "--threads", "2", "--cpus", "0", "--nice", "3", "--interval", "500ms"],
        &["http://h/", "--send-buffer", "64k", "--reset", "--no-nodelay", "--calls", "5", "-6"],
        &["http://h/", "--conforming", "1M", "--conforming-heads", "--percentiles=50,99"],
        &[
            "http://h/",
            "--warmup",
            "1s",
            "-d",
            "9s",
            "--bytes-max",
            "1M",
            "--seed",
            "9",
            "--group",
            "3",
        ],
    ];
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, options) in sets.iter().enumerate() {
        let mut args = vec!["run", "--print-plan"];
        args.extend(*options);
        let plan = run(&args).expect(&[0]).stdout;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        std::fs::write(&path, &plan).unwrap();
        let again = run(&["run", path.to_str().unwrap(), "--print-plan"]).expect(&[0]).stdout;
        assert_eq!(plan, again, "{options:?}");
        assert_eq!(seen.insert(plan, index), None, "{options:?} changes nothing");
    }
}

#[test]
fn a_plan_file_is_carried_out_and_options_change_it() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let path = path.to_str().unwrap();
    let url = site.url("/bytes/40");
    let options = ["run", "--print-plan", "-c", "2", "-n", "9", "--calls", "3", &url];
    std::fs::write(path, run(&options).expect(&[0]).stdout).unwrap();
    let json = measure(&[path]);
    assert_eq!(outcomes(&json)[..2], [9, 9]);
    assert_eq!(whole(&json, "/bytes/body"), 360);
    assert!(whole(&json, "/connections/attempted") >= 3);
    let json = measure(&["-n", "4", path]);
    assert_eq!(outcomes(&json)[..2], [4, 4]);
}

#[test]
fn secrets_are_masked_and_a_masked_plan_is_refused() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let url = site.url("/auth");
    let login = ["--user", "fred:flintstone"];
    let plan = run(&["run", "--print-plan", login[0], login[1], &url]).expect(&[0]).stdout;
    assert!(!plan.contains("flintstone"), "{plan}");
    let html = page.to_str().unwrap();
    let json = measured(&["-n", "2", "--html", html, login[0], login[1], &url], &[0, 4]);
    assert_eq!(json["status"], serde_json::json!({"200": 2}));
    assert!(!format!("{json}").contains("flintstone"));
    assert!(!std::fs::read_to_string(&page).unwrap().contains("flintstone"));
    let path = folder.path().join("plan.toml");
    std::fs::write(&path, plan).unwrap();
    let ran = run(&["run", path.to_str().unwrap(), "-n", "1"]);
    assert_eq!(ran.code, 2, "a plan without its secret must not be run as if it had one: {ran:#?}");
}

#[test]
fn urls_that_match_a_pattern_share_a_row() {
    let site = Site::start(&[]);
    let mut lines: String =
        (0..1_200).map(|len| format!("{}\n", site.url(&format!("/bytes/{}", len % 30)))).collect();
    lines += &format!("{0}\n{0}?x=1\n", site.url("/status/404"));
    let (_folder, list) = file(&lines);
    let options = ["-c", "2", "--once", "--urls", &list];
    let folded =
        ["--fold", "/bytes/{n}", "--fold", "/none/{id}", "--slo", "/bytes/{n}: failures<1%"];
    let json = measure(&[&options[..], &folded].concat());
    let rows: Vec<(usize, String, u64, u64)> = json["per_url"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let url = text(row, "/url").replace(&site.url(""), "");
            (whole(row, "/target") as usize, url, whole(row, "/count"), whole(row, "/folded"))
        })
        .collect();
    assert_eq!(
        rows,
        [
            (0, "/bytes/{n}".to_owned(), 1_200, 1_200),
            (1, "/status/404".to_owned(), 1, 0),
            (2, "/status/404?x=1".to_owned(), 1, 0)
        ]
    );
    assert_eq!(json["slo"][0]["met"], true);
    // the record contains enough to render it again, the log the lines of the list
    let calls = logged(&[&options[..], &["--fold", "/bytes/{n}"]].concat());
    assert_eq!(calls.iter().map(|call| call.target).max(), Some(1_201));
}

#[test]
fn a_pattern_without_a_url_is_reported_and_a_bad_one_refused() {
    let site = Site::start(&[]);
    let url = site.url("/bytes/1");
    let ran = run(&["run", &url, "-n", "3", "--fold", "/none/{id}", "--fold", "/bytes/{n}"]);
    assert!([0, 4].contains(&ran.code), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("--fold \"/none/{id}\": it does not match the only URL"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("Per URL"), "{}", ran.stdout);
    for (options, why) in [
        (&["--fold", "user/{id}"][..], "begins with / or with http://"),
        (&["--fold", "/u/{id}", "--slo", "/u/{id}: p99<1s"], "nothing is called \"/u/{id}\""),
    ] {
        let ran = run(&[&["run", &*url, "-n", "3"][..], options].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
}
