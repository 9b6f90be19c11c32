//! `cargo xtask lineage`: repeats the experiments of earlier tools. A page of `docs/lineage` has
//! the published results and is filled like the guide's pages (see [`crate::guide`]); its plans are
//! next to it. Most need root, for emulated paths, and a quiet machine.

use crate::{guide, shell};
use anyhow::Context;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The program, instead of building it
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Only these pages, by the beginning of their names
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
}

/// Repeats the experiments and writes the pages.
///
/// # Errors
/// Fails like the guide, and if no page has such a name.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let folder = root.join("docs/lineage");
    let mut pages = guide::files_of(&folder, "md")?;
    pages.retain(|page| {
        let name = page.file_stem().unwrap_or_default().to_string_lossy();
        name != "README"
            && (options.only.is_empty()
                || options.only.iter().any(|wanted| name.starts_with(wanted)))
    });
    if pages.is_empty() {
        anyhow::bail!("docs/lineage has no page called {}", options.only.join(", "));
    }
    for page in &pages {
        figure(root, page)?;
    }
    let binary = options.binary.clone();
    guide::run(root, &guide::Options::for_folder(folder, pages, binary))
}

/// Precedes a block generated in virtual time by the named example of `sim`.
const FIGURE: &str = "<!-- virtual time, by the example ";

/// Computes the figures of a page that do not depend on the machine.
///
/// # Errors
/// Fails if the example does not build or fails, or if the mark has no block.
fn figure(root: &Path, page: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(page).context("reading the page")?;
    let Some((before, rest)) = text.split_once(FIGURE) else { return Ok(()) };
    let parts = rest.split_once(" -->\n```text\n").and_then(|(name, rest)| {
        let (_, after) = rest.split_once("```\n")?;
        Some((name, after))
    });
    let (name, after) = parts.context("the mark of a figure has no text block after it")?;
    let mut cargo = shell::cargo();
    cargo.current_dir(root).args(["run", "-q", "-p", "sim", "--locked", "--example", name]);
    let made = cargo.output().context("cannot start cargo")?;
    anyhow::ensure!(made.status.success(), "the example {name} ended with {}", made.status);
    let made = String::from_utf8(made.stdout).context("the figure is not text")?;
    let page_now = format!("{before}{FIGURE}{name} -->\n```text\n{made}```\n{after}");
    std::fs::write(page, page_now).context("writing the page")
}
