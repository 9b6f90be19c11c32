//! Plans against the reference server.

use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{Scripted, Site, whole};
use crate::{check, failed};
use std::io::{Read, Write};

const PLAN: &str = r#"
version = 1

[vars]
sleep = "0.2"

[check]
name = "The built-in site"
base = "http://127.0.0.1:1"

[[step]]
name = "hello"
url = "/hw"
repeat = 3
[step.expect]
status = 200
headers = { Content-Type = { regex = '^text/plain' }, X-None = false }
body = { contains = "hello world", lacks = "goodbye", regex = '^hello', count = { l = 3 } }

[[step]]
name = "statuses"
url = "/status/404"
expect = { status = ["4xx"] }

[[step]]
name = "echo"
url = "/echo"
form = { given = "Fred", family = "Flint stone" }
[step.expect]
headers = { Content-Type = "application/x-www-form-urlencoded" }
body = "given=Fred&family=Flint+stone"

[[step]]
name = "upload"
url = "/echo"
form = { a = "b" }
upload = { field = "file", text = "a line\n", times = 3, name = "lines.txt" }
[step.expect.body]
contains = ['name="a"', 'filename="lines.txt"', "a line\na line\na line\n"]

[[step]]
name = "stranger"
url = "/auth"
expect = { status = 401, headers = { WWW-Authenticate = true } }

[[step]]
name = "fred"
url = "/auth"
user = "fred:flintstone"

[[step]]
name = "set a cookie"
url = "/cookie?set=sid=abc"
capture = { cookie = { header = "Set-Cookie", regex = '=(abc)' } }

[[step]]
name = "the cookie comes back"
url = "/echo?headers"
expect = { body = { regex = '(?i)cookie: .*${cookie}' } }

[[step]]
name = "not from another jar"
url = "/echo?headers"
jar = "other"
expect = { body = { lacks = "${cookie}" } }

[[step]]
name = "a redirect"
url = "/redirect/2"
expect = { status = "300-399" }
capture = { next = { header = "Location" } }

[[step]]
name = "where it leads"
url = "${next}"
expect = { status = "3xx" }

[[step]]
name = "HTTP/1.0"
url = "/echo?headers"
http = "1.0"
expect = { body = { contains = "HTTP/1.0" } }

[[step]]
name = "a body of known length and hash"
url = "/bytes/0"
[step.expect.body]
length = 0
exact = ""
sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

[[step]]
name = "chunks"
url = "/chunked/1000?pieces=7"
expect = { body = { length = 1000 } }

[[step]]
name = "head"
method = "HEAD"
url = "/hw"
expect = { body = "", headers = { Content-Length = true } }

[[step]]
name = "two sleeps"
[[step.together]]
name = "short"
url = "/sleep?${sleep}"
expect = { at-least = "${sleep}s" }
[[step.together]]
name = "long"
url = "/sleep?3"
[step.expect]
order = ["short", "long"]
at-least = "3s"
at-most = "30s"
"#;

#[test]
fn a_plan_of_everything_passes() {
    let (site, folder) = (Site::start(&[("sleep-parallel", "")]), tempfile::tempdir().unwrap());
    let json = check(folder.path(), PLAN, &["--base", &site.url("")]).expect(&[0, 1]).json();
    assert_eq!(failed(&json), [""; 0]);
    assert_eq!(whole(&json, "/counts/passed"), 16);
    assert_eq!(json["steps"][15]["members"][1]["status"], 200);
}

#[test]
fn only_unmet_expectations_fail() {
    // in sequence, the first sleep would end first
    let (site, folder) = (Site::start(&[("sleep-parallel", "")]), tempfile::tempdir().unwrap());
    let plan = PLAN.replace("user = \"fred:flintstone\"", "user = \"fred:wrong\"");
    let plan = plan.replace("length = 1000", "length = 1001");
    let plan = plan.replace("order = [\"short\", \"long\"]", "order = [\"long\", \"short\"]");
    let json = check(folder.path(), &plan, &["--base", &site.url("")]).expect(&[1]).json();
    let got = [
        r#"fred: {"expected":"below 400","got":"401","what":"status"}"#,
        r#"chunks: {"expected":"1,001 bytes","got":"1,000 bytes","what":"body"}"#,
        r#"two sleeps: {"expected":"long, short","got":"short, long","what":"order"}"#,
    ];
    assert_eq!(failed(&json), got);
    // no output contains the password
    assert!(!json.to_string().contains("wrong"));
}

