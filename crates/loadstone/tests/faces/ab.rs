//! `loadstone ab` compared with ApacheBench: the same command lines against the same servers.
//! Measured values are masked; counts, bytes, sizes and all wording must be equal.

use crate::support::http::{read_request, response};
use crate::support::{Ran, Scripted, Site, finish, program, run};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

fn original(args: &[&str]) -> Ran {
    let mut command = Command::new("ab");
    command.args(args).stdin(Stdio::null()).env("LC_ALL", "C");
    finish(command, b"")
}

fn ours(args: &[&str]) -> Ran {
    run(&[&["ab"], args].concat())
}

/// Runs both programs, and requires the same exit code and text except for measured values.
#[track_caller]
fn same(args: &[&str]) -> (Ran, Ran) {
    let (theirs, ours) = (original(args), ours(args));
    assert_alike(args, &theirs, &ours);
    (theirs, ours)
}

#[track_caller]
fn assert_alike(args: &[&str], theirs: &Ran, ours: &Ran) {
    let text = format!("ab {}\ntheirs {theirs:#?}\nours {ours:#?}", args.join(" "));
    assert_eq!(masked(&theirs.stdout), masked(&ours.stdout), "{text}");
    assert_eq!(masked(&theirs.stderr), masked(&ours.stderr), "{text}");
    assert_eq!(theirs.code, ours.code, "{text}");
}

/// Lines with measured numbers, by their beginning (in HTML: by their content).
const MEASURED: [&str; 9] = [
    "Time taken for tests:",
    "Requests per second:",
    "Time per request:",
    "Transfer rate:",
    "kb/s ",
    "Connect: ",
    "Connect:<",
    "Processing:",
    "Waiting: ",
];

/// Masks measured numbers as `#`; removes the remarks on the distance of median and mean.
fn masked(text: &str) -> String {
    let mut lines = Vec::new();
    let mut percentages = false;
    for line in text.lines() {
        let remark =
            line.starts_with("WARNING: The median") || line.starts_with("ERROR: The median");
        if remark
            || line.starts_with("        These results")
            || line.starts_with("       deviation")
        {
            continue;
        }
        percentages |= line.starts_with("Percentage of");
        let times = line.starts_with("Total:  ") || line.contains(">Total:<");
        let date = line.to_ascii_lowercase().starts_with("date:");
        let measured = date || MEASURED.iter().any(|start| line.contains(start));
        lines.push(if percentages && line.contains('%') {
            // `  50%      3`: the percentage stays
            let (percent, rest) = line.split_once('%').unwrap();
            format!("{percent}%{}", digits_masked(rest))
        } else if measured || times {
            digits_masked(line)
        } else {
            line.to_owned()
        });
    }
    lines.join("\n")
}

/// Replaces numbers with their padding by one `#`.
fn digits_masked(text: &str) -> String {
    let mut out = String::new();
    for byte in text.chars() {
        match byte {
            '0'..='9' | '.' if out.ends_with('#') => {}
            '0'..='9' => {
                let kept = out.trim_end_matches(' ').len();
                out.truncate(kept);
                out.push('#');
            }
            other => out.push(other),
        }
    }
    out
}

#[test]
fn plain_runs_print_what_ab_prints() {
    let site = Site::start(&[]);
    let (hw, bytes) = (site.url("/hw"), site.url("/bytes/5000"));
    for args in [
        vec!["-n", "1", &hw],
        vec!["-n", "10", "-c", "2", &hw],
        vec!["-n20", "-kc4", &hw],
        vec!["-k", "-n", "10", &bytes],
        vec!["-n", "5", "-i", &hw],
        vec!["-n", "5", "-i", "-k", &hw],
        vec!["-S", "-n", "7", &bytes],
        vec!["-d", "-n", "7", &hw],
        vec!["-l", "-n", "4", &hw],
        vec!["-t", "20", "-n", "6", "-c", "3", &hw],
        vec!["-b", "65536", "-s", "20", "-B", "127.0.0.1", "-n", "3", &hw],
        vec!["-B", "localhost", "-n", "3", &hw],
        vec!["-Q", &hw],
        vec!["-m", "OPTIONS", "-n", "3", &hw],
    ] {
        same(&args);
    }
    let status = site.url("/status/404");
    same(&["-n", "6", "-c", "2", &status]);
    same(&["-n", "3", "-w", "-k", &status]);
}

