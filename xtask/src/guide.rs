//! The guide shows the program's output, so the program writes those blocks itself. Comments in a
//! page contain the commands (see [`page::Mark`]); each page has its own folder and servers.
//!
//! `--check` changes nothing: every command still ends with its exit code, every option of the
//! pages is in the help, and every option of the help is in the guide. Without it a result that is
//! INVALID is repeated, and then refused: the block stays as it was.

mod options;
mod page;

use crate::shell::{self, Missing};
use anyhow::{Context, bail};
use page::{Listener, Mark, Page, SITE, Shown};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Change nothing: hold exit codes and the names of options against the program
    #[arg(long)]
    check: bool,
    /// The program, instead of building it
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Pages, instead of README.md and docs/guide/*.md
    pages: Vec<PathBuf>,
    /// A folder whose plans are copied for the pages' commands.
    #[arg(skip)]
    plans: Option<PathBuf>,
}

impl Options {
    /// Pages with their own folder of plans.
    pub(crate) fn for_folder(
        folder: PathBuf,
        pages: Vec<PathBuf>,
        binary: Option<PathBuf>,
    ) -> Options {
        Options { check: false, binary, pages, plans: Some(folder) }
    }
}

/// Longest that a server may take to listen.
const START_MAX: Duration = Duration::from_secs(10);
/// Time limit for ending after a request to stop.
const END_MAX: Duration = Duration::from_secs(3);
/// Number of retries for a result that must not be shown, and the pause before each.
const TRIES: usize = 4;
const PAUSE: Duration = Duration::from_secs(5);
const SUBCOMMANDS: &[&str] = &[
    "run",
    "ramp",
    "runs list",
    "runs show",
    "runs delete",
    "runs gate",
    "check",
    "compare",
    "demo",
    "init",
    "once",
    "fleet local",
    "fleet manager",
    "fleet agent",
    "fleet watch",
    "fleet status",
    "fleet creds",
    "survey",
    "ui",
    "site",
    "torture",
    "torture diff",
    "torture emit",
    "torture replay",
    "torture judge",
    "torture shrink",
    "torture chain",
    "torture prove",
    "torture audit show",
    "calibrate",
    "workload crawl",
    "workload files",
    "workload sequence",
    "workload import",
    "workload describe",
    "workload anonymise",
    "workload verify",
    "record",
    "netpath",
    "completions",
    "man",
    "report",
];

/// Runs `cargo xtask guide`.
///
/// # Errors
/// Fails if a command's exit code differs from its mark, an option is in one place only, or a page
/// cannot be read or written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let binary = match &options.binary {
        Some(file) => file.canonicalize().with_context(|| format!("{}", file.display()))?,
        None => built(root)?,
    };
    let pages = if options.pages.is_empty() { all_pages(root)? } else { options.pages.clone() };
    let mut faults = Vec::new();
    for path in &pages {
        // a page with a missing server must not prevent the check of the others
        let found =
            renew(path, &binary, options).unwrap_or_else(|error| vec![format!("{error:#}")]);
        faults.extend(found.into_iter().map(|fault| format!("{}: {fault}", path.display())));
    }
    if options.check {
        faults.extend(compare_options(root, &binary)?);
    }
    for fault in &faults {
        eprintln!("{fault}");
    }
    match faults.len() {
        0 => Ok(()),
        n => bail!("{n} faults in the guide"),
    }
}

/// Runs a page's commands, and writes the page unless there is a fault; returns the faults.
fn renew(path: &Path, binary: &Path, options: &Options) -> anyhow::Result<Vec<String>> {
    let check = options.check;
    let page = Page::parse(&std::fs::read_to_string(path).context("reading the page")?)?;
    let mut stage = Stage::new(binary, check)?;
    if let Some(folder) = &options.plans {
        stage.lay_out(folder)?;
    }
    let mut blocks = Vec::new();
    for mark in page.marks() {
        blocks.extend(stage.play(mark)?);
    }
    // a page is written whole or not at all
    if !check && stage.faults.is_empty() {
        std::fs::write(path, page.filled(&blocks)).context("writing the page")?;
    }
    Ok(std::mem::take(&mut stage.faults))
}

fn built(root: &Path) -> anyhow::Result<PathBuf> {
    shell::program(root, shell::RELEASE)
}

fn all_pages(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut pages = vec![root.join("README.md")];
    pages.extend(guide_pages(root)?);
    Ok(pages)
}

fn guide_pages(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    files_of(&root.join("docs/guide"), "md")
}

/// Returns the files of a folder with that extension, sorted.
pub(crate) fn files_of(folder: &Path, wanted: &str) -> anyhow::Result<Vec<PathBuf>> {
    let reading = || format!("reading {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        if path.extension().is_some_and(|extension| extension == wanted) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Environment of a page's commands: a temporary folder as the user's home, the program on PATH,
/// servers that are ended.
struct Stage<'a> {
    folder: tempfile::TempDir,
    binary: &'a Path,
    check: bool,
    /// The site that runs, and the address it listens on.
    site: Option<(Server, String)>,
    servers: Vec<Server>,
    faults: Vec<String>,
}

/// A server; dropping this ends it.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // KILL alone would leave the server's workers running, on its port
        drop(Command::new("kill").arg(self.0.id().to_string()).stderr(Stdio::null()).status());
        let start = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) && start.elapsed() < END_MAX {
            std::thread::sleep(Duration::from_millis(20));
        }
        // it may have ended already
        if self.0.kill().is_ok() {
            drop(self.0.wait());
        }
    }
}

impl<'a> Stage<'a> {
    fn new(binary: &'a Path, check: bool) -> anyhow::Result<Stage<'a>> {
        let folder = tempfile::tempdir().context("making a folder for the page")?;
        let bin = folder.path().join(".bin");
        std::fs::create_dir(&bin).context("making a folder for the program")?;
        std::os::unix::fs::symlink(binary, bin.join("loadstone")).context("linking the program")?;
        Ok(Stage { folder, binary, check, site: None, servers: Vec::new(), faults: Vec::new() })
    }

    /// Copies the plans of a folder for the page's commands.
    fn lay_out(&self, folder: &Path) -> anyhow::Result<()> {
        for path in files_of(folder, "toml")? {
            let Some(name) = path.file_name() else { continue };
            std::fs::copy(&path, self.folder.path().join(name))
                .with_context(|| format!("copying {}", path.display()))?;
        }
        Ok(())
    }

    /// Executes a mark; returns the text of its block, if it has one.
    fn play(&mut self, mark: &Mark) -> anyhow::Result<Option<String>> {
        match mark {
            Mark::Site(options) => return self.start_site(options).map(Some),
            Mark::Start { at, command } => {
                self.start(at, command)?;
                return Ok(Some(format!("$ {command} &\n")));
            }
            Mark::Run(command) => {
                self.run(command)?;
                return Ok(Some(format!("$ {command}\n")));
            }
            Mark::Wait(command) => self.run(command)?,
            Mark::File { name, text } => {
                let text = self.with_site(text);
                std::fs::write(self.folder.path().join(name), text)
                    .with_context(|| format!("writing {name}"))?;
            }
            Mark::Output(shown) => return self.output(shown).map(Some),
        }
        Ok(None)
    }

    fn output(&mut self, shown: &Shown) -> anyhow::Result<String> {
        let command = &shown.command;
        eprintln!("$ {command}");
        let (mut code, mut output) = self.output_of(shown)?;
        let mut tries = if self.check { 0 } else { TRIES };
        while shown.allows(code) && !shown.may_be_shown(code, &output) && tries > 0 {
            eprintln!("  INVALID on this machine: repeating");
            std::thread::sleep(PAUSE);
            (code, output) = self.output_of(shown)?;
            tries -= 1;
        }
        if !shown.allows(code) {
            self.faults.push(format!("{command:?} ended with {code}, not {}", shown.code));
        } else if !self.check && !shown.may_be_shown(code, &output) {
            let why = "the page does not expect that; generate it on a quieter machine";
            self.faults.push(format!("{command:?} is INVALID ({code}): {why}"));
        }
        let home = self.folder.path().to_string_lossy();
        let output = output.replace(home.as_ref(), "~");
        let ended = if shown.code == 0 { String::new() } else { format!("$ echo $?\n{code}\n") };
        Ok(format!("$ {command}\n{}\n{ended}", output.trim_end()))
    }

    /// Returns exit code and output of a command that is shown.
    fn output_of(&self, shown: &Shown) -> anyhow::Result<(i32, String)> {
        let command = &shown.command;
        let merged = if shown.errors { format!("{{ {command}; }} 2>&1") } else { command.clone() };
        let output = self.shell(&merged)?;
        let text = String::from_utf8(output.stdout).context("the output is not UTF-8")?;
        Ok((output.status.code().unwrap_or(-1), text))
    }

    /// Runs a command that must exit with 0; its measurement may be INVALID, because it is not
    /// shown.
    fn run(&self, command: &str) -> anyhow::Result<()> {
        let output = self.shell(command)?;
        if !matches!(output.status.code(), Some(0 | 4)) {
            bail!("{command:?} ended with {}", output.status);
        }
        Ok(())
    }

    fn shell(&self, command: &str) -> anyhow::Result<std::process::Output> {
        let mut shell = self.command("sh");
        shell.args(["-c", &self.with_site(command)]).stderr(Stdio::piped());
        shell.output().with_context(|| format!("cannot start {command:?}"))
    }

    fn command(&self, program: &str) -> Command {
        let folder = self.folder.path();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command.current_dir(folder).stdin(Stdio::null()).env("LANG", "C.UTF-8");
        command.env("PATH", format!("{}:{path}:/usr/sbin", folder.join(".bin").display()));
        command.env("COLUMNS", "80").env("HOME", folder);
        command.env_remove("XDG_STATE_HOME").env_remove("LC_ALL");
        command.env_remove("XDG_DATA_HOME").env_remove("LOADSTONE_STORE");
        command
    }

    /// Returns the text with the address of the site that runs. A check runs during other work, so
    /// its site uses a free port instead of the usual one.
    fn with_site(&self, text: &str) -> String {
        match &self.site {
            Some((_, address)) => text.replace(SITE, address),
            None => text.to_owned(),
        }
    }

    /// Starts a site, replacing the previous one; returns the shown lines.
    fn start_site(&mut self, options: &str) -> anyhow::Result<String> {
        let before = if self.site.take().is_some() { "kill $!; wait; " } else { "" };
        let listen = if self.check { "127.0.0.1:0" } else { SITE };
        let mut command = self.command(&self.binary.to_string_lossy());
        command.args(["site", "--listen", listen]).args(options.split_whitespace());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Server(command.spawn().context("cannot start the site")?);
        let stdout = server.0.stdout.take().context("the site has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).context("reading the site's URL")?;
        let Some(address) = line.trim().trim_end_matches('/').strip_prefix("http://") else {
            let text = format!("no site with {options:?} on {listen}: is the port in use?");
            return Err(Missing(text).into());
        };
        self.site = Some((server, address.to_owned()));
        let gap = if options.is_empty() { "" } else { " " };
        Ok(format!("$ {before}loadstone site{gap}{options} &\n{line}"))
    }

    fn start(&mut self, at: &Listener, command: &str) -> anyhow::Result<()> {
        let listens = || match at {
            Listener::Port(port) => TcpStream::connect(("127.0.0.1", *port)).is_ok(),
            Listener::Socket(path) => UnixStream::connect(self.folder.path().join(path)).is_ok(),
        };
        if listens() {
            return Err(Missing(format!("{at:?} is in use: {command:?} needs it")).into());
        }
        let mut shell = self.command("sh");
        let line = format!("exec {}", self.with_site(command));
        shell.args(["-c", &line]).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server(shell.spawn().context("cannot start a server")?);
        let start = Instant::now();
        while !listens() {
            if start.elapsed() > START_MAX {
                bail!("{command:?} does not listen at {at:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.servers.push(server);
        Ok(())
    }
}

/// Compares options of the help with options of the pages, both ways.
fn compare_options(root: &Path, binary: &Path) -> anyhow::Result<Vec<String>> {
    let mut help = BTreeMap::new();
    for &command in SUBCOMMANDS {
        let words = command.split(' ').chain(["--help"]);
        let text = shell::output(Command::new(binary).args(words))?;
        help.insert(command, options::in_help(&text));
    }
    let read = |path: PathBuf| -> anyhow::Result<(String, String)> {
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        Ok((name, Page::parse(&text)?.written_text()))
    };
    let guide = guide_pages(root)?.into_iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let readme = read(root.join("README.md"))?;
    Ok(options::compare(&help, &guide, &readme))
}
