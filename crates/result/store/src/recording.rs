//! A result that is written during the measurement, by a separate thread, so that neither the
//! workers nor the collector ever wait for a disk.

use crate::write::LiveSecond;
use crate::{Beginning, ResultKind, RunId, Store, StoreError};
use record::ramp::RampStepRecord;
use record::run::RunRecord;
use record::torture::{OverCase, TortureRecord};
use sample::AgentNow;
use stats::{Second, Snapshot};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Maximum number of seconds that wait for the disk; any more are dropped and counted.
const QUEUE_MAX: usize = 64;
/// Interval at which the complete count is rewritten, in seconds of the run, whatever the length of
/// its rows.
const TOTAL_EVERY_S: f64 = 0.9;

enum WriteJob {
    Second {
        index: usize,
        known: Box<LiveSecond>,
    },
    Step {
        index: usize,
        step: Box<RampStepRecord>,
    },
    Side {
        side: usize,
        index: usize,
        run: Box<RunRecord>,
    },
    /// A case of a torture that is over.
    Case {
        index: usize,
        over: Box<OverCase>,
    },
    /// End of the stream.
    End,
}

/// Message in the queue of the writer thread; may be cloned to observers.
#[derive(Clone, Debug)]
struct Queue {
    jobs: SyncSender<WriteJob>,
    /// Seconds for which there was no room.
    left_out: Arc<AtomicU64>,
}

/// A result being written to the store.
#[derive(Debug)]
pub struct Recording {
    id: RunId,
    queue: Queue,
    writer: JoinHandle<(Store, Option<StoreError>)>,
}

/// Final state of a result.
#[derive(Clone, Debug)]
pub struct RecordingEnd {
    pub id: RunId,
    /// Number of seconds, or cases, that were not written while it ran, because the store was too
    /// slow. The finished result has them.
    pub late: u64,
    /// Reason why some were not written, other than a lack of time.
    pub trouble: Option<StoreError>,
}

impl Recording {
    /// Begins a result and starts the thread that writes it.
    ///
    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn begin(
        mut store: Store,
        kind: ResultKind,
        beginning: &Beginning<'_>,
    ) -> Result<Recording, StoreError> {
        let id = store.begin(kind, beginning)?;
        Recording::start(store, id)
    }

    /// Begins a torture; `torture`: everything known before anything is sent.
    ///
    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn begin_torture(
        mut store: Store,
        torture: &TortureRecord,
        command_line: &str,
    ) -> Result<Recording, StoreError> {
        let id = store.begin_torture(torture, command_line)?;
        Recording::start(store, id)
    }

    fn start(mut store: Store, id: RunId) -> Result<Recording, StoreError> {
        let path = store.path.clone();
        let (jobs, inbox) = sync_channel(QUEUE_MAX);
        let this = id.clone();
        let body = move || {
            let trouble = write(&mut store, &this, &inbox);
            (store, trouble)
        };
        let thread = std::thread::Builder::new().name("store".into()).spawn(body);
        let writer = thread.map_err(|error| StoreError::io(&path, &error))?;
        Ok(Recording { id, queue: Queue { jobs, left_out: Arc::default() }, writer })
    }

    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Takes the seconds of the measurement `index`: the repeat of a run, the step of a ramp.
    pub fn measurement(&self, index: usize) -> Seconds {
        let agents = Vec::new();
        Seconds { queue: self.queue.clone(), index, total_at_s: f64::NEG_INFINITY, agents }
    }

    /// Stores a finished step of a ramp. Waits for room in the queue: no measurement is running.
    pub fn step(&self, index: usize, step: &RampStepRecord) {
        // the thread lives as long as this does
        self.queue.jobs.send(WriteJob::Step { index, step: Box::new(step.clone()) }).ok();
    }

    /// Stores a finished run of one side (0 or 1) of a comparison. Waits like [`Recording::step`].
    pub fn side(&self, side: usize, index: usize, run: &RunRecord) {
        self.queue.jobs.send(WriteJob::Side { side, index, run: Box::new(run.clone()) }).ok();
    }

    /// Stores a finished case of a torture. Never waits, because the next case is already running.
    pub fn case(&self, index: usize, over: OverCase) {
        let job = WriteJob::Case { index, over: Box::new(over) };
        if self.queue.jobs.try_send(job).is_err() {
            self.queue.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Removes the empty result from the store.
    ///
    /// # Errors
    /// Fails with a [`StoreError`].
    pub fn discard(self) -> Result<(), StoreError> {
        self.finish(|store, id| store.forget(id)).map(|_| ())
    }

    /// Waits until the queue is written, and finishes the result: `finish` is [`Store::finish_run`]
    /// or a similar function.
    ///
    /// # Errors
    /// Fails if the result could not be finished; the data written before still loads.
    pub fn finish(
        self,
        finish: impl FnOnce(&mut Store, &RunId) -> Result<(), StoreError>,
    ) -> Result<RecordingEnd, StoreError> {
        let Recording { id, queue, writer } = self;
        let late = queue.left_out.load(Ordering::Relaxed);
        // a missing thread has panicked, which the join reports
        queue.jobs.send(WriteJob::End).ok();
        let (mut store, trouble) =
            writer.join().expect("the thread that writes returns its errors and panics at none");
        finish(&mut store, &id)?;
        Ok(RecordingEnd { id, late, trouble })
    }
}

/// Sends the seconds of a measurement to the store; does nothing after the end of the recording.
#[derive(Debug)]
pub struct Seconds {
    queue: Queue,
    index: usize,
    /// Time of the last complete count, in seconds of the run.
    total_at_s: f64,
    /// The machines of a fleet; their latest state is written with the next second.
    agents: Vec<AgentNow>,
}

impl Seconds {
    /// Sets the state of a fleet's machines. Stored with the next second, replacing the previous
    /// state.
    pub fn agents(&mut self, agents: &[AgentNow]) {
        self.agents = agents.to_vec();
    }

    /// Stores a second, and everything counted so far. Never waits.
    pub fn second(&mut self, second: &Second, total: &Snapshot) {
        let due = second.at_s + second.span_s >= self.total_at_s + TOTAL_EVERY_S;
        let agents = std::mem::take(&mut self.agents);
        let known = Box::new(LiveSecond::new(second, due.then_some(total), &agents));
        match self.queue.jobs.try_send(WriteJob::Second { index: self.index, known }) {
            Ok(()) if due => self.total_at_s = second.at_s + second.span_s,
            Ok(()) => {}
            Err(_) => {
                self.queue.left_out.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Writes messages until the end; returns the first error.
fn write(store: &mut Store, id: &RunId, inbox: &Receiver<WriteJob>) -> Option<StoreError> {
    let mut trouble = None;
    let mut waiting = None;
    while let Some(job) = waiting.take().or_else(|| inbox.recv().ok()) {
        let written = match job {
            WriteJob::End => break,
            WriteJob::Step { index, step } => store.step(id, index, &step),
            WriteJob::Side { side, index, run } => store.side(id, side, index, &run),
            WriteJob::Case { index, over } => store.torture_case(id, index, &over),
            WriteJob::Second { index, known } => {
                // everything pending is written in one transaction
                let mut all = vec![*known];
                while let Ok(next) = inbox.try_recv() {
                    match next {
                        WriteJob::Second { index: of, known } if of == index => all.push(*known),
                        other => {
                            waiting = Some(other);
                            break;
                        }
                    }
                }
                store.keep_known(id, index, all)
            }
        };
        trouble = trouble.or(written.err());
    }
    trouble
}
