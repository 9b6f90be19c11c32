//! Counts of one worker in one interval, and their sums.

use crate::lives::{BEAT, Beats, ConnectionLife, Lives};
use crate::scenario::merge_scenarios;
use crate::target_tally::{TargetTally, merge_rows};
use crate::{
    Backends, Blocks, Counts, Endings, FailedResponses, Hist, Instants, JourneyTally, Looks,
    MessageTally, ScenarioTally, SecondMessages, SecondStreams, ServerTimings, Spread, StreamEnd,
    StreamMarks, StreamTally, Verified,
};
use sample::{
    EarlyFacts, FailureClass, FanOutEvent, Http2Facts, Http3Facts, LoadReport, Noticed, Outcome,
    Remark, Sample, SocketCounts, SocketFacts, SocketTime, TlsFacts,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Nanos;

/// Maximum number of rows per target; further targets share the last row, "other".
pub const TARGET_ROWS_MAX: usize = 1_000;

/// Responses by status code, 0..=999.
#[derive(Clone, Debug)]
pub struct StatusTally(Box<[u64; 1000]>);

impl Default for StatusTally {
    fn default() -> Self {
        StatusTally(Box::new([0; 1000]))
    }
}

impl StatusTally {
    #[inline]
    pub fn add(&mut self, status: u16) {
        self.0[usize::from(status.min(999))] += 1;
    }

    /// Returns (status, count) of statuses seen, in order; status 0 (no response) is excluded.
    pub fn seen(&self) -> impl Iterator<Item = (u16, u64)> {
        let numbered = self.0.iter().enumerate().skip(1).filter(|(_, count)| **count > 0);
        numbered.map(|(status, count)| (status as u16, *count))
    }

    /// Counts of several responses with one status.
    pub fn add_n(&mut self, status: u16, count: u64) {
        self.0[usize::from(status.min(999))] += count;
    }

    fn merge(&mut self, other: &StatusTally) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0.iter()) {
            *mine += theirs;
        }
    }
}

/// Adds the counts of one worker for the scenario.
fn add_to_scenario(scenario: &mut ScenarioTally, of: &Snapshot) {
    let issued = of.service.count() + of.plain.count();
    scenario.counts.merge(&of.counts);
    scenario.unissued += of.counts.dropped + of.counts.done().saturating_sub(issued);
    scenario.sessions_started += of.sessions.started;
    scenario.in_window += of.in_window;
    scenario.good_in_window += of.good_in_window;
    scenario.body_bytes += of.body_bytes;
    scenario.warm_up += of.warm_up.done();
    for times in [&of.succeeded, &of.plain, &of.timed_out] {
        scenario.response.merge(times);
    }
}

/// Connections of an interval.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    /// Connects started; connections established (with their TLS); connections ended.
    pub attempted: u64,
    pub established: u64,
    pub closed: u64,
    /// Sum of set-up times (connect and TLS) of established connections, for WebMark's S.
    pub setup_sum: Nanos,
    /// Connections judged for conformity, and those above the threshold.
    pub judged: u64,
    pub conforming: u64,
    pub retransmits: u64,
    pub rtt: Hist,
    /// Waits of calls for a stream, because all streams of their connections were in use: from the
    /// instant the call was due, or was put on its connection, until its request was sent. A call
    /// that timed out in the queue is included. Calls of the measured phase that waited.
    pub stream_wait: Hist,
    pub tls: BTreeMap<TlsFacts, u64>,
    /// Empty without HTTP/2 connections.
    pub http2: Http2Facts,
    /// Empty without HTTP/3 connections.
    pub http3: Http3Facts,
    pub early: EarlyFacts,
    pub lives: Lives,
    pub backends: Backends,
}

/// Sessions of a partly open load that fell due in the measured phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sessions {
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    pub dropped: u64,
}

