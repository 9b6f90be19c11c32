//! Results that cannot be written, closed terminals, and the output of a dumb terminal.

use super::running::{Running, namespace, shell, unprivileged};
use crate::support::http::Recorder;
use crate::support::{Site, finish, in_process, process, program, run};
use rustix::process::Signal;
use std::path::Path;
use std::process::Stdio;

const FILES: [&str; 5] = ["--json", "--csv", "--hdr", "--html", "--log"];

#[test]
fn unwritable_results_are_reported_before_sending() {
    let server = Recorder::plain();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    for option in FILES {
        for path in [format!("{folder}/gone/out"), folder.to_owned(), format!("{folder}/none/")] {
            let ran = run(&["run", "-n", "1", option, &path, &server.url("/")]).expect(&[5]);
            assert!(ran.stderr.contains(&path), "{option}: {}", ran.stderr);
            assert_eq!(ran.stdout, "");
        }
    }
    assert_eq!(server.all().len(), 0);
}

#[test]
fn a_folder_of_another_user_is_refused() {
    let server = Recorder::plain();
    let folder = tempfile::tempdir().unwrap();
    let modes = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(folder.path(), modes(0o555)).unwrap();
    let path = folder.path().join("out");
    for option in FILES {
        let Some(mut command) = unprivileged(&[]) else { return };
        command.args(["run", "-n", "1", option, path.to_str().unwrap(), &server.url("/")]);
        let ran = finish(command, b"").expect(&[5]);
        assert!(ran.stderr.contains("Permission denied"), "{option}: {}", ran.stderr);
        assert!(ran.stderr.contains("an existing, writable folder"), "{option}: {}", ran.stderr);
    }
    assert_eq!(server.all().len(), 0);
    std::fs::set_permissions(folder.path(), modes(0o755)).unwrap();
}

#[test]
fn a_full_device_is_an_error() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    for option in FILES {
        let ran = run(&["run", "-n", "200", option, "/dev/full", &url]).expect(&[5]);
        assert!(ran.stderr.contains("/dev/full"), "{option}: {}", ran.stderr);
        assert!(ran.stderr.contains("No space left"), "{option}: {}", ran.stderr);
    }
    let report: [&[&str]; 4] = [
        &["run", "-n", "5", &url],
        &["run", "-n", "5", "--json", "-", &url],
        &["run", "--print-plan", &url],
        &["--help"],
    ];
    for args in report {
        let mut command = shell(r#"exec "$0" "$@" > /dev/full"#);
        command.args(args);
        let ran = finish(command, b"").expect(&[5]);
        assert!(ran.stderr.contains("No space left"), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_full_disk_leaves_nothing_that_looks_whole() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap().to_owned();
    for option in ["--html", "--log"] {
        // neither the page nor the lines of 2,000 calls fit into 16 KiB; an old result exists
        // already
        let script = r#"mount -t tmpfs -o size=16k none "$PLACE" && echo old > "$PLACE/out" &&
            { "$0" "$@" > /dev/null; code=$?; ls -A "$PLACE"; cat "$PLACE/out"; exit $code; }"#;
        let Some(mut command) = namespace(&["-m"], script) else { return };
        command.env("PLACE", &place);
        let path = format!("{place}/out");
        command.args(["run", "-n", "2000", option, &path, &site.url("/hw")]);
        let ran = finish(command, b"").expect(&[5]);
        assert!(ran.stderr.contains(&path), "{option}: {}", ran.stderr);
        assert_eq!(ran.stdout, "out\nold\n", "{option}");
    }
}

#[test]
fn a_log_whose_run_was_killed_does_not_look_whole() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls.log");
    let path = log.to_str().unwrap();
    let running = Running::start(&["run", "-d", "10m", "--log", path, &site.url("/hw")]);
    wait_for(&site, 100);
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, -1);
    assert!(!log.exists(), "half a log stands under the name of a whole one");
}

#[test]
fn a_log_has_its_header_and_a_line_for_each_call() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.log");
    std::fs::write(&path, "an old log, longer than nothing\n").unwrap();
    let name = path.to_str().unwrap();
    run(&["run", "-n", "7", "--repeat", "2", "--log", name, &site.url("/hw")]).expect(&[0, 4]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 1 + 2 * 7, "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "something was left behind");
}

