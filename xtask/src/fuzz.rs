//! Brief fuzzing. With cargo-fuzz and a nightly compiler every target runs on its corpus; otherwise
//! the corpora are replayed by the ordinary tests, with a note.

use crate::shell;
use anyhow::{Context, bail};
use std::path::Path;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Every target for a few seconds
    Smoke {
        /// Seconds for each target
        #[arg(default_value_t = 10)]
        seconds: u32,
    },
    /// One target until it finds something or is interrupted
    Run {
        target: String,
        /// The fuzzer's seed, printed by a run that found something
        seed: Option<u32>,
    },
}

/// A target of this name fails on purpose, to prove that a finding is noticed.
const ALARM: &str = "alarm";
/// Tests that replay a corpus have this in their name.
const REPLAY: &str = "corpus";

/// Runs `cargo xtask fuzz`.
///
/// # Errors
/// Fails if a target found something, the alarm stayed silent, or no corpus replays.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let manifest = root.join("fuzz/Cargo.toml");
    let targets = match std::fs::read_to_string(&manifest) {
        Ok(text) => targets(&text)?,
        Err(_) => Vec::new(),
    };
    let able = shell::find("cargo-fuzz").is_some() && has_nightly();
    match &options.command {
        Command::Run { target, seed } => {
            if !able {
                let text = "cargo-fuzz and a nightly compiler are needed: cargo install cargo-fuzz";
                return Err(shell::Missing(text.to_owned()).into());
            }
            if !targets.contains(target) {
                bail!("no fuzz target {target}; known: {}", targets.join(", "));
            }
            let seed = seed.map(|seed| format!("-seed={seed}"));
            shell::run(fuzz(root, target).args(seed))
        }
        Command::Smoke { .. } if !able || targets.is_empty() => {
            println!(
                "fuzz: no cargo-fuzz, no nightly compiler or no target; replaying the corpora"
            );
            replay(root)
        }
        Command::Smoke { seconds } => smoke(root, &targets, *seconds),
    }
}

fn smoke(root: &Path, targets: &[String], seconds: u32) -> anyhow::Result<()> {
    for target in targets {
        let limit = format!("-max_total_time={seconds}");
        let ran = shell::run(fuzz(root, target).args([limit.as_str(), "-seed=1"]));
        match (target == ALARM, ran) {
            (true, Ok(())) => bail!("the target {ALARM} found nothing: findings would be missed"),
            (true, Err(_)) => println!("fuzz: {ALARM} failed, as it must"),
            (false, ran) => ran?,
        }
    }
    println!("fuzz: {} targets, {seconds} s each", targets.len());
    Ok(())
}

fn fuzz(root: &Path, target: &str) -> std::process::Command {
    let mut cargo = std::process::Command::new("cargo");
    cargo.current_dir(root).args(["+nightly", "fuzz", "run", target, "--"]);
    cargo
}

fn has_nightly() -> bool {
    let output = shell::output(std::process::Command::new("rustup").args(["toolchain", "list"]));
    output.is_ok_and(|list| list.lines().any(|line| line.starts_with("nightly")))
}

/// Runs the replaying tests, after checking that there are some.
fn replay(root: &Path) -> anyhow::Result<()> {
    let test = || {
        let mut cargo = shell::cargo();
        cargo.current_dir(root).args(["test", "--workspace", REPLAY]);
        cargo
    };
    let listed = shell::output(test().args(["--", "--list"]))?;
    let count = listed.lines().filter(|line| line.ends_with(": test")).count();
    if count == 0 {
        bail!("no test with `{REPLAY}` in its name: no test replays a corpus");
    }
    shell::run(&mut test())?;
    println!("fuzz: {count} corpus tests replayed, nothing was fuzzed");
    Ok(())
}

/// Returns the names of the `[[bin]]` targets.
fn targets(manifest: &str) -> anyhow::Result<Vec<String>> {
    let manifest: toml::Table = manifest.parse().context("fuzz/Cargo.toml")?;
    let bins = manifest.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
    let names = bins.filter_map(|bin| bin.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_bins() {
        let manifest =
            "[package]\nname = 'fuzz'\n[[bin]]\nname = 'response'\n[[bin]]\nname = 'alarm'\n";
        assert_eq!(targets(manifest).unwrap(), ["response", "alarm"]);
        assert!(targets("[package]\nname = 'fuzz'\n").unwrap().is_empty());
        assert!(targets("bin = [").is_err());
    }
}