/// Counts of one interval, by one worker or many: merging is associative and commutative, with
/// `Snapshot::default()` as the neutral element.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub counts: Counts,
    /// Arrivals of the warm-up, kept separate from everything below.
    pub warm_up: Counts,
    /// Response times by outcome (law 3).
    pub succeeded: Hist,
    pub failed: Hist,
    pub timed_out: Hist,
    pub service: Hist,
    pub slip: Hist,
    pub wait: Hist,
    pub lag: Hist,
    /// Response times of succeeded and timed-out calls less their lag: see [`Snapshot::without_lag`].
    pub punctual: Hist,
    pub connect: Hist,
    pub tls: Hist,
    pub first_byte: Hist,
    pub transfer: Hist,
    /// The usual success of a closed loop: no slip, request sent at once, the complete response in
    /// one read. Its response, service and first-byte times are equal: the number is written once
    /// here, and [`Snapshot::merge`] counts it in all three.
    pub plain: Hist,
    /// Completions (succeeded, failed or timed out) inside the measured window, and successful ones
    /// among them.
    pub in_window: u64,
    pub good_in_window: u64,
    /// Responses inside the measured window, and the bytes of the calls completed in it. More
    /// responses than calls if a script sends several requests as one call.
    pub answers_in_window: u64,
    pub bytes_in_window: u64,
    /// Sum of done − sent over succeeded calls, for WebMark's mean R.
    pub exchange_sum: Nanos,
    pub status: StatusTally,
    pub failures: BTreeMap<FailureClass, u64>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub body_bytes: u64,
    pub decoded_bytes: u64,
    pub redirects: u64,
    /// The server's own timings, in complete responses of any status.
    pub server_timings: ServerTimings,
    /// Responses that are streams of events, if requested.
    pub streams: StreamTally,
    /// Conversations and their messages, if connections are WebSockets.
    pub messages: MessageTally,
    pub targets: Vec<TargetTally>,
    /// Figures by kind of clients; empty if all are of one kind.
    pub clients: Vec<TargetTally>,
    /// Figures by scenario; empty if the plan has none.
    pub scenarios: Vec<ScenarioTally>,
    pub connections: Connections,
    pub sessions: Sessions,
    /// Observations of users on their journeys, in the measured phase.
    pub journeys: JourneyTally,
    /// Integral of calls in flight over time (calls · ns), and the highest number at once.
    pub flight_integral: u128,
    pub flight_peak: u64,
    /// Sum over intervals of the workers' spinning.
    pub spin: Nanos,
    /// Completions inside the measured window, in fine time steps.
    pub beats: Beats,
    /// Instants at which a limited number of calls of the measured phase fell due and were
    /// answered.
    pub instants: Instants,
    /// Bodies that were compared with those of their targets.
    pub verified: Verified,
    /// Starts of failed responses of the measured phase.
    pub failed_responses: FailedResponses,
}

/// The instants of a call, from which all its times are derived.
struct CallTimes {
    intended: Nanos,
    admitted: Nanos,
    issued: Nanos,
    sent: Nanos,
    first_byte: Nanos,
    done: Nanos,
}

impl CallTimes {
    #[inline(always)]
    fn new(sample: &Sample) -> CallTimes {
        CallTimes {
            intended: sample.intended,
            admitted: sample.admitted,
            issued: sample.issued,
            sent: sample.sent,
            first_byte: sample.first_byte,
            done: sample.done,
        }
    }
}

impl Snapshot {
    /// Merges a snapshot of one of several loads into the total, and into that load's own figures.
    pub fn merge_scenario(&mut self, scenario: usize, of: &Snapshot) {
        self.merge(of);
        if self.scenarios.len() <= scenario {
            self.scenarios.resize_with(scenario + 1, ScenarioTally::default);
        }
        add_to_scenario(&mut self.scenarios[scenario], of);
    }

    /// Returns the ends of the interval's calls.
    pub fn endings(&self) -> Endings {
        let failures = self.failures.iter().map(|(class, count)| (*class, *count));
        Endings::new(self.status.seen(), failures)
    }

