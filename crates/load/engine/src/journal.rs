//! Records of a worker: the recorder of the current interval, finished calls and ended connections
//! if logged, and kept starts of responses.

use crate::Row;
use crate::call::{Call, End};
use crate::edges::RowEnd;
use crate::link::Link;
use crate::pacer::due_instant;
use crate::setup::{Logging, Setup};
use crate::speaker::ProtocolFacts;
use crate::speaker::websocket::{SocketEnd, SocketNews};
use conduit::{Io, Slot};
use plan::Masker;
use protocol::http1::timing::{Malformed, Timing};
use sample::{
    CallRecord, ConnectionRecord, EarlyFacts, Ends, FailureClass, FanOutEvent, LoadReport, Note,
    QuicEnd, Remark, Sample, SessionRecord, SocketClose, SocketFacts, TlsFacts, WrongBody,
};
use stats::lives::ConnectionLife;
use stats::{
    Connections, FailedResponse, FailedResponses, ReconnectTally, Recorder, Snapshot, StreamEnd,
    StreamMarks,
};
use std::collections::BTreeMap;
use units::Nanos;

/// Records are passed on when this many exist.
const LOG_BATCH: usize = 4096;

/// Adds the facts of a QUIC connection.
fn count_quic(sum: &mut Connections, end: QuicEnd) {
    let QuicEnd { facts, migration, early, tls, why } = end;
    sum.http3.quic.merge(&facts);
    sum.http3.migration.merge(&migration);
    sum.early.merge(&early);
    why.iter().for_each(|why| sum.http3.add_violation(why, 1));
    tls.into_iter().for_each(|tls| *sum.tls.entry(tls).or_default() += 1);
}

/// A failed response that becomes a sample.
#[derive(Debug)]
struct Sampling {
    class: FailureClass,
    status: u16,
    sample: FailedResponse,
    /// Secrets of the plan, the user and the request.
    secrets: Masker,
}

/// Bytes of a failed response, as received, and the secrets that may be in them.
#[derive(Debug)]
pub(crate) struct SampleStart {
    pub(crate) start: Vec<u8>,
    /// Number of body bytes.
    pub(crate) length: u64,
    pub(crate) secrets: Masker,
}

/// Parts of a response that concern the back end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackendFacts<'a> {
    pub(crate) name: Option<&'a str>,
    /// Report of its load; `Some(None)` if it cannot be read.
    pub(crate) load: Option<Option<LoadReport>>,
}

#[derive(Debug)]
pub(crate) struct Journal {
    recorder: Recorder,
    /// A clear snapshot for the next row.
    spare: Box<Snapshot>,
    logging: Logging,
    /// True if finished calls are logged or reported, are the ends of streams, or are counted by
    /// kind of client.
    reports: bool,
    /// Total wait for a stream of each call in flight that waited, by index.
    stream_waits: BTreeMap<u64, Nanos>,
    /// True if finished calls are reported, or may have waited: one flag for the path of all calls.
    watched: bool,
    log: Vec<CallRecord>,
    /// The log contains a failure that must be passed on at once.
    log_urgent: bool,
    ends: Ends,
    /// Number of further responses whose start is kept.
    responses_left: u64,
    /// Samples of failed responses so far, without their bytes: they limit new ones.
    sampled: FailedResponses,
    /// Failed response whose bytes are still arriving.
    sampling: Option<Sampling>,
    /// Bytes received with finished calls, and the number of bytes that ends the run.
    received: u64,
    received_max: u64,
    last_done: Nanos,
    /// Number of TCP_INFO samples still due for the plan's share.
    facts_owed: f64,
    facts_share: f64,
    /// Connections open now, and the maximum within the row.
    open_count: u32,
    open_peak: u32,
}

