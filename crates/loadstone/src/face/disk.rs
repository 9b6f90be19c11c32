//! Files that a tool's arguments name.

use faces::{Files, SystemError};
use std::io::Read;

/// The disk; `-` is a file like any other.
pub(super) struct Disk;

/// Bytes that are read at most: they are held in memory.
const BYTES_MAX: u64 = 1 << 30;

impl Files for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError> {
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes))
            .map_err(|error| system_error(&error))?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(SystemError { number: 27, text: "File too large".to_owned() });
        }
        Ok(bytes)
    }

    fn process_id(&self) -> u32 {
        std::process::id()
    }
}

pub(super) fn system_error(error: &std::io::Error) -> SystemError {
    SystemError { number: error.raw_os_error().unwrap_or(5), text: sentence(error) }
}

/// The C library's sentence, without the number that the standard library adds.
pub(super) fn sentence(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" (os error ").map_or(text.clone(), |(sentence, _)| sentence.to_owned())
}
