//! Responses whose bodies are streams of events: time to the first event, and times between events.

use crate::Hist;
use std::collections::BTreeMap;
use units::Nanos;

/// Maximum number of distinct messages of failed gRPC calls.
pub const GRPC_MESSAGES_MAX: usize = 16;

/// Ends of gRPC calls in the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrpcTally {
    /// Complete responses by status code.
    pub statuses: BTreeMap<u32, u64>,
    /// Responses among them without a gRPC status; their code is derived from the HTTP status.
    pub unsent: u64,
    /// Messages of statuses other than OK, each after the name of its status; at most
    /// [`GRPC_MESSAGES_MAX`].
    pub messages: BTreeMap<String, u64>,
}

impl GrpcTally {
    /// Counts a response. `sent`: the server sent the status.
    pub fn add(&mut self, code: u32, sent: bool, message: impl FnOnce() -> Option<String>) {
        *self.statuses.entry(code).or_default() += 1;
        self.unsent += u64::from(!sent);
        if let Some(message) = message() {
            self.add_message(message, 1);
        }
    }

    /// Returns the number of responses with the status OK; `None` without any response.
    pub fn ok_count(&self) -> Option<u64> {
        let any = !self.statuses.is_empty();
        any.then(|| self.statuses.get(&0).copied().unwrap_or(0))
    }

    fn add_message(&mut self, message: String, count: u64) {
        if let Some(known) = self.messages.get_mut(&message) {
            *known += count;
        } else if self.messages.len() < GRPC_MESSAGES_MAX {
            self.messages.insert(message, count);
        }
    }

    pub fn merge(&mut self, other: &GrpcTally) {
        for (code, count) in &other.statuses {
            *self.statuses.entry(*code).or_default() += count;
        }
        self.unsent += other.unsent;
        for (message, count) in &other.messages {
            self.add_message(message.clone(), *count);
        }
    }
}

/// Tokens that a stream of a language model reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the response, and of the request; `None` if the stream does not report them.
    pub output: Option<u64>,
    pub input: Option<u64>,
}

/// Tokens of complete streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenTally {
    /// Tokens of the responses; for a stream that does not report them, its events with content.
    pub output: u64,
    /// Tokens of the requests, if reported.
    pub input: u64,
    /// Streams that report their tokens.
    pub reporting: u64,
    /// Events with content in the streams that `output` counts.
    pub events: u64,
    /// Events with content inside the measured window, of whole and other streams.
    pub in_window: u64,
}

impl TokenTally {
    fn add(&mut self, usage: TokenUsage, events: u64) {
        self.output += usage.output.unwrap_or(events);
        self.input += usage.input.unwrap_or(0);
        self.reporting += u64::from(usage.output.is_some());
        self.events += events;
    }

    fn merge(&mut self, other: &TokenTally) {
        self.output += other.output;
        self.input += other.input;
        self.reporting += other.reporting;
        self.events += other.events;
        self.in_window += other.in_window;
    }

    /// Returns the mean number of tokens of an event with content; 1 without a whole stream.
    pub fn of_event(&self) -> f64 {
        if self.events == 0 { 1.0 } else { self.output as f64 / self.events as f64 }
    }
}

/// Streams and their events. Times are of calls of the measured phase.
#[derive(Clone, Debug, Default)]
pub struct StreamTally {
    /// Complete responses with events.
    pub whole: u64,
    /// Complete responses without events.
    pub empty: u64,
    /// Calls that failed or timed out after at least one event.
    pub cut: u64,
    /// Events of all these calls.
    pub events: u64,
    /// Events inside the measured window, whenever their calls fell due.
    pub in_window: u64,
    /// Time from the instant a call was due to its first event. A call that timed out without an
    /// event is included with its wait: the true time was at least that long.
    pub first: Hist,
    /// Time from each event to the next of its stream. A stream that timed out is included with its
    /// last wait.
    pub gap: Hist,
    /// The mean of the gaps of each whole stream with two events or more: the reciprocal of its events
    /// per second. If the events are tokens, the mean time per token.
    pub pace: Hist,
    /// Messages that the client sent on a schedule, after the first of each stream, and how many of
    /// these waited behind earlier ones for the server's window.
    pub sent: u64,
    pub held_back: u64,
    /// Time from the instant a message of a bidirectional stream was due to its answer.
    pub answer: Hist,
    /// Tokens; zero unless the streams are those of language models, whose events are those with
    /// content.
    pub tokens: TokenTally,
    /// Figures by step; empty without journeys.
    pub steps: BTreeMap<u32, StepStreams>,
    /// Empty if the calls are not gRPC.
    pub grpc: GrpcTally,
}

/// Streams of one step of a journey.
#[derive(Clone, Debug, Default)]
pub struct StepStreams {
    pub whole: u64,
    pub cut: u64,
    pub events: u64,
    pub first: Hist,
    pub gap: Hist,
}

impl StepStreams {
    fn merge(&mut self, other: &StepStreams) {
        self.whole += other.whole;
        self.cut += other.cut;
        self.events += other.events;
        self.first.merge(&other.first);
        self.gap.merge(&other.gap);
    }
}

