//! `loadstone httperf` compared with the original: the same command lines at the same site,
//! compared line by line with measured values masked and counts exact.

use crate::support::http::{Recorder, read_request, response};
use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{self, Ran, Scripted, Site};
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Words that are followed by counts or sizes, which must agree; all other numbers are measured
/// values.
const EXACT: [&str; 11] = [
    "httperf ",
    "Total: connections",
    "Connection length",
    "Request size",
    "Reply size",
    "Reply status",
    "Errors:",
    "Session: avg",
    "Session length",
    "SS",
    "RS",
];

fn original(args: &[String]) -> Ran {
    let mut command = Command::new("httperf");
    command.args(args).stdin(std::process::Stdio::null());
    let mut ran = support::finish(command, b"");
    // a limit of select(2), which this program does not have
    let own = |line: &&str| !line.contains("FD_SETSIZE");
    ran.stderr = ran.stderr.split_inclusive('\n').filter(own).collect();
    ran
}

fn ours(args: &[String]) -> Ran {
    // mean sizes are whole bytes in the original
    let mut all = ["httperf", "--strict"].map(str::to_owned).to_vec();
    all.extend_from_slice(args);
    support::run(&all)
}

/// Masks the measured numbers of a line as `#`.
fn masked(line: &str) -> String {
    let keeps = EXACT.iter().any(|word| line.starts_with(word));
    let line = match line.split_once(" test-duration ") {
        Some((counts, _)) => format!("{counts} test-duration #"),
        None => line.to_owned(),
    };
    if keeps {
        return line;
    }
    // of the session rate, completed and started are counts
    let (measured, counted) = match line.split_once(" (") {
        Some((rates, counts)) if line.starts_with("Session rate") => (rates, format!(" ({counts}")),
        _ => (line.as_str(), String::new()),
    };
    let mut masked = String::new();
    for letter in measured.chars() {
        let digit = letter.is_ascii_digit() || (letter == '.' && masked.ends_with('#'));
        match digit {
            true if masked.ends_with('#') => {}
            true => masked.push('#'),
            false => masked.push(letter),
        }
    }
    masked + &counted
}

fn look(ran: &Ran) -> String {
    let lines: Vec<String> = ran.stdout.lines().map(masked).collect();
    format!("{}\n--\n{}\ncode {}", lines.join("\n"), ran.stderr, ran.code)
}

/// Runs a command line under both programs. `--server` and `--port` are added.
#[track_caller]
fn same(port: u16, line: &str) {
    let mut args: Vec<String> =
        ["--server", "127.0.0.1", "--port", &port.to_string()].map(str::to_owned).into();
    args.extend(line.split_whitespace().map(|word| word.replace('_', " ")));
    let (wanted, found) = (original(&args), ours(&args));
    pretty(&args, &look(&wanted), &look(&found));
}

#[track_caller]
fn pretty(args: &[String], wanted: &str, found: &str) {
    assert!(wanted == found, "{args:?}\n== the original\n{wanted}\n== ours\n{found}");
}

fn file(name: &str, contents: &[u8]) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, contents).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn connections_one_after_another_and_by_rate() {
    let site = Site::start(&[]);
    for line in [
        "",
        "--num-conns 5 --num-calls 3 --uri /hw",
        "--num-conns 4 --num-calls 6 --burst-length 3 --uri /hw",
        "--num-conns 4 --rate 50 --uri /bytes/3000 --timeout 20",
        "--num-conns 4 --rate 50 --max-connections 2 --uri /hw",
        "--num-conns 4 --rate 50 --hog --uri /hw",
        "--num-conns 5 --period d0.01 --uri /hw",
        "--num-conns 5 --period u0.01,0.03 --uri /hw --client 1/3",
        "--num-conns 5 --period=e0.02 --uri /hw",
        "--http-version 1.0 --num-conns 2 --num-calls 2 --uri /hw",
    ] {
        same(site.port(), line);
    }
}

