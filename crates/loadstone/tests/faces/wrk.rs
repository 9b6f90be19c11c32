//! wrk's face compared with wrk: the same command lines against the same site, at the same time.

use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{Ran, Scripted, Site, finish, in_process, program};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Results of both programs for a command line.
struct Pair {
    theirs: Ran,
    ours: Ran,
}

fn original(args: &[String]) -> Ran {
    let mut command = Command::new("wrk");
    command.args(args).env("LANG", "C.UTF-8").stdin(Stdio::null());
    finish(command, b"")
}

fn face(args: &[String]) -> Ran {
    let mut all = vec!["wrk".to_owned()];
    all.extend_from_slice(args);
    let command = program(&all);
    // Lua prints on the standard output of the process
    if args.iter().any(|arg| arg == "-s") {
        finish(command, b"")
    } else {
        in_process(&command, b"")
    }
}

/// Runs both programs at once. `ours`: further arguments for ours.
fn both_with(args: &[&str], ours: &[&str]) -> Pair {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let mut extended: Vec<String> = ours.iter().map(|arg| (*arg).to_owned()).collect();
    extended.extend_from_slice(&args);
    let once = || {
        thread::scope(|scope| {
            let theirs = scope.spawn(|| original(&args));
            let ours = face(&extended);
            Pair { theirs: theirs.join().expect("the other program was run"), ours }
        })
    };
    let mut pair = once();
    // a machine that stalls for the second of a run prevents one program from sending, but not
    // three times in a row
    for _ in 0..2 {
        let asked = |ran: &Ran| number_before(ran, " requests in ").map(|count| count > 0);
        if asked(&pair.ours) != asked(&pair.theirs) {
            pair = once();
        }
    }
    pair
}

fn both(args: &[&str]) -> Pair {
    both_with(args, &[])
}

fn script(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../load/lua/tests/scripts");
    format!("{folder}/{name}.lua")
}

/// Writes a script of the test.
fn written(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("wrk-{name}.lua"));
    std::fs::write(&path, text).expect("the target folder can be written to");
    path.to_str().expect("the target folder has a plain name").to_owned()
}

/// Replaces measured values: numbers in the lines from the table on.
fn masked(text: &str) -> Vec<String> {
    let mut measured = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("  Thread Stats") {
            measured = true;
            // a thread may print before or after the program announces the run
            lines.sort();
        }
        if !measured {
            lines.push(line.to_owned());
            continue;
        }
        let word = |word: &str| {
            let number = word.starts_with(|letter: char| letter.is_ascii_digit());
            let comma = if word.ends_with(',') { "," } else { "" };
            if number || word == "-nan%" { format!("#{comma}") } else { word.to_owned() }
        };
        let words: Vec<String> = line.split_whitespace().map(word).collect();
        lines.push(words.join(" "));
        // the table's columns are fixed
        if line.starts_with("    Latency ") || line.starts_with("    Req/Sec ") {
            assert_eq!(line.len(), 50, "{line:?}");
        }
    }
    lines
}

/// Returns the number before these words, if a line has them.
fn number_before(ran: &Ran, words: &str) -> Option<u64> {
    let line = ran.stdout.lines().find(|line| line.contains(words))?;
    line.split(words).next()?.split_whitespace().last()?.parse().ok()
}

/// Returns the number after these words.
fn number_after(ran: &Ran, words: &str) -> Option<f64> {
    let line = ran.stdout.lines().find_map(|line| line.trim_start().strip_prefix(words))?;
    line.trim().parse().ok()
}

impl Pair {
    /// Checks for the same lines, streams and exit code, except for measured values.
    #[track_caller]
    fn agree(self) -> Pair {
        assert_eq!(masked(&self.ours.stdout), masked(&self.theirs.stdout), "\n{:#?}", self.ours);
        assert_eq!(self.ours.stderr, self.theirs.stderr, "{:#?}", self.ours);
        assert_eq!(self.ours.code, self.theirs.code, "{:#?}", self.ours);
        self
    }

    /// Checks that the whole texts are equal.
    #[track_caller]
    fn compare_whole_texts(self, line: &[&str]) {
        assert_eq!(self.ours.stdout, self.theirs.stdout, "{line:?}");
        assert_eq!(self.ours.stderr, self.theirs.stderr, "{line:?}");
        assert_eq!(self.ours.code, self.theirs.code, "{line:?}");
    }