impl StreamTally {
    pub fn merge(&mut self, other: &StreamTally) {
        self.whole += other.whole;
        self.empty += other.empty;
        self.cut += other.cut;
        self.events += other.events;
        self.in_window += other.in_window;
        self.first.merge(&other.first);
        self.gap.merge(&other.gap);
        self.pace.merge(&other.pace);
        self.sent += other.sent;
        self.held_back += other.held_back;
        self.answer.merge(&other.answer);
        self.tokens.merge(&other.tokens);
        for (row, step) in &other.steps {
            self.steps.entry(*row).or_default().merge(step);
        }
        self.grpc.merge(&other.grpc);
    }

    /// Clears the counts and keeps the memory.
    pub fn clear(&mut self) {
        let [first, gap, pace, answer] =
            [&mut self.first, &mut self.gap, &mut self.pace, &mut self.answer]
                .map(Hist::take_cleared);
        *self = StreamTally { first, gap, pace, answer, ..StreamTally::default() };
    }
}

/// Events of streams in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondStreams {
    pub events: u64,
    /// Sums of the first events that arrived in the interval, and of the gaps that ended in it;
    /// zero without any.
    pub first_p99: Nanos,
    pub gap_p99: Nanos,
}

impl StreamTally {
    /// Returns the events of an interval; `None` without events.
    pub fn interval(&self) -> Option<SecondStreams> {
        let any = self.events > 0 || !self.first.is_empty() || !self.gap.is_empty();
        any.then(|| SecondStreams {
            events: self.events,
            first_p99: self.first.quantile(0.99),
            gap_p99: self.gap.quantile(0.99),
        })
    }
}

/// State of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamMarks {
    events: u64,
    first: Nanos,
    last: Nanos,
    /// Tokens reported so far; `None` if the stream is not a stream of tokens.
    pub usage: Option<TokenUsage>,
    /// Row of the step that it belongs to, if streams are counted by steps.
    pub step: Option<u32>,
}

impl StreamMarks {
    pub fn events(&self) -> u64 {
        self.events
    }
}

/// End of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The response is complete.
    Whole,
    /// The response was truncated, or was not successful.
    Failed,
    TimedOut,
}

impl StreamTally {
    /// Records `count` events of one stream that one read returned at `now`: there is no time
    /// between them. `due`: due instant of their call, which belongs to the measured phase.
    pub fn add(&mut self, marks: &mut StreamMarks, count: u64, due: Nanos, now: Nanos) {
        if count == 0 {
            return;
        }
        let first = marks.events == 0;
        let took = if first { now - due } else { now - marks.last };
        let step = marks.step.map(|step| self.steps.entry(step).or_default());
        let of_step = step.map(|step| (&mut step.events, &mut step.first, &mut step.gap));
        let all = [Some((&mut self.events, &mut self.first, &mut self.gap)), of_step];
        for (events, firsts, gaps) in all.into_iter().flatten() {
            *events += count;
            if first {
                firsts.record(took);
            } else {
                gaps.record(took);
            }
            gaps.record_n(Nanos::ZERO, count - 1);
        }
        if first {
            marks.first = now;
        }
        marks.events += count;
        marks.last = now;
    }

    /// Records that a stream ended at `now`.
    pub fn end(&mut self, marks: StreamMarks, end: StreamEnd, due: Nanos, now: Nanos) {
        if let Some(step) = marks.step {
            let step = self.steps.entry(step).or_default();
            match (end, marks.events) {
                (StreamEnd::Whole | StreamEnd::Failed, 0) => {}
                (StreamEnd::Whole, _) => step.whole += 1,
                (StreamEnd::Failed, _) => step.cut += 1,
                (StreamEnd::TimedOut, 0) => step.first.record(now - due),
                (StreamEnd::TimedOut, _) => {
                    step.gap.record(now - marks.last);
                    step.cut += 1;
                }
            }
        }
        match (end, marks.events) {
            (StreamEnd::Whole, 0) => self.empty += 1,
            (StreamEnd::Whole, events) => self.end_whole(&marks, events),
            (StreamEnd::TimedOut, 0) => self.first.record(now - due),
            (StreamEnd::TimedOut, _) => {
                self.gap.record(now - marks.last);
                self.cut += 1;
            }
            (StreamEnd::Failed, 0) => {}
            (StreamEnd::Failed, _) => self.cut += 1,
        }
    }