    /// Prepares the structures for the usual call of a closed loop, so that recording it does not
    /// allocate.
    pub fn prepared(target_count: usize) -> Snapshot {
        let mut snapshot = Snapshot {
            plain: Hist::prepared(),
            beats: Beats::prepared(),
            instants: Instants::prepared(),
            ..Snapshot::default()
        };
        if target_count > 1 {
            let rows = target_count.min(TARGET_ROWS_MAX);
            snapshot.targets = (0..rows).map(|_| TargetTally::default()).collect();
        }
        snapshot
    }

    /// Keeps rows by target even for a single target.
    pub fn expect_rows(&mut self, count: usize) {
        let rows = count.min(TARGET_ROWS_MAX);
        self.targets.resize_with(rows, TargetTally::default);
    }

    /// Prepares the structures for calls of an open load, which have slip.
    pub fn expect_slip(&mut self) {
        for hist in [
            &mut self.succeeded,
            &mut self.service,
            &mut self.slip,
            &mut self.wait,
            &mut self.lag,
            &mut self.punctual,
            &mut self.first_byte,
            &mut self.transfer,
        ] {
            if hist.is_empty() {
                *hist = Hist::prepared();
            }
        }
    }

    /// Clears the counts and keeps the memory.
    pub fn clear(&mut self) {
        let mut fresh = Snapshot {
            targets: std::mem::take(&mut self.targets),
            clients: std::mem::take(&mut self.clients),
            server_timings: std::mem::take(&mut self.server_timings),
            streams: std::mem::take(&mut self.streams),
            messages: std::mem::take(&mut self.messages),
            beats: std::mem::take(&mut self.beats),
            instants: std::mem::take(&mut self.instants),
            ..Snapshot::default()
        };
        fresh.server_timings.clear();
        fresh.streams.clear();
        fresh.messages.clear();
        fresh.beats.clear();
        fresh.instants.clear();
        fresh.connections.lives = std::mem::take(&mut self.connections.lives);
        fresh.connections.lives.clear();
        fresh.targets.iter_mut().chain(&mut fresh.clients).for_each(TargetTally::clear);
        for (kept, old) in fresh.hists_mut().into_iter().zip(self.hists_mut()) {
            std::mem::swap(kept, old);
            kept.clear();
        }
        std::mem::swap(&mut fresh.plain, &mut self.plain);
        fresh.plain.clear();
        *self = fresh;
    }

    /// Returns the headline: response times of succeeded and timed-out calls.
    pub fn response(&self) -> Hist {
        let mut both = self.succeeded.clone();
        both.merge(&self.plain);
        both.merge(&self.timed_out);
        both
    }

    /// Returns the headline's response times, each less the call's lag: the minimum for a client
    /// that is never late. `None` if not recorded, as in results of version 0.1.
    pub fn without_lag(&self) -> Option<Hist> {
        let mut punctual = self.punctual.clone();
        punctual.merge(&self.plain);
        let answered = self.succeeded.count() + self.plain.count() + self.timed_out.count();
        (punctual.count() == answered).then_some(punctual)
    }

    pub fn merge(&mut self, other: &Snapshot) {
        self.counts.merge(&other.counts);
        self.warm_up.merge(&other.warm_up);
        for (mine, theirs) in self.hists_mut().into_iter().zip(other.hists()) {
            mine.merge(theirs);
        }
        self.succeeded.merge(&other.plain);
        self.service.merge(&other.plain);
        self.punctual.merge(&other.plain);
        self.first_byte.merge(&other.plain);
        for zeros in [&mut self.slip, &mut self.wait, &mut self.lag, &mut self.transfer] {
            zeros.record_n(Nanos::ZERO, other.plain.count());
        }
        self.in_window += other.in_window;
        self.good_in_window += other.good_in_window;
        self.answers_in_window += other.answers_in_window;
        self.bytes_in_window += other.bytes_in_window;
        self.exchange_sum += other.exchange_sum;
        self.status.merge(&other.status);
        for (class, count) in &other.failures {
            *self.failures.entry(*class).or_default() += count;
        }
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.body_bytes += other.body_bytes;
        self.decoded_bytes += other.decoded_bytes;
        self.redirects += other.redirects;
        self.server_timings.merge(&other.server_timings);
        self.streams.merge(&other.streams);
        self.messages.merge(&other.messages);
        merge_rows(&mut self.targets, &other.targets);
        merge_rows(&mut self.clients, &other.clients);
        merge_scenarios(&mut self.scenarios, &other.scenarios);
        self.connections.merge(&other.connections);
        self.sessions.started += other.sessions.started;
        self.sessions.completed += other.sessions.completed;
        self.sessions.failed += other.sessions.failed;
        self.sessions.dropped += other.sessions.dropped;
        self.journeys.merge(&other.journeys);
        self.flight_integral += other.flight_integral;
        self.flight_peak = self.flight_peak.max(other.flight_peak);
        self.spin += other.spin;
        self.beats.merge(&other.beats);
        self.instants.merge(&other.instants);
        self.verified.merge(&other.verified);
        self.failed_responses.merge(&other.failed_responses);
    }

