//! Conservation and merging of snapshots under random events.

use crate::{Recorder, Snapshot};
use proptest::prelude::*;
use sample::{FailureClass, Outcome, Sample, SocketFacts};
use units::{Nanos, Purpose, Seed, Stream};

const WINDOW: (Nanos, Nanos) = (Nanos(20_000_000), Nanos(200_000_000));

/// A worker in miniature: queued calls and calls in flight, driven by random events.
struct Model {
    recorder: Recorder,
    random: Stream,
    now: Nanos,
    queue: Vec<Nanos>,
    /// (intended, issued)
    flight: Vec<(Nanos, Nanos)>,
    /// Counts by phase: due, then one per outcome as in `Outcome`.
    tally: [[u64; 6]; 2],
    flight_integral: u128,
}

impl Model {
    fn new(seed: u64) -> Model {
        Model {
            recorder: Recorder::new(3, WINDOW),
            random: Seed(seed).stream(Purpose::Simulation, 0),
            now: Nanos::ZERO,
            queue: Vec::new(),
            flight: Vec::new(),
            tally: [[0; 6]; 2],
            flight_integral: 0,
        }
    }

    fn step_time(&mut self) {
        let later = self.now + Nanos(self.random.below(1_000_000));
        let (from, to) = (self.now.max(WINDOW.0), later.min(WINDOW.1));
        self.flight_integral += u128::from((to - from).0) * self.flight.len() as u128;
        self.now = later;
    }

    fn count(&mut self, intended: Nanos, column: usize) {
        self.tally[usize::from(intended >= WINDOW.0)][column] += 1;
    }

    fn event(&mut self) {
        self.step_time();
        match self.random.below(8) {
            0..3 => {
                let intended = self.now - Nanos(self.random.below(3_000_000));
                self.recorder.due(intended);
                self.count(intended, 0);
                self.queue.push(intended);
            }
            3 | 4 if !self.queue.is_empty() => {
                let intended = self.queue.remove(0);
                self.recorder.issued(intended, self.now);
                self.flight.push((intended, self.now));
            }
            5 if !self.queue.is_empty() => self.leave_queue(),
            6 | 7 if !self.flight.is_empty() => {
                let index = self.random.below(self.flight.len() as u64) as usize;
                let outcomes = [
                    Outcome::Succeeded,
                    Outcome::Succeeded,
                    Outcome::Failed,
                    Outcome::TimedOut,
                    Outcome::Abandoned,
                ];
                let outcome = outcomes[self.random.below(5) as usize];
                let (intended, issued) = self.flight.swap_remove(index);
                self.done(intended, issued, outcome, true);
            }
            _ => {
                let rtt = Nanos(self.random.below(1_000_000));
                let retransmits = self.random.below(3);
                let conforming = [None, Some(true), Some(false)][retransmits as usize];
                self.recorder.connection_closed(Some(SocketFacts { retransmits, rtt }), conforming);
            }
        }
    }

    /// Ends the wait of the oldest arrival: dropped, timed out or abandoned.
    fn leave_queue(&mut self) {
        let intended = self.queue.remove(0);
        match self.random.below(3) {
            0 => {
                self.recorder.dropped(intended, FailureClass::ConnectionLimit);
                self.count(intended, 1 + Outcome::Dropped as usize);
            }
            1 => self.done(intended, Nanos::ZERO, Outcome::TimedOut, false),
            _ => self.done(intended, Nanos::ZERO, Outcome::Abandoned, false),
        }
    }

    fn done(&mut self, intended: Nanos, issued: Nanos, outcome: Outcome, was_issued: bool) {
        let classes = FailureClass::ALL;
        let class = classes[self.random.below(classes.len() as u64) as usize];
        let sample = Sample {
            target: self.random.below(5) as u32,
            intended,
            issued,
            admitted: issued,
            sent: issued,
            first_byte: if outcome == Outcome::Succeeded { issued } else { Nanos::ZERO },
            done: self.now,
            status: [0, 200, 503][self.random.below(3) as usize],
            class: (outcome != Outcome::Succeeded).then_some(class),
            bytes_sent: self.random.below(100),
            bytes_received: self.random.below(1000),
            body_bytes: self.random.below(500),
            decoded_bytes: self.random.below(900),
            redirects: self.random.below(2) as u16,
            ..Sample::default()
        };
        self.recorder.done(&sample, outcome, was_issued);
        if outcome == Outcome::Succeeded && intended >= WINDOW.0 {
            let name = format!("part{}", self.random.below(3));
            let duration = Nanos(self.random.below(1_000_000_000));
            self.recorder.now.server_timings.record(&name, duration);
        }
        self.count(intended, 1 + outcome as usize);
    }

