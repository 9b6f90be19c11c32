//! The run directory: the evidence of every finding, written as it occurs. It observes the run; if
//! the disk is full the run continues without it, and reports that at the end.

mod failure;

use ::record::torture::{ProbeRecord, TortureRecord};
use anyhow::{Context, Result};
use campaign::{CampaignEvent, TestTarget, Watcher};
use dialogue::talk::TalkScript;
use report::torture::{PROBES_HEAD, Report, RunEnd, execution_line, probe_line, run_file};
use session::{Failure, console, files};
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use torture::case::Case;
use torture::judge::{Plain, TestOutcome};
use torture::record;
use torture::record::Execution;
use torture::record::{Run, Transcript};
use torture::result::{CaseResult, Kept, Probe, Shrunk};
use units::Nanos;

/// Number of executions before a failure whose transcripts are kept with that failure.
const TAIL_MAX: usize = 32;
/// Maximum total size of these transcripts.
const TAIL_BYTES_MAX: usize = 8 << 20;
/// Maximum number of transcripts kept per run; beyond it only failures are kept.
const WIRE_MAX: u64 = 10_000;
/// Maximum number of failures of a case remembered until it is over.
const FAILING_MAX: usize = 64;
/// Maximum number of runs started within one second in one folder.
const NAMES_MAX: u32 = 1_000;

/// Description of the run for `run.json`.
#[derive(Debug)]
struct RunDescription {
    arguments: Vec<String>,
    target: TestTarget,
    cases: Vec<Case>,
    report: Report,
}

/// Observer that writes a run directory.
#[derive(Debug)]
pub struct Recorder {
    root: PathBuf,
    id: String,
    facts: RunDescription,
    run: Run,
    /// Start of the run by its clock.
    zero: Nanos,
    cases: File,
    probes: File,
    executions: u64,
    wires: u64,
    /// The last passed executions, with their numbers.
    tail: VecDeque<(u64, String)>,
    /// The first failing attempt of each exchange of the current case.
    failing: Vec<Transcript>,
    /// Names of conversations of the current case, with the conversations after which each fails.
    behind: Vec<(String, Vec<TalkScript>)>,
    kept: Vec<Kept>,
    /// First write failure; nothing is written after it.
    trouble: Option<anyhow::Error>,
}

impl Recorder {
    /// Creates a new directory below `parent`. `now` is the instant of the run's clock.
    ///
    /// # Errors
    /// Fails if it cannot be created or written.
    pub fn new(
        parent: &Path,
        target: &TestTarget,
        cases: &[Case],
        report: &Report,
        now: Nanos,
    ) -> Result<Recorder, Failure> {
        let made = Recorder::make(parent, target, cases, report, now);
        made.map_err(|error| Failure::not_written(&error))
    }

    fn make(
        parent: &Path,
        target: &TestTarget,
        cases: &[Case],
        report: &Report,
        now: Nanos,
    ) -> Result<Recorder> {
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create the folder {}", parent.display()))?;
        let (root, id) = own_folder(parent, report.started_unix_s)?;
        for folder in ["wire", "failures"] {
            let folder = root.join(folder);
            fs::create_dir(&folder)
                .with_context(|| format!("cannot create the folder {}", folder.display()))?;
        }
        let mut probes = open(&root.join("probes.csv"))?;
        probes
            .write_all(PROBES_HEAD.as_bytes())
            .with_context(|| format!("cannot write in {}", root.display()))?;
        let facts = RunDescription {
            arguments: store::masked_words(&console::command_words(), &[]),
            target: target.clone(),
            cases: cases.to_vec(),
            report: report.clone(),
        };
        let zero_unix_ns = (report.started_unix_s * 1e9) as u64;
        let recorder = Recorder {
            cases: open(&root.join("cases.jsonl"))?,
            probes,
            run: Run {
                loadstone: env!("CARGO_PKG_VERSION").to_owned(),
                target: report.target.clone(),
                zero_unix_ns: zero_unix_ns.saturating_sub(now.0),
                plain: Plain::default(),
            },
            root,
            id,
            facts,
            zero: now,
            executions: 0,
            wires: 0,
            tail: VecDeque::new(),
            failing: Vec::new(),
            behind: Vec::new(),
            kept: Vec::new(),
            trouble: None,
        };
        recorder.write_run(None)?;
        Ok(recorder)
    }

    /// Returns the failures with a folder.
    pub fn kept(&self) -> Vec<Kept> {
        self.kept.clone()
    }

    /// Marks the run as finished in `run.json`.
    ///
    /// # Errors
    /// Fails for a write failure, now or earlier.
    pub fn finish(mut self, torture: &TortureRecord) -> Result<(), Failure> {
        let failures = self.kept.iter().map(|kept| kept.folder.clone()).collect();
        let end = RunEnd::new(torture, self.executions, failures);
        let trouble = self.trouble.take();
        let done = match trouble {
            Some(error) => Err(error.context(format!(
                "the evidence in {} is incomplete: it ends at this error",
                self.root.display()
            ))),
            None => self.write_run(Some(&end)),
        };
        done.map_err(|error| Failure::not_written(&error))
    }

    fn write_run(&self, end: Option<&RunEnd>) -> Result<()> {
        let RunDescription { arguments, target, cases, report } = &self.facts;
        let text = run_file(&self.id, arguments, target, cases, report, end);
        files::write_whole(&self.root.join("run.json"), &text)
    }

    /// Performs a write unless an earlier one failed.
    fn attempt(&mut self, what: impl FnOnce(&mut Recorder) -> Result<()>) {
        if self.trouble.is_none() {
            self.trouble = what(self).err();
        }
    }