    /// Checks that both programs made requests, and that the rate is the requests over the time.
    #[track_caller]
    fn worked(self) -> Pair {
        for ran in [&self.ours, &self.theirs] {
            assert!(number_before(ran, " requests in ").is_some_and(|count| count > 0), "{ran:#?}");
            assert!(number_after(ran, "Requests/sec:").is_some_and(|rate| rate > 0.0), "{ran:#?}");
        }
        self
    }
}

#[test]
fn invalid_wrk_options_are_refused() {
    let gone = format!("http://127.0.0.1:{}/", crate::support::free_port());
    let nowhere: &str = &gone;
    let lines: &[&[&str]] = &[
        &[],
        &["-h"],
        &["--help"],
        &["-x"],
        &["--bogus", nowhere],
        &["-c"],
        &["--threads"],
        &["--t", "1", nowhere],
        &["--latency=3", nowhere],
        &["-r", nowhere],
        &["http://"],
        &["foo"],
        &["127.0.0.1:1/"],
        &["http://127.0.0.1:port/"],
        &["http://127.0.0.1:99999/"],
        &["http://127.0.0.1:1/caf\u{e9}"],
        &["-d", "1x", nowhere],
        &["-d", "10sec", nowhere],
        &["-T", "x", nowhere],
        &["-t", "0", nowhere],
        &["-c", "0", nowhere],
        &[nowhere, "-c", "1"],
        &[nowhere],
        &["--late", "--conn", "1k", "--dur=1m", nowhere],
        &["-s", "/nowhere/at/all.lua", nowhere],
        &["http://nohost.invalid/"],
    ];
    for line in lines {
        both(line).compare_whole_texts(line);
    }
    let Pair { theirs, ours } = both(&["-v"]);
    let rest = |ran: &Ran| ran.stdout.split_once('\n').map(|(_, rest)| rest.to_owned());
    assert_eq!((rest(&ours), ours.code), (rest(&theirs), theirs.code));
    assert!(ours.stdout.starts_with("wrk 4.") && theirs.stdout.starts_with("wrk "));
}

#[test]
fn plain_runs_print_what_wrk_prints() {
    let site = Site::start(&[]);
    let (hello, missing) = (site.url("/hw"), site.url("/status/404"));
    let chunked = site.url("/chunked/3000");
    both(&["-t1", "-c1", "-d1", &hello]).agree().worked();
    both(&["-t", "2", "-c", "5", "-d", "1s", "--latency", &hello]).agree().worked();
    both(&["-d1", "-c4", &chunked, "-t1", "-H", "X-A: b", "-H", "not a header"]).agree().worked();
    let pair = both(&["-t1", "-c2", "-d1", &missing]).agree().worked();
    for ran in [&pair.ours, &pair.theirs] {
        let bad = number_after(ran, "Non-2xx or 3xx responses:").unwrap();
        let all = number_before(ran, " requests in ").unwrap() as f64;
        assert!((bad - all).abs() < 0.5, "each response is a 404: {ran:#?}");
    }
    // closing after each response is not an error
    let closing = Site::start(&[("close-after", "1")]);
    both(&["-t1", "-c2", "-d1", &closing.url("/hw")]).agree().worked();
}

#[test]
fn a_run_over_tls_prints_the_same() {
    let server = TlsServer::start(&TlsOptions::default());
    let line = ["-t1", "-c2", "-d1", &server.url("/")];
    both(&line).agree().worked();
}

