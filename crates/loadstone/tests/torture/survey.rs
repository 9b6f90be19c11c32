//! `loadstone survey` from outside: servers on loopback, name servers as packaged by Debian, and
//! third-party addresses.

use crate::safety::{PUBLIC, in_public, namespaces_are_available};
use crate::support::nginx::Nginx;
use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{Scripted, Site, free_port, in_process, program, run};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

/// Surveys a list with its own state folder.
fn survey(state: &Path, list: &str, args: &[&str]) -> Value {
    let mut command = program(&[&["survey", "--rate", "200", "--json", "-", "-"], args].concat());
    command.env("XDG_STATE_HOME", state);
    in_process(&command, list.as_bytes()).expect(&[0]).json()
}

/// Returns the name and confidence of each server, in the order of the list.
fn rows_of(survey: &Value) -> Vec<String> {
    let servers = survey["servers"].as_array().unwrap().iter();
    let row = |one: &Value| match one["software"].as_str() {
        Some(name) => format!("{name} ({})", one["confidence"].as_str().unwrap()),
        None => format!("not reached: {}", one["trouble"].as_str().unwrap()),
    };
    servers.map(row).collect()
}

#[test]
fn web_servers_are_identified_by_claim_and_behavior() {
    let state = tempfile::tempdir().unwrap();
    let site = Site::start(&[]);
    let nginx = Nginx::start("a page");
    // it claims to be nginx but does not behave like it
    let faker = Scripted::start(|mut stream, _| {
        let mut piece = [0; 4096];
        if matches!(stream.read(&mut piece), Ok(1..)) {
            let text = "HTTP/1.1 200 OK\r\nServer: nginx/1.27\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(text.as_bytes()).ok();
        }
    });
    let gone = free_port();
    let list = format!(
        "# ours\n{}\n{}\nhttp://{}/\n127.0.0.1:{gone}\n{}\n",
        site.url("/"),
        nginx.url(),
        faker.address,
        site.url("/hw"),
    );
    let found = survey(state.path(), &list, &[]);
    let rows = rows_of(&found);
    assert_eq!(rows[0], "loadstone on hyper (behaved)");
    assert!(rows[1].starts_with("nginx 1.") && rows[1].ends_with("(agreed)"), "{rows:?}");
    assert_eq!(rows[2], "nginx 1.27 (claimed)");
    assert_eq!(rows[3], "not reached: connection refused");
    // the same address and port once, with both of its names
    assert_eq!((rows.len(), found["servers"][0]["names"].as_array().unwrap().len()), (4, 2));
    assert_eq!(found["software"].as_array().unwrap().len(), 3);
    assert_eq!(found["servers"][1]["http"], serde_json::json!(["1.1"]));
    let log = fs::read_to_string(state.path().join("loadstone/torture-audit.jsonl")).unwrap();
    assert_eq!(log.matches("\"kind\":\"visit\"").count(), 4, "{log}");
    let mut audit = program(&["torture", "audit", "verify"]);
    audit.env("XDG_STATE_HOME", state.path());
    in_process(&audit, b"").expect(&[0]);
    // one request each
    let before = site.served().requests;
    survey(state.path(), &site.url("/"), &["--plain"]);
    assert_eq!(site.served().requests, before + 1);
}

#[test]
fn servers_are_listed_with_tls_versions_and_deadlines() {
    let state = tempfile::tempdir().unwrap();
    let (both, old) =
        (TlsOptions::default(), TlsOptions { only_12: true, ..TlsOptions::default() });
    let (both, old) = (TlsServer::start(&both), TlsServer::start(&old));
    // tolerates an incomplete connection for one second
    let brisk = Scripted::start(|mut stream, _| {
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let (mut piece, mut head) = ([0; 4096], Vec::new());
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            head.extend_from_slice(&piece[..count]);
            if head.ends_with(b"\r\n\r\n") {
                head.clear();
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok();
            }
        }
    });
    let secure = |server: &TlsServer| format!("https://127.0.0.1:{}/", server.port());
    let list = format!("{}\n{}\n", secure(&both), secure(&old));
    let found = survey(state.path(), &list, &[]);
    let versions = |at: usize| -> Vec<String> {
        let versions = found["servers"][at]["tls"].as_array().unwrap().iter();
        versions.map(|one| one.as_str().unwrap().replace("TLSv", "")).collect()
    };
    assert_eq!((versions(0), versions(1)), (vec!["1.2".into(), "1.3".into()], vec!["1.2".into()]));
    assert_eq!(found["servers"][0]["deadlines"], Value::Null);
    let found = survey(state.path(), &format!("http://{}/", brisk.address), &["--deadlines"]);
    for name in ["idle_s", "half_head_s"] {
        let deadline = found["servers"][0]["deadlines"][name].as_f64().unwrap();
        assert!((0.9..5.0).contains(&deadline), "{name}: {deadline}");
    }
}

