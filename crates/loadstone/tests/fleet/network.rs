//! Manager, agents and a watch as on several machines: separate credentials, TLS between them, and
//! client certificates if the server requires them.

use crate::support::process::run;
use crate::support::tls::Pki;
use crate::support::{Site, keep, program, text, whole};
use crate::{Ended, need_server, until};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Stdio;

/// Manager with its credentials, and its URL for agents.
struct TestFleet {
    dir: PathBuf,
    manager: Ended,
    place: String,
    _folder: tempfile::TempDir,
}

impl TestFleet {
    fn open(agents: &str, options: &[&str], work: &[&str]) -> TestFleet {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("keys");
        let creds = dir.display().to_string();
        run(&["fleet", "creds", &creds, "--agents", agents]).expect(&[0]);
        let mut args = vec!["fleet", "manager", "--creds", &creds, "--agents", agents];
        args.extend(options);
        args.extend(work);
        let mut command = program(&args);
        command.args(["--json", "-"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut manager = Ended(child);
        let mut lines = BufReader::new(manager.0.stderr.take().unwrap()).lines();
        let place = loop {
            let line = lines.next().expect("it says where it is").unwrap();
            if let Some((_, place)) = line.split_once("--manager ") {
                break place.to_owned();
            }
        };
        // its further output is for people
        std::thread::spawn(move || lines.for_each(drop));
        TestFleet { dir, manager, place, _folder: folder }
    }

    fn join(&self, what: &str, creds: &str, more: &[&str]) -> Ended {
        let creds = self.dir.join(creds).display().to_string();
        let mut args = vec!["fleet", what, "--manager", &self.place, "--creds", &creds];
        args.extend(more);
        Ended(program(&args).stderr(Stdio::null()).spawn().unwrap())
    }

    fn report(mut self) -> Value {
        let mut json = String::new();
        let mut out = self.manager.0.stdout.take().unwrap();
        out.read_to_string(&mut json).unwrap();
        serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"))
    }
}

#[test]
fn a_fleet_on_a_network_shows_certificates_both_ways() {
    need_server();
    let (pki, folder) = (Pki::new(), tempfile::tempdir().unwrap());
    let keep = |name: &str, text: &str| keep(folder.path(), name, text);
    let (cert, key) = (keep("cert", &pki.server.cert), keep("key", &pki.server.key));
    let (own, secret) = (keep("own", &pki.client.cert), keep("secret", &pki.client.key));
    let ca = keep("ca", &pki.ca);
    let site = Site::start(&[]);
    let tls = ["--tls-cert", &cert, "--tls-key", &key, "--client-ca", &ca];
    let trust = ["--ca", &ca, "--cert", &own, "--key", &secret];
    let url = site.url("/");
    let options = [&tls[..], &trust, &["--listen", "127.0.0.1:0"]].concat();
    let camp = TestFleet::open("1", &options, &["--rate", "50/s", "-n", "20", &url]);
    assert!(camp.place.starts_with("tls://"), "{}", camp.place);
    // a client certificate is required, and an unknown authority is not trusted
    let creds = camp.dir.join("agent-0.creds").display().to_string();
    let tried = |more: &[&str]| {
        let words = ["fleet", "agent", "--manager", &camp.place, "--creds", &creds, "--wait", "1s"];
        run(&[&words[..], more].concat()).expect(&[2]).stderr
    };
    assert!(tried(&["--ca", &ca]).contains("cannot join the fleet"));
    let stranger = keep("stranger", &Pki::new().ca);
    let refused = tried(&["--ca", &stranger, "--cert", &own, "--key", &secret]);
    assert!(refused.contains("cannot join the fleet"), "{refused}");
    let _agent = camp.join("agent", "agent-0.creds", &trust);
    let report = camp.report();
    assert_eq!(whole(&report, "/outcomes/succeeded"), 20);
}

#[test]
fn the_targets_machine_is_watched_in_the_same_run() {
    need_server();
    let site = Site::start(&[]);
    let url = site.url("/");
    let camp = TestFleet::open("1", &["--watch"], &["--rate", "50/s", "-d", "3s", &url]);
    let _agent = camp.join("agent", "agent-0.creds", &[]);
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    let listen = format!("127.0.0.1:{port}");
    let mut watch = camp.join("watch", "watch.creds", &["--listen", &listen]);
    // an agent's credentials are not valid for a watch
    let creds = camp.dir.join("agent-0.creds").display().to_string();
    let words =
        ["fleet", "watch", "--manager", &camp.place, "--creds", &creds, "--listen", &listen];
    assert!(run(&words).expect(&[2]).stderr.contains("use watch.creds"));
    let report = camp.report();
    let name = text(&report, "/sut/name");
    assert!(name.contains(" on "), "{name}");
    let rows = report["sut"]["series"].as_array().unwrap();
    let measured: Vec<f64> =
        rows.iter().map(|row| row["at_s"].as_f64().unwrap()).filter(|at| *at > 0.5).collect();
    // at each second of the measured phase by the manager's clock
    assert!(measured.len() >= 3, "{rows:?}");
    assert!((measured[0] - 1.0).abs() < 0.5, "{measured:?}");
    assert!(rows.iter().all(|row| row["memory_bytes"].as_u64().unwrap() > 0), "{rows:?}");
    assert_eq!(watch.0.wait().unwrap().code(), Some(0));
}

/// Starts an operator's server with this configuration on a free port; returns its URL.
pub(crate) fn own_server(config: &std::path::Path) -> (Ended, String) {
    let text = std::fs::read_to_string(config).unwrap();
    std::fs::write(config, text.replacen("port: 4222", "port: -1", 1)).unwrap();
    let mut command = std::process::Command::new("nats-server");
    command.arg("-c").arg(config).stdin(Stdio::null()).stdout(Stdio::null());
    let mut server = Ended(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(server.0.stderr.take().unwrap()).lines();
    let port = loop {
        let line = lines.next().expect("it says where it listens").unwrap();
        if line.contains("Listening for client connections on ") {
            break line.rsplit(':').next().unwrap().trim().to_owned();
        }
    };
    std::thread::spawn(move || lines.for_each(drop));
    (server, format!("nats://127.0.0.1:{port}"))
}

#[test]
fn another_manager_takes_a_run_over_and_loses_no_call() {
    need_server();
    let (site, folder) = (Site::start(&[]), tempfile::tempdir().unwrap());
    let dir = folder.path().join("keys");
    let creds = dir.display().to_string();
    run(&["fleet", "creds", &creds, "--agents", "2"]).expect(&[0]);
    let (_server, nats) = own_server(&dir.join("server.conf"));
    let url = site.url("/");
    let manager = |more: &[&str], rate: &str| {
        let words = ["fleet", "manager", "--creds", &creds, "--agents", "2", "--nats", &nats];
        let work = ["--rate", rate, "-d", "4s", "--json", "-", &url];
        let mut command = program(&[&words[..], more, &work].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    };
    let mut first = Ended(manager(&[], "50/s").spawn().unwrap());
    let join = |creds: &str| {
        let creds = dir.join(creds).display().to_string();
        let args = ["fleet", "agent", "--manager", &nats, "--creds", &creds];
        Ended(program(&args).stderr(Stdio::null()).spawn().unwrap())
    };
    let _agents = [join("agent-0.creds"), join("agent-1.creds")];
    until(&site, || (site.served().requests > 20).then_some(()));
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let other = manager(&["--attach"], "60/s").stderr(Stdio::piped()).output().unwrap();
    assert_eq!(other.status.code(), Some(2));
    let why = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(why.contains("the agents run another plan"), "{why}");
    // the seconds before it joined are requested too
    let report = manager(&["--attach"], "50/s").output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(whole(&report, "/outcomes/due"), 200);
    assert_eq!(whole(&report, "/outcomes/succeeded"), 200, "{:#}", report["outcomes"]);
    assert_eq!(whole(&report, "/response_time_s/count"), 200);
    assert_eq!(report["fleet"]["agents"].as_array().unwrap().len(), 2);
}
