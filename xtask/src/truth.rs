//! The truth test: how accurate are this program's figures for a server with known response times?
//! `bench/truth.sh` runs one round of the reference client and of this program against a server
//! that answers in 10 ms and freezes for 500 ms every 2 s; this module compares the two within the
//! round.
//!
//! Real time on a real machine: a round in which the server or the reference client was late by its
//! own log proves nothing and is repeated. Therefore it is not part of the suite.

mod round;

use crate::shell;
use anyhow::{Context, bail};
use round::{Judgement, QUANTILES, Round, TOLERANCE};
use std::path::Path;
use std::process::Command;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Rounds that must agree
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Rounds that may be tried before the result is called inconclusive
    #[arg(long, default_value_t = 9)]
    tries: u32,
    /// Seconds of one run; freezes at 2 s and 4 s
    #[arg(long, default_value_t = 5)]
    seconds: u32,
}

/// Runs `cargo xtask truth`.
///
/// # Errors
/// Fails if a figure is wrong, or if too few rounds were usable, which is [`shell::Missing`] a
/// quiet machine.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let program = shell::program(root, shell::DIST)?;
    let out = shell::target_folder(root).join("truth");
    let mut agreed = 0;
    for index in 1..=options.tries {
        let folder = out.join(format!("round-{index}"));
        let mut script = Command::new(root.join("bench/truth.sh"));
        script.env("LOADSTONE_BIN", &program);
        script.env("SECS", options.seconds.to_string()).env_remove("CARGO_TARGET_DIR");
        shell::run(script.arg(&folder))?;
        let read = |name: &str| {
            std::fs::read_to_string(folder.join(name)).with_context(|| format!("reading {name}"))
        };
        let round = Round::read(read)?;
        println!("round {index}\n{}", round.table());
        match round.judge() {
            Judgement::Unfit(why) => println!("round {index} proves nothing: {why}"),
            Judgement::Wrong(why) => bail!("round {index}: {}", why.join("; ")),
            Judgement::Right => {
                agreed += 1;
                println!("round {index} agrees");
            }
        }
        if agreed == options.rounds {
            println!(
                "truth: {agreed} rounds within {:.0} % of the reference client at {}",
                TOLERANCE * 100.0,
                QUANTILES.join(" ")
            );
            return Ok(());
        }
    }
    let text = format!(
        "truth: inconclusive: {agreed} of {} rounds were conclusive within {} tries; try on a quieter machine",
        options.rounds, options.tries
    );
    Err(shell::Missing(text).into())
}
