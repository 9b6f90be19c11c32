//! The same load through an emulated path and through the kernel's own emulation: its shapers on
//! the device at the server's end, its random drops at the client's. Everything is inside the
//! networks that `netpath` makes.

use super::{machine, run_netpath, spread};
use crate::shell;
use anyhow::Context;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Furthest that a median may be from the kernel's.
const WITHIN: f64 = 0.05;
const SECONDS: u32 = 8;

/// One comparison.
struct Match {
    what: &'static str,
    /// The kernel's own means, as commands of a shell: before the server, and before the client.
    kernel: (&'static str, &'static str),
    kernel_path: &'static str,
    our_path: &'static str,
    users: &'static str,
}

const MATCHES: [Match; 4] = [
    Match {
        what: "16 Mbit/s, TBF",
        kernel: ("tc qdisc add dev path root tbf rate 16mbit burst 6kb limit 400kb && ", ""),
        kernel_path: "rtt=20ms",
        our_path: "rtt=20ms, down-rate=16M, down-queue=400k",
        users: "4",
    },
    Match {
        what: "16 Mbit/s, HTB",
        kernel: (
            "tc qdisc add dev path root handle 1: htb default 1 && \
             tc class add dev path parent 1: classid 1:1 htb rate 16mbit burst 6kb cburst 6kb && \
             tc qdisc add dev path parent 1:1 bfifo limit 400kb && ",
            "",
        ),
        kernel_path: "rtt=20ms",
        our_path: "rtt=20ms, down-rate=16M, down-queue=400k",
        users: "4",
    },
    Match {
        what: "1 % lost, nft",
        kernel: ("", "drop 100"),
        kernel_path: "rtt=40ms",
        our_path: "rtt=40ms, down-loss=1%",
        users: "16",
    },
    Match {
        what: "4 % lost, nft",
        kernel: ("", "drop 25"),
        kernel_path: "rtt=40ms",
        our_path: "rtt=40ms, down-loss=4%",
        users: "16",
    },
];

/// Drops one in this many packets arriving at the client's end.
fn drops(one_in: &str) -> String {
    format!(
        "nft add table ip referee && nft 'add chain ip referee come {{ type filter hook prerouting \
         priority -300; }}' && nft add rule ip referee come numgen random mod {one_in} == 0 drop && "
    )
}

pub(super) fn section(binary: &Path, rounds: usize) -> anyhow::Result<String> {
    for program in ["tc", "nft"] {
        shell::need(program, "apt-get install iproute2 nftables")?;
    }
    let mut text = format!(
        "Content a second of `run` with 200,000 bytes a response (a server with Reno), through a path of ours and \
         through the kernel's own shapers and drops behind a path that only delays, all of it by `chrt -r 1`; {rounds} rounds of {SECONDS} s in \
         turn, the median, and in brackets the minimum and maximum. {}\n\n",
        machine()
    );
    text.push_str(
        "| | kernel, MB/s | ours, MB/s | ours / kernel | within 5 % |\n|---|--:|--:|--:|---|\n",
    );
    for one in &MATCHES {
        let mut kernel = Vec::new();
        let mut ours = Vec::new();
        for round in 1..=rounds {
            kernel.push(one.by_kernel(binary)?);
            // other packets are lost in each round, as they are by the kernel
            let seed = round.to_string();
            ours.push(goodput(binary, one.our_path, &["", ""], one.users, &seed)?);
        }
        let show = |values: &[f64]| {
            let (median, least, most) = spread(values);
            (median, format!("{median:.3} ({least:.3}–{most:.3})"))
        };
        let (by_kernel, kernel) = show(&kernel);
        let (by_us, ours) = show(&ours);
        let ratio = by_us / by_kernel;
        let holds = if (ratio - 1.0).abs() <= WITHIN { "yes" } else { "no" };
        writeln!(text, "| {} | {kernel} | {ours} | {ratio:.3} | {holds} |", one.what)?;
    }
    Ok(text)
}

impl Match {
    fn by_kernel(&self, binary: &Path) -> anyhow::Result<f64> {
        let client = self.kernel.1.strip_prefix("drop ").map(drops).unwrap_or_default();
        goodput(binary, self.kernel_path, &[self.kernel.0, &client], self.users, "1")
    }
}

/// Megabytes of content a second. `before`: commands before the server and before the client.
fn goodput(
    binary: &Path,
    path: &str,
    [server, client]: &[&str; 2],
    users: &str,
    seed: &str,
) -> anyhow::Result<f64> {
    let own = binary.display();
    let server = format!(
        "{server}echo reno > /proc/sys/net/ipv4/tcp_congestion_control && exec {own} site --listen 127.0.0.1:80"
    );
    let script = format!(
        "{client}exec {own} run http://127.0.0.1/bytes/200000 -c {users} -d {SECONDS}s --warmup 2s \
         --store none --json -"
    );
    // an ordinary user's PATH on Debian lacks the folder of tc
    let folders = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    // other programs' time slices would disturb whichever tool runs then
    let mut netpath = Command::new("chrt");
    netpath.args(["-r", "1"]).arg(binary).env("PATH", folders);
    let (out, errors) = run_netpath(&mut netpath, &[path, seed], &server, &["sh", "-c", &script])?;
    let document: serde_json::Value =
        serde_json::from_str(&out).with_context(|| format!("not understood: {out} {errors}"))?;
    let calls = document["throughput_per_s"].as_f64().context("no throughput")?;
    Ok(calls * 0.2)
}
