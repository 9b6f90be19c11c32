//! The instruction ratchet: user-space instructions per call, counted by valgrind's callgrind,
//! which gives the same number on every machine with the same compiler. Wall time needs a quiet
//! machine and `cargo xtask bench`.
//!
//! The counted program takes a number of calls and a case: `PROGRAM CALLS CASE`. It runs twice; the
//! difference of the totals over the difference of the calls excludes start and end.

use crate::shell;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Cases to count; by default all in bench/instructions.txt
    cases: Vec<String>,
    /// Write the new figures into bench/instructions.txt
    #[arg(long)]
    accept: bool,
    /// The counted program, instead of the example `instructions` of crates/load/sim
    #[arg(long)]
    program: Option<PathBuf>,
    /// Profile of the build that is counted: `dist`, of which the figures are, or `release`
    #[arg(long, default_value = shell::DIST)]
    profile: String,
    /// Calls of the shorter run
    #[arg(long, default_value_t = 2_000)]
    few: u64,
    /// Calls of the longer run
    #[arg(long, default_value_t = 12_000)]
    many: u64,
}

/// A case fails when it needs more than this share above its figure in the tree.
const GROWTH_MAX: f64 = 0.03;
const FIGURES: &str = "bench/instructions.txt";
const EXAMPLE: &str = "instructions";
/// Cases of the example, for a tree without figures.
const CASES: [&str; 12] = [
    "journey",
    "keepalive",
    "messages",
    "numbered",
    "percall",
    "pipeline16",
    "templates",
    "timed",
    "http2_1",
    "http2_10",
    "http2_100",
    "http3_10",
];

/// Runs `cargo xtask perf`.
///
/// # Errors
/// Fails if valgrind is missing, the program fails, or a case has grown.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    if options.many <= options.few {
        bail!("--many {} must be above --few {}", options.many, options.few);
    }
    let valgrind = shell::need("valgrind", "apt-get install valgrind")?;
    let path = root.join(FIGURES);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut figures = parse_figures(&text)?;
    let cases: Vec<String> = match options.cases.as_slice() {
        [] if figures.is_empty() => CASES.map(str::to_owned).to_vec(),
        [] => figures.keys().cloned().collect(),
        named => named.to_vec(),
    };
    let program = match &options.program {
        Some(program) => program.clone(),
        None => build(root, &options.profile)?,
    };
    let scratch = tempfile::tempdir()?;
    let mut grown = Vec::new();
    for case in cases {
        let count = |calls| instructions(&valgrind, &program, &case, calls, scratch.path());
        let few = count(options.few)?;
        let many = count(options.many)?;
        let per_call = per_call((options.few, few), (options.many, many))?;
        println!("{}", judge_case(&case, per_call, figures.get(&case).copied()));
        if figures.get(&case).is_some_and(|&figure| has_grown(per_call, figure)) {
            grown.push(case.clone());
        } else if !options.accept && !figures.contains_key(&case) {
            bail!("{case} has no figure in {FIGURES}: use --accept to write {per_call:.1}");
        }
        if options.accept {
            figures.insert(case, per_call);
        }
    }
    if options.accept {
        std::fs::write(&path, render_figures(&figures))?;
        println!("written: {FIGURES}");
    } else if !grown.is_empty() {
        bail!("more than {:.0} % above {FIGURES}: {}", GROWTH_MAX * 100.0, grown.join(", "));
    }
    Ok(())
}

/// Builds the example and asks cargo where it is.
fn build(root: &Path, profile: &str) -> anyhow::Result<PathBuf> {
    let mut cargo = shell::cargo();
    cargo.current_dir(root).args(["build", "--profile", profile, "--package", "sim"]);
    cargo.args(["--example", EXAMPLE]);
    let messages = shell::output(cargo.arg("--message-format=json-render-diagnostics"))?;
    executable(&messages, EXAMPLE)
        .context("cargo built no example `instructions` in crates/load/sim")
}

/// Returns the executable of a target in cargo's messages.
fn executable(messages: &str, target: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == target)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

fn instructions(
    valgrind: &Path,
    program: &Path,
    case: &str,
    calls: u64,
    scratch: &Path,
) -> anyhow::Result<u64> {
    let file = scratch.join(format!("callgrind.{case}.{calls}"));
    let mut command = Command::new(valgrind);
    command.args(["--quiet", "--tool=callgrind"]);
    command.arg(format!("--callgrind-out-file={}", file.display()));
    command.arg(program).arg(calls.to_string()).arg(case);
    shell::output(&mut command)?;
    let text = std::fs::read_to_string(&file).context("callgrind wrote no figures")?;
    total(&text).with_context(|| format!("no total in {}", file.display()))
}

