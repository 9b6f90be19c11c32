//! Closed, open and partly open loads, and their ends.

use crate::calls::{gaps, logged, read};
use crate::support::http::{Recorder, response};
use crate::support::{Site, failures, measure, measured, number, outcomes, run, text, whole};
use std::collections::BTreeMap;

#[test]
fn n_calls_are_made_by_c_users_and_each_is_counted_once() {
    let site = Site::start(&[]);
    let json = measure(&["--connections", "3", "-n", "60", &site.url("/bytes/100")]);
    assert_eq!(outcomes(&json), [60, 60, 0, 0, 0, 0]);
    assert_eq!(whole(&json, "/connections/attempted"), 3);
    assert_eq!(whole(&json, "/connections/peak"), 3);
    let served = site.stop();
    // after one plain call
    assert_eq!((served.requests, served.connections), (61, 4));
}

#[test]
fn ten_users_for_ten_seconds_are_the_default_of_the_plan() {
    let ran = run(&["run", "--print-plan", "http://h/"]).expect(&[0]);
    assert!(ran.stdout.contains("users = 10\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("duration = \"10s\"\n"), "{}", ran.stdout);
}

#[test]
fn d_ends_the_window_and_due_calls_complete() {
    let site = Site::start(&[("delay", "40ms")]);
    let json = measure(&["-c", "2", "-d", "300ms", &site.url("/hw")]);
    let [due, succeeded, rest @ ..] = outcomes(&json);
    assert_eq!(number(&json, "/duration_s"), 0.3);
    assert_eq!((due, rest), (succeeded, [0; 4]));
    // two users, at least 40 ms a call: 7 complete calls and one begun in the window
    assert!((2..=16).contains(&due), "{json:#}");
    assert!(number(&json, "/response_time_s/p50") >= 0.04);
    assert_eq!(site.stop().requests, due + 1);
}

#[test]
fn with_d_and_n_the_first_end_counts() {
    let site = Site::start(&[]);
    let json = measure(&["-c", "1", "--duration", "50s", "--requests", "7", &site.url("/hw")]);
    assert_eq!(outcomes(&json)[0], 7);
    let json = measure(&["-c", "1", "-d", "100ms", "-n", "1000000000", &site.url("/hw")]);
    assert!(outcomes(&json)[0] < 1_000_000_000);
}

#[test]
fn bytes_max_ends_a_run_near_its_bound() {
    let site = Site::start(&[]);
    let json = measure(&["-c", "1", "-d", "50s", "--bytes-max", "10k", &site.url("/bytes/1000")]);
    let received = whole(&json, "/bytes/received");
    assert!((10 << 10..(10 << 10) + 2_500).contains(&received), "{json:#}");
}

#[test]
fn a_rate_is_due_by_the_clock_and_constant_gaps_are_equal() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let json = measure(&["--rate", "200/s", "-d", "500ms", &url]);
    assert!((99..=101).contains(&outcomes(&json)[0]), "{json:#}");
    assert_eq!(number(&json, "/intended_per_s"), 200.0);
    let calls = logged(&["--rate", "200/s", "-n", "30", &url]);
    assert_eq!(calls.len(), 30);
    assert!(gaps(&calls).iter().all(|gap| (gap - 5_000_000).abs() <= 1), "{:?}", gaps(&calls));
}

#[test]
fn arrivals_name_the_law_of_the_gaps() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let run = |law| gaps(&logged(&["--rate", "1000/s", "-n", "200", "--arrivals", law, &url]));
    let poisson = run("poisson");
    // exp(-2) of exponential gaps are longer than twice their mean, no uniform one is
    assert!(poisson.iter().filter(|gap| **gap > 2_000_000).count() > 5, "{poisson:?}");
    let uniform = run("uniform");
    assert!(uniform.iter().all(|gap| (0..=2_000_001).contains(gap)), "{uniform:?}");
    assert!(uniform.iter().any(|gap| *gap < 500_000), "{uniform:?}");
    assert!(uniform.iter().any(|gap| *gap > 1_500_000), "{uniform:?}");
}

#[test]
fn a_burst_falls_due_at_one_instant() {
    let site = Site::start(&[]);
    let calls = logged(&["--rate", "500/s", "-n", "40", "--burst", "5", &site.url("/hw")]);
    let mut instants: BTreeMap<i64, usize> = BTreeMap::new();
    for call in &calls {
        *instants.entry(call.intended).or_default() += 1;
    }
    assert_eq!(instants.values().copied().collect::<Vec<_>>(), [5; 8]);
}

