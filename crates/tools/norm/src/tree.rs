//! The tree of the norm site: written by `loadstone site --init`, and served by a site without a
//! folder.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::breaks::{Break, Breaks};

/// The name of the configuration in a tree.
pub const CONFIGURATION: &str = "site.toml";

/// A file of the tree: path, content, permissions.
type TreeFile = (&'static str, &'static [u8], u32);

macro_rules! plain {
    ($path:literal) => {
        ($path, include_bytes!(concat!("../tree/", $path)) as &[u8], 0o644)
    };
}

macro_rules! program {
    ($path:literal) => {
        ($path, include_bytes!(concat!("../tree/", $path)) as &[u8], 0o755)
    };
}

const FILES: &[TreeFile] = &[
    plain!("site.toml"),
    plain!("conf/admin.pwd"),
    plain!("conf/admin.grp"),
    program!("cgi-bin/form-handler"),
    program!("cgi-bin/line-counter"),
    program!("cgi-bin/printenv"),
    program!("cgi-bin/test-post"),
    plain!("htdocs/index.html"),
    plain!("htdocs/testform.html"),
    plain!("htdocs/secure/.site.toml"),
    plain!("htdocs/secure/index.html"),
    plain!("htdocs/sub/README"),
    plain!("htdocs/sub/page.html"),
    plain!("htdocs/sub/dawn.png"),
    plain!("htdocs/sub/noon.png"),
    plain!("htdocs/sub/dusk.png"),
    plain!("htdocs/sub/night.png"),
    plain!("htdocs/sub/tile.png"),
    plain!("htdocs/sub/stone.svg"),
    plain!("kit/icons/archive.svg"),
    plain!("kit/icons/folder.svg"),
    plain!("kit/icons/image.svg"),
    plain!("kit/icons/parent.svg"),
    plain!("kit/icons/text.svg"),
    plain!("kit/icons/unknown.svg"),
    plain!("scripts/form.lua"),
];

/// Folders that hold no file of the tree.
const EMPTY_FOLDERS: &[&str] = &["htdocs/sub/empty", "odd", "tmp", "var"];

/// The welcome page.
pub(crate) const WELCOME: &str = include_str!("../tree/htdocs/index.html");

/// Returns the welcome page as a switch spoils it.
pub(crate) fn spoiled_welcome(breaks: &Breaks) -> String {
    let mut page = WELCOME.to_owned();
    if breaks.has(Break::Welcome) {
        page = page.replace("Welcome to", "This is");
    }
    if breaks.has(Break::Menu) {
        let lines = page.lines().filter(|line| !line.starts_with("<li>"));
        page = lines.map(|line| format!("{line}\n")).collect();
    }
    page
}

/// Reason why a tree could not be written.
#[derive(Debug)]
pub enum TreeError {
    /// A file with a name of the tree already exists; nothing was written.
    Exists(PathBuf),
    Write {
        path: PathBuf,
        reason: io::Error,
    },
}

impl std::fmt::Display for TreeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TreeError::Exists(path) => write!(
                f,
                "{} is there already and is not overwritten: name a new or empty folder",
                path.display()
            ),
            TreeError::Write { path, reason } => {
                write!(f, "cannot write {}: {reason}", path.display())
            }
        }
    }
}

impl std::error::Error for TreeError {}

/// Writes the tree into a folder, which is created if it does not exist. Returns the written paths,
/// folders with a final `/`.
///
/// # Errors
/// Fails if a file of the tree already exists, or a file or folder cannot be created.
pub fn write(folder: &Path) -> Result<Vec<PathBuf>, TreeError> {
    let paths = FILES.iter().map(|(path, ..)| folder.join(path));
    if let Some(there) = paths.into_iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(TreeError::Exists(there));
    }
    let mut written = Vec::new();
    for (path, bytes, mode) in FILES {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        make_folder(parent)?;
        write_file(&path, bytes, *mode)
            .map_err(|reason| TreeError::Write { path: path.clone(), reason })?;
        written.push(path);
    }
    for path in EMPTY_FOLDERS {
        make_folder(&folder.join(path))?;
        written.push(folder.join(format!("{path}/")));
    }
    Ok(written)
}

fn make_folder(path: &Path) -> Result<(), TreeError> {
    std::fs::create_dir_all(path)
        .map_err(|reason| TreeError::Write { path: path.to_owned(), reason })
}

fn write_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    File::options().write(true).create_new(true).mode(mode).open(path)?.write_all(bytes)
}

/// A tree in a temporary folder, removed on drop.
#[derive(Debug)]
pub struct TemporaryTree(tempfile::TempDir);

impl TemporaryTree {
    /// # Errors
    /// Fails if the folder or a file in it cannot be created.
    pub fn new() -> Result<TemporaryTree, TreeError> {
        let failed = |reason| TreeError::Write { path: std::env::temp_dir(), reason };
        let folder =
            tempfile::Builder::new().prefix("loadstone-norm-").tempdir().map_err(failed)?;
        write(folder.path())?;
        Ok(TemporaryTree(folder))
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{NodeKind, NodeSettings, NormSettings};
    use std::collections::BTreeSet;

    #[test]
    fn a_written_tree_can_be_served_and_is_not_overwritten() {
        let tree = TemporaryTree::new().unwrap();
        let settings = NormSettings::read(&tree.folder().join(CONFIGURATION)).unwrap();
        let directories = settings.nodes.iter().filter(
            |node| matches!(&node.kind, NodeKind::Directory(directory) if directory.root.is_dir()),
        );
        assert_eq!(directories.count(), 4);
        for node in &settings.nodes {
            if let NodeKind::Cgi(program) = &node.kind {
                assert!(program.is_file(), "{}", program.display());
            }
        }
        let error = write(tree.folder()).unwrap_err().to_string();
        assert!(error.contains("site.toml is there already and is not overwritten"), "{error}");
    }

    #[test]
    fn every_file_of_the_source_tree_is_in_the_list() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tree");
        let mut folders = vec![source.clone()];
        let mut found = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.insert(path.strip_prefix(&source).unwrap().to_owned());
                }
            }
        }
        let listed = FILES.iter().map(|(path, ..)| PathBuf::from(path)).collect();
        assert_eq!(found, listed);
    }

    #[test]
    fn the_menu_links_to_existing_pages() {
        let settings = TemporaryTree::new().unwrap();
        let settings = NormSettings::read(&settings.folder().join(CONFIGURATION)).unwrap();
        let form = include_str!("../tree/htdocs/testform.html");
        for NodeSettings { path, .. } in &settings.nodes {
            let linked = WELCOME.contains(&format!("href=\"{path}"));
            assert!(linked || form.contains(&format!("action=\"{path}")), "{path}");
        }
        assert!(WELCOME.contains("<h1>Welcome to "));
    }
}