/// Returns the total of callgrind's first event, instructions: the sum of its `summary:` lines (one
/// a part), or its `totals:` line.
fn total(text: &str) -> Option<u64> {
    let of = |key: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(key));
        lines
            .filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok())
            .reduce(|a, b| a + b)
    };
    of("summary:").or_else(|| of("totals:"))
}

fn per_call(few: (u64, u64), many: (u64, u64)) -> anyhow::Result<f64> {
    let more = many.1.checked_sub(few.1).filter(|more| *more > 0);
    let more =
        more.context("the longer run needed no additional instructions: does it make its calls?")?;
    Ok(more as f64 / (many.0 - few.0) as f64)
}

fn has_grown(per_call: f64, figure: f64) -> bool {
    per_call > figure * (1.0 + GROWTH_MAX)
}

fn judge_case(case: &str, per_call: f64, figure: Option<f64>) -> String {
    let Some(figure) = figure else {
        return format!("{case}: {per_call:.1} instructions per call (new)");
    };
    let change = (per_call / figure - 1.0) * 100.0;
    let word = match change {
        _ if has_grown(per_call, figure) => "GROWN",
        shrunk if shrunk < -100.0 * GROWTH_MAX => "shrunk: keep it with --accept",
        _ => "held",
    };
    format!(
        "{case}: {per_call:.1} instructions per call, {figure:.1} in the tree, {change:+.1} %, {word}"
    )
}

/// Parses `CASE FIGURE` lines; `#` starts a comment.
fn parse_figures(text: &str) -> anyhow::Result<BTreeMap<String, f64>> {
    let mut figures = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let pair = line.split_once(' ').map(|(case, figure)| (case, figure.trim().parse::<f64>()));
        let Some((case, Ok(figure))) = pair else {
            bail!("{FIGURES}:{}: not `CASE FIGURE`: {line}", index + 1);
        };
        figures.insert(case.to_owned(), figure);
    }
    Ok(figures)
}

fn render_figures(figures: &BTreeMap<String, f64>) -> String {
    let mut text = String::from(
        "# User-space instructions per call, by `cargo xtask perf --accept`. The ratchet fails when a\n\
         # case needs more than 3 % above its figure.\n",
    );
    for (case, figure) in figures {
        // writing to a String cannot fail
        writeln!(text, "{case} {figure:.1}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_from_callgrind() {
        let text = "events: Ir\nfl=(1) x.c\nfn=(1) main\n16 400\n\nsummary: 1000\ntotals: 1000\n";
        assert_eq!(total(text), Some(1000));
        assert_eq!(total("part: 1\nsummary: 7\npart: 2\nsummary: 8\n"), Some(15));
        assert_eq!(total("totals: 12 4\n"), Some(12));
        assert_eq!(total("nothing"), None);
    }

    #[test]
    fn start_and_end_cancel_out() {
        let start = 5_000_000;
        let per_call = per_call((100, start + 100 * 900), (1100, start + 1100 * 900)).unwrap();
        assert!((per_call - 900.0).abs() < 1e-9);
        assert!(super::per_call((1, 50), (2, 50)).is_err(), "a program that ignores its argument");
    }

    #[test]
    fn the_ratchet_bites_above_three_per_cent() {
        assert!(!has_grown(1029.0, 1000.0));
        assert!(has_grown(1031.0, 1000.0));
        assert!(judge_case("a", 1031.0, Some(1000.0)).ends_with("GROWN"));
        assert!(judge_case("a", 900.0, Some(1000.0)).contains("shrunk"));
    }

    #[test]
    fn figures_survive_the_file() {
        let figures =
            BTreeMap::from([("keepalive".to_owned(), 812.5), ("depth16".to_owned(), 90.0)]);
        assert_eq!(parse_figures(&render_figures(&figures)).unwrap(), figures);
        let error = parse_figures("# fine\nkeepalive lots\n").unwrap_err().to_string();
        assert!(error.contains(":2:"), "{error}");
    }

    #[test]
    fn the_executable_is_found_among_the_messages() {
        let messages = concat!(
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"sim\"},\"executable\":null}\n",
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"perf\"},\"executable\":\"/t/perf\"}\n"
        );
        assert_eq!(executable(messages, "perf"), Some(PathBuf::from("/t/perf")));
        assert_eq!(executable(messages, "other"), None);
    }
}
