//! One-line facts of responses that are streams of events.

use crate::RunReport;
use crate::words::counted;
use record::run::{StreamRateRecord, stream_form};
use stats::Hist;
use units::show;

/// How many streams and events there were, and how fast they came; nothing where nobody asked.
pub(crate) fn sentence(report: &RunReport) -> Option<String> {
    let form = stream_form(&report.plan)?;
    let streams = &report.measurement.total.streams;
    let window = report.measurement.window.as_secs_f64().max(1e-9);
    let rate = show::rate(streams.in_window as f64 / window);
    let events = counted(streams.events, "event");
    let mut text = match form {
        "both" => format!("{}, {events}: {rate}", counted(streams.whole, "whole stream")),
        form => format!("{} ({form}), {events}: {rate}", counted(streams.whole, "whole stream")),
    };
    if let Some(rate) = StreamRateRecord::of(&streams.pace) {
        let (median, slowest) = (show::rate(rate.median), show::rate(rate.slowest_1_percent));
        text += &format!("; one stream has {median} (median), {slowest} (slowest 1 %)");
    }
    for (count, what) in [(streams.cut, "cut short"), (streams.empty, "without an event")] {
        if count > 0 {
            text += &format!("; {} {what}", show::count(count));
        }
    }
    Some(text)
}

/// Names and times: to the first event, between events.
pub(crate) fn times(report: &RunReport) -> Vec<(&'static str, &Hist)> {
    let streams = &report.measurement.total.streams;
    let rows = [
        ("first event", &streams.first),
        ("between events", &streams.gap),
        ("  mean of a stream", &streams.pace),
    ];
    rows.into_iter().filter(|(_, hist)| !hist.is_empty()).collect()
}
