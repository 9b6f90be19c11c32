//! `loadstone siege` compared with siege 4.0.7: the same command lines against the same servers,
//! with the same configuration. Measured values are masked; counts, bytes and all wording must be
//! equal.

use crate::ab::request_bytes;
use crate::support::http::response;
use crate::support::{Ran, Scripted, Site, finish, free_port, in_process, program};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// Home folder for both programs.
const CONF: &str = "verbose = true
color = off
json_output = false
show-logfile = true
parser = true
protocol = HTTP/1.1
chunked = true
connection = close
concurrent = 1
reps = 1
accept-encoding = gzip, deflate
";

/// Maximum number of attempts of the original, which may end by a signal.
const TRIES: usize = 4;

/// Home directory with a configuration file. siege writes there; this program does not.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new(more: &str) -> Home {
        Home::with(&format!("{CONF}{more}"))
    }

    fn with(conf: &str) -> Home {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".siege")).unwrap();
        std::fs::write(folder.path().join(".siege/siege.conf"), conf).unwrap();
        Home { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the absolute path of a file in the home directory.
    fn file(&self, name: &str, text: &[u8]) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Adds the environment in which both programs run.
    fn with_environment(&self, mut command: Command) -> Command {
        command.env("HOME", self.folder.path()).env_remove("SIEGERC").env("TZ", "UTC");
        command
    }

    /// Runs siege, and repeats a run that hangs or dies of a signal after the clock has lifted the
    /// siege (with `-q`, without a message), as 4.0.7 sometimes does.
    fn original(&self, args: &[&str]) -> Ran {
        for _ in 1..TRIES {
            let ran = self.run_original_once(args);
            // killed; timeout's own code if it was not killed with it
            let killed = matches!(ran.code, -1 | 137);
            if !killed {
                return ran;
            }
        }
        self.run_original_once(args)
    }

    fn run_original_once(&self, args: &[&str]) -> Ran {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "15", "siege"]).args(args);
        command.stdin(Stdio::null()).env("LC_ALL", "C");
        finish(self.with_environment(command), b"")
    }

    fn ours(&self, args: &[&str]) -> Ran {
        in_process(&self.with_environment(program(&[&["siege"], args].concat())), b"")
    }

    /// Runs both programs, and requires the same exit code and text except for measured values.
    #[track_caller]
    fn same(&self, args: &[&str]) -> Ran {
        let (theirs, ours) = (self.original(args), self.ours(args));
        assert_alike(args, &theirs, &ours, masked);
        ours
    }

    /// Like `same`, for lines of several users in any order.
    #[track_caller]
    fn same_in_any_order(&self, args: &[&str]) -> Ran {
        let (theirs, ours) = (self.original(args), self.ours(args));
        assert_alike(args, &theirs, &ours, |text| {
            let masked = masked(text);
            let mut lines: Vec<&str> = masked.lines().collect();
            lines.sort_unstable();
            lines.join("\n")
        });
        ours
    }
}

#[track_caller]
fn assert_alike(args: &[&str], theirs: &Ran, ours: &Ran, masked: impl Fn(&str) -> String) {
    let text = format!("siege {}\ntheirs {theirs:#?}\nours {ours:#?}", args.join(" "));
    assert_eq!(masked(&theirs.stdout), masked(&ours.stdout), "{text}");
    assert_eq!(masked(&theirs.stderr), masked(&ours.stderr), "{text}");
    assert_eq!(theirs.code, ours.code, "{text}");
}

/// Lines with measured numbers, by their beginning.
const MEASURED: [&str; 7] = [
    "Elapsed time:",
    "Response time:",
    "Transaction rate:",
    "Throughput:",
    "Concurrency:",
    "Longest transaction:",
    "Shortest transaction:",
];
const MEASURED_JSON: [&str; 7] = [
    "elapsed_time",
    "response_time",
    "transaction_rate",
    "throughput",
    "concurrency",
    "longest_transaction",
    "shortest_transaction",
];

