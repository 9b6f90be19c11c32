//! `loadstone netpath`, and runs through a path: real packets, with separate devices and
//! namespaces.

use crate::support::process::{measured, run};
#[cfg(feature = "h3")]
use crate::support::quic::QuicSite;
use crate::support::{Ran, Site, behind, finish, number, program, text, untested, whole};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};

/// An ordinary user's PATH on Debian lacks the folder of tc.
const FOLDERS: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

/// Returns whether this user can create a path to a server of this host; if not, prints the missing
/// part.
fn is_available() -> bool {
    let tried = run(&["netpath", "-q", "--rtt", "0ms", "--", "true"]);
    if tried.code == 0 {
        return true;
    }
    let reason = format!("paths are not tested: {}", tried.stderr.trim_end());
    untested(&reason)
}

fn netpath(options: &[&str], program: &[&str]) -> Ran {
    let mut all = vec!["netpath"];
    all.extend(options);
    all.push("--");
    all.extend(program);
    run(&all)
}

#[test]
fn a_program_reaches_a_server_of_the_loopback_over_the_path() {
    if !is_available() {
        return;
    }
    let site = Site::start(&[]);
    let url = site.url("/bytes/1000");
    let shown = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{time_connect}", &url];
    let ran = netpath(&["--profile", "rtt=60ms, loss=list:900", "--seed", "7"], &shown);
    let (status, connect) = ran.stdout.split_once(' ').expect("two words of curl");
    assert_eq!((ran.code, status), (0, "200"), "{ran:#?}");
    assert!(connect.parse::<f64>().unwrap() >= 0.060, "{ran:#?}");
    // the report is on standard error, and only the program's output on standard output
    for part in [
        "loadstone: path rtt=60ms, loss=list:900, seed 7, ",
        "loadstone:   up: ",
        "loadstone:   down: ",
        " 0 lost; delay 30.0 ms, 1 packets lost by number\n",
        "configured round trip 60.0 ms",
        "delivered late by ",
    ] {
        assert!(ran.stderr.contains(part), "{part}\n{ran:#?}");
    }
    assert!(!ran.stderr.contains("path-overload"), "{ran:#?}");
}

#[test]
fn exit_codes_are_handed_on() {
    if !is_available() {
        return;
    }
    let code = |program: &[&str]| netpath(&["-q", "--rtt", "1ms"], program).code;
    assert_eq!(code(&["sh", "-c", "exit 7"]), 7);
    // a program terminated by a signal, in the shells' convention
    assert_eq!(code(&["sh", "-c", "kill -KILL $$"]), 137);
    let none = netpath(&["-q", "--rtt", "1ms"], &["/nowhere/at-all"]);
    assert_eq!((none.code, code(&["/etc"])), (127, 126));
    assert_eq!(
        none.stderr,
        "loadstone: \"/nowhere/at-all\" cannot be started: No such file or directory (os error 2)\n"
    );
}

/// Running netpath whose program has printed its first line.
struct RunningNetpath {
    child: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl RunningNetpath {
    /// Starts `netpath` with a shell.
    /// `script`: a script for sh, with its arguments.
    fn start(options: &[&str], script: &str, arguments: &[&str]) -> RunningNetpath {
        let mut all = vec!["netpath"];
        all.extend(options);
        all.extend(["--", "sh", "-c", script, "sh"]);
        all.extend(arguments);
        let mut command = program(&all);
        command.stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        out.read_line(&mut first).unwrap();
        assert_eq!(first, "ready\n");
        RunningNetpath { child, out, err }
    }

    /// Returns the name of the device on this host, which is printed first on standard error.
    fn device(&mut self) -> String {
        let mut text = String::new();
        self.err.read_line(&mut text).unwrap();
        text.split_whitespace().nth(4).expect("the name of the device").to_owned()
    }

    fn kill(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

#[test]
fn signals_are_passed_on() {
    if !is_available() {
        return;
    }
    let script = "trap 'echo got it; exit 9' TERM; echo ready; while :; do read -r line; done";
    let mut under_way = RunningNetpath::start(&["-q", "--rtt", "1ms"], script, &[]);
    under_way.kill(Signal::TERM);
    let mut rest = String::new();
    under_way.out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), under_way.child.wait().unwrap().code()), ("got it\n", Some(9)));
}

