//! The same load over the same emulated path by the kernel's client and by the own TCP: goodput,
//! the median time of a call, and retransmissions.
//!
//! Our own TCP has NewReno. The server is where the command is, and the kernel's client sends by the same
//! congestion control. For Reno on all sides:
//!
//! ```sh
//! unshare -n sh -c 'ip link set lo up && echo reno > /proc/sys/net/ipv4/tcp_congestion_control &&
//!     exec cargo xtask paths stacks'
//! ```

use super::{machine, spread};
use anyhow::Context;
use serde_json::Value;
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Furthest that a median may be from the kernel's.
const WITHIN: f64 = 0.05;
const SECONDS: u32 = 4;
const LOSSES: [&str; 3] = ["0%", "0.5%", "2%"];
/// Loads with the number of users of each: calls are slow over long paths, and a median of few is
/// unreliable.
const RTTS: [(&str, u32); 4] = [("1ms", 8), ("20ms", 8), ("100ms", 32), ("200ms", 64)];
/// Number of bytes of an uploaded body.
const UPLOAD: usize = 30_000;

/// One kind of load.
struct Kind {
    what: &'static str,
    rate: &'static str,
    page: &'static str,
    uploads: bool,
}

const KINDS: [Kind; 3] = [
    Kind { what: "100 KB down", rate: "20M", page: "/bytes/100000", uploads: false },
    Kind { what: "100 KB down", rate: "100M", page: "/bytes/100000", uploads: false },
    Kind { what: "30 KB up", rate: "20M", page: "/echo", uploads: true },
];

/// Kept figures of one run.
struct Ran {
    goodput: f64,
    p50_s: f64,
    /// Segments that the client sent again.
    again: f64,
}

/// Site that ends with the section that needs it.
struct Site(Child);

impl Drop for Site {
    fn drop(&mut self) {
        // it may have ended by itself
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Returns the table, a row for each kind of load, loss and round trip.
pub(super) fn section(binary: &Path, rounds: usize) -> anyhow::Result<String> {
    let mut site = Command::new(binary);
    site.args(["site", "--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut site = Site(site.spawn().context("the site cannot be started")?);
    let mut url = String::new();
    let out = site.0.stdout.take().context("the site has no output")?;
    BufReader::new(out).read_line(&mut url).context("the site prints no address")?;
    let body = tempfile::NamedTempFile::new().context("a file for the body")?;
    std::fs::write(body.path(), "x".repeat(UPLOAD)).context("writing the body")?;
    let control = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let control = control.context("the kernel's congestion control")?;
    let mut text = format!(
        "8 users, 32 at 100 ms and 64 at 200 ms, each response verified where it is downloaded (`--verify`), {rounds} rounds of {SECONDS} s of each \
         stack in turn with the same seed for both: the median, and in brackets the minimum and maximum. The congestion \
         control of the server and of the kernel's client was {}. {}\n\n\
         | load | link | loss | RTT | kernel, good/s | own, good/s | own / kernel | p50 of a call, own / kernel | retransmitted, kernel · own | goodput within 5 % |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|---|\n",
        control.trim(),
        machine()
    );
    for kind in &KINDS {
        for loss in LOSSES {
            for (rtt, users) in RTTS {
                let path = format!("rtt={rtt}, rate={}, loss={loss}", kind.rate);
                let mut kernel = Vec::new();
                let mut own = Vec::new();
                for round in 1..=rounds {
                    let seed = round.to_string();
                    for (stack, ran) in [("kernel", &mut kernel), ("own", &mut own)] {
                        let words = ["--path", &path, "-c", &users.to_string(), "--seed", &seed];
                        ran.push(one(binary, url.trim(), kind, body.path(), stack, &words)?);
                    }
                }
                writeln!(text, "{}", row(kind, loss, rtt, &kernel, &own))?;
            }
        }
    }
    Ok(text)
}

fn row(kind: &Kind, loss: &str, rtt: &str, kernel: &[Ran], own: &[Ran]) -> String {
    let of = |runs: &[Ran], figure: fn(&Ran) -> f64| {
        spread(&runs.iter().map(figure).collect::<Vec<f64>>())
    };
    let shown = |(median, least, most)| format!("{median:.1} ({least:.1}–{most:.1})");
    let by_kernel = of(kernel, |ran| ran.goodput);
    let by_us = of(own, |ran| ran.goodput);
    let p50 = of(own, |ran| ran.p50_s).0 / of(kernel, |ran| ran.p50_s).0;
    let again = |runs| of(runs, |ran| ran.again).0;
    let ratio = by_us.0 / by_kernel.0;
    let holds = if (ratio - 1.0).abs() <= WITHIN { "yes" } else { "no" };
    format!(
        "| {} | {} | {loss} | {rtt} | {} | {} | {ratio:.3} | {p50:.3} | {:.0} · {:.0} | {holds} |",
        kind.what,
        kind.rate,
        shown(by_kernel),
        shown(by_us),
        again(kernel),
        again(own),
    )
}

fn one(
    binary: &Path,
    url: &str,
    kind: &Kind,
    body: &Path,
    stack: &str,
    words: &[&str],
) -> anyhow::Result<Ran> {
    let mut run = Command::new(binary);
    run.args(["run", &format!("{url}{}", kind.page), "--stack", stack]).args(words);
    run.args(["--threads", "1", "-d", &format!("{SECONDS}s"), "--store", "none", "--json", "-"]);
    if kind.uploads {
        run.arg("--body-file").arg(body);
    } else {
        run.arg("--verify");
    }
    let ran = run.stdin(Stdio::null()).output().context("the run cannot be started")?;
    let errors = String::from_utf8_lossy(&ran.stderr);
    let document: Value = serde_json::from_slice(&ran.stdout).with_context(|| {
        format!("--stack {stack} {words:?} ended with {}: {errors}", ran.status)
    })?;
    let failed = document["outcomes"]["failed"].as_u64().unwrap_or(u64::MAX);
    anyhow::ensure!(failed == 0, "--stack {stack} {words:?}: {failed} calls failed");
    let number = |value: &Value| value.as_f64().with_context(|| format!("no figure: {errors}"));
    let again = if stack == "own" {
        &document["stack"]["retransmitted"]
    } else {
        &document["tcp"]["retransmits"]
    };
    Ok(Ran {
        goodput: number(&document["goodput_per_s"])?,
        p50_s: number(&document["response_time_s"]["p50"])?,
        again: number(again)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_the_medians_against_each_other() {
        let ran = |goodput, p50_s| Ran { goodput, p50_s, again: 2.0 };
        let kernel = [ran(20.0, 0.1), ran(10.0, 0.2), ran(30.0, 0.3)];
        let own = [ran(21.0, 0.2), ran(22.0, 0.2), ran(23.0, 0.2)];
        assert_eq!(
            row(&KINDS[2], "2%", "1ms", &kernel, &own),
            "| 30 KB up | 20M | 2% | 1ms | 20.0 (10.0–30.0) | 22.0 (21.0–23.0) | 1.100 | 1.000 | 2 · 2 | no |"
        );
        assert!(row(&KINDS[0], "0%", "1ms", &kernel, &kernel).ends_with("| yes |"));
    }
}
