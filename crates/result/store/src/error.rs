//! Errors of a store, each with the fix.

use rusqlite::ErrorCode;
use std::fmt;
use std::path::{Path, PathBuf};

/// Reason why an operation on a store failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// No folder for the default store.
    NoHome,
    /// `--store none`.
    Off,
    /// The store to read does not exist.
    Missing(PathBuf),
    /// The folder of the named store does not exist: a typing error must not create folders.
    NoFolder(PathBuf),
    /// Neither empty nor a store of this program; not changed.
    Foreign(PathBuf),
    /// Written by a later version.
    Newer {
        path: PathBuf,
        version: i64,
        known: i64,
    },
    /// To be read, and of an earlier version: the next command that writes brings it up to date.
    Older {
        path: PathBuf,
        version: i64,
        known: i64,
    },
    /// Another program held the lock for longer than the wait.
    Locked(PathBuf),
    ReadOnly(PathBuf),
    Full(PathBuf),
    /// A store of this program whose contents cannot be trusted.
    Damaged {
        path: PathBuf,
        why: String,
    },
    /// A result whose stored data cannot be read; the store and its other results can.
    DamagedResult {
        path: PathBuf,
        /// Id of the result, or only its number if its kind is damaged too.
        result: String,
        why: String,
    },
    /// Any other refusal of the file system or SQLite.
    Refused {
        path: PathBuf,
        why: String,
    },
    /// There is no result of this name.
    Unknown {
        wanted: String,
        why: String,
    },
    /// Not a valid name for a tag.
    BadTag {
        tag: String,
        why: &'static str,
    },
    /// The result's program is still running.
    Running(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NoHome => f.write_str(
                "no folder for the results store: neither XDG_DATA_HOME nor HOME is set; name a file \
                 with --store FILE, or --store none",
            ),
            StoreError::Off => f.write_str("with --store none there is no results store"),
            StoreError::Missing(path) => {
                write!(f, "there is no results store {}: nothing was stored there yet", path.display())
            }
            StoreError::NoFolder(path) => {
                let folder = path.parent().unwrap_or(path).display();
                write!(
                    f,
                    "the results store {} cannot be created: there is no folder {folder}; create it \
                     first, or give another file with --store",
                    path.display()
                )
            }
            StoreError::Foreign(path) => write!(
                f,
                "{} is not a results store of loadstone; it is not changed: give another name with \
                 --store",
                path.display()
            ),
            StoreError::Newer { path, .. }
            | StoreError::Older { path, .. }
            | StoreError::Locked(path)
            | StoreError::ReadOnly(path)
            | StoreError::Full(path)
            | StoreError::Damaged { path, .. }
            | StoreError::Refused { path, .. } => {
                write!(f, "the results store {} {}", path.display(), self.trouble())
            }
            StoreError::DamagedResult { path, result, why } => write!(
                f,
                "result {result} in the results store {} is damaged ({why}): the other results are not \
                 affected; delete it here (`loadstone runs delete {result}`), then import it from a copy of the \
                 store, if there is one",
                path.display()
            ),
            StoreError::Unknown { wanted, why } => {
                write!(f, "{} is not a stored result: {why}", units::quoted(wanted))
            }
            StoreError::BadTag { tag, why } => {
                write!(f, "{} cannot be a tag: {why}", units::quoted(tag))
            }
            StoreError::Running(id) => {
                write!(f, "{id} is still running; wait until it ends, or stop it first")
            }
        }
    }
}

impl std::error::Error for StoreError {}

impl StoreError {
    /// Returns the error in a store of ours, and the fix.
    fn trouble(&self) -> String {
        match self {
            StoreError::Newer { version, known, .. } => format!(
                "was written by a later loadstone (schema {version}, this one knows {known}): use \
                 that version, or another file with --store"
            ),
            StoreError::Older { version, known, .. } => format!(
                "is of schema {version} and cannot be upgraded to {known} here: make it writable, \
                 or copy it"
            ),
            StoreError::Locked(_) => {
                "is locked by another program: wait until it is done, or give \
                 another file with --store"
                    .to_owned()
            }
            StoreError::ReadOnly(_) => "cannot be written: it, or its folder, is read-only; give \
                 another file with --store"
                .to_owned(),
            StoreError::Full(_) => "cannot grow: the disk is full; make room, or give a file on \
                 another disk with --store"
                .to_owned(),
            StoreError::Damaged { why, .. } => {
                format!("is damaged ({why}): the next run renames it and starts a new one")
            }
            StoreError::Refused { why, .. } => {
                format!("cannot be used: {why}; give another file with --store, or --store none")
            }
            other => other.to_string(),
        }
    }

    /// Returns SQLite's error about the store at `path`.
    pub(crate) fn new(path: &Path, error: &rusqlite::Error) -> StoreError {
        let path = path.to_owned();
        let why = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked(path),
            Some(ErrorCode::ReadOnly) => StoreError::ReadOnly(path),
            Some(ErrorCode::DiskFull) => StoreError::Full(path),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                StoreError::Damaged { path, why }
            }
            _ => StoreError::Refused { path, why },
        }
    }

    pub(crate) fn io(path: &Path, error: &std::io::Error) -> StoreError {
        let path = path.to_owned();
        match error.kind() {
            std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
                StoreError::ReadOnly(path)
            }
            std::io::ErrorKind::StorageFull => StoreError::Full(path),
            _ => StoreError::Refused { path, why: error.to_string() },
        }
    }
}