/// Every started process holds the program's standard output, so the pipe closes when all have
/// ended; one of them has even left the session.
#[test]
fn nothing_stays_behind_after_a_kill() {
    if !is_available() {
        return;
    }
    let script = "setsid sleep 1000 & sleep 1000 & echo ready; exec sleep 1000";
    let mut under_way = RunningNetpath::start(&["--rtt", "1ms"], script, &[]);
    let device = under_way.device();
    let devices = || std::fs::read_to_string("/proc/net/dev").unwrap();
    assert!(devices().contains(&format!("{device}:")), "{device}");
    under_way.kill(Signal::KILL);
    under_way.child.wait().unwrap();
    under_way.out.read_to_end(&mut Vec::new()).unwrap();
    assert!(!devices().contains(&format!("{device}:")), "{}", devices());
}

#[test]
fn a_server_starts_at_the_far_end_and_ends_with_the_program() {
    if !is_available() {
        return;
    }
    let exe = program::<&str>(&[]).get_program().to_string_lossy().into_owned();
    let server = format!("{exe} site --listen 127.0.0.1:80");
    let ran = netpath(
        &["--rtt", "40ms", "--server", &server],
        &["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "http://localhost/hw"],
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "200"), "{ran:#?}");
    let ran = netpath(&["--rtt", "40ms", "--server", "exit 3"], &["true"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("\"exit 3\" ended (exit status: 3) before it listened"),
        "{ran:#?}"
    );
}

#[test]
fn an_invalid_path_is_refused_with_the_fix() {
    for (options, found) in [
        (&[][..], "no path is given; write --profile 3g (`loadstone netpath profiles` lists them)"),
        (&["--profile", "5gg"], "\"5gg\" is not a profile; near: 5g; "),
        (&["--loss", "200%"], "loss: \"200%\" is not a share; write one from 0% to 100%"),
        (&["--profile", "trace=/nowhere.txt"], "/nowhere.txt"),
    ] {
        let ran = netpath(options, &["true"]);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains(found), "{found}\n{ran:#?}");
    }
}

/// An invalid trace file is refused with its line by every command that accepts a path.
#[test]
fn an_invalid_trace_is_refused_with_its_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "0\n3\n2\n").unwrap();
    let path = format!("rtt=9ms, up-trace={}", file.path().display());
    let text = format!(
        "the trace \"{}\": line 3: 2 is below the line before; a trace goes forward in time",
        file.path().display()
    );
    let url = "http://127.0.0.1:9/";
    for words in [
        &["run", url, "--path", &path][..],
        &["run", url, "--clients", &format!("train=[{path}]:100%")],
        &["ramp", url, "--path", &path],
        &["compare", "http://127.0.0.1:9/", "http://127.0.0.1:8/", "--path", &path],
        &["torture", url, "--path", &path],
        &["netpath", "--profile", &path, "--", "true"],
    ] {
        let ran = run(words);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains(&text), "{text}\n{ran:#?}");
    }
}

/// One packet of 1,500 bytes every 4 ms downstream, without further delay: 3 Mbit/s, of which 1,448
/// of 1,500 bytes are content. The stored plan needs no file.
#[test]
fn a_run_goes_through_a_recorded_link() {
    if !is_available() {
        return;
    }
    let site = Site::start(&[]);
    let url = site.url("/bytes/20000");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("4ms.down");
    std::fs::write(&file, "4\n8\n12\n16\n").unwrap();
    let path = format!("rtt=10ms, down-trace={}", file.display());
    let load = ["--path", &path, "-c", "4", "-d", "2s", "--warmup", "500ms"];
    let document = measured(&[&[url.as_str()][..], &load].concat(), &[0, 1, 4]);
    let content = number(&document, "/throughput_per_s") * 20_000.0;
    let most = 1_500.0 / 0.004 * 1_448.0 / 1_500.0;
    // calls that ended just before the window and are delivered late count too: at most one per
    // user
    assert!((0.6..=1.12).contains(&(content / most)), "{content} of {most} bytes a second");
    let held = &document["plan"]["connection"]["traces"][&*file.to_string_lossy()];
    assert_eq!(held.as_str(), Some("4*4"), "{}", document["plan"]["connection"]);
    assert_eq!(text(&document, "/plan/connection/path"), path);
}

