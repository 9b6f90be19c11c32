//! Reads the files of options, and standard input.

use plan::FileSource;
use session::console::{stdin, variable};
use std::io::Read;
use units::quoted;

/// The file system; `-` is standard input, read completely.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

/// Maximum number of bytes read: bodies and URL lists are held in memory.
const BYTES_MAX: u64 = 1 << 30;

impl FileSource for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let fault = |error: std::io::Error| match path {
            "-" => format!("standard input cannot be read: {error}"),
            path => format!("{} cannot be read: {error}", quoted(path)),
        };
        let mut bytes = Vec::new();
        let count = match path {
            "-" => stdin().take(BYTES_MAX + 1).read_to_end(&mut bytes),
            path => std::fs::File::open(path)
                .and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes)),
        };
        if count.map_err(fault)? as u64 > BYTES_MAX {
            return Err(format!("{} is larger than 1 GiB", quoted(path)));
        }
        Ok(bytes)
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        let missing = |why| format!("the environment variable {} {why}", quoted(name));
        let value = variable(name).ok_or_else(|| missing("is not set; export it"))?;
        match value.into_string() {
            Ok(value) if !value.is_empty() => Ok(value),
            Ok(_) => Err(missing("is empty; set it")),
            Err(_) => Err(missing("is not UTF-8 text")),
        }
    }
}
