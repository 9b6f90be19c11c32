//! The user's own cases: files in the form of the catalog.

use crate::exit::Failure;
use std::path::{Path, PathBuf};
use torture::case::{Case, read_own};
use units::show;
use world::evidence;

/// Maximum number of files in one folder, and maximum size of one file.
const FILES_MAX: usize = 1_000;
const FILE_MAX: u64 = 1 << 20;

/// Returns the catalog followed by the cases of these files and folders.
///
/// # Errors
/// Fails for a file that cannot be read or is invalid, with its name and the line, and for a
/// duplicate id.
pub(super) fn with_own(mut cases: Vec<Case>, places: &[PathBuf]) -> Result<Vec<Case>, Failure> {
    let mut known: Vec<(String, PathBuf)> = Vec::new();
    for file in files(places)? {
        let name = file.display().to_string();
        let case = read_own(&name, &evidence::text(&file, FILE_MAX)?).map_err(Failure::usage)?;
        if let Some((_, other)) = known.iter().find(|(id, _)| *id == case.id) {
            let (id, other) = (&case.id, other.display());
            return Err(Failure::usage(format!(
                "{name}: {id} is also defined in {other}; rename one of them"
            )));
        }
        known.push((case.id.clone(), file));
        cases.push(case);
    }
    Ok(cases)
}

fn files(places: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for place in places {
        match place.is_dir() {
            true => all.extend(folder(place)?),
            false => all.push(place.clone()),
        }
    }
    Ok(all)
}

fn folder(place: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = evidence::entries(place)?;
    found.retain(|path| path.extension().is_some_and(|kind| kind == "toml"));
    match found.len() {
        0 => Err(Failure::usage(format!(
            "{} contains no case: there is no .toml file",
            place.display()
        ))),
        n if n > FILES_MAX => {
            let most = show::count(FILES_MAX as u64);
            Err(Failure::usage(format!("{} contains more than {most} cases", place.display())))
        }
        _ => Ok(found),
    }
}