/// More paths than the four available subnets, all started at once.
#[test]
fn many_paths_coexist() {
    if !is_available() {
        return;
    }
    let site = Site::start(&[]);
    let script = "curl -sS -o /dev/null \"$1\" && echo ready; read -r go";
    let url = site.url("/hw");
    let mut devices: Vec<String> = std::thread::scope(|scope| {
        let start = || RunningNetpath::start(&["--rtt", "1ms"], script, &[&url]);
        let all: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        // all of them are set up before the first is stopped
        let mut all: Vec<RunningNetpath> = all.into_iter().map(|one| one.join().unwrap()).collect();
        let devices = all.iter_mut().map(RunningNetpath::device).collect();
        for one in &mut all {
            one.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
            assert!(one.child.wait().unwrap().success());
        }
        devices
    });
    devices.sort_unstable();
    devices.dedup();
    assert_eq!(devices.len(), 8, "{devices:?}");
}

/// One sentence names the problem and the fix.
#[test]
fn without_permission_the_error_names_the_fix() {
    if !is_available() {
        return;
    }
    let mut command =
        behind(&["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
    command.args(["netpath", "--rtt", "1ms", "--", "true"]);
    let ran = finish(command, b"");
    assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{ran:#?}");
    assert!(ran.stderr.contains("; fix: run as root, or "), "{ran:#?}");
}

/// An unprivileged user, if the device may be opened, as on most distributions: both ends are in
/// the user's own namespaces. The device node is a substitute in a mount namespace of this test.
#[test]
fn an_ordinary_user_has_a_path_between_two_programs_of_his() {
    if !is_available() {
        return;
    }
    let script = "mount -t tmpfs none /mnt && mknod /mnt/tun c 10 200 && chmod 666 /mnt/tun && \
                  mount --bind /mnt/tun /dev/net/tun && exec setpriv --reuid 65534 --regid 65534 \
                  --clear-groups -- \"$0\" \"$@\"";
    let mut command = behind(&["unshare", "--mount", "sh", "-c", script]);
    let exe = program::<&str>(&[]).get_program().to_string_lossy().into_owned();
    let server = format!("{exe} site --listen 127.0.0.1:80");
    command.args(["netpath", "--profile", "dsl", "--server", &server, "--"]);
    command.args([
        "sh",
        "-c",
        "id -u; curl -sS -o /dev/null -w '%{http_code}' http://localhost/hw",
    ]);
    let ran = finish(command, b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "65534\n200"), "{ran:#?}");
}

/// A new network namespace has the congestion control of the host's initial one; a path must use
/// the non-default algorithm of the current namespace.
#[test]
fn both_ends_use_an_available_congestion_control() {
    if !is_available() {
        return;
    }
    let names = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let name = "/proc/sys/net/ipv4/tcp_congestion_control";
    let (all, first) =
        (std::fs::read_to_string(names).unwrap(), std::fs::read_to_string(name).unwrap());
    // Reno is always available; without a second algorithm there is nothing to distinguish
    let other = all.split_whitespace().find(|one| *one != first.trim()).unwrap_or("reno");
    let script = format!("echo {other} > {name} && exec \"$0\" \"$@\"");
    let mut command = behind(&["unshare", "--map-root-user", "--net", "sh", "-c", &script]);
    let exe = program::<&str>(&[]).get_program().to_string_lossy().into_owned();
    let server = format!("cat {name} >&2; exec {exe} site --listen 127.0.0.1:80");
    command.args(["netpath", "-q", "--rtt", "1ms", "--server", &server, "--", "cat", name]);
    let ran = finish(command, b"");
    assert_eq!((ran.code, ran.stdout.trim()), (0, other), "{ran:#?}");
    assert!(ran.stderr.contains(other), "{ran:#?}");
}

fn causes(document: &Value) -> Vec<&str> {
    let causes = document["verdict"]["causes"].as_array().unwrap();
    causes.iter().map(|cause| text(cause, "/id")).collect()
}

#[test]
fn a_run_uses_a_path_and_reports_it() {
    if !is_available() {
        return;
    }
    let site = Site::start(&[]);
    let url = site.url("/bytes/1000");
    let document = measured(&[&url, "--path", "rtt=50ms", "-c", "4", "-n", "40"], &[0, 4]);
    assert_eq!(whole(&document, "/outcomes/succeeded"), 40);
    assert!(number(&document, "/service_time_s/p50") >= 0.050, "{}", document["service_time_s"]);
    let path = &document["path"];
    assert_eq!(text(path, "/spec"), "rtt=50ms");
    assert!((number(path, "/kinds/0/rtt_asked_s") - 0.05).abs() < 1e-9);
    for way in ["up", "down"] {
        let arrived = whole(path, &format!("/kinds/0/{way}/arrived"));
        assert!(arrived >= 40, "{path}");
        assert_eq!(whole(path, &format!("/kinds/0/{way}/lost_to_model")), 0);
    }
    assert_eq!(whole(path, "/overflowed"), 0);
    assert!(!causes(&document).contains(&"path-overload"));
    // the connection and the stored plan behave the same way
    assert_eq!(text(&document, "/plan/connection/path"), "rtt=50ms");
    assert!(number(&document, "/tcp/rtt_s/p50") >= 0.050, "{}", document["tcp"]);
    let report = run(&["run", &url, "--path", "rtt=50ms", "-n", "8", "-c", "2", "--full"]);
    assert!(report.stdout.contains("Path          rtt=50ms, seed 1, "), "{report:#?}");
    assert!(report.stdout.contains("configured round trip 50.0 ms"), "{report:#?}");
}

/// Each user has a separate address and link; the report distinguishes them.
#[test]
fn each_client_is_behind_a_path_of_its_own() {
    if !is_available() {
        return;
    }
    let site = Site::start(&[]);
    let url = site.url("/bytes/100");
    let clients = "near=[rtt=10ms]:75%, far=[rtt=150ms]:25%";
    let slo = ["--slo", "near: p50<100ms", "--slo", "far: max<60s"];
    let load = [&url, "--clients", clients, "-c", "4", "-n", "200"];
    let document = measured(&[&load[..], &slo].concat(), &[0, 4]);
    let rows = document["by_clients"].as_array().expect("kinds of clients");
    let names: Vec<&str> = rows.iter().map(|row| text(row, "/name")).collect();
    assert_eq!(names, ["near", "far"]);
    assert_eq!((whole(&rows[0], "/clients"), whole(&rows[1], "/clients")), (3, 1));
    let calls = |row: usize| whole(&rows[row], "/succeeded");
    assert_eq!(calls(0) + calls(1), 200);
    // near users call more often in the same time: a round trip each, and one more at first
    assert!(calls(0) > calls(1), "{rows:?}");
    assert!(number(&rows[1], "/response_time_s/min") >= 0.150, "{rows:?}");
    assert!(number(&rows[0], "/response_time_s/p50") < 0.100, "{rows:?}");
    for row in 0..2 {
        assert!(document["slo"][row]["met"].as_bool().unwrap(), "{}", document["slo"]);
        // the links' counts are separate too
        assert!(whole(&document, &format!("/path/kinds/{row}/up/arrived")) >= calls(row));
    }
    assert_eq!(text(&document, "/plan/connection/clients"), clients);
}

/// Datagrams go through a path like segments, and return from the requested address.
#[cfg(feature = "h3")]
#[test]
fn http3_goes_through_a_path() {
    if !is_available() {
        return;
    }
    let site = QuicSite::start();
    let url = site.url("/bytes/1000");
    let document = site.measured(&[&url, "--path", "rtt=50ms", "-c", "2", "-n", "10"]);
    assert_eq!(whole(&document, "/outcomes/succeeded"), 10);
    assert!(number(&document, "/service_time_s/p50") >= 0.050, "{}", document["service_time_s"]);
    assert!(whole(&document, "/path/kinds/0/up/arrived") >= 10, "{}", document["path"]);
    let clients = "near=[rtt=10ms]:50%, far=[rtt=80ms]:50%";
    let document = site.measured(&[&url, "--clients", clients, "-c", "2", "-n", "20"]);
    let rows = document["by_clients"].as_array().expect("kinds of clients");
    assert_eq!(whole(&document, "/outcomes/succeeded"), 20);
    assert!(number(&rows[1], "/response_time_s/min") >= 0.080, "{rows:?}");
    let vary =
        ["--vary", "rtt=5..15ms", "--step", "10ms", "--hold", "300ms", "-c", "1", "--json", "-"];
    let words = ["ramp", &url, "--http", "3", "--ca", &site.ca];
    let ramp = run(&[&words[..], &vary].concat()).expect(&[0, 1, 4]).json();
    let goodput = |row: usize| number(&ramp, &format!("/steps/{row}/goodput_per_s"));
    assert!(goodput(0) > 0.0 && goodput(1) > 0.0, "{ramp}");
}

#[test]
fn a_udp_server_replies_from_the_requested_address() {
    if !is_available() {
        return;
    }
    for address in ["127.0.0.1:0", "0.0.0.0:0"] {
        let server = std::net::UdpSocket::bind(address).unwrap();
        let port = server.local_addr().unwrap().port();
        let served = std::thread::spawn(move || {
            let mut datagram = [0; 4_000];
            for _ in 0..3 {
                let (length, from) = server.recv_from(&mut datagram).unwrap();
                server.send_to(&datagram[..length], from).unwrap();
            }
        });
        // a connected socket; the last datagram is fragmented
        let script = format!(
            "exec 3<>/dev/udp/127.0.0.1/{port}; for n in 1 2 3000; do \
             printf \"%0${{n}}d\" 7 >&3; timeout 5 dd bs=4000 count=1 <&3 2>/dev/null | wc -c; done"
        );
        let ran = netpath(&["-q", "--rtt", "4ms"], &["bash", "-c", &script]);
        let output: Vec<&str> = ran.stdout.split_whitespace().collect();
        assert_eq!(output, ["1", "2", "3000"], "{address}: {ran:#?}");
        served.join().unwrap();
    }
}

/// In an open load each arrival is a client: the shares are those of the calls.
#[test]
fn arrivals_are_clients_in_turn() {
    if !is_available() {
        return;
    }
    let site = Site::start(&[]);
    let url = site.url("/bytes/100");
    let clients = "a=[rtt=5ms]:50%, b=[rtt=30ms]:50%";
    let document = measured(&[&url, "--clients", clients, "--rate", "200/s", "-n", "200"], &[0, 4]);
    let calls = |row: usize| whole(&document, &format!("/by_clients/{row}/count"));
    assert_eq!(calls(0) + calls(1), 200);
    // five standard deviations of 200 draws
    assert!((65..=135).contains(&calls(0)), "{}", calls(0));
    // handshake and call
    assert!(number(&document, "/by_clients/1/response_time_s/min") >= 0.060);
    let shown = run(&["run", &url, "--clients", clients, "-c", "2", "-n", "4"]).stdout;
    let row = shown.lines().find(|line| line.starts_with("Behind ")).expect("the kinds' table");
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words, ["Behind", "clients", "calls", "failed", "p50", "p99", "max"]);
}

#[test]
fn an_invalid_population_is_refused() {
    for (options, found) in [
        (&["--clients", "dsl:60%, 3g:30%"][..], "its shares add up to 90.0 %, not 100 %"),
        (&["--clients", "10"], "10 is a number, which -c 10 sets; --clients names profiles"),
        (&["--clients", "dsl:50%, 3gg:50%"], "\"3gg\" is not a profile; near: 3g; "),
        (&["--clients", "dsl:120%, 3g:-20%"], "\"120%\" is not a share; write one from 0% to 100%"),
        (&["--clients", "dsl:90%, 3g:10%", "-c", "2"], "clients uses \"3g\"; give -c 10 or more"),
        (&["--clients", "dsl:100%", "--slo", "3g: p99<1s"], "is called \"3g\"; there are: dsl"),
        (&["--clients", "dsl:100%", "--path", "3g"], "--clients and --path contradict each other"),
    ] {
        let ran = run(&[&["run", "http://127.0.0.1:9/"], options].concat());
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains(found), "{found}\n{ran:#?}");
    }
}

