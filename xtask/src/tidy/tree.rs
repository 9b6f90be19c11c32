//! The files that the rules examine: all text of this repository, without built and downloaded
//! files.

use super::source::{self, Source};
use anyhow::Context;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Paths are relative to the root and use `/`.
#[derive(Default)]
pub(crate) struct Tree {
    texts: BTreeMap<String, String>,
    paths: BTreeSet<String>,
    /// Parsed Rust files. Each is parsed once for all rules, because parsing takes nearly all of
    /// their time.
    sources: OnceCell<BTreeMap<String, Parsed>>,
    tests: OnceCell<BTreeSet<String>>,
}

/// A file, or the line and the parser's error.
type Parsed = Result<Source, (usize, String)>;

/// Folders without files of this repository, at any depth.
const SKIPPED: &[&str] = &[".git", "target", "dist", "vendor", "corpus", "artifacts", "coverage"];

/// Extensions of text files.
const TEXT: &[&str] =
    &["rs", "md", "toml", "sh", "py", "json", "snap", "txt", "yml", "yaml", "html", "css", "js"];

/// Returns the crate of a source file, and the file's path below `src/`.
pub(crate) fn source_of(path: &str) -> Option<(&str, &str)> {
    let (folder, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    Some((folder.rsplit('/').next()?, file))
}

impl Tree {
    /// Reads the tree below `root`. Symbolic links are not followed.
    ///
    /// # Errors
    /// Fails if a folder or file cannot be read, or a text file is not UTF-8.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Tree> {
        let mut tree = Tree::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> anyhow::Result<()> {
        let reading = || format!("reading {}", folder.display());
        for entry in std::fs::read_dir(folder).with_context(reading)? {
            let entry = entry.with_context(reading)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let kind = entry.file_type().with_context(reading)?;
            let path = format!("{prefix}{name}");
            if kind.is_dir() {
                if SKIPPED.contains(&name.as_str()) {
                    continue;
                }
                self.paths.insert(path.clone());
                self.read_folder(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() {
                if is_text(&path) {
                    let text = std::fs::read_to_string(entry.path())
                        .with_context(|| format!("reading {path} as text"))?;
                    self.texts.insert(path.clone(), text);
                }
                self.paths.insert(path);
            }
        }
        Ok(())
    }

    /// Returns a tree constructed for a test.
    #[cfg(test)]
    pub(crate) fn new(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            for (at, _) in path.match_indices('/') {
                tree.paths.insert(path[..at].to_owned());
            }
            tree.paths.insert((*path).to_owned());
            tree.texts.insert((*path).to_owned(), (*text).to_owned());
        }
        tree
    }

    /// Returns the path and text of every text file, in order of the paths.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Returns whether there is such a file or folder.
    pub(crate) fn holds(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }

    /// Returns the name and folder of every crate: `crates/NAME`, or `crates/GROUP/NAME`.
    pub(crate) fn crate_folders(&self) -> impl Iterator<Item = (&str, &str)> {
        self.paths.iter().filter(|path| self.is_crate(path)).map(|path| {
            let name = path.rsplit('/').next().expect("a path has a last part");
            (name, path.as_str())
        })
    }

    /// Returns the names of the crates.
    pub(crate) fn crates(&self) -> impl Iterator<Item = &str> {
        self.crate_folders().map(|(name, _)| name)
    }

    fn is_crate(&self, path: &str) -> bool {
        let depth = path.split('/').count();
        (2..=3).contains(&depth)
            && path.starts_with("crates/")
            && self.holds(&format!("{path}/Cargo.toml"))
    }

    /// Returns the crate that contains a path.
    pub(crate) fn crate_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]).skip(1).take(2);
        let folder = ends.map(|end| &path[..end]).find(|folder| self.is_crate(folder))?;
        folder.rsplit('/').next()
    }

    /// Returns our Rust files: path and text.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| path.ends_with(".rs"))
    }

    fn parsed(&self) -> &BTreeMap<String, Parsed> {
        let parse = |(path, text): (&str, &str)| (path.to_owned(), Source::parse(text));
        self.sources.get_or_init(|| self.rust().map(parse).collect())
    }

    /// Returns our Rust files that can be parsed: path and content.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.parsed()
            .iter()
            .filter_map(|(path, parsed)| Some((path.as_str(), parsed.as_ref().ok()?)))
    }

    pub(super) fn source(&self, path: &str) -> Option<&Source> {
        self.parsed().get(path)?.as_ref().ok()
    }

    /// Returns our Rust files that cannot be parsed: path, line and the parser's error.
    pub(super) fn unparsed(&self) -> impl Iterator<Item = (&str, usize, &str)> {
        self.parsed().iter().filter_map(|(path, parsed)| {
            let (line, said) = parsed.as_ref().err()?;
            Some((path.as_str(), *line, said.as_str()))
        })
    }

    /// Returns the files that are compiled for tests only.
    pub(super) fn tests(&self) -> &BTreeSet<String> {
        self.tests.get_or_init(|| source::test_files(self))
    }
}

fn is_text(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, extension)) => TEXT.contains(&extension),
        None => path.starts_with(".ci/") || name.starts_with("LICENSE"),
    }
}
