//! Output files. A result is written next to its destination and renamed over it once it is on
//! disk, so a partial result never looks complete. Devices and pipes cannot be replaced and are
//! written to directly.

use crate::exit::Failure;
use anyhow::{Context, Result};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// A file, or standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    Stdout,
    File(PathBuf),
}

impl Sink {
    /// Returns the path, if it is a regular file.
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            Sink::File(path) => Some(path),
            Sink::Stdout => None,
        }
    }
}

/// Resolved output path. A symbolic link stays, and its target receives the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Regular file that exists or can be created.
    File(PathBuf),
    /// A device, a pipe, or an already open descriptor (`/dev/stdout`).
    Stream(PathBuf),
}

/// Maximum number of links followed, as in the kernel (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// # Errors
/// Fails for links that form a loop.
pub fn place(path: &Path) -> Result<Place> {
    let mut at = path.to_owned();
    for _ in 0..=LINKS_MAX {
        if descriptor(&at).is_some() {
            return Ok(Place::Stream(at));
        }
        match std::fs::read_link(&at) {
            Ok(target) => at = at.with_file_name("").join(target),
            Err(_) if is_stream(&at) => return Ok(Place::Stream(at)),
            Err(_) => return Ok(Place::File(at)),
        }
    }
    anyhow::bail!("cannot write {}: its links form a loop", path.display())
}

/// Returns the name of an open descriptor of this process, if the path is in /proc.
fn descriptor(path: &Path) -> Option<&str> {
    let folder = path.parent()?.canonicalize().ok()?;
    let ours = Path::new("/proc/self/fd").canonicalize().ok()?;
    if folder == ours { path.file_name()?.to_str() } else { None }
}

/// Returns whether the path is a device or a pipe.
fn is_stream(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| !facts.is_file() && !facts.is_dir())
}

/// Opens a stream for appending. Opening a pipe blocks until it has a reader.
pub fn open_stream(path: &Path) -> std::io::Result<File> {
    match descriptor(path) {
        // duplicate the descriptors: a reopened file has a separate position, and the two would
        // overwrite each other
        Some("1") => std::io::stdout().as_fd().try_clone_to_owned().map(File::from),
        Some("2") => std::io::stderr().as_fd().try_clone_to_owned().map(File::from),
        _ => OpenOptions::new().append(true).open(path),
    }
}

/// Checks before a run that its result can be written.
pub fn check_writable(path: &Path) -> Result<()> {
    // a name that ends with a slash is a folder, whether it exists or not
    let folder = path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
    anyhow::ensure!(!folder, "cannot write {}: it is a folder", path.display());
    let place = match place(path)? {
        Place::Stream(_) => return Ok(()),
        Place::File(place) => place,
    };
    let probe = temporary_path(&place);
    File::create(&probe).and_then(|_| std::fs::remove_file(&probe)).with_context(|| {
        format!("cannot write {} (choose a file in an existing, writable folder)", path.display())
    })
}

/// Checks, before anything is sent, that JSON and the other results can be written.
pub fn check_results<'a>(
    json: Option<&'a Sink>,
    others: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), Failure> {
    for path in json.and_then(Sink::file).into_iter().chain(others) {
        check_writable(path).map_err(|error| Failure::not_written(&error))?;
    }
    Ok(())
}

/// Writes JSON, the other files, and the text, unless JSON uses standard output. Attempts all of
/// them; returns the first failure.
pub fn write_results<'a>(
    json: Option<(&Sink, String)>,
    others: impl IntoIterator<Item = (&'a PathBuf, String)>,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    let mut done = Ok(());
    let alone = matches!(json, Some((Sink::Stdout, _)));
    if let Some((sink, json)) = json {
        done = write_to(sink, &json);
    }
    for (path, content) in others {
        done = done.and(write_whole(path, &content));
    }
    if !alone {
        done = done.and(write_stdout(&text()));
    }
    done.map_err(|error| Failure::not_written(&error))
}

/// Output that is written in pieces, next to its destination, and renamed when complete. If it is
/// dropped before, the file is removed. A device or a pipe is written to directly.
#[derive(Debug)]
pub struct GrowingFile {
    /// Path as the user named it.
    path: PathBuf,
    file: File,
    growth: Option<Growth>,
}

/// Temporary path, and final path.
#[derive(Clone, Debug)]
struct Growth {
    beside: PathBuf,
    place: PathBuf,
}

impl GrowingFile {
    /// Creates an empty file. For a pipe, blocks until it has a reader.
    ///
    /// # Errors
    /// Fails if it cannot be created.
    pub fn create(path: &Path) -> Result<GrowingFile> {
        let (opened, growth) = match place(path)? {
            Place::Stream(stream) => (open_stream(&stream), None),
            Place::File(place) => {
                let beside = temporary_path(&place);
                // leftovers of a process with the same number do not count
                let opened = File::create(&beside)
                    .and_then(|_| OpenOptions::new().append(true).open(&beside));
                (opened, Some(Growth { beside, place }))
            }
        };
        let file = opened.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(GrowingFile { path: path.to_owned(), file, growth })
    }

    /// Returns the path as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file, positioned at its end.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns whether the output can be synced to disk: false for devices and pipes.
    pub fn is_file(&self) -> bool {
        self.growth.is_some()
    }

    /// Renames the complete file to its final path.
    ///
    /// # Errors
    /// Fails if the file system refuses.
    pub fn keep(mut self) -> Result<()> {
        let Some(Growth { beside, place }) = self.growth.take() else { return Ok(()) };
        self.file
            .sync_all()
            .and_then(|()| std::fs::rename(&beside, &place))
            .inspect_err(|_| {
                std::fs::remove_file(&beside).ok();
            })
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Drop for GrowingFile {
    fn drop(&mut self) {
        if let Some(Growth { beside, .. }) = &self.growth {
            std::fs::remove_file(beside).ok();
        }
    }
}

/// Returns a name in the same folder for an incomplete file.
pub fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Writes all of `text`, or nothing; appends to devices and pipes.
pub fn write_whole(path: &Path, text: &str) -> Result<()> {
    match place(path)? {
        Place::File(place) => host::state::store_atomic(&place, text.as_bytes())?,
        Place::Stream(stream) => open_stream(&stream)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))?,
    }
    Ok(())
}

/// Appends text to a file, which is created if it is missing.
pub fn append(path: &Path, text: &str) -> Result<()> {
    let opened = File::options().create(true).append(true).open(path);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a result to its destination.
pub fn write_to(sink: &Sink, text: &str) -> Result<()> {
    match sink {
        Sink::Stdout => write_stdout(text),
        Sink::File(path) => write_whole(path, text),
    }
}

/// Writes to standard output and reports if that fails.
pub fn write_stdout(text: &str) -> Result<()> {
    write_stdout_bytes(text.as_bytes())
}

/// Writes bytes to standard output, all or nothing.
pub fn write_stdout_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = crate::console::stdout();
    out.write_all(bytes).and_then(|()| out.flush()).context("cannot write to standard output")
}
