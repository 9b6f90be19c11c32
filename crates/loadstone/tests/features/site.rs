//! `loadstone site`: each option takes effect, as seen by an independent client.

use crate::support::{program, run};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The command in a separate process.
struct Server {
    child: Child,
    /// First line of its output.
    line: String,
    options: Vec<String>,
}

impl Server {
    #[track_caller]
    fn start(options: &[&str]) -> Server {
        let mut args = vec!["site", "--listen", "127.0.0.1:0"];
        args.extend(options);
        Server::spawn(program(&args), options)
    }

    #[track_caller]
    fn spawn(mut command: Command, options: &[&str]) -> Server {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let options = options.iter().map(|&option| option.to_owned()).collect();
        Server { child, line: line.trim_end().to_owned(), options }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.line.trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Returns everything received on a new connection until the site closes it.
    fn get(&self, path: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(last(path).as_bytes()).unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        String::from_utf8_lossy(&response).into_owned()
    }

    /// Ends the site with a service manager's signal; returns the exit code and the output.
    fn stop(mut self) -> (i32, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (self.child.wait().unwrap().code().unwrap(), text)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        SEEN.with_borrow_mut(|seen| seen.extend(self.options.clone()));
    }
}

thread_local! {
    /// Options of the servers that this thread started.
    static SEEN: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

fn last(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
}

/// Returns the bytes received within a moment; empty if the peer is silent.
fn soon(stream: &mut TcpStream) -> Result<usize, ErrorKind> {
    stream.set_read_timeout(Some(Duration::from_millis(150))).unwrap();
    stream.read(&mut [0; 4096]).map_err(|error| match error.kind() {
        ErrorKind::TimedOut => ErrorKind::WouldBlock,
        kind => kind,
    })
}

#[test]
fn every_option_of_the_site_arrives() {
    listening();
    resources();
    limits();
    times();
    shares();
    misbehaviour();
    weaknesses();
    language_model();
    let seen = SEEN.with_borrow(BTreeSet::clone);
    // over QUIC they are tested in http3.rs
    let here = |name: &str| !["http3", "early-data"].contains(&name);
    for option in ::site::OPTIONS.iter().filter(|option| here(option.name)) {
        assert!(seen.contains(&format!("--{}", option.name)), "--{} is not tested", option.name);
    }
}

/// Minimum time of a response to `/hw`, on a separate connection.
fn takes(server: &Server, span: Duration) {
    let before = Instant::now();
    let response = server.get("/hw");
    assert!(before.elapsed() >= span, "{:?} for {response}", before.elapsed());
}

/// Two tokens at 20/s, the first after 60 ms.
fn language_model() {
    let server = Server::start(&["--tokens", "20/s", "--ttft", "60ms"]);
    let asked = r#""messages": [{"role": "user", "content": "x"}]"#;
    let body = format!(r#"{{"model": "m", "stream": true, "max_tokens": 2, {asked}}}"#);
    let mut stream = server.connect();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nConnection: close\r\n";
    let before = Instant::now();
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(before.elapsed() >= Duration::from_millis(110), "{:?}", before.elapsed());
    assert!(response.contains("data: [DONE]"), "{response}");
}

fn weaknesses() {
    let ms = Duration::from_millis;
    // responses are sent at the ticks of one clock: the third arrives two ticks after the first
    let ticking = Server::start(&["--quantum", "60ms"]);
    let before = Instant::now();
    for _ in 0..3 {
        takes(&ticking, ms(0));
    }
    assert!(before.elapsed() >= ms(120), "{:?}", before.elapsed());
    takes(&Server::start(&["--cold", "1h:3", "--delay", "30ms"]), ms(90));
    takes(&Server::start(&["--service", "40ms", "--workers", "2"]), ms(40));
    let leaking = Server::start(&["--leak", "60ms"]);
    takes(&leaking, ms(0));
    takes(&leaking, ms(60));
    takes(&leaking, ms(120));
    let other = Server::start(&["--delay", "1ms", "--other-delay", "80ms"]);
    takes(&other, ms(1));
    takes(&other, ms(80));
    let crowded = Server::start(&["--delay", "80ms", "--contention", "1:0"]);
    let mut first = crowded.connect();
    let before = Instant::now();
    first.write_all(request("/hw").as_bytes()).unwrap();
    let mut second = crowded.connect();
    second.write_all(request("/hw").as_bytes()).unwrap();
    let both = [&mut first, &mut second].map(|stream| stream.read(&mut [0; 4096]).unwrap());
    assert!(both.iter().all(|count| *count > 0));
    assert!(before.elapsed() >= ms(160), "{:?}", before.elapsed());
    let range = Server::start(&["--range", "no-date"]).get(faulty::PATH);
    assert!(range.starts_with("HTTP/1.1 200 ") && !range.contains("\r\nDate:"), "{range}");
    let limited = Server::start(&["--rate-limit", "0.01/s:2:503"]);
    let statuses = [(); 3].map(|()| limited.get("/hw")[9..12].to_owned());
    assert_eq!(statuses, ["200", "200", "503"]);
    let late = Server::start(&["--late", "100%:60ms"]);
    takes(&late, ms(60));
    assert!(late.get("/hw").starts_with("HTTP/1.1 504"));
    let apart = Server::start(&["--nagle"]);
    assert!(apart.get("/hw").ends_with("\r\n\r\nhello world"));
    let line = Server::start(&["--bandwidth", "10000B/s"]);
    let before = Instant::now();
    assert!(line.get("/bytes/1000").len() > 1_000);
    assert!(before.elapsed() >= ms(90), "{:?}", before.elapsed());
    let slow = Server::start(&["--accept-every", "80ms", "--backlog", "5"]);
    let before = Instant::now();
    for _ in 0..3 {
        assert!(slow.get("/hw").ends_with("hello world"));
    }
    assert!(before.elapsed() >= ms(160), "{:?}", before.elapsed());
}

fn listening() {
    let server = Server::start(&[]);
    assert!(server.line.starts_with("http://127.0.0.1:"), "{}", server.line);
    assert!(server.get("/hw").ends_with("\r\n\r\nhello world"));
    let (code, found) = server.stop();
    assert_eq!(code, 0);
    assert!(found.contains("served 1 request"), "{found}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listen = format!("unix:{}", path.display());
    let options = ["--listen", &listen];
    let server = Server::spawn(program(&["site", options[0], options[1]]), &options);
    assert_eq!(server.line, listen);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(last("/hw").as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("hello world"), "{response}");
    assert_eq!(server.stop().0, 0);
    assert!(!path.exists(), "the socket stays behind");
}

fn resources() {
    let threads = |options: &[&str]| {
        let server = Server::start(options);
        server.get("/hw");
        let folder = format!("/proc/{}", server.child.id());
        let status = std::fs::read_to_string(format!("{folder}/status")).unwrap();
        let tasks = std::fs::read_dir(format!("{folder}/task")).unwrap().flatten();
        let cores = |entry: std::fs::DirEntry| {
            let status = std::fs::read_to_string(entry.path().join("status")).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            line.unwrap().trim().to_owned()
        };
        assert!(status.contains("\nThreads:"));
        tasks.map(cores).collect::<Vec<String>>()
    };
    assert_eq!(threads(&["--threads", "3"]).len(), threads(&[]).len() + 2);
    let core = crate::peek::own_cores()[0].to_string();
    assert!(threads(&["--cpus", &core]).contains(&core));

    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let server = Server::start(&["--log", log.to_str().unwrap()]);
    server.get("/bytes/17");
    assert_eq!(server.stop().0, 0);
    let lines = std::fs::read_to_string(&log).unwrap();
    assert!(lines.ends_with("\"GET /bytes/17 HTTP/1.1\" 200 17\n"), "{lines}");

    let server = Server::start(&["--files", "webstone-like"]);
    let response = server.get("/file5k.html");
    assert_eq!(response.split_once("\r\n\r\n").unwrap().1.len(), 5_125);
    assert!(server.get("/file6k.html").starts_with("HTTP/1.1 404 "));
    assert!(server.get("/hw").ends_with("hello world"));

    let server = Server::start(&["--null"]);
    let mut stream = server.connect();
    stream.write_all(request("/anything").as_bytes()).unwrap();
    let mut response = [0; 4096];
    let count = stream.read(&mut response).unwrap();
    let response = std::str::from_utf8(&response[..count]).unwrap();
    assert_eq!(response.split_once("\r\n\r\n").unwrap().1.len(), 13, "{response}");
}

fn limits() {
    let server = Server::start(&["--uri-max", "8"]);
    assert!(server.get("/hw?1234").starts_with("HTTP/1.1 200 "));
    assert!(server.get("/hw?12345").starts_with("HTTP/1.1 414 "));
    let post = |options: &[&str]| {
        let server = Server::start(options);
        let mut stream = server.connect();
        let head =
            "POST /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 20\r\n\r\n";
        stream.write_all(format!("{head}{}", "x".repeat(20)).as_bytes()).unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).ok();
        String::from_utf8(response).unwrap()
    };
    assert!(post(&["--body-max", "10"]).starts_with("HTTP/1.1 413 "));
    assert!(post(&["--body-max", "20"]).starts_with("HTTP/1.1 200 "));

    let server = Server::start(&["--connections-max", "1"]);
    let mut first = server.connect();
    first.write_all(request("/hw").as_bytes()).unwrap();
    assert!(first.read(&mut [0; 4096]).unwrap() > 0);
    let mut second = server.connect();
    second.write_all(request("/hw").as_bytes()).unwrap();
    assert_eq!(soon(&mut second), Err(ErrorKind::WouldBlock));
    drop(first);
    second.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert!(second.read(&mut [0; 4096]).unwrap() > 0);

    let server = Server::start(&["--connection-cap", "1"]);
    let mut first = server.connect();
    first.write_all(request("/hw").as_bytes()).unwrap();
    assert!(first.read(&mut [0; 4096]).unwrap() > 0);
    let mut second = server.connect();
    assert!(matches!(second.read(&mut [0; 64]), Ok(0) | Err(_)));

    let server = Server::start(&["--close-after", "2"]);
    let mut stream = server.connect();
    let two = format!("{}{}", request("/hw"), request("/hw"));
    stream.write_all(two.as_bytes()).unwrap();
    let mut responses = String::new();
    stream.read_to_string(&mut responses).unwrap();
    assert_eq!(responses.matches("hello world").count(), 2, "{responses}");

    let mut server = Server::start(&["--die-after", "3"]);
    for _ in 0..2 {
        server.get("/hw");
    }
    let mut stream = server.connect();
    stream.write_all(last("/hw").as_bytes()).unwrap();
    stream.read_to_end(&mut Vec::new()).ok();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

/// Returns the duration of `count` simultaneous requests.
fn together(server: &Server, path: &str, count: usize) -> Duration {
    let start = Instant::now();
    let mut streams: Vec<TcpStream> = (0..count).map(|_| server.connect()).collect();
    for stream in &mut streams {
        stream.write_all(last(path).as_bytes()).unwrap();
    }
    for stream in &mut streams {
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    start.elapsed()
}

fn times() {
    let ms = Duration::from_millis;
    assert!(together(&Server::start(&["--delay", "60ms"]), "/hw", 1) >= ms(60));
    assert!(together(&Server::start(&["--service", "40ms"]), "/hw", 4) >= ms(160));
    let server = Server::start(&["--delay", "40ms", "--one-at-a-time"]);
    assert!(together(&server, "/hw", 4) >= ms(160));
    // 30 bytes at 100 a second; the first may go at once
    assert!(together(&Server::start(&["--drip", "100B/s"]), "/bytes/30", 1) >= ms(280));

    let server = Server::start(&["--stall", "300ms/400ms"]);
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    while start.elapsed() < ms(900) {
        longest = longest.max(together(&server, "/hw", 1));
    }
    assert!(longest >= ms(200), "{longest:?}");

    // a single sleeper serves requests in turn, so a short one after a long one is late; in
    // parallel it is not
    assert!(together(&Server::start(&[]), "/sleep?0.1", 3) >= ms(300));
    let server = Server::start(&["--sleep-parallel"]);
    let mut long = server.connect();
    long.write_all(last("/sleep?20").as_bytes()).unwrap();
    assert!(server.get("/sleep?0.01").contains(" 200 "));
    assert_eq!(soon(&mut long), Err(ErrorKind::WouldBlock));
}

fn shares() {
    let statuses = |options: &[&str]| {
        let server = Server::start(options);
        let statuses = (0..30).map(|_| server.get("/hw")[9..12].to_owned());
        statuses.collect::<Vec<String>>()
    };
    assert!(statuses(&["--error-share", "100%"]).iter().all(|status| status == "500"));
    let half = |seed| statuses(&["--error-share", "50%", "--seed", seed]);
    let (first, again, other) = (half("5"), half("5"), half("6"));
    assert!(first == again && first != other, "{first:?} {other:?}");
    assert!(first.iter().any(|status| status == "200"));

    let server = Server::start(&["--reset-share", "100%"]);
    let mut stream = server.connect();
    stream.write_all(request("/hw").as_bytes()).unwrap();
    let error = stream.read(&mut [0; 64]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

fn misbehaviour() {
    let raw = |options: &[&str], path: &str| {
        let server = Server::start(options);
        let mut stream = server.connect();
        stream.write_all(request(path).as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        // silence means that nothing more will arrive; a busy machine may be slow to send the first
        // byte
        let silence = Some(Duration::from_millis(500));
        if options == ["--never-answer"] {
            stream.set_read_timeout(silence).unwrap();
        }
        let ended = loop {
            match stream.read(&mut buffer) {
                Ok(0) => break true,
                Ok(count) => {
                    bytes.extend_from_slice(&buffer[..count]);
                    stream.set_read_timeout(silence).unwrap();
                }
                Err(_) => break false,
            }
        };
        (String::from_utf8_lossy(&bytes).into_owned(), ended)
    };
    let declared = |response: &str| {
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        (length.trim().parse::<usize>().unwrap(), body.len())
    };
    let (response, _) = raw(&["--wrong-length", "short"], "/bytes/50");
    assert_eq!(declared(&response), (50, 55));
    let (response, _) = raw(&["--wrong-length", "long"], "/bytes/50");
    assert_eq!(declared(&response), (55, 50));
    let (response, ended) = raw(&["--garbage"], "/hw");
    assert!(ended && !response.is_empty() && !response.starts_with("HTTP/"), "{response}");
    assert_eq!(raw(&["--never-answer"], "/hw"), (String::new(), false));
    assert_eq!(raw(&["--close-early"], "/hw"), (String::new(), true));
    let (response, _) = raw(&["--twice"], "/hw");
    assert_eq!(response.matches("hello world").count(), 2, "{response}");
    let (response, ended) = raw(&["--truncate"], "/bytes/100");
    let (length, body) = declared(&response);
    assert!(ended && length == 100 && body < 100, "{response}");
}

#[test]
fn unsupported_site_options_are_one_line_errors() {
    let cases: &[(&[&str], &str)] = &[
        (&["--garbage", "--twice"], "--twice"),
        (&["--delay", "soon"], "soon"),
        (&["--listen", "nowhere"], "nowhere"),
        (&["--threads", "0"], "--threads"),
        (&["--threads", "2", "--delay", "1ms"], "--threads"),
    ];
    for (options, word) in cases {
        let mut args = vec!["site", "--listen", "127.0.0.1:0"];
        args.extend(*options);
        let args: Vec<&str> =
            if options.contains(&"--listen") { vec!["site", "--listen", "nowhere"] } else { args };
        let ran = run(&args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{options:?}");
        assert!(ran.stderr.contains(word), "{options:?}: {}", ran.stderr);
    }
    let taken = Server::start(&[]);
    let listen = taken.line.trim_start_matches("http://");
    let ran = run(&["site", "--listen", listen]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains(listen), "{}", ran.stderr);
}
