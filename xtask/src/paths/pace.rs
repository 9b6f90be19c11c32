//! Lateness of packets: UDP of 64 bytes over 10 ms of constant delay, by the receiving kernel's
//! timestamps. The packets come from bench/limit's `pace`.

use super::{machine, run_netpath, spread};
use crate::shell;
use anyhow::Context;
use regex::Regex;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const RATES: [u32; 5] = [1_000, 10_000, 50_000, 100_000, 150_000];
const SECONDS: u32 = 4;
/// The server's end of a path with a new network namespace.
const SERVER: &str = "198.19.0.1";

/// Results of one round.
struct Round {
    sent: f64,
    received: f64,
    /// Microseconds after the intended instant, at the end of the path.
    p50: f64,
    p90: f64,
    p99: f64,
    /// The sender's own system call, microseconds: it is in the error.
    call: f64,
    /// Share of a core.
    busy: f64,
}

pub(super) fn section(root: &Path, binary: &Path, rounds: usize) -> anyhow::Result<String> {
    let pace = build(root)?;
    let mut text = format!(
        "UDP packets of 64 bytes over a path of 10 ms in each direction, {rounds} rounds of {SECONDS} s for each row: \
         the median of the rounds, and in brackets the minimum and maximum. The error is the receiving \
         kernel's timestamp minus the sender's and the 10 ms, so it includes the sender's own system call; \
         its median has a separate column. \
         {}\n\nFirst with default scheduling, then by `chrt -r 1`.\n\n",
        machine()
    );
    text.push_str("| packets a second | | error p50 µs | p90 µs | p99 µs | sender's call µs | lost | forwarder's share of a core |\n");
    text.push_str("|--:|---|--:|--:|--:|--:|--:|--:|\n");
    for rate in RATES {
        for real_time in [false, true] {
            let all: Vec<Round> = (0..rounds)
                .map(|_| round(binary, &pace, rate, real_time))
                .collect::<anyhow::Result<_>>()?;
            let of = |figure: fn(&Round) -> f64| {
                let (median, least, most) = spread(&all.iter().map(figure).collect::<Vec<f64>>());
                format!("{median:.1} ({least:.1}–{most:.1})")
            };
            let lost: f64 = all.iter().map(|round| round.sent - round.received).sum();
            let way = if real_time { "`chrt -r 1`" } else { "as it is" };
            let errors = [of(|one| one.p50), of(|one| one.p90), of(|one| one.p99)];
            let cells = [errors.join(" | "), of(|one| one.call)].join(" | ");
            let busy = of(|one| one.busy * 100.0);
            writeln!(text, "| {rate} | {way} | {cells} | {lost:.0} | {busy} % |")?;
        }
    }
    Ok(text)
}

/// Builds `pace` where bench/run.sh builds its own programs.
fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let home = std::env::var("HOME").context("HOME is not set")?;
    let target = PathBuf::from(home).join(".cache/loadstone-peers/target");
    let manifest = root.join("bench/limit/Cargo.toml");
    let mut cargo = shell::cargo();
    cargo.args(["build", "--quiet", "--release", "--bin", "pace", "--manifest-path"]);
    shell::run(cargo.arg(manifest).env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join("release/pace"))
}

/// Runs one measurement. The sender and the receiver use one core, the forwarder the other.
fn round(binary: &Path, pace: &Path, rate: u32, real_time: bool) -> anyhow::Result<Round> {
    let pace = pace.display().to_string();
    let mut netpath = match real_time {
        true => Command::new("chrt"),
        false => Command::new(binary),
    };
    if real_time {
        netpath.args(["-r", "1"]).arg(binary);
    }
    let server = format!("taskset -c 1 {pace} receive 9000 10000");
    let rate = rate.to_string();
    let seconds = SECONDS.to_string();
    let program = ["taskset", "-c", "1", &pace, "send", SERVER, "9000", &rate, &seconds, "64"];
    let (out, errors) = run_netpath(&mut netpath, &["rtt=20ms", "1"], &server, &program)?;
    read(&out, &errors).with_context(|| format!("not understood: {out} {errors}"))
}

/// Parses the line `sent received p50 p90 p99 rate call`, and the forwarder's own line.
fn read(out: &str, text: &str) -> Option<Round> {
    let numbers: Vec<f64> = out.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [sent, received, p50, p90, p99, _, call] = numbers[..] else { return None };
    let busy = Regex::new(r"busy for ([0-9.]+) %").ok()?;
    let busy = busy.captures(text)?.get(1)?.as_str().parse::<f64>().ok()? / 100.0;
    Some(Round { sent, received, p50, p90, p99, call, busy })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_programs_are_read() {
        let text = "x\nloadstone:   delivered late by 567 ns (p50), 96.8 µs (p99), 1.93 ms (max); \
                    the emulation was busy for 34.3 %\n";
        let round = read("50000 49998 6.5 19.3 156.4 10000 4.1", text).unwrap();
        assert_eq!((round.sent, round.received, round.p99), (50_000.0, 49_998.0, 156.4));
        assert!((round.busy - 0.343).abs() < 1e-9);
        assert!(read("", text).is_none());
        assert!(read("1 1 1 1 1 1 1", "").is_none());
    }
}
