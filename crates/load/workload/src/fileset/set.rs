//! A set of files.

use crate::fileset::FileContent;
use std::collections::HashMap;
use units::Seed;

/// File of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path relative to the root of the server, with `/` between its parts, without a leading
    /// slash.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
}

/// The files of a server, with distinct paths.
#[derive(Clone, Debug)]
pub struct FileSet {
    seed: Seed,
    files: Vec<File>,
    rows: HashMap<String, u32>,
}

impl FileSet {
    pub(crate) fn new(seed: Seed, files: Vec<File>) -> FileSet {
        let rows = files.iter().zip(0..).map(|(file, row)| (file.path.clone(), row)).collect();
        FileSet { seed, files, rows }
    }

    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Returns the total size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Finds the file of a path without a leading slash.
    pub fn find(&self, path: &str) -> Option<&File> {
        self.rows.get(path).map(|row| &self.files[*row as usize])
    }

    pub fn content(&self, file: &File) -> FileContent {
        FileContent::new(self.seed, &file.path)
    }
}
