//! Opens a store in any state of its file. No file is ever destroyed: an unusable store is kept
//! under another name, and other files are not changed.

use crate::schema::{self, APPLICATION_ID, STEPS};
use crate::{StoreError, StorePlace};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout while another program writes.
const BUSY: Duration = Duration::from_secs(5);
/// Stores up to this size are checked page by page when they are opened to be written.
const CHECK_BYTES_MAX: u64 = 32 << 20;
/// Names that are tried for a copy.
const COPIES_MAX: u32 = 10_000;

/// Open results store.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    /// Notes for the user about opening: a damaged store that was renamed, an older one that was
    /// migrated.
    pub notes: Vec<String>,
}

impl Store {
    /// Opens the store for writing; creates it if missing, and the default store's folder.
    ///
    /// # Errors
    /// Fails with a [`StoreError`]. A damaged store is not an error: it is renamed, a new one is
    /// created, and [`Store::notes`] reports it.
    pub fn open(place: &StorePlace) -> Result<Store, StoreError> {
        Store::open_with(place, STEPS)
    }

    fn open_with(place: &StorePlace, steps: &[&str]) -> Result<Store, StoreError> {
        let path = match place.file()? {
            Some(path) => path,
            None if *place == StorePlace::Memory => return Store::in_memory(),
            None => return Err(StoreError::Off),
        };
        make_folder(&path, place)?;
        make_file(&path)?;
        let mut store = Store::connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        match store.prepare(steps) {
            Err(StoreError::Damaged { .. }) if is_ours(&path, place) => {
                drop(store);
                replace_damaged(&path, steps)
            }
            // not written by this program, so it must not be renamed
            Err(StoreError::Damaged { path, .. }) => Err(StoreError::Foreign(path)),
            prepared => prepared.map(|()| store),
        }
    }

    /// Opens an existing store for reading; migrates a store of an earlier version.
    ///
    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn open_to_read(place: &StorePlace) -> Result<Store, StoreError> {
        let path = match place.file()? {
            Some(path) => path,
            None if *place == StorePlace::Memory => return Store::in_memory(),
            None => return Err(StoreError::Off),
        };
        match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(StoreError::Missing(path));
            }
            Ok(known) if known.len() == 0 => return Err(StoreError::Missing(path)),
            Ok(known) if !known.is_file() => return Err(StoreError::Foreign(path)),
            Ok(_) => {}
            Err(error) => return Err(StoreError::io(&path, &error)),
        }
        let store = Store::connect_to_read(&path)?;
        match store.recognise(STEPS) {
            Ok(()) => Ok(store),
            Err(StoreError::Older { .. }) => Store::open(place),
            Err(StoreError::Damaged { path, .. }) if !is_ours(&path, place) => {
                Err(StoreError::Foreign(path))
            }
            Err(error) => Err(error),
        }
    }

    fn in_memory() -> Result<Store, StoreError> {
        let path = PathBuf::from(":memory:");
        let connection = Connection::open_in_memory();
        let connection = connection.map_err(|error| StoreError::new(&path, &error))?;
        let mut store = Store { connection, path, notes: Vec::new() };
        store.prepare(STEPS)?;
        Ok(store)
    }

    pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Store, StoreError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags);
        let store = opened.and_then(|connection| {
            connection.busy_timeout(BUSY)?;
            // a file from elsewhere may not make our statements run its functions
            connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON")?;
            Ok(Store { connection, path: path.to_owned(), notes: Vec::new() })
        });
        store.map_err(|error| StoreError::new(path, &error))
    }

    /// Opens read-only, even in a folder where no file may be created.
    fn connect_to_read(path: &Path) -> Result<Store, StoreError> {
        let readable = |store: &Store| schema::identity(&store.connection).map(|_| ());
        let store = Store::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let refused = match readable(&store) {
            Ok(()) => return Ok(store),
            Err(error) => error,
        };
        let barred = [ErrorCode::CannotOpen, ErrorCode::ReadOnly, ErrorCode::PermissionDenied];
        if !refused.sqlite_error_code().is_some_and(|code| barred.contains(&code)) {
            return Ok(store);
        }
        // If the WAL file cannot be opened, SQLite reads the rest only if it is configured that
        // there is no writer: a folder without write permission cannot have a writer.
        let mut uri = url_path(path);
        uri.push_str("?immutable=1");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        let connection = connection.map_err(|error| StoreError::new(path, &error))?;
        Ok(Store { connection, path: path.to_owned(), notes: Vec::new() })
    }

    /// Checks that this is a store of ours, and of this version.
    pub(crate) fn recognise(&self, steps: &[&str]) -> Result<(), StoreError> {
        let path = self.path.clone();
        let (version, id, tables) = self.explain_error(schema::identity(&self.connection))?;
        let known = schema::latest(steps);
        if id != APPLICATION_ID {
            return Err(match tables || id != 0 || version != 0 {
                true => StoreError::Foreign(path),
                false => StoreError::Older { path, version: 0, known },
            });
        }
        match version {
            _ if version > known => Err(StoreError::Newer { path, version, known }),
            _ if version < known => Err(StoreError::Older { path, version, known }),
            _ => Ok(()),
        }
    }

    /// Creates or migrates the tables, after keeping a copy, and checks the content.
    fn prepare(&mut self, steps: &[&str]) -> Result<(), StoreError> {
        match self.recognise(steps) {
            Ok(()) => self.check()?,
            Err(StoreError::Older { version, known, .. }) => {
                let copy = (version > 0).then(|| self.keep_copy(version)).transpose()?;
                let done = schema::migrate_schema(&mut self.connection, steps);
                self.explain_error(done).inspect_err(|_| {
                    // retried at the next opening, which makes its own copy
                    copy.iter().for_each(|copy| drop(fs::remove_file(copy)));
                })?;
                self.notes.extend(copy.map(|copy| {
                    format!(
                        "the results store {} was upgraded from schema {version} to {known}; the \
                         original is kept as {}",
                        self.path.display(),
                        copy.display()
                    )
                }));
            }
            Err(error) => return Err(error),
        }
        // Readers and writers do not wait for each other, and a commit need not wait for the disk:
        // a program that is killed loses nothing, a power failure the last seconds at most.
        let mode = self.connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
        match mode.as_ref().map_err(rusqlite::Error::sqlite_error_code) {
            // another process uses it, or the file system cannot: the old mode is sufficient
            Ok(()) | Err(Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) => {}
            Err(_) => self.explain_error(mode)?,
        }
        self.explain_error(self.connection.execute_batch("PRAGMA synchronous = NORMAL"))
    }

    /// # Errors
    /// Fails with [`StoreError::Damaged`] if pages contradict each other.
    fn check(&self) -> Result<(), StoreError> {
        let size = fs::metadata(&self.path).map_or(0, |known| known.len());
        if size > CHECK_BYTES_MAX {
            return Ok(());
        }
        let checked =
            self.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
        match self.explain_error(checked)?.as_str() {
            "ok" => Ok(()),
            why => Err(StoreError::Damaged { path: self.path.clone(), why: why.to_owned() }),
        }
    }

    /// Copies the whole store next to it, before its tables are changed.
    fn keep_copy(&self, version: i64) -> Result<PathBuf, StoreError> {
        let copy = free_name(&self.path, &format!("schema-{version}"))?;
        let name = copy.to_string_lossy().into_owned();
        let done = self.connection.execute("VACUUM INTO ?1", [name]);
        self.explain_error(done).inspect_err(|_| drop(fs::remove_file(&copy)))?;
        Ok(copy)
    }

    /// Converts an SQLite result to a [`StoreError`].
    pub(crate) fn explain_error<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| StoreError::new(&self.path, &error))
    }
}

