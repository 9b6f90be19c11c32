//! The histograms as an HdrHistogram interval log (V2, compressed), readable by the public tools.

use crate::RunRecord;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use record::run::RunHist;
use std::time::{Duration, UNIX_EPOCH};
use units::Nanos;

/// Writes one interval, the whole measured phase, per histogram. Tags distinguish them: `response`
/// (succeeded and timed out), `service`, `slip`, `failed`. Values are nanoseconds; the column of
/// the maximum is in milliseconds, by convention of this format.
pub fn hdr_log(report: &RunRecord) -> String {
    let hists = [
        ("response", report.response()),
        ("service", report.hist(RunHist::Service)),
        ("slip", report.hist(RunHist::Slip)),
        ("failed", report.hist(RunHist::Failed)),
    ];
    let started = Duration::try_from_secs_f64(report.started_unix_s).unwrap_or_default();
    let window = Duration::from_nanos(Nanos::from_secs_f64(report.duration_s).0);
    let (mut bytes, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("[Histogram log format version 1.3]")
        .with_start_time(UNIX_EPOCH + started)
        .with_base_time(UNIX_EPOCH + started)
        .with_max_value_divisor(1e6);
    let mut log =
        builder.begin_log_with(&mut bytes, &mut serializer).expect("writing to memory cannot fail");
    for (tag, hist) in hists {
        if !hist.is_empty() {
            log.write_histogram(&hist.to_hdr(), Duration::ZERO, window, Tag::new(tag))
                .expect("a histogram of fixed bounds serializes, and writing to a Vec cannot fail");
        }
    }
    String::from_utf8(bytes).expect("the log is comments, numbers and base64")
}
