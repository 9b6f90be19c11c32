//! Compares this program's counts with those of independent servers: nginx, started for each test
//! with its own files, ports and access log, and Caddy for HTTP/3.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::caddy::Caddy;
use support::process::{measure, measured};
use support::tls::Pki;
use support::{free_port, outcomes, whole};
use tempfile::TempDir;

/// Private nginx with one process.
struct Nginx {
    child: Child,
    folder: TempDir,
    plain: u16,
    /// Closes a connection after ten responses.
    ten: u16,
    secure: u16,
}

/// Line of its access log.
#[derive(Clone, Debug)]
struct Line {
    connection: u64,
    status: u16,
    sent: u64,
    body: u64,
    received: u64,
    method: String,
    path: String,
}

impl Nginx {
    fn start() -> Nginx {
        // a port may be taken between choosing and using it: then others are chosen
        (0..5).find_map(|_| Nginx::try_start()).expect("nginx starts; its log says why not")
    }

    fn try_start() -> Option<Nginx> {
        let folder = tempfile::tempdir().unwrap();
        let pki = Pki::new();
        let keep = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        keep("ca.pem", &pki.ca);
        keep("cert.pem", &pki.server.cert);
        keep("key.pem", &pki.server.key);
        std::fs::create_dir(folder.path().join("www")).unwrap();
        keep("www/file.bin", &"0123456789".repeat(3_000));
        keep("www/page.txt", &"a line of text that is easily compressed\n".repeat(500));
        let [plain, ten, secure] = [free_port(), free_port(), free_port()];
        keep("nginx.conf", &configuration(&folder, plain, ten, secure));
        let mut command = Command::new(support::nginx::program());
        command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf", "-e", "error.log"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let mut nginx = Nginx { child, folder, plain, ten, secure };
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut listening = || {
            while !support::nginx::is_listening(nginx.folder.path()) {
                if nginx.child.try_wait().unwrap().is_some() || Instant::now() > deadline {
                    return false;
                }
                std::thread::yield_now();
            }
            true
        };
        listening().then_some(nginx)
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.plain)
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Stops nginx and reads its log: the requests for each path, in order of the ends of the
    /// responses.
    fn stop(mut self) -> BTreeMap<String, Vec<Line>> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::QUIT).unwrap();
        self.child.wait().unwrap();
        let text = std::fs::read_to_string(self.folder.path().join("access.log")).unwrap();
        let mut lines: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        for line in text.lines().map(parse) {
            lines.entry(line.path.clone()).or_default().push(line);
        }
        lines
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn configuration(folder: &TempDir, plain: u16, ten: u16, secure: u16) -> String {
    let root = folder.path().display();
    let mut temporary = String::new();
    for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        writeln!(temporary, "    {name}_temp_path {root}/{name};").unwrap();
    }
    let servers = [
        server(&format!("{plain}"), ""),
        server(&format!("{ten}"), "keepalive_requests 10;"),
        server(
            &format!("{secure} ssl http2"),
            &format!(
                "ssl_certificate {root}/cert.pem; ssl_certificate_key {root}/key.pem; \
                 ssl_protocols TLSv1.2 TLSv1.3; http2_max_concurrent_streams 16; \
                 keepalive_requests 400;"
            ),
        ),
    ]
    .concat();
    format!(
        "daemon off; master_process off; pid {root}/pid; error_log {root}/error.log;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n{temporary}\
         \x20   log_format books '$connection $status $bytes_sent $body_bytes_sent \
         $request_length $request_method $request_uri';\n\
         \x20   access_log {root}/access.log books;\n\
         \x20   root {root}/www; default_type text/plain; keepalive_requests 100000;\n\
         \x20   gzip_types text/plain; gzip_min_length 100;\n\
         {servers}}}\n"
    )
}

fn server(listen: &str, more: &str) -> String {
    format!(
        "    server {{ listen 127.0.0.1:{listen}; {more}\n\
         \x20       location /hello {{ return 200 'hello world'; }}\n\
         \x20       location /moved {{ return 302 /hello; }}\n\
         \x20       location /empty {{ return 204; }}\n\
         \x20       location /broken {{ return 503; }}\n\
         \x20       location /page.txt {{ gzip on; }}\n    }}\n"
    )
}

