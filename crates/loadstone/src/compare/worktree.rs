//! Two commits of one repository, each built in its own worktree.

use crate::exit::{Code, Failure};
use crate::{shell, signals};
use args::LiveTask;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Interval of polling a build.
const PAUSE: Duration = Duration::from_millis(50);
/// Number of lines shown from the end of a failed build's output, and number of bytes read for
/// them.
const TAIL_LINES_MAX: usize = 20;
const TAIL_BYTES_MAX: usize = 16 << 10;

/// Worktrees in a temporary folder; removed when dropped.
#[derive(Debug, Default)]
pub(super) struct Worktrees {
    root: Option<PathBuf>,
    added: Vec<PathBuf>,
}

impl Worktrees {
    /// Checks out and builds the commits of a comparison; its commands then run in these worktrees.
    /// Does nothing without commits.
    ///
    /// # Errors
    /// Fails without a repository or such a commit, for a build that fails, or if a signal arrives.
    pub(super) fn prepared(task: &mut LiveTask) -> Result<Worktrees, Failure> {
        let mut worktrees = Worktrees::default();
        let Some(commits) = task.commits.clone() else { return Ok(worktrees) };
        let root = std::env::temp_dir().join(format!("loadstone-commits-{}", std::process::id()));
        std::fs::create_dir(&root).map_err(|error| {
            let at = root.display();
            Failure::usage(format!("cannot make the folder {at} for the worktrees: {error}"))
        })?;
        worktrees.root = Some(root.clone());
        let mut hashes = Vec::new();
        for ((side, revision), letter) in
            task.sides.iter_mut().zip(&commits.revisions).zip(["a", "b"])
        {
            let hash = hash_of(revision)?;
            let directory = root.join(letter);
            worktrees.add(&directory, &hash)?;
            if let Some(build) = &commits.build {
                if !task.outputs.quiet {
                    crate::print_message(&format!("building {revision} ({})", short(&hash)));
                }
                built(build, &directory, &root.join(format!("{letter}.log")), revision)?;
            }
            side.label = format!("{revision} ({})", short(&hash));
            side.directory = Some(directory);
            hashes.push(hash);
        }
        if hashes.first() == hashes.last() {
            task.cautions.push("Both sides are built from the same commit.".to_owned());
        }
        let labels: Vec<&str> = task.sides.iter().map(|side| side.label.as_str()).collect();
        task.outputs.name = format!("{} against {}", labels[1], labels[0]);
        Ok(worktrees)
    }

    fn add(&mut self, directory: &Path, hash: &str) -> Result<(), Failure> {
        let path = directory.to_string_lossy();
        let done = git(&["worktree", "add", "--detach", &path, hash])?;
        if !done.status.success() {
            return Err(refused(&format!("cannot check out {}", short(hash)), &done));
        }
        self.added.push(directory.to_owned());
        Ok(())
    }
}

impl Drop for Worktrees {
    fn drop(&mut self) {
        for directory in &self.added {
            // git's remains are removed with the folder, and forgotten by its next prune
            git(&["worktree", "remove", "--force", &directory.to_string_lossy()]).ok();
        }
        if let Some(root) = &self.root
            && let Err(error) = std::fs::remove_dir_all(root)
        {
            crate::print_message(&format!("cannot remove {}: {error}", root.display()));
        }
    }
}

fn git(words: &[&str]) -> Result<Output, Failure> {
    Command::new("git").args(words).output().map_err(|error| {
        Failure::usage(format!("cannot run git, which --commit-a and --commit-b need: {error}"))
    })
}

fn refused(what: &str, done: &Output) -> Failure {
    let why = report::printable(String::from_utf8_lossy(&done.stderr).trim(), 500);
    Failure::usage(format!("{what}: git: {why}"))
}

fn hash_of(revision: &str) -> Result<String, Failure> {
    let commit = format!("{revision}^{{commit}}");
    let done = git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])?;
    let hash = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    match done.status.success() && !hash.is_empty() {
        true => Ok(hash),
        false => Err(Failure::usage(format!(
            "{revision:?} is not a commit of the repository in this folder; see git log, and run \
             loadstone inside the repository with all commits fetched (in CI: fetch-depth 0)"
        ))),
    }
}

fn short(hash: &str) -> &str {
    hash.get(..8).unwrap_or(hash)
}

/// Runs a build to completion.
fn built(build: &str, directory: &Path, log: &Path, revision: &str) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("cannot start the build: {error}"));
    let file = File::create(log).map_err(cannot)?;
    let mut command = shell::shell(build);
    command.current_dir(directory).stderr(file.try_clone().map_err(cannot)?).stdout(file);
    let mut child = command.spawn().map_err(cannot)?;
    loop {
        match child.try_wait().map_err(cannot)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                return Err(Failure::usage(format!(
                    "--build failed for {revision} ({status}); its last output:\n{}",
                    tail(log)
                )));
            }
            None => {}
        }
        signals::pause(PAUSE);
        if signals::received_signal() > 0 {
            kill_process_group(Pid::from_child(&child), Signal::TERM).ok();
            child.wait().ok();
            let text = format!("interrupted while {revision} was built");
            return Err(Failure { code: Code::Interrupted, text });
        }
    }
}

fn tail(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let end = &bytes[bytes.len().saturating_sub(TAIL_BYTES_MAX)..];
    let text = String::from_utf8_lossy(end).into_owned();
    let lines: Vec<String> =
        text.lines().map(|line| format!("  {}", report::printable(line, 300))).collect();
    lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].join("\n")
}
