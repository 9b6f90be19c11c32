//! `loadstone workload files` and `sequence`: files written, files served, refusals.

use crate::support::{Site, run, run_with_input};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Lists the files below a folder by relative path.
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
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    let end = response.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    assert!(response.starts_with(b"HTTP/1.1 200 "), "{path}");
    response.split_off(end + 4)
}

#[test]
fn written_files_equal_the_served_ones() {
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
fn the_files_follow_from_the_seed() {
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
fn httperf_accepts_the_generated_sessions() {
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
fn impossible_file_sets_are_refused_with_a_fix() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "kept").unwrap();
    let full = text(folder.path());
    let file = folder.path().join("mine");
    for (args, code, why) in [
        (vec!["files", "nope", "-o", "x"], 2, "no such file set; choose from surge-like"),
        (vec!["files", "surge-like", "-o", full], 2, "is not empty; give a new folder"),
        (vec!["files", "surge-like", "-o", text(&file)], 5, "cannot write to "),
        (vec!["files", "surge-like"], 2, "--out <DIR>"),
        (vec!["sequence", "nope"], 2, "or one of webmark and surge"),
        (vec!["sequence", "webstone-like", "--users", "3"], 2, "--users is for surge-like only"),
        (vec!["sequence", "webmark", "--off-times"], 2, "add --format sessions"),
        (
            vec!["sequence", "surge", "--format", "urls", "--users", "2"],
            2,
            "--users is for sessions",
        ),
        (vec!["sequence", "surge-like", "--requests", "9999999"], 2, "raise the top count"),
        (vec!["sequence", "surge-like", "--top-count", "99999999"], 2, "the maximum is 10000000"),
        (vec!["sequence", "surge-like:files=200000", "--top-count", "200000"], 2, "put in order"),
        (vec!["sequence", "webstone-like", "-o", "/no/x"], 5, "cannot write /no/x"),
    ] {
        let ran = run(&[&["workload"], &args[..]].concat()).expect(&[code]);
        assert!(ran.stderr.contains(why), "{args:?}: {ran:#?}");
        assert_eq!(ran.stdout, "");
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "kept");
}

/// Log in the combined format: three clients; the second visits twice, with a pause between.
const LOG: &str = "\
10.0.0.1 - - [10/Oct/2000:13:55:36 +0000] \"GET /hw HTTP/1.1\" 200 11 \"-\" \"a\"
10.0.0.2 - - [10/Oct/2000:13:55:36 +0000] \"HEAD /bytes/9?x=1 HTTP/1.1\" 200 9 \"-\" \"a\"
10.0.0.1 - - [10/Oct/2000:13:55:37 +0000] \"GET /bytes/9?x=1 HTTP/1.1\" 200 9 \"-\" \"a\"
10.0.0.1 - - [10/Oct/2000:13:55:37 +0000] \"POST /echo HTTP/1.1\" 200 9 \"-\" \"a\"
10.0.0.1 - - [10/Oct/2000:13:55:38 +0000] \"\\x16\\x03\" 400 0 \"-\" \"-\"
10.0.0.2 - - [10/Oct/2000:13:55:46 +0000] \"GET /hw HTTP/1.1\" 404 9 \"-\" \"a\"
";

#[test]
fn a_log_is_replayed_at_its_times() {
    let folder = tempfile::tempdir().unwrap();
    let (log, out) = (folder.path().join("access.log"), folder.path().join("replay.toml"));
    std::fs::write(&log, LOG).unwrap();
    let asked = |by: &str, pause: &str| {
        let served = folder.path().join(format!("{by}{pause}.log"));
        let site = Site::start(&[("log", text(&served))]);
        let args = ["workload", "import", text(&log), &site.url("/"), "--by", by, "--speed", "20"];
        let rest = ["--pause", pause, "-o", text(&out)];
        let ran = run(&[&args[..], &rest].concat()).expect(&[0]);
        assert_eq!(
            ran.stderr,
            "loadstone: 4 requests for 3 targets in 500 ms; 1 skipped for their method; 1 line \
             is not a request (the first is line 5: no request that can be sent)\n"
        );
        let calls = folder.path().join("calls.txt");
        let args = ["run", text(&out), "--quiet", "--json", "-", "--log", text(&calls)];
        let json = run(&args).expect(&[0, 4]).json();
        assert_eq!(json["status"], serde_json::json!({"200": 4}), "{json}");
        drop(site);
        // the site writes its log when a connection is idle: in any order
        let served = std::fs::read_to_string(served).unwrap();
        let request = |line: &str| line.split('"').nth(1).unwrap().to_owned();
        let requests: BTreeSet<String> = served.lines().map(request).collect();
        assert_eq!(
            requests.into_iter().collect::<Vec<String>>(),
            ["GET /bytes/9?x=1 HTTP/1.1", "GET /hw HTTP/1.1", "HEAD /bytes/9?x=1 HTTP/1.1"]
        );
        let calls = std::fs::read_to_string(calls).unwrap();
        let call = |line: &str| {
            let columns: Vec<&str> = line.split('\t').collect();
            (columns[1].to_owned(), columns[9].to_owned())
        };
        (calls.lines().skip(1).map(call).collect::<Vec<(String, String)>>(), json.to_string())
    };
    let (calls, json) = asked("requests", "30m");
    let due = ["0.000000000", "0.025000000", "0.050000000", "0.500000000"];
    let rows = ["0", "1", "2", "0"];
    let wanted: Vec<_> = due.iter().zip(rows).map(|(d, r)| (d.to_string(), r.to_owned())).collect();
    assert_eq!(calls, wanted);
    assert!(json.contains("open loop by a trace over 500 ms, 4 calls"), "{json}");
    let (_, json) = asked("visits", "5s");
    assert!(json.contains("sessions by a trace over 500 ms"), "{json}");
}

#[test]
fn a_log_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    std::fs::write(&log, LOG).unwrap();
    let ran = run(&["workload", "describe", text(&log), "--pause", "5s"]).expect(&[0]);
    assert_eq!(
        ran.stdout,
        "\
Requests    5 for 4 targets by 2 clients in 10.0 s
Load        open: visits are short, and new ones arrive regardless of the server; run --rate, or import --by requests
Visits      3 of 1.7 requests, the mean (median 1, longest 3), separated by pauses above 5.00 s
Arrivals    0.222/s, 2/s in the busiest second; variance over mean 2.00 (Poisson 1)
Popularity  the most popular tenth of the targets has 40.0 % of the requests
Statuses    2xx 4, 4xx 1
Sizes       p10 9 B, p50 9 B, p90 11 B, p99 11 B
"
    );
    assert!(ran.stderr.contains("1 line is not a request (the first is line 5"), "{ran:#?}");
}