/// The load is constant and the path is varied: a user that waits 20 ms longer for each response
/// gets correspondingly fewer.
#[test]
fn a_ramp_varies_the_path_at_one_load() {
    if !is_available() {
        return;
    }
    let site = Site::start(&[]);
    let url = site.url("/bytes/100");
    let vary = ["--vary", "rtt=10..50ms", "--step", "20ms", "--hold", "500ms", "-c", "2"];
    let slo = ["--slo", "p50<40ms", "--json", "-"];
    let ran = run(&[&["ramp", &url, "--path", "loss=list:9999"][..], &vary, &slo].concat());
    let document = ran.expect(&[0, 1, 4]).json();
    assert_eq!(text(&document, "/axis"), "rtt");
    let steps = document["steps"].as_array().expect("steps");
    let levels: Vec<f64> = steps.iter().map(|step| number(step, "/level")).collect();
    assert_eq!(levels, [0.01, 0.03, 0.05]);
    let most = |row: usize| 2.0 / levels[row];
    for row in 0..3 {
        // a closed load of two users makes at most one call each per round trip
        assert!(number(&steps[row], "/goodput_per_s") <= most(row) * 1.05, "{row}");
        let path = format!("loss=list:9999, rtt={}us", levels[row] * 1e6);
        assert_eq!(text(&steps[row], "/path/spec"), path);
    }
    let goodput = |row: usize| number(&steps[row], "/goodput_per_s");
    assert!(goodput(0) > goodput(2), "{} and {}", goodput(0), goodput(2));
    assert!(document["knee"].is_null(), "{}", document["knee"]);
    let shown =
        run(&["ramp", &url, "--vary", "loss=0..1%", "--step", "1%", "--hold", "300ms"]).stdout;
    for part in ["\nPath  ", " at loss 0 %, ", "\n       loss  achieved "] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}