#[test]
fn a_ramp_of_rates_ends_faster_than_it_begins() {
    let site = Site::start(&[]);
    let calls = logged(&["--rate", "100..500/s", "-d", "500ms", &site.url("/hw")]);
    // the integral from 100 to 500 a second over half a second
    assert!((149..=151).contains(&calls.len()), "{}", calls.len());
    let gaps = gaps(&calls);
    let (first, last) = (gaps[0], gaps[gaps.len() - 1]);
    assert!(first > 3 * last, "{first} {last}");
}

#[test]
fn sessions_arrive_openly_and_their_calls_follow_each_other() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let args = ["--rate", "100/s", "--session", "4", "-n", "10", &url];
    let json = measure(&args);
    assert_eq!(outcomes(&json)[..2], [40, 40]);
    assert_eq!(whole(&json, "/sessions/started"), 10);
    assert_eq!(whole(&json, "/sessions/completed"), 10);
    // the requested rate, however long the last of ten sessions takes
    assert_eq!(number(&json, "/sessions/intended_per_s"), 100.0);
    let served = site.stop();
    assert_eq!(served.requests, 41);
}

#[test]
fn think_time_lies_between_a_response_and_the_next_due_instant() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let pauses = |think| {
        let calls = logged(&["-c", "1", "-n", "12", "--think", think, &url]);
        let pauses = calls.windows(2);
        let pause = |pair: &[crate::calls::Call]| {
            pair[1].intended - pair[0].intended - pair[0].response.unwrap()
        };
        pauses.map(pause).collect::<Vec<i64>>()
    };
    assert!(pauses("20ms").iter().all(|pause| *pause == 20_000_000), "{:?}", pauses("20ms"));
    let uniform = pauses("5ms..15ms");
    assert!(uniform.iter().all(|pause| (5_000_000..=15_000_000).contains(pause)), "{uniform:?}");
    assert!(uniform.iter().any(|pause| *pause != uniform[0]), "{uniform:?}");
    let exponential = pauses("exp:5ms");
    assert!(exponential.iter().any(|pause| *pause < 5_000_000), "{exponential:?}");
    assert!(exponential.iter().any(|pause| *pause > 5_000_000), "{exponential:?}");
    // users of a session also have think time
    let calls = ["--rate", "100/s", "--session", "3", "-n", "1", "--think", "30ms", &url];
    let spread = gaps(&logged(&calls));
    assert!(spread.len() == 2 && spread.iter().all(|gap| *gap >= 30_000_000), "{spread:?}");
}

#[test]
fn a_full_pool_and_a_full_queue_drop_with_a_count() {
    let site = Site::start(&[("delay", "50ms")]);
    let limits = ["--connections-max", "1", "--queue-max", "2"];
    let url = site.url("/hw");
    let mut args = vec!["--rate", "400/s", "-n", "40", &url];
    args.extend(limits);
    let json = measure(&args);
    let [due, succeeded, failed, timed_out, dropped, abandoned] = outcomes(&json);
    assert_eq!((due, failed, timed_out, abandoned), (40, 0, 0, 0));
    assert_eq!(succeeded + dropped, 40);
    // 100 ms of arrivals, 50 ms a call: only a few can have been served
    assert!(dropped >= 20, "{json:#}");
    assert_eq!(failures(&json), [("connections-max".to_owned(), dropped)]);
    assert_eq!(whole(&json, "/connections/peak"), 1);
    assert_eq!(site.stop().requests, succeeded + 1);
    // with room in the queue nothing is dropped, and the wait is shown
    let site = Site::start(&[("delay", "20ms")]);
    let url = site.url("/hw");
    let json = measure(&["--rate", "400/s", "-n", "20", "--connections-max", "1", &url]);
    assert_eq!(outcomes(&json), [20, 20, 0, 0, 0, 0]);
    assert!(number(&json, "/wait_s/max") > 0.2, "{json:#}");
}

#[test]
fn an_abort_rule_ends_a_run_of_failures() {
    let site = Site::start(&[("error-share", "60%"), ("delay", "1ms")]);
    let rule = ["--abort-if", "failures>20% for 300ms", "--interval", "100ms"];
    let url = site.url("/hw");
    let mut args = vec!["-c", "4", "-d", "50s", &url];
    args.extend(rule);
    let json = measured(&args, &[1, 4]);
    assert!(text(&json, "/aborted").contains("failures>20% for 300ms"), "{json:#}");
    assert!(number(&json, "/elapsed_s") < 50.0);
    // the rule does not end a run that stays within it
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let json = measure(&["-c", "1", "-d", "300ms", "--abort-if", rule[1], &url]);
    assert!(json["aborted"].is_null(), "{json:#}");
}

