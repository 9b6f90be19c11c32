//! Finds and reads recorded failures, and determines the server for their replay.

use super::audit::{Audit, Writer};
use super::permit::{self, Permit};
use super::raw;
use super::server;
use super::target::{self, Reached};
use super::world::Sockets;
use crate::exit::{Code, Failure};
use anyhow::Context;
use args::AgainArgs;
use dialogue::http2::Spoken;
use dialogue::talk::TalkScript;
use std::cell::RefCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use torture::case::{Case, OWN};
use torture::record;
use torture::record::{TRANSCRIPT_MAX, Transcript};
use torture::result::RunResult;
use units::quoted;
use url::Url;

/// Maximum number of transcripts read per folder.
const TRANSCRIPTS_MAX: usize = 20_000;
/// Maximum number of characters of a version shown.
const VERSION_MAX: usize = 40;
/// Prefix of the names of conversations that precede a failure.
pub(super) const BEFORE: &str = "before-";
/// Maximum size of a case file.
const CASE_MAX: u64 = 1 << 20;

/// Returns the folders of failures: all of a run, all of its `failures`, or the named one.
///
/// # Errors
/// Fails if there are none.
pub(super) fn folders(named: &Path) -> Result<Vec<PathBuf>, Failure> {
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
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
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
pub(super) fn transcript(path: &Path) -> Result<Transcript, Failure> {
    let text = text(path, TRANSCRIPT_MAX as u64)?;
    record::read(&text).map_err(|why| Failure::usage(format!("{}: {why}", path.display())))
}

pub(super) fn text(path: &Path, most: u64) -> Result<String, Failure> {
    let size = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    if size > most {
        let text = format!("{} is longer than {}", path.display(), units::show::bytes(most));
        return Err(Failure::usage(text));
    }
    Ok(fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?)
}

/// Failure to replay.
pub(super) struct Kept {
    pub(super) folder: PathBuf,
    pub(super) failure: campaign::Failure,
    /// Remarks about other versions of the case.
    pub(super) notes: Vec<String>,
}

/// Reads failures, each with the case that judged it. Results of different versions of a case are
/// never compared.
///
/// # Errors
/// Fails if something cannot be read.
pub(super) fn read(folders: &[PathBuf], cases: &[Case]) -> Result<Vec<Kept>, Failure> {
    folders.iter().map(|folder| read_one(folder, cases)).collect()
}

/// Returns the case that judges a failure: the one recorded with it, or the program's own.
///
/// # Errors
/// Fails if it cannot be read, or does not exist.
pub(super) fn rule(
    folder: &Path,
    transcript: &Transcript,
    cases: &[Case],
) -> Result<Case, Failure> {
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
        // a user's own case is next to its failure
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

/// The permitted server, and the connection settings.
pub(super) struct Scene {
    pub(super) url: Url,
    pub(super) reached: Reached,
    pub(super) sockets: Sockets,
    audit: Option<Rc<RefCell<Audit>>>,
    /// Lock: only one run at a time stresses another machine.
    _alone: Option<File>,
}

impl Scene {
    /// Returns an observer for the audit log, if any.
    pub(super) fn writer(&self) -> Option<Writer> {
        self.audit.clone().map(Writer)
    }

    /// Writes the last line of the audit log.
    pub(super) fn end(&self, ended_early: Option<String>, code: Code) {
        if let Some(audit) = &self.audit {
            let interrupted = code == Code::Interrupted;
            let result = RunResult { ended_early, interrupted, ..RunResult::default() };
            audit.borrow_mut().end(&result, code as u8);
        }
    }
}

/// Returns the target of a replay: the named server, or that of the failures. The rules are those
/// of a run.
///
/// # Errors
/// Fails for failures of several servers, and for a server that may not be tested.
pub(super) fn scene(args: &AgainArgs, kept: &[Kept]) -> Result<Scene, Failure> {
    let url = match &args.to {
        Some(url) => url.clone(),
        None => of_run(kept)?,
    };
    let run = args.run(&url);
    let mut run = run.map_err(|error| Failure::usage(format!("the recorded target: {error}")))?;
    run.what.speak(spoken(kept)?);
    let mut cases: Vec<Case> = Vec::new();
    for one in kept {
        if !cases.iter().any(|case| case.id == one.failure.case.id) {
            cases.push(one.failure.case.clone());
        }
    }
    let reached = target::reach(&run, &url)?;
    let asked = run.safety.asked();
    let Permit { governor, outside, audit, alone } =
        permit::permit(&run, &reached.url, &reached, &cases, &asked)?;
    let seen = server::processes(&run.server, &reached)?;
    let raw = raw::link(&run, &reached.url, (reached.class, &reached.addresses), &cases)?;
    let sockets = Sockets::new(target::tls_for(&run, &reached.url)?, governor, outside)?
        .over_quic(run.what.spoken())?
        .raw(raw)
        .seeing(seen);
    Ok(Scene { url, reached, sockets, audit, _alone: alone })
}

/// Returns the protocol that all failures share, or an error if they differ.
fn spoken(kept: &[Kept]) -> Result<Spoken, Failure> {
    let polite = |one: &Kept| match one.failure.transcript.script.spoken {
        Spoken::Http2Raw => Spoken::Http2,
        Spoken::Datagrams => Spoken::Http3,
        other => other,
    };
    let first = kept.first().map(polite).unwrap_or_default();
    if kept.iter().any(|one| polite(one) != first) {
        return Err(Failure::usage(
            "these failures use several versions of HTTP: replay them one by one",
        ));
    }
    Ok(first)
}

fn of_run(kept: &[Kept]) -> Result<Url, Failure> {
    let mut targets: Vec<&str> =
        kept.iter().map(|one| one.failure.transcript.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    let [target] = targets[..] else {
        return Err(Failure::usage(
            "these failures are from several servers: name a server with --to, or replay them \
            one by one",
        ));
    };
    Url::parse(target).map_err(|error| {
        Failure::usage(format!("the recorded target {} is not a URL: {error}", quoted(target)))
    })
}