#[test]
fn properties_that_cannot_vary_are_refused() {
    for (options, found) in [
        (&["--vary", "loss=5%"][..], "it is not a range"),
        (
            &["--vary", "speed=1..2"],
            "\"speed\" is not a property that can be varied; write one like",
        ),
        (&["--vary", "loss=0..5%", "--to", "9/s"], "--vary cannot be used with --from and --to"),
        (&["--vary", "loss=0..5%", "--find", "p99<1s"], "--vary cannot be used with --find"),
        (&["--vary", "loss=0..5%", "--population"], "give the users by -c"),
        (&["--vary", "loss=0..5%", "--clients", "dsl:100%"], "cannot be used with --clients"),
        (&["--vary", "rate=1M..2M", "--path", "trace=/nowhere/x"], "\"/nowhere/x\" cannot be read"),
    ] {
        let ran = run(&[&["ramp", "http://127.0.0.1:9/"], options].concat());
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains(found), "{found}\n{ran:#?}");
    }
}

/// Both sides of a comparison use the same path.
#[test]
fn a_comparison_goes_through_a_path() {
    if !is_available() {
        return;
    }
    let site = Site::start(&[]);
    let (a, b) = (format!("a={}", site.url("/bytes/100")), format!("b={}", site.url("/bytes/100")));
    let load = ["--path", "rtt=20ms", "-c", "2", "-d", "100ms", "--blocks", "5", "--json", "-"];
    let ran = run(&[&["compare", &a, &b][..], &load].concat());
    let document = ran.expect(&[0, 1, 4]).json();
    for side in ["before", "after"] {
        let runs = document[side]["runs"].as_array().expect("runs");
        // a block of 100 ms may be over before this machine makes a call
        let called: Vec<&Value> =
            runs.iter().filter(|run| number(run, "/throughput_per_s") > 0.0).collect();
        assert!(!called.is_empty(), "{runs:?}");
        for run in called {
            assert!(number(run, "/p50_s") >= 0.020, "{run}");
        }
        assert_eq!(text(&document, &format!("/{side}/plan/connection/path")), "rtt=20ms");
    }
}

