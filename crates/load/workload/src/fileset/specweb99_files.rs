//! Names and sizes of SPECweb99's files.

pub(crate) const CLASSES: usize = 4;
pub(crate) const FILES_PER_CLASS: usize = 9;
/// Size of the files of class 0 in bytes; the other classes have 1 to 9 KiB, 10 KiB, 100 KiB.
const CLASS_0: [u64; FILES_PER_CLASS] = [102, 204, 307, 409, 512, 614, 716, 819, 921];
/// Advertisements in the table.
pub const ADS: u32 = 360;

/// Returns the number of bytes of file `file` (0 to 8) of class `class` (0 to 3).
pub fn size(class: usize, file: usize) -> u64 {
    match class {
        0 => CLASS_0[file],
        _ => 1024 * 10_u64.pow(class as u32 - 1) * (file as u64 + 1),
    }
}

/// File of the set, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName {
    /// Number of the directory, from 0 to [`DIRECTORY_MAX`].
    pub directory: u32,
    /// Class, 0 to 3.
    pub class: u8,
    /// File, 0 to 8.
    pub file: u8,
}

/// Largest directory number, of five digits.
pub const DIRECTORY_MAX: u32 = 99_999;

impl FileName {
    /// Parses `file_set/dir00012/class1_3`; no other form is accepted.
    pub fn parse(path: &str) -> Option<FileName> {
        let (directory, file) = path.strip_prefix("file_set/dir")?.split_once("/class")?;
        let (class, file) = file.split_once('_')?;
        let number = |text: &str, digits: usize| -> Option<u32> {
            let plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
            if plain { text.parse().ok() } else { None }
        };
        let name = FileName {
            directory: number(directory, 5)?,
            class: number(class, 1)? as u8,
            file: number(file, 1)? as u8,
        };
        let known = usize::from(name.class) < CLASSES && usize::from(name.file) < FILES_PER_CLASS;
        known.then_some(name)
    }

    /// Returns the file in a row of the set.
    pub(crate) fn from_row(row: usize) -> FileName {
        FileName {
            directory: (row / (CLASSES * FILES_PER_CLASS)) as u32,
            class: (row / FILES_PER_CLASS % CLASSES) as u8,
            file: (row % FILES_PER_CLASS) as u8,
        }
    }

    /// Returns the size in bytes.
    pub fn size(self) -> u64 {
        size(usize::from(self.class), usize::from(self.file))
    }

    /// Returns whether the advertisement of a page is in this file: files of classes 1 and 2 have a
    /// placeholder.
    pub fn has_ad(self) -> bool {
        matches!(self.class, 1 | 2)
    }
}

/// Formats the path, without a leading slash.
impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FileName { directory, class, file } = self;
        write!(f, "file_set/dir{directory:05}/class{class}_{file}")
    }
}