    /// Records the times of a call that is not [plain](Snapshot::plain).
    #[inline(never)]
    fn unusual(&mut self, times: &CallTimes, outcome: Outcome, issued: bool) {
        let response = times.done - times.intended;
        match outcome {
            Outcome::Succeeded => self.succeeded.record(response),
            Outcome::Failed => self.failed.record(response),
            _ => self.timed_out.record(response),
        }
        if outcome != Outcome::Failed {
            let lag = if issued { times.issued - times.admitted } else { Nanos::ZERO };
            self.punctual.record(response - lag);
        }
        if issued {
            self.service.record(times.done - times.issued);
            self.slip.record(times.issued - times.intended);
            self.wait.record(times.admitted - times.intended);
            self.lag.record(times.issued - times.admitted);
            if times.first_byte > Nanos::ZERO {
                self.first_byte.record(times.first_byte - times.sent);
            }
        }
        if outcome == Outcome::Succeeded {
            self.transfer.record(times.done - times.first_byte);
            self.exchange_sum += times.done - times.sent;
        }
    }

    #[cold]
    fn failed_as(&mut self, class: FailureClass) {
        *self.failures.entry(class).or_default() += 1;
    }

    fn hists(&self) -> [&Hist; 14] {
        [
            &self.succeeded,
            &self.failed,
            &self.timed_out,
            &self.service,
            &self.slip,
            &self.wait,
            &self.lag,
            &self.punctual,
            &self.connect,
            &self.tls,
            &self.first_byte,
            &self.transfer,
            &self.connections.rtt,
            &self.connections.stream_wait,
        ]
    }

    fn hists_mut(&mut self) -> [&mut Hist; 14] {
        [
            &mut self.succeeded,
            &mut self.failed,
            &mut self.timed_out,
            &mut self.service,
            &mut self.slip,
            &mut self.wait,
            &mut self.lag,
            &mut self.punctual,
            &mut self.connect,
            &mut self.tls,
            &mut self.first_byte,
            &mut self.transfer,
            &mut self.connections.rtt,
            &mut self.connections.stream_wait,
        ]
    }
}

impl Connections {
    /// Counts one more connection of known quality.
    fn judge(&mut self, conforming: bool) {
        self.judged += 1;
        self.conforming += u64::from(conforming);
    }

    fn merge(&mut self, other: &Connections) {
        self.attempted += other.attempted;
        self.established += other.established;
        self.closed += other.closed;
        self.setup_sum += other.setup_sum;
        self.judged += other.judged;
        self.conforming += other.conforming;
        self.retransmits += other.retransmits;
        self.lives.merge(&other.lives);
        self.http2.merge(&other.http2);
        self.http3.merge(&other.http3);
        self.early.merge(&other.early);
        self.backends.merge(&other.backends);
        for (facts, count) in &other.tls {
            *self.tls.entry(facts.clone()).or_default() += count;
        }
    }
}

/// Writer of one worker into a snapshot. Same core, no lock; does not allocate for plain successes.
#[derive(Debug)]
pub struct Recorder {
    pub now: Box<Snapshot>,
    /// The measured window: completions inside it make the throughput.
    window: (Nanos, Nanos),
    flight: u64,
    flight_since: Nanos,
    /// Lateness of the first call of all; `NEVER` before.
    first_late: Nanos,
    /// The current beat, and the completions in earlier beats.
    beat: usize,
    beaten: (u64, u64),
    /// Row of `Snapshot::targets` by target; empty: the target's own number.
    rows: Arc<[u32]>,
}

