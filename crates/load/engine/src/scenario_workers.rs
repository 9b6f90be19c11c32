//! Several loads at once on one core: one worker for each load, sharing a driver. The workers are
//! independent; the collector counts them as one worker.

use crate::collect::Row;
use crate::link::{Link, Order};
use crate::setup::LateShare;
use crate::worker::{Driven, Turn, Worker};
use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use sample::{CallRecord, Ends, QuicEnd, SocketFacts};
use stats::Snapshot;
use std::collections::BTreeMap;
use std::ops::Range;
use units::Nanos;

/// The workers of one core, one for each load.
#[derive(Debug)]
pub struct ScenarioWorkers {
    workers: Vec<(Worker, bool)>,
    rows: Rows,
}

impl ScenarioWorkers {
    /// Combines the workers of one core.
    /// `id`: the number of the core's worker; `workers`: one for each scenario, in the plan's order.
    pub fn new(id: u32, workers: Vec<Worker>) -> ScenarioWorkers {
        let reached = vec![Nanos::ZERO; workers.len()];
        let rows = Rows { id, pending: BTreeMap::new(), reached, spare: None };
        ScenarioWorkers {
            workers: workers.into_iter().map(|worker| (worker, false)).collect(),
            rows,
        }
    }
}

impl Driven for ScenarioWorkers {
    fn turn<I: Io>(&mut self, io: &mut I, link: &mut dyn Link) -> Turn {
        let of = self.workers.len() as u32;
        let mut wake = None;
        for (number, (worker, done)) in self.workers.iter_mut().enumerate() {
            if *done {
                continue;
            }
            let mut io = OwnSlots { io, number: number as u32, of };
            let mut link = WorkerLink { number, rows: &mut self.rows, link };
            match worker.turn(&mut io, &mut link) {
                Turn::Wait(until) => wake = Some(wake.map_or(until, |at: Nanos| at.min(until))),
                Turn::Done => *done = true,
            }
        }
        wake.map_or(Turn::Done, Turn::Wait)
    }

    fn handle<I: Io>(&mut self, io: &mut I, ready: Ready) {
        let of = self.workers.len() as u32;
        let number = ready.slot % of;
        let Some((worker, _)) = self.workers.get_mut(number as usize) else { return };
        worker.handle(&mut OwnSlots { io, number, of }, Ready { slot: ready.slot / of, ..ready });
    }
}

/// Driver of one of several workers: every `of`-th slot of the shared driver belongs to this
/// worker.
struct OwnSlots<'a, I> {
    io: &'a mut I,
    number: u32,
    of: u32,
}

impl<I> OwnSlots<'_, I> {
    fn slot(&self, slot: Slot) -> Slot {
        slot * self.of + self.number
    }
}

impl<I: Io> Io for OwnSlots<'_, I> {
    fn now(&mut self) -> Nanos {
        self.io.now()
    }

    fn open(&mut self, slot: Slot, peer: &Peer, options: &OpenOptions) -> Result<(), IoError> {
        self.io.open(self.slot(slot), peer, options)
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        self.io.write(self.slot(slot), bytes)
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        self.io.read(self.slot(slot), buffer)
    }

    fn take(&mut self, slot: Slot, buffer: &mut Box<[u8]>) -> Result<Range<usize>, IoError> {
        self.io.take(self.slot(slot), buffer)
    }

    fn send(&mut self, slot: Slot, datagrams: &[u8], each: usize) -> Result<usize, IoError> {
        self.io.send(self.slot(slot), datagrams, each)
    }

    fn receive(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<(usize, usize), IoError> {
        self.io.receive(self.slot(slot), buffer)
    }

    fn close(&mut self, slot: Slot, how: Close) {
        self.io.close(self.slot(slot), how);
    }

    fn shutdown_write(&mut self, slot: Slot) {
        self.io.shutdown_write(self.slot(slot));
    }

    fn send_urgent(&mut self, slot: Slot, byte: u8) {
        self.io.send_urgent(self.slot(slot), byte);
    }

    fn facts(&mut self, slot: Slot) -> Option<SocketFacts> {
        self.io.facts(self.slot(slot))
    }

    fn quic(&mut self, slot: Slot) -> Option<QuicEnd> {
        self.io.quic(self.slot(slot))
    }

    fn carriers(&mut self) -> u64 {
        self.io.carriers()
    }

    fn failure_text(&mut self, slot: Slot) -> Option<String> {
        self.io.failure_text(self.slot(slot))
    }

    /// Waits for all workers of the core.
    fn wait(&mut self, _: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
    }

    /// Returns the busy-waiting time, which only the first worker counts.
    fn spin(&self) -> Nanos {
        if self.number == 0 { self.io.spin() } else { Nanos::ZERO }
    }
}