#[test]
fn a_server_that_closes_refuses_or_is_silent_can_be_expected() {
    let server = Scripted::start(|mut stream, _| {
        let mut bytes = [0; 1024];
        let count = stream.read(&mut bytes).unwrap_or(0);
        match bytes[..count].split(|byte| *byte == b' ').nth(1) {
            Some(b"/close") => {}
            Some(b"/half") => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").ok();
            }
            // until the client has read enough
            _ => drop(stream.read(&mut bytes)),
        }
    });
    let free = crate::support::free_port();
    let plan = format!(
        "version = 1\n[check]\nbase = '{}'\n\
         [[step]]\nname = 'closed'\nurl = '/close'\nexpect = {{ outcome = 'closed' }}\n\
         [[step]]\nname = 'refused'\nurl = 'http://127.0.0.1:{free}/'\nexpect = {{ outcome = 'refused' }}\n\
         [[step]]\nname = 'silent'\nurl = '/silent'\ntimeout = '300ms'\nexpect = {{ outcome = 'timeout' }}\n\
         [[step]]\nname = 'half'\nurl = '/half'\n\
         [[step]]\nname = 'also silent'\nurl = '/silent'\ntimeout = '300ms'\n",
        server.url("")
    );
    let folder = tempfile::tempdir().unwrap();
    let json = check(folder.path(), &plan, &[]).expect(&[1]).json();
    let found = failed(&json);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("the connection ended inside the response"), "{found:?}");
    assert!(found[1].contains("no complete response within 300 ms"), "{found:?}");
}

#[test]
fn files_of_the_site_are_looked_at_below_the_root() {
    let (site, folder) = (Site::start(&[]), tempfile::tempdir().unwrap());
    std::fs::create_dir_all(folder.path().join("root/tmp")).unwrap();
    std::fs::write(folder.path().join("root/log"), "one\ntwo\n").unwrap();
    let plan = "version = 1\n[check]\nbase = 'http://h'\n\
        [[step]]\nname = 'hello'\nurl = '/hw'\n\
        [[step]]\nname = 'empty'\ndir = 'tmp'\nexpect = { empty = true }\n\
        [[step]]\nname = 'not empty'\ndir = '.'\nwithin = 0\nexpect = { entries = ['tmp'] }\n\
        [[step]]\nname = 'log'\nfile = 'log'\nexpect = { regex = '(?m)^two$', count = { o = 2 } }\n\
        [[step]]\nname = 'none'\nfile = 'none'\nwithin = 0\nexpect = { lacks = 'a' }\n";
    let root = folder.path().join("root");
    let options = ["--base", &site.url(""), "--root", root.to_str().unwrap()];
    let json = check(folder.path(), plan, &options).expect(&[1]).json();
    let found = failed(&json);
    assert!(
        found[0].starts_with("not empty: {\"expected\":\"tmp\",\"got\":\"log, tmp\""),
        "{found:?}"
    );
    assert!(found[1].starts_with("none: ") && found[1].contains("No such file"), "{found:?}");
    assert_eq!(found.len(), 2);
    let json = check(folder.path(), plan, &["--base", &site.url("")]).expect(&[0]).json();
    assert_eq!(whole(&json, "/counts/skipped"), 4);
}

#[test]
fn built_in_checks_accept_a_private_certificate() {
    let (server, folder) = (TlsServer::start(&TlsOptions::default()), tempfile::tempdir().unwrap());
    let plan = format!(
        "version = 1\n[check]\nbase = '{}'\n[[step]]\nname = 'a'\nurl = '/'\n\
         [[step]]\nname = 'b'\ntogether = [ {{ name = 'x', url = '/x' }}, {{ name = 'y', url = '/y' }} ]\n",
        server.url("/")
    );
    let trusted = check(folder.path(), &plan, &["--ca", &server.files.ca]).expect(&[0]).json();
    assert_eq!(whole(&trusted, "/counts/passed"), 2);
    check(folder.path(), &plan, &["--insecure"]).expect(&[0]);
    let json = check(folder.path(), &plan, &[]).expect(&[3]).json();
    assert!(json["unreachable"].as_str().unwrap().contains("certificate"), "{json:#}");
}