impl Recorder {
    /// Creates a recorder without samples.
    /// `window`: first instant of the measured phase, and the instant after which no more calls
    /// become due (`Nanos::NEVER` if only a count ends the run).
    pub fn new(target_count: usize, window: (Nanos, Nanos)) -> Recorder {
        let now = Box::new(Snapshot::prepared(target_count));
        Recorder {
            now,
            window,
            flight: 0,
            flight_since: window.0,
            first_late: Nanos::NEVER,
            beat: 0,
            beaten: (0, 0),
            rows: Arc::default(),
        }
    }

    /// Returns the first instant of the measured phase.
    pub fn window_start(&self) -> Nanos {
        self.window.0
    }

    /// Counts each target in its row of this table. The rows are those of the snapshots.
    pub fn with_rows(self, rows: Arc<[u32]>) -> Recorder {
        Recorder { rows, ..self }
    }

    pub fn in_warm_up(&self, intended: Nanos) -> bool {
        intended < self.window.0
    }

    fn counts(&mut self, intended: Nanos) -> &mut Counts {
        if self.in_warm_up(intended) { &mut self.now.warm_up } else { &mut self.now.counts }
    }

    /// Records that an arrival is due; it is queued until [`Recorder::issued`] or
    /// [`Recorder::dropped`].
    #[inline]
    pub fn due(&mut self, intended: Nanos) {
        let counts = self.counts(intended);
        counts.due += 1;
        counts.queued += 1;
    }

    /// Records that a due arrival was issued.
    #[inline]
    pub fn issued(&mut self, intended: Nanos, now: Nanos) {
        let counts = self.counts(intended);
        counts.queued -= 1;
        counts.in_flight += 1;
        if self.first_late == Nanos::NEVER {
            self.first_late = now - intended;
        }
        self.flight_until(now);
        self.flight += 1;
        self.now.flight_peak = self.now.flight_peak.max(self.flight);
    }

    /// Records that a due arrival could not be issued.
    pub fn dropped(&mut self, intended: Nanos, class: FailureClass) {
        let warm_up = self.in_warm_up(intended);
        let counts = self.counts(intended);
        counts.queued -= 1;
        counts.dropped += 1;
        if !warm_up {
            *self.now.failures.entry(class).or_default() += 1;
        }
    }

    /// Records the outcome of an arrival. `issued`: false for one that ended in the queue.
    // inlined, so that the unused part of a plain call's sample is never written anywhere
    #[inline(always)]
    pub fn done(&mut self, sample: &Sample, outcome: Outcome, issued: bool) {
        let warm_up = self.in_warm_up(sample.intended);
        let counts = self.counts(sample.intended);
        match outcome {
            Outcome::Succeeded => counts.succeeded += 1,
            Outcome::Failed => counts.failed += 1,
            Outcome::TimedOut => counts.timed_out += 1,
            Outcome::Dropped => counts.dropped += 1,
            Outcome::Abandoned => counts.abandoned += 1,
        }
        if issued {
            counts.in_flight -= 1;
            self.flight_until(sample.done);
            self.flight = self.flight.saturating_sub(1);
        } else {
            counts.queued -= 1;
        }
        let completed = !matches!(outcome, Outcome::Dropped | Outcome::Abandoned);
        if completed && sample.done >= self.window.0 && sample.done <= self.window.1 {
            // whenever it fell due: throughput counts completions inside the window
            self.now.in_window += 1;
            self.now.good_in_window += u64::from(outcome == Outcome::Succeeded);
            self.now.answers_in_window += u64::from(sample.status != 0);
            self.now.bytes_in_window += sample.bytes_received;
        }
        if !warm_up {
            self.times(sample, outcome, issued);
        } else if completed {
            self.warmed_up(sample.target);
        }
    }

