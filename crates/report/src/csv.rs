//! The time series as CSV (RFC 4180, with plain line feeds): a row per interval, warm-up included.

use crate::{RunReport, figures};
use std::fmt::Write;
use units::Nanos;

/// Columns, in order. Times in seconds, shares 0..=1; response times are empty where none came.
const HEADER: &str = "at_s,span_s,warm_up,due,succeeded,failed,timed_out,dropped,abandoned,\
    throughput_per_s,response_mean_s,response_p50_s,response_p90_s,response_p99_s,response_max_s,\
    slip_p99_s,in_flight,open_connections,bytes_received,body_bytes,driver_cpu";

/// The time series with a header line.
pub fn csv(report: &RunReport) -> String {
    let mut out = format!("{HEADER}\n");
    for row in &report.measurement.series {
        let (counts, rate) = (&row.counts, figures::completions_per_s(row));
        let rate = if rate.is_finite() { rate } else { 0.0 };
        let times = [row.mean, row.p50, row.p90, row.p99, row.max];
        // of no response there is no time
        let none = row.max.is_zero();
        let cell = |time: Nanos| if none { String::new() } else { seconds(time) };
        let times = format!("{},{}", times.map(cell).join(","), seconds(row.slip_p99));
        let written = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{rate:.3},{times},{},{},{},{},{:.4}",
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

fn seconds(time: Nanos) -> String {
    time.as_secs_f64().to_string()
}

/// A text as a cell: in quotes where it needs them (RFC 4180 section 2).
pub(crate) fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