#[test]
fn progress_goes_to_standard_error() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let (_, ran) = same(&["-n", "250", "-c", "5", "-k", &url]);
    assert_eq!(
        ran.stderr,
        "Completed 100 requests\nCompleted 200 requests\nFinished 250 requests\n"
    );
    same(&["-q", "-n", "200", "-k", &url]);
    same(&["-w", "-n", "160", "-k", &url]);
}

/// Returns the output of a command on a terminal made by script(1), with both streams.
fn on_a_terminal(front: &str, args: &[&str]) -> String {
    let mut command = Command::new("script");
    let line = format!("{front} {}", args.join(" "));
    let plain = program::<&str>(&[]);
    command.args(["-qec", &line, "/dev/null"]).env("SHELL", "/bin/sh").env("LC_ALL", "C");
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    finish(command, b"").stdout.replace('\r', "")
}

#[test]
fn a_terminal_shows_the_end_before_the_results() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let args = ["-n", "200", "-k", &url];
    let ours = format!("{} ab", program::<&str>(&[]).get_program().to_string_lossy());
    for front in ["ab", &ours] {
        let text = on_a_terminal(front, &args);
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(at("Completed 200 requests") < at("Finished 200 requests"), "{text}");
        assert!(at("Finished 200 requests") < at("Server Software:"), "{text}");
    }
}

#[test]
fn tables_are_printed_in_html() {
    let site = Site::start(&[]);
    let url = site.url("/bytes/77");
    same(&["-w", "-n", "3", &url]);
    same(&["-x", "border=1", "-y", "class=row", "-z", "class=cell", "-n", "4", "-c", "2", &url]);
}

#[test]
fn bodies_are_posted_and_put() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    std::fs::write(&file, "a=1&b=2").unwrap();
    let (file, url) = (file.to_str().unwrap(), site.url("/echo"));
    same(&["-n", "4", "-p", file, "-T", "application/x-www-form-urlencoded", &url]);
    same(&["-n", "4", "-c", "2", "-k", "-u", file, &url]);
    same(&["-n", "2", "-w", "-p", file, &url]);
    same(&["-n", "2", "-p", file, "-m", "PATCH", &url]);
}

#[test]
fn sent_and_received_bytes_are_reported() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let login = ["-C", "a=1", "-C", "b=2", "-A", "fred:flintstone", "-P", "me:too"];
    for level in ["1", "2", "3", "4"] {
        same(&[&["-v", level, "-n", "2"], login.as_slice(), &[&url]].concat());
    }
    same(&["-v", "2", "-n", "1", "-k", "-H", "Host: shop.example", "-H", "X-Y: z", &url]);
    let missing = site.url("/nothing");
    same(&["-v", "3", "-n", "1", &missing]);
}

/// Server that records its requests and answers each with `body`.
struct Listening {
    server: Scripted,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Listening {
    fn start(body: impl Fn(usize) -> String + Send + Sync + 'static) -> Listening {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (book, count) = (Arc::clone(&heard), AtomicUsize::new(0));
        let server = Scripted::start(move |mut stream, _| {
            let Some(request) = request_bytes(&mut stream) else { return };
            book.lock().unwrap_or_else(PoisonError::into_inner).push(request);
            let body = body(count.fetch_add(1, Ordering::SeqCst));
            let head =
                format!("HTTP/1.0 200 OK\r\nServer: two words\r\nContent-Length: {}", body.len());
            stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).ok();
        });
        Listening { server, heard }
    }