#[test]
fn a_survey_is_text_a_table_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start(&[]);
    let (list, csv, page) =
        (folder.path().join("list"), folder.path().join("s.csv"), folder.path().join("s.html"));
    fs::write(&list, site.url("/")).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let args = ["survey", "--no-audit", "--csv", &path(&csv), "--html", &path(&page), &path(&list)];
    let ran = run(&args).expect(&[0]);
    assert!(ran.stdout.starts_with("1 loadstone on hyper  (behaved)"), "{ran:#?}");
    assert!(ran.stdout.contains("1 web server answered, in "), "{ran:#?}");
    let rows = fs::read_to_string(&csv).unwrap();
    assert!(rows.lines().nth(1).unwrap().contains(",1,loadstone on hyper,"), "{rows}");
    assert!(fs::read_to_string(&page).unwrap().contains("<td>loadstone on hyper<"));
    fs::write(&list, "127.0.0.1:80\nftp://x/\n").unwrap();
    let ran = run(&["survey", &path(&list)]).expect(&[2]);
    assert!(ran.stderr.contains("list: line 2: "), "{ran:#?}");
}

/// File names need not be Unicode.
#[test]
fn a_file_may_have_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start(&[]);
    let odd = |name: &str| {
        let name = [name.as_bytes(), b"\xff"].concat();
        folder.path().join(std::ffi::OsStr::from_bytes(&name))
    };
    let mut survey = program(&["survey", "--html"]);
    survey.arg(odd("page")).arg("-").env("XDG_STATE_HOME", folder.path());
    in_process(&survey, site.url("/").as_bytes()).expect(&[0]);
    assert!(odd("page").is_file());
    let mut torture = program(&["torture", "--no-audit", "--only", "S-01", "--out"]);
    torture.arg(odd("evidence")).arg(site.url("/"));
    in_process(&torture, b"").expect(&[0]);
    assert!(odd("evidence").is_dir());
}

/// Without a writable output no server is visited.
#[test]
fn an_unwritable_survey_output_is_reported_first() {
    let site = Site::start(&[]);
    let command = program(&["survey", "--no-audit", "--csv", "/nowhere/x.csv", "-"]);
    let ran = in_process(&command, site.url("/").as_bytes()).expect(&[5]);
    assert!(ran.stderr.contains("/nowhere/x.csv"), "{ran:#?}");
    assert_eq!(site.served().requests, 0);
}

/// Name server that ends with the test.
struct NameServer {
    child: Child,
    port: u16,
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Starts the name server with a configuration in which `{port}` and `{folder}` are replaced;
/// returns when it responds.
fn name_server(folder: &Path, name: &str, args: &[&str], config: &str) -> NameServer {
    let port = free_port();
    let home = folder.join(name);
    fs::create_dir_all(&home).unwrap();
    let put = |text: &str| {
        text.replace("{port}", &port.to_string()).replace("{folder}", home.to_str().unwrap())
    };
    // PowerDNS has a fixed name for the file
    fs::write(home.join("pdns.conf"), put(config)).unwrap();
    fs::write(home.join("zones"), "").unwrap();
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
    let log = fs::File::create(home.join("log")).unwrap();
    let child = Command::new(name)
        .args(args.iter().map(|arg| put(arg)))
        .env("PATH", path)
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| panic!("{name}: {error}; cargo xtask test installs it"));
    let server = NameServer { child, port };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let question = survey_question();
    // it only delays the next try
    let quiet = UdpSocket::bind("127.0.0.1:0").unwrap();
    quiet.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    for _ in 0..1_500 {
        // refused while no server listens
        if socket.send(&question).is_ok() && socket.recv(&mut [0; 512]).is_ok() {
            return server;
        }
        quiet.recv(&mut [0; 1]).ok();
    }
    let log = fs::read_to_string(home.join("log")).unwrap_or_default();
    panic!("{name} does not answer: {log}");
}

/// Renders a query for `version.bind` in class CH.
fn survey_question() -> Vec<u8> {
    b"\x12\x34\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07version\x04bind\x00\x00\x10\x00\x03"
        .to_vec()
}