#[test]
fn requests_and_replies_of_all_kinds() {
    let site = Site::start(&[]);
    for line in [
        "--uri /hw --method HEAD",
        "--uri /echo --add-header X-One:_1\\nX-Two:_\\101\\n --server-name www.example",
        "--uri /nowhere --num-conns 2",
        "--uri /status/503",
        "--uri /chunked/100?trailer --num-calls 2",
        "--uri /close/500",
        "--uri /hw --print-reply=header --print-request",
        "--uri /hw --print-request=body --print-reply=body --num-conns 2",
        "--uri /w --wset 20,0.5 --num-conns 6",
        "-v --uri /hw --send-buffer 8192 --recv-buffer=32768 --close-with-reset",
        "--uri /hw --no-host-hdr",
    ] {
        same(site.port(), line);
    }
}

#[test]
fn lists_of_uris_and_sessions() {
    let site = Site::start(&[]);
    let list = file("httperf-list", b"/hw\0/bytes/10\0/bytes/200\0");
    let log = file(
        "httperf-sessions",
        b"# two sessions\n/hw think=0.05\n\t/bytes/10\n\t/bytes/20\n/bytes/30\n\n/hw method=HEAD\n",
    );
    for line in [
        format!("--wlog y,{list} --num-conns 7"),
        "--wsess 3,4,0.02 --uri /hw".to_owned(),
        "--wsess 2,4,0 --burst-length 4 --uri /hw --max-piped-calls 2".to_owned(),
        "--wsess 2,4,0 --burst-length 3 --uri /hw --http-version 1.0".to_owned(),
        "--wsess 2,4,0.02 --burst-length 2 --rate 20 --uri /hw".to_owned(),
        "--wsess 2,3,0 --session-cookies --uri /cookie?set=a%3Db".to_owned(),
        "--wsess 2,3,0.01 --failure-status 404 --uri /nowhere".to_owned(),
        "--wsess 2,3,0.01 --failure-status 404 --uri /hw".to_owned(),
        format!("--wsesslog 4,0.01,{log} --rate 40"),
        format!("--wsesslog 3,0.01,{log}"),
        // with a part in the page the original fails
        "--wsesspage 3,2,0.02 --uri /hw".to_owned(),
        "--wsesspage 2,2,0.02 --uri /hw --rate 20 --burst-length 2".to_owned(),
    ] {
        same(site.port(), &line);
    }
}

#[test]
fn errors_are_counted_where_the_original_counts_them() {
    let site = Site::start(&[]);
    same(support::free_port(), "--num-conns 3");
    same(site.port(), "--uri /sleep?20 --timeout 1 --num-conns 3 --rate 50");
    same(site.port(), "--uri /sleep?1.2 --timeout 1 --think-timeout 20");
    let hasty = Scripted::start(|mut stream: TcpStream, _| {
        let mut buffer = [0; 1024];
        // and then it closes, without a response
        drop(stream.read(&mut buffer));
    });
    same(hasty.address.port(), "--num-conns 2");
    same(hasty.address.port(), "--wsess 2,2,0");
}

/// Server that sends these bytes for every request, and closes.
fn closing_server(text: &'static str) -> Scripted {
    Scripted::start(move |mut stream, _| {
        read_request(&mut BufReader::new(&mut stream));
        stream.write_all(text.as_bytes()).ok();
    })
}

#[test]
fn aborted_connections_count_as_resets_as_by_httperf() {
    for found in [
        "HTTP/1.1 200 OK\r\nServer: x\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        same(closing_server(found).address.port(), "--num-conns 3");
    }
    // the exception named in the guide: httperf ignores the length then
    let short = closing_server("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf");
    let line = format!("--server 127.0.0.1 --port {} --num-conns 3", short.address.port());
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (theirs, ours) = (original(&args), ours(&args));
    assert!(theirs.stdout.contains("requests 3 replies 3 "), "{theirs:#?}");
    assert!(theirs.stdout.contains("connrefused 0 connreset 0\n"), "{theirs:#?}");
    assert!(ours.stdout.contains("requests 3 replies 0 "), "{ours:#?}");
    assert!(ours.stdout.contains("connrefused 0 connreset 3\n"), "{ours:#?}");
}

