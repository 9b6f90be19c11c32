//! The log of calls: a line per call, written during the run. It is written next to its final path
//! and renamed at the end, so that an incomplete log never looks complete. Pipes and devices
//! (`/dev/stdout`) are written to directly.

use crate::files::GrowingFile;
use anyhow::{Context, Result};
use sample::CallRecord;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use units::Nanos;

/// File of all repeats; removed if it is dropped before [`LogFile::keep`]. It stays open from the
/// first line to the last, so the reader of a pipe sees a single end of file.
#[derive(Debug)]
pub(crate) struct LogFile(GrowingFile);

/// Writer of one repeat.
#[derive(Debug)]
pub(crate) struct CallLog {
    path: PathBuf,
    out: BufWriter<File>,
    /// The log is a regular file, and can be synced to disk.
    to_disk: bool,
    /// Instant that the log's times count from.
    start: Nanos,
}

impl LogFile {
    /// Starts a log with its header.
    ///
    /// # Errors
    /// Fails if the file cannot be created or written.
    pub(crate) fn create(path: &Path) -> Result<LogFile> {
        let file = LogFile(GrowingFile::create(path)?);
        let mut log = file.open()?;
        let header = format!("{}\n", report::LOG_HEADER);
        let written = log.out.write_all(header.as_bytes()).and_then(|()| log.out.flush());
        log.with_path(written)?;
        Ok(file)
    }

    /// Continues at its end.
    ///
    /// # Errors
    /// Fails if the process has no descriptor left.
    pub(crate) fn open(&self) -> Result<CallLog> {
        let LogFile(growing) = self;
        let path = growing.path().to_owned();
        let out = growing.file().try_clone();
        let out = out.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(CallLog {
            path,
            out: BufWriter::new(out),
            to_disk: growing.is_file(),
            start: Nanos::ZERO,
        })
    }

    /// Renames the complete file to its final path.
    ///
    /// # Errors
    /// Fails if the file system refuses.
    pub(crate) fn keep(self) -> Result<()> {
        self.0.keep()
    }
}

impl CallLog {
    /// Returns the log of a repeat that starts at `start`.
    pub(crate) fn counting_from(self, start: Nanos) -> CallLog {
        CallLog { start, ..self }
    }

    /// # Errors
    /// Fails if the disk is full, or for another write error.
    pub(crate) fn write(&mut self, calls: &[CallRecord]) -> Result<()> {
        for call in calls {
            let line = report::log_line(&call.sample, call.outcome, self.start);
            let written = writeln!(self.out, "{line}");
            self.with_path(written)?;
        }
        Ok(())
    }

    /// Ends the log: all data is on disk.
    ///
    /// # Errors
    /// Fails like [`CallLog::write`].
    pub(crate) fn close(mut self) -> Result<()> {
        let flushed = self.out.flush();
        self.with_path(flushed)?;
        if !self.to_disk {
            return Ok(());
        }
        let synced = self.out.get_ref().sync_all();
        self.with_path(synced)
    }

    fn with_path(&self, done: std::io::Result<()>) -> Result<()> {
        done.with_context(|| format!("cannot write {}", self.path.display()))
    }
}
