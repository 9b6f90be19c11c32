//! `cargo xtask paths`: checks with real packets whether emulated paths behave as requested: how
//! punctual the forwarder is at which rate, the same load through it and through the kernel's own
//! emulation, and whether it grows. Writes bench/PATHS.md; needs root and a quiet machine.

mod pace;
mod referee;
mod servers;
mod soak;
mod stacks;

use crate::shell;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The page that is written.
const PAGE: &str = "bench/PATHS.md";
const HEAD: &str = "# Paths: what the emulation does, measured\n\nWritten by `cargo xtask paths`, each section by \
                    one of its parts. Each section states the load of\nthe machine.\n";
/// Maximum length of a line of prose.
const WIDTH: usize = 100;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only these parts; the page's other sections stay
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Rounds of pace, referee and stacks; their medians are reported
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Minutes of the soak
    #[arg(long, default_value_t = 5)]
    minutes: u32,
    /// The program, instead of building it
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Lateness of packets at 1,000 to 150,000 a second
    Pace,
    /// The same load through the kernel's shapers and random drops
    Referee,
    /// The same load over the same path by the kernel's TCP and by our own
    Stacks,
    /// Our own TCP and independent servers, a connection for each call, with loss
    Servers,
    /// Minutes of traffic over a bad path: nothing grows
    Soak,
}

const PARTS: [Part; 5] = [Part::Pace, Part::Referee, Part::Stacks, Part::Servers, Part::Soak];

/// Measures and writes the page.
///
/// # Errors
/// Fails if a program cannot be started, a path cannot be created, or a section's promise is not
/// kept.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => shell::program(root, shell::DIST)?,
    };
    let wanted = |part: &Part| options.parts.is_empty() || options.parts.contains(part);
    let file = root.join(PAGE);
    for part in PARTS.iter().filter(|part| wanted(part)) {
        let section = match part {
            Part::Pace => pace::section(root, &binary, options.rounds)?,
            Part::Referee => referee::section(&binary, options.rounds)?,
            Part::Stacks => stacks::section(&binary, options.rounds)?,
            Part::Servers => servers::section(root, &binary)?,
            Part::Soak => soak::section(&binary, options.minutes)?,
        };
        println!("{section}");
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        std::fs::write(&file, merged(&before, *part, &section)).context(PAGE)?;
    }
    Ok(())
}

impl Part {
    fn title(self) -> &'static str {
        match self {
            Part::Pace => "How late",
            Part::Referee => "Against the kernel",
            Part::Stacks => "Our own TCP and the kernel's",
            Part::Servers => "Our own TCP and independent servers",
            Part::Soak => "Soak",
        }
    }
}

/// Replaces a section of the page.
fn merged(before: &str, part: Part, section: &str) -> String {
    let mut page = HEAD.to_owned();
    for one in PARTS {
        let own = format!("{}\n", one.title());
        let old = before.split("\n## ").find(|text| text.starts_with(&own));
        let text = if one == part {
            Some(section.trim_end())
        } else {
            old.map(|old| old[own.len()..].trim())
        };
        if let Some(text) = text {
            page.push_str(&format!("\n## {}\n\n{}", one.title(), wrapped(text)));
        }
    }
    page
}

/// Wraps prose at [`WIDTH`] columns; keeps tables, headings and indented lines.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let indent = if line.starts_with("- ") { "  " } else { "" };
        if line.starts_with(['|', '#', ' ']) {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let mut width = 0;
        for word in line.split(' ') {
            let len = word.chars().count();
            if width > 0 && width + 1 + len > WIDTH {
                out.push('\n');
                out.push_str(indent);
                width = indent.len();
            } else if width > 0 {
                out.push(' ');
                width += 1;
            }
            out.push_str(word);
            width += len;
        }
        out.push('\n');
    }
    out
}

/// Returns the system load in the last minute, as a measure of other work.
fn machine() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("an unknown number").to_owned();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{cores} cores, {load} runnable processes in the minute before.")
}

/// Runs `netpath` with a program; returns the output of both.
fn run_netpath(
    netpath: &mut Command,
    [path, seed]: &[&str; 2],
    server: &str,
    program: &[&str],
) -> anyhow::Result<(String, String)> {
    netpath.args(["netpath", "--path", path, "--seed", seed, "--server", server, "--"]);
    netpath.args(program);
    let ran = netpath.stdin(Stdio::null()).output().context("netpath cannot be started")?;
    let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
    let code = ran.status.code().unwrap_or(-1);
    // 1 and 4: an objective missed, a measurement in doubt, which the median is for
    anyhow::ensure!(matches!(code, 0 | 1 | 4), "netpath ended with {}: {errors}", ran.status);
    Ok((String::from_utf8_lossy(&ran.stdout).into_owned(), errors))
}

/// Returns the median, the smallest and the largest value.
fn spread(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |row: usize| sorted.get(row).copied().unwrap_or(f64::NAN);
    (at(sorted.len() / 2), at(0), at(sorted.len().saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_section_takes_the_place_of_its_own() {
        let one = merged("", Part::Soak, "soaked\n");
        let two = merged(&one, Part::Pace, "paced\n\nwell");
        assert_eq!(two, format!("{HEAD}\n## How late\n\npaced\n\nwell\n\n## Soak\n\nsoaked\n"));
        let three = merged(&two, Part::Pace, "again");
        assert_eq!(three, format!("{HEAD}\n## How late\n\nagain\n\n## Soak\n\nsoaked\n"));
    }

    #[test]
    fn prose_is_wrapped_and_tables_stay() {
        let row = format!("| {} |", "x ".repeat(80));
        let once = wrapped(&format!("{}\n{row}\n- {}\n", "word ".repeat(30), "item ".repeat(30)));
        assert!(once.lines().all(|line| line == row || line.len() <= WIDTH), "{once}");
        assert!(once.contains("\n  item "), "{once}");
        assert_eq!(wrapped(&once), once);
    }

    #[test]
    fn the_median_of_three_is_the_middle() {
        assert_eq!(spread(&[3.0, 1.0, 2.0]), (2.0, 1.0, 3.0));
        assert!(spread(&[]).0.is_nan());
    }
}
