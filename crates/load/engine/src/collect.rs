//! The collector: merges the workers' rows into the run's total and its time series, checks the
//! conservation of calls at each merge, and evaluates the rule that aborts a run.

use crate::setup::Setup;
use crate::source::arrival_spec;
use plan::{AbortRule, Load};
use stats::{
    BLOCKS_MIN, Blocks, Counts, Looks, Measurement, Second, Snapshot, Spread, TargetSlices,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Nanos;
use workload::schedule::{Schedule, Share};

/// One worker's interval.
#[derive(Debug)]
pub struct Row {
    pub worker: u32,
    pub start: Nanos,
    pub end: Nanos,
    /// The edge of the series at which the row ends; all workers have the same edges.
    pub edge: Nanos,
    pub snapshot: Box<Snapshot>,
    pub open_connections: u64,
    /// Highest number of connections open at once within the row.
    pub connections_peak: u64,
    pub in_flight: u64,
    /// Instant at which the worker's latest outcome was known.
    pub last_done: Nanos,
    /// Lateness of the worker's first call; `NEVER` before.
    pub first_late: Nanos,
    /// CPU time of the worker since its previous row, and the elapsed time. The worker does not
    /// read these clocks: its link fills them in.
    pub cpu: Nanos,
    pub passed: Nanos,
    /// The worker's last row.
    pub last: bool,
}

/// Merged counts of several workers for the same interval.
#[derive(Debug, Default)]
struct Pending {
    snapshot: Snapshot,
    span: Nanos,
    /// Sums over the workers: CPU time without spinning, and the time in which it was used.
    busy: Nanos,
    worker_time: Nanos,
    open_connections: u64,
    connections_peak: u64,
    in_flight: u64,
    flight_peak: u64,
}

/// Merges rows in any order.
#[derive(Debug)]
pub struct Collector {
    setup: Arc<Setup>,
    pending: BTreeMap<Nanos, Pending>,
    /// The latest edge each worker has reported; `NEVER` for a worker that is done.
    reached: Vec<Nanos>,
    total: Snapshot,
    series: Vec<Second>,
    slices: TargetSlices,
    connections_peak: u64,
    flight_peak: u64,
    last_done: Nanos,
    /// Instant at which the last worker finished.
    ended: Nanos,
    /// Time for which the condition of the abort rule has held without interruption.
    held: Nanos,
    aborted: Option<String>,
    /// For each objective: its blocks, from the rows so far.
    blocks: Vec<Blocks>,
    /// True once `--until-sure` ended the run: every objective is decided.
    is_sure: bool,
}

impl Collector {
    pub fn new(setup: Arc<Setup>) -> Collector {
        let reached = vec![Nanos::ZERO; setup.workers as usize];
        let blocks = vec![Blocks::default(); setup.plan.measure.slo.len()];
        Collector {
            pending: BTreeMap::new(),
            reached,
            total: Snapshot::default(),
            series: Vec::new(),
            slices: TargetSlices::default(),
            connections_peak: 0,
            flight_peak: 0,
            last_done: setup.start,
            ended: setup.start,
            held: Nanos::ZERO,
            aborted: None,
            blocks,
            is_sure: false,
            setup,
        }
    }

    /// Adds a row; returns its memory, cleared, and the seconds that are now complete.
    pub fn add(&mut self, row: Row) -> (Box<Snapshot>, &[Second]) {
        let Row { worker, start, end, edge, mut snapshot, .. } = row;
        self.total.merge(&snapshot);
        for counts in [&self.total.counts, &self.total.warm_up] {
            // law 2: a measurement that loses a call is worse than no measurement
            if let Err(broken) = counts.conserved() {
                panic!("{broken}");
            }
        }
        let pending = self.pending.entry(edge).or_default();
        pending.snapshot.merge(&snapshot);
        pending.span = pending.span.max(end - start);
        pending.busy += row.cpu - snapshot.spin;
        pending.worker_time += row.passed;
        pending.open_connections += row.open_connections;
        pending.connections_peak += row.connections_peak;
        pending.in_flight += row.in_flight;
        pending.flight_peak += snapshot.flight_peak;
        self.last_done = self.last_done.max(row.last_done);
        if row.last {
            self.ended = self.ended.max(end);
        }
        self.reached[worker as usize] = if row.last { Nanos::NEVER } else { edge };
        let before = self.series.len();
        self.complete();
        snapshot.clear();
        (snapshot, &self.series[before..])
    }

    /// Removes the counts that were added for a machine considered lost: the machine is back, and
    /// its own rows follow.
    pub fn take_back(&mut self, measured: &Counts, warm_up: &Counts) {
        for (mine, theirs) in
            [(&mut self.total.counts, measured), (&mut self.total.warm_up, warm_up)]
        {
            mine.due = mine.due.saturating_sub(theirs.due);
            mine.lost = mine.lost.saturating_sub(theirs.lost);
            mine.queued -= theirs.queued;
            mine.in_flight -= theirs.in_flight;
            if let Err(broken) = mine.conserved() {
                panic!("{broken}");
            }
        }
    }

    /// Adds a row of an interval that the series has already passed; it counts only in the total.
    pub fn add_late(&mut self, row: Row) {
        self.total.merge(&row.snapshot);
        self.last_done = self.last_done.max(row.last_done);
        if row.last {
            self.ended = self.ended.max(row.end);
            self.reached[row.worker as usize] = Nanos::NEVER;
        }
        for counts in [&self.total.counts, &self.total.warm_up] {
            if let Err(broken) = counts.conserved() {
                panic!("{broken}");
            }
        }
    }

    /// Returns true if a rule of the plan ends the run early: `--abort-if`, or `--until-sure` with
    /// every objective decided.
    pub fn is_over(&self) -> bool {
        self.aborted.is_some() || self.is_sure
    }

    pub fn total(&self) -> &Snapshot {
        &self.total
    }

    /// Turns intervals that every worker has passed into rows of the series.
    fn complete(&mut self) {
        let all = self.reached.iter().copied().min().unwrap_or(Nanos::NEVER);
        while let Some(entry) = self.pending.first_entry() {
            if *entry.key() > all {
                break;
            }
            let (edge, pending) = entry.remove_entry();
            self.watch(edge, &pending);
            self.divide(edge, &pending.snapshot);
            self.connections_peak = self.connections_peak.max(pending.connections_peak);
            self.flight_peak = self.flight_peak.max(pending.flight_peak);
            // a run that ends on an edge has a last row of zero length: it is kept only if it has
            // counts
            let counts = [&pending.snapshot.counts, &pending.snapshot.warm_up];
            if pending.span > Nanos::ZERO
                || counts.iter().any(|counts| **counts != Counts::default())
            {
                self.series.push(self.second(edge, &pending));
            }
        }
    }

    fn second(&self, edge: Nanos, pending: &Pending) -> Second {
        let snapshot = &pending.snapshot;
        let response = snapshot.response();
        let from = self.setup.measure_from();
        let span = pending.span.as_secs_f64();
        let warm_up = edge <= from;
        let at_s = edge.as_secs_f64() - self.setup.plan.measure.interval.as_secs_f64();
        Second {
            at_s: at_s - from.as_secs_f64(),
            span_s: span,
            counts: if warm_up { snapshot.warm_up } else { snapshot.counts },
            warm_up,
            bytes_received: snapshot.bytes_received,
            body_bytes: snapshot.body_bytes,
            p50: response.quantile(0.5),
            p90: response.quantile(0.9),
            p99: response.quantile(0.99),
            max: response.max(),
            mean: response.mean(),
            spread: Spread::new(&response),
            endings: Some(snapshot.endings()),
            streams: snapshot.streams.interval(),
            messages: snapshot.messages.interval(),
            slip_p99: snapshot.slip.quantile(0.99),
            in_flight: pending.in_flight,
            open_connections: pending.open_connections,
            driver_cpu: pending.busy.as_secs_f64() / pending.worker_time.as_secs_f64().max(1e-9),
        }
    }

    /// Checks scripts that end the run, and `--abort-if`: its condition must hold without
    /// interruption for the rule's time. Ignores rows outside the window: most figures of the
    /// warm-up and of the time after the end are 0.
    fn watch(&mut self, edge: Nanos, pending: &Pending) {
        if let Some((_, why)) =
            pending.snapshot.journeys.aborted.iter().find_map(|it| it.example.as_ref())
        {
            self.aborted.get_or_insert_with(|| format!("{}: {why}", stats::ABORTED_BY_SCRIPT));
        }
        let Some(AbortRule { objective, hold, text }) = &self.setup.plan.stop.abort_if else {
            return;
        };
        if edge <= self.setup.measure_from() || edge > self.setup.measure_until() {
            return;
        }
        let figures = objective.figures(&pending.snapshot, pending.span);
        if objective.evaluate(&figures).1 {
            self.held += pending.span;
            // rows are late by the loop's lag, never early: tolerate a tenth of a row
            if self.held + Nanos(pending.span.0 / 10) >= *hold && self.aborted.is_none() {
                self.aborted = Some(text.clone());
            }
        } else {
            self.held = Nanos::ZERO;
        }
    }

    /// Adds a row to the blocks of each objective. Calls that end after the window belong to its
    /// last block.
    fn divide(&mut self, edge: Nanos, row: &Snapshot) {
        if edge <= self.setup.measure_from() {
            return;
        }
        let inside = edge <= self.setup.measure_until();
        if inside {
            self.slices.push(&row.targets);
        }
        let objectives = &self.setup.plan.measure.slo;
        for (objective, blocks) in objectives.iter().zip(&mut self.blocks) {
            let block = objective.block(row);
            if inside { blocks.push(block) } else { blocks.extend_last(&block) }
        }
        let enough = self.blocks.iter().all(|blocks| blocks.count() >= BLOCKS_MIN);
        if self.setup.plan.stop.until_sure && inside && enough {
            let decided = |(objective, blocks): (&stats::Objective, &Blocks)| {
                let ruling = objective.rule(&self.total, Nanos::ZERO, blocks, Looks::Always);
                ruling.undecided.is_none() && ruling.unsure.is_none()
            };
            self.is_sure |= objectives.iter().zip(&self.blocks).all(decided);
        }
    }

    /// Records the plan's intention for each of several loads.
    fn record_intentions(&mut self, end: Nanos) {
        let lanes = self.setup.per_scenario().unwrap_or_default();
        let wanted = lanes.iter().map(|lane| Some(Intention::new(lane)?.until(end).0));
        for (tally, wanted) in self.total.scenarios.iter_mut().zip(wanted) {
            tally.intended = wanted;
        }
    }

    /// Returns the finished run.
    pub fn finish(mut self, interrupted: bool) -> Measurement {
        self.reached.fill(Nanos::NEVER);
        self.complete();
        let from = self.setup.measure_from();
        let until = self.setup.measure_until();
        let cut_short = interrupted || self.is_over() || self.setup.plan.stop.bytes.is_some();
        // a script may stop its worker before its time
        let early = self.ended > self.setup.start && self.ended < until;
        let counted = self.setup.requests_max().is_some() || cut_short || early;
        let end = if counted { self.last_done.min(until) } else { until };
        let window = end - from;
        let intended = if self.setup.plan.scenarios.is_empty() {
            Intention::new(&self.setup).map(|wanted| wanted.until(end))
        } else {
            self.record_intentions(end);
            None
        };
        // peaks of the workers within an interval are added; the sum is exact if they coincide
        self.total.flight_peak = self.flight_peak;
        Measurement {
            total: self.total,
            series: self.series,
            slices: self.slices,
            window,
            elapsed: self.last_done - from,
            intended: intended.map(|(count, _)| count),
            intended_span: intended.and_then(|(_, span)| span),
            connections_peak: self.connections_peak,
            interrupted,
            aborted: self.aborted,
            blocks: self.blocks,
            looks: if self.setup.plan.stop.until_sure { Looks::Always } else { Looks::Once },
        }
    }
}

/// Computes which arrivals of an open load fall due on a part of it: the arrivals that a silent
/// machine has not reported.
#[derive(Clone, Debug)]
pub struct Owed {
    /// One schedule per open load, with the index of its first arrival after the warm-up.
    schedules: Vec<(Schedule, u64)>,
}

impl Owed {
    /// Returns `None` for a closed loop, whose arrivals depend on the responses.
    pub fn new(setup: &Arc<Setup>) -> Option<Owed> {
        let of = |setup: &Arc<Setup>| {
            let Load::Open { arrivals, .. } = &setup.plan.load else { return None };
            let schedule = Schedule::new(&arrival_spec(setup, arrivals), setup.seed, setup.start);
            let first = schedule.first_measured();
            Some((schedule, first))
        };
        let lanes = setup.per_scenario().unwrap_or_default();
        let schedules: Vec<_> = lanes.iter().filter_map(of).collect();
        (!schedules.is_empty()).then_some(Owed { schedules })
    }

    /// Returns the arrivals of the measured phase and of the warm-up that are due on these parts of
    /// the load at or before `until`.
    pub fn due(&self, parts: &[Share], until: Nanos) -> (u64, u64) {
        let sum = |total: u64| parts.iter().map(|part| part.count_of(total)).sum::<u64>();
        let of = |(schedule, first): &(Schedule, u64)| {
            let all = schedule.count_due(until);
            let warm_up = sum(all.min(*first));
            (sum(all) - warm_up, warm_up)
        };
        let add = |(due, warm): (u64, u64), (more, warmer)| (due + more, warm + warmer);
        self.schedules.iter().map(of).fold((0, 0), add)
    }
}

/// Load that an open load's plan intends for the measured window.
#[derive(Clone, Debug)]
pub struct Intention {
    schedule: Schedule,
    /// Number of arrivals of the warm-up.
    first: u64,
    /// The parts of the load of this process, and its number of warm-up arrivals.
    parts: Vec<(Share, u64)>,
    /// Length of the window if limited by time, and its calls if limited by count.
    most: Nanos,
    all: Option<u64>,
}

impl Intention {
    /// Returns `None` for a closed loop, whose plan has no rate.
    pub fn new(setup: &Setup) -> Option<Intention> {
        let Load::Open { arrivals, .. } = &setup.plan.load else { return None };
        let spec = arrival_spec(setup, arrivals);
        let schedule = Schedule::new(&spec, setup.seed, setup.start);
        let first = schedule.first_measured();
        Some(Intention {
            parts: setup.parts().iter().map(|part| (part.clone(), part.count_of(first))).collect(),
            schedule,
            first,
            most: setup.measure_until() - setup.measure_from(),
            all: setup.requests_max(),
        })
    }

    /// Returns the number of arrivals that the plan intends for this process in the measured
    /// window, up to the instant `end`; and the time that its rate takes for all of them, if their
    /// number is limited.
    pub fn until(&self, end: Nanos) -> (u64, Option<Nanos>) {
        let due = self.schedule.count_due(end);
        let count = due.saturating_sub(self.first);
        let all = self.all == Some(count);
        let span = match self.schedule.is_even() {
            // the last gap of evenly spaced calls may end after the window
            true => Some(self.schedule.measured_span(count))
                .filter(|span| all || *span > end - self.schedule.measured_from()),
            false => all.then(|| self.schedule.measured_span(count).min(self.most)),
        };
        let ours = self.parts.iter().map(|(part, warm)| part.count_of(due).saturating_sub(*warm));
        (ours.sum(), span)
    }
}
