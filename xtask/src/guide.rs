//! The guide shows what the program prints, so the program writes those blocks itself. A page says in
//! comments what to run (see [`page::Mark`]); each page has a folder and servers of its own.
//!
//! `--check` changes nothing: every command still ends with its exit code, every option of the pages
//! is in the help, and every option of the help is in the guide.

mod options;
mod page;

use crate::shell::{self, Missing};
use anyhow::{Context, bail};
use page::{Mark, Page, Shown};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
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
}

/// Longest that a server may take to listen.
const START_MAX: Duration = Duration::from_secs(10);
const SUBCOMMANDS: &[&str] = &[
    "run",
    "ramp",
    "runs list",
    "runs show",
    "runs delete",
    "check",
    "compare",
    "demo",
    "site",
    "torture",
    "torture diff",
    "torture emit",
    "torture replay",
    "torture judge",
    "torture shrink",
    "torture prove",
    "torture audit show",
    "calibrate",
    "workload crawl",
    "completions",
    "man",
    "report",
];

/// `cargo xtask guide`.
///
/// # Errors
/// A command ends with another exit code than its mark says; an option is in one place only; a page
/// cannot be read, or written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let binary = match &options.binary {
        Some(file) => file.canonicalize().with_context(|| format!("{}", file.display()))?,
        None => built(root)?,
    };
    let pages = if options.pages.is_empty() { all_pages(root)? } else { options.pages.clone() };
    let mut faults = Vec::new();
    for path in &pages {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let page = Page::parse(&text).with_context(|| format!("{}", path.display()))?;
        let mut stage = Stage::new(&binary, options.check)?;
        let mut blocks = Vec::new();
        for mark in page.marks() {
            let block = stage.play(mark).with_context(|| format!("{}", path.display()))?;
            blocks.extend(block);
        }
        faults.extend(stage.faults.drain(..).map(|fault| format!("{}: {fault}", path.display())));
        if !options.check {
            std::fs::write(path, page.filled(&blocks))
                .with_context(|| format!("writing {}", path.display()))?;
        }
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

fn built(root: &Path) -> anyhow::Result<PathBuf> {
    let mut cargo = shell::cargo();
    shell::run(cargo.current_dir(root).args(["build", "--release", "--package", "loadstone"]))?;
    Ok(shell::target_folder(root).join("release/loadstone"))
}

fn all_pages(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut pages = vec![root.join("README.md")];
    pages.extend(guide_pages(root)?);
    Ok(pages)
}

fn guide_pages(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(root.join("docs/guide")).context("reading docs/guide")? {
        let path = entry.context("reading docs/guide")?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

/// Where a page's commands run: a folder that goes away and stands for the user's home, the program on PATH, servers that are ended.
struct Stage<'a> {
    folder: tempfile::TempDir,
    binary: &'a Path,
    check: bool,
    site: Option<(Server, String)>,
    servers: Vec<Server>,
    faults: Vec<String>,
}

/// Ended when it goes out of scope.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // it may have ended by itself, and then there is nothing to do
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

    /// Does what a mark says; the text of its block when it has one.
    fn play(&mut self, mark: &Mark) -> anyhow::Result<Option<String>> {
        match mark {
            Mark::Site(options) => {
                self.start_site(options)?;
            }
            Mark::Start { port, command } => {
                let command = self.with_site(command)?;
                self.start(*port, &command)?;
            }
            Mark::Run(command) => {
                let command = self.with_site(command)?;
                let output = self.shell(&command)?;
                if !output.status.success() {
                    bail!("{command:?} ended with {}", output.status);
                }
            }
            Mark::File { name, text } => {
                let text = self.with_site(text)?;
                std::fs::write(self.folder.path().join(name), text)
                    .with_context(|| format!("writing {name}"))?;
            }
            Mark::Output(shown) => return self.output(shown).map(Some),
        }
        Ok(None)
    }

    fn output(&mut self, shown: &Shown) -> anyhow::Result<String> {
        let command = self.with_site(&shown.command)?;
        eprintln!("$ {command}");
        let merged = if shown.errors { format!("{{ {command}; }} 2>&1") } else { command.clone() };
        let output = self.shell(&merged)?;
        let code = output.status.code().unwrap_or(-1);
        if !shown.allows(code) {
            self.faults.push(format!("{command:?} ended with {code}, not {}", shown.code));
        } else if code != shown.code {
            eprintln!("  ended with {code}: INVALID on this machine just now");
        }
        let said = String::from_utf8(output.stdout).context("the output is not UTF-8")?;
        let home = self.folder.path().to_string_lossy();
        let said = said.replace(home.as_ref(), "~");
        let ended = if shown.code == 0 { String::new() } else { format!("$ echo $?\n{code}\n") };
        Ok(format!("$ {command}\n{}\n{ended}", said.trim_end()))
    }

    fn shell(&self, command: &str) -> anyhow::Result<std::process::Output> {
        let mut shell = self.command("sh");
        shell.args(["-c", command]).stderr(Stdio::piped());
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

    /// `{site}` becomes the URL of the page's site, which is started when it is first asked for.
    fn with_site(&mut self, text: &str) -> anyhow::Result<String> {
        if !text.contains("{site}") {
            return Ok(text.to_owned());
        }
        let url = match &self.site {
            Some((_, url)) => url.clone(),
            None => self.start_site("")?,
        };
        Ok(text.replace("{site}", &url))
    }

    /// The usual port where it is free, so that pages change little; else any.
    fn start_site(&mut self, options: &str) -> anyhow::Result<String> {
        self.site = None;
        let usual = if self.check { &[][..] } else { &["127.0.0.1:2020"][..] };
        for listen in usual.iter().chain(&["127.0.0.1:0"]) {
            let mut command = self.command(&self.binary.to_string_lossy());
            command.args(["site", "--listen", listen]).args(options.split_whitespace());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut server = Server(command.spawn().context("cannot start the site")?);
            let stdout = server.0.stdout.take().context("the site has no output")?;
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line).context("reading the site's URL")?;
            let url = line.trim().trim_end_matches('/').to_owned();
            if !url.is_empty() {
                self.site = Some((server, url.clone()));
                return Ok(url);
            }
        }
        bail!("the site does not start with {options:?}")
    }

    fn start(&mut self, port: u16, command: &str) -> anyhow::Result<()> {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Err(Missing(format!("port {port} is in use: {command:?} needs it")).into());
        }
        let mut shell = self.command("sh");
        shell.args(["-c", &format!("exec {command}")]).stdout(Stdio::null()).stderr(Stdio::null());
        self.servers.push(Server(shell.spawn().context("cannot start a server")?));
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if start.elapsed() > START_MAX {
                bail!("{command:?} does not listen on port {port}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Options of the help against options of the pages, both ways.
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
        Ok((name, Page::parse(&text)?.own_words()))
    };
    let guide = guide_pages(root)?.into_iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let readme = read(root.join("README.md"))?;
    Ok(options::compare(&help, &guide, &readme))
}
