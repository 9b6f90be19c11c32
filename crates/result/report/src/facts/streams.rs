//! One-line facts of responses that are streams of events.

use crate::RunRecord;
use crate::words::counted;
use record::run::{ModelTokensRecord, RunHist, StreamsRecord};
use stats::Hist;
use units::show;

/// Returns whether no response is known to be a stream: gRPC calls with one message at most, whose
/// rate is that of the calls.
fn is_unary(report: &RunRecord, streams: &StreamsRecord) -> bool {
    let single = streams.events <= streams.whole && report.hist(RunHist::EventGap).is_empty();
    streams.form == "grpc" && single && streams.cut == 0 && streams.sent.is_none()
}

/// Describes the number of streams and events, and their rate; `None` if not requested, or if there
/// is no stream.
pub(crate) fn sentence(report: &RunRecord) -> Option<String> {
    let streams = report.bodies.streams.as_ref().filter(|streams| !is_unary(report, streams))?;
    let rate = show::rate(streams.events_per_s);
    let is_grpc = streams.form == "grpc";
    let events = counted(streams.events, if is_grpc { "message" } else { "event" });
    let whole = counted(streams.whole, "whole stream");
    let mut text = match (streams.form.as_str(), &streams.tokens) {
        ("both", Some(tokens)) => format!("{whole}, {}", of_tokens(tokens)),
        (form, Some(tokens)) => format!("{whole} ({form}), {}", of_tokens(tokens)),
        ("grpc", None) => format!("{} with {events}: {rate}", counted(streams.whole, "response")),
        ("both", None) => format!("{whole}, {events}: {rate}"),
        (form, None) => format!("{whole} ({form}), {events}: {rate}"),
    };
    if let Some(rate) = &streams.stream_events_per_s {
        let (median, slowest) = (show::rate(rate.median), show::rate(rate.slowest_1_percent));
        text += &format!("; one stream has {median} (median), {slowest} (slowest 1 %)");
    }
    let empty = if is_grpc { "without a message" } else { "without an event" };
    for (count, what) in [(streams.cut, "cut short"), (streams.empty, empty)] {
        if count > 0 {
            text += &format!("; {} {what}", show::count(count));
        }
    }
    if let Some(sent) = &streams.sent {
        text += &format!("; {} sent on schedule", counted(sent.messages, "further message"));
        if sent.held_back > 0 {
            text += &format!(", {} held back by the server", show::count(sent.held_back));
        }
    }
    Some(text)
}

/// Describes tokens and their rate, and how they are counted.
fn of_tokens(tokens: &ModelTokensRecord) -> String {
    let how = match tokens.counted_by.as_str() {
        "usage" => "as reported",
        "events" => "one per event with content",
        _ => "as reported by some streams",
    };
    let rate = show::rate(tokens.per_s);
    let mut text = format!("{} ({how}): {rate}", counted(tokens.output, "token"));
    if tokens.input > 0 {
        text += &format!("; {} of prompts", counted(tokens.input, "token"));
    }
    text
}

/// Returns the time to the first token and the rate of tokens, for the one-line form of a run.
pub(crate) fn short_form(report: &RunRecord) -> Vec<String> {
    let streams = report.bodies.streams.as_ref();
    let Some(tokens) = streams.and_then(|streams| streams.tokens.as_ref()) else {
        return Vec::new();
    };
    let first = report.hist(RunHist::FirstEvent);
    let ttft = format!("ttft p95 {}", crate::blocks::quantile(&first, 0.95));
    vec![ttft, format!("{} tokens", show::rate(tokens.per_s))]
}

/// Returns the names and times: to the first event, between events, waits for a stream of a
/// connection.
pub(crate) fn times(report: &RunRecord) -> Vec<(&'static str, Hist)> {
    let streams = report.bodies.streams.as_ref();
    let [first, between, mean] = match streams {
        Some(streams) if streams.tokens.is_some() => {
            ["first token", "between tokens", "  mean per token"]
        }
        Some(streams) if streams.form == "grpc" => {
            ["first message", "between messages", "  mean of a stream"]
        }
        _ => ["first event", "between events", "  mean of a stream"],
    };
    let rows = [
        (first, RunHist::FirstEvent),
        (between, RunHist::EventGap),
        (mean, RunHist::EventPace),
        ("answer to a message", RunHist::MessageAnswer),
        ("wait for a stream", RunHist::StreamWait),
    ];
    let unary = streams.is_some_and(|streams| is_unary(report, streams));
    let rows = rows.into_iter().filter(|(_, of)| !unary || *of != RunHist::FirstEvent);
    let rows = rows.map(|(name, of)| (name, report.hist(of)));
    rows.filter(|(_, hist)| !hist.is_empty()).collect()
}
