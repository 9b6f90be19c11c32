//! Files that outlive a run, such as the result of `calibrate`: their location, and how they are
//! read and replaced so that a half-written file is never visible.

use crate::invocation::variable;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the user's state directory for this program: `$XDG_STATE_HOME/loadstone`, or
/// `~/.local/state/loadstone`; `None` without a home. It may not exist yet.
pub fn state_dir() -> Option<PathBuf> {
    dir_of(variable("XDG_STATE_HOME"), variable("HOME"))
}

fn dir_of(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    // a relative path must be ignored (XDG Base Directory Specification, "Basics")
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|p| p.is_absolute());
    absolute(state)
        .or_else(|| absolute(home).map(|home| home.join(".local/state")))
        .map(|base| base.join("loadstone"))
}

/// A file that could not be read or written.
#[derive(Debug)]
pub struct StateError {
    pub path: PathBuf,
    what: &'static str,
    why: String,
}

impl StateError {
    fn new(path: &Path, what: &'static str, why: impl fmt::Display) -> StateError {
        StateError { path: path.to_owned(), what, why: why.to_string() }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.what, self.path.display(), self.why)
    }
}

impl std::error::Error for StateError {}

/// The largest file that [`load_json`] reads, in bytes.
pub const LOAD_MAX: u64 = 16 << 20;

/// Reads a JSON file; `None` if it does not exist.
///
/// # Errors
/// Fails if a file cannot be read, is larger than [`LOAD_MAX`], or does not contain a `T`.
pub fn load_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StateError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StateError::new(path, "open", error)),
    };
    let mut text = Vec::new();
    file.take(LOAD_MAX + 1)
        .read_to_end(&mut text)
        .map_err(|error| StateError::new(path, "read", error))?;
    if text.len() as u64 > LOAD_MAX {
        return Err(StateError::new(path, "read", format!("it is larger than {LOAD_MAX} bytes")));
    }
    let value = serde_json::from_slice(&text).map_err(|error| {
        StateError::new(path, "understand", format!("{error}; delete it to start over"))
    })?;
    Ok(Some(value))
}

/// Replaces a file atomically: written next to it, flushed to disk, then renamed over it. Creates
/// the folder if missing. After an error or a crash the old file remains.
///
/// # Errors
/// Fails if the file system refuses.
pub fn store_atomic(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder).map_err(|error| StateError::new(folder, "make", error))?;
    let beside =
        sibling_path(path).ok_or_else(|| StateError::new(path, "write", "it names no file"))?;
    let written = write_whole(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if let Err(error) = written {
        // nothing more can be done about it
        fs::remove_file(&beside).ok();
        return Err(StateError::new(path, "write", error));
    }
    // the rename is on disk when its folder is; some file systems cannot do this for a folder
    File::open(folder).and_then(|folder| folder.sync_all()).ok();
    Ok(())
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Returns a unique name in the same folder, because only there a rename is atomic.
fn sibling_path(path: &Path) -> Option<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(path.file_name()?);
    name.push(format!(".{}.{count}.tmp", std::process::id()));
    Some(path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folder_follows_the_environment() {
        let os = |text: &str| Some(OsString::from(text));
        for (state, home, expected) in [
            (os("/var/s"), os("/home/u"), Some("/var/s/loadstone")),
            (None, os("/home/u"), Some("/home/u/.local/state/loadstone")),
            (os(""), os("/home/u"), Some("/home/u/.local/state/loadstone")),
            (os("relative"), os("/home/u"), Some("/home/u/.local/state/loadstone")),
            (None, os(""), None),
            (None, None, None),
        ] {
            assert_eq!(dir_of(state, home), expected.map(PathBuf::from));
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn stored_state_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/file.json");
        assert_eq!(load_json::<Vec<u32>>(&path).unwrap(), None);
        for content in [&b"[1, 2]"[..], b"[3]"] {
            store_atomic(&path, content).unwrap();
        }
        assert_eq!(load_json::<Vec<u32>>(&path).unwrap(), Some(vec![3]));
        assert_eq!(names(path.parent().unwrap()), ["file.json"], "nothing is left beside it");
    }

    #[test]
    fn a_damaged_file_is_reported_with_the_fix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.json");
        for damaged in ["", "[1", "{}", "\u{0}"] {
            fs::write(&path, damaged).unwrap();
            let error = load_json::<Vec<u32>>(&path).unwrap_err().to_string();
            assert!(error.contains("file.json") && error.contains("delete it"), "{error}");
        }
        let large = File::create(&path).unwrap();
        large.set_len(LOAD_MAX + 1).unwrap();
        let error = load_json::<Vec<u32>>(&path).unwrap_err().to_string();
        assert!(error.contains("larger than"), "{error}");
    }

    #[test]
    fn a_failed_write_leaves_the_old_and_no_rest() {
        let folder = tempfile::tempdir().unwrap();
        // a folder that is not empty cannot be renamed over
        let path = folder.path().join("taken");
        fs::create_dir_all(path.join("by a folder")).unwrap();
        let error = store_atomic(&path, b"new").unwrap_err().to_string();
        assert!(error.contains("cannot write") && error.contains("taken"), "{error}");
        assert_eq!(names(folder.path()), ["taken"]);
        let below_a_file = folder.path().join("file/x");
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(store_atomic(&below_a_file, b"").unwrap_err().to_string().contains("cannot make"));
        assert!(store_atomic(Path::new("/"), b"").is_err());
    }
}
