//! Finds and reads recorded failures.

use anyhow::Context;
use dialogue::talk::TalkScript;
use session::{Code, Failure};
use std::fs;
use std::path::{Path, PathBuf};
use torture::case::{Case, OWN};
use torture::record;
use torture::record::{TRANSCRIPT_MAX, Transcript};
use units::quoted;

/// Maximum number of transcripts read per folder.
const TRANSCRIPTS_MAX: usize = 20_000;
/// Maximum number of characters of a version shown.
const VERSION_MAX: usize = 40;
/// Prefix of the names of conversations that precede a failure.
pub const BEFORE: &str = "before-";
/// Maximum size of a case file.
const CASE_MAX: u64 = 1 << 20;

/// Returns the folders of failures: all of a run, all of its `failures`, or the named one.
///
/// # Errors
/// Fails if there are none.
pub fn folders(named: &Path) -> Result<Vec<PathBuf>, Failure> {
    if named.join("wire.lsw").is_file() {
        return Ok(vec![named.to_owned()]);
    }
    let below = named.join("failures");
    let folder = if below.is_dir() { below.as_path() } else { named };
    let mut found = entries(folder)?;
    found.retain(|path| path.join("wire.lsw").is_file());
    if found.is_empty() {
        let text = format!("{} contains no failures: nothing can be replayed", named.display());
        return Err(Failure { code: Code::NoConnection, text });
    }
    Ok(found)
}

/// Returns the entries of a folder, sorted by name.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let read = fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder {}", folder.display()))?;
    let mut found: Vec<PathBuf> = read
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .take(TRANSCRIPTS_MAX)
        .collect();
    found.sort();
    Ok(found)
}

/// # Errors
/// Fails with the file, its line, and the error.
pub fn transcript(path: &Path) -> Result<Transcript, Failure> {
    let text = text(path, TRANSCRIPT_MAX as u64)?;
    record::read(&text).map_err(|why| Failure::usage(format!("{}: {why}", path.display())))
}

pub fn text(path: &Path, most: u64) -> Result<String, Failure> {
    let size = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    if size > most {
        let text = format!("{} is longer than {}", path.display(), units::show::bytes(most));
        return Err(Failure::usage(text));
    }
    Ok(fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?)
}

/// Failure to replay.
#[derive(Debug)]
pub struct Kept {
    pub folder: PathBuf,
    pub failure: campaign::Failure,
    /// Remarks about other versions of the case.
    pub notes: Vec<String>,
}

/// Reads failures, each with the case that judged it. Results of different versions of a case are
/// never compared.
///
/// # Errors
/// Fails if something cannot be read.
pub fn read(folders: &[PathBuf], cases: &[Case]) -> Result<Vec<Kept>, Failure> {
    folders.iter().map(|folder| read_one(folder, cases)).collect()
}

/// Returns the case that judges a failure: the one recorded with it, or the program's own.
///
/// # Errors
/// Fails if it cannot be read, or does not exist.
pub fn rule(folder: &Path, transcript: &Transcript, cases: &[Case]) -> Result<Case, Failure> {
    let kept = folder.join("case.toml");
    if kept.is_file() {
        let name = kept.display().to_string();
        return torture::case::read_case(&name, &text(&kept, CASE_MAX)?).map_err(Failure::usage);
    }
    let id = &transcript.case;
    let known = cases.iter().find(|case| case.id == *id).cloned();
    known.ok_or_else(|| Failure::usage(format!("{} is not a case of this version", quoted(id))))
}

/// Returns the conversations to play first, in the order of the files.
fn before(folder: &Path) -> Result<Vec<TalkScript>, Failure> {
    let named = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.starts_with(BEFORE) && name.ends_with(".lsw"))
    };
    let files = entries(folder)?.into_iter().filter(named);
    files.map(|path| Ok(transcript(&path)?.script)).collect()
}

fn read_one(folder: &Path, cases: &[Case]) -> Result<Kept, Failure> {
    let transcript = transcript(&folder.join("wire.lsw"))?;
    let id = &transcript.case;
    let present = cases.iter().find(|case| case.id == *id);
    let mut notes = Vec::new();
    let case = rule(folder, &transcript, cases)?;
    match present {
        Some(now) if now.version != case.version => notes.push(format!(
            "{id} was version {} and is version {} in this program: judged by version {}, the \
            recorded one",
            case.version, now.version, case.version
        )),
        Some(_) => {}
        // a user's own case is stored next to its failure
        None if case.group() == OWN => {}
        None => notes.push(format!(
            "{id} is not a case of this version: judged by the recorded \
            case"
        )),
    }
    let ours = env!("CARGO_PKG_VERSION");
    if transcript.loadstone != ours {
        notes.push(format!(
            "recorded by loadstone {}, this is {ours}: the bytes are unchanged, the judgment is \
            that of this version",
            report::printable(&transcript.loadstone, VERSION_MAX)
        ));
    }
    let before = before(folder)?;
    let failure = campaign::Failure { transcript, case, before };
    Ok(Kept { folder: folder.to_owned(), failure, notes })
}
