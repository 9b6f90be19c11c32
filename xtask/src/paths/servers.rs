//! Our own TCP against independent servers, over a path that loses packets: a connection for each
//! call, and every response verified.

use super::machine;
use crate::truths::Subject;
use anyhow::Context;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Servers by the names of their files in `xtask/truths`.
const SERVERS: [&str; 7] = [
    "nginx",
    "Apache, event",
    "Caddy",
    "Go net/http",
    "Node http",
    "haproxy",
    "Python http.server",
];
const PATH: &str = "rtt=10ms, loss=1%";
/// Number of users. nginx and haproxy have 64 connections each, some of which are still ending.
const USERS: &str = "30";
const CALLS: u64 = 10_000;

/// Figures of a run against one server.
struct Met {
    established: u64,
    compared: u64,
    wrong: u64,
    again: u64,
    out_of_order: u64,
    body_mb: f64,
    took_s: f64,
}

/// Returns the table, a row for each server.
///
/// # Errors
/// Fails if a server is not installed or does not start, or if a call failed or was answered
/// differently from the first one.
pub(super) fn section(root: &Path, binary: &Path) -> anyhow::Result<String> {
    let subjects = Subject::read_all(&root.join("xtask/truths"))?;
    let mut text = format!(
        "`loadstone run --stack own --path '{PATH}' --calls 1 -c {USERS} -n {CALLS} --verify`: a connection for each call, \
         and the hash of each response compared with that of the first. {}\n\n\
         | server | connections | responses compared | wrong | segments retransmitted by us | received out of order | content | time |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
        machine()
    );
    for name in SERVERS {
        let subject = subjects.iter().find(|one| one.name == name);
        let subject = subject.with_context(|| format!("xtask/truths has no {name}"))?;
        let package = &subject.package;
        anyhow::ensure!(
            subject.is_installed(),
            "{name} is not installed; its package is {package}"
        );
        let server = subject.start(binary).with_context(|| name)?;
        // haproxy is in front of the built-in site, whose page in the other table is short
        let url = server.url.replace("/hw", "/bytes/100000");
        let met = meet(binary, &url).with_context(|| name)?;
        writeln!(text, "{}", row(&format!("{name} {}", subject.version()), &met))?;
    }
    Ok(text)
}

fn row(server: &str, met: &Met) -> String {
    format!(
        "| {server} | {} | {} | {} | {} | {} | {:.0} MB | {:.0} s |",
        met.established,
        met.compared,
        met.wrong,
        met.again,
        met.out_of_order,
        met.body_mb,
        met.took_s
    )
}

fn meet(binary: &Path, url: &str) -> anyhow::Result<Met> {
    let mut run = Command::new(binary);
    run.args(["run", url, "--stack", "own", "--path", PATH, "--calls", "1", "-c", USERS]);
    run.args(["-n", &CALLS.to_string(), "--verify", "--threads", "1", "--timeout", "60s"]);
    run.args(["--store", "none", "--json", "-"]);
    let ran = run.stdin(Stdio::null()).output().context("the run cannot be started")?;
    let errors = String::from_utf8_lossy(&ran.stderr);
    let document: Value = serde_json::from_slice(&ran.stdout)
        .with_context(|| format!("the run ended with {}: {errors}", ran.status))?;
    let met = met(&document).with_context(|| format!("no figure: {errors}"))?;
    let failures = &document["failures"];
    anyhow::ensure!(met.compared == CALLS && met.wrong == 0, "not all were answered: {failures}");
    Ok(met)
}

fn met(document: &Value) -> Option<Met> {
    let count = |place: &str| document.pointer(place)?.as_u64();
    Some(Met {
        established: count("/connections/established")?,
        compared: count("/verified/compared")?,
        wrong: count("/verified/differing")? + count("/verified/of_other_targets")?,
        again: count("/stack/retransmitted")?,
        out_of_order: count("/stack/out_of_order")?,
        body_mb: count("/bytes/body")? as f64 / 1e6,
        took_s: document["elapsed_s"].as_f64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_has_the_runs_counts() {
        let document = json!({
            "connections": { "established": 10_001 },
            "verified": { "compared": 10_000, "differing": 1, "of_other_targets": 2 },
            "stack": { "retransmitted": 4, "out_of_order": 5 },
            "bytes": { "body": 1_850_000_000_u64 },
            "elapsed_s": 61.4,
        });
        let row = row("nginx 1.22.1", &met(&document).unwrap());
        assert_eq!(row, "| nginx 1.22.1 | 10001 | 10000 | 3 | 4 | 5 | 1850 MB | 61 s |");
    }
}