    fn take(&self) -> Vec<String> {
        let heard = std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner));
        heard.iter().map(|request| String::from_utf8_lossy(request).into_owned()).collect()
    }
}

/// Head and body of one request, as received.
pub(crate) fn request_bytes(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let from = bytes.len();
        reader.read_until(b'\n', &mut bytes).ok().filter(|count| *count > 0)?;
        let line = String::from_utf8_lossy(&bytes[from..]).to_ascii_lowercase();
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let head = bytes.len();
    bytes.resize(head + length, 0);
    reader.read_exact(&mut bytes[head..]).ok()?;
    Some(bytes)
}

#[test]
fn the_bytes_on_the_wire_are_the_same() {
    let server = Listening::start(|_| "hello".to_owned());
    let url = server.server.url("/a/b?c=%20d");
    let proxy = server.server.address.to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    std::fs::write(&file, b"\x00\xff raw \r\n\r\n").unwrap();
    let file = file.to_str().unwrap();
    for args in [
        vec!["-n", "2", &url],
        vec!["-n", "1", "-k", "-C", "x=y", "-A", " u:p", "-P", "v:q", &url],
        vec!["-n", "1", "-H", "accept: text/html", "-H", "User-Agent: me", "-H", "HOST: h", &url],
        vec!["-n", "1", "-p", file, "-T", "a/b", "-H", "X-Same: 1", "-H", "X-Same: 2", &url],
        vec!["-n", "2", "-X", &proxy, "http://nowhere.invalid:81/x#y"],
    ] {
        let (theirs, ours) = (original(&args), server.take());
        let first = (theirs, ours);
        let second = (self::ours(&args), server.take());
        assert_eq!(first.1, second.1, "{args:?}");
        assert!(!first.1.is_empty(), "{args:?}");
        assert_alike(&args, &first.0, &second.0);
    }
}

#[test]
fn another_length_than_the_first_is_a_failure() {
    for option in ["-q", "-l"] {
        // the third response of four is longer
        let server = Listening::start(|index| "x".repeat(if index % 4 == 2 { 9 } else { 5 }));
        let url = server.server.url("/");
        let (_, ran) = same(&[option, "-n", "4", &url]);
        let failed = if option == "-l" { 0 } else { 1 };
        assert!(ran.stdout.contains(&format!("Failed requests:        {failed}\n")), "{ran:#?}");
    }
}

/// Answers each request head with the same bytes, then closes the connection unless the request
/// keeps it alive.
fn replying(reply: &'static str) -> Scripted {
    Scripted::start(move |mut stream, _| {
        while request_bytes(&mut stream).is_some() {
            let sent = stream.write_all(reply.as_bytes());
            if sent.is_err() || !reply.contains("keep-alive") {
                return;
            }
        }
    })
}

#[test]
fn an_unusable_length_becomes_the_received_length() {
    let kept = "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: abc\r\n\
                Connection: keep-alive\r\n\r\nhello";
    let server = replying(kept);
    let (_, ran) = same(&["-q", "-k", "-n", "3", &server.url("/")]);
    assert!(ran.stdout.contains("Keep-Alive requests:    3\n"), "{ran:#?}");
    let closed = "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: abc\r\n\
                  Connection: close\r\n\r\nhello";
    same(&["-q", "-n", "3", &replying(closed).url("/")]);
}

#[test]
fn any_version_and_any_method_are_accepted() {
    for version in ["2.0", "0.9", "1.7"] {
        let text = format!("HTTP/{version} 200 OK\r\nServer: x\r\nContent-Length: 2\r\n\r\nhi");
        let server = replying(text.leak());
        same(&["-q", "-n", "3", &server.url("/")]);
    }
    let server = Listening::start(|_| "hello".to_owned());
    for method in ["", "G E T"] {
        let args = ["-q", "-m", method, "-n", "2", &server.server.url("/")];
        let (theirs, heard) = (original(&args), server.take());
        assert_alike(&args, &theirs, &ours(&args));
        assert_eq!(server.take(), heard, "{method:?}");
    }
}

