//! Stores results. Errors of the default store are reported and stop nothing; a requested store
//! must work.

use crate::exit::{Code, Failure};
use plan::Plan;
use record::compare::CompareRecord;
use record::ramp::{RampRecord, RampStepRecord};
use record::run::RunRecord;
use record::torture::{OverCase, TortureRecord};
use sample::{AgentNow, CallRecord, Environment};
use session::Watcher;
use session::console::text_variable;
use stats::curve::Axis;
use stats::{Second, Snapshot};
use store::{
    Beginning, Recording, RecordingEnd, ResultKind, RunId, Seconds, Store, StoreError, StorePlace,
};

/// Environment variable that names the store if `--store` is absent.
const STORE_VARIABLE: &str = "LOADSTONE_STORE";

/// Reports the changes that opening a store caused.
pub(crate) fn noted(store: Store) -> Store {
    store.notes.iter().for_each(|note| crate::print_message(note));
    store
}

/// Returns the requested store: of the option, otherwise of the environment.
pub(crate) fn requested_store(option: Option<&StorePlace>) -> Option<StorePlace> {
    let variable = || text_variable(STORE_VARIABLE).filter(|text| !text.is_empty());
    option.cloned().or_else(|| variable().map(|text| StorePlace::parse(&text)))
}

/// Open store, or none.
pub(crate) struct Keeper {
    store: Option<Store>,
    /// The user requested the store.
    wanted: bool,
}

impl Keeper {
    /// Opens the store, before anything is sent.
    ///
    /// # Errors
    /// Fails for a requested store that cannot be opened: exit code 2.
    pub(crate) fn open(option: Option<&StorePlace>) -> Result<Keeper, Failure> {
        let place = requested_store(option);
        let wanted = place.is_some();
        let place = place.unwrap_or_default();
        if place == StorePlace::None {
            return Ok(Keeper { store: None, wanted: false });
        }
        match Store::open(&place) {
            Ok(store) => {
                store.notes.iter().for_each(|note| crate::print_message(note));
                Ok(Keeper { store: Some(store), wanted })
            }
            Err(error) if wanted => Err(Failure::usage(error.to_string())),
            Err(error) => {
                crate::print_message(&format!("this result is not stored: {error}"));
                Ok(Keeper { store: None, wanted })
            }
        }
    }

    /// Creates the entry of a run.
    ///
    /// # Errors
    /// Fails like [`Keeper::begin`].
    pub(crate) fn run(
        self,
        name: &str,
        plan: &Plan,
        environment: &Environment,
    ) -> Result<Keeping, Failure> {
        let command_line = command_line(&[plan]);
        let beginning = Beginning {
            name,
            plan,
            command_line: &command_line,
            environment,
            started_unix_s: crate::wall_clock::unix_seconds(),
            labels: &[],
            commands: &[],
            axis: Axis::Rate,
        };
        self.begin(ResultKind::Run, &beginning)
    }

    /// Creates the entry of a result and starts to write it.
    ///
    /// # Errors
    /// Fails for a requested store that cannot be written: exit code 2.
    pub(crate) fn begin(
        self,
        kind: ResultKind,
        beginning: &Beginning<'_>,
    ) -> Result<Keeping, Failure> {
        self.start(|store| Recording::begin(store, kind, beginning))
    }
}

impl Keeper {
    /// Creates the entry of a torture run; `torture`: everything known before anything is sent.
    /// `beside`: plan of the background load.
    ///
    /// # Errors
    /// Fails like [`Keeper::begin`].
    pub(crate) fn torture(
        self,
        torture: &TortureRecord,
        beside: Option<&Plan>,
    ) -> Result<Keeping, Failure> {
        let command_line = command_line(&Vec::from_iter(beside));
        self.start(|store| Recording::begin_torture(store, torture, &command_line))
    }

    fn start(
        self,
        begin: impl FnOnce(Store) -> Result<Recording, StoreError>,
    ) -> Result<Keeping, Failure> {
        let Keeper { store, wanted } = self;
        match store.map(begin).transpose() {
            Ok(recording) => Ok(Keeping { recording, wanted }),
            Err(error) if wanted => Err(Failure::usage(error.to_string())),
            Err(error) => {
                crate::print_message(&format!("this result is not stored: {error}"));
                Ok(Keeping { recording: None, wanted })
            }
        }
    }
}

/// Returns the command line of this process without its secrets, including those of the plans.
pub(crate) fn command_line(plans: &[&Plan]) -> String {
    let words = crate::command_words().into_iter().skip(1);
    let words: Vec<String> = std::iter::once("loadstone".to_owned()).chain(words).collect();
    store::masked_command(&words, plans)
}

