//! h2load's face compared with h2load: the same command lines against the same servers.

use crate::support::nghttpd::Nghttpd;
use crate::support::nginx::Nginx;
use crate::support::tls::{Pki, TlsOptions, TlsServer};
use crate::support::{Ran, Scripted, finish, free_port, in_process, program};
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

fn original(args: &[String]) -> Ran {
    let mut command = Command::new("h2load");
    command.args(args).env("LANG", "C.UTF-8").stdin(Stdio::null());
    finish(command, b"")
}

fn face(args: &[String]) -> Ran {
    let mut all = vec!["h2load".to_owned()];
    all.extend_from_slice(args);
    in_process(&program(&all), b"")
}

#[derive(Debug)]
struct Pair {
    theirs: Ran,
    ours: Ran,
}

/// Runs both programs in sequence, so that the load of one does not affect the figures of the
/// other.
fn both(args: &[&str]) -> Pair {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    Pair { theirs: original(&args), ours: face(&args) }
}

/// Maximum number of pairs of runs until the traffic is equal: a `date` field costs 23 more bytes
/// on each connection if a second begins between two responses.
const PAIRS_MAX: usize = 6;

/// Like [`both`], but repeats a pair of runs if its traffic shows that a new second began.
fn alike(args: &[&str]) -> Pair {
    let traffic = |ran: &Ran| -> Option<String> {
        ran.stdout.lines().find(|line| line.starts_with("traffic:")).map(str::to_owned)
    };
    let mut pair = both(args);
    for _ in 1..PAIRS_MAX {
        if traffic(&pair.ours) == traffic(&pair.theirs) {
            break;
        }
        pair = both(args);
    }
    pair
}

/// Replaces measured values in the text: times, rates, and figures derived from them.
fn masked(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(masked_line).collect();
    // threads print in any order before the figures
    let end = lines.iter().position(String::is_empty).unwrap_or(lines.len());
    lines[..end].sort();
    lines
}

fn masked_line(line: &str) -> String {
    if line.starts_with("finished in") {
        return "finished in #, # req/s, #".to_owned();
    }
    let row = ["time for request:", "time for connect:", "time to 1st byte:", "req/s           :"];
    if row.iter().any(|name| line.starts_with(name)) {
        // the columns are fixed; only values that were never measured are equal
        assert_eq!(line.len(), 74, "{line:?}");
        let zero = line.contains(" 0us         0us         0us         0us");
        return if zero { line.to_owned() } else { format!("{} #", &line[..17]) };
    }
    line.to_owned()
}

impl Pair {
    /// Checks for the same lines, streams and exit code, except for measured values.
    #[track_caller]
    fn agree(self) -> Pair {
        assert_eq!(masked(&self.ours.stdout), masked(&self.theirs.stdout), "{:#?}", self.ours);
        self.compare_the_rest()
    }

    /// Like [`Pair::agree`], without these lines, which depend on a rate or on the end of the time.
    #[track_caller]
    fn agree_without(self, names: &[&str]) -> Pair {
        let kept = |ran: &Ran| -> Vec<String> {
            let named = |line: &String| names.iter().any(|name| line.starts_with(name));
            masked(&ran.stdout).into_iter().filter(|line| !named(line)).collect()
        };
        assert_eq!(kept(&self.ours), kept(&self.theirs), "{:#?}", self.ours);
        self.compare_the_rest()
    }

    /// Like [`Pair::agree_without`], for several threads. The original's threads write to one
    /// stream without a lock, so a line may begin inside another: before the figures, only the set
    /// of characters is compared.
    #[track_caller]
    fn agree_for_threads(self, names: &[&str]) -> Pair {
        let characters = |ran: &Ran| -> Vec<char> {
            // an empty line may be the end of a line inside another
            let before = ran.stdout.split("finished in").next().unwrap_or_default();
            let mut all: Vec<char> = before.chars().collect();
            all.sort_unstable();
            all
        };
        assert_eq!(characters(&self.ours), characters(&self.theirs), "{:#?}", self);
        let figures = |ran: &Ran| -> Vec<String> {
            let named = |line: &String| names.iter().any(|name| line.starts_with(name));
            let lines = ran.stdout.lines().skip_while(|line| !line.starts_with("finished in"));
            lines.map(masked_line).filter(|line| !named(line)).collect()
        };
        assert_eq!(figures(&self.ours), figures(&self.theirs), "{:#?}", self.ours);
        self.compare_the_rest()
    }