/// Counts connections that are reset as soon as they have sent something.
#[test]
fn the_first_reset_is_the_last_request() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = Scripted::start(move |mut stream, _| {
        // unread data turns the close into a reset
        if stream.read(&mut [0; 1]).is_ok_and(|read| read == 1) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let (_, ran) = same(&["-q", "-n", "8", &server.url("/")]);
    assert_eq!(asked.swap(0, Ordering::SeqCst), 2, "one of each program: {ran:#?}");
}

#[test]
fn a_proxy_that_refuses_the_tunnel_is_a_failure() {
    let server = Listening::start(|_| String::new());
    let refusing = Scripted::start(|mut stream, _| {
        if request_bytes(&mut stream).is_some() {
            stream.write_all(b"HTTP/1.1 501 No\r\nContent-Length: 0\r\n\r\n").ok();
        }
    });
    let proxy = refusing.address.to_string();
    let ran = ours(&["-q", "-n", "2", "-X", &proxy, "https://other.invalid/"]).expect(&[0]);
    assert!(ran.stdout.contains("Failed requests:        2\n"), "{ran:#?}");
    let proxy = server.server.address.to_string();
    ours(&["-q", "-n", "1", "-X", &proxy, "https://other.invalid/"]);
    let connect = server.take().concat();
    assert!(connect.contains("User-Agent: ApacheBench/2.3\r\n"), "{connect}");
}

/// A closed reader of standard output neither ends the program nor changes the exit code.
#[test]
fn a_reader_may_leave() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let binary = program::<&str>(&[]).get_program().to_string_lossy().into_owned();
    for line in [
        format!("ab -q -n 20 {url}"),
        format!("wrk -t1 -c1 -d1s {url}"),
        format!("h2load --h1 -n3 {url}"),
        format!("httperf --server 127.0.0.1 --port {} --uri /hw", site.port()),
    ] {
        for sink in ["| true", "> /dev/full"] {
            let mut command = Command::new("bash");
            command.args(["-c", &format!("{binary} {line} {sink}; exit ${{PIPESTATUS[0]}}")]);
            command.stdin(Stdio::null());
            finish(command, b"").expect(&[0]);
        }
    }
    let asked = site.stop().requests;
    assert!(asked >= 2 * (20 + 2 + 3 + 1), "{asked}");
}

#[test]
fn percentiles_and_requests_as_files() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let shape = |of: fn(&[&str]) -> Ran, prefix: &str| {
        let (csv, tsv) = (path(&format!("{prefix}.csv")), path(&format!("{prefix}.tsv")));
        let ran = of(&["-n", "30", "-c", "3", "-e", &csv, "-g", &tsv, &url]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        let csv: Vec<String> = read(&csv).lines().map(digits_of_time_masked).collect();
        let tsv: Vec<usize> = read(&tsv).lines().map(|line| line.split('\t').count()).collect();
        let header = read(&path(&format!("{prefix}.tsv"))).lines().next().unwrap().to_owned();
        (csv, tsv, header)
    };
    let (theirs, ours) = (shape(original, "theirs"), shape(ours, "ours"));
    assert_eq!(theirs, ours);
    assert_eq!((ours.0.len(), ours.1.len()), (102, 31));
    let nowhere = path("no/such/folder");
    same(&["-n", "2", "-e", &nowhere, &url]);
    same(&["-n", "2", "-g", &nowhere, &url]);
}

/// Masks digits of times: `17,3.021` becomes `17,#.###`.
fn digits_of_time_masked(line: &str) -> String {
    let (percent, time) = line.split_once(',').unwrap_or((line, ""));
    let time: String = time.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
    format!("{percent},{}", time.trim_start_matches('#'))
}