    /// Records a complete stream with `events` events.
    fn end_whole(&mut self, marks: &StreamMarks, events: u64) {
        self.whole += 1;
        let reported = marks.usage.and_then(|usage| usage.output);
        let units = reported.unwrap_or(events);
        if events > 1 && units > 1 {
            self.pace.record(Nanos((marks.last - marks.first).0 / (units - 1)));
        }
        if let Some(usage) = marks.usage {
            self.tokens.add(usage, events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Nanos {
        Nanos::from_millis(n)
    }

    fn near(found: Nanos, wanted: Nanos) {
        let off = found.0.abs_diff(wanted.0);
        assert!(off * 500 <= wanted.0, "{found:?} for {wanted:?}");
    }

    /// Returns a stream due at 1,000 ms; events at 1,100, then two at once at 1,140, and one at
    /// 1,200.
    fn one(end: StreamEnd, at: Nanos) -> StreamTally {
        let (mut streams, mut marks) = (StreamTally::default(), StreamMarks::default());
        streams.add(&mut marks, 0, ms(1_000), ms(1_050));
        for (count, at) in [(1, 1_100), (2, 1_140), (1, 1_200)] {
            streams.add(&mut marks, count, ms(1_000), ms(at));
        }
        streams.end(marks, end, ms(1_000), at);
        streams
    }

    #[test]
    fn statuses_of_grpc_add_up_and_messages_are_bounded() {
        let mut tally = GrpcTally::default();
        tally.add(0, true, || None);
        tally.add(5, true, || Some("NOT_FOUND: no user".to_owned()));
        tally.add(2, false, || Some("UNKNOWN: HTTP status 200 without grpc-status".to_owned()));
        for number in 0..100 {
            tally.add(13, true, || Some(format!("INTERNAL: {number}")));
        }
        let mut sum = tally.clone();
        sum.merge(&tally);
        assert_eq!(sum.statuses, BTreeMap::from([(0, 2), (2, 2), (5, 2), (13, 200)]));
        assert_eq!((GrpcTally::default().ok_count(), sum.ok_count()), (None, Some(2)));
        assert_eq!((sum.unsent, sum.messages.len()), (2, GRPC_MESSAGES_MAX));
        assert_eq!(sum.messages["NOT_FOUND: no user"], 2);
    }

    #[test]
    fn a_whole_stream_has_a_first_event_gaps_and_a_pace() {
        let streams = one(StreamEnd::Whole, ms(1_900));
        assert_eq!((streams.whole, streams.empty, streams.cut, streams.events), (1, 0, 0, 4));
        near(streams.first.max(), ms(100));
        assert_eq!(streams.gap.count(), 3);
        assert_eq!(streams.gap.quantile(0.3), Nanos::ZERO);
        near(streams.gap.max(), ms(60));
        // 100 ms for three gaps; the wait for the end of the response is not a gap
        near(streams.pace.max(), Nanos(ms(100).0 / 3));
    }

    #[test]
    fn tokens_are_those_reported_or_else_the_events() {
        let stream = |usage: Option<TokenUsage>| {
            let (mut streams, mut marks) = (StreamTally::default(), StreamMarks::default());
            streams.add(&mut marks, 1, ms(1_000), ms(1_200));
            streams.add(&mut marks, 4, ms(1_000), ms(1_300));
            marks.usage = usage;
            streams.end(marks, StreamEnd::Whole, ms(1_000), ms(1_300));
            streams
        };
        let mut reported = stream(Some(TokenUsage { output: Some(11), input: Some(7) }));
        near(reported.pace.max(), ms(10));
        let silent = stream(Some(TokenUsage::default()));
        near(silent.pace.max(), ms(25));
        assert_eq!(stream(None).tokens, TokenTally::default());
        reported.merge(&silent);
        let all =
            TokenTally { output: 16, input: 7, reporting: 1, events: 10, ..TokenTally::default() };
        assert_eq!(reported.tokens, all);
        assert!((all.of_event() - 1.6).abs() < 1e-9);
        assert!((TokenTally::default().of_event() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_stream_that_stalls_to_its_timeout_counts_its_last_wait() {
        let streams = one(StreamEnd::TimedOut, ms(6_200));
        assert_eq!((streams.whole, streams.cut, streams.pace.count()), (0, 1, 0));
        near(streams.gap.max(), ms(5_000));
        let failed = one(StreamEnd::Failed, ms(6_200));
        assert_eq!((failed.cut, failed.gap.count()), (1, 3));
        near(failed.gap.max(), ms(60));
    }

    #[test]
    fn a_call_without_an_event_counts_by_how_it_ended() {
        let mut streams = StreamTally::default();
        let none = StreamMarks::default();
        streams.end(none, StreamEnd::Whole, ms(0), ms(10));
        streams.end(none, StreamEnd::Failed, ms(0), ms(20));
        streams.end(none, StreamEnd::TimedOut, ms(0), ms(3_000));
        assert_eq!((streams.empty, streams.whole, streams.cut), (1, 0, 0));
        assert_eq!(streams.first.count(), 1);
        near(streams.first.max(), ms(3_000));
    }

    #[test]
    fn streams_add_up_in_any_order_and_are_forgotten() {
        let (a, b) = (one(StreamEnd::Whole, ms(1_900)), one(StreamEnd::TimedOut, ms(6_200)));
        let (mut there, mut back) = (a.clone(), b.clone());
        there.merge(&b);
        back.merge(&a);
        for sum in [&there, &back] {
            assert_eq!((sum.whole, sum.cut, sum.events), (1, 1, 8));
            assert_eq!((sum.first.count(), sum.gap.count(), sum.pace.count()), (2, 7, 1));
        }
        assert_eq!(there.gap.buckets(), back.gap.buckets());
        there.clear();
        assert_eq!((there.events, there.gap.count(), there.whole), (0, 0, 0));
    }
}