#[test]
fn an_interrupt_prints_the_partial_result() {
    let site = Site::start(&[]);
    let interrupted = |mut command: Command| {
        let before = site.served().requests;
        command.args(["-t1", "-c1", "-d10m", &site.url("/hw")]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        while site.served().requests < before + 50 {
            // the site's own wait: no clock of the test's
            assert!(!site.wait(Duration::from_millis(5)), "the site ended by itself");
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(" requests in "), "{text}");
        (masked(&text), output.status.code())
    };
    let theirs = interrupted(Command::new("wrk"));
    assert_eq!(interrupted(program(&["wrk"])), theirs);
}

#[test]
fn missing_responses_are_counted() {
    let site = Site::start(&[("never-answer", "")]);
    let url = site.url("/");
    // wrk does not count calls without a response, and neither do we when imitating it
    both_with(&["-t1", "-c2", "-d1", "-T1", &url], &["--strict"]).agree();
    let ours = face(&["-t1", "-c2", "-d1", "-T1", &url].map(str::to_owned));
    assert!(
        ours.stdout.contains("Socket errors: connect 0, read 0, write 0, timeout 2\n"),
        "{ours:#?}"
    );
    let closing = Site::start(&[("close-early", "")]);
    let pair = both(&["-t1", "-c1", "-d1", &closing.url("/")]).agree();
    assert!(pair.ours.stdout.contains("Socket errors: connect 0, read "), "{:#?}", pair.ours);
}

/// Runs a program against a site that ends during the run; returns the columns of its error line.
fn errors_when_the_server_ends(mut command: Command) -> String {
    let site = Site::start(&[]);
    command.args(["-t1", "-c2", "-d2", &site.url("/hw")]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    while site.served().requests < 20 {
        // the site's own wait: no clock of the test's
        assert!(!site.wait(Duration::from_millis(5)), "the site ended by itself");
    }
    site.stop();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Socket errors: "));
    line.unwrap_or_else(|| panic!("no errors: {text}")).to_owned()
}

#[test]
fn refused_connections_count_as_write_errors_as_by_wrk() {
    for command in [Command::new("wrk"), program(&["wrk"])] {
        let text = format!("{command:?}");
        let line = errors_when_the_server_ends(command);
        assert!(line.starts_with("connect 0, "), "{text}: {line}");
        assert!(!line.contains("write 0,"), "{text}: {line}");
    }
}

#[test]
fn scripts_use_the_whole_interface() {
    let site = Site::start(&[]);
    let run = |name: &str, page: &str, more: &[&str]| {
        let (path, url) = (script(name), site.url(page));
        let mut args = vec!["-d1", "-s", &path];
        args.extend_from_slice(more);
        args.push(&url);
        both(&args)
    };
    run("post", "/echo", &["-t1", "-c1"]).agree().worked();
    run("auth", "/", &["-t1", "-c1"]).agree().worked();
    run("counter", "/", &["-t2", "-c2"]).agree().worked();
    run("delay", "/hw", &["-t1", "-c2"]).agree().worked();
    run("addr", "/hw", &["-t2", "-c2"]).agree().worked();
    run("pipeline", "/", &["-t1", "-c1"]).agree().worked();
    let pair = run("stop", "/hw", &["-t2", "-c2"]).agree();
    for ran in [&pair.ours, &pair.theirs] {
        assert_eq!(number_before(ran, " requests in "), Some(200), "{ran:#?}");
    }
    let bytes =
        |ran: &Ran| ran.stdout.lines().find_map(|line| line.split(", ").nth(1).map(str::to_owned));
    assert_eq!(bytes(&pair.ours), bytes(&pair.theirs));
    let (path, url) = (script("setup"), site.url("/hw"));
    both(&["-t2", "-c4", "-d1", "-s", &path, &url, "--", "one", "-x"]).agree().worked();
}

#[test]
fn figures_in_a_script_equal_those_of_wrk() {
    let site = Site::start(&[]);
    let (path, url) = (script("report"), site.url("/bytes/100"));
    let Pair { theirs, ours } = both(&["-t1", "-c1", "-d1", "-s", &path, &url]);
    let own = |ran: &Ran| -> Vec<String> {
        let after = ran.stdout.split_once("------\n").expect("the script's part").1;
        // quantiles are measured
        after.lines().filter(|line| !line.contains("%,")).map(str::to_owned).collect()
    };
    assert_eq!(own(&ours), own(&theirs), "{ours:#?}");
    assert_eq!((ours.code, ours.stderr), (theirs.code, theirs.stderr));
}

#[test]
fn requests_equal_wrks_on_the_wire() {
    let site = Site::start(&[]);
    let (path, url) = (script("wire"), site.url("/echo?headers"));
    let line = ["-t1", "-c1", "-d1", "-s", &path, "-H", "X-One: 1", "-H", "Host: elsewhere", &url];
    let pair = both(&line).agree();
    assert!(
        pair.ours.stdout.contains("\nhost: elsewhere\nx-one: 1\nx-two: 2\n"),
        "{:#?}",
        pair.ours
    );
    let named = url.replace("http://", "http://user:word@");
    both(&["-t1", "-c1", "-d1", "-s", &path, &named]).agree();
}

#[test]
fn failing_scripts_print_what_wrk_prints() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let cases = [
        ("syntax", "x = = 1"),
        ("load", "\n\nerror('boom')"),
        ("setup", "function setup() error('in setup') end"),
        ("init", "function init() local x = nil; x.y = 1 end"),
        ("request", "request = function() error('in request') end"),
        (
            "later",
            "n = 0 request = function() n = n + 1 if n > 5 then error('later') end return wrk.format() end",
        ),
        ("response", "function response(s, h, b)\n return s.x end"),
        ("garbage", "request = function() return 'garbage here\\r\\n\\r\\n' end"),
        ("nothing", "request = function() return nil end"),
        ("transfer", "function setup(t) t:set('f', print) end"),
        ("done", "function done(s, l, r)\n error('in done') end"),
    ];
    for (name, text) in cases {
        let path = written(name, text);
        let pair = both(&["-t1", "-c1", "-d1", "-s", &path, &url]);
        if ["later", "response"].contains(&name) {
            // the thread may fail before wrk's main thread announces the run
            assert!(pair.ours.stdout.starts_with(&pair.theirs.stdout), "{name}: {:#?}", pair.ours);
            assert_eq!(pair.ours.stderr, pair.theirs.stderr);
            assert_eq!(pair.ours.code, pair.theirs.code);
        } else {
            pair.agree();
        }
    }
}

#[test]
fn unusual_values_become_text_as_by_wrk() {
    let site = Site::start(&[]);
    let url = site.url("/echo");
    let cases = [
        ("number", "wrk.method = 'POST' wrk.body = 42"),
        (
            "format",
            "function init() print(wrk.format(nil, '')) print(wrk.format(true, 7, {}, 1.5)) end",
        ),
        ("table", "wrk.body = {}"),
    ];
    for (name, text) in cases {
        let path = written(name, text);
        let pair = both(&["-t1", "-c1", "-d1", "-s", &path, &url]);
        assert_eq!(masked(&pair.ours.stdout), masked(&pair.theirs.stdout), "{name}");
        assert_eq!(pair.ours.code, pair.theirs.code, "{name}: {:#?}", pair.ours);
    }
}

#[test]
fn requests_that_wrks_own_parser_refuses() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let run = ["-t1", "-c1", "-d1", &url];
    for header in [": v", "Sp : v", "A: b\u{1}c"] {
        let pair = both(&[&["-H", header][..], &run].concat());
        for ran in [&pair.ours, &pair.theirs] {
            // its line differs from run to run: fields come out of a Lua table
            assert!(ran.stderr.starts_with("invalid character in header at "), "{ran:#?}");
            assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:#?}");
        }
    }
    for (name, text) in [
        ("no-path", "wrk.path = nil"),
        ("no-slash", "request = function() return wrk.format('GET', 'noslash') end"),
        ("empty-path", "request = function() return wrk.format(nil, '') end"),
        ("blank", "wrk.path = '/a b'"),
        ("method", "wrk.method = 'get'"),
    ] {
        let path = written(name, text);
        let line = [&["-s", &path][..], &run].concat();
        both(&line).compare_whole_texts(&line);
    }
    for line in [["-t1", "-c1", "-d1", "http://127.0.0.1:0/"], ["-t-1", "-c1", "-d1", &url]] {
        both(&line).compare_whole_texts(&line);
    }
}

