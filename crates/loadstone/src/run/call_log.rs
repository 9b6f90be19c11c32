//! The log of calls: a line per call, written while the run goes on. It grows beside its place and
//! is renamed over it at the end, so that half a log never looks whole.

use anyhow::{Context, Result};
use sample::CallRecord;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use units::Nanos;

/// The file of all repeats; removed when dropped before [`LogFile::keep`].
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    /// Where it grows; `None` for a device or a pipe, over which nothing can be renamed.
    beside: Option<PathBuf>,
}

/// What one repeat writes to.
#[derive(Debug)]
pub(crate) struct CallLog {
    path: PathBuf,
    out: BufWriter<File>,
    /// The instant that the log's times count from.
    start: Nanos,
}

impl LogFile {
    /// Starts a log with its header.
    ///
    /// # Errors
    /// The file cannot be made or written.
    pub(crate) fn create(path: &Path) -> Result<LogFile> {
        let beside = (!crate::files::is_stream(path)).then(|| crate::files::beside(path));
        let file = LogFile { path: path.to_owned(), beside };
        let mut log = file.open()?;
        let header = format!("{}\n", report::LOG_HEADER);
        let written = log.out.write_all(header.as_bytes()).and_then(|()| log.out.flush());
        log.told(written)?;
        Ok(file)
    }

    /// To go on at its end.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn open(&self) -> Result<CallLog> {
        let target = self.beside.as_ref().unwrap_or(&self.path);
        let out = OpenOptions::new().create(self.beside.is_some()).append(true).open(target);
        let out = out.with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(CallLog { path: self.path.clone(), out: BufWriter::new(out), start: Nanos::ZERO })
    }

    /// It is whole: it takes its place.
    ///
    /// # Errors
    /// The file system refuses.
    pub(crate) fn keep(mut self) -> Result<()> {
        let Some(beside) = self.beside.take() else { return Ok(()) };
        std::fs::rename(&beside, &self.path)
            .inspect_err(|_| {
                std::fs::remove_file(&beside).ok();
            })
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            std::fs::remove_file(beside).ok();
        }
    }
}

impl CallLog {
    /// The log of a repeat that starts at `start`.
    pub(crate) fn counting_from(self, start: Nanos) -> CallLog {
        CallLog { start, ..self }
    }

    /// # Errors
    /// The disk is full, or the like.
    pub(crate) fn write(&mut self, calls: &[CallRecord]) -> Result<()> {
        for call in calls {
            let line = report::log_line(&call.sample, call.outcome, self.start);
            let written = writeln!(self.out, "{line}");
            self.told(written)?;
        }
        Ok(())
    }

    /// Everything is on disk.
    ///
    /// # Errors
    /// As [`CallLog::write`].
    pub(crate) fn close(mut self) -> Result<()> {
        let flushed = self.out.flush();
        self.told(flushed)?;
        if crate::files::is_stream(&self.path) {
            return Ok(());
        }
        let synced = self.out.get_ref().sync_all();
        self.told(synced)
    }

    fn told(&self, done: std::io::Result<()>) -> Result<()> {
        done.with_context(|| format!("cannot write {}", self.path.display()))
    }
}
