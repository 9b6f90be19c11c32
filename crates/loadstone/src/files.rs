//! Results out. A half-written result never looks whole: it is written beside its
//! place and renamed over it once it is on disk.

use crate::args::Sink;
use anyhow::{Context, Result};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Checks before a run that a result can be written after it.
pub(crate) fn check_writable(path: &Path) -> Result<()> {
    anyhow::ensure!(!path.is_dir(), "cannot write {}: it is a folder", path.display());
    if is_stream(path) {
        return Ok(());
    }
    let probe = beside(path);
    std::fs::File::create(&probe).and_then(|_| std::fs::remove_file(&probe)).with_context(|| {
        format!(
            "cannot write {} (give a file in a folder that exists and that you may write to)",
            path.display()
        )
    })
}

/// A name in the same folder for what is not whole yet.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Writes the whole of `text`, or nothing.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<()> {
    if !is_stream(path) {
        host::state::store_atomic(path, text.as_bytes())?;
        return Ok(());
    }
    let file = std::fs::OpenOptions::new().write(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a result to where it was asked for.
pub(crate) fn write_to(sink: &Sink, text: &str) -> Result<()> {
    match sink {
        Sink::Stdout => write_stdout(text),
        Sink::File(path) => write_whole(path, text),
    }
}

/// Writes to standard output and says so when nobody takes it.
pub(crate) fn write_stdout(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}

/// A device or a pipe: there is nothing to rename over.
pub(crate) fn is_stream(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| !facts.is_file() && !facts.is_dir())
}