/// Replaces measured numbers, dates and the time of each line by `#`.
fn masked(text: &str) -> String {
    let number = regex::Regex::new(r" *[0-9]+\.[0-9]+").unwrap();
    let date = regex::Regex::new(r"([A-Z][a-z]{2}, )?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d").unwrap();
    let seconds = regex::Regex::new(r" +[0-9]+\.[0-9]{2}( secs: |, *[0-9]+,)").unwrap();
    let http_date = regex::Regex::new(r"(?m)^(?i:date): .*$").unwrap();
    let line = |line: &str| {
        let measured = MEASURED.iter().any(|start| line.starts_with(start))
            || MEASURED_JSON.iter().any(|name| line.contains(name));
        if measured { number.replace_all(line, "#").into_owned() } else { line.to_owned() }
    };
    let lines: Vec<String> = text.split('\n').map(line).collect();
    let text = lines.join("\n");
    let text = http_date.replace_all(&text, "date: #");
    let text = date.replace_all(&text, "DATE");
    seconds.replace_all(&text, " #$1").into_owned()
}

#[test]
fn plain_runs_print_what_siege_prints() {
    let (site, home) = (Site::start(&[]), Home::new(""));
    let (hw, bytes) = (site.url("/hw"), site.url("/bytes/5000"));
    for args in [
        vec![hw.as_str()],
        vec!["-r", "4", &bytes],
        vec!["--reps=3", "--benchmark", &bytes],
        vec!["-c", "3", "-r2", &hw],
        vec![&hw, "-r", "2"],
        vec!["-q", &hw],
        vec!["-j", "-r", "2", &bytes],
        vec!["-qj", &bytes],
        vec!["-v", &hw],
        vec!["-N", "-r", "2", &hw],
        vec!["-c", "0", &hw],
        vec!["-r", "0", &hw],
        vec!["-A", "me", "-H", "X-Y: z", &hw],
        vec![&bytes, &hw],
        vec!["-i", "-r", "3", &hw],
        vec!["-d", "0.001", "-r", "3", &hw],
    ] {
        home.same(&args);
    }
    let ran = home.same(&["-r", "3", &bytes]);
    assert!(ran.stderr.contains("Transactions:\t\t           3 hits\n"), "{ran:#?}");
    let authority = site.authority();
    home.same(&[&authority]);
}

#[test]
fn statuses_count_as_by_siege() {
    let (site, home) = (Site::start(&[]), Home::new(""));
    for status in [204, 304, 400, 403, 404, 408, 418, 500, 503, 510] {
        let url = site.url(&format!("/status/{status}"));
        home.same(&["-r", "2", &url]);
    }
    let chunked = site.url("/chunked/1000?pieces=3");
    home.same(&["-r", "2", &chunked]);
    let gzip = site.url("/gzip/30000");
    home.same(&["-r", "2", &gzip]);
    let refused = format!("http://127.0.0.1:{}/", free_port());
    home.same(&["-r", "3", &refused]);
    // siege adds the text of an error number that this machine's resolver may have left behind
    let args = ["-r", "2", "http://nowhere.invalid/"];
    let (theirs, ours) = (home.original(&args), home.ours(&args));
    let left_behind = regex::Regex::new(
        r"(?m)(the following error:|Name or service not known|Temporary failure in name resolution): [A-Z][a-z ]+$",
    )
    .unwrap();
    assert_alike(&args, &theirs, &ours, |text| {
        left_behind.replace_all(&masked(text), "$1").into_owned()
    });
}

#[test]
fn redirects_are_separate_transactions() {
    let (site, home) = (Site::start(&[]), Home::new(""));
    let twice = site.url("/redirect/2");
    let ran = home.same(&["-r", "2", &twice]);
    assert!(ran.stderr.contains("Transactions:\t\t           6 hits\n"), "{ran:#?}");
    home.same(&["--no-follow", &twice]);
    for status in [301, 302, 303, 307, 308, 201] {
        let url = site.url(&format!("/status/{status}?to=/hw"));
        home.same(&[&url]);
        home.same(&[&format!("{url} POST a=1")]);
    }
    // a failed end removes the whole path to it
    let bad = site.url("/status/302?to=/status/500");
    let ran = home.same(&["-r", "2", &bad]);
    assert!(ran.stderr.contains("Failed transactions:\t           2\n"), "{ran:#?}");
}

#[test]
fn keep_alive_and_the_old_protocol() {
    let site = Site::start(&[]);
    let hw = site.url("/hw");
    let ran = Home::new("connection = keep-alive\n").ours(&["-r", "5", &hw]);
    assert!(ran.stderr.contains("Transactions:\t\t           5 hits\n"), "{ran:#?}");
    assert_eq!(site.served().connections, 1);
    Home::new("connection = keep-alive\n").same(&["-r", "5", &hw]);
    Home::new("protocol = HTTP/1.0\naccept-encoding = *\n").same(&["-r", "2", &hw]);
}

