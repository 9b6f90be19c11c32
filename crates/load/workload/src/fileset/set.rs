//! A set of files.

use crate::fileset::FileContent;
use std::collections::HashMap;
use units::Seed;

/// One file of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Relative to the root of the server, parts apart by `/`, without a slash in front.
    pub path: String,
    /// In bytes.
    pub size: u64,
}

/// The files of a server. Paths differ.
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

    /// Of all files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// The file of a path without a slash in front.
    pub fn find(&self, path: &str) -> Option<&File> {
        self.rows.get(path).map(|row| &self.files[*row as usize])
    }

    pub fn content(&self, file: &File) -> FileContent {
        FileContent::new(self.seed, &file.path)
    }
}
