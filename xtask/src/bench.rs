//! The benchmark: `bench/run.sh` measures, this module renders `bench/RESULTS.md` and checks the
//! budgets of docs/design.md section 7. Only ratios within one round count: the machine may be a
//! third slower for a minute, but then it is for all tools.

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
    /// Tables to measure: keepalive many one nginx close bulk tls depth16 syscalls memory pace site http2 http2-tls http2-memory
    /// http3 reno; all when none
    tables: Vec<String>,
    /// Render this raw file instead of measuring
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

/// `cargo xtask bench`.
///
/// # Errors
/// The measurement fails, the raw file cannot be read, or, with `--check`, a budget is missed.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let raw = match &options.from {
        Some(file) => file.clone(),
        None => measure(root, options)?,
    };
    let text =
        std::fs::read_to_string(&raw).with_context(|| format!("reading {}", raw.display()))?;
    let raw = raw::Raw::parse(&text)?;
    let judged = budgets::judge(&raw);
    std::fs::write(root.join(RESULTS), render::results(&raw, &judged))
        .with_context(|| format!("writing {RESULTS}"))?;
    for budget in &judged {
        println!("{}", budget.line());
    }
    println!("written: {RESULTS}");
    let missed = judged.iter().filter(|budget| budget.holds == Some(false)).count();
    if options.check && missed > 0 {
        bail!("{missed} budgets missed");
    }
    Ok(())
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
