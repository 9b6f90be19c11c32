//! The audit log: what was tested, when, with whose permission, and the result. Hash-chained lines
//! (`torture::safety::chain`), appended to one file per user, also by concurrent runs.

use campaign::{CampaignEvent, Watcher};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Map, Value, json};
use session::{console, wall_clock};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use torture::result::RunResult;
use torture::safety::chain;
use torture::safety::chain::ChainLink;
use torture::safety::permit::RunLog;
use torture::safety::proof::FoundProof;

pub const FILE: &str = "torture-audit.jsonl";
/// Suffix of the file next to the log that holds the link of its last line.
const HEAD: &str = "torture-audit.head";
/// Maximum length of a line in bytes; longer user input is truncated.
const LINE_MAX: usize = 32 << 10;
/// Maximum length of a recorded word or reason.
const WORDS_MAX: usize = 2_000;

/// Returns the file next to a log that holds the link of its last line.
pub fn head_of(log: &Path) -> PathBuf {
    match log.file_name() {
        Some(name) if name == FILE => log.with_file_name(HEAD),
        _ => log.with_extension("head"),
    }
}

/// One run's access to the log.
#[derive(Debug)]
pub struct Audit {
    log: PathBuf,
    run: String,
    /// Description of the run in its first line.
    beginning: Map<String, Value>,
    /// The first write failure, which stops the run.
    trouble: Option<String>,
}

impl Audit {
    pub fn new(folder: &Path, run: &str, beginning: Map<String, Value>) -> Audit {
        Audit { log: folder.join(FILE), run: run.to_owned(), beginning, trouble: None }
    }

    /// Returns the write failure, if any.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Appends a line, which is on disk on return.
    fn append(&self, kind: &str, fields: Map<String, Value>) -> Result<(), String> {
        let mut all = Map::new();
        all.insert("kind".into(), kind.into());
        all.insert("run".into(), self.run.clone().into());
        all.insert("at_unix_s".into(), wall_clock::unix_seconds().into());
        all.extend(fields);
        let text = Value::Object(all).to_string();
        if text.len() > LINE_MAX {
            return Err(format!("a log line would be longer than {LINE_MAX} bytes"));
        }
        let inner = &text[1..text.len() - 1];
        self.write(inner).map_err(|why| format!("{}: {why}", self.log.display()))
    }

    fn write(&self, fields: &str) -> Result<(), String> {
        let describe = |error: std::io::Error| error.to_string();
        let mut log = open(&self.log).map_err(describe)?;
        flock(&log, FlockOperation::LockExclusive).map_err(|error| error.to_string())?;
        let mut head = open(&head_of(&self.log)).map_err(describe)?;
        let (last, torn) = last_of(&mut log)?;
        let mut known = String::new();
        head.read_to_string(&mut known).map_err(describe)?;
        check_end(&last, ChainLink::parse(&known).as_ref())?;
        let (line, link) = chain::seal(&last, torn.as_deref(), fields);
        let between = if torn.is_some() { "\n" } else { "" };
        log.write_all(format!("{between}{line}\n").as_bytes()).map_err(describe)?;
        // in this order, each time: after a power failure the head is at most one line behind
        log.sync_data().map_err(describe)?;
        // overwritten in place: it never becomes shorter
        head.write_all_at(link.to_text().as_bytes(), 0).map_err(describe)?;
        head.sync_data().map_err(describe)
    }

    /// Appends a line during a run, which must end if that fails.
    pub fn note(&mut self, kind: &str, fields: Value) {
        let Value::Object(fields) = fields else { return };
        if self.trouble.is_none() {
            self.trouble = self.append(kind, fields).err();
        }
    }

    /// Logs the end of the run.
    pub fn end(&mut self, result: &RunResult, code: u8) {
        if let Some(stop) = &result.stopped {
            self.note("stop", json!({ "why": stop.id(), "reason": truncate(stop.why()) }));
        } else if result.interrupted {
            self.note("stop", json!({ "why": "interrupted", "reason": "a signal" }));
        }
        let tested = result.cases.iter().filter(|case| case.skipped.is_none()).count();
        let fields = json!({
            "exit": code,
            "cases": tested,
            "ended_early": result.ended_early.as_deref().map(truncate),
            "elapsed_s": result.took.as_secs_f64(),
        });
        self.note("end", fields);
    }
}

/// Opens a file for reading and appending, private to the user.
fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Returns the link of the last line, and the fragment after it that a crash left; the file is then
/// positioned at its end.
fn last_of(log: &mut File) -> Result<(ChainLink, Option<Vec<u8>>), String> {
    let describe = |error: std::io::Error| error.to_string();
    let length = log.seek(SeekFrom::End(0)).map_err(describe)?;
    let from = length.saturating_sub(4 * LINE_MAX as u64);
    log.seek(SeekFrom::Start(from)).map_err(describe)?;
    let mut tail = Vec::new();
    log.read_to_end(&mut tail).map_err(describe)?;
    if length == 0 {
        return Ok((ChainLink::start(), None));
    }
    chain::last(&tail, from == 0).ok_or_else(|| {
        "its last line is not a line of an audit log; run loadstone torture audit verify for \
        details, and move the file away to start a new log"
            .to_owned()
    })
}

