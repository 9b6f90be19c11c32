//! `--native`: each face prints one or more commands that run. A shell runs them with
//! `--print-plan` added.

use crate::support::{finish, run};
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns the plan of the printed commands.
#[track_caller]
fn plan_of(args: &[&str], folder: &Path) -> String {
    let printed = run(&[&args[..1], &["--native"], &args[1..]].concat()).expect(&[0]);
    assert_eq!(printed.stderr, "", "{args:?}");
    let commands = printed.stdout.trim_end();
    let last = commands.lines().last().unwrap();
    assert!(last.starts_with("loadstone run "), "{args:?}: {commands}");
    let mut shell = Command::new("sh");
    let commands = commands.replace("loadstone run ", "loadstone run --print-plan ");
    shell.args(["-c", &format!("set -e\n{commands}")]).current_dir(folder);
    shell.env("PATH", format!("{}:/usr/bin:/bin", folder.display())).stdin(Stdio::null());
    let ran = finish(shell, b"").expect(&[0]);
    assert!(ran.stdout.contains("\n[[targets]]\n"), "{args:?}\n{commands}\n{ran:#?}");
    ran.stdout
}

fn scene() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = crate::support::binary();
    std::os::unix::fs::symlink(program, folder.path().join("loadstone")).unwrap();
    let keep = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    keep("body", "a=1&b='2'");
    keep("list", "/a\0/b\0");
    keep("hosts", "h\0g\0");
    keep("sessions", "/a think=0.5\n /b\n\n/c method=POST contents='x y'\n");
    keep("urls", "http://h/a\nhttp://h/b weight=2\n");
    keep("siegerc", "protocol = HTTP/1.1\nlogin = a:b\n");
    keep("walk", "http://h/a\nhttp://h/b POST x=1\n");
    keep("x.lua", "request = function() return wrk.format('GET', '/x') end\n");
    folder
}

/// Command lines, each with a line that the plan must contain.
const LINES: &[(&str, &str)] = &[
    ("ab -n 9 -c 3 -k -H 'X: a b' http://h/", "requests = 9"),
    ("ab -n 9 -p {}/body -T text/x -A u:p http://h/a?b=1&c=2", "method = \"POST\""),
    ("ab -t 5 -i -C a=b http://h/", "duration = \"5s\""),
    ("ab -n 4 -u {}/body -X p:3128 -B 127.0.0.1 -b 9000 -s 7 http://h/", "method = \"PUT\""),
    ("ab -n 4 -m PATCH -f TLS1.3 https://h/", "version = \"1.3\""),
    ("ab -n 4 -I -Z ECDHE-RSA-AES128-GCM-SHA256 -f TLS1.2 https://h/", "sni = false"),
    ("wrk -t2 -c8 -d3s --latency -H 'A: b' http://h/x", "users = 8"),
    ("wrk -R 200 -t1 -c8 https://h/x", "rate = \"200/s\""),
    ("wrk2 -R 1k -L http://h/x", "rate = \"1000/s\""),
    ("wrk -t1 -c1 -s {}/x.lua http://h/x -- one -two", "args = [\"one\", \"-two\"]"),
    ("httperf --server h --num-conns 7 --num-calls 3 --uri /a?b", "requests = 21"),
    ("httperf --server h --rate 12.5 --timeout 2 --add-header 'A: b\\n'", "rate = \"12.5/s\""),
    ("httperf --server h --period e0.5 --wsess 9,3,1.5 --ssl", "session = 3"),
    ("httperf --server h --wsess 9,3,1.5 --burst-length 2", "lead = true"),
    (
        "httperf --server h --period v0.1,5,0.2,5 --num-conns 3",
        "at = [\"0s\", \"100ms\", \"200ms\"]",
    ),
    ("httperf --server h --wsesslog 5,1,{}/sessions --session-cookies", "last_cookie = true"),
    ("httperf --server h --wlog y,{}/list --num-conns 5", "url = \"http://h/\""),
    ("httperf --server h --wset 20,0.5 --num-conns 5 --no-host-hdr", "sequence = [0, 1, 1, 2, 2]"),
    ("httperf --servers {}/hosts --max-connections 2 --failure-status 404", "at_once = false"),
    ("h2load -n 9 -c 3 -m 4 -H 'A: b' -d {}/body http://h/x", "streams = 4"),
    ("h2load -D 3 --warm-up-time=1s -W 20 https://h/", "connection_window = 1048575"),
    ("h2load --h1 -n 9 -m 4 http://h/", "pipeline = 4"),
    ("h2load --rps 5 -n 4 -c 2 http://h/a /b", "pace = \"5/s\""),
    ("h2load -n 5 -c 2 -r 1 -N 3 http://h/", "lengths = [3, 2]"),
    ("torture.pl -c 3 -t 5 -d 0.5 http://h/a", "requests = 15"),
    ("torture.pl -c 3 -t 5 -l 900 -r http://h/a", "requests = 15"),
    ("siege -R {}/siegerc -c 3 -r 5 -d 0.5 'http://h/a POST x=1'", "requests = 15"),
    ("siege -R {}/siegerc -t 7s -b --no-follow https://h/", "duration = \"7s\""),
    ("siege -R {}/siegerc http://h/", "duration = \"86400s\""),
    ("siege -R {}/siegerc -c 2 -r once -f {}/walk", "requests = 4"),
    ("siege -R {}/siegerc -i -t 1M -f {}/walk", "order = \"random\""),
    ("torture.pl -P -t 5 --urls {}/urls", "requests = 5"),
];

/// Words as a shell splits them, with single quotes.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            1 => words.push(part.to_owned()),
            _ => words.extend(part.split_whitespace().map(str::to_owned)),
        }
    }
    words
}

#[test]
fn every_native_command_makes_a_plan() {
    let scene = scene();
    for (line, expected) in LINES {
        let line = line.replace("{}", scene.path().to_str().unwrap());
        let words = split(&line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let plan = plan_of(&words, scene.path());
        assert!(plan.lines().any(|line| line == *expected), "{line}: no {expected} in\n{plan}");
    }
}