    #[cold]
    fn warmed_up(&mut self, target: u32) {
        let row = self.row_of(target);
        if let Some(row) = self.now.targets.get_mut(row) {
            row.warm_up += 1;
        }
    }

    /// Returns the row that counts a target.
    #[inline(always)]
    fn row_of(&self, target: u32) -> usize {
        let row = self.rows.get(target as usize).copied().unwrap_or(target);
        (row as usize).min(self.now.targets.len().saturating_sub(1))
    }

    /// Records a guide's observations; those of the warm-up are dropped.
    pub fn process(&mut self, remark: Remark) {
        if self.in_warm_up(remark.at) {
            return;
        }
        match remark.fact {
            Noticed::Judged { conforming } => self.now.connections.judge(conforming),
            _ => self.now.journeys.process(remark),
        }
    }

    /// Records a response to a call with further responses, due at `intended`; its bytes are
    /// counted with the last one. Its status is counted like the last one's: not for calls of the
    /// warm-up.
    pub fn response_before_last(&mut self, status: u16, intended: Nanos, at: Nanos) {
        if !self.in_warm_up(intended) {
            self.now.status.add(status);
        }
        if at >= self.window.0 && at <= self.window.1 {
            self.now.answers_in_window += 1;
        }
    }

    /// Records that `count` events of a streamed response arrived at `now`; its call was due at
    /// `due`.
    pub fn events(&mut self, marks: &mut StreamMarks, count: u64, due: Nanos, now: Nanos) {
        if now >= self.window.0 && now <= self.window.1 {
            self.now.streams.in_window += count;
            if marks.usage.is_some() {
                self.now.streams.tokens.in_window += count;
            }
        }
        if !self.in_warm_up(due) {
            self.now.streams.add(marks, count, due, now);
        }
    }

    /// Records that a message of a stream, due at `due`, was released. `held_back`: earlier
    /// messages still wait for the peer.
    pub fn message_released(&mut self, held_back: bool, due: Nanos) {
        if !self.in_warm_up(due) {
            self.now.streams.sent += 1;
            self.now.streams.held_back += u64::from(held_back);
        }
    }

    /// Records messages of a stream that answer those that were due at these instants.
    pub fn answered_messages(&mut self, due: impl Iterator<Item = Nanos>, call: Nanos, now: Nanos) {
        if !self.in_warm_up(call) {
            due.for_each(|due| self.now.streams.answer.record(now - due));
        }
    }

    /// Records the status of the response to a gRPC call, which was due at `due`.
    pub fn grpc_status(
        &mut self,
        code: u32,
        sent: bool,
        due: Nanos,
        message: impl FnOnce() -> Option<String>,
    ) {
        if !self.in_warm_up(due) {
            self.now.streams.grpc.add(code, sent, message);
        }
    }

    /// Records the time that a call, which was due at `due`, waited for a stream of its connection.
    pub fn waited_for_stream(&mut self, due: Nanos, wait: Nanos) {
        if !self.in_warm_up(due) {
            self.now.connections.stream_wait.record(wait);
        }
    }

    /// Counts the back end of a response to a call that was due at `due`. `name`: its name; `load`:
    /// its load report, `Some(None)` if that cannot be read.
    pub fn backend(&mut self, due: Nanos, name: Option<&str>, load: Option<Option<LoadReport>>) {
        if !self.in_warm_up(due) {
            let backends = &mut self.now.connections.backends;
            name.into_iter().for_each(|name| backends.add_response(name));
            load.into_iter().for_each(|report| backends.load.add(report));
        }
    }

    /// Records events of an open conversation since the last query, up to `now`.
    pub fn messages(&mut self, counts: &SocketCounts, time: Option<SocketTime>, now: Nanos) {
        let tally = &mut self.now.messages;
        tally.counts.merge(counts);
        if now >= self.window.0 && now <= self.window.1 {
            tally.in_window += counts.received;
        }
        if let Some(time) = time {
            tally.record(time);
        }
    }

    /// Records the outcome of a message for a room.
    pub fn fan_out(&mut self, event: FanOutEvent) {
        if !self.in_warm_up(event.due()) {
            self.now.messages.fan_out.add(event);
        }
    }