#[test]
fn invalid_requests_are_refused_in_the_same_words() {
    let missing = "/no/such/file";
    let page = "http://127.0.0.1:1/";
    let long = format!("X-Long: {}", "x".repeat(8_192));
    for args in [
        vec![],
        vec!["-h"],
        vec!["-V"],
        vec!["http://127.0.0.1:1"],
        vec!["-n", "0", page],
        vec!["-n", "x", page],
        vec!["-c", "5", "-n", "2", page],
        vec!["-c", "-1", page],
        vec!["-c", "300000", "-n", "400000", page],
        vec!["-c", "0", page],
        vec!["-n"],
        vec!["-z"],
        vec![page, "-n", "2"],
        vec!["-Qk", page],
        vec!["--", page, page],
        vec!["-p", missing, page],
        vec!["-u", missing, page],
        vec!["-i", "-p", "/dev/null", page],
        vec!["-p", "/dev/null", "-i", page],
        vec!["-m", "X", "-u", "/dev/null", page],
        vec!["-A", &long, page],
        vec!["http://127.0.0.1:99999/"],
        vec!["http://:80/"],
        vec!["http://[::1/"],
        vec!["-B", "192.0.2.1", page],
        vec!["-E", missing, "https://127.0.0.1:1/"],
        vec!["-E", "/dev/null", page],
    ] {
        let (theirs, ours) = (original(&args), ours(&args));
        if args.contains(&"-E") {
            // messages added by OpenSSL are OpenSSL's
            let first = |ran: &Ran| ran.stderr.lines().next().map(str::to_owned);
            assert_eq!((first(&theirs), theirs.code), (first(&ours), ours.code));
        } else {
            assert_alike(&args, &theirs, &ours);
        }
    }
    for url in ["https://127.0.0.1:1/", page] {
        let args = ["-Z", "bogus", url];
        let (theirs, ours) = (original(&args), ours(&args));
        assert!(!ours.stderr.is_empty(), "{ours:#?}");
        assert!(theirs.stderr.starts_with(&ours.stderr), "{theirs:#?} {ours:#?}");
        assert_eq!((theirs.code, theirs.stdout), (ours.code, ours.stdout));
    }
    let old = ours(&["-f", "TLS1", "https://127.0.0.1:1/"]);
    assert_eq!(old.code, 1, "{old:#?}");
    assert!(old.stderr.contains("TLS 1.2"), "{old:#?}");
}

#[test]
fn closed_ports_and_unknown_names_are_reported_as_by_ab() {
    let port = crate::support::free_port();
    let url = format!("http://127.0.0.1:{port}/");
    same(&["-n", "3", "-c", "2", &url]);
    same(&["-k", "-w", &url]);
    // a resolver may not know the name; both programs ask the same resolver
    same(&["http://no-such-name.invalid/"]);
    same(&["-X", "no-such-name.invalid:80", "http://127.0.0.1/"]);
    same(&["-X", "127.0.0.1", "http://127.0.0.1/"]);
    // the port begins at the first colon
    same(&["-X", &format!("[::1]:{port}"), "http://127.0.0.1/"]);
    same(&["-X", "[::1]", "http://127.0.0.1/"]);
    same(&["-B", "no-such-name.invalid", &url]);
    same(&["http://name:word@127.0.0.1:1/"]);
}

#[test]
fn many_failures_end_the_run_or_are_counted() {
    let port = crate::support::free_port();
    let url = format!("http://127.0.0.1:{port}/");
    same(&["-n", "30", "-c", "12", &url]);
    // ab counts each of them one and a half times
    let counted = |ran: &Ran| {
        let kept = ran
            .stdout
            .lines()
            .filter(|line| !line.starts_with("Failed requests:") && !line.contains("Receive: "));
        (masked(&kept.collect::<Vec<_>>().join("\n")), ran.stderr.clone(), ran.code)
    };
    for args in [vec!["-r", "-n", "13", &url], vec!["-r", "-n", "30", "-c", "12", &url]] {
        let (theirs, ours) = (original(&args), ours(&args));
        assert_eq!(counted(&theirs), counted(&ours), "{theirs:#?}\n{ours:#?}");
        assert!(ours.stdout.contains(&format!("Complete requests:      {}\n", args[2])));
    }
}

