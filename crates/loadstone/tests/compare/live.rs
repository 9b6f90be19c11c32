//! Two targets measured in turns.

use crate::support::{Scripted, Site, free_port, run, text, whole};
use serde_json::Value;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Five blocks of short runs with one user. A count of calls ends each run, so that a median has
/// enough calls even on a busy machine.
const SHORT: [&str; 7] = ["compare", "-c", "1", "-n", "8", "--blocks", "5"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SHORT.iter().chain(more).copied().collect()
}

fn difference<'a>(json: &'a Value, figure: &str) -> &'a Value {
    let all = json["differences"].as_array().unwrap();
    all.iter().find(|one| one["figure"] == figure).unwrap()
}

/// 60 ms differs from 1 ms by more than the noise, even on a busy machine.
#[test]
fn a_slower_server_is_worse_and_the_gate_shuts() {
    let (quick, slow) = (Site::start(&[("delay", "1ms")]), Site::start(&[("delay", "60ms")]));
    let (quick, slow) =
        (format!("quick={}", quick.url("/hw")), format!("slow={}", slow.url("/hw")));
    let gate = ["--fail-if", "p50 +5%", "--fail-if", "throughput -3%", "--json", "-"];
    let json = run(&with(&[&gate[..], &[&quick, &slow]].concat())).expect(&[1, 4]).json();
    assert_eq!(text(&json, "/schema"), "loadstone.compare/1");
    assert_eq!(text(&json, "/before/label"), "quick");
    assert_eq!(text(&json, "/after/label"), "slow");
    assert_eq!(difference(&json, "p50")["judgement"], "worse", "{json:#}");
    assert_eq!(json["bounds"][0]["crossed"], true, "{json:#}");
    assert_eq!(json["bounds"].as_array().unwrap().len(), 2);
    // two runs of either side in each block, in the order drawn
    let order = json["order"].as_array().unwrap();
    assert_eq!(order.len(), 5);
    assert!(order.iter().all(|block| block == "ABBA" || block == "BAAB"), "{order:?}");
    for side in ["before", "after"] {
        assert_eq!(json[side]["runs"].as_array().unwrap().len(), 10);
        assert_eq!(whole(&json, &format!("/{side}/plan/load/users")), 1);
    }
}

#[test]
fn a_quicker_server_is_better_and_the_gate_stays_open() {
    let (slow, quick) = (Site::start(&[("delay", "60ms")]), Site::start(&[("delay", "1ms")]));
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("differences.csv");
    let (slow, quick) = (slow.url("/hw"), quick.url("/hw"));
    let page = folder.path().join("page.html");
    let (csv, page) = (csv.to_str().unwrap(), page.to_str().unwrap());
    let more = ["--fail-if", "p50 +5%", "--csv", csv, "--html", page, &slow, &quick];
    let ran = run(&with(&more)).expect(&[0, 4]);
    assert!(ran.stdout.starts_with("B is better than A: "), "{}", ran.stdout);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ran.stdout);
    assert!(ran.stdout.contains(&format!("A   {slow} · 10 runs")), "{}", ran.stdout);
    assert!(ran.stdout.contains("Noise floor, A against itself: "), "{}", ran.stdout);
    let rows = std::fs::read_to_string(csv).unwrap();
    let p50 = rows.lines().find(|row| row.starts_with("p50,")).unwrap();
    assert!(p50.ends_with(",better"), "{rows}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("B is better than A"), "{page}");
}

#[test]
fn incomparable_runs_are_refused_with_a_fix() {
    let found: Vec<String> = [
        &["compare", "http://127.0.0.1:1/"][..],
        &["compare", "--repeat", "3", "http://127.0.0.1:1/", "http://127.0.0.1:1/"],
        &["compare", "--blocks", "4", "http://127.0.0.1:1/", "http://127.0.0.1:1/"],
        &["compare", "--fail-if", "p99 -5%", "http://127.0.0.1:1/", "http://127.0.0.1:1/"],
        &["compare", "--hdr", "x", "http://127.0.0.1:1/", "http://127.0.0.1:1/"],
    ]
    .iter()
    .map(|args| run(args).expect(&[2]).stderr)
    .collect();
    for (found, expected) in found.iter().zip([
        "one URL needs two servers or several protocols",
        "--repeat: a comparison repeats in blocks; give --blocks",
        "--blocks 4: must be 5 to 1000 to show a difference",
        "did you mean +?",
        "--hdr is for single runs",
    ]) {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn plans_that_differ_are_refused_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |name: &str, users: u32| {
        let path = folder.path().join(name);
        let url = format!("http://127.0.0.1:{}/", free_port());
        let text = format!("version = 1\nurl = \"{url}\"\n[load]\nusers = {users}\n");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (few, many) = (plan("few.toml", 2), plan("many.toml", 20));
    let ran = run(&["compare", &few, &many]).expect(&[2]);
    let message = "the two did not get the same load, so a difference could be due to the load: \
                load.users: 2 and 20; --force compares them nevertheless";
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
    // with --force it continues, and finds no server at that port
    run(&["compare", "--force", &few, &many]).expect(&[3]);
}

#[test]
fn a_missing_server_is_reported_before_measuring() {
    let site = Site::start(&[]);
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    let ran = run(&["compare", &site.url("/hw"), &nobody]).expect(&[3]);
    assert!(ran.stderr.contains(&format!("no connection to {nobody}")), "{}", ran.stderr);
}

/// A server answers well at first and then only closes connections: the session ends with the
/// complete blocks, or reports that there are none.
#[test]
fn a_server_that_dies_ends_the_session() {
    let site = Site::start(&[("delay", "1ms")]);
    let connections = Arc::new(AtomicUsize::new(0));
    let seen = connections.clone();
    let dying = Scripted::start(move |mut stream, _| {
        let mut buffer = [0; 4_096];
        // the first call and the practice succeed
        if seen.fetch_add(1, Ordering::Relaxed) > 3 {
            return;
        }
        while stream.read(&mut buffer).is_ok_and(|read| read > 0) {
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            if stream.write_all(response).is_err() {
                return;
            }
        }
    });
    let dying = format!("dying=http://{}/", dying.address);
    let ran = run(&with(&[&site.url("/hw"), &dying])).expect(&[1]);
    let text = format!("{}{}", ran.stdout, ran.stderr);
    assert!(text.contains("B (dying) fails every call"), "{text}");
}

#[test]
fn the_plans_of_both_are_printed() {
    let ran = run(&with(&["--print-plan", "old=http://127.0.0.1:1/a", "new=http://127.0.0.1:1/b"]));
    let ran = ran.expect(&[0]);
    assert!(ran.stdout.contains("# old: 5 blocks of four runs\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("http://127.0.0.1:1/b"), "{}", ran.stdout);
}