#[test]
fn a_symbolic_link_stays_and_its_target_gets_the_result() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("kept")).unwrap();
    for option in FILES {
        let target = folder.path().join("kept").join(&option[2..]);
        let link = folder.path().join(format!("latest{option}"));
        // relative to the link's folder, and in two steps
        let step = folder.path().join(format!("step{option}"));
        std::os::unix::fs::symlink(format!("kept/{}", &option[2..]), &step).unwrap();
        std::os::unix::fs::symlink(&step, &link).unwrap();
        for round in ["made anew", "replaced"] {
            let name = link.to_str().unwrap();
            run(&["run", "-n", "5", option, name, &site.url("/hw")]).expect(&[0, 4]);
            assert!(link.is_symlink() && step.is_symlink(), "{option}: {round}");
            let text = std::fs::read_to_string(&target).unwrap();
            assert!(text.lines().count() > 1, "{option}: {round}: {text}");
            std::fs::write(&target, "old").unwrap();
        }
    }
    let circle = folder.path().join("circle");
    std::os::unix::fs::symlink("circle", &circle).unwrap();
    let ran = run(&["run", "-n", "5", "--csv", circle.to_str().unwrap(), &site.url("/hw")]);
    let stderr = ran.expect(&[5]).stderr;
    assert!(stderr.contains("its links form a loop"), "{stderr}");
}

/// Checks the lines of the log and of the report in a text that contains both.
fn is_log_and_report(text: &str, calls: usize) {
    let logged = text.lines().filter(|line| line.contains("\tsucceeded\t")).count();
    assert_eq!(logged, calls, "{text}");
    assert!(text.contains("index\tintended_s") && text.contains("Throughput"), "{text}");
}