#[test]
fn a_run_over_tls_prints_the_same() {
    let server = TlsServer::start(&TlsOptions::default());
    for line in [
        "--ssl --num-conns 3 --num-calls 2",
        "--ssl --num-conns 2 --ssl-no-reuse --rate 40",
        "--ssl --num-conns 2 --ssl-ciphers ECDHE-ECDSA-AES128-GCM-SHA256",
        "--ssl --num-conns 2 --num-calls 2 --http-version 1.0",
        "--ssl --wsess 2,3,0.01 --burst-length 2",
    ] {
        same(server.port(), line);
    }
    let plain = Site::start(&[]);
    let line = format!("--server 127.0.0.1 --port {} --ssl", plain.port());
    let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
    // messages added by OpenSSL are OpenSSL's
    let first = |ran: Ran| (ran.stderr.lines().next().map(str::to_owned), ran.stdout, ran.code);
    assert_eq!(first(ours(&args)), first(original(&args)));
}

#[test]
fn certificates_are_checked_against_a_folder_of_authorities() {
    let server = TlsServer::start(&TlsOptions::default());
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("a folder within")).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "no certificate").unwrap();
    let run = |folder: &str| {
        let line = format!(
            "--server localhost --port {} --ssl --ssl-verify --ssl-ca-path {folder}",
            server.port()
        );
        ours(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    };
    let path = folder.path().to_str().unwrap();
    let nobody = run(path).expect(&[1]);
    assert!(nobody.stderr.contains("holds no certificate in PEM"), "{nobody:#?}");
    let strangers = support::tls::Pki::new().ca;
    std::fs::write(folder.path().join("strangers.pem"), strangers).unwrap();
    let stranger = run(path).expect(&[255]);
    assert!(stranger.stderr.contains("failed to connect to SSL server"), "{stranger:#?}");
    std::fs::copy(&server.files.ca, folder.path().join("5ed36f99.0")).unwrap();
    let trusted = run(path).expect(&[0]);
    assert!(trusted.stdout.contains("replies 1 "), "{trusted:#?}");
    let missing = run("/no/such/folder").expect(&[1]);
    assert!(missing.stderr.contains("/no/such/folder: No such file"), "{missing:#?}");
}

/// Server that answers the single request of every connection, and records its time and content.
struct Clock {
    server: Scripted,
    came: Arc<Mutex<Vec<Instant>>>,
}

impl Clock {
    fn start() -> Clock {
        let came = Arc::new(Mutex::new(Vec::new()));
        let book = Arc::clone(&came);
        let server = Scripted::start(move |mut stream, _| {
            book.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
            read_request(&mut BufReader::new(&mut stream));
            stream.write_all(&response(200, "", "hello")).ok();
        });
        Clock { server, came }
    }

    /// Milliseconds from the first connection to each, of one run.
    fn offsets(&self, run: fn(&[String]) -> Ran, line: &str) -> Vec<f64> {
        let port = self.server.address.port();
        let line = format!("--server 127.0.0.1 --port {port} {line}");
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        run(&args).expect(&[0]);
        let mut came =
            std::mem::take(&mut *self.came.lock().unwrap_or_else(PoisonError::into_inner));
        came.sort();
        came.iter().map(|at| (*at - came[0]).as_secs_f64() * 1e3).collect()
    }
}

/// Returns the scheduled milliseconds of the connections of a command line, from its native plan.
fn intended(line: &str) -> Vec<f64> {
    // without a Host line no option of ours is equivalent, and the plan is printed
    let mut args = vec!["--native".to_owned(), "--no-host-hdr".to_owned()];
    args.extend(line.split_whitespace().map(str::to_owned));
    let plan = ours(&args).expect(&[0]).stdout;
    let key = |key: &str| plan.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
    match key("at = [") {
        Some(list) => {
            let spans = list.trim_end_matches(']').split(", ").map(|span| span.trim_matches('"'));
            spans.map(|span| units::parse_duration(span).unwrap().as_millis_f64()).collect()
        }
        None => {
            let rate = key("rate = \"").unwrap();
            let rate: f64 = rate.split('/').next().unwrap().parse().unwrap();
            (0..12).map(|number| f64::from(number) * 1e3 / rate).collect()
        }
    }
}