#[test]
fn an_invalid_log_is_refused() {
    for (args, input, why) in [
        (vec!["describe", "/no/log"], "", "cannot read \"/no/log\": No such file"),
        (vec!["describe", "-"], "", "- has no request; it is empty"),
        (
            vec!["describe", "-"],
            "rubbish\n",
            "1 line is not a request (the first is line 1: no [time])",
        ),
        (vec!["import", "-", "http://h/", "--methods", "PUT"], LOG, "5 skipped for their method"),
        (vec!["import", "-", "http://h/", "--speed", "0"], LOG, "give a number above 0"),
        (vec!["import", "-", "h:0"], LOG, "BASE-URL"),
        (vec!["sequence", "surge", "--format", "plan"], "", "a plan needs a server"),
    ] {
        let ran = run_with_input(&[&["workload"], &args[..]].concat(), input.as_bytes());
        let ran = ran.expect(&[2]);
        assert!(ran.stderr.contains(why), "{args:?}: {ran:#?}");
    }
}

#[test]
fn a_plan_of_surge_s_users_runs() {
    let set = "surge-like:files=30";
    let site = Site::start(&[("files", set)]);
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("surge.toml");
    let args = ["workload", "sequence", set, &site.url("/"), "--top-count", "40", "--users", "6"];
    let rest = ["--format", "plan", "-o", text(&plan)];
    let ran = run(&[&args[..], &rest].concat()).expect(&[0]);
    let requests: u64 = ran.stderr.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(ran.stderr.ends_with(" steps, 6 users\n"), "{ran:#?}");
    let json = run(&["run", text(&plan), "--json", "-"]).expect(&[0, 4]).json();
    assert_eq!(json["status"], serde_json::json!({ "200": requests }));
}