#[test]
fn a_time_limit_sets_the_requests_at_its_position() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    // 50,000 at the time of the read, so that five at once are possible
    let args = ["-q", "-d", "-c", "5", "-n", "2", "-t", "1", &url];
    let (theirs, ours) = (original(&args), ours(&args));
    let masked = |ran: &Ran| digits_masked(&masked(&ran.stdout));
    assert_eq!(masked(&theirs), masked(&ours), "{theirs:#?}\n{ours:#?}");
    assert_eq!((theirs.code, theirs.stderr), (ours.code, ours.stderr));
    let complete = figure(&ours.stdout, "Complete requests:", "");
    assert!(complete > 2.0 && complete <= 50_000.0, "{complete}");
    same(&["-t", "1", "-n", "2", "-c", "5", &url]);
    same(&["-t", "30", "-n", "7", "-c", "5", &url]);
}

#[test]
fn a_name_with_two_addresses_is_tried_in_order() {
    let site = Site::start(&[]);
    let url = format!("http://localhost:{}/hw", site.port());
    same(&["-n", "5", "-c", "2", &url]);
}

#[test]
fn a_reset_ends_the_run_unless_it_may_not() {
    let start = || {
        Scripted::start(|mut stream, _| {
            let Some(_) = read_request(&mut BufReader::new(&mut stream)) else { return };
            let socket = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
            assert!(socket.is_ok());
        })
    };
    let server = start();
    same(&["-n", "4", &server.url("/")]);
    let server = start();
    let url = server.url("/");
    let args = ["-r", "-n", "4", "-v", "1", &url];
    let (theirs, ran) = (original(&args), ours(&args));
    // ab counts such a reset a second time, as an exception
    let once = |ran: &Ran| {
        let kept =
            ran.stdout.lines().filter(|line| !line.contains("Failed") && !line.contains("Exc"));
        (masked(&kept.collect::<Vec<_>>().join("\n")), ran.stderr.clone(), ran.code)
    };
    assert_eq!(once(&theirs), once(&ran));
    assert!(ran.stdout.contains("(Connect: 0, Receive: 4, Length: 0, Exceptions: 0)"), "{ran:#?}");
    // and if it counts differently, that is reported
    let server = start();
    let noted = ours(&["--notes", "-r", "-n", "4", &server.url("/")]).expect(&[0]);
    assert!(noted.stderr.contains("a failed connection counts once"), "{noted:#?}");
    let site = Site::start(&[]);
    let sound = ours(&["--notes", "-r", "-n", "4", &site.url("/hw")]).expect(&[0]);
    assert!(!sound.stderr.contains("a failed connection"), "{sound:#?}");
}

#[test]
fn silence_ends_the_run_after_its_time() {
    let site = Site::start(&[("never-answer", "")]);
    same(&["-s", "1", "-n", "2", &site.url("/hw")]);
    // the limit of `-t` is checked on events
    same(&["-s", "2", "-t", "1", "-n", "2", &site.url("/hw")]);
    same(&["-s", "1", "-t", "2", "-n", "2", &site.url("/hw")]);
}

#[test]
fn the_first_response_beyond_the_limit_is_the_last() {
    let site = Site::start(&[("delay", "1500ms")]);
    same(&["-t", "1", "-n", "5", &site.url("/hw")]);
}

/// Runs both programs against a server that sends `response` and closes the connection; ports are
/// not compared.
#[track_caller]
fn alike_on(response: &'static [u8], options: &[&str]) -> Ran {
    let start = || {
        Scripted::start(move |mut stream, _| {
            read_request(&mut BufReader::new(&mut stream));
            stream.write_all(response).ok();
        })
    };
    let (one, other) = (start(), start());
    let mut theirs = original(&[options, &[&one.url("/")]].concat());
    let mut ours = ours(&[options, &[&other.url("/")]].concat());
    for (ran, url) in [(&mut theirs, one.url("")), (&mut ours, other.url(""))] {
        let port = url.trim_end_matches('/').rsplit(':').next().unwrap();
        ran.stdout = ran.stdout.replace(port, "PORT");
    }
    assert_alike(&[options, &[&response.escape_ascii().to_string()]].concat(), &theirs, &ours);
    ours
}