/// Returns the lateness of each connection, in milliseconds, in the most punctual of several runs.
/// Other load on this machine makes connections late, never early, so the minimum is closest to the
/// schedule. In each run, the earliest connection is assumed punctual.
fn lateness(
    clock: &Clock,
    rounds: usize,
    run: fn(&[String]) -> Ran,
    line: &str,
    intended: &[f64],
) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; intended.len()];
    for _ in 0..rounds {
        let came = clock.offsets(run, line);
        assert_eq!(came.len(), intended.len(), "{line}");
        let late: Vec<f64> = came.iter().zip(intended).map(|(came, due)| came - due).collect();
        let shift = late.iter().copied().fold(f64::INFINITY, f64::min);
        for (least, late) in least.iter_mut().zip(late) {
            *least = least.min(late - shift);
        }
        if least.iter().all(|late| *late < NEAR_MS) {
            break;
        }
    }
    least
}

const NEAR_MS: f64 = 15.0;

#[test]
fn connections_open_at_the_originals_times() {
    let clock = Clock::start();
    for law in [
        "--period d0.05",
        "--rate 25",
        "--period u0.02,0.12",
        "--period u0.02,0.12 --client 2/5",
        "--period e0.06",
        "--period e0.06 --client 1/2",
    ] {
        let line = format!("{law} --num-conns 12");
        let intended = intended(&line);
        assert_eq!(intended.len(), 12, "{law}: {intended:?}");
        for (name, run) in [("the original", original as fn(&[String]) -> Ran), ("ours", ours)] {
            let late = lateness(&clock, 30, run, &line, &intended);
            let near = late.iter().all(|late| *late < NEAR_MS);
            assert!(near, "{law}, {name}: {late:.1?} beside {intended:.1?}");
        }
    }
    // another client's instants are distinguishable from these
    let line = "--period u0.02,0.12 --num-conns 12";
    let others = intended(&format!("{line} --client 1/2"));
    let late = lateness(&clock, 3, original, line, &others);
    assert!(late.iter().any(|late| *late > 2.0 * NEAR_MS), "{late:.1?}");
}

#[test]
fn pages_load_their_parts_and_servers_take_turns() {
    const PAGE: &str = "<img src=/a.png><IMG SRC='b.png'><iframe src=/f></iframe>\
                        <img src=http://elsewhere.invalid/x><script src=/s.js></script>";
    let server = Recorder::start(|request| {
        let body = if request.target() == "/page" { PAGE } else { "part" };
        response(200, "Content-Type: text/html\r\n", body)
    });
    let port = server.port();
    let run = |line: &str| {
        let line = format!("--port {port} {line}");
        ours(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).expect(&[0])
    };
    let ran = run("--server 127.0.0.1 --wsesspage 2,2,0 --uri /page");
    assert!(ran.stdout.contains("requests 16 replies 16 "), "{ran:#?}");
    assert!(ran.stdout.contains("Session length histogram: 0 0 0 0 0 0 0 0 2\n"), "{ran:#?}");
    let all = server.all();
    let count = |path: &str| all.iter().filter(|asked| asked.target() == path).count();
    // the page once more: it is checked before the run
    let counts = ["/page", "/a.png", "/b.png", "/f", "/x", "/s.js"].map(count);
    assert_eq!(counts, [5, 4, 4, 4, 0, 0], "{all:#?}");
    let servers = file("httperf-servers", b"127.0.0.1\0localhost\0");
    let ran = run(&format!("--servers {servers} --num-conns 3 --num-calls 2 --uri /x"));
    assert!(ran.stdout.starts_with(&format!("httperf --client=0/1 --servers={servers} ")));
    let hosts: Vec<String> =
        server.all()[all.len()..].iter().map(|ask| ask.field("host").unwrap().to_owned()).collect();
    let turns = ["127.0.0.1", "127.0.0.1", "localhost", "localhost", "127.0.0.1", "127.0.0.1"];
    assert_eq!(hosts, turns);
    let empty = file("httperf-no-servers", b"\0");
    let args = ["--servers".to_owned(), empty];
    assert!(ours(&args).expect(&[1]).stderr.contains("names 0 servers"));
}

