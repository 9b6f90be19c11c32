//! Child processes: they read no standard input, every command is printed before it runs, and a
//! failure names the command.

use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// This machine lacks something that the command requires; exit code 2.
#[derive(Debug)]
pub(crate) struct Missing(pub(crate) String);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// Returns a command for the cargo that started this program, so that one toolchain does
/// everything.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs to the end with our own output streams.
///
/// # Errors
/// Fails if the program cannot be started, or did not exit with 0.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    eprintln!("$ {}", command_text(command));
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {}", command_text(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", command_text(command));
    }
    Ok(())
}

/// Runs a command to its end, prints all its output afterwards, after its command line, and returns
/// the output, whether the command failed or not.
pub(crate) fn run_and_capture(command: &mut Command) -> (anyhow::Result<()>, String) {
    let line = command_text(command);
    let (ended, printed) = run_piped(command, |_| ());
    eprint!("$ {line}\n{printed}");
    (ended, printed)
}

/// Like [`run_and_capture`], but prints the output as it arrives.
pub(crate) fn run_and_print(command: &mut Command) -> (anyhow::Result<()>, String) {
    eprintln!("$ {}", command_text(command));
    run_piped(command, |line| eprint!("{line}"))
}

fn run_piped(command: &mut Command, each: impl Fn(&str)) -> (anyhow::Result<()>, String) {
    let mut printed = String::new();
    let mut whole = || -> anyhow::Result<()> {
        let (reader, writer) = std::io::pipe()?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let mut child =
            command.spawn().with_context(|| format!("cannot start {}", command_text(command)))?;
        // otherwise our copies of the pipe keep it open
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut lines = std::io::BufReader::new(reader);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line);
            each(&text);
            printed.push_str(&text);
            line.clear();
        }
        let status = child.wait()?;
        anyhow::ensure!(status.success(), "{} ended with {status}", command_text(command));
        Ok(())
    };
    let ended = whole();
    (ended, printed)
}

/// Runs a command to its end and returns standard output.
///
/// # Errors
/// Fails like [`run`], or if the output is not UTF-8.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", command_text(command)))?;
    if !output.status.success() {
        bail!("{} ended with {}", command_text(command), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} did not print UTF-8", command_text(command)))
}

/// Returns the path of a program: searches PATH, then the system folders missing in an ordinary
/// user's PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(system)
        .map(|folder| folder.join(program))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|at| at.is_file() && at.permissions().mode() & 0o111 != 0)
}

/// Returns the program, or a [`Missing`] with the fix.
pub(crate) fn need(program: &str, fix_text: &str) -> anyhow::Result<PathBuf> {
    find(program).ok_or_else(|| Missing(format!("{program} is not installed: {fix_text}")).into())
}

/// Returns cargo's build folder.
pub(crate) fn target_folder(root: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root.join(folder),
        None => root.join("target"),
    }
}

/// The build from source: quick to compile.
pub(crate) const RELEASE: &str = "release";
/// The shipped, and therefore measured, build: optimized as a whole (docs/decisions/0075).
pub(crate) const DIST: &str = "dist";

/// Builds the program with one of these profiles and returns its path.
///
/// # Errors
/// Fails if the build fails.
pub(crate) fn program(root: &Path, profile: &str) -> anyhow::Result<PathBuf> {
    let mut cargo = cargo();
    cargo.current_dir(root).args(["build", "--profile", profile, "--package", "loadstone"]);
    run(&mut cargo)?;
    Ok(target_folder(root).join(profile).join("loadstone"))
}

/// Returns the version of the workspace.
///
/// # Errors
/// Fails if the root manifest has no `[workspace.package] version`.
pub(crate) fn version(root: &Path) -> anyhow::Result<String> {
    let path = root.join("Cargo.toml");
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    version_in(&text).with_context(|| format!("no [workspace.package] version in {path:?}"))
}

/// Returns the version from the manifest's text.
pub(crate) fn version_in(manifest: &str) -> Option<String> {
    let manifest: toml::Table = manifest.parse().ok()?;
    let version = manifest.get("workspace")?.get("package")?.get("version")?;
    version.as_str().map(str::to_owned)
}

fn command_text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