    fn swap(&mut self) -> Snapshot {
        *self.recorder.swap(self.now, Box::new(Snapshot::prepared(3)))
    }

    /// Ends the run: waiting calls time out, calls in flight are abandoned.
    fn finish(&mut self) {
        while !self.queue.is_empty() {
            self.leave_queue();
        }
        while !self.flight.is_empty() {
            self.step_time();
            let (intended, issued) = self.flight.remove(0);
            self.done(intended, issued, Outcome::Abandoned, true);
        }
    }
}

/// Snapshots of a run with this many events, cut at random places.
fn run(seed: u64, events: u32, cuts: bool) -> (Vec<Snapshot>, Model) {
    let mut model = Model::new(seed);
    let mut cutter = Seed(seed).stream(Purpose::Simulation, 1);
    let mut snapshots = Vec::new();
    for _ in 0..events {
        model.event();
        if cuts && cutter.below(10) == 0 {
            snapshots.push(model.swap());
        }
    }
    (snapshots, model)
}

fn merged<'a>(snapshots: impl IntoIterator<Item = &'a Snapshot>) -> Snapshot {
    let mut total = Snapshot::default();
    snapshots.into_iter().for_each(|snapshot| total.merge(snapshot));
    total
}

/// Formats all counts of a snapshot as text.
fn digest(snapshot: &Snapshot) -> String {
    let s = snapshot;
    let hists = [
        &s.succeeded,
        &s.failed,
        &s.timed_out,
        &s.service,
        &s.slip,
        &s.wait,
        &s.lag,
        &s.connect,
        &s.tls,
        &s.first_byte,
        &s.transfer,
        &s.connections.rtt,
    ];
    let hists: Vec<_> = hists.iter().map(|hist| hist.buckets()).collect();
    let targets: Vec<_> = s
        .targets
        .iter()
        .map(|t| (t.succeeded, t.failed, t.timed_out, t.body_bytes, t.response.buckets()))
        .collect();
    let timings: Vec<_> =
        s.server_timings.named().map(|(name, hist)| (name, hist.buckets())).collect();
    let timings = (timings, s.server_timings.other().buckets(), s.server_timings.malformed());
    let c = &s.connections;
    let connections = (c.attempted, c.established, c.closed, c.setup_sum, c.judged, c.conforming);
    format!(
        "{:?} {:?} {hists:?} {targets:?} {timings:?} {connections:?} {} {:?} {} {} {:?} {:?} {:?} {:?} {:?}",
        s.counts,
        s.warm_up,
        c.retransmits,
        c.tls,
        s.in_window,
        s.good_in_window,
        s.exchange_sum,
        s.status.seen().collect::<Vec<_>>(),
        s.failures,
        (s.bytes_sent, s.bytes_received, s.body_bytes, s.decoded_bytes, s.redirects),
        (s.sessions, s.flight_integral, s.flight_peak, s.spin),
    )
}

