//! Resolves the path of a request to a file below a root, never to anything outside it.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::names::{configures, names};

/// An existing path and, if it is a file, its open file.
#[derive(Debug)]
pub(crate) enum FoundPath {
    File(Opened),
    Folder(Folder),
}

#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) facts: Metadata,
    /// The real path, from the root; symbolic links are resolved.
    pub(crate) below: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Folder {
    /// The real path, absolute and from the root.
    pub(crate) real: PathBuf,
    pub(crate) below: PathBuf,
}

/// Reason why a path has no file.
#[derive(Debug)]
pub(crate) enum Missed {
    /// Missing, neither a file nor a directory, or a link out of the root. These must be
    /// indistinguishable: a different response would reveal what exists elsewhere.
    Missing,
    /// A socket, a pipe, a device: missing for clients, distinguished for the index and the faults.
    Odd,
    /// No permission to read it.
    Forbidden,
    /// Out of descriptors or memory.
    Overloaded,
    Failed(io::Error),
}

impl From<io::Error> for Missed {
    fn from(error: io::Error) -> Missed {
        match Errno::from_io_error(&error) {
            Some(
                Errno::NOENT
                | Errno::NOTDIR
                | Errno::LOOP
                | Errno::NAMETOOLONG
                | Errno::XDEV
                | Errno::INVAL,
            ) => Missed::Missing,
            Some(Errno::NXIO | Errno::NODEV) => Missed::Odd,
            Some(Errno::ACCESS | Errno::PERM) => Missed::Forbidden,
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN) => Missed::Overloaded,
            _ => Missed::Failed(error),
        }
    }
}

impl From<Errno> for Missed {
    fn from(error: Errno) -> Missed {
        Missed::from(io::Error::from(error))
    }
}

/// Targets of links that are followed; links out of the root only to demonstrate the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    Inside,
    Anywhere,
}

/// Resolves a decoded path below `root`. Never blocks on a pipe, a socket or a device: those are
/// examined, not opened.
///
/// # Errors
/// Fails with [`Missed`].
pub(crate) fn find(root: &Path, path: &str, links: Links) -> Result<FoundPath, Missed> {
    let names = names(path).ok_or(Missed::Missing)?;
    let root = root.canonicalize()?;
    let wanted = names.iter().fold(root.clone(), |place, name| place.join(name));
    let real = wanted.canonicalize()?;
    let below = match real.strip_prefix(&root) {
        Ok(below) => below.to_owned(),
        Err(_) if links == Links::Anywhere => return open_anywhere(real, names.join("/")),
        Err(_) => return Err(Missed::Missing),
    };
    if below.iter().any(|name| configures(name.as_encoded_bytes())) {
        return Err(Missed::Missing);
    }
    let facts = real.symlink_metadata()?;
    if facts.is_dir() {
        return Ok(FoundPath::Folder(Folder { real, below }));
    }
    // a path with a slash at its end names a directory (RFC 3986 leaves it to us)
    if path.ends_with('/') {
        return Err(Missed::Missing);
    }
    if !facts.is_file() {
        return Err(Missed::Odd);
    }
    opened(File::from(open_below(&root, &below, OFlags::empty())?), below)
}

/// Checks the kind of the open file: it may have changed since the first check, but an open file
/// keeps its kind.
fn opened(file: File, below: PathBuf) -> Result<FoundPath, Missed> {
    let facts = file.metadata()?;
    match facts.is_file() {
        true => Ok(FoundPath::File(Opened { file, facts, below })),
        false => Err(Missed::Odd),
    }
}

/// Opens a resolved path. The kernel refuses every link on the way, so a directory that is replaced
/// by a link meanwhile is not followed.
pub(super) fn open_below(root: &Path, below: &Path, more: OFlags) -> Result<OwnedFd, Missed> {
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(root, folder, Mode::empty())?;
    let here = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | more;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(root, here, flags, Mode::empty(), resolve)?)
}

fn open_anywhere(real: PathBuf, below: String) -> Result<FoundPath, Missed> {
    let facts = real.metadata()?;
    let below = PathBuf::from(below);
    if facts.is_dir() {
        return Ok(FoundPath::Folder(Folder { real, below }));
    }
    if !facts.is_file() {
        return Err(Missed::Odd);
    }
    opened(File::open(real)?, below)
}

#[cfg(test)]
mod tests;