    /// Records that a call with an expected stream has ended.
    pub fn stream_over(&mut self, marks: StreamMarks, end: StreamEnd, due: Nanos, now: Nanos) {
        if !self.in_warm_up(due) {
            self.now.streams.end(marks, end, due, now);
        }
    }

    #[inline(always)]
    fn times(&mut self, sample: &Sample, outcome: Outcome, issued: bool) {
        let response = sample.done - sample.intended;
        let now = &mut *self.now;
        now.bytes_sent += sample.bytes_sent;
        now.bytes_received += sample.bytes_received;
        now.body_bytes += sample.body_bytes;
        now.decoded_bytes += sample.decoded_bytes;
        let plain = outcome == Outcome::Succeeded
            && sample.issued == sample.intended
            && sample.admitted == sample.intended
            && sample.sent == sample.issued
            && sample.first_byte == sample.done;
        if sample.status != 0 {
            now.status.add(sample.status);
            now.instants.add(sample);
        }
        if plain {
            now.plain.record(response);
            now.exchange_sum += response;
        } else if let Outcome::Dropped | Outcome::Abandoned = outcome {
            return;
        } else {
            now.redirects += u64::from(sample.redirects);
            if let Some(class) = sample.class {
                now.failed_as(class);
            }
            now.unusual(&CallTimes::new(sample), outcome, issued);
        }
        if !now.targets.is_empty() {
            self.target(sample, outcome);
        }
    }

    #[inline(always)]
    fn target(&mut self, sample: &Sample, outcome: Outcome) {
        let row = self.row_of(sample.target);
        self.now.targets[row].count(sample, outcome);
    }

    /// Records an already counted call for its kind of clients.
    pub fn of_kind(&mut self, kind: u32, sample: &Sample, outcome: Outcome) {
        if matches!(outcome, Outcome::Dropped | Outcome::Abandoned) {
            return;
        }
        let row = kind as usize;
        if self.now.clients.len() <= row {
            self.now.clients.resize_with(row + 1, TargetTally::default);
        }
        match self.in_warm_up(sample.intended) {
            true => self.now.clients[row].warm_up += 1,
            false => self.now.clients[row].count(sample, outcome),
        }
    }

    /// Records that a connection was established, `connect` after it was started and, with TLS,
    /// `tls` after that. Connections are counted over the whole run, including the warm-up.
    pub fn connection_opened(&mut self, connect: Nanos, tls: Option<Nanos>) {
        let now = &mut *self.now;
        now.connections.established += 1;
        now.connections.setup_sum += connect + tls.unwrap_or(Nanos::ZERO);
        now.connect.record(connect);
        if let Some(tls) = tls {
            now.tls.record(tls);
        }
    }

    /// Records that a connection ended; `conforming` is `None` if it cannot be judged (no bytes
    /// requested).
    pub fn connection_closed(&mut self, facts: Option<SocketFacts>, conforming: Option<bool>) {
        let connections = &mut self.now.connections;
        connections.closed += 1;
        if let Some(conforms) = conforming {
            connections.judge(conforms);
        }
        if let Some(facts) = facts {
            connections.retransmits += facts.retransmits;
            connections.rtt.record(facts.rtt);
        }
    }

    /// Records that the first response of a connection arrived, `took` after its request was sent.
    pub fn connection_answered(&mut self, took: Nanos) {
        self.now.connections.lives.first.record(took);
    }

    /// Records the life of an established connection, at its end.
    pub fn connection_lived(&mut self, life: &ConnectionLife) {
        self.now.connections.lives.record(life);
    }

    /// Adds the completions since the last call to the current beat, and returns when to call
    /// again: at the end of the beat that contains `now`.
    pub fn beat(&mut self, now: Nanos) -> Nanos {
        let (done, good) = (self.now.in_window, self.now.good_in_window);
        if done > self.beaten.0 {
            self.now.beats.add(self.beat, done - self.beaten.0, good - self.beaten.1);
            self.beaten = (done, good);
        }
        self.beat = ((now - self.window.0).0 / BEAT.0) as usize;
        self.window.0 + Nanos(BEAT.0 * (self.beat as u64 + 1))
    }