const SOCKET_STEPS: &str = r#"
version = 1
[check]
base = "http://127.0.0.1:1"
[[step]]
name = "log in"
url = "/login?name=ann"
capture = { token = { json = "/token" } }
[[step]]
name = "echo"
connect = "/ws?push=50"
headers = { Sec-WebSocket-Protocol = "chat, v2" }
talk = [
  { send = { token = "${token}" }, expect = { match = { json = { "/token" = "${token}" } } } },
  { expect = { match = { regex = "push [0-9]+" }, count = 2 } },
  { close = 1001 },
]
expect = { headers = { Sec-WebSocket-Protocol = "chat" }, body = { contains = "push" } }
[[step]]
name = "the server closes"
connect = "/ws?close=1011&after=1"
talk = [{ send = "a", expect = { match = { exact = "a" } } }, { send = "b" }, { closed = 1011 }]
[[step]]
name = "no WebSocket here"
connect = "/hw"
expect = { status = 200, body = { contains = "hello" } }
[[step]]
name = "no upgrade"
connect = "/hw"
[[step]]
name = "a lost answer"
connect = "/ws?lose=1"
timeout = "200ms"
talk = [{ send = "a" }, { expect = {} }]
[[step]]
name = "an early end"
connect = "/ws?close=1013&after=0"
talk = [{ send = "a" }, { expect = {} }]
"#;

const SOCKET_FAILURES: [(&str, &str); 3] = [
    ("no upgrade", "101"),
    ("a lost answer", "not complete within 200 ms: move 2 expects a message"),
    ("an early end", "with 1013 (try again later), where move 2 expects a message"),
];

#[test]
fn steps_on_websockets() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let json = check(folder.path(), SOCKET_STEPS, &["--base", &site.url("")]).expect(&[1]).json();
    let found = failed(&json);
    assert_eq!(found.len(), SOCKET_FAILURES.len(), "{found:#?}");
    for (found, (step, why)) in found.iter().zip(SOCKET_FAILURES) {
        assert!(found.starts_with(step) && found.contains(why), "{found}");
    }
}

/// A WebSocket in parallel with a request.
const SOCKET_BESIDE: &str = r#"
[[step]]
name = "beside a request"
[[step.together]]
name = "socket"
connect = "/ws"
talk = [{ send = "a", expect = { match = { exact = "a" } } }]
[[step.together]]
name = "page"
url = "/hw"
"#;

/// The same steps as streams of HTTP/2, alone and in parallel with another request.
#[test]
fn steps_on_websockets_work_over_http2() {
    let site = Site::start(&[]);
    let plan = format!("{SOCKET_STEPS}{SOCKET_BESIDE}");
    let plan = plan.replace("connect = ", "http = \"2\"\nconnect = ");
    steps_pass_on_streams(&plan, &["--base", &site.url(""), "--http", "1.1"]);
}

/// The same steps as streams of HTTP/3.
#[cfg(feature = "h3")]
#[test]
fn steps_on_websockets_over_http3() {
    let site = crate::support::quic::QuicSite::start();
    let plan = format!("{SOCKET_STEPS}{SOCKET_BESIDE}");
    let base = site.url("");
    steps_pass_on_streams(&plan, &["--base", &base, "--http", "3", "--ca", &site.ca]);
    // nothing is sent without TLS
    let plan =
        "version = 1\n[check]\nbase = 'http://127.0.0.1:1'\n[[step]]\nname = 'a'\nconnect = '/ws'";
    let folder = tempfile::tempdir().unwrap();
    let refused = check(folder.path(), plan, &["--http", "3"]).expect(&[2]);
    let why = "HTTP/3 requires TLS, but the URL is ws://127.0.0.1:1/ws; write wss://";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
}

/// Checks the plan of WebSockets that are streams.
#[track_caller]
fn steps_pass_on_streams(plan: &str, args: &[&str]) {
    let only = ["log in", "echo", "the server closes", "a lost answer", "an early end", "beside"];
    let mut args = args.to_vec();
    args.extend(only.iter().flat_map(|name| ["--only", name]));
    let folder = tempfile::tempdir().unwrap();
    let json = check(folder.path(), plan, &args).expect(&[1]).json();
    let found = failed(&json);
    assert_eq!(found.len(), 2, "{found:#?}");
    for (found, (step, why)) in found.iter().zip(&SOCKET_FAILURES[1..]) {
        assert!(found.starts_with(step) && found.contains(why), "{found}");
    }
}
