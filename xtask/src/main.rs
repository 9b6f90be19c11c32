//! The repository's own commands: `cargo xtask COMMAND`. Continuous integration and contributors
//! use the same program.
//!
//! Exit codes: 0 done · 1 a check found something · 2 wrong usage, or this machine lacks a program.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

mod bench;
mod book;
mod ci;
mod dist;
mod fuzz;
#[cfg(test)]
mod gates;
mod guide;
mod licenses;
mod lineage;
mod packages;
mod paths;
mod perf;
mod release;
mod shell;
mod tidy;
mod tried_again;
mod truth;
mod truths;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Checks, tests, measures and packs this repository")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check the tree against its rules: layers, clocks, sizes, words, links
    Tidy,
    /// All that a change must pass: format, tidy, clippy, licenses, tests, documentation
    Ci,
    /// Install what the tests need, then tidy and the tests of the whole workspace
    Test {
        /// Passed to `cargo test`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Check the license and the source of every dependency against deny.toml
    Deny,
    /// Accept new snapshots: run the tests and write their output
    Bless {
        /// Passed to `cargo test`, e.g. `-p report`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Measure against the peers and the bare loop, and write bench/RESULTS.md
    Bench(bench::Options),
    /// Hold the measured times against a reference client on a server that freezes
    Truth(truth::Options),
    /// Torture real servers with known behavior, and write docs/truths.md
    Truths(truths::Options),
    /// Tarballs, .deb, .rpm and an OCI image with checksums, in dist/
    Dist(dist::Options),
    /// A version out of the tree: day and version, a commit, a tag with the CHANGELOG's notes
    Release(release::Options),
    /// Run every fuzz target for a moment, or replay the corpora
    Fuzz(fuzz::Options),
    /// Write real output into README.md and the guide, or check it against the program
    Guide(guide::Options),
    /// Render the guide as static HTML with a search, in target/book
    Book(book::Options),
    /// Repeat the published experiments and write docs/lineage
    Lineage(lineage::Options),
    /// Write docs/schema out of the types of the records
    Schema,
    /// Measure emulated paths with real packets: pace, kernel as referee, soak; write bench/PATHS.md
    Paths(paths::Options),
    /// Count user-space instructions per call under callgrind; fail when they grow
    Perf(perf::Options),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            let missing = error.downcast_ref::<shell::Missing>().is_some();
            ExitCode::from(if missing { 2 } else { 1 })
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let root = root();
    match command {
        Command::Tidy => tidy::run(&root),
        Command::Ci => ci::all(&root),
        Command::Test { args } => ci::test(&root, &args),
        Command::Deny => licenses::run(&root).map(drop),
        Command::Bless { args } => ci::bless(&root, &args),
        Command::Bench(options) => bench::run(&root, &options),
        Command::Truth(options) => truth::run(&root, &options),
        Command::Truths(options) => truths::run(&root, &options),
        Command::Dist(options) => dist::run(&root, &options),
        Command::Release(options) => release::run(&root, &options),
        Command::Fuzz(options) => fuzz::run(&root, &options),
        Command::Guide(options) => guide::run(&root, &options),
        Command::Book(options) => book::run(&root, &options),
        Command::Lineage(options) => lineage::run(&root, &options),
        Command::Schema => ci::schema(&root),
        Command::Paths(options) => paths::run(&root, &options),
        Command::Perf(options) => perf::run(&root, &options),
    }
}

/// Returns the repository's root: the folder above this crate's.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}
