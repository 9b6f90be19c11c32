//! The file of accepted findings (waivers).

use crate::exit::Failure;
use args::{Disk, TortureOutputs};
use plan::FileSource;
use record::torture::waivers::{self, Waiver};
use torture::case::Case;

/// Reads the waivers of `--expect` before anything is sent. `catalogue` contains all cases.
///
/// # Errors
/// Fails for a file that cannot be read or is invalid, with its name and the line.
pub(super) fn read(outputs: &TortureOutputs, catalogue: &[Case]) -> Result<Vec<Waiver>, Failure> {
    let Some(path) = &outputs.expect else { return Ok(Vec::new()) };
    let name = path.display();
    let bytes = Disk.read(&path.to_string_lossy()).map_err(Failure::usage)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{name}: it is not UTF-8 text")))?;
    waivers::read(&text, catalogue).map_err(|why| Failure::usage(format!("{name}: {why}")))
}