impl Journal {
    /// Creates the journal of a worker. `received_max`: bytes received by this worker that end the
    /// run.
    pub(crate) fn new(setup: &Setup, received_max: u64) -> Journal {
        let window = (setup.measure_from(), setup.measure_until());
        let rows = setup.plan.measure.folds.table();
        let mut recorder = Recorder::new(0, window).with_rows(rows);
        recorder.now = setup.fresh_snapshot();
        let spare = setup.fresh_snapshot();
        let reports = setup.logging.calls || setup.body.streams() || setup.crowd.is_some();
        Journal {
            recorder,
            spare,
            logging: setup.logging,
            reports,
            stream_waits: BTreeMap::new(),
            watched: reports,
            log: Vec::new(),
            log_urgent: false,
            ends: Ends::default(),
            responses_left: setup.logging.responses,
            sampled: FailedResponses::default(),
            sampling: None,
            received: 0,
            received_max,
            last_done: setup.start,
            facts_owed: 1.0,
            facts_share: setup.plan.measure.tcp_info_share,
            open_count: 0,
            open_peak: 0,
        }
    }

    #[inline]
    pub(crate) fn in_warm_up(&self, intended: Nanos) -> bool {
        self.recorder.in_warm_up(intended)
    }

    /// Returns the number of calls in flight.
    pub(crate) fn flight(&self) -> u64 {
        self.recorder.flight()
    }

    #[inline]
    pub(crate) fn due(&mut self, intended: Nanos) {
        self.recorder.due(intended);
    }

    /// The call is issued now, unless it was issued before.
    // inlined, so that the call need not be in memory
    #[inline(always)]
    pub(crate) fn issue(&mut self, call: &mut Call, now: Nanos) {
        if !call.is_issued() {
            if call.admitted.is_zero() {
                call.admitted = call.intended;
            }
            call.issued = now.max(call.intended);
            self.recorder.issued(call.intended, call.issued);
        }
    }

    /// Counts a due call for which there was no connection and no room in the queue.
    pub(crate) fn drop_call(&mut self, intended: Nanos) {
        self.recorder.dropped(intended, FailureClass::ConnectionLimit);
    }

    /// Counts a finished call. Returns true when the run has received its maximum.
    #[inline(always)]
    pub(crate) fn finish(&mut self, sample: &Sample, end: &End, issued: bool) -> bool {
        self.recorder.done(sample, end.outcome, issued);
        self.last_done = sample.done;
        self.received = self.received.saturating_add(sample.bytes_received);
        self.received >= self.received_max
    }

    /// Counts a finished call of this kind of clients.
    pub(crate) fn of_kind(&mut self, kind: u32, sample: &Sample, end: &End) {
        self.recorder.of_kind(kind, sample, end.outcome);
    }

    /// Counts a response to a call with further outstanding responses, due at `intended`.
    pub(crate) fn response_before_last(&mut self, status: u16, intended: Nanos, now: Nanos) {
        self.recorder.response_before_last(status, intended, now);
    }

    #[inline]
    pub(crate) fn logs_calls(&self) -> bool {
        self.logging.calls
    }

