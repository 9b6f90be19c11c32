use super::*;
use std::collections::BTreeMap;

type Files = BTreeMap<&'static str, String>;

fn report(times: [f64; 4], causes: &str) -> String {
    let [p50, p90, p99, p999] = times;
    let times = format!(r#"{{"p50": {p50}, "p90": {p90}, "p99": {p99}, "p99.9": {p999}}}"#);
    format!(
        r#"{{"verdict": {{"causes": [{causes}]}},
            "outcomes": {{"failed": 0, "timed_out": 0, "dropped": 0, "abandoned": 0}},
            "response_time_s": {times}, "service_time_s": {times}}}"#
    )
}

fn reference([p50, p90, p99, p999]: [f64; 4]) -> String {
    format!(
        "sent 10000 of 10000, answered 10000\n\
         latency from due time        p50 {p50} p90 {p90} p99 {p99} p99.9 {p999} max 510.00 ms (n 10000)\n\
         latency from send            p50 10.00 p90 10.1 p99 11 p99.9 12 max 13 ms (n 10000)\n\
         send later than due          p50 0.00 p90 0.01 p99 0.20 p99.9 1 max 2 ms (n 10000)\n"
    )
}

fn files() -> Files {
    let server = "late n 9000 p50_us 2 p99_us 40 max_us 900 freeze_over_ms 0.1\n".to_owned();
    let wait = r#"{"id": "wait"}"#;
    Files::from([
        ("reference.txt", reference([10.0, 273.0, 495.0, 509.0])),
        ("reference-64.txt", reference([10.0, 340.0, 495.0, 509.0])),
        ("ours.json", report([0.01, 0.274, 0.495, 0.509], "")),
        ("ours-64.json", report([0.01, 0.341, 0.495, 0.509], wait)),
        ("ours-closed.json", report([0.01, 0.0101, 0.011, 0.3], "")),
        ("reference.server", server.clone()),
        ("reference-64.server", server.clone()),
        ("ours.server", server.clone()),
        ("ours-64.server", server),
    ])
}

fn judge(files: &Files) -> Judgement {
    let read = |name: &str| files.get(name).cloned().context(name.to_owned());
    Round::read(read).unwrap().judge()
}

#[test]
fn a_true_round_agrees() {
    assert_eq!(judge(&files()), Judgement::Right);
}

#[test]
fn one_wrong_quantile_is_enough() {
    for (file, times) in [
        ("ours.json", [0.01, 0.0103, 0.495, 0.509]),
        ("ours.json", [0.0106, 0.273, 0.495, 0.509]),
        ("ours.json", [0.01, 0.273, 0.495, 0.535]),
        ("ours-64.json", [0.01, 0.27, 0.495, 0.509]),
    ] {
        let mut files = files();
        files.insert(file, report(times, r#"{"id": "wait"}"#));
        let Judgement::Wrong(why) = judge(&files) else { panic!("{file} {times:?}") };
        assert_eq!(why.len(), 1, "{why:?}");
    }
}

#[test]
fn the_small_pool_must_be_reported() {
    let mut files = files();
    files.insert("ours-64.json", report([0.01, 0.341, 0.495, 0.509], ""));
    let Judgement::Wrong(why) = judge(&files) else { panic!() };
    assert!(why[0].contains("wait"), "{why:?}");
}

#[test]
fn dropped_calls_are_wrong() {
    let mut files = files();
    let dropping = files["ours.json"].replace(r#""dropped": 0"#, r#""dropped": 3"#);
    files.insert("ours.json", dropping);
    assert_eq!(judge(&files), Judgement::Wrong(vec!["the open load had 3 dropped".to_owned()]));
}

#[test]
fn a_late_server_proves_nothing_even_when_the_times_differ() {
    for log in [
        "late n 9000 p50_us 200 p99_us 400 max_us 900 freeze_over_ms 0.1",
        "late n 9000 p50_us 2 p99_us 40000 max_us 90000 freeze_over_ms 0.1",
        "late n 9000 p50_us 2 p99_us 40 max_us 900 freeze_over_ms 30.0",
    ] {
        let mut files = files();
        files.insert("ours.json", report([0.02, 0.3, 0.5, 0.6], ""));
        files.insert("ours.server", log.to_owned());
        assert!(matches!(judge(&files), Judgement::Unfit(_)), "{log}");
    }
    let mut files = files();
    let late = files["reference.txt"].replace("p99 0.20", "p99 4.20");
    files.insert("reference.txt", late);
    assert!(matches!(judge(&files), Judgement::Unfit(_)));
}

#[test]
fn malformed_files_are_errors() {
    for (name, text) in [("ours.server", "none"), ("ours.json", "{}"), ("reference.txt", "killed")]
    {
        let mut files = files();
        files.insert(name, text.to_owned());
        let read = |name: &str| files.get(name).cloned().context(name.to_owned());
        assert!(Round::read(read).is_err(), "{name}");
    }
}

#[test]
fn the_table_shows_milliseconds() {
    let files = files();
    let read = |name: &str| files.get(name).cloned().context(name.to_owned());
    let table = Round::read(read).unwrap().table();
    assert!(table.contains("273.00") && table.contains("341.00"), "{table}");
    assert_eq!(table.lines().count(), 6);
}