/// Renames a damaged store and creates a new one; of several programs that find it, only one does
/// so.
fn replace_damaged(path: &Path, steps: &[&str]) -> Result<Store, StoreError> {
    let explain_error = |error: std::io::Error| StoreError::io(path, &error);
    let lock = File::create(sibling_path(path, "lock")).map_err(explain_error)?;
    lock.lock().map_err(explain_error)?;
    let mut store = Store::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let why = match store.prepare(steps) {
        Err(StoreError::Damaged { why, .. }) => why,
        prepared => return prepared.map(|()| store),
    };
    drop(store);
    let kept = free_name(path, "damaged")?;
    for end in ["", "-wal", "-shm"] {
        match fs::rename(ended(path, end), ended(&kept, end)) {
            Err(error) if end.is_empty() || error.kind() != ErrorKind::NotFound => {
                return Err(explain_error(error));
            }
            _ => {}
        }
    }
    make_file(path)?;
    let mut store = Store::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    store.prepare(steps)?;
    store.notes.push(format!(
        "the results store {} is damaged ({why}); it is kept as {}, and a new one is started",
        path.display(),
        kept.display()
    ));
    Ok(store)
}

/// Returns whether the file is a store of this program: the default store always is; another file
/// if its header has the application id (bytes 68 to 71 of an SQLite file).
fn is_ours(path: &Path, place: &StorePlace) -> bool {
    let mut head = [0; 72];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    *place == StorePlace::Default || read.is_ok() && head[68..] == APPLICATION_ID.to_be_bytes()
}

fn make_folder(path: &Path, place: &StorePlace) -> Result<(), StoreError> {
    match path.parent() {
        Some(folder) if *place == StorePlace::Default => {
            fs::create_dir_all(folder).map_err(|error| StoreError::io(path, &error))
        }
        Some(folder) if !folder.as_os_str().is_empty() => match fs::metadata(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(StoreError::NoFolder(path.to_owned()))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Creates an empty file that other users cannot read: results belong to the user.
fn make_file(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(StoreError::io(path, &error)),
        // not a folder or a device: SQLite would create a journal next to /dev/null
        _ if !path.is_file() => Err(StoreError::Foreign(path.to_owned())),
        _ => Ok(()),
    }
}

/// Returns an unused name next to the store: `runs.db.damaged-1`.
fn free_name(path: &Path, why: &str) -> Result<PathBuf, StoreError> {
    let mut names = (1..=COPIES_MAX).map(|n| sibling_path(path, &format!("{why}-{n}")));
    names.find(|name| !name.exists()).ok_or_else(|| StoreError::Refused {
        path: path.to_owned(),
        why: format!("{COPIES_MAX} copies are kept next to it already; remove some"),
    })
}

pub(crate) fn sibling_path(path: &Path, what: &str) -> PathBuf {
    ended(path, &format!(".{what}"))
}

fn ended(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Encodes the path for a URI of SQLite (sqlite.org, "URI filenames", 3.1).
fn url_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = text.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{text}")
}

#[cfg(test)]
mod tests;