    #[track_caller]
    fn compare_the_rest(self) -> Pair {
        assert_eq!(self.ours.stderr, self.theirs.stderr, "{:#?}", self.ours);
        assert_eq!(self.ours.code, self.theirs.code, "{:#?}", self.ours);
        self
    }
}

/// Returns the number before a word of the line `requests: …`.
#[track_caller]
fn requests(ran: &Ran, word: &str) -> u64 {
    let line = ran.stdout.lines().find_map(|line| line.strip_prefix("requests: ")).unwrap();
    let part = line.split(", ").find_map(|part| part.strip_suffix(word)).unwrap();
    part.trim().parse().unwrap()
}

#[test]
fn invalid_options_are_refused_as_by_h2load() {
    let gone = format!("http://127.0.0.1:{}/", free_port());
    let url: &str = &gone;
    let lines: &[&[&str]] = &[
        &[],
        &["-h"],
        &["--help"],
        &["--version"],
        &["--bogus", url],
        &["--bogus=1", url],
        &["-x"],
        &["-n"],
        &["--h1=3", url],
        &["-n", "x", url],
        &["-n", "1k", url],
        &["-n", "0", url],
        &["-c", "0", url],
        &["-c", "2", url],
        &["-c", "1", "-t", "2", "-n", "2", url],
        &["-t", "0", url],
        &["-m", "0", url],
        &["-m", "x", url],
        &["-f", "1", url],
        &["-f", "17M", url],
        &["-f", "x", url],
        &["-w", "31", url],
        &["-W", "x", url],
        &["-H", "foo", url],
        &["-H", "foo: ", url],
        &["-p", "h3", url],
        &["-r", "0", url],
        &["-r", "x", url],
        &["-r", "3", "-c", "2", "-n", "2", url],
        &["-D", "1", "-r", "1", url],
        &["-D", "x", url],
        &["-T", "x", url],
        &["-N", "1d", url],
        &["--rate-period=x", url],
        &["-D", "1", "--warm-up-time=x", url],
        &["--rps", "x", url],
        &["--rps", "-1", url],
    ];
    assert_same_refusals(lines);
}

#[test]
fn invalid_addresses_and_files_are_refused_as_by_h2load() {
    let gone = format!("http://127.0.0.1:{}/", free_port());
    let url: &str = &gone;
    let lines: &[&[&str]] = &[
        &["--connect-to", ":3", url],
        &["--header-table-size=9G", url],
        &["--encoder-header-table-size=x", url],
        &["--max-udp-payload-size=1M", url],
        &["--ciphers", "bogus", url],
        &["--tls13-ciphers", "bogus", url],
        &["--groups", "bogus", url],
        &["-B", "foo", url],
        &["-B", "unix:", url],
        &["ftp"],
        &["127.0.0.1:80/"],
        &["http://"],
        &["http://h:99999/"],
        &["-i", "/nowhere/at/all"],
        &["--timing-script-file=/nowhere/at/all"],
        &["-d", "/nowhere/at/all", url],
        &["-d", "/", url],
        &["--log-file=/nowhere/at/all", url],
        &["http://nohost.invalid/"],
    ];
    assert_same_refusals(lines);
}