    #[inline]
    fn flight_until(&mut self, now: Nanos) {
        let until = now.min(self.window.1);
        if until > self.flight_since {
            let span = until - self.flight_since;
            self.now.flight_integral += u128::from(span.0) * u128::from(self.flight);
            self.flight_since = until;
        }
    }

    /// Ends an interval: returns the snapshot and continues in `next`, which must be clear.
    pub fn swap(&mut self, now: Nanos, next: Box<Snapshot>) -> Box<Snapshot> {
        self.flight_until(now);
        self.beat(now);
        self.beaten = (0, 0);
        let full = std::mem::replace(&mut self.now, next);
        self.now.flight_peak = self.flight;
        full
    }

    /// Returns the lateness of the first issued call, of the warm-up or of the measured phase;
    /// `NEVER` before.
    pub fn first_late(&self) -> Nanos {
        self.first_late
    }

    /// Returns the number of calls in flight.
    pub fn flight(&self) -> u64 {
        self.flight
    }
}

/// One second of the time series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// Start of the interval, from the start of the measured phase; negative in the warm-up.
    pub at_s: f64,
    /// Length of the second.
    pub span_s: f64,
    pub counts: Counts,
    pub warm_up: bool,
    pub bytes_received: u64,
    pub body_bytes: u64,
    pub p50: Nanos,
    pub p90: Nanos,
    pub p99: Nanos,
    pub max: Nanos,
    pub mean: Nanos,
    /// Response times of the calls that ended in it, for the heat map.
    pub spread: Spread,
    /// Outcomes of its calls; `None` if not recorded, as in results of earlier versions.
    pub endings: Option<Endings>,
    /// Events of streams in the interval.
    pub streams: Option<SecondStreams>,
    /// Messages on WebSockets in the interval.
    pub messages: Option<SecondMessages>,
    pub slip_p99: Nanos,
    /// Calls in flight at the end, and connections open.
    pub in_flight: u64,
    pub open_connections: u64,
    /// Share of one core that the client used in this interval, per worker thread (0..=1).
    pub driver_cpu: f64,
}

/// A finished run: everything merged, and the series.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    pub total: Snapshot,
    pub series: Vec<Second>,
    /// Figures of each target over time; empty for the sum of repeats.
    pub slices: crate::TargetSlices,
    /// Length of the measured window: `-d`, or until the last completion when a count ended it.
    pub window: Nanos,
    /// Time from the first due instant to the last outcome.
    pub elapsed: Nanos,
    /// Arrivals that the plan intends in the window, if it defines them (`--rate`); `None` in a
    /// closed loop.
    pub intended: Option<u64>,
    /// Time that the plan's rate takes for them, if their count ended the run (`-n` with `--rate`),
    /// or if they are evenly spaced and the last gap ends after the window. `None` means as long as
    /// the window, which is otherwise longer by the wait for the last responses.
    pub intended_span: Option<Nanos>,
    /// Highest number of connections open at once.
    pub connections_peak: u64,
    pub interrupted: bool,
    /// Set when `--abort-if` or a script ended the run; the rule's text, or the script's.
    pub aborted: Option<String>,
    /// Contributions of the rows of the series to each objective of the plan. Empty if unknown:
    /// calls then count as independent of each other.
    pub blocks: Vec<Blocks>,
    /// Scope of the intervals: all checks if the run may end early (`--until-sure`), otherwise one.
    pub looks: Looks,
}

impl Measurement {
    /// Returns the time in which the window's arrivals fell due: the base of the intended and the
    /// offered load.
    pub fn due_span(&self) -> Nanos {
        self.intended_span.unwrap_or(self.window)
    }

    /// Returns the time base of throughput: the window or, if longer, the time that the rate takes
    /// for the calls. n calls span n - 1 gaps, and their rate is that of n gaps.
    pub fn rate_span(&self) -> Nanos {
        self.window.max(self.due_span())
    }
}
