//! `cargo xtask lineage`: the experiments of the tools that came before, repeated. A page of
//! `docs/lineage` says what was published and is filled as the guide's pages are (see [`crate::guide`]);
//! the plans that it runs stand beside it. Most of them need root, for emulated paths, and a quiet machine.

use crate::guide;
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
/// As of the guide; no page has such a name.
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
    let binary = options.binary.clone();
    guide::run(root, &guide::Options::of_folder(folder, pages, binary))
}
