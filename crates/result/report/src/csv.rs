//! The time series as CSV (RFC 4180, with plain line feeds): a row per interval, including the
//! warm-up.

use crate::RunRecord;
use std::fmt::Write;

/// Columns, in order. Times in seconds, shares 0..=1; response times are empty without responses.
const HEADER: &str = "at_s,span_s,warm_up,due,succeeded,failed,timed_out,dropped,abandoned,\
    throughput_per_s,response_mean_s,response_p50_s,response_p90_s,response_p99_s,response_max_s,\
    slip_p99_s,in_flight,open_connections,bytes_received,body_bytes,driver_cpu,\
    events,first_event_p99_s,event_gap_p99_s,messages_sent,messages_received,message_gap_p99_s";

/// Renders the time series as CSV with a header line.
pub fn csv(report: &RunRecord) -> String {
    let mut out = format!("{HEADER}\n");
    for row in &report.series {
        let counts = &row.outcomes;
        let rate = counts.done() as f64 / row.span_s;
        let rate = if rate.is_finite() { rate } else { 0.0 };
        let times = [
            row.response_mean_s,
            row.response_p50_s,
            row.response_p90_s,
            row.response_p99_s,
            row.response_max_s,
        ];
        // without a response there is no time
        let cell = |time: Option<f64>| time.map_or(String::new(), |time| time.to_string());
        let times = format!("{},{}", times.map(cell).join(","), row.slip_p99_s);
        let streams = [row.first_event_p99_s, row.event_gap_p99_s].map(cell).join(",");
        let count = |count: Option<u64>| count.map_or(String::new(), |count| count.to_string());
        let events = count(row.events);
        let messages = [row.messages_sent, row.messages_received].map(count).join(",");
        let gap = cell(row.message_gap_p99_s);
        let written = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{rate:.3},{times},{},{},{},{},{:.4},{events},{streams},{messages},{gap}",
            row.at_s,
            row.span_s,
            u8::from(row.warm_up),
            counts.due,
            counts.succeeded,
            counts.failed,
            counts.timed_out,
            counts.dropped,
            counts.abandoned,
            row.in_flight,
            row.open_connections,
            row.bytes_received,
            row.body_bytes,
            row.driver_cpu,
        );
        written.expect("writing to a string cannot fail");
    }
    out
}

/// Renders a text as a CSV cell, in quotes if it needs them (RFC 4180 section 2).
pub(crate) fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
