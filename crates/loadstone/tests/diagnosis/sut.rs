//! `--sut`: the server's own resources during the run.

use crate::support::http::{Recorder, response};
use crate::support::process::{measure, run};
use crate::support::{Site, program};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// A site in a separate process.
struct Server(Child, String);

impl Server {
    fn start() -> Server {
        let mut command = program(&["site", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Server(child, line.trim_end().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_process_is_watched_second_by_second() {
    let server = Server::start();
    let pid = server.0.id().to_string();
    let report = measure(&[server.1.as_str(), "-c", "4", "-d", "3s", "--sut", &pid]);
    let sut = &report["sut"];
    assert!(sut["name"].as_str().unwrap().contains(&format!("pid {pid}")), "{sut}");
    let rows = sut["series"].as_array().unwrap();
    assert!(rows.len() >= 3, "{sut}");
    let last = &rows[rows.len() - 1];
    assert!(last["memory_bytes"].as_u64().unwrap() > 100_000, "{sut}");
    assert!(last["descriptors"].as_u64().unwrap() > 3, "{sut}");
    assert!(rows.iter().any(|row| row["cpu_cores"].as_f64().unwrap() > 0.0), "{sut}");
    assert!(sut["cpu_share"].as_f64().unwrap() <= 1.0, "{sut}");
    let text = run(&["run", "--full", &server.1, "-d", "1s", "--sut", &pid]).expect(&[0, 4]).stdout;
    assert!(text.contains("Server        loadstone (pid"), "{text}");
}

#[test]
fn a_node_exporter_is_queried_over_http() {
    let readings = AtomicU64::new(0);
    let exporter = Recorder::start(move |_| {
        // half a second of CPU between two readings
        let spent = readings.fetch_add(1, Ordering::Relaxed) as f64 / 2.0;
        let body = format!(
            "node_cpu_seconds_total{{cpu=\"0\",mode=\"user\"}} {spent}\n\
             node_cpu_seconds_total{{cpu=\"0\",mode=\"idle\"}} 1\n\
             node_memory_MemTotal_bytes 1000\nnode_memory_MemAvailable_bytes 400\n"
        );
        response(200, "", &body)
    });
    let site = Site::start(&[("delay", "5ms")]);
    let url = exporter.url("/metrics");
    let report = measure(&[site.url("/hw").as_str(), "-d", "2s", "--sut", &url]);
    let sut = &report["sut"];
    assert_eq!(sut["memory_max_bytes"], 1_000, "{sut}");
    assert_eq!(sut["series"][0]["memory_bytes"], 600, "{sut}");
    assert!(sut["series"][0]["cpu_cores"].as_f64().unwrap() > 0.0, "{sut}");
}

#[test]
fn an_unwatchable_server_is_reported_before_the_run() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    for (sut, why) in [
        ("4294967295", "there is no process 4294967295"),
        ("nginx", "the number of a process on this machine"),
        (url.as_str(), "is it a node exporter?"),
        ("http://127.0.0.1:1/metrics", "http://127.0.0.1:1/metrics"),
    ] {
        let ran = run(&["run", &url, "-d", "1s", "--sut", sut]).expect(&[2]);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
}