#[track_caller]
fn assert_same_refusals(lines: &[&[&str]]) {
    for line in lines {
        let Pair { theirs, ours } = both(line);
        let sorted = |text: &str| {
            // candidates of equal distance are in address order there
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(ours.stdout, theirs.stdout, "{line:?}");
        assert_eq!(sorted(&ours.stderr), sorted(&theirs.stderr), "{line:?}");
        assert_eq!(ours.code, theirs.code, "{line:?}");
    }
}

#[test]
fn unsupported_protocols_name_a_fix() {
    let url = "https://127.0.0.1:1/";
    for (line, found) in [
        (
            &["--npn-list=h3", url][..],
            "--npn-list: HTTP/3 is not part of this face; use `loadstone run --http 3`",
        ),
        (&["--h3", url], "--h3: HTTP/3 is not part of this face"),
        (&["--npn-list=foo", url], "give h2, http/1.1 or both"),
        (&["--ktls", url], "leave --ktls out"),
        (&["-H", ":path: /x", url], "change the URI instead"),
        (&["-m", "20000", url], "-m: 10000 requests"),
        (&["-D", "1", "--timing-script-file=/dev/null", url], "no URI available"),
    ] {
        let args: Vec<String> = line.iter().map(|arg| (*arg).to_owned()).collect();
        let ran = face(&args).expect(&[1]);
        assert!(ran.stderr.contains(found) && ran.stdout.is_empty(), "{line:?}: {ran:#?}");
    }
}

#[test]
fn counted_runs_over_http2() {
    let server = Nghttpd::start(false, &[]);
    let (short, long, missing) = (server.url("/"), server.url("/long"), server.url("/none"));
    alike(&["-n", "100", "-c", "4", "-m", "5", &short]).agree();
    alike(&["-n25", "-c3", "-t2", "-m10", &short, &long]).agree_without(&["traffic:"]);
    alike(&["-n", "7", &missing]).agree();
    alike(&["-n", "8", "-c", "2", "-w", "16", "-W", "20", "-f", "32K", &long]).agree();
    alike(&["-n", "4", "--header-table-size=0", "--encoder-header-table-size=0", &long]).agree();
    alike(&["-n", "6", "-c", "3", "-H", "X-A: b", "-H", "user-agent: me", &short]).agree();
    alike(&["-n20", "-c4", "-r2", "--rate-period=100ms", &short]).agree();
    // paths come from all URIs, the server from the first, or from the base
    let base = server.url("");
    alike(&["-n", "6", "-B", &base, "http://elsewhere.invalid/long", "/none"]).agree();
    let port = short.trim_end_matches('/').rsplit(':').next().unwrap();
    let there = format!("--connect-to=127.0.0.1:{port}");
    alike(&["-n", "3", &there, "http://shop.example/long"]).agree();
}

#[test]
fn bodies_input_files_and_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let keep = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name).to_str().unwrap().to_owned()
    };
    let server = Nghttpd::start(false, &["--echo-upload"]);
    let url = server.url("/");
    let body = keep("body", &"abc".repeat(20_000));
    alike(&["-n", "4", "-c", "2", "-d", &body, &url]).agree_without(&["traffic:"]);
    let list = keep("list", &format!("{url}\n/long\n/none\n"));
    alike(&["-n", "6", "-i", &list]).agree();
    let script = keep("script", &format!("0\t{url}\n\n20\t/long\n60.5\t/none\n"));
    alike(&["-c", "2", "--timing-script-file", &script]).agree();
    alike(&["-n", "9", "--timing-script-file", &script]).agree();
    let wrong = keep("wrong", &format!("0\t{url}\n10 /long\n"));
    alike(&["--timing-script-file", &wrong]).agree();
    let wrong = keep("late", &format!("soon\t{url}\n"));
    alike(&["--timing-script-file", &wrong]).agree();
    alike(&["-i", &keep("none", "")]).agree();
    log_lines(&url, folder.path());
}

/// Checks that `--log-file` has a line for each request: start, status, time.
fn log_lines(url: &str, folder: &Path) {
    for (name, program) in [("theirs", original as fn(&[String]) -> Ran), ("ours", face)] {
        let path = folder.join(name);
        let log = format!("--log-file={}", path.display());
        program(&["-n", "5", "-c", "2", &log, url].map(str::to_owned)).expect(&[0]);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Vec<i64>> = text
            .lines()
            .map(|line| line.split('\t').map(|word| word.parse().unwrap()).collect())
            .collect();
        assert_eq!(lines.len(), 5, "{name}: {text}");
        for line in lines {
            let &[start, status, took] = line.as_slice() else { panic!("{name}: {text}") };
            let this_century = 1_700_000_000_000_000..4_000_000_000_000_000;
            assert!(this_century.contains(&start), "{name}: {text}");
            assert!(status == 200 && (0..60_000_000).contains(&took), "{name}: {text}");
        }
    }
}