#[test]
fn one_request_is_looked_at() {
    let (site, home) = (Site::start(&[]), Home::new(""));
    let (hw, echo, to) = (site.url("/hw"), site.url("/echo POST x=1"), site.url("/redirect/1"));
    for args in [["-g", &hw], ["-p", &hw], ["-g", &to], ["-p", &to], ["-g", &echo], ["-p", &echo]] {
        home.same(&args);
    }
    home.same(&["-q", "-g", &hw]);
    home.same(&["-q", "-p", &hw]);
    home.same(&["-q", "-g", &echo]);
    home.same(&["-g", "-p", &hw]);
    Home::new("accept-encoding =\n").same(&["-g", &hw]);
    // The original's timer sometimes prints its line before the empty run has ended.
    let args = ["-r", "0", "-c1", "-b", "-t1S", &hw];
    assert_alike(&args, &home.original(&args), &home.ours(&args), |text| {
        masked(text).replace("Lifting the server siege...", "")
    });
    home.same(&["-r", "0", "-c1", "-b", &hw]);
    Home::new("gmethod = HEAD\n").same(&["-g", &hw]);
    home.same(&["-g"]);
}

/// Server that records its requests; pages are found by path.
struct Listening {
    server: Scripted,
    heard: Arc<Mutex<Vec<String>>>,
}

const HTML: &str = r#"<html><head><link rel="stylesheet" href="/a.css"><link rel="icon" href="/i.ico">
<script src="b.js"></script></head><body background="/bg.png"><img src="/c.png"><img alt="x" src='d.gif'>
<a href="/z">z</a><iframe src="/f.html"></iframe><!-- <img src="/no.png"> --><img src="/c.png">
<img src="data:image/png;base64,AAAA"><img src="http://127.0.0.2:1/far.png"></body></html>"#;