fn parse(line: &str) -> Line {
    let cells: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| cells[at].parse::<u64>().unwrap();
    Line {
        connection: number(0),
        status: number(1) as u16,
        sent: number(2),
        body: number(3),
        received: number(4),
        method: cells[5].to_owned(),
        path: cells[6].to_owned(),
    }
}

/// Returns the lines of the run, without the first, which is of the plain first call.
fn of_run(lines: &[Line]) -> &[Line] {
    &lines[1..]
}

/// Checks that responses, statuses and bytes of the result equal those of the server's log.
#[track_caller]
fn agree(json: &Value, lines: &[Line], what: &str) {
    let total = |figure: fn(&Line) -> u64| lines.iter().map(figure).sum::<u64>();
    let mut statuses: BTreeMap<String, u64> = BTreeMap::new();
    for line in lines {
        *statuses.entry(line.status.to_string()).or_default() += 1;
    }
    assert_eq!(json["status"], serde_json::json!(statuses), "{what}");
    let [due, succeeded, failed, rest @ ..] = outcomes(json);
    assert_eq!((due, succeeded + failed, rest), (lines.len() as u64, due, [0; 3]), "{what}");
    assert_eq!(whole(json, "/bytes/received"), total(|line| line.sent), "{what}");
    assert_eq!(whole(json, "/bytes/body"), total(|line| line.body), "{what}");
    assert_eq!(whole(json, "/bytes/sent"), total(|line| line.received), "{what}");
}

#[test]
fn ours_and_the_servers_books_agree_on_every_kind_of_response() {
    let nginx = Nginx::start();
    let cases: &[(&str, &[&str])] = &[
        ("/hello?alive", &["-c", "4", "-n", "400"]),
        ("/hello?one", &["-c", "4", "-n", "100", "--calls", "1"]),
        ("/hello?three", &["-c", "4", "-n", "100", "--calls", "3"]),
        ("/hello?old", &["-c", "2", "-n", "30", "--http", "1.0"]),
        ("/hello?deep", &["-c", "4", "-n", "400", "--pipeline", "8"]),
        ("/hello?group", &["-c", "4", "-n", "400", "--group", "5"]),
        ("/hello?open", &["--rate", "1000/s", "-n", "200"]),
        ("/hello?session", &["--rate", "300/s", "-n", "40", "--session", "3"]),
        ("/file.bin?big", &["-c", "4", "-n", "100"]),
        ("/file.bin?deep", &["-c", "2", "-n", "100", "--pipeline", "4"]),
        ("/file.bin?head", &["-c", "2", "-n", "50", "--method", "HEAD"]),
        ("/missing", &["-c", "2", "-n", "50"]),
        ("/missing?deep", &["-c", "2", "-n", "50", "--pipeline", "4"]),
        ("/moved", &["-c", "2", "-n", "50"]),
        ("/empty", &["-c", "2", "-n", "50"]),
        ("/broken", &["-c", "2", "-n", "50"]),
        ("/page.txt?plain", &["-c", "2", "-n", "50"]),
        ("/page.txt?threads", &["-c", "6", "-n", "300", "--threads", "3"]),
    ];
    let mut results = Vec::new();
    for (path, options) in cases {
        let url = nginx.url(path);
        let mut args = options.to_vec();
        args.push(&url);
        results.push((path, measured(&args, &[0, 1, 4])));
    }
    let lines = nginx.stop();
    for (path, json) in results {
        agree(&json, of_run(&lines[*path]), path);
    }
    let head = &lines["/file.bin?head"];
    assert!(head.iter().all(|line| line.method == "HEAD" && line.body == 0));
}

#[test]
fn chunked_and_compressed_bodies_are_counted_and_decoded() {
    let nginx = Nginx::start();
    let url = nginx.url("/page.txt");
    let json = measure(&["-c", "2", "-n", "20", "--compressed", &url]);
    let lines = nginx.stop();
    let lines = of_run(&lines["/page.txt"]);
    let sent: u64 = lines.iter().map(|line| line.sent).sum();
    assert_eq!(outcomes(&json)[..2], [20, 20]);
    assert_eq!(whole(&json, "/bytes/received"), sent);
    // nginx counts chunk framing as body, we count only the content
    let framed: u64 = lines.iter().map(|line| line.body).sum();
    let body = whole(&json, "/bytes/body");
    assert!(body < framed && framed - body < 20 * 40, "{body} {framed}");
    assert_eq!(whole(&json, "/bytes/decoded"), 20 * 500 * 41);
}