#[test]
fn a_warm_up_is_served_and_counted_separately() {
    let site = Site::start(&[("delay", "5ms")]);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (log_name, url) = (log.to_str().unwrap(), site.url("/hw"));
    let json = measure(&["-c", "2", "--warmup", "1s", "-d", "1s", "--log", log_name, &url]);
    let (warm, due) = (whole(&json, "/warm_up/due"), outcomes(&json)[0]);
    assert!(warm > 1 && due > 1, "{json:#}");
    assert_eq!(site.stop().requests, 1 + warm + due);
    let rows = json["series"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["warm_up"] == true), "{json:#}");
    assert!(rows.iter().any(|row| row["warm_up"] == false), "{json:#}");
    assert_eq!(whole(&json, "/response_time_s/count"), due);
    let early = read(&log).iter().filter(|call| call.intended < 0).count() as u64;
    assert_eq!(early, warm);
}

#[test]
fn repeats_are_separate_runs_with_intervals_across_them() {
    let site = Site::start(&[]);
    let json = measure(&["-c", "2", "-n", "50", "--repeat", "3", &site.url("/hw")]);
    assert_eq!(json["runs"].as_array().unwrap().len(), 3);
    assert_eq!(outcomes(&json)[..2], [150, 150]);
    assert_eq!(site.stop().requests, 151);
    let intervals = json["intervals"].as_object().unwrap();
    assert!(!intervals.is_empty());
    for (name, interval) in intervals {
        let [low, mean, high] = ["/low", "/mean", "/high"].map(|key| number(interval, key));
        assert!(low <= mean && mean <= high, "{name}: {interval}");
        assert_eq!(whole(interval, "/runs"), 3);
    }
    let throughput: Vec<f64> = json["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| number(run, "/throughput_per_s"))
        .collect();
    let mean = throughput.iter().sum::<f64>() / 3.0;
    let found = number(&json, "/intervals/throughput/mean");
    assert!((found / mean - 1.0).abs() < 1e-9, "{found} {mean}");
}

#[test]
fn the_seed_decides_all_that_is_random() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let arrivals = |seed: &str| {
        let args = ["--rate", "2000/s", "-n", "100", "--arrivals", "poisson", "--seed", seed, &url];
        gaps(&logged(&args))
    };
    assert_eq!(arrivals("7"), arrivals("7"));
    assert_ne!(arrivals("7"), arrivals("8"));
    let with_workers = |count: &str| {
        let args =
            ["--rate", "2000/s", "-n", "100", "--arrivals", "poisson", "--threads", count, &url];
        gaps(&logged(&args))
    };
    assert_eq!(with_workers("1"), with_workers("2"));
}

#[test]
fn an_objective_that_is_missed_gives_exit_code_1() {
    let site = Site::start(&[("delay", "20ms")]);
    let url = site.url("/hw");
    // a busy machine may make the run INVALID, which takes precedence over an objective
    let bounds = "p50<1ms, failures<=0";
    let json = measured(&["-c", "2", "-n", "20", "--slo", bounds, &url], &[1, 4]);
    let state = text(&json, "/verdict/state");
    let rows = json["slo"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["met"], false, "{state}");
    assert_eq!(rows[1]["met"], true);
    assert!(number(&rows[0], "/figure") >= 0.02);
    let ran = run(&["run", "-c", "2", "-n", "20", "--slo", bounds, &url]);
    assert!(ran.stdout.contains("p50<1ms"), "{}", ran.stdout);
    let json = measured(&["-c", "2", "-n", "20", "--slo", "p50<60s", &url], &[0, 4]);
    assert_eq!(json["slo"][0]["met"], true);
    assert!(number(&json, "/slo/0/interval/low") >= 0.02, "{:#}", json["slo"]);
}

#[test]
fn an_expectation_that_is_missed_gives_exit_code_1() {
    let count = std::sync::atomic::AtomicU64::new(0);
    let server = Recorder::start(move |_| {
        let turn = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        response(if turn % 5 == 4 { 503 } else { 200 }, "", "hello")
    });
    let url = server.url("/");
    let json = measured(&["-c", "1", "-n", "20", "--expect-status", "200", &url], &[1, 4]);
    assert_eq!(outcomes(&json)[1..3], [16, 4]);
    // without an objective, a failed call is a figure, not a verdict on the server
    let json = measured(&["-c", "1", "-n", "20", &url], &[0, 4]);
    assert_eq!(outcomes(&json)[1..3], [16, 4]);
}

#[test]
fn the_requested_number_of_threads_runs() {
    let site = Site::start(&[]);
    for count in [1, 2, 3] {
        let threads = count.to_string();
        let json = measure(&["-c", "6", "-n", "60", "--threads", &threads, &site.url("/hw")]);
        assert_eq!(whole(&json, "/client/threads"), count);
        assert_eq!(outcomes(&json), [60, 60, 0, 0, 0, 0]);
    }
}
