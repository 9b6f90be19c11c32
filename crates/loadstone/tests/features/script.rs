//! `run --script`: wrk's Lua interface as the source of a native run's requests.
#![cfg(feature = "lua")]

use crate::support::http::Recorder;
use crate::support::{Ran, measure, run, run_with_input};
use std::path::PathBuf;

fn written(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("native-{name}.lua"));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const WALK: &str = "
local number = 0
function init(args) step = tonumber(args[1]) print(args[0] .. ' ' .. wrk.method) end
function request() number = number + step return wrk.format(nil, '/' .. number) end
function response(status, headers, body) last = status .. ' ' .. body end
function done(summary, latency, requests)
  print(summary.requests .. ' done, ' .. tostring(latency:percentile(50) > 0) .. ' ' .. #requests)
end";

#[test]
fn a_script_makes_the_requests() {
    let server = Recorder::plain();
    let (path, url) = (written("walk", WALK), server.url("/start"));
    let line = ["run", &url, "--script", &path, "-c", "1", "-n", "4", "--full", "--", "5"];
    let ran = run(&line).expect(&[0, 4]);
    let asked: Vec<String> = server.all().iter().map(|ask| ask.target().to_owned()).collect();
    // the plain call goes first; a script's first text is made once more, to be looked at
    assert_eq!(asked, ["/start", "/10", "/15", "/20", "/25"]);
    assert!(ran.stdout.starts_with(&format!("{url} GET\n")), "{ran:#?}");
    assert!(ran.stdout.ends_with("\n4 done, true 1\n"), "{ran:#?}");
    assert!(ran.stdout.contains("4 succeeded"), "{ran:#?}");
    let last = server.all().pop().unwrap();
    assert!(last.field("user-agent").unwrap().starts_with("loadstone/"), "{last:?}");
}

#[test]
fn it_finds_the_request_of_the_command_line() {
    let server = Recorder::plain();
    let path = written("plain", "wrk.headers['X-Two'] = wrk.headers['X-One'] .. '2'");
    let url = server.url("/a?b=c");
    let line = [
        "run", &url, "--script", &path, "-n", "2", "-c", "1", "--body", "x=1", "-H", "X-One: 1",
        "--user", "u:p", "-q",
    ];
    run(&line).expect(&[0, 4]);
    let all = server.all();
    assert_eq!(all.len(), 3);
    for ask in &all[1..] {
        assert_eq!(ask.line, "POST /a?b=c HTTP/1.1");
        assert_eq!(
            (ask.field("x-two"), ask.field("authorization")),
            (Some("12"), Some("Basic dTpw"))
        );
        assert_eq!(ask.field("content-length"), Some("3"));
    }
}

#[test]
fn json_has_standard_output_for_itself() {
    let server = Recorder::plain();
    let path = written("json", WALK);
    let url = server.url("/");
    let line = [&url, "--script", &path, "--rate", "100/s", "-n", "5", "--", "1"];
    let json = measure(&line);
    assert_eq!(json["status"], serde_json::json!({"200": 5}));
}

#[test]
fn a_plan_holds_its_script() {
    let server = Recorder::plain();
    let url = server.url("/");
    let line = ["run", &url, "--script", "-", "-n", "3", "-c", "1", "--print-plan", "--", "2"];
    let printed = run_with_input(&line, WALK.as_bytes()).expect(&[0]).stdout;
    assert!(printed.contains("[script]\nname = \"standard input\"\n"), "{printed}");
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("native-script.toml");
    std::fs::write(&file, printed).unwrap();
    run(&["run", file.to_str().unwrap(), "--repeat", "2", "-q"]).expect(&[0, 4]);
    let asked: Vec<String> = server.all().iter().map(|ask| ask.target().to_owned()).collect();
    // each repeat has a state of its own
    assert_eq!(asked, ["/", "/4", "/6", "/8", "/4", "/6", "/8"]);
}

#[test]
fn what_is_wrong_with_a_script_ends_the_run() {
    let server = Recorder::plain();
    let url = server.url("/");
    let told = |name: &str, text: &str| -> Ran {
        let path = written(name, text);
        run(&["run", &url, "--script", &path, "-n", "9", "-c", "1", "-q"]).expect(&[2])
    };
    for (name, text, why) in [
        ("syntax", "x = = 1", ":1: unexpected symbol near '='"),
        ("first", "function request() error('boom') end", ":1: boom"),
        (
            "later",
            "n = 0 function request() n = n + 1 if n > 4 then error('late') end return wrk.format() end",
            ":1: late",
        ),
        ("garbage", "function request() return 'nonsense' end", "is not a request"),
        ("done", "function done() error('at the end') end", ":1: at the end"),
    ] {
        let ran = told(name, text);
        assert!(ran.stderr.starts_with("loadstone: --script: "), "{ran:#?}");
        assert!(ran.stderr.contains(why), "{name}: {ran:#?}");
    }
    let missing = run(&["run", &url, "--script", "/no/such.lua"]).expect(&[2]);
    assert!(missing.stderr.contains("--script: "), "{missing:#?}");
    let lost = run(&["run", &url, "--", "word"]).expect(&[2]);
    assert!(lost.stderr.contains("add --script FILE"), "{lost:#?}");
    let both = run(&["run", &url, "--script", "-", "--body-file", "-"]).expect(&[2]);
    assert!(both.stderr.contains("--script - reads standard input"), "{both:#?}");
    assert_eq!(server.all().iter().filter(|ask| ask.line.contains("nonsense")).count(), 0);
}
