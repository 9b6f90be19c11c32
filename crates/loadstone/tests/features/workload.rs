//! `loadstone workload files` and `sequence`: what is written, what is served, what is refused.

use crate::support::{Site, run};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Files below a folder, by their path within it.
fn below(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            found.extend(below(&entry.path()).iter().map(|inner| format!("{name}/{inner}")));
        } else {
            found.insert(name);
        }
    }
    found
}

fn body(site: &Site, path: &str) -> Vec<u8> {
    let address = site.url("/").replace("http://", "").replace('/', "");
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{path}");
    answer.split_off(end + 4)
}

#[test]
fn what_is_written_is_what_the_site_serves() {
    let folder = tempfile::tempdir().unwrap();
    for (set, count) in [
        ("surge-like:files=40", 40),
        ("specweb99-like:directories=1", 36),
        ("webbench-like:files=17", 17),
    ] {
        let out = folder.path().join(set);
        let ran = run(&["workload", "files", set, "--seed", "9", "-o", text(&out)]).expect(&[0]);
        assert!(ran.stderr.contains(&format!("loadstone: {count} files, ")), "{ran:#?}");
        let site = Site::start(&[("files", set), ("seed", "9")]);
        let files = below(&out);
        assert_eq!(files.len(), count);
        for file in files {
            let written = std::fs::read(out.join(&file)).unwrap();
            assert!(body(&site, &file) == written, "{set} {file}");
        }
    }
}

#[test]
fn the_seed_is_what_the_files_follow_from() {
    let folder = tempfile::tempdir().unwrap();
    let made = |seed: &str, name: &str| {
        let out = folder.path().join(name);
        let args = ["workload", "files", "webstone-like", "--seed", seed, "-q", "-o", text(&out)];
        assert_eq!(run(&args).expect(&[0]).stderr, "");
        std::fs::read(out.join("file5k.html")).unwrap()
    };
    let (one, again, two) = (made("1", "one"), made("1", "again"), made("2", "two"));
    assert!(one == again && one != two);
}

#[test]
fn a_list_is_run_to_its_end_without_a_failure() {
    let site = Site::start(&[("files", "surge-like:files=50")]);
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.txt");
    let args = ["workload", "sequence", "surge-like:files=50", &site.url("/"), "--requests", "300"];
    let ran = run(&[&args[..], &["-o", text(&list)]].concat()).expect(&[0]);
    assert!(ran.stderr.starts_with("loadstone: 300 requests in "), "{ran:#?}");
    let args = ["run", "--urls", text(&list), "--once", "-c", "3", "--json", "-"];
    let json = run(&args).expect(&[0, 4]).json();
    assert_eq!(json["status"], serde_json::json!({"200": 300}));
}

#[test]
fn the_presets_are_webmark_s_and_surge_s() {
    let webmark = run(&["workload", "sequence", "webmark"]).expect(&[0]);
    assert_eq!(webmark.stdout.lines().count(), 172_020);
    assert!(webmark.stdout.lines().all(|line| line.starts_with('/') && line.ends_with(".txt")));
    let surge = run(&["workload", "sequence", "surge", "--users", "7"]).expect(&[0]);
    assert_eq!(surge.stdout.split("\n\n").count(), 7);
    let page = surge.stdout.lines().find(|line| !line.starts_with(' ')).unwrap();
    assert!(page.contains(".txt think="), "{page}");
    assert!(surge.stdout.lines().any(|line| line.starts_with("    /")));
}

#[test]
fn sessions_are_httperf_s() {
    let site = Site::start(&[("files", "specweb99-like:directories=2")]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sessions.txt");
    let set = "specweb99-like:directories=2";
    let args = ["workload", "sequence", set, "--format", "sessions", "--requests", "200"];
    run(&[&args[..], &["-o", text(&file)]].concat()).expect(&[0]);
    let port = site.url("/").rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    let sessions = format!("10,0,{}", text(&file));
    let args = ["httperf", "--server", "127.0.0.1", "--port", &port, "--wsesslog", &sessions];
    let ran = run(&args).expect(&[0]);
    assert!(ran.stdout.contains("Total: connections 10 "), "{ran:#?}");
    assert!(ran.stdout.contains("Reply status: 1xx=0 2xx="), "{ran:#?}");
    assert!(ran.stdout.contains("3xx=0 4xx=0 5xx=0"), "{ran:#?}");
    let long = run(&["workload", "sequence", set, "--format", "sessions"]).expect(&[0]);
    assert!(
        long.stderr.contains("httperf takes 1000 at most: lower --requests"),
        "{}",
        long.stderr
    );
}

#[test]
fn what_cannot_be_made_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "kept").unwrap();
    let full = text(folder.path());
    let file = folder.path().join("mine");
    for (args, code, why) in [
        (vec!["files", "nope", "-o", "x"], 2, "no such file set; there are surge-like"),
        (vec!["files", "surge-like", "-o", full], 2, "is not empty; give a new folder"),
        (vec!["files", "surge-like", "-o", text(&file)], 5, "cannot write to "),
        (vec!["files", "surge-like"], 2, "--out <DIR>"),
        (vec!["sequence", "nope"], 2, "or one of webmark and surge"),
        (vec!["sequence", "webstone-like", "--users", "3"], 2, "--users is for surge-like alone"),
        (vec!["sequence", "webmark", "--off-times"], 2, "add --format sessions"),
        (
            vec!["sequence", "surge", "--format", "urls", "--users", "2"],
            2,
            "--users is for sessions",
        ),
        (vec!["sequence", "surge-like", "--requests", "9999999"], 2, "raise the top count"),
        (vec!["sequence", "surge-like", "--top-count", "99999999"], 2, "10000000 is the most"),
        (vec!["sequence", "surge-like:files=200000", "--top-count", "200000"], 2, "put in order"),
        (vec!["sequence", "webstone-like", "-o", "/no/x"], 5, "cannot write /no/x"),
    ] {
        let ran = run(&[&["workload"], &args[..]].concat()).expect(&[code]);
        assert!(ran.stderr.contains(why), "{args:?}: {ran:#?}");
        assert_eq!(ran.stdout, "");
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "kept");
}