impl Listening {
    fn start() -> Listening {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let book = Arc::clone(&heard);
        let server = Scripted::start(move |mut stream, _| {
            while let Some(request) = request_bytes(&mut stream) {
                let text = String::from_utf8_lossy(&request).into_owned();
                let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
                let reply = reply(&path, &text);
                book.lock().unwrap_or_else(PoisonError::into_inner).push(text);
                let Some(reply) = reply else { break };
                if stream.write_all(&reply).is_err() {
                    break;
                }
            }
        });
        Listening { server, heard }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the response for a path; empty if the server closes the connection.
fn reply(path: &str, request: &str) -> Option<Vec<u8>> {
    let with = |fields: &str, body: &str| Some(response(200, fields, body));
    let challenge =
        |value: &str| Some(response(401, &format!("WWW-Authenticate: {value}\r\n"), "who?"));
    let html = "Content-Type: text/html; charset=utf-8\r\n";
    match path {
        "/dir/page" => with(html, HTML),
        "/refresh" => {
            with(html, r#"<meta http-equiv="refresh" content="0; url=/target"><img src="/e.png">"#)
        }
        "/cached" => with(html, r#"<img src="/fresh.png"><img src="/tagged.png">"#),
        "/fresh.png" => with("Cache-Control: max-age=300\r\n", "png"),
        "/tagged.png" if request.contains("If-None-Match: \"t\"") => {
            Some(response(304, "ETag: \"t\"\r\n", ""))
        }
        "/tagged.png" => with("ETag: \"t\"\r\n", "png"),
        "/cookie" => with("Set-Cookie: a=1; path=/\r\n", "cookie"),
        "/basic" if !request.contains("Authorization: Basic") => challenge("Basic realm=\"here\""),
        "/digest" if !request.contains("Authorization: Digest") => {
            challenge("Digest realm=\"here\", nonce=\"n0nce\", qop=\"auth\", algorithm=MD5")
        }
        "/ntlm" => challenge("NTLM"),
        "/created" => Some(response(201, "Location: /target\r\n", "made")),
        "/gone" => None,
        "/loop" => Some(response(302, "Location: /loop\r\n", "")),
        // a page that includes itself
        nest if nest.starts_with("/nest/") => with(html, r#"<img src="deeper/x">"#),
        "/locked" => Some(response(403, "", "no entry")),
        "/empty" => with("Content-Type: text/plain\r\n", ""),
        "/garbage" => Some(b"hello, this is no HTTP\r\n\r\n".to_vec()),
        _ => with("Content-Type: text/plain\r\n", path),
    }
}

/// Removes the values that differ in each run from requests.
fn comparable(requests: Vec<String>) -> Vec<String> {
    let made = regex::Regex::new(r#"(cnonce|response)="[^"]*"|\(null\)"#).unwrap();
    let order = regex::Regex::new(r"(?m)^Authorization: Digest .*$").unwrap();
    let one = |text: String| {
        let text = made.replace_all(&text, "").into_owned();
        let sorted = order.replace(&text, |found: &regex::Captures<'_>| {
            let parts = found[0].split(',').map(str::trim).filter(|part| !part.is_empty());
            let mut parts: Vec<&str> = parts.collect();
            parts[1..].sort_unstable();
            parts.join(", ")
        });
        sorted.into_owned()
    };
    requests.into_iter().map(one).collect()
}

#[test]
fn pages_bring_their_parts_and_requests_are_byte_equal() {
    let server = Listening::start();
    let url = |path: &str| server.server.url(path);
    let home = Home::new("nofollow = 127.0.0.2\n");
    let (json, text) = (home.file("b.json", b"{\"a\":1}\n\n"), home.file("b.txt", b" x=1\n"));
    for args in [
        vec![url("/dir/page")],
        vec!["-r".into(), "2".into(), url("/dir/page")],
        vec!["--no-parser".into(), url("/dir/page")],
        vec![url("/cookie"), "-r".into(), "2".into()],
        vec![format!("{} POST a=1&b=2 c", url("/p"))],
        vec![format!("{} PUT <{json}", url("/p"))],
        vec![format!("{} PATCH <{text}", url("/p"))],
        vec![format!("{} DELETE", url("/p"))],
        vec![format!("{} OPTIONS x", url("/p"))],
        vec!["-T".into(), "a/b".into(), format!("{} POST q", url("/p"))],
        vec![format!("{} POST <no-such-file", url("/p"))],
        vec!["-H".into(), "Host: h".into(), "-H".into(), "Accept: a/b".into(), url("/x")],
        vec!["-H".into(), "Accept: a/b".into(), "-H".into(), "X-Y:z".into(), url("/x")],
        vec![url("/a b?c=ä&d=%41%2f<>~#f")],
        vec![url("/x;y?z"), "-A".into(), "me".into()],
        vec![url("/gone"), "-r".into(), "2".into()],
        vec![url("/garbage"), "-r".into(), "2".into()],
        vec![url("/basic"), "-r".into(), "2".into()],
        vec![url("/digest")],
        vec![format!("http://127.1:{}/x", server.server.address.port())],
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (theirs, first) = (home.original(&args), server.take());
        let (ours, second) = (home.ours(&args), server.take());
        assert_alike(&args, &theirs, &ours, masked);
        assert_eq!(comparable(first), comparable(second), "{args:?}");
    }
}

#[test]
fn a_page_that_refreshes_itself_leads_on() {
    let server = Listening::start();
    let ran = Home::new("").same(&[&server.server.url("/refresh")]);
    assert!(ran.stdout.contains("==> GET  /target\n"), "{ran:#?}");
    assert!(ran.stdout.contains("==> GET  /e.png\n"), "{ran:#?}");
}

#[test]
fn logins_answer_challenges() {
    let server = Listening::start();
    let url = |path: &str| server.server.url(path);
    let home = Home::new("login = fred:flint\nlogin = barney:rubble:here\nattempts = 3\n");
    for path in ["/basic", "/digest"] {
        let args = ["-r", "2", &url(path)];
        let (theirs, first) = (home.original(&args), server.take());
        let (ours, second) = (home.ours(&args), server.take());
        assert_alike(&args, &theirs, &ours, masked);
        assert_eq!(comparable(first), comparable(second), "{path}");
        assert!(ours.stderr.contains("Transactions:\t\t           3 hits\n"), "{ours:#?}");
    }
    let ran = home.ours(&[&url("/ntlm")]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("NTLM is not a login that is supported here"), "{}", ran.stderr);
    assert!(ran.stderr.contains("Failed transactions:\t           1\n"), "{}", ran.stderr);
}

#[test]
fn each_user_logs_in_by_the_next_url() {
    let server = Listening::start();
    let lines = ["/in POST name=a", "/in2?b"]
        .map(|path| format!("login-url = {}\n", server.server.url(path)));
    let home = Home::new(&lines.concat());
    let url = server.server.url("/x");
    home.same_in_any_order(&["-c", "1", "-r", "2", &url]);
    server.take();
    let ran = home.ours(&["-c", "3", "-r", "1", &url]);
    let heard = server.take();
    let logins = |path: &str| heard.iter().filter(|text| text.contains(path)).count();
    // users 0 and 2 start with the first login, user 1 with the second
    assert_eq!((logins("POST /in "), logins("GET /in2?b "), logins("GET /x ")), (2, 1, 3));
    assert!(ran.stderr.contains("Transactions:\t\t           6 hits\n"), "{ran:#?}");
}

#[test]
fn a_cache_revalidates_and_skips_fresh_pages() {
    let server = Listening::start();
    let home = Home::new("cache = true\n");
    let ran = home.ours(&["-r", "2", &server.server.url("/cached")]);
    let paths: Vec<&str> =
        ran.stdout.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    let wanted = ["/cached", "/tagged.png", "/fresh.png", "/cached", "/tagged.png", "/fresh.png"];
    assert_eq!(paths, wanted);
    let codes: Vec<&str> = ran.stdout.lines().map(|line| line[9..15].trim_end()).collect();
    assert_eq!(codes, ["200", "200", "200", "200", "304", "200(C)"]);
    assert_eq!(server.take().len(), 5);
    assert!(ran.stderr.contains("Transactions:\t\t           5 hits\n"), "{ran:#?}");
}

#[test]
fn settings_of_cookies_gates_and_empty_responses() {
    let server = Listening::start();
    let url = |path: &str| server.server.url(path);
    let lines = |requests: &[String]| -> Vec<String> {
        let first = |text: &String| text.lines().next().unwrap_or_default().to_owned();
        requests.iter().map(first).collect()
    };
    let home = Home::new("expire-session = true\n");
    let cookie = url("/cookie");
    home.same(&["-r", "3", &cookie]);
    assert!(server.take().iter().all(|request| !request.contains("Cookie:")));
    Home::new("cookies = false\n").ours(&["-r", "3", &cookie]);
    assert!(server.take().iter().all(|request| !request.contains("Cookie:")));

    let ran = Home::new("zero-data-ok = false\n").ours(&["-r", "2", &url("/empty")]);
    assert!(ran.stderr.contains("Failed transactions:\t           2\n"), "{}", ran.stderr);

    server.take();
    let home = Home::new(&format!("auth-url = {} POST me\n", url("/key")));
    let ran = home.ours(&["-r", "2", &url("/locked")]);
    let get = "GET /locked HTTP/1.1";
    assert_eq!(lines(&server.take()), [get, "POST /key HTTP/1.1", get, get]);
    assert!(ran.stderr.contains("Transactions:\t\t           4 hits\n"), "{}", ran.stderr);
}

#[test]
fn redirects_and_pages_without_end_are_bounded() {
    let server = Listening::start();
    let home = Home::new("connection = keep-alive\nverbose = false\n");
    let ran = home.ours(&[&server.server.url("/loop")]);
    assert!(ran.stderr.contains("/loop: over 100 redirects\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("Failed transactions:\t           1\n"), "{}", ran.stderr);
    assert_eq!(server.take().len(), 101);
    let ran = home.ours(&[&server.server.url("/nest/x")]);
    assert!(ran.stderr.contains("Transactions:\t\t        1001 hits\n"), "{}", ran.stderr);
}

#[test]
fn a_response_that_breaks_off_is_a_failure() {
    let server = Scripted::start(|mut stream, _| {
        request_bytes(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc").ok();
    });
    let ran = Home::new("").ours(&["-r", "2", &server.url("/")]);
    assert!(ran.stderr.contains("the connection ended in the middle of a response"));
    assert!(ran.stderr.contains("Failed transactions:\t           2\n"), "{}", ran.stderr);
}

#[test]
fn lists_of_urls_are_walked() {
    let (site, home) = (Site::start(&[]), Home::new(""));
    let host = site.authority();
    let list = home.file(
        "urls",
        format!(
            "# a list\nHOST={host}\n\nhttp://$(HOST)/bytes/1\n${{HOST}}/bytes/2\n  \
             http://$(HOST)/bytes/3  \nhttp://$HOST/bytes/4\nhttp://$(HOST)/echo POST x=$(HOST)\n"
        )
        .as_bytes(),
    );
    home.same(&["-f", &list, "-r", "7"]);
    home.same(&["-f", &list, "-r", "once"]);
    home.same_in_any_order(&["-f", &list, "-r", "once", "-c", "3"]);
    home.same_in_any_order(&["-f", &list, "-r", "3", "-c", "2"]);
    let from_conf = Home::new(&format!("file = {list}\n"));
    from_conf.same(&["-r", "2"]);
    // random: the frequency of each is chance, that all are of the list is not
    let ran = home.ours(&["-i", "-f", &list, "-r", "40", "-c", "5"]);
    assert!(ran.stderr.contains("Transactions:\t\t         200 hits\n"), "{}", ran.stderr);
    assert!(ran.stdout.lines().all(|line| line.contains("/bytes/") || line.contains("/echo")));
    home.same(&["-f", "/no/such/file"]);
    let empty = home.file("empty", b"# nothing\n");
    home.same(&["-f", &empty]);
}

#[test]
fn lines_have_the_configured_format() {
    let site = Site::start(&[]);
    let (good, bad) = (site.url("/bytes/77"), site.url("/status/404"));
    let post = format!("{} POST x", site.url("/echo"));
    for more in [
        "csv = true\n",
        "timestamp = true\n",
        "fullurl = true\n",
        "display-id = true\n",
        "color = on\n",
        "csv = true\ndisplay-id = true\n",
        "csv = true\ntimestamp = true\n",
        "verbose = false\n",
    ] {
        let home = Home::new(more);
        for url in [&good, &bad, &post] {
            home.same(&[url]);
        }
        home.same(&["-m", "mark", &format!("-l{}", home.path("log").to_str().unwrap()), &good]);
    }
}

#[test]
fn an_unopenable_log_is_reported() {
    let site = Site::start(&[]);
    let url = site.url("/bytes/5000");
    let home = Home::new("");
    let log = format!("-l{}", home.path("nowhere/log").to_str().unwrap());
    for args in [vec!["-r", "2", &log, &url], vec!["-r", "2", "-m", "TEXT", &log, &url]] {
        let times = args.iter().filter(|arg| arg.starts_with("-m") || arg.starts_with("-l"));
        let ran = home.same(&args);
        let errors = ran.stderr.matches("unable to create log file").count();
        assert_eq!(errors, times.count(), "{ran:#?}");
    }
}

#[test]
fn the_log_file_gets_a_row_for_each_run() {
    let (site, home) = (Site::start(&[]), Home::new(""));
    let url = site.url("/bytes/5000");
    let shape = |of: fn(&Home, &[&str]) -> Ran, name: &str| {
        let path = home.path(name).to_str().unwrap().to_owned();
        let log = format!("-l{path}");
        for args in [vec!["-r", "2", &log, &url], vec!["-m", "two words", &log, &url]] {
            let ran = of(&home, &args);
            assert_eq!(ran.code, 0, "{ran:#?}");
            assert!(ran.stdout.contains(&format!("LOG FILE: {path}\n")), "{ran:#?}");
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let number = regex::Regex::new(r" *(-?nan|inf|[0-9]+\.[0-9]+)").unwrap();
        let date = regex::Regex::new(r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d").unwrap();
        let text = date.replace_all(&text, "DATE").into_owned();
        number.replace_all(&text, "#").into_owned()
    };
    let (theirs, ours) = (shape(Home::original, "theirs"), shape(Home::ours, "ours"));
    assert_eq!(theirs, ours);
    assert_eq!(ours.lines().count(), 4);
    home.same(&["-l/no/such/folder/log", &url]);
}

#[test]
fn too_many_failures_end_the_run() {
    let server = Listening::start();
    let home = Home::new("failures = 3\n");
    let gone = server.server.url("/gone");
    let ran = home.same(&["-r", "10", &gone]);
    assert!(ran.stderr.contains("siege aborted due to excessive socket failure; you\n"));
    assert!(ran.stderr.contains("Failed transactions:\t           3\n"), "{ran:#?}");
}

#[test]
fn a_time_limit_lifts_the_siege() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let home = Home::with(&CONF.replace("reps = 1\n", ""));
    let digits = regex::Regex::new("[0-9.]+").unwrap();
    for args in [vec!["-t", "1S", "-d", "0.01", "-c", "2"], vec!["-q", "-t1s"]] {
        let args = [&args[..], &[&url]].concat();
        let (theirs, ours) = (home.original(&args), home.ours(&args));
        let shape = |ran: &Ran| {
            let lines = ran.stderr.lines().map(|line| match line.split_once(':') {
                Some((name, rest)) => format!("{name}:{}", digits.replace_all(rest, "#").trim()),
                None => line.to_owned(),
            });
            lines.collect::<Vec<String>>()
        };
        assert_eq!(shape(&theirs), shape(&ours), "{args:?}");
        assert_eq!(theirs.code, ours.code);
    }
    let home = Home::new("");
    let (theirs, ours) = (home.original(&["-t1S", "-r2", "-C"]), home.ours(&["-t1S", "-r2", "-C"]));
    assert_alike(&["-t1S", "-r2", "-C"], &theirs, &ours, str::to_owned);
}

#[test]
fn the_configuration_is_shown_in_the_same_words() {
    let all = "verbose = true\ncsv = true\ntimestamp = yes\nfullurl = true\nlimit = 7\ncache = true\n\
               connection = keep-alive\nconcurrent = 5\ntime = 2H\nreps = 0\nurl = $(V)/x\nV = 4\n\
               file = $HOME/urls\ndelay = 1.5\ntimeout = 9\nexpire-session = true\nfailures = 50\n\
               internet = true\nbenchmark = true\nuser-agent = some one\naccept-encoding = gzip\n\
               login = a:b\nlogin = c:d:e\nproxy-host = p\nproxy-port = 81\nproxy-login = f:g\n\
               follow-location = false\nzero-data-ok = false\nunique = false\nlogging = true\n\
               logfile = ${HOME}/log\nquiet = false\ngmethod = GET\nnofollow = x.example\n\
               login-url = http://h/ POST a=1\nssl-timeout = 3\nchunked = false\nunknown = 1\n";
    for home in [Home::new(""), Home::new(all), Home::new("json_output = true\nparser = false\n")] {
        for args in [
            vec!["-C"],
            vec!["-C", "-c", "7", "-t", "90s"],
            vec!["-t", "5x", "-C"],
            vec!["-t", "0", "-r", "3", "-C"],
            vec!["-d", "2.5", "-C"],
            vec!["-b", "-d", "3", "-i", "-C"],
            vec!["-r", "once", "-A", "me", "-C"],
            vec!["-lfoo", "-m", "x", "-f", "u", "-C"],
            vec!["-q", "-C"],
            vec!["-j", "-C"],
            vec!["-D", "-v", "-C"],
            vec!["-N", "-F", "http://x/", "-C"],
        ] {
            home.same(&args);
        }
    }
}

#[test]
fn a_home_without_a_file_gets_sieges_defaults_and_no_file() {
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = |folder: &tempfile::TempDir, mut command: Command| {
        command.env("HOME", folder.path()).env_remove("SIEGERC").arg("-C");
        let path = folder.path().to_str().unwrap();
        finish(command, b"").stdout.replace(path, "HOME")
    };
    let original = run(&theirs, Command::new("siege"));
    // the program first reports that it has written a file
    let shown = original.split_once("CURRENT").map(|(_, rest)| format!("CURRENT{rest}")).unwrap();
    assert_eq!(shown, run(&ours, program(&["siege"])));
    assert_eq!(std::fs::read_dir(ours.path()).unwrap().count(), 0);
}

#[test]
fn invalid_requests_are_refused_in_the_same_words() {
    let (site, home) = (Site::start(&[]), Home::new(""));
    let hw = site.url("/hw");
    for args in [
        vec!["-V"],
        vec!["--version", "-h"],
        vec!["-h"],
        vec!["-H", "nocolon", &hw],
        vec!["-R", "/no/such/file", &hw],
        vec!["-Z", &hw],
        vec!["--bogus", "-R", "/no/such/file"],
        vec!["--con", "2", &hw],
        vec!["--no", &hw],
        vec!["--rep=2", &hw],
        vec!["--", &hw],
    ] {
        home.same(&args);
    }
    for (url, wanted) in [
        ("ftp://127.0.0.1/x", "FTP is not supported here"),
        ("gopher://h/", "this protocol is not supported here"),
        ("http://", "no host that a connection could go to"),
        ("", "no host that a connection could go to"),
    ] {
        let ran = home.ours(&[url]);
        assert_eq!(ran.code, 1, "{ran:#?}");
        assert!(ran.stderr.contains(wanted), "{}", ran.stderr);
    }
}

#[test]
fn parsers_of_sieges_results_find_theirs() {
    let (site, home) = (Site::start(&[]), Home::new(""));
    let ran = home.ours(&["-c", "2", "-r", "5", &site.url("/bytes/100000")]);
    // siege2csv, which is part of siege: its column patterns
    for pattern in [
        r".. Preparing \d* concurrent users.*",
        r"Transactions:\t\t +10 hits",
        r"Elapsed.* +\d+\.\d+ secs",
        r"Data transferred.* +0\.95 MB",
        r"Response.* +\d+\.\d+ secs",
        r"Transaction rate.* +\d+\.\d+ trans/sec",
        r"Throughput.* +\d+\.\d+ MB/sec",
        r"Concurrency.* +\d+\.\d+",
        r"Successful transactions: +10",
    ] {
        let found = regex::Regex::new(pattern).unwrap();
        assert!(found.is_match(&ran.stderr), "{pattern}\n{}", ran.stderr);
    }
    let summary = home.file("summary", ran.stderr.as_bytes());
    let mut table = Command::new("siege2csv");
    table.arg(&summary).current_dir(home.folder.path());
    let outcome = finish(table, b"");
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let csv = std::fs::read_to_string(format!("{summary}.csv")).unwrap();
    let row: Vec<&str> = csv.lines().nth(1).unwrap().split(',').map(str::trim).collect();
    assert_eq!((row[0], row[1], row[3]), ("2", "10", "0.95"), "{csv}");
    // the JSON is valid
    let ran = home.ours(&["-j", "-r", "3", &site.url("/hw")]);
    let document = ran.json();
    assert_eq!(
        (document["transactions"].as_u64(), document.as_object().unwrap().len()),
        (Some(3), 12)
    );
}

#[test]
fn the_newer_format_is_there_on_request() {
    let (server, home) = (Listening::start(), Home::new(""));
    let url = server.server.url("/created");
    home.same(&[&url]);
    let ran = home.ours(&["--as-4.1.7", "-r", "2", &url]);
    assert!(ran.stderr.contains("** SIEGE 4.1.7\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("Transactions:\t\t        4    hits\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("Failed transactions:\t        0\n"), "{}", ran.stderr);
    let longest = regex::Regex::new(r"Longest transaction:\t +\d+\.\d\d ms\n").unwrap();
    assert!(longest.is_match(&ran.stderr), "{}", ran.stderr);
    let ran = home.ours(&["--as-4.1.7", "-j", &url]);
    assert!(ran.stdout.starts_with("{\n\t\"transactions\":\t\t\t           2,\n"), "{ran:#?}");
}

#[test]
fn the_clock_of_siege_and_the_native_command() {
    let (site, home) = (Site::start(&[]), Home::new(""));
    let url = site.url("/hw");
    let ran = home.ours(&["--strict", "-r", "3", &url]);
    // ticks of 10 ms: a figure of three transactions is a multiple of 10 ms
    let tick = regex::Regex::new(r"Longest transaction:\t +\d+\.\d\d\n").unwrap();
    assert!(tick.is_match(&ran.stderr), "{}", ran.stderr);
    assert!(!ran.stderr.contains("ticks"), "{}", ran.stderr);
    let ran = home.ours(&["--notes", "-r", "3", &url]);
    assert!(ran.stderr.contains("siege's clock ticks every 10 ms"), "{}", ran.stderr);
    let native = home.ours(&["--native", "-c", "4", "-r", "5", "-d", "0.5", &url]).stdout;
    let wanted = format!(
        "loadstone run {url} -c 4 -n 20 --think 0s..0.5s --calls 1 --cookies --follow \
         --progress-timeout 30s\n"
    );
    assert_eq!(native, wanted);
    let words: Vec<&str> = native.split_ascii_whitespace().skip(1).collect();
    let command = program(&[&words[..], &["--quiet"]].concat());
    let ran = in_process(&home.with_environment(command), b"");
    assert!([0, 4].contains(&ran.code), "{ran:#?}");
}
