//! `loadstone httperf` against the original: the same command lines at the same site, compared line
//! by line with what was measured masked, and with what was counted exact.

use crate::support::{self, Ran, Scripted, Site};
use std::io::Read;
use std::net::TcpStream;
use std::process::Command;

/// Digits behind these words are counts or sizes and must agree; all others were measured.
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
    // a limit of select(2), which is not ours
    let own = |line: &&str| !line.contains("FD_SETSIZE");
    ran.stderr = ran.stderr.lines().filter(own).map(|line| format!("{line}\n")).collect();
    ran
}

fn ours(args: &[String]) -> Ran {
    // mean sizes are whole bytes in the original
    let mut all = ["httperf", "--strict"].map(str::to_owned).to_vec();
    all.extend_from_slice(args);
    support::run(&all)
}

/// A line with its measured numbers as `#`.
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
        // and then it closes, without an answer
        drop(stream.read(&mut buffer));
    });
    same(hasty.address.port(), "--num-conns 2");
    same(hasty.address.port(), "--wsess 2,2,0");
}

#[test]
fn what_the_original_refuses_is_refused_in_its_words() {
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

/// What autobench 2.1 looks for in each run's output, as Perl patterns, in its order.
const AUTOBENCH: [&str; 7] = [
    r"(?m)^Total: .*replies (\d+)",
    r"(?m)^Connection rate: (\d+\.\d)",
    r"(?m)^Request rate: (\d+\.\d)",
    r"(?m)^Reply rate .*min (\d+\.\d) avg (\d+\.\d) max (\d+\.\d) stddev (\d+\.\d)",
    r"(?m)^Reply time .* response (\d+\.\d)",
    r"(?m)^Net I\/O: (\d+\.\d)",
    r"(?m)^Errors: total (\d+)",
];

/// One line of autobench's table, made from a run's output as autobench makes it.
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
        // as autobench types it, abbreviations included
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
fn the_face_is_worn_by_its_name_too() {
    let site = Site::start(&[]);
    let link = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("named/httperf");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::fs::remove_file(&link).ok();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_loadstone"), &link).unwrap();
    let mut command = Command::new(&link);
    command.args(["--port", &site.port().to_string(), "--server", "127.0.0.1", "--notes"]);
    let ran = support::finish(command, b"").expect(&[0]);
    assert!(ran.stdout.starts_with("httperf --client=0/1 --server=127.0.0.1"), "{ran:#?}");
    assert!(ran.stderr.contains("no reply rate was sampled"), "{ran:#?}");
}