#[test]
fn short_and_broken_responses_count_as_complete() {
    for response in [
        &b"HTTP/1.0 200 OK\r\nContent-Length: 50\r\n\r\nshort"[..],
        b"HTTP/1.1 500 No\r\nContent-Length: 50\r\n\r\nshort",
        b"HTTP/1.0 200 OK\r\nServer: x",
        b"",
    ] {
        alike_on(response, &["-n", "3"]);
        alike_on(response, &["-n", "3", "-v", "3"]);
    }
}

#[test]
fn responses_without_a_head_count_as_by_ab() {
    for response in [
        &b"no head at all"[..],
        b"HT",
        b"four words\r\n\r\nand a body",
        b"four words\n\nand a body",
        b"HTTP/2 204 None\r\n\r\n",
        b"ICY 200 OK\r\nServer: cast\r\n\r\nlisten",
        b"so says HTTP/1.0 200\r\nServer: odd one\r\n\r\nbody",
    ] {
        alike_on(response, &["-n", "5", "-c", "2"]);
        alike_on(response, &["-n", "3", "-k"]);
        alike_on(response, &["-n", "2", "-i", "-v", "3"]);
    }
    let ran = alike_on(b"no head at all", &["-n", "5"]);
    assert!(ran.stdout.contains("Complete requests:      5\n"), "{ran:#?}");
    assert!(ran.stdout.contains("Total transferred:      70 bytes\n"), "{ran:#?}");
    assert!(!ran.stdout.contains("Non-2xx"), "{ran:#?}");
}

/// Waits until the server has answered, then interrupts the program.
fn interrupted(mut command: Command, answered: &AtomicUsize) -> Ran {
    let before = answered.load(Ordering::SeqCst);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(20);
    while answered.load(Ordering::SeqCst) < before + 3 {
        assert!(Instant::now() < limit, "the server was never asked");
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = Child::wait_with_output(child).unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn an_interrupt_prints_the_partial_result() {
    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    let server = Scripted::start(move |mut stream, _| {
        read_request(&mut BufReader::new(&mut stream));
        stream.write_all(&response(200, "", "hello")).ok();
        count.fetch_add(1, Ordering::SeqCst);
    });
    let url = server.url("/");
    let args = ["-q", "-d", "-n", "40000", &url];
    let mut theirs = Command::new("ab");
    theirs.args(args);
    let theirs = interrupted(theirs, &answered);
    let ours = interrupted(program(&[&["ab"], args.as_slice()].concat()), &answered);
    assert_eq!((theirs.code, ours.code), (1, 1));
    let all = |text: &str| digits_masked(&masked(text));
    assert_eq!(all(&theirs.stdout), all(&ours.stdout));
}

/// OpenSSL's own server on a port of its choice, which serves the files of a folder.
struct Openssl {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Openssl {
    fn start(extra: &[&str]) -> Openssl {
        let folder = tempfile::tempdir().unwrap();
        let pki = crate::support::tls::Pki::new();
        let keep = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        keep("cert.pem", &pki.server.cert);
        keep("key.pem", &pki.server.key);
        keep("page", "hello over TLS\n");
        let mut command = Command::new("openssl");
        command.args([
            "s_server",
            "-accept",
            "127.0.0.1:0",
            "-cert",
            "cert.pem",
            "-key",
            "key.pem",
        ]);
        command.args(["-WWW"]).args(extra).current_dir(folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next().unwrap().unwrap();
            if let Some(address) = line.strip_prefix("ACCEPT ") {
                break address.rsplit_once(':').unwrap().1.parse().unwrap();
            }
        };
        // it writes on for each connection
        std::thread::spawn(move || lines.for_each(drop));
        Openssl { child, folder, port }
    }
}

impl Drop for Openssl {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        assert!(self.folder.path().exists());
    }
}

#[test]
fn lines_about_tls() {
    for extra in [&["-tls1_3"][..], &["-tls1_2"], &["-tls1_3", "-groups", "P-256"]] {
        let server = Openssl::start(extra);
        let by_name = format!("https://localhost:{}/page", server.port);
        let by_address = format!("https://127.0.0.1:{}/page", server.port);
        same(&["-n", "3", &by_name]);
        same(&["-n", "2", &by_address]);
        same(&["-n", "2", "-I", &by_name]);
        if extra.len() == 1 {
            let protocol = if extra[0] == "-tls1_3" { "TLS1.3" } else { "TLS1.2" };
            same(&["-n", "2", "-f", protocol, &by_name]);
        }
    }
    let server = Openssl::start(&["-tls1_2"]);
    let url = format!("https://localhost:{}/page", server.port);
    same(&["-n", "2", "-Z", "ECDHE-ECDSA-AES128-GCM-SHA256", &url]);
    same(&["-n", "2", "-Z", "HIGH:!AES256:!CHACHA20", "-H", "Host: shop.example", &url]);
}

/// Returns the number after a label, as scripts extract it with a pattern like
/// `^label:\s+([0-9.]+)`.
fn figure(text: &str, label: &str, unit: &str) -> f64 {
    let found = text.lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix(label)?.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[end..].trim_start().starts_with(unit).then(|| rest[..end].parse().ok())?
    });
    found.unwrap_or_else(|| panic!("no {label} … {unit} in {text}"))
}