/// Each connection of wrk2 has its own schedule; a status line may name any version.
#[test]
fn wrk2_uses_all_of_its_connections() {
    let used = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&used);
    let server = Scripted::start(move |mut stream, _| {
        let mut first = true;
        while crate::ab::request_bytes(&mut stream).is_some() {
            count.fetch_add(usize::from(std::mem::take(&mut first)), Ordering::SeqCst);
            let reply = b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nhi";
            if stream.write_all(reply).is_err() {
                return;
            }
        }
    });
    let line = ["-t2", "-c10", "-d2", "-R", "200", &server.url("/")].map(str::to_owned);
    let ran = face(&line).expect(&[0]);
    assert!(!ran.stdout.contains("Socket errors"), "{ran:#?}");
    assert!((10..=12).contains(&used.load(Ordering::SeqCst)), "{ran:#?}");
}

/// Debian's lua-cjson, lua-socket and lua-lpeg are not linked against Lua: they use the functions
/// of the program that loads them.
#[test]
fn modules_in_c_are_loaded() {
    let site = Site::start(&[]);
    let text = "
function init()
  local cjson, socket, lpeg = require 'cjson', require 'socket', require 'lpeg'
  print(cjson.encode({ 1, 2 }), type(socket.gettime()), lpeg.match(lpeg.P 'a' ^ 1, 'aab'))
end";
    let path = written("modules", text);
    let line = ["-t1", "-c1", "-d1", "-s", &path, &site.url("/hw")].map(str::to_owned);
    let ran = face(&line).expect(&[0]);
    assert!(ran.stdout.starts_with("[1,2]\tnumber\t3\n"), "{ran:#?}");
}