#[test]
fn open_descriptors_are_written_to() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let url = site.url("/hw");
    let ran = process::run(&["run", "-n", "7", "--log", "/dev/stdout", &url]).expect(&[0, 4]);
    is_log_and_report(&ran.stdout, 7);
    let ran = process::run(&["run", "-n", "7", "--csv", "/dev/stderr", &url]).expect(&[0, 4]);
    assert!(ran.stderr.contains("at_s,"), "{ran:#?}");
    // standard output is a file: its content stays, and log and report do not overwrite each other
    let all = folder.path().join("all");
    std::fs::write(&all, "before\n").unwrap();
    for (redirection, name) in
        [(r#">> "$PLACE/all""#, "/dev/stdout"), (r#"> "$PLACE/all""#, "/proc/self/fd/1")]
    {
        let mut command = shell(&format!(r#"exec "$0" "$@" {redirection}"#));
        command.env("PLACE", folder.path());
        command.args(["run", "-n", "7", "--log", name, &url]);
        finish(command, b"").expect(&[0, 4]);
        let text = std::fs::read_to_string(&all).unwrap();
        assert_eq!(text.starts_with("before\n"), redirection.starts_with(">>"), "{text}");
        is_log_and_report(&text, 7);
    }
    let mut command = shell(r#"exec "$0" "$@" 3> "$PLACE/third""#);
    command.env("PLACE", folder.path()).args(["run", "-n", "7", "--json", "/dev/fd/3", &url]);
    finish(command, b"").expect(&[0, 4]);
    assert_eq!(succeeded(&folder.path().join("third")), 7);
}

#[test]
fn a_named_pipe_has_one_beginning_and_one_end() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    for (option, lines) in [("--log", 1 + 2 * 7), ("--csv", 2)] {
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let (tell, found) = std::sync::mpsc::channel();
        let reading = pipe.clone();
        std::thread::spawn(move || tell.send(std::fs::read_to_string(reading)));
        let name = pipe.to_str().unwrap();
        run(&["run", "-n", "7", "--repeat", "2", option, name, &site.url("/hw")]).expect(&[0, 4]);
        let text = found.recv().unwrap().unwrap();
        assert!(text.lines().count() >= lines, "{option}: {text}");
        if option == "--log" {
            assert_eq!(text.lines().count(), lines, "{text}");
        }
        std::fs::remove_file(&pipe).unwrap();
    }
}

/// Waits until the site has answered this many requests.
pub(crate) fn wait_for(site: &Site, requests: u64) {
    while site.served().requests < requests {
        // the wait is the site's, so the test needs no clock
        assert!(!site.wait(std::time::Duration::from_millis(5)), "the site ended by itself");
    }
}

#[test]
fn without_standard_streams_the_files_are_whole() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    for (index, script) in
        [r#"exec "$0" "$@" <&-"#, r#"exec "$0" "$@" >&- 2>&-"#, r#"exec "$0" "$@" <&- >&- 2>&-"#]
            .iter()
            .enumerate()
    {
        let path = folder.path().join(format!("{index}.json"));
        let mut command = shell(script);
        command.args(["run", "-n", "5", "--json", path.to_str().unwrap(), &site.url("/hw")]);
        finish(command, b"").expect(&[0, 4]);
        assert_eq!(succeeded(&path), 5, "{script}");
    }
}

fn succeeded(path: &Path) -> u64 {
    let text = std::fs::read_to_string(path).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    crate::support::outcomes(&json)[1]
}

#[test]
fn a_closed_pipe_does_not_lose_the_result() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json");
    let mut command = program(&["run", "-n", "5", "--json", path.to_str().unwrap()]);
    command.arg(site.url("/hw")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // no reader on either stream
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert_eq!(succeeded(&path), 5);
}

/// Runs on a terminal of 80 columns made by script(1).
fn on_a_terminal(env: &[(&str, &str)], url: &str) -> String {
    let program = program::<&str>(&[]);
    let binary = program.get_program().to_str().unwrap().to_owned();
    let line = format!("stty cols 80; exec '{binary}' run -n 5 {url}");
    let mut terminal = std::process::Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
    terminal.env_remove("NO_COLOR").env("TERM", "xterm").env("LANG", "C.UTF-8");
    terminal.env("LOADSTONE_STORE", "none");
    terminal.env_remove("LC_ALL").envs(env.iter().copied());
    finish(terminal, b"").expect(&[0, 4]).stdout
}

#[test]
fn color_is_used_only_on_terminals_that_want_it() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let coloured = |text: &str| text.contains("\u{1b}[1;3");
    assert!(coloured(&on_a_terminal(&[], &url)));
    for plain in [[("NO_COLOR", "1")], [("TERM", "dumb")]] {
        let text = on_a_terminal(&plain, &url);
        assert!(text.contains("Throughput") && !coloured(&text), "{plain:?}: {text:?}");
    }
    let dumb = on_a_terminal(&[("TERM", "dumb")], &url);
    assert!(!dumb.contains('\u{1b}'), "{dumb:?}");
    // not a terminal: no escape sequences, regardless of the environment
    let mut command = program(&["run", "-n", "5", &url]);
    command.env("TERM", "xterm").env("CLICOLOR_FORCE", "1");
    assert!(!in_process(&command, b"").expect(&[0, 4]).stdout.contains('\u{1b}'));
}

#[test]
fn plain_ascii_where_the_locale_has_nothing_else() {
    let site = Site::start(&[]);
    let (good, gone) = (site.url("/hw"), "http://127.0.0.1:9/");
    let locales = [[("LANG", "C"), ("LC_ALL", "")], [("LANG", "C.UTF-8"), ("LC_ALL", "POSIX")]];
    for locale in locales {
        for url in [good.as_str(), gone] {
            let mut command = program(&["run", "-n", "5", "--percentiles", url]);
            command.envs(locale);
            let ran = in_process(&command, b"").expect(&[0, 3, 4]);
            assert!(ran.stdout.is_ascii(), "{locale:?}: {}", ran.stdout);
            assert!(ran.stderr.is_ascii(), "{locale:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    let site = Site::start(&[("error-share", "50%")]);
    let long = format!("{}?{}", site.url("/hw"), "long=".repeat(40));
    let ran = run(&["run", "-n", "50", "--percentiles", &long]).expect(&[0, 4]);
    let wide: Vec<_> = ran.stdout.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.iter().all(|line| line.contains("long=long=")), "{wide:#?}");
}