#[test]
fn a_server_that_closes_amid_a_pipeline_loses_nothing() {
    let nginx = Nginx::start();
    let mut results = Vec::new();
    for (path, options) in [
        ("/hello?alive", &["-c", "3", "-n", "200"][..]),
        ("/hello?deep", &["-c", "3", "-n", "200", "--pipeline", "4"]),
        ("/hello?deeper", &["-c", "3", "-n", "200", "--pipeline", "16"]),
        ("/hello?group", &["-c", "3", "-n", "200", "--group", "7"]),
        ("/hello?open", &["--rate", "1000/s", "-n", "200"]),
    ] {
        let url = format!("http://127.0.0.1:{}{path}", nginx.ten);
        let mut args = options.to_vec();
        args.push(&url);
        results.push((path, measured(&args, &[0, 1, 4])));
    }
    let lines = nginx.stop();
    for (path, json) in results {
        let lines = of_run(&lines[path]);
        assert_eq!(outcomes(&json), [200, 200, 0, 0, 0, 0], "{path}");
        assert_eq!(lines.len(), 200, "{path}");
        let sent: u64 = lines.iter().map(|line| line.sent).sum();
        assert_eq!(whole(&json, "/bytes/received"), sent, "{path}");
        let mut uses: BTreeMap<u64, u64> = BTreeMap::new();
        for line in lines {
            *uses.entry(line.connection).or_default() += 1;
        }
        assert!(uses.values().all(|count| *count <= 10), "{path}: {uses:?}");
        assert!(uses.len() >= 20, "{path}: {uses:?}");
    }
}

#[test]
fn the_books_agree_behind_tls_too() {
    let nginx = Nginx::start();
    let ca = nginx.file("ca.pem");
    let mut results = Vec::new();
    for (path, options) in [
        ("/hello?13", &["-c", "2", "-n", "100", "--tls", "1.3"][..]),
        ("/hello?12", &["-c", "2", "-n", "100", "--tls", "1.2"]),
        ("/file.bin?one", &["-c", "2", "-n", "30", "--calls", "1"]),
        ("/file.bin?deep", &["-c", "2", "-n", "60", "--pipeline", "4"]),
        ("/missing", &["-c", "2", "-n", "30"]),
    ] {
        let url = format!("https://localhost:{}{path}", nginx.secure);
        let mut args = vec!["-4", "--ca", &ca, &url];
        args.extend(options);
        results.push((path, measured(&args, &[0, 1, 4])));
    }
    let lines = nginx.stop();
    for (path, json) in results {
        let lines = of_run(&lines[path]);
        assert_eq!(outcomes(&json)[0], lines.len() as u64, "{path}");
        let body: u64 = lines.iter().map(|line| line.body).sum();
        assert_eq!(whole(&json, "/bytes/body"), body, "{path}");
        let sent: u64 = lines.iter().map(|line| line.sent).sum();
        assert_eq!(whole(&json, "/bytes/received"), sent, "{path}");
        let status = lines[0].status.to_string();
        assert_eq!(json["status"], serde_json::json!({ status: lines.len() }), "{path}");
    }
}

#[test]
fn a_list_of_urls_has_the_servers_counts_in_each_row() {
    let nginx = Nginx::start();
    let list = nginx.file("list.txt");
    let paths = ["/hello?r", "/missing?r", "/moved?r", "/file.bin?r", "/empty?r"];
    let text: Vec<String> = paths
        .iter()
        .enumerate()
        .map(|(index, path)| format!("{} weight={}", nginx.url(path), index + 1))
        .collect();
    std::fs::write(&list, text.join("\n")).unwrap();
    let json = measure(&["-c", "5", "-n", "300", "--random", "--urls", &list]);
    let origin = nginx.url("");
    let mut lines = nginx.stop();
    // the plain first call went to the first line's page
    lines.get_mut(paths[0]).unwrap().remove(0);
    let rows = json["per_url"].as_array().unwrap();
    assert_eq!(rows.len(), 5);
    for row in rows {
        let path = row["url"].as_str().unwrap().strip_prefix(&origin).unwrap();
        let lines = lines.get(path).map_or(&[][..], Vec::as_slice);
        assert_eq!(whole(row, "/count"), lines.len() as u64, "{path}");
        let body: u64 = lines.iter().map(|line| line.body).sum();
        assert_eq!(whole(row, "/body_bytes"), body, "{path}");
        let bad = lines.iter().filter(|line| line.status >= 400).count() as u64;
        assert_eq!(whole(row, "/failed"), bad, "{path}");
    }
}

