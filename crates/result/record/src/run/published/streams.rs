//! Responses that are streams of events.

use super::times::TimesRecord;
use crate::finished::per_second;
use plan::{Plan, Streaming};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Hist, Measurement};

/// Delimiter of events.
pub(crate) const STREAM_FORMS: [&str; 4] = ["sse", "lines", "grpc", "both"];

/// `streams` of a run; null where no response is looked at as a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct StreamsRecord {
    /// `sse`: Server-Sent Events; `lines`: a line for each; `grpc`: messages of gRPC; `both`: steps differ.
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "crate::schema::stream_form")
    )]
    pub form: String,
    /// Complete responses with events in them.
    pub whole: u64,
    /// Complete responses without any.
    pub empty: u64,
    /// Calls that failed or timed out after at least one event.
    pub cut: u64,
    /// Events of all of these.
    pub events: u64,
    /// Events inside the measured window, and over its length.
    pub events_in_window: u64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub events_per_s: f64,
    /// From the instant a call was due to its first event; a call that timed out without one has its
    /// wait in it.
    pub first_event_s: TimesRecord,
    /// From one event to the next; a stream that timed out has its last wait in it.
    pub between_events_s: TimesRecord,
    /// The mean time between the events of each whole stream with two or more.
    pub mean_between_events_s: TimesRecord,
    /// Its reciprocal: the minimum reached by half of the streams, and by 99 % of them. Null if
    /// there are none, and if their events arrived all at once.
    pub stream_events_per_s: Option<StreamRateRecord>,
    /// Messages that gRPC calls send on a schedule; null without one.
    pub sent: Option<SentMessagesRecord>,
}

/// Messages of client streams with a message rate. The first of each stream is sent with its call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SentMessagesRecord {
    /// Messages after the first of each stream.
    pub messages: u64,
    /// Of these, messages that waited behind earlier ones for the server's window.
    pub held_back: u64,
    /// From the instant a message was due to the message of the response at the same place;
    /// bidirectional streams only.
    pub answer_s: TimesRecord,
}

/// Events per second of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct StreamRateRecord {
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub median: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub slowest_1_percent: f64,
}

impl StreamRateRecord {
    /// Of the mean gaps of streams.
    fn of(pace: &Hist) -> Option<StreamRateRecord> {
        let rate = |quantile| {
            let gap = pace.quantile(quantile).as_secs_f64();
            (gap > 0.0).then_some(1.0 / gap)
        };
        Some(StreamRateRecord { median: rate(0.5)?, slowest_1_percent: rate(0.99)? })
    }
}

/// The form of the plan's streams; `None`: it has none.
fn stream_form(plan: &Plan) -> Option<&'static str> {
    let forms = plan.streams();
    let has = |form| forms.contains(&Some(form));
    let [sse, lines, grpc, both] = STREAM_FORMS;
    if has(Streaming::Grpc) {
        return Some(grpc);
    }
    match (has(Streaming::Sse), has(Streaming::Lines)) {
        (true, true) => Some(both),
        (true, false) => Some(sse),
        (false, true) => Some(lines),
        (false, false) => None,
    }
}

impl StreamsRecord {
    pub(crate) fn of(plan: &Plan, measurement: &Measurement) -> Option<StreamsRecord> {
        let form = stream_form(plan)?;
        let streams = &measurement.total.streams;
        Some(StreamsRecord {
            form: form.to_owned(),
            whole: streams.whole,
            empty: streams.empty,
            cut: streams.cut,
            events: streams.events,
            events_in_window: streams.in_window,
            events_per_s: per_second(streams.in_window, measurement.window),
            first_event_s: TimesRecord::of(&streams.first),
            between_events_s: TimesRecord::of(&streams.gap),
            mean_between_events_s: TimesRecord::of(&streams.pace),
            stream_events_per_s: StreamRateRecord::of(&streams.pace),
            sent: plan.grpc.message_rate.map(|_| SentMessagesRecord {
                messages: streams.sent,
                held_back: streams.held_back,
                answer_s: TimesRecord::of(&streams.answer),
            }),
        })
    }
}