#[test]
fn a_torture_goes_through_a_path() {
    if !is_available() {
        return;
    }
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let path = ["--path", "rtt=20ms, loss=1%", "--beside-rate", "10/s", "--json", "-"];
    let ran = run(&[&["torture", &url, "--only", "S-07"][..], &path].concat());
    assert!([0, 1].contains(&ran.code), "{ran:#?}");
    assert!(ran.stderr.contains("path rtt=20ms, loss=1%, seed 1, "), "{ran:#?}");
    let document = ran.json();
    assert_eq!(text(&document, "/path/spec"), "rtt=20ms, loss=1%");
    assert!(whole(&document, "/path/kinds/0/up/arrived") > 0);
    // users within the bound are on a separate link, for as long as this one
    let users = &document["beside"]["run"];
    assert_eq!(text(users, "/path/spec"), "rtt=20ms, loss=1%");
    assert!(number(users, "/service_time_s/min") >= 0.020, "{users}");
}

/// The round trips of a response of N segments are known if the server begins with a window of ten
/// (RFC 6928) and doubles it: 10, 20, 40. The handshake takes one more.
#[test]
fn slow_start_takes_the_rounds_of_the_textbook() {
    if !is_available() {
        return;
    }
    let site = Site::start(&[]);
    for (bytes, rounds) in [(10_000, 1), (30_000, 2), (80_000, 3)] {
        let url = site.url(&format!("/bytes/{bytes}"));
        let document = measured(
            &[&url, "--path", "rtt=100ms", "-c", "8", "-n", "16", "--calls", "1"],
            &[0, 4],
        );
        // the fastest of several: other work on the machine only slows them
        let took = number(&document, "/service_time_s/min");
        assert_eq!((took / 0.1).floor() as u64, 1 + rounds, "{bytes} bytes in {took} s");
    }
}