/// Over TLS, negotiated by ALPN: nginx's limits of streams and requests per connection are
/// respected and reported, and its counts equal ours.
#[test]
fn http2_keeps_the_limits_of_the_server() {
    let nginx = Nginx::start();
    let ca = nginx.folder.path().join("ca.pem").display().to_string();
    let url = format!("https://localhost:{}/hello?two", nginx.secure);
    let json = measured(
        &["-c", "2", "-n", "2000", "--http", "2", "--streams", "40", "--ca", &ca, &url],
        &[0, 4],
    );
    let lines = nginx.stop();
    let lines = of_run(&lines["/hello?two"]);
    assert_eq!(outcomes(&json), [2_000, 2_000, 0, 0, 0, 0]);
    assert_eq!(lines.len(), 2_000);
    assert_eq!(whole(&json, "/bytes/body"), 2_000 * 11);
    assert_eq!(json["tls"]["agreed"][0]["alpn"], "h2");
    assert_eq!(whole(&json, "/http2/streams_max"), 16);
    assert_eq!(whole(&json, "/http2/streams_peak"), 16);
    // 400 requests, then GOAWAY: a limit of the server, not a failure
    assert!(whole(&json, "/http2/goaways/NO_ERROR") >= 4, "{}", json["http2"]);
    assert!(whole(&json, "/connections/established") >= 5);
    let seen: std::collections::BTreeSet<u64> = lines.iter().map(|line| line.connection).collect();
    assert_eq!(seen.len() as u64, whole(&json, "/connections/established"));
}

/// Over QUIC, with quic-go: closed and open loads, bodies and redirects. Sessions are resumed, and
/// the server's stream limit is learned and respected.
#[test]
fn http3_works_with_quic_go() {
    let page = "a line of a page\n".repeat(300);
    let caddy = Caddy::start_secure(&page);
    let (ca, url) = (caddy.authority(), caddy.secure_url("/page.html"));
    let over = |args: &[&str]| measured(&[&["--http", "3", "--ca", &ca], args].concat(), &[0, 4]);
    let json = over(&["-c", "2", "-n", "600", "--streams", "20", &url]);
    assert_eq!(outcomes(&json), [600, 600, 0, 0, 0, 0]);
    assert_eq!(whole(&json, "/bytes/body"), 600 * page.len() as u64);
    assert_eq!((whole(&json, "/http3/streams"), whole(&json, "/http3/streams_peak")), (600, 20));
    assert_eq!(whole(&json, "/http3/quic/handshakes"), 2);
    assert_eq!(json["tls"]["agreed"][0]["alpn"], "h3");
    assert_eq!(json["first_call"]["http_version"], "3");
    assert!(json["http3"]["violations"].as_object().unwrap().is_empty(), "{}", json["http3"]);

    // quic-go allows 100: a connection gets no more
    let json = over(&["-c", "1", "-n", "1000", "--streams", "400", &url]);
    assert_eq!(outcomes(&json)[..2], [1_000, 1_000]);
    assert_eq!(
        (whole(&json, "/http3/streams_max"), whole(&json, "/http3/streams_peak")),
        (100, 100)
    );

    let json = over(&["-c", "1", "-n", "10", "--calls", "1", &url]);
    assert_eq!(outcomes(&json)[..2], [10, 10]);
    assert_eq!(whole(&json, "/http3/quic/handshakes"), 10);
    assert!(whole(&json, "/http3/quic/resumed") >= 5, "{}", json["http3"]);

    let body = "b".repeat(100_000);
    let echo = caddy.secure_url("/echo");
    let json = over(&["--rate", "200/s", "-n", "40", "--body", &body, &echo]);
    assert_eq!(outcomes(&json)[..2], [40, 40]);
    assert_eq!(whole(&json, "/bytes/body"), 40 * 100_000);

    let moved = caddy.secure_url("/moved");
    let json = over(&["-c", "1", "-n", "5", "--follow", "--cookies", "--compressed", &moved]);
    assert_eq!((outcomes(&json)[1], whole(&json, "/redirects")), (5, 5));
}