#[test]
fn output_parsed_by_scripts_is_present() {
    let site = Site::start(&[]);
    let ran = ours(&["-n", "40", "-c", "4", "-k", &site.url("/hw")]);
    let text = &ran.stdout;
    for (label, unit) in [
        ("Requests per second:", "[#/sec] (mean)"),
        ("Time per request:", "[ms] (mean)"),
        ("Time per request:", "[ms] (mean, across all concurrent requests)"),
        ("Transfer rate:", "[Kbytes/sec] received"),
        ("Time taken for tests:", "seconds"),
    ] {
        assert!(figure(text, label, unit) > 0.0, "{label} {unit}");
    }
    assert_eq!(figure(text, "Complete requests:", "") as u64, 40);
    assert_eq!(figure(text, "Failed requests:", "") as u64, 0);
    assert_eq!(figure(text, "Keep-Alive requests:", "") as u64, 40);
    for percent in ["50%", "66%", "75%", "80%", "90%", "95%", "98%", "99%", "100%"] {
        assert!(figure(text, percent, "") >= 0.0);
    }
    // rates and times are of the same run: requests × time = concurrency
    let product = figure(text, "Requests per second:", "[#/sec]")
        * figure(text, "Time per request:", "[ms] (mean)");
    assert!((product / 4_000.0 - 1.0).abs() < 0.05, "{product}");
}

#[test]
fn native_prints_the_equal_command_of_loadstone() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let native = ours(&["--native", "-n", "7", "-c", "2", "-H", "X-A: b c", &url]).expect(&[0]);
    assert_eq!(
        native.stdout,
        format!(
            "loadstone run {url} -c 2 -n 7 --http 1.0 --calls 1 -H 'X-A: b c' --progress-timeout 30s\n"
        )
    );
    // by its own file name
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("ab");
    std::os::unix::fs::symlink(crate::support::binary(), &link).unwrap();
    let mut command = Command::new(&link);
    command.args(["-n", "2", &url]).stdin(Stdio::null());
    let ran = finish(command, b"");
    assert!(ran.stdout.starts_with("This is ApacheBench, Version 2.3"), "{ran:#?}");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    // notes are for terminals, or on request
    let ran = ours(&["--strict", "-n", "4", &url]).expect(&[0]);
    assert_eq!(ran.stderr, "");
}