/// The link of one of several workers.
struct WorkerLink<'a> {
    number: usize,
    rows: &'a mut Rows,
    link: &'a mut dyn Link,
}

impl Link for WorkerLink<'_> {
    fn order(&mut self) -> Order {
        self.link.order()
    }

    fn row(&mut self, row: Row) -> Box<Snapshot> {
        self.rows.add(self.number, row, self.link)
    }

    fn log(&mut self, calls: &mut Vec<CallRecord>) {
        self.link.log(calls);
    }

    fn report_script_failure(&mut self, text: String) {
        self.link.report_script_failure(text);
    }

    fn more(&mut self, taken: usize) -> Option<LateShare> {
        self.link.more(taken)
    }

    fn ends(&mut self, ends: &mut Ends) {
        self.link.ends(ends);
    }
}

/// Rows of the workers of one core, until all of them have passed an edge.
#[derive(Debug)]
struct Rows {
    id: u32,
    pending: BTreeMap<Nanos, Row>,
    /// The latest edge of each worker; `NEVER` when it is done.
    reached: Vec<Nanos>,
    /// Memory of a collected row, cleared, for the next one.
    spare: Option<Box<Snapshot>>,
}

impl Rows {
    /// Adds a row and returns its memory, cleared; passes on completed rows.
    fn add(&mut self, number: usize, row: Row, link: &mut dyn Link) -> Box<Snapshot> {
        self.reached[number] = if row.last { Nanos::NEVER } else { row.edge };
        let (worker, spare) = (self.id, &mut self.spare);
        let joint = self.pending.entry(row.edge).or_insert_with(|| Row {
            worker,
            start: row.start,
            end: row.end,
            edge: row.edge,
            snapshot: spare.take().unwrap_or_default(),
            open_connections: 0,
            connections_peak: 0,
            in_flight: 0,
            last_done: row.last_done,
            first_late: row.first_late,
            cpu: Nanos::ZERO,
            passed: Nanos::ZERO,
            last: false,
        });
        let peak = joint.snapshot.flight_peak + row.snapshot.flight_peak;
        joint.snapshot.merge_scenario(number, &row.snapshot);
        // concurrent peaks are added, like those of several cores
        joint.snapshot.flight_peak = peak;
        joint.start = joint.start.min(row.start);
        joint.end = joint.end.max(row.end);
        joint.open_connections += row.open_connections;
        joint.connections_peak += row.connections_peak;
        joint.in_flight += row.in_flight;
        joint.last_done = joint.last_done.max(row.last_done);
        joint.first_late = joint.first_late.min(row.first_late);
        self.pass_records(link);
        let mut clear = row.snapshot;
        clear.clear();
        clear
    }

    fn pass_records(&mut self, link: &mut dyn Link) {
        let all = self.reached.iter().copied().min().unwrap_or(Nanos::NEVER);
        while let Some(entry) = self.pending.first_entry() {
            if *entry.key() > all {
                break;
            }
            let mut row = entry.remove();
            row.last = all == Nanos::NEVER && self.pending.is_empty();
            self.spare = Some(link.row(row));
        }
    }
}
