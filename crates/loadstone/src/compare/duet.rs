//! Duets: both sides of a comparison measured at the same moment, each by a process of this
//! program, so that changes on the machine affect both.

use crate::exit::{Code, Failure};
use crate::signals;
use args::CompareSide;
use record::run::RunRecord;
use rustix::process::{Pid, Signal, kill_process};
use session::sut::SutTarget;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Interval of polling the processes.
const PAUSE: Duration = Duration::from_millis(10);
/// Characters shown of a process's output.
const MESSAGE_CHARS_MAX: usize = 1_000;
/// Exit codes of a measured run: done, missed, INVALID.
const MEASURED: [Code; 3] = [Code::Done, Code::Missed, Code::Invalid];

/// Plans and results of a duet, in a folder that only this user can read.
pub(super) struct Duet {
    folder: PathBuf,
}

/// Outcome of measuring both sides once.
pub(super) enum Moment {
    /// Runs of A and B.
    Runs(Box<[RunRecord; 2]>),
    /// Side that was not measured: its letter, and the reason.
    Failed(String),
    Interrupted,
}

impl Duet {
    /// # Errors
    /// Fails without a temporary folder.
    pub(super) fn new() -> Result<Duet, Failure> {
        let folder = std::env::temp_dir().join(format!("loadstone-duet-{}", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|error| cannot("make a folder for the duet", &error))?;
        Ok(Duet { folder })
    }

    /// Measures both sides at the same moment; `b_first`: B's process starts first.
    ///
    /// # Errors
    /// Fails for a plan that cannot be written, or a process that cannot be started.
    pub(super) fn moment(
        &self,
        sides: &[CompareSide],
        seed: u64,
        b_first: bool,
    ) -> Result<Moment, Failure> {
        let mut both = Vec::new();
        for (side, letter) in sides.iter().zip(["a", "b"]) {
            let (sut, place) = (side.sut.clone(), self.folder.join(letter));
            both.push(Measuring { letter, sut, child: None, place });
            both[both.len() - 1].write_plan(side, seed)?;
        }
        let order = if b_first { [1, 0] } else { [0, 1] };
        for index in order {
            both[index].start()?;
        }
        let mut ended = Vec::new();
        for one in &mut both {
            match one.wait()? {
                Some(status) => ended.push(status),
                None => return Ok(Moment::Interrupted),
            }
        }
        let mut runs = Vec::new();
        for (one, status) in both.iter().zip(ended) {
            match one.result(status) {
                Ok(run) => runs.push(run),
                Err(why) => return Ok(Moment::Failed(why)),
            }
        }
        match <[RunRecord; 2]>::try_from(runs) {
            Ok(runs) => Ok(Moment::Runs(Box::new(runs))),
            Err(_) => Ok(Moment::Failed("a duet has two sides".to_owned())),
        }
    }
}

impl Drop for Duet {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            crate::print_message(&format!("cannot remove {}: {error}", self.folder.display()));
        }
    }
}

/// Side whose process is running; dropping it ends the process.
struct Measuring {
    letter: &'static str,
    /// Running server of the side, if its CPU time is bounded.
    sut: Option<SutTarget>,
    child: Option<Child>,
    /// Files of the side: this path with the extensions `.toml`, `.json` and `.log`.
    place: PathBuf,
}

impl Measuring {
    fn file(&self, ending: &str) -> PathBuf {
        self.place.with_extension(ending)
    }

    fn write_plan(&self, side: &CompareSide, seed: u64) -> Result<(), Failure> {
        let mut plan = side.plan.clone();
        plan.seed = seed;
        plan.measure.repeat = 1;
        let text = plan::to_toml(&plan, plan::Secrets::Shown);
        let path = self.file("toml");
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| cannot("write a plan of the duet", &error))?;
        // of the previous moment
        remove(&self.file("json"))
    }

    fn start(&mut self) -> Result<(), Failure> {
        let refused = |error: std::io::Error| cannot("start a process of the duet", &error);
        let program = host::invocation::program().map_err(refused)?;
        let log = File::create(self.file("log")).map_err(refused)?;
        let mut command = Command::new(program);
        command.arg("run").arg(self.file("toml")).arg("--json").arg(self.file("json"));
        command.args(["--quiet", "--store", "none"]);
        if let Some(sut) = &self.sut {
            command.arg("--sut").arg(sut.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().map_err(refused)?);
        Ok(())
    }

    /// Waits for the process to end; `None` after a signal.
    fn wait(&mut self) -> Result<Option<ExitStatus>, Failure> {
        let Some(child) = &mut self.child else { return Ok(None) };
        loop {
            let ended = child.try_wait();
            let ended = ended.map_err(|error| cannot("wait for a process of the duet", &error))?;
            if signals::received_signal() > 0 {
                return Ok(None);
            }
            if let Some(status) = ended {
                self.child = None;
                return Ok(Some(status));
            }
            signals::pause(PAUSE);
        }
    }

    fn result(&self, status: ExitStatus) -> Result<RunRecord, String> {
        let letter = self.letter.to_uppercase();
        let measured =
            status.code().is_some_and(|code| MEASURED.iter().any(|known| *known as i32 == code));
        if !measured {
            let log = std::fs::read(self.file("log")).unwrap_or_default();
            let log = report::printable(String::from_utf8_lossy(&log).trim(), MESSAGE_CHARS_MAX);
            return Err(format!("{letter} was not measured ({status}): {log}"));
        }
        let text = std::fs::read_to_string(self.file("json"));
        let text = text.map_err(|error| format!("{letter} left no result: {error}"))?;
        let run = record::run::read(&text).map_err(|why| format!("{letter}'s result {why}"))?;
        match run.outcomes.due > 0 && run.outcomes.succeeded == 0 {
            true => Err(format!("{letter} was not measured: none of its calls succeeded")),
            false => Ok(run),
        }
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            kill_process(Pid::from_child(&child), Signal::TERM).ok();
            child.wait().ok();
        }
    }
}

fn remove(path: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(cannot("remove an earlier result of the duet", &error))
        }
        _ => Ok(()),
    }
}

fn cannot(what: &str, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot {what}: {error}"))
}
