//! Name of a file set.

use crate::fileset::surge::Files;
use crate::fileset::{FileSet, specweb99, webbench, webstone};
use units::Seed;

/// A file set by its name and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spec {
    Surge { files: u64 },
    Specweb99 { directories: u64 },
    Webstone,
    Webbench { files: u64 },
}

/// Reason why a name or a size is invalid, with the valid ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(pub String);

/// WebMark's number of files.
const SURGE_FILES: u64 = 2_000;
/// Minimum number of files: with fewer, a group of SURGE's has no file.
const FILES_MIN: u64 = 10;
const FILES_MAX: u64 = 1_000_000;
const DIRECTORIES_MAX: u64 = 20_000;
/// Default number of connections of the standard set.
const CONNECTIONS: u64 = 100;

/// Names, as typed.
pub const NAMES: &str = "surge-like[:files=N], specweb99-like[:connections=N|:directories=N], \
                         webstone-like or webbench-like[:files=N]";

impl Spec {
    /// Parses `surge-like`, `surge-like:files=500`, `specweb99-like:connections=1000`, …
    ///
    /// # Errors
    /// Fails if the set or size is unknown, or the size is out of range.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        let (name, size) = match text.split_once(':') {
            Some((name, size)) => (name, Some(size)),
            None => (text, None),
        };
        match name {
            "surge-like" => {
                let size = Size::read(size, &["files"])?;
                Ok(Spec::Surge { files: size.within(SURGE_FILES, FILES_MIN, FILES_MAX)? })
            }
            "specweb99-like" => {
                let size = Size::read(size, &["connections", "directories"])?;
                Ok(Spec::Specweb99 { directories: directories(&size)? })
            }
            "webstone-like" => {
                Size::read(size, &[])?;
                Ok(Spec::Webstone)
            }
            "webbench-like" => {
                let size = Size::read(size, &["files"])?;
                let files = size.within(webbench::FILES, FILES_MIN, FILES_MAX)?;
                Ok(Spec::Webbench { files })
            }
            _ => Err(wrong(&format!("no such file set; choose from {NAMES}"))),
        }
    }

    pub fn set(self, seed: Seed) -> FileSet {
        match self {
            Spec::Surge { files } => Files::new(files as usize, seed).set(seed),
            Spec::Specweb99 { directories } => specweb99::set(directories, seed),
            Spec::Webstone => webstone::set(seed),
            Spec::Webbench { files } => webbench::set(files, seed),
        }
    }
}

/// Formats the name as [`Spec::parse`] reads it.
impl std::fmt::Display for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Spec::Surge { files } => write!(f, "surge-like:files={files}"),
            Spec::Specweb99 { directories } => {
                write!(f, "specweb99-like:directories={directories}")
            }
            Spec::Webstone => f.write_str("webstone-like"),
            Spec::Webbench { files } => write!(f, "webbench-like:files={files}"),
        }
    }
}

fn directories(size: &Size) -> Result<u64, SpecError> {
    if size.name == "directories" {
        return size.within(0, 1, DIRECTORIES_MAX);
    }
    let connections = size.within(CONNECTIONS, 1, u64::from(u16::MAX))?;
    let directories = specweb99::directories(connections);
    if directories > DIRECTORIES_MAX {
        let why =
            format!("that needs {directories} directories, and the maximum is {DIRECTORIES_MAX}");
        return Err(wrong(&why));
    }
    Ok(directories)
}

/// The part after the colon.
struct Size {
    name: String,
    number: Option<u64>,
}

impl Size {
    fn read(size: Option<&str>, names: &[&str]) -> Result<Size, SpecError> {
        let Some(size) = size else { return Ok(Size { name: String::new(), number: None }) };
        let (name, number) = size.split_once('=').unwrap_or((size, ""));
        if !names.contains(&name) {
            let why = match names {
                [] => "it has one size only: leave out what follows the colon".to_owned(),
                names => format!("after the colon write {}=N", names.join("=N or ")),
            };
            return Err(wrong(&why));
        }
        let number = number.parse().map_err(|_| wrong(&format!("{name} is a number")))?;
        Ok(Size { name: name.to_owned(), number: Some(number) })
    }

    fn within(&self, default: u64, min: u64, max: u64) -> Result<u64, SpecError> {
        let number = self.number.unwrap_or(default);
        if (min..=max).contains(&number) {
            return Ok(number);
        }
        Err(wrong(&format!("{} must be {min} to {max}", self.name)))
    }
}

fn wrong(why: &str) -> SpecError {
    SpecError(why.to_owned())
}

impl std::fmt::Display for SpecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sizes_are_read() {
        let all = [
            ("surge-like", Spec::Surge { files: 2_000 }),
            ("surge-like:files=10", Spec::Surge { files: 10 }),
            ("specweb99-like", Spec::Specweb99 { directories: 90 }),
            ("specweb99-like:connections=1000", Spec::Specweb99 { directories: 680 }),
            ("specweb99-like:directories=1", Spec::Specweb99 { directories: 1 }),
            ("webstone-like", Spec::Webstone),
            ("webbench-like:files=100", Spec::Webbench { files: 100 }),
        ];
        for (text, spec) in all {
            assert_eq!(Spec::parse(text), Ok(spec), "{text}");
            assert_eq!(Spec::parse(&spec.to_string()), Ok(spec), "{spec}");
        }
    }

    #[test]
    fn errors_name_the_input_and_the_fix() {
        let all = [
            ("surge", "no such file set; choose from surge-like[:files=N]"),
            ("surge-like:files=9", "files must be 10 to 1000000"),
            ("surge-like:files=many", "files is a number"),
            ("surge-like:users=3", "after the colon write files=N"),
            ("webstone-like:files=3", "it has one size only"),
            ("specweb99-like:directories=0", "directories must be 1 to 20000"),
            ("specweb99-like:connections=60000", "needs 39369 directories"),
        ];
        for (text, why) in all {
            let error = Spec::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