/// HAR of a page, its resources from its own server and from another, and a form, as a browser
/// records them.
const HAR: &str = r#"{"log":{"version":"1.2","entries":[
{"startedDateTime":"2026-11-24T09:00:00.000Z","request":{"method":"GET","url":"https://shop.invalid/hw",
 "headers":[{"name":"Accept","value":"text/html"},{"name":"Cookie","value":"id=secret"},{"name":"Host","value":"shop.invalid"}]}},
{"startedDateTime":"2026-11-24T09:00:00.100Z","request":{"method":"GET","url":"https://track.invalid/x"}},
{"startedDateTime":"2026-11-24T09:00:02.000Z","request":{"method":"POST","url":"https://shop.invalid/echo",
 "headers":[{"name":"Content-Type","value":"text/plain"}],"postData":{"mimeType":"text/plain","text":"hello"}},
 "response":{"content":{"text":"hello"}}}]}}"#;

#[test]
fn a_recorded_visit_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let (har, out) = (folder.path().join("shop.har"), folder.path().join("visit.toml"));
    std::fs::write(&har, HAR).unwrap();
    let site = Site::start(&[]);
    let args = ["workload", "import", text(&har), &site.url("/"), "-o", text(&out)];
    let ran = run(&[&args[..], &["--speed", "100"]].concat()).expect(&[0]);
    assert_eq!(
        ran.stderr,
        "loadstone: 2 requests for 2 targets\nloadstone:   left out: 1 for (only their cookies and logins; \
         --logins keeps them)\nloadstone:   left out: 1 for another server, track.invalid; --hosts \
         track.invalid includes it\n"
    );
    let plan = std::fs::read_to_string(&out).unwrap();
    assert!(!plan.contains("secret") && plan.contains("\"Accept: text/html\""), "{plan}");
    // eight visits of two requests each
    let run_args = ["run", text(&out), "-c", "2", "-n", "8", "--json", "-"];
    let json = run(&run_args).expect(&[0, 4]).json();
    assert_eq!(json["status"], serde_json::json!({"200": 16}), "{json}");
    // `init` makes the same plan, for the recorded server
    let first = folder.path().join("first.toml");
    let init = ["init", text(&har), "-o", text(&first)];
    let wrote = format!("wrote {0}; next: loadstone run {0}", first.display());
    assert!(run(&init).expect(&[0]).stderr.contains(&wrote));
    assert!(std::fs::read_to_string(&first).unwrap().contains("https://shop.invalid/echo"));
    assert!(run(&init).expect(&[2]).stderr.contains("exists; give another file with -o"));
    let missing = run(&["init", "nowhere.har", "-o", "-"]).expect(&[2]).stderr;
    assert!(missing.contains("nowhere.har") && missing.contains("No such file"), "{missing}");
    let ran = run(&[&args[..], &["--by", "requests", "--logins"]].concat()).expect(&[0]);
    let plan = std::fs::read_to_string(&out).unwrap();
    assert!(
        plan.contains("at = [\"0s\", \"2s\"]") && plan.contains("id=secret"),
        "{ran:#?} {plan}"
    );
}