    /// Returns whether the ends of calls are passed to [`Journal::reports_end`].
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched
    }

    /// Reports each finished call from now on.
    pub(crate) fn watch(&mut self) {
        (self.reports, self.watched) = (true, true);
    }

    /// Records the wait of a finished call, if it waited for a stream. Returns whether finished
    /// calls are reported individually.
    pub(crate) fn reports_end(&mut self, index: u64, intended: Nanos) -> bool {
        if !self.stream_waits.is_empty() {
            if let Some(wait) = self.stream_waits.remove(&index) {
                self.recorder.waited_for_stream(intended, wait);
            }
            self.watched = self.reports || !self.stream_waits.is_empty();
        }
        self.reports
    }

    /// Adds observations of a guide.
    pub(crate) fn process(&mut self, remark: Remark) {
        self.recorder.process(remark);
    }

    pub(crate) fn log_call(
        &mut self,
        sample: Sample,
        end: &End,
        response: Vec<u8>,
        note: Option<Note>,
    ) {
        self.log_urgent |= self.logging.failures_at_once && sample.class.is_some();
        self.log.push(CallRecord { sample, outcome: end.outcome, response, note });
    }

    /// Returns whether the start of the current response is kept.
    #[inline]
    pub(crate) fn keeps_responses(&self) -> bool {
        self.responses_left > 0 || self.logging.lenient.headless
    }

    /// Returns whether a failed response to this call becomes a sample.
    pub(crate) fn wants_sample(&self, call: &Call, end: &End) -> bool {
        let has_room = |class| self.sampled.has_room(class, end.status);
        !self.in_warm_up(call.intended) && end.class.is_some_and(has_room)
    }

    /// Begins a sample of a failed response. `begun`: its start, if known; [`Journal::end_sample`]
    /// adds the rest.
    #[cold]
    pub(crate) fn begin_sample(&mut self, call: &Call, end: &End, begun: SampleStart, now: Nanos) {
        let Some(class) = end.class else { return };
        let SampleStart { start, length, secrets } = begun;
        let status = end.status;
        self.sampled.add(class, status, FailedResponse::default());
        let at = now - self.recorder.window_start();
        let sample = FailedResponse { at, target: call.target, start, length };
        self.sampling = Some(Sampling { class, status, sample, secrets });
    }

    /// Returns whether a sample was started whose bytes may be incomplete.
    #[inline]
    pub(crate) fn is_sampling(&self) -> bool {
        self.sampling.is_some()
    }

    /// Records the sample, masked. `bytes`: the last part of the response.
    #[cold]
    pub(crate) fn end_sample(&mut self, bytes: &[u8]) {
        let Some(sampling) = self.sampling.take() else { return };
        let Sampling { class, status, mut sample, secrets } = sampling;
        let room = stats::SAMPLE_BYTES_MAX.saturating_sub(sample.start.len());
        sample.start.extend_from_slice(&bytes[..bytes.len().min(room)]);
        sample.start = secrets.response(&sample.start);
        self.recorder.now.failed_responses.add(class, status, sample);
    }

    /// Handles a complete response: keeps or drops its beginning.
    pub(crate) fn stays_kept(&mut self, headless: bool) -> bool {
        let room = self.responses_left > 0;
        self.responses_left -= u64::from(room);
        room || (headless && self.logging.lenient.headless)
    }

    /// Counts a failure without a call, except in the warm-up.
    pub(crate) fn count_failure(&mut self, class: FailureClass, now: Nanos) {
        if !self.in_warm_up(now) {
            *self.recorder.now.failures.entry(class).or_default() += 1;
        }
    }

    /// Counts `count` events of a streamed response. In order, the messages of a gRPC call may
    /// answer the messages that the call sends.
    pub(crate) fn events(
        &mut self,
        grpc: &plan::GrpcPlan,
        marks: &mut StreamMarks,
        count: u64,
        intended: Nanos,
        now: Nanos,
    ) {
        let in_order = grpc.answers && grpc.correlate.is_none();
        if let Some(rate) = grpc.message_rate.filter(|_| in_order) {
            let numbers = marks.events()..marks.events() + count;
            let due = numbers.map(|number| due_instant(intended, rate, number));
            self.recorder.answered_messages(due, intended, now);
        }
        self.recorder.events(marks, count, intended, now);
    }

    /// Records answers to the messages with these numbers of a call that was due at `intended`.
    pub(crate) fn answers_by_field(
        &mut self,
        grpc: &plan::GrpcPlan,
        numbers: &[u32],
        intended: Nanos,
        now: Nanos,
    ) {
        if let Some(rate) = grpc.message_rate {
            let due = numbers.iter().map(|number| due_instant(intended, rate, u64::from(*number)));
            self.recorder.answered_messages(due, intended, now);
        }
    }

    /// Counts a message of a stream that was due at that instant and was released. `held_back`:
    /// earlier ones wait for the peer.
    pub(crate) fn message_released(&mut self, held_back: bool, due: Nanos) {
        self.recorder.message_released(held_back, due);
    }

    /// Records that a call waited for a stream. It may wait again, on another connection or after a
    /// refusal: its waits are one figure, counted at its end.
    pub(crate) fn waited_for_stream(&mut self, index: u64, wait: Nanos) {
        *self.stream_waits.entry(index).or_default() += wait;
        self.watched = true;
    }

    /// Counts the back end of a response to a call that was due at `due`.
    pub(crate) fn backend(&mut self, due: Nanos, facts: BackendFacts<'_>) {
        self.recorder.backend(due, facts.name, facts.load);
    }

    /// Counts an ended connection to this address, with its responses.
    pub(crate) fn connection_to(&mut self, address: String, responses: u32) {
        let backends = &mut self.recorder.now.connections.backends;
        backends.add_connection(address, u64::from(responses));
    }

    /// Counts the status of a response to a gRPC call.
    pub(crate) fn grpc_status(&mut self, status: &protocol::grpc::Status, due: Nanos) {
        let code = status.code;
        let described = code != protocol::grpc::Code::Ok || !status.sent;
        // nearly every call is OK: no text is made for it
        let message = || described.then(|| format!("{}: {}", code.name(), status.message));
        self.recorder.grpc_status(u32::from(code.number()), status.sent, due, message);
    }

    /// Counts the end of a call with an expected stream.
    pub(crate) fn stream_over(
        &mut self,
        marks: StreamMarks,
        end: StreamEnd,
        due: Nanos,
        now: Nanos,
    ) {
        self.recorder.stream_over(marks, end, due, now);
    }

    /// Counts a body that was compared with its target's.
    #[inline]
    pub(crate) fn body_compared(&mut self) {
        self.recorder.now.verified.compared += 1;
    }

    /// Counts a body that differed from its target's.
    #[cold]
    pub(crate) fn wrong_body(&mut self, wrong: WrongBody) {
        self.recorder.now.verified.add(wrong);
    }

    /// Counts an entry of `Server-Timing`.
    pub(crate) fn count_timing(&mut self, timing: Result<Timing<'_>, Malformed>) {
        let counted = &mut self.recorder.now.server_timings;
        match timing {
            Ok(Timing { name, duration: Some(duration) }) => counted.record(name, duration),
            Ok(Timing { duration: None, .. }) => {}
            Err(Malformed) => counted.count_malformed(),
        }
    }

    /// Counts early data of calls, and whether it was accepted.
    #[cold]
    pub(crate) fn count_early(&mut self, early: &EarlyFacts) {
        self.recorder.now.connections.early.merge(early);
    }

    /// Counts the protocol's own figures of a connection.
    pub(crate) fn count_protocol<I: Io>(
        &mut self,
        facts: ProtocolFacts,
        (io, slot): (&mut I, Slot),
        now: Nanos,
    ) {
        let sum = &mut self.recorder.now.connections;
        match facts {
            ProtocolFacts::Http2(facts) => sum.http2.merge(&facts),
            ProtocolFacts::WebSocket { mut news, end, input_at } => {
                news.counts.carriers += io.carriers();
                if let Some(end) = io.quic(slot) {
                    count_quic(sum, end);
                }
                self.messages(&news, now);
                if let Some(SocketEnd { close, violation }) = end {
                    if matches!(close, SocketClose::Server(_) | SocketClose::Lost) {
                        self.recorder.now.messages.silence.record(now - input_at);
                    }
                    self.recorder.now.messages.end(close, violation);
                }
            }
            ProtocolFacts::Http3(facts) => {
                if let Some(end) = io.quic(slot) {
                    count_quic(sum, end);
                }
                sum.http3.merge(&facts);
            }
        }
    }

    /// Counts events on a WebSocket.
    pub(crate) fn messages(&mut self, news: &SocketNews, now: Nanos) {
        self.recorder.messages(&news.counts, news.time, now);
    }

    /// Counts WebSockets reopened after the loss of all.
    pub(crate) fn reconnects(&mut self, news: &ReconnectTally) {
        self.recorder.now.messages.reconnects.merge(news);
    }

    /// Counts the result of a message for a room.
    pub(crate) fn fan_out(&mut self, event: FanOutEvent) {
        self.recorder.fan_out(event);
    }

    pub(crate) fn session_started(&mut self, intended: Nanos) {
        self.recorder.now.sessions.started += self.if_measured(intended);
    }

    /// Counts a session whose first call was dropped.
    pub(crate) fn session_dropped(&mut self, intended: Nanos) {
        self.recorder.now.sessions.dropped += self.if_measured(intended);
    }

    pub(crate) fn session_ended(&mut self, record: SessionRecord) {
        let one = self.if_measured(record.intended);
        let sessions = &mut self.recorder.now.sessions;
        if record.failed {
            sessions.failed += one;
        } else {
            sessions.completed += one;
        }
        if self.logging.ends {
            self.ends.sessions.push(record);
        }
    }

    /// Returns the increment of a count for a session due at that instant: 0 in the warm-up,
    /// otherwise 1.
    fn if_measured(&self, intended: Nanos) -> u64 {
        u64::from(!self.in_warm_up(intended))
    }

    pub(crate) fn connection_attempted(&mut self) {
        self.recorder.now.connections.attempted += 1;
    }

    /// Counts a connection that has a socket.
    pub(crate) fn count_connection_start(&mut self) {
        self.open_count += 1;
        self.open_peak = self.open_peak.max(self.open_count);
    }

    /// Counts a connection on which requests can be sent: `connect` after the opening and, with
    /// TLS, `tls` after that.
    pub(crate) fn connection_established(&mut self, connect: Nanos, tls: Option<Nanos>) {
        self.recorder.connection_opened(connect, tls);
    }

    pub(crate) fn count_tls(&mut self, facts: TlsFacts) {
        *self.recorder.now.connections.tls.entry(facts).or_default() += 1;
    }

    /// Counts the first response on a connection, which arrived `took` after its request was sent.
    pub(crate) fn connection_answered(&mut self, took: Nanos) {
        self.recorder.connection_answered(took);
    }

    pub(crate) fn connection_closed(&mut self) {
        self.open_count -= 1;
    }

    /// Returns whether to query the kernel about a connection that is being closed after
    /// `responses`. A query costs a system call, so of connections with a single response only the
    /// plan's share is queried.
    pub(crate) fn wants_facts(&mut self, responses: u32) -> bool {
        let share = self.facts_share;
        let asks = share > 0.0 && (responses > 1 || self.facts_owed >= 1.0);
        self.facts_owed += if asks { share - self.facts_owed.min(1.0) } else { share };
        asks
    }

    /// Counts an established connection that is closed.
    pub(crate) fn connection_lived(
        &mut self,
        life: &ConnectionLife,
        facts: Option<SocketFacts>,
        conforming: Option<bool>,
    ) {
        self.recorder.connection_closed(facts, conforming);
        self.recorder.connection_lived(life);
    }

    pub(crate) fn logs_ends(&self) -> bool {
        self.logging.ends
    }

    pub(crate) fn log_connection(&mut self, record: ConnectionRecord) {
        self.ends.connections.push(record);
    }

    /// Counts the finished beat; returns the end of the current one.
    pub(crate) fn beat(&mut self, now: Nanos) -> Nanos {
        self.recorder.beat(now)
    }

    /// Passes on collected records if there are many, or an urgent one.
    #[inline]
    pub(crate) fn pass_records(&mut self, link: &mut dyn Link) {
        if self.log.len() >= LOG_BATCH || self.log_urgent {
            self.log_urgent = false;
            link.log(&mut self.log);
        }
        if self.ends.len() >= LOG_BATCH {
            link.ends(&mut self.ends);
        }
    }

    /// Ends a row of the time series: passes it on, with everything that was logged.
    pub(crate) fn end_row(
        &mut self,
        link: &mut dyn Link,
        worker: u32,
        row: &RowEnd,
        now: Nanos,
        last: bool,
    ) {
        self.recorder.now.spin += row.spun;
        let clear = std::mem::take(&mut self.spare);
        let snapshot = self.recorder.swap(now, clear);
        let row = Row {
            worker,
            start: row.start,
            end: now,
            edge: row.edge,
            snapshot,
            open_connections: u64::from(self.open_count),
            in_flight: self.recorder.flight(),
            last_done: self.last_done,
            first_late: self.recorder.first_late(),
            connections_peak: u64::from(self.open_peak),
            cpu: Nanos::ZERO,
            passed: Nanos::ZERO,
            last,
        };
        self.open_peak = self.open_count;
        self.spare = link.row(row);
        if !self.log.is_empty() {
            link.log(&mut self.log);
        }
        if !self.ends.is_empty() {
            link.ends(&mut self.ends);
        }
    }
}
