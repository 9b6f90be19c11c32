//! Request bodies: in memory up to a limit, beyond it in a file of the tmp directory that is
//! removed with the request, or at the next start after a crash.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};

use crate::exchange::Spooled;

/// Our files are called so, followed by the process and a number.
const PREFIX: &str = "loadstone-spool-";
/// Size of a write.
const BATCH: usize = 256 * 1024;

/// Creates temporary files.
#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    next: AtomicU64,
}

/// A file that is being filled.
#[derive(Debug)]
pub(crate) struct Filling {
    file: Arc<File>,
    spooled: Spooled,
    batch: Vec<u8>,
}

impl Spool {
    pub(crate) fn new(folder: PathBuf) -> Spool {
        Spool { folder, next: AtomicU64::new(0) }
    }

    /// Removes files that a crashed server has left in the folder: files with our name that no
    /// running server has locked. Returns their number.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub(crate) fn clean(&self) -> io::Result<usize> {
        let mut removed = 0;
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let ours = entry.file_name().to_str().is_some_and(is_ours);
            if ours && entry.file_type()?.is_file() && is_abandoned(&entry.path()) {
                std::fs::remove_file(entry.path())?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Returns a new file, locked for its lifetime.
    ///
    /// # Errors
    /// Fails if it cannot be created or locked.
    pub(crate) fn allocate(&self) -> io::Result<Filling> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{PREFIX}{}-{number}", std::process::id()));
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let file = Arc::new(file);
        let spooled = Spooled::new(path, Arc::clone(&file));
        Ok(Filling { file, spooled, batch: Vec::new() })
    }
}

fn is_ours(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(process, count)| number(process) && number(count))
}

/// Returns whether the lock of a file is free. False for a file that cannot be opened.
fn is_abandoned(path: &Path) -> bool {
    File::options()
        .write(true)
        .open(path)
        .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

impl Filling {
    pub(crate) fn path(&self) -> &Path {
        &self.spooled.path
    }

    /// Adds to the file, off this thread.
    ///
    /// # Errors
    /// Fails if the file cannot be written: the disk is full.
    pub(crate) async fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.batch.extend_from_slice(bytes);
        if self.batch.len() >= BATCH { self.write_batch().await } else { Ok(()) }
    }

    /// Keeps the file.
    pub(crate) fn keep_file(&mut self) {
        self.spooled.keep_file();
    }

    async fn write_batch(&mut self) -> io::Result<()> {
        let batch = std::mem::take(&mut self.batch);
        let file = Arc::clone(&self.file);
        self.spooled.len += batch.len() as u64;
        let written = tokio::task::spawn_blocking(move || (&mut &*file).write_all(&batch)).await;
        written.map_err(io::Error::other)?
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(crate) async fn finish(mut self) -> io::Result<Spooled> {
        self.write_batch().await?;
        Ok(self.spooled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_unlocked_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path().to_owned());
        let living = spool.allocate().unwrap();
        let others = ["loadstone-spool-", "loadstone-spool-1", "loadstone-spool-1-x", "notes.txt"];
        let left = ["loadstone-spool-1-2", "loadstone-spool-4711-0"];
        for name in others.iter().chain(&left) {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        std::fs::create_dir(folder.path().join("loadstone-spool-3-3")).unwrap();
        assert_eq!(spool.clean().unwrap(), 2);
        assert!(living.path().exists());
        assert!(others.iter().all(|name| folder.path().join(name).exists()));
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