#[test]
fn commands_and_descriptions_become_plans() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("plan.toml");
    let commands = format!(
        "#!/bin/sh\ncurl -s '{}' -H 'A: 1'\ncurl {} \\\n  --json '{{\"a\":1}}'\n",
        site.url("/hw"),
        site.url("/echo")
    );
    let openapi = format!(
        "openapi: 3.0.0\nservers: [{{url: '{}'}}]\npaths:\n  /bytes/{{n}}:\n    get:\n      \
         parameters: [{{name: n, in: path, required: true, example: 9}}]\n  /echo: {{post: {{}}}}\n",
        site.url("/")
    );
    for (input, found, calls) in [
        (commands, "2 requests for 2 targets", "4"),
        (openapi, "1 request for 1 target\nloadstone:   left out: 1 for its method POST", "3"),
    ] {
        let args = ["workload", "import", "-", "-o", text(&out)];
        let ran = run_with_input(&args, input.as_bytes()).expect(&[0]);
        assert_eq!(ran.stderr, format!("loadstone: {found}\n"));
        let json = run(&["run", text(&out), "-n", calls, "--json", "-"]).expect(&[0, 4]).json();
        assert_eq!(json["status"]["200"].to_string(), calls, "{json}");
    }
    let command = format!("curl -X PUT -d hello {} -k --compressed", site.url("/echo"));
    let json = run(&["run", "--curl", &command, "-n", "5", "--json", "-"]).expect(&[0, 4]).json();
    assert_eq!(json["status"], serde_json::json!({"200": 5}), "{json}");
}

#[test]
fn an_invalid_recording_is_refused() {
    for (args, input, why) in [
        (vec!["import", "-"], LOG, "an access log does not name its server"),
        (vec!["import", "-", "--logins", "http://h/"], LOG, "--logins is for a HAR file"),
        (vec!["import", "-", "--from", "har"], "{}", "it is not a HAR: it has no log with entries"),
        (vec!["import", "-"], "curl h -Z", "command 1: curl's option \"-Z\" is not known"),
        (vec!["import", "-"], "curl h | sh", "command 1: it has '|' outside of quotes"),
        (vec!["import", "-", "--by", "visits"], "curl h", "--by is for a file with times"),
        (vec!["import", "-"], "openapi: 3.0.0", "it names no server"),
        (vec!["import", "-", "http://h/"], "openapi: 3.0.0", "it has no usable request"),
    ] {
        let ran = run_with_input(&[&["workload"], &args[..]].concat(), input.as_bytes());
        let ran = ran.expect(&[2]);
        assert!(ran.stderr.contains(why), "{args:?}: {ran:#?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("unknown.yaml");
    std::fs::write(&file, "requests:\n  - /a\n").unwrap();
    let ran = run(&["workload", "import", text(&file), "http://h/"]).expect(&[2]);
    assert!(ran.stderr.contains("its format is not recognized"), "{ran:#?}");
    let quoting = "openapi: 3.0.0\ninfo:\n  description: |\n    import http from 'k6/http';\n";
    std::fs::write(&file, quoting).unwrap();
    let ran = run(&["workload", "import", text(&file), "http://h/"]).expect(&[2]);
    assert!(ran.stderr.contains("it has no usable request"), "{ran:#?}");
    let ran = run(&["workload", "import", "one.har", "two.har"]).expect(&[2]);
    assert!(ran.stderr.contains("give a second recording with --second"));
    let ran = run(&["run", "--curl", "curl http://h/", "http://h/"]).expect(&[2]);
    assert!(ran.stderr.contains("--curl names the URL itself"), "{ran:#?}");
    let ran = run(&["run", "--curl", "curl http://h/ -x http://p"]).expect(&[2]);
    assert!(ran.stderr.contains("give --proxy in place of curl's option -x"), "{ran:#?}");
}

/// The output of a model fits that model as files, as a list and as sessions; the output of another
/// model does not.
#[test]
fn files_and_sequences_are_held_against_their_model() {
    let folder = tempfile::tempdir().unwrap();
    let (out, list) = (folder.path().join("www"), folder.path().join("list.txt"));
    let set = "surge-like:files=1000";
    run(&["workload", "files", set, "--seed", "3", "-o", text(&out)]).expect(&[0]);
    let (page, json) = (folder.path().join("fit.html"), folder.path().join("fit.json"));
    let results = ["--html", text(&page), "--json", text(&json)];
    let verify = |what: &Path, model: &str, code: i32| {
        let args = ["workload", "verify", text(what), "--model", model, "--seed", "3"];
        run(&[&args[..], &results].concat()).expect(&[code]).stdout
    };
    let found = verify(&out, set, 0);
    assert!(
        found.contains("sizes of files: fits") && found.contains("Anderson-Darling:"),
        "{found}"
    );
    let found = verify(&out, "webbench-like:files=1000", 1);
    assert!(
        found.contains(": no fit to webbench-like") && found.contains("have a size"),
        "{found}"
    );

    let sequence = ["workload", "sequence", set, "--seed", "3", "-o", text(&list)];
    run(&sequence).expect(&[0]);
    let found = verify(&list, set, 0);
    for name in ["requested sizes", "popularity", "stack distances"] {
        assert!(found.contains(&format!("{name}: fits")), "{found}");
    }
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!((&record["kind"], &record["fits"]), (&"sequence".into(), &true.into()));
    assert_eq!(record["plots"].as_array().unwrap().len(), 3);
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("Stack distances") && page.contains("<svg"), "no plot in the page");

    let sessions = ["--format", "sessions", "--off-times", "--users", "20"];
    run(&[&sequence[..], &sessions].concat()).expect(&[0]);
    let found = verify(&list, set, 0);
    assert!(
        found.contains("OFF times: fits") && found.contains("stack distances: fits"),
        "{found}"
    );
}

#[test]
fn input_without_a_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let verify = |what: &str, model: &str| {
        let ran = run(&["workload", "verify", what, "--model", model]).expect(&[2]);
        ran.stderr
    };
    for (what, why) in [
        (path("rubbish", "rubbish\n"), "line 1: \"rubbish\" is not a log line, a URL or a path"),
        (path("weights", "/a weight=3\n"), "line 1: a list with weights has no order"),
        (path("think", "/a think=soon\n"), "line 1: \"think=soon\" is not a time"),
        (path("nothing", "# no line\n"), "it has no request"),
        (text(&empty).to_owned(), "holds no file"),
        ("nowhere".to_owned(), "cannot read \"nowhere\""),
    ] {
        let found = verify(&what, "surge-like");
        assert!(found.contains(why), "{found}");
    }
    assert!(verify("nowhere", "spec").contains("no such file set"));
    let asked = path("asked", &"/surge-like/0.html\n".repeat(2_000));
    let args = ["workload", "verify", &asked, "--model", "surge-like", "--top-count", "20000000"];
    let found = run(&args).expect(&[2]).stderr;
    assert!(
        found.contains("--top-count 20000000: ") && found.contains("lower the top count"),
        "{found}"
    );
}