#[test]
fn refusals_use_the_originals_words() {
    for line in [
        "--bogus",
        "--num-c 3",
        "--rate",
        "--hog=1",
        "-x",
        "-d",
        "--help",
        "--client 3",
        "--client 5/3",
        "--period x1",
        "--period u1",
        "--rate abc",
        "--num-conns 1x",
        "--burst-length 0",
        "--http-version abc",
        "--wsess 1,2",
        "--wsesslog 1,1,f,g",
        "--wset 5",
        "--wset 5,3",
        "--wsesspage 1",
        "--wsesspage 1,2,x",
        "--wsesspage 1,2,3,4",
        "--wsesspage 1,2,0 --uri page",
        "--failure-status 0",
        "--session-cookies",
        "--server nobody.invalid",
        "--http-version 2.0",
        "--wlog y,/nonexistent/list",
        "--wsesslog 1,1,/nonexistent/log",
        "--max-connections 9 --wsess 1,1,1",
        "--max-piped-calls 99 --wsess 1,1,1",
    ] {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        pretty(&args, &look(&original(&args)), &look(&ours(&args)));
    }
}

/// Patterns that autobench 2.1 applies to each run's output, as Perl patterns, in its order.
const AUTOBENCH: [&str; 7] = [
    r"(?m)^Total: .*replies (\d+)",
    r"(?m)^Connection rate: (\d+\.\d)",
    r"(?m)^Request rate: (\d+\.\d)",
    r"(?m)^Reply rate .*min (\d+\.\d) avg (\d+\.\d) max (\d+\.\d) stddev (\d+\.\d)",
    r"(?m)^Reply time .* response (\d+\.\d)",
    r"(?m)^Net I\/O: (\d+\.\d)",
    r"(?m)^Errors: total (\d+)",
];

/// Computes a row of autobench's table from the output of a run, as autobench does.
fn autobench_row(demanded: u32, output: &str) -> Vec<f64> {
    let found: Vec<Vec<f64>> = AUTOBENCH
        .iter()
        .map(|pattern| {
            let pattern = regex::Regex::new(pattern).unwrap();
            let groups = pattern.captures(output).unwrap_or_else(|| panic!("{pattern}: {output}"));
            groups.iter().skip(1).flatten().map(|group| group.as_str().parse().unwrap()).collect()
        })
        .collect();
    let [replies, connections, requests, rates, time, net, errors] = found.try_into().unwrap();
    let errors = if replies[0] > 0.0 { 100.0 * errors[0] / replies[0] } else { 101.0 };
    [vec![f64::from(demanded), requests[0], connections[0]], rates, vec![time[0], net[0], errors]]
        .concat()
}

#[test]
fn autobench_fills_its_whole_table() {
    let site = Site::start(&[]);
    let mut table = Vec::new();
    for rate in [20_u32, 40, 60] {
        // as typed by autobench, including abbreviations
        let line = format!(
            "--server 127.0.0.1 --uri /hw --num-conn 10 --num-call 2 --timeout 20 --rate {rate} \
             --port {}",
            site.port()
        );
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let ran = ours(&args).expect(&[0]);
        table.push(autobench_row(2 * rate, &ran.stdout));
    }
    for row in &table {
        assert_eq!(row.len(), 10, "{table:?}");
        assert_eq!(row.last(), Some(&0.0), "no errors: {table:?}");
        assert!(row[1] > 0.0 && row[2] > 0.0 && row[8] > 0.0, "{table:?}");
    }
}

#[test]
fn a_link_named_httperf_selects_the_face() {
    let site = Site::start(&[]);
    let link = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("named/httperf");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::fs::remove_file(&link).ok();
    std::os::unix::fs::symlink(support::binary(), &link).unwrap();
    let mut command = Command::new(&link);
    command.args(["--port", &site.port().to_string(), "--server", "127.0.0.1", "--notes"]);
    let ran = support::finish(command, b"").expect(&[0]);
    assert!(ran.stdout.starts_with("httperf --client=0/1 --server=127.0.0.1"), "{ran:#?}");
    assert!(ran.stderr.contains("no reply rate was sampled"), "{ran:#?}");
}