/// Checks that the end of the log is the last line written.
fn check_end(last: &ChainLink, head: Option<&ChainLink>) -> Result<(), String> {
    let fits = match head {
        Some(head) if head.line == last.line => head.hash == last.hash,
        // a crash happened between the line and the head
        Some(head) => head.line + 1 == last.line,
        None => last.line <= 1,
    };
    if fits {
        return Ok(());
    }
    Err("its last lines were changed; run loadstone torture audit verify for details, and move \
        both files away to start a new log"
        .to_owned())
}

fn truncate(text: &str) -> String {
    text.chars().take(WORDS_MAX).collect()
}

/// Returns the command line, truncated if too long.
pub fn words() -> Vec<String> {
    const ALL_MAX: usize = 12_000;
    let mut left = ALL_MAX;
    let all =
        store::masked_words(&console::command_words(), &[]).into_iter().map(|word| truncate(&word));
    all.take_while(|word| {
        let fits = word.len() <= left;
        left = left.saturating_sub(word.len());
        fits
    })
    .collect()
}

impl RunLog for Audit {
    fn write_start(&mut self) -> Result<(), String> {
        self.append("begin", self.beginning.clone())
    }

    fn proved(&mut self, found: &FoundProof) -> Result<(), String> {
        let mut fields = Map::new();
        fields.insert("place".into(), found.place.id().into());
        fields.insert("digest".into(), found.digest.clone().into());
        fields.insert("text".into(), found.proof.to_txt().into());
        self.append("proof", fields)
    }

    fn refused(&mut self, why: &str) -> Result<(), String> {
        self.append("refused", Map::from_iter([("reason".to_owned(), truncate(why).into())]))
    }
}

/// Writer of a shared log.
#[derive(Debug)]
pub struct AuditWriter(pub Rc<RefCell<Audit>>);

impl Watcher for AuditWriter {
    fn observe(&mut self, event: CampaignEvent<'_>) {
        let (what, fields) = match event {
            CampaignEvent::CaseBegins(case) => ("case-begin", json!({ "case": case.id })),
            CampaignEvent::CaseOver(result) => {
                let fields = json!({
                    "case": result.case.id,
                    "outcome": result.outcome.id(),
                    "skipped": result.skipped.as_deref().map(truncate),
                    "connections": result.spent.connections,
                    "requests": result.spent.requests,
                    "bytes": result.spent.bytes,
                    "elapsed_s": result.took.as_secs_f64(),
                });
                ("case-end", fields)
            }
            _ => return,
        };
        self.0.borrow_mut().note(what, fields);
    }
}

/// Log that discards everything: for targets on this machine, on request.
#[derive(Debug)]
pub struct Unwritten;

impl RunLog for Unwritten {
    fn write_start(&mut self) -> Result<(), String> {
        Ok(())
    }
    fn proved(&mut self, _: &FoundProof) -> Result<(), String> {
        Ok(())
    }
    fn refused(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::thread;

    fn audit(folder: &Path, run: &str) -> Audit {
        Audit::new(folder, run, Map::new())
    }

    fn verify(folder: &Path) -> Result<chain::Sound, chain::Breach> {
        let log = folder.join(FILE);
        let head = fs::read_to_string(head_of(&log)).ok();
        chain::verify(&fs::read(log).unwrap(), head.as_deref().and_then(ChainLink::parse).as_ref())
    }

    #[test]
    fn runs_at_the_same_time_write_one_chain() {
        let folder = tempfile::tempdir().unwrap();
        thread::scope(|scope| {
            for run in ["a", "b", "c"] {
                let mut one = audit(folder.path(), run);
                scope.spawn(move || {
                    one.write_start().unwrap();
                    for _ in 0..20 {
                        one.note("case-begin", json!({}));
                    }
                    assert_eq!(one.trouble(), None);
                });
            }
        });
        assert_eq!(verify(folder.path()).unwrap().last.line, 63);
    }

    #[test]
    fn after_a_crash_the_log_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut one = audit(folder.path(), "a");
        one.write_start().unwrap();
        one.write_start().unwrap();
        let log = folder.path().join(FILE);
        let whole = fs::read(&log).unwrap();
        fs::write(&log, [&whole[..], b"{\"hash\":\"12"].concat()).unwrap();
        one.write_start().unwrap();
        one.write_start().unwrap();
        let found = verify(folder.path()).unwrap();
        assert_eq!((found.last.line, found.torn), (4, 1));
    }

    #[test]
    fn a_log_that_was_cut_is_not_written_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut one = audit(folder.path(), "a");
        (0..3).for_each(|_| one.write_start().unwrap());
        let log = folder.path().join(FILE);
        let whole = fs::read_to_string(&log).unwrap();
        fs::write(&log, whole.lines().next().unwrap().to_owned() + "\n").unwrap();
        assert!(one.write_start().unwrap_err().contains("its last lines were changed"));
        fs::write(&log, "something else\n").unwrap();
        assert!(
            one.write_start().unwrap_err().contains("its last line is not a line of an audit log")
        );
        fs::remove_file(&log).unwrap();
        assert!(one.write_start().unwrap_err().contains("its last lines were changed"));
        fs::remove_file(head_of(&log)).unwrap();
        one.write_start().unwrap();
    }

    #[test]
    fn write_errors_are_reported() {
        let mut one = audit(Path::new("/nowhere"), "a");
        assert!(one.write_start().unwrap_err().contains("/nowhere/torture-audit.jsonl"));
        one.note("case-begin", json!({}));
        assert!(one.trouble().unwrap().contains("No such file"));
    }
}
