//! `loadstone site --norm` and `--init`, as a user runs them.

use crate::support::{program, run};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The norm site in a separate process.
struct Norm {
    child: Child,
    url: String,
}

impl Norm {
    #[track_caller]
    fn start(options: &[&str]) -> Norm {
        let mut args = vec!["site", "--norm"];
        args.extend(options);
        args.extend(["--listen", "127.0.0.1:0"]);
        let mut command = program(&args);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the program");
        let mut url = String::new();
        let out = child.stdout.as_mut().expect("a pipe");
        BufReader::new(out).read_line(&mut url).expect("a line");
        Norm { child, url: url.trim_end().to_owned() }
    }

    #[track_caller]
    fn get(&self, path: &str) -> String {
        let address = self.url.strip_prefix("http://").expect("a URL on the first line");
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time above 0");
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a connection");
        let mut response = Vec::new();
        stream.read_to_end(&mut response).expect("a response");
        String::from_utf8_lossy(&response).into_owned()
    }

    /// Ends the site like a service manager; returns the exit code and the output.
    fn stop(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("our own child");
        let mut text = String::new();
        let mut pipe = self.child.stderr.take().expect("a pipe");
        pipe.read_to_string(&mut text).expect("text");
        (self.child.wait().expect("an end").code(), text)
    }
}

impl Drop for Norm {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_temporary_tree_is_served_and_goes_with_the_site() {
    let site = Norm::start(&["--timing", "--log", "/dev/null"]);
    assert!(site.get("/").contains("<h1>Welcome to "));
    assert!(site.get("/hw").contains("server-timing: abort-request;dur="));
    let environment = site.get("/cgi/env");
    let folder = environment.lines().find_map(|line| line.strip_prefix("PWD="));
    let folder = std::path::PathBuf::from(folder.unwrap());
    assert!(folder.is_dir(), "{}", folder.display());
    let (code, found) = site.stop();
    assert_eq!(code, Some(0));
    assert!(found.contains("served 3 requests on 3 connections, refused 0"), "{found}");
    assert!(!folder.exists(), "{}", folder.display());
}

#[test]
fn a_tree_that_was_written_out_is_served_with_its_own_log() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    let tree = tree.to_str().unwrap();
    let written = run(&["site", "--init", tree]).expect(&[0]).stdout;
    assert!(written.contains("/tree/site.toml\n") && written.contains("/tree/htdocs/sub/empty/\n"));
    let again = run(&["site", "--init", tree]).expect(&[2]).stderr;
    assert!(again.contains("is there already and is not overwritten"), "{again}");
    let site = Norm::start(&[tree, "--break", "hw-text"]);
    assert!(site.get("/hw").ends_with("hello there\n"));
    assert_eq!(site.stop().0, Some(0));
    let log = std::fs::read_to_string(format!("{tree}/var/errors")).unwrap();
    assert_eq!(log.matches(" Info: New connection from 127.0.0.1:").count(), 1, "{log}");
    // the chapter: the tmp directory is empty, the var directory has only the log
    let names = |name: &str| std::fs::read_dir(format!("{tree}/{name}")).unwrap().count();
    assert_eq!((names("tmp"), names("var"), names("odd")), (0, 1, 0));
}

#[test]
fn configuration_errors_name_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("site.toml"), "Port = 2020\nMaxClient = 3\n").unwrap();
    let errors = run(&["site", "--norm", tree]).expect(&[2]).stderr;
    assert!(errors.contains("site.toml: line 2: unknown field `MaxClient`"), "{errors}");
    assert!(errors.contains("`MaxClients`"), "{errors}");
}

#[test]
fn a_port_in_use_is_reported() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let errors = run(&["site", "--norm", "--listen", &address]).expect(&[2]).stderr;
    assert!(errors.contains(&format!("cannot listen on {address}: the port is taken")), "{errors}");
}