#[test]
fn timed_runs_and_rates() {
    let server = Nghttpd::start(false, &[]);
    let url = server.url("/");
    let moving = ["requests:", "status codes:", "traffic:"];
    let pair = both(&["-D", "1", "-c", "2", "-m", "5", &url]).agree_without(&moving);
    for ran in [&pair.ours, &pair.theirs] {
        let (done, good) = (requests(ran, " done"), requests(ran, " succeeded"));
        assert!(done > 10 && good == done && requests(ran, " total") == done, "{ran:#?}");
        assert_eq!(requests(ran, " errored"), 0);
    }
    let line = ["-D", "1", "--warm-up-time=500ms", "-c", "3", "-t", "2", &url];
    both(&line).agree_for_threads(&moving);
    // 2 clients at 20 a second: the first at once, the tenth after nine pauses
    let line = ["--rps", "20", "-n", "10", "-c", "2", &url];
    let pair = both(&line).agree_without(&["traffic:"]);
    let seconds = |ran: &Ran| -> f64 {
        let line = ran.stdout.lines().find(|line| line.starts_with("finished in")).unwrap();
        let text = line.split_whitespace().nth(2).unwrap().trim_end_matches(',');
        let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap());
        number.parse::<f64>().unwrap() * if unit == "ms" { 1e-3 } else { 1.0 }
    };
    for ran in [&pair.ours, &pair.theirs] {
        // four pauses of at least 50 ms, whatever else the machine does
        assert!(seconds(ran) >= 0.199, "{ran:#?}");
    }
}

#[test]
fn output_over_http1_agrees() {
    let nginx = Nginx::start("hello there\n");
    let url = nginx.url();
    alike(&["--h1", "-n", "50", "-c", "2", &url]).agree();
    alike(&["-p", "http/1.1", "-n", "40", "-c", "2", "-m", "4", &url]).agree();
    // h2c to a server of HTTP/1.1: nothing succeeds
    let pair = both(&["-n", "4", "-c", "2", &url]);
    for ran in [&pair.ours, &pair.theirs] {
        assert_eq!((requests(ran, " succeeded"), requests(ran, " failed")), (0, 4), "{ran:#?}");
        assert_eq!(ran.code, 0);
    }
}

#[test]
fn a_run_over_tls_prints_the_same() {
    let server = Nghttpd::start(true, &[]);
    let url = server.url("/long");
    alike(&["-n", "20", "-c", "2", "-m", "3", &url]).agree();
    both(&["-n", "2", "--tls13-ciphers=TLS_CHACHA20_POLY1305_SHA256", "--groups=P-256", &url])
        .agree();
    // a server without ALPN: uses HTTP/1.1 if that was offered, otherwise fails
    let old = TlsServer::start(&TlsOptions::default());
    both(&["-n", "4", "-c", "2", &old.url("/")]).agree_without(&["traffic:"]);
    let pair = both(&["--npn-list=h2", "-n", "2", "-c", "2", &old.url("/")]);
    for ran in [&pair.ours, &pair.theirs] {
        assert_eq!((requests(ran, " succeeded"), requests(ran, " failed")), (0, 2), "{ran:#?}");
        let text = "No supported protocol was negotiated. Supported protocols were:\nh2\n";
        assert_eq!(ran.stdout.matches(text).count(), 2, "{ran:#?}");
    }
}

/// Answers each request with the same bytes, and closes the connection if they have no length.
fn replying(reply: &'static [u8]) -> Scripted {
    Scripted::start(move |mut stream, _| {
        while crate::ab::request_bytes(&mut stream).is_some() {
            if stream.write_all(reply).is_err() || !reply.windows(7).any(|part| part == b"Length:")
            {
                return;
            }
        }
    })
}

#[test]
fn only_http1_is_offered_if_requested() {
    let options = TlsOptions { alpn: vec!["h2", "http/1.1"], ..TlsOptions::default() };
    let server = TlsServer::start(&options);
    let url = server.url("/");
    for option in ["--h1", "--npn-list=http/1.1"] {
        let pair = alike(&[option, "-n4", "-c2", &url]).agree();
        assert!(pair.ours.stdout.contains("Application protocol: http/1.1\n"), "{:#?}", pair.ours);
    }
}