/// An anonymized log is the same load: described, imported and verified.
#[test]
fn an_anonymized_log_gives_the_same_load() {
    let line = |client: u32, path: &str, second: u32| {
        let time = format!("24/Nov/2026:10:{:02}:{:02} +0000", second / 60, second % 60);
        format!("192.0.2.{client} - fred [{time}] \"GET {path} HTTP/1.1\" 200 9 \"-\" \"Fox\"\n")
    };
    let paths = ["/user/4711?token=sesame", "/hw", "/user/4712"];
    let log: String = (0..300).map(|row| line(row % 7, paths[row as usize % 3], row * 2)).collect();
    let args = ["workload", "anonymise", "-"];
    let ran = run_with_input(&args, format!("{log}rubbish\n").as_bytes()).expect(&[0]);
    for secret in ["192.0.2", "fred", "/4711", "sesame", "Fox"] {
        assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{secret}: {ran:#?}");
    }
    for found in ["300 lines", "100 query values", "200 path segments", "hw, user", "1 line is no"]
    {
        assert!(ran.stderr.contains(found), "{found}: {}", ran.stderr);
    }
    let described = |log: &str| {
        run_with_input(&["workload", "describe", "-"], log.as_bytes()).expect(&[0]).stdout
    };
    assert_eq!(described(&log), described(&ran.stdout));
    // the key is discarded, unless it is given
    let again = run_with_input(&args, log.as_bytes()).expect(&[0]);
    assert_ne!(ran.stdout, again.stdout);
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, [7; 32]).unwrap();
    let keyed = [&args[..], &["--key-file", text(&key), "--paths", "all", "-q"]].concat();
    let first = run_with_input(&keyed, log.as_bytes()).expect(&[0]);
    assert_eq!(first.stdout, run_with_input(&keyed, log.as_bytes()).expect(&[0]).stdout);
    assert!(first.stderr.is_empty() && !first.stdout.contains("user"), "{first:#?}");
    // the log is not overwritten, regardless of the name in the command
    let (kept, link) = (folder.path().join("access.log"), folder.path().join("link"));
    std::fs::write(&kept, &log).unwrap();
    std::os::unix::fs::symlink(&kept, &link).unwrap();
    for output in [&kept, &link] {
        let args = ["workload", "anonymise", text(&kept), "-o", text(output)];
        let ran = run(&args).expect(&[2]);
        assert!(ran.stderr.contains("is the log itself"), "{ran:#?}");
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), log);
    }
    let over_key = [&keyed[..], &["-o", text(&key)]].concat();
    let ran = run_with_input(&over_key, log.as_bytes()).expect(&[2]);
    assert!(ran.stderr.contains("is the key, which would be lost"), "{ran:#?}");
    assert_eq!(std::fs::read(&key).unwrap(), [7; 32]);
    // the existing file stays until the new one is complete
    let shared = folder.path().join("shared.log");
    std::fs::write(&shared, "yesterday's").unwrap();
    let to_file = [&args[..], &["-o", text(&shared)]].concat();
    run_with_input(&to_file, b"rubbish\n").expect(&[2]);
    assert_eq!(std::fs::read_to_string(&shared).unwrap(), "yesterday's");
    run_with_input(&to_file, log.as_bytes()).expect(&[0]);
    assert_eq!(described(&std::fs::read_to_string(&shared).unwrap()), described(&log));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "nothing is left beside it");
    std::fs::write(&key, "short").unwrap();
    let short = run_with_input(&keyed, log.as_bytes()).expect(&[2]);
    assert!(short.stderr.contains("holds 5 bytes; a key that cannot be guessed"), "{short:#?}");
    let none = run_with_input(&args, b"rubbish\n").expect(&[2]);
    assert!(none.stderr.contains("- has no request; 1 line is not a request"), "{none:#?}");
}

