//! The benchmark: `bench/run.sh` measures; this module renders `bench/RESULTS.md` and checks the
//! budgets of docs/design.md section 7. Only ratios within one round count: the machine may be a
//! third slower for a minute, but then for all tools.
//!
//! RESULTS.md is one table of one run of one commit: each budget once. The tables by tool and the
//! raw rounds of that run are files of `bench/history`. A run of some tables changes neither.

mod budgets;
mod figures;
mod raw;
mod render;

use crate::shell;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only these tables, rendered to target/bench.md: keepalive many one nginx close bulk tls depth16
    /// syscalls memory pace site http2 http2-tls http2-memory http3 reno
    tables: Vec<String>,
    /// Render this raw file of all tables instead of measuring
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Rounds of each table; a budget needs 9
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Seconds of one run
    #[arg(long, default_value_t = 6)]
    seconds: u32,
    /// Fail when a budget is missed
    #[arg(long)]
    check: bool,
}

const RESULTS: &str = "bench/RESULTS.md";
/// Tables by tool and raw rounds, by commit.
const HISTORY: &str = "bench/history";

/// Runs `cargo xtask bench`.
///
/// # Errors
/// Fails if the measurement fails, the raw file cannot be read, or, with `--check`, a budget is
/// missed.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let raw = match &options.from {
        Some(file) => file.clone(),
        None => measure(root, options)?,
    };
    let text =
        std::fs::read_to_string(&raw).with_context(|| format!("reading {}", raw.display()))?;
    let raw = raw::Raw::parse(&text)?;
    let judged = budgets::judge(&raw);
    for budget in &judged {
        println!("{}", budget.line());
    }
    let written = match options.tables.is_empty() {
        true => publish(root, &raw, &text, &judged)?,
        false => {
            let part = shell::target_folder(root).join("bench.md");
            write(&part, &(render::results(&raw, &judged, None) + &render::tables(&raw)))?;
            part
        }
    };
    println!("written: {}", written.display());
    let missed = judged.iter().filter(|budget| budget.holds == Some(false)).count();
    if options.check && missed > 0 {
        bail!("{missed} budgets missed");
    }
    Ok(())
}

/// Writes the results of a whole run, its tables and its raw rounds; returns the results' path.
fn publish(
    root: &Path,
    raw: &raw::Raw,
    rounds: &str,
    judged: &[budgets::Judged],
) -> anyhow::Result<PathBuf> {
    let commit = raw.fact("commit").and_then(|commit| commit.split(' ').next());
    let commit = commit.context("the raw file does not name its commit: it is not of one run")?;
    let history = root.join(HISTORY);
    write(&history.join(format!("{commit}.tsv")), rounds)?;
    let title = format!("# The tables of {commit}\n\nOf the run in [RESULTS.md](../RESULTS.md).\n");
    write(&history.join(format!("{commit}.md")), &(title + &render::tables(raw)))?;
    let results = root.join(RESULTS);
    write(&results, &render::results(raw, judged, Some(commit)))?;
    Ok(results)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// Builds the program as shipped and runs the script; returns its raw file.
fn measure(root: &Path, options: &Options) -> anyhow::Result<PathBuf> {
    let program = shell::program(root, shell::DIST)?;
    let raw = shell::target_folder(root).join("bench.tsv");
    let mut script = Command::new(root.join("bench/run.sh"));
    script
        .env("LOADSTONE_BIN", program)
        .env("RAW", &raw)
        .env("ROUNDS", options.rounds.to_string())
        .env("SECS", options.seconds.to_string());
    // the script's own bare loop and meter have a separate build folder
    script.env_remove("CARGO_TARGET_DIR");
    shell::run(script.args(&options.tables))?;
    Ok(raw)
}
