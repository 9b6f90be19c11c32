//! The folder of one failure: the sent bytes, for replay with or without this program.

use crate::evidence::BEFORE;
use anyhow::{Context, Result};
use dialogue::talk::TalkScript;
use report::torture::ProbeForm;
use std::fs;
use std::path::{Path, PathBuf};
use torture::case::Case;
use torture::record;
use torture::record::{Transcript, digest};
use torture::result::ExchangeResult;

/// Number of digest digits in a folder's name.
const DIGITS: usize = 12;

/// Failure with its evidence.
pub(super) struct Failed<'a> {
    pub(super) transcript: &'a Transcript,
    /// Conversations to replay first, each on its own connection.
    pub(super) before: &'a [TalkScript],
    pub(super) case: &'a Case,
    pub(super) exchange: &'a ExchangeResult,
}

/// Writes the folder below `failures`, completely or not at all; keeps an existing folder, which
/// has the same bytes. Returns its path.
pub(super) fn write(failures: &Path, failed: &Failed<'_>) -> Result<PathBuf> {
    let transcript = failed.transcript;
    let hash = digest(format!("{}\n{:?}", transcript.name, transcript.script.steps).as_bytes());
    let name = format!("{}-{}", transcript.case, &hash[..DIGITS]);
    let path = failures.join(&name);
    if path.is_dir() {
        return Ok(path);
    }
    let part = failures.join(format!(".{name}.part"));
    let done =
        fill(&part, failed).and_then(|()| fs::rename(&part, &path).map_err(anyhow::Error::from));
    if done.is_err() {
        // nothing more can be done about it
        fs::remove_dir_all(&part).ok();
    }
    done.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn fill(folder: &Path, failed: &Failed<'_>) -> Result<()> {
    let Failed { transcript, before, case, exchange } = failed;
    fs::create_dir(folder)?;
    fs::write(folder.join("bytes.bin"), transcript.bytes())?;
    fs::write(folder.join("wire.lsw"), record::write(transcript))?;
    fs::write(folder.join("case.toml"), case.text.as_bytes())?;
    for (index, script) in before.iter().enumerate() {
        let name = format!("{BEFORE}{:02}.lsw", index + 1);
        let first = Transcript { script: script.clone(), ..(*transcript).clone() };
        fs::write(folder.join(name), record::write(&first))?;
    }
    if let Ok(script) = report::torture::emit(transcript, ProbeForm::Sh) {
        fs::write(folder.join("repro.sh"), script)?;
    }
    if let Ok(capture) = report::torture::capture(&[transcript]) {
        fs::write(folder.join("repro.pcap"), capture)?;
    }
    fs::write(folder.join("README"), report::torture::failure_text(transcript, exchange))?;
    Ok(())
}