/// A lost SYN, or a lost reply to it, is resent after a second: with 5 % loss each way, 1 − 0.95²
/// of connections take that long.
#[test]
fn lost_handshakes_cost_a_second() {
    if !is_available() {
        return;
    }
    const CONNECTIONS: u32 = 800;
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let log = tempfile::NamedTempFile::new().unwrap();
    let count = CONNECTIONS.to_string();
    let log_path = log.path().to_str().unwrap();
    let document = measured(
        &[
            &url,
            "--path",
            "rtt=2ms, loss=5%",
            "-c",
            "400",
            "-n",
            &count,
            "--calls",
            "1",
            "--log",
            log_path,
        ],
        &[0, 1, 4],
    );
    let lost = whole(&document, "/path/kinds/0/up/lost_to_model")
        + whole(&document, "/path/kinds/0/down/lost_to_model");
    assert!(lost > 0);
    let lines = std::fs::read_to_string(log.path()).unwrap();
    // later losses cost 200 ms and its double: a second of service time means a lost handshake
    let service = |line: &str| line.split('\t').nth(3).and_then(|column| column.parse().ok());
    let slow = lines.lines().skip(1).filter_map(service).filter(|span: &f64| *span >= 0.95).count();
    let share = slow as f64 / f64::from(CONNECTIONS);
    // four standard deviations of the binomial law: 1.05 % each
    assert!((0.055..0.140).contains(&share), "{share} of the calls took a second");
    // and the server is not blamed for them
    let found: Vec<&str> =
        document["findings"].as_array().unwrap().iter().map(|one| text(one, "/id")).collect();
    assert!(found.contains(&"path-loss"), "{found:?}");
    assert!(!found.contains(&"accept-queue-overflow"), "{found:?}");
}

