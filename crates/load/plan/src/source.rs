//! Access to the contents of files without opening any.

/// Provides the contents of files that options and plans name. The binary reads disks and standard
/// input; tests provide texts.
pub trait FileSource {
    /// Reads the whole file; `-` is standard input.
    ///
    /// # Errors
    /// Fails with one sentence that names the file and the problem.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;

    /// Returns the value of an environment variable.
    ///
    /// # Errors
    /// Fails with one sentence that names the variable and the problem.
    fn variable(&self, name: &str) -> Result<String, String> {
        Err(format!("the environment variable {} cannot be read here", units::quoted(name)))
    }
}

/// A source without files, for texts that must not name a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl FileSource for NoFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        Err(format!("{} cannot be read: files are not available here", units::quoted(path)))
    }
}