/// Result that is being written; does nothing without a store.
pub(crate) struct Keeping {
    recording: Option<Recording>,
    wanted: bool,
}

impl Keeping {
    /// Returns a writer that stores nothing.
    pub(crate) fn without_store() -> Keeping {
        Keeping { recording: None, wanted: false }
    }

    /// Stores a finished step of a ramp.
    pub(crate) fn step(&self, index: usize, step: &RampStepRecord) {
        if let Some(recording) = &self.recording {
            recording.step(index, step);
        }
    }

    /// # Errors
    /// Fails like [`Keeping::finish_run`].
    pub(crate) fn finish_ramp(self, ramp: &RampRecord, quiet: bool) -> Result<(), Failure> {
        self.finish(quiet, |store, id| store.finish_ramp(id, ramp))
    }

    /// Watches the measurement `index`: the repeat of a run, the step of a ramp.
    pub(crate) fn watcher(&self, index: usize) -> Option<Box<dyn Watcher>> {
        let seconds = self.recording.as_ref()?.measurement(index);
        Some(Box::new(StoreWatcher(seconds)))
    }

    /// # Errors
    /// Fails for a requested store that did not accept the result: exit code 5.
    pub(crate) fn finish_run(self, run: &RunRecord, quiet: bool) -> Result<(), Failure> {
        self.finish(quiet, |store, id| store.finish_run(id, run))
    }

    /// Stores a finished run of one side (0 or 1) of a comparison, the `index`th of that side.
    pub(crate) fn side(&self, side: usize, index: usize, run: &RunRecord) {
        if let Some(recording) = &self.recording {
            recording.side(side, index, run);
        }
    }

    /// # Errors
    /// Fails like [`Keeping::finish_run`].
    pub(crate) fn finish_compare(
        self,
        compare: &CompareRecord,
        runs: &[Vec<RunRecord>],
        quiet: bool,
    ) -> Result<(), Failure> {
        self.finish(quiet, |store, id| store.finish_compare(id, compare, runs))
    }

    /// Stores a finished case of a torture run, the `index`th.
    pub(crate) fn case(&self, index: usize, over: impl FnOnce() -> OverCase) {
        if let Some(recording) = &self.recording {
            recording.case(index, over());
        }
    }

    /// # Errors
    /// Fails like [`Keeping::finish_run`].
    pub(crate) fn finish_torture(
        self,
        torture: &TortureRecord,
        quiet: bool,
    ) -> Result<(), Failure> {
        self.finish(quiet, |store, id| store.finish_torture(id, torture))
    }

    /// Finishes the result by `end`, and reports where it is stored.
    fn finish(
        self,
        quiet: bool,
        end: impl FnOnce(&mut Store, &RunId) -> Result<(), StoreError>,
    ) -> Result<(), Failure> {
        let Some(recording) = self.recording else { return Ok(()) };
        let error = match recording.finish(end) {
            Ok(kept) => {
                print_end(&kept, quiet);
                return Ok(());
            }
            Err(error) => error,
        };
        let text = format!("this result is not stored: {error}");
        if self.wanted {
            return Err(Failure { code: Code::NotWritten, text });
        }
        crate::print_message(&text);
        Ok(())
    }

    /// Removes the empty result from the store.
    pub(crate) fn discard(self) {
        if let Some(Err(error)) = self.recording.map(Recording::discard) {
            crate::print_message(&format!("an empty result remains in the store: {error}"));
        }
    }
}

fn print_end(kept: &RecordingEnd, quiet: bool) {
    if kept.late > 0 {
        crate::print_message(&format!(
            "the store was too slow for {} of the parts while they ran; the stored result is \
             complete",
            kept.late
        ));
    }
    if let Some(trouble) = &kept.trouble {
        crate::print_message(&format!("while it ran: {trouble}; the stored result is complete"));
    }
    if !quiet {
        crate::print_message(&format!("stored as {0}: loadstone runs show {0}", kept.id));
    }
}

/// Sends seconds to the thread that writes them.
struct StoreWatcher(Seconds);

impl Watcher for StoreWatcher {
    fn agents(&mut self, agents: &[AgentNow]) {
        self.0.agents(agents);
    }

    fn second(&mut self, second: &Second, total: &Snapshot) {
        self.0.second(second, total);
    }

    fn calls(&mut self, _: &[CallRecord]) -> anyhow::Result<()> {
        Ok(())
    }

    fn end(&mut self) {}
}