proptest! {
    #[test]
    fn nothing_is_lost_under_random_events(seed in any::<u64>(), events in 0u32..400) {
        let (mut snapshots, mut model) = run(seed, events, true);
        model.finish();
        snapshots.push(model.swap());
        let mut total = Snapshot::default();
        for snapshot in &snapshots {
            prop_assert_eq!(snapshot.counts.conserved(), Ok(()));
            total.merge(snapshot);
            prop_assert_eq!(total.counts.conserved(), Ok(()));
            prop_assert_eq!(total.warm_up.conserved(), Ok(()));
        }
        for (counts, tally) in [(total.warm_up, model.tally[0]), (total.counts, model.tally[1])] {
            prop_assert_eq!((counts.queued, counts.in_flight), (0, 0));
            let found = [counts.due, counts.succeeded, counts.failed, counts.timed_out, counts.dropped, counts.abandoned];
            prop_assert_eq!(found, tally);
        }
        let counts = total.counts;
        let response = total.response();
        prop_assert_eq!(response.count(), counts.succeeded + counts.timed_out, "failed calls stand apart");
        prop_assert_eq!(total.failed.count(), counts.failed);
        prop_assert!(total.in_window <= counts.done() + total.warm_up.done());
        let by_target: u64 = total.targets.iter().map(|t| t.succeeded + t.failed + t.timed_out).sum();
        prop_assert_eq!(by_target, counts.done());
    }

    #[test]
    fn the_flight_integral_is_that_of_the_calls_in_flight(seed in any::<u64>(), events in 0u32..400) {
        let (mut snapshots, mut model) = run(seed, events, true);
        snapshots.push(model.swap());
        prop_assert_eq!(merged(&snapshots).flight_integral, model.flight_integral);
        prop_assert_eq!(model.recorder.flight(), model.flight.len() as u64);
    }

    #[test]
    fn intervals_in_any_order_are_the_whole(seed in any::<u64>(), events in 0u32..300) {
        let (mut parts, mut model) = run(seed, events, true);
        parts.push(model.swap());
        let (_, mut whole) = run(seed, events, false);
        let whole = digest(&whole.swap());
        prop_assert_eq!(digest(&merged(&parts)), whole.clone());
        prop_assert_eq!(digest(&merged(parts.iter().rev())), whole);
    }

    #[test]
    fn merging_is_associative_and_commutative(seeds in any::<[u64; 3]>(), events in 1u32..200) {
        let [a, b, c] = seeds.map(|seed| run(seed, events, false).1.swap());
        let left = merged([&merged([&a, &b]), &c]);
        let right = merged([&a, &merged([&b, &c])]);
        let turned = merged([&c, &b, &a]);
        prop_assert_eq!(digest(&left), digest(&right));
        prop_assert_eq!(digest(&left), digest(&turned));
        prop_assert_eq!(left.response().summary(), right.response().summary());
        let mut with_nothing = left.clone();
        with_nothing.merge(&Snapshot::default());
        prop_assert_eq!(digest(&with_nothing), digest(&left));
    }

    #[test]
    fn a_cleared_snapshot_counts_like_a_new_one(seed in any::<u64>(), events in 1u32..200) {
        let (_, mut first) = run(seed, events, false);
        let mut used = Box::new(first.swap());
        used.clear();
        prop_assert_eq!(digest(&used), digest(&Snapshot::prepared(3)));
        let (_, mut again) = run(seed ^ 1, events, false);
        let (_, mut fresh) = run(seed ^ 1, events, false);
        let (_first, _second) = (again.recorder.swap(again.now, used), fresh.swap());
        for model in [&mut again, &mut fresh] {
            (0..50).for_each(|_| model.event());
        }
        prop_assert_eq!(digest(&again.swap()), digest(&fresh.swap()));
    }
}

#[test]
fn a_broken_count_is_reported() {
    let (_, mut model) = run(1, 100, false);
    let mut snapshot = model.swap();
    assert_eq!(snapshot.counts.conserved(), Ok(()));
    snapshot.counts.due += 1;
    assert!(snapshot.counts.conserved().unwrap_err().contains("conservation broken"));
}

#[test]
fn targets_are_counted_in_the_rows_of_the_table() {
    let mut recorder = Recorder::new(0, WINDOW).with_rows([1, 0, 1].into());
    recorder.now.expect_rows(2);
    for target in 0..4 {
        recorder.due(WINDOW.0);
        recorder.issued(WINDOW.0, WINDOW.0);
        let times = (WINDOW.0, WINDOW.0 + Nanos(1 + u64::from(target)));
        let sample = Sample { intended: times.0, done: times.1, target, ..Sample::default() };
        recorder.done(&sample, Outcome::Succeeded, true);
    }
    // a target beyond the table has its own number; targets beyond the rows share the last row
    let counts: Vec<u64> = recorder.now.targets.iter().map(|row| row.succeeded).collect();
    assert_eq!(counts, [1, 3]);
}
