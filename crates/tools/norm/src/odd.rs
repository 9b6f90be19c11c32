//! A directory of odd files that exists while the server runs: a listing must show them, and a
//! request for one must neither block nor fail the server.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// Odd files; removed when this is dropped.
#[derive(Debug)]
pub(crate) struct OddFiles(Vec<PathBuf>);

impl OddFiles {
    /// Creates `socket`, `fifo`, `vanished` (a symlink to nothing), `unreadable` and `plain.txt`.
    /// Existing files with one of these names are not changed.
    ///
    /// # Errors
    /// Fails if the directory cannot be written to.
    pub(crate) fn make(folder: &Path) -> io::Result<OddFiles> {
        let mut made = OddFiles(Vec::new());
        let node = |path: &Path, kind| Ok(mknodat(CWD, path, kind, Mode::from(0o600), 0)?);
        made.add(folder.join("socket"), |path| node(path, FileType::Socket))?;
        made.add(folder.join("fifo"), |path| node(path, FileType::Fifo))?;
        made.add(folder.join("vanished"), |path| symlink("it-is-gone", path))?;
        made.add(folder.join("unreadable"), |path| {
            std::fs::write(path, "Nobody reads this.\n")?;
            std::fs::set_permissions(path, Permissions::from_mode(0o000))
        })?;
        made.add(folder.join("plain.txt"), |path| std::fs::write(path, "An ordinary file.\n"))?;
        Ok(made)
    }

    fn add(&mut self, path: PathBuf, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
        if path.symlink_metadata().is_ok() {
            return Ok(());
        }
        make(&path)?;
        self.0.push(path);
        Ok(())
    }
}

impl Drop for OddFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            // gone already is as good
            std::fs::remove_file(path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileTypeExt;

    #[test]
    fn odd_files_are_made_and_removed_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let kind = |name: &str| folder.path().join(name).symlink_metadata().unwrap().file_type();
        std::fs::write(folder.path().join("plain.txt"), "mine").unwrap();
        let odd = OddFiles::make(folder.path()).unwrap();
        assert!(kind("socket").is_socket() && kind("fifo").is_fifo());
        assert!(kind("vanished").is_symlink() && kind("unreadable").is_file());
        drop(odd);
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(std::fs::read(folder.path().join("plain.txt")).unwrap(), b"mine");
    }
}
