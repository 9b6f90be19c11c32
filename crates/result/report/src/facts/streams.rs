//! One-line facts of responses that are streams of events.

use crate::RunRecord;
use crate::words::counted;
use record::run::RunHist;
use stats::Hist;
use units::show;

/// Number of streams and events, and their rate; nothing if not requested.
pub(crate) fn sentence(report: &RunRecord) -> Option<String> {
    let streams = report.bodies.streams.as_ref()?;
    let rate = show::rate(streams.events_per_s);
    let is_grpc = streams.form == "grpc";
    let events = counted(streams.events, if is_grpc { "message" } else { "event" });
    let mut text = match streams.form.as_str() {
        "grpc" => format!("{} with {events}: {rate}", counted(streams.whole, "response")),
        "both" => format!("{}, {events}: {rate}", counted(streams.whole, "whole stream")),
        form => format!("{} ({form}), {events}: {rate}", counted(streams.whole, "whole stream")),
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

/// Names and times: to the first event, between events.
pub(crate) fn times(report: &RunRecord) -> Vec<(&'static str, Hist)> {
    let is_grpc = report.bodies.streams.as_ref().is_some_and(|streams| streams.form == "grpc");
    let [first, between] = match is_grpc {
        true => ["first message", "between messages"],
        false => ["first event", "between events"],
    };
    let rows = [
        (first, RunHist::FirstEvent),
        (between, RunHist::EventGap),
        ("  mean of a stream", RunHist::EventPace),
        ("answer to a message", RunHist::MessageAnswer),
    ];
    let rows = rows.map(|(name, of)| (name, report.hist(of)));
    rows.into_iter().filter(|(_, hist)| !hist.is_empty()).collect()
}
