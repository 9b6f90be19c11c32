//! Makes a release of the tree: the CHANGELOG's open section gets its date, the manifests the
//! version, and both become a commit and an annotated tag whose message is that section. Nothing is
//! pushed.

use crate::shell;
use anyhow::{Context, bail, ensure};
use std::path::Path;
use std::process::Command;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The version, as in the CHANGELOG's open section: 0.2.0, or 0.2.0-rc.1
    version: String,
    /// Print the version's notes and change nothing
    #[arg(long)]
    notes: bool,
    /// The day of the release instead of today (UTC)
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

const CHANGELOG: &str = "CHANGELOG.md";
const MANIFEST: &str = "Cargo.toml";
/// Placeholder for the date in a heading.
const OPEN: &str = "unreleased";

/// Runs `cargo xtask release`.
///
/// # Errors
/// Fails for an invalid version or date; a CHANGELOG section that is missing, empty or already
/// dated; an existing tag; uncommitted changes; a failure of git or cargo. Changes before a failure
/// of this kind are reverted.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let version = &options.version;
    ensure!(is_version(version), "{version:?} is not a version: write it as 1.2.3 or 1.2.3-rc.1");
    let path = root.join(CHANGELOG);
    let changelog = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let section = Section::new(&changelog, version)?;
    if options.notes {
        println!("{}", section.notes);
        return Ok(());
    }
    ensure!(section.day == OPEN, "{CHANGELOG}: {version} was released on {}", section.day);
    let day = match &options.date {
        Some(day) => day.clone(),
        None => shell::output(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned(),
    };
    ensure!(is_day(&day), "{day:?} is not a date: write it as 2026-11-23");
    let tag = format!("v{version}");
    hold_repository(root, &tag)?;
    let before = git(root, &["rev-parse", "HEAD"])?;
    let done = write(root, &changelog, &section, version, &day)
        .and_then(|()| record(root, version, &tag, &section.notes));
    if done.is_err() {
        // the tree was clean: any difference is from this command, and so is a commit whose tag
        // failed
        git(root, &["reset", "--quiet", "--hard", before.trim()])?;
    }
    done?;
    println!("{tag} is tagged. To publish it: git push --follow-tags; then cargo xtask dist");
    Ok(())
}

/// A version's part of the CHANGELOG.
#[derive(Debug, PartialEq, Eq)]
struct Section {
    /// Complete line.
    heading: String,
    /// The day of the release, or [`OPEN`].
    day: String,
    /// The text below the heading, without surrounding blank lines.
    notes: String,
}

impl Section {
    fn new(changelog: &str, version: &str) -> anyhow::Result<Section> {
        let start = format!("## [{version}] - ");
        let heading = changelog.lines().find(|line| line.starts_with(&start));
        let heading = heading
            .with_context(|| format!("{CHANGELOG} has no heading `{start}{OPEN}`: write one"))?;
        let below = changelog.lines().skip_while(|line| *line != heading).skip(1);
        let lines: Vec<&str> = below.take_while(|line| !line.starts_with("## ")).collect();
        let notes = lines.join("\n").trim().to_owned();
        ensure!(!notes.is_empty(), "{CHANGELOG}: there is no entry below `{heading}`");
        let day = heading[start.len()..].trim().to_owned();
        Ok(Section { heading: heading.to_owned(), day, notes })
    }
}

/// Returns whether the text is a version by Semantic Versioning 2.0.0: three numbers without
/// leading zeros, and optional text after a hyphen.
fn is_version(text: &str) -> bool {
    let (numbers, pre) = text.split_once('-').map_or((text, None), |(a, b)| (a, Some(b)));
    let numeral = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits && (part == "0" || !part.starts_with('0'))
    };
    let word = |part: &str| {
        let letters = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        !part.is_empty() && letters
    };
    numbers.split('.').count() == 3
        && numbers.split('.').all(numeral)
        && pre.is_none_or(|pre| pre.split('.').all(word))
}

fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let [year, month, day] = parts.as_slice() else { return false };
    let lengths = (year.len(), month.len(), day.len()) == (4, 2, 2);
    let within = |part: &str, max: u32| part.parse::<u32>().is_ok_and(|n| (1..=max).contains(&n));
    lengths && parts.iter().all(|part| digits(part)) && within(month, 12) && within(day, 31)
}

/// Checks that the release matches the commit, and that no tag moves.
fn hold_repository(root: &Path, tag: &str) -> anyhow::Result<()> {
    let status = git(root, &["status", "--porcelain"])?;
    ensure!(status.is_empty(), "uncommitted changes:\n{status}commit them first");
    let taken = git(root, &["tag", "--list", tag])?;
    ensure!(taken.is_empty(), "the tag {tag} exists already");
    Ok(())
}

/// Writes the day into the CHANGELOG, and the version into the manifest and the lock file.
fn write(
    root: &Path,
    changelog: &str,
    section: &Section,
    version: &str,
    day: &str,
) -> anyhow::Result<()> {
    let dated = changelog.replacen(&section.heading, &format!("## [{version}] - {day}"), 1);
    std::fs::write(root.join(CHANGELOG), dated).context(CHANGELOG)?;
    let path = root.join(MANIFEST);
    let manifest = std::fs::read_to_string(&path).context(MANIFEST)?;
    let before = shell::version(root)?;
    if before != version {
        std::fs::write(&path, with_version(&manifest, &before, version)?).context(MANIFEST)?;
        let mut update = shell::cargo();
        shell::run(update.current_dir(root).args(["update", "--workspace", "--offline"]))?;
    }
    Ok(())
}

/// Returns the manifest with another version; everything else stays byte for byte.
fn with_version(manifest: &str, before: &str, after: &str) -> anyhow::Result<String> {
    let line = format!("version = \"{before}\"");
    let of_workspace = manifest.find("[workspace.package]").context("no [workspace.package]")?;
    let at = manifest[of_workspace..].find(&line).context("no version below it")? + of_workspace;
    let rest = &manifest[at + line.len()..];
    let changed = format!("{}version = \"{after}\"{rest}", &manifest[..at]);
    if shell::version_in(&changed).as_deref() != Some(after) {
        bail!("{MANIFEST}: cannot set the version; set it to {after} by hand");
    }
    Ok(changed)
}

/// Creates the commit and the tag.
fn record(root: &Path, version: &str, tag: &str, notes: &str) -> anyhow::Result<()> {
    let subject = format!("Release {version}");
    git(root, &["add", "--update"])?;
    git(root, &["commit", "--quiet", "--message", &subject])?;
    // headings begin with the character of git's comments
    let message = format!("{subject}\n\n{notes}");
    git(root, &["tag", "--annotate", "--cleanup=verbatim", "--message", &message, tag])?;
    Ok(())
}

fn git(root: &Path, words: &[&str]) -> anyhow::Result<String> {
    shell::output(Command::new("git").current_dir(root).args(words))
}

#[cfg(test)]
mod tests;