    fn wire(&mut self, number: u64, text: &str) -> Result<()> {
        if self.wires == WIRE_MAX {
            return Ok(());
        }
        self.wires += 1;
        write_whole(&self.root.join("wire").join(format!("{number:06}.lsw")), text.as_bytes())
    }

    /// Writes the executions before a failure.
    fn keep_tail(&mut self) -> Result<()> {
        for (number, text) in std::mem::take(&mut self.tail) {
            self.wire(number, &text)?;
        }
        Ok(())
    }

    fn remember(&mut self, number: u64, text: String) {
        self.tail.push_back((number, text));
        let size = |tail: &VecDeque<(u64, String)>| -> usize {
            tail.iter().map(|(_, text)| text.len()).sum()
        };
        while self.tail.len() > TAIL_MAX || size(&self.tail) > TAIL_BYTES_MAX {
            self.tail.pop_front();
        }
    }

    fn executed(&mut self, execution: &Execution<'_>) -> Result<()> {
        self.executions += 1;
        let number = self.executions;
        let line = execution_line(number, execution, self.zero);
        self.cases
            .write_all(line.as_bytes())
            .with_context(|| format!("cannot write {}", self.root.join("cases.jsonl").display()))?;
        let transcript = Transcript::new(&self.run, execution);
        let text = record::write(&transcript);
        let outcome = execution.judgement.outcome;
        if outcome.is_favorable() {
            self.remember(number, text);
            return Ok(());
        }
        if outcome.is_finding() || outcome == TestOutcome::Inconclusive {
            self.keep_tail()?;
        }
        self.wire(number, &text)?;
        let known = self.failing.iter().any(|known| known.name == transcript.name);
        if outcome.is_finding() && !known && self.failing.len() < FAILING_MAX {
            self.failing.push(transcript);
        }
        Ok(())
    }

    fn record_shrunk(&mut self, shrunk: &Shrunk, execution: &Execution<'_>) -> Result<()> {
        let kept = self.kept.iter().find(|one| one.case == shrunk.case && one.name == shrunk.name);
        let Some(kept) = kept else { return Ok(()) };
        let folder = Path::new(&kept.folder);
        let transcript = record::write(&Transcript::new(&self.run, execution));
        write_whole(&folder.join("shrunk.lsw"), transcript.as_bytes())?;
        write_whole(&folder.join("shrunk.bin"), &shrunk.bytes())
    }

    fn probed(&mut self, probe: &Probe) -> Result<()> {
        let path = self.root.join("probes.csv");
        self.probes
            .write_all(probe_line(&ProbeRecord::new(probe)).as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn case_over(&mut self, result: &CaseResult) -> Result<()> {
        if result.recovery.is_late() {
            self.keep_tail()?;
        }
        let failing = std::mem::take(&mut self.failing);
        let behind = std::mem::take(&mut self.behind);
        for exchange in &result.exchanges {
            let transcript = failing.iter().find(|one| one.name == exchange.name);
            let Some(transcript) = transcript.filter(|_| exchange.judgement.outcome.is_finding())
            else {
                continue;
            };
            let before = behind.iter().find(|(name, _)| *name == exchange.name);
            let before = before.map_or(&[][..], |(_, scripts)| scripts);
            let failure = failure::Failed { transcript, before, case: &result.case, exchange };
            let folder = failure::write(&self.root.join("failures"), &failure)?;
            self.kept.push(Kept {
                case: result.case.id.clone(),
                name: exchange.name.clone(),
                folder: folder.display().to_string(),
            });
        }
        Ok(())
    }
}

impl Watcher for Recorder {
    fn observe(&mut self, event: CampaignEvent<'_>) {
        match event {
            CampaignEvent::Ready(plain) => self.run.plain = plain.clone(),
            CampaignEvent::CaseBegins(_) => {
                self.failing.clear();
                self.behind.clear();
            }
            CampaignEvent::ConversationOver(execution) => {
                self.attempt(|recorder| recorder.executed(execution));
            }
            CampaignEvent::FailsAfter { name, before } => {
                self.behind.push((name.to_owned(), before.to_vec()));
            }
            CampaignEvent::Awaits { .. } => {}
            CampaignEvent::ProbeOver(probe) => self.attempt(|recorder| recorder.probed(probe)),
            CampaignEvent::CaseOver(result) => self.attempt(|recorder| recorder.case_over(result)),
            CampaignEvent::FailureShrunk { shrunk, execution } => {
                self.attempt(|recorder| recorder.record_shrunk(shrunk, execution));
            }
        }
    }
}

/// Creates a new folder: `run-20261122T054501Z`, with a number if that exists.
fn own_folder(parent: &Path, started_unix_s: f64) -> Result<(PathBuf, String)> {
    let digits = |c: &char| c.is_ascii_digit() || *c == ' ';
    let date: String = report::timestamp(started_unix_s).chars().filter(digits).collect();
    let stamp = format!("{}Z", date.trim().replace(' ', "T"));
    for number in 1..=NAMES_MAX {
        let id = if number == 1 { stamp.clone() } else { format!("{stamp}-{number}") };
        let path = parent.join(format!("run-{id}"));
        match fs::create_dir(&path) {
            Ok(()) => return Ok((path, id)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot create the folder {}", path.display()));
            }
        }
    }
    anyhow::bail!("{} already has {NAMES_MAX} runs of this second", parent.display())
}

fn open(path: &Path) -> Result<File> {
    let opened = OpenOptions::new().append(true).create_new(true).open(path);
    opened.with_context(|| format!("cannot create {}", path.display()))
}

/// Writes a file completely or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = files::temporary_path(path);
    let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // nothing more can be done about it
        fs::remove_file(&beside).ok();
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}
