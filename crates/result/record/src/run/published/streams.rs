//! Responses that are streams of events.

use super::rows::row_labels;
use super::times::TimesRecord;
use crate::finished::per_second;
use plan::Plan;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Hist, Measurement, StepStreams, StreamTally, TokenTally};
use units::Nanos;

/// Delimiter of events.
pub(crate) const STREAM_FORMS: [&str; 6] = ["sse", "lines", "grpc", "openai", "anthropic", "both"];
/// Methods of counting tokens.
pub(crate) const TOKEN_COUNTS: [&str; 3] = ["usage", "events", "both"];

/// `streams` of a run; null if no response is treated as a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct StreamsRecord {
    /// `sse`: Server-Sent Events; `lines`: a line for each; `grpc`: messages of gRPC; `openai` and
    /// `anthropic`: events with content of a language model; `both`: steps differ.
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "crate::schema::stream_form")
    )]
    pub form: String,
    /// Complete responses with events.
    pub whole: u64,
    /// Complete responses without events.
    pub empty: u64,
    /// Calls that failed or timed out after at least one event.
    pub cut: u64,
    /// Events of all these calls.
    pub events: u64,
    /// Events inside the measured window, and their number per second.
    pub events_in_window: u64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub events_per_s: f64,
    /// Time from the instant a call was due to its first event; includes the wait of calls that
    /// timed out without an event.
    pub first_event_s: TimesRecord,
    /// Time from one event to the next; includes the last wait of streams that timed out.
    pub between_events_s: TimesRecord,
    /// The mean time between the events of each whole stream with two or more; per token if the
    /// stream reports its tokens.
    pub mean_between_events_s: TimesRecord,
    /// Its reciprocal: the minimum reached by half of the streams, and by 99 % of them. Null
    /// without streams, or if all their events arrived at once.
    pub stream_events_per_s: Option<StreamRateRecord>,
    /// Messages that gRPC calls send on a schedule; null without a schedule.
    pub sent: Option<SentMessagesRecord>,
    /// Null unless the streams are those of language models.
    pub tokens: Option<ModelTokensRecord>,
    /// Streams of each step of a journey, in the plan's order; empty without journeys.
    #[serde(default)]
    pub steps: Vec<StepStreamsRecord>,
}

/// Messages of client streams with a message rate. The first of each stream is sent with its call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SentMessagesRecord {
    /// Messages after the first of each stream.
    pub messages: u64,
    /// Of these, messages that waited behind earlier ones for the server's window.
    pub held_back: u64,
    /// Time from the instant a message was due to the message of the response at the same place;
    /// bidirectional streams only.
    pub answer_s: TimesRecord,
}

/// Streams of one step of a journey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct StepStreamsRecord {
    /// Name of the step.
    pub step: String,
    pub whole: u64,
    /// Calls that failed or timed out after at least one event.
    pub cut: u64,
    pub events: u64,
    /// As for the run.
    pub first_event_s: TimesRecord,
    pub between_events_s: TimesRecord,
}

impl StepStreamsRecord {
    fn all(plan: &Plan, tally: &StreamTally) -> Vec<StepStreamsRecord> {
        let names = row_labels(plan, plan.row_count());
        let row = |(row, step): (&u32, &StepStreams)| StepStreamsRecord {
            step: names.get(*row as usize).cloned().unwrap_or_default(),
            whole: step.whole,
            cut: step.cut,
            events: step.events,
            first_event_s: TimesRecord::new(&step.first),
            between_events_s: TimesRecord::new(&step.gap),
        };
        tally.steps.iter().map(row).collect()
    }
}

/// Tokens of whole streams of language models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ModelTokensRecord {
    /// `usage`: as the streams report them; `events`: one for each event with content; `both`: some
    /// streams report them.
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "crate::schema::token_count")
    )]
    pub counted_by: String,
    /// Tokens of the responses, and of the requests as far as they are reported.
    pub output: u64,
    pub input: u64,
    /// For all streams of language models: the events with content inside the measured window,
    /// times the tokens of such an event, over the length of the window.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub per_s: f64,
}

impl ModelTokensRecord {
    fn new(tally: &TokenTally, whole: u64, window: Nanos) -> ModelTokensRecord {
        let [usage, events, both] = TOKEN_COUNTS;
        let counted_by = match tally.reporting {
            0 => events,
            all if all == whole => usage,
            _ => both,
        };
        ModelTokensRecord {
            counted_by: counted_by.to_owned(),
            output: tally.output,
            input: tally.input,
            per_s: per_second(tally.in_window, window) * tally.of_event(),
        }
    }
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
    /// Computes rates from the mean gaps of streams.
    fn new(pace: &Hist) -> Option<StreamRateRecord> {
        let rate = |quantile| {
            let gap = pace.quantile(quantile).as_secs_f64();
            (gap > 0.0).then_some(1.0 / gap)
        };
        Some(StreamRateRecord { median: rate(0.5)?, slowest_1_percent: rate(0.99)? })
    }
}

/// Returns the form of the plan's streams; `None` without streams.
fn stream_form(plan: &Plan) -> Option<&'static str> {
    let forms = plan.streams();
    let mut named = forms.iter().flatten().map(|form| form.id());
    let first = named.next()?;
    let [.., both] = STREAM_FORMS;
    Some(if named.all(|other| other == first) { first } else { both })
}

impl StreamsRecord {
    pub(crate) fn new(plan: &Plan, measurement: &Measurement) -> Option<StreamsRecord> {
        let form = stream_form(plan)?;
        let streams = &measurement.total.streams;
        let events_per_s = per_second(streams.in_window, measurement.window);
        let counts_tokens = plan.streams().iter().flatten().any(|form| form.is_token_stream());
        Some(StreamsRecord {
            form: form.to_owned(),
            whole: streams.whole,
            empty: streams.empty,
            cut: streams.cut,
            events: streams.events,
            events_in_window: streams.in_window,
            events_per_s,
            first_event_s: TimesRecord::new(&streams.first),
            between_events_s: TimesRecord::new(&streams.gap),
            mean_between_events_s: TimesRecord::new(&streams.pace),
            stream_events_per_s: StreamRateRecord::new(&streams.pace),
            sent: plan.grpc.message_rate.map(|_| SentMessagesRecord {
                messages: streams.sent,
                held_back: streams.held_back,
                answer_s: TimesRecord::new(&streams.answer),
            }),
            steps: StepStreamsRecord::all(plan, streams),
            tokens: counts_tokens.then(|| {
                ModelTokensRecord::new(&streams.tokens, streams.whole, measurement.window)
            }),
        })
    }
}