/// WebStone's figures are consistent: users without pauses are always being served.
#[test]
fn a_run_is_printed_with_the_figures_of_webstone_and_webbench() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let site = Site::start(&[("files", "webstone-like")]);
    let url = site.url("/");
    let made = ["run", &*url, "--workload", "webstone-like:clients=4", "-d", "2s", "-q", "--json"];
    run(&[&made[..], &[text(&json)]].concat()).expect(&[0, 4]);
    let printed = run(&["report", text(&json), "--as", "webstone"]).expect(&[0]).stdout;
    let figure = |name: &str| -> f64 {
        let line = printed.lines().find(|line| line.starts_with(name)).unwrap();
        line[32..].split_whitespace().next().unwrap().parse().unwrap()
    };
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let calls = record["outcomes"]["succeeded"].as_f64().unwrap();
    assert_eq!((figure("Total number of clients:"), figure("Test time:")), (4.0, 2.0));
    assert_eq!(figure("Total number of pages read:"), calls);
    assert_eq!(figure("Server connection rate:"), calls / 2.0);
    assert_eq!(figure("Error Level:"), 0.0);
    // whole seconds of the sum: up to half a client is lost in two seconds; calls that end later
    // count in full
    let served = figure("Little's Load Factor:");
    assert!(served > 3.0 && served <= 6.0, "{printed}");
    let scores = run(&["report", text(&json), "--as", "webbench"]).expect(&[0]).stdout;
    assert!(scores.lines().nth(1).unwrap().trim_start().starts_with("4 "), "{scores}");
    // in an open load these figures would mean something else
    run(&["run", &url, "--rate", "50/s", "-n", "20", "-q", "--json", text(&json)])
        .expect(&[0, 1, 4]);
    let refused = run(&["report", text(&json), "--as", "webstone"]).expect(&[2]).stderr;
    assert!(
        refused.contains("its clients wait for their responses: make the run with -c"),
        "{refused}"
    );
}