#[test]
fn too_few_descriptors_are_connect_errors() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let limited = |program: &str| {
        let mut command = Command::new("sh");
        let line = format!("ulimit -n 40; exec {program} -t2 -c60 -d1 {url}");
        finish(
            {
                command.args(["-c", &line]).stdin(Stdio::null());
                command
            },
            b"",
        )
    };
    let theirs = limited("wrk");
    let ours = limited(&format!("{} wrk", crate::support::binary().display()));
    for ran in [&ours, &theirs] {
        // their number depends on the other descriptors of a program
        let connect = number_after_word(ran, "Socket errors: connect");
        assert!((20..60).contains(&connect), "{ran:#?}");
        assert!(number_before(ran, " requests in ").is_some_and(|count| count > 0), "{ran:#?}");
    }
    assert_eq!((ours.stderr, ours.code), (theirs.stderr, theirs.code));
}

/// Returns the whole number that follows these words, anywhere in a line.
#[track_caller]
fn number_after_word(ran: &Ran, words: &str) -> u64 {
    let (_, rest) = ran.stdout.split_once(words).unwrap_or_else(|| panic!("{words}: {ran:#?}"));
    let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).expect("a number")
}

#[test]
fn the_native_command_is_printed() {
    let line =
        ["--native", "-c10", "-t2", "-d2m", "-H", "A: b c", "https://h/x"].map(str::to_owned);
    let ran = face(&line).expect(&[0]);
    let expected =
        "loadstone run https://h/x -c 10 -d 120s --threads 2 --timeout 2s -H 'A: b c' --insecure\n";
    assert_eq!(ran.stdout, expected);
}

#[test]
fn a_rate_gives_wrk2s_report() {
    let site = Site::start(&[]);
    let line = ["-t1", "-c4", "-d2", "-R", "100", "-U", &site.url("/hw")].map(str::to_owned);
    let ran = face(&line).expect(&[0]);
    let count = number_before(&ran, " requests in ").unwrap();
    assert!((1..=201).contains(&count), "{ran:#?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        lines.contains(&"  Latency Distribution (HdrHistogram - Recorded Latency)"),
        "{ran:#?}"
    );
    // the patterns by which plotters find the spectrum: its title, four columns, a line that begins
    // with the mean
    let titles = lines.iter().filter(|line| line.contains("Detailed Percentile spectrum:")).count();
    let means = lines.iter().filter(|line| line.starts_with("#[Mean ")).count();
    assert_eq!((titles, means), (2, 2), "{ran:#?}");
    let row = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.len() == 4 && fields.iter().all(|field| field.parse::<f64>().is_ok())
    };
    assert!(lines.iter().filter(|line| row(line)).count() > 8, "{ran:#?}");
    let last = lines.iter().find(|line| line.trim_end().ends_with(" inf")).unwrap();
    let total: u64 = last.split_whitespace().nth(2).unwrap().parse().unwrap();
    // requests that its four connections were waiting for at the end are counted there, but not in
    // the requests
    assert!(total <= count + 4 && total > 0, "{ran:#?}");
    let refused = face(&["-R0".to_owned(), site.url("/")]).expect(&[1]);
    assert_eq!(refused.stderr, "Throughput MUST be specified with the --rate or -R option\n");
}

/// Patterns by which other programs parse wrk's output: the beginning of a line, then spaces.
#[test]
fn parsers_of_wrks_output() {
    let site = Site::start(&[]);
    let line = ["-t2", "-c2", "-d1", "--latency", &site.url("/hw")].map(str::to_owned);
    let ran = face(&line).expect(&[0]);
    assert!(number_after(&ran, "Requests/sec:").is_some_and(|rate| rate > 0.0));
    let transfer = ran.stdout.lines().find_map(|line| line.strip_prefix("Transfer/sec:")).unwrap();
    assert!(transfer.trim().ends_with('B'));
    let columns = |name: &str| -> Vec<String> {
        let row = ran.stdout.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        row.split_whitespace().map(str::to_owned).collect()
    };
    let latency = columns("Latency ");
    assert_eq!(latency.len(), 5, "{latency:?}");
    let unit = |text: &String| ["us", "ms", "s", "m"].iter().any(|unit| text.ends_with(unit));
    assert!(latency[1..4].iter().all(unit) && latency[4].ends_with('%'), "{latency:?}");
    assert_eq!(columns("Req/Sec").len(), 5);
    for percent in ["50%", "75%", "90%", "99%"] {
        let row = columns(percent);
        assert!(row.len() == 2 && unit(&row[1]), "{row:?}");
    }
}