#[test]
fn interim_and_endless_responses_count_as_by_h2load() {
    let early = replying(
        b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    );
    both(&["--h1", "-n3", &early.url("/")]).agree();
    let endless = replying(b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nhello");
    let pair = both(&["--h1", "-n4", &endless.url("/")]).agree();
    assert!(pair.ours.stdout.contains("4 total, 1 started, 0 done, 0 succeeded, 4 failed"));
    both(&["--h1", "-n6", "-c2", &endless.url("/")]).agree();
}

#[test]
fn small_windows_and_a_warm_up_without_a_duration() {
    let server = Nghttpd::start(false, &[]);
    let url = server.url("/");
    for option in ["-W10", "-W1", "--warm-up-time=2"] {
        alike(&[option, "-n4", "-c2", &url]).agree();
    }
}

#[test]
fn clients_without_a_descriptor_fail_alone() {
    let server = Nghttpd::start(false, &[]);
    let url = server.url("/");
    let limited = |program: &str| {
        let mut command = Command::new("sh");
        let line = format!("ulimit -n 40; exec {program} -n60 -c60 {url}");
        command.args(["-c", &line]).stdin(Stdio::null());
        finish(command, b"").expect(&[0])
    };
    let ours = limited(&format!("{} h2load", crate::support::binary().display()));
    for ran in [limited("h2load"), ours] {
        // their number depends on the other descriptors of a program
        let lines = ran.stderr.lines().filter(|line| *line == "client could not connect to host");
        let (failed, good) = (requests(&ran, " failed"), requests(&ran, " succeeded"));
        assert_eq!((lines.count() as u64, failed + good), (failed, 60), "{ran:#?}");
        assert!((5..60).contains(&good), "{ran:#?}");
    }
}

#[test]
fn a_missing_server_is_counted() {
    let gone = format!("http://127.0.0.1:{}/", free_port());
    both(&["-n", "10", "-c", "2", &gone]).agree();
    let ran = face(&["--rps", "1", "-n", "1000", &gone].map(str::to_owned)).expect(&[0]);
    assert_eq!(requests(&ran, " failed"), 1_000, "{ran:#?}");
}

/// nginx ends a connection by GOAWAY after N requests, and h2load fails the rest.
#[test]
fn a_limit_of_requests_per_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (pki, port) = (Pki::new(), free_port());
    let keep = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    keep("key", &pki.server.key);
    keep("cert", &pki.server.cert);
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {name};"))
        .concat();
    let text = format!(
        "daemon off; master_process off; pid pid; error_log error.log; events {{}} http {{ \
         {temporary} access_log off; server {{ listen 127.0.0.1:{port} ssl http2; \
         keepalive_requests 100; ssl_certificate cert; ssl_certificate_key key; \
         location / {{ return 200 hello; }} }} }}"
    );
    keep("nginx.conf", &text);
    let mut command = Command::new(crate::support::nginx::program());
    command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf", "-e", "error.log"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut nginx = command.spawn().unwrap();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(nginx.try_wait().unwrap().is_none(), "nginx ended: is port {port} taken?");
        std::thread::yield_now();
    }
    let url = format!("https://127.0.0.1:{port}/");
    let pair = both(&["-n", "150", &url]);
    nginx.kill().unwrap();
    nginx.wait().unwrap();
    let pair = pair.agree_without(&["traffic:"]);
    assert!(pair.ours.stdout.contains("Process Request Failure:50\n"), "{:#?}", pair.ours);
    assert_eq!(requests(&pair.ours, " failed"), 50);
}

#[test]
fn fields_are_shown_on_demand() {
    let server = Nghttpd::start(false, &[]);
    let url = server.url("/");
    let fields = |ran: &Ran| -> Vec<String> {
        let lines = ran.stdout.lines().filter(|line| line.starts_with("[stream_id="));
        lines.filter(|line| !line.contains(" date: ")).map(str::to_owned).collect()
    };
    let Pair { theirs, ours } = both(&["-v", "-n", "2", &url]);
    assert!(fields(&theirs).iter().any(|line| line == "[stream_id=3] :status: 200"), "{theirs:#?}");
    assert_eq!(fields(&ours), fields(&theirs));
}

#[test]
fn the_native_command_is_printed() {
    let native = |line: &[&str]| {
        let mut args = vec!["--native"];
        args.extend_from_slice(line);
        let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
        face(&args).expect(&[0]).stdout
    };
    assert_eq!(
        native(&["-n", "100", "-c", "4", "-m", "5", "-t", "2", "-w", "16", "http://h/a"]),
        "loadstone run http://h/a --http 2 -c 4 -n 100 --streams 5 --threads 2 --stream-window \
         65535\n"
    );
    assert_eq!(
        native(&["--h1", "-D", "5", "--warm-up-time=1s", "-c", "4", "-m", "2", "http://h/"]),
        "loadstone run http://h/ --http 1.1 -c 4 -d 5s --warmup 1s --pipeline 2 --threads 1\n"
    );
    let plan = native(&["--rps", "20", "-n", "10", "http://h/"]);
    assert!(
        plan.contains("pace = \"20/s\"") && plan.contains("loadstone run h2load.toml"),
        "{plan}"
    );
}