#[test]
fn name_servers_of_debian_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let file = "{folder}/pdns.conf";
    let servers = [
        name_server(
            at,
            "named",
            &["-g", "-c", file],
            "options { directory \"{folder}\"; listen-on port {port} { 127.0.0.1; }; listen-on-v6 { none; }; \
             pid-file none; session-keyfile none; recursion no; dnssec-validation no; }; controls { };",
        ),
        name_server(
            at,
            "unbound",
            &["-d", "-c", file],
            "server:\n interface: 127.0.0.1@{port}\n do-daemonize: no\n chroot: \"\"\n username: \"\"\n \
             directory: \"{folder}\"\n pidfile: \"\"\n use-syslog: no\n module-config: \"iterator\"\n\
             remote-control:\n control-enable: no\n",
        ),
        name_server(
            at,
            "nsd",
            &["-d", "-c", file],
            "server:\n ip-address: 127.0.0.1@{port}\n username: \"\"\n chroot: \"\"\n database: \"\"\n \
             zonesdir: \"{folder}\"\n pidfile: \"{folder}/pid\"\n xfrdfile: \"{folder}/xfrd\"\n \
             zonelistfile: \"{folder}/zones.nsd\"\n xfrdir: \"{folder}\"\n \
             cookie-secret-file: \"{folder}/cookie\"\nremote-control:\n control-enable: no\n",
        ),
        name_server(
            at,
            "knotd",
            &["-c", file],
            "server:\n    rundir: \"{folder}\"\n    listen: 127.0.0.1@{port}\ndatabase:\n    \
             storage: \"{folder}\"\nlog:\n  - target: stderr\n    any: warning\n",
        ),
        name_server(
            at,
            "pdns_server",
            &["--config-dir={folder}"],
            "launch=bind\nbind-config={folder}/zones\nlocal-address=127.0.0.1\nlocal-port={port}\n\
             socket-dir={folder}\ndaemon=no\nguardian=no\n",
        ),
        name_server(
            at,
            "dnsmasq",
            &[
                "-k",
                "--port={port}",
                "--listen-address=127.0.0.1",
                "--bind-interfaces",
                "--no-resolv",
                "--no-hosts",
                "--conf-file=/dev/null",
                "--user=root",
                "--pid-file=",
            ],
            "",
        ),
    ];
    let list: String =
        servers.iter().map(|server| format!("127.0.0.1:{}\n", server.port)).collect();
    let found = survey(at, &list, &["--dns"]);
    let rows = rows_of(&found);
    let names = ["BIND 9", "Unbound 1", "NSD 4", "Knot DNS 3", "PowerDNS 4", "dnsmasq 2"];
    for (row, name) in rows.iter().zip(names) {
        assert!(row.starts_with(name) && row.ends_with("(agreed)"), "{name}: {found:#}");
    }
    assert_eq!((rows.len(), &found["kind"]), (6, &"name-servers".into()));
}

#[test]
fn foreign_addresses_get_one_plain_request_and_only_on_demand() {
    // rejected before anything is sent, wherever this runs
    let state = tempfile::tempdir().unwrap();
    let refusal = |list: &str, args: &[&str]| {
        let mut command = program(&[&["survey", "-"], args].concat());
        command.env("XDG_STATE_HOME", state.path());
        in_process(&command, list.as_bytes()).expect(&[2]).stderr
    };
    let dark = refusal(&format!("{PUBLIC}:8080\n"), &[]);
    assert!(dark.contains("203.0.113.7 is a public address: refused"), "{dark}");
    assert!(refusal(PUBLIC, &["--yes-i-may"]).contains("--owner"));
    assert!(refusal("169.254.169.254\n", &[]).contains("is a reserved address"));
    assert!(refusal("127.0.0.1:25\n", &[]).contains("port 25 belongs to another protocol"));
    let unaudited = refusal("10.0.0.1\n", &["--no-audit"]);
    assert!(unaudited.contains("--no-audit is for servers on this machine: "), "{unaudited}");
    assert!(!state.path().join("loadstone/torture-audit.jsonl").exists());
    if !namespaces_are_available("--net") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = in_public(
        folder.path(),
        &format!(
            "echo {PUBLIC}:8080 > list; $0 survey list; echo refused $?; \
             $0 survey --yes-i-may --owner Acme --deadlines --json s.json list; echo permitted $?; \
             cat s.json; $0 torture audit show; cat $XDG_STATE_HOME/loadstone/torture-audit.jsonl"
        )
        .replace("list", &folder.path().join("list").display().to_string())
        .replace("s.json", &folder.path().join("s.json").display().to_string()),
    );
    for part in [
        "refused 2",
        "permitted 0",
        "nginx 1.",
        "(claimed)",
        "\"owner\":\"Acme\"",
        "started: a survey of 1 server (public, 203.0.113.7:8080)",
        "visited 203.0.113.7:8080 (1 question): nginx 1.",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
    assert_eq!(output.matches("\"question\"").count(), 1, "{output}");
}