/// Returns the bytes per second of one download, as curl reports them.
fn downloaded(ran: &str) -> f64 {
    ran.trim().parse().unwrap_or_else(|_| panic!("no speed: {ran:?}"))
}

/// Compares the kernel's own shaper (TBF), on the device of a path without effect, with a path of
/// that rate: the same download is equally fast within 5 %. If other programs use the cores during
/// either, both are repeated.
#[test]
fn a_rate_equals_the_kernels_shaper() {
    if !is_available() {
        return;
    }
    let site = Site::start(&[]);
    let url = site.url("/bytes/2000000");
    let curl = ["curl", "-sS", "-o", "/dev/null", "-w", "%{speed_download}", &url];
    let mut tries = Vec::new();
    while tries.len() < 6 {
        let by_kernel = shaped_by_the_kernel(&curl);
        let ours = netpath(&["--rtt", "10ms", "--profile", "down-rate=16M, queue=400k"], &curl);
        let by_path = downloaded(&ours.stdout);
        // neither is above the rate: 1,448 of 1,500 bytes are content
        assert!(by_path <= 16e6 / 8.0 * 1_448.0 / 1_500.0 * 1.01, "{by_path}");
        if (by_path / by_kernel - 1.0).abs() <= 0.05 {
            return;
        }
        tries.push((by_path, by_kernel));
    }
    panic!("bytes a second by the path and by the kernel, never within 5 %: {tries:?}");
}

/// Returns the bytes per second of the download with TBF on the device at the server's end.
fn shaped_by_the_kernel(curl: &[&str]) -> f64 {
    let script = "echo ready; read -r go; exec \"$@\"";
    let mut shaped = RunningNetpath::start(&["--rtt", "10ms"], script, curl);
    let device = shaped.device();
    let shaper = ["qdisc", "add", "dev", &device, "root", "tbf"];
    let mut tc = std::process::Command::new("tc");
    tc.args(shaper).args(["rate", "16mbit", "burst", "6kb", "limit", "400kb"]);
    let added = tc.env("PATH", FOLDERS).status().unwrap();
    assert!(added.success(), "{tc:?}");
    shaped.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut rest = String::new();
    shaped.out.read_to_string(&mut rest).unwrap();
    shaped.child.wait().unwrap();
    downloaded(&rest)
}

/// Mathis, Semke, Mahdavi and Ott (1997): a Reno connection has the rate 1.22 · MSS / (RTT · √p).
/// Four times the loss halves it, or more if timeouts occur (Padhye et al., 1998). The tolerance of
/// the figure covers its constant, a sample of only 4 s of losses, and a busy machine.
#[test]
fn loss_limits_throughput_as_the_formula_predicts() {
    const CONNECTIONS: f64 = 16.0;
    if !is_available() {
        return;
    }
    let exe = program::<&str>(&[]).get_program().to_string_lossy().into_owned();
    // the formula is for Reno: the server uses it, whatever this machine's default
    let server = format!(
        "echo reno > /proc/sys/net/ipv4/tcp_congestion_control && exec {exe} site --listen 127.0.0.1:80"
    );
    let url = "http://127.0.0.1/bytes/200000";
    let rate = |loss: &str| {
        let path = format!("rtt=60ms, down-loss={loss}");
        let load = ["run", url, "-c", "16", "-d", "4s", "--json", "-"];
        let all = [&[exe.as_str()][..], &load].concat();
        let ran = netpath(&["--profile", &path, "--server", &server], &all).expect(&[0, 1, 4]);
        let document = ran.json();
        let bytes = whole(&document, "/bytes/received") as f64;
        bytes / number(&document, "/elapsed_s") / CONNECTIONS
    };
    let (little, much) = (rate("0.5%"), rate("2%"));
    let formula = 1.22 * 1_448.0 / 0.060 / 0.005_f64.sqrt();
    assert!((0.4..2.5).contains(&(little / formula)), "{little} against {formula} bytes a second");
    assert!((1.3..4.5).contains(&(little / much)), "{little} and {much} bytes a second");
}