/// All operations against the built-in site: the mix, the pages of another process, the log of POST
/// requests, two iterations, and the score.
#[test]
fn a_run_after_specweb99_has_a_score() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let set = "specweb99-like:connections=20";
    let site = Site::start(&[("files", set), ("seed", "3")]);
    let url = site.url("/");
    let args = ["run", &*url, "--workload", set, "--seed", "3", "-d", "4s", "--warmup", "1s"];
    let more = ["--repeat", "2", "--store", "none", "--json", text(&json)];
    let ran = run(&[&args[..], &more].concat()).expect(&[0, 4]);
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(record["failures"], serde_json::json!([]), "{record:#}");
    let score = &record["specweb99"];
    assert_eq!(score["connections"], 20);
    let conforming = score["conforming"].as_u64().unwrap();
    assert!(conforming >= 10, "a loaded machine may spoil some: {score}");
    assert!(ran.stdout.contains("\nScore         "), "{}", ran.stdout);
    let iterations = record["runs"].as_array().unwrap().iter();
    let each: Vec<u64> = iterations.map(|run| run["conforming"].as_u64().unwrap()).collect();
    assert_eq!(each.iter().min(), Some(&conforming));
    let posts = &score["posts"];
    assert!(posts["answered"].as_u64().unwrap() > 0, "{posts}");
    assert_eq!((&posts["missing"], &posts["unknown"]), (&0.into(), &0.into()), "{posts}");
    // the line rate allows 3.28 operations a second
    let rate = score["operations_per_s"].as_f64().unwrap();
    assert!((1.5..5.0).contains(&rate), "{rate}");
    let named = record["per_url"].as_array().unwrap().iter();
    let named: Vec<&str> = named.filter_map(|row| row["name"].as_str()).collect();
    for operation in ["static GET", "dynamic GET", "custom ad GET", "POST"] {
        assert!(named.contains(&operation), "{named:?}");
    }
    // the record reports the same again
    let again = run(&["report", text(&json)]).expect(&[0]);
    assert!(again.stdout.contains("\nScore         "), "{}", again.stdout);
}

/// The CGI process serves the same page as this process.
#[test]
fn the_cgi_page_is_the_dynamic_page() {
    let site = Site::start(&[("files", "specweb99-like:directories=2"), ("seed", "3")]);
    let file = "?/file_set/dir00001/class2_0";
    let page = |path: &str| {
        let page = body(&site, &format!("{path}{file}"));
        String::from_utf8(page).unwrap().replace("specweb99-cgi", "specweb99")
    };
    let own = page("specweb99");
    assert!(own.contains("<p>QUERY_STRING = /file_set/dir00001/class2_0\n"), "{own}");
    assert_eq!(own, page("specweb99-cgi"));
    // run directly, the program explains its purpose
    let ran = run(&["workload", "cgi", "specweb99-like"]).expect(&[2]);
    assert!(ran.stderr.contains("this program is run by a web server"), "{ran:#?}");
}

#[test]
fn options_that_conflict_with_specweb99_are_refused() {
    let site = Site::start(&[]);
    let url = site.url("/");
    for (more, why) in [
        (&["-n", "10"][..], "cannot be used with -n: its connections are judged over a duration"),
        (&["--close", "-d", "1s"], "cannot be used with --close or --calls"),
        (&["--rate", "10/s"], "simulates users who wait for their pages"),
        (&["--follow"], "each operation has one response"),
    ] {
        let args = ["run", &*url, "--workload", "specweb99-like:connections=5"];
        let ran = run(&[&args[..], more].concat()).expect(&[2]);
        assert!(ran.stderr.contains(why), "{more:?}: {}", ran.stderr);
    }
    let args = ["run", &*url, "--workload", "specweb99-like:connections=5", "-d", "1s"];
    let ran = run(&args).expect(&[1]);
    assert!(ran.stderr.contains("the dynamic pages of specweb99-like are missing"), "{ran:#?}");
}
