//! Location of results.

use crate::StoreError;
use host::invocation::variable;
use std::ffi::OsString;
use std::path::PathBuf;

/// The file of the default store within the user's data directory.
pub const DEFAULT_FILE: &str = "loadstone/runs.db";

/// Path of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StorePlace {
    /// [`DEFAULT_FILE`] in `$XDG_DATA_HOME`, or in `~/.local/share`.
    #[default]
    Default,
    File(PathBuf),
    /// In memory, lost with the program.
    Memory,
    /// No results are stored.
    None,
}

impl StorePlace {
    /// Parses `none`, `:memory:`, or a file.
    pub fn parse(text: &str) -> StorePlace {
        match text {
            "none" => StorePlace::None,
            ":memory:" => StorePlace::Memory,
            path => StorePlace::File(path.into()),
        }
    }

    /// Returns the store's file; `None` without one.
    ///
    /// # Errors
    /// Fails if there is no folder for the default store: neither `XDG_DATA_HOME` nor `HOME` names
    /// one.
    pub fn file(&self) -> Result<Option<PathBuf>, StoreError> {
        match self {
            StorePlace::File(path) => Ok(Some(path.clone())),
            StorePlace::Memory | StorePlace::None => Ok(None),
            StorePlace::Default => default_file(variable("XDG_DATA_HOME"), variable("HOME"))
                .map(Some)
                .ok_or(StoreError::NoHome),
        }
    }
}

fn default_file(data: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    // a relative path must be ignored (XDG Base Directory Specification, "Basics")
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|p| p.is_absolute());
    absolute(data)
        .or_else(|| absolute(home).map(|home| home.join(".local/share")))
        .map(|base| base.join(DEFAULT_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_store_is_in_the_users_data_directory() {
        let file = |data: Option<&str>, home: Option<&str>| {
            let file = default_file(data.map(OsString::from), home.map(OsString::from));
            file.map(|path| path.display().to_string())
        };
        assert_eq!(file(Some("/d"), Some("/h")).as_deref(), Some("/d/loadstone/runs.db"));
        let home = Some("/h/.local/share/loadstone/runs.db");
        assert_eq!(file(None, Some("/h")).as_deref(), home);
        assert_eq!(file(Some("d"), Some("/h")).as_deref(), home);
        assert_eq!(file(Some("d"), None), None);
    }

    #[test]
    fn places_are_parsed() {
        assert_eq!(StorePlace::parse("none"), StorePlace::None);
        assert_eq!(StorePlace::parse(":memory:"), StorePlace::Memory);
        assert_eq!(StorePlace::parse("a.db"), StorePlace::File("a.db".into()));
    }
}
